"""Words that share the rows of their n-grams (examples.subwords), and fastText's own file format.

The results are compared with Debian's fasttext, which may be missing, and with gensim.
"""
import json
import re
import shutil
import struct
import subprocess

import numpy
import pytest

from conftest import KEYS as SHARED, checkpoints, end, sentences, wait_for

KEYS = {"examples": {"subwords": "2-4"}, "model": {"buckets": "500"}}


@pytest.fixture(scope="module")
def shared_once(tmp_path_factory):
    """Two runs with n-grams: one of skip-grams (window), one of means of windows (cbow)."""
    from conftest import Program
    program = Program(tmp_path_factory.mktemp("subwords"))
    program.path("corpus.txt").write_text("\n".join(sentences(2000)) + "\n")
    program("train", program.config(**KEYS))
    program("train", "run.ini", "--examples.mode=cbow", "--run.dir=cbow")
    return program


@pytest.fixture
def shared(shared_once, tmp_path):
    shutil.copytree(shared_once.directory, tmp_path / "own")
    return type(shared_once)(tmp_path / "own")


def words_of(sptx, run="run"):
    return [line.split("\t")[0] for line in sptx.path(run, "vocab.tsv").read_text().splitlines()]


def vectors_of(sptx, run):
    """Returns {word: vector} as export writes it."""
    sptx("export", run, "--format=npy", "--out=vectors.npy")
    return dict(zip(words_of(sptx), numpy.load(sptx.path("vectors.npy"))))


def fasttext(*arguments, text=""):
    if not shutil.which("fasttext"):
        pytest.skip("no fasttext: scripts/setup.sh --tests installs it")
    return subprocess.run(["fasttext", *map(str, arguments)], input=text, capture_output=True, encoding="utf-8", check=True).stdout


def hash_of(ngram):
    value = 2166136261
    for byte in ngram.encode():
        value = (value ^ (byte - 256 * (byte > 127))) * 16777619 % 2 ** 32
    return value


def mean_by_hand(sptx, run, word, seen):
    """Computes the vector of a word from the tables of a run with all buckets. Rows of buckets are in the order in which words
    first use them."""
    named, counts = words_of(sptx, run), {}
    for line in sptx.path(run, "vocab.tsv").read_text().splitlines():
        text, count = line.split("\t")
        for bucket in buckets_of(text):
            times, texts = counts.get(bucket, (0, 0))
            counts[bucket] = times + int(count), texts + 1
    order = sorted(range(500), key=lambda bucket: (-counts.get(bucket, (0, 0))[0], -counts.get(bucket, (0, 0))[1], bucket))
    table = numpy.load(sptx.checkpoint(run) / "target.npy")["weights"]
    assert len(table) == len(named) + 500
    rows = ([named.index(word)] if seen else []) + [len(named) + order.index(bucket) for bucket in buckets_of(word)]
    total = numpy.zeros(16, numpy.float32)
    for row in rows:
        total += table[row]
    return total * numpy.float32(1 / len(rows))


def buckets_of(word, low=2, high=4, of=500):
    bounded = f"<{word}>"
    return [hash_of(bounded[i:i + n]) % of for i in range(len(bounded)) for n in range(low, high + 1) if i + n <= len(bounded)]


@pytest.mark.parametrize("run", ["run", "cbow"])
def test_a_word_is_the_mean_of_its_rows(shared, run):
    vectors = vectors_of(shared, run)
    for word in ("t1w0", "t9w3", words_of(shared)[-1]):
        assert (vectors[word] == mean_by_hand(shared, run, word, seen=True)).all()
    answers = shared("nearest", run, "t1w1234", "--k=300", "--metric=dot").stdout.splitlines()
    unseen = mean_by_hand(shared, run, "t1w1234", seen=False)
    assert len(answers) == len(vectors) and "t1w1234" not in vectors
    for word, score in (line.split("\t") for line in answers[:20]):
        assert abs(float(score) - vectors[word] @ unseen) < 1e-4
    near = shared("nearest", run, "t1w1234", "--k=5").stdout.splitlines()
    assert [line[:2] for line in near] == ["t1"] * 5


