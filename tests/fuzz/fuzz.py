#!/usr/bin/env python3
"""Feeds the program files that no one would write: it may refuse them, it may not crash, hang, or be silent about it.

  tests/fuzz/fuzz.py [--rounds=150] [--seed=1] [--only=KIND]      the program: build/sptx-w2v, or $SPTX_BIN

Each round takes one kind of input (config, corpus, packed corpus, vocabulary, table, checkpoint), harms good bytes by a
few random edits, runs the command that reads it, and holds the exit code to 0, 1 or 2, with a sentence for 1 and 2. The
input of a failing round is kept and named. Python's standard library only; closes with `N passed, N failed`.
"""
import argparse
import gzip
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SPTX_BIN") or str(ROOT / os.environ.get("BUILD", "build") / "sptx-w2v")

CONFIG = b"""[corpus]
path = corpus.txt
format = text
min_count = 1
[examples]
window = 2
subsample = 1e-3
[negatives]
count = 3
law = unigram
[model]
dim = 4
target_init = uniform -0.1 0.1
[optimizer]
rule = adagrad
lr = 0.05
[train]
epochs = 1
batch = 8
[device]
backend = cpu
threads = 2
[run]
dir = run
checkpoint_every = 5 steps
"""
CORPUS = b"the cat sat on the mat\na dog and a cat\n\nthe red ball, 5\r\nuser9,book4,3.5\n" * 4
TOKENS = [b"", b"\x00", b"\n", b"\r\n", b" ", b"\t", b"=", b"[", b"]", b"\"", b"%s%n", b"-1", b"0", b"1e999", b"nan",
          b"18446744073709551616", b"4294967296", b"\xff\xfe", b"\xf0\x9f", b"A" * 5000, b"[" * 300, b"'", b"(", b")", b","]
SECONDS = 60 * int(os.environ.get("SPTX_SLOWER", "1"))  # times what scripts/check measures


