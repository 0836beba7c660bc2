"""Knowledge graphs: fit(format="triples"), Run.tails() and heads(), and evaluate(triples=..)."""

import random

import numpy
import pytest

import sptx

KEYS = {"model.dim": 8, "train.epochs": 4, "negatives.count": 12, "train.batch": 64}


def triples(count=200, seed=1):
    draw = random.Random(seed)
    found = {(draw.randrange(30), draw.randrange(3)) for _ in range(count)}
    return [(head, relation, (head * 7 + relation * 5 + draw.randrange(2)) % 30) for head, relation in sorted(found)]


def names(lines):
    return [("e%d" % head, "r%d" % relation, "e%d" % tail) for head, relation, tail in lines]


def fitted(tmp_path, data, name="run", **more):
    return sptx.fit(data, tmp_path / name, keys=KEYS, format="triples", device="cpu", threads=2, progress=False, **more)


def same(a, b):
    assert a.vectors(lists=True).shape == (len(a) + len(a.lists), a.dim)
    return numpy.array_equal(a.target[:], b.target[:]) and numpy.array_equal(a.context[:], b.context[:]) and list(a.lists) == list(b.lists)


@pytest.fixture(params=["yes", "no"])
def of_file(tmp_path, request, monkeypatch):
    monkeypatch.setitem(KEYS, "model.tied", request.param)
    path = tmp_path / "triples.tsv"
    path.write_text("".join("\t".join(line) + "\n" for line in names(triples())))
    return fitted(tmp_path, str(path), "of_file")


def test_all_kinds_of_triples_give_the_rows_of_the_file(tmp_path, of_file):
    assert of_file.relations == ["r0", "r1", "r2"] and len(of_file.lists) == 6
    assert of_file.context[:].shape == (len(of_file), 8)
    given = names(triples())
    assert same(fitted(tmp_path, given, "list"), of_file)
    assert same(fitted(tmp_path, iter(given), "generator"), of_file)
    assert same(fitted(tmp_path, numpy.array(given), "array"), of_file)


def test_integers_are_names(tmp_path):
    numbers = numpy.array(triples())
    path = tmp_path / "numbers.tsv"
    path.write_text("".join("%d %d %d\n" % line for line in triples()))
    run = fitted(tmp_path, str(path), "file")
    assert same(fitted(tmp_path, numbers, "array"), run)
    assert same(fitted(tmp_path, tuple(numbers.T.astype(numpy.int32)), "arrays"), run)
    assert run.relations == ["0", "1", "2"]


def test_relations_that_look_like_reciprocals_are_relations(tmp_path, monkeypatch):
    monkeypatch.setitem(KEYS, "triples.reciprocal", "no")
    assert fitted(tmp_path, [("a", "r", "b"), ("b", "r^-1", "a"), ("b", "r", "c")]).relations == ["r", "r^-1"]


@pytest.mark.parametrize("columns", [None, ("from", "how", "to")])
def test_tables(tmp_path, of_file, columns):
    pyarrow = pytest.importorskip("pyarrow")
    head, relation, tail = zip(*names(triples()))
    called = columns or ("head", "relation", "tail")
    table = pyarrow.table({called[2]: tail, called[0]: head, called[1]: pyarrow.array(relation).dictionary_encode()})
    assert same(fitted(tmp_path, table, columns=columns), of_file)
    with pytest.raises(ValueError, match="head, relation, tail"):
        fitted(tmp_path, table, "other", columns=called[:2])
    if columns:
        with pytest.raises(ValueError, match="say which columns are head, relation and tail by columns="):
            fitted(tmp_path, table.append_column("n", [list(range(len(head)))]), "other")


