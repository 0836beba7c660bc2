"""Arrays of any library, as pointers for libsptx: NumPy, PyTorch, CuPy, JAX, and whatever has __cuda_array_interface__ or
__dlpack__. Nothing is imported here but NumPy: an array's library is there already.

    ids      any shape, whole numbers: int32 and int64 are passed as they are, other widths are widened; bool and floats are
             refused
    floats   float32; other types are refused (converting them silently would hide a model in half precision)
    both     are copied where they are not contiguous; they may lie on the host or on the table's GPU
    results  are of the ids' library; PyTorch's lie where the table runs, the others' where the ids lie

Each library is a class with the same few functions; `library_of` picks one.
"""

import sys
from typing import Any, NamedTuple, Optional, Tuple

import numpy

from . import _dlpack
from ._library import CUDA, HOST

Shape = Tuple[int, ...]


class Operand(NamedTuple):
    """One array of a call: where its elements lie, in order, without gaps."""

    pointer: int
    shape: Shape
    bits: int              # of an element
    memory: int            # HOST or CUDA
    stream: Optional[int]  # the cudaStream_t that its library works on; None on the host
    library: Any
    keep: Any              # what owns the memory


class Wrong(Exception):
    """Why an array cannot be used; becomes the exception with the array's name in it."""

    def __init__(self, kind: type, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def _wrong_ids(seen: str) -> Wrong:
    return Wrong(TypeError, "are %s, wanted int32 or int64" % seen)


def _wrong_floats(seen: str) -> Wrong:
    return Wrong(TypeError, "are %s, wanted float32" % seen)


def _check_gpu(number: int, gpu: Optional[int]) -> None:
    if gpu is None:
        raise Wrong(ValueError, "lie on cuda:%d, but the table runs on the CPU" % number)
    if number != gpu:
        raise Wrong(ValueError, "lie on cuda:%d, but the table runs on cuda:%d" % (number, gpu))


# ---- NumPy, and what becomes NumPy ----

class Numpy:
    """Arrays, lists, numbers: host memory."""

    @staticmethod
    def _operand(array: Any, shape: Shape) -> Operand:
        return Operand(array.__array_interface__["data"][0], shape, array.itemsize * 8, HOST, None, Numpy, array)

    @staticmethod
    def ids(given: Any, gpu: Optional[int]) -> Operand:
        array = given if isinstance(given, numpy.ndarray) else _array_of_list(given)
        if isinstance(array, numpy.ma.MaskedArray):
            raise Wrong(TypeError, "are a masked array; pass the ones that are meant, with .compressed()")
        if array.dtype.kind not in "iu":
            raise _wrong_ids(_kind_of(array))
        if array.dtype.kind == "u" and array.itemsize == 8 and array.size and int(array.max()) >> 63:
            raise Wrong(IndexError, "hold %d, which is no row" % array.max())
        wide = numpy.int32 if array.dtype.kind == "i" and array.itemsize == 4 else numpy.int64
        return Numpy._operand(numpy.ascontiguousarray(array, dtype=wide), array.shape)

    @staticmethod
    def floats(given: Any, gpu: Optional[int]) -> Operand:
        if isinstance(given, numpy.ndarray):
            array = given
            if array.dtype.kind != "f" or array.itemsize != 4:
                raise _wrong_floats(_kind_of(array))
        else:
            array = _array_of_list(given)
            if array.dtype.kind not in "fiu":
                raise _wrong_floats(_kind_of(array))
        return Numpy._operand(numpy.ascontiguousarray(array, dtype=numpy.float32), array.shape)

    @staticmethod
    def out(array: Any, gpu: Optional[int]) -> Operand:
        if not isinstance(array, numpy.ndarray):
            raise Wrong(TypeError, "is a %s; wanted an array of NumPy, PyTorch or CuPy" % type(array).__name__)
        if array.dtype != numpy.float32:
            raise Wrong(TypeError, "is %s, wanted float32" % _kind_of(array))
        if not array.flags.writeable:
            raise Wrong(ValueError, "is read-only")
        if not (array.flags.c_contiguous and array.flags.aligned):
            raise Wrong(ValueError, "is not contiguous")
        return Numpy._operand(array, array.shape)

    @staticmethod
    def new(shape: Shape, ids: Operand, gpu: Optional[int]) -> Operand:
        return Numpy._operand(numpy.empty(shape, numpy.float32), shape)

    @staticmethod
    def result(operand: Operand, ids: Operand) -> Any:
        return operand.keep

    @staticmethod
    def synchronize(operand: Operand) -> None:
        pass


def _kind_of(array: Any) -> str:
    return "bool" if array.dtype.kind == "b" else str(array.dtype)


def _array_of_list(given: Any) -> Any:
    if isinstance(given, (str, bytes, dict, set, frozenset)) or given is None:
        raise Wrong(TypeError, "are a %s, wanted an array or a list of numbers" % type(given).__name__)
    if isinstance(given, (list, tuple)) and any(isinstance(item, (bool, numpy.bool_)) for item in given):
        raise Wrong(TypeError, "hold bool, wanted numbers")
    try:
        array = numpy.asarray(given)
    except (ValueError, TypeError, OverflowError) as error:
        raise Wrong(ValueError, "are no array: %s" % error) from None
    if array.dtype.kind == "O":
        raise Wrong(TypeError,
                    "are no numbers of at most 64 bits but %s" % type(given).__name__)
    return array.astype(numpy.int64) if not array.size and isinstance(given, (list, tuple)) else array


# ---- PyTorch ----

class Torch:
    """Tensors of the CPU and of CUDA, in the order of the current stream."""

    @staticmethod
    def _operand(tensor: Any, shape: Shape) -> Operand:
        torch = sys.modules["torch"]
        cuda = tensor.is_cuda
        stream = torch.cuda.current_stream(tensor.device).cuda_stream if cuda else None
        return Operand(tensor.data_ptr(), shape, tensor.element_size() * 8, CUDA if cuda else HOST, stream, Torch, tensor)

    @staticmethod
    def _check(tensor: Any, gpu: Optional[int]) -> None:
        torch = sys.modules["torch"]
        if tensor.layout != torch.strided:
            raise Wrong(TypeError, "are %s, wanted a dense tensor" % tensor.layout)
        if tensor.is_cuda:
            _check_gpu(tensor.device.index, gpu)
        elif tensor.device.type != "cpu":
            raise Wrong(ValueError, "lie on '%s', wanted the CPU or the table's GPU" % tensor.device)

    @staticmethod
    def ids(tensor: Any, gpu: Optional[int]) -> Operand:
        torch = sys.modules["torch"]
        Torch._check(tensor, gpu)
        dtype = tensor.dtype
        if dtype not in (torch.int64, torch.int32):
            if dtype not in (torch.int16, torch.int8, torch.uint8):
                raise _wrong_ids(str(dtype).replace("torch.", ""))
            tensor = tensor.long()
        return Torch._operand(tensor.detach().contiguous(), tuple(tensor.shape))

    @staticmethod
    def floats(tensor: Any, gpu: Optional[int]) -> Operand:
        torch = sys.modules["torch"]
        Torch._check(tensor, gpu)
        if tensor.dtype != torch.float32:
            raise _wrong_floats(str(tensor.dtype).replace("torch.", ""))
        return Torch._operand(tensor.detach().resolve_neg().contiguous(), tuple(tensor.shape))

    @staticmethod
    def out(tensor: Any, gpu: Optional[int]) -> Operand:
        torch = sys.modules["torch"]
        Torch._check(tensor, gpu)
        if tensor.dtype != torch.float32:
            raise Wrong(TypeError, "is %s, wanted float32" % str(tensor.dtype).replace("torch.", ""))
        if not tensor.is_contiguous() or tensor.is_neg():
            raise Wrong(ValueError, "is not contiguous")
        if tensor.requires_grad:
            raise Wrong(ValueError, "takes part in autograd; pass its .detach()")
        return Torch._operand(tensor, tuple(tensor.shape))

    @staticmethod
    def new(shape: Shape, ids: Operand, gpu: Optional[int]) -> Operand:
        torch = sys.modules["torch"]
        device = torch.device("cuda", gpu) if gpu is not None and torch.cuda.is_available() else torch.device("cpu")
        return Torch._operand(torch.empty(shape, dtype=torch.float32, device=device), shape)

    @staticmethod
    def result(operand: Operand, ids: Operand) -> Any:
        return operand.keep

    @staticmethod
    def synchronize(operand: Operand) -> None:
        sys.modules["torch"].cuda.current_stream(operand.keep.device).synchronize()


# ---- CuPy ----

class Cupy:
    """Arrays of the GPU, in the order of CuPy's current stream."""

    @staticmethod
    def _operand(array: Any, shape: Shape) -> Operand:
        stream = sys.modules["cupy"].cuda.get_current_stream(array.device.id).ptr
        return Operand(array.data.ptr, shape, array.itemsize * 8, CUDA, stream, Cupy, array)

    @staticmethod
    def ids(array: Any, gpu: Optional[int]) -> Operand:
        cupy = sys.modules["cupy"]
        _check_gpu(array.device.id, gpu)
        if array.dtype.kind not in "iu":
            raise _wrong_ids(_kind_of(array))
        wide = numpy.int32 if array.dtype.kind == "i" and array.itemsize == 4 else numpy.int64
        with array.device:
            return Cupy._operand(cupy.ascontiguousarray(array, dtype=wide), array.shape)

    @staticmethod
    def floats(array: Any, gpu: Optional[int]) -> Operand:
        cupy = sys.modules["cupy"]
        _check_gpu(array.device.id, gpu)
        if array.dtype != numpy.float32:
            raise _wrong_floats(_kind_of(array))
        with array.device:
            return Cupy._operand(cupy.ascontiguousarray(array), array.shape)

    @staticmethod
    def out(array: Any, gpu: Optional[int]) -> Operand:
        _check_gpu(array.device.id, gpu)
        if array.dtype != numpy.float32:
            raise Wrong(TypeError, "is %s, wanted float32" % _kind_of(array))
        if not array.flags.c_contiguous:
            raise Wrong(ValueError, "is not contiguous")
        return Cupy._operand(array, array.shape)

    @staticmethod
    def new(shape: Shape, ids: Operand, gpu: Optional[int]) -> Operand:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(gpu):
            return Cupy._operand(cupy.empty(shape, numpy.float32), shape)

    @staticmethod
    def result(operand: Operand, ids: Operand) -> Any:
        return operand.keep

    @staticmethod
    def synchronize(operand: Operand) -> None:
        sys.modules["cupy"].cuda.get_current_stream(operand.keep.device.id).synchronize()


# ---- JAX ----

class Jax:
    """Arrays of one device. JAX shows no stream, so its arrays are waited for before a call, and the call after it."""

    @staticmethod
    def _take(array: Any, gpu: Optional[int]) -> Operand:
        jax = sys.modules["jax"]
        if isinstance(array, jax.core.Tracer):
            raise Wrong(TypeError, "are being traced; call the table outside jit, or through jax.pure_callback or io_callback")
        devices = list(array.devices())
        if len(devices) != 1:
            raise Wrong(ValueError, "lie on %d devices, wanted one" % len(devices))
        array.block_until_ready()
        if devices[0].platform == "cpu":
            host = numpy.ascontiguousarray(numpy.asarray(array))
            return Numpy._operand(host, tuple(array.shape))._replace(library=Jax, keep=(array, host))
        _check_gpu(devices[0].local_hardware_id or 0, gpu)
        pointer = array.unsafe_buffer_pointer()
        return Operand(pointer, tuple(array.shape), array.dtype.itemsize * 8, CUDA, 0, Jax, (array,))

    @staticmethod
    def ids(array: Any, gpu: Optional[int]) -> Operand:
        if array.dtype.kind not in "iu":
            raise _wrong_ids(_kind_of(array))
        if array.dtype.itemsize < 4:
            array = array.astype(numpy.int32)
        elif array.dtype.kind == "u":
            raise _wrong_ids(_kind_of(array))
        return Jax._take(array, gpu)

    @staticmethod
    def floats(array: Any, gpu: Optional[int]) -> Operand:
        if array.dtype != numpy.float32:
            raise _wrong_floats(_kind_of(array))
        return Jax._take(array, gpu)

    @staticmethod
    def out(array: Any, gpu: Optional[int]) -> Operand:
        raise Wrong(TypeError, "is a JAX array, which cannot be written to; take the one that is returned")

    @staticmethod
    def new(shape: Shape, ids: Operand, gpu: Optional[int]) -> Operand:
        if ids.memory == HOST:
            return Numpy.new(shape, ids, gpu)._replace(library=Jax)
        jax = sys.modules["jax"]
        device = next(iter(ids.keep[0].devices()))
        # A buffer of this call alone: nobody has seen it before the library has filled it.
        array = jax.device_put(jax.numpy.empty(shape, numpy.float32), device)
        return Jax._take(array, gpu)

    @staticmethod
    def result(operand: Operand, ids: Operand) -> Any:
        if operand.memory == CUDA:
            return operand.keep[0]
        jax = sys.modules["jax"]
        return jax.device_put(operand.keep, next(iter(ids.keep[0].devices())))

    @staticmethod
    def synchronize(operand: Operand) -> None:
        pass


# ---- others, by the two protocols ----

class Foreign:
    """Ids and values only: who fetches with such ids says where the rows go with out=."""

    @staticmethod
    def _take(array: Any, gpu: Optional[int], kinds: str) -> Operand:
        if hasattr(array, "__cuda_array_interface__"):
            return Foreign._by_interface(array, gpu, kinds)
        try:
            return Foreign._by_dlpack(array, gpu, kinds)
        except (BufferError, RuntimeError) as error:
            raise Wrong(TypeError, "cannot be had through DLPack: %s" % error) from None

    @staticmethod
    def _by_interface(array: Any, gpu: Optional[int], kinds: str) -> Operand:
        about = array.__cuda_array_interface__
        dtype = numpy.dtype(about["typestr"])
        _check_kind(dtype, kinds)
        if gpu is None:
            raise Wrong(ValueError, "lie on a GPU, but the table runs on the CPU")
        if about.get("strides") is not None and about["strides"] != _dlpack.dense_strides(about["shape"], dtype.itemsize):
            raise Wrong(ValueError, "are not contiguous")
        stream = {None: 0, 1: 0}.get(about.get("stream"), about.get("stream"))
        return Operand(about["data"][0] or 0, tuple(about["shape"]), dtype.itemsize * 8, CUDA, stream, Foreign, array)

    @staticmethod
    def _by_dlpack(array: Any, gpu: Optional[int], kinds: str) -> Operand:
        device, number = array.__dlpack_device__()
        if device in (_dlpack.CPU, _dlpack.CUDA_HOST):
            host = numpy.from_dlpack(array)
            _check_kind(host.dtype, kinds)
            return Numpy._operand(numpy.ascontiguousarray(host), host.shape)._replace(library=Foreign)
        if device != _dlpack.CUDA:
            raise Wrong(ValueError, "lie on DLPack's device %d, wanted the CPU or the table's GPU" % device)
        _check_gpu(number, gpu)
        held = _dlpack.Held(array.__dlpack__(stream=1))  # 1: the default stream, where the call is ordered too
        _check_kind(held.dtype, kinds)
        if held.strides is not None and held.strides != _dlpack.dense_strides(held.shape, 1):
            raise Wrong(ValueError, "are not contiguous")
        return Operand(held.pointer, held.shape, held.dtype.itemsize * 8, CUDA, 0, Foreign, held)

    @staticmethod
    def ids(array: Any, gpu: Optional[int]) -> Operand:
        return Foreign._take(array, gpu, "ids")

    @staticmethod
    def floats(array: Any, gpu: Optional[int]) -> Operand:
        return Foreign._take(array, gpu, "floats")

    @staticmethod
    def out(array: Any, gpu: Optional[int]) -> Operand:
        raise Wrong(TypeError, "is a %s; wanted an array of NumPy, PyTorch or CuPy" % type(array).__name__)

    @staticmethod
    def new(shape: Shape, ids: Operand, gpu: Optional[int]) -> Operand:
        raise Wrong(TypeError, "are of a library that sptx makes no arrays of; say with out= where the rows go")

    @staticmethod
    def synchronize(operand: Operand) -> None:
        pass


def _check_kind(dtype: Any, kinds: str) -> None:
    if kinds == "floats" and dtype != numpy.float32:
        raise _wrong_floats(str(dtype))
    if kinds == "ids" and dtype != numpy.int32 and dtype != numpy.int64:
        raise _wrong_ids(str(dtype))


# ---- which ----

def library_of(array: Any) -> Any:
    if isinstance(array, numpy.ndarray):
        return Numpy
    for module, name, library in (("torch", "Tensor", Torch), ("cupy", "ndarray", Cupy), ("jax", "Array", Jax)):
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(array, kind):
            return library
    if hasattr(array, "__cuda_array_interface__") or (hasattr(array, "__dlpack__") and not hasattr(array, "__array__")):
        return Foreign
    return Numpy


def _named(what: str, wrong: Wrong) -> Exception:
    return wrong.kind("%s %s" % (what, wrong))


def take_ids(given: Any, gpu: Optional[int]) -> Operand:
    try:
        return library_of(given).ids(given, gpu)
    except Wrong as wrong:
        raise _named("ids", wrong) from None


def take_floats(given: Any, gpu: Optional[int], what: str, shape: Shape) -> Operand:
    """The operand of float32 of just this shape."""
    try:
        operand = library_of(given).floats(given, gpu)
    except Wrong as wrong:
        raise _named(what, wrong) from None
    _check_shape(operand, what + " have", shape)
    return operand


def take_out(given: Any, ids: Operand, gpu: Optional[int], shape: Shape) -> Operand:
    """Where fetched rows go: the caller's array, or a new one of the ids' library."""
    try:
        operand = library_of(given).out(given, gpu) if given is not None else ids.library.new(shape, ids, gpu)
    except Wrong as wrong:
        raise _named("ids" if given is None else "out", wrong) from None
    _check_shape(operand, "out has", shape)
    return operand


def _check_shape(operand: Operand, who: str, shape: Shape) -> None:
    if operand.shape != shape:
        raise ValueError("%s the shape %s, wanted %s: the ids' own and the table's columns" % (who, operand.shape, shape))


def must_wait(*operands: Operand) -> bool:
    """Whether an operand's library may use its memory for something else before the GPU is done with the call."""
    return any(operand.memory == CUDA and operand.library in (Jax, Foreign) for operand in operands)


def stream_of(*operands: Operand) -> Optional[int]:
    """The stream that a call is ordered on: the first operand's that lies on the GPU. Others on another are waited for."""
    stream = None
    for operand in operands:
        if operand.stream is None:
            continue
        if stream is None:
            stream = operand.stream
        elif operand.stream != stream:
            operand.library.synchronize(operand)
    return stream
