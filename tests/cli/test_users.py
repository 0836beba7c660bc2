"""examples.mode = user: lists have rows of their own, in the target table, and items are contexts."""
import json
import random

import numpy
import pytest

KEYS = {"examples": {"mode": "user", "positives": 0}, "negatives": {"count": 20}, "model": {"dim": 16},
        "optimizer": {"rule": "adam", "lr": 0.02}, "train": {"batch": 16, "epochs": 30, "loss": "softmax"}}


def baskets(count=300, seed=3):
    """Returns {list: items}. All items of a list are of one topic of thirty items. The names of lists and items are numbers."""
    rng = random.Random(seed)
    lists = {}
    for i in range(count):
        topic = i % 6
        lists[str(i)] = [str(30 * topic + item) for item in rng.sample(range(30), rng.randrange(4, 12))]
    return lists


def write(sptx, lists, name="corpus.txt"):
    sptx.path(name).write_text("".join(f"{name} {' '.join(items)}\n" for name, items in lists.items()))


def write_pairs(sptx, lists, name):
    sptx.path(name).write_text("".join(f"{name},{item},1\n" for name, items in lists.items() for item in items))


def rows_of(sptx, run="run"):
    return [line.split("\t") for line in sptx.path(run, "vocab.tsv").read_text().splitlines()]


def table(sptx, name, run="run"):
    return numpy.load(sptx.checkpoint(run) / name)["weights"].astype(float)


def config(sptx, format="lists", **sections):
    keys = {section: {**KEYS.get(section, {}), **sections.get(section, {})} for section in {**KEYS, **sections}}
    return sptx.config(corpus={"format": format}, **keys)


def test_lists_have_rows_behind_the_items(sptx):
    lists = baskets()
    write(sptx, lists)
    sptx("train", config(sptx), "--corpus.min_count=2", "--corpus.max_vocab=170")
    rows = rows_of(sptx)
    items = [word for word, count in rows if int(count)]
    assert [word for word, count in rows[len(items):]] == [f"list:{name}" for name in lists]
    assert len(items) == 170 and not {count for _, count in rows[len(items):]} - {"0"}
    sptx("train", config(sptx), "--corpus.min_count=2", "--corpus.max_vocab=170", "--run.dir=again")
    assert sptx.tables("again") == sptx.tables()


@pytest.mark.parametrize("law", ["unigram", "uniform", "log-uniform"])
def test_lists_are_never_negatives(sptx, law):
    write(sptx, baskets())
    sptx("train", config(sptx, negatives={"law": law, "count": 40}, train={"loss": "logistic"}))
    rows = rows_of(sptx)
    lists = sum(not int(count) for _, count in rows)
    context, target = table(sptx, "context.npy"), table(sptx, "target.npy")
    # lists are never contexts, so they have no row in this table
    assert len(context) == len(rows) - lists and context.any(axis=1).all()
    assert len(target) == lists and 0.5 / 16 < numpy.abs(target).max()  # items are never targets, so they have no row in this table


@pytest.mark.parametrize("place", ["pinned", "file"])
def test_contexts_end_and_targets_begin_where_lists_begin(sptx, place):
    """Memory, plan and files agree about the sizes of both tables, also in a resumed run and in one that begins from it."""
    write(sptx, baskets())
    keys = {"memory": {"target": place, "target_state": place}}
    whole = json.loads(sptx("plan", config(sptx, **keys), "--json", "--examples.own=0.5").stdout)
    plan = json.loads(sptx("plan", config(sptx, **keys), "--json").stdout)
    assert plan["rows"] == 480 and plan["context_bytes"] * 300 == plan["target_bytes"] * 180
    assert plan["target_bytes"] * 480 == whole["target_bytes"] * 300 and plan["context_bytes"] == whole["context_bytes"]
    sptx("train", config(sptx))
    sptx("train", config(sptx), "--train.epochs=20", "--optimizer.schedule=constant", "--run.dir=half")
    sptx("train", config(sptx), "--optimizer.schedule=constant", "--run.dir=half", "--resume")
    sptx("train", config(sptx), "--optimizer.schedule=constant", "--run.dir=whole")
    assert sptx.tables("half") == sptx.tables("whole")
    for run in ("run", "half"):
        assert len(table(sptx, "target.npy", run)) == 300 and len(table(sptx, "context.npy", run)) == 180
        assert "\ntarget_first_row = 180\n" in (sptx.checkpoint(run) / "state.ini").read_text()
    lists = baskets(310)
    write(sptx, lists, "more.txt")
    sptx("train", config(sptx), "--corpus.path=more.txt", "--train.from=run", "--optimizer.lr=0", "--run.dir=grown")
    words, grown = ([word for word, _ in rows_of(sptx, run)] for run in ("run", "grown"))
    old, new = (table(sptx, "context.npy", run) for run in ("run", "grown"))
    assert len(grown) == 490 and len(new) == 180
    assert all((new[grown.index(word)] == old[row]).all() for row, word in enumerate(words[:180]))
    old, new = (table(sptx, "target.npy", run) for run in ("run", "grown"))
    assert len(new) == 310
    assert all((new[grown.index(word) - 180] == old[row]).all() for row, word in enumerate(words[180:]))


