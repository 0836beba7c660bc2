"""The scenarios that are disturbed: commands on a small corpus, the directory in which each begins, and what must be true
afterwards."""
import functools
import gzip
import os
import pathlib
import random
import re
import shutil
import tempfile

from runs import call, checkpoints, digest, good, steps_of, tree

KEYS = """[corpus]
path = {path}
min_count = 1
{corpus}
[examples]
window = 2
subsample = 0
[negatives]
count = 2
[model]
dim = 8
[optimizer]
rule = adagrad
[train]
update = batch
batch = 64
epochs = 2
[device]
backend = cpu
threads = 2
[memory]
{memory}
[run]
dir = {dir}
checkpoint_every = 5 steps
keep = 2
retry_seconds = 0
"""
CONFIGS = {
    "run.ini": {"path": "corpus.txt"},
    "old.ini": {"path": "old.txt"},
    # Pairs in compressed files of a directory; an encoded corpus in a cache that several runs read; tables in files.
    "packed.ini": {"path": "packed", "corpus": "format = pairs\ncache = cache", "memory": "target = file\ntarget_state = file"},
    # An encoded corpus as it comes.
    "ids.ini": {"path": "made.ids", "corpus": "format = lists", "dir": "run"},
    # A run that begins from another run, in `base`, and keeps its rows.
    "grow.ini": {"path": "corpus.txt", "memory": "target = file\n[train]\nfrom = base\nfreeze = known"},
    "triples.ini": {"path": "triples.tsv", "corpus": "format = triples"},
}
# Files of the user, in the directories in which the program works; none of them may change.
THEIRS = {"notes.txt": b"mine\n", "out.partial": b"not yours\n"}
THEIRS_IN_RUN = {"run/notes.txt": b"mine too\n", "run/checkpoint-best/notes.txt": b"the best\n",
                 "run/checkpoint-notes.txt": b"about them\n"}


def pack_zst(data):
    """A Zstandard frame of one raw block: no compressor needed (RFC 8878; 256 to 65791 bytes)."""
    return b"\x28\xb5\x2f\xfd\x60" + (len(data) - 256).to_bytes(2, "little") + (1 | len(data) << 3).to_bytes(3, "little") + data


def write_files(directory, files):
    for path, data in files.items():
        os.makedirs(os.path.dirname(os.path.join(directory, path)), exist_ok=True)
        with open(os.path.join(directory, path), "wb") as file:
            file.write(data)


def inputs():
    """Returns {path: bytes} of the input files: corpora, configs, questions."""
    rng = random.Random(1)

    def lines(count, words, width):
        return "".join(" ".join(f"w{int(words * rng.random() ** 2)}" for _ in range(width)) + "\n" for _ in range(count)).encode()

    pairs = "".join(f"u{list},i{int(30 * rng.random() ** 2)},{rng.randrange(1, 6)}\n" for list in range(60) for _ in range(6))
    files = {name: KEYS.format(**{"corpus": "", "memory": "", "dir": "run", **values}).encode() for name, values in CONFIGS.items()}
    files.update({"corpus.txt": lines(60, 40, 8), "old.txt": lines(30, 25, 8),
                  "packed/a.gz": gzip.compress(pairs.encode(), mtime=0), "packed/b.zst": pack_zst(pairs.encode()),
                  "triples.tsv": b"".join(b"w%d\tr%d\tw%d\n" % (i % 17, i % 3, (i * i + i % 3) % 17) for i in range(120)),
                  "lists.txt": b"".join(b"l%d w0 w1 w2 w%d\n" % (i, i) for i in range(3, 9)),
                  "held.txt": b"".join(b"l%d w9 w%d\n" % (i, i + 7) for i in range(3, 9)),
                  "pairs.txt": b"w0 w1 3\nw2 w3 2\nw4 w5 1\n", "analogies.txt": b": all\nw0 w1 w2 w3\nw1 w2 w3 w4\n",
                  "groups.tsv": b"".join(b"w%d\tg%d\n" % (i, i % 3) for i in range(20)),
                  "titles.tsv": b"".join(b"w%d\tWord %d\n" % (i, i) for i in range(20)), **THEIRS})
    return files


