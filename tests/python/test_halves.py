"""bfloat16 tables and runs: rows are passed and returned as float32, and take half the memory."""

import numpy
import pytest

import sptx
from conftest import floats

IDS = numpy.arange(40)


def halves(cpu, **options):
    return sptx.Table(40, 19, options.pop("optimizer", "adam"), device=cpu, dtype="bfloat16", lr=0.05, **options)


def test_what_is_fetched_is_what_is_kept(cpu):
    table = halves(cpu)
    table.update([1, 2, 2], floats(3, 19))
    rows = table.fetch(IDS)
    assert table.dtype == "bfloat16" and "bfloat16" in repr(table) and rows.dtype == numpy.float32
    weights = table.weights
    assert isinstance(weights, sptx.HalfRows) and weights.shape == (40, 19) and len(weights) == 40 and weights.size == 760
    assert (numpy.asarray(weights) == rows).all() and (numpy.stack(list(weights)) == rows).all()
    assert (weights[3] == rows[3]).all() and (weights[[5, 1]] == rows[[5, 1]]).all() and weights[2, 7] == rows[2, 7]
    assert (weights[10:20, 3] == rows[10:20, 3]).all() and numpy.asarray(weights, numpy.float64).dtype == numpy.float64
    assert weights.bits.dtype == numpy.uint16 and ((weights.bits.astype(numpy.uint32) << 16).view(numpy.float32) == rows).all()
    weights.bits[3, 1] = 0x3F80
    assert table.fetch(3)[1] == 1
    with pytest.raises(TypeError, match="store"):
        weights[3] = 0
    if numpy.__version__ >= "2":  # copy=False meant "if needed" before
        with pytest.raises(ValueError, match="copy"):
            numpy.array(weights, copy=False)


def test_small_changes_are_not_lost(cpu):
    """0.1 plus 1,000 times 1e-4 is 0.2. If sums were rounded to the nearest bfloat16, it would stay 0.1."""
    table = sptx.Table(40, 19, "sgd", device=cpu, dtype="bfloat16", lr=1.0)
    table.store(IDS, numpy.full((40, 19), 0.1, numpy.float32))
    for _ in range(1000):
        table.update(IDS, numpy.full((40, 19), -1e-4, numpy.float32))
    assert table.fetch(IDS).mean() == pytest.approx(0.2, abs=2e-3)
    for _ in range(100):
        table.store(IDS, table.fetch(IDS) + numpy.float32(1e-4))
    assert table.fetch(IDS).mean() == pytest.approx(0.21, abs=2e-3)


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adadelta", "rmsprop", "adam", "adamw", "sparse_adam", "adamax", "asgd",
                                       "rprop", "rowwise_adagrad", "rowwise_adam"])
@pytest.mark.parametrize("state_dtype", [None, "float32"])
def test_the_same_calls_give_the_same_bytes(cpu, optimizer, state_dtype):
    tables = [halves(cpu, optimizer=optimizer, state_dtype=state_dtype, seed=seed) for seed in (1, 1, 2)]
    exact = sptx.Table(40, 19, optimizer, device=cpu, lr=0.05)
    for one in tables + [exact]:
        one.store(IDS, numpy.linspace(-1, 1, 760, dtype=numpy.float32).reshape(40, 19).round(1))
        for step in range(3):
            one.update(IDS[::-1 - step], floats(len(IDS[::-1 - step]), 19) / 500)
    first, again, other = (one.fetch(IDS) for one in tables)
    assert (first == again).all() and (first != other).any()
    assert abs(first - exact.fetch(IDS)).max() < 0.05
    for field, rows in tables[0].state.items():
        assert isinstance(rows, sptx.HalfRows if state_dtype is None and rows.shape[1] == 19 else sptx.Rows)
        assert (numpy.asarray(rows) == numpy.asarray(tables[1].state[field])).all()


def test_a_file_brings_its_dtypes(cpu, tmp_path):
    path = tmp_path / "table.npy"
    for state_dtype in None, "float32":
        table = halves(cpu, state_dtype=state_dtype)
        table.update(IDS, floats(40, 19))
        table.save(path)
        assert numpy.load(path)["weights_bfloat16"].dtype == numpy.uint16
        loaded = sptx.Table.load(path, "adam", device=cpu)
        assert (loaded.fetch(IDS) == table.fetch(IDS)).all()
        for field in "exp_avg", "exp_avg_sq":
            assert type(loaded.state[field]) is type(table.state[field])
            assert (numpy.asarray(loaded.state[field]) == numpy.asarray(table.state[field])).all()
        fixed = sptx.Table.load(path, "none", device=cpu, dtype="float32")
        assert fixed.dtype == "float32" and (fixed.fetch(IDS) == table.fetch(IDS)).all()
        with pytest.raises(sptx.Error, match="bfloat16"):
            sptx.Table.load(path, "adam", device=cpu, dtype="float32")


def test_what_is_no_dtype(cpu):
    for wrong in "float16", 2, None:
        with pytest.raises(ValueError, match="float32, bfloat16"):
            sptx.Table(1, 1, device=cpu, dtype=wrong)
    with pytest.raises(ValueError, match="state_dtype"):
        sptx.Table(1, 1, device=cpu, state_dtype="half")


def test_dlpack_says_bfloat16(cpu):
    from sptx._dlpack import tensor_of
    weights = halves(cpu).weights
    capsule = weights.__dlpack__()
    tensor = tensor_of(capsule)
    assert (tensor.code, tensor.bits, tensor.lanes) == (4, 16, 1) and weights.__dlpack_device__() == (1, 0)
    assert [tensor.shape[i] for i in range(tensor.ndim)] == [40, 19]


@pytest.mark.torch
def test_torch_takes_bfloat16(cpu):
    torch = pytest.importorskip("torch")
    table = halves(cpu)
    rows = torch.from_dlpack(table.weights)
    assert rows.dtype == torch.bfloat16 and (rows.float().numpy() == table.fetch(IDS)).all()
    ids = torch.tensor([1, 5])
    assert table.fetch(ids).dtype == torch.float32


def test_ml_dtypes(cpu):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    table = halves(cpu)
    assert table.weights.bfloat16.dtype == ml_dtypes.bfloat16
    assert (table.weights.bfloat16.astype(numpy.float32) == table.fetch(IDS)).all()


def test_a_run_of_bfloat16(tmp_path):
    (tmp_path / "lists.txt").write_text("".join("list%d %s\n" % (i, " ".join("i%d" % ((i * j) % 37) for j in range(1, 9)))
                                                for i in range(60)))
    run = sptx.train(None, {"corpus.path": str(tmp_path / "lists.txt"), "corpus.format": "lists", "run.dir": str(tmp_path / "run"),
                      "model.dim": 19, "model.precision": "bfloat16", "train.epochs": 2}, device="cpu")
    context, target = run.context, run.target
    assert isinstance(context, sptx.HalfRows) and (numpy.asarray(context) == run.vectors()).all()
    assert target.first == len(run) and (target[target.first] == numpy.asarray(target)[0]).all()
    with pytest.raises(IndexError):
        target[0]
    assert len(run.nearest(run.words[0], k=3)) == 3
