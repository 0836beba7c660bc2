"""A failure prints one sentence on stderr and nothing on stdout. The exit code is 1, or 2 for a wrong call."""
import gzip
import os
import re
import resource
import shutil

import pytest


def test_help_on_stdout(sptx):
    for arguments in (["help"], ["--help"]):
        done = sptx(*arguments)
        assert done.stderr == ""
        for command in "train plan export nearest analogy evaluate generate bench devices config help".split():
            assert f"\n  {command}" in done.stdout or f" {command} " in done.stdout, command


def test_help_of_each_command(sptx):
    for command in "train plan export nearest analogy evaluate generate bench devices config help".split():
        done = sptx("help", command)
        assert done.stderr == ""
        assert f"sptx-w2v {command}" in done.stdout


def test_help_keys_lists_every_key(sptx):
    said = sptx("help", "keys").stdout
    for key in ("corpus.path", "examples.window", "negatives.law", "model.dim", "optimizer.rule", "train.seed",
                "device.threads", "memory.gpu_budget", "run.checkpoint_every"):
        assert key in said or key.split(".")[1] in said, key


def test_help_keys_begins_with_the_ten_that_matter(sptx):
    first, rest = sptx("help", "keys").stdout.split("\n[corpus]", 1)
    assert re.findall(r"^  (\S+) = ", first, re.M)[:2] == ["corpus.path", "corpus.format"]
    assert len(re.findall(r"^  \S+ = ", first, re.M)) == 10
    assert "\n  corpus.path: above\n" in rest and "\n  train.seed = 1\n" in rest


def test_version(sptx):
    done = sptx("--version")
    first, *lines = done.stdout.splitlines()
    assert re.fullmatch(r"sptx-w2v \d+\.\d+\.\d+", first)
    assert [line.split()[0] for line in lines] == ["commit", "CUDA", "MPI"] and all(len(line.split()) > 1 for line in lines)
    assert done.stderr == ""


def test_no_command_shows_all(sptx):
    done = sptx(expect=2)
    sentence = "sptx-w2v: which command? 'sptx-w2v help' tells of each\n"
    assert done.stdout == ""
    assert done.stderr == sptx("help").stdout + sentence
    assert sptx("--quiet", expect=2).stderr == sentence


@pytest.mark.parametrize("arguments, sentence", [
    (["trian"], "there is no command 'trian'; did you mean 'train'?"),
    (["train", "run.ini", "--resme"], "train has no option '--resme'; did you mean '--resume'?"),
    (["train", "run.ini", "--model.dimm=3"], "command line: [model] has no key 'dimm'; did you mean 'dim'?"),
    (["train", "run.ini", "--model.dim=0"], "command line: model.dim = '0' is not a whole number from 1 to 4,096, or auto"),
    (["train", "run.ini", "--optimizer.rule=adagard"],
     "command line: optimizer.rule = 'adagard' is not sgd, adagrad, adadelta, rmsprop, adam, adamw, sparse-adam, adamax, "
     "asgd, rprop, rowwise-adagrad, ftrl, rowwise-adam or auto; did you mean 'adagrad'?"),
    (["train", "run.ini", "--model.dim", "100"],
     "train: '--model.dim 100' has a blank between key and value; write --model.dim=100"),
    (["train", "run.ini", "--dim=100"], "train has no option '--dim'; the key is --model.dim=100"),
    (["train"], "train wants a configuration file, or keys such as --corpus.path=FILE; see 'sptx-w2v help train'"),
    (["plan"], "plan wants a configuration file, or keys such as --corpus.path=FILE; see 'sptx-w2v help plan'"),
    (["train", "run.ini", "two.ini"], "train wants one configuration file, 2 given; see 'sptx-w2v help train'"),
    (["train", "-x"], "train has no option '-x'; see 'sptx-w2v help train'"),
    (["nearest", "run", "word", "--model.dim=4"],
     "nearest has no use for '--model.dim=4': its keys are those of the sections device, memory; see 'sptx-w2v help nearest'"),
    (["evaluate", "run", "--pairs=p", "--corpu.format=lists"],
     "evaluate has no use for '--corpu.format=lists': its keys are those of the sections device, memory, corpus; see "
     "'sptx-w2v help evaluate'"),
    (["nearest", "run"], "nearest wants a run directory and at least one word; see 'sptx-w2v help nearest'"),
    (["export", "run", "--format=x", "--out=y"],
     "'x' is not a format of export; wanted word2vec-bin, word2vec-text, glove-text, npy, fvecs, fbin, i8bin, u8bin, "
     "bvecs, safetensors, projector, fasttext or classes"),
    (["generate", "graph", "--out=y", "--lists=3"], "graphs and triples have edges, and other corpora have lists: wanted --edges=N"),
    (["generate", "books", "--out=y", "--edges=3"], "graphs and triples have edges, and other corpora have lists: wanted --lists=N"),
    (["generate", "graph", "--out=y", "--noise=.1"],
     "generate: --relations, --groups, --noise and --held-out are those of triples; other kinds have none"),
    (["generate", "triples", "--out=y", "--groups=40"], "generate: --groups=40: wanted a multiple of 16"),
    (["generate", "triples", "--out=y", "--noise=2"], "generate: --noise = '2' is not a number from 0 to 1"),
    (["generate", "graph", "--out=y", "--rows=1"], "generate: --rows = '1' is not a whole number from 2 to 4,294,967,294"),
    (["export", "run", "--out=y"], "export wants --format=F; see 'sptx-w2v help export'"),
])
def test_wrong_call(sptx, arguments, sentence):
    sptx.config()
    assert sptx.refuses(*arguments, code=2) == sentence
    assert not sptx.path("run").exists()


