"""Rows of fields as data of fit(): tuples, arrays (one for each column), and tables (_arrow.py). The library looks at the first rows as it does at
the first lines of a file, and finds out what each column means."""

import itertools
from collections.abc import Iterable
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from ._corpus import Corpus, Source, Tokens, as_word, numbers, text, walked
from ._errors import tell

LOOKED_AT = 2000   # number of first rows that are looked at
_BLOCK = 1 << 16    # number of rows that are passed to the library in one call
COLUMNS_MOST = 64  # largest number of columns that are looked at


class Taken(NamedTuple):
    """What rows mean: their format, and by meaning the index of each column (None: no such column)."""

    format: str
    columns: Tuple[Optional[int], Optional[int], Optional[int]]
    events: bool = False  # True: the third column says in words what happened


def is_missing(value: Any) -> bool:
    return value is None or value is numpy.ma.masked or value != value


class FieldRows(Source):
    """Base class of rows of fields. A derived class has them in blocks, each a list of columns.

    what     the data, in messages; names: of the columns, or None
    columns  the user's columns=: names, or numbers from 1 on; None: they are found
    taken    what the rows are, if their form says it; None: the library looks at them
    """

    format = None  # type: ignore[assignment]
    formats = ("pairs", "graph", "triples", "documents")

    def __init__(self, what: str, names: Optional[Sequence[str]], columns: Any = None, taken: Optional[Taken] = None) -> None:
        super().__init__()
        self._rows: List[Any] = []  # the first rows, once they were looked at
        self.block: List[Any] = []  # the columns that are being given
        self._unnamed = self._happened = 0  # number of pairs with an event that corpus.events does not name; of all
        self.what, self.names, self.taken = what, names, taken
        if taken is not None:
            self.format, self.formats = taken.format, (taken.format,)
        elif columns is not None:
            self.settings["corpus.columns"] = self._numbered(columns)

    def _numbered(self, columns: Any) -> str:
        """Returns columns= as corpus.columns, in numbers."""
        wanted = [columns] if isinstance(columns, (str, int)) else list(columns)
        if not 2 <= len(wanted) <= 3:
            raise ValueError("columns=%r: wanted two or three, by names or by numbers from 1 on, such as (\"user\", \"item\")" % (columns,))
        names = list(self.names or ())
        for column in wanted:
            if isinstance(column, str) and column not in names:
                raise ValueError("%s has no column %r; it has %s" % (self.what, column, ", ".join(names) or "no names: columns=(1, 2) counts from 1"))
        return ",".join(str(names.index(column) + 1 if isinstance(column, str) else column) for column in wanted)

    # ---- of a derived class ----

    def first(self, count: int) -> List[Sequence[Any]]:
        """Returns the first rows, at most `count`; they are still in what blocks() yields."""
        raise NotImplementedError

    def blocks(self) -> Iterator[List[Any]]:
        """Yields all rows in blocks; a block is a list of columns."""
        raise NotImplementedError

    def tokens(self, corpus: Corpus, column: Any, what: str, lists: bool) -> Tokens:
        """Returns a column of names as tokens. A missing name is an empty token."""
        if isinstance(column, numpy.ndarray) and column.dtype.kind in "iu":
            return numbers(column, what)
        values = column if isinstance(column, (list, tuple)) else column.tolist()
        return next(walked([values], lambda column, _: self.texts(column), most=len(values) + 1))[0]

    def values(self, column: Any, what: str) -> Any:
        """Returns a column of numbers. A missing number is NaN."""
        try:
            return numpy.array([numpy.nan if is_missing(value) else value for value in column], numpy.float64) \
                if not isinstance(column, numpy.ndarray) or column.dtype.kind == "O" else column.astype(numpy.float64)
        except (TypeError, ValueError):
            raise TypeError("a %s of %s is no number" % (what, self.what)) from None

    def texts(self, column: Any) -> List[bytes]:
        return [b"" if is_missing(value) else as_word(value) for value in column]

    def begin(self, columns: Sequence[Optional[int]]) -> None:
        """Called before the columns of names, which have these indexes, and the other columns of self.block are added."""

    # ---- given ----

    def find(self, corpus: Corpus) -> None:
        """Sets `format` to what the first rows look like. Rows whose columns the user has named are pairs, unless there are two columns and one
        has running text."""
        self._rows, names = self.first(LOOKED_AT), self.names
        chosen = [int(column) - 1 for column in self.settings.get("corpus.columns", "").split(",") if column]
        rows = self._rows
        if rows and chosen and max(chosen) < len(rows[0]):
            rows, names = [[row[i] for i in chosen] for row in rows], names and [names[i] for i in chosen]
        try:
            self.format = corpus.look(rows, names, self.what)[0] if rows else "pairs"
        except ValueError:
            if not chosen:
                raise
        if chosen and self.format != "documents":
            self.format = "pairs"

    def give(self, corpus: Corpus) -> None:
        taken, rows = self.taken, self._rows or self.first(LOOKED_AT)
        if taken is None and not rows:
            return
        if taken is None:
            taken = Taken(*corpus.look(rows, self.names, self.what))
        give = {"pairs": self._pairs, "graph": self._edges, "triples": self._triples, "documents": self._documents}[taken.format]
        named = taken.columns if taken.format == "triples" else () if taken.format == "documents" else taken.columns[:2]
        for self.block in self.blocks():
            self.begin(named)
            give(corpus, *(None if index is None else self.block[index] for index in taken.columns), taken.events)
        if self._unnamed:
            tell("left out %d of %d pairs, whose event corpus.events does not name" % (self._unnamed, self._happened))

    def _pairs(self, corpus: Corpus, lists: Any, items: Any, ratings: Any, events: bool) -> None:
        if events and ratings is not None:
            return self._events(corpus, lists, items, ratings)
        corpus.pairs(self.tokens(corpus, lists, "lists", True), self.tokens(corpus, items, "items", False),
                     None if ratings is None else self.values(ratings, "rating"))

    def _events(self, corpus: Corpus, lists: Any, items: Any, happened: Any) -> None:
        """Adds pairs whose third column names an event; corpus.events names the events that count."""
        wanted = {word.strip().encode() for word in str(self.events).split(",") if word.strip()}
        kept = numpy.array([not wanted or word in wanted for word in self.texts(happened)], bool)
        self._unnamed += len(kept) - int(kept.sum())
        self._happened += len(kept)
        sides = [list(itertools.compress(self.texts(side), kept)) for side in (lists, items)]
        corpus.pairs(*map(text, sides))

    def _edges(self, corpus: Corpus, sources: Any, targets: Any, weights: Any, _: bool) -> None:
        corpus.edges(self.tokens(corpus, sources, "nodes", False), self.tokens(corpus, targets, "nodes", False),
                     None if weights is None else self.values(weights, "weight"))

    def _triples(self, corpus: Corpus, heads: Any, tails: Any, relations: Any, _: bool) -> None:
        corpus.triples(self.tokens(corpus, heads, "heads", False), self.tokens(corpus, relations, "relations", True),
                       self.tokens(corpus, tails, "tails", False))

    def _documents(self, corpus: Corpus, names: Any, texts: Any, more: Any, _: bool) -> None:
        rows = self.texts(texts) if more is None else [b" ".join(two) for two in zip(self.texts(texts), self.texts(more))]
        called, at = None if names is None else self.texts(names), 0
        for tokens, starts in walked((row.split() for row in rows), lambda words, _: words):
            end = at + len(starts) - 1
            corpus.sentences(tokens, starts, None if called is None else text(called[at:end]))
            at = end


