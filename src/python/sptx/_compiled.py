"""Loads the C module _calls (src/python/calls). For the usual arrays it makes calls on rows in a tenth of the time that Python and
ctypes need. It does not link libsptx, but is given the addresses of functions of the library that _library.py has loaded.

The wheel contains the module for CPython's limited API of 3.9. Python makes all calls by ctypes, with the same results, if the
module cannot be loaded (in another Python, in one without a global lock, in a subinterpreter with its own lock), or if
SPTX_CALLS=ctypes is in the environment. If SPTX_LIBRARY is set, the module may also be beside that library.
"""

import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any, List, Optional, Sequence, Tuple

import numpy

from . import _build
from ._context import Handle
from ._errors import raise_for
from ._libraries import streams_of_torch, torch_device
from ._library import library

CALLS = ("sptx_fetch", "sptx_prefetch", "sptx_update", "sptx_store", "sptx_error")


def _load() -> Any:
    """Returns the C module; None if it cannot be loaded."""
    if os.environ.get("SPTX_CALLS") == "ctypes":
        return None
    beside = os.path.dirname(os.environ.get("SPTX_LIBRARY") or "")
    spec = importlib.machinery.PathFinder.find_spec(__package__ + "._calls", [_build.PACKAGE] + ([beside] if beside else []))
    if spec is None or spec.loader is None:
        return None
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    return module


_module = _load()
known = _module.Known(numpy.ndarray, numpy.empty, numpy.dtype(numpy.float32)) if _module else None


def _walk(iterator: Any, plain: Any, words_only: bool, most: int) -> Tuple[bytes, bytes, bytes, bool]:
    """Does what walk() of the C module does: see src/python/calls/calls.c."""
    words: List[bytes] = []
    starts = [0]
    for sentence in iterator:
        words += plain(sentence, len(starts) - 1)
        starts.append(len(words))
        if max(len(words), len(starts)) >= most:
            break
    else:
        most = 0
    offsets = numpy.cumsum([0, *map(len, words)], dtype=numpy.int64)
    return b"".join(words), offsets.tobytes(), numpy.array(starts, numpy.uint64).tobytes(), not most


walk = _module.walk if _module else _walk


def learn_torch() -> None:
    """Lets the C module accept PyTorch's tensors; called when the first tensor is met. If this PyTorch cannot tell quickly whether calls are being
    traced, Python code continues to handle tensors."""
    torch = sys.modules["torch"]
    try:
        busy: Tuple[Any, ...] = (torch._C._is_tracing, torch._C._len_torch_dispatch_stack)
        if hasattr(getattr(torch._C, "DispatchKey", None), "PreDispatch"):  # tracing before dispatch is not on that stack
            busy += (functools.partial(torch._C._dispatch_tls_is_dispatch_key_included, torch._C.DispatchKey.PreDispatch),)
    except AttributeError:
        return
    if known is not None:
        known.learn_torch(torch.Tensor, torch.nn.Parameter, torch.int32, torch.int64, torch.float32, torch.strided, busy,
                          streams_of_torch())


def caller_for(handle: Handle, rows: int, dim: int, own: Sequence[Tuple[int, int]]) -> Any:
    """Returns a Caller of the C module for a table; None without the module. own: the addresses of the table's host memory."""
    if _module is None:
        return None
    context = handle.context
    of_context = (context._take_turn, context._end_turn, context._leaving, context._close_what_waits, context._said,
                  functools.partial(context._warn, 2))
    addresses = tuple(ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in CALLS)
    return _module.Caller(known, handle, of_context + (raise_for,), functools.partial(_template, context.gpu),
                          (context._handle.value, handle.pointer.value) + addresses, rows, dim,
                          -1 if context.gpu is None else context.gpu, sum(own, ()))


def marks() -> Optional[Any]:
    """Returns a new Marks of the C module; None without the module."""
    return _module.Marks(known) if _module is not None else None


def _template(gpu: Optional[int]) -> Any:
    """Returns an empty tensor of the same type and device as fetched rows."""
    torch = sys.modules["torch"]
    return torch.empty(0, dtype=torch.float32, device=torch_device(gpu))
