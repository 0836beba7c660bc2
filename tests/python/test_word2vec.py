"""Compares sptx.Word2Vec and KeyedVectors with gensim's: the names are the same, equal vectors give equal answers, and trained vectors are as
good."""

import collections
import inspect
import os
import random

import numpy
import pytest

import sptx
from sptx import _compiled as compiled, _corpus as corpus, _word2vec as word2vec
from sptx.gensim.models.callbacks import CallbackAny2Vec

DRAW = random.Random(1)
TOPICS = [["t%dw%d" % (topic, word) for word in range(12)] for topic in range(8)]
SENTENCES = [DRAW.choices(DRAW.choice(TOPICS), k=10) for _ in range(3000)]


@pytest.fixture(scope="module")
def model():
    return sptx.Word2Vec(SENTENCES, vector_size=20, window=3, min_count=1, workers=1, sample=0, device="cpu")


@pytest.fixture(scope="module")
def theirs(model):
    """gensim's KeyedVectors with the model's vectors."""
    keyed = pytest.importorskip("gensim.models").KeyedVectors(20)
    keyed.add_vectors(model.wv.index_to_key, model.wv.vectors)
    for word in model.wv.index_to_key:
        keyed.set_vecattr(word, "count", model.wv.get_vecattr(word, "count"))
    return keyed


def near(ours, theirs):
    assert [word for word, _ in ours] == [word for word, _ in theirs]
    assert numpy.allclose([score for _, score in ours], [score for _, score in theirs], atol=1e-5)
    return True


# ---- training ----

def test_names_and_defaults_are_gensims():
    models = pytest.importorskip("gensim.models")
    ours, wanted = (inspect.signature(kind.__init__).parameters for kind in (sptx.Word2Vec, models.Word2Vec))
    assert [name for name in ours if name != "device"] == list(wanted)
    assert {name for name in wanted if ours[name].default != wanted[name].default} == {"workers"}  # None: all cores
    for name in ("train", "build_vocab"):
        assert [one for one in inspect.signature(getattr(sptx.Word2Vec, name)).parameters if one != "forget"][:-1] == \
            list(inspect.signature(getattr(models.Word2Vec, name)).parameters)[:-1]


def separation(wv):
    """Returns by how much two words of one topic are more similar than two words of different topics."""
    topics = numpy.array([[word[:2] for word in wv.index_to_key]])
    cosines, same = wv.get_normed_vectors() @ wv.get_normed_vectors().T, topics == topics.T
    return cosines[same & ~numpy.eye(len(wv), dtype=bool)].mean() - cosines[~same].mean()


@pytest.mark.parametrize("sg", [0, 1])
@pytest.mark.parametrize("loss", [{}, {"hs": 1, "negative": 0}], ids=["negatives", "hs"])
def test_vectors_are_as_good_as_gensims(sg, loss):
    kind = pytest.importorskip("gensim.models").Word2Vec
    options = {"vector_size": 20, "window": 3, "min_count": 1, "workers": 1, "sg": sg, "sample": 0, **loss}
    ours, wanted = sptx.Word2Vec(SENTENCES, **options, device="cpu"), kind(SENTENCES, **options)
    assert abs(separation(ours.wv) - separation(wanted.wv)) < 0.1 and separation(ours.wv) > 0.4
    assert set(ours.wv.index_to_key) == set(wanted.wv.index_to_key)
    assert (ours.corpus_count, ours.corpus_total_words) == (wanted.corpus_count, wanted.corpus_total_words) == (3000, 30000)
    for word in ours.wv.index_to_key:
        assert ours.wv.get_vecattr(word, "count") == wanted.wv.get_vecattr(word, "count")
    counts = [ours.wv.get_vecattr(word, "count") for word in ours.wv.index_to_key]
    assert counts == sorted(counts, reverse=True)
    contexts, other = ("syn1", "syn1neg") if loss else ("syn1neg", "syn1")
    assert getattr(ours, contexts).shape == getattr(wanted, contexts).shape and not hasattr(ours, other)


