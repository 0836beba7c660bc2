"""The supported array libraries, each a class with the same few functions. This module imports only NumPy: a program that passes an array has
imported its library.

    ids, floats   return the Operand of an array, copied if it is not dense; raise Wrong if it cannot be used
    out           returns the Operand of an array to be filled
    new, result   a new array for fetched rows, and the object that the caller gets for it
    copied        returns a copy of an operand
    synchronize   waits for the stream in which the library works
"""

import functools
import math
import sys
from typing import Any, NamedTuple, Optional, Tuple

import numpy

from . import _dlpack
from ._library import CUDA, HOST

Shape = Tuple[int, ...]
MOST_IDS = (1 << 32) - 1  # largest number of ids of a call


class Operand(NamedTuple):
    """One array of a call: the address of its elements, which are dense and in order."""

    pointer: int
    shape: Shape
    count: int             # number of elements
    bits: int              # bits of an element
    memory: int            # HOST or CUDA
    stream: Optional[int]  # the cudaStream_t in which its library works; None on the host
    library: Any
    keep: Any              # the object that owns the memory


class Wrong(Exception):
    """The reason why an array cannot be used; it is raised as an exception that names the array."""

    def __init__(self, kind: type, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def _wrong_ids(seen: str) -> Wrong:
    return Wrong(TypeError, "are %s, wanted int32 or int64" % seen)


def _wrong_floats(seen: str) -> Wrong:
    return Wrong(TypeError, "are %s, wanted float32, float16 or bfloat16" % seen)


def _check_count(count: int) -> None:
    """Refuses too many ids before they are copied: a broadcast array may have many elements but hardly any memory."""
    if count > MOST_IDS:
        raise Wrong(ValueError, "are %d, more than %d in one call" % (count, MOST_IDS))


def _check_gpu(number: int, gpu: Optional[int]) -> None:
    if gpu is None:
        raise Wrong(ValueError, "lie on cuda:%d, but the table runs on the CPU" % number)
    if number != gpu:
        raise Wrong(ValueError, "lie on cuda:%d, but the table runs on cuda:%d" % (number, gpu))


class _Library:
    """Base class of the libraries. By default arrays are not filled or copied, and there is no stream to wait for."""

    @staticmethod
    def out(array: Any, gpu: Optional[int]) -> Operand:
        raise Wrong(TypeError, "is a %s; wanted an array of NumPy, PyTorch or CuPy" % type(array).__name__)

    @staticmethod
    def result(operand: Operand, ids: Operand) -> Any:
        return operand.keep

    @staticmethod
    def copied(operand: Operand) -> Operand:
        raise Wrong(ValueError, "lie in the table's own memory: pass a copy")

    @staticmethod
    def synchronize(operand: Operand) -> None:
        pass


# ---- NumPy, and what becomes NumPy ----

class Numpy(_Library):
    """Arrays, lists and numbers in host memory."""

    @staticmethod
    def _operand(array: Any) -> Operand:
        """Describes an array as a plain ndarray, made dense if necessary, even if a derived class redefines attributes."""
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned):
            array = numpy.array(array, order="C")
        return Operand(array.__array_interface__["data"][0], array.shape, array.size, array.itemsize * 8, HOST, None, Numpy,
                       array)

    @staticmethod
    def ids(given: Any, gpu: Optional[int]) -> Operand:
        array = given if type(given) is numpy.ndarray else _array_of(given)
        dtype = array.dtype
        if dtype != numpy.int64 and dtype != numpy.int32:
            if dtype.kind not in "iu":
                raise _wrong_ids(_kind_of(array))
            _check_count(array.size)
            if dtype.kind == "u" and dtype.itemsize == 8 and array.size and int(array.max()) >> 63:
                raise Wrong(IndexError, "hold %d, which is no row" % array.max())
            array = array.astype(numpy.int64)
        _check_count(array.size)
        return Numpy._operand(array)

    @staticmethod
    def floats(given: Any, gpu: Optional[int]) -> Operand:
        array = given if type(given) is numpy.ndarray else _array_of(given)
        if array.dtype != numpy.float32:
            if array.dtype.kind not in ("fiu" if not isinstance(given, numpy.ndarray) else "f" if array.itemsize <= 4 else ""):
                raise _wrong_floats(_kind_of(array))
            array = array.astype(numpy.float32)
        return Numpy._operand(array)

    @staticmethod
    def out(array: Any, gpu: Optional[int]) -> Operand:
        if not isinstance(array, numpy.ndarray):
            _Library.out(array, gpu)
        array = numpy.asarray(array)
        if array.dtype != numpy.float32:
            raise Wrong(TypeError, "is %s, wanted float32" % _kind_of(array))
        if not array.flags.writeable:
            raise Wrong(ValueError, "is read-only")
        if not (array.flags.c_contiguous and array.flags.aligned):
            raise Wrong(ValueError, "is not contiguous")
        return Numpy._operand(array)

    @staticmethod
    def new(shape: Shape, ids: Operand, gpu: Optional[int]) -> Operand:
        return Numpy._operand(numpy.empty(shape, numpy.float32))

    @staticmethod
    def copied(operand: Operand) -> Operand:
        return Numpy._operand(operand.keep.copy())