def test_pairs_make_the_same_model(sptx):
    """The lists fill several blocks of the file, and one list is longer than a block."""
    rng = random.Random(1)
    lists = {f"u{i}": [f"item{rng.randrange(20000)}" for _ in range(rng.randrange(1, 300))] for i in range(1500)}
    lists["long"] = [f"item{rng.randrange(20000)}" for _ in range(300000)]
    lists["last"] = ["item1", "item2"]
    write(sptx, lists)
    write_pairs(sptx, lists, "pairs.csv")
    keys = {"examples": {"positives": 4}, "train": {"steps": 5, "epochs": 1}}
    sptx("train", config(sptx, **keys))
    sptx("train", config(sptx, "pairs", **keys), "--corpus.path=pairs.csv", "--run.dir=pairs")
    assert sorted(rows_of(sptx)) == sorted(rows_of(sptx, "pairs"))
    assert sptx.path("run", "corpus.ids").stat().st_size == sptx.path("pairs", "corpus.ids").stat().st_size
    assert sptx.tables("pairs") == sptx.tables()


def test_held_out_items_are_scored_by_the_lists_own_rows(sptx):
    lists = baskets()
    write(sptx, {name: items[:-2] for name, items in lists.items()}, "corpus.txt")
    write(sptx, {name: items[-2:] for name, items in lists.items()}, "held.txt")
    sptx("train", config(sptx))
    said = sptx("evaluate", "run", "--train=corpus.txt", "--held-out=held.txt", "--k=10").stdout
    words = [word for word, _ in rows_of(sptx)]
    items = [i for i, word in enumerate(words) if not word.startswith("list:")]
    target, context = table(sptx, "target.npy"), table(sptx, "context.npy")[items]
    context /= numpy.linalg.norm(context, axis=1, keepdims=True)
    recall = []
    for name, own in lists.items():
        scores = context @ target[words.index(f"list:{name}") - len(items)]
        scores[[words.index(item) for item in own[:-2]]] = -numpy.inf
        best = {words[i] for i in numpy.argsort(-scores)[:10]}
        recall.append(len(best & set(own[-2:])) / len(set(own[-2:])))
    assert f"recall@10 {numpy.mean(recall):.4f} " in said and " score user-cosine lists 300 unknown 0" in said
    assert numpy.mean(recall) > 5 * 10 / 180  # five times chance

    found = sptx("recommend", "run", "--lists=corpus.txt", "--name=7", "--k=5").stdout.splitlines()
    topic = {str(30 + item) for item in range(30)}
    assert len(found) == 5 and {line.split("\t")[1] for line in found} <= topic - set(lists["7"][:-2])
    def near(*options):
        lines = sptx("nearest", "run", "30", "list:7", *options).stdout.splitlines()
        return {line.split("\t")[0] for line in lines if "\t" in line}

    assert near("--k=5") <= topic  # only items are answers, unless lists are asked for
    of_topic = {f"list:{name}" for name in lists if int(name) % 6 == 1}
    assert near("--k=500") == {str(item) for item in range(180)} and near("--k=5", "--lists") <= topic | of_topic
    assert near("--k=500", "--lists") == {word for word in words}
    for option, count in (([], 180), (["--lists"], 480)):
        sptx("export", "run", "--format=word2vec-text", "--out=out.txt", *option)
        exported = [line.split(" ")[0] for line in sptx.path("out.txt").read_text().splitlines()]
        assert exported[0] == str(count) and exported[1:] == words[:count]
    whole = sptx("recommend", "run", "--lists=corpus.txt", "--name=7", "--k=500", "--score=target").stdout.splitlines()
    assert not any(line.split("\t")[1].startswith("list:") for line in whole)
    by_hand = sptx("recommend", "run", f"--items={','.join(lists['7'][:4])}", "--k=5").stdout.splitlines()
    assert {line.split("\t")[1] for line in by_hand} <= topic


