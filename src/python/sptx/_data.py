"""The kinds of data that fit() accepts. Each has a Source class, which passes the data to a corpus in blocks.

    source.format       a value of corpus.format
    source.settings     values of further keys
    source.give(corpus) reads the data into the corpus, once

No library is imported for its kind of data: the kind is known from the attributes of the object.
"""

import difflib
import itertools
import os
from collections.abc import Iterable, Mapping
from typing import Any, Dict, Iterator, List, Optional, Sequence

import numpy

from . import _arrow
from ._corpus import WHOLE, Corpus, Dictionary, Source, as_word, is_token, known, numbers, text, walked
from ._errors import tell
from ._rows import COLUMNS_MOST, LOOKED_AT, ArrayRows, FieldRows, Taken, TupleRows, is_missing


class Paths(Source):
    """Paths of files, which the library itself reads."""

    formats = ("text", "lists", "adjacency", "documents", "pairs", "graph", "triples")

    def __init__(self, paths: List[str]) -> None:
        super().__init__()
        for path in paths:
            _refuse_text(path)
            if '"' in path or "\n" in path:
                raise ValueError("the path %r has a double quote or a line's end in it" % path)
        self.settings["corpus.path"] = " ".join('"%s"' % path for path in paths)


def _refuse_text(path: str) -> None:
    """Raises ValueError if a path is probably a text that was passed by mistake: no such file exists, and it looks like words."""
    is_text = bool(path.split()) and (len(path.split()) > 1 or path.isalnum())
    if is_text and not os.path.exists(path):
        raise ValueError("%r is no file. A text is given as a list of sentences, each a list of its words: "
                         "sptx.fit([line.split() for line in text.splitlines()], ..)" % (path if len(path) < 60 else path[:57] + ".."))


def _sized(sentence: Any, number: int) -> Any:
    """Returns a sentence as a sequence; an iterator becomes a list."""
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
    """An iterable of sentences, each an iterable of tokens."""

    def __init__(self, sentences: Iterable) -> None:
        super().__init__()
        self._sentences = sentences

    def give(self, corpus: Corpus) -> None:
        said = {"text": "word = token; a sentence an element", "lists": "item = token; a list without a name an element", "adjacency": "target = first token, context = the others",
                "documents": "word = token; a document without a name an element"}
        if self.format in said:
            corpus.say(said[self.format])
        for tokens, starts in walked(self._sentences, _plain):
            corpus.sentences(tokens, starts)


def _plain(sentence: Any, number: int) -> List[bytes]:
    return [as_word(token) for token in _sized(sentence, number)]


class NamedLists(Source):
    """An iterable of lists or documents: each is a pair of a name and an iterable of items or words."""

    format = "lists"
    formats = ("lists", "documents")

    def __init__(self, lists: Iterable) -> None:
        super().__init__()
        self._lists = lists

    def give(self, corpus: Corpus) -> None:
        corpus.say("list = name, item = token; named lists" if self.format == "lists" else "document = name, word = token; named documents")
        names: List[bytes] = []
        for tokens, starts in walked(self._items(names), _plain):
            corpus.sentences(tokens, starts, text(names))
            names.clear()

    def _items(self, names: List[bytes]) -> Iterator[Any]:
        for number, pair in enumerate(self._lists):
            name, items = _pair(pair, number)
            names.append(as_word(name))
            yield items


def _pair(pair: Any, number: int) -> Any:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError("list %d is %.80r, wanted a pair of its name and its items" % (number, pair))
    return pair


