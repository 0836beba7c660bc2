"""Doc2Vec: vectors of documents, with the interface of gensim. Names, defaults and meaning are those of gensim 4.4."""

from typing import Any, Dict, Iterable, List, NamedTuple, Optional

import numpy

from ._corpus import Corpus, numbers
from ._keyed import KeyedVectors
from ._refused import refused
from ._run import Run
from ._word2vec import Path, Word2Vec, _Known, _Numbered


class TaggedDocument(NamedTuple):
    """A document: its words, and the tags that its vector is asked by."""

    words: List[str]
    tags: List[Any]


class Doc2Vec(Word2Vec):
    """Vectors of documents, as gensim.models.Doc2Vec trains them.

        model = sptx.Doc2Vec([sptx.TaggedDocument(["some", "words"], ["name"]), ..], vector_size=100, min_count=5, epochs=10)
        model.dv.most_similar("name"); model.infer_vector(["new", "words"])

    documents       an iterable of objects with `words` and `tags`, read once; corpus_file: a file of a document a line, whose tag is
                    the number of its line, from 0
    dm              1: PV-DM, the mean (dm_mean=0: the sum) of a document's vector and its window's predicts a word; 0: PV-DBOW, the
                    document's vector alone predicts its words
    dbow_words      1, with dm=0: words have trained vectors, too
    all else        as in sptx.Word2Vec

    dv              the documents' vectors by tag: sptx.KeyedVectors
    wv              the words' vectors; with dm=0 and dbow_words=0 they stay as they began, as in gensim

    With dm=0 a document may have several tags: each has a vector that is trained by the document's words. dm_concat, several tags
    with dm=1 or dbow_words=1, dv and dv_mapfile are not supported: they raise NotImplementedError, which says what to do instead.
    """

    def __init__(self, documents: Optional[Iterable[Any]] = None, corpus_file: Optional[Path] = None, vector_size: int = 100,
                 dm_mean: Optional[int] = None, dm: int = 1, dbow_words: int = 0, dm_concat: int = 0, dm_tag_count: int = 1,
                 dv: Any = None, dv_mapfile: Any = None, comment: Optional[str] = None, trim_rule: Any = None, callbacks: Any = (),
                 window: int = 5, epochs: int = 10, shrink_windows: bool = True, **others: Any) -> None:
        if dm_concat:
            raise NotImplementedError("dm_concat=1 is not there: leave it out, and the rows of a window and its document are averaged")
        if dv is not None or dv_mapfile is not None:
            raise NotImplementedError("dv and dv_mapfile are not there: the documents' vectors are in memory, in model.dv")
        self.dbow_words, self.dm_concat, self.dm_tag_count = int(dbow_words), 0, int(dm_tag_count)
        self._tags: Dict[Any, int] = {}  # each tag's number, which is its document's name in the library's run
        self._asked: Optional[Run] = None
        self.dv = KeyedVectors(int(vector_size))
        super().__init__(documents, corpus_file, vector_size=vector_size, sg=int(not dm), window=window, epochs=epochs,
                         shrink_windows=shrink_windows, cbow_mean=1 if dm_mean is None else dm_mean, comment=comment,
                         trim_rule=trim_rule, callbacks=callbacks, **others)

    @property
    def dm(self) -> bool:
        """True for PV-DM."""
        return not self.sg

    @property
    def dbow(self) -> bool:
        """True for PV-DBOW."""
        return bool(self.sg)

    @property
    def docvecs(self) -> KeyedVectors:
        """The old name of dv."""
        return self.dv

    def __getitem__(self, tag: Any) -> Any:
        """Returns the vector of a document, or the vectors of several."""
        return self.dv[tag]

    def infer_vector(self, doc_words: Iterable[str], alpha: Optional[float] = None, min_alpha: Optional[float] = None,
                     epochs: Optional[int] = None) -> Any:
        """Returns the vector, [vector_size], of a document that was not trained: what training would make of it with all other vectors
        fixed. The same words always give the same vector; words that the model does not know are skipped. alpha, min_alpha, epochs:
        None: as in the constructor."""
        if isinstance(doc_words, (str, bytes)):
            raise TypeError("Parameter doc_words of infer_vector() must be a list of strings (not a single string).")
        if not self.train_count:
            raise RuntimeError("a document is inferred by a trained model: call train() first")
        if self._asked is None:
            self._asked = Run(self._place.path("run"), device="cpu")
        known = [self._name(word) for word in doc_words if word in self.wv.key_to_index]
        return self._asked.infer(known, epochs or self.epochs, self.alpha if alpha is None else alpha,
                                 self.min_alpha if min_alpha is None else min_alpha)

    def similarity_unseen_docs(self, doc_words1: Iterable[str], doc_words2: Iterable[str], alpha: Optional[float] = None,
                               min_alpha: Optional[float] = None, epochs: Optional[int] = None) -> float:
        """Returns the cosine of the vectors that infer_vector() gives two documents."""
        a, b = (self.infer_vector(words, alpha, min_alpha, epochs) for words in (doc_words1, doc_words2))
        return float(a @ b / ((numpy.linalg.norm(a) * numpy.linalg.norm(b)) or 1))

    def estimated_lookup_memory(self) -> int:
        """Estimates the bytes of the tags."""
        return 60 * len(self.dv) + 140 * len(self.dv)

    def save_word2vec_format(self, fname: Path, doctag_vec: bool = False, word_vec: bool = True, prefix: str = "*dt_",
                             fvocab: Optional[Path] = None, binary: bool = False) -> None:
        """Writes the words' vectors, or with doctag_vec=True those of documents, whose names begin with `prefix`."""
        if doctag_vec and word_vec:
            raise NotImplementedError("words and documents in one file are not there: write two files")
        named = KeyedVectors(self.vector_size)
        if doctag_vec:
            named.add_vectors([prefix + str(tag) for tag in self.dv.index_to_key], self.dv.vectors)
        (named if doctag_vec else self.wv).save_word2vec_format(fname, fvocab, binary)

    # ---- documents, by the library ----

    def _numbered(self, sentences: Optional[Iterable[Any]], corpus_file: Optional[Path], numbers_of: Dict[str, int]) -> Any:
        tags: Dict[Any, int] = _Counted(self._tags) if isinstance(numbers_of, _Known) else dict(self._tags)
        if sentences is None or corpus_file is not None:
            given = super()._numbered(sentences, corpus_file, numbers_of)
            given.tags = [(_number_of(line, tags),) for line in range(given.sentences)]
        else:
            given = _Tagged(sentences, numbers_of, tags, self.dm or self.dbow_words)
        self._tags = dict(tags)
        return given

    def _count(self, given: Any, update: bool) -> None:
        super()._count(given, update)
        first = numpy.random.default_rng(self.seed).random((len(self._tags), self.vector_size), numpy.float32)
        vectors = (2 * first - 1) / self.vector_size
        if update:
            vectors[:len(self.dv)] = self.dv.vectors  # tags keep their numbers, and new ones come behind
        self._put_documents(vectors)

    def _put_documents(self, vectors: Any) -> None:
        self.dv = KeyedVectors(self.vector_size)
        self.dv.add_vectors(list(self._tags), vectors)

    def _keys(self, *given: Any) -> Dict[str, Any]:
        return {**super()._keys(*given), "corpus.format": "documents", "examples.mode": "user" if self.sg else "cbow",
                "examples.words": bool(self.sg and self.dbow_words)}

    def _give(self, given: Any, corpus: Corpus) -> None:
        at = 0
        for ids, starts in given._blocks:
            tags = given.tags[at:at + len(starts) - 1]
            at += len(tags)
            lines = numpy.repeat(numpy.arange(len(tags)), [len(one) for one in tags])  # a line for each tag of a document
            lengths = numpy.diff(starts.astype(numpy.int64))[lines]
            ends = numpy.concatenate(([0], numpy.cumsum(lengths)))
            places = numpy.arange(ends[-1]) + numpy.repeat(starts[:-1].astype(numpy.int64)[lines] - ends[:-1], lengths)
            corpus.sentences(numbers(ids[places], "words"), ends, numbers(numpy.array([tag for one in tags for tag in one], numpy.int64), "tags"))
        absent = sorted(set(self._tags.values()).difference(tag for one in given.tags for tag in one))
        if self.train_count and absent:  # documents without a word: the run keeps their rows, and the next one begins with them
            corpus.sentences(numbers(numpy.zeros(0, numpy.int64), "words"), numpy.zeros(len(absent) + 1, numpy.int64),
                             numbers(numpy.array(absent, numpy.int64), "tags"))

    def _take(self, run: Run, rows: List[int]) -> None:
        if self.dm or self.dbow_words:
            super()._take(run, rows)
        else:
            self._take_contexts(run, rows)
        vectors = self.dv.vectors
        for row, name in enumerate(run.lists, len(run)):
            vectors[int(name[len("list:"):])] = run.target[row]
        self._put_documents(vectors)
        self._asked = None

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_asked": None}

    def __repr__(self) -> str:
        return "Doc2Vec<%s,d%d,w%d,mc%s>" % ("dm/m" if self.dm else "dbow+w" if self.dbow_words else "dbow", self.vector_size, self.window,
                                             self.min_count)

    get_latest_training_loss = refused("get_latest_training_loss() of documents is not there: gensim's Doc2Vec has none either")


