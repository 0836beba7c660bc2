"""Phrases: joins words that often follow each other into one word, with the interface of gensim. Names, defaults and meaning are
those of gensim 4.4. For files, `sptx-w2v phrases` and the key corpus.phrases = yes are faster."""

import collections
import inspect
import itertools
import math
import os
from typing import Any, Dict, FrozenSet, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from . import _pickled

Path = Union[str, "os.PathLike[str]"]
Sentence = Iterable[str]

ENGLISH_CONNECTOR_WORDS = frozenset("a an the for of with without at from to in on by and or".split())
_SCORED = ["worda_count", "wordb_count", "bigram_count", "len_vocab", "min_count", "corpus_word_count"]


def original_scorer(worda_count: int, wordb_count: int, bigram_count: int, len_vocab: int, min_count: int,
                    corpus_word_count: int) -> float:
    """(bigram_count - min_count) / (worda_count * wordb_count) * len_vocab."""
    both = worda_count * wordb_count
    return (bigram_count - min_count) / both * len_vocab if both else -math.inf


def npmi_scorer(worda_count: int, wordb_count: int, bigram_count: int, len_vocab: int, min_count: int,
                corpus_word_count: int) -> float:
    """Normalized pointwise mutual information, from -1 to 1; -inf for a bigram counted fewer times than min_count."""
    if bigram_count < min_count:
        return -math.inf
    words = float(corpus_word_count)
    together = bigram_count / words
    try:
        return math.log(together / (worda_count / words * (wordb_count / words))) / -math.log(together)
    except ValueError:
        return -math.inf


_SCORERS = {"default": original_scorer, "npmi": npmi_scorer}


class _Joins(_pickled.Saved):
    """Base class of Phrases and FrozenPhrases: joins the phrases of sentences; the derived class has score_candidate()."""

    connector_words: FrozenSet[str] = frozenset()
    delimiter, threshold = "_", 0.0

    def score_candidate(self, word_a: str, word_b: str, in_between: List[str]) -> Tuple[Optional[str], Optional[float]]:
        """Returns (joined words, score) if the words are a phrase, otherwise (None, None)."""
        raise NotImplementedError

    def analyze_sentence(self, sentence: Sentence) -> Iterator[Tuple[str, Optional[float]]]:
        """Yields (phrase, score) for each phrase of a sentence and (word, None) for each other word, in order."""
        begin: Optional[str] = None
        between: List[str] = []
        for word in sentence:
            if word in self.connector_words:
                if begin:
                    between.append(word)
                else:
                    yield word, None
                continue
            if begin:
                phrase, score = self.score_candidate(begin, word, between)
                if phrase is not None:
                    yield phrase, score
                    begin, between = None, []
                    continue
                for one in (begin, *between):
                    yield one, None
            begin, between = word, []
        if begin:
            for one in (begin, *between):
                yield one, None

    def __getitem__(self, sentence: Any) -> Any:
        """Joins the words of a sentence (a list of str), or of each of many: a list, or an iterable of lists that is read anew
        each time it is iterated, if the sentences can be."""
        is_one, sentence = _is_one(sentence)
        return [token for token, _ in self.analyze_sentence(sentence)] if is_one else _Joined(self, sentence)

    def find_phrases(self, sentences: Iterable[Sentence]) -> Dict[str, float]:
        """Returns {phrase: score} of all phrases in the sentences."""
        return {phrase: score for sentence in sentences for phrase, score in self.analyze_sentence(sentence) if score is not None}

    @classmethod
    def load(cls, path: Path, *_: Any, **__: Any) -> Any:
        """Reads what save() wrote."""
        return _pickled.load(path, _Joins, "phrases")


