"""Triples of a knowledge graph as data of fit(): arrays, tables, and iterables of (head, relation, tail)."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import numpy

from . import _arrow
from ._corpus import Corpus, Dictionary, Source, known, numbers

BLOCK = 4096  # number of sentences, or of lines of another kind, passed to the library in one call


def blocks(data: Iterable) -> Iterator[Tuple[int, List[Any]]]:
    """Yields the data in blocks, each with the index of its first element."""
    rest, number = iter(data), 0
    while True:
        block = list(itertools.islice(rest, BLOCK))
        if not block:
            return
        yield number, block
        number += len(block)


class Triples(Source):
    """Triples as three arrays of integers: heads, relations and tails."""

    format = "triples"
    formats = ("triples",)

    def __init__(self, heads: Any, relations: Any, tails: Any) -> None:
        super().__init__()
        self._terms = [numpy.asarray(terms) for terms in (heads, relations, tails)]
        if any(terms.ndim != 1 or terms.dtype.kind not in "iu" or len(terms) != len(self._terms[0]) for terms in self._terms):
            raise ValueError("triples are three arrays of integers of the same length; these are %s"
                             % ", ".join("%s of %s" % (terms.shape, terms.dtype) for terms in self._terms))

    def give(self, corpus: Corpus) -> None:
        corpus.triples(*(numbers(terms, what) for terms, what in zip(self._terms, ("heads", "relations", "tails"))))


class NamedTriples(Source):
    """An iterable of triples of names: (head, relation, tail)."""

    format = "triples"
    formats = ("triples",)

    def __init__(self, triples: Iterable) -> None:
        super().__init__()
        self._triples = triples

    def give(self, corpus: Corpus) -> None:
        entities, relations = Dictionary(corpus), Dictionary(corpus, lists=True)
        for number, block in blocks(self._triples):
            for i, triple in enumerate(block):
                if not isinstance(triple, (tuple, list)) or len(triple) != 3:
                    raise TypeError("triple %d is %.80r, wanted (head, relation, tail)" % (number + i, triple))
            ends = numpy.fromiter((entities[end] for triple in block for end in triple[::2]), numpy.int32, 2 * len(block))
            over = numpy.fromiter((relations[triple[1]] for triple in block), numpy.int32, len(block))
            entities.tell()
            relations.tell()
            corpus.triples(known(ends[::2], "heads"), known(over, "relations"), known(ends[1::2], "tails"))


def is_array(data: Any) -> bool:
    return hasattr(data, "__array__") and len(getattr(data, "shape", ())) > 0


def triples_of(data: Any, columns: Optional[Sequence[str]]) -> Source:
    """Returns the source of triples. An array is [triples, 3], of integers as mapped_triples of pykeen, or of names."""
    if hasattr(data, "__arrow_c_stream__"):
        return _arrow.source_of(data, columns, "triples")
    if isinstance(data, (tuple, list)) and len(data) == 3 and all(is_array(terms) for terms in data):
        return Triples(*data)
    if is_array(data):
        array = numpy.asarray(data)
        if array.ndim != 2 or array.shape[1] != 3:
            raise ValueError("an array of triples has a shape of [triples, 3], and this one is %s" % (array.shape,))
        return Triples(*array.T) if array.dtype.kind in "iu" else NamedTriples(array.tolist())
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, Mapping)) and not hasattr(data, "tocoo"):
        return NamedTriples(data)
    raise TypeError("a %s holds no triples for fit(): wanted paths, three arrays of integers, an array [triples, 3], an iterable of "
                    "(head, relation, tail), or a table with such columns" % type(data).__name__)
