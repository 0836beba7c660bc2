"""GloVe: vectors of words from counts of pairs, with the names of gensim's classes."""

import os
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

import numpy

from . import _pickled
from ._errors import naming
from ._fit import fit
from ._keyed import KeyedVectors
from ._run import Run
from ._views import widened
from ._word2vec import _Place

Path = Union[str, "os.PathLike[str]"]


_ARGUMENTS = {"glove.x_max": "x_max", "glove.alpha": "alpha", "train.seed": "seed", "examples.window": "window", "corpus.min_count": "min_count",
              "model.dim": "vector_size", "train.epochs": "epochs", "optimizer.initial_accumulator": "learning_rate ** -2"}  # what messages call keys


class GloVe(_pickled.Saved):
    """Vectors of words by GloVe (Pennington et al., 2014): how often words occur near each other is counted once, and the dot
    product of two words' vectors is fitted to the logarithm of that.

        model = sptx.GloVe(sentences, vector_size=100, window=10)
        model.wv.most_similar("computer")

    corpus          an iterable of lists of str, read once; a path, or a list of paths, of text files, in which a line ends windows
    counts          instead of it: a square sparse matrix of SciPy's, or array, whose entry [i, j] is how often word j occurs near
                    word i (its diagonal is left out); words: names of its rows, else "0", "1", ..
    vector_size     columns; window: words on each side, at a distance d counted as 1 / d; min_count: rarer words are left out
    x_max, alpha    a pair that counts x weighs min(1, (x / x_max) ** alpha)
    learning_rate   GloVe's, of AdaGrad with sums that begin at 1
    epochs          passes over the pairs; workers: threads, None: all. seed: the same one gives the same vectors with one thread
    begin           a path of vectors or of a run, with which words that it knows begin
    device          "auto": the GPU where there is one; "cpu", "cuda"
    keys            further keys, "section.key": value, as `sptx-w2v help keys` lists them

    wv              sptx.KeyedVectors of the words: sums of both vectors of a word, as GloVe's program writes them
    word_vectors, context_vectors     both, float32 [words x vector_size], in the order of wv
    word_biases, context_biases       float32 [words]

    Raises ValueError and TypeError for invalid data or keys, sptx.Error with the reason if training failed.
    """

    def __init__(self, corpus: Any = None, *, counts: Any = None, words: Optional[Sequence[str]] = None, vector_size: int = 100,
                 window: int = 10, min_count: int = 5, x_max: float = 10, alpha: float = 0.75, learning_rate: float = 0.05,
                 epochs: int = 15, seed: int = 1, workers: Optional[int] = None, begin: Optional[Path] = None, device: str = "auto",
                 keys: Optional[Dict[str, Any]] = None) -> None:
        if (corpus is None) == (counts is None):
            raise ValueError("GloVe takes a corpus or counts: one of the two")
        if not learning_rate > 0:
            raise ValueError("learning_rate = %r, wanted a number above 0" % (learning_rate,))
        if counts is None and words is not None:
            raise ValueError("words are the names of the rows of counts, and there are none")
        self.vector_size, self.window, self.min_count, self.x_max, self.alpha = int(vector_size), int(window), min_count, x_max, alpha
        self.learning_rate, self.epochs, self.seed, self.workers, self.device = learning_rate, int(epochs), int(seed), workers, device
        own: Dict[str, Any] = {"train.loss": "glove", "glove.x_max": x_max, "glove.alpha": alpha, "train.seed": self.seed,
                               "optimizer.initial_accumulator": learning_rate ** -2.0, "run.checkpoint_every": "end", "run.keep": 1}
        if begin is not None:
            own["train.from"] = '"%s"' % os.fspath(begin)
        own.update({"examples.window": self.window, "corpus.min_count": min_count} if counts is None
                   else {"corpus.min_count": 0, "graph.directed": True})
        with _Place() as place:
            data, format = (corpus, "text") if counts is None else (_matrix(counts, words), "graph")
            with naming(_ARGUMENTS, keys or {}):
                run = fit(data, place.path("run"), dim=self.vector_size, epochs=self.epochs, keys={**own, **(keys or {})}, format=format,
                          progress=False, device=device, threads=workers or 0)
            with run:
                self._take(run, place.path("run"), counts is not None, words)

    def _take(self, run: Run, path: str, numbered: bool, words: Optional[Sequence[str]]) -> None:
        """Copies vectors and biases from the run. numbered: True if its words are row numbers of counts."""
        names: List[str] = list(run.words)
        rows = numpy.arange(len(names))
        if numbered:
            rows = numpy.argsort([int(name) for name in names], kind="stable")
            names = [names[row] if words is None else words[int(names[row])] for row in rows]
        with open(os.path.join(path, "latest"), encoding="ascii") as file:
            checkpoint = os.path.join(path, file.read().strip())
        dim = self.vector_size
        of_word, of_context = (numpy.load(os.path.join(checkpoint, side + ".npy"), mmap_mode="r")["weights"][rows]
                               for side in ("target", "context"))
        self.word_vectors, self.context_vectors = _floats(of_word[:, :dim]), _floats(of_context[:, :dim])
        self.word_biases, self.context_biases = _floats(of_word[:, dim]), _floats(of_context[:, dim + 1])
        self.wv = KeyedVectors(dim)
        self.wv.add_vectors(names, self.word_vectors + self.context_vectors, extras={"count": run.counts[rows].astype(numpy.int64)})

    def score(self, word: str, context: str) -> float:
        """Returns the logarithm that the model predicts of how often two words occur near each other."""
        a, b = self.wv.get_index(word), self.wv.get_index(context)
        return float(self.word_vectors[a] @ self.context_vectors[b] + self.word_biases[a] + self.context_biases[b])

    def __repr__(self) -> str:
        return "GloVe<vocab=%d, vector_size=%d, window=%d>" % (len(self.wv), self.vector_size, self.window)


def _matrix(counts: Any, words: Optional[Iterable[str]]) -> Any:
    """Checks the matrix of counts, and the names of its rows."""
    shape = getattr(counts, "shape", None)
    if shape is None or len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError("counts are a square matrix, words x words, and not %s"
                         % ("of shape %r" % (tuple(shape),) if shape else "a " + type(counts).__name__))
    if words is not None and len(list(words)) != shape[0]:
        raise ValueError("counts have %d rows, and %d words were given" % (shape[0], len(list(words))))
    return counts


def _floats(values: Any) -> Any:
    """Returns values as float32; a checkpoint's bfloat16 values come as uint16."""
    return widened(values) if values.dtype == numpy.uint16 else numpy.ascontiguousarray(values, numpy.float32)
