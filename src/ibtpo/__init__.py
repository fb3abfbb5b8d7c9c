"""IB-TPO: information-bottleneck driven tree-based policy optimisation, as a reproducible pipeline."""


class IbtpoError(ValueError):
    """A mistake of the input. Its message says all that a user needs, what is wrong and the remedy, so no traceback is shown."""
