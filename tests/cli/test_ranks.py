"""Training over ranks that share out the columns: mpirun -n G sptx-w2v train.

Any number of ranks trains the same model, except for rounding, since sums are added in another order. The same number of ranks
trains the same bytes, whatever their threads, batches in flight and places of tables are.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import numpy
import pytest

from conftest import PROGRAM, ROOT, SLOWER, checkpoints, end, wait_for
from ranks import (ENVIRONMENT, arrays, begin, built, command, difference, held_out, mpi, only_sentence, refuses,  # noqa: F401
                   refuses_unlike, small, together, train)

# The runs have few steps, so that differences by rounding stay small.
ON_GPU = os.environ.get("SPTX_BACKEND") == "cuda"
MODES = {
    "window": {"train": {"steps": 40}, "negatives": {"count": 4}},
    "shared": {"train": {"steps": 40}, "negatives": {"per": "example"}, "optimizer": {"rule": "adam"}},
    "list": {"corpus": {"path": "friends.lists", "format": "lists"}, "examples": {"mode": "list", "positives": 2},
             "train": {"epochs": 20, "batch": 8, "held_out": 0.2}},
    "pairs": {"corpus": {"path": "friends.pairs", "format": "pairs", "weights": "log"}, "examples": {"positives": 0, "targets": "one"},
              "train": {"epochs": 20, "batch": 8, "reduction": "mean"}, "optimizer": {"rule": "adamax", "clip": 0.05}},
    "adjacency": {"corpus": {"path": "papers.adjacency", "format": "adjacency"}, "train": {"epochs": 20, "batch": 2},
                  "optimizer": {"rule": "sgd", "lr": 0.1, "momentum": 0.5}},
    "cosines": {"corpus": {"path": "friends.lists", "format": "lists"}, "optimizer": {"rule": "adam", "lr": 0.01, "clip": 5},
                "train": {"epochs": 10, "batch": 8, "effort": "quick"}},  # as several ranks train lists anywhere
    "shared by a batch": {"corpus": {"path": "friends.lists", "format": "lists"}, "optimizer": {"rule": "adagrad", "clip": 0.05},
                          "negatives": {"per": "batch", "count": 9}, "examples": {"mode": "user", "targets": "all", "positives": 1},
                          "train": {"epochs": 10, "batch": 8, "loss": "softmax", "score": "dot", "temperature": 0.5}},
    "hierarchical": {"train": {"steps": 40, "loss": "hierarchical"}},
    "glove": {"train": {"steps": 40, "batch": 32, "loss": "glove"}},
    "means": {"examples": {"mode": "cbow"}, "train": {"steps": 40}, "optimizer": {"rule": "adam"}},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("numbers", [(3,), pytest.param((1, 2, 4), marks=pytest.mark.long)])
def test_every_number_of_ranks_makes_the_same_model(small, mode, numbers):
    """The rows have 50 columns. Three ranks have 20, 16 and 14 of them."""
    config = small.config(**{"model": {"dim": 50, "context_init": "uniform -0.1 0.1"}, **MODES[mode]})
    train(small, 0, config, "--run.dir=alone")
    for ranks in numbers:
        run = f"run{ranks}"
        train(small, ranks, config, f"--run.dir={run}")
        if ranks == 1:
            assert small.tables(run) == small.tables("alone")
        else:
            assert difference(small, "alone", run) < 2e-5
            assert held_out(small, run) == pytest.approx(held_out(small, "alone"), rel=1e-4)
    assert bool(held_out(small, "alone")) == (mode == "list")


def test_columns_that_are_no_groups_of_four(small):
    config = small.config(model={"dim": 5, "context_init": "uniform -0.1 0.1"}, train={"steps": 30})
    train(small, 0, config, "--run.dir=alone")
    train(small, 4, config, "--run.dir=four")
    assert difference(small, "alone", "four") < 2e-5


def test_clip_bounds_the_norm_over_all_columns(small):
    keys = {"model": {"dim": 24, "context_init": "uniform -0.1 0.1"}, "train": {"steps": 20}}
    runs = {"free": 0, "tight": 0.02}
    for run, clip in runs.items():
        config = small.config(optimizer={"rule": "sgd", "lr": "0.3", "clip": clip}, **keys)
        for ranks in (0, 3):
            train(small, ranks, config, f"--run.dir={run}{ranks}")
        assert difference(small, f"{run}0", f"{run}3") < 2e-5
    assert difference(small, "free0", "tight0") > 0.1


def test_one_number_of_ranks_makes_one_model(small):
    keys = {"model": {"dim": 50}, "train": {"steps": 60}, "optimizer": {"rule": "adam", "clip": 1}}
    config = small.config(**keys)
    train(small, 3, config, "--run.dir=one", "--device.threads=1")
    train(small, 3, config, "--run.dir=other", "--device.threads=3", "--memory.depth=1", "--memory.target=file")
    assert small.tables("one") == small.tables("other")


@pytest.mark.parametrize("corpus, effort", [({}, {}), ({"path": "friends.lists", "format": "lists"}, {"effort": "quick"})])
def test_a_checkpoint_goes_on_with_any_number_of_ranks(small, corpus, effort):
    """Uses adagrad: adam divides nearly vanishing gradients by their own size, which magnifies rounding. If lists have rows, the
    target table begins after the rows of items."""
    config = small.config(corpus=corpus, model={"dim": 50}, optimizer={"rule": "adagrad"},
                          train={"steps": 60, "epochs": 0, **effort})
    train(small, 3, config, "--run.dir=whole")
    train(small, 3, config, "--run.dir=half", "--train.steps=30")
    for ranks in (0, 2, 3):
        shutil.copytree(small.path("half"), small.path(f"half{ranks}"))
        assert "resumed" in train(small, ranks, config, f"--run.dir=half{ranks}", "--resume").stderr
        assert difference(small, "whole", f"half{ranks}") < 2e-5
    assert small.tables("half3") == small.tables("whole")
    train(small, 0, config, "--run.dir=first", "--train.steps=30")
    train(small, 4, config, "--run.dir=first", "--resume")
    assert difference(small, "whole", "first") < 2e-5


def test_a_run_grows_over_any_number_of_ranks(small):
    """Known rows keep the bytes of the older run. The other rows are the same for any number of ranks, except for rounding."""
    small.path("fewer.txt").write_text("".join(small.path("corpus.txt").read_text().replace("t9", "t8")))
    config = small.config(model={"dim": 50}, optimizer={"rule": "adam", "clip": 1}, train={"steps": 30, "epochs": 0})
    # a word that was never trained begins with new first values
    every = ["--train.steps=0", "--train.epochs=2", "--examples.subsample=0"]
    train(small, 2, config, "--corpus.path=fewer.txt", "--run.dir=old", *every)
    more = ["--train.from=old", "--train.freeze=known"]
    train(small, 0, config, *more, "--run.dir=alone")
    assert "new" in train(small, 3, config, *more, "--run.dir=three").stderr
    assert difference(small, "alone", "three") < 2e-5
    train(small, 3, config, *more, "--train.steps=12")
    train(small, 2, config, *more, "--resume")
    assert difference(small, "alone", "run") < 2e-5
    olds, news = ([line.split("\t")[0] for line in small.path(run, "vocab.tsv").read_text().splitlines()]
                  for run in ("old", "three"))
    both = [word for word in olds if word in news]
    assert len(news) > len(both)
    for old, new in zip(arrays(small, "old"), arrays(small, "three")):
        assert (old[[olds.index(word) for word in both]] == new[[news.index(word) for word in both]]).all()
    assert "cannot open 'none'" in refuses(small, 3, config, "--train.from=none", "--run.dir=other")


def test_what_reads_a_run_knows_of_no_ranks(small):
    train(small, 3, small.config(model={"dim": 50}, train={"steps": 30}))
    assert small("nearest", "run", "t0w0", "--k=3").stdout.count("\n") == 3
    small("export", "run", "--format=npy", "--out=vectors.npy")
    assert numpy.load(small.path("vectors.npy")).shape[1] == 50
    assert small("train", "run.ini", "--resume").stderr.count("finished already") == 1


# ---- lock-free: by one process alone ----

LOCK_FREE = {"model": {"dim": 50}, "train": {"update": "hogwild", "epochs": 2}, "optimizer": {"rule": "sgd", "lr": 0.1},
             "device": {"backend": "cpu", "threads": 1}, "run": {"checkpoint_every": "epoch"}}
IN_ONE_PROCESS = ("train.update = hogwild trains in one process, and this run has 2 ranks, which train exact steps together; set "
                  "train.update = batch, or begin it without them")


def test_ranks_do_not_train_lock_free(small):
    config = small.config(**LOCK_FREE)
    assert refuses(small, 2, config) == IN_ONE_PROCESS
    assert small.refuses("bench", "train", config, "--device.gpus=2") == IN_ONE_PROCESS
    assert small.refuses("plan", config, "--device.gpus=2", "--device.share=columns") == IN_ONE_PROCESS
    assert not small.path("run").exists()
    train(small, 2, config, "--train.update=batch")


def test_a_run_that_ranks_trained_lock_free_goes_on_in_one_process(small):
    """Version 1.0 trained lock-free with two ranks. Such a run is recognized by its keys; its tables are whole."""
    config = small.config(**LOCK_FREE)
    train(small, 0, config)
    keys = small.path("run", "config.ini")
    keys.write_text(keys.read_text().replace("\ngpus = 0\n", "\ngpus = 2\n"))
    more = ["--resume", "--train.epochs=3"]
    assert "\ngpus = 2\n" in keys.read_text()
    for own in (config, "run/config.ini"):
        assert refuses(small, 2, own, *more) == IN_ONE_PROCESS
    if not ON_GPU: assert "begins a process for each GPU" in small.refuses("train", "run/config.ini", *more)
    assert "resumed" in train(small, 0, config, *more).stderr


def test_a_gpu_trains_no_table_in_a_file_lock_free(small):
    config = small.config(**LOCK_FREE)
    gpu = ["--device.backend=cuda", "--memory.gpu_budget=100MiB"]
    in_file = ["--memory.target=file", "--memory.hot_rows=0"]
    plan = json.loads(small("plan", config, "--json", *gpu, *in_file, expect=1).stdout)
    assert not plan["fits"] and "none can stay in a file; set memory.target = pinned, or train.update" in plan["advice"]
    assert plan["fits_host"] and plan["fits_gpu"]
    # all rows are hot, so none is in the file
    assert json.loads(small("plan", config, "--json", *gpu, "--memory.target=file").stdout)["fits"]
    assert json.loads(small("plan", config, "--json", *in_file).stdout)["fits"]


# ---- processes that end ----

def process_of(rank, directory):
    """Returns the process id of a rank of the run that works in `directory`; None if it has not started yet."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").resolve() == directory.resolve() and \
                    f"OMPI_COMM_WORLD_RANK={rank}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                return int(entry.name)
        except OSError:
            continue
    return None


