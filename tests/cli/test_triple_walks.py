"""Walks over triples (RDF2Vec): relations are words between entities. Threads, kills and the way in which triples come must change no byte."""
import json
import random
import signal

import numpy
import pytest

from conftest import checkpoints, lines_of_metrics, only_keys_of_walks_change_bytes, stop

GROUPS, SIZE = 5, 12
WALKS = {"corpus": {"path": "facts.tsv", "format": "triples"}, "examples": {"mode": "walk"}, "model": {"dim": "16"},
         "walks": {"per_node": "20"}, "train": {"epochs": "6", "update": "batch", "batch": "300"}}


def facts(seed=1):
    """Makes triples of which most lead from an entity to its group's topics by the relations of this group."""
    draw = random.Random(seed)
    triples = []
    for group in range(GROUPS):
        for member in range(SIZE):
            for _ in range(4):
                triples.append((f"g{group}n{member}", draw.choice(["likes", f"own{group}"]), f"topic{group}_{draw.randrange(4)}"))
            triples.append((f"g{group}n{member}", "knows", f"g{draw.randrange(GROUPS)}n{draw.randrange(SIZE)}"))
    return [(head, relation, tail) for head, relation, tail in triples if head != tail]


@pytest.fixture
def triples(sptx):
    sptx.path("facts.tsv").write_text("".join("\t".join(triple) + "\n" for triple in facts()))
    return sptx


def walking(program, **sections):
    keys = {section: {**WALKS.get(section, {}), **sections.get(section, {})} for section in {**WALKS, **sections}}
    return program.config(**keys)


def words_of(program, run="run"):
    return dict(line.rsplit("\t", 1) for line in program.path(run, "vocab.tsv").read_text().splitlines())


def test_members_of_a_group_are_near_and_relations_are_words(triples):
    said = triples("train", walking(triples, train={"update": "auto", "epochs": "30"})).stderr
    assert "entities and relations, directed" in said and "walks of at most 5 an epoch" in said
    right = 0
    for group in range(GROUPS):
        lines = triples("nearest", "run", f"g{group}n3", "--k=5").stdout.splitlines()
        right += sum(line.split("\t")[0].replace("relation:own", "g").replace("topic", "g").startswith(f"g{group}") for line in lines)
    assert right >= 0.8 * 5 * GROUPS
    words = words_of(triples)
    assert int(words["relation:knows"]) == sum(relation == "knows" for _, relation, _ in facts())
    counts = [int(count) for count in words.values()]
    assert counts == sorted(counts, reverse=True)
    triples("export", "run", "--format=word2vec-text", "--out=all.txt")
    assert {line.split(" ")[0] for line in triples.path("all.txt").read_text().splitlines()[1:]} == set(words)


def test_without_relations_a_walk_has_only_entities(triples):
    triples("train", walking(triples, walks={"relations": "no"}))
    assert not any(word.startswith("relation:") for word in words_of(triples))
    edges = {(head, tail) for head, _, tail in facts()}
    triples.path("edges.tsv").write_text("".join(f"{head}\t{tail}\n" for head, _, tail in facts()))
    planned = json.loads(triples("plan", walking(triples, walks={"relations": "no"}), "--json").stdout)
    assert planned["stream_bytes"] == 128 + (4 * len(edges) + 7) // 8 * 8 + 8 * (planned["rows"] + 1)
    with_relations = json.loads(triples("plan", walking(triples), "--json").stdout)
    assert with_relations["stream_bytes"] == 128 + 8 * len(set(facts())) + 8 * (with_relations["rows"] + 1)


@pytest.mark.parametrize("keys", [{}, {"walks": {"p": "0.5", "q": "2"}}, {"graph": {"directed": "no"}, "walks": {"p": "0.25", "q": "0.5"}},
                                  {"walks": {"relations": "no"}}])
