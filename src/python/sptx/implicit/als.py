"""The module implicit.als."""

from ._models import AlternatingLeastSquares

__all__ = ["AlternatingLeastSquares"]
