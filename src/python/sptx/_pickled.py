"""Models stored in one file by pickle: save() and load(), as gensim's classes have them."""

import os
import pickle
import stat
from typing import Any, Union


def save(model: Any, path: Union[str, os.PathLike]) -> None:
    """Writes the model to a file. An existing file is replaced only when the new file is complete; a link remains, and to a pipe or a device the
    bytes are written directly."""
    path = os.path.realpath(os.fspath(path))
    there = os.path.exists(path)
    if there and not os.path.isfile(path):
        with open(path, "wb") as file:
            pickle.dump(model, file, protocol=4)
        return
    folder, name = os.path.split(path)
    own = "%s.%d-%s.partial" % (name[:100], os.getpid(), os.urandom(8).hex())  # a name as the library's writers choose them
    partial = os.path.join(folder, own)
    try:
        with open(partial, "xb") as file:
            if there:
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            pickle.dump(model, file, protocol=4)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


class Saved:
    """Base class of models that are stored in one file."""

    def save(self, path: Union[str, "os.PathLike[str]"], *_: Any, **__: Any) -> None:
        """Writes the model to one file."""
        save(self, path)

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"], *_: Any, **__: Any) -> Any:
        """Reads what save() wrote."""
        return load(path, cls, "a " + cls.__name__)


def load(path: Union[str, os.PathLike], kind: type, wanted: str) -> Any:
    """Reads a file that save() wrote. Raises TypeError if it contains another kind of model; `wanted` names the right kind: "a Word2Vec"."""
    with open(path, "rb") as file:
        found = pickle.load(file)
    if not isinstance(found, kind):
        raise TypeError("'%s' holds a %s, not %s of sptx" % (os.fspath(path), type(found).__name__, wanted))
    return found
