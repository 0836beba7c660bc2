"""Tables and PyTorch on the CPU: tensors as ids and values; sptx.torch.Embedding compared with torch.nn.Embedding."""

import copy
import gc

import numpy
import pytest
import torch

import sptx
from conftest import known_rows

pytestmark = pytest.mark.torch


def ones(*shape):
    return torch.ones(*shape)


# ---- tensors ----

@pytest.mark.parametrize("ids", [torch.tensor([3, 1, 3]), torch.tensor([[3], [1]], dtype=torch.int32), torch.tensor(7),
                                 torch.tensor([3, 9, 1])[::2], torch.tensor([3], dtype=torch.int16), torch.zeros(0, 2).long(),
                                 torch.arange(6).reshape(2, 3).T])
def test_tensors_of_ids_give_tensors(table, ids):
    rows = table.fetch(ids)
    assert isinstance(rows, torch.Tensor) and rows.dtype == torch.float32 and rows.shape == ids.shape + (3,)
    assert torch.equal(rows, torch.from_numpy(known_rows(10, 3))[ids.long()])
    assert not rows.requires_grad


@pytest.mark.parametrize("ids, kind, said", [
    (torch.tensor([1.0]), TypeError, "float32"),
    (torch.tensor([float("nan")]), TypeError, "float32"),
    (torch.tensor([True]), TypeError, "bool"),
    (torch.tensor([1j]), TypeError, "complex64"),
    (torch.tensor([10]), IndexError, "ids[0] = 10"),
    (torch.tensor([1, -1]), IndexError, "ids[1] = -1"),
    (torch.tensor([1 << 32]), IndexError, "4294967296"),
    (torch.tensor([1]).to_sparse(), TypeError, "sparse"),
    (torch.empty(1, dtype=torch.int64, device="meta"), ValueError, "meta"),
])
def test_tensors_that_are_no_ids_are_named(table, ids, kind, said):
    for call in (table.fetch, table.prefetch, lambda ids: table.update(ids, ones(*ids.shape, 3)),
                 lambda ids: table.store(ids, ones(*ids.shape, 3))):
        with pytest.raises(kind) as error:
            call(ids)
        assert said in str(error.value)


def test_tensors_that_are_not_aligned_are_taken(table):
    raw = torch.zeros(200, dtype=torch.uint8).numpy()
    ids = torch.frombuffer(raw, dtype=torch.int64, count=2, offset=1)
    values = torch.frombuffer(raw, dtype=torch.float32, count=6, offset=50)
    assert ids.data_ptr() % 8 and values.data_ptr() % 4
    ids[:], values[:] = torch.tensor([3, 1]), torch.arange(6.)
    table.store(ids, values.view(2, 3))
    assert torch.equal(table.fetch(ids), torch.arange(6.).view(2, 3))
    with pytest.raises(ValueError, match="contiguous"):
        table.fetch(ids, out=values.view(2, 3))


@pytest.mark.parametrize("values, kind, said", [
    (ones(2, 3).double(), TypeError, "float64"), (ones(2, 3).long(), TypeError, "int64"),
    (ones(3, 2), ValueError, "(3, 2)"), (ones(2, 3).to_sparse(), TypeError, "sparse"),
    (ones(2, 3).to("meta"), ValueError, "meta"),
])
def test_tensors_that_are_no_values_are_named(table, values, kind, said):
    before = table.weights.copy()
    for call in (table.update, table.store):
        with pytest.raises(kind) as error:
            call(torch.tensor([1, 2]), values)
        assert said in str(error.value)
    assert numpy.array_equal(before, table.weights)


def test_values_are_taken_as_they_are_meant(table):
    ids = torch.tensor([1, 2])
    expected = torch.arange(6.0).reshape(2, 3)
    leaf = expected.clone().requires_grad_()
    negated = torch.complex(torch.zeros(2, 3), -expected).conj().imag  # a view that says "minus"
    for values in (expected, leaf, leaf * 1, expected.T.contiguous().T, torch.nn.Parameter(expected), negated):
        table.store(ids, torch.zeros(2, 3))
        table.store(ids, values)
        assert torch.equal(table.fetch(ids), expected)
    table.store(ids, torch.tensor(2.0).expand(2, 3))
    assert table.fetch(ids).tolist() == [[2, 2, 2]] * 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rows_and_gradients_of_half_precision(cpu, dtype):
    tables = [sptx.Table(10, 3, "adagrad", lr=0.1, device=cpu) for _ in range(2)]
    ids, gradients = torch.tensor([1, 2, 1]), torch.randn(3, 3).to(dtype)
    tables[0].update(ids, gradients)
    tables[1].update(ids, gradients.float())
    assert numpy.array_equal(*(table.weights for table in tables))
    assert torch.equal(tables[0].fetch(ids, dtype=dtype), tables[0].fetch(ids).to(dtype))