def _kind_of(array: Any) -> str:
    return "bool" if array.dtype.kind == "b" else str(array.dtype)


def _array_of(given: Any) -> Any:
    """Returns a plain ndarray from an array of another class, a list or a number."""
    if isinstance(given, numpy.ma.MaskedArray):
        raise Wrong(TypeError, "are a masked array; pass the ones that are meant, with .compressed()")
    if isinstance(given, numpy.ndarray):
        return numpy.asarray(given)
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

def _is_traced(tensor: Any) -> bool:
    """True under torch.jit.trace, make_fx or torch.export, which would record only that a fetch allocates memory."""
    torch = sys.modules["torch"]
    kind = type(tensor)
    if torch.jit.is_tracing() or (kind is not torch.Tensor and kind.__module__.startswith("torch._subclasses.")):
        return True
    tracing = sys.modules.get("torch.fx.experimental.proxy_tensor")  # such a tracer has imported this module
    if tracing is None:
        return False
    if hasattr(tracing, "get_proxy_mode"):
        return tracing.get_proxy_mode() is not None
    modes = torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    return any(isinstance(mode, tracing.ProxyTorchDispatchMode) for mode in modes)


class Torch(_Library):
    """PyTorch tensors on the CPU and on CUDA; calls are ordered in PyTorch's current stream."""

    @staticmethod
    def _operand(tensor: Any, bits: int = 32) -> Operand:
        """Describes a dense tensor. Makes a copy if its address is not a multiple of its element size, which happens in memory of other libraries."""
        pointer = tensor.data_ptr()
        if pointer & ((bits >> 3) - 1):
            tensor = tensor.detach().clone()
            pointer = tensor.data_ptr()
        if tensor.is_cuda:
            stream = streams_of_torch()(tensor.get_device())
            return Operand(pointer, tensor.shape, tensor.numel(), bits, CUDA, stream, Torch, tensor)
        return Operand(pointer, tensor.shape, tensor.numel(), bits, HOST, None, Torch, tensor)

    @staticmethod
    def _check(tensor: Any, gpu: Optional[int]) -> None:
        torch = sys.modules["torch"]
        if _is_traced(tensor):
            raise Wrong(TypeError, "are being traced; call the table outside of torch.jit.trace, make_fx and torch.export: what is "
                                   "fetched is no part of a graph")
        if tensor.layout != torch.strided:
            raise Wrong(TypeError, "are %s, wanted a dense tensor" % tensor.layout)
        if tensor.is_cuda:
            _check_gpu(tensor.get_device(), gpu)
        elif not tensor.is_cpu:
            raise Wrong(ValueError, "lie on '%s', wanted the CPU or the table's GPU" % tensor.device)

    @staticmethod
    def ids(tensor: Any, gpu: Optional[int]) -> Operand:
        torch = sys.modules["torch"]
        Torch._check(tensor, gpu)
        dtype = tensor.dtype
        _check_count(tensor.numel())
        if dtype is not torch.int64 and dtype is not torch.int32:
            if dtype not in (torch.int16, torch.int8, torch.uint8):
                raise _wrong_ids(str(dtype).replace("torch.", ""))
            tensor = tensor.long()
        return Torch._operand(tensor if tensor.is_contiguous() else tensor.contiguous(), 32 if dtype is torch.int32 else 64)

    @staticmethod
    def floats(tensor: Any, gpu: Optional[int]) -> Operand:
        torch = sys.modules["torch"]
        Torch._check(tensor, gpu)
        if tensor.dtype in (torch.float16, torch.bfloat16):
            tensor = tensor.detach().float()
        if tensor.dtype != torch.float32:
            raise _wrong_floats(str(tensor.dtype).replace("torch.", ""))
        if tensor.is_neg() or not tensor.is_contiguous():
            tensor = tensor.detach().resolve_neg().contiguous()
        return Torch._operand(tensor)

    @staticmethod
    def out(tensor: Any, gpu: Optional[int]) -> Operand:
        torch = sys.modules["torch"]
        Torch._check(tensor, gpu)
        if tensor.dtype != torch.float32:
            raise Wrong(TypeError, "is %s, wanted float32" % str(tensor.dtype).replace("torch.", ""))
        if not tensor.is_contiguous() or tensor.is_neg() or tensor.data_ptr() % 4:
            raise Wrong(ValueError, "is not contiguous")
        if tensor.requires_grad:
            raise Wrong(ValueError, "takes part in autograd; pass its .detach()")
        return Torch._operand(tensor)

    @staticmethod
    def new(shape: Shape, ids: Operand, gpu: Optional[int]) -> Operand:
        torch = sys.modules["torch"]
        return Torch._operand(torch.empty(shape, dtype=torch.float32, device=torch_device(gpu)))

    @staticmethod
    def copied(operand: Operand) -> Operand:
        return Torch._operand(operand.keep.detach().clone(), operand.bits)

    @staticmethod
    def synchronize(operand: Operand) -> None:
        sys.modules["torch"].cuda.current_stream(operand.keep.device).synchronize()


