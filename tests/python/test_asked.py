"""Questions to a run that need more than its rows. Each answer must be what the program prints, to the last digit."""

import os
import random
import re
import subprocess

import numpy
import pytest

import sptx
from conftest import TOP

SETTINGS = {"corpus.path": str(TOP / "corpora" / "tiny.txt"), "corpus.min_count": 1, "examples.subsample": 0, "model.dim": 6,
            "train.epochs": 40, "train.batch": 16, "train.update": "batch", "device.backend": "cpu", "device.threads": 1}


def said(program, *words):
    done = subprocess.run([program, *map(str, words), "--device.backend=cpu"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def trained(program, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "tiny"
    said(program, "train", *("--%s=%s" % item for item in {**SETTINGS, "run.dir": path}.items()))
    return path


@pytest.fixture(scope="module")
def of_lists(program, tmp_path_factory):
    """A run whose lists have rows, and the held-out lists."""
    path = tmp_path_factory.mktemp("lists")
    draw = random.Random(1)
    for name in ("train", "held_out"):
        (path / (name + ".txt")).write_text("".join(
            "list%d %s\n" % (i, " ".join("i%d" % item for item in draw.sample(range(40), 6))) for i in range(60)))
    said(program, "train", f"--corpus.path={path}/train.txt", "--corpus.format=lists", "--model.dim=8", "--train.epochs=3",
         f"--run.dir={path}/run")
    return path


@pytest.fixture
def run(trained):
    with sptx.Run(trained, device="cpu") as run:
        yield run


def printed(found):
    return "".join("%s\t%.6f\n" % answer for answer in found)


def test_vectors_are_indexed_by_word(run):
    a, b = run.words[2], run.words[0]
    assert numpy.array_equal(run[a], run.vector(a)) and numpy.array_equal(run[[a, b]], run.vectors([a, b]))
    with pytest.raises(KeyError, match="no word"):
        run["never-seen"]
    for wrong in (3.5, None, slice(0, 2)):
        with pytest.raises(TypeError, match="a word or a list of words"):
            run[wrong]


@pytest.mark.parametrize("type", ["f32", "bf16", "f16"])
def test_an_export_of_half_the_bytes_is_the_programs(run, trained, program, tmp_path, type):
    subprocess.run([program, "export", trained, "--format=npy", "--type=" + type, "--out=%s" % (tmp_path / "program.npy")], check=True)
    run.export(tmp_path / "ours.npy", type=type)
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "program.npy").read_bytes()
    with pytest.raises(ValueError, match="'int9'"):
        run.export(tmp_path / "never.npy", type="int9")


@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_nearest_is_what_the_program_says(run, trained, program, metric):
    words = list(run.words[:3])
    for word in words:
        assert printed(run.nearest(word, k=4, metric=metric)) == said(program, "nearest", trained, word, "--k=4", "--metric=" + metric)
    assert run.nearest(words, k=4, metric=metric) == [run.nearest(word, k=4, metric=metric) for word in words]
    assert run.nearest(run.vectors(words), k=4, metric=metric) == [run.nearest(row, k=4, metric=metric) for row in run[words]]
    assert run.nearest(run[words[0]].tolist(), k=2, metric=metric) == run.nearest(run[words[0]], k=2, metric=metric)
    with pytest.raises(ValueError, match="'far' is not a metric; wanted cosine or dot"):
        run.nearest(words[0], metric="far")


def test_analogies_are_what_the_program_says(run, trained, program):
    words = list(run.words)
    for a, b, c in ((0, 1, 2), (3, 1, 1), (2, 2, 2)):
        asked = [words[a], words[b], words[c]]
        found = run.analogy(*asked, k=3)
        assert printed(found) == said(program, "analogy", trained, *asked, "--k=3")
        assert not set(asked) & {word for word, _ in found}
    with pytest.raises(KeyError):
        run.analogy(words[0], "never-seen", words[1])
    with pytest.raises(ValueError, match="'both' is not a table"):
        run.analogy(*words[:3], table="both")


def test_an_analogy_of_a_list_is_refused(of_lists, program):
    """The row of a list is after the rows that are searched."""
    with sptx.Run(of_lists / "run", device="cpu") as run:
        with pytest.raises(sptx.Error, match="an analogy is asked of words or items; row .* is that of a list"):
            run.analogy("i1", "i2", "list:list9")
    done = subprocess.run([program, "analogy", of_lists / "run", "i1", "i2", "list:list9", "--device.backend=cpu"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "an analogy is asked of words or items" in done.stderr


def test_recommending_among_the_most_frequent(run, trained, program):
    items = [run.words[1], run.words[4]]
    lines = said(program, "recommend", trained, "--items=" + ",".join(items), "--k=5", "--among=4")
    assert lines == "".join("items\t" + line + "\n" for line in printed(run.recommend(items, k=5, among=4)).splitlines())
    assert run.recommend(items, k=5, among=4) != run.recommend(items, k=5)
    assert run.recommend(items, k=5) == run.recommend(items, k=5, among=0)


def test_similarity_is_cosine(run):
    a, b = run.words[1], run.words[3]
    assert run.similarity(a, b) == run.similarity(b, a) == pytest.approx(dict(run.nearest(a, k=100))[b], abs=1e-6)
    assert run.similarity(a, a) == 1 and -1 <= run.similarity(a, b, table="context") <= 1
    with pytest.raises(KeyError):
        run.similarity(a, "never-seen")


def test_most_similar_is_gensims(run):
    pytest.importorskip("gensim")
    vectors, (a, b, c, d) = run.to_gensim(), run.words[:4]
    for positive, negative, topn in (([a], [], 3), (a, [], 100), ([a, b], [c], 4), ([a], [b, c], 2), ([(a, 2.0), b], d, 3),
                                     ([run[a], b], [], 3), (run[a], [], 3), ([a], [(b, -2.0), (c, 0.5)], 3),
                                     (run.vectors([a, b]), [], 3)):
        ours = run.most_similar(positive=positive, negative=negative, topn=topn)
        theirs = vectors.most_similar(positive=positive, negative=negative, topn=topn)
        assert [word for word, _ in ours] == [word for word, _ in theirs]
        assert numpy.allclose([score for _, score in ours], [score for _, score in theirs], atol=1e-6)
    for positive, kind in (([], ValueError), ("never-seen", KeyError), ([numpy.zeros(5)], ValueError)):
        with pytest.raises(kind):
            run.most_similar(positive)


def numbers(line):
    """Returns the numbers in a line of evaluate, by the word before each."""
    found = {name: float(value) for name, value in re.findall(r"([a-z]+)(?:@\d+)? (-?[\d.]+|nan)(?= |$)", line)}
    return {**found, **{"total": float(total) for total in re.findall(r"covered \d+/(\d+)", line)},
            **{"covered": float(covered) for covered in re.findall(r"covered (\d+)/", line)}}


def same(found, line):
    told = numbers(line)
    for name, value in found.items():
        assert name not in told or "%.4f" % value == "%.4f" % told[name], (name, line)
    assert len(set(found) & set(told)) >= 3
    return True


def test_measures_are_what_the_program_prints(run, trained, program, tmp_path):
    words, draw = list(run.words), random.Random(2)
    pairs, questions, groups = tmp_path / "pairs.txt", tmp_path / "questions.txt", tmp_path / "groups"
    pairs.write_text("".join("%s %s %.1f\n" % (*draw.sample(words, 2), draw.random()) for _ in range(20)) + "never seen 1\n")
    questions.write_text(": capital\n" + "".join(" ".join(draw.sample(words, 4)) + "\n" for _ in range(20)) +
                         ": gram1\n" + "".join(" ".join(draw.sample(words, 4)) + "\n" for _ in range(20)))
    groups.write_text("".join("%s\tg%d\th%d\n" % (word, i % 2, i % 3) for i, word in enumerate(words)))
    for table in (None, "context"):
        more = [] if table is None else ["--table=" + table]
        found = run.evaluate(pairs=[pairs], analogies=questions, groups=groups, k=3, met=1, table=table)
        lines = said(program, "evaluate", trained, f"--pairs={pairs}", f"--analogies={questions}", f"--groups={groups}", "--k=3",
                     "--met=1", *more).splitlines()
        assert list(found) == ["pairs", "questions", "groups"] and len(lines) == 4 and len(found["groups"]) == 2
        assert same(found["pairs"], lines[0]) and same(found["questions"], lines[1])
        assert found["pairs"]["total"] == 21 and found["pairs"]["covered"] == 20
        for column, line in zip(found["groups"], lines[2:]):
            assert "share@3 %.4f chance %.4f asked %d/%d" % tuple(column[name] for name in ("share", "chance", "asked", "rows")) in line
    assert set(run.evaluate(pairs=[pairs, pairs])) == {"pairs", str(pairs)}
    assert run.evaluate(analogies=questions, restrict=0) == run.evaluate(analogies=questions)


def recommended(program, run, *options):
    """Returns what `sptx-w2v recommend` answers: {list: [(item, score), ..]}."""
    found = {}
    for line in said(program, "recommend", run, *options).splitlines():
        name, item, score = line.split("\t")
        found.setdefault(name, []).append((item, score))
    return found


def as_text(answer):
    return [(item, "%.6f" % score) for item, score in answer]


def test_trained_lists_are_asked_by_name(of_lists, program):
    names = ["list3", "list50", "list3", "list0"]
    wanted = recommended(program, of_lists / "run", *("--list=" + name for name in set(names)), "--k=5")
    with sptx.Run(of_lists / "run", device="cpu") as run:
        assert as_text(run.recommend(list="list50", k=5)) == wanted["list50"] == as_text(run.recommend(list="list:list50", k=5))
        found = run.recommend(lists=names, k=5)
        assert [as_text(answer) for answer in found] == [wanted[name] for name in names]
        own = [line.split()[1:] for line in (of_lists / "train.txt").read_text().splitlines() if line.startswith("list3 ")][0]
        assert not {item for item, _ in found[0]} & set(own)
        assert {item for item, _ in run.recommend(list="list3", k=40, seen=True)} > set(own)
        mixed = run.recommend(lists=iter(["list3", own[:2], ["never"], []]), k=5)
        assert mixed[0] == found[0] and len(mixed[1]) == 5 and mixed[2:] == [[], []]
        assert run.recommend(lists=[own[:2], own[2:]], k=5) == [run.recommend(own[:2], k=5), run.recommend(own[2:], k=5)]
        assert run.recommend(lists=[]) == [] and run.recommend(lists=[["never"]]) == [[]]


def test_a_thousand_lists_are_one_call_of_the_library(of_lists, monkeypatch):
    with sptx.Run(of_lists / "run", device="cpu") as run:
        one, calls, call = run.recommend(list="list7", k=5), [], run._context.call
        monkeypatch.setattr(run._context, "call", lambda function, *rest, **named: (calls.append(function), call(function, *rest, **named))[1])
        found = run.recommend(lists=["list%d" % (i % 60) for i in range(1000)], k=5)
        assert len(found) == 1000 and found[7] == found[67] == one
        assert [function.__name__ for function in calls if "find" not in function.__name__] == ["sptx_run_recommend"]


def test_a_thousand_new_lists_are_folded_in_by_one_call(of_lists, program):
    """Each list gets the same answer as if it were asked alone, and as from the program. An item given twice counts twice."""
    new = [["i%d" % ((i + step) % 40) for step in range(1 + i % 5)] for i in range(1000)]
    with sptx.Run(of_lists / "run") as run:
        found = run.recommend(lists=new, k=5)
        assert len(found) == 1000 and found[:40] == [run.recommend(items, k=5) for items in new[:40]]
        assert as_text(found[3]) == recommended(program, of_lists / "run", "--items=" + ",".join(new[3]), "--k=5")["items"]
        assert run.recommend(["i1", "i2", "i2"], k=5) != run.recommend(["i1", "i2"], k=5)
        assert found[7] != run.recommend(new[7], k=5, score="context-context")


@pytest.mark.gpu
def test_a_gpu_folds_lists_in_as_the_cpu_does(of_lists):
    """The GPU gives the same bytes each time, and the same numbers as the CPU except for rounding."""
    new = [["i%d" % ((i * 7 + step * step) % 40) for step in range(1 + i % 9)] for i in range(3000)]
    found = {}
    for device in ("cpu", "cuda"):
        with sptx.Run(of_lists / "run", device=device) as run:
            found[device] = run.recommend(lists=new, k=40)
            assert found[device] == run.recommend(lists=new, k=40) and found[device][-1] == run.recommend(new[-1], k=40)
    for one, other in zip(found["cpu"], found["cuda"]):
        scores = dict(other)
        assert all(abs(score - scores[item]) < 1e-3 for item, score in one)


def test_candidates_alone_are_recommended(of_lists):
    with sptx.Run(of_lists / "run", device="cpu") as run:
        every, chosen = run.recommend(list="list9", k=40), ["i%d" % i for i in range(0, 40, 3)]
        few = run.recommend(list="list9", k=40, among=(item for item in [*chosen, "never", "i0"]))
        assert [item for item, _ in few] == [item for item, _ in every if item in chosen]
        assert run.recommend(list="list9", k=3, among=numpy.array(chosen)) == few[:3]
        assert {item for item, _ in run.recommend(["i1"], among=10)} <= set(run.words[:10])
        assert run.recommend(["i1"], among=chosen) != run.recommend(["i1"], among=chosen[:4]) != run.recommend(["i1"])
        with pytest.raises(KeyError, match="'never' is no word"):
            run.recommend(["i1"], among=["never"])


def test_integers_are_asked_as_they_went_in(tmp_path):
    lists = {user: [(user * 7 + i * i) % 30 for i in range(6)] for user in range(50)}
    with sptx.fit(lists, tmp_path / "run", dim=8, epochs=2, device="cpu", progress=False) as run:
        assert run.recommend([3, numpy.int64(4)], k=5) == run.recommend(["3", b"4"], k=5)
        assert run.recommend(list=13, k=5) == run.recommend(list="13", k=5)
        assert run.recommend([3], k=5, among=numpy.arange(9)) == run.recommend(["3"], k=5, among=map(str, range(9)))


@pytest.mark.parametrize("options, kind, message", [
    ({}, TypeError, "only one of the three"), ({"items": ["i1"], "list": "list1"}, TypeError, "only one of the three"),
    ({"list": "nobody"}, KeyError, "'nobody' is no list of the run"), ({"lists": ["list1", "nobody"]}, KeyError, "is no list"),
    ({"list": ["list1"]}, TypeError, "lists= takes several"), ({"lists": [2.5]}, TypeError, "iterable"),
])
def test_what_is_no_list_to_ask_is_named(of_lists, options, kind, message):
    with sptx.Run(of_lists / "run", device="cpu") as run, pytest.raises(kind, match=message):
        run.recommend(**options)


def test_lists_that_a_run_does_not_keep_are_refused(run):
    with pytest.raises(ValueError, match="keeps no names of lists"):
        run.recommend(list="list1")


def test_held_out_lists_are_found_as_the_program_finds_them(of_lists, program):
    files = {name: of_lists / (name + ".txt") for name in ("train", "held_out")}
    with sptx.Run(of_lists / "run", device="cpu") as run:
        with open(files["train"]) as train, open(files["held_out"], "a") as held_out:
            held_out.write("list0 %s\nnobody i1\n" % " ".join(train.readline().split()[1:]))
        for options in ({}, {"score": "context-context"}, {"table": "context"}, {"format": "lists", "k": 3}):
            with pytest.warns(sptx.SptxWarning, match="held-out items of .* are trained ones"):
                found = run.evaluate(**{**files, "k": 5, **options})
            line = said(program, "evaluate", of_lists / "run", f"--train={files['train']}", f"--held-out={files['held_out']}",
                        *("--%s=%s" % option for option in {"k": 5, **options}.items()))
            assert list(found) == ["lists"] and same(found["lists"], line) and found["lists"]["lists"] == 60
            assert found["lists"]["trained"] > 5 and found["lists"]["cold"] == 1


def test_labels_and_links_are_what_the_program_prints(run, trained, program, tmp_path):
    words, draw = list(run.words), random.Random(2)
    labels, edges, known = tmp_path / "labels.txt", tmp_path / "edges", tmp_path / "known"
    labels.write_text("".join("%s l%d %s\n" % (word, i % 3, "l3" if i % 4 == 0 else "train") for i, word in enumerate(words)))
    for path, count in ((edges, 5), (known, 8)):
        path.write_text("".join("%s %s\n" % tuple(draw.sample(words, 2)) for _ in range(count)))
    found = run.evaluate(labels=labels, share=[0.25, 0.5], edges=edges, known=known)
    lines = said(program, "evaluate", trained, f"--labels={labels}", "--share=0.25,0.5", f"--edges={edges}",
                 f"--known={known}").splitlines()
    assert list(found) == ["labels", "edges"] and len(lines) == 7
    for score, line in zip(found["labels"], lines):
        assert ("labels share %g micro-f1 %.4f spread %.4f macro-f1 %.4f spread %.4f labels %d covered %d/%d" % tuple(
            score[name] for name in ("share", "micro", "micro_spread", "macro", "macro_spread", "labels", "covered", "total"))) == line
    counts = " links %d asked %d nodes %d unknown %d among %d all %d left-out %d trained %d" % tuple(
        found["edges"][name] for name in ("links", "asked", "nodes", "unknown", "among", "all", "left_out", "trained"))
    for name, line in zip(("dot", "cosine", "hadamard", "cross", "cross-cosine"), lines[2:]):
        assert "edges %s auc %.4f mrr %.4f hits@10 %.4f" % (name, *found["edges"][name].values()) + counts == line
    assert run.evaluate(labels=labels, share=0.5)["labels"] == found["labels"][1:]
    other = run.evaluate(edges=edges, directed=True, table="context")["edges"]
    assert "hadamard" not in other and other["asked"] == 5 and other["nodes"] == len(words)


def test_smaller_exports_say_what_is_lost(run, tmp_path):
    assert run.export(tmp_path / "v.npy", type="int8") is None
    lost = run.export(tmp_path / "v.npy", "npy", type="int8", columns=4, measure=True)
    assert 0.1 < lost["recall"] <= lost["rescored"] <= 1 and numpy.load(tmp_path / "v.npy").shape == (len(run), 4)
    with pytest.raises(ValueError, match="is not for fvecs"):
        run.export(tmp_path / "v.fvecs", type="int8")


# ---- indexes of other libraries ----

def found_by(index, run, word):
    kind = type(index).__module__
    query = run[word] / numpy.linalg.norm(run[word])
    if kind.startswith("usearch"):
        return index.search(query, 6).keys
    return index.knn_query(query, k=6)[0][0] if kind.startswith("hnswlib") else index.search(query[None], 6)[1][0]


@pytest.mark.parametrize("library, make", [
    ("faiss", lambda run: run.to_faiss()), ("faiss", lambda run: run.to_faiss("HNSW32")), ("faiss", lambda run: run.to_faiss("IVF1,Flat")),
    ("hnswlib", lambda run: run.to_hnswlib()), ("usearch", lambda run: run.to_usearch())])  # faiss crashes once usearch is loaded
def test_indexes_find_what_nearest_finds(run, library, make):
    pytest.importorskip(library)
    index, word = make(run), run.words[2]
    assert [run.words[int(row)] for row in found_by(index, run, word)] == [word, *(name for name, _ in run.nearest(word, k=5))]
    with pytest.raises(ValueError, match="neither"):
        getattr(run, "to_" + library)(metric="l2")


@pytest.fixture(scope="module")
def of_graph(tmp_path_factory):
    """A run of a graph of 40 nodes, and the labels of its nodes."""
    folder = tmp_path_factory.mktemp("graph")
    ends = numpy.random.default_rng(2).integers(0, 40, (2, 150))
    sptx.fit(ends, folder / "run", format="graph", dim=6, epochs=20, device="cpu", keys={"device.threads": 2}).close()
    (folder / "labels").write_text("".join("%d l%d\n" % (node, node % 3) for node in range(40)))
    return folder


def test_rows_of_a_graph_are_propagated(of_graph, program, tmp_path):
    with sptx.Run(of_graph / "run", device="cpu") as run:
        rows, node = run.vectors(table="propagated"), run.words[3]
        run.export(tmp_path / "rows.npy", table="propagated")
        assert (numpy.load(tmp_path / "rows.npy") == rows).all() and numpy.allclose(numpy.linalg.norm(rows, axis=1), 2, atol=1e-5)
        near, new = run.nearest(node, k=5, table="propagated"), run.recommend([node], k=5, score="propagated")
        judged = run.evaluate(labels=of_graph / "labels", table="propagated")["labels"]
        assert run.vectors().tolist() == rows.tolist() != run.vectors(table="target").tolist()
        assert run.recommend([node], k=5) == run.recommend([node], k=5, score="context")
    asked = said(program, "nearest", of_graph / "run", node, "--k=5", "--query=propagated", "--among=propagated")
    assert printed(near) == asked
    asked = said(program, "recommend", of_graph / "run", f"--items={node}", "--k=5", "--score=propagated")
    assert "".join("items\t" + line + "\n" for line in printed(new).splitlines()) == asked
    asked = said(program, "evaluate", of_graph / "run", f"--labels={of_graph}/labels", "--table=propagated")
    assert " micro-f1 %.4f " % judged[0]["micro"] in asked


def test_only_graphs_are_propagated(run):
    with pytest.raises(sptx.Error, match="was not trained on a graph"):
        run.vectors(table="propagated")


@pytest.mark.parametrize("asked, kind, said_", [
    ({}, ValueError, "evaluate wants pairs="), ({"known": "a"}, ValueError, "edges="),
    ({"labels": "a", "share": 1}, ValueError, "a share of 1 is not between 0 and 1"),
    ({"labels": "a", "share": []}, ValueError, "0 shares are asked for"), ({"edges": "/nowhere/edges"}, sptx.Error, "/nowhere/edges"), ({"train": "a"}, ValueError, "together"),
    ({"pairs": "/nowhere/pairs.txt"}, sptx.Error, "/nowhere/pairs.txt"), ({"pairs": "a", "table": "both"}, ValueError, "both"),
    ({"train": "a", "held_out": "b", "score": "best"}, ValueError, "'best' is not a score"),
    ({"train": "a", "held_out": "b", "k": 0}, ValueError, "k = 0"), ({"groups": "a", "sample": 0}, ValueError, "sample = 0"),
    ({"pairs": 3}, TypeError, "iterable"),
])
def test_measures_that_are_none_are_named(run, asked, kind, said_):
    with pytest.raises(kind, match=re.escape(said_)):
        run.evaluate(**asked)


@pytest.mark.parametrize("ending, format", [("bin", "word2vec-bin"), ("txt", "word2vec-text"), ("npy", "npy"),
                                            ("safetensors", "safetensors"), ("glove", "glove-text"), ("tsv", "projector")])
def test_export_writes_the_programs_bytes(run, trained, program, tmp_path, ending, format):
    ours, theirs = tmp_path / ("ours." + ending), tmp_path / ("theirs." + ending)
    said_ = subprocess.run([program, "export", trained, f"--format={format}", f"--out={theirs}"], capture_output=True, text=True)
    assert said_.returncode == 0
    run.export(ours, **({"format": format} if ending == "glove" else {}))
    assert ours.read_bytes() == theirs.read_bytes()
    with pytest.raises(ValueError, match="names no format"):
        run.export(tmp_path / "ours.vectors")
    with pytest.raises(ValueError, match="'gob' is not a format of export"):
        run.export(ours, "gob")
    with pytest.raises(sptx.Error, match="/nowhere"):
        run.export("/nowhere/at/all.bin")


def test_the_report_is_the_programs_page(run, trained, program, tmp_path):
    labels = tmp_path / "labels"
    labels.write_text("".join("%s label%d\n" % (word, i % 3) for i, word in enumerate(run.words)))
    said(program, "report", trained, f"--out={tmp_path}/coloured.html", f"--labels={labels}")
    run.report(tmp_path / "own.html", labels=labels)
    page = (tmp_path / "own.html").read_bytes()
    assert page == (tmp_path / "coloured.html").read_bytes() and b"label2" in page
    said(program, "report", trained, f"--out={tmp_path}/theirs.html", "--top=5", "--search=6")
    with sptx.Run(trained, device="cpu") as run:
        run.report(tmp_path / "ours.html", top=5, search=6)
        assert (tmp_path / "ours.html").read_bytes() == (tmp_path / "theirs.html").read_bytes()
        for options, kind in (({"top": 0}, ValueError), ({"search": 0}, ValueError), ({"titles": "/nowhere"}, sptx.Error),
                              ({"lists": True}, sptx.Error)):
            with pytest.raises(kind):
                run.report(tmp_path / "none.html", **options)
        assert not os.path.exists(tmp_path / "none.html")
        run.close()
        for call in (lambda: run.report(tmp_path / "none.html"), lambda: run.export(tmp_path / "x.npy"), lambda: run["a"],
                     lambda: run.evaluate(pairs="a"), lambda: run.analogy("a", "b", "c")):
            with pytest.raises(ValueError, match="closed"):
                call()
