#!/usr/bin/env python3
"""Draws a run's loss, held-out score, learning rate and speed over time, from its metrics.jsonl.

  scripts/plot_run.py RUN [--out=FILE]      FILE: RUN/metrics.png; .svg and .pdf work too

The dashed line is the loss of an untrained model, ln 2 a dot product: a curve that stays there is not learning. Needs
matplotlib; build/venv/bin/python has it after `make check`.
"""
import argparse
import json
import math
import os
import sys

import picture


def read_metrics(path):
    """Reads the complete lines of metrics.jsonl; if the run was killed, the last line may be incomplete."""
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
    """Returns the values of a field in all lines, NaN where the field is missing or null."""
    values = (line.get(name) for line in lines)
    return [float(value) if isinstance(value, (int, float)) else float("nan") for value in values]


def has_values(values):
    return any(value == value for value in values)


def with_values(lines, name):
    return [line for line in lines if has_values(column([line], name))]


def untrained_loss(lines):
    """Returns the loss per pair of an untrained model: ln 2 for each of a pair's terms. None if the lines do not contain it."""
    told = [line["loss_untrained"] * line["loss_pair"] / line["loss"] for line in lines
            if has_values(column([line], "loss_untrained")) and line.get("loss")]
    return sorted(told)[len(told) // 2] if told else None


def draw_untrained(axes, level, highest):
    """Draws a line at the untrained loss. If the line were so high that it would flatten the curve, only writes the number."""
    label = f"untrained: {level:.4g} = {level / math.log(2):.3g} ln 2"
    if level > 2 * highest:
        axes.plot([], [], " ", label=label + ", far above")
    else:
        axes.axhline(level, color="tab:gray", linewidth=1, linestyle="--", label=label)


def draw_loss(axes, lines, along):
    name = "loss_pair" if with_values(lines, "loss_pair") else "loss"
    trained, held_out = with_values(lines, name), with_values(lines, "held_out_" + name)
    axes.plot(column(trained, along), column(trained, name), color="tab:blue", linewidth=1.2, label="training")
    if held_out:
        axes.plot(column(held_out, along), column(held_out, "held_out_" + name), color="tab:red", marker="o", markersize=4,
                  linewidth=1.2, label="held out")
    if name == "loss_pair" and untrained_loss(trained):
        draw_untrained(axes, untrained_loss(trained), max(column(trained, name)))
    axes.set_ylabel("loss a pair" if name == "loss_pair" else "loss")
    axes.legend()


def draw_rate(axes, lines, along):
    lines = with_values(lines, "lr")
    axes.plot(column(lines, along), column(lines, "lr"), color="tab:green", linewidth=1.2)
    axes.set_ylabel("learning rate")
    axes.set_ylim(bottom=0)


def draw_speed(axes, lines, along):
    for name, label in (("pairs_per_second", "pairs"), ("words_per_second", "words")):
        fast = with_values(lines, name)
        if fast:
            axes.plot(column(fast, along), [value / 1e6 for value in column(fast, name)], linewidth=1.2, label=label)
    axes.set_ylabel("millions a second")
    axes.set_ylim(bottom=0)
    if axes.lines:
        axes.legend()


SCORES = {"held_out_mrr": "held-out MRR", "held_out_recall": "held-out recall@20"}


def draw_score(axes, lines, along):
    for name, label in SCORES.items():
        scored = with_values(lines, name)
        if scored:
            axes.plot(column(scored, along), column(scored, name), color="tab:red", marker="o", markersize=4, linewidth=1.2)
            axes.set_ylabel(label)


def draw(lines, title):
    plt = picture.pyplot()
    from matplotlib.ticker import PercentFormatter

    along = "done" if with_values(lines, "done") else "step"
    parts = [(draw_loss, 3), (draw_score, 2), (draw_rate, 1), (draw_speed, 1.5)]
    if not any(with_values(lines, name) for name in SCORES):
        del parts[1]
    figure, panels = plt.subplots(len(parts), 1, sharex=True, figsize=(9, 9), layout="constrained",
                                  height_ratios=[height for _, height in parts])
    figure.suptitle(picture.plain(title))
    for axes, (draw_panel, _) in zip(panels, parts):
        draw_panel(axes, lines, along)
        axes.grid(alpha=0.3)
    if along == "done":
        panels[-1].xaxis.set_major_formatter(PercentFormatter(1))
    panels[-1].set_xlabel("share of the run done" if along == "done" else "step")
    figure.align_ylabels()
    return figure


def main():
    parser = argparse.ArgumentParser(description="Draws a run's loss, learning rate and speed over time.")
    parser.add_argument("run", help="the run directory")
    parser.add_argument("--out", help="the picture (RUN/metrics.png)")
    options = parser.parse_args()
    out = options.out or os.path.join(options.run, "metrics.png")
    picture.format_of(out)
    path = os.path.join(options.run, "metrics.jsonl")
    if not os.path.isfile(path):
        picture.stop(f"'{path}' is not there; RUN is the directory that train wrote")
    lines = read_metrics(path)
    if not lines:
        picture.stop(f"'{path}' holds no line yet")
    picture.save(draw(lines, os.path.basename(os.path.abspath(options.run))), out)


if __name__ == "__main__":
    main()
