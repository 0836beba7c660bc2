"""Runs scripts/bench_rows.py with a thousandth of its work: each part must run to its end and say what it has left out."""

import importlib.util
import subprocess
import sys

import pytest

from conftest import TOP

pytestmark = pytest.mark.torch


def command(*arguments):
    return [sys.executable, TOP / "scripts" / "bench_rows.py", *arguments]


def bench(*arguments):
    return subprocess.run(command(*arguments), capture_output=True, text=True)


def test_every_part_runs():
    ended = bench("--smoke")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for line in ("fetch of random ids", "store of sorted ids", "index_select of our rows, random ids",
                 "update of 32 rows", "sptx.speedtorch, there and back",
                 "update, weights and state pinned", "Adamax, targets and their state pinned, batch 32",
                 "SGD, targets pinned, batch 32",
                 "targets and their state pinned, next announced"):
        assert line in ended.stdout, line
    for name in ("cupy", "SpeedTorch"):
        assert importlib.util.find_spec(name) or name + " is left out: " in ended.stdout


def test_one_part_runs_alone():
    ended = bench("--smoke", "--only=million")
    assert ended.returncode == 0 and "million: " in ended.stdout and "large: " not in ended.stdout


def test_what_is_no_argument_is_refused():
    """The calls run at the same time, since each imports PyTorch first."""
    begun = {argument: subprocess.Popen(command("--smoke", argument), stderr=subprocess.PIPE, text=True)
             for argument in ("--only=most", "--small", "large")}
    for argument, process in begun.items():
        said = process.communicate()[1]
        assert process.returncode == 1 and argument.split("=")[-1] in said and "--only=NAME" in said
