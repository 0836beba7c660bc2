"""Threads and processes: calls of one context run one after the other, calls of several at once; a forked child is refused;
handles can be closed anywhere."""

import concurrent.futures
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import traceback
import weakref

import numpy
import pytest

import sptx
from conftest import floats


def run_in_threads(work, count):
    wrong = []

    def guarded(number):
        try:
            work(number)
        except BaseException:
            wrong.append(traceback.format_exc())

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[0]


def test_threads_take_turns_in_a_table(cpu):
    table = sptx.Table(100, 8, "sgd", lr=1.0, init="zeros", device=cpu)

    def work(number):
        for _ in range(200):
            table.update(numpy.arange(100), floats(100, 8))
            table.fetch(numpy.arange(100))

    run_in_threads(work, 4)
    assert table.steps == 800 and (table.weights == -800).all()


def test_each_thread_gets_its_own_sentence(cpu):
    """Several threads make wrong calls in one context: every exception must be about its own call."""
    table = sptx.Table(10, 2, device=cpu)

    def work(number):
        for count in range(200):
            with pytest.raises(IndexError, match=r"= %d is no row" % (1000 + number)):
                table.fetch([1000 + number])

    run_in_threads(work, 4)


def test_contexts_run_at_once():
    def work(number):
        context = sptx.Context("cpu", threads=1)
        for seed in range(20):
            with sptx.Table(50, 4, "adam", device=context, seed=seed) as table:
                table.update([1, 1, 2], floats(3, 4))
                assert table.fetch([3]).shape == (1, 4)

    run_in_threads(work, 4)


def test_threads_that_ask_at_once_share_a_context(monkeypatch):
    opened = []

    class Slow(sptx.Context):
        def __init__(self, device):
            opened.append(device)
            time.sleep(0.2)
            super().__init__(device, threads=1)

    monkeypatch.setattr(sptx._context, "Context", Slow)
    monkeypatch.setattr(sptx._context, "_shared", weakref.WeakValueDictionary())
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(lambda _: sptx.Table(3, 2), range(4)))
    assert len({id(table.context) for table in tables}) == 1 and opened == ["auto"]


def test_a_table_may_be_closed_while_others_use_it(cpu):
    """While a table is closed, running calls end first and later calls are refused."""
    for _ in range(20):
        table = sptx.Table(2000, 16, device=cpu)
        ids = numpy.arange(2000)
        started = threading.Event()

        def work(number):
            if number == 0:
                started.wait()
                table.close()
                return
            try:
                while True:
                    table.fetch(ids)
                    started.set()
            except ValueError as error:
                assert "closed" in str(error)

        run_in_threads(work, 3)


def test_handles_in_cycles_are_closed(cpu):
    """The garbage collector may close a table at any time, even during a call of the same context."""
    for number in range(100):
        table = sptx.Table(3, 2, device=cpu)
        cycle = [table]
        cycle.append(cycle)
        del table, cycle
        if number % 7 == 0:
            gc.collect()
    gc.collect()
    assert not cpu._leaving


def test_a_table_may_be_collected_while_another_one_is_closed(cpu):
    """A finalizer that runs during a close adds another close to the same queue."""
    closed = []
    cpu.leave(lambda: (cpu.leave(lambda: closed.append(2)), closed.append(1)))
    assert closed == [2, 1] and not cpu._leaving


def test_a_context_may_be_collected_with_its_tables():
    """Python may finalize objects that refer to each other in any order."""
    for _ in range(30):
        context = sptx.Context("cpu", threads=1)
        tables = [sptx.Table(3, 2, device=context) for _ in range(3)]
        context.circle = tables
        del context, tables
        gc.collect()


def in_child(work):
    """Runs work() in a forked child. Returns its exception as a text, or "" if it raised none. If the child crashes, the test
    fails."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        try:
            work()
        except BaseException as error:
            said = "%s: %s" % (type(error).__name__, error)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    assert os.waitpid(child, 0)[1] == 0
    return said


def test_a_child_is_refused(cpu):
    table = sptx.Table(10, 2, device=cpu)
    weights = table.weights
    calls = [lambda: table.fetch([1]), lambda: table.update([1], floats(1, 2)), lambda: table.store([1], floats(1, 2)),
             lambda: table.prefetch([1]), table.wait, lambda: table.view("weights"), lambda: table.save("/tmp/never.npy"),
             table.close, lambda: sptx.Table(3, 3, device=cpu), lambda: table.lr, lambda: table.steps,
             lambda: setattr(table, "lr", 1), cpu.wait]
    for call in calls:
        said = in_child(call)
        assert said.startswith("RuntimeError: ") and "process %d" % os.getpid() in said, said
    # the weights are plain memory, so the child sees the values that they had at the fork
    assert in_child(lambda: (weights.sum(), repr(table))) == ""
    assert table.fetch([1]).shape == (1, 2)


def test_a_child_opens_its_own(cpu):
    shared = sptx.Table(10, 2, device="cpu")

    def work():
        own = sptx.Table(10, 2, "sgd", lr=1.0, device="cpu")
        assert own.context is not shared.context
        own.update([1], floats(1, 2))
        own.close()

    assert in_child(work) == ""
    assert shared.fetch([1]).shape == (1, 2)


def test_a_childs_exit_leaves_the_parents_table(cpu):
    table = sptx.Table(10, 2, device=cpu)
    # this child ends normally, so Python destroys all its objects
    child = multiprocessing.get_context("fork").Process(target=gc.collect)
    child.start()
    child.join()
    assert child.exitcode == 0 and table.fetch([1]).shape == (1, 2)


@pytest.mark.parametrize("end", ["", "del table", "table.close()", "import gc; view = table.weights; del table; gc.collect()",
                                 "table.cycle = table", "import numpy; kept = numpy.from_dlpack(table.weights)",
                                 "import threading; threading.Thread(target=lambda: [table.fetch([1]) for _ in range(9999)],"
                                 " daemon=True).start()"])
def test_the_interpreter_ends_well(tmp_path, end):
    code = "import sptx; table = sptx.Table(1000, 8, 'adam', weights='file', device='cpu'); view = table.weights; " + end
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "") and not list(tmp_path.iterdir())
