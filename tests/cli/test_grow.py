"""Runs that begin from an older run or from vectors (train.from).

With learning rate 0 nothing is trained, so the tables show how a run began.
"""
import lzma
import re
import shutil
import signal

import numpy
import pytest

from conftest import checkpoints, end, sentences, wait_for

RULES = ("sgd", "adagrad", "adadelta", "rmsprop", "adam", "adamw", "sparse-adam", "adamax", "asgd", "rprop", "rowwise-adagrad", "ftrl")
KNOWN = ("--train.freeze=known", "--device.backend=cpu")  # only the CPU can freeze rows in lock-free training
STILL = {"optimizer": {"rule": "sgd", "lr": "0"}, "train": {"epochs": "1"}}
DROP = "--train.from_words=drop"


@pytest.fixture(scope="module")
def older_once(tmp_path_factory):
    """Makes a run on 300 words, `old`, and a corpus of these words and 100 more, in another order."""
    from conftest import Program
    program = Program(tmp_path_factory.mktemp("older"))
    program.path("old.txt").write_text("\n".join(sentences(1000)) + "\n")
    program.path("corpus.txt").write_text("\n".join(sentences(1500, seed=2, words=400)) + "\n")
    program("train", program.config(**ADAGRAD), "--corpus.path=old.txt", "--run.dir=old", "--model.context_init=word2vec")
    return program


ADAGRAD = {"optimizer": {"rule": "adagrad", "lr": "0.1"}}


@pytest.fixture
def older(older_once, tmp_path):
    shutil.copytree(older_once.directory, tmp_path / "own")
    return type(older_once)(tmp_path / "own")


def words(sptx, run):
    return [line.split("\t")[0] for line in sptx.path(run, "vocab.tsv").read_text().splitlines()]


def rows(sptx, run, table, checkpoint=None):
    """Returns {word: record} of a table. If lists have rows, the first rows of the target table are theirs, and the context table has none for
    them."""
    array = numpy.load((sptx.path(run, checkpoint) if checkpoint else sptx.checkpoint(run)) / f"{table}.npy")
    named = words(sptx, run)
    return dict(zip(named[-len(array):] if table == "target" else named, array))


def same(one, other, field="weights"):
    return (one[field] == other[field]).all()


def test_rows_of_the_same_word_begin_from_the_older_run(older):
    done = older("train", older.config(**STILL), "--train.from=old", DROP)
    olds, news = words(older, "old"), words(older, "run")
    common = set(olds) & set(news)
    assert 200 < len(common) < len(news) and [w for w in olds if w in common] != [w for w in news if w in common]
    assert f"'old': {len(common)} of {len(news)} words begin there, {len(news) - len(common)} are new" in done.stderr
    older("train", "run.ini", "--run.dir=fresh")
    for table in ("target", "context"):
        old, new, fresh = (rows(older, run, table) for run in ("old", "run", "fresh"))
        assert all(same(new[word], old[word]) for word in common)
        assert all(same(new[word], fresh[word]) for word in set(news) - common)
        assert not any(same(fresh[word], old[word]) for word in common)
    assert "from = old\n" in older.path("run", "config.ini").read_text()


def test_a_checkpoint_of_a_run_can_be_begun_from(older):
    checkpoint = older.checkpoint("old").relative_to(older.directory)
    older("train", older.config(**STILL), f"--train.from={checkpoint}", "--run.dir=one")
    older("train", older.config(**STILL), "--train.from=old/", "--run.dir=two")
    assert older.tables("one") == older.tables("two")


@pytest.mark.parametrize("rule", RULES)
def test_state_comes_along_where_the_rule_is_the_same(older, rule):
    keys = {"optimizer": {"rule": rule, "lr": "0.01", "momentum": "0.5" if rule == "sgd" else None}}
    older("train", older.config(**keys), "--corpus.path=old.txt", "--run.dir=first", "--train.steps=20")
    older("train", "run.ini", "--train.from=first", "--train.steps=1", "--train.batch=1")
    for table in ("target", "context"):
        old, new = rows(older, "first", table), rows(older, "run", table)
        fields = [field for field in next(iter(new.values())).dtype.names]
        moved = [word for word in new if word in old and not all(same(new[word], old[word], field) for field in fields)]
        assert len(fields) > 1 and len(moved) < 40  # only the rows of one step have moved
    assert "begins anew" not in older("train", "run.ini", "--train.from=first", "--run.dir=again").stderr


@pytest.mark.parametrize("keys", [["--optimizer.rule=adam"], ["--optimizer.rule=sgd", "--optimizer.momentum=0.9"]])
def test_state_of_another_rule_stays_behind(older, keys):
    done = older("train", older.config(train={"steps": 1, "batch": 1}), *keys, "--train.from=old")
    assert "state      begins anew" in done.stderr
    new = rows(older, "run", "target")
    field = next(iter(new.values())).dtype.names[1]
    assert sum(bool(record[field].any()) for record in new.values()) < 40


def test_averages_that_count_the_steps_of_a_run_stay_behind(older):
    """With bias_correction = global the step count begins at 0 again. Adam would then divide old averages by 1 - beta, so it must
    not keep them."""
    config = older.config(optimizer={"rule": "adam", "lr": "0.001", "bias_correction": "global"})
    older("train", config, "--corpus.path=old.txt", "--run.dir=first", "--train.steps=20")
    done = older("train", config, "--train.from=first", "--train.steps=1", "--train.batch=1")
    assert "state      begins anew" in done.stderr
    assert sum(bool(record["exp_avg"].any()) for record in rows(older, "run", "target").values()) < 40


# ---- words of the older run that are not in the new corpus ----

def counts(sptx, run):
    return {word: int(count) for word, count in
            (line.split("\t") for line in sptx.path(run, "vocab.tsv").read_text().splitlines())}


