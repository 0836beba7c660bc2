"""Shared by the tests of the Python package. They need the installed package (or another build, by SPTX_LIBRARY and PYTHONPATH).
They import nothing from the repository except its paths."""

import importlib.util
import os
import pathlib
import tempfile

import hypothesis.configuration
import numpy
import pytest

import sptx

TOP = pathlib.Path(__file__).resolve().parents[2]
hypothesis.configuration.set_hypothesis_home_dir(os.path.join(tempfile.gettempdir(), "sptx-hypothesis"))
OF_TORCH = ["test_bench.py", "test_calls_torch.py", "test_gpu.py", "test_program.py", "test_speedtorch.py", "test_torch.py",
            "test_torch_modules.py", "test_torch_ncf.py",
            "test_torch_memory.py", "test_keyed_torch.py"]
collect_ignore = [] if importlib.util.find_spec("torch") else OF_TORCH


def has_gpu():
    try:
        sptx.Context("cuda")
    except sptx.Error:
        return False
    return True


def pytest_collection_modifyitems(items):
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not has_gpu():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no GPU"))


@pytest.fixture(scope="session")
def cpu():
    """A context on the CPU with two threads, whatever this machine has."""
    return sptx.Context("cpu", threads=2)


@pytest.fixture
def table(cpu):
    """A small table of known values: the number in row r and column c is r + 0.25 c."""
    with sptx.Table(10, 3, "sgd", lr=1.0, device=cpu) as table:
        table.store(range(10), known_rows(10, 3))
        yield table


def known_rows(rows, dim):
    return (numpy.arange(rows)[:, None] + 0.25 * numpy.arange(dim)).astype(numpy.float32)


def floats(*shape):
    return numpy.ones(shape, numpy.float32)


@pytest.fixture(scope="session")
def program():
    """The program sptx-w2v, which trains runs for the tests to open."""
    path = os.environ.get("SPTX_BIN", str(TOP / "build" / "sptx-w2v"))
    if not os.access(path, os.X_OK):
        pytest.skip("no program at '%s'" % path)
    return path
