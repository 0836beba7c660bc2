"""The program loads an MPI library if mpirun has started it; otherwise it needs none."""
import json
import os
import shutil
import subprocess

import pytest

from conftest import PROGRAM, SLOWER

LAUNCHED = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}


@pytest.fixture
def alone(sptx, monkeypatch):
    """The program alone in a directory, as on a machine without MPI."""
    folder = sptx.path("alone")
    folder.mkdir()
    monkeypatch.setattr("conftest.PROGRAM", str(shutil.copy(PROGRAM, folder)))
    return sptx


def test_the_program_links_no_mpi(sptx):
    needed = subprocess.run(["readelf", "-d", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" in needed and "mpi" not in needed.lower()


def test_without_an_mpi_it_trains(alone):
    alone("train", alone.config())
    assert alone.checkpoint().exists()


def test_without_an_mpi_ranks_are_refused(alone):
    said = alone.refuses("train", alone.config(), env={**os.environ, **LAUNCHED})
    assert said == ("mpirun began 2 of these processes, and this program was built without MPI: scripts/setup.sh installs one "
                    "(libopenmpi-dev), and make then finds it")
    assert not alone.path("run").exists()


def test_an_mpi_that_cannot_be_loaded_is_named(alone):
    alone.path("alone", "libsptx_openmpi.so").write_text("no library\n")
    said = alone.refuses("train", alone.config(), env={**os.environ, **LAUNCHED})
    assert said.startswith("mpirun began 2 of these processes, and MPI cannot be loaded: ") and "libsptx_openmpi.so" in said


def library(mpi):
    """The part of the program that is compiled for one MPI; the mpirun of that MPI is installed here."""
    path = os.path.join(os.path.dirname(PROGRAM), f"libsptx_{mpi}.so")
    if not shutil.which(f"mpirun.{mpi}") or not os.path.exists(path):
        pytest.skip(f"there is no mpirun.{mpi} here, or the program is built without that MPI")
    return path


def mpirun(sptx, mpi, program, *arguments):
    options = ["--oversubscribe", "--allow-run-as-root"] if mpi == "openmpi" else []
    return subprocess.run([f"mpirun.{mpi}", *options, "-n", "2", program, *arguments], cwd=sptx.directory, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60 * SLOWER)


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_each_mpi_trains_by_its_own_mpirun(sptx, mpi):
    library(mpi)
    done = mpirun(sptx, mpi, PROGRAM, "bench", "ranks", sptx.config(), "--json", "--steps=2")
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert measured["ranks"] == 2 and sum(rank["columns"] for rank in measured["by_rank"]) == measured["dim"]


def test_the_mpirun_of_another_mpi_is_refused(alone):
    library("mpich")
    shutil.copy(library("openmpi"), alone.path("alone"))
    done = mpirun(alone, "mpich", alone.path("alone", "sptx-w2v"), "train", alone.config())
    assert done.returncode == 1 and not alone.path("run").exists()
    assert "sptx-w2v: mpirun began 2 of these processes, and the MPI that was loaded knows of one: " in done.stderr
