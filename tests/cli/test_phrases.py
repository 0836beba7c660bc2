"""phrases: joins words as word2phrase.c and gensim's Phrases do, from files, compressed files and standard input, and before
training with corpus.phrases = yes."""
import gzip
import lzma
import random
import subprocess

import numpy
import pytest

from conftest import PROGRAM


def text(lines=700, seed=3):
    """Makes lines with words that often follow each other. Some words have an underscore, and some lines are empty."""
    rng = random.Random(seed)
    together = ["new york city", "bank of america", "new_york city", "a_b", "a b c", "san francisco", "b_c d", "the end of the world"]
    words = [f"w{i}" for i in range(150)] + ["new", "city", "of", "the", "a", "b_c", "_", "c_"]
    made = []
    for _ in range(lines):
        made.append(" ".join(rng.choice(together) if rng.random() < .2 else rng.choice(words) for _ in range(rng.randrange(14))))
    return "\n".join(made) + "\n"


def word2phrase(lines, min_count, threshold):
    """Does what word2phrase.c does, but without its limit of 59 bytes a word."""
    counts, last, words = {}, "", 0
    for word in (word for line in lines for word in line.split()):
        words += 1
        for name in (word, f"{last}_{word}"):
            counts[name] = counts.get(name, 0) + 1
        last = word
    one = numpy.float32
    for line in lines:
        out, before, usable = "", None, 0
        for word in line.split():
            own = counts[word]
            pair = counts.get(f"{before}_{word}", 0)
            joins = before is not None and min(usable, own, pair) >= min_count and (
                one(pair - min_count) / one(usable) / one(own) * one(words) > one(threshold))
            out += ("_" if joins else " ") + word
            before, usable = word, 0 if joins else own
        yield out[1:]


def joined(sptx, *options, path="text"):
    return sptx("phrases", path, *options).stdout


@pytest.mark.parametrize("min_count, thresholds", [(5, [20]), (2, [1, 1, 1]), (1, [30, 5]), (40, [1, .5])])
def test_as_word2phrase(sptx, min_count, thresholds):
    sptx.path("text").write_text(text())
    lines = text().splitlines()
    for threshold in thresholds:
        lines = list(word2phrase(lines, min_count, threshold))
    found = joined(sptx, f"--min-count={min_count}", "--threshold=" + ",".join(map(str, thresholds)))
    assert found == "\n".join(lines) + "\n"
    assert "new_york_city" in found or len(thresholds) == 1


CONNECTORS = ["of", "the", "a"]


@pytest.mark.parametrize("scoring, threshold, passes, min_count, connectors, delimiter", [
    ("default", 1, 1, 5, [], "_"), ("default", .5, 3, 1, CONNECTORS, "_"), ("npmi", .2, 2, 2, [], "_"),
    ("npmi", -.5, 2, 3, CONNECTORS, "::"), ("default", 2, 2, 4, CONNECTORS, "_")])
def test_as_gensim(sptx, scoring, threshold, passes, min_count, connectors, delimiter):
    phrases = pytest.importorskip("gensim.models.phrases")
    sptx.path("text").write_text(text())
    sptx.path("connectors").write_text("\n".join(connectors) + "\n")
    lines = [line.split() for line in text().splitlines()]
    for _ in range(passes):
        theirs = phrases.Phrases(lines, min_count=min_count, threshold=threshold, scoring=scoring, delimiter=delimiter,
                                 connector_words=frozenset(connectors))
        lines = [theirs[line] for line in lines]
    found = joined(sptx, f"--score={scoring}", f"--threshold={threshold}", f"--passes={passes}", f"--min-count={min_count}",
                   "--connectors=connectors", f"--delimiter={delimiter}")
    assert found.splitlines() == [" ".join(line) for line in lines]


@pytest.mark.parametrize("score", ["word2phrase", "default"])
def test_threads_and_memory_change_no_byte(sptx, score):
    rng = random.Random(5)
    sptx.path("text").write_text("".join(" ".join(f"w{int(400 * rng.random() ** 3)}" for _ in range(9)) + "\n" for _ in range(9000)))
    options = f"--score={score}", "--threshold=.05", "--min-count=20", "--passes=2"
    found = joined(sptx, *options, "--device.threads=1")
    assert "_" in found
    for more in ("--device.threads=4", "--memory=200000", "--memory=120000"):
        assert joined(sptx, *options, more) == found
    assert "do not fit into 64.0 KiB (phrases.memory)" in sptx.refuses("phrases", "text", "--min-count=1", "--memory=64KiB")


