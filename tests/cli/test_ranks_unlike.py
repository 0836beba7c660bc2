"""Ranks whose command, keys, corpus or rights differ from the others': one error message is printed, and no rank hangs."""
import json
import os
import time

import pytest

from conftest import PROGRAM
from ranks import begin, mpi, only_sentence, refuses, refuses_unlike, small, train  # noqa: F401

ON_GPU = os.environ.get("SPTX_BACKEND") == "cuda"

@pytest.mark.parametrize("first, second", [([], ["--resume"]), (["--resume"], [])])
def test_what_the_first_rank_was_told_holds_for_all(small, first, second):
    """Whether a run is resumed depends on its directory, and only the first rank looks at that."""
    config = small.config(model={"dim": 50}, train={"steps": 20})
    train(small, 2, config)
    arguments = [["--run.dir=other"] * (not first) + extra for extra in (first, second)]
    done = begin(small, *([PROGRAM, "train", config, *extra] for extra in arguments))
    assert done.returncode == 0, done.stderr
    assert ("finished already" in done.stderr) == bool(first)
    if not first:
        assert small.tables("other") == small.tables()


def test_a_rank_that_fails_is_named(small):
    config = small.config(model={"dim": 50}, train={"steps": 5})
    small.path("other.txt").write_text("a b c d\n" * 50)
    said = refuses_unlike(small, [config], ["nothing.ini"])
    assert said.startswith("rank 1 of 2, on ") and "cannot open 'nothing.ini'" in said
    said = refuses_unlike(small, [config], [config, "--train.batch=32"])
    assert said.startswith("rank 1 of 2, on ") and "'batch = 32' where rank 0 has 'batch = 256'" in said
    said = refuses_unlike(small, [config], [config, "--corpus.path=other.txt", "--corpus.cache=cache"])
    assert said.startswith("rank 1 of 2, on ") and "its corpus has other words" in said
    small.path("one.txt").write_text("a a a b b c\n" * 50)
    small.path("two.txt").write_text("a b a b a c\n" * 50)
    one, two = ([config, f"--corpus.path={name}.txt", f"--corpus.cache={name}"] for name in ("one", "two"))
    said = refuses_unlike(small, one, two)
    assert said.startswith("rank 1 of 2, on ") and "its corpus has the words of rank 0's in another order" in said


def test_keys_of_a_machine_may_differ(small):
    config = small.config(model={"dim": 50}, train={"steps": 20})
    train(small, 2, config, "--run.dir=alike")
    own = ["--device.threads=1", "--memory.depth=1", "--memory.target=file", "--device.rank_timeout=9", "--quiet"]
    done = begin(small, [PROGRAM, "train", config], [PROGRAM, "train", config, *own])
    assert done.returncode == 0, done.stderr
    assert small.tables() == small.tables("alike")


def test_ways_of_summing_must_be_alike(small):
    config = small.config(model={"dim": 50}, train={"steps": 5})
    said = refuses_unlike(small, [config], [config, "--device.exchange=host"])
    assert said.startswith("rank 1 of 2, on ") and "its device.exchange is not that of rank 0" in said
    if ON_GPU:
        said = refuses_unlike(small, [config], [config, "--device.backend=cpu"])
        assert said.startswith("rank 1 of 2, on ") and "it trains on the CPU where rank 0 trains on a GPU" in said


# ---- other commands ----

@pytest.mark.parametrize("first, second", [("train", "plan"), ("plan", "train"), ("train", "bench ranks")])
def test_all_ranks_have_one_command(small, first, second):
    config = small.config(model={"dim": 50}, train={"steps": 5})
    done = begin(small, *([PROGRAM, *words.split(), config] for words in (first, second)))
    said = only_sentence(done.stderr)
    assert done.returncode != 0 and done.stdout == ""
    assert said.startswith("rank 1 of 2, on ") and f" {second}' as this process" in said and f" {first}' as rank 0" in said
    assert not small.path("run").exists()


@pytest.mark.long
def test_a_process_that_is_no_rank_is_not_waited_for(small):
    """One process has ended before the others begin. MPI would wait for it for ever."""
    config, began = small.config(model={"dim": 50}, train={"steps": 5}), time.monotonic()
    late = ["sh", "-c", 'sleep 1; exec "$@"', "sh", PROGRAM, "train", config]
    done = begin(small, [PROGRAM, "help"], late, late)
    said = only_sentence(done.stderr)
    assert done.returncode != 0 and 30 < time.monotonic() - began < 50
    assert said.startswith("rank 1 of 3, on ") and "not all of the processes that mpirun began have joined" in said


def test_a_process_that_ends_before_it_has_joined_ends_all(small):
    config, began = small.config(model={"dim": 50}, train={"steps": 5}), time.monotonic()
    done = begin(small, [PROGRAM, "train", config], ["sh", "-c", "sleep 1; kill -9 $$"])
    assert done.returncode != 0 and time.monotonic() - began < 20
    assert not small.path("run").exists()


def test_ranks_plan_for_themselves(small):
    """Three ranks print one plan, the same as one process with device.ranks = 3 or device.gpus = 3."""
    config = small.config(model={"dim": 50})
    done = begin(small, *[[PROGRAM, "plan", config, "--json", "--device.threads=1"]] * 3)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    alone, apart, here = (json.loads(small("plan", config, "--json", "--device.threads=1", *more).stdout)
                          for more in ([], ["--device.ranks=3"], ["--device.gpus=3", "--device.share=columns"]))
    assert (plan["ranks"], plan["columns"]) == (here["ranks"], here["columns"]) == (apart["ranks"], apart["columns"]) == (3, 20)
    assert plan["host_needed"] == here["host_needed"] == apart["host_needed"]
    third = alone["host_available"] / 3  # other tests use the machine's memory, too: hence rel=0.2
    assert plan["host_available"] == pytest.approx(third, rel=0.2) and here["host_available"] == pytest.approx(third, rel=0.2)
    assert apart["host_available"] == pytest.approx(alone["host_available"], rel=0.2)
    done = begin(small, *[[PROGRAM, "plan", config, "--model.dim=2"]] * 3)
    assert done.returncode != 0 and "fewer columns" in only_sentence(done.stderr)
    done = begin(small, *[[PROGRAM, "plan", config, "--device.ranks=5"]] * 3)
    assert done.returncode != 0 and done.stdout == "" and "device.ranks = 5, and this run has 3" in only_sentence(done.stderr)


# ---- many ----

def test_more_ranks_than_gpus_of_one_machine_have_mailboxes(small):
    """There are 17 ranks, more than there are groups of four columns."""
    config = small.config(model={"dim": 50, "context_init": "uniform -0.1 0.1"}, train={"steps": 10}, device={"threads": 1})
    train(small, 17, config)
    train(small, 17, config, "--run.dir=again")
    assert small.tables() == small.tables("again")
    assert "has fewer columns than there are ranks" in refuses(small, 17, config, "--model.dim=16", "--run.dir=other")
