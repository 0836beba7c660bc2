"""train: does what the program's `train` does; Progress, and the thread in which a run is trained."""

import ctypes
import os
import queue
import signal
import threading
import time
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

import numpy

from . import _library
from ._context import Context
from ._library import library
from ._progress import shown
from ._run import Run
from ._table import path_of


class Progress(NamedTuple):
    """The state of a training run, as reported to progress()."""

    step: int
    epoch: int
    done: float              # finished share of the run, 0..1
    loss: float              # mean loss of an example since the last report
    lr: float
    words_per_second: float  # 0 if the data has no words
    pairs_per_second: float
    seconds: float           # seconds of training so far, including those before a resume
    line: str                # the live line that `sptx-w2v train` would print


def train(config: Optional[Union[str, "os.PathLike[str]"]] = None, keys: Optional[Mapping[str, Any]] = None, *,
          overwrite: bool = False, resume: bool = False,
          progress: Union[None, bool, Callable[[Progress], Any]] = None, device: Any = "auto", threads: int = 0) -> Run:
    """Trains a run, as `sptx-w2v train` does, and opens it.

        run = sptx.train("my.ini", {"model.dim": 200})

    config     an INI file, or None
    keys       "section.key": value, stronger than the file; `sptx-w2v help keys` lists them. True and False are yes and no
    overwrite  True: an existing run is replaced when the new one has its first checkpoint; False: an existing run is an error
    resume     continue from the run's newest checkpoint, if there is one
    progress   None: a live line on standard error, if that is a terminal or a notebook; True: the line in any case; False:
               nothing; or a function that is called with a Progress now and then. If it returns True or raises StopIteration,
               a checkpoint is written and training stops: the run is that checkpoint. Any other exception also stops training
               with a checkpoint, and is then raised by train().
    device     used if the configuration's device.backend is auto: "auto", "cpu", "cuda", "cuda:1"
    threads    number of host threads, if the configuration does not set it; 0: one for each core

    Ctrl-C stops at once, also while the corpus is read: a checkpoint is written, if training has begun, and then
    KeyboardInterrupt is raised; resume=True continues from there. An exception of another signal's handler does the same.

    Raises ValueError and TypeError for invalid keys, sptx.Error with the reason if training failed.
    """
    beginning = _beginning(keys, overwrite, resume)
    texts = [_setting(key, value) for key, value in (keys or {}).items()]
    where = None if config is None else path_of(config)
    context = Context(device, threads)
    context.is_quiet = progress is False
    with shown(progress) as hear:
        _Training(context, hear, _of_files(context, where, texts, beginning)).run()
    return Run(os.fsdecode(library.sptx_trained(context._handle)), device=device)


def _beginning(keys: Any, overwrite: bool, resume: bool) -> int:
    """Checks the arguments of train() and fit() about an existing run, and returns the library's enum sptx_beginning."""
    if keys is not None and not isinstance(keys, Mapping):
        raise TypeError("keys are a %s, wanted a dict of 'section.key': value" % type(keys).__name__)
    if overwrite and resume:
        raise ValueError("overwrite begins the run anew, and resume goes on with it: choose one")
    return _library.OVERWRITE if overwrite else _library.RESUME if resume else _library.ANEW


def _of_files(context: Context, config: Optional[bytes], settings: List[bytes], beginning: int) -> Callable[[Any], int]:
    """Returns a function that trains on files; its argument is the callback to which the library reports."""
    texts = (ctypes.c_char_p * len(settings))(*settings)
    return lambda tell: context.call(library.sptx_train, context._handle, config, texts, len(texts), beginning, tell, None)


_TICK = 0.02  # largest lag in seconds of a file's time behind time.time()


