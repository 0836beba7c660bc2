"""Checkpoints that several ranks write and read together: mpirun -n G sptx-w2v train."""
import os
import re
import subprocess
import time

import pytest

from conftest import FAULTS, PROGRAM, SLOWER, with_corpus
from ranks import ENVIRONMENT, mpi, only_sentence, small, together, train  # noqa: F401

# Numbers of write() calls: for each of the two files of a checkpoint a rank writes a number and its rows, in this order. These are
# calls of the second checkpoint; the first rank has made one call more, since it has written its name into the lock.
NUMBER, ROWS, ROWS_OF_FIRST = 5, 6, 7


def with_fault(sptx, rank, function, number, error, *arguments, kind="write", timeout=60 * SLOWER):
    """Trains with three ranks over a corpus that is already encoded. In one rank the call `number` of a system function fails."""
    sptx("plan", *arguments)
    fault = ["env", f"LD_PRELOAD={FAULTS}", f"FAULT_KIND={kind}", f"FAULT_FUNCTION={function}", f"FAULT_NUMBER={number}",
             f"FAULT_ERROR={error}"]
    words = ["mpirun", "--oversubscribe"]
    for r in range(3):
        words += [":"] * (r > 0) + ["-n", "1", *(fault if r == rank else []), PROGRAM, "train", *arguments]
    return subprocess.run(list(map(str, words)), cwd=sptx.directory, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          capture_output=True, encoding="utf-8", timeout=timeout * SLOWER)


BRIEF = {"model": {"dim": 50}, "train": {"epochs": 0, "steps": 30, "batch": 128}, "optimizer": {"rule": "adam"},
         "run": {"checkpoint_every": "10 steps", "keep": 9}}


