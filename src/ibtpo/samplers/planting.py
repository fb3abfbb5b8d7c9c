"""The empty tree that a sampler starts from: how its responses are cut into nodes, and how these are scored."""

from __future__ import annotations

from ibtpo.tree import BlockSegmenter, NoisySegmenter, ReasoningTree, Scoring, Segmenter


def make_tree(uid: str, spec, segmenter: Segmenter, max_tokens: int, seed: int = 0) -> ReasoningTree:
    """A tree of spec = config.Sampler. Nodes end where `segmenter` says; TreePO's every spec.segment tokens.

    seed: of the delimiter noise, if there is any; its coins depend on seed, uid and the response ids up to the token.
    """
    if spec.name == "treepo":
        segmenter = BlockSegmenter(segmenter, spec.segment)
    elif spec.delimiter_noise:
        segmenter = NoisySegmenter(segmenter, spec.delimiter_noise, spec.boundary_rate, key=("delimiter noise", seed, uid))
    return ReasoningTree(uid, segmenter, max_tokens, Scoring(spec.density, spec.ratio_power))
