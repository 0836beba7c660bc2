"""fit: trains a run on data that a program has, of any kind."""

import functools
import io
import os
from collections.abc import Mapping
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from ._context import Context
from ._corpus import Corpus, Source
from ._data import Paths, Sparse, source_of
from ._errors import tell
from ._features import write
from ._pickled import replace
from ._progress import shown
from ._run import Run
from ._table import is_path, path_of
from ._train import Progress, _beginning, _of_files, _setting, _Training


def fit(data: Any, path: Union[str, "os.PathLike[str]"], *, dim: Optional[int] = None, epochs: Optional[int] = None,
        keys: Optional[Mapping[str, Any]] = None, format: Optional[str] = None, mode: Optional[str] = None, columns: Optional[Sequence[str]] = None,
        users: Any = None, items: Any = None, weights: Any = None, item_features: Any = None,
        user_features: Any = None, overwrite: bool = False, resume: bool = False,
        progress: Union[None, bool, Callable[[Progress], Any]] = None, device: Any = "auto", threads: int = 0) -> Run:
    """Trains on `data` into the run directory `path`, and returns the run.

        run = sptx.fit(data, "runs/my", dim=128, epochs=10, keys={"train.loss": "softmax"})

    data                                               what it is
    a path, or a list of paths                         files, as for corpus.path
    an iterable of lists of str, bytes or int          sentences, or lists (format="lists"); a generator is read once. A pandas
                                                       Series of lists is read as named lists if its index has a name
    a dict, or pairs of (name, items)                  lists with names, or documents (format="documents")
    rows of fields: tuples of two or three; a table of pyarrow's, a frame of pandas' or polars', anything with __arrow_c_stream__
                                                       pairs (list, item[, rating]), a graph's edges (source, target[, weight]),
                                                       triples (head, relation, tail) or documents (name, text): the first rows are
                                                       looked at, as a file's first lines are. Two columns of numbers without known
                                                       names are refused with the choices. A table's one column of lists: sentences
    a two-dimensional array of numbers                 what format says: rows of "pairs", "graph", "triples", "text", "lists"; with
                                                       "pairs" or "lists" a wider array, or one of 0 and 1, is a matrix; without
                                                       format it is refused with the choices
    a sparse matrix of SciPy's, users x items          lists; users= and items= name its rows and columns. format="pairs", or
                                                       keys={"corpus.weights": "linear"} (or "log"): pairs with the entries' weights
    a pair of integer arrays, or an array [2, edges]   edges of a graph, which is walked (format="adjacency": lines of them)
    a graph of networkx'                               its edges, likewise; parallel edges are merged, their weights added
    a square matrix, with format="graph"               edges from rows to columns

    path       the run directory
    dim        columns of a vector (model.dim); epochs: passes over the data (train.epochs)
    keys       "section.key": value, as `sptx-w2v help keys` lists them
    format     how the data is read: "text" (sentences), "lists", "documents", "adjacency" (a target, then its contexts), "graph" (edges, which
               are walked), "triples" (a knowledge graph) or "pairs"
    mode       what predicts what (examples.mode): "walk" with format="triples" walks over them (RDF2Vec); None: what suits the data
    columns    of rows of fields: ("user", "item"), or with a third, the rating; of a graph (source, target[, weight]), of triples
               (head, relation, tail). Names, or numbers from 1 on. Without format, columns that are named are pairs
    weights    of edges: an array, or the name of an attribute of a networkx graph ("weight" if all edges have it); format is
               then "graph". Such a graph is directed where the object is, unless keys say graph.directed
    item_features
               of lists and pairs: what is known about items, also about new ones, as Run.add_items() takes it. Anything but a path is written to
               PATH.items, which corpus.item_features then names, or to PATH.items2 if the run that is replaced has that file.
               A sparse matrix has a row for each name of items=
    user_features
               likewise of lists (people), also of new ones: PATH.users, corpus.list_features, users=
    overwrite  replaces a run that is there, when the new one has its first checkpoint
    resume     goes on from the run's newest checkpoint; the data must be the same
    progress   None, True, False, or what is called with a Progress now and then: as train() takes it
    device     "auto", "cpu", "cuda", "cuda:1"; threads: of the host, 0: all

    Tokens are not stripped: blanks at their ends stay. An empty token raises sptx.Error; a pair without a list or an item is left out, with a
    warning. Floats such as 7.0 are read as integers.
    One line on standard error says what the data was taken for, as the command's does, unless progress is False; run.about keeps it.
    An SptxWarning reports data that is not used: ratings that all count alike, rows without a value, nodes without an edge.

    The same data gives the same bytes of vectors as a file of it. Data is read before anything is written: an exception
    of the iterable's, or Ctrl-C meanwhile, leaves no trace.

    Raises ValueError and TypeError for data or invalid keys, sptx.Error with the reason if training failed.
    """
    beginning = _beginning(keys, overwrite, resume)
    if not (overwrite or resume):
        _refuse_older(path)
    if "run.dir" in (keys or {}):
        raise ValueError("keys name run.dir, and fit() has the run's directory as its path")
    set_by_name = (("model.dim", dim), ("train.epochs", epochs), ("examples.mode", mode))
    given = {**(keys or {}), **{key: value for key, value in set_by_name if value is not None}}
    told = [("item", ".items", item_features, items), ("list", ".users", user_features, users)]
    for what, ending, features, _ in told:
        if features is not None:
            given["corpus.%s_features" % what] = features if is_path(features) else _features_of(path, ending, resume)
    source, settings = _source_and_settings(data, path, given, format, columns, users, items, weights)
    older, latest = {}, _latest(path)
    try:
        for what, _, features, names in told:
            if features is not None and not is_path(features):
                text, file = io.StringIO(newline=""), given["corpus.%s_features" % what]
                write(features, text, names)
                older[file] = _bytes_of(file)
                _put(file, text.getvalue().encode("utf-8", "surrogateescape"))
        context = Context(device, threads)
        context.is_quiet = progress is False
        with shown(progress) as hear:
            _Training(context, hear, _work(context, source, settings, beginning)).run()
    except BaseException:
        for file, was in older.items() if _latest(path) == latest else ():  # no checkpoint of this run is there: so are the older files
            _put(file, was)
        raise
    for what, ending, features, _ in told:
        for file in _both(path, ending) if features is not None and not is_path(features) else ():
            if file != given["corpus.%s_features" % what]:
                _put(file, None)  # of the run that was there before
    run = Run(path, device=device)
    if source.format != "graph":
        _tell_few(run)
    return run