class Sparse(Source):
    """A sparse matrix of SciPy: rows are lists, columns are items."""

    format = "lists"
    formats = ("lists", "pairs")

    def __init__(self, matrix: Any, users: Any, items: Any) -> None:
        super().__init__()
        if len(matrix.shape) != 2:
            raise ValueError("a sparse array of shape %s is no matrix of users x items" % (matrix.shape,))
        _check_places(matrix)
        self._matrix = matrix
        self._users = _labels(users, matrix.shape[0], "users", "rows")
        self._items = _labels(items, matrix.shape[1], "items", "columns")
        self.min_rating: Optional[float] = None

    def weigh(self) -> None:
        """Uses the entries of the matrix as pairs, with their values as weights."""
        self.format = "pairs"

    def give(self, corpus: Corpus) -> None:
        corpus.say("list = row, item = column, %s; a matrix of %d x %d, zeros are no entries"
                   % ("weight = entry" if self.format == "pairs" else "rating = entry", *self._matrix.shape))
        matrix = self._matrix.tocsr()
        columns, starts = matrix.indices, matrix.indptr
        if self.format == "pairs":
            self._give_pairs(corpus, columns[:starts[-1]], starts, matrix.data[:starts[-1]])
            return
        kept = self._kept(matrix.data)
        if not kept.all():
            starts = numpy.concatenate([[0], numpy.cumsum(kept)])[starts]
            columns = columns[kept]
        users = None if self._users is None else _learn(corpus, self._users, True)
        if self._items is None:
            corpus.sentences(numbers(columns, "columns"), starts, users)
        else:
            _learn(corpus, self._items, False)
            corpus.sentences(known(columns, "columns"), starts, users)

    def _give_pairs(self, corpus: Corpus, columns: Any, starts: Any, values: Any) -> None:
        rows = numpy.repeat(numpy.arange(len(starts) - 1, dtype=columns.dtype), numpy.diff(starts))
        sides = []
        for labels, places, lists in ((self._users, rows, True), (self._items, columns, False)):
            if labels is not None:
                _learn(corpus, labels, lists)
            sides.append(numbers(places, "entries") if labels is None else known(places, "entries"))
        corpus.pairs(*sides, values)

    def _kept(self, values: Any) -> Any:
        """Returns a mask of the entries of the matrix that are used. Warns of entries, or values of entries, that are not used."""
        zeros = values == 0
        if self.min_rating is None:
            kept = values > 0
        elif numpy.isnan(values).any():
            raise ValueError("the matrix has a rating that is NaN, and corpus.min_rating is set")
        else:
            kept = (values >= self.min_rating) & ~zeros
        negative = 0 if self.min_rating is not None else int((values < 0).sum())
        left = [("stored zeros", int(zeros.sum())), ("negative values", negative), ("NaN", int((values != values).sum()))]
        if any(count for _, count in left):
            tell("entries of the matrix are left out: %s" % ", ".join("%d %s" % (count, what) for what, count in left if count))
        used = values[kept]
        if self.min_rating is None and used.size and used.min() < used.max():
            tell("ratings %.10g to %.10g found in the matrix: all count alike; corpus.min_rating leaves lower ones out, "
                 "corpus.weights = log weighs by them"
                 % (used.min(), used.max()))
        return kept


def _check_places(matrix: Any) -> None:
    """Raises if the indices of a sparse matrix do not fit its shape: SciPy would access memory out of bounds."""
    ends = {"csr": [("indices", 1)], "csc": [("indices", 0)], "coo": [("row", 0), ("col", 1)]}.get(getattr(matrix, "format", ""), [])
    for name, side in ends:
        places, what = getattr(matrix, name), ("row", "column")[side]
        bad = numpy.flatnonzero((places < 0) | (places >= matrix.shape[side]))
        if len(bad):
            raise ValueError("entry %d of the sparse matrix is in %s %d, and its shape %s has %ss 0 to %d"
                             % (bad[0], what, places[bad[0]], tuple(matrix.shape), what, matrix.shape[side] - 1))
    if len(ends) != 1:
        return
    starts, major = numpy.asarray(matrix.indptr), matrix.shape[1 - ends[0][1]]
    if len(starts) != major + 1 or starts[0] != 0 or (numpy.diff(starts) < 0).any() or starts[-1] > min(len(places), len(matrix.data)):
        raise ValueError("indptr of the sparse matrix does not rise from 0 to at most %d entries in %d steps, as its shape %s wants"
                         % (len(places), major, tuple(matrix.shape)))