LONG = {"model": {"dim": 50}, "train": {"epochs": 0, "steps": 900, "batch": 128}, "optimizer": {"rule": "adam"},
        "run": {"checkpoint_every": "100 steps"}}


def interrupt(sptx, rank, number, config=None):
    """Sends a signal to one of three ranks when the first checkpoint exists. Returns what mpirun wrote, its exit code, and the
    time it took to end. config: the name of the config file; None: one of the keys LONG."""
    process = subprocess.Popen(command(3, PROGRAM, "train", config or sptx.config(**LONG)), cwd=sptx.directory, env=ENVIRONMENT,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert wait_for(lambda: checkpoints(sptx), process)
    os.kill(process_of(rank, sptx.directory), number)
    began = time.monotonic()
    _, stderr = end(process)
    return stderr, process.returncode, time.monotonic() - began


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.long), 2])
def test_a_killed_rank_ends_all_and_the_run_goes_on_to_the_same_bytes(small, rank):
    train(small, 3, small.config(**LONG), "--run.dir=whole")
    stderr, code, seconds = interrupt(small, rank, signal.SIGKILL)
    assert code != 0 and seconds < 20
    assert f"process rank {rank}" in stderr and "signal 9" in stderr  # mpirun's message, not the program's
    assert process_of(0, small.directory) is None
    train(small, 3, "run.ini", "--resume")
    assert small.tables() == small.tables("whole")


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.long), 1])
def test_a_signal_to_any_rank_stops_all_with_a_checkpoint(small, rank):
    stderr, code, _ = interrupt(small, rank, signal.SIGTERM)
    assert code != 0
    assert "stopped by a signal" in only_sentence(stderr)
    assert "resumed" in train(small, 2, "run.ini", "--resume").stderr


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.long), 1])
def test_a_rank_that_hangs_is_named_and_ends_all(small, rank):
    """One rank is stopped in the middle of its steps. The others wait for device.rank_timeout, and then name it."""
    words = command(3, PROGRAM, "train", small.config(**LONG), "--device.rank_timeout=1")
    process = subprocess.Popen(words, cwd=small.directory, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, encoding="utf-8")
    assert wait_for(lambda: checkpoints(small), process)
    stopped = process_of(rank, small.directory)
    os.kill(stopped, signal.SIGSTOP)
    _, stderr = end(process)
    assert process.returncode != 0
    said = only_sentence(stderr)
    assert "device.rank_timeout" in said and f"rank {rank} of 3 did not come" in said
    assert wait_for(lambda: process_of(rank, small.directory) is None, process) or not pathlib.Path(f"/proc/{stopped}").exists()


