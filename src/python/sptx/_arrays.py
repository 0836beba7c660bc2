"""Passes arrays of any library to libsptx as pointers: NumPy, PyTorch, CuPy, JAX, and any array with __cuda_array_interface__ or
__dlpack__.

    ids      any shape, whole numbers: int32 and int64 are passed as they are, other widths are widened; bool and floats are
             refused
    floats   float32; float16 and bfloat16 are widened, which changes no value; others are refused
    both     are copied if they are not contiguous; they may be on the host or on the table's GPU
    results  are arrays of the library of the ids: PyTorch's on the table's device, all others' on the device of the ids

Each library is a class of _libraries.py; `library_of` picks one.
"""

import sys
from typing import Any, Dict, Optional

import numpy

from ._compiled import learn_torch
from ._library import CUDA
from ._libraries import Cupy, Foreign, Jax, Numpy, Operand, Shape, Torch, Wrong

_known: Dict[type, Any] = {numpy.ndarray: Numpy}  # classes seen before, only of libraries that stay loaded


def library_of(array: Any) -> Any:
    kind = type(array)
    return _known.get(kind) or _find_library(array, kind)


def _find_library(array: Any, kind: type) -> Any:
    if isinstance(array, numpy.ndarray):
        return Numpy
    for module, name, library in (("torch", "Tensor", Torch), ("cupy", "ndarray", Cupy), ("jax", "Array", Jax)):
        base = getattr(sys.modules.get(module), name, None)
        if isinstance(base, type) and isinstance(array, base):
            if kind.__module__.split(".")[0] in ("torch", "cupy", "jaxlib"):
                _known[kind] = library
                if library is Torch:
                    learn_torch()
            return library
    if _has(array, "__cuda_array_interface__") or (_has(array, "__dlpack__") and not _has(array, "__array__")):
        return Foreign
    return Numpy


def _has(array: Any, name: str) -> bool:
    try:
        return hasattr(array, name)
    except Exception:  # a __getattr__ may raise anything
        return False


def _named(what: str, wrong: Wrong) -> Exception:
    return wrong.kind("%s %s" % (what, wrong))


def take_ids(given: Any, gpu: Optional[int]) -> Operand:
    try:
        return library_of(given).ids(given, gpu)
    except Wrong as wrong:
        raise _named("ids", wrong) from None


def take_floats(given: Any, gpu: Optional[int], what: str, shape: Shape) -> Operand:
    """Returns the operand of float32 values. They must have exactly this shape."""
    library = library_of(given)
    shaped = library is Torch or isinstance(given, numpy.ndarray)
    if shaped and given.shape != shape:  # before the copy of a large array to a dense one
        raise _wrong_shape(given.shape, what + " have", shape)
    try:
        operand = library.floats(given, gpu)
    except Wrong as wrong:
        raise _named(what, wrong) from None
    if not shaped and operand.shape != shape:
        raise _wrong_shape(operand.shape, what + " have", shape)
    return operand


def take_out(given: Any, ids: Operand, gpu: Optional[int], shape: Shape) -> Operand:
    """Returns the array into which rows are fetched: the caller's, or a new one of the library of the ids."""
    try:
        if given is None:
            return ids.library.new(shape, ids, gpu)
        operand = library_of(given).out(given, gpu)
    except Wrong as wrong:
        raise _named("ids" if given is None else "out", wrong) from None
    if operand.shape != shape:
        raise _wrong_shape(operand.shape, "out has", shape)
    if overlaps(operand, ids.pointer, ids.pointer + ids.count * (ids.bits >> 3)):
        raise ValueError("out lies in the ids' own memory")
    return operand


def _wrong_shape(seen: Shape, who: str, shape: Shape) -> Exception:
    return ValueError("%s the shape %s, wanted %s: the ids' own and the table's columns" % (who, tuple(seen), tuple(shape)))


def narrowed(rows: Any, dtype: Any) -> Any:
    """Returns rows of NumPy, PyTorch or CuPy converted to another type of floats, which is given by name or as an object of the library. Values
    are rounded to the nearest."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or str(getattr(dtype, "__name__", dtype)).replace("torch.", "")
    if name not in ("float32", "float16", "bfloat16"):
        raise ValueError("dtype = %r is none of float32, float16 and bfloat16" % (dtype,))
    library = library_of(rows)
    if library is Torch:
        return rows.to(getattr(sys.modules["torch"], name))
    if name == "bfloat16":
        raise TypeError("rows of bfloat16 are tensors of PyTorch: pass ids that are such a tensor")
    return rows.astype(name, copy=False)


def overlaps(operand: Operand, low: int, high: int) -> bool:
    """True if the operand overlaps the addresses low .. high - 1. Host and GPU have one common address space."""
    start = operand.pointer
    return start < high and low < start + operand.count * (operand.bits >> 3)


def copied(operand: Operand, what: str) -> Operand:
    try:
        return operand.library.copied(operand)
    except Wrong as wrong:
        raise _named(what, wrong) from None


def must_wait(operand: Optional[Operand]) -> bool:
    """True if the library of an operand could reuse its memory before the GPU has finished the call."""
    return operand is not None and operand.memory == CUDA and operand.library in (Jax, Foreign)


def stream_of(which: Operand, values: Optional[Operand]) -> Optional[int]:
    """Returns the stream on which a call runs: that of the first operand on the GPU. If the other operand has another stream, the first stream
    waits for it."""
    if values is None or values.stream is None:
        return which.stream
    if which.stream is None:
        return values.stream
    if values.stream != which.stream:
        values.library.synchronize(values)
    return which.stream


def refuse_infinite(gradients: Any) -> None:
    """Raises ValueError if one of the gradients (an array of any library) is NaN or infinite."""
    home = type(gradients).__module__.partition(".")[0]
    library = sys.modules[home] if home in ("torch", "cupy") else numpy
    values = gradients.detach() if home == "torch" else gradients if home == "cupy" else numpy.asarray(gradients)
    finite = library.isfinite(values)
    if not finite.all():
        place = (~finite).nonzero()
        first = [int(one) for one in (place[0] if home == "torch" else (axis[0] for axis in place))]
        raise ValueError("gradients%s is %s: the table is unchanged" % (first, float(values[tuple(first)])))
