"""GloVe (train.loss = glove) from the command line: counts of pairs, training in both ways, what is refused."""
import collections
import math
import os
import random
import struct
import subprocess

import numpy
import pytest

from conftest import PROGRAM, SLOWER

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


def test_no_rate_makes_nan_of_a_row(sptx):
    sptx("train", *GLOVE, "--optimizer.lr=1e6", "--train.epochs=20", "--train.update=hogwild", "--run.dir=run")
    for table, ones in ("target.npy", 17), ("context.npy", 16):
        rows = numpy.load(sptx.checkpoint("run") / table)["weights"]
        assert numpy.isfinite(rows).all() and numpy.abs(rows[:, ones] - 1).max() < 0.01
    assert "the weights have diverged" in sptx.refuses("train", *GLOVE, "--optimizer.lr=1e6", "--train.update=batch", "--run.dir=run")


def test_recommend_and_export_take_sums(sptx):
    sptx("train", *GLOVE, "--train.epochs=5", "--run.dir=run")
    sptx("export", "run", "--format=npy", "--out=sums.npy")
    tables = [numpy.load(sptx.checkpoint("run") / name)["weights"][:, :16] for name in ("target.npy", "context.npy")]
    assert numpy.array_equal(numpy.load(sptx.path("sums.npy")), tables[0] + tables[1])
    near = sptx("nearest", "run", "t0w1", "--k=3").stdout.split()[::2]
    assert [line.split("\t")[1] for line in sptx("recommend", "run", "--items=t0w1", "--k=3").stdout.splitlines()] == near