def test_a_run_that_was_stopped_by_ctrl_z_goes_on(small):
    """All processes are stopped for longer than device.rank_timeout, as by Ctrl-Z. This must not count as hanging."""
    words = command(3, PROGRAM, "train", small.config(**LONG), "--device.rank_timeout=1", "--train.steps=9999999")
    process = subprocess.Popen(words, cwd=small.directory, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, encoding="utf-8")
    assert wait_for(lambda: checkpoints(small), process)
    stopped = [process.pid] + [process_of(rank, small.directory) for rank in range(3)]
    for _ in range(2):
        for number, pause in ((signal.SIGSTOP, 3), (signal.SIGCONT, 0.5)):
            for one in stopped:
                os.kill(one, number)
            time.sleep(pause)
    before = small.path("run", "latest").read_text()
    assert wait_for(lambda: small.path("run", "latest").read_text() != before, process)
    os.kill(stopped[1], signal.SIGTERM)
    assert "stopped by a signal" in only_sentence(end(process)[1])


AUTO = {"model": {"dim": 50}, "optimizer": {"rule": "sgd", "lr": 0.001}, "train": {"steps": 20, "batch": 64, "update": "auto"}}


@pytest.mark.parametrize("first, second", [(3, 0), (2, 3), (0, 0)])
def test_auto_stays_what_it_was_when_the_number_of_ranks_changes(small, first, second):
    """With train.update = auto one process trains text lock-free, and several ranks train it in exact steps. A resumed run keeps
    what it began with."""
    config = small.config(**AUTO)
    train(small, first, config)
    assert "resumed" in train(small, second, config, "--resume", "--train.steps=40").stderr
    assert f"update = {'batch' if first else 'hogwild'}" in small.path("run", "config.ini").read_text()


