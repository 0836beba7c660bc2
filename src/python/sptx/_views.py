"""The rows of a table or a run without a copy: NumPy arrays that keep the table or run open, and HalfRows over memory of bfloat16, which NumPy
lacks. Also reads the values of a file's rows, of any type."""

from typing import Any, Iterator, Optional, Tuple

import numpy

from . import _dlpack
from ._context import Handle


ITEM_BYTES = (4, 2)  # bytes of a number of each sptx_dtype


class _Memory:
    """The memory that an array is made from. Its owner stays open as long as there is an array over the memory."""

    def __init__(self, owner: Handle, view: Any, columns: int, writable: bool) -> None:
        self.owner = owner
        bytes_each = ITEM_BYTES[view.dtype]
        self.__array_interface__ = {"version": 3, "typestr": "<f4" if bytes_each == 4 else "<u2", "data": (view.data, not writable),
                                    "shape": (view.rows, columns), "strides": (view.stride, bytes_each)}


class Rows(numpy.ndarray):
    """Rows in place, [rows x dim] float32 (uint16 as HalfRows.bits): a numpy.ndarray over the library's own memory, no copy.

    Writing to the array changes the table; calls on the table show in the array once `table.wait()` has returned. The array
    is always valid: a closed table frees its memory only when the last such array is gone. Arithmetic gives plain arrays;
    slices are Rows, too.

    `first` is the number of the table's row at index 0: rows below it are hot and on the GPU.

    DLPack: where a GPU reaches the memory, `__dlpack__` offers it as that GPU's (torch.from_dlpack, cupy.from_dlpack and
    jax.dlpack.from_dlpack give arrays of the GPU over the host's memory) unless the CPU is asked for with dl_device=(1, 0);
    elsewhere as the CPU's. numpy.asarray() and torch.from_numpy() see host memory always. JAX takes arrays without gaps only:
    give it `records`, and index them there: jax.dlpack.from_dlpack(table.weights.records)[ids, :dim].
    """

    _origin: Optional[Tuple[int, int, range]] = None  # the rows on the host: address, bytes from row to row, row numbers
    _range: Optional[Tuple[int, int]] = None  # addresses that the GPU can reach
    _gpu: Optional[int] = None
    _owner: Optional[Handle] = None  # its calls are waited for before a GPU library reads the rows
    _records: Any = None  # function that makes the array of whole records

    @property
    def first(self) -> int:
        """The row number of index 0, also for a slice; 0 for a copy."""
        if self._origin is None:
            return 0
        address, stride, rows = self._origin
        at = (self.__array_interface__["data"][0] - address) // stride
        return rows[at] if 0 <= at < len(rows) else 0

    @property
    def records(self) -> "Rows":
        """Whole records without a copy, [rows x floats of a record]: each row, followed by the rest of its record (optimizer
        state in the same place, count of updates, padding). Only for the unsliced weights of a table or a run.
        """
        if self._records is None:
            raise ValueError("records are had of a table's weights as view() gives them, not of a part or of its state")
        return self._records()

    def __array_finalize__(self, other: Any) -> None:
        if isinstance(other, Rows) and not self.flags.owndata:  # a slice of the rows; a copy owns its memory
            self._range, self._gpu, self._owner, self._origin = other._range, other._gpu, other._owner, other._origin

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = numpy.asarray(array)
        return plain[()] if return_scalar or plain.ndim == 0 else plain

    def _on_gpu(self) -> bool:
        if self._range is None or not self.size:
            return False
        low, high = _bounds(self)
        return self._range[0] <= low and high <= self._range[1]

    def __dlpack_device__(self) -> Tuple[int, int]:  # type: ignore[override]
        return (_dlpack.CUDA, self._gpu or 0) if self._on_gpu() else (_dlpack.CPU, 0)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        wanted = tuple(dl_device) if dl_device is not None else self.__dlpack_device__()
        wanted = (int(wanted[0]), int(wanted[1]))
        if wanted not in ((_dlpack.CPU, 0), self.__dlpack_device__()):
            raise BufferError("these rows can be had on device %s or on the CPU, not on %s" %
                              (self.__dlpack_device__(), wanted))
        plain = numpy.array(self) if copy else self.view(numpy.ndarray)
        if wanted[0] == _dlpack.CPU:
            return _capsule(plain, max_version)
        if copy:
            raise BufferError("a copy of these rows can be had on the CPU only")
        if self._owner is not None:
            self._owner.context.wait()
        return _dlpack.offer_to_gpu(_capsule(plain, max_version), wanted[1])


class NumberedRows(Rows):
    """Rows of a run's table that does not begin with row 0. Unlike in a plain array, an index is a row's number.

    rows[number] is that row, rows[[one, another]] are rows, and a slice's bounds are numbers, too; negative ones count from the
    end. IndexError for a number below `first`, which the table lacks. The shape, iteration, arithmetic and numpy.asarray work on
    the rows that exist. Slices and the transposed array have ordinary indexes from 0.
    """

    def __getitem__(self, index: Any) -> Any:
        rows = self.view(Rows)
        if isinstance(index, tuple):
            return rows[(self._places(index[0]),) + index[1:]] if index else rows[index]
        return rows[self._places(index)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.view(Rows))

    def _places(self, index: Any) -> Any:
        """Converts numbers of rows to indexes of the array."""
        whole = self._origin is not None and self.ndim == 2 and len(self) == len(self._origin[2])
        first = self.first if whole else 0
        if isinstance(index, slice):
            bounds = (at if at is None or at < 0 else max(0, at - first) for at in (index.start, index.stop))
            return slice(*bounds, index.step)
        if index is None or index is Ellipsis:
            return index
        numbers = numpy.asarray(index)
        if numbers.dtype.kind not in "iu" or not numbers.size:
            return index  # a mask, or an index that no array accepts
        absent = numbers[(numbers >= 0) & (numbers < first)]
        if absent.size:
            raise IndexError("row %d is not in this table, which begins with row %d: the lists' first" % (absent[0], first))
        return numpy.where(numbers < 0, numbers, numbers - first) if numbers.ndim else int(numbers) - first * (numbers >= 0)


