"""fit: a graph in memory gives the same bytes, graph and vectors, as a file of the same edges."""

import numpy
import pytest

import sptx

DRAW = numpy.random.default_rng(1)
ENDS = DRAW.integers(0, 60, (2, 500))  # the edges contain duplicates and self-loops
WEIGHTS = DRAW.integers(0, 5, 500) / 4  # some weights are 0
KEYS = {"train.update": "batch", "train.batch": 64, "device.threads": 2, "negatives.count": 2, "walks.length": 8, "walks.per_node": 2}
HEADER = 128  # bytes of a graph's file that tell what it was made of


def fit(data, path, **more):
    """Trains on a graph. Returns the bytes of the graph's file, and the vectors."""
    keys = {**KEYS, **more.pop("keys", {})}
    with sptx.fit(data, path, dim=4, epochs=1, keys=keys, device="cpu", **more) as run:
        arcs = (path / "corpus.graph").read_bytes()[HEADER:]
        return [list(run.words), arcs, run.target.tobytes(), run.context.tobytes()]


@pytest.fixture
def as_file(tmp_path):
    """Returns a function that trains on a file of these edges."""
    def train(edges, **more):
        (tmp_path / "edges.txt").write_text("".join(" ".join(map(str, edge)) + "\n" for edge in edges))
        return fit(tmp_path / "edges.txt", tmp_path / "of-file", format="graph", overwrite=True, **more)
    return train


@pytest.mark.parametrize("keys", [{}, {"graph.directed": "yes"}, {"corpus.min_count": 15}, {"corpus.max_vocab": 30},
                                  {"corpus.order": "given"}])
def test_arrays(as_file, tmp_path, keys):
    file = as_file(zip(*ENDS), keys=keys)
    assert fit(ENDS, tmp_path / "array", format="graph", keys=keys) == file
    assert fit(ENDS.T, tmp_path / "turned", keys={**keys, "corpus.format": "graph"}) == file
    assert fit((ENDS[0].astype("i4"), ENDS[1]), tmp_path / "pair", format="graph", keys=keys) == file
    assert fit(zip(*ENDS.tolist()), tmp_path / "iterable", format="graph", keys=keys) == file


def test_weights(as_file, tmp_path):
    file = as_file(zip(*ENDS, WEIGHTS))
    assert fit(ENDS, tmp_path / "array", weights=WEIGHTS) == file
    assert fit(zip(*ENDS.tolist(), WEIGHTS.tolist()), tmp_path / "iterable", format="graph") == file
    none = as_file(zip(*ENDS, WEIGHTS), keys={"graph.weights": "no"})
    assert fit(ENDS, tmp_path / "no", weights=WEIGHTS, keys={"graph.weights": "no"}) == none
    assert none[1] != file[1]


def test_names_of_any_kind(as_file, tmp_path):
    names = ["Zoë", "b", "#c", "1.5", "\N{GREEK SMALL LETTER PI}"]
    edges = [(names[a % 5], names[b % 5]) for a, b in ENDS.T if a % 5 != 2]  # a line of a file that begins with # is a comment
    assert fit(edges, tmp_path / "text", format="graph") == as_file(edges)
    assert fit([(a.encode(), b) for a, b in edges], tmp_path / "bytes", format="graph") == as_file(edges)


