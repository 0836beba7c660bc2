"""Names of gensim's that are not there: each is a method or a property that raises a sentence with what to do instead."""

from typing import Any

import numpy


def refused(sentence: str) -> Any:
    """A method that raises NotImplementedError."""
    def method(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(sentence)
    method.__doc__ = "Is not there: " + sentence
    return method


def renamed(old: str, new: str) -> property:
    """A property that raises AttributeError, as gensim's own old names do."""
    def get(_: Any) -> Any:
        raise AttributeError("%s is a name of gensim before 4.0: %s" % (old, new))
    return property(get, doc="Is not there: " + new)


def ones(name: str) -> property:
    """A property for gensim's factors of single vectors: all are 1, and others are refused."""
    def get(_: Any) -> Any:
        held = numpy.ones(1, numpy.float32)
        held.flags.writeable = False
        return held

    def set_to(_: Any, factors: Any) -> None:
        if not (numpy.asarray(factors) == 1).all():
            raise NotImplementedError("%s other than 1 are not there: every word is trained" % name)
    return property(get, set_to, doc="Ones: every vector is trained alike.")

