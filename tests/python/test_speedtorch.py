"""Tests SpeedTorch's names on the CPU. They are compared with plain tensors, with which rows are exchanged in the same way."""

import errno
import os
import subprocess
import sys
import warnings

import numpy
import pytest
import torch

import sptx
import sptx.speedtorch as SpeedTorch
from conftest import known_rows

pytestmark = pytest.mark.torch

TOTAL, DIM = 40, 6
MODELS = [SpeedTorch.ModelFactory, lambda *a: SpeedTorch.ModelFactory(*a, CPUPinn=True), SpeedTorch.GPUPytorchModelFactory,
          SpeedTorch.CPUPytorchModelFactory, SpeedTorch.PytorchModelFactory,
          lambda *a: SpeedTorch.PytorchModelFactory(*a, deviceType="cpu", pinType=True), SpeedTorch.ModelFactoryMM]


class SkipGram(torch.nn.Module):
    def __init__(self, targets, contexts, sparse=False):
        super().__init__()
        self.u_embeddings = torch.nn.Embedding(targets, DIM, sparse=sparse)
        self.v_embeddings = torch.nn.Embedding(contexts, DIM, sparse=sparse)

    def forward(self, u, p, n):
        context, target = self.v_embeddings(torch.cat([p, n], 1)), self.u_embeddings(u)
        scores = torch.bmm(context, target.transpose(1, 2)).squeeze(2)
        return -(torch.nn.functional.logsigmoid(scores[:, :p.shape[1]]).sum()
                 + torch.nn.functional.logsigmoid(-scores[:, p.shape[1]:]).sum())


@pytest.fixture(autouse=True)
def seeded(tmp_path, monkeypatch):
    torch.manual_seed(3)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sptx.speedtorch._models.Switcher, "_device", "cpu")  # on the CPU even if there is a GPU


def variable(rows=4):
    return torch.nn.Embedding(rows, DIM)


# ---- model factories ----

@pytest.mark.parametrize("make", MODELS)
def test_rows_take_turns_as_the_weight(make):
    emb = variable()
    switcher = make(emb, TOTAL, DIM)
    switcher.uniformDistributionInit(-1, 1)
    before = switcher.getNumpyVersion()
    assert before.shape == (TOTAL, DIM) and numpy.abs(before).max() <= 1 and before.std() > 0.4
    ids, more = numpy.array([[3, 9], [30, 1]]), numpy.array([[5], [7]])
    switcher.beforeForwardPass(ids)
    assert numpy.array_equal(emb.weight.detach().numpy(), before[[3, 9, 30, 1]])
    switcher.beforeForwardPass(ids, more)
    assert numpy.array_equal(emb.weight.detach().numpy(), before[[3, 9, 30, 1, 5, 7]]) and emb.weight.requires_grad
    emb.weight.data += 1
    switcher.afterOptimizerStep(ids, more)
    before[[3, 9, 30, 1, 5, 7]] += 1
    assert numpy.array_equal(switcher.getNumpyVersion(), before)
    assert numpy.array_equal(switcher.getTorchVar().numpy(), before) and numpy.array_equal(switcher.CUPYcorpus, before)


@pytest.mark.parametrize("make", MODELS)
def test_first_values(make):
    switcher = make(variable(), 2000, DIM)
    switcher.zerosInit()
    assert not switcher.getNumpyVersion().any()
    switcher.normalDistributionInit(2, 0.5)
    values = switcher.getNumpyVersion()
    assert values.mean() == pytest.approx(2, abs=0.05) and values.std() == pytest.approx(0.5, abs=0.05)
    other = make(variable(), 2000, DIM)
    other.normalDistributionInit(2, 0.5)
    assert not numpy.array_equal(values, other.getNumpyVersion())  # two collections get different random rows
    torch.manual_seed(7)
    switcher.normalDistributionInit(2, 0.5)
    torch.manual_seed(7)
    other.normalDistributionInit(2, 0.5)
    assert numpy.array_equal(switcher.getNumpyVersion(), other.getNumpyVersion())
    switcher.customInit(torch.nn.init.constant_, 3)
    assert (switcher.getNumpyVersion() == 3).all()