def test_tables(as_file, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    names = [["n%d" % node for node in ends] for ends in ENDS.tolist()]
    file, none = as_file(zip(*names, WEIGHTS)), as_file(zip(*names))
    table = pyarrow.table({"weight": WEIGHTS, "at": WEIGHTS, "dst": names[1], "src": names[0]})
    halves = pyarrow.concat_tables([table.slice(0, 100), table.slice(100)])
    assert fit(table, tmp_path / "text", format="graph") == file
    assert fit(halves, tmp_path / "batches", format="graph") == file
    assert fit(table, tmp_path / "two", format="graph", columns=("src", "dst")) == none
    kind = pyarrow.dictionary(pyarrow.int8(), pyarrow.string())
    for column, name in ((2, "dst"), (3, "src")):
        halves = halves.set_column(column, name, pyarrow.chunked_array([part.cast(kind) for part in halves[name].chunks]))
    assert fit(halves, tmp_path / "dictionaries", format="graph") == file
    assert fit(pyarrow.table({"a": ENDS[0], "b": ENDS[1]}), tmp_path / "numbers", format="graph") == as_file(zip(*ENDS))


def test_a_sparse_matrix(as_file, tmp_path):
    scipy = pytest.importorskip("scipy.sparse")
    matrix = scipy.coo_matrix((WEIGHTS + 1, ENDS), (60, 60)).tocsr().tocoo()
    assert fit(matrix, tmp_path / "weighted", format="graph") == as_file(zip(matrix.row, matrix.col, matrix.data))
    matrix.data[:] = 2
    assert fit(matrix.tocsc().tocsr(), tmp_path / "alike", format="graph") == as_file(zip(matrix.row, matrix.col))


@pytest.mark.torch
def test_tensors(tmp_path):
    """torch_geometric's edge_index and edge_weight."""
    torch = pytest.importorskip("torch")
    wanted = fit(ENDS, tmp_path / "arrays", weights=WEIGHTS)
    assert fit(torch.tensor(ENDS), tmp_path / "index", weights=torch.tensor(WEIGHTS)) == wanted
    assert fit(tuple(torch.tensor(ENDS)), tmp_path / "pair", weights=torch.tensor(WEIGHTS)) == wanted


class Networkx:
    """A graph with the methods of networkx's graphs that fit() calls."""

    def __init__(self, edges, directed):
        self._edges, self._directed = edges, directed

    def adjacency(self):
        raise AssertionError("edges are asked for")

    def is_directed(self):
        return self._directed

    def edges(self, data):
        return [(a, b, facts.get(data)) for a, b, facts in self._edges]


@pytest.mark.parametrize("directed", [False, True])
def test_what_networkx_has(as_file, tmp_path, directed):
    yes = {"graph.directed": "yes" if directed else "no"}
    plain = Networkx([(a, b, {}) for a, b in ENDS.T.tolist()], directed)
    weighted = Networkx([(a, b, {"weight": w, "cost": 1 + a}) for a, b, w in zip(*ENDS.tolist(), WEIGHTS.tolist())], directed)
    assert fit(plain, tmp_path / "plain", format="graph") == as_file(zip(*ENDS), keys=yes)
    assert fit(weighted, tmp_path / "weighted", format="graph") == as_file(zip(*ENDS, WEIGHTS), keys=yes)
    assert fit(weighted, tmp_path / "cost", weights="cost") == as_file(zip(*ENDS, 1 + ENDS[0]), keys=yes)
    told = {"graph.directed": "no" if directed else "yes"}
    assert fit(plain, tmp_path / "told", format="graph", keys=told) == as_file(zip(*ENDS), keys=told)


@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
def test_networkx(as_file, tmp_path, kind):
    networkx = pytest.importorskip("networkx")
    graph = getattr(networkx, kind)()
    graph.add_weighted_edges_from(zip(*ENDS.tolist(), (WEIGHTS + 1).tolist()))
    keys = {"graph.directed": "yes" if graph.is_directed() else "no"}
    weights = {}
    for a, b, weight in graph.edges(data="weight"):  # weights of parallel edges are added
        weights[a, b] = weights.get((a, b), 0) + weight
    file = as_file(((a, b, weight) for (a, b), weight in weights.items()), keys=keys)
    assert fit(graph, tmp_path / "graph", format="graph") == file


@pytest.mark.parametrize("kind", ["MultiGraph", "MultiDiGraph"])
def test_parallel_edges_of_networkx_weigh_as_in_its_adjacency(as_file, tmp_path, kind):
    networkx = pytest.importorskip("networkx")
    graph = getattr(networkx, kind)([("x", "a"), ("x", "b"), ("x", "a"), ("a", "b"), ("x", "a")])
    keys = {"graph.directed": "yes" if graph.is_directed() else "no"}
    assert fit(graph, tmp_path / "graph") == as_file([("x", "a", 3), ("x", "b", 1), ("a", "b", 1)], keys=keys)
    single = getattr(networkx, kind)([("x", "a"), ("x", "b")])
    assert fit(single, tmp_path / "single") == as_file([("x", "a"), ("x", "b")], keys=keys)


def test_nodes_without_an_edge_are_counted_aloud(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([("a", "b"), ("b", "c"), ("loop", "loop")])
    graph.add_node("alone")
    with pytest.warns(sptx.SptxWarning, match="2 of 5 nodes have no edge to another node and are left out: 'loop', 'alone'") as said:
        fit(graph, tmp_path / "graph")
    assert said[0].filename == __file__
    matrix = pytest.importorskip("scipy.sparse").csr_matrix([[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    with pytest.warns(sptx.SptxWarning, match="1 of 3 nodes have no edge to another node and are left out, beginning with row 2"):
        fit(matrix, tmp_path / "matrix", format="graph")


def test_what_is_no_graph(tmp_path):
    def refused(error, text, data, **more):
        with pytest.raises(error, match=text):
            fit(data, tmp_path / "run", **{"format": "graph", **more})
        assert not (tmp_path / "run").exists()

    refused(ValueError, "shape of", numpy.zeros((3, 4), int))
    refused(ValueError, "two arrays of integers", ENDS.astype(float))
    refused(ValueError, "wanted 500 numbers", ENDS, weights=WEIGHTS[1:])
    refused(ValueError, "weights= are those of edges", ENDS, weights=WEIGHTS, format="adjacency")
    refused(ValueError, "third column", str(tmp_path / "edges.txt"), weights=WEIGHTS)
    refused(ValueError, "third column", [("a", "b")], weights=[1])
    refused(ValueError, "columns= names parts", ENDS, columns=("a", "b"))
    refused(ValueError, "wanted nodes x nodes", pytest.importorskip("scipy.sparse").eye(3, 4))
    table = pytest.importorskip("pyarrow").table({"a": [1], "b": [2], "c": [3]})
    refused(ValueError, "weights= of a table or of tuples are their third column", table, weights=[1])
    refused(ValueError, "format = .graph.: this data is read as", table, columns=["a"])
    refused(TypeError, "row 1 is .c., wanted a tuple of 2 fields", [("a", "b"), "c"])
    refused(TypeError, "row 1 is .* wanted a tuple of 2 fields, as the first one is", [("a", "b"), ("b", "c", 2)])
    refused(TypeError, "holds no graph", 7)
    refused(ValueError, "has no attribute 'weight'", Networkx([(1, 2, {"weight": 1}), (2, 3, {})], False))
    refused(TypeError, "name of its edges' attribute", Networkx([], False), weights=[1])
    refused(sptx.Error, "the corpus that was given is empty: no edge", [(1, 1)])
    refused(sptx.Error, "weight -1 of edge 1", [(1, 2, 1), (2, 3, -1)])
    refused(sptx.Error, "weight nan of edge 1", [(1, 2, 1.0), (2, 3, float("nan"))])
    refused(sptx.Error, "the edges have none", [(1, 2)], keys={"graph.weights": "yes"})
