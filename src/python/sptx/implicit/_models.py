"""AlternatingLeastSquares and BayesianPersonalizedRanking: implicit's calls, answered by a run of sptx.fit(). Names, defaults and the forms of
arguments and answers are those of implicit 0.7."""

import contextlib
import os
import warnings
from typing import Any, Dict, List, Optional, Tuple

import numpy

from .._factors import Trained, ids_of, matrix_of, seed_of, softmax_keys, unit
from .._pickled import replace
from .._refused import refused
from .._word2vec import _Place

_AT_ONCE = 1 << 24  # most scores that are in memory at a time
_TOGETHER = 1024    # most questions of one search of the run
_FACTORS = ("user_factors", "item_factors")


class _Factors(Trained):
    """Base class of both models: rows of users and rows of items, whose dot products are the scores.

    user_factors    [users x factors], item_factors [items x factors]: copies of the run's rows, of unit length if it was trained by cosines;
                    zeros for a user or an item without entries. None before fit()
    """

    def __init__(self, factors: int, regularization: float, dtype: Any, iterations: int, num_threads: int, random_state: Any,
                 use_gpu: Optional[bool], keys: Optional[Dict[str, Any]]) -> None:
        self.factors, self.regularization, self.dtype = int(factors), float(regularization), numpy.dtype(dtype)
        self.iterations, self.num_threads, self.random_state, self.use_gpu = int(iterations), int(num_threads), random_state, use_gpu
        self.keys = dict(keys or {})
        if self.dtype.kind != "f":
            raise ValueError("dtype = %s, wanted a floating type, such as float32" % self.dtype)
        if self.factors < 1 or self.iterations < 1:
            raise ValueError("factors = %d and iterations = %d, wanted at least 1 of each" % (self.factors, self.iterations))
        self.user_factors: Any = None
        self.item_factors: Any = None
        self._device = "auto" if use_gpu is None else "cuda" if use_gpu else "cpu"

    _arguments = {"model.dim": "factors", "optimizer.weight_decay": "regularization", "train.epochs": "iterations"}

    def _fit(self, matrix: Any, show_progress: bool, callback: Any, keys: Dict[str, Any]) -> None:
        if callback is not None:
            raise NotImplementedError("callback is not there: sptx.fit(user_items, path, progress=) reports while it trains")
        seed = {} if self.random_state is None else {"train.seed": seed_of(self.random_state)}
        rows = self._train(matrix, {"model.dim": self.factors, "optimizer.weight_decay": self.regularization, **seed, **keys, **self.keys},
                           None if show_progress else False, self.num_threads)
        self.user_factors, self.item_factors = (part.astype(self.dtype) for part in rows)

    # ---- questions ----

    def recommend(self, userid: Any, user_items: Any, N: int = 10, filter_already_liked_items: bool = True, filter_items: Any = None,
                  recalculate_user: bool = False, items: Any = None) -> Tuple[Any, Any]:
        """The N items that suit a user, or each of several users, best: (ids, scores), [N] or [users x N], best first.

            ids, scores = model.recommend(0, user_items[0])
            ids, scores = model.recommend(numpy.arange(10), user_items[:10])

        user_items                  a CSR matrix with a row for each user that is asked
        filter_already_liked_items  True: items of the user's row in user_items are no answers
        filter_items                ids that are no answers for anyone; items: only these ids are ranked. Not both
        recalculate_user            True: the user's factors are computed from user_items; the entries' values do not matter

        Where fewer than N items are left, items that are no answers follow, as in implicit: their scores are the lowest float32.
        """
        users, liked = ids_of(userid, "user"), None
        if filter_already_liked_items or recalculate_user:
            liked = self._lists_of(user_items)
            if user_items.shape[0] != len(users):
                raise ValueError("user_items must contain 1 row for every user in userids")
        queries = numpy.atleast_2d(self.recalculate_user(userid, user_items) if recalculate_user else self._rows(self.user_factors, users, "user"))
        return self._best(numpy.isscalar(userid), queries, self.item_factors, N, filter_items, items, liked if filter_already_liked_items else None)

    def similar_items(self, itemid: Any, N: int = 10, recalculate_item: bool = False, item_users: Any = None, filter_items: Any = None,
                      items: Any = None) -> Tuple[Any, Any]:
        """The N items whose factors are nearest by cosine to those of an item, or of each of several: (ids, scores). The item itself is the
        first. filter_items, items: as of recommend()."""
        if recalculate_item:
            self.recalculate_item()
        queries = self._rows(self.item_factors, ids_of(itemid, "item"), "item")
        return self._best(numpy.isscalar(itemid), unit(queries), unit(self.item_factors), N, filter_items, items)

    def similar_users(self, userid: Any, N: int = 10, filter_users: Any = None, users: Any = None) -> Tuple[Any, Any]:
        """The N users nearest to a user, or to each of several, as similar_items() finds items."""
        queries = self._rows(self.user_factors, ids_of(userid, "user"), "user")
        return self._best(numpy.isscalar(userid), unit(queries), unit(self.user_factors), N, filter_users, users)

    def rank_items(self, userid: Any, user_items: Any, selected_items: Any, recalculate_user: bool = False) -> Tuple[Any, Any]:
        """The old name of recommend(items=selected_items)."""
        warnings.warn("rank_items is deprecated. Use recommend with the 'items' parameter instead", DeprecationWarning, stacklevel=2)
        return self.recommend(userid, user_items, filter_already_liked_items=False, recalculate_user=recalculate_user, items=selected_items)

    def recalculate_user(self, userid: Any, user_items: Any) -> Any:
        """The factors that training would give to users with these items, [factors] or [users x factors]: they are folded in, as Run.infer()
        does it, and not stored. The values of the entries do not matter."""
        if user_items.shape[0] != numpy.size(userid):
            raise ValueError("user_items should have one row for every item in user")
        rows = self.run.infer(documents=self._lists_of(user_items)).astype(self.dtype)
        return rows[0] if numpy.isscalar(userid) else rows

    def partial_fit_users(self, userids: Any, user_items: Any) -> None:
        """Stores the factors that recalculate_user() computes, for users that are known or new. Rows of items stay as they are."""
        userids = ids_of(userids, "user")
        if not len(userids):
            return
        if userids.min() < 0:
            raise IndexError("users are numbered from 0 on, and one of those is %d" % userids.min())
        rows, most = self.recalculate_user(userids, user_items), int(userids.max()) + 1
        if most > len(self.user_factors):
            more = numpy.zeros((most - len(self.user_factors), self.user_factors.shape[1]), self.dtype)
            self.user_factors = numpy.concatenate([self.user_factors, more])
        self.user_factors[userids] = rows

    def _rows(self, factors: Any, ids: Any, what: str) -> Any:
        if factors is None:
            raise ValueError("the model has no factors: call fit() first")
        if len(ids) and not 0 <= ids.min() <= ids.max() < len(factors):
            raise IndexError("%ss are 0 to %d, and one that is asked for is not among them" % (what, len(factors) - 1))
        return factors[ids]

    def _best(self, is_one: bool, queries: Any, factors: Any, count: int, dropped: Any, among: Any, banned: Any = None) -> Tuple[Any, Any]:
        """Returns the `count` rows of `factors` that score best with each query, those of `among` alone if given. banned[query] and `dropped` come
        last."""
        if count < 0:
            raise ValueError("N = %d, wanted at least 0" % count)
        if among is not None:
            if dropped is not None and len(dropped):
                raise ValueError("Can't set both items and filter_items, or users and filter_users")
            self._rows(factors, among := numpy.unique(ids_of(among, "item")), "id")
        searched, lowest = factors if among is None else factors[among], numpy.finfo(numpy.float32).min
        out = numpy.isin(numpy.arange(len(factors)) if among is None else among, [] if dropped is None else ids_of(dropped, "item"))
        count = min(count, len(searched))
        ids, scores = numpy.zeros((len(queries), count), numpy.int32), numpy.zeros((len(queries), count), numpy.float32)
        step, left = max(1, _AT_ONCE // max(1, len(searched))), numpy.arange(len(queries) if count else 0)
        if len(left) > step and among is None and not out.any() and factors is self.item_factors:
            left = left[~self._by_run(queries, count, [()] * len(queries) if banned is None else banned, ids, scores)]
        for first in range(0, len(left), step):
            for at, values in zip(left[first:first + step], queries[left[first:first + step]] @ searched.T):
                values[out] = lowest
                if banned is not None:
                    values[banned[at] if among is None else numpy.isin(among, banned[at])] = lowest
                few = numpy.argpartition(-values, count - 1)[:count]
                few = few[numpy.lexsort((few, -values[few]))]
                ids[at], scores[at] = few if among is None else among[few], values[few]
        return (ids[0], scores[0]) if is_one else (ids, scores)

    def _by_run(self, queries: Any, count: int, banned: Any, ids: Any, scores: Any) -> Any:
        """Writes answers that the run's search finds, on its device, for items of scores above 0 (items without entries score 0, and have no row in the
        run). Returns which queries have one: none if item_factors are no longer the run's."""
        answered = numpy.zeros(len(queries), bool)
        if self._place is None or not numpy.isfinite(queries).all():
            return answered
        cosine, names = self.run._key("train", "score") == "cosine", numpy.array([int(name) for name in self.run.words])
        rows = self.run.vectors(table="context")
        if self.item_factors.shape[0] <= names.max() or not numpy.array_equal(self.item_factors[names], (unit(rows) if cosine else rows).astype(self.dtype)):
            return answered
        order = numpy.argsort([len(of) for of in banned])
        for part in (order[first:first + _TOGETHER] for first in range(0, len(order), _TOGETHER)):
            found, values = self.run.search(queries[part], count + len(banned[part[-1]]), table="context", metric="cosine" if cosine else "dot")
            lengths = numpy.linalg.norm(queries[part], axis=1, keepdims=True) if cosine else 1
            for at, items, near in zip(part, names[found], values * lengths):
                kept = numpy.flatnonzero(~numpy.isin(items, banned[at]) & (near > 0))[:count]
                if len(kept) == count:
                    ids[at], scores[at], answered[at] = items[kept], near[kept], True
        return answered

    def _lists_of(self, matrix: Any) -> List[Any]:
        """Returns the items of each row of a CSR matrix."""
        if getattr(matrix, "format", "") != "csr":
            raise ValueError("user_items needs to be a CSR sparse matrix")
        items = 0 if self.item_factors is None else len(self.item_factors)
        if matrix.nnz and items and not 0 <= matrix.indices.min() <= matrix.indices.max() < items:
            raise IndexError("user_items has entries of columns %d to %d, and the model has items 0 to %d"
                             % (matrix.indices.min(), matrix.indices.max(), items - 1))
        return [matrix.indices[start:end] for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:])]

    # ---- files ----

    def save(self, fileobj_or_path: Any) -> None:
        """Writes the model as implicit does, into an .npz: its load() reads the file, too. The run's files are in it."""
        values: Dict[str, Any] = {name: value for name, value in vars(self).items() if isinstance(value, (bool, int, float, numpy.ndarray))}
        if self._place is not None:
            values["sptx_run"] = numpy.frombuffer(self._place.__getstate__(), numpy.uint8)
        values["dtype"] = self.dtype.name
        if hasattr(fileobj_or_path, "write"):
            numpy.savez(fileobj_or_path, **values)
        else:
            replace({os.path.realpath(_path_of(fileobj_or_path)): lambda file: numpy.savez(file, **values)})

    @classmethod
    def load(cls, fileobj_or_path: Any) -> Any:
        """Reads a model that save() wrote. Of a file that implicit wrote, the factors are read: recommend() and similar_items() answer from
        them, and recalculate_user() refuses."""
        kind: Any = cls
        model, opened = kind(), hasattr(fileobj_or_path, "read")
        path = getattr(fileobj_or_path, "name", "the file") if opened else _path_of(fileobj_or_path)
        with contextlib.nullcontext(fileobj_or_path) if opened else open(path, "rb") as source:
            try:
                with numpy.load(source, allow_pickle=False) as file:
                    for name, value in file.items():
                        if name == "sptx_run":
                            model._place = _Place()
                            model._place.__setstate__(value.tobytes())
                        elif name == "dtype":
                            model.dtype = numpy.dtype(str(value))
                        elif name in _FACTORS or (name in vars(model) and value.shape == ()):
                            setattr(model, name, value if name in _FACTORS else value.item())
            except Exception as error:  # which one a damaged file raises depends on the byte
                raise ValueError("'%s' holds no model that save() wrote, or is damaged: %s" % (path, error)) from error
        held = [getattr(model, name) for name in _FACTORS if getattr(model, name) is not None]
        if held and (len(held) < 2 or held[0].ndim != 2 or held[1].ndim != 2 or held[0].shape[1] != held[1].shape[1]
                     or any(part.dtype.kind != "f" or not numpy.isfinite(part).all() for part in held)):
            raise ValueError("'%s' holds factors %s; wanted two matrices of finite numbers, of as many columns"
                             % (path, " and ".join("%s %s" % (part.dtype, part.shape) for part in held)))
        return model

    recalculate_item = refused("recalculate_item() is not there: rows of items change in fit() alone")
    partial_fit_items = refused("partial_fit_items() is not there: rows of items change in fit() alone")
    explain = refused("explain() is not there, as it needs the equations of ALS: similar_items(itemid, items=user_items.indices) says which of a "
                      "user's items are most like an item")
    recommend_all = refused("recommend_all() is not there: recommend(numpy.arange(users), user_items) answers for all users")
    to_gpu = refused("to_gpu() is not there: a model with use_gpu=True, or the default None on a machine with a GPU, trains on it")


