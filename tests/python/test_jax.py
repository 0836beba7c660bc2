"""Tables and JAX on the CPU. The tests do not install JAX: if it is missing, they are skipped."""

import numpy
import pytest

jax = pytest.importorskip("jax")
import sptx  # noqa: E402
from conftest import known_rows  # noqa: E402


@pytest.fixture(autouse=True)
def on_the_cpu():
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def test_arrays_of_ids_give_arrays(table):
    ids = jax.numpy.array([[3, 1], [4, 3]])
    rows = table.fetch(ids)
    assert isinstance(rows, jax.Array) and rows.devices() == ids.devices() and rows.dtype == numpy.float32
    assert numpy.array_equal(rows, known_rows(10, 3)[numpy.asarray(ids)])
    table.update(ids, jax.numpy.ones((2, 2, 3)))
    assert numpy.array_equal(table.fetch([3, 4]), known_rows(10, 3)[[3, 4]] - [[2], [1]])
    assert numpy.array_equal(rows, known_rows(10, 3)[numpy.asarray(ids)])  # the fetched array has not changed
    table.store(jax.numpy.array([1], "uint8"), jax.numpy.zeros((1, 3)))
    assert not table.fetch(1).any()


def test_arrays_that_do_not_do_are_named(table):
    for ids, kind in ((jax.numpy.array([1.5]), TypeError), (jax.numpy.array([True]), TypeError),
                      (jax.numpy.array([1], "uint32"), TypeError), (jax.numpy.array([10]), IndexError)):
        with pytest.raises(kind, match="^ids"):
            table.fetch(ids)
    with pytest.raises(TypeError, match="bfloat16"):
        table.store([1], jax.numpy.zeros((1, 3), "bfloat16"))
    with pytest.raises(TypeError, match="^out"):
        table.fetch([1], out=jax.numpy.zeros((1, 3)))
    with pytest.raises(TypeError, match="jit"):
        jax.jit(table.fetch)(jax.numpy.array([1]))


def test_a_table_may_be_called_back(table):
    def fetch(ids):
        return jax.pure_callback(lambda ids: table.fetch(numpy.asarray(ids)), jax.ShapeDtypeStruct((2, 3), "float32"), ids)

    assert numpy.array_equal(jax.jit(fetch)(jax.numpy.array([1, 2])), known_rows(10, 3)[1:3])


def test_rows_are_taken_in_place(table):
    in_place = jax.dlpack.from_dlpack(table.weights.records)
    assert numpy.array_equal(in_place[jax.numpy.array([2, 3]), :3], known_rows(10, 3)[2:4])
    table.close()
    assert in_place[1, 1] == 1.25
