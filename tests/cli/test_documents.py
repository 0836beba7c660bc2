"""corpus.format = documents: a document's row predicts its words, alone (PV-DBOW) or with its window's words (PV-DM)."""
import random

import numpy
import pytest

KEYS = {"corpus": {"format": "documents"}, "examples": {"subsample": 0}, "optimizer": {"lr": 0.1}, "train": {"epochs": 20}}
MODES = {"user": {}, "words": {"words": "yes"}, "cbow": {"mode": "cbow"}}


def documents(count=240, seed=3, length=25):
    """Returns {name: words}: each document keeps to one topic of fifteen words."""
    rng = random.Random(seed)
    return {f"d{i}": [f"t{i % 6}w{rng.randrange(15)}" for _ in range(length)] for i in range(count)}


def write(sptx, found, name="corpus.txt"):
    sptx.path(name).write_text("".join(f"{name} {' '.join(words)}\n" for name, words in found.items()))


def config(sptx, mode="user", **sections):
    keys = {**KEYS, "examples": {**KEYS["examples"], **MODES[mode]}}
    return sptx.config(**{section: {**keys.get(section, {}), **sections.get(section, {})} for section in {**keys, **sections}})


def table(sptx, name, run="run"):
    return numpy.load(sptx.checkpoint(run) / name)["weights"].astype(float)


def names_of(sptx, run="run"):
    return [line.split("\t")[0] for line in sptx.path(run, "vocab.tsv").read_text().splitlines()]


def nearest(sptx, *arguments):
    return [line.split("\t")[0] for line in sptx("nearest", "run", *arguments).stdout.splitlines()]


def inferred(sptx, *arguments, run="run"):
    lines = [line.split("\t") for line in sptx("infer", run, *arguments).stdout.splitlines()]
    return {name: numpy.array(row.split(" "), numpy.float32) for name, row in lines}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("update", ["batch", "hogwild"])
def test_a_document_finds_those_of_its_topic(sptx, mode, update):
    write(sptx, documents())
    # Two lock-free threads often change the same rows of so small a corpus, and a change can be lost. So one thread trains it here.
    one = {"threads": "1"} if update == "hogwild" else {}
    sptx("train", config(sptx, mode, train={"update": update, "batch": "64"}, device=one))
    for name in ("d2", "list:d2"):
        assert {int(found[len("list:d"):]) % 6 for found in nearest(sptx, name, "--lists", "--k=8")} == {2}
    assert {word[:2] for word in nearest(sptx, "t4w3", "--k=8")} == {"t4"}
    sptx.path("new.txt").write_text("t5w1 t5w2 t5w3 t5w4 unheard t5w5 t5w6\n")
    row, rows = inferred(sptx, "--text=new.txt")["1"], table(sptx, "target.npy")[-240:]
    near = numpy.argsort(-rows @ row / numpy.linalg.norm(rows, axis=1))[:8] % 6
    assert (near == 5).sum() >= 6


@pytest.mark.parametrize("mode", MODES)
def test_threads_depth_and_a_resume_change_no_byte(sptx, mode):
    write(sptx, documents())
    keys = {"train": {"batch": "64", "epochs": 2}, "examples": {"subsample": "1e-2", **MODES[mode]},
            "optimizer": {"lr": 0.1, "schedule": "constant"}}
    sptx("train", config(sptx, mode, **keys))
    sptx("train", "run.ini", "--device.threads=1", "--memory.depth=1", "--run.dir=alone")
    sptx("train", "run.ini", "--train.steps=7", "--run.dir=cut")
    sptx("train", "run.ini", "--run.dir=cut", "--resume")
    assert sptx.tables() == sptx.tables("alone")
    assert sptx.tables() == sptx.tables("cut")
    sptx.path("new.txt").write_text("t1w1 t2w2 t1w3\nt1w1\n")
    both = sptx("infer", "run", "--text=new.txt", "--device.threads=1").stdout
    assert both == sptx("infer", "run", "--text=new.txt").stdout
    sptx.path("new.txt").write_text("t1w1\n")
    assert sptx("infer", "run", "--text=new.txt").stdout.split("\t")[1] == both.splitlines(True)[1].split("\t")[1]


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def targets_at(words, at, document, mode):
    """Returns the target rows of the window at a position of two words on each side, as (is a document, number)."""
    around = [(0, words[i]) for i in range(max(0, at - 2), min(len(words), at + 3)) if i != at]
    return [(1, document)] + (around if mode != "user" else [])