def test_text_with_its_usual_rate_trains_over_ranks_as_well_as_by_one_process(small):
    """Exact steps of plain sgd on text diverge without a bound on gradients. optimizer.clip = auto sets one."""
    losses = []
    for ranks, run in ((0, "one"), (3, "three")):
        train(small, ranks, "--corpus.path=corpus.txt", "--corpus.min_count=1", "--model.dim=32", "--optimizer.lr=0.05",
              "--train.epochs=8", "--train.held_out=0.05", f"--run.dir={run}", "--device.backend=cpu")
        losses.append(held_out(small, run)[-1] / held_out(small, run)[0])
    assert "clip = 30\n" in small.path("three", "config.ini").read_text()
    assert losses[0] < 0.8 and losses[1] < 0.8, losses


def test_another_key_is_what_resume_speaks_of(small):
    """If another key was changed, the message names that key and not train.update, which is auto."""
    train(small, 0, small.config(**AUTO))
    for key in ("optimizer.momentum=0.9", "optimizer.clip=1", "train.reduction=mean"):
        said = small.refuses("train", "run.ini", "--resume", f"--{key}")
        assert said.startswith(f"'run' was begun with another {key.split('=')[0]}: ")


def test_paths_are_each_ranks_own_when_it_goes_on(small):
    shutil.copy(small.path("corpus.txt"), small.path("copy.txt"))
    config = small.config(model={"dim": 50}, train={"steps": 20})
    ways = [[PROGRAM, "train", config, f"--corpus.path={name}.txt"] for name in ("corpus", "copy")]
    for more in ([], ["--resume", "--train.steps=30"]):
        done = begin(small, *(way + more for way in ways))
        assert done.returncode == 0, done.stderr


