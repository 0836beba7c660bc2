"""Turns a status of the library and its error message into an exception."""

import os
import sys
import warnings

from . import _library

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Error(RuntimeError):
    """A failure not caused by the call's arguments: of memory, a disk, a GPU, or a file's contents. The text is the library's error message."""


class OutOfMemory(Error, MemoryError):
    """There is not enough host memory for the call."""


class SptxWarning(UserWarning):
    """A warning of the library."""


def tell(text: str) -> None:
    """Raises a warning that points to the user's line: the nearest caller outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, SptxWarning, stacklevel=level)


def raise_for(status: int, sentence: str, usage: type = ValueError) -> None:
    """Raises the exception for a status. For a call with wrong arguments it is of class `usage`, or IndexError for an id that is not a row."""
    if sentence.startswith(("ids[", "ids on the GPU were no rows")):
        raise IndexError(sentence)
    if status == _library.USAGE:
        raise usage(sentence or "a handle of the call is not open")
    if sentence.startswith("not enough memory"):
        raise OutOfMemory(sentence)
    raise Error(sentence or "not enough memory for a context")