class Phrases(_Joins):
    """Counts words and bigrams, and joins bigrams with a high score, as gensim.models.Phrases does.

        phrases = sptx.Phrases(sentences, min_count=5, threshold=10)
        phrases[["we", "saw", "new", "york"]]          # ["we", "saw", "new_york"]
        model = sptx.Word2Vec(phrases[sentences])

    sentences        an iterable of lists of str; add_vocab() counts more
    min_count        bigrams counted fewer times are no phrases; threshold: those with a higher score are
    scoring          "default" (original_scorer), "npmi" (npmi_scorer), or a function with the same parameters
    delimiter        is put between the words of a phrase
    connector_words  may be within a phrase but neither begin nor end it: ENGLISH_CONNECTOR_WORDS

    vocab            {word, or joined bigram: count}; corpus_word_count: all words

    max_vocab_size and progress_per have no effect: no count is ever forgotten.
    """

    def __init__(self, sentences: Optional[Iterable[Sentence]] = None, min_count: float = 5, threshold: float = 10.0,
                 max_vocab_size: int = 40000000, delimiter: str = "_", progress_per: int = 10000, scoring: Any = "default",
                 connector_words: Iterable[str] = frozenset()) -> None:
        if min_count <= 0:
            raise ValueError("min_count = %r: wanted at least 1" % (min_count,))
        if scoring == "default" and threshold <= 0:
            raise ValueError("threshold = %r: the default scoring wants a positive number" % (threshold,))
        if scoring == "npmi" and not -1 <= threshold <= 1:
            raise ValueError("threshold = %r: npmi wants a number from -1 to 1" % (threshold,))
        scorer = _SCORERS.get(scoring) if isinstance(scoring, str) else scoring
        if scorer is None:
            raise ValueError("scoring = %r: wanted default, npmi or a function" % (scoring,))
        missing = [name for name in _SCORED if name not in inspect.getfullargspec(scorer).args]
        if missing:
            raise ValueError("the scoring function lacks the parameters %s" % ", ".join(missing))
        self.min_count, self.threshold, self.delimiter, self.scoring = min_count, threshold, delimiter, scorer
        self.max_vocab_size, self.progress_per, self.min_reduce = max_vocab_size, progress_per, 1
        self.connector_words = frozenset(connector_words)
        self.vocab: Dict[str, int] = {}
        self.corpus_word_count = 0
        if sentences is not None:
            self.add_vocab(sentences)

    def add_vocab(self, sentences: Iterable[Sentence]) -> None:
        """Counts more sentences."""
        words: Any = collections.Counter()
        bigrams: Any = collections.Counter()
        for sentence in sentences:
            if isinstance(sentence, (str, bytes)):
                raise TypeError("a sentence is a list of words, not a text: %.50r" % (sentence,))
            sentence = sentence if isinstance(sentence, (list, tuple)) else list(sentence)
            words.update(sentence)
            bigrams.update(self._bigrams(sentence) if self.connector_words else zip(sentence, sentence[1:]))
        self.corpus_word_count += sum(words.values())
        counted = itertools.chain(((word, count) for word, count in words.items() if word not in self.connector_words),
                                  ((self.delimiter.join(bigram), count) for bigram, count in bigrams.items()))
        for name, count in counted:
            self.vocab[name] = self.vocab.get(name, 0) + count

    def _bigrams(self, sentence: Sequence[str]) -> Iterator[Tuple[str, ...]]:
        """Yields each bigram of a sentence, with the connector words between its two words."""
        begin: Tuple[str, ...] = ()
        for word in sentence:
            if word in self.connector_words:
                begin = begin and (*begin, word)
                continue
            if begin:
                yield (*begin, word)
            begin = (word,)

    def score_candidate(self, word_a: str, word_b: str, in_between: List[str]) -> Tuple[Optional[str], Optional[float]]:
        phrase = self.delimiter.join([word_a, *in_between, word_b])
        first, second, both = (self.vocab.get(name, 0) for name in (word_a, word_b, phrase))
        if not (first and second and both):
            return None, None
        score = self.scoring(worda_count=first, wordb_count=second, bigram_count=both, len_vocab=len(self.vocab),
                             min_count=self.min_count, corpus_word_count=self.corpus_word_count)
        return (phrase, score) if score > self.threshold else (None, None)

    def export_phrases(self) -> Dict[str, float]:
        """Returns all phrases that were counted, with their scores."""
        found = {}
        for name in self.vocab:
            first, *rest = name.split(self.delimiter)
            phrase, score = self.score_candidate(first, rest[-1], rest[:-1]) if rest else (None, None)
            if phrase is not None and score is not None:
                found[phrase] = score
        return found

    def freeze(self) -> "FrozenPhrases":
        """Returns an object that joins the same words, but has no counts."""
        return FrozenPhrases(self)

    def __str__(self) -> str:
        return "Phrases<%d vocab, min_count=%s, threshold=%s>" % (len(self.vocab), self.min_count, self.threshold)


class FrozenPhrases(_Joins):
    """The phrases of a Phrases object without its counts, as gensim.models.phrases.FrozenPhrases: smaller, and nothing more can be
    counted. phrasegrams: {phrase: score}."""

    def __init__(self, phrases_model: Phrases) -> None:
        self.threshold, self.min_count, self.delimiter = phrases_model.threshold, phrases_model.min_count, phrases_model.delimiter
        self.scoring, self.connector_words = phrases_model.scoring, phrases_model.connector_words
        self.phrasegrams = phrases_model.export_phrases()

    def score_candidate(self, word_a: str, word_b: str, in_between: List[str]) -> Tuple[Optional[str], Optional[float]]:
        phrase = self.delimiter.join([word_a, *in_between, word_b])
        score = self.phrasegrams.get(phrase, -math.inf)
        return (phrase, score) if score > self.threshold else (None, None)

    def __str__(self) -> str:
        return "FrozenPhrases<%d phrases, min_count=%s, threshold=%s>" % (len(self.phrasegrams), self.min_count, self.threshold)


class _Joined:
    """Sentences whose words are joined when they are read."""

    def __init__(self, joins: _Joins, sentences: Iterable[Sentence]) -> None:
        self._joins, self._sentences = joins, sentences

    def __iter__(self) -> Iterator[List[str]]:
        return (self._joins[list(sentence)] for sentence in self._sentences)


def _is_one(sentence: Any) -> Tuple[bool, Any]:
    """Returns whether the argument is a single sentence, which its first element tells, and an iterable of all its elements, even if the argument
    can be read only once."""
    rest = iter(sentence)
    first = list(itertools.islice(rest, 1))
    whole = itertools.chain(first, rest) if rest is sentence else sentence
    return not first or isinstance(first[0], str), whole
