"""FastText: vectors of words and of their n-grams, with the interface of gensim. Names, defaults and meaning are those of gensim
4.4."""

import os
import shutil
from typing import Any, Dict, Iterable, List, Optional, Union

import numpy

from ._asked import NONE
from ._corpus import as_word
from ._keyed import KeyedVectors
from ._library import library
from ._refused import ones, refused
from ._run import Run
from ._word2vec import Path, Sentences, Word2Vec, _refuse

_HASH = 2166136261
_PRIME = 16777619


def ngrams_of(word: str, low: int, high: int) -> List[bytes]:
    """Returns the n-grams of low..high characters (of UTF-8) of a word with its boundary marks, in fastText's order."""
    bounded = b"<%s>" % as_word(word)
    begins = [at for at, byte in enumerate(bounded) if byte & 0xC0 != 0x80] + [len(bounded)]
    last = len(begins) - 1
    return [bounded[begins[i]:begins[i + n]] for i in range(last) for n in range(low, min(high, last - i) + 1)
            if not (n == 1 and (i == 0 or i + n == last))]


def bucket_of(ngram: bytes, buckets: int) -> int:
    """Returns the bucket of an n-gram: the FNV-1a hash of its bytes, which count as signed in fastText."""
    value = _HASH
    for byte in ngram:
        value = (value ^ (byte | (0xFFFFFF00 if byte > 127 else 0))) * _PRIME & 0xFFFFFFFF
    return value % buckets


class FastTextKeyedVectors(KeyedVectors):
    """Vectors by word; an unseen word has the mean of its n-grams' vectors.

    vectors          float32 [words x vector_size]: each the mean of the word's own row and of its n-grams'
    vectors_vocab    float32 [words x vector_size]: the words' own rows
    vectors_ngrams   float32 [bucket x vector_size]: the n-grams' rows

    All else is as in KeyedVectors; `in` is true of any word, as in gensim.
    """

    def __init__(self, vector_size: int, min_n: int = 3, max_n: int = 6, bucket: int = 2000000, count: int = 0,
                 dtype: Any = numpy.float32) -> None:
        super().__init__(vector_size, count, dtype)
        self.min_n, self.max_n, self.bucket = min_n, max_n, bucket
        self.vectors_vocab = self.vectors
        self.vectors_ngrams = numpy.zeros((0, vector_size), dtype)

    def __contains__(self, key: Any) -> bool:
        return len(self.vectors_ngrams) > 0 or super().__contains__(key)

    def __repr__(self) -> str:
        return "FastTextKeyedVectors<vector_size=%d, %d keys>" % (self.vector_size, len(self))

    def get_vector(self, key: Any, norm: bool = False) -> Any:
        """Returns a word's vector, with norm=True scaled to unit length. KeyError if an unseen word has no n-gram."""
        if self.has_index_for(key) or not isinstance(key, str):
            return super().get_vector(key, norm)
        rows = self._buckets(key)
        if not rows:
            raise KeyError("cannot calculate vector for OOV word '%s' without ngrams" % key)
        vector = numpy.add.reduce(self.vectors_ngrams[rows], axis=0, dtype=numpy.float32) * numpy.float32(1 / len(rows))
        return vector / (numpy.linalg.norm(vector) or 1) if norm else vector

    def word_vec(self, *given: Any, **named: Any) -> Any:
        """The old name of get_vector()."""
        return self.get_vector(*given, **named)

    vectors_vocab_lockf, vectors_ngrams_lockf = ones("vectors_vocab_lockf"), ones("vectors_ngrams_lockf")
    compatible_hash = True

    @property
    def buckets_word(self) -> List[Any]:
        """The bucket numbers of each word's n-grams: one array for each word, in the order of index_to_key."""
        return [numpy.array(self._buckets(word), numpy.uint32) for word in self.index_to_key]

    recalc_char_ngram_buckets = refused("recalc_char_ngram_buckets() is not there: the buckets of a word's n-grams are found when they "
                                        "are asked for, in buckets_word")
    adjust_vectors = refused("adjust_vectors() is a step of gensim's own training and is not there: train() leaves `vectors` adjusted")
    init_post_load = refused("init_post_load() is a step of gensim's own loading and is not there: load_facebook_vectors() does all of it")

    def get_sentence_vector(self, sentence: Iterable[str]) -> Any:
        """Returns the mean of the words' vectors, each scaled to unit length."""
        return self.get_mean_vector(list(sentence))

    def _buckets(self, word: str) -> List[int]:
        if not len(self.vectors_ngrams) or word == "</s>":
            return []
        return [bucket_of(ngram, self.bucket) for ngram in ngrams_of(word, self.min_n, self.max_n)]

    def _rows_of(self, keys: Iterable[Any]) -> Any:
        return super()._rows_of(key for key in keys if not isinstance(key, str) or self.has_index_for(key))


