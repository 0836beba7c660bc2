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
from ._corpus import Corpus, Source, Tokens, known, numbers
from ._errors import tell
from ._rows import COLUMNS_MOST, FieldRows


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
    """Returns the name of a column's type, as pandas writes it, for error messages."""
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
        """Returns a mask that is True for rows that are null, or NaN in a column of floats; None if no value can be missing.

        pandas stores a column of integers as floats if a value is missing: the missing one is NaN."""
        nulls = self.nulls()
        if self.format not in FLOATS or self.schema.dictionary:
            return nulls
        values = self.buffer(1, FLOATS[self.format], self.array.length)
        return numpy.isnan(values) if nulls is None else numpy.isnan(values) | nulls


def _text_of(column: Column) -> Tokens:
    array = column.array
    if column.format in VIEWS:
        return _text_of_views(column)
    offsets = column.buffer(1, TEXTS[column.format], array.length + 1)
    return Tokens(_library.TOKENS_TEXT, ctypes.c_void_p(array.buffers[2] or offsets.ctypes.data), offsets, array.length)


def _text_of_views(column: Column) -> Tokens:
    """Copies the texts of a column of views, one after the other. A view is a text's length, then either the text, of up to 12 bytes, or its first
    4 bytes, the number of a buffer, and the text's offset in it."""
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
        self.what = what
        self._learned = 0  # number of words from dictionaries of earlier batches

    def tokens(self, column: Column, before: int, left: Any = None) -> Tokens:
        """Returns a column's tokens, without the rows for which the mask `left` is True; left=None: all rows."""
        if left is None:
            column.refuse_nulls(self.what, before)
        if column.schema.dictionary:
            tokens = self._of_dictionary(column)
        else:
            tokens = self._plain(column, left)
        return tokens if left is None or not left.any() else self._kept(tokens, ~left)

    def _kept(self, tokens: Tokens, kept: Any) -> Tokens:
        """Returns the tokens for which the mask `kept` is True, as indexes of words in the dictionary."""
        if tokens.struct.kind == _library.TOKENS_KNOWN:
            return known(tokens.values[kept], self.what)
        return known(numpy.flatnonzero(kept) + self._learn(tokens), self.what)

    def _learn(self, words: Tokens) -> int:
        """Appends words to the dictionary. Returns the number of the first appended word."""
        first, self._learned = self._learned, self._learned + words.count
        self._corpus.words(words, self._lists)
        return first

    def _whole(self, column: Column, left: Any) -> Tokens:
        """Converts a column of floats to integers; TypeError if a value is not whole. Rows for which the mask `left` is True become 0."""
        values = column.buffer(1, FLOATS[column.format], column.array.length)
        values = values if left is None else numpy.where(left, 0, values)
        odd = numpy.flatnonzero(~(numpy.abs(values) < 2.0 ** 53) | (values != numpy.floor(values)))
        if len(odd):
            raise TypeError("the column of %ss holds %s with %r, wanted text, whole numbers or categories"
                            % (self.what, type_name(column.schema), float(values[odd[0]])))
        return numbers(values.astype(numpy.int64), "the column of %ss" % self.what)

    def _plain(self, column: Column, left: Any = None) -> Tokens:
        if column.format in INTEGERS:
            return numbers(column.buffer(1, INTEGERS[column.format], column.array.length), "the column of %ss" % self.what)
        if column.format in TEXTS or column.format in VIEWS:
            return _text_of(column)
        if column.format in FLOATS:
            return self._whole(column, left)
        raise TypeError("the column of %ss holds %s, wanted text, whole numbers or categories: %s" %
                        (self.what, type_name(column.schema), "frame.explode(%r) has a row for each of their values" % (column.schema.name or b"").decode()
                         if column.format in LISTS else "name another with columns=, or make text of it (pandas: .astype(str))"))

    def _of_dictionary(self, column: Column) -> Tokens:
        dictionary = Column(column.schema.dictionary.contents, column.array.dictionary.contents)
        nulls = dictionary.nulls()
        if nulls is not None and nulls.any():
            raise ValueError("the dictionary of the column of %ss has an entry without a value" % self.what)
        first = self._learn(self._plain(dictionary))
        places = column.buffer(1, INTEGERS[column.format], column.array.length)
        return known(places.astype("i8") + first if first else places, "the column of %ss" % self.what)


def _ratings(column: Column, what: str) -> Any:
    if column.format == "b":
        return _truths(column).astype("f8")
    dtype = {**INTEGERS, **FLOATS}.get(column.format)
    if dtype is None or column.schema.dictionary:
        raise TypeError("the column of %ss holds %s, wanted numbers" % (what, type_name(column.schema)))
    values, nulls = column.buffer(1, dtype, column.array.length).astype("f8", copy=False), column.nulls()
    if nulls is not None:
        values = values.copy()
        values[nulls] = numpy.nan
    return values


