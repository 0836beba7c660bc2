"""Drop-in module for gensim: with `import sptx.gensim as gensim`, scripts that use gensim.models.Word2Vec, FastText or KeyedVectors
run without other changes."""

from .._refused import lacking
from . import models

__all__ = ["models"]

__getattr__ = lacking("sptx.gensim", {
    "downloader": "it fetches files from the net: load one that you have with gensim.models.KeyedVectors.load_word2vec_format(path)",
    "utils": "texts become words by text.lower().split(), or by the package gensim itself",
    "corpora": "dictionaries and bags of words are no part of training words: the package gensim has them",
    "similarities": "search is most_similar() of KeyedVectors, or sptx.Run.nearest() on the GPU",
}, "it has gensim's models of words alone, as sptx.gensim.models")