class _Training:
    """Training in a thread of its own; its reports are looked at in the caller's, which run() returns or raises in.

    Python's exceptions cannot pass through the library, and Ctrl-C may raise one between any two steps of the caller's thread. So

      - the training thread only hands reports over and waits for answers, and it is told to end by sptx_stop(), which every
        long piece of work looks at: it is never waited for in vain, and waits in vain for nobody that has left run();
      - while run() runs in the main thread it stands before every handler of Python's: what one raises is kept, training is
        stopped, and it is raised when all is in order. In progress() handlers do what they always do;
      - the thread is begun inside of the `try` whose `finally` ends it, whether or not it has come to its work.
    """

    def __init__(self, context: Context, progress: Optional[Callable[[Progress], Any]], work: Callable[[Any], int],
                 resumable: bool = True) -> None:
        self._context = context
        self._resumable = resumable  # False: the run is in a temporary folder, which is removed if training raises
        self._began = time.time()
        self._progress = progress
        self._work = work
        self._status = _library.STOPPED
        self._failed: Optional[BaseException] = None  # raised by the library's call
        self._raised: Optional[BaseException] = None  # raised first by progress() or by a signal's handler
        self._stopping = False
        self._over = False                            # True once the thread has ended its work, or must not begin it
        self._turn = threading.Lock()                 # taken once: by the thread, which works, or the caller, who cancels
        self._reports: "queue.SimpleQueue[Optional[Progress]]" = queue.SimpleQueue()
        self._answers: "queue.SimpleQueue[bool]" = queue.SimpleQueue()
        self._before: Dict[int, Any] = {}             # the signal handlers to restore: {signal: handler}
        self._thread = threading.Thread(target=self._train, name="sptx.train")

    def run(self) -> bool:
        """True if training has finished; False if it was stopped."""
        try:
            self._stand_before_handlers()
            self._context.waits_to_tell = True
            self._thread.start()
            while not self._over:
                report = self._next_report()
                self._context.tell_all()
                if report is not None:
                    self._answers.put(self._ask(report))
        finally:
            self._end()
            self._context.waits_to_tell = False
        self._context.tell_all()
        return self._result()

    def _result(self) -> bool:
        raised, failed, self._raised, self._failed = self._raised, self._failed, None, None
        try:
            if raised is not None:
                self._say_kept(raised)
                raise raised from failed  # if a checkpoint could not be written, that error is kept as the cause
            if failed is not None:
                raise failed
            return self._status != _library.STOPPED
        finally:
            del raised, failed  # their tracebacks refer to this frame

    def _say_kept(self, error: BaseException) -> None:
        """Sets the text of a KeyboardInterrupt: whether a checkpoint was written, and how to continue."""
        if type(error) is not KeyboardInterrupt or error.args:
            return
        if not self._resumable:
            error.args = ("training was stopped: the model is what it was before",)
            return
        run = os.fsdecode(library.sptx_trained(self._context._handle))
        latest = os.path.join(run, "latest")
        kept = run and os.path.exists(latest) and os.path.getmtime(latest) >= self._began - _TICK
        error.args = ("training was stopped: '%s' has what was trained so far, and resume=True goes on with it" % run if kept else
                      "stopped before training had begun: no checkpoint was written",)

    # ---- in the thread ----

    def _train(self) -> None:
        if not self._turn.acquire(blocking=False):
            return
        try:
            self._status = self._work(_library.ProgressFunction(self._hear))
        except BaseException as error:
            self._failed = error
        finally:
            self._over = True
            self._reports.put(None)

    def _hear(self, _: Any, report: Any) -> int:
        if not self._stopping:
            told = report.contents
            values = [getattr(told, name) for name in Progress._fields]
            self._reports.put(Progress(*values[:-1], values[-1].decode("utf-8", "replace")))
            self._stopping = self._answers.get()
        return int(self._stopping)

    # ---- in the caller's ----

    def _next_report(self) -> Optional[Progress]:
        """Returns the next report. Returns None at the end; also after a while without a report, so that exceptions of other threads can be
        raised."""
        try:
            return self._reports.get(timeout=0.2)
        except queue.Empty:
            return None

    def _ask(self, report: Progress) -> bool:
        """Calls progress() with a report. Returns True if training must stop."""
        if self._progress is None or self._raised is not None:
            return self._raised is not None
        try:
            return self._progress(report) is True
        except StopIteration:
            pass
        except BaseException as error:
            self._stop_for(error)
        return True

    def _stop_for(self, error: BaseException) -> None:
        if self._raised is None:
            self._raised = error
        library.sptx_stop(self._context._handle)

    def _end(self) -> None:
        """Stops training if it is still running, and waits until its checkpoint is written."""
        try:
            if not self._over:  # otherwise it would stop the context's next training
                library.sptx_stop(self._context._handle)
            self._stopping = True
            self._answers.put(True)  # answers a report that is waiting
            if self._turn.acquire(blocking=False):
                self._over = True
            while not self._over:
                self._next_report()
        finally:
            self._leave_handlers()

    # ---- signals ----

    def _stand_before_handlers(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # only the main thread gets signals and may set their handlers
        for number in signal.valid_signals():
            before = signal.getsignal(number)
            if callable(before):
                self._before[number] = before
                signal.signal(number, self._on_signal)

    def _leave_handlers(self) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, before)

    def _on_signal(self, number: int, frame: Any) -> None:
        before = self._before[number]
        if not self._came_to_run(frame):
            before(number, frame)
            return
        try:
            before(number, frame)
        except BaseException as error:
            self._stop_for(error)

    def _came_to_run(self, frame: Any) -> bool:
        """True if a signal arrived while run() itself was working, not while progress() was."""
        interrupted = frame
        while frame is not None:
            own = frame.f_code in (_Training.run.__code__, _Training._ask.__code__) and frame.f_locals.get("self") is self
            if own:
                return frame is interrupted or frame.f_code is _Training.run.__code__
            frame = frame.f_back
        return False


def _setting(key: Any, value: Any) -> bytes:
    if not isinstance(key, str) or "." not in key or "=" in key:
        raise ValueError("setting %r is not of the form 'section.key'" % (key,))
    if isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, (int, float, numpy.integer, numpy.floating)):
        value = repr(value.item() if isinstance(value, numpy.generic) else value)
    elif not isinstance(value, (str, os.PathLike)):
        raise TypeError("setting '%s' = %r is neither a text, a number nor True or False" % (key, value))
    text = os.fsencode("%s=%s" % (key, os.fspath(value)))
    if b"\0" in text:
        raise ValueError("setting '%s' holds a NUL" % key)
    return text
