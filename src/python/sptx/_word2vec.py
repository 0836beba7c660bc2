"""Word2Vec: training with the interface of gensim. Names, defaults and meaning are those of gensim 4.4."""

import collections
import concurrent.futures
import functools
import io
import json
import logging
import os
import re
import tarfile
import tempfile
import zlib
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy

from . import _library, _pickled
from ._context import Context
from ._corpus import Corpus, strings, walked
from ._errors import naming
from ._keyed import KeyedVectors
from ._refused import refused
from ._run import Run
from ._train import _setting, _Training

Path = Union[str, "os.PathLike[str]"]
Sentences = Iterable[Iterable[str]]

_SENTENCE = 10000  # most words of a sentence, as in gensim; longer sentences are cut
_INSIDE = "%s() is a step of gensim's own training and is not there: %s"
_READ = 1 << 24    # bytes of a file that are read at a time


class Word2Vec(_pickled.Saved):
    """Vectors of words, as gensim.models.Word2Vec trains them.

        model = sptx.Word2Vec(sentences, vector_size=100, window=5, min_count=5)
        model.wv.most_similar("computer")

    sentences       an iterable of lists of str, read once; corpus_file: a file of a sentence a line, words parted by blanks.
                    None of both: build_vocab() and train() come later
    vector_size     columns; alpha, min_alpha: learning rate, and where it falls to; window: words each side at most
    min_count       rarer words are left out; max_final_vocab: the least min_count that leaves so many words
    sample          threshold of word2vec's rule for frequent words; 0: none
    sg              1: skip-gram; 0: CBOW, of means (cbow_mean=1) or sums (0)
    hs              1, with negative=0: hierarchical softmax, along the paths of a Huffman tree
    negative        noise words of an example; ns_exponent: of the counts they are drawn by
    workers         threads; None: all cores. seed: the same one gives the same vectors with one thread
    epochs          passes; shrink_windows: window sizes are drawn from 1..window
    device          "auto": the GPU where there is one; "cpu", "cuda"

    wv              the words' vectors: sptx.KeyedVectors, with the names of gensim's
    syn1neg         the context vectors, float32 [words x vector_size]; with hs=1 syn1 instead, the tree's nodes in the order in
                    which they were joined, and a last row of zeros

    compute_loss    True: get_latest_training_loss() returns the loss of the last train()

    callbacks       objects with on_train_begin, on_epoch_begin, on_epoch_end and on_train_end, each called with the model

    hs=1 beside negative above 0, trim_rule, null_word and max_vocab_size are not supported: they raise
    NotImplementedError, which says what to do instead. hashfxn, batch_words and sorted_vocab have no effect.
    """

    def __init__(self, sentences: Optional[Sentences] = None, corpus_file: Optional[Path] = None, vector_size: int = 100,
                 alpha: float = 0.025, window: int = 5, min_count: int = 5, max_vocab_size: Optional[int] = None,
                 sample: float = 1e-3, seed: int = 1, workers: Optional[int] = None, min_alpha: float = 0.0001, sg: int = 0,
                 hs: int = 0, negative: int = 5,
                 ns_exponent: float = 0.75, cbow_mean: int = 1, hashfxn: Any = hash, epochs: int = 5, null_word: int = 0,
                 trim_rule: Any = None, sorted_vocab: int = 1, batch_words: int = 10000, compute_loss: bool = False,
                 callbacks: Any = (), comment: Optional[str] = None, max_final_vocab: Optional[int] = None,
                 shrink_windows: bool = True, *, device: str = "auto") -> None:
        _refuse(trim_rule=trim_rule, null_word=null_word, max_vocab_size=max_vocab_size)
        _check_loss(hs, negative)
        if int(vector_size) < 1:
            raise ValueError("vector_size = %d, wanted at least 1" % vector_size)
        self.vector_size = self.layer1_size = int(vector_size)
        self.alpha, self.min_alpha = float(alpha), float(min_alpha)
        self.window, self.shrink_windows = int(window), bool(shrink_windows)
        self.min_count, self.max_final_vocab, self.sample, self.seed = min_count, max_final_vocab, sample, int(seed)
        self.workers, self.sg, self.hs, self.negative, self.ns_exponent = workers, int(sg), int(hs), int(negative), ns_exponent
        self.cbow_mean, self.epochs, self.comment, self.device = int(cbow_mean), int(epochs), comment, device
        self.compute_loss, self.running_training_loss = bool(compute_loss), 0.0
        self.max_vocab_size, self.null_word, self.sorted_vocab = max_vocab_size, null_word, sorted_vocab
        self.hashfxn, self.batch_words = hashfxn, batch_words
        self._epochs_before = 0  # number of finished epochs of this train(), if callbacks are called between epochs
        self._loaded: Optional[str] = None  # path of the fastText file that the model was loaded from; train() then refuses
        self.corpus_count = self.corpus_total_words = self.train_count = 0
        self.total_train_time = 0.0
        self._raw: Any = {}     # raw_vocab, or what it is made of: a _Given
        self.wv = self._keyed()
        self._left = 0          # checksum of wv.vectors, which the user may change before train()
        self._place = _Place()  # files of the last run, from which training continues
        if sentences is not None or corpus_file is not None:
            given = self._given(sentences, corpus_file, grows=True)
            self._count(given, update=False, begins=False)
            self._train_called(given, self.epochs, self.alpha, self.min_alpha, callbacks)

    def build_vocab(self, corpus_iterable: Optional[Sentences] = None, corpus_file: Optional[Path] = None, update: bool = False,
                    progress_per: int = 10000, keep_raw_vocab: bool = False, trim_rule: Any = None, *, forget: Optional[str] = None,
                    **_: Any) -> None:
        """Counts words and chooses those that get vectors. update=True: adds words to the existing vocabulary.

        forget   with update=True and max_final_vocab: words leave until max_final_vocab are left, old and new ones alike. "count": the
                 words with the fewest occurrences in all; "age": the words that have been missing for the most updates, among equals
                 the words with the fewest occurrences. `forgotten` lists the old words that left; if one comes back it is counted
                 from 0, and begins anew. None: no old word leaves
        """
        _refuse(trim_rule=trim_rule)
        self._check_forget(forget, update)
        self._count(self._given(corpus_iterable, corpus_file, grows=True), update, forget=forget)

    def train(self, corpus_iterable: Optional[Sentences] = None, corpus_file: Optional[Path] = None,
              total_examples: Optional[int] = None, total_words: Optional[int] = None, epochs: Optional[int] = None,
              start_alpha: Optional[float] = None, end_alpha: Optional[float] = None, word_count: int = 0, queue_factor: int = 2,
              report_delay: float = 1.0, compute_loss: bool = False, callbacks: Any = (), **_: Any) -> Tuple[int, int]:
        """Trains the words of the vocabulary on sentences, beginning with their present vectors; other words are skipped.

        Returns (words trained, words given), both as they stand in the corpus times epochs. total_examples, total_words and what
        else tells gensim how long it will take are not needed. RuntimeError before build_vocab().
        """
        if self._loaded:
            raise NotImplementedError("a model that was loaded from fastText's file is not trained further; sptx.fit(data, path, keys="
                                      "{'train.from': %r}) begins with its vectors" % self._loaded)
        self.compute_loss, self.running_training_loss = bool(compute_loss), 0.0
        if not len(self.wv):
            raise RuntimeError("you must first build vocabulary before training the model")
        if self.train_count and _sum_of(self.wv.vectors) != self._left:
            raise NotImplementedError("wv.vectors were changed after training, and training goes on from its own: change them "
                                      "between build_vocab() and the first train()")
        epochs = self.epochs if epochs is None else int(epochs)
        given = self._given(corpus_iterable, corpus_file, grows=False)
        counts = given.counted()
        kept = sum(count for word, count in zip(counts.words(), counts.counts.tolist()) if word in self.wv.key_to_index)
        if kept:
            self._train_called(given, epochs, start_alpha or self.alpha, end_alpha or self.min_alpha, callbacks)
        return kept * epochs, given.words * epochs

    # ---- the vocabulary ----

    def _keyed(self) -> KeyedVectors:
        return KeyedVectors(self.vector_size)

    @property
    def raw_vocab(self) -> Dict[str, int]:
        """The counts of all words that were met, {word: count}, also of those that are too rare for a vector."""
        if isinstance(self._raw, _Counts):
            self._raw = dict(zip(self._raw.words(), self._raw.counts.tolist()))
        return self._raw

    _format = "text"

    def _given(self, sentences: Optional[Sentences], corpus_file: Optional[Path], grows: bool) -> "_Given":
        """Passes sentences to the library. grows: True: new words are added, and in Doc2Vec new tags."""
        if (sentences is None) == (corpus_file is None):
            raise TypeError("You must provide only one of sentences (corpus_iterable) or corpus_file")
        if isinstance(sentences, (str, bytes)):
            raise TypeError("sentences are a text; wanted an iterable of lists of words (a file's path is corpus_file=)")
        given = _Given(Corpus(Context(self.device), [_setting("corpus.format", self._format)]))
        if corpus_file is not None:
            given.read(corpus_file)
        else:
            self._hand_over(sentences, given, grows)
        return given

    def _hand_over(self, sentences: Any, given: "_Given", grows: bool) -> None:
        for tokens, starts in walked(sentences, self._plain, words_only=True):
            given.corpus.sentences(tokens, starts)

    def _plain(self, sentence: Any, number: int) -> List[bytes]:
        return [self._name(word) for word in _listed(sentence)]

    forgotten: Sequence[str] = ()  # words that left in the last build_vocab(update=True, forget=..)
    _ages: Dict[str, int] = {}     # how many updates ago a word last occurred; words of the last one are not here

    def _check_forget(self, forget: Optional[str], update: bool) -> None:
        if forget not in (None, "age", "count"):
            raise ValueError("forget is 'age', 'count' or None, not %r" % (forget,))
        if forget and not (update and self.max_final_vocab):
            raise ValueError("forget=%r lets words leave that are more than max_final_vocab, in an update: set %s"
                             % (forget, "max_final_vocab" if update else "update=True"))

    def _count(self, given: "_Given", update: bool, begins: bool = True, forget: Optional[str] = None) -> None:
        counts = given.counted()
        self.corpus_count, self.corpus_total_words = given.sentences, given.words
        if update and self.raw_vocab:
            self._update(dict(zip(counts.words(), counts.counts.tolist())), given.words, forget, begins)
        else:
            self._raw, self._ages, self.forgotten = counts, {}, []
            self._choose(counts.words(), counts.counts, set(), given.words, begins)

    def _update(self, new: Dict[str, int], words: int, forget: Optional[str], begins: bool = True) -> None:
        """Adds counts to those of the known words, which stay in the vocabulary unless they are forgotten."""
        raw = self._raw = dict(collections.Counter(self.raw_vocab) + collections.Counter(new))
        kept, least = set(self.wv.key_to_index), None
        self._ages, self.forgotten = {word: self._ages.get(word, 0) + 1 for word in kept.difference(new)}, []
        if forget:
            age, least = self._ages if forget == "age" else {}, max(1, int(self.min_count))
            best = sorted((word for word in raw if word in kept or raw[word] >= least),
                          key=lambda word: (age.get(word, 0), -raw[word], word not in new))
            self.forgotten = [word for word in best[self.max_final_vocab:] if word in kept]
            kept, least = set(best[:self.max_final_vocab]), 1 << 62
            for word in self.forgotten:
                del raw[word]
                self._ages.pop(word, None)
            if self.forgotten:
                logging.getLogger("sptx").info("forgot %d words (forget=%r): %s", len(self.forgotten), forget, self.forgotten[:3])
            if not kept.intersection(self.wv.key_to_index):
                self.train_count = 0  # no word is left whose vectors training could begin with
        self._choose(list(raw), numpy.array(list(raw.values()), numpy.int64), kept, words, begins, least)

    def _choose(self, met: List[str], counts: Any, kept: Any, words: int, begins: bool = True, least: Optional[int] = None) -> None:
        """Chooses the vocabulary: the words of `kept`, and those with counts of at least `least` (None: as min_count and max_final_vocab say).
        Gives words their first vectors; with begins=False zeros, because they are trained right after."""
        self.effective_min_count = _least_count(counts, self.min_count, None if least else self.max_final_vocab)
        enough = counts >= max(1, least or self.effective_min_count)
        if kept:
            enough |= numpy.fromiter((word in kept for word in met), bool, len(met))
        rows = numpy.flatnonzero(enough)
        rows = rows[numpy.argsort(-counts[rows], kind="stable")]
        if not len(rows):
            raise RuntimeError("you must first build vocabulary before training the model: no word comes %d times in %d words" %
                               (self.effective_min_count, words))
        before, self.wv = self.wv, self._keyed()
        vectors = numpy.zeros((len(rows), self.vector_size), numpy.float32)
        if begins:
            vectors = (2 * numpy.random.default_rng(self.seed).random(vectors.shape, numpy.float32) - 1) / self.vector_size
        self.wv.vectors, self.wv.index_to_key = vectors, [met[row] for row in rows.tolist()]
        self.wv.key_to_index = {word: row for row, word in enumerate(self.wv.index_to_key)}
        for word in before.key_to_index.keys() & kept:
            self.wv.vectors[self.wv.key_to_index[word]] = before[word]
        self.wv.expandos["count"] = counts[rows]
        self._left = _sum_of(self.wv.vectors)

    # ---- training, by the library ----

    _arguments: Mapping[str, str] = {  # what messages call keys
        "examples.window": "window", "examples.shrink": "shrink_windows", "examples.subsample": "sample", "model.dim": "vector_size",
        "optimizer.lr": "alpha", "optimizer.min_lr_ratio": "min_alpha / alpha", "train.epochs": "epochs", "train.seed": "seed",
        "negatives.count": "negative", "negatives.power": "ns_exponent", "device.threads": "workers"}

    def _keys(self, epochs: int, start_alpha: float, end_alpha: float) -> Dict[str, Any]:
        loss = {"train.loss": "hierarchical"} if self.hs else {"negatives.count": self.negative, "negatives.power": self.ns_exponent}
        return {**loss, "corpus.format": self._format, "corpus.max_sentence": _SENTENCE, "corpus.min_count": 0,
                "examples.mode": "window" if self.sg else "cbow", "examples.window": self.window,
                "examples.shrink": self.shrink_windows, "examples.subsample": self.sample, "model.dim": self.vector_size,
                "model.target_init": "uniform %r %r" % (-1 / self.vector_size, 1 / self.vector_size), "optimizer.lr": start_alpha,
                "optimizer.min_lr_ratio": min(1.0, end_alpha / (start_alpha or 1)), "train.epochs": epochs,
                "train.seed": (self.seed + self._epochs_before) % 2**32,
                "examples.pooled_gradient": "auto" if self.sg or self.cbow_mean else "sum",
                "device.threads": self.workers or 0, "run.checkpoint_every": "end", "run.keep": 1}

    def _train_called(self, given: "_Given", epochs: int, start_alpha: float, end_alpha: float, callbacks: Any) -> None:
        """Trains, and calls callbacks between epochs. With callbacks each epoch is a separate training, which continues from the
        one before, with the learning rate of that epoch and other random numbers."""
        trained, self._epochs_before = self.train_count, 0
        _call(callbacks, "on_train_begin", self)
        fall = (start_alpha - end_alpha) / max(1, epochs)
        for epoch in range(epochs if callbacks else 0):
            _call(callbacks, "on_epoch_begin", self)
            self._epochs_before = epoch
            self._train(given, 1, start_alpha - fall * epoch, start_alpha - fall * (epoch + 1))
            _call(callbacks, "on_epoch_end", self)
        self._epochs_before = 0
        if not callbacks:
            self._train(given, epochs, start_alpha, end_alpha)
        self.train_count = trained + 1
        _call(callbacks, "on_train_end", self)

    def _train(self, given: "_Given", epochs: int, start_alpha: float, end_alpha: float) -> None:
        """Trains a run on words given as numbers, and copies its vectors into the model."""
        place = _Place()
        vocabulary = place.path("vocabulary.tsv")
        names = self.wv.index_to_key
        if not all(names) or _ODD_ANYWHERE.search(" ".join(names)):
            names = [self._name(word).decode("utf-8", "surrogateescape") for word in names]
        with open(vocabulary, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            file.write("".join(map("%s\t%d\n".__mod__, zip(names, self.wv.expandos["count"].tolist()))))
        keys = {**self._keys(epochs, start_alpha, end_alpha), "corpus.vocab": vocabulary, "run.dir": place.path("run"), "train.from": ""}
        if self.train_count:
            keys["train.from"] = '"%s"' % self._place.path("run")
        elif _sum_of(self.wv.vectors) != self._left:
            numpy.save(place.path("first.npy"), self.wv.vectors)
            keys["train.from"] = '"%s" "%s"' % (place.path("first.npy"), vocabulary)
        with naming(self._arguments):
            given.corpus.set([_setting(*key) for key in keys.items()])
            _Training(given.corpus.context, None, functools.partial(given.corpus.train, _library.ANEW), resumable=False).run()
        with Run(place.path("run"), device=given.corpus.context) as run:
            held = list(run.words)
            if held[:len(names)] == names:
                self._take(run, numpy.arange(len(names)))
            else:
                places = {name: row for row, name in enumerate(held)}
                self._take(run, numpy.array([places[name] for name in names]))
        self.wv.fill_norms(force=True)
        self._left = _sum_of(self.wv.vectors)
        if self.compute_loss:
            self.running_training_loss += _summed_loss(place.path(os.path.join("run", "metrics.jsonl")))
        self._place.remove()
        self._place = place
        self.train_count += 1

    def _name(self, word: Any) -> bytes:
        """Returns the name of a word in the library's run: the word itself, or if a line of a file cannot contain it, digits."""
        if not isinstance(word, str):
            raise TypeError("a word is a str, not a %s: %.50r" % (type(word).__name__, word))
        if _ODD.search(word) or not word:
            return b"\1" + word.encode("utf-8", "surrogatepass").hex().encode()
        return word.encode()

    def _take(self, run: Run, rows: Any) -> None:
        """Copies the vectors of the words of `wv` from these rows of the run."""
        self.wv.vectors = numpy.ascontiguousarray(run.target[rows])
        self._take_contexts(run, rows)

    def _take_contexts(self, run: Run, rows: Any) -> None:
        """Copies the words' context vectors, or those of the tree's nodes. The library numbers nodes from the root, but gensim has the root last."""
        if self.hs:
            self.syn1 = numpy.concatenate([run.context[::-1], numpy.zeros((1, self.vector_size), numpy.float32)])
        else:
            self.syn1neg = numpy.ascontiguousarray(run.context[rows])

    # ---- beyond vectors ----

    def predict_output_word(self, context_words_list: List[Any], topn: int = 10) -> Optional[List[Tuple[str, float]]]:
        """Returns the words that the context vectors predict most in the middle of these words, with probabilities that sum to 1
        over all words; None if no word is known."""
        if self.hs:
            raise RuntimeError("predict_output_word() asks the context vectors, which a model with hs=1 does not have: train with negative=5")
        rows = [self.wv.get_index(word) for word in context_words_list if word in self.wv]
        if not rows:
            return None
        middle = self.wv.vectors[rows].mean(0)
        values = numpy.exp(self.syn1neg @ middle)
        best = numpy.argsort(-values, kind="stable")[:topn]
        return [(self.wv.index_to_key[row], float(values[row] / values.sum())) for row in best]

    def __repr__(self) -> str:
        return "%s<vocab=%d, vector_size=%d, alpha=%s>" % (type(self).__name__, len(self.wv), self.vector_size, self.alpha)

    # ---- less used members ----

    min_alpha_yet_reached = 0.0
    cum_table = None  # None: the library draws the noise words, without gensim's table

    def build_vocab_from_freq(self, word_freq: Mapping[str, int], keep_raw_vocab: bool = False, corpus_count: Optional[int] = None,
                              trim_rule: Any = None, update: bool = False, *, forget: Optional[str] = None) -> None:
        """Builds the vocabulary from known counts, {word: count}, instead of from sentences; call train() afterwards. update=True
        adds words to the existing vocabulary, and forget= lets words leave, as in build_vocab()."""
        _refuse(trim_rule=trim_rule)
        self._check_forget(forget, update)
        if update and self.raw_vocab:
            self._update(dict(word_freq), sum(word_freq.values()), forget)
        else:
            self._raw, self._ages, self.forgotten = dict(word_freq), {}, []
            self._choose(list(word_freq), numpy.array(list(word_freq.values()), numpy.int64), set(), sum(word_freq.values()))
        self.corpus_count, self.corpus_total_words = corpus_count or 0, sum(word_freq.values())

    def estimate_memory(self, vocab_size: Optional[int] = None, report: Optional[Dict[str, int]] = None) -> Dict[str, int]:
        """Estimates the bytes of a model with vocab_size words (default: those it has now), as {kind: bytes} with a "total"."""
        words, found = vocab_size or len(self.wv), dict(report or {})
        found["vocab"] = words * 500
        found["vectors"] = found["syn1neg"] = words * self.vector_size * 4
        found["total"] = found["vocab"] + found["vectors"] + found["syn1neg"]
        return found

    def get_latest_training_loss(self) -> float:
        """Returns the loss of the last train() with compute_loss=True, summed over all (word, context) pairs as gensim does; 0.0 if
        there was none."""
        return self.running_training_loss

    def init_sims(self, replace: bool = False) -> None:
        """The old name of wv.init_sims()."""
        self.wv.init_sims(replace)

    def seeded_vector(self, seed_string: str, vector_size: int) -> Any:
        """Returns a random vector whose seed is this text and the model's seed; values lie within +-0.5 / vector_size."""
        words = [self.seed, *seed_string.encode("utf-8", "surrogatepass")]
        return ((numpy.random.default_rng(words).random(vector_size) - 0.5) / vector_size).astype(numpy.float32)

    @property
    def random(self) -> Any:
        """Returns a new NumPy generator with the model's seed. Training does not use it."""
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


_WHAT_TO_DO = {
    "trim_rule": (None, "trim_rule is not there: leave words out of the sentences, or set min_count or max_final_vocab"),
    "null_word": (0, "null_word is not there: it serves models of concatenated words, which are not there either"),
    "word_ngrams": (1, "word_ngrams above 1 (n-grams of words) are not there: join words in the sentences instead"),
    "max_vocab_size": (None, "max_vocab_size is not there, as it drops counts: set max_final_vocab"),
}


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        wanted, sentence = _WHAT_TO_DO[name]
        if value != wanted:
            raise NotImplementedError(sentence)


def _call(callbacks: Any, name: str, model: Word2Vec) -> None:
    """Calls this method of each callback that has it."""
    for callback in callbacks or ():
        method = getattr(callback, name, None)
        if method is not None:
            method(model)
def _check_loss(hs: int, negative: int) -> None:
    if hs and negative:
        raise NotImplementedError("hs=1 with negative=%d would train two tables of contexts, which is not there: set negative=0, or hs=0"
                                  % negative)
    if not hs and not negative:
        raise NotImplementedError("negative=0 with hs=0 leaves nothing to train: take negative=5, or hs=1")


_ODD = re.compile("^\1|[\0\t-\r\ud800-\udfff]")  # of words whose names differ from them
_ODD_ANYWHERE = re.compile("[\0\1\t-\r\ud800-\udfff]")
_ODD_IN_FILE = re.compile(rb"[^\t-\r ]*[\0\1][^\t-\r ]*")


class _Counts:
    """Words, with how often each occurs. They are stored packed, since few programs ask for all of them."""

    def __init__(self, packed: bytes, offsets: Any, counts: Any) -> None:
        self._packed, self._offsets, self.counts = packed, offsets, counts

    def words(self) -> List[str]:
        names = strings(self._packed, len(self.counts), self._offsets)
        if b"\1" not in self._packed:
            return names
        return [bytes.fromhex(name[1:]).decode("utf-8", "surrogatepass") if name[0] == "\1" else name for name in names]


class _Given:
    """Sentences or documents that have been passed to the library.

    names   for documents: their names in the library's run, integers, in arrays; None: those of a file, by line
    others  (name, words) for each further tag of a document, which the library does not have yet
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.names: Optional[List[Any]] = None
        self.others: List[Any] = []
        self.sentences = self.words = 0

    def read(self, path: Path) -> None:
        """Reads a file with one sentence a line, words separated by blanks. One thread reads the next block while the library reads the last one."""
        with open(path, "rb") as file, concurrent.futures.ThreadPoolExecutor(1) as ahead:
            texts = _whole_words(file)
            coming = ahead.submit(next, texts, b"")
            while text := coming.result():
                coming = ahead.submit(next, texts, b"")
                self.corpus.text(text)
        self.corpus.text(b"")

    def counted(self) -> _Counts:
        """Counts what the library holds."""
        *packed, self.sentences, self.words = self.corpus.counted()
        return _Counts(*packed)


def _whole_words(file: Any) -> Iterator[bytes]:
    """Yields the text of a file in blocks that end at the end of a word. Bytes that are not UTF-8 are replaced. A word that a line of a vocabulary
    file cannot contain is replaced by digits."""
    rest = b""
    for block in iter(lambda: file.read(_READ), b""):
        cut = 0
        for begin in (max(0, len(block) - 4096), 0):  # a blank is nearly always near the block's end
            cut = cut or max(block.rfind(blank, begin) for blank in (b" ", b"\n", b"\t", b"\r", b"\v", b"\f")) + 1
        if cut:
            yield _cleaned(rest + block[:cut])
            rest = b""
        rest += block[cut:]
    if rest:
        yield _cleaned(rest)


def _cleaned(text: bytes) -> bytes:
    if b"\0" in text or b"\1" in text:
        text = _ODD_IN_FILE.sub(lambda word: b"\1" + _utf8(word[0]).hex().encode(), text)
    return _utf8(text)


def _utf8(text: bytes) -> bytes:
    if text.isascii():
        return text
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode(errors="replace").encode()
    return text


def _listed(sentence: Any) -> Any:
    if isinstance(sentence, (str, bytes)):
        raise TypeError("a sentence is a list of words, not a text: %.50r" % (sentence,))
    return sentence if isinstance(sentence, (list, tuple)) else list(sentence)


def _sum_of(vectors: Any) -> int:
    return zlib.crc32(numpy.ascontiguousarray(vectors))


def _least_count(counts: Any, min_count: int, most: Optional[int]) -> int:
    """Returns min_count; if more than `most` words have that count, the higher count that at most `most` words have."""
    return max(int(min_count), int(numpy.sort(counts)[-most - 1]) + 1) if most and len(counts) > most else int(min_count)


class _Place:
    """A temporary folder for the files of one training, removed with its object. A pickle of the object contains the run's files."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sptx-run-")

    def path(self, name: str) -> str:
        return os.path.join(self._folder.name, name)

    def remove(self) -> None:
        self._folder.cleanup()

    def __enter__(self) -> "_Place":
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()

    def __getstate__(self) -> bytes:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            if os.path.isdir(self.path("run")):
                tar.add(self.path("run"), "run")
        return packed.getvalue()

    def __setstate__(self, packed: bytes) -> None:
        self.__init__()  # type: ignore[misc]
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            for member in tar.getmembers():
                if not (member.isfile() or member.isdir()) or member.name.split("/")[0] != "run" or ".." in member.name.split("/"):
                    raise ValueError("the packed run has %r, which is no file of a run" % member.name)
            tar.extractall(self._folder.name)


def _summed_loss(metrics: str) -> float:
    """Returns the loss summed over all pairs of a run, computed from its metrics.jsonl: each line has the mean loss of the pairs since the line
    before."""
    total, before = 0.0, 0
    with open(metrics, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            pairs = line.get("pairs")
            if pairs is not None and line.get("loss_pair") is not None:
                total, before = total + line["loss_pair"] * (pairs - before), pairs
    return total
