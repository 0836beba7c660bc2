"""The rows of the factories: rows of any shape and type. A Table stores their bytes; PyTorch tensors give and receive them."""

import contextlib
import itertools
import os
import sys
from typing import Any, Callable, Iterator, List, Optional, Tuple

import numpy
import torch

from .. import _compiled
from .._errors import Error
from .._libraries import torch_device
from .._library import COLUMNS_MOST
from .._table import Table, check_header



def numpy_dtype(dtype: Any) -> Any:
    """Returns NumPy's type for a type of NumPy or PyTorch, or a type's name."""
    if isinstance(dtype, torch.dtype):
        try:
            return torch.empty(0, dtype=dtype).numpy().dtype
        except TypeError:
            raise TypeError("%s has no counterpart in NumPy; wanted one like torch.float32" % dtype) from None
    return numpy.dtype(dtype)


class Rows:
    """Rows 0..count-1, each of `shape` and `dtype`. A Table's columns are float32; a row's bytes are taken as such, and a
    row of more than 4096 columns lies in several of the table's.

    place   "pinned", "gpu" or "file"; device and directory as Table has them
    init    first values of float32 rows, as Table has them; of other types only "zeros"
    names   collections of as many rows each that lie one behind the other: row r of name k is k * (count / names) + r
    """

    def __init__(self, count: int, shape: Tuple[int, ...], dtype: Any, place: str, device: Any = "auto",
                 directory: Optional[str] = None, init: str = "zeros", names: int = 1) -> None:
        self.count, self.shape, self.dtype = int(count) * names, tuple(shape), numpy_dtype(dtype)
        self.names = names
        self._fetched: Optional[torch.Tensor] = None  # the last batch, [names * ids, *shape]
        self._width = int(numpy.prod(self.shape, dtype=numpy.int64))  # number of elements of a row
        self._type = _torch_dtype(self.dtype)
        self.place = place
        self._parts, self._columns = _split(self._width * self.dtype.itemsize,
                                            "rows of the shape %s and type %s" % (self.shape, self.dtype))
        seed = int(torch.randint(2**31 - 1, ()).item()) if init != "zeros" else 1  # torch.manual_seed() decides it
        drawn = init if self.dtype == numpy.float32 else "zeros"
        self.table = Table(self.count * self._parts, self._columns, "none", weights=place, init=drawn, seed=seed, device=device,
                           directory=directory)
        self.device = torch_device(self.table.context.gpu)
        self._as_table = self._type == torch.float32 and self.shape == (self._columns,)  # False: bytes
        if init != drawn:
            self._draw(init)

    # ---- rows in and out ----

    def get(self, ids: Any) -> torch.Tensor:
        """Returns the rows of flat ids: a tensor [ids, *shape] on the table's device."""
        length = len(ids)
        rows = torch.empty((length * self._parts, self._columns), dtype=torch.float32, device=self.device)
        self.table.fetch(self._parts_of(ids), out=rows)
        return rows if self._as_table else rows.view(self._type).view((length,) + self.shape)

    def put(self, ids: Any, values: torch.Tensor) -> None:
        """Overwrites the rows with these flat ids. If an id repeats, its last row is stored."""
        length = len(ids)
        if values.numel() != length * self._width:
            raise ValueError("%d rows of the shape %s do not fit %d ids and rows of the shape %s" %
                             (len(values), tuple(values.shape[1:]), length, self.shape))
        if values.is_cuda and not self.device.type == "cuda":
            values = values.cpu()
        if not (self._as_table and values.dtype == torch.float32 and values.dim() == 2):
            flat = values.detach().to(self._type).contiguous().view(-1)
            values = flat.view(torch.float32).view(length * self._parts, self._columns)
        self.table.store(self._parts_of(ids), values)

    # ---- batches ----

    def gather(self, positives: Any, negatives: Any = None) -> torch.Tensor:
        """Returns the rows of a batch: those with its indexes in the first collection, then in the second, .. [names * ids, shape]."""
        calls = self.table._calls if self._as_table else None
        rows = calls.gather(positives, negatives, self.names) if calls is not None else NotImplemented
        self._fetched = None
        if rows is NotImplemented:
            self._fetched = rows = self.get(self._places(positives, negatives))
        return rows

    def scatter(self, positives: Any, negatives: Any, parts: List[torch.Tensor]) -> None:
        """Overwrites the rows of a batch; `parts` has a tensor for each collection."""
        calls = self.table._calls if self._as_table else None
        if calls is None or calls.scatter(positives, negatives, parts) is NotImplemented:
            self.put(self._places(positives, negatives), self._together(parts))

    def _places(self, positives: Any, negatives: Any) -> Any:
        """The rows of a batch as one list: one call of the library moves them, and each name's part is dense."""
        ids, names = flat(positives, negatives), self.names
        if names == 1:
            return ids
        count = self.count // names
        ids = whole_numbers(ids, count)
        if isinstance(ids, torch.Tensor):
            return torch.cat([ids.where(ids < 0, ids + k * count) for k in range(names)])
        return (ids + numpy.arange(names).reshape(-1, 1) * count).reshape(-1)

    def _together(self, parts: List[torch.Tensor]) -> torch.Tensor:
        """Returns all parts as one tensor: the fetched tensor itself if an optimizer has changed it in place, otherwise a copy."""
        if len(parts) == 1:
            return parts[0].detach()
        fetched = self._fetched
        if fetched is not None and sum(map(len, parts)) == len(fetched):
            size = fetched.numel() // len(parts) * fetched.element_size()
            if all(part.data_ptr() == fetched.data_ptr() + k * size and part.dtype == fetched.dtype and part.is_contiguous()
                   for k, part in enumerate(parts)):
                return fetched
        return torch.cat(parts)

    def _parts_of(self, ids: Any) -> Any:
        if self._parts == 1:
            return ids
        ids = whole_numbers(ids, self.count)
        if isinstance(ids, torch.Tensor):
            return (ids.view(-1, 1) * self._parts + torch.arange(self._parts, device=ids.device)).view(-1)
        return (ids.reshape(-1, 1) * self._parts + numpy.arange(self._parts)).reshape(-1)

    def _chunks(self, count: Optional[int] = None) -> Any:
        count = self.count if count is None else count
        step = max(1, (16 << 20) // (4 * self._columns * self._parts))
        for first in range(0, count, step):
            yield first, min(first + step, count)

    def _draw(self, init: str) -> None:
        law, a, b = init.split()
        for first, end in self._chunks():
            values = torch.empty((end - first,) + self.shape)
            values.uniform_(float(a), float(b)) if law == "uniform" else values.normal_(float(a), float(b))
            self.put(numpy.arange(first, end), values)

    # ---- all of them ----

    @property
    def in_place(self) -> bool:
        """True if whole() returns the rows themselves and not a copy."""
        return self.place != "gpu" and self._parts == 1 and self.dtype == numpy.float32

    def numpy(self) -> Any:
        """A copy of all rows."""
        out = numpy.empty((self.count,) + self.shape, self.dtype)
        self.copy_to(out)
        return out

    def copy_to(self, out: Any, start: int = 0) -> None:
        """Copies rows to the host array `out`, from row `start` on."""
        for first, end in self._chunks(len(out)):
            out[first:end] = self.get(numpy.arange(start + first, start + end)).cpu().numpy()

    def take(self, values: Any, start: int = 0) -> None:
        """Copies rows from a host array into the collection, from row `start` on."""
        for first, end in self._chunks(len(values)):
            self.put(numpy.arange(start + first, start + end), torch.from_numpy(numpy.array(values[first:end], self.dtype)))

    def whole(self) -> torch.Tensor:
        """Returns all rows as one tensor: the table's own memory if it is on the host, otherwise a copy on the GPU."""
        if self.in_place:
            return torch.from_numpy(self.table.weights).view((self.count,) + self.shape)
        return torch.cat([self.get(numpy.arange(first, end)) for first, end in self._chunks()])


# ---- disk ----

def save(path: Any, dtype: Any, shape: Tuple[int, ...], fill: Callable[[Any], None]) -> None:
    """Writes a .npy file: `fill` fills its mapped array. If that fails, an old file is unchanged. Like numpy.save, adds ".npy" to
    the name."""
    name = os.fspath(path)
    with replacing(name if name.endswith(".npy") else name + ".npy") as partial:
        out = numpy.lib.format.open_memmap(partial, "w+", dtype, shape)
        with open(partial, "r+b") as file:  # reserves the space first: a full disk under a mapped file would kill the process
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
        fill(out)
        out.flush()


@contextlib.contextmanager
def replacing(path: Any) -> Iterator[str]:
    """Returns a name beside `path` that no other process uses. The file of that name replaces `path` at the end, and is removed if writing fails."""
    name = os.fspath(path)
    partial = _new_file(name)
    try:
        yield partial
        os.replace(partial, name)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise


def _new_file(name: str) -> str:
    for number in itertools.count():
        partial = "%s.%d-%d.partial" % (name, os.getpid(), number)
        try:
            os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            return partial
        except FileExistsError:
            pass
    raise AssertionError("numbers do not end")


def load(path: Any) -> Any:
    """Opens a .npy file, mapped into memory if possible. sptx.Error for any other file."""
    with open(path, "rb") as file:
        check_header(file, path)
    try:
        values = numpy.load(path, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # NumPy's reader of headers lets the errors of Python's own parser through
        raise Error("'%s' cannot be loaded: %s" % (os.fspath(path), error)) from None
    if not values.ndim or not len(values):
        raise Error("'%s' holds no rows: its shape is %s" % (os.fspath(path), values.shape))
    return values


def load_tensor(path: Any) -> Any:
    """Returns the tensor in a file of torch.save() as a NumPy array. sptx.Error if the file contains anything else."""
    try:
        tensor = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # a pickle may raise anything
        raise Error("'%s' is not loaded: it holds more than a tensor, and may run commands as it is loaded (%s)" %
                    (os.fspath(path), str(error).splitlines()[0] if str(error) else type(error).__name__)) from None
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or not tensor.dim() or not len(tensor):
        raise Error("'%s' holds a %s, wanted a tensor of rows" % (os.fspath(path), type(tensor).__name__))
    numpy_dtype(tensor.dtype)  # says which types it cannot be
    return tensor.detach().numpy()


def _split(size: int, what: str) -> Tuple[int, int]:
    """Returns how many rows of a table store one row of `size` bytes, and their number of columns."""
    if size < 4 or size % 4:
        raise ValueError("%s have %d bytes, which is no multiple of 4" % (what, size))
    columns = size // 4
    for parts in range(1, columns // 32 + 2):
        if columns % parts == 0 and columns // parts <= COLUMNS_MOST:
            return parts, columns // parts
    raise ValueError("%s have %d columns of 4 bytes, which cannot be shared out over rows of at most %d" %
                     (what, columns, COLUMNS_MOST))


def _torch_dtype(dtype: Any) -> torch.dtype:
    return torch.from_numpy(numpy.empty(0, dtype)).dtype


# ---- indexes ----

def whole_numbers(ids: Any, count: int) -> Any:
    """Returns flat ids below `count` as int64, of NumPy, or of PyTorch on a GPU. On a GPU an id that is not a row becomes -1, which the table's
    next wait reports; elsewhere it raises TypeError or IndexError."""
    on_gpu = isinstance(ids, torch.Tensor) and ids.is_cuda
    if not on_gpu and type(ids) is not numpy.ndarray:
        ids = numpy.asarray(ids.get() if hasattr(ids, "get") else ids)
    kind = numpy_dtype(ids.dtype)
    if kind.kind not in "iu":
        raise TypeError("ids are %s, wanted whole numbers" % kind)
    if on_gpu:
        return ids.where((ids >= 0) & (ids < count), ids.new_full((), -1)).long()
    which = ids.astype(numpy.int64, copy=False)
    if which.size and which.view(numpy.uint64).max() >= count:
        at = int(which.view(numpy.uint64).argmax())
        raise IndexError("ids[%d] = %d is no row of %d" % (at, which[at], count))
    return which


def flat(positives: Any, negatives: Any = None) -> Any:
    """Returns the indexes of a batch in the order of its rows: the positives, then the negatives, each flattened."""
    if type(positives) is numpy.ndarray and (negatives is None or type(negatives) is numpy.ndarray):
        return positives.reshape(-1) if negatives is None else numpy.concatenate((positives, negatives), axis=None)
    parts = [part for part in (positives, negatives) if part is not None]
    torches = [isinstance(part, torch.Tensor) for part in parts]
    if all(torches):
        return torch.cat([part.reshape(-1) for part in parts]) if len(parts) > 1 else parts[0].reshape(-1)
    cupy = sys.modules.get("cupy")
    if cupy is not None and all(isinstance(part, cupy.ndarray) for part in parts):
        return cupy.concatenate([part.reshape(-1) for part in parts])
    arrays = [part.cpu().numpy() if is_torch else part.get() if hasattr(part, "get") else numpy.asarray(part)
              for part, is_torch in zip(parts, torches)]
    return numpy.concatenate([part.reshape(-1) for part in arrays]) if len(arrays) > 1 else arrays[0].reshape(-1)


class Duplicates:
    """Finds out whether an index occurs twice in a batch. After the first such batch it looks no further.

    The marks are as many as the batch needs, not one a row: those of 15 million rows would be pages that each batch meets for
    the first time, and later lines that no cache has.
    """

    _SPARE = 8  # marks an index at least; an eighth of the indexes share a mark by chance, and are compared one by one

    def __init__(self) -> None:
        self._said = False
        self._compiled = _compiled.marks()  # finds duplicates in NumPy arrays; None without the C module
        self._places = numpy.empty(0, numpy.uint32)  # 0, 1, 2, ..: the position of each index in the batch
        self._marks = numpy.empty(0, numpy.uint32)   # [power of two] position of the last index with this remainder

    def in_batch(self, positives: Any, negatives: Any = None) -> bool:
        """Returns True for the first batch with a repeated index, False for all other batches."""
        if self._said:
            return False
        twice = self._compiled.twice(positives, negatives) if self._compiled is not None else NotImplemented
        self._said = self._look(flat(positives, negatives)) if twice is NotImplemented else twice
        return self._said

    def _look(self, ids: Any) -> bool:
        rows = ids.cpu().numpy() if isinstance(ids, torch.Tensor) else ids.get() if hasattr(ids, "get") else numpy.asarray(ids)
        return self._twice(rows.astype(numpy.int64, copy=False))

    def _twice(self, rows: Any) -> bool:
        if len(rows) > len(self._places):
            self._places = numpy.arange(len(rows), dtype=numpy.uint32)
            self._marks = numpy.zeros(1 << (self._SPARE * len(rows) - 1).bit_length(), numpy.uint32)
        while len(rows):
            places, marks = self._places[:len(rows)], rows & (len(self._marks) - 1)
            self._marks[marks] = places
            last = self._marks[marks]
            late = (last != places).nonzero()[0]  # an equal index, or one with the same mark, came later
            others = rows[late]
            if (rows[last[late]] == others).any():
                return True
            rows = others  # an index that is twice in here may have left the list, when a third one took its mark
        return False
