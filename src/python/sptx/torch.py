"""PyTorch: a table as a module.

    books = sptx.Table(rows=10_000_000, dim=128, optimizer="adamax", lr=2e-3)
    emb = sptx.torch.Embedding(books)
    loss = model(emb(ids)).sum()
    loss.backward()                    # the table's rows are updated here
    optimizer.step()                   # of the rest of the model
"""

import ctypes
import json
import math
import operator
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy
import torch
from torch.autograd.function import FunctionCtx

from . import _fingerprint
from ._arrays import library_of, narrowed, take_ids
from ._errors import SptxWarning, tell
from ._keyed_table import KeyedTable, number_in_file, keys_of
from ._libraries import Numpy
from ._library import Ids, NgramLaw, library
from ._table import Table
from ._tables import KeyedTables, Tables

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingBagCollection", "KeyedEmbedding", "KeyedEmbeddingBag", "NgramEmbedding",
           "load_rows", "save_rows"]

_PART_ROWS = (1 << 32) - 2  # most rows of one order and head of n-grams
_ROWS_AT_ONCE = 1 << 16  # rows that from_pretrained() stores at a time


# Arguments of torch.nn.Embedding that a table has in its stead, and what to do.
_TORCHS = {
    "max_norm": "take torch.nn.functional.normalize() of what forward() returns, or store shorter rows with table.store(ids, rows)",
    "norm_type": "it belongs to max_norm, which is not there either",
    "scale_grad_by_freq": "a row's gradients are summed; sptx.Table(clip=) bounds the sum of a row that comes often",
    "sparse": "leave it out, since gradients go to the rows that were looked up, and to no others",
    "device": "the table has it: sptx.Table(rows, dim, device=)",
    "dtype": "the table has it: sptx.Table(rows, dim, dtype=)",
    "_weight": "from_pretrained(rows, freeze=False) makes a table of rows",
    "num_embeddings": "the table has them: sptx.Table(rows=, dim=)",
    "embedding_dim": "the table has it: sptx.Table(rows=, dim=)",
}


def _shape_of(rows: Any, dim: Any) -> Tuple[Any, Any]:
    """Returns the two numbers for making a torch.nn.Embedding; a placeholder for one that is not a positive integer."""
    return tuple(one if isinstance(one, int) and one > 0 else ".." for one in (rows, dim))  # type: ignore[return-value]