def gradients(tables, targets, word, mode):
    """Returns [(row, gradient)] of a window's targets, and the gradients of both contexts. The negative is the other word."""
    contexts, found, of_contexts = tables[2], [], numpy.zeros((2, 16))
    pools = [targets] if mode == "cbow" else [[one] for one in targets]
    for pool in pools:
        vector = numpy.mean([tables[kind][number] for kind, number in pool], 0)
        slopes = sigmoid(contexts @ vector) - (numpy.arange(2) == word)
        found += [(row, slopes @ contexts) for row in pool]
        of_contexts += numpy.outer(slopes, vector)
    return found, of_contexts


def steps64(tables, texts, mode, epochs, lr):
    """Trains in float64, an epoch a batch. tables: rows of words, of documents and of contexts."""
    for _ in range(epochs):
        sums = [numpy.zeros_like(one) for one in tables]
        for document, words in enumerate(texts):
            for at, word in enumerate(words):
                found, of_contexts = gradients(tables, targets_at(words, at, document, mode), word, mode)
                for (kind, number), gradient in found:
                    sums[kind][number] += gradient
                sums[2] += of_contexts
        tables = [one - lr * gradient for one, gradient in zip(tables, sums)]
    return tables


def infer64(tables, words, mode, epochs, lr):
    row = numpy.zeros(16)
    for step in range(epochs * len(words)):
        epoch, at = divmod(step, len(words))
        found, _ = gradients([tables[0], row[None], tables[2]], targets_at(words, at, 0, mode)[:None if mode == "cbow" else 1],
                             words[at], mode)
        done = (epoch * (len(words) + 1) + at + 1) / (epochs * (len(words) + 1))
        row = row - lr * (1 - done) * found[0][1]
    return row


@pytest.mark.parametrize("mode", MODES)
def test_float64_has_the_same_rows(sptx, mode):
    """With two words the only negative of one is the other, so that nothing is left to chance."""
    texts = [[0, 1, 0, 0, 1, 1, 0], [1, 1, 0], [0], [1, 0, 0, 0, 1]]
    write(sptx, {f"d{i}": ["ab"[word] for word in words] for i, words in enumerate(texts)})
    init = "uniform -0.5 0.5"
    made = config(sptx, mode, negatives={"count": 1}, model={"target_init": init, "context_init": init},
                  examples={**MODES[mode], "subsample": 0, "window": 2, "shrink": "no"},
                  optimizer={"lr": 0.1, "schedule": "linear", "min_lr_ratio": 0}, train={"epochs": 6, "batch": 1000})
    sptx("train", made, "--optimizer.lr=0", "--run.dir=first")
    sptx("train", made, "--optimizer.schedule=constant")
    assert names_of(sptx)[:2] == ["a", "b"]
    def tables(run):
        target = table(sptx, "target.npy", run)
        return [target[:-4] if mode != "user" else numpy.zeros((2, 16)), target[-4:], table(sptx, "context.npy", run)]
    wanted, got = steps64(tables("first"), texts, mode, 6, 0.1), tables("run")
    for one, other in zip(got, wanted):
        assert numpy.allclose(one, other, rtol=0, atol=2e-6)
    sptx.path("new.txt").write_text("new a b b c a\n")
    sptx("train", made, "--run.dir=linear")
    row = inferred(sptx, "--text=new.txt", "--names", "--epochs=3", run="linear")["new"]
    assert numpy.allclose(row, infer64(tables("linear"), [0, 1, 1, 0], mode, 3, 0.1), rtol=0, atol=2e-6)


