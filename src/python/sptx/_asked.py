"""Questions to a finished run: similarities, analogies, evaluation, exports. Each is answered by the code of the program's command of that name,
so both give the same answers."""

import ctypes
import math
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy

from . import _judged, _library
from ._context import count_of, text_of
from ._corpus import is_token
from ._features import as_file, words_of
from ._library import library
from ._table import path_of

Path = Union[str, "os.PathLike[str]"]

NONE = 0xFFFFFFFF  # row number that means: no row was found


def table_of(table: Optional[str]) -> Optional[bytes]:
    """Returns a table's name as bytes for the library; None stays None."""
    if table is not None and not isinstance(table, str):
        raise TypeError("a table is a str or None, not a %s" % type(table).__name__)
    return None if table is None else table.encode("utf-8", "replace")


def places_for(count: int, k: int) -> Tuple[Any, Any]:
    """Returns arrays [count x k] to store an answer's rows and scores in."""
    return numpy.full((count, k), NONE, numpy.uint32), numpy.zeros((count, k), numpy.float32)


class Asked:
    """Base class of sptx.Run: the questions that need only vectors(), search() and the library's evaluation."""

    def __getitem__(self, word: Any) -> Any:
        """run["sin"]: a copy of a word's vector, float32 [dim]; run[["sin", "cos"]]: the vectors of several words, [n x dim], as from vectors().
        KeyError for an unknown word, TypeError for anything that is neither a word nor a list of words."""
        if is_token(word):
            return self.vector(word)
        if not isinstance(word, (list, tuple, numpy.ndarray)):
            raise TypeError("a run is asked for a word or a list of words, not for a %s" % type(word).__name__)
        return self.vectors(word)

    # ---- as gensim's KeyedVectors are asked ----

    def similarity(self, a: str, b: str, table: Optional[str] = None) -> float:
        """Returns the cosine of two words' vectors, -1 .. 1. KeyError for an unknown word."""
        x, y = self.vectors([a, b], table).astype(numpy.float64)
        lengths = math.sqrt(x @ x), math.sqrt(y @ y)
        return float(numpy.float32(x @ y / (max(lengths[0], 1e-12) * max(lengths[1], 1e-12))))

    def most_similar(self, positive: Any = (), negative: Any = (), topn: int = 10,
                     table: Optional[str] = None) -> List[Tuple[str, float]]:
        """The topn words nearest by cosine to the mean of the positive words' unit vectors and the negative words' negated unit vectors, best first,
        with the cosines: gensim's question and answer. Vectors count as they are, of any length.

            run.most_similar(positive=["king", "woman"], negative=["man"])

        positive, negative: a word, a vector [dim], or a list of these and of pairs (word or vector, weight). The weight of a pair
        counts as it is, and without one it is 1 for positive and -1 for negative. Words that are asked are not in the answer. KeyError for an unknown
        word, ValueError where nothing is given.
        """
        parts = _weighted(positive, 1.0) + _weighted(negative, -1.0)
        if not parts:
            raise ValueError("most_similar wants at least one word or vector in positive or negative")
        words = [key for key, _ in parts if is_token(key)]
        rows_of_words, vectors = self._asked_vectors(words, table_of(table), asking=True)
        own, of_words = {int(row) for row in rows_of_words if row >= 0}, iter(vectors)
        mean = numpy.zeros(self.dim, numpy.float64)
        for key, weight in parts:
            word = is_token(key)
            vector = numpy.asarray(next(of_words) if word else key, numpy.float64)
            if vector.shape != (self.dim,):
                raise ValueError("a vector has the shape %s, wanted (%d,)" % (vector.shape, self.dim))
            mean += vector * (weight / (numpy.linalg.norm(vector) or 1 if word else 1))
        topn = count_of(topn, "topn", 31)
        mean /= numpy.linalg.norm(mean) or 1
        rows, scores = self.search(mean[None], topn + len(own), [min(own)] if own else None, table)
        kept = numpy.isin(rows[0], list(own), invert=True)
        return self._answers(rows[:, kept][:, :topn], scores[:, kept][:, :topn])[0]

    # ---- by the library ----

    def analogy(self, a: str, b: str, c: str, k: int = 10, table: Optional[str] = None) -> List[Tuple[str, float]]:
        """The words d for which "a is to b as c is to d": the k words nearest by cosine to b - a + c of unit vectors, best first,
        with the cosines, as `sptx-w2v analogy` answers.

            run.analogy("paris", "france", "rome")     # [("italy", 0.71), ..]

        The three words are not in the answer. KeyError for an unknown word; sptx.Error for a list's row.
        """
        rows, scores = places_for(1, min(count_of(k, "k", 32), len(self)))
        if not all(word in self for word in (a, b, c)):
            return self.most_similar([b, c], [a], k, table)  # an unseen word has a vector but no row
        asked = numpy.array([self.row(word) for word in (a, b, c)], numpy.uint64)
        self._ask(library.sptx_run_analogy, table_of(table), asked.ctypes.data, rows.shape[1], rows.ctypes.data, scores.ctypes.data)
        return self._answers(rows, scores)[0]

    def evaluate(self, pairs: Union[Path, Sequence[Path]] = (), analogies: Union[Path, Sequence[Path]] = (),
                 held_out: Any = None, train: Any = None, groups: Optional[Path] = None, k: int = 20, *,
                 labels: Any = None, share: Union[float, Sequence[float]] = 0.5, edges: Any = None, triples: Any = None,
                 known: Any = None, labelled: Optional[Path] = None, thresholds: Optional[Path] = None, directed: bool = False, columns: Optional[Sequence[str]] = None, users: Any = None,
                 items: Any = None, restrict: int = 30000, met: int = 5, sample: Optional[int] = None,
                 format: Optional[str] = None, score: Optional[str] = None, table: Optional[str] = None) -> Dict[str, Any]:
        """Evaluates the vectors, as `sptx-w2v evaluate` does. Returns a dict whose keys are the files' names without ".txt", or
        whole paths if two files have the same name.

            run.evaluate(pairs="ws353.txt", analogies="questions.txt")
            # {"ws353": {"rho": .., "covered": .., "total": ..},
            #  "questions": {"accuracy": .., "semantic": .., "syntactic": .., "covered": .., "total": ..}}
            run.evaluate(train="train.txt", held_out="test.txt", k=20)
            # {"lists": {"recall": .., "ndcg": .., "hit": .., "lists": .., "unknown": .., "held_out": .., "trained": .., ..}}
            # in a run with item features {"lists": {"new items among all": {"recall": ..}, ..}}
            run.evaluate(train=frame, held_out=other_frame, columns=("user", "item"))
            run.evaluate(labels="cora.labels.tsv", share=[0.1, 0.5])
            # {"cora.labels.tsv": [{"share": 0.1, "micro": .., "micro_spread": .., "macro": .., ..}, {"share": 0.5, ..}]}
            run.evaluate(edges="held_out.tsv", known="train.tsv")
            # {"held_out.tsv": {"dot": {"auc": .., "mrr": .., "hits": ..}, "cosine": {..}, .., "links": .., "asked": ..}}
            run.evaluate(triples="test.txt", known="valid.txt")
            # {"test": {"mrr": .., "hits1": .., "hits3": .., "hits10": .., "mrr_tails": .., "mrr_heads": .., "triples": ..,
            #           "unknown": .., "mrr_known": .., "mrr_popular": .., "mrr_random": .., ..}}: triples with unknown names are misses,
            #           but not in "mrr_known", "hits1_known", ..; the last two are rankings without a model
            run.evaluate(labelled="test.tsv", thresholds="valid.tsv")
            # {"test.tsv": {"accuracy": .., "f1": .., "labelled": .., "true": .., "unknown": .., "accuracy_known": .., ..}}

        pairs, analogies    a file or several: lines of two words and a score; lines of four words
        train, held_out     the known items of each list, and the items that recommendations should find: files in the corpus's
                            format, or folders of them; or data as for fit(): a frame, a dict, a sparse matrix, lists of items. A
                            held-out item is skipped if train has it in the same list ("trained" counts these items), and a list
                            is skipped if train does not have it ("cold" counts these lists)
        columns             names of the columns of frames, as for fit()
        users, items        names of the rows and of the columns of a sparse matrix
        groups              a file of a word and its groups: {"NAME": [{"share": .., "chance": .., "asked": .., "rows": ..}, ..]}, a
                            dict for each column of groups
        labels              labels of nodes: a file with a node and its labels in each line, a dict or a Series {node: label or
                            labels}, pairs (node, label), or a frame of two columns
        share               labels: share of the labelled nodes that the regressions are trained on, 0..1; or several shares
        edges, known        held-out links of a graph, and the links that the run was trained on: files with two nodes in each line,
                            or data as for fit(format="graph"): two arrays, a frame, a networkx graph, pairs. Links with an unknown
                            node ("left_out" counts them) and links that were trained ("trained") are skipped
        triples, known      held-out triples, and further ones that are known to be true: files of head, relation, tail, or data as for
                            fit(format="triples"); of known ones also several files, a list of paths or "a.txt,b.txt". Other known
                            answers, and those of training, are left out of each ranking
        labelled            a file of head, relation, tail and 1 for a true triple, 0 or -1 for a false one: which of them are told by the
        thresholds          score of score(), with a threshold for each relation, which is chosen by such triples of another file
        directed            edges: links have a direction, and only their second nodes are ranked; always so if the run's graph is directed
        k                   places of an answer that count, of lists and groups
        restrict            analogies: only so many most frequent words take part; 0: all
        met, sample         groups: rows that the corpus has at least `met` times, and at most `sample` of them are asked (2000). triples:
                            the number of entities to rank among; None: all, or 10,000 if there are more than a million
        format, score       of lists: how the files are read and how items are scored; None: as they look, as suits the run
        table               None: what suits the run

        Raises sptx.Error if a file cannot be read, if nothing in it can be judged, or if most held-out items are in train=
        or most links were trained; ValueError if no test data is given. Warns if the run was trained on held-out items or triples.
        """
        if (train is None) != (held_out is None):
            raise ValueError("evaluate wants train= and held_out= together, or neither")
        pairs, analogies = _paths(pairs), _paths(analogies)
        if edges is None and (directed or (known is not None and triples is None)):
            raise ValueError("known= and directed= belong to edges=, which is wanted, too (known= also to triples=)")
        if edges is not None and triples is not None and known is not None:
            raise ValueError("known= belongs to edges= or to triples=, and both are given")
        if (labelled is None) != (thresholds is None):
            raise ValueError("evaluate wants labelled= and thresholds= together, or neither: thresholds are not chosen by the triples that are judged")
        shares = [float(one) for one in numpy.atleast_1d(share)]
        if not shares or sample == 0:
            raise ValueError("sample = 0 asks for nothing; None is the default" if shares else "0 shares are asked for, wanted at least 1")
        if not pairs and not analogies and all(one is None for one in (train, groups, labels, edges, triples, labelled)):
            raise ValueError("evaluate wants pairs=, analogies=, groups=, labels=, edges=, triples=, labelled=, or train= with held_out=")
        options = {"table": table_of(table), "k": count_of(k, "k", 32), "met": count_of(met, "met", 62), "directed": bool(directed),
                   "first": count_of(restrict, "restrict", 32), "sample": 0 if sample is None else count_of(sample, "sample", 32)}
        found = {}  # type: Any
        for path in pairs:
            found[_name_for(path, found)] = self._judge("pairs", _judged.file(path), **options)
        for path in analogies:
            found[_name_for(path, found)] = self._judge("analogies", _judged.file(path), **options)
        if train is not None and held_out is not None:
            both = [_judged.lists(self, data, what, columns, users, items, format)
                    for data, what in ((train, "train"), (held_out, "held_out"))]
            found["lists"] = self._judge("held_out", both[1], both[0], format=_text_or_none(format, "format"),
                                         score=_text_or_none(score, "score"), **options)
        if groups is not None:
            found[_name_for(groups, found)] = list(self._judge("groups", _judged.file(groups), **options).values())
        if labels is not None:
            found[_name_of(labels, "labels", found)] = list(self._judge(
                "labels", _judged.labels(self, labels, columns), shares=(ctypes.c_double * len(shares))(*shares),
                share_count=len(shares), **options).values())
        for data, measure, judged in ((edges, "edges", _judged.edges), (triples, "triples", _judged.triples)):
            if data is not None:
                both = [None if one is None else judged(self, one, what, columns) for one, what in ((data, measure), (known, "known"))]
                found[_name_of(data, measure, found)] = self._judge(measure, *both, **options)
        if labelled is not None:
            found[_name_for(labelled, found)] = self._judge("labelled", _judged.file(labelled), _judged.file(thresholds), **options)
        return found

    def export(self, path: Path, format: Optional[str] = None, table: Optional[str] = None, lists: bool = False,
               type: Optional[str] = None, columns: Optional[int] = None, measure: bool = False) -> Optional[Dict[str, float]]:
        """Writes the vectors to a file, with the bytes that `sptx-w2v export` writes. An old file at the path is replaced only when
        the new one is complete.

        format: "word2vec-bin", "word2vec-text", "glove-text", "npy", "fvecs", "fbin", "i8bin", "u8bin", "bvecs", "safetensors",
        "projector" or "fasttext" (its .bin); None: by the path's ending (.bin, .txt, .npy, .fvecs, .fbin, .i8bin, .u8bin, .bvecs,
        .safetensors, .tsv). table, lists: as of vectors().

        type: "f32"; "bf16" or "f16", half the bytes, for npy, fbin and safetensors; "int8" for npy, safetensors and i8bin; "uint8"
        for u8bin and bvecs; "binary", a bit a column, for npy, safetensors, u8bin and bvecs; None: the format's first of these.
        columns: number of principal axes to which rows are reduced. `sptx-w2v help export` says what is stored beside the file.

        Returns None, or with measure=True what is lost: {"recall": the share of the ten rows nearest to a float32 row that the
        file's rows find, "rescored": the same if 100 rows are found and then ordered by their float32 vectors}.

        Raises ValueError for an unknown format or type, sptx.Error if writing fails or the format cannot store one of the words.
        """
        if format is None:
            format = _format_of(path)
        recall = (ctypes.c_double * 2)()
        options = _library.ExportOptions(ctypes.sizeof(_library.ExportOptions), table_of(table), _text_or_none(type, "type"), bool(lists),
                                         0 if columns is None else count_of(columns, "columns", 32), 0, recall if measure else None)
        self._ask(library.sptx_run_export, text_of(format, "format"), path_of(path), ctypes.byref(options))
        return {"recall": recall[0], "rescored": recall[1]} if measure else None

    def report(self, path: Path, titles: Optional[Path] = None, top: int = 5000, search: int = 20000, table: Optional[str] = None,
               lists: bool = False, evaluations: Union[Path, Sequence[Path]] = (), labels: Optional[Path] = None,
               colour: Optional[str] = None, item_features: Any = None, words: Optional[Sequence[str]] = None) -> None:
        """Writes a single HTML page that shows the run, with the bytes that `sptx-w2v report` writes: curves, a map of the most
        frequent rows, their nearest rows, and the run's keys.

        titles: a file of lines "id TAB title". top: rows of the map, 1 .. 20000. search: number of rows for which the page lists the nearest rows.
        labels: a file of a row and its labels a line, by which the map is coloured; None: it is coloured by clusters.
        colour: a column of item_features, such as "genre": the map is coloured by each item's first value of it. item_features, words: as
        features and words of add_items(); None: the file that the run was trained with.
        evaluations: files that hold what `sptx-w2v evaluate` printed. table, lists: as of nearest().

        Raises ValueError for a top or search that is not a number of rows, sptx.Error where a file cannot be read or written.
        """
        files = [path_of(one) for one in _paths(evaluations)]
        options = _library.ReportOptions(
            ctypes.sizeof(_library.ReportOptions), os.fsencode(self._path), table_of(table),
            None if titles is None else path_of(titles), (ctypes.c_char_p * len(files))(*files), len(files),
            count_of(top, "top", 32), count_of(search, "search", 32), bool(lists),
            None if labels is None else path_of(labels), None if colour is None else colour.encode())
        with as_file(item_features) as options.features:
            options.words = words_of(words)
            self._ask(library.sptx_run_report, path_of(path), ctypes.byref(options))

    # ---- indexes of other libraries: they answer with row numbers, and run.words[row] is the word ----

    def to_usearch(self, table: Optional[str] = None, lists: bool = False, metric: Optional[str] = None, dtype: str = "f32") -> Any:
        """Returns a usearch.index.Index of the vectors: run.to_usearch().search(run["sin"], 10).keys. dtype: number type in which the index stores
        vectors: "f32", "bf16", "f16" or "i8". Needs usearch.

        For all three indexes, table and lists are those of vectors(). metric: "cosine" or "dot" (the inner product); None: the inner product for a
        run whose lists have rows of their own and were scored by dot products, with whose rows (run.vectors(lists=True)) its items are to be
        found; the cosine for other runs, as nearest() does.
        """
        from usearch.index import Index

        index = Index(ndim=self.dim, metric="cos" if self._by_cosine(metric) else "ip", dtype=dtype)
        rows = self.vectors(table=table, lists=lists)
        index.add(numpy.arange(len(rows), dtype=numpy.uint64), rows)
        return index

    def to_faiss(self, index: str = "Flat", table: Optional[str] = None, lists: bool = False, metric: Optional[str] = None) -> Any:
        """A faiss index of the vectors, trained where it needs training. index: what faiss.index_factory() makes: "Flat", "HNSW32",
        "IVF256,Flat". faiss has no cosine: with metric "cosine" the rows are scaled to length 1 and compared by inner products, so
        scale queries, too (faiss.normalize_L2). Needs faiss."""
        import faiss

        made = faiss.index_factory(self.dim, index, faiss.METRIC_INNER_PRODUCT)
        rows = self.vectors(table=table, lists=lists)
        if self._by_cosine(metric):
            faiss.normalize_L2(rows)
        if not made.is_trained:
            made.train(rows)
        made.add(rows)
        return made

    def to_hnswlib(self, table: Optional[str] = None, lists: bool = False, metric: Optional[str] = None, M: int = 16,
                   ef_construction: int = 200, ef: int = 100) -> Any:
        """Returns an hnswlib.Index of the vectors: run.to_hnswlib().knn_query(run["sin"], k=10)[0]. M: links of a row in hnswlib; ef_construction,
        ef: rows that it looks at for each row inserted, and for each query. Needs hnswlib."""
        import hnswlib

        rows = self.vectors(table=table, lists=lists)
        index = hnswlib.Index(space="cosine" if self._by_cosine(metric) else "ip", dim=self.dim)
        index.init_index(max_elements=len(rows), M=M, ef_construction=ef_construction, random_seed=1)
        index.add_items(rows, numpy.arange(len(rows)))
        index.set_ef(ef)
        return index

    def _by_cosine(self, metric: Optional[str]) -> bool:
        if metric not in (None, "cosine", "dot"):
            raise ValueError("metric = %r is neither 'cosine' nor 'dot'" % (metric,))
        if metric is None and len(self.lists):
            return self._key("train", "score") == "cosine"
        return metric != "dot"

    def _ask(self, function: Any, *arguments: Any) -> None:
        handle = self._open()
        self._context.call(function, handle.pointer, *arguments)

    def _judge(self, measure: str, data: Any, known: Any = None, **options: Any) -> Dict[str, Any]:
        """Returns a measure's numbers by name; the numbers of a part of the answer are in their own dict."""
        numbers, count = ctypes.POINTER(_library.Number)(), ctypes.c_uint64()
        asked = _library.EvaluateOptions(ctypes.sizeof(_library.EvaluateOptions), None if known is None else known.pointer, **options)
        self._ask(library.sptx_run_evaluate, measure.encode(), data.pointer, ctypes.byref(asked), ctypes.byref(numbers),
                  ctypes.byref(count))
        found: Dict[str, Any] = {}
        for number in numbers[:count.value]:
            of_part = found.setdefault(number.part.decode(), {}) if number.part else found
            is_count = not number.count and number.value == number.value
            of_part[number.name.decode()] = int(number.value) if is_count else number.value
        return found