def _path_of(path: Any) -> str:
    """Returns the path with the ending .npz, as numpy.savez() writes it."""
    name = os.fsdecode(path)
    return name if name.endswith(".npz") else name + ".npz"


def _refuse(**given: Any) -> None:
    for name, (value, sentence) in given.items():
        if not value:
            raise NotImplementedError("%s=False is not there: %s" % (name, sentence))


class AlternatingLeastSquares(_Factors):
    """implicit's class of this name. Behind it is not ALS but what sptx.fit() trains on a matrix: rows whose cosines rank a user's items above
    all others, by a softmax.

        model = AlternatingLeastSquares(factors=64, regularization=0.05, alpha=2.0)
        model.fit(user_items)
        ids, scores = model.recommend(0, user_items[0])

    factors         columns of a row
    regularization  L2 penalty of the rows that a step changes (optimizer.weight_decay)
    alpha           confidences are alpha times the matrix' values. Pairs weigh by the ratios of their confidences, which alpha leaves as they are
    iterations      5 to 15: the passes that suit the data (train.epochs), as ALS is near its best there; fewer: twelve passes each, since an
                    iteration of ALS solves each row, and a pass makes a step of it; more: two passes each and 30 more
    num_threads     0: all; random_state: the seed, or what draws it; dtype: of user_factors and item_factors
    use_gpu         None: the GPU where there is one
    calculate_training_loss     the line of progress shows the loss in any case
    keys            keys of `sptx-w2v help keys`, stronger than these arguments

    use_native=False and use_cg=False raise NotImplementedError: they choose another solver of ALS.
    """

    def __init__(self, factors: int = 100, regularization: float = 0.01, alpha: float = 1.0, dtype: Any = numpy.float32, use_native: bool = True,
                 use_cg: bool = True, use_gpu: Optional[bool] = None, iterations: int = 15, calculate_training_loss: bool = False,
                 num_threads: int = 0, random_state: Any = None, *, keys: Optional[Dict[str, Any]] = None) -> None:
        _refuse(use_native=(use_native, "training is the library's"), use_cg=(use_cg, "no equations are solved"))
        super().__init__(factors, regularization, dtype, iterations, num_threads, random_state, use_gpu, keys)
        self.alpha, self.use_native, self.use_cg = float(alpha), True, True
        self.calculate_training_loss = bool(calculate_training_loss)
        if not 0 < self.alpha < numpy.inf:
            raise ValueError("alpha = %g, wanted a finite number above 0" % self.alpha)

    def fit(self, user_items: Any, show_progress: bool = True, callback: Any = None) -> None:
        """Trains on a sparse matrix of users x items, whose values are confidences. Begins anew, whatever was trained before. Negative values
        raise NotImplementedError."""
        matrix, keys = matrix_of(user_items, confidences=True)
        matrix.data *= self.alpha
        keys.update(softmax_keys(self.factors, matrix.nnz))
        if not 5 <= self.iterations <= 15:
            keys["train.epochs"] = min(12 * self.iterations, 2 * self.iterations + 30)
        self._fit(matrix, show_progress, callback, keys)


