"""Checkpoints that are written while training goes on (run.checkpoint_wait = no): the files are the same as if training waits."""

import json
import os
import re
import shutil
import signal

import pytest

from conftest import FAULTS, STOP_KEYS, checkpoints, end, wait_for, with_corpus
from test_train import SHORT_KEYS, failing

GPU = os.environ.get("SPTX_BACKEND") == "cuda"
FILES = ("target.npy", "context.npy", "state.ini")
BATCH = {"update": "batch", "batch": "64", "epochs": "3"}
LOCK_FREE = {"update": "hogwild", "epochs": "5"}
ONE_THREAD = {"device": {"threads": "1"}, "run": {"checkpoint_every": "epoch", "keep": "1000"}}
WAYS = [
    ({"train": BATCH}, {}),
    ({"train": BATCH, "memory": {"depth": "1"}}, {"memory": {"depth": "7"}, "device": {"threads": "3"}}),
    ({"train": BATCH, "optimizer": {"rule": "adam"}}, {}),
    ({"train": BATCH, "model": {"precision": "bfloat16"}, "optimizer": {"rule": "adagrad"}}, {"device": {"threads": "3"}}),
    ({"train": BATCH, "memory": {"target": "file", "context_state": "file"}, "optimizer": {"rule": "adamax"}}, {}),
    ({"train": BATCH, "memory": {"context": "pinned", "hot_rows": "60"}, "optimizer": {"rule": "adagrad"}}, {}),
    ({"train": BATCH, "memory": {"target": "gpu", "target_state": "pinned", "context": "gpu"}, "optimizer": {"rule": "adam"}}, {}),
    ({"train": BATCH, "examples": {"mode": "cbow"}}, {}),
    # Lock-free training by one thread of the CPU changes rows in a fixed order. Several threads also leave a file with the rows of one
    # moment, but two such runs have different rows.
    ({"train": LOCK_FREE, **ONE_THREAD}, {}),
    ({"train": LOCK_FREE, **ONE_THREAD, "model": {"precision": "bfloat16"}}, {}),
    ({"train": LOCK_FREE, **ONE_THREAD, "examples": {"mode": "cbow"}}, {}),
]


def both(first, second):
    return {section: {**first.get(section, {}), **second.get(section, {})} for section in {**first, **second}}


def files(sptx, run):
    """Returns the files of each checkpoint, without the seconds and the checksum in state.ini."""
    found = {}
    for directory in sptx.path(run).glob("checkpoint-*"):
        texts = [(directory / name).read_bytes() for name in FILES]
        texts[2] = re.sub(rb"\n(seconds|state_xxh64) = .*", b"", texts[2])
        found[directory.name] = texts
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return with_corpus(tmp_path_factory.mktemp("corpus"), 3000)


@pytest.mark.parametrize("keys, others", WAYS)
def test_the_files_are_those_of_a_run_that_waits(corpus, keys, others):
    if GPU and keys["train"] is LOCK_FREE:
        pytest.skip("on a GPU no two runs have the same rows")
    every = {"run": {"checkpoint_every": "30 steps", "keep": "1000"}, "device": {"threads": "2"}}
    ways = {"waits": {"run": {"checkpoint_wait": "yes"}}, "goes_on": both(others, {"run": {"checkpoint_wait": "no"}})}
    for run, more in ways.items():
        shutil.rmtree(corpus.path(run), ignore_errors=True)
        corpus("train", corpus.config(**both(both(every, keys), more)), f"--run.dir={run}")
    waits, goes_on = files(corpus, "waits"), files(corpus, "goes_on")
    assert len(waits) > 2 and waits == goes_on
    first, last = min(waits, key=step_of), max(waits, key=step_of)
    for name in set(waits) - {first}:
        shutil.rmtree(corpus.path("goes_on", name))
    corpus("train", "run.ini", "--run.dir=goes_on", "--resume")  # from the first of them
    assert files(corpus, "goes_on")[last] == waits[last]


def step_of(name):
    return int(name.split("-")[1])