class FastText(Word2Vec):
    """Vectors of words and of their n-grams, as gensim.models.FastText trains them.

        model = sptx.FastText(sentences, vector_size=100, window=5, min_count=5, min_n=3, max_n=6)
        model.wv.most_similar("computer"); model.wv["computerish"]

    min_n, max_n    characters of an n-gram; max_n=0: words have none
    bucket          rows that n-grams share, by their hash
    sentences and all else as in sptx.Word2Vec

    wv              sptx.FastTextKeyedVectors

    save_facebook_model(path) writes fastText's own file, which fastText, gensim and sptx.Run read.
    """

    wv: FastTextKeyedVectors

    def __init__(self, sentences: Optional[Sentences] = None, corpus_file: Optional[Path] = None, sg: int = 0, hs: int = 0,
                 vector_size: int = 100, alpha: float = 0.025, window: int = 5, min_count: int = 5,
                 max_vocab_size: Optional[int] = None, word_ngrams: int = 1, sample: float = 1e-3, seed: int = 1,
                 workers: Optional[int] = None, min_alpha: float = 0.0001, negative: int = 5, ns_exponent: float = 0.75,
                 cbow_mean: int = 1, hashfxn: Any = hash, epochs: int = 5, null_word: int = 0, min_n: int = 3, max_n: int = 6,
                 sorted_vocab: int = 1, bucket: int = 2000000, trim_rule: Any = None, batch_words: int = 10000,
                 callbacks: Any = (), max_final_vocab: Optional[int] = None, shrink_windows: bool = True, *,
                 device: str = "auto") -> None:
        _refuse(word_ngrams=word_ngrams)
        self.word_ngrams = 1
        self.min_n, self.max_n, self.bucket = int(min_n), int(max_n), int(bucket)
        super().__init__(sentences, corpus_file, vector_size=vector_size, alpha=alpha, window=window, min_count=min_count,
                         max_vocab_size=max_vocab_size, sample=sample, seed=seed, workers=workers, min_alpha=min_alpha, sg=sg,
                         hs=hs, negative=negative, ns_exponent=ns_exponent, cbow_mean=cbow_mean, epochs=epochs, null_word=null_word,
                         trim_rule=trim_rule, callbacks=callbacks, max_final_vocab=max_final_vocab, shrink_windows=shrink_windows,
                         device=device)

    load_fasttext_format = refused("load_fasttext_format() is gone from gensim, too: sptx.gensim.models.fasttext.load_facebook_model(path) "
                                   "reads fastText's own file")
    load_binary_data = refused("load_binary_data() is not there: sptx.gensim.models.fasttext.load_facebook_model(path) reads fastText's "
                               "own file")

    def save_facebook_model(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the trained model to a fastText file (.bin)."""
        if self._loaded:
            shutil.copyfile(self._loaded, path)
            return
        if not self.train_count:
            raise RuntimeError("the model has not been trained yet")
        with Run(self._place.path("run"), device=self.device) as run:
            run.export(path, "fasttext")

    # ---- training, by the library ----

    def _keyed(self) -> KeyedVectors:
        return FastTextKeyedVectors(self.vector_size, self.min_n, self.max_n, self.bucket)

    _arguments = {**Word2Vec._arguments, "examples.subwords": "min_n-max_n", "model.buckets": "bucket"}

    def _keys(self, epochs: int, start_alpha: float, end_alpha: float) -> Dict[str, Any]:
        shared = {"examples.subwords": "%d-%d" % (self.min_n, self.max_n), "model.buckets": self.bucket} if self.max_n else {}
        return {**super()._keys(epochs, start_alpha, end_alpha), **shared}

    def _name(self, word: Any) -> bytes:
        """Returns the word unchanged: the library makes its n-grams."""
        if isinstance(word, str) and (not word or any(end in word for end in "\t\n\r\v\f\0")):
            raise ValueError("%.60r is no word of FastText: it is empty, or holds a TAB, a line's end or a NUL" % word)
        return as_word(word) if isinstance(word, str) else super()._name(word)

    def _take(self, run: Run, rows: Any) -> None:
        self.wv.vectors = run._vectors(rows.astype(numpy.uint64), len(rows), None)
        self.wv.vectors_vocab = numpy.ascontiguousarray(run.target[rows])
        self._take_contexts(run, rows)
        self.wv.vectors_ngrams = self._ngrams(run)

    def _ngrams(self, run: Run) -> Any:
        """Returns the rows of all buckets, in the order of their numbers. A bucket that no n-gram uses has zeros."""
        buckets = self.bucket if self.max_n else 0
        rows, found = numpy.empty(buckets, numpy.uint32), numpy.zeros((buckets, self.vector_size), numpy.float32)
        if buckets:
            run._context.call(library.sptx_run_buckets, run._open().pointer, rows.ctypes.data, buckets)
            used = rows != NONE
            found[used] = run.target[rows[used]]
        return found
