"""gensim.models.word2vec: the class Word2Vec, and classes that read sentences from files."""

import itertools
import os
from typing import Any, Iterable, Iterator, List, Optional

from ..._keyed import KeyedVectors, _opened
from ..._refused import refused
from ..._word2vec import Word2Vec

__all__ = ["KeyedVectors", "LineSentence", "PathLineSentences", "Text8Corpus", "Word2Vec"]

FAST_VERSION = 1  # as gensim where its compiled code is there: its scripts ask for it

_READ = 1 << 20  # bytes of a text file that are read at a time


class LineSentence:
    """Iterable of the sentences in a file: one a line, words separated by blanks. Longer lines are split after max_sentence_length
    words. `source` is a path (.gz and .bz2 are unpacked) or an open file. Each iteration starts at the file's beginning."""

    def __init__(self, source: Any, max_sentence_length: int = 10000, limit: Optional[int] = None) -> None:
        self.source, self.max_sentence_length, self.limit = source, max_sentence_length, limit

    def __iter__(self) -> Iterator[List[str]]:
        if hasattr(self.source, "seek"):
            self.source.seek(0)
            yield from self._sentences(self.source)
            return
        with _opened(self.source, "rb") as lines:
            yield from self._sentences(lines)

    def _sentences(self, lines: Iterable[Any]) -> Iterator[List[str]]:
        for line in itertools.islice(lines, self.limit):
            yield from _cut(_text(line).split(), self.max_sentence_length)


class PathLineSentences:
    """Iterable of the sentences in all files of a folder, sorted by file name, or in one file."""

    def __init__(self, source: Any, max_sentence_length: int = 10000, limit: Optional[int] = None) -> None:
        self.source, self.max_sentence_length, self.limit = source, max_sentence_length, limit
        folder = os.path.isdir(source)
        if not folder and not os.path.isfile(source):
            raise ValueError("'%s' is neither a file nor a folder" % os.fspath(source))
        self.input_files = sorted(os.path.join(source, name) for name in os.listdir(source)) if folder else [source]

    def __iter__(self) -> Iterator[List[str]]:
        for path in self.input_files:
            yield from LineSentence(path, self.max_sentence_length, self.limit)


class Text8Corpus:
    """Iterable that cuts a file without lines, such as text8, into sentences of max_sentence_length words."""

    def __init__(self, fname: Any, max_sentence_length: int = 10000) -> None:
        self.fname, self.max_sentence_length = fname, max_sentence_length

    def __iter__(self) -> Iterator[List[str]]:
        words = self._words()
        while True:
            sentence = list(itertools.islice(words, self.max_sentence_length))
            if not sentence:
                return
            yield sentence

    def _words(self) -> Iterator[str]:
        with _opened(self.fname, "rb") as file:
            rest = b""
            for block in iter(lambda: file.read(_READ), b""):
                *whole, rest = (rest + block).replace(b"\t", b" ").replace(b"\n", b" ").replace(b"\r", b" ").split(b" ")
                yield from (word.decode("utf-8", "replace") for word in whole if word)
            if rest:
                yield rest.decode("utf-8", "replace")


BrownCorpus = refused("BrownCorpus is not there: LineSentence reads files of a sentence a line, words parted by blanks")


def _text(line: Any) -> str:
    return line if isinstance(line, str) else line.decode("utf-8", "replace")


def _cut(words: List[str], most: int) -> Iterator[List[str]]:
    return (words[at:at + most] for at in range(0, len(words), most))