@pytest.fixture
def lacking(older):
    """Writes a corpus, new.txt, with half the words of the run `old` and with two words that `old` does not have."""
    lines = [[word for word in line.split() if hash_of(word) % 2] for line in older.path("old.txt").read_text().splitlines()[:600]]
    older.path("new.txt").write_text("".join(" ".join([*line, "new1", "new2"]) + "\n" for line in lines))
    return older


def hash_of(word):
    return sum(map(ord, word))


def grow(sptx, *options, **sections):
    keys = {section: {**STILL.get(section, {}), **sections.get(section, {})} for section in {**STILL, **sections}}
    return sptx("train", sptx.config(**keys), "--corpus.path=new.txt", "--train.from=old", *options)


def test_words_that_the_corpus_lacks_stay(lacking):
    done = grow(lacking)
    fresh = lacking("train", "run.ini", "--corpus.path=new.txt", "--run.dir=fresh")
    old, new, own = (counts(lacking, run) for run in ("old", "run", "fresh"))
    kept = set(old) - set(own)
    assert len(kept) > 50 and set(new) == {*old, "new1", "new2"}
    assert all(new[word] == old.get(word, 0) + own.get(word, 0) for word in new)
    assert list(new.values()) == sorted(new.values(), reverse=True)
    assert f"'old': {len(old)} of {len(new)} words begin there, 2 are new, {len(kept)} are kept though this corpus lacks them" \
        in done.stderr
    assert "from_words = keep\n" in lacking.path("run", "config.ini").read_text() and "words begin there" not in fresh.stderr
    for table in ("target", "context"):
        before, after = rows(lacking, "old", table), rows(lacking, "run", table)
        assert all(same(after[word], before[word]) for word in old)


def test_words_that_the_corpus_lacks_can_be_dropped(lacking):
    done = grow(lacking, DROP)
    lacking("train", "run.ini", "--corpus.path=new.txt", "--run.dir=fresh")
    assert counts(lacking, "run") == counts(lacking, "fresh")
    left = len(set(counts(lacking, "old")) - set(counts(lacking, "run")))
    assert f"2 are new; {left} of its words are not in this corpus and are left out" in done.stderr


def test_rare_words_of_the_older_run_train(lacking):
    """corpus.min_count applies only to new words, not to words of the older run."""
    one, other = list(counts(lacking, "old"))[5:7]
    lacking.path("new.txt").write_text(f"{one} rare {other}\n" * 3)
    grow(lacking, "--corpus.min_count=5", "--examples.subsample=0", "--negatives.count=1", optimizer={"rule": "sgd", "lr": "0.1"}, model={"context_init": "word2vec"})
    assert set(counts(lacking, "run")) == set(counts(lacking, "old"))
    before, after = (rows(lacking, run, "target") for run in ("old", "run"))
    assert {word for word in before if not same(before[word], after[word])} == {one, other}
    assert counts(lacking, "run")[one] == counts(lacking, "old")[one] + 3


def test_a_run_with_kept_words_goes_on_without_the_older_one(lacking):
    more = ["--train.from=old", "--corpus.path=new.txt"]
    config = lacking.config(**ADAGRAD)
    lacking("train", config, *more, "--run.dir=whole", "--train.steps=40")
    lacking("train", config, *more, "--train.steps=15")
    shutil.rmtree(lacking.path("old"))
    assert "encoded before" in lacking("train", config, *more, "--train.steps=30", "--resume").stderr
    for name in ("corpus.ids", "corpus.vocab.tsv"):
        lacking.path("run", name).unlink()
    lacking("train", config, *more, "--train.steps=40", "--resume")
    assert lacking.tables() == lacking.tables("whole") and counts(lacking, "run") == counts(lacking, "whole")


def test_a_common_cache_does_not_mix_vocabularies(lacking):
    """Uses corpus.min_count = 0, which the cache's key also has for a vocabulary that is given (corpus.vocab)."""
    shared = ["--corpus.cache=cache", "--corpus.min_count=0"]
    for run, options in (("kept", []), ("dropped", [DROP]), ("again", []), ("plain", ["--train.from="])):
        grow(lacking, f"--run.dir={run}", *shared, *options)
    assert counts(lacking, "kept") == counts(lacking, "again") and lacking.tables("kept") == lacking.tables("again")
    assert counts(lacking, "dropped") == counts(lacking, "plain") != counts(lacking, "kept")


def test_a_given_vocabulary_and_vectors_keep_no_words(lacking):
    lacking("export", "old", "--format=word2vec-bin", "--out=v.bin")
    grow(lacking, "--train.from=v.bin", "--run.dir=vectors")
    assert "w" not in {word for word in counts(lacking, "vectors") if word not in lacking.path("new.txt").read_text().split()}
    assert set(counts(lacking, "vectors")) <= set(lacking.path("new.txt").read_text().split())
    lacking.path("given.tsv").write_text("".join(f"{word}\t9\n" for word in list(counts(lacking, "vectors"))[:40]))
    grow(lacking, "--corpus.vocab=given.tsv", "--run.dir=given")
    assert len(counts(lacking, "given")) == 40


def test_a_run_from_vectors_goes_on_with_its_encoded_corpus(lacking):
    lacking("export", "old", "--format=word2vec-bin", "--out=v.bin")
    grow(lacking, "--train.from=v.bin", "--train.steps=3")
    assert "encoded before" in grow(lacking, "--train.from=v.bin", "--train.steps=5", "--resume").stderr


def test_nothing_in_common_is_refused(lacking):
    lacking.path("new.txt").write_text("a b c\n" * 20)
    assert "has none of the 3 words of this corpus" in lacking.refuses("train", lacking.config(**STILL), "--corpus.path=new.txt",
                                                                       "--train.from=old")


