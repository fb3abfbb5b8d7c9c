"""What we take from TRL, imported without vLLM.

TRL imports vLLM wherever it is installed, for a generation backend of its own that we never use (our engines sample, `use_vllm` is off):
several seconds in each of many short runs. So TRL is told, while it is imported, that there is no vLLM. Our own vLLM engine imports it all
the same. A contract test watches that neither has changed.
"""

from __future__ import annotations

from importlib import import_module
from unittest.mock import patch

with patch.object(import_module("trl.import_utils"), "is_vllm_available", lambda *_, **__: False):
    from trl import GRPOConfig, GRPOTrainer
    from trl.trainer.utils import pad, split_tensor_dict

__all__ = ["GRPOConfig", "GRPOTrainer", "pad", "split_tensor_dict"]
