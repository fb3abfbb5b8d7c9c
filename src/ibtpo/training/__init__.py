"""Reinforcement learning on trees through TRL."""


def main(*args, **kwargs) -> None:
    """See `ibtpo.training.run.main`; imported late because TRL is slow to import."""
    from ibtpo.training.run import main as run

    run(*args, **kwargs)