class Run:
    """The result of an undisturbed run of a config."""

    def __init__(self, folder, config):
        work = os.path.join(folder, "whole-" + config)
        write_files(work, inputs())
        good(work, "generate", "books", "--rows=60", "--lists=80", "--out=made.ids")
        if config == "grow.ini":
            good(work, "train", "old.ini", "--run.dir=base", "--model.context_init=word2vec")
        self.begin = tree(work)
        good(work, "train", config, "--run.keep=1000")
        self.steps = checkpoints(tree(work))
        self.exports = {step: self.export(work, f"run/checkpoint-{step}") for step in self.steps}
        shutil.rmtree(os.path.join(work, "run"))
        good(work, "train", config)
        self.finished = tree(work)
        self.last = max(self.steps)

    @staticmethod
    def export(work, run):
        """Returns the vectors as text, or None if there is no checkpoint that can be exported."""
        code, _, _ = call(work, ["export", run, "--format=word2vec-text", "--out=probe"])
        if code:
            return None
        path = os.path.join(work, "probe")
        with open(path, "rb") as file:
            data = file.read()
        os.unlink(path)
        return data


class Scenario:
    def __init__(self, folder, name, begin, arguments):
        self.folder, self.name, self.begin, self.arguments = folder, name, begin, arguments
        self.before = tree(begin)

    def prepare(self, work):
        shutil.copytree(self.begin, work)

    @functools.lru_cache(None)
    def counts(self):
        """Returns {kind: number of calls} of an undisturbed run."""
        with tempfile.TemporaryDirectory(dir=self.folder) as directory:
            work, log = os.path.join(directory, "work"), os.path.join(directory, "log")
            self.prepare(work)
            good(work, *self.arguments, log=log)
            return {line.split()[1]: int(line.split()[2]) for line in open(log)}

    def changed(self, files, but=()):
        """Returns a file that has changed since the beginning, or None. but: beginnings of paths that may change."""
        for path, data in self.before.items():
            if not path.startswith(tuple(but)) or path in THEIRS_IN_RUN:
                if files.get(path) != data:
                    return f"'{path}' is {'changed' if path in files else 'gone'}"
        return None


class Reads(Scenario):
    """A command that only reads a run, and prints its result or writes it to `outputs`."""

    def __init__(self, folder, name, begin, arguments, outputs=()):
        super().__init__(folder, name, begin, arguments)
        self.outputs = outputs
        with tempfile.TemporaryDirectory(dir=folder) as directory:
            work = os.path.join(directory, "work")
            self.prepare(work)
            self.printed = good(work, *arguments)
            self.after = tree(work)

    def judge(self, work, code, out, err):
        files = tree(work)
        wrong = self.changed(files, self.outputs)
        if wrong:
            return wrong
        if code == 0:
            if out != self.printed:
                return "prints something else"
            return None if files == self.after else self.other(files, self.after)
        for path in self.outputs:
            if files.get(path) not in (self.before.get(path), self.after.get(path)):
                return f"'{path}' is neither what it was nor what it should be"
        if code == 1 and files != self.before and b"cannot remove" not in err:
            return self.other(files, {**self.before, **{path: files[path] for path in self.outputs if path in files}})
        if call(work, self.arguments)[1] != self.printed:
            return "the next run prints something else"
        files = tree(work)
        return None if all(files.get(path) == self.after[path] for path in self.outputs) else "the next run writes something else"

    @staticmethod
    def other(files, wanted):
        paths = sorted(path for path in files.keys() | wanted.keys() if files.get(path) != wanted.get(path))
        return "leaves something else: " + " ".join(paths) if paths else None


