"""implicit.evaluation: splits of a matrix, and measures of what a model recommends. run.evaluate() of model.run has others."""

from typing import Any, Dict, Tuple

import numpy

__all__ = ["AUC_at_k", "leave_k_out_split", "mean_average_precision_at_k", "ndcg_at_k", "precision_at_k", "ranking_metrics_at_k", "train_test_split"]


def _part(matrix: Any, chosen: Any) -> Any:
    return matrix.__class__((matrix.data[chosen], (matrix.row[chosen], matrix.col[chosen])), shape=matrix.shape).tocsr()


def train_test_split(ratings: Any, train_percentage: float = 0.8, random_state: Any = None) -> Tuple[Any, Any]:
    """Splits the entries of a sparse matrix at random: (train, test), CSR matrices. test has no negative entries."""
    matrix = ratings.tocoo()
    is_train = numpy.random.default_rng(random_state).random(len(matrix.data)) < train_percentage
    return _part(matrix, is_train), _part(matrix, ~is_train & (matrix.data > 0))


def leave_k_out_split(ratings: Any, K: int = 1, train_only_size: float = 0.0, random_state: Any = None) -> Tuple[Any, Any]:
    """Holds out K random entries of each user who has more than K + 1: (train, test), CSR matrices. train_only_size: share of the users of whom
    nothing is held out."""
    if K < 1 or not 0 <= train_only_size < 1:
        raise ValueError("K = %d and train_only_size = %g; wanted at least 1, and a share from 0 to below 1" % (K, train_only_size))
    matrix, draw = ratings.tocoo(), numpy.random.default_rng(random_state)
    order = numpy.lexsort((draw.random(len(matrix.data)), matrix.row))  # the entries of each user together, in random order
    counts = numpy.bincount(matrix.row, minlength=matrix.shape[0])
    places = numpy.arange(len(order)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
    asked = (counts > K + 1) & (draw.random(len(counts)) >= train_only_size)
    is_test = numpy.zeros(len(order), bool)
    is_test[order] = (places < K) & asked[matrix.row[order]]
    return _part(matrix, ~is_test), _part(matrix, is_test)


def ranking_metrics_at_k(model: Any, train_user_items: Any, test_user_items: Any, K: int = 10, show_progress: bool = True,
                         num_threads: int = 1) -> Dict[str, float]:
    """Asks a model for K items of each user with entries in test_user_items, without those in train_user_items. Returns means over these users,
    as implicit defines them: "precision" (answers found, as a share of the most that could be found), "map", "ndcg" and "auc".
    show_progress and num_threads have no effect: the model's threads answer, in a second or so."""
    train, test = train_user_items.tocsr(), test_user_items.tocsr()
    users = numpy.flatnonzero(numpy.diff(test.indptr))
    gains = 1 / numpy.log2(numpy.arange(2, K + 2))
    found = dict.fromkeys(("precision", "map", "ndcg", "auc"), 0.0)
    most = 0
    for first in range(0, len(users), 1000):
        some = users[first:first + 1000]
        for user, ids in zip(some, model.recommend(some, train[some], N=K)[0]):
            held = test.indices[test.indptr[user]:test.indptr[user + 1]]
            hits, likes, others = numpy.isin(ids, held), len(held), test.shape[1] - len(held)
            before, misses = numpy.cumsum(hits), K - hits.sum()
            most += min(K, likes)
            found["precision"] += hits.sum()
            found["map"] += (before / numpy.arange(1, len(ids) + 1))[hits].sum() / min(K, likes)
            found["ndcg"] += gains[:len(ids)][hits].sum() / gains[:min(K, likes)].sum()
            found["auc"] += (before[~hits].sum() + (hits.sum() + likes) / 2 * (others - misses)) / (likes * others)
    return {name: float(value / (most if name == "precision" else len(users))) for name, value in found.items()}


def _one(name: str) -> Any:
    def measure(model: Any, train_user_items: Any, test_user_items: Any, K: int = 10, show_progress: bool = True, num_threads: int = 1) -> float:
        return ranking_metrics_at_k(model, train_user_items, test_user_items, K, show_progress, num_threads)[name]
    measure.__doc__ = "Returns \"%s\" of ranking_metrics_at_k()." % name
    return measure


precision_at_k, mean_average_precision_at_k = _one("precision"), _one("map")
ndcg_at_k, AUC_at_k = _one("ndcg"), _one("auc")
