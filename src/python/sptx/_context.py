"""Contexts: the device that tables run on, and the rules that keep calls from running at the same time.

    one lock a context    the library allows one thread at a time in a context, so calls wait for each other. Calls in different
                          contexts run at the same time; ctypes releases the interpreter's lock during a call.
    one process           after a fork only the parent may use contexts and tables that were opened before. The child's calls
                          raise, and the child closes none of them.
    closing               a handle is closed when the last reference to it is gone: that of the table (until close()), of a view,
                          or of a running call. That can happen anywhere, even during another call of the context. If the context
                          is busy, the handle is put into a queue, and the thread that holds the lock closes it.
    interrupts            Ctrl-C raises KeyboardInterrupt, and other signals run their handlers, between any two steps of Python,
                          and a handler may make calls on a table. So each of these is a single step, one call from C to C (_call):
                          taking and releasing the lock, and closing the handles of the queue. The library writes an opened handle
                          directly into an object of its owner.
"""

import collections
import ctypes
import functools
import operator
import os
import sys
import threading
import time
import warnings
import weakref
from typing import Any, Callable, Iterator, Optional, Union

import numpy

from . import _library
from ._errors import SptxWarning, in_users_words, raise_for, tell
from ._library import library


_call = operator.methodcaller("__call__")  # map(_call, steps) runs steps in C, with no Python between them

_TAKEN = ("columns    ", "features   ", "new items  ", "new lists  ")  # messages that begin so say what a file was taken for; they are printed

_process = os.getpid()  # kept because every call compares it; changed below after a fork