class Trains(Scenario):
    """A training run whose result is `new`. old: the finished run that was in the directory before, if there was one."""

    def __init__(self, folder, name, begin, arguments, new, old=None):
        super().__init__(folder, name, begin, arguments)
        self.new, self.old = new, old
        self.recovered = {}  # {digest of a directory: what was wrong with resuming from it}

    def judge(self, work, code, out, err):
        files = tree(work)
        passed_over = b" is not written: " in err  # a checkpoint in the middle, after a warning: an older one is kept in its place
        return self.wrong_now(files, code, err, passed_over) or self.wrong_later(work, files, passed_over)

    def wrong_now(self, files, code, err, passed_over):
        wrong = self.changed(files, ("run/", "cache/"))
        if wrong:
            return wrong
        for step, tables in checkpoints(files).items():
            if tables not in [run.steps.get(step) for run in (self.new, self.old) if run]:
                return f"checkpoint-{step} is not one"
        for step, tables in checkpoints(files, "run/replacement").items():
            if tables != self.new.steps.get(step):
                return f"checkpoint-{step} of the replacement is not one"
        if "run/metrics.jsonl" in files and steps_of(files["run/metrics.jsonl"]) is None:
            return "metrics.jsonl has a broken line"
        return self.not_finished(files, b"warning: " in err, passed_over) if code == 0 else None

    def not_finished(self, files, more_is_fine, passed_over):
        """Returns how the directory differs from a finished run, or None. more_is_fine: something could not be removed, and a
        warning said so."""
        if checkpoints(files).get(self.new.last) != self.new.steps[self.new.last]:
            return "ends with other tables"
        if files.get("run/latest") != self.new.finished["run/latest"]:
            return "latest names another checkpoint"
        more = {path for path in files.keys() - self.new.finished.keys() - self.before.keys() if not path.endswith(".lock")}
        less = self.new.finished.keys() - files.keys() - {"run/metrics.jsonl"}
        if passed_over:
            more, less = ({path for path in paths if not path.startswith("run/checkpoint-")} for paths in (more, less))
        if less or (more and not more_is_fine):
            return "leaves other files: " + " ".join([*("+" + path for path in sorted(more)), *("-" + path for path in sorted(less))])
        return None

    def wrong_later(self, work, files, passed_over):
        state = digest(files)
        if state not in self.recovered:
            self.recovered[state] = self.go_on(work, files, passed_over)
        return self.recovered[state]

    def go_on(self, work, files, passed_over):
        """Returns what is wrong with the files that are left: they must be valid, and a resumed run must end with the same bytes.
        """
        any_there = checkpoints(files) or checkpoints(files, "run/replacement")
        there = Run.export(work, "run") if any_there else None
        if any_there and there is None:
            return "no checkpoint can be exported"
        if there is None and checkpoints(self.before):
            return "the checkpoints are gone"
        ours = there is None or there in self.new.exports.values()
        if not ours and there not in (self.old.exports.values() if self.old else ()):
            return "what is exported is of no run"
        if not ours and there != self.old.exports[self.old.last]:
            return "what is exported is an older checkpoint"
        how = "--resume" if ours else "--overwrite"
        code, _, err = call(work, ["train", self.arguments[1], how])
        if code:
            return f"{how} fails: {err.decode(errors='replace').splitlines()[-1:]}"
        files = tree(work)
        wrong = self.changed(files, ("run/", "cache/")) or self.not_finished(files, False, passed_over)
        return f"after {how}: {wrong}" if wrong else None


