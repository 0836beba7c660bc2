"""Tables: several tables with rows of one width, as a model with many features has, read and changed by one call."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Dict, Iterator, List, Tuple, Union

import numpy

from . import _arrays
from ._context import count_of
from ._libraries import Numpy, Torch
from ._library import HOST
from ._table import Table


class Tables:
    """Several tables of one width and one optimizer, whose rows are those of one Table, one table behind the other: a call for all
    of them sorts once and launches once.

        tables = sptx.Tables({"user": 5_000_000, "item": 300_000}, dim=128, optimizer="adagrad", lr=0.05)
        users, items = tables.fetch([user_ids, item_ids])      # as Table.fetch of each
        tables.update([user_ids, item_ids], [user_gradients, item_gradients])
        tables["item"].fetch(ids)                              # one of them

    rows     numbers of rows: {name: rows}, or a list; then the names are 0, 1 ..
    options  those of sptx.Table; gpu_rows, for example, finds the most used rows of all tables together

    ids of a table are 0 .. its rows - 1: NumPy arrays and lists, or tensors of PyTorch. An id that is not a row raises IndexError
    before anything changes; ids on the GPU are not looked at, and one past its table's end is a row of the next table.
    """

    def __init__(self, rows: Union[Mapping[Any, int], Sequence[int]], dim: int, optimizer: str = "sgd", **options: Any) -> None:
        named = dict(rows) if isinstance(rows, Mapping) else dict(enumerate(rows))
        if not named:
            raise ValueError("no tables: rows is empty; wanted {name: number of rows}, or a list of numbers")
        counts = [count_of(count, "rows of table %r" % (name,), 64) for name, count in named.items()]
        self._first: List[int] = [0, *itertools.accumulate(counts)]
        if 0 in counts:
            raise ValueError("table %r has no rows" % (list(named)[counts.index(0)],))
        self._number: Dict[Any, int] = {name: number for number, name in enumerate(named)}
        self._table = Table(self._first[-1], dim, optimizer, **options)

    @property
    def names(self) -> Tuple[Any, ...]:
        """The tables' names, in order."""
        return tuple(self._number)

    @property
    def table(self) -> Table:
        """The Table that has all rows: for lr, steps, save, restore, wait and close."""
        return self._table

    def __len__(self) -> int:
        return len(self._number)

    def __iter__(self) -> Iterator[Any]:
        """The tables' names, in order."""
        return iter(self._number)

    def __getitem__(self, name: Any) -> "TablePart":
        """One of the tables."""
        return TablePart(self, self._number[name])

    def rows(self, name: Any) -> int:
        """Number of rows of a table."""
        number = self._number[name]
        return self._first[number + 1] - self._first[number]

    def numbered(self, name: Any, ids: Any) -> Any:
        """Converts ids of one table to the numbers of their rows in the Table of all: int64, in the ids' shape and library. Raises IndexError if
        an id on the host is not a row."""
        number = self._number[name]
        first, end = self._first[number], self._first[number + 1]
        given = _arrays.take_ids(ids, self._table.context.gpu)
        if given.library not in (Numpy, Torch):
            raise TypeError("ids of table %r are a %s, wanted an array of NumPy, a list or a tensor of PyTorch" % (name, type(ids).__name__))
        if given.memory == HOST and given.count:
            low, high = int(given.keep.min()), int(given.keep.max())
            if low < 0 or high >= end - first:
                raise IndexError("ids of table %r are to be 0 .. %d, and one is %d" %
                                 (name, end - first - 1, low if low < 0 else high))
        return (given.keep.long() if given.library is Torch else given.keep.astype(numpy.int64)) + first

    def fetch(self, ids: Sequence[Any]) -> List[Any]:
        """Fetches rows from each table: the ids of each table in the tables' order; returns float32 [*ids.shape, dim] for each."""
        all_ids, shapes = self._joined(ids)
        rows = self._table.fetch(all_ids)
        ends = list(itertools.accumulate(map(math.prod, shapes), initial=0))
        return [rows[first:end].reshape(shape + (self._table.dim,)) for first, end, shape in zip(ends, ends[1:], shapes)]

    def update(self, ids: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Does one optimizer step for each row that the ids name, in all tables (Table.update)."""
        self._table.update(self._joined(ids)[0], self._floats(gradients, ids, "gradients"))

    def store(self, ids: Sequence[Any], values: Sequence[Any]) -> None:
        """Overwrites rows of all tables (Table.store)."""
        self._table.store(self._joined(ids)[0], self._floats(values, ids, "values"))

    def prefetch(self, ids: Sequence[Any]) -> None:
        """Announces the ids of the next fetch (Table.prefetch)."""
        self._table.prefetch(self._joined(ids)[0])

    def _check(self, given: Sequence[Any], what: str) -> None:
        if isinstance(given, Mapping):
            raise TypeError("%s are a %s; wanted a list of those of each table, in the order of names" % (what, type(given).__name__))
        if len(given) != len(self):
            raise ValueError("%s of %d tables are given, and there are %d" % (what, len(given), len(self)))

    def _joined(self, ids: Sequence[Any]) -> Tuple[Any, List[Tuple[int, ...]]]:
        self._check(ids, "ids")
        numbered = [self.numbered(name, some) for name, some in zip(self._number, ids)]
        flat = [some.reshape(-1) for some in numbered]
        return _join(flat), [tuple(some.shape) for some in numbered]

    def _floats(self, values: Sequence[Any], ids: Sequence[Any], what: str) -> Any:
        self._check(values, what)
        given = [some if hasattr(some, "shape") else numpy.asarray(some, numpy.float32) for some in values]
        for name, some, which in zip(self._number, given, ids):
            wanted = tuple(which.shape if hasattr(which, "shape") else numpy.shape(which)) + (self._table.dim,)
            if tuple(some.shape) != wanted:
                raise ValueError("%s of table %r have the shape %s, wanted %s" % (what, name, tuple(some.shape), wanted))
        return _join([some.reshape(-1, self._table.dim) for some in given])

    def __repr__(self) -> str:
        return "sptx.Tables(%d tables: %r)" % (len(self), self._table)


class TablePart:
    """One table of a sptx.Tables. fetch, update, store and prefetch do what those of sptx.Table do; ids count from 0 in each table."""

    def __init__(self, tables: Tables, number: int) -> None:
        self._tables, self._name = tables, tables.names[number]

    @property
    def shape(self) -> Tuple[int, int]:
        """(rows, dim)."""
        return self._tables.rows(self._name), self._tables.table.dim

    def fetch(self, ids: Any, out: Any = None) -> Any:
        """The rows of these ids (Table.fetch)."""
        return self._tables.table.fetch(self._tables.numbered(self._name, ids), out)

    def update(self, ids: Any, gradients: Any) -> None:
        """One optimizer step (Table.update)."""
        self._tables.table.update(self._tables.numbered(self._name, ids), gradients)

    def store(self, ids: Any, values: Any) -> None:
        """Overwrites rows (Table.store)."""
        self._tables.table.store(self._tables.numbered(self._name, ids), values)

    def prefetch(self, ids: Any) -> None:
        """Announces a fetch of these ids (Table.prefetch)."""
        self._tables.table.prefetch(self._tables.numbered(self._name, ids))


def _join(parts: List[Any]) -> Any:
    """Concatenates NumPy arrays, or tensors of PyTorch, along their first dimension."""
    if all(isinstance(part, numpy.ndarray) for part in parts):
        return numpy.concatenate(parts)
    import torch  # the parts are its tensors

    device = next(part.device for part in parts if isinstance(part, torch.Tensor))
    return torch.cat([torch.as_tensor(part, device=device) for part in parts])
