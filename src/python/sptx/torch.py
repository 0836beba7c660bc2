"""PyTorch: a table as a module.

    books = sptx.Table(rows=10_000_000, dim=128, optimizer="adamax", lr=2e-3)
    emb = sptx.torch.Embedding(books)
    loss = model(emb(ids)).sum()
    loss.backward()                    # the table's rows are updated here
    optimizer.step()                   # of the rest of the model
"""

import operator
from typing import Any, Optional, Tuple

import numpy
import torch
from torch.autograd.function import FunctionCtx

from ._arrays import library_of, take_ids
from ._libraries import Numpy
from ._table import Table

__all__ = ["Embedding"]


class Embedding(torch.nn.Module):
    """torch.nn.Embedding over an sptx.Table: forward fetches rows, backward gives their gradients to the table's optimizer.

    table        an sptx.Table; it stays where it is, whatever .to() and .cuda() are called with
    padding_idx  ids of this number (negative: from the end, as in torch) give zeros, and no update

    forward(ids) -> float32 tensor [*ids.shape, dim] where the table runs. ids: int32 or int64 tensors (or what
    Table.fetch takes) of any shape, on the CPU or the table's GPU; they may repeat: a row's gradients are summed, in the
    order of the ids, and the row gets one update.

    Each backward is an update. backward() updates the rows of every forward that it reaches, at once and with the table's
    own rule and lr; there is no grad that waits for a step, and nothing for an optimizer or zero_grad() to do. So
      - two batches whose gradients shall count as one are one forward of both batches' ids;
      - with a GradScaler divide the gradient before it arrives: x = emb(ids); x.register_hook(lambda g: g / scaler.get_scale());
      - a second backward through the same graph (retain_graph=True) is a second update;
      - a table looked up twice in one graph gets two updates, one after the other, from gradients of the rows as they
        were fetched.
    Gradients of gradients are refused: backward(create_graph=True) raises RuntimeError.

    Under torch.no_grad(), and while the module is frozen (requires_grad_(False) here or on a module around it), forward only
    reads. The module's one parameter, `anchor`, has no elements: it is what freezes, and what lets autograd reach the table.

    torch.compile looks tables up between its graphs. torch.jit.trace, make_fx and torch.export are refused (TypeError): a graph
    would hold none of what is fetched.

    state_dict() holds nothing of the table, which may be larger than memory: save it with table.save().

    Raises what Table.fetch and Table.update raise.
    """

    def __init__(self, table: Table, padding_idx: Optional[int] = None) -> None:
        super().__init__()
        if not isinstance(table, Table):
            raise TypeError("an Embedding is over an sptx.Table, not over a %s" % type(table).__name__)
        self.table = table
        self.padding_idx = None if padding_idx is None else _row_of(padding_idx, table.rows)
        self.anchor = torch.nn.Parameter(torch.empty(0))

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
        """The table's learning rate; set it for schedules."""
        return self.table.lr

    @lr.setter
    def lr(self, lr: float) -> None:
        self.table.lr = lr

    def prefetch(self, ids: Any) -> None:
        """Announces the ids of the next forward: their rows start on their way while this batch computes."""
        self.table.prefetch(_as_tensor(ids))

    def forward(self, ids: Any) -> torch.Tensor:
        ids = _as_tensor(ids)
        if torch.is_grad_enabled() and self.anchor.requires_grad:
            return _Lookup.apply(self.anchor, ids, self.table, self.padding_idx)
        return _look_up(ids, self.table, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else ", padding_idx=%d" % self.padding_idx
        return "%d, %d%s, table=%r" % (self.table.rows, self.table.dim, padding, self.table)


def _row_of(padding_idx: Any, rows: int) -> int:
    if isinstance(padding_idx, (bool, numpy.bool_)) or not hasattr(padding_idx, "__index__"):
        raise TypeError("padding_idx = %r is not a whole number" % (padding_idx,))
    number = operator.index(padding_idx)
    if not -rows <= number < rows:
        raise ValueError("padding_idx = %d is no row of a table of %d" % (number, rows))
    return number % rows


def _as_tensor(ids: Any) -> torch.Tensor:
    """Makes a tensor of any ids that Table.fetch takes, wide enough to be compared with the number of any row."""
    if not isinstance(ids, torch.Tensor):
        if library_of(ids) is Numpy:
            ids = torch.from_numpy(numpy.array(take_ids(ids, None).keep))
        else:
            ids = torch.as_tensor(ids) if hasattr(ids, "__cuda_array_interface__") else torch.from_dlpack(ids)
    whole = not (ids.dtype.is_floating_point or ids.dtype.is_complex or ids.dtype == torch.bool)
    return ids.long() if whole and ids.dtype not in (torch.int32, torch.int64) else ids


def _look_up(ids: torch.Tensor, table: Table, padding: Optional[int]) -> torch.Tensor:
    rows = table.fetch(ids)
    if padding is not None:
        rows.masked_fill_((ids == padding).unsqueeze(-1).to(rows.device), 0)
    return rows


class _Lookup(torch.autograd.Function):
    """Fetches the rows of ids; its backward is an update. `anchor` is there only to require a gradient."""

    @staticmethod
    def forward(ctx: FunctionCtx, anchor: torch.Tensor, ids: torch.Tensor, table: Table,
                padding: Optional[int]) -> torch.Tensor:
        ctx.save_for_backward(ids)  # autograd refuses a backward after ids were changed in place
        ctx.table, ctx.padding = table, padding
        return _look_up(ids, table, padding)

    @staticmethod
    def backward(ctx: Any, gradients: torch.Tensor) -> Tuple[None, None, None, None]:
        if torch.is_grad_enabled():
            raise RuntimeError("sptx.torch.Embedding updates its table in backward and has no gradient of a gradient: call "
                               "backward() or autograd.grad() without create_graph=True")
        ids, = ctx.saved_tensors
        if ctx.padding is not None:
            kept = ids != ctx.padding
            ids, gradients = ids[kept], gradients[kept.to(gradients.device)]
        ctx.table.update(ids, gradients)
        return None, None, None, None
