"""Tables: the tables of a model with many features, read, changed and saved by one call."""

import contextlib
import fcntl
import itertools
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy

from . import _arrays, _pickled
from ._context import count_of
from ._errors import Error
from ._keyed_table import KeyedTable, Mark, number_in_file
from ._libraries import Numpy, Torch
from ._library import HOST
from ._table import Table

Path = Union[str, "os.PathLike[str]"]
_LIST, _FORM = "tables.json", "sptx keyed tables 1"
_FILE = re.compile(r"\d+-[0-9a-f]{16}\.keyed(\.\d+-[0-9a-f]{16}\.partial)?")  # of a table, perhaps one that a killed save left


class Tables:
    """Several tables of one width and one optimizer, whose rows are those of one Table, one table behind the other: a call for all
    of them sorts once and launches once.

        tables = sptx.Tables({"user": 5_000_000, "item": 300_000}, dim=128, optimizer="adagrad", lr=0.05)
        users, items = tables.fetch([user_ids, item_ids])      # as Table.fetch of each
        tables.update([user_ids, item_ids], [user_gradients, item_gradients])
        tables["item"].fetch(ids)                              # one of them

    rows     numbers of rows: {name: rows}, or a list; then the names are 0, 1 ..; or KeyedTables, which KeyedTables describes
    options  those of sptx.Table; gpu_rows, for example, finds the most used rows of all tables together

    ids of a table are 0 .. its rows - 1: NumPy arrays and lists, or tensors of PyTorch. An id that is not a row raises IndexError
    before anything changes; ids on the GPU are not looked at, and one past its table's end is a row of the next table.
    """

    def __new__(cls, rows: Any = (), *_: Any, **__: Any) -> Any:
        given = list(rows.values() if isinstance(rows, Mapping) else rows)
        return object.__new__(KeyedTables if cls is Tables and given and all(isinstance(one, KeyedTable) for one in given) else cls)

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