# ---- lists that were not in training ----

def recall_of(sptx, train, *options):
    said = sptx("evaluate", "run", f"--train={train}", "--held-out=held.txt", "--k=10", *options).stdout
    return float(said.split()[1]), said


@pytest.mark.parametrize("loss, own, share", [("softmax", 1, 0.9), ("logistic", 1, 0.9), ("bpr", 1, 0.9), ("contrastive", 1, 0.9),
                                              ("softmax", 0.4, 0.8)])
def test_a_new_list_is_answered_as_well_as_a_trained_one(sptx, loss, own, share):
    lists = baskets(600)
    known = {name: items[:-2] for name, items in lists.items()}
    write(sptx, {name: items for name, items in known.items() if int(name) < 300}, "corpus.txt")
    sptx("train", config(sptx, train={"loss": loss, "epochs": 15}, examples={"own": own, "positives": 0 if own == 1 else 2}))
    recalls = []
    for first in (0, 300):
        some = {name: items for name, items in known.items() if first <= int(name) < first + 300}
        write(sptx, some, "known.txt")
        write(sptx, {name: lists[name][-2:] for name in some}, "held.txt")
        recall, said = recall_of(sptx, "known.txt")
        recalls.append(recall)
    score = "user-cosine folded" if loss in ("softmax", "contrastive") else "user folded"
    assert f" score {score} lists 300 " in said and said.endswith(" without-row 300 folded\n")
    assert recalls[1] > share * recalls[0] > 5 * 10 / 180 * share  # five times chance


def test_threads_and_lists_beside_change_no_answer_of_a_new_list(sptx):
    lists = baskets()
    write(sptx, lists)
    sptx("train", config(sptx))
    write(sptx, {f"new{name}": items for name, items in lists.items()}, "new.txt")
    answers = [sptx("recommend", "run", "--lists=new.txt", "--json", f"--device.threads={threads}").stdout for threads in (1, 2, 7)]
    assert answers[0] == answers[1] == answers[2]
    for name in ("new3", "new299"):
        alone = sptx("recommend", "run", "--lists=new.txt", f"--name={name}", "--json").stdout
        assert alone in answers[0] and json.loads(alone)["score"] == "user-cosine folded"
    by_hand = json.loads(sptx("recommend", "run", "--json", *[f"--items={item}" for item in lists["3"]]).stdout)
    assert by_hand["items"] == json.loads(answers[0].splitlines()[3])["items"] and by_hand["score"] == "user-cosine folded"
    own = json.loads(sptx("recommend", "run", "--list=3", "--json").stdout)
    assert own["score"] == "user-cosine" and own["items"] != by_hand["items"]
    mean = json.loads(sptx("recommend", "run", f"--items={','.join(lists['3'])}", "--json", "--score=context-context").stdout)
    assert mean["score"] == "context-context"


def test_what_cannot_work_is_refused(sptx):
    assert "corpus.format is text" in sptx.refuses("train", config(sptx, "text"))
    write(sptx, baskets())
    said = sptx.refuses("train", config(sptx), "--examples.positives=40", "--examples.short=skip")
    assert said.startswith("examples.positives = 40 needs a list of 40 words, the longest has 11")
    sptx("generate", "papers", "--rows=300", "--lists=300", "--out=papers.ids")
    said = sptx.refuses("train", config(sptx), "--corpus.path=papers.ids")
    assert "examples.mode = user trains rows of lists" in said


def test_a_given_vocabulary_gets_the_lists(sptx):
    """A vocabulary file without lists gets the lists of the corpus. A file with lists is used as it is."""
    write(sptx, baskets())
    sptx("train", config(sptx))
    rows = rows_of(sptx)
    sptx.path("items.tsv").write_text("".join(f"{word}\t{count}\n" for word, count in rows if int(count)))
    sptx.path("all.tsv").write_text("".join(f"{word}\t{count}\n" for word, count in rows))
    for name in ("items.tsv", "all.tsv"):
        sptx("train", config(sptx), f"--corpus.vocab={name}", f"--run.dir={name}run")
        assert rows_of(sptx, f"{name}run") == rows and sptx.tables(f"{name}run") == sptx.tables()


