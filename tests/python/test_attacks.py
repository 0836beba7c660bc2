"""Calls that try to break the binding. Each must raise an exception with a message, or do what NumPy would do. They also run under
the address sanitizer (`make sanitize`), which notices errors that would otherwise stay without effect."""

import os
import subprocess
import sys

import numpy
import pytest

import sptx
from conftest import floats, known_rows


# ---- arrays that lie where they should not ----

@pytest.fixture
def dense(cpu):
    """Returns rows without gaps, parts of which are used in place, and their memory as one long array."""
    with sptx.Table(8, 32, "sgd", lr=1.0, device=cpu) as table:
        table.store(range(8), known_rows(8, 32))
        records = table.weights.records
        assert records.shape == (8, 32)
        yield table, records.reshape(-1)


def test_values_in_the_tables_own_memory_are_those_of_before(dense):
    table, memory = dense
    for start in (0, 5, 37):
        part = memory[start:start + 64].reshape(2, 32)
        before, rows = part.copy(), table.weights.copy()
        table.store([1, 2], part)
        assert numpy.array_equal(table.fetch([1, 2]), before)
        part = memory[start:start + 64].reshape(2, 32)
        before, rows = part.copy(), table.weights.copy()
        table.update([1, 2], part)
        assert numpy.array_equal(table.fetch([1, 2]), rows[[1, 2]] - before)
    table.store(range(8), known_rows(8, 32))
    table.store([3, 4, 5], table.weights[2:5])
    assert numpy.array_equal(table.fetch([3, 4, 5]), known_rows(8, 32)[2:5])


def test_rows_fetched_into_the_table_are_those_of_before(dense):
    table, memory = dense
    out = memory[32 + 7:32 + 7 + 64].reshape(2, 32)
    before = table.weights.copy()
    assert table.fetch([1, 2], out=out) is out
    assert numpy.array_equal(out, before[[1, 2]])


def test_state_as_gradients_is_that_of_before(cpu):
    table = sptx.Table(4, 32, "adagrad", device=cpu, initial_accumulator_value=0.5)
    twin = sptx.Table(4, 32, "adagrad", device=cpu, initial_accumulator_value=0.5)
    table.update([1, 2, 3], table.state["sum"][:3])
    twin.update([1, 2, 3], twin.state["sum"][:3].copy())
    assert numpy.array_equal(table.weights, twin.weights)


def test_ids_in_the_tables_own_memory_are_those_of_before(dense):
    table, memory = dense
    ids = memory[:2].view(numpy.int32)
    ids[:] = [0, 3]
    table.store(ids, floats(2, 32) * 9)
    assert (table.fetch([0, 3]) == 9).all() and (table.fetch([1]) != 9).all()


def test_out_over_the_ids_is_refused(dense):
    memory = numpy.zeros(64, numpy.int64)
    out = memory.view(numpy.float32).reshape(4, 32)
    for ids in (memory[:4], memory[60:], memory[30:34].view(numpy.int32)[::2]):
        if ids.flags.c_contiguous:
            with pytest.raises(ValueError, match="out lies in the ids' own memory"):
                dense[0].fetch(ids, out=out)
        else:  # the rows were copied, so the arrays do not overlap
            assert dense[0].fetch(ids, out=out) is out


def test_misaligned_arrays_are_taken(table):
    raw = bytearray(200)
    ids = numpy.frombuffer(raw, numpy.int64, 2, offset=1)
    ids[:] = [3, 1]
    values = numpy.frombuffer(raw, numpy.float32, 6, offset=101).reshape(2, 3)
    assert not ids.flags.aligned and not values.flags.aligned
    values[:] = 7
    assert numpy.array_equal(table.fetch(ids), known_rows(10, 3)[[3, 1]])
    table.store(ids, values)
    table.update(ids.astype(numpy.int32), values)
    assert not table.fetch([3, 1]).any()
    with pytest.raises(ValueError, match="contiguous"):
        table.fetch(ids, out=values)


def test_many_elements_in_little_memory_are_refused_before_they_are_copied(table):
    wide = numpy.broadcast_to(numpy.int64(1), (1 << 40,))
    for call in (table.fetch, table.prefetch):
        for ids in (wide, numpy.broadcast_to(numpy.int16(1), (1 << 33, 2))):
            with pytest.raises(ValueError, match="more than 4294967295 in one call"):
                call(ids)
    with pytest.raises(ValueError, match="shape"):
        table.store([1], numpy.broadcast_to(numpy.float32(1), (1 << 40, 3)))


# ---- objects that lie ----

