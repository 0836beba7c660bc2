"""implicit.nearest_neighbours: its weights of a matrix. Its models of neighbours are not there."""

from typing import Any

import numpy

from .._refused import lacking

__all__ = ["bm25_weight", "tfidf_weight"]

__getattr__ = lacking("sptx.implicit.nearest_neighbours", dict.fromkeys(
    ("ItemItemRecommender", "CosineRecommender", "TFIDFRecommender", "BM25Recommender"), "AlternatingLeastSquares has similar_items()"),
    "it has bm25_weight and tfidf_weight")


def tfidf_weight(X: Any) -> Any:
    """Returns a sparse matrix as COO, each value replaced by its square root times how rare its column is: log(rows / (1 + entries))."""
    matrix, rare = _rare(X)
    matrix.data = numpy.sqrt(matrix.data) * rare
    return matrix


def bm25_weight(X: Any, K1: float = 100, B: float = 0.8) -> Any:
    """Returns a sparse matrix as COO, weighted by BM25: large values count less (K1), values of rows with a large sum count less (B), and values
    of rare columns more."""
    matrix, rare = _rare(X)
    sums = numpy.bincount(matrix.row, matrix.data, minlength=matrix.shape[0])
    lengths = 1 - B + B * sums / sums.mean()
    matrix.data = matrix.data * (K1 + 1) / (K1 * lengths[matrix.row] + matrix.data) * rare
    return matrix


def _rare(given: Any) -> Any:
    matrix = given.tocoo(copy=True)
    return matrix, (numpy.log(matrix.shape[0]) - numpy.log1p(numpy.bincount(matrix.col, minlength=matrix.shape[1])))[matrix.col]
