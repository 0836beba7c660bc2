"""Tests fit(): data of each kind gives the same bytes as a file with that data. For an object of another type the error message says why it is
refused."""

import pathlib
import random

import numpy
import pytest

import sptx

pyarrow = pytest.importorskip("pyarrow")
scipy = pytest.importorskip("scipy")
pytest.importorskip("scipy.sparse")

KEYS = {"corpus.min_count": 2, "examples.subsample": 0, "negatives.count": 5, "train.batch": 64, "train.update": "batch",
        "optimizer.lr": 0.05, "optimizer.clip": 1, "device.threads": 1}
draw = random.Random(1)
SENTENCES = [[str(int(draw.paretovariate(0.7)) % 200) for _ in range(draw.randrange(30))] for _ in range(300)]
NAMED = {"u%d" % i: sentence for i, sentence in enumerate(SENTENCES)}
RATINGS = scipy.sparse.random(200, 60, 0.08, "csr", random_state=1)
RATINGS.data = numpy.ceil(5 * RATINGS.data)


def lines(rows):
    return "".join(" ".join(row) + "\n" for row in rows)


def fit(data, path, **more):
    keys = {**KEYS, **more.pop("keys", {})}
    with sptx.fit(data, path, dim=6, epochs=2, keys=keys, device="cpu", **more) as run:
        return [list(run.words), run.target.tobytes(), run.context.tobytes(), list(run.lists)]


@pytest.fixture
def as_file(tmp_path):
    """Returns a function that trains on a file of this text."""
    def train(text, **more):
        (tmp_path / "data.txt").write_text(text)
        return fit(tmp_path / "data.txt", tmp_path / "of-file", overwrite=True, **more)
    return train


# ---- the same data as a file ----

@pytest.mark.parametrize("keys", [{}, {"corpus.min_count": 1, "corpus.max_sentence": 7}, {"corpus.order": "first-seen"},
                                  {"corpus.order": "given"}, {"corpus.max_vocab": 20}])
def test_sentences(as_file, tmp_path, keys):
    file = as_file(lines(SENTENCES), keys=keys)
    assert fit((sentence for sentence in SENTENCES), tmp_path / "generator", keys=keys) == file
    assert fit([map(int, sentence) for sentence in SENTENCES], tmp_path / "integers", keys=keys) == file
    assert fit([numpy.array(sentence, int) for sentence in SENTENCES], tmp_path / "arrays", keys=keys) == file
    assert fit([tuple(map(str.encode, sentence)) for sentence in SENTENCES], tmp_path / "bytes", keys=keys) == file
    assert fit(pyarrow.table({"words": SENTENCES}), tmp_path / "arrow", keys=keys) == file


def test_a_slice_of_lists(as_file, tmp_path):
    """Only the lists of the slice are read."""
    table = pyarrow.table({"words": [["x", None], *SENTENCES, [None, "y"]]})
    assert fit(table.slice(1, len(SENTENCES)), tmp_path / "slice") == as_file(lines(SENTENCES))


def test_targets_and_contexts(as_file, tmp_path):
    file = as_file(lines(SENTENCES), format="adjacency")
    assert fit(SENTENCES, tmp_path / "run", format="adjacency") == file


def test_edges(as_file, tmp_path):
    sources, targets = edges = numpy.random.default_rng(1).integers(0, 50, (2, 400))
    nodes = {node: [str(node), *map(str, targets[sources == node])] for node in sorted(set(sources.tolist()))}
    file = as_file(lines(nodes.values()), format="adjacency")
    assert fit(edges, tmp_path / "array", format="adjacency") == file
    assert fit((sources.astype("i4"), targets), tmp_path / "pair", format="adjacency") == file
    graph = as_file("".join("%d %d\n" % tuple(edge) for edge in edges.T), format="graph", keys={"graph.weights": "no"})
    assert fit(edges, tmp_path / "graph", keys={"graph.weights": "no"}) == graph


@pytest.mark.parametrize("mode", ["list", "user"])
def test_lists(as_file, tmp_path, mode):
    keys = {"examples.mode": mode}
    file = as_file(lines([name, *items] for name, items in NAMED.items()), format="lists", keys=keys)
    assert fit(NAMED, tmp_path / "dict", keys=keys) == file
    assert fit(iter(NAMED.items()), tmp_path / "pairs", keys=keys) == file
    numbered = as_file(lines([str(i), *items] for i, items in enumerate(SENTENCES)), format="lists", keys=keys)
    assert fit(SENTENCES, tmp_path / "unnamed", format="lists", keys=keys) == numbered


@pytest.mark.filterwarnings("ignore:ratings 1 to 5 found in the matrix")
@pytest.mark.parametrize("mode", ["list", "user"])
def test_a_sparse_matrix(as_file, tmp_path, mode):
    keys = {"examples.mode": mode}
    rows = [numpy.flatnonzero(row) for row in RATINGS.toarray()]
    file = as_file(lines([str(user), *map(str, row)] for user, row in enumerate(rows)), format="lists", keys=keys)
    assert fit(RATINGS, tmp_path / "csr", keys=keys) == file
    assert fit(scipy.sparse.csr_array(RATINGS), tmp_path / "array", keys=keys) == file
    assert fit(RATINGS.todok(), tmp_path / "dok", keys=keys) == file
    named = as_file(lines(["u%d" % user, *map("i%d".__mod__, row)] for user, row in enumerate(rows)), format="lists", keys=keys)
    users, items = ["u%d" % user for user in range(200)], ["i%d" % item for item in range(60)]
    assert fit(RATINGS, tmp_path / "named", users=users, items=items, keys=keys) == named
    higher = [numpy.flatnonzero(row >= 3) for row in RATINGS.toarray()]
    file = as_file(lines([str(user), *map(str, row)] for user, row in enumerate(higher)), format="lists", keys=keys)
    assert fit(RATINGS, tmp_path / "higher", keys={**keys, "corpus.min_rating": 3}) == file


