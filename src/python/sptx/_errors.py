"""Turns a status of the library and its error message into an exception."""

import contextlib
import contextvars
import os
import re
import sys
import warnings
from typing import Container, Iterator, Mapping

from . import _library

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Error(RuntimeError):
    """A failure not caused by the call's arguments: of memory, a disk, a GPU, or a file's contents. The text is the library's error message."""


class OutOfMemory(Error, MemoryError):
    """There is not enough host memory for the call."""


class SptxWarning(UserWarning):
    """A warning of the library."""


_names: "contextvars.ContextVar[Mapping[str, str]]" = contextvars.ContextVar("names", default={})


def in_users_words(text: str) -> str:
    """Returns a message with each key of `names` (see naming) written as the argument's name. Removes what means nothing to the caller of a model:
    that the value is one of the settings, that "auto" is allowed, and a key's value in parentheses, which a model computes from its argument."""
    names = _names.get()
    found = [key for key in names if key in text]
    if not found:
        return text
    text = re.sub(r"^settings: |(, all)?, or auto$", "", text)
    return re.sub(r"(?<![\w.])(%s)(?!\w)( \((now )?[-+.\de]+\))?" % "|".join(map(re.escape, found)), lambda key: names[key[1]], text)


@contextlib.contextmanager
def naming(names: Mapping[str, str], given: Container[str] = ()) -> Iterator[None]:
    """While it lasts, warnings and errors of the library name a model's arguments in place of the program's keys, {"section.key": argument}. Keys
    that the user has given keep their own names."""
    before = _names.set({key: name for key, name in names.items() if key not in given})
    try:
        yield
    except (Error, ValueError) as error:
        error.args = tuple(in_users_words(part) if isinstance(part, str) else part for part in error.args)
        raise
    finally:
        _names.reset(before)


def tell(text: str) -> None:
    """Raises a warning that points to the user's line: the nearest caller outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_HERE):
        frame, level = frame.f_back, level + 1
    warnings.warn(in_users_words(text), SptxWarning, stacklevel=level)


def raise_for(status: int, sentence: str, usage: type = ValueError) -> None:
    """Raises the exception for a status. For a call with wrong arguments it is of class `usage`, or IndexError for an id that is not a row."""
    if sentence.startswith(("ids[", "ids on the GPU were no rows")):
        raise IndexError(sentence)
    if status == _library.USAGE:
        raise usage(sentence or "a handle of the call is not open")
    if sentence.startswith("not enough memory"):
        raise OutOfMemory(sentence)
    raise Error(sentence or "not enough memory for a context")
