"""sptx.Run and sptx.train: a run that the program has trained, and one that the package trains."""

import re
import copy
import io
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import types

import numpy
import pytest

import sptx
from conftest import TOP

SETTINGS = {"corpus.path": str(TOP / "corpora" / "tiny.txt"), "corpus.min_count": 1, "examples.subsample": 0, "model.dim": 6,
            "train.epochs": 40, "train.batch": 16, "train.update": "batch", "device.backend": "cpu", "device.threads": 1}


@pytest.fixture(scope="module")
def trained(program, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "tiny"
    settings = ["--%s=%s" % item for item in {**SETTINGS, "run.dir": path}.items()]
    subprocess.run([program, "train", *settings], check=True, capture_output=True)
    return path


@pytest.fixture
def run(trained):
    with sptx.Run(trained, device="cpu") as run:
        yield run


def stored(trained, table):
    newest = max(trained.glob("checkpoint-*"))
    return numpy.load(newest / (table + ".npy"), mmap_mode="r")["weights"]


# ---- a run ----

def test_a_run_is_what_lies_there(run, trained):
    lines = (trained / "vocab.tsv").read_text().splitlines()
    words = [line.split("\t")[0] for line in lines][-len(run):]
    assert list(run.words) == words and len(run) == len(run.words) and run.dim == 6
    assert numpy.array_equal(run.target, stored(trained, "target"))
    assert numpy.array_equal(run.context, stored(trained, "context"))
    assert run.counts.tolist() == sorted(run.counts.tolist(), reverse=True) and run.counts.dtype == numpy.uint64
    assert repr(run) == "sptx.Run(%r: %d words x 6)" % (str(trained), len(words))
    assert sptx.Run(str(max(trained.glob("checkpoint-*"))), device="cpu").words[0] == words[0]


def test_words_are_a_sequence(run):
    words = run.words
    assert words[-1] == list(words)[-1] and words[1:3] == list(words)[1:3] and words[::-1][0] == words[-1]
    assert words.index(words[3]) == run.row(words[3]) == 3 and repr(words).startswith("<%d words: " % len(words))
    for past in (len(words), -len(words) - 1):
        with pytest.raises(IndexError):
            words[past]
    assert words[0] in run and words[0] in words
    for other in ("never-seen", "", "a\0b", "\ud800", 3, 3.5, True, None, b"x"):
        assert other not in run and other not in words


def test_vectors_by_word(run):
    word = run.words[2]
    vector = run.vector(word)
    assert type(vector) is numpy.ndarray and vector.dtype == numpy.float32 and numpy.array_equal(vector, run.target[2])
    vector[0] = 5
    assert run.target[2, 0] != 5
    close = run.words[0] + "x" if run.words[0] + "x" not in run else run.words[0] + "xx"
    with pytest.raises(KeyError, match="no word"):
        run.vector(close)
    for wrong, kind in ((3, KeyError), (None, TypeError), ("\ud800", KeyError), ("a\0b", KeyError)):
        with pytest.raises(kind):
            run.vector(wrong)


def test_vectors_are_what_export_writes(run, trained, program, tmp_path):
    for table in ("target", "context", "sum", "normsum"):
        words = [program, "export", trained, "--format=npy", f"--out={tmp_path}/{table}.npy", f"--table={table}"]
        subprocess.run(words, check=True, capture_output=True)
        assert numpy.array_equal(run.vectors(table=table), numpy.load(tmp_path / f"{table}.npy"))
    words = [run.words[3], run.words[0], run.words[3]]
    assert numpy.array_equal(run.vectors(iter(words)), run.target[[3, 0, 3]]) and run.vectors([]).shape == (0, 6)
    for wrong, kind in (("sin", TypeError), ([None], TypeError), ([-3], KeyError), (["never-seen"], KeyError)):
        with pytest.raises(kind):
            run.vectors(wrong)
    for table, kind in (("both", ValueError), (3, TypeError), ("\ud800", ValueError)):
        with pytest.raises(kind, match="table"):
            run.vectors(words, table)


def rows_of_lists_alone(run):
    """The target table begins with the lists. An index is the number of a row, and a row that the table does not have is refused.
    """
    target, lists = run.target, run.vectors(lists=True)[40:]
    assert target.first == 40 and len(target) == 60 and numpy.array_equal(target, lists)
    assert all(numpy.array_equal(target[number], lists[at]) for number, at in ((40, 0), (99, 59), (-1, 59), (-60, 0)))
    assert numpy.array_equal(target[[99, 40, -60]], lists[[59, 0, 0]]) and target[41, 3] == lists[1, 3]
    assert numpy.array_equal(target[numpy.array([[50, 60]], numpy.uint32)], lists[[[10, 20]]])
    assert numpy.array_equal(target[45:50], lists[5:10]) and numpy.array_equal(target[:42], lists[:2])
    assert numpy.array_equal(target[::-2], lists[::-2]) and numpy.array_equal(target[:, 2], lists[:, 2])
    assert numpy.array_equal(target[...], lists) and numpy.array_equal(target[lists[:, 0] > 0], lists[lists[:, 0] > 0])
    assert numpy.array_equal(target.T[2], lists[:, 2]) and numpy.array_equal(target[45:][0], lists[5]) and target[45:].first == 45
    assert [row.tolist() for row in target] == lists.tolist() and numpy.array_equal(target + 1, lists + 1)
    for index in (run.row("i1"), 39, [45, 3], numpy.uint32(7), (5, 1), 100, -61):
        with pytest.raises(IndexError):
            target[index]
    with pytest.raises(IndexError, match="row 39 is not in this table, which begins with row 40"):
        target[39]



@pytest.mark.parametrize("own", [1, 0.5, 0])
def test_lists_with_rows_of_their_own(program, tmp_path, own):
    """Items are trained only as contexts, unless the mean of a list contains them. The package has the program's messages about
    that."""
    draw = random.Random(1)
    (tmp_path / "lists.txt").write_text("".join(
        "list%d %s\n" % (i, " ".join("i%d" % item for item in draw.sample(range(40), 6))) for i in range(60)))
    path = tmp_path / "run"
    words = [program, "train", f"--corpus.path={tmp_path}/lists.txt", "--corpus.format=lists", "--model.dim=8",
             "--train.epochs=3", "--device.backend=cpu", f"--examples.own={own}", f"--run.dir={path}"]
    subprocess.run(words, check=True, capture_output=True)

    def said(word):
        lines = subprocess.run([program, "nearest", path, word, "--k=5", "--device.backend=cpu"], check=True, capture_output=True,
                               text=True).stdout
        return [tuple(line.split("\t")) for line in lines.splitlines()]

    subprocess.run([program, "export", path, "--format=npy", f"--out={tmp_path}/all.npy"], check=True, capture_output=True)
    exported = numpy.load(tmp_path / "all.npy")
    with sptx.Run(path, device="cpu") as run:
        for word in ["i1", "i7"] + ["list:list9"] * (own > 0):
            assert [(near, "%.6f" % score) for near, score in run.nearest(word, k=5)] == said(word)
        vectors = run.vectors()
        assert len(vectors) == len(run) == len(run.words) == 40 and numpy.array_equal(vectors, exported)
        assert numpy.array_equal(run.vector("i1"), run.context[run.row("i1")])
        assert len(run.lists) == 60 and run.lists[0] == "list:list0" and "i1" not in run.lists
        assert "list:list9" in run and "list:list9" in run.lists and "list:list9" not in run.words
        assert not [word for word in run.words if word.startswith("list:")]
        assert not [word for word, _ in run.nearest("i1", k=100) if word.startswith("list:")]
        assert len(run.vectors(lists=True)) == (100 if own else 40)
        assert run.context.shape == (40, 8) and run.target.shape == ((60, 8) if own == 1 else (100, 8))
        if own == 1:
            rows_of_lists_alone(run)
        if own:
            assert numpy.array_equal(run.vector("list:list9"), run.target[run.row("list:list9")])
            found = [word for word, _ in run.nearest("i1", k=100, lists=True)]
            assert len(found) == 99 and sum(word.startswith("list:") for word in found) == 60
        else:
            with pytest.raises(sptx.Error, match="has no row"):
                run.nearest("i1", lists=True)
            for call in (lambda: run.nearest("list:list9"), lambda: run.vector("list:list9"),
                         lambda: run.recommend(["list:list9"])):
                with pytest.raises(sptx.Error, match="has no row"):
                    call()


def test_citations_are_asked_by_both_tables(program, tmp_path):
    """Papers 50 to 59 have no line of their own. They are answered from the table that trained them, or a message says that none
    did."""
    draw = random.Random(1)
    (tmp_path / "papers.txt").write_text("".join(
        "%d %s\n" % (paper, " ".join(map(str, draw.sample(range(10, 60), 5)))) for paper in range(50)))
    path = tmp_path / "run"
    subprocess.run([program, "train", f"--corpus.path={tmp_path}/papers.txt", "--corpus.format=adjacency", "--model.dim=8",
                    "--device.backend=cpu", f"--run.dir={path}"], check=True, capture_output=True)
    with sptx.Run(path, device="cpu") as run:
        assert numpy.array_equal(run.vector("55"), run.context[run.row("55")])
        assert numpy.array_equal(run.vector("30"), run.target[run.row("30")] + run.context[run.row("30")])
        assert numpy.array_equal(run.vectors(), run.vectors(table="sum"))
        assert run.nearest("55") == run.nearest("55", table="sum") and len(run.nearest("55", table="context")) == 10
        assert run.nearest("30", table="target") != run.nearest("30", table="context")
        with pytest.raises(sptx.Error, match="'55' was never trained as a target in .* ask the table context, or sum"):
            run.nearest("55", table="target")
        with pytest.raises(ValueError, match="'both' is not a table"):
            run.nearest("55", table="both")


def test_a_run_that_is_closed_meanwhile_stays_open_for_its_calls(trained):
    for read in (lambda run: run.counts, lambda run: run.words[:], lambda run: run.vectors(), lambda run: run.nearest(word)):
        for _ in range(20):
            run = sptx.Run(trained, device="cpu")
            word = run.words[0]
            threads = [threading.Thread(target=run.close)]
            for thread in threads:
                thread.start()
            try:
                read(run)
            except ValueError as error:
                assert "closed" in str(error)
            for thread in threads:
                thread.join()


def test_nearest_is_cosine(run):
    unit = run.target / numpy.linalg.norm(run.target, axis=1, keepdims=True)
    similar = unit @ unit[1]
    similar[1] = -2
    expected = numpy.argsort(-similar, kind="stable")[:4]
    found = run.nearest(run.words[1], k=4)
    assert [word for word, _ in found] == [run.words[row] for row in expected]
    assert numpy.allclose([score for _, score in found], similar[expected], atol=1e-5)
    by_vector = run.nearest(run.vector(run.words[1]), k=1)
    assert by_vector[0][0] == run.words[1] and by_vector[0][1] == pytest.approx(1, abs=1e-5)
    assert run.nearest(run.words[1], k=0) == [] and len(run.nearest(run.words[1], k=10**6)) == len(run) - 1
    rows, scores = run.search(run.target[:3], k=2, excluded=[0, 10**6, -1])
    assert rows.dtype == numpy.uint32 and rows.shape == scores.shape == (3, 2) and rows[1, 0] == 1 and rows[0, 0] != 0
    assert run.search(numpy.zeros((0, 6)), k=2)[0].shape == (0, 2)


@pytest.mark.parametrize("queries, k, excluded, kind, said", [
    (numpy.zeros((1, 5)), 1, None, ValueError, "(1, 5)"), (numpy.zeros(6), 1, None, ValueError, "(6,)"),
    ([["a"] * 6], 1, None, ValueError, "convert"), (numpy.full((1, 6), numpy.nan), 1, None, ValueError, "NaN"),
    (numpy.zeros((1, 6)), -1, None, ValueError, "k = -1"), (numpy.zeros((1, 6)), 1.5, None, TypeError, "k = 1.5"),
    (numpy.zeros((1, 6)), 1, [1, 2], ValueError, "excluded"), (numpy.zeros((1, 6)), 1, [0.5], ValueError, "excluded"),
])
def test_questions_that_are_none_are_named(run, queries, k, excluded, kind, said):
    with pytest.raises(kind) as error:
        run.search(queries, k, excluded)
    assert said in str(error.value)
    with pytest.raises(KeyError):
        run.nearest("never-seen")


def test_recommend_is_what_the_program_says(run, trained, program):
    """For every score, package and program give the same items and numbers. Unknown items are left out."""
    words = list(run.words)
    items = [words[1], words[4], words[1]]
    for score in ("target", "context", "context-cosine", "normsum", "sum", "context-context", None):
        for seen in (False, True):
            options = ["--k=5", "--device.backend=cpu"] + (["--seen"] if seen else []) + ([f"--score={score}"] if score else [])
            said = subprocess.run([program, "recommend", trained, "--items=" + ",".join(items), *options], check=True,
                                  capture_output=True, text=True).stdout
            found = run.recommend(items, k=5, score=score, seen=seen)
            assert said == "".join(f"items\t{word}\t{value:.6f}\n" for word, value in found)
    assert run.recommend(iter(items + ["never-seen"]), k=5) == run.recommend(items, k=5)
    assert run.recommend(items, k=0) == [] and len(run.recommend(items, k=10**6)) == len(run) - 2


@pytest.mark.parametrize("items, options, kind, said", [
    ("sin", {}, TypeError, "several words"), ([None], {}, TypeError, "a str"), ([3.5], {}, TypeError, "a str"),
    ([-3], {}, KeyError, "'-3' is no word"), ([], {}, KeyError, "no item"),
    (None, {}, TypeError, "iterable"),
    (["never-seen", "nor-this"], {}, KeyError, "'never-seen' is no word"), (["a\0b", "\ud800"], {}, KeyError, "NUL"),
    (0, {"score": "best"}, ValueError, "'best' is not a score of lists"), (0, {"score": 1}, TypeError, "a score is a str"),
    (0, {"score": "\ud800"}, ValueError, "is not a score"), (0, {"k": -1}, ValueError, "k = -1"),
    (0, {"k": 1.5}, TypeError, "k = 1.5"),
])
def test_lists_that_are_none_are_named(run, items, options, kind, said):
    with pytest.raises(kind) as error:
        run.recommend([run.words[0]] if items == 0 else items, **options)
    assert said in str(error.value)


def test_views_are_read_only_and_outlive_the_run(trained):
    run = sptx.Run(trained, device="cpu")
    target = run.target
    with pytest.raises(ValueError):
        target[0, 0] = 1
    run.close()
    run.close()
    del run
    assert numpy.array_equal(target, stored(trained, "target"))


def test_a_closed_run_says_so(trained):
    run = sptx.Run(trained, device="cpu")
    words = run.words
    with run:
        pass
    assert repr(run) == "sptx.Run(closed)"
    for call in (lambda: run.words, lambda: words[0], lambda: run.target, lambda: run.nearest("a"), lambda: run.counts,
                 lambda: run.recommend(["a"]), lambda: run.vector("a"), lambda: "a" in words, run.__enter__,
                 lambda: pickle.dumps(run)):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_a_run_is_pickled_as_its_path(run, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(trained.parent)
    packed = pickle.dumps(sptx.Run(trained.name, device="cpu"))
    monkeypatch.chdir(tmp_path)  # the relative path of the run is no longer valid
    assert len(packed) < 1000
    with pickle.loads(packed) as again, copy.copy(run) as copied:
        assert again.nearest(run.words[0]) == copied.nearest(run.words[0]) == run.nearest(run.words[0])


def test_a_run_survives_a_fork(run):
    """Forked workers query a run that their parent opened; the parent's run still works afterwards."""
    words = run.words[:3]
    wanted = run.nearest(words, k=3)
    asking = _Asking(run)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(asking, [words] * 4) == [(wanted, run.target[1].tolist())] * 4
    assert run.nearest(words, k=3) == wanted
    child = multiprocessing.get_context("fork").Process(target=run.close)
    child.start()
    child.join()
    assert child.exitcode == 0 and run.nearest(words, k=3) == wanted


class _Asking:
    run = None  # a class attribute: forked children inherit it, and it is not pickled

    def __init__(self, run):
        type(self).run = run

    def __call__(self, words):
        return self.run.nearest(words, k=3), self.run.target[1].tolist()


def test_a_notebook_shows_the_most_frequent_words(tmp_path):
    run = sptx.fit([["<b>", "a&b"] * 9, ["<b>"] * 9], tmp_path / "run", dim=2, device="cpu",
                   keys={"corpus.min_count": 1, "examples.subsample": 0})
    page = run._repr_html_()
    assert "<tr><td>&lt;b&gt;</td><td>18</td></tr><tr><td>a&amp;b</td><td>9</td></tr>" in page and ": 2 words x 2" in page


@pytest.mark.parametrize("format, name", [("word2vec-bin", "v.bin"), ("word2vec-text", "v.vec"), ("glove-text", "v.txt")])
def test_files_of_vectors_are_opened(run, tmp_path, format, name):
    run.export(tmp_path / name, format)
    with sptx.Run(tmp_path / name, device="cpu") as opened:
        assert list(opened.words) == list(run.words) and not opened.counts.any()
        assert numpy.allclose(opened.vectors(), run.vectors(), atol=1e-5)
        assert numpy.array_equal(opened.target, opened.vectors()) and numpy.array_equal(opened.context, opened.target)
        found = opened.nearest(run.words[0], k=5)
        assert [word for word, _ in found] == [word for word, _ in run.nearest(run.words[0], k=5)]
        opened.export(tmp_path / "again", format)
    assert (tmp_path / "again").read_bytes() == (tmp_path / name).read_bytes()


def test_a_file_that_holds_no_vectors_is_refused(tmp_path):
    (tmp_path / "text.vec").write_text("some words of a text\n")
    with pytest.raises(sptx.Error, match="wanted word2vec's binary or text form"):
        sptx.Run(tmp_path / "text.vec", device="cpu")
    (tmp_path / "cut.vec").write_text("2 3\na 1 2 3\nb 1 x 2\n")
    with pytest.raises(sptx.Error, match="row 2 does not read as a word and 3 numbers"):
        sptx.Run(tmp_path / "cut.vec", device="cpu")


def test_what_is_no_run_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(sptx.Error, match=str(tmp_path)):
            sptx.Run(path, device="cpu")
    for path, kind in (("", ValueError), (3, TypeError), ("a\0b", ValueError)):
        with pytest.raises(kind):
            sptx.Run(path, device="cpu")


def test_gensim_gets_the_vectors(run):
    pytest.importorskip("gensim")
    vectors = run.to_gensim()
    assert vectors.index_to_key == list(run.words) and numpy.array_equal(vectors.vectors, run.target)
    assert vectors.get_vecattr(run.words[0], "count") == run.counts[0]
    ours, theirs = run.nearest(run.words[1], k=3), vectors.most_similar(run.words[1], topn=3)
    assert [word for word, _ in ours] == [word for word, _ in theirs]


def test_arrow_gets_the_vectors(run):
    pytest.importorskip("pyarrow")
    table = run.to_arrow()
    assert table.column_names == ["word", "count", "vector"] and table.num_rows == len(run)
    assert table["word"].to_pylist() == list(run.words) and table["count"].to_pylist() == run.counts.tolist()
    assert numpy.array_equal(numpy.array(table["vector"].to_pylist(), numpy.float32), run.target)


# ---- training ----

def settings_for(path, **more):
    return {**SETTINGS, "run.dir": path, **{key.replace("__", "."): value for key, value in more.items()}}


def test_training_is_the_programs(tmp_path, trained):
    heard = []
    config = tmp_path / "my.ini"
    config.write_text("[model]\ndim = 4\n[train]\nepochs = 40\n")
    run = sptx.train(config, settings_for(tmp_path / "run"), progress=heard.append)
    assert isinstance(run, sptx.Run) and repr(run) == repr(sptx.Run(tmp_path / "run", device="cpu"))
    assert run.dim == 6 and numpy.array_equal(run.target, stored(trained, "target"))
    assert heard and isinstance(heard[-1], sptx.Progress)
    assert 0 < heard[-1].done <= 1 and heard[-1].step > 0 and numpy.isfinite(heard[-1].loss)
    assert re.match(r" *\d+\.\d%  loss \d+\.\d{4} a pair  lr ", heard[-1].line)
    assert sptx.train(config, settings_for(tmp_path / "quiet")).words[:] == run.words[:]


@pytest.mark.parametrize("stop", [lambda report: True, lambda report: next(iter(()))])
def test_training_can_be_stopped_and_resumed(tmp_path, stop, trained):
    path = tmp_path / "run"
    stopped = sptx.train(None, settings_for(path, train__report_seconds=0.01), progress=stop)
    assert list(path.glob("checkpoint-*")) and numpy.array_equal(stopped.target, stored(path, "target"))
    finished = sptx.train(None, settings_for(path), resume=True, progress=lambda report: 1)
    assert numpy.array_equal(finished.target, stored(trained, "target"))


def test_an_older_run_is_kept_unless_it_is_to_go(tmp_path, trained):
    path = tmp_path / "run"
    sptx.train(None, settings_for(path, train__seed=2), progress=False)
    before = stored(path, "target").copy()
    with pytest.raises(sptx.Error, match="run"):
        sptx.train(None, settings_for(path), progress=False)
    assert numpy.array_equal(stored(path, "target"), before)
    assert numpy.array_equal(sptx.train(None, settings_for(path), overwrite=True).target, stored(trained, "target"))
    with pytest.raises(ValueError, match="choose one"):
        sptx.train(None, settings_for(path), overwrite=True, resume=True)


class Stream(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.isatty = lambda: terminal


@pytest.mark.parametrize("terminal, notebook, progress, lines", [
    (True, False, None, True), (False, True, None, True), (False, False, None, False), (False, False, True, True),
    (True, True, False, False)])
def test_one_line_shows_where_training_stands(tmp_path, monkeypatch, terminal, notebook, progress, lines):
    stream = Stream(terminal)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "40")
    if notebook:
        shell = types.SimpleNamespace(kernel=None)
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    sptx.train(None, settings_for(tmp_path / "run", train__epochs=2000, train__report_seconds=0.01), progress=progress)
    shown = stream.getvalue()
    assert bool(shown) == lines and shown.count("\n") == int(lines)
    if lines:
        parts = shown.rstrip("\n").split("\r")[1:]
        assert len(parts) > 1 and all("%  loss " in part for part in parts) and parts[-1].startswith("100.0%")
        assert not terminal or max(map(len, parts)) < 40


class Lines:
    """An object that some programs put in place of sys.stderr, to get its lines."""

    def __init__(self):
        self.lines = []
        self.write = self.lines.append
        self.flush = lambda: None


@pytest.mark.parametrize("progress, lines", [(None, False), (True, True)])
def test_what_stands_for_standard_error_ends_no_training(tmp_path, monkeypatch, progress, lines):
    stream, closed = Lines(), io.StringIO()
    closed.close()
    for one in (stream, closed):
        monkeypatch.setattr("sys.stderr", one)
        sptx.train(None, settings_for(tmp_path / "run", train__report_seconds=0.01), overwrite=True, progress=progress)
    assert bool(stream.lines) == lines


def test_an_exception_of_progress_comes_out(tmp_path):
    path = tmp_path / "run"

    class Mine(Exception):
        pass

    def progress(report):
        raise Mine("enough")

    with pytest.raises(Mine, match="enough"):
        sptx.train(None, settings_for(path, train__report_seconds=0.01), progress=progress)
    assert list(path.glob("checkpoint-*"))


def test_an_interrupt_stops_training(tmp_path):
    path = tmp_path / "run"
    timer = threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sptx.train(None, settings_for(path, train__epochs=10**6, train__report_seconds=0.05))
    finally:
        timer.cancel()
    assert list(path.glob("checkpoint-*"))


@pytest.mark.parametrize("config, settings, more, kind, said", [
    (None, {"model.dimm": 3}, {}, ValueError, "dimm"),
    (None, {"model.dim": "many"}, {}, ValueError, "many"),
    (None, {"dim": 3}, {}, ValueError, "section.key"),
    (None, {3: 3}, {}, ValueError, "section.key"),
    (None, {"model.dim": [3]}, {}, TypeError, "model.dim"),
    (None, {"corpus.path": "a\0b"}, {}, ValueError, "NUL"),
    (None, {"corpus.path": "/nowhere/at/all"}, {}, sptx.Error, "/nowhere"),
    ("/nowhere/my.ini", {}, {}, sptx.Error, "/nowhere/my.ini"),
    (None, {}, {"progress": 3}, TypeError, "called"),
    (None, {}, {"device": "gpu"}, ValueError, "gpu"),
])
def test_settings_that_are_none_are_named(tmp_path, config, settings, more, kind, said):
    with pytest.raises(kind) as error:
        sptx.train(config, {**settings_for(tmp_path / "run"), **settings}, **more)
    assert said in str(error.value)


def test_lists_to_recommend_for_are_frames_and_matrices(tmp_path):
    pandas, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    data = {"u%d" % user: [(user * step) % 30 for step in range(1, 8)] for user in range(1, 40)}
    run = sptx.fit(data, tmp_path / "run", keys={"model.dim": 8}, device="cpu")
    wanted = run.recommend(lists=[[1, 2], [3]], k=3)
    frame = pandas.DataFrame({"user": ["b", "a", "b"], "item": [1, 3, 2]})
    matrix = sparse.csr_matrix(([1, 1, 1], ([0, 0, 1], [1, 2, 3])), shape=(2, 30))
    for lists in (frame, pandas.DataFrame({"items": [[1, 2], [3]]}), matrix, matrix.tocoo()):
        assert run.recommend(lists=lists, k=3) == wanted
    for given, error, said in (({"lists": frame.assign(rating=1)}, ValueError, "wanted two, the list and the item"),
                               ({"lists": [[1], None]}, TypeError, "one of lists= is a NoneType"),
                               ({"lists": sparse.csr_matrix(([1], ([0], [99])), shape=(1, 100))}, KeyError, "none of the items is known"),
                               ({"items": matrix}, TypeError, "pass it as lists="), ({"items": frame}, TypeError, "pass it as lists=")):
        with pytest.raises(error, match=said):
            run.recommend(**given)
