"""Doc2Vec: vectors of documents, with the interface of gensim. Names, defaults and meaning are those of gensim 4.4."""

from collections.abc import Iterable
from typing import Any, Dict, List, NamedTuple, Optional

import numpy

from ._corpus import numbers, walked
from ._errors import tell
from ._keyed import KeyedVectors
from ._refused import refused
from ._run import Run
from ._word2vec import Path, Word2Vec

_TEXTS = 1 << 62           # number that the first tag that is a text has in the library; the next ones have lower numbers
_ROWS_MOST = (1 << 32) - 2  # most rows of a table


class TaggedDocument(NamedTuple):
    """A document: its words, and the tags that name its vector."""

    words: List[str]
    tags: List[Any]


class Doc2Vec(Word2Vec):
    """Vectors of documents, as gensim.models.Doc2Vec trains them.

        model = sptx.Doc2Vec([sptx.TaggedDocument(["some", "words"], ["name"]), ..], vector_size=100, min_count=5, epochs=10)
        model.dv.most_similar("name"); model.infer_vector(["new", "words"])

    documents       an iterable of objects with `words` and `tags`, read once; corpus_file: a file of a document a line, whose tag is
                    the number of its line, from 0
    tags            a list: an integer is the number of a row of dv, as in gensim (dv.vectors[7] is dv[7], and there are rows for all
                    integers up to the highest tag, also for those that no document has); texts have the rows behind them
    dm              1: PV-DM, the mean (dm_mean=0: the sum) of a document's vector and its window's predicts a word; 0: PV-DBOW, the
                    document's vector alone predicts its words
    dbow_words      1, with dm=0: words have trained vectors, too
    all else        as in sptx.Word2Vec

    dv              the documents' vectors by tag: sptx.KeyedVectors
    wv              the words' vectors; with dm=0 and dbow_words=0 they stay as they began, as in gensim

    A document with several tags is trained once for each tag. With dm=0 that is what gensim does. With dm=1 gensim takes the mean of all
    its tags and the window; here a window has one tag at a time, and the words of a document with three tags are trained three times as
    often. dm_concat, dv and dv_mapfile are not supported: they raise NotImplementedError, which says what to do instead.
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
        self._highest = -1               # highest tag that is an integer
        self._texts: Dict[Any, int] = {}  # the other tags, numbered by first occurrence
        self._trained: Any = numpy.zeros(0, bool)  # for each row of dv: whether the last run has it
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
        known = [self._name(word).decode() for word in doc_words if word in self.wv.key_to_index]
        return self._asked.infer(known, epochs or self.epochs, self.alpha if alpha is None else alpha,
                                 self.min_alpha if min_alpha is None else min_alpha)

    def similarity_unseen_docs(self, doc_words1: Iterable[str], doc_words2: Iterable[str], alpha: Optional[float] = None,
                               min_alpha: Optional[float] = None, epochs: Optional[int] = None) -> float:
        """Returns the cosine of two documents' vectors, as infer_vector() computes them."""
        a, b = (self.infer_vector(words, alpha, min_alpha, epochs) for words in (doc_words1, doc_words2))
        return float(a @ b / ((numpy.linalg.norm(a) * numpy.linalg.norm(b)) or 1))

    def estimated_lookup_memory(self) -> int:
        """Estimates the bytes of the tags."""
        return 60 * len(self.dv) + 140 * len(self.dv)

    def save_word2vec_format(self, fname: Path, doctag_vec: bool = False, word_vec: bool = True, prefix: str = "*dt_",
                             fvocab: Optional[Path] = None, binary: bool = False) -> None:
        """Writes the words' vectors. With doctag_vec=True also writes the documents' vectors, named `prefix` + tag; with word_vec=False only
        these."""
        if word_vec:
            self.wv.save_word2vec_format(fname, fvocab, binary, len(self.wv) + len(self.dv) if doctag_vec else None)
        if doctag_vec:
            self.dv.save_word2vec_format(fname, fvocab, binary, prefix=prefix, write_header=not word_vec, append=word_vec, sort_attr="doc_count")

    # ---- documents, by the library ----

    _format = "documents"

    def _hand_over(self, sentences: Any, given: Any, grows: bool) -> None:
        """Passes the documents to the library, each with its first tag. given.others gets the further tags: (name, words)."""
        names: List[int] = []
        given.names = []

        def words() -> Iterable[Any]:
            for document in sentences:
                first, *others = self._names_of(document, grows)
                names.append(first)
                given.others += [(name, list(document.words)) for name in others]
                yield document.words

        for tokens, starts in walked(words(), self._plain, words_only=True):
            given.names.append(numpy.array(names, numpy.int64))
            given.corpus.sentences(tokens, starts, numbers(given.names[-1], "tags"))
            names.clear()
        if given.others and (self.dm or self.dbow_words):
            tell("some documents have several tags: each document is trained once for each of its tags, so that its words are trained as "
                 "often (dm=0 without dbow_words trains the tags alone)")

    def _names_of(self, document: Any, grows: bool) -> List[int]:
        """Returns the names, which are numbers, that a document's tags have in the library's run. grows: 1: new tags get a number."""
        try:
            words, tags = document.words, document.tags
        except AttributeError:
            raise TypeError("a document has words and tags, as a TaggedDocument; this is a %s: %.50r" % (type(document).__name__, document)) from None
        if not isinstance(tags, (list, tuple)):
            if isinstance(tags, (str, bytes)) or not isinstance(tags, Iterable):
                raise TypeError("a document's tags are a list, not a %s: wanted tags=[%.50r]" % (type(tags).__name__, tags))
            tags = list(tags)
        if not tags:
            raise ValueError("a document has no tag, so that no vector is its own: %.50r; wanted one, such as tags=[0]" % (words,))
        return [self._name_of(tag, grows) for tag in tags]

    def _name_of(self, tag: Any, grows: bool) -> int:
        """A tag that is an integer is its own name; other tags get numbers down from the highest number."""
        if isinstance(tag, (int, numpy.integer)):
            if tag > self._highest and grows:
                if tag >= _ROWS_MOST:
                    raise ValueError("the tag %d is the number of a row, and there are at most %d: str(tag) makes it a name" % (tag, _ROWS_MOST))
                self._highest = int(tag)
            if 0 <= tag <= self._highest:
                return int(tag)
            if tag < 0:
                raise ValueError("the tag %d is negative, and an integer is the number of a row: str(tag) makes it a name" % tag)
        elif grows:
            return _TEXTS - self._texts.setdefault(tag, len(self._texts))
        elif tag in self._texts:
            return _TEXTS - self._texts[tag]
        raise ValueError("the tag %.50r is not in the vocabulary: build_vocab(documents, update=True) adds it" % (tag,))

    def _rows_of(self, names: Any) -> Any:
        """Returns the rows of dv that names [n] have."""
        return numpy.where(names <= self._highest, names, self._highest + 1 + _TEXTS - names)

    def _count(self, given: Any, update: bool, begins: bool = True, forget: Optional[str] = None) -> None:
        super()._count(given, update, begins, forget)
        if given.names is None:
            self._highest = max(self._highest, given.sentences - 1)
        if self._highest + 1 > 2 * given.sentences + 1000:
            tell("the highest tag is %d, and there are %d documents: dv has a row for every integer up to it, while a tag that is a text "
                 "gets one row" % (self._highest, given.sentences))
        texts = len(self.dv.key_to_index)
        ints, rows = len(self.dv) - texts, self._highest + 1 + len(self._texts)
        vectors, trained = numpy.random.default_rng(self.seed).random((rows, self.vector_size), numpy.float32), numpy.zeros(rows, bool)
        vectors = (2 * vectors - 1) / self.vector_size
        if update:  # rows of texts move behind the new integers
            places = numpy.concatenate([numpy.arange(ints), self._highest + 1 + numpy.arange(texts)])
            vectors[places], trained[places] = self.dv.vectors, self._trained
        self.dv, self._trained = KeyedVectors(self.vector_size), trained
        self.dv.vectors, self.dv.index_to_key = vectors, [*range(self._highest + 1), *self._texts]
        self.dv.key_to_index = {tag: self._highest + 1 + number for tag, number in self._texts.items()}

    def _keys(self, *given: Any) -> Dict[str, Any]:
        return {**super()._keys(*given), "examples.mode": "user" if self.sg else "cbow", "examples.words": bool(self.sg and self.dbow_words)}

    def _train(self, given: Any, *others: Any) -> None:
        if given.names is None:  # a file's documents are named by the numbers of their lines
            self._name_of(given.sentences - 1, False)
            given.names = [numpy.arange(given.sentences)]
        self._give_rest(given, given.others)
        rows = self._rows_of(numpy.concatenate(given.names))
        absent = self._trained.copy()
        absent[rows] = False  # the run keeps these rows, too, and the next one begins with them
        ints = self._highest + 1
        self._give_rest(given, [(row if row < ints else _TEXTS - (row - ints), []) for row in numpy.flatnonzero(absent).tolist()])
        super()._train(given, *others)

    def _give_rest(self, given: Any, documents: List[Any]) -> None:
        """Adds documents, each a pair (name, words), and empties their list."""
        for tokens, starts in walked((words for _, words in documents), self._plain, words_only=True):
            names = numpy.array([name for name, _ in documents[:len(starts) - 1]], numpy.int64)
            given.corpus.sentences(tokens, starts, numbers(names, "tags"))
            given.names.append(names)
            del documents[:len(starts) - 1]

    def _take(self, run: Run, rows: Any) -> None:
        if self.dm or self.dbow_words:
            super()._take(run, rows)
        else:
            self._take_contexts(run, rows)
            self.wv._untrained = ("dm=0 trains the documents' vectors alone, so these words' vectors are as they began and their cosines say "
                                  "nothing; dbow_words=1 trains words, too")
        names = numpy.array([int(name[len("list:"):]) for name in run.lists], numpy.int64)
        places = self._rows_of(names)
        self.dv.vectors[places], self._trained[places] = run.target[len(run):len(run) + len(names)], True
        self.dv.fill_norms(force=True)
        self._asked = None

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_asked": None}

    def __repr__(self) -> str:
        return "Doc2Vec<%s,d%d,w%d,mc%s>" % ("dm/m" if self.dm else "dbow+w" if self.dbow_words else "dbow", self.vector_size, self.window,
                                             self.min_count)

    get_latest_training_loss = refused("get_latest_training_loss() of documents is not there: gensim's Doc2Vec has none either")
