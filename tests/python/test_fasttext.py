"""Compares sptx.FastText with gensim's, and asks a run for vectors of unseen words."""

import inspect
import random

import numpy
import pytest

import sptx
from sptx._fasttext import bucket_of, ngrams_of

DRAW = random.Random(1)
TOPICS = [["t%dw%d" % (topic, word) for word in range(12)] for topic in range(8)]
SENTENCES = [DRAW.choices(DRAW.choice(TOPICS), k=10) for _ in range(3000)]
OPTIONS = {"vector_size": 20, "window": 3, "min_count": 1, "workers": 1, "sample": 0, "min_n": 2, "max_n": 4, "bucket": 1000}


@pytest.fixture(scope="module", params=[0, 1])
def model(request):
    return sptx.FastText(SENTENCES, sg=request.param, **OPTIONS, device="cpu")


def test_names_and_defaults_are_gensims():
    models = pytest.importorskip("gensim.models")
    ours, wanted = (inspect.signature(kind.__init__).parameters for kind in (sptx.FastText, models.FastText))
    assert [name for name in ours if name != "device"] == list(wanted)
    assert {name for name in wanted if ours[name].default != wanted[name].default} == {"workers"}  # None: all cores


def test_ngrams_are_gensims():
    hashes = pytest.importorskip("gensim.models.fasttext").ft_ngram_hashes
    for word in ("where", "a", "été", "naïveté", "汉语", "", "x" * 300):
        for low, high in ((3, 6), (1, 2), (2, 2)):
            assert [bucket_of(ngram, 2000) for ngram in ngrams_of(word, low, high)] == hashes(word, low, high, 2000)


def test_a_topic_finds_itself(model):
    assert {word[:2] for word, _ in model.wv.most_similar("t3w0", topn=5)} == {"t3"}
    assert {word[:2] for word, _ in model.wv.most_similar("t3w999", topn=5)} == {"t3"}
    assert model.wv.similarity("t3w999", "t3w0") > model.wv.similarity("t3w999", "t5w0")
    assert "t3w999" in model.wv and "t3w999" not in model.wv.key_to_index
    assert model.wv[["t3w0", "t3w999"]].shape == (2, 20)


def test_gensim_reads_its_file(model, tmp_path):
    load = pytest.importorskip("gensim.models.fasttext").load_facebook_model
    model.save_facebook_model(tmp_path / "model.bin")
    theirs = load(str(tmp_path / "model.bin"))
    assert set(theirs.wv.index_to_key) == set(model.wv.index_to_key)
    assert theirs.wv.vectors_ngrams.tobytes() == model.wv.vectors_ngrams.tobytes()
    for word in list(model.wv) + ["t3w999", "neverseen"]:
        assert numpy.allclose(theirs.wv[word], model.wv[word], rtol=0, atol=1e-6)
    with sptx.Run(tmp_path / "model.bin", device="cpu") as run:
        assert len(run) == 96 and run.dim == 20
        for word in list(model.wv) + ["t3w999", "neverseen"]:
            assert numpy.allclose(run[word], model.wv[word], rtol=0, atol=1e-6)
        assert [word for word, _ in run.nearest("t3w999", 5)] == [word for word, _ in model.wv.most_similar("t3w999", topn=5)]
        assert run.analogy("t1w0", "t1w1", "t2w999", 1)[0][0][:2] == "t2"
        assert run.nearest(["t3w999", "t3w0"], 3)[1] == run.nearest("t3w0", 3)
        with pytest.raises(KeyError):
            run["a\0b"]
        with pytest.raises(KeyError):
            run.vectors(["t3w999"], table="context")


def test_training_goes_on(model, tmp_path):
    model.save(tmp_path / "model")
    again = sptx.FastText.load(tmp_path / "model")
    assert numpy.array_equal(again.wv["t3w999"], model.wv["t3w999"])
    before = again.wv["t1w0"].copy()
    assert again.train(SENTENCES, total_examples=len(SENTENCES), epochs=1) == (30000, 30000)
    assert not numpy.array_equal(again.wv["t1w0"], before)
    assert {word[:2] for word, _ in again.wv.most_similar("t3w999", topn=5)} == {"t3"}


def test_without_ngrams_it_is_word2vec():
    model = sptx.FastText(SENTENCES, **{**OPTIONS, "max_n": 0}, device="cpu")
    assert "neverseen" not in model.wv and {word[:2] for word, _ in model.wv.most_similar("t3w0", topn=3)} == {"t3"}
    with pytest.raises(KeyError):
        model.wv["neverseen"]


def test_what_is_not_there_is_refused():
    for given, wanted in (({"word_ngrams": 2}, "n-grams of words"), ({"hs": 1}, "set negative=0")):
        with pytest.raises(NotImplementedError, match=wanted):
            sptx.FastText(SENTENCES, **given, device="cpu")
    with pytest.raises(ValueError, match="no word of FastText"):
        sptx.FastText([["a\tb", "c"]] * 10, min_count=1, device="cpu")
