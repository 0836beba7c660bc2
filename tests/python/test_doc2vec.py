"""sptx.Doc2Vec beside gensim's, and Run.infer()."""

import inspect
import random
import warnings

import numpy
import pytest

import sptx
import sptx.gensim as gensim

DRAW = random.Random(1)
TOPICS = [["t%dw%d" % (topic, word) for word in range(12)] for topic in range(8)]
DOCUMENTS = [sptx.TaggedDocument(DRAW.choices(TOPICS[i % 8], k=20), ["d%d" % i]) for i in range(240)]
OPTIONS = {"vector_size": 20, "window": 3, "min_count": 1, "workers": 1, "sample": 0, "epochs": 20, "device": "cpu"}
KINDS = {"dm": {"dm": 1}, "sums": {"dm": 1, "dm_mean": 0}, "dbow": {"dm": 0}, "words": {"dm": 0, "dbow_words": 1},
         "hs": {"dm": 0, "hs": 1, "negative": 0}}


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return sptx.Doc2Vec(DOCUMENTS, **KINDS[request.param], **OPTIONS)


def topics(found):
    return {int(tag[1:]) % 8 for tag, _ in found}


def test_names_and_defaults_are_gensims():
    theirs = pytest.importorskip("gensim.models.doc2vec")
    ours, wanted = (inspect.signature(kind.__init__).parameters for kind in (sptx.Doc2Vec, theirs.Doc2Vec))
    assert [name for name in ours if name != "others"] == [name for name in wanted if name != "kwargs"]
    assert not {name for name in wanted if name != "kwargs" and ours[name].default != wanted[name].default}
    assert theirs.TaggedDocument._fields == sptx.TaggedDocument._fields
    missing = {name for name in dir(theirs.Doc2Vec) if not name.startswith("_")} - set(dir(sptx.Doc2Vec))
    assert not missing, "gensim has names that nobody has thought of"
    assert gensim.models.Doc2Vec is gensim.models.doc2vec.Doc2Vec is sptx.Doc2Vec


def test_a_document_finds_those_of_its_topic(model):
    assert topics(model.dv.most_similar("d3", topn=8)) == {3}
    assert len(model.dv) == 240 and (model["d3"] == model.dv["d3"]).all()
    if model.dm or model.dbow_words:
        assert {word[:2] for word, _ in model.wv.most_similar("t5w0", topn=5)} == {"t5"}


def test_a_new_document_is_inferred(model):
    vector = model.infer_vector(TOPICS[6] + ["unheard"])
    assert vector.dtype == numpy.float32 and vector.shape == (20,)
    assert topics(model.dv.most_similar([vector], topn=8)) == {6}
    assert model.infer_vector(TOPICS[6]).tobytes() == vector.tobytes()
    assert model.infer_vector(TOPICS[6], epochs=3).tobytes() != vector.tobytes()
    assert model.similarity_unseen_docs(TOPICS[6], TOPICS[6][:6]) > model.similarity_unseen_docs(TOPICS[6], TOPICS[1])
    with pytest.warns(sptx.SptxWarning, match="have no word of the vocabulary; their rows are zeros"):
        assert not model.infer_vector(["unheard"]).any()
    with pytest.raises(TypeError, match="must be a list of strings"):
        model.infer_vector("words")


def test_a_saved_model_goes_on(model, tmp_path):
    model.save(tmp_path / "model")
    again = sptx.Doc2Vec.load(tmp_path / "model")
    assert again.dv.vectors.tobytes() == model.dv.vectors.tobytes()
    assert again.infer_vector(TOPICS[2]).tobytes() == model.infer_vector(TOPICS[2]).tobytes()
    again.train(DOCUMENTS, total_examples=again.corpus_count, epochs=2)
    assert again.dv.vectors.tobytes() != model.dv.vectors.tobytes() and topics(again.dv.most_similar("d3", topn=8)) == {3}


