"""gensim.models.fasttext: the class FastText, and functions that load and save model files of fastText (.bin)."""

import os
import struct
from typing import Any, List

import numpy

from ..._fasttext import FastText, FastTextKeyedVectors
from ..._keyed import Path
from ..._run import Run

__all__ = ["FastText", "FastTextKeyedVectors", "load_facebook_model", "load_facebook_vectors", "save_facebook_model"]

FAST_VERSION = 1  # as gensim where its compiled code is there: its scripts ask for it

_ARGUMENTS = struct.Struct("<14i d")  # magic, version, dim, window, epochs, min_count, negatives, word_ngrams, loss, model, buckets, ..


def load_facebook_vectors(path: Path, encoding: str = "utf-8") -> FastTextKeyedVectors:
    """Loads the vectors of words and n-grams from a file of fastText (.bin). Unseen words get vectors from their n-grams.

    Raises sptx.Error if the file is not fastText's, if it is quantized, or if it was trained to predict labels.
    """
    with Run(path, device="cpu") as run:
        return _vectors_of(run, path, _arguments(path), encoding)


def load_facebook_model(path: Path, encoding: str = "utf-8") -> FastText:
    """Loads a file of fastText (.bin) as a model, which can be queried and saved, but not trained further."""
    said = _arguments(path)
    model = FastText(vector_size=said[2], window=said[3], epochs=said[4], min_count=said[5], negative=said[6], sg=int(said[9] == 2),
                     bucket=said[10], min_n=said[11], max_n=said[12], device="cpu")
    with Run(path, device="cpu") as run:
        model.wv = _vectors_of(run, path, said, encoding)
        model.syn1neg = numpy.ascontiguousarray(run.context[:len(run)])
    model._loaded = os.fspath(path)
    return model


def _arguments(path: Path) -> List[Any]:
    with open(path, "rb") as file:
        head = file.read(_ARGUMENTS.size)
    return list(_ARGUMENTS.unpack(head.ljust(_ARGUMENTS.size, b"\0")))


def _vectors_of(run: Run, path: Path, said: List[Any], encoding: str) -> FastTextKeyedVectors:
    found = FastTextKeyedVectors(said[2], said[11], said[12], said[10])
    names = [name.encode("utf-8", "surrogateescape").decode(encoding, "replace") for name in run.words]
    found.add_vectors(names, run.vectors())
    found.vectors_vocab = numpy.ascontiguousarray(run.target[:len(run)])
    found.vectors_ngrams = numpy.ascontiguousarray(_buckets_of(path, len(run), said[2], said[10]))
    found.expandos["count"] = run.counts.astype(numpy.int64)
    return found


def _buckets_of(path: Path, words: int, dim: int, buckets: int) -> Any:
    """Reads the vectors of all n-gram buckets, float32 [buckets x dim]. The file ends with them, then a 17-byte header, then the
    output matrix [words x dim]."""
    first = os.path.getsize(path) - 17 - 4 * words * dim - 4 * buckets * dim
    return numpy.fromfile(path, "<f4", buckets * dim, offset=first).reshape(buckets, dim)


def save_facebook_model(model: FastText, path: Any, *_: Any, **__: Any) -> None:
    """Saves a trained model as a file of fastText (.bin)."""
    model.save_facebook_model(path)
