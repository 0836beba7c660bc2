"""sptx.Tables: several tables that one call fetches and updates."""

import subprocess
import sys

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
    assert list(tables) == ["user", "item", "day"] and "item" in tables and "nobody" not in tables


@pytest.mark.parametrize("call, kind, said", [
    (lambda t: t.fetch([[0], [7], [0]]), IndexError, "'item' are to be 0 .. 6, and one is 7"),
    (lambda t: t["day"].fetch([-1]), IndexError, "one is -1"),
    (lambda t: t.fetch([[0]]), ValueError, "ids of 1 tables are given, and there are 3"),
    (lambda t: t.update([[0], [1], [2]], [numpy.zeros((1, 4), "f4")] * 2), ValueError, "gradients of 2 tables"),
    (lambda t: t.store([[0], [1], [2]], [numpy.zeros((2, 4), "f4")] * 3), ValueError, "'user' have the shape"),
    (lambda t: t.fetch({"user": [0], "item": [1], "day": [2]}), TypeError, "ids are a dict"),
    (lambda t: sptx.Tables([3, 2], dim=4).fetch({1: [0], 0: [0]}), TypeError, "ids are a dict"),
    (lambda t: t.update([[0], [1], [2]], dict.fromkeys(range(3))), TypeError, "gradients are a dict"),
    (lambda t: t["nobody"], KeyError, "nobody"),
    (lambda t: sptx.Tables([2**63, 2**63 + 5], dim=4), ValueError, "rows"),
    (lambda t: sptx.Tables({}, dim=4), ValueError, "no tables"),
    (lambda t: sptx.Tables([3, 0], dim=4), ValueError, "table 1 has no rows"),
    (lambda t: sptx.Tables({"a": -3}, dim=4), ValueError, "rows of table 'a'")])
def test_what_is_wrong_is_named(tables, call, kind, said):
    with pytest.raises(kind, match=said):
        call(tables)


# ---- tables by key ----

def by_key(seed=0, **options):
    return sptx.Tables({"user": sptx.KeyedTable(40, 4, "adagrad", lr=0.1, evict="lru", device="cpu", seed=seed),
                        "ad": sptx.KeyedTable(30, 3, "ftrl", admit=2, device="cpu", seed=seed), 7: sptx.KeyedTable(5, 1, device="cpu"), **options})


def use(tables, step):
    keys = [numpy.arange(step, step + 20), [1, 1, step], [3]]
    rows = tables.fetch(keys)
    tables.update(keys, [numpy.ones(some.shape, "f4") for some in rows])
    return keys, rows


def files(folder):
    return {path.name.split("-")[0]: path.read_bytes() for path in folder.iterdir() if path.suffix == ".keyed"}


def test_tables_by_key_are_called_and_saved_together(tmp_path):
    tables, alone = by_key(), [by_key()["user"], by_key()["ad"], by_key()[7]]
    assert isinstance(tables, sptx.KeyedTables) and list(tables) == ["user", "ad", 7] and len(tables) == 3 and 7 in tables
    for step in range(3):
        keys, rows = use(tables, step)
        for table, some, wanted in zip(alone, keys, rows):
            assert numpy.array_equal(table.fetch(some), wanted)
            table.update(some, numpy.ones(wanted.shape, "f4"))
    assert [tables.rows(name) for name in tables] == list(map(len, alone)) and tables.find([[1], [99], [3]])[1][1].tolist() == [False]
    tables.save(tmp_path / "monday")
    marks = tables.mark()
    use(tables, 9)
    tables["ad"].remove([1])
    tables.save_changes(tmp_path / "tuesday", since=marks)
    tables.barrier()
    serving = sptx.KeyedTables.load(tmp_path / "monday", device="cpu")
    serving.apply_changes(tmp_path / "tuesday")
    tables.save(tmp_path / "a")
    serving.save(tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b") and len(files(tmp_path / "a")) == 3
    with pytest.raises(sptx.Error, match="applied already"):
        serving.apply_changes(tmp_path / "tuesday")
    tables.save(tmp_path / "monday")  # replaces it
    assert files(tmp_path / "monday") == files(tmp_path / "a") and len(list((tmp_path / "monday").iterdir())) == 4
    use(tables, 20)
    tables.restore(tmp_path / "monday")
    tables.save(tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_changes_that_one_table_refuses_change_none(tmp_path):
    tables = by_key()
    use(tables, 0)
    tables.save(tmp_path / "whole")
    marks = tables.mark()
    use(tables, 1)
    tables.save_changes(tmp_path / "changes", since=marks)
    serving = sptx.KeyedTables.load(tmp_path / "whole", device="cpu")
    serving[7].store([1], numpy.ones((1, 1), "f4"))
    serving.save(tmp_path / "before")
    with pytest.raises(sptx.Error, match="table 7 in .* follow another state than the table's; nothing is changed"):
        serving.apply_changes(tmp_path / "changes")
    serving.save(tmp_path / "after")
    assert files(tmp_path / "before") == files(tmp_path / "after")
    other = by_key(more=sptx.KeyedTable(5, 1, device="cpu"))
    for call, kind, said in ((lambda: other.restore(tmp_path / "whole"), ValueError, "these are"),
                             (lambda: tables.restore(tmp_path / "changes"), sptx.Error, "has changes of tables"),
                             (lambda: tables.apply_changes(tmp_path / "whole"), sptx.Error, "has whole tables"),
                             (lambda: tables.save_changes(tmp_path / "x", since={}), TypeError, "no mark of these tables"),
                             (lambda: tables.save(tmp_path), sptx.Error, "is no file of tables"),
                             (lambda: tables.save(tmp_path / "no" / "folder"), OSError, "No such file"),
                             (lambda: tables.table, TypeError, "tables of their own"),
                             (lambda: tables.fetch([[1]]), ValueError, "keys of 1 tables"),
                             (lambda: tables.prefetch("ad", [1]), TypeError, "have keys and no numbers"),
                             (lambda: sptx.KeyedTables({"a": tables[7], "b": 3}), TypeError, "'b' is no KeyedTable"),
                             (lambda: sptx.KeyedTables([tables[7], tables[7]]), ValueError, "two names"),
                             (lambda: sptx.KeyedTables([]), TypeError, "no tables")):
        with pytest.raises(kind, match=said):
            call()
    (tmp_path / "whole" / "tables.json").write_text("[]")
    with pytest.raises(sptx.Error, match="is no list of tables by key"):
        sptx.KeyedTables.load(tmp_path / "whole")
    tables.close()


def test_a_killed_save_leaves_the_older_tables(tmp_path):
    tables = by_key()
    use(tables, 0)
    tables.save(tmp_path / "whole")
    before = files(tmp_path / "whole")
    use(tables, 1)
    code = '''
import sys, os, sptx
tables = sptx.KeyedTables.load(sys.argv[1], device="cpu")
tables.update([[5], [1], [3]], [[[1] * 4], [[1] * 3], [[1]]])
save = tables["ad"].save
tables["ad"].save = lambda path: (save(path), open(path + ".7-%016x.partial" % 3, "w").close(), os._exit(9))
tables.save(sys.argv[1])
'''
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "whole")]).returncode == 9
    assert len(list((tmp_path / "whole").iterdir())) == 7  # three tables and their list, two tables of the killed save, a partial file
    again = sptx.KeyedTables.load(tmp_path / "whole", device="cpu")
    again.save(tmp_path / "again")
    assert files(tmp_path / "again") == before
    tables.save(tmp_path / "whole")
    assert len(list((tmp_path / "whole").iterdir())) == 4


