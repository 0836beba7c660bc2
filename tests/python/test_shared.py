"""Shared tables: processes of one machine, the ranks, change one table. Exact ranks give the bytes of one process; if anything happens to a rank,
the others end with an error message that names it, and nothing is left in /dev/shm."""

import os
import pickle
import select
import signal
import threading
import time
import traceback
import uuid

import numpy
import pytest

import sptx
from conftest import floats

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no /dev/shm")


class Rank:
    """A forked process that calls work(rank), with its own context."""

    def __init__(self, work, rank):
        self.out, into = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(into)
            return
        answer = None
        try:
            answer = pickle.dumps((None, work(rank)))
        except BaseException as error:
            answer = pickle.dumps((type(error).__name__, str(error) if isinstance(error, Exception) else traceback.format_exc()))
        finally:
            os.write(into, answer or b"")
            os._exit(0)

    def end(self, seconds=60):
        """Waits for the process. Returns the class name and text of the exception that it raised; or None and the result of work()."""
        said = b""
        while select.select([self.out], [], [], seconds)[0]:
            part = os.read(self.out, 1 << 20)
            if not part:
                break
            said += part
        else:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            pytest.fail("a rank hangs")
        os.close(self.out)
        os.waitpid(self.pid, 0)
        return pickle.loads(said) if said else ("killed", "")

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


def results(work, ranks):
    """Calls work(rank) in several processes at once. Returns their results; none may raise."""
    ended = [rank.end() for rank in [Rank(work, rank) for rank in range(ranks)]]
    assert not [one for one in ended if one[0]], ended
    return [one[1] for one in ended]


@pytest.fixture
def name():
    """Returns a table name that no other test uses. After the test, nothing of this name may be left."""
    name = "test-" + uuid.uuid4().hex[:12]
    yield name
    assert not os.path.exists(path_of(name))


def path_of(name):
    return "/dev/shm/sptx-%d-%s" % (os.geteuid(), name)


def opened(name, rank, ranks, *shape, **options):
    shape = shape or (100, 4)
    return sptx.Table(*shape, **{"optimizer": "adagrad", "lr": 0.1, "device": sptx.Context("cpu", threads=2), **options}, shared=name, rank=rank,
                      ranks=ranks)


def wait_until(happened, seconds=30):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.005)


STEPS, BATCH, ROWS, DIM = 6, 90, 400, 12
STARTS = {1: [0, BATCH], 2: [0, 30, BATCH], 3: [0, 0, 50, BATCH]}  # where each rank's part of a batch begins: of three, the first has none
OPTIMIZERS = [{"optimizer": "sgd", "momentum": 0.9}, {"optimizer": "adagrad", "clip": 0.5},
              {"optimizer": "adam", "dtype": "bfloat16", "state_dtype": "float32"},
              {"optimizer": "rowwise_adagrad", "dtype": "bfloat16", "init": "zeros"},
              {"optimizer": "ftrl", "dtype": "int8"},
              {"optimizer": "adamax", "count_rows": False, "init": "normal 0 0.1"}]


def train(table, first, end):
    """Trains on places first .. end - 1 of some batches, in which ids repeat, and stores every ninth place."""
    draw = numpy.random.default_rng(7)
    for step in range(STEPS):
        ids = (draw.zipf(1.3, BATCH) % ROWS).astype(numpy.int32 if step % 2 else numpy.int64)
        gradients = draw.standard_normal((BATCH, DIM)).astype("f4")
        table.lr = 0.1 / (step + 1)
        table.update(ids[first:end], gradients[first:end])
        stored = [place for place in range(first, end) if place % 9 == 0]
        table.store(ids[stored], gradients[stored])


@pytest.mark.parametrize("options", OPTIMIZERS, ids=lambda options: options["optimizer"])
def test_exact_ranks_give_the_bytes_of_one_process(options, name, tmp_path):
    def work(rank, ranks):
        with opened(name, rank, ranks, ROWS, DIM, **options) as table:
            train(table, *STARTS[ranks][rank:rank + 2])
            if rank == ranks - 1:
                table.save(tmp_path / str(ranks))
            rows = table.fetch(range(ROWS))
            table.barrier()
            return rows, table.steps

    with sptx.Table(ROWS, DIM, **options, device=sptx.Context("cpu", threads=2)) as alone:
        train(alone, 0, BATCH)
        alone.save(tmp_path / "alone")
        for ranks in 1, 2, 3:
            for rows, steps in results(lambda rank: work(rank, ranks), ranks):
                assert (rows == alone.fetch(range(ROWS))).all() and steps == STEPS
            assert (tmp_path / str(ranks)).read_bytes() == (tmp_path / "alone").read_bytes()


