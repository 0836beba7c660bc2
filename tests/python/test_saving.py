"""Saves that go on while the table is used: the file has the table as it was at save(), and all else is as with a save that
waits."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest

import sptx
from conftest import floats

TABLES = [dict(optimizer="sgd"), dict(optimizer="adam"), dict(optimizer="rowwise_adagrad", dtype="bfloat16"),
          dict(optimizer="adamax", dtype="bfloat16", state_dtype="float32"), dict(optimizer="adagrad", weights="file"),
          dict(optimizer="adam", state="file", count_rows=False), dict(optimizer="none", hot_rows=100),
          dict(optimizer="adagrad", gpu_rows=50)]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def change(table, random, count=500):
    ids, values = random.integers(0, table.rows, count), random.standard_normal((count, table.dim)).astype(numpy.float32)
    if table.optimizer != "none":
        table.update(ids, values)
    table.store(ids[:50], values[:50])


def large(cpu, **options):
    """A table whose file takes a while to write."""
    return sptx.Table(400_000, 64, "adam", device=cpu, **options)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("memory", [0, 1, 100_000])
@pytest.mark.parametrize("options", TABLES)
def test_the_file_is_the_table_at_the_save(device, options, memory, tmp_path):
    random = numpy.random.default_rng(memory)
    context = sptx.Context(device, threads=2)
    with sptx.Table(20_000, 24, device=context, directory=tmp_path, **options) as table:
        for number in range(3):
            change(table, random)
            table.save(tmp_path / "waits.npy")
            saving = table.save(tmp_path / "goes_on.npy", wait=False, memory=memory)
            while not saving.done():
                change(table, random)
            change(table, random)
            saving.wait()
            assert (tmp_path / "goes_on.npy").read_bytes() == (tmp_path / "waits.npy").read_bytes()


@pytest.mark.gpu
@pytest.mark.parametrize("weights", ["gpu", "pinned"])
def test_ids_on_a_gpu_are_copied_too(weights, tmp_path):
    torch = pytest.importorskip("torch")
    table = sptx.Table(300_000, 64, "adam", device="cuda", weights=weights, state=weights)
    for number in range(3):
        table.save(tmp_path / "waits.npy")
        saving = table.save(tmp_path / "goes_on.npy", wait=False)
        while not saving.done():
            table.update(torch.randint(0, 300_000, (20_000,), device="cuda"), torch.randn(20_000, 64, device="cuda"))
        saving.wait()
        assert (tmp_path / "goes_on.npy").read_bytes() == (tmp_path / "waits.npy").read_bytes()


def test_the_table_is_as_without_a_save(cpu, tmp_path):
    ends = []
    for saves in (False, True):
        table, random = sptx.Table(5000, 8, "adam", device=cpu), numpy.random.default_rng(3)
        for number in range(20):
            if saves and number % 5 == 0:
                table.save(tmp_path / ("%d.npy" % number), wait=False)
            change(table, random)
        ends.append(numpy.array(table.weights))
    assert numpy.array_equal(*ends)


def test_a_save_that_fails_is_told_by_wait(cpu, tmp_path):
    table = sptx.Table(50, 4, device=cpu)
    table.save(tmp_path / "table.npy")
    before = (tmp_path / "table.npy").read_bytes()
    table.store([7], floats(1, 4) * numpy.inf)
    saving = table.save(tmp_path / "table.npy", wait=False)
    for _ in range(2):
        with pytest.raises(sptx.Error, match="row 7 .*infinity"):
            saving.wait()
    assert saving.done() and os.listdir(tmp_path) == ["table.npy"] and (tmp_path / "table.npy").read_bytes() == before
    table.store([7], floats(1, 4))
    table.save(tmp_path / "table.npy")  # the failure was told: this save tells no other


def test_a_failure_that_nobody_heard_is_told_by_the_next_save_or_the_end(cpu, tmp_path):
    table = sptx.Table(50, 4, device=cpu)
    table.store([7], floats(1, 4) * numpy.inf)
    table.save(tmp_path / "table.npy", wait=False)  # its Saving is dropped
    table.store([7], floats(1, 4))
    with pytest.raises(sptx.Error, match="row 7 .*infinity"):
        table.save(tmp_path / "other.npy", wait=False)
    assert not (tmp_path / "other.npy").exists()
    table.save(tmp_path / "other.npy", wait=False).wait()
    table.store([3], floats(1, 4) * numpy.inf)
    table.save(tmp_path / "table.npy", wait=False)
    with pytest.warns(sptx.SptxWarning, match="row 3 .*infinity"):
        table.close()


def test_one_path_has_one_save_at_a_time(cpu, tmp_path):
    table, other = large(cpu), sptx.Table(5, 2, device=sptx.Context("cpu", threads=1))
    os.symlink(tmp_path, tmp_path / "link")
    saving = table.save(tmp_path / "table.npy", wait=False)
    for path in (tmp_path / "table.npy", tmp_path / "link" / "table.npy", os.path.relpath(tmp_path / "table.npy")):
        for which, wait in ((table, True), (table, False), (other, True), (other, False)):
            with pytest.raises(sptx.Error, match="is being written by an earlier save"):
                which.save(path, wait=wait)
    table.save(tmp_path / "second.npy")  # waits for the first
    assert saving.done() and (tmp_path / "table.npy").read_bytes() == (tmp_path / "second.npy").read_bytes()
    other.save(tmp_path / "table.npy")


def test_bad_arguments_begin_nothing(cpu, tmp_path):
    table = sptx.Table(50, 4, device=cpu)
    with pytest.raises(FileNotFoundError):
        table.save(tmp_path / "nowhere" / "table.npy", wait=False)
    for memory, error in ((-1, ValueError), ("much", TypeError)):
        with pytest.raises(error, match="memory"):
            table.save(tmp_path / "table.npy", wait=False, memory=memory)
    with pytest.raises(ValueError):
        table.save("", wait=False)
    assert not os.listdir(tmp_path)
    table.close()
    with pytest.raises(ValueError, match="closed"):
        table.save(tmp_path / "table.npy", wait=False)


def test_a_relative_path_is_of_the_directory_at_the_save(cpu, tmp_path, monkeypatch):
    table = large(cpu)
    for name in ("here", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    saving = table.save("table.npy", wait=False)
    monkeypatch.chdir(tmp_path / "elsewhere")
    saving.wait()
    assert os.listdir(tmp_path / "here") == ["table.npy"] and not os.listdir(tmp_path / "elsewhere")


def test_each_of_several_threads_gets_its_own_save(cpu, tmp_path):
    table, paths = large(cpu), [str(tmp_path / ("%d.npy" % i)) for i in range(6)]
    found = {}
    threads = [threading.Thread(target=lambda path=path: found.update({path: table.save(path, wait=False).path})) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict(zip(paths, paths))


def test_restoring_and_closing_wait(cpu, tmp_path):
    table, random = large(cpu), numpy.random.default_rng(1)
    table.save(tmp_path / "first.npy")
    change(table, random)
    saving = table.save(tmp_path / "second.npy", wait=False)
    table.restore(tmp_path / "first.npy")
    assert saving.done()
    third = table.save(tmp_path / "third.npy", wait=False)
    table.close()
    assert third.done() and (tmp_path / "third.npy").read_bytes() == (tmp_path / "first.npy").read_bytes()
    assert (tmp_path / "second.npy").read_bytes() != (tmp_path / "first.npy").read_bytes()


def test_a_table_that_is_dropped_writes_its_file(cpu, tmp_path):
    table = large(cpu)
    saving = table.save(tmp_path / "table.npy", wait=False)
    del table
    saving.wait()
    assert numpy.load(tmp_path / "table.npy", mmap_mode="r").shape == (400_000,)


def test_another_thread_may_wait(cpu, tmp_path):
    table, random, heard = large(cpu), numpy.random.default_rng(1), []
    saving = table.save(tmp_path / "table.npy", wait=False)
    thread = threading.Thread(target=lambda: heard.append(saving.wait()))
    thread.start()
    change(table, random)
    thread.join()
    assert heard == [None]


def test_an_interrupt_leaves_the_save_going_on(cpu, tmp_path):
    table = large(cpu)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        saving = table.save(tmp_path / "table.npy", wait=False)
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-4)
            saving.wait()
            time.sleep(1)
        except KeyboardInterrupt:
            pass
    finally:
        signal.signal(signal.SIGALRM, before)
    change(table, numpy.random.default_rng(1))
    saving.wait()
    assert numpy.load(tmp_path / "table.npy", mmap_mode="r").shape == (400_000,)


def test_a_child_has_no_part_in_the_save(cpu, tmp_path):
    table = large(cpu)
    saving = table.save(tmp_path / "table.npy", wait=False)
    child = os.fork()
    if not child:
        code = 1
        try:
            own = sptx.Table(5, 2, device=sptx.Context("cpu", threads=1))
            own.save(tmp_path / "child.npy", wait=False).wait()
            saving.wait()
        except RuntimeError as error:
            code = 0 if "fork" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    saving.wait()
    assert (tmp_path / "child.npy").exists()


SCRIPT = """
import sptx, sys
table = sptx.Table(400_000, 64, "adam", device="cpu", seed=int(sys.argv[2]))
if sys.argv[3] == "end":
    table.save(sys.argv[1], wait=False)
else:
    while True:
        saving = table.save(sys.argv[1], wait=False)
        print("begun", flush=True)
        saving.wait()
"""


def test_the_end_of_the_program_waits(tmp_path):
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "table.npy"), "1", "end"], check=True, timeout=120)
    assert numpy.load(tmp_path / "table.npy", mmap_mode="r").shape == (400_000,) and os.listdir(tmp_path) == ["table.npy"]


def test_a_kill_leaves_the_older_file(tmp_path):
    path = tmp_path / "table.npy"
    sptx.Table(50, 4, device="cpu").save(path)
    before = path.read_bytes()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path), "2", "loop"], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"begun\n"
    process.kill()
    process.wait()
    assert path.read_bytes() == before or numpy.load(path, mmap_mode="r").shape == (400_000,)
