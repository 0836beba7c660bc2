"""Access to bfloat16 rows without a copy. NumPy has no bfloat16: indexing gives float32 copies, and the memory itself is uint16. Also reads the
values of a file's rows, of any type."""

from typing import Any, Iterator, Tuple

import numpy

from . import _dlpack
from ._views import Rows


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
