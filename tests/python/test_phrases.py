"""Phrases and FrozenPhrases give the same answers as gensim's."""

import random

import pytest

import sptx
from sptx.gensim.models.phrases import ENGLISH_CONNECTOR_WORDS, Phraser, npmi_scorer

draw = random.Random(5)
WORDS = [f"w{i}" for i in range(40)] + ["of", "the", "new", "york", "new_york", "a_b"]
SENTENCES = [" ".join(draw.choice(["new york", "bank of america", "end of the world", "a b c"]) if draw.random() < .3 else draw.choice(WORDS)
                      for _ in range(draw.randrange(15))).split() for _ in range(500)]


@pytest.mark.parametrize("options", [{}, {"min_count": 1, "threshold": 1}, {"scoring": "npmi", "threshold": .2},
                                     {"connector_words": ENGLISH_CONNECTOR_WORDS, "threshold": 2}, {"delimiter": "::", "threshold": 3}])
def test_all_is_as_gensims(options, tmp_path):
    theirs = pytest.importorskip("gensim.models.phrases")
    ours, other = sptx.Phrases(SENTENCES, **options), theirs.Phrases(SENTENCES, **options)
    assert ours.vocab == other.vocab and ours.corpus_word_count == other.corpus_word_count
    assert list(ours[SENTENCES]) == list(other[SENTENCES])
    assert ours.export_phrases() == pytest.approx(other.export_phrases())
    assert ours.find_phrases(SENTENCES) == pytest.approx(other.find_phrases(SENTENCES))
    frozen = ours.freeze()
    assert list(frozen[SENTENCES]) == list(other.freeze()[SENTENCES]) and isinstance(frozen, Phraser)
    frozen.save(tmp_path / "frozen")
    assert sptx.FrozenPhrases.load(tmp_path / "frozen").phrasegrams == frozen.phrasegrams
    ours.add_vocab(SENTENCES[:50]), other.add_vocab(SENTENCES[:50])
    assert ours.vocab == other.vocab


def test_one_sentence_many_and_an_iterator():
    phrases = sptx.Phrases(SENTENCES, threshold=1)
    assert phrases[["in", "new", "york"]] == ["in", "new_york"] and phrases[[]] == []
    assert phrases[iter(["new", "york"])] == ["new_york"]
    many = phrases[SENTENCES]
    assert list(many) == list(many) == list(phrases[iter(SENTENCES)])
    model = sptx.Word2Vec(many, vector_size=8, min_count=5, workers=1, device="cpu")
    assert "new_york" in model.wv


def length(worda_count, wordb_count, bigram_count, len_vocab, min_count, corpus_word_count):
    return bigram_count


def test_scorers_of_the_user_and_what_is_refused(tmp_path):
    phrases = sptx.Phrases(SENTENCES, scoring=length, threshold=20)
    assert set(phrases.export_phrases().values()) == {count for name, count in phrases.vocab.items() if "_" in name and count > 20}
    with pytest.raises(ValueError, match="lacks the parameters min_count"):
        sptx.Phrases(scoring=lambda worda_count, wordb_count, bigram_count, len_vocab, corpus_word_count: 0)
    for wrong in ({"min_count": 0}, {"threshold": 0}, {"threshold": 2, "scoring": "npmi"}, {"scoring": "pmi"}):
        with pytest.raises(ValueError, match="wants|wanted"):
            sptx.Phrases(**wrong)
    with pytest.raises(TypeError, match="not a text"):
        sptx.Phrases(["new york"])
    assert npmi_scorer(1, 1, 0, 1, 1, 1) == float("-inf")
    assert str(phrases).startswith("Phrases<") and str(phrases.freeze()).startswith("FrozenPhrases<")
    phrases.save(tmp_path / "phrases")
    assert sptx.Phrases.load(tmp_path / "phrases").vocab == phrases.vocab


def test_fit_joins_words_in_files_and_in_sentences_alike(tmp_path):
    path = tmp_path / "text"
    path.write_text("".join(" ".join(sentence) + "\n" for sentence in SENTENCES))
    keys = {"corpus.phrases": True, "phrases.threshold": "5,5", "corpus.min_count": 1, "train.update": "batch", "train.epochs": 1}
    options = dict(format="text", keys=keys, device="cpu", progress=False, dim=8)
    filed = sptx.fit(str(path), tmp_path / "filed", **options)
    given = sptx.fit(SENTENCES, tmp_path / "given", **options)
    assert list(filed.words) == list(given.words) and "new_york" in given
    assert (filed.target[:] == given.target[:]).all()
    with pytest.raises(sptx.Error, match="'new york' has a blank in it"):
        sptx.fit([["new york", "city"]] * 9, tmp_path / "blank", **options)
