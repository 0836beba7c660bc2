"""Kills runs in batch mode while batches are in flight, and resumes them until they end. The result must have the bytes of a run
that was never killed.

At any moment thousands of rows of pinned tables and tables in files are on their way between host and GPU. Without a GPU no rows
are on their way: test_train.py kills runs on the CPU. SPTX_KILLS is the number of kills (default 100); if it is set, the test also
runs on the CPU.
"""
import concurrent.futures
import os
import random
import shutil
import time

import pytest

from conftest import KEYS, Program, checkpoints, end, wait_for

KILLS = int(os.environ.get("SPTX_KILLS", "100"))
pytestmark = pytest.mark.skipif(KEYS["device"]["backend"] != "cuda" and "SPTX_KILLS" not in os.environ,
                                reason="no GPU: scripts/check_gpu runs this")

KEYS_OF_ALL = {"model": {"dim": "128"},
               "optimizer": {"rule": "adagrad", "lr": "0.05"},
               "device": {"threads": "8"},
               "memory": {"hot_rows": "0", "depth": "5"},
               "train": {"report_seconds": "0.02"},
               "run": {"checkpoint_every": "60 steps"}}
LISTS = {"corpus": {"format": "lists"}, "negatives": {"count": "16"}, "examples": {"mode": "list", "positives": "4"},
         "train": {"batch": "8192", "epochs": "150"}}
WINDOWS = {"corpus": {"format": "text"}, "negatives": {"per": "pair"}, "examples": {"subsample": "0"},
           "train": {"batch": "2800", "epochs": "60"}}
RUNS = {"lists": LISTS,
        "windows": WINDOWS,
        "both pinned": {**LISTS, "memory": {"context": "pinned", "context_state": "pinned", "hot_rows": "200"}},
        "file": {**LISTS, "memory": {"target": "file", "target_state": "pinned"}}}


def write_corpus(program, name, lists=4000, rows=12000):
    """Makes lists of 5 to 15 of `rows` items. Low numbers are frequent, so that batches have many rows in common."""
    rng = random.Random(name)
    with open(program.path("corpus.txt"), "w") as file:
        for number in range(lists):
            items = " ".join(f"i{int(rows * rng.random() ** 1.5)}" for _ in range(rng.randint(5, 15)))
            file.write(f"l{number} {items}\n" if RUNS[name] is not WINDOWS else items + "\n")


def merged(*parts):
    keys = {}
    for part in parts:
        for section, values in part.items():
            keys[section] = {**keys.get(section, {}), **values}
    return keys


def kill_once(program, run, rng):
    """Starts or resumes a run and kills it: while it trains or, in a fifth of the cases, at any time from the start on. Returns 1
    if it was killed before it ended."""
    metrics, began = program.path(run, "metrics.jsonl"), time.time_ns()
    resumed = ["--resume"] if program.path(run).exists() else []
    process = program.start("train", "run.ini", f"--run.dir={run}", *resumed)
    if rng.random() < 0.2:
        wait_for(lambda: False, process, rng.uniform(0, 1.5))
    elif wait_for(lambda: metrics.exists() and metrics.stat().st_mtime_ns > began, process):
        wait_for(lambda: False, process, rng.uniform(0, 0.4))
    killed = process.poll() is None
    process.kill()
    _, err = end(process)
    assert killed or process.returncode == 0, err
    return int(killed)


def kill_and_resume(program, rng, kills):
    """Makes one run after another until this number of kills is reached. Each run must end with the bytes of a run without kills.
    """
    done = runs = 0
    while done < kills:
        run, left = f"run{runs}", kills - done
        killed = 1
        while killed and done < kills:
            killed = kill_once(program, run, rng)
            done += killed
        if killed:
            program("train", "run.ini", f"--run.dir={run}", *(["--resume"] if program.path(run).exists() else []))
        assert program.tables(run) == program.tables("whole"), f"{run}, after {left - (kills - done)} kills"
        assert len(checkpoints(program, run)) <= 2
        shutil.rmtree(program.path(run))
        runs += 1


def kills_of(name, directory, seed, kills):
    program = Program(directory)
    program.directory.mkdir()
    write_corpus(program, name)
    program.config(**merged(KEYS_OF_ALL, RUNS[name]))
    program("train", "run.ini", "--run.dir=whole", "--memory.depth=1")
    kill_and_resume(program, random.Random(seed), kills)


@pytest.mark.parametrize("seed", [int(os.environ.get("SPTX_KILLS_SEED", "1"))])
def test_runs_killed_with_batches_in_flight_end_the_same(tmp_path, seed):
    each = -(-KILLS // len(RUNS))
    # several at once, since most of a start is waiting for the GPU's driver
    with concurrent.futures.ThreadPoolExecutor(len(RUNS)) as pool:
        jobs = [pool.submit(kills_of, name, tmp_path / name.replace(" ", "-"), f"{seed} {name}", each) for name in RUNS]
        for job in jobs:
            job.result()
