"""Test data for Run.evaluate(): the path of a file, which the library reads itself, or data in memory of any kind that fit() takes,
which is converted to a corpus for the library."""

import ctypes
from collections.abc import Iterable, Mapping
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

import numpy

from . import _library
from ._corpus import Corpus, Source
from ._data import Sparse, source_of
from ._rows import FieldRows, Taken, TupleRows
from ._table import is_path, path_of


class Judged:
    """Test data as a struct for the library: the path of a file, or a corpus. Keep the object alive until the call returns."""

    def __init__(self, path: Optional[bytes] = None, corpus: Optional[Corpus] = None) -> None:
        self._kept = (path, corpus)
        self.pointer = ctypes.pointer(_library.Data(path, None if corpus is None else corpus._handle.pointer))


def file(path: Any) -> Judged:
    return Judged(path_of(path))


def _as_corpus(run: Any, source: Source, settings: Dict[str, Any]) -> Judged:
    keys = {"corpus.format": source.format, **source.settings, **settings}
    corpus = Corpus(run._context, [("%s=%s" % key).encode() for key in keys.items()])
    if source.said:
        corpus.say(source.said)
    source.give(corpus)
    return Judged(corpus=corpus)


def _refuse_paths(source: Source, what: str) -> None:
    if "corpus.path" in source.settings:
        raise ValueError("%s= is one file, or a folder of files, or data; not a list of paths" % what)


def lists(run: Any, data: Any, what: str, columns: Optional[Sequence[str]], users: Any, items: Any, format: Optional[str]) -> Judged:
    """Converts lists and their items to test data: from a file, or from data that fit() accepts as lists, pairs or adjacency."""
    if is_path(data):
        return Judged(path_of(data))
    own = run._key("corpus", "format")
    source = source_of(data, columns, users, items, format or ("adjacency" if own == "adjacency" else None))
    _refuse_paths(source, what)
    usual = [name for name in (own, "lists", "pairs") if name in source.formats and name in ("lists", "pairs", "adjacency")]
    if not usual and source.format != "pairs":
        raise ValueError("%s= is %s; wanted lists, pairs, a frame, or a matrix of users x items" % (what, source.format))
    source.read_as(format or (usual or ["pairs"])[0])
    least = run._key("corpus", "min_rating")
    if isinstance(source, Sparse) and least != "none":
        source.min_rating = float(least)
    settings = {"lists": {"examples.mode": "user"}, "pairs": {"corpus.min_rating": least}}
    return _as_corpus(run, source, settings.get(source.format, {}))


def _lines(run: Any, data: Any, what: str, columns: Optional[Sequence[str]], kind: str) -> Judged:
    if is_path(data):
        return Judged(path_of(data))
    source = source_of(data, columns if hasattr(data, "__arrow_c_stream__") else None, None, None, kind).read_as(kind)
    if what == "known" and kind == "triples" and "corpus.path" in source.settings:
        return Judged(path_of(source.settings["corpus.path"]))
    _refuse_paths(source, what)
    return _as_corpus(run, source, {})


def edges(run: Any, data: Any, what: str, columns: Optional[Sequence[str]]) -> Judged:
    """Converts the edges of a graph to test data: from a file, or from data that fit(format="graph") accepts."""
    return _lines(run, data, what, columns, "graph")


def triples(run: Any, data: Any, what: str, columns: Optional[Sequence[str]]) -> Judged:
    """Converts triples to test data: from a file, or from data that fit(format="triples") accepts."""
    return _lines(run, data, what, columns, "triples")


def _each_label(pairs: Iterable) -> Iterator[Tuple[Any, Any]]:
    """Yields (node, label) for each label. Each of `pairs` is (node, label) or (node, several labels)."""
    for number, pair in enumerate(pairs):
        if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) and not isinstance(pair, numpy.ndarray) or len(pair) != 2:
            raise TypeError("label %d is %.80r, wanted a pair of a node and its label, or its labels" % (number, pair))
        node, given = pair
        several = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
        for label in given if several else (given,):
            yield node, label


def _labels(pairs: Iterable) -> Source:
    return TupleRows(_each_label(pairs), "the labels", None, Taken("pairs", (0, 1, None)))


def labels(run: Any, data: Any, columns: Optional[Sequence[str]]) -> Judged:
    """Converts labels of nodes to test data: from a file, a dict or Series {node: label or labels}, pairs (node, label or labels),
    or a table of two columns."""
    if is_path(data):
        return Judged(path_of(data))
    series = hasattr(data, "index") and hasattr(data, "items") and not hasattr(data, "columns")
    if isinstance(data, Mapping) or series:
        source: Source = _labels(data.items())
    elif hasattr(data, "__arrow_c_stream__"):
        source = source_of(data, columns, None, None).read_as("pairs")
        if isinstance(source, FieldRows) and source.names and len(source.names) == 2:
            source.taken, source.said = Taken("pairs", (0, 1, None)), "name = %s, label = %s; the table" % tuple(source.names)
    elif isinstance(data, Iterable):
        source = _labels(data.tolist() if isinstance(data, numpy.ndarray) else data)
    else:
        raise TypeError("labels= is a %s; wanted a file, a dict of labels by node, pairs of both, or a table of two columns" %
                        type(data).__name__)
    return _as_corpus(run, source, {})
