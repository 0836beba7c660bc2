"""word2vec's command lines: its demo scripts run unchanged beside links to this program, and its tools print the same lines."""
import os
import pty
import subprocess

import numpy
import pytest

from conftest import PROGRAM, SLOWER, sentences, wait_for

TOOLS = ["word2vec", "word2phrase", "distance", "word-analogy", "compute-accuracy"]
QUESTIONS = ": capital\nt0w1 t0w2 t1w1 t1w2\nT0w1 t0w2 t2w1 t2w2\nt0w1 absent t1w1 t1w2\n: gram1\nt3w1 t3w2 t1w1 t1w2\n"

TEXT8 = """make
if [ ! -e text8 ]; then
  wget http://mattmahoney.net/dc/text8.zip -O text8.gz
  gzip -d text8.gz -f
fi
"""
NEWS = """make
if [ ! -e news.2012.en.shuffled ]; then
  wget http://www.statmt.org/wmt14/training-monolingual-news-crawl/news.2012.en.shuffled.gz
  gzip -d news.2012.en.shuffled.gz -f
fi
sed -e "s/’/'/g" -e "s/′/'/g" -e "s/''/ /g" < news.2012.en.shuffled | tr -c "A-Za-z'_ \\n" " " > news.2012.en.shuffled-norm0
time ./word2phrase -train news.2012.en.shuffled-norm0 -output news.2012.en.shuffled-norm0-phrase0 -threshold 200 -debug 2
time ./word2phrase -train news.2012.en.shuffled-norm0-phrase0 -output news.2012.en.shuffled-norm0-phrase1 -threshold 100 -debug 2
tr A-Z a-z < news.2012.en.shuffled-norm0-phrase1 > news.2012.en.shuffled-norm1-phrase1
time ./word2vec -train news.2012.en.shuffled-norm1-phrase1 -output vectors-phrase.bin -cbow 1 -size 200 -window 10 -negative 25 -hs 0 -sample 1e-5 -threads 20 -binary 1 -iter 15
"""
TRAIN = "time ./word2vec -train text8 -output vectors.bin -cbow 1 -size 200 -window 8 -negative 25 -hs 0 -sample 1e-4 -threads 20 -binary 1 -iter 15\n"
DEMOS = {
    "demo-word.sh": TEXT8 + TRAIN + "./distance vectors.bin\n",
    "demo-analogy.sh": TEXT8 + "echo Example input: paris france berlin\n" + TRAIN + "./word-analogy vectors.bin\n",
    "demo-classes.sh": TEXT8 + "time ./word2vec -train text8 -output classes.txt -cbow 1 -size 200 -window 8 -negative 25 -hs 0 "
                               "-sample 1e-4 -threads 20 -iter 15 -classes 500\nsort classes.txt -k 2 -n > classes.sorted.txt\n",
    "demo-word-accuracy.sh": TEXT8 + TRAIN + "./compute-accuracy vectors.bin 30000 < questions-words.txt\n",
    "demo-phrases.sh": NEWS + "./distance vectors-phrase.bin\n",
    "demo-phrase-accuracy.sh": NEWS + "./compute-accuracy vectors-phrase.bin < questions-phrases.txt\n",
}


@pytest.fixture
def place(sptx):
    """A directory with links named as word2vec's programs, a makefile with nothing to do, and small texts."""
    for tool in TOOLS:
        os.symlink(PROGRAM, sptx.path(tool))
    sptx.path("makefile").write_text("all: ;\n")
    sptx.path("text8").write_text(" ".join(sentences(900, words=40)) + "\n")
    letters = str.maketrans("0123456789", "abcdefghij")
    news = [line.translate(letters) for line in sentences(900, words=40)]
    sptx.path("news.2012.en.shuffled").write_text("".join(line + ("" if i % 20 else " New York") + "\n" for i, line in enumerate(news)))
    for name in ("questions-words.txt", "questions-phrases.txt"):
        sptx.path(name).write_text(QUESTIONS if "words" in name else QUESTIONS.translate(letters))
    return sptx


def bash(place, script, given=""):
    done = subprocess.run(["bash", "-e", "-c", script], input=given, text=True, cwd=place.path("."), capture_output=True,
                          timeout=120 * SLOWER)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("demo", DEMOS)