def _labels(labels: Any, count: int, key: str, what: str) -> Optional[List[Any]]:
    if labels is None:
        return None
    found = labels.tolist() if isinstance(labels, numpy.ndarray) else list(labels)
    if len(found) != count:
        raise ValueError("%s = %d names, and the matrix has %d %s" % (key, len(found), count, what))
    return found


def _learn(corpus: Corpus, labels: List[Any], lists: bool) -> Any:
    """Adds all labels to the corpus' dictionary, in order, and returns their numbers."""
    dictionary = Dictionary(corpus, lists)
    places = numpy.fromiter(map(dictionary.__getitem__, labels), numpy.int32, len(labels))
    if len(dictionary) != len(labels):
        raise ValueError("a name of %s is there twice" % ("users" if lists else "items"))
    dictionary.tell()
    return known(places, "names")


class Edges(ArrayRows):
    """Edges as two arrays of integers: from each node of the first to the node at the same index of the second."""

    def __init__(self, sources: Any, targets: Any, weights: Any = None) -> None:
        ends = [numpy.asarray(end) for end in (sources, targets)]
        if any(end.ndim != 1 or end.dtype.kind not in "iu" for end in ends) or len(ends[0]) != len(ends[1]):
            raise ValueError("edges are two arrays of integers of the same length; these are %s of %s and %s of %s"
                             % (ends[0].shape, ends[0].dtype, ends[1].shape, ends[1].dtype))
        values = [] if weights is None else [_weights(weights, len(ends[0]))]
        super().__init__(ends + values, "the arrays", None, Taken("graph", (0, 1, 2 if values else None)))
        self.formats = ("graph", "adjacency", "lists")

    def give(self, corpus: Corpus) -> None:
        if self.format == "graph":
            corpus.say("source = first array, target = second, weight = %s; arrays" % ("third" if len(self._columns) > 2 else "none"))
            super().give(corpus)
        else:
            self._give_lines(corpus)

    def _give_lines(self, corpus: Corpus) -> None:
        """For adjacency: adds one line for each node: the node, then the nodes to which its edges lead."""
        corpus.say("target = first array, context = second; arrays")
        order = numpy.argsort(self._columns[0], kind="stable")
        sources, targets = self._columns[0][order].astype(numpy.int64), self._columns[1][order].astype(numpy.int64)
        begins = numpy.flatnonzero(numpy.diff(sources, prepend=sources[:1] - 1))
        lines = numpy.insert(targets, begins, sources[begins])
        starts = numpy.append(begins + numpy.arange(len(begins)), len(lines))
        corpus.sentences(numbers(lines, "nodes"), starts)


def _weights(weights: Any, count: int) -> Any:
    found = numpy.asarray(weights)
    if found.dtype.kind not in "iufb" or found.shape != (count,):
        raise ValueError("weights= are %s of %s, wanted %d numbers, one for each edge" % (found.shape, found.dtype, count))
    return found


def _of_networkx(graph: Any) -> Sentences:
    _tell_alone(graph, list(graph.edges()))
    source = Sentences([node, *neighbours] for node, neighbours in graph.adjacency() if neighbours)
    source.format, source.formats = "adjacency", ("adjacency",)
    return source


def _edges_of_networkx(graph: Any, weights: Any) -> TupleRows:
    """Returns the edges of a networkx graph, with the edge attribute `weights` as their weights; the default is "weight", if all edges have it."""
    if weights is not None and not isinstance(weights, str):
        raise TypeError("weights= of a networkx graph is the name of its edges' attribute, and not a %s" % type(weights).__name__)
    edges = list(graph.edges(data=weights or "weight"))
    _tell_alone(graph, edges)
    lacking = [edge[:2] for edge in edges if edge[2] is None]
    if lacking and (weights is not None or len(lacking) < len(edges)):
        raise ValueError("the edge %.80r has no attribute %r, and others have one: name another with weights="
                         % (lacking[0], weights or "weight"))
    if lacking and weights is None:
        _tell_attributes(graph)
    edges = _summed(edges) if _has_parallels(graph) else [edge[:2] for edge in edges] if lacking else edges
    weighed = bool(edges) and len(edges[0]) > 2
    source = TupleRows(edges, "the graph", None, Taken("graph", (0, 1, 2 if weighed else None)))
    source.said = "source = node, target = node, weight = %s; a graph of networkx" % (repr(weights or "weight") if weighed else "none")
    source.defaults["graph.directed"] = "yes" if graph.is_directed() else "no"
    return source