@pytest.mark.parametrize("run", ["run", "cbow"])
def test_gensim_loads_it(shared, run):
    facebook = pytest.importorskip("gensim.models.fasttext")
    shared("export", run, "--format=fasttext", "--out=model.bin")
    model = facebook.load_facebook_model(str(shared.path("model.bin")))
    vectors = vectors_of(shared, run)
    assert model.wv.index_to_key == words_of(shared) and model.sg == (run == "run")
    assert (model.wv.min_n, model.wv.max_n, model.wv.bucket) == (2, 4, 500)
    assert (model.window, model.negative) == (3, 10 if model.sg else 5)
    contexts = numpy.load(shared.checkpoint(run) / "context.npy")["weights"]
    assert model.syn1neg.tobytes() == contexts.tobytes()
    table = numpy.load(shared.checkpoint(run) / "target.npy")["weights"]
    assert model.wv.vectors_vocab[:len(vectors)].tobytes() == table[:len(vectors)].tobytes()
    for word, vector in vectors.items():
        assert numpy.allclose(model.wv[word], vector, rtol=0, atol=1e-6)
    assert numpy.allclose(model.wv["t1w1234"], mean_by_hand(shared, run, "t1w1234", seen=False), rtol=0, atol=1e-6)
    model.train([["t1w0", "t1w1", "t1w2"]] * 10, total_examples=10, epochs=1)  # gensim can continue to train the model


@pytest.mark.parametrize("run", ["run", "cbow"])
def test_fasttext_loads_it(shared, run):
    shared("export", run, "--format=fasttext", "--out=model.bin")
    vectors = vectors_of(shared, run)
    vectors["t1w1234"] = mean_by_hand(shared, run, "t1w1234", seen=False)
    printed = fasttext("print-word-vectors", shared.path("model.bin"), text="\n".join(vectors) + "\n")
    for line in printed.splitlines():
        word, *numbers = line.split()
        assert [float(number) for number in numbers] == [float(f"{value:.5g}") for value in vectors[word]]
    agree(shared("nearest", run, "t1w1234", "--k=5").stdout, fasttext("nn", shared.path("model.bin"), "5", text="t1w1234\n"))


def agree(ours, theirs):
    """Checks that both answers have the same cosines, and the same words where the cosines differ in more than the last digits."""
    ours, theirs = ours.split(), theirs.replace("Query word?", "").split()
    assert numpy.allclose(numpy.array(ours[1::2], float), numpy.array(theirs[1::2], float), atol=1e-5)
    last = float(ours[-1]) + 1e-5
    assert {word for word, cosine in zip(ours[::2], ours[1::2]) if float(cosine) > last} <= set(theirs[::2])


def test_its_file_comes_back_the_same(shared):
    shared("export", "run", "--format=fasttext", "--out=model.bin")
    shared("export", "model.bin", "--format=fasttext", "--out=again.bin")
    assert shared.path("again.bin").read_bytes() == shared.path("model.bin").read_bytes()
    for words in (("t1w0",), ("t1w1234", "t2w0")):
        assert shared("nearest", "model.bin", *words).stdout == shared("nearest", "run", *words).stdout
    asked = ("t1w0", "t1w1", "t2w99")
    assert shared("analogy", "model.bin", *asked).stdout == shared("analogy", "run", *asked).stdout
    shared("export", "model.bin", "--format=npy", "--table=sum", "--out=sum.npy")
    shared("export", "run", "--format=npy", "--table=sum", "--out=own.npy")
    assert shared.path("sum.npy").read_bytes() == shared.path("own.npy").read_bytes()


def test_models_of_fasttext_are_read(sptx):
    fasttext("skipgram", "-input", sptx.path("corpus.txt"), "-output", sptx.path("theirs"), "-minCount", 1, "-dim", 8, "-minn", 2,
             "-maxn", 4, "-bucket", 300, "-epoch", 2, "-thread", 1)
    sptx("export", "theirs.bin", "--format=word2vec-text", "--out=ours.vec")
    theirs = dict(line.split(" ", 1) for line in sptx.path("theirs.vec").read_text().splitlines()[1:])
    for line in sptx.path("ours.vec").read_text().splitlines()[1:]:
        word, numbers = line.split(" ", 1)
        assert [float(f"{float(number):.5g}") for number in numbers.split()] == [float(number) for number in theirs[word].split()]
    theirs = fasttext("nn", sptx.path("theirs.bin"), "5", text="neverseen\n")
    agree(sptx("nearest", "theirs.bin", "neverseen", "--k=5").stdout, theirs)


def test_a_run_without_ngrams_is_written_too(trained):
    trained("export", "run", "--format=fasttext", "--out=model.bin")
    model = pytest.importorskip("gensim.models.fasttext").load_facebook_model(str(trained.path("model.bin")))
    assert model.wv.bucket == 0 and model.wv.max_n == 0
    assert trained("nearest", "model.bin", "t1w0").stdout == trained("nearest", "run", "t1w0").stdout
    assert "not in the vocabulary" in trained.refuses("nearest", "model.bin", "t1w1234")
    table = numpy.load(trained.checkpoint() / "target.npy")["weights"]
    trained("export", "model.bin", "--format=npy", "--out=own.npy")
    assert numpy.load(trained.path("own.npy")).tobytes() == table.tobytes()


