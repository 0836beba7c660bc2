"""The module implicit.bpr."""

from ._models import BayesianPersonalizedRanking

__all__ = ["BayesianPersonalizedRanking"]