# ---- examples.own below 1: a list is its own row and the mean of its other items' target rows ----

def vectors_of_lists(sptx, lists, own):
    """Returns {list: vector} in float64, computed as in training. A list without a row is only the mean of its items."""
    words = [word for word, _ in rows_of(sptx)]
    target = table(sptx, "target.npy")

    def vector(name, items):
        mean = target[[words.index(item) for item in items]].mean(axis=0)
        return own * target[words.index(f"list:{name}")] + (1 - own) * mean if f"list:{name}" in words else mean
    return words, {name: vector(name, items) for name, items in lists.items()}


@pytest.mark.parametrize("own", [0, 0.4])
@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_lists_that_are_means_are_scored_as_they_were_trained(sptx, own, loss):
    lists = baskets()
    known = {name: items[:-2] for name, items in lists.items()}
    trained = 300 if own else 290  # without rows of lists the last ten lists are new; with rows new lists would be folded in
    write(sptx, {name: items for name, items in known.items() if int(name) < trained}, "corpus.txt")
    write(sptx, known, "known.txt")
    write(sptx, {name: items[-2:] for name, items in lists.items()}, "held.txt")
    keys = {"examples": {"own": own, "pooled": 4, "positives": 2}, "train": {"loss": loss}}
    sptx("train", config(sptx, **keys))
    words, vectors = vectors_of_lists(sptx, known, own)
    context = table(sptx, "context.npy")[:180]
    if loss == "softmax":
        context /= numpy.linalg.norm(context, axis=1, keepdims=True)
    recall = []
    for name, items in known.items():
        scores = context @ vectors[name]
        scores[[words.index(item) for item in items]] = -numpy.inf
        best = {words[i] for i in numpy.argsort(-scores)[:10]}
        recall.append(len(best & set(lists[name][-2:])) / 2)
    said = sptx("evaluate", "run", "--train=known.txt", "--held-out=held.txt", "--k=10").stdout
    score = "user-cosine" if loss == "softmax" else "user"
    assert f"recall@10 {numpy.mean(recall):.4f} " in said and f" score {score} lists 300 unknown 0" in said
    assert numpy.mean(recall) > 5 * 10 / 180  # five times chance

    def scored(*arguments):
        lines = [line.split("\t") for line in sptx("recommend", "run", "--k=170", *arguments).stdout.splitlines()]
        return {item: float(score) for _, item, score in lines}

    by_hand = [] if own else [("mean", scored(f"--items={','.join(known['7'])}"))]
    for name, said in [("7", scored("--lists=known.txt", "--name=7")), ("295", scored("--lists=known.txt", "--name=295")), *by_hand]:
        vector = vectors_of_lists(sptx, {"mean": known["7"]}, own)[1]["mean"] if name == "mean" else vectors[name]
        length = numpy.linalg.norm(vector) if loss == "softmax" else 1
        assert len(said) == 170 and not any(item in known.get(name, known["7"]) for item in said)
        assert max(abs(score - context[words.index(item)] @ vector / length) for item, score in said.items()) < 1e-4


def test_items_of_means_have_target_rows(sptx):
    write(sptx, baskets())
    sptx("train", config(sptx, examples={"own": 0.5}))
    sptx("train", config(sptx), "--run.dir=rows")
    moved = (table(sptx, "target.npy")[180:] != table(sptx, "target.npy", "rows")).any(axis=1)
    assert moved.all() and numpy.abs(table(sptx, "target.npy")[:180]).max(axis=1).min() > 0.5 / 16
    assert "target_first_row" not in (sptx.checkpoint() / "state.ini").read_text()
    sptx("export", "run", "--format=npy", "--table=target", "--lists", "--out=target.npy")
    assert numpy.array_equal(numpy.load(sptx.path("target.npy")).astype(float), table(sptx, "target.npy"))
    # The tables contain rows of lists only, whatever the keys in config.ini say.
    keys = sptx.path("rows", "config.ini")
    for text in (keys.read_text(), keys.read_text().replace("\nown = 1\n", "\nown = 0.5\n"), ""):
        keys.write_text(text)
        sptx("export", "rows", "--format=npy", "--table=target", "--lists", "--out=rows.npy")
        tables = [table(sptx, name, "rows") for name in ("context.npy", "target.npy")]
        assert numpy.array_equal(numpy.load(sptx.path("rows.npy")).astype(float), numpy.concatenate(tables))