def test_threads_and_batches_of_another_depth_change_no_byte(triples, keys):
    triples("train", walking(triples, train={"held_out": "0.05"}, **keys))
    only_keys_of_walks_change_bytes(triples, "--walks.length=4")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_goes_on_to_the_same_bytes(triples, how):
    config = walking(triples, train={"epochs": "150"}, run={"checkpoint_every": "20steps"})
    triples("train", config)
    wanted = triples.tables()
    stop(triples.start("train", config, "--run.dir=stopped"), lambda: lines_of_metrics(triples, "stopped") > 2 and checkpoints(triples, "stopped"), how)
    triples("train", config, "--run.dir=stopped", "--resume")
    assert triples.tables("stopped") == wanted


def test_all_forms_of_triples_give_the_same_bytes(triples):
    triples("train", walking(triples))
    wanted, names = triples.tables(), words_of(triples)
    all_facts = facts()
    triples.path("facts.nt").write_text("".join(f"<{head}> <{relation}> <{tail}> .\n" for head, relation, tail in all_facts))
    triples.path("facts.csv").write_text("tail,head,relation\n" + "".join(f"{tail},{head},{relation}\n" for head, relation, tail in all_facts))
    for name in ("facts.nt", "facts.csv"):
        triples("train", walking(triples, corpus={"path": name}), "--run.dir=other", "--overwrite")
        assert words_of(triples, "other") == names and triples.tables("other") == wanted
    twice = all_facts + all_facts  # a triple that occurs twice counts twice, but is one arc
    triples.path("facts.tsv").write_text("".join("\t".join(triple) + "\n" for triple in twice))
    triples("train", walking(triples), "--run.dir=other", "--overwrite")
    assert words_of(triples, "other") == {word: str(2 * int(count)) for word, count in names.items()}
    assert json.loads(triples("plan", walking(triples), "--json").stdout)["stream_bytes"] == \
        128 + 8 * len(set(all_facts)) + 8 * (len(names) + 1)


