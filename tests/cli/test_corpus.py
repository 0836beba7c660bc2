"""The encoded corpus is made once, used again, shared by several runs, and used only if it belongs to the corpus and keys."""
import ctypes
import os
import re
import shutil
import signal

import numpy
import pytest

from conftest import SLOWER, STOP_KEYS, checkpoints, end, sentences, wait_for


def test_the_encoded_corpus_is_reused_while_corpus_and_keys_are_unchanged(sptx):
    def encoded():
        found = sptx.path("run", "corpus.ids").stat()
        return found.st_ino, found.st_mtime_ns
    sptx("train", sptx.config())
    before = encoded()
    done = sptx("train", "run.ini", "--overwrite", "--train.seed=2")
    assert "(encoded before)" in done.stderr and encoded() == before
    done = sptx("train", "run.ini", "--overwrite", "--corpus.min_count=60")
    assert "(encoded before)" not in done.stderr and encoded() != before
    before = encoded()
    sptx.path("corpus.txt").write_text("\n".join(sentences(2000, seed=9)) + "\n")
    done = sptx("train", "run.ini", "--overwrite", "--corpus.min_count=60")
    assert "(encoded before)" not in done.stderr and encoded() != before


def test_what_a_refused_train_has_encoded_is_kept(sptx):
    """The next train finds the encoded corpus, but no run; no other file is left."""
    sptx.path("corpus.txt").write_text("".join(f"u{i} {line}\n" for i, line in enumerate(sentences(500))))
    config = sptx.config(corpus={"format": "lists"}, examples={"mode": "list"}, run={"dir": "runs/new"})
    refused = sptx("train", config, "--examples.positives=40", expect=1)
    assert "sptx-w2v: examples.positives = 40 needs a list of 41 words" in refused.stderr
    assert "kept       the encoded corpus in 'runs/new'" in refused.stderr
    assert sorted(os.listdir(sptx.path("runs/new"))) == ["corpus.ids", "corpus.vocab.tsv"]
    again = sptx("train", config, "--examples.positives=41", expect=1)
    assert "kept" not in again.stderr
    for options in ([], ["--overwrite"], ["--resume", "--train.epochs=3"]):
        assert "(encoded before)" in sptx("train", config, *options).stderr


def test_a_train_that_is_refused_before_that_leaves_nothing(sptx):
    sptx.path("corpus.txt").write_text("\n")
    sptx.refuses("train", sptx.config(run={"dir": "runs/new"}))
    assert not sptx.path("runs").exists()


def test_a_device_that_is_not_here_is_refused_before_the_corpus_is_read(sptx):
    done = sptx("train", sptx.config(), "--device.backend=cuda", "--device.index=1000", "--corpus.cache=cache", expect=None)
    if "device.backend = cuda: " not in done.stderr:
        pytest.skip("there is a GPU")
    assert done.returncode == 1 and not sptx.path("cache").exists()


def given_stream(sptx, change):
    """Makes the id stream the corpus, after change(ids, starts), with the right checksum (of one piece)."""
    sptx("generate", "words", "--out=x.ids", "--rows=300", "--lists=1000")
    data = bytearray(sptx.path("x.ids").read_bytes())
    tokens, sentence_count = numpy.frombuffer(data, numpy.uint64, 2, 24)
    ids = numpy.frombuffer(data, numpy.uint32, tokens, 128)
    starts = numpy.frombuffer(data, numpy.uint64, sentence_count + 1, len(data) - 8 * (int(sentence_count) + 1))
    change(ids, starts)
    xxhash = ctypes.CDLL("libxxhash.so.0")
    xxhash.XXH3_64bits.restype = ctypes.c_uint64
    xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    piece = xxhash.XXH3_64bits(bytes(data[128:]), len(data) - 128).to_bytes(8, "little")
    data[40:48] = xxhash.XXH3_64bits(piece, 8).to_bytes(8, "little")
    sptx.path("x.ids").write_bytes(data)
    return sptx.config(corpus={"path": "x.ids"})


