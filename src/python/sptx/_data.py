"""What fit() takes, each kind as a source that gives a corpus its blocks.

    source.format       what the data is, as corpus.format has it
    source.settings     keys that go with it
    source.give(corpus) reads the data, once

Nothing is imported for a kind of data: what a library's object can do is asked of the object.
"""

import itertools
import os
from collections.abc import Iterable, Mapping
from typing import Any, Iterator, List, Optional, Sequence

import numpy

from . import _arrow
from ._corpus import Corpus, Dictionary, Source, known, numbers, starts_of

BLOCK = 4096  # sentences that are handed over at a time

TOKEN = (str, bytes, int, numpy.integer)


class Paths(Source):
    """Files, which the library reads itself."""

    formats = ("text", "lists", "adjacency", "pairs")

    def __init__(self, paths: List[str]) -> None:
        super().__init__()
        for path in paths:
            if '"' in path or "\n" in path:
                raise ValueError("the path %r has a double quote or a line's end in it" % path)
        self.settings["corpus.path"] = " ".join('"%s"' % path for path in paths)


def _sized(sentence: Any, number: int) -> Any:
    """Returns a sentence as something with a length that can be walked along."""
    if isinstance(sentence, (str, bytes)):
        raise TypeError("sentence %d is the %s %r, wanted an iterable of tokens: split it into words first"
                        % (number, type(sentence).__name__, sentence[:40]))
    if isinstance(sentence, numpy.ndarray):
        return sentence.tolist()
    if hasattr(sentence, "__len__"):
        return sentence
    if isinstance(sentence, Iterable):
        return list(sentence)
    raise TypeError("sentence %d is a %s, wanted an iterable of str, bytes or int" % (number, type(sentence).__name__))


class Sentences(Source):
    """Iterables of tokens, one after the other."""

    def __init__(self, sentences: Iterable) -> None:
        super().__init__()
        self._sentences = sentences

    def _blocks(self) -> Iterator[List[Any]]:
        rest, number = iter(self._sentences), 0
        while True:
            block = list(itertools.islice(rest, BLOCK))
            if not block:
                return
            yield [sentence if type(sentence) is list else _sized(sentence, number + i) for i, sentence in enumerate(block)]
            number += len(block)

    def give(self, corpus: Corpus) -> None:
        dictionary = Dictionary(corpus)
        for block in self._blocks():
            _give_block(corpus, dictionary, block)


def _give_block(corpus: Corpus, dictionary: Dictionary, block: Sequence[Any], names: Any = None) -> None:
    starts = starts_of(block)
    ids = numpy.fromiter(map(dictionary.__getitem__, itertools.chain.from_iterable(block)), numpy.int32, int(starts[-1]))
    dictionary.tell()
    corpus.sentences(known(ids, "tokens"), starts, names)


class NamedLists(Source):
    """Pairs of a name and an iterable of items."""

    format = "lists"
    formats = ("lists",)

    def __init__(self, lists: Iterable) -> None:
        super().__init__()
        self._lists = lists

    def give(self, corpus: Corpus) -> None:
        items, called = Dictionary(corpus), Dictionary(corpus, lists=True)
        rest, number = iter(self._lists), 0
        while True:
            block = list(itertools.islice(rest, BLOCK))
            if not block:
                return
            names = numpy.fromiter((called[_pair(pair, number + i)[0]] for i, pair in enumerate(block)), numpy.int32, len(block))
            called.tell()
            _give_block(corpus, items, [_sized(pair[1], number + i) for i, pair in enumerate(block)], known(names, "names"))
            number += len(block)


def _pair(pair: Any, number: int) -> Any:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError("list %d is %.80r, wanted a pair of its name and its items" % (number, pair))
    return pair


class Sparse(Source):
    """A sparse matrix of SciPy's: its rows are lists, and its columns items."""

    format = "lists"
    formats = ("lists",)

    def __init__(self, matrix: Any, users: Any, items: Any) -> None:
        super().__init__()
        if len(matrix.shape) != 2:
            raise ValueError("a sparse array of shape %s is no matrix of users x items" % (matrix.shape,))
        self._matrix = matrix
        self._users = _labels(users, matrix.shape[0], "users", "rows")
        self._items = _labels(items, matrix.shape[1], "items", "columns")
        self.min_rating: Optional[float] = None

    def give(self, corpus: Corpus) -> None:
        matrix = self._matrix.tocsr()
        columns, starts = matrix.indices, matrix.indptr
        kept = matrix.data != 0
        if self.min_rating is not None:
            if numpy.isnan(matrix.data).any():
                raise ValueError("the matrix has a rating that is NaN, and corpus.min_rating is set")
            kept &= matrix.data >= self.min_rating
        if not kept.all():
            starts = numpy.concatenate([[0], numpy.cumsum(kept)])[starts]
            columns = columns[kept]
        users = None if self._users is None else _learn(corpus, self._users, True)
        if self._items is None:
            corpus.sentences(numbers(columns, "columns"), starts, users)
        else:
            _learn(corpus, self._items, False)
            corpus.sentences(known(columns, "columns"), starts, users)


