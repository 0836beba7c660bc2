"""Triples over several ranks: each rank has real and imaginary part of some complex numbers, and ranks send each other only
scores and squared lengths.

Any number of ranks trains the same model, except for rounding. Whatever way GPUs use to add up their scores, the same number of ranks writes the
same bytes.
"""
import json
import shutil
import signal

import pytest

from ranks import arrays, difference, held_out, mpi, refuses, train  # noqa: F401
from test_ranks import interrupt
from test_ranks_gpu import exchange_ways
from test_train_triples import write

# Float32, since a CPU has no TF32. The steps are few, and adagrad does not divide by nearly vanishing gradients, so differences by rounding
# stay small.
KEYS = {"model": {"dim": 50, "target_init": "normal 0 0.3", "context_init": "normal 0 0.3"}, "negatives": {"count": 30},
        "train": {"batch": 200, "epochs": 2}, "device": {"matmul": "float32"},
        "optimizer": {"schedule": "constant", "rule": "adagrad", "initial_accumulator": 0.01}}
PRODUCTS = ["complex", "real", "rotation", "translation"]
KINDS = {
    "plain": {},
    "relations": {"train": {"relations": 1}},
    "all entities": {"negatives": {"count": "all"}, "train": {"relations": 0.5}},
    "logistic": {"train": {"loss": "logistic"}},
    "two tables, one direction": {"model": {"tied": "no"}, "triples": {"reciprocal": "no"}, "train": {"relations": 1}},
    "clip": {"optimizer": {"rule": "sgd", "initial_accumulator": None, "lr": 0.2, "clip": 0.01}, "train": {"relations": 1}},
    "adam": {"optimizer": {"rule": "adam", "initial_accumulator": None, "lr": 0.001}},
    "adversarial": {"train": {"loss": "logistic", "adversarial": 0.5}},
}


def config(sptx, product="complex", **sections):
    sections["train"] = {"product": product, **sections.get("train", {})}
    if product in ("complex", "real"): sections["train"]["n3"] = 0.1  # cubes are of products alone, and a margin is of distances
    elif "loss" in sections["train"]: sections["train"]["margin"] = 3
    keys = {section: {**KEYS.get(section, {}), **sections.get(section, {})} for section in {**KEYS, **sections}}
    return sptx.config(corpus={"format": "triples", "path": "corpus.txt"}, **{one: keys[one] for one in keys if one != "corpus"})


@pytest.fixture
def graph(sptx):
    write(sptx)
    return sptx


FEW = [(product, kind) for product in PRODUCTS for kind in KINDS if product in ("complex", "rotation") or kind in ("plain", "relations")]


# The 50 columns are 25 complex numbers, and a rank has a multiple of two, but for the last: of three ranks 10, 8 and 7; of four 8, 6, 6 and 5.
@pytest.mark.parametrize("product, kind, numbers", [
    pytest.param(product, kind, numbers, marks=[] if numbers == (3,) and (product, kind) in FEW else pytest.mark.long)
    for product in PRODUCTS for kind in KINDS for numbers in ((3,), (1, 2, 4))])
def test_every_number_of_ranks_makes_the_same_model(graph, product, kind, numbers):
    name = config(graph, product, **{"train": {"held_out": 0.1}, **KINDS[kind]})
    train(graph, 0, name, "--run.dir=alone")
    for ranks in numbers:
        train(graph, ranks, name, f"--run.dir=run{ranks}")
        if ranks == 1:
            assert graph.tables("run1") == graph.tables("alone")
        else:
            assert difference(graph, "alone", f"run{ranks}") < 2e-5
            assert held_out(graph, f"run{ranks}") == pytest.approx(held_out(graph, "alone"), rel=1e-4)


@pytest.mark.parametrize("product", PRODUCTS)
def test_one_number_of_ranks_makes_one_model(graph, product):
    name = config(graph, product, model={"precision": "bfloat16"}, train={"relations": 1})
    train(graph, 3, name, "--run.dir=one", "--device.threads=1")
    train(graph, 3, name, "--run.dir=other", "--device.threads=3", "--memory.depth=1", "--memory.context=file")
    assert graph.tables("one") == graph.tables("other")


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_checkpoint_goes_on_with_any_number_of_ranks(graph, product):
    name = config(graph, product, train={"relations": 1})
    train(graph, 3, name, "--run.dir=whole")
    train(graph, 3, name, "--run.dir=half", "--train.epochs=0", "--train.steps=7")  # in the middle of an epoch
    for ranks in (0, 2, 3):
        shutil.copytree(graph.path("half"), graph.path(f"half{ranks}"))
        assert "resumed" in train(graph, ranks, name, f"--run.dir=half{ranks}", "--train.steps=0", "--resume").stderr
        assert difference(graph, "whole", f"half{ranks}") < 2e-5
    assert graph.tables("half3") == graph.tables("whole")


@pytest.mark.parametrize("product", ["rotation", *(pytest.param(one, marks=pytest.mark.long) for one in ("complex", "real", "translation"))])
def test_a_killed_rank_ends_all_and_the_run_goes_on_to_the_same_bytes(graph, product):
    name = config(graph, product, train={"relations": 1, "epochs": 40}, run={"checkpoint_every": "20 steps"})
    train(graph, 3, name, "--run.dir=whole")
    stderr, code, _ = interrupt(graph, 1, signal.SIGKILL, name)
    assert code != 0 and "signal 9" in stderr
    train(graph, 3, name, "--resume")
    assert graph.tables() == graph.tables("whole")