def test_an_id_stream_is_a_corpus(sptx):
    sptx("train", given_stream(sptx, lambda ids, starts: None))


def set_item(items, place, value):
    items[place] = value


@pytest.mark.parametrize("change, wanted", [
    (lambda ids, starts: set_item(ids, 77, 300), "holds id 300 as token 77, and the vocabulary has 300 words"),
    (lambda ids, starts: set_item(ids, -1, 2 ** 32 - 1), "holds id 4294967295 as token"),
    (lambda ids, starts: set_item(starts, 1, 2 ** 40), "sentence 1 goes from token 1099511627776 to"),
    (lambda ids, starts: set_item(starts, 2, 0), "sentence 1 goes from token"),
    (lambda ids, starts: set_item(starts, -1, int(starts[-1]) - 1), "its sentences end at token"),
])
def test_an_id_stream_that_cannot_be_meant_is_refused(sptx, change, wanted):
    said = sptx.refuses("train", given_stream(sptx, change))
    assert said.startswith("id stream 'x.ids'") and wanted in said


@pytest.mark.parametrize("given", [False, True])
def test_a_corpus_cut_short_while_it_is_trained_on_is_said(whole, given):
    """Tries the run's own encoded corpus, and an id stream that is the corpus."""
    sptx, cut = whole, whole.path("run", "corpus.ids")
    keys = STOP_KEYS
    if given:
        sptx("generate", "words", "--out=x.ids", "--rows=3000", "--lists=20000")
        shutil.copy(sptx.path("x.ids"), sptx.path("kept.ids"))
        cut, keys = sptx.path("x.ids"), {**STOP_KEYS, "corpus": {"path": "x.ids"}}
    config = sptx.config(**keys)
    process = sptx.start("train", config, "--train.epochs=1000")
    assert wait_for(lambda: checkpoints(sptx), process)
    os.truncate(cut, 128)
    out, err = end(process)
    assert process.returncode == 1 and out == ""
    name = "x.ids" if given else "run/corpus.ids"
    assert err.endswith(f"sptx-w2v: '{name}' cannot be read any more: another program has cut it short, or its disk fails\n")
    assert checkpoints(sptx)
    if given:
        os.replace(sptx.path("kept.ids"), sptx.path("x.ids"))
    # the run is complete at this number of epochs, so its checkpoint is whole
    sptx("train", config, "--resume", "--train.epochs=1")
    if not given:
        assert sptx.path("run", "corpus.ids").stat().st_size > 128  # the corpus was encoded again


# ---- one cache for many runs ----

def sweep(sptx, count, **sections):
    """Starts `count` trainings at once that share one cache, each with its own seed. Returns their outputs."""
    config = sptx.config(train={"epochs": "0", "steps": "3"}, device={"threads": "1"}, **sections)
    started = [sptx.start("train", config, f"--run.dir=run{i}", f"--train.seed={i}") for i in range(count)]
    said = [process.communicate(timeout=600 * SLOWER)[1] for process in started]
    assert [process.returncode for process in started] == [0] * count, said
    return said


@pytest.mark.parametrize("count", [10, pytest.param(120, marks=pytest.mark.long)])
@pytest.mark.parametrize("format", ["text", "pairs"])
def test_a_sweep_over_one_cache_encodes_once(sptx, count, format):
    lines = list(sentences(20000))
    if format == "pairs":
        lines = [f"u{i % 3000},{word}" for i, line in enumerate(lines[:8000]) for word in line.split()]
    sptx.path("corpus.txt").write_text("\n".join(lines) + "\n")
    said = sweep(sptx, count, corpus={"cache": "cache", "format": format})
    assert sum("(encoded before)" not in text for text in said) == 1
    for text in said:
        assert "waiting" not in text or re.search(r"^waiting    for process \d+ of \S+, since .*, which encodes the corpus into 'cache'$",
                                                 text, re.M)
    assert sorted(os.listdir(sptx.path("cache"))) == ["corpus.ids", "corpus.vocab.tsv"]
    made = {(sptx.path(f"run{i}", "vocab.tsv").read_bytes()) for i in range(count)}
    assert len(made) == 1
    alone = sptx("train", "run.ini", "--run.dir=alone", "--corpus.cache=own", "--train.seed=7")
    assert "(encoded before)" not in alone.stderr
    assert sptx.tables("run7") == sptx.tables("alone")