def test_only_rows_that_words_name(shared):
    """Buckets that no word of the vocabulary uses change nothing but the size of the model."""
    still = ("--optimizer.lr=0", "--train.epochs=1")
    shared("train", "run.ini", *still, "--model.buckets=used", "--run.dir=used")
    rows = len(numpy.load(shared.checkpoint("used") / "target.npy"))
    assert len(words_of(shared)) < rows < 5000
    shared("export", "used", "--format=fasttext", "--out=used.bin")
    size = shared.path("used.bin").stat().st_size
    assert size > 2000000 * 16 * 4
    assert shared("nearest", "used", "t1w1234").stdout == shared("nearest", "used.bin", "t1w1234").stdout


@pytest.mark.parametrize("rule", ["sgd", "adagrad"])
@pytest.mark.parametrize("keys", [[], ["--train.steps=4", "--resume"]])
def test_rows_that_no_word_names_stay_zeros(shared, rule, keys):
    """There are so many such rows that they fill several of the chunks in which tables are filled and loaded."""
    shared("train", "run.ini", "--model.buckets=600000", f"--optimizer.rule={rule}", "--optimizer.lr=0.01", "--train.steps=2",
           "--run.dir=wide")
    if keys:
        shared("train", "run.ini", "--model.buckets=600000", f"--optimizer.rule={rule}", "--optimizer.lr=0.01", "--run.dir=wide", *keys)
    words = words_of(shared, "wide")
    named = len({bucket for word in words for bucket in buckets_of(word, of=600000)})
    table = numpy.load(shared.checkpoint("wide") / "target.npy")["weights"]
    assert len(table) == len(words) + 600000
    assert (table[:len(words) + named] != 0).any(axis=1).all() and (table[len(words) + named:] == 0).all()


@pytest.mark.skipif(SHARED["device"]["backend"] != "cpu", reason="a GPU's tables have memory for all rows")
def test_a_plan_leaves_out_rows_that_take_no_memory(shared):
    def planned(*keys):
        return json.loads(shared("plan", "run.ini", "--model.buckets=600000", "--json", *keys).stdout)
    plan, chunk = planned(), 16 << 20
    assert plan["rows"] == len(words_of(shared)) + 600000 and plan["target_bytes"] == chunk
    for keys in (["--optimizer.rule=adagrad"], ["--memory.target=file"]):
        plan = planned(*keys)
        assert plan["target_bytes"] >= plan["rows"] * 64


def test_threads_and_a_resume_change_nothing(shared):
    tables = shared.tables()
    shared("train", "run.ini", "--device.threads=1", "--run.dir=one")
    assert shared.tables("one") == tables
    config = shared.config("long.ini", **KEYS, train={"epochs": "6", "report_seconds": "0.02"},
                           run={"checkpoint_every": "20 steps"})
    shared("train", config, "--run.dir=whole")
    process = shared.start("train", config, "--run.dir=stopped")
    assert wait_for(lambda: checkpoints(shared, "stopped"), process)
    process.terminate()
    end(process)
    shared("train", config, "--run.dir=stopped", "--resume")
    assert shared.tables("stopped") == shared.tables("whole")


@pytest.mark.parametrize("mode", ["window", "cbow"])
def test_lock_free_training_learns_as_well(shared, mode):
    shared("train", "run.ini", f"--examples.mode={mode}", "--train.update=hogwild", "--train.epochs=4", "--run.dir=free")
    near = shared("nearest", "free", "t3w777", "--k=5").stdout.splitlines()
    assert [line[:2] for line in near] == ["t3"] * 5


def test_rare_pairs_count_as_covered(shared):
    shared.path("pairs.txt").write_text("t1w0 t1w1234 9\nt1w0 t2w0 1\nt3w999 t3w998 8\nt1w1 t5w2 2\n")
    assert "covered 4/4" in shared("evaluate", "run", "--pairs=pairs.txt").stdout
    assert shared("evaluate", "run", "--pairs=pairs.txt", "--table=context", expect=None).stdout.split()[-1] == "2/4"


# ---- growth: train.from ----

STILL = ("--optimizer.lr=0", "--train.epochs=1", "--overwrite=now")


