"""Graphs for scripts/learning_curves: generated ones and public ones, the keys to try, and how a run is scored.

Each graph is a file of edges and a file of labels (in each line a node and its labels) or of held-out links, which training does
not see. Generated graphs replace public ones that may not be redistributed: dense graphs with several labels a node (blogs,
proteins, products), and small graphs whose labels are roles instead of communities (airports), where long training hurts.
"""
import collections
import lzma
import re
import subprocess

import numpy

LABELS = {  # name: nodes, links a node, labels, labels a node, share of links within a label, share of nodes relabelled, seed
    "blogs": (10000, 65, 39, 1.4, .36, .55, 1),
    "proteins": (3900, 39, 50, 1.7, .35, .6, 2),
    "products": (7600, 31, 8, 1, .5, .08, 3),
    "dense-2000": (2000, 40, 12, 1.2, .35, .3, 4),
    "blocks-1000": (1000, 12, 6, 1, .45, 0, 5),
    "blocks-300": (300, 10, 4, 1, .55, 0, 6),
    "blocks-100": (100, 8, 3, 1, .6, 0, 7),
    "blocks-30": (30, 6, 2, 1, .85, 0, 8),
    "dense-300": (300, 60, 5, 1.2, .4, 0, 9),
    "sparse-20000": (20000, 6, 20, 1.2, .6, 0, 10)}
ROLES = {"roles-1200": (1190, 23, 1), "roles-400": (400, 30, 2), "roles-130": (131, 16, 3)}  # name: nodes, links a node, seed
LINKS = {"rmat-sparse": (14, 60000, 1), "rmat-dense": (12, 130000, 2)}  # name: scale, links, seed; a fifth of the links is held out
TABLES = ("target", "normsum", "propagated")
CANDIDATES = ("", *(f"--walks.per_node={walks} --optimizer.lr={rate}"
                    for walks, rate in ((10, .01), (10, .025), (20, .01), (20, .015), (40, .01))))


def planted(nodes, degree, labels, each, within, anew, seed):
    """Generates a graph with planted labels; degrees are heavy-tailed. Returns its edges and the labels of each node.

    within: share of the links that join nodes with a common label. anew: share of the nodes whose labels are random."""
    rng = numpy.random.default_rng(seed)
    weight = numpy.minimum((1 - rng.random(nodes)) ** (-1 / 1.4), 4 * nodes / degree)
    weight /= weight.sum()
    share = numpy.arange(1, labels + 1) ** -.6
    draw = lambda count: numpy.unique(rng.choice(labels, count, p=share / share.sum()))
    own = [draw(1 + rng.poisson(each - 1)) for _ in range(nodes)]
    members = [numpy.flatnonzero([label in of for of in own]) for label in range(labels)]
    count = int(nodes * degree * .58)
    a, b = rng.choice(nodes, count, p=weight), rng.choice(nodes, count, p=weight)
    label = numpy.array([rng.choice(own[node]) for node in a])
    inside = rng.random(count) < within
    for l, member in enumerate(members):
        here = numpy.flatnonzero(inside & (label == l))
        if len(here):
            b[here] = rng.choice(member, len(here), p=weight[member] / weight[member].sum())
    alone = numpy.setdiff1d(numpy.arange(nodes), numpy.r_[a, b])
    edges = numpy.r_[numpy.c_[a, b], numpy.c_[alone, rng.choice(nodes, len(alone), p=weight)]]
    return edges, [draw(len(of)) if rng.random() < anew else of for of in own]


def roles(nodes, degree, seed):
    """Generates a graph like airports': links join nodes of high weight and nodes near each other. Returns edges and labels.

    A node's label, 0..3, is the quartile of its weight, with noise."""
    rng = numpy.random.default_rng(seed)
    weight, place = numpy.exp(1.6 * rng.standard_normal(nodes)), rng.random((nodes, 2))
    edges = numpy.zeros((0, 2), int)
    while len(edges) < nodes * degree / 2:
        a, b = rng.choice(nodes, (2, nodes * degree), p=weight / weight.sum())
        kept = rng.random(len(a)) < numpy.exp(-3 * numpy.linalg.norm(place[a] - place[b], axis=1))
        edges = numpy.unique(numpy.sort(numpy.r_[edges, numpy.c_[a, b][kept & (a != b)]], 1), axis=0)
    busy = weight * numpy.exp(.5 * rng.standard_normal(nodes))
    return rng.permutation(edges)[:nodes * degree // 2], [[quarter] for quarter in numpy.searchsorted(numpy.quantile(busy, [.25, .5, .75]), busy)]


def rmat(scale, count, seed):
    rng = numpy.random.default_rng(seed)
    a, b = numpy.zeros((2, count), int)
    for _ in range(scale):
        x = rng.random(count)
        a, b = 2 * a + (x >= .76), 2 * b + (((x >= .57) & (x < .76)) | (x >= .95))
    return numpy.c_[a, b]


def words(path, most=4800, tokens=190000):
    """Generates a graph of words: links join words at most 2 apart in a text; a word's label is its ending, such as 'ing'."""
    text = lzma.open(path, "rt", encoding="utf-8").read().split()[:tokens]
    number = {word: i for i, (word, _) in enumerate(collections.Counter(text).most_common(most))}
    edges = [(number[a], number[b]) for near in (1, 2) for a, b in zip(text, text[near:]) if a in number and b in number]
    endings = ["ing", "ed", "ly", "tion", "ity", "er", "ian", "al", "ic", "ous", "es", "s"]
    return edges, [[i for i, end in enumerate(endings) if word.endswith(end) and len(word) > len(end) + 2][:1] for word in number]


def distinct(edges):
    edges = numpy.sort(numpy.asarray(edges), 1)
    return numpy.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)


