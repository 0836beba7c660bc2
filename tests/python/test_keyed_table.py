"""Tables by key on the CPU, compared with a dict of Python."""

import subprocess
import sys
import threading
import warnings

import numpy
import pytest

import sptx
from conftest import floats

RANDOM = numpy.random.default_rng(64)
MOST = 2 ** 64 - 1


def table_of(cpu, capacity=20, dim=3, optimizer="sgd", **options):
    options.setdefault("lr", 0.5)
    return sptx.KeyedTable(capacity, dim, optimizer, device=cpu, **options)


class Plain:
    """Does with a dict what a KeyedTable with sgd does: key -> [row, count, last, born]."""

    def __init__(self, capacity, dim, evict, lr, first):
        self.rows, self.gone, self.calls = {}, [], 0
        self.capacity, self.dim, self.evict, self.lr, self.first = capacity, dim, evict, numpy.float32(lr), first

    def name(self, keys, sights):
        """Gives rows to the keys of a call. If there are too few rows, changes nothing and returns False."""
        new = sorted(set(keys) - set(self.rows))
        leave = len(self.rows) + len(new) - self.capacity
        others = [key for key in self.rows if key not in set(keys)]
        if leave > (len(others) if self.evict else 0):
            return False
        self.calls += 1
        rank = {"lru": 2, "lfu": 1, "age": 3, None: 2}[self.evict]
        for key in sorted(others, key=lambda key: (self.rows[key][rank], key))[:max(leave, 0)]:
            self.gone.append((key, self.rows.pop(key)[0]))
        for key in new:
            self.rows[key] = [self.first(key), 0, 0, self.calls]
        for key in keys:
            self.rows[key][1] += sights
            self.rows[key][2] = self.calls
        return True

    def update(self, keys, gradients):
        sums = {}
        for key, gradient in zip(keys, gradients):
            sums[key] = sums[key] + gradient if key in sums else gradient
        for key, gradient in sums.items():
            self.rows[key][0] = self.rows[key][0] - self.lr * gradient


def as_keys(keys, random):
    """The same keys as a list of int, or as an array of uint64 or int64."""
    array = numpy.array(keys, numpy.uint64)
    return (keys, array, array.view(numpy.int64))[random.integers(3)]


@pytest.mark.parametrize("evict", [None, "lru", "lfu", "age"])
@pytest.mark.parametrize("capacity", [1, 17, 60])
def test_random_calls_do_what_a_dict_does(cpu, tmp_path, evict, capacity):
    random = numpy.random.default_rng([capacity, len(evict or "")])
    universe = [0, MOST, 1, 2 ** 63, 2 ** 63 - 1] + [int(key) for key in random.integers(0, MOST, 75, numpy.uint64, endpoint=True)]
    fresh = table_of(cpu, 1, 4, seed=9)
    plain = Plain(capacity, 4, evict, 0.5, lambda key: fresh.find(key)[0])
    table = table_of(cpu, capacity, 4, evict=evict, seed=9, keep_evicted=10_000)
    for _ in range(700):
        keys = [universe[i] for i in random.integers(0, random.integers(1, 80), random.integers(1, 24))]
        given, values = as_keys(keys, random), random.standard_normal((len(keys), 4), numpy.float32)
        what = random.integers(10)
        if what < 8:
            fits = plain.name(keys, what < 4)
            if not fits:
                with pytest.raises(ValueError, match="gets no row"):
                    (table.fetch(given) if what < 4 else table.update(given, values))
            elif what < 4:
                assert numpy.array_equal(table.fetch(given), [plain.rows[key][0] for key in keys])
            elif what < 7:
                table.update(given, values)
                plain.update(keys, values)
            else:
                table.store(given, values)
                for key, value in zip(keys, values):
                    plain.rows[key][0] = value
        elif what == 8:
            there = set(keys) & set(plain.rows)
            plain.calls += bool(there)
            assert table.remove(given) == len([plain.rows.pop(key) for key in there])
        else:
            keys, rows = table.evicted()
            assert keys.tolist() == [key for key, _ in plain.gone]
            assert numpy.array_equal(rows, numpy.array([row for _, row in plain.gone]).reshape(-1, 4))
            plain.gone = []
        assert len(table) == len(plain.rows) and table.calls == plain.calls
    assert table.keys().tolist() == sorted(plain.rows)
    rows, found = table.find(universe)
    assert found.tolist() == [key in plain.rows for key in universe]
    assert numpy.array_equal(rows, [plain.rows[key][0] if key in plain.rows else fresh.find(key)[0] for key in universe])
    assert table.counts(universe).tolist() == [plain.rows[key][1] if key in plain.rows else 0 for key in universe]


