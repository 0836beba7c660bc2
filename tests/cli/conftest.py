"""What the command-line tests share: the program, small corpora, runs and their checkpoints.

The program is build/sptx-w2v, or $SPTX_BIN; it trains on $SPTX_BACKEND, or the CPU. Every test works in a fresh directory.
"""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SPTX_BIN") or str(ROOT / os.environ.get("BUILD", "build") / "sptx-w2v")
FAULTS = ROOT / os.environ.get("BUILD", "build") / "faults.so"  # library for LD_PRELOAD that makes system calls fail (tests/faults)

# All time limits are multiplied by this. scripts/check measures how much slower this machine is than two free cores.
SLOWER = int(os.environ.get("SPTX_SLOWER", "1"))

# A small run in exact mode, so that its result does not depend on the number of threads.
KEYS = {
    "corpus": {"path": "corpus.txt", "min_count": "1"},
    "examples": {"window": "3"},
    "model": {"dim": "16"},
    "train": {"update": "batch", "batch": "256", "epochs": "2", "report_seconds": "0.05"},
    "device": {"backend": os.environ.get("SPTX_BACKEND", "cpu"), "threads": "2"},
    "run": {"dir": "run"},
}


def warned(done):
    """Returns stderr without the lines that name the columns of a file."""
    return "".join(line for line in done.stderr.splitlines(True) if not line.startswith("columns    "))


class Program:
    """Runs the program in one directory. Its output is returned as text; bytes that are no UTF-8 are kept."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)

    def __call__(self, *arguments, expect=0, **options):
        options["timeout"] = SLOWER * options.get("timeout", 120)
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.directory, stdin=subprocess.DEVNULL,
                              capture_output=True, encoding="utf-8", errors="surrogateescape", **options)
        if expect is not None:
            assert done.returncode == expect, f"exit {done.returncode}, wanted {expect}\n{done.stdout[-1000:]}{done.stderr[-3000:]}"
        return done

    def refuses(self, *arguments, code=1, **options):
        """Runs a command that must fail. Checks that stdout is empty, and returns the error message, the last line of stderr."""
        done = self(*arguments, expect=code, **options)
        assert done.stdout == ""
        last = done.stderr.rstrip("\n").split("\n")[-1]
        assert last.startswith("sptx-w2v: "), done.stderr
        return last[len("sptx-w2v: "):]

    def start(self, *arguments, **options):
        return subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.directory, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                                errors="surrogateescape", **options)

    def path(self, *parts):
        return self.directory.joinpath(*parts)

    def config(self, name="run.ini", **sections):
        """Writes a config file with KEYS, of which `sections` change or add some: config(train={"epochs": 3})."""
        lines = []
        for section in list(KEYS) + [section for section in sections if section not in KEYS]:
            lines.append(f"[{section}]")
            keys = {**KEYS.get(section, {}), **sections.get(section, {})}
            lines += [f"{key} = {value}" for key, value in keys.items() if value is not None]
        self.path(name).write_text("\n".join(lines) + "\n")
        return name

    def checkpoint(self, run="run"):
        """Returns the directory of the newest checkpoint, which RUN/latest names."""
        return self.path(run, self.path(run, "latest").read_text().strip())

    def tables(self, run="run"):
        """Returns the bytes of both tables of the newest checkpoint."""
        return tuple((self.checkpoint(run) / name).read_bytes() for name in ("target.npy", "context.npy"))


def sentences(count, seed=1, words=300, length=12):
    """Makes sentences of topics: all words of a sentence belong to one topic; word w of topic k is tKwW. The same arguments make
    the same text."""
    rng = random.Random(seed)
    topics = 10
    for _ in range(count):
        topic = rng.randrange(topics)
        yield " ".join(f"t{topic}w{int(words / topics * rng.random() ** 2)}" for _ in range(length))


def wait_for(condition, process, seconds=60):
    """Waits until the condition holds. Returns False if the process has ended or the time is up before that."""
    end = time.monotonic() + seconds * SLOWER
    while time.monotonic() < end:
        if condition():
            return True
        if process.poll() is not None:
            return bool(condition())
        time.sleep(0.005)
    return False


def end(process):
    """Waits for a process that was told to stop, and kills it if it does not."""
    try:
        return process.communicate(timeout=60 * SLOWER)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise


def stop(process, condition, how):
    """Sends a signal to a process when the condition holds, and waits for its end."""
    assert wait_for(condition, process)
    process.send_signal(how)
    end(process)


def only_keys_of_walks_change_bytes(program, key):
    """Trains as `run` was trained: the bytes are the same with other numbers of threads and batches in flight, and differ with `key`."""
    wanted = program.tables()
    for options in (["--device.threads=1"], ["--device.threads=5", "--memory.depth=1"]):
        program("train", "run/config.ini", "--run.dir=other", "--overwrite", *options)
        assert program.tables("other") == wanted
    program("train", "run/config.ini", "--run.dir=other", "--overwrite", key)
    assert program.tables("other") != wanted


def files_of_git(*options):
    """Returns the files that `git ls-files` lists under ROOT; None if ROOT is not a clone (but a tarball) or git is missing."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        return None
    listed = subprocess.run(["git", "ls-files", "-z", *options], cwd=ROOT, capture_output=True, text=True)
    return None if listed.returncode else [name for name in listed.stdout.split("\0") if name]


