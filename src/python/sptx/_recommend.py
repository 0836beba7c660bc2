"""The work of Run.recommend(), Run.tails() and Run.heads(): passes lists (their items, or a trained list's name) or questions about
triples to the library in one call."""

import ctypes
import os
from collections.abc import Iterable
from typing import Any, Dict, List, Optional, Tuple

import numpy

from . import _library
from ._context import count_of
from ._corpus import is_token, name_of
from ._library import library


class _Items:
    """Finds the rows of items. A dict caches them, so that each item is looked up once."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._rows: Dict[Any, Optional[int]] = {}
        self.unknown: Optional[str] = None  # error message about the first item that the run does not know

    def row(self, item: Any) -> Optional[int]:
        if item not in self._rows:
            found = ctypes.c_uint64()
            said = self._run._find(item, found)
            self.unknown = self.unknown or said
            self._rows[item] = found.value if said is None else None
        return self._rows[item]

    def rows(self, items: Iterable) -> List[int]:
        return [row for row in map(self.row, items.tolist() if isinstance(items, numpy.ndarray) else items) if row is not None]


def is_table(data: Any) -> bool:
    """True for a sparse matrix or a frame: data that fit() reads as many lists."""
    return hasattr(data, "tocsr") or (hasattr(data, "__arrow_c_stream__") and hasattr(data, "columns"))


def lists_of(data: Any) -> List[Any]:
    """Returns the lists= of recommend() as a list of lists. Of a sparse matrix: the column numbers of each row. Of a frame with one column: that
    column; with two: the items (second column) of each name in the first, in the order of first occurrence."""
    if not is_table(data):
        return [*data]
    if hasattr(data, "tocsr"):
        matrix = data.tocsr()
        return [columns.tolist() for columns in numpy.split(matrix.indices, matrix.indptr[1:-1])]
    columns = [column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
               for column in (data[name] for name in getattr(data, "column_names", data.columns))]
    if len(columns) > 2:
        raise ValueError("lists= is a frame of %d columns; wanted two, the list and the item, or one of lists: frame[[\"user\", \"item\"]]"
                         % len(columns))
    if len(columns) == 1:
        return columns[0]
    lists: Dict[Any, List[Any]] = {}
    for name, item in zip(*columns):
        lists.setdefault(name, []).append(item)
    return list(lists.values())


def _check_name(run: Any, name: Any) -> bytes:
    """Returns a list's name as bytes; it may be given as in Run.lists, too. KeyError if the run has rows of lists, but not of this one."""
    text = name_of(name)
    if run.lists:
        said = run._find("list:" + text)
        if said is not None and text.startswith("list:") and run._find(text) is None:
            text, said = text[len("list:"):], None
        if said is not None:
            raise KeyError("%r is no list of the run: %s" % (text, said))
    return text.encode("utf-8", "surrogateescape")


def _question(run: Any, asked: List[Any], items: _Items) -> Tuple[List[List[int]], Optional[List[Optional[bytes]]]]:
    """Returns (rows, names) with an entry for each list: the rows of its items ([] if it is given by name), and its name (None if
    it is given by items). `names` itself is None if all lists are given by items."""
    for one in asked:
        if not is_token(one) and (isinstance(one, dict) or not isinstance(one, Iterable)):
            raise TypeError("one of lists= is a %s: wanted a list's name, or an iterable of items" % type(one).__name__)
    names = [_check_name(run, one) if is_token(one) else None for one in asked]
    rows = [[] if is_token(one) else items.rows(one) for one in asked]
    return rows, names if any(name is not None for name in names) else None


def _options(score: Optional[str], among: Any, seen: bool, names: Any, items: _Items) -> Tuple[Any, Any]:
    """Returns the options struct for the library, and the arrays it points to, which the caller must keep alive."""
    options = _library.RecommendOptions(ctypes.sizeof(_library.RecommendOptions), None if score is None else
                                        score.encode("utf-8", "replace"), seen=bool(seen))
    kept = None if names is None else (ctypes.c_char_p * len(names))(*names)
    if kept is not None:
        options.names = ctypes.cast(kept, ctypes.POINTER(ctypes.c_char_p))
    if isinstance(among, str) and among == "new":
        options.only_new = 1
        return options, kept
    if isinstance(among, (int, float, numpy.number)) or among is None:
        options.among = count_of(among or 0, "among", 32)
        return options, kept
    rows = numpy.array(items.rows(among), numpy.uint64)
    if not len(rows):
        raise KeyError(items.unknown or "among= names no item")
    options.candidates, options.candidate_count = rows.ctypes.data, len(rows)
    return options, (kept, rows)


