"""Every public name of gensim 4.4's word-vector classes either works here or raises an error that says what to do instead."""

import bz2
import math
import random

import numpy
import pytest

import sptx
import sptx.gensim as gensim

draw = random.Random(3)
SENTENCES = [[draw.choice("abcdefgh") + draw.choice("xyz") for _ in range(12)] for _ in range(400)]
CLASSES = {"Word2Vec": sptx.Word2Vec, "FastText": sptx.FastText, "KeyedVectors": sptx.KeyedVectors,
           "FastTextKeyedVectors": sptx.FastTextKeyedVectors}
# {class: {method that raises NotImplementedError: arguments to call it with}}
REFUSED = {
    "Word2Vec": {"add_null_word": (), "create_binary_tree": (), "init_weights": (), "make_cum_table": (), "prepare_vocab": (),
                 "prepare_weights": (), "reset_from": (None,), "scan_vocab": ([],), "score": ([],), "update_weights": ()},
    "FastText": {"load_binary_data": (), "load_fasttext_format": ("x.bin",)},
    "KeyedVectors": {"resize_vectors": (), "similarity_unseen_docs": ([], [])},
    "FastTextKeyedVectors": {"adjust_vectors": (), "init_post_load": (None,), "recalc_char_ngram_buckets": ()},
}
OLD = ["index2word", "index2entity", "vocab", "vectors_norm"]
SERVED = {
    "Word2Vec": "add_lifecycle_event build_vocab build_vocab_from_freq estimate_memory get_latest_training_loss init_sims load "
                "predict_output_word save seeded_vector train",
    "KeyedVectors": "add_lifecycle_event add_vector add_vectors allocate_vecattrs closer_than cosine_similarities distance distances "
                    "doesnt_match evaluate_word_analogies evaluate_word_pairs fill_norms get_index get_mean_vector get_normed_vectors "
                    "get_vecattr get_vector has_index_for init_sims intersect_word2vec_format load load_word2vec_format log_accuracy "
                    "log_evaluate_word_pairs most_similar most_similar_cosmul most_similar_to_given n_similarity rank "
                    "rank_by_centrality relative_cosine_similarity save save_word2vec_format set_vecattr similar_by_key "
                    "similar_by_vector similar_by_word similarity sort_by_descending_frequency unit_normalize_all vectors_for_all "
                    "wmdistance word_vec words_closer_than",
}
SERVED["FastText"], SERVED["FastTextKeyedVectors"] = SERVED["Word2Vec"], SERVED["KeyedVectors"] + " get_sentence_vector"


@pytest.fixture(scope="module")
def models():
    options = dict(vector_size=8, min_count=1, workers=1, device="cpu")
    words, grams = sptx.Word2Vec(SENTENCES, **options), sptx.FastText(SENTENCES, bucket=100, **options)
    return {"Word2Vec": words, "FastText": grams, "KeyedVectors": words.wv, "FastTextKeyedVectors": grams.wv}


@pytest.fixture
def wv(models):
    return models["KeyedVectors"]


@pytest.mark.parametrize("name", CLASSES)
def test_each_public_name_is_there_or_refused_by_a_sentence(models, name):
    model, base = models[name], {"FastText": "Word2Vec", "FastTextKeyedVectors": "KeyedVectors"}.get(name, name)
    refused = {**REFUSED[base], **REFUSED[name]}
    for method in SERVED[name].split():
        assert callable(getattr(model, method)), method
    for method, arguments in refused.items():
        with pytest.raises(NotImplementedError, match=r"is (not there|gone)|serves"):
            getattr(model, method)(*arguments)
    for old in OLD if base == "KeyedVectors" else []:
        with pytest.raises(AttributeError, match="before 4.0: take"):
            getattr(model, old)
    theirs = pytest.importorskip("gensim.models.fasttext" if "FastText" in name else "gensim.models")
    public = {one for one in dir(getattr(theirs, name)) if not one.startswith("_")}
    assert public <= {*SERVED[name].split(), *refused, *OLD}, "gensim has names that nobody has thought of"


