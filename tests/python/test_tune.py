"""tune: finds keys for data of any kind, does not change keys that are set, and leaves no files behind."""

import os
import random

import pytest

import sptx

draw = random.Random(1)
LISTS = {"u%d" % i: ["t%di%d" % (i % 6, item) for item in draw.sample(range(30), 10)] for i in range(180)}
KEYS = {"negatives.count": 20, "train.epochs": 2}


def test_what_it_finds_trains(tmp_path):
    lines = []
    found = sptx.tune(LISTS, trials=3, keys=KEYS, device="cpu", progress=lambda told: lines.append(told.line))
    assert found.trials == 3 and found.measure == "recall@20" and found.score >= found.own and len(lines) >= 6
    assert found.keys["negatives.count"] == 20 and found.keys["train.epochs"] == 2
    with sptx.fit(LISTS, tmp_path / "run", keys=found.keys, device="cpu") as run:
        assert len(run.words) == 180


def test_a_file_of_the_same_data_gives_the_same(tmp_path):
    file = tmp_path / "lists.txt"
    file.write_text("".join("%s %s\n" % (name, " ".join(items)) for name, items in LISTS.items()))
    of_data = sptx.tune(LISTS, trials=4, keys=KEYS, device="cpu")
    of_file = sptx.tune(file, trials=4, keys=KEYS, format="lists", device="cpu")
    assert of_data == of_file


def test_the_same_call_goes_on(tmp_path):
    lines = []
    for _ in range(2):
        found = sptx.tune(LISTS, trials=2, keys=KEYS, device="cpu", path=tmp_path / "my",
                          progress=lambda told: lines.append(told.line))
    half = len(lines) // 2
    assert lines[:half] != lines[half:] and all("=  " in line for line in lines[half:]) and found.trials == 2
    assert os.listdir(tmp_path) == ["my.tune"] and os.listdir(tmp_path / "my.tune") == ["tried.tsv"]


def test_edges_and_epochs():
    edges = [(i, draw.randrange(i)) for i in range(1, 80)] + [tuple(draw.sample(range(80), 2)) for _ in range(200)]
    found = sptx.tune(edges, format="graph", trials=1, keys={"walks.length": 8, "walks.per_node": 2}, device="cpu")
    assert found.measure == "MRR" and found.keys["train.epochs"] in ("1", "2", "6")


def test_the_caller_ends_it():
    found = sptx.tune(LISTS, minutes=10, keys=KEYS, device="cpu", progress=lambda told: told.step == 1)
    assert found.trials == 2


def test_what_is_none_is_refused():
    for minutes in (float("nan"), float("inf"), -1):
        with pytest.raises(ValueError, match="minutes = .* is not a number from 0"):
            sptx.tune(LISTS, trials=1, minutes=minutes, device="cpu")
    with pytest.raises(TypeError, match="wanted a dict"):
        sptx.tune(LISTS, keys=["model.dim"])
    with pytest.raises(ValueError, match="run.dir"):
        sptx.tune(LISTS, keys={"run.dir": "x"})
    with pytest.raises(sptx.Error, match="train.epochs is 0"):
        sptx.tune(LISTS, trials=1, keys={"train.epochs": 0, "train.steps": 3}, device="cpu")