def test_tags_are_numbers_or_several(tmp_path):
    numbered = sptx.Doc2Vec([sptx.TaggedDocument(one.words, [i]) for i, one in enumerate(DOCUMENTS)], dm=0, **OPTIONS)
    assert {tag % 8 for tag, _ in numbered.dv.most_similar(3, topn=8)} == {3}
    both = sptx.Doc2Vec([sptx.TaggedDocument(one.words, ["topic%d" % (i % 8), i]) for i, one in enumerate(DOCUMENTS)], dm=0, **OPTIONS)
    assert {tag for tag, _ in both.dv.most_similar("topic5", topn=10)} <= set(range(5, 240, 8)) and len(both.dv) == 248
    path = tmp_path / "documents.txt"
    path.write_text("".join(" ".join(one.words) + "\n" for one in DOCUMENTS))
    filed = sptx.Doc2Vec(corpus_file=path, dm=0, **OPTIONS)
    assert filed.dv.vectors.tobytes() == numbered.dv.vectors.tobytes()


@pytest.mark.filterwarnings("ignore:the vectors of random pairs", "ignore:the loss has stayed")
def test_integer_tags_are_the_numbers_of_rows(tmp_path):
    """As in gensim, whose users pass dv.vectors to a classifier, with labels by row."""
    order = random.Random(2).sample(range(240), 240)
    model = sptx.Doc2Vec([sptx.TaggedDocument(DOCUMENTS[i].words, [i]) for i in order], dm=0, **OPTIONS)
    assert all((model.dv.vectors[i] == model.dv[i]).all() for i in range(240)) and model.dv.index_to_key == list(range(240))
    assert {tag % 8 for tag, _ in model.dv.most_similar(model.dv.vectors[13], topn=8)} == {13 % 8}
    some = sptx.Doc2Vec([sptx.TaggedDocument(DOCUMENTS[i].words, [numpy.int64(i), "t%d" % i]) for i in (5, 3, 9)], dm=0, **OPTIONS)
    assert len(some.dv) == 13 and 0 in some.dv and 9 in some.dv and "t5" in some.dv and 13 not in some.dv and "5" not in some.dv
    assert some.dv.index_to_key[9:] == [9, "t5", "t3", "t9"] and (some.dv["t3"] == some.dv.vectors[11]).all()
    first, text = some.dv.vectors[:10].copy(), some.dv["t3"].copy()
    some.build_vocab([sptx.TaggedDocument(TOPICS[0], [11, "new"])], update=True)
    assert len(some.dv) == 16 and (some.dv.vectors[:10] == first).all() and (some.dv["t3"] == text).all() and some.dv.index_to_key[-1] == "new"
    some.train([sptx.TaggedDocument(TOPICS[0], [11])], total_examples=1, epochs=2)
    assert (some.dv.vectors[:10] == first).all() and (some.dv["t3"] == text).all()
    some.save_word2vec_format(tmp_path / "documents.txt", doctag_vec=True, word_vec=False)
    read = sptx.KeyedVectors.load_word2vec_format(tmp_path / "documents.txt")
    assert read.index_to_key == ["*dt_%s" % tag for tag in some.dv.index_to_key] and numpy.allclose(read.vectors, some.dv.vectors)
    some.save_word2vec_format(tmp_path / "both.bin", doctag_vec=True, binary=True)
    assert len(sptx.KeyedVectors.load_word2vec_format(tmp_path / "both.bin", binary=True)) == len(some.wv) + len(some.dv)
    some.dv.save_word2vec_format(tmp_path / "own.txt")
    assert len((tmp_path / "own.txt").read_text().splitlines()) == 17
    with pytest.warns(sptx.SptxWarning, match="the highest tag is 5000, and there are 1 documents"):
        assert len(sptx.Doc2Vec([sptx.TaggedDocument(TOPICS[0] * 9, [5000])], dm=0, **OPTIONS).dv) == 5001


def test_gensims_tutorial_of_lees_documents():
    """As in gensim's run_doc2vec_lee.py: the vector inferred for a document is nearly always nearest to the document's own."""
    utils = pytest.importorskip("gensim.utils")
    with open(pytest.importorskip("gensim.test.utils").datapath("lee_background.cor"), encoding="iso-8859-1") as lines:
        train = [gensim.models.doc2vec.TaggedDocument(utils.simple_preprocess(line), [i]) for i, line in enumerate(lines)]
    model = gensim.models.doc2vec.Doc2Vec(vector_size=50, min_count=2, epochs=40, device="cpu")
    model.build_vocab(train)
    model.train(train, total_examples=model.corpus_count, epochs=model.epochs)
    vectors = [model.infer_vector(document.words) for document in train[::6]]
    ranks = [[tag for tag, _ in model.dv.most_similar([vector], topn=len(model.dv))].index(6 * i) for i, vector in enumerate(vectors)]
    assert ranks.count(0) > 0.9 * len(ranks)


