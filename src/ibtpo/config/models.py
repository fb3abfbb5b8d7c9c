"""The typed configuration: every key, its unit, its meaning and its limits.

Values marked [OURS] are choices of this project; the paper does not state them.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, PrivateAttr, model_validator

from ibtpo.config.corpora import Corpora
from ibtpo.config.evalscope import EvalScope
from ibtpo.config.measurements import Case, Measurement
from ibtpo.config.methods import Loss, Method, Sampler
from ibtpo.config.plan import Plan
from ibtpo.config.real import Problems
from ibtpo.config.resources import Resources
from ibtpo.config.strict import FILE_NAME, Strict

_CHAIN_SUM = {"family": "chain-sum", "min_digits": 1, "max_digits": 1}


class World(Strict):
    """The tiny world: sizes of the procedural data sets (numbers of problems)."""

    seed: int = Field(7, ge=0, description="of the problems")
    supervised: int = Field(20_000, gt=0, description="worked solutions for the base policy")
    train: int = Field(4_000, gt=0, description="problems for reinforcement learning")
    validation: int = Field(64, gt=0, description="held-out in-domain problems, measured during training")
    benchmark: int = Field(64, gt=0, description="problems per benchmark")
    rare_share: float = Field(0.02, ge=0, le=0.2, description="[OURS] share of each out-of-domain family in the supervised stage")
    max_steps: int = Field(
        9, ge=2, description="steps of a worked solution, boxed answer included; problems with longer ones are not drawn"
    )
    in_domain: dict[str, dict[str, Any]] = Field(
        {f"chain-sum-{n}": {**_CHAIN_SUM, "min_terms": n, "max_terms": n} for n in (5, 8)},
        min_length=1,
        description="[OURS] tasks of supervised stage, training and validation: name, family, reasoning-gym's options (ranges of numbers)",
    )
    rough_rate: float = Field(
        0.7, ge=0, le=1, description="[OURS] chance that a step of a worked sum is done roughly: the base policy has a choice at every step"
    )
    slip_rate: float = Field(0.45, ge=0, le=1, description="[OURS] chance that a rough step is off by one")
    out_of_domain: dict[str, dict[str, Any]] = Field(
        {"gcd": {"min_value": 2, "max_value": 99}, "leg-counting": {"min_animals": 2, "max_animals": 3, "max_instances": 5}},
        description="[OURS] tasks of the transfer benchmarks, rare in the supervised stage",
    )


class Policy(Strict):
    """The base policy: a model of a card, or else (the other keys) a Qwen3 trained from scratch on worked solutions."""

    card: str | None = Field(None, description="name of a card in config/models/; null: trained from scratch")
    folder: str | None = Field(None, description="where it lies; null: data/models/<card>. In no hash: the card says what it must be")
    eos: str | None = Field(None, description="[OURS] token that ends a response of that model, if not its tokenizer's own")
    hidden_size: int = Field(96, gt=0, description="width of the residual stream")
    layers: int = Field(3, gt=0, description="transformer blocks")
    heads: int = Field(2, gt=0, description="attention heads")
    kv_heads: int = Field(2, gt=0, description="key and value heads (grouped-query attention)")
    head_dim: Literal[32, 64, 80, 96, 112, 128] = Field(
        32, description="width of a head, apart from hidden_size; the sizes that vLLM serves on a CPU"
    )
    intermediate_size: int = Field(256, gt=0, description="width inside the feed-forward blocks")
    initializer_range: float = Field(0.06, gt=0, description="[OURS] std of the initial weights")
    vocabulary: int = Field(320, gt=0, description="size of the byte-level BPE vocabulary")
    max_positions: int = Field(512, gt=0, description="tokens of prompt and response together")
    steps: int = Field(800, gt=0, description="optimiser updates")
    batch_size: int = Field(64, gt=0, description="worked solutions of an update")
    learning_rate: float = Field(3.0e-3, gt=0, description="peak of the schedule: linear warm-up, then cosine to 0")
    warmup_steps: int = Field(50, ge=0, description="[OURS] updates over which the learning rate rises")
    weight_decay: float = Field(0.1, ge=0, description="[OURS] of AdamW")
    max_grad_norm: float = Field(1.0, gt=0, description="[OURS] gradients are scaled down to this norm")
    checkpoint_every: int = Field(200, gt=0, description="updates between checkpoints")
    seed: int = Field(0, ge=0, description="of the weights and of the order of the data")

    @property
    def place(self) -> Path:
        """Where the model of the card lies."""
        return Path(self.folder or Path("data") / "models" / str(self.card)).expanduser()

    @model_validator(mode="after")
    def named_or_trained(self) -> Policy:
        named, trained = {"card", "folder", "eos"}, sorted(self.model_fields_set - {"card", "folder", "eos"})
        if self.card and trained:
            raise ValueError(f"{trained[0]!r} means nothing for the model of a card (card: {self.card}). Remove it")
        if not self.card and (lost := sorted(self.model_fields_set & named - {"card"})):
            raise ValueError(f"{lost[0]!r} means nothing without a model. Name its card, e.g. card: qwen3-8b-base")
        return self

    @model_validator(mode="after")
    def whole_groups(self) -> Policy:
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads is {self.kv_heads}, which must divide heads = {self.heads}")
        return self


class Sampling(Strict):
    """How the policy is sampled, in training and in evaluation (paper, set-up; D.2 row 31)."""

    temperature: float = Field(0.7, gt=0, description="divides the logits")
    top_p: float = Field(0.95, gt=0, le=1, description="share of the probability that is kept; 1 = off")
    top_k: int = Field(20, ge=0, description="number of tokens that are kept; 0 = off")
    max_tokens: int = Field(2048, gt=0, description="response tokens of a trajectory, truncated beyond")


class Engine(Strict):
    """What generates. `kind` and `mode` belong to the numbers of a run (engines agree up to rounding), the rest changes speed only."""

    device: Literal["cpu", "cuda"] = Field("cpu", description="where training runs; the engine runs on what its build supports")
    kind: Literal["vllm", "transformers"] = Field(
        "vllm", description="vllm: its own scheduler and paged cache; transformers: continuous batching over the plain model"
    )
    mode: Literal["asynchronous", "lockstep"] = Field(
        "asynchronous", description="asynchronous: a tree goes on by itself; lockstep: an iteration waits for all trees"
    )
    max_sequences: int = Field(128, gt=0, description="requests that run at once")
    dtype: Literal["float32", "bfloat16"] = Field("float32", description="of the weights that sample; training has its own")
    kv_cache_gib: float = Field(0.5, gt=0, description="memory of the KV cache in GiB")
    overcommit: float = Field(
        1.0,
        ge=1,
        description="[OURS] vllm: running requests may need this many times the KV blocks there are, all at full length; 1: none is ever "
        "thrown out and computed again, more: more run at once if responses are mostly shorter",
    )
    block_size: int = Field(32, gt=0, description="tokens of a KV block; a prefix is cached in whole blocks")


class Train(Strict):
    """Reinforcement learning (C.1)."""

    iterations: int = Field(gt=0, description="rollout batches")
    problems_per_iteration: int = Field(128, gt=0, description="problems (trees) of a rollout batch")
    minibatches: int = Field(2, ge=1, description="[OURS] optimiser steps per rollout batch; with 1 the ratio is 1 and clipping never acts")
    learning_rate: float = Field(1.0e-6, gt=0, description="after the warm-up")
    schedule: Literal["constant", "cosine"] = Field("constant", description="of the learning rate after the warm-up; cosine: down to 0")
    warmup_steps: int = Field(0, ge=0, description="[OURS] optimiser steps over which the learning rate rises")
    weight_decay: float = Field(0.0, ge=0, description="[OURS] of AdamW")
    max_grad_norm: float = Field(1.0, gt=0, description="[OURS] gradients are scaled down to this norm")
    loss: Loss = Field("grpo", description="[OURS] grpo: mean over a sequence, then over sequences")
    lora_rank: int = Field(0, ge=0, description="0 = full fine-tuning")
    mask_truncated: bool = Field(False, description="[OURS] responses without EOS are left out of the loss (D.2 row 17 keeps them)")
    dtype: Literal["float32", "bfloat16"] = Field("float32", description="of the arithmetic; weights and optimiser stay float32")
    order: Literal["shuffled", "given"] = Field(
        "shuffled", description="[OURS] shuffled: whole batches of a fresh permutation an epoch; given: as in problems.train, a curriculum"
    )
    validate_every: int = Field(10, gt=0, description="iterations between validations; also at 0 and at the end")
    validation_samples: int = Field(8, gt=0, description="k of the validation's avg@k")
    probe_problems: int = Field(8, ge=0, description="[OURS] validation problems of the IB-Score probe (D.2 row 29); 0 = off")
    probe_draws: int = Field(5, gt=0, description="[OURS] fresh rollouts per step node in the probe")
    probe_seeds: int = Field(4, gt=0, description="[OURS] seed trajectories per problem in the probe")
    checkpoint_every: int = Field(10, gt=0, description="iterations between checkpoints")
    micro_batch: int = Field(
        0,
        ge=0,
        description="sequences per forward pass, whole trees with prefix_sharing; changes memory and speed only; 0 = the whole minibatch",
    )
    gradient_checkpointing: bool = Field(False, description="activations are computed again, not kept; changes memory and speed only")
    prefix_sharing: bool = Field(True, description="computes each distinct prefix of a minibatch once, changes memory and speed only")
    prefix_kernel: Literal["sdpa", "flex"] = Field(
        "sdpa", description="[OURS] attention of the shared forward: PyTorch's own over gathered keys, or FlexAttention (on a GPU)"
    )
    processes: int = Field(1, gt=0, description="processes that train a run together, one a GPU; each grows and trains on trees of its own")
    parallel: Literal["ddp", "fsdp", "deepspeed-zero3"] = Field(
        "ddp", description="how several processes hold the model, a file in config/accelerate/; ddp: each of them a whole copy"
    )
    trackers: tuple[Literal["tensorboard", "wandb"], ...] = Field((), description="also write the metrics for these, into the run's folder")

    @model_validator(mode="after")
    def whole_minibatches(self) -> Train:
        if self.problems_per_iteration % self.minibatches:
            raise ValueError(f"minibatches is {self.minibatches}, which must divide problems_per_iteration = {self.problems_per_iteration}")
        problems = self.problems_per_iteration // self.minibatches
        if problems % self.processes:
            raise ValueError(
                f"processes is {self.processes}, which must divide the {problems} problems of a minibatch (problems_per_iteration = "
                f"{self.problems_per_iteration} / minibatches = {self.minibatches}): a tree is never split between processes"
            )
        return self


class Evaluate(Strict):
    """Benchmarks, avg@k and pass@k (D.2 rows 31 and 32). Changes nothing of training."""

    samples: int = Field(32, gt=0, description="samples per problem")
    pass_at: tuple[PositiveInt, ...] = Field((1, 2, 4, 8, 16, 32), min_length=1, description="k of pass@k")
    benchmarks: tuple[str, ...] = Field(min_length=1, description="columns of Table 1, in order: tasks of `world`, benchmarks of `corpora`")
    confidence: float = Field(0.95, gt=0, lt=1, description="of the intervals")
    runner: Literal["own", "evalscope"] = Field(
        "own", description="own: the engine and the verifiers of training; evalscope: EvalScope's prompts and verdicts (docs/evaluation.md)"
    )
    longer: tuple[PositiveInt, ...] = Field(
        (), description="[OURS] maximal response tokens of Table 9 beside sampling.max_tokens: the same policies sample with these too"
    )


class Comparison(Strict):
    """Tables of samplers on one fixed policy and one fixed problem set: Table 3 and Table 6."""

    problems: int = Field(1024, gt=0, description="training problems")
    table3: tuple[str, ...] = Field(min_length=1, description="samplers of Table 3, in order")
    table6: tuple[str, ...] = Field(min_length=1, description="samplers of Table 6, the grid of (B0, K, B)")

    @property
    def strategies(self) -> tuple[str, ...]:
        """All samplers, each once."""
        return tuple(dict.fromkeys(self.table3 + self.table6))


class Offline(Strict):
    """The offline IB-Score of a policy (D.2 row 29): fresh rollouts at every step node of seed trajectories."""

    problems: int = Field(1024, gt=0, description="problems, the same for every policy")
    source: Literal["train", "validation"] = Field("train", description="[OURS] problem set they are taken from, evenly spaced")
    seeds: int = Field(4, gt=0, description="seed trajectories per problem")
    draws: int = Field(5, gt=1, description="B, fresh rollouts per step node")
    beta: float = Field(5.0, gt=0, description="of the IB-Score, the same for every policy")


class Forest(Strict):
    """Whole trees, kept to be looked at: each sampler grows one on each problem with each policy. Changes nothing else. All [OURS]."""

    problems: int = Field(6, gt=0, description="problems, the same for every policy and sampler")
    source: Literal["train", "validation"] = Field("validation", description="problem set they are taken from, evenly spaced")
    policies: tuple[str, ...] = Field((), description="base, or a method: its policy of the first seed")
    samplers: tuple[str, ...] = Field((), description="samplers that grow the trees, whatever the policy was trained with")


class Config(Strict):
    preset: str
    seeds: tuple[NonNegativeInt, ...] = Field(
        min_length=1, description="one run of each method per seed; the first also seeds the comparison of samplers"
    )
    artifacts: Literal["cached", "fresh"] = Field(
        "cached", description="cached: read published artifacts where they fit; fresh: compute all"
    )
    outputs: tuple[str, ...] = Field((), description="tables and figures that `all` and `publish` make; empty: every one")
    problems: Problems = Problems()
    world: World = World()
    policy: Policy = Policy()
    sampling: Sampling
    engine: Engine
    samplers: dict[str, Sampler]
    methods: dict[str, Method]
    train: Train
    evaluate: Evaluate
    evalscope: EvalScope = EvalScope()
    comparison: Comparison
    offline: Offline = Offline()
    forest: Forest = Forest()
    measurements: dict[str, Measurement] = Field({}, description="costs of sampling, by name")
    tables: dict[str, tuple[str, ...]] = Field(description="methods of each table of accuracies, in order")
    figures: dict[str, tuple[str, ...]] = Field(description="methods of each figure, in order")
    resources: Resources = Resources()
    plan: Plan = Plan()
    corpora: Corpora = Corpora()

    _changed: dict[str, Any] = PrivateAttr(default_factory=dict)  # key -> value, where the preset was overridden

    @property
    def changes(self) -> str:
        """What overrides changed of the preset, in words; empty if nothing that could change a number."""
        return ", ".join(f"{key} = {json.dumps(value)}" for key, value in self._changed.items())

    @property
    def title(self) -> str:
        """The preset as headings name it."""
        return f"{self.preset} (changed)" if self.changes else self.preset

    @property
    def described(self) -> str:
        """The preset as captions name it."""
        return f"{self.preset} with {self.changes}" if self.changes else self.preset

    def wanted(self, *outputs: str) -> bool:
        """Whether any of these tables and figures is to be made."""
        return not self.outputs or bool({*outputs} & {*self.outputs})

    def number(self, split: Literal["train", "validation"]) -> tuple[str, int | None]:
        """The key that says how many problems a split has, and that number; None where all of a data set are taken."""
        if not self.problems.train:
            return f"world.{split}", getattr(self.world, split)
        numbers = [
            count or (getattr(self.world, split) if name in self.world.in_domain else None)
            for name, count in getattr(self.problems, split).items()
        ]
        return f"problems.{split}", None if None in numbers else sum(numbers)

    def cases(self, measurement: str) -> list[Case]:
        """Every case of a measurement, in order."""
        row = self.measurements[measurement]
        return [
            Case(sampler, mode, trees, max_tokens)
            for max_tokens in row.max_tokens or (self.sampling.max_tokens,)
            for trees in row.trees or (self.train.problems_per_iteration,)
            for sampler in row.samplers
            for mode in (row.modes if self.samplers[sampler].name != "independent" else ("asynchronous",))
        ]

    @model_validator(mode="after")
    def names(self) -> Config:
        """Every name that is used is defined, no list repeats itself, and what becomes a file name can be one."""
        tasks = {**self.world.in_domain, **self.world.out_of_domain}
        sets = self.corpora.sources if self.problems.train else {}
        trainings = [name for name in sets if sets[name].role == "training"]
        benchmarks = [name for name in sets if sets[name].role == "benchmark"]
        for where, names, known in [
            *((f"tables.{name}", chosen, self.methods) for name, chosen in self.tables.items()),
            *((f"figures.{name}", chosen, self.methods) for name, chosen in self.figures.items()),
            ("comparison.table3", self.comparison.table3, self.samplers),
            ("comparison.table6", self.comparison.table6, self.samplers),
            ("forest.policies", self.forest.policies, {"base": None, **self.methods}),
            ("forest.samplers", self.forest.samplers, self.samplers),
            *((f"measurements.{name}.samplers", row.samplers, self.samplers) for name, row in self.measurements.items()),
            ("evaluate.benchmarks", self.evaluate.benchmarks, [*tasks, *benchmarks]),
            ("problems.train", self.problems.train, [*trainings, *tasks]),
            ("problems.validation", self.problems.validation, [*sets, *tasks]),
            *((f"methods.{name}.sampler", [method.sampler], self.samplers) for name, method in self.methods.items()),
        ]:
            for name in names:
                if name not in known:
                    near = get_close_matches(name, known, n=5, cutoff=0.3) or list(known)[:5]
                    raise ValueError(f"{where}: {name!r} is not defined. Known: {', '.join(near)}{', ...' * (len(near) < len(known))}")
        for where, names in [
            ("seeds", self.seeds),
            *((f"tables.{name}", chosen) for name, chosen in self.tables.items()),
            *((f"figures.{name}", chosen) for name, chosen in self.figures.items()),
            ("comparison.table3", self.comparison.table3),
            ("comparison.table6", self.comparison.table6),
            ("forest.policies", self.forest.policies),
            ("forest.samplers", self.forest.samplers),
            ("evaluate.benchmarks", self.evaluate.benchmarks),
            ("outputs", self.outputs),
        ]:
            if len(set(names)) < len(names):
                raise ValueError(f"{where}: an entry occurs twice in {list(names)}. Each may occur once")
        for name in self.methods:
            if name == "base" or not FILE_NAME.fullmatch(name):
                raise ValueError(f"methods: {name!r} cannot be a method's name. Use letters, digits, '.', '_' and '-', and not 'base'")
        if self.problems.train and not self.policy.card:
            raise ValueError("problems: a policy that is trained from scratch knows the tiny world only. Name a model: policy.card")
        for name in tasks:
            if name in sets:
                raise ValueError(f"world: {name!r} is a task and a data set. Give the task another name, and its family as an option")
            if not FILE_NAME.fullmatch(name):
                raise ValueError(f"world: {name!r} cannot be a task's name. Use letters, digits, '.', '_' and '-'")
            if name in self.world.in_domain and name in self.world.out_of_domain:
                raise ValueError(f"world: task {name!r} is in domain and out of domain. Give one another name, and its family as an option")
        return self

    @model_validator(mode="after")
    def sizes(self) -> Config:
        """What is taken is there."""
        positions = None if self.policy.card else self.policy.max_positions  # the engine checks those of a model that is named
        checks = [
            ("the largest k of evaluate.pass_at", max(self.evaluate.pass_at), ("evaluate.samples", self.evaluate.samples)),
            ("train.problems_per_iteration", self.train.problems_per_iteration, self.number("train")),
            ("train.probe_problems", self.train.probe_problems, self.number("validation")),
            ("sampling.max_tokens", self.sampling.max_tokens, ("policy.max_positions", positions)),
        ]
        if self.wanted("table3", "table6"):
            checks.append(("comparison.problems", self.comparison.problems, self.number("train")))
        if self.wanted("ibscore", "ibscores"):
            checks.append(("offline.problems", self.offline.problems, self.number(self.offline.source)))
        if self.forest.policies and self.forest.samplers:
            checks.append(("forest.problems", self.forest.problems, self.number(self.forest.source)))
        for taken, number, (there, limit) in checks:
            if limit is not None and number > limit:
                raise ValueError(f"{taken} is {number}, more than {there} = {limit}. Lower the first or raise the second")
        return self

    @model_validator(mode="after")
    def sense(self) -> Config:
        """No method asks for what its parts or the engine cannot do."""
        if self.evaluate.longer and self.evaluate.runner == "evalscope":
            raise ValueError(
                "evaluate.longer: Table 9 would hold EvalScope's samples against our own. Set evaluate.runner: own, or leave it empty and "
                "take a preset with a longer sampling.max_tokens, such as qwen3-8b-4k"
            )
        if self.train.prefix_kernel == "flex" and self.engine.device == "cpu":
            raise ValueError("train.prefix_kernel: FlexAttention has gradients on a GPU only (engine.device: cuda). Take sdpa")
        for name, method in self.methods.items():
            method.check(name, self.samplers[method.sampler])
        shown = {name for chosen in (*self.tables.values(), *self.figures.values()) for name in chosen}
        for name in sorted({*self.comparison.strategies, *self.forest.samplers, *(self.methods[method].sampler for method in shown)}):
            sampler = self.samplers[name]
            if sampler.pi == "temperature" and self.engine.kind == "vllm" and self.sampling.temperature != 1:
                raise ValueError(
                    f"samplers.{name}: pi is 'temperature', but vLLM returns log-probs of the raw model only. Set engine.kind: transformers"
                )
            if sampler.name == "treepo" and sampler.segment * sampler.depth < self.sampling.max_tokens:
                raise ValueError(
                    f"samplers.{name}: {sampler.depth} segments of {sampler.segment} tokens are fewer than sampling.max_tokens = "
                    f"{self.sampling.max_tokens}. Raise depth or segment"
                )
        return self
