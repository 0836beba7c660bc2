"""DLPack's structs. NumPy makes the capsules. This module marks memory that a GPU can address, which NumPy cannot know, and reads capsules of GPU
libraries that have no other interface.

The versioned struct is that of DLPack 1.0: in it a version comes before the tensor; in the older struct the tensor is first.
"""

import ctypes
from typing import Any, Optional, Tuple

import numpy

CPU, CUDA, CUDA_HOST = 1, 2, 3  # DLDeviceType
BFLOAT = 4  # DLDataTypeCode


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def tensor_of(capsule: Any) -> DLTensor:
    """Returns the tensor in an unused capsule; it is valid as long as the capsule."""
    if _is_valid(capsule, b"dltensor_versioned"):
        return DLManagedTensorVersioned.from_address(_pointer(capsule, b"dltensor_versioned")).tensor
    if _is_valid(capsule, b"dltensor"):
        return DLManagedTensor.from_address(_pointer(capsule, b"dltensor")).tensor
    raise BufferError("what __dlpack__ gave is no capsule of a tensor")


def offer_to_gpu(capsule: Any, gpu: int) -> Any:
    """Marks the host memory of a capsule as GPU memory; the GPU can use the same address."""
    tensor = tensor_of(capsule)
    tensor.device_type, tensor.device_id = CUDA, gpu
    return capsule


def say_bfloat16(capsule: Any) -> Any:
    """Marks a capsule's 16-bit numbers as bfloat16."""
    tensor_of(capsule).code = BFLOAT
    return capsule


class Held:
    """Reads a capsule without consuming it: the memory stays valid as long as this object."""

    def __init__(self, capsule: Any) -> None:
        tensor = tensor_of(capsule)
        kind = {0: "i", 1: "u", 2: "f"}.get(tensor.code)
        if kind is None or tensor.lanes != 1 or tensor.bits % 8:
            raise BufferError("its elements are of DLPack's type (%d, %d, %d)" % (tensor.code, tensor.bits, tensor.lanes))
        self._capsule = capsule
        self.dtype = numpy.dtype("%s%d" % (kind, tensor.bits // 8))
        self.shape: Tuple[int, ...] = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self.strides: Optional[Tuple[int, ...]] = (tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides
                                                   else None)
        self.pointer: int = (tensor.data or 0) + tensor.byte_offset


def dense_strides(shape: Tuple[int, ...], unit: int) -> Tuple[int, ...]:
    """Returns the strides of a dense array of this shape; an element has `unit` units."""
    strides = []
    for length in reversed(tuple(shape)):
        strides.append(unit)
        unit *= length
    return tuple(reversed(strides))