@functools.lru_cache(maxsize=None)
def torch_device(gpu: Optional[int]) -> Any:
    """Returns PyTorch's device for a table's GPU; the CPU if the table has no GPU, or PyTorch has no CUDA."""
    torch = sys.modules["torch"]
    return torch.device("cuda", gpu) if gpu is not None and torch.cuda.is_available() else torch.device("cpu")


@functools.lru_cache(maxsize=None)
def streams_of_torch() -> Any:
    """Returns the function that gives a GPU's current cudaStream_t. If PyTorch has a function that returns only this number, it is that one, which
    saves some microseconds."""
    torch = sys.modules["torch"]
    bare = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return bare if bare is not None else lambda gpu: int(torch.cuda.current_stream(gpu).cuda_stream)


# ---- CuPy ----

class Cupy(_Library):
    """CuPy arrays on the GPU; calls are ordered in CuPy's current stream."""

    @staticmethod
    def _operand(array: Any, shape: Shape) -> Operand:
        stream = sys.modules["cupy"].cuda.get_current_stream(array.device.id).ptr
        return Operand(array.data.ptr, shape, array.size, array.itemsize * 8, CUDA, stream, Cupy, array)

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
        if array.dtype != numpy.float32 and array.dtype != numpy.float16:
            raise _wrong_floats(_kind_of(array))
        with array.device:
            return Cupy._operand(cupy.ascontiguousarray(array, dtype=numpy.float32), array.shape)

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
    def copied(operand: Operand) -> Operand:
        with operand.keep.device:
            return Cupy._operand(operand.keep.copy(), operand.shape)

    @staticmethod
    def synchronize(operand: Operand) -> None:
        sys.modules["cupy"].cuda.get_current_stream(operand.keep.device.id).synchronize()


# ---- JAX ----

