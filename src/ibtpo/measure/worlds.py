"""What rollouts are measured on: a policy and its problems, or a random model with responses as long as one likes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from ibtpo import IbtpoError
from ibtpo.config import Config
from ibtpo.config.measurements import Case, Measurement
from ibtpo.engines import Engine, Request, make_engine
from ibtpo.engines.transformers import TransformersEngine
from ibtpo.measure.growth import coin
from ibtpo.rollout.problems import Prompter, load_problems
from ibtpo.rollout.scheduler import Task, stable_seed
from ibtpo.samplers import SAMPLERS, make_tree
from ibtpo.tree import Segmenter

EOS, STEP = 512, 32  # of the random model: its last token, and tokens of a step on average


class World(Protocol):
    """model: on the CPU, with the weights that an engine is given anew before every run."""

    model: PreTrainedModel
    eos_id: int

    def engine(self) -> Engine:
        """The engine of the configuration."""

    def tasks(self, case: Case, repeat: int) -> list[Task]:
        """The trees of a case, planted. A repeat has its own problems."""


class PolicyWorld:
    """The policy in `model_dir` on problems (Parquet), in their order, and from the first one again when they are used up.

    Raises IbtpoError if a case has more trees than there are problems.
    """

    def __init__(self, config: Config, model_dir: str | Path, problems: str | Path):
        self._config, self._model_dir, self._problems = config, model_dir, load_problems(problems)
        self._tokenizer = AutoTokenizer.from_pretrained(model_dir)
        self.model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
        self.eos_id = self._tokenizer.eos_token_id

    def engine(self) -> Engine:
        return make_engine(self._config.engine.kind, self._model_dir, self._config.sampling, self._config.engine)

    def tasks(self, case: Case, repeat: int) -> list[Task]:
        known = len(self._problems)
        if case.trees > known:
            raise IbtpoError(f"{case.trees} trees at once need as many problems, and there are {known}: lower trees or build more problems")
        prompter = Prompter(self._tokenizer, case.max_tokens)
        part = [self._problems[number % known] for number in range(repeat * case.trees, (repeat + 1) * case.trees)]
        return [prompter.task(problem, self._config.samplers[case.sampler], repeat) for problem in part]


class RandomWorld:
    """A random model, which never ends a response by itself, prompts of random tokens, and rewards by coin."""

    def __init__(self, config: Config, measurement: Measurement, longest: int):
        self._config, self._measurement = config, measurement
        torch.manual_seed(0)
        width = measurement.hidden_size
        shape = {"hidden_size": width, "intermediate_size": 3 * width, "num_hidden_layers": measurement.layers, "vocab_size": EOS + 1}
        heads = {"num_attention_heads": width // 64, "num_key_value_heads": width // 128, "head_dim": 64}
        self.model = Qwen3ForCausalLM(
            Qwen3Config(**shape, **heads, max_position_embeddings=measurement.prompt + longest, tie_word_embeddings=True)
        )
        self.eos_id = EOS
        torch.nn.init.zeros_(self.model.lm_head.weight[EOS])  # a logit of 0 is never among the best 20
        self._segmenter = Segmenter([b"x\n\n" if token % STEP == 0 else b"x" for token in range(EOS)] + [b""], EOS)

    def engine(self) -> Engine:
        with TemporaryDirectory() as folder:  # a live model would forget its prefixes between the rounds of lockstep
            self.model.save_pretrained(folder)
            return self.uneven(TransformersEngine(folder, EOS, self._config.sampling, self._config.engine))

    def uneven(self, engine: Engine) -> Engine:
        """The same engine, with responses as long as the measurement says."""
        return Uneven(engine, self._measurement.prompt, self._measurement.shortest)

    def tasks(self, case: Case, repeat: int) -> list[Task]:
        made = []
        for uid in (f"{repeat}-{number}" for number in range(case.trees)):
            rng, sampler = np.random.default_rng(stable_seed(uid)), self._config.samplers[case.sampler]
            tree = make_tree(uid, sampler, self._segmenter, case.max_tokens, repeat)
            prompt = tuple(rng.integers(EOS, size=self._measurement.prompt).tolist())
            made.append(Task(uid, prompt, SAMPLERS[sampler.name](tree, sampler, rng), tree, coin))
        return made


class Uneven:
    """An engine whose responses are cut at lengths of their own: drawn by a request's seed, from `shortest` of the maximum up to it."""

    def __init__(self, engine: Engine, prompt: int, shortest: float):
        self._engine, self._prompt, self._shortest = engine, prompt, shortest

    def submit(self, request: Request) -> None:
        done = len(request.prompt_ids) - self._prompt
        longest = done + request.max_tokens
        shortest = round(self._shortest * longest)
        length = shortest + request.seed % (longest - shortest + 1)
        self._engine.submit(replace(request, max_tokens=max(1, min(length - done, request.max_tokens))))

    def __getattr__(self, name: str):
        return getattr(self._engine, name)
