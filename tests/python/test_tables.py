"""sptx.Tables: several tables that one call fetches and updates."""

import numpy
import pytest

import sptx


@pytest.fixture
def tables():
    return sptx.Tables({"user": 50, "item": 7, "day": 3}, dim=4, optimizer="adagrad", lr=0.1, device="cpu", init="uniform -1 1")


def test_a_call_for_all_is_a_call_for_each(tables):
    ids = [numpy.array([[3, 49], [3, 0]]), [6, 0, 6], numpy.array([], "i8")]
    fetched = tables.fetch(ids)
    assert [rows.shape for rows in fetched] == [(2, 2, 4), (3, 4), (0, 4)]
    for name, some, rows in zip(tables.names, ids, fetched):
        assert numpy.array_equal(tables[name].fetch(some), rows)
    gradients = [numpy.ones(rows.shape, "f4") * number for number, rows in enumerate(fetched, 1)]
    alone = [sptx.Table(rows, 4, "adagrad", lr=0.1, device="cpu", init="zeros") for rows in (50, 7, 3)]
    for table, name in zip(alone, tables.names):
        table.store(numpy.arange(len(table)), tables[name].fetch(numpy.arange(len(table))))
    tables.update(ids, gradients)
    for table, name, some, given in zip(alone, tables.names, ids, gradients):
        if len(some):
            table.update(some, given)
        assert numpy.array_equal(tables[name].fetch(numpy.arange(len(table))), table.fetch(numpy.arange(len(table))))
    tables.prefetch(ids)
    tables["day"].store([2], numpy.full((1, 4), 7, "f4"))
    assert (tables.table.fetch([59]) == 7).all() and tables["day"].shape == (3, 4) and len(tables) == 3


@pytest.mark.parametrize("call, kind, said", [
    (lambda t: t.fetch([[0], [7], [0]]), IndexError, "'item' are to be 0 .. 6, and one is 7"),
    (lambda t: t["day"].fetch([-1]), IndexError, "one is -1"),
    (lambda t: t.fetch([[0]]), ValueError, "ids of 1 tables are given, and there are 3"),
    (lambda t: t.update([[0], [1], [2]], [numpy.zeros((1, 4), "f4")] * 2), ValueError, "gradients of 2 tables"),
    (lambda t: t.store([[0], [1], [2]], [numpy.zeros((2, 4), "f4")] * 3), ValueError, "'user' have the shape"),
    (lambda t: t["nobody"], KeyError, "nobody"),
    (lambda t: sptx.Tables({}, dim=4), ValueError, "no tables"),
    (lambda t: sptx.Tables([3, 0], dim=4), ValueError, "table 1 has no rows"),
    (lambda t: sptx.Tables({"a": -3}, dim=4), ValueError, "rows of table 'a'")])
def test_what_is_wrong_is_named(tables, call, kind, said):
    with pytest.raises(kind, match=said):
        call(tables)


# ---- with PyTorch ----

@pytest.mark.torch
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_collection_of_bags_is_pytorchs_bags_side_by_side(device):
    import sptx.torch
    import torch

    torch.manual_seed(3)
    sizes, modes = {"user": 40, "item": 9, "day": 5}, {"user": "sum", "item": "mean", "day": "mean"}
    tables = sptx.Tables(sizes, dim=6, optimizer="sgd", lr=0.5, device=device, init="uniform -1 1")
    ours = sptx.torch.EmbeddingBagCollection(tables, modes)
    theirs = {name: torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(tables[name].fetch(numpy.arange(rows))), freeze=False,
                                                         mode=modes[name]) for name, rows in sizes.items()}
    for step in range(4):
        features = {"user": (torch.randint(40, (11,)), torch.tensor([0, 0, 5, 11])),  # the first and the last bag are empty
                    "item": torch.randint(9, (4, 3)), "day": (torch.randint(5, (4,)), torch.arange(4))}
        if step == 2:
            ours.prefetch(features)
        weight = torch.randn(4, 18)
        made = ours(features).cpu()
        wanted = torch.cat([theirs[name](*(feature if isinstance(feature, tuple) else (feature,)))
                            for name, feature in features.items()], 1)
        assert torch.allclose(made, wanted, atol=1e-6)
        (made * weight).sum().backward()
        (wanted * weight).sum().backward()
        with torch.no_grad():
            for module in theirs.values():
                module.weight -= 0.5 * module.weight.grad
                module.weight.grad = None
    for name, rows in sizes.items():
        assert numpy.allclose(tables[name].fetch(numpy.arange(rows)), theirs[name].weight.detach().numpy(), atol=1e-5)
    with pytest.raises(KeyError, match="features are"):
        ours({"user": torch.zeros(1, 1).long()})
    with pytest.raises(ValueError, match="bags"):
        ours({"user": torch.zeros(1, 1).long(), "item": torch.zeros(2, 1).long(), "day": torch.zeros(1, 1).long()})
    with pytest.raises(IndexError):
        ours({"user": torch.full((1, 1), 40), "item": torch.zeros(1, 1).long(), "day": torch.zeros(1, 1).long()})