def test_runs_of_other_keys_share_a_cache_in_turn(sptx):
    """Two runs with different keys use one cache in turn: each replaces the other's streams, which is slow but correct."""
    config = sptx.config(corpus={"cache": "cache", "min_count": None}, train={"epochs": "0", "steps": "3"}, device={"threads": "1"})
    started = [sptx.start("train", config, f"--run.dir=run{i}", f"--corpus.min_count={1 + 60 * (i % 2)}") for i in range(8)]
    assert [(process.communicate(timeout=120 * SLOWER), process.returncode)[1] for process in started] == [0] * 8
    for i in range(2):
        sptx("train", config, f"--run.dir=alone{i}", f"--corpus.min_count={1 + 60 * i}", f"--corpus.cache=own{i}")
        for run in range(i, 8, 2):
            assert sptx.tables(f"run{run}") == sptx.tables(f"alone{i}")
    assert len(sptx.tables("alone0")[0]) > len(sptx.tables("alone1")[0])


def test_a_builder_that_is_killed_is_followed_by_one_that_waits(sptx):
    sptx.path("corpus.txt").write_text("\n".join(sentences(60000)) + "\n")
    config = sptx.config(corpus={"cache": "cache"}, train={"epochs": "0", "steps": "3"})
    builder = sptx.start("train", config, "--run.dir=killed")
    lock = sptx.path("cache", "corpus.lock")
    assert wait_for(lambda: lock.exists() and "process" in lock.read_text(), builder)
    builder.send_signal(signal.SIGSTOP)  # the stopped process holds the cache's lock for as long as the test wants
    waiting = [sptx.start("train", config, f"--run.dir=run{i}") for i in range(2)]
    for process in waiting:
        line = process.stderr.readline()
        assert re.match(rf"waiting    for process {builder.pid} of .*, which encodes the corpus into 'cache'$", line)
    assert not sptx.path("cache", "corpus.ids").exists()
    builder.kill()
    end(builder)
    said = [process.communicate(timeout=120 * SLOWER)[1] for process in waiting]
    assert [process.returncode for process in waiting] == [0, 0]
    assert sorted("(encoded before)" in text for text in said) == [False, True]
    assert sorted(os.listdir(sptx.path("cache"))) == ["corpus.ids", "corpus.vocab.tsv"]
    assert sptx.tables("run0") == sptx.tables("run1")


def test_files_of_a_corpus_stand_one_a_line(sptx):
    """Paths on lines of their own: a long one, one with a blank, and a comment between them. config.ini has them in one line and
    trains the same corpus."""
    folder = "d" * 200
    sptx.path(folder, folder).mkdir(parents=True)
    for seed, name in enumerate(["a.txt", f"{folder}/{folder}/b;.txt", "c d.txt"]):
        sptx.path(name).write_text("\n".join(sentences(200, seed=seed)) + "\n")
    sptx.config(corpus={"path": f'\n    a.txt ; the first\n  # the others\n    {folder}/{folder}/b;.txt,\n\t"c d.txt"'})
    sptx("train", "run.ini")
    written = sptx.path("run", "config.ini").read_text()
    assert f'path = a.txt {folder}/{folder}/b;.txt, "c d.txt"\n' in written
    sptx.path("again.ini").write_text(written)
    assert "(encoded before)" in sptx("train", "again.ini", "--overwrite").stderr
