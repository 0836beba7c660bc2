"""Compares sptx.torch with torch.nn: bags, modules made from vectors, accumulated gradients, mixed precision, checkpoints, workers
of data loaders."""

import json
import math

import numpy
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import sptx
from conftest import known_rows

pytestmark = pytest.mark.torch


def known():
    return torch.from_numpy(known_rows(10, 3))


# ---- bags ----

IDS = torch.tensor([[1, 2, 2], [4, 0, 9], [4, 4, 4]])
FORMS = [(IDS, None, False), (IDS.reshape(-1), torch.tensor([0, 4, 4, 7]), False), (IDS.reshape(-1), torch.tensor([0, 4, 4, 9]), True),
         (IDS.reshape(-1).int(), torch.tensor([0, 8], dtype=torch.int32), False),
         (torch.zeros(0).long(), torch.tensor([0, 0]), False)]


@pytest.mark.parametrize("padding", [None, 4])
@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("form", range(len(FORMS)))
def test_bags_are_pytorchs(cpu, form, mode, padding):
    ids, offsets, last = FORMS[form]
    table = sptx.Table(10, 3, "sgd", lr=1.0, device=cpu)
    table.store(range(10), known_rows(10, 3))
    ours = sptx.torch.EmbeddingBag(table, mode, padding, last)
    theirs = torch.nn.EmbeddingBag.from_pretrained(known(), freeze=False, mode=mode, include_last_offset=last, padding_idx=padding)
    given = ids.long(), None if offsets is None else offsets.long()
    out, wanted = ours(ids, offsets), theirs(*given)
    assert out.shape == wanted.shape and torch.allclose(out, wanted)
    with torch.no_grad():
        assert torch.equal(ours(ids, offsets), out)
    (out ** 2).sum().backward()
    (wanted ** 2).sum().backward()
    assert torch.allclose(known() - torch.from_numpy(table.weights.copy()), theirs.weight.grad, atol=1e-5)
    assert "mode=" + mode in repr(ours)


def test_bags_of_nothing_are_zeros(table):
    out = sptx.torch.EmbeddingBag(table)(torch.zeros(2, 0).long())
    assert out.tolist() == [[0, 0, 0], [0, 0, 0]]
    out.sum().backward()


@pytest.mark.parametrize("padding", [None, 4])
def test_bags_of_weighted_rows(table, padding):
    weights, theirs_weights = (torch.arange(9.).reshape(3, 3).requires_grad_() for _ in range(2))
    ours = sptx.torch.EmbeddingBag(table, "sum", padding)
    theirs = torch.nn.EmbeddingBag.from_pretrained(known(), freeze=False, mode="sum", padding_idx=padding)
    out, wanted = ours(IDS, per_sample_weights=weights), theirs(IDS, per_sample_weights=theirs_weights)
    assert torch.allclose(out, wanted)
    (out ** 2).sum().backward()
    (wanted ** 2).sum().backward()
    kept = IDS != padding  # PyTorch's own gradient of padded rows' weights is that of their rows
    assert torch.allclose(weights.grad[kept], theirs_weights.grad[kept])
    assert torch.allclose(known() - torch.from_numpy(table.weights), theirs.weight.grad, rtol=1e-4)


@pytest.mark.parametrize("mode, ids, offsets, weights, said", [
    ("max", IDS, None, None, "take .max"), ("sum", IDS, torch.tensor([0]), None, "without offsets"),
    ("sum", IDS[0], None, None, "are not given"), ("sum", IDS[0], torch.tensor([1]), None, "begin with 0"),
    ("sum", IDS[0], torch.tensor([0, 2, 1]), None, "do not fall"), ("sum", IDS[0], torch.tensor([0, 4]), None, "offsets of 3 ids"),
    ("mean", IDS, None, torch.ones(3, 3), "mode 'sum'"), ("sum", IDS, None, torch.ones(3), "the ids' shape"),
])
def test_bags_that_are_none_are_named(table, mode, ids, offsets, weights, said):
    with pytest.raises(ValueError, match=said):
        sptx.torch.EmbeddingBag(table, mode)(ids, offsets, weights)
    assert table.steps == 0