@pytest.mark.filterwarnings("ignore:left out   ")
@pytest.mark.parametrize("weights", ["linear", "log"])
def test_weights_of_a_matrix_and_of_a_frame(as_file, tmp_path, weights):
    """The values are the weights of pairs, as the third column of a file is. Entries of 0 are left out."""
    keys = {"corpus.weights": weights}
    matrix = RATINGS.copy()
    matrix.data[::7] = 0
    places = matrix.tocoo()
    rows = sorted(zip(places.row.tolist(), places.col.tolist(), places.data.tolist()))
    file = as_file("".join("%d,%d,%g\n" % row for row in rows), format="pairs", keys=keys)
    assert file != as_file("".join("%d,%d,%g\n" % row for row in rows), format="pairs", keys={"corpus.min_rating": 1})
    assert fit(matrix, tmp_path / "csr", keys=keys) == file
    assert fit(matrix.tocsc(), tmp_path / "csc", keys=keys) == file
    table = pyarrow.table({"user": [row[0] for row in rows], "item": [row[1] for row in rows], "plays": [row[2] for row in rows]})
    assert fit(table, tmp_path / "table", keys=keys) == file
    named = as_file("".join("u%d,i%d,%g\n" % row for row in rows if row[2] >= 2), format="pairs", keys=keys)
    users, items = ["u%d" % user for user in range(200)], ["i%d" % item for item in range(60)]
    assert fit(matrix, tmp_path / "named", users=users, items=items, keys={**keys, "corpus.min_rating": 2}) == named


@pytest.fixture
def ratings():
    places = RATINGS.tocoo()
    order = numpy.random.default_rng(1).permutation(places.nnz)
    movies = ["movie-%d-with-a-long-name" % item if item % 2 else "m%d" % item for item in places.col[order]]
    return pyarrow.table({"userId": places.row[order], "at": numpy.zeros(places.nnz), "movieId": movies,
                          "rating": places.data[order]})


@pytest.mark.parametrize("mode", ["list", "user"])
def test_arrow(as_file, tmp_path, ratings, mode):
    keys = {"examples.mode": mode, "corpus.min_rating": 3}
    users, _, movies, scores = map(list, ratings.to_pydict().values())
    file = as_file("".join("%d,%s,%g\n" % row for row in zip(users, movies, scores)), format="pairs", keys=keys)
    assert fit(ratings, tmp_path / "text", keys=keys) == file
    halves = pyarrow.concat_tables([ratings.slice(0, 100), ratings.slice(100)])
    assert fit(halves, tmp_path / "batches", keys=keys) == file
    for name, type in [("dictionary", pyarrow.dictionary(pyarrow.int8(), pyarrow.string())), ("view", pyarrow.string_view()),
                       ("large", pyarrow.large_string())]:
        other = halves.set_column(2, "movieId", pyarrow.chunked_array([part.cast(type) for part in halves["movieId"].chunks]))
        assert fit(other, tmp_path / name, keys=keys) == file
        named = other.rename_columns(["a", "b", "c", "d"])
        assert fit(named, tmp_path / ("columns-" + name), columns=("a", "c", "d"), keys=keys) == file


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(as_file, tmp_path, ratings, library):
    frames = pytest.importorskip(library)
    keys = {"corpus.min_rating": 3}
    users, _, movies, scores = map(list, ratings.to_pydict().values())
    file = as_file("".join("%d,%s,%g\n" % row for row in zip(users, movies, scores)), format="pairs", keys=keys)
    frame = ratings.to_pandas() if library == "pandas" else frames.from_arrow(ratings)
    assert fit(frame, tmp_path / "frame", keys=keys) == file
    assert fit(frame, tmp_path / "columns", columns=("userId", "movieId", "rating"), keys=keys) == file
    categories = (frame.astype({"movieId": "category"}) if library == "pandas" else
                  frame.with_columns(frames.col("movieId").cast(frames.Categorical)))
    assert fit(categories, tmp_path / "categories", keys=keys) == file


@pytest.mark.parametrize("kind", ["Graph", "DiGraph"])
def test_a_graph_of_networkx(as_file, tmp_path, kind):
    networkx = pytest.importorskip("networkx")
    graph = getattr(networkx, kind)(numpy.random.default_rng(1).integers(0, 50, (400, 2)).tolist())
    file = as_file(lines([str(node), *map(str, others)] for node, others in graph.adjacency() if others), format="adjacency")
    assert fit(graph, tmp_path / "graph", format="adjacency") == file
    keys = {"graph.directed": "yes" if graph.is_directed() else "no"}
    walked = as_file(lines([str(a), str(b)] for a, b in graph.edges()), format="graph", keys=keys)
    assert fit(graph, tmp_path / "walked") == walked


