"""What holds for both backends: a run that continues on the other backend ends with the same result, except for rounding; a run
that a plan finds to fit a GPU does run there."""
import json
import pathlib
import random
import signal

import numpy
import pytest

from conftest import KEYS, STOP_KEYS, checkpoints, end, wait_for


def weights(sptx, run):
    return [numpy.load(sptx.checkpoint(run) / name)["weights"].astype(numpy.float64) for name in ("target.npy", "context.npy")]


@pytest.mark.parametrize("first, then", [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_checkpoint_moves_between_backends(whole, first, then):
    sptx = whole
    if "auto       cuda" not in sptx("devices").stdout:
        pytest.skip("there is no GPU here to move to")
    config = sptx.config(**STOP_KEYS)
    process = sptx.start("train", config, f"--device.backend={first}")
    assert wait_for(lambda: checkpoints(sptx), process)
    process.send_signal(signal.SIGINT)
    end(process)
    assert sptx.tables() != sptx.tables("whole")
    sptx("train", config, "--resume", f"--device.backend={then}")
    for moved, stayed in zip(weights(sptx, "run"), weights(sptx, "whole")):
        assert numpy.linalg.norm(moved - stayed) < 0.01 * numpy.linalg.norm(stayed)


# The rows are wide, so that a batch's memory is not small beside what the planner leaves free.
FULL = {
    "windows": ("words", {"format": "text"}, {"per": "example"}, {}),
    "windows, a pair's own negatives": ("words", {"format": "text"}, {"per": "pair"}, {}),  # the last batch could be padded
    "windows, some held out": ("words", {"format": "text"}, {"per": "pair"}, {"held_out": "0.02"}),
    "lists": ("books", {"format": "lists"}, {}, {"held_out": "0.02"}),
    "lock-free": ("words", {"format": "text"}, {"per": "example"}, {"update": "hogwild", "held_out": "0.1"}),
}


def fill_with_hot_rows(sptx, kind):
    """Returns a config of this kind and a GPU budget that its plan fills: what the run needs, and some hot rows."""
    generated, corpus, negatives, train = FULL[kind]
    sptx("generate", generated, "--rows=200000", "--lists=20000", "--out=corpus.ids")
    config = sptx.config(corpus={"path": "corpus.ids", "min_count": None, **corpus}, negatives=negatives, model={"dim": "512"},
                         optimizer={"rule": "sgd", "lr": "1e-4"}, train={"batch": "16384", "epochs": "1", **train},
                         memory={"target": "pinned", "context": "gpu"}, device={"backend": "cuda"})

    def plan(*settings):
        return json.loads(sptx("plan", config, "--json", *settings).stdout)

    budget = plan("--memory.gpu_budget=64GiB", "--memory.hot_rows=0")["gpu_needed"] + (32 << 20)
    return config, budget, plan(f"--memory.gpu_budget={budget}")


@pytest.mark.parametrize("kind", FULL)
def test_a_plan_fills_its_budget_with_hot_rows(sptx, kind):
    config, budget, full = fill_with_hot_rows(sptx, kind)
    assert full["fits_gpu"] and full["hot_rows"] == (32 << 20) // (512 * 4) < full["rows"] and full["gpu_needed"] <= budget


@pytest.mark.skipif(KEYS["device"]["backend"] != "cuda", reason="only a GPU has a budget")
@pytest.mark.parametrize("kind", FULL)
def test_a_run_keeps_to_the_budget_that_its_plan_fills(sptx, kind):
    config, budget, _ = fill_with_hot_rows(sptx, kind)
    sptx("train", config, f"--memory.gpu_budget={budget}")


# If a batch has many contexts, and the table has at least twice as many rows, a GPU looks for repeated rows before it sorts. These
# sizes are on both sides of both limits. If the context table is partly on the host, the whole batch is always sorted.
@pytest.mark.parametrize("rows, batch", [(600000, 3855), (600000, 3856), (524416, 3856), (524414, 3856)])
def test_contexts_that_stand_once_are_trained_alike_wherever_rows_lie(sptx, rows, batch):
    if "auto       cuda" not in sptx("devices").stdout:
        pytest.skip("there is no GPU here")
    sptx("generate", "books", f"--rows={rows}", "--lists=20000", "--out=books.ids")
    config = sptx.config(corpus={"path": "books.ids", "vocab": "books.ids.vocab.tsv", "format": "lists", "order": "given",
                                 "min_count": "0"},
                         examples={"mode": "list", "positives": "4", "short": "repeat", "targets": "one"},
                         negatives={"count": "64", "law": "uniform", "per": "example", "exclude": "no"},
                         model={"dim": "6"}, optimizer={"rule": "adamax", "lr": "0.01"}, device={"backend": "cuda"},
                         train={"batch": str(batch), "steps": "6", "epochs": "100"},
                         memory={"target": "pinned", "hot_rows": "1000"})
    sptx("train", config, "--memory.context=gpu", "--memory.context_state=gpu", "--run.dir=gpu")
    sptx("train", config, "--memory.context=pinned", "--memory.context_state=pinned", "--run.dir=pinned")
    assert sptx.tables("gpu") == sptx.tables("pinned")


# Rows on the host are managed memory, or pinned memory if that is asked for. These tables are on both sides of 2 MiB, the size of
# the pages by which a GPU maps managed memory.
@pytest.mark.parametrize("rows", [8191, 8192, 8193, 100000])
@pytest.mark.parametrize("rule, places", [("sgd", ("pinned", "pinned", "gpu", "gpu")),
                                          ("sgd", ("pinned", "pinned", "pinned", "pinned")),
                                          ("adamax", ("pinned", "pinned", "gpu", "pinned")),
                                          ("adamax", ("file", "pinned", "pinned", "gpu"))])
def test_managed_and_pinned_rows_are_trained_alike(sptx, monkeypatch, rows, rule, places):
    if "auto       cuda" not in sptx("devices").stdout:
        pytest.skip("there is no GPU here")
    sptx("generate", "books", f"--rows={rows}", "--lists=20000", "--out=books.ids")
    config = sptx.config(corpus={"path": "books.ids", "vocab": "books.ids.vocab.tsv", "format": "lists", "order": "given",
                                 "min_count": "0"},
                         examples={"mode": "list", "positives": "4", "short": "repeat"}, model={"dim": "64"},
                         optimizer={"rule": rule, "lr": "0.01"}, device={"backend": "cuda"},
                         train={"batch": "5000", "steps": "20", "epochs": "100"},
                         memory={**dict(zip(("target", "target_state", "context", "context_state"), places)), "hot_rows": "0"})
    monkeypatch.delenv("SPTX_PIN_ROWS", raising=False)
    sptx("train", config, "--run.dir=managed")
    monkeypatch.setenv("SPTX_PIN_ROWS", "1")
    assert "rows in host memory pinned" in sptx("devices").stdout
    sptx("train", config, "--run.dir=pinned")
    assert sptx.tables("managed") == sptx.tables("pinned")


# If there are many blocks, a GPU gives each fewer threads: for its contexts in a step of more than 8192 blocks, for its negatives
# in a batch of at least 8192. These sizes are on both sides of both limits.
@pytest.mark.parametrize("batch, rule", [(8191, "adagrad"), (8192, "adagrad"), (8193, "adagrad"), (8193, "rowwise-adagrad")])
def test_a_gpu_learns_what_the_cpu_learns_of_many_blocks(sptx, batch, rule):
    if "auto       cuda" not in sptx("devices").stdout:
        pytest.skip("there is no GPU here")
    sptx("generate", "books", "--rows=50000", "--lists=20000", "--out=books.ids")
    config = sptx.config(corpus={"path": "books.ids", "vocab": "books.ids.vocab.tsv", "format": "lists", "order": "given",
                                 "min_count": "0"},
                         examples={"mode": "list", "positives": "4", "short": "repeat", "targets": "one"},
                         negatives={"count": "64", "law": "uniform", "per": "example"}, model={"dim": "12"},
                         optimizer={"rule": rule, "lr": "0.1"}, train={"batch": str(batch), "steps": "3", "epochs": "100"})
    for backend in ("cpu", "cuda"):
        sptx("train", config, f"--device.backend={backend}", f"--run.dir={backend}")
    for one, other in zip(weights(sptx, "cuda"), weights(sptx, "cpu")):
        assert numpy.linalg.norm(one - other) < 1e-4 * numpy.linalg.norm(other)


# The vector of a list is a mean of its items. Lists are longer and shorter than the chunks into which they are split, and than the
# bound of a mean (examples.pooled).
@pytest.mark.parametrize("examples", [{"own": "0.5"}, {"own": "0", "positives": "4", "pooled": "10"}])
@pytest.mark.parametrize("loss, rule", [("softmax", "adagrad"), ("contrastive", "adagrad"), ("logistic", "adagrad"),
                                        ("softmax", "rowwise-adagrad"), ("logistic", "rowwise-adagrad")])
def test_a_gpu_learns_what_the_cpu_learns_of_means_of_lists(sptx, examples, loss, rule):
    if "auto       cuda" not in sptx("devices").stdout:
        pytest.skip("there is no GPU here")
    rng = random.Random(1)
    lists = [[f"item{int(3000 * rng.random() ** 2)}" for _ in range(1 + int(200 * rng.random() ** 4))] for _ in range(2000)]
    sptx.path("lists.txt").write_text("".join(f"u{i} {' '.join(items)}\n" for i, items in enumerate(lists)))
    config = sptx.config(corpus={"path": "lists.txt", "format": "lists"}, examples={"mode": "user", "window": None, **examples},
                         negatives={"count": "100", "law": "uniform"}, model={"dim": "20"},
                         optimizer={"rule": rule, "lr": "0.05"}, train={"batch": "129", "epochs": "2", "loss": loss, "effort": "quick"},
                         memory={"target": "pinned", "hot_rows": "500"})
    for backend in ("cpu", "cuda"):
        sptx("train", config, f"--device.backend={backend}", f"--run.dir={backend}")
    for one, other in zip(weights(sptx, "cuda"), weights(sptx, "cpu")):
        assert numpy.linalg.norm(one - other) < 1e-3 * numpy.linalg.norm(other)
    for setting in ("--memory.target=gpu", "--memory.depth=1", "--device.threads=3"):
        sptx("train", config, "--device.backend=cuda", "--run.dir=other", "--overwrite", setting)
        assert sptx.tables("other") == sptx.tables("cuda")


def test_a_machine_without_a_card_is_not_asked_about_its_driver(sptx):
    vendors = pathlib.Path("/sys/bus/pci/devices").glob("*/vendor")
    if not pathlib.Path("/sys/bus/pci/devices").exists() or any(path.read_text().strip() == "0x10de" for path in vendors):
        pytest.skip("this machine has a card of NVIDIA's, or does not tell")
    if any(pathlib.Path(path).exists() for path in ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu")):
        pytest.skip("a driver shows a GPU that is on no bus")
    for said in (sptx("devices").stdout, sptx.refuses("train", sptx.config(), "--device.backend=cuda")):
        assert "this machine has no NVIDIA GPU" in said and "nvidia-smi" not in said and "CUDA Toolkit" not in said
