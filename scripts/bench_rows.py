#!/usr/bin/env python3
"""Rows from Python: what sptx takes beside its peers, on this GPU, in one run of about two minutes.

  make libsptx build/_calls.abi3.so
  PYTHONPATH=src/python SPTX_LIBRARY=build/libsptx.so python3 scripts/bench_rows.py [--only=NAME,..] [--smoke]

  large       fetch and store of 1,048,576 rows of 512 B out of 16 GiB; torch index_select and index_copy_ of pinned rows, and of
              ours where they lie
  calls       calls of 512 rows x 4, where what the binding itself takes shows; the library called directly
  million     131,072 rows x 128 out of 1,000,000 pinned to the GPU and back; SpeedTorch
  update      Adamax over 262,144 ids of 2,829,853 x 400 pinned; what the link carries, PyTorch's SparseAdam on the GPU
  speedtorch  a script for SpeedTorch, skip-gram at batch 512, through sptx.speedtorch; SpeedTorch. speedtorch-narrow: the same
              over 14,886,544 x 188
  embedding   skip-gram through sptx.torch.Embedding, batches of 512 and 16,384, next ids announced; PyTorch on the GPU
  torchrec    the workload that NVIDIA published for TorchRec's tables and DynamicEmb (recsys-examples, corelib/dynamicemb/benchmark):
              fetch and update of 1,048,570 ids of ten tables x 128 by a power law of 1.05; theirs are the published milliseconds
  keyed       the same by random keys of 64 bits (sptx.KeyedTable), and keys that are looked up, and that leave for new ones

--smoke takes a thousandth of the rows and two rounds, and runs without a GPU: it shows that everything runs, and its figures mean
nothing. Needs PyTorch for CUDA. SpeedTorch and CuPy are asked where they are there; in their place otherwise stands the same
work by PyTorch's indexing of pinned rows. Times are medians, waited for at both ends; GB/s count a row's bytes once.
"""
import functools
import gc
import importlib
import itertools
import os
import statistics
import sys
import time
import traceback
import warnings

import numpy
import torch
import torch.nn.functional as functional

import sptx
import sptx.speedtorch

cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
smoke = "--smoke" in sys.argv
ROUNDS, WARM = (2, 1) if smoke else (11, 9)  # warm: every buffer that a call may take has been made
told_at = time.perf_counter()


# ---- measuring and telling ----