class BayesianPersonalizedRanking(_Factors):
    """implicit's class of this name, trained by the loss of BPR (train.loss = bpr) with five negatives of each pair. A softmax of many negatives,
    which AlternatingLeastSquares trains, ranks better.

    factors, regularization, num_threads, random_state, dtype, use_gpu, keys: as of AlternatingLeastSquares
    learning_rate               the first learning rate of Adam; it falls linearly
    iterations                  passes over the data
    verify_negative_samples     whether a user's own items are no negatives (negatives.exclude)
    """

    def __init__(self, factors: int = 100, learning_rate: float = 0.01, regularization: float = 0.01, dtype: Any = numpy.float32,
                 iterations: int = 100, use_gpu: Optional[bool] = None, num_threads: int = 0, verify_negative_samples: bool = True,
                 random_state: Any = None, *, keys: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(factors, regularization, dtype, iterations, num_threads, random_state, use_gpu, keys)
        self._arguments = {**self._arguments, "optimizer.lr": "learning_rate", "negatives.exclude": "verify_negative_samples"}
        self.learning_rate, self.verify_negative_samples = float(learning_rate), bool(verify_negative_samples)

    def fit(self, user_items: Any, show_progress: bool = True, callback: Any = None) -> None:
        """Trains on a sparse matrix of users x items. The values of entries do not matter; negative ones raise NotImplementedError."""
        self._fit(matrix_of(user_items, confidences=False)[0], show_progress, callback, {
            "train.loss": "bpr", "negatives.count": 5, "negatives.exclude": self.verify_negative_samples, "optimizer.lr": self.learning_rate,
            "train.epochs": self.iterations})
