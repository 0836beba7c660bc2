"""A knowledge graph: reading triples, and ranking the tails and heads of held-out triples as NumPy does."""
import gzip
import json
import random
import re

import numpy
import pytest

from test_train_triples import config


def triples(seed=1, clusters=5, each=8, relations=4, count=500):
    """Makes triples in which each relation leads from one cluster of entities to another. Some entities are rare."""
    draw = random.Random(seed)
    leads = [draw.sample(range(clusters), clusters) for _ in range(relations)]
    found = set()
    while len(found) < count:
        a, r = draw.randrange(clusters), draw.randrange(relations)
        found.add((f"e{a}_{int(each * draw.random() ** 2)}", f"r{r}", f"e{leads[r][a]}_{int(each * draw.random() ** 2)}"))
    found = sorted(found)
    draw.shuffle(found)
    return found


def write(sptx, name, lines):
    sptx.path(name).write_text("".join("\t".join(line) + "\n" for line in lines))


def split(sptx):
    """Writes corpus.txt, valid.txt and test.txt, and returns the lines of each."""
    all_of_them = triples()
    parts = all_of_them[:400], all_of_them[400:450], all_of_them[450:]
    for name, part in zip(("corpus.txt", "valid.txt", "test.txt"), parts):
        write(sptx, name, part)
    return parts


def rows(sptx):
    """Returns the names of entities, the names of relations, the rows of heads and relations, and the rows of tails."""
    words = [line.split("\t")[0] for line in sptx.path("run", "vocab.tsv").read_text().splitlines()]
    entities = [word for word in words if not word.startswith("relation:")]
    targets, contexts = (numpy.load(sptx.checkpoint() / name)["weights"] for name in ("target.npy", "context.npy"))
    if len(targets) < len(words):  # model.tied: a head has its row as a tail
        targets = numpy.concatenate([contexts, targets])
    return entities, [word[len("relation:"):] for word in words[len(entities):]], targets, contexts


def product(head, relation, kind):
    if kind in ("real", "translation"):
        return head * relation if kind == "real" else head + relation
    half = len(head) // 2
    a, b = head[:half] + 1j * head[half:], relation[:half] + 1j * relation[half:]
    both = a * b / (abs(b) if kind == "rotation" else 1)
    return numpy.concatenate([both.real, both.imag])


def scores_of(vector, contexts, kind):
    """Returns the score of each tail for a head and a relation that are combined to a vector."""
    if kind in ("rotation", "translation"):
        return -numpy.linalg.norm(contexts.astype(float) - vector, axis=1)
    return contexts.astype(float) @ vector


def ranks(sptx, test, known, kind="complex", reciprocal=True):
    """Returns the rank of each triple's tail, then of each head."""
    entities, relations, targets, contexts = rows(sptx)
    at = {name: i for i, name in enumerate(entities)}
    out = []
    for backwards in range(1 + reciprocal):
        for head, relation, tail in test:
            if backwards:
                asked, answer, row = tail, head, relations.index(relation + "^-1")
                others = {a for a, r, b in known if r == relation and b == tail}
            else:
                asked, answer, row = head, tail, relations.index(relation)
                others = {b for a, r, b in known if r == relation and a == head}
            vector = product(targets[at[asked]].astype(float), targets[len(entities) + row].astype(float), kind)
            scores = scores_of(vector, contexts, kind).astype(numpy.float32)
            counted = [i for name, i in at.items() if name not in others and name != answer]
            right = scores[at[answer]]
            out.append(1 + (scores[counted] > right).sum() + (scores[counted] == right).sum() / 2)
    return numpy.array(out)


def plain_ranks(sptx, train, test, known):
    """Returns the mean reciprocal rank of the most frequent entities first, and of a random order."""
    counts = {name: sum((a == name) + (b == name) for a, _, b in train) for name in rows(sptx)[0]}
    popular, at_random = [], []
    for end in (2, 0):
        for triple in test:
            others = {line[end] for line in known if line[1] == triple[1] and line[2 - end] == triple[2 - end]}
            left = [count for name, count in counts.items() if name not in others]
            own = counts[triple[end]]
            popular.append(1 / (1 + sum(count > own for count in left) + sum(count == own for count in left) / 2))
            at_random.append(sum(1 / i for i in range(1, len(left) + 2)) / (len(left) + 1))
    return numpy.mean(popular), numpy.mean(at_random)


def measured(text):
    found = re.match(r"test mrr (\S+) hits@1 (\S+) hits@3 (\S+) hits@10 (\S+) tails (\S+)(?: heads (\S+))?(.*)", text)
    return [float(x) for x in found.groups()[:6] if x], dict(zip(*[iter(found[7].split())] * 2))


