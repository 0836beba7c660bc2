"""Random calls of the binding. Valid calls must do what NumPy would do, invalid ones must raise an exception, and none may crash.
The test also runs under the address sanitizer (`make sanitize`)."""

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import sptx

WRONG = (ValueError, TypeError, IndexError)  # a UnicodeError is a ValueError
ROWS, DIM = 7, 3

relaxed = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)
dtypes = st.one_of(arrays.scalar_dtypes(), arrays.array_dtypes(), arrays.unicode_string_dtypes(),
                   st.sampled_from([numpy.dtype(name) for name in ("i4", "i8", "f4", ">i8", ">f4", "O")]))
small = st.integers(-2, ROWS + 1)
scalars = st.one_of(small, st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=3), st.binary(max_size=3))
anything = st.one_of(
    scalars, st.recursive(scalars, lambda inner: st.lists(inner, max_size=4), max_leaves=12), st.lists(small, max_size=6),
    arrays.arrays(st.sampled_from(["i4", "i8"]), shapes, elements=small),
    arrays.arrays("f4", arrays.array_shapes(max_dims=2, max_side=5).map(lambda shape: shape + (DIM,))),
    dtypes.flatmap(lambda dtype: arrays.arrays(dtype, shapes) if dtype != object else st.just(numpy.array([None, 1]))),
    st.dictionaries(st.integers(), st.integers(), max_size=2), st.sets(st.integers(), max_size=2),
    st.just(object()), st.just(sptx.Table), st.just(range(3)), st.just(memoryview(b"abcd")), st.just(iter([1, 2])))


@st.composite
def array_views(draw):
    """Draws an array as callers may pass it: sliced, reversed, transposed or read-only."""
    array = draw(arrays.arrays(st.sampled_from(["i4", "i8", "f4"]), shapes, elements=st.integers(0, ROWS - 1)))
    if array.ndim:
        array = array[::draw(st.sampled_from([1, 2, -1]))]
    if draw(st.booleans()):
        array = array.T
    if draw(st.booleans()):
        array = numpy.broadcast_to(array, (2,) + array.shape)
    return array


@relaxed
@given(ids=st.one_of(anything, array_views()), values=st.one_of(anything, array_views()), out=st.one_of(anything, array_views()))
def test_calls_with_anything(table_of_fuzz, ids, values, out):
    table = table_of_fuzz
    for call in (lambda: table.fetch(ids), lambda: table.fetch(ids, out=out), lambda: table.fetch([1, 2], out=out),
                 lambda: table.prefetch(ids), lambda: table.update(ids, values), lambda: table.store(ids, values),
                 lambda: table.store([1, 2], values), lambda: table.view(ids), lambda: setattr(table, "steps", ids)):
        try:
            call()
        except WRONG as error:
            assert str(error)
    table.store(range(ROWS), numpy.zeros((ROWS, DIM), numpy.float32))


@relaxed
@given(options=st.dictionaries(st.sampled_from(["rows", "dim", "optimizer", "lr", "weights", "state", "seed", "init", "hot_rows", "gpu_rows",
                                                "clip", "count_rows", "momentum", "betas", "nesterov", "eps", "amsgrad",
                                                "device", "other"]),
                               st.one_of(scalars, st.lists(scalars, max_size=3), st.sampled_from(["adam", "sgd", "gpu", "zeros"]),
                                         st.integers(0, 50)), max_size=4))
def test_opening_with_anything(options):
    wanted = {"rows": 3, "dim": 2, "device": "cpu"}
    wanted.update(options)
    if isinstance(wanted["rows"], int) and wanted["rows"] > 10**6:  # so many rows are valid, but take too long for a test
        wanted["dim"] = 0
    try:
        sptx.Table(**wanted).close()
    except WRONG + (sptx.Error,) as error:
        assert str(error)


@relaxed
@given(content=st.one_of(st.binary(max_size=200), st.binary(max_size=60).map(lambda end: b"\x93NUMPY" + end)),
       place=st.integers(0, 200), byte=st.integers(0, 255))
def test_loading_anything(tmp_path_factory, saved, content, place, byte):
    path = tmp_path_factory.getbasetemp() / "fuzzed.npy"
    changed = bytearray(saved)
    changed[place % len(changed)] = byte
    for bytes_of_file in (content, bytes(changed), saved[:place], saved + content):
        path.write_bytes(bytes_of_file)
        for optimizer in ("adam", "none"):
            try:
                sptx.Table.load(path, optimizer, device="cpu").close()
            except (sptx.Error, ValueError, MemoryError) as error:
                assert str(error)


@pytest.fixture(scope="module")
def table_of_fuzz():
    with sptx.Table(ROWS, DIM, "sgd", device=sptx.Context("cpu", threads=2)) as table:
        yield table


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "table.npy"
    with sptx.Table(3, 2, "adam", device="cpu") as table:
        table.save(path)
    return path.read_bytes()


class Model(RuleBasedStateMachine):
    """Compares a table with a NumPy array: stores, sums of gradients (sgd with learning rate 1), saves, loads, and views that stay
    in use."""

    ids = arrays.arrays(st.sampled_from(["i4", "i8"]), shapes, elements=st.integers(0, ROWS - 1))

    @initialize(threads=st.integers(1, 3))
    def open(self, threads):
        self.context = sptx.Context("cpu", threads=threads)
        self.table = sptx.Table(ROWS, DIM, "sgd", lr=1.0, init="zeros", device=self.context)
        self.model = numpy.zeros((ROWS, DIM), numpy.float32)
        self.kept = []

    @rule(ids=ids, data=st.data())
    def store(self, ids, data):
        values = data.draw(arrays.arrays("f4", ids.shape + (DIM,), elements=st.integers(-9, 9)))
        self.table.store(ids, values)
        for row, value in zip(ids.reshape(-1), values.reshape(-1, DIM)):
            self.model[row] = value

    @rule(ids=ids, data=st.data())
    def update(self, ids, data):
        gradients = data.draw(arrays.arrays("f4", ids.shape + (DIM,), elements=st.integers(-9, 9)))
        self.table.update(ids, gradients)
        numpy.subtract.at(self.model, ids.reshape(-1), gradients.reshape(-1, DIM))

    @rule(ids=ids)
    def prefetch_and_fetch(self, ids):
        self.table.prefetch(ids)
        assert numpy.array_equal(self.table.fetch(ids), self.model[ids])

    @rule(row=st.integers(0, ROWS - 1))
    def write_in_place(self, row):
        self.table.weights[row] += 1
        self.model[row] += 1

    @rule()
    def keep_a_view(self):
        self.kept.append(numpy.from_dlpack(self.table.weights) if len(self.kept) % 2 else self.table.weights)

    @rule()
    def reopen(self):
        fresh = sptx.Table(ROWS, DIM, "sgd", lr=1.0, device=self.context)
        fresh.store(numpy.arange(ROWS), self.table.weights)
        self.table.close()
        self.table, self.kept = fresh, self.kept[-2:]

    @invariant()
    def rows_are_the_models(self):
        if hasattr(self, "table"):
            assert numpy.array_equal(self.table.fetch(numpy.arange(ROWS)), self.model)
            for view in self.kept:
                assert numpy.isfinite(view).all()


TestModel = Model.TestCase
TestModel.settings = settings(relaxed, max_examples=40, stateful_step_count=20)
