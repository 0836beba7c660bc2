"""Losses, and examples whose target is the mean of several rows, from the command line: training with each of them learns the structure of the
corpus, and impossible combinations are refused."""
import json

import pytest


ITEMS = {"corpus": {"format": "lists"}, "examples": {"mode": "list", "positives": 3},
         "negatives": {"count": 10, "law": "uniform"},
         "optimizer": {"rule": "adam", "lr": 0.02}, "train": {"batch": 128, "epochs": 6}}
LOSSES = {
    "softmax": {"loss": "softmax"},
    "softmax of dot products": {"loss": "softmax", "score": "dot"},
    "softmax with a power of the negatives": {"loss": "softmax", "negative_power": 1.2},
    "bpr": {"loss": "bpr"},
    "contrastive": {"loss": "contrastive", "margin": 0.3, "negative_weight": 5},
    "logistic of cosines": {"loss": "logistic", "score": "cosine", "temperature": 0.2},
}

EXACT_MEANS = {"backend": "cpu"}  # only the CPU trains means in exact steps


def items(sptx, **train):
    """Writes each sentence as a list of its words; the list's name is the sentence's number."""
    lines = sptx.path("corpus.txt").read_text().splitlines()
    sptx.path("corpus.txt").write_text("".join(f"list{i} {line}\n" for i, line in enumerate(lines[:600])))
    return sptx.config(**{**ITEMS, "train": {**ITEMS["train"], **train}})


def losses(sptx, key="loss", run="run"):
    lines = map(json.loads, sptx.path(run, "metrics.jsonl").read_text().splitlines())
    return [line[key] for line in lines if key in line]


def topics_kept(sptx, run="run"):
    """Returns the share of nearest rows that are of the same topic."""
    words = [f"t{topic}w1" for topic in range(10)]
    lines = sum((sptx("nearest", run, word, "--k=5", "--among=context").stdout.splitlines() for word in words), [])
    kept = sum(line.startswith(word[:3]) for word, line in zip([word for word in words for _ in range(5)], lines))
    return kept / len(lines)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_learns_and_threads_change_no_byte(sptx, loss):
    config = items(sptx, **LOSSES[loss])
    sptx("train", config)
    assert topics_kept(sptx) > 0.9
    assert losses(sptx)[-1] < 0.7 * losses(sptx)[0]
    sptx("train", config, "--run.dir=one", "--device.threads=1")
    assert sptx.tables("one") == sptx.tables()


def test_the_plateau_of_a_loss_of_scores_is_the_first_batch_not_ln2(sptx):
    done = sptx("train", items(sptx, loss="softmax"), "--optimizer.lr=0", "--train.steps=200")
    assert done.stderr.count("the model is not learning; raise train.epochs") == 1
    assert "dot products of ln 2" not in done.stderr
    assert set(losses(sptx, "loss_untrained")) == {losses(sptx)[0]}


@pytest.mark.parametrize("keys", [{"update": "hogwild"}, {"update": "batch"}])
@pytest.mark.parametrize("gradient", ["mean", "whole", "sum"])
def test_the_mean_of_a_window_learns(sptx, keys, gradient):
    device = {} if keys["update"] == "hogwild" else EXACT_MEANS
    config = sptx.config(examples={"mode": "cbow", "window": 3, "subsample": 0, "pooled_gradient": gradient},
                         train={**keys, "epochs": 5}, optimizer={"lr": 0.2 if gradient == "mean" else 0.05},
                         negatives={"count": 5}, device=device)
    done = sptx("train", config)
    assert topics_kept(sptx) > 0.9, done.stderr


def test_the_mean_of_a_window_is_one_pair(sptx):
    config = sptx.config(examples={"mode": "cbow"}, train={"steps": 20, "epochs": 1}, device=EXACT_MEANS)
    sptx("train", config)
    assert losses(sptx, "pairs")[-1] <= 20 * 256


