"""Corpus: passes data to the library, block by block (sptx_corpus_* of sptx.h)."""

import ctypes
import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy

from . import _library
from ._compiled import walk
from ._context import Context, Handle
from ._errors import Error
from ._library import library


class Tokens:
    """Tokens in the form that the library reads. Keeps their arrays alive."""

    def __init__(self, kind: int, data: Any, offsets: Any = None, count: Optional[int] = None) -> None:
        numbers = data if offsets is None else offsets
        self.count = len(data) if count is None else count
        self.values, self._offsets = data, offsets
        self.struct = _library.Tokens(kind, 8 * numbers.itemsize, _address(data), None if offsets is None else _address(offsets),
                                      self.count)


def _address(data: Any) -> Any:
    return data.ctypes.data if isinstance(data, numpy.ndarray) else ctypes.cast(data, ctypes.c_void_p)


def _whole(values: Any, what: str) -> Any:
    """Returns integers in a form that the library reads: a dense array of 32 or 64 bits each."""
    values = numpy.asarray(values)
    if values.dtype.kind not in "iu":
        raise TypeError("%s are %s, wanted integers" % (what, values.dtype))
    if values.dtype.kind == "u" and values.itemsize == 8 and values.size and values.max() > numpy.iinfo(numpy.int64).max:
        raise ValueError("%s go up to %d, past 2^63" % (what, values.max()))
    wide = values.itemsize == 8 or values.dtype == numpy.uint32
    return numpy.ascontiguousarray(values, dtype=numpy.int64 if wide else numpy.int32)


def numbers(values: Any, what: str) -> Tokens:
    """Tokens from integers; the word of an integer is its decimal digits."""
    return Tokens(_library.TOKENS_NUMBERS, _whole(values, what))


def known(values: Any, what: str) -> Tokens:
    """Tokens from integers that are indexes into the corpus' dictionary."""
    return Tokens(_library.TOKENS_KNOWN, _whole(values, what))


def text(words: Sequence[bytes]) -> Tokens:
    """Tokens from words as bytes."""
    offsets = numpy.zeros(len(words) + 1, numpy.int64)
    numpy.cumsum(numpy.fromiter(map(len, words), numpy.int64, len(words)), out=offsets[1:])
    return Tokens(_library.TOKENS_TEXT, b"".join(words), offsets, len(words))


WHOLE = (int, numpy.integer, float, numpy.floating)  # floats, too: pandas stores integers with gaps so


def as_word(token: Any) -> bytes:
    """Returns a token as the bytes of its word; 7 and 7.0 both become "7"."""
    if isinstance(token, str):
        return token.encode("utf-8", "surrogateescape")
    if isinstance(token, bytes):
        return token
    if is_token(token):
        return b"%d" % int(token)
    if isinstance(token, WHOLE) and token != token:
        raise TypeError("a token is NaN, a missing value: leave these out first (pandas: .dropna())")
    raise TypeError("the token %r is a %s, wanted a str, bytes or an int" % (token, type(token).__name__))


def name_of(word: Any) -> str:
    """Returns the str of a token in a run's `words`; bytes that are not UTF-8 become surrogate escapes."""
    return word if isinstance(word, str) else as_word(word).decode("utf-8", "surrogateescape")