def scaled(count):
    return max(32, count // 1000) if smoke else count


def wait():
    if cuda:
        torch.cuda.synchronize()


def give_back():
    """Frees GPU memory that PyTorch and CuPy keep for later use, so that the next part can have it."""
    gc.collect()
    if cuda:
        torch.cuda.empty_cache()
    if cupy is not None:
        cupy.get_default_memory_pool().free_all_blocks()


def median(call, rounds=ROUNDS, warm=WARM):
    """Returns the seconds of a call, from its beginning until its work is done."""
    times = []
    for i in range(rounds + warm):
        wait()
        started = time.perf_counter()
        call(i)
        wait()
        if i >= warm:
            times.append(time.perf_counter() - started)
    return statistics.median(times)


def a_step(step, steps=60, warm=10):
    """Returns the seconds of one of many steps; only the last step is waited for, as in training."""
    steps, warm = (2, 1) if smoke else (steps, warm)
    for i in range(steps + warm):
        if i == warm:
            wait()
            started = time.perf_counter()
        step(i)
    wait()
    return (time.perf_counter() - started) / steps


def tell(work, ours, peer=None, who="", unit="ms"):
    """Prints a line: the work, our speed, the other library's, their ratio, and the seconds that measuring took."""
    global told_at
    now = time.perf_counter()
    figures = "%9.3f" % ours
    if peer is not None:
        times = peer / ours if unit in ("ms", "us") else ours / peer
        figures += " %9.3f %-10s %5.2f x  %s" % (peer, unit, times, who)
    else:
        figures += " %9s %-10s %8s %s" % ("-", unit, "", who)
    print("  %-62s %s  [%.1f s]" % (work, figures, now - told_at), flush=True)
    told_at = now


def said_of(error):
    return "%s: %s" % (type(error).__name__, (str(error) or "no reason given").splitlines()[0])


# ---- the same by PyTorch's indexing of pinned rows: what stands where there is no SpeedTorch ----

@functools.lru_cache(None)
def pinned_context():
    """Opens a context whose tables are in memory that CUDA has pinned, like pinned tensors of PyTorch."""
    before = os.environ.get("SPTX_PIN_ROWS", "")
    os.environ["SPTX_PIN_ROWS"] = "1"  # a context looks when it is opened
    try:
        return sptx.Context(device)
    finally:
        os.environ["SPTX_PIN_ROWS"] = before


def pinned_rows(rows, dim):
    """Makes [rows x dim] zeros in pinned host memory, as a GPU tensor that is read and written over the link."""
    return torch.from_dlpack(sptx.Table(rows, dim, "none", init="zeros", device=pinned_context()).weights)


class Indexing:
    """The two factories of SpeedTorch, written with PyTorch's indexing, as far as a skip-gram needs them."""

    class ModelFactory:
        def __init__(self, variable, total, dim, CPUPinn=False):
            self.variable = variable
            self.rows = pinned_rows(total, dim) if CPUPinn else torch.zeros(total, dim, device=device)

        def zerosInit(self):
            pass

        def uniformDistributionInit(self, low, high):
            self.rows.uniform_(low, high)

        def beforeForwardPass(self, positives, negatives=None):
            self.variable.weight.data = self.rows.index_select(0, Indexing.ids(positives, negatives))

        def afterOptimizerStep(self, positives, negatives=None):
            self.rows.index_copy_(0, Indexing.ids(positives, negatives), self.variable.weight.data)

    class OptimizerFactory:
        def __init__(self, optimizer, total, dim, model, name, CPUPinn=False):
            self.state = optimizer.state[dict(model.named_parameters())[name + ".weight"]]
            self.rows = {slot: pinned_rows(total, dim) if CPUPinn else torch.zeros(total, dim, device=device)
                         for slot in ("exp_avg", "exp_inf")}  # Adamax

        def optInit(self):
            pass

        def beforeForwardPass(self, positives, negatives=None):
            for slot, rows in self.rows.items():
                self.state[slot] = rows.index_select(0, Indexing.ids(positives, negatives))

        def afterOptimizerStep(self, positives, negatives=None):
            for slot, rows in self.rows.items():
                rows.index_copy_(0, Indexing.ids(positives, negatives), self.state[slot])

    @staticmethod
    def ids(positives, negatives):
        both = positives if negatives is None else numpy.concatenate((positives, negatives), axis=None)
        return torch.from_numpy(both.reshape(-1)).to(device)


INDEXING = "PyTorch's indexing of pinned rows, in SpeedTorch's place"


def beside_speedtorch(measure):
    """Measures SpeedTorch if it is installed and works, otherwise PyTorch's indexing; says which one."""
    if speedtorch is not None:
        try:
            return measure(speedtorch), "SpeedTorch"
        except Exception as error:
            print("  SpeedTorch failed: %s" % said_of(error), flush=True)
    return measure(Indexing), INDEXING


def optional(name):
    """Imports a module that may be missing. If it is, prints a line that says why, and returns None."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever a package of another time raises
        print("%s is left out: %s" % (name, said_of(error)))
        return None


# ---- the parts ----

def large():
    rows, dim, count = scaled(1 << 25), 128, scaled(1 << 20)
    table = sptx.Table(rows, dim, "none", init="zeros", device=device)
    in_place, pinned = torch.from_dlpack(table.weights), pinned_rows(rows, dim)
    values, gigabytes = torch.ones(count, dim, device=device), count * dim * 4 / 1e9
    for order in ("random", "sorted"):
        lists = [torch.randint(rows, (count,), device=device) for _ in range(4)]
        lists = [ids.sort()[0] for ids in lists] if order == "sorted" else lists

        def rate(call):
            return gigabytes / median(lambda i: call(lists[i % 4]))

        select, copy = (rate(lambda ids: torch.index_select(pinned, 0, ids, out=values)),
                        rate(lambda ids: pinned.index_copy_(0, ids, values)))
        tell("fetch of %s ids" % order, rate(lambda ids: table.fetch(ids, out=values)), select, "index_select, pinned", "GB/s")
        tell("index_select of our rows, %s ids" % order, rate(lambda ids: torch.index_select(in_place, 0, ids, out=values)),
             select, "the same of pinned rows", "GB/s")
        tell("store of %s ids" % order, rate(lambda ids: table.store(ids, values)), copy, "index_copy_, pinned", "GB/s")
        tell("index_copy_ to our rows, %s ids" % order, rate(lambda ids: in_place.index_copy_(0, ids, values)), copy,
             "the same of pinned rows", "GB/s")


def calls():
    count, dim = scaled(512), 4
    table = sptx.Table(scaled(100_000), dim, "sgd", device=device)
    ids, values = torch.randint(table.rows, (count,), device=device), torch.ones(count, dim, device=device)
    where = sptx._library.CUDA if cuda else sptx._library.HOST
    named, stream = sptx._library.Ids(ids.data_ptr(), count, 64, where), torch.cuda.current_stream().cuda_stream if cuda else None

    def microseconds(call):
        return 1e6 * min(a_step(lambda _: call()) for _ in range(ROUNDS))

    for name, ours in (("fetch", lambda: table.fetch(ids, out=values)), ("store", lambda: table.store(ids, values)),
                       ("update", lambda: table.update(ids, values))):
        library = functools.partial(getattr(sptx._library.library, "sptx_" + name), table._handle.pointer, named, values.data_ptr(),
                                    where, stream)
        tell("%s of %d rows" % (name, count), microseconds(ours), microseconds(library), "the library called directly", "us")


def million():
    rows, dim, count = scaled(1_000_000), 128, scaled(131_072)

    def by_factory(package):
        model = torch.nn.Embedding(count, dim).to(device)
        factory = package.ModelFactory(model, rows, dim, CPUPinn=True)
        factory.zerosInit()
        ids = numpy.random.default_rng(1).permutation(rows)[:count]
        return 1e3 * (median(lambda i: factory.beforeForwardPass(ids)) + median(lambda i: factory.afterOptimizerStep(ids)))

    theirs, who = beside_speedtorch(by_factory)
    give_back()
    tell("sptx.speedtorch, there and back, ids of NumPy", by_factory(sptx.speedtorch), theirs, who)
    table = sptx.Table(rows, dim, "none", init="zeros", device=device)
    ids, values = torch.randperm(rows, device=device)[:count], torch.ones(count, dim, device=device)
    fetch = median(lambda i: table.fetch(ids, out=values))
    tell("sptx.Table, fetch and store, ids on the GPU", 1e3 * (fetch + median(lambda i: table.store(ids, values))), theirs, who)
    host = torch.ones(count, dim, pin_memory=cuda)
    copies = median(lambda i: values.copy_(host, non_blocking=True)) + median(lambda i: host.copy_(values, non_blocking=True))
    tell("the link: plain copies of as many bytes, there and back", 1e3 * copies)


def link():
    """Measures simultaneous copies from pinned memory to the GPU and back, in GB/s in each direction."""
    size = 1 << (20 if smoke else 29)
    host = [torch.ones(size // 4, pin_memory=cuda) for _ in range(2)]
    there = [torch.ones(size // 4, device=device) for _ in range(2)]
    side = torch.cuda.Stream() if cuda else None

    def both(_):
        there[0].copy_(host[0], non_blocking=True)
        with torch.cuda.stream(side):
            host[1].copy_(there[1], non_blocking=True)

    return size / median(both) / 1e9


def update():
    rows, dim, count = scaled(2_829_853), 400, scaled(262_144)
    lists = [torch.randint(rows, (count,), device=device) for _ in range(4)]
    gradients = torch.randn(count, dim, device=device)
    weight = torch.nn.Parameter(torch.zeros(rows, dim, device=device))
    optimizer = torch.optim.SparseAdam([weight])

    def theirs(i):
        weight.grad = torch.sparse_coo_tensor(lists[i % 4][None], gradients, weight.shape)
        optimizer.step()

    pytorch = median(theirs)
    del weight, optimizer
    give_back()
    carried = sum(len(ids.unique()) for ids in lists) / 4 * dim * 3 * 4 / 1e9  # distinct rows with both their slots, one way
    for place in ("pinned", "gpu"):
        table = sptx.Table(rows, dim, "adamax", weights=place, state=place, device=device)
        ours = median(lambda i: table.update(lists[i % 4], gradients))
        tell("update, weights and state %s" % place, ours * 1e3, pytorch * 1e3, "SparseAdam, all on the GPU")
        if place == "pinned":
            tell("the same, rows each way at once", carried / ours, link(), "the link, plain copies each way at once", "GB/s")
        del table


class SkipGram(torch.nn.Module):
    """Computes the loss of targets; of their contexts, the first ones are positives."""

    def __init__(self, u_embeddings, v_embeddings):
        super().__init__()
        self.u_embeddings, self.v_embeddings = u_embeddings, v_embeddings

    def forward(self, target, context, positives):
        scores = torch.bmm(self.v_embeddings(context), self.u_embeddings(target).transpose(1, 2)).squeeze(2)
        losses = functional.softplus(-scores[:, :positives]).sum() + functional.softplus(scores[:, positives:]).sum()
        return losses / len(scores)


ROWS, DIM, POSITIVES, NEGATIVES = 2_829_853, 400, 4, 64


def speedtorch_script(rows, dim):
    """Makes a training step as a script for SpeedTorch does, with targets in pinned memory and contexts on the GPU."""
    rows, batch = scaled(rows), scaled(512)

    def trained(package, kind, with_state):
        random = numpy.random.default_rng(7)
        model = SkipGram(torch.nn.Embedding(batch, dim), torch.nn.Embedding(batch * (POSITIVES + NEGATIVES), dim)).to(device)
        optimizer = kind(model.parameters(), lr=1e-3)
        u_switcher = package.ModelFactory(model.u_embeddings, rows, dim, CPUPinn=True)
        v_switcher = package.ModelFactory(model.v_embeddings, rows, dim)
        v_switcher.uniformDistributionInit(-1e-3, 1e-3)
        switchers = [(u_switcher, v_switcher)]
        if with_state:
            v_state = package.OptimizerFactory(optimizer, rows, dim, model, "v_embeddings")
            u_state = package.OptimizerFactory(optimizer, rows, dim, model, "u_embeddings", CPUPinn=True)
            v_state.optInit()
            u_state.optInit()
            switchers.append((u_state, v_state))
            for parameter in model.parameters():
                optimizer.state[parameter]["step"] = torch.tensor(0.0)
        u_switcher.zerosInit()
        targets = torch.arange(batch, device=device).reshape(batch, 1)
        contexts = torch.arange(batch * (POSITIVES + NEGATIVES), device=device)
        contexts = torch.cat([part.reshape(batch, -1) for part in contexts.split([batch * POSITIVES, batch * NEGATIVES])], 1)

        def step(_):
            u, p, n = (random.integers(0, rows, (batch, count)) for count in (1, POSITIVES, NEGATIVES))
            for of_u, of_v in switchers:
                of_u.beforeForwardPass(u)
                of_v.beforeForwardPass(p, n)
            optimizer.zero_grad()
            model(targets, contexts, POSITIVES).backward()
            optimizer.step()
            for of_u, of_v in switchers:
                of_u.afterOptimizerStep(u)
                of_v.afterOptimizerStep(p, n)

        return batch * POSITIVES / a_step(step) / 1e6

    for kind, with_state, what in ((torch.optim.Adamax, True, "Adamax, targets and their state pinned"),
                                   (torch.optim.SGD, False, "SGD, targets pinned")):
        theirs, who = beside_speedtorch(lambda package: trained(package, kind, with_state))
        give_back()
        tell("%s, batch %d" % (what, batch), trained(sptx.speedtorch, kind, with_state), theirs, who, "M pairs/s")
        give_back()


def embedding():
    rows, sizes = scaled(ROWS), (scaled(512), scaled(16384))
    batches = {size: [(torch.randint(rows, (size, 1), device=device),
                       torch.randint(rows, (size, POSITIVES + NEGATIVES), device=device)) for _ in range(8)] for size in sizes}

    def pairs(size, step):
        lists = batches[size]
        return size * POSITIVES / a_step(lambda i: step(lists[i % 8], lists[(i + 1) % 8]), steps=40) / 1e6

    model = SkipGram(*(torch.nn.Embedding(rows, DIM, sparse=True, device=device) for _ in range(2)))
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=1e-3)

    def by_pytorch(batch, _):
        optimizer.zero_grad()
        model(*batch, POSITIVES).backward()
        optimizer.step()

    theirs = {size: pairs(size, by_pytorch) for size in sizes}
    del model, optimizer
    give_back()
    tables = [sptx.Table(rows, DIM, "adamax", weights=place, state=place, device=device) for place in ("pinned", "gpu")]
    model = SkipGram(*(sptx.torch.Embedding(table) for table in tables))

    def by_embedding(batch, following):
        model.u_embeddings.prefetch(following[0])
        model(*batch, POSITIVES).backward()

    for size in sizes:
        tell("batch %d, targets and their state pinned, next announced" % size, pairs(size, by_embedding), theirs[size],
             "nn.Embedding and SparseAdam, all on the GPU", "M pairs/s")


def torchrec():
    tables, each = 10, scaled(104_857)

    def law(rows):
        """Draws ids of one table by a power law with exponent 1.05."""
        x, g = torch.rand(each, device=device, dtype=torch.float64), 1 - 1.05
        return ((x * (rows ** g - 1) + 1) ** (1 / g)).clamp(max=rows - 1).to(torch.int64)

    def timed(ids, call):
        lists = [ids() for _ in range(50)]  # no list is used twice: a cache must not have seen it
        return a_step(lambda i: call(lists[i]), 40)

    def measured(what, rows, ids, theirs, **options):
        for optimizer, peer, who in zip(("adam", "sgd"), *theirs):
            table = sptx.Table(tables * rows, 128, optimizer, lr=0.1, init="zeros", device=device, **options)
            gradients = torch.randn(tables * each, 128, device=device) * 1e-3
            for _ in range(2 if smoke else 200):  # rows that are used often are found meanwhile
                table.update(ids(), gradients)
            fetch, update, both = (timed(ids, call) for call in (
                table.fetch, lambda some: table.update(some, gradients),
                lambda some: (table.fetch(some), table.update(some, gradients))))
            tell("%s, %s: fetch %.2f, update %.2f" % (what, optimizer, fetch * 1e3, update * 1e3), both * 1e3, peer, who)
            table.close()
            del table, gradients
            give_back()

    rows, of_table = scaled(1_677_721), lambda table, rows: law(rows) + table * rows
    by_table = lambda rows: lambda: torch.cat([of_table(table, rows) for table in range(tables)])
    by_rank = lambda rows: lambda: torch.cat([law(rows) * tables + table for table in range(tables)])
    measured("all on the GPU", rows, by_table(rows), ((1.35, 0.96), ("TorchRec",) * 2), weights="gpu", state="gpu")
    rows = scaled(2_684_354)
    cache = ((14.98, 4.78), ("TorchRec's cache of .8",) * 2)
    measured("host tables", rows, by_table(rows), ((24.02, 13.55), ("TorchRec UVM",) * 2))
    measured("a tenth on the GPU, ids as ranks", rows, by_rank(rows), cache, hot_rows=rows * tables // 10)
    measured("a tenth on the GPU, as found", rows, by_table(rows), cache, gpu_rows=rows * tables // 10)
    measured("half on the GPU, as found", rows, by_table(rows), cache, gpu_rows=rows * tables // 2)


def mixed(numbers):
    """Returns different random-looking keys for different numbers: SplitMix64's mix."""
    for shift, factor in (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB):
        numbers = (numbers ^ (numbers >> shift)) * (factor - (1 << 64))
    return numbers ^ (numbers >> 31)


def keyed():
    tables, each, alone = 10, scaled(104_857), scaled(1 << 20)
    for what, place, rows, theirs in (("all on the GPU", "gpu", scaled(1_677_721), 2.19), ("host tables", "pinned", scaled(2_684_354), 43.5)):
        x, g = torch.rand(8, tables, each, device=device, dtype=torch.float64), 1 - 1.05
        ids = ((x * (rows ** g - 1) + 1) ** (1 / g)).clamp(max=rows - 1).to(torch.int64)
        lists = mixed((ids * tables + torch.arange(tables, device=device)[:, None]).reshape(8, -1))
        table = sptx.KeyedTable(tables * rows, 128, "adam", lr=0.1, init="zeros", evict="lru", weights=place, state=place, device=device)
        gradients = torch.randn(tables * each, 128, device=device) * 1e-3
        for some in lists:
            table.update(some, gradients)
        fetch, update, both = (a_step(lambda i: call(lists[i % 8]), 40) for call in (
            table.fetch, lambda some: table.update(some, gradients), lambda some: (table.fetch(some), table.update(some, gradients))))
        tell("%s, adam: fetch %.2f, update %.2f" % (what, fetch * 1e3, update * 1e3), both * 1e3, theirs, "DynamicEmb")
        table.close()
        del table, gradients
        give_back()
    table = sptx.KeyedTable(16 * alone, 128, "sgd", init="zeros", evict="lru", keep_evicted=0, weights="gpu", state="gpu", device=device)
    for first in range(0, 16 * alone, alone):
        table.fetch(mixed(torch.arange(first, first + alone, device=device)))
    lists = [mixed(torch.randint(16 * alone, (alone,), device=device)) for _ in range(8)]
    out = torch.randn(alone, 128, device=device)
    for what, call in ("find", table.find), ("fetch", table.fetch):
        seconds = a_step(lambda i: call(lists[i % 8], out=out), 40)
        tell("%s of 1,048,576 keys of 16,777,216, all rows taken" % what, alone / seconds / 1e6, None, unit="M keys/s")
    fresh = itertools.count(16 * alone, alone)
    seconds = a_step(lambda i: table.store(mixed(torch.arange(alone, device=device) + next(fresh)), out), 4, 2)
    tell("store of as many new keys, for which others leave", alone / seconds / 1e6, None, unit="M keys/s")


PARTS = {
    "large": ("1,048,576 rows of 512 B out of 16 GiB of host memory", large),
    "calls": ("Calls of few rows", calls),
    "million": ("131,072 rows x 128 out of 1,000,000 pinned, and back", million),
    "update": ("Adamax over 262,144 ids of 2,829,853 x 400", update),
    "speedtorch": ("A script for SpeedTorch: skip-gram over 2,829,853 x 400, 4 positives and 64 negatives",
                   lambda: speedtorch_script(ROWS, DIM)),
    "speedtorch-narrow": ("The same over 14,886,544 x 188", lambda: speedtorch_script(14_886_544, 188)),
    "torchrec": ("1,048,570 ids of ten tables x 128 by a power law, fetch and update", torchrec),
    "keyed": ("The same by random keys of 64 bits", keyed),
    "embedding": ("The same model through sptx.torch.Embedding", embedding),
}
wanted = [name for word in sys.argv[1:] if word.startswith("--only=") for name in word[7:].split(",")] or list(PARTS)
strange = [word for word in sys.argv[1:] if word != "--smoke" and not word.startswith("--only=")]
if strange or set(wanted) - set(PARTS):
    sys.exit("bench_rows: what is %s?\n\n%s" % (", ".join(strange) or "--only=" + ",".join(wanted), __doc__))
if not (cuda or smoke):
    sys.exit("bench_rows: PyTorch sees no GPU here; --smoke runs without one")
warnings.simplefilter("ignore", sptx.SptxWarning)  # random batches name indexes twice
print("%s, PyTorch %s, sptx %s, calls %s%s" % (torch.cuda.get_device_name() if cuda else "no GPU", torch.__version__,
                                               sptx.__version__, "compiled" if sptx._compiled.known else "by ctypes",
                                               ", a thousandth of the work" if smoke else ""))
cupy, speedtorch = optional("cupy"), optional("SpeedTorch")  # SpeedTorch needs CuPy
print("  %-62s %9s %9s" % ("", "ours", "beside"))
failed = 0
for name in wanted:
    print("%s: %s" % (name, PARTS[name][0]), flush=True)
    try:
        PARTS[name][1]()
    except Exception:
        traceback.print_exc()
        failed = 1
    give_back()
sys.exit(failed)