def test_the_attributes_of_a_model(models):
    for model in (models["Word2Vec"], models["FastText"]):
        for name in ("batch_words", "random", "compute_loss", "running_training_loss", "min_alpha_yet_reached", "max_vocab_size",
                     "sorted_vocab", "null_word", "cum_table", "hashfxn", "effective_min_count", "lifecycle_events"):
            getattr(model, name)
        assert model.wv.next_index == len(model.wv) and model.wv.mapfile_path is None
        model.wv.vectors_lockf = numpy.ones(len(model.wv))
        with pytest.raises(NotImplementedError, match="every word is trained"):
            model.wv.vectors_lockf = numpy.zeros(1)
    assert [set(one) <= set(range(100)) for one in models["FastText"].wv.buckets_word] == [True] * len(models["FastText"].wv)


def test_answers_are_gensims(wv):
    theirs = pytest.importorskip("gensim.models").KeyedVectors(8)
    theirs.add_vectors(wv.index_to_key, wv.vectors)
    a, b, c, d = wv.index_to_key[:4]
    assert wv.relative_cosine_similarity(a, b, 5) == pytest.approx(theirs.relative_cosine_similarity(a, b, 5), rel=1e-5)
    ours, others = wv.rank_by_centrality([a, b, c, "never"]), theirs.rank_by_centrality([a, b, c, "never"])
    assert [word for _, word in ours] == [word for _, word in others]
    assert numpy.allclose([value for value, _ in ours], [value for value, _ in others], atol=1e-6)
    assert wv.words_closer_than(a, b) == theirs.closer_than(a, b)
    part, of_theirs = wv.vectors_for_all([c, a, "never", c]), theirs.vectors_for_all([c, a, "never", c])
    assert part.index_to_key == of_theirs.index_to_key == [c, a] and numpy.array_equal(part.vectors, of_theirs.vectors)

    class Index:
        def most_similar(self, vector, topn):
            return [(topn, round(float(numpy.linalg.norm(vector)), 5))]
    assert wv.most_similar(a, topn=3, indexer=Index()) == theirs.most_similar(a, topn=3, indexer=Index()) == [(3, 1.0)]


def test_words_are_moved(wv):
    """The distance of two documents of one word each is that of their words. The distance of a document to itself is 0."""
    pytest.importorskip("scipy")
    a, b, c = wv.index_to_key[:3]
    unit = {word: wv.get_vector(word, norm=True).astype(float) for word in (a, b, c)}
    apart = {pair: numpy.linalg.norm(unit[pair[0]] - unit[pair[1]]) for pair in ((a, b), (a, c), (b, c))}
    assert wv.wmdistance([a], [b]) == pytest.approx(apart[a, b], abs=1e-6) and wv.wmdistance([a, b], [b, a, "never"]) == 0
    assert wv.wmdistance([a, a, b], [c]) == pytest.approx((2 * apart[a, c] + apart[b, c]) / 3, abs=1e-6)
    assert wv.wmdistance([a], ["never"]) == math.inf
    assert wv.wmdistance([a], [b], norm=False) == pytest.approx(numpy.linalg.norm(wv[a] - wv[b]), abs=1e-6)


def test_rows_are_sorted_by_counts():
    wv = sptx.KeyedVectors(2)
    wv.add_vectors(["rare", "often"], [[1, 2], [3, 4]], extras={"count": [1, 9]})
    assert wv.add_vector("some", [5, 6]) == 2
    wv.set_vecattr("some", "count", 5)
    wv.sort_by_descending_frequency()
    assert wv.index_to_key == ["often", "some", "rare"] and wv["some"].tolist() == [5, 6] and wv.get_vecattr("rare", "count") == 1
    with pytest.raises(KeyError, match="have no counts"):
        sptx.KeyedVectors(2).sort_by_descending_frequency()


def test_counts_that_are_known_make_a_vocabulary():
    model = sptx.Word2Vec(vector_size=4, min_count=2, sample=0, device="cpu")
    model.build_vocab_from_freq({"b": 3, "a": 7, "rare": 1}, corpus_count=5)
    assert model.wv.index_to_key == ["a", "b"] and model.wv.get_vecattr("a", "count") == 7 and model.corpus_count == 5
    assert model.estimate_memory()["vectors"] == 2 * 4 * 4 and model.estimate_memory(10)["total"] == 10 * (500 + 2 * 16)
    before = model.wv.vectors.copy()
    model.train([["a", "b", "rare"]] * 50, total_examples=50, epochs=2)
    assert not numpy.array_equal(model.wv.vectors, before) and list(model.wv.key_to_index) == ["a", "b"]


