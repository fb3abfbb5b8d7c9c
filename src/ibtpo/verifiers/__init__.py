"""Scores of model answers: a completion goes in, a reward with the reason for it comes out."""

from ibtpo.verifiers.tiny import FAMILIES, Verdict, last_boxed, verify

__all__ = ["FAMILIES", "Verdict", "last_boxed", "verify"]
