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


def product(head, relation, real):
    if real:
        return head * relation
    half = len(head) // 2
    a, b = head[:half] + 1j * head[half:], relation[:half] + 1j * relation[half:]
    return numpy.concatenate([(a * b).real, (a * b).imag])


def ranks(sptx, test, known, real=False, reciprocal=True):
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
            scores = contexts.astype(float) @ product(targets[at[asked]], targets[len(entities) + row], real).astype(float)
            scores = scores.astype(numpy.float32)
            counted = [i for name, i in at.items() if name not in others and name != answer]
            right = scores[at[answer]]
            out.append(1 + (scores[counted] > right).sum() + (scores[counted] == right).sum() / 2)
    return numpy.array(out)


def measured(text):
    found = re.match(r"test mrr (\S+) hits@1 (\S+) hits@3 (\S+) hits@10 (\S+) tails (\S+)(?: heads (\S+))?(.*)", text)
    return [float(x) for x in found.groups()[:6] if x], dict(zip(*[iter(found[7].split())] * 2))


@pytest.mark.parametrize("keys, real, reciprocal", [({}, False, True), ({"train": {"product": "real"}}, True, True),
                                                    ({"model": {"tied": "no"}}, False, True), ({"triples": {"reciprocal": "no"}}, False, False)])
def test_ranks_are_those_of_numpy(sptx, keys, real, reciprocal):
    train, valid, test = split(sptx)
    sptx("train", config(sptx, **keys))
    for known, files in ((train + valid + test, ["--known=valid.txt"]), (train + test, [])):
        done = sptx("evaluate", "run", "--triples=test.txt", *files)
        values, counts = measured(done.stdout)
        wanted = ranks(sptx, test, known, real, reciprocal)
        mrr = 1 / wanted
        expected = [mrr.mean(), *((wanted <= k).mean() for k in (1, 3, 10)), *(part.mean() for part in numpy.split(mrr, 1 + reciprocal))]
        assert values == pytest.approx(expected, abs=6e-5)
        assert counts["triples"] == "50" and counts["asked"] == str(50 * (1 + reciprocal)) and counts["trained"] == "0"
        assert "the triples that the run was trained on" in done.stderr
        assert ("tails      only" in done.stderr) == (not reciprocal)


def test_unknown_names_are_misses_and_trained_triples_counted(sptx):
    train, valid, test = split(sptx)
    sptx("train", config(sptx))
    write(sptx, "test.txt", test[:20] + [("nobody", "r0", test[0][2]), (test[0][0], "r99", test[0][2])] + train[:5])
    field, known = sptx("evaluate", "run", "--triples=test.txt", "--known=valid.txt").stdout.splitlines()
    values, counts = measured(field)
    wanted = ranks(sptx, test[:20] + train[:5], train + valid + test[:20])
    assert values[0] == pytest.approx((1 / wanted).sum() / 54, abs=6e-5)
    assert known.startswith(f"test known mrr {(1 / wanted).mean():.4f} hits@1 ") and " triples 25, without those of unknown names" in known
    assert (counts["triples"], counts["unknown"], counts["trained"], counts["asked"]) == ("27", "2", "5", "50")
    write(sptx, "none.txt", [("nobody", "r0", "noone")])
    assert "'none.txt' has no triple whose head, relation and tail 'run' knows" in sptx.refuses("evaluate", "run", "--triples=none.txt").replace(
        str(sptx.directory.resolve()) + "/", "")


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
    (["recommend", "run", "--head=e0_0", "--tail=e0_0", "--relation=r0"], ["--head=X", "--tail=Y"]),
    (["recommend", "run", "--head=e0_0", "--relation=r0", "--among=3"], ["--among", "lists"]),
    (["recommend", "run", "--head=nobody", "--relation=r0"], ["knows no entity 'nobody'"]),
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
    assert all(word in done.stderr.splitlines()[-1] for word in words), done.stderr


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
    assert plain.split()[1:] == wanted.split()[1:]


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