class _Tagged(_Numbered):
    """Documents as the numbers of their words, with the numbers of each one's tags."""

    def __init__(self, documents: Iterable[Any], numbers_of: Dict[str, int], known: Dict[Any, int], one: bool) -> None:
        self.tags: List[Any] = []
        super().__init__(self._words(documents, known, one), numbers_of)

    def _words(self, documents: Iterable[Any], known: Dict[Any, int], one: bool) -> Iterable[Any]:
        for document in documents:
            if not hasattr(document, "words") or not hasattr(document, "tags"):
                raise TypeError("a document has words and tags, as a TaggedDocument; this is a %s: %.50r" % (type(document).__name__, document))
            if isinstance(document.tags, (str, bytes)):
                raise TypeError("a document's tags are a list, not a text: %.50r" % (document.tags,))
            if one and len(document.tags) > 1:
                raise NotImplementedError("a document with several tags, such as %.50r, is trained with dm=0 and dbow_words=0 only: give it one tag"
                                          % (document.tags,))
            self.tags.append([_number_of(tag, known) for tag in document.tags])
            yield document.words


class _Counted(Dict[Any, int]):
    """Numbers of tags to which none is added: those that build_vocab() has met."""

    def __missing__(self, tag: Any) -> int:
        raise ValueError("the tag %.50r is not in the vocabulary: build_vocab(documents, update=True) adds it" % (tag,))


def _number_of(tag: Any, known: Dict[Any, int]) -> int:
    return known[tag] if isinstance(known, _Counted) else known.setdefault(tag, len(known))
