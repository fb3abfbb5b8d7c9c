"""docs/trl.md is true: its script, as it stands but for the three paths, trains a policy, and the engine samples from it."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from safetensors.torch import load_file

(SCRIPT,) = re.findall(r"^```python\n(.*?)^```$", Path("docs/trl.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
PATHS = 'MODEL, PROBLEMS, OUT = "model", "train.parquet", "out"'


def test_the_script_trains(world, tmp_path):
    assert SCRIPT.count(PATHS) == 1
    chosen = f"MODEL, PROBLEMS, OUT = {str(world.policy)!r}, {str(world.data / 'train.parquet')!r}, {str(tmp_path / 'out')!r}"
    names: dict = {}
    exec(compile(SCRIPT.replace(PATHS, chosen), "docs/trl.md", "exec"), names)
    trainer, engine = names["trainer"], names["engine"]
    assert trainer.state.global_step == 4 and trainer.sharing
    before, after = (load_file(folder / "model.safetensors") for folder in (world.policy, tmp_path / "out"))
    assert max((after[name] - before[name]).abs().max() for name in before) > 1e-6
    sampled = dict(engine._model.state_dict())
    for uids in (list(names["problems"])[:2],):
        names["grow"](uids, 9)
    assert all(torch.equal(sampled[name], value) for name, value in trainer.model.state_dict().items())
