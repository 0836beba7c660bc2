"""Compares the compiled calls with the calls by ctypes, for PyTorch's tensors and for sptx.speedtorch."""

import os
import sys
import warnings

import hypothesis
import numpy
import pytest
import torch
from hypothesis import strategies as st

import sptx
import sptx.speedtorch as SpeedTorch
from conftest import floats
from sptx import _compiled
from test_calls import DIM, ROWS, VERBS, BothWays, arrays, compiled, passed_by_ctypes

pytestmark = pytest.mark.torch


class Ours(torch.Tensor):
    """A tensor of a class of one's own, the same class in both tables' calls."""


@st.composite
def tensors(draw, kind):
    """Returns a function that makes a new tensor at each call, always the same."""
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    if kind == "values" and draw(st.integers(0, 5)):
        shape += (DIM,)
    types = [torch.int64] * 3 + [torch.int32] * 2 + [torch.int16, torch.uint8, torch.float32, torch.bool, torch.complex64]
    if kind == "values":
        types = [torch.float32] * 6 + [torch.float64, torch.float16, torch.int32]
    dtype, seed = draw(st.sampled_from(types)), draw(st.integers(0, 1000))
    low, high = (0, ROWS) if kind == "values" or draw(st.integers(0, 4)) else (-1, ROWS + 2)
    how = draw(st.sampled_from(["as it is"] * 4 + ["spread", "turned", "parameter", "wants gradient", "repeated", "sparse",
                                                   "negative", "part", "meta", "subclass"]))

    def make():
        tensor = torch.from_numpy(numpy.random.default_rng(seed).integers(low, high, shape)).to(dtype)
        if how == "spread" and tensor.dim():
            tensor = torch.stack((tensor, tensor), -1)[..., 0]
        elif how == "turned" and tensor.dim():
            tensor = tensor.reshape(tuple(reversed(shape))).permute(*reversed(range(len(shape))))
        elif how in ("parameter", "wants gradient") and dtype.is_floating_point:
            tensor = torch.nn.Parameter(tensor) if how == "parameter" else tensor.requires_grad_()
        elif how == "repeated":
            tensor = tensor.expand((2,) + shape)
        elif how == "sparse":
            tensor = tensor.to_sparse() if tensor.dim() else tensor
        elif how == "negative" and dtype == torch.float32:
            tensor = torch.complex(tensor, tensor).conj().imag
        elif how == "part" and tensor.numel():
            tensor = torch.stack((tensor, tensor))[1]
        elif how == "meta":
            tensor = tensor.to("meta")
        elif how == "subclass":
            tensor = tensor.as_subclass(Ours)
        return tensor

    return make


@st.composite
def pairs(draw):
    ids = draw(tensors("ids") | arrays("ids"))
    if draw(st.integers(0, 3)):
        shape = tuple(numpy.shape(ids())) + (DIM,)
        wrap = draw(st.sampled_from([torch.from_numpy, lambda array: array]))
        return ids, lambda: wrap((numpy.arange(numpy.prod(shape, dtype=int)) % 7).astype("f4").reshape(shape))
    return ids, draw(tensors("values") | arrays("values"))


@compiled
@hypothesis.settings(deadline=None, max_examples=200)
@hypothesis.given(asked=st.lists(st.tuples(st.sampled_from(VERBS), pairs()), min_size=1, max_size=4))
def test_both_ways_do_the_same(cpu, asked):
    both = BothWays(cpu)
    for verb, (ids, values) in asked:
        if verb == "fetch into":
            def into(table):
                out = values()
                table.fetch(ids(), out=out)
                return out.detach() if isinstance(out, torch.Tensor) else numpy.asarray(out)
            both.same(into)
        else:
            both.same(lambda table: getattr(table, verb)(*([ids()] if "fetch" in verb else [ids(), values()])))


@compiled
def test_the_usual_is_done_by_the_compiled_calls(table):
    ids, rows = torch.tensor([[3, 1], [3, 0]]), table.fetch(torch.tensor([1]))  # after this call the Caller knows PyTorch
    out, calls = torch.zeros(2, 2, 3), table._calls
    assert isinstance(calls.fetch(ids, None), torch.Tensor) and calls.fetch(ids.int(), out) is out
    assert torch.equal(calls.fetch(ids, None), torch.from_numpy(table.fetch(ids.numpy())))
    assert torch.equal(out, calls.fetch(ids, None))
    assert calls.update(ids, out) is None and calls.store(ids[0], out[0]) is None and calls.prefetch(ids) is None
    assert calls.store(ids.numpy(), out) is None and isinstance(calls.fetch(ids.numpy(), None), numpy.ndarray)
    assert calls.store(torch.tensor([1]), torch.nn.Parameter(rows)) is None and calls.fetch(torch.tensor(1), None).shape == (3,)
    assert calls.fetch(torch.zeros(0, 2, dtype=torch.int64), None).shape == (0, 2, 3)


