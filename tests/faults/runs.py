"""Runs the program, with or without a fault, and compares what it leaves in a directory."""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
PROGRAM = os.environ.get("SPTX_BIN") or str(BUILD / "sptx-w2v")
LIBRARY = os.environ.get("SPTX_FAULTS") or str(BUILD / "faults.so")
SECONDS = 60 * int(os.environ.get("SPTX_SLOWER", "1"))  # times what scripts/check measures


def environment(kind=None, number=0, error=None, lasting=False, log=None):
    """Returns the environment of a process whose call `number` of `kind` fails. Memory that is freed or not set is filled, so that
    it is never zero by chance."""
    values = dict(os.environ, LD_PRELOAD=LIBRARY, FAULT_SYNC="skip", MALLOC_PERTURB_="165",
                  ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0:abort_on_error=1")  # where the program has it
    if kind:
        values.update(FAULT_KIND=kind, FAULT_NUMBER=str(number), FAULT_ERROR=error)
    if lasting:
        values["FAULT_LASTING"] = "1"
    if log:
        values["FAULT_LOG"] = str(log)
    return values


def call(directory, arguments, **fault):
    """Returns (exit code, stdout, stderr). The exit code is None if the run hangs."""
    try:
        done = subprocess.run([PROGRAM, *arguments], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=SECONDS, env=environment(**fault))
    except subprocess.TimeoutExpired as expired:
        return None, b"", expired.stderr or b""
    return done.returncode, done.stdout, done.stderr


def good(directory, *arguments, **fault):
    """Returns the output of a run that must work."""
    code, out, err = call(directory, arguments, **fault)
    if code:
        sys.exit(f"faults: 'sptx-w2v {' '.join(arguments)}' ended with {code}: {err.decode()}\n0 passed, 1 failed")
    return out


def tree(directory):
    """Returns {path: bytes} of everything in a directory. The path of a directory ends with / and has no bytes."""
    found = {}
    for folder, folders, names in os.walk(directory):
        for name in folders:
            found[os.path.relpath(os.path.join(folder, name), directory) + "/"] = b""
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, directory)] = file.read()
    return found


def steps_of(metrics):
    """Returns the steps in metrics.jsonl; None if a line is damaged."""
    try:
        return [json.loads(line)["step"] for line in metrics.splitlines()]
    except (ValueError, KeyError):
        return None


def digest(files):
    """Returns a digest of a directory's files without the times in them. It is the same after two runs that do the same."""
    sum = hashlib.sha256()
    for path in sorted(files):
        data = files[path]
        if path.endswith("metrics.jsonl"):
            data = repr(steps_of(data)).encode()
        if path.endswith("state.ini"):
            data = re.sub(rb"(seconds|state_xxh64) = .*", b"", data)
        sum.update(f"{path} {len(data)} ".encode() + data)
    return sum.hexdigest()


def checkpoints(files, run="run"):
    """Returns {step: (target, context, known)} of the directories of a run that have a checkpoint's name."""
    steps = [int(name[1]) for name in (re.fullmatch(rf"{run}/checkpoint-(\d+)/", path) for path in files) if name]
    return {step: tuple(files.get(f"{run}/checkpoint-{step}/{table}.npy") for table in ("target", "context", "known"))
            for step in steps}