# ---- what changes no byte of a key's row ----

@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "float8"])
def test_neither_order_nor_threads_nor_capacity_change_a_row(dtype):
    keys = RANDOM.integers(0, MOST, 20000, numpy.uint64)
    gradients = RANDOM.standard_normal((3, 20000, 8)).astype(numpy.float32)
    seen = []
    for threads, capacity, order in ((1, 20000, keys), (2, 90000, keys[::-1]), (5, 32768, numpy.sort(keys))):
        with sptx.KeyedTable(capacity, 8, "adam", lr=0.1, dtype=dtype, device=sptx.Context("cpu", threads=threads)) as table:
            for of in gradients:
                table.fetch(order)
                table.update(keys, of)
            seen.append(table.find(keys)[0].tobytes())
    assert seen[0] == seen[1] == seen[2]


def test_first_values_are_drawn_from_seed_and_key(cpu):
    a, b = table_of(cpu, seed=1, init="normal 0 1"), table_of(cpu, 7, seed=1, init="normal 0 1")
    other = table_of(cpu, seed=2, init="normal 0 1")
    b.fetch([5, 6])
    assert numpy.array_equal(a.fetch([6, MOST, 5]), b.fetch([6, MOST, 5])) and len(set(a.fetch(range(10)).reshape(-1))) == 30
    assert not numpy.array_equal(a.fetch(6), other.fetch(6))


@pytest.mark.parametrize("weights,state", [("file", "file"), ("pinned", "file")])
def test_rows_may_be_in_a_file(cpu, tmp_path, weights, state):
    table = table_of(cpu, 50, 8, "adagrad", weights=weights, state=state, directory=tmp_path, evict="lru")
    plain = table_of(cpu, 50, 8, "adagrad", evict="lru")
    for _ in range(10):
        keys, gradients = RANDOM.integers(0, 100, 40), RANDOM.standard_normal((40, 8)).astype(numpy.float32)
        assert numpy.array_equal(table.fetch(keys), plain.fetch(keys))
        table.update(keys, gradients)
        plain.update(keys, gradients)
    assert numpy.array_equal(table.find(range(100))[0], plain.find(range(100))[0])


def test_a_new_key_begins_with_fresh_state(cpu):
    table = table_of(cpu, 1, 2, "adagrad", evict="lru", init="zeros", lr=1.0)
    for key in (1, 2, 1):
        table.update([key], [[3, 4]])
        assert numpy.allclose(table.fetch(key), [-1, -1])  # adagrad's first step has the length lr


# ---- admission ----

def test_a_key_gets_its_row_at_its_third_sight(cpu):
    table, fresh = table_of(cpu, admit=3), table_of(cpu)
    for n in range(2):
        assert numpy.array_equal(table.fetch([8, 8][:1]), fresh.find([8])[0]) and len(table) == 0 and table.waiting == n + 1
        table.update([8], floats(1, 3))
        assert table.dropped == n + 1
    table.fetch([8])
    table.update([8], floats(1, 3))
    assert 8 in table and table.counts(8) == 1 and table.waiting == 2 and numpy.array_equal(table.fetch(8), fresh.find(8)[0] - 0.5)
    table.fetch([9, 9, 9])  # three sights in one call
    assert 9 in table
    table.store([10], [[1, 2, 3]])
    assert table.fetch(10).tolist() == [1, 2, 3]


