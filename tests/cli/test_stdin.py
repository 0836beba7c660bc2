"""Standard input as a corpus: it is read once, and the result is that of a file with the same bytes."""
import gzip
import subprocess

import pytest

from conftest import PROGRAM

PAIRS = "user,item,rating\n" + "".join(f"u{i % 7},i{(i * i) % 11},{i % 5}\n" for i in range(80))
LINES = "".join(" ".join(f"w{(i * j) % 13}" for j in range(1, 9)) + "\n" for i in range(60))
EDGES = "# a, b\n" + "".join(f"n{i % 7},n{(i * i) % 11},{1 + i % 3}\n" for i in range(80))


def weights(sptx, run):
    return [path.read_bytes() for path in sorted(sptx.path(run).glob("checkpoint-*/*.npy"))]


@pytest.mark.parametrize("form, text", [("text", LINES), ("lists", LINES), ("adjacency", LINES), ("pairs", PAIRS),
                                        ("graph", EDGES)])
def test_what_comes_once_is_trained_on_as_a_file(sptx, form, text):
    sptx.path("data").write_text(text)
    config = sptx.config(corpus={"path": "data", "format": form}, optimizer={"lr": "1e-3"})
    sptx("train", config, "--run.dir=of-file")
    for run, data in (("plain", text.encode()), ("packed", gzip.compress(text.encode()))):
        subprocess.run([PROGRAM, "train", config, "--corpus.path=-", f"--run.dir={run}"], input=data, cwd=sptx.path("."),
                       check=True, capture_output=True)
        assert weights(sptx, run) == weights(sptx, "of-file")


def test_sentences_name_it(sptx):
    config = sptx.config(corpus={"path": "-", "format": "pairs"})
    done = subprocess.run([PROGRAM, "train", config], input=b"a,b\nc\n", cwd=sptx.path("."), capture_output=True)
    assert done.returncode == 1 and b"'standard input' line 2: 1 field" in done.stderr
    done = subprocess.run([PROGRAM, "train", config, "--corpus.path=- -"], input=b"a,b\n", cwd=sptx.path("."), capture_output=True)
    assert done.returncode == 1 and b"standard input (-) is named twice" in done.stderr
    for data, sentence in ((gzip.compress(LINES.encode())[:-20], b"'standard input' is cut short"),
                           (bytes(range(256)) * 9, b"'standard input' is no text")):
        done = subprocess.run([PROGRAM, "train", config], input=data, cwd=sptx.path("."), capture_output=True)
        assert done.returncode == 1 and sentence in done.stderr


def test_lists_that_are_looked_at_first_want_a_format(sptx):
    pairs = [(user, item) for user in range(9) for item in range(9) if (user + item) % 4]
    old, new = ("user,item,rating\n" + "".join(f"u{user},i{item},5\n" for user, item in pairs if (user * item % 5 == 0) == held)
                for held in (False, True))
    sptx.path("data").write_text(old)
    sptx("train", sptx.config(corpus={"path": "data", "format": "pairs"}))
    held_out = ["evaluate", "run", "--train=data", "--held-out=-", "--k=5"]
    said = subprocess.run([PROGRAM, *held_out], input=new.encode(), cwd=sptx.path("."), capture_output=True)
    assert said.returncode == 1 and b"say --format=lists or --format=pairs" in said.stderr
    sptx.path("held").write_text(new)
    done = subprocess.run([PROGRAM, *held_out, "--format=pairs"], input=new.encode(), cwd=sptx.path("."), capture_output=True)
    assert done.stdout.decode() == sptx(*held_out[:3], "--held-out=held", "--k=5").stdout != ""