@pytest.fixture
def faulty(small):
    if not FAULTS.exists():
        pytest.skip(f"{FAULTS} is not built")
    return small


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of BRIEF in which no call fails."""
    program = with_corpus(tmp_path_factory.mktemp("whole"))
    train(program, 3, program.config(**BRIEF))
    return program


def goes_on_to_the_same_bytes(sptx, whole):
    train(sptx, 3, "run.ini", "--resume")
    assert sptx.tables() == whole.tables()


@pytest.mark.parametrize("rank, function, number, error, kind, says", [
    (2, "pwrite", ROWS, "ENOSPC", "write", "cannot write"),
    pytest.param(0, "pwrite", ROWS_OF_FIRST, "EIO", "write", "cannot write", marks=pytest.mark.long),
    (1, "fsync", ROWS, "EIO", "sync", "cannot sync"),
])
def test_a_disk_that_fails_a_rank_once_costs_all_of_them_one_checkpoint(faulty, whole, rank, function, number, error, kind, says):
    done = with_fault(faulty, rank, function, number, error, faulty.config(**BRIEF), kind=kind)
    said = re.findall("warning: checkpoint-20 is not written: (.*); the older one stays, and training goes on", done.stderr)
    assert done.returncode == 0 and len(said) == 1 and f"{says} '" in said[0] and "target.npy'" in said[0], done.stderr
    assert said[0].startswith(f"rank {rank} of 3, on ") == (rank > 0)
    assert sorted(name for name in os.listdir(faulty.path("run")) if name.startswith("checkpoint")) == ["checkpoint-10", "checkpoint-30"]
    assert faulty.path("run", "latest").read_text() == "checkpoint-30\n" and faulty.tables() == whole.tables()


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.long), 1])
def test_a_rank_killed_in_a_checkpoint_leaves_the_older_one(faulty, whole, rank):
    began = time.monotonic()
    done = with_fault(faulty, rank, "pwrite", ROWS if rank else ROWS_OF_FIRST, "KILL", faulty.config(**BRIEF))
    assert done.returncode != 0 and time.monotonic() - began < 30 and "signal 9" in done.stderr
    assert faulty.path("run", "latest").read_text() == "checkpoint-10\n"
    goes_on_to_the_same_bytes(faulty, whole)


@pytest.mark.parametrize("rank, function, number, kind", [
    (2, "pwrite", ROWS, "write"),
    pytest.param(0, "pwrite", ROWS_OF_FIRST, "write", marks=pytest.mark.long),
    (0, "rename", 11, "rename"),  # the rename that completes the second checkpoint
])
def test_a_rank_that_hangs_in_a_checkpoint_is_named(faulty, whole, rank, function, number, kind):
    began = time.monotonic()
    done = with_fault(faulty, rank, function, number, "STOP", faulty.config(**BRIEF), "--device.rank_timeout=1", kind=kind)
    assert done.returncode != 0 and time.monotonic() - began < 30
    said = only_sentence(done.stderr)
    assert f"rank {rank} of 3 did not come with its part of a step or a checkpoint within 1 s (device.rank_timeout)" in said
    goes_on_to_the_same_bytes(faulty, whole)  # mpirun continues a stopped process before it ends it


@pytest.mark.long
def test_a_rank_that_hangs_before_the_first_step_is_named(faulty):
    """The rank is stopped when it maps the corpus. Before the first step, ranks wait at least a minute for one another, whatever
    device.rank_timeout says, since opening devices and files may take long."""
    began = time.monotonic()
    done = with_fault(faulty, 2, "madvise", 1, "STOP", faulty.config(**BRIEF), "--device.rank_timeout=1", kind="map", timeout=120)
    assert done.returncode != 0 and 60 < time.monotonic() - began < 90
    said = only_sentence(done.stderr)
    assert "rank 2 of 3 did not come with its part of the start within 60 s (device.rank_timeout, a minute at least)" in said


def test_a_slow_disk_is_no_rank_that_hangs(faulty):
    """Each write of the second rank takes two seconds, but its process still answers. It must not count as hanging."""
    words = [PROGRAM, "train", faulty.config(**BRIEF), "--device.rank_timeout=1", "--train.steps=10"]
    slow = ["env", f"LD_PRELOAD={FAULTS}", "FAULT_SLEEP=2", *words]
    done = subprocess.run(list(map(str, ["mpirun", "--oversubscribe", "-n", "1", *words, ":", "-n", "1", *slow])),
                          cwd=faulty.directory, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
                          encoding="utf-8", timeout=60 * SLOWER)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("rank, number, error", [(1, NUMBER, "ENOSPC"), (2, ROWS, "SHORT")])
def test_what_does_not_hinder_a_checkpoint_changes_no_byte(faulty, whole, rank, number, error):
    """A rank that cannot write to the common file sends its columns to the first rank. A write that is cut short is continued.
    Neither changes a byte."""
    done = with_fault(faulty, rank, "pwrite", number, error, faulty.config(**BRIEF))
    assert done.returncode == 0, done.stderr
    for step in (10, 20, 30):
        for name in ("target.npy", "context.npy"):
            paths = [sptx.path("run", f"checkpoint-{step}", name) for sptx in (faulty, whole)]
            assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("grown", [False, True])
def test_ranks_that_do_not_see_one_file_system(small, grown):
    """The second rank has its own empty disk under the same path, as on another machine."""
    own = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$PWD" && cd "$PWD" && exec "$@"', "sh"]
    if subprocess.run([*own, "true"], cwd=small.directory, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    config = small.config(**BRIEF, corpus={"path": small.path("corpus.txt")})
    train(small, 2, config, "--run.dir=whole")
    more = []
    if grown:  # only the checkpoint says which rows are known
        sentences = small.path("corpus.txt").read_text().splitlines(True)
        small.path("longer.txt").write_text("".join(sentences) + "".join(line.replace("w1", "new") for line in sentences[:200]))
        more = [f"--train.from={small.path('whole')}", "--train.freeze=known", f"--corpus.path={small.path('longer.txt')}"]
        train(small, 2, config, "--run.dir=grown", *more)
    there = small.path("there")
    there.mkdir()
    for name in ("first", "second"):
        steps = ["--train.steps=20"] if name == "first" else ["--resume"]
        words = [PROGRAM, "train", small.path(config), f"--run.dir={there / 'run'}", *more, *steps]
        done = subprocess.run(list(map(str, ["mpirun", "--oversubscribe", "-n", "1", *words, ":", "-n", "1", *own, *words])),
                              cwd=there, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                              timeout=60 * SLOWER)
        assert done.returncode == 0, done.stderr
    assert small.tables("there/run") == small.tables("grown" if grown else "whole")


@pytest.mark.parametrize("ranks", [1, 3, pytest.param(5, marks=pytest.mark.long)])
def test_tables_of_many_chunks_have_one_file(sptx, ranks):
    done = together(ranks, sptx.directory)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stderr
