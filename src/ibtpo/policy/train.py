"""Supervised training of the base policy from scratch; a killed run goes on where its last checkpoint was and ends in the same weights."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import torch
from safetensors import SafetensorError
from tqdm import tqdm
from transformers import GenerationConfig, PreTrainedTokenizerBase, Qwen3Config, Qwen3ForCausalLM

from ibtpo import IbtpoError, io
from ibtpo.config import models
from ibtpo.policy.examples import batch_indices, collate, encode, solution_text
from ibtpo.world.tokenizer import train_tokenizer


def main(config: models.Config, data_dir: str | Path, out_dir: str | Path) -> None:
    """Trains on `data_dir`/sft.parquet and writes model, tokenizer and generation config, at last done.json, into `out_dir`.

    Deterministic for a seed on one machine with one number of threads, also across kills. Raises FileNotFoundError without the
    data, IbtpoError if the loss is not finite or another process is at it.
    """
    with io.exclusive(out_dir):
        _train(config.policy, Path(data_dir), Path(out_dir))


def _train(policy: models.Policy, data_dir: Path, out_dir: Path) -> None:
    frame = io.read_parquet(data_dir / "sft.parquet")
    texts = (f"user\n{row.prompt}\nassistant\n{solution_text(row)}" for row in frame.itertuples())
    tokenizer = train_tokenizer(texts, policy.vocabulary)
    examples = encode(frame, tokenizer, policy.max_positions)

    io.write_json(io.provenance(out_dir.name, policy.seed) | {"data": io.checksums(data_dir, "sft.parquet")}, out_dir / "run.json")
    torch.manual_seed(policy.seed)
    model = make_model(policy, tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=policy.learning_rate, weight_decay=policy.weight_decay, betas=(0.9, 0.95))
    checkpoint = out_dir / "checkpoints" / "latest.pt"
    done, loss = _restore(checkpoint, model, optimizer)
    batches = _batches(np.array([len(example.ids) for example in examples]), policy, done)
    with tqdm(total=policy.steps, initial=done, desc="base policy", unit="step", mininterval=1) as bar:
        tokens = 0
        for step in range(done, policy.steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(policy, step)
            ids, labels = collate([examples[i] for i in next(batches)], tokenizer.pad_token_id)
            output = model(input_ids=ids, labels=labels)
            output.loss.backward()
            loss = output.loss.item()
            if not math.isfinite(loss):
                raise IbtpoError(f"loss {loss} in step {step} of the base policy: lower policy.learning_rate = {policy.learning_rate:g}")
            torch.nn.utils.clip_grad_norm_(model.parameters(), policy.max_grad_norm)
            optimizer.step()
            optimizer.zero_grad()
            tokens += int((ids != tokenizer.pad_token_id).sum())
            bar.update()
            bar.set_postfix_str(f"loss {loss:.3f}, {tokens / (bar.format_dict['elapsed'] or 1):,.0f} tokens/s", refresh=False)
            if (step + 1) % policy.checkpoint_every == 0 and step + 1 < policy.steps:
                _save(checkpoint, step + 1, loss, model, optimizer)
    _publish(model, tokenizer, out_dir)
    shutil.rmtree(checkpoint.parent, ignore_errors=True)
    io.write_json({"steps": policy.steps, "loss": loss, "parameters": model.num_parameters()}, out_dir / "done.json")


def make_model(policy: models.Policy, tokenizer: PreTrainedTokenizerBase) -> Qwen3ForCausalLM:
    """An untrained float32 model with tied embeddings; EOS ends its generations, PAD fills them."""
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=policy.hidden_size,
            intermediate_size=policy.intermediate_size,
            num_hidden_layers=policy.layers,
            num_attention_heads=policy.heads,
            num_key_value_heads=policy.kv_heads,
            head_dim=policy.head_dim,
            max_position_embeddings=policy.max_positions,
            initializer_range=policy.initializer_range,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            dtype=torch.float32,
        )
    )


def learning_rate(policy: models.Policy, step: int) -> float:
    """Linear warm-up, then a half cosine down to 0 after the last step."""
    if step < policy.warmup_steps:
        return policy.learning_rate * (step + 1) / policy.warmup_steps
    progress = (step - policy.warmup_steps) / max(1, policy.steps - policy.warmup_steps)
    return policy.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))


def _batches(lengths: np.ndarray, policy: models.Policy, skip: int) -> Iterator[np.ndarray]:
    per_epoch = len(lengths) // policy.batch_size
    if per_epoch == 0:
        raise IbtpoError(f"policy.batch_size is {policy.batch_size} but there are only {len(lengths)} worked solutions: make it smaller")
    epoch, first = divmod(skip, per_epoch)
    while True:
        yield from batch_indices(lengths, policy.batch_size, policy.seed, epoch)[first:]
        epoch, first = epoch + 1, 0


def _save(path: Path, step: int, loss: float, model: Qwen3ForCausalLM, optimizer: torch.optim.Optimizer) -> None:
    state = {"step": step, "loss": loss, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
    buffer = BytesIO()
    torch.save(state, buffer)
    io.write_bytes(buffer.getvalue(), path)


def _restore(path: Path, model: Qwen3ForCausalLM, optimizer: torch.optim.Optimizer) -> tuple[int, float]:
    """Steps already made and the loss of the last; (0, nan) for a fresh start."""
    if not path.is_file():
        return 0, math.nan
    try:
        state = torch.load(path)
    except (RuntimeError, OSError, EOFError, UnpicklingError) as error:
        aside = path.with_name(f"broken-{path.name}")
        path.replace(aside)
        print(f"checkpoint {path} is not usable ({error}); moved to {aside.name}, starting again")
        return 0, math.nan
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["rng"])
    return state["step"], state["loss"]


def _publish(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerBase, out_dir: Path) -> None:
    """Saves in transformers' layout beside `out_dir`'s files and moves each over; readers wait for done.json."""
    temporary = out_dir / ".final.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    model.generation_config = GenerationConfig(eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    with io.saving(temporary, SafetensorError):
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
    for file in temporary.iterdir():
        os.replace(file, out_dir / file.name)
    temporary.rmdir()