class Context:
    """The device that tables run on: the CPU, or one GPU. Tables of one context share its threads and its GPU memory.

    Most programs need none: `Table(device="cuda:0")` finds the process's own context for that device, or opens it. Open one
    yourself, and pass it as `device`, to limit threads or GPU memory, or to let two threads work at once: calls on tables of
    one context wait for each other.

    device      "auto": the first GPU, or the CPU if there is no GPU; "cpu"; "cuda"; "cuda:1"; a torch.device
    threads     number of host threads, up to 4096; 0: one for each core that the process may use
    gpu_budget  most bytes of GPU memory to use; 0: all free memory less a reserve

    Raises ValueError for an unknown device, sptx.Error with the reason if it cannot be used ("cuda" without a GPU).
    """

    def __init__(self, device: Any = "auto", threads: int = 0, gpu_budget: int = 0) -> None:
        self._handle = ctypes.c_void_p()
        self._pid = _process
        self._lock = threading.RLock()  # reentrant: objects that are collected during a call may make a call
        self._leaving: "collections.deque[Callable[[], None]]" = collections.deque()
        self._said = said = []  # type: list
        self.is_quiet = False  # True: lines that say what a file was taken for are not printed
        self.waits_to_tell = False  # True: calls give no warnings; another thread gives them later, by tell_all()
        self._hear = _library.WarningFunction(lambda _, text: said.append(text.decode("utf-8", "replace")))
        options = _library.ContextOptions(ctypes.sizeof(_library.ContextOptions), text_of(str(device), "device"),
                                          count_of(threads, "threads", 32), 0, count_of(gpu_budget, "gpu_budget", 64),
                                          self._hear, None)
        status = library.sptx_open(ctypes.byref(self._handle), ctypes.byref(options))
        if status:
            raise_for(status, library.sptx_error(self._handle).decode("utf-8", "replace") if self._handle else "")
        self._device = library.sptx_device(self._handle).decode()
        self.gpu: Optional[int] = int(self._device[5:]) if self._device.startswith("cuda:") else None  # None on the CPU
        # Every call needs these, so they are bound once.
        self._take_turn, self._end_turn = self._lock.acquire, self._lock.release
        self._sentence = functools.partial(library.sptx_error, self._handle)

    @property
    def device(self) -> str:
        """The device of the context: "cpu" or "cuda:0"."""
        return self._device

    @property
    def is_parents(self) -> bool:
        """True if the context was opened by the parent process before a fork."""
        return self._pid != _process

    def check_process(self) -> None:
        if self._pid != _process:
            raise RuntimeError("this was opened by process %d, before a fork; process %d must open its own, and that before "
                               "it uses CUDA (or start workers with the 'spawn' method)" % (self._pid, _process))

    def call(self, function: Callable[..., int], *arguments: Any, usage: type = ValueError) -> int:
        """Waits for its turn and calls the library. Raises the exception of a failed status; otherwise returns OK or STOPPED."""
        if self._pid != _process:
            self.check_process()
        results: list = []
        try:  # all four calls in one step of Python, so that no interrupt comes between
            results.extend(map(_call, (self._take_turn, functools.partial(function, *arguments), self._sentence, self._end_turn)))
        finally:
            if results and len(results) < 4:  # ctypes refused an argument: a mistake of this package
                self._end_turn()
            if self._leaving:
                self._close_what_waits()
        if self._said and not self.waits_to_tell:
            self._warn(4)
        _, status, sentence, _ = results
        if status == _library.FAILED or status == _library.USAGE:
            raise_for(status, sentence.decode("utf-8", "replace"), usage)
        return int(status)

    def call_together(self, function: Callable[..., int], *arguments: Any) -> None:
        """Makes a call that may wait for other processes. In the main thread, in which alone Python hears of signals, another thread makes it: what
        a signal's handler raises, such as KeyboardInterrupt, ends the wait, and is raised."""
        if threading.current_thread() is not threading.main_thread():
            self.call(function, *arguments)
            return
        ended: list = []  # what the call raised, or None
        done, turn = threading.Lock(), threading.Lock()  # turn: taken once: by the thread, which makes the call, or by the caller, who cancels it
        done.acquire()
        try:
            threading.Thread(target=self._call_beside, args=(turn, done, ended, function) + arguments, name="sptx.wait").start()
            while not ended:  # not one long wait: it would go on if the signal came to another thread
                done.acquire(timeout=0.2)
                if self._said and not self.waits_to_tell:  # that another process is awaited
                    self._warn(4)
        except BaseException:
            cancelled = turn.acquire(blocking=False)
            while not cancelled and not ended:
                library.sptx_stop(self._handle)
                time.sleep(0.002)
            raise
        if ended[0] is not None:
            raise ended[0]

    def _call_beside(self, turn: Any, done: Any, ended: list, function: Callable[..., int], *arguments: Any) -> None:
        if not turn.acquire(blocking=False):
            return
        raised = None
        try:
            self.call(function, *arguments)
        except BaseException as error:
            raised = error
        ended.append(raised)
        done.release()

    def _warn(self, stacklevel: int) -> None:
        for text in self._warnings():
            warnings.warn(in_users_words(text), SptxWarning, stacklevel=stacklevel)

    def tell_all(self) -> None:
        """Raises all pending messages of the library as warnings at the caller's line."""
        for text in self._warnings():
            tell(text)

    def forget(self) -> None:
        """Drops all pending messages, which waits_to_tell held back; later ones are given at once."""
        del self._said[:]
        self.waits_to_tell = False

    def _warnings(self) -> Iterator[str]:
        """Empties the queue of the library's messages: yields the warnings, and prints the lines about what a file was taken for."""
        while self._said:
            text = self._said.pop(0)
            if not text.startswith(_TAKEN):
                yield text
            elif not self.is_quiet and sys.stderr is not None:
                print(text, file=sys.stderr)

    def wait(self) -> None:
        """Waits until all calls on the context's tables are done.

        Raises IndexError if ids in GPU memory were not rows: the GPU checks these ids, and skips them.
        """
        self.call(library.sptx_wait, self._handle)

    def leave(self, close: Callable[[], None]) -> None:
        """Calls `close` as soon as no call runs in the context, possibly at once. If a context and its tables are collected together, the context
        may be closed first; that closes its tables, too."""
        if not self._handle or self._pid != os.getpid() or sys.is_finalizing():  # _process may not be set yet: see __del__
            return
        self._leaving.append(close)
        self._close_what_waits()

    def _close_what_waits(self) -> None:
        # Every holder of the lock comes here after releasing it, so nothing that is put in line meanwhile is left there. A collection
        # within a close may come here, too, on the same thread: there is then one mark for each of the two, and each takes one.
        line, lock = self._leaving, self._lock
        while any(line):
            closing = functools.partial(collections.deque, map(_call, iter(line.popleft, None)), 0)  # up to the mark
            steps = map(_call, (functools.partial(line.append, None), closing, lock.release))
            if not all(map(_call, (functools.partial(lock.acquire, False), functools.partial(list, steps)))):  # in one step
                return

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        # A child may collect garbage in the first steps after a fork, before it sets _process; so the system is asked.
        if handle and not sys.is_finalizing() and self._pid == os.getpid():
            self._handle = ctypes.c_void_p()
            library.sptx_close(handle)  # closes the tables that wait for it, too

    def __repr__(self) -> str:
        return "sptx.Context(%s)" % self._device

    def __reduce__(self) -> Any:
        raise TypeError("a context belongs to one process, and cannot be copied or pickled")