@pytest.mark.parametrize("keys, kind, reciprocal", [({}, "complex", True), ({"train": {"product": "real"}}, "real", True),
                                                    ({"train": {"product": "rotation"}}, "rotation", True),
                                                    ({"train": {"product": "translation", "relations": 0.5}}, "translation", True),
                                                    ({"train": {"product": "translation"}, "model": {"tied": "no"}}, "translation", True),
                                                    ({"model": {"tied": "no"}}, "complex", True), ({"triples": {"reciprocal": "no"}}, "complex", False)])
def test_ranks_are_those_of_numpy(sptx, keys, kind, reciprocal):
    train, valid, test = split(sptx)
    sptx("train", config(sptx, **keys))
    for known, files in ((train + valid + test, ["--known=valid.txt"]), (train + test, [])):
        done = sptx("evaluate", "run", "--triples=test.txt", *files)
        values, counts = measured(done.stdout)
        wanted = ranks(sptx, test, known, kind, reciprocal)
        mrr = 1 / wanted
        expected = [mrr.mean(), *((wanted <= k).mean() for k in (1, 3, 10)), *(part.mean() for part in numpy.split(mrr, 1 + reciprocal))]
        assert values == pytest.approx(expected, abs=6e-5)
        assert counts["triples"] == "50" and counts["asked"] == str(50 * (1 + reciprocal)) and counts["trained"] == "0"
        plain = re.search(r"^test popularity mrr (\S+) random mrr (\S+)$", done.stdout, re.M)
        if reciprocal:
            assert [float(x) for x in plain.groups()] == pytest.approx(plain_ranks(sptx, train, test, known), abs=6e-5)
        assert "the triples that the run was trained on" in done.stderr
        assert ("tails      only" in done.stderr) == (not reciprocal)


@pytest.mark.parametrize("kind", ["complex", "rotation", "translation"])
def test_the_scores_of_answers_are_those_of_the_model(sptx, kind):
    train, _, test = split(sptx)
    sptx("train", config(sptx, train={"product": kind}))
    entities, relations, targets, contexts = rows(sptx)
    head, relation, tail = next(line for line in test if line[0] in entities and line[2] in entities)
    vector = product(targets[entities.index(head)].astype(float), targets[len(entities) + relations.index(relation)].astype(float), kind)
    wanted = dict(zip(entities, scores_of(vector, contexts, kind)))
    for line in sptx("recommend", "run", f"--head={head}", f"--relation={relation}", "--k=5").stdout.splitlines():
        _, _, name, score = line.split("\t")
        assert float(score) == pytest.approx(wanted[name], abs=2e-4)


def test_unknown_names_are_misses_and_trained_triples_counted(sptx):
    train, valid, test = split(sptx)
    sptx("train", config(sptx))
    write(sptx, "test.txt", test[:20] + [("nobody", "r0", test[0][2]), (test[0][0], "r99", test[0][2])] + train[:5])
    field, known, plain = sptx("evaluate", "run", "--triples=test.txt", "--known=valid.txt").stdout.splitlines()
    values, counts = measured(field)
    wanted = ranks(sptx, test[:20] + train[:5], train + valid + test[:20])
    assert values[0] == pytest.approx((1 / wanted).sum() / 54, abs=6e-5)
    assert plain.startswith("test popularity mrr ")
    assert known.startswith(f"test known mrr {(1 / wanted).mean():.4f} hits@1 ") and " triples 25, without those of unknown names" in known
    assert (counts["triples"], counts["unknown"], counts["trained"], counts["asked"]) == ("27", "2", "5", "50")
    write(sptx, "none.txt", [("nobody", "r0", "noone")])
    assert "'none.txt' has no triple whose head, relation and tail 'run' knows" in sptx.refuses("evaluate", "run", "--triples=none.txt").replace(
        str(sptx.directory.resolve()) + "/", "")


def test_files_of_triples_that_tell_nothing_are_refused(sptx):
    """Without triples, or with triples of other names: whatever the file is for. Of a list of files each one is judged."""
    split(sptx)
    sptx("train", config(sptx))
    sptx.path("empty.txt").write_text("")
    write(sptx, "none.txt", [("nobody", "r0", "noone", "1"), ("noone", "r1", "nobody", "0")])
    write(sptx, "labels.txt", [("e0_0", "r0", "e0_1", "1"), ("e0_0", "r1", "e0_2", "0")])
    evaluate, score = ("evaluate", "run"), ("score", "run")
    for file, sentence in (("empty.txt", "has no triples"), ("none.txt", "has no triple whose head, relation and tail 'run' knows, among 2")):
        for command in ((*evaluate, "--triples=test.txt", f"--known={file}"), (*evaluate, "--triples=test.txt", f"--known=valid.txt,{file}"),
                        (*evaluate, f"--triples={file}"), (*evaluate, f"--labelled={file}", "--thresholds=labels.txt"),
                        (*evaluate, "--labelled=labels.txt", f"--thresholds={file}"), (*score, "--triples=test.txt", f"--validation={file}")):
            assert f"'{file}' {sentence}" in sptx.refuses(*command).replace(str(sptx.directory.resolve()) + "/", "")
    assert "'empty.txt' has no triples" in sptx.refuses(*score, "--triples=empty.txt")
    assert sptx(*score, "--triples=none.txt").stdout.count("nan") == 2
    write(sptx, "one.csv", [("nobody", "r0", "noone")])
    assert "1 of 1 triple of 'one.csv' has a name" in sptx(*score, "--triples=one.csv").stderr