def test_files_and_standard_input_packed_or_not(sptx):
    sptx.path("text").write_text(text())
    found = joined(sptx, "--threshold=20")
    sptx.path("text.gz").write_bytes(gzip.compress(text().encode()))
    assert joined(sptx, "--threshold=20", path="text.gz") == found
    done = subprocess.run([PROGRAM, "phrases", "-", "--threshold=20"], input=lzma.compress(text().encode()), capture_output=True, check=True)
    assert done.stdout.decode() == found
    sptx("phrases", "text", "--threshold=20", "--out=joined")
    assert sptx.path("joined").read_text() == found
    half = len(text().splitlines()) // 2
    for name, lines in ("one", text().splitlines()[:half]), ("two", text().splitlines()[half:]):
        sptx.path(name).write_text("\n".join(lines))  # the last line has no line end
    assert sptx("phrases", "one", "two", "--threshold=20").stdout == found


def test_training_joins_words_itself(sptx):
    sptx.path("text").write_text(text())
    sptx("phrases", "text", "--threshold=20,10", "--out=joined")
    config = sptx.config()
    sptx("train", config, "--corpus.path=joined", "--run.dir=of-file")
    keys = config, "--corpus.path=text", "--corpus.phrases=yes", "--phrases.threshold=20,10"
    sptx("train", *keys)
    assert sptx.tables() == sptx.tables("of-file")
    assert "new_york_city\t" in sptx.path("run", "vocab.tsv").read_text()
    sptx("train", *keys, "--phrases.threshold=1e9", "--overwrite")
    assert "new_york_city\t" not in sptx.path("run", "vocab.tsv").read_text()


def test_the_encoded_text_is_made_once_by_any_number_of_threads_and_gone_on_with(sptx):
    sptx.path("text").write_text(text())
    keys = (sptx.config(), "--corpus.path=text", "--corpus.phrases=yes", "--phrases.threshold=20,10", "--corpus.cache=cache",
            "--optimizer.schedule=constant")
    sptx("train", *keys)
    made = sptx.path("cache", "corpus.ids").stat().st_mtime_ns
    sptx("train", *keys, "--run.dir=again", "--device.threads=1", "--memory.depth=1")
    assert sptx.path("cache", "corpus.ids").stat().st_mtime_ns == made and sptx.tables("again") == sptx.tables()
    sptx("train", *keys, "--run.dir=halves", "--train.epochs=1")
    for file in sptx.path("cache").iterdir():
        file.unlink()
    sptx("train", *keys, "--run.dir=halves", "--resume")
    assert sptx.path("cache", "corpus.ids").stat().st_mtime_ns != made and sptx.tables("halves") == sptx.tables()
    sptx("train", *keys, "--run.dir=other", "--phrases.threshold=1e9")
    assert "new_york_city\t" not in sptx.path("other", "vocab.tsv").read_text()


@pytest.mark.parametrize("options, sentence, code", [
    (["--threshold=5,x"], "phrases.threshold = '5,x' is not auto, or numbers with commas between", 2),
    (["--threshold=2", "--score=npmi"], "phrases.threshold = 2: wanted a number from -1 to 1 with phrases.score = npmi", 1),
    (["--threshold=0", "--score=default"], "wanted a number above 0 with phrases.score = default", 1),
    (["--threshold=5,4", "--passes=1"], "phrases.threshold has 2 numbers, one for each pass, and phrases.passes = 1", 1),
    (["--phrases.delimiter="], "phrases.delimiter is empty", 1),
    (["--connectors=absent"], "cannot open 'absent'", 1),
    (["--min-count=0"], "phrases.min_count = '0' is not", 2)])
def test_what_cannot_be_done_is_refused(sptx, options, sentence, code):
    sptx.path("text").write_text(text(20))
    assert sentence in sptx.refuses("phrases", "text", *options, code=code)


def test_other_formats_are_refused(sptx):
    sptx.path("corpus.txt").write_text(text(20))
    assert "corpus.phrases = yes needs corpus.format = text, and it is lists" in sptx.refuses(
        "train", sptx.config(), "--corpus.phrases=yes", "--corpus.format=lists")
    assert "phrases wants a file of text" in sptx.refuses("phrases", code=2)


def test_a_text_or_a_run_is_never_the_output(sptx):
    before = sptx.path("corpus.txt").read_bytes()
    assert "is the text 'corpus.txt' itself, which would be lost" in sptx.refuses("phrases", "corpus.txt", "--out=./corpus.txt", code=2)
    assert "is the text 'corpus.txt' itself, which would be lost" in \
        sptx.refuses("word2phrase", "-train", "corpus.txt", "-output", "corpus.txt", code=2)
    sptx("train", sptx.config())
    words = sptx.path("run/vocab.tsv").read_bytes()
    assert "is a file of the run in 'run'" in sptx.refuses("phrases", "corpus.txt", "--out=run/vocab.tsv")
    assert (sptx.path("corpus.txt").read_bytes(), sptx.path("run/vocab.tsv").read_bytes()) == (before, words)
