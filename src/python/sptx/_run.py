"""Run: opens a finished run of the sptx-w2v program."""

import ctypes
import html
import os
from collections.abc import Sequence
from typing import Any, Iterable, Iterator, List, Optional, Tuple, Union

import numpy

from . import _judged, _library
from ._asked import NONE, Asked, places_for, table_of
from ._corpus import is_token, name_of, strings
from ._context import Context, Handle, context_for, count_of, text_of
from ._errors import Error
from ._features import as_file, words_of
from ._library import InferOptions, NearestOptions, library
from ._recommend import answers, infer, is_table, lists_of, recommend
from ._table import path_of
from ._views import HalfRows, NumberedRows, Rows, rows_of


_WORDS = 1 << 16  # number of words that are read at a time


class Words(Sequence):
    """The words of a run by row, most frequent first: a sequence of str. Bytes that are not UTF-8 become surrogate escapes."""

    def __init__(self, run: "Run", rows: range) -> None:
        self._run = run
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            rows = self._rows[row]
            return self._run._words_of(rows)[0] if rows.step == 1 else [self._run._word(at) for at in rows]
        return self._run._word(self._rows[row])  # negative rows count from the end; IndexError past the last row

    def __iter__(self) -> Iterator[str]:
        return (word for first in range(0, len(self), _WORDS) for word in self[first:first + _WORDS])

    def __contains__(self, word: Any) -> bool:
        found = ctypes.c_uint64()
        return is_token(word) and self._run._find(word, found) is None and found.value in self._rows

    def index(self, word: Any, *_: Any) -> int:
        return self._rows.index(self._run.row(word))

    def __repr__(self) -> str:
        few = ", ".join(repr(word) for word in self[:3])
        return "<%d words: %s%s>" % (len(self), few, ", .." if len(self) > 3 else "")


def _name(name: Any) -> Any:
    if not is_token(name):
        raise TypeError("list= is the name of one list, not a %s; lists= takes several" % type(name).__name__)
    return name


