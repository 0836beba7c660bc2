"""The module lightfm.cross_validation."""

from typing import Any, Tuple

import numpy

__all__ = ["random_train_test_split"]


def random_train_test_split(interactions: Any, test_percentage: float = 0.2, random_state: Any = None) -> Tuple[Any, Any]:
    """Splits the entries of a sparse matrix at random, with LightFM's draws: (train, test), COO matrices. Equal seeds split a matrix of weights
    likewise."""
    if not hasattr(interactions, "tocoo"):
        raise ValueError("Interactions must be a scipy.sparse matrix.")
    if not 0 <= test_percentage <= 1:
        raise ValueError("test_percentage = %g, wanted a share from 0 to 1" % test_percentage)
    draw = random_state if isinstance(random_state, numpy.random.RandomState) else numpy.random.RandomState(seed=random_state)
    matrix = interactions.tocoo()
    order = numpy.arange(len(matrix.data))
    draw.shuffle(order)
    parts = numpy.split(order, [int((1.0 - test_percentage) * len(order))])
    train, test = (matrix.__class__((matrix.data[part], (matrix.row[part], matrix.col[part])), shape=matrix.shape) for part in parts)
    return train, test
