"""The weights that the engine should sample from: the model's own, whole on every rank, with a LoRA adapter added in."""

from __future__ import annotations

import torch
from accelerate import DistributedType
from accelerate.utils import broadcast, broadcast_object_list
from peft.tuners.tuners_utils import BaseTunerLayer

SHARDED = (DistributedType.FSDP, DistributedType.DEEPSPEED)


@torch.no_grad()
def policy_state_dict(model, accelerator=None) -> dict[str, torch.Tensor]:
    """State dict of the plain model; all ranks must ask for it together.

    model: as accelerate prepared it, if an accelerator is given. Adapters are added to copies: merging into the base and back would leave
    rounding behind.
    """
    plain = accelerator.unwrap_model(model) if accelerator else model
    sharded = accelerator is not None and accelerator.distributed_type in SHARDED
    weights = _gathered(model, accelerator) if sharded else plain.state_dict()
    if hasattr(plain, "peft_config"):
        weights, plain = _merged(weights, plain), plain.get_base_model()
    tied = plain.all_tied_weights_keys if sharded else {}  # a gathered one would be a second copy
    return weights | {name: weights[source] for name, source in tied.items()}


def _gathered(model, accelerator) -> dict[str, torch.Tensor]:
    """All weights in the memory of every host: accelerate gathers them on rank 0, from where they go to the others one by one."""
    state = accelerator.get_state_dict(model)
    shapes = [[(name, value.shape, value.dtype) for name, value in state.items()]] if accelerator.is_main_process else [None]
    weights = {}
    for name, shape, dtype in broadcast_object_list(shapes)[0]:
        value = state[name] if accelerator.is_main_process else torch.empty(shape, dtype=dtype)
        weights[name] = broadcast(value.to(accelerator.device)).cpu()
    return weights


def _merged(weights: dict[str, torch.Tensor], adapted) -> dict[str, torch.Tensor]:
    """Names as in the plain model; W + scaling B A where there are adapters."""
    prefix = "base_model.model."  # of peft
    weights = {name.removeprefix(prefix): value for name, value in weights.items()}
    merged = {name.replace(".base_layer.", "."): value for name, value in weights.items() if ".lora_" not in name}
    for name, module in adapted.get_base_model().named_modules():
        if not isinstance(module, BaseTunerLayer):
            continue
        whole = merged[f"{name}.weight"]
        for adapter in module.active_adapters:
            up, down = weights[f"{name}.lora_B.{adapter}.weight"], weights[f"{name}.lora_A.{adapter}.weight"]
            whole = whole + (up @ down * module.scaling[adapter]).to(whole.dtype)
        merged[f"{name}.weight"] = whole.cpu()  # on a GPU all of them together would be a second model
    return merged
