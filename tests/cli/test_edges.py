"""Files of edges as users have them: how they are read, what the program says about them, and which files it leaves."""
import bz2
import gzip
import lzma
import os
import random
import signal
import subprocess

import pytest

from conftest import end, wait_for

DRAW = random.Random(1)
EDGES = [(DRAW.randrange(40), DRAW.randrange(40), 1 + DRAW.randrange(4)) for _ in range(600)]
LOOPS = sum(a == b for a, b, _ in EDGES)
HEADER = 128  # bytes at the beginning of a graph's file that say from what it was made


def lines(edges, between=" "):
    return "".join(between.join(map(str, edge)) + "\n" for edge in edges)


def encode(sptx, text, *settings, name="edges"):
    """Trains on a file with this text. Returns the graph, the vocabulary and the messages."""
    sptx.path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    done = sptx("train", f"--corpus.path={name}", "--corpus.format=graph", "--run.dir=run", "--overwrite", "--model.dim=4",
                "--walks.length=4", "--train.epochs=1", "--device.threads=2", *settings)
    graph, words = sptx.path("run", "corpus.graph").read_bytes(), sptx.path("run", "corpus.vocab.tsv").read_bytes()
    return (graph[HEADER:], words), done.stderr


def test_edges_in_every_form_are_one_graph(sptx):
    wanted, said = encode(sptx, lines(EDGES))
    assert f"graph      {LOOPS} self-loops left out\n" in said
    forms = [lines(EDGES, "\t"), lines(EDGES, ","), lines(EDGES, " , "), lines(EDGES, "::"), lines(EDGES).replace("\n", "\r\n"),
             lines(EDGES).replace("\n", "\r"), "# a comment\n\n" + lines(EDGES) + "% another", "\ufeff" + lines(EDGES),
             "source,target,weight\n" + lines(EDGES, ","), "Weight;Id;Target;Source\n" + lines([(w, 0, b, a) for a, b, w in EDGES], ";"),
             "%%MatrixMarket matrix coordinate real general\n%\n41 41 600\n" + lines(EDGES)]
    for form in forms:
        assert encode(sptx, form)[0] == wanted, form[:80]
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        assert encode(sptx, pack(lines(EDGES).encode()))[0] == wanted
    halves = [sptx.path(name) for name in ("one", "two")]
    for half, part in zip(halves, (EDGES[:300], EDGES[300:])):
        half.write_text("source target weight\n" + lines(part))
    assert encode(sptx, "", "--corpus.path=one two")[0] == wanted


def test_a_header_is_said(sptx):
    said = encode(sptx, "from,to\n" + lines([edge[:2] for edge in EDGES], ","))[1]
    assert "columns    source = from, target = to, weight = none; commas, a header\n" in said


@pytest.mark.parametrize("text, settings, sentence", [
    ("1 2 1\n2 3 -1\n", [], "'edges' line 2: the weight '-1' is not a positive finite number; graph.weights = no reads edges without"),
    ("1 2 1\n# inf\n2 3 inf\n", ["--graph.weights=yes"],
     "'edges' line 3: the weight 'inf' is not a positive finite number; graph.weights = no reads edges without"),
    ("1 2\n2\n", [], "'edges' line 2: 1 field with blanks between; wanted source, target[, weight]: 2"),
    ("1 2 1\n2 3\n", [],
     "'edges' line 1: the edge has a weight, '1', and not all of the first edges have one; set graph.weights to yes or no"),
    ("1 2 3e38\n2 1 3e38\n", [], "the weights of the edge from row 0 to row 1 of the vocabulary add up to more than 32 bits hold"),
    ("1 2\n", ["--graph.weights=yes"],
     "'edges' line 1: the edge has no weight, and edges have weights; graph.weights = no reads all edges without"),
    ("1 2\n2 2\n3 x\n", ["--corpus.order=given"],
     "'edges' line 3: 'x' is not an id; corpus.order = given wants numbers from 0 to 4294967293"),
    ("1 2\n3 4\n", ["--corpus.min_count=2"], "no word of the corpus comes 2 times (corpus.min_count): the most frequent of 4, '1',"),
    ("1 1\n", [], "the corpus 'edges' has no edge in its 4 bytes (from a node to itself, or of weight 0, is none)"),
    ("1 2\n", ["--corpus.format=lists", "--graph.directed=yes"],
     "graph.directed = yes needs corpus.format = graph, whose lines are edges, and it is lists"),
    ("1 2\n", ["--corpus.format=text", "--graph.weights=no"],
     "graph.weights = no needs corpus.format = graph, whose lines are edges, and it is text"),
    ("1 2\n2 3\n", ["--graph.weights=perhaps"], "command line: graph.weights = 'perhaps' is not auto, yes or no"),
])
def test_wrong_edges(sptx, text, settings, sentence):
    sptx.path("edges").write_text(text)
    said = sptx.refuses("train", "--corpus.path=edges", "--corpus.format=graph", *settings, code=None)
    assert said.startswith(sentence)
    assert not sptx.path("runs").exists() or not list(sptx.path("runs").rglob("corpus.graph*"))


def test_edges_of_weight_0_are_left_out_and_said(sptx):
    wanted = encode(sptx, lines(EDGES))[0]
    got, said = encode(sptx, lines(EDGES + [(1, 77, 0), (3, 78, "0.0")]))
    assert got == wanted and "graph      2 edges of weight 0 left out\n" in said


def test_keys_of_a_graph_make_another_one(sptx):
    graphs = {encode(sptx, lines(EDGES), *settings)[0]
              for settings in ([], ["--graph.directed=yes"], ["--graph.weights=no"], ["--graph.directed=yes", "--graph.weights=no"],
                               ["--corpus.min_count=30"], ["--corpus.max_vocab=20"], ["--corpus.order=given"])}
    assert len(graphs) == 7
    before = sptx.path("run", "corpus.graph").stat()
    encode(sptx, lines(EDGES), "--corpus.order=given", name="other")
    assert sptx.path("run", "corpus.graph").stat().st_ino != before.st_ino
    before = sptx.path("run", "corpus.graph").stat()
    sptx("train", "--corpus.path=other", "--corpus.format=graph", "--run.dir=run", "--overwrite", "--model.dim=4", "--train.epochs=1",
         "--corpus.order=given", "--walks.length=4")
    assert sptx.path("run", "corpus.graph").stat().st_ino == before.st_ino


def test_nothing_is_left_of_a_graph_that_is_stopped(sptx):
    """While a graph is made, its edges are in files without names. If the process is killed, the next one removes the half graph.
    """
    sptx("generate", "graph", "--rows=300000", "--edges=5000000", "--out=edges")
    train = ["train", "--corpus.path=edges", "--corpus.format=graph", "--run.dir=run", "--model.dim=4", "--train.steps=1",
             "--corpus.cache=cache", "--device.threads=1"]
    for number in (signal.SIGINT, signal.SIGKILL):
        process = sptx.start(*train)
        wait_for(lambda: any("corpus.graph" in name for name in os.listdir(sptx.path("cache"))) if sptx.path("cache").exists() else False,
                 process)
        process.send_signal(number)
        err = end(process)[1]
        if number == signal.SIGINT:
            assert process.returncode == 1 and err.splitlines()[-1].startswith("sptx-w2v: stopped by a signal before training"), err
        assert all(name == "corpus.lock" or name.endswith(".partial") for name in os.listdir(sptx.path("cache")))
    sptx(*train)
    assert sorted(os.listdir(sptx.path("cache"))) == ["corpus.graph", "corpus.vocab.tsv"]