def test_plan_counts_kept_words(lacking):
    plan = ["plan", lacking.config(**STILL), "--corpus.path=new.txt", "--train.from=old"]
    size = len(set(counts(lacking, "old")) | {"new1", "new2"})
    assert f"rows             {size} x " in lacking(*plan).stdout
    assert f"rows             {size} x " not in lacking(*plan, DROP).stdout


@pytest.mark.parametrize("format", ["lists", "pairs"])
def test_lists_and_items_that_the_corpus_lacks_stay(older, format):
    def write(name, lists):
        lines = (f"{key} {' '.join(items)}\n" if format == "lists" else "".join(f"{key},{item}\n" for item in items)
                 for key, items in lists.items())
        older.path(name).write_text("".join(lines))

    write("old.txt", {f"l{i}": [f"i{(i + j) % 40}" for j in range(6)] for i in range(60)})
    write("new.txt", {f"l{i}": [f"i{(i + j) % 20}" for j in range(6)] + ["fresh"] for i in range(50, 70)})
    keys = {"corpus": {"format": format, "min_count": 1}, "examples": {"mode": "user"}, "model": {"context_init": "word2vec"}}
    older("train", older.config(**keys), "--corpus.path=old.txt", "--run.dir=old", "--overwrite")
    done = grow(older, **keys)
    items = [word for word in words(older, "run") if not word.startswith("list:")]
    lists = words(older, "run")[len(items):]
    assert set(items) == {*(f"i{i}" for i in range(40)), "fresh"}
    assert lists == [f"list:l{i}" for i in (*range(50, 70), *range(50))]
    assert "100 of 111 words begin there, 11 are new, 70 are kept" in done.stderr
    for table in ("target", "context"):
        before, after = rows(older, "old", table), rows(older, "run", table)
        assert all(same(after[word], before[word]) for word in before)
    assert older("recommend", "run", "--items=i30", "--k=3").stdout.count("\n") == 3


def test_nodes_that_the_graph_lacks_stay(older):
    older.path("old.txt").write_text("".join(f"n{i} n{(i + 1) % 30}\nn{i} n{(i + 7) % 30}\n" for i in range(30)))
    older.path("new.txt").write_text("".join(f"n{i} n{i + 1}\nn{i} fresh\n" for i in range(12)))
    keys = {"corpus": {"format": "graph", "min_count": 1}, "examples": {"window": 3}}
    for options in ([], ["--graph.directed=yes"]):
        older("train", older.config(**keys), "--corpus.path=old.txt", "--run.dir=old", "--overwrite", *options)
        assert "30 of 31 words begin there, 1 are new, 17 are kept" in grow(older, "--overwrite", *options, **keys).stderr
        before, after = rows(older, "old", "target"), rows(older, "run", "target")
        assert set(after) == {*before, "fresh"} and all(same(after[word], before[word]) for word in before)
        assert older("nearest", "run", "n25", "--k=3").stdout.count("\n") == 3


def test_numbers_that_are_rows_stay(older):
    """With corpus.order = given the words are the row numbers themselves."""
    older.path("old.txt").write_text("".join(f"l {i} {i + 1} {i + 2}\n" for i in range(40)))
    older.path("new.txt").write_text("".join(f"l {i} {i + 1} {i + 2}\n" for i in range(10)))
    keys = {"corpus": {"format": "lists", "order": "given", "min_count": 1}, "examples": {"mode": "list", "positives": 1}}
    older("train", older.config(**keys), "--corpus.path=old.txt", "--run.dir=old", "--overwrite")
    grow(older, **keys)
    assert words(older, "run") == [str(i) for i in range(42)]
    older.path("new.txt").write_text("l 1 2 3 w\n")
    older("train", older.config(**{**keys, "corpus": {"format": "lists", "min_count": 1}}), "--corpus.path=new.txt", "--run.dir=named")
    older.path("new.txt").write_text("l 1 2 3\n")
    said = older.refuses("train", older.config(**keys), "--corpus.path=new.txt", "--train.from=named", "--run.dir=other")
    assert "set train.from_words = drop" in said


# ---- a run that goes on ----

def test_a_grown_run_goes_on_without_what_it_began_from(older):
    config = older.config(**ADAGRAD)
    older("train", config, "--train.from=old", "--run.dir=whole", "--train.steps=60")
    older("train", config, "--train.from=old", "--train.steps=25")
    shutil.rmtree(older.path("old"))
    older("train", config, "--train.from=old", "--train.steps=60", "--resume")
    assert older.tables() == older.tables("whole")
    assert "train.from" in older.refuses("train", config, "--train.steps=61", "--resume")


def test_a_run_without_a_checkpoint_yet_begins_over(older):
    config = older.config(**ADAGRAD)
    older("train", config, "--train.from=old", "--resume", "--run.dir=one")
    older("train", config, "--train.from=old", "--run.dir=two")
    assert older.tables("one") == older.tables("two")


# ---- frozen rows ----

# Every way to train in which a step changes rows differently.
WAYS = {
    "window": {},
    "shared negatives": {"negatives": {"per": "example"}, "optimizer": {"rule": "adam"}},
    "clip": {"optimizer": {"rule": "adamax", "clip": "0.05"}, "train": {"reduction": "mean"}},
    "cbow": {"examples": {"mode": "cbow"}},
    "softmax": {"train": {"loss": "softmax"}, "model": {"context_init": "word2vec"}},
    "lock-free": {"train": {"update": "hogwild"}, "optimizer": {"rule": "sgd"}},
    "lock-free adagrad": {"train": {"update": "hogwild"}, "optimizer": {"rule": "adagrad"}},
    "momentum": {"optimizer": {"rule": "sgd", "momentum": "0.9", "weight_decay": "0.01"}},
}


