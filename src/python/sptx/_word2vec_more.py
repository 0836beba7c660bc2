"""What gensim's Word2Vec has beside training and the questions of _word2vec.py: counts that are known, sizes, names of its inside."""

import json
import logging
from typing import Any, Dict, Mapping, Optional, Sequence

import numpy

from ._refused import refused

_INSIDE = "%s() is a step of gensim's own training and is not there: %s"


class MoreOfWord2Vec:
    """The base of Word2Vec, which has the model."""

    lifecycle_events: Sequence[Dict[str, Any]] = ()
    min_alpha_yet_reached = 0.0
    cum_table = None  # noise words are drawn in the library

    def build_vocab_from_freq(self: Any, word_freq: Mapping[str, int], keep_raw_vocab: bool = False, corpus_count: Optional[int] = None,
                              trim_rule: Any = None, update: bool = False) -> None:
        """Chooses the words that have vectors by counts that are known, {word: count}; train() comes later. update=True: beside those
        that are there."""
        from ._word2vec import _Learning, _refuse

        _refuse(trim_rule=trim_rule)
        learning = _Learning(self._numbers)
        for word in word_freq:
            learning[word]
        self._numbers = dict(learning)
        self._choose(word_freq, update, sum(word_freq.values()))
        self.corpus_count, self.corpus_total_words = corpus_count or 0, sum(word_freq.values())

    def estimate_memory(self: Any, vocab_size: Optional[int] = None, report: Optional[Dict[str, int]] = None) -> Dict[str, int]:
        """Bytes that a model of so many words takes, of the vocabulary that is there by itself: by their kind, and "total"."""
        words, found = vocab_size or len(self.wv), dict(report or {})
        found["vocab"] = words * 500
        found["vectors"] = found["syn1neg"] = words * self.vector_size * 4
        found["total"] = found["vocab"] + found["vectors"] + found["syn1neg"]
        return found

    def get_latest_training_loss(self: Any) -> float:
        """The loss of the last train() with compute_loss=True, summed over all pairs of a word and a context; 0.0 before. gensim's is
        such a sum, too."""
        return self.running_training_loss

    def init_sims(self: Any, replace: bool = False) -> None:
        """wv.init_sims() under its former name."""
        self.wv.init_sims(replace)

    def add_lifecycle_event(self: Any, event_name: str, log_level: int = logging.INFO, **event: Any) -> None:
        """Notes an event in lifecycle_events and in the log."""
        self.lifecycle_events = [*self.lifecycle_events, {**event, "event": event_name}]
        logging.getLogger("sptx").log(log_level, "%s: %s", event_name, event)

    def seeded_vector(self: Any, seed_string: str, vector_size: int) -> Any:
        """A random vector that this text stands for, of numbers within 0.5 / vector_size of 0."""
        words = [self.seed, *seed_string.encode("utf-8", "surrogatepass")]
        return ((numpy.random.default_rng(words).random(vector_size) - 0.5) / vector_size).astype(numpy.float32)

    @property
    def random(self: Any) -> Any:
        """A generator of this seed; training draws by its own."""
        return numpy.random.RandomState(seed=self.seed)

    @property
    def effective_min_count(self: Any) -> int:
        """The least count that a word needs, where max_final_vocab has raised it, too."""
        from ._word2vec import _least_count

        return _least_count(self.raw_vocab, self.min_count, self.max_final_vocab)

    score = refused("score() is not there, as it needs hierarchical softmax (hs=1): predict_output_word() gives a word's probability "
                    "among others")
    reset_from = refused("reset_from() is not there: build_vocab() of the same sentences, or build_vocab_from_freq(other.raw_vocab), gives "
                         "the same vocabulary")
    create_binary_tree = refused("create_binary_tree() serves hierarchical softmax (hs=1), which is not there: train with negative=5")
    add_null_word = refused("add_null_word() serves models of concatenated words, which are not there")
    scan_vocab = refused(_INSIDE % ("scan_vocab", "build_vocab() counts words and chooses among them"))
    prepare_vocab = refused(_INSIDE % ("prepare_vocab", "build_vocab() does all of it"))
    prepare_weights = refused(_INSIDE % ("prepare_weights", "build_vocab() makes the first vectors, in wv.vectors"))
    init_weights = refused(_INSIDE % ("init_weights", "build_vocab() makes the first vectors, in wv.vectors"))
    update_weights = refused(_INSIDE % ("update_weights", "build_vocab(update=True) adds words with their first vectors"))
    make_cum_table = refused(_INSIDE % ("make_cum_table", "ns_exponent sets how noise words are drawn"))


def summed_loss(metrics: str) -> float:
    """The loss of all pairs of a run, by its metrics.jsonl: each line has the mean of a pair since the line before."""
    total, before = 0.0, 0
    with open(metrics, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            pairs = line.get("pairs")
            if pairs is not None and line.get("loss_pair") is not None:
                total, before = total + line["loss_pair"] * (pairs - before), pairs
    return total