class Jax(_Library):
    """JAX arrays on a single device. JAX has no streams in which calls could be ordered, so a call waits for its arrays, and returns only when it
    is done."""

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
            host = Numpy._operand(numpy.asarray(array))
            return host._replace(library=Jax, keep=(array, host.keep))
        _check_gpu(devices[0].local_hardware_id or 0, gpu)
        pointer = array.unsafe_buffer_pointer()
        return Operand(pointer, tuple(array.shape), array.size, array.dtype.itemsize * 8, CUDA, 0, Jax, (array,))

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
        # only this call has the buffer until the library has filled it
        array = jax.device_put(jax.numpy.empty(shape, numpy.float32), device)
        return Jax._take(array, gpu)

    @staticmethod
    def result(operand: Operand, ids: Operand) -> Any:
        if operand.memory == CUDA:
            return operand.keep[0]
        jax = sys.modules["jax"]
        return jax.device_put(operand.keep, next(iter(ids.keep[0].devices())))


# ---- others, by the two protocols ----

class Foreign(_Library):
    """Arrays of unknown libraries. They may be ids and values, but a fetch with such ids needs out=."""

    @staticmethod
    def _take(array: Any, gpu: Optional[int], kinds: str) -> Operand:
        if hasattr(array, "__cuda_array_interface__"):
            return Foreign._by_interface(array, gpu, kinds)
        try:
            return Foreign._by_dlpack(array, gpu, kinds)
        except Wrong:
            raise
        except Exception as error:  # __dlpack__() of an unknown library may raise anything
            raise Wrong(TypeError, "cannot be had through DLPack: %s: %s" % (type(error).__name__, error)) from None

    @staticmethod
    def _by_interface(array: Any, gpu: Optional[int], kinds: str) -> Operand:
        try:
            about = array.__cuda_array_interface__
            dtype, shape, pointer = numpy.dtype(about["typestr"]), tuple(map(int, about["shape"])), int(about["data"][0] or 0)
        except Exception as error:
            raise Wrong(TypeError, "have no whole __cuda_array_interface__: %s: %s" % (type(error).__name__, error)) from None
        _check_kind(dtype, kinds)
        if gpu is None:
            raise Wrong(ValueError, "lie on a GPU, but the table runs on the CPU")
        if about.get("strides") is not None and tuple(about["strides"]) != _dlpack.dense_strides(shape, dtype.itemsize):
            raise Wrong(ValueError, "are not contiguous")
        stream = {None: 0, 1: 0}.get(about.get("stream"), about.get("stream"))
        return Operand(pointer, shape, math.prod(shape), dtype.itemsize * 8, CUDA, stream, Foreign, array)

    @staticmethod
    def _by_dlpack(array: Any, gpu: Optional[int], kinds: str) -> Operand:
        device, number = array.__dlpack_device__()
        if device in (_dlpack.CPU, _dlpack.CUDA_HOST):
            host = numpy.from_dlpack(array)
            _check_kind(host.dtype, kinds)
            return Numpy._operand(host)._replace(library=Foreign)
        if device != _dlpack.CUDA:
            raise Wrong(ValueError, "lie on DLPack's device %d, wanted the CPU or the table's GPU" % device)
        _check_gpu(number, gpu)
        held = _dlpack.Held(array.__dlpack__(stream=1))  # 1: the default stream, where the call is ordered too
        _check_kind(held.dtype, kinds)
        if held.strides is not None and held.strides != _dlpack.dense_strides(held.shape, 1):
            raise Wrong(ValueError, "are not contiguous")
        return Operand(held.pointer, held.shape, math.prod(held.shape), held.dtype.itemsize * 8, CUDA, 0, Foreign, held)

    @staticmethod
    def ids(array: Any, gpu: Optional[int]) -> Operand:
        return Foreign._take(array, gpu, "ids")

    @staticmethod
    def floats(array: Any, gpu: Optional[int]) -> Operand:
        return Foreign._take(array, gpu, "floats")

    @staticmethod
    def new(shape: Shape, ids: Operand, gpu: Optional[int]) -> Operand:
        raise Wrong(TypeError, "are of a library that sptx makes no arrays of; say with out= where the rows go")


def _check_kind(dtype: Any, kinds: str) -> None:
    if kinds == "floats" and dtype != numpy.float32:
        raise _wrong_floats(str(dtype))
    if kinds == "ids" and dtype != numpy.int32 and dtype != numpy.int64:
        raise _wrong_ids(str(dtype))