def is_token(token: Any) -> bool:
    """True if as_word() accepts the value as a token: str, bytes, an integer, or a float that is whole."""
    return isinstance(token, (str, bytes)) or (isinstance(token, WHOLE) and not isinstance(token, bool) and token == token // 1)


class Dictionary(dict):
    """Gives each different token a number, from 0 in the order of first occurrence: looking up a new token gives it the next number."""

    def __init__(self, corpus: "Corpus", lists: bool = False) -> None:
        self._corpus = corpus
        self._lists = lists
        self._new: List[bytes] = []

    def __missing__(self, token: Any) -> int:
        self._new.append(as_word(token))
        number = self[token] = len(self)
        return number

    def tell(self) -> None:
        """Passes the words that were numbered since the last call to the library."""
        self._corpus.words(text(self._new), self._lists)
        self._new.clear()


_TOKENS = 1 << 20  # number of tokens that the library is given at a time


def walked(sentences: Iterable, plain: Callable[[Any, int], List[bytes]], words_only: bool = False,
           most: int = _TOKENS) -> Iterator[Tuple[Tokens, Any]]:
    """Yields blocks of sentences: their tokens, and the index of the token at which each sentence begins, uint64 [sentences + 1], with the number
    of tokens at the end.

    plain(sentence, number) returns a sentence's tokens as bytes. It is called only for sentences that the C module cannot read: it reads lists
    and tuples of str, bytes and int; with words_only, of str that fits a line of a file."""
    iterator, number, ended = iter(sentences), 0, False
    while not ended:
        text, offsets, starts, ended = walk(iterator, lambda sentence, i: plain(sentence, number + i), words_only, most)
        found, ends = numpy.frombuffer(starts, numpy.uint64), numpy.frombuffer(offsets, numpy.int64)
        if len(found) > 1:
            yield Tokens(_library.TOKENS_TEXT, text, ends, len(ends) - 1), found
        number += len(found) - 1


def strings(text: bytes, count: int, offsets: Any) -> List[str]:
    """Returns `count` words of the library, each with its NUL, as str. offsets: where each word begins, and the end of the last word."""
    if text.count(b"\0") == count:
        return text[:-1].decode("utf-8", "surrogateescape").split("\0") if count else []
    return [text[a - offsets[0]:b - 1 - offsets[0]].decode("utf-8", "surrogateescape") for a, b in zip(offsets, offsets[1:])]


def _field_of(value: Any) -> Tuple[bytes, int, int]:
    """Converts a field of a row for sptx_corpus_look(): its text, the text's length, and its enum sptx_field_kind."""
    if value is None or value is numpy.ma.masked or value != value:
        return b"", 0, 1
    if isinstance(value, (bool, numpy.bool_)):
        word, kind = b"True" if value else b"False", 5
    elif isinstance(value, WHOLE):
        word, kind = (b"%d" % int(value), 3) if value == value // 1 and abs(value) < 1e300 else (repr(float(value)).encode(), 4)
    else:
        word, kind = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape"), 2
    return word, len(word), kind


class Corpus:
    """A corpus of the library that is being filled, for a run with these settings."""

    def __init__(self, context: Context, settings: Sequence[bytes]) -> None:
        self.context = self._context = context
        self._handle = Handle(context, library.sptx_corpus_close)
        context.call(library.sptx_corpus_open, context._handle, None, (ctypes.c_char_p * len(settings))(*settings), len(settings),
                     ctypes.byref(self._handle.pointer))

    def look(self, rows: Sequence[Sequence[Any]], names: Optional[Sequence[str]], what: str) -> Tuple[str, Tuple[Any, ...], bool]:
        """Looks at the first rows of fields. Returns the format, the indexes of columns by meaning (None: no such column), and whether the third
        column has names of events. Raises ValueError if the rows fit no format, or several."""
        fields = [_field_of(value) for row in rows for value in row]
        columns = len(rows[0]) if rows else 0
        about = _library.Rows(ctypes.sizeof(_library.Rows), (_library.Field * len(fields))(*fields), len(rows), columns,
                              None if names is None else (ctypes.c_char_p * columns)(*(name.encode("utf-8", "replace") for name in names)),
                              what.encode("utf-8", "replace"))
        found = _library.Looked(ctypes.sizeof(_library.Looked))
        try:
            self._context.call(library.sptx_corpus_look, self._handle.pointer, about, ctypes.byref(found))
        except Error as error:
            said = re.sub(r"corpus\.columns ?= ?(\d[\d,]*)", r"columns=(\1)", str(error))
            raise ValueError(said.replace("by corpus.format:", "by format=:").replace("by corpus.columns", "by columns=")) from None
        return found.format.decode(), tuple(None if column < 0 else column for column in found.column), bool(found.events)

    def say(self, said: str) -> None:
        """Says what the data was taken for."""
        self._context.call(library.sptx_corpus_say, self._handle.pointer, " ".join(said.split()).encode("utf-8", "replace"))

    def words(self, words: Tokens, lists: bool = False) -> None:
        """Appends words to the dictionary."""
        if words.count:
            self._context.call(library.sptx_corpus_words, self._handle.pointer, int(lists), words.struct)

    def sentences(self, tokens: Tokens, starts: Any, names: Optional[Tokens] = None) -> None:
        starts = numpy.ascontiguousarray(starts, dtype=numpy.uint64)
        self._context.call(library.sptx_corpus_sentences, self._handle.pointer, tokens.struct, starts.ctypes.data, len(starts) - 1,
                           None if names is None else names.struct)

    def pairs(self, lists: Tokens, items: Tokens, ratings: Any = None) -> None:
        if ratings is not None:
            ratings = numpy.ascontiguousarray(ratings, dtype=numpy.float64)
        self._context.call(library.sptx_corpus_pairs, self._handle.pointer, lists.struct, items.struct,
                           None if ratings is None else ratings.ctypes.data)

    def edges(self, sources: Tokens, targets: Tokens, weights: Any = None) -> None:
        if weights is not None:
            weights = numpy.ascontiguousarray(weights, dtype=numpy.float64)
        self._context.call(library.sptx_corpus_edges, self._handle.pointer, sources.struct, targets.struct,
                           None if weights is None else weights.ctypes.data)

    def triples(self, heads: Tokens, relations: Tokens, tails: Tokens) -> None:
        self._context.call(library.sptx_corpus_triples, self._handle.pointer, heads.struct, relations.struct, tails.struct)

    def tune(self, options: Any, tuned: Any, hear: Any) -> int:
        return self._context.call(library.sptx_corpus_tune, self._handle.pointer, options, hear, None, tuned)

    def text(self, text: bytes) -> None:
        """Adds lines of text, whose last word is complete; b"" ends the last line."""
        self._context.call(library.sptx_corpus_text, self._handle.pointer, text, len(text))

    def counted(self) -> Tuple[bytes, Any, Any, int, int]:
        """Returns the different words, each with a NUL, in the order of first occurrence; where each word begins; their counts; and the numbers of
        sentences and of tokens."""
        found = _library.Counted(ctypes.sizeof(_library.Counted))
        self._context.call(library.sptx_corpus_counted, self._handle.pointer, ctypes.byref(found))
        words = found.words
        offsets = numpy.ctypeslib.as_array((ctypes.c_uint64 * (words.count + 1)).from_address(words.offsets)).copy()
        counts = numpy.ctypeslib.as_array((ctypes.c_uint64 * words.count).from_address(found.counts)).astype(numpy.int64)
        text = ctypes.string_at(words.data, int(offsets[-1])) if words.count else b""
        return text, offsets, counts, found.sentences, found.tokens

    def set(self, settings: Sequence[bytes]) -> None:
        """Changes settings for the next training."""
        self._context.call(library.sptx_corpus_set, self._handle.pointer, (ctypes.c_char_p * len(settings))(*settings), len(settings))

    def train(self, beginning: int, hear: Any) -> int:
        return self._context.call(library.sptx_corpus_train, self._handle.pointer, beginning, hear, None)


class Source:
    """Base class of data that is read once, and passed to a corpus in blocks."""

    format: Optional[str] = "text"  # None: the library finds it
    said = ""                       # what the data is taken for; "": the library's look says it
    events = ""                     # corpus.events
    formats: Sequence[str] = ("text", "lists", "adjacency", "documents")  # values of corpus.format with which the data can be read

    def __init__(self) -> None:
        self.settings: Dict[str, str] = {}
        self.defaults: Dict[str, str] = {}  # keys that the caller's keys override

    def give(self, corpus: Corpus) -> None:
        raise NotImplementedError

    def find(self, corpus: Corpus) -> None:
        """Sets `format` to what an empty corpus finds in the first rows. Called if `format` is None."""
        raise NotImplementedError

    def read_as(self, format: Optional[str]) -> "Source":
        """Sets the format that the caller asked for."""
        if format is not None and format not in self.formats:
            raise ValueError("format = %r: this data is read as %s" % (format, " or ".join(self.formats)))
        self.format = format or self.format
        return self
