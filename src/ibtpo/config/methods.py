"""What a method is made of: a sampler, an advantage and a regulariser. Rows of methods.yaml.

Values marked [OURS] are choices of this project; the papers do not state them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from ibtpo.config.strict import Strict

Loss = Literal["grpo", "bnpo", "dapo"]

SHAPE = ("initial", "iterations", "nodes", "branches")
KEYS = {  # keys that mean something to one strategy only; all others are common
    "independent": (),
    "random": SHAPE,
    "ibtree": (*SHAPE, "beta"),
    "eptree": (*SHAPE, "scope"),
    "fixed-width": ("fan_out",),
    "treepo": ("initial", "fan_out", "segment", "depth"),
}
COMMON = ("name", "group_size", "min_room", "density", "ratio_power", "pi", "delimiter_noise", "boundary_rate")


class Sampler(Strict):
    """Shape of a tree, and how its nodes are cut and scored. G = B0 + (L - 1) K B trajectories (paper, set-up: 4, 9, 1, 1 -> 12)."""

    name: Literal["independent", "random", "fixed-width", "eptree", "treepo", "ibtree"] = Field(description="strategy")
    group_size: int = Field(gt=1, description="G, trajectories per problem")
    initial: int | None = Field(None, ge=1, description="B0, rollouts from the root (TreePO: root divergence; EPTree: M, trees)")
    iterations: int | None = Field(None, ge=1, description="L, including the initial one")
    nodes: int | None = Field(None, ge=1, description="K, nodes expanded per iteration (EPTree: N, forks)")
    branches: int | None = Field(None, ge=1, description="B, continuations per expanded node (EPTree: T)")
    beta: float = Field(5.0, gt=0, description="weight in the IB objective (ibtree)")
    min_room: int = Field(64, ge=1, description="[OURS] tokens that must be left below a node to expand it (D.2 row 3)")
    fan_out: int = Field(2, ge=2, description="[OURS for fixed-width] ways of a fork (fixed-width, treepo)")
    segment: int | None = Field(None, ge=1, description="tokens of a segment (treepo)")
    depth: int | None = Field(None, ge=1, description="segments of a trajectory at most (treepo)")
    scope: Literal["forest", "tree"] = Field(
        "forest", description="[OURS] the K best tokens are taken of the whole forest, or of each initial chain's tree (eptree)"
    )
    density: Literal["literal", "hierarchical"] = Field(
        "literal", description="p(a*|s): mean reward of the trajectories through s, or mean of the children's by draws (D.2 row 8)"
    )
    ratio_power: Literal[1, 2] = Field(1, description="1: r in the posterior entropy, the paper's form; 2: r squared (D.1 remark i)")
    pi: Literal["raw", "temperature"] = Field("raw", description="pi of the raw model, or of logits / temperature (D.2 row 10)")
    delimiter_noise: float = Field(0.0, ge=0, lt=1, description="share of the step ends that move, causal version (D.2 row 28)")
    boundary_rate: float = Field(1 / 80, gt=0, lt=1, description="[OURS] step ends per token, measured (D.2 row 28)")

    @model_validator(mode="after")
    def known_keys(self) -> Sampler:
        for key in sorted(self.model_fields_set - {*COMMON, *KEYS[self.name]}):
            users = ", ".join(name for name, keys in KEYS.items() if key in keys)
            raise ValueError(f"{key!r} means nothing to sampler {self.name!r}, only to: {users}. Remove it")
        needed = [key for key in KEYS[self.name] if key in (*SHAPE, "segment", "depth") and getattr(self, key) is None]
        if needed:
            raise ValueError(f"sampler {self.name!r} needs {' and '.join(needed)}, each >= 1")
        if self.delimiter_noise and self.name == "treepo":
            raise ValueError("delimiter_noise means nothing to treepo, whose segments are counted in tokens. Remove it")
        return self

    @model_validator(mode="after")
    def shape(self) -> Sampler:
        if "iterations" not in KEYS[self.name]:
            return self
        chains = self.initial if self.scope == "tree" else 1  # each tree of the forest, or the forest, expands K nodes a round
        leaves = self.initial + (self.iterations - 1) * self.nodes * self.branches * chains
        if leaves != self.group_size:
            each = f"*{chains} trees" if chains > 1 else ""
            raise ValueError(
                f"tree shape gives B0 + (L-1)*K*B{each} = {self.initial} + {self.iterations - 1}*{self.nodes}*{self.branches}{each} = "
                f"{leaves} leaves but group_size is {self.group_size}: make them equal"
            )
        return self


STD = ("std_ddof", "std_epsilon")
ESTIMATORS = {  # keys of its own, beside those of every estimator: node_weight and whiten
    "grpo": STD,
    "ibtpo": (*STD, "mask_equal_groups", "beta", "local_weight"),
    "treerl": ("variant", "truncated_penalty"),
    "treepo": ("aggregation", "drop_equal_subgroups"),
    "erpo": (*STD, "progress_weight", "gate", "eta", "buckets", "sigma_target", "delta", "progress_floor"),
}


class Advantage(Strict):
    """From the rewards of a tree to one advantage per token."""

    name: Literal["grpo", "ibtpo", "treerl", "treepo", "erpo"] = Field(description="estimator")
    beta: float = Field(5.0, gt=0, description="beta of A_IB (ibtpo)")
    local_weight: float = Field(0.1, ge=0, description="lambda, weight of A_IB (ibtpo)")
    std_ddof: Literal[0, 1] = Field(1, description="1: unbiased std of the rewards, as torch and ms-swift have it; 0: of the population")
    std_epsilon: float = Field(1.0e-4, ge=0, description="added to the unbiased std of the rewards")
    mask_equal_groups: bool = Field(False, description="[OURS] advantage 0 in groups of equal rewards (D.2 row 21)")
    node_weight: Literal["trajectory", "once", "sqrt"] = Field(
        "trajectory",
        description="weight of a step that n trajectories share, in each of them: 1, 1/n or 1/sqrt(n) (D.2 row 20)",
    )
    whiten: bool = Field(False, description="mean 0 and variance 1 over all response tokens of the batch, last of all (TreePO)")
    aggregation: Literal["mean", "size"] = Field("mean", description="subgroups weigh alike, or by their size (treepo)")
    drop_equal_subgroups: bool = Field(False, description="subgroups of equal rewards are left out (treepo)")
    variant: Literal["paper", "code"] = Field("paper", description="formula of the paper or of the released code (treerl)")
    truncated_penalty: bool = Field(False, description="-1 on all tokens of a response without EOS (treerl)")
    progress_weight: float = Field(0.1, gt=0, description="beta_prog, scale of the implicit progress (erpo)")
    gate: float = Field(5.0, gt=0, description="gamma, sharpness of the entropy gate (erpo)")
    eta: float = Field(0.2, ge=0, description="weight of the progress term (erpo)")
    buckets: int = Field(10, ge=1, description="[OURS] K, position buckets of a response (erpo)")
    sigma_target: float = Field(1.0, gt=0, description="[OURS] std of the progress term (erpo)")
    delta: float = Field(1.0e-8, gt=0, description="[OURS] added to each std (erpo)")
    progress_floor: float = Field(
        1.0e-3, ge=0, description="[OURS] std of a bucket is at least this times beta_prog: at the start progress is rounding noise (erpo)"
    )

    @model_validator(mode="after")
    def whole(self) -> Advantage:
        if self.name == "erpo" and (self.whiten or self.node_weight != "trajectory"):
            raise ValueError("erpo normalises over the tokens of a group itself: leave whiten and node_weight at their defaults")
        return self


class Regulariser(Strict):
    """What holds the policy near the one that sampled and near the reference (C.1), and what keeps it exploring (C.2 - C.4)."""

    clip: float = Field(0.2, gt=0, description="eps")
    clip_high: float | None = Field(None, gt=0, description="eps_h, 0.26 for clip-higher; none: eps")
    kl: float = Field(0.001, ge=0, description="beta_KL, weight of the k3 estimate")
    entropy: float = Field(0.0, ge=0, description="omega, weight of the entropy bonus")
    ibro: float = Field(0.0, ge=0, description="omega_IB, weight of the entropy times the advantage")


class Method(Strict):
    """A method = sampler x advantage x regulariser: one row of methods.yaml."""

    title: str = Field(description="name in tables and figures")
    sampler: str = Field(description="name of a sampler")
    advantage: Advantage
    regulariser: Regulariser = Regulariser()
    loss: Loss | None = Field(None, description="aggregation of this method's loss; none: that of train.loss")
    reward: Literal["verifier", "random", "format"] = Field(
        "verifier", description="[OURS] controls: a coin at the base rate 1/2 instead of the verdict, or 1 for any boxed answer"
    )

    def check(self, name: str, sampler: Sampler) -> None:
        """Raises ValueError where a choice would change nothing, or contradicts another."""
        scored = sampler.name == "ibtree" or self.advantage.name == "ibtpo"
        used = {"density": scored, "ratio_power": scored, "pi": scored or sampler.name == "eptree"}  # EPTree ranks tokens by log pi
        changed = [key for key in used if not used[key] and getattr(sampler, key) != Sampler.model_fields[key].default]
        if changed:
            raise ValueError(
                f"methods.{name}: sampler {self.sampler!r} sets {changed[0]}, which neither {sampler.name} nor the advantage "
                f"{self.advantage.name} uses. Take the sampler without it"
            )
        foreign = set().union(*ESTIMATORS.values()) - {*ESTIMATORS.get(self.advantage.name, Advantage.model_fields)}
        for key in sorted(foreign):
            if getattr(self.advantage, key) != Advantage.model_fields[key].default:
                users = ", ".join(estimator for estimator, keys in ESTIMATORS.items() if key in keys)
                raise ValueError(f"methods.{name}: {key} means nothing to {self.advantage.name}, only to: {users}. Remove it")
        if self.advantage.name == "ibtpo" and self.advantage.local_weight == 0 and self.advantage.beta != 5.0:
            raise ValueError(f"methods.{name}: beta changes nothing while local_weight is 0. Remove it")
