"""Rows of users and items, from a run on a matrix of users x items, for models with the names of other libraries."""

from typing import Any, Dict, Optional, Tuple

import numpy

from ._errors import naming
from ._fit import fit
from ._run import Run
from ._word2vec import _Place


class Trained:
    """Base class of models that train on a matrix. The run's files exist as long as the object; a pickle of it contains them."""

    _place: Optional[_Place] = None
    _opened: Optional[Run] = None
    _device = "auto"
    _arguments: Dict[str, str] = {}  # what messages call keys that the user has not given
    keys: Dict[str, Any]             # the keys that the user has given

    def _train(self, matrix: Any, keys: Dict[str, Any], progress: Optional[bool], threads: int) -> Tuple[Any, Any]:
        """Trains on a CSR matrix, and returns factors_of() it. If some user has all items, or there are only two items, a user's own items may be
        drawn as negatives."""
        if max(2, numpy.diff(matrix.indptr).max()) >= len(numpy.unique(matrix.indices)):
            keys = {**keys, "negatives.exclude": False}
        place = _Place()
        with naming(self._arguments, self.keys):
            run = fit(matrix, place.path("run"), keys={**keys, "run.checkpoint_every": "end", "run.keep": 1},
                      progress=progress, device=self._device, threads=threads)
        self._place, self._opened = place, run
        return factors_of(run, matrix)

    @property
    def run(self) -> Run:
        """The sptx.Run that answers, for everything else: run.evaluate(), run.export(), run.report(), run.to_faiss() .."""
        if self._place is None:
            raise ValueError("the model has no run: call fit() first")
        if self._opened is None:
            self._opened = Run(self._place.path("run"), device=self._device)
        return self._opened

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_opened": None}


def softmax_keys(dim: int, pairs: int) -> Dict[str, Any]:
    """Returns the keys by which a softmax of cosines is trained with `dim` columns, where the defaults are for 128. First values are within
    +-0.5 / dim, so that steps of one length turn rows of few columns less. goodbooks, NDCG@20 with 10 columns: 0.002 and a temperature of 0.1
    (the defaults) .111, 0.0256 and 0.1 .071, 0.02 and 0.2 .170; with 64: 0.002 .228, 0.004 .230."""
    return {"optimizer.lr": 0.256 / dim, **({"train.temperature": 0.2} if dim < 32 and pairs >= 60_000 else {})}


def unit(rows: Any) -> Any:
    """Returns rows scaled to unit length; zeros stay."""
    lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
    return rows / numpy.where(lengths == 0, 1, lengths)


def ids_of(ids: Any, what: str) -> Any:
    """Returns one id, or several, as an array of whole numbers with one axis."""
    found = numpy.atleast_1d(numpy.asarray(ids))
    if not found.size:
        found = found.astype(numpy.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise TypeError("the %s ids are %s %s; wanted one whole number or a list of them" % (what, found.dtype, list(found.shape)))
    return found


def seed_of(random_state: Any) -> int:
    """Returns train.seed for an int, or draws one from a RandomState or a Generator."""
    if isinstance(random_state, (int, numpy.integer)):
        return int(random_state) % 2**32
    if not hasattr(random_state, "randint") and not hasattr(random_state, "integers"):
        raise TypeError("random_state is %r; wanted a whole number, or a RandomState or a Generator of numpy" % (random_state,))
    return int(random_state.randint(2**31) if hasattr(random_state, "randint") else random_state.integers(2**31))


def factors_of(run: Run, matrix: Any) -> Tuple[Any, Any]:
    """Returns the rows of users and of items of a run on this CSR matrix. Rows that no entry trained are zeros; those of a run by cosines have
    unit length, so that dot products are its scores."""
    of_users, of_items = (numpy.zeros((count, run.dim), numpy.float32) for count in matrix.shape)
    of_items[[int(name) for name in run.words]] = run.vectors(table="context")
    of_users[[int(name[len("list:"):]) for name in run.lists]] = run.vectors(lists=True)[len(run):]
    of_users[numpy.diff(matrix.indptr) == 0] = 0
    return (unit(of_users), unit(of_items)) if run._key("train", "score") == "cosine" else (of_users, of_items)


def matrix_of(user_items: Any, confidences: bool) -> Tuple[Any, Dict[str, Any]]:
    """Checks a matrix of users x items, and returns a copy that sptx.fit() takes without a warning, with the keys that its values make: where
    they differ, and are confidences, they weigh the pairs."""
    if not hasattr(user_items, "tocsr") or len(user_items.shape) != 2:
        raise TypeError("user_items is a %s; wanted a sparse matrix of users x items" % type(user_items).__name__)
    matrix = user_items.tocsr().astype(numpy.float32)  # a copy
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not numpy.isfinite(matrix.data).all() or not matrix.nnz:
        raise ValueError("not all values of the matrix are finite" if matrix.nnz else "the matrix has no interaction to learn from")
    if (matrix.data < 0).any():
        raise NotImplementedError("negative values (dislikes) are not there: %d entries of the matrix are below 0; leave them out: "
                                  "matrix.multiply(matrix > 0)" % (matrix.data < 0).sum())
    if not confidences or not len(matrix.data) or (matrix.data == matrix.data[0]).all():
        matrix.data[:] = 1
        return matrix, {}
    return matrix, {"corpus.weights": "linear"}