def test_many_keys_may_wait_in_one_call(cpu):
    table, fresh = table_of(cpu, 10, 40, admit=2), table_of(cpu, 10, 40)
    keys = numpy.arange(5000) * 977
    table.store(keys[100:104], 7 * floats(4, 40))
    rows = table.fetch(keys)
    assert (rows[100:104] == 7).all() and numpy.array_equal(rows[104:], fresh.find(keys[104:])[0]) and table.waiting == 4996


# ---- a table that is full ----

def test_a_full_table_refuses_a_new_key_and_changes_nothing(cpu):
    table = table_of(cpu, 2, lr=1)
    table.fetch([4, 5])
    before = table.find([4, 5])[0], table.counts([4, 5]).tolist(), table.calls
    for call in (lambda: table.fetch([4, 77]), lambda: table.update([5, 77], floats(2, 3)), lambda: table.store(77, [1, 2, 3])):
        with pytest.raises(ValueError, match="key 77 gets no row: of 2 rows 0 are free, and this call brings 1 new keys"):
            call()
    assert numpy.array_equal(table.find([4, 5])[0], before[0])
    assert (table.counts([4, 5]).tolist(), table.calls) == before[1:]
    assert table.remove([5, 5, 6]) == 1 and table.fetch(77).shape == (3,)


def test_a_call_takes_no_row_from_its_own_keys(cpu):
    table = table_of(cpu, 3, evict="lru")
    table.fetch([1, 2, 3])
    table.fetch([1, 4])
    assert table.keys().tolist() == [1, 3, 4]
    with pytest.raises(ValueError, match="names 4 keys, more than the capacity of 3 rows"):
        table.fetch([1, 5, 6, 7])
    assert table.keys().tolist() == [1, 3, 4]


def test_rows_that_left_are_handed_over_once_and_the_newest_are_kept(cpu):
    table = table_of(cpu, 2, evict="age", keep_evicted=3)
    table.fetch([1, 2])
    rows = table.find([1, 2])[0]
    table.fetch([3])
    table.fetch([4])
    keys, left = table.evicted()
    assert keys.tolist() == [1, 2] and numpy.array_equal(left, rows) and table.evictions == 2
    assert len(table.evicted()[0]) == 0
    for key in range(10, 16):
        table.fetch(key)
    with pytest.warns(sptx.SptxWarning, match="3 rows that have left are gone"):
        assert table.evicted()[0].tolist() == [11, 12, 13]
    assert len(table.evicted()[0]) == 0


# ---- keys ----

def test_text_becomes_the_key_of_its_hash(cpu):
    table = table_of(cpu)
    table.fetch(["user:1", b"user:2"])
    assert len(table) == 2
    assert table.find(numpy.array(["user:1", "user:2", "x"]))[1].tolist() == [True, True, False]
    assert "user:1" in table and b"user:1" in table and "user:3" not in table and int(table.keys()[0]) in table


def test_the_hash_is_xxh3_of_64_bits(cpu):
    table = table_of(cpu)
    table.fetch([""])
    assert table.keys().tolist() == [0x2D06800538D394C2]  # of no bytes, as xxHash's own tests have it


@pytest.mark.parametrize("keys,error", [([1.5], TypeError), ([True], TypeError), (numpy.array([1.0]), TypeError), ([1, "a"], TypeError),
                                        ([2 ** 64], ValueError), ([-2 ** 63 - 1], ValueError), ([None], TypeError), ([[1], [2, 3]], TypeError)])
def test_what_is_no_key_is_refused(cpu, keys, error):
    with pytest.raises(error, match="keys"):
        table_of(cpu).fetch(keys)


