#!/usr/bin/env python3
"""Fails every call that the program makes to the system, one after the other, and looks at what is left.

  tests/faults/faults.py [--sample=CASES] [--only=SCENARIO,..] [--kind=KIND,..] [--error=ERROR,..] [--number=N]

The program is build/sptx-w2v, or $SPTX_BIN; build/faults.so, made of faults.c, fails the calls. A case is a scenario, a
kind of call, an error, whether later calls of the kind fail too, and the number of the call. Without --sample each
number is tried until a run ends untouched; with it, so many cases are taken from all of them, the same ones each time.

Wanted of a case: the right result and exit 0, or exit 1 with one sentence that names the error. Interrupted calls and
short transfers have no choice but to succeed. No file of the user's is changed; every directory that has a checkpoint's
name is a checkpoint to the last byte; what was good before can be exported still; and the next --resume comes to the
bytes of an undisturbed run and leaves nothing else behind. A process killed in the place of the call is held to the same.

Python's standard library only; closes with `N passed, N failed`.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict

from runs import PROGRAM, call
from scenarios import Scenarios

WORKERS = 2
WAYS = 12  # number of failures that are shown for each thing that is wrong

# The errors of each kind of call: once, or (+) for all calls from one on.
ERRORS = {
    "open": "EIO EMFILE+ ENOSPC EINTR KILL",
    "read": "EIO EIO+ EINTR SHORT SHORT+ KILL",
    "write": "EIO ENOSPC ENOSPC+ EINTR SHORT SHORT+ KILL",
    "print": "EIO ENOSPC+",
    "sync": "EIO ENOSPC+ EINTR KILL",
    "rename": "EIO ENOSPC+ KILL",
    "unlink": "EIO EIO+ KILL",
    "mkdir": "EIO ENOSPC+ KILL",
    "stat": "EIO EIO+ ENOMEM KILL",
    "list": "EIO ENOMEM+ KILL",
    "truncate": "EIO ENOSPC+ EINTR KILL",
    "map": "ENOMEM ENOMEM+",
    "memory": "ENOMEM ENOMEM+",
    "thread": "EAGAIN EAGAIN+",
    "lock": "EIO ENOLCK+ EINTR",
    "close": "EIO EINTR",
}
# The words by which a message names each error.
SENTENCES = {"EIO": "Input/output error", "ENOSPC": "No space left", "EMFILE": "Too many open files", "ENOMEM": "memory",
             "EAGAIN": "Resource temporarily unavailable", "ENOLCK": "No locks available"}


def series():
    """Returns (kind, error, lasting) for each error in ERRORS."""
    return [(kind, error.rstrip("+"), error.endswith("+")) for kind, errors in ERRORS.items() for error in errors.split()]


def exit_is_wrong(error, code, err):
    """Returns what is wrong with the exit code and messages of a disturbed run, or None."""
    if code is None:
        return "hangs"
    if b"AddressSanitizer: CHECK failed: sanitizer_" in err:
        return None  # the sanitizer starts threads of its own, and ends the process if they get no memory
    if error == "KILL":
        return None if code in (-9, 0) else f"exit {code}"
    if code == 0:
        return None
    if code != 1:
        return f"exit {code}"
    if error in ("EINTR", "SHORT"):
        return "fails where it has no need to"
    lines = err.decode(errors="replace").rstrip("\n").split("\n")
    said = [line for line in lines if line.startswith("sptx-w2v: ") and not line.startswith("sptx-w2v: warning: ")]
    if len(said) != 1 or said[0] != lines[-1]:
        return f"{len(said)} sentences, or not the last line"
    return None if names(error, said[0]) else "a sentence that does not name the error"


def names(error, sentence):
    """Returns True if the message names the error, as far as the program can know it."""
    return (SENTENCES[error] in sentence or sentence.endswith("cannot write all of the results to stdout")
            or (error == "ENOMEM" and SENTENCES["EAGAIN"] in sentence))  # the C library changes the error when it starts a thread


class Case:
    """Makes one disturbed run and finds what is wrong with it. `fired`: the line of the library's log, or None if no call failed.
    """

    def __init__(self, scenario, kind, error, lasting, number):
        self.scenario, self.kind, self.error, self.lasting, self.number = scenario, kind, error, lasting, number
        self.wrong = self.fired = None

    def run(self):
        with tempfile.TemporaryDirectory(prefix="case.", dir=self.scenario.folder) as directory:
            work, log = os.path.join(directory, "work"), os.path.join(directory, "log")
            self.scenario.prepare(work)
            code, out, err = call(work, self.scenario.arguments, kind=self.kind, number=self.number, error=self.error,
                                  lasting=self.lasting, log=log)
            if os.path.exists(log):
                with open(log) as file:
                    self.fired = next((line.split()[3:] for line in file if line.startswith("fired ")), None)
            if self.fired is None and code != 0:
                self.wrong, self.fired = f"exit {code} without a fault", ["no fault"]
            elif self.fired is not None:
                self.wrong = exit_is_wrong(self.error, code, err) or self.scenario.judge(work, code, out, err)
            self.said = err.decode(errors="replace").rstrip("\n").split("\n")[-1]
        return self

    def line(self):
        plus = "+" if self.lasting else ""
        return f"{self.scenario.name} {self.kind} {self.error}{plus} {self.number}"


def run_series(scenario, kind, error, lasting):
    """Tries the numbers 1, 2, .. of a series, until no call fails in a run."""
    cases, number = [], 1
    while True:
        case = Case(scenario, kind, error, lasting, number).run()
        if case.fired is None:
            return cases
        cases.append(case)
        number += 1


def sample(scenarios, wanted, size):
    """Chooses `size` of all cases at random, the same cases each time."""
    rng = random.Random(1)
    every = [Case(scenario, *row, number) for scenario in scenarios for row in wanted
             for number in range(1, scenario.counts().get(row[0], 0) + 1)]
    return every if len(every) <= size else rng.sample(every, size)


def functions(addresses):
    """Returns the functions of the program that led to a call, innermost first."""
    if not addresses:
        return "(a library)"
    said = subprocess.run(["addr2line", "-f", "-i", "-e", PROGRAM, *addresses], capture_output=True, text=True).stdout
    names = [re.sub(r"\.(constprop|part|isra)\..*", "", name) for name in said.split("\n")[0::2] if name]
    return " < ".join(names[:6])


def show(failed):
    """Prints the failures: what is wrong, the functions that led to the failed call, some cases of each, and the program's
    messages."""
    groups = defaultdict(lambda: defaultdict(list))
    for case in failed:
        way = functions(tuple(address for address in case.fired[1:] if address.startswith("0x")))
        groups[re.sub(r"\b\d[-0-9a-f]*\b", "N", case.wrong)][f"{case.fired[0]} < {way}"].append(case)
    for wrong, ways in sorted(groups.items()):
        print(f"\n{sum(map(len, ways.values()))} x {wrong}")
        for way, cases in sorted(ways.items(), key=lambda item: -len(item[1]))[:WAYS]:
            print(f"  {len(cases)} x {way}")
            for case in cases[:2]:
                print(f"    {case.line()}: {case.said}")
        if len(ways) > WAYS:
            print(f"  and {len(ways) - WAYS} more ways to it")


def choose(text, every):
    names = text.split(",") if text else list(every)
    unknown = set(names) - set(every)
    if unknown:
        sys.exit(f"faults: {', '.join(sorted(unknown))}: wanted of {', '.join(every)}")
    return names


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, help="so many cases instead of all")
    parser.add_argument("--only", help="scenarios")
    parser.add_argument("--kind", help="kinds of call: " + " ".join(ERRORS))
    parser.add_argument("--error", help="errors: " + " ".join(SENTENCES) + " EINTR SHORT KILL")
    parser.add_argument("--number", type=int, help="one call instead of all")
    options = parser.parse_args()
    memory = pathlib.Path("/dev/shm")  # a file system in memory: thousands of small files cost no disk
    with tempfile.TemporaryDirectory(prefix="sptx-faults.", dir=memory if os.access(memory, os.W_OK) else None) as folder:
        known = Scenarios(folder)
        scenarios = [known.every[name] for name in choose(options.only, known.every)]
        wanted = [row for row in series() if row[0] in choose(options.kind, ERRORS)
                  and row[1] in choose(options.error, [*SENTENCES, "EINTR", "SHORT", "KILL"])]
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            if options.number:
                done = list(pool.map(Case.run, [Case(s, *row, options.number) for s in scenarios for row in wanted]))
            elif options.sample:
                done = list(pool.map(Case.run, sample(scenarios, wanted, options.sample)))
            else:
                jobs = [pool.submit(run_series, scenario, *row) for scenario in scenarios for row in wanted]
                done = [case for job in jobs for case in job.result()]
    failed = [case for case in done if case.wrong]
    show(failed)
    print(f"{len(done) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not done else 0


if __name__ == "__main__":
    sys.exit(main())
