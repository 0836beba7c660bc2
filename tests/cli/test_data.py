"""How the program judges data before it reads it: what a file is, by its first bytes and not by its name; endless words; ratings.
"""
import bz2
import gzip
import io
import lzma
import pathlib
import resource
import struct
import tarfile
import zipfile

import numpy
import pytest

from conftest import PROGRAM

TEXT = b"some words of a text\nand more of them\n" * 100


def zipped():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("text.txt", TEXT)
    return out.getvalue()


def tarred():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        about = tarfile.TarInfo("text.txt")
        about.size = len(TEXT)
        archive.addfile(about, io.BytesIO(TEXT))
    return out.getvalue()


def array():
    out = io.BytesIO()
    numpy.save(out, numpy.arange(1000) / 7)
    return out.getvalue()


NO_TEXT = {
    "zip": (zipped, "a zip archive"),
    "tar": (tarred, "a tar archive"),
    "npy": (array, "a NumPy array"),
    "parquet": (lambda: b"PAR1\x15\x04\x15\x10\x15\x14L\x15\x02" + TEXT, "a Parquet file"),
    "pdf": (lambda: b"%PDF-1.5\n" + TEXT, "a PDF document"),
    "program": (lambda: pathlib.Path(PROGRAM).read_bytes()[:200000], "a program or a library"),
    "ids": (lambda: struct.pack("<1000I", *(i % 37 for i in range(1000))), "no text: "),
    "wide": (lambda: TEXT.decode().encode("utf-16"), "text in UTF-16: write it in UTF-8 first"),
}


@pytest.mark.parametrize("format", ["text", "lists", "pairs"])
@pytest.mark.parametrize("name", sorted(NO_TEXT))
def test_what_is_no_text_is_refused_before_anything_is_read(sptx, name, format):
    make, what = NO_TEXT[name]
    sptx.path("corpus.dat").write_bytes(make())
    config = sptx.config(corpus={"path": "corpus.txt corpus.dat", "format": format})
    assert sptx.refuses("train", config).startswith(f"'corpus.dat' is {what}")
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        sptx.path("corpus.dat").write_bytes(pack(make()))
        assert sptx.refuses("train", config).startswith(f"'corpus.dat' holds {what}")
    assert not sptx.path("run").exists()