@pytest.mark.parametrize("keys, sentence", [
    (["--optimizer.rule=sgd"], "train.loss = glove is trained with optimizer.rule = adagrad"),
    (["--negatives.count=5"], "negatives.count = 5: train.loss = glove has no negatives"),
    (["--examples.mode=cbow"], "train.loss = glove fits counts of pairs: it needs examples.mode = counts, and that is cbow"),
    (["--train.loss=logistic", "--examples.mode=counts"], "examples.mode = counts is trained with train.loss = glove, and that is logistic"),
    (["--examples.mode=walk", "--corpus.format=graph"], "train.loss = glove fits counts of pairs: it needs examples.mode = counts, and that is walk"),
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


# ---- GloVe's programs ----

DEMO = """make
if [ ! -e text8 ]; then
  wget http://mattmahoney.net/dc/text8.zip
  unzip text8.zip
fi
CORPUS=text8
VOCAB_FILE=vocab.txt
COOCCURRENCE_FILE=cooccurrence.bin
COOCCURRENCE_SHUF_FILE=cooccurrence.shuf.bin
BUILDDIR=build
SAVE_FILE=vectors
VERBOSE=2
MEMORY=4.0
VOCAB_MIN_COUNT=5
VECTOR_SIZE=50
MAX_ITER=15
WINDOW_SIZE=15
BINARY=2
NUM_THREADS=8
X_MAX=10
$BUILDDIR/vocab_count -min-count $VOCAB_MIN_COUNT -verbose $VERBOSE < $CORPUS > $VOCAB_FILE
$BUILDDIR/cooccur -memory $MEMORY -vocab-file $VOCAB_FILE -verbose $VERBOSE -window-size $WINDOW_SIZE < $CORPUS > $COOCCURRENCE_FILE
$BUILDDIR/shuffle -memory $MEMORY -verbose $VERBOSE < $COOCCURRENCE_FILE > $COOCCURRENCE_SHUF_FILE
$BUILDDIR/glove -save-file $SAVE_FILE -threads $NUM_THREADS -input-file $COOCCURRENCE_SHUF_FILE -x-max $X_MAX -iter $MAX_ITER -vector-size $VECTOR_SIZE -binary $BINARY -vocab-file $VOCAB_FILE -verbose $VERBOSE
"""


@pytest.fixture
def place(sptx):
    """A directory with links named as GloVe's programs, a makefile with nothing to do, and a small text of one line."""
    sptx.path("build").mkdir()
    for tool in "vocab_count", "cooccur", "shuffle", "glove":
        os.symlink(PROGRAM, sptx.path("build", tool))
    sptx.path("makefile").write_text("all: ;\n")
    write_topics(sptx)
    sptx.path("text8").write_text(sptx.path("corpus.txt").read_text().replace("\n", " ") + "once <rare>\n")
    return sptx


def bash(place, script, expect=0):
    done = subprocess.run(["bash", "-e", "-c", script], text=True, cwd=place.path("."), capture_output=True, timeout=120 * SLOWER)
    assert done.returncode == expect, done.stderr
    return done


def records(path):
    return [struct.unpack_from("<2id", path.read_bytes(), 16 * i) for i in range(path.stat().st_size // 16)]


def test_the_demo_script_runs_unchanged(place):
    done = bash(place, DEMO)
    assert "copied the records as they are" in done.stderr
    text = place.path("text8").read_text().split()
    counts = collections.Counter(text)
    words = [line.split(" ")[0] for line in place.path("vocab.txt").read_text().splitlines()]
    assert words == sorted((w for w in counts if counts[w] >= 5), key=lambda w: (-counts[w], w)) and len(words) == 100
    assert place.path("vocab.txt").read_text().splitlines()[0] == f"{words[0]} {counts[words[0]]}"
    found = {(words[a - 1], words[b - 1]): count for a, b, count in records(place.path("cooccurrence.bin"))}
    plain = plain_counts(" ".join(w for w in text if counts[w] >= 5), 15)
    assert found.keys() == plain.keys() and all(math.isclose(found[pair], plain[pair], rel_tol=1e-9) for pair in plain)
    assert place.path("cooccurrence.bin").read_bytes() == place.path("cooccurrence.shuf.bin").read_bytes()
    rows = [line.split(" ") for line in place.path("vectors.txt").read_text().splitlines()]
    assert [row[0] for row in rows] == [*words, "<unk>"] and {len(row) for row in rows} == {51}
    both = numpy.fromfile(place.path("vectors.bin")).reshape(2, 100, 51)
    sums = numpy.array([row[1:] for row in rows[:-1]], float)
    assert numpy.allclose(both.sum(0)[:, :50], sums, atol=1.1e-6)
    assert numpy.allclose(sums.mean(0), numpy.array(rows[-1][1:], float), atol=1e-5)
    fits = [both[0, a - 1, :50] @ both[1, b - 1, :50] + both[0, a - 1, 50] + both[1, b - 1, 50] - math.log(x)
            for a, b, x in records(place.path("cooccurrence.bin"))]
    assert numpy.sqrt(numpy.mean(numpy.square(fits))) < 0.5
    assert not place.path("vectors.run").exists()


def test_flags_of_cooccur_and_glove(place):
    bash(place, "build/vocab_count -max-vocab 30 -verbose 0 < text8 > v; test $(wc -l < v) = 30")
    for flags, one_sided, flat in (("-symmetric 0", True, False), ("-distance-weighting 0", False, True)):
        bash(place, f"build/cooccur -vocab-file v -window-size 4 -verbose 0 {flags} < text8 > r")
        words = [line.split(" ")[0] for line in place.path("v").read_text().splitlines()]
        text = [w for w in place.path("text8").read_text().split() if w in words]
        plain = collections.Counter()
        for i, word in enumerate(text):
            for d in range(1, min(i, 4) + 1):
                plain[text[i - d], word] += 1 if flat else 1 / d
                if not one_sided:
                    plain[word, text[i - d]] += 1 if flat else 1 / d
        found = {(words[a - 1], words[b - 1]): count for a, b, count in records(place.path("r"))}
        assert found.keys() == plain.keys() and all(math.isclose(found[pair], plain[pair], rel_tol=1e-9) for pair in plain)
    for model, width in ((0, 18), (1, 8), (3, 16)):
        bash(place, f"build/glove -input-file r -vocab-file v -save-file w -vector-size 8 -iter 2 -model {model} -write-header 1 -verbose 0; head -1 w.txt; ls w.*")
        lines = place.path("w.txt").read_text().splitlines()
        assert lines[0] == "30 8" and {len(line.split(" ")) for line in lines[1:]} == {width + 1}


@pytest.mark.parametrize("arguments, sentence, code", [
    (["glove", "-save-file", "w", "-vocab-file", "v", "-input-file", "none"], "'none' does not exist; -input-file names the records", 1),
    (["glove", "-save-file", "w", "-vocab-file", "v", "-input-file", "text8"], "bytes, which are no records of 16 bytes each", 1),
    (["glove", "-save-file", "w", "-vocab-file", "v", "-input-file", "far"], "'far': record 2 has the words 1 and 9; wanted numbers from 1 to 3, the lines of 'v'", 1),
    (["glove", "-save-file", "w", "-vocab-file", "v", "-input-file", "low"], "'low': record 1 counts -1; wanted a number above 0", 1),
    (["glove", "-save-file", "w", "-checkpoint-every", "2"], "glove: -checkpoint-every is not done here", 1),
    (["glove", "-save-file", "w", "-grad-clip", "3"], "-grad-clip is 100 here, and cannot be 3", 1),
    (["glove", "-save-file", "w", "-eta", "0"], "-eta = '0' is not a number from 0.001 to 30", 2),
    (["glove", "-save-file", "./w", "-input-file", "w.txt", "-vocab-file", "v"], "-save-file would write", 2),
    (["glove", "-size", "3"], "glove has no flag '-size'", 2),
    (["cooccur", "-window-size", "0"], "-window-size = 0 has no words", 2),
    (["cooccur", "-memory", "x"], "-memory = 'x' is not a number of GB above 0", 2)])
def test_what_the_programs_cannot_do_is_refused(place, arguments, sentence, code):
    place.path("v").write_text("a 3\nb 2\nc 1\n")
    place.path("text8").write_text("a b c a b c a b c\n\n")
    place.path("w.txt").write_bytes(struct.pack("<2id", 1, 2, 1))
    place.path("far").write_bytes(struct.pack("<2id2id", 1, 2, 1, 1, 9, 1))
    place.path("low").write_bytes(struct.pack("<2id", 1, 2, -1))
    before = sorted(path.name for path in place.path(".").iterdir())
    assert sentence in place.refuses(*arguments, code=code)
    assert sorted(path.name for path in place.path(".").iterdir()) == before