def test_a_key_is_its_64_bits(cpu):
    table = table_of(cpu)
    assert numpy.array_equal(table.fetch([-1, 2 ** 63, 5]), table.fetch(numpy.array([MOST, 2 ** 63, 5], numpy.uint64)))
    assert table.fetch(numpy.array([[5], [-1]], numpy.int8)).shape == (2, 1, 3) and len(table) == 3
    assert table.fetch([]).shape == (0, 3) and table.calls == 3


@pytest.mark.parametrize("options,error", [({"evict": "never"}, ValueError), ({"admit": 0}, ValueError), ({"admit": 256}, ValueError),
                                           ({"capacity": 0}, ValueError), ({"capacity": 2 ** 32 - 2}, ValueError), ({"rows": 3}, TypeError),
                                           ({"optimizer": "ftlr"}, ValueError), ({"dtype": "int4"}, ValueError)])
def test_wrong_options_are_refused(cpu, options, error):
    with pytest.raises(error):
        table_of(cpu, **options)


def test_an_index_larger_than_memory_is_refused(cpu):
    with pytest.raises(MemoryError, match="not enough memory for the index of a table's keys: 4294966270 keys need"):
        sptx.KeyedTable(4_294_966_270, 1, device=cpu, weights="file", state="file")


def test_calls_of_tables_by_number_are_refused(cpu):
    table = table_of(cpu, optimizer="adagrad")
    for call in (lambda: table.weights, lambda: table.prefetch([1]), lambda: table.state, table.cached):
        with pytest.raises(TypeError, match="find"):
            call()
    table.close()
    with pytest.raises(ValueError, match="closed"):
        table.fetch([1])


def test_infinite_gradients_are_refused_before_a_row_is_made(cpu):
    table = table_of(cpu, check_finite=True)
    with pytest.raises(ValueError, match="the table is unchanged"):
        table.update([1], [[1, numpy.nan, 2]])
    assert len(table) == 0 and table.calls == 0


# ---- disk ----

def some_calls(table, random, times):
    for _ in range(times):
        keys = random.integers(0, 120, random.integers(1, 30))
        table.fetch(keys)
        table.update(keys, random.standard_normal((len(keys), table.dim), numpy.float32))
        if random.integers(3) == 0:
            table.remove(random.integers(0, 120, 2))
        if random.integers(5) == 0:
            table.store(keys[:1], floats(1, table.dim))


KINDS = [{"evict": None, "capacity": 200}, {"evict": "lru", "dtype": "bfloat16"}, {"evict": "lfu", "admit": 2, "optimizer": "adam"},
         {"evict": "lru", "optimizer": "rowwise_adam", "dtype": "int8", "admit": 2}, {"evict": "lfu", "optimizer": "ftrl", "state": "file"},
         {"evict": "age", "optimizer": "rowwise_adam", "dtype": "int8", "init": "normal 0 0.1"}, {"evict": "lru", "dtype": "float8"},
         {"evict": "age", "optimizer": "rowwise_adagrad", "admit": 3, "init": "normal 0 0.1"}]


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_table_goes_on_as_the_saved_one(cpu, tmp_path, kind):
    table = table_of(cpu, **{"capacity": 50, "dim": 5, "directory": tmp_path, **kind})
    some_calls(table, numpy.random.default_rng(1), 40)
    table.lr = 0.25
    table.save(tmp_path / "a")
    loaded = sptx.KeyedTable.load(tmp_path / "a", device=cpu)
    loaded.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (loaded.shape, loaded.optimizer, loaded.dtype, loaded.lr) == (table.shape, table.optimizer, table.dtype, 0.25)
    for one, path in (table, "c"), (loaded, "d"):
        some_calls(one, numpy.random.default_rng(2), 40)
        one.save(tmp_path / path)
    assert (tmp_path / "c").read_bytes() == (tmp_path / "d").read_bytes() and table.evictions == loaded.evictions
    assert table.mark() == loaded.mark()


