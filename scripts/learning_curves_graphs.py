"""Graphs for scripts/learning_curves: generates them, lists the keys to try, and scores a run.

Each graph is a file of edges and a file of labels (in each line a node and its labels) or of held-out links, which training does
not see. Generated graphs replace public ones that may not be redistributed: dense graphs with several labels a node (blogs,
proteins, products), and small graphs whose labels are roles instead of communities (airports), where long training hurts.
"""
import collections
import pathlib
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


def words(text, most=4800, tokens=190000):
    """Generates a graph of words: links join words at most 2 apart in a text; a word's label is its ending, such as 'ing'."""
    text = text.split()[:tokens]
    number = {word: i for i, (word, _) in enumerate(collections.Counter(text).most_common(most))}
    edges = [(number[a], number[b]) for near in (1, 2) for a, b in zip(text, text[near:]) if a in number and b in number]
    endings = ["ing", "ed", "ly", "tion", "ity", "er", "ian", "al", "ic", "ous", "es", "s"]
    return edges, [[i for i, end in enumerate(endings) if word.endswith(end) and len(word) > len(end) + 2][:1] for word in number]


def write_edges(path, edges):
    edges = numpy.sort(numpy.asarray(edges), 1)
    numpy.savetxt(path, numpy.unique(edges[edges[:, 0] != edges[:, 1]], axis=0), "%d", delimiter="\t")


def write(folder, name, edges, labels=()):
    write_edges(folder / f"{name}.edges.tsv", edges)
    lines = ["%d\t%s\n" % (node, "\t".join(map(str, of))) for node, of in enumerate(labels) if len(of)]
    if lines:
        (folder / f"{name}.labels.tsv").write_text("".join(lines))


def hold_out(folder, name, edges, share=.2, seed=0):
    """Splits edges into training links and held-out links. A spanning forest stays in training: no node loses all its links."""
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
    numpy.savetxt(folder / f"{name}-links.held.tsv", edges[held], "%d", delimiter="\t")
    numpy.savetxt(folder / f"{name}-links.edges.tsv", numpy.delete(edges, held, 0), "%d", delimiter="\t")


def make(folder):
    """Writes all generated graphs, which need no downloaded data."""
    folder = pathlib.Path(folder)
    for name, form in LABELS.items():
        write(folder, name, *planted(*form))
    for name, form in ROLES.items():
        write(folder, name, *roles(*form))
    for name, form in {"rmat-sparse": (14, 60000, 1), "rmat-dense": (12, 130000, 2)}.items():
        write(folder, name, rmat(*form))
        hold_out(folder, name, numpy.loadtxt(folder / f"{name}.edges.tsv", int))
    write(folder, "star", [(0, leaf) for leaf in range(1, 501)])
    write(folder, "path", [(i, i + 1) for i in range(999)], [[i // 100] for i in range(1000)])


def curve(program, folder, name, keys, device="auto"):
    """Trains on one graph with these keys, and returns the scores from judge()."""
    run = pathlib.Path(folder) / "run"
    edges = pathlib.Path(folder) / f"{name}.edges.tsv"
    subprocess.run([program, "train", f"--corpus.path={edges}", "--corpus.format=graph", f"--run.dir={run}", "--overwrite",
                    f"--device.backend={device}", *keys.split()], capture_output=True, check=True)
    return judge(program, run, edges)


def judge(program, run, edges, tables=("target", "normsum", "propagated")):
    """Returns the scores of a run, for each table in `tables`.

    With labels: micro and macro F1, trained on 10% and on 50% of the labelled nodes. With held-out links: AUC and MRR, scored by
    cosine and by target against context (cross)."""
    edges, found = str(edges), {}
    for table in tables:
        asked = [program, "evaluate", run, f"--table={table}", "--device.backend=cpu"]
        held, labels = (pathlib.Path(edges.replace(".edges.", f".{kind}.")) for kind in ("held", "labels"))
        if held.exists():
            said = subprocess.run([*asked, f"--edges={held}"], capture_output=True, text=True, check=True).stdout
            found[table] = re.findall(r" (?:cosine|cross) auc (\S+) mrr (\S+)", said)
        elif labels.exists():
            said = subprocess.run([*asked, f"--labels={labels}", "--share=0.1,0.5"], capture_output=True, text=True, check=True).stdout
            found[table] = re.findall(r"micro-f1 (\S+) .*?macro-f1 (\S+)", said)
    return found
