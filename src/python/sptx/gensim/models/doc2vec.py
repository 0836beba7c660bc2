"""gensim.models.doc2vec: the classes Doc2Vec and TaggedDocument."""

from ..._doc2vec import Doc2Vec, TaggedDocument

__all__ = ["Doc2Vec", "TaggedDocument"]

FAST_VERSION = 1  # as gensim where its compiled code is there: its scripts ask for it
