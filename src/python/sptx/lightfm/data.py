"""The module lightfm.data: matrices of interactions and of features, of rows with any names."""

from typing import Any, Dict, Iterable, Iterator, Optional, Tuple

import numpy

__all__ = ["Dataset"]


class Dataset:
    """Numbers users, items and their features from 0 on, and makes sparse matrices of rows with their names.

        dataset = Dataset()
        dataset.fit(users, items, item_features=authors)
        interactions, weights = dataset.build_interactions((user, book) for user, book in rows)
        features = dataset.build_item_features((book, [author]) for book, author in books)

    user_identity_features, item_identity_features: each user, each item is a feature of its own, too.
    """

    def __init__(self, user_identity_features: bool = True, item_identity_features: bool = True) -> None:
        self._identity = {"user": user_identity_features, "item": item_identity_features}
        self._empty()

    def _empty(self) -> None:
        self._ids: Dict[str, Dict[Any, int]] = {"user": {}, "item": {}}
        self._features: Dict[str, Dict[Any, int]] = {"user": {}, "item": {}}

    def fit(self, users: Iterable[Any], items: Iterable[Any], user_features: Optional[Iterable[Any]] = None,
            item_features: Optional[Iterable[Any]] = None) -> None:
        """Numbers these users, items and features, and forgets those of earlier calls."""
        self._empty()
        self.fit_partial(users, items, user_features, item_features)

    def fit_partial(self, users: Optional[Iterable[Any]] = None, items: Optional[Iterable[Any]] = None, user_features: Optional[Iterable[Any]] = None,
                    item_features: Optional[Iterable[Any]] = None) -> None:
        """Numbers those users, items and features that are new."""
        for kind, ids, features in (("user", users, user_features), ("item", items, item_features)):
            for one in () if ids is None else ids:
                self._ids[kind].setdefault(one, len(self._ids[kind]))
                if self._identity[kind]:
                    self._features[kind].setdefault(one, len(self._features[kind]))
            for one in () if features is None else features:
                self._features[kind].setdefault(one, len(self._features[kind]))

    def interactions_shape(self) -> Tuple[int, int]:
        """Returns the number of users, and of items."""
        return len(self._ids["user"]), len(self._ids["item"])

    def user_features_shape(self) -> Tuple[int, int]:
        """Returns the number of users, and of features of users."""
        return len(self._ids["user"]), len(self._features["user"])

    def item_features_shape(self) -> Tuple[int, int]:
        """Returns the number of items, and of features of items."""
        return len(self._ids["item"]), len(self._features["item"])

    def model_dimensions(self) -> Tuple[int, int]:
        """Returns the number of features of users, and of items."""
        return len(self._features["user"]), len(self._features["item"])

    def mapping(self) -> Tuple[Dict[Any, int], Dict[Any, int], Dict[Any, int], Dict[Any, int]]:
        """Returns the numbers by name of users, features of users, items, and features of items."""
        return self._ids["user"], self._features["user"], self._ids["item"], self._features["item"]

    def build_interactions(self, data: Iterable[Any]) -> Tuple[Any, Any]:
        """Returns two COO matrices of users x items with an entry for each row of data, (user, item) or (user, item, weight): ones, int32, and the
        weights, float32. ValueError for a user or an item that fit() did not number."""
        entries = []
        for row in data:
            if len(row) not in (2, 3):
                raise ValueError("Expecting tuples of (user_id, item_id, weight) or (user_id, item_id). Got %r" % (row,))
            entries.append((self._number("user", row[0]), self._number("item", row[1]), row[2] if len(row) == 3 else 1))
        weights = _coo(entries, self.interactions_shape())
        return weights.__class__((numpy.ones(len(entries), numpy.int32), (weights.row, weights.col)), shape=weights.shape), weights

    def _number(self, kind: str, name: Any) -> int:
        if name not in self._ids[kind]:
            raise ValueError("%s id %s not in %s id mapping. Make sure you call the fit method." % (kind.capitalize(), name, kind))
        return self._ids[kind][name]

    def build_user_features(self, data: Iterable[Any], normalize: bool = True) -> Any:
        """Returns a CSR matrix of users x features of rows (user, [features]) or (user, {feature: weight}). normalize: weights of a user add up
        to 1."""
        return self._build("user", data, normalize)

    def build_item_features(self, data: Iterable[Any], normalize: bool = True) -> Any:
        """Returns a CSR matrix of items x features, as build_user_features() does."""
        return self._build("item", data, normalize)

    def _build(self, kind: str, data: Iterable[Any], normalize: bool) -> Any:
        matrix = _coo([*self._entries(kind, data)], (len(self._ids[kind]), len(self._features[kind]))).tocsr()
        if normalize:
            sums = numpy.asarray(abs(matrix).sum(1)).ravel()
            if not sums.all():
                raise ValueError("Cannot normalize feature matrix: some rows have zero norm. Ensure that features were provided for all entries.")
            matrix.data /= numpy.repeat(sums, numpy.diff(matrix.indptr))
        return matrix

    def _entries(self, kind: str, data: Iterable[Any]) -> Iterator[Tuple[int, int, float]]:
        known = self._features[kind]
        yield from ((number, known[name], 1) for name, number in self._ids[kind].items() if self._identity[kind])
        for row in data:
            if len(row) != 2:
                raise ValueError("Expected tuples of (%s_id, features), got %r." % (kind, row))
            for feature, weight in row[1].items() if isinstance(row[1], dict) else ((one, 1) for one in row[1]):
                if feature not in known:
                    raise ValueError("Feature %s not in feature mapping. Call fit first." % (feature,))
                yield self._number(kind, row[0]), known[feature], weight


def _coo(entries: Any, shape: Tuple[int, int]) -> Any:
    from scipy.sparse import coo_matrix

    rows, columns, values = zip(*entries) if entries else ((), (), ())
    return coo_matrix((numpy.array(values, numpy.float32), (numpy.array(rows, numpy.int32), numpy.array(columns, numpy.int32))), shape=shape)