def test_documents_are_counted_first_and_trained_later():
    model = sptx.Doc2Vec(dm=0, **OPTIONS)
    with pytest.raises(RuntimeError, match="build vocabulary"):
        model.train(DOCUMENTS, total_examples=1, epochs=1)
    model.build_vocab(DOCUMENTS)
    assert len(model.dv) == 240 and model.dv.vectors.any()
    with pytest.raises(RuntimeError, match="train"):
        model.infer_vector(TOPICS[0])
    model.train(DOCUMENTS, total_examples=model.corpus_count, epochs=20)
    assert topics(model.dv.most_similar("d3", topn=8)) == {3}


@pytest.mark.parametrize("dm", [0, 1])
def test_documents_that_a_call_leaves_out_keep_their_vectors(dm):
    model = sptx.Doc2Vec(DOCUMENTS[:200], dm=dm, **OPTIONS)
    first = model.dv.vectors.copy()
    new = [sptx.TaggedDocument(TOPICS[1], ["new"])]
    with pytest.raises(ValueError, match="the tag 'new' is not in the vocabulary"):
        model.train(new, total_examples=1, epochs=1)
    model.build_vocab(new, update=True)
    assert len(model.dv) == 201 and (model.dv.vectors[:200] == first).all()
    model.train(new, total_examples=1, epochs=5)
    assert (model.dv.vectors[:200] == first).all()
    model.train(DOCUMENTS[:200], total_examples=200, epochs=1, start_alpha=1e-9, end_alpha=1e-9)
    assert numpy.abs(model.dv.vectors[:200] - first).max() < 1e-6


@pytest.mark.parametrize("given, error, sentence", [
    ({"dm_concat": 1}, NotImplementedError, "dm_concat=1 is not there"),
    ({"dv_mapfile": "x"}, NotImplementedError, "dv and dv_mapfile are not there"),
    ({"documents": [["a", "b"]]}, TypeError, "a document has words and tags"),
    ({"documents": [sptx.TaggedDocument(["a"], "x")]}, TypeError, "tags are a list, not a str: wanted tags=..x"),
    ({"documents": [sptx.TaggedDocument(["a"], 7)]}, TypeError, r"tags are a list, not a int: wanted tags=.7."),
    ({"documents": [sptx.TaggedDocument(["a"], [])]}, ValueError, "a document has no tag"),
    ({"documents": [sptx.TaggedDocument(["a"], [-1])]}, ValueError, "the tag -1 is negative"),
    ({"documents": [sptx.TaggedDocument(["a"], [1 << 40])]}, ValueError, "str.tag. makes it a name"),
])
def test_what_is_refused(given, error, sentence):
    with pytest.raises(error, match=sentence):
        sptx.Doc2Vec(**{**OPTIONS, **given})


@pytest.mark.parametrize("kind", ["dm", "sums", "words"])
def test_several_tags_beside_words(kind):
    documents = [sptx.TaggedDocument(one.words, [*one.tags, "topic%d" % (i % 8)]) for i, one in enumerate(DOCUMENTS)]
    with pytest.warns(sptx.SptxWarning, match="trained once for each of its tags"):
        model = sptx.Doc2Vec(documents, **KINDS[kind], **OPTIONS)
    assert len(model.dv) == 248 and model.corpus_count == 240 and model.wv.get_vecattr("t5w0", "count") == sum(
        one.words.count("t5w0") for one in DOCUMENTS)
    assert {int(tag[-1]) if tag.startswith("topic") else int(tag[1:]) % 8 for tag, _ in model.dv.most_similar("topic3", topn=9)} == {3}
    near = [model.dv.most_similar("d%d" % i, topn=1)[0][0] for i in range(8)]
    assert all((int(tag[-1]) if tag.startswith("topic") else int(tag[1:])) % 8 == i for i, tag in enumerate(near))


