"""The run directory: whichever path names it, whoever else uses it and whatever else is in it, the user's own files stay."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from conftest import PROGRAM, SLOWER, STOP_KEYS, Program, end, lines_of_metrics, sentences, wait_for

MISSING = "--corpus.path=nowhere.txt"
OTHER = "--train.seed=7"  # makes another run than the one in the directory
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this")


def snapshot(directory):
    """Returns everything in a directory: the contents of files and the targets of links."""
    found = {}
    for path in sorted(pathlib.Path(directory).rglob("*")):
        name = str(path.relative_to(directory))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


def small(sptx, **sections):
    """Returns a config whose training takes hardly any time."""
    sptx.path("corpus.txt").write_text("\n".join(sentences(150)) + "\n")
    return sptx.config(train={"epochs": "1", "report_seconds": "0.01"}, **sections)


# ---- paths ----

ODD = ["nodir/../run", "./run", "run/", ".//run//", "nodir/deeper/../../run/.", "link", "link/", "link/../run", "toself/run"]


@pytest.fixture
def finished(trained):
    trained.path("link").symlink_to("run")
    trained.path("toself").symlink_to(".")
    trained.path("mine").write_text("mine")
    return trained


@pytest.mark.parametrize("path", ODD)
def test_a_finished_run_is_found_by_any_path(finished, path):
    before = snapshot(finished.directory)
    finished.refuses("train", "run.ini", f"--run.dir={path}", MISSING)
    assert snapshot(finished.directory) == before
    assert finished.refuses("train", "run.ini", f"--run.dir={path}", OTHER) == \
        "'run' holds a finished run; --overwrite replaces it, run.dir = ... writes elsewhere"
    assert snapshot(finished.directory) == before
    finished.refuses("train", "run.ini", f"--run.dir={path}", MISSING, "--overwrite")
    assert snapshot(finished.directory) == before
    assert "finished already" in finished("train", "run.ini", f"--run.dir={path}", "--resume").stderr
    assert snapshot(finished.directory) == before


@pytest.mark.parametrize("path", ["newdir/..", ".", "./", "a/b/../.."])
@pytest.mark.parametrize("how", [[], ["--overwrite"], ["--overwrite=now"], ["--resume"]])
@pytest.mark.parametrize("corpus", [[], [MISSING]])
def test_the_working_directory_is_no_run(finished, path, how, corpus):
    before = snapshot(finished.directory)
    said = finished.refuses("train", "run.ini", f"--run.dir={path}", *how, *corpus)
    assert said == "'.' is no run directory and holds 'corpus.txt': a run wants a directory of its own (run.dir = ...)"
    assert snapshot(finished.directory) == before


@pytest.mark.parametrize("path, place", [
    ("new", "new"), ("new/", "new"), ("./new/deep//er", "new/deep/er"), ("absent/../new", "new"), ("to/run", "real/run"),
    ("broken", "later/run"), ("\u0441\u043b\u043e\u0432\u043e/\u65e5 \u672c", "\u0441\u043b\u043e\u0432\u043e/\u65e5 \u672c"),
    ("n" * 255, "n" * 255), ("/".join(["d" * 100] * 12), "/".join(["d" * 100] * 12)),
])
def test_new_runs_go_where_the_path_leads(sptx, path, place):
    config = small(sptx)
    sptx.path("real").mkdir()
    sptx.path("to").symlink_to("real")
    sptx.path("broken").symlink_to("later/run")
    before = set(os.listdir(sptx.directory))
    sptx.refuses("train", config, f"--run.dir={path}", MISSING)
    assert set(os.listdir(sptx.directory)) == before  # directories that were made for the failed run are gone
    sptx("train", config, f"--run.dir={path}")
    assert {"config.ini", "latest", "metrics.jsonl", "vocab.tsv"} < set(os.listdir(sptx.path(place)))
    assert set(os.listdir(sptx.directory)) <= before | {place.split("/")[0]}
    assert sptx("nearest", path, "t1w1").stdout


def test_from_another_working_directory(finished):
    sub = Program(finished.path("sub"))
    sub.directory.mkdir()
    said = sub.refuses("train", "../run.ini", "--run.dir=../run", "--corpus.path=../corpus.txt")
    assert said.startswith("'../run' holds a finished run")


def test_an_empty_path_is_the_default(sptx):
    sptx("train", small(sptx), "--run.dir=")
    assert sptx.path("runs", "run", "latest").exists()


def test_a_path_that_no_system_takes(sptx):
    config = small(sptx)
    for path in ("n" * 256, "/".join(["d" * 200] * 30)):
        assert sptx.refuses("train", config, f"--run.dir={path}").startswith("cannot look at '")  # the path is longer than a line
        assert sorted(os.listdir(sptx.directory)) == ["corpus.txt", "run.ini"]


def test_what_cannot_be_looked_at_is_not_absent(finished):
    """A link that leads to itself cannot be resolved. It does not count as absent, and nothing is made or removed because of it."""
    finished.path("circle").symlink_to("circle")
    before = snapshot(finished.directory)
    for path in ("circle", "circle/run", "run/circle/../../circle/x"):
        assert "circle" in finished.refuses("train", "run.ini", f"--run.dir={path}")
    assert snapshot(finished.directory) == before


# ---- what is not a run's own ----

@pytest.mark.parametrize("how", [[], ["--overwrite"], ["--overwrite=now"], ["--resume"]])
@pytest.mark.parametrize("name", ["notes.txt", "checkpoint-best/model.bin", "checkpoint-12/weights", "latest/notes",
                                  "config.ini", "metrics.jsonl", "vocab.tsv", "train.lock", "replacement/mine"])
def test_a_directory_that_is_no_run_is_refused(sptx, name, how):
    config = small(sptx)
    sptx.path("run", name).parent.mkdir(parents=True)
    sptx.path("run", name).write_text("the user's\n")
    said = sptx.refuses("train", config, *how)
    assert name.split("/")[0] in said and "'run" in said
    assert snapshot(sptx.path("run")) == snapshot_of({name: b"the user's\n"})


def snapshot_of(files):
    found = dict(files)
    for name in files:
        found.update({str(parent): None for parent in pathlib.Path(name).parents if str(parent) != "."})
    return found


@pytest.mark.parametrize("how", [["--overwrite"], ["--overwrite=now"]])
def test_other_files_in_a_run_stay(sptx, how):
    """Puts files beside a run, some with names like those of a run's files, and files into its checkpoints."""
    config = small(sptx)
    sptx("train", config)
    last = sptx.checkpoint().name
    theirs = {name: b"the user's\n" for name in (
        "notes.txt", "checkpoint-best/model.bin", "checkpoint-notes.txt", "checkpoint-1/weights", "checkpoint-007/state.ini",
        "checkpoint-3.partial/mine", "metrics.jsonl.bak", "config.ini.partial", "target.working.weights",
        f"{last}/notes.txt")}
    for name in theirs:
        sptx.path("run", name).parent.mkdir(exist_ok=True)
        sptx.path("run", name).write_bytes(theirs[name])
    done = sptx("train", config, OTHER, "--memory.target=file", "--run.checkpoint_every=1 steps", *how)
    after = snapshot(sptx.path("run"))
    # These directories were in the way of checkpoints. They were renamed, and a warning said so.
    for name in (last, "checkpoint-1", "checkpoint-3.partial"):
        theirs = {path.replace(f"{name}/", f"{name}.kept-1/"): data for path, data in theirs.items()}
        assert f"'run/{name}' is none of this program's checkpoints: it is kept as 'run/{name}.kept-1'" in done.stderr
    assert {name: after.get(name) for name in theirs} == theirs
    assert set(os.listdir(sptx.checkpoint())) == {"target.npy", "context.npy", "state.ini"}


