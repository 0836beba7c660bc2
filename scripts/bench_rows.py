#!/usr/bin/env python3
"""Rows from PyTorch: what sptx.Table and sptx.torch.Embedding take, beside PyTorch's own ways, on this GPU.

  PYTHONPATH=src/python SPTX_LIBRARY=build/libsptx.so scripts/bench_rows.py [--small] [PART..]

Parts: large (16 GiB of pinned rows), million (SpeedTorch's own table), update (Adamax over 2,829,853 x 400), train (skip-gram
through Embedding, batches of 512 and 16,384). --small takes a thousandth of the rows, to see that it runs; it runs without a
GPU then. Times are medians of 11 after 3, waited for at both ends. GB/s count a row's bytes once.
"""
import statistics
import sys
import time

import torch
import torch.nn.functional as functional

import sptx

small = "--small" in sys.argv
cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"


def scaled(count):
    return max(64, count // 1000) if small else count


def wait():
    if cuda:
        torch.cuda.synchronize()


def median(call, rounds=11, warm=3):
    times = []
    for i in range(rounds + warm):
        wait()
        started = time.perf_counter()
        call(i)
        wait()
        if i >= warm:
            times.append(time.perf_counter() - started)
    return statistics.median(times)


def show(what, seconds, rows_bytes=None):
    speed = "" if rows_bytes is None else "%8.1f GB/s" % (rows_bytes / seconds / 1e9)
    print("  %-58s %9.3f ms%s" % (what, seconds * 1e3, speed), flush=True)


def moves(rows, dim, count, orders):
    """fetch and store of `count` rows, and PyTorch's index_select and index_copy_ over the same memory, mapped."""
    table = sptx.Table(rows, dim, "none", init="zeros", device=device)
    in_place = torch.from_dlpack(table.weights)
    values, bytes_of = torch.ones(count, dim, device=device), count * dim * 4
    for order in orders:
        lists = [torch.randint(rows, (count,), device=device) for _ in range(4)]
        lists = [ids.sort()[0] for ids in lists] if order == "sorted" else lists
        show("fetch, %s ids" % order, median(lambda i: table.fetch(lists[i % 4], out=values)), bytes_of)
        show("store, %s ids" % order, median(lambda i: table.store(lists[i % 4], values)), bytes_of)
        show("torch index_select of mapped rows, %s ids" % order,
             median(lambda i: torch.index_select(in_place, 0, lists[i % 4], out=values)), bytes_of)
        show("torch index_copy_ to mapped rows, %s ids" % order,
             median(lambda i: in_place.index_copy_(0, lists[i % 4], values)), bytes_of)


def large():
    print("1,048,576 rows of 512 B out of 16 GiB, pinned")
    moves(scaled(1 << 25), 128, scaled(1 << 20), ["random", "sorted"])


def million():
    print("131,072 rows x 128 out of 1,000,000, pinned")
    moves(scaled(1_000_000), 128, scaled(131_072), ["random"])


def update():
    rows, dim, count = scaled(2_829_853), 400, scaled(262_144)
    print("update with Adamax, %d ids of %d x %d" % (count, rows, dim))
    lists = [torch.randint(rows, (count,), device=device) for _ in range(4)]
    gradients = torch.randn(count, dim, device=device)
    distinct = sum(len(ids.unique()) for ids in lists) / 4
    for place in ("pinned", "gpu"):
        table = sptx.Table(rows, dim, "adamax", weights=place, state=place, device=device)
        show("sptx, weights and state %s (both ways)" % place, median(lambda i: table.update(lists[i % 4], gradients)),
             distinct * dim * 3 * 4 * 2)
        del table
    weight = torch.nn.Parameter(torch.zeros(rows, dim, device=device))
    optimizer = torch.optim.SparseAdam([weight])

    def step(i):
        weight.grad = torch.sparse_coo_tensor(lists[i % 4][None], gradients, weight.shape)
        optimizer.step()

    show("PyTorch SparseAdam, all on the GPU", median(step))


class SkipGram(torch.nn.Module):
    def __init__(self, targets, contexts):
        super().__init__()
        self.targets, self.contexts = targets, contexts

    def forward(self, target, context, positives):
        scores = torch.bmm(self.contexts(context), self.targets(target).transpose(1, 2)).squeeze(2)
        signs = torch.ones_like(scores)
        signs[:, positives:] = -1
        return functional.softplus(-signs * scores).sum() / len(scores)


def train():
    rows, dim, positives, negatives = scaled(2_829_853), 400, 4, 64

    def batches(size, count=24):
        return [(torch.randint(rows, (size, 1), device=device), torch.randint(rows, (size, positives + negatives), device=device))
                for _ in range(count)]

    def pairs(what, size, step):
        lists = batches(size)
        seconds = median(lambda i: step(lists[i % 24], lists[(i + 1) % 24]), rounds=20, warm=4)
        print("  %-58s %9.3f ms %8.3f M pairs/s" % (what, seconds * 1e3, size * positives / seconds / 1e6), flush=True)

    for size in (scaled(512), scaled(16384)):
        print("skip-gram, batches of %d, %d positives and %d negatives, %d x %d" % (size, positives, negatives, rows, dim))
        tables = [sptx.Table(rows, dim, "adamax", weights=place, state=place, device=device) for place in ("pinned", "gpu")]
        model = SkipGram(*(sptx.torch.Embedding(table) for table in tables))

        def ours(batch, following):
            model.targets.prefetch(following[0])
            model(*batch, positives).backward()

        pairs("sptx.torch.Embedding, targets pinned, next announced", size, ours)
        del tables, model
        model = SkipGram(*(torch.nn.Embedding(rows, dim, sparse=True, device=device) for _ in range(2)))
        optimizer = torch.optim.SparseAdam(model.parameters(), lr=1e-3)

        def theirs(batch, following):
            optimizer.zero_grad()
            model(*batch, positives).backward()
            optimizer.step()

        pairs("PyTorch, everything on the GPU, SparseAdam", size, theirs)
        del model, optimizer
        if cuda:
            torch.cuda.empty_cache()


parts = {"large": large, "million": million, "update": update, "train": train}
wanted = [name for name in sys.argv[1:] if name != "--small"] or list(parts)
if set(wanted) - set(parts) or not (cuda or small):
    sys.exit(__doc__)
print(torch.cuda.get_device_name() if cuda else "no GPU", "PyTorch", torch.__version__, "sptx", sptx.__version__)
for name in wanted:
    parts[name]()
