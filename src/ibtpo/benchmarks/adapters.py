"""EvalScope's adapters, as they are but for four things.

Problems come from our folders, each response has a seed of its own, programs are scored by our sandbox, and nothing is ever downloaded.
The benchmark `math500` is registered as `ibtpo-math500`, so EvalScope's own ones stay what they are.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import nltk
import pandas as pd
from evalscope.api.metric import Score
from evalscope.api.metric.semantics import MetricSelector
from evalscope.api.model import GenerateConfig
from evalscope.api.registry import BENCHMARK_REGISTRY
from evalscope.constants import ScoreStatus

from ibtpo.benchmarks.rows import adapter
from ibtpo.rollout.scheduler import stable_seed
from ibtpo.verifiers import verify

PASS_AT_1 = MetricSelector(name="accuracy", aggregation="pass_at_k", dimensions={"k": 1})
PUNKT = {"length_constraints:number_sentences", "change_case:capital_word_frequency"}  # kinds whose check needs NLTK's punkt_tab
NO_PUNKT = "EvalScope checks this instruction with NLTK's punkt_tab, which is not installed: python -m nltk.downloader punkt_tab"


def register(name: str, problems: pd.DataFrame, folder: str) -> str:
    """Registers the benchmark `name` over the rows in `folder`; returns the name by which EvalScope knows it.

    With a system prompt the user's message is the problem alone; without one all prompts are EvalScope's.
    """
    base = BENCHMARK_REGISTRY[adapter(name, problems)]
    system = problems["system"].iloc[0]
    changes: dict[str, Any] = {"system_prompt": system, "prompt_template": "{question}"} if system else {}
    if base.aggregation == "mean":  # avg@k and pass@k; without a primary metric the report would fail after all the work
        changes |= {"aggregation": "mean_and_pass_at_k", "primary_metric": PASS_AT_1}
    registered = f"ibtpo-{name.replace('_', '-')}"  # "_" parts it from the subset in file names
    BENCHMARK_REGISTRY[registered] = dataclasses.replace(
        base,
        name=registered,
        data_adapter=_adapted(base.data_adapter, problems),
        dataset_id=folder,
        hf_dataset_id=None,
        subset_list=subsets(name, problems),
        **changes,
    )
    return registered


def subsets(name: str, problems: pd.DataFrame) -> list[str]:
    """Subsets, in which EvalScope counts problems apart: the levels of MATH-500, else one."""
    known = adapter(name, problems)
    return BENCHMARK_REGISTRY[known].subset_list if known == "math_500" else [name] if known == "amc" else ["default"]


def file_name(name: str, problems: pd.DataFrame) -> str:
    """Of the rows, in the folder: `<subset>_<split>.jsonl`, as EvalScope's local loader looks for it."""
    known = adapter(name, problems)
    return f"default_{name if known == 'amc' else BENCHMARK_REGISTRY[known].eval_split}.jsonl"


def _adapted(base: type, problems: pd.DataFrame) -> type:
    kind = {"code": _Sandboxed, "ifeval": _Offline}.get(problems["family"].iloc[0], _Local)
    gold = dict(zip(problems["uid"], problems["metadata"], strict=True))
    return type(f"Local{base.__name__}", (kind, base), {"gold": gold})


class _Local:
    """Reads local rows and knows each problem's uid."""

    gold: ClassVar[dict[str, str]]  # uid -> metadata

    def load(self):
        return self.load_from_disk(use_local_loader=True)

    def record_to_sample(self, record: dict[str, Any]):
        sample = super().record_to_sample(record)
        sample.metadata = {**(sample.metadata or {}), "uid": record["uid"]}
        return sample

    def _on_inference(self, model, sample):
        number = sample.id % self.repeats
        seed = stable_seed("evalscope", self._task_config.model_id, self.name, sample.metadata["uid"], number)
        return model.generate(input=sample.input, tools=sample.tools, config=GenerateConfig(seed=seed))


class _Sandboxed(_Local):
    """Programs: EvalScope would run them unprotected, or in Docker."""

    def __init__(self, **settings: Any):
        super().__init__(**settings)
        self.save_metadata = True  # without the tests, which are not here, they are small

    def record_to_sample(self, record: dict[str, Any]):
        sample = super().record_to_sample(record)
        sample.metadata = {"uid": record["uid"], "contest_date": record.get("contest_date")}
        return sample

    def match_score(self, original_prediction: str, filtered_prediction: str, reference: str, task_state) -> Score:
        verdict = verify("code", self.gold[task_state.metadata["uid"]], original_prediction)
        return Score(
            extracted_prediction=filtered_prediction,
            prediction=original_prediction,
            value={"acc": verdict.reward},
            main_score_name="acc",
            metadata={"status": verdict.status},
        )


class _Offline(_Local):
    """Instructions: those whose check would be downloaded have no verdict."""

    def match_score(self, original_prediction: str, filtered_prediction: str, reference: str, task_state) -> Score:
        if PUNKT.intersection(task_state.metadata["instruction_id_list"]) and not _punkt():
            return Score(prediction=original_prediction, status=ScoreStatus.EXCLUDED, explanation=NO_PUNKT)
        return super().match_score(original_prediction, filtered_prediction, reference, task_state)


def _punkt() -> bool:
    try:
        return bool(nltk.data.find("tokenizers/punkt_tab"))
    except LookupError:
        return False
