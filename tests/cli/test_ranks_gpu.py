"""Ranks on GPUs: every way to exchange sums, and ranks that keep rows in different places, must train the same model.

On CPUs these ways and places make no difference, and the same runs must also give the same model.
"""
import json
import os
import random
import shutil
import subprocess

import pytest

from conftest import PROGRAM
from ranks import begin, difference, held_out, mpi, only_sentence, small, train  # noqa: F401

ON_GPU = os.environ.get("SPTX_BACKEND") == "cuda"


def gpu_count():
    return subprocess.run([PROGRAM, "devices"], capture_output=True, text=True).stdout.count("\ngpu ")


def exchange_ways():
    """Returns the ways to exchange sums that this machine has, as device.exchange names them."""
    if not ON_GPU:
        pytest.skip("the tests run on the CPU")
    return ["host", "nccl"] if gpu_count() > 1 else ["host"]


GPU_RUNS = {
    "norms": {"negatives": {"per": "example"}, "optimizer": {"rule": "sgd", "clip": 0.3}, "model": {"dim": 130}},
    "state": {"negatives": {"count": 4}, "optimizer": {"rule": "adam"}, "model": {"dim": 50}},
    # The two ranks have 64 and 58 columns, 32 and 32, or 36 and 30. A warp handles several windows on both ranks, as many on one as
    # on the other or not.
    "halves of warps": {"negatives": {"per": "example"}, "optimizer": {"rule": "sgd", "clip": 0.3}, "model": {"dim": 122}},
    "quarters": {"negatives": {"per": "example"}, "optimizer": {"rule": "sgd", "momentum": 0.5, "clip": 0.3},
                 "model": {"dim": 64}},
    "halves and quarters": {"negatives": {"per": "example", "count": 9}, "optimizer": {"rule": "adagrad"},
                            "model": {"dim": 66}},
    "wide": {"negatives": {"per": "example"}, "optimizer": {"rule": "sgd", "clip": 3}, "model": {"dim": 1200}},
    # A thread handles several quads of a window's rows if a rank has 200, 352 or 500 columns. Fewer contexts are held at a time for
    # 260 columns than for 256. Rows of 516 columns are read twice, rows of 512 once.
    "two quads": {"negatives": {"per": "example"}, "optimizer": {"rule": "sgd", "clip": 3}, "model": {"dim": 400}},
    "three quads": {"negatives": {"per": "example"}, "optimizer": {"rule": "sgd", "momentum": 0.5}, "model": {"dim": 700}},
    "four quads": {"negatives": {"per": "example", "count": 7}, "optimizer": {"rule": "sgd", "clip": 3}, "model": {"dim": 1000}},
    "other tiles": {"negatives": {"per": "example", "count": 7}, "optimizer": {"rule": "sgd", "clip": 3}, "model": {"dim": 516}},
    "wide by one": {"negatives": {"per": "example"}, "optimizer": {"rule": "sgd", "clip": 3}, "model": {"dim": 1028}},
    "wide one": {"negatives": {"count": 3}, "optimizer": {"rule": "adagrad"}, "model": {"dim": 1100}},
    # One rank has 260 columns, and reads its rows twice; the other has 256, and holds its rows.
    "held by one": {"negatives": {"count": 40}, "optimizer": {"rule": "sgd"}, "model": {"dim": 516}},
    # One rank has 72 columns, the other 64. With bfloat16 a thread of the first holds twice as many quads as a thread of the other.
    "narrow one": {"negatives": {"count": 40}, "optimizer": {"rule": "sgd"}, "model": {"dim": 136}},
    "contexts shared out": {"negatives": {"count": 64}, "optimizer": {"rule": "adam"}, "model": {"dim": 50}},
    "contexts shared out, norms": {"negatives": {"count": 31}, "optimizer": {"rule": "sgd", "clip": 0.3}, "model": {"dim": 188}},
}


@pytest.mark.parametrize("kind", GPU_RUNS)
def test_ways_of_exchange_make_the_same_bytes(small, kind):
    config = small.config(train={"steps": 12}, **GPU_RUNS[kind])
    ways = exchange_ways()
    train(small, 2, config, "--run.dir=gpu")
    for way in ways:
        train(small, 2, config, f"--run.dir={way}", f"--device.exchange={way}", "--memory.depth=3", "--memory.hot_rows=7")
        assert small.tables(way) == small.tables("gpu")
    train(small, 0, config, "--run.dir=alone")
    assert difference(small, "alone", "gpu") < 2e-5


