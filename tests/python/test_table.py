"""Tables on the CPU, with NumPy only."""

import copy
import math
import os
import pickle
import subprocess
import sys

import numpy
import pytest

import sptx
from conftest import floats, known_rows


# ---- the verbs ----

@pytest.mark.parametrize("ids", [[3, 1, 3], (3, 1, 3), range(3), numpy.array([3, 1], "i4"), numpy.array([[3], [1]], "i8"),
                                 numpy.array([3, 1], "u1"), numpy.array([3, 1], "u8"), numpy.array([3, 9, 1, 9], "i8")[::2],
                                 numpy.array([3, 1], ">i4"), 7, numpy.int16(7), numpy.array(7), [], [[]], [[1, 2], [3, 4]]])
def test_rows_come_in_the_shape_and_order_of_their_ids(table, ids):
    index = numpy.asarray(ids, numpy.int64)
    rows = table.fetch(ids)
    assert rows.dtype == numpy.float32 and rows.shape == index.shape + (3,)
    assert numpy.array_equal(rows, known_rows(10, 3)[index])


def test_out_is_filled_and_returned(table):
    out = numpy.zeros((2, 2, 3), numpy.float32)
    assert table.fetch([[1, 2], [3, 4]], out=out) is out
    assert numpy.array_equal(out, known_rows(10, 3)[[[1, 2], [3, 4]]])


def test_of_ids_that_repeat_the_last_value_stays(table):
    table.store([2, 2], [[1, 1, 1], [5, 5, 5]])
    assert table.fetch(2).tolist() == [5, 5, 5]


def test_gradients_of_a_row_are_summed(table):
    table.update([4, 4, 6], floats(3, 3))  # sgd with learning rate 1 subtracts the gradients
    assert numpy.array_equal(table.fetch([4, 6]), known_rows(10, 3)[[4, 6]] - [[2], [1]])
    assert table.steps == 1


