"""What a run holds out from training, and runs that end when the held-out score no longer improves (train.patience)."""
import json
import random
import shutil

import pytest

from conftest import ROOT

LISTS = {"corpus": {"format": "lists"}, "negatives": {"count": 20},
         "optimizer": {"rule": "adam", "lr": 0.02, "schedule": "constant"},
         "train": {"batch": 64, "epochs": 40, "held_out_items": 0.1, "patience": 3}, "run": {"keep": 1}}


def lists(sptx, **train):
    """Writes lists of four topics. Each list has 12 of its topic's 40 items."""
    draw = random.Random(1)
    lines = [f"list{i} " + " ".join(f"t{i % 4}i{item}" for item in draw.sample(range(40), 12)) for i in range(240)]
    sptx.path("corpus.txt").write_text("\n".join(lines) + "\n")
    return sptx.config(**{**LISTS, "train": {**LISTS["train"], **train}})


def scores(sptx, run="run", key="held_out_recall"):
    lines = map(json.loads, sptx.path(run, "metrics.jsonl").read_text().splitlines())
    return [(line["step"], line[key]) for line in lines if key in line]


def state(sptx, run="run"):
    lines = (sptx.checkpoint(run) / "state.ini").read_text().splitlines()
    return dict(line.split(" = ") for line in lines if " = " in line)


def test_a_run_ends_where_its_score_does_not_rise_and_leaves_the_best(sptx):
    done = sptx("train", lists(sptx))
    found = scores(sptx)
    best = max(found, key=lambda one: (one[1], -one[0]))
    assert 4 <= len(found) < 40 and found[-1][0] > best[0] and len(found) - found.index(best) == 4
    assert [path.name for path in sptx.path("run").glob("checkpoint-*")] == [f"checkpoint-{best[0]}"]
    assert sptx.path("run", "latest").read_text() == f"checkpoint-{best[0]}\n"
    assert state(sptx)["finished"] == "1" and state(sptx)["ended_step"] == str(found[-1][0])
    assert f"best       checkpoint-{best[0]}" in done.stderr
    assert "is finished already" in sptx("train", "run.ini", "--resume").stderr
    assert scores(sptx) == found


def test_a_killed_run_ends_as_it_would_have(sptx):
    config = lists(sptx)
    sptx("train", config)
    sptx("train", config, "--run.dir=all", "--run.keep=999", "--run.checkpoint_every=3 steps")
    assert sptx.tables("all") == sptx.tables() and scores(sptx, "all") == scores(sptx)
    steps = sorted(int(path.name[11:]) for path in sptx.path("all").glob("checkpoint-*"))
    for last in steps[0], steps[1], steps[len(steps) // 2], steps[-2]:
        run = f"cut{last}"
        shutil.copytree(sptx.path("all"), sptx.path(run))
        for late in steps[steps.index(last) + 1:]:
            shutil.rmtree(sptx.path(run, f"checkpoint-{late}"))
        sptx("train", config, f"--run.dir={run}", "--resume")
        assert sptx.tables(run) == sptx.tables() and scores(sptx, run) == scores(sptx)
        assert state(sptx, run)["ended_step"] == state(sptx)["ended_step"]


def test_more_epochs_can_be_asked_for_while_the_score_rises(sptx):
    config = lists(sptx)
    sptx("train", config, "--train.epochs=2")
    sptx("train", config, "--train.epochs=4", "--resume")
    sptx("train", config, "--train.epochs=4", "--run.dir=once")
    assert sptx.tables() == sptx.tables("once") and scores(sptx) == scores(sptx, "once")


def test_held_out_items_are_never_trained_and_judged_at_the_end(sptx):
    config = lists(sptx, patience=0, epochs=8)
    done = sptx("train", config)
    (step, recall), = scores(sptx)
    assert recall > 0.4 and f"held out   recall@20 {recall:.4f} of " in done.stderr
    whole = sptx("train", config, "--train.held_out_items=0", "--run.dir=whole").stderr
    assert "recall@20" not in whole and sptx.tables("whole") != sptx.tables()


def test_patience_goes_by_the_loss_of_held_out_text(sptx):
    config = sptx.config(train={"held_out": 0.1, "patience": 2, "epochs": 60}, optimizer={"rule": "adagrad", "lr": 0.5})
    done = sptx("train", config)
    found = scores(sptx, key="held_out_loss_pair")
    best = min(found, key=lambda one: one[1])
    assert len(found) < 60 and state(sptx)["step"] == str(best[0]) and "held-out loss a pair" in done.stderr


def test_each_lock_free_epoch_is_judged_however_short(sptx):
    sptx("train", f"--corpus.path={ROOT / 'corpora/places.triples'}", "--corpus.format=triples", "--examples.mode=walk", "--model.dim=16", "--train.held_out=0.1",
         "--train.patience=2", "--train.epochs=30", "--device.backend=cpu", "--device.threads=1", "--run.dir=run")
    found = scores(sptx, key="held_out_loss_pair")
    best = min(found, key=lambda one: one[1])
    assert [step for step, _ in found] == list(range(1, len(found) + 1)) and len(found) == min(30, best[0] + 2)
    assert sptx.path("run", "latest").read_text() == f"checkpoint-{best[0]}\n"


def test_a_best_checkpoint_that_is_no_longer_the_best_is_not_kept_besides(sptx):
    sptx("train", lists(sptx, epochs=3, patience=10), "--run.keep=2")
    steps = [step for step, _ in scores(sptx)]
    assert state(sptx)["best_step"] == str(steps[-1])
    assert sorted(int(path.name[11:]) for path in sptx.path("run").glob("checkpoint-*")) == steps[-2:]


@pytest.mark.parametrize("keys, parts", [
    ({"corpus": {"format": "lists"}, "train": {"patience": 2}}, ("train.patience = 2", "held_out_items = 0.1")),
    ({"train": {"patience": 2}}, ("train.patience = 2", "train.held_out = 0.01")),
    ({"train": {"held_out_items": 0.1}}, ("train.held_out_items = 0.1", "corpus.format is text")),
])
def test_what_cannot_work_is_refused(sptx, keys, parts):
    said = sptx.refuses("train", sptx.config(**keys))
    assert all(part in said for part in parts), said