def _capsule(array: Any, max_version: Any) -> Any:
    if max_version is not None:
        try:
            return array.__dlpack__(max_version=max_version)
        except TypeError:  # NumPy before 2.1 takes only the plain capsule
            pass
    return array.__dlpack__()


def _bounds(array: Any) -> Tuple[int, int]:
    low = high = array.__array_interface__["data"][0]
    for length, stride in zip(array.shape, array.strides):
        low, high = (low + min(0, stride * (length - 1)), high + max(0, stride * (length - 1)))
    return low, high + array.itemsize


def rows_of(owner: Handle, view: Any, gpu: Optional[int], writable: bool = True, whole: bool = False) -> Rows:
    """Returns an array over a view of the library. gpu: number of the GPU that can address the memory, or None. whole: True if the view begins
    where a record begins."""
    def over(columns: int) -> Rows:
        rows = numpy.asarray(_Memory(owner, view, columns, writable)).view(Rows)
        if view.rows:
            rows._origin = view.data, view.stride, range(view.first, view.first + view.rows)
        if view.cuda and gpu is not None:
            rows._range, rows._gpu, rows._owner = (view.data, view.data + view.rows * view.stride), gpu, owner
        return rows

    rows = over(view.dim)
    if whole:
        rows._records = lambda: over(view.stride // ITEM_BYTES[view.dtype])
    return rows


# ---- bfloat16, and the types of files ----

def widened(bits: Any) -> Any:
    """Converts the bits of bfloat16 values, which are the upper halves of float32, to float32: an array or a single number."""
    return numpy.left_shift(bits, 16, dtype=numpy.uint32).view(numpy.float32)


def values_of(records: Any) -> Any:
    """Converts the weights in records of a table's file to float32 [rows x dim]. Raises KeyError if the first field is not the weights."""
    name = records.dtype.names[0]
    stored = records[name]
    if name == "weights":
        return stored
    if name == "weights_bfloat16":
        return widened(stored)
    values = {"weights_int8": lambda: stored.view(numpy.int8).astype(numpy.float32), "weights_float8": lambda: _FLOAT8[stored]}[name]()
    return values * records["scale"]


def _float8_values() -> Any:
    """The 256 values of e4m3 (OCP E4M3FN)."""
    codes = numpy.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    size = numpy.where(exponent, (8 + fraction) * 2.0 ** (exponent - 10), fraction * 2.0 ** -9)
    size[codes & 127 == 127] = numpy.nan
    return numpy.where(codes & 128, -size, size).astype(numpy.float32)


_FLOAT8 = _float8_values()


class HalfRows:
    """Rows of bfloat16 in place, [rows x dim]: the type of Table.weights and Run.target if these are stored as bfloat16.

    An index returns a float32 copy of the rows or values: rows[5], rows[10:20], rows[ids], rows[:, 0]. numpy.asarray(rows) copies
    all of them, so take large tables in blocks. To write to a table, store() rows: it rounds them.

    bits      the memory itself: sptx.Rows of uint16, the upper halves of float32. Writing to it changes the table
    bfloat16  the same memory as an array of ml_dtypes.bfloat16, if that package is installed
    DLPack    offers the memory as bfloat16, as sptx.Rows does: torch.from_dlpack(table.weights)
    """

    dtype = numpy.dtype(numpy.float32)  # type of the values that an index returns

    def __init__(self, bits: Rows) -> None:
        self.bits = bits

    @property
    def bfloat16(self) -> Any:
        """The memory as an array of ml_dtypes.bfloat16. Raises ImportError if ml_dtypes is not installed."""
        import ml_dtypes  # type: ignore[import-not-found]
        return self.bits.view(numpy.ndarray).view(ml_dtypes.bfloat16)

    @property
    def first(self) -> int:
        """The table's row at index 0."""
        return self.bits.first

    @property
    def shape(self) -> Tuple[int, ...]:
        """(rows, dim)."""
        return self.bits.shape

    @property
    def ndim(self) -> int:
        """2."""
        return self.bits.ndim

    @property
    def size(self) -> int:
        """Rows times columns."""
        return self.bits.size

    def __len__(self) -> int:
        return len(self.bits)

    def __getitem__(self, index: Any) -> Any:
        bits = self.bits[index]
        return widened(bits.view(numpy.ndarray) if isinstance(bits, numpy.ndarray) else bits)

    def __setitem__(self, index: Any, values: Any) -> None:
        raise TypeError("rows of bfloat16 are written by the table's store(), which rounds them; `bits` is the memory itself")

    def __iter__(self) -> Iterator[Any]:
        return (widened(row) for row in self.bits.view(numpy.ndarray))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if copy is False:
            raise ValueError("rows of bfloat16 become float32 in a copy only")
        return widened(self.bits.view(numpy.ndarray)).astype(dtype or numpy.float32, copy=False)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self.bits.__dlpack_device__()

    def __dlpack__(self, **asked: Any) -> Any:
        return _dlpack.say_bfloat16(self.bits.__dlpack__(**asked))

    def __repr__(self) -> str:
        return "sptx.HalfRows(%d x %d, bfloat16)" % self.bits.shape