@pytest.mark.parametrize("kind", KINDS)
def test_a_chain_of_changes_is_the_whole_table(cpu, tmp_path, kind):
    table = table_of(cpu, **{"capacity": 50, "dim": 5, "directory": tmp_path, **kind})
    some_calls(table, numpy.random.default_rng(1), 20)
    table.save(tmp_path / "base")
    mark = table.mark()
    copy = sptx.KeyedTable.load(tmp_path / "base", device=cpu)
    for day in range(6):
        some_calls(table, numpy.random.default_rng(day), [1, 30, 0, 5, 5, 5][day])
        table.save_changes(tmp_path / "changes", since=mark)
        mark = table.mark()
        copy.apply_changes(tmp_path / "changes")
        table.save(tmp_path / "a")
        copy.save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        assert numpy.array_equal(table.find(range(120))[0], copy.find(range(120))[0])
    assert copy.capacity == table.capacity and copy.mark() == mark


def test_changes_of_one_call_are_few_bytes(cpu, tmp_path):
    table = table_of(cpu, 5000, 16)
    table.fetch(range(5000))
    table.save(tmp_path / "all")
    mark = table.mark()
    table.update(range(50), floats(50, 16))
    table.save_changes(tmp_path / "some", since=mark)
    assert (tmp_path / "some").stat().st_size < 0.02 * (tmp_path / "all").stat().st_size


def files_of_a_chain(cpu, tmp_path):
    """Returns a table in the state of its first mark. `one` and `two` are files of the changes after it; `three` has other changes instead."""
    table = table_of(cpu, 50, 5)
    table.fetch(range(20))
    table.save(tmp_path / "base")
    for name in "one", "two":
        mark = table.mark()
        table.update(range(5), floats(5, 5))
        table.save_changes(tmp_path / name, since=mark)
    other = sptx.KeyedTable.load(tmp_path / "base", device=cpu)
    other.update(range(5), 2 * floats(5, 5))
    mark = other.mark()
    other.update(range(5), floats(5, 5))
    other.save_changes(tmp_path / "three", since=mark)
    return sptx.KeyedTable.load(tmp_path / "base", device=cpu)


def test_a_broken_link_is_refused_and_changes_nothing(cpu, tmp_path):
    table = files_of_a_chain(cpu, tmp_path)

    def refuses(name, why):
        table.save(tmp_path / "before")
        with pytest.raises((sptx.Error, ValueError), match=why):
            table.apply_changes(tmp_path / name)
        table.save(tmp_path / "after")
        assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()

    refuses("two", "has the changes of calls 3 to 3, and this table is at call 1: changes before them are missing; nothing is changed")
    table.apply_changes(tmp_path / "one")
    refuses("one", "calls 2 to 2, and this table is at call 2: they are applied already")
    refuses("three", "to which other calls led")
    refuses("base", "a whole table is loaded into a new one")
    table.apply_changes(tmp_path / "two")
    refuses("one", "past those")
    for kind, why in (({"dim": 6}, "with dim 5, and this one has dim 6"), ({"optimizer": "adam"}, "with optimizer sgd, and"), ({"seed": 5}, "seed 1"),
                      ({"evict": "lru"}, "evict 0, "), ({"init": "zeros"}, "init word2vec, "), ({"dtype": "bfloat16"}, "dtype 0, and"),
                      ({"momentum": 0.5}, "momentum 0, ")):
        table = table_of(cpu, **{"capacity": 50, "dim": 5, **kind})
        refuses("one", why)
    table = sptx.KeyedTable(4, 5, device=cpu)
    refuses("base", "more than this table's capacity of 4 rows")