def test_a_sample_is_said(sptx):
    split(sptx)
    sptx("train", config(sptx))
    done = sptx("evaluate", "run", "--triples=test.txt", "--sample=12")
    among = int(measured(done.stdout)[1]["among"])
    assert 4 <= among <= 12 and f"sample     of {among} of " in done.stderr
    assert done.stdout == sptx("evaluate", "run", "--triples=test.txt", "--sample=12", "--device.threads=1").stdout
    assert measured(done.stdout)[0][0] > measured(sptx("evaluate", "run", "--triples=test.txt").stdout)[0][0]


def test_without_the_encoded_corpus_training_triples_are_wrong_answers(sptx):
    train, valid, test = split(sptx)
    sptx("train", config(sptx))
    whole = sptx("evaluate", "run", "--triples=test.txt")
    sptx.path("run", "corpus.ids").unlink()
    less = sptx("evaluate", "run", "--triples=test.txt")
    assert "the triples that it was trained on are not known, and may be among the answers" in less.stderr
    assert measured(less.stdout)[0][0] < measured(whole.stdout)[0][0]
    assert sptx("evaluate", "run", "--triples=test.txt", "--known=corpus.txt").stdout.split(" triples ")[0] == whole.stdout.split(" triples ")[0]


def test_a_damaged_encoded_corpus_is_an_error(sptx):
    split(sptx)
    sptx("train", config(sptx))
    ids = sptx.path("run", "corpus.ids")
    data = bytearray(ids.read_bytes())
    data[140] ^= 1
    ids.write_bytes(data)
    for command in (["evaluate", "run", "--triples=test.txt"], ["recommend", "run", "--head=e0_0", "--relation=r0"]):
        assert "is damaged or of another version" in sptx.refuses(*command)


@pytest.mark.parametrize("form", ["gz", "header", "ntriples", "two files", "repeated"])
def test_all_forms_give_the_same_rows(sptx, form):
    lines = triples()
    write(sptx, "corpus.txt", lines)
    sptx("train", config(sptx), "--run.dir=plain")
    paths = "corpus.txt"
    if form == "gz":
        sptx.path("corpus.txt").write_bytes(gzip.compress(sptx.path("corpus.txt").read_bytes()))
    elif form == "header":
        sptx.path("corpus.txt").write_text("tail,weight,relation,head\n" + "".join(f'{t},1,"{r}",{h}\n' for h, r, t in lines))
    elif form == "ntriples":
        sptx.path("corpus.txt").write_text("# some\n" + "".join(f"<{h}> <{r}> <{t}> .\n" for h, r, t in lines))
    elif form == "two files":
        write(sptx, "corpus.txt", lines[:200])
        write(sptx, "more.txt", lines[200:])
        paths = "corpus.txt,more.txt"
    else:
        write(sptx, "corpus.txt", [line for line in lines for _ in range(2)])
    done = sptx("train", config(sptx), f"--corpus.path={paths}")
    names = [[line.split("\t")[0] for line in sptx.path(run, "vocab.tsv").read_text().splitlines()] for run in ("plain", "run")]
    if form == "header":
        assert sorted(names[0]) == sorted(names[1])  # entities that come equally often are in another order
    else:
        assert names[0] == names[1] and sptx.tables("plain") == sptx.tables()
    assert ("repeated   500 of 1,000 triples, each of which counts once" in done.stderr) == (form == "repeated")


def test_train_says_what_it_read(sptx):
    write(sptx, "corpus.txt", [("a", "r", "b"), ("b", "s", "a"), ("c", "r", "b")])
    for keys, rest in (([], ", each trained backwards, too"), (["--triples.reciprocal=no", "--overwrite"], "")):
        assert f"corpus     3 triples of 3 entities and 2 relations{rest}\n" in \
             sptx("train", config(sptx), *keys).stderr


def test_rare_entities_take_their_triples_along(sptx):
    write(sptx, "corpus.txt", [("a", "r", "b"), ("b", "r", "a"), ("a", "s", "rare"), ("b", "s", "b")])
    done = sptx("train", config(sptx), "--corpus.min_count=2")
    assert "left out   1 of 4 triples, whose head or tail is not in the vocabulary" in done.stderr
    assert sptx.path("run", "vocab.tsv").read_text() == "b\t4\na\t3\n" + "".join(f"relation:{r}\t0\n" for r in ("r", "s", "r^-1", "s^-1"))