def test_a_loss_is_told():
    model = sptx.Word2Vec(SENTENCES, vector_size=8, min_count=1, compute_loss=True, device="cpu")
    first = model.get_latest_training_loss()
    model.train(SENTENCES, total_examples=len(SENTENCES), epochs=1, compute_loss=True)
    assert first > model.get_latest_training_loss() > 0
    model.train(SENTENCES, total_examples=len(SENTENCES), epochs=1)
    assert model.get_latest_training_loss() == 0


def test_a_script_of_gensims_changes_its_import_alone(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("".join(" ".join(sentence) + "\n" for sentence in SENTENCES))
    model = gensim.models.Word2Vec(gensim.models.word2vec.LineSentence(path), vector_size=8, min_count=1, workers=1, device="cpu")
    model.wv.save_word2vec_format(tmp_path / "v.bin", binary=True)
    found = gensim.models.KeyedVectors.load_word2vec_format(tmp_path / "v.bin", binary=True)
    assert found.index_to_key == model.wv.index_to_key and numpy.array_equal(found.vectors, model.wv.vectors)
    from sptx.gensim.models import FastText, KeyedVectors, Word2Vec
    assert (FastText, KeyedVectors, Word2Vec) == (sptx.FastText, sptx.KeyedVectors, sptx.Word2Vec)
    for wrong in (lambda: gensim.downloader, lambda: gensim.models.LdaModel):
        with pytest.raises(AttributeError, match="sptx.gensim.* has no "):
            wrong()


def test_sentences_of_files(tmp_path):
    from sptx.gensim.models.word2vec import LineSentence, PathLineSentences, Text8Corpus

    (tmp_path / "b.txt").write_text("one two three four five\n\nsix é\n")
    (tmp_path / "a.txt.bz2").write_bytes(bz2.compress(b"zero\n"))
    lines = LineSentence(tmp_path / "b.txt", max_sentence_length=3)
    assert list(lines) == list(lines) == [["one", "two", "three"], ["four", "five"], ["six", "é"]]
    assert list(LineSentence(tmp_path / "b.txt", limit=1)) == [["one", "two", "three", "four", "five"]]
    assert list(PathLineSentences(tmp_path))[:2] == [["zero"], ["one", "two", "three", "four", "five"]]
    assert list(Text8Corpus(tmp_path / "b.txt", 4)) == [["one", "two", "three", "four"], ["five", "six", "é"]]
    with pytest.raises(ValueError, match="neither a file nor a folder"):
        PathLineSentences(tmp_path / "none")


def test_a_model_of_fasttexts_own_file(models, tmp_path):
    from sptx.gensim.models.fasttext import load_facebook_model, load_facebook_vectors, save_facebook_model

    model, path = models["FastText"], tmp_path / "model.bin"
    save_facebook_model(model, path)
    wv = load_facebook_vectors(path)
    assert wv.index_to_key == model.wv.index_to_key and wv.get_vecattr(wv.index_to_key[0], "count") > 0
    assert numpy.allclose(wv.vectors, model.wv.vectors, atol=1e-6) and numpy.array_equal(wv.vectors_ngrams, model.wv.vectors_ngrams)
    assert numpy.allclose(wv["neverseen"], model.wv["neverseen"], atol=1e-6)
    loaded = load_facebook_model(path)
    assert loaded.wv.index_to_key == wv.index_to_key and (loaded.vector_size, loaded.min_n, loaded.bucket) == (8, 3, 100)
    with pytest.raises(NotImplementedError, match="train.from"):
        loaded.train(SENTENCES)
    save_facebook_model(loaded, tmp_path / "copy.bin")
    assert (tmp_path / "copy.bin").read_bytes() == path.read_bytes()
    theirs = pytest.importorskip("gensim.models.fasttext").load_facebook_vectors(str(path))
    assert numpy.allclose(theirs["neverseen"], wv["neverseen"], atol=1e-6)