def test_tokens_may_have_spaces(as_file, tmp_path):
    titles = {name: ["The %s, or so" % item for item in items] for name, items in NAMED.items()}
    table = "".join('%s;"The %s, or so"\n' % (name, item) for name, items in NAMED.items() for item in items)
    file = as_file("user;title;book\n" + table.replace(";", ";;"), format="pairs")
    assert "The 1, or so" in file[0] and fit(titles, tmp_path / "run")[0] == file[0]
    places = [(name, item) for name, items in titles.items() for item in items]
    assert fit(pyarrow.table(dict(zip(("user", "item"), zip(*places)))), tmp_path / "arrow") == file


def test_tokens_keep_the_blanks_around_them(tmp_path):
    """Tokens of a byte-level encoding may differ only in a blank before them."""
    sentences = [[" lead", "x", "  ", "tr "]] * 30 + [["lead", "z", "lead", "tr"]] * 20
    run = sptx.fit(sentences, tmp_path / "run", dim=4, keys={**KEYS, "corpus.min_count": 1}, device="cpu")
    assert set(run.words) == {" lead", "lead", "x", "z", "  ", "tr ", "tr"}
    assert run.counts[run.row(" lead")] == 30 and run.counts[run.row("lead")] == 40
    assert not numpy.array_equal(run[" lead"], run["lead"])


# ---- what goes wrong ----

@pytest.mark.parametrize("data, options, error, sentence", [
    ([["a", "b\tc"]], {}, sptx.Error, "the token 'b..c' has a tab or a line's end in it"),
    ([["a", "b\n"]], {}, sptx.Error, "the token 'b.' has a tab or a line's end in it"),
    ([["a", "b"], ["a", ""]], {}, sptx.Error, "token 1 of sentence 1 is empty: leave empty tokens out"),
    (pyarrow.table({"words": [["a", ""]]}), {}, sptx.Error, "token 1 of sentence 0 is empty"),
    ([["a"], "b c"], {}, TypeError, "sentence 1 is the str 'b c'"),
    ([["a"], 3], {}, TypeError, "sentence 1 is a int, wanted an iterable"),
    ([["a", 1.5]], {}, TypeError, "the token 1.5 is a float"),
    ([[-1, 2]], {"keys": {"corpus.order": "given"}}, sptx.Error, "'-1' is not an id"),
    (iter(["a", "b"]), {}, TypeError, "the data begins with 'a'"),
    (3, {}, TypeError, "a int is no data"),
    ([["a", "b", "c"], ["a", "b"]], {"format": "pairs"}, TypeError, "row 1 is .*wanted a tuple of 3 fields, as the first one is"),
    ({"a": ["b"]}, {"format": "pairs"}, ValueError, "read as lists or documents"),
    ({"a": ["b", "c"], "": ["b"]}, {"keys": {"examples.mode": "user"}}, sptx.Error, "the name of list 1 is empty"),
    (scipy.sparse.eye(3), {"items": ["a", "b"]}, ValueError, "items = 2 names, and the matrix has 3 columns"),
    (scipy.sparse.eye(2), {"items": ["a", "a"]}, ValueError, "a name of items is there twice"),
    (pyarrow.table({"a": [1], "b": [2], "c": [3]}), {}, ValueError, "the table: 1 rows of 3 columns could be several things; say which by format=: pairs"),
    (pyarrow.table({"a": [1], "b": [2]}), {"columns": ("a", "x")}, ValueError, "no column 'x'; it has a, b"),
    (pyarrow.table({"user": [1], "item": [0.5]}), {}, TypeError, "the column of items holds float64 with 0.5, wanted text, whole numbers or categories"),
    (pyarrow.table({"user": [1], "item": [1]}), {"keys": {"corpus.min_rating": 1}}, sptx.Error, "have no ratings"),
    (pyarrow.table({"user": [1, 2], "item": [1, 2], "rating": [3, None]}), {"keys": {"corpus.min_rating": 1}}, sptx.Error,
     "pair 1 of the data, counted from 0, has no rating"),
    (pyarrow.table({"user": [1, 2], "item": pyarrow.DictionaryArray.from_arrays([0, 1], pyarrow.array([5, None]))}), {}, ValueError,
     "the dictionary of the column of items has an entry without a value"),
    ([("a", "b")], {"columns": ("a", "b")}, ValueError, r"the tuples has no column 'a'; it has no names: columns=\(1, 2\) counts from 1"),
    (scipy.sparse.eye(2, format="csr"), {"columns": ("a", "b")}, ValueError, "columns= names those of a table"),
    ([["a", "b"]], {"users": ["a"]}, ValueError, "users= and items= name the rows and columns of a matrix"),
    (scipy.sparse.coo_array(([1, 1], ([0, 1],)), shape=(5,)), {}, ValueError, "is no matrix of users x items"),
    (pyarrow.table({"user": [1, 2], "item": [1, 2], "rating": [2, float("nan")]}), {"keys": {"corpus.min_rating": 1}}, sptx.Error,
     "pair 1 of the data, counted from 0, has no rating"),
    (scipy.sparse.csr_matrix([[1, float("nan")]]), {"keys": {"corpus.min_rating": 1}}, ValueError, "NaN"),
    (scipy.sparse.csr_matrix([[1, float("nan")]]), {"keys": {"corpus.weights": "log"}}, sptx.Error, "pair 1 of the data, counted from 0, has no rating"),
    (scipy.sparse.csr_matrix([[1, -2.0]]), {"keys": {"corpus.weights": "linear"}}, sptx.Error, "the rating -2 of pair 1 of the data"),
    (pyarrow.table({"user": [1], "item": [1]}), {"keys": {"corpus.weights": "linear"}}, sptx.Error, "have no ratings"),
    ([["a", "b"]], {"keys": {"corpus.weights": "linear"}}, sptx.Error, "corpus.weights = linear needs corpus.format = pairs"),
    (pyarrow.table({"user": [-1], "item": [1]}), {}, ValueError, "token 0 is -1"),
    (numpy.zeros((2, 3)), {}, ValueError, r"an array of shape \(2, 3\) could be several things; say which by format="),
    (numpy.zeros((40, 12), int), {}, ValueError, r"an array of shape \(40, 12\) could be several things; say which by format="),
    (numpy.zeros((40, 12), int), {"format": "documents"}, ValueError, "of numbers holds no documents"),
    ([(1, 2), (3, 1)], {}, ValueError, "the tuples: 2 rows of 2 columns could be several things; say which by format="),
    ([["a", "b"]], {"keys": {"corpus.path": "x"}}, ValueError, "corpus.path = x"),
    ([], {}, sptx.Error, "is empty"),
    ([["a", "b"]], {"keys": {"device.gpus": 2}}, sptx.Error, "device.gpus = 2 begins a process for each GPU"),
    ([["a", "b"]], {"overwrite": True, "resume": True}, ValueError, "choose one"),
])
def test_what_is_no_data(tmp_path, data, options, error, sentence):
    with pytest.raises(error, match=sentence):
        fit(data, tmp_path / "run", **{**options, "keys": {"corpus.min_count": 1, **options.get("keys", {})}})
    assert not (tmp_path / "run" / "vocab.tsv").exists()


