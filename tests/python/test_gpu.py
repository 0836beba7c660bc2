"""Tables on a GPU: PyTorch, CuPy, JAX and NumPy side by side, zero-copy both ways, streams, places.

Needs a GPU, a package built with CUDA, and PyTorch for CUDA; CuPy and JAX where they are."""

import gc
import os
import platform
import subprocess
import sys

import numpy
import pytest
import torch

import sptx

pytestmark = [pytest.mark.gpu, pytest.mark.torch]

ROWS, DIM = 5000, 33  # the number of columns is no multiple of four
PLACES = [("pinned", "pinned", {}), ("gpu", "gpu", {}), ("pinned", "gpu", {}), ("gpu", "pinned", {}), ("file", "file", {}),
          *((weights, "pinned", {"hot_rows": rows}) for weights, rows in (("pinned", 700), ("file", 700), ("pinned", ROWS))),
          *((weights, "pinned", {"gpu_rows": rows}) for weights, rows in (("pinned", 300), ("gpu", 40), ("pinned", ROWS)))]


def cuda_table(optimizer="sgd", **options):
    return sptx.Table(ROWS, DIM, optimizer, **{"device": "cuda", "init": "uniform -1 1", **options})


def random_ids(count, seed=1, most=ROWS):
    return numpy.random.default_rng(seed).integers(0, most, count)


def random_floats(*shape, seed=2):
    return numpy.random.default_rng(seed).standard_normal(shape, numpy.float32)


# ---- what a table on a GPU is ----

def test_the_default_is_the_gpu():
    table = sptx.Table(10, 3)
    assert table.device == "cuda:0" and "on cuda:0" in repr(table)
    assert sptx.Table(10, 3, device="cuda").context is table.context
    assert sptx.Table(10, 3, device=torch.device("cuda", 0)).context is table.context
    with pytest.raises((ValueError, sptx.Error)):
        sptx.Context("cuda:99")


@pytest.mark.parametrize("weights, state, hot", PLACES)
@pytest.mark.parametrize("optimizer, evict, admit", [("adam", "lru", 1), ("ftrl", "lfu", 2), ("rowwise_adagrad", "age", 1)])
def test_keys_on_a_gpu_do_what_they_do_on_the_cpu(tmp_path, optimizer, evict, admit, weights, state, hot):
    """Keys get rows, leave and come back in calls that return before their work is done."""
    kind = dict(lr=0.1, init="uniform -1 1", evict=evict, admit=admit)
    gpu = sptx.KeyedTable(300, DIM, optimizer, device="cuda", weights=weights, state=state, directory=tmp_path, **hot, **kind)
    cpu = sptx.KeyedTable(300, DIM, optimizer, device="cpu", **kind)
    for step in range(12):
        keys = random_ids(200, step, 600) * 0x9E3779B97F4A7
        gradients = random_floats(200, DIM, seed=step)
        mine = [torch.from_numpy(of).cuda() if step % 3 else of for of in (keys, gradients)]
        assert numpy.allclose(as_numpy(gpu.fetch(mine[0])), cpu.fetch(keys), rtol=1e-4, atol=1e-5)
        gpu.update(*mine)
        cpu.update(keys, gradients)
        assert numpy.array_equal(gpu.keys(), cpu.keys())
        mine, theirs = gpu.evicted(), cpu.evicted()
        assert numpy.array_equal(mine[0], theirs[0]) and numpy.allclose(mine[1], theirs[1], rtol=1e-4, atol=1e-5)
    gpu.save(tmp_path / "keyed")
    again = sptx.KeyedTable.load(tmp_path / "keyed", device="cpu")
    rows, found = gpu.find(torch.arange(600).cuda() * 0x9E3779B97F4A7)
    assert numpy.array_equal(as_numpy(rows), again.find(numpy.arange(600) * 0x9E3779B97F4A7)[0]) and int(found.sum()) == len(cpu)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "float8"])