def test_hierarchical_softmax_is_trained_further():
    model = sptx.Word2Vec(SENTENCES[:1000], vector_size=20, window=3, min_count=1, workers=1, sample=0, hs=1, negative=0, device="cpu")
    nodes = model.syn1.copy()
    assert not nodes[-1].any() and nodes[-2].any()
    model.train(SENTENCES, total_examples=3000, epochs=3, start_alpha=1e-7, end_alpha=1e-7)
    assert numpy.abs(model.syn1 - nodes).max() < 1e-3  # the same words make the same tree
    with pytest.raises(RuntimeError, match="negative=5"):
        model.predict_output_word(["t0w0"])


def test_the_same_sentences_give_the_same_vectors(model, tmp_path):
    again = sptx.Word2Vec(iter(SENTENCES), vector_size=20, window=3, min_count=1, workers=1, sample=0, device="cpu")
    assert numpy.array_equal(again.wv.vectors, model.wv.vectors)
    (tmp_path / "corpus.txt").write_text("".join(" ".join(words) + "\n" for words in SENTENCES))
    filed = sptx.Word2Vec(corpus_file=tmp_path / "corpus.txt", vector_size=20, window=3, min_count=1, workers=1, sample=0, device="cpu")
    assert numpy.array_equal(filed.wv.vectors, model.wv.vectors) and filed.wv.index_to_key == model.wv.index_to_key
    steps = sptx.Word2Vec(vector_size=20, window=3, min_count=1, workers=1, sample=0, device="cpu")
    steps.build_vocab(SENTENCES)
    assert len(steps.wv) == 96 and steps.train(SENTENCES, total_examples=steps.corpus_count, epochs=steps.epochs) == (150000, 150000)
    assert numpy.array_equal(steps.wv.vectors, model.wv.vectors)


@pytest.mark.filterwarnings("ignore:the loss has stayed")
@pytest.mark.parametrize("read", [1, 7, 1 << 26])
@pytest.mark.parametrize("name", ["ctypes", "_calls"])
def test_a_file_is_taken_as_its_lines_are(tmp_path, monkeypatch, read, name):
    """A file gives the same words, counts and vectors as its lines, whatever the size of the blocks that are read, and with or without
    the C module."""
    monkeypatch.setattr(word2vec, "_READ", read)
    if name == "ctypes":
        monkeypatch.setattr(corpus, "walk", compiled._walk)
    draw = random.Random(5)
    words = ["a", "b", "known", "café", "\u65e5\u672c", "x" * 300, "n\0l", "\1a", "\1", "6", "61"]
    text = "".join(draw.choice(words) + draw.choice([" ", "\t", "  ", "\n", "\n\n", "\r\n"]) for _ in range(500)) + "last"
    (tmp_path / "text").write_bytes(text.encode() + b" \xff")
    lines = [line.split() for line in (text + " \ufffd").replace("\r\n", "\n").split("\n")]
    options = {"vector_size": 4, "min_count": 1, "sample": 0, "workers": 1, "device": "cpu"}
    filed, listed = sptx.Word2Vec(corpus_file=tmp_path / "text", **options), sptx.Word2Vec((iter(line) for line in lines), **options)
    assert filed.wv.index_to_key == listed.wv.index_to_key and filed.raw_vocab == listed.raw_vocab == collections.Counter(sum(lines, []))
    assert (filed.corpus_count, filed.corpus_total_words) == (listed.corpus_count, listed.corpus_total_words) == (len(lines), 502)
    assert filed.wv.vectors.tobytes() == listed.wv.vectors.tobytes()
    assert filed.train(corpus_file=tmp_path / "text", epochs=2, total_words=1) == listed.train(lines, epochs=2, total_examples=1) == (1004, 1004)


