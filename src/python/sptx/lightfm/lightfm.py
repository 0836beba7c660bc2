"""LightFM's class, answered by a run of sptx.fit(). Names, defaults and the forms of arguments and answers are those of LightFM 1.17."""

import warnings
from typing import Any, Dict, Optional, Tuple

import numpy

from .._errors import SptxWarning
from .._factors import Trained, ids_of, matrix_of, seed_of, softmax_keys

_ASKED = ("no_components", "k", "n", "learning_schedule", "loss", "learning_rate", "rho", "epsilon", "item_alpha", "user_alpha", "max_sampled",
          "random_state")


class LightFM(Trained):
    """LightFM's class of this name. Behind it is what sptx.fit() trains on a matrix of users x items.

        model = LightFM(loss="warp")
        model.fit(train, epochs=30)
        precision_at_k(model, test, train_interactions=train, k=5).mean()

    no_components       columns of a row
    loss                "warp": a softmax of cosines among many items, which like WARP is about the top of the ranking; "bpr" and "logistic":
                        train.loss = bpr, logistic, with five items of no interaction for each one of an interaction. "warp-kos" raises
                        NotImplementedError, and so do k and n, which belong to it
    learning_schedule   "adagrad": Adam, whose rate falls linearly in each call of fit(), by learning_rate as a multiple of 0.05, its default;
                        "adadelta": optimizer.rule = adadelta with rho and epsilon, which belong to it
    item_alpha, user_alpha      L2 penalties (optimizer.weight_decay); both sides have the greater of the two
    max_sampled         of "warp": 10: the number of negatives that suits the data; another: negatives.count
    random_state        a seed, or numpy.random.RandomState; None: any seed
    device              "auto": the GPU where there is one; "cpu", "cuda"
    new_share           with item_features: which share of the first 20 places items without interactions take (Run.add_items(share=))
    keys                keys of `sptx-w2v help keys`, stronger than these arguments

    item_embeddings, user_embeddings    float32 [items x no_components], [users x no_components]: the rows of the run, of unit length with
                                        loss="warp"; zeros for an item without interactions, the mean for a user without any
    item_biases, user_biases            float32 [items], [users]: zeros, since no bias is trained

    With item_features (a sparse matrix items x features, whose entries above or below 0 count alike) training is the same, and items without an
    interaction get the rows that Run.add_items() gives new items by their features. item_embeddings is then [features x no_components]: in the
    column of one item alone, such as those of Dataset's identities, that item's row, and in others the feature's.
    """

    def __init__(self, no_components: int = 10, k: int = 5, n: int = 10, learning_schedule: str = "adagrad", loss: str = "logistic",
                 learning_rate: float = 0.05, rho: float = 0.95, epsilon: float = 1e-6, item_alpha: float = 0.0, user_alpha: float = 0.0,
                 max_sampled: int = 10, random_state: Any = None, *, device: str = "auto", new_share: Optional[float] = None,
                 keys: Optional[Dict[str, Any]] = None) -> None:
        self.new_share = new_share
        self.no_components, self.k, self.n, self.learning_schedule, self.loss = int(no_components), k, n, learning_schedule, loss
        self.learning_rate, self.rho, self.epsilon, self.max_sampled = learning_rate, rho, epsilon, max_sampled
        self.item_alpha, self.user_alpha, self.keys, self._device = item_alpha, user_alpha, dict(keys or {}), device
        self.random_state = random_state if isinstance(random_state, numpy.random.RandomState) else numpy.random.RandomState(random_state)
        self._check()
        self._reset_state()

    def _check(self) -> None:
        if self.loss not in ("logistic", "warp", "bpr", "warp-kos") or self.learning_schedule not in ("adagrad", "adadelta"):
            raise ValueError("loss = %r and learning_schedule = %r; wanted logistic, warp or bpr, and adagrad or adadelta"
                             % (self.loss, self.learning_schedule))
        if self.loss == "warp-kos" or (self.k, self.n) != (5, 10):
            raise NotImplementedError("loss='warp-kos', with its k and n, is not there: take loss='warp'")
        if self.learning_schedule == "adagrad" and (self.rho, self.epsilon) != (0.95, 1e-6):
            raise NotImplementedError("rho and epsilon are those of learning_schedule='adadelta'")
        if self.loss != "warp" and self.max_sampled != 10:
            raise NotImplementedError("max_sampled is that of loss='warp'; keys={'negatives.count': %r} sets the negatives of other losses"
                                      % self.max_sampled)
        if self.no_components < 1 or self.max_sampled < 1 or min(self.item_alpha, self.user_alpha) < 0 or not self.learning_rate > 0:
            raise ValueError("wanted no_components and max_sampled from 1 on, alphas from 0 on, and a learning_rate above 0")

    def _reset_state(self) -> None:
        self.item_embeddings: Any = None
        self.user_embeddings: Any = None
        self.item_biases: Any = None
        self.user_biases: Any = None
        self._shape: Any = None     # users, items
        self._items: Any = None     # [items x no_components] rows of items, also of new ones
        self._features: Any = None  # the item_features of fit(), CSR, or None
        self._last: Any = None      # the last other matrix of features, and its rows
        self._place = self._opened = None

    # ---- training ----

    def fit(self, interactions: Any, user_features: Any = None, item_features: Any = None, sample_weight: Any = None, epochs: Optional[int] = None,
            num_threads: Optional[int] = None, verbose: bool = False) -> "LightFM":
        """Trains anew, and returns the model. If this fails, the model stays as it was.

        interactions    a sparse matrix of users x items. Entries above 0 are interactions; others are left out, and with loss="logistic" they
                        raise NotImplementedError
        sample_weight   a COO matrix with the entries of interactions in the same order: how much each counts (corpus.weights = linear)
        item_features   None, or a sparse matrix with a row for each item
        user_features   None, or an identity matrix, which says the same; others raise NotImplementedError
        epochs          None: the passes that suit the data (train.epochs); a number: so many passes and up to 30 more, at most eight times as
                        many, since in one pass LightFM makes a step of each interaction, and this package one of each user
        num_threads     None: all; verbose: shows a line of progress
        """
        before = dict(vars(self))
        self._reset_state()
        try:
            return self.fit_partial(interactions, user_features, item_features, sample_weight, epochs, num_threads, verbose)
        except BaseException:
            vars(self).update(before)
            raise

    def fit_partial(self, interactions: Any, user_features: Any = None, item_features: Any = None, sample_weight: Any = None,
                    epochs: Optional[int] = None, num_threads: Optional[int] = None, verbose: bool = False) -> "LightFM":
        """Trains as fit() does, beginning with the rows and the optimizer's state of the call before."""
        self._check()
        for matrix, what in ((interactions, "interactions"), (user_features, "user_features"), (item_features, "item_features")):
            if not hasattr(matrix, "tocsr") and (matrix is not None or what == "interactions"):
                raise TypeError("%s is a %s; wanted a sparse matrix" % (what, type(matrix).__name__))
        if user_features is not None and not _is_identity(user_features, interactions.shape[0]):
            raise NotImplementedError("user_features other than an identity matrix are not there: None trains a row for each user")
        features = None if item_features is None or _is_identity(item_features, interactions.shape[1]) else _features_of(item_features)
        if features is not None and features.shape[0] < interactions.shape[1]:
            raise ValueError("item_features have %d rows, and there are %d items" % (features.shape[0], interactions.shape[1]))
        if features is not None:
            tells = numpy.diff(features[:, features.getnnz(axis=0) > 1].indptr)[numpy.unique(interactions.tocoo().col)]
            if (tells > 0).sum() < 20:
                raise ValueError("%d items with interactions have a feature that another item has, too; at least 20 are needed to learn what "
                                 "features mean. Without item_features each item has a row of its own" % (tells > 0).sum())
        if self._shape not in (None, interactions.shape):
            raise ValueError("interactions are %d x %d, and the model was trained on %d users and %d items" % (*interactions.shape, *self._shape))
        matrix, keys = matrix_of(_weighted(interactions.tocoo(), sample_weight, self.loss), confidences=sample_weight is not None)
        if self._place is not None:
            keys["train.from"] = '"%s"' % self._place.path("run")
        if epochs is not None:
            if epochs < 1 or epochs % 1:
                raise ValueError("epochs = %g, wanted a whole number from 1 on" % epochs)
            keys["train.epochs"] = min(8 * epochs, epochs + 30)
        keys.update(self._keys(matrix.nnz))
        with warnings.catch_warnings():
            if epochs is not None:  # the caller knows how few passes these are
                warnings.filterwarnings("ignore", "the loss has stayed", SptxWarning)
            rows = self._train(matrix, {**keys, **self.keys}, bool(verbose), _threads(num_threads))
        self._shape, self.user_embeddings, self._items = matrix.shape, *rows
        trained = self.user_embeddings.any(1)
        self.user_embeddings[~trained] = self.user_embeddings[trained].mean(0)
        self.item_embeddings, self._features, self._last = self._items, features, None
        if features is not None:
            self._describe(features)
        self.user_biases, self.item_biases = (numpy.zeros(len(part), numpy.float32) for part in (self.user_embeddings, self.item_embeddings))
        return self

    def _describe(self, features: Any) -> None:
        """Gives rows to items without interactions, and to features."""
        self._features = features
        counts = features.getnnz(axis=0)
        self._items = self._represent(features)
        self.item_embeddings = numpy.zeros((features.shape[1], self.no_components), numpy.float32)
        matrix = features.tocoo()
        own = counts[matrix.col] == 1
        self.item_embeddings[matrix.col[own]] = self._items[matrix.row[own]]
        for column in numpy.flatnonzero(counts > 1):
            self.item_embeddings[column] = self._vector("f%d" % column)

    def _represent(self, features: Any) -> Any:
        """Returns a row for each row of a matrix of features: that of the item of this number, if it has these features and was trained; otherwise
        that of a new item with them."""
        fitted, shared = self._features, self._features.getnnz(axis=0) > 1
        if features.shape[1] != fitted.shape[1]:
            raise ValueError("item_features have %d columns, and the model was trained with %d" % (features.shape[1], fitted.shape[1]))
        sets = [[frozenset(matrix.indices[start:end].tolist()) for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:])]
                for matrix in (features, fitted)]
        names = ["%d" % row if row < len(sets[1]) and one == sets[1][row] else "row:%d" % row for row, one in enumerate(sets[0])]
        said = {**{"%d" % row: one for row, one in enumerate(sets[1])}, **dict(zip(names, sets[0]))}
        context = self.run._context
        before, context.is_quiet = context.is_quiet, True
        try:
            self.run.add_items({name: ["f%d" % column for column in sorted(one) if shared[column]] for name, one in said.items()},
                               share=self.new_share)
        finally:
            context.is_quiet = before
        return numpy.array([self._items[row] if name[0] != "r" and row < len(self._items) and self._items[row].any() else self._vector(name)
                            for row, name in enumerate(names)], numpy.float32).reshape(len(names), self.no_components)

    def _vector(self, name: str) -> Any:
        """Returns the row of a new item or a feature; zeros where nothing is known of it."""
        try:
            return self.run.vector(name)
        except KeyError:
            return numpy.zeros(self.no_components, numpy.float32)

    _arguments = {"model.dim": "no_components", "optimizer.weight_decay": "item_alpha or user_alpha", "optimizer.rho": "rho",
                  "optimizer.eps": "epsilon", "optimizer.lr": "learning_rate", "train.epochs": "epochs"}

    def _keys(self, pairs: int) -> Dict[str, Any]:
        keys = softmax_keys(self.no_components, pairs) if self.loss == "warp" else {
            "train.loss": self.loss, "train.score": "dot", "negatives.count": 5, "optimizer.lr": 0.02}
        keys["optimizer.lr"] *= self.learning_rate / 0.05
        if self.learning_schedule == "adadelta":
            keys.update({"optimizer.rule": "adadelta", "optimizer.rho": self.rho, "optimizer.eps": self.epsilon, "optimizer.lr": 1.0})
        if self.max_sampled != 10:
            keys["negatives.count"] = self.max_sampled
        return {**keys, "model.dim": self.no_components, "train.seed": seed_of(self.random_state),
                "optimizer.weight_decay": max(self.item_alpha, self.user_alpha)}

    # ---- questions ----

    def _check_initialized(self) -> None:
        if self.item_embeddings is None:
            raise ValueError("You must fit the model before trying to obtain predictions.")

    def predict(self, user_ids: Any, item_ids: Any, item_features: Any = None, user_features: Any = None, num_threads: int = 1) -> Any:
        """Returns the scores of pairs, float32 [pairs]: of each user with the item at the same index; or of one user with each item."""
        self._check_initialized()
        _threads(num_threads)
        items, users = ids_of(item_ids, "item"), ids_of(user_ids, "user")
        if numpy.ndim(user_ids) == 0:
            users = numpy.repeat(users, len(items))
        if len(users) != len(items):
            raise ValueError("Expected the number of user IDs (%d) to equal the number of item IDs (%d)" % (len(users), len(items)))
        user_biases, user_rows = self.get_user_representations(user_features)
        item_biases, item_rows = self.get_item_representations(item_features)
        for ids, rows, what in ((users, user_rows, "user"), (items, item_rows, "item")):
            if len(ids) and not 0 <= ids.min() <= ids.max() < len(rows):
                raise ValueError("%ss are 0 to %d, and one of the %s ids is not among them" % (what, len(rows) - 1, what))
        return numpy.einsum("ij,ij->i", user_rows[users], item_rows[items]) + user_biases[users] + item_biases[items]

    def predict_rank(self, test_interactions: Any, train_interactions: Any = None, item_features: Any = None, user_features: Any = None,
                     num_threads: int = 1, check_intersections: bool = True) -> Any:
        """Returns a CSR matrix, float32 [users x items], with the entries of test_interactions: the rank of each item for its user, 0 the best,
        among all items but those of train_interactions. check_intersections: ValueError if the two matrices share entries."""
        self._check_initialized()
        _threads(num_threads)
        for matrix in (test_interactions, train_interactions):
            if matrix is not None and (not hasattr(matrix, "tocsr") or matrix.shape != test_interactions.shape):
                raise ValueError("wanted sparse matrices of one shape of test and train interactions, and there is a %s of the shape %s"
                                 % (type(matrix).__name__, getattr(matrix, "shape", None)))
        if check_intersections and train_interactions is not None:
            shared = test_interactions.tocsr().multiply(train_interactions.tocsr()).nnz
            if shared:
                raise ValueError("Test interactions matrix and train interactions matrix share %d interactions. This will cause incorrect "
                                 "evaluation, check your data split." % shared)
        _, user_rows = self.get_user_representations(user_features)
        biases, item_rows = self.get_item_representations(item_features)
        users, items = test_interactions.shape
        if users > len(user_rows) or items > len(item_rows):
            raise ValueError("test interactions are %d x %d, and the model has %d users and %d items"
                             % (users, items, len(user_rows), len(item_rows)))
        biases, item_rows = biases[:items], item_rows[:items]
        ranks = test_interactions.tocsr().astype(numpy.float32)  # a copy
        train = None if train_interactions is None else train_interactions.tocsr()
        for user in numpy.flatnonzero(numpy.diff(ranks.indptr)):
            part = slice(ranks.indptr[user], ranks.indptr[user + 1])
            scores = item_rows @ user_rows[user] + biases
            asked = scores[ranks.indices[part]]
            if train is not None:
                scores[train.indices[train.indptr[user]:train.indptr[user + 1]]] = -numpy.inf
            own = scores[ranks.indices[part]] > -numpy.inf
            scores.sort()
            ranks.data[part] = len(scores) - numpy.searchsorted(scores, asked) - own
        return ranks

    def get_item_representations(self, features: Any = None) -> Tuple[Any, Any]:
        """Returns (item_biases, item_embeddings); with features, a matrix as of fit(), (biases [rows], rows [rows x no_components]) of the items
        that it describes. A row that fit() did not have is a new item."""
        self._check_initialized()
        if features is None or (self._features is None and _is_identity(features, len(self._items))):
            return self.item_biases, self.item_embeddings
        if self._features is None:
            raise ValueError("the model was trained without item_features")
        matrix = _features_of(features)
        if self._last is None or self._last[0].shape != matrix.shape or (self._last[0] != matrix).nnz:
            fitted = matrix.shape == self._features.shape and not (matrix != self._features).nnz
            self._last = matrix, self._items if fitted else self._represent(matrix)
        return matrix @ self.item_biases, self._last[1]

    def get_user_representations(self, features: Any = None) -> Tuple[Any, Any]:
        """Returns (user_biases [users], user_embeddings [users x no_components])."""
        self._check_initialized()
        if features is not None and not _is_identity(features, len(self.user_embeddings)):
            raise NotImplementedError("user_features other than an identity matrix are not there")
        return self.user_biases, self.user_embeddings

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """Returns LightFM's arguments by name, as an estimator of scikit-learn does."""
        return {name: getattr(self, name) for name in _ASKED}

    def set_params(self, **params: Any) -> "LightFM":
        """Sets arguments by name, for the next fit()."""
        before = self.get_params()
        for name in params:
            if name not in _ASKED:
                raise ValueError("Invalid parameter %s for estimator LightFM. Check the list of available parameters with "
                                 "`estimator.get_params().keys()`." % name)
        vars(self).update(params)
        try:
            self._check()
        except (TypeError, ValueError, NotImplementedError):
            vars(self).update(before)
            raise
        return self