def test_lock_free_means_move_as_a_batch_of_one_does(sptx):
    """With one thread and batches of one position, lock-free and exact training take the same steps, except that a batch adds up
    the gradients of a row first."""
    import numpy

    keys = dict(examples={"mode": "cbow", "window": 3, "subsample": 1e-4}, model={"dim": 16, "context_init": "uniform -0.1 0.1"},
                negatives={"count": 3, "distinct": "yes"}, optimizer={"rule": "sgd", "lr": 0.05, "schedule": "constant"})
    sptx.path("corpus.txt").write_text("a b c d e f g h i j k l m n o p q r s t u v w x y z\n" * 40)
    for update, rule in (("batch", "sgd"), ("hogwild", "sgd"), ("batch", "adagrad"), ("hogwild", "adagrad")):
        config = sptx.config(**{**keys, "optimizer": {**keys["optimizer"], "rule": rule}},
                             train={"update": update, "batch": 1, "epochs": 1}, device={"threads": 1, **EXACT_MEANS})
        sptx("train", config, f"--run.dir={update}-{rule}")
    for rule in ("sgd", "adagrad"):
        for name in ("target.npy", "context.npy"):
            one, other = (numpy.load(sptx.checkpoint(f"{update}-{rule}") / name)["weights"] for update in ("batch", "hogwild"))
            assert numpy.abs(one - other).max() < 1e-3 * numpy.abs(one).max()


def test_what_cannot_work_is_refused(sptx):
    config = items(sptx)
    for arguments, *parts in [
        (["--train.loss=softmax", "--train.update=hogwild", "--optimizer.rule=adagrad"], "train.update = hogwild", "softmax"),
        (["--train.margin=0.5"], "train.margin = 0.5", "contrastive"),
        (["--train.negative_weight=2"], "train.negative_weight = 2"),
        (["--train.negative_power=1.2"], "train.negative_power = 1.2", "softmax only"),
        (["--train.loss=softmax", "--train.negative_power=1.2", "--train.negative_weight=2"], "train.negative_weight = 2", "mean"),
        (["--train.loss=contrastive", "--train.temperature=0.5"], "train.temperature = 0.5"),
        (["--train.loss=softmax", "--model.context_init=zeros"], "model.context_init = zeros", "never moves"),
        (["--train.loss=bpr", "--negatives.count=0"], "negatives.count is 0"),
        (["--examples.pooled_gradient=whole"], "examples.pooled_gradient", "cbow"),
        (["--examples.pooled_gradient=sum"], "examples.pooled_gradient = sum", "cbow only"),
        (["--examples.mode=cbow", "--negatives.per=pair"], "negatives.per = pair", "cbow"),
    ]:
        said = sptx.refuses("train", config, *arguments)
        assert all(part in said for part in parts), said
    if not sptx("devices").stdout.count("GPU 0"):
        gpu = ("--device.backend=cuda", "--memory.gpu_budget=1GiB")
        for arguments in ["--train.loss=softmax"], ["--examples.mode=cbow", "--examples.positives=auto", "--train.update=batch"]:
            assert "the GPU" in sptx("plan", config, *arguments, *gpu).stdout
        plan = sptx.refuses("plan", config, "--train.freeze=context", "--examples.mode=cbow", "--examples.positives=auto",
                            "--optimizer.rule=sgd", "--train.update=hogwild", *gpu)
        assert "some are frozen (train.freeze)" in plan and "device.backend = cpu" in plan


def test_a_gpu_trains_means_of_windows_in_both_ways(sptx):
    config = sptx.config(examples={"mode": "cbow"}, optimizer={"rule": "sgd", "lr": None})
    plan = ["plan", config, "--device.backend=cuda", "--memory.gpu_budget=1GiB", "--train.update=hogwild"]
    assert "lock-free" in sptx(*plan, "--train.held_out=0.1").stdout
    assert "lock-free" not in sptx(*plan, "--train.update=batch").stdout


def test_a_stopped_run_goes_on_to_the_same_bytes(sptx):
    config = items(sptx, loss="softmax", epochs=4)
    sptx("train", config)
    sptx("train", config, "--run.dir=cut", "--run.checkpoint_every=epoch", "--run.keep=9")
    checkpoints = sorted(sptx.path("cut").glob("checkpoint-*"))
    for late in checkpoints[2:]:
        for file in late.iterdir():
            file.unlink()
        late.rmdir()
    sptx("train", config, "--run.dir=cut", "--resume", "--run.checkpoint_every=epoch", "--run.keep=9")
    assert sptx.tables("cut") == sptx.tables()