@compiled
def test_what_is_watched_is_left_to_the_other_way(table):
    ids = torch.tensor([1])
    table.fetch(ids)
    modes = pytest.importorskip("torch.utils._python_dispatch")

    class Watching(modes.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), named=None):
            return function(*arguments, **(named or {}))

    with Watching():
        assert table._calls.fetch(ids, None) is NotImplemented
        assert table._calls.gather(numpy.array([1]), None, 1) is NotImplemented
        assert table._calls.store(numpy.array([1]), torch.ones(1, 3)) is NotImplemented
        rows = table.fetch(ids)
    assert torch.equal(rows, table._calls.fetch(ids, None))


@compiled
def test_rows_that_were_first_fetched_in_inference_mode_can_be_trained_on_later(table):
    ids = torch.tensor([1])
    with torch.inference_mode():
        assert table.fetch(ids).is_inference() and table.fetch(ids).is_inference()
    rows = table._calls.fetch(ids, None)
    assert not rows.is_inference() and not rows.requires_grad
    rows.requires_grad_().square().sum().backward()
    assert torch.equal(rows.grad, 2 * rows)


def test_a_pytorch_that_does_not_say_what_it_traces_is_left_to_the_other_way(monkeypatch):
    monkeypatch.delattr(torch._C, "_len_torch_dispatch_stack")
    monkeypatch.setattr(_compiled, "known", None if _compiled.known is None else _compiled._module.Known(*[numpy.ndarray] * 3))
    _compiled.learn_torch()
    if _compiled.known is not None:
        assert _compiled._module.Marks(_compiled.known).twice(torch.tensor([1]), None) is NotImplemented


@compiled
def test_no_tensor_is_held_after_a_call(table):
    ids, values = torch.tensor([1, 2]), torch.ones(2, 3)
    held = (ids, values, torch.float32, torch.strided, True, table._calls)
    table.fetch(ids)
    before = [sys.getrefcount(one) for one in held]
    for _ in range(300):
        table.store(ids, values)
        table.fetch(ids, out=values)
        table.fetch(ids)
        table._calls.gather(numpy.array([1]), numpy.array([2]), 2)
        table._calls.scatter(numpy.array([1]), numpy.array([2]), [values])
    assert all(now - then < 30 for now, then in zip((sys.getrefcount(one) for one in held), before))


def test_tensors_pass_by_ctypes_alone():
    if os.environ.get("SPTX_CALLS") == "ctypes":
        pytest.skip("SPTX_CALLS=ctypes")
    assert "passed" in passed_by_ctypes("torch and not gpu and not long", "test_torch.py", "test_speedtorch.py")


# ---- sptx.speedtorch ----

CLASSES = 7
OPTIMIZERS = [(torch.optim.SGD, {"momentum": 0.9}), (torch.optim.Adagrad, {}), (torch.optim.Adam, {"amsgrad": True})]


class Scripts:
    """Two equal pairs of factories, of which the second makes its calls by ctypes."""

    def __init__(self, kind, options, columns):
        self.pairs = []
        for compiled in (True, False):
            torch.manual_seed(3)
            model = torch.nn.Module()
            model.emb = torch.nn.Embedding(1, columns)
            optimizer = kind(model.parameters(), lr=0.1, **options)
            factories = (SpeedTorch.PytorchModelFactory(model.emb, CLASSES, columns, deviceType="cpu"),
                         SpeedTorch.PytorchOptimizerFactory(optimizer, CLASSES, columns, model, "emb", deviceType="cpu"))
            factories[0].normalDistributionInit(0, 1)
            factories[1].optInit()
            for factory in () if compiled else factories:
                factory.rows.table._calls = None
            if not compiled:
                factories[0]._duplicates._compiled = None
            self.pairs.append((model.emb, optimizer, factories))

    def same(self, ask):
        seen = []
        for emb, optimizer, factories in self.pairs:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always", sptx.SptxWarning)
                try:
                    said = ask(emb, optimizer, factories)
                except Exception as error:
                    said = type(error), str(error)
            state = {name: value.tolist() if isinstance(value, torch.Tensor) else value
                     for name, value in optimizer.state[emb.weight].items()}
            warned = [str(one.message) for one in heard if issubclass(one.category, sptx.SptxWarning)]
            kept = [factory.getNumpyVersion().tobytes() for factory in factories]
            seen.append((said, warned, emb.weight.tolist(), state, kept))
        assert seen[0] == seen[1]