def test_a_run_grows_over_any_number_of_ranks(graph):
    """Entities and relations begin with their rows in the older run; of these rows each rank reads its own columns."""
    train(graph, 2, config(graph), "--run.dir=old")
    write(graph, each=11, seed=2)
    for ranks, run in ((0, "alone"), (3, "three")):
        train(graph, ranks, config(graph), "--train.from=old", f"--run.dir={run}")
    assert difference(graph, "alone", "three") < 2e-5
    still = ["--train.from=old", "--train.epochs=0", "--train.steps=1", "--optimizer.lr=1e-30"]  # one step that changes no weight
    for ranks, run in ((0, "first"), (3, "same")):
        train(graph, ranks, config(graph), *still, f"--run.dir={run}")
    assert [(a["weights"] == b["weights"]).all() for a, b in zip(arrays(graph, "same"), arrays(graph, "first"))] == [True, True]


ODD = {
    "one triple": "a\tr\tb\n",
    "a loop": "a\tr\ta\n" * 2 + "b\tr\tb\n",
    "relations of one triple": "".join(f"e{i % 7}\tr{i}\te{i % 5}\n" for i in range(40)),
    "one tail": "".join(f"e{i}\tr{i % 2}\tz\n" for i in range(30)),
}


@pytest.mark.parametrize("product", ["complex", "rotation"])
@pytest.mark.parametrize("kind", ODD)
def test_odd_graphs_train_over_ranks(sptx, kind, product):
    """Ten columns are five complex numbers: four on one rank, one on the other."""
    sptx.path("corpus.txt").write_text(ODD[kind])
    name = config(sptx, product, model={"dim": 10}, negatives={"count": 1 if kind == "one triple" else "all"}, train={"relations": 1})
    train(sptx, 0, name, "--run.dir=alone")
    train(sptx, 2, name, "--run.dir=two")
    assert difference(sptx, "alone", "two") < 1e-4
    train(sptx, 5, name, "--run.dir=five")
    assert difference(sptx, "alone", "five") < 1e-4
    assert "5 complex numbers" in refuses(sptx, 6, name, "--run.dir=six") and not sptx.path("six").exists()


def test_many_relations_over_ranks(sptx):
    """A batch has 64 x 60,000 scores of relations and reciprocals, more than ranks sum at once. Uses sgd: adagrad magnifies the rounding of the tiny
    gradients of so many relations, in one process, too."""
    sptx.path("corpus.txt").write_text("".join(f"e{i % 50}\tr{i}\te{i % 31}\n" for i in range(30000)))
    name = config(sptx, model={"dim": 8}, train={"relations": 1, "batch": 64, "epochs": 0, "steps": 3},
                  optimizer={"rule": "sgd", "initial_accumulator": None, "lr": 0.2})
    train(sptx, 0, name, "--run.dir=alone")
    train(sptx, 2, name, "--run.dir=two")
    assert difference(sptx, "alone", "two") < 2e-5


def test_the_plan_is_that_of_the_rank_with_the_most_columns(graph):
    plans = {ranks: json.loads(graph("plan", config(graph), "--json", f"--device.ranks={ranks}").stdout) for ranks in (1, 3)}
    assert [plans[ranks]["columns"] for ranks in plans] == [50, 20]
    assert plans[3]["target_bytes"] < plans[1]["target_bytes"] * 20 / 50 * 1.2


def test_what_needs_all_columns_is_refused(graph):
    graph.path("test.txt").write_text("".join(graph.path("corpus.txt").read_text().splitlines(True)[:9]))
    assert "train.evaluate is for one process, and 2 train" in refuses(graph, 2, config(graph), "--train.evaluate=test.txt")
    name = config(graph, model={"dim": 20, "precision": "bfloat16"})
    assert "20 columns with bfloat16 are 3 groups of eight, too few for 4 ranks" in refuses(graph, 4, name)
    train(graph, 3, name)


# ---- ways to exchange sums ----

@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["relations", "logistic", "clip"])
@pytest.mark.parametrize("product", PRODUCTS)
def test_ways_of_exchange_make_the_same_bytes(graph, product, kind, precision):
    keys = {**KINDS[kind], "model": {"precision": precision, **KINDS[kind].get("model", {})}}
    ways = exchange_ways()
    train(graph, 2, config(graph, product, **keys), "--run.dir=gpu")
    for way in ways:
        train(graph, 2, "run.ini", f"--run.dir={way}", f"--device.exchange={way}", "--memory.depth=3", "--memory.hot_rows=7")
        assert graph.tables(way) == graph.tables("gpu")


def test_an_array_of_several_chunks_is_summed_alike_by_all_ways(sptx):
    """64 x 60,000 scores are two chunks of 2^21 values, the second one smaller."""
    ways = exchange_ways()
    sptx.path("corpus.txt").write_text("".join(f"e{i % 50}\tr{i}\te{i % 31}\n" for i in range(30000)))
    name = config(sptx, "rotation", model={"dim": 10}, train={"relations": 1, "batch": 64, "epochs": 0, "steps": 9},
                  optimizer={"rule": "sgd", "initial_accumulator": None, "lr": 0.2, "clip": 0.01})
    train(sptx, 3, name, "--run.dir=gpu")
    for way in ways[:1]:
        train(sptx, 3, name, f"--run.dir={way}", f"--device.exchange={way}")
        assert sptx.tables(way) == sptx.tables("gpu")