class Scenarios:
    """Returns every scenario by its name."""

    def __init__(self, folder):
        self.folder = folder
        self.every = {}
        text, old, packed, ids, grown, triples = (Run(folder, config) for config in CONFIGS)
        nothing = self.directory("nothing", text.begin)
        finished = self.directory("finished", {**text.finished, **THEIRS_IN_RUN})
        older = self.directory("older", {**old.finished, **THEIRS_IN_RUN})
        killed = self.killed(nothing)
        cached = self.directory("cached", {path: data for path, data in packed.finished.items() if not path.startswith("run/")})
        exported = self.directory("exported", {**text.finished, **THEIRS_IN_RUN, "out": b"older\n", "out.tsv": b"older\n"})
        self.trains("train", nothing, ["train", "run.ini"], text)
        self.trains("resume", killed, ["train", "run.ini", "--resume"], text)
        self.trains("overwrite", older, ["train", "run.ini", "--overwrite"], text, old)
        self.trains("packed", nothing, ["train", "packed.ini"], packed)
        self.trains("cached", cached, ["train", "packed.ini"], packed)
        self.trains("ids", nothing, ["train", "ids.ini"], ids)
        self.trains("grow", self.directory("base", grown.begin), ["train", "grow.ini"], grown)
        self.reads("export", exported, ["export", "run", "--format=word2vec-text", "--out=out"], ["out"])
        self.reads("export-two", exported, ["export", "run", "--format=projector", "--out=out.tsv"],
                   ["out.tsv", "out.tsv.metadata.tsv"])
        self.reads("export-npy", exported, ["export", "run", "--format=npy", "--table=normsum", "--out=out"], ["out"])
        self.reads("report", exported, ["report", "run", "--out=out", "--titles=titles.tsv", "--evaluation=notes.txt",
                                        "--top=20"], ["out"])
        self.reads("nearest", finished, ["nearest", "run", "w0", "w1"])
        self.reads("analogy", finished, ["analogy", "run", "w0", "w1", "w2"])
        self.reads("evaluate", finished, ["evaluate", "run", "--pairs=pairs.txt", "--analogies=analogies.txt",
                                          "--train=lists.txt", "--held-out=held.txt", "--groups=groups.tsv"])
        self.reads("recommend", finished, ["recommend", "run", "--lists=lists.txt", "--titles=titles.tsv"])
        self.reads("recommend-json", finished, ["recommend", "run", "--items=w0,w1,none", "--json", "--score=context"])
        self.trains("triples", nothing, ["train", "triples.ini"], triples)
        known = self.directory("known", {**triples.finished, **THEIRS_IN_RUN})
        self.reads("evaluate-triples", known, ["evaluate", "run", "--triples=triples.tsv", "--known=triples.tsv"])
        self.reads("score", known, ["score", "run", "--triples=triples.tsv", "--validation=triples.tsv"])
        self.reads("recommend-triples", known, ["recommend", "run", "--head=w1", "--relation=r1"])
        self.reads("generate", nothing, ["generate", "words", "--rows=50", "--lists=40", "--out=out"], ["out", "out.groups.tsv"])
        self.reads("generate-ids", nothing, ["generate", "books", "--rows=50", "--lists=40", "--out=out.ids"],
                   ["out.ids", "out.ids.vocab.tsv", "out.ids.groups.tsv"])
        self.reads("config", nothing, ["config", "run.ini"])

    def directory(self, name, files):
        path = os.path.join(self.folder, name)
        write_files(path, {path: data for path, data in files.items() if not path.endswith("/")})
        return path

    def killed(self, nothing):
        """A run that was killed when it had two checkpoints."""
        path = os.path.join(self.folder, "killed")
        for number in range(1, 100):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(nothing, path)
            call(path, ["train", "run.ini"], kind="rename", number=number, error="KILL")
            if (pathlib.Path(path) / "run/checkpoint-10").exists():
                write_files(path, THEIRS_IN_RUN)
                return path
        raise SystemExit("faults: the run cannot be killed behind its second checkpoint\n0 passed, 1 failed")

    def trains(self, name, *arguments):
        self.every[name] = Trains(self.folder, name, *arguments)

    def reads(self, name, *arguments):
        self.every[name] = Reads(self.folder, name, *arguments)
