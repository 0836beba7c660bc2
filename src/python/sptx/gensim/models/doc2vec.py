"""gensim.models.doc2vec: the classes Doc2Vec and TaggedDocument."""

from ..._doc2vec import Doc2Vec, TaggedDocument

__all__ = ["Doc2Vec", "TaggedDocument"]
