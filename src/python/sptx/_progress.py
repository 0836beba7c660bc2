"""The live line of training: one line on standard error that each report replaces, in a terminal and in a notebook."""

import contextlib
import shutil
import sys
from typing import Any, Callable, Iterator, Optional


@contextlib.contextmanager
def shown(progress: Any) -> Iterator[Optional[Callable[[Any], Any]]]:
    """Gives the function that is told of training: the caller's, one that shows the line, or None. The line ends with the block."""
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
    """True for a terminal. What programs put in the place of standard error may be closed, or know no isatty()."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def _is_notebook() -> bool:
    """True in a kernel of Jupyter, whose standard error is no terminal and knows the carriage return."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None
    return shell is not None and hasattr(shell, "kernel")


class _Line:
    """A line that is written over itself: the carriage return goes to its begin, blanks cover what an older one had more."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._shown = 0  # characters of the line that stands there

    def show(self, report: Any) -> None:
        text = report.line
        if _is_terminal(self._stream):
            text = text[:max(1, shutil.get_terminal_size().columns - 1)]  # a line that is broken in two cannot be replaced
        self._write("\r" + text.ljust(self._shown))
        self._shown = len(text)

    def end(self) -> None:
        if self._shown:
            self._write("\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # a reader that went away, or a stream that is closed, ends no training
            self._shown = 0