def test_a_demo_script_runs_unchanged(place, demo):
    asked = "tawb tcwd tdwa\nEXIT\n" if "phrase" in demo else "t0w1 t0w2 t1w1\nEXIT\n"
    out = bash(place, DEMOS[demo], asked)
    if "accuracy" in demo:
        assert out.count("ACCURACY TOP1: ") == 2 and "capital:\n" in out and "Questions seen / total: 3 4   75.00 % \n" in out
    elif "classes" in demo:
        words = [line.split(" ") for line in place.path("classes.sorted.txt").read_text().splitlines()]
        assert len(words) == 40 and [int(c) for _, c in words] == sorted(int(c) for _, c in words)
    else:
        word = asked.split()[0]
        assert f"Word: {word}  Position in vocabulary: " in out and "-" * 72 in out
    if "phrase" in demo:
        assert " new_york" in place.path("news.2012.en.shuffled-norm1-phrase1").read_text()
    assert not list(place.path(".").glob("*.run"))


def vectors(path):
    with open(path, "rb") as file:
        rows, columns = map(int, file.readline().split())
        found = {}
        for _ in range(rows):
            word = b""
            while (byte := file.read(1)) != b" ":
                word += byte
            found[word.decode()] = numpy.frombuffer(file.read(4 * columns), numpy.float32)
            assert file.read(1) == b"\n"
    return found


def test_answers_are_the_nearest_by_sums_of_unit_vectors(place):
    bash(place, "./word2vec -train text8 -output vectors.bin -size 20 -binary 1 -debug 0")
    known = {word: row / numpy.linalg.norm(row) for word, row in vectors(place.path("vectors.bin")).items()}
    for tool, question in (("distance", "t0w1 t1w2"), ("word-analogy", "t0w1 t0w2 t1w1")):
        out = bash(place, f"./{tool} vectors.bin", question + "\nabsent a b\n")
        asked = [known[word] for word in question.split()]
        query = asked[1] - asked[0] + asked[2] if len(asked) == 3 else sum(asked)
        scores = {word: row @ query / numpy.linalg.norm(query) for word, row in known.items() if word not in question.split()}
        best = sorted(scores, key=scores.get, reverse=True)
        answers = [line.split() for line in out.splitlines() if "\t\t" in line]
        assert [word for word, _ in answers] == best[:40]
        assert [float(score) for _, score in answers] == pytest.approx([scores[word] for word in best[:40]], abs=2e-6)
        assert "Word: absent  Position in vocabulary: -1\nOut of dictionary word!\n" in out


def test_hierarchical_softmax_by_the_flags_of_word2vec(place):
    bash(place, "./word2vec -train text8 -output v.bin -hs 1 -negative 0 -cbow 0 -size 8 -iter 1 -binary 1 -debug 0")
    assert vectors(place.path("v.bin"))


def test_vocabularies_are_saved_and_read(place):
    bash(place, "./word2vec -train text8 -save-vocab words -debug 0")
    lines = place.path("words").read_text().splitlines()
    assert lines[0] == "</s> 0" and len(lines) == 41
    counts = [int(line.split()[1]) for line in lines[1:]]
    assert counts == sorted(counts, reverse=True) and sum(counts) == len(place.path("text8").read_text().split())
    place.path("few").write_text("\n".join(lines[:11]) + "\nrare 2\n")
    out = bash(place, "./word2vec -train text8 -read-vocab few -output v.txt -size 8 -iter 1 -cbow 0 -debug 0; head -1 v.txt; ls -d v*")
    assert out == "10 8\nv.txt\n"
    place.path("few").write_text("the\n")
    done = subprocess.run(["./word2vec", "-train", "text8", "-read-vocab", "few", "-output", "v"], cwd=place.path("."), capture_output=True, text=True)
    assert done.returncode == 1 and "'few' line 1: wanted a word and its count" in done.stderr


def test_a_run_that_word2vec_has_not_made_stays(place):
    for run in ("v.run", "precious"):
        bash(place, f"{PROGRAM} train --corpus.path=text8 --train.epochs=1 --model.dim=8 --run.dir={run} --quiet")
    before = sorted((str(path), path.stat().st_mtime_ns) for run in ("v.run", "precious") for path in place.path(run).rglob("*"))
    for more in [], ["--run.dir=precious"], ["--run.dir=."]:
        done = subprocess.run(["./word2vec", "-train", "text8", "-output", "v", "-size", "8", *more], cwd=place.path("."), capture_output=True, text=True)
        assert done.returncode == 1 and "is there, and word2vec, which would remove it at the end, has not made it" in done.stderr
        assert "training" not in done.stderr and not place.path("v").exists()
    assert sorted((str(path), path.stat().st_mtime_ns) for run in ("v.run", "precious") for path in place.path(run).rglob("*")) == before
    bash(place, "./word2vec -train text8 -output w -size 8 -iter 1 -debug 0 --run.dir=deep/er; test ! -e deep/er; ls w")


