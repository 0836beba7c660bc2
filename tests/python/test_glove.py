"""Tests sptx.GloVe with sentences, files and matrices of counts."""
import random

import numpy
import pytest

import sptx

scipy = pytest.importorskip("scipy")
pytest.importorskip("scipy.sparse")

OPTIONS = {"vector_size": 16, "window": 4, "min_count": 1, "epochs": 30, "device": "cpu", "workers": 1}


def sentences():
    """Sentences of ten topics, in which every fifth word is of any topic."""
    draw = random.Random(1)
    return [["t%dw%d" % (draw.randrange(10) if draw.random() < 0.2 else line % 10, draw.randrange(10)) for _ in range(12)] for line in range(1500)]


def counted(texts, window):
    """Returns the words of the texts and the matrix of their counts, computed in the simplest way."""
    words = sorted({word for text in texts for word in text})
    rows = {word: row for row, word in enumerate(words)}
    counts = numpy.zeros((len(words), len(words)))
    for text in texts:
        for i, word in enumerate(text):
            for d in range(1, min(i, window) + 1):
                counts[rows[word], rows[text[i - d]]] += 1 / d
                counts[rows[text[i - d]], rows[word]] += 1 / d
    return words, counts


@pytest.fixture(scope="module")
def model():
    return sptx.GloVe(sentences(), **OPTIONS)


def test_words_of_a_topic_are_near_each_other(model):
    near = [word[:3] == "t%dw" % topic for topic in range(10) for word, _ in model.wv.most_similar("t%dw1" % topic, topn=5)]
    assert sum(near) > 0.9 * len(near)
    assert model.wv.vectors.shape == model.word_vectors.shape == model.context_vectors.shape == (100, 16)
    assert numpy.array_equal(model.wv.vectors, model.word_vectors + model.context_vectors)
    assert model.wv.get_vecattr("t0w1", "count") == sum(text.count("t0w1") for text in sentences())


def test_the_model_fits_the_logarithms_of_counts(model):
    words, counts = counted(sentences(), 4)
    fits = [model.score(words[a], words[b]) - numpy.log(counts[a, b]) for a, b in zip(*counts.nonzero()) if counts[a, b] >= 1]
    assert numpy.sqrt(numpy.mean(numpy.square(fits))) < 0.5


def test_a_file_and_counts_give_what_sentences_give(model, tmp_path):
    (tmp_path / "text.txt").write_text("".join(" ".join(text) + "\n" for text in sentences()))
    filed = sptx.GloVe(str(tmp_path / "text.txt"), **OPTIONS)
    assert filed.wv.index_to_key == model.wv.index_to_key and numpy.array_equal(filed.wv.vectors, model.wv.vectors)
    words, counts = counted(sentences(), 4)
    of_counts = sptx.GloVe(counts=scipy.sparse.csr_matrix(counts), words=words, **OPTIONS)
    assert of_counts.wv.index_to_key == words
    near = [word[:3] == "t%dw" % topic for topic in range(10) for word, _ in of_counts.wv.most_similar("t%dw1" % topic, topn=5)]
    assert sum(near) > 0.9 * len(near)
    dense = sptx.GloVe(counts=counts, **OPTIONS)
    assert dense.wv.index_to_key == [str(row) for row in range(100)]


def test_a_model_is_saved_and_begins_another(model, tmp_path):
    model.save(tmp_path / "model")
    again = sptx.GloVe.load(tmp_path / "model")
    assert numpy.array_equal(again.wv.vectors, model.wv.vectors) and numpy.array_equal(again.word_biases, model.word_biases)
    model.wv.save_word2vec_format(tmp_path / "vectors.bin", binary=True)
    begun = sptx.GloVe(sentences(), begin=tmp_path / "vectors.bin", **{**OPTIONS, "epochs": 1, "learning_rate": 0.001})
    assert numpy.abs(begun.word_vectors - model.wv.vectors).max() < 0.1
    assert repr(model) == "GloVe<vocab=100, vector_size=16, window=4>"
    with pytest.raises(TypeError, match="holds a GloVe, not a Word2Vec of sptx"):
        sptx.Word2Vec.load(tmp_path / "model")


@pytest.mark.parametrize("arguments, sentence", [
    ({}, "takes a corpus or counts"),
    ({"corpus": [["a"]], "counts": numpy.ones((3, 3))}, "takes a corpus or counts"),
    ({"corpus": [["a"]], "words": ["a"]}, "words are the names of the rows of counts"),
    ({"counts": numpy.ones((3, 4))}, "a square matrix, words x words, and not of shape"),
    ({"counts": [1, 2]}, "a square matrix, words x words, and not a list"),
    ({"counts": numpy.ones((3, 3)), "words": ["a"]}, "counts have 3 rows, and 1 words were given"),
    ({"corpus": [["a", "b"]], "x_max": -1}, "^x_max = "),
])
def test_what_has_no_meaning_is_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        sptx.GloVe(**{**OPTIONS, **arguments})


def test_errors_name_the_arguments():
    sentences = [["a", "b", "c"]] * 9
    for given, said in (({"window": 0}, "^window = '0'"), ({"x_max": -1}, "^x_max = '-1'"), ({"learning_rate": 0}, "^learning_rate = 0, wanted"),
                        ({"min_count": 99}, r"\(min_count\).*; lower min_count$")):
        with pytest.raises((ValueError, sptx.Error), match=said):
            sptx.GloVe(sentences, vector_size=8, device="cpu", **{"min_count": 1, **given})
