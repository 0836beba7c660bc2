"""Compares the compiled calls of rows (src/python/calls) with the calls by ctypes: the same bytes, the same exceptions. All tests
of tables are also run both ways."""

import ctypes
import os
import subprocess
import sys
import threading

import hypothesis
import numpy
import pytest
from hypothesis import strategies as st

import sptx
from conftest import TOP, floats, known_rows
from sptx import _compiled, _library

ROWS, DIM = 9, 3
VERBS = ["fetch", "fetch into", "prefetch", "update", "store"]
compiled = pytest.mark.skipif(_compiled.known is None, reason="SPTX_CALLS=ctypes, or no module")


class Ours(numpy.ndarray):
    """An array of a class of one's own, the same class in both tables' calls."""


def outcome(call):
    """Returns the result of a call in a form that can be compared: class, type, shape and bytes of an array, or the exception."""
    try:
        got = call()
    except Exception as error:
        return type(error), str(error)
    return None if got is None else (type(got), str(got.dtype), tuple(got.shape), numpy.asarray(got).tobytes())


class BothWays:
    """Two equal tables, of which the second makes its calls by ctypes."""

    def __init__(self, cpu, optimizer="adagrad"):
        self.tables = [sptx.Table(ROWS, DIM, optimizer, lr=0.1, device=cpu) for _ in range(2)]
        self.tables[1]._calls = None

    def same(self, ask):
        """Calls ask() for both tables, with separate arrays. Both must give the same result."""
        seen = [outcome(lambda: ask(table)) for table in self.tables]
        assert seen[0] == seen[1]
        fields = [[numpy.asarray(table.view(field)).tobytes() for field in table.fields] for table in self.tables]
        assert fields[0] == fields[1]
        assert self.tables[0].steps == self.tables[1].steps


# ---- the usual is done here, all else the other way ----

@pytest.mark.skipif(os.environ.get("SPTX_CALLS") == "ctypes", reason="SPTX_CALLS=ctypes")
def test_the_module_is_there():
    """The compiled module must be in the wheel, and this Python must have loaded it."""
    if "SPTX_LIBRARY" in os.environ and _compiled.known is None:
        pytest.skip("no _calls.abi3.so beside SPTX_LIBRARY")
    assert _compiled.known is not None


def usual(table):
    ids, values = numpy.array([[3, 1], [3, 0]]), numpy.ones((2, 2, 3), numpy.float32)
    return [table._calls.fetch(ids, None), table._calls.fetch(ids.astype("i4"), values), table._calls.prefetch(ids),
            table._calls.update(ids, values), table._calls.store(ids[0], values[0]), table._calls.fetch(numpy.array(2), None),
            table._calls.fetch(ids[:0], None)]


@compiled
def test_the_usual_is_done_by_the_compiled_calls(table):
    ids = numpy.array([[3, 1], [3, 0]])
    before = known_rows(10, 3)
    done = usual(table)
    assert NotImplemented not in [type(one) if isinstance(one, numpy.ndarray) else one for one in done]
    assert done[0].dtype == numpy.float32 and numpy.array_equal(done[0], before[ids]) and done[6].shape == (0, 2, 3)
    assert table.steps == 1


@compiled
@pytest.mark.parametrize("unusual", [[1, 2], 3, None, numpy.array([1], "u8"), numpy.array([1.0]), numpy.array([True]),
                                     numpy.array([1], ">i8"), numpy.arange(6)[::2], numpy.ma.masked_array([1]),
                                     numpy.array([1]).view(numpy.recarray), numpy.zeros((1,) * 16, "i8"), sptx, numpy.ndarray,
                                     object()])
def test_the_unusual_is_left_to_the_other_way(table, unusual):
    calls, out = table._calls, floats(1, 3)
    assert calls.fetch(unusual, None) is NotImplemented and calls.prefetch(unusual) is NotImplemented
    assert calls.update(unusual, out) is NotImplemented and calls.store(unusual, out) is NotImplemented
    assert calls.gather(unusual, None, 1) is NotImplemented or type(unusual) is numpy.ndarray
    assert numpy.array_equal(table.weights, known_rows(10, 3)) and table.steps == 0