class Run(Asked):
    """A finished run, or one checkpoint of it.

        run = sptx.Run("runs/my")
        run.words[0], run.target[0]          # the most frequent word and its vector
        run["sin"]                           # its vector, [dim]
        run.nearest("sin", k=10)             # [("cos", 0.88), ..]
        run.recommend(["sin", "cos"], k=10)  # what suits a list of them: [("tan", 0.83), ..]
        run.analogy("paris", "france", "rome")   # paris is to france as rome is to ..: [("italy", 0.71), ..]
        run.evaluate(pairs="ws353.txt")      # {"ws353": {"rho": 0.68, "covered": 320, "total": 353}}
        run.export("my.bin", "word2vec-bin")

    path    a run directory (its newest checkpoint is read), or one checkpoint in it; or a file of fastText (.bin), word2vec (binary
            or text) or GloVe (text). Files of word2vec and GloVe have one table, which is used as both target and context
    device  device on which nearest() and recommend() search: "auto", "cpu", "cuda", "cuda:1", or an sptx.Context

    If lists have rows of their own (examples.mode = user), these follow the rows of all items. `words`, len() and all questions
    are about items only; `lists` has the lists' names, and lists=True includes their rows in a question.

    table= names the table that answers: "target", "context", "sum" (target plus context row), "normsum" (the sum of both
    rows, each scaled to unit length first), or "propagated" (normsum, spread over the run's graph). None is the default for the
    run's data: target for words and items of lists; context for items whose lists have rows of their own; sum for citations and
    links (examples.mode = adjacency); propagated for nodes of graphs, or normsum if the graph has more than 4 million nodes and
    arcs.

    The two tables, `target` and `context`, are mapped, not read: they use no memory until they are accessed, and may be
    larger than memory. They are read-only, and stay valid after the run is closed.

    If words share rows of their n-grams (examples.subwords), an unseen word has a vector, too, the mean of its n-grams' vectors:
    in run["unseen"], nearest(), most_similar() and analogy(). In `target`, the rows of n-grams follow those of the words, and the
    row of a word is only one summand of its vector; vectors() returns the whole vector.

    Pickling a run stores its path; unpickling opens the run again. After a fork (workers of a DataLoader) the child opens the run
    again at its first query if the run is on the CPU; a run on the GPU raises RuntimeError in the child.

    Raises sptx.Error if there is no such run or its files are incomplete; KeyError for an unknown word.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], device: Any = "auto") -> None:
        self._handle: Optional[Handle] = None
        self._has_items = False  # new items were added, or looked for
        self._path = os.fspath(path)
        self._where = os.path.abspath(path_of(path)) if os.fspath(path) else b""  # absolute: os.chdir() does not change it
        self._device = "auto" if isinstance(device, Context) else str(device)
        self._begin(context_for(device))

    def _begin(self, context: Context) -> None:
        handle = Handle(context, library.sptx_run_close)
        context.call(library.sptx_run_open, context._handle, self._where, ctypes.byref(handle.pointer))
        self._shape = int(library.sptx_run_items(handle.pointer)), int(library.sptx_run_dim(handle.pointer))
        self._rows = int(library.sptx_run_rows(handle.pointer))
        self._context, self._handle = context, handle

    def __len__(self) -> int:
        """Number of words, or items."""
        return self._shape[0]

    @property
    def dim(self) -> int:
        """Number of columns."""
        return self._shape[1]

    @property
    def words(self) -> Words:
        """The words by row, most frequent first: a sequence of str."""
        self._open()
        return Words(self, range(len(self)))

    @property
    def about(self) -> str:
        """What the run's data was taken for, as the command and fit() say it: "columns    list = user, item = film, rating = none of 3;
        commas, a header". Empty for text, and for files of other programs."""
        for folder in (self._path, os.path.dirname(os.path.abspath(self._path))):
            try:
                with open(os.path.join(os.fsdecode(folder), "config.ini"), encoding="utf-8", errors="surrogateescape") as file:
                    return next((line[2:].rstrip("\n") for line in file if line.startswith("# columns    ")), "")
            except OSError:
                continue
        return ""

    def _key(self, section: str, key: str) -> str:
        """Returns the value of a key of the run's config.ini, with which it was trained; the default if that file is lost."""
        return library.sptx_run_key(self._open().pointer, section.encode(), key.encode()).decode("utf-8", "surrogateescape")

    @property
    def lists(self) -> Words:
        """Names of the lists that have rows of their own, "list:NAME", by row; in a run of triples, names of the relations,
        "relation:NAME", then "relation:NAME^-1": a sequence, empty if there are none."""
        self._open()
        return Words(self, range(len(self), self._rows))

    @property
    def counts(self) -> Any:
        """How often the corpus contains each word, uint64 [words]."""
        return self._words_of(range(len(self)))[1]

    @property
    def target(self) -> Union[Rows, HalfRows]:
        """The target vectors in place, [words and lists x dim]: what one usually means by the words' vectors. Read-only.

        Where lists have rows of their own (examples.mode = user, which lists and pairs are trained with by themselves), items
        are trained as contexts alone, and this is [lists x dim]: run.target[run.row("list:NAME")] is a list's vector, and
        IndexError is raised for an item, whose vector is that of `context`. Runs of earlier versions, and those with
        examples.own below 1, have target rows of items, too; vectors() takes what was trained.

        With model.precision = bfloat16 this is an sptx.HalfRows: an index gives float32, of the rows that it names.
        """
        return self._view("target")

    @property
    def context(self) -> Union[Rows, HalfRows]:
        """The context vectors in place, [words x dim]: no list is a context, but runs of version 1.0 have rows for lists, too."""
        return self._view("context")

    def __contains__(self, word: Any) -> bool:
        return is_token(word) and self._find(word) is None

    def row(self, word: Any) -> int:
        """Returns the row of a word. KeyError for an unknown word; it suggests the most similar one."""
        found = ctypes.c_uint64()
        said = self._find(word, found)
        if said is not None:
            raise KeyError(said)
        return found.value

    def vector(self, word: str) -> Any:
        """Returns a copy of a word's vector, float32 [dim], with the values of vectors(). KeyError for an unknown word."""
        return self.vectors([word])[0]

    def vectors(self, words: Optional[Iterable[str]] = None, table: Optional[str] = None, lists: bool = False) -> Any:
        """Copies of words' vectors, float32 [words x dim]: what `sptx-w2v export` writes. KeyError for an unknown word.

            run.vectors(["sin", "cos"]) @ run.vectors(["tan"])[0]
            run.vectors([3, 4])              # 3 is the word "3"

        words: None: all, by row, and with lists=True those of lists behind them. table: "target", "context", "sum",
        "normsum" or "propagated"; None: what suits the run. Where lists have rows of their own (examples.mode = user), a list is
        trained as a target alone and an item, but with examples.own below 1, as a context alone: that vector stands for it in every
        table. With examples.own = 0 lists have none, and sptx.Error is raised for one. A vector that was never trained adds nothing
        to a sum.
        """
        if is_token(words):
            raise TypeError("words are several, as a list; %r is one" % (words,))
        name, handle = table_of(table), self._open()
        if words is None:
            return self._vectors(None, int(library.sptx_run_vector_rows(handle.pointer)) if lists else len(self), name)
        return self._asked_vectors(list(words), name)[1]

    def nearest(self, query: Any, k: int = 10, table: Optional[str] = None, lists: bool = False, metric: str = "cosine") -> Any:
        """The k words whose vectors are most similar, best first, with the similarities: [("cos", 0.88), ..].

        query: a word (3 is the word "3"), which is left out of the results; a vector [dim]; or a list of n words or an array
        [n x dim], which return a list of n answers. An unknown word raises KeyError, a word without a trained vector in the table
        sptx.Error. table: "target", "context", "sum", "normsum" or "propagated"; None: what suits the run. lists=True: rows of
        lists may be results, too. metric: "cosine", or "dot" (the dot product).
        """
        if is_token(query):
            return self.nearest([name_of(query)], k, table, lists, metric)[0]
        if not isinstance(query, numpy.ndarray):
            query = list(query)
        if _are_words(query):
            own, asked = self._asked_vectors(query, table_of(table), asking=True)
            self._check_kinds(query, own, lists)
            return self._answers(*self.search(asked, k, own, table, lists, metric))
        asked = numpy.asarray(query)
        found = self._answers(*self.search(asked if asked.ndim > 1 else asked[None], k, None, table, lists, metric))
        return found if asked.ndim > 1 else found[0]

    def _check_kinds(self, words: List[Any], rows: Any, lists: bool) -> None:
        """In a run of triples: raises if an entity would be compared with relations, or a relation with entities."""
        if len(self) == self._rows or not self.lists[-1].startswith("relation:"):
            return
        for word, row in zip(words, rows):
            if (row >= len(self)) != bool(lists):
                raise ValueError("%.100r is %s, and those are compared with each other: lists=%s"
                                 % (word, *(("an entity", False) if lists else ("a relation", True))))

    def search(self, queries: Any, k: int = 10, excluded: Any = None, table: Optional[str] = None, lists: bool = False,
               metric: str = "cosine") -> Tuple[Any, Any]:
        """The k most similar rows of each of n queries [n x dim]: rows uint32 [n x k], best first, 4294967295 where fewer are
        left, and similarities float32 [n x k]. excluded: [n] a row that each query may not find, or None. table, lists,
        metric: as of nearest().
        """
        name, handle = table_of(table), self._open()
        k = min(count_of(k, "k", 32), self._rows if lists else len(self))
        asked = numpy.ascontiguousarray(queries, numpy.float32)
        if asked.ndim != 2 or asked.shape[1] != self.dim:
            raise ValueError("queries have the shape %s, wanted (n, %d)" % (asked.shape, self.dim))
        if not numpy.isfinite(asked).all():
            raise ValueError("queries hold infinity or NaN")
        banned = None
        if excluded is not None:
            banned = numpy.asarray(excluded)
            if banned.dtype.kind not in "iu" or banned.shape != (len(asked),):
                raise ValueError("excluded is %s of the shape %s, wanted a row for each of %d queries" %
                                 (banned.dtype, banned.shape, len(asked)))
            banned = numpy.where((banned < 0) | (banned >= self._rows), NONE, banned).astype(numpy.uint32)
        rows, scores = places_for(len(asked), k)
        options = NearestOptions(ctypes.sizeof(NearestOptions), name, text_of(metric, "metric"),
                                 None if banned is None else banned.ctypes.data, bool(lists))
        self._context.call(library.sptx_run_nearest, handle.pointer, asked.ctypes.data, len(asked), ctypes.byref(options), k,
                           rows.ctypes.data, scores.ctypes.data)
        return rows, scores

    def recommend(self, items: Optional[Iterable] = None, k: int = 20, score: Optional[str] = None, seen: bool = False,
                  among: Any = 0, *, list: Any = None, lists: Optional[Iterable] = None) -> Any:
        """The k items that suit a list of items best, best first, with their scores: what `sptx-w2v recommend` answers.

            run.recommend(["milk", "bread"], k=5)                       # [("butter", 0.71), ..]
            run.recommend(list="13")                                    # for a list that the run was trained on, by its name
            run.recommend(lists=["13", "40", ["milk", "bread"]])        # for several lists in one call: a list of answers

        Give exactly one of items, list and lists:
        items   items of one list, each a str, bytes or int as in the training data. Unknown items are skipped; KeyError if all are
                unknown. An item that is given twice counts twice.
        list    the name of a list (or paper, or node) that the run was trained on. Its trained row answers, and the items that it
                had in training are not recommended. KeyError if the run has no such list.
        lists   several lists, each a name or an iterable of items. A list without any known item gets an empty answer. Or a frame of two
                columns, list and item (an answer for each list, in the order of its first row); a frame of one column of lists; a
                sparse matrix, whose rows are lists and whose columns are the items 0, 1, 2 ..

        If the run keeps a row for each list (examples.mode = user), a new list is folded in: the library computes the row that
        training with the run's loss would give it; rows of items do not change. Pass many lists in one call: it uses all threads.

        score: how items are scored: "target", "context", "context-cosine", "normsum", "sum", "context-context", "user" or
        "user-cosine" (`sptx-w2v help recommend` explains each); None: the one that suits the run's training.
        seen: True: items of a list may be recommended for it. among: items that may be recommended; or a number n: the n most
        frequent items; 0: all items; "new": only new items (add_items()).
        """
        if (items is None) + (list is None) + (lists is None) != 2:
            raise TypeError("recommend wants an iterable of items, list= or lists=, and only one of the three")
        if is_token(items):
            raise TypeError("items are several words, as a list of str; %r is one" % (items,))
        if is_table(items):
            raise TypeError("items are those of one list, and a %s has several: pass it as lists=" % type(items).__name__)
        if lists is not None:
            asked = lists_of(lists)
            found, looked = recommend(self, asked, k, score, seen, among)
            if found is None and is_table(lists) and looked.unknown:
                raise KeyError("none of the items is known: %s" % looked.unknown)
            return [[] for _ in asked] if found is None else found
        found, looked = recommend(self, [items] if list is None else [_name(list)], k, score, seen, among)
        if found is None:
            raise KeyError(looked.unknown or "no item is given")
        return found[0]

    def add_items(self, features: Any = None, *, lists: Any = None, words: Optional[Iterable[str]] = None, share: Optional[float] = None) -> int:
        """Lets recommend() and evaluate() answer with items that no list contains yet, by their features, and for people who were not trained;
        nearest() and vector() know new items and features by name ("genre:noir"). Returns the number of new items.

            run.add_items(frame)                                     # a column of names, and columns of categories, numbers, several values
            run.add_items({"film 7": ["noir", "1947"], ..})          # also of the items that the run was trained on
            run.recommend(["milk", "bread"], among="new")
            run.add_items(lists=people)                              # run.recommend(list="a new person")

        features  of items: a path, a frame, a dict {name: features}, or a sparse matrix items x features; None: the file that the run was trained
                  with (corpus.item_features, or item_features= of fit()), which recommend() reads by itself. It must have the trained items, too:
                  by them the library learns what a feature means. Training itself is not changed
        lists     likewise features of lists (people), also of trained ones; None: the run's own (corpus.list_features, user_features=)
        words     columns whose words are features each, such as ["title"]
        share     which share of the first 20 places new items take on average, 0 to 1; None: 0.03, or 0.1 if features also find trained items
                  better; less if there are few new ones or if features tell nothing (0.01, and a warning)

        A later call replaces what an earlier one has added; if its data is refused, that stays.
        """
        handle, added = self._open(), (ctypes.c_uint64 * 2)()
        if share is not None and not 0 <= share <= 1:
            raise ValueError("share is %r, wanted a number from 0 to 1" % (share,))
        with as_file(features) as items, as_file(lists) as people:
            self._context.call(library.sptx_run_add_features, handle.pointer, items, people, words_of(words), -1.0 if share is None else float(share),
                               added)
        self._has_items = True
        return int(added[0])

    def _meet_items(self) -> None:
        """Reads the run's own file of features, if it has one, before the first question that may be about new items."""
        if not self._has_items:
            self._has_items = True
            if self._key("corpus", "item_features") or self._key("corpus", "list_features"):
                self.add_items()

    def tails(self, head: Any, relation: Any, k: int = 10, seen: bool = False) -> Any:
        """In a run of triples: the k best tails of a head and a relation, best first, with their scores.

            run.tails("ulm", "in")                      # [("germany", 3.4), ..]
            run.tails(["ulm", "bern"], "in", k=1)       # for several heads in one call: a list of answers

        head: an entity, or several; relation: one for all heads, or one for each head. The score is the dot product of the tail's
        row with the product of the other two rows; with train.product = rotation or translation, minus the distance of the two. seen:
        True: tails of triples that the run was trained on may be answers. KeyError for an unknown name.
        """
        return answers(self, head, relation, k, False, seen)

    def heads(self, relation: Any, tail: Any, k: int = 10, seen: bool = False) -> Any:
        """In a run of triples: the k best heads of a relation and a tail, in the form of tails(). The run must be trained with
        triples.reciprocal = yes.

            run.heads("in", "germany")                  # [("ulm", 2.9), ..]
        """
        return answers(self, tail, relation, k, True, seen)

    def score(self, triples: Any, validation: Any = None, columns: Any = None) -> Any:
        """In a run of triples: the scores of triples, float64 [n], NaN for one with a name that the run does not know. With validation=
        (scores, probabilities), as `sptx-w2v score` computes them.

            run.score([("ulm", "in", "germany"), ("ulm", "in", "france")])     # array([3.2, -1.4])
            run.score(("ulm", "in", "germany"))                                # 3.2
            scores, probabilities = run.score("asked.tsv", validation="valid.txt")

        triples: one (head, relation, tail), or several: a file, or data as for fit(format="triples"). The score is that of the tail in
        tails(); if the run was trained with triples.reciprocal = yes, the mean of this and of the head's in heads().
        validation: true triples that the run was not trained on, likewise. A probability is one among as many true triples as false
        ones whose heads and tails are drawn. The file may have a fourth column, 1 for true triples and 0 or -1 for false ones, to which
        the probabilities are then fitted. columns: names of the columns of frames.

        Warns of unknown names. ValueError if the run was not trained on triples; sptx.Error if it was trained on walks over them, if there are no
        triples, or if it knows no triple of validation.
        """
        if not self.relations and self._key("corpus", "format") != "triples":
            raise ValueError("'%s' was not trained on triples (corpus.format = triples), and knows no relations" % os.fsdecode(self._path))
        one = isinstance(triples, tuple) and len(triples) == 3 and all(map(is_token, triples))
        asked = _judged.triples(self, [triples] if one else triples, "triples", columns)
        by = None if validation is None else _judged.triples(self, validation, "validation", columns)
        options = _library.ScoreOptions(ctypes.sizeof(_library.ScoreOptions), None if by is None else by.pointer)
        found, count = ctypes.POINTER(_library.Scored)(), ctypes.c_uint64()
        self._ask(library.sptx_run_score, asked.pointer, ctypes.byref(options), ctypes.byref(found), ctypes.byref(count))
        scored = [(each.score, each.probability) for each in found[:count.value]]
        scores, probabilities = scored[0] if one else numpy.array(scored, numpy.float64).reshape(-1, 2).T.copy()
        return scores if by is None else (scores, probabilities)

    @property
    def relations(self) -> List[str]:
        """The names of the relations of a run of triples, by row; empty for other runs, also of walks over triples, in which relations are
        words, "relation:NAME"."""
        count = int(library.sptx_run_relations(self._open().pointer))
        return [name[len("relation:"):] for name in self.lists[:count]]

    def infer(self, words: Optional[Iterable] = None, epochs: int = 0, lr: float = 0, min_lr: float = 0, *,
              documents: Optional[Iterable] = None) -> Any:
        """The row of a document, or of a list of items, that the run was not trained on, float32 [dim]: what training would make of it with
        all other rows fixed. For runs of documents (corpus.format = documents) and runs whose lists have rows (examples.mode = user).

            run.infer("some words of a new text".split())
            run.infer(documents=[["some", "words"], ["others"]])   # several in one call, on all threads: [documents x dim]
            run.infer(["milk", "bread"])                           # the row by which recommend() scores this list

        The same words always give the same bytes. Words that the run does not know are skipped; without any other the row is zeros, and
        an SptxWarning counts such documents. epochs: passes over the document; 0: as many as the run made. lr, min_lr: the first and the
        last learning rate; lr=0: the run's. Lists have neither."""
        if (words is None) == (documents is None):
            raise TypeError("infer wants the words of a document, or documents=, and only one of the two")
        if is_token(words):
            raise TypeError("words are several, as a list of str; %r is one" % (words,))
        asked = [words] if documents is None else [*documents]
        options = InferOptions(ctypes.sizeof(InferOptions), count_of(epochs, "epochs", 32), float(lr), float(min_lr))
        rows = infer(self, asked, options)
        return rows if words is None else rows[0]

    def to_gensim(self, table: Optional[str] = None, lists: bool = False) -> Any:
        """The words' vectors(), of the same table and rows, as gensim.models.KeyedVectors, with the words' counts. Needs gensim;
        copies the vectors.
        """
        from gensim.models import KeyedVectors

        vectors = KeyedVectors(self.dim)
        values = self.vectors(table=table, lists=lists)
        words, counts = self._words_of(range(len(values)))
        vectors.add_vectors(words, values)
        for word, count in zip(words, counts):
            vectors.set_vecattr(word, "count", int(count))
        return vectors

    def to_arrow(self, table: Optional[str] = None, lists: bool = False) -> Any:
        """A pyarrow.Table: word (string), count (uint64), vector (a list of dim float32), of the table and rows that vectors()
        has. Needs pyarrow; copies the vectors. Bytes of words that are not UTF-8 become question marks.
        """
        import pyarrow

        values = self.vectors(table=table, lists=lists)
        words, counts = self._words_of(range(len(values)))
        return pyarrow.table({
            "word": pyarrow.array([word.encode("utf-8", "replace").decode() for word in words], pyarrow.string()),
            "count": pyarrow.array(counts),
            "vector": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(values.reshape(-1)), self.dim),
        })

    def close(self) -> None:
        """Closes the run's files, as soon as no view of them is left. A closed run may be closed again."""
        if self._handle is not None and self._context.gpu is not None:
            self._context.check_process()
        self._handle = None

    def __enter__(self) -> "Run":
        self._open()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle is None:
            return "sptx.Run(closed)"
        return "sptx.Run(%r: %d words x %d)" % ((self._path,) + self._shape)

    def _repr_html_(self) -> str:
        """HTML that a notebook shows for the run: its most frequent words, with their counts."""
        rows = ["<tr><td>%s</td><td>%d</td></tr>" % (html.escape(_printable(word)), count)
                for word, count in zip(*self._words_of(range(min(_SHOWN, len(self)))))]
        return ("<p>sptx.Run <b>%s</b>: %d words x %d</p><table><thead><tr><th>word</th><th>count</th></tr></thead><tbody>%s</tbody></table>"
                % (html.escape(_printable(os.fsdecode(self._path))), *self._shape, "".join(rows)))

    def __reduce__(self) -> Any:
        self._open()
        return Run, (os.fsdecode(self._where), self._device)

    # ---- by the library ----

    def _answers(self, rows: Any, scores: Any) -> List[List[Tuple[str, float]]]:
        """Converts found rows [n x k] to their words."""
        return [[(self._word(int(row)), float(score)) for row, score in zip(*of_one) if row != NONE] for of_one in zip(rows, scores)]

    def _open(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise ValueError("the run is closed")
        if self._context.is_parents and self._context.gpu is None:
            return self._open_again()
        self._context.check_process()
        return handle

    def _open_again(self) -> Handle:
        """Opens the run again in a forked child: the library's threads exist only in the parent. The mapped tables stay valid."""
        before = self._shape, self._rows
        self._begin(context_for("cpu"))
        if (self._shape, self._rows) != before:
            raise Error("'%s' holds another run than before the fork" % os.fsdecode(self._path))
        return self._handle  # type: ignore[return-value]

    def _view(self, table: str) -> Union[Rows, HalfRows]:
        handle = self._open()
        view = _library.View(size=ctypes.sizeof(_library.View))
        self._context.call(library.sptx_run_view, handle.pointer, table.encode(), ctypes.byref(view))
        rows = rows_of(handle, view, None, writable=False)
        numbered = rows.view(NumberedRows) if view.first else rows
        return HalfRows(numbered) if view.dtype else numbered

    def _words_of(self, rows: range) -> Tuple[List[str], Any]:
        """Returns the words of consecutive rows, and how often the corpus contains each, uint64 [rows]."""
        handle, count = self._open(), len(rows)
        offsets, counts, found = numpy.empty(count + 1, numpy.uint64), numpy.empty(count, numpy.uint64), _library.Tokens()
        self._context.call(library.sptx_run_words, handle.pointer, rows.start if count else 0, count, offsets.ctypes.data, counts.ctypes.data,
                           ctypes.byref(found))
        first, end = int(offsets[0]), int(offsets[-1])
        return strings(ctypes.string_at(found.data + first, end - first) if count else b"", count, offsets.tolist()), counts

    def _vectors(self, rows: Any, count: int, table: Optional[bytes]) -> Any:
        """Copies the vectors of these rows, uint64 [count]; None: of the first `count` rows."""
        handle = self._open()
        out = numpy.empty((count, self.dim), numpy.float32)
        self._context.call(library.sptx_run_vectors, handle.pointer, table, None if rows is None else rows.ctypes.data, count,
                           out.ctypes.data)
        return out

    def _asked_vectors(self, words: List[str], table: Optional[bytes], asking: bool = False) -> Tuple[Any, Any]:
        """Returns the rows int64 [n] and the vectors [n x dim] of words; the row of one never seen, whose n-grams make its vector,
        is -1. KeyError for a word that has no vector. asking: it is said where one was never trained in the table."""
        rows, out = numpy.full(len(words), -1, numpy.int64), numpy.empty((len(words), self.dim), numpy.float32)
        for at, word in enumerate(words):
            found = ctypes.c_uint64()
            said = self._find(word, found)
            if said is None and found.value < self._rows:
                rows[at] = found.value
            elif not self._unseen(name_of(word), table, out[at]):
                raise KeyError(said)
            if asking and rows[at] >= 0:
                self._context.call(library.sptx_run_check_trained, self._open().pointer, table, int(rows[at]))
        known = rows >= 0
        out[known] = self._vectors(rows[known].astype(numpy.uint64), int(known.sum()), table)
        return rows, out

    def _unseen(self, word: str, table: Optional[bytes], out: Any) -> bool:
        """Writes to out [dim] the vector of a feature or a new item, or the mean of a word's n-gram vectors. False if the word has none."""
        self._meet_items()
        try:
            name = word.encode("utf-8", "surrogateescape")
            if b"\0" in name:
                return False
            self._context.call(library.sptx_run_unseen, self._open().pointer, table, name, out.ctypes.data, usage=KeyError)
        except (KeyError, UnicodeEncodeError):
            return False
        return True

    def _word(self, row: int) -> str:
        handle = self._open()  # a local variable keeps a run that is closed meanwhile open until the word is read
        length = ctypes.c_uint64()
        word = library.sptx_run_word(handle.pointer, row, ctypes.byref(length))
        return ctypes.string_at(word, length.value).decode("utf-8", "surrogateescape")

    def _find(self, word: Any, found: Any = None) -> Optional[str]:
        """Looks a word up and stores its row in `found`. Returns None, or the error message if the run does not know the word.

        TypeError if `word` is not a token."""
        handle = self._open()
        if not is_token(word):
            raise TypeError("a word is a str, or what it was given as (bytes, an int), not a %s" % type(word).__name__)
        try:
            word = name_of(word)
            name = word.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return "%r is no word: it cannot be written in UTF-8" % word
        if b"\0" in name:
            return "%r is no word that can be looked for: it holds a NUL" % word
        try:
            self._context.call(library.sptx_run_find, handle.pointer, name,
                               ctypes.byref(ctypes.c_uint64() if found is None else found), usage=KeyError)
        except KeyError as error:
            return str(error.args[0])
        return None


_SHOWN = 10  # number of words that a notebook shows


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _are_words(query: Any) -> bool:
    """True if a query is a list of words (str, bytes or integers), False if it is a vector or a matrix."""
    if not len(query):
        return False
    return query.ndim == 1 and query.dtype.kind in "iuSUO" if isinstance(query, numpy.ndarray) else \
        is_token(query[0]) and not isinstance(query[0], (float, numpy.floating))
