#!/usr/bin/env python3
"""Draws the most frequent words of a run as a map: near are those whose vectors point the same way.

  scripts/plot_map.py RUN [--out=FILE]               the target table of a run directory; FILE: RUN/map.png
  scripts/plot_map.py VECTORS [--out=FILE]           an export: word2vec-bin where it ends in .bin, else word2vec-text
  scripts/plot_map.py RUN --titles=FILE --groups=FILE --top=500

A dot is a word; each has its name where there is room, the more frequent first. --titles: lines of id TAB title.
--groups: lines of word TAB group, which is its colour. FILE ends in .png, .svg or .pdf. t-SNE keeps neighbours together and
says nothing of distances between groups; --method=pca is the plain projection. Needs matplotlib, scikit-learn and gensim;
build/venv/bin/python has them after `make check`.
"""
import argparse
import itertools
import os

import picture

GROUPS, PLAIN, LONGEST = 10, "tab:gray", 32  # colours that an eye tells apart; no group's; letters of a name
COMPONENTS = 50  # that t-SNE is given


# ---- what is drawn ----

def decoded(word):
    return word.decode("utf-8", "replace")


def read_run(path, top):
    """Reads words and rows from a run directory's newest checkpoint, or from one checkpoint."""
    import numpy
    run = checkpoint = path
    try:
        if os.path.exists(os.path.join(run, "vocab.tsv")):
            with open(os.path.join(run, "latest"), encoding="utf-8") as file:
                checkpoint = os.path.join(run, file.read().strip())
        else:
            run = os.path.dirname(os.path.abspath(path))
        with open(os.path.join(checkpoint, "state.ini"), encoding="utf-8") as file:
            lists_alone = "target_first_row" in file.read()  # are targets; the words before them are contexts alone
        table = "context.npy" if lists_alone else "target.npy"
        rows = numpy.load(os.path.join(checkpoint, table), mmap_mode="r")["weights"]
        if lists_alone:
            top = min(top, len(rows))
        with open(os.path.join(run, "vocab.tsv"), "rb") as file:
            words = [decoded(line.rsplit(b"\t", 1)[0]) for line in itertools.islice(file, top)]
    except (OSError, ValueError, IndexError) as error:
        picture.stop(f"'{path}' is not a run directory with a checkpoint: {error}")
    if len(rows) < len(words):
        picture.stop(f"'{checkpoint}/{table}' has {len(rows)} rows, but '{run}/vocab.tsv' has more words")
    return words, numpy.array(rows[:len(words)], dtype=float)


def read_export(path, top):
    from gensim.models import KeyedVectors
    binary = path.endswith(".bin")
    try:
        vectors = KeyedVectors.load_word2vec_format(path, binary=binary, limit=top, unicode_errors="replace")
    except (OSError, ValueError, EOFError) as error:
        picture.stop(f"'{path}' cannot be read as word2vec-{'bin' if binary else 'text'}: {error}")
    return vectors.index_to_key, vectors.vectors.astype(float)


def read_names(path, column=2):
    """Reads lines of columns separated by TABs, and returns {first column: another column}; of lines with the same word, the first counts."""
    names = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                cells = line.rstrip("\r\n").split("\t")
                if len(cells) >= column:
                    names.setdefault(cells[0], cells[column - 1])
                elif cells != [""]:
                    picture.stop(f"'{path}' line {number} has no column {column}; columns have TABs between")
    except OSError as error:
        picture.stop(f"cannot read '{path}': {error.strerror}")
    return names


# ---- where it is drawn ----

def unit(rows):
    import numpy
    if not numpy.isfinite(rows).all():
        picture.stop("the vectors hold NaN or infinity")
    return rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def places(rows, options):
    """Computes two coordinates for each row. Returns them with the names of the axes."""
    from sklearn.decomposition import PCA
    rows = unit(rows)
    if options.method == "pca":
        pca = PCA(2, random_state=options.seed)
        found = pca.fit_transform(rows)
        return found, [f"component {i + 1} ({share:.1%} of the variance)"
                       for i, share in enumerate(pca.explained_variance_ratio_)]
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits
    if min(rows.shape) > COMPONENTS:
        rows = PCA(COMPONENTS, random_state=options.seed).fit_transform(rows)
    perplexity = min(options.perplexity, (len(rows) - 1) / 3)
    with threadpool_limits(1):  # on a busy machine its threads mostly wait for each other, tens of times as long
        return TSNE(2, init="pca", perplexity=perplexity, random_state=options.seed).fit_transform(rows), None


def colours(words, groups):
    """Returns a colour for each word, and the names of the colours. Only the largest groups have a colour of their own."""
    from collections import Counter
    from matplotlib import colormaps
    counts = Counter(groups[word] for word in words if word in groups)
    largest = {group: colormaps["tab10"](i) for i, (group, _) in enumerate(counts.most_common(GROUPS))}
    return [largest.get(groups.get(word), PLAIN) for word in words], largest


