"""KeyedVectors: words and their vectors in memory, with the interface of gensim. Names, arguments and answers are those of gensim
4.4."""

import bz2
import gzip
import logging
import os
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy

from . import _pickled
from ._errors import tell
from ._refused import ones, refused, renamed

Path = Union[str, "os.PathLike[str]"]

_log = logging.getLogger("sptx")


class KeyedVectors(_pickled.Saved):
    """Vectors by word (gensim calls it a key).

    vectors       float32 [words x vector_size]; row i is that of index_to_key[i]
    index_to_key  words by row, most frequent first
    key_to_index  the row of a word

    Questions raise KeyError for a word that is none. Numbers, rows and words may be given where gensim takes them.
    """

    def __init__(self, vector_size: int, count: int = 0, dtype: Any = numpy.float32) -> None:
        self.vector_size = vector_size
        self.vectors = numpy.zeros((count, vector_size), dtype)
        self.index_to_key: List[str] = []
        self.key_to_index: Dict[str, int] = {}
        self.expandos: Dict[str, Any] = {}
        self._norms: Any = None
        self._normed: Any = None

    _untrained = ""  # the warning of a cosine if training leaves these vectors as they began

    def _tell_untrained(self) -> None:
        if self._untrained:
            tell(self._untrained)

    def __len__(self) -> int:
        return len(self.index_to_key)

    def __contains__(self, key: Any) -> bool:
        return self.has_index_for(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.index_to_key)

    def __getitem__(self, key: Any) -> Any:
        """Returns the vector of a word or row, [vector_size]; for a list of them [n x vector_size]."""
        if isinstance(key, (str, int, numpy.integer)):
            return self.get_vector(key)
        return numpy.vstack([self.get_vector(one) for one in key])

    def __repr__(self) -> str:
        return "KeyedVectors<vector_size=%d, %d keys>" % (self.vector_size, len(self))

    # ---- words ----

    def has_index_for(self, key: Any) -> bool:
        return self.get_index(key, -1) >= 0

    def get_index(self, key: Any, default: Any = None) -> Any:
        """Returns the row of a word; a row number is returned unchanged. For an unknown word returns the default; KeyError if no default is given."""
        row = self.key_to_index.get(key, -1)
        if row >= 0:
            return row
        if isinstance(key, (int, numpy.integer)) and 0 <= key < len(self):
            return int(key)
        if default is not None:
            return default
        raise KeyError("Key '%s' not present" % key)

    def get_vector(self, key: Any, norm: bool = False) -> Any:
        """Returns a word's vector, with norm=True scaled to unit length. It is read-only, since it shares memory with `vectors`."""
        row = self.get_index(key)
        vector = self.get_normed_vectors()[row] if norm else self.vectors[row]
        vector = vector.view()
        vector.flags.writeable = False
        return vector

    word_vec = get_vector

    def get_vecattr(self, key: Any, attr: str) -> Any:
        """Returns an attribute of a word; "count" is how often the corpus contains it."""
        row = self.get_index(key)
        if attr not in self.expandos:
            raise KeyError("attribute '%s' is not there" % attr)
        value = self.expandos[attr][row]
        return value.item() if isinstance(value, numpy.generic) else value

    def set_vecattr(self, key: Any, attr: str, val: Any) -> None:
        if attr not in self.expandos:
            self.expandos[attr] = numpy.zeros(len(self), numpy.int64 if isinstance(val, (int, numpy.integer)) else object)
        self.expandos[attr][self.get_index(key)] = val

    def add_vectors(self, keys: Union[str, Sequence[str]], weights: Any, extras: Optional[Dict[str, Any]] = None,
                    replace: bool = False) -> None:
        """Adds words with vectors [n x vector_size]. The vector of a word that exists already changes only with replace=True.
        extras: attributes of the n words, {name: array [n]}."""
        if isinstance(keys, str):
            keys, weights = [keys], numpy.asarray(weights)[None]
        weights = numpy.asarray(weights, numpy.float32).reshape(len(keys), self.vector_size)
        new = [at for at, key in enumerate(keys) if key not in self.key_to_index]
        for at, key in enumerate(keys):
            if replace and key in self.key_to_index:
                self.vectors[self.key_to_index[key]] = weights[at]
        for at in new:
            self.key_to_index[keys[at]] = len(self.index_to_key)
            self.index_to_key.append(keys[at])
        self.vectors = numpy.vstack([self.vectors, weights[new]]) if len(self.vectors) else weights[new].copy()
        self.expandos = {name: numpy.concatenate([held, numpy.zeros(len(new), held.dtype)]) for name, held in self.expandos.items()}
        self.fill_norms(force=True)
        for name, values in (extras or {}).items():
            self.allocate_vecattrs([name], [numpy.asarray(values).dtype])
            self.expandos[name][[self.key_to_index[key] for key in keys]] = values

    def add_vector(self, key: str, vector: Any) -> int:
        """Adds a word with its vector [vector_size], and returns its row."""
        self.add_vectors([key], numpy.asarray(vector)[None])
        return self.key_to_index[key]

    def __setitem__(self, keys: Any, weights: Any) -> None:
        self.add_vectors(keys, weights, replace=True)

    # ---- lengths ----

    def fill_norms(self, force: bool = False) -> None:
        """With force=True, forgets the cached lengths of vectors. Call it after changing `vectors` in place."""
        if force:
            self._norms = self._normed = None

    @property
    def norms(self) -> Any:
        if self._norms is None or len(self._norms) != len(self.vectors):
            self._norms = numpy.linalg.norm(self.vectors, axis=1)
        return self._norms

    def get_normed_vectors(self) -> Any:
        if self._normed is None or self._normed.shape != self.vectors.shape:
            self._normed = self.vectors / numpy.maximum(self.norms, 1e-12)[:, None].astype(numpy.float32)
        return self._normed

    def unit_normalize_all(self) -> None:
        self.vectors = self.get_normed_vectors().copy()
        self.fill_norms(force=True)

    # ---- similar words ----

    def get_mean_vector(self, keys: Any, weights: Any = None, pre_normalize: bool = True, post_normalize: bool = False,
                        ignore_missing: bool = True) -> Any:
        """Returns the weighted mean of vectors, [vector_size]. A key is a word, or a vector itself."""
        if isinstance(keys, str):
            keys = [keys]
        if not len(keys):
            raise ValueError("cannot compute mean with no input")
        weights = numpy.ones(len(keys)) if weights is None else numpy.asarray(weights, float)
        if len(weights) != len(keys):
            raise ValueError("keys and weights array must have same number of elements")
        mean, total = numpy.zeros(self.vector_size), 0.0
        for key, weight in zip(keys, weights):
            if isinstance(key, numpy.ndarray):
                mean += weight * key
            elif key in self:
                mean += weight * self.get_vector(key, norm=pre_normalize)
            elif ignore_missing:
                continue
            else:
                raise KeyError("Key '%s' not present in vocabulary" % key)
            total += abs(weight)
        mean = mean / total if total > 0 else mean
        length = numpy.linalg.norm(mean)
        return (mean / length if post_normalize and length else mean).astype(numpy.float32)

    def most_similar(self, positive: Any = None, negative: Any = None, topn: Optional[int] = 10, clip_start: int = 0,
                     clip_end: Optional[int] = None, restrict_vocab: Optional[int] = None, indexer: Any = None) -> Any:
        """The topn words nearest by cosine to the mean of the positive and the negative words, best first: [(word, cosine), ..];
        with topn=None all cosines, [words]. Words, vectors, rows, and (one of these, weight) are taken. The asked words are
        not in the answer. indexer: an index as gensim's, whose most_similar(vector, topn) searches instead."""
        parts = _weighted(positive, 1.0) + _weighted(negative, -1.0)
        if not parts:
            raise ValueError("cannot compute mean with no input")
        self._tell_untrained()
        mean = self.get_mean_vector([key for key, _ in parts], [weight for _, weight in parts], post_normalize=True,
                                    ignore_missing=False)
        if indexer is not None and topn is not None:
            return indexer.most_similar(mean, topn)
        clip_end = restrict_vocab or clip_end or len(self)
        cosines = self.get_normed_vectors()[clip_start:clip_end] @ mean
        if topn is None:
            return cosines
        return self._best(cosines, topn, self._rows_of([key for key, _ in parts]), clip_start)

    def most_similar_cosmul(self, positive: Any = None, negative: Any = None, topn: Optional[int] = 10,
                            restrict_vocab: Optional[int] = None) -> Any:
        """Does what most_similar() does, with Levy and Goldberg's product of cosines as the score."""
        parts = [[key for key, _ in _weighted(given, 1.0)] for given in (positive, negative)]
        if not parts[0]:
            raise ValueError("cannot compute similarity with no input")
        self._tell_untrained()
        unit, all_of = self.get_normed_vectors()[:restrict_vocab or len(self)], parts[0] + parts[1]
        cosines = [[(1 + unit @ self._unit(key)) / 2 for key in keys] for keys in parts]
        scores = numpy.prod(cosines[0], axis=0) / (numpy.prod(cosines[1], axis=0) + 0.000001)
        if topn is None:
            return scores
        return self._best(scores, topn, self._rows_of(all_of), 0)

    def similar_by_word(self, word: Any, topn: Optional[int] = 10, restrict_vocab: Optional[int] = None) -> Any:
        return self.most_similar(positive=[word], topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_key(self, key: Any, topn: Optional[int] = 10, restrict_vocab: Optional[int] = None) -> Any:
        return self.most_similar(positive=[key], topn=topn, restrict_vocab=restrict_vocab)

    def similar_by_vector(self, vector: Any, topn: Optional[int] = 10, restrict_vocab: Optional[int] = None) -> Any:
        return self.most_similar(positive=[numpy.asarray(vector)], topn=topn, restrict_vocab=restrict_vocab)

    def similarity(self, w1: Any, w2: Any) -> Any:
        """The cosine of two words' vectors."""
        self._tell_untrained()
        return numpy.dot(self.get_vector(w1, norm=True), self.get_vector(w2, norm=True))

    def distance(self, w1: Any, w2: Any) -> Any:
        return 1 - self.similarity(w1, w2)

    def distances(self, word_or_vector: Any, other_words: Iterable[Any] = ()) -> Any:
        """Returns 1 - cosine of a word with each of the other words given, in their order; by default with all words."""
        rows = [self.get_index(word) for word in other_words]
        unit = self.get_normed_vectors()
        return 1 - (unit[rows] if rows else unit) @ self._unit(word_or_vector)

    @staticmethod
    def cosine_similarities(vector_1: Any, vectors_all: Any) -> Any:
        return vectors_all @ vector_1 / (numpy.linalg.norm(vector_1) * numpy.linalg.norm(vectors_all, axis=1))

    def n_similarity(self, ws1: Sequence[Any], ws2: Sequence[Any]) -> Any:
        """Returns the cosine of the means of two lists of words; unknown words are skipped."""
        if not len(ws1) or not len(ws2):
            raise ZeroDivisionError("At least one of the passed list is empty.")
        a, b = (self.get_mean_vector(words, pre_normalize=False, post_normalize=True) for words in (ws1, ws2))
        return numpy.dot(a, b)

    def doesnt_match(self, words: Iterable[Any]) -> Any:
        """Returns the word that is farthest from the mean of all these words."""
        known = [word for word in words if word in self]
        if not known:
            raise ValueError("cannot select a word from an empty list")
        mean = self.get_mean_vector(known, post_normalize=True)
        return known[int(numpy.argmin([self._unit(word) @ mean for word in known]))]

    def rank(self, key1: Any, key2: Any) -> int:
        return len(self.closer_than(key1, key2)) + 1

    def closer_than(self, key1: Any, key2: Any) -> List[str]:
        """Returns the words that are nearer to key1 than key2 is."""
        cosines, row, own = self.get_normed_vectors() @ self._unit(key1), self.get_index(key2), self.get_index(key1)
        return [self.index_to_key[at] for at in numpy.flatnonzero(cosines > cosines[row]) if at != own]

    def most_similar_to_given(self, key1: Any, keys_list: Sequence[Any]) -> Any:
        return keys_list[int(numpy.argmax([self.similarity(key1, key) for key in keys_list]))]

    def _rows_of(self, keys: Iterable[Any]) -> Any:
        """Returns the rows of those keys that are words or rows, not vectors."""
        return {self.get_index(key) for key in keys if not isinstance(key, numpy.ndarray)}

    def _unit(self, key: Any) -> Any:
        if isinstance(key, numpy.ndarray):
            return key / (numpy.linalg.norm(key) or 1)
        return self.get_vector(key, norm=True)

    def _best(self, scores: Any, topn: int, banned: Any, first: int) -> List[Tuple[str, float]]:
        wanted = min(topn + len(banned), len(scores))
        if topn < 1 or not wanted:
            return []
        best = numpy.argpartition(-scores, wanted - 1)[:wanted]
        best = best[numpy.argsort(-scores[best], kind="stable")]
        return [(self.index_to_key[row + first], float(scores[row])) for row in best if row + first not in banned][:topn]

    # ---- measures ----

    def evaluate_word_pairs(self, pairs: Path, delimiter: str = "\t", encoding: str = "utf8", restrict_vocab: int = 300000,
                            case_insensitive: bool = True, dummy4unknown: bool = False) -> Tuple[Any, Any, float]:
        """Lines "word, word, score" -> (Pearson's and its p, Spearman's and its p, percent of pairs with an unknown word). The p
        are NaN without SciPy."""
        known, (gold, ours, unknown) = self._known(restrict_vocab, case_insensitive), ([], [], 0)  # type: Any
        with open(pairs, encoding=encoding) as lines:
            for line in lines:
                parts = line.split(delimiter)
                if not line.strip() or line.startswith("#") or len(parts) < 3:
                    continue
                try:
                    score = float(parts[2])
                except ValueError:
                    continue
                a, b = (known.get(word.strip().upper() if case_insensitive else word.strip()) for word in parts[:2])
                unknown += a is None or b is None
                if (a is None or b is None) and not dummy4unknown:
                    continue
                gold.append(score)
                ours.append(0.0 if a is None or b is None else self.similarity(a, b))
        if not gold:
            raise ValueError("'%s' has no pair of known words" % os.fspath(pairs))
        share = 100.0 * unknown / (len(gold) + (0 if dummy4unknown else unknown))
        return _correlation("pearsonr", gold, ours), _correlation("spearmanr", gold, ours), share

    def evaluate_word_analogies(self, analogies: Path, restrict_vocab: int = 300000, case_insensitive: bool = True,
                                dummy4unknown: bool = False,
                                similarity_function: str = "most_similar") -> Tuple[float, List[Dict[str, Any]]]:
        """Lines ": section" and "a b c d" -> (accuracy, sections): in each section the questions that were answered right and
        wrong, "Total accuracy" last."""
        if similarity_function != "most_similar":
            raise NotImplementedError("similarity_function=%r is not there: analogies are judged by 'most_similar'" % similarity_function)
        known, sections = self._known(restrict_vocab, case_insensitive), []  # type: Any
        with open(analogies, encoding="utf8") as lines:
            for line in lines:
                if line.startswith(": "):
                    sections.append({"section": line[2:].strip(), "correct": [], "incorrect": []})
                    continue
                words = tuple(word.upper() if case_insensitive else word for word in line.split())
                if not sections:
                    raise ValueError("Missing section header before the first line of '%s'" % os.fspath(analogies))
                if len(words) == 4:
                    sections[-1].setdefault("asked", []).append(words)
        for section in sections:
            self._judge(section, known, min(restrict_vocab, len(self)), dummy4unknown)
        total = {"section": "Total accuracy", **{name: [one for section in sections for one in section[name]]
                                                 for name in ("correct", "incorrect")}}
        count = len(total["correct"]) + len(total["incorrect"])
        return (len(total["correct"]) / count if count else 0.0), sections + [total]

    def _judge(self, section: Dict[str, Any], known: Dict[str, int], rows: int, dummy4unknown: bool) -> None:
        asked = section.pop("asked", [])
        there = [words for words in asked if all(word in known for word in words)]
        unit = self.get_normed_vectors()[:rows]
        names = {row: word for word, row in known.items()}
        for first in range(0, len(there), 256):
            part = numpy.array([[known[word] for word in words] for words in there[first:first + 256]])
            scores = (unit[part[:, 1]] - unit[part[:, 0]] + unit[part[:, 2]]) @ unit.T
            scores[numpy.arange(len(part))[:, None], part[:, :3]] = -numpy.inf
            for words, row in zip(there[first:first + 256], scores.argmax(1)):
                section["correct" if names.get(int(row)) == words[3] else "incorrect"].append(words)
        if dummy4unknown:
            section["incorrect"] += [words for words in asked if not all(word in known for word in words)]

    def _known(self, restrict_vocab: int, case_insensitive: bool) -> Dict[str, int]:
        """Returns the rows of the most frequent words. If words differ only in case, only the most frequent one is included."""
        known: Dict[str, int] = {}
        for row, word in enumerate(self.index_to_key[:restrict_vocab]):
            known.setdefault(word.upper() if case_insensitive else word, row)
        return known

    # ---- files ----

    def save(self, fname: Path, *_: Any, **__: Any) -> None:
        """Writes the whole object to one file, which KeyedVectors.load() of this package reads."""
        _pickled.save(self, fname)

    @classmethod
    def load(cls, fname: Path, mmap: Optional[str] = None) -> Any:
        """Reads a file that save() wrote; mmap is accepted and ignored."""
        return _pickled.load(fname, cls, "a " + cls.__name__)

    def save_word2vec_format(self, fname: Path, fvocab: Optional[Path] = None, binary: bool = False,
                             total_vec: Optional[int] = None, write_header: bool = True, prefix: str = "", append: bool = False,
                             sort_attr: str = "count") -> None:
        """Writes word2vec's text or binary format, words by falling count (or what sort_attr names); fvocab: words and counts, too.
        A file whose name ends in .gz or .bz2 is packed.

        total_vec: the count that the first line says, where more is appended later; write_header=False: no such line. prefix stands
        before each word. append: behind what the files hold.

        Raises ValueError for an fvocab where words have no counts.
        """
        mode, rows = "ab" if append else "wb", numpy.arange(len(self))
        if sort_attr in self.expandos:
            rows = numpy.argsort(-self.expandos[sort_attr], kind="stable")
        elif fvocab is not None:
            raise ValueError("Cannot store vocabulary with '%s' because that attribute does not exist" % sort_attr)
        if fvocab is not None:
            with _opened(fvocab, mode) as file:
                file.writelines(("%s%s %d\n" % (prefix, self.index_to_key[row], self.expandos[sort_attr][row])).encode()
                                for row in rows)
        with _opened(fname, mode) as file:
            if write_header:
                file.write(b"%d %d\n" % (len(self) if total_vec is None else total_vec, self.vector_size))
            for row in rows:
                vector = self.vectors[row]
                values = vector.astype(numpy.float32).tobytes() if binary else (" ".join(map(str, vector)) + "\n").encode()
                file.write(("%s%s " % (prefix, self.index_to_key[row])).encode() + values)

    @classmethod
    def load_word2vec_format(cls, fname: Path, fvocab: Optional[Path] = None, binary: bool = False, encoding: str = "utf8",
                             unicode_errors: str = "strict", limit: Optional[int] = None, datatype: Any = numpy.float32,
                             no_header: bool = False) -> "KeyedVectors":
        """Reads word2vec's text or binary format, of at most `limit` words; of a word that comes twice, the first. fvocab: the
        file that save_word2vec_format() wrote of words and counts. A file whose name ends in .gz or .bz2 is unpacked.

        encoding, unicode_errors: how words' bytes are read. datatype: of the vectors in memory (numpy.float16 takes half).
        no_header: the file begins with its first vector, as GloVe's do.

        Raises EOFError and ValueError for a file that is none, NotImplementedError for no_header of a binary file.
        """
        if no_header and binary:
            raise NotImplementedError("no_header only available for text-format files")
        count, size = _sizes_of(fname, no_header)
        count = min(count, limit or count)
        found = cls(size, count, datatype)
        with _opened(fname, "rb") as file:
            if not no_header:
                file.readline()
            for _ in range(count):
                word, values = _read_binary(file, size) if binary else _read_text(file, size)
                name, row = word.decode(encoding, unicode_errors), len(found)
                if name not in found.key_to_index:
                    found.key_to_index[name], found.vectors[row] = row, values
                    found.index_to_key.append(name)
        found.vectors = found.vectors[:len(found)]
        found.expandos["count"] = numpy.arange(count, count - len(found), -1)
        if fvocab is not None:
            with _opened(fvocab, "rb") as lines:
                counts = dict(line.decode(encoding, unicode_errors).rsplit(None, 1) for line in lines)
            found.expandos["count"] = numpy.array([int(counts.get(word, 0)) for word in found.index_to_key])
        return found

    def intersect_word2vec_format(self, fname: Path, lockf: float = 1.0, binary: bool = False, encoding: str = "utf8",
                                  unicode_errors: str = "strict") -> None:
        """Copies the vectors of words of this object from a file, as first values for training. lockf must be 1: all words are trained."""
        if lockf != 1.0:
            raise NotImplementedError("lockf = %s is not there: every word is trained; wanted lockf=1.0" % (lockf,))
        given = KeyedVectors.load_word2vec_format(fname, binary=binary, encoding=encoding, unicode_errors=unicode_errors)
        if given.vector_size != self.vector_size:
            raise ValueError("incompatible vector size %d in file %s" % (given.vector_size, os.fspath(fname)))
        shared = [word for word in given if word in self.key_to_index]
        self.vectors[[self.key_to_index[word] for word in shared]] = given.vectors[[given.key_to_index[word] for word in shared]]
        self.fill_norms(force=True)

    mapfile_path = None
    vectors_lockf = ones("vectors_lockf")

    # ---- rare queries ----

    def relative_cosine_similarity(self, wa: Any, wb: Any, topn: int = 10) -> float:
        """Returns cosine(wa, wb) divided by the sum of the cosines of wa's topn nearest words."""
        return float(self.similarity(wa, wb)) / sum(cosine for _, cosine in self.similar_by_word(wa, topn))

    def rank_by_centrality(self, words: Iterable[Any], use_norm: bool = True) -> List[Tuple[Any, Any]]:
        """Sorts words by similarity to their mean vector, best first: [(similarity, word), ..]. Unknown words are skipped."""
        known = [word for word in words if word in self]
        if not known:
            raise ValueError("cannot select a word from an empty list")
        vectors = numpy.vstack([self.get_vector(word, norm=use_norm) for word in known]).astype(numpy.float32)
        mean = self.get_mean_vector(list(vectors), post_normalize=True)
        return sorted(zip(vectors @ mean, known), reverse=True)

    def wmdistance(self, document1: Sequence[Any], document2: Sequence[Any], norm: bool = True) -> float:
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

    def vectors_for_all(self, keys: Iterable[Any], allow_inference: bool = True, copy_vecattrs: bool = False) -> Any:
        """Returns new KeyedVectors with the vectors of these keys, in the order given; keys without a vector are skipped.
        allow_inference=False also skips unseen words, whose vectors FastText would compute from n-grams."""
        there = [key for key in dict.fromkeys(keys) if key in (self if allow_inference else self.key_to_index)]
        found = KeyedVectors(self.vector_size, 0, self.vectors.dtype)
        if there:
            found.add_vectors(there, numpy.vstack([self.get_vector(key) for key in there]))
        rows = [self.key_to_index.get(key, -1) for key in there]
        for name, held in self.expandos.items() if copy_vecattrs else ():
            found.expandos[name] = numpy.array([held[row] if row >= 0 else 0 for row in rows], held.dtype)
        return found

    def sort_by_descending_frequency(self) -> None:
        """Sorts the rows by their words' counts, most frequent first."""
        if "count" not in self.expandos:
            raise KeyError("the words have no counts to be sorted by: set_vecattr(word, 'count', n) sets one")
        order = numpy.argsort(-self.expandos["count"], kind="stable")
        self.index_to_key = [self.index_to_key[row] for row in order]
        self.key_to_index = {key: row for row, key in enumerate(self.index_to_key)}
        self.expandos = {name: held[order] for name, held in self.expandos.items()}
        self.vectors = self.vectors[order]
        self.fill_norms(force=True)

    def allocate_vecattrs(self, attrs: Sequence[str] = (), types: Sequence[Any] = ()) -> None:
        """Creates attributes of words, filled with zeros. Existing attributes are not changed."""
        for name, kind in zip(attrs, types):
            self.expandos.setdefault(name, numpy.zeros(len(self), kind))

    resize_vectors = refused("resize_vectors() is not there: add_vectors() makes a row for each new word")

    # ---- logging ----

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

    def init_sims(self, replace: bool = False) -> None:
        """Old name: with replace=True calls unit_normalize_all(), otherwise fill_norms()."""
        if replace:
            self.unit_normalize_all()
        else:
            self.fill_norms()

    def words_closer_than(self, word1: Any, word2: Any) -> List[str]:
        """The old name of closer_than()."""
        return self.closer_than(word1, word2)

    @property
    def next_index(self) -> int:
        """The row of the next word that is added."""
        return len(self)

    index2word = renamed("index2word", "take index_to_key")
    index2entity = renamed("index2entity", "take index_to_key")
    vocab = renamed("vocab", "take key_to_index for rows, get_vecattr(word, 'count') for counts")
    vectors_norm = renamed("vectors_norm", "take get_normed_vectors()")


def _opened(path: Path, mode: str) -> Any:
    ending = os.path.splitext(os.fsdecode(path))[1]
    return {".gz": gzip.open, ".bz2": bz2.open}.get(ending, open)(path, mode)


def _sizes_of(path: Path, no_header: bool) -> Tuple[int, int]:
    """Returns the numbers of words and columns from the first line of a file; if it has no such line, the number of lines and of
    values in a line."""
    with _opened(path, "rb") as file:
        first = file.readline()
        if not no_header:
            count, size = map(int, first.split())
            return count, size
        return bool(first) + sum(1 for _ in file), len(first.rstrip().split(b" ")) - 1


def _read_binary(file: Any, size: int) -> Tuple[bytes, Any]:
    word = bytearray()
    while True:
        byte = file.read(1)
        if byte == b"":
            raise EOFError("unexpected end of input; is count incorrect or file otherwise damaged?")
        if byte == b" ":
            break
        if byte != b"\n":
            word += byte
    values = numpy.frombuffer(file.read(4 * size), numpy.float32)
    if len(values) != size:
        raise EOFError("unexpected end of input; is count incorrect or file otherwise damaged?")
    return bytes(word), values


def _read_text(file: Any, size: int) -> Tuple[bytes, Any]:
    parts = file.readline().rstrip().split(b" ")
    if len(parts) != size + 1:
        raise ValueError("a line has %d values, wanted %d" % (len(parts) - 1, size))
    return parts[0], numpy.array(parts[1:], numpy.float32)


def _weighted(given: Any, weight: float) -> List[Tuple[Any, float]]:
    """Turns an argument of gensim's methods (a word, row, vector, a pair with a weight, or a list of these) into a list of (word,
    row or vector, weight). A given weight is used as it is."""
    if given is None:
        return []
    if isinstance(given, (str, int, numpy.integer)) or (isinstance(given, numpy.ndarray) and given.ndim == 1):
        given = [given]
    return [(one[0], one[1]) if isinstance(one, tuple) else (one, weight) for one in given]


def _correlation(name: str, x: Sequence[float], y: Sequence[float]) -> Any:
    try:
        from scipy import stats
    except ImportError:
        a, b = (numpy.asarray(side, float) if name == "pearsonr" else _ranks(side) for side in (x, y))
        return float(numpy.corrcoef(a, b)[0, 1]), float("nan")
    return getattr(stats, name)(x, y)


def _ranks(values: Sequence[float]) -> Any:
    """Returns ranks from 0; equal values get the mean of their ranks."""
    _, inverse, counts = numpy.unique(numpy.asarray(values), return_inverse=True, return_counts=True)
    return (numpy.cumsum(counts) - (counts + 1) / 2)[inverse]


def _shares(words: Sequence[Any]) -> Dict[Any, float]:
    """Returns the document's words, each with its share of them, as a dict; the shares sum to 1."""
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
