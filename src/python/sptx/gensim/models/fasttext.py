"""gensim.models.fasttext: the class FastText, and functions that load and save model files of fastText (.bin)."""

from typing import Any

from ..._facebook import load_facebook_model, load_facebook_vectors
from ..._fasttext import FastText, FastTextKeyedVectors

__all__ = ["FastText", "FastTextKeyedVectors", "load_facebook_model", "load_facebook_vectors", "save_facebook_model"]

FAST_VERSION = 1  # as gensim where its compiled code is there: its scripts ask for it


def save_facebook_model(model: FastText, path: Any, *_: Any, **__: Any) -> None:
    """Saves a trained model as a file of fastText (.bin)."""
    model.save_facebook_model(path)