def test_a_rank_with_other_words_is_told_so_when_it_goes_on(small):
    """The message says how many rows are known."""
    lines = small.path("corpus.txt").read_text().splitlines(True)
    for name in ("old", "copy"):
        small.path(f"{name}.txt").write_text("".join(lines))
    train(small, 0, small.config(model={"dim": 50}), "--corpus.path=old.txt", "--run.dir=old", "--train.steps=5")
    small.path("corpus.txt").write_text("".join(lines) + "".join(line.replace("w1", "new") for line in lines[:200]))
    small.path("copy.txt").write_text(small.path("corpus.txt").read_text())
    words = [PROGRAM, "train", "run.ini", "--train.from=old", "--train.freeze=known"]
    ways = [words + [f"--corpus.path={name}.txt"] + cache for name, cache in (("corpus", []), ("copy", ["--corpus.cache=own"]))]
    assert begin(small, *(way + ["--train.steps=20"] for way in ways)).returncode == 0
    small.path("copy.txt").write_text("".join(lines[:500]))
    done = begin(small, *(way + ["--resume", "--train.steps=30"] for way in ways))
    assert done.returncode != 0 and "rank 1 of 2, on " in done.stderr
    assert only_sentence(done.stderr).endswith(": its corpus has the words of rank 0's in another order")


def test_what_auto_began_lock_free_goes_on_in_one_process(small):
    config = small.config(**AUTO)
    train(small, 0, config)
    assert refuses(small, 2, config, "--resume", "--train.steps=40") == IN_ONE_PROCESS
    train(small, 0, config, "--resume", "--train.steps=40")


def test_a_second_run_is_refused_and_ctrl_c_stops_all_with_a_checkpoint(small):
    """mpirun passes the signal on to the ranks, and gives them some seconds to end."""
    words = command(2, "--mca", "odls_base_sigkill_timeout", 4, PROGRAM, "train", small.config(**LONG), "--train.steps=9999999")
    process = subprocess.Popen(words, cwd=small.directory, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, encoding="utf-8")
    assert wait_for(lambda: checkpoints(small), process)
    for ranks in (0, 3):
        assert "is being trained by process" in refuses(small, ranks, "run.ini", "--overwrite")
    process.send_signal(signal.SIGINT)
    _, stderr = end(process)
    assert process.returncode != 0 and "stopped by a signal" in only_sentence(stderr)
    assert f"{small.checkpoint().name} is written" in stderr
    small("nearest", "run", "t0w0")


# ---- ranks that the program begins ----

@pytest.fixture
def two_gpus(small):
    if not ON_GPU or small("devices").stdout.count("\ngpu ") < 2:
        pytest.skip("device.gpus = 2 is for a machine with two GPUs")
    return small


@pytest.mark.skipif(ON_GPU, reason="the tests run on a GPU")
@pytest.mark.parametrize("backend, why", [("cpu", "device.backend = cpu uses none"), ("auto", None)])
def test_more_gpus_than_there_are_are_refused(small, backend, why):
    if not why and "auto       cpu" not in small("devices").stdout:
        why = "begins a process for each GPU, and this machine has "
    config = small.config(model={"dim": 50}, train={"steps": 4}, device={"backend": backend})
    said = small.refuses("train", config, "--device.gpus=1024", "--model.dim=1024")
    assert "device.gpus = 1024 begins a process for each GPU" in said and (why or "this machine has none that can be used") in said
    assert not small.path("run").exists()
    assert "this is one process: leave the key out" in small.refuses("bench", "train", config, "--device.gpus=2")
    assert "begin it without mpirun" in refuses(small, 3, config, "--device.gpus=2")
    plan = json.loads(small("plan", config, "--json", "--device.gpus=2", "--device.share=columns").stdout)
    assert (plan["ranks"], plan["columns"]) == (2, 28)


def gpus_of(small, config, *more):
    """What a plan for up to four GPUs prints about the number of GPUs, and about keys whose values differ."""
    lines = small("plan", config, "--device.gpus=4", *more).stdout.splitlines()
    return {line[:16].rstrip(): line[17:] for line in lines if line.startswith(("GPUs ", "ranks ", "other results"))}


