"""corpus.weights: the rating of a pair is the weight of its loss, in exact steps. Threads, depth, a kill and a resume must change
no byte."""
import json
import os
import random

import pytest

ITEMS, GROUPS, USERS = 150, 5, 300
MODES = {
    "user": {"examples": {"mode": "user"}, "train": {"effort": "quick"}},
    "shared negatives": {"examples": {"mode": "user"}, "negatives": {"per": "batch", "count": 60}},
    "means": {"examples": {"mode": "user", "own": 0.5, "pooled": 3}, "train": {"effort": "quick"}},
    "items": {"examples": {"mode": "list", "positives": 3, "short": "repeat"}},
    "logistic": {"examples": {"mode": "user"}, "train": {"effort": "quick", "loss": "logistic", "score": "dot"}},
    "bpr": {"examples": {"mode": "list"}, "train": {"loss": "bpr"}},
    "contrastive": {"examples": {"mode": "user"}, "train": {"effort": "quick", "loss": "contrastive"}},
}


def plays(sptx, liked=20):
    """Writes plays.csv: each user has eight items of his group that he played often, and eight items of other groups that he played once.
    held.txt has three more items of his group."""
    draw = random.Random(3)
    with open(sptx.path("plays.csv"), "w") as file, open(sptx.path("held.txt"), "w") as held:
        file.write("user,item,plays\n")
        for user in range(USERS):
            own = draw.sample(range(user % GROUPS, ITEMS, GROUPS), 11)
            others = draw.sample([item for item in range(ITEMS) if item % GROUPS != user % GROUPS], 8)
            held.write(" ".join(["u%d" % user] + ["i%d" % item for item in own[8:]]) + "\n")
            lines = [f"u{user},i{item},{liked}\n" for item in own[:8]] + [f"u{user},i{item},1\n" for item in others]
            draw.shuffle(lines)
            file.writelines(lines)


def config(sptx, mode="user", weights="linear", **train):
    keys = MODES[mode]
    return sptx.config(**{**keys, "optimizer": {"schedule": "constant"}, "corpus": {"path": "plays.csv", "format": "pairs", "weights": weights},
                          "train": {"batch": 64, "epochs": 4, **keys.get("train", {}), **train}})


