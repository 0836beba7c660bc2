"""What other people's indexes find in exported vectors, against the exact search of `nearest`.

SPTX_RUN=RUN build/venv/bin/python -m pytest -rP tests/cli/test_downstream.py      searches that run, and tells the recall
"""
import os
import pathlib
import subprocess
import sys

import numpy
import pytest

from conftest import ROOT, Program

K, QUERIES = 10, 400
EF_CONSTRUCTION, EF = 200, 100


class Searched:
    """A trained run, its rows exported as .npy, some words, and the answers of `nearest` for these."""

    def __init__(self, program, run):
        self.path = program.path("vectors.npy")
        program("export", run, "--format=npy", f"--out={self.path}")
        self.vectors = numpy.load(self.path)
        lines = program.path(run, "vocab.tsv").read_text().splitlines()
        row = {line.split("\t")[0]: i for i, line in enumerate(lines)}
        words = list(row)[::len(row) // QUERIES]
        self.queries = numpy.array([row[word] for word in words])
        answers = program("nearest", run, *words, f"--k={K}").stdout.rstrip("\n").split("\n\n")
        pairs = [[line.split("\t") for line in answer.split("\n")[1:]] for answer in answers]
        self.found = numpy.array([[row[word] for word, _ in answer] for answer in pairs])
        self.scores = numpy.array([[float(score) for _, score in answer] for answer in pairs])
        assert self.found.shape == (len(words), K)

    def unit(self):
        return self.vectors / numpy.linalg.norm(self.vectors, axis=1, keepdims=True)

    def recall(self, found):
        """Returns the share of our exact answers that are among the first K others of `found` [queries x (K + 1)], which also
        contains the query."""
        others = [[row for row in rows if row != query][:K] for rows, query in zip(found, self.queries)]
        recall = numpy.mean([len(set(other) & set(ours)) / K for other, ours in zip(others, self.found)])
        print(f"recall@{K} {recall:.4f} of {len(found)} queries in {len(self.vectors)} x {self.vectors.shape[1]}")
        return recall


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    program = Program(tmp_path_factory.mktemp("searched"))
    if "SPTX_RUN" in os.environ:
        return Searched(program, pathlib.Path(os.environ["SPTX_RUN"]).resolve())
    program("generate", "words", "--out=corpus.txt", "--rows=4000", "--lists=20000", "--seed=1")
    program("train", program.config(model={"dim": "48"}, train={"epochs": "3"}))
    return Searched(program, "run")


@pytest.fixture
def faiss():
    return pytest.importorskip("faiss", reason="faiss is missing; scripts/setup.sh --tests installs it")


def test_faiss_flat_is_our_search(searched, faiss):
    """Compares two exact searches: both find K rows with the same scores. If float32 cannot tell two rows apart, either may be
    first."""
    vectors, queries = searched.unit(), searched.queries
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    scores, found = index.search(vectors[queries], K + 1)
    assert (found[:, 0] == queries).all()
    assert numpy.abs(scores[:, 1:] - searched.scores).max() < 2e-6
    exact = vectors[queries].astype(float) @ vectors.T.astype(float)
    exact[numpy.arange(len(queries)), queries] = -9
    best = -numpy.sort(-exact)[:, :K]
    for rows in (searched.found, found[:, 1:]):
        assert numpy.abs(numpy.take_along_axis(exact, rows, axis=1) - best).max() < 1e-6


@pytest.mark.parametrize("m", [16, 32])
def test_faiss_hnsw(searched, faiss, m):
    vectors = searched.unit()
    index = faiss.IndexHNSWFlat(vectors.shape[1], m, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = EF_CONSTRUCTION, EF
    index.add(vectors)
    _, found = index.search(vectors[searched.queries], K + 1)
    assert searched.recall(found) > 0.95


def python_with_hnswlib():
    """Returns a Python that has hnswlib: that of the test environment, or the distribution's."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import hnswlib, numpy"], capture_output=True).returncode == 0:
                return python
        except OSError:
            pass
    pytest.skip("hnswlib is missing; scripts/setup.sh --tests installs it")


@pytest.mark.parametrize("m", [16, 32])
def test_hnswlib(searched, m, tmp_path):
    python = python_with_hnswlib()
    numpy.save(tmp_path / "queries.npy", searched.vectors[searched.queries])
    arguments = [searched.path, tmp_path / "queries.npy", K + 1, m, EF_CONSTRUCTION, EF,
                 tmp_path / "found.npy"]
    subprocess.run([python, ROOT / "tests/cli/hnswlib_search.py", *map(str, arguments)], check=True, timeout=600)
    assert searched.recall(numpy.load(tmp_path / "found.npy")) > 0.95
