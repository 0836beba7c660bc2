"""The module lightfm.evaluation: measures of each user with entries in test_interactions, computed from model.predict_rank().

test_interactions, train_interactions: sparse matrices of users x items; items of the second are left out of the ranking. preserve_rows=True: a
number for each row, also for those of users without entries in test_interactions. run.evaluate() of model.run has other measures.
"""

from typing import Any

import numpy

__all__ = ["precision_at_k", "recall_at_k", "auc_score", "reciprocal_rank"]


def _each(measure: Any, model: Any, test: Any, train: Any, preserve_rows: bool, k: int = 1, **options: Any) -> Any:
    """Returns measure(ranks of a user's entries, rising; number of the user's entries in train), float32 [users]."""
    if k < 1:
        raise ValueError("k = %d, wanted at least 1" % k)
    ranks = model.predict_rank(test, train_interactions=train, **options).tocsr()
    trained = numpy.zeros(ranks.shape[0], int) if train is None else train.tocsr().getnnz(axis=1)
    parts = numpy.split(ranks.data, ranks.indptr[1:-1])
    found = numpy.array([measure(numpy.sort(part), count) for part, count in zip(parts, trained)], numpy.float32)
    return found if preserve_rows else found[ranks.getnnz(axis=1) > 0]


def precision_at_k(model: Any, test_interactions: Any, train_interactions: Any = None, k: int = 10, user_features: Any = None,
                   item_features: Any = None, preserve_rows: bool = False, num_threads: int = 1,
                   check_intersections: bool = True) -> Any:
    """Returns the share of the first k items that are the user's."""
    return _each(lambda ranks, _: (ranks < k).sum() / k, model, test_interactions, train_interactions, preserve_rows, k, user_features=user_features,
                 item_features=item_features, num_threads=num_threads, check_intersections=check_intersections)


def recall_at_k(model: Any, test_interactions: Any, train_interactions: Any = None, k: int = 10, user_features: Any = None,
                item_features: Any = None, preserve_rows: bool = False, num_threads: int = 1,
                check_intersections: bool = True) -> Any:
    """Returns the share of the user's items that are among the first k; NaN for a user without any."""
    return _each(lambda ranks, _: (ranks < k).mean() if len(ranks) else numpy.nan, model, test_interactions, train_interactions, preserve_rows,
                 k, user_features=user_features, item_features=item_features, num_threads=num_threads, check_intersections=check_intersections)


def auc_score(model: Any, test_interactions: Any, train_interactions: Any = None, user_features: Any = None, item_features: Any = None,
              preserve_rows: bool = False, num_threads: int = 1, check_intersections: bool = True) -> Any:
    """Returns the probability that one of the user's items is ranked above another item; 0.5 for a user without any."""
    def auc(ranks: Any, trained: int) -> float:
        others = test_interactions.shape[1] - len(ranks) - trained
        return 1 - numpy.maximum(ranks - numpy.arange(len(ranks)), 0).mean() / others if len(ranks) and others else 0.5
    return _each(auc, model, test_interactions, train_interactions, preserve_rows, user_features=user_features,
                 item_features=item_features, num_threads=num_threads, check_intersections=check_intersections)


def reciprocal_rank(model: Any, test_interactions: Any, train_interactions: Any = None, user_features: Any = None, item_features: Any = None,
                    preserve_rows: bool = False, num_threads: int = 1, check_intersections: bool = True) -> Any:
    """Returns 1 / the place of the user's best item, counted from 1; 0 for a user without any."""
    return _each(lambda ranks, _: 1 / (ranks[0] + 1) if len(ranks) else 0, model, test_interactions, train_interactions, preserve_rows,
                 user_features=user_features, item_features=item_features, num_threads=num_threads, check_intersections=check_intersections)
