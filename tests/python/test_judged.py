"""evaluate() gives the same scores for data in memory (of any kind that fit() accepts) as for a file of that data."""

import random

import numpy
import pytest

import sptx

networkx = pytest.importorskip("networkx")
pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
scipy = pytest.importorskip("scipy")
pytest.importorskip("scipy.sparse")

TRAIN = {user: [str((user * 7 + i * i) % 30) for i in range(6)] for user in range(50)}
HELD = {user: [str((user * 7 + i * i) % 30) for i in range(6, 9)] for user in [*range(40), 99]}


def without(lists, others):
    return {user: [item for item in items if item not in others.get(user, [])] for user, items in lists.items()}


HELD = {user: items for user, items in without(HELD, TRAIN).items() if items}


def pairs_of(lists):
    return [(user, item) for user, items in lists.items() for item in items]


def frame_of(lists, **more):
    users, items = zip(*pairs_of(lists))
    return pandas.DataFrame({"day": 1, "item": [int(item) for item in items], "user": users, **more})


def matrix_of(lists):
    users, items = numpy.array(pairs_of(lists)).astype(int).T
    return scipy.sparse.coo_matrix((numpy.ones(len(users)), (users, items)), shape=(100, 30))


def file_of(lists, path):
    path.write_text("".join("%s %s\n" % (user, " ".join(items)) for user, items in lists.items()))
    return path


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    path = tmp_path_factory.mktemp("shop")
    sptx.fit(TRAIN, path / "run", dim=8, epochs=3, device="cpu", progress=False).close()
    file_of(TRAIN, path / "train.txt")
    file_of(HELD, path / "held.txt")
    with sptx.Run(path / "run", device="cpu") as run:
        run.wanted = run.evaluate(train=path / "train.txt", held_out=path / "held.txt", k=5, format="lists")
        run.folder = path
        yield run


FORMS = {"dict": lambda lists: lists, "pairs of a name and items": lambda lists: iter(lists.items()), "frame": frame_of,
         "arrow": lambda lists: pyarrow.Table.from_pandas(frame_of(lists)), "matrix": matrix_of,
         "csr": lambda lists: matrix_of(lists).tocsr()}


@pytest.mark.filterwarnings("ignore:columns of the table")
@pytest.mark.parametrize("form", FORMS)
def test_lists_are_judged_in_every_form(shop, form):
    assert shop.wanted["lists"]["lists"] > 30 and shop.wanted["lists"]["cold"] == (99 in HELD)
    found = shop.evaluate(train=FORMS[form](TRAIN), held_out=FORMS[form](HELD), k=5)
    assert {**found["lists"], "cold": 0} == {**shop.wanted["lists"], "cold": 0}


@pytest.mark.filterwarnings("ignore:columns of the table")
def test_files_and_data_mix(shop):
    assert shop.evaluate(train=shop.folder / "train.txt", held_out=HELD, k=5, format="lists") == shop.wanted
    assert shop.evaluate(train=frame_of(TRAIN), held_out=str(shop.folder / "held.txt"), k=5) == shop.wanted


def test_columns_and_names_are_said(shop):
    frame = frame_of(TRAIN).rename(columns={"user": "who", "item": "what"})
    other = frame_of(HELD).rename(columns={"user": "who", "item": "what"})
    assert shop.evaluate(train=frame, held_out=other, columns=("who", "what"), k=5) == shop.wanted
    names = ["i%d" % item for item in range(30)]
    with pytest.raises(sptx.Error, match="none of the .* items of 'held_out' is in the vocabulary"):
        shop.evaluate(train=matrix_of(TRAIN), held_out=matrix_of(HELD), items=names, users=range(100), k=5)


def test_lists_without_names_are_numbered(shop):
    train, held = ([lists.get(user, []) for user in range(50)] for lists in (TRAIN, HELD))
    found = shop.evaluate(train=(items for items in train), held_out=held, k=5)["lists"]
    assert {**found, "cold": 0} == {**shop.wanted["lists"], "cold": 0}


def test_trained_items_of_data_are_counted(shop):
    more = {user: [*items, TRAIN[user][0]] if user in TRAIN else items for user, items in HELD.items()}
    with pytest.warns(sptx.SptxWarning, match="held-out items of 'held_out' are trained ones"):
        found = shop.evaluate(train=TRAIN, held_out=more, k=5)["lists"]
    assert found["trained"] == shop.wanted["lists"]["lists"] and found["recall"] == shop.wanted["lists"]["recall"]
    with pytest.raises(sptx.Error, match="are trained ones: their lists in 'train' "):
        shop.evaluate(train=TRAIN, held_out=TRAIN)


def test_ratings_count_as_in_training(tmp_path):
    frame = frame_of(TRAIN, rating=[(i * 3) % 5 + 1 for i in range(len(pairs_of(TRAIN)))])
    held = frame_of(HELD, rating=[(i * 2) % 5 + 1 for i in range(len(pairs_of(HELD)))])
    columns = ("user", "item", "rating")
    with sptx.fit(frame, tmp_path / "run", columns=columns, keys={"corpus.min_rating": 3}, dim=8, epochs=2, device="cpu",
                  progress=False) as run:
        kept = [{user: [str(item) for item in part.item] for user, part in table[table.rating >= 3].groupby("user")}
                for table in (frame, held)]
        wanted = run.evaluate(train=kept[0], held_out=kept[1], k=5)
        assert run.evaluate(train=frame, held_out=held, columns=columns, k=5) == wanted


