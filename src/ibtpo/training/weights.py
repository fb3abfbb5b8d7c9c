"""The weights that the engine should sample from: the model's own, with a LoRA adapter added in."""

from __future__ import annotations

import torch
from peft.tuners.tuners_utils import BaseTunerLayer


@torch.no_grad()
def policy_state_dict(model) -> dict[str, torch.Tensor]:
    """State dict of the plain model. Adapters are added to copies: merging into the base and back would leave rounding behind."""
    if not hasattr(model, "peft_config"):
        return model.state_dict()
    base = model.get_base_model()
    weights = {name.replace(".base_layer.", "."): value for name, value in base.state_dict().items() if ".lora_" not in name}
    for name, module in base.named_modules():
        for adapter in module.active_adapters if isinstance(module, BaseTunerLayer) else []:
            key = f"{name}.weight"
            weights[key] = weights[key] + module.get_delta_weight(adapter).to(weights[key].dtype)
    return weights