# ---- from vectors ----

@pytest.mark.parametrize("kind", [sptx.torch.Embedding, sptx.torch.EmbeddingBag])
def test_a_module_from_vectors(kind):
    for vectors in (known(), known_rows(10, 3), known().requires_grad_()):
        module = kind.from_pretrained(vectors, table={"device": "cpu"})
        assert torch.equal(module(torch.tensor([[3]])).reshape(-1), known()[3]) and not module(torch.tensor([[3]])).requires_grad
    module = kind.from_pretrained(known(), freeze=False, padding_idx=-1, optimizer="sgd", table={"device": "cpu", "lr": 0.5})
    module(torch.tensor([[3, 9]])).sum().backward()
    assert module.padding_idx == 9 and module.lr == 0.5 and module.table.steps == 1
    for vectors, kind_of_error in ((known().double(), TypeError), (known()[0], ValueError), ([1, 2], ValueError)):
        with pytest.raises(kind_of_error):
            kind.from_pretrained(vectors, table={"device": "cpu"})
    with pytest.raises(TypeError):
        kind.from_pretrained(known(), table={"device": "cpu"}, max_norm=1.0)


# ---- gradients that wait, and scaled ones ----

def test_accumulated_gradients_are_one_update(cpu):
    tables = [sptx.Table(10, 3, "adagrad", lr=0.1, device=cpu) for _ in range(2)]
    one, several = sptx.torch.Embedding(tables[0]), sptx.torch.Embedding(tables[1], accumulate=True)
    before = tables[1].weights.copy()
    batches = [torch.tensor([[1, 2], [1, 1]]), torch.tensor([3, 1]), torch.tensor([2], dtype=torch.int32)]
    for ids in batches:
        (several(ids) ** 2).sum().backward()
        ids += 1  # a data loader may reuse the memory of the ids
    assert tables[1].steps == 0 and numpy.array_equal(before, tables[1].weights)
    assert several.step() is True and tables[1].steps == 1 and several.step() is True and tables[1].steps == 1
    (one(torch.cat([ids.reshape(-1).long() - 1 for ids in batches])) ** 2).sum().backward()
    assert numpy.array_equal(tables[0].weights, tables[1].weights) and not numpy.array_equal(before, tables[1].weights)
    several(batches[0]).sum().backward()
    several.zero_grad()
    assert several.step() is True and tables[1].steps == 1


class Scaler:
    """The part of torch.cuda.amp.GradScaler that the test needs: without CUDA, PyTorch's own is turned off."""

    def __init__(self, scale):
        self.scale = scale

    def get_scale(self):
        return self.scale


@pytest.mark.parametrize("accumulate", [False, True])
def test_a_scaler_is_taken_out(table, accumulate):
    emb = sptx.torch.Embedding(table, accumulate=accumulate, scaler=Scaler(1024.0))
    (emb(torch.tensor([1])).sum() * 1024).backward()
    assert not accumulate or emb.step() is True
    assert table.fetch(1).tolist() == [0, 0.25, 0.5]
    (emb(torch.tensor([2, 3])) * torch.tensor([[1.0], [float("inf")]])).sum().backward()
    assert not accumulate or emb.step() is False
    assert numpy.array_equal(table.fetch([2, 3]), known_rows(10, 3)[2:4]) and table.steps == 1


def scaler_of_torch():
    """Returns PyTorch's own scaler. If this PyTorch has none for the CPU, it is turned off."""
    kind = getattr(getattr(torch, "amp", None), "GradScaler", None)
    return kind("cpu", init_scale=1024.0) if kind is not None else torch.cuda.amp.GradScaler(enabled=False)


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_a_script_with_mixed_precision_and_torchs_scaler(table, kind):
    scaler, linear = scaler_of_torch(), torch.nn.Linear(3, 1, bias=False)
    emb, optimizer = getattr(sptx.torch, kind)(table, scaler=scaler), torch.optim.SGD(linear.parameters(), lr=0.5)
    for step in range(3):
        rows, weight = table.fetch([1, 2]), linear.weight.detach().clone()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = linear(emb(torch.tensor([[1], [2]]))).float().sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert table.steps == step + 1 and numpy.allclose(table.fetch([1, 2]), rows - weight.numpy(), atol=2e-2)
        assert torch.allclose(linear.weight.detach(), weight - 0.5 * torch.from_numpy(rows.sum(0)), atol=5e-2)


