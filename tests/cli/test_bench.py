"""bench must count correctly and print lines of JSON. No test checks a speed."""
import json
import os
import re
import subprocess
import sys

import pytest

from conftest import KEYS, ROOT

CUDA = KEYS["device"]["backend"] == "cuda"
EXAMPLES = {"window": "3", "subsample": "0"}  # every word is kept: its pairs can be counted


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def train(sptx, *settings, **sections):
    head, result = lines(sptx("bench", "train", sptx.config(**sections), "--json", "--steps=20", *settings))
    assert head["bench"] == "train" and "bench train run.ini" in head["command"] and head["device"]
    assert head.get("host_rows") in (("managed", "pinned") if CUDA else (None,))
    return result


def test_train_counts_what_it_trained(sptx):
    result = train(sptx, examples=EXAMPLES)
    assert result["update"] == "batch" and result["steps"] == 20 and result["batch"] == 256
    assert result["words"] == 20 * 256
    # A word has two others on each side on average, and fewer at the ends of a line of twelve.
    assert 3 * result["words"] < result["pairs"] < 4 * result["words"]
    assert result["pairs_per_second"] == pytest.approx(result["pairs"] / result["seconds"], rel=1e-4)
    assert result["words_per_second"] == pytest.approx(result["words"] / result["seconds"], rel=1e-4)
    phases = [result[name + "_seconds"] for name in ("make_batch", "step")]
    assert all(seconds >= 0 for seconds in phases) and sum(phases) > 0
    assert 0 < result["loss_pair"] < 6
    assert ("memory_share" in result) == CUDA and ("floor_pairs_per_second" in result) == CUDA


def test_train_lock_free_counts_its_calls(sptx):
    result = train(sptx, train={"update": "hogwild"}, optimizer={"rule": "sgd"}, examples=EXAMPLES)
    assert result["update"] == "hogwild" and result["steps"] == 20
    assert 0 < result["calling_seconds"] <= result["seconds"] * 1.001
    assert 3 * result["words"] < result["pairs"] < 4 * result["words"]
    assert "make_batch_seconds" not in result
    assert ("memory_share" in result) == CUDA


@pytest.mark.skipif(not CUDA, reason="rows cross a link only where there is a GPU")
@pytest.mark.parametrize("update", ["batch", "hogwild"])
def test_train_counts_the_link(sptx, update):
    keys = {"train": {"update": update}, "optimizer": {"rule": "sgd"}}
    assert train(sptx, "--memory.target=gpu", "--memory.context=gpu", **keys)["link_bytes"] == 0
    cold = train(sptx, "--memory.target=pinned", "--memory.context=gpu", "--memory.hot_rows=0", **keys)
    assert cold["link_bytes"] > 0 and cold["link_share"] > 0


def test_train_leaves_no_run_behind(sptx):
    train(sptx)
    assert not sptx.path("run", "latest").exists() and not sptx.path("run", "vocab.tsv").exists()


def test_train_in_words(sptx):
    said = sptx("bench", "train", sptx.config(), "--steps=5").stdout
    for start in ("command    sptx-w2v bench train run.ini --steps=5\n", "pairs/s    ", "words/s    ", "loss       ",
                  "  make_batch ", "  sum "):
        assert start in said


def test_the_command_is_told_whatever_it_says(sptx):
    """The command contains a path with quotes and bytes that are no UTF-8. The line must still be valid JSON."""
    name = 'a"\\ \udcff'
    sptx.path(sptx.config()).rename(sptx.path(name))
    done = sptx("bench", "memory", name, "--rows=1000", "--dim=8", "--json")
    assert lines(done)[0]["command"] == 'sptx-w2v bench memory a"\\ \ufffd --rows=1000 --dim=8 --json'


def test_walks_are_counted(sptx):
    sptx.path("edges.tsv").write_text("".join(f"n{i} n{(i * 7 + 1) % 50}\n" for i in range(50)))
    config = sptx.config(corpus={"path": "edges.tsv", "format": "graph"}, walks={"length": "7", "q": "2"})
    head, result = lines(sptx("bench", "walks", config, "--json", "--seconds=0.1"))
    assert head["bench"] == "walks" and result["nodes"] == 50 and 0 < result["arcs"] <= 100 and result["length"] == 7
    assert result["steps_per_second"] == pytest.approx(7 * result["walks"] / result["seconds"], rel=1e-4) and result["walks"] > 0
    assert not result["at_most"] and lines(sptx("bench", "walks", config, "--json", "--seconds=0.1", "--graph.directed=yes"))[1]["at_most"]
    assert "examples.mode is window" in sptx.refuses("bench", "walks", sptx.config("text.ini"), "--seconds=0.1")


def test_memory_holds_what_it_says(sptx):
    head, result = lines(sptx("bench", "memory", "--rows=100000", "--dim=64", "--json",
                              f"--device.backend={KEYS['device']['backend']}"))
    assert head["bench"] == "memory"
    assert result["payload_bytes"] == 100000 * 64 * 4
    assert result["payload_bytes"] <= result["host_bytes"] < 1.2 * result["payload_bytes"]
    assert result["gpu_bytes"] == 0


