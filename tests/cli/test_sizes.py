"""Defaults depend on the size of the data. Runs without keys must separate the blocks of words of small generated texts."""
import configparser
import json
import random

import pytest

HINT = "sptx-w2v: warning: the vectors of random pairs of words have a mean cosine of "


def blocks(sptx, words=40, count=4, sentences=2000, length=10, noise=0.0):
    """Writes sentences of words w0, w1, ... A sentence draws its words from one block, except for a share `noise` that it draws
    from all words."""
    rng, size = random.Random(1), words // count
    text = []
    for _ in range(sentences):
        block = rng.randrange(count) * size
        text.append(" ".join(f"w{rng.randrange(words) if rng.random() < noise else block + rng.randrange(size)}" for _ in range(length)))
    sptx.path("text").write_text("\n".join(text) + "\n")


def train(sptx, *keys):
    return sptx("train", "--corpus.path=text", "--run.dir=run", "--overwrite", *keys)


def keys_of(sptx, run="run"):
    read = configparser.ConfigParser()
    read.read(sptx.path(run, "config.ini"))
    return read["train"]["epochs"], read["examples"]["subsample"], read["optimizer"]["lr"]


def share_of_own_block(sptx, words=40, count=4):
    size, kept = words // count, []
    for word in range(0, words, 3):
        lines = sptx("nearest", "run", f"w{word}", f"--k={size - 1}").stdout.split("\n")[:-1]
        kept += [int(line.split("\t")[0][1:]) // size == word // size for line in lines]
    return sum(kept) / len(kept)


@pytest.mark.parametrize("shape", [dict(), dict(sentences=200), dict(noise=0.3), dict(words=400, count=20, sentences=3000)])
def test_planted_blocks_of_a_small_text_are_found_without_a_key(sptx, shape):
    blocks(sptx, **shape)
    done = train(sptx)
    assert HINT not in done.stderr and "not learning" not in done.stderr
    sizes = {key: shape[key] for key in ("words", "count") if key in shape}
    assert share_of_own_block(sptx, **sizes) > 0.98


def test_the_values_are_said_and_written(sptx):
    blocks(sptx)
    done = train(sptx)
    assert "by size          examples.subsample = 0, train.epochs = 40 " in done.stderr
    assert keys_of(sptx) == ("40", "0", "0.025")
    plan = sptx("plan", "--corpus.path=text").stdout
    assert "examples.subsample = 0" in plan and "train.epochs = 40" in plan
    assert "train.epochs = 40" in json.loads(sptx("plan", "--corpus.path=text", "--json").stdout)["by_size"]


def test_keys_that_are_given_stay_and_nothing_is_said(sptx):
    blocks(sptx)
    done = train(sptx, "--train.epochs=2", "--examples.subsample=1e-3", "--optimizer.lr=0.1")
    assert "by size" not in done.stderr
    assert keys_of(sptx) == ("2", "0.001", "0.1")


def test_a_run_that_goes_on_keeps_its_own(sptx):
    """The first training sets keys to values that are no defaults. The resumed one sets only more epochs, and must keep the other
    values."""
    blocks(sptx)
    train(sptx, "--train.epochs=2", "--examples.subsample=1e-3", "--optimizer.lr=0.1")
    again = ("train", "--corpus.path=text", "--run.dir=run", "--resume")
    assert "is finished already" in sptx(*again).stderr
    sptx(*again, "--train.epochs=3")
    assert keys_of(sptx) == ("3", "0.001", "0.1")


def test_tune_begins_from_them(sptx):
    blocks(sptx, sentences=1000)
    done = sptx("tune", "--corpus.path=text", "--run.dir=run", "--trials=1", "--out=best.ini")
    assert [line.split()[2] for line in done.stdout.splitlines() + done.stderr.splitlines() if line.split()[:1] == ["0"]][:2] == ["13", "40"]


def test_words_that_are_hardly_told_apart_are_said_with_the_key_that_helps(sptx):
    blocks(sptx)
    done = train(sptx, "--train.epochs=20", "--examples.subsample=1e-4", "--optimizer.lr=0.025")
    assert HINT in done.stderr
    assert "or set examples.subsample = 0 (it is 0.0001), which keeps every word" in done.stderr


def test_a_loss_that_stayed_untrained_is_said_with_the_key_that_helps(sptx):
    blocks(sptx)
    done = train(sptx, "--train.epochs=5", "--examples.subsample=1e-4", "--optimizer.lr=0.025")
    assert "the model is not learning; raise train.epochs (5) or optimizer.lr (0.025)" in done.stderr


def test_the_zero_of_a_loss_that_may_be_negative_is_said(sptx):
    sptx.path("text").write_text("\n".join(f"l{i} a{i % 7} b{i % 5} c{i % 3}" for i in range(60)) + "\n")
    said = "; below 0, positives score above the mean of their negatives"
    assert said in train(sptx, "--corpus.format=lists", "--device.backend=cpu", "--negatives.count=5").stderr
    assert said not in train(sptx, "--corpus.format=lists", "--device.backend=cpu", "--negatives.count=5", "--train.negative_power=0").stderr


# ---- lists ----

def baskets(sptx, lists=200, items=30, length=6):
    """Writes lists with names. All items of a list are of one of three groups."""
    rng, size = random.Random(1), items // 3
    lines = [" ".join([f"list{i}", *(f"i{i % 3 * size + item}" for item in rng.sample(range(size), min(length, size)))]) for i in range(lists)]
    sptx.path("lists").write_text("\n".join(lines) + "\n")


def list_keys(sptx, run="run"):
    read = configparser.ConfigParser()
    read.read(sptx.path(run, "config.ini"))
    return [read[section][key] for section, key in (("train", "temperature"), ("train", "epochs"), ("negatives", "count"), ("negatives", "per"))]


def train_lists(sptx, *keys):
    return sptx("train", "--corpus.path=lists", "--corpus.format=lists", "--device.backend=cpu", "--run.dir=run", *keys)


def test_small_lists_have_no_more_negatives_than_items(sptx):
    baskets(sptx)
    done = train_lists(sptx)
    assert "train.temperature = 1, train.epochs = 60, negatives.count = 30 " in done.stderr
    assert list_keys(sptx) == ["1", "60", "30", "example"]
    train_lists(sptx, "--train.effort=thorough", "--overwrite")
    assert list_keys(sptx) == ["1", "20", "30", "batch"]


def test_few_lists_of_many_items_share_negatives_and_go_on_with_them(sptx):
    baskets(sptx, lists=300, items=3000, length=40)
    train_lists(sptx, "--train.steps=30", "--run.checkpoint_every=10steps")
    found = list_keys(sptx)
    assert found[3] == "batch" and found[2] == "2000"
    train_lists(sptx, "--resume", "--train.steps=40")
    assert list_keys(sptx) == found
    train_lists(sptx, "--negatives.count=20", "--overwrite")
    assert list_keys(sptx)[2:] == ["20", "example"]


def test_pairs_and_lists_have_the_same_defaults(sptx):
    baskets(sptx)
    train_lists(sptx)
    found = list_keys(sptx)
    pairs = [f"{name},{item}" for name, *items in map(str.split, sptx.path("lists").read_text().splitlines()) for item in items]
    sptx.path("pairs.csv").write_text("list,item\n" + "\n".join(pairs) + "\n")
    sptx("train", "--corpus.path=pairs.csv", "--corpus.format=pairs", "--device.backend=cpu", "--run.dir=pairs")
    assert list_keys(sptx, "pairs") == found