def test_neither_order_nor_capacity_nor_places_change_a_row_of_a_key(tmp_path, dtype):
    """Random bits of rounding come from keys, not from row numbers, also for keys that left and came back."""
    keys, seen = numpy.arange(1, 4001) * 0x9E3779B97F4A7, []
    gradients = random_floats(3, len(keys), DIM)
    for capacity, order, (weights, state, hot) in zip((4000, 9000, 5000, 4000, 4096), (1, -1, 7, 1, -1), PLACES):
        with sptx.KeyedTable(capacity, DIM, "rowwise_adagrad", lr=0.1, init="uniform -1 1", dtype=dtype, device="cuda", evict="lru", weights=weights,
                             state=state, directory=tmp_path, **hot) as table:
            table.fetch(-numpy.arange(1, capacity // 2))
            table.remove(-numpy.arange(1, capacity // 2))
            order = numpy.argsort(numpy.arange(len(keys)) * order % len(keys), kind="stable")
            for of in gradients:
                table.fetch(torch.from_numpy(keys[order]).cuda())
                table.update(keys, of)
            table.save(tmp_path / "keyed")
            seen.append(as_numpy(table.find(keys)[0]).tobytes())
        with sptx.KeyedTable.load(tmp_path / "keyed", device="cuda", weights=weights, state=state, directory=tmp_path, **hot) as again:
            again.update(keys, gradients[0])
            seen[-1] += as_numpy(again.find(keys)[0]).tobytes()
    assert len(seen) > 1 and len(set(seen)) == 1


@pytest.mark.parametrize("evict, admit", [(None, 1), ("lru", 1), ("lfu", 1), ("age", 1), ("lru", 3), ("lfu", 2)])
@pytest.mark.parametrize("capacity", [1, 37, 5000])
def test_the_index_on_a_gpu_is_that_of_the_cpu(tmp_path, evict, admit, capacity):
    """Random calls, with keys and values of the host: files are equal to the byte, so all counts, numbers of calls and rows are."""
    kind = dict(evict=evict, admit=admit, init="uniform -1 1")
    tables = [sptx.KeyedTable(capacity, 4, "sgd", device=device, lr=0.25, **kind) for device in ("cuda", "cpu")]
    draw = numpy.random.default_rng(capacity)
    known = draw.integers(0, 1 << 64, capacity * 3, numpy.uint64)
    known[:2] = 0, (1 << 64) - 1
    known = known[:capacity] if evict is None else known
    for step in range(60):
        keys = known[(len(known) * draw.random(draw.integers(1, max(2, capacity // 2))) ** 2).astype(int)]
        keys = numpy.repeat(keys, 1 + 40 * (step % 7 == 0)) if capacity > 1 else keys[:1]
        values = numpy.round(draw.standard_normal((len(keys), 4)) * 16).astype("float32") / 16 + 0.03125  # sums are exact, and none is -0
        call = draw.integers(0, 8)
        for table in tables:
            if call < 3: table.fetch(keys)
            elif call < 5: table.update(keys, values)
            elif call == 5: table.store(keys, values)
            elif call == 6: table.remove(keys[:2])
            else: mark = table.mark()
        assert len(tables[0]) == len(tables[1]) and numpy.array_equal(tables[0].counts(known), tables[1].counts(known))
        rows, found = tables[0].find(torch.from_numpy(known.view(numpy.int64)).cuda())
        theirs = tables[1].find(known)
        assert numpy.array_equal(found.numpy(), theirs[1]) and numpy.array_equal(as_numpy(rows), theirs[0])
        mine, theirs = [table.evicted() for table in tables]
        assert numpy.array_equal(mine[0], theirs[0]) and numpy.array_equal(mine[1], theirs[1])
        if step % 20 == 19:
            for table, name in zip(tables, ("gpu", "cpu")):
                table.save(tmp_path / name)
            assert (tmp_path / "gpu").read_bytes() == (tmp_path / "cpu").read_bytes()
            tables = [sptx.KeyedTable.load(tmp_path / name, device=device) for name, device in (("cpu", "cuda"), ("gpu", "cpu"))]
    assert "uint64" in str(tables[0].keys().dtype) and numpy.array_equal(tables[0].keys(), tables[1].keys())


def test_keys_of_a_gpu_are_refused_as_those_of_the_host():
    table = sptx.KeyedTable(3, 4, device="cuda")
    table.fetch(torch.tensor([5, 6, 5], device="cuda"))
    with pytest.raises(ValueError, match="gets no row: of 3 rows 1 are free, and this call brings 2 new keys"):
        table.fetch(torch.tensor([7, 8, 5], device="cuda"))
    assert table.keys().tolist() == [5, 6] and table.counts([5, 6, 7]).tolist() == [2, 1, 0]
    table.fetch(torch.tensor([9], device="cuda", dtype=torch.int32))
    assert 9 in table and table.fetch(torch.tensor([], device="cuda", dtype=torch.int64)).shape == (0, 4)


@pytest.mark.parametrize("weights, state, hot", PLACES)
@pytest.mark.parametrize("optimizer", ["adamax", "sgd", "rprop", "rowwise_adagrad"])
def test_a_gpu_does_what_the_cpu_does(tmp_path, optimizer, weights, state, hot):
    """Makes the same calls on GPU and CPU: ids with repeats, of 32 and 64 bits, in the memory of the GPU and of the host."""
    gpu = cuda_table(optimizer, lr=0.1, weights=weights, state=state, **hot, directory=tmp_path)
    cpu = sptx.Table(ROWS, DIM, optimizer, lr=0.1, init="uniform -1 1", device="cpu")
    everything = numpy.arange(ROWS)
    assert numpy.array_equal(gpu.fetch(everything), cpu.fetch(everything))
    for step in range(6):
        ids = random_ids((7, 30 * (step + 1)), step)
        gradients = random_floats(*ids.shape, DIM, seed=step)
        theirs = torch.from_numpy(ids), torch.from_numpy(gradients)
        mine = [(theirs[0].cuda(), theirs[1].cuda()), (theirs[0].int().cuda(), theirs[1].cuda()), (ids, gradients),
                (theirs[0], theirs[1].cuda()), (theirs[0].cuda(), theirs[1]), (theirs[0].pin_memory(), theirs[1])][step]
        gpu.prefetch(mine[0])
        fetched = gpu.fetch(mine[0])
        assert numpy.allclose(as_numpy(fetched), cpu.fetch(ids), rtol=1e-5, atol=1e-6)
        gpu.update(*mine)
        cpu.update(ids, gradients)
        gpu.store(mine[0][0], mine[1][0])
        cpu.store(ids[0], gradients[0])
    assert numpy.allclose(gpu.fetch(everything), cpu.fetch(everything), rtol=1e-4, atol=1e-5) and gpu.steps == 6
    gpu.save(tmp_path / "gpu.npy")
    saved = numpy.load(tmp_path / "gpu.npy")
    for field in cpu.fields[1:]:
        assert numpy.allclose(saved[field], cpu.state[field], rtol=1e-3, atol=1e-5), field
    again = sptx.Table.load(tmp_path / "gpu.npy", optimizer, lr=0.1, device="cuda", weights=weights, state=state, **hot,
                            directory=tmp_path)
    assert numpy.array_equal(again.fetch(everything), gpu.fetch(everything))


@pytest.mark.parametrize("dtype", ["int8", "float8"])
def test_codes_are_the_same_in_each_place(tmp_path, dtype):
    """Neither the places of rows nor rows kept on the GPU change a byte. Stored values have the same bytes as on the CPU, and the CPU reads a file
    from a GPU."""
    options = dict(lr=0.1, dtype=dtype, directory=tmp_path)
    tables = [cuda_table("rowwise_adagrad", weights=weights, state=state, **hot, **options) for weights, state, hot in PLACES]
    cpu = sptx.Table(ROWS, DIM, "rowwise_adagrad", init="uniform -1 1", device="cpu", **options)
    everything, first = numpy.arange(ROWS), []
    for step in range(4):
        ids = random_ids(3000, step)
        gradients, values = random_floats(3000, DIM, seed=step), random_floats(ROWS, DIM, seed=step)
        for table in tables + [cpu]:
            table.prefetch(ids)
            table.fetch(ids)
            table.update(ids, gradients)
        rows = [table.fetch(everything) for table in tables]
        assert all(numpy.array_equal(rows[0], other) for other in rows)
        assert abs(rows[0] - cpu.fetch(everything)).max() < 0.5 and (abs(rows[0] - cpu.fetch(everything)) > 1e-4).mean() < 0.01
        for table in tables + [cpu]:
            table.store(everything, values)
        assert all(numpy.array_equal(table.fetch(everything), cpu.fetch(everything)) for table in tables)
    tables[0].save(tmp_path / "rows.npy")
    assert numpy.array_equal(sptx.Table.load(tmp_path / "rows.npy", "rowwise_adagrad", device="cpu").fetch(everything), cpu.fetch(everything))
    with pytest.raises(sptx.Error, match="bfloat16 state beside"):
        cuda_table("adam", dtype=dtype, state_dtype="bfloat16")


def as_numpy(array):
    return array.cpu().numpy() if isinstance(array, torch.Tensor) else numpy.asarray(array)


def test_results_lie_where_they_are_said_to():
    table = cuda_table()
    for ids in (torch.tensor([1, 2]), torch.tensor([1, 2]).cuda()):
        assert table.fetch(ids).device == torch.device("cuda", 0)
    assert type(table.fetch(numpy.array([1, 2]))) is numpy.ndarray
    host, pinned = torch.zeros(2, DIM), torch.zeros(2, DIM).pin_memory()
    for out in (host, pinned, torch.zeros(2, DIM, device="cuda"), numpy.zeros((2, DIM), numpy.float32)):
        assert table.fetch(torch.tensor([1, 2]).cuda(), out=out) is out
        assert numpy.array_equal(as_numpy(out), table.fetch([1, 2]))
    assert table.fetch(torch.zeros(0, 3, dtype=torch.int64, device="cuda")).shape == (0, 3, DIM)


def test_the_result_is_the_same_to_the_bit_wherever_it_is_asked_from():
    ids, gradients = random_ids(3000, most=50), random_floats(3000, DIM)
    results = []
    for places in PLACES:
        table = cuda_table("adam", weights=places[0], state=places[1], **places[2])
        table.update(torch.from_numpy(ids).cuda(), torch.from_numpy(gradients).cuda())
        table.update(ids, gradients)
        results.append(table.fetch(numpy.arange(ROWS)))
    for result in results[1:]:
        assert numpy.array_equal(result, results[0])


# ---- lists of every length, which are gone about in different ways ----

def check_a_list(table, rows, ids, values):
    """Stores and fetches rows of the same ids, passed in several ways. `rows` is what the whole table must contain."""
    places = torch.from_numpy(ids)
    for step, which in enumerate((ids, places.cuda(), places.int().cuda(), ids.astype("i4"))):
        given = torch.from_numpy(values + step)
        table.store(which, given if step % 2 else given.cuda())
        rows[ids] = values + step  # of repeated ids NumPy keeps the last value, too
        assert numpy.array_equal(as_numpy(table.fetch(which)), rows[ids]), step
        # its address is no multiple of 16 bytes
        out = torch.zeros(len(ids) * rows.shape[1] + 1, device="cuda")[1:].view(len(ids), -1)
        assert numpy.array_equal(as_numpy(table.fetch(which, out=out)), rows[ids]), step


@pytest.mark.parametrize("weights, hot", [("pinned", {}), ("pinned", {"hot_rows": 700}), ("pinned", {"hot_rows": ROWS}), ("gpu", {}), ("file", {}),
                                          ("pinned", {"gpu_rows": 500})])
@pytest.mark.parametrize("dim", [4, 33, 128, 260])
def test_lists_of_every_length_move_the_same_rows(tmp_path, weights, hot, dim):
    table = sptx.Table(ROWS, dim, "none", weights=weights, **hot, init="uniform -1 1", device="cuda", directory=tmp_path)
    rows = table.fetch(numpy.arange(ROWS))
    for count in (1, 2, 31, 33, 2047, 2048, 2049, 20_000):  # one kernel handles up to 2,048 ids
        for most in (1, 40, ROWS):
            check_a_list(table, rows, random_ids(count, count, most), random_floats(count, dim, seed=most))
    table.prefetch(numpy.arange(10))  # a store may change rows that were prefetched
    check_a_list(table, rows, random_ids(3000), random_floats(3000, dim))
    assert numpy.array_equal(table.fetch(numpy.arange(10)), rows[:10])
    assert numpy.array_equal(table.fetch(numpy.arange(ROWS)), rows)


@pytest.mark.parametrize("total", [1 << 21, (1 << 21) + 1])  # x 512 bytes: what the link reads in any order, and more than that
def test_lists_of_a_table_of_a_gigabyte(total):
    table = sptx.Table(total, 128, "none", init="zeros", device="cuda")
    in_place = table.weights
    for count in (2048, 2049, 4095, 4096, 30_000):  # from 4,096 on the order of the larger table helps
        for most in (1, 50, total):
            ids, values = random_ids(count, count, most), random_floats(count, 128, seed=most)
            last = {row: place for place, row in enumerate(ids.tolist())}
            places = [last[row] for row in ids.tolist()]
            for which in (ids, torch.from_numpy(ids).cuda()):
                values += 1
                table.store(which, torch.from_numpy(values).cuda())
                table.wait()
                assert numpy.array_equal(in_place[ids], values[places])
                assert numpy.array_equal(as_numpy(table.fetch(which)), values[places])


@pytest.mark.parametrize("count", [1 << 24, (1 << 24) + 1])  # the most that claim their rows
def test_the_longest_lists(count):
    table = sptx.Table(1000, 4, "none", init="zeros", device="cuda")
    ids = torch.randint(990, (count,), device="cuda")
    values = torch.arange(count, device="cuda", dtype=torch.float32)[:, None].expand(count, 4).contiguous()
    table.store(ids, values)
    last = torch.full((1000,), -1, device="cuda").scatter_reduce(0, ids, torch.arange(count, device="cuda"), "amax")
    rows = torch.from_numpy(table.fetch(numpy.arange(1000))).cuda()
    assert torch.equal(rows[:990, 0], last[:990].float()) and torch.equal(rows[:, :1].expand(-1, 4), rows)
    assert not rows[990:].any()
    assert torch.equal(table.fetch(ids), rows[ids])


def test_lists_of_the_host_wait_in_line():
    """Calls with ids in host memory return while the GPU is busy, and the caller may change the ids at once."""
    table = cuda_table(init="zeros")
    ids, values = numpy.zeros(64, numpy.int64), [torch.full((64, DIM), float(k), device="cuda") for k in range(20)]
    for k in range(20):
        table.store(ids, values[0])  # this call allocates all memory, so that later ones need not wait
    torch.cuda.synchronize()
    slow(2_000_000_000)
    done = torch.cuda.Event()
    done.record()
    for k in range(20):
        ids[:] = numpy.arange(64) + 64 * k
        table.store(ids, values[k])
        assert k > 6 or not done.query()  # at most eight lists of ids are kept, so the ninth call waits
    ids[:] = 0
    rows = table.fetch(numpy.arange(ROWS))
    assert numpy.array_equal(rows[:1280, 0], numpy.arange(1280) // 64) and not rows[1280:].any()


@pytest.mark.parametrize("weights", ["pinned", "gpu", "file"])
def test_longer_lists_of_the_host_wait_in_line_too(weights):
    """The buffer of ids grows for a longer list while the GPU has not yet read the ids of earlier calls."""
    table = cuda_table(init="zeros", weights=weights)
    wanted = numpy.zeros(ROWS, numpy.float32)
    for k, count in enumerate((10, 1000, 1100, 2048, 2049, ROWS, 7, 3000, ROWS, 2500, 2100, ROWS, 5)):
        ids = numpy.random.default_rng(k).permutation(ROWS)[:count].astype(("i8", "i4")[k % 2])
        wanted[ids] = k
        if k % 4 == 0:
            slow(50_000_000)
        table.store(ids, torch.full((count, DIM), float(k), device="cuda"))
        seen = ids.copy()
        rows = table.fetch(ids, out=torch.empty(count, DIM, device="cuda"))
        ids[:] = 0  # the caller may change the ids at once
        assert numpy.array_equal(as_numpy(rows)[:, 0], wanted[seen])
    assert numpy.array_equal(table.fetch(numpy.arange(ROWS))[:, 0], wanted)


# ---- what is wrong ----

@pytest.mark.parametrize("weights", ["pinned", "gpu", "file"])
@pytest.mark.parametrize("more", [0, 3000])  # real ones before them
def test_ids_of_the_host_that_are_no_rows_change_nothing(more, weights):
    table = cuda_table(weights=weights)
    before = table.fetch(numpy.arange(ROWS))
    for dtype, wrong in (("i8", [ROWS, -1, 1 << 32, 1 << 62]), ("i4", [ROWS, -1, -1 << 31])):
        for number in wrong:
            ids = numpy.arange(more + 2).astype(dtype)
            ids[more] = number
            ones = torch.ones(more + 2, DIM, device="cuda")
            for call in (lambda: table.fetch(ids), lambda: table.prefetch(ids), lambda: table.store(ids, ones),
                         lambda: table.update(ids, ones)):
                with pytest.raises(IndexError, match=r"ids\[%d\] = %d is no row of a table of %d" % (more, number, ROWS)):
                    call()
    table.wait()
    assert numpy.array_equal(before, table.fetch(numpy.arange(ROWS)))


@pytest.mark.parametrize("more", [0, 3000])  # real ones before them
def test_ids_on_the_gpu_that_are_no_rows_are_told_later(more):
    table = cuda_table()
    before = table.fetch(numpy.arange(ROWS))
    real = torch.arange(more, device="cuda")
    for wrong in ([ROWS], [3, -1], [1 << 40]):
        ids = torch.cat([real, torch.tensor(wrong, device="cuda")])
        last = torch.cat([real, ids[-1:]])
        values = torch.cat([torch.from_numpy(before[:more]).cuda(), torch.ones(1, DIM, device="cuda")])
        for call in (lambda: table.fetch(ids), lambda: table.store(last, values),
                     lambda: table.update(last, torch.cat([torch.zeros(more, DIM, device="cuda"), values[-1:]]))):
            call()
            with pytest.raises(IndexError, match="row"):
                table.wait()
    table.wait()
    assert numpy.array_equal(before, table.fetch(numpy.arange(ROWS)))
    with pytest.raises(IndexError):
        table.fetch([ROWS])


def test_devices_are_not_mixed():
    table = sptx.Table(10, DIM, device="cpu")
    for call in (lambda: table.fetch(torch.tensor([1]).cuda()), lambda: table.fetch([1], out=torch.zeros(1, DIM).cuda()),
                 lambda: table.store([1], torch.zeros(1, DIM).cuda())):
        with pytest.raises(ValueError, match="cuda:0, but the table runs on the CPU"):
            call()
    assert table.fetch(torch.tensor([1])).device.type == "cpu"


# ---- zero-copy ----

def test_weights_are_taken_in_place_by_all():
    table = cuda_table()
    weights = table.weights
    assert weights.__dlpack_device__() == (2, 0)
    on_gpu = torch.from_dlpack(weights)
    assert on_gpu.device == torch.device("cuda", 0) and on_gpu.shape == (ROWS, DIM)
    on_gpu[17] = 5  # the GPU writes to host memory
    torch.cuda.synchronize()
    assert (weights[17] == 5).all() and (table.fetch([17]) == 5).all()
    weights[18] = 6
    assert (on_gpu[18] == 6).all()
    table.store(torch.tensor([19]).cuda(), torch.full((1, DIM), 7.0, device="cuda"))
    table.wait()
    assert (on_gpu[19] == 7).all() and (weights[19] == 7).all()
    new = tuple(map(int, numpy.__version__.split(".")[:2])) >= (2, 1)  # it asks for the CPU; what it gets otherwise is a GPU's
    on_host = numpy.from_dlpack(weights, device="cpu") if new else numpy.asarray(weights)
    assert numpy.shares_memory(on_host, weights) and on_host[18, 0] == 6
    assert torch.from_numpy(weights)[18, 0] == 6
    part = torch.from_dlpack(weights[100:200:3])
    assert part.is_cuda and torch.equal(part.cpu(), torch.from_numpy(weights[100:200:3].copy()))
    table.close()
    del table, weights
    gc.collect()
    assert float(on_gpu[17, 0]) == 5 and on_host[19, 0] == 7
    state = cuda_table("adam").state["exp_avg"]
    assert torch.from_dlpack(state).is_cuda
    with pytest.raises(ValueError, match="fetch"):
        cuda_table(weights="gpu").weights
    assert cuda_table(hot_rows=700).weights.first == 700 and len(cuda_table(hot_rows=700).weights) == ROWS - 700
    assert cuda_table(weights="file").weights.__dlpack_device__() == (1, 0)


def test_rows_are_pinned_where_that_is_asked_for():
    """With SPTX_PIN_ROWS rows are in pinned memory. Otherwise they are in managed memory, which PyTorch does not call pinned (WSL
    has none). Both behave the same."""
    code = ("import numpy, sptx, torch\n"
            f"table = sptx.Table({ROWS}, {DIM}, 'adamax', device='cuda', init='uniform -1 1')\n"
            f"ids = numpy.random.default_rng(1).integers(0, {ROWS}, 3000)\n"
            f"table.update(ids, numpy.ones((3000, {DIM}), numpy.float32))\n"
            "table.wait()\n"
            "as_cpu = torch.from_numpy(table.weights)\n"
            "assert torch.equal(torch.from_dlpack(table.weights).cpu(), as_cpu)\n"
            f"print(as_cpu.is_pinned(), table.fetch(numpy.arange({ROWS})).tobytes().hex())")
    said = []
    for asked in ("0", "1"):
        ended = subprocess.run([sys.executable, "-c", code], env={**os.environ, "SPTX_PIN_ROWS": asked}, capture_output=True,
                               text=True)
        assert ended.returncode == 0, ended.stderr
        said.append(ended.stdout.split())
    assert said[1][0] == "True" and said[0][1] == said[1][1]
    assert said[0][0] == "False" or "microsoft" in platform.release().lower()


def test_cupy_both_ways():
    cupy = pytest.importorskip("cupy")
    table = cuda_table(lr=1.0)
    in_place = cupy.from_dlpack(table.weights)
    in_place[3] = 4
    cupy.cuda.Device().synchronize()
    assert (table.fetch([3]) == 4).all()
    for dtype in ("i4", "i8", "u2"):
        ids = cupy.array([[3, 1], [4, 3]], dtype)
        rows = table.fetch(ids)
        assert isinstance(rows, cupy.ndarray) and rows.shape == (2, 2, DIM) and (rows[0, 0] == 4).all()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        table.update(cupy.array([3, 3]), cupy.ones((2, DIM), "f4"))
        out = table.fetch(cupy.array([3]), out=cupy.zeros((1, DIM), "f4"))
    stream.synchronize()
    assert (out == 2).all()
    assert (table.fetch(torch.tensor([3]).cuda()) == 2).all()
    for wrong, kind in ((cupy.array([1.0]), TypeError), (cupy.array([True]), TypeError)):
        with pytest.raises(kind):
            table.fetch(wrong)
    with pytest.raises(TypeError, match="float64"):
        table.store(cupy.array([1]), cupy.ones((1, DIM)))
    table.store(cupy.array([1, 2]), cupy.ones((2, 2 * DIM), "f4")[:, ::2])


def test_jax_both_ways():
    jax = pytest.importorskip("jax")
    table = cuda_table(lr=1.0)
    if jax.devices()[0].platform == "cpu":
        pytest.skip("JAX has no GPU")
    in_place = jax.dlpack.from_dlpack(table.weights.records)  # it takes no gaps between rows
    assert in_place.devices() == jax.numpy.zeros(1).devices()
    assert numpy.array_equal(numpy.asarray(in_place[:, :DIM]), table.fetch(numpy.arange(ROWS)))
    assert jax.dlpack.from_dlpack(sptx.Table(10, 64, device="cuda").weights).shape == (10, 64)
    ids = jax.numpy.array([[3, 1], [4, 3]])
    rows = table.fetch(ids)
    assert isinstance(rows, jax.Array) and rows.shape == (2, 2, DIM) and rows.devices() == ids.devices()
    assert numpy.array_equal(numpy.asarray(rows), table.fetch(numpy.asarray(ids)))
    before = table.fetch([3])
    table.update(ids, jax.numpy.ones((2, 2, DIM)))
    assert numpy.allclose(table.fetch([3]), before - 2)
    other = table.fetch(ids)
    assert numpy.allclose(numpy.asarray(rows)[0, 0], before[0]) and numpy.allclose(numpy.asarray(other)[0, 0], before[0] - 2)
    host = jax.device_put(ids, jax.devices("cpu")[0])
    assert list(table.fetch(host).devices())[0].platform == "cpu"
    with pytest.raises(TypeError, match="jit"):
        jax.jit(table.fetch)(ids)


def test_others_by_their_protocols():
    """An array that has only __cuda_array_interface__, as Numba's do."""
    table = cuda_table()
    ids = torch.tensor([5, 1], device="cuda")

    class Other:
        __cuda_array_interface__ = ids.__cuda_array_interface__

    out = torch.zeros(2, DIM, device="cuda")
    assert numpy.array_equal(table.fetch(Other(), out=out).cpu().numpy(), table.fetch([5, 1]))
    with pytest.raises(TypeError, match="out="):
        table.fetch(Other())


# ---- streams ----

def slow(cycles=200_000_000):
    torch.cuda._sleep(cycles)  # takes about a tenth of a second


def test_a_call_takes_its_place_in_the_current_stream():
    """A call reads ids and values after the stream has written them, and later work on the stream sees the call's result."""
    table = cuda_table(lr=1.0, init="zeros")
    for stream in (torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.default_stream()):
        table.store(numpy.arange(ROWS), numpy.zeros((ROWS, DIM), numpy.float32))
        with torch.cuda.stream(stream):
            ids, values = torch.zeros(4, dtype=torch.int64, device="cuda"), torch.zeros(4, DIM, device="cuda")
            slow()
            ids += torch.arange(4, device="cuda") + 10
            values += 3
            table.store(ids, values)
            slow()
            values += 1
            table.update(ids, values)
            rows = table.fetch(ids)
            ids.zero_()
            doubled = rows * 2
        stream.synchronize()
        assert (doubled == -2).all()
        assert (table.fetch([10, 11, 12, 13]) == -1).all() and not table.fetch([0]).any()


def test_what_lies_on_the_gpu_is_not_waited_for():
    table = cuda_table()
    ids, values = torch.arange(64, device="cuda"), torch.ones(64, DIM, device="cuda")
    # these calls allocate all memory, so that later ones need not wait
    table.fetch(ids), table.store(ids, values), table.update(ids, values)
    torch.cuda.synchronize()
    slow(2_000_000_000)
    done = torch.cuda.Event()
    done.record()
    table.fetch(ids), table.store(ids, values), table.update(ids, values)
    assert not done.query()
    torch.cuda.synchronize()


def test_streams_of_one_table_see_each_others_updates():
    table = cuda_table(lr=1.0, init="zeros")
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    ids, ones = torch.arange(100, device="cuda"), torch.ones(100, DIM, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(first):
        slow()
        table.update(ids, ones)
    with torch.cuda.stream(second):
        table.update(ids, ones)
        rows = table.fetch(ids)
    second.synchronize()
    assert (rows == -2).all()
    assert (table.fetch(numpy.arange(100)) == -2).all()


# ---- rows that are used often ----

def power_law(rng, count, rows):
    return (rows ** rng.random(count)).astype("i8") - 1 & rows - 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_that_are_used_often_are_found_and_change_no_byte(tmp_path, dtype):
    rng, rows, slots, names = numpy.random.default_rng(5), 1 << 16, 2000, numpy.random.default_rng(6).permutation(1 << 16)
    made = [sptx.Table(rows, 24, "adagrad", lr=0.1, device="cuda", dtype=dtype, gpu_rows=count) for count in (0, slots)]
    for step in range(150):
        ids = names[power_law(rng, 6000, rows)]
        gradients = random_floats(len(ids), 24, seed=step)
        fetched = [table.fetch(ids) for table in made]
        assert numpy.array_equal(*fetched), step
        for table in made:
            table.update(torch.from_numpy(ids).cuda() if step % 2 else ids, torch.from_numpy(gradients).cuda())
        if step % 20 == 7:
            for table in made:
                table.prefetch(ids)
                table.store(ids[:50], gradients[:50])
        if step == 75:  # saves while calls are in flight
            for table, name in zip(made, ("plain", "cached")):
                table.save(tmp_path / name)
            assert (tmp_path / "plain").read_bytes() == (tmp_path / "cached").read_bytes()
    cached = made[1].cached()
    assert len(cached) == slots and len(numpy.unique(cached)) == slots and made[0].cached().size == 0
    assert numpy.isin(names[:500], cached).mean() > 0.95  # of random rows only 3% would be cached
    for table, name in zip(made, ("plain", "cached")):
        table.save(tmp_path / name)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "cached").read_bytes()
    again = sptx.Table.load(tmp_path / "plain", "adagrad", lr=0.1, device="cuda", dtype=dtype, gpu_rows=slots)
    assert numpy.array_equal(again.fetch(numpy.arange(rows)), made[0].fetch(numpy.arange(rows)))


def test_a_table_whose_rows_are_found_has_no_view():
    table = cuda_table(gpu_rows=10)
    with pytest.raises(ValueError, match="gpu_rows=10"):
        table.weights
    with pytest.raises(ValueError, match="hot_rows"):
        cuda_table(gpu_rows=10, hot_rows=10)


# ---- Embedding ----

@pytest.mark.parametrize("weights, state, hot", PLACES)
def test_an_embedding_trains_as_pytorchs_does(tmp_path, weights, state, hot):
    table = cuda_table("sparse_adam", lr=0.05, weights=weights, state=state, **hot, directory=tmp_path, count_rows=False)
    ours = sptx.torch.Embedding(table)
    first = table.fetch(torch.arange(ROWS).cuda())
    theirs = torch.nn.Embedding.from_pretrained(first.clone(), freeze=False, sparse=True)
    optimizer = torch.optim.SparseAdam(theirs.parameters(), lr=0.05)
    layer = torch.nn.Linear(DIM, 4).cuda()
    batches = [torch.from_numpy(random_ids((16, 20), seed)).cuda() for seed in range(12)]
    for step, ids in enumerate(batches):
        if step + 1 < len(batches):
            ours.prefetch(batches[step + 1])
        losses = [torch.tanh(layer(emb(ids))).pow(2).sum() for emb in (ours, theirs)]
        assert torch.allclose(losses[0], losses[1], rtol=1e-4)
        optimizer.zero_grad()
        for loss in losses:
            loss.backward()
        optimizer.step()
    after = table.fetch(torch.arange(ROWS).cuda())
    assert torch.allclose(after, theirs.weight.detach(), rtol=1e-3, atol=1e-5) and not torch.allclose(after, first)


def test_backward_runs_on_the_forwards_stream():
    table = cuda_table(lr=1.0, init="zeros")
    emb = sptx.torch.Embedding(table)
    stream = torch.cuda.Stream()
    ids = torch.arange(50, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        slow()
        (emb(ids) * torch.full((), 2.0, device="cuda")).sum().backward()
    stream.synchronize()
    assert (table.fetch([0, 49]) == -2).all()


def test_ids_of_the_host_do_for_a_model_on_the_gpu():
    emb = sptx.torch.Embedding(cuda_table(lr=1.0, init="zeros"), padding_idx=3)
    x = emb(torch.tensor([1, 3, 1]))
    assert x.is_cuda and not x[1].any()
    x.sum().backward()
    assert emb.table.fetch([1, 3])[:, 0].tolist() == [-2, 0]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.int16])
@pytest.mark.parametrize("orders, heads", [((2, 3), 8), ((1,), 3), ((4, 1, 2), 1)])
def test_ngrams_are_named_as_on_the_cpu(orders, heads, dtype):
    ours = sptx.torch.NgramEmbedding(sptx.Table(100_003, 4, device="cuda"), orders, heads, seed=7)
    cpu = sptx.torch.NgramEmbedding(sptx.Table(100_003, 4, device="cpu"), orders, heads, seed=7)
    tokens = torch.randint(0, 30_000, (17, 33), dtype=dtype)
    assert torch.equal(ours.rows_named(tokens.cuda()).cpu(), cpu.rows_named(tokens))
    assert torch.equal(ours.rows_named(tokens[:, 9:].cuda(), tokens[:, :9].cuda()).cpu(), cpu.rows_named(tokens)[:, 9:])
    assert ours.rows_named(tokens[:0].cuda()).shape == (0, 33, len(orders) * heads)
    assert torch.equal(ours.rows_named(tokens), cpu.rows_named(tokens)) and torch.equal(cpu.rows_named(tokens.cuda()).cpu(), cpu.rows_named(tokens))


def test_parts_of_the_table_given_back_are_those_of_before():
    table = sptx.Table(64, 32, "sgd", lr=1.0, device="cuda")
    rows = torch.from_dlpack(table.weights)
    before = rows.clone()
    table.store(torch.arange(1, 4).cuda(), rows[:3])
    table.update(torch.arange(5, 7).cuda(), rows[4:6])
    table.fetch(torch.arange(20, 30).cuda(), out=rows[21:31])
    table.wait()
    torch.cuda.synchronize()
    assert torch.equal(rows[1:4], before[:3]) and torch.equal(rows[5:7], before[5:7] - before[4:6])
    assert torch.equal(rows[21:31], before[20:30])


# ---- SpeedTorch's names ----

def test_speedtorch_moves_rows_of_the_gpu():
    import sptx.speedtorch as SpeedTorch

    total, batch = 2000, 64
    for make in (SpeedTorch.ModelFactory, lambda *a: SpeedTorch.ModelFactory(*a, CPUPinn=True),
                 SpeedTorch.GPUPytorchModelFactory, SpeedTorch.CPUPytorchModelFactory, SpeedTorch.ModelFactoryMM):
        emb = torch.nn.Embedding(batch, DIM).cuda()
        switcher = make(emb, total, DIM)
        switcher.uniformDistributionInit(-1, 1)
        rows = switcher.getNumpyVersion()
        ids = numpy.random.default_rng(1).permutation(total)[:batch]
        switcher.beforeForwardPass(ids)
        assert emb.weight.is_cuda and numpy.array_equal(emb.weight.detach().cpu().numpy(), rows[ids])
        optimizer = torch.optim.Adamax(emb.parameters())
        state = SpeedTorch.OptimizerFactory(optimizer, total, DIM, torch.nn.ModuleDict({"emb": emb}), "emb", CPUPinn=True)
        state.optInit()
        state.beforeForwardPass(ids)
        emb(torch.arange(batch).cuda()).sum().backward()
        optimizer.step()
        switcher.afterOptimizerStep(ids)
        state.afterOptimizerStep(ids)
        assert numpy.array_equal(switcher.getNumpyVersion()[ids], emb.weight.detach().cpu().numpy())
        assert (state.getNumpyVersion()["exp_avg"][ids] > 0).all() and state.getNumpyVersion()["exp_avg"].sum() > 0
        first = optimizer.state[emb.weight]["exp_avg"].clone()
        state.beforeForwardPass(torch.from_numpy(ids).cuda())  # indexes on the GPU name the same rows
        assert torch.equal(optimizer.state[emb.weight]["exp_avg"], first)
        assert switcher.getTorchVar().shape == (total, DIM)
        switcher.customInit(torch.nn.init.constant_, 2)
        assert (switcher.getNumpyVersion() == 2).all()


# ---- compiled calls ----

@pytest.mark.skipif(sptx._compiled.known is None, reason="SPTX_CALLS=ctypes, or no module")
@pytest.mark.parametrize("place", ["pinned", "gpu"])
def test_compiled_calls_do_what_the_other_way_does(place):
    """Ids and values in host or GPU memory, ids of 32 or 64 bits, on the current stream: the compiled calls must give the same
    bytes as those by ctypes."""
    tables = [cuda_table("adagrad", lr=0.1, weights=place, state=place) for _ in range(2)]
    tables[1]._calls = None
    tables[0].fetch(torch.tensor([1]))  # PyTorch is known from here on
    calls, ids = tables[0]._calls, random_ids((8, 16))
    values = torch.from_numpy(random_floats(8, 16, DIM))
    for number, mine in enumerate((torch.from_numpy(ids).cuda(), torch.from_numpy(ids).int().cuda(), torch.from_numpy(ids), ids)):
        with torch.cuda.stream(torch.cuda.Stream() if number % 2 else torch.cuda.current_stream()):
            for given in (values.cuda(), values):
                out = torch.empty_like(given)
                assert calls.update(mine, given) is None and calls.store(mine[0], given[0]) is None
                assert calls.fetch(mine, out) is out
                tables[1].update(mine, given)
                tables[1].store(mine[0], given[0])
                rows = calls.fetch(mine, None)
                assert rows is not NotImplemented and calls.prefetch(mine) is None
                again = tables[1].fetch(mine)
                assert type(again) is type(rows) and again.dtype == rows.dtype and again.shape == rows.shape
                assert numpy.array_equal(as_numpy(rows), as_numpy(again)) and numpy.array_equal(as_numpy(out), as_numpy(rows))
                assert isinstance(rows, numpy.ndarray) or rows.device == again.device
    torch.cuda.synchronize()
    assert numpy.array_equal(tables[0].fetch(numpy.arange(ROWS)), tables[1].fetch(numpy.arange(ROWS)))


@pytest.mark.skipif(sptx._compiled.known is None, reason="SPTX_CALLS=ctypes, or no module")
def test_compiled_batches_lie_on_the_gpu():
    table = sptx.Table(2 * ROWS, DIM, "none", init="uniform -1 1", device="cuda")
    table.fetch(torch.tensor([1]))
    positives, negatives = random_ids((9, 1)), random_ids((9, 4), 2).astype("i4")
    ids = numpy.concatenate((positives, negatives), axis=None)
    rows = table._calls.gather(positives, negatives, 2)
    assert rows.is_cuda and numpy.array_equal(as_numpy(rows), table.fetch(numpy.concatenate((ids, ids + ROWS))))
    changed = rows + 1
    assert table._calls.scatter(positives, negatives, list(changed.chunk(2))) is None
    last = {number: k for k, number in enumerate(ids)}  # of repeated ids the last value is kept
    kept = as_numpy(changed)[[last[number] for number in ids]]
    assert numpy.array_equal(table.fetch(ids), kept)
    with pytest.raises(IndexError):
        table._calls.gather(numpy.array([2 * ROWS]), None, 1)


@pytest.mark.skipif(sptx._compiled.known is None, reason="SPTX_CALLS=ctypes, or no module")
def test_compiled_calls_leave_another_gpus_tensors_alone():
    table = cuda_table()
    ids = torch.tensor([1])
    table.fetch(ids)
    for wrong in (torch.tensor([1], device="meta"), torch.tensor([1.0]).cuda(), torch.tensor([True]).cuda()):
        assert table._calls.fetch(wrong, None) is NotImplemented
    cpu = sptx.Table(ROWS, DIM, "none", device="cpu")
    assert cpu._calls.fetch(ids.cuda(), None) is NotImplemented


# ---- several processes ----

RANK = """
import sys, numpy, torch, sptx
rank, ranks, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with sptx.Table(5000, 33, "rowwise_adagrad", lr=0.1, dtype="bfloat16", device="cuda", shared=sys.argv[4], rank=rank, ranks=ranks) as table:
    draw = numpy.random.default_rng(1)
    part = slice(9000 * rank // ranks, 9000 * (rank + 1) // ranks)
    for step in range(4):
        ids = torch.from_numpy(draw.integers(0, 4000, 9000))[part].to("cuda" if step % 2 else "cpu")
        gradients = torch.from_numpy(draw.standard_normal((9000, 33), numpy.float32))[part].to("cuda" if step > 1 else "cpu")
        table.prefetch(ids)
        table.fetch(ids)
        table.update(ids, gradients)
        table.store(ids[:int(not rank)], gradients[:int(not rank)])
    if rank == 0:
        table.save(path)
    try:
        table.update(torch.tensor([7000]).cuda(), torch.ones(1, 33).cuda())
    except IndexError:
        table.barrier()
"""


def test_processes_with_one_table_give_the_bytes_of_one(tmp_path):
    for ranks in 1, 2:
        processes = [subprocess.Popen([sys.executable, "-c", RANK, str(rank), str(ranks), str(tmp_path / str(ranks)), "gpu-%d" % os.getpid()])
                     for rank in range(ranks)]
        assert [process.wait(120) for process in processes] == [0] * ranks
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
