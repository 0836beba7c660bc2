"""Text for scripts/learning_curves: samples of real text and code, generated texts of word blocks, and how a run is scored.

Samples are scored against a reference, an SVD of the PPMI matrix of held-out text, for the 2,000 most frequent words that occur at
least 20 times there:
  held     share of a word's ten nearest words that are also its nearest in the reference
  own      the same, with a reference made from the training text
  related  percentile, 0..1, of the cosines to a word's three nearest words in the reference among random pairs' cosines
  random   mean cosine of random pairs; near 1 the vectors do not tell words apart
In a generated text each word belongs to one block; the score is the share of a word's nearest words that are in its block.
"""
import collections
import lzma
import pathlib
import random
import re
import sysconfig
import time

import numpy

SIZES = (20_000, 100_000, 300_000, 1_000_000, 3_000_000, 16_000_000)
BLOCKS = {  # name: words, blocks, tokens, words a sentence, share of tokens drawn from all blocks
    "blocks-40": (40, 4, 20_000, 10, 0), "blocks-40-tiny": (40, 4, 2_000, 10, 0), "blocks-40-noise": (40, 4, 20_000, 10, .4),
    "blocks-30-long": (30, 3, 60_000, 40, .5), "blocks-400": (400, 20, 20_000, 10, .3), "blocks-2000": (2000, 40, 100_000, 15, .4),
    "blocks-5000": (5000, 50, 1_000_000, 20, .4)}
TOP, HELD, DIM, WINDOW = 2000, 2_000_000, 100, 5


# ---- data ----

def packed(path):
    return lzma.open(path, "rt", encoding="utf-8").read()


def code():
    """Returns the source code of Python's standard library as text. Its files are in a random order, the same at each call."""
    files = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"))
    random.Random(1).shuffle(files)
    text = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)
    return [found for found in (re.findall(r"[A-Za-z_]\w*|\d+|[^\w\s]", line) for line in text.split("\n")) if found]


def sources(data):
    """Returns {name: sentences} of the texts that are available on this machine."""
    found = {"code": code()}
    for name, file in (("wiki16", "text/wiki16.txt.xz"), ("ukr", "text/eltec-ukr.txt.xz")):
        if not (data / file).exists():
            print(f"learning_curves: {data / file} is not there: no cuts of {name}")
            continue
        lines = [line.split() for line in packed(data / file).split("\n") if line.strip()]
        found[name] = [line[i:i + 1000] for line in lines for i in range(0, len(line), 1000)]
    return found


def cut(lines, tokens):
    out, count = [], 0
    for line in lines:
        if count >= tokens:
            break
        out.append(line[:tokens - count])
        count += len(out[-1])
    return out