@compiled
def test_values_of_another_kind_or_place_are_left_to_the_other_way(table):
    ids, calls = numpy.array([1, 2]), table._calls
    read_only = floats(2, 3)
    read_only.flags.writeable = False
    wide = floats(2, 6)
    for values in (floats(2, 4), floats(2), floats(2, 3, 1), floats(2, 3).astype("f8"), wide[:, ::2], floats(3, 2).T,
                   [[1, 1, 1]] * 2):
        assert calls.store(ids, values) is NotImplemented and calls.fetch(ids, values) is NotImplemented
    own = numpy.asarray(table.weights)[4:5]
    assert calls.store(ids[:1], own) is NotImplemented and calls.fetch(ids[:1], own) is NotImplemented
    assert calls.fetch(ids, read_only) is NotImplemented and calls.store(ids, read_only) is None
    both = numpy.zeros(6, "f4")
    assert calls.fetch(both[:2].view("i4"), both.reshape(2, 3)) is NotImplemented  # out is in the memory of the ids themselves


@compiled
def test_arguments_that_are_none_are_refused(table):
    for call in (table._calls.fetch, table._calls.prefetch, table._calls.update, table._calls.gather, table._calls.scatter,
                 _compiled._module.Caller, _compiled._module.Known, _compiled._module.Marks, _compiled.known.learn_torch):
        with pytest.raises(TypeError):
            call()
    for kind in (_compiled._module.Marks, lambda known: _compiled._module.Caller(known, *caller_arguments(lambda *_: 0)[1:])):
        with pytest.raises(TypeError, match="Known"):
            kind(7)


# ---- both ways ----

@st.composite
def arrays(draw, kind):
    """Returns a function that makes a new array at each call, always the same."""
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    if kind == "values" and draw(st.integers(0, 5)):
        shape += (DIM,)
    count = int(numpy.prod(shape, dtype=int))
    if kind == "ids":
        dtypes = ["i8", "i8", "i4", "i4", ">i8", "u8", "u4", "i2", "u1", "f8", "?"]
        number = st.integers(0, ROWS - 1) | st.integers(-1, ROWS) | st.sampled_from([1 << 31, 1 << 40])
    else:
        dtypes, number = ["f4"] * 5 + ["f8", ">f4", "i4"], st.integers(-8, 8)
    dtype, numbers = draw(st.sampled_from(dtypes)), draw(st.lists(number, min_size=count, max_size=count))
    how = draw(st.sampled_from(["as it is"] * 4 + ["spread", "backwards", "turned", "read-only", "askew", "subclass", "list",
                                                   "repeated"]))

    def make():
        array = numpy.array(numbers, "i8" if kind == "ids" else "f8").astype(dtype).reshape(shape)
        if how == "spread" and array.ndim:
            wide = numpy.zeros(array.shape[:-1] + (2 * array.shape[-1],), dtype)
            wide[..., ::2] = array
            array = wide[..., ::2]
        elif how == "backwards" and array.ndim:
            array = array[::-1]
        elif how == "turned":
            array = numpy.asfortranarray(array)
        elif how == "read-only":
            array.flags.writeable = False
        elif how == "askew":
            room = numpy.zeros(array.nbytes + 1, "u1")[1:].view(dtype).reshape(shape)
            room[...] = array
            array = room
        elif how == "subclass":
            array = array.view(Ours)
        elif how == "repeated":
            array = numpy.broadcast_to(array, (2,) + array.shape)
        return array.tolist() if how == "list" else array

    return make


@st.composite
def pairs(draw):
    """Draws ids and values, which mostly fit each other."""
    ids = draw(arrays("ids"))
    if draw(st.integers(0, 3)):
        shape = numpy.shape(ids())
        return ids, lambda: (numpy.arange(numpy.prod(shape + (DIM,), dtype=int)) % 7).astype("f4").reshape(shape + (DIM,))
    return ids, draw(arrays("values"))


