"""bfloat16 for weights and state (model.precision, model.state_precision): half the bytes, and everything that holds for float32.
"""
import json
import re
import shutil

import numpy
import pytest

from ranks import arrays, mpi, small, train  # noqa: F401

HALVES = {"dim": 50, "precision": "bfloat16"}
MODES = {
    "window": {"train": {"steps": 40}, "optimizer": {"rule": "adagrad"}},
    "means": {"examples": {"mode": "cbow"}, "train": {"steps": 40}, "optimizer": {"schedule": "constant"}},
    "lists": {"corpus": {"path": "friends.lists", "format": "lists"}, "train": {"steps": 40, "epochs": 30, "batch": 8},
              "optimizer": {"schedule": "constant"}},
    "state": {"train": {"steps": 40}, "optimizer": {"rule": "adamax", "clip": 1}},
    "by row": {"train": {"steps": 40}, "optimizer": {"rule": "rowwise-adagrad", "clip": 1}},
}


def widened(field):
    return (field.astype(numpy.uint32) << 16).view(numpy.float32)


def weights(sptx, run, table=0):
    """Returns the weights of a run's newest checkpoint as float32, whatever their type in the file is."""
    rows = arrays(sptx, run)[table]
    return widened(rows["weights_bfloat16"]) if "weights_bfloat16" in rows.dtype.names else rows["weights"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("state", ["float32", "bfloat16"])
def test_threads_depth_places_and_a_stop_change_no_byte(small, mode, state):
    keys = MODES[mode]
    config = small.config(**{"model": {**HALVES, "state_precision": state, "context_init": "uniform -0.1 0.1"}, **keys})
    small("train", config, "--run.dir=one", "--device.threads=1", "--memory.depth=1")
    small("train", config, "--run.dir=other", "--device.threads=3", "--memory.depth=3", "--memory.target=file",
          "--memory.target_state=file", "--memory.context_state=file")
    assert small.tables("one") == small.tables("other")
    small("train", config, "--run.dir=half", "--train.steps=17")
    assert small.tables("half") != small.tables("one")
    assert "resumed" in small("train", config, "--run.dir=half", "--resume").stderr
    assert small.tables("half") == small.tables("one")
    small("train", config, "--run.dir=seed", "--train.seed=2")
    assert small.tables("seed") != small.tables("one")


def test_a_checkpoint_holds_what_the_table_holds(small):
    for state, kind in ("float32", "exp_avg"), ("bfloat16", "exp_avg_bfloat16"):
        config = small.config(model={**HALVES, "state_precision": state}, optimizer={"rule": "adam"}, train={"steps": 20})
        small("train", config, f"--run.dir={state}")
        rows = arrays(small, state)[0]
        assert rows.dtype["weights_bfloat16"] == numpy.dtype(("<u2", 50))
        assert rows.dtype[kind].base == numpy.dtype("<u2" if state == "bfloat16" else "<f4")
        assert rows.dtype.itemsize == 100 + 2 * 50 * (2 if state == "bfloat16" else 4) + 4
        small("export", state, "--format=npy", "--out=vectors.npy", "--table=target")
        assert (numpy.load(small.path("vectors.npy")) == widened(rows["weights_bfloat16"])).all()
        small("export", state, "--format=npy", "--out=halves.npy", "--table=target", "--type=bf16")
        assert (numpy.load(small.path("halves.npy"))["weights_bfloat16"] == rows["weights_bfloat16"]).all()


def loss_of(small, config, run, *arguments):
    told = small("train", config, f"--run.dir={run}", "--overwrite", "--train.report_seconds=1000", *arguments).stderr
    return float(re.findall(r"^loss +([0-9.]+)", told, re.M)[-1])


@pytest.mark.parametrize("rule, lr", [("sgd", 0.05), ("adagrad", 0.1), ("adam", 0.01), ("rowwise-adagrad", 0.1)])
def test_it_learns_as_float32_does(small, rule, lr):
    config = small.config(model={"dim": 50}, optimizer={"rule": rule, "lr": lr})
    losses = [loss_of(small, config, precision, f"--model.precision={precision}") for precision in ("float32", "bfloat16")]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


@pytest.mark.parametrize("rule", ["sgd", "adagrad"])
def test_lock_free(small, rule):
    config = small.config(model=HALVES, optimizer={"rule": rule, "lr": 0.05}, train={"update": "hogwild", "epochs": 3},
                          examples={"subsample": "1e-4"})
    losses = [loss_of(small, config, run, "--device.threads=1") for run in ("one", "again")]
    assert small.tables("one") == small.tables("again")
    losses += [loss_of(small, config, "floats", "--model.precision=float32"), loss_of(small, config, "many", "--device.threads=3")]
    assert losses == pytest.approx([losses[0]] * 4, rel=0.03)


def test_training_goes_on_across_precisions(small):
    keys = {"model": {"dim": 50}, "train": {"steps": 30}, "optimizer": {"rule": "adagrad"}}
    config = small.config(**keys)
    small("train", config, "--run.dir=floats")
    small("train", config, "--run.dir=halves", "--model.precision=bfloat16")
    nothing = ["--train.steps=1", "--optimizer.lr=0", "--overwrite"]
    for source, precision in ("floats", "bfloat16"), ("halves", "float32"), ("halves", "bfloat16"):
        small("train", config, "--run.dir=next", f"--train.from={source}", f"--model.precision={precision}", *nothing)
        for table in 0, 1:
            before, after = weights(small, source, table), weights(small, "next", table)
            assert (abs(before - after) <= abs(before) / 256).all()
            if source == "halves":  # except rows that were never trained, which begin with new first values
                assert (before == after).all(axis=1).mean() > 0.5


def test_frozen_rows_keep_their_bits(small):
    keys = {"model": HALVES, "optimizer": {"rule": "adam"}}
    small("train", small.config(**keys), "--run.dir=first")
    small.path("more.txt").write_text(small.path("corpus.txt").read_text() + "new words come new words come\n" * 50)
    small("train", small.config(**{**keys, "corpus": {"path": "more.txt"}}), "--run.dir=next", "--train.from=first",
          "--train.freeze=known")
    words = [[line.split("\t")[0] for line in small.path(run, "vocab.tsv").read_text().splitlines()] for run in ("first", "next")]
    first, after = weights(small, "first"), weights(small, "next")
    same = [(first[words[0].index(word)] == after[at]).all() for at, word in enumerate(words[1]) if word in words[0]]
    assert all(same) and len(same) > 100 and "new" in words[1]


def test_resume_wants_the_same_precision(small):
    config = small.config(model={"dim": 50}, train={"steps": 10})
    small("train", config)
    assert "model.precision" in small.refuses("train", config, "--resume", "--model.precision=bfloat16", "--train.steps=20")
    assert "model.state_precision" in small.refuses("train", config, "--resume", "--model.state_precision=bfloat16",
                                                    "--train.steps=20")


def test_plan_counts_the_bytes(small):
    bytes_of = {}
    for precision in "float32", "bfloat16":
        config = small.config(model={"dim": 64, "precision": precision}, optimizer={"rule": "adam", "bias_correction": "global"})
        bytes_of[precision] = json.loads(small("plan", config, "--json").stdout)["target_bytes"]
        assert precision in small("plan", config).stdout
    assert bytes_of["bfloat16"] * 2 == bytes_of["float32"]  # 768 bytes a row in float32, 384 in bfloat16


@pytest.mark.parametrize("name, format", [("x.npy", "word2vec-bin"), ("x.txt", "word2vec-text"), ("x.fvecs", "fvecs")])
def test_types_that_a_format_has_not(small, name, format):
    small("train", small.config(model=HALVES, train={"steps": 5}))
    said = small.refuses("export", "run", f"--format={format}", f"--out={name}", "--type=bf16", code=2)
    assert said == f"--type=bf16 is not for {format}, which can hold f32"


@pytest.mark.parametrize("state", ["float32", "bfloat16"])
def test_ranks_share_out_groups_of_eight(small, mpi, state):
    """Sums over several ranks differ in their last bits. A few of these bits decide whether a value is rounded up or down."""
    config = small.config(model={**HALVES, "state_precision": state, "context_init": "uniform -0.1 0.1"},
                          optimizer={"rule": "adagrad"}, train={"steps": 20})
    for ranks in 0, 3:
        train(small, ranks, config, f"--run.dir=run{ranks}")
    one, other = weights(small, "run0"), weights(small, "run3")
    assert (one != other).mean() < 0.02
    assert abs(one - other).max() < abs(one).max() / 20
    train(small, 3, config, "--run.dir=half", "--train.steps=9")
    for ranks in 0, 3:
        shutil.copytree(small.path("half"), small.path(f"half{ranks}"))
        train(small, ranks, config, f"--run.dir=half{ranks}", "--resume")
        assert (weights(small, f"half{ranks}") != other).mean() < 0.02
    assert small.tables("half3") == small.tables("run3")


def test_columns_that_are_too_few_for_the_ranks(small, mpi):
    config = small.config(model={"dim": 16, "precision": "bfloat16"}, train={"steps": 5})
    assert "groups of eight" in train(small, 3, config, expect=1).stderr


@pytest.mark.parametrize("buckets", ["used", "500"])
def test_words_with_ngrams_leave_as_they_are(small, buckets):
    """The mean of a word's bfloat16 rows is the same in the run, in fastText's file, and where training continues from the run."""
    config = small.config(model={**HALVES, "buckets": buckets}, examples={"subwords": "3-5"}, train={"steps": 30})
    small("train", config)
    small("export", "run", "--format=fasttext", "--out=model.bin")
    files = []
    for source in "run", "model.bin":
        small("export", source, "--format=word2vec-text", f"--out={source}.txt")
        files.append(sorted(small.path(f"{source}.txt").read_text().splitlines()))
    assert files[0] == files[1]
    assert small("nearest", "run", "unheard").stdout == small("nearest", "model.bin", "unheard").stdout
    small("train", config, "--run.dir=on", "--train.from=run", "--train.steps=0", "--train.epochs=1", "--optimizer.lr=1e-30")
    assert (weights(small, "on") == weights(small, "run")).all()