def _threads(num_threads: Optional[int]) -> int:
    if num_threads is not None and num_threads < 1:
        raise ValueError("Number of threads must be 1 or larger.")
    return num_threads or 0


def _features_of(features: Any) -> Any:
    """Returns a matrix of features as CSR, without entries of 0."""
    if not hasattr(features, "tocsr"):
        raise TypeError("features are a %s; wanted a sparse matrix" % type(features).__name__)
    matrix = features.tocsr(copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not numpy.isfinite(matrix.data).all():
        raise ValueError("Not all input values are finite. Check the input for NaNs and infinite values.")
    if matrix.nnz and not 0 <= matrix.indices.min() <= matrix.indices.max() < matrix.shape[1]:
        raise ValueError("the features have entries of columns %d to %d, and there are %d columns"
                         % (matrix.indices.min(), matrix.indices.max(), matrix.shape[1]))
    return matrix


def _is_identity(features: Any, count: int) -> bool:
    matrix = features.tocoo()
    kept = matrix.data != 0
    return matrix.shape == (count, count) and kept.sum() == count and bool((matrix.row[kept] == matrix.col[kept]).all() and (
        matrix.data[kept] == 1).all())


def _weighted(interactions: Any, sample_weight: Any, loss: str) -> Any:
    """Returns the interactions above 0, with their weights as values."""
    if not numpy.isfinite(interactions.data).all():
        raise ValueError("Not all input values are finite. Check the input for NaNs and infinite values.")
    kept = interactions.data > 0
    if loss == "logistic" and not kept.all():
        raise NotImplementedError("loss='logistic' takes no negative interactions here, and %d entries are not above 0; leave them out: other "
                                  "items are drawn as negatives" % (~kept).sum())
    values = numpy.ones(len(kept), numpy.float32)
    if sample_weight is not None:
        if getattr(sample_weight, "format", "") != "coo":
            raise ValueError("Sample_weight must be a COO matrix.")
        if sample_weight.shape != interactions.shape:
            raise ValueError("Sample weight and interactions matrices must be the same shape")
        if not (numpy.array_equal(interactions.row, sample_weight.row) and numpy.array_equal(interactions.col, sample_weight.col)):
            raise ValueError("Sample weight and interaction matrix entries must be in the same order")
        values = sample_weight.data.astype(numpy.float32)
    return interactions.__class__((values[kept], (interactions.row[kept], interactions.col[kept])), shape=interactions.shape)