def grow(shared, *keys):
    """Begins a run from `source`, with a corpus of the same words and a hundred more, and trains nothing."""
    shared.path("corpus.txt").write_text("\n".join(sentences(1500, seed=2, words=400)) + "\n")
    return shared("train", "run.ini", *STILL, "--run.dir=grown", *keys)


@pytest.mark.parametrize("source", ["run", "model.bin"])
@pytest.mark.parametrize("keys", [[], ["--train.update=hogwild"]])
def test_rows_of_words_and_ngrams_go_on(shared, source, keys):
    before, known = vectors_of(shared, "run"), set(words_of(shared))
    asked = [shared("nearest", "run", word, "--k=300").stdout for word in ("t1w0", "t1w1234")]
    shared("export", "run", "--format=fasttext", "--out=model.bin")
    grow(shared, f"--train.from={source}", *keys)
    after = dict(zip(words_of(shared, "grown"), numpy.load(exported(shared, "grown"))))
    common = [word for word in after if word in known]
    assert 200 < len(common) < len(after)
    for word in common:
        assert numpy.allclose(after[word], before[word], rtol=0, atol=1e-6)
    for word, answers in zip(("t1w0", "t1w1234"), asked):
        near = [line.split("\t") for line in shared("nearest", "grown", word, "--k=400").stdout.splitlines()]
        assert [one[0] for one in near if one[0] in known][:3] == [line.split("\t")[0] for line in answers.splitlines()
                                                                  if line.split("\t")[0] in after][:3]


def exported(sptx, run):
    sptx("export", run, "--format=npy", f"--out={run}.npy")
    return sptx.path(f"{run}.npy")


def test_words_that_had_no_ngrams_keep_their_vectors(shared):
    shared("train", "run.ini", "--examples.subwords=none", "--run.dir=plain")
    before = dict(zip(words_of(shared, "plain"), numpy.load(exported(shared, "plain"))))
    shared("export", "plain", "--format=word2vec-bin", "--out=plain.bin")
    for source in ("plain", "plain.bin"):
        grow(shared, f"--train.from={source}", "--model.target_init=zeros")
        after = dict(zip(words_of(shared, "grown"), numpy.load(exported(shared, "grown"))))
        assert all(numpy.allclose(after[word], before[word], rtol=1e-5) for word in after if word in before)


def test_ngrams_of_other_buckets_do_not_go_on(shared):
    for keys, wanted in ((["--model.buckets=501"], "set model.buckets = 500"),
                         (["--examples.subwords=none"], "examples.subwords = 2-4 and model.buckets = 500")):
        assert wanted in shared.refuses("train", "run.ini", "--run.dir=grown", "--train.from=run", *keys)


def test_frozen_rows_stay(shared):
    before = numpy.load(shared.checkpoint() / "target.npy")["weights"]
    shared.path("corpus.txt").write_text("\n".join(sentences(1500, seed=2, words=400)) + "\n")
    shared("train", "run.ini", "--run.dir=grown", "--train.from=run", "--train.freeze=known")
    after = numpy.load(shared.checkpoint("grown") / "target.npy")["weights"]
    row = words_of(shared, "grown").index("t1w0")
    assert (after[row] == before[words_of(shared).index("t1w0")]).all()


# ---- bad input ----

@pytest.mark.parametrize("key, value, wanted", [
    ("examples.subwords", "6-3", "the fewest and the most characters of an n-gram"),
    ("examples.subwords", "0-3", "from 1 to 255"),
    ("examples.subwords", "three", "none, or two lengths such as 3-6"),
    ("model.buckets", "0", "a whole number from 1 to 2,147,483,647, or used"),
    ("model.buckets", "all", "or used"),
])
def test_wrong_forms_are_refused(sptx, key, value, wanted):
    sentence = sptx.refuses("train", sptx.config(), f"--{key}={value}", code=2)
    assert key in sentence and wanted in sentence


@pytest.mark.parametrize("mode", ["window", "cbow"])
@pytest.mark.parametrize("update", ["batch", "hogwild"])
def test_a_gpu_is_planned_for_them(shared, mode, update):
    """The plan for a GPU needs no GPU. It counts the lists of each word's rows beside the ids."""
    keys = ("--device.backend=cuda", "--memory.gpu_budget=1GiB", f"--examples.mode={mode}", f"--train.update={update}")
    assert "on the GPU" in shared("plan", "run.ini", *keys).stdout


