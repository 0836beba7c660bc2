"""tune: finds good values of keys for data that the program has, of any kind."""

import ctypes
import functools
import os
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Union

from . import _library
from ._context import Context, count_of, number_of
from ._corpus import Source
from ._data import Paths
from ._fit import _source_and_settings, filled
from ._library import library
from ._table import path_of
from ._train import Progress, _Training

Path = Union[str, "os.PathLike[str]"]


class Tuned(NamedTuple):
    """The result of tune()."""

    keys: Dict[str, str]  # the caller's keys and those of the best trial: fit(data, path, keys=found.keys) trains with them
    score: float          # score of the best trial on the held-out data
    own: float            # score of the keys as given; NaN if they have none
    measure: str          # "recall@20", "MRR", "loss" or "score"
    trials: int


def tune(data: Any, *, minutes: Optional[float] = None, trials: Optional[int] = None, keys: Optional[Mapping[str, Any]] = None,
         format: Optional[str] = None, columns: Optional[Sequence[str]] = None, users: Any = None, items: Any = None,
         weights: Any = None, pairs: Sequence[Path] = (), analogies: Sequence[Path] = (), path: Optional[Path] = None,
         progress: Union[None, bool, Callable[[Progress], Any]] = None, device: Any = "auto", threads: int = 0) -> Tuned:
    """Finds keys for `data`: trains on most of it and judges by the rest, as `sptx-w2v tune` does.

        found = sptx.tune(data, minutes=5)
        run = sptx.fit(data, "runs/my", keys=found.keys)

    data       as fit() takes it, with the same format=, columns=, users=, items= and weights=
    minutes    how long it may take: 5, or with trials= until they are done
    trials     how many trials begin; without minutes= the same seed (keys={"train.seed": ..}) gives the same answer
    keys       "section.key": value: they stay as they are
    pairs, analogies    files that words are judged by; without them the loss of held-out text is
    path       what was tried is kept in the folder `path`.tune, and the same call goes on from it; None: nothing is kept
    progress   None: each training is a line on standard error where that is a terminal; True, False: always, never; or what is
               called with a Progress after each training: step is its trial, epoch its epochs, loss its score, line all of it.
               What it returns is True to end with the best so far

    Raises ValueError and TypeError for data or invalid keys, sptx.Error if no trial was done.
    """
    if keys is not None and not isinstance(keys, Mapping):
        raise TypeError("keys are a %s, wanted a dict of 'section.key': value" % type(keys).__name__)
    if "run.dir" in (keys or {}):
        raise ValueError("keys name run.dir, and tune() keeps what it has tried beside its path")
    search = functools.partial(_tune_in, data, keys or {}, (format, columns, users, items, weights),
                               _options(minutes, trials, pairs, analogies), progress, device, threads)
    if path is not None:
        return search(path)
    with tempfile.TemporaryDirectory(prefix="sptx-tune-") as folder:
        return search(os.path.join(folder, "run"))


def _tune_in(data: Any, keys: Mapping[str, Any], form: Any, options: Any, progress: Any, device: Any, threads: int,
             path: Path) -> Tuned:
    source, settings = _source_and_settings(data, path, keys, *form)
    tuned = _library.Tuned()
    context = Context(device, threads)
    _Training(context, _told(progress), _work(context, source, settings, options, tuned)).run()
    if not tuned.trials:  # the caller's progress() or a signal ended the search before the first trial was done
        raise KeyboardInterrupt
    found = dict(item.split("=", 1) for item in tuned.keys.decode().split() if "=" in item)
    epochs = {} if "train.epochs" in keys else {"train.epochs": str(tuned.epochs)}
    return Tuned({**keys, **found, **epochs}, tuned.score, tuned.own, tuned.measure.decode(), tuned.trials)


def _options(minutes: Optional[float], trials: Optional[int], pairs: Sequence[Path], analogies: Sequence[Path]) -> Any:
    if minutes is None:
        minutes = 5 if trials is None else 0
    files = [[path_of(file) for file in given] for given in (pairs, analogies)]
    arrays = ((ctypes.c_char_p * len(some))(*some) for some in files)
    return _library.TuneOptions(ctypes.sizeof(_library.TuneOptions), number_of(minutes, "minutes"),
                                count_of(trials or 0, "trials", 63), None, *arrays, *map(len, files))


def _told(progress: Any) -> Optional[Callable[[Progress], Any]]:
    if progress is not None and not isinstance(progress, bool):
        if not callable(progress):
            raise TypeError("progress = %r cannot be called" % (progress,))
        return progress
    stream = sys.stderr
    if progress is False or stream is None or (progress is None and not stream.isatty()):
        return None
    return lambda told: print(told.line, file=stream, flush=True)


def _work(context: Context, source: Source, settings: List[bytes], options: Any, tuned: Any) -> Callable[[Any], int]:
    """Reads the data into a corpus, and returns a function that searches good values of keys for it."""
    if isinstance(source, Paths):
        texts = (ctypes.c_char_p * len(settings))(*settings)
        return lambda hear: context.call(library.sptx_tune, context._handle, None, texts, len(texts), options, hear, None, tuned)
    return functools.partial(filled(context, source, settings).tune, options, tuned)