@pytest.mark.skipif(ON_GPU, reason="the speed of this machine's GPU decides")
def test_a_run_uses_the_gpus_that_help_it(small):
    """Text is trained lock-free by one GPU. Exact steps use all GPUs, unless one is known to be faster."""
    text = small.config(model={"dim": 52}, train={"update": "auto"}, optimizer={"rule": "sgd"})
    said = gpus_of(small, text)
    assert said["GPUs"].startswith("1 of 4: trained lock-free") and list(said) == ["GPUs"]
    assert said["GPUs"].endswith("; device.share = columns uses all")
    assert "copies are trained by GPUs, and cpu has none" in small.refuses("plan", text, "--device.gpus=4", "--device.share=copies",
                                                                           "--device.backend=cpu")
    said = gpus_of(small, text, "--device.share=columns")
    assert said["GPUs"] == "all 4 (device.share = columns)" and said["ranks"].startswith("4 ")
    assert "train.update = batch (hogwild)" in said["other results"]
    said = gpus_of(small, text, "--train.update=batch")
    assert said["GPUs"].startswith("4 of 4: ") and "other results" not in said
    assert gpus_of(small, text, "--train.update=batch", "--optimizer.rule=rowwise-adagrad")["GPUs"].startswith("1 of 4: ")
    small.path("lists.tsv").write_text("".join(f"l{i}\ta\tb\tc{i % 7}\td{i % 5}\n" for i in range(99)))
    lists = ["--corpus.path=lists.tsv", "--corpus.format=lists", "--run.dir=lists"]
    shared = ["--negatives.per=batch", "--train.loss=softmax", "--examples.mode=user", "--examples.targets=all", "--examples.positives=1"]
    plan = small("plan", *lists, *shared, "--device.gpus=4").stdout
    assert plan.splitlines()[-1].startswith("GPUs             1 of 4: batches share their negatives")
    assert "columns" not in plan.splitlines()[-1]  # which negatives.per = batch refuses with cosines
    small.path("graph.tsv").write_text("".join(f"e{i % 7}\tr{i % 3}\te{i % 5}\n" for i in range(99)))
    plan = small("plan", "--corpus.path=graph.tsv", "--corpus.format=triples", "--run.dir=graph", "--device.gpus=4").stdout.splitlines()[-1]
    assert plan.startswith("GPUs             1 of 4: batches share their negatives") and plan.endswith("; device.share = columns uses all")


def test_gpus_are_processes_that_the_program_begins(two_gpus):
    small = two_gpus
    config = small.config(model={"dim": 50}, train={"steps": 40})
    train(small, 2, config, "--run.dir=two")
    train(small, 0, config, "--run.dir=own", "--device.gpus=2")
    assert small.tables("own") == small.tables("two")
    warned = train(small, 0, config, "--run.dir=warned", "--device.gpus=2", "--optimizer.rho=0.5").stderr
    assert warned.count("has no effect") == 1
    quiet = train(small, 0, config, "--run.dir=quiet", "--device.gpus=2", "--quiet")
    assert quiet.stdout == quiet.stderr == ""


def test_gpus_without_mpirun_say_what_is_missing(two_gpus):
    small = two_gpus
    config = small.config(model={"dim": 50}, train={"steps": 4})
    said = small.refuses("train", config, "--device.gpus=2", env=dict(os.environ, PATH="/nowhere"))
    assert "cannot run mpirun" in said and "scripts/setup.sh" in said
    assert not small.path("run").exists()


# ---- measured ----

def test_steps_over_ranks_are_measured(small):
    config = small.config(model={"dim": 50})
    done = subprocess.run(command(2, PROGRAM, "bench", "ranks", config, "--steps=20", "--json"), cwd=small.directory,
                          env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120 * SLOWER)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["ranks"], told["steps"], [rank["columns"] for rank in told["by_rank"]]) == (2, 20, [28, 22])
    assert all(rank[key] > 0 for rank in told["by_rank"] for key in ("seconds", "step_seconds", "step_apart_seconds"))
    assert told["pairs_per_second"] > 0
    table = subprocess.run(command(2, PROGRAM, "bench", "ranks", config, "--steps=20"), cwd=small.directory, env=ENVIRONMENT,
                           stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120 * SLOWER).stdout
    assert table.count("\n   ") == 2 and "exchange" in table
    alone = subprocess.run(command(1, PROGRAM, "bench", "ranks", config, "--steps=20"), cwd=small.directory, env=ENVIRONMENT,
                           stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120 * SLOWER).stdout
    assert " 0.0%" in alone.split("\n")[-2]  # a single rank waits for no other