class Liar(numpy.ndarray):
    """An array that reports a larger size and another address than it has."""

    shape = property(lambda self: (99,))
    size = property(lambda self: 99)
    flags = property(lambda self: numpy.zeros(99).flags)
    __array_interface__ = property(lambda self: {"data": (0, False)})


def test_a_derived_class_is_taken_for_what_it_is(table):
    rows = table.fetch(numpy.array([2, 3]).view(Liar))
    assert numpy.array_equal(rows, known_rows(10, 3)[[2, 3]])
    out = numpy.zeros((2, 3), numpy.float32)
    table.fetch([2, 3], out=out.view(Liar))
    assert numpy.array_equal(out, known_rows(10, 3)[[2, 3]])
    with pytest.raises(ValueError, match="shape"):
        table.store([1], numpy.zeros((1, 4), numpy.float32).view(Liar))


def faulty(**members):
    return type("Faulty", (), members)()


@pytest.mark.parametrize("given", [
    faulty(__dlpack__=lambda self, **_: None, __dlpack_device__=lambda self: (1, 0)),
    faulty(__dlpack__=lambda self, **_: None, __dlpack_device__=lambda self: 5),
    faulty(__dlpack__=lambda self, **_: 1 // 0, __dlpack_device__=lambda self: (1, 0)),
    faulty(__dlpack__=lambda self, **_: 7, __dlpack_device__=lambda self: (2, 0)),
    faulty(__dlpack__=None),
    faulty(__cuda_array_interface__={"typestr": "<i8", "shape": (1,), "data": (0, False), "version": 3}),
    faulty(__cuda_array_interface__={}), faulty(__cuda_array_interface__=None),
    faulty(__cuda_array_interface__={"typestr": "?", "shape": -1, "data": ()}),
    faulty(__array_interface__={"typestr": "<i8", "shape": (1,), "data": (0, False)}),
    faulty(__array__=lambda self, *_, **__: object()),
    faulty(__getattr__=lambda self, name: self),
])
def test_objects_that_are_no_arrays_are_refused(table, given):
    before = table.weights.copy()
    for call in (lambda: table.fetch(given), lambda: table.prefetch(given), lambda: table.fetch([1], out=given),
                 lambda: table.store([1], given), lambda: table.update(given, floats(1, 3))):
        with pytest.raises((TypeError, ValueError)) as error:
            call()
        assert str(error.value)
    assert numpy.array_equal(before, table.weights)


def test_an_objects_own_exception_comes_through(table):
    class Broken:
        def __array__(self, *_, **__):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        table.fetch(Broken())
    assert table.fetch([1]).shape == (1, 3)


def test_lists_without_end_are_refused(table):
    endless, deep = [], [1]
    endless.append(endless)
    for _ in range(10000):
        deep = [deep]
    for ids in (endless, deep):
        with pytest.raises(ValueError, match="no array"):
            table.fetch(ids)


# ---- options and paths ----

@pytest.mark.parametrize("change, kind, said", [
    ({"rows": numpy.bool_(True)}, TypeError, "rows"), ({"rows": numpy.float64(3)}, TypeError, "rows"),
    ({"lr": 10**400}, ValueError, "lr = 1"), ({"lr": 1j}, TypeError, "lr = 1j"), ({"lr": numpy.bool_(True)}, TypeError, "lr"),
    ({"lr": float("inf")}, ValueError, "lr"), ({"weights": numpy.ones(3)}, ValueError, "none of pinned"),
    ({"momentum": 0.9, "nesterov": numpy.ones(3)}, TypeError, "nesterov"), ({"count_rows": [1]}, TypeError, "count_rows"),
    ({"optimizer": "\ud800"}, ValueError, "none of"), ({"init": "\ud800"}, ValueError, "surrogates"),
    ({"init": "%s%n"}, ValueError, "%s%n"), ({"init": "uniform " + "1" * 100000 + " 2"}, ValueError, "init"),
    ({"device": "cpu\0"}, ValueError, "NUL"), ({"device": None}, ValueError, "None"),
    ({"weights": "file", "directory": "/tmp/" + "d" * 5000}, sptx.Error, "cannot"),
    ({"weights": "file", "directory": 7}, TypeError, "int"),
])
def test_odd_options_are_named(cpu, change, kind, said):
    with pytest.raises(kind) as error:
        sptx.Table(**{"rows": 4, "dim": 2, "device": cpu, **change})
    assert said in str(error.value)


def test_threads_have_a_bound():
    with pytest.raises(ValueError, match="threads = 4097 is more than 4096"):
        sptx.Context("cpu", threads=4097)
    with pytest.raises(ValueError, match="more than 4096"):
        sptx.Context("cpu", threads=(1 << 32) - 1)


def test_steps_have_a_bound(table):
    table.steps = (1 << 63) - 1
    with pytest.raises(ValueError, match="steps"):
        table.steps = 1 << 63


@pytest.mark.parametrize("path, kind", [("/tmp", sptx.Error), ("/dev/full", sptx.Error), ("/dev/null", sptx.Error),
                                        ("/proc/no.npy", sptx.Error), ("/nowhere/no.npy", OSError), (1, TypeError),
                                        ("/tmp/" + "x" * 300, sptx.Error), (b"a\0", ValueError)])
def test_paths_that_cannot_be_written_are_refused(table, path, kind):
    with pytest.raises(kind):
        table.save(path)


def test_a_number_is_no_path_to_load(cpu):
    reader, writer = os.pipe()
    with pytest.raises(TypeError, match="PathLike"):
        sptx.Table.load(reader, device=cpu)
    os.write(writer, b"x")
    assert os.read(reader, 1) == b"x"  # the pipe is still open
    os.close(reader)
    os.close(writer)


def test_a_full_disk_leaves_the_older_file(tmp_path):
    code = """if True:
        import resource, sptx
        table = sptx.Table(20000, 64, "adam", device="cpu")
        table.save("rows.npy")
        before = open("rows.npy", "rb").read()
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            table.save("rows.npy")
        except sptx.Error as error:
            print(error)
        assert open("rows.npy", "rb").read() == before and table.fetch([1]).shape == (1, 64)
    """
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "") and "rows.npy" in ended.stdout
    assert [item.name for item in tmp_path.iterdir()] == ["rows.npy"]