def _tell_attributes(graph: Any) -> None:
    """Warns if all edges have an attribute that is a number, but none has one called weight."""
    common: Optional[set] = None
    for _, _, held in graph.edges(data=True):
        own = {name for name, value in (held or {}).items() if isinstance(value, (*WHOLE, float, numpy.floating))}
        common = own if common is None else common & own
        if not common:
            return
    if common:
        tell("edges have the attribute %s, which is not used: weights=%r takes it" % (" and ".join(map(repr, sorted(common, key=str))),
                                                                                    min(common, key=str)))


def _has_parallels(graph: Any) -> bool:
    return callable(getattr(graph, "is_multigraph", None)) and graph.is_multigraph()


def _summed(edges: List[Any]) -> List[Any]:
    """Merges parallel edges into one edge with the sum of their weights, as networkx' adjacency matrix does; an edge without a
    weight counts as 1. If no edges are parallel and none has a weight, the edges are returned without weights."""
    weights: Dict[Any, Any] = {}
    for source, target, weight in edges:
        weights[source, target] = weights.get((source, target), 0) + (1 if weight is None else weight)
    plain = len(weights) == len(edges) and all(edge[2] is None for edge in edges)
    return [ends if plain else (*ends, weight) for ends, weight in weights.items()]


def _tell_alone(graph: Any, edges: List[Any]) -> None:
    """Warns of nodes that are left out because no edge joins them to another node."""
    met = {end for edge in edges if edge[0] != edge[1] for end in edge[:2]}
    nodes = getattr(graph, "nodes", ())
    alone = [node for node in nodes if node not in met]
    if alone:
        tell("%d of %d nodes have no edge to another node and are left out: %s%s"
             % (len(alone), len(nodes), ", ".join("%.40r" % (node,) for node in alone[:3]), ", .." if len(alone) > 3 else ""))


def _is_edges(data: Any) -> bool:
    if isinstance(data, numpy.ndarray):
        return data.ndim == 2 and data.shape[0] == 2 and data.dtype.kind in "iu"
    return isinstance(data, tuple) and len(data) == 2 and all(isinstance(end, numpy.ndarray) and end.ndim == 1 for end in data)


def _edges_of_matrix(matrix: Any, weights: Any) -> Edges:
    """Returns the edges of a square matrix: each entry is an edge from its row to its column. If the entries are not all equal, they are weights."""
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or weights is not None:
        raise ValueError("weights= of a sparse matrix are its entries" if weights is not None else
                         "a sparse array of shape %s is no graph: wanted nodes x nodes" % (matrix.shape,))
    _check_places(matrix)
    places = matrix.tocoo(copy=True)
    places.sum_duplicates()
    met, kept = numpy.zeros(matrix.shape[0], bool), (places.row != places.col) & (places.data != 0)
    met[places.row[kept]] = met[places.col[kept]] = True
    if not met.all():
        tell("%d of %d nodes have no edge to another node and are left out, beginning with row %d"
             % (len(met) - met.sum(), len(met), numpy.argmin(met)))
    alike = len(places.data) == 0 or (places.data[0] != 0 and (places.data == places.data[0]).all())
    return Edges(places.row, places.col, None if alike else places.data)