@pytest.mark.parametrize("ids", [1, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("bits", ["i4", "i8"])
def test_few_values_and_many_threads_make_the_same_rows(ids, bits):
    """Up to 16,384 values (1,024 rows of 16 columns) are handled by one thread, more by several."""
    random = numpy.random.default_rng(ids)
    lists = [random.integers(0, 700, ids).astype(bits) for _ in range(3)]
    values = random.standard_normal((3, ids, 16), numpy.float32)
    seen = []
    for threads in (1, 2, 5, 16):
        with sptx.Table(700, 16, "adagrad", lr=0.1, clip=0.5, device=sptx.Context("cpu", threads=threads)) as table:
            for which, of in zip(lists, values):
                table.store(which, of)
                expected = numpy.zeros((700, 16), numpy.float32)
                expected[which] = of  # of repeated ids the last value is kept
                assert numpy.array_equal(table.fetch(which), expected[which])
                table.update(which, of[::-1])
                seen.append((table.fetch(which).tobytes(), table.weights[:].tobytes()))
    assert seen == seen[:3] * 4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rowwise_adagrad_is_fbgemms(cpu, tmp_path, dtype):
    random = numpy.random.default_rng(1)
    table = sptx.Table(50, 20, "rowwise_adagrad", lr=0.1, device=cpu, init="uniform -1 1", dtype=dtype, initial_accumulator_value=0.25)
    every = numpy.arange(50)
    rows, sums = table.fetch(every).astype(float), numpy.full((50, 1), 0.25)
    for _ in range(5):
        ids, gradients = random.integers(0, 30, 64), random.standard_normal((64, 20), numpy.float32)
        summed = numpy.zeros((50, 20))
        numpy.add.at(summed, ids, gradients)
        sums += (summed ** 2).mean(axis=1, keepdims=True)
        rows -= 0.1 * summed / (numpy.sqrt(sums) + 1e-8)
        table.update(ids, gradients)
    assert numpy.allclose(table.fetch(every), rows, atol=1e-5 if dtype == "float32" else 0.03)
    assert table.state["sum"].dtype == numpy.float32 and numpy.allclose(table.state["sum"], sums, rtol=1e-5)
    table.save(tmp_path / "rows.npy")
    assert numpy.array_equal(numpy.load(tmp_path / "rows.npy")["sum"], table.state["sum"])
    loaded = sptx.Table.load(tmp_path / "rows.npy", "rowwise_adagrad", lr=0.1, device=cpu)
    for one in (table, loaded):
        one.update(ids, gradients)
        one.steps = 0
    assert dtype == "bfloat16" or numpy.array_equal(table.fetch(every), loaded.fetch(every))
    assert numpy.array_equal(table.state["sum"], loaded.state["sum"])


@pytest.mark.parametrize("dim, init", [(1, "zeros"), (1, "uniform -1 1"), (7, "zeros"), (7, "uniform -1 1")])
def test_ftrl_is_mcmahans(cpu, dim, init):
    """Algorithm 1 of the paper, in float64. z begins with the value that gives the row's first value."""
    lr, l1, l2, beta = 0.3, 0.4, 0.2, 0.7
    random = numpy.random.default_rng(2)
    table = sptx.Table(20, dim, "ftrl", lr=lr, l1=l1, l2=l2, beta=beta, device=cpu, init=init)
    w, n = table.fetch(numpy.arange(20)).astype(float), numpy.zeros((20, dim))
    z = -w * (beta / lr + l2) - l1 * numpy.sign(w)
    touched = set()
    for _ in range(30):
        ids, gradients = random.integers(0, 15, 8), random.standard_normal((8, dim)).astype(numpy.float32)
        gradients[:, 0] *= ids % 3 > 0  # column 0 of some rows has no gradient
        summed = numpy.zeros((20, dim))
        numpy.add.at(summed, ids, gradients)
        rows = numpy.unique(ids)
        touched |= set(rows)
        g = summed[rows]
        z[rows] += g - (numpy.sqrt(n[rows] + g ** 2) - numpy.sqrt(n[rows])) / lr * w[rows]
        n[rows] += g ** 2
        w[rows] = -numpy.sign(z[rows]) * numpy.maximum(abs(z[rows]) - l1, 0) / ((beta + numpy.sqrt(n[rows])) / lr + l2)
        table.update(ids, gradients)
    rows = sorted(touched)
    assert numpy.allclose(table.fetch(numpy.arange(20)), w, atol=2e-5) and numpy.allclose(table.state["n"], n, rtol=1e-5)
    assert numpy.allclose(table.state["z"][rows], z[rows], atol=1e-4)
    assert init != "zeros" or ((table.fetch(rows) == 0).any() and (table.fetch(rows) != 0).any())


def test_ftrl_with_a_rate_of_0_changes_nothing_and_nan_is_not_hidden(cpu):
    table = sptx.Table(3, 2, "ftrl", lr=0, device=cpu, init="uniform -1 1")
    before = table.fetch([0, 1, 2])
    table.update([1], floats(1, 2))
    assert numpy.array_equal(table.fetch([0, 1, 2]), before)
    table.lr = 0.1
    table.update([1], [[numpy.nan, 1]])
    assert numpy.isnan(table.fetch(1)).tolist() == [True, False]


def test_ftrl_without_a_bound_ignores_a_gradient_whose_square_is_0(cpu):
    table = sptx.Table(3, 2, "ftrl", beta=0, device=cpu, init="uniform -1 1")
    before = table.fetch([0, 1, 2])
    table.update([1], [[1e-30, 0]])
    assert numpy.array_equal(table.fetch([0, 1, 2]), before)
    table.update([1], [[1e-30, 2]])
    assert numpy.isfinite(table.fetch(1)).all() and table.fetch(1)[1] != before[1, 1]


def test_rowwise_adagrad_bounds_what_repeats(cpu):
    table = sptx.Table(3, 4, "rowwise_adagrad", lr=1, clip=0.5, device=cpu, init="zeros")
    table.update([0, 1, 1], numpy.full((3, 4), 2, numpy.float32))
    assert numpy.allclose(table.state["sum"][:, 0], [4, 0.0625, 0])  # row 1 has a gradient of length 0.5
    assert numpy.allclose(table.fetch([0, 1, 2])[:, 0], [-1, -1, 0])


@pytest.mark.parametrize("of, other", [("adagrad", "rowwise_adagrad"), ("rowwise_adagrad", "adagrad")])
def test_adagrads_state_is_not_taken_for_rowwise_adagrads(cpu, tmp_path, of, other):
    sptx.Table(5, 4, of, device=cpu).save(tmp_path / "rows.npy")
    with pytest.raises(sptx.Error, match=r"sum\[%d\].* want .*sum\[%d\]" % ((4, 1) if of == "adagrad" else (1, 4))):
        sptx.Table.load(tmp_path / "rows.npy", other, device=cpu)


def test_a_prefetch_changes_nothing(table):
    ids = numpy.array([1, 5])
    table.prefetch(ids)
    table.store([5], floats(1, 3))
    assert table.fetch(ids).tolist() == [[1, 1.25, 1.5], [1, 1, 1]]


def test_values_that_are_not_contiguous_are_copied(table):
    wide = numpy.arange(24, dtype=numpy.float32).reshape(2, 12)[:, ::4]
    table.store([0, 1], wide)
    assert numpy.array_equal(table.fetch([0, 1]), wide)
    table.store([0, 1], numpy.asfortranarray(wide + 1))
    assert numpy.array_equal(table.fetch([0, 1]), wide + 1)
    table.store([0, 1], numpy.broadcast_to(numpy.float32(3), (2, 3)))
    assert table.fetch([0, 1]).tolist() == [[3, 3, 3]] * 2


@pytest.mark.parametrize("ids, kind, said", [
    ([10], IndexError, "ids[0] = 10 is no row of a table of 10"),
    ([1, -1], IndexError, "ids[1] = -1"),
    ([1 << 32], IndexError, "4294967296"),
    ([1 << 63], IndexError, "9223372036854775808"),
    ([1 << 64], TypeError, "64 bits"),
    ([1.0], TypeError, "float64"),
    ([float("nan")], TypeError, "float64"),
    (numpy.array([numpy.nan], "f4"), TypeError, "float32"),
    ([True], TypeError, "bool"),
    ([1, True], TypeError, "bool"),
    (True, TypeError, "bool"),
    (numpy.array([True]), TypeError, "bool"),
    (numpy.array([1j]), TypeError, "complex128"),
    (numpy.array(["1"]), TypeError, "<U1"),
    (numpy.array([1, None]), TypeError, "object"),
    (numpy.array([(1,)], [("a", "i4")]), TypeError, "i4"),
    (numpy.ma.masked_array([1, 2], [0, 1]), TypeError, "masked"),
    ("12", TypeError, "str"),
    (b"12", TypeError, "bytes"),
    (None, TypeError, "NoneType"),
    ({1: 2}, TypeError, "dict"),
    ({1}, TypeError, "set"),
    (object(), TypeError, "object"),
    ([[1], [2, 3]], ValueError, "no array"),
])
def test_ids_that_are_none_are_named(table, ids, kind, said):
    before = table.weights.copy()
    values = floats(*numpy.asarray(ids, object).shape, 3)
    for call in (table.fetch, table.prefetch, lambda ids: table.update(ids, values), lambda ids: table.store(ids, values)):
        with pytest.raises(kind) as error:
            call(ids)
        assert said in str(error.value) and str(error.value).startswith("ids")
    assert numpy.array_equal(before, table.weights)


@pytest.mark.parametrize("count", [1, 7, 1 << 17, (1 << 17) + 1])  # beyond 2^17 ids, threads share the work
@pytest.mark.parametrize("dtype, wrong", [("i8", [10, -1, 1 << 31, 1 << 32, -1 << 63, (1 << 63) - 1]),
                                          ("i4", [10, -1, -1 << 31, (1 << 31) - 1])])
def test_of_many_ids_the_wrong_one_is_named(table, count, dtype, wrong):
    ids = numpy.arange(count).astype(dtype) % 10
    assert numpy.array_equal(table.fetch(ids), known_rows(10, 3)[ids])
    for place in {0, count // 2, count - 1}:
        for number in wrong:
            ids[place] = number
            with pytest.raises(IndexError, match=r"^ids\[%d\] = %d is no row" % (place, number)):
                table.fetch(ids)
            ids[place] = place % 10


@pytest.mark.parametrize("values, kind, said", [
    (floats(1, 3), ValueError, "(1, 3), wanted (2, 3)"),
    (floats(2, 4), ValueError, "(2, 4)"),
    (floats(6), ValueError, "(6,)"),
    (numpy.ones((2, 3)), TypeError, "float64"),
    (numpy.ones((2, 3), "i4"), TypeError, "int32"),
    ([["a"] * 3] * 2, TypeError, "<U1"),
    (None, TypeError, "NoneType"),
    ([[1, 2], [3]], ValueError, "no array"),
    ([[True] * 3] * 2, TypeError, "bool"),
])
def test_values_that_do_not_fit_are_named(table, values, kind, said):
    before = table.weights.copy()
    for call, what in ((table.update, "gradients"), (table.store, "values")):
        with pytest.raises(kind) as error:
            call([1, 2], values)
        assert said in str(error.value) and str(error.value).startswith(what)
    assert numpy.array_equal(before, table.weights)


@pytest.mark.parametrize("call", ["update", "store"])
def test_values_of_half_precision_are_widened(cpu, call):
    tables = [sptx.Table(10, 3, "adam", device=cpu) for _ in range(2)]
    values = floats(4, 3).astype(numpy.float16)
    for table, given in zip(tables, (values, values.astype(numpy.float32))):
        getattr(table, call)([1, 2, 1, 9], given)
    assert numpy.array_equal(*(table.weights for table in tables))


def test_rows_come_in_the_type_that_is_asked_for(table):
    rows = table.fetch([1, 2])
    for dtype in "float16", numpy.float16, numpy.dtype("float16"):
        found = table.fetch([1, 2], dtype=dtype)
        assert found.dtype == numpy.float16 and numpy.array_equal(found, rows.astype(numpy.float16))
    assert table.fetch([1, 2], dtype="float32").dtype == numpy.float32
    for dtype, kind, said in ("float64", ValueError, "none of float32"), (int, ValueError, "none of"), ("bfloat16", TypeError, "PyTorch"):
        with pytest.raises(kind, match=said):
            table.fetch([1, 2], dtype=dtype)
    with pytest.raises(ValueError, match="give one of them"):
        table.fetch([1, 2], numpy.zeros((2, 3), numpy.float32), "float16")


def read_only():
    array = numpy.zeros((2, 3), numpy.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("out, kind, said", [
    (numpy.zeros((2, 4), "f4"), ValueError, "(2, 4)"),
    (numpy.zeros((2, 3)), TypeError, "float64"),
    (numpy.zeros((2, 3), ">f4"), TypeError, ">f4"),
    (numpy.zeros((2, 6), "f4")[:, ::2], ValueError, "contiguous"),
    (numpy.zeros((3, 2), "f4").T, ValueError, "contiguous"),
    (read_only(), ValueError, "read-only"),
    ([[0.0] * 3] * 2, TypeError, "list"),
    ("xy", TypeError, "str"),
])
def test_an_out_that_cannot_be_filled_is_refused(table, out, kind, said):
    with pytest.raises(kind) as error:
        table.fetch([1, 2], out=out)
    assert said in str(error.value) and str(error.value).startswith("out")


def test_values_may_be_lists(table):
    table.store([1], [[1, 2, 3]])
    table.update([1], [[1.0, 1.0, 1.0]])
    assert table.fetch([1]).tolist() == [[0, 1, 2]]


# ---- opening ----

@pytest.mark.parametrize("change, kind, said", [
    ({"rows": 0}, ValueError, "rows = 0"),
    ({"rows": -1}, ValueError, "rows = -1"),
    ({"rows": 1 << 32}, ValueError, "rows = 4294967296"),
    ({"rows": 1 << 65}, ValueError, "rows"),
    ({"rows": 2.0}, TypeError, "rows = 2.0"),
    ({"rows": "2"}, TypeError, "rows"),
    ({"rows": True}, TypeError, "rows"),
    ({"dim": 0}, ValueError, "dim = 0"),
    ({"dim": 4097}, ValueError, "dim = 4097"),
    ({"dim": None}, TypeError, "dim"),
    ({"optimizer": "adamm"}, ValueError, "adamm"),
    ({"optimizer": None}, TypeError, "None"),
    ({"lr": -1}, ValueError, "lr = -1"),
    ({"lr": float("nan")}, ValueError, "NaN"),
    ({"lr": "1"}, TypeError, "lr"),
    ({"lr": True}, TypeError, "lr"),
    ({"weights": "disk"}, ValueError, "disk"),
    ({"state": 1}, ValueError, "state = 1"),
    ({"seed": -1}, ValueError, "seed"),
    ({"seed": 1 << 32}, ValueError, "seed"),
    ({"init": "ones"}, ValueError, "ones"),
    ({"init": "zeros\0"}, ValueError, "NUL"),
    ({"init": 0}, TypeError, "init"),
    ({"init": "uniform 0 1e39"}, ValueError, "float32"),
    ({"device": "gpu"}, ValueError, "gpu"),
    ({"hot_rows": -1}, ValueError, "hot_rows"),
    ({"gpu_rows": -1}, ValueError, "gpu_rows"),
    ({"gpu_rows": 3, "hot_rows": 1}, ValueError, "neither with hot_rows"),
    ({"momentum": 2.0}, ValueError, "momentum = 2"),
    ({"momentum": "much"}, TypeError, "momentum"),
    ({"beta1": 0.9}, TypeError, "beta1"),
    ({"optimizer": "adam", "momentum": 0.9}, TypeError, "momentum"),
    ({"optimizer": "adam", "betas": 0.9}, TypeError, "betas"),
    ({"optimizer": "adam", "betas": (0.9, 1.0)}, ValueError, "beta2 = 1"),
    ({"optimizer": "adam", "amsgrad": 2}, TypeError, "amsgrad"),
    ({"optimizer": "none", "eps": 1.0}, TypeError, "eps"),
    ({"nesterov": True}, ValueError, "nesterov"),
    ({"clip": -1}, ValueError, "clip"),
    ({"unknown": 1}, TypeError, "unknown"),
    ({"weights": "file", "directory": "/nowhere/at/all"}, sptx.Error, "/nowhere"),
])
def test_options_that_are_wrong_are_named(cpu, change, kind, said):
    options = {"rows": 4, "dim": 2, "device": cpu}
    options.update(change)
    with pytest.raises(kind) as error:
        sptx.Table(**options)
    assert said in str(error.value)


def test_optimizers_have_pytorchs_options():
    from sptx import _library, _table
    assert {name: set(options) for name, options in _table.OPTIMIZERS.items()} == {
        "sgd": {"momentum", "nesterov", "weight_decay"},
        "adagrad": {"lr_decay", "weight_decay", "initial_accumulator", "eps"},
        "adadelta": {"rho", "eps", "weight_decay"},
        "rmsprop": {"alpha", "eps", "weight_decay", "momentum", "centered"},
        "adam": {"beta1", "beta2", "eps", "weight_decay", "amsgrad"},
        "adamw": {"beta1", "beta2", "eps", "weight_decay", "amsgrad"},
        "sparse_adam": {"beta1", "beta2", "eps"},
        "adamax": {"beta1", "beta2", "eps", "weight_decay"},
        "asgd": {"lambd", "alpha", "t0", "weight_decay"},
        "rprop": {"eta_minus", "eta_plus", "step_min", "step_max"},
        "rowwise_adagrad": {"initial_accumulator", "eps"},
        "ftrl": {"l1", "l2", "beta"},
        "rowwise_adam": {"beta1", "beta2", "eps"},
        "none": set()}
    every = set().union(*_table.OPTIMIZERS.values())
    assert every | {"lr", "clip", "count_rows"} == set(_library.NUMBERS + _library.LATER_NUMBERS + _library.FLAGS)
    assert set(sum(_table.PAIRS.values(), ())) | set(_table.ALIASES.values()) <= every


def test_every_option_of_every_optimizer_reaches_the_library(cpu):
    """The binding does not check the values of options. The library refuses a value past its bounds, and names the option."""
    from sptx._table import OPTIMIZERS
    for optimizer, options in OPTIMIZERS.items():
        for option in options:
            if option in ("nesterov", "centered", "amsgrad"):
                continue
            with pytest.raises(ValueError, match=option):
                sptx.Table(2, 2, optimizer, device=cpu, **{option: 1e30})


@pytest.mark.parametrize("optimizer, options, fields", [
    ("none", {}, ()), ("sgd", {}, ()), ("sgd", {"momentum": 0.9, "nesterov": True}, ("momentum_buffer",)),
    ("adagrad", {"initial_accumulator_value": 0.5}, ("sum",)), ("adadelta", {}, ("square_avg", "acc_delta")),
    ("rmsprop", {"momentum": 0.5, "centered": True}, ("square_avg", "momentum_buffer", "grad_avg")),
    ("adam", {"betas": (0.5, 0.6), "amsgrad": True}, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")),
    ("sparse-adam", {}, ("exp_avg", "exp_avg_sq")), ("adamax", {}, ("exp_avg", "exp_inf")),
    ("asgd", {}, ("ax",)), ("ftrl", {"l1": 0.5}, ("z", "n")), ("rowwise-adagrad", {"initial_accumulator_value": 0.5}, ("sum",)), ("rprop", {"etas": (0.4, 1.3), "step_sizes": (0.1, 2)}, ("prev", "step_size")),
])
def test_state_goes_by_pytorchs_names(cpu, optimizer, options, fields):
    table = sptx.Table(6, 5, optimizer, device=cpu, **options)
    assert table.fields == ("weights",) + fields and tuple(table.state) == fields
    for name, array in table.state.items():
        assert array.shape == (6, 1 if optimizer == "rowwise-adagrad" else 5)
        first = {"sum": 0.5, "step_size": table.lr}.get(name, 0)
        assert numpy.allclose(array, first)


@pytest.mark.parametrize("places", [("pinned", "pinned"), ("gpu", "pinned"), ("file", "pinned"), ("pinned", "file")])
def test_the_place_changes_no_value(cpu, tmp_path, places):
    table = sptx.Table(50, 4, "adam", device=cpu, weights=places[0], state=places[1], directory=tmp_path)
    plain = sptx.Table(50, 4, "adam", device=cpu)
    for each in (table, plain):
        each.update([1, 49, 1], floats(3, 4))
    assert numpy.array_equal(table.weights, plain.weights)
    assert numpy.array_equal(table.state["exp_avg"], plain.state["exp_avg"])


def test_the_seed_and_the_law_make_the_first_values(cpu):
    one, same, other = (sptx.Table(20, 4, device=cpu, seed=seed, init="uniform -1 1").weights for seed in (5, 5, 6))
    assert numpy.array_equal(one, same) and not numpy.array_equal(one, other)
    assert numpy.abs(one).max() <= 1 and not sptx.Table(3, 3, device=cpu, init="zeros").weights.any()


def test_a_table_says_what_it_is(cpu):
    table = sptx.Table(20, 4, "adamax", device=cpu)
    assert repr(table) == "sptx.Table(20 x 4, adamax, lr=0.002, weights=pinned, state=pinned, on cpu)"
    assert (table.rows, table.dim, table.shape, len(table)) == (20, 4, (20, 4), 20)
    assert (table.device, table.optimizer, table.lr, table.steps, table.closed) == ("cpu", "adamax", 0.002, 0, False)
    assert table.context is cpu and repr(cpu) == "sptx.Context(cpu)"
    table.lr, table.steps = 0.5, 7
    assert (table.lr, table.steps) == (0.5, 7)
    for wrong, kind in ((-1, ValueError), (float("nan"), ValueError), ("1", TypeError), (True, TypeError)):
        with pytest.raises(kind):
            table.lr = wrong
    for wrong, kind in ((-1, ValueError), (1.5, TypeError)):
        with pytest.raises(kind):
            table.steps = wrong
    table.close()
    assert repr(table) == "sptx.Table(closed)" and table.closed


def test_a_rate_holds_from_then_on(table):
    table.lr = 0.5
    table.update([1], floats(1, 3))
    assert numpy.array_equal(table.fetch(1), known_rows(10, 3)[1] - 0.5)


def test_a_table_without_update_says_so(cpu):
    with pytest.raises(ValueError, match="none"):
        sptx.Table(3, 3, "none", device=cpu).update([1], floats(1, 3))


def test_rows_of_zeros_count_before_they_are_written():
    """Opening the tables takes no memory. A second table of more than half of the free memory is refused nevertheless."""
    context, rows = sptx.Context("cpu", threads=1), 1000
    opened = [sptx.Table(rows, 1024, device=context, init="zeros")]
    with pytest.raises(sptx.Error, match="not enough memory"):
        while True:
            opened[0].close()
            rows, opened[0] = 2 * rows, sptx.Table(2 * rows, 1024, device=context, init="zeros")
    opened[0] = sptx.Table(rows, 1024, device=context, init="zeros")
    assert not opened[0].fetch([0, rows - 1]).any()
    with pytest.raises(sptx.Error, match="not enough memory"):
        sptx.Table(rows, 1024, device=context, init="zeros")
    opened[0].close()
    sptx.Table(rows, 1024, device=context, init="zeros").close()


def test_what_cannot_fit_is_refused(cpu):
    with pytest.raises(sptx.OutOfMemory, match="are free"):
        sptx.Table(4294967294, 4096, device=cpu)
    assert issubclass(sptx.OutOfMemory, MemoryError) and issubclass(sptx.OutOfMemory, sptx.Error)


def test_automatic_is_what_there_is():
    table = sptx.Table(3, 3)
    assert table.device == "cpu" or table.device.startswith("cuda:")
    assert sptx.Table(3, 3).context is table.context  # the context that the process shares


def test_a_gpu_that_is_not_there_is_an_error_with_the_reason():
    try:
        sptx.Context("cuda")
    except sptx.Error as error:
        assert "cuda" in str(error) and len(str(error)) > 20
    for wrong in ("cuda:x", "cuda1", "", "\udcff"):
        with pytest.raises((ValueError, UnicodeEncodeError)):
            sptx.Context(wrong)


# ---- the end ----

def test_a_closed_table_says_so(cpu):
    table = sptx.Table(4, 2, device=cpu)
    with table as inside:
        assert inside is table
    table.close()
    for call in (lambda: table.fetch([1]), lambda: table.prefetch([1]), lambda: table.update([1], floats(1, 2)),
                 lambda: table.store([1], floats(1, 2)), lambda: table.weights, lambda: table.state and None,
                 lambda: table.save("x"), lambda: table.lr, lambda: table.steps, table.wait, table.__enter__,
                 lambda: table.view("weights")):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_tables_are_not_copied(table, cpu):
    for call in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="save"):
            call(table)
        with pytest.raises(TypeError, match="process"):
            call(cpu)


def test_numpy_alone_is_needed(tmp_path):
    """Only the standard library and NumPy are imported, and help() says how to use the package."""
    code = """if True:
        import sys, sptx
        wanted = {'torch', 'cupy', 'jax', 'gensim', 'pyarrow', 'scipy', 'pkg_resources'} & set(sys.modules)
        assert not wanted, wanted
        sptx.Table(3, 3, device='cpu').fetch([1])
        text = ''.join(str(getattr(item, '__doc__')) for item in vars(sptx.Table).values()) + sptx.Table.__doc__
        for word in ('fetch', 'IndexError', '[*ids.shape, dim]', 'sptx.Error', 'Threads', 'Streams'):
            assert word in text, word
        assert not [name for name, item in vars(sptx.Table).items() if name[0] != '_' and not item.__doc__]
    """
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""}
                   if "SPTX_LIBRARY" not in os.environ else None)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_gradients_that_are_not_finite_are_refused(cpu, wrong):
    gradients = numpy.ones((3, 4), numpy.float32)
    gradients[1, 2] = wrong
    for opened, options in ((True, {}), (False, {"check_finite": True})):
        table = sptx.Table(10, 4, "adagrad", device=cpu, check_finite=opened)
        before = table.fetch(range(10))
        with pytest.raises(ValueError, match=r"gradients\[1(\]\[|, )2\] is -?(nan|inf): the table is unchanged"):
            table.update([1, 2, 1], gradients, **options)
        assert (table.fetch(range(10)) == before).all() and table.steps == 0
        table.update([1, 2, 1], numpy.ones((3, 4), numpy.float32), **options)
        assert table.steps == 1
    plain = sptx.Table(10, 4, "adagrad", device=cpu)
    plain.update([1, 2, 1], gradients)
    assert not numpy.isfinite(plain.fetch([2])[0, 2])


@pytest.mark.parametrize("dtype, state_dtype", [("int8", "float32"), ("bfloat16", "float32"), ("float32", "bfloat16"), ("bfloat16", "bfloat16")])
def test_load_takes_the_dtype_that_is_not_given_from_the_file(cpu, tmp_path, dtype, state_dtype):
    table = sptx.Table(5, 4, "adagrad", dtype=dtype, state_dtype=state_dtype, device=cpu)
    table.update([1], numpy.ones((1, 4), numpy.float32))
    table.save(tmp_path / "rows.npy")
    for given in {}, {"dtype": dtype}, {"state_dtype": state_dtype}:
        loaded = sptx.Table.load(tmp_path / "rows.npy", "adagrad", device=cpu, **given)
        assert loaded.dtype == dtype and (loaded.fetch(range(5)) == table.fetch(range(5))).all()