_FORMATS = {".bin": "word2vec-bin", ".txt": "word2vec-text", ".npy": "npy", ".fvecs": "fvecs", ".fbin": "fbin",
            ".i8bin": "i8bin", ".u8bin": "u8bin", ".bvecs": "bvecs", ".safetensors": "safetensors", ".tsv": "projector"}


def _format_of(path: Path) -> str:
    ending = os.path.splitext(os.fsdecode(path))[1]
    if ending not in _FORMATS:
        raise ValueError("the ending of '%s' names no format; wanted format=, or one of %s" %
                         (os.fsdecode(path), " ".join(_FORMATS)))
    return _FORMATS[ending]


def _weighted(given: Any, weight: float) -> List[Tuple[Any, float]]:
    """Turns an argument of gensim's methods (a word, a vector, a pair with a weight, or a list of these) into a list of (word or
    vector, weight)."""
    if is_token(given) or (isinstance(given, numpy.ndarray) and given.ndim == 1):
        given = [given]
    return [(item[0], float(item[1])) if isinstance(item, tuple) and len(item) == 2 and (is_token(item[0]) or isinstance(item[0], numpy.ndarray))
            else (item, weight) for item in (() if given is None else given)]


def _paths(given: Union[Path, Sequence[Path]]) -> List[Path]:
    return [given] if isinstance(given, (str, bytes, os.PathLike)) else list(given)


def _name_for(path: Path, others: Dict[str, Any]) -> str:
    """Returns a file's name as `evaluate` prints it, or the whole path if another file has the same name."""
    name = os.path.basename(os.fsdecode(path))
    name = name[:-4] if name.endswith(".txt") and len(name) > 4 else name
    return os.fsdecode(path) if name in others else name


def _name_of(data: Any, name: str, others: Dict[str, Any]) -> str:
    """Returns the key of a result of evaluate(): the file's name, or `name` if the data is not a file."""
    return _name_for(data, others) if _judged.is_path(data) else name


def _text_or_none(text: Optional[str], what: str) -> Optional[bytes]:
    return None if text is None else text_of(text, what)
