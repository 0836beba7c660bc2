#!/usr/bin/env python3
"""The same data, dim, window, negatives and epochs in gensim and here: quality and training time, a table for each data set.

  build/venv/bin/python scripts/compare_gensim.py --wiki16 TEXT --pairs FILE... --analogies FILE
      --gowalla TRAIN TEST --goodbooks TRAIN TEST --hep-th TRAIN TEST [--only NAME] [--epochs N] [--threads N]

TEXT is plain text, TRAIN and TEST are lists (a name, then items); corpora/README.md says where to get them. All four are
run, or the one that --only names. Both programs' vectors are scored by one scorer: gensim's own for words, and for items
recall, NDCG and hit rate at 20 as `sptx-w2v evaluate` defines them, whose figure for our vectors is asked for too and must
agree. Time is that of training alone: gensim's train() and the last "seconds" of our metrics.jsonl. A third line is our
program's own way: a window's words share their negatives, or, for items, no keys at all but dim (--epochs is not for it),
scored by `evaluate` alone, since lists have rows of their own then. A ratio is gensim's time by ours.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

try:
    import gensim
    import numpy
except ImportError as wrong:
    sys.exit(f"compare_gensim: {wrong}; scripts/setup.sh --tests brings it, and build/venv/bin/python has it")

NAMES = ("wiki16", "gowalla", "goodbooks", "hep-th")
WORDS = {"dim": 128, "window": 5, "negatives": 5, "subsample": 1e-4, "epochs": 5, "min_count": 5}
ITEMS = {"dim": 64, "window": 10, "negatives": 5, "subsample": 1e-3, "epochs": 20, "min_count": 1}
POWER, RATE, SENTENCE, PLACES = 0.75, 0.025, 1000, 20
TOLERANCE = 0.002  # between the two scorers of our vectors: ties and rounding


def read_lists(path):
    lists = {}
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            name, *items = line.split() or [None]
            if items:
                lists.setdefault(name, []).extend(items)
    return lists


# ---- scoring: {column: value} of gensim KeyedVectors ----


def score_lists(vectors, train, test):
    """Scores the held-out items of lists: a list's vector is the mean of its training items' unit vectors, and these items are no answers."""
    train, test = read_lists(train), read_lists(test)
    unit = vectors.vectors / numpy.maximum(numpy.linalg.norm(vectors.vectors, axis=1, keepdims=True), 1e-12)
    gains = 1 / numpy.log2(numpy.arange(2, PLACES + 2))
    test = {name: [item for item in items if item not in train.get(name, [])] for name, items in test.items()}
    sums, names = numpy.zeros(3), [name for name in test if name in train and test[name]]
    for name in names:
        own = [vectors.key_to_index[item] for item in train[name] if item in vectors.key_to_index]
        wanted = set(test[name])
        scores = unit @ unit[own].mean(axis=0) if own else numpy.zeros(len(unit), numpy.float32)
        scores[own] = -9
        top = numpy.argpartition(-scores, PLACES)[:PLACES]
        top = top[numpy.argsort(-scores[top], kind="stable")]
        hits = numpy.array([vectors.index_to_key[row] in wanted for row in top])
        sums += hits.sum() / len(wanted), (hits * gains).sum() / gains[: len(wanted)].sum(), hits.any()
    return dict(zip((f"recall@{PLACES}", f"ndcg@{PLACES}", f"hit@{PLACES}"), sums / len(names)))


def score_words(vectors, pairs, analogies):
    scores = {}
    for path in pairs:
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as tabbed:  # gensim wants one tab, and no other blank
            with open(path, encoding="utf-8") as file:
                tabbed.writelines("\t".join(line.split()) + "\n" for line in file if line.strip())
            tabbed.flush()
            scores[set_name(path)] = vectors.evaluate_word_pairs(tabbed.name, restrict_vocab=len(vectors))[1][0]
    for path in analogies:
        scores[set_name(path)] = vectors.evaluate_word_analogies(path, restrict_vocab=30000)[0]
    return scores


def set_name(path):
    return re.sub(r"\.txt$", "", os.path.basename(path))


# ---- the two programs: (KeyedVectors, seconds) ----


class Sentences:
    """Reads lists of words into memory. A text without line ends is split after every thousand words, as both programs do."""

    def __init__(self, path, lists):
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = (line.split()[lists:] for line in file)
            self.all = [line[at:at + SENTENCE] for line in lines for at in range(0, len(line), SENTENCE)]
        if lists:  # a list has no order: once a new one, as item2vec does
            shuffle = random.Random(1).shuffle
            for line in self.all:
                shuffle(line)

    def __iter__(self):
        return iter(self.all)


def run_gensim(path, lists, keys, threads):
    model = gensim.models.Word2Vec(
        sg=1, hs=0, vector_size=keys["dim"], window=keys["window"], negative=keys["negatives"], ns_exponent=POWER,
        sample=keys["subsample"], alpha=RATE, min_alpha=RATE * 1e-4, min_count=keys["min_count"], workers=threads, seed=1)
    sentences = Sentences(path, lists)
    model.build_vocab(sentences)
    began = time.monotonic()
    model.train(sentences, total_examples=model.corpus_count, epochs=keys["epochs"])
    return model.wv, time.monotonic() - began


def same_keys(lists, keys):
    said = {"model.dim": keys["dim"], "examples.mode": "window", "examples.window": keys["window"], "examples.shrink": "yes",
            "examples.subsample": keys["subsample"], "negatives.count": keys["negatives"], "negatives.power": POWER,
            "negatives.per": "pair", "optimizer.rule": "sgd", "optimizer.lr": RATE, "train.epochs": keys["epochs"],
            "train.update": "hogwild", "corpus.min_count": keys["min_count"], "corpus.max_sentence": SENTENCE}
    if lists:
        said["examples.shuffle_items"] = "yes"
    return said


def call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compare_gensim: {' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout


def run_ours(options, path, lists, keys, directory):
    config, run, out = (os.path.join(directory, name) for name in ("keys.ini", "run", "vectors.bin"))
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"[corpus]\nformat = {'lists' if lists else 'text'}\n")
    call([options.program, "train", config, f"--corpus.path=\"{path}\"", f"--run.dir={run}", "--overwrite",
          f"--device.backend={options.backend}", f"--device.threads={options.threads}"] +
         [f"--{key}={value}" for key, value in keys.items()])
    call([options.program, "export", run, "--format=word2vec-bin", f"--out={out}"])
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        seconds = [json.loads(line).get("seconds") for line in file]
    vectors = gensim.models.KeyedVectors.load_word2vec_format(out, binary=True, encoding="utf-8", unicode_errors="surrogateescape")
    return run, vectors, [value for value in seconds if value is not None][-1]


def evaluated(options, run, files, *score):
    """Returns recall, NDCG and hit rate of a run on lists, as `sptx-w2v evaluate` measures them."""
    said = call([options.program, "evaluate", run, f"--train={files[0]}", f"--held-out={files[1]}", f"--k={PLACES}", *score])
    return {name: float(value) for name, value in re.findall(r"(\S+@\d+) ([0-9.]+)", said)}


def check_scores(options, run, scores, lists, files):
    """Checks that `sptx-w2v evaluate` gives our vectors the same score."""
    if lists:
        ours = evaluated(options, run, files, "--score=target")
    else:
        said = call([options.program, "evaluate", run] + [f"--pairs={path}" for path in options.pairs] +
                    [f"--analogies={path}" for path in options.analogies])
        ours = {name: float(value) for name, value in re.findall(r"^(\S+) (?:rho|accuracy) ([0-9.]+)", said, re.M)}
    for name, value in ours.items():
        if abs(value - scores[name]) > TOLERANCE:
            sys.exit(f"compare_gensim: the scorers disagree on {name}: {scores[name]:.4f} here, {value:.4f} by evaluate")


# ---- a table ----


def compare(name, options, directory):
    lists, files = name != "wiki16", getattr(options, name.replace("-", "_"))
    keys = dict(ITEMS if lists else WORDS)
    keys["epochs"] = options.epochs or keys["epochs"]
    score = (lambda v: score_lists(v, *files)) if lists else (lambda v: score_words(v, options.pairs, options.analogies))
    print(f"\n{name}: " + ", ".join(f"{key} {value:g}" for key, value in keys.items()) + f"; {options.threads} threads", flush=True)
    rows = []
    print("gensim ..", file=sys.stderr, flush=True)
    vectors, theirs = run_gensim(files[0], lists, keys, options.threads)
    rows.append((f"gensim {gensim.__version__}", score(vectors), theirs))
    same = same_keys(lists, keys)
    best = ("this, no keys", {"model.dim": keys["dim"]}) if lists else ("this, shared negatives", {**same, "negatives.per": "example"})
    for label, own in (("this, the same keys", same), best):
        print(f"{label} ..", file=sys.stderr, flush=True)
        run, vectors, seconds = run_ours(options, files[0], lists, own, directory)
        if lists and own is not same:
            scores = evaluated(options, run, files)
        else:
            scores = score(vectors)
            check_scores(options, run, scores, lists, files)
        rows.append((label, scores, seconds))
    columns = list(rows[0][1])
    print("| program | " + " | ".join(columns) + " | training | ratio |\n" + "|---" * (len(columns) + 3) + "|")
    for label, scores, seconds in rows:
        values = " | ".join(f"{scores[column]:.4f}" for column in columns)
        print(f"| {label} | {values} | {seconds:.1f} s | {theirs / seconds:.1f} |", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wiki16", nargs=1, metavar="TEXT")
    for name in NAMES[1:]:
        parser.add_argument(f"--{name}", nargs=2, metavar=("TRAIN", "TEST"))
    parser.add_argument("--pairs", nargs="+", default=[], metavar="FILE", help="word pairs with human scores, for wiki16")
    parser.add_argument("--analogies", nargs="+", default=[], metavar="FILE", help="questions-words.txt, for wiki16")
    parser.add_argument("--only", choices=NAMES, metavar="NAME", help="one of " + ", ".join(NAMES))
    parser.add_argument("--epochs", type=int, metavar="N", help=f"of both programs; {WORDS['epochs']} for words, {ITEMS['epochs']} for items")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), metavar="N", help="of both programs (all cores)")
    parser.add_argument("--backend", choices=("cpu", "cuda", "auto"), default="cpu", help="of ours (cpu)")
    parser.add_argument("--program", default="build/sptx-w2v", metavar="PATH")
    options = parser.parse_args()
    options.names = [options.only] if options.only else list(NAMES)
    for name in options.names:
        files = getattr(options, name.replace("-", "_"))
        if not files:
            parser.error(f"--{name} {'TEXT' if name == 'wiki16' else 'TRAIN TEST'} is wanted, or --only another of {', '.join(NAMES)}")
        if name == "wiki16" and not (options.pairs or options.analogies):
            parser.error("--wiki16 wants --pairs FILE or --analogies FILE to be scored by")
        for path in files + (options.pairs + options.analogies if name == "wiki16" else []):
            if not os.path.isfile(path):
                sys.exit(f"compare_gensim: there is no file '{path}' for {name}; corpora/README.md says where to get it")
    if not os.access(options.program, os.X_OK):
        sys.exit(f"compare_gensim: there is no program '{options.program}'; make builds it")
    if options.threads < 1 or (options.epochs is not None and options.epochs < 1):
        parser.error("--threads and --epochs want a number of at least 1")
    return options


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="compare-gensim-") as directory:
        for name in options.names:
            compare(name, options, directory)


if __name__ == "__main__":
    main()
