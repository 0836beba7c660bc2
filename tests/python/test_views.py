"""NumPy views of a table's rows in place: how long they are valid, and DLPack."""

import numpy
import pytest

import sptx
from conftest import floats, known_rows


def test_weights_are_the_rows_themselves(table):
    weights = table.weights
    assert isinstance(weights, numpy.ndarray) and isinstance(weights, sptx.Rows) and weights.first == 0
    weights[3, 1] = 42
    assert table.fetch(3).tolist() == [3, 42, 3.5]
    table.store([3], floats(1, 3))
    assert weights[3].tolist() == [1, 1, 1]


def test_what_is_computed_from_weights_is_plain(table):
    weights = table.weights
    assert type(weights + 1) is numpy.ndarray and type(weights.sum(0)) is numpy.ndarray
    assert isinstance(weights.sum(), numpy.float32) and type(weights.copy()) is not type(None)
    assert numpy.linalg.norm(weights) > 0


def test_a_part_knows_its_first_row(table):
    weights = table.weights
    assert weights[4:].first == 4 and weights[4:][2:].first == 6 and weights[:, 1:].first == 0 and weights[3:, 2:].first == 3
    assert weights[::-1].first == 9 and weights[2::3].first == 2 and weights[5].first == 5
    assert weights[4:].copy().first == 0 and weights[[4, 5]].first == 0


def test_views_outlive_the_table(cpu):
    table = sptx.Table(2000, 64, "adam", device=cpu)
    weights, part, state = table.weights, table.weights[100:200], table.state["exp_avg"]
    before = weights.copy()
    table.close()
    del table
    weights[0] = 1
    del weights
    assert numpy.array_equal(part, before[100:200])
    del part
    assert not state.any()


def test_a_view_wants_a_field(table):
    for field in ("exp_avg", "", None, 3):
        with pytest.raises(ValueError, match="field"):
            table.view(field)


def test_numpy_takes_the_rows_through_dlpack(table):
    weights = table.weights
    assert weights.__dlpack_device__() == (1, 0)
    taken = numpy.from_dlpack(weights)
    assert taken.shape == (10, 3) and numpy.shares_memory(taken, weights)
    part = numpy.from_dlpack(weights[2:9:3])
    assert numpy.array_equal(part, known_rows(10, 3)[2:9:3]) and numpy.shares_memory(part, weights)
    copied = numpy.from_dlpack(type("Copying", (), {"__dlpack__": lambda self, **kw: weights.__dlpack__(copy=True),
                                                    "__dlpack_device__": lambda self: (1, 0)})())
    assert numpy.array_equal(copied, weights) and not numpy.shares_memory(copied, weights)
    with pytest.raises(BufferError):
        weights.__dlpack__(dl_device=(2, 0))
    table.close()
    del weights
    assert taken[1, 1] == 1.25


def test_what_a_gpu_reaches_is_the_tables_own_memory(cpu):
    """Imitates a GPU that can address the rows: it is given parts of the table's own memory, but never copies."""
    table = sptx.Table(100, 32, device=cpu)
    weights = table.weights
    start = weights.__array_interface__["data"][0]
    weights._range, weights._gpu, weights._owner = (start, start + 100 * 128), 3, table._handle
    for part in (weights, weights[5:20:3], weights[::-1], weights.T, weights[99, 31:]):
        assert part.__dlpack_device__() == (2, 3)
    for other in (weights.copy(), weights[[1, 2]], weights + 1, numpy.concatenate([weights, weights]), weights[:0]):
        assert other.__dlpack_device__() == (1, 0)
    copied = weights.copy()
    copied._range = weights._range
    assert copied.__dlpack_device__() == (1, 0)
    from sptx import _dlpack
    capsule = weights[5:].__dlpack__()
    tensor = _dlpack.tensor_of(capsule)
    assert (tensor.device_type, tensor.device_id, tensor.data + tensor.byte_offset) == (2, 3, start + 5 * 128)
    capsule = weights.__dlpack__(dl_device=(1, 0))
    tensor = _dlpack.tensor_of(capsule)
    assert (tensor.device_type, tensor.device_id) == (1, 0)
    for wrong in ((2, 0), (3, 0), (1, 1)):
        with pytest.raises(BufferError):
            weights.__dlpack__(dl_device=wrong)
    with pytest.raises(BufferError):
        weights.__dlpack__(copy=True)
    held = _dlpack.Held(weights.__dlpack__())
    assert (held.pointer, held.shape, held.dtype) == (start, (100, 32), numpy.float32)


def test_records_have_no_gaps(cpu):
    table = sptx.Table(10, 5, "adam", device=cpu)
    table.update([3], floats(1, 5))
    records = table.weights.records
    assert records.flags.c_contiguous and records.shape == (10, 32) and numpy.array_equal(records[:, :5], table.weights)
    # each array of a record begins at a multiple of four columns
    assert numpy.array_equal(records[:, 8:13], table.state["exp_avg"])
    assert numpy.shares_memory(records, table.weights)
    for other in (table.weights[1:], table.state["exp_avg"], records):
        with pytest.raises(ValueError, match="records"):
            other.records
    del table
    assert records[3, 0] != 0
