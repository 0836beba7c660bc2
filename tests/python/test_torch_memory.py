"""src/python/examples/ngram_memory: a small language model learns phrases faster with a memory of n-grams than without."""

import os
import random
import socket
import subprocess
import sys

import pytest
import torch

from conftest import TOP

pytestmark = pytest.mark.torch


@pytest.fixture
def example(monkeypatch):
    pytest.importorskip("tokenizers", reason="no tokenizers, which splits the text")
    monkeypatch.syspath_prepend(str(TOP / "src/python/examples/ngram_memory"))
    monkeypatch.delitem(__import__("sys").modules, "train", raising=False)
    return __import__("train")


def test_a_memory_pays(example, tmp_path, capsys):
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefgh", k=4)) for _ in range(60)]
    phrases = [" ".join(draw.choices(words, k=6)) for _ in range(60)]  # what follows two words is nearly always known
    (tmp_path / "text").write_text("\n".join(draw.choice(phrases) for _ in range(4000)))
    torch.set_num_threads(2)
    words = [str(tmp_path / "text"), "--device=cpu", "--steps=40", "--layers=1", "--dim=32", "--time=32", "--batch=8", "--rows=200000", "--columns=8",
             "--words=400", "--lr=0.003", "--memory_lr=0.1"]
    found = example.main(words)
    said = capsys.readouterr().out
    assert found["with"]["held_out"] < found["without"]["held_out"] - 0.1
    assert 0 < float(said.split("touched ")[1].split(",")[0]) < 0.2 and "collisions" in said

    # two processes, as torchrun starts them, train one memory together: the result must be that of one process
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, example.__file__, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1",
                                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "LOCAL_RANK": str(rank),
                                   "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}) for rank in range(2)]
    (together, wrong), (nothing, other) = [rank.communicate(timeout=120) for rank in ranks]
    assert not [rank.returncode for rank in ranks if rank.returncode] and not nothing, wrong + other
    for name in "without", "with":
        held_out = float(together.split(name + " a memory: ")[1].split("held out ")[1].split(",")[0])
        assert abs(held_out - found[name]["held_out"]) < 0.005
    assert together.split("touched ")[1].split(",")[0] == said.split("touched ")[1].split(",")[0]