def test_marks_that_are_not_of_the_table_are_refused(cpu, tmp_path):
    table = table_of(cpu)
    first = table.mark()
    for key in 1, 2:
        table.fetch(key)
        table.mark()
    for mark in first, table_of(cpu).mark():
        with pytest.raises(ValueError, match="two newest"):
            table.save_changes(tmp_path / "no", since=mark)
    with pytest.raises(TypeError, match="no mark"):
        table.save_changes(tmp_path / "no", since=3)
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_refused(cpu, tmp_path):
    table = table_of(cpu, admit=2, evict="lru")
    table.fetch([1, 1, 2, 2, 3])
    table.save(tmp_path / "a")
    whole = (tmp_path / "a").read_bytes()
    for at in list(range(0, len(whole), 7)) + [len(whole) - 1]:
        (tmp_path / "b").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        with pytest.raises(sptx.Error, match="no file of a table|damaged"):
            sptx.KeyedTable.load(tmp_path / "b", device=cpu)
    for bytes_ in b"", whole[:10], whole[:-1], whole + b"x", b"sptx keyed 1\nend\n":
        (tmp_path / "b").write_bytes(bytes_)
        with pytest.raises(sptx.Error):
            sptx.KeyedTable.load(tmp_path / "b", device=cpu)
    with pytest.raises(OSError):
        sptx.KeyedTable.load(tmp_path / "none", device=cpu)
    with pytest.raises(OSError):
        table.save(tmp_path / "none" / "x")