class KeyedTables(Tables):
    """Several KeyedTables, of any widths and options. A call is made on all of them, and one save writes all.

        tables = sptx.Tables({"user": sptx.KeyedTable(5_000_000, 64, "adam", evict="lru"), "ad": sptx.KeyedTable(300_000, 16, "ftrl")})
        users, ads = tables.fetch([user_keys, ad_keys])        # as KeyedTable.fetch of each, one after the other
        tables.update([user_keys, ad_keys], [user_gradients, ad_gradients])
        tables.save("monday"); marks = tables.mark()           # the folder monday
        tables["ad"].remove(old)                               # one of them

    A call is made on one table after the other. If a table refuses it, the tables before it are changed already.
    """

    def __init__(self, tables: Union[Mapping[Any, KeyedTable], Sequence[KeyedTable]]) -> None:
        self._tables: Dict[Any, KeyedTable] = dict(tables) if isinstance(tables, Mapping) else dict(enumerate(tables))
        wrong = [name for name, table in self._tables.items() if not isinstance(table, KeyedTable)]
        if wrong or not self._tables:
            raise TypeError("table %r is no KeyedTable" % (wrong[0],) if wrong else "no tables: wanted {name: KeyedTable}, or a list")
        if len(set(map(id, self._tables.values()))) < len(self._tables):
            raise ValueError("one KeyedTable has two names")
        self._number = {name: number for number, name in enumerate(self._tables)}

    @property
    def table(self) -> Table:
        raise TypeError("tables by key are tables of their own: tables[name] is one of them")

    def __getitem__(self, name: Any) -> Any:
        return self._tables[name]

    def rows(self, name: Any) -> int:
        """Number of keys of a table that have rows."""
        return len(self._tables[name])

    def numbered(self, name: Any, ids: Any) -> Any:
        raise TypeError("rows of a KeyedTable have keys and no numbers")

    prefetch = numbered

    def _each(self, method: str, *given: Sequence[Any]) -> List[Any]:
        for values in given:
            self._check(values, "keys" if values is given[0] else "values")
        return [getattr(table, method)(*values) for table, *values in zip(self._tables.values(), *given)]

    def fetch(self, ids: Sequence[Any]) -> List[Any]:
        """Fetches rows from each table: the keys of each table in the tables' order; returns float32 [*keys.shape, dim] for each."""
        return self._each("fetch", ids)

    def find(self, ids: Sequence[Any]) -> List[Tuple[Any, Any]]:
        """KeyedTable.find of each table: changes nothing."""
        return self._each("find", ids)

    def update(self, ids: Sequence[Any], gradients: Sequence[Any]) -> None:
        """KeyedTable.update of each table."""
        self._each("update", ids, gradients)

    def store(self, ids: Sequence[Any], values: Sequence[Any]) -> None:
        """KeyedTable.store of each table."""
        self._each("store", ids, values)

    def wait(self) -> None:
        """Waits until all calls of all tables are done."""
        self._each("wait")

    barrier = wait

    def close(self) -> None:
        """Closes all tables."""
        self._each("close")

    # ---- disk ----

    def save(self, path: Path) -> None:
        """Writes all tables into the folder `path`, or fails and leaves what is there as it is: a file for each table, and tables.json, which
        names them and is replaced last. So after a kill the folder has all tables of one save. Processes that save to one folder take
        turns. Raises what KeyedTable.save() raises, and sptx.Error for a folder with other files."""
        self._write(path, lambda name, file: self._tables[name].save(file), False)

    def mark(self) -> Dict[Any, Mark]:
        """Returns a mark of each table, for save_changes()."""
        return dict(zip(self._tables, self._each("mark")))

    def save_changes(self, path: Path, since: Mapping[Any, Mark]) -> None:
        """Writes what has changed since mark() into the folder `path`, as save() does. Raises what KeyedTable.save_changes() raises."""
        if not isinstance(since, Mapping) or set(since) != set(self._tables):
            raise TypeError("since = %r is no mark of these tables; mark() gives one" % (since,))
        self._write(path, lambda name, file: self._tables[name].save_changes(file, since[name]), True)

    @classmethod
    def load(cls, path: Path, **options: Any) -> "KeyedTables":
        """Opens all tables of a folder that save() wrote. options: those of KeyedTable.load(), for all tables."""
        with _locked(path, fcntl.LOCK_SH):
            return cls({name: KeyedTable.load(file, **options) for name, file in _listed(path, False).items()})

    def restore(self, path: Path) -> None:
        """Replaces the rows of all tables by those of a folder that save() wrote, or raises and changes none (KeyedTable.restore)."""
        with _locked(path, fcntl.LOCK_SH):
            loaded = {name: self._tables[name]._loaded(file) for name, file in self._files(path, False).items()}
        for name, table in loaded.items():
            self._tables[name].__dict__.update(table.__dict__)

    def apply_changes(self, path: Path) -> None:
        """Applies a folder of save_changes(). Raises sptx.Error, and changes nothing, if it does not follow the state of each table."""
        with _locked(path, fcntl.LOCK_SH):
            files = self._files(path, True)
            for name, file in files.items():
                chain = self._tables[name].chain
                if number_in_file(file, "base_chain") != chain:
                    raise Error("the changes of table %r in '%s' follow another state than the table's%s; nothing is changed" % (
                        name, os.fspath(path), ", and are applied already" if number_in_file(file) == chain else ""))
            for name, file in files.items():
                self._tables[name].apply_changes(file)

    def _files(self, path: Path, changes: bool) -> Dict[Any, str]:
        files = _listed(path, changes)
        if set(files) != set(self._tables):
            raise ValueError("'%s' has the tables %s, and these are %s" % (os.fspath(path), list(files), list(self._tables)))
        return files

    def _write(self, path: Path, write: Any, changes: bool) -> None:
        folder = os.path.abspath(os.fsdecode(os.fspath(path)))
        if any(not isinstance(name, (str, int)) for name in self._tables):
            raise TypeError("names of tables that are saved are str or int, not %r" % (list(self._tables),))
        made = not os.path.isdir(folder)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
        with _locked(folder, fcntl.LOCK_EX) as holder:
            others = [name for name in os.listdir(folder) if not name.startswith(_LIST) and not _FILE.fullmatch(name)]
            if others:
                raise Error("'%s' holds '%s', which is no file of tables: save to a folder of its own" % (folder, others[0]))
            save = os.urandom(8).hex()
            files = {name: "%d-%s.keyed" % (number, save) for name, number in self._number.items()}
            listed = json.dumps({"form": _FORM, "changes": changes, "tables": list(files.items())}).encode()
            try:
                for name, file in files.items():
                    write(name, os.path.join(folder, file))
                _pickled.replace({os.path.join(folder, _LIST): lambda out: out.write(listed)})
                os.fsync(holder)
            finally:  # removes the files of older saves, or those of this one if it failed before the list names them
                named = _listed(folder, None).values() if os.path.exists(os.path.join(folder, _LIST)) else ()
                for name in filter(_FILE.fullmatch, os.listdir(folder)):
                    if os.path.join(folder, name) not in named:
                        os.unlink(os.path.join(folder, name))
                if made and not named:
                    with contextlib.suppress(OSError):
                        os.rmdir(folder)

    def __repr__(self) -> str:
        return "sptx.Tables(%r)" % (self._tables,)


@contextlib.contextmanager
def _locked(path: Path, kind: int) -> Iterator[int]:
    """Opens a folder of saved tables, and waits for processes that are saving to it (LOCK_SH), or also for those that read it (LOCK_EX)."""
    holder = os.open(os.fspath(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(holder, kind)
        yield holder
    finally:
        os.close(holder)


def _listed(path: Path, changes: Optional[bool]) -> Dict[Any, str]:
    """Reads the list of a saved folder, and returns {name of a table: path of its file}. changes: True: the files must hold changes; False:
    whole tables; None: either."""
    folder = os.fsdecode(os.fspath(path))
    with open(os.path.join(folder, _LIST), encoding="utf-8") as file:
        text = file.read()
    try:
        found = json.loads(text)
        tables = {name: os.path.join(folder, os.path.basename(file)) for name, file in found["tables"]}
        if found["form"] != _FORM:
            raise ValueError("form")
    except (ValueError, KeyError, TypeError):
        raise Error("'%s/%s' is no list of tables by key" % (folder, _LIST)) from None
    if changes is not None and found["changes"] is not changes:
        raise Error("'%s' has %s" % (folder, "changes of tables: load() wants whole ones, and apply_changes() takes these" if found["changes"]
                                     else "whole tables: load() takes these, and apply_changes() wants changes"))
    return tables


def _join(parts: List[Any]) -> Any:
    """Concatenates NumPy arrays, or tensors of PyTorch, along their first dimension."""
    if all(isinstance(part, numpy.ndarray) for part in parts):
        return numpy.concatenate(parts)
    import torch  # the parts are its tensors

    device = next(part.device for part in parts if isinstance(part, torch.Tensor))
    return torch.cat([torch.as_tensor(part, device=device) for part in parts])
