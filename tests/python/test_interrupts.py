"""Ctrl-C at any moment: nothing hangs, no lock stays taken, and later calls work. Exceptions are raised at every step of the
package's Python code by a trace function, and at random times by real signals."""

import ctypes
import fcntl
import gzip
import os
import random
import signal
import sys
import threading
import time

import numpy
import pytest

import sptx
from sptx import _saving
from conftest import TOP, floats

PACKAGE = os.path.dirname(sptx.__file__)
SETTINGS = {"corpus.path": str(TOP / "corpora" / "tiny.txt"), "corpus.min_count": 1, "examples.subsample": 0, "model.dim": 4,
            "train.batch": 64, "train.update": "batch", "device.backend": "cpu", "device.threads": 1}
ENDLESS = {**SETTINGS, "train.epochs": 10**9, "train.report_seconds": 1000}


@pytest.fixture(autouse=True)
def alarm(monkeypatch):
    """Makes SIGALRM do what Ctrl-C does. An interrupt that comes inside of a finalizer is lost: Python reports it and continues. It is
    then sent again, as a person would press Ctrl-C again."""
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: lost.exc_type is KeyboardInterrupt and waited and interrupt_after(0.01))
    waited.clear()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


waited = []  # of one element while a test waits for a single interrupt


def interrupt_after(seconds):
    waited[:] = [seconds]
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))


def in_time(work, seconds=30):
    """Runs work() in another thread and returns its result. That thread would hang at any lock that this one still holds."""
    got = []
    thread = threading.Thread(target=lambda: got.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert got, "it hangs, or has failed"
    return got[0]


def is_left_in_order(path):
    """Checks after an interrupted training that none of its threads is left, that Ctrl-C works as before, and that the run's
    directory is not locked."""
    end = time.monotonic() + 30
    while any(thread.name == "sptx.train" for thread in threading.enumerate()):
        assert time.monotonic() < end, "the training thread is left"
        time.sleep(0.001)
    for number in (signal.SIGINT, signal.SIGALRM):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    locks = list(path.glob("**/*.lock"))
    assert not locks, locks


class Stepping:
    """Raises KeyboardInterrupt at the n-th bytecode that this thread executes in the package."""

    def __init__(self, at):
        self.left = at
        self.raised = False
        # these are kept because CPython 3.11 still uses them after they were released
        self.call, self.step = self._call, self._step

    def _step(self, frame, event, _):
        if event == "opcode":
            self.left -= 1
            if self.left < 0:
                self.raised = True
                raise KeyboardInterrupt  # this also ends tracing
        return self.step

    def _call(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    def __enter__(self):
        sys._getframe().f_trace_opcodes = True  # CPython 3.12 traces bytecodes only if a frame has asked for them before
        sys.settrace(self.call)
        return self

    def __exit__(self, *_):
        sys.settrace(None)


def at_each_step(work, check, stride):
    """Does the work again and again, each time interrupted at a later step, until it ends without an interrupt."""
    at = random.randrange(stride)
    while True:
        with Stepping(at) as stepping:
            try:
                work()
            except KeyboardInterrupt:
                pass
        sys.settrace(None)
        check()
        if not stepping.raised:
            return at
        at += stride


# ---- saves that go on ----

@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.long)])
def test_a_save_that_goes_on_is_interrupted_at_any_step(tmp_path, stride):
    table, path = sptx.Table(50, 4, device=sptx.Context("cpu", threads=1)), tmp_path / "table.npy"

    def check():
        for saving in list(_saving._going):
            assert not saving._pointer or in_time(lambda: saving.wait() is None)
        table.update([3], floats(1, 4))
        table.save(path)
        assert os.listdir(tmp_path) == ["table.npy"]

    steps = at_each_step(lambda: table.save(path, wait=False).wait(), check, stride)
    assert steps > 100


# ---- training ----

@pytest.mark.parametrize("stride", [37, pytest.param(1, marks=pytest.mark.long)])
def test_training_is_interrupted_at_any_step(tmp_path, stride):
    path = tmp_path / "run"
    settings = {**SETTINGS, "train.epochs": 2, "train.report_seconds": 0.01, "run.dir": path}

    def work():
        if not list(path.glob("checkpoint-*")):
            sptx.train(None, settings, progress=lambda report: None)
        else:
            sptx.train(None, {**settings, "train.epochs": 10**6}, resume=True, progress=lambda report: True)

    steps = at_each_step(work, lambda: is_left_in_order(path), stride)
    assert steps > 300


@pytest.mark.parametrize("rounds", [60, pytest.param(4000, marks=pytest.mark.long)])
def test_training_is_interrupted_at_any_time(tmp_path, rounds):
    path, draw = tmp_path / "run", random.Random(rounds)
    for number in range(rounds):
        with pytest.raises(KeyboardInterrupt):
            interrupt_after(draw.choice([1e-5, 1e-4, 1e-3, 1e-2, 5e-2]) * draw.random())
            sptx.train(None, {**ENDLESS, "run.dir": path}, resume=True)
            pytest.fail("it came to an end")
        is_left_in_order(path)
    interrupt_after(1)
    with pytest.raises(KeyboardInterrupt):
        sptx.train(None, {**ENDLESS, "run.dir": path}, resume=True)
    assert sptx.Run(path, device="cpu").target.shape[1] == 4


