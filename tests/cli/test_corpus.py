"""The encoded corpus: made once, found again, shared by runs, and believed only where it can be meant."""
import ctypes
import os
import shutil

import numpy
import pytest

from conftest import STOP_KEYS, checkpoints, end, sentences, wait_for


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


def given_stream(sptx, change):
    """An id stream as the corpus, with `change` made to its ids and starts, and a checksum that is right (one piece)."""
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
    """The encoded corpus of the run itself, and an id stream that is the corpus."""
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
    sptx("train", config, "--resume", "--train.epochs=1")  # behind its end already: the checkpoint is whole
    if not given:
        assert sptx.path("run", "corpus.ids").stat().st_size > 128  # encoded again
