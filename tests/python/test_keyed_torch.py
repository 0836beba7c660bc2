"""sptx.torch.KeyedEmbedding and KeyedEmbeddingBag, and the example that trains a click model with them."""

import numpy
import pytest
import torch

import sptx
import sptx.torch
from conftest import TOP

pytestmark = pytest.mark.torch


def module_of(cpu, kind=sptx.torch.KeyedEmbedding, capacity=50, dim=4, optimizer="sgd", module=None, **options):
    return kind(sptx.KeyedTable(capacity, dim, optimizer, device=cpu, **{"lr": 1.0, **options}), **(module or {}))


def test_gradients_reach_the_rows_of_keys(cpu):
    embedding = module_of(cpu)
    keys = torch.tensor([[2 ** 62, -1], [2 ** 62, 7]])
    rows = embedding(keys)
    assert rows.shape == (2, 2, 4) and rows.requires_grad and len(embedding.table) == 3
    before = rows.detach().clone()
    (rows * torch.tensor([1.0, 2.0])[:, None, None]).sum().backward()
    after = embedding.table.find(keys)[0]
    assert torch.allclose(after, before - torch.tensor([[3.0, 1.0], [3.0, 2.0]])[..., None])
    assert embedding(["a", "b"]).shape == (2, 4) and "a" in embedding.table


def test_bags_are_those_of_torch(cpu):
    for mode in "sum", "mean":
        bags = module_of(cpu, sptx.torch.KeyedEmbeddingBag, module={"mode": mode, "padding_idx": 2 ** 64 - 1})
        keys, offsets = torch.tensor([5, -1, 2 ** 40, 5, 9]), torch.tensor([0, 3])
        rows = bags.table.find(torch.tensor([5, 2 ** 40, 9]))[0]
        pooled = bags(keys, offsets)
        share = 1 if mode == "sum" else 0.5
        assert torch.allclose(pooled, torch.stack([rows[0] + rows[1], rows[0] + rows[2]]) * share)
        pooled.sum().backward()
        assert torch.allclose(bags.table.find(torch.tensor([5, 2 ** 40, 9]))[0], rows - torch.tensor([[2.0], [1.0], [1.0]]) * share)
        assert -1 not in bags.table


def test_only_training_counts_keys(cpu):
    embedding = module_of(cpu)
    keys = torch.tensor([1, 2])
    with torch.no_grad():
        first = embedding(keys)
    assert torch.equal(embedding.eval()(keys), first) and not embedding(keys).requires_grad and len(embedding.table) == 0
    assert torch.equal(embedding.train()(keys), first) and len(embedding.table) == 2
    embedding.requires_grad_(False)
    embedding(torch.tensor([3]))
    assert len(embedding.table) == 2


def test_keys_that_wait_drop_their_gradients(cpu):
    embedding = module_of(cpu, admit=2)
    for _ in range(2):
        embedding(torch.tensor([6])).sum().backward()
    assert (embedding.table.dropped, embedding.table.waiting) == (1, 1)
    assert torch.allclose(embedding(torch.tensor([6])) + 1, torch.from_numpy(sptx.KeyedTable(1, 4, device=cpu).find([6])[0]))


def test_a_state_dict_finds_its_rows(cpu, tmp_path):
    embedding = module_of(cpu, optimizer="adam", evict="lru")
    embedding(torch.arange(40)).square().sum().backward()
    embedding.save(tmp_path / "rows")
    state = embedding.state_dict()
    again = module_of(cpu, optimizer="adam", evict="lru")
    again(torch.arange(9))
    again.load_state_dict(state)
    assert torch.equal(again.eval()(torch.arange(40)), embedding.eval()(torch.arange(40))) and again.table.steps == 1
    embedding.load_state_dict(state)
    embedding.train()(torch.arange(3))
    with pytest.warns(sptx.SptxWarning, match="saved nowhere"):
        embedding.state_dict()
    embedding.save(tmp_path / "rows")
    with pytest.raises(RuntimeError, match="holds others by now"):
        module_of(cpu, optimizer="adam", evict="lru").load_state_dict(state)


def test_rows_by_number_are_made_of_rows_by_key(cpu):
    embedding = module_of(cpu)
    embedding(torch.tensor([9, 2 ** 40, 4])).sum().backward()
    keys = embedding.table.keys()
    by_number = sptx.torch.Embedding.from_keyed(embedding.table, table={"device": cpu})
    assert keys.tolist() == [4, 9, 2 ** 40] and numpy.array_equal(by_number(torch.arange(3)), embedding.table.find(keys)[0])