def test_lines_of_a_target_and_its_contexts_are_named_by_it(tmp_path):
    train, held = ({"p%d" % user: items for user, items in lists.items()} for lists in (TRAIN, HELD))
    lines = [[[name, *items] for name, items in lists.items()] for lists in (train, held)]
    with sptx.fit(lines[0], tmp_path / "run", format="adjacency", dim=8, epochs=2, device="cpu", progress=False) as run:
        wanted = run.evaluate(train=file_of(train, tmp_path / "train"), held_out=file_of(held, tmp_path / "held"), format="adjacency")
        assert run.evaluate(train=lines[0], held_out=lines[1]) == wanted and wanted["lists"]["lists"] > 30
        assert run.evaluate(train=train, held_out=held) == wanted


# ---- graphs ----

@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path, draw = tmp_path_factory.mktemp("graph"), random.Random(3)
    links = sorted({tuple(sorted(draw.sample(range(30), 2))) for _ in range(120)})
    draw.shuffle(links)
    held, known = links[:15], links[15:]
    for name, part in (("held.tsv", held), ("known.tsv", known)):
        (path / name).write_text("".join("%d\t%d\n" % link for link in part))
    sptx.fit(known, path / "run", format="graph", dim=8, epochs=2, device="cpu", progress=False).close()
    with sptx.Run(path / "run", device="cpu") as run:
        run.links, run.folder = (held, known), path
        yield run


EDGES = {"tuples": lambda links: iter(links), "two arrays": lambda links: tuple(numpy.array(links).T),
         "an array": lambda links: numpy.array(links).T, "rows": numpy.array,
         "frame": lambda links: pandas.DataFrame(links, columns=["source", "target"]),
         "networkx": networkx.from_edgelist}


@pytest.mark.parametrize("form", EDGES)
def test_links_are_judged_in_every_form(graph, form):
    held, known = map(EDGES[form], graph.links)
    wanted = graph.evaluate(edges=graph.folder / "held.tsv", known=graph.folder / "known.tsv")["held.tsv"]
    found = graph.evaluate(edges=held, known=known)["edges"]
    assert found["links"] == 15 and {name: found[name] for name in ("unknown", "left_out", "trained", "asked", "nodes")} == \
        {name: wanted[name] for name in ("unknown", "left_out", "trained", "asked", "nodes")}
    if form != "networkx":  # networkx sorts edges by node, and the random draws depend on their order
        assert found == wanted
    assert graph.evaluate(edges=EDGES[form](graph.links[0])).keys() == {"edges"}


def test_links_that_are_not_judged_are_counted(graph):
    held, known = graph.links
    with pytest.warns(sptx.SptxWarning, match="held-out links of 'edges' are links that the run was trained on"):
        found = graph.evaluate(edges=[*held, known[0][::-1], (1, 99)])["edges"]
    assert found["trained"] == found["left_out"] == found["unknown"] == 1 and found["links"] == 15
    with pytest.raises(sptx.Error, match="has no edge between two different nodes"):
        graph.evaluate(edges=[(1, 1)])


GROUPS = {node: "odd" if node % 2 else "even" for node in range(30)}
LABELS = {"dict": GROUPS, "pairs": list(GROUPS.items()), "series": pandas.Series(GROUPS), "lists": {k: [v] for k, v in GROUPS.items()},
          "frame": pandas.DataFrame({"node": list(GROUPS), "label": list(GROUPS.values())}), "array": numpy.array(list(GROUPS.items()))}


@pytest.mark.parametrize("form", LABELS)
def test_labels_are_judged_in_every_form(graph, form):
    (graph.folder / "labels.tsv").write_text("".join("%s\t%s\n" % item for item in GROUPS.items()))
    wanted = graph.evaluate(labels=graph.folder / "labels.tsv", share=[0.3, 0.6])["labels.tsv"]
    assert graph.evaluate(labels=LABELS[form], share=[0.3, 0.6])["labels"] == wanted


def test_several_labels_of_a_node_count(graph):
    (graph.folder / "more.tsv").write_text("".join("%d\t%s\t%s\n" % (node, label, "low" if node < 15 else "high")
                                                    for node, label in GROUPS.items()))
    several = {node: {label, "low" if node < 15 else "high"} for node, label in GROUPS.items()}
    wanted = graph.evaluate(labels=graph.folder / "more.tsv")["more.tsv"]
    assert graph.evaluate(labels=several)["labels"] == wanted and wanted[0]["labels"] == 4


@pytest.mark.parametrize("given, kind, message", [
    ({"labels": 3}, TypeError, "labels= is a int"), ({"labels": [(1, "a"), (2,)]}, TypeError, "label 1 is"),
    ({"labels": [("a", "b", "c")]}, TypeError, "wanted a pair of a node"),
    ({"edges": [(1,)]}, TypeError, "wanted a tuple of two or more fields"), ({"edges": [__file__, __file__]}, ValueError, "not a list of paths"),
    ({"train": [__file__, __file__], "held_out": [["1"]]}, ValueError, "train= is one file, or a folder of files, or data"),
    ({"train": networkx.path_graph(4), "held_out": HELD}, ValueError, "train= is graph; wanted lists"),
    ({"train": TRAIN, "held_out": {1: "23"}}, TypeError, "split it"),
    ({"train": TRAIN, "held_out": HELD, "format": "text"}, ValueError, "read as"),
])
def test_what_is_no_data_is_named(graph, given, kind, message):
    with pytest.raises(kind, match=message):
        graph.evaluate(**given)
