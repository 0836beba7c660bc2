#!/usr/bin/env python3
"""Measures what features give items that no training list contains, on planted shops of three sizes: prints a table in Markdown.

  build/venv/bin/python scripts/new_items.py [ITEMS..]      300 3000 30000; build/sptx-w2v, or the program that SPTX_BIN names

Each person likes three groups of things, and has items of these, often-liked ones more often. An item has features: its group's kind, which is wrong
for a fifth of the items; a maker, who makes ten things of one group; three words, half of them common to all groups. A tenth of the items is in no
training list, nor are 15% of each list's other items. Features of another item (exchanged at random) show what features cost where they say nothing.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
from scipy import sparse

PARTS = ("new items among new ones", "new items among all", "trained items among all", "trained items among trained ones")


def planted(items, rng):
    """Returns the items' features, as lists of strings; which items are new; training lists and held-out lists, as arrays."""
    groups = max(6, items // 60)
    group = rng.integers(groups, size=items)
    weight = rng.permutation((numpy.arange(items) + 10.0) ** -0.7)  # how often each item is liked
    features = []
    for item, of in enumerate(group):
        kind = rng.integers(groups) if rng.random() < 0.2 else of
        words = [f"word:{rng.integers(300)}" if rng.random() < 0.5 else f"word:g{of}w{rng.integers(15)}" for _ in range(3)]
        features.append([f"kind:{kind}", f"maker:g{of}m{rng.integers(max(1, items // groups // 10))}", *words])
    new = rng.random(items) < 0.1
    members = [numpy.flatnonzero(group == of) for of in range(groups)]
    train, held_out = [], []
    for _ in range(min(20000, 4 * items)):
        pool = numpy.concatenate([members[of] for of in rng.choice(groups, 3, replace=False)])
        size = min(len(pool) // 2, 24)
        liked = numpy.unique(numpy.concatenate([rng.choice(pool, size, replace=False, p=weight[pool] / weight[pool].sum()),
                                                rng.integers(items, size=size // 6)]))
        hidden = new[liked] | (rng.random(len(liked)) < 0.15)
        train.append(rng.permutation(liked[~hidden]))
        held_out.append(liked[hidden])
    return features, new, train, held_out


def by_content(features, new, train, held_out, k=20):
    """recall@k of new items among new ones, if a person is the mean of the tf-idf vectors of the list's items, and scores are cosines."""
    names = {name: i for i, name in enumerate(sorted({name for of in features for name in of}))}
    rows = [i for i, of in enumerate(features) for _ in of]
    found = sparse.csr_matrix((numpy.ones(len(rows)), (rows, [names[name] for of in features for name in of])), (len(features), len(names)))
    found.data[:] = 1
    found = found @ sparse.diags(numpy.log(len(features) / numpy.maximum(1, numpy.bincount(found.indices, minlength=len(names)))))
    found = sparse.diags(1 / numpy.maximum(1e-9, numpy.sqrt(found.multiply(found).sum(1).A1))) @ found
    numbers, recalls = numpy.flatnonzero(new), []
    for train_items, held in zip(train, held_out):
        held = held[new[held]]
        if len(held):
            scores = (found[numbers] @ found[train_items].mean(0).T).A1
            recalls.append(numpy.isin(numbers[numpy.argsort(-scores, kind="stable")[:k]], held).sum() / min(k, len(held)))
    return numpy.mean(recalls)


def main(sizes):
    program = os.environ.get("SPTX_BIN", "build/sptx-w2v")
    print("| items, new; lists | features | new among new | new among all | trained among all | trained alone | content: new among new |")
    print("|---" * 7 + "|")
    for items in sizes:
        rng = numpy.random.default_rng(items)
        features, new, train, held_out = planted(items, rng)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            for name, lists in ("train", train), ("held_out", held_out):
                (path / name).write_text("".join(" ".join([f"p{i}", *(f"i{item}" for item in of)]) + "\n" for i, of in enumerate(lists)))
            subprocess.run([program, "train", f"--corpus.path={path / 'train'}", "--corpus.format=lists", f"--run.dir={path / 'run'}"],
                           check=True, capture_output=True)
            for what, order, options in (("its own", range(items), ()), ("its own, share 0.15", range(items), ("--new-share=0.15",)),
                                         ("another item's", rng.permutation(items), ())):
                told = [features[item] for item in order]
                (path / "features").write_text("".join(f"i{item}\t{' '.join(of)}\n" for item, of in enumerate(told)))
                said = subprocess.run([program, "evaluate", path / "run", f"--train={path / 'train'}", f"--held-out={path / 'held_out'}", "--k=20",
                                       f"--item-features={path / 'features'}", *options], check=True, capture_output=True, text=True).stdout
                recall = dict(re.findall(r"(?m)^(.*): recall@20 ([0-9.]+)", said))
                print(f"| {items:,}, {new.sum():,}; {len(train):,} | {what} | " + " | ".join(recall[part] for part in PARTS) +
                      f" | {by_content(told, new, train[:2000], held_out[:2000]):.4f} |", flush=True)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [300, 3000, 30000])
