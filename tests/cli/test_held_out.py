"""Held-out items and links that cannot be judged are left out and counted."""
import random

import pytest


def numbers_in(line):
    """Returns the {name: number} pairs in a line of results."""
    parts = line.split()
    return {name: float(value) for name, value in zip(parts, parts[1:]) if value.replace(".", "").isdigit()}


# ---- lists ----

def baskets(count=120, seed=3):
    """Returns {list: items}: each list has ten items of one topic; a topic has twenty items."""
    rng = random.Random(seed)
    return {f"l{i}": [f"i{20 * (i % 4) + item}" for item in rng.sample(range(20), 10)] for i in range(count)}


TRAIN = {name: items[:7] for name, items in baskets().items()}
HELD = {name: items[7:] for name, items in baskets().items()}


def as_lists(lists):
    return "".join(f"{name} {' '.join(items)}\n" for name, items in lists.items())


def as_pairs(lists):
    return "".join(f"{name},{item}\n" for name, items in lists.items() for item in items)


@pytest.fixture(scope="module", params=["user", "list", "pairs", "adjacency"])
def judged(request, tmp_path_factory):
    """A run trained on lists; its `write` formats lists as its training file does."""
    from conftest import Program
    sptx = Program(tmp_path_factory.mktemp(request.param))
    sptx.write = as_pairs if request.param == "pairs" else as_lists
    sptx.path("train.txt").write_text(sptx.write(TRAIN))
    keys = {"pairs": ["--corpus.format=pairs"], "adjacency": ["--corpus.format=adjacency"]}
    sptx("train", "--corpus.path=train.txt", "--run.dir=run", "--model.dim=8", "--device.backend=cpu",
         *keys.get(request.param, ["--corpus.format=lists", f"--examples.mode={request.param}"]))
    return sptx


def judge(sptx, held, **options):
    sptx.path("held.txt").write_text(sptx.write(held))
    done = sptx("evaluate", "run", "--train=train.txt", "--held-out=held.txt", *options.get("more", []))
    return numbers_in(done.stdout), done.stderr


def test_trained_items_that_are_held_out_change_no_score(judged):
    plain, said = judge(judged, HELD)
    assert plain["lists"] == 120 and plain["held-out"] == 360 and plain["trained"] == plain["cold"] == 0
    assert "left out" not in said
    mixed, said = judge(judged, {name: [TRAIN[name][0], items[0], TRAIN[name][1], *items[1:], items[1]] for name, items in HELD.items()})
    assert "240 of 600 held-out items of 'held.txt' are trained ones" in said
    assert mixed["held-out"] == 600 and mixed["trained"] == 240
    for measure in ("recall@20", "ndcg@20", "hit@20", "lists", "unknown"):
        assert mixed[measure] == plain[measure]


def test_a_list_of_trained_items_alone_is_no_list_to_score(judged):
    found, _ = judge(judged, {**{name: HELD[name] for name in list(HELD)[:9]}, "l50": TRAIN["l50"][:1]})
    assert found["lists"] == 9 and found["trained"] == 1 and found["held-out"] == 28


def test_lists_that_train_lacks_are_counted(judged):
    plain, _ = judge(judged, HELD)
    found, said = judge(judged, {**HELD, **{f"new{i}": ["i1", "i2"] for i in range(30)}})
    assert found["cold"] == 30 and "30 of 150 lists of 'held.txt': they have no line in 'train.txt'" in said
    assert {**found, "cold": 0} == plain


def test_a_held_out_file_of_trained_items_is_refused(judged):
    held = {name: items[:4] for name, items in TRAIN.items()}
    judged.path("held.txt").write_text(judged.write({name: [*items, HELD[name][0]] for name, items in held.items()}))
    said = judged.refuses("evaluate", "run", "--train=train.txt", "--held-out=held.txt")
    assert "480 of 600 held-out items of 'held.txt' are trained ones" in said


def test_files_of_other_items_are_refused(judged):
    judged.path("held.txt").write_text(judged.write(HELD))
    judged.path("other.txt").write_text(judged.write({name: ["nothing", "nobody"] for name in HELD}))
    for files in (["--train=other.txt", "--held-out=held.txt"], ["--train=train.txt", "--held-out=other.txt"]):
        assert "none of the 240 items of 'other.txt' is in the vocabulary of 'run'" in judged.refuses("evaluate", "run", *files)


