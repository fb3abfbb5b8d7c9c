"""How EvalScope asks the policy: two of its model APIs. Both give each response's token ids, which its own keep back.

EvalScope's own way in process (`llm_ckpt`) is not used. It pads a batch and counts the padding: the length of the longest response is
taken for that of all, and all count as cut off if one is. It knows no seed per response either, so a resumed run repeats its draws.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Condition, Lock

import httpx
from evalscope.api.messages import ChatMessage, ChatMessageAssistant
from evalscope.api.model import ChatCompletionChoice, GenerateConfig, ModelAPI, ModelOutput, ModelUsage
from evalscope.models.openai_compatible import OpenAICompatibleAPI

from ibtpo import IbtpoError
from ibtpo.engines import Continuation, Engine, Request
from ibtpo.rollout.chat import encode_prompt

REQUEST_SECONDS = 3600  # for one response: a guard against a hang
IDS = "ids"  # key of the token ids in the metadata of an answer


class Served(OpenAICompatibleAPI):
    """A server that speaks OpenAI's protocol and, as vLLM does, returns token ids on request."""

    def __init__(self, name: str, url: str):
        client = httpx.Client(trust_env=False, timeout=REQUEST_SECONDS, limits=httpx.Limits(max_connections=None))
        super().__init__(name, base_url=url, api_key="none", http_client=client)

    def chat_choices_from_completion(self, completion, tools) -> list[ChatCompletionChoice]:
        choices = super().chat_choices_from_completion(completion, tools)
        for choice, raw in zip(choices, completion.choices, strict=True):
            choice.message.metadata = {IDS: list((raw.model_extra or {}).get("token_ids") or [])}
        return choices

    def handle_bad_request(self, ex):
        """EvalScope would take the server's complaint for the model's answer."""
        raise IbtpoError(
            f"the server refused a request: {ex.message}; lower sampling.max_tokens, or use a model with more positions"
        ) from ex


class InProcess(ModelAPI):
    """An engine in this process. EvalScope asks from many threads; whichever finds the engine idle has it take one step for all."""

    def __init__(self, name: str, make: Callable[[], Engine], tokenizer):
        super().__init__(name)
        self._tokenizer = tokenizer
        self._thread = ThreadPoolExecutor(max_workers=1)  # all work of the engine is in one thread: torch keeps some state per thread
        self._engine = self._thread.submit(make).result()
        self._turn, self._stepping = Condition(), False
        self._error: BaseException | None = None
        self._arrived: list[Request] = []
        self._answers: dict[str, Continuation] = {}
        self._numbers = itertools.count()

    def generate(self, input: list[ChatMessage], tools, tool_choice, config: GenerateConfig) -> ModelOutput:
        system = "".join(message.text for message in input if message.role == "system")
        prompt = tuple(encode_prompt(self._tokenizer, input[-1].text, system))
        answer = self._answer(Request(str(next(self._numbers)), prompt, config.max_tokens, config.seed))
        text = self._tokenizer.decode(list(answer.ids), skip_special_tokens=True)
        message = ChatMessageAssistant(content=text, model=self.model_name, source="generate", metadata={IDS: list(answer.ids)})
        usage = ModelUsage(input_tokens=len(prompt), output_tokens=len(answer.ids), total_tokens=len(prompt) + len(answer.ids))
        choice = ChatCompletionChoice(message=message, stop_reason="stop" if answer.finished else "max_tokens")
        return ModelOutput(model=self.model_name, choices=[choice], usage=usage)

    def close(self) -> None:
        self._thread.shutdown()
        self._engine.close()

    def _answer(self, request: Request) -> Continuation:
        with self._turn:
            self._arrived.append(request)
            while request.id not in self._answers:
                if self._error:
                    raise self._error
                if self._stepping:
                    self._turn.wait()
                else:
                    self._step()
            return self._answers.pop(request.id)

    def _step(self) -> None:
        """One step of the engine for all; requests arrive meanwhile, so the lock is let go. An error is everyone's."""
        step, self._arrived, self._stepping = self._thread.submit(self._work, self._arrived), [], True
        self._turn.release()
        try:
            wait([step])
        finally:
            self._turn.acquire()
        self._error, self._stepping = step.exception(), False
        if not self._error:
            self._answers |= {continuation.id: continuation for continuation in step.result()}
        self._turn.notify_all()

    def _work(self, arrived: list[Request]) -> list[Continuation]:
        for request in arrived:
            self._engine.submit(request)
        return self._engine.step()


class Deferred(ModelAPI):
    """A model that is made when it is first asked, once: a run of which only verdicts are missing needs none. An error is everyone's."""

    def __init__(self, name: str, make: Callable[[], ModelAPI]):
        super().__init__(name)
        self._make, self._thread, self._lock = make, ThreadPoolExecutor(max_workers=1), Lock()
        self._made: Future[ModelAPI] | None = None

    def generate(self, *arguments, **options) -> ModelOutput:
        with self._lock:
            self._made = self._made or self._thread.submit(self._make)
        return self._made.result().generate(*arguments, **options)