def test_indexes_of_a_batch():
    switcher = SpeedTorch.ModelFactory(variable(), TOTAL, DIM)
    positives, negatives = switcher.variableTransformer(3, 2, 4)
    assert positives.tolist() == [[0, 1], [2, 3], [4, 5]] and negatives.shape == (3, 4) and negatives[0, 0] == 6
    assert switcher.variableTransformer(3, 2).tolist() == positives.tolist()
    switcher.zerosInit()
    for ids in ([1, 2], torch.tensor([[1], [2]]), numpy.array([1, 2], "u1"), torch.tensor([1, 2], dtype=torch.int32)):
        switcher.beforeForwardPass(ids)
        switcher.beforeForwardPass(ids, numpy.array([3]))
    for ids, kind in ((numpy.array([TOTAL]), IndexError), (numpy.array([-1]), IndexError), (numpy.array([0.5]), TypeError)):
        with pytest.raises(kind):
            switcher.beforeForwardPass(ids)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", torch.float, torch.double, numpy.float32])
def test_other_types(dtype):
    emb = variable()
    switcher = SpeedTorch.ModelFactory(emb, TOTAL, DIM, dtype)
    switcher.uniformDistributionInit(1, 2)
    values = switcher.getNumpyVersion()
    assert values.min() >= 1 and values.max() <= 2 and values.std() > 0.2
    switcher.beforeForwardPass(numpy.array([1, 2]))
    assert str(emb.weight.dtype).split(".")[1] == str(values.dtype)
    emb.weight.data += 1
    switcher.afterOptimizerStep(numpy.array([1, 2]))
    assert numpy.allclose(switcher.getNumpyVersion()[[1, 2]], values[[1, 2]] + 1, rtol=1e-2)
    assert switcher.getTorchVar().shape == (TOTAL, DIM)


def test_of_an_index_that_stands_twice_the_last_stays_and_one_warning_tells():
    emb = variable()
    switcher = SpeedTorch.ModelFactory(emb, TOTAL, DIM)
    switcher.zerosInit()
    ids = numpy.array([4, 2, 4])
    switcher.beforeForwardPass(ids)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for _ in range(3):
            switcher.afterOptimizerStep(numpy.array([4, 2]), numpy.array([3]))
        assert not heard
        emb.weight.data = torch.arange(3.0)[:, None].expand(3, DIM).contiguous()
        for _ in range(3):
            switcher.afterOptimizerStep(torch.tensor([4, 2]), numpy.array([4]))
    assert len(heard) == 1 and "sptx.torch.Embedding" in str(heard[0].message)
    assert issubclass(heard[0].category, sptx.SptxWarning)
    assert switcher.getNumpyVersion()[4, 0] == 2 and switcher.getNumpyVersion()[2, 0] == 1