def _graph_of(data: Any, columns: Optional[Sequence[Any]], weights: Any) -> Source:
    """Returns the source of a graph's edges. An array is [2, edges], like edge_index of torch_geometric, or [edges, 2 or 3]; another square array
    is a matrix of nodes x nodes."""
    if hasattr(data, "tocoo") and hasattr(data, "shape"):
        return _edges_of_matrix(data, weights)
    if callable(getattr(data, "adjacency", None)):
        return _edges_of_networkx(data, weights)
    if isinstance(data, (tuple, list)) and len(data) in (2, 3) and all(is_array(end) for end in data):
        if weights is not None and len(data) == 3:
            raise ValueError("weights= and a third array are both weights of the edges: give one of them")
        return Edges(*data[:2], weights if len(data) == 2 else data[2])
    if is_array(data):
        array = numpy.asarray(data)
        if columns is not None and array.ndim == 2 and array.shape[0] == 2:
            raise ValueError("columns= names parts of rows, and an array [2, edges] has the two ends of edges in its rows")
        if columns is not None and array.ndim == 2 and weights is None:
            return _rows_of_array(array, columns)
        if array.ndim == 2 and array.shape[0] == array.shape[1] > 3:
            return _edges_of_matrix(Dense(array), weights)
        if array.ndim == 2 and array.shape[0] == 2 and array.shape[1] != 2 or array.shape == (2, 2):
            return Edges(*array, weights)
        if array.ndim != 2 or array.shape[1] not in (2, 3):
            raise ValueError("an array of edges has a shape of [2, edges], [edges, 2] or [edges, 3], and this one is %s" % (array.shape,))
        if array.shape[1] == 2 and array.dtype.kind in "iu":
            return Edges(*array.T, weights)
        if weights is None:
            return _rows_of_array(array, columns)
    if weights is not None:
        raise ValueError("weights= of a table or of tuples are their third column: (source, target, weight)")
    return _rows(data, columns, "graph", "two arrays of integers, an array [2, edges], an iterable of (node, node) or (node, node, weight), "
                 "a table with such columns, a sparse matrix, or a networkx graph")


def is_array(data: Any) -> bool:
    return hasattr(data, "__array__") and len(getattr(data, "shape", ())) > 0 and not hasattr(data, "__arrow_c_stream__")


class Dense:
    """A two-dimensional array with those attributes of SciPy's matrices that this module reads. NaN and 0 count as missing entries."""

    def __init__(self, array: Any) -> None:
        array = numpy.asarray(array)
        self.shape, self.format = array.shape, "dense"
        self.row, self.col = numpy.nonzero((array != 0) & (array == array))
        self.indices, self.data = self.col, array[self.row, self.col]
        self.indptr = numpy.concatenate([[0], numpy.cumsum(numpy.bincount(self.row, minlength=self.shape[0]))])

    def tocsr(self) -> "Dense":
        return self

    def tocoo(self, copy: bool = False) -> "Dense":
        return self

    def sum_duplicates(self) -> None:
        """There are none."""


def _rows_of_array(array: Any, columns: Any) -> FieldRows:
    what = "the array of shape %s" % (list(array.shape),)
    return TupleRows(array.tolist(), what, columns) if array.dtype.kind in "OSU" else ArrayRows(array.T, what, columns)


def _rows(data: Any, columns: Any, format: str, wanted: str) -> Source:
    """Returns rows of fields, whatever holds them."""
    if hasattr(data, "__arrow_c_stream__"):
        return _arrow.source_of(data, columns)
    if isinstance(data, (tuple, list)) and len(data) in (2, 3) and all(is_array(column) for column in data):
        return ArrayRows(data, "the arrays", columns)
    if is_array(data):
        array = numpy.asarray(data)
        if array.ndim != 2 or not 2 <= array.shape[1] <= COLUMNS_MOST:
            raise ValueError("an array of %s has a row for each, and two or three columns; this one has the shape %s" % (format, array.shape))
        return _rows_of_array(array, columns)
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, Mapping)) and not hasattr(data, "tocoo"):
        return TupleRows(data, "the tuples", columns)
    raise TypeError("a %s holds no %s for fit(): wanted paths, %s" % (type(data).__name__, format, wanted))