@pytest.mark.parametrize("kind", ["norms", "state", "halves of warps", "four quads", "other tiles", "wide one", "held by one",
                                  "narrow one", "contexts shared out", "contexts shared out, norms"])
def test_ways_of_exchange_make_the_same_bytes_of_bfloat16(small, kind):
    keys = {**GPU_RUNS[kind], "model": {**GPU_RUNS[kind]["model"], "precision": "bfloat16"}}
    config = small.config(train={"steps": 12}, **keys)
    ways = exchange_ways()
    train(small, 2, config, "--run.dir=gpu")
    for way in ways:
        train(small, 2, config, f"--run.dir={way}", f"--device.exchange={way}", "--memory.depth=3", "--memory.hot_rows=7")
        assert small.tables(way) == small.tables("gpu")


# step_dots_ranks.cu: columns of a rank at which the layout of its threads changes, up to the widest rows that are held; contexts of a
# block from which warps share them, and that four warps hold at a time with rows of 256 columns, of 192 and of up to 144.
HELD_COLUMNS = [32, 64, 96, 128, 192, 256]
HELD_CONTEXTS = [16, 72, 96, 128]
# Optimizers with 0 to 3 slots. None of them divides by a gradient's size: a gradient that vanishes but for rounding would move a
# row far.
RULES = [{"rule": "sgd"}, {"rule": "sgd", "momentum": 0.5}, {"rule": "adadelta"},
         {"rule": "rmsprop", "centered": True, "momentum": 0.5, "eps": 0.1, "lr": 0.001}, {"rule": "sgd", "clip": 0.3}]


# A CPU treats all numbers of columns alike, so one seed for each of these is enough there.
SEEDS = [*range(len(HELD_COLUMNS)), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(len(HELD_COLUMNS), 18))]


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_held_for_other_ranks_whatever_their_number(small, seed):
    draw = random.Random(seed)
    columns = HELD_COLUMNS[seed % len(HELD_COLUMNS)]
    contexts = draw.choice(HELD_CONTEXTS) + draw.choice([-1, 0, 1])
    config = small.config(train={"steps": 8, "batch": draw.choice([20, 700])},
                          model={"dim": 2 * columns + draw.choice([-6, 0, 8])}, negatives={"count": contexts - 1},
                          optimizer=RULES[seed % len(RULES)])
    train(small, 2, config, "--run.dir=two")
    for way in exchange_ways() if ON_GPU else []:
        train(small, 2, config, f"--run.dir={way}", f"--device.exchange={way}", "--memory.depth=1")
        assert small.tables(way) == small.tables("two")
    train(small, 0, config, "--run.dir=alone")
    assert difference(small, "alone", "two") < 2e-5


# ---- steps without an example ----

EMPTY = {"pairs": {}, "windows": {"negatives": {"per": "example"}}, "norms": {"optimizer": {"rule": "sgd", "lr": 0.01, "clip": 1}},
         "wide": {"model": {"dim": 1100}}, "wide windows": {"model": {"dim": 1100}, "negatives": {"per": "example"}},
         "windows read twice": {"model": {"dim": 516}, "negatives": {"per": "example", "count": 7}},
         "cosines": {"train": {"score": "cosine"}}, "pooled": {"examples": {"mode": "cbow"}},
         "lists": {"corpus": {"path": "friends.lists", "format": "lists"}, "examples": {"window": None},
                   "train": {"held_out": 0.7, "batch": 1, "steps": 400, "epochs": 0, "effort": "quick"}}}


@pytest.mark.parametrize("kind", EMPTY)
def test_ranks_wait_for_one_another_where_most_batches_are_empty(small, kind):
    """A rank that did not wait in an empty batch would overwrite values of the last step that had examples."""
    keys = {"optimizer": {"rule": "sgd", "lr": 0.01}, **EMPTY[kind]}
    keys["train"] = {"batch": 2, "steps": 400, **keys.get("train", {})}
    config = small.config(**keys)
    train(small, 2, config, "--run.dir=two", "--device.rank_timeout=15")
    train(small, 0, config, "--run.dir=alone")
    assert difference(small, "alone", "two") < 1e-4


# ---- three ranks ----