def test_loops_single_triples_and_tails(sptx):
    """An entity without arcs begins no walk; a triple from an entity to itself is left out."""
    sptx.path("facts.tsv").write_text("a\tis\ta\na\tlikes\tb\n")
    said = sptx("train", walking(sptx, model={"dim": "4"})).stderr
    assert "1 self-loop left out" in said and "1 arc of 4 entities and relations" in said and "20 walks of at most 5 an epoch" in said
    lines = [json.loads(line) for line in sptx.path("run", "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["words"] % (20 * 3) == 0 < lines[-1]["words"]  # each of 20 walks of an epoch is: a likes b
    assert words_of(sptx) == {"a": "3", "b": "1", "relation:is": "1", "relation:likes": "1"}
    assert "20 walks" in sptx("plan", walking(sptx)).stdout
    assert "40 walks" in sptx("plan", walking(sptx, graph={"directed": "no"})).stdout


def test_an_entity_and_a_relation_of_one_name_are_two_words(sptx):
    sptx.path("facts.tsv").write_text("likes\tlikes\tb\nb\tknows\tlikes\n")
    sptx("train", walking(sptx, model={"dim": "4"}))
    assert words_of(sptx) == {"likes": "2", "b": "2", "relation:likes": "1", "relation:knows": "1"}
    sptx.path("facts.tsv").write_text("relation:knows\tlikes\tb\nb\tknows\tc\n")
    assert "the entity 'relation:knows' has the name that walks need for the relation 'knows'; rename one of the two" in \
        sptx.refuses("train", walking(sptx), "--overwrite")


def test_a_relation_for_each_triple(sptx):
    count = 100000
    sptx.path("facts.tsv").write_text("".join(f"e{i % 100}\tr{i}\te{(i * 7 + 1) % 100}\n" for i in range(count)))
    sptx("train", walking(sptx, model={"dim": "2"}, walks={"per_node": "1"}, train={"epochs": "1", "batch": "10000"}))
    loops = sum(i % 100 == (i * 7 + 1) % 100 for i in range(count))
    assert len(words_of(sptx)) == count + 100
    assert json.loads(sptx("plan", walking(sptx), "--json").stdout)["stream_bytes"] == 128 + 8 * (count - loops) + 8 * (count + 101)


def test_words_that_are_left_out_take_their_triples_along(sptx):
    sptx.path("facts.tsv").write_text("a\tlikes\tb\nb\tlikes\ta\na\tlikes\trare\nb\tknows\ta\n")
    said = sptx("train", walking(sptx, corpus={"min_count": "2"}, model={"dim": "4"})).stderr
    assert "1 of 4 triples, of which a term is not in the vocabulary" in said and "3 arcs" in said
    assert list(words_of(sptx)) == ["a", "b", "relation:likes", "relation:knows"]
    sptx.path("words.tsv").write_text("a\t3\nb\t3\nrelation:likes\t2\n")
    said = sptx("train", walking(sptx, corpus={"vocab": "words.tsv"}, model={"dim": "4"}), "--overwrite").stderr
    assert "2 of 4 triples" in said and "2 arcs of 3" in said
    sptx.path("words.tsv").write_text("a\t3\nb\t3\n")
    assert "no triple of 'facts.tsv' can be walked: wanted one of two different entities and a relation that are all in the vocabulary (2 words" in \
        sptx.refuses("train", walking(sptx, corpus={"vocab": "words.tsv"}), "--overwrite")
    sptx.path("words.tsv").write_text("a\t3\nb\t3\nrelation:likes\t0\n")
    assert "the vocabulary ends with rows of relations" in sptx.refuses("train", walking(sptx, corpus={"vocab": "words.tsv"}), "--overwrite")


def test_entities_may_be_numbers(sptx):
    sptx.path("facts.tsv").write_text("3\tlikes\t0\n0\tlikes\t1\n1\tknows\t3\n")
    sptx("train", walking(sptx, corpus={"order": "given"}, model={"dim": "4"}))
    assert list(words_of(sptx)) == ["0", "1", "2", "3", "relation:likes", "relation:knows"]


def test_held_out_triples_are_ranked_among_entities(triples):
    all_facts = facts()
    held_out = all_facts[::10]
    linked = {pair for head, _, tail in held_out for pair in ((head, tail), (tail, head))}
    rest = [(head, relation, tail) for head, relation, tail in all_facts if (head, tail) not in linked]
    for name, part in (("held.tsv", held_out), ("facts.tsv", rest)):
        triples.path(name).write_text("".join("\t".join(fact) + "\n" for fact in part))
    triples("train", walking(triples, train={"epochs": "30"}, graph={"directed": "no"}))
    said = triples("evaluate", "run", "--edges=held.tsv").stdout.split()
    assert float(said[said.index("auc") + 1]) > 0.6
    entities = sum(not word.startswith("relation:") for word in words_of(triples))
    assert int(said[said.index("among") + 1]) < entities
    found = triples("recommend", "run", "--list=g1n1", "--k=100").stdout.splitlines()
    assert found and not any(line.startswith("relation:") for line in found)
    assert len(found) < len(words_of(triples))


def test_a_relation_is_never_answered_as_a_node(triples):
    """Neither where relations are words of this run, nor where they were kept of an older one, nor as one of the candidates."""
    triples("train", walking(triples))
    triples("train", walking(triples, walks={"relations": "no"}, train={"from": "run"}), "--run.dir=kept")
    triples.path("candidates.txt").write_text("relation:likes\nlikes\ng1n2\n")
    assert "relation:likes" in words_of(triples, "kept")
    for run in ("run", "kept"):
        found = {line.split("\t")[1] for line in triples("recommend", run, "--items=g1n1", "--seen", "--k=1000").stdout.splitlines()}
        assert found == {word for word in words_of(triples, run) if not word.startswith("relation:")}
        for name in ("likes", "relation:likes"):
            assert f"'{name}' is a relation of '{run}'; wanted an entity" in triples.refuses("recommend", run, f"--list={name}", code=2)
        assert "its relations are words, which are answers without --lists" in triples.refuses("nearest", run, "g1n1", "--lists")
        done = triples("recommend", run, "--items=g1n1", "--candidates=candidates.txt")
        assert [line.split("\t")[1] for line in done.stdout.splitlines()] == ["g1n2"] and "2 candidates of 'candidates.txt' are no items" in done.stderr


def test_an_entity_may_be_called_as_a_relation_is_where_none_is_a_word(sptx):
    sptx.path("facts.tsv").write_text("relation:knows\tlikes\tb\nb\tknows\tc\n")
    sptx("train", walking(sptx, walks={"relations": "no"}, model={"dim": "4"}))
    found = sptx("recommend", "run", "--items=c", "--seen", "--k=9").stdout.splitlines()
    assert sorted(line.split("\t")[1] for line in found) == ["b", "c", "relation:knows"]


def test_a_relation_is_found_by_its_name_alone(triples):
    triples.path("facts.tsv").write_text(triples.path("facts.tsv").read_text() + "own2\tknows\tg0n1\n")
    triples("train", walking(triples))
    triples.path("lists.txt").write_text("x likes g1n1\n")
    triples.path("whole.txt").write_text("x relation:likes g1n1\n")
    for bare, whole in ((["nearest", "run", "likes"], ["nearest", "run", "relation:likes"]),
                        (["analogy", "run", "likes", "g1n1", "own3"], ["analogy", "run", "relation:likes", "g1n1", "relation:own3"]),
                        (["recommend", "run", "--items=likes"], ["recommend", "run", "--items=relation:likes"]),
                        (["recommend", "run", "--lists=lists.txt", "--format=lists"], ["recommend", "run", "--lists=whole.txt", "--format=lists"])):
        assert triples(*bare).stdout == triples(*whole).stdout != ""
    assert triples("nearest", "run", "own2").stdout != triples("nearest", "run", "relation:own2").stdout  # an entity's name comes first
    assert "'liked' is not in the vocabulary of 'run'" in triples.refuses("nearest", "run", "liked")


def test_a_relation_is_no_node_to_evaluate(triples):
    triples("train", walking(triples))
    linked = {pair for head, _, tail in facts() for pair in ((head, tail), (tail, head))}
    held = [pair for pair in ((f"g{a}n{b}", f"g{b % GROUPS}n{a}") for a in range(GROUPS) for b in range(SIZE))
            if pair not in linked and pair[0] != pair[1]]
    for relation in ("relation:likes", "relation:unheard", "likes"):
        triples.path("held.tsv").write_text("".join(f"{a}\tis\t{b}\n" for a, b in [*held, (relation, "g1n1"), ("g2n2", relation)]))
        for known in ([], ["--known=facts.tsv"]):
            done = triples("evaluate", "run", "--edges=held.tsv", *known)
            found = done.stdout.split()
            assert [found[found.index(name) + 1] for name in ("links", "unknown", "left-out")] == [str(len(held)), "1", "2"]
            assert f"left out   2 of {len(held) + 2} held-out links" in done.stderr
    labels = [(f"g{group}n{member}", f"label{group}") for group in range(GROUPS) for member in range(SIZE)]
    said = []
    for relation in ("relation:likes", "relation:unheard"):
        triples.path("labels.tsv").write_text("".join(f"{name}\t{label}\n" for name, label in [*labels, (relation, "label1")]))
        said.append(triples("evaluate", "run", "--labels=labels.tsv").stdout)
    assert said[0] == said[1]


@pytest.mark.parametrize("sections, said", [
    ({"examples": {"mode": "window"}}, "triples (corpus.format = triples) are trained with examples.mode = triple or walk"),
    ({"corpus": {"format": "graph", "columns": "1,3"}, "walks": {"relations": "no"}}, "walks.relations = no leaves relations of triples out"),
    ({"examples": {"mode": "triple"}, "walks": {"relations": "no"}}, "walks.relations = no leaves relations of triples out"),
    ({"triples": {"reciprocal": "no"}}, "walks over triples have no reciprocals"),
    ({"graph": {"weights": "yes"}}, "graph.weights = yes needs corpus.format = graph"),
    ({"examples": {"mode": "triple"}, "graph": {"directed": "yes"}}, "graph.directed = yes is for walks"),
    ({"examples": {"mode": "triple"}, "walks": {"length": 5}}, "walks.length = 5 has no effect without examples.mode = walk; leave it out"),
    ({"glove": {"alpha": "0.5"}}, "glove.alpha = 0.5 has no effect without train.loss = glove"),
    ({"train": {"evaluate": "facts.tsv"}}, "examples.mode is not triple; with walks, train.held_out = 0.01 measures a loss, and evaluate RUN --edges"),
    ({"examples": {"mode": None}, "train": {"loss": "glove"}}, "train.loss = glove needs corpus.format = text, or graph with weights, and it is triples"),
    ({"examples": {"shuffle": "yes"}}, "walks begin in a drawn order"),
    ({"corpus": {"min_count": "1000"}}, "min_count"),
])
def test_what_cannot_be_walked_is_said(triples, sections, said):
    assert said in triples.refuses("train", walking(triples, **sections))
    assert not checkpoints(triples)


def test_questions_for_other_runs_are_refused(triples):
    triples("train", walking(triples))
    assert "its relations are words" in triples.refuses("recommend", "run", "--head=g1n1", "--relation=likes")
    assert "these are triples" in triples("tune", walking(triples), "--trials=2", "--out=best.ini", expect=1).stderr


def test_a_run_without_relations_in_its_file(sptx):
    sptx.path("facts.tsv").write_text("a\tb\nb\tc\n")
    assert "facts.tsv" in sptx.refuses("train", walking(sptx))
    sptx.path("facts.tsv").write_text("a\tlikes\ta\n")
    assert "no triple of 'facts.tsv' can be walked" in sptx.refuses("train", walking(sptx))
    assert "vocabulary has 1 word" in sptx.refuses("train", walking(sptx, walks={"relations": "no"}))


@pytest.mark.parametrize("loss", ["logistic", "hierarchical"])
def test_walks_learn_with_either_loss(triples, loss):
    triples("train", walking(triples, train={"loss": loss, "epochs": "10"}, model={"dim": "8"}))
    losses = [json.loads(line) for line in triples.path("run", "metrics.jsonl").read_text().splitlines()]
    assert losses and numpy.isfinite(numpy.load(triples.checkpoint() / "target.npy")["weights"]).all()


def test_runs_of_triples_begin_from_walks_only_without_their_words(triples):
    triples("train", walking(triples), "--run.dir=walked")
    triples("train", "--corpus.path=facts.tsv", "--corpus.format=triples", "--model.dim=16", "--train.epochs=1", "--run.dir=trained")
    for older, mode in (("walked", "triple"), ("trained", "walk")):
        begin = ["train", "--corpus.path=facts.tsv", "--corpus.format=triples", f"--examples.mode={mode}", "--model.dim=16", "--train.epochs=1",
                 f"--train.from={older}"]
        assert "set train.from_words = drop" in triples.refuses(*begin, "--run.dir=new")
        triples(*begin, "--train.from_words=drop", f"--run.dir=new-{mode}")


def test_new_triples_join_an_older_run(triples):
    triples("train", walking(triples))
    old, words = numpy.load(triples.checkpoint() / "target.npy")["weights"], list(words_of(triples))
    with triples.path("facts.tsv").open("a") as file:
        file.write("new\tlikes\ttopic1_0\nnew\tfresh\tg0n1\n")
    triples("train", walking(triples, train={"from": "run", "freeze": "known", "update": "batch"}), "--run.dir=grown")
    grown, after = numpy.load(triples.checkpoint("grown") / "target.npy")["weights"], list(words_of(triples, "grown"))
    assert set(after) == {*words, "new", "relation:fresh"}
    for row, word in enumerate(words):
        assert numpy.array_equal(grown[after.index(word)], old[row])
