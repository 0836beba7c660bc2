"""The live line of training: each report replaces one line on standard error, in a terminal or a notebook."""

import contextlib
import shutil
import sys
from typing import Any, Callable, Iterator, Optional


@contextlib.contextmanager
def shown(progress: Any) -> Iterator[Optional[Callable[[Any], Any]]]:
    """Yields the function that is called with reports of training: the caller's function, one that shows the live line, or None. Ends the line
    when the block is left."""
    if progress is not None and not isinstance(progress, bool):
        if not callable(progress):
            raise TypeError("progress = %r cannot be called" % (progress,))
        yield progress
        return
    stream = sys.stderr
    if progress is False or stream is None or (progress is None and not (_is_terminal(stream) or _is_notebook())):
        yield None
        return
    line = _Line(stream)
    try:
        yield line.show
    finally:
        line.end()


def _is_terminal(stream: Any) -> bool:
    """True for a terminal. Objects that programs assign to sys.stderr may be closed, or lack isatty()."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def _is_notebook() -> bool:
    """True in a Jupyter kernel: its standard error is not a terminal but handles carriage returns."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None
    return shell is not None and hasattr(shell, "kernel")


class _Line:
    """A line that is overwritten: it begins with a carriage return, and blanks cover the rest of a longer previous line."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._shown = 0  # number of characters of the line that is shown

    def show(self, report: Any) -> None:
        text = report.line
        if _is_terminal(self._stream):
            text = text[:max(1, shutil.get_terminal_size().columns - 1)]  # a line that wraps could not be overwritten
        self._write("\r" + text.ljust(self._shown))
        self._shown = len(text)

    def end(self) -> None:
        if self._shown:
            self._write("\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a closed stream, or a pipe whose reader is gone, must not end training
            self._shown = 0
