"""Names of gensim that this package lacks: using one raises an error that says what to do instead."""

from typing import Any, Callable, Mapping

import numpy


def lacking(module: str, elsewhere: Mapping[str, str], otherwise: str) -> Callable[[str], Any]:
    """Returns a module's __getattr__, which raises AttributeError for a name that the module lacks, with the sentence that `elsewhere` has for it."""
    def get(name: str) -> Any:
        raise AttributeError("%s has no %s: %s" % (module, name, elsewhere.get(name, otherwise)))
    return get


def refused(sentence: str) -> Any:
    """Returns a method that raises NotImplementedError with this message."""
    def method(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(sentence)
    method.__doc__ = "Is not there: " + sentence
    return method


def renamed(old: str, new: str) -> property:
    """Returns a property that raises AttributeError; the message names its replacement, as gensim's does for its old names."""
    def get(_: Any) -> Any:
        raise AttributeError("%s is a name of gensim before 4.0: %s" % (old, new))
    return property(get, doc="Is not there: " + new)


def ones(name: str) -> property:
    """Returns a property for gensim's learning-rate factors of vectors: all are 1, and setting another value raises."""
    def get(_: Any) -> Any:
        held = numpy.ones(1, numpy.float32)
        held.flags.writeable = False
        return held

    def set_to(_: Any, factors: Any) -> None:
        if not (numpy.asarray(factors) == 1).all():
            raise NotImplementedError("%s other than 1 are not there: every word is trained" % name)
    return property(get, set_to, doc="Ones: every vector is trained alike.")