def test_what_is_packed_twice_is_told(sptx):
    sptx.path("corpus.txt").write_bytes(gzip.compress(lzma.compress(TEXT)))
    assert sptx.refuses("train", sptx.config()) == "'corpus.txt' holds an xz file and no text: unpack it first"


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_packed_files_that_are_damaged(sptx, pack):
    packed = pack(sptx.path("corpus.txt").read_bytes())
    sptx.path("corpus.txt").write_bytes(packed[:len(packed) // 2])
    assert sptx.refuses("train", sptx.config()) == "'corpus.txt' is cut short: its last part is missing"
    sptx.path("corpus.txt").write_bytes(packed[:len(packed) // 2] + bytes(20) + packed[len(packed) // 2 + 20:])
    assert sptx.refuses("train", sptx.config()).startswith(f"'corpus.txt' is no whole {'xz' if pack is lzma.compress else 'bzip2'} file")


def test_files_of_each_kind_are_one_corpus(sptx):
    """A corpus of several files, each with its own compression and its own byte order mark."""
    folder = sptx.path("parts")
    folder.mkdir()
    plain = sptx.path("corpus.txt").read_bytes().splitlines(keepends=True)
    packers = [bytes, gzip.compress, bz2.compress, lzma.compress]
    for i, pack in enumerate(packers):
        part = b"".join(plain[len(plain) * i // 4:len(plain) * (i + 1) // 4])
        folder.joinpath(f"{i}").write_bytes(pack(b"\xef\xbb\xbf" + part))
    sptx("train", sptx.config())
    sptx("train", sptx.config(corpus={"path": "parts"}, run={"dir": "parts-run"}))
    assert sptx.path("run", "vocab.tsv").read_bytes() == sptx.path("parts-run", "vocab.tsv").read_bytes()
    assert sptx.tables() == sptx.tables("parts-run")


def limit_memory(mebibytes):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_word_without_an_end_takes_no_memory(sptx, pack):
    """A few compressed kilobytes contain a word of 256 MiB."""
    sptx.path("corpus.txt").write_bytes(pack(b"one two\nthree ") + 64 * pack(b"x" * (4 << 20)))
    said = sptx.refuses("train", sptx.config(), preexec_fn=limit_memory(200))
    assert said.startswith("'corpus.txt' line 2: the word that begins with 'xxxx")
    assert "has more than 1.00 MiB (corpus.max_word); wanted words" in said


def test_the_longest_word_is_a_key(sptx):
    sptx.path("corpus.txt").write_text("one two three four five\n" * 20 + "x" * 2000 + " one\n")
    said = sptx.refuses("train", sptx.config(corpus={"max_word": "1999"}))
    assert said.startswith("'corpus.txt' line 21: the word that begins with 'xxxx")
    assert "has more than 1.95 KiB (corpus.max_word)" in said
    sptx("train", sptx.config(corpus={"max_word": "2000"}))
    sptx.path("corpus.txt").write_text("one two three four five\n" * 20 + "x" * 3000000 + " one\n")
    sptx("train", sptx.config(corpus={"max_word": "4MiB"}), "--overwrite")
    sptx("nearest", "run", "one")
    assert "corpus.max_word = '1GiB' is not a size from 1 B to 64.0 MiB" in sptx.refuses("train", sptx.config(corpus={"max_word": "1GiB"}))


def grow(path):
    """Appends a hole of 3 GiB to a file."""
    with open(path, "r+b") as file:
        file.truncate(3 << 30)


def test_a_vocabulary_that_grew_is_not_read_to_its_end(trained):
    grow(trained.path("run", "vocab.tsv"))
    assert "has more than 67108928 bytes; wanted word TAB count" in trained.refuses("nearest", "run", "t1w1", timeout=10)


def test_a_state_that_grew_is_not_read(trained):
    grow(trained.checkpoint() / "state.ini")
    done = trained("train", "run/config.ini", "--resume", expect=1, preexec_fn=limit_memory(1000))
    assert "state.ini' is damaged: it has more than 65536 bytes" in done.stderr


def test_metrics_are_read_line_by_line(trained):
    """metrics.jsonl has a hole of 3 GiB, which contains no line."""
    lines = trained.path("run", "metrics.jsonl").read_bytes()
    grow(trained.path("run", "metrics.jsonl"))
    trained("report", "run", "--out=page.html", preexec_fn=limit_memory(300))
    trained("train", "run.ini", "--resume", "--train.epochs=9", preexec_fn=limit_memory(300))
    assert trained.path("run", "metrics.jsonl").read_bytes().startswith(lines)


# ---- ratings ----

def rated(sptx, name, rating, before=""):
    lines = [f"u{i % 200},i{i * 7 % 90},{rating(i)}" for i in range(3000)]
    sptx.path(name).write_text(before + "\n".join(lines) + "\n")


def said_of_ratings(sptx, paths, **keys):
    config = sptx.config(corpus={"path": paths, "format": "pairs", **keys}, train={"steps": "1", "batch": "16"},
                         negatives={"count": "5"})
    for _ in range(2):  # the second run uses what the first has encoded
        lines = [line for line in sptx("train", config, "--overwrite").stderr.splitlines() if line.startswith("ratings ")]
        assert len(lines) <= 1
    return lines[0] if lines else None


@pytest.mark.parametrize("rating, sentence", [
    (lambda i: 1 + i % 5, "ratings 1 to 5 found: all count alike; corpus.min_rating = 4 keeps the higher ones, about 40 in 100"),
    (lambda i: (1 + i % 10) / 2,
     "ratings 0.5 to 5 found: all count alike; corpus.min_rating = 4 keeps the higher ones, about 30 in 100"),
    (lambda i: i % 2, None),  # 0 is left out, and the others are all 1
    (lambda i: 1 + i % 3 * (i % 50 == 0) * 400, "ratings 1 to 801 found: all count alike; corpus.min_rating leaves lower ones out, corpus.weights = log weighs by them"),
    (lambda i: 880000000 + i, None),  # times in seconds
    (lambda i: 5, None)])
def test_ratings_that_differ_are_said(sptx, rating, sentence):
    rated(sptx, "ratings.csv", rating)
    assert said_of_ratings(sptx, "ratings.csv") == sentence


def test_ratings_are_found_behind_headers_in_all_files_and_packed(sptx):
    rated(sptx, "low.csv", lambda i: 1 + i % 2, "\ufeffuser,item,rating\n")
    rated(sptx, "high.csv", lambda i: 4 + i % 2)
    sptx.path("high.csv").write_bytes(lzma.compress(sptx.path("high.csv").read_bytes()))
    said = said_of_ratings(sptx, "low.csv high.csv")
    assert said == "ratings 1 to 5 found: all count alike; corpus.min_rating = 4 keeps the higher ones, about 50 in 100"
    assert said_of_ratings(sptx, "low.csv high.csv", min_rating=4) is None


def test_pairs_without_ratings_are_no_ratings(sptx):
    sptx.path("pairs.txt").write_text("".join(f"u{i % 200} i{i * 7 % 90}\n" for i in range(3000)))
    assert said_of_ratings(sptx, "pairs.txt") is None
