"""Helpers of the tests of several ranks: starts mpirun, and programs under it."""
import json
import os
import shutil
import subprocess

import numpy
import pytest

from conftest import PROGRAM, ROOT, SLOWER

BUILT = ROOT / os.environ.get("BUILD", "build")
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
ENVIRONMENT = {key: value for key, value in ENVIRONMENT.items() if key not in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")}


def command(ranks, *arguments):
    return ["mpirun", "--oversubscribe", "-n", str(ranks), *map(str, arguments)]


@pytest.fixture(scope="module", autouse=True)
def mpi():
    if not shutil.which("mpirun"):
        pytest.skip("there is no mpirun here")
    done = subprocess.run(command(2, PROGRAM, "train"), env=ENVIRONMENT, capture_output=True, text=True, timeout=60 * SLOWER)
    if "without MPI" in done.stderr:
        pytest.skip("the program is built without MPI")


def train(sptx, ranks, *arguments, expect=0):
    """Trains with this number of ranks; 0: without mpirun. expect: exit code 0, or 1 if training must fail; None: any exit code."""
    words = [PROGRAM, "train", *arguments]
    done = subprocess.run(command(ranks, *words) if ranks else list(map(str, words)), cwd=sptx.directory, env=ENVIRONMENT,
                          stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120 * SLOWER)
    assert expect is None or (done.returncode != 0) == (expect != 0), done.stderr[-3000:]
    return done


def refuses(sptx, ranks, *arguments):
    """Returns the error message of a run that must fail, without the lines that mpirun writes around it."""
    return only_sentence(train(sptx, ranks, *arguments, expect=1).stderr)


def begin(sptx, *ranks, timeout=60 * SLOWER):
    """Runs mpirun with a different program and arguments for each rank, and returns the result."""
    words = ["mpirun", "--oversubscribe"]
    for number, rank in enumerate(ranks):
        words += [":"] * (number > 0) + ["-n", "1", *map(str, rank)]
    return subprocess.run(words, cwd=sptx.directory, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
                          encoding="utf-8", timeout=timeout * SLOWER)


def refuses_unlike(sptx, first, second, limits=("true", "true")):
    """Returns the error message of two ranks that train with different arguments, or in shells with different limits."""
    done = begin(sptx, *(["bash", "-c", f'{limit}; exec "$@"', "bash", PROGRAM, "train", *arguments]
                         for limit, arguments in zip(limits, (first, second))))
    assert done.returncode != 0
    return only_sentence(done.stderr)


def only_sentence(stderr):
    said = [line for line in stderr.split("\n") if line.startswith("sptx-w2v: ") and "warning" not in line]
    assert len(said) == 1, stderr
    return said[0][len("sptx-w2v: "):]


def arrays(sptx, run):
    return [numpy.load(sptx.checkpoint(run) / name) for name in ("target.npy", "context.npy")]


def difference(sptx, one, other):
    """Returns the largest difference of a weight or of state, divided by the largest number of its array."""
    worst = 0
    for a, b in zip(arrays(sptx, one), arrays(sptx, other)):
        assert a.dtype == b.dtype and a.shape == b.shape
        for field in a.dtype.names:
            if field == "updates":
                assert (a[field] == b[field]).all()
            else:
                worst = max(worst, abs(a[field] - b[field]).max() / max(abs(a[field]).max(), 1e-30))
    return worst


def held_out(sptx, run):
    lines = map(json.loads, sptx.path(run, "metrics.jsonl").read_text().splitlines())
    return [line["held_out_loss"] for line in lines if "held_out_loss" in line]


@pytest.fixture
def small(sptx):
    for name in ("friends.lists", "friends.pairs", "papers.adjacency"):
        shutil.copy(ROOT / "corpora" / name, sptx.directory)
    return sptx


def built(name):
    if not (BUILT / name).exists():
        pytest.skip(f"{BUILT / name} is not built")
    return BUILT / name


def together(ranks, what):
    return subprocess.run(command(ranks, built("test_together"), what), env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60 * SLOWER)