def test_a_checkpoint_on_another_disk_is_an_older_run_too(trained):
    """The run's directory was moved, and a link has its old name. A new run that fails changes nothing there; one that succeeds
    keeps the link."""
    last = trained.checkpoint()
    elsewhere = trained.path("elsewhere")
    last.rename(elsewhere)
    last.symlink_to("../elsewhere")
    before, data = snapshot(trained.path("run")), snapshot(elsewhere)
    trained("train", "run.ini", OTHER, "--overwrite", "--optimizer.lr=1e6", "--examples.subsample=0", "--train.epochs=200",
            "--train.batch=64", expect=1)
    assert snapshot(trained.path("run")) == before
    done = trained("train", "run.ini", OTHER, "--overwrite")
    assert f"'run/{last.name}' is a link to a checkpoint: it is kept as 'run/{last.name}.kept-1'" in done.stderr
    assert snapshot(elsewhere) == data and trained.path("run", f"{last.name}.kept-1").is_symlink()
    trained("nearest", "run", "t3w1")


@pytest.mark.parametrize("name", ["config.ini", "metrics.jsonl", "vocab.tsv", "latest"])
@pytest.mark.parametrize("kind", ["file", "directory", "link"])
@pytest.mark.parametrize("how", ["--overwrite", "--overwrite=now"])
def test_names_that_are_taken_are_refused_before_training(trained, name, kind, how):
    path = trained.path("run", name)
    path.unlink()
    if kind == "file":
        path.write_text("the user's\n")
    elif kind == "link":
        path.symlink_to("../mine")
        trained.path("mine").write_text("mine")
    else:
        path.mkdir()
        (path / "notes").write_text("the user's\n")
    before = snapshot(trained.directory)
    said = trained.refuses("train", "run.ini", OTHER, how)
    assert said.startswith(f"'run/{name}' is in the way: ")
    assert snapshot(trained.directory) == before