def check_frozen(sptx, old, run, targets=None):
    """Known rows must have the bytes of the older run, and the others must have moved. `targets`: the words trained as
    targets."""
    olds, news = words(sptx, old), words(sptx, run)
    for table in ("target", "context"):
        one, other = rows(sptx, old, table), rows(sptx, run, table)
        fields = set(next(iter(one.values())).dtype.names) & set(next(iter(other.values())).dtype.names)
        known = targets if table == "target" and targets else set(olds) & set(news)
        assert all(same(other[word], one[word], field) for word in known for field in fields)
        assert sum(bool(other[word]["weights"].any()) for word in set(news) - set(olds)) > 50


@pytest.mark.parametrize("way", WAYS)
def test_known_rows_stay_byte_for_byte(older, way):
    keys = {section: {**ADAGRAD.get(section, {}), **values} for section, values in {**ADAGRAD, **WAYS[way]}.items()}
    older("train", older.config(**keys), "--corpus.path=old.txt", "--run.dir=first")
    older("train", "run.ini", "--train.from=first", *KNOWN)
    check_frozen(older, "first", "run")


@pytest.mark.parametrize("mode", ["list", "adjacency"])
def test_known_rows_of_lists_stay(older, mode):
    keys = {"corpus": {"format": "lists" if mode == "list" else mode}, "examples": {"mode": mode}, "train": {"freeze": None}}
    for name in ("old.txt", "corpus.txt"):
        older.path(name).write_text("\n".join(f"t0w0 {line}" for line in older.path(name).read_text().splitlines()))
    older("train", older.config(**keys), "--corpus.path=old.txt", "--run.dir=first")
    older("train", "run.ini", "--train.from=first", *KNOWN)
    check_frozen(older, "first", "run", {"t0w0"} if mode == "adjacency" else None)


def test_lists_with_rows_of_their_own_grow(older):
    """New items must learn from known lists, and new lists from known items."""
    lines = {"old.txt": [], "corpus.txt": []}
    for name, into in lines.items():
        for number, line in enumerate(older.path(name).read_text().splitlines()[:600 if name == "old.txt" else 900]):
            into.append(f"l{number} {line}")
        older.path(name).write_text("\n".join(into))
    keys = {"corpus": {"format": "lists"}, "examples": {"mode": "user"}, **ADAGRAD, "model": {"context_init": "word2vec"}}
    older("train", older.config(**keys), "--corpus.path=old.txt", "--run.dir=first")
    older("train", "run.ini", "--train.from=first", *KNOWN)
    older("train", "run.ini", "--train.from=first", *KNOWN, "--optimizer.lr=0", "--run.dir=still")
    for table, of_lists in (("target", True), ("context", False)):
        old, new, still = (rows(older, run, table) for run in ("first", "run", "still"))
        # if lists have rows, items are never targets
        known = {word for word in set(old) & set(new) if not of_lists or word.startswith("list:")}
        assert all(same(new[word], old[word]) for word in known)
        moved = {word for word in new if not same(new[word], still[word])}
        assert moved == {word for word in set(new) - set(old) if word.startswith("list:") == of_lists}


@pytest.mark.parametrize("table", ["target", "context"])
def test_a_whole_table_stays(older, table):
    config = older.config(model={"context_init": "word2vec"}, train={"epochs": "1", "freeze": table}, device={"backend": "cpu"})
    older("train", config)
    older("train", config, "--train.steps=1", "--optimizer.rule=sgd", "--optimizer.lr=0", "--run.dir=first")
    for name in ("target", "context"):
        one, other = (numpy.load(older.checkpoint(run) / f"{name}.npy")["weights"] for run in ("first", "run"))
        assert (one == other).all() == (name == table)
    older("train", config, "--train.from=old", "--run.dir=grown")
    one, other = rows(older, "old", table), rows(older, "grown", table)
    assert all(same(one[word], other[word]) for word in set(one) & set(other))


def test_frozen_runs_have_the_same_bytes_however_they_are_run(older):
    config = older.config(**ADAGRAD, run={"keep": "9"})
    more = ["--train.from=old", *KNOWN]
    older("train", config, *more, "--run.dir=whole", "--train.steps=60", "--device.threads=1", "--memory.depth=1")
    older("train", config, *more, "--train.steps=23", "--device.threads=3", "--memory.target=file")
    shutil.rmtree(older.path("old"))
    older("train", config, *more, "--train.steps=41", "--resume", "--memory.depth=4")
    older("train", config, *more, "--train.steps=60", "--resume")
    assert older.tables() == older.tables("whole")
    known = numpy.load(older.checkpoint() / "known.npy")
    for table in ("target", "context"):
        bits = numpy.unpackbits(known[table].copy().view("u1"), bitorder="little")[:len(words(older, "run"))]
        array = [numpy.load(older.path("run", f"checkpoint-{step}", f"{table}.npy"))["weights"] for step in (23, 60)]
        changed = (array[0] != array[1]).any(axis=1)
        assert 0 < changed.sum() and not (changed & bits.astype(bool)).any() and 0 < bits.sum() < len(bits)
    assert "train.freeze" in older.refuses("train", config, "--train.from=old", "--resume", "--train.steps=61")


def test_a_damaged_list_of_known_rows_is_not_believed(older):
    config = older.config(**ADAGRAD)
    more = ["--train.from=old", *KNOWN]
    older("train", config, *more, "--train.steps=10")
    older("train", config, *more, "--train.steps=20", "--resume")
    flip(older.checkpoint() / "known.npy", -2)
    done = older("train", config, *more, "--train.steps=30", "--resume")
    assert "passing over checkpoint" in done.stderr and "known.npy' was changed" in done.stderr
    (older.checkpoint() / "known.npy").unlink()
    assert "known.npy" in older.refuses("nearest", older.checkpoint(), "t0w0")
    assert not [name for name in older.path("run").iterdir() if "partial" in name.name]