@pytest.mark.parametrize("count, relations", [(True, 12), (False, 9)])
def test_files_of_openke_have_head_tail_relation(sptx, count, relations):
    lines = triples(each=4, relations=relations, count=300)  # of 20 entities: relations are not much fewer
    entities = {name: i for i, name in enumerate(sorted({end for line in lines for end in (line[0], line[2])}))}
    text = "".join(f"{entities[h]} {entities[t]} {r[1:]}\n" for h, r, t in lines)
    sptx.path("train2id.txt").write_text(f"{len(lines)}\n{text}" if count else text)
    done = sptx("train", config(sptx), "--corpus.path=train2id.txt")
    assert "relation = column 3, tail = column 2" in done.stderr and f"corpus     300 triples of {len(entities)} entities and {relations} relations" in done.stderr
    assert ", a count in the first line" in done.stderr or not count


@pytest.mark.parametrize("text, keys, words", [
    ("a r b\nc d\n", [], ["line 2", "2 fields", "head, relation, tail"]),
    ("a\tr\tb\nc\t\td\n", [], ["line 2", "its relation is empty"]),
    ("<a> <r> <b> .\n<a> <r> .\n", [], ["line 2", "no triple of N-Triples"]),
    ("a r b\na r^-1 b\n", [], ["'r^-1' ends with ^-1", "triples.reciprocal = no"]),
    ("a r b\nrelation:r r b\n", [], ["'relation:r' is called as the row of the relation 'r'"]),
    ("a r b\n", ["--corpus.columns=1,3"], ["names two columns", "head, relation, tail"]),
    ("a r b\n", ["--corpus.format=text", "--triples.reciprocal=no"], ["triples.reciprocal = no", "corpus.format = triples"]),
])
def test_what_cannot_be_read_is_refused(sptx, text, keys, words):
    sptx.path("corpus.txt").write_text(text)
    sentence = sptx.refuses("train", config(sptx), *keys)
    assert all(word in sentence for word in words), sentence
    assert not sptx.path("run", "corpus.ids").exists()


def best(sptx, entity, relation, train, k, backwards=False, seen=False):
    """Returns the k best answers to a question by NumPy, without answers in triples of training."""
    entities, relations, targets, contexts = rows(sptx)
    row = relations.index(relation + "^-1" if backwards else relation)
    scores = contexts @ product(targets[entities.index(entity)], targets[len(entities) + row], False)
    known = {h if backwards else t for h, r, t in train if r == relation and (t if backwards else h) == entity}
    order = [entities[i] for i in numpy.argsort(-scores)]
    return [name for name in order if seen or name not in known][:k]


def test_recommend_answers_tails_and_heads(sptx):
    train, _, test = split(sptx)
    sptx("train", config(sptx))
    head, relation, tail = test[0]
    for backwards in (False, True):
        for seen in ([], ["--seen"]):
            entity = tail if backwards else head
            done = sptx("recommend", "run", f"--{'tail' if backwards else 'head'}={entity}", f"--relation={relation}", "--k=7", *seen)
            lines = [line.split("\t") for line in done.stdout.splitlines()]
            found = [line[0 if backwards else 2] for line in lines]
            assert found == best(sptx, entity, relation, train, 7, backwards, bool(seen))
            assert all(line[1] == relation and line[2 if backwards else 0] == entity for line in lines)
            assert sorted((float(line[3]) for line in lines), reverse=True) == [float(line[3]) for line in lines]


def test_recommend_answers_several_heads_as_json(sptx):
    train, _, test = split(sptx)
    sptx("train", config(sptx))
    heads, relation = [test[0][0], test[1][0]], test[0][1]
    sptx.path("titles.tsv").write_text(f"{heads[0]}\tThe first\n")
    asked = [f"--head={name}" for name in ("The first", heads[1])]
    done = sptx("recommend", "run", *asked, f"--relation={relation}", "--k=3", "--json", "--titles=titles.tsv")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["head"] for one in objects] == ["The first", heads[1]]
    assert [[item["item"] for item in one["tails"]] for one in objects] == [best(sptx, head, relation, train, 3) for head in heads]


def test_relations_are_compared_with_each_other(sptx):
    split(sptx)
    sptx("train", config(sptx))
    near = [line.split("\t")[0] for line in sptx("nearest", "run", "r0", "--lists", "--k=20").stdout.splitlines()]
    assert sorted(near) == sorted([f"relation:r{i}" for i in (1, 2, 3)] + [f"relation:r{i}^-1" for i in range(4)])
    assert all(name.startswith("e") for name in (line.split("\t")[0] for line in sptx("nearest", "run", "e0_0", "--k=20").stdout.splitlines()))
    sptx("export", "run", "--format=npy", "--table=target", "--lists", "--out=all.npy")
    assert numpy.array_equal(numpy.load(sptx.path("all.npy")), rows(sptx)[2])
    sptx("export", "run", "--format=npy", "--out=tails.npy")
    assert numpy.array_equal(numpy.load(sptx.path("tails.npy")), rows(sptx)[3])
    sptx("report", "run", "--out=page.html")