@pytest.mark.parametrize("name", ["corpus.ids", "corpus.vocab.tsv"])
@pytest.mark.parametrize("command", ["train", "plan"])
def test_the_names_of_the_encoded_corpus(sptx, name, command):
    """Tries a cache directory of its own, and the directory of a run that does not exist yet."""
    config = small(sptx)
    sptx("train", config, "--corpus.cache=elsewhere")
    for cache in ("cache", "run"):
        sptx.path(cache).mkdir(exist_ok=True)
        sptx.path(cache, name).write_text("the user's\n")
        before = snapshot(sptx.directory)
        more = ["--overwrite"] if command == "train" else []
        said = sptx.refuses(command, config, f"--corpus.cache={cache}", *more)
        assert said.startswith(f"'{cache}/{name}' is in the way: ")
        assert snapshot(sptx.directory) == before


def test_a_plan_finds_the_encoded_corpus_by_any_path(finished):
    before = snapshot(finished.directory)
    for path in ODD:
        assert "fits " in finished("plan", "run.ini", f"--run.dir={path}").stdout
        assert snapshot(finished.directory) == before


def test_a_vocabulary_that_was_changed_is_not_the_runs_own(trained):
    path = trained.path("run", "vocab.tsv")
    path.write_text(path.read_text() + "mine\t1\n")
    before = snapshot(trained.directory)
    for how in ("--overwrite", "--overwrite=now", "--resume"):
        assert trained.refuses("train", "run.ini", how).startswith("'run/vocab.tsv' is in the way: ")
    assert snapshot(trained.directory) == before


def test_a_config_of_a_runs_user_is_kept_by_resume(killed):
    """Only the keys of config.ini are compared. Comments that a user has added to it stay."""
    path = killed.path("run", "config.ini")
    text = "# mine\n" + path.read_text().split("\n", 1)[1]
    path.write_text(text)
    killed("train", "run.ini", "--resume")
    assert path.read_text() == text
    assert killed.tables() == killed.tables("whole")