def test_tails_and_heads(of_file):
    dim, entities = of_file.dim, len(of_file)
    known = names(triples())
    for backwards, suffix in ((False, ""), (True, "^-1")):
        entity, relation = known[5][2 if backwards else 0], known[5][1]
        row, own = of_file.vectors(["relation:" + relation + suffix, entity], table="target")
        product = (own[:dim // 2] + 1j * own[dim // 2:]) * (row[:dim // 2] + 1j * row[dim // 2:])
        scores = of_file.context[:] @ numpy.concatenate([product.real, product.imag])
        order = [of_file.words[i] for i in numpy.argsort(-scores)]
        trained = {line[0 if backwards else 2] for line in known if line[1] == relation and line[2 if backwards else 0] == entity}
        ask = (lambda **more: of_file.heads(relation, entity, **more)) if backwards else (lambda **more: of_file.tails(entity, relation, **more))
        assert [name for name, _ in ask(k=entities, seen=True)] == order
        assert [name for name, _ in ask(k=5)] == [name for name in order if name not in trained][:5]
        assert ask(k=1, seen=True)[0][1] == pytest.approx(scores.max(), rel=1e-5)
    several = of_file.tails(["e1", "e2"], ["r0", "r1"], k=3)
    assert several == [of_file.tails("e1", "r0", k=3), of_file.tails("e2", "r1", k=3)]
    with pytest.raises(KeyError, match="nobody"):
        of_file.tails("nobody", "r0")
    with pytest.raises(KeyError, match="r9"):
        of_file.tails("e1", "r9")
    with pytest.raises(ValueError, match="2 entities and 1 relations"):
        of_file.tails(["e1", "e2"], ["r0"])


def test_relations_are_compared_with_each_other(of_file):
    assert {name.split(":")[0] for name, _ in of_file.nearest("relation:r0", lists=True)} == {"relation"}
    with pytest.raises(ValueError, match="'relation:r0' is a relation"):
        of_file.nearest("relation:r0")
    with pytest.raises(ValueError, match="'e1' is an entity"):
        of_file.nearest("e1", lists=True)


def test_evaluate(tmp_path, of_file):
    held_out = [("e1", "r0", "e9"), ("e2", "r1", "e3"), ("e2", "r1", "nobody")]
    path = tmp_path / "test.txt"
    path.write_text("".join("\t".join(line) + "\n" for line in held_out))
    found = of_file.evaluate(triples=str(path))["test"]
    assert found == of_file.evaluate(triples=held_out)["triples"]
    assert found["triples"] == 3 and found["unknown"] == 1 and found["asked"] == 4 and 0 < found["mrr"] <= 1
    assert found["mrr"] == pytest.approx((found["mrr_tails"] + found["mrr_heads"]) / 2)
    assert found["mrr_known"] == pytest.approx(found["mrr"] * 3 / 2) and found["hits10_known"] == pytest.approx(found["hits10"] * 3 / 2)
    known = names(triples())
    assert of_file.evaluate(triples=held_out, known=known)["triples"]["mrr"] == found["mrr"]  # they are known as trained ones
    assert of_file.evaluate(triples=held_out, sample=5)["triples"]["among"] <= 5
    with pytest.raises(sptx.Error, match="'triples' has no triple"):
        of_file.evaluate(triples=[("x", "y", "z")])
    with pytest.raises(ValueError, match="both are given"):
        of_file.evaluate(triples=held_out, edges=[("e1", "e2")], known=known)


def test_held_out_triples_that_are_ranked_while_training(tmp_path, monkeypatch):
    lines = names(triples())
    (tmp_path / "test.nt").write_text("".join("<%s> <%s> <%s> .\n" % line for line in (*lines[:3], ("nobody", "r0", "e1"))))
    monkeypatch.setitem(KEYS, "train.evaluate", str(tmp_path / "test.nt"))
    unknown, trained = "1 of 4 triples of .* count as misses", "3 of 4 triples of .* was trained on"
    with pytest.warns(sptx.SptxWarning, match=unknown), pytest.warns(sptx.SptxWarning, match=trained):
        fitted(tmp_path, lines)


def test_score(tmp_path, of_file):
    asked = [("e1", "r0", "e9"), ("e2", "r1", "e3"), ("e2", "r1", "nobody"), ("r0", "r1", "e3")]
    with pytest.warns(sptx.SptxWarning, match="2 of 4 triples of 'triples' have a name that '.*' does not know"):
        scores = of_file.score(asked)
    assert scores.dtype == numpy.float64 and list(numpy.isnan(scores)) == [False, False, True, True]
    answers = dict(of_file.tails("e1", "r0", k=99, seen=True))["e9"], dict(of_file.heads("r0", "e9", k=99, seen=True))["e1"]
    assert scores[0] == pytest.approx(sum(answers) / 2, abs=1e-6) and of_file.score(asked[0]) == scores[0]
    valid = [("e%d" % (i % 30), "r%d" % (i % 3), "e%d" % ((i * 7 + i % 3 * 5) % 30)) for i in range(90)]
    with pytest.warns(sptx.SptxWarning, match=r"of 90 triples of 'validation' are ones that '.*' was trained on"):
        both = of_file.score(numpy.array(asked[:2]), validation=valid)
    assert (both[0] == scores[:2]).all() and ((0 < both[1]) & (both[1] < 1)).all()
    path = tmp_path / "valid.tsv"
    path.write_text("".join("\t".join(line) + "\n" for line in valid))
    with pytest.warns(sptx.SptxWarning, match="trained on"):
        assert of_file.score(asked[0], validation=str(path)) == (both[0][0], both[1][0])
    path.write_text("".join("\t".join((*line, "1" if line[1] == "r0" else "-1")) + "\n" for line in valid))
    found = of_file.evaluate(labelled=path, thresholds=path)["valid.tsv"]
    assert found["labelled"] == 90 and found["true"] == 30 and found["accuracy"] == found["accuracy_known"] > .6
    with pytest.raises(sptx.Error, match="'validation' has no triple"):
        of_file.score(asked, validation=[("x", "y", "z")])
    with pytest.raises(ValueError, match="labelled= and thresholds= together"):
        of_file.evaluate(labelled=path)


def test_data_that_holds_no_triples_is_refused(tmp_path):
    for data, kind, words in (([("a", "b")], ValueError, "row 0 of the tuples: 2 fields; wanted head, relation, tail"),
                              (numpy.zeros((4, 2), int), ValueError, "row 0 of the array of shape .4, 2.: 2 fields"), (numpy.zeros(3), ValueError, "the shape"), (5, TypeError, "holds no triples"),
                              ((numpy.zeros(2, int), numpy.zeros(3, int), numpy.zeros(2, int)), ValueError, "of one length"),
                              ([("a", "", "b")], sptx.Error, "empty"), ([("a", "r", "")], sptx.Error, "the tail of triple 0 is empty")):
        with pytest.raises(kind, match=words):
            fitted(tmp_path, data)
    assert not (tmp_path / "run").exists()


def test_a_format_that_there_is_not_is_answered_with_those_that_are(tmp_path):
    with pytest.raises(ValueError, match="format = 'triple' is none of text, .*, triples; did you mean 'triples'"):
        sptx.fit([("a", "r", "b")], tmp_path / "run", format="triple")


def test_test_data_without_known_triples_is_refused(of_file, tmp_path):
    lines = [("e1", "r0", "e2"), ("e3", "r1", "e4")]
    for empty in ([], numpy.zeros((0, 3), int)):
        for ask in (lambda: of_file.evaluate(triples=empty), lambda: of_file.evaluate(triples=lines, known=empty), lambda: of_file.score(empty),
                    lambda: of_file.score(lines, validation=empty)):
            with pytest.raises(sptx.Error, match="has no triples"):
                ask()
    with pytest.raises(sptx.Error, match="'known' has no triple whose head, relation and tail"):
        of_file.evaluate(triples=lines, known=[("x", "y", "z")])
    with pytest.raises(ValueError, match="is that of 'relation:r0'; wanted an entity's"):
        of_file.tails("relation:r0", "r0")
    paths = [tmp_path / "a b.txt", tmp_path / "c.txt"]
    for path, line in zip(paths, (("e1", "r0", "e5"), ("e3", "r1", "e6"))):
        path.write_text("\t".join(line) + "\n")
    both = of_file.evaluate(triples=lines, known=[("e1", "r0", "e5"), ("e3", "r1", "e6")])
    assert of_file.evaluate(triples=lines, known=paths) == both == of_file.evaluate(triples=lines, known='"%s","%s"' % tuple(paths))


def test_a_sparse_matrix_holds_no_triples(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="matrix holds no triples"):
        fitted(tmp_path, sparse.eye(3))


def test_other_runs_have_no_relations(tmp_path):
    run = sptx.fit([["a", "b", "c"]] * 50, tmp_path / "text", keys={"corpus.min_count": 1, "model.dim": 4}, device="cpu", progress=False)
    assert run.relations == []
    with pytest.raises(ValueError, match="was not trained on triples"):
        run.tails("a", "r")
    with pytest.raises(sptx.Error, match="was not trained on triples"):
        run.evaluate(triples=[("a", "r", "b")])
    with pytest.raises(ValueError, match="was not trained on triples"):
        run.score([("a", "r", "b")])


def test_relations_go_by_their_names(tmp_path):
    run = fitted(tmp_path, [("e%d" % (i % 9), "r%d" % (i % 2), "e%d" % (i * 7 % 9)) for i in range(18)] + [("r0", "r1", "e1")])
    assert run.relations == ["r0", "r1"] and (run.vectors(["relation:r1"]) == run.vectors(["r1"])).all()
    assert run.nearest("r1", k=1, lists=True) == run.nearest("relation:r1", k=1, lists=True)
    assert run.row("r0") < len(run)  # an entity's name comes first
    with pytest.raises(KeyError):
        run.row("r2")
    with pytest.raises(sptx.Error, match=r"Run\.tails\(\), Run\.heads\(\)"):
        run.recommend(["e1"])


@pytest.mark.torch
def test_pykeens_evaluator_finds_the_same_ranks(tmp_path):
    """PyKEEN's ComplEx with the exported rows: the two halves of a row are the real and the imaginary parts."""
    torch, models, factories = (pytest.importorskip(name, exc_type=ImportError) for name in ("torch", "pykeen.models", "pykeen.triples"))
    evaluator = pytest.importorskip("pykeen.evaluation").RankBasedEvaluator(filtered=True)
    lines = names(triples(count=400))
    random.Random(2).shuffle(lines)
    train, valid, test = lines[:-20], lines[-20:-10], lines[-10:]
    run = fitted(tmp_path, train)
    test = [line for line in test if line[0] in run and line[2] in run]
    run.export(tmp_path / "rows.npy", table="target", lists=True)
    rows, count = numpy.load(tmp_path / "rows.npy"), len(run.relations)
    entities, relations = {name: i for i, name in enumerate(run.words)}, {name: i for i, name in enumerate(run.relations)}

    def mapped(some):
        return torch.tensor([[entities[h], relations[r], entities[t]] for h, r, t in some if h in entities and t in entities])

    factory = factories.CoreTriplesFactory(mapped(train), num_entities=len(entities), num_relations=count, create_inverse_triples=True)
    model = models.ComplEx(triples_factory=factory, embedding_dim=run.dim // 2, random_seed=0)
    order = [len(entities) + r + back * count for r in range(count) for back in (0, 1)]  # a relation's inverse follows it
    for representations, own in ((model.entity_representations, rows[:len(entities)]), (model.relation_representations, rows[order])):
        weight, half = representations[0]._embeddings.weight, run.dim // 2
        pairs = numpy.stack([own[:, :half], own[:, half:]], 2)
        weight.data = torch.tensor(pairs.tolist(), dtype=torch.float32).reshape(weight.shape)
    found = evaluator.evaluate(model, mapped(test), additional_filter_triples=[mapped(train), mapped(valid)], batch_size=8, use_tqdm=False)
    ours = run.evaluate(triples=test, known=valid)["triples"]
    for name, side, metric in (("mrr", "both", "inverse_harmonic_mean_rank"), ("mrr_heads", "head", "inverse_harmonic_mean_rank"),
                               ("mrr_tails", "tail", "inverse_harmonic_mean_rank"), ("hits10", "both", "hits_at_10"), ("hits1", "both", "hits_at_1")):
        assert ours[name] == pytest.approx(found.get_metric("%s.realistic.%s" % (side, metric)), abs=1e-4), name


WALKED = {"model.dim": 8, "train.epochs": 2, "walks.per_node": 20, "train.update": "batch", "train.batch": 200}


def walked(tmp_path, data, name, **keys):
    return sptx.fit(data, tmp_path / name, keys={**WALKED, **keys}, format="triples", mode="walk", device="cpu", threads=2, progress=False,
                    overwrite=True)


@pytest.mark.parametrize("keys", [{}, {"walks.relations": "no"}, {"graph.directed": "no", "walks.q": 0.5}])
def test_walks_over_all_kinds_of_triples_are_those_of_the_file(tmp_path, keys):
    pandas = pytest.importorskip("pandas")
    lines = names(triples())
    path = tmp_path / "triples.tsv"
    path.write_text("".join("\t".join(line) + "\n" for line in lines))
    wanted = walked(tmp_path, str(path), "of_file", **keys)
    for data in (lines, pandas.DataFrame(lines, columns=["h", "r", "t"])):
        run = walked(tmp_path, data, "run", **keys)
        assert list(run.words) == list(wanted.words) and numpy.array_equal(run.vectors(), wanted.vectors())
    assert ("relation:r1" in wanted.words) == ("walks.relations" not in keys)
    assert len(wanted.vectors(["e1", "e2"])) == 2


def test_walked_triples_answer_as_a_graph_does(tmp_path):
    lines = names(triples())
    run = walked(tmp_path, lines, "run", **{"graph.directed": "no"})
    assert not any(str(word).startswith("relation:") for word, _ in run.recommend(list="e1", k=40))
    found = run.evaluate(edges=[("e0", "e29"), ("e2", "e28"), ("e5", "e1")])
    assert found
    with pytest.raises((sptx.Error, ValueError), match="relations are words"):
        run.tails("e1", "r1")
    with pytest.raises(sptx.Error, match="rename one of the two"):
        walked(tmp_path, [("relation:x", "y", "c"), ("c", "x", "d")], "bad")


def test_relations_of_walks_go_by_their_names_and_are_no_nodes(tmp_path):
    run = walked(tmp_path, names(triples()), "run")
    assert run.row("r1") == run.row("relation:r1") and "r1" in run and (run["r1"] == run["relation:r1"]).all()
    assert run.nearest("r1") == run.nearest("relation:r1") and run.recommend(["r1"]) == run.recommend(["relation:r1"])
    assert [word for word, _ in run.recommend(["e1"], among=["relation:r1", "e2"])] == ["e2"]
    with pytest.raises(sptx.Error, match="none of the 1 candidates is an item"):
        run.recommend(["e1"], among=["r1"])
    with pytest.raises(ValueError, match="'r1' is a relation of .*; wanted an entity"):
        run.recommend(list="r1")
    with pytest.raises(sptx.Error, match="was trained on walks over triples .*, and its relations are words"):
        run.score(("e1", "r1", "e2"))
    held = [("e0", "e29"), ("e2", "e28")]
    links = run.evaluate(edges=[*held, ("relation:r1", "e1"), ("e1", "r1")])["edges"]
    assert links["left_out"] == 2 and links["unknown"] == 2 and links["asked"] == links["links"] == 2
    head, _, tail = next(line for line in names(triples()) if not any(line[::2] == other[::-2] for other in names(triples())))
    assert run.evaluate(edges=[*held, (tail, head)], known=[line[::2] for line in names(triples())])["edges"]["trained"] == 0


def test_all_relations_of_a_pair_are_scored_as_one_by_one(tmp_path):
    lines = [("e%d" % i, "r%d" % r, "e%d" % ((i * 7 + r + 1) % 60)) for i in range(60) for r in range(12)]
    run = fitted(tmp_path, lines)
    for pairs in ([("e1", "e8")], [("e%d" % i, "e%d" % (i + 30)) for i in range(3)]):
        asked = [(head, name, tail) for head, tail in pairs for name in run.relations]
        assert list(run.score(asked)) == [run.score(one) for one in asked]