def test_only_new_items_are_targets(older):
    """Only new items are targets: the steps are the same as with all targets, without the examples of known items, and there are
    far fewer pairs."""
    for name in ("old.txt", "corpus.txt"):
        older.path(name).write_text("\n".join(f"l {line}" for line in older.path(name).read_text().splitlines()))
    keys = {"corpus": {"format": "lists"}, "examples": {"mode": "list"}, **ADAGRAD, "model": {"context_init": "word2vec"}}
    older("train", older.config(**keys), "--corpus.path=old.txt", "--run.dir=first")
    more = ["--train.from=first", *KNOWN]
    pairs = [int(older("train", "run.ini", *more, f"--examples.targets={targets}", f"--run.dir={targets}").stderr
                 .split(" pairs in ")[0].split()[-1].replace(",", "")) for targets in ("all", "new")]
    assert 0 < pairs[1] < pairs[0]
    check_frozen(older, "first", "new")
    new = set(words(older, "new")) - set(words(older, "first"))
    count = sum(word in new for line in older.path("corpus.txt").read_text().splitlines() for word in line.split())
    assert pairs[1] == 2 * 4 * count  # 2 epochs x 4 positives
    older("train", "run.ini", *more, "--examples.targets=new", "--train.steps=20", "--run.dir=part")
    shutil.move(older.path("first"), older.path("gone"))
    older("train", "run.ini", *more, "--examples.targets=new", "--run.dir=part", "--resume", "--device.threads=1")
    assert older.tables("part") == older.tables("new")
    older("export", "old", "--format=npy", "--out=v.npy")
    said = older.refuses("train", "run.ini", "--run.dir=no", "--corpus.path=old.txt", "--train.from=v.npy new/vocab.tsv", *KNOWN,
                         "--examples.targets=new")
    assert "v.npy' has" in said
    said = older.refuses("train", "run.ini", "--run.dir=no", "--corpus.path=old.txt", "--train.from=v.npy old/vocab.tsv", *KNOWN,
                         "--examples.targets=new")
    assert "has all" in said
    for keys in ([], ["--train.from=old"], ["--examples.mode=window", *more]):
        assert "examples.targets = new" in older.refuses("train", "run.ini", "--run.dir=no", "--examples.targets=new", *keys)


def test_a_killed_run_keeps_its_known_rows(older):
    """Killed with -9 at a random time, the run continues although the older run was removed."""
    config = older.config(**ADAGRAD, run={"checkpoint_every": "50 steps"})
    more = ["--train.from=old", *KNOWN, "--train.epochs=0", "--train.steps=1000"]
    older("train", config, *more, "--run.dir=whole")
    process = older.start("train", config, *more)
    assert wait_for(lambda: len(checkpoints(older)) > 1 and older.path("run", "latest").exists(), process)
    process.send_signal(signal.SIGKILL)
    end(process)
    shutil.move(older.path("old"), older.path("gone"))
    assert "resumed" in older("train", config, *more, "--resume").stderr
    assert older.tables() == older.tables("whole")
    assert len(checkpoints(older)) == 2 and not list(older.path("run").glob("checkpoint-*.*"))
    check_frozen(older, "gone", "run")


def test_what_cannot_be_frozen_is_refused(older):
    config = older.config(**ADAGRAD)
    assert "train.from" in older.refuses("train", config, *KNOWN)
    said = older.refuses("train", config, "--train.from=old", *KNOWN, "--corpus.path=old.txt")
    assert "has all" in said and "nothing to train" in said
    assert not older.path("run", "config.ini").exists()
    older("train", config, "--train.from=old", "--corpus.path=old.txt")
    said = older.refuses("plan", config, "--device.backend=cuda", "--memory.gpu_budget=1GiB", "--train.freeze=target",
                         "--train.update=hogwild")
    assert "some are frozen (train.freeze); set train.update = batch, or device.backend = cpu" in said


def test_the_number_of_columns_is_that_of_the_older_rows(sptx):
    sptx.path("corpus.txt").write_text("a b c d e f\n" * 40)
    keys = ["--corpus.path=corpus.txt", "--train.epochs=1"]
    sptx("train", *keys, "--model.dim=12", "--run.dir=first")
    for command in ("plan", "train"):
        done = sptx(command, *keys, "--train.from=first", "--run.dir=next")
        assert "first has rows of 12 columns: model.dim = 12" in done.stderr and re.search(r"rows +6 x 12 ", done.stdout + done.stderr)
    assert "model.dim is 9" in sptx.refuses("train", *keys, "--train.from=first", "--run.dir=other", "--model.dim=9")


# ---- what is refused ----

def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_what_cannot_be_begun_from_is_refused(older):
    def refused(source, *more):
        return older.refuses("train", older.config(), f"--train.from={source}", *more)
    assert "cannot open 'none'" in refused("none")
    assert "set model.dim = 16" in refused("old", "--model.dim=8")
    older.path("empty").mkdir()
    assert "holds no checkpoint" in refused("empty")
    older.path("other.txt").write_text("a b c d e f\n" * 50)
    assert "has none of the 6 words" in refused("old", "--corpus.path=other.txt")
    for source in ("old", "./old/../old", str(older.checkpoint("old"))):
        assert "lies in run.dir" in refused(source, "--run.dir=old", "--overwrite")
    older.path("link").symlink_to("old")
    assert "lies in run.dir" in refused("link", "--run.dir=old", "--overwrite")
    assert not older.path("run", "config.ini").exists()


@pytest.mark.parametrize("name", ["target.npy", "context.npy", "state.ini"])
def test_a_damaged_run_is_not_believed(older, name):
    flip(older.checkpoint("old") / name, -3)
    said = older.refuses("train", older.config(), "--train.from=old")
    assert name in said and ("was changed" in said or "damaged" in said)