@compiled
@hypothesis.settings(deadline=None, max_examples=150)
@hypothesis.given(asked=st.lists(st.tuples(st.sampled_from(VERBS), pairs()), min_size=1, max_size=4), close=st.booleans(),
                  optimizer=st.sampled_from(["adagrad", "none"]))
def test_both_ways_do_the_same(cpu, asked, close, optimizer):
    both = BothWays(cpu, optimizer)
    for verb, (ids, values) in asked:
        if verb == "fetch into":
            def into(table):
                out = values()
                table.fetch(ids(), out=out)
                return numpy.asarray(out)
            both.same(into)
        else:
            both.same(lambda table: getattr(table, verb)(*([ids()] if "fetch" in verb else [ids(), values()])))
    for table in both.tables if close else ():
        table.close()
    verb, (ids, values) = asked[0]
    seen = [outcome(lambda: table.store(ids(), values())) for table in both.tables]
    assert seen[0] == seen[1] and (not close or seen[0] == (ValueError, "the table is closed"))


@compiled
def test_rows_of_the_tables_own_are_copied_both_ways(cpu):
    both = BothWays(cpu)
    ids = numpy.array([1, 2, 3])
    both.same(lambda table: table.store(ids, numpy.asarray(table.weights)[:3]))
    both.same(lambda table: table.update(ids, numpy.asarray(table.state["sum"])[2:5]))
    both.same(lambda table: table.fetch(ids, out=numpy.asarray(table.weights)[4:7]))


def test_the_tests_of_tables_pass_by_ctypes_alone():
    if os.environ.get("SPTX_CALLS") == "ctypes":
        pytest.skip("SPTX_CALLS=ctypes")
    assert "passed" in passed_by_ctypes("not torch and not gpu and not long", "test_table.py", "test_processes.py", "test_fuzz.py")


def passed_by_ctypes(marked, *files):
    """Runs tests with ctypes instead of the compiled calls. Returns the last line of pytest."""
    here = TOP / "tests" / "python"
    ended = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", here / "pytest.ini", "-m", marked,
                            *(here / file for file in files)], env={**os.environ, "SPTX_CALLS": "ctypes"}, capture_output=True,
                           text=True)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    return ended.stdout.splitlines()[-1]


# ---- turns, threads, processes ----

ROWS_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_library.Ids), ctypes.c_void_p, ctypes.c_int,
                             ctypes.c_void_p)
ERROR_CALL = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
SENTENCE = ctypes.create_string_buffer(b"so it went \xff")
error_call = ERROR_CALL(lambda _: ctypes.addressof(SENTENCE))


class Turns:
    """Stands for a context's lock, with the methods that a Caller uses."""

    def __init__(self):
        self.taken, self.done, self.leaving, self.said = 0, [], [], []

    def take(self):
        self.taken += 1

    def end(self):
        self.taken -= 1
        self.done.append("end")


def caller_arguments(call, gpu=-1, turns=None, known=None, raise_for=None, own=()):
    """Returns arguments for a Caller whose library is the Python function `call`, and a list that keeps alive what C calls."""
    turns = turns or Turns()
    function = ROWS_CALL(call)
    address = ctypes.cast(function, ctypes.c_void_p).value
    told = (turns.take, turns.end, turns.leaving, lambda: turns.done.append("close"), turns.said, lambda: turns.done.append("warn"),
            raise_for)
    return [known or _compiled.known, function, told, lambda: None,
            (1, 2) + (address,) * 4 + (ctypes.cast(error_call, ctypes.c_void_p).value,), 5, 3, gpu, own]


def fake_caller(call, **options):
    return _compiled._module.Caller(*caller_arguments(call, **options))