def test_a_save_that_fails_leaves_what_was_there(tmp_path):
    tables = by_key()
    tables["ad"].fetch([1, 1])
    tables["ad"].store([1], numpy.full((1, 3), numpy.inf, "f4"))
    with pytest.raises(sptx.Error, match="infinity or NaN"):
        tables.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    tables["ad"].remove([1])
    tables.save(tmp_path / "old")
    before = {path.name: path.read_bytes() for path in (tmp_path / "old").iterdir()}
    tables["ad"].store([1], numpy.full((1, 3), numpy.inf, "f4"))
    with pytest.raises(sptx.Error, match="infinity or NaN"):
        tables.save(tmp_path / "old")
    assert {path.name: path.read_bytes() for path in (tmp_path / "old").iterdir()} == before


def test_processes_save_to_a_folder_and_read_it_at_once(tmp_path):
    code = """
import sys, sptx
tables = sptx.Tables([sptx.KeyedTable(300, 8, device="cpu", seed=int(sys.argv[2])) for _ in range(4)])
for step in range(15):
    tables.fetch([range(step * 20 + 1)] * 4)
    tables.save(sys.argv[1])
"""
    tables = sptx.Tables([sptx.KeyedTable(300, 8, device="cpu") for _ in range(4)])
    tables.save(tmp_path / "both")
    savers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "both"), str(seed)]) for seed in (1, 2)]
    while any(saver.poll() is None for saver in savers):
        read = sptx.KeyedTables.load(tmp_path / "both", device="cpu")
        assert len({(read.rows(name), read[name].chain) for name in read}) == 1  # of one save of one process
        read.close()
    assert [saver.returncode for saver in savers] == [0, 0] and len(list((tmp_path / "both").iterdir())) == 5


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
    none = {name: torch.zeros(0, 2).long() for name in sizes}
    assert ours(none).shape == (0, 18)
    with pytest.raises(TypeError, match="offsets are torch.float32"):
        ours({"user": ([0, 1], torch.tensor([0, 1.9])), "item": torch.zeros(2, 1).long(), "day": torch.zeros(2, 1).long()})
    with pytest.raises(ValueError, match="offsets have 2 dimensions"):
        ours({"user": ([0, 1], [[0, 1]]), "item": torch.zeros(2, 1).long(), "day": torch.zeros(2, 1).long()})
    with pytest.raises(KeyError, match="features are"):
        ours({"user": torch.zeros(1, 1).long()})
    with pytest.raises(ValueError, match="bags"):
        ours({"user": torch.zeros(1, 1).long(), "item": torch.zeros(2, 1).long(), "day": torch.zeros(1, 1).long()})
    with pytest.raises(IndexError):
        ours({"user": torch.full((1, 1), 40), "item": torch.zeros(1, 1).long(), "day": torch.zeros(1, 1).long()})
