"""Models in one file by pickle, for the save() and load() that gensim's classes have."""

import os
import pickle
from typing import Any, Union


def save(model: Any, path: Union[str, os.PathLike]) -> None:
    """Writes the model to a file."""
    with open(path, "wb") as file:
        pickle.dump(model, file, protocol=4)


def load(path: Union[str, os.PathLike], kind: type, wanted: str) -> Any:
    """Reads what save() wrote. Raises TypeError if it is not of this kind; `wanted` names the kind: "a Word2Vec"."""
    with open(path, "rb") as file:
        found = pickle.load(file)
    if not isinstance(found, kind):
        raise TypeError("'%s' holds a %s, not %s of sptx" % (os.fspath(path), type(found).__name__, wanted))
    return found