def clone(directory):
    """Copies the project's source files, with uncommitted changes, but no build outputs."""
    names = files_of_git("--cached", "--others", "--exclude-standard")
    if names is None:
        tops = [path for path in ROOT.iterdir() if path.name not in ("build", "runs", "env")]
        names = [path.relative_to(ROOT) for top in tops for path in (top, *top.rglob("*")) if path.parent.name != "__pycache__"]
    for name in names:
        if (ROOT / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, directory / name)
    return directory


def with_corpus(directory, count=2000):
    program = Program(directory)
    program.path("corpus.txt").write_text("\n".join(sentences(count)) + "\n")
    return program


@pytest.fixture
def sptx(tmp_path):
    return with_corpus(tmp_path)


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory):
    """One finished run, shared by tests that only read it; `trained` is a copy of it."""
    program = with_corpus(tmp_path_factory.mktemp("trained"))
    program("train", program.config())
    return program


@pytest.fixture
def trained(trained_once, tmp_path):
    """A finished run that the test may change."""
    shutil.copytree(trained_once.directory, tmp_path / "own")
    return Program(tmp_path / "own")


# A run of one or two seconds with about five checkpoints, which tests stop in the middle.
STOP_KEYS = {"negatives": {"per": "pair"}, "train": {"epochs": "8", "batch": "128", "report_seconds": "0.02"},
             "run": {"checkpoint_every": "1000 steps"}}
STOP_SENTENCES = 10000


def lines_of_metrics(sptx, run="run"):
    path = sptx.path(run, "metrics.jsonl")
    return path.read_text().count("\n") if path.exists() else 0


def checkpoints(sptx, run="run"):
    names = os.listdir(sptx.path(run)) if sptx.path(run).exists() else []
    return [name for name in names if re.fullmatch(r"checkpoint-\d+", name)]


@pytest.fixture(scope="session")
def whole_once(tmp_path_factory):
    program = with_corpus(tmp_path_factory.mktemp("whole"), STOP_SENTENCES)
    began = time.monotonic()
    program("train", program.config("whole.ini", **STOP_KEYS), "--run.dir=whole")
    program.seconds = time.monotonic() - began
    return program


@pytest.fixture(scope="session")
def killed_once(whole_once, tmp_path_factory):
    """A whole run, and the same run killed in the middle, when it had two checkpoints."""
    program = Program(tmp_path_factory.mktemp("killed") / "own")
    shutil.copytree(whole_once.directory, program.directory)
    process = program.start("train", program.config(**STOP_KEYS))
    assert wait_for(lambda: "checkpoint-4000" in checkpoints(program) and program.path("run", "latest").exists(), process)
    process.send_signal(signal.SIGKILL)
    end(process)
    assert len(checkpoints(program)) >= 2 and program.tables() != program.tables("whole")
    return program


@pytest.fixture
def whole(whole_once, tmp_path):
    """A finished run in `whole`, with its corpus and the seconds that it took; an interrupted run must end like it."""
    shutil.copytree(whole_once.directory, tmp_path / "own")
    program = Program(tmp_path / "own")
    program.seconds = whole_once.seconds
    return program


@pytest.fixture
def killed(killed_once, tmp_path):
    shutil.copytree(killed_once.directory, tmp_path / "own")
    return Program(tmp_path / "own")