def _of_array(array: Any, format: Optional[str], columns: Any, users: Any, items: Any) -> Source:
    """Returns the source of a two-dimensional array of numbers; the caller's format says what the numbers mean."""
    is_matrix = array.dtype.kind in "bf" or (array.size and bool(((array == 0) | (array == 1)).all()))
    if format is None and columns is not None:
        format = "pairs"
    if format is None:
        raise ValueError("an array of shape %s could be several things; say which by format=: \"pairs\" (%s), \"lists\" (%s), \"graph\" (%s), "
                         "\"triples\" (rows of head, relation, tail), \"text\" (a row is a sentence of ids)"
                         % (array.shape, "rows of list, item[, rating]; a wider array is a matrix of lists x items",
                            "a matrix of lists x items if it has 0 and 1, or floats; otherwise a row is a list of ids",
                            "[2, edges], rows of source, target[, weight], or a square matrix"))
    if format == "pairs" and array.shape[1] in (2, 3) and users is None and items is None:
        return _rows_of_array(array, columns)
    if format == "pairs" or (format == "lists" and (is_matrix or users is not None or items is not None)):
        return Sparse(Dense(array), users, items)
    if format == "documents":
        raise ValueError("an array of shape %s of numbers holds no documents; format=\"text\" reads rows as sentences of ids" % (array.shape,))
    return Edges(*array) if format == "adjacency" and _is_edges(array) else Sentences(array)


def _is_named(first: Any) -> bool:
    return (isinstance(first, tuple) and len(first) == 2 and is_token(first[0]) and isinstance(first[1], Iterable)
            and not isinstance(first[1], (str, bytes)))


def _of_iterable(data: Iterable, format: Optional[str], columns: Any) -> Source:
    """Returns the Source that reads an iterable. Its first elements tell what it contains: paths, named lists, rows of fields or sentences."""
    rest = iter(data)
    first = list(itertools.islice(rest, 1))
    if first and isinstance(first[0], (str, os.PathLike)):
        if not isinstance(data, (list, tuple)):
            raise TypeError("the data begins with %.80r: wanted an iterable of iterables of tokens (of texts: [text.split() for text "
                            "in texts]), or a list of paths" % first[0])
        return Paths([os.fspath(path) for path in data])
    if columns is None and first and _is_named(first[0]):
        return NamedLists(itertools.chain(first, rest))
    if columns is not None or format in ("pairs", "documents") or (format is None and first and _is_row(first[0])):
        first += itertools.islice(rest, LOOKED_AT)
        if columns is not None or format == "pairs" or all(map(_is_row, first)) and len(set(map(len, first))) == 1:
            return TupleRows(itertools.chain(first, rest), "the tuples", columns)
    return Sentences(itertools.chain(first, rest))


def _is_row(first: Any) -> bool:
    """True for a row of fields: a tuple of two or three names or numbers. A list of words is a sentence."""
    return isinstance(first, tuple) and len(first) in (2, 3) and all(is_token(field) or is_missing(field) or isinstance(field, WHOLE)
                                                                     for field in first)


def _are_paths(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike)) or (isinstance(data, (list, tuple)) and len(data) > 0
                                                    and all(isinstance(path, (str, os.PathLike)) for path in data))