def metrics(sptx, run="run"):
    return [json.loads(line) for line in sptx.path(run, "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("mode", MODES)
def test_threads_depth_and_a_resume_change_no_byte(sptx, mode):
    plays(sptx)
    name = config(sptx, mode)
    said = sptx("train", name).stderr
    assert "weights    ratings 1 to 20, mean 10.5 (corpus.weights = linear)\n" in said
    sptx("train", name, "--run.dir=other", "--device.threads=1", "--memory.depth=1")
    assert sptx.tables("other") == sptx.tables()
    sptx("train", name, "--run.dir=none", "--corpus.weights=none")
    assert sptx.tables("none") != sptx.tables()
    sptx("train", name, "--run.dir=half", "--run.checkpoint_every=epoch", "--train.steps=12")
    sptx("train", name, "--run.dir=half", "--run.checkpoint_every=epoch", "--train.steps=0", "--resume")
    sptx("train", name, "--run.dir=whole", "--run.checkpoint_every=epoch")
    assert sptx.tables("half") == sptx.tables("whole") == sptx.tables()


def test_log_weighs_by_the_logarithm_of_one_more(sptx):
    plays(sptx)
    said = sptx("train", config(sptx, weights="log")).stderr
    assert "weights    ratings 1 to 20, mean of log(1 + rating) 1.869 (corpus.weights = log)\n" in said


@pytest.mark.parametrize("mode", ["user", "items", "logistic"])
def test_equal_weights_are_no_weights(sptx, mode):
    """Weights are divided by their mean. If all are 7, they change the model at most by rounding."""
    import numpy
    plays(sptx)
    text = sptx.path("plays.csv").read_text()
    sptx.path("plays.csv").write_text("".join(line.rsplit(",", 1)[0] + ",7\n" if line[0] == "u" and line[1] != "s" else line
                                              for line in text.splitlines(True)))
    sptx("train", config(sptx, mode, steps=8))  # few steps, so that differences by rounding stay small
    sptx("train", config(sptx, mode, "none", steps=8), "--run.dir=none")
    near = 2e-3 if os.environ.get("SPTX_BACKEND") == "cuda" else 1e-4  # a GPU computes weighted losses by other kernels
    for table in ("target.npy", "context.npy"):
        ours, theirs = (numpy.load(sptx.checkpoint(run) / table)["weights"] for run in ("run", "none"))
        assert numpy.abs(ours - theirs).max() <= near * numpy.abs(theirs).max()
    assert metrics(sptx)[-1]["loss"] == pytest.approx(metrics(sptx, "none")[-1]["loss"], rel=2 * near)


@pytest.mark.parametrize("mode", ["user", "shared negatives", "logistic"])
def test_what_is_played_often_is_learnt_better(sptx, mode):
    plays(sptx)
    recall = {}
    for weights in ("none", "linear"):
        sptx("train", config(sptx, mode, weights, epochs=12), f"--run.dir={weights}")
        done = sptx("evaluate", weights, "--held-out=held.txt", "--train=plays.csv", "--k=10", "--format=lists")
        recall[weights] = float(dict(line.split()[:2] for line in done.stdout.splitlines())["recall@10"])
    assert recall["linear"] > 1.1 * recall["none"]


def test_a_resume_with_other_weights_is_refused(sptx):
    plays(sptx)
    name = config(sptx)
    sptx("train", name, "--train.steps=20")
    assert "corpus.weights" in sptx.refuses("train", name, "--resume", "--train.steps=0", "--corpus.weights=log")
    plays(sptx, liked=19)
    assert "corpus" in sptx.refuses("train", name, "--resume", "--train.steps=0")


def test_pairs_of_weight_0_are_left_out(sptx):
    plays(sptx)
    name = config(sptx)
    sptx("train", name)
    with open(sptx.path("plays.csv"), "a") as file:
        file.write("u0,never-played,0\nnobody,i1,0\n")
    sptx("train", name, "--run.dir=more")
    assert sptx.tables("more") == sptx.tables()
    assert "never-played" not in sptx.path("more", "vocab.tsv").read_text()


def test_held_out_items_and_a_plan(sptx):
    plays(sptx)
    name = config(sptx)
    sptx("train", name, "--train.held_out_items=0.2", "--train.held_out=0.05")
    assert any("held_out" in key for line in metrics(sptx) for key in line)
    size = {weights: json.loads(sptx("plan", name, "--json", f"--corpus.weights={weights}").stdout)["stream_bytes"]
            for weights in ("none", "linear")}
    pairs = sptx.path("plays.csv").read_text().count("\n") - 1
    assert size["linear"] - size["none"] == pytest.approx(4 * (pairs + USERS), abs=8)


@pytest.mark.parametrize("lines, sentence", [
    (["u0,i1,-2"], "'bad.csv' line 3: the rating -2 cannot be the pair's weight (corpus.weights); wanted 0 or a positive number"),
    (["u0,i1,nan"], "'bad.csv' line 3: the rating 'nan' is not a number"),
    (["u0,i1,"], "'bad.csv' line 3: no rating, which corpus.weights makes the pair's weight"),
])
def test_what_is_no_weight_is_refused_with_its_line(sptx, lines, sentence):
    sptx.path("bad.csv").write_text("user,item,plays\n" + "\n".join(["u0,i0,3"] + lines + ["u1,i0,1", "u1,i1,2"]) + "\n")
    assert sptx.refuses("train", "--corpus.path=bad.csv", "--corpus.format=pairs", "--corpus.weights=log").startswith(sentence)


@pytest.mark.parametrize("keys, sentence", [
    (["--train.update=hogwild", "--optimizer.rule=sgd"], "train.update = hogwild trains all pairs alike"),
    (["--corpus.format=lists"], "corpus.weights = linear needs corpus.format = pairs, whose lines have ratings, and it is lists"),
    (["--examples.mode=window"], "corpus.weights = linear weighs the positives of lists"),
])
def test_what_cannot_be_weighed_is_refused(sptx, keys, sentence):
    plays(sptx)
    config(sptx)
    assert sentence in sptx.refuses("train", "run.ini", *keys)


def test_an_encoded_corpus_without_weights_is_refused(sptx):
    sptx("generate", "books", "--out=books.ids", "--rows=200", "--lists=300")
    keys = ["--corpus.path=books.ids", "--corpus.format=pairs", "--run.dir=run"]
    sptx("train", *keys)
    assert sptx.refuses("train", *keys, "--corpus.weights=log", "--overwrite") == (
        "corpus.weights = log, and the encoded corpus 'books.ids' was made with corpus.weights = none")


def test_tune_tries_weights_where_pairs_have_them(sptx):
    plays(sptx)
    name = config(sptx, weights=None, epochs=2)
    tried = sptx("tune", name, "--trials=8").stdout
    assert "corpus.weights=linear" in tried or "corpus.weights=log" in tried
    assert "corpus.weights" not in sptx("tune", name, "--trials=8", "--anew", "--corpus.weights=none").stdout
