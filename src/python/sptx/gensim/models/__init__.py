"""gensim.models: Word2Vec, Doc2Vec, FastText, KeyedVectors and Phrases of this package."""

from typing import Any

from ..._doc2vec import Doc2Vec, TaggedDocument
from ..._fasttext import FastText
from ..._keyed import KeyedVectors
from ..._phrases import Phrases
from ..._word2vec import Word2Vec
from . import callbacks, doc2vec, fasttext, keyedvectors, phrases, word2vec

__all__ = ["Doc2Vec", "FastText", "KeyedVectors", "Phrases", "TaggedDocument", "Word2Vec", "callbacks", "doc2vec", "fasttext", "keyedvectors", "phrases", "word2vec"]


def __getattr__(name: str) -> Any:
    raise AttributeError("sptx.gensim.models has no %s: it has %s, and the package gensim has others" % (name, ", ".join(__all__)))
