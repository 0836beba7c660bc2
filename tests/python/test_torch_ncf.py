"""src/python/examples/ncf: NeuMF over tables of sptx, the authors' files and measures, and the notebook."""

import sys

import numpy
import pytest
import torch

import notebook
import sptx
from conftest import TOP

EXAMPLE = TOP / "src/python/examples/ncf"
pytestmark = pytest.mark.torch


@pytest.fixture
def neumf(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return __import__("neumf")


def test_the_authors_files(neumf, tmp_path):
    draw = numpy.random.default_rng(3)
    lines = ["%d::%d::%d::%d\n" % (user, 7 * item, 1 + item % 5, when) for user in range(40)
             for when, item in enumerate(draw.choice(150, 12, replace=False))]
    (tmp_path / "ratings.dat").write_text("".join(draw.permutation(lines)))
    neumf.main(["--ratings", str(tmp_path / "ratings.dat"), "--out", str(tmp_path / "ml")])
    data = neumf.read(str(tmp_path / "ml"))
    assert data.users == 40 and 140 < data.items <= 150 and data.pairs.shape == (40 * 11, 2) and data.negatives.shape == (40, 99)
    for user, item in data.held_out:
        mine = data.pairs[data.pairs[:, 0] == user, 1]
        assert item not in mine and len(set(mine)) == 11 and not set(data.negatives[user]) & {item, *mine}
    times = numpy.loadtxt(str(tmp_path / "ml.train.rating"), numpy.int64)
    assert (times[:, 3] < 11).all() and (numpy.loadtxt(str(tmp_path / "ml.test.rating"), numpy.int64)[:, 3] == 11).all()


def test_measures_are_the_definitions(neumf):
    data = neumf.Data(2, 200, numpy.array([[0, 5], [0, 6], [1, 5]]), numpy.array([[0, 9], [1, 3]]),
                      numpy.array([range(100, 199), range(101, 200)]))
    scores = [numpy.zeros(200), numpy.zeros(200)]
    scores[0][[5, 6, 9]] = 3, 2, 1    # all that is before it has been trained: first of both
    scores[1][[7, 110, 3]] = 3, 2, 1  # one of the 99 is before it, and two of all
    found = neumf.judged(lambda n: scores[n].copy(), data, k=2)
    assert found == {"HR@2": 1.0, "NDCG@2": (1 + 1 / numpy.log2(3)) / 2, "HR@2, all": 0.5, "NDCG@2, all": 0.5}
    assert not any(neumf.judged(lambda n: numpy.zeros(200), data).values())  # equal scores are no hit


def test_a_step_is_pytorchs(neumf):
    """A model with torch.nn.Embedding and Adam must have the same rows after a step in which no row repeats."""
    data = neumf.Data(4, 4, numpy.array([[user, user] for user in range(4)]), numpy.zeros((0, 2), int), numpy.zeros((0, 99), int))
    ours = neumf.NeuMF(4, 4, 2, lr=0.1, device="cpu")
    theirs = neumf.NeuMF(4, 4, 2, lr=0.1, device="cpu")
    theirs.load_state_dict({name: one for name, one in ours.state_dict().items() if "extra" not in name}, strict=False)
    for name in ("users", "items"):
        setattr(theirs, name, torch.nn.Embedding.from_pretrained(getattr(ours, name)(torch.arange(4)).detach().clone(), freeze=False))
    adam = torch.optim.Adam(theirs.parameters(), 0.1)
    neumf.train(ours, data, 1, batch=4, negatives=0, lr=0.1)
    torch.nn.functional.binary_cross_entropy_with_logits(theirs(torch.arange(4), torch.arange(4)), torch.ones(4)).backward()
    adam.step()
    for name in ("users", "items"):
        assert torch.allclose(getattr(ours, name)(torch.arange(4)), getattr(theirs, name).weight, atol=1e-4)
    assert torch.allclose(ours.last.weight, theirs.last.weight, atol=1e-4)


def test_the_notebook(neumf, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)  # one in seven first values of the perceptron learns too little in eight epochs
    book = notebook.read(EXAMPLE / "ncf.ipynb")
    outputs, names = notebook.run(book)
    kinds = [[output["output_type"] for output in cell] for cell in outputs]
    assert kinds == [[output["output_type"] for output in cell["outputs"]] for cell in notebook.code_cells(book)]
    assert names["found"]["HR@10"] > 0.35 and names["beside"]["HR@10"] > 0.4 and names["beside"]["HR@10, all"] > 0.2
    assert names["losses"][-1] < names["losses"][0] and (tmp_path / "users.npy").exists()


def test_generated_people_from_the_command(neumf, capsys):
    neumf.main(["--users", "300", "--epochs", "1", "--each", "4", "--factors", "2", "--batch", "2560", "--device", "cpu"])
    said = capsys.readouterr().out
    assert "300 users, 20000 items, 1200 pairs" in said and "NeuMF     HR@10" in said and "sptx.fit  HR@10" in said