def test_a_row_with_infinity_is_not_saved_and_the_older_file_stays(cpu, tmp_path):
    table = table_of(cpu)
    table.fetch([1, 77])
    table.save(tmp_path / "a")
    before = (tmp_path / "a").read_bytes()
    table.store([77], [[1, numpy.inf, 0]])
    with pytest.raises(sptx.Error, match="the row of key 77 has infinity or NaN in its weights"):
        table.save(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == before and [path.name for path in tmp_path.iterdir()] == ["a"]


def test_another_capacity_has_the_same_rows(cpu, tmp_path):
    table = table_of(cpu, 20, 5)
    table.fetch(range(20))
    table.save(tmp_path / "a")
    larger = sptx.KeyedTable.load(tmp_path / "a", device=cpu, capacity=100, lr=0.125, weights="file", directory=tmp_path)
    larger.fetch(range(60))
    assert larger.capacity == 100 and larger.lr == 0.125 and numpy.array_equal(larger.find(range(20))[0], table.find(range(20))[0])


def test_two_processes_may_save_to_one_file(tmp_path):
    """The file is the complete file of the process that saved last, whatever the other process does."""
    program = ("import sys, sptx; table = sptx.KeyedTable(1000, 8, device='cpu'); table.fetch(range(int(sys.argv[2])))\n"
               "for _ in range(30): table.save(sys.argv[1])")
    both = [subprocess.Popen([sys.executable, "-c", program, tmp_path / "a", str(count)]) for count in (400, 700)]
    while any(process.poll() is None for process in both):
        if (tmp_path / "a").exists():
            assert len(sptx.KeyedTable.load(tmp_path / "a", device="cpu")) in (400, 700)
    assert [process.returncode for process in both] == [0, 0] and [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("type", ["f32", "int8"])
def test_keys_and_rows_are_exported(cpu, tmp_path, type):
    table = table_of(cpu, 200, 8, init="uniform -1 1")
    table.fetch(range(0, 1000, 7))
    table.store([MOST], numpy.zeros((1, 8), numpy.float32))
    table.export(tmp_path / "rows.npy", type)
    rows, keys = numpy.load(tmp_path / "rows.npy"), numpy.load(tmp_path / "rows.npy.keys.npy")
    assert numpy.array_equal(keys, table.keys())
    if type == "int8":
        assert rows.dtype == numpy.int8
        rows = rows * numpy.load(tmp_path / "rows.npy.scales.npy")
    assert numpy.allclose(rows, table.find(keys)[0], atol=0 if type == "f32" else 1 / 253)
    assert len(list(tmp_path.iterdir())) == (2 if type == "f32" else 3)


def test_a_keyed_table_is_not_shared(cpu):
    table = table_of(cpu)
    table.barrier()
    assert (table.owner, table.rank, table.ranks) == (None, 0, 0)


def test_keys_are_all_keys_while_another_thread_adds_some(cpu):
    table = table_of(cpu, capacity=20_000, dim=1)
    table.fetch([MOST])
    adding = threading.Thread(target=lambda: [table.fetch(numpy.arange(i, i + 10)) for i in range(0, 15_000, 10)])
    adding.start()
    while adding.is_alive():
        assert table.keys()[-1] == MOST
    adding.join()
    assert len(table.keys()) == len(table) == 15_001


def test_rows_that_are_lost_are_told_once(cpu):
    table = table_of(cpu, capacity=1, evict="lru", keep_evicted=0)
    table.fetch([1])
    table.fetch([2])
    with pytest.warns(sptx.SptxWarning, match="1 rows that have left are gone"):
        table.evicted()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.evicted()


def test_new_keys_of_rprop_begin_with_the_rate_of_the_call(cpu, tmp_path):
    table = table_of(cpu, optimizer="rprop", lr=0.1)
    table.lr = 0.01
    table.save(tmp_path / "all")
    loaded = sptx.KeyedTable.load(tmp_path / "all", device=cpu)
    for one in table, loaded:
        before = one.find([1])[0]
        one.update([1], numpy.ones((1, 3), numpy.float32))
        assert numpy.allclose(before - one.find([1])[0], 0.01)
    assert (table.find([1])[0] == loaded.find([1])[0]).all()


@pytest.mark.parametrize("other", [{"dim": 3}, {"optimizer": "adam"}, {"dtype": "bfloat16"}, {"evict": "lfu"}, {"admit": 2}])
def test_restore_takes_no_other_kind_of_table(tmp_path, other):
    options = {"capacity": 6, "dim": 2, "optimizer": "sgd", "evict": "lru"}
    with sptx.KeyedTable(**options) as table, sptx.KeyedTable(**{**options, **other}) as strange:
        table.fetch([5, 9])
        table.save(tmp_path / "table")
        strange.fetch([7])
        (name, _), = other.items()
        with pytest.raises(ValueError, match="has a table with %s = " % name):
            strange.restore(tmp_path / "table")
        assert strange.find([7])[1].tolist() == [name != "admit"]  # its first sight was one too few


@pytest.mark.parametrize("kind", ["keyed", "table", "pickle", "export"])
def test_what_a_killed_save_leaves_goes_with_the_next_save(tmp_path, kind):
    code = """
import os, signal, sys, threading, time, numpy, sptx
kind, path = sys.argv[1:]
if kind == "pickle":
    model = sptx.KeyedVectors(200)
    model.add_vectors(list(map(str, range(20000))), numpy.ones((20000, 200), "f4"))
else:
    model = sptx.Table(40000, 200, device="cpu") if kind == "table" else sptx.KeyedTable(40000, 200, device="cpu")
    if kind != "table":
        model.fetch(numpy.arange(40000))
def die():
    while not [name for name in os.listdir(os.path.dirname(path)) if ".%d-" % os.getpid() in name]:
        pass
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=die).start()
model.export(path) if kind == "export" else model.save(path)
time.sleep(60)
"""
    own = ["rows.partial", "rows.1-0123456789abcdef.partial2", "rows2.1-0123456789abcdef.partial"]
    for name in own:
        (tmp_path / name).write_text("a user's")
    killed = subprocess.run([sys.executable, "-c", code, kind, str(tmp_path / "rows")])
    assert killed.returncode == -9 and len(list(tmp_path.iterdir())) > len(own)
    small = sptx.KeyedVectors(3) if kind == "pickle" else sptx.Table(5, 3, device="cpu") if kind == "table" else sptx.KeyedTable(5, 3, device="cpu")
    small.export(tmp_path / "rows") if kind == "export" else small.save(tmp_path / "rows")
    wanted = {"rows", *own, *(["rows.keys.npy"] if kind == "export" else [])}
    assert {path.name for path in tmp_path.iterdir()} == wanted
    assert all((tmp_path / name).read_text() == "a user's" for name in own)
