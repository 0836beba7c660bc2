"""Saving: a save of a table that runs while the program goes on (Table.save with wait=False)."""

import atexit
import ctypes
import os
import sys
import time
from typing import Any, Set

from . import _library
from ._errors import raise_for, tell
from ._library import library


class Saving:
    """A save that goes on while the table is used: what Table.save(path, wait=False) returns.

        saving = books.save("books.npy", wait=False)
        ...                # fetch, update and store; the file gets the table as it was at save()
        saving.wait()

    The program may drop it: the save goes on, and the interpreter does not end before it is done.
    """

    def __init__(self, context: Any, path: bytes) -> None:
        self._context, self._path = context, path
        self._real = os.path.realpath(path)
        self._pid = os.getpid()
        self._pointer = ctypes.c_void_p()
        self._told = False

    def _begin(self, table: ctypes.c_void_p, most: int) -> None:
        _going.add(self)  # before the call, so that no interrupt can come in between
        try:
            self._context.call(library.sptx_table_save_begin, table, self._path, most, ctypes.byref(self._pointer))
        finally:
            for saving in list(_going):
                if saving._pid != os.getpid() or saving._is_over():
                    _going.discard(saving)

    def _is_over(self) -> bool:
        return bool(library.sptx_saving_done(self._pointer))

    @property
    def path(self) -> str:
        """The file."""
        return os.fsdecode(self._path)

    def done(self) -> bool:
        """True if the save has ended, with success or failure."""
        self._context.check_process()
        return self._is_over()

    def wait(self) -> None:
        """Waits until the file is complete. Raises what save() would have raised; an interrupt leaves the save going on.

        Other threads may use the table meanwhile.
        """
        self._context.check_process()
        self._pause()
        status = library.sptx_saving_wait(self._pointer)
        self._told = True
        if status:
            raise_for(status, library.sptx_saving_error(self._pointer).decode("utf-8", "replace"))

    def _pause(self) -> None:
        """Waits in Python code, so that Ctrl-C can interrupt it."""
        pause = 0.0005
        while not self._is_over():
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _tell(self) -> None:
        """Waits for the end of the save. Warns if it failed and wait() was not called."""
        self._pause()
        if self._pointer and not self._told and library.sptx_saving_wait(self._pointer):
            tell(library.sptx_saving_error(self._pointer).decode("utf-8", "replace"))
        self._told = True

    def __del__(self) -> None:
        if self._pointer and self._pid == os.getpid() and not sys.is_finalizing():
            library.sptx_saving_close(self._pointer)

    def __repr__(self) -> str:
        return "sptx.Saving(%r)" % self.path

    def __reduce__(self) -> Any:
        raise TypeError("a save belongs to one process, and cannot be copied or pickled")


_going: Set[Saving] = set()  # saves that may go on: the interpreter waits for them before it ends


def _end() -> None:
    for saving in list(_going):
        if saving._pid == os.getpid():
            saving._tell()


atexit.register(_end)