def _give_lists(corpus: Corpus, reader: Reader, column: Column, before: int) -> None:
    if column.format not in LISTS:
        raise TypeError("the column holds %s, wanted lists of text or whole numbers (of sentences: .str.split() makes them in pandas); "
                        "or name two: columns=(user, item); format=\"text\" and \"documents\" read texts" % type_name(column.schema))
    column.refuse_nulls("list", before)
    starts = column.buffer(1, LISTS[column.format], column.array.length + 1)
    tokens = _part(column.schema.children[0].contents, column.array.children[0].contents, starts)
    missing = tokens.missing()
    if missing is not None and missing.any():
        raise ValueError("token %d of the lists is missing or NaN: leave these out first (pandas: .dropna())" % numpy.argmax(missing))
    corpus.sentences(reader.tokens(tokens, 0), starts - starts[0])


def _part(schema: Any, array: Any, starts: Any) -> Column:
    """Returns only the tokens of these lists: if a table is sliced, the child array still has the tokens of the other lists."""
    array.offset += int(starts[0])
    array.length = int(starts[-1] - starts[0])
    return Column(schema, array)


def _plain_values(column: Column) -> List[Any]:
    """Returns a column's values as Python objects, None for a missing value. If the type of the column cannot be names: the type's name."""
    count, format = column.array.length, column.format
    nulls = column.nulls()
    if column.schema.dictionary:
        words = _plain_values(Column(column.schema.dictionary.contents, column.array.dictionary.contents))
        places = column.buffer(1, INTEGERS[format], count).tolist()
        return [None if nulls is not None and nulls[i] else words[place] for i, place in enumerate(places)]
    if format in INTEGERS or format in FLOATS:
        found: List[Any] = column.buffer(1, {**INTEGERS, **FLOATS}[format], count).tolist()
    elif format == "b":
        found = _truths(column).tolist()
    elif format in TEXTS or format in VIEWS:
        tokens = _text_of(column)
        ends = tokens._offsets.tolist()
        data = ctypes.string_at(tokens.struct.data + ends[0], ends[-1] - ends[0]) if count and ends[-1] > ends[0] else b""
        found = [data[a - ends[0]:b - ends[0]] for a, b in zip(ends, ends[1:])]
    else:
        found = [type_name(column.schema)] * count
    return found if nulls is None else [None if null else value for value, null in zip(found, nulls)]


