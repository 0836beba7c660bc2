"""gensim.models.fasttext: the class, and fastText's own files."""

from typing import Any

from ..._facebook import load_facebook_model, load_facebook_vectors
from ..._fasttext import FastText, FastTextKeyedVectors

__all__ = ["FastText", "FastTextKeyedVectors", "load_facebook_model", "load_facebook_vectors", "save_facebook_model"]


def save_facebook_model(model: FastText, path: Any, *_: Any, **__: Any) -> None:
    """Writes fastText's own file (.bin) of a trained model."""
    model.save_facebook_model(path)