# ---- one process at a time ----

def race(sptx, config, *arguments):
    """Starts two trainers on one run directory. Returns their exit codes, and the error message of the one that was refused."""
    both = [sptx.start("train", config, *arguments) for _ in range(2)]
    said = [end(process)[1].rstrip("\n").split("\n")[-1] for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 1], said
    return said[codes.index(1)]


@pytest.mark.parametrize("pairs", [6, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize("how", [[], ["--overwrite"]])
def test_of_two_trainers_one_goes_on(sptx, pairs, how):
    config = small(sptx)
    sptx("train", config, "--run.dir=wanted")
    for pair in range(pairs):
        if how:  # an older run is there; if the trainers run one after the other, both may replace it
            sptx("train", config, OTHER, f"--run.dir=run{pair}")
            both = [sptx.start("train", config, f"--run.dir=run{pair}", *how) for _ in range(2)]
            said = [end(process)[1] for process in both]
            assert 0 in [process.returncode for process in both], said
            for process, text in zip(both, said):
                assert process.returncode == 0 or "is being trained by process" in text
        else:
            said = race(sptx, config, f"--run.dir=run{pair}")
            assert f"'run{pair}' is being trained by process" in said or f"'run{pair}' holds a" in said
        assert sptx.tables(f"run{pair}") == sptx.tables("wanted")
        assert set(os.listdir(sptx.path(f"run{pair}"))) == set(os.listdir(sptx.path("wanted")))
        shutil.rmtree(sptx.path(f"run{pair}"))


def test_one_of_two_that_fail_harms_the_other_nothing(sptx):
    """One trainer has no corpus and removes the directory that it made, while the other begins."""
    config = small(sptx)
    for _ in range(8):
        wrong, right = sptx.start("train", config, MISSING), sptx.start("train", config)
        said = [end(process)[1] for process in (wrong, right)]
        assert wrong.returncode == 1
        assert right.returncode == 0 or "is being trained by process" in said[1], said
        if right.returncode == 0:
            assert sptx.checkpoint().is_dir()
        else:  # the refused trainer may be the one that made the directory, while the other's lock was in it
            assert not sptx.path("run").exists() or os.listdir(sptx.path("run")) == []
        shutil.rmtree(sptx.path("run"), ignore_errors=True)


def test_who_has_a_run_is_said(whole):
    sptx = whole
    config = sptx.config(train={"epochs": "1000", "batch": "128", "report_seconds": "0.02"})
    process = sptx.start("train", config)
    try:
        assert wait_for(lambda: lines_of_metrics(sptx) >= 2, process)
        for how in ([], ["--resume"], ["--overwrite"], ["--overwrite=now"]):
            said = sptx.refuses("train", config, *how)
            assert said.startswith(f"'run' is being trained by process {process.pid} of {os.uname().nodename}, since 2")
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        end(process)
    assert sptx.path("run", "train.lock").exists()  # the lock file is left, but no process holds the lock
    sptx("train", config, "--overwrite", "--train.epochs=1")
    assert not sptx.path("run", "train.lock").exists()


@AS_ROOT
def test_a_finished_run_is_read_where_nothing_can_be_written(trained_once):
    """Users without the right to write can read a run, several at once, and while a trainer holds its lock."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        sptx = Program(directory)
        shutil.copytree(trained_once.directory, directory, dirs_exist_ok=True)
        shutil.copy(PROGRAM, sptx.path("program"))
        sptx.path("pairs.tsv").write_text("t1w1\tt1w2\t9\nt1w1\tt2w2\t1\n")
        for path in [sptx.directory, *sptx.directory.rglob("*")]:
            path.chmod(0o555 if path.is_dir() or path.name == "program" else 0o444)
        before = snapshot(directory)
        calls = [["nearest", "run", "t1w1"], ["export", "run", "--format=npy", "--out=/dev/null"],
                 ["evaluate", "run", "--pairs=pairs.tsv"], ["plan", "run.ini"]]
        readers = [subprocess.Popen(["./program", *call], cwd=directory, user=65534, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True) for call in calls * 2]
        for reader in readers:
            out, err = reader.communicate(timeout=60 * SLOWER)
            assert reader.returncode == 0, err
        assert snapshot(directory) == before


# ---- one run in the place of another ----

CHECKPOINTS = {"run": {"checkpoint_every": "40 steps", "keep": "100"}}


def states(sptx, run):
    """Returns the tables of each checkpoint of a run."""
    found = {}
    for checkpoint in sptx.path(run).glob("checkpoint-*"):
        found[tuple((checkpoint / name).read_bytes() for name in ("target.npy", "context.npy"))] = checkpoint.name
    return found


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """An older run, and the tables of each checkpoint of the run that is to replace it."""
    sptx = Program(tmp_path_factory.mktemp("two"))
    sptx.path("corpus.txt").write_text("\n".join(sentences(3000)) + "\n")
    sptx.path("other.txt").write_text("\n".join(sentences(3000, seed=5, words=200)) + "\n")
    sptx("train", sptx.config(), "--run.dir=older")
    began = time.monotonic()
    sptx("train", sptx.config("new.ini", corpus={"path": "other.txt"}, **CHECKPOINTS), "--run.dir=newer")
    sptx.seconds = time.monotonic() - began
    return sptx


def both(two_runs, tmp_path):
    shutil.copytree(two_runs.directory, tmp_path / "own")
    sptx = Program(tmp_path / "own")
    shutil.copytree(sptx.path("older"), sptx.path("run"))
    return sptx


def which(sptx):
    """Tells which run a reader finds. Its export must be that of the older run or of a checkpoint of the newer one, with the words
    of the same run."""
    for table in ("target", "context"):
        sptx("export", "run", "--format=word2vec-text", f"--out={table}", f"--table={table}")
    got = sptx.path("target").read_text(), sptx.path("context").read_text()
    for run in ("older", "newer"):
        for checkpoint in sptx.path(run).glob("checkpoint-*"):
            wanted = []
            for table in ("target", "context"):
                name = sptx.path(f"{run}-{checkpoint.name}-{table}")
                if not name.exists():
                    sptx("export", checkpoint, "--format=word2vec-text", f"--out={name.name}", f"--table={table}")
                wanted.append(name.read_text())
            if got == tuple(wanted):
                return run
    raise AssertionError("what is read is neither the older run nor the newer one")


@pytest.mark.parametrize("kills", [5, pytest.param(60, marks=pytest.mark.long)])
def test_a_kill_leaves_one_of_two_runs(two_runs, tmp_path, kills):
    sptx = both(two_runs, tmp_path)
    rng = random.Random(kills)
    replace = ["train", "new.ini", "--run.dir=run", "--overwrite"]
    seen = set()
    for _ in range(kills):
        shutil.rmtree(sptx.path("run"))
        shutil.copytree(sptx.path("older"), sptx.path("run"))
        process = sptx.start(*replace)
        if rng.random() < 0.5:  # at about the time of its first checkpoint
            wait_for(lambda: any(sptx.path("run").glob("replacement/checkpoint-*")), process)
            time.sleep(rng.uniform(0, 0.05))
        else:
            time.sleep(rng.uniform(0, 1.2 * two_runs.seconds))
        process.send_signal(signal.SIGKILL)
        end(process)
        found = which(sptx)
        seen.add(found)
        if found == "newer":
            sptx("train", "new.ini", "--run.dir=run", "--resume")
        else:
            assert "finished already" in sptx("train", "run.ini", "--run.dir=run", "--resume").stderr
        assert which(sptx) == found
        assert sptx.tables() == sptx.tables(found)
        left, wanted = ({name for name in os.listdir(sptx.path(run)) if not name.startswith("corpus.")}
                        for run in ("run", found))
        assert left == wanted
    assert kills < 20 or seen == {"older", "newer"}


@pytest.mark.parametrize("how", ["--overwrite", "--overwrite=now"])
def test_a_run_in_the_place_of_another_is_one_run(trained, how):
    """All lines of metrics are in one file, from before the first checkpoint to after the last, and no file of the older run is
    left."""
    trained("train", "run.ini", OTHER, how, "--run.checkpoint_every=20 steps", "--train.report_seconds=0.01")
    lines = [json.loads(line) for line in trained.path("run", "metrics.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines]
    assert steps[0] == 0 and steps == sorted(set(steps)) and trained.checkpoint().name == f"checkpoint-{steps[-1]}"
    assert "\nseed = 7\n" in trained.path("run", "config.ini").read_text()
    trained("train", "run.ini", OTHER, "--run.dir=alone")
    assert trained.tables() == trained.tables("alone")
    names = {name for name in os.listdir(trained.path("run")) if not name.startswith("checkpoint-")}
    assert names == {"config.ini", "corpus.ids", "corpus.vocab.tsv", "latest", "metrics.jsonl", "vocab.tsv"}


@pytest.mark.parametrize("how", ["--overwrite", "--overwrite=now"])
def test_a_new_run_that_fails_at_once_leaves_the_older_one(trained, how):
    before = snapshot(trained.path("run"))
    trained.refuses("train", "run.ini", how, MISSING)
    trained.refuses("train", "run.ini", how, "--memory.target=gpu", "--device.backend=cpu", "--model.dim=4096",
                    "--model.target_init=uniform 1e39 1e39")
    assert snapshot(trained.path("run")) == before


def test_the_older_run_stays_until_the_new_one_has_a_checkpoint(trained):
    before = {name: data for name, data in snapshot(trained.path("run")).items() if not name.startswith("corpus.")}
    diverges = ["--optimizer.lr=1e6", "--examples.subsample=0", "--train.epochs=200", "--train.batch=64"]
    done = trained("train", "run.ini", "--overwrite", *diverges, expect=1)
    assert "diverged; " in done.stderr and "no checkpoint had been written" in done.stderr
    after = {name: data for name, data in snapshot(trained.path("run")).items() if not name.startswith("corpus.")}
    assert after == before
    trained("train", "run.ini", "--overwrite=now", *diverges, expect=1)
    assert not trained.path("run", "latest").exists()


def test_overwrite_takes_one_value(trained):
    said = trained.refuses("train", "run.ini", "--overwrite=later", code=2)
    assert said == ("train: --overwrite = 'later' is not now: --overwrite replaces an older run when the new one has a "
                    "checkpoint, --overwrite=now at once")


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a file system of this many KiB in the test's directory."""
    mounted = []

    def mount(kib):
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", place], capture_output=True)
        if done.returncode:
            pytest.skip("nothing can be mounted here")
        mounted.append(place)
        return place
    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", place])


@AS_ROOT
def test_a_disk_without_space_for_both(sptx, small_disk):
    disk = small_disk(4096)
    config = small(sptx, model={"dim": "1000"}, run={"dir": disk / "run"})  # 300 rows x 1,000 columns: 2.4 MB a checkpoint
    sptx("train", config)
    before = {name: data for name, data in snapshot(disk / "run").items()}
    said = sptx.refuses("train", config, OTHER, "--overwrite")
    assert "beside the older run" in said and "--overwrite=now removes the older run first" in said
    assert snapshot(disk / "run") == before
    sptx("train", config, OTHER, "--overwrite=now")
    after = snapshot(disk / "run")
    assert set(after) == set(before) and after != before
    said = sptx.refuses("train", config, "--overwrite=now", "--model.dim=2000")
    assert "too little even without the older run" in said
    assert snapshot(disk / "run") == after
    said = sptx.refuses("train", config, f"--run.dir={disk}/other")
    assert "a checkpoint of this run takes" in said and not (disk / "other" / "latest").exists()


@AS_ROOT
def test_a_disk_that_fills_up_while_the_older_run_is_there(sptx, small_disk):
    disk = small_disk(8192)
    config = small(sptx, model={"dim": "1000"}, run={"dir": disk / "run"})
    sptx("train", config)
    before = {name: data for name, data in snapshot(disk / "run").items() if not name.startswith("corpus.")}
    process = sptx.start("train", config, OTHER, "--overwrite", "--train.epochs=20000", "--run.checkpoint_every=3s", "--run.retry_seconds=1")
    assert wait_for(lambda: (disk / "run" / "replacement" / "metrics.jsonl").exists(), process)
    filler = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT)  # a file of another user, which fills the disk
    with pytest.raises(OSError):
        while True:
            os.write(filler, b"x" * 4096)
    os.close(filler)
    process.send_signal(signal.SIGINT)
    said = end(process)[1].rstrip("\n").split("\n")[-1]
    assert process.returncode == 1 and "No space left on device" in said
    os.remove(disk / "filler")
    assert {name: data for name, data in snapshot(disk / "run").items() if not name.startswith("corpus.")} == before
    sptx("train", config, OTHER, "--overwrite")


@pytest.mark.parametrize("command", [["plan"], ["bench", "train"]])
def test_who_only_looks_writes_into_no_directory_of_the_users(sptx, command):
    config = sptx.config()
    sptx.path("run").mkdir()
    sptx.path("run", "notes").write_text("the user's")
    said = sptx.refuses(*command, config)
    assert said == "'run' is no run directory and holds 'notes': a run wants a directory of its own (run.dir = ...)"
    assert os.listdir(sptx.path("run")) == ["notes"]


# ---- what happens to the directory while a run trains in it ----

def train_until(whole, happens):
    """Trains for some seconds, and calls happens() while the run is stopped in the middle. Returns the exit code and the error
    message."""
    process = whole.start("train", whole.config(**STOP_KEYS))
    assert wait_for(lambda: lines_of_metrics(whole) >= 2 and whole.path("run", "latest").exists(), process)
    process.send_signal(signal.SIGSTOP)
    happens()
    process.send_signal(signal.SIGCONT)
    out, err = end(process)
    assert out == ""
    return process.returncode, err


def test_a_directory_that_is_moved_is_written_to_where_it_is(whole):
    """In the meantime the old path belongs to another run."""
    def move():
        whole.path("run").rename(whole.path("moved"))
        whole("train", "whole.ini", OTHER, "--run.dir=run")
    code, err = train_until(whole, move)
    assert code == 0 and re.search(r"warning: 'run' is '\S+/moved' now: the run goes on there\n", err)
    assert whole.tables("moved") == whole.tables("whole")
    assert whole.checkpoint("run").is_dir() and whole.tables("run") != whole.tables("whole")
    whole("nearest", "run", "t3w1")
    whole("nearest", "moved", "t3w1")
    for run in ("run", "moved"):
        assert not [name for name in os.listdir(whole.path(run)) if "lock" in name or "partial" in name]


@pytest.mark.parametrize("taken", [False, True])
def test_a_directory_that_is_removed_ends_the_run(whole, taken):
    def remove():
        shutil.rmtree(whole.path("run"))
        if taken:
            whole("train", "whole.ini", OTHER, "--run.dir=run")
    code, err = train_until(whole, remove)
    assert code == 1
    assert err.endswith("sptx-w2v: 'run' was removed while a run trained in it: nothing of it can be written there\n")
    assert whole.path("run").exists() == taken
    if taken:
        whole("nearest", "run", "t3w1")


def test_a_lock_that_is_removed_is_taken_again(whole):
    code, err = train_until(whole, lambda: whole.path("run", "train.lock").unlink())
    assert code == 0, err
    assert whole.tables() == whole.tables("whole") and not whole.path("run", "train.lock").exists()