def test_lists_without_a_row_of_theirs_are_counted(judged):
    """A new list is scored by its items. without-row counts it only if the run keeps rows for the other lists."""
    judged.path("more.txt").write_text(judged.write({**TRAIN, "new": ["i1", "i2"]}))
    judged.path("held.txt").write_text(judged.write({**HELD, "new": ["i3"]}))
    line = judged("evaluate", "run", "--train=more.txt", "--held-out=held.txt").stdout
    wanted = {" score user": 1, " score target": None}
    assert [numbers_in(line).get("without-row") for part, count in wanted.items() if part in line] == \
           [count for part, count in wanted.items() if part in line] and numbers_in(line)["lists"] == 121


# ---- links ----

@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """A run of a small graph whose vectors are all ones: all links score equally. `known`: trained links; `held`: others."""
    from conftest import Program
    sptx = Program(tmp_path_factory.mktemp("graph"))
    rng = random.Random(5)
    pairs = sorted({tuple(sorted(rng.sample(range(40), 2))) for _ in range(160)})
    rng.shuffle(pairs)
    sptx.held, sptx.known = pairs[:20], pairs[20:]
    sptx.path("train.tsv").write_text("".join(f"n{a}\tn{b}\n" for a, b in sptx.known))
    sptx("train", "--corpus.path=train.tsv", "--corpus.format=graph", "--run.dir=run", "--model.dim=4", "--model.target_init=uniform 1 1",
         "--model.context_init=uniform 1 1", "--optimizer.lr=0", "--train.epochs=1", "--device.backend=cpu")
    return sptx


def links(sptx, lines, *options):
    sptx.path("held.tsv").write_text("".join(f"n{a}\tn{b}\n" for a, b in lines))
    done = sptx("evaluate", "run", "--edges=held.tsv", *options)
    return numbers_in(done.stdout.splitlines()[0]), done.stderr


@pytest.mark.parametrize("options", [[], ["--known=train.tsv"]])
def test_ends_in_a_small_graph_are_ranked_among_all_that_are_no_links(linked, options):
    """All candidates score equally, and a tied candidate counts as half a rank."""
    others = [{b for a, b in [*linked.held, *linked.known] if a == n} | {a for a, b in [*linked.held, *linked.known] if b == n}
              for n in range(40)]
    ranks = [1 + (39 - len(others[end])) / 2 for pair in linked.held for end in pair]
    found, _ = links(linked, linked.held, *options)
    assert abs(found["mrr"] - sum(1 / rank for rank in ranks) / len(ranks)) < 1e-4
    assert found["all"] == found["asked"] == 40
    assert found["among"] == max(39 - len(others[end]) for pair in linked.held for end in pair)


@pytest.mark.parametrize("options", [[], ["--known"]])
@pytest.mark.parametrize("relation, keys", [("", ["--corpus.format=graph", "--graph.directed=yes"]),
                                            ("is\t", ["--corpus.format=triples", "--examples.mode=walk", "--walks.relations=no"])])
def test_links_of_a_directed_run_have_a_direction(linked, relation, keys, options):
    """A held-out link that runs the other way than one of training is no link of training, and only the second node of a link is ranked."""
    held = [(b, a) for a, b in linked.known[:20]]
    for name, part in (("arrows.tsv", linked.known), ("back.tsv", held)):
        linked.path(name).write_text("".join(f"n{a}\t{relation}n{b}\n" for a, b in part))
    linked("train", "--corpus.path=arrows.tsv", *keys, "--run.dir=directed", "--overwrite", "--model.dim=4", "--model.target_init=uniform 1 1",
           "--model.context_init=uniform 1 1", "--optimizer.lr=0", "--train.epochs=1", "--device.backend=cpu")
    found = numbers_in(linked("evaluate", "directed", "--edges=back.tsv", *(f"{name}=arrows.tsv" for name in options)).stdout.splitlines()[0])
    nodes = {node for link in linked.known for node in link}
    ranks = [1 + (len(nodes) - 1 - len({b for a, b in [*held, *linked.known] if a == begin})) / 2 for begin, _ in held]
    assert found["trained"] == 0 and found["asked"] == found["links"] == 20
    assert abs(found["mrr"] - sum(1 / rank for rank in ranks) / len(ranks)) < 1e-4


def test_more_nodes_than_are_drawn_are_drawn(linked):
    """The hub links to nearly all nodes, so its held-out neighbour is ranked among all nodes that are left; other ends are ranked
    among 1,000 random nodes."""
    linked.path("hub.tsv").write_text("".join(f"hub\tn{i}\nn{i}\tn{i + 1}\n" for i in range(1199)) + "n5\tfar\nfar\tn9\n")
    linked("train", "--corpus.path=hub.tsv", "--corpus.format=graph", "--run.dir=hub", "--model.dim=4", "--train.epochs=1",
           "--walks.per_node=1", "--device.backend=cpu")
    linked.path("new.tsv").write_text("hub\tfar\nn3\tn700\n")
    found = numbers_in(linked("evaluate", "hub", "--edges=new.tsv").stdout.splitlines()[0])
    assert found["asked"] == 4 and found["all"] == 1 and found["among"] == 1000