def test_another_vocabulary_is_not_believed(older):
    text = older.path("old", "vocab.tsv").read_text()
    older.path("old", "vocab.tsv").write_text(text.replace("t0w0\t", "x0w0\t"))
    assert "is not the vocabulary" in older.refuses("train", older.config(), "--train.from=old")


# ---- from vectors ----

def export(sptx, form, name):
    sptx("export", "old", f"--format={form}", f"--out={name}")
    return name


FORMS = {"bin": "word2vec-bin", "vec": "word2vec-text", "glove": "glove-text", "npy": "npy"}


@pytest.fixture
def forms(older):
    """Writes the older run's targets in every format that train.from reads: text also with CR LF and without the last line end,
    binary also without line ends."""
    named = {form: export(older, FORMS[form], f"v.{form}") for form in FORMS}
    named["npy"] = "v.npy, old/vocab.tsv"
    text = older.path("v.vec").read_bytes()
    older.path("v.crlf").write_bytes(text.replace(b"\n", b"\r\n")[:-2])
    older.path("v.blank").write_bytes(text.replace(b"\n", b" \n"))
    data = older.path("v.bin").read_bytes()
    head, rest = data.split(b"\n", 1)
    count, dim = map(int, head.split())
    out, at = head + b"\n", 0
    for _ in range(count):
        end = rest.index(b" ", at) + 1 + 4 * dim
        out, at = out + rest[at:end], end + 1
    older.path("v.gensim").write_bytes(out)
    target = (older.checkpoint("old") / "target.npy").relative_to(older.directory)
    return {**named, "table": f"{target} old/vocab.tsv", "crlf": "v.crlf", "blank": "v.blank", "gensim": "v.gensim"}


def test_every_form_of_vectors_gives_the_same_targets(older, forms):
    config = older.config(**STILL, model={"context_init": "uniform -0.1 0.1"})
    older("train", config, "--train.from=old", "--run.dir=run0", DROP)
    older("train", config, "--run.dir=fresh")
    want, fresh = rows(older, "run0", "target"), rows(older, "fresh", "context")
    for form, source in forms.items():
        done = older("train", config, f"--train.from={source}", f"--run.dir=run-{form}", DROP)
        assert "words begin there" in done.stderr
        target, context = (rows(older, f"run-{form}", table) for table in ("target", "context"))
        assert all(same(target[word], want[word]) for word in want), form
        assert all(same(context[word], fresh[word]) for word in fresh), form


def test_known_targets_of_vectors_stay_and_contexts_learn(older, forms):
    config = older.config(**ADAGRAD)
    for corpus in ("old.txt", "corpus.txt"):
        run = corpus.split(".")[0] + "-run"
        more = ["--train.from=v.bin", *KNOWN, f"--corpus.path={corpus}", f"--run.dir={run}"]
        older("train", config, *more, "--train.steps=20")
        older.path("v.bin").rename(older.path("away"))
        older("train", config, *more, "--train.steps=50", "--resume")
        older.path("away").rename(older.path("v.bin"))
        old, new = rows(older, "old", "target"), rows(older, run, "target")
        assert all(same(old[word], new[word]) for word in old)
        assert all(record["weights"].any() for record in rows(older, run, "context").values())


@pytest.mark.parametrize("own", [1, 0.5])
def test_vectors_of_items_begin_where_export_takes_them(sptx, own):
    """If lists have rows, the vector of an item is its context row."""
    draw = numpy.random.default_rng(1)
    sptx.path("lists.txt").write_text("".join(
        f"l{i} " + " ".join(f"i{item}" for item in draw.choice(30, 6, replace=False)) + "\n" for i in range(50)))
    keys = [f"--examples.own={own}", "--model.dim=6", "--train.epochs=2", *KNOWN[1:], "--corpus.path=lists.txt",
            "--corpus.format=lists"]
    sptx("train", *keys, "--run.dir=old")
    sptx("export", "old", "--format=word2vec-text", "--lists", "--out=all.txt")
    lines = sptx.path("all.txt").read_text().splitlines()[1:]
    items = [line for line in lines if not line.startswith("list:")]
    sptx.path("items.txt").write_text("".join(line + "\n" for line in [f"{len(items)} 6", *items]))
    vectors = {line.split()[0]: numpy.array(line.split()[1:], numpy.float32) for line in lines}

    def holds(run, table, names):
        there = rows(sptx, run, table)
        return [(there[name]["weights"] == vectors[name]).all() for name in names]

    names, lists = [name for name in vectors if name[0] == "i"], [name for name in vectors if name[0] == "l"]
    sptx("train", *keys, "--train.from=all.txt", "--optimizer.lr=0", "--run.dir=still")
    assert all(holds("still", "context", names)) and all(holds("still", "target", lists))
    sptx("train", *keys, "--train.from=items.txt", KNOWN[0], "--run.dir=known", "--train.seed=2")
    assert all(holds("known", "context", names)) and not any(holds("known", "target", lists))
    other = rows(sptx, "known", "target")
    assert not any((other[name]["weights"] == vectors[name]).all() for name in set(names) & set(other))
    sptx("train", *keys, "--train.from=items.txt", "--run.dir=learned", "--train.seed=2")
    assert not any(holds("learned", "context", names))
    everything = sptx.refuses("train", *keys, "--train.from=all.txt", KNOWN[0], "--run.dir=none") if own == 1 else ""
    assert own != 1 or "there is nothing to train" in everything


