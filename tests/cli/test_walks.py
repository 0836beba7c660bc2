"""Walks over a graph: what is learned from them. Threads, kills, places of tables and pauses must change no byte."""
import json
import random
import signal
import time

import numpy
import pytest

from conftest import SLOWER, checkpoints, end, lines_of_metrics, only_keys_of_walks_change_bytes, stop

GROUPS, SIZE = 6, 12
WALKS = {"corpus": {"path": "edges.tsv", "format": "graph"}, "walks": {"length": "20", "per_node": "5"}, "train": {"epochs": "6"}}


def group_edges(seed=1):
    """Makes edges of which most are within groups of nodes, and few lead from group to group."""
    draw = random.Random(seed)
    nodes = [[f"g{group}n{node}" for node in range(SIZE)] for group in range(GROUPS)]
    edges = [(a, b) for group in nodes for i, a in enumerate(group) for b in group[:i] if draw.random() < 0.5]
    edges += [tuple(draw.choice(draw.choice(nodes)) for _ in range(2)) for _ in range(GROUPS * 2)]
    return edges


@pytest.fixture
def graph(sptx):
    sptx.path("edges.tsv").write_text("# a b\n" + "".join(f"{a}\t{b}\n" for a, b in group_edges()))
    return sptx


def walking(program, **sections):
    keys = {section: {**WALKS.get(section, {}), **sections.get(section, {})} for section in {**WALKS, **sections}}
    return program.config(**keys)


def test_nodes_of_a_group_are_near(graph):
    said = graph("train", walking(graph, train={"update": "auto", "epochs": "20"}), "--overwrite").stderr
    assert "arcs of" in said and "walks of 20 an epoch" in said
    right = 0
    for group in range(GROUPS):
        lines = graph("nearest", "run", f"g{group}n3", "--k=5").stdout.splitlines()
        right += sum(line.startswith(f"g{group}n") for line in lines)
    assert right >= 0.8 * 5 * GROUPS


@pytest.mark.parametrize("update, batch", [("batch", "7"), ("hogwild", "1000")])
def test_walks_that_end_early_count_only_their_nodes(sptx, update, batch):
    """Of the ten walks from each of 100 nodes, half go one step, the others none: an epoch has 1,500 words, and not 20,000 positions."""
    sptx.path("edges.tsv").write_text("".join(f"a{i}\tb{i}\n" for i in range(50)))
    said = sptx("train", walking(sptx, graph={"directed": "yes"}, walks={"per_node": "10"}, model={"dim": "4"},
                                 train={"update": update, "batch": batch, "epochs": "2"})).stderr
    assert "1,000 walks of at most 20 an epoch" in said and "trained    3,000 words in " in said and " 2,000 pairs\n" in said


def test_threads_and_batches_of_another_depth_change_no_byte(graph):
    graph("train", walking(graph, walks={"p": "0.5", "q": "2"}, train={"held_out": "0.05"}))
    only_keys_of_walks_change_bytes(graph, "--walks.q=1")


