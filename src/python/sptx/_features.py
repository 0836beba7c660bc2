"""Features of items as a file, which the library looks at as it does at every other file."""

import contextlib
import csv
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, Iterator, List, Optional, TextIO

from ._corpus import is_token, name_of
from ._table import is_path, path_of


def _cell(value: Any) -> str:
    """Returns a table's value as a field: several values between bars, "" for a missing one."""
    if isinstance(value, (list, tuple, set, frozenset)) or (hasattr(value, "tolist") and not is_token(value) and getattr(value, "ndim", 0)):
        return "|".join(map(_cell, value))
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return ""
    return " ".join((name_of(value) if is_token(value) else str(value)).splitlines())


def _name(value: Any) -> str:
    name = name_of(value)
    if not name or name != name.strip(" \t\r\n\v\f") or {*"\t\r\n"} & {*name}:
        raise ValueError("%r names no item in features: wanted text without a tab or a line's end in it, and without blanks at its ends" % (value,))
    return name


@contextlib.contextmanager
def as_file(data: Any) -> Iterator[Optional[bytes]]:
    """The path of a file with these features, which is removed afterwards unless the caller named it; None for None."""
    if data is None or is_path(data):
        yield None if data is None else path_of(data)
        return
    with tempfile.TemporaryDirectory(prefix="sptx-") as directory:
        path = os.path.join(directory, "features")
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as to:
            write(data, to)
        yield os.fsencode(path)


def words_of(columns: Any) -> Optional[bytes]:
    """Names of columns as the library takes them: separated by commas."""
    return None if columns is None else ",".join([columns] if isinstance(columns, str) else columns).encode()


def write(data: Any, to: TextIO, names: Any = None) -> None:
    """Writes features of items to a text file: a frame as CSV with a header; a dict {name: features}, or a sparse matrix items x features, as lines of
    a name, a tab and features. The first of these lines is there twice, so that it cannot be taken for a header. names: those of a matrix' rows;
    None: 0, 1, 2 .."""
    if hasattr(data, "tocsr"):
        matrix = data.tocsr()
        matrix.eliminate_zeros()
        rows = [name_of(name) for name in (range(matrix.shape[0]) if names is None else names)]
        if len(rows) != matrix.shape[0]:
            raise ValueError("%d names for %d rows of features" % (len(rows), matrix.shape[0]))
        data = {name: matrix.indices[matrix.indptr[i]:matrix.indptr[i + 1]].tolist() for i, name in enumerate(rows)}
    if isinstance(data, Mapping):
        lines = []
        for name, features in data.items():
            if is_token(features) or not isinstance(features, Iterable):
                raise TypeError("the features of %r are %r; wanted a list of them" % (name, features))
            words = [name_of(feature) for feature in features]
            for word in words:
                if not word or word.split() != [word]:
                    raise ValueError("%r has the feature %r: a feature of a dict is one word; a frame may have blanks in its values" % (name, word))
            lines.append("%s\t%s\n" % (_name(name), " ".join(words)))
        lines.sort(key=lambda line: line[0] == "#")  # a first line with # may be a header, too
        to.writelines(lines[:1] + lines)
        return
    if not hasattr(data, "columns"):
        raise TypeError("features are a path, a frame with a column of names, a dict {name: features} or a sparse matrix, not a %s" % type(data).__name__)
    if getattr(getattr(data, "index", None), "name", None) is not None:  # a frame of pandas' whose index names the items
        data = data.reset_index()
    names = [_cell(name) if isinstance(name, str) else "column %s" % (name,) for name in getattr(data, "column_names", data.columns)]
    if len(set(names)) < len(names):
        raise ValueError("columns of the features have the same name: %s" % ", ".join(names))
    columns: List[List[Any]] = [column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
                                for column in (data[name] for name in getattr(data, "column_names", data.columns))]
    to.write("#")  # so the first line is a header, whatever items are called; names that begin with # are in quotes
    rows_of = csv.writer(to, lineterminator="\n", quoting=csv.QUOTE_ALL)
    rows_of.writerow(names)
    rows_of.writerows([_cell(value) for value in row] for row in zip(*columns))