def test_vectors_that_cannot_be_begun_from(older, forms):
    def refused(data, *more, name="bad"):
        older.path(name).write_bytes(data)
        return older.refuses("train", older.config(model={"dim": "2"}), f"--train.from={name}", *more)
    assert "cannot open" in older.refuses("train", older.config(), "--train.from=none.bin")
    assert "is empty" in refused(b"")
    assert "begins neither" in refused(b"\n\n")
    assert "begins neither" in refused(b"3 0\n")
    assert "begins neither" in refused(bytes(range(256)))
    assert "is a gzip file and no text: unpack it first" in refused(b"\x1f\x8b\x08\0\0\0\0\0")
    assert "is an xz file" in refused(lzma.compress(b"t0w0 1 2\n"))
    assert "does not read as a word and 2 numbers, from column 2 on" in refused(b"t0w0 1 2\nt0w1 1 2\0garbage\n")
    assert "cut off" in refused(b"99999999999 2\nt0w0 1 2\n")
    assert "cut off" in refused(b"18446744073709551615 2\nt0w0 1 2\n")
    assert "row 2 of 2" in refused(b"2 2\nt0w0 1 2\nt0w1\n1 2 3 4")
    assert "row 1 does not read as a word and 2 numbers, from column 2 on" in refused(b"2 2\nt0w0 1\nt0w1 1 2\n")
    assert "row 1 does not read" in refused(b"1 2\nt0w0 1 2 3\n")
    assert "goes on behind its 1 rows" in refused(b"1 2\nt0w0 1 2\nt0w1 1 2\n")
    assert "'t0w0' twice, in rows 1 and 3" in refused(b"3 2\nt0w0 1 2\nt0w1 1 2\nt0w0 1 2\n")
    assert "'t0w0' twice" in refused(b"t0w0 1 2\nt0w1 1 2\nt0w0 1 2\n")
    assert "none of the" in refused(b"2 2\nx 1 2\ny 1 2\n")
    assert "target row of 't0w0' holds NaN" in refused(b"2 2\nt0w0 1 nan\nt0w1 1 2\n")
    assert "holds NaN or infinity" in refused(b"1 2\nt0w0 " + numpy.float32([1, numpy.inf]).tobytes() + b"\n")
    assert "cut off" in refused(b"2 2\nt0w0 " + numpy.float32([1, 0]).tobytes() + b"\nt0w1 \0\0\0\0\0\0\0")
    assert "set model.dim = 3" in refused(b"1 3\nt0w0 1 2 3\n")
    assert "set model.dim = 16" in older.refuses("train", "run.ini", "--train.from=v.bin")
    assert "has no words" in older.refuses("train", older.config(), "--train.from=v.npy")
    assert "has words of its own" in older.refuses("train", older.config(), "--train.from=v.bin old/vocab.tsv")
    assert "names 3 files" in older.refuses("train", older.config(), "--train.from=a,b,c")
    assert "not closed" in older.refuses("train", older.config(), '--train.from="a b')
    older.path("few.tsv").write_text("a\t1\nb\t1\n")
    assert "few.tsv' has 2 words" in older.refuses("train", older.config(), "--train.from=v.npy few.tsv")
    numpy.save(older.path("wide.npy"), numpy.zeros((2, 16)))
    assert "'<f8'" in older.refuses("train", older.config(), "--train.from=wide.npy few.tsv")
    assert not older.path("run", "config.ini").exists()


def test_paths_with_blanks(older, forms):
    older.path("my vectors").mkdir()
    shutil.copy(older.path("v.npy"), older.path("my vectors", "v 1.npy"))
    shutil.copytree(older.path("old"), older.path("my vectors", "old run"))
    config = older.config(**STILL)
    older("train", config, "--train.from=my vectors/old run", "--run.dir=one", DROP)
    two = '--train.from="my vectors/v 1.npy", "my vectors/old run/vocab.tsv"'
    older("train", config, two, "--run.dir=two")
    assert all(same(a, b) for a, b in zip(rows(older, "one", "target").values(), rows(older, "two", "target").values()))
    older("train", config, two, "--run.dir=two", "--resume", "--train.epochs=2")


# ---- words that leave (corpus.forget) ----

MOST = 200


def forgetful(sptx, rule, run="run", source="old", **more):
    keys = {"corpus": {"max_vocab": MOST, "forget": rule, "min_count": 1}, **STILL, **more}
    return sptx("train", sptx.config(**keys), "--corpus.path=new.txt", f"--train.from={source}", f"--run.dir={run}")


def ages(sptx, run):
    lines = sptx.path(run, "ages.txt").read_text().splitlines()[1:]
    return dict(zip(words(sptx, run), map(int, lines))) if len(lines) == len(words(sptx, run)) else None


@pytest.mark.parametrize("rule", ["count", "age"])
@pytest.mark.parametrize("order", ["frequency", "first-seen"])
def test_words_leave_by_a_rule(lacking, rule, order):
    grow(lacking, "--corpus.min_count=1", "--run.dir=all", f"--corpus.order={order}")
    lacking("train", "run.ini", "--corpus.path=new.txt", "--corpus.min_count=1", "--run.dir=fresh")
    old, fresh, everything = (counts(lacking, run) for run in ("old", "fresh", "all"))
    config = ["train", lacking.config(corpus={"max_vocab": MOST, "forget": rule, "min_count": 1, "order": order}, **STILL)]
    done = lacking(*config, "--corpus.path=new.txt", "--train.from=old", "--run.dir=run")
    best = sorted(everything.items(), key=lambda pair: (rule == "age" and pair[0] not in fresh, -pair[1], pair[0] not in fresh))
    new, gone = counts(lacking, "run"), {word for word, _ in best[MOST:]} & set(old)
    assert list(new.items()) == [pair for pair in everything.items() if pair[0] in new] and len(new) == MOST
    assert sorted(new.values()) == sorted(count for _, count in best[:MOST]) and len(set(old) - set(new)) == len(gone) > 50
    if rule == "age":
        assert set(fresh) <= set(new)
    assert f"forgot     {len(gone)} words: '" in done.stderr and f".. (corpus.forget = {rule} leaves {MOST})" in done.stderr
    assert f"{len(set(old) & set(new))} of {MOST} words begin there" in done.stderr and "left out" not in done.stderr
    for table in ("target", "context"):
        before, after = rows(lacking, "old", table), rows(lacking, "run", table)
        assert all(same(after[word], before[word]) for word in set(old) & set(new))
    assert {word for word, age in ages(lacking, "run").items() if age} == set(new) - set(fresh)
    lacking("export", "run", "--format=word2vec-text", "--out=v.txt")
    assert [line.split(" ")[0] for line in lacking.path("v.txt").read_text().splitlines()[1:]] == list(new)
    assert f"rows             {MOST} x " in lacking("plan", *config[1:], "--corpus.path=new.txt", "--train.from=old").stdout