def test_lines_of_one_name_are_one_document_and_empty_ones_make_none(sptx):
    sptx.path("corpus.txt").write_text("one\ta b a b\n\ntwo b a b a\none\tb b a\nempty\n")
    done = sptx("train", config(sptx), "--corpus.names=yes")
    assert "11 tokens in 3 documents, 2 words" in done.stderr
    assert "(3 names in 4 lines: lines of one name are one document)" in done.stderr
    assert names_of(sptx) == ["b", "a", "list:one", "list:two", "list:empty"]
    first = sptx("train", config(sptx), "--optimizer.lr=0", "--run.dir=first", "--corpus.names=yes")
    assert [(a == b).all() for a, b in zip(table(sptx, "target.npy"), table(sptx, "target.npy", "first"))] == [False, False, True]
    assert "never trained" in sptx("nearest", "run", "empty", "--lists").stderr and first


@pytest.mark.parametrize("mode", MODES)
def test_a_word_and_a_document_of_different_tables_are_compared_with_a_warning(sptx, mode):
    write(sptx, documents())
    made = config(sptx, mode)
    sptx("train", made)
    crosses = names_of(sptx) and len(table(sptx, "target.npy")) == 240  # only documents have target rows
    said = sptx("nearest", "run", "t4w3", "--lists").stderr
    assert ("'t4w3' is compared with documents" in said) == ("examples.words = yes" in said) == crosses
    for arguments in (["t4w3"], ["d2", "--lists"], ["t4w3", "--lists", "--metric=dot"]):
        assert sptx("nearest", "run", *arguments).stderr == ""
    if not crosses:
        assert "a context row" in sptx("nearest", "run", "t4w3", "--lists", "--table=context").stderr


def test_labels_of_documents(sptx):
    write(sptx, documents())
    sptx("train", config(sptx))
    sptx.path("labels.tsv").write_text("".join(f"d{i}\ttopic{i % 6}\n" for i in range(240)))
    assert float(sptx("evaluate", "run", "--labels=labels.tsv").stdout.split("micro-f1 ")[1].split()[0]) > 0.95
    sptx("export", "run", "--format=word2vec-text", "--out=rows.txt", "--lists")
    assert sptx.path("rows.txt").read_text().splitlines()[-1].startswith("list:d239 ")


def test_long_documents_are_not_cut(sptx):
    write(sptx, documents(20, length=70))
    sptx("train", config(sptx, "cbow", corpus={"format": "documents", "max_sentence": 10}))
    assert "1,400 tokens in 20 documents" in sptx("train", "run.ini", "--overwrite").stderr


@pytest.mark.parametrize("keys, sentence", [
    (["--examples.mode=window"], "examples.mode = user (a document predicts its words, PV-DBOW) or cbow"),
    (["--examples.mode=cbow", "--examples.words=yes"], "with cbow words are always trained"),
    (["--examples.subwords=3-6", "--examples.mode=cbow"], "examples.subwords = 3-6 is for corpus.format = text"),
    (["--examples.targets=all"], "are for lists, and corpus.format is documents"),
    (["--examples.shuffle_items=yes"], "are for lists, and corpus.format is documents"),
    (["--corpus.phrases=yes"], "corpus.phrases = yes needs corpus.format = text, and it is documents"),
    (["--corpus.separator=comma"], "'corpus.txt' line 1: 1 field with commas between; wanted document, text: d0 "),
    (["--corpus.format=text", "--examples.mode=window", "--examples.words=yes"], "it needs corpus.format = documents, and that is text"),
    (["--train.effort=thorough"], "train.effort = thorough is for"),
    (["--train.held_out_items=0.1"], "corpus.format is documents"),
])
def test_keys_that_documents_lack_are_refused_by_a_sentence(sptx, keys, sentence):
    write(sptx, documents(10))
    assert sentence in sptx.refuses("train", config(sptx), *keys)