@pytest.mark.parametrize("command, words", [
    (["recommend", "run", "--head=e0_0"], ["--relation=R"]),
    (["recommend", "run", "--relation=r0"], ["--head=X"]),
    (["recommend", "run", "--head=e0_0", "--tail=e0_0", "--relation=r0"], ["--head = 'e0_0' and --tail = 'e0_0' are both given", "--relation=R"]),
    (["recommend", "run", "--head=e0_0", "--relation=r0", "--among=3"], ["--among", "lists"]),
    (["recommend", "run", "--head=nobody", "--relation=r0"], ["knows no entity 'nobody'"]),
    (["recommend", "run", "--head=relation:r0", "--relation=r0"], ["'relation:r0' is a relation of 'run'; wanted an entity\n"]),
    (["recommend", "run", "--tail=r0", "--relation=r0"], ["'r0' is a relation of 'run'; wanted an entity\n"]),
    (["recommend", "run", "--head=e0_0", "--relation=e0_0"], ["'e0_0' is an entity of 'run'; wanted a relation\n"]),
    (["recommend", "run", "--head=e0_0", "--relation=r0", "--relation=r1"], ["recommend: --relation is given twice\n"]),
    (["evaluate", "run", "--triples=test.txt", "--known=valid.txt", "--known=corpus.txt"], ["--known is given twice; several are written --known=FILE,FILE"]),
    (["recommend", "run", "--head=e0_0", "--relation=r00"], ["knows no relation 'r00'", "did you mean 'r0'"]),
    (["recommend", "run", "--list=r0"], ["was trained on triples", "--head=X"]),
    (["recommend", "run", "--items=e0_0"], ["was trained on triples", "--head=X"]),
    (["evaluate", "run", "--train=test.txt", "--held-out=test.txt"], ["was trained on triples", "--triples=FILE"]),
    (["nearest", "run", "relation:r0"], ["is a relation", "--lists"]),
    (["nearest", "run", "e0_0", "--lists"], ["is an entity", "--lists"]),
    (["evaluate", "run", "--triples=test.txt", "--edges=test.txt", "--known=test.txt"], ["--edges or to --triples"]),
    (["evaluate", "run", "--triples=test.txt", "--directed"], ["--directed", "to --edges=FILE, which is wanted"]),
])
def test_questions_that_triples_cannot_answer_are_refused(sptx, command, words):
    split(sptx)
    sptx("train", config(sptx))
    done = sptx(*command, expect=None)
    assert done.returncode in (1, 2) and done.stdout == ""
    assert all(word in done.stderr.splitlines()[-1] + "\n" for word in words), done.stderr


def test_without_reciprocals_heads_are_not_answered(sptx):
    split(sptx)
    sptx("train", config(sptx, triples={"reciprocal": "no"}))
    assert "triples.reciprocal = no" in sptx.refuses("recommend", "run", "--tail=e0_0", "--relation=r0", code=2)
    assert sptx("recommend", "run", "--head=e0_0", "--relation=r0").stdout


def test_held_out_triples_are_read_as_the_corpus_was(sptx):
    train, _, test = split(sptx)
    sptx("train", config(sptx))
    wanted = sptx("evaluate", "run", "--triples=test.txt").stdout
    for name, lines in (("corpus.txt", train), ("test.txt", test)):
        write(sptx, name, [(tail, relation, "x", head) for head, relation, tail in lines])
    sptx("train", config(sptx), "--overwrite", "--corpus.columns=4,2,1")
    assert sptx("evaluate", "run", "--triples=test.txt").stdout == wanted
    write(sptx, "plain.txt", test)
    plain = sptx("evaluate", "run", "--triples=plain.txt", "--corpus.format=triples", "--corpus.columns=auto").stdout
    assert plain == wanted.replace("test ", "plain ")


def test_relations_that_the_data_calls_backwards_are_its_own(sptx):
    write(sptx, "corpus.txt", [("a", "r", "b"), ("b", "r^-1", "a"), ("c", "r", "a")])
    sptx("train", config(sptx, triples={"reciprocal": "no"}))
    assert "triples.reciprocal = no" in sptx.refuses("recommend", "run", "--tail=b", "--relation=r", code=2)
    assert sptx("recommend", "run", "--head=a", "--relation=r^-1").stdout
    assert " triples 3 asked 3 unknown 0 " in sptx("evaluate", "run", "--triples=corpus.txt").stdout