def test_ages_grow_from_run_to_run(older):
    def write(*lines):
        older.path("new.txt").write_text("".join(line + "\n" for line in lines))

    write("a b c d", "a b c", "a b", "a a a d d d d")
    config = older.config(corpus={"min_count": 1}, **STILL)
    older("train", config, "--corpus.path=new.txt", "--run.dir=one")
    assert not older.path("one", "ages.txt").exists()
    write("a b e f", "a b")
    grown = older.config(corpus={"min_count": 1}, **STILL)
    older("train", grown, "--corpus.path=new.txt", "--train.from=one", "--run.dir=two")  # ages are known without corpus.forget, too
    assert ages(older, "two") == {"a": 0, "b": 0, "e": 0, "f": 0, "c": 1, "d": 1}
    write("a c e e", "a c g")
    keys = {"corpus": {"min_count": 1, "max_vocab": 5, "forget": "age"}, **STILL}
    done = older("train", older.config(**keys), "--corpus.path=new.txt", "--train.from=two", "--run.dir=three")
    assert ages(older, "three") == {"a": 0, "c": 0, "e": 0, "g": 0, "b": 1}  # d is older than b, and f is rarer
    assert "forgot     2 words: 'f', 'd' (corpus.forget = age leaves 5)" in done.stderr
    write("d a", "d a")
    done = older("train", older.config(**keys), "--corpus.path=new.txt", "--train.from=three", "--run.dir=four")
    assert counts(older, "four")["d"] == 2 and ages(older, "four") == {"a": 0, "d": 0, "c": 1, "e": 1, "g": 1}
    assert "forgot     1 word" in done.stderr and "'b'" in done.stderr
    older.path("new.txt").write_text("x y z u v\n" * 3)
    said = older.refuses("train", older.config(**keys), "--corpus.path=new.txt", "--train.from=three", "--run.dir=five")
    assert "has none of the 5 words of this corpus" in said
    older("train", config, "--corpus.path=new.txt", "--run.dir=four", "--corpus.forget=no", "--overwrite")  # the replaced run's ages go with it
    assert not older.path("four", "ages.txt").exists()


def test_a_run_that_forgot_goes_on_without_the_older_one(lacking):
    keys = {"corpus": {"max_vocab": MOST, "forget": "age", "min_count": 1}, **ADAGRAD}
    more = ["--train.from=old", "--corpus.path=new.txt"]
    config = lacking.config(**keys)
    lacking("train", config, *more, "--run.dir=whole", "--train.steps=40")
    lacking("train", config, *more, "--train.steps=15")
    shutil.rmtree(lacking.path("old"))
    for name in ("corpus.ids", "corpus.vocab.tsv"):
        lacking.path("run", name).unlink()
    lacking("train", config, *more, "--train.steps=40", "--resume")
    assert lacking.tables() == lacking.tables("whole") and ages(lacking, "run") == ages(lacking, "whole")
    said = lacking.refuses("train", config, *more, "--corpus.forget=count", "--train.steps=50", "--resume")
    assert "forget" in said


def test_what_forget_refuses(lacking):
    def said(*options, **corpus):
        return lacking.refuses("train", lacking.config(corpus={"forget": "count", "max_vocab": 20, **corpus}), "--corpus.path=new.txt", *options)

    assert "train.from is empty: say what to begin from" in said()
    assert "corpus.max_vocab = 0 bounds nothing" in said("--train.from=old", "--corpus.max_vocab=0")
    assert "train.from_words = drop keeps none" in said("--train.from=old", DROP)
    assert "corpus.vocab says itself" in said("--train.from=old", "--corpus.vocab=old/vocab.tsv")
    assert "each number has its row" in said("--train.from=old", "--corpus.order=given")
    assert "forget = 'often' is not no, count or age" in said("--train.from=old", forget="often")
    sentence = "none of the 2 words of this corpus that corpus.forget and corpus.max_vocab leave"  # new1 and new2 are the most frequent
    assert sentence in said("--train.from=old", forget="age", max_vocab=2, min_count=1)
    lacking("export", "old", "--format=word2vec-bin", "--out=v.bin")
    assert "train.from = v.bin is vectors" in said("--train.from=v.bin")
    grow(lacking)
    whole = lacking.path("run", "ages.txt").read_bytes()
    for broken in (b"", whole[:-3], whole + b"1\n", whole.replace(b"\n0\n", b"\nx\n", 1), whole.replace(b": ", b": f", 1), whole[:40],
                   whole.replace(b"\n0\n", b"\n99999999999\n", 1), whole.replace(b"\n0\n", b"\n\n", 1)):
        lacking.path("run", "ages.txt").write_bytes(broken)
        assert "ages.txt' is damaged, or of another vocab.tsv" in said("--train.from=run", "--run.dir=next")
        assert "ages.txt' is damaged" in lacking.refuses("plan", lacking.config(corpus={"forget": "age", "max_vocab": 20}),
                                                         "--corpus.path=new.txt", "--train.from=run", "--run.dir=next")