@st.composite
def batches(draw):
    """Draws positives, and negatives or None, of any shape and order. Now and then an index is wrong."""
    def part():
        if not draw(st.integers(0, 5)):
            return draw(arrays("ids"))
        shape = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=2)))
        count = int(numpy.prod(shape))
        numbers = draw(st.lists(st.integers(0, CLASSES - 1), min_size=count, max_size=count))
        dtype, turn = draw(st.sampled_from(["i8", "i4"])), draw(st.sampled_from([numpy.asarray, numpy.transpose, numpy.flip]))
        wrap = draw(st.sampled_from([numpy.asarray] * 3 + [lambda a: torch.from_numpy(a.copy())]))
        return lambda: wrap(turn(numpy.array(numbers, dtype).reshape(shape)))

    return part(), draw(st.none()) if draw(st.booleans()) else part()


@compiled
@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(which=st.sampled_from(OPTIMIZERS), columns=st.sampled_from([1, 3]), given_other=st.booleans(),
                  seen=st.lists(batches(), min_size=1, max_size=3))
def test_scripts_for_speedtorch_do_the_same(which, columns, seen, given_other):
    scripts = Scripts(*which, columns)
    for positives, negatives in seen:
        batch = lambda: (positives(), None if negatives is None else negatives())  # noqa: E731

        def before(emb, optimizer, factories):
            for factory in factories:
                factory.beforeForwardPass(*batch())

        def step(emb, optimizer, factories):
            emb.weight.grad = torch.ones_like(emb.weight)
            optimizer.step()
            if given_other:  # the optimizer has put its state into another array
                state = optimizer.state[emb.weight]
                state.update({name: value.clone() for name, value in state.items() if isinstance(value, torch.Tensor)})

        def after(emb, optimizer, factories):
            for factory in factories:
                factory.afterOptimizerStep(*batch())

        for ask in (before, step, after):
            scripts.same(ask)


@compiled
def test_batches_are_done_by_the_compiled_calls(cpu):
    with sptx.Table(12, 3, "none", device=cpu) as table:
        rows = torch.from_numpy(table.fetch(range(12)))
        table.fetch(torch.tensor([1]))
        calls, few, more = table._calls, numpy.array([[5, 1]]), numpy.array([[0], [3]], "i4")
        for positives, negatives, ids in ((few, None, [5, 1]), (few, more, [5, 1, 0, 3]), (few[:, ::-1], more.T, [1, 5, 0, 3])):
            assert torch.equal(calls.gather(positives, negatives, 1), rows[ids])
            assert torch.equal(calls.gather(positives, negatives, 2), rows[ids + [6 + number for number in ids]])
        values = torch.arange(24.0).reshape(8, 3)
        assert calls.scatter(few, more, list(values.chunk(2))) is None
        assert numpy.array_equal(table.fetch([5, 1, 0, 3, 11, 7, 6, 9]), values.numpy())
        for wrong in (numpy.array([6]), numpy.array([-1]), numpy.array([1 << 40]), numpy.array([1.0]), torch.tensor([1]), [1]):
            assert calls.gather(wrong, None, 2) is NotImplemented and calls.gather(few, wrong, 2) is NotImplemented
            assert calls.scatter(wrong, None, [values[:1], values[1:2]]) is NotImplemented
        apart = [values[:2], values[2:4].clone()]
        for tensors in (apart, [values[:2], values[4:6]], [values[:2], values[2:4].numpy()], [values[:2], values[2:3]], [],
                        [values[:4]], [values[:2].double(), values[2:4].double()]):
            assert calls.scatter(few, None, tensors) is NotImplemented
        with pytest.raises(IndexError, match=r"ids\[1\] = 12 is no row of a table of 12"):
            calls.gather(numpy.array([1, 12]), None, 1)
        assert numpy.array_equal(table.fetch([5, 1, 0, 3]), values[:4].numpy())


@compiled
def test_indexes_that_lie_in_the_tables_own_memory_are_copied_first(cpu):
    with sptx.Table(12, 3, "none", init="zeros", device=cpu) as table:
        table.fetch(torch.tensor([1]))
        own = numpy.asarray(table.weights)[0].view("i4")
        values = torch.full((3, 3), 2.0)
        own[:] = 0, 5, 7
        assert table._calls.scatter(own, None, [values]) is None  # this changes row 0, which contains the indexes themselves
        assert (table.fetch([0, 5, 7]) == 2).all() and not table.fetch([1, 2, 3, 4, 6, 8]).any()


@compiled
def test_a_batch_of_one_elements_repeats_is_too_long(cpu):
    with sptx.Table(12, 3, "none", device=cpu) as table:
        table.fetch(torch.tensor([1]))
        many = numpy.broadcast_to(numpy.array([1]), (1 << 20, 1 << 20, 1 << 19))
        assert table._calls.gather(many, None, 1) is NotImplemented and table._calls.gather(many, many, 2) is NotImplemented
        assert table._calls.scatter(many, None, [torch.from_numpy(floats(1, 3))]) is NotImplemented
        assert _compiled.marks().twice(many, many) is NotImplemented