def infer(run: Any, documents: List[Any], options: Any) -> Any:
    """Returns the rows, float32 [documents x dim], that the run computes for documents; each is an iterable of words."""
    handle, items = run._open(), _Items(run)
    rows = [items.rows(words) for words in documents]
    starts = numpy.cumsum([0, *map(len, rows)], dtype=numpy.uint64)
    flat = numpy.array([row for one in rows for row in one] or [0], numpy.uint64)
    out = numpy.zeros((len(documents), run.dim), numpy.float32)
    run._context.call(library.sptx_run_infer, handle.pointer, starts.ctypes.data, flat.ctypes.data, len(documents), ctypes.byref(options),
                      out.ctypes.data)
    return out


def recommend(run: Any, asked: List[Any], k: int, score: Optional[str], seen: bool, among: Any) -> Tuple[Any, _Items]:
    """Recommends items for each list of `asked`, which is a name or an iterable of items.

    Returns the answers, one for each list (None if no item of any list is known), and the _Items that were looked up."""
    if score is not None and not isinstance(score, str):
        raise TypeError("a score is a str or None, not a %s" % type(score).__name__)
    run._meet_items()
    handle, items = run._open(), _Items(run)
    k = min(count_of(k, "k", 32), len(run))
    rows, names = _question(run, asked, items)
    starts = numpy.cumsum([0, *map(len, rows)], dtype=numpy.uint64)
    flat = numpy.array([row for one in rows for row in one] or [0], numpy.uint64)
    if names is None and not starts[-1]:
        return None, items
    options, kept = _options(score, among, seen, names, items)
    found, scores = numpy.full((len(asked), k), 0xFFFFFFFF, numpy.uint32), numpy.zeros((len(asked), k), numpy.float32)
    run._context.call(library.sptx_run_recommend, handle.pointer, starts.ctypes.data, flat.ctypes.data, len(asked),
                      ctypes.byref(options), k, found.ctypes.data, scores.ctypes.data)
    del kept
    return run._answers(found, scores), items


def _relation_row(run: Any, name: Any) -> int:
    try:
        return run.row("relation:" + name_of(name))
    except KeyError:
        if run.relations:
            raise
    raise ValueError("'%s' was not trained on triples (corpus.format = triples), and knows no relations" % os.fsdecode(run._path))


def answers(run: Any, entities: Any, relations: Any, k: int, heads: bool, seen: bool) -> Any:
    """Returns the k best tails of heads and relations, or the best heads of relations and tails: a list of answers, or one answer if
    `entities` is one entity."""
    if is_token(entities):
        return answers(run, [entities], [relations], k, heads, seen)[0]
    asked = list(entities)
    over = [relations] * len(asked) if is_token(relations) else list(relations)
    if len(over) != len(asked):
        raise ValueError("%d entities and %d relations; wanted a relation for each entity" % (len(asked), len(over)))
    handle, k = run._open(), min(count_of(k, "k", 32), len(run))
    over_rows = [_relation_row(run, name) for name in over]
    rows = numpy.array([[run.row(name) for name in asked], over_rows], numpy.uint64)
    options = _library.AnswersOptions(ctypes.sizeof(_library.AnswersOptions), bool(heads), bool(seen))
    found, scores = numpy.full((len(asked), k), 0xFFFFFFFF, numpy.uint32), numpy.zeros((len(asked), k), numpy.float32)
    run._context.call(library.sptx_run_answers, handle.pointer, rows[0].ctypes.data, rows[1].ctypes.data, len(asked),
                      ctypes.byref(options), k, found.ctypes.data, scores.ctypes.data)
    return run._answers(found, scores)