def test_autocast_leaves_rows_float32(table):
    linear, emb = torch.nn.Linear(3, 2, bias=False), sptx.torch.Embedding(table)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = emb(torch.tensor([1, 2]))
        assert x.dtype == torch.float32 and linear(x).dtype == torch.bfloat16
        bag = sptx.torch.EmbeddingBag(table)(torch.tensor([[1, 2]]))
        assert bag.dtype == torch.float32
        loss = linear(x).float().sum() + bag.sum()
    loss.backward()
    assert table.steps == 2 and not numpy.array_equal(table.fetch(1), known_rows(10, 3)[1])


# ---- checkpoints ----

def trained_module(cpu, seed=1, steps=3, optimizer="adagrad"):
    emb = sptx.torch.Embedding(sptx.Table(100, 4, optimizer, lr=0.1, seed=seed, device=cpu))
    for step in range(steps):
        (emb(torch.arange(step, 100, 3)) ** 2).sum().backward()
    return emb


def all_of(table):
    return [numpy.asarray(table.view(field)).copy() for field in table.fields]


def test_a_state_dict_takes_its_rows_from_where_they_were_saved(cpu, tmp_path):
    emb = trained_module(cpu)
    emb.save(tmp_path / "rows.npy")
    torch.save(torch.nn.Sequential(emb, torch.nn.Linear(4, 1)).state_dict(), tmp_path / "model.pt")
    other = torch.nn.Sequential(trained_module(cpu, 2, 1), torch.nn.Linear(4, 1))
    other.load_state_dict(torch.load(tmp_path / "model.pt"))
    assert all(numpy.array_equal(a, b) for a, b in zip(all_of(emb.table), all_of(other[0].table))) and other[0].table.steps == 3
    other.load_state_dict(torch.load(tmp_path / "model.pt"))  # the rows are there already
    same = sptx.torch.Embedding(sptx.Table.load(tmp_path / "rows.npy", "adagrad", device=cpu))
    (tmp_path / "rows.npy").unlink()
    same.load_state_dict(emb.state_dict())
    assert same.table.steps == 3


def refused(emb, state, said):
    before = all_of(emb.table)
    with pytest.raises(RuntimeError, match=said):
        emb.load_state_dict(state)
    assert all(numpy.array_equal(a, b) for a, b in zip(before, all_of(emb.table)))


def test_rows_that_differ_are_never_taken_for_the_same(cpu, tmp_path):
    emb, path = trained_module(cpu), tmp_path / "rows.npy"
    with pytest.warns(sptx.SptxWarning, match="holds no rows, .* call save"):
        unsaved = emb.state_dict()
    emb.save(path)
    state = emb.state_dict()
    emb.load_state_dict(unsaved)
    emb.table.store([7], emb.table.fetch([7]) + 1)  # changes a single row
    refused(emb, unsaved, "weights differ.*were not saved before.*save\\(path\\)")
    emb.load_state_dict(state)
    emb.load_state_dict(unsaved)
    emb.table.view("sum")[7, 0] += 1  # changes a single number of the optimizer's state
    refused(emb, unsaved, "sum differ")
    emb.table.restore(path)
    emb(torch.arange(10)).sum().backward()
    emb.save(path)
    refused(emb, state, "holds others by now")
    path.unlink()
    refused(emb, state, "is gone")
    refused(trained_module(cpu, optimizer="sgd", steps=0), unsaved, "weights differ")
    refused(sptx.torch.Embedding(sptx.Table(100, 5, device=cpu)), unsaved, "100 rows of 4 columns, and this one has 100 of 5")
    refused(emb, {key: value for key, value in unsaved.items() if "extra" not in key}, "Missing key")
    refused(emb, {**unsaved, "_extra_state": torch.tensor([1, 2], dtype=torch.uint8)}, "cannot be read")