class Handle:
    """Owns a table or run of the library, which is closed when no reference is left. The call that opens it sets `pointer`."""

    def __init__(self, context: Context, close: Callable[[ctypes.c_void_p], None]) -> None:
        self.context = context
        self.pointer = ctypes.c_void_p()
        self._close = close

    def __del__(self) -> None:
        if self.pointer:
            self.context.leave(functools.partial(self._close, self.pointer))


# ---- the process's own contexts, one a device ----

_shared: "weakref.WeakValueDictionary[str, Context]" = weakref.WeakValueDictionary()
_opening = threading.RLock()  # reentrant: a signal's handler may ask for a context, too


def _forget_the_parents() -> None:
    global _process, _shared, _opening
    _process = os.getpid()
    _shared, _opening = weakref.WeakValueDictionary(), threading.RLock()


os.register_at_fork(after_in_child=_forget_the_parents)


def context_for(device: Union[str, Context, Any]) -> Context:
    """Returns `device` if it is a context; otherwise the process's own context for this device, which stays open as long as one of its tables."""
    if isinstance(device, Context):
        return device
    name = str(device)
    context = _shared.get(name)
    return context if context is not None else _alone(_opening, functools.partial(_open_shared, name))


def _open_shared(name: str) -> Context:
    context = _shared.get(name)  # True if the value is a number of Python or NumPy.
    if context is None:
        context = Context(name)
        context = _shared.setdefault(context.device, context)
        _shared[name] = context
    return context


def _alone(lock: Any, work: Callable[[], Any]) -> Any:
    """Returns work(), called while this thread holds the lock. Acquiring, working and releasing are one step of Python, so an interrupt can never
    leave the lock held; if one comes during work(), it is raised after the release."""
    results: list = []
    try:
        results.extend(map(_call, (lock.acquire, work, lock.release)))
    finally:
        if 0 < len(results) < 3:
            lock.release()
    return results[1]


def count_of(value: Any, what: str, bits: int) -> int:
    """Returns a count as an unsigned integer of `bits` bits. Raises unless the count is a whole number from 0 that fits."""
    try:
        number = value.__index__() if not isinstance(value, (bool, numpy.bool_)) else None
    except AttributeError:
        number = None
    if number is None:
        raise TypeError("%s = %r is not a whole number" % (what, value))
    if not 0 <= number < 1 << bits:
        raise ValueError("%s = %d is not between 0 and %d" % (what, number, (1 << bits) - 1))
    return number


def number_of(value: Any, what: str) -> float:
    """True if the value is a number of Python or NumPy."""
    if isinstance(value, (bool, numpy.bool_)) or not hasattr(value, "__float__"):
        raise TypeError("%s = %r is not a number" % (what, value))
    try:
        return float(value)
    except OverflowError:
        raise ValueError("%s = %.20s.. is more than a float holds" % (what, value)) from None


def text_of(text: Any, what: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError("%s = %r is not a str" % (what, text))
    if "\0" in text:
        raise ValueError("%s = %r holds a NUL" % (what, text))
    return text.encode("utf-8", "surrogateescape")
