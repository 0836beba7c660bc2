"""Runs the Python code of the READMEs unchanged, one block after the other, as a reader would. The data and the run that the
blocks assume are made here."""

import importlib.util
import random
import re
import shutil
import subprocess
import sys

import numpy
import pytest

import sptx
from conftest import TOP

WORDS = ["sin", "cos", "king", "woman", "man", "paris", "france", "rome", "italy"]
HAS_TORCH = importlib.util.find_spec("torch") is not None
draw = random.Random(1)


def blocks(path):
    return re.findall(r"```python\n(.*?)```", (TOP / path).read_text(), re.S)


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A directory with the files, and the variables, that the READMEs assume."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TOP / "corpora", tmp_path / "corpora")
    sentences = [draw.choices(WORDS, k=12) for _ in range(200)]
    (tmp_path / "my.txt").write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))
    (tmp_path / "my.ini").write_text("[corpus]\npath = my.txt\n[run]\ndir = runs/ini\n")
    (tmp_path / "ws353.txt").write_text("king woman 3.5\nsin cos 9.1\nman paris 0.4\n")
    sptx.fit("my.txt", "runs/my", dim=8)
    triples = [("ulm", "in", "germany"), ("bern", "in", "switzerland"), ("rome", "in", "italy"), ("ulm", "near", "bern")]
    return {"sentences": sentences, "triples": triples, "ratings": ratings_frame(), "matrix": sparse_matrix(numpy.ones((6, 4))),
            "plays": sparse_matrix(numpy.arange(1, 25).reshape(6, 4)), "titles": ["a", "b", "c", "d"]}


def ratings_frame():
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.table({"user": [user for user in "abcdefgh" for _ in range(4)], "book": list("pqrs") * 8, "rating": [4, 5] * 16})


def sparse_matrix(values):
    return pytest.importorskip("scipy.sparse").csr_matrix(values)


@pytest.mark.filterwarnings("ignore:the vectors of random pairs", "ignore:the loss has stayed")
@pytest.mark.parametrize("path", ["README.md", "src/python/README.md"])
def test_what_needs_no_torch_runs(given, tmp_path, path):
    there = [block for block in blocks(path) if "torch" not in block.split("\n")[0] and "to_usearch" not in block]
    for block in there:
        exec(block, given)
    if path == "README.md":
        assert len(there) == 1 and (tmp_path / "friends.bin").exists() and given["run"].nearest("helmet", k=1)[0][0] in ("red_bike", "lock")
    else:
        assert len(there) == 12 and given["x"].shape == (2, 2, 64) and given["found"].tolist() == [True, False] and len(given["books"]) == 200_000
        for name in "runs/text", "runs/books", "runs/items", "runs/facts", "runs/ini", "my.bin", "my.html", "my.txt", "books.npy", "my.npy.scales.npy":
            assert (tmp_path / name).exists(), name


@pytest.mark.parametrize("library", ["faiss", "hnswlib", "usearch"])
def test_indexes_are_made(given, library):
    pytest.importorskip(library)
    line, = (line for block in blocks("src/python/README.md") for line in block.split("\n") if line.startswith("run.to_" + library))
    found = eval(line.split("#")[0], {"run": sptx.Run("runs/my")})
    first = found[0] if library == "usearch" else found[1][0][0] if library == "faiss" else found[0][0][0]
    assert sptx.Run("runs/my").words[int(first)] == "sin" or library == "faiss"


@pytest.mark.torch
@pytest.mark.skipif(not HAS_TORCH, reason="no PyTorch")
def test_what_needs_torch_runs(tmp_path):
    ours, packages = ([block for block in blocks(path) if "torch" in block.split("\n")[0]]
                      for path in ("README.md", "src/python/README.md"))
    assert len(ours) == 1 and len(packages) == 3 and ours[0] == packages[0]
    code = "\n".join(packages) + "\nassert len(books) == 200_000 and 0 < loss < 1 and x.shape == (8, 128, 128)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert (tmp_path / "books.npy").exists()
