"""What every rank of a group of processes does: one training run after the other, as a file specifies them.

accelerate shards on GPUs only; with FSDP it is told that these processes have some. All else is what runs there.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from accelerate import DistributedType, PartialState

from ibtpo.config.models import Config
from ibtpo.prefix import forward
from ibtpo.training import trainer
from ibtpo.training.run import main

join = PartialState.__init__


def join_with_gpus(self, *args, **kwargs) -> None:
    join(self, *args, **kwargs)
    if self.distributed_type == DistributedType.MULTI_CPU:
        self._shared_state["distributed_type"] = DistributedType.MULTI_GPU


if "ACCELERATE_USE_FSDP" in os.environ:
    PartialState.__init__ = join_with_gpus
found, logits = trainer.token_limit, forward.LOGITS
for run in json.loads(Path(sys.argv[1]).read_text()):
    trainer.token_limit = found if run.get("limit") is None else lambda model, limit=run["limit"]: limit
    forward.LOGITS = run.get("logits", [logits, logits])[int(os.environ["RANK"])]
    main(Config.model_validate(run["config"]), run["method"], 0, run["policy"], run["data"], run["out"])
