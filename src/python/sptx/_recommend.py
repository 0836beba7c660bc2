"""What Run.recommend() asks: lists of items, and lists that the run was trained on by name, as one call of the library."""

import ctypes
from typing import Any, Dict, Iterable, List, Optional, Tuple

import numpy

from . import _library
from ._context import count_of
from ._corpus import is_token, name_of
from ._library import library


class _Items:
    """Finds the rows of items, each of which is looked for once."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self._rows: Dict[Any, Optional[int]] = {}
        self.unknown: Optional[str] = None  # what is said of the first item that is none

    def row(self, item: Any) -> Optional[int]:
        if item not in self._rows:
            found = ctypes.c_uint64()
            said = self._run._find(item, found)
            self.unknown = self.unknown or said
            self._rows[item] = found.value if said is None else None
        return self._rows[item]

    def rows(self, items: Iterable) -> List[int]:
        return [row for row in map(self.row, items.tolist() if isinstance(items, numpy.ndarray) else items) if row is not None]


def _check_name(run: Any, name: Any) -> bytes:
    """Returns the name of a list that the run was trained on. KeyError where the run has no such list."""
    text = name_of(name)
    if run.lists:
        said = run._find("list:" + text)
        if said is not None:
            raise KeyError("%r is no list of the run: %s" % (text, said))
    return text.encode("utf-8", "surrogateescape")


def _question(run: Any, asked: List[Any], items: _Items) -> Tuple[List[List[int]], Optional[List[Optional[bytes]]]]:
    """Returns the rows of each list's items, and their names; None where no list is asked by name."""
    names = [_check_name(run, one) if is_token(one) else None for one in asked]
    rows = [[] if is_token(one) else items.rows(one) for one in asked]
    return rows, names if any(name is not None for name in names) else None


def _options(score: Optional[str], among: Any, seen: bool, names: Any, items: _Items) -> Tuple[Any, Any]:
    """Returns the library's options, and what must live as long as they do."""
    options = _library.RecommendOptions(ctypes.sizeof(_library.RecommendOptions), None if score is None else
                                        score.encode("utf-8", "replace"), seen=bool(seen))
    kept = None if names is None else (ctypes.c_char_p * len(names))(*names)
    if kept is not None:
        options.names = ctypes.cast(kept, ctypes.POINTER(ctypes.c_char_p))
    if isinstance(among, (int, float, numpy.number)) or among is None:
        options.among = count_of(among or 0, "among", 32)
        return options, kept
    rows = numpy.array(items.rows(among), numpy.uint64)
    if not len(rows):
        raise KeyError(items.unknown or "among= names no item")
    options.candidates, options.candidate_count = rows.ctypes.data, len(rows)
    return options, (kept, rows)


def recommend(run: Any, asked: List[Any], k: int, score: Optional[str], seen: bool, among: Any) -> Tuple[Any, _Items]:
    """Answers each of the lists asked: a name, or an iterable of items. Returns the answers and the items that were looked for."""
    if score is not None and not isinstance(score, str):
        raise TypeError("a score is a str or None, not a %s" % type(score).__name__)
    handle, items = run._open(), _Items(run)
    k = min(count_of(k, "k", 32), len(run))
    rows, names = _question(run, asked, items)
    starts = numpy.cumsum([0, *map(len, rows)], dtype=numpy.uint64)
    flat = numpy.array([row for one in rows for row in one] or [0], numpy.uint64)
    if names is None and not starts[-1]:
        return None, items
    options, kept = _options(score, among, seen, names, items)
    found, scores = numpy.full((len(asked), k), 0xFFFFFFFF, numpy.uint32), numpy.zeros((len(asked), k), numpy.float32)
    run._context.call(library.sptx_run_recommend_by, handle.pointer, starts.ctypes.data, flat.ctypes.data, len(asked),
                      ctypes.byref(options), k, found.ctypes.data, scores.ctypes.data)
    del kept
    return run._answers(found, scores), items