class TupleRows(FieldRows):
    """An iterable of tuples or lists that all have the same length; it is read once."""

    def __init__(self, rows: Iterable, what: str = "the rows", columns: Any = None, taken: Optional[Taken] = None) -> None:
        super().__init__(what, None, columns, taken)
        self._rest = iter(rows)
        self._first: List[Any] = []
        self._number = 0  # number of rows that were given

    def first(self, count: int) -> List[Sequence[Any]]:
        self._first += itertools.islice(self._rest, count - len(self._first))
        self._check(self._first)
        return self._first

    def blocks(self) -> Iterator[List[Any]]:
        rows = itertools.chain(self._first, self._rest)
        while True:
            block = list(itertools.islice(rows, _BLOCK))
            if not block:
                return
            self._check(block)
            self._number += len(block)
            yield list(zip(*block))

    _length = 0

    def _check(self, block: List[Any]) -> None:
        """Raises if a row is not a tuple with the first row's number of fields."""
        if not block:
            return
        if not self._length:
            self._length = len(block[0]) if isinstance(block[0], (tuple, list)) else 0
        for i, row in enumerate(block):
            if not isinstance(row, (tuple, list)) or len(row) != self._length or not 2 <= self._length <= COLUMNS_MOST:
                raise TypeError("row %d is %.80r, wanted a tuple of %s" % (self._number + i, row, "%d fields, as the first one is" % self._length
                                                                          if self._length > 1 else "two or more fields"))


class ArrayRows(FieldRows):
    """Rows whose columns are arrays of the same length."""

    def __init__(self, columns: Sequence[Any], what: str, chosen: Any = None, taken: Optional[Taken] = None) -> None:
        self._columns = [numpy.asarray(column) for column in columns]
        if any(column.ndim != 1 or len(column) != len(self._columns[0]) for column in self._columns):
            raise ValueError("columns are arrays of one length; these are of shape %s" % ", ".join(str(column.shape) for column in self._columns))
        super().__init__(what, None, chosen, taken)

    def first(self, count: int) -> List[Sequence[Any]]:
        return list(zip(*(column[:count].tolist() for column in self._columns)))

    def blocks(self) -> Iterator[List[Any]]:
        yield [column if column.dtype.kind in "iu" else _whole(column) for column in self._columns]


def _whole(column: Any) -> Any:
    """Converts an array of floats to integers if all are whole; returns any other array unchanged."""
    if column.dtype.kind == "f" and column.size and (column == numpy.floor(column)).all() and (numpy.abs(column) < 2.0 ** 53).all():
        return column.astype(numpy.int64)
    return column
