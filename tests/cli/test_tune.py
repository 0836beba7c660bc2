"""tune: finds good keys for generated data, for which some keys are better than others."""
import random
import signal

import pytest

from conftest import end, wait_for

SMALL = {"model": {"dim": None}, "train": {"update": None, "batch": None, "epochs": "2"}, "run": {"dir": "run"}}


def lists(sptx, **keys):
    """Writes lists of six topics. Each list has 10 of its topic's 30 items."""
    draw = random.Random(1)
    lines = [f"list{i} " + " ".join(f"t{i % 6}i{item}" for item in draw.sample(range(30), 10)) for i in range(180)]
    sptx.path("corpus.txt").write_text("\n".join(lines) + "\n")
    return sptx.config(**{**SMALL, "corpus": {"format": "lists"}, "negatives": {"count": "20"}, **keys})


def graph(sptx):
    draw = random.Random(2)
    edges = {(i, draw.randrange(i)) for i in range(1, 120)} | {tuple(draw.sample(range(120), 2)) for _ in range(300)}
    sptx.path("corpus.txt").write_text("".join(f"n{a} n{b}\n" for a, b in sorted(edges) if a != b))
    return sptx.config(corpus={"format": "graph"}, examples={"window": "2"}, train={"update": None, "batch": None, "epochs": "1"},
                       walks={"per_node": "2", "length": "10"}, model={"dim": None})


def table(done):
    """Returns the lines of tune's table without their seconds, which differ from call to call."""
    lines = [line.split() for line in done.stdout.splitlines()[1:]]
    return [line[:4] + line[5:] for line in lines]


def test_the_best_keys_are_written_and_train(sptx):
    done = sptx("tune", lists(sptx), "--trials=6")
    lines = table(done)
    assert [line[0] for line in lines].count("0") == 3 and {line[0] for line in lines} == set("012345")
    text = sptx.path("best.ini").read_text()
    assert text.startswith("# Found by sptx-w2v tune") and "the best of 6 trials: held-out recall@20" in text
    assert "[corpus]\npath = corpus.txt\n" in text and "count = 20\n" in text and "epochs = 2\n" in text
    best = max((float(line[3].rstrip("*")) for line in lines if line[1] == "3/3"))
    assert f"recall@20 {best:.4f}" in text and f"recall@20 {best:.4f}" in done.stderr
    assert [path.name for path in sptx.path("run.tune").iterdir()] == ["tried.tsv"] and not sptx.path("run").exists()
    sptx("train", "best.ini")


def test_the_same_seed_gives_the_same_answer_and_the_same_call_goes_on(sptx):
    config = lists(sptx)
    once = sptx("tune", config, "--trials=4")
    text = sptx.path("best.ini").read_text()
    again = sptx("tune", config, "--trials=4", "--out=again.ini")
    assert all("=" in line.split()[4] for line in again.stdout.splitlines()[1:]) and table(again) == table(once)
    anew = sptx("tune", config, "--trials=4", "--anew")
    assert table(anew) == table(once) and sptx.path("best.ini").read_text() == text
    more = sptx("tune", config, "--trials=5")
    assert table(more)[:2] == table(once)[:2] and "4" in [line[0] for line in table(more)]
    other = sptx("tune", config, "--trials=4", "--train.seed=2")
    assert "begins anew" in other.stderr and table(other) != table(once)


def test_keys_that_are_set_stay(sptx):
    done = sptx("tune", lists(sptx), "--model.dim=32", "--optimizer.lr=0.01", "--trials=5")
    assert "model.dim=" not in done.stdout and "optimizer.lr=" not in done.stdout
    text = sptx.path("best.ini").read_text()
    assert "dim = 32\n" in text and "lr = 0.01\n" in text


def test_epochs_are_found_where_they_are_not_set(sptx):
    config = lists(sptx, train={"update": None, "batch": None, "epochs": None})
    done = sptx("tune", config, "--trials=1")
    assert [line[2] for line in table(done)] == ["20", "60", "180"]
    assert "epochs = " in sptx.path("best.ini").read_text()


def test_ctrl_c_keeps_the_best_so_far(sptx):
    config = lists(sptx)
    run = sptx.start("tune", config, "--minutes=10")
    for _ in range(4):
        assert run.stdout.readline()
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0 and "so far     recall@20" in err, err
    assert sptx.path("best.ini").read_text().startswith("# Found by sptx-w2v tune")
    assert [path.name for path in sptx.path("run.tune").iterdir()] == ["tried.tsv"]


def test_ctrl_c_before_the_first_trial_says_so(sptx):
    config = lists(sptx, train={"update": None, "batch": None, "epochs": "3000"})
    run = sptx.start("tune", config, "--minutes=10")
    assert wait_for(lambda: sptx.path("run.tune/trials/run").exists(), run)
    run.send_signal(signal.SIGINT)
    err = end(run)[1]
    assert run.returncode == 1 and err.splitlines()[-1] == ("sptx-w2v: stopped by a signal before a trial was done: there are no keys "
                                                            "to choose from, and nothing is written"), err
    assert not sptx.path("best.ini").exists()