@pytest.mark.parametrize("keys", [["--train.update=batch", "--train.batch=100000000"], ["--train.update=hogwild"]])
def test_steps_that_are_refused_again_and_again_have_an_end_and_hear_ctrl_c(sptx, keys):
    """Arc weights alternate between 1 and 10^6; p and q make steps back over heavy arcs unlikely, so most draws are rejected."""
    sptx.path("edges.tsv").write_text("".join(f"{i} {(i + 1) % 100} {1000000 if i % 2 else 1}\n" for i in range(100)))
    config = walking(sptx, model={"dim": "4"}, train={"epochs": "1", "update": None, "batch": None},
                     walks={"p": "1000", "q": "0.001", "per_node": "1"})
    sptx("train", config, "--train.update=hogwild", timeout=60)
    process = sptx.start("train", config, "--overwrite", "--walks.per_node=20000", "--train.epochs=1000", *keys)
    assert any("begins after" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    told = time.monotonic()
    err = end(process)[1]
    assert process.returncode == 1 and "stopped by a signal" in err, err
    assert time.monotonic() - told < 10 * SLOWER
    sptx("nearest", "run", "3")


def test_a_stopped_run_goes_on_to_the_same_bytes(graph):
    config = walking(graph, train={"epochs": "200"}, walks={"q": "0.5"})
    graph("train", config)
    wanted = graph.tables()
    stop(graph.start("train", config, "--run.dir=stopped"), lambda: lines_of_metrics(graph, "stopped") > 2, signal.SIGINT)
    assert checkpoints(graph, "stopped")
    graph("train", config, "--run.dir=stopped", "--resume")
    assert graph.tables("stopped") == wanted


def test_held_out_positions_have_a_loss(graph):
    graph("train", walking(graph, train={"held_out": "0.1", "epochs": "30"}))
    losses = [json.loads(line) for line in graph.path("run", "metrics.jsonl").read_text().splitlines()]
    held_out = [line["held_out_loss_pair"] for line in losses if "held_out_loss_pair" in line]
    assert held_out and held_out[-1] < held_out[0]


def test_arcs_with_directions_are_not_walked_back(graph):
    """Walks along a directed chain end at its last node, from which no arc leads on."""
    graph.path("edges.tsv").write_text("".join(f"n{i} n{i + 1}\n" for i in range(40)))
    one_way = json.loads(graph("plan", walking(graph, graph={"directed": "yes"}), "--json").stdout)
    both = json.loads(graph("plan", walking(graph), "--json").stdout)
    assert one_way["rows"] == both["rows"] == 41 and both["stream_bytes"] - one_way["stream_bytes"] == 4 * 40
    graph("train", walking(graph, graph={"directed": "yes"}))
    assert numpy.isfinite(numpy.load(graph.checkpoint() / "target.npy")["weights"]).all()


def test_new_nodes_join_an_older_run(graph):
    graph("train", walking(graph))
    old = numpy.load(graph.checkpoint() / "target.npy")["weights"]
    words = [line.split("\t")[0] for line in graph.path("run", "vocab.tsv").read_text().splitlines()]
    with graph.path("edges.tsv").open("a") as file:
        file.write("new g0n1\nnew g0n2\n")
    graph("train", walking(graph, train={"from": "run", "freeze": "known", "update": "batch"}), "--run.dir=grown")
    grown = numpy.load(graph.checkpoint("grown") / "target.npy")["weights"]
    after = [line.split("\t")[0] for line in graph.path("grown", "vocab.tsv").read_text().splitlines()]
    assert set(after) == {*words, "new"}
    for row, word in enumerate(words):
        assert numpy.array_equal(grown[after.index(word)], old[row])


@pytest.mark.parametrize("sections, said", [
    ({"examples": {"mode": "window"}}, "a graph is walked"),
    ({"examples": {"mode": "walk", "shuffle": "yes"}}, "walks begin in a drawn order"),
    ({"examples": {"shuffle_items": "yes"}}, "walks begin in a drawn order"),
    ({"corpus": {"format": "text"}, "examples": {"mode": "walk"}}, "a graph is walked"),
    ({"walks": {"length": "1"}}, "walks.length"), ({"walks": {"p": "0"}}, "walks.p"), ({"walks": {"q": "nan"}}, "walks.q"),
    ({"corpus": {"min_count": "1000"}}, "min_count"),
])
def test_what_cannot_be_walked_is_said(graph, sections, said):
    assert said in graph.refuses("train", walking(graph, **sections))
    assert not checkpoints(graph)


def test_a_dense_graph_is_walked_more(graph):
    """Compares a complete graph of 40 nodes (39 arcs a node) with a ring of 40 nodes (two arcs a node)."""
    for name, links in (("dense", [(a, b) for a in range(40) for b in range(a)]), ("ring", [(a, (a + 1) % 40) for a in range(40)])):
        graph.path(f"{name}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in links))
    keys = ["--corpus.format=graph", "--device.backend=cpu", "--train.effort=quick", "--model.dim=4"]
    told = graph("train", "--corpus.path=dense.tsv", "--run.dir=dense", *keys).stderr
    assert "walks.per_node = 20" in told
    assert "per_node = 20" in graph.path("dense", "config.ini").read_text()
    assert "walks.per_node = 20" in graph("plan", "--corpus.path=dense.tsv", *keys).stdout
    assert "walks.per_node" not in graph("train", "--corpus.path=ring.tsv", "--run.dir=ring", *keys).stderr
    assert "walks.per_node" not in graph("train", "--corpus.path=dense.tsv", "--run.dir=own", "--walks.per_node=3", *keys).stderr
    assert "per_node = 3" in graph.path("own", "config.ini").read_text()
