"""The paper's benchmarks through EvalScope: its prompts, its runner and its verdicts on a local policy (docs/evaluation.md).

Importing EvalScope takes seconds and sets up logging anew, so only `run.py` does, and puts logging back.
"""

from __future__ import annotations

from ibtpo.benchmarks.run import evaluate

__all__ = ["evaluate"]