@pytest.mark.parametrize("options", [[], ["--known=train.tsv"]])
def test_links_that_cannot_be_judged_change_no_score(linked, options):
    plain, said = links(linked, linked.held, *options)
    assert plain["left-out"] == plain["trained"] == 0 and "left out" not in said
    found, said = links(linked, [*linked.held, *((b, a) for a, b in linked.known[:6]), (1, 999), (998, 997)], *options)
    assert found["left-out"] == 2 and found["trained"] == 6 and found["unknown"] == 3
    assert "2 of 28 held-out links" in said and "6 of 28 held-out links" in said
    assert {name: found[name] for name in ("auc", "mrr", "hits@10", "links", "asked", "among")} == \
           {name: plain[name] for name in ("auc", "mrr", "hits@10", "links", "asked", "among")}


def test_held_out_links_that_are_trained_or_unknown_are_refused(linked):
    linked.path("held.tsv").write_text("".join(f"n{a}\tn{b}\n" for a, b in [*linked.known[:30], *linked.held]))
    assert "30 of 50 held-out links of 'held.tsv' are links that the run was trained on" in \
        linked.refuses("evaluate", "run", "--edges=held.tsv")
    linked.path("held.tsv").write_text("n1\tx\ny\tz\n")
    assert "2 of 2 lines of 'held.tsv' hold a name that is not in the vocabulary of 'run'" in linked.refuses("evaluate", "run", "--edges=held.tsv")


def test_lists_that_are_nodes_leave_out_their_links_and_not_those_of_their_items(linked):
    """Only a node's neighbours are not recommended. Most held-out nodes are neighbours of its neighbours, and must be judged."""
    near = {f"n{node}": {f"n{b if a == node else a}" for a, b in linked.known if node in (a, b)} for node in range(40)}
    held = {f"n{a}": [f"n{b}"] for a, b in linked.held}
    two_away = sum(bool(near[node] & near[items[0]]) for node, items in held.items())
    linked("train", "--corpus.path=train.tsv", "--corpus.format=graph", "--run.dir=learned", "--model.dim=4", "--device.backend=cpu")
    linked.path("near.txt").write_text(as_lists({node: sorted(items) for node, items in near.items()}))
    linked.path("far.txt").write_text(as_lists(held))
    found = numbers_in(linked("evaluate", "learned", "--train=near.txt", "--held-out=far.txt", "--format=lists").stdout)
    assert two_away > len(held) / 2 and found["trained"] == 0 and found["lists"] == len(held)
    linked.path("names.txt").write_text("".join(f"{node}\n" for node in near))
    linked.path("known.txt").write_text(as_lists({node: [*items, *sorted(near[node])[:1]] for node, items in held.items()}))
    found = numbers_in(linked("evaluate", "learned", "--train=names.txt", "--held-out=known.txt", "--format=lists").stdout)
    assert found["trained"] == len(held) and found["held-out"] == 2 * len(held)  # the added items are links of the trained graph


@pytest.mark.parametrize("trained_as", ["pairs", "lists"])
def test_one_held_out_item_a_list(sptx, trained_as):
    """Such a file of pairs looks as if its first column had the numbers of its lines: it is read by the training file's columns."""
    pairs = [(number, item, 5, 900 + number) for number, items in enumerate(baskets().values()) for item in items]
    held_out, train = pairs[::10], [pair for i, pair in enumerate(pairs) if i % 10]
    for name, rows in ("train.tsv", train), ("test.tsv", held_out):
        sptx.path(name).write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    sptx.path("lists.txt").write_text("".join(f"{n} " + " ".join(row[1] for row in train if row[0] == n) + "\n" for n in range(120)))
    corpus = {"pairs": "train.tsv", "lists": "lists.txt"}[trained_as]
    sptx("train", f"--corpus.path={corpus}", f"--corpus.format={trained_as}", "--run.dir=run", "--device.threads=2", "--device.backend=cpu")
    ways = [[], ["--format=pairs"]] + ([["--corpus.columns=1,2"], ["--corpus.columns=1,2", "--format=pairs"]] if trained_as == "pairs" else [])
    found = {sptx("evaluate", "run", "--train=train.tsv", "--held-out=test.tsv", *way).stdout for way in ways}
    assert len(found) == 1 and numbers_in(found.pop())["lists"] == 120