def test_a_run_infers_several_documents_as_it_does_one(tmp_path):
    (tmp_path / "corpus.txt").write_text("".join("%s %s\n" % (one.tags[0], " ".join(one.words)) for one in DOCUMENTS))
    keys = {"corpus.format": "documents", "corpus.min_count": 1, "model.dim": 16, "examples.subsample": 0, "optimizer.lr": 0.1}
    with sptx.fit({one.tags[0]: one.words for one in DOCUMENTS}, str(tmp_path / "given"), format="documents", keys={**keys, "train.update": "batch", "train.batch": 64},
                  device="cpu") as given, sptx.fit(str(tmp_path / "corpus.txt"), str(tmp_path / "read"), keys={**keys, "train.update": "batch", "train.batch": 64},
                                                   device="cpu") as read:
        assert given.target[:].tobytes() == read.target[:].tobytes()
    with sptx.fit(str(tmp_path / "corpus.txt"), str(tmp_path / "run"), format="documents", keys=keys, device="cpu") as run:
        with pytest.warns(sptx.SptxWarning, match="1 of 3 documents have no word of the vocabulary"):
            rows = run.infer(documents=[TOPICS[0], ["unheard"], TOPICS[1]])
        assert rows.shape == (3, 16) and rows[0].tobytes() == run.infer(TOPICS[0]).tobytes() and not rows[1].any()
        assert rows[2].tobytes() == run.infer(TOPICS[1]).tobytes() != run.infer(TOPICS[1], epochs=2).tobytes()
        assert {int(name[len("list:d"):]) % 8 for name, _ in run.nearest(rows[2], 8, lists=True)} == {1}
        for wrong in ({"lr": -1}, {"lr": 0.1, "min_lr": 0.2}, {"epochs": -1}):
            with pytest.raises(ValueError):
                run.infer(TOPICS[0], **wrong)
        with pytest.raises(TypeError):
            run.infer("t0w1")
    with sptx.fit([one.words for one in DOCUMENTS], str(tmp_path / "text"), keys={"corpus.min_count": 1, "model.dim": 16}, device="cpu") as run:
        with pytest.raises(sptx.Error, match="was not trained on documents"):
            run.infer(TOPICS[0])


def test_words_that_training_leaves_alone_say_so(model):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for vectors, one, other in ((model.wv, "t0w1", "t0w2"), (model.dv, "d1", "d2")):
            vectors.most_similar(one)
            vectors.most_similar_cosmul(one)
            vectors.similarity(one, other)
    assert ["dbow_words=1" in str(one.message) for one in said] == ([] if model.dm or model.dbow_words else [True] * 3)


def test_a_run_says_what_to_write_for_a_document_and_where_cosines_do_not_fit(tmp_path):
    documents = [one.words for one in DOCUMENTS]
    names = ["d%d" % number for number in range(len(documents))]
    path = tmp_path / "documents.txt"
    path.write_text("".join("%s\t%s\n" % (name, " ".join(words)) for name, words in zip(names, documents)))
    keys = {"corpus.min_count": 1, "model.dim": 8, "examples.subsample": 0, "train.epochs": 3}
    with sptx.fit(str(path), str(tmp_path / "run"), format="documents", keys=keys, device="cpu") as run:
        word = run.words[0]
        for lists in (False, True):
            with pytest.raises(KeyError, match="but a list: 'list:d1'"):
                run.nearest("d1", lists=lists)
        for name, lists, crosses in ((word, True, True), ("list:d1", False, True), (word, False, False), ("list:d1", True, False)):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                run.nearest(name, lists=lists, metric="cosine")
                run.nearest(name, lists=lists, metric="dot")
            assert ["are trained by their dot product" in str(one.message) for one in said] == [True] * crosses
        vectors = run.vectors([word, "list:d1"])
        for asked, lists, crosses in ((vectors[1], False, True), (vectors[1], True, False)):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                run.nearest(asked, lists=lists, metric="cosine")
                run.nearest(asked, lists=lists, metric="dot")
                run.most_similar(word)
            assert ["a vector that may be of a document is compared with words" in str(one.message) for one in said] == [True] * crosses