def test_many_interrupts_at_once_are_one(tmp_path):
    path = tmp_path / "run"
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.0005)
    with pytest.raises(KeyboardInterrupt):
        try:
            sptx.train(None, {**ENDLESS, "run.dir": path})
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    is_left_in_order(path)
    assert list(path.glob("checkpoint-*"))


def test_an_interrupt_is_heard_between_two_reports(tmp_path):
    path = tmp_path / "run"
    interrupt_after(1)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt, match="'%s' has what was trained so far, and resume=True goes on with it" % path):
        sptx.train(None, {**ENDLESS, "run.dir": path})
    assert time.monotonic() - began < 20
    assert list(path.glob("checkpoint-*"))
    is_left_in_order(path)


def test_an_interrupt_is_heard_before_training(tmp_path):
    """The training is interrupted while it waits for another process that encodes the corpus for ever."""
    path, cache = tmp_path / "run", tmp_path / "cache"
    cache.mkdir()
    with open(cache / "corpus.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        interrupt_after(0.5)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt, match="no checkpoint was written"):
            sptx.train(None, {**ENDLESS, "run.dir": path, "corpus.cache": cache})
        assert time.monotonic() - began < 20
    assert not list(path.glob("checkpoint-*"))
    is_left_in_order(path)


def test_an_interrupt_is_heard_while_the_corpus_is_counted(tmp_path):
    path, corpus = tmp_path / "run", tmp_path / "large.gz"
    corpus.write_bytes(gzip.compress(b"one two three\n" * (1 << 19), 1) * 1000)  # 7 GB of text
    interrupt_after(0.7)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sptx.train(None, {**ENDLESS, "run.dir": path, "corpus.path": corpus})
    assert time.monotonic() - began < 20
    is_left_in_order(path)


def test_an_interrupt_comes_into_progress(tmp_path):
    path, seen = tmp_path / "run", []

    def progress(report):
        interrupt_after(0.2)
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            seen.append(report)
            raise

    with pytest.raises(KeyboardInterrupt):
        sptx.train(None, {**ENDLESS, "train.report_seconds": 0.01, "run.dir": path}, progress=progress)
    assert len(seen) == 1 and list(path.glob("checkpoint-*"))
    is_left_in_order(path)


def test_handlers_of_the_callers_own_are_called(tmp_path):
    path, seen = tmp_path / "run", []
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.05)
    sptx.train(None, {**ENDLESS, "train.report_seconds": 0.1, "run.dir": path}, progress=lambda report: len(seen) > 3)
    assert len(seen) > 3
    signal.signal(signal.SIGALRM, signal.default_int_handler)


def test_training_in_another_thread_is_stopped_by_an_exception(tmp_path):
    path, said = tmp_path / "run", []

    def work():
        try:
            sptx.train(None, {**ENDLESS, "run.dir": path})
        except SystemError as error:
            said.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.7)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemError))
    thread.join(30)
    assert said and not thread.is_alive() and list(path.glob("checkpoint-*"))
    is_left_in_order(path)


# ---- tables ----

def use_a_table(context):
    with sptx.Table(3, 2, "adam", device=context) as table:
        table.update([1, 1, 2], floats(3, 2))
        view = table.weights
        table.fetch([1])
    return view.sum()


@pytest.mark.parametrize("stride", [1])
def test_a_table_is_interrupted_at_any_step(stride):
    context = sptx.Context("cpu", threads=1)

    def check():
        assert in_time(lambda: context.wait() is None and not context._leaving)

    assert at_each_step(lambda: use_a_table(context), check, stride) > 500


def test_a_context_is_interrupted_at_any_step():
    at_each_step(lambda: use_a_table(sptx.Context("cpu", threads=2)), lambda: None, 11)
    assert in_time(lambda: use_a_table("cpu")) is not None


@pytest.mark.parametrize("rounds", [3000, pytest.param(100000, marks=pytest.mark.long)])
def test_a_table_is_interrupted_at_any_time(rounds):
    context, draw, heard = sptx.Context("cpu", threads=2), random.Random(rounds), 0
    for number in range(rounds):
        try:
            interrupt_after(draw.random() * 5e-4)
            for _ in range(10):
                use_a_table(context)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            heard += 1
        if number % 100 == 0:
            assert in_time(lambda: context.wait() is None and not context._leaving)
    assert heard > 0.9 * rounds  # an interrupt that a finalizer swallows is not noticed


def test_a_handler_may_call_the_table_that_is_being_used():
    """A finalizer may run in the middle of a call. There the table must not wait for its own lock."""
    table, calls = sptx.Table(2000, 64, device=sptx.Context("cpu", threads=2)), []
    signal.signal(signal.SIGALRM, lambda *_: calls.append(table.fetch([7])))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        table.fetch(numpy.arange(2000))
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    assert len(calls) > 50