def test_lock_free_calls_of_a_rank_alone_are_measured(small):
    config = small.config(model={"dim": 50}, train={"update": "hogwild"})
    said = [subprocess.run(command(1, PROGRAM, "bench", "ranks", config, "--steps=40", *more), cwd=small.directory,
                           env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=120 * SLOWER)
            for more in (["--json"], [])]
    assert [done.returncode for done in said] == [0, 0], said[0].stderr + said[1].stderr
    told = json.loads(said[0].stdout)
    assert (told["update"], told["ranks"], told["steps"]) == ("hogwild", 1, 40) and told["words_per_second"] > 0
    assert [rank["columns"] for rank in told["by_rank"]] == [50] and "step_seconds" not in told["by_rank"][0]
    assert "hogwild, 40 calls" in said[1].stdout and "a pair" in said[1].stdout.split("\n")[-2]


def test_the_largest_model_is_planned_and_trained(small):
    """The plan leaves out some 100 MB for the program itself, which is more than 5% of so small a table. The script says so."""
    tried = {"SPTX_BIN": PROGRAM, "SPTX_WORK": small.path("work"), "SPTX_ROWS": 3000, "SPTX_DIM": 24, "SPTX_STEPS": 3,
             "SPTX_BATCH": 64, "SPTX_BACKEND": os.environ.get("SPTX_BACKEND", "cpu")}
    done = subprocess.run([ROOT / "scripts/largest_model.sh", "2"], env={**ENVIRONMENT, **{key: str(tried[key]) for key in tried}},
                          stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=100 * SLOWER)
    assert "3000 rows x 24 columns over 2 ranks, 12 columns on the widest" in done.stdout, done.stderr
    assert "; 3 steps in " in done.stdout and "\nrank 1, host, at its peak " in done.stdout
    assert done.returncode == ("more than 5% beside the plan" in done.stdout)


def test_the_largest_model_takes_its_ranks_along(small):
    """If the script is ended, its ranks must end, too: they would hold all memory of a machine."""
    tried = {"SPTX_BIN": PROGRAM, "SPTX_WORK": small.path("work"), "SPTX_ROWS": 3000, "SPTX_DIM": 24, "SPTX_STEPS": 1000000,
             "SPTX_BATCH": 64, "SPTX_BACKEND": os.environ.get("SPTX_BACKEND", "cpu")}
    script = subprocess.Popen([ROOT / "scripts/largest_model.sh", "2"], env={**ENVIRONMENT, **{key: str(tried[key]) for key in tried}},
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    files = [small.path("work", f"largest-pid.{rank}") for rank in range(2)]
    try:
        assert wait_for(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files), script)
        ranks = [pathlib.Path("/proc", file.read_text().strip()) for file in files]
    finally:
        script.terminate()
    assert script.wait(30) == 1
    until = time.monotonic() + 30
    while any(rank.exists() for rank in ranks) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(rank.exists() for rank in ranks)


@pytest.mark.parametrize("arguments", [["0"], ["-1"], ["two"], ["1.5"], ["1025"], ["2", "3"]])
def test_the_largest_model_wants_a_number_of_gpus(small, arguments):
    done = subprocess.run([ROOT / "scripts/largest_model.sh", *arguments], env={**ENVIRONMENT, "SPTX_WORK": str(small.path("work"))},
                          stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=100 * SLOWER)
    said = f"largest_model.sh: '{' '.join(arguments)}' is not one whole number of GPUs from 1 to 1024\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert not small.path("work").exists()


# ---- what is refused ----

def test_bad_input_is_one_sentence(small):
    config = small.config(model={"dim": 50}, train={"steps": 5})
    assert "has no key 'steep'" in refuses(small, 3, config, "--train.steep=1")
    assert "model.dim = 2 has fewer columns than there are ranks" in refuses(small, 3, config, "--model.dim=2")
    assert "cannot open" in refuses(small, 2, config, "--corpus.path=nothing.txt")
    assert "device.exchange = 'post'" in refuses(small, 2, config, "--device.exchange=post")
    assert "mpirun -n 3" in refuses(small, 2, config, "--device.ranks=3")
    assert "mpirun -n 3" in small.refuses("train", config, "--device.ranks=3")
    assert not small.path("run").exists()
    train(small, 2, config)
    assert "holds a finished run" in refuses(small, 2, config)


