"""Reads tables of other libraries by Arrow's C data interface, which pandas, polars, pyarrow, DuckDB and others provide; none of
them is imported.

    __arrow_c_stream__() -> a stream of batches; a batch is a struct of columns; a column is a few buffers
    of integers, of bytes and offsets, or of numbers in a dictionary

The three structs are those of Arrow's specification of the C stream interface. Buffers are read without a copy.
"""

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

import numpy

from . import _library
from ._library import library
from ._corpus import Corpus, Source, Tokens, known, numbers
from ._errors import tell


class Schema(Structure):
    pass


class Array(Structure):
    pass


class Stream(Structure):
    pass


Schema._fields_ = [("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p), ("flags", c_int64), ("n_children", c_int64),
                   ("children", POINTER(POINTER(Schema))),
                   ("dictionary", POINTER(Schema)),
                   ("release", CFUNCTYPE(None, POINTER(Schema))), ("private_data", c_void_p)]
Array._fields_ = [("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
                  ("n_children", c_int64), ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(Array))),
                  ("dictionary", POINTER(Array)),
                  ("release", CFUNCTYPE(None, POINTER(Array))), ("private_data", c_void_p)]
Stream._fields_ = [("get_schema", CFUNCTYPE(c_int, POINTER(Stream), POINTER(Schema))),
                   ("get_next", CFUNCTYPE(c_int, POINTER(Stream), POINTER(Array))),
                   ("get_last_error", CFUNCTYPE(c_char_p, POINTER(Stream))),
                   ("release", CFUNCTYPE(None, POINTER(Stream))), ("private_data", c_void_p)]

INTEGERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8"}
FLOATS = {"e": "f2", "f": "f4", "g": "f8"}
TEXTS = {"u": "i4", "z": "i4", "U": "i8", "Z": "i8"}  # {text type: type of its offsets}
VIEWS = ("vu", "vz")
LISTS = {"+l": "i4", "+L": "i8"}

UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}
NAMES = {"n": "nothing but missing values", "b": "bool", "tdD": "dates", "tdm": "dates", "+s": "structs", "+m": "maps", "+r": "runs of values",
         **{format: "float%d" % (8 * numpy.dtype(kind).itemsize) for format, kind in FLOATS.items()},
         **{format: numpy.dtype(kind).name for format, kind in INTEGERS.items()},
         **dict.fromkeys([*TEXTS, *VIEWS], "text")}
FAMILIES = {"ts": "datetime64[%s]", "tD": "timedelta64[%s]", "tt": "times of day in %s"}


def type_name(schema: Any) -> str:
    """Returns the readable name of a column's type, as pandas writes it, for error messages."""
    format = schema.format.decode()
    if schema.dictionary:
        return "categories of " + type_name(schema.dictionary.contents)
    if format in NAMES:
        return NAMES[format]
    if format[:2] in FAMILIES:
        return FAMILIES[format[:2]] % UNITS.get(format[2:3], "another unit")
    return {"+l": "lists", "+L": "lists", "+w": "lists", "+v": "lists", "+u": "unions", "d:": "decimals",
            "w:": "bytes of one length"}.get(format[:2], "a type that is not known here")