def _latest(path: Any) -> Any:
    """Returns what tells one newest checkpoint of a run from another; None if there is none."""
    try:
        found = os.stat(os.path.join(os.fsdecode(path_of(path)), "latest"))
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _both(path: Any, ending: str) -> Tuple[str, str]:
    return os.fsdecode(path_of(path)) + ending, os.fsdecode(path_of(path)) + ending + "2"


def _features_of(path: Any, ending: str, resume: bool) -> str:
    """Returns the file for a run's features. A run that is to be replaced keeps its own file until the new one has a checkpoint, even if this process
    is killed; so the new run's has another name. A resumed run keeps its name."""
    names, config = _both(path, ending), (_bytes_of(os.path.join(os.fsdecode(path_of(path)), "config.ini")) or b"").splitlines()
    used = [any(line.endswith(b"_features = " + os.fsencode(name)) for line in config) for name in names]
    return names[used[1] if resume else used[0]]


def _bytes_of(path: str) -> Optional[bytes]:
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read()


def _put(path: str, content: Optional[bytes]) -> None:
    """Gives a file this content; None: removes it."""
    if content is not None:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        replace({path: lambda file: file.write(content)})
    elif os.path.exists(path):
        os.unlink(path)


_FEW = 6  # a run with fewer words, and with fewer tokens, than this gets a warning that its vectors mean nothing


def _tell_few(run: Run) -> None:
    if len(run) < _FEW and run.counts.sum() < _FEW:
        tell("the data has %d tokens in all, too few to learn from: vectors are close to the random ones that they began as, and "
             "hundreds of tokens are a beginning" % run.counts.sum())


def _source_and_settings(data: Any, path: Any, keys: Mapping[str, Any], format: Optional[str], columns: Any, users: Any, items: Any,
                         weights: Any) -> Tuple[Source, List[bytes]]:
    """Returns the source that reads the data, and the settings of a run on it."""
    format = keys.get("corpus.format") if format is None else format
    format = "graph" if format is None and weights is not None else format
    source = source_of(data, columns, users, items, format, weights).read_as(format)
    if isinstance(source, Sparse) and str(keys.get("corpus.weights", "none")) != "none":
        source.weigh()
    if source.format is None and {"corpus.events", "corpus.min_rating", "corpus.weights"} & set(keys):
        source.read_as("pairs")
    source.events = str(keys.get("corpus.events", ""))
    form = {} if source.format is None else {"corpus.format": source.format}
    settings = {**source.defaults, **keys, **source.settings, **form, "run.dir": os.fsdecode(path_of(path))}
    if isinstance(source, Sparse) and source.format == "lists" and "corpus.min_rating" in settings:
        source.min_rating = float(settings.pop("corpus.min_rating"))
    return source, [_setting(*item) for item in settings.items()]


def _refuse_older(path: Any) -> None:
    """Raises if the run exists already. Called before the data is read, since some data can be read only once."""
    if os.path.exists(os.path.join(os.fspath(path), "latest")):
        raise ValueError("'%s' holds a run: overwrite=True replaces it, resume=True goes on with it" % os.fspath(path))


def _work(context: Context, source: Source, settings: Any, beginning: int) -> Callable[[Any], int]:
    """Reads the data into a corpus, and returns a function that trains on it."""
    if isinstance(source, Paths):
        return _of_files(context, None, settings, beginning)
    return functools.partial(filled(context, source, settings).train, beginning)


def filled(context: Context, source: Source, settings: List[bytes]) -> Corpus:
    """Returns a corpus that contains the data. If the caller has not said what rows of fields mean, the library is asked first, since other
    settings depend on the format."""
    try:
        if source.format is None:
            context.waits_to_tell = True  # the same lines come again
            source.find(Corpus(context, [setting for setting in settings if setting.startswith(b"corpus.names=")]))
            context.forget()
            settings = [*settings, _setting("corpus.format", source.format)]
        corpus = Corpus(context, settings)
        if source.said:
            corpus.say(source.said)
        source.give(corpus)
    except KeyboardInterrupt as interrupt:
        interrupt.args = interrupt.args or ("stopped while the data was read: nothing was written",)
        raise
    return corpus