def damaged(matrix, **arrays):
    """Sets one index of each named array to a bad value; SciPy does not check it."""
    for name, (place, value) in arrays.items():
        getattr(matrix, name)[place] = value
    return matrix


@pytest.mark.parametrize("matrix, format, sentence", [
    (damaged(scipy.sparse.csr_matrix(numpy.ones((4, 3))), indices=(2, 7)), None, "entry 2 of the sparse matrix is in column 7"),
    (damaged(scipy.sparse.csr_matrix(numpy.ones((4, 3))), indices=(5, -1)), None, "entry 5 of the sparse matrix is in column -1"),
    (damaged(scipy.sparse.csc_matrix(numpy.ones((4, 3))), indices=(1, 4)), None, "entry 1 of the sparse matrix is in row 4"),
    (damaged(scipy.sparse.csr_matrix(numpy.ones((4, 3))), indptr=(4, 13)), None, "indptr of the sparse matrix"),
    (damaged(scipy.sparse.csr_matrix(numpy.ones((4, 3))), indptr=(1, 9)), None, "indptr of the sparse matrix"),
    (damaged(scipy.sparse.csr_matrix(numpy.ones((4, 4))), indices=(1, 9)), "graph", "entry 1 of the sparse matrix is in column 9"),
    (damaged(scipy.sparse.coo_matrix(numpy.ones((4, 4))), row=(0, 4)), "graph", "entry 0 of the sparse matrix is in row 4"),
])
def test_a_sparse_matrix_that_does_not_fit_its_shape(tmp_path, matrix, format, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit(matrix, tmp_path / "run", format=format)


class Rows:
    """An Arrow stream of a struct array in which whole rows can be null."""

    def __init__(self, *missing):
        rows = [pyarrow.array(["u1", "u1", "u2", "u2"]), pyarrow.array(["a", "b", "a", "c"])]
        mask = pyarrow.array([row in missing for row in range(4)])
        self._array = pyarrow.StructArray.from_arrays(rows, names=["user", "item"], mask=mask)

    def __arrow_c_stream__(self, requested_schema=None):
        return pyarrow.chunked_array([self._array]).__arrow_c_stream__(requested_schema)


def test_rows_that_a_stream_marks_as_null_are_refused(tmp_path):
    said_of(Rows(), tmp_path / "all")  # warns only that four tokens are too few
    with pytest.raises(ValueError, match="row 2 has no value in any column"):
        fit(Rows(2, 3), tmp_path / "run", keys={"corpus.min_count": 1})


@pytest.mark.parametrize("raised, sentence", [(KeyboardInterrupt, "nothing was written"), (ZeroDivisionError, None)])
def test_an_exception_of_the_iterable_leaves_no_trace(tmp_path, raised, sentence):
    def sentences():
        yield from SENTENCES * 20
        raise raised
    with pytest.raises(raised, match=sentence):
        fit(sentences(), tmp_path / "run")
    assert not list(pathlib.Path(tmp_path).iterdir())


def test_a_run_that_is_there_is_refused_before_data_is_read(tmp_path):
    first = fit(SENTENCES, tmp_path / "run")
    generator = iter(SENTENCES)
    with pytest.raises(ValueError, match="holds a run: overwrite=True"):
        fit(generator, tmp_path / "run")
    assert next(generator) is SENTENCES[0]
    assert fit(SENTENCES, tmp_path / "run", overwrite=True) == first


def test_the_format_may_be_a_key(tmp_path):
    assert fit(SENTENCES, tmp_path / "key", keys={"corpus.format": "lists"}) == fit(SENTENCES, tmp_path / "named", format="lists")
    with pytest.raises(ValueError, match="format = 'pairs'"):
        fit({"a": ["b"]}, tmp_path / "run", keys={"corpus.format": "pairs"})
    with pytest.raises(ValueError, match="run.dir"):
        fit(SENTENCES, tmp_path / "run", keys={"run.dir": tmp_path / "other"})


@pytest.mark.parametrize("progress, lines", [(None, 1), (False, 0), (True, 2)])
def test_one_line_shows_where_training_stands(tmp_path, capsys, progress, lines):
    run = sptx.fit(SENTENCES, tmp_path / "run", dim=6, keys={**KEYS, "train.report_seconds": 0.01}, progress=progress)
    shown = capsys.readouterr().err
    assert isinstance(run, sptx.Run) and shown.count("\n") == lines and ("100.0%" in shown) == (progress is True)
    assert ("columns    word = token" in shown) == (progress is not False)


def test_a_run_goes_on_with_the_same_data(tmp_path):
    whole = fit(SENTENCES, tmp_path / "whole")
    sptx.fit(iter(SENTENCES), tmp_path / "run", dim=6, epochs=2, keys={**KEYS, "train.report_seconds": 0.01}, device="cpu",
             progress=lambda _: True)
    assert fit(iter(SENTENCES), tmp_path / "run", resume=True) == whole


def test_a_grown_run_keeps_the_older_ones_words(tmp_path):
    old = [["a", "b", "c", "d"] * 3] * 20
    first = {"corpus.min_count": 1, "examples.subsample": 0}
    keys = {**first, "optimizer.lr": 0, "train.from": str(tmp_path / "old")}
    with sptx.fit(old, tmp_path / "old", dim=4, keys=first, device="cpu", progress=False) as before, \
            sptx.fit([["a", "b", "new"]] * 10, tmp_path / "new", dim=4, keys=keys, device="cpu", progress=False) as after, \
            sptx.fit([["a", "b", "new"]] * 10, tmp_path / "few", dim=4, keys={**keys, "train.from_words": "drop"}, device="cpu",
                     progress=False) as few:
        assert set(after.words) == {"a", "b", "c", "d", "new"} and set(few.words) == {"a", "b", "new"}
        assert dict(zip(after.words, after.counts)) == {"a": 70, "b": 70, "c": 60, "d": 60, "new": 10}
        assert numpy.array_equal(after.vectors(["c", "a"]), before.vectors(["c", "a"]))


# ---- warnings about unused data ----

PAIRS = {"user": [i % 9 for i in range(90)], "item": [i * 7 % 11 for i in range(90)]}
SAID = {"corpus.min_count": 1, "negatives.count": 2}


def said_of(data, path, **more):
    with pytest.warns(sptx.SptxWarning) as said:
        found = fit(data, path, keys=SAID, overwrite=True, **more)
    assert {one.filename for one in said} == {__file__}
    return found, [str(one.message) for one in said]


def test_ratings_are_said_as_the_program_says_them(tmp_path, capsys):
    """A warning says that ratings are not used, whatever their column is called, for tables and files."""
    table = pyarrow.table({**PAIRS, "rating": [1 + i % 5 for i in range(90)]})
    sentence = ["ratings 1 to 5 found: all count alike; corpus.min_rating = 4 keeps the higher ones, about 40 in 100"]
    assert said_of(table, tmp_path / "run")[1] == sentence
    (tmp_path / "pairs.csv").write_text("".join("%d,%d,%d\n" % row for row in zip(*table.to_pydict().values())))
    assert said_of(tmp_path / "pairs.csv", tmp_path / "run", format="pairs")[1] == sentence
    fit(table, tmp_path / "run", keys={**SAID, "corpus.min_rating": 4}, overwrite=True)  # no warning if ratings are used
    plays = table.rename_columns(["user", "item", "plays of a week"])
    fit(plays, tmp_path / "run", keys=SAID, overwrite=True)
    assert "columns    list = user, item = item, rating = none of 3; the table\n" in capsys.readouterr().err
    assert said_of(plays, tmp_path / "run", columns=("user", "item", "plays of a week"))[1] == sentence


def test_entries_of_a_matrix_that_are_left_out_are_counted(tmp_path):
    matrix = scipy.sparse.csr_matrix(numpy.array([[5, 1, 3], [2, 2, 1], [1, -1, 4]], float))
    matrix.data[1] = 0
    found, said = said_of(matrix, tmp_path / "run")
    assert said == ["entries of the matrix are left out: 1 stored zeros, 1 negative values",
                    "ratings 1 to 5 found in the matrix: all count alike; corpus.min_rating leaves lower ones out, corpus.weights = log "
                    "weighs by them"]
    without = scipy.sparse.csr_matrix(matrix.toarray() > 0)
    assert fit(without, tmp_path / "run", keys=SAID, overwrite=True) == found


@pytest.mark.parametrize("kind", [None, str, "category"])
def test_whole_floats_are_integers_and_their_gaps_are_left_out(tmp_path, kind):
    """pandas converts integers to float64 if one is missing."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(PAIRS).astype({"item": float})
    whole = fit(pandas.DataFrame(PAIRS), tmp_path / "run", keys=SAID)
    assert fit(frame, tmp_path / "run", keys=SAID, overwrite=True) == whole
    frame.loc[[3, 5], "item"] = numpy.nan
    kept = pandas.DataFrame(PAIRS).drop(index=[3, 5])
    typed = frame.astype({"user": kind}) if kind else frame
    found, said = said_of(typed, tmp_path / "run")
    assert found == fit(kept, tmp_path / "run", keys=SAID, overwrite=True)
    assert said == ["2 of 90 rows have no value in the column item and are left out, as frame.dropna(subset=['item']).astype("
                    "{'item': 'int64'}) does"]


@pytest.mark.parametrize("value, name", [("2020-01-01", r"datetime64\["), (1, r"timedelta64\["), (True, "bool"), ([1], "lists"),
                                         (0.5, "float64 with 0.5")])
def test_a_column_that_is_no_name_is_refused_by_its_pandas_type(tmp_path, value, name):
    pandas = pytest.importorskip("pandas")
    kinds = {"2020-01-01": pandas.Timestamp, 1: pandas.Timedelta}
    value = kinds[value](value) if not isinstance(value, list) and value is not True and value in kinds else value
    frame = pandas.DataFrame(PAIRS).assign(item=[value] * 90)
    with pytest.raises(TypeError, match="the column of items holds " + name):
        sptx.fit(frame, tmp_path / "run", device="cpu")


def test_a_series_of_lists(tmp_path):
    pandas = pytest.importorskip("pandas")
    lists = pandas.DataFrame(PAIRS).groupby("user")["item"].apply(list)
    named = fit({str(user): items for user, items in lists.items()}, tmp_path / "named")
    assert fit(lists, tmp_path / "series") == named
    assert fit(pandas.DataFrame(PAIRS).astype(float).groupby("user")["item"].apply(list), tmp_path / "floats") == named
    sentences = pandas.Series([" ".join(sentence) for sentence in SENTENCES])
    assert fit(sentences.str.split(), tmp_path / "split") == fit(SENTENCES, tmp_path / "sentences")
    with pytest.raises(TypeError, match="text.split"):
        fit(sentences, tmp_path / "texts")
    assert fit(pyarrow.chunked_array([SENTENCES]), tmp_path / "column") == fit(SENTENCES, tmp_path / "list")


@pytest.mark.parametrize("toy", ["I like cats", "cats", ["I like cats", "you like dogs"], ["cats", "dogs"]])
def test_a_text_in_the_place_of_a_path_gets_a_sentence_for_beginners(tmp_path, toy):
    with pytest.raises(ValueError, match="is no file. A text is given as a list of sentences, each a list of its words"):
        fit(toy, tmp_path / "run")


def test_three_rows_are_too_few_to_learn_from(tmp_path):
    table = pyarrow.table({"user": ["a", "b", "c"], "item": ["x", "y", "z"]})
    assert "3 tokens in all, too few to learn from" in said_of(table, tmp_path / "run")[1][-1]


def test_ids_are_asked_for_as_they_went_in(tmp_path):
    run = sptx.fit(pyarrow.table(PAIRS), tmp_path / "run", dim=4, keys=SAID, device="cpu")
    assert 3 in run and 3 in run.words and numpy.int32(3) in run and b"3" in run and 3.0 in run and 11 not in run and 3.5 not in run
    assert run.nearest(3) == run.nearest("3") and run.nearest([3, 4]) == run.nearest(["3", "4"]) == run.nearest(numpy.array([3, 4]))
    assert numpy.array_equal(run[3], run["3"]) and numpy.array_equal(run[[3, 4]], run.vectors(["3", "4"]))
    assert numpy.array_equal(run.vectors(numpy.array([3, 4])), run.vectors([3, 4])) and run.row(3) == run.words.index("3")
    assert run.recommend([3, 4]) == run.recommend(["3", "4"]) == run.recommend(numpy.array([3, 4]))
    assert run.similarity(3, 4) == run.similarity("3", "4") and run.analogy(3, 4, 5) == run.analogy("3", "4", "5")
    assert run.most_similar(3) == run.most_similar("3") and run.most_similar([(3, 2.0)], 4) == run.most_similar([("3", 2.0)], "4")
    with pytest.raises(KeyError, match="'11' is no word"):
        run.nearest(11)


# ---- columns= with files ----

def test_columns_of_a_file(tmp_path, capsys):
    path = tmp_path / "shop.csv"
    path.write_text("order,who,what,n\n" + "".join(f"{i},u{i % 9},item {i % 7},{i % 4}\n" for i in range(90)))
    keys = {"negatives.count": 2}
    found = fit(path, tmp_path / "names", columns=("who", "what"), keys=keys)
    assert capsys.readouterr().err.count("columns    list = who, item = what, rating = none of 4; commas, a header\n") == 1
    assert fit(path, tmp_path / "numbers", columns=(2, 3), keys=keys) == found
    assert capsys.readouterr().err.count("columns    ") == 1
    with pytest.raises(sptx.Error, match="no column of its header is called 'whom'"):
        fit(path, tmp_path / "none", columns=("whom", "what"))
    for columns in ("who", ("who",), ("a", "b", "c", "d")):
        with pytest.raises(ValueError, match="wanted two or three names"):
            fit(path, tmp_path / "none", columns=columns)
    edges = tmp_path / "edges.csv"
    edges.write_text("".join(f"n{i},likes,n{i * 7 % 10}\n" for i in range(30)))
    sptx.fit(edges, tmp_path / "graph", columns=(1, 3), format="graph", dim=4, device="cpu", progress=False)
    assert capsys.readouterr().err == ""


ROWS = [("u%d" % (i % 20), "i%d" % (i * 7 % 15)) for i in range(300)]
IDS = numpy.array([[i % 20, i * 7 % 15] for i in range(300)])
ONES = numpy.array([[int((i + j * j) % 3 == 0) for j in range(12)] for i in range(40)])
FACTS = [("e%d" % (i % 20), "r%d" % (i % 3), "e%d" % (i * 7 % 20)) for i in range(300)]
DOCUMENTS = [("d%d" % i, " ".join("w%d" % (i * j % 9) for j in range(12))) for i in range(40)]


@pytest.mark.filterwarnings("ignore:repeated", "ignore:left out")
@pytest.mark.parametrize("data, options, said, words, lists", [
    (ROWS, {}, "list = column 1, item = column 2, rating = none; the tuples", 15, 20),
    ([list(row) for row in ROWS], {"format": "pairs"}, "list = column 1, item = column 2, rating = none; the tuples", 15, 20),
    ([(*row, 2.0) for row in ROWS], {}, "list = column 1, item = column 2, rating = column 3; the tuples", 15, 20),
    ([("x", *row) for row in ROWS], {"columns": (2, 3)}, "list = column 2, item = column 3, rating = none of 3; the tuples", 15, 20),
    ([(*row, i % 2) for i, row in enumerate(ROWS)], {}, "rating = column 3 (lines of 0 are left out); the tuples", 15, 10),
    ([(*row, ("view", "buy")[i % 2]) for i, row in enumerate(ROWS)], {"keys": {"corpus.events": "buy"}}, "event = column 3 (only buy)", 15, 10),
    (FACTS, {}, "head = column 1, relation = column 2, tail = column 3; the tuples", 20, 6),
    ([(a, c, b) for a, b, c in FACTS], {}, "head = column 1, relation = column 3, tail = column 2", 20, 6),
    (DOCUMENTS, {}, "document = column 1, text = column 2; the tuples", 9, 40),
    (IDS, {"format": "pairs"}, "list = column 1, item = column 2, rating = none; the array of shape [300, 2]", 15, 20),
    ((IDS[:, 0], IDS[:, 1]), {"format": "pairs"}, "list = column 1, item = column 2, rating = none; the arrays", 15, 20),
    (ONES, {"format": "lists"}, "list = row, item = column, rating = entry; a matrix of 40 x 12", 12, 40),
    (ONES * 1.5, {"format": "pairs"}, "list = row, item = column, weight = entry; a matrix of 40 x 12", 12, 27),
    (pyarrow.table(dict(zip(("id", "text"), zip(*DOCUMENTS)))), {}, "document = id, text = text; the table", 9, 40),
    (pyarrow.table({"text": [text for _, text in DOCUMENTS]}), {"format": "documents"}, "document = row, text; a column of text", 9, 40),
    (pyarrow.table(dict(zip(("a", "b"), IDS.T))), {"columns": ("b", "a")}, "list = b, item = a, rating = none; the table", 20, 15),
    ({"a": ["x", "y", "z"] * 9, "b": ["x", "y"] * 9}, {}, "list = name, item = token; named lists", 3, 2),
])
def test_what_data_was_taken_for_is_said(tmp_path, capsys, data, options, said, words, lists):
    keys = {"corpus.min_count": 1, "model.dim": 4, **options.pop("keys", {})}
    run = sptx.fit(data, tmp_path / "run", device="cpu", keys=keys, **options)
    line = capsys.readouterr().err.splitlines()[0]
    assert line.startswith("columns    ") and said in line and run.about == line
    assert (len(run), len(run.lists)) == (words, lists)
    options["keys"] = keys


def test_a_matrix_is_scipys_whatever_holds_it(tmp_path):
    assert fit(ONES, tmp_path / "dense", format="lists") == fit(scipy.sparse.csr_matrix(ONES), tmp_path / "sparse")
    square = (ONES[:12] | ONES[:12].T)
    assert fit(square, tmp_path / "graph", format="graph") == fit(scipy.sparse.csr_matrix(square), tmp_path / "edges", format="graph")
    assert fit(DOCUMENTS, tmp_path / "tuples") == fit({name: text.split() for name, text in DOCUMENTS}, tmp_path / "dict", format="documents")


# ---- what strangers handed over ----

SMALL = {**KEYS, "corpus.min_count": 1, "model.dim": 4, "train.epochs": 1, "negatives.exclude": False}
ROWS = {"user": [1, 1, 2, 2, 3, 3], "item": ["a", "b", "a", "c", "b", "c"]}


@pytest.mark.parametrize("format", [None, "lists", "pairs"])
def test_a_wide_frame_is_a_matrix(tmp_path, format):
    pandas = pytest.importorskip("pandas")
    wide = pandas.DataFrame(numpy.eye(6, 100, dtype=int), columns=["i%d" % i for i in range(100)])
    with pytest.raises(ValueError, match="the table has 100 columns.*csr_matrix.*items=list"):
        sptx.fit(wide, tmp_path / "run", format=format)
    with pytest.raises(ValueError, match="20 columns of 0 and 1 are a matrix.*csr_matrix"):
        sptx.fit(wide.iloc[:, :20], tmp_path / "run", format="pairs")


def test_a_guess_offers_what_a_frame_can_be(tmp_path):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"triples \(head, relation, tail\) or documents \(document, text\)$"):
        sptx.fit(pandas.DataFrame({"x": [1, 2], "y": [3, 4], "z": [5, 6], "w": [7, 8]}), tmp_path / "run")


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize("column", ["user", "item"])
def test_rows_without_a_value_are_left_out(tmp_path, column, missing):
    pandas = pytest.importorskip("pandas")
    rows = {name: values * 4 for name, values in ROWS.items()}
    rows[column] = [missing if i % 6 == 0 else value for i, value in enumerate(rows[column])]
    frame = pandas.DataFrame(rows)
    for kind in frame, frame.astype({"item": "category"}):
        with pytest.warns(sptx.SptxWarning, match="4 of 24 rows have no value in the column %s and are left out" % column):
            run = sptx.fit(kind, tmp_path / "run", keys=SMALL, device="cpu", overwrite=True, progress=False)
        assert sorted(run.words) == ["a", "b", "c"] and run.counts.sum() == 5 * 4


def test_values_that_cannot_be_are_named_by_their_row(tmp_path):
    frame = [("u%d" % (i % 7), "v%d" % (i % 5), -1 if i == 70_000 else 2) for i in range(70_001)]
    with pytest.raises(sptx.Error, match="the rating -1 of pair 70000 of the data"):
        sptx.fit(frame, tmp_path / "run", format="pairs", keys={"corpus.weights": "log"})
    with pytest.raises(sptx.Error, match="weight -1 of edge 70000 of the data.*graph.weights = no"):
        sptx.fit(frame, tmp_path / "run", format="graph")


def test_series_and_lists_in_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    with pytest.raises(TypeError, match=r"frame.explode\('item'\)"):
        sptx.fit(frame.groupby("user").item.apply(list).reset_index(), tmp_path / "run")
    with pytest.raises(ValueError, match=r"series.reset_index\(name='n'\)"):
        sptx.fit(frame.groupby(["user", "item"]).size(), tmp_path / "run")
    with pytest.raises(ValueError, match="a Series of numbers holds no lists: wanted"):
        sptx.fit(frame.user, tmp_path / "run")
    with pytest.raises(ValueError, match=r"'a text of many words.{37}\.\.' is no file"):
        sptx.fit(["a text of many words " * 9], tmp_path / "run", format="documents")


def test_an_attribute_of_edges_that_is_not_used_is_said(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_weighted_edges_from([(i, (i + 1) % 9, i + 1) for i in range(9)], weight="value")
    with pytest.warns(sptx.SptxWarning, match="edges have the attribute 'value', which is not used: weights='value' takes it"):
        sptx.fit(graph, tmp_path / "run", keys={"model.dim": 4}, epochs=1, device="cpu", progress=False)


def test_events_are_warned_of_once(tmp_path, recwarn):
    pairs = [("u%d" % (i % 70), "v%d" % (i % 50), "view" if i % 2 else "buy") for i in range(140_000)]
    run = sptx.fit(pairs, tmp_path / "run", keys={**SMALL, "corpus.events": "buy"}, device="cpu", progress=False)
    said = [str(one.message) for one in recwarn if "corpus.events" in str(one.message)]
    assert said == ["left out 70000 of 140000 pairs, whose event corpus.events does not name"] and run.counts.sum() == 70_000


def test_sentences_are_said(tmp_path):
    run = sptx.fit([["a", "b", "c", "d", "e", "f"]] * 40, tmp_path / "run", keys=SMALL, device="cpu", progress=False)
    assert run.about == "columns    word = token; a sentence an element"


def test_rows_that_may_be_something_else_are_warned_of_once(tmp_path):
    pandas = pytest.importorskip("pandas")
    users = pandas.DataFrame({"user_id": [1, 7, 2], "movie_id": [7, 2, 3]})
    nulls = pandas.DataFrame({"user": ["a", "a", "b", "b", "c"], "item": ["x", "null", "null", "y", "z"]})
    for frame, options, sign in ((users, {"format": "graph"}, "user_id and movie_id look like two kinds"), (nulls, {}, "the item 'null' 2 times")):
        with pytest.warns(sptx.SptxWarning) as told:
            sptx.fit(frame, tmp_path / "run", dim=4, epochs=1, overwrite=True, progress=False, keys={"negatives.exclude": "no"}, **options)
        assert sum(sign in str(each.message) for each in told) == 1
    with pytest.raises(ValueError, match="column 2 holds whole lists, with blanks between"):
        sptx.fit(pandas.DataFrame({"user": [1, 2, 3], "item": ["1 2 3", "4 5 6", "7 8"]}), tmp_path / "no")


@pytest.mark.parametrize("keys, sentence", [({"examples.mode": "walks"}, "^settings: examples.mode = 'walks' is not"),
                                            ({"walks.length": 5}, "walks.length = 5 has no effect without examples.mode = walk")])
def test_keys_that_do_not_fit(tmp_path, keys, sentence):
    with pytest.raises((ValueError, sptx.Error), match=sentence):
        sptx.fit([("a", "r", "b"), ("b", "r", "c")], tmp_path / "run", format="triples", keys=keys, device="cpu", progress=False)
    assert not (tmp_path / "run").exists()