def test_a_run_that_is_killed_while_it_writes_is_resumed(whole):
    sptx, killed = whole, 0
    keys = both(STOP_KEYS, {"run": {"checkpoint_every": "100 steps", "checkpoint_wait": "no"}})
    for number in range(6):
        process = sptx.start("train", sptx.config(**keys), *(["--resume"] if number else []))
        before = checkpoints(sptx)
        assert wait_for(lambda: list(sptx.path("run").glob("checkpoint-*.partial")) or checkpoints(sptx) != before, process)
        process.send_signal(signal.SIGKILL)
        end(process)
        killed += process.returncode == -signal.SIGKILL
    assert killed > 3
    sptx("train", "run.ini", "--resume")
    assert sptx.tables() == sptx.tables("whole") and not list(sptx.path("run").glob("*.partial"))


def test_ctrl_c_writes_the_last_checkpoint(whole):
    sptx = whole
    keys = both(STOP_KEYS, {"run": {"checkpoint_every": "200 steps", "checkpoint_wait": "no"}})
    process = sptx.start("train", sptx.config(**keys))
    assert wait_for(lambda: checkpoints(sptx), process)
    process.send_signal(signal.SIGINT)
    end(process)
    assert process.returncode == 1
    sptx("train", "run.ini", "--resume")
    assert sptx.tables() == sptx.tables("whole")


def test_a_new_run_replaces_the_older_one(trained):
    trained("train", "run.ini", "--overwrite", "--optimizer.lr=0.01", "--run.checkpoint_wait=no", "--run.checkpoint_every=5 steps")
    trained("train", "run.ini", "--run.dir=other", "--optimizer.lr=0.01")
    assert trained.tables() == trained.tables("other") and not trained.path("run", "replacement").exists()


@pytest.mark.skipif(not FAULTS.exists(), reason="make tests builds the library that makes calls fail")
def test_a_disk_that_fails_once_costs_one_checkpoint_and_the_run_can_go_on(sptx):
    config, failed = sptx.config(**both(SHORT_KEYS, {"run": {"checkpoint_wait": "no", "retry_seconds": "0"}})), 0
    passed_over = 0
    sptx("train", config, "--run.dir=whole", env=failing("rename", 0, "EIO"))
    calls = int(re.search(r"^counted rename (\d+)$", sptx.path("log").read_text(), re.M)[1])
    for number in range(1, calls + 1):
        shutil.rmtree(sptx.path("run"), ignore_errors=True)
        done = sptx("train", config, env=failing("rename", number, "EIO"), expect=None)
        failed += done.returncode
        assert done.returncode in (0, 1) and (done.returncode == 0) == ("Input/output error" not in done.stderr.split("\n")[-2])
        passed_over += "; the older one stays, and training goes on" in done.stderr
        assert not list(sptx.path("run").glob("*.partial"))
        if done.returncode:
            sptx("train", config, "--resume")
        assert sptx.tables() == sptx.tables("whole")
    assert failed and passed_over


def test_the_plan_says_what_copies_take(sptx):
    config = sptx.config(device={"backend": "cpu"})
    plans = {wait: json.loads(sptx("plan", config, "--json", f"--run.checkpoint_wait={wait}").stdout)
             for wait in ("auto", "yes", "no")}
    assert plans["auto"]["snapshot_bytes"] == plans["yes"]["snapshot_bytes"] == 0
    copies = plans["no"]["snapshot_bytes"]
    assert 0 < copies == plans["no"]["host_needed"] - plans["yes"]["host_needed"]
    assert "\nsnapshots " in sptx("plan", config, "--run.checkpoint_wait=no").stdout
    sptx.path("corpus.txt").write_text("\n".join(f"w{number} w{number + 1}" for number in range(20000)))
    for dim in ("400", "4096"):
        plan = json.loads(sptx("plan", config, "--json", f"--model.dim={dim}", "--optimizer.rule=adam").stdout)
        assert (plan["snapshot_bytes"] > 0) == (plan["table_memory_bytes"] >= 256 << 20) == (dim == "4096")


def test_several_processes_wait(sptx):
    sentence = sptx.refuses("plan", sptx.config(run={"checkpoint_wait": "no"}), "--device.ranks=2", code=2)
    assert "run.checkpoint_wait = no is for one process, and 2 train" in sentence
