"""sptx: rows of huge tables for anyone's model.

    Table       float32 rows that may not fit a GPU, with their optimizer's state: fetch, prefetch, update, store, save, load
    KeyedTable  rows by 64-bit keys that come and go: hashes of users, ads, words
    Tables      several of them, asked and changed by one call; KeyedTables: several KeyedTables, saved by one call, too
    torch       sptx.torch.Embedding: a table as a module of PyTorch
    speedtorch  the names of the SpeedTorch package: `import sptx.speedtorch as SpeedTorch`
    gensim      gensim's names: `import sptx.gensim as gensim`
    implicit    implicit's names: `import sptx.implicit as implicit`
    lightfm     LightFM's names: `from sptx.lightfm import LightFM`
    fit         trains a run on paths, iterables, dicts, sparse matrices, Arrow tables or edges, without conversion
    tune        finds keys for data: trains on most of it, judges by the rest
    Run, train  what the sptx-w2v program trains: a finished run's words and vectors, and training itself
    Word2Vec    gensim's class: `from sptx import Word2Vec`; its vectors are KeyedVectors
    Doc2Vec     gensim's class of documents, which are TaggedDocument; its vectors are in `dv`
    FastText    gensim's class of words that share the rows of their n-grams; its vectors are FastTextKeyedVectors
    GloVe       vectors of words from counts of pairs, of a corpus or a matrix
    Phrases     gensim's class that joins words which often follow each other; FrozenPhrases is the same without its counts
    lightning, transformers   callbacks for PyTorch Lightning and Hugging Face's Trainer: rows beside their checkpoints
    Context     the machine that tables run on, where the default is not wanted
    Rows        rows in place, as Table.weights gives them
    Saving      a save that goes on, as Table.save(path, wait=False) gives it
    Error       what failed outside a call; a call that is wrong itself raises ValueError, TypeError or IndexError

NumPy is all that is needed; arrays of PyTorch, CuPy and JAX are taken where they come from. help(sptx.Table) says how.
"""

import importlib
from typing import Any

from ._context import Context
from ._doc2vec import Doc2Vec, TaggedDocument
from ._errors import Error, OutOfMemory, SptxWarning
from ._fasttext import FastText, FastTextKeyedVectors
from ._fit import fit
from ._glove import GloVe
from ._keyed import KeyedVectors
from ._keyed_table import KeyedTable
from ._library import version as __version__
from ._phrases import FrozenPhrases, Phrases
from ._run import Run
from ._saving import Saving
from ._table import Table
from ._tables import KeyedTables, Tables
from ._train import Progress, train
from ._tune import Tuned, tune
from ._views import HalfRows, Rows
from ._word2vec import Word2Vec

__all__ = ["Context", "Doc2Vec", "Error", "FastText", "FastTextKeyedVectors", "FrozenPhrases", "GloVe", "HalfRows", "KeyedTable", "KeyedTables", "KeyedVectors",
           "OutOfMemory", "Phrases", "Progress", "Rows", "Run", "Saving", "SptxWarning", "Table", "Tables", "TaggedDocument", "Tuned", "Word2Vec", "fit",
           "gensim", "implicit", "lightfm", "speedtorch", "torch", "train", "tune"]


def __getattr__(name: str) -> Any:
    """Imports a submodule at its first use: sptx.torch and sptx.speedtorch import PyTorch, which is slow and may be missing."""
    if name in ("gensim", "implicit", "lightfm", "lightning", "speedtorch", "torch", "transformers"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError("module 'sptx' has no attribute %r" % name)