def harm(data, rng):
    """Makes a few random edits: inverts a bit, sets a byte, cuts off the end, repeats or removes a part, inserts or overwrites with a dangerous
    token."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        length = min(rng.choice((1, 2, 4, 8, 64)), len(data) - at)
        edit = rng.randrange(7)
        if edit == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif edit == 1 and at < len(data):
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif edit == 2:
            del data[at:]
        elif edit == 3:
            data[at:at] = data[at:at + length]
        elif edit == 4:
            del data[at:at + length]
        else:
            data[at:at + (length if edit == 5 else 0)] = rng.choice(TOKENS)
    return bytes(data)


def pack_zst(data):
    """Makes a Zstandard frame of one raw block, without a compressor (RFC 8878; 256 to 65791 bytes)."""
    header = b"\x28\xb5\x2f\xfd\x60" + (len(data) - 256).to_bytes(2, "little")
    return header + (1 | len(data) << 3).to_bytes(3, "little") + data


def run(directory, *arguments):
    """Runs one command. Returns (what is wrong, or None; the command's output)."""
    try:
        done = subprocess.run([PROGRAM, *arguments], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"still running after {SECONDS} s", b""
    said = done.stderr
    if done.returncode not in (0, 1, 2):
        return f"exit code {done.returncode}", said
    if b"Sanitizer" in said or b"runtime error:" in said:
        return "a sanitizer spoke", said
    if done.returncode and not said.rstrip(b"\n").split(b"\n")[-1].startswith(b"sptx-w2v: "):
        return f"exit code {done.returncode} without a sentence", said
    return None, said


def fuzz_config(work, rng):
    (work / "run.ini").write_bytes(harm(CONFIG, rng))
    wrong, said = run(work, "config", "run.ini")
    # A changed number may ask for a giant run, so only small runs are trained.
    if wrong is None and rng.random() < 0.3:
        small = ("--model.dim=4", "--train.epochs=1", "--train.steps=3", "--train.batch=8", "--negatives.count=3",
                 "--examples.window=2", "--device.backend=cpu", "--device.threads=2", "--run.dir=run", "--corpus.cache=run")
        wrong, said = run(work, "train", "run.ini", "--overwrite", *small)
    return wrong, said


def fuzz_corpus(work, rng):
    (work / "corpus.txt").write_bytes(harm(CORPUS, rng))
    kind = rng.choice(("text", "lists", "adjacency", "pairs"))
    return run(work, "train", "good.ini", "--overwrite", f"--corpus.format={kind}",
               f"--corpus.order={rng.choice(('frequency', 'first-seen', 'given'))}")


def fuzz_packed(work, rng):
    (work / "corpus.gz").write_bytes(harm(gzip.compress(CORPUS * 20), rng))
    (work / "corpus.zst").write_bytes(harm(pack_zst(CORPUS), rng))
    return run(work, "train", "good.ini", "--overwrite", "--corpus.path=" + rng.choice(("corpus.gz", "corpus.zst")))


def fuzz_vocabulary(work, rng):
    (work / "words.tsv").write_bytes(harm((work / "trained" / "vocab.tsv").read_bytes(), rng))
    return run(work, "train", "good.ini", "--overwrite", "--corpus.vocab=words.tsv")


def fuzz_stream(work, rng):
    shutil.copytree(work / "trained", work / "run")
    plain = {"config.ini", "vocab.tsv", "metrics.jsonl", "latest"}
    for path in (work / "run").iterdir():
        if path.is_file() and path.name not in plain:
            path.write_bytes(harm(path.read_bytes(), rng))
    return run(work, "train", "good.ini", "--overwrite")


def fuzz_model(work, rng):
    shutil.copytree(work / "trained", work / "run")
    checkpoint = work / "run" / (work / "run" / "latest").read_text().strip()
    path = rng.choice([work / "run" / "vocab.tsv", work / "run" / "latest", work / "run" / "config.ini",
                       checkpoint / "target.npy", checkpoint / "context.npy", checkpoint / "state.ini"])
    data = path.read_bytes()
    # Most of a file's dangerous bytes are at its beginning, so mostly those are changed.
    path.write_bytes(harm(data[:128], rng) + data[128:] if rng.random() < 0.7 else harm(data, rng))
    command = rng.choice((("nearest", "run", "the"), ("analogy", "run", "the", "cat", "a"),
                          ("export", "run", "--format=word2vec-text", "--out=out"),
                          ("train", "good.ini", "--resume"), ("evaluate", "run", "--pairs=pairs.txt")))
    return run(work, *command)


def fuzz_questions(work, rng):
    shutil.copytree(work / "trained", work / "run")
    (work / "pairs.txt").write_bytes(harm(b"the cat 3.5\na\tdog\t2\nred ball 9\n" * 3, rng))
    (work / "analogies.txt").write_bytes(harm(b": people\nthe cat a dog\ncat dog red ball\n" * 3, rng))
    (work / "lists.txt").write_bytes(harm(b"u1 the cat\nu2 red ball dog\n", rng))
    (work / "titles.tsv").write_bytes(harm(b"the\tThe one\ncat\tA cat, say\n", rng))
    score = f"--score={rng.choice(('target', 'context', 'normsum'))}"
    return run(work, *rng.choice((("evaluate", "run", "--pairs=pairs.txt"), ("evaluate", "run", "--analogies=analogies.txt"),
                                  ("evaluate", "run", "--train=lists.txt", "--held-out=lists.txt", score),
                                  ("recommend", "run", "--lists=lists.txt", "--titles=titles.tsv", "--json", score),
                                  ("recommend", "run", "--lists=lists.txt", "--corpus.format=pairs"))))


KINDS = [fuzz_config, fuzz_corpus, fuzz_packed, fuzz_vocabulary, fuzz_stream, fuzz_model, fuzz_questions]


def prepare(base):
    """Makes the correct files from which every round begins, and trains one run."""
    (base / "good.ini").write_bytes(CONFIG)
    (base / "corpus.txt").write_bytes(CORPUS)
    (base / "pairs.txt").write_bytes(b"the cat 3\na dog 4\nred ball 5\n")
    wrong, said = run(base, "train", "good.ini")
    if wrong or not (base / "run" / "latest").exists():
        sys.exit(f"fuzz: the good run failed: {wrong or said.decode(errors='replace')}\n0 passed, 1 failed")
    (base / "run").rename(base / "trained")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="one kind: " + " ".join(kind.__name__[5:] for kind in KINDS))
    options = parser.parse_args()
    kinds = [kind for kind in KINDS if options.only in (None, kind.__name__[5:])]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="sptx-fuzz.") as folder:
        base = pathlib.Path(folder, "base")
        base.mkdir()
        prepare(base)
        for number in range(options.rounds):
            kind = kinds[number % len(kinds)]
            work = pathlib.Path(folder, "work")
            shutil.copytree(base, work)
            wrong, said = kind(work, random.Random(f"{options.seed} {number}"))
            if wrong:
                failed += 1
                kept = tempfile.mkdtemp(prefix=f"sptx-fuzz-{kind.__name__[5:]}-{number}.", dir="/tmp")
                shutil.copytree(work, kept, dirs_exist_ok=True)
                print(f"{kind.__name__[5:]} round {number}: {wrong}; its files: {kept}")
                print(said.decode(errors="replace")[-3000:])
            else:
                passed += 1
            shutil.rmtree(work)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