THREE = {
    "windows, clip": {"negatives": {"per": "example"}, "optimizer": {"rule": "sgd", "clip": 0.3}, "train": {"steps": 12}},
    "cosines, clip": {"corpus": {"path": "friends.lists", "format": "lists"}, "optimizer": {"rule": "adagrad", "clip": 0.05},
                      "train": {"epochs": 6, "batch": 8, "score": "cosine", "effort": "quick"}},
    "one target, cosines": {"corpus": {"path": "friends.pairs", "format": "pairs"},
                            "examples": {"positives": 2, "targets": "one"},
                            "optimizer": {"rule": "sgd", "clip": 0.05}, "train": {"epochs": 6, "batch": 8, "score": "cosine"}},
    "wide rows, cosines": {"corpus": {"path": "friends.pairs", "format": "pairs"}, "model": {"dim": 250},
                           "examples": {"positives": 2, "targets": "one"},
                           "optimizer": {"rule": "sgd", "clip": 0.05}, "train": {"epochs": 6, "batch": 8, "score": "cosine"}},
}


@pytest.mark.parametrize("kind", THREE)
# on CPUs all ways are the same, so one is enough
@pytest.mark.parametrize("way", ["gpu", *(pytest.param(way, marks=pytest.mark.long) for way in ("host", "nccl"))])
def test_three_ranks_sum_alike_whatever_the_way(small, kind, way):
    """Ranks have 20, 16 and 14 columns, or 84, 84 and 82. NCCL needs one GPU for each rank."""
    model = {"dim": 50, "context_init": "uniform -0.1 0.1", **THREE[kind].get("model", {})}
    keys = {**THREE[kind], "model": model}
    config = small.config(**keys)
    done = train(small, 3, config, f"--run.dir={way}", f"--device.exchange={way}", expect=None)
    if done.returncode and ON_GPU and way != "host" and gpu_count() < 3:
        said = only_sentence(done.stderr)
        assert f"device.exchange = {way}" in said
        pytest.skip(said)
    assert done.returncode == 0, done.stderr[-3000:]
    train(small, 3, config, "--run.dir=other", "--device.exchange=host", "--memory.depth=1")
    assert small.tables(way) == small.tables("other")
    train(small, 0, config, "--run.dir=alone")
    assert difference(small, "alone", way) < 2e-5


# ---- ranks that keep rows in other places ----

# If a GPU has all contexts in its memory, it sorts only those that a batch repeats, provided the batch has at least 2^18 contexts
# and the table twice as many rows.
ROWS, CONTEXTS = 600000, 4 + 64
PINNED = ["--memory.context=pinned", "--memory.context_state=pinned", "--memory.hot_rows=0"]
WIDE_LOSSES = {"dots": {"loss": "logistic"}, "cosines": {"loss": "softmax", "score": "cosine"}}


def last_loss(sptx, run):
    lines = [json.loads(line) for line in sptx.path(run, "metrics.jsonl").read_text().splitlines()]
    return [line["loss_pair"] for line in lines if "loss_pair" in line][-1]


@pytest.mark.long
@pytest.mark.parametrize("batch, loss", [(4096, "dots"), (4096, "cosines"), (3800, "dots"), (4500, "dots")])
def test_ranks_that_keep_contexts_in_other_places_make_one_model(small, batch, loss):
    """One rank sorts all contexts of a batch, the other only those that occur more than once."""
    if not ON_GPU and (batch, loss) != (4096, "dots"):
        pytest.skip("CPUs sort all of them")
    assert (2 ** 18 <= batch * CONTEXTS <= ROWS / 2) == (batch == 4096)
    small("generate", "books", f"--rows={ROWS}", "--lists=40000", "--out=wide.ids")
    config = small.config(corpus={"path": "wide.ids", "format": "lists"}, model={"dim": 8, "context_init": "uniform -0.1 0.1"},
                          examples={"window": None, "targets": "one", "positives": 4, "short": "repeat"},
                          negatives={"count": 64, "per": "example", "law": "uniform"},
                          optimizer={"rule": "adagrad", "lr": 0.05, "clip": 0.5},
                          memory={"context": "gpu", "context_state": "gpu"},
                          train={"batch": batch, "epochs": 0, "steps": 5, "report_seconds": 1000, **WIDE_LOSSES[loss]})
    small("plan", config, "--run.dir=alike")
    whole = [PROGRAM, "train", config]
    for run, ranks in {"alike": (whole, whole), "first": (whole + PINNED, whole), "second": (whole, whole + PINNED)}.items():
        done = begin(small, *(words + [f"--run.dir={run}", "--corpus.cache=cache"] for words in ranks))
        assert done.returncode == 0, done.stderr[-3000:]
        assert difference(small, "alike", run) < 2e-5
        assert last_loss(small, run) == pytest.approx(last_loss(small, "alike"), rel=1e-5)