def test_a_text_in_the_place_of_the_config(sptx):
    """A text in place of the config file is refused, whether compressed or not, and however long it is."""
    corpora = {"t.txt": b"some words\nand more\n", "t.gz": gzip.compress(b"some words"), "long.txt": b"word " * (4 << 20)}
    for name, data in corpora.items():
        sptx.path(name).write_bytes(data)
        assert sptx.refuses("train", name, "--model.dim=8") == (
            f"'{name}' is no configuration: it does not begin with [section]; if it is what is to be trained, write "
            f"--corpus.path={name}")
    sptx.path("texts").mkdir()
    assert sptx.refuses("train", "texts") == (
        "'texts' is a directory and no configuration; if its files are what is to be trained, write --corpus.path=texts")


@pytest.mark.parametrize("format, warned", [("text", True), ("lists", True), ("pairs", False)])
def test_ratings_that_are_read_as_something_else(sptx, format, warned):
    sptx.path("ratings.csv").write_text("user,book,rating\n" + "".join(f"u{i % 7},b{i % 11},{i % 5 + 1}\n" for i in range(300)))
    said = sptx("train", "--corpus.path=ratings.csv", f"--corpus.format={format}", "--train.epochs=1", "--model.dim=4",
                "--corpus.min_count=1", "--run.dir=run", expect=None).stderr
    sentence = "the lines of 'ratings.csv' look like ratings (list, item, rating): corpus.format = pairs reads them as such"
    assert said.count(sentence) == warned


@pytest.mark.parametrize("line, sentence", [
    ("[model]\ndimm = 16", "run.ini line 5: [model] has no key 'dimm'; did you mean 'dim'?"),
    ("[modle]\ndim = 16", "run.ini line 4: there is no section 'modle'; did you mean 'model'?"),
    ("[model]\ndim = many", "run.ini line 5: model.dim = 'many' is not a whole number from 1 to 4,096, or auto"),
])
def test_wrong_line_of_a_config(sptx, line, sentence):
    sptx.path("run.ini").write_text(f"[corpus]\npath = corpus.txt\n\n{line}\n")
    assert sptx.refuses("train", "run.ini") == sentence
    assert not sptx.path("run").exists()


@pytest.mark.parametrize("key, value", [
    ("model.dim", "0"), ("model.dim", "5000"), ("model.dim", "many"), ("model.dim", "-3"), ("model.dim", ""),
    ("optimizer.rule", "adagard"), ("optimizer.lr", "fast"), ("train.batch", "1.5"), ("examples.shrink", "perhaps"),
    ("memory.gpu_budget", "11 bananas"), ("run.checkpoint_every", "sometimes"), ("model.target_init", "uniform 1"),
])
def test_wrong_value(sptx, key, value):
    section, name = key.split(".")
    said = sptx.refuses("train", sptx.config(**{section: {name: value}}))
    assert name in said and value in said
    assert not sptx.path("run").exists()


def test_missing_config(sptx):
    assert sptx.refuses("train", "nowhere.ini") == "cannot open 'nowhere.ini': No such file or directory"


def test_missing_corpus(sptx):
    said = sptx.refuses("train", sptx.config(corpus={"path": "nowhere.txt"}))
    assert said == "cannot open 'nowhere.txt': No such file or directory"
    assert not sptx.path("run").exists()


@pytest.mark.parametrize("side", ["target", "context"])
def test_first_values_are_read_before_the_corpus(sptx, side):
    said = sptx.refuses("train", sptx.config(corpus={"path": "nowhere.txt"}, model={f"{side}_init": "ones"}))
    assert said.startswith(f"model.{side}_init = 'ones' is none of: zeros; ")


def test_no_corpus_given(sptx):
    said = sptx.refuses("train", sptx.config(corpus={"path": None}))
    assert "corpus.path" in said


@pytest.mark.parametrize("content", [b"", b"\n\n  \t\r\n"])
def test_empty_corpus(sptx, content):
    sptx.path("corpus.txt").write_bytes(content)
    said = sptx.refuses("train", sptx.config())
    assert said.startswith("the corpus 'corpus.txt' is empty: not one word")
    assert f"{len(content)} byte" in said
    assert not sptx.path("run").exists()