@compiled
def test_a_turn_is_ended_and_what_waited_is_done():
    turns = Turns()
    caller = fake_caller(lambda *_: turns.done.append(turns.taken) or 0, turns=turns)
    caller.store(numpy.array([1]), floats(1, 3))
    assert turns.done == [1, "end"] and not turns.taken
    turns.leaving.append(1)
    turns.said.append("hot")
    caller.store(numpy.array([1]), floats(1, 3))
    assert turns.done[2:] == [1, "end", "close", "warn"] and not turns.taken


@compiled
def test_a_status_and_its_sentence_are_raised_after_the_turn():
    turns, said = Turns(), []

    def raise_for(status, sentence):
        said.append((status, sentence, turns.taken))
        raise KeyError(sentence)

    caller = fake_caller(lambda *_: 2, turns=turns, raise_for=raise_for)
    for call in (lambda: caller.store(numpy.array([1]), floats(1, 3)), lambda: caller.fetch(numpy.array([1]), None),
                 lambda: caller.fetch(numpy.array([1]), floats(1, 3)), lambda: caller.prefetch(numpy.array([1]))):
        with pytest.raises(KeyError):
            call()
    assert said == [(2, "so it went \ufffd", 0)] * 4


@compiled
def test_a_turn_that_is_interrupted_is_not_taken():
    class Interrupted(Turns):
        def take(self):
            raise KeyboardInterrupt

    turns = Interrupted()
    caller = fake_caller(lambda *_: pytest.fail("it was called"), turns=turns)
    with pytest.raises(KeyboardInterrupt):
        caller.store(numpy.array([1]), floats(1, 3))
    assert not turns.done


@compiled
def test_other_threads_run_during_a_call():
    met, answered = threading.Event(), threading.Event()
    caller = fake_caller(lambda *_: met.set() or (0 if answered.wait(20) else 2))
    other = threading.Thread(target=lambda: met.wait(20) and answered.set())
    other.start()
    caller.store(numpy.array([1]), floats(1, 3))
    other.join()


@compiled
def test_two_threads_of_one_table(cpu):
    with sptx.Table(1000, 4, "sgd", lr=1.0, init="zeros", device=cpu) as table:
        ids, ones = numpy.arange(1000), numpy.ones((1000, 4), numpy.float32)

        def work():
            for _ in range(50):
                table.update(ids, ones)
                seen = table.fetch(ids)
                assert seen.min() == seen.max()  # no thread sees half an update

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (table.fetch(ids) == -100).all() and table.steps == 100


@compiled
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_has_no_compiled_calls(table):
    ids = numpy.array([1])
    child = os.fork()
    if not child:
        try:
            table.fetch(ids)
        except RuntimeError as error:
            os._exit(0 if "fork" in str(error) and table._calls.fetch(ids, None) is NotImplemented else 2)
        os._exit(3)
    assert os.waitpid(child, 0)[1] == 0
    assert table._calls.fetch(ids, None).tolist() == table.fetch(1)[None].tolist()


@compiled
def test_a_closed_table_stays_open_for_the_call_that_runs(cpu):
    table = sptx.Table(4, 2, "none", device=cpu)
    calls = table._calls
    table.close()
    assert table._calls is None and calls.fetch(numpy.array([3]), None).shape == (1, 2)


@compiled
def test_another_interpreter_takes_the_module_or_refuses_it():
    """An interpreter that shares the lock (GIL) can load the module. One with a lock of its own refuses it, as it refuses NumPy."""
    code = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