@pytest.mark.parametrize("examples", [{"own": 0.3}, {"own": 0, "positives": 3, "pooled": 2}])
def test_threads_depth_and_a_resume_change_no_byte_of_means(sptx, examples):
    write(sptx, baskets())
    keys = {"examples": examples, "train": {"epochs": 4, "held_out": 0.1}}
    ini = config(sptx, **keys)
    sptx("train", ini, "--run.dir=one", "--device.threads=1", "--memory.depth=1")
    sptx("train", ini, "--run.dir=many", "--device.threads=5", "--memory.depth=4")
    assert sptx.tables("one") == sptx.tables("many")
    sptx("train", ini, "--run.dir=half", "--train.steps=30")  # this step is in the second epoch
    said = sptx.refuses("train", ini, "--run.dir=half", "--examples.own=0.9", "--resume")
    assert "another examples.own" in said
    said = sptx.refuses("train", ini, "--run.dir=half", "--examples.pooled=3", "--resume")
    assert "another examples.pooled" in said
    sptx("train", ini, "--run.dir=half", "--resume")
    assert sptx.tables("half") == sptx.tables("one")


def test_means_without_locks(sptx):
    lists = baskets()
    write(sptx, {name: items[:-2] for name, items in lists.items()}, "corpus.txt")
    write(sptx, {name: items[-2:] for name, items in lists.items()}, "held.txt")
    sptx("train", config(sptx, examples={"own": 0.5}, train={"update": "hogwild", "loss": "logistic", "score": "dot"},
                         optimizer={"rule": "adagrad", "lr": 0.1}), "--train.epochs=60")
    said = sptx("evaluate", "run", "--train=corpus.txt", "--held-out=held.txt", "--k=10").stdout
    assert float(said.split()[1]) > 3 * 10 / 180  # three times chance


def test_lists_that_are_all_positives_have_no_mean(sptx):
    """If all items of a list were positives, no item would be left for its mean, so target rows of items would never be trained.
    The longest list here has eleven items."""
    write(sptx, baskets())
    for own in ("0", "0.5"):
        said = sptx.refuses("train", config(sptx), f"--examples.own={own}", "--examples.positives=11")
        assert said == (f"examples.own = {own} needs a list of 12 items, of which its positives leave one for a mean, and the "
                        "longest has 11; lower examples.positives")
    assert not sptx.path("run", "latest").exists()
    sptx("train", config(sptx), "--examples.own=0", "--examples.positives=10", "--train.epochs=1")
    write(sptx, {"a": ["x"], "b": ["y"], "c": ["z"]})
    said = sptx.refuses("train", config(sptx), "--examples.own=0", "--negatives.count=1", "--run.dir=ones")
    assert "needs a list of 2 items" in said and said.endswith("the longest has 1; set examples.own = 1")


def test_lists_that_are_means_alone_have_no_rows(sptx):
    """With examples.own = 0 the rows of lists keep their first values, which are near nothing except by chance."""
    write(sptx, baskets())
    sptx("train", config(sptx, examples={"own": 0}))
    for arguments in (["nearest", "run", "list:7"], ["analogy", "run", "1", "2", "list:7"],
                      ["recommend", "run", "--items=list:7"], ["recommend", "run", "--items=1,list:7"]):
        assert sptx.refuses(*arguments).startswith("'list:7' has no row in 'run': its lists are the mean of their items alone")
    near = sptx("nearest", "run", "30", "--k=500").stdout.splitlines()
    assert len(near) == 179 and not any(line.startswith("list:") for line in near)
    sptx("report", "run", "--table=target", "--out=page.html")
    assert "list:" not in sptx.path("page.html").read_text()
    sptx("train", config(sptx, examples={"own": 0.5}), "--run.dir=both")
    assert sptx.refuses("nearest", "run", "30", "--lists").startswith("'list:0' has no row in 'run'")
    assert len(sptx("nearest", "both", "list:7", "--lists", "--k=500").stdout.splitlines()) == 180 + 300 - 1