@pytest.mark.parametrize("content", [b"alone\n", b"alone " * 1000])
def test_one_word_corpus(sptx, content):
    sptx.path("corpus.txt").write_bytes(content)
    said = sptx.refuses("train", sptx.config())
    assert said.startswith("the vocabulary has 1 word, and training needs two, to tell one from another; words are separated by "
                           "blanks")
    assert not sptx.path("run").exists()


def test_nothing_survives_min_count(sptx):
    sptx.path("corpus.txt").write_text("to be or not to be\n")
    said = sptx.refuses("train", sptx.config(corpus={"min_count": "7"}))
    assert said == ("no word of the corpus comes 7 times (corpus.min_count): the most frequent of 4, 'to', comes 2 times; "
                    "lower corpus.min_count")
    assert not sptx.path("run").exists()


def test_empty_directory_as_corpus(sptx):
    sptx.path("texts").mkdir()
    said = sptx.refuses("train", sptx.config(corpus={"path": "texts"}))
    assert "texts" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every directory")
def test_unreadable_directory(sptx):
    sptx.path("texts").mkdir(mode=0)
    said = sptx.refuses("train", sptx.config(corpus={"path": "texts"}))
    assert "texts" in said and "ermission" in said


def test_file_where_a_directory_is_wanted(sptx):
    said = sptx.refuses("train", sptx.config(run={"dir": "corpus.txt/run"}))
    assert said == "cannot make directory 'corpus.txt/run': Not a directory"


def test_run_in_a_place_that_takes_no_files(sptx):
    said = sptx.refuses("train", sptx.config(run={"dir": "/proc/nowhere/run"}))
    assert "/proc/nowhere" in said


def limit_files(size):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


@pytest.mark.parametrize("size", [0, 1000, 30000, 100000])
def test_full_disk_while_training(sptx, size):
    said = sptx.refuses("train", sptx.config(), preexec_fn=limit_files(size))
    assert "run/" in said
    assert not sptx.path("run", "latest").exists()
    # When the disk has space again, the same command works in spite of the files that the failed one left.
    sptx("train", sptx.config())


def test_full_disk_keeps_the_finished_export(trained):
    trained("export", "run", "--format=word2vec-text", "--out=out.txt")
    before = trained.path("out.txt").read_bytes()
    said = trained.refuses("export", "run", "--format=word2vec-text", "--out=out.txt", preexec_fn=limit_files(1000))
    assert "out.txt" in said
    assert trained.path("out.txt").read_bytes() == before
    assert sorted(name for name in os.listdir(trained.directory) if "out" in name) == ["out.txt"]


def test_truncated_gz(sptx):
    import gzip
    whole = gzip.compress(sptx.path("corpus.txt").read_bytes())
    sptx.path("corpus.txt.gz").write_bytes(whole[:len(whole) // 2])
    said = sptx.refuses("train", sptx.config(corpus={"path": "corpus.txt.gz"}))
    assert "corpus.txt.gz" in said


def test_truncated_checkpoint(trained):
    target = trained.checkpoint() / "target.npy"
    target.write_bytes(target.read_bytes()[:-1000])
    said = trained.refuses("nearest", "run", "t1w1")
    assert "target.npy" in said
    said = trained.refuses("export", "run", "--format=npy", "--out=out.npy")
    assert "target.npy" in said
    assert not trained.path("out.npy").exists()


def test_vocabulary_that_does_not_match(trained):
    vocab = trained.path("run", "vocab.tsv")
    lines = vocab.read_text().splitlines(keepends=True)
    vocab.write_text("".join(lines[:-1]))
    said = trained.refuses("nearest", "run", "t1w1")
    assert "vocab.tsv" in said and str(len(lines)) in said and str(len(lines) - 1) in said


def test_vocabulary_with_a_bad_count(trained):
    vocab = trained.path("run", "vocab.tsv")
    lines = vocab.read_text().splitlines(keepends=True)
    lines[2] = "word\tmany\n"
    vocab.write_text("".join(lines))
    said = trained.refuses("nearest", "run", "t1w1")
    assert "vocab.tsv" in said and "3" in said


def test_unknown_word(trained):
    said = trained.refuses("nearest", "run", "t1w1x")
    assert said.startswith("'t1w1x' is not in the vocabulary of 'run'; did you mean 't1w1")


def test_not_a_run(sptx):
    sptx.path("empty").mkdir()
    for run in ("empty", "nowhere"):
        said = sptx.refuses("nearest", run, "word")
        assert run in said


def test_missing_argument(sptx):
    for arguments in (["train"], ["export", "run"], ["nearest"], ["nearest", "run"], ["analogy", "run", "a"]):
        sptx.refuses(*arguments, code=2)


def test_missing_latest(trained):
    shutil.rmtree(trained.checkpoint())
    said = trained.refuses("nearest", "run", "t1w1")
    assert "checkpoint" in said
