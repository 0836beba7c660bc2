"""Table: rows by id, with the four calls of sptx.h: fetch, update, store, prefetch."""

import contextlib
import ctypes
import math
import os
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy

from . import _arrays, _compiled, _library
from ._context import Context, Handle, context_for, count_of, number_of, text_of
from ._errors import Error
from ._library import AS_WEIGHTS, DTYPES, OWNERS, PLACES, library
from ._saving import Saving
from ._views import HalfRows, Rows, rows_of, values_of

# Each optimizer's options beside lr and clip, as the library names them: numbers and flags of sptx.h.
OPTIMIZERS: Dict[str, tuple] = {
    name: tuple(_library.names(library.sptx_optimizer_option, name.encode()))
    for name in _library.names(library.sptx_optimizer)}

# Names of PyTorch's that are called otherwise in sptx.h.
PAIRS = {"betas": ("beta1", "beta2"), "etas": ("eta_minus", "eta_plus"), "step_sizes": ("step_min", "step_max")}
ALIASES = {"initial_accumulator_value": "initial_accumulator"}


class Table:
    """Rows of a table that may be larger than a GPU, with their optimizer's state beside them.

        books = sptx.Table(rows=10_000_000, dim=128, optimizer="adamax", lr=2e-3)
        x = books.fetch(ids)                 # [*ids.shape, dim]
        books.update(ids, gradients)         # duplicates summed, then one optimizer step a distinct row
        books.save("books.npy")

    rows        1 .. 4,294,967,294
    dim         columns, 1 .. 4096
    optimizer   "sgd", "adagrad", "adadelta", "rmsprop", "adam", "adamw", "sparse_adam", "adamax", "asgd", "rprop": formulas,
                names and defaults are those of torch.optim; "rowwise_adagrad": FBGEMM's (EXACT_ROWWISE_ADAGRAD), whose state is
                one float32 a row, in any state_dtype; "rowwise_adam": FBGEMM's (PARTIAL_ROWWISE_ADAM), Adam whose second moment is
                one float32 a row; "ftrl": FTRL-Proximal (McMahan et al. 2013), whose lr is alpha; take init="zeros", since its
                weights are computed from its state (any other first value counts as if it had been); "none": the table has no update
    lr          learning rate; None: the optimizer's default
    weights     place of the values: "pinned" (host memory that the GPU can address: CUDA's managed memory; with SPTX_PIN_ROWS=1 in
                the environment when the context is opened, pinned memory, slower, of which PyTorch's is_pinned() is True), "gpu",
                or "file" (a mapped working file)
    state       place of the optimizer's state: like weights
    seed        seed of the first values: equal seeds give equal values on every machine
    init        first values: "word2vec" (uniform +-0.5/dim), "zeros", "uniform LO HI", "normal MEAN SD"
    device      "auto" (the first GPU, or the CPU if there is no GPU), "cpu", "cuda", "cuda:1", or an sptx.Context
    hot_rows    rows below this number are kept on the GPU, if the table is pinned or in a file
    gpu_rows    number of rows of a pinned table that are copied to the GPU because calls use them often. Which rows is found out
                while the table is used, and changes no result; cached() names them. Each takes a row's bytes of GPU memory with its
                state, and each row of the table 6 bytes. Not with hot_rows; the table then has no views
    directory   directory of working files; None: the current one
    count_rows  bias corrections count each row's own updates (True) or the table's (False, as PyTorch does)
    dtype       how the values are kept: "float32"; "bfloat16", half the bytes; "int8" or "float8" (e4m3), a quarter, with one
                float32 scale a row. What goes in and out is float32; what is written is rounded up or down at random, with the
                chances that make the mean right, so that no small change is lost. The draws are of seed, row and calls before: the
                same calls give the same bytes. `weights` are HalfRows if they are bfloat16. int8 and float8: a row's largest value
                sets its scale, values below 8e-31 become 0, and a NaN or infinity makes the whole row NaN until it is stored
                again; `weights` raises ValueError (fetch the rows), `state` does not
    state_dtype type of the optimizer's state: "float32" or "bfloat16"; None: as dtype, float32 beside int8 and float8
    clip        if an id repeats in an update, its summed gradient is scaled down to at most this length; 0: never
    check_finite  True: update() raises ValueError for gradients with NaN or infinity, and the table is unchanged. For gradients on a
                GPU that is a wait. False: they are not looked at, and such a gradient makes its row NaN or infinite, with most
                optimizers for good
    shared      a name: the table is one for all processes of the machine that open it with this name and the same options, such as those of
                torchrun. Each is a rank; the call returns when all have come. The rows are kept once, in /dev/shm, where any rank fetches
                any row. Not with other places than "pinned", hot_rows, gpu_rows or a directory
    owner       how the ranks of a shared table change rows. "exact" (default): update() and store() are made by all ranks together, in the same
                order; a rank may bring no ids. The rows get the same bytes as those of one process that makes the call with all ids, rank 0's
                first: for any number of ranks. "lock-free": each rank changes rows without waiting; of changes of one row at the same
                time some may be lost. Not for int8 and float8
    rank, ranks  number of this process, from 0, and of all; None: torchrun's LOCAL_RANK and LOCAL_WORLD_SIZE, or without them 0 of 1
    options     options of the optimizer, by PyTorch's names: momentum, nesterov, weight_decay, betas (or beta1, beta2), eps,
                amsgrad, alpha, centered, rho, lr_decay, initial_accumulator_value, lambd, t0, etas, step_sizes; of ftrl l1, l2, beta

    ids are PyTorch, NumPy, CuPy or JAX arrays of int32 or int64, of any shape, on the host or on the table's GPU; or lists of
    int. They may repeat and come in any order. Gradients and values are float32 of the shape [*ids.shape, dim]. What lies in the
    table's own memory (a part of `weights` given back to it) is copied first.

    Streams. A call is ordered in PyTorch's (or CuPy's) current stream. If all its arrays are on the GPU, it returns before its
    work is done; wait() waits for that.

    Errors. ValueError, TypeError and IndexError if a call is wrong: it has then changed nothing. IndexError means an id that
    is not a row; ids that lie on the GPU are checked there, so theirs comes from the next wait(), save() or view. sptx.Error
    (a RuntimeError) if something outside the call failed: a GPU, a disk, a file's contents; sptx.OutOfMemory (a MemoryError too).
    OSError if a path cannot be opened. A closed table raises ValueError.

    Threads. Any thread may call; calls of tables of one context take turns (see sptx.Context). No other thread changes the
    arrays of a call while it runs. Processes: a table belongs to the process that opened it; in a child made by fork every call
    raises RuntimeError, and looking at a view of rows that a GPU reaches ends it (SIGSEGV).

    Ranks. All ranks of a shared table call barrier(), load() and restore() together (rank 0 reads the file), and one rank calls save(). If a
    rank dies, closes the table or is interrupted while the others wait for it, their calls raise sptx.Error, which names it, and so do all later
    ones. What one rank's call does wrong (an id that is no row) raises in all ranks, and the table is unchanged. Nothing is left in
    /dev/shm when the ranks end; what a kill has left is removed by the next start.
    """

    def __init__(self, rows: int, dim: int, optimizer: str = "sgd", *, lr: Optional[float] = None, weights: str = "pinned",
                 state: str = "pinned", seed: int = 1, init: str = "word2vec", device: Union[str, Context, Any] = "auto",
                 hot_rows: int = 0, gpu_rows: int = 0, directory: Optional[Union[str, "os.PathLike[str]"]] = None, count_rows: bool = True,
                 clip: float = 0.0, dtype: str = "float32", state_dtype: Optional[str] = None, check_finite: bool = False,
                 shared: Optional[str] = None, owner: Optional[str] = None, rank: Optional[int] = None, ranks: Optional[int] = None,
                 **options: Any) -> None:
        self._handle: Optional[Handle] = None
        self._saving: Optional[Saving] = None  # the last save with wait=False
        self._calls: Any = None  # Caller of the C module, while the table is open and the module is loaded
        wanted = read_table(rows, dim, optimizer, lr=lr, weights=weights, state=state, seed=seed, init=init, hot_rows=hot_rows,
                            gpu_rows=gpu_rows, directory=directory, count_rows=count_rows, clip=clip, dtype=dtype, state_dtype=state_dtype,
                            **options)
        self._rank, self._ranks = _share_in(wanted, shared, owner, rank, ranks)
        self._owner = OWNERS[wanted.owner] if self._ranks else None
        self._exact = self._ranks > 1 and self._owner == "exact"  # updates are made by several ranks together
        self._context = context = context_for(device)
        wanted.check_finite = bool(check_finite) and context.gpu is None
        self._looks = bool(check_finite) and context.gpu is not None  # the library does not look at gradients on a GPU
        handle = Handle(context, library.sptx_table_close)
        call = context.call_together if self._ranks else context.call
        call(library.sptx_table_open, context._handle, ctypes.byref(wanted), ctypes.byref(handle.pointer))
        self._handle = handle
        self._rows, self._dim, self._optimizer = wanted.rows, wanted.dim, wanted.optimizer.decode()
        self._places, self._dtype, self._gpu_rows = (weights, state), dtype, wanted.gpu_rows
        self._fields = tuple(_library.names(library.sptx_table_field, handle.pointer))
        self._own = self._own_memory()
        self._span = (self._own[0][0], self._own[-1][1]) if self._own else (0, 0)  # from first to last byte
        self._calls = _compiled.caller_for(handle, self._rows, self._dim, self._own)

    # ---- what it is ----

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._rows

    @property
    def dim(self) -> int:
        """Number of columns."""
        return self._dim

    @property
    def shape(self) -> Tuple[int, int]:
        """(rows, dim)."""
        return self._rows, self._dim

    def __len__(self) -> int:
        return self._rows

    @property
    def optimizer(self) -> str:
        """The optimizer's name."""
        return self._optimizer

    @property
    def dtype(self) -> str:
        """The number type of stored weights: "float32", "bfloat16", "int8" or "float8"."""
        return self._dtype

    @property
    def device(self) -> str:
        """The device of the table: "cpu" or "cuda:0"."""
        return self._context.device

    @property
    def owner(self) -> Optional[str]:
        """How the ranks of a shared table change its rows: "exact" or "lock-free"; None if the table is not shared."""
        return self._owner

    @property
    def rank(self) -> int:
        """The number of this process among the ranks of a shared table, from 0."""
        return self._rank

    @property
    def ranks(self) -> int:
        """The number of ranks of a shared table; 0 if the table is not shared."""
        return self._ranks

    @property
    def context(self) -> Context:
        """The context that the table runs in."""
        return self._context

    @property
    def fields(self) -> Tuple[str, ...]:
        """The names of the table's arrays: "weights", then the optimizer's state by PyTorch's names ("exp_avg")."""
        return self._fields

    @property
    def closed(self) -> bool:
        """Whether close() has been called."""
        return self._handle is None

    @property
    def lr(self) -> float:
        """The learning rate of later updates, 0 .. 1e6. Set it for schedules."""
        handle = self._open()  # here and below, a local variable keeps a table that is closed meanwhile open for the call
        return float(library.sptx_table_lr(self._table(handle)))

    @lr.setter
    def lr(self, lr: float) -> None:
        handle = self._open()
        self._context.call(library.sptx_table_set_lr, self._table(handle), number_of(lr, "lr"))

    @property
    def steps(self) -> int:
        """The number of update() calls so far. Bias corrections use it if count_rows=False. To continue a training, set it after loading."""
        handle = self._open()
        return int(library.sptx_table_steps(self._table(handle)))

    @steps.setter
    def steps(self, steps: int) -> None:
        handle = self._open()
        self._context.call(library.sptx_table_set_steps, self._table(handle), count_of(steps, "steps", 63))

    def _table(self, handle: Handle) -> Any:
        """Returns the library's table of rows; a KeyedTable's handle has it."""
        return handle.pointer

    # ---- rows ----

    def fetch(self, ids: Any, out: Any = None, dtype: Any = None) -> Any:
        """Returns the rows of these ids, float32 [*ids.shape, dim].

        For ids of PyTorch the result is a tensor on the table's device; for NumPy ids and lists a NumPy array; for CuPy and
        JAX ids an array of the same library on the ids' device. If `out` is given, it is filled and returned instead: a
        contiguous, writable float32 array of that shape, on the host or on the table's GPU. dtype: the result's type instead, by its
        name or as PyTorch's or NumPy's own: "float32", "float16" or "bfloat16"; values are rounded to the nearest. Not with `out`.
        """
        calls = self._calls
        made = calls.fetch(ids, out) if calls is not None else NotImplemented
        rows = made if made is not NotImplemented else self._fetch(ids, out)
        if dtype is None:
            return rows
        if out is not None:
            raise ValueError("out is an array of float32, and dtype is that of a new one: give one of them")
        return _arrays.narrowed(rows, dtype)

    def _fetch(self, ids: Any, out: Any) -> Any:
        handle = self._open()
        gpu = self._context.gpu
        which = _arrays.take_ids(ids, gpu)
        rows = _arrays.take_out(out, which, gpu, which.shape + (self._dim,))
        if out is None:
            self._ask(library.sptx_fetch, handle, which, rows)
            return rows.library.result(rows, which)
        apart = self._apart(rows, "out")
        self._ask(library.sptx_fetch, handle, which, apart)
        if apart is not rows:
            out[...] = apart.keep
        return out

    def prefetch(self, ids: Any) -> None:
        """Announces a fetch of these ids in this order: their rows begin to move now.

        Rows that are updated or stored before that fetch come as they are then. Two announced lists are kept. Does nothing for a shared
        table with owner="exact"; with "lock-free" the fetch may lack changes that other ranks have made since.
        """
        calls = self._calls
        if calls is None or calls.prefetch(ids) is NotImplemented:
            self._ask(library.sptx_prefetch, self._open(), _arrays.take_ids(ids, self._context.gpu))

    def update(self, ids: Any, gradients: Any, check_finite: bool = False) -> None:
        """Does one optimizer step: gradients [*ids.shape, dim], float32, float16 or bfloat16, are summed in float32 by row in the order
        of the ids; then each distinct row gets one update. The result has the same bits for any number of threads and any place.

        check_finite: True: ValueError for gradients with NaN or infinity, as for a table that was opened so; the table is unchanged.
        Raises ValueError if the table was opened with optimizer "none".
        """
        if check_finite or self._looks:
            try:
                _arrays.refuse_infinite(gradients)
            except Exception:
                self._refuse(library.sptx_update)
                raise
        calls = None if self._exact else self._calls
        if calls is None or calls.update(ids, gradients) is NotImplemented:
            self._give(library.sptx_update, ids, gradients, "gradients")

    def store(self, ids: Any, values: Any) -> None:
        """Overwrites the rows of these ids with values, float32 [*ids.shape, dim]. If an id repeats, its last values are stored. The optimizer's
        state of the rows is unchanged."""
        calls = None if self._exact else self._calls
        if calls is None or calls.store(ids, values) is NotImplemented:
            self._give(library.sptx_store, ids, values, "values")

    def wait(self) -> None:
        """Waits until all calls on the table are done. Raises IndexError if ids on the GPU were not rows."""
        self._open()
        self._context.wait()

    def barrier(self) -> None:
        """Waits until all ranks of a shared table have called this, and all their changes are done. For a table that is not shared, does what
        wait() does."""
        self._context.call_together(library.sptx_table_barrier, self._open().pointer)

    def _give(self, function: Any, ids: Any, values: Any, what: str) -> None:
        handle = self._open()
        gpu = self._context.gpu
        try:
            which = _arrays.take_ids(ids, gpu)
            floats = _arrays.take_floats(values, gpu, what, which.shape + (self._dim,))
        except Exception:
            self._refuse(function)
            raise
        self._ask(function, handle, which, self._apart(floats, what))

    def _refuse(self, function: Any) -> None:
        """Makes a wrong call where the arguments of a call of all ranks are refused here, so that it raises in the others, too."""
        if self._exact:
            with contextlib.suppress(ValueError):
                self._context.call_together(function, self._open().pointer, _library.Ids(None, 1, 64, _library.HOST), None, _library.HOST, None)

    def _ask(self, function: Any, handle: Handle, which: _arrays.Operand, values: Optional[_arrays.Operand] = None) -> None:
        """Calls the library with ids, and in some calls with values [ids x dim]."""
        context = self._context
        which = self._apart(which, "ids")
        ids = _library.Ids(which.pointer, which.count, which.bits, which.memory)
        stream = _arrays.stream_of(which, values) if context.gpu is not None else None
        if values is None:
            context.call(function, handle.pointer, ids, stream)
        else:
            call = context.call_together if self._exact and function is not library.sptx_fetch else context.call
            call(function, handle.pointer, ids, values.pointer, values.memory, stream)
        if context.gpu is not None and (_arrays.must_wait(which) or _arrays.must_wait(values)):
            context.wait()

    def _own_memory(self) -> List[Tuple[int, int]]:
        """Returns the host memory of the table's fields as ranges of addresses: a single one if weights and state are in the same records."""
        ranges: List[Tuple[int, int]] = []
        seen = self._fields[self._dtype in ("int8", "float8"):]  # codes have no view
        for view in sorted(map(self._look, seen), key=lambda view: view.data or 0):
            low, high = view.data or 0, (view.data or 0) + view.rows * view.stride  # up to the end of the last record
            if low and ranges and low < ranges[-1][1]:
                ranges[-1] = ranges[-1][0], max(high, ranges[-1][1])
            elif low:
                ranges.append((low, high))
        return ranges

    def _apart(self, operand: _arrays.Operand, what: str) -> _arrays.Operand:
        """Returns the operand; if it overlaps memory of the table (is part of a view), a copy, since the call changes these rows."""
        if _arrays.overlaps(operand, *self._span) and any(_arrays.overlaps(operand, *own) for own in self._own):
            return _arrays.copied(operand, what)
        return operand

    def cached(self) -> numpy.ndarray:
        """Returns the ids of the rows that have a copy on the GPU now because of gpu_rows, uint32, in rising order; none without a GPU."""
        handle, count = self._open(), ctypes.c_uint64()
        ids = numpy.empty(min(self._gpu_rows, self._rows), numpy.uint32)
        self._context.call(library.sptx_table_cached, handle.pointer, ids.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32)), ids.size,
                           ctypes.byref(count))
        return numpy.sort(ids[:count.value])

    # ---- in place ----

    @property
    def weights(self) -> Union[Rows, HalfRows]:
        """The rows that lie on the host, in place: an array [rows x dim] (see sptx.Rows), for NumPy as it is, for PyTorch,
        JAX and CuPy through DLPack. Without hot rows it is the whole table. Raises ValueError if all are on the GPU.
        """
        return self.view("weights")

    @property
    def state(self) -> Dict[str, Union[Rows, HalfRows]]:
        """The optimizer's state: a dict of arrays like `weights`, by PyTorch's names."""
        self._open()
        return {field: self.view(field) for field in self._fields[1:]}

    def view(self, field: str) -> Union[Rows, HalfRows]:
        """Returns one of `fields` without a copy, after earlier calls are done."""
        handle = self._open()
        if not isinstance(field, str) or field not in self._fields:
            raise ValueError("the table has no field %r; it has %s" % (field, ", ".join(self._fields)))
        view = self._look(field)
        if not view.data:
            raise ValueError("no row's %s can be seen on the host (weights=%r, state=%r, gpu_rows=%d): fetch them"
                             % ((field,) + self._places + (self._gpu_rows,)))
        rows = rows_of(handle, view, self._context.gpu, whole=field == "weights")
        return HalfRows(rows) if view.dtype else rows

    def _look(self, field: str) -> _library.View:
        view = _library.View(size=ctypes.sizeof(_library.View))
        handle = self._open()
        self._context.call(library.sptx_table_view, handle.pointer, field.encode(), ctypes.byref(view))
        return view

    # ---- disk ----

    def save(self, path: Union[str, "os.PathLike[str]"], wait: bool = True, memory: int = 0) -> Optional[Saving]:
        """Writes a NumPy file of a structured type: "weights" and the optimizer's state by PyTorch's names. Whole or not at
        all: an older file stays until the new one is complete. numpy.load(path, mmap_mode="r")["weights"] reads it. A field of
        bfloat16 is called weights_bfloat16 and holds uint16, the upper halves of float32. Codes are called weights_int8 (int8) or
        weights_float8 (uint8: e4m3); a value is that of its code times the row's `scale`, the last field.

        With wait=False it returns a Saving at once, and the file gets the same bytes as with wait=True. Fetch, update and store may
        go on during the save: before they change a row that is not written yet, they copy it. `memory` limits the bytes of such
        copies (0: an eighth of the table, and at least 64 MiB); a call that needs more waits for the disk. Values that are written
        through `weights` or `state` during the save may or may not be in the file. A table has one save at a time: the next one
        waits for it, as restore() and close() do, and raises its error if nobody has called its wait().

        Raises OSError if the folder does not exist, sptx.Error if writing fails, if a row contains infinity or NaN, or if another
        save to this path is not done.
        """
        handle = self._open()
        where = path_of(path)
        most = count_of(memory, "memory", 64)
        os.stat(os.path.dirname(os.path.abspath(os.fsdecode(where))))
        earlier, saving = self._saving, Saving(self._context, where)
        if earlier is not None and earlier._real != saving._real:
            earlier._pause()
        self._saving = None if wait else saving
        try:
            if wait:
                self._context.call(library.sptx_table_save, handle.pointer, where)
            else:
                saving._begin(handle.pointer, most)
        except BaseException:
            self._saving = saving if saving._pointer else earlier
            raise
        return None if wait else saving

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"], optimizer: str = "sgd", **options: Any) -> "Table":
        """Opens a table with what save() wrote: its rows and columns are read from the file, the other options are Table's.

        The optimizer must be the one whose state the file contains; with optimizer="none" the state is ignored. From a plain
        float32 matrix [rows x dim] only the weights are read, and the state is new. The number of steps is not in the file:
        with count_rows=False set `steps` to continue a training. dtypes that are not given are those of the file.

        Raises OSError if the file cannot be read, sptx.Error if it contains something else.
        """
        rows, dim, fields = _read_header(path)
        options.setdefault("init", "zeros")
        options.setdefault("count_rows", "updates" in fields or not fields)
        if fields:
            options.setdefault("dtype", WEIGHTS[fields[0]][0])
            options.setdefault("state_dtype", "bfloat16" if any(name.endswith("_bfloat16") for name in fields[1:]) else "float32")
        table = cls(rows, dim, optimizer, **options)
        try:
            table._take_file(path, fields)
        except BaseException:
            table.close()
            raise
        return table

    def restore(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Puts what save() wrote in the place of the table's rows and state: load() into a table that is open.

        Raises OSError and sptx.Error as load() does, and ValueError if the file has other rows or columns than the table.
        """
        self._open()
        if self._saving is not None:
            self._saving._pause()
        rows, dim, fields = _read_header(path)
        if (rows, dim) != self.shape:
            raise ValueError("'%s' has %d rows of %d columns, and the table %d of %d" % ((os.fspath(path), rows, dim) + self.shape))
        self._take_file(path, fields)

    def _take_file(self, path: Any, fields: Tuple[str, ...]) -> None:
        if not fields or self._optimizer == "none":
            self._store_all(_mapped(path))
        else:
            handle = self._open()
            call = self._context.call_together if self._ranks else self._context.call
            call(library.sptx_table_load, handle.pointer, path_of(path))

    def _store_all(self, values: Any) -> None:
        """Stores rows in blocks, from a host array of the table's shape or from records of a table's file. In a shared table, rank 0 stores all
        rows."""
        step = max(1, (16 << 20) // (4 * self._dim))
        for first in range(0, self._rows, step):
            part = values[first:first + (0 if self._rank else step)]
            part = numpy.ascontiguousarray(values_of(part) if part.dtype.names else part, dtype=numpy.float32)
            if self._exact or not self._rank:
                self.store(numpy.arange(first, first + len(part)), part)
        if self._ranks:
            self.barrier()

    # ---- the end ----

    def close(self) -> None:
        """Frees the table's memory, once no view of it is left and a save with wait=False is done; warns if that save failed and
        its wait() was not called. Harmless on a closed table."""
        if self._handle is not None:
            self._context.check_process()
            if self._saving is not None:
                self._saving._tell()
        self._handle = self._calls = self._saving = None

    def _open(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise ValueError("the table is closed")
        self._context.check_process()
        return handle

    def __enter__(self) -> "Table":
        self._open()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        handle = self._handle
        if handle is None:
            return "sptx.Table(closed)"
        kept = "" if self._dtype == "float32" else " " + self._dtype
        kept += "" if not self._ranks else ", rank %d of %d" % (self._rank, self._ranks)
        return "sptx.Table(%d x %d%s, %s, lr=%g, weights=%s, state=%s, on %s)" % (
            (self._rows, self._dim, kept, self._optimizer, library.sptx_table_lr(handle.pointer)) + self._places + (self.device,))

    def __reduce__(self) -> Any:
        raise TypeError("a table is not copied or pickled; save() it, and load() it elsewhere; processes of one machine open one table together by "
                        "sptx.Table(.., shared=\"name\")")


# by the name of a file's first field: the table's dtype, and the type of the field's numbers
WEIGHTS = {"weights": ("float32", numpy.float32), "weights_bfloat16": ("bfloat16", numpy.uint16), "weights_int8": ("int8", numpy.int8),
           "weights_float8": ("float8", numpy.uint8)}


def check_header(file: Any, path: Any) -> None:
    """Raises if the header of a NumPy file claims more bytes than the file has: NumPy would allocate up to 4 GiB for it."""
    start = file.read(12)
    file.seek(0)
    told = int.from_bytes(start[8:10] if start[6:7] == b"\x01" else start[8:], "little")
    if start.startswith(b"\x93NUMPY") and told > os.fstat(file.fileno()).st_size:
        raise Error("'%s' is no NumPy file: its header tells %d bytes, more than there are" % (os.fspath(path), told))


def _read_header(path: Any) -> Tuple[int, int, Tuple[str, ...]]:
    """Returns the rows, columns and fields of a table's file; a plain float32 matrix has no fields."""
    path_of(path)  # refuses numbers, which open() would use as file descriptors
    with open(path, "rb") as file:
        check_header(file, path)
        try:
            version = numpy.lib.format.read_magic(file)
            read = numpy.lib.format.read_array_header_1_0 if version == (1, 0) else numpy.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            there, told = os.fstat(file.fileno()).st_size - file.tell(), math.prod(shape) * dtype.itemsize
        except Exception as error:  # NumPy's reader of headers may raise any error of Python's parser
            raise Error("'%s' is no NumPy file: %s" % (os.fspath(path), error)) from None
    if there != told:  # compared before a table of that size is opened
        raise Error("'%s' has %d bytes of rows, and its header says %d" % (os.fspath(path), there, told))
    weights = dtype.names[0] if dtype.names else ""
    if len(shape) == 1 and weights in WEIGHTS and dtype[weights].base == WEIGHTS[weights][1]:
        shape, fields = shape + (dtype[weights].shape or (1,)), dtype.names
    else:
        fields = () if dtype == numpy.float32 else None
    if fields is not None and len(shape) == 2 and 0 < shape[0] <= _library.ROWS_MOST and 0 < shape[1] <= _library.COLUMNS_MOST:
        return int(shape[0]), int(shape[1]), fields
    raise Error("'%s' is no table: it holds %s of the shape %s" % (os.fspath(path), dtype, shape))


def _mapped(path: Any) -> Any:
    try:
        return numpy.load(path, mmap_mode="r")
    except Exception as error:
        raise Error("'%s' cannot be mapped: %s" % (os.fspath(path), error)) from None


def read_table(rows: Any, dim: Any, optimizer: Any, *, lr: Any = None, weights: Any = "pinned", state: Any = "pinned", seed: Any = 1,
               init: Any = "word2vec", hot_rows: Any = 0, gpu_rows: Any = 0, directory: Any = None, count_rows: Any = True, clip: Any = 0.0,
               dtype: Any = "float32", state_dtype: Any = None, **options: Any) -> Any:
    """Returns a struct sptx_table_options; raises for arguments that Table() cannot use."""
    wanted = read_options(optimizer, lr, clip, count_rows, options)
    wanted.rows = count_of(rows, "rows", 64)
    wanted.dim = count_of(dim, "dim", 32)
    wanted.weights, wanted.state = place_of(weights, "weights"), place_of(state, "state")
    wanted.seed, wanted.hot_rows = count_of(seed, "seed", 32), count_of(hot_rows, "hot_rows", 64)
    wanted.gpu_rows = count_of(gpu_rows, "gpu_rows", 64)
    wanted.init = text_of(init, "init")
    wanted.dtype = dtype_of(dtype, "dtype")
    wanted.state_dtype = AS_WEIGHTS if state_dtype is None else dtype_of(state_dtype, "state_dtype")
    wanted.directory = path_of(directory) if directory is not None else None
    return wanted


def read_options(optimizer: Any, lr: Optional[float], clip: Any, count_rows: Any, given: Dict[str, Any]) -> Any:
    """Returns a struct sptx_table_options with these options; all others have their defaults. TypeError for an option that the optimizer lacks."""
    if not isinstance(optimizer, str):
        raise TypeError("optimizer = %r is not a name; wanted one of %s" % (optimizer, ", ".join(OPTIMIZERS)))
    name = optimizer.replace("-", "_")
    if name not in OPTIMIZERS:
        raise ValueError("optimizer '%s' is none of %s" % (optimizer, ", ".join(OPTIMIZERS)))
    options = _library.TableOptions()
    library.sptx_table_defaults(ctypes.byref(options), ctypes.sizeof(options))
    options.optimizer = name.encode()
    if lr is not None:
        options.lr = _number(lr, "lr")
    options.clip = _number(clip, "clip")
    options.count_rows = _flag(count_rows, "count_rows")
    for key, value in _spelled_out(given).items():
        if key not in OPTIMIZERS[name]:
            raise TypeError("optimizer '%s' has no option '%s'; it has %s" %
                            (name, key, ", ".join(("lr",) + OPTIMIZERS[name]) if name != "none" else "none"))
        setattr(options, key, _flag(value, key) if key in _library.FLAGS else _number(value, key))
    return options


def _spelled_out(given: Dict[str, Any]) -> Dict[str, Any]:
    out: Dict[str, Any] = {}
    for key, value in given.items():
        names = PAIRS.get(key)
        if names is None:
            out[ALIASES.get(key, key)] = value
            continue
        try:
            first, second = value
        except (TypeError, ValueError):
            raise TypeError("%s = %r is not a pair of numbers" % (key, value)) from None
        out.update({names[0]: first, names[1]: second})
    return out


def _number(value: Any, what: str) -> float:
    number = number_of(value, what)
    if math.isnan(number):
        raise ValueError("%s is NaN" % what)
    return number


def _flag(value: Any, what: str) -> int:
    if not isinstance(value, (int, numpy.integer, numpy.bool_)) or value not in (0, 1):
        raise TypeError("%s = %r is not True or False" % (what, value))
    return int(value)


def place_of(place: Any, what: str) -> int:
    if not isinstance(place, str) or place not in PLACES:
        raise ValueError("%s = %r is none of %s" % (what, place, ", ".join(PLACES)))
    return PLACES.index(place)


def _share_in(wanted: Any, shared: Optional[str], owner: Optional[str], rank: Optional[int], ranks: Optional[int]) -> Tuple[int, int]:
    """Sets the options of a shared table. Returns this process's rank and the number of ranks; (0, 0) if the table is not shared."""
    if shared is None:
        if owner is not None or rank is not None or ranks is not None:
            raise ValueError("owner, rank and ranks are of a shared table: give it a name by shared=")
        return 0, 0
    if owner not in (None,) + OWNERS:
        raise ValueError("owner = %r is none of %s" % (owner, ", ".join(OWNERS)))
    if (rank is None) != (ranks is None):
        raise ValueError("rank = %r and ranks = %r: give both, or neither, which takes torchrun's" % (rank, ranks))
    wanted.shared, wanted.owner = text_of(shared, "shared"), OWNERS.index(owner or "exact")
    wanted.rank = count_of(int(os.environ.get("LOCAL_RANK", 0)) if rank is None else rank, "rank", 32)
    wanted.ranks = count_of(int(os.environ.get("LOCAL_WORLD_SIZE", 1)) if ranks is None else ranks, "ranks", 32)
    if not wanted.rank < wanted.ranks:
        raise ValueError("rank = %d of ranks = %d: ranks are numbered from 0" % (wanted.rank, wanted.ranks))
    return wanted.rank, wanted.ranks


def dtype_of(dtype: Any, what: str) -> int:
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError("%s = %r is none of %s" % (what, dtype, ", ".join(filter(None, DTYPES))))
    return DTYPES.index(dtype)


def is_path(data: Any) -> bool:
    return isinstance(data, (str, bytes, os.PathLike))


def path_of(path: Any) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("a path holds a NUL: %r" % (path,))
    if not name:
        raise ValueError("the path is empty")
    return name