def test_a_module_wants_its_kind_of_table(cpu):
    by_number, by_key = sptx.Table(3, 4, device=cpu), sptx.KeyedTable(3, 4, device=cpu)
    for kind, table in ((sptx.torch.KeyedEmbedding, by_number), (sptx.torch.KeyedEmbeddingBag, 5), (sptx.torch.Embedding, by_key),
                        (sptx.torch.EmbeddingBag, by_key)):
        with pytest.raises(TypeError, match="is over an sptx"):
            kind(table)
    with pytest.raises(TypeError, match="store"):
        sptx.torch.KeyedEmbedding.from_pretrained(torch.zeros(3, 4))
    with pytest.raises(TypeError, match="prefetch"):
        sptx.torch.KeyedEmbedding(by_key).prefetch(torch.tensor([1]))


def test_keys_on_tensors_are_those_of_arrays(cpu):
    table = sptx.KeyedTable(9, 2, device=cpu)
    rows, found = table.find(torch.tensor([[3, -1]]))
    assert isinstance(rows, torch.Tensor) and found.dtype == torch.bool and rows.shape == (1, 2, 2)
    assert numpy.array_equal(rows, table.fetch(numpy.array([[3, 2 ** 64 - 1]], numpy.uint64)))
    assert table.fetch(torch.tensor([3], dtype=torch.int32), dtype=torch.bfloat16).dtype == torch.bfloat16


def test_the_click_model_beats_a_constant_and_its_copy_follows(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(TOP / "src/python/examples/clicks"))
    torch.set_num_threads(2)
    days = __import__("clicks").main(["--device=cpu", "--days=3", "--events=10000", "--capacity=5000"])
    assert [day["same"] for day in days] == [True] * 3 and len(capsys.readouterr().out.splitlines()) == 4
    assert all(day["logloss"] < day["constant"] - 0.01 for day in days[1:])
    assert days[-1]["left"] > 0 and days[-1]["keys"] <= 5000


@pytest.mark.parametrize("train", [True, False])
def test_keys_that_are_traced_are_refused(cpu, train):
    module = module_of(cpu).train(train)
    with pytest.raises(TypeError, match="keys are being traced"):
        torch.jit.trace(module, (torch.tensor([1, 2]),), check_trace=False)
    with pytest.raises(ValueError, match="keys lie on 'meta'"):
        module.table.fetch(torch.empty(2, dtype=torch.int64, device="meta"))
    assert len(module.table) == 0


def test_a_state_dict_of_another_kind_of_table_is_refused(cpu):
    by_key, adam = module_of(cpu), module_of(cpu, optimizer="adam")
    by_number = sptx.torch.Embedding(sptx.Table(50, 4, device=cpu))
    for module, other in (by_key, by_number), (by_number, by_key), (by_key, adam), (adam, by_key):
        with pytest.raises(RuntimeError, match="another kind of table"):
            module.load_state_dict(other.state_dict())


@pytest.mark.parametrize("other", [{"seed": 2}, {"dtype": "int8"}, {"weight_decay": 0.5}])
def test_a_state_dict_tells_tables_with_other_options_by_the_same_calls(cpu, other):
    module, like, unlike = module_of(cpu), module_of(cpu), module_of(cpu, **other)
    for one in module, like, unlike:
        one(torch.tensor([1, 2]))
    like.load_state_dict(module.state_dict())
    with pytest.raises(RuntimeError, match="keys and rows differ"):
        unlike.load_state_dict(module.state_dict())


def test_the_padding_key_gets_no_row(cpu):
    embedding = module_of(cpu, capacity=2, module={"padding_idx": 0})
    rows = embedding(torch.tensor([[0, 5], [9, 0]]))
    assert (rows[[0, 1], [0, 1]] == 0).all() and torch.equal(rows.detach()[[0, 1], [1, 0]], embedding.table.find(torch.tensor([5, 9]))[0])
    rows.sum().backward()
    assert embedding.table.keys().tolist() == [5, 9] and embedding(torch.tensor([0, 0])).shape == (2, 4) and embedding(torch.tensor(0)).shape == (4,)
    assert (embedding.eval()(torch.tensor([0])) == 0).all()