def planted(words, blocks, tokens, length, noise):
    draw, size = random.Random(1), words // blocks
    for _ in range(tokens // length):
        block = draw.randrange(blocks) * size
        yield [f"w{draw.randrange(words) if draw.random() < noise else block + int(draw.random() ** 2 * size)}" for _ in range(length)]


# ---- the reference: an SVD of PPMI ----

def ppmi(lines, words):
    """Returns word vectors [words x dim]: an SVD of PPMI, with co-occurrences weighted by distance as in word2vec."""
    at, count = {word: i for i, word in enumerate(words)}, len(words)
    ids = numpy.fromiter((at.get(word, -1) for line in lines for word in line), numpy.int64)
    line = numpy.repeat(numpy.arange(len(lines)), [len(line) for line in lines])
    pairs = numpy.zeros(count * count)
    for far in range(1, WINDOW + 1):
        a, b = ids[:-far], ids[far:]
        kept = (a >= 0) & (b >= 0) & (line[:-far] == line[far:])
        pairs += numpy.bincount(a[kept] * count + b[kept], minlength=count * count) * (1 - (far - 1) / WINDOW)
    pairs = pairs.reshape(count, count)
    pairs += pairs.T
    rows, context = pairs.sum(1), pairs.sum(1) ** .75
    with numpy.errstate(all="ignore"):
        gain = numpy.log(pairs / (rows[:, None] * (context / context.sum())))
    gain[~numpy.isfinite(gain)] = 0
    values, vectors = numpy.linalg.eigh(numpy.maximum(gain, 0) / 2 + numpy.maximum(gain, 0).T / 2)
    kept = min(DIM, count // 2)
    return vectors[:, -kept:] * numpy.sqrt(numpy.maximum(values[-kept:], 0))


def nearest(rows, k):
    rows = rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    cosines = rows @ rows.T
    numpy.fill_diagonal(cosines, -9)
    return numpy.argsort(-cosines, axis=1)[:, :k], cosines


# ---- functions that scripts/learning_curves calls ----

def cases(folder, data, wanted):
    for name, lines in sources(data).items():
        if not any(wanted(f"{name}-{tokens}") for tokens in SIZES):
            continue
        held = cut(lines[len(lines) * 6 // 10:], HELD)
        known = collections.Counter(word for line in held for word in line)
        for tokens in SIZES:
            if tokens > sum(map(len, lines[:len(lines) * 6 // 10])) and tokens != SIZES[-1]:
                break
            if not wanted(f"{name}-{tokens}"):
                continue
            part = cut(lines, tokens)
            counts = collections.Counter(word for line in part for word in line)
            words = [word for word, count in counts.most_common() if count >= 5 and known[word] >= 20][:TOP]
            yield write(folder, f"{name}-{tokens}", part, {"words": words, "own": ppmi(part, words), "held": ppmi(held, words)})
    for name, shape in BLOCKS.items():
        if not wanted(name):
            continue
        words = [f"w{i}" for i in range(shape[0])]
        yield write(folder, name, list(planted(*shape)), {"words": words, "size": shape[0] // shape[1]})


def write(folder, name, lines, known):
    path = folder / f"{name}.txt"
    path.write_text("\n".join(map(" ".join, lines)) + "\n", encoding="utf-8")
    return name, [f"--corpus.path={path}"], {"lines": lines, **known}


def candidates(name):
    yield ""
    for subsample in ("0", "1e-3", "3e-4", "1e-4"):
        for epochs in ("5", "20"):
            for rate in ("0.025", "0.05", "0.1"):
                yield f"--examples.subsample={subsample} --train.epochs={epochs} --optimizer.lr={rate}"


def score(known, rows):
    """Returns the scores of word vectors. rows [words x dim]: vectors of known["words"], in that order."""
    found, cosines = nearest(rows, known["size"] - 1 if "size" in known else 10)
    apart = cosines[~numpy.eye(len(cosines), dtype=bool)]
    if "size" in known:
        block = numpy.arange(len(rows)) // known["size"]
        return {"block": float((block[found] == block[:, None]).mean()), "random": float(apart.mean())}
    shared = lambda other: float(numpy.mean([len(set(a) & set(b)) / len(a) for a, b in zip(found, nearest(other, 10)[0])]))
    close = nearest(known["held"], 3)[0]
    place = numpy.searchsorted(numpy.sort(apart), numpy.take_along_axis(cosines, close, 1)).mean() / len(apart)
    return {"own": shared(known["own"]), "held": shared(known["held"]), "related": float(place), "random": float(apart.mean())}


def judge(program, run, case):
    checkpoint = max(run.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    table = numpy.load(checkpoint / "target.npy", mmap_mode="r")
    at = {line.split("\t")[0]: row for row, line in enumerate((run / "vocab.tsv").open(encoding="utf-8"))}
    return score(case[2], numpy.array(table["weights"][[at[word] for word in case[2]["words"]]], numpy.float32))


def peers(case):
    """Yields gensim's scores with its defaults, for texts of up to a million tokens; longer texts would take minutes."""
    try:
        from gensim.models import Word2Vec
    except ImportError:
        return
    if sum(map(len, case[2]["lines"])) > 1_000_000:
        return
    for sg in (0, 1):
        began = time.time()
        model = Word2Vec(case[2]["lines"], sg=sg)
        yield f"gensim sg={sg}", score(case[2], model.wv[case[2]["words"]]), time.time() - began