class Column(NamedTuple):
    """A column of one batch, with its type from the schema."""

    schema: Any
    array: Any

    @property
    def format(self) -> str:
        return self.schema.format.decode()

    def buffer(self, index: int, dtype: str, count: int, first: Optional[int] = None) -> Any:
        """Returns the numbers in a buffer, beginning with the column's first row."""
        first = self.array.offset if first is None else first
        size = numpy.dtype(dtype).itemsize
        address = self.array.buffers[index]
        if not count or not address:
            return numpy.zeros(count, dtype)
        return numpy.frombuffer((ctypes.c_char * (count * size)).from_address(address + first * size), dtype)

    def nulls(self) -> Any:
        """Returns a mask, True for each missing value; None if no value is missing."""
        array = self.array
        if array.null_count == 0 or not array.n_buffers or not array.buffers[0]:
            return None
        bits = self.buffer(0, "u1", (array.offset + array.length + 7) // 8, 0)
        return numpy.unpackbits(bits, bitorder="little")[array.offset:array.offset + array.length] == 0

    def refuse_nulls(self, what: str, before: int) -> None:
        nulls = self.nulls()
        if nulls is not None and nulls.any():
            raise ValueError("row %d has no %s; in pandas .dropna() leaves such rows out" % (before + int(numpy.argmax(nulls)), what))

    def missing(self) -> Any:
        """Returns a mask of the rows that are null or NaN in a column of floats; None for a column of any other type.

        pandas stores a column of integers as floats if a value is missing: the missing one is NaN."""
        if self.format not in FLOATS or self.schema.dictionary:
            return None
        values, nulls = self.buffer(1, FLOATS[self.format], self.array.length), self.nulls()
        return numpy.isnan(values) if nulls is None else numpy.isnan(values) | nulls


def _text_of(column: Column) -> Tokens:
    array = column.array
    if column.format in VIEWS:
        return _text_of_views(column)
    offsets = column.buffer(1, TEXTS[column.format], array.length + 1)
    return Tokens(_library.TOKENS_TEXT, ctypes.c_void_p(array.buffers[2] or offsets.ctypes.data), offsets, array.length)


def _text_of_views(column: Column) -> Tokens:
    """Copies the texts of a column of views into one run of bytes. A view is a length, then either up to 12 bytes, or 4 of them
    with the number of a buffer and an offset into it."""
    array = column.array
    count, more = array.length, array.n_buffers - 3  # the last buffer has the sizes of the buffers between
    views = column.buffer(1, "i4", 4 * count, 4 * array.offset).reshape(count, 4)
    sizes = column.buffer(array.n_buffers - 1, "i8", more, 0)
    outside = [column.buffer(2 + i, "u1", int(size), 0) for i, size in enumerate(sizes)]
    data = numpy.concatenate([numpy.ascontiguousarray(views).view("u1").reshape(-1), *outside])
    bases = numpy.cumsum([16 * count, *sizes[:-1]]) if more else numpy.zeros(1, "i8")
    lengths = views[:, 0].astype("i8")
    inside = lengths <= 12
    begins = numpy.where(inside, 16 * numpy.arange(count) + 4, bases[numpy.where(inside, 0, views[:, 2])] + views[:, 3])
    offsets = numpy.concatenate([[0], numpy.cumsum(lengths)])
    places = numpy.arange(offsets[-1]) + numpy.repeat(begins - offsets[:-1], lengths)
    return Tokens(_library.TOKENS_TEXT, data[places], offsets, count)


class Reader:
    """Turns one column of all batches into tokens."""

    def __init__(self, corpus: Corpus, lists: bool, what: str) -> None:
        self._corpus = corpus
        self._lists = lists
        self._what = what
        self._learned = 0  # number of words from dictionaries of earlier batches

    def tokens(self, column: Column, before: int, left: Any = None) -> Tokens:
        """Returns a column's tokens without the rows that the mask `left` marks True; left=None keeps all rows."""
        if column.missing() is None:
            column.refuse_nulls(self._what, before)
        if column.schema.dictionary:
            tokens = self._of_dictionary(column)
        else:
            tokens = self._plain(column, left)
        return tokens if left is None or not left.any() else self._kept(tokens, ~left)

    def _kept(self, tokens: Tokens, kept: Any) -> Tokens:
        """Returns the tokens that the mask `kept` marks True, as numbers of words in the dictionary."""
        if tokens.struct.kind == _library.TOKENS_KNOWN:
            return known(tokens.values[kept], self._what)
        return known(numpy.flatnonzero(kept) + self._learn(tokens), self._what)

    def _learn(self, words: Tokens) -> int:
        """Appends words to the dictionary. Returns the number of the first appended word."""
        first, self._learned = self._learned, self._learned + words.count
        self._corpus.words(words, self._lists)
        return first

    def _whole(self, column: Column, left: Any) -> Tokens:
        """Converts a column of floats to integers; TypeError if one is not whole. Rows that the mask `left` marks become 0."""
        values = column.buffer(1, FLOATS[column.format], column.array.length)
        values = values if left is None else numpy.where(left, 0, values)
        odd = numpy.flatnonzero(~(numpy.abs(values) < 2.0 ** 53) | (values != numpy.floor(values)))
        if len(odd):
            raise TypeError("the column of %ss holds %s with %r, wanted text, whole numbers or categories"
                            % (self._what, type_name(column.schema), float(values[odd[0]])))
        return numbers(values.astype(numpy.int64), "the column of %ss" % self._what)

    def _plain(self, column: Column, left: Any = None) -> Tokens:
        if column.format in INTEGERS:
            return numbers(column.buffer(1, INTEGERS[column.format], column.array.length), "the column of %ss" % self._what)
        if column.format in TEXTS or column.format in VIEWS:
            return _text_of(column)
        if column.format in FLOATS:
            return self._whole(column, left)
        raise TypeError("the column of %ss holds %s, wanted text, whole numbers or categories: name another with columns=, or make text "
                        "of it (pandas: .astype(str))" % (self._what, type_name(column.schema)))

    def _of_dictionary(self, column: Column) -> Tokens:
        dictionary = Column(column.schema.dictionary.contents, column.array.dictionary.contents)
        nulls = dictionary.nulls()
        if nulls is not None and nulls.any():
            raise ValueError("the dictionary of the column of %ss has an entry without a value" % self._what)
        first = self._learn(self._plain(dictionary))
        places = column.buffer(1, INTEGERS[column.format], column.array.length).astype("i8") + first
        return known(places, "the column of %ss" % self._what)


def _ratings(column: Column, what: str) -> Any:
    dtype = {**INTEGERS, **FLOATS}.get(column.format)
    if dtype is None or column.schema.dictionary:
        raise TypeError("the column of %ss holds %s, wanted numbers" % (what, type_name(column.schema)))
    values, nulls = column.buffer(1, dtype, column.array.length).astype("f8"), column.nulls()
    if nulls is not None:
        values[nulls] = numpy.nan
    return values


def _give_lists(corpus: Corpus, reader: Reader, column: Column, before: int) -> None:
    if column.format not in LISTS:
        raise TypeError("the column holds %s, wanted lists of text or whole numbers (of sentences: .str.split() makes them in pandas); "
                        "or name two: columns=(user, item)" % type_name(column.schema))
    column.refuse_nulls("list", before)
    starts = column.buffer(1, LISTS[column.format], column.array.length + 1)
    tokens = _part(column.schema.children[0].contents, column.array.children[0].contents, starts)
    missing = tokens.missing()
    if missing is not None and missing.any():
        raise ValueError("token %d of the lists is missing or NaN: leave these out first (pandas: .dropna())" % numpy.argmax(missing))
    corpus.sentences(reader.tokens(tokens, 0), starts - starts[0])


def _part(schema: Any, array: Any, starts: Any) -> Column:
    """Returns only the tokens of these lists: the child array of a sliced table has the tokens of all other lists, too."""
    array.offset += int(starts[0])
    array.length = int(starts[-1] - starts[0])
    return Column(schema, array)


_TABLES = {  # kind of a table -> names of its three columns, and the function that knows usual names of columns
    "pairs": (("user", "item", "rating"), library.sptx_column),
    "graph": (("source", "target", "weight"), library.sptx_edge_column),
    "triples": (("head", "relation", "tail"), library.sptx_triple_column),
}


class Table(Source):
    """A table, read batch by batch: columns of pairs, of edges (kind "graph") or of triples, or a single column of lists."""

    def __init__(self, data: Any, columns: Optional[Sequence[str]], kind: str) -> None:
        super().__init__()
        self._kind = kind
        self._missing: Dict[int, int] = {}  # {column: number of rows without a value}
        self._parts, self._meaning_of = _TABLES[kind]
        self._capsule = data.__arrow_c_stream__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = c_void_p, [ctypes.py_object, c_char_p]
        self._stream = Stream.from_address(get(self._capsule, b"arrow_array_stream"))
        self._schema = Schema()
        self._check(self._stream.get_schema(ctypes.byref(self._stream), ctypes.byref(self._schema)))
        self._alone = self._schema.format != b"+s"  # True: the stream is a single column (a series), not a table
        self._names = [""] if self._alone else [self._schema.children[i].contents.name.decode()
                                                for i in range(self._schema.n_children)]
        self._columns = self._choose(columns)
        self._lists = len(self._columns) == 1
        if kind == "graph" and self._lists:
            raise ValueError("the edges of a graph are two columns of a table, and it has one, %s" % self._names[self._columns[0]])
        self.format = "text" if self._lists else kind
        self.formats = ("text", "lists", "adjacency") if self._lists else (self.format,)

    def __del__(self) -> None:
        if getattr(self, "_schema", None) is not None and self._schema.release:
            self._schema.release(ctypes.byref(self._schema))

    def _check(self, error: int) -> None:
        if error:
            why = self._stream.get_last_error(ctypes.byref(self._stream))
            raise ValueError("Arrow's stream failed: %s" % (why.decode("utf-8", "replace") if why else "error %d" % error))

    def _choose(self, columns: Optional[Sequence[str]]) -> List[int]:
        if columns is not None:
            wanted = [columns] if isinstance(columns, str) else list(columns)
            for name in wanted:
                if name not in self._names:
                    raise ValueError("the table has no column %r; it has %s" % (name, ", ".join(self._names)))
            if self._kind == "triples" and len(wanted) != 3:
                raise ValueError("columns = %r: wanted (head, relation, tail)" % (columns,))
            if not 1 <= len(wanted) <= 3:
                raise ValueError("columns = %r: wanted (%s, %s), (%s, %s, %s) or one column of lists"
                                 % (columns, *self._parts[:2], *self._parts))
            return [self._names.index(name) for name in wanted]
        own = [i for i, name in enumerate(self._names) if not name.startswith("__index_level_")]  # not pandas' row numbers
        if len(own) == 1 and self._kind != "triples":
            return own
        found: List[Optional[int]] = [None, None, None]  # by meaning: user, item, rating; source, target, weight; head, tail, relation
        for i, name in enumerate(self._names):
            meaning = self._meaning_of(name.encode())
            if meaning >= 0 and found[meaning] is None:
                found[meaning] = i
        if self._kind == "triples":
            return self._three([found[0], found[2], found[1]], own)
        if found[0] is None or found[1] is None:
            if len(own) != 2:
                raise ValueError("which of the columns %s are %s and %s? Say columns=(%s, %s) or (%s, %s, %s)"
                                 % (", ".join(self._names[i] for i in own), *self._parts[:2], *self._parts[:2], *self._parts))
            return own
        chosen = [i for i in found if i is not None]
        if len(chosen) == 2:
            self._tell_unused(chosen, own)
        return chosen

    def _three(self, found: List[Optional[int]], own: List[int]) -> List[int]:
        """Returns the columns of head, relation and tail: those with known names, or else the only three."""
        chosen = [i for i in found if i is not None]
        if len(chosen) < 3 and len(own) != 3:
            raise ValueError("which of the columns %s are head, relation and tail? Say columns=(head, relation, tail)"
                             % ", ".join(self._names[i] for i in own))
        return chosen if len(chosen) == 3 else own

    def _tell_unused(self, chosen: List[int], own: List[int]) -> None:
        """Warns of unused columns, if the columns were chosen by their usual names and none of them has ratings or weights."""
        unused = [self._names[i] for i in own if i not in chosen]
        taken = ", ".join("%s = %s" % (part, self._names[i]) for part, i in zip(self._parts, chosen))
        if unused:
            tell("columns of the table: %s; not used: %s, so that all %s count alike (columns=(%s, %s, %s) names others)"
                 % (taken, ", ".join(unused), "edges" if self._kind == "graph" else "pairs", *self._parts))

    def _batches(self) -> Iterator[Array]:
        while True:
            array = Array()
            self._check(self._stream.get_next(ctypes.byref(self._stream), ctypes.byref(array)))
            if not array.release:
                return
            try:
                yield array
            finally:
                array.release(ctypes.byref(array))

    def _column(self, batch: Array, index: int) -> Column:
        """Returns a column of a batch. If the batch starts at an offset into its buffers, so does the column."""
        if self._alone:
            return Column(self._schema, batch)
        array = batch.children[index].contents
        array.offset += batch.offset
        array.length = batch.length
        return Column(self._schema.children[index].contents, array)

    def give(self, corpus: Corpus) -> None:
        readers = [Reader(corpus, True, "user"), Reader(corpus, False, "item")]
        if self._kind == "graph":
            readers = [Reader(corpus, False, "node")] * 2  # one dictionary for both columns
        elif self._kind == "triples":
            entities = Reader(corpus, False, "entity")
            readers = [entities, Reader(corpus, True, "relation"), entities]
        before = 0
        for batch in self._batches():
            Column(self._schema, batch).refuse_nulls("value in any column: the stream marks the whole row as null", before)
            columns = [self._column(batch, index) for index in self._columns]
            if self._lists:
                _give_lists(corpus, readers[1], columns[0], before)
            elif self._kind == "triples":
                left = self._left(columns)
                corpus.triples(*(reader.tokens(column, before, left) for reader, column in zip(readers, columns)))
            else:
                self._give_pairs(corpus, readers, columns, before)
            before += batch.length
        for index, count in self._missing.items():
            name = self._names[index]
            tell("%d of %d rows have no value (NaN) in the column %s and are left out; frame.dropna(subset=[%r]).astype({%r: 'int64'}) "
                 "says the same, and makes whole numbers of its floats" % (count, before, name, name, name))

    def _give_pairs(self, corpus: Corpus, readers: List[Reader], columns: List[Column], before: int) -> None:
        left = self._left(columns[:2])
        firsts, seconds = (reader.tokens(column, before, left) for reader, column in zip(readers, columns))
        values = _ratings(columns[2], self._parts[2]) if len(columns) > 2 else None
        give = corpus.edges if self._kind == "graph" else corpus.pairs
        give(firsts, seconds, values if values is None or left is None else values[~left])

    def _left(self, columns: List[Column]) -> Any:
        """Returns a mask of the rows that are null or NaN in any of the columns of floats; None if no row is."""
        left = None
        for index, column in zip(self._columns, columns):
            missing = column.missing()
            if missing is not None and missing.any():
                self._missing[index] = self._missing.get(index, 0) + int(missing.sum())
                left = missing if left is None else left | missing
        return left


def source_of(data: Any, columns: Optional[Sequence[str]], kind: str = "pairs") -> Source:
    return Table(data, columns, kind)