def test_libraries_may_be_mixed(table):
    out = torch.zeros(2, 3)
    assert table.fetch([1, 2], out=out) is out and out[0, 0] == 1
    out = numpy.zeros((2, 3), numpy.float32)
    assert table.fetch(torch.tensor([1, 2]), out=out) is out and out[1, 0] == 2
    table.store(numpy.array([1]), torch.zeros(1, 3))
    table.update(torch.tensor([2]), numpy.zeros((1, 3), numpy.float32))
    assert table.fetch(1).tolist() == [0, 0, 0]


@pytest.mark.parametrize("out, kind, said", [
    (ones(2, 3).double(), TypeError, "float64"), (ones(3, 2), ValueError, "(3, 2)"), (ones(3, 2).T, ValueError, "contiguous"),
    (ones(2, 3).requires_grad_(), ValueError, "autograd"), (ones(2, 3).to("meta"), ValueError, "meta"),
])
def test_an_out_tensor_that_cannot_be_filled_is_refused(table, out, kind, said):
    with pytest.raises(kind, match="^out") as error:
        table.fetch(torch.tensor([1, 2]), out=out)
    assert said in str(error.value)


def test_torch_takes_the_rows_in_place(table):
    for take in (torch.from_dlpack, torch.from_numpy, torch.as_tensor):
        rows = take(table.weights)
        rows[3, 1] += 1
        assert table.fetch(3)[1] == rows[3, 1] and rows.shape == (10, 3)
    table.close()
    del table
    gc.collect()
    assert rows[3, 1] == 6.25
    del rows
    gc.collect()


def test_tensors_in_the_tables_own_memory_are_those_of_before(cpu):
    table = sptx.Table(8, 32, "sgd", lr=1.0, device=cpu)
    rows = torch.from_dlpack(table.weights)
    before = rows.clone()
    table.store(torch.tensor([1, 2, 3]), rows[:3])
    assert torch.equal(rows[1:4], before[:3])
    table.update(torch.tensor([5, 6]), rows[4:6])
    assert torch.equal(rows[5:7], before[5:7] - before[4:6])
    before = rows.clone()
    assert table.fetch(torch.tensor([0, 1]), out=rows[1:3]) is not None and torch.equal(rows[1:3], before[:2])


def test_tensors_without_memory_of_their_own_are_refused(table):
    for ids in (torch.tensor(1).expand(1 << 40), torch.tensor(1, dtype=torch.int8).expand(1 << 33)):
        with pytest.raises(ValueError, match="more than 4294967295"):
            table.fetch(ids)
    with pytest.raises(ValueError, match="shape"):
        table.store(torch.tensor([1]), torch.tensor(1.0).expand(1 << 40, 3))
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        table.fetch(torch.nested.nested_tensor([torch.tensor([1]), torch.tensor([1, 2])]))


# ---- Embedding beside torch's own ----

