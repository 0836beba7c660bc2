"""Files that are replaced when they are complete; models stored in one file by pickle: save() and load(), as gensim's classes have them."""

import contextlib
import fcntl
import logging
import os
import pickle
import re
import stat
from typing import Any, Callable, Dict, Mapping, Sequence, Union


def save(model: Any, path: Union[str, os.PathLike]) -> None:
    """Writes the model to a file. An existing file is replaced only when the new file is complete; a link remains, and to a pipe or a device the
    bytes are written directly."""
    path = os.path.realpath(os.fspath(path))
    there = os.path.exists(path)
    if there and not os.path.isfile(path):
        with open(path, "wb") as file:
            pickle.dump(model, file, protocol=4)
        return
    replace({path: lambda file: pickle.dump(model, file, protocol=4)})


def replace(files: Mapping[str, Callable[[Any], Any]]) -> None:
    """Writes files, {path: function that writes to the open file}, beside the older ones, and renames them when all are complete. Their temporary
    names and locks are those of the library's writers; files that a killed process left under such names are removed."""
    partial = {}
    with contextlib.ExitStack() as locks:
        try:
            for path, write in files.items():
                folder, name = os.path.split(path)
                name = os.fsdecode(os.fsencode(name)[:191])
                _remove_left(folder, name)
                while path not in partial or not os.path.exists(partial[path]):  # before it is locked, another process may remove it
                    partial[path] = os.path.join(folder, "%s.%d-%s.partial" % (name, os.getpid(), os.urandom(8).hex()))
                    file = locks.enter_context(open(partial[path], "xb"))
                    fcntl.flock(file, fcntl.LOCK_EX)
                if os.path.exists(path):
                    os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))
                write(file)
                file.flush()
                os.fsync(file.fileno())
            for path in files:
                os.replace(partial[path], path)
        finally:
            for path in partial.values():
                with contextlib.suppress(OSError):
                    os.unlink(path)


def _remove_left(folder: str, name: str) -> None:
    left = re.compile(re.escape(name) + r"\.\d+-[0-9a-f]{16}\.partial")
    for entry in os.scandir(folder or "."):
        if left.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            with contextlib.suppress(OSError), open(entry.path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while a process is writing it
                os.unlink(entry.path)


class Saved:
    """Base class of models that are stored in one file, with gensim's list of what has happened to them."""

    lifecycle_events: Sequence[Dict[str, Any]] = ()

    def add_lifecycle_event(self, event_name: str, log_level: int = logging.INFO, **event: Any) -> None:
        """Appends an event to lifecycle_events and logs it."""
        self.lifecycle_events = [*self.lifecycle_events, {**event, "event": event_name}]
        logging.getLogger("sptx").log(log_level, "%s: %s", event_name, event)

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
