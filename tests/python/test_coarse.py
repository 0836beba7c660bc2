"""Tests tables of int8 and float8: rows are passed and returned as float32, and stored as codes with one scale for each row."""

import numpy
import pytest

import sptx
from sptx import _fingerprint

KINDS = ["int8", "float8"]
IDS = numpy.arange(40)


def floats(*shape):
    """Returns normally distributed values, always the same for the same shape."""
    return numpy.random.default_rng(sum(shape)).standard_normal(shape).astype(numpy.float32)


def values_of_codes(kind):
    """The values of the 256 codes, in float64: float8 by the formula of the OCP's specification of E4M3."""
    codes = numpy.arange(256, dtype=numpy.uint8)
    if kind == "int8":
        return codes.view(numpy.int8).astype(numpy.float64)
    sign, exponent, fraction = numpy.where(codes >> 7, -1.0, 1.0), (codes >> 3 & 15).astype(int), (codes & 7) / 8.0
    values = sign * numpy.where(exponent, 2.0 ** (exponent - 7) * (1 + fraction), 2.0 ** -6 * fraction)
    values[codes & 127 == 127] = numpy.nan
    return values


def opened(cpu, kind, columns=19, optimizer="rowwise_adagrad", **options):
    return sptx.Table(40, columns, optimizer, device=cpu, dtype=kind, lr=0.05, **options)


def saved(table, tmp_path, name="rows.npy"):
    table.save(tmp_path / name)
    return (tmp_path / name).read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_a_code_times_the_rows_scale(cpu, tmp_path, kind):
    table = opened(cpu, kind, optimizer="adam")
    table.store(IDS[3:], (floats(37, 19) * 10.0 ** (IDS[3:, None] - 20)).astype(numpy.float32))
    table.update([1, 2, 2], floats(3, 19))
    rows, largest = table.fetch(IDS), {"int8": 127, "float8": 448}[kind]
    assert table.dtype == kind and kind in repr(table) and rows.dtype == numpy.float32
    saved(table, tmp_path)
    file = numpy.load(tmp_path / "rows.npy")
    assert file.dtype.names == ("weights_" + kind, "exp_avg", "exp_avg_sq", "updates", "scale") and file["exp_avg"].dtype == numpy.float32
    codes, scale = file["weights_" + kind], file["scale"]
    assert codes.dtype == (numpy.int8 if kind == "int8" else numpy.uint8) and codes.shape == (40, 19)
    values = values_of_codes(kind)[codes.view(numpy.uint8)]
    assert (rows == (values * scale).astype(numpy.float32)).all()
    assert (abs(values).max(1) == largest).all()  # nothing saturates, and no code is left unused


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_stored_is_at_most_a_step_away_and_right_on_average(cpu, kind):
    table, values = opened(cpu, kind), floats(40, 19)
    scale = abs(values).max(1, keepdims=True) / (127 if kind == "int8" else 448)
    step = scale if kind == "int8" else numpy.maximum(scale * 2.0 ** -9, 2.0 ** (numpy.floor(numpy.log2(abs(values) / scale)) - 3) * scale)
    total = numpy.zeros((40, 19))
    for _ in range(400):
        table.store(IDS, values)
        rows = table.fetch(IDS)
        assert (abs(rows - values) < step * 1.001).all()
        total += rows
    assert (abs(total / 400 - values) < step * 0.15).all()  # six standard deviations
    assert abs((total / 400 - values) / step).mean() < 0.03


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_stored_as_they_were_fetched_keep_their_bytes(cpu, tmp_path, kind):
    table = opened(cpu, kind, 130, init="normal 0 3")
    before = saved(table, tmp_path)
    for _ in range(50):
        table.store(IDS, table.fetch(IDS))
    assert saved(table, tmp_path) == before


