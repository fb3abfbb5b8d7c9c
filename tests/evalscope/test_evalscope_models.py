"""A small model in this process, and behind vLLM's real server."""

from __future__ import annotations

import pandas as pd
import pytest
from evalscope_helpers import maths
from transformers import AutoTokenizer

from ibtpo import IbtpoError
from ibtpo.benchmarks import evaluate, judge
from ibtpo.io import read_parquet, write_parquet


@pytest.fixture
def evaluated(world, tmp_path):
    """evaluated(how, ...) asks the random policy of the smoke preset three problems; returns the configuration, the folder, the samples."""

    def run(how: str, folder: str = "one", **changes):
        root, base = tmp_path / folder, world.config
        write_parquet(pd.DataFrame(maths("amc23", 3)), root / "data" / "benchmarks" / "amc23.parquet")
        evaluation = base.evaluate.model_copy(update={"benchmarks": ("amc23",), "samples": 2, "pass_at": (1,)})
        scope = base.evalscope.model_copy(update={"engine": how})
        config = base.model_copy(update={"evaluate": evaluation, "evalscope": scope, **changes})
        evaluate(config, str(world.policy), "base", str(root / "data"), root / "work", root / "samples.parquet", root / "reviews.parquet")
        return config, root, read_parquet(root / "samples.parquet")

    return run


def check(samples: pd.DataFrame, config, tokenizer) -> None:
    """Ids are the model's, the text is theirs, and the end is what it says."""
    assert len(samples) == 3 * config.evaluate.samples
    for row in samples.itertuples():
        ids = list(row.ids)
        assert 0 < len(ids) == row.tokens <= config.sampling.max_tokens
        assert row.text == tokenizer.decode(ids, skip_special_tokens=True)
        assert row.finished == (ids[-1] == tokenizer.eos_token_id)
        assert row.finished or row.tokens == config.sampling.max_tokens
    assert samples["text"].nunique() > 1


def test_in_process_with_our_engine(evaluated, world):
    config, root, samples = evaluated("in-process")
    check(samples, config, AutoTokenizer.from_pretrained(world.policy))
    pd.testing.assert_frame_equal(samples, evaluated("in-process", "two")[2])
    paths = (str(root / "samples.parquet"), str(root / "reviews.parquet"), str(root / "data"))
    judge.main(config, *paths, "base", 0, root / "scores.parquet", root / "report")
    scores = read_parquet(root / "scores.parquet")
    assert len(scores) == 6 and scores["reward"].between(0, 1).all()


def test_a_response_that_cannot_fit_stops_the_run(evaluated, world):
    longer = world.config.sampling.model_copy(update={"max_tokens": 100_000})
    with pytest.raises(IbtpoError, match="exceeds the model length"):
        evaluated("in-process", sampling=longer)


@pytest.mark.slow
def test_behind_vllms_server(evaluated, world):
    config, root, samples = evaluated("served")
    check(samples, config, AutoTokenizer.from_pretrained(world.policy))
    assert "Application startup complete" in (root / "work" / "server.log").read_text()