def test_only_windows_have_subwords(sptx):
    sptx.path("lists.txt").write_text("a x y z\nb y z x\n")
    sentence = sptx.refuses("train", "--corpus.path=lists.txt", "--corpus.format=lists", "--examples.subwords=3-6")
    assert sentence.startswith("examples.subwords = 3-6 works with examples.mode = window and cbow only, and it is user")


def test_any_bytes_are_words(sptx):
    """Trains on words of invalid UTF-8 and of 10,000 characters."""
    lines = [b"\xff\xfe\x80 ok \x80\x80 \xc3 " + b"x" * 10000 + b" ok", b"ok \xc3\xa9t\xc3\xa9 fine"] * 50
    sptx.path("corpus.txt").write_bytes(b"\n".join(lines) + b"\n")
    for mode in ("window", "cbow"):
        sptx("train", sptx.config(**KEYS), f"--examples.mode={mode}", "--examples.subsample=0", "--optimizer.lr=1e-4",
             "--overwrite=now")
        sptx("export", "run", "--format=fasttext", "--out=model.bin")
        assert sptx("nearest", "model.bin", "ok").stdout == sptx("nearest", "run", "ok").stdout


def damaged(data, at, value):
    return data[:at] + value + data[at + len(value):]


def test_damaged_files_are_refused(shared):
    shared("export", "run", "--format=fasttext", "--out=model.bin")
    whole = shared.path("model.bin").read_bytes()
    entries = 8 + 56
    for data, wanted in ((whole[:-1], "is cut off"),
                         (whole[:40], "is cut off"),
                         (whole[:entries + 28 + 3500], "is cut off"),
                         (damaged(whole, 4, struct.pack("<i", 11)), "version 11"),
                         (damaged(whole, 8, struct.pack("<i", 0)), "0 columns"),
                         (damaged(whole, 8 + 28, struct.pack("<i", 3)), "trained to tell labels"),
                         (damaged(whole, 8 + 32, struct.pack("<i", 2 ** 30)), "wanted 1073742124 x 16"),
                         (damaged(whole, 8 + 32, struct.pack("<i", -1)), "which cannot be"),
                         (damaged(whole, entries, struct.pack("<ii", 10 ** 9, 10 ** 9)), "which cannot be"),
                         (damaged(whole, entries + 20, struct.pack("<q", 0)), "was pruned")):
        shared.path("bad.bin").write_bytes(data)
        sentence = shared.refuses("nearest", "bad.bin", "t1w0")
        assert wanted in sentence and "bad.bin" in sentence


def test_numbers_that_are_none_in_rows_of_ngrams_are_told(shared):
    """Writes NaN into one column of all 500 rows of n-grams. The rows of words stay finite."""
    shared("export", "run", "--format=fasttext", "--out=model.bin")
    data = bytearray(shared.path("model.bin").read_bytes())
    first = len(data) - 17 - (len(words_of(shared)) + 500) * 16 * 4
    rows = numpy.frombuffer(data, "<f4", 500 * 16, first).reshape(500, 16)
    assert numpy.abs(rows[:, 3]).max() > 0
    data[first:first + 500 * 16 * 4] = numpy.where(numpy.arange(16) == 3, numpy.nan, rows).astype("<f4").tobytes()
    shared.path("model.bin").write_bytes(data)
    for format in ("fasttext", "word2vec-text", "npy", "fbin"):
        assert "holds NaN or infinity" in shared.refuses("export", "model.bin", f"--format={format}", "--out=other")
        assert not shared.path("other").exists()
    assert "holds NaN or infinity" in shared.refuses("nearest", "model.bin", "unseen")
    assert "'an n-gram' holds NaN or infinity" in shared.refuses("train", "run.ini", "--run.dir=on", "--train.from=model.bin")


def test_what_a_plan_says_is_enough_for_many_buckets(sptx):
    """With one column, the rows need less memory than the array by which their buckets are sorted."""
    sptx.path("few.txt").write_text("alpha beta gamma delta epsilon\n" * 8)
    said = sptx("train", "--corpus.path=few.txt", "--corpus.min_count=1", "--model.dim=1", "--examples.subwords=3-6",
                "--model.buckets=8000000", "--train.epochs=1", "--run.dir=run", "--device.backend=cpu").stderr
    needed, taken = (float(re.search(pattern, said)[1]) for pattern in (r"memory needed +(\d+) MiB", r"memory +(\d+) MiB at most"))
    assert taken <= needed


def test_what_fasttext_has_no_word_for_is_refused(shared):
    sentence = shared.refuses("export", "run", "--format=fasttext", "--table=context", "--out=x.bin")
    assert "--table=context cannot be chosen" in sentence
    assert not shared.path("x.bin").exists()