@pytest.mark.parametrize("kind", KINDS)
def test_small_changes_are_not_lost(cpu, kind):
    """Two neighbouring codes differ by 1 / 127 here. 1,000 changes of a hundredth of this difference must add up to ten codes."""
    table, values = opened(cpu, kind, optimizer="sgd"), numpy.full((40, 19), 0.2, numpy.float32)
    values[:, 0] = 1
    table.lr = 1.0
    table.store(IDS, values)
    change = numpy.full((40, 19), -1e-4, numpy.float32)
    change[:, 0] = 0
    for _ in range(1000):
        table.update(IDS, change)
    assert table.fetch(IDS)[:, 1:].mean() == pytest.approx(0.3, abs=3e-3) and (table.fetch(IDS)[:, 0] == 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_threads_and_calls_change_no_byte(tmp_path, kind):
    for columns in list(range(1, 131, 10)) + [33, 47, 130]:
        files = []
        for threads in (1, 3):
            context = sptx.Context("cpu", threads=threads)
            table = sptx.Table(700, columns, "rowwise_adam", device=context, dtype=kind, lr=0.05, seed=columns)
            draw = numpy.random.default_rng(columns)
            for _ in range(3):
                ids = draw.zipf(1.2, 900) % 700
                table.update(ids, draw.standard_normal((900, columns)).astype(numpy.float32))
                table.store(ids[:5], draw.standard_normal((5, columns)).astype(numpy.float32))
            files.append(saved(table, tmp_path))
            assert numpy.isfinite(table.fetch(numpy.arange(700))).all()
        assert files[0] == files[1], columns


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamax", "rprop", "rowwise_adagrad", "rowwise_adam"])
def test_a_loaded_table_goes_on_as_the_saved_one(cpu, tmp_path, kind, optimizer):
    table = opened(cpu, kind, optimizer=optimizer)
    table.update(IDS, floats(40, 19))
    before = saved(table, tmp_path)
    loaded = sptx.Table.load(tmp_path / "rows.npy", optimizer, lr=0.05, device=cpu)
    assert loaded.dtype == kind and saved(loaded, tmp_path, "again.npy") == before
    loaded.steps = table.steps
    for one in (table, loaded):
        one.update([3, 1, 3], floats(3, 19))
    assert saved(table, tmp_path) == saved(loaded, tmp_path, "again.npy")
    table.restore(tmp_path / "again.npy")
    fixed = sptx.Table.load(tmp_path / "again.npy", "none", device=cpu)
    assert fixed.dtype == kind and (fixed.fetch(IDS) == table.fetch(IDS)).all()


def test_a_file_of_another_type_is_refused(cpu, tmp_path):
    for have in ["float32", "bfloat16"] + KINDS:
        saved(opened(cpu, have, optimizer="sgd"), tmp_path)
        for want in ["float32", "bfloat16"] + KINDS:
            if want == have:
                continue
            table = opened(cpu, want, optimizer="sgd")
            kept = table.fetch(IDS)
            for load in (lambda: table.restore(tmp_path / "rows.npy"), lambda: sptx.Table.load(tmp_path / "rows.npy", "sgd", dtype=want, device=cpu)):
                with pytest.raises(sptx.Error, match=r"has the fields weights\[19\].* want weights\[19\]") as said:
                    load()
                has, wants = str(said.value).split(" want ")
                assert ("(%s)" % have in has) == (have != "float32") and ("(%s)" % want in wants) == (want != "float32")
            assert (table.fetch(IDS) == kept).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_with_a_nan_is_nan_until_it_is_stored(cpu, tmp_path, kind):
    for bad in (numpy.nan, numpy.inf):
        table = opened(cpu, kind, optimizer="sgd")
        gradients = numpy.zeros((2, 19), numpy.float32)
        gradients[1, 4] = bad
        kept = table.fetch(IDS)
        with pytest.raises(ValueError, match=r"gradients\[1, 4\] is (nan|inf)"):
            table.update([5, 7], gradients, check_finite=True)
        assert (table.fetch(IDS) == kept).all()
        table.update([5, 7], gradients)
        rows = table.fetch(IDS)
        assert numpy.isnan(rows[7]).all() and (rows[IDS != 7] == kept[IDS != 7]).all()
        table.update([7], numpy.ones((1, 19), numpy.float32))
        assert numpy.isnan(table.fetch(7)).all()
        with pytest.raises(sptx.Error, match="row 7 .* NaN"):
            table.save(tmp_path / "rows.npy")
        table.store(7, floats(19))
        assert numpy.isfinite(table.fetch(7)).all() and saved(table, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_smallest_and_the_largest_rows(cpu, tmp_path, kind):
    table, most = opened(cpu, kind, optimizer="sgd", init="zeros"), numpy.finfo(numpy.float32).max
    assert not table.fetch(IDS).any() and set(saved(table, tmp_path)[-40 * 23:]) == {0}  # so opening touches no memory
    values = numpy.zeros((3, 19), numpy.float32)
    values[0, 3], values[1, :2], values[2, 5] = 1e-32, (most, -most), 1e-30
    table.store([0, 1, 2], values)
    rows = table.fetch([0, 1, 2])
    assert not rows[0].any() and rows[2, 5] == pytest.approx(1e-30, rel=1e-6)
    assert numpy.isfinite(rows).all() and rows[1, :2] == pytest.approx(values[1, :2], rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_other_places_and_types_of_state(cpu, tmp_path, kind):
    rows = []
    for places in (("pinned", "pinned"), ("file", "file"), ("pinned", "file"), ("gpu", "pinned")):
        table = opened(cpu, kind, optimizer="adam", weights=places[0], state=places[1], directory=tmp_path, state_dtype="bfloat16")
        table.update([1, 2, 2], floats(3, 19))
        state = table.state
        assert isinstance(state["exp_avg"], sptx.HalfRows) and numpy.asarray(state["exp_avg"])[2].any()
        table.update([4], state["exp_avg"][2:3])  # a part of the table's memory
        rows.append(table.fetch(IDS))
    assert all((one == rows[0]).all() for one in rows)
    with pytest.raises(ValueError, match="no view: fetch rows"):
        table.weights
    with pytest.raises(ValueError, match="state_dtype"):
        opened(cpu, kind, state_dtype=kind)
    with pytest.raises(ValueError, match="no field 'scale'"):
        table.view("scale")


@pytest.mark.parametrize("kind", ["float32", "bfloat16"] + KINDS)
def test_a_file_has_the_fingerprint_of_its_table(cpu, tmp_path, kind):
    table = opened(cpu, kind, optimizer="adam")
    table.update([1, 2, 2], floats(3, 19))
    saved(table, tmp_path)
    found = _fingerprint.of_table(table)
    assert set(found) == set(table.fields) and _fingerprint.of_file(tmp_path / "rows.npy", found) == found


def test_files_of_codes_that_are_damaged(cpu, tmp_path):
    for kind in KINDS:
        data = bytearray(saved(opened(cpu, kind, optimizer="sgd"), tmp_path))
        (tmp_path / "short.npy").write_bytes(data[:-1])
        with pytest.raises(sptx.Error, match="bytes"):
            sptx.Table.load(tmp_path / "short.npy", "sgd", device=cpu)
        other = bytes(data).replace(b"weights_" + kind.encode(), b"weights_" + b"x" * len(kind))
        (tmp_path / "other.npy").write_bytes(other)
        with pytest.raises(sptx.Error, match="no table"):
            sptx.Table.load(tmp_path / "other.npy", "sgd", device=cpu)


@pytest.mark.parametrize("optimizer, rate", [("rowwise_adagrad", 0.3), ("rowwise_adam", 0.02)])
def test_a_model_learns_nearly_as_well(cpu, optimizer, rate):
    """Products of users' and items' rows learn a matrix of rank 8. The remaining error is compared with that of float32."""
    draw = numpy.random.default_rng(5)
    wanted = draw.standard_normal((300, 8)) @ draw.standard_normal((8, 200)) / 8 ** 0.5
    left = {}
    for kind in ["float32"] + KINDS:
        users, items = (sptx.Table(rows, 32, optimizer, lr=rate, dtype=kind, device=cpu, seed=rows, init="normal 0 0.3") for rows in (300, 200))
        for _ in range(300):
            u, i = draw.integers(0, 300, 2000), draw.integers(0, 200, 2000)
            a, b = users.fetch(u), items.fetch(i)
            off = ((a * b).sum(1) - wanted[u, i]).astype(numpy.float32)[:, None]
            users.update(u, off * b / 100)
            items.update(i, off * a / 100)
        left[kind] = ((users.fetch(numpy.arange(300)) @ items.fetch(numpy.arange(200)).T - wanted) ** 2).mean()
    assert (wanted ** 2).mean() > 0.5 and left["float32"] < 2e-3 and left["int8"] < 3e-3 and left["float8"] < 0.015
