"""gensim.models.callbacks: the base class of what Word2Vec and FastText call between epochs."""

from typing import Any

__all__ = ["CallbackAny2Vec"]


class CallbackAny2Vec:
    """Base class of callbacks: each method is given the model."""

    def on_train_begin(self, model: Any) -> None:
        """Called before the first epoch."""

    def on_epoch_begin(self, model: Any) -> None:
        """Called before each epoch."""

    def on_epoch_end(self, model: Any) -> None:
        """Called after each epoch."""

    def on_train_end(self, model: Any) -> None:
        """Called after the last epoch."""
