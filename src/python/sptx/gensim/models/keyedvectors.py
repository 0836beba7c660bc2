"""gensim.models.keyedvectors: the class KeyedVectors, and its old names."""

from ..._keyed import KeyedVectors

Word2VecKeyedVectors = EuclideanKeyedVectors = KeyedVectors  # names before gensim 4.0
load_word2vec_format = KeyedVectors.load_word2vec_format

__all__ = ["EuclideanKeyedVectors", "KeyedVectors", "Word2VecKeyedVectors", "load_word2vec_format"]