def _truths(column: Column) -> Any:
    array = column.array
    bits = column.buffer(1, "u1", (array.offset + array.length + 7) // 8, 0)
    return numpy.unpackbits(bits, bitorder="little")[array.offset:array.offset + array.length].astype(bool)


def _shortened(column: Column, most: int) -> Column:
    array = Array.from_buffer_copy(column.array)
    array.length = min(array.length, most)
    return Column(column.schema, array)


class Table(FieldRows):
    """A table, read batch by batch: rows of fields, or a single column of lists or of texts."""

    def __init__(self, data: Any, columns: Any) -> None:
        self._missing: Dict[int, int] = {}  # {column: number of rows without a value}
        self._capsule = data.__arrow_c_stream__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = c_void_p, [ctypes.py_object, c_char_p]
        self._stream = Stream.from_address(get(self._capsule, b"arrow_array_stream"))
        self._schema = Schema()
        self._check(self._stream.get_schema(ctypes.byref(self._stream), ctypes.byref(self._schema)))
        self._alone = self._schema.format != b"+s"  # True: the stream is a single column (a series), not a table
        names = [""] if self._alone else [self._schema.children[i].contents.name.decode() for i in range(self._schema.n_children)]
        self._columns = self._choose(names, columns)
        super().__init__("the table", [names[i] for i in self._columns], None if columns is None or len(self._columns) == 1 else
                         range(1, len(self._columns) + 1))
        self._held: List[Array] = []  # batches that were looked at and are not given yet
        self._before = 0              # number of rows of earlier batches
        self._left: Any = None        # mask of the batch's rows that are left out
        self._one = len(self._columns) == 1
        if self._one:
            lists = self._schema_of(self._columns[0]).format.decode() in LISTS
            self.format, self.formats = "text", ("text", "lists", "adjacency") if lists else ("text", "documents")
            self._asked = lists

    def read_as(self, format: Optional[str]) -> "Table":
        if self._one and format is not None:
            self._asked = True
        super().read_as(format)
        return self

    def __del__(self) -> None:
        for array in getattr(self, "_held", ()):
            array.release(ctypes.byref(array))
        if getattr(self, "_schema", None) is not None and self._schema.release:
            self._schema.release(ctypes.byref(self._schema))

    def _check(self, error: int) -> None:  # type: ignore[override]
        if error:
            why = self._stream.get_last_error(ctypes.byref(self._stream))
            raise ValueError("Arrow's stream failed: %s" % (why.decode("utf-8", "replace") if why else "error %d" % error))

    def _schema_of(self, index: int) -> Any:
        return self._schema if self._alone else self._schema.children[index].contents

    @staticmethod
    def _choose(names: List[str], columns: Any) -> List[int]:
        """Returns the indexes of the columns that sptx_corpus_look() is given, in the user's order."""
        if columns is None:
            own = [i for i, name in enumerate(names) if not name.startswith("__index_level_")]  # not pandas' row numbers
            if len(own) > COLUMNS_MOST:
                raise ValueError("the table has %d columns, and rows of fields are looked at up to %d: columns=(..) names two or three. A column for "
                                 "each item makes it a matrix: sptx.fit(scipy.sparse.csr_matrix(frame.values), .., items=list(frame.columns)), "
                                 "with the names of lists as users=" % (len(own), COLUMNS_MOST))
            return own
        wanted = [columns] if isinstance(columns, (str, int)) else list(columns)
        for column in wanted:
            if column not in names and not (isinstance(column, int) and 1 <= column <= len(names)):
                raise ValueError("the table has no column %r; it has %s" % (column, ", ".join(names)))
        if not 1 <= len(wanted) <= 3:
            raise ValueError("columns = %r: wanted two or three, such as (\"user\", \"item\"), or one column of lists" % (columns,))
        return [names.index(column) if column in names else column - 1 for column in wanted]

    # ---- batches ----

    def _next(self) -> Optional[Array]:
        array = Array()
        self._check(self._stream.get_next(ctypes.byref(self._stream), ctypes.byref(array)))
        return array if array.release else None

    def _batches(self) -> Iterator[Array]:
        while True:
            array = self._held.pop(0) if self._held else self._next()
            if array is None:
                return
            try:
                Column(self._schema, array).refuse_nulls("value in any column: the stream marks the whole row as null", self._before)
                yield array
                self._before += array.length
            finally:
                array.release(ctypes.byref(array))

    def _columns_of(self, batch: Array) -> List[Column]:
        """Returns the columns of a batch. If the batch begins at an offset in its buffers, so do its columns."""
        if self._alone:
            return [Column(self._schema, batch)]
        found = []
        for index in self._columns:
            array = Array.from_buffer_copy(batch.children[index].contents)
            array.offset += batch.offset
            array.length = batch.length
            found.append(Column(self._schema.children[index].contents, array))
        return found

    def first(self, count: int) -> List[Sequence[Any]]:
        rows: List[Sequence[Any]] = []
        while len(rows) < count:
            batch = self._next()
            if batch is None:
                break
            self._held.append(batch)
            rows += zip(*(_plain_values(_shortened(column, count - len(rows))) for column in self._columns_of(batch)))
        return rows

    def blocks(self) -> Iterator[List[Any]]:
        for batch in self._batches():
            yield self._columns_of(batch)

    # ---- given ----

    def give(self, corpus: Corpus) -> None:
        self._readers = {lists: Reader(corpus, lists, "item") for lists in (False, True)}
        if self._one:
            self._give_alone(corpus)
        else:
            super().give(corpus)
        for index, count in self._missing.items():
            name = (self.names or ())[index]
            floats = self._schema_of(self._columns[index]).format.decode() in FLOATS
            tell("%d of %d rows have no value in the column %s and are left out, as frame.dropna(subset=[%r])%s does" %
                 (count, self._before, name, name, ".astype({%r: 'int64'})" % name if floats else ""))

    def _give_alone(self, corpus: Corpus) -> None:
        said = {"lists": "item = element", "adjacency": "target = first element, context = the others", "documents": "document = row, text"}
        if self.format in said:
            corpus.say("%s; a column of %s" % (said[self.format], type_name(self._schema_of(self._columns[0]))))
        for columns in self.blocks():
            if columns[0].format in LISTS or not self._asked:
                _give_lists(corpus, self._readers[False], columns[0], self._before)
            else:
                self._documents(corpus, None, columns[0], None, False)

    def begin(self, columns: Sequence[Any]) -> None:
        self._left = None
        for index in columns:
            missing = None if index is None else self.block[index].missing()
            if missing is not None and missing.any():
                self._missing[index] = self._missing.get(index, 0) + int(missing.sum())
                self._left = missing if self._left is None else self._left | missing

    def tokens(self, corpus: Corpus, column: Any, what: str, lists: bool) -> Tokens:
        reader = self._readers[lists]
        reader.what = what[:-1]
        return reader.tokens(column, self._before, self._left)

    def values(self, column: Any, what: str) -> Any:
        values = _ratings(column, what)
        return values if self._left is None else values[~self._left]

    def texts(self, column: Any) -> List[bytes]:
        column.refuse_nulls("text", self._before)
        return super().texts(_plain_values(column))


def source_of(data: Any, columns: Any) -> Source:
    return Table(data, columns)
