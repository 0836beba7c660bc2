"""Lists for scripts/learning_curves: samples of public lists (baskets, books, places, citations), and generated reading lists.

A fifth of the items of each list with at least five is held out (a quarter of each basket of four). `evaluate` counts the held-out
items among the 20 best recommendations. Samples of goodbooks, gowalla and hep-th use their training lists only, so that no default
is chosen by test lists. Compared with: popularity, cosine of items, EASE (up to 4,000 items), ALS (if `implicit` is installed).
"""
import csv
import pathlib
import re
import subprocess
import time

import numpy

CUTS = {"goodbooks": ("items/goodbooks.train.txt", (100, 600, 2671)), "gowalla": ("items/gowalla.train.txt", (1000, 5000, 30000)),
        "hep-th": ("papers/hep-th.train.txt", (500, 3000, 25059))}
BOOKS = {30: 200, 300: 1000, 3000: 5000, 100_000: 20_000}  # {number of items: number of lists}
K, EASE_ITEMS = 20, 4000
PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "build/sptx-w2v"


# ---- data ----

def read_lists(path):
    found = {}
    for line in path.read_text().split("\n"):
        if line.strip():
            name, *items = line.split()
            found.setdefault(name, []).extend(items)
    return {name: list(dict.fromkeys(items)) for name, items in found.items()}


def read_baskets(path):
    found = {}
    with open(path, newline="") as file:
        for person, item in list(csv.reader(file))[1:]:
            found.setdefault(f"p{person}", []).append(item.strip().replace(" ", "_"))
    return {name: list(dict.fromkeys(items)) for name, items in found.items()}


def some(lists, count):
    names = list(lists)
    chosen = sorted(numpy.random.default_rng(7).permutation(len(names))[:count])
    return {names[i]: lists[names[i]] for i in chosen}


def generated(folder, items, count):
    path = folder / "generated"
    subprocess.run([PROGRAM, "generate", "books", f"--out={path}", f"--rows={items}", f"--lists={count}"], check=True, capture_output=True)
    return read_lists(path)


def named_lists(folder, data):
    """Yields (name of a case, path of its file, function that reads its lists from that path)."""
    for count in (200, 1000, 9835):
        yield f"groceries-{count}", data / "items/groceries.csv", lambda path, count=count: some(read_baskets(path), count)
    for name, (file, counts) in CUTS.items():
        for count in counts:
            yield f"{name}-{count}", data / file, lambda path, count=count: some(read_lists(path), count)
    for items, count in BOOKS.items():
        yield f"books-{items}", data, lambda path, items=items, count=count: generated(folder, items, count)


def split(lists, share, least):
    draw, train, held = numpy.random.default_rng(5), {}, {}
    for name, items in lists.items():
        order = draw.permutation(len(items))
        count = max(1, int(len(items) * share)) if len(items) >= least else 0
        train[name] = [items[i] for i in order[count:]]
        if count:
            held[name] = [items[i] for i in order[:count]]
    return train, held


def write(path, lists):
    path.write_text("".join(" ".join([name, *items]) + "\n" for name, items in lists.items()))


def cases(folder, data, wanted):
    for name, path, read in named_lists(folder, data):
        if not wanted(name):
            continue
        if not path.exists():
            print(f"learning_curves: {path} is not there: no {name}")
            continue
        train, held = split(read(path), *((.25, 4) if name.startswith("groceries") else (.2, 5)))
        files = folder / f"{name}.train", folder / f"{name}.held"
        write(files[0], train)
        write(files[1], held)
        kind = "adjacency" if name.startswith("hep-th") else "lists"
        yield name, (f"--corpus.path={files[0]}", f"--corpus.format={kind}"), (files, train, held)


def candidates(name):
    if name.startswith("hep-th"):
        return ["", *(f"--optimizer.lr={lr} --model.dim={dim}" for lr in (.0125, .025, .05) for dim in (128, 256))]
    temperatures = [f"--train.temperature={t}" for t in (.1, .15, .2, .3, .4, .5, 1)]
    epochs = [f"--train.epochs={e} --negatives.count={n}" for e in (20, 60, 100) for n in (50, 100, 300, 1000)]
    return ["", "--train.effort=thorough", *temperatures, *epochs, "--negatives.per=batch --negatives.count=1000 --train.epochs=20"]


def judge(program, run, case):
    files = case[2][0]
    said = subprocess.run([program, "evaluate", run, f"--train={files[0]}", f"--held-out={files[1]}"], capture_output=True, text=True).stdout
    return {key: float(value) for key, value in re.findall(r"(recall@20|ndcg@20) ([\d.]+)", said)}


# ---- other recommenders, for comparison ----

def score(best, held, items):
    """Returns mean recall@20 and NDCG@20. best [lists x 20]: ids of each list's recommended items, best first."""
    gain, recall, ndcg = 1 / numpy.log2(numpy.arange(2, K + 2)), 0, 0
    for row, wanted in zip(best, held.values()):
        ids = {items[item] for item in wanted if item in items}
        hit = numpy.array([item in ids for item in row[:K]], float)
        recall += hit.sum() / len(wanted)
        ndcg += hit @ gain[:len(hit)] / gain[:min(K, len(wanted))].sum()
    return {"recall@20": float(recall / len(held)), "ndcg@20": float(ndcg / len(held))}


def best_of(scores, rows):
    scores = numpy.where(rows > 0, -numpy.inf, scores)
    return numpy.argsort(-scores, axis=1, kind="stable")[:, :K]


def counts_of(train, held):
    """Returns {item: id}, and a 0/1 matrix [lists x items] whose first rows are the lists with held-out items."""
    items = {item: i for i, item in enumerate(dict.fromkeys(item for row in train.values() for item in row))}
    names = [*held, *(name for name in train if name not in held)]
    rows = numpy.zeros((len(names), len(items)), numpy.float32)
    for i, name in enumerate(names):
        rows[i, [items[item] for item in train[name]]] = 1
    return items, rows


def ease(rows, together):
    inverse = numpy.linalg.inv(together + 200 * numpy.eye(len(together), dtype=numpy.float32))
    weights = inverse / -numpy.diag(inverse)
    numpy.fill_diagonal(weights, 0)
    return rows @ weights


def by_items(rows, asked):
    """Yields (name, function) of the recommenders that need only NumPy; the function returns scores [lists asked x items]."""
    popular = rows.sum(0)
    yield "popularity", lambda: numpy.repeat(popular[None], len(asked), 0)
    if rows.shape[1] <= EASE_ITEMS:
        together = rows.T @ rows
        norm = numpy.sqrt(numpy.maximum(popular, 1))
        yield "item cosine", lambda: asked @ (together / norm / norm[:, None] * (1 - numpy.eye(len(norm), dtype=numpy.float32)))
        yield "EASE (200)", lambda: ease(asked, together)


def als(rows):
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix
    model = AlternatingLeastSquares(factors=64, regularization=.05, alpha=10, iterations=20, random_state=1)
    model.fit(csr_matrix(rows), show_progress=False)
    return model.user_factors @ model.item_factors.T


def peers(case):
    _, train, held = case[2]
    if len(train) * len({item for row in train.values() for item in row}) > 2e8:
        return  # the dense matrix would not fit
    items, rows = counts_of(train, held)
    asked = rows[:len(held)]
    for name, scores in (*by_items(rows, asked), ("ALS", lambda: als(rows)[:len(held)])):
        began = time.time()
        try:
            best = best_of(scores(), asked)
        except ImportError:
            continue
        yield name, score(best, held, items), time.time() - began