def test_other_runs_know_no_relations(sptx):
    sptx.path("corpus.txt").write_text("a b c\nb c a\n" * 20)
    sptx("train", sptx.config())
    write(sptx, "test.txt", [("a", "r", "b")])
    assert "was not trained on triples" in sptx.refuses("evaluate", "run", "--triples=test.txt")
    assert "--known" in sptx.refuses("evaluate", "run", "--known=test.txt", code=2)


def scores(sptx, asked, kind="complex", reciprocal=True):
    """Returns the score of each triple: of its tail, or the mean of this and of its head's; nan for unknown names."""
    entities, relations, targets, contexts = rows(sptx)
    out = []
    for head, relation, tail in asked:
        if head not in entities or tail not in entities or relation not in relations:
            out.append(numpy.nan)
            continue
        ends, row = (entities.index(head), entities.index(tail)), len(entities) + relations.index(relation)
        both = [scores_of(product(targets[ends[0]], targets[row], kind), contexts[ends[1]][None], kind)[0]]
        if reciprocal:
            both.append(scores_of(product(targets[ends[1]], targets[row + len(relations) // 2], kind), contexts[ends[0]][None], kind)[0])
        out.append(numpy.mean(both))
    return numpy.array(out)


def labelled(sptx, name, true, seed, label=("1", "-1")):
    """Writes true triples and as many that are false, with their labels; returns the triples and the labels."""
    draw, ends = random.Random(seed), sorted({end for line in triples() for end in (line[0], line[2])})
    lines = [(line, 1) for line in true] + [((head, relation, draw.choice(ends)), 0) for head, relation, _ in true]
    draw.shuffle(lines)
    write(sptx, name, [(*line, label[0] if is_true else label[1]) for line, is_true in lines])
    return [line for line, _ in lines], numpy.array([is_true for _, is_true in lines])


def printed(text):
    return [line.split("\t") for line in text.splitlines()]


@pytest.mark.parametrize("keys, kind, reciprocal", [({}, "complex", True), ({"train": {"product": "real"}}, "real", True),
                                                    ({"train": {"product": "rotation"}}, "rotation", True),
                                                    ({"train": {"product": "translation"}}, "translation", True),
                                                    ({"triples": {"reciprocal": "no"}}, "complex", False)])
def test_a_triple_has_the_score_of_its_ends(sptx, keys, kind, reciprocal):
    test = split(sptx)[2]
    sptx("train", config(sptx, **keys))
    asked = test[:10] + [("e0_0", "r0", "e0_0"), ("nobody", "r0", "e0_0"), ("e0_0", "r99", "r0")]
    write(sptx, "asked.txt", asked)
    done = sptx("score", "run", "--triples=asked.txt")
    found = printed(done.stdout)
    assert [tuple(line[:3]) for line in found] == asked
    assert [float(line[3]) for line in found] == pytest.approx(scores(sptx, asked, kind, reciprocal), abs=2e-5, nan_ok=True)
    assert "2 of 13 triples of 'asked.txt' have a name that 'run' does not know" in done.stderr
    if not reciprocal:
        best = printed(sptx("recommend", "run", "--head=e0_0", "--relation=r0", "--seen", "--k=100").stdout)
        assert [line[3] for line in best if line[2] == "e0_0"] == [found[10][3]]


def test_probabilities_are_those_of_a_regression(sptx):
    train, valid, test = split(sptx)
    sptx("train", config(sptx))
    lines, is_true = labelled(sptx, "valid.tsv", valid, 5, ("true", "0"))
    done = sptx("score", "run", "--triples=test.txt", "--validation=valid.tsv", "--device.threads=1")
    assert "50 triples of 'valid.tsv' and 50 false ones, as their labels say; 0 of 4 relations have at least 20, and a regression of their own" in done.stderr
    x = scores(sptx, lines)
    mean, spread = x.mean(), x.std()
    z, w = numpy.stack([numpy.ones(len(x)), (x - mean) / spread], 1), numpy.zeros(2)
    for _ in range(50):  # Newton's method on the loss with an L2 penalty
        p = 1 / (1 + numpy.exp(-z @ w))
        w -= numpy.linalg.solve((z * (p * (1 - p))[:, None]).T @ z + numpy.eye(2), z.T @ (p - is_true) + w)
    wanted = 1 / (1 + numpy.exp(-w[0] - w[1] * (scores(sptx, test) - mean) / spread))
    assert [float(line[4]) for line in printed(done.stdout)] == pytest.approx(wanted, abs=2e-3)


def test_false_triples_are_drawn_for_true_ones(sptx):
    train, valid, test = split(sptx)
    sptx("train", config(sptx))
    write(sptx, "valid.txt", valid + [("nobody", "r0", "e0_0")])
    write(sptx, "asked.txt", [*test, ("nobody", "r0", "e0_0")])
    done = sptx("score", "run", "--triples=asked.txt", "--validation=valid.txt")
    said = re.search(r"calibrated by 50 triples of 'valid.txt' and (\d+) false ones, in which another head or tail was drawn", done.stderr)
    assert 60 <= int(said[1]) < 100  # of two for each, some are true ones of training
    *found, last = printed(done.stdout)
    assert last[3:] == ["nan", "nan"]
    by_score = sorted(((float(line[3]), float(line[4])) for line in found))
    assert all(a[1] <= b[1] and 0 < a[1] < 1 for a, b in zip(by_score, by_score[1:]))  # no relation has a regression of its own
    assert numpy.mean([p for _, p in by_score]) > .5
    assert done.stdout == sptx("score", "run", "--triples=asked.txt", "--validation=valid.txt", "--device.threads=1").stdout
    assert "trained on" not in done.stderr
    said = sptx("score", "run", "--triples=asked.txt", "--validation=corpus.txt").stderr
    count = len(sptx.path("corpus.txt").read_text().splitlines())
    assert f"{count} of {count} triples of 'corpus.txt' are ones that 'run' was trained on" in said
    write(sptx, "valid.txt", [("nobody", "r0", "e0_0")])
    assert "'valid.txt' has no triple whose head, relation and tail 'run' knows" in sptx.refuses("score", "run", "--triples=test.txt",
                                                                                              "--validation=valid.txt")


def threshold(x, is_true):
    """Returns the threshold between two scores that tells most triples apart, by trying all."""
    ordered = numpy.unique(x)
    tried = [-numpy.inf, *((ordered[1:] + ordered[:-1]) / 2), numpy.inf]
    return max(tried, key=lambda one: ((x >= one) == is_true).sum()) if len(set(is_true)) == 2 else None


def test_triples_are_classified_by_a_threshold_a_relation(sptx):
    train, valid, test = split(sptx)
    sptx("train", config(sptx))
    of_relation = [line for line in valid if line[1] != "r3"]  # r3 has the threshold of all
    chosen, chosen_true = labelled(sptx, "valid.tsv", of_relation, 5)
    asked, is_true = labelled(sptx, "test.tsv", test, 6, ("1", "0"))
    done = sptx("evaluate", "run", "--labelled=test.tsv", "--thresholds=valid.tsv")
    x, y = scores(sptx, chosen), scores(sptx, asked)
    names = sorted({line[1] for line in of_relation})
    own = {name: threshold(x[[line[1] == name for line in chosen]], chosen_true[[line[1] == name for line in chosen]]) for name in names}
    called = numpy.array([score >= own.get(line[1], threshold(x, chosen_true)) for line, score in zip(asked, y)])
    f1 = 2 * (called & (is_true == 1)).sum() / (called.sum() + is_true.sum())
    assert done.stdout == f"test.tsv accuracy {(called == is_true).mean():.4f} f1 {f1:.4f} labelled 100 true 50 unknown 0 thresholds {len(own)} relations 4\n"
    assert (called == is_true).mean() > .6
    assert f"thresholds of {len(own)} of 4 relations, chosen by the labelled triples of 'valid.tsv'" in done.stderr
    with sptx.path("test.tsv").open("a") as file:
        file.write("nobody\tr0\te0_0\t1\n")
    field, known = sptx("evaluate", "run", "--labelled=test.tsv", "--thresholds=valid.tsv").stdout.splitlines()
    assert field.startswith(f"test.tsv accuracy {(called == is_true).sum() / 101:.4f} f1 ") and " unknown 1 " in field
    assert known.startswith(f"test.tsv known accuracy {(called == is_true).mean():.4f} f1 {f1:.4f}, without")
    false = "\t".join(asked[int(numpy.argmin(numpy.where(called, numpy.inf, y)))]) + "\t0\n"
    sptx.path("false.tsv").write_text(false)
    assert sptx("evaluate", "run", "--labelled=false.tsv", "--thresholds=valid.tsv").stdout.startswith("false.tsv accuracy 1.0000 f1 0.0000 ")


def test_false_triples_are_not_held_out_ones(sptx):
    train, valid, test = split(sptx)
    sptx("train", config(sptx))
    wanted = sptx("evaluate", "run", "--triples=test.txt", "--known=valid.txt").stdout.replace("test ", "test.tsv ")
    for name, part in (("test", test), ("valid", valid)):
        labelled(sptx, name + ".tsv", part, 5)
    done = sptx("evaluate", "run", "--triples=test.tsv", "--known=valid.tsv")
    assert done.stdout == wanted and "tail = column 3, true or false = column 4" in done.stderr


@pytest.mark.parametrize("test, valid, words", [
    ("e0_0\tr0\te0_1\t1\n", "e0_0\tr0\te0_1\t1\n", ["'valid.tsv': all triples", "are true", "a fourth column"]),
    ("e0_0\tr0\te0_1\t1\n", "e0_0\tr0\te0_1\n", ["'valid.tsv': all triples", "are true"]),
    ("e0_0\tr0\te0_1\t1\n", "e0_0\tr0\te0_1\t1\ne0_1\tr0\te0_2\tmaybe\n", ["'valid.tsv' line 2: its label is 'maybe'"]),
    ("e0_0\tr0\te0_1\t1\n", "e0_0\tr0\te0_1\tyes\ne0_1\tr0\te0_2\tno\n", ["'valid.tsv': all triples", "are true", "a fourth column"]),
    ("e0_0\tr0\te0_1\t1\n", "head\trelation\ttail\tlabel\n" + "e0_0\tr0\te0_1\t1\n" * 2000 + "e0_1\tr0\te0_2\tmaybe\n",
     ["'valid.tsv' line 2002: its label is 'maybe'", "wanted 1 or true"]),
    ("nobody\tr0\te0_1\t1\n", "e0_0\tr0\te0_1\t1\ne0_0\tr0\te0_2\t0\n", ["'test.tsv' has no triple"]),
])
def test_labels_that_cannot_be_used_are_refused(sptx, test, valid, words):
    split(sptx)
    sptx("train", config(sptx))
    sptx.path("test.tsv").write_text(test)
    sptx.path("valid.tsv").write_text(valid)
    sentence = sptx.refuses("evaluate", "run", "--labelled=test.tsv", "--thresholds=valid.tsv")
    assert all(word in sentence for word in words), sentence


@pytest.mark.parametrize("command, words", [
    (["evaluate", "run", "--labelled=test.txt"], ["--labelled=FILE and --thresholds=FILE together"]),
    (["evaluate", "run", "--triples=test.txt", "--thresholds=test.txt"], ["--labelled=FILE and --thresholds=FILE together"]),
    (["score", "run"], ["--triples=FILE"]),
    (["score", "--triples=test.txt"], ["one run directory"]),
])
def test_scores_want_their_files(sptx, command, words):
    assert all(word in sptx.refuses(*command, code=2) for word in words)


def test_odd_graphs_are_scored_like_others(sptx):
    """A relation of one triple, one that only loops, one that is called as an entity is, an entity that is only a tail, an inverse of test triples."""
    train, valid, test = split(sptx)
    odd = [("e0_0", "once", "e1_1"), ("e0_1", "loop", "e0_1"), ("e0_1", "e0_0", "e1_1"), ("e0_0", "r0", "tail only"), ("r0", "r1", "e0_0")]
    write(sptx, "corpus.txt", train + odd + [(tail, relation + " back", head) for head, relation, tail in test[:20]])
    sptx("train", config(sptx))
    write(sptx, "odd.txt", odd)
    found = printed(sptx("score", "run", "--triples=odd.txt", "--validation=test.txt").stdout)
    assert [tuple(line[:3]) for line in found] == odd and all(0 < float(line[4]) < 1 for line in found)
    assert [float(line[3]) for line in found] == pytest.approx(scores(sptx, odd), abs=2e-5)
    labelled(sptx, "test.tsv", test + odd, 6)
    assert " thresholds 7 relations 11\n" in sptx("evaluate", "run", "--labelled=test.tsv", "--thresholds=test.tsv").stdout
    assert " triples 55 asked 110 unknown 0 trained 5 " in sptx("evaluate", "run", "--triples=test.tsv").stdout
    assert printed(sptx("recommend", "run", "--tail=tail only", "--relation=r0", "--seen", "--k=1").stdout)[0][2] == "tail only"


def test_a_planted_graph_is_learnt_nearly_as_well_as_can_be(sptx):
    made = sptx("generate", "triples", "--out=planted", "--rows=600", "--relations=8", "--edges=8000", "--groups=32", "--held-out=500").stdout
    best = dict(re.findall(r"^(best|inferred|popularity|random)\tmrr (\S+)", made, re.M))
    assert len(best) == 4 and float(best["best"]) >= float(best["inferred"]) > 20 * float(best["random"])
    held = {tuple(line.split()) for name in ("planted.valid", "planted.test") for line in sptx.path(name).read_text().splitlines()}
    assert 500 < len(held) <= 1000 and not held & {tuple(line.split()) for line in sptx.path("planted").read_text().splitlines()}
    sptx("train", config(sptx, corpus={"path": "planted"}, model={"dim": 64}, train={"epochs": 4}, negatives={"count": 200}, optimizer={"lr": 0.05}))
    found = measured(sptx("evaluate", "run", "--triples=planted.test", "--known=planted.valid").stdout.replace("planted.test", "test"))[0]
    assert .8 * float(best["best"]) < found[0] < 1.05 * float(best["best"])