def shortened(name):
    return name if len(name) <= LONGEST else name[:LONGEST - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def free(box, taken):
    """True if a box (left, bottom, right, top) does not overlap any other."""
    return not ((taken[:, 0] < box[2]) & (box[0] < taken[:, 2]) & (taken[:, 1] < box[3]) & (box[1] < taken[:, 3])).any()


def write_names(axes, points, names, shades):
    """Writes a name at the first side of its dot where it covers no other name or dot; if there is no such side, writes nothing."""
    import numpy
    figure, gap, dot = axes.figure, 6, 3
    renderer = figure.canvas.get_renderer()
    at = axes.transData.transform(points)
    frame = axes.get_window_extent(renderer)
    taken, written = numpy.hstack([at - dot, at + dot]), 0
    for i, (point, name) in enumerate(zip(at, names)):
        text = axes.text(*points[i], picture.plain(shortened(name)), fontsize=7, color=shades[i])
        size = text.get_window_extent(renderer)
        for x, y, across, along in ((gap, 0, "left", "center"), (-gap, 0, "right", "center"),
                                    (0, gap, "center", "bottom"), (0, -gap, "center", "top")):
            left = point[0] + x - {"left": 0, "center": size.width / 2, "right": size.width}[across]
            bottom = point[1] + y - {"bottom": 0, "center": size.height / 2, "top": size.height}[along]
            box = (left, bottom, left + size.width, bottom + size.height)
            inside = frame.x0 < box[0] and box[2] < frame.x1 and frame.y0 < box[1] and box[3] < frame.y1
            if inside and free(box, taken):
                text.set(position=axes.transData.inverted().transform((point[0] + x, point[1] + y)),
                         horizontalalignment=across, verticalalignment=along)
                taken = numpy.vstack([taken, (box[0] - gap, box[1], box[2] + gap, box[3])])
                written += 1
                break
        else:
            text.remove()
    return written


def draw(words, points, axis_names, titles, groups, title):
    plt = picture.pyplot()
    from matplotlib.lines import Line2D
    figure, axes = plt.subplots(figsize=(13, 10), layout="constrained", dpi=picture.DPI)
    shades, legend = colours(words, groups)
    axes.scatter(*points.T, s=9, c=shades if groups else "tab:blue", linewidths=0)
    axes.margins(0.06)
    axes.set_title(picture.plain(title))
    if axis_names:
        axes.set_xlabel(axis_names[0])
        axes.set_ylabel(axis_names[1])
    else:
        axes.set(xticks=[], yticks=[])
    if legend:
        if PLAIN in shades:
            legend["others"] = PLAIN
        axes.legend([Line2D([], [], marker="o", linestyle="none", color=colour) for colour in legend.values()],
                    [picture.plain(shortened(name)) for name in legend], loc="center left", bbox_to_anchor=(1, 0.5))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # where things stand is known now and stays
    written = write_names(axes, points, [titles.get(word, word) for word in words], shades if groups else ["black"] * len(words))
    return figure, written


def main():
    parser = argparse.ArgumentParser(description="Draws the most frequent words of a run as a map.")
    parser.add_argument("vectors", help="a run directory, or an export in word2vec-bin (ending in .bin) or word2vec-text")
    parser.add_argument("--out", help="the picture, .png, .svg or .pdf (RUN/map.png, or VECTORS.map.png)")
    parser.add_argument("--top", type=int, default=300, help="how many words (300)")
    parser.add_argument("--method", choices=["tsne", "pca"], default="tsne", help="t-SNE after PCA, or PCA alone (tsne)")
    parser.add_argument("--perplexity", type=float, default=30, help="of t-SNE: how many neighbours count (30)")
    parser.add_argument("--titles", help="lines of id TAB title, shown in the place of ids")
    parser.add_argument("--groups", help="lines of word TAB group; a group has a colour")
    parser.add_argument("--group-column", type=int, default=2, help="which column of --groups has the group (2)")
    parser.add_argument("--seed", type=int, default=1, help="of t-SNE (1)")
    options = parser.parse_args()
    if options.top < 3 or options.group_column < 2 or not options.perplexity > 0:
        parser.error("--top is at least 3, --group-column at least 2, --perplexity above 0")
    run = os.path.isdir(options.vectors)
    out = options.out or (os.path.join(options.vectors, "map.png") if run else options.vectors + ".map.png")
    picture.format_of(out)
    titles = read_names(options.titles) if options.titles else {}
    groups = read_names(options.groups, options.group_column) if options.groups else {}
    try:
        words, rows = (read_run if run else read_export)(options.vectors, options.top)
        if len(words) < 3 or rows.shape[1] < 2:
            picture.stop(f"'{options.vectors}' has {len(words)} words of {rows.shape[1]} columns; a map wants 3 of 2")
        if groups and not any(word in groups for word in words):
            picture.stop(f"'{options.groups}' has a group for none of the {len(words)} words")
        points, axis_names = places(rows, options)
    except ImportError as error:
        picture.stop(f"{error.name} is missing; build/venv/bin/python has it after make check")
    name = os.path.basename(os.path.abspath(options.vectors))
    figure, written = draw(words, points, axis_names, titles, groups,
                           f"{name}: the {len(words)} most frequent, {'t-SNE' if axis_names is None else 'PCA'}")
    picture.save(figure, out)
    print(f"{written} of {len(words)} have room for their names")


if __name__ == "__main__":
    main()
