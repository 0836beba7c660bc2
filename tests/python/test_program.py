"""A PyTorch model with two tables, and a run of the program that uses the same draws, must end with the same rows.

The draws are functions of seed, epoch and example (kernels/draws.h). The only one needed here, that of negatives, is written below
in Python.
"""

import subprocess

import numpy
import pytest
import torch

import sptx

ROWS, DIM, LINES, CONTEXTS, NEGATIVES, BATCH, EPOCHS, SEED = 50, 7, 64, 3, 4, 16, 3, 9
DRAW_NEGATIVE = 5


def philox(key, counter):
    """Philox4x32-10 (Salmon et al., SC'11)."""
    key, counter = list(key), list(counter)
    for _ in range(10):
        high, low = divmod(0xD2511F53 * counter[0], 1 << 32)
        high2, low2 = divmod(0xCD9E8D57 * counter[2], 1 << 32)
        counter = [high2 ^ counter[1] ^ key[0], low2, high ^ counter[3] ^ key[1], low]
        key = [(key[0] + 0x9E3779B9) % (1 << 32), (key[1] + 0xBB67AE85) % (1 << 32)]
    return counter


def negatives(epoch, example):
    """Returns the uniform negatives of an example. Two of the four words of a draw give one row."""
    drawn = []
    for slot in range(NEGATIVES):
        words = philox((SEED, DRAW_NEGATIVE), (example, 0, epoch, slot // 2))[2 * (slot % 2):][:2]
        drawn.append((words[0] << 32 | words[1]) * ROWS >> 64)
    return drawn


@pytest.mark.torch
@pytest.mark.parametrize("rule, options", [("adamax", {}), ("adagrad", {}), ("sgd", {"momentum": 0.5}),
                                           ("adam", {"amsgrad": True})])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_model_over_tables_is_the_programs_own(program, tmp_path, rule, options, device):
    generator = numpy.random.default_rng(2)
    lines = numpy.concatenate([generator.integers(0, ROWS, (LINES - 10, 1 + CONTEXTS)),
                               numpy.arange(ROWS)[:40].reshape(10, 4)])  # and ids that the last row is among
    lines[-1, -1] = ROWS - 1
    (tmp_path / "lines").write_text("".join(" ".join(map(str, line)) + "\n" for line in lines))
    settings = {"corpus.path": tmp_path / "lines", "corpus.format": "adjacency", "corpus.order": "given",
                "examples.positives": 0, "examples.shuffle": "no", "negatives.count": NEGATIVES, "negatives.law": "uniform",
                "negatives.exclude": "no", "model.dim": DIM, "model.target_init": "uniform -1 1", "optimizer.rule": rule,
                "optimizer.lr": 0.05, "optimizer.schedule": "constant", "train.epochs": EPOCHS, "train.batch": BATCH,
                "train.seed": SEED, "device.backend": device, "run.dir": tmp_path / "run",
                **{"optimizer." + name: "yes" if value is True else value for name, value in options.items()}}
    subprocess.run([program, "train", *("--%s=%s" % item for item in settings.items())], check=True, capture_output=True)

    tables = [sptx.Table(ROWS, DIM, rule, lr=0.05, init=init, seed=SEED, device=device, **options)
              for init in ("uniform -1 1", "zeros")]
    targets, contexts = (sptx.torch.Embedding(table) for table in tables)
    for epoch in range(EPOCHS):
        for first in range(0, LINES, BATCH):
            batch = range(first, first + BATCH)
            of_target = torch.from_numpy(lines[batch, :1])
            of_context = torch.tensor([lines[e, 1:].tolist() + negatives(epoch, e) for e in batch])
            scores = (contexts(of_context) * targets(of_target)).sum(-1)
            signs = torch.tensor([1.0] * CONTEXTS + [-1.0] * NEGATIVES, device=scores.device)
            torch.nn.functional.softplus(-signs * scores).sum().backward()

    run = sptx.Run(tmp_path / "run", device="cpu")
    order = [run.row(str(word)) for word in range(ROWS)]
    assert order == list(range(ROWS))
    everything = numpy.arange(ROWS)
    for table, theirs in zip(tables, (run.target, run.context)):
        assert numpy.abs(theirs).max() > 0.1
        assert numpy.allclose(table.fetch(everything), theirs, rtol=1e-4, atol=1e-5)
