#!/usr/bin/env python3
"""Draws a run's loss and speed from its metrics.jsonl.

  scripts/plot_run.py RUN [--out=FILE.png]      FILE: RUN/metrics.png

Needs matplotlib; build/venv/bin/python has it after `make check`. A field that a line lacks leaves a gap.
"""
import argparse
import json
import os
import sys


def read_metrics(path):
    """The lines of metrics.jsonl that are whole; a run that was killed may have left the last one short."""
    lines = []
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            try:
                line = json.loads(text)
            except ValueError:
                print(f"plot_run: {path} line {number} is not whole, left out", file=sys.stderr)
                continue
            if isinstance(line, dict):
                lines.append(line)
    return lines


def column(lines, name):
    """A field over the lines; not a number where it is missing or null."""
    values = (line.get(name) for line in lines)
    return [float(value) if isinstance(value, (int, float)) else float("nan") for value in values]


def has_values(values):
    return any(value == value for value in values)


def draw(lines, title, out):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    along, label = column(lines, "done"), "share of the run done"
    if not has_values(along):
        along, label = column(lines, "step"), "step"
    figure, (loss, speed) = plt.subplots(2, 1, sharex=True, figsize=(9, 7), layout="constrained")
    figure.suptitle(title)

    loss.plot(along, column(lines, "loss_pair") if has_values(column(lines, "loss_pair")) else column(lines, "loss"),
              color="tab:blue", linewidth=1)
    loss.set_ylabel("loss a pair" if has_values(column(lines, "loss_pair")) else "loss", color="tab:blue")
    if has_values(column(lines, "held_out")):
        loss.plot(along, column(lines, "held_out"), color="tab:red", marker=".", linestyle="none", label="held out")
        loss.legend()
    rate = loss.twinx()
    rate.plot(along, column(lines, "lr"), color="tab:gray", linewidth=1, linestyle="--")
    rate.set_ylabel("learning rate", color="tab:gray")

    for name, words in (("pairs_per_second", "pairs/s"), ("words_per_second", "words/s")):
        values = [value / 1e6 for value in column(lines, name)]
        if has_values(values):
            speed.plot(along, values, linewidth=1, label=words)
    speed.set_ylabel("millions a second")
    speed.set_ylim(bottom=0)
    if speed.lines:
        speed.legend()
    speed.set_xlabel(label)
    figure.savefig(out, dpi=120)


def main():
    parser = argparse.ArgumentParser(description="Draws a run's loss and speed from its metrics.jsonl.")
    parser.add_argument("run", help="the run directory")
    parser.add_argument("--out", help="the picture (RUN/metrics.png)")
    options = parser.parse_args()
    path = os.path.join(options.run, "metrics.jsonl")
    if not os.path.isfile(path):
        sys.exit(f"plot_run: '{path}' is not there; RUN is the directory that train wrote")
    lines = read_metrics(path)
    if not lines:
        sys.exit(f"plot_run: '{path}' holds no line yet")
    out = options.out or os.path.join(options.run, "metrics.png")
    try:
        draw(lines, os.path.basename(os.path.normpath(options.run)), out)
    except ImportError:
        sys.exit("plot_run: matplotlib is missing; build/venv/bin/python has it after make check")
    print(out)


if __name__ == "__main__":
    main()