def test_two_searches_at_once_are_one_and_a_refusal(sptx):
    config = lists(sptx)
    first = sptx.start("tune", config, "--minutes=10")
    assert first.stdout.readline() and first.stdout.readline()
    assert "is being used by the tune of process" in sptx("tune", config, "--trials=1", "--out=other.ini", expect=1).stderr
    first.send_signal(signal.SIGINT)
    assert "failed" not in end(first)[0] and first.returncode == 0
    assert sptx.path("best.ini").exists() and not sptx.path("other.ini").exists()


def test_a_run_of_the_users_own_stays(sptx):
    """tune must not change a run that is in the directory where tune would write, or that a symbolic link in that directory points to."""
    config = lists(sptx)
    sptx("train", config, "--run.dir=mine")
    wanted = sorted(path.name for path in sptx.path("mine").iterdir())
    sptx.path("a.tune").mkdir()
    sptx.path("a.tune", "trials").symlink_to("../mine")
    sptx("train", config, "--run.dir=b.tune")
    for name in "ab":
        done = sptx("tune", config, f"--run.dir={name}", "--trials=1", expect=1)
        assert "which tune has not written" in done.stderr.splitlines()[-1]
    for name in ("mine", "b.tune"):
        assert sorted(path.name for path in sptx.path(name).iterdir()) == wanted


def test_where_all_long_trials_diverge_the_best_short_one_is_left(sptx):
    draw = random.Random(7)
    nodes = [min(int(draw.paretovariate(.7)) - 1, 69) for _ in range(250)]
    sptx.path("hub.txt").write_text("".join(f"n{draw.randint(0, 70)} n{node}\n" for node in nodes))
    done = sptx("tune", "--corpus.path=hub.txt", "--corpus.format=graph", "--run.dir=run", "--device.backend=cpu", "--trials=2",
                "--train.epochs=6", "--train.update=batch", "--model.dim=8", "--optimizer.lr=0.02", "--optimizer.clip=0", expect=1)
    last = done.stderr.splitlines()[-1]
    assert "every trial that went on to" in last and "diverged" in last and "MRR" in last, done.stdout + done.stderr
    assert "epochs = 1\n" in sptx.path("best.ini").read_text()
    sptx("train", "best.ini", "--run.dir=best")


def test_a_trial_without_a_score_says_why(sptx):
    sptx.path("few.txt").write_text("a b c d e\n")
    last = sptx("tune", "--corpus.path=few.txt", "--corpus.min_count=1", "--run.dir=run", "--trials=2", expect=1).stderr
    assert "no example was held out to measure the loss of" in last and "too short" in last


def test_links_of_a_graph_are_judged(sptx):
    done = sptx("tune", graph(sptx), "--trials=3", "--train.seed=3")
    assert "held-out MRR" in sptx.path("best.ini").read_text() and "failed" not in done.stdout
    assert [path.name for path in sptx.path("run.tune").iterdir()] == ["tried.tsv"]


def test_text_is_judged_by_its_loss_or_by_sets(sptx):
    config = sptx.config(model={"dim": None})
    done = sptx("tune", config, "--trials=3")
    assert "examples.window=" not in done.stdout and "held-out loss" in sptx.path("best.ini").read_text()
    words = sorted({word for line in sptx.path("corpus.txt").read_text().splitlines() for word in line.split()})
    sptx.path("pairs.txt").write_text("".join(f"{a} {b} {i}\n" for i, (a, b) in enumerate(zip(words, words[5:]))))
    done = sptx("tune", config, "--trials=3", "--pairs=pairs.txt")
    assert "held-out score" in sptx.path("best.ini").read_text()


def test_a_file_of_the_users_own_is_never_written_over(sptx):
    config = lists(sptx)
    sptx.path("best.ini").write_text("[model]\ndim = 3\n")
    done = sptx("tune", config, "--trials=1", expect=1)
    assert "tune has not written it" in done.stderr and sptx.path("best.ini").read_text() == "[model]\ndim = 3\n"


@pytest.mark.parametrize("arguments, code, part", [
    (["--minutes=no"], 2, "--minutes = 'no'"),
    (["--trials=0"], 2, "--trials = '0'"),
    (["--trials=1", "--pairs=x.txt"], 1, "corpus.format is lists"),
    (["--trials=1", "--train.epochs=0", "--train.steps=5"], 1, "train.epochs is 0"),
    (["--trials=1", "--corpus.path=absent.txt"], 1, "absent.txt"),
    (["--trials=1", "--out=nowhere/best.ini"], 1, "cannot write 'nowhere/best.ini'"),
    (["--trials=1", "--corpus.path=edges.txt", "--corpus.format=graph", "--train.from=other"], 1, "tune trains a graph by numbers"),
    (["--trials=1", "--corpus.path=edges.txt", "--corpus.format=triples", "--train.from=other"], 1, "tune trains triples by numbers"),
    (["--trials=1", "--model.dim=64", "--optimizer.lr=1", "--train.loss=bpr", "--train.temperature=1", "--examples.own=1"], 1,
     "no key left to try"),
])
def test_what_cannot_work_is_refused(sptx, arguments, code, part):
    done = sptx("tune", lists(sptx), *arguments, expect=code)
    assert part in done.stderr.splitlines()[-1], done.stderr
