"""Tables in files: saved tables can be loaded, other files are refused, and no file is left half written."""

import os
import stat

import numpy
import pytest

import sptx
from conftest import floats


def test_what_is_saved_is_loaded(cpu, tmp_path):
    table = sptx.Table(30, 6, "adamax", device=cpu, lr=0.1)
    table.update([3, 3, 29], floats(3, 6))
    table.save(tmp_path / "table.npy")
    on_disk = numpy.load(tmp_path / "table.npy")
    assert on_disk.dtype.names == ("weights", "exp_avg", "exp_inf", "updates")
    assert numpy.array_equal(on_disk["weights"], table.weights)
    again = sptx.Table.load(str(tmp_path / "table.npy"), optimizer="adamax", lr=0.1, device=cpu)
    assert again.shape == (30, 6)
    for each in (table, again):
        each.update([3, 5], floats(2, 6))
    assert numpy.array_equal(table.weights, again.weights)
    assert numpy.array_equal(table.state["exp_inf"], again.state["exp_inf"])


def test_the_tables_own_steps_are_saved_without_counts(cpu, tmp_path):
    table = sptx.Table(30, 6, "adam", device=cpu, count_rows=False)
    table.update([3], floats(1, 6))
    table.save(tmp_path / "table.npy")
    again = sptx.Table.load(tmp_path / "table.npy", "adam", device=cpu)
    again.steps = table.steps
    for each in (table, again):
        each.update([3, 5], floats(2, 6))
    assert numpy.array_equal(table.weights, again.weights)


def test_weights_alone_can_be_loaded(cpu, tmp_path):
    table = sptx.Table(3000, 6, "adam", device=cpu)
    table.save(tmp_path / "table.npy")
    assert numpy.array_equal(sptx.Table.load(tmp_path / "table.npy", "none", device=cpu).weights, table.weights)
    numpy.save(tmp_path / "plain.npy", table.weights)
    for optimizer in ("none", "sgd", "adamax"):
        assert numpy.array_equal(sptx.Table.load(tmp_path / "plain.npy", optimizer, device=cpu).weights, table.weights)


def test_files_that_are_no_tables_are_refused(cpu, tmp_path):
    table = sptx.Table(30, 6, "adam", device=cpu)
    table.save(tmp_path / "table.npy")
    with pytest.raises(sptx.Error, match="exp_inf"):
        sptx.Table.load(tmp_path / "table.npy", "adamax", device=cpu)
    with pytest.raises(FileNotFoundError):
        sptx.Table.load(tmp_path / "none.npy", device=cpu)
    with pytest.raises(IsADirectoryError):
        sptx.Table.load(tmp_path, device=cpu)
    for name, text in (("empty", b""), ("text", b"hello"), ("cut", (tmp_path / "table.npy").read_bytes()[:-1]),
                       ("header", (tmp_path / "table.npy").read_bytes()[:40])):
        (tmp_path / name).write_bytes(text)
        for optimizer in ("adam", "none"):
            with pytest.raises(sptx.Error, match=name):
                sptx.Table.load(tmp_path / name, optimizer, device=cpu)
    for name, shape in (("norows", (0, 4)), ("nocolumns", (4, 0)), ("wide", (2, 5000))):
        numpy.save(tmp_path / (name + ".npy"), numpy.zeros(shape, numpy.float32))
        for optimizer in ("adam", "none"):
            with pytest.raises(sptx.Error, match=name):
                sptx.Table.load(tmp_path / (name + ".npy"), optimizer, device=cpu)
    for name, array in (("cube", floats(2, 2, 2)), ("line", floats(3)), ("doubles", numpy.ones((2, 2))),
                        ("pickled", numpy.array([{}])), ("none", floats(0, 4))):
        numpy.save(tmp_path / (name + ".npy"), array)
        with pytest.raises((sptx.Error, ValueError)):
            sptx.Table.load(tmp_path / (name + ".npy"), device=cpu)


def test_saving_is_whole_or_not_at_all(cpu, tmp_path):
    table = sptx.Table(30, 6, device=cpu)
    path = tmp_path / "table.npy"
    table.save(path)
    before = path.read_bytes()
    table.weights[7, 2] = numpy.nan
    with pytest.raises(sptx.Error, match="row 7 .* NaN"):
        table.save(path)
    assert path.read_bytes() == before and [item.name for item in tmp_path.iterdir()] == ["table.npy"]
    with pytest.raises(FileNotFoundError):
        table.save(tmp_path / "no" / "folder.npy")
    for wrong, kind in (("", ValueError), ("a\0b", ValueError), (3, TypeError), (None, TypeError)):
        with pytest.raises(kind):
            table.save(wrong)


# ---- models that are saved by pickle ----

class Unwritable:
    def __reduce__(self):
        raise OSError(28, "No space left on device")


def test_a_save_that_fails_leaves_what_was_there(tmp_path):
    vectors = sptx.KeyedVectors(4)
    vectors.add_vectors(["a", "b"], numpy.ones((2, 4), numpy.float32))
    path = tmp_path / "v.kv"
    vectors.save(str(path))
    path.chmod(0o640)
    before = path.read_bytes()
    vectors.own = Unwritable()
    with pytest.raises(OSError):
        vectors.save(str(path))
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["v.kv"]
    del vectors.own
    link = tmp_path / "link.kv"
    link.symlink_to("v.kv")
    vectors.save(str(link))
    assert link.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sptx.KeyedVectors.load(str(link)).key_to_index == {"a": 0, "b": 1}