SPARSE = {  # PyTorch's optimizers that accept sparse gradients: only the rows of the batch move.
    "sgd": (torch.optim.SGD, {}),
    "adagrad": (torch.optim.Adagrad, {}),
    "adagrad-decay": (torch.optim.Adagrad, {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    "sparse_adam": (torch.optim.SparseAdam, {}),
    "sparse_adam-betas": (torch.optim.SparseAdam, {"betas": (0.5, 0.8), "eps": 1e-3}),
}
DENSE = {  # All other optimizers: each batch contains every row.
    "sgd-momentum": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "adagrad-weight": (torch.optim.Adagrad, {"weight_decay": 0.1}),
    "adadelta": (torch.optim.Adadelta, {"rho": 0.8}),
    "rmsprop": (torch.optim.RMSprop, {}),
    "rmsprop-centered": (torch.optim.RMSprop, {"alpha": 0.9, "momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    "adam": (torch.optim.Adam, {"weight_decay": 0.01}),
    "adam-amsgrad": (torch.optim.Adam, {"amsgrad": True, "betas": (0.8, 0.9)}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}),
    "adamax": (torch.optim.Adamax, {"weight_decay": 0.01}),
    "asgd": (torch.optim.ASGD, {"lambd": 0.01, "t0": 2}),
    "rprop": (torch.optim.Rprop, {"etas": (0.4, 1.3), "step_sizes": (1e-4, 0.5)}),
}


@pytest.mark.parametrize("name", list(SPARSE) + list(DENSE))
def test_training_is_pytorchs(cpu, name):
    """Makes some steps of a small model, once with a table and once with nn.Embedding and PyTorch's optimizer of the same name.
    Rows and losses must be equal."""
    rows, dim, steps = 12, 5, 8
    kind, options = {**SPARSE, **DENSE}[name]
    generator = torch.Generator().manual_seed(4)
    table = sptx.Table(rows, dim, name.split("-")[0], lr=0.05, device=cpu, init="normal 0 1", count_rows=False, **options)
    ours = sptx.torch.Embedding(table)
    theirs = torch.nn.Embedding.from_pretrained(torch.from_numpy(table.weights).clone(), freeze=False, sparse=name in SPARSE)
    optimizer = kind(theirs.parameters(), lr=0.05, **options)
    goal = torch.randn(rows, dim, generator=generator)
    for step in range(steps):
        ids = torch.randint(rows, (3, 4), generator=generator)
        if name in DENSE:
            ids = torch.cat([torch.arange(rows), ids.flatten()]).reshape(-1, 4)
        losses = [((emb(ids) - goal[ids]) ** 2 * (1 + step)).sum() for emb in (ours, theirs)]
        assert torch.allclose(losses[0], losses[1], rtol=1e-4)
        optimizer.zero_grad()
        for loss in losses:
            loss.backward()
        optimizer.step()
        assert torch.allclose(torch.from_numpy(table.weights), theirs.weight.detach(), rtol=1e-4, atol=1e-5), step
    state = optimizer.state[theirs.weight]
    for field, array in table.state.items():
        assert torch.allclose(torch.from_numpy(array), state[field], rtol=1e-3, atol=1e-5), field


def test_gradients_are_those_of_torchs_embedding(cpu):
    """With sgd and learning rate 1 an update subtracts the gradient itself."""
    table = sptx.Table(20, 4, "sgd", lr=1.0, device=cpu, init="normal 0 1")
    before = torch.from_numpy(table.weights).clone()
    weight = before.clone().requires_grad_()
    layer = torch.nn.Linear(4, 3)
    ids = torch.randint(20, (5, 6, 2))
    for embedded in (sptx.torch.Embedding(table)(ids), torch.nn.functional.embedding(ids, weight)):
        torch.tanh(layer(embedded)).prod(-1).sum().backward()
    assert torch.allclose(before - torch.from_numpy(table.weights), weight.grad, atol=1e-6)


# ---- what a module does ----

@pytest.fixture
def emb(table):
    return sptx.torch.Embedding(table)


def test_without_gradients_forward_only_reads(table, emb):
    before = table.weights.copy()
    with torch.no_grad():
        assert not emb(torch.tensor([1])).requires_grad
    emb.requires_grad_(False)
    assert not emb(torch.tensor([1])).requires_grad
    torch.nn.Sequential(emb).requires_grad_(True)
    assert emb(torch.tensor([1])).requires_grad
    assert numpy.array_equal(before, table.weights) and table.steps == 0


def test_each_backward_is_one_update(table, emb):
    loss = emb(torch.tensor([[1, 1], [2, 1]])).sum()
    loss.backward(retain_graph=True)
    assert table.steps == 1 and table.fetch([1, 2])[:, 0].tolist() == [1 - 3, 2 - 1]
    loss.backward()
    assert table.steps == 2 and table.fetch([1, 2])[:, 0].tolist() == [1 - 6, 2 - 2]
    two = emb(torch.tensor([3])).sum() + emb(torch.tensor([3])).sum()
    two.backward()
    assert table.steps == 4 and table.fetch(3)[0] == 1
    emb(torch.zeros(0, 4).long()).sum().backward()


def test_a_gradient_of_a_gradient_is_refused(table, emb):
    before = table.weights.copy()
    with pytest.raises(RuntimeError, match="gradient of a gradient"):
        (emb(torch.tensor([1])) ** 2).sum().backward(create_graph=True)
    assert numpy.array_equal(before, table.weights)


def test_ids_changed_under_way_are_refused(table, emb):
    ids = torch.tensor([1])
    loss = emb(ids).sum()
    ids[0] = 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert table.steps == 0


def test_padding_gives_zeros_and_is_not_updated(table):
    for padding in (4, -6):
        emb = sptx.torch.Embedding(table, padding_idx=padding)
        assert emb.padding_idx == 4
        x = emb(torch.tensor([[4, 1], [4, 4]]))
        assert x[0, 0].tolist() == [0, 0, 0] and x[0, 1, 0] == table.fetch(1)[0] and not x[1].any()
        x.sum().backward()
        with torch.no_grad():
            assert not emb(torch.tensor(4)).any()
        emb(torch.tensor([4])).sum().backward()
    assert numpy.array_equal(table.fetch(4), known_rows(10, 3)[4]) and table.fetch(1)[0] == 1 - 2
    assert sptx.torch.Embedding(table, padding_idx=numpy.int64(-1)).padding_idx == 9
    for wrong, kind in ((10, ValueError), (-11, ValueError), (1.5, TypeError), (True, TypeError), (numpy.float32(1), TypeError)):
        with pytest.raises(kind, match="padding_idx"):
            sptx.torch.Embedding(table, padding_idx=wrong)


class Another:
    """A tensor of a library that the package knows only by DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **_):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("kind", [torch.as_tensor, Another])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_padding_past_a_small_type_is_no_other_row(dtype, kind):
    with sptx.Table(70000, 4, lr=1.0, device="cpu", init="normal 0 1") as table:
        for padding in (300, 65536 + 44):  # cut to eight bits both are 44; cut to sixteen the second is
            before = table.fetch([44, 45])
            emb = sptx.torch.Embedding(table, padding_idx=padding)
            rows = emb(kind(torch.tensor([44, 45], dtype=dtype)))
            assert numpy.array_equal(rows.detach().numpy(), before)
            rows.sum().backward()
            assert numpy.array_equal(table.fetch([44, 45]), before - 1)


@pytest.mark.parametrize("ids", [[], [[3, 1]], 4, numpy.arange(6)[::-1], numpy.array([3, 9], numpy.uint16), range(3),
                                 numpy.array([3, 9], numpy.uint64), numpy.array([3, 9], ">i4"), numpy.zeros((0, 2), numpy.int8)])
def test_a_module_takes_what_a_table_takes(table, emb, ids):
    wanted = table.fetch(ids)
    emb.prefetch(ids)
    rows = emb(ids)
    assert isinstance(rows, torch.Tensor) and numpy.array_equal(rows.detach().numpy(), wanted)
    rows.sum().backward()
    with pytest.raises(TypeError, match="ids are"):
        emb(numpy.array([1.5]))


def test_a_module_says_what_it_is(table, emb):
    assert (emb.num_embeddings, emb.embedding_dim, emb.lr) == (10, 3, 1.0)
    emb.lr = 0.25
    assert table.lr == 0.25 and "10, 3" in repr(emb) and "sgd" in repr(emb)
    model = torch.nn.Sequential(emb, torch.nn.Linear(3, 1))
    assert sum(parameter.numel() for parameter in model.parameters()) == 4
    model.load_state_dict(model.state_dict())
    optimizer = torch.optim.Adam(model.parameters())
    model.train()
    model(torch.tensor([1])).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    with pytest.raises(TypeError):
        sptx.torch.Embedding(torch.zeros(3, 3))
    with pytest.raises(TypeError, match="save"):
        copy.deepcopy(emb)


def test_ids_of_other_kinds_are_taken(table, emb):
    for ids in ([1, 2], numpy.array([1, 2]), torch.tensor([1, 2], dtype=torch.int32)):
        emb.prefetch(ids)
        assert torch.equal(emb(ids).detach(), torch.from_numpy(known_rows(10, 3)[1:3]))
    for ids, kind in (([10], IndexError), ([1.5], TypeError), (torch.tensor([True]), TypeError)):
        with pytest.raises(kind):
            emb(ids)
    table.close()
    with pytest.raises(ValueError, match="closed"):
        emb([1])


def test_a_scaled_loss_is_unscaled_by_a_hook(table, emb):
    x = emb(torch.tensor([1]))
    x.register_hook(lambda gradient: gradient / 1024)
    (x.sum() * 1024).backward()
    assert table.fetch(1).tolist() == [0, 0.25, 0.5]


# ---- tracers: what is fetched is no part of a graph ----

TRACED = "being traced"


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("around", [False, True])
def test_jit_trace_is_refused(table, grad, around):
    emb = sptx.torch.Embedding(table)
    module = torch.nn.Sequential(emb, torch.nn.Linear(3, 1)) if around else emb
    before = table.weights.copy()
    with torch.set_grad_enabled(grad):
        with pytest.raises(TypeError, match=TRACED):
            torch.jit.trace(module, torch.tensor([1, 2]), check_trace=False)
    with pytest.raises(TypeError, match=TRACED):
        torch.jit.trace(lambda x: table.update([1], x), torch.ones(1, 3), check_trace=False)
    assert numpy.array_equal(table.weights, before)
    assert torch.equal(emb(torch.tensor([1])), torch.from_numpy(before[1:2]))  # afterwards as always


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_make_fx_is_refused(table, grad, mode):
    make_fx = pytest.importorskip("torch.fx.experimental.proxy_tensor").make_fx
    emb = sptx.torch.Embedding(table)
    with torch.set_grad_enabled(grad), pytest.raises(TypeError, match=TRACED):
        make_fx(lambda ids: emb(ids), tracing_mode=mode)(torch.tensor([1, 2]))
    assert emb(torch.tensor([1])).shape == (1, 3)


def test_fake_tensors_are_refused(table):
    fake = pytest.importorskip("torch._subclasses.fake_tensor")
    with fake.FakeTensorMode() as mode:
        with pytest.raises(TypeError, match=TRACED):
            table.fetch(mode.from_tensor(torch.tensor([1, 2])))


@pytest.mark.skipif(not hasattr(torch, "export"), reason="this PyTorch has no torch.export")
def test_export_is_refused(table):
    with pytest.raises(TypeError, match=TRACED):
        torch.export.export(sptx.torch.Embedding(table), (torch.tensor([1, 2]),), strict=False)


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this PyTorch has no torch.compile")
def test_compiled_modules_look_up_and_update(table):
    emb, linear, ids = sptx.torch.Embedding(table), torch.nn.Linear(3, 1), torch.tensor([1, 2])
    compiled = torch.compile(torch.nn.Sequential(emb, linear), backend="aot_eager")
    for _ in range(3):
        before = table.weights.copy()
        out = compiled(ids)
        assert torch.allclose(out, linear(torch.from_numpy(before[[1, 2]])))
        out.sum().backward()
        assert numpy.allclose(table.weights[[1, 2]], before[[1, 2]] - linear.weight.detach().numpy())
    with torch.no_grad():
        assert torch.equal(torch.compile(emb, backend="aot_eager")(ids), torch.from_numpy(table.weights[[1, 2]]))


def test_flushed_denormals_change_no_byte():
    """The calling thread may flush denormal numbers to zero, as torch can. That must change nothing in the threads of a table."""
    got = []
    for flush, threads in ((False, 1), (True, 1), (True, 3)):
        table = sptx.Table(100, 64, "sgd", lr=1e-20, init="zeros", device=sptx.Context("cpu", threads=threads))
        if not torch.set_flush_denormal(flush):
            pytest.skip("this processor does not flush denormals")
        try:
            table.update(torch.arange(100), torch.full((100, 64), 1e-20))
        finally:
            torch.set_flush_denormal(False)
        got.append(table.weights.copy())
    assert got[0].all() and numpy.array_equal(got[0], got[1]) and numpy.array_equal(got[0], got[2])


@pytest.mark.parametrize("make, said", [
    (lambda kind, table: kind(10, 4), r"sptx.Table\(rows=10, dim=4, optimizer="),
    (lambda kind, table: kind(10, 4, padding_idx=0), r"sptx.Table\(rows=10, dim=4, optimizer="),
    (lambda kind, table: kind(num_embeddings=10, embedding_dim=4), r"sptx.Table\(rows=10, dim=4, optimizer="),
    (lambda kind, table: kind(table, max_norm=1.0), "max_norm= is not there: take torch.nn.functional.normalize"),
    (lambda kind, table: kind(table, sparse=True), "sparse= is not there: leave it out"),
    (lambda kind, table: kind(table, nonsense=1), "has no argument 'nonsense'"),
])
@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_arguments_of_torchs_own_modules_are_answered(cpu, kind, make, said):
    table = sptx.Table(10, 4, device=cpu)
    with pytest.raises(TypeError, match=said):
        make(getattr(sptx.torch, kind), table)
    assert getattr(sptx.torch, kind)(table, sparse=False, max_norm=None).table is table
