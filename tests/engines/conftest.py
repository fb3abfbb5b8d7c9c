"""A random Qwen3 policy with a byte-level tokenizer, and the reference that all engines are compared with."""

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from ibtpo.config.models import Sampler, Sampling
from ibtpo.rollout.scheduler import Task
from ibtpo.samplers import SAMPLERS
from ibtpo.tree import ReasoningTree, Segmenter
from ibtpo.verifiers import Verdict

PADDED_VOCABULARY = 272  # more logits than tokens, as in real models


def build_model(seed: int, head_dim: int = 32) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": head_dim}
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=PADDED_VOCABULARY,
            intermediate_size=128,
            max_position_embeddings=256,
            tie_word_embeddings=True,
            initializer_range=0.1,  # far from uniform, so that temperature and top-k matter
            eos_token_id=256,
            pad_token_id=257,
            bos_token_id=None,
            **shape,
        )
    ).eval()


@pytest.fixture(scope="session")
def policy_dir(tmp_path_factory):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={token: index for index, token in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    path = tmp_path_factory.mktemp("policy")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<pad>").save_pretrained(path)
    build_model(0).save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def sampling():
    return Sampling(temperature=0.7, top_p=0.95, top_k=20, max_tokens=64)


@pytest.fixture(scope="session")
def build():
    return build_model


@pytest.fixture(scope="session")
def finish():
    """Submits requests and steps until all have finished: {id: continuation}."""

    def run(engine, requests):
        for request in requests:
            engine.submit(request)
        done = {}
        while engine.pending:
            done |= {continuation.id: continuation for continuation in engine.step()}
        return done

    return run


@pytest.fixture(scope="session")
def error():
    """Largest distance of a continuation's log-probs from a plain forward pass of `model` over the same ids."""

    @torch.no_grad()
    def distance(model, request, continuation):
        ids = torch.tensor([*request.prompt_ids, *continuation.ids])
        logits = model(ids[None]).logits[0, len(request.prompt_ids) - 1 : -1]
        expected = torch.log_softmax(logits, dim=-1).gather(1, ids[len(request.prompt_ids) :, None])[:, 0]
        return (expected - torch.tensor(continuation.logprobs)).abs().max().item()

    return distance


@pytest.fixture(scope="session")
def plant(sampling):
    """Makes tasks that grow four IBTrees of 8 trajectories, each tree with a prompt of 30 tokens of its own."""
    spec = Sampler(name="ibtree", group_size=8, initial=3, iterations=6, nodes=1, branches=1, min_room=4)
    segmenter = Segmenter([b"x" if i % 8 else b"x\n\n" for i in range(258)], 256)  # the random policy writes steps of some 8 tokens

    def task(i):
        tree = ReasoningTree(f"tree{i}", segmenter, sampling.max_tokens)
        prompt_ids = tuple(range(i, i + 30))
        return Task(tree.uid, prompt_ids, SAMPLERS["ibtree"](tree, spec, None), tree, lambda ids: Verdict(float(len(ids) % 2), "ok"))

    return lambda: [task(i) for i in range(4)]