other = interpreters.create()
interpreters.run_string(other, '''
import importlib.util
spec = importlib.util.spec_from_file_location("sptx._calls", %r)
try:
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
except ImportError as error:
    print("refused", flush=True)
else:
    module.Marks(module.Known(int, int, int))
    print("taken", flush=True)
''')
interpreters.destroy(other)
""" % _compiled._module.__file__
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0 and ended.stdout.strip() in ("refused", "taken"), ended.stdout + ended.stderr


@compiled
def test_nothing_is_held_after_a_call(table):
    ids, values, wrong = numpy.array([1, 2]), floats(2, 3), numpy.array([77, 1])
    held = (ids, values, wrong, table._calls, _compiled.known, numpy.ndarray, numpy.dtype("f4"))
    before = [sys.getrefcount(one) for one in held]
    for _ in range(200):
        table.store(ids, values)
        table.update(ids, values)
        table.fetch(ids, out=values)
        table.fetch(ids)
        table.fetch(ids[::-1])
        with pytest.raises(IndexError):
            table.fetch(wrong)
        _compiled.marks().twice(ids, wrong)
    assert all(now - then < 20 for now, then in zip((sys.getrefcount(one) for one in held), before))


# ---- what a GPU's tensors become ----

class Tensor:
    """Has the attributes of a tensor of PyTorch on a GPU, each of which a test can replace."""

    layout, is_cpu, is_cuda, requires_grad, memory = "strided", False, True, False, {}

    def __init__(self, array, **other):
        self.array, self.dtype, self.shape = array, sys.intern(str(array.dtype)), array.shape
        self.__dict__.update(other)

    def data_ptr(self):
        return self.array.ctypes.data

    def get_device(self):
        return 1

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def is_neg(self):
        return False


class Parameter:
    pass


def known_of(busy=()):
    known = _compiled._module.Known(numpy.ndarray, numpy.empty, numpy.dtype("f4"))
    known.learn_torch(Tensor, Parameter, "int32", "int64", "float32", "strided", tuple(busy), lambda gpu: 1000 + gpu)
    return known


@compiled
def test_tensors_of_a_gpu_go_with_their_stream():
    seen = []

    def call(table, ids, values, memory, stream):
        seen.append((table, ids[0].data, ids[0].count, ids[0].bits, ids[0].memory, values, memory, stream))
        return 0

    caller = fake_caller(call, gpu=1, known=known_of())
    for dtype, bits in (("int32", 32), ("int64", 64)):
        ids, values = Tensor(numpy.array([[1, 2]], dtype)), Tensor(floats(1, 2, 3))
        assert caller.update(ids, values) is None and caller.fetch(ids, values) is values
        assert seen == [(2, ids.data_ptr(), 2, bits, _library.CUDA, values.data_ptr(), _library.CUDA, 1001)] * 2
        seen.clear()
    host = numpy.array([[1, 2]])
    assert caller.store(host, values) is None and caller.store(host, values.array) is None
    assert [one[4:] for one in seen] == [(_library.HOST, values.data_ptr(), _library.CUDA, 1001),
                                         (_library.HOST, values.data_ptr(), _library.HOST, None)]
    assert caller.scatter(host[:, ::-1], None, [Tensor(floats(2, 3))]) is None
    assert seen[-1][2:5] == (2, 32, _library.HOST) and seen[-1][7] == 1001


@compiled
def test_what_lies_in_the_tables_own_memory_is_not_passed():
    seen = []
    ids, values = numpy.array([1, 2]), floats(2, 3)

    def caller(array, before, behind):
        place = array.ctypes.data
        return fake_caller(lambda table, ids, values, *_: seen.append((ids[0].data, ids[0].bits, values)) or 0, gpu=1,
                           known=known_of(), own=(1, 2, place - before, place + array.nbytes + behind))

    for before, behind in ((0, 0), (-4, 0), (0, -4), (8, 8)):
        for given in (ids, values):
            calls = caller(given, before, behind)
            assert calls.store(ids, values) is NotImplemented and calls.fetch(ids, values) is NotImplemented
        assert calls.scatter(ids, None, [Tensor(values)]) is NotImplemented and not seen
    batch = caller(ids, 0, 0)
    # the ids were copied
    assert batch.scatter(ids, None, [Tensor(values)]) is None and seen[0][0] != ids.ctypes.data and seen[0][1] == 32
    for beside in ((ids.nbytes, -ids.nbytes), (-ids.nbytes, ids.nbytes)):
        assert caller(ids, *beside).scatter(ids, None, [Tensor(values)]) is None
        assert seen.pop() == (ids.ctypes.data, 64, values.ctypes.data)


@compiled
@pytest.mark.parametrize("other", [{"get_device": lambda: 0}, {"is_cuda": False}, {"layout": "sparse"}, {"dtype": "float64"},
                                   {"data_ptr": lambda: 7}, {"data_ptr": lambda: None}, {"is_contiguous": lambda: False},
                                   {"is_neg": lambda: True}, {"shape": [1, 2, 3]}, {"shape": (1, 2, "3")}, {"shape": (1, 3, 2)}])
def test_other_tensors_are_left_to_the_other_way(other):
    caller = fake_caller(lambda *_: pytest.fail("it was called"), gpu=1, known=known_of())
    ids, values = Tensor(numpy.array([[1, 2]])), Tensor(floats(1, 2, 3), **other)
    assert caller.update(ids, values) is NotImplemented and caller.fetch(ids, values) is NotImplemented
    assert caller.scatter(numpy.array([[1, 2]]), None, [Tensor(floats(2, 3), **other)]) is NotImplemented


@compiled
def test_tensors_of_a_gpu_are_not_for_a_table_of_the_cpu_nor_while_calls_are_watched():
    ids, values = Tensor(numpy.array([1])), Tensor(floats(1, 3))
    for gpu, busy in ((-1, ()), (1, [lambda: False, lambda: 2]), (1, [lambda: 1 / 0])):
        caller = fake_caller(lambda *_: pytest.fail("it was called"), gpu=gpu, known=known_of(busy))
        assert caller.update(ids, values) is NotImplemented
    wants_gradient = Tensor(floats(1, 3), requires_grad=True)
    caller = fake_caller(lambda *_: 0, gpu=1, known=known_of())
    assert caller.update(ids, wants_gradient) is None and caller.fetch(ids, wants_gradient) is NotImplemented


@compiled
def test_interrupts_are_not_swallowed():
    def interrupted():
        raise KeyboardInterrupt

    caller = fake_caller(lambda *_: 0, gpu=1, known=known_of([interrupted]))
    with pytest.raises(KeyboardInterrupt):
        caller.fetch(Tensor(numpy.array([1])), None)


# ---- ids that stand twice ----

@compiled
@hypothesis.settings(deadline=None)
@hypothesis.given(batches=st.lists(st.tuples(arrays("ids"), st.none() | arrays("ids")), min_size=1, max_size=6))
def test_ids_that_stand_twice_are_found(batches):
    marks = _compiled.marks()
    for positives, negatives in batches:
        parts = [part() for part in (positives, negatives) if part is not None]
        found = marks.twice(parts[0], parts[1] if len(parts) > 1 else None)
        usual = all(type(part) is numpy.ndarray and part.dtype in ("i8", "i4") and part.dtype.isnative and part.flags.aligned
                    for part in parts)
        ids = numpy.concatenate([numpy.reshape(part, -1) for part in parts]) if usual else []
        if not usual or (len(ids) and (ids.min() < 0 or ids.max() >= (1 << 31) - 1)):
            assert found is NotImplemented
        else:
            assert found is (len(numpy.unique(ids)) < len(ids))


@compiled
@pytest.mark.parametrize("count", [1, 15, 1000, 30000])
@pytest.mark.parametrize("apart", [1, 3, 64, 1 << 16])  # up to ids that are all alike in the bits that are looked at first
def test_ids_that_stand_twice_are_found_among_many(count, apart):
    random = numpy.random.default_rng(count)
    marks = _compiled.marks()
    for size in (count, count // 3 + 1, count):  # marks of the longer list must not count for the shorter one
        ids = random.permutation(count)[:size] * apart
        for dtype in ("i4", "i8"):
            assert marks.twice(ids.astype(dtype), None) is False
            for place in random.integers(0, size, 4):
                assert marks.twice(ids.astype(dtype), ids[place:place + 1]) is True
                assert marks.twice(ids[place:place + 1], ids[::-1].astype(dtype)) is True
