"""Options of optimizers: turns PyTorch's names into the fields of sptx.h, and refuses options that an optimizer lacks."""

import ctypes
import math
from typing import Any, Dict, Optional

import numpy

from . import _library
from ._context import number_of
from ._library import library

# Each optimizer's options beside lr and clip, as the library names them: numbers and flags of sptx.h.
OPTIMIZERS: Dict[str, tuple] = {
    name: tuple(_library.names(library.sptx_optimizer_option, name.encode()))
    for name in _library.names(library.sptx_optimizer)}

# Names of PyTorch's that are called otherwise in sptx.h.
PAIRS = {"betas": ("beta1", "beta2"), "etas": ("eta_minus", "eta_plus"), "step_sizes": ("step_min", "step_max")}
ALIASES = {"initial_accumulator_value": "initial_accumulator"}


def read_options(optimizer: Any, lr: Optional[float], clip: Any, count_rows: Any, given: Dict[str, Any]) -> Any:
    """Returns a struct sptx_table_options with these options; all others have their defaults. TypeError for an option that the optimizer lacks."""
    if not isinstance(optimizer, str):
        raise TypeError("optimizer = %r is not a name; wanted one of %s" % (optimizer, ", ".join(OPTIMIZERS)))
    name = optimizer.replace("-", "_")
    if name not in OPTIMIZERS:
        raise ValueError("optimizer '%s' is none of %s" % (optimizer, ", ".join(OPTIMIZERS)))
    options = _library.TableOptions()
    library.sptx_table_defaults(ctypes.byref(options), ctypes.sizeof(options))
    options.optimizer = name.encode()
    if lr is not None:
        options.lr = _number(lr, "lr")
    options.clip = _number(clip, "clip")
    options.count_rows = _flag(count_rows, "count_rows")
    for key, value in _spelled_out(given).items():
        if key not in OPTIMIZERS[name]:
            raise TypeError("optimizer '%s' has no option '%s'; it has %s" %
                            (name, key, ", ".join(("lr",) + OPTIMIZERS[name]) if name != "none" else "none"))
        setattr(options, key, _flag(value, key) if key in _library.FLAGS else _number(value, key))
    return options


def _spelled_out(given: Dict[str, Any]) -> Dict[str, Any]:
    out: Dict[str, Any] = {}
    for key, value in given.items():
        names = PAIRS.get(key)
        if names is None:
            out[ALIASES.get(key, key)] = value
            continue
        try:
            first, second = value
        except (TypeError, ValueError):
            raise TypeError("%s = %r is not a pair of numbers" % (key, value)) from None
        out.update({names[0]: first, names[1]: second})
    return out


def _number(value: Any, what: str) -> float:
    number = number_of(value, what)
    if math.isnan(number):
        raise ValueError("%s is NaN" % what)
    return number


def _flag(value: Any, what: str) -> int:
    if not isinstance(value, (int, numpy.integer, numpy.bool_)) or value not in (0, 1):
        raise TypeError("%s = %r is not True or False" % (what, value))
    return int(value)