class _Lookups(torch.nn.Module):
    """Base class of Embedding and EmbeddingBag: owns the table, turns gradients into updates, and saves the table."""

    _told = False  # True once parameters() has warned
    _beside = ""   # "before" or "after" a model's state_dict, a callback loads the rows that it saves beside each checkpoint; "": there is none
    _due: Dict[str, str] = {}  # with "after": fingerprint of the rows that the loaded state_dict belongs to, until load_rows()

    def __init__(self, table: Optional[Table] = None, *more: Any, padding_idx: Optional[int] = None, accumulate: bool = False,
                 scaler: Any = None, **named: Any) -> None:
        super().__init__()
        if not isinstance(table, Table) or isinstance(table, KeyedTable) != isinstance(self, _ByKey) or len(more) > 1:
            raise TypeError("an %s is over an sptx.Table, which has the rows: sptx.torch.%s(sptx.Table(rows=%s, dim=%s, optimizer=\"adagrad\", "
                            "lr=0.05)), with padding_idx= beside it" % (*2 * (type(self).__name__,), *_shape_of(named.get("num_embeddings", table),
                                                                                           named.get("embedding_dim", more[0] if more else None))))
        if more:
            padding_idx = more[0]
        for name, value in named.items():
            if name not in _TORCHS:
                raise TypeError("%s() has no argument %r: wanted a table, padding_idx, accumulate, scaler" % (type(self).__name__, name))
            if value not in (None, False):
                raise TypeError("%s= is not there: %s" % (name, _TORCHS[name]))
        self.table: Table = table
        self.padding_idx = None if padding_idx is None else self._padding_of(padding_idx)
        self.accumulate = accumulate
        self.scaler = scaler
        self.anchor = torch.nn.Parameter(torch.empty(0))
        self._waiting: List[Tuple[torch.Tensor, torch.Tensor]] = []  # ids and gradients that wait for step()
        self._saved: Tuple[str, Dict[str, str]] = ("", {})           # file of the last save() or load(), and its fingerprint

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, padding_idx: Optional[int] = None, *, optimizer: str = "sgd",
                        table: Optional[Mapping[str, Any]] = None, **options: Any) -> Any:
        """A module over a new table with these rows.

            emb = sptx.torch.Embedding.from_pretrained(vectors, freeze=False, optimizer="adamax", table={"lr": 2e-3})

        embeddings  float32 [rows x dim]: a tensor, or what Table.store takes; it is copied
        freeze      True: forward only reads, until requires_grad_(True)
        optimizer   of the table; `table` holds more of its options by name
        options     the module's own: mode, include_last_offset, accumulate, scaler

        Raises ValueError for another shape, TypeError for another type, and what Table raises.
        """
        shape = tuple(embeddings.shape) if hasattr(embeddings, "shape") else numpy.shape(embeddings)
        if len(shape) != 2:
            raise ValueError("embeddings have the shape %s, wanted (rows, dim)" % (shape,))
        rows = Table(shape[0], shape[1], optimizer, **{"init": "zeros", **(table or {})})
        for first in range(0, shape[0], _ROWS_AT_ONCE):
            part = embeddings[first:first + _ROWS_AT_ONCE]
            part = part.detach() if isinstance(part, torch.Tensor) else numpy.asarray(part)
            rows.store(numpy.arange(first, first + len(part)), part)
        module = cls(rows, padding_idx=padding_idx, **options)
        return module.requires_grad_(not freeze)

    def parameters(self, recurse: bool = True) -> Iterator[torch.nn.Parameter]:
        """Yields the module's only parameter, `anchor`, which has no elements. The first direct call warns that the table's rows
        are not among the parameters; calls by torch itself, as those of a model's parameters() or torch.export, do not warn."""
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("torch.") and not _Lookups._told:
            _Lookups._told = True
            tell("parameters() of an %s holds no row: an optimizer, or clip_grad_norm_, over it cannot reach the table's rows. "
                 "backward() updates them by the table's own rule: sptx.Table(optimizer=, lr=, clip=)" % type(self).__name__)
        return super().parameters(recurse)

    @property
    def num_embeddings(self) -> int:
        """The table's rows."""
        return self.table.rows

    @property
    def embedding_dim(self) -> int:
        """The table's columns."""
        return self.table.dim

    @property
    def lr(self) -> float:
        """The learning rate of the table. Set it for schedules."""
        return self.table.lr

    @lr.setter
    def lr(self, lr: float) -> None:
        self.table.lr = lr

    def prefetch(self, ids: Any) -> None:
        """Announces the ids of the next forward(): their rows begin to move while this batch is computed."""
        self.table.prefetch(_as_tensor(ids))

    def rows_of(self, ids: torch.Tensor) -> torch.Tensor:
        """Returns the rows of ids, [*ids.shape, dim]; autograd passes their gradients to the table."""
        if torch.is_grad_enabled() and self.anchor.requires_grad:
            return _Lookup.apply(self.anchor, ids, self.table, self.padding_idx,
                                 self._take if self.accumulate or self.scaler is not None else self.table.update)
        return _look_up(ids, self.table.fetch, self.padding_idx)

    # ---- gradients that are kept until step(), and scaled ones ----

    def step(self) -> bool:
        """With accumulate=True: does one update with all gradients since the last step() or zero_grad(), summed by row. Returns True if the update
        is done, or there were no gradients. Returns False if there is a scaler and a gradient was infinite or NaN: then all these gradients are
        dropped."""
        waiting, self._waiting = self._waiting, []
        dim = self.table.dim
        if not waiting and self._is_exact():
            self.table.update([], numpy.empty((0, dim), numpy.float32))
        if not waiting:
            return True
        device = waiting[0][0].device
        return self._update(torch.cat([ids.reshape(-1).to(device, torch.int64) for ids, _ in waiting]),
                            torch.cat([gradients.reshape(-1, dim) for _, gradients in waiting]))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients that wait for step()."""
        super().zero_grad(set_to_none)
        self._waiting = []

    def _take(self, ids: torch.Tensor, gradients: torch.Tensor) -> None:
        if self.accumulate:
            self._waiting.append((ids.clone(), gradients.detach().clone()))
        else:
            self._update(ids, gradients)

    def _update(self, ids: torch.Tensor, gradients: torch.Tensor) -> bool:
        if self.scaler is not None:
            gradients = gradients / self.scaler.get_scale()
            if not torch.isfinite(gradients).all():
                if self._is_exact():
                    self.table.update(ids[:0], gradients[:0])
                return False
        self.table.update(ids, gradients)
        return True

    def _is_exact(self) -> bool:
        """True if all ranks make the table's updates together: a rank without gradients must then call update(), too."""
        return getattr(self.table, "_exact", False)

    # ---- what subclasses have otherwise ----

    def _padding_of(self, padding_idx: Any) -> int:
        return _row_of(padding_idx, self.table.rows)

    def _identity(self) -> Dict[str, str]:
        """Returns what identifies the table's rows and state: their fingerprint."""
        return _fingerprint.of_table(self.table)

    def _identity_of_file(self, path: str, wanted: Dict[str, str]) -> Dict[str, str]:
        return _fingerprint.of_file(path, wanted)

    # ---- checkpoints ----

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Saves the rows and their optimizer's state, as Table.save() does. A state_dict() that is made before they change again
        holds the path, and load_state_dict() takes the rows from there."""
        self.table.save(path)
        self._saved = os.path.abspath(os.fsdecode(path)), self._identity()

    def load(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Replaces the table's rows and state by those in a file that save() wrote. Raises what Table.restore() raises."""
        self.table.restore(path)
        self._saved = os.path.abspath(os.fsdecode(path)), self._identity()

    def get_extra_state(self) -> torch.Tensor:
        """Returns the table's entry in state_dict(): shape, steps, fingerprint, and the path of the file with its rows; JSON as uint8."""
        table, found = self.table, self._identity()
        path = self._saved[0] if self._saved[1] == found else ""
        if not path and table.steps and not self._beside:
            warnings.warn("state_dict() holds no rows, and those of %r are saved nowhere as they are now: call save(path) of the "
                          "module before state_dict(), and load_state_dict() takes them from there" % table, SptxWarning,
                          stacklevel=4)
        about = {"rows": table.rows, "dim": table.dim, "optimizer": table.optimizer, "steps": table.steps, "fingerprint": found,
                 "path": path}
        return torch.tensor(list(json.dumps(about).encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Any) -> None:
        """Reads what get_extra_state() returned. If the table has other rows, loads them from the file at the stored path; RuntimeError if there
        is none."""
        about = _read_about(state)
        if (about["rows"], about["dim"]) != self.table.shape:
            raise RuntimeError("the state_dict is of a table of %d rows of %d columns, and this one has %d of %d" %
                               ((about["rows"], about["dim"]) + self.table.shape))
        wanted, own = about["fingerprint"], self._identity()
        if about["optimizer"] != self.table.optimizer:
            wanted = {field: wanted[field] for field in wanted if field == "weights"}
        if not wanted.keys() & own.keys():  # rows by key and by number, or by key with another optimizer
            raise RuntimeError("the state_dict is of rows with another kind of table (optimizer %r, fingerprint of %s), and this one is %r" %
                               (about["optimizer"], ", ".join(about["fingerprint"]), self.table))
        differ = _fingerprint.differences(wanted, own)
        if differ and self._beside == "after":
            self._due = wanted
        elif differ:
            self._load_saved(about["path"], wanted, differ)
        self.table.steps = about["steps"]

    def _load_saved(self, path: str, wanted: Dict[str, str], differ: List[str]) -> None:
        what = "the rows of this table are not those that the state_dict belongs to (%s differ)" % ", ".join(differ)
        how = ("a state_dict holds no rows: save them with save(path) of the module, and load them with load(path) before "
               "load_state_dict()")
        if not path:
            raise RuntimeError("%s, and they were not saved before it was made; %s" % (what, how))
        if not os.path.exists(path):
            raise RuntimeError("%s, and '%s', where they were saved, is gone; %s" % (what, path, how))
        if _fingerprint.differences(wanted, self._identity_of_file(path, wanted)):
            raise RuntimeError("%s, and '%s', where they were saved, holds others by now; %s" % (what, path, how))
        self.load(path)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else ", padding_idx=%d" % self.padding_idx
        return "%d, %d%s, table=%r" % (self.table.rows, self.table.dim, padding, self.table)


# ---- the rows of a whole model ----

def of_rows(model: torch.nn.Module) -> List[Tuple[str, _Lookups]]:
    """Returns the modules over tables with their names in the model; one for each table."""
    found: Dict[int, Tuple[str, _Lookups]] = {}
    for name, module in model.named_modules():
        if isinstance(module, _Lookups):
            found.setdefault(id(module.table), (name, module))
    return list(found.values())


def save_rows(model: torch.nn.Module, folder: Union[str, "os.PathLike[str]"]) -> Dict[str, Any]:
    """Saves the rows of all tables of a model, with their optimizer's state, in a folder, which is made: NAME.npy for the module NAME. A
    state_dict() that is made before they change again names these files. Of a shared table rank 0 saves. Returns the modules by name. Raises what
    save() of a module raises."""
    os.makedirs(folder, exist_ok=True)
    modules = dict(of_rows(model))
    for name, module in modules.items():
        if not getattr(module.table, "rank", 0):
            module.save(os.path.join(os.fsdecode(folder), (name or "rows") + ".npy"))
    return modules


def load_rows(model: torch.nn.Module, folder: Union[str, "os.PathLike[str]"]) -> None:
    """Replaces the rows and state of all tables of a model by those that save_rows() wrote. Of a shared table rank 0 loads, and the others
    wait. Raises FileNotFoundError for a table without a file, and what load() of a module raises."""
    for name, module in of_rows(model):
        path = os.path.join(os.fsdecode(folder), (name or "rows") + ".npy")
        if not os.path.exists(path):
            raise FileNotFoundError("there are no rows of the module '%s': '%s' is missing" % (name, path))
        if not getattr(module.table, "rank", 0):
            module.load(path)
        if getattr(module.table, "ranks", 1) > 1:
            module.table.barrier()
        due, module._due = module._due, {}
        if _fingerprint.differences(due, module._identity()):
            raise RuntimeError("'%s' has other rows than those that the state_dict belongs to" % path)


def step_rows(model: torch.nn.Module) -> None:
    """Calls step() of all modules that accumulate gradients."""
    for module in model.modules():
        if isinstance(module, _Lookups) and module.accumulate:
            module.step()


class Embedding(_Lookups):
    """torch.nn.Embedding over an sptx.Table: forward fetches rows, backward gives their gradients to the table's optimizer.

    table        an sptx.Table; .to() and .cuda() do not move it
    padding_idx  ids of this number (negative: from the end, as in torch) give zeros, and no update
    accumulate   True: gradients wait for step(); see below
    scaler       a torch GradScaler, or None; see below

    forward(ids) -> float32 tensor [*ids.shape, dim] where the table runs. ids: int32 or int64 tensors (or what
    Table.fetch takes) of any shape, on the CPU or the table's GPU; they may repeat: a row's gradients are summed, in the
    order of the ids, and the row gets one update.

    Each backward is an update. backward() updates the rows of every forward that it reaches, at once and with the table's
    own rule and lr; there is no grad that waits for a step, and nothing for an optimizer or zero_grad() to do. So
      - a second backward through the same graph (retain_graph=True) is a second update;
      - a table looked up twice in one graph gets two updates, one after the other, from gradients of the rows as they
        were fetched.
    Gradients of gradients are refused: backward(create_graph=True) raises RuntimeError.

    Gradient accumulation. With accumulate=True gradients are kept [ids x dim] until step(), which makes one update of all of
    them; call it where optimizer.step() is called. zero_grad() of this module drops them.

    Mixed precision. Rows and their gradients are float32 under autocast. A GradScaler's scale must be taken out before an update:
    with scaler= it is, and an update with infinity or NaN in it is left out, as scaler.step() leaves out an optimizer's.

    Under torch.no_grad(), and while the module is frozen (requires_grad_(False) here or on a module around it), forward only
    reads. The module's one parameter, `anchor`, has no elements: it is what freezes, and what lets autograd reach the table.

    torch.compile looks tables up between its graphs. torch.jit.trace, make_fx and torch.export are refused (TypeError): a graph
    would hold none of what is fetched.

    A shared table with owner="exact" wants as many backwards, through as many lookups, of each rank as of the others: a rank that has no batch
    left looks up no ids, or calls table.update([], ..). step() makes an update of all ranks even where a rank has no gradients; if a scaler
    drops those of one rank, those of the others count.

    DataLoader workers, forked or spawned, make the ids; rows are fetched in the process that opened the table. A forked worker
    that asks for rows gets a RuntimeError, and a table is not sent to a spawned one (TypeError).

    Checkpoints. state_dict() holds no rows, which may be more than memory holds, but a fingerprint of them. Call save(path)
    before it, and load_state_dict() takes rows and optimizer's state from there where the table has others; where it cannot, it
    raises RuntimeError. state_dict() of rows that are trained and not saved warns (SptxWarning). Both read all rows once.
    save_rows(model, folder) and load_rows() do it for all tables of a model; sptx.lightning.Rows and sptx.transformers.Rows are
    callbacks that do it with each checkpoint of PyTorch Lightning's and of Hugging Face's Trainer.

    Raises what Table.fetch and Table.update raise.
    """

    @classmethod
    def from_keyed(cls, keyed: KeyedTable, freeze: bool = True, **options: Any) -> "Embedding":
        """Returns a module over a new table with the rows of a KeyedTable: row i has the values of key keyed.keys()[i]. options: those of
        from_pretrained(), such as optimizer and table."""
        return cls.from_pretrained(keyed.find(keyed.keys())[0], freeze, **options)  # type: ignore[no-any-return]

    def forward(self, ids: Any) -> torch.Tensor:
        return self.rows_of(_as_tensor(ids))


class EmbeddingBag(_Lookups):
    """torch.nn.EmbeddingBag over an sptx.Table: the sum or the mean of each bag's rows. Beside what is said here it is an Embedding,
    with the same ways to update, to accumulate and to save.

    mode                 "mean" or "sum"
    padding_idx          ids of this number are in no bag
    include_last_offset  True: the last offset is the end of the last bag

    forward(ids, offsets=None, per_sample_weights=None) -> float32 [bags, dim]. ids [bags, n]: each row is a bag; or ids [n] with
    offsets [bags], where each bag begins. An empty bag gives zeros. per_sample_weights: float32 like ids, with mode "sum"; they
    get gradients.

    Raises ValueError for other shapes and modes ("max" has no place for what its gradient needs: fetch rows with an Embedding, and
    take .max(1)), and what Table.fetch and Table.update raise.
    """

    def __init__(self, table: Optional[Table] = None, mode: str = "mean", padding_idx: Optional[int] = None, include_last_offset: bool = False, *,
                 accumulate: bool = False, scaler: Any = None, **named: Any) -> None:
        more = () if isinstance(table, Table) else (mode,)  # torch.nn.EmbeddingBag(rows, dim)
        super().__init__(table, *more, padding_idx=padding_idx, accumulate=accumulate, scaler=scaler, **named)
        if mode not in ("mean", "sum"):
            raise ValueError("mode = %r is neither 'mean' nor 'sum'; for 'max' fetch rows with sptx.torch.Embedding and take .max(1)"
                             % (mode,))
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(self, ids: Any, offsets: Any = None, per_sample_weights: Optional[torch.Tensor] = None) -> torch.Tensor:
        ids = _as_tensor(ids)
        weights = per_sample_weights
        if weights is not None and (self.mode != "sum" or weights.shape != ids.shape):
            raise ValueError("per_sample_weights are for mode 'sum' and have the ids' shape; mode is %r, and the shapes are %s and %s" %
                             (self.mode, tuple(weights.shape), tuple(ids.shape)))
        ids, starts = _bags(ids, offsets, self.include_last_offset)
        weights = None if weights is None else weights.reshape(-1)
        if self.padding_idx is not None:
            kept = ids != self.padding_idx
            before = torch.cat((kept.new_zeros(1, dtype=torch.int64), kept.cumsum(0)))
            ids, starts = ids[kept], before[starts]
            weights = None if weights is None else weights[kept.to(weights.device)]
        return _pooled(self.rows_of(ids), starts, self.mode, weights)

    def extra_repr(self) -> str:
        return "%s, mode=%s" % (super().extra_repr(), self.mode)


class _ByKey(_Lookups):
    """Base class of KeyedEmbedding and KeyedEmbeddingBag: finds rows by keys."""

    table: KeyedTable

    def __init__(self, table: Optional[KeyedTable] = None, *more: Any, **named: Any) -> None:
        if not isinstance(table, KeyedTable):
            raise TypeError("a %s is over an sptx.KeyedTable, which has the rows: sptx.torch.%s(sptx.KeyedTable(capacity=.., dim=.., "
                            "optimizer=\"adam\"))" % (2 * (type(self).__name__,)))
        super().__init__(table, *more, **named)

    @classmethod
    def from_pretrained(cls, *_: Any, **__: Any) -> Any:
        raise TypeError("rows of a KeyedTable have keys: make the table, give it the rows by table.store(keys, rows), and the module the table")

    def forward(self, keys: Any, *more: Any, **named: Any) -> torch.Tensor:
        """Does what the method of the same name does in a module by number, with keys: int64, or any other keys that KeyedTable.fetch() accepts."""
        if not isinstance(keys, torch.Tensor):
            keys = torch.from_numpy(keys_of(keys).view(numpy.int64))
        return super().forward(keys, *more, **named)

    def rows_of(self, ids: torch.Tensor) -> torch.Tensor:
        if self.training and torch.is_grad_enabled() and self.anchor.requires_grad:
            return super().rows_of(ids)
        return _look_up(ids, lambda keys: self.table.find(keys)[0], self.padding_idx)

    def _padding_of(self, padding_idx: Any) -> int:
        return int(keys_of([padding_idx]).view(numpy.int64)[0])

    def _identity(self) -> Dict[str, str]:
        return {"keys and rows": "%016x" % self.table.chain}

    def _identity_of_file(self, path: str, wanted: Dict[str, str]) -> Dict[str, str]:
        return {"keys and rows": "%016x" % number_in_file(path)}


class KeyedEmbedding(_ByKey, Embedding):
    """An Embedding over an sptx.KeyedTable, by keys of 64 bits that come and go.

        ads = sptx.torch.KeyedEmbedding(sptx.KeyedTable(10_000_000, 64, "adam", evict="lru", admit=2))
        x = ads(keys)                      # int64 tensor, or strings; new keys get rows

    In training forward counts the keys' sights and gives rows to new ones, as fetch(); gradients of keys that have no row (admit) are
    dropped and counted. After eval(), under torch.no_grad() and while the module is frozen it only reads, as find(): nothing is
    counted, and keys without a row are answered with their first values.

    padding_idx: a key that gives zeros, and gets no row. A state_dict() is told from others by a hash of all calls that changed the table,
    with their keys and, on a CPU, their gradients, instead of by the rows. Beside that it is an Embedding: the same ways to update, to
    accumulate, to save and to load.
    """


class KeyedEmbeddingBag(_ByKey, EmbeddingBag):
    """An EmbeddingBag over an sptx.KeyedTable: the sum or the mean of each bag's rows. Keys work as in a KeyedEmbedding."""


class EmbeddingBagCollection(_Lookups):
    """EmbeddingBags over sptx.Tables, one for each name, in one call: one fetch, and one update in backward. Beside what is said here
    it is an EmbeddingBag.

        tables = sptx.Tables({"user": 5_000_000, "item": 300_000}, dim=128, optimizer="adagrad", lr=0.05)
        bags = sptx.torch.EmbeddingBagCollection(tables, {"user": "sum", "item": "mean"})
        x = bags({"user": (user_ids, user_offsets), "item": item_ids})   # [bags, 2 x 128]: user's columns, then item's

    tables   an sptx.Tables
    mode     "sum" or "mean" for all, or {name: mode}

    forward(features) -> float32 [bags, number of tables x dim], the tables' columns in their order. features has for each table ids
    [bags, n], or a pair of ids [n] and offsets [bags], where each bag begins. All have the same number of bags; an empty bag gives
    zeros.

    Raises KeyError for a name without a table or a table without a feature, and what EmbeddingBag raises.
    """

    def __init__(self, tables: Tables, mode: Union[str, Mapping[str, str]] = "sum", *, accumulate: bool = False,
                 scaler: Any = None) -> None:
        if not isinstance(tables, Tables):
            raise TypeError("an EmbeddingBagCollection is over sptx.Tables, not over a %s" % type(tables).__name__)
        if isinstance(tables, KeyedTables):
            raise TypeError("an EmbeddingBagCollection asks one table by numbers; take a KeyedEmbeddingBag of each table by key")
        super().__init__(tables.table, accumulate=accumulate, scaler=scaler)
        self.tables = tables
        modes = dict(mode) if isinstance(mode, Mapping) else {name: mode for name in tables.names}
        if set(modes) != set(tables.names):
            raise KeyError("modes are given for %s, and the tables are %s" % (sorted(map(str, modes)), sorted(map(str, tables.names))))
        for name, of_table in modes.items():
            if of_table not in ("mean", "sum"):
                raise ValueError("mode = %r of table %r is neither 'mean' nor 'sum'" % (of_table, name))
        self.mode = modes

    def forward(self, features: Mapping[Any, Any]) -> torch.Tensor:
        names = self.tables.names
        if set(features) != set(names):
            raise KeyError("features are %s, and the tables are %s" % (sorted(map(str, features)), sorted(map(str, names))))
        ids, starts = zip(*(self._numbered_bags(name, features[name]) for name in names))
        bags = len(starts[0]) - 1
        for name, of_table in zip(names, starts):
            if len(of_table) - 1 != bags:
                raise ValueError("table %r has %d bags, and table %r has %d" % (name, len(of_table) - 1, names[0], bags))
        rows = self.rows_of(torch.cat(ids))
        ends = [0]
        for some in ids:
            ends.append(ends[-1] + len(some))
        every = torch.cat([of_table[:-1] + first for of_table, first in zip(starts, ends)] + [starts[0].new_tensor([ends[-1]])])
        counts = torch.cat([of_table.diff() for of_table in starts]).to(rows.device)
        summed = _pooled(rows, every, "sum")
        mean = torch.tensor([self.mode[name] == "mean" for name in names], device=rows.device).repeat_interleave(bags)
        summed = summed / torch.where(mean, counts.clamp(min=1), 1)[:, None]
        return summed.view(len(names), bags, self.table.dim).transpose(0, 1).reshape(bags, len(names) * self.table.dim)

    def prefetch(self, features: Any) -> None:
        """Announces the features of the next forward()."""
        self.table.prefetch(torch.cat([self._numbered_bags(name, features[name])[0] for name in self.tables.names]))

    def _numbered_bags(self, name: Any, feature: Any) -> Tuple[torch.Tensor, torch.Tensor]:
        ids, offsets = feature if isinstance(feature, tuple) else (feature, None)
        found, starts = _bags(_as_tensor(ids), offsets, False)
        return self.tables.numbered(name, found), starts

    def extra_repr(self) -> str:
        return "%r, mode=%s" % (self.tables, self.mode)


class NgramEmbedding(_Lookups):
    """A memory of n-grams for language models: the last tokens before each position, hashed, name rows of an sptx.Table.

        table = sptx.Table(200_000_000, 64, "rowwise_adagrad", lr=0.01, dtype="bfloat16", init="zeros")
        memory = sptx.torch.NgramEmbedding(table, orders=(2, 3), heads=8, seed=1)
        x = x + project(memory(tokens))          # [batch, time, 2 * 8 * 64] added to the model's states, for example

    table    an sptx.Table; its rows are divided evenly among the orders and heads, and those that remain at the end are not used
    orders   lengths of the n-grams, each from 1
    heads    number of hashes of each n-gram. Two n-grams that share a row in one head hardly ever share one in all
    seed     of the hashes' multipliers
    dtype    type of what forward() returns, "float32", "float16" or "bfloat16"; None: float32, and under autocast autocast's
    more     accumulate and scaler, as for Embedding

    forward(tokens, before=None) -> [batch, time, orders * heads * dim], first order first, and of an order first head first. tokens: whole
    numbers [batch, time] from 0. Causal: what is at position t depends on the tokens up to t alone. before [batch, n]: the tokens that
    precede, where a sequence comes in parts; without it the first positions have shorter n-grams.

    The hash. With m = rows // (orders x heads), the n-gram of order number o whose last token is w[0], the one before it w[1] and so
    on, has in head h the row (o x heads + h) x m + floor(y x m / 2^31), where

        x = (w[0] + 1) a[0] + (w[1] + 1) a[1] + .. + (w[n-1] + 1) a[n-1]  (mod 2^64)
        y = the highest 31 bits of (x XOR floor(x / 2^32)) b               (mod 2^64)

    w + 1 is 0 before a sequence's first token, a are odd 64-bit numbers, drawn by SplitMix64 of seed, o, h and the position, and b is
    0x9E3779B97F4A7C15: multiply-shift hashing of vectors (Dietzfelbinger 1996), mixed once more.

    Else it is an Embedding: backward() makes one update of the rows, prefetch(tokens) announces the next forward, save(), load() and
    state_dict() keep the rows; state_dict() also keeps orders, heads and seed, and RuntimeError says so where they differ.
    """

    _KEPT = ("orders", "heads", "seed")

    def __init__(self, table: Optional[Table] = None, orders: Sequence[int] = (2, 3), heads: int = 8, seed: int = 1, *, dtype: Any = None,
                 accumulate: bool = False, scaler: Any = None) -> None:
        super().__init__(table, accumulate=accumulate, scaler=scaler)
        self.orders, self.heads, self.seed, self.dtype = tuple(map(operator.index, orders)), operator.index(heads), operator.index(seed), dtype
        parts = len(self.orders) * self.heads
        if parts < 1 or min(self.orders) < 1:
            raise ValueError("orders = %s, heads = %d; wanted an order or more, each from 1, and a head or more" % (list(orders), heads))
        self.part_rows = self.table.rows // parts  # rows of one order and head
        if not 0 < self.part_rows <= _PART_ROWS:
            raise ValueError("a table of %d rows has %d for each of %d orders and heads; wanted 1 to %d" % (self.table.rows, self.part_rows, parts,
                                                                                                  _PART_ROWS))
        self._law = NgramLaw(ctypes.sizeof(NgramLaw), self.seed & (1 << 64) - 1, self.part_rows, len(self.orders), self.heads,
                             (ctypes.c_uint32 * len(self.orders))(*self.orders))

    def rows_named(self, tokens: torch.Tensor, before: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Returns the rows that forward() takes, int64 [batch, time, orders * heads]."""
        if tokens.dim() != 2 or tokens.dtype.is_floating_point or tokens.dtype == torch.bool:
            raise ValueError("tokens are %s %s; wanted whole numbers [batch, time]" % (str(tokens.dtype).replace("torch.", ""), list(tokens.shape)))
        tokens, skip, home, context = tokens.detach(), 0, tokens.device, self.table.context
        tokens = tokens if tokens.dtype in (torch.int32, torch.int64) else tokens.long()
        if before is not None:
            tokens, skip = torch.cat([before.to(tokens), tokens], 1), before.shape[1]
        given = take_ids(tokens if home.index == context.gpu else tokens.cpu(), context.gpu)
        named = torch.empty(tokens.shape[0], tokens.shape[1] - skip, len(self.orders) * self.heads, dtype=torch.int64, device=given.keep.device)
        context.call(library.sptx_ngrams, context._handle, ctypes.byref(self._law),
                     ctypes.byref(Ids(given.pointer, given.count, given.bits, given.memory)), tokens.shape[0], skip, named.data_ptr(), given.stream)
        return named.to(home)

    def forward(self, tokens: Any, before: Any = None) -> torch.Tensor:
        tokens = _as_tensor(tokens)
        rows = self.rows_of(self.rows_named(tokens, None if before is None else _as_tensor(before)))
        wanted = self.dtype
        if wanted is None and rows.is_cuda:
            wanted = torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None
        elif wanted is None:
            wanted = torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
        return (rows if wanted is None else narrowed(rows, wanted)).flatten(2)

    def prefetch(self, tokens: Any, before: Any = None) -> None:
        """Announces the tokens of the next forward(): their rows begin to move while this batch is computed."""
        self.table.prefetch(self.rows_named(_as_tensor(tokens), None if before is None else _as_tensor(before)))

    def usage(self, rows: int = 1 << 16) -> Dict[str, float]:
        """Measures a memory in use, by `rows` rows that are drawn from those it can name.

        touched     share of rows that have ever been updated; NaN if the optimizer keeps no state, or begins with one (rprop), since nothing
                    tells. With an initial_accumulator_value every row counts as updated
        collisions  share of n-grams that share their row with another one, in one head: 1 - (1 - q)^(n - 1) averaged, which is
                    1 - touched / (-log(1 - touched)) if hashes are uniform; NaN with `touched`
        norm, norm_most  mean and greatest length of a touched row (of all rows, if nothing tells)
        """
        named = self.part_rows * len(self.orders) * self.heads
        picked = numpy.arange(named) if named <= rows else numpy.unique(numpy.random.default_rng(0).integers(0, named, rows))
        lengths = numpy.linalg.norm(self.table.fetch(picked), axis=1)
        states = [numpy.asarray(state)[picked] for state in self.table.state.values() if self.table.optimizer != "rprop"]
        used = numpy.any([state.reshape(len(picked), -1).any(1) for state in states], axis=0) if states else numpy.ones(len(picked), bool)
        share = float(used.mean()) if states else math.nan
        met = -math.log1p(-share) if share < 1 else math.inf
        return {"touched": share, "collisions": 1 - share / met if share else share * 0, "norm": float(lengths[used].mean()) if used.any() else 0.0,
                "norm_most": float(lengths[used].max()) if used.any() else 0.0}

    def get_extra_state(self) -> torch.Tensor:
        about = json.loads(bytes(super().get_extra_state().tolist()))
        about.update((name, getattr(self, name)) for name in self._KEPT)
        return torch.tensor(list(json.dumps(about).encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Any) -> None:
        held = _read_about(state, self._KEPT)
        for name in self._KEPT:
            own = getattr(self, name)
            if held[name] != (list(own) if name == "orders" else own):
                raise RuntimeError("the state_dict is of n-grams with %s = %s, and this module has %s: other rows would be named" % (name, held[name],
                                                                                                               own))
        super().set_extra_state(state)

    def extra_repr(self) -> str:
        return "orders=%s, heads=%d, seed=%d, table=%r" % (self.orders, self.heads, self.seed, self.table)


def _read_about(state: Any, more: Tuple[str, ...] = ()) -> Dict[str, Any]:
    try:
        about = json.loads(bytes(state.to(torch.uint8).cpu().tolist()))
        return {name: about[name] for name in ("rows", "dim", "optimizer", "steps", "fingerprint", "path") + more}
    except Exception as error:
        raise RuntimeError("the state_dict's part of an sptx table cannot be read: %s" % error) from None


def _row_of(padding_idx: Any, rows: int) -> int:
    if isinstance(padding_idx, (bool, numpy.bool_)) or not hasattr(padding_idx, "__index__"):
        raise TypeError("padding_idx = %r is not a whole number" % (padding_idx,))
    number = operator.index(padding_idx)
    if not -rows <= number < rows:
        raise ValueError("padding_idx = %d is no row of a table of %d" % (number, rows))
    return number % rows


def _as_tensor(ids: Any) -> torch.Tensor:
    """Converts ids, of any kind that Table.fetch() accepts, to a tensor whose type has space for every row number."""
    if not isinstance(ids, torch.Tensor):
        if library_of(ids) is Numpy:
            ids = torch.from_numpy(numpy.array(take_ids(ids, None).keep))
        else:
            ids = torch.as_tensor(ids) if hasattr(ids, "__cuda_array_interface__") else torch.from_dlpack(ids)
    whole = not (ids.dtype.is_floating_point or ids.dtype.is_complex or ids.dtype == torch.bool)
    return ids.long() if whole and ids.dtype not in (torch.int32, torch.int64) else ids


def _bags(ids: torch.Tensor, offsets: Any, include_last_offset: bool) -> Tuple[torch.Tensor, torch.Tensor]:
    """Returns the ids as one list; and the index at which each bag begins, with the number of ids at the end, int64 [bags + 1]."""
    if ids.dim() == 2 and offsets is None:
        return ids.reshape(-1), torch.arange(len(ids) + 1, device=ids.device) * ids.shape[1]
    if ids.dim() != 1 or offsets is None:
        raise ValueError("ids are [bags, n] without offsets, or [n] with offsets; they have %d dimensions, and offsets are %s" %
                         (ids.dim(), "not given" if offsets is None else "given"))
    starts = torch.as_tensor(offsets, device=ids.device)
    if starts.numel() and (starts.dtype.is_floating_point or starts.dtype.is_complex or starts.dtype == torch.bool):
        raise TypeError("offsets are %s, wanted int32 or int64" % starts.dtype)
    if starts.dim() != 1:
        raise ValueError("offsets have %d dimensions, wanted 1" % starts.dim())
    starts = starts.long()
    ends = starts if include_last_offset else torch.cat((starts, starts.new_tensor([len(ids)])))
    if not len(ends) or ends[0] != 0 or (ends.diff() < 0).any() or ends[-1] != len(ids):
        raise ValueError("offsets of %d ids begin with 0, do not fall and end at most there; they are %s" %
                         (len(ids), starts.tolist() if starts.numel() < 10 else "not so"))
    return ids, ends


def _pooled(rows: torch.Tensor, starts: torch.Tensor, mode: str, weights: Optional[torch.Tensor] = None) -> torch.Tensor:
    """Returns the sum or mean of each bag's rows, [bags, dim]. starts: [bags + 1]; an empty bag gives zeros."""
    if not len(rows):
        return rows.sum() + rows.new_zeros(len(starts) - 1, rows.shape[1])
    return torch.nn.functional.embedding_bag(
        torch.arange(len(rows), device=rows.device), rows, starts.to(rows.device), mode=mode, include_last_offset=True,
        per_sample_weights=None if weights is None else weights.to(rows.device))


def _look_up(ids: torch.Tensor, fetch: Callable[[torch.Tensor], torch.Tensor], padding: Optional[int]) -> torch.Tensor:
    if padding is not None and isinstance(getattr(fetch, "__self__", None), KeyedTable):  # whose fetch() would give the padding key a row
        kept = ids != padding
        some = fetch(ids[kept])
        rows = some.new_zeros(*ids.shape, some.shape[-1])
        rows[kept.to(rows.device)] = some
        return rows
    rows = fetch(ids)
    if padding is not None:
        rows.masked_fill_((ids == padding).unsqueeze(-1).to(rows.device), 0)
    return rows


class _Lookup(torch.autograd.Function):
    """Fetches the rows of ids. Its backward passes ids and gradients to `give`. `anchor` is an input only so that autograd requires a gradient."""

    @staticmethod
    def forward(ctx: FunctionCtx, anchor: torch.Tensor, ids: torch.Tensor, table: Table, padding: Optional[int],
                give: Callable[[torch.Tensor, torch.Tensor], Any]) -> torch.Tensor:
        ctx.save_for_backward(ids)  # autograd refuses a backward after ids were changed in place
        ctx.give, ctx.padding = give, padding
        return _look_up(ids, table.fetch, padding)

    @staticmethod
    def backward(ctx: Any, gradients: torch.Tensor) -> Tuple[None, None, None, None, None]:
        if torch.is_grad_enabled():
            raise RuntimeError("sptx.torch updates its table in backward and has no gradient of a gradient: call "
                               "backward() or autograd.grad() without create_graph=True")
        ids, = ctx.saved_tensors
        if ctx.padding is not None:
            kept = ids != ctx.padding
            ids, gradients = ids[kept], gradients[kept.to(gradients.device)]
        ctx.give(ids, gradients)
        return None, None, None, None, None