def test_rows_that_nobody_trained_need_no_file(cpu):
    model = torch.nn.Sequential(trained_module(cpu, steps=0), torch.nn.Linear(4, 1))
    model.load_state_dict(model.state_dict())
    about = json.loads(bytes(model.state_dict()["0._extra_state"].tolist()))
    assert about["rows"] == 100 and about["path"] == "" and set(about["fingerprint"]) == {"weights", "sum"}


def test_restoring_wants_the_tables_own_shape(cpu, tmp_path):
    trained_module(cpu).save(tmp_path / "rows.npy")
    for rows, dim in ((99, 4), (100, 3)):
        with pytest.raises(ValueError, match="has 100 rows of 4 columns, and the table"):
            sptx.Table(rows, dim, "adagrad", device=cpu).restore(tmp_path / "rows.npy")
    with pytest.raises(OSError):
        sptx.torch.Embedding(sptx.Table(100, 4, device=cpu)).load(tmp_path / "none.npy")
    only = sptx.Table(100, 4, "none", device=cpu)
    only.restore(tmp_path / "rows.npy")
    assert numpy.array_equal(only.weights, trained_module(cpu).table.weights)


# ---- loaders ----

class Ids(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor([index, 7 - index])


class Rows(Ids):
    def __init__(self, table):
        self.table = table

    def __getitem__(self, index):
        return self.table.fetch(torch.tensor([index]))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loaders_workers_make_ids(table, method):
    emb = sptx.torch.Embedding(table)
    loader = DataLoader(Ids(), batch_size=2, num_workers=2, multiprocessing_context=method, persistent_workers=True)
    for _ in range(2):
        for ids in loader:
            emb(ids).sum().backward()
    assert table.steps == 8 and table.fetch([0, 7])[:, 0].tolist() == [0 - 4, 7 - 4]


def test_loaders_workers_that_ask_for_rows_are_told(table):
    with pytest.raises(RuntimeError, match="must open its own"):
        list(DataLoader(Rows(table), num_workers=1, multiprocessing_context="fork"))
    with pytest.raises(TypeError, match="a table is not copied or pickled; save\\(\\) it"):
        list(DataLoader(Rows(table), num_workers=1, multiprocessing_context="spawn"))
    assert table.fetch(0) is not None


# ---- compiled ----

@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this PyTorch has no torch.compile")
@pytest.mark.parametrize("accumulate", [False, True])
def test_compiled_bags_are_those_that_are_not(table, accumulate):
    bag, linear = sptx.torch.EmbeddingBag(table, accumulate=accumulate), torch.nn.Linear(3, 1)
    compiled = torch.compile(torch.nn.Sequential(bag, linear), backend="aot_eager")
    for step in range(3):
        wanted = linear(torch.nn.functional.embedding_bag(IDS, torch.from_numpy(table.weights.copy()), mode="mean"))
        out = compiled(IDS)
        assert torch.allclose(out, wanted)
        out.sum().backward()
        bag.step()
        assert table.steps == step + 1


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
@pytest.mark.parametrize("use", [lambda emb: torch.optim.SGD(emb.parameters(), lr=0.1),
                                 lambda emb: torch.nn.utils.clip_grad_norm_(emb.parameters(), 1.0)])
def test_what_cannot_reach_the_rows_is_said_once(table, monkeypatch, kind, use):
    monkeypatch.setattr(sptx.torch._Lookups, "_told", False)
    emb = getattr(sptx.torch, kind)(table)
    model = torch.nn.Sequential(emb, torch.nn.Linear(3, 1))
    torch.optim.SGD(model.parameters(), lr=0.1)  # a model's parameters() give no warning
    emb.requires_grad_(False).requires_grad_(True).zero_grad()
    with pytest.warns(sptx.SptxWarning, match="cannot reach the table's rows") as said:
        use(emb)
    assert said[0].filename == __file__
    use(emb)  # a second warning would fail the test


class Asked(Dataset):
    """A data set whose workers ask a run for vectors."""

    def __init__(self, run):
        self.run = run

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.from_numpy(self.run.vector(self.run.words[index]))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_loader_ask_a_run(tmp_path, method):
    run = sptx.fit([["a", "b", "c", "d"] * 5] * 9, tmp_path / "run", dim=3, device="cpu", keys={"examples.subsample": 0})
    loader = DataLoader(Asked(run), batch_size=2, num_workers=2, multiprocessing_context=method)
    assert torch.equal(torch.cat(list(loader)), torch.from_numpy(run.vectors()))


# ---- n-grams ----

TOKENS = torch.tensor([[5, 7, 7, 2, 5, 7], [0, 7, 7, 2, 9, 9]])


def split_mix(seed, number):
    """Returns a number of SplitMix64, from 1."""
    mixed = (seed + number * 0x9E3779B97F4A7C15) % 2**64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
    return mixed ^ mixed >> 31


def named_by_hand(memory, tokens):
    """Returns the rows that the formula in the docstring of NgramEmbedding gives, computed with Python's integers."""
    longest = max(memory.orders)
    rows, multipliers = [], [[split_mix(memory.seed, part * longest + back + 1) | 1 for back in range(longest)]
                             for part in range(len(memory.orders) * memory.heads)]
    for line in tokens.tolist():
        rows.append([])
        for t in range(len(line)):
            rows[-1].append([])
            for part, of_part in enumerate(multipliers):
                order = memory.orders[part // memory.heads]
                words = [line[t - back] + 1 if t >= back else 0 for back in range(order)]
                mixed = sum(word * a for word, a in zip(words, of_part)) % 2**64
                mixed = (mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15 % 2**64
                rows[-1][-1].append(part * memory.part_rows + (mixed >> 33) * memory.part_rows // 2**31)
    return rows


@pytest.mark.parametrize("orders, heads, rows", [((2, 3), 2, 1000), ((1,), 3, 50), ((3, 1, 5), 1, 10), ((2,), 1, 1)])
def test_ngrams_are_named_by_the_formula(cpu, orders, heads, rows):
    memory = sptx.torch.NgramEmbedding(sptx.Table(rows, 3, device=cpu), orders, heads, seed=-5)
    named = memory.rows_named(TOKENS)
    assert named.tolist() == named_by_hand(memory, TOKENS) and named.max() < rows
    out = memory(TOKENS)
    assert out.shape == (2, 6, len(orders) * heads * 3)
    assert torch.equal(out, torch.from_numpy(memory.table.weights.copy())[named].flatten(2))


def test_ngrams_are_causal_and_come_in_parts(cpu):
    memory = sptx.torch.NgramEmbedding(sptx.Table(10_000, 3, device=cpu), (2, 3))
    whole, named = memory(TOKENS), memory.rows_named(TOKENS)
    assert torch.equal(torch.cat([memory(TOKENS[:, t:t + 1], before=TOKENS[:, :t]) for t in range(6)], 1), whole)
    assert torch.equal(memory.rows_named(TOKENS[:, 4:], TOKENS[:, 2:4]), named[:, 4:])  # as many as the longest needs
    other = TOKENS.clone()
    other[:, 4] = 1
    assert torch.equal(memory(other)[:, :4], whole[:, :4]) and not torch.equal(memory(other)[:, 4:], whole[:, 4:])
    assert torch.equal(named[0, 2:4], named[1, 2:4]) is False and torch.equal(named[0, 3], named[1, 3])  # the same three tokens
    assert not torch.equal(memory.rows_named(torch.tensor([[0, 5]])), memory.rows_named(torch.tensor([[5]])).repeat(1, 2, 1))


def test_ngrams_spread_evenly(cpu):
    memory = sptx.torch.NgramEmbedding(sptx.Table(64 * 64, 1, device=cpu), (2,), 1)
    named = memory.rows_named(torch.cartesian_prod(torch.arange(256), torch.arange(256)))[:, 1].reshape(-1)
    counts = torch.bincount(named, minlength=64 * 64).double()  # 16 expected in each; of 4,096 the squares sum to 4,095 +- 90
    assert abs(float(((counts - 16) ** 2 / 16).sum()) - 4095) < 600


def test_nothing_tells_which_rows_rprop_has_updated(cpu):
    """Its state begins with the rate, not with 0."""
    memory = sptx.torch.NgramEmbedding(sptx.Table(400, 2, "rprop", device=cpu, init="zeros"), (2,), 2)
    assert math.isnan(memory.usage()["touched"]) and math.isnan(memory.usage()["collisions"])


def test_ngrams_are_trained(cpu):
    table = sptx.Table(4000, 2, "adagrad", lr=0.5, device=cpu, init="zeros", dtype="bfloat16")
    memory = sptx.torch.NgramEmbedding(table, (2,), 2)
    assert memory.usage() == {"touched": 0.0, "collisions": 0.0, "norm": 0.0, "norm_most": 0.0}
    memory(TOKENS).sum().backward()
    rows = memory.rows_named(TOKENS).reshape(-1).unique()
    assert (numpy.flatnonzero(numpy.asarray(table.fetch(range(4000))).any(1)) == rows.numpy()).all()
    found = memory.usage()
    assert found["touched"] == len(rows) / 4000 and 0 < found["collisions"] < 0.01 and 0 < found["norm"] <= found["norm_most"]
    before = memory(TOKENS)
    with torch.no_grad():
        memory(TOKENS)
    memory.eval().requires_grad_(False)
    assert torch.equal(memory(TOKENS), before) and not memory(TOKENS).requires_grad


def test_ngrams_of_half_precision(cpu):
    memory = sptx.torch.NgramEmbedding(sptx.Table(4000, 2, device=cpu, lr=1.0), dtype="bfloat16")
    out = memory(TOKENS)
    assert out.dtype == torch.bfloat16 and torch.equal(out, memory.rows_of(memory.rows_named(TOKENS)).bfloat16().flatten(2))
    out.sum().backward()
    assert memory(TOKENS).float().mean() < -0.9


def test_ngrams_in_a_checkpoint(cpu, tmp_path):
    def made(seed=1, **more):
        return sptx.torch.NgramEmbedding(sptx.Table(4000, 2, "adagrad", device=cpu), seed=seed, **more)

    memory = made()
    memory(TOKENS).sum().backward()
    memory.save(tmp_path / "rows.npy")
    held = memory.state_dict()
    other = made()
    other.load_state_dict(held)
    assert torch.equal(other(TOKENS), memory(TOKENS))
    for wrong, said in (made(2), "seed = 1, and this module has 2"), (made(heads=4), "heads = 8"), (made(orders=(2, 4)), "orders ="):
        with pytest.raises(RuntimeError, match=said):
            wrong.load_state_dict(held)


@pytest.mark.parametrize("given, kind, said", [
    ({"orders": ()}, ValueError, "wanted an order or more"), ({"orders": (0, 2)}, ValueError, "each from 1"), ({"heads": 0}, ValueError, "a head or more"),
    ({"heads": 2.5}, TypeError, "float"), ({"heads": 64}, ValueError, "a table of 100 rows has 0 for each of 128 orders"),
    ({"dtype": "int8"}, ValueError, "none of float32, float16 and bfloat16")])
def test_ngrams_that_cannot_be_are_refused(cpu, given, kind, said):
    with pytest.raises(kind, match=said):
        sptx.torch.NgramEmbedding(sptx.Table(100, 2, device=cpu), **given)(TOKENS)
    for tokens in torch.zeros(2, 3), TOKENS[0], TOKENS > 2:
        with pytest.raises((ValueError, TypeError)):
            sptx.torch.NgramEmbedding(sptx.Table(100, 2, device=cpu))(tokens)


def test_a_memory_has_the_type_of_autocast(cpu):
    memory = sptx.torch.NgramEmbedding(sptx.Table(640, 1, device=cpu), (2,), 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rows = memory(torch.tensor([[1, 2]]))
    assert rows.dtype == torch.bfloat16 and memory(torch.tensor([[1, 2]])).dtype == torch.float32
    rows.sum().backward()
    assert memory.table.steps == 1