def source_of(data: Any, columns: Optional[Sequence[Any]], users: Any, items: Any, format: Optional[str] = None,
              weights: Any = None) -> Source:
    """Returns the source that reads this data. Raises if an argument names something that the data lacks."""
    if format is not None and format not in Paths.formats:
        near = difflib.get_close_matches(str(format), Paths.formats, 1)
        raise ValueError("format = %r is none of %s%s" % (format, ", ".join(Paths.formats), "; did you mean %r?" % near[0] if near else ""))
    if weights is not None and (_are_paths(data) or format != "graph"):
        raise ValueError("weights= are those of edges, given with format=\"graph\"; edges in files have them in their third column")
    if _are_paths(data):
        if users is not None or items is not None:
            raise ValueError("users= and items= name the rows and columns of a matrix, and the data is in files")
        paths = Paths([os.fspath(path) for path in ([data] if isinstance(data, (str, os.PathLike)) else data)])
        return paths if columns is None else _columns_of_files(paths, columns)
    is_sparse = hasattr(data, "tocsr") and hasattr(data, "shape")  # checked before Mapping, since a dok_matrix is a Mapping, too
    is_matrix = is_sparse or (isinstance(data, numpy.ndarray) and data.ndim == 2 and data.dtype.kind in "biuf")
    if not is_matrix and (users is not None or items is not None):
        raise ValueError("users= and items= name the rows and columns of a matrix, and the data is a %s" % type(data).__name__)
    if columns is not None and (is_sparse or isinstance(data, Mapping) or callable(getattr(data, "adjacency", None))):
        raise ValueError("columns= names those of a table, of tuples, of an array or of a file, and the data is a %s" % type(data).__name__)
    if format == "graph":
        return _graph_of(data, columns, weights)
    if format == "triples":
        return _rows(data, columns, "triples", "three arrays of integers, an array [triples, 3], an iterable of (head, relation, tail), or a "
                     "table with such columns")
    if is_sparse:
        return Sparse(data, users, items)
    if _is_series(data) and columns is None:
        return _of_series(data, format)
    if hasattr(data, "__arrow_c_stream__"):
        return _arrow.source_of(data, columns)
    if is_matrix and not (format is None and columns is None and users is None and items is None and _is_edges(data)):
        return _of_array(data, format, columns, users, items)
    return _of_object(data, format, columns)


def _columns_of_files(source: Paths, columns: Any) -> Paths:
    """Sets the key corpus.columns for files: to names from their header line, or numbers of columns, counted from 1."""
    if isinstance(columns, str) or not 2 <= len(columns) <= 3:
        raise ValueError("columns=%r: wanted two or three names, or numbers from 1 on, such as (\"user\", \"item\")" % (columns,))
    source.settings["corpus.columns"] = ",".join(str(column) for column in columns)
    source.formats, source.format = ("pairs", "graph", "triples"), "pairs"
    return source


def _is_series(data: Any) -> bool:
    """True for a pandas Series, whose values are sentences, or lists of items (as from groupby().apply(list))."""
    return all(hasattr(data, name) for name in ("index", "items", "to_frame"))


def _of_series(data: Any, format: Optional[str]) -> Source:
    """Reads a Series as named lists if format is "lists", or if it is None and the index has a name (as from groupby());
    otherwise as sentences."""
    if getattr(data.index, "nlevels", 1) > 1 or getattr(data.dtype, "kind", "O") in "biuf":
        raise ValueError("a Series of numbers holds no lists%s" % ("; %d levels of its index and its values are the columns of a frame: "
                         "series.reset_index(name='n')" % data.index.nlevels if data.index.nlevels > 1 else ": wanted a list in each place"))
    named = format == "lists" or (format is None and data.index.name is not None)
    return NamedLists(data.items()) if named else _of_iterable(data, format, None)


def _of_object(data: Any, format: Optional[str], columns: Any) -> Source:
    if isinstance(data, Mapping):
        return NamedLists(data.items())
    if columns is None and _is_edges(data) and format != "pairs":
        return Edges(data[0], data[1])
    if callable(getattr(data, "adjacency", None)):
        return _of_networkx(data) if format == "adjacency" else _edges_of_networkx(data, None)
    if isinstance(data, (tuple, list)) and len(data) in (2, 3) and format == "pairs" and all(is_array(column) for column in data):
        return ArrayRows(data, "the arrays", columns)
    if isinstance(data, numpy.ndarray):
        data = data.tolist() if data.ndim < 2 or data.dtype.kind not in "OSU" else [tuple(row) for row in data.tolist()]
    if isinstance(data, Iterable) and not isinstance(data, bytes):
        return _of_iterable(data, format, columns)
    raise TypeError("a %s is no data for fit(): wanted paths, iterables of tokens, named lists, a matrix, a table, tuples, arrays or edges"
                    % type(data).__name__)
