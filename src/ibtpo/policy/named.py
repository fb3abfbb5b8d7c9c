"""A base policy that is not trained here: the local copy of a model, held against its card."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from ibtpo import IbtpoError, io
from ibtpo.config.models import Config
from ibtpo.policy import preflight


def main(config: Config, out_dir: str | Path) -> None:
    """Makes `out_dir` the folder of the policy: links to the model's files, and its own end of a response; done.json last.

    The end is policy.eos, else the tokenizer's own; it stands in tokenizer, model and generation configuration alike, so that every
    engine ends a response where training does. done.json says what was found, with the sha256 of the weights. Raises PreflightError if
    the model is not what its card says.
    """
    from transformers import AutoTokenizer

    policy, out = config.policy, Path(out_dir)
    found = preflight.main(policy.card, policy.place, policy.eos)
    found["weights"] = {file.name: io.sha256(file) for file in sorted(policy.place.glob("*.safetensors"))}
    tokenizer = AutoTokenizer.from_pretrained(policy.place)
    temporary = out / ".own.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for file in policy.place.iterdir():
        if file.is_file():
            (temporary / file.name).symlink_to(file.resolve())
    if policy.eos:
        tokenizer.eos_token = policy.eos
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"):
            (temporary / name).unlink(missing_ok=True)  # a link would be written through
        tokenizer.save_pretrained(temporary)
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    model = json.loads((policy.place / "config.json").read_text(encoding="utf-8"))
    io.write_json(model | ends, temporary / "config.json")
    io.write_json(ends, temporary / "generation_config.json")  # sampling is ours, not the publisher's
    for file in out.iterdir():
        if file.is_symlink():
            file.unlink()  # of a folder before this one, perhaps
    for file in temporary.iterdir():
        os.replace(file, out / file.name)
    temporary.rmdir()
    io.write_json(io.provenance(out.name, seed=None) | {"model": policy.card}, out / "run.json")
    io.write_json(found, out / "done.json")


def check_links(policy_dir: str | Path) -> None:
    """Raises IbtpoError if the folder of a policy links to files that are gone; it names one, and the remedy."""
    lost = [file for file in sorted(Path(policy_dir).glob("*")) if file.is_symlink() and not file.exists()]
    if lost:
        raise IbtpoError(
            f"{lost[0]} links to {os.readlink(lost[0])}, which is gone: put the model back, or set policy.folder to where it lies now "
            "and run `snakemake policy`"
        )
