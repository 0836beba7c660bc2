"""Less used members of gensim's Word2Vec: vocabularies from known counts, memory estimates, internals. The rest: _word2vec.py."""

import json
import logging
from typing import Any, Dict, Mapping, Optional, Sequence

import numpy

from ._refused import refused

_INSIDE = "%s() is a step of gensim's own training and is not there: %s"


class MoreOfWord2Vec:
    """Base class of Word2Vec. Word2Vec itself stores the model."""

    lifecycle_events: Sequence[Dict[str, Any]] = ()
    min_alpha_yet_reached = 0.0
    cum_table = None  # None: the library draws the noise words, without gensim's table

    def build_vocab_from_freq(self: Any, word_freq: Mapping[str, int], keep_raw_vocab: bool = False, corpus_count: Optional[int] = None,
                              trim_rule: Any = None, update: bool = False) -> None:
        """Builds the vocabulary from known counts, {word: count}, instead of from sentences; call train() afterwards. update=True
        adds words to the existing vocabulary."""
        from ._word2vec import _refuse

        _refuse(trim_rule=trim_rule)
        self._raw = dict(word_freq)
        self._choose(list(word_freq), numpy.array(list(word_freq.values()), numpy.int64), update, sum(word_freq.values()))
        self.corpus_count, self.corpus_total_words = corpus_count or 0, sum(word_freq.values())

    def estimate_memory(self: Any, vocab_size: Optional[int] = None, report: Optional[Dict[str, int]] = None) -> Dict[str, int]:
        """Estimates the bytes of a model with vocab_size words (default: those it has now), as {kind: bytes} with a "total"."""
        words, found = vocab_size or len(self.wv), dict(report or {})
        found["vocab"] = words * 500
        found["vectors"] = found["syn1neg"] = words * self.vector_size * 4
        found["total"] = found["vocab"] + found["vectors"] + found["syn1neg"]
        return found

    def get_latest_training_loss(self: Any) -> float:
        """Returns the loss of the last train() with compute_loss=True, summed over all (word, context) pairs as gensim does; 0.0 if
        there was none."""
        return self.running_training_loss

    def init_sims(self: Any, replace: bool = False) -> None:
        """The old name of wv.init_sims()."""
        self.wv.init_sims(replace)

    def add_lifecycle_event(self: Any, event_name: str, log_level: int = logging.INFO, **event: Any) -> None:
        """Appends an event to lifecycle_events and logs it."""
        self.lifecycle_events = [*self.lifecycle_events, {**event, "event": event_name}]
        logging.getLogger("sptx").log(log_level, "%s: %s", event_name, event)

    def seeded_vector(self: Any, seed_string: str, vector_size: int) -> Any:
        """Returns a random vector whose seed is this text and the model's seed; values lie within +-0.5 / vector_size."""
        words = [self.seed, *seed_string.encode("utf-8", "surrogatepass")]
        return ((numpy.random.default_rng(words).random(vector_size) - 0.5) / vector_size).astype(numpy.float32)

    @property
    def random(self: Any) -> Any:
        """A new NumPy generator with the model's seed. Training does not use it."""
        return numpy.random.RandomState(seed=self.seed)

    score = refused("score() is not there: predict_output_word() gives a word's probability among others")
    reset_from = refused("reset_from() is not there: build_vocab() of the same sentences, or build_vocab_from_freq(other.raw_vocab), gives "
                         "the same vocabulary")
    create_binary_tree = refused(_INSIDE % ("create_binary_tree", "training with hs=1 makes the tree"))
    add_null_word = refused("add_null_word() serves models of concatenated words, which are not there")
    scan_vocab = refused(_INSIDE % ("scan_vocab", "build_vocab() counts words and chooses among them"))
    prepare_vocab = refused(_INSIDE % ("prepare_vocab", "build_vocab() does all of it"))
    prepare_weights = refused(_INSIDE % ("prepare_weights", "build_vocab() makes the first vectors, in wv.vectors"))
    init_weights = refused(_INSIDE % ("init_weights", "build_vocab() makes the first vectors, in wv.vectors"))
    update_weights = refused(_INSIDE % ("update_weights", "build_vocab(update=True) adds words with their first vectors"))
    make_cum_table = refused(_INSIDE % ("make_cum_table", "ns_exponent sets how noise words are drawn"))


def summed_loss(metrics: str) -> float:
    """Returns the loss summed over all pairs of a run, from its metrics.jsonl: each line has the mean loss of the pairs since the
    previous line."""
    total, before = 0.0, 0
    with open(metrics, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            pairs = line.get("pairs")
            if pairs is not None and line.get("loss_pair") is not None:
                total, before = total + line["loss_pair"] * (pairs - before), pairs
    return total