@pytest.mark.parametrize("version, length", [(b"\x02\x00", b"\xff\xff\xff\xff"), (b"\x03\x00", b"\x00\x00\x00\x80"),
                                             (b"\x01\x00", b"\xff\xff")])
def test_a_headers_length_past_the_file_is_not_made_room_for(cpu, tmp_path, monkeypatch, version, length):
    (tmp_path / "file.npy").write_bytes(b"\x93NUMPY" + version + length + b"{'descr': '<f4'}")
    for name in ("read_array_header_1_0", "read_array_header_2_0"):
        monkeypatch.setattr(numpy.lib.format, name, None)  # would be asked to read all of it
    with pytest.raises(sptx.Error, match="its header tells [0-9]+ bytes, more than there are"):
        sptx.Table.load(tmp_path / "file.npy", device=cpu)


@pytest.mark.parametrize("header, said", [
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 4096), }" % (1 << 32), "its header says 70368744177664"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (100000, 256), }", "its header says 102400000"),
    ("{'descr': [('weights', '<f4', (256,)), ('updates', '<u4')], 'fortran_order': False, 'shape': (100000,), }", "header says"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", "has 64 bytes of rows, and its header says 8"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (-16, -1), }", "it holds float32 of the shape (-16, -1)"),
])
def test_a_header_that_says_more_than_the_file_holds_opens_nothing(cpu, tmp_path, monkeypatch, header, said):
    text = header.encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    (tmp_path / "file.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64))
    opened = []
    monkeypatch.setattr(sptx.Table, "_own_memory", lambda table: opened.append(table) or [])
    for optimizer in ("sgd", "none"):
        with pytest.raises((sptx.Error, ValueError)) as error:
            sptx.Table.load(tmp_path / "file.npy", optimizer, device=cpu)
        assert said in str(error.value)
    assert not opened


# ---- objects at odd moments ----

def test_a_table_that_never_opened_is_collected(cpu):
    for _ in range(20):
        with pytest.raises(ValueError):
            sptx.Table(0, 3, device=cpu)
        sptx.Table.__new__(sptx.Table)
        sptx.Context.__new__(sptx.Context)
    table = sptx.Table(5, 3, device=cpu)
    table.__init__(9, 4, device=cpu)  # the handle of the first table is closed
    assert table.fetch([8]).shape == (1, 4)


def test_views_keep_what_they_look_at(cpu):
    table = sptx.Table(500, 32, device=cpu)
    records, capsule = table.weights.records, table.weights.__dlpack__()
    expected = table.fetch(range(500))
    table.close()
    for _ in range(10):
        sptx.Table(500, 32, device=cpu, init="zeros").close()
    assert numpy.array_equal(records, expected)
    del capsule, records
    sptx.Table(5, 3, device=cpu).fetch([1])


def test_keys_are_a_mapping():
    for wrong in ([("model.dim", 3)], "model.dim", 3):
        with pytest.raises(TypeError, match="keys are a"):
            sptx.train(None, wrong)