def test_large_calls_are_exchanged_in_rounds(name):
    """More gradients than the mail of one round takes: each row still gets one update."""
    about = os.statvfs("/dev/shm")
    if about.f_bavail * about.f_frsize < 1 << 30:
        pytest.skip("the mail of two ranks takes up to 1 GiB of /dev/shm, and a container may have 64 MiB")
    rows, dim, count = 50, 2048, 25_000

    def work(rank):
        with opened(name, rank, 2, rows, dim, optimizer="sgd", lr=1.0, init="zeros", clip=3.0) as table:
            table.update(numpy.arange(count) % rows, floats(count, dim))
            return table.fetch(range(rows))

    for fetched in results(work, 2):
        assert numpy.allclose(numpy.linalg.norm(fetched, axis=1), 3, rtol=1e-4)


def test_lock_free_ranks_with_different_rows_give_the_same_bytes(name):
    def work(rank, owner):
        with opened(name, rank, 2, ROWS, DIM, owner=owner, dtype="bfloat16") as table:
            for step in range(STEPS):
                table.update(numpy.arange(rank, ROWS, 2), numpy.full((ROWS // 2, DIM), 0.1 + rank + step, "f4"))
            table.barrier()
            return table.fetch(range(ROWS))

    exact, free = (results(lambda rank: work(rank, owner), 2) for owner in ("exact", "lock-free"))
    assert (exact[0] == free[0]).all() and (exact[1] == free[1]).all() and (free[0] == free[1]).all()


@pytest.mark.parametrize("dtype", ["int8", "float8"])
def test_lock_free_ranks_have_no_codes(name, dtype):
    """Two ranks that write one row at the same time could leave the scale of one with the codes of the other."""
    with pytest.raises(ValueError, match="take owner exact, or bfloat16"):
        opened(name, 0, 2, owner="lock-free", dtype=dtype)
    opened(name, 0, 1, owner="lock-free", dtype=dtype).close()


def test_lock_free_ranks_see_each_other_and_wait_for_nobody(name):
    def work(rank):
        with opened(name, rank, 2, owner="lock-free", init="zeros", optimizer="none") as table:
            if rank:
                table.store([7], floats(1, 4))
                return True
            wait_until(lambda: (table.fetch([7]) == 1).all())
            return bool((numpy.asarray(table.weights)[7] == 1).all())

    assert results(work, 2) == [True, True]


def test_ranks_are_torchruns(name, monkeypatch):
    def work(rank):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
        with sptx.Table(10, 4, shared=name, device=sptx.Context("cpu", threads=1)) as table:
            return repr(table)

    assert ["rank %d of 2" % rank in said for rank, said in enumerate(results(work, 2))] == [True, True]
    with sptx.Table(10, 4, shared=name, device="cpu") as table:  # without torchrun it is alone
        table.update([1, 1], floats(2, 4))
        assert "rank 0 of 1" in repr(table) and table.steps == 1


# ---- what ends badly ----

def test_a_rank_that_dies_is_named(name):
    def work(rank):
        with opened(name, rank, 3) as table:
            if rank == 1:
                time.sleep(60)
            began = time.monotonic()
            with pytest.raises(sptx.Error) as raised:
                table.update([rank], floats(1, 4))
            with pytest.raises(sptx.Error, match="died"):
                table.update([rank], floats(1, 4))
            return str(raised.value), time.monotonic() - began

    ranks = [Rank(work, rank) for rank in range(3)]
    wait_until(lambda: not os.path.exists(path_of(name)) and os.path.exists("/proc/%d/maps" % ranks[1].pid)
               and name in open("/proc/%d/maps" % ranks[1].pid).read())
    time.sleep(0.3)
    began = time.monotonic()
    ranks[1].kill()
    for rank in (ranks[0], ranks[2]):
        raised, (sentence, seconds) = rank.end()
        assert raised is None and "rank 1 (process %d) of the shared table '%s' has died" % (ranks[1].pid, name) in sentence
    assert time.monotonic() - began < 5
    assert ranks[1].end()[0] == "killed"


def test_a_rank_that_dies_while_others_open_is_named_and_leaves_nothing(name):
    ranks = [Rank(lambda rank: opened(name, rank, 3), rank) for rank in range(2)]
    wait_until(lambda: os.path.exists(path_of(name)))
    time.sleep(0.3)
    ranks[0].kill()
    raised, said = ranks[1].end()
    assert raised == "Error" and "rank 0 (process %d)" % ranks[0].pid in said
    ranks[0].end()
    assert not os.path.exists(path_of(name))


def test_what_a_kill_has_left_is_removed_by_the_next_start(name):
    left = Rank(lambda rank: opened(name, rank, 2), 0)
    wait_until(lambda: os.path.exists(path_of(name)) and os.path.getsize(path_of(name)))
    time.sleep(0.1)
    left.kill()
    left.end()
    assert os.path.exists(path_of(name))
    assert results(lambda rank: opened(name, rank, 2, 50, 8).shape, 2) == [(50, 8)] * 2


def test_a_file_that_is_cut_or_empty_is_removed_and_a_strange_one_is_refused(name):
    for content in b"", b"\0" * 100:
        with open(path_of(name), "wb") as file:
            file.write(content)
        opened(name, 0, 1).close()
        assert not os.path.exists(path_of(name))
    with open(path_of(name), "wb") as file:
        file.write(b"a letter" * 1000)
    with pytest.raises(sptx.Error, match="no shared table of this version"):
        opened(name, 0, 1)
    os.remove(path_of(name))


@pytest.mark.parametrize("other, said", [({"dim": 8}, "dim=4, .* dim=8"), ({"lr": 0.2}, "lr=0.1.*lr=0.2"), ({"owner": "lock-free"}, "owner=exact"),
                                         ({"init": "zeros"}, "init="), ({"ranks": 3}, "ranks=2.*ranks=3"),
                                         ({"optimizer": "adam"}, "optimizer=adagrad"), ({"dtype": "bfloat16"}, "dtype=0.*dtype=1"), ({"eps": 1e-3}, "eps=")])
def test_ranks_that_want_different_tables_are_refused(other, said, name):
    first = Rank(lambda rank: opened(name, rank, 2, 100, 4), 0)
    wait_until(lambda: os.path.exists(path_of(name)) and os.path.getsize(path_of(name)))
    time.sleep(0.05)
    other = dict(other)
    ranks, dim = other.pop("ranks", 2), other.pop("dim", 4)
    with pytest.raises(ValueError, match=said):
        opened(name, 1, ranks, 100, dim, **other)
    with pytest.raises(ValueError, match="rank 0 .* is process %d already" % first.pid):
        opened(name, 0, 2, 100, 4)
    first.kill()
    first.end()
    opened(name, 0, 1, 10, 10).close()


def test_a_rank_that_closes_early_is_named(name):
    def work(rank):
        with opened(name, rank, 2) as table:
            table.barrier()
            if rank:
                return None
            with pytest.raises(sptx.Error, match="rank 1 .* has closed") as raised:
                table.update([1], floats(1, 4))
            return str(raised.value)

    results(work, 2)


def test_a_wrong_call_of_one_rank_raises_in_all_and_changes_nothing(name):
    def work(rank):
        with opened(name, rank, 2, check_finite=True) as table:
            before = table.fetch(range(100))
            wrong = floats(1, 4) * numpy.nan
            for ids, gradients in (([1000 if rank else 3], floats(1, 4)), ([3], wrong if rank else floats(1, 4))):
                with pytest.raises((IndexError, ValueError) if rank else sptx.Error, match=None if rank else r"rank 1 .* was refused"):
                    table.update(ids, gradients)
            if rank:
                table.lr = 0.5
            with pytest.raises(sptx.Error, match="rank 1 .* lr = 0.5, and rank 0 .* lr = 0.1"):
                table.update([3], floats(1, 4))
            with pytest.raises(sptx.Error, match="rank 1 .* called store while rank 0 called update"):
                (table.store if rank else table.update)([3], floats(1, 4))
            table.lr = 0.1
            assert (table.fetch(range(100)) == before).all()
            table.barrier()
            table.update([3], floats(1, 4))
            assert (table.fetch([3]) < before[3]).all()
            table.barrier()

    results(work, 2)


def test_an_interrupt_ends_a_wait(name):
    def work(rank):
        with opened(name, rank, 2) as table:
            if not rank:
                with pytest.raises(sptx.Error, match="rank 1 .* failed: stopped while rank 1 waited"):
                    time.sleep(1)
                    table.barrier()
                return True
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                table.update([1], floats(1, 4))
            assert time.monotonic() - began < 1 and not [thread for thread in threading.enumerate() if thread.name == "sptx.wait"]
            return True

    assert results(work, 2) == [True, True]


def test_an_interrupt_ends_opening(name):
    def work(rank):
        context = sptx.Context("cpu", threads=1)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            opened(name, rank, 2, device=context)
        return os.path.exists(path_of(name))

    assert results(work, 1) == [False]


# ---- arguments ----

@pytest.mark.parametrize("wrong", ["", "a/b", "../x", "x" * 300, "a b", "\u00e9", "a\nb"])
def test_names_are_plain(wrong):
    with pytest.raises(ValueError, match="is no name"):
        opened(wrong, 0, 1)


@pytest.mark.parametrize("options, said", [({"weights": "gpu"}, "pinned"), ({"state": "file"}, "pinned"), ({"hot_rows": 3}, "hot_rows"),
                                           ({"gpu_rows": 3}, "gpu_rows"), ({"directory": "."}, "directory"), ({"owner": "me"}, "owner = 'me'"),
                                           ({"rank": 2, "ranks": 2}, "rank = 2"), ({"rank": 1}, "both"), ({"rank": 0, "ranks": 300}, "256")])
def test_options_that_do_not_go_with_it_are_refused(options, said, name, cpu):
    with pytest.raises(ValueError, match=said):
        sptx.Table(10, 4, **{"shared": name, "rank": None, "ranks": None, **options}, device=cpu)


def test_owner_and_ranks_need_a_name(cpu):
    for options in {"owner": "exact"}, {"rank": 0}, {"ranks": 2}:
        with pytest.raises(ValueError, match="shared="):
            sptx.Table(10, 4, **options, device=cpu)


def test_too_little_shared_memory_is_told_with_both_numbers(name):
    about = os.statvfs("/dev/shm")
    before = os.listdir("/dev/shm")
    with pytest.raises(sptx.Error, match=r"needs [0-9.]+ [MGTP]iB in /dev/shm, of which [0-9.]+ .iB are free"):
        opened(name, 0, 2, about.f_blocks * about.f_frsize // (4 * 4096) + 1, 4096)
    assert os.listdir("/dev/shm") == before


def test_nothing_is_left_of_many_tables(name):
    files = len(os.listdir("/proc/self/fd"))
    for number in range(200):
        with opened(name, 0, 1, 10 + number, 4, device=sptx.Context("cpu", threads=1)) as table:
            assert not os.path.exists(path_of(name)) and table.rows == 10 + number
    assert len(os.listdir("/proc/self/fd")) == files and name not in open("/proc/self/maps").read()


def test_starts_at_once_do_not_meet(name):
    """One rank opens many tables under one name; each process gets a table of its own."""
    def work(rank):
        for number in range(30):
            with opened(name, 0, 1, 10, 4, init="zeros", optimizer="none") as table:
                table.store([1], floats(1, 4) * rank)
                assert (table.fetch([1]) == rank).all()

    results(work, 4)


# ---- files ----

def test_one_rank_saves_and_all_load(name, tmp_path):
    def work(rank):
        with opened(name, rank, 2, 60, 4) as table:
            table.update([rank, 5], floats(2, 4))
            before = table.fetch(range(60))
            table.barrier()
            if rank:
                table.save(tmp_path / "table.npy")
                with pytest.raises(ValueError, match="wait=True"):
                    table.save(tmp_path / "other.npy", wait=False)
            table.update([rank, 5], floats(2, 4))
            table.restore(tmp_path / "table.npy")
            assert (table.fetch(range(60)) == before).all()
            table.barrier()
            if not rank:
                numpy.save(tmp_path / "plain.npy", before + 1)
            table.barrier()
            table.restore(tmp_path / "plain.npy")
            assert (table.fetch(range(60)) == before + 1).all()
            with pytest.raises(sptx.Error if rank else FileNotFoundError):
                table.restore(tmp_path / ("table.npy" if rank else "absent"))
        for owner in "exact", "lock-free":
            with sptx.Table.load(tmp_path / "table.npy", "none" if owner == "lock-free" else "adagrad", lr=0.1, device=sptx.Context("cpu", threads=1),
                                 shared=name, owner=owner, rank=rank, ranks=2) as table:
                assert (table.fetch(range(60)) == before).all()
                table.barrier()

    results(work, 2)
    assert not os.path.exists(tmp_path / "other.npy")


def test_a_child_of_a_rank_is_refused_and_harms_nobody(name):
    def work(rank):
        with opened(name, rank, 2) as table:
            if not rank:
                raised, said = Rank(lambda _: table.update([1], floats(1, 4)), 0).end()
                assert raised == "RuntimeError" and "before a fork" in said
            table.update([1], floats(1, 4))
            table.barrier()

    results(work, 2)


@pytest.mark.parametrize("call, wrong", [("update", {"gradients": floats(2, 4)}), ("store", {"values": numpy.zeros((1, 4))}),
                                         ("update", {"gradients": floats(1, 4) * numpy.nan, "check_finite": True}), ("update", {"ids": [0.5]})])
def test_arguments_that_one_rank_cannot_take_raise_in_all(call, wrong, name):
    def work(rank):
        with opened(name, rank, 2) as table:
            before = table.fetch(range(100))
            right = {"ids": [3], "gradients" if call == "update" else "values": floats(1, 4)}
            with pytest.raises((ValueError, TypeError) if rank else sptx.Error, match=None if rank else "rank 1 .* was refused"):
                getattr(table, call)(**{**right, **(wrong if rank else {})})
            assert (table.fetch(range(100)) == before).all()
            table.barrier()
            table.update([3], floats(1, 4))
            assert table.steps == 1
            table.barrier()

    results(work, 2)
