"""scripts/compare_gensim.py: the calls that it refuses, and the table of a small data set."""
import os
import pathlib
import subprocess
import sys

from conftest import PROGRAM, ROOT, SLOWER, sentences

SCRIPT = ROOT / "scripts" / "compare_gensim.py"


def compare(directory, *arguments):
    return subprocess.run([sys.executable, SCRIPT, "--program", os.path.abspath(PROGRAM), *map(str, arguments)], cwd=directory,
                          capture_output=True, text=True, timeout=300 * SLOWER)


def test_missing_data_is_named(tmp_path):
    done = compare(tmp_path)
    assert done.returncode == 2 and "--wiki16 TEXT is wanted, or --only another of" in done.stderr
    done = compare(tmp_path, "--only", "hep-th", "--hep-th", "no.train", "no.test")
    assert done.returncode == 1
    assert done.stderr == "compare_gensim: there is no file 'no.train' for hep-th; corpora/README.md says where to get it\n"
    pathlib.Path(tmp_path, "some.txt").write_text("a b c\n")
    done = compare(tmp_path, "--only", "wiki16", "--wiki16", "some.txt")
    assert done.returncode == 2 and "--wiki16 wants --pairs FILE or --analogies FILE" in done.stderr


def test_a_table_of_lists(tmp_path):
    lists = [f"u{i} {sentence}".split() for i, sentence in enumerate(sentences(600, length=14))]
    (tmp_path / "train").write_text("".join(" ".join(line[:12]) + "\n" for line in lists))
    (tmp_path / "test").write_text("".join(" ".join(line[:1] + line[12:]) + "\n" for line in lists))
    done = compare(tmp_path, "--only", "goodbooks", "--goodbooks", "train", "test", "--epochs", 3, "--threads", 1)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines() if line.startswith("|")]
    assert rows[0] == ["program", "recall@20", "ndcg@20", "hit@20", "training", "ratio"]
    assert [row[0].split(" ")[0] for row in rows[2:]] == ["gensim", "this,", "this,"]
    assert all(0 <= float(row[1]) <= 1 and float(row[5]) >= 0 for row in rows[2:])
    assert float(rows[4][1]) > 0.4  # found by the defaults; by chance 20 of 300 would be 0.07
