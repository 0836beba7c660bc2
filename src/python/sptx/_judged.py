"""What Run.evaluate() judges by: files, which the library reads itself, and data of the kinds that fit() takes, given to it as a
corpus of the run's context."""

import ctypes
import itertools
import os
from collections.abc import Iterable, Mapping
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

import numpy

from . import _library
from ._corpus import Corpus, Dictionary, Source, known
from ._data import BLOCK, Sparse, source_of
from ._table import path_of


def is_path(data: Any) -> bool:
    return isinstance(data, (str, bytes, os.PathLike))


class Judged:
    """A file or a corpus, as the library takes them; it lives as long as the call."""

    def __init__(self, path: Optional[bytes] = None, corpus: Optional[Corpus] = None) -> None:
        self._kept = (path, corpus)
        self._struct = _library.Data(path, None if corpus is None else corpus._handle.pointer)
        self.pointer = ctypes.byref(self._struct)


def _as_corpus(run: Any, source: Source, settings: Dict[str, Any]) -> Judged:
    keys = {"corpus.format": source.format, **settings}
    corpus = Corpus(run._context, [("%s=%s" % key).encode() for key in keys.items()])
    source.give(corpus)
    return Judged(corpus=corpus)


def _keys_of(run: Any) -> Dict[str, str]:
    """Reads the keys of [corpus] that the run was trained with from its config.ini; nothing where that is lost."""
    found: Dict[str, str] = {}
    for folder in (run._path, os.path.dirname(os.path.abspath(run._path))):
        try:
            with open(os.path.join(folder, "config.ini"), encoding="utf-8", errors="surrogateescape") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        inside = itertools.takewhile(lambda line: not line.startswith("["),
                                     itertools.islice(itertools.dropwhile(lambda line: line != "[corpus]", lines), 1, None))
        found = {key.strip(): value.strip() for key, mark, value in (line.partition("=") for line in inside) if mark}
        break
    return found


def _refuse_paths(source: Source, what: str) -> None:
    if "corpus.path" in source.settings:
        raise ValueError("%s= is one file, or a folder of files, or data; not a list of paths" % what)


def lists(run: Any, data: Any, what: str, columns: Optional[Sequence[str]], users: Any, items: Any, format: Optional[str]) -> Judged:
    """Returns lists and their items: a file, or what fit() takes for lists, pairs and lines of a target and its contexts."""
    if is_path(data):
        return Judged(path_of(data))
    keys = _keys_of(run)
    own = keys.get("format")
    source = source_of(data, columns, users, items, format or ("adjacency" if own == "adjacency" else None))
    _refuse_paths(source, what)
    usual = [name for name in (own, "lists", "pairs") if name in source.formats and name in ("lists", "pairs", "adjacency")]
    if not usual and source.format != "pairs":
        raise ValueError("%s= is %s; wanted lists, pairs, a frame, or a matrix of users x items" % (what, source.format))
    source.read_as(format or (usual or ["pairs"])[0])
    least = keys.get("min_rating", "none")
    if isinstance(source, Sparse) and least not in ("none", ""):
        source.min_rating = float(least)
    settings = {"lists": {"examples.mode": "user"}, "pairs": {"corpus.min_rating": least or "none"}}
    return _as_corpus(run, source, settings.get(source.format, {}))


def edges(run: Any, data: Any, what: str, columns: Optional[Sequence[str]]) -> Judged:
    """Returns the edges of a graph: a file, or what fit(format="graph") takes."""
    if is_path(data):
        return Judged(path_of(data))
    source = source_of(data, columns if hasattr(data, "__arrow_c_stream__") else None, None, None, "graph").read_as("graph")
    _refuse_paths(source, what)
    return _as_corpus(run, source, {})


class _Labels(Source):
    """Pairs of a node and a label."""

    format = "pairs"
    formats = ("pairs",)

    def __init__(self, pairs: Iterator[Tuple[Any, Any]]) -> None:
        super().__init__()
        self._pairs = pairs

    def give(self, corpus: Corpus) -> None:
        nodes, names = Dictionary(corpus, lists=True), Dictionary(corpus)
        while True:
            block = list(itertools.islice(self._pairs, BLOCK))
            if not block:
                return
            numbers = [numpy.fromiter((dictionary[pair[part]] for pair in block), numpy.int32, len(block))
                       for part, dictionary in ((0, nodes), (1, names))]
            nodes.tell()
            names.tell()
            corpus.pairs(known(numbers[0], "nodes"), known(numbers[1], "labels"))


def _each_label(pairs: Iterable) -> Iterator[Tuple[Any, Any]]:
    """Yields a pair for each label of a node, which has one or several."""
    for number, pair in enumerate(pairs):
        if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) and not isinstance(pair, numpy.ndarray) or len(pair) != 2:
            raise TypeError("label %d is %.80r, wanted a pair of a node and its label, or its labels" % (number, pair))
        node, given = pair
        several = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
        for label in given if several else (given,):
            yield node, label


def labels(run: Any, data: Any, columns: Optional[Sequence[str]]) -> Judged:
    """Returns the labels of nodes: a file; a dict or a Series of a label, or labels, by node; pairs of both; or a table's two
    columns."""
    if is_path(data):
        return Judged(path_of(data))
    series = hasattr(data, "index") and hasattr(data, "items") and not hasattr(data, "columns")
    if isinstance(data, Mapping) or series:
        source: Source = _Labels(_each_label(data.items()))
    elif hasattr(data, "__arrow_c_stream__"):
        source = source_of(data, columns, None, None).read_as("pairs")
    elif isinstance(data, Iterable):
        source = _Labels(_each_label(data.tolist() if isinstance(data, numpy.ndarray) else data))
    else:
        raise TypeError("labels= is a %s; wanted a file, a dict of labels by node, pairs of both, or a table of two columns" %
                        type(data).__name__)
    return _as_corpus(run, source, {})