def test_what_infer_refuses(sptx):
    write(sptx, documents(10))
    sptx("train", config(sptx))
    sptx.path("new.txt").write_text("unheard words\n")
    assert "no word of 'new.txt' is in the vocabulary of" in sptx.refuses("infer", "run", "--text=new.txt")
    assert "infer wants a run directory and --text=FILE" in sptx.refuses("infer", "run", code=2)
    sptx.path("new.txt").write_text("t1w1 t1w2\n\n")
    done = sptx("infer", "run", "--text=new.txt", "--epochs=2")
    assert "1 of 2 documents have no word of the vocabulary" in done.stderr
    assert set(done.stdout.splitlines()[1].split("\t")[1].split()) == {"0"}
    sptx("train", "run.ini", "--corpus.format=text", "--examples.mode=window", "--run.dir=text")
    said = sptx.refuses("infer", "text", "--text=new.txt")
    assert "was not trained on documents" in said and "warning" not in said
    sptx.path("new.txt").write_text("unheard words\n")
    assert "was not trained on documents" in sptx.refuses("infer", "text", "--text=new.txt")


def test_infer_reads_the_tables_that_the_run_was_trained_on(sptx):
    texts = ["red green blue", "green blue red red", "ball game ball", "game ball red"] * 5
    options = ["--corpus.format=documents", "--corpus.min_count=1", "--model.dim=8", "--train.epochs=2", "--device.backend=cpu"]
    for header in ("", "class,title,text\n"):
        rows = "".join('"%d","title %d","%s"\n' % (n % 2, n, text) for n, text in enumerate(texts))
        sptx.path("table.csv").write_text(header + rows)
        sptx("train", "--corpus.path=table.csv", "--run.dir=run", "--overwrite", *options)
        sptx.path("new.csv").write_text(header + '"1","title 7","game blue ball"\n"1","title 8","red, all"\n')
        sptx.path("new.txt").write_text("game blue ball\nred, all\n")
        plain, table = (sptx("infer", "run", f"--text=new.{kind}").stdout.splitlines() for kind in ("txt", "csv"))
        assert [line.split("\t")[1] for line in plain] == [line.split("\t")[1] for line in table]
        assert [line.split("\t")[0] for line in plain] == ["1", "2"] and table[0].startswith("title 7\t")


def test_infer_tells_of_documents_whose_words_are_all_subsampled(sptx):
    sptx.path("corpus.txt").write_text("".join("d%d the w%d\n" % (i, i % 500) for i in range(3000)))
    sptx("train", config(sptx, examples={"subsample": "1e-5"}, train={"epochs": 1}))
    sptx.path("new.txt").write_text("the\nw1 w2 w3\nunheard\n")
    done = sptx("infer", "run", "--text=new.txt", "--epochs=1")
    zeros = [set(line.split("\t")[1].split()) == {"0"} for line in done.stdout.splitlines()]
    assert zeros[0] and zeros[2]
    assert "1 of 3 documents have no word of the vocabulary" in done.stderr
    assert "%d of 3 documents have only words that the run's examples.subsample left out" % (sum(zeros) - 1) in done.stderr


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("update", ["batch", "hogwild"])
def test_a_gpu_trains_the_rows_of_a_cpu(sptx, mode, update):
    if "auto       cuda" not in sptx("devices").stdout:
        pytest.skip("there is no GPU here")
    write(sptx, documents())
    keys = {"train": {"update": update, "batch": "64", "epochs": 5}, "examples": {**MODES[mode], "subsample": "1e-2"}}
    sptx("train", config(sptx, mode, **keys), "--device.backend=cpu", "--run.dir=cpu")
    sptx("train", config(sptx, mode, **keys), "--device.backend=cuda")
    one, other = table(sptx, "target.npy", "cpu"), table(sptx, "target.npy")
    if update == "batch":
        assert numpy.allclose(one, other, rtol=0, atol=1e-4)
    else:
        for rows in one[-240:], other[-240:]:  # lock-free steps differ from run to run, but documents of a topic are near
            unit = rows / numpy.linalg.norm(rows, axis=1)[:, None]
            near = numpy.argsort(-unit @ unit.T, axis=1)[:, 1:9] % 6
            assert (near == (numpy.arange(240) % 6)[:, None]).mean() > 0.8