def write(folder, name, edges, labels):
    numpy.savetxt(folder / f"{name}.edges.tsv", distinct(edges), "%d", delimiter="\t")
    lines = ["%d\t%s\n" % (node, "\t".join(map(str, of))) for node, of in enumerate(labels) if len(of)]
    (folder / f"{name}.labels.tsv").write_text("".join(lines))


def hold_out(folder, name, edges, share=.2, seed=0):
    """Splits edges into training links and held-out links. Training keeps a spanning forest, so no node loses all its links."""
    edges = numpy.random.default_rng(seed).permutation(numpy.asarray(edges))
    root = list(range(edges.max() + 1))

    def find(node):
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node
    spare = []
    for i, (a, b) in enumerate(edges):
        a, b = find(a), find(b)
        root[a] = b
        if a == b:
            spare.append(i)
    held = spare[:int(share * len(edges))]
    numpy.savetxt(folder / f"{name}.held.tsv", edges[held], "%d", delimiter="\t")
    numpy.savetxt(folder / f"{name}.edges.tsv", numpy.delete(edges, held, 0), "%d", delimiter="\t")


def cases(folder, data, wanted):
    """Yields generated graphs, and those in the folder `graphs` of `data` that have labels."""
    text = data / "text/wiki16.txt.xz"
    made = {**{name: lambda form=form: planted(*form) for name, form in LABELS.items()},
            **{name: lambda form=form: roles(*form) for name, form in ROLES.items()},
            **({"words": lambda: words(text)} if text.exists() else {}),
            "path": lambda: ([(i, i + 1) for i in range(999)], [[i // 100] for i in range(1000)])}
    for name in filter(wanted, made):
        write(folder, name, *made[name]())
        yield case_of(name, folder / f"{name}.edges.tsv", folder / f"{name}.labels.tsv")
    for name, form in LINKS.items():
        if wanted(name):
            hold_out(folder, name, distinct(rmat(*form)))
            yield case_of(name, folder / f"{name}.edges.tsv", folder / f"{name}.held.tsv")
    for labels in sorted((data / "graphs").glob("*.labels.tsv")):
        name = labels.name.split(".")[0]
        for edges in (data / "graphs").glob(f"{name}.edges.tsv*"):
            if wanted(name):
                yield case_of(name, edges, labels)


def case_of(name, edges, known):
    return name, (f"--corpus.path={edges}", "--corpus.format=graph"), known


def candidates(name):
    return CANDIDATES


def judge(program, run, case):
    """Returns the scores of a run, for each table.

    With labels: micro-F1, trained on 10% and on 50% of the labelled nodes. With held-out links: AUC and MRR, scored by cosine and by
    target against context (cross)."""
    known, found = case[2], {}
    for table in TABLES:
        asked = [program, "evaluate", run, f"--table={table}", "--device.backend=cpu"]
        if ".held." in known.name:
            said = subprocess.run([*asked, f"--edges={known}"], capture_output=True, text=True, check=True).stdout
            for score, auc, mrr in re.findall(r" (cosine|cross) auc (\S+) mrr (\S+)", said):
                found |= {f"{table} {score} auc": float(auc), f"{table} {score} mrr": float(mrr)}
        else:
            said = subprocess.run([*asked, f"--labels={known}", "--share=0.1,0.5"], capture_output=True, text=True, check=True).stdout
            for share, f1 in zip(("10%", "50%"), re.findall(r"micro-f1 (\S+)", said)):
                found[f"{table} micro-f1 {share}"] = float(f1)
    return found