def test_gensims_own_examples(tmp_path):
    texts = pytest.importorskip("gensim.test.utils").common_texts
    with numpy.testing.suppress_warnings() as quiet:  # gensim's warning: a corpus of nine lines trains little
        quiet.filter(sptx.SptxWarning)
        model = sptx.Word2Vec(sentences=texts, vector_size=100, window=5, min_count=1, workers=4, device="cpu")
        model.save(tmp_path / "word2vec.model")
        model = sptx.Word2Vec.load(tmp_path / "word2vec.model")
        assert model.train([["hello", "world"]], total_examples=1, epochs=1) == (0, 2)
    vector = model.wv["computer"]
    assert vector.shape == (100,) and len(model.wv.most_similar("computer", topn=10)) == 10
    model.wv.save(str(tmp_path / "word2vec.wordvectors"))
    wv = sptx.KeyedVectors.load(str(tmp_path / "word2vec.wordvectors"), mmap="r")
    assert numpy.array_equal(wv["computer"], vector)
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 1


def test_training_goes_on(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = sptx.Word2Vec.load(tmp_path / "model")
    before = loaded.wv.vectors.copy()
    loaded.train(SENTENCES[:100], total_examples=100, epochs=1, start_alpha=0.001, end_alpha=0.001)
    moved = numpy.abs(loaded.wv.vectors - before).max()
    assert 0 < moved < 0.2 * numpy.abs(before).max()  # training continued from where it was, with small steps
    loaded.build_vocab([["new", "t0w0", "new"]] * 5, update=True)
    assert "new" in loaded.wv and len(loaded.wv) == 97 and loaded.wv.get_vecattr("new", "count") == 10
    old = loaded.wv["t3w3"].copy()
    loaded.train([["new", "t0w0"]] * 5, total_examples=5, epochs=1)
    assert numpy.array_equal(loaded.wv["t3w3"], old) and loaded.wv["new"].any()
    loaded.wv.vectors[0] += 1
    with pytest.raises(NotImplementedError, match="changed after training"):
        loaded.train(SENTENCES, total_examples=1, epochs=1)


@pytest.mark.filterwarnings("ignore:the loss has stayed")
def test_words_leave_in_updates(tmp_path):
    first = [["a"] * 9 + ["b"] * 5 + ["c"] * 3 + ["d"] * 4, ["a", "b", "rare"]]
    for forget, stay, gone in (("count", ["a", "b", "c", "e"], ["d"]), ("age", ["a", "c", "e", "f"], ["b", "d"])):
        model = sptx.Word2Vec(first, vector_size=4, min_count=2, max_final_vocab=4, workers=1, sample=0, device="cpu")
        old = {word: model.wv[word].copy() for word in model.wv.index_to_key}
        model.build_vocab([["e"] * 6 + ["c", "c", "f", "f", "a"]], update=True, forget=forget)
        assert sorted(model.wv.index_to_key) == stay and model.forgotten == gone and model.effective_min_count == 2
        assert all(numpy.array_equal(model.wv[word], old[word]) for word in set(stay) & set(old))
        assert model.wv.get_vecattr("c", "count") == 5 and not set(gone) & set(model.raw_vocab)
        model.train([["c", "e", "a"]] * 5, total_examples=5, epochs=1)
        model.save(tmp_path / "model")
        model = sptx.Word2Vec.load(tmp_path / "model")
        model.build_vocab([["d", "d", "d", "a"]], update=True, forget=forget)  # by age b is left of the count, c, e and f of one age
        assert sorted(model.wv.index_to_key) == (["a", "b", "c", "e"] if forget == "count" else ["a", "c", "d", "e"])
        model.build_vocab_from_freq({"x": 50, "y": 50, "z": 50, "w": 50}, update=True, forget=forget)
        assert sorted(model.wv.index_to_key) == ["w", "x", "y", "z"] and len(model.forgotten) == 4
        model.train([["x", "y"]] * 5, total_examples=5, epochs=1)  # begins anew, since no word is left
    for keys, sentence in (({"forget": "lru", "update": True}, "'age', 'count' or None, not 'lru'"), ({"forget": "age"}, "set update=True")):
        with pytest.raises(ValueError, match=sentence):
            model.build_vocab(first, **keys)
    with pytest.raises(ValueError, match="set max_final_vocab"):
        sptx.Word2Vec(first, vector_size=4, min_count=1, device="cpu").build_vocab(first, update=True, forget="count")


def test_known_counts_are_added():
    model = sptx.Word2Vec(vector_size=4, min_count=2)
    model.build_vocab_from_freq({"a": 3, "b": 2})
    vector = model.wv["b"].copy()
    model.build_vocab_from_freq({"a": 1, "c": 9, "d": 1}, update=True)
    assert model.wv.index_to_key == ["c", "a", "b"] and numpy.array_equal(model.wv["b"], vector)
    assert model.wv.get_vecattr("a", "count") == 4


@pytest.mark.filterwarnings("ignore:the loss has stayed")
def test_training_begins_from_vectors_that_are_set(model, tmp_path):
    model.wv.save_word2vec_format(tmp_path / "old.bin", binary=True)
    fresh = sptx.Word2Vec(vector_size=20, window=3, min_count=1, workers=1, sample=0, device="cpu")
    fresh.build_vocab(SENTENCES)
    fresh.wv.intersect_word2vec_format(tmp_path / "old.bin", binary=True)
    fresh.train(SENTENCES[:10], total_examples=10, epochs=1, start_alpha=1e-6, end_alpha=1e-6)
    assert numpy.allclose(fresh.wv.vectors, model.wv.vectors, atol=1e-3)


def test_words_of_any_kind_are_kept():
    words = ["new york", "a\tb", "", "é", "x" * 300, "\u2028", "naïve\n", "\ud800", "0"]
    model = sptx.Word2Vec([words] * 20, vector_size=4, min_count=1, sample=0, device="cpu")
    assert set(model.wv.index_to_key) == set(words) and numpy.isfinite(model.wv.vectors).all()
    assert model.wv["new york"].shape == (4,) and "york" not in model.wv


def test_words_are_chosen_as_gensim_chooses_them():
    kind = pytest.importorskip("gensim.models").Word2Vec
    for options in ({"min_count": 300}, {"max_final_vocab": 20}, {"max_final_vocab": 1000, "min_count": 310}):
        ours, wanted = sptx.Word2Vec(**options, device="cpu"), kind(**options)
        ours.build_vocab(SENTENCES)
        wanted.build_vocab(SENTENCES)
        assert set(ours.wv.index_to_key) == set(wanted.wv.index_to_key) and len(ours.wv) > 1


class Told(CallbackAny2Vec):
    """A callback that records the calls that it gets."""

    def __init__(self):
        self.calls, self.losses, self.vectors = [], [], []

    def on_train_begin(self, model):
        self.calls.append("train")

    def on_epoch_begin(self, model):
        self.calls.append("begin")

    def on_epoch_end(self, model):
        self.calls.append("end")
        self.losses.append(model.get_latest_training_loss())
        self.vectors.append(model.wv.vectors.copy())

    def on_train_end(self, model):
        self.calls.append("trained")


@pytest.mark.parametrize("sg", [0, 1])
def test_callbacks_see_the_model_between_epochs(sg):
    told, options = Told(), dict(vector_size=20, window=3, min_count=1, workers=1, sample=0, device="cpu", sg=sg, epochs=4)
    model = sptx.Word2Vec(SENTENCES, callbacks=[told, CallbackAny2Vec()], compute_loss=True, **options)
    assert told.calls == ["train"] + ["begin", "end"] * 4 + ["trained"] and model.train_count == 1
    assert told.losses == sorted(told.losses) and told.losses[0] > 0 and model.get_latest_training_loss() == told.losses[-1]
    assert all((one != other).any() for one, other in zip(told.vectors, told.vectors[1:])) and (told.vectors[-1] == model.wv.vectors).all()
    plain = sptx.Word2Vec(SENTENCES, **options)
    assert separation(model.wv) > separation(plain.wv) - 0.1
    told.calls.clear()
    model.train(SENTENCES[:50], epochs=2, total_examples=50, callbacks=[told])
    assert told.calls == ["train"] + ["begin", "end"] * 2 + ["trained"] and model.train_count == 2


def test_cbow_of_sums_is_as_good_as_gensims():
    kind = pytest.importorskip("gensim.models").Word2Vec
    options = dict(vector_size=20, window=3, min_count=1, workers=1, sample=0, cbow_mean=0)
    ours, theirs = sptx.Word2Vec(SENTENCES, device="cpu", **options), kind(SENTENCES, **options)
    assert separation(ours.wv) > separation(theirs.wv) - 0.1
    assert (ours.wv.vectors != sptx.Word2Vec(SENTENCES, device="cpu", **{**options, "cbow_mean": 1}).wv.vectors).any()


@pytest.mark.parametrize("options, said", [
    ({"hs": 1}, "set negative=0"), ({"negative": 0}, "negative=5, or hs=1"),
    ({"trim_rule": len}, "min_count"), ({"max_vocab_size": 5}, "max_final_vocab"),
    ({"null_word": 1}, "concatenated"),
])
def test_what_is_not_there_is_said(options, said):
    with pytest.raises(NotImplementedError, match=said):
        sptx.Word2Vec(SENTENCES, **options)


@pytest.mark.parametrize("given, kind, said", [
    ({"sentences": "a text"}, TypeError, "corpus_file="), ({"sentences": ["one", "two"]}, TypeError, "a list of words, not a text"),
    ({"sentences": [[1, 2]]}, TypeError, "a word is a str, not a int"), ({"sentences": [["a", None]]}, TypeError, "not a NoneType"),
    ({"sentences": [["a"]]}, RuntimeError, "no word comes 5 times"),
    ({"sentences": []}, RuntimeError, "first build vocabulary"), ({"corpus_file": "/nowhere"}, OSError, "nowhere"),
    ({"sentences": [], "corpus_file": "x"}, TypeError, "only one"),
])
def test_sentences_that_are_none_are_named(given, kind, said):
    with pytest.raises(kind, match=said):
        sptx.Word2Vec(**given, device="cpu")
    with pytest.raises(RuntimeError, match="first build vocabulary"):
        sptx.Word2Vec(device="cpu").train(SENTENCES, total_examples=1, epochs=1)


@pytest.mark.filterwarnings("ignore:the loss has stayed")
def test_no_file_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = sptx.Word2Vec(SENTENCES[:100], vector_size=4, min_count=1, device="cpu")
    assert len(os.listdir(tmp_path)) == 1
    del model
    assert not os.listdir(tmp_path)


def test_the_middle_of_words_is_predicted(model):
    found = model.predict_output_word(["t0w1", "t0w2", "never-seen"], topn=5)
    assert len(found) == 5 and sum(word.startswith("t0") for word, _ in found) >= 4 and 0 < sum(p for _, p in found) <= 1
    assert model.predict_output_word(["never-seen"]) is None


# ---- vectors by word ----

def test_similar_words_are_gensims(model, theirs):
    wv, (a, b, c, d) = model.wv, model.wv.index_to_key[:4]
    for options in ({"positive": a}, {"positive": [a, b], "negative": [c]}, {"positive": [a], "negative": [c, d], "topn": 3},
                    {"positive": [(a, 2.0), b]}, {"positive": [a], "negative": [(b, -2.0), (c, 0.5)]}, {"positive": wv[a]}, {"positive": [wv[a], b]}, {"positive": [0, 1]},
                    {"positive": a, "restrict_vocab": 10}, {"positive": a, "clip_start": 5, "clip_end": 20}, {"positive": a, "topn": 500}):
        assert near(wv.most_similar(**options), theirs.most_similar(**options))
    assert near(wv.most_similar_cosmul([a, b], [c]), theirs.most_similar_cosmul([a, b], [c]))
    assert near(wv.similar_by_word(a, 3), theirs.similar_by_word(a, 3)) and near(wv.similar_by_vector(wv[b], 3), theirs.similar_by_vector(wv[b], 3))
    assert numpy.allclose(wv.most_similar(a, topn=None), theirs.most_similar(a, topn=None), atol=1e-6)
    for given, kind in (("never-seen", KeyError), ([], ValueError), (None, ValueError)):
        with pytest.raises(kind):
            wv.most_similar(given)
        with pytest.raises(kind):
            wv.most_similar_cosmul(given)


def test_questions_are_gensims(model, theirs):
    wv, (a, b, c, d) = model.wv, model.wv.index_to_key[:4]
    for name, arguments in (("similarity", (a, b)), ("distance", (a, b)), ("distances", (a,)), ("distances", (a, [b, c])),
                            ("n_similarity", ([a, b], [c, d])), ("n_similarity", ([a, "never-seen"], [c])),
                            ("get_vector", (a, True)), ("get_vector", (3,)),
                            ("get_mean_vector", ([a, b, "never-seen"],)), ("cosine_similarities", (wv[a], wv.vectors))):
        assert numpy.allclose(getattr(wv, name)(*arguments), getattr(theirs, name)(*arguments), atol=1e-5), name
    odd = TOPICS[0][:4] + TOPICS[1][:1]
    for name, arguments in (("doesnt_match", (odd,)), ("doesnt_match", (odd + ["never-seen"],)), ("rank", (a, b)), ("closer_than", (a, b)),
                            ("most_similar_to_given", (a, [b, c, d])), ("get_index", (b,)), ("get_index", ("never-seen", 7)),
                            ("has_index_for", ("never-seen",)), ("get_vecattr", (a, "count"))):
        assert getattr(wv, name)(*arguments) == getattr(theirs, name)(*arguments), name
    assert numpy.array_equal(wv[[a, b]], theirs[[a, b]]) and a in wv and "never-seen" not in wv and len(wv) == len(theirs) == 96
    assert wv.key_to_index == theirs.key_to_index and numpy.allclose(wv.get_normed_vectors(), theirs.get_normed_vectors(), atol=1e-6)
    with pytest.raises(KeyError, match="not present"):
        wv["never-seen"]


def test_measures_are_gensims(model, theirs, tmp_path):
    words, draw = model.wv.index_to_key, random.Random(3)
    pairs, questions = tmp_path / "pairs.tsv", tmp_path / "questions.txt"
    pairs.write_text("# a comment\n" + "".join("%s\t%s\t%.2f\n" % (*draw.sample(words, 2), draw.random()) for _ in range(40)) +
                     "never\tseen\t0.5\nT0W1\tt0w2\t3\nno\tscore\tx\n")
    questions.write_text("".join(": part %d\n" % part + "".join(" ".join(draw.sample(words, 4)) + "\n" for _ in range(300)) +
                                 "never seen t0w1 t0w2\n" for part in range(2)))
    for options in ({}, {"dummy4unknown": True}, {"case_insensitive": False}, {"restrict_vocab": 50}):
        ours, wanted = model.wv.evaluate_word_pairs(pairs, **options), theirs.evaluate_word_pairs(str(pairs), **options)
        assert numpy.allclose([*ours[0], ours[2]], [*wanted[0], wanted[2]], atol=1e-5), options
        # Pairs whose cosines differ by less than rounding may change ranks.
        assert numpy.allclose(ours[1], wanted[1], atol=5e-3), options
        ours, wanted = model.wv.evaluate_word_analogies(questions, **options), theirs.evaluate_word_analogies(str(questions), **options)
        assert ours[0] == pytest.approx(wanted[0]) and [part["section"] for part in ours[1]] == [part["section"] for part in wanted[1]]
        for part, other in zip(ours[1], wanted[1]):
            assert sorted(part["correct"]) == sorted(other["correct"]) and sorted(part["incorrect"]) == sorted(other["incorrect"])


@pytest.mark.parametrize("binary", [False, True])
def test_files_are_gensims(model, theirs, tmp_path, binary):
    kind = type(theirs)
    model.wv.save_word2vec_format(tmp_path / "ours", fvocab=tmp_path / "words", binary=binary)
    theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    read = kind.load_word2vec_format(str(tmp_path / "ours"), fvocab=str(tmp_path / "words"), binary=binary)
    assert read.index_to_key == model.wv.index_to_key and numpy.array_equal(read.vectors, model.wv.vectors)
    assert read.get_vecattr("t0w0", "count") == model.wv.get_vecattr("t0w0", "count")
    for name in ("ours", "theirs"):
        back = sptx.KeyedVectors.load_word2vec_format(tmp_path / name, binary=binary)
        assert sorted(back.index_to_key) == sorted(model.wv.index_to_key) and numpy.array_equal(back["t1w1"], model.wv["t1w1"])
    assert len(sptx.KeyedVectors.load_word2vec_format(tmp_path / "ours", binary=binary, limit=7)) == 7
    (tmp_path / "cut").write_bytes((tmp_path / "ours").read_bytes()[:-30])
    with pytest.raises((EOFError, ValueError)):
        sptx.KeyedVectors.load_word2vec_format(tmp_path / "cut", binary=binary)


@pytest.mark.parametrize("binary", [False, True])
def test_options_of_files_are_gensims(model, theirs, tmp_path, binary):
    for method in ("save_word2vec_format", "load_word2vec_format"):
        ours, wanted = (inspect.signature(getattr(kind, method)).parameters for kind in (sptx.KeyedVectors, type(theirs)))
        assert list(ours) == list(wanted)
    for name, wv in (("ours", model.wv), ("theirs", theirs)):
        wv.save_word2vec_format(str(tmp_path / name), binary=binary, total_vec=2 * len(wv), prefix="a_")
        wv.save_word2vec_format(str(tmp_path / name), binary=binary, write_header=False, prefix="b_", append=True)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    both = sptx.KeyedVectors.load_word2vec_format(tmp_path / "ours", binary=binary, datatype=numpy.float16)
    assert len(both) == 2 * len(theirs) and both.vectors.dtype == numpy.float16
    assert numpy.array_equal(both["b_t1w1"], theirs["t1w1"].astype(numpy.float16))


def test_files_without_a_first_line_and_of_other_bytes_are_read_as_gensim_reads_them(theirs, tmp_path):
    kinds = sptx.KeyedVectors, type(theirs)
    (tmp_path / "glove.txt").write_bytes("é 1 2\nb 3 4\nc 5 6\n".encode("latin-1"))
    for options in ({"encoding": "latin-1"}, {"unicode_errors": "ignore"}, {"encoding": "latin-1", "limit": 2}):
        ours, wanted = (kind.load_word2vec_format(str(tmp_path / "glove.txt"), no_header=True, **options) for kind in kinds)
        assert ours.index_to_key == wanted.index_to_key and ours.vectors.tolist() == wanted.vectors.tolist()
        assert ours.get_vecattr("b", "count") == wanted.get_vecattr("b", "count")
    for kind in kinds:
        with pytest.raises(UnicodeDecodeError):
            kind.load_word2vec_format(str(tmp_path / "glove.txt"), no_header=True)
        with pytest.raises(NotImplementedError, match="text-format"):
            kind.load_word2vec_format(str(tmp_path / "glove.txt"), no_header=True, binary=True)
        with pytest.raises(ValueError, match="Cannot store vocabulary"):
            kind(2).save_word2vec_format(str(tmp_path / "x"), fvocab=str(tmp_path / "y"))


@pytest.mark.parametrize("ending, magic", [(".gz", b"\x1f\x8b"), (".bz2", b"BZh")])
def test_packed_files_are_gensims(model, theirs, tmp_path, ending, magic):
    ours, other = str(tmp_path / ("ours.bin" + ending)), str(tmp_path / ("theirs.bin" + ending))
    model.wv.save_word2vec_format(ours, fvocab=str(tmp_path / "words.gz"), binary=True)
    theirs.save_word2vec_format(other, binary=True)
    with open(ours, "rb") as file:
        assert file.read(len(magic)) == magic
    for path, kind in ((ours, type(theirs)), (other, sptx.KeyedVectors), (ours, sptx.KeyedVectors)):
        assert numpy.array_equal(kind.load_word2vec_format(path, binary=True)["t1w1"], model.wv["t1w1"])
    read = sptx.KeyedVectors.load_word2vec_format(ours, fvocab=str(tmp_path / "words.gz"), binary=True)
    assert [read.get_vecattr(word, "count") for word in read] == [model.wv.get_vecattr(word, "count") for word in read]


def test_the_first_of_two_lines_of_a_word_counts(tmp_path):
    (tmp_path / "twice.txt").write_text("3 2\na 1 2\na 3 4\nb 5 6\n")
    wv = sptx.KeyedVectors.load_word2vec_format(tmp_path / "twice.txt")
    assert wv.index_to_key == ["a", "b"] and wv.vectors.tolist() == [[1, 2], [5, 6]]
    assert [word for word, _ in wv.most_similar("a")] == ["b"]


@pytest.mark.filterwarnings("ignore:the loss has stayed")
def test_a_rate_of_0_trains_nothing():
    model = sptx.Word2Vec(SENTENCES, vector_size=4, min_count=1, workers=1, device="cpu", alpha=0, min_alpha=0)
    assert len(model.wv) and not model.syn1neg.any()
    assert 0.9 < abs(model.wv.vectors).max() * 4 <= 1  # gensim's first vectors have twice the width of word2vec's


def test_vectors_are_added():
    wv = sptx.KeyedVectors(3)
    wv.add_vectors(["a", "b"], numpy.eye(3, dtype=numpy.float32)[:2])
    wv.add_vector("c", [0, 0, 2.0])
    wv["a"] = numpy.array([0, 3, 0])
    wv.add_vectors(["b", "d"], numpy.ones((2, 3)))
    assert wv.index_to_key == ["a", "b", "c", "d"] and wv.vectors.tolist() == [[0, 3, 0], [0, 1, 0], [0, 0, 2], [1, 1, 1]]
    assert wv.similarity("a", "b") == 1 and wv.most_similar("a", topn=1)[0][0] == "b" and list(wv) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("given, said", [({"window": 0}, "^window = '0' is not a whole number from 1 to 4,096$"), ({"alpha": -1}, "^alpha = '-1.0'"),
                                         ({"negative": -1}, "^negative = '-1' is not a whole number from 0 to 65,536$"),
                                         ({"vector_size": 0}, "^vector_size = 0, wanted"), ({"min_alpha": -1}, "^min_alpha / alpha = "),
                                         ({"epochs": -1}, "^epochs = '-1' is not"), ({"workers": -1}, "^workers = '-1'")])
def test_errors_name_the_arguments(given, said):
    with pytest.raises(ValueError, match=said):
        sptx.Word2Vec([["a", "b", "c"]] * 9, min_count=1, device="cpu", **given)


def test_warnings_name_the_arguments_and_only_those_of_the_model(tmp_path):
    sentences = [["w%d" % (row * column % 37) for column in range(12)] for row in range(200)]
    with pytest.warns(sptx.SptxWarning, match=r"raise epochs or alpha, or set sample = 0 \(it is 0.001\)"):
        sptx.Word2Vec(sentences, min_count=1, alpha=1e-6, device="cpu")
    with pytest.raises(ValueError, match="settings: examples.window = '0'"):
        sptx.fit(sentences, str(tmp_path / "run"), keys={"examples.window": 0}, device="cpu")