def test_a_run_that_diverges_says_so_once(small):
    config = small.config(train={"steps": 200}, optimizer={"rule": "sgd", "lr": "1e5", "schedule": "constant"})
    assert "the weights have diverged" in refuses(small, 3, config)


@pytest.mark.long
def test_a_full_disk_ends_all_with_its_sentence(small):
    """No rank may write files of more than 200 KiB: the first rank cannot write a checkpoint, the second one its working file."""
    config = small.config(model={"dim": 400}, train={"steps": 5}, run={"retry_seconds": "0"})
    small("plan", config, "--run.dir=run")
    said = refuses_unlike(small, [config], [config], ("ulimit -f 200", "true"))
    assert "cannot write" in said and "target.npy" in said and "rank" not in said
    if not ON_GPU:  # on a GPU all rows of so small a table are hot, so there is no working file
        said = refuses_unlike(small, [config], [config, "--memory.target=file"], ("true", "ulimit -f 200"))
        assert said.startswith("rank 1 of 2, on ") and "cannot map a file" in said
    assert not small.path("run", "latest").exists()
    assert not [name for name in os.listdir(small.path("run")) if name.startswith("checkpoint")]
    train(small, 2, config)


# ---- plans and known answers ----

def test_a_plan_for_ranks_needs_none(small):
    config = small.config(model={"dim": 50})
    alone, three = (json.loads(small("plan", config, "--json", *more).stdout) for more in ([], ["--device.ranks=3"]))
    assert (alone["ranks"], alone["columns"], three["ranks"], three["columns"]) == (1, 50, 3, 20)
    assert three["dim"] == alone["dim"] == 50
    assert (alone["target_bytes"], three["target_bytes"]) == (256 * alone["rows"], 96 * alone["rows"])
    assert "3 share out the columns" in small("plan", config, "--device.ranks=3").stdout
    assert "fewer columns" in small.refuses("plan", config, "--device.ranks=51")
    bounded, free = (json.loads(small("plan", config, "--json", "--device.ranks=3", f"--optimizer.clip={clip}").stdout) for clip in (1, 0))
    assert bounded["work_bytes"] > free["work_bytes"]
    # on GPUs each rank also has memory (mailboxes) for the values that others send
    assert ON_GPU or free["work_bytes"] < alone["work_bytes"]


def test_what_a_rank_takes_is_what_the_plan_says(small):
    """Measures the first rank, which has the most columns, and compares its memory with the plan."""
    config = small.config(model={"dim": 50}, train={"steps": 2})
    planned = small("plan", config, "--device.ranks=3", "--device.threads=1").stdout.split("\n")
    said = train(small, 3, config, "--device.threads=1").stderr
    for line in planned:
        if line.startswith(("target", "context", "work", "ranks")):
            assert line in said


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_sums_have_one_order(ranks):
    done = together(ranks, "sum")
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stderr


@pytest.mark.parametrize("what", ["agree", "alone"])
def test_a_rank_that_fails_ends_all_wherever_they_are(what):
    began = time.monotonic()
    done = together(3, what)
    assert done.returncode != 0 and time.monotonic() - began < 20
    said = only_sentence(done.stderr)
    assert said.startswith("rank 1 of 3, on ") and said.endswith(": rank 1 has had enough")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_known_answers_of_every_rule_and_loss(ranks):
    files = sorted(map(str, (ROOT / "tests/reference").glob("data/*.txt" if ON_GPU else "*/*.txt")))
    if ranks > 1:
        files = [file for file in files if "rowwise" not in file]  # ranks refuse this rule
    done = subprocess.run(command(ranks, built("test_reference"), *files), env=dict(ENVIRONMENT, SPTX_THREADS="1"),
                          capture_output=True, text=True, timeout=120 * SLOWER)
    assert done.stdout.count("\nok ") + done.stdout.startswith("ok ") == len(files), done.stdout + done.stderr
    assert f"{len(files)} passed, 0 failed" in done.stdout
