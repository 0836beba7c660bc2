"""KeyedTable: rows by 64-bit keys that come and go."""

import ctypes
import functools
import os
import re
import sys
from typing import Any, List, NamedTuple, Optional, Tuple, Union

import numpy

from . import _arrays, _library, _pickled
from ._context import Context, Handle, context_for, count_of
from ._errors import Error, tell
from ._libraries import Numpy, Operand, Torch, Wrong
from ._library import EVICTS, library
from ._table import Table, path_of, read_table

Path = Union[str, "os.PathLike[str]"]
_MASK = (1 << 64) - 1
_AT_ONCE = 1 << 16  # rows that export() reads at a time


class Mark(NamedTuple):
    """The state of a KeyedTable at a moment; mark() returns it."""

    call: int   # number of the last call before it
    chain: int  # hash of all calls up to it


class KeyedTable(Table):
    """A table whose rows have 64-bit keys, such as hashes of users and words, instead of numbers.

        ads = sptx.KeyedTable(capacity=10_000_000, dim=64, optimizer="adam", evict="lru", admit=2)
        x = ads.fetch(keys)                  # [*keys.shape, dim]; new keys get rows
        ads.update(keys, gradients)          # duplicates summed, then one optimizer step a key
        rows, found = ads.find(keys)         # changes nothing

    capacity      number of rows, 1 .. 4,294,966,270. Beside the rows, the index takes about 100 bytes of host memory for each of
                  them; with evict 150
    dim           columns
    optimizer     and options: those of sptx.Table (lr, weights, state, seed, init, device, directory, dtype, check_finite, ..)
    evict         what happens to a new key when all rows are taken. None: ValueError, and nothing is changed. Otherwise other keys
                  leave: "lru", those named least recently by fetch, update or store; "lfu", those with the fewest sights; "age", those
                  whose rows are oldest; of equal ones, those with the lowest key. A call takes no row from a key that it names
                  itself; one that names more keys than there are rows raises ValueError. Which keys leave is a function of the calls
                  alone, and the same after save() and load()
    admit         a key gets its row at its admit-th sight, 1 .. 255; a sight is a place of the key in fetch(). Sights of keys without
                  a row are counted in 4 bytes for each row of the capacity, which keys share: a key may get its row too early, and,
                  since the counts are halved after 4 x capacity such sights, too late if its sights are further apart than that
    keep_evicted  most rows that are kept for evicted(); None: as many as 64 MiB hold

    keys are arrays of NumPy or PyTorch of whole numbers (int64 and uint64 with the same bits are the same key), lists of int, str
    or bytes, or arrays of them. A str (as UTF-8) or bytes becomes the key XXH3_64bits(bytes): of n different ones, two share a key
    with a probability of about n^2 / 2^65, 3 in 100 million for a million, 2.7% for a billion. On a GPU the index is there, too,
    if there is space (50 to 90 bytes a row): tensors of keys there are looked up there, and only new keys go to the host, which gives
    them rows. Otherwise the host looks up all keys, and a warning says so.

    First values. A row begins with values that are drawn from (seed, key), and with the optimizer's first state: neither the order in
    which keys come, nor threads or the capacity change a byte of a key's row. A key without a row is answered with its first values, never
    with zeros unless init="zeros".

    A keyed table has no views and no prefetch. Beside that, errors, streams and threads are those of sptx.Table.
    """

    def __init__(self, capacity: int, dim: int, optimizer: str = "sgd", *, evict: Optional[str] = None, admit: int = 1,
                 keep_evicted: Optional[int] = None, device: Union[str, Context, Any] = "auto", check_finite: bool = False,
                 **options: Any) -> None:
        self._handle: Optional[Handle] = None
        self._saving = self._calls = None
        wanted = read_table(capacity, dim, optimizer, **options)
        self._take_open(wanted, _keyed_options(evict, admit, keep_evicted), context_for(device), check_finite)

    def _take_open(self, wanted: Any, keyed: Any, context: Context, check_finite: bool) -> None:
        self._context = context
        self._owner, self._rank, self._ranks = None, 0, 0  # a table by key is not shared
        self._exact = False
        wanted.check_finite = bool(check_finite) and context.gpu is None
        self._looks = bool(check_finite) and context.gpu is not None
        handle = Handle(context, library.sptx_keyed_close)
        context.call(library.sptx_keyed_open, context._handle, ctypes.byref(wanted), ctypes.byref(keyed), ctypes.byref(handle.pointer))
        self._handle = handle
        self._rows, self._dim, self._optimizer = wanted.rows, wanted.dim, wanted.optimizer.decode()
        self._places = tuple(_library.PLACES[place] for place in (wanted.weights, wanted.state))
        self._dtype = _library.DTYPES[wanted.dtype]
        self._fields = tuple(_library.names(library.sptx_table_field, self._table(handle)))
        self._evict, self._admit = EVICTS[keyed.evict], keyed.admit
        self._opened = {"weights": self._places[0], "state": self._places[1], "hot_rows": wanted.hot_rows, "gpu_rows": wanted.gpu_rows,
                        "directory": wanted.directory, "check_finite": check_finite,
                        "keep_evicted": None if keyed.keep_evicted == _MASK else keyed.keep_evicted}

    # ---- what it is ----

    capacity = property(lambda self: self._rows, doc="Number of keys that can have rows at a time; `rows` is the same.")
    evict = property(lambda self: self._evict, doc="""None, "lru", "lfu" or "age".""")
    admit = property(lambda self: self._admit, doc="At which sight a key gets its row.")
    calls = property(lambda self: self._about().calls, doc="Number of calls so far that changed the table.")
    chain = property(lambda self: self._about().chain, doc="A hash of all calls that changed the table, with their keys and, where they are in "
                                                          "host memory, values and gradients.")
    waiting = property(lambda self: self._about().waiting, doc="Number of sights so far that were answered with first values, since the key "
                                                              "had no row (admit).")
    dropped = property(lambda self: self._about().dropped, doc="Number of gradients so far, one for each place of a key, that were dropped "
                                                              "since the key had no row (admit).")
    evictions = property(lambda self: self._about().evictions, doc="Number of keys so far that have left for others.")

    def __len__(self) -> int:
        """Number of keys that have rows."""
        return int(self._about().keys)

    def _table(self, handle: Handle) -> Any:
        return ctypes.c_void_p(library.sptx_keyed_table(handle.pointer))

    def _about(self) -> Any:
        numbers = _library.KeyedNumbers(size=ctypes.sizeof(_library.KeyedNumbers))
        self._call(library.sptx_keyed_about, ctypes.byref(numbers))
        return numbers

    def _call(self, function: Any, *arguments: Any) -> None:
        handle = self._open()  # stays open during the call, even if another thread closes the table
        self._context.call(function, handle.pointer, *arguments)

    # ---- rows ----

    def fetch(self, keys: Any, out: Any = None, dtype: Any = None) -> Any:
        """Returns the rows of these keys, float32 [*keys.shape, dim]; new keys get rows, as evict and admit say. For keys of PyTorch it is a
        tensor on the table's device, otherwise a NumPy array. `out` and `dtype` are those of Table.fetch().

        Raises ValueError, and changes nothing, if there is no row for a new key.
        """
        if out is not None and dtype is not None:
            raise ValueError("out is an array of float32, and dtype is that of a new one: give one of them")
        rows = self._ask_rows(library.sptx_keyed_fetch, keys, out)
        return rows if dtype is None else _arrays.narrowed(rows, dtype)

    def find(self, keys: Any, out: Any = None) -> Tuple[Any, Any]:
        """Returns (rows, found): rows as fetch() does, without counting, or giving rows to keys; and a mask of bool [*keys.shape], a
        NumPy array or a tensor on the CPU, of the keys that have rows. The others are answered with their first values."""
        which, _ = _taken(keys, self._context.gpu)
        found = numpy.empty(which.shape, numpy.bool_)
        rows = self._ask_rows(library.sptx_keyed_find, keys, out, found.ctypes.data)
        return rows, sys.modules["torch"].from_numpy(found) if _is_tensor(keys) else found

    def __contains__(self, key: Any) -> bool:
        """Whether a key has a row."""
        which, found = _taken(key)[0], ctypes.c_uint8()
        if which.count != 1:
            raise ValueError("`in` asks for one key, not %d; find(keys) has a mask" % which.count)
        self._call(library.sptx_keyed_find, which.pointer, 1, None, ctypes.byref(found), _library.HOST, None)
        return bool(found.value)

    def _ask_rows(self, function: Any, keys: Any, out: Any, *more: Any) -> Any:
        self._open()
        gpu = self._context.gpu
        which, kind = _taken(keys, gpu)
        rows = _arrays.take_out(out, which._replace(library=kind), gpu, which.shape + (self._dim,))
        self._call(function, which.pointer, which.count, rows.pointer, *more, rows.memory, _stream(gpu, which, rows))
        return out if out is not None else rows.keep

    def update(self, keys: Any, gradients: Any, check_finite: bool = False) -> None:
        """Does one optimizer step. Gradients [*keys.shape, dim] are summed by key, in the order of the keys; then each different key is updated
        once. If admit is 1, new keys get rows; otherwise gradients of keys without a row are dropped, and `dropped` counts them. check_finite:
        as in Table.update()."""
        if check_finite or self._looks:
            _arrays.refuse_infinite(gradients)
        self._give_rows(library.sptx_keyed_update, keys, gradients, "gradients")

    def store(self, keys: Any, values: Any) -> None:
        """Overwrites the rows of these keys with values [*keys.shape, dim]. If a key repeats, its last values are stored. New keys get rows, for
        any value of admit. The optimizer's state is unchanged."""
        self._give_rows(library.sptx_keyed_store, keys, values, "values")

    def _give_rows(self, function: Any, keys: Any, values: Any, what: str) -> None:
        self._open()
        gpu = self._context.gpu
        which = _taken(keys, gpu)[0]
        floats = _arrays.take_floats(values, gpu, what, which.shape + (self._dim,))
        self._call(function, which.pointer, which.count, floats.pointer, floats.memory, _stream(gpu, which, floats))
        if gpu is not None and _arrays.must_wait(floats):
            self._context.wait()

    def remove(self, keys: Any) -> int:
        """Takes rows away from these keys. Returns the number of keys that had one; others are ignored."""
        which, removed = _taken(keys)[0], ctypes.c_uint64()
        self._call(library.sptx_keyed_remove, which.pointer, which.count, ctypes.byref(removed))
        return removed.value

    def keys(self) -> numpy.ndarray:
        """The keys that have rows, uint64, in rising order; .view(numpy.int64) gives the same keys as int64."""
        count = ctypes.c_uint64(len(self))
        while True:  # until other threads have added no more keys since the last call than there is room for
            keys = numpy.empty(min(self._rows, count.value + count.value // 8 + 1024), numpy.uint64)
            self._call(library.sptx_keyed_keys, keys.ctypes.data, keys.size, ctypes.byref(count))
            if count.value <= keys.size:
                return keys[:count.value]

    def counts(self, keys: Any) -> numpy.ndarray:
        """Returns how often each key was fetched since it got its row, uint64 [*keys.shape]; 0 if it has no row."""
        which = _taken(keys)[0]
        counts = numpy.empty(which.shape, numpy.uint64)
        self._call(library.sptx_keyed_counts, which.pointer, which.count, counts.ctypes.data)
        return counts

    def evicted(self) -> Tuple[numpy.ndarray, numpy.ndarray]:
        """Returns (keys, rows) of the keys that were evicted since the last call of this method, in the order in which they left: uint64 [n],
        float32 [n x dim]. Warns (SptxWarning) if more than keep_evicted have left."""
        about, count = self._about(), ctypes.c_uint64()
        keys, rows = numpy.empty(about.evicted, numpy.uint64), numpy.empty((about.evicted, self._dim), numpy.float32)
        self._call(library.sptx_keyed_evicted, keys.ctypes.data, rows.ctypes.data, keys.size, ctypes.byref(count))
        if about.lost:
            tell("%d rows that have left are gone: %d were kept for evicted(); call it more often, or open the table with a larger "
                 "keep_evicted" % (about.lost, about.evicted))
        return keys[:count.value], rows[:count.value]

    def barrier(self) -> None:
        """The same as wait(): a KeyedTable is not shared."""
        self.wait()

    # ---- disk ----

    def save(self, path: Path) -> None:  # type: ignore[override]
        """Writes the whole table to one file, or fails and leaves an older file as it is: keys, counts, rows with their optimizer's
        state, and the options. Keys are in rising order: tables to which the same calls were made have the same file.

        Raises OSError if the folder does not exist, sptx.Error if writing fails or a row contains infinity or NaN."""
        self._save(path, None)

    @classmethod
    def load(cls, path: Path, *, device: Union[str, Context, Any] = "auto",  # type: ignore[override]
             capacity: Optional[int] = None, lr: Optional[float] = None, weights: str = "pinned", state: str = "pinned",
             hot_rows: int = 0, gpu_rows: int = 0, directory: Optional[Path] = None, keep_evicted: Optional[int] = None,
             check_finite: bool = False) -> "KeyedTable":
        """Opens a table with what save() wrote. It goes on as the saved one would have: the same calls give the same bytes, and the same
        keys leave. What the file does not say is given here: places, and what evicted() keeps. capacity: another number of rows
        (with admit above 1 it cannot be changed); lr: another learning rate.

        Raises OSError if the file cannot be read, sptx.Error if it contains something else."""
        context, where = context_for(device), path_of(path)
        os.stat(where)
        wanted = read_table(1, 1, "sgd", weights=weights, state=state, hot_rows=hot_rows, gpu_rows=gpu_rows, directory=directory)
        keyed = _keyed_options(None, 1, keep_evicted)
        context.call(library.sptx_keyed_options_of, context._handle, where, ctypes.byref(wanted), ctypes.byref(keyed))
        wanted.init = bytes(wanted.init)  # a copy: the library's text is valid until it reads the next file
        if capacity is not None:
            wanted.rows = count_of(capacity, "capacity", 64)
        table: KeyedTable = cls.__new__(cls)
        table._handle = table._saving = table._calls = None
        table._take_open(wanted, keyed, context, check_finite)
        try:
            table._call(library.sptx_keyed_load, where)
            if lr is not None:
                table.lr = lr
        except BaseException:
            table.close()
            raise
        return table

    def restore(self, path: Path) -> None:
        """Replaces all keys and rows, and lr, by those of a file that save() wrote; capacity and places stay. Needs memory for both tables until it
        is done. Raises what load() raises, and ValueError if the file's table has another dim, optimizer, dtype, evict or admit."""
        self.__dict__.update(self._loaded(path).__dict__)

    def _loaded(self, path: Path) -> "KeyedTable":
        """Opens another table with the rows of a file, and checks that it could replace this one."""
        self._open()
        loaded = KeyedTable.load(path, device=self._context, capacity=self._rows, **self._opened)
        for name in ("dim", "optimizer", "dtype", "evict", "admit"):
            there, wanted = getattr(loaded, name), getattr(self, name)
            if there != wanted:
                loaded.close()
                raise ValueError("'%s' has a table with %s = %r, and this one has %r" % (os.fspath(path), name, there, wanted))
        return loaded

    def mark(self) -> "Mark":
        """Returns a mark of the table's present state, for save_changes(). A table knows its two newest marks. From the first mark on it remembers
        keys that leave."""
        mark = _library.Mark()
        self._call(library.sptx_keyed_mark, ctypes.byref(mark))
        return Mark(mark.call, mark.chain)

    def save_changes(self, path: Path, since: "Mark") -> None:
        """Writes what has changed since a mark: the keys that calls have named, with their rows, and the keys that have left.

            table.save("monday"); mark = table.mark()
            ...
            table.save_changes("tuesday", since=mark); mark = table.mark()

        KeyedTable.load("monday") and apply_changes("tuesday") then give a table whose save() has the same bytes. Raises as save(), and
        ValueError for a mark that is not one of the table's two newest."""
        if not isinstance(since, Mark):
            raise TypeError("since = %r is no mark; mark() gives one" % (since,))
        self._save(path, ctypes.byref(_library.Mark(*since)))

    def _save(self, path: Path, since: Any) -> None:
        where = path_of(path)
        os.stat(os.path.dirname(os.path.abspath(os.fsdecode(where))))
        self._call(library.sptx_keyed_save, where, since)

    def apply_changes(self, path: Path) -> None:
        """Applies a file of save_changes() to a table that is in the state of the file's mark. Raises sptx.Error, and changes nothing, if the file
        does not follow the table's state (for example, if it was applied already) or is of another kind of table."""
        where = path_of(path)
        os.stat(where)
        self._call(library.sptx_keyed_load, where)

    def export(self, path: Path, type: str = "f32") -> None:
        """Writes the keys and rows for serving as NumPy files, without the optimizer's state: PATH has the rows, by rising key;
        PATH.keys.npy the keys, uint64. type: "f32"; "int8": rows are numbers of -127 .. 127, which PATH.scales.npy [rows x 1] multiplies,
        as Run.export() has it."""
        if type not in ("f32", "int8"):
            raise ValueError("type = %r is neither 'f32' nor 'int8'" % (type,))
        where, keys = os.fsdecode(path_of(path)), self.keys()
        out = numpy.empty((len(keys), self._dim), numpy.int8 if type == "int8" else numpy.float32)
        scales = numpy.zeros((len(keys), 1), numpy.float32)
        for first in range(0, len(keys), _AT_ONCE):
            rows = self.find(keys[first:first + _AT_ONCE])[0]
            if type == "int8":
                scale = numpy.abs(rows).max(axis=1, keepdims=True) / numpy.float32(127)
                scales[first:first + len(rows)] = scale
                rows = numpy.rint(rows / numpy.where(scale > 0, scale, 1))
            out[first:first + len(rows)] = rows
        sides = {".keys.npy": keys, **({".scales.npy": scales} if type == "int8" else {}), "": out}
        _pickled.replace({where + side: functools.partial(numpy.save, arr=array) for side, array in sides.items()})

    # ---- methods that only tables by number have ----

    def _by_number(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a KeyedTable's rows are in no order and have no view: find(keys) answers rows, fetch(keys) needs no prefetch")

    prefetch = view = cached = _by_number

    def __repr__(self) -> str:
        if self._handle is None:
            return "sptx.KeyedTable(closed)"
        return "sptx.KeyedTable(%d of %d x %d%s, %s, lr=%g, evict=%s, admit=%d, weights=%s, state=%s, on %s)" % (
            (len(self), self._rows, self._dim, "" if self._dtype == "float32" else " " + self._dtype, self._optimizer, self.lr, self._evict,
             self._admit) + self._places + (self.device,))


def _keyed_options(evict: Optional[str], admit: Any, keep_evicted: Any) -> Any:
    if evict not in EVICTS:
        raise ValueError("evict = %r is none of %s" % (evict, ", ".join(map(repr, EVICTS))))
    return _library.KeyedOptions(size=ctypes.sizeof(_library.KeyedOptions), evict=EVICTS.index(evict), admit=count_of(admit, "admit", 32),
                                 keep_evicted=_MASK if keep_evicted is None else count_of(keep_evicted, "keep_evicted", 63))


def _stream(gpu: Optional[int], which: Operand, values: Operand) -> Optional[int]:
    return _arrays.stream_of(which, values) if gpu is not None else None


def _is_tensor(keys: Any) -> bool:
    return _arrays.library_of(keys) is Torch


def _taken(keys: Any, gpu: Optional[int] = None) -> Tuple[Operand, Any]:
    """Returns keys as a dense array of 64-bit numbers, and the array library that the caller uses. The array is on the host; tensors on GPU number
    `gpu` stay there."""
    kind = Numpy
    if _is_tensor(keys):
        try:
            Torch._check(keys, keys.get_device() if keys.is_cuda else None)
            if keys.is_cuda and keys.get_device() == gpu and str(keys.dtype) in ("torch.int64", "torch.uint64", "torch.int32"):
                return Torch._operand((keys.long() if keys.element_size() == 4 else keys).contiguous(), 64), Torch
        except Wrong as wrong:
            raise wrong.kind("keys %s" % wrong) from None
        kind, keys = Torch, keys.detach().cpu().numpy()
    if not isinstance(keys, numpy.ndarray):
        keys = _array_of(keys)
    if keys.dtype.kind in "USO":
        keys = _hashed(keys)
    if keys.dtype.kind not in "iu":
        raise TypeError("keys are %s, wanted whole numbers, str or bytes" % ("bool" if keys.dtype.kind == "b" else keys.dtype))
    wide = numpy.int64 if keys.dtype.kind == "i" else numpy.uint64
    try:
        return Numpy._operand(numpy.asarray(keys, dtype=wide, order="C")), kind
    except Wrong as wrong:
        raise wrong.kind("keys %s" % wrong) from None


def keys_of(keys: Any) -> numpy.ndarray:
    """Returns keys as uint64."""
    return _taken(keys)[0].keep.view(numpy.uint64)


def number_in_file(path: Path, name: str = "chain") -> int:
    """Returns a number from the text of a saved table's file, such as its hash of calls."""
    with open(path, "rb") as file:
        found = re.match(rb"sptx keyed 1\n(?:.*\n)*?%s (\d+)\n" % name.encode(), file.read(8192))
    if found is None:
        raise Error("'%s' is no file of a table by key" % os.fspath(path))
    return int(found[1])


def _array_of(keys: Any) -> numpy.ndarray:
    """Makes an array from a list, a single key, or an array of another library. Each int is kept exactly: NumPy alone would make floats if ints
    are on both sides of 2^63."""
    if isinstance(keys, range) or hasattr(keys, "__array__"):
        return numpy.asarray(keys)
    try:
        array = numpy.asarray(keys, dtype=object)
    except ValueError as error:
        raise ValueError("keys are no array: %s" % error) from None
    flat: List[Any] = list(array.reshape(-1))
    if any(isinstance(key, (str, bytes)) for key in flat):
        return array
    for key in flat:
        if isinstance(key, (bool, numpy.bool_)) or not hasattr(key, "__index__"):
            raise TypeError("keys hold %r, wanted whole numbers, str or bytes" % (key,))
        if not -(1 << 63) <= int(key) < 1 << 64:
            raise ValueError("keys hold %d, which has more than 64 bits" % key)
    return numpy.array([int(key) & _MASK for key in flat], numpy.uint64).reshape(array.shape)


def _hashed(texts: numpy.ndarray) -> numpy.ndarray:
    parts = []
    for text in texts.reshape(-1).tolist():
        if not isinstance(text, (str, bytes)):
            raise TypeError("keys hold %r beside str or bytes" % (text,))
        parts.append(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    offsets = numpy.zeros(len(parts) + 1, numpy.uint64)
    offsets[1:] = numpy.cumsum([len(part) for part in parts], dtype=numpy.uint64)
    keys = numpy.empty(texts.shape, numpy.uint64)
    library.sptx_keyed_hash(b"".join(parts), offsets.ctypes.data, len(parts), keys.ctypes.data)
    return keys