def _labels(labels: Any, count: int, key: str, what: str) -> Optional[List[Any]]:
    if labels is None:
        return None
    found = labels.tolist() if isinstance(labels, numpy.ndarray) else list(labels)
    if len(found) != count:
        raise ValueError("%s = %d names, and the matrix has %d %s" % (key, len(found), count, what))
    return found


def _learn(corpus: Corpus, labels: List[Any], lists: bool) -> Any:
    """Makes a dictionary of all labels, in their order, and returns the numbers of all."""
    dictionary = Dictionary(corpus, lists)
    places = numpy.fromiter(map(dictionary.__getitem__, labels), numpy.int32, len(labels))
    if len(dictionary) != len(labels):
        raise ValueError("a name of %s is there twice" % ("users" if lists else "items"))
    dictionary.tell()
    return known(places, "names")


class Edges(Source):
    """Two arrays of integers: edges from the nodes of one to those of the other."""

    format = "adjacency"
    formats = ("adjacency", "lists")

    def __init__(self, sources: Any, targets: Any) -> None:
        super().__init__()
        self._ends = [numpy.asarray(end) for end in (sources, targets)]
        if any(end.ndim != 1 or end.dtype.kind not in "iu" for end in self._ends) or len(self._ends[0]) != len(self._ends[1]):
            raise ValueError("edges are two arrays of integers, of one length; these are %s of %s and %s of %s"
                             % (self._ends[0].shape, self._ends[0].dtype, self._ends[1].shape, self._ends[1].dtype))

    def give(self, corpus: Corpus) -> None:
        """A line of the corpus is a node, then the nodes that its edges lead to."""
        order = numpy.argsort(self._ends[0], kind="stable")
        sources, targets = self._ends[0][order].astype(numpy.int64), self._ends[1][order].astype(numpy.int64)
        begins = numpy.flatnonzero(numpy.diff(sources, prepend=sources[:1] - 1))
        lines = numpy.insert(targets, begins, sources[begins])
        starts = numpy.append(begins + numpy.arange(len(begins)), len(lines))
        corpus.sentences(numbers(lines, "nodes"), starts)


def _of_networkx(graph: Any) -> Sentences:
    source = Sentences([node, *neighbours] for node, neighbours in graph.adjacency() if neighbours)
    source.format, source.formats = "adjacency", ("adjacency",)
    return source


def _is_edges(data: Any) -> bool:
    if isinstance(data, numpy.ndarray):
        return data.ndim == 2 and data.shape[0] == 2 and data.dtype.kind in "iu"
    return isinstance(data, tuple) and len(data) == 2 and all(isinstance(end, numpy.ndarray) and end.ndim == 1 for end in data)


def _is_named(first: Any) -> bool:
    return (isinstance(first, tuple) and len(first) == 2 and isinstance(first[0], TOKEN) and isinstance(first[1], Iterable)
            and not isinstance(first[1], (str, bytes)))


def _of_iterable(data: Iterable) -> Source:
    """Tells paths, sentences and named lists apart by the first one."""
    rest = iter(data)
    first = list(itertools.islice(rest, 1))
    if first and isinstance(first[0], (str, os.PathLike)):
        if not isinstance(data, (list, tuple)):
            raise TypeError("the data begins with %.80r: wanted a list of paths, or an iterable of iterables of tokens" % first[0])
        return Paths([os.fspath(path) for path in data])
    everything = itertools.chain(first, rest)
    return NamedLists(everything) if first and _is_named(first[0]) else Sentences(everything)


def source_of(data: Any, columns: Optional[Sequence[str]], users: Any, items: Any) -> Source:
    """Returns the source that reads this data. What names parts that the data has not is refused."""
    is_sparse = hasattr(data, "tocsr") and hasattr(data, "shape")  # before Mapping, which a matrix of keys is, too
    if not is_sparse and (users is not None or items is not None):
        raise ValueError("users= and items= name the rows and columns of a sparse matrix, and the data is a %s"
                         % type(data).__name__)
    if is_sparse and columns is None:
        return Sparse(data, users, items)
    if not is_sparse and hasattr(data, "__arrow_c_stream__"):
        return _arrow.source_of(data, columns)
    if columns is not None:
        raise ValueError("columns= names those of a table, and the data is a %s; the first line of a file may name its own"
                         % type(data).__name__)
    return _without_columns(data)


def _without_columns(data: Any) -> Source:
    if isinstance(data, (str, os.PathLike)):
        return Paths([os.fspath(data)])
    if isinstance(data, Mapping):
        return NamedLists(data.items())
    if _is_edges(data):
        return Edges(data[0], data[1])
    if callable(getattr(data, "adjacency", None)):
        return _of_networkx(data)
    if isinstance(data, Iterable) and not isinstance(data, bytes):
        return _of_iterable(data)
    raise TypeError("a %s is no data for fit(): wanted paths, iterables of tokens, named lists, a sparse matrix, an Arrow table or "
                    "edges" % type(data).__name__)