@pytest.mark.skipif(CUDA, reason="there is a GPU")
def test_transfer_wants_a_gpu(sptx):
    assert "between tables and a GPU" in sptx.refuses("bench", "transfer", "--device.backend=cpu")


@pytest.mark.parametrize("text, keys", [
    ("a b a c\n" * 500, []),
    ("u1 i7 3\nu2 i7 4\nu1 5 1\n" * 500, ["--corpus.format=pairs", "--corpus.weights=log"]),
    ("1 2\n2 3\n3 1\n" * 500, ["--corpus.format=graph"]),
])
def test_read_measures_each_part_and_leaves_nothing(sptx, text, keys):
    sptx.path("data").write_text(text)
    sptx.path("tmp").mkdir()
    done = sptx("bench", "read", "data", "--json", "--device.threads=2", *keys, env={**os.environ, "TMPDIR": str(sptx.path("tmp"))})
    head, *parts = lines(done)
    assert head["bench"] == "read" and [part["part"] for part in parts] == ["read", "count", "encode", "all"]
    assert all(part["bytes"] == len(text) and part["seconds"] > 0 and part["core_seconds"] > 0 for part in parts)
    assert not os.listdir(sptx.path("tmp"))
    assert "MB/s a core" in sptx("bench", "read", "data", *keys).stdout


def test_read_says_what_it_cannot_read(sptx):
    assert "bench read wants a FILE of data" in sptx.refuses("bench", "read", code=2)
    assert "cannot open 'none'" in sptx.refuses("bench", "read", "none")
    sptx.path("words").write_text("a b\n")
    assert "no option '--rows'" in sptx.refuses("bench", "read", "words", "--rows=5", code=2)
    assert "no word of the corpus comes 5 times" in sptx("bench", "read", "words", "--corpus.min_count=5", expect=1).stderr


@pytest.mark.parametrize("arguments, said", [
    ([], "bench wants transfer, train, ranks, walks or memory"),
    (["speed"], "bench has no 'speed'"),
    (["train", "run.ini", "--seconds=soon"], "--seconds = 'soon' is not a time"),
    (["train", "run.ini", "--steps=0"], "steps"),
    (["memory", "--rows=many"], "rows"),
    (["memory", "--steps=5"], "bench memory has no option '--steps'; see 'sptx-w2v help bench'"),
    (["memory", "--train.batch=4"], "bench memory has no use for '--train.batch=4'"),
    (["train", "run.ini", "--rows=5"], "bench train has no option '--rows'"),
    (["--steps=5", "transfer"], "bench transfer has no option '--steps'"),
    (["train", "run.ini", "other.ini"], "bench train wants one configuration file, 2 given"),
])
def test_wrong_calls(sptx, arguments, said):
    sptx.config()
    assert said in sptx.refuses("bench", *arguments, code=2)


@pytest.mark.parametrize("kind", ["train", "ranks", "walks"])
def test_without_a_configuration_file(sptx, kind):
    """bench needs no config file if the command line sets keys, but it asks for a corpus if no key names one."""
    assert "corpus.path is empty" in sptx.refuses("bench", kind)
    edges = sptx.path("edges.tsv")
    edges.write_text("".join(f"{i}\t{(i * 7 + 1) % 50}\n" for i in range(50)))
    told = sptx("bench", kind, f"--corpus.path={edges}", "--corpus.format=graph", "--seconds=0.05", "--device.backend=cpu").stdout
    assert "words/s" in told or "steps/s" in told


def test_the_simulation_of_ranks_begins_where_one_gpu_was_measured():
    """A network must never make two simulated ranks faster than two ranks in one machine."""
    told = subprocess.run([sys.executable, ROOT / "scripts/simulate_ranks.py", "1", "2", "64"], capture_output=True, text=True,
                          check=True)
    rates = {}
    for line in told.stdout.splitlines():
        if line and line[0] != "|":
            of_way = rates[line] = []
        elif line[2:3].isdigit():
            of_way.append(float(line.split("|")[5]))
    near, far = rates["14,886,544 x 188, SGD; near: NVLink of one machine"], rates["14,886,544 x 188, SGD; far: 200 Gb/s a GPU"]
    measured = re.search(r'"all": 131072 / ([0-9.]+)e3', (ROOT / "scripts/simulate_ranks.py").read_text())
    assert near[0] == far[0] == round(float(measured[1])) and len(near) == 2 and len(far) == 3
    assert near[1] > far[1]


@pytest.mark.parametrize("count", ["0", "-1", "many", "1e3", "1025"])
def test_the_simulation_wants_numbers_of_ranks(count):
    told = subprocess.run([sys.executable, ROOT / "scripts/simulate_ranks.py", "2", count], capture_output=True, text=True)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.endswith(f"'{count}' is not a whole number of ranks from 1 to 1024\n")