def test_a_word2vec_that_was_stopped_is_done_again(place):
    process = subprocess.Popen(["./word2vec", "-train", "text8", "-output", "v", "-size", "8", "-iter", "100000"], cwd=place.path("."),
                               stderr=subprocess.DEVNULL)
    assert wait_for(lambda: place.path("v.run", "run", "vocab.tsv").exists(), process)
    process.kill()
    process.wait()
    bash(place, "./word2vec -train text8 -output v -size 8 -iter 1 -debug 0; test ! -e v.run; ls v")


@pytest.mark.parametrize("arguments, sentence, code", [
    (["-train", "text8", "-output", "."], "cannot write '.': ", 1),
    (["-train", "text8", "-output", "none/v"], "cannot write 'none/v': No such file or directory", 1),
    (["-train", "text8", "-output", "./text8"], "-output and -train are the same file", 2),
    (["-train", "text8", "-save-vocab", "text8"], "-save-vocab and -train are the same file", 2),
    (["-train", "text8", "-output", "v", "-save-vocab", "./v"], "-save-vocab and -output are the same file", 2),
    (["-train", "text8", "-output", "v", "--run.dir=v"], "-output and --run.dir are the same file", 2),
    (["-train", "text8", "-output", "v", "-hs", "1"], "add -negative 0, or take -hs 0", 1),
    (["-train", "text8"], "word2vec wants -output FILE, or -save-vocab FILE", 2),
    (["-output", "v"], "word2vec wants -train FILE", 2),
    (["-train"], "a value is missing behind -train", 2),
    (["-epochs", "3"], "word2vec has no flag '-epochs'", 2),
    (["-train", "text8", "-output", "v", "--device.gpus=2"], "word2vec trains in one process", 2),
    (["-train", "text8", "-output", "v", "-size", "x"], "model.dim = 'x' is not", 2),
    (["-train", "text8", "-output", "v", "-binary", "2"], "-binary = '2' is not a whole number from 0 to 1", 2)])
def test_what_cannot_be_done_is_refused(place, arguments, sentence, code):
    assert sentence in place.refuses("word2vec", *arguments, code=code)


def test_help_has_the_table_of_flags(place):
    for help in (place("help", "word2vec").stdout, bash(place, "./word2vec"), bash(place, "./word2vec --help")):
        assert "-size        model.dim = 100: " in help and "-hs " in help and "-threshold" not in help
    assert "-threshold   phrases.threshold = 100: " in place("word2phrase", "--help").stdout
    assert "word2phrase wants -train FILE and -output FILE" in place.refuses("word2phrase", "-train", "text8", code=2)


@pytest.mark.parametrize("command, question, answers", [("nearest", "t0w1 t0w2", 3), ("analogy", "t0w1 t0w2 t1w1", 3)])
def test_nearest_and_analogy_ask_at_a_terminal(place, command, question, answers):
    bash(place, "./word2vec -train text8 -output vectors.bin -size 20 -binary 1 -debug 0")
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PROGRAM, command, "vectors.bin", "--k=3"], cwd=place.path("."), stdin=theirs, stdout=subprocess.PIPE, text=True)
    os.write(ours, (question + "\nabsent a b\nEXIT\n").encode())
    out, _ = process.communicate(timeout=60 * SLOWER)
    os.close(ours), os.close(theirs)
    assert process.returncode == 0 and out.count("\t") == answers and "a word is not known" in out
    assert f"{command} wants" in place.refuses(command, "vectors.bin", code=2)


def test_export_writes_classes(place):
    bash(place, "./word2vec -train text8 -output vectors.bin -size 20 -binary 1 -debug 0 -iter 15")
    place("export", "vectors.bin", "--classes=10", "--out=classes")
    classes = dict(line.split(" ") for line in place.path("classes").read_text().splitlines())
    assert len(classes) == 40 and classes["t0w0"] == classes["t0w1"] and len(set(classes.values())) <= 10
    assert "--classes=N is for --format=classes" in place.refuses("export", "vectors.bin", "--format=npy", "--classes=3", "--out=x", code=2)
    assert "--format=classes wants --classes=N" in place.refuses("export", "vectors.bin", "--format=classes", "--out=x", code=2)