@pytest.mark.parametrize("update", ["batch", "hogwild"])
def test_a_long_list_needs_memory_for_its_items_and_not_for_their_pairs(sptx, update):
    """An example compares the mean of 10,000 items, which is one vector, with 10,000 positives. It must not need memory for 10,000
    x 10,000 pairs."""
    write(sptx, {"long": [str(i) for i in range(20000)], "short": ["1", "2"]})
    keys = {"examples": {"own": 0.5, "pooled": 0}, "train": {"update": update, "loss": "softmax", "epochs": 1}}
    if update == "hogwild":
        keys = {**keys, "train": {**keys["train"], "loss": "logistic", "score": "dot"}, "optimizer": {"rule": "adagrad"}}
    ini = config(sptx, **keys)
    assert json.loads(sptx("plan", ini, "--json").stdout)["host_needed"] < 60e6
    sptx("train", ini)


def test_a_thorough_run_goes_on_as_it_was_begun(sptx):
    """A resumed run keeps its train.effort, even if auto would choose the other one on this machine. Keys that the user sets
    count."""
    write(sptx, baskets())
    sptx.path("few.ini").write_text("[corpus]\npath = corpus.txt\nformat = lists\n[negatives]\ncount = 100\n[train]\nepochs = 4\n")
    sptx("train", "few.ini", "--run.dir=whole", "--train.effort=thorough", "--train.batch=200",
         "--optimizer.schedule=constant")
    keys = sptx.path("whole", "config.ini").read_text()
    assert "\neffort = thorough\n" in keys and "\nper = batch\n" in keys and "\ndim = 256\n" in keys
    sptx("train", "few.ini", "--run.dir=half", "--train.effort=thorough", "--train.batch=200", "--optimizer.schedule=constant",
         "--train.epochs=0", "--train.steps=9")
    sptx("train", "few.ini", "--run.dir=half", "--resume", "--optimizer.schedule=constant", "--train.steps=0")
    assert sptx.tables("half") == sptx.tables("whole")
    said = sptx.refuses("train", "few.ini", "--run.dir=half", "--resume", "--train.effort=quick")
    assert said.startswith("'half' was begun with another ")


@pytest.mark.parametrize("left_out", [["effort"], ["effort", "negative_power"]])
def test_a_run_of_an_earlier_version_keeps_its_loss(sptx, left_out):
    """Versions without the key train.effort had train.negative_power = 0 by default: their runs, resumed, keep the plain softmax."""
    write(sptx, baskets())
    sptx.path("few.ini").write_text("[corpus]\npath = corpus.txt\nformat = lists\n[optimizer]\nschedule = constant\n")
    sptx("train", "few.ini", "--run.dir=whole", "--train.steps=9", "--train.negative_power=0")
    sptx("train", "few.ini", "--run.dir=half", "--train.steps=4", "--train.negative_power=0")
    keys = sptx.path("half", "config.ini")
    keys.write_text("".join(line for line in keys.read_text().splitlines(True) if line.split(" = ")[0] not in left_out))
    sptx("train", "few.ini", "--run.dir=half", "--train.steps=9", "--resume")
    assert sptx.tables("half") == sptx.tables("whole")
    said = sptx.refuses("train", "few.ini", "--run.dir=half", "--train.steps=12", "--resume", "--train.negative_power=1.15")
    assert said.startswith("'half' was begun with another train.negative_power")


def test_a_thorough_run_goes_on_without_negatives_that_it_could_share(sptx):
    """Runs over several ranks begin without shared negatives. One process could share them, but continues without."""
    write(sptx, baskets())
    sptx.path("few.ini").write_text("[corpus]\npath = corpus.txt\nformat = lists\n[optimizer]\nschedule = constant\n"
                                    "[train]\neffort = thorough\n")
    own = ["--negatives.per=example", "--negatives.count=50", "--model.dim=16"]
    sptx("train", "few.ini", "--run.dir=half", "--train.steps=4", *own)
    sptx("train", "few.ini", "--run.dir=whole", "--train.steps=9", *own)
    sptx("train", "few.ini", "--run.dir=half", "--train.steps=9", "--resume", "--model.dim=16")
    assert sptx.tables("half") == sptx.tables("whole")


def test_nearest_finds_a_list_by_its_bare_name_where_no_item_has_it(sptx):
    write(sptx, {**{f"u{name}": items for name, items in baskets().items()}, "3": ["3", "4", "5"]})
    sptx("train", config(sptx), "--train.epochs=2")
    assert sptx("nearest", "run", "u7", "--lists").stdout == sptx("nearest", "run", "list:u7", "--lists").stdout != ""
    assert sptx("nearest", "run", "3", "--lists").stdout != sptx("nearest", "run", "list:3", "--lists").stdout
    assert "with --lists" in sptx("nearest", "run", "u7", expect=1).stderr