@pytest.mark.parametrize("count, classes", [(1, 5), (2, 2), (9, 9), (40, 60), (512, 600), (3000, 3001)])
def test_duplicates_are_noticed_wherever_they_stand(count, classes):
    """Compares the search for duplicates with counting, for batches that grow and shrink. Indexes are far apart, or share a mark.
    """
    random = numpy.random.default_rng(count)
    for dtype in ("i8", "u4", "u8"):
        duplicates = sptx.speedtorch._rows.Duplicates()
        for size in (count, max(1, count // 3), count):
            few = random.permutation(classes)[:size]
            for apart in (1, 64, 1 << 15):
                assert not duplicates.in_batch((few * apart).astype(dtype))
    for _ in range(20 if count > 1 else 0):
        ids = random.permutation(classes)[:count] * random.choice([1, 64, 1024, 1 << 15])
        first, second = random.permutation(count)[:2]
        ids[first] = ids[second]
        duplicates = sptx.speedtorch._rows.Duplicates()
        assert duplicates.in_batch(ids) and not duplicates.in_batch(ids)


def test_what_notices_duplicates_grows_with_the_batch_alone():
    switcher = SpeedTorch.ModelFactory(variable(2), 1 << 20, DIM)
    switcher.zerosInit()
    switcher.beforeForwardPass(numpy.array([1, 2]))
    switcher.afterOptimizerStep(numpy.array([1, 2]))
    marks = [value for value in vars(switcher._duplicates).values() if isinstance(value, numpy.ndarray)]
    assert marks and sum(array.nbytes for array in marks) < 1000


def test_saved_and_loaded(tmp_path):
    emb = variable()
    for make in MODELS:
        switcher = make(emb, TOTAL, DIM)
        switcher.uniformDistributionInit(-1, 1)
        values = switcher.getNumpyVersion()
        switcher.saveCupy(str(tmp_path / "rows"))
        assert numpy.array_equal(numpy.load(tmp_path / "rows.npy"), values)
        switcher.saveTorch(tmp_path / "rows.pt")
        for load, name in (("loadCupy", "rows.npy"), ("loadTorch", "rows.pt")):
            other = make(emb, TOTAL, DIM)
            getattr(other, load)(tmp_path / name)
            assert numpy.array_equal(other.getNumpyVersion(), values)
            other.beforeForwardPass(numpy.array([7]))
            assert numpy.array_equal(emb.weight.detach().numpy(), values[[7]])
    assert sorted(item.name for item in tmp_path.iterdir()) == ["rows.npy", "rows.pt"]
    with pytest.raises(FileNotFoundError):
        switcher.loadCupy(tmp_path / "none.npy")
    (tmp_path / "text.npy").write_text("hello")
    with pytest.raises(sptx.Error, match="text.npy"):
        switcher.loadCupy(tmp_path / "text.npy")
    with pytest.raises(FileNotFoundError):
        switcher.saveCupy(tmp_path / "no" / "folder")


def test_a_full_disk_ends_no_process(tmp_path, monkeypatch):
    """Writing to a mapped file would end the process if the disk is full. So the space is requested before."""
    def full(file, start, size):
        assert start == 0 and size == os.fstat(file).st_size > 4 * TOTAL * DIM
        raise OSError(errno.ENOSPC, "No space left on device")

    switcher = SpeedTorch.ModelFactory(variable(), TOTAL, DIM)
    switcher.zerosInit()
    switcher.saveCupy(tmp_path / "rows.npy")
    before = (tmp_path / "rows.npy").read_bytes()
    switcher.uniformDistributionInit(-1, 1)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        switcher.saveCupy(tmp_path / "rows.npy")
    assert [item.name for item in tmp_path.iterdir()] == ["rows.npy"] and (tmp_path / "rows.npy").read_bytes() == before


def test_a_file_of_the_users_own_is_not_touched(tmp_path, monkeypatch):
    """While a file is written, it has a name that no other file has."""
    switcher = SpeedTorch.ModelFactory(variable(), TOTAL, DIM)
    switcher.zerosInit()
    own = [tmp_path / "rows.npy.partial", tmp_path / ("rows.npy.%d-0.partial" % os.getpid())]
    for path in own:
        path.write_text("mine")
    switcher.saveCupy(tmp_path / "rows")
    switcher.saveTorch(tmp_path / "rows.npy")
    monkeypatch.setattr(torch, "save", lambda tensor, path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        switcher.saveTorch(tmp_path / "rows.npy")
    assert all(path.read_text() == "mine" for path in own)
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "rows.npy", *own])
    assert (tmp_path / "rows.npy").stat().st_mode & 0o777 == 0o666 & ~umask()


def umask():
    now = os.umask(0)
    os.umask(now)
    return now


class Command:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_file_that_holds_commands_is_not_loaded(tmp_path):
    torch.save(Command(str(tmp_path / "run")), tmp_path / "bad.pt")
    torch.save({"a": torch.ones(2, 2)}, tmp_path / "dict.pt")
    torch.save(torch.tensor(1.0), tmp_path / "number.pt")
    (tmp_path / "text.pt").write_text("hello")
    switcher = SpeedTorch.ModelFactory(variable(), TOTAL, DIM)
    switcher.zerosInit()
    for name, said in (("bad", "may run commands"), ("dict", "holds a dict"), ("number", "wanted a tensor of rows"),
                       ("text", "text.pt")):
        with pytest.raises(sptx.Error, match=said):
            switcher.loadTorch(tmp_path / (name + ".pt"))
    with pytest.raises(FileNotFoundError):
        switcher.loadTorch(tmp_path / "none.pt")
    assert not (tmp_path / "run").exists() and switcher.getNumpyVersion().shape == (TOTAL, DIM)


@pytest.mark.parametrize("columns", [8, 5000])
@pytest.mark.parametrize("wrap", [numpy.array, torch.tensor])
def test_ids_are_whole_numbers_of_rows_at_any_width(tmp_path, columns, wrap):
    values = numpy.arange(12 * columns, dtype="f4").reshape(12, columns)
    numpy.save(tmp_path / "data.npy", values)
    gadget = SpeedTorch.DataGadget(tmp_path / "data.npy")
    gadget.gadgetInit()
    variable = torch.nn.Embedding(1, columns)
    switcher = SpeedTorch.ModelFactory(variable, 12, columns)
    switcher.loadCupy(tmp_path / "data.npy")
    for wrong, kind in ((1.7, TypeError), (1 << 62, IndexError), (-1, IndexError), (12, IndexError), (1 << 40, IndexError)):
        ids = wrap([wrong])
        for call in (lambda: gadget.getData(ids), lambda: gadget.insertData(torch.zeros(1, columns), ids),
                     lambda: switcher.beforeForwardPass(ids), lambda: switcher.afterOptimizerStep(ids)):
            with pytest.raises(kind):
                call()
    for call in (lambda: switcher.beforeForwardPass(wrap([True])), lambda: switcher.afterOptimizerStep(wrap([True]))):
        with pytest.raises(TypeError):
            call()
    assert numpy.array_equal(gadget.getNumpyVersion(), values) and numpy.array_equal(switcher.getNumpyVersion(), values)
    assert numpy.array_equal(gadget.getData(wrap([3])).numpy(), values[[3]])


ALONE = {"negative": (numpy.array([1, -1]), IndexError), "negative i4": (numpy.array([1, -1], "i4"), IndexError),
         "past": (numpy.array([[TOTAL, 1]]), IndexError), "past i4": (numpy.array([TOTAL, 1], "i4"), IndexError),
         "far": (numpy.array([1, 1 << 32]), IndexError), "strided": (numpy.array([1, 0, TOTAL, 0])[::2], IndexError),
         "transposed": (numpy.array([[1, 2], [-1, 3]]).T[:1], IndexError),
         "big-endian": (numpy.array([1, TOTAL], ">i8"), IndexError),
         "list": ([1, TOTAL], IndexError), "float": (numpy.array([1, 1.7]), TypeError), "list of floats": ([1.0, 2.0], TypeError),
         "u8": (numpy.array([1, 1 << 62], "u8"), IndexError), "bool": (numpy.array([True, False]), TypeError),
         "list of bools": ([True, False], TypeError)}
BESIDE = {name: ALONE[name] for name in sorted(ALONE) if name not in ("u8", "bool", "list of bools")}  # NumPy joins those to others


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("wrong, beside", [(wrong, None) for wrong in ALONE] + [
    (wrong, beside) for wrong in BESIDE for beside in (numpy.array([[2], [3]]), numpy.array([2, 0, 3], "i4")[::2])])
def test_of_a_batch_with_a_wrong_index_nothing_is_kept(wrong, beside, pinned):
    ids, kind = ALONE[wrong]
    weight = variable(2 if beside is None else 4)
    switcher = SpeedTorch.ModelFactory(weight, TOTAL, DIM, CPUPinn=pinned)
    switcher.uniformDistributionInit(-1, 1)
    rows, tensor = switcher.getNumpyVersion(), weight.weight.data.clone()
    for batch in [(ids,)] if beside is None else [(ids, beside), (beside, ids)]:
        for call in (switcher.beforeForwardPass, switcher.afterOptimizerStep):
            with pytest.raises(kind, match="ids.*(is no row of a table of %d|wanted int32 or int64)" % TOTAL):
                call(*batch)
    assert torch.equal(weight.weight.data, tensor) and numpy.array_equal(switcher.getNumpyVersion(), rows)


@pytest.mark.parametrize("wrap", [lambda ids: ids, lambda ids: ids.astype("i4"), lambda ids: ids.astype(">i8"),
                                  lambda ids: ids.astype("u2"), lambda ids: numpy.repeat(ids, 2)[::2], lambda ids: ids.tolist()])
@pytest.mark.parametrize("count", [0, 1, 5, 33])
def test_indexes_of_any_kind_name_the_same_rows(wrap, count):
    weight = variable(count)
    switcher = SpeedTorch.ModelFactory(weight, TOTAL, DIM, CPUPinn=True)
    switcher.uniformDistributionInit(-1, 1)
    rows, ids = switcher.getNumpyVersion(), numpy.random.default_rng(count).permutation(TOTAL)[:count]
    if count or isinstance(wrap(ids), numpy.ndarray):  # an empty list has the type of floats
        for batch in [[wrap(ids)]] + ([[wrap(ids[:count // 2]), wrap(ids[count // 2:])]] if count > 1 else []):
            switcher.beforeForwardPass(*batch)
            named = numpy.concatenate([numpy.asarray(part) for part in batch]).astype("i8")
            assert numpy.array_equal(weight.weight.data.numpy(), rows[named])
            weight.weight.data += 1
            switcher.afterOptimizerStep(*batch)
            rows[named] += 1
            assert numpy.array_equal(switcher.getNumpyVersion(), rows)


def test_a_collection_must_be_there():
    switcher = SpeedTorch.ModelFactory(variable(), TOTAL, DIM)
    for call in (lambda: switcher.beforeForwardPass(numpy.array([1])), switcher.getNumpyVersion,
                 lambda: switcher.afterOptimizerStep(numpy.array([1])), lambda: switcher.saveCupy("x")):
        with pytest.raises(ValueError, match="zerosInit"):
            call()
    switcher.zerosInit()
    with pytest.raises(ValueError, match="fit"):
        switcher.afterOptimizerStep(numpy.array([1, 2, 3]))  # the weight has four rows


# ---- optimizer factories ----

OPTIMIZERS = [(torch.optim.SparseAdam, {}), (torch.optim.Adadelta, {}), (torch.optim.Adamax, {}), (torch.optim.Adam, {}),
              (torch.optim.Adam, {"amsgrad": True}), (torch.optim.AdamW, {}), (torch.optim.ASGD, {"t0": 1}),
              (torch.optim.RMSprop, {}), (torch.optim.RMSprop, {"momentum": 0.9, "centered": True}), (torch.optim.Rprop, {}),
              (torch.optim.Adagrad, {}), (torch.optim.Adagrad, {"initial_accumulator_value": 0.3}),
              (torch.optim.SGD, {"momentum": 0.9}), (torch.optim.SGD, {})]
KINDS = [SpeedTorch.OptimizerFactory, lambda *a: SpeedTorch.OptimizerFactory(*a, CPUPinn=True),
         SpeedTorch.GPUPytorchOptimizerFactory, SpeedTorch.CPUPytorchOptimizerFactory, SpeedTorch.PytorchOptimizerFactory,
         lambda *a: SpeedTorch.PytorchOptimizerFactory(*a, deviceType="cpu"), SpeedTorch.OptimizerFactoryMM]


class Plain:
    """Exchanges rows between plain tensors, in the same order as SpeedTorch does."""

    def __init__(self, module, optimizer, first):
        self.module, self.optimizer, self.rows, self.state = module, optimizer, first.clone(), None

    def before(self, ids):
        self.module.weight.data = self.rows[ids]
        state = self.optimizer.state[self.module.weight]
        if self.state is not None:
            state.update({name: rows[ids] for name, rows in self.state.items()})

    def after(self, ids):
        self.rows[ids] = self.module.weight.data
        state = self.optimizer.state[self.module.weight]
        shape = self.module.weight.shape
        rows = {name: value for name, value in state.items() if isinstance(value, torch.Tensor) and value.shape == shape}
        if self.state is None:  # state of rows that were in no batch yet
            options = self.optimizer.defaults
            first = {"sum": options.get("initial_accumulator_value", 0), "step_size": options["lr"]}
            self.state = {name: torch.full((TOTAL, DIM), float(first.get(name, 0))) for name in rows}
        for name, value in rows.items():
            self.state[name][ids] = value


@pytest.mark.parametrize("kind, options", OPTIMIZERS)
def test_state_takes_turns_with_the_rows(kind, options):
    """Trains a skip-gram model as SpeedTorch's scripts do, for some batches: rows, state and losses must be those of plain
    tensors."""
    batch, contexts = 5, 4
    sparse = kind is torch.optim.SparseAdam
    models = [SkipGram(batch, batch * contexts, sparse) for _ in range(2)]
    optimizers = [kind(model.parameters(), lr=0.05, **options) for model in models]
    ours, theirs = models
    switchers = [SpeedTorch.ModelFactory(getattr(ours, name), TOTAL, DIM, CPUPinn=pinned)
                 for name, pinned in (("u_embeddings", True), ("v_embeddings", False))]
    for switcher in switchers:
        switcher.normalDistributionInit(0, 1)
    states = [make(optimizers[0], TOTAL, DIM, ours, name) for make, name in zip(KINDS, ("u_embeddings", "v_embeddings"))]
    for state in states:
        state.optInit()
    plain = [Plain(getattr(theirs, name), optimizers[1], switcher.getTorchVar())
             for name, switcher in zip(("u_embeddings", "v_embeddings"), switchers)]
    u, v = torch.arange(batch).reshape(-1, 1), torch.arange(batch * contexts).reshape(batch, -1)
    generator = numpy.random.default_rng(5)
    for step in range(5):
        ids = generator.permutation(TOTAL)[:batch], generator.permutation(TOTAL)[:batch * contexts].reshape(batch, -1)
        for each in (switchers, states):
            each[0].beforeForwardPass(ids[0].reshape(-1, 1))
            each[1].beforeForwardPass(ids[1][:, :1], ids[1][:, 1:])
        flat = ids[0], numpy.concatenate([ids[1][:, :1].reshape(-1), ids[1][:, 1:].reshape(-1)])
        for each, rows in zip(plain, flat):
            each.before(rows)
        order = v.new_tensor(numpy.arange(batch * contexts))
        p, n = order[:batch].reshape(batch, 1), order[batch:].reshape(batch, -1)
        losses = []
        for model, optimizer in zip(models, optimizers):
            optimizer.zero_grad()
            loss = model(u, p, n)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)
        for each in (switchers, states):
            each[0].afterOptimizerStep(ids[0])
            each[1].afterOptimizerStep(ids[1][:, :1], ids[1][:, 1:])
        for each, rows in zip(plain, flat):
            each.after(rows)
        for switcher, state, each in zip(switchers, states, plain):
            assert numpy.allclose(switcher.getNumpyVersion(), each.rows.numpy(), rtol=1e-4, atol=1e-6), step
            for name in state.optVarList:
                assert numpy.allclose(state.getNumpyVersion()[name], each.state[name].numpy(), rtol=1e-4, atol=1e-6), name
    assert set(states[0].optVarList) == set(plain[0].state)


@pytest.mark.parametrize("ids, kind", [([TOTAL], IndexError), ([1, -1], IndexError), ([2 * TOTAL], IndexError),
                                       ([1 << 62], IndexError), ([0.5], TypeError), ([True], TypeError)])
def test_indexes_that_are_no_class_have_no_state(ids, kind):
    """The parts of the state are stored one after another. An index past the last class must not reach into the next part."""
    model = SkipGram(4, 4)
    state = SpeedTorch.OptimizerFactory(torch.optim.Adam(model.parameters()), TOTAL, DIM, model, "u_embeddings")
    state.optInit()
    for given in (numpy.array(ids), torch.tensor(ids)):
        for call in (state.beforeForwardPass, state.afterOptimizerStep):
            with pytest.raises(kind):
                call(given)
    state.beforeForwardPass(numpy.array([], numpy.int64))
    assert not state.getNumpyVersion()["exp_avg"].any()


@pytest.mark.parametrize("make", KINDS)
def test_state_can_be_saved(make, tmp_path):
    model = SkipGram(4, 4)
    optimizer = torch.optim.Adam(model.parameters())
    state = make(optimizer, TOTAL, DIM, model, "u_embeddings")
    with pytest.raises(ValueError, match="optInit"):
        state.beforeForwardPass(numpy.array([1]))
    state.optInit()
    ids = numpy.array([1, 2, 3, 39])
    optimizer.state[model.u_embeddings.weight]["exp_avg"] = torch.ones(4, DIM)
    state.afterOptimizerStep(ids)
    state.saveCupy(tmp_path / "state")
    on_disk = numpy.load(tmp_path / "state.npy")
    assert on_disk.dtype.names == ("exp_avg", "exp_avg_sq") and on_disk["exp_avg"].sum() == 4 * DIM
    other = make(optimizer, TOTAL, DIM, model, "u_embeddings")
    other.loadCupy(tmp_path / "state.npy")
    assert numpy.array_equal(other.getNumpyVersion(), on_disk) and numpy.array_equal(state.getNumpyVersion(), on_disk)
    with pytest.raises(ValueError, match="wanted"):
        make(optimizer, TOTAL + 1, DIM, model, "u_embeddings").loadCupy(tmp_path / "state.npy")


def test_variables_that_are_none_are_named():
    model = SkipGram(4, 4)
    with pytest.raises(ValueError, match="w_embeddings"):
        SpeedTorch.OptimizerFactory(torch.optim.Adam(model.parameters()), TOTAL, DIM, model, "w_embeddings")
    with pytest.raises(ValueError, match="u_embeddings"):
        SpeedTorch.OptimizerFactory(torch.optim.Adam(model.v_embeddings.parameters()), TOTAL, DIM, model, "u_embeddings")


# ---- gadgets and counts ----

@pytest.mark.parametrize("make", [SpeedTorch.DataGadget, SpeedTorch.DataGadgetMM,
                                  lambda name: SpeedTorch.DataGadget(name, CPUPinn=True)])
@pytest.mark.parametrize("shape, dtype", [((30, 4), "f4"), ((30,), "i8"), ((30, 2, 3), "f8"), ((30, 8), "u1"), ((30, 2), "f2"),
                                          ((12, 5000), "f4")])
def test_a_gadget_gives_a_files_rows(make, shape, dtype, tmp_path):
    values = numpy.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    numpy.save(tmp_path / "data.npy", values)
    gadget = make(str(tmp_path / "data.npy"))
    with pytest.raises(ValueError, match="gadgetInit"):
        gadget.getData(numpy.array([1]))
    gadget.gadgetInit()
    assert numpy.array_equal(gadget.getNumpyVersion(), values)
    mask = numpy.arange(len(values)) % 3 == 1
    for ids in (numpy.array([3, 1, 3]), numpy.array([[3], [1]]), [4, 5], slice(2, 9, 3), 7, -1, mask):
        data = gadget.getData(ids)
        assert isinstance(data, torch.Tensor) and numpy.array_equal(data.numpy(), values[ids])
    for ids in (torch.tensor([3, 1]), torch.from_numpy(mask)):
        assert numpy.array_equal(gadget.getData(ids).numpy(), values[ids.numpy()])
    gadget.insertData(torch.zeros((2,) + shape[1:]).to(data.dtype), numpy.array([3, 5]))
    values[[3, 5]] = 0
    assert numpy.array_equal(gadget.getNumpyVersion(), values)
    gadget.saveCupy(tmp_path / "again.npy")
    assert numpy.array_equal(numpy.load(tmp_path / "again.npy"), values)
    numpy.save(tmp_path / "other.npy", values[:7])
    gadget.loadCupy(tmp_path / "other.npy")
    assert numpy.array_equal(gadget.getNumpyVersion(), values[:7])


def test_files_that_are_no_rows_are_refused(tmp_path):
    for name, values in (("bytes", numpy.zeros((3, 3), "u1")), ("none", numpy.zeros((0, 4), "f4")), ("number", numpy.float32(3)),
                         ("prime", numpy.zeros((2, 4099), "f4"))):
        numpy.save(tmp_path / (name + ".npy"), values)
        gadget = SpeedTorch.DataGadget(tmp_path / (name + ".npy"))
        with pytest.raises((ValueError, sptx.Error)) as error:
            gadget.gadgetInit()
        assert str(error.value)


def test_counts():
    com = SpeedTorch.COM(5)
    com.comInit()
    assert com.CUPYCom.shape == (5, 5) and com.CUPYCom.dtype == numpy.uint32 and not com.CUPYCom.any()
    assert SpeedTorch.COMMunicator is SpeedTorch.COM
    for kind in (SpeedTorch.GPUPytorchCOM, SpeedTorch.CPUPytorchCOM, SpeedTorch.PytorchCOM):
        com = kind(5)
        com.comInit()
        assert com.pytorchGPUVar.shape == (5, 5) and com.getNumpyVersion().dtype == numpy.int32


def test_every_name_is_there():
    for module, names in {"CUPYLive": "ModelFactory OptimizerFactory COM DataGadget",
                          "CPUCupyPinned": "ModelFactoryMM OptimizerFactoryMM COMMM DataGadgetMM",
                          "GPUTorch": "GPUPytorchModelFactory GPUPytorchOptimizerFactory GPUPytorchCOM",
                          "CPUTorchPinned": "CPUPytorchModelFactory CPUPytorchOptimizerFactory CPUPytorchCOM",
                          "GenTorch": "PytorchModelFactory PytorchOptimizerFactory PytorchCOM"}.items():
        for name in names.split():
            assert getattr(getattr(SpeedTorch, module), name) is getattr(SpeedTorch, name)
    code = ("import sptx; sptx.speedtorch.CUPYLive.ModelFactory; "
            "import sptx.speedtorch.GPUTorch as gput; gput.GPUPytorchModelFactory")
    subprocess.run([sys.executable, "-c", code], check=True)
