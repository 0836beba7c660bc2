"""Less used methods of gensim's KeyedVectors: rare queries, reordered rows, logging, old names. _keyed.py has the usual methods."""

import logging
from typing import Any, Dict, Iterable, List, Sequence, Tuple

import numpy

from ._refused import ones, refused, renamed

_log = logging.getLogger("sptx")


class MoreOfKeyedVectors:
    """Base class of KeyedVectors. KeyedVectors itself stores the vectors."""

    mapfile_path = None
    lifecycle_events: Sequence[Dict[str, Any]] = ()
    vectors_lockf = ones("vectors_lockf")

    # ---- rare queries ----

    def relative_cosine_similarity(self: Any, wa: Any, wb: Any, topn: int = 10) -> float:
        """Returns cosine(wa, wb) divided by the sum of the cosines of wa's topn nearest words."""
        return float(self.similarity(wa, wb)) / sum(cosine for _, cosine in self.similar_by_word(wa, topn))

    def rank_by_centrality(self: Any, words: Iterable[Any], use_norm: bool = True) -> List[Tuple[Any, Any]]:
        """Sorts words by similarity to their mean vector, best first: [(similarity, word), ..]. Unknown words are skipped."""
        known = [word for word in words if word in self]
        if not known:
            raise ValueError("cannot select a word from an empty list")
        vectors = numpy.vstack([self.get_vector(word, norm=use_norm) for word in known]).astype(numpy.float32)
        mean = self.get_mean_vector(list(vectors), post_normalize=True)
        return sorted(zip(vectors @ mean, known), reverse=True)

    def wmdistance(self: Any, document1: Sequence[Any], document2: Sequence[Any], norm: bool = True) -> float:
        """Returns the word mover's distance of two documents, which are lists of words: the least cost of moving one's words to the
        other's. Unknown words are skipped; infinity if a document has no known word. Needs SciPy, for its linear programming.
        """
        if isinstance(document1, str) or isinstance(document2, str):
            raise TypeError("a document is a list of words: split texts first")
        sides = [_shares([word for word in document if word in self]) for document in (document1, document2)]
        if not sides[0] or not sides[1]:
            return float("inf")
        ours, theirs = (numpy.vstack([self.get_vector(word, norm=norm) for word in side]).astype(float) for side in sides)
        costs = numpy.sqrt(numpy.maximum((ours[:, None] - theirs[None]) ** 2, 0).sum(2))
        return _moved(costs, list(sides[0].values()), list(sides[1].values()))

    similarity_unseen_docs = refused("similarity_unseen_docs() is not there, nor in gensim: take n_similarity() of two lists of words, or "
                                     "wmdistance()")

    # ---- selected rows, another order of rows ----

    def vectors_for_all(self: Any, keys: Iterable[Any], allow_inference: bool = True, copy_vecattrs: bool = False) -> Any:
        """Returns new KeyedVectors with the vectors of these keys, in the order given; keys without a vector are skipped.
        allow_inference=False also skips unseen words, whose vectors FastText would compute from n-grams."""
        from ._keyed import KeyedVectors

        there = [key for key in dict.fromkeys(keys) if key in (self if allow_inference else self.key_to_index)]
        found = KeyedVectors(self.vector_size, 0, self.vectors.dtype)
        if there:
            found.add_vectors(there, numpy.vstack([self.get_vector(key) for key in there]))
        rows = [self.key_to_index.get(key, -1) for key in there]
        for name, held in self.expandos.items() if copy_vecattrs else ():
            found.expandos[name] = numpy.array([held[row] if row >= 0 else 0 for row in rows], held.dtype)
        return found

    def sort_by_descending_frequency(self: Any) -> None:
        """Sorts the rows by their words' counts, most frequent first."""
        if "count" not in self.expandos:
            raise KeyError("the words have no counts to be sorted by: set_vecattr(word, 'count', n) sets one")
        order = numpy.argsort(-self.expandos["count"], kind="stable")
        self.index_to_key = [self.index_to_key[row] for row in order]
        self.key_to_index = {key: row for row, key in enumerate(self.index_to_key)}
        self.expandos = {name: held[order] for name, held in self.expandos.items()}
        self.vectors = self.vectors[order]
        self.fill_norms(force=True)

    def allocate_vecattrs(self: Any, attrs: Sequence[str] = (), types: Sequence[Any] = ()) -> None:
        """Creates attributes of words, filled with zeros. Existing attributes are not changed."""
        for name, kind in zip(attrs, types):
            self.expandos.setdefault(name, numpy.zeros(len(self), kind))

    resize_vectors = refused("resize_vectors() is not there: add_vectors() makes a row for each new word")

    # ---- logging ----

    def add_lifecycle_event(self: Any, event_name: str, log_level: int = logging.INFO, **event: Any) -> None:
        """Appends an event to lifecycle_events and logs it."""
        self.lifecycle_events = [*self.lifecycle_events, {**event, "event": event_name}]
        _log.log(log_level, "%s: %s", event_name, event)

    @staticmethod
    def log_accuracy(section: Dict[str, Any]) -> float:
        """Logs how many analogies of a section of evaluate_word_analogies() were right. Returns their share, 0..1."""
        right, asked = len(section["correct"]), len(section["correct"]) + len(section["incorrect"])
        _log.info("%s: %d of %d right", section["section"], right, asked)
        return right / asked if asked else 0.0

    @staticmethod
    def log_evaluate_word_pairs(pearson: Any, spearman: Any, oov: float, pairs: Any) -> None:
        """Logs a result of evaluate_word_pairs()."""
        _log.info("%s: Pearson %.4f, Spearman %.4f, %.1f%% unknown", pairs, pearson[0], spearman[0], oov)

    # ---- old names ----

    def init_sims(self: Any, replace: bool = False) -> None:
        """Old name: with replace=True calls unit_normalize_all(), otherwise fill_norms()."""
        if replace:
            self.unit_normalize_all()
        else:
            self.fill_norms()

    def words_closer_than(self: Any, word1: Any, word2: Any) -> List[str]:
        """The old name of closer_than()."""
        return self.closer_than(word1, word2)

    @property
    def next_index(self: Any) -> int:
        """Row that the next added word will get."""
        return len(self)

    index2word = renamed("index2word", "take index_to_key")
    index2entity = renamed("index2entity", "take index_to_key")
    vocab = renamed("vocab", "take key_to_index for rows, get_vecattr(word, 'count') for counts")
    vectors_norm = renamed("vectors_norm", "take get_normed_vectors()")


def _shares(words: Sequence[Any]) -> Dict[Any, float]:
    """Returns {word: its share of the document's words}; the shares sum to 1."""
    shares: Dict[Any, float] = {}
    for word in words:
        shares[word] = shares.get(word, 0.0) + 1 / len(words)
    return shares


def _moved(costs: Any, ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Solves the transport problem: returns the least total cost of turning the shares `ours` into the shares `theirs`.

    costs [len(ours) x len(theirs)]: the cost of moving a share of 1."""
    try:
        from scipy import sparse
        from scipy.optimize import linprog
    except ImportError:
        raise NotImplementedError("wmdistance() needs SciPy: pip install scipy; n_similarity() compares two lists of words without it") \
            from None
    rows, columns = costs.shape
    leaving = sparse.kron(sparse.eye(rows), numpy.ones((1, columns)))
    coming = sparse.kron(numpy.ones((1, rows)), sparse.eye(columns))
    found = linprog(costs.reshape(-1), A_eq=sparse.vstack([leaving, coming]).tocsr()[:-1], b_eq=[*ours, *theirs][:-1], method="highs")
    return float(found.fun)
