"""negatives.per = batch: each item of a list is an example, and the examples of a batch share their negatives."""
import json
import os

import pytest

from test_users import baskets, write

KEYS = {"negatives": {"per": "batch", "count": 150}, "model": {"dim": 24}, "optimizer": {"rule": "adam", "lr": 0.02},
        "train": {"batch": 200, "epochs": 6, "negative_power": 0}}


def config(sptx, format="lists", **sections):
    keys = {section: {**KEYS.get(section, {}), **sections.get(section, {})} for section in {**KEYS, **sections}}
    return sptx.config(corpus={"format": format}, **keys)


def test_nothing_depends_on_threads_depth_or_a_resume(sptx):
    write(sptx, baskets())
    keys = config(sptx, optimizer={"schedule": "constant"}, train={"negative_power": 1.15})
    sptx("train", keys, "--run.dir=whole", "--device.threads=1", "--memory.depth=1")
    for threads, depth in ((2, 3), (3, 2), (4, 8)):
        sptx("train", keys, "--run.dir=other", "--overwrite", f"--device.threads={threads}", f"--memory.depth={depth}")
        assert sptx.tables("other") == sptx.tables("whole")
    sptx("train", keys, "--run.dir=half", "--train.epochs=0", "--train.steps=25")  # in the middle of an epoch
    sptx("train", keys, "--run.dir=half", "--train.steps=0", "--resume")
    assert sptx.tables("half") == sptx.tables("whole")


@pytest.mark.parametrize("keys", [{}, {"train": {"negative_power": 1.15}}, {"negatives": {"exclude": "no"}},
                                  {"negatives": {"law": "unigram", "distinct": "yes"}},
                                  {"model": {"precision": "bfloat16"}, "optimizer": {"lr": 0.01}},
                                  {"memory": {"target": "file", "context": "file"}}])
def test_held_out_items_are_found(sptx, keys):
    write(sptx, baskets(count=600))
    out = sptx("train", config(sptx, **{**keys, "train": {"held_out_items": 0.2, "epochs": 15, **keys.get("train", {})}})).stderr
    recall = float(out.split("recall@20")[1].split()[0])
    assert recall > 0.5  # by chance: thirty of 180 items


def test_exclude_decides_which_negatives_count(sptx):
    write(sptx, baskets())
    sptx("train", config(sptx), "--run.dir=yes")
    sptx("train", config(sptx), "--run.dir=no", "--negatives.exclude=no")
    assert sptx.tables("yes") != sptx.tables("no")


def test_items_as_examples_with_negatives_of_their_own(sptx):
    """examples.targets = all without shared negatives: the number of pairs is that of the corpus, and the number of threads
    changes no byte."""
    lists = baskets()
    write(sptx, lists)
    keys = config(sptx, examples={"mode": "user", "targets": "all"}, negatives={"per": "example", "count": 20})
    out = sptx("train", keys, "--run.dir=one", "--device.threads=1").stderr
    assert f"{6 * sum(map(len, lists.values())):,} pairs" in out
    sptx("train", keys, "--run.dir=many", "--device.threads=3")
    assert sptx.tables("one") == sptx.tables("many")


def test_held_out_examples_are_measured(sptx):
    write(sptx, baskets())
    sptx("train", config(sptx, train={"held_out": 0.1}))
    lines = [json.loads(line) for line in sptx.path("run", "metrics.jsonl").read_text().splitlines()]
    held_out = [line[key] for line in lines for key in line if "held_out" in key and isinstance(line[key], float)]
    assert held_out and held_out[-1] < held_out[0]


def test_the_plan_counts_the_scores(sptx):
    write(sptx, baskets())
    few, many = (json.loads(sptx("plan", config(sptx), "--json", f"--negatives.count={n}").stdout) for n in (64, 6400))
    assert 200 * 6336 * 4 <= many["work_bytes"] - few["work_bytes"] <= 200 * 6336 * 4 * 4
    assert many["batch"] == 200 and "list positions" in sptx("plan", config(sptx)).stdout
    write(sptx, baskets(count=20000))
    assert json.loads(sptx("plan", config(sptx), "--json", "--train.batch=auto").stdout)["batch"] == 2048


@pytest.mark.parametrize("keys, words", [
    (["--examples.mode=list"], ["negatives.per = batch", "list"]),
    (["--train.loss=bpr"], ["train.loss = softmax", "bpr"]),
    (["--examples.mode=user", "--train.update=hogwild"], ["train.update = batch"]),
    (["--examples.own=0.5"], ["examples.own = 0.5"]),
    (["--examples.positives=4"], ["examples.positives"]),
    (["--train.batch=100000", "--negatives.count=65536"], ["2^31"]),
    (["--negatives.distinct=yes", "--negatives.count=1000"], ["negatives.distinct", "1000 different rows"]),
])
def test_what_cannot_work_is_refused(sptx, keys, words):
    write(sptx, baskets())
    sentence = sptx.refuses("train", config(sptx), *keys)
    assert all(word in sentence for word in words), sentence


def test_tf32_changes_a_gpu_alone(sptx):
    write(sptx, baskets(count=600))
    keys = config(sptx, train={"held_out_items": 0.2, "epochs": 15})
    recalls = [float(sptx("train", keys, f"--run.dir={matmul}", f"--device.matmul={matmul}").stderr.split("recall@20")[1].split()[0])
               for matmul in ("float32", "tf32")]
    assert min(recalls) > 0.5
    assert (sptx.tables("float32") == sptx.tables("tf32")) == (os.environ.get("SPTX_BACKEND", "cpu") == "cpu")


def test_distinct_negatives_may_be_all_items(sptx):
    write(sptx, baskets())
    keys = config(sptx, negatives={"law": "uniform", "distinct": "yes", "count": 180}, train={"epochs": 1})
    sptx("train", keys)
    assert "181 different rows, and only 180 can be drawn;" in sptx.refuses("train", keys, "--negatives.count=181", "--overwrite")


def test_ranks_need_dot_products(sptx):
    write(sptx, baskets())
    sentence = sptx.refuses("plan", config(sptx), "--device.ranks=2")
    assert "train.score = cosine is trained by one process" in sentence and "train.score = dot, or negatives.per = example" in sentence
    sptx("plan", config(sptx), "--device.ranks=2", "--train.score=dot")
