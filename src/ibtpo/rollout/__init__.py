"""Growing many trees through one engine: tasks in, scored trees out."""

from ibtpo.rollout.scheduler import RolloutFigures, Task, run, stable_seed

__all__ = ["RolloutFigures", "Task", "run", "stable_seed"]
