"""GloVe (train.loss = glove) from the command line: counts of pairs, training in both ways, what is refused."""
import collections
import math
import random
import struct

import pytest

GLOVE = ["--train.loss=glove", "--corpus.path=corpus.txt", "--corpus.min_count=1", "--model.dim=16", "--device.backend=cpu", "--overwrite"]


def plain_counts(text, window):
    """Counts as GloVe does, in the plainest way: {(word, word): count}."""
    counts = collections.Counter()
    for line in text.splitlines():
        words = line.split()
        for i, word in enumerate(words):
            for d in range(1, min(i, window) + 1):
                counts[word, words[i - d]] += 1 / d
                counts[words[i - d], word] += 1 / d
    return counts


def stream_counts(path, words):
    """Reads corpus.counts: {(word, word): count}."""
    data = path.read_bytes()
    tokens, sentences = struct.unpack_from("<2Q", data, 24)
    pad = (tokens + 1) // 2 * 2
    ids = struct.unpack_from(f"<{tokens}I", data, 128)
    weights = struct.unpack_from(f"<{tokens}f", data, 128 + 4 * pad)
    starts = struct.unpack_from(f"<{sentences + 1}Q", data, 128 + 8 * pad)
    return {(words[ids[a]], words[ids[i]]): weights[i] for a, b in zip(starts, starts[1:]) for i in range(a + 1, b)}


def write_topics(sptx):
    """Writes sentences of ten topics. Every fifth word is of any topic: GloVe fits no pair that never occurs, so topics must meet."""
    random.seed(1)
    word = lambda topic: f"t{random.randrange(10) if random.random() < 0.2 else topic}w{random.randrange(10)}"
    sptx.path("corpus.txt").write_text("".join(" ".join(word(line % 10) for _ in range(12)) + "\n" for line in range(2000)))


def topics_kept(sptx, run="run"):
    """Returns the share of nearest rows that are of the same topic."""
    words = [f"t{topic}w1" for topic in range(10)]
    kept = [line.startswith(word[:3]) for word in words for line in sptx("nearest", run, word, "--k=5").stdout.splitlines()]
    return sum(kept) / len(kept)


@pytest.mark.parametrize("update", ["batch", "hogwild"])
def test_words_of_a_topic_become_neighbours(sptx, update):
    write_topics(sptx)
    done = sptx("train", *GLOVE, f"--train.update={update}", "--examples.window=4", "--train.epochs=40", "--run.dir=run")
    assert "pairs of words within 4 words" in done.stderr
    words = [line.split("\t")[0] for line in sptx.path("run", "vocab.tsv").read_text().splitlines()]
    found, plain = stream_counts(sptx.path("run", "corpus.counts"), words), plain_counts(sptx.path("corpus.txt").read_text(), 4)
    assert found.keys() == plain.keys()
    assert all(math.isclose(found[pair], plain[pair], rel_tol=1e-6) for pair in plain)
    assert topics_kept(sptx) > 0.9


def test_batches_give_the_same_bytes_with_any_threads_and_after_a_resume(sptx):
    batch = [*GLOVE, "--train.update=batch", "--train.epochs=4", "--examples.window=5"]
    sptx("train", *batch, "--run.dir=one", "--device.threads=1")
    sptx("train", *batch, "--run.dir=three", "--device.threads=3")
    sptx("train", *batch, "--run.dir=halves", "--train.epochs=2")
    sptx("train", *[key for key in batch if key != "--overwrite"], "--run.dir=halves", "--resume")
    for table in "target.npy", "context.npy":
        rows = sptx.checkpoint("one").joinpath(table).read_bytes()
        assert rows == sptx.checkpoint("three").joinpath(table).read_bytes()
        assert rows == sptx.checkpoint("halves").joinpath(table).read_bytes()


def test_counts_are_made_once(sptx):
    first = sptx("train", *GLOVE, "--train.epochs=1", "--run.dir=run", "--corpus.cache=cache").stderr
    again = sptx("train", *GLOVE, "--train.epochs=1", "--run.dir=run", "--corpus.cache=cache").stderr
    other = sptx("train", *GLOVE, "--train.epochs=1", "--run.dir=run", "--corpus.cache=cache", "--examples.window=3").stderr
    assert ["pairs of words within" in text for text in (first, again, other)] == [True, False, True]


def test_a_graph_is_fitted_by_its_weights(sptx):
    random.seed(3)
    group = [random.randrange(4) for _ in range(80)]
    edges = [(a, b) for a in range(80) for b in range(a) if random.random() < 0.4]
    sptx.path("corpus.txt").write_text("".join(f"n{a}\tn{b}\t{20 if group[a] == group[b] else 1}\n" for a, b in edges))
    sptx("train", *GLOVE, "--corpus.format=graph", "--train.epochs=60", "--run.dir=run")
    near = [(a, line.split("\t")[0]) for a in range(0, 80, 5) for line in sptx("nearest", "run", f"n{a}", "--k=3").stdout.splitlines()]
    assert sum(group[a] == group[int(b.strip("n"))] for a, b in near) > 0.8 * len(near)
    sptx.path("corpus.txt").write_text("".join(f"n{a}\tn{b}\n" for a, b in edges))
    assert "fits the logarithms of the weights of edges, and 'corpus.txt' has none" in sptx.refuses("train", *GLOVE, "--corpus.format=graph", "--run.dir=bare")


@pytest.mark.parametrize("keys, sentence", [
    (["--optimizer.rule=sgd"], "train.loss = glove is trained with optimizer.rule = adagrad"),
    (["--negatives.count=5"], "negatives.count = 5: train.loss = glove has no negatives"),
    (["--examples.mode=cbow"], "train.loss = glove fits counts of pairs: it needs examples.mode = counts, and that is cbow"),
    (["--train.loss=logistic", "--examples.mode=counts"], "examples.mode = counts is trained with train.loss = glove, and that is logistic"),
    (["--corpus.format=lists"], "train.loss = glove needs corpus.format = text, or graph with weights, and it is lists"),
    (["--examples.shrink=yes"], "examples.shrink = yes draws the sizes of windows, and train.loss = glove counts whole ones"),
    (["--train.score=cosine"], "train.score = cosine: train.loss = glove fits dot products"),
    (["--optimizer.weight_decay=0.1"], "optimizer.weight_decay = 0.1 would shrink the column of ones"),
    (["--examples.subsample=1e-3"], "examples.subsample = 0.001 works with examples.mode = window and cbow only"),
])
def test_keys_without_a_meaning_are_refused(sptx, keys, sentence):
    assert sentence in sptx.refuses("train", *GLOVE, *keys, "--run.dir=run")


def test_words_that_never_meet_are_refused(sptx):
    sptx.path("corpus.txt").write_text("one\ntwo\nthree\n")
    assert "no two words of the vocabulary occur together" in sptx.refuses("train", *GLOVE, "--run.dir=run")
