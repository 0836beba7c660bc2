"""The runs under configs/: each config can be read, and those of the notebooks train smaller corpora as their comments say."""
import json
import math
import os
import random
import re
import subprocess

import pytest

from conftest import PROGRAM, ROOT, sentences

CONFIGS = sorted(path.name for path in (ROOT / "configs").glob("*.ini"))

# For each notebook's run: the kind of generated corpus, and its numbers of positives and negatives.
RUNS = {
    "lit2vec": ("books", 4, 128),
    "lit2vec-496-adamax": ("books", 4, 128),
    "research2vec": ("papers", 4, 132),
    "research2vec-tuned": ("papers", 4, 132),
    "papers-cs": ("papers", 4, 256),
    "word2vec-notebook": ("words", 4, 64),
}
ON_CPU = ["--device.backend=cpu", "--device.threads=2"]
LN2 = math.log(2)
WARNING = "sptx-w2v: warning: the loss has stayed within 1% of its untrained value"


def config_of(name):
    return ROOT / "configs" / f"{name}.ini"


def corpus(sptx, run, rows=4096, lists=1500, ending=".ids"):
    """Makes a smaller corpus for the run. Returns its path."""
    kind = RUNS[run][0]
    name = kind + (".txt" if kind == "words" else ending)
    sptx("generate", kind, f"--rows={rows}", f"--lists={lists}", f"--out={name}")
    if kind == "words":
        windows = subprocess.run([ROOT / "scripts/windows.sh", "2", sptx.path(name)], capture_output=True, check=True).stdout
        name = "words.windows"
        sptx.path(name).write_bytes(windows)
    return name


def train(sptx, run, path, *settings):
    return sptx("train", config_of(run), f"--corpus.path={path}", "--run.dir=run", "--overwrite", *ON_CPU, *settings)


def metrics(sptx):
    return [json.loads(line) for line in sptx.path("run", "metrics.jsonl").read_text().splitlines()]


def share(sptx, groups, *options):
    """Returns for each column of groups the share of neighbours in the same group, and the share by chance."""
    said = sptx("evaluate", "run", f"--groups={groups}", *options, "--device.backend=cpu").stdout
    found = re.findall(r"^\S+ column (\d) share@(\d+) (\S+) chance (\S+) asked (\d+)/(\d+)$", said, re.M)
    assert [line[0] for line in found] == [str(i + 1) for i in range(len(found))] and len(found) == said.count("\n")
    return [(float(line[2]), float(line[3])) for line in found]


# ---- the files ----

@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_parses_and_says_the_same_again(sptx, name):
    once = sptx("config", ROOT / "configs" / name).stdout
    sptx.path("again.ini").write_text(once)
    assert sptx("config", "again.ini").stdout == once


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_trains_over_ranks_as_it_stands(sptx, name):
    keys = ["config", ROOT / "configs" / name, "--device.ranks=3"]
    if "\nper = batch\n" in (ROOT / "configs" / name).read_text():
        assert "trained by one process" in sptx.refuses(*keys)
        keys += ["--negatives.per=example"]  # as the sentence in the config says
    assert "\nupdate = batch\n" in sptx(*keys).stdout


def test_every_run_has_a_config():
    assert set(RUNS) | {"text8"} <= {name[:-len(".ini")] for name in CONFIGS}


@pytest.mark.parametrize("name", RUNS)
def test_values_say_where_they_come_from(name):
    """Every few keys there must be a comment of the config's own above them."""
    text = config_of(name).read_text()
    for section in re.split(r"^\[", text, flags=re.M)[1:]:
        assert section.startswith("corpus]") or "\n# " in section, section


@pytest.mark.parametrize("name", [name for name in RUNS if name != "word2vec-notebook"])
def test_the_notebooks_places_can_be_switched_on(sptx, name):
    lines = config_of(name).read_text().splitlines()
    own = dict(line[2:].split(" = ") for line in lines if line.startswith("; "))
    assert own and set(own) <= {"target", "target_state", "context", "context_state"}
    switched = [f"{key} = {own[key]}" if (key := line.split(" = ")[0]) in own else line
                for line in lines if not line.startswith("; ")]
    sptx.path("own.ini").write_text("\n".join(switched) + "\n")
    said = sptx("config", "own.ini").stdout
    for key, place in own.items():
        assert f"\n{key} = {place}\n" in said
    assert own != {key: place for key, place in re.findall(r"^(target|context)(?:_state)? = (\w+)$", "\n".join(lines), re.M)}


# ---- what they train ----

@pytest.mark.parametrize("name", RUNS)
def test_a_run_trains_its_corpus_and_begins_at_ln_2_a_dot_product(sptx, name):
    _, positives, negatives = RUNS[name]
    done = train(sptx, name, corpus(sptx, name), "--train.epochs=0", "--train.steps=4", "--train.report_seconds=0.01")
    first = metrics(sptx)[0]
    terms = positives + negatives
    assert first["step"] == 0 and first["done"] == 0
    assert round(first["loss"] / first["loss_term"], 3) == terms  # number of dot products of an example
    assert abs(first["loss"] - terms * LN2) < 5e-4 * terms * LN2
    last = metrics(sptx)[-1]
    said = re.search(r"^loss       (\S+) a pair; untrained (\S+)$", done.stderr, re.M).groups()
    wanted = (last["loss_pair"], first["loss_pair"])
    assert [float(number) for number in said] == pytest.approx(wanted, rel=1e-5, abs=1e-4)
    assert round(last["loss"] / last["loss_pair"], 3) == positives
    assert WARNING not in done.stderr  # a dozen steps are too few for a warning


@pytest.mark.parametrize("name", ["lit2vec", "research2vec", "papers-cs"])
def test_a_run_trains_real_lists(sptx, name):
    """Trains on lines of names with the same keys, except corpus.path."""
    path = corpus(sptx, name, ending=".txt")
    assert sptx.path(path).read_text().splitlines()[0].split()[0][0] in "up"
    train(sptx, name, path, "--train.epochs=0", "--train.steps=5", "--model.dim=16")
    assert sptx("nearest", "run", {"books": "b1", "papers": "p1"}[RUNS[name][0]], "--k=3").stdout.count("\n") == 3


def test_windows_are_those_of_the_notebook(sptx):
    rng = random.Random(3)
    words = [f"w{rng.randrange(50)}" for _ in range(997)]
    text = "".join(word + rng.choice([" ", "\n", "  ", "\t", "\r\n"]) for word in words)
    sptx.path("text").write_bytes(text.encode())
    for width in (1, 2, 5):
        got = subprocess.run([ROOT / "scripts/windows.sh", str(width), sptx.path("text")], capture_output=True, check=True,
                             text=True).stdout
        assert got.splitlines() == [
            " ".join([words[at], *words[at - width:at], *words[at + 1:at + 1 + width]])
            for at in range(width, len(words) - width)]
    for wrong in (["0", sptx.path("text")], ["x", sptx.path("text")], ["2", sptx.path("absent")], []):
        assert subprocess.run([ROOT / "scripts/windows.sh", *wrong], capture_output=True).returncode in (1, 2)


# ---- a loss that stays where it began ----

def test_the_published_run_stays_at_its_plateau_and_says_so(sptx):
    """The run makes a single report, at its end, however fast the machine is."""
    done = train(sptx, "research2vec", corpus(sptx, "research2vec"), "--train.steps=110", "--train.report_seconds=1000",
                 "--model.dim=64", "--train.batch=64")
    assert done.stderr.count(WARNING) == 1
    assert re.search(re.escape(WARNING) + r", 23\.567\d a pair, to the end: the model is not learning; train\.reduction = mean divides "
                     r"optimizer\.lr = 0\.1 by the 64 examples of a batch: raise optimizer\.lr, or use sum\n", done.stderr)
    assert abs(metrics(sptx)[-1]["loss"] - 136 * LN2) < 0.01


def test_a_plateau_is_called_out_while_it_lasts(sptx):
    """The warning comes with the first report that is number 100 or later and past half of the run. A machine too slow for 100 reports
    warns at the end."""
    done = train(sptx, "research2vec", corpus(sptx, "research2vec"), "--train.steps=2500", "--optimizer.lr=0.001",
                 "--model.dim=64", "--train.batch=64", "--train.report_seconds=0.01")
    reports = [line["done"] for line in metrics(sptx)[1:]]
    due = [number for number, behind in enumerate(reports, 1) if number >= 100 and behind >= 0.5]
    when = f"for {due[0]} reports" if due else "to the end"
    assert done.stderr.count(WARNING) == 1
    assert re.search(re.escape(WARNING) + rf", [\d.]+ a pair, {when}: the model is not learning; ", done.stderr)


@pytest.mark.parametrize("name, settings", [
    ("lit2vec", ["--train.steps=300"]),
    ("lit2vec-496-adamax", ["--train.steps=300"]),
    ("research2vec-tuned", ["--train.epochs=10", "--train.batch=64"]),
    ("papers-cs", ["--train.epochs=25", "--train.batch=64"]),
    ("word2vec-notebook", ["--train.steps=150"]),
])
@pytest.mark.parametrize("every", ["0.01", "1000"])
def test_no_run_that_learns_is_called_a_plateau(sptx, name, settings, every):
    done = train(sptx, name, corpus(sptx, name), *settings, "--model.dim=64", f"--train.report_seconds={every}")
    lines = metrics(sptx)
    assert lines[-1]["loss_term"] < 0.9 * LN2
    assert "warning" not in done.stderr


def test_text_from_small_vectors_is_not_called_a_plateau(sptx):
    """word2vec's first values are near zero, so the loss stays near ln 2 for a long time. That is no plateau."""
    sptx.path("corpus.txt").write_text("\n".join(sentences(4000)) + "\n")
    for update in ("batch", "hogwild"):
        done = sptx("train", sptx.config(train={"update": update, "epochs": "6", "report_seconds": "0.01"}), "--overwrite")
        assert "the loss has stayed" not in done.stderr


# ---- what was planted ----

def test_the_tuned_run_finds_the_fields_that_the_published_one_does_not(sptx):
    path = corpus(sptx, "research2vec", rows=8192, lists=8192)
    found = {}
    for name, settings in (("research2vec", ["--train.steps=128"]), ("research2vec-tuned", ["--train.epochs=8"])):
        train(sptx, name, path, *settings, "--model.dim=48", "--train.batch=64")
        [found[name]] = share(sptx, f"{path}.groups.tsv", "--k=10")
    assert abs(found["research2vec"][0] - found["research2vec"][1]) < 0.05
    assert found["research2vec-tuned"][0] > 2 * found["research2vec-tuned"][1]


def test_books_find_series_and_genres(sptx):
    path = corpus(sptx, "lit2vec", rows=12288, lists=3000)
    train(sptx, "lit2vec", path, "--examples.targets=all", "--examples.shuffle=yes", "--optimizer.lr=0.05",
          "--train.batch=512", "--train.steps=0", "--train.epochs=3", "--model.dim=32", "--negatives.count=32")
    series, genres = share(sptx, f"{path}.groups.tsv", "--k=10", "--sample=500")
    assert series[0] > 5 * series[1]
    assert genres[0] > 1.3 * genres[1]


def test_groups_of_words(trained):
    trained("train", trained.config(train={"epochs": "20"}, optimizer={"lr": "0.05"}), "--overwrite")
    words = [line.split("\t")[0] for line in trained.path("run", "vocab.tsv").read_text().splitlines()]
    trained.path("topics.tsv").write_text("".join(f"{word}\t{word.split('w')[0]}\n" for word in words))
    [(found, chance)] = share(trained, "topics.tsv", "--k=5")
    assert found > 0.9 > 0.2 > chance
    random.Random(1).shuffle(words)
    trained.path("mixed.tsv").write_text("".join(f"{word} g{i % 10}\n" for i, word in enumerate(words)))
    [(found, chance)] = share(trained, "mixed.tsv", "--k=5")
    assert abs(found - chance) < 0.05
    said = trained.refuses("evaluate", "run", "--groups=absent.tsv")
    assert "absent.tsv" in said
    trained.path("wrong.tsv").write_text(f"{words[0]} a b\n{words[1]} a\n")
    said = trained.refuses("evaluate", "run", "--groups=wrong.tsv")
    assert said == "'wrong.tsv' line 2 has 1 groups behind its word, the first line 2"


def test_generating_does_not_depend_on_threads(sptx):
    made = set()
    for name, cores in (("one", {min(os.sched_getaffinity(0))}), ("all", os.sched_getaffinity(0))):
        for kind in ("books", "papers", "words"):
            for ending in ("txt", "ids"):
                sptx("generate", kind, "--rows=9000", "--lists=20000", f"--out={name}-{kind}.{ending}",
                     preexec_fn=lambda: os.sched_setaffinity(0, cores))
        for ending in ("txt", "zst"):
            sptx("generate", "graph", "--rows=9000", "--edges=20000", f"--out={name}-graph.{ending}",
                 preexec_fn=lambda: os.sched_setaffinity(0, cores))
        made.add(b"".join(path.read_bytes() for path in sorted(sptx.directory.glob(f"{name}-*"))))
    assert len(made) == 1


# ---- plans ----

def test_a_plan_for_a_gpu_that_is_not_here(sptx):
    path = corpus(sptx, "lit2vec")
    plan = ["plan", config_of("lit2vec"), f"--corpus.path={path}", "--run.dir=run", "--device.backend=cuda",
            "--memory.hot_rows=0"]
    roomy = json.loads(sptx(*plan, "--memory.gpu_budget=11GiB", "--json").stdout)
    assert roomy["fits"] is roomy["fits_gpu"] is roomy["fits_host"] is True and roomy["advice"] == ""
    assert (roomy["rows"], roomy["dim"], roomy["batch"], roomy["optimizer_arrays"]) == (4096, 400, 128, 1)
    assert roomy["target_place"] == "pinned" and roomy["context_place"] == "gpu"
    assert roomy["target_bytes"] == roomy["table_pinned_bytes"] == roomy["table_gpu_bytes"] == 4096 * 3200
    done = sptx(*plan, "--memory.gpu_budget=16MiB", "--json", expect=1)
    tight = json.loads(done.stdout)
    assert tight["fits"] is tight["fits_gpu"] is False and tight["fits_host"] is True
    assert tight["gpu_needed"] > tight["gpu_available"] == 16 << 20
    ids = 4 * roomy["tokens"] + 8 * (roomy["sentences"] + 1)  # if the ids do not fit the GPU, they are read over the link
    assert roomy["gpu_needed"] - tight["gpu_needed"] == ids
    assert tight["advice"] and done.stderr.endswith(f"the run does not fit: {tight['advice']}\n")
    if not json.loads(sptx("plan", *plan[1:4], "--json").stdout)["gpu_available"]:  # this machine has no GPU
        assert roomy["floor_pairs"] == 0  # the speed of copies is not known
        assert "  at most        unknown: " in sptx(*plan, "--memory.gpu_budget=11GiB").stdout
        assert "memory.gpu_budget = 11GiB" in sptx.refuses(*plan)
        assert "cuda" in sptx.refuses("train", *plan[1:], "--memory.gpu_budget=11GiB")


def test_a_plan_tells_what_lock_free_training_fetches(sptx):
    plan = ["plan", sptx.config(train={"update": "hogwild", "batch": None}, optimizer={"rule": "sgd"}),
            "--device.backend=cuda", "--memory.gpu_budget=1GiB", "--memory.hot_rows=0", "--memory.context=gpu"]
    told = "  over the link  100.0% of the target rows that it reads, one by one; "
    assert told in sptx(*plan, "--memory.target=pinned").stdout
    for settings in (["--memory.target=gpu"], ["--memory.target=pinned", "--memory.hot_rows=100000"],
                     ["--memory.target=pinned", "--train.update=batch"]):
        assert told[:15] not in sptx(*plan, *settings).stdout


# ---- scripts ----

def script(sptx, name, *arguments, **environment):
    done = subprocess.run([ROOT / "scripts" / name, *arguments], capture_output=True, text=True, timeout=250,
                          env={**os.environ, "SPTX_BIN": PROGRAM, "SPTX_WORK": str(sptx.path("work")), **environment})
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def test_the_memory_table(sptx):
    said = script(sptx, "memory_table.sh", "300MiB", SPTX_SCALE="2000").stdout
    widest = dict()
    for line in said[said.index("the widest rows"):].splitlines():
        if line.startswith("  "):
            label, dim = re.match(r"  (.*?)  +(\d+) ", line).groups()
            widest.setdefault(label, []).append(int(dim))
    assert len(widest["nothing pinned"]) == len(widest["targets and their state pinned"]) == 3
    for without, pinned in zip(widest["nothing pinned"], widest["targets and their state pinned"]):
        assert 0 < without <= pinned <= 4096


def test_the_comparison_with_speedtorch(sptx):
    few = ["lit2vec", "research2vec", "--device.backend=cpu", "--model.dim=8"]
    without = script(sptx, "compare_speedtorch.sh", *few, SPTX_SCALE="2000", SPTX_ANCHORS="").stdout
    assert "SpeedTorch is left out" in without
    rows = re.findall(r"^(lit2vec|research2vec) +(\d+) x 8 +(\d+) +([\d.]+) +\d+ +[\d.]+ +- +-$", without, re.M)
    assert [(name, int(count)) for name, count, _, _ in rows] == [("lit2vec", 1414), ("research2vec", 7443)]
    # Replaces the script by one that prints its lines. A ratio is their figure divided by ours.
    sptx.path("anchors").mkdir()
    sptx.path("anchors", "speedtorch_train.py").write_text(
        "import sys\n"
        "print('TRAIN pure PyTorch tuned, batch 4096, sampling on GPU, SGD (pairs/s x8): 1.00 ms/step 1 steps/s 5k pairs/s')\n"
        "print('TRAIN SpeedTorch, targets+Adamax state pinned, contexts on GPU: 9.0 ms/step 9 steps/s 2k pairs/s')\n"
        "print('TRAIN SpeedTorch, targets pinned, contexts on GPU, SGD: 9.0 ms/step 9 steps/s 4k pairs/s')\n")
    beside = script(sptx, "compare_speedtorch.sh", *few, SPTX_SCALE="2000", SPTX_ANCHORS=str(sptx.path("anchors"))).stdout
    for name, rate in (("lit2vec", 2000), ("research2vec", 4000)):
        examples, ours, theirs, ratio = re.search(
            rf"^{name} +\d+ x 8 +(\d+) +([\d.]+) +\d+ +[\d.]+ +([\d.]+) +(\d+)$", beside, re.M).groups()
        assert abs(float(theirs) - 4 * int(examples) / rate) < 0.06
        least, most = float(ours) - 0.006, float(ours) + 0.006  # our figure is printed with two digits
        assert float(theirs) / most - 1 < int(ratio) and (least <= 0 or int(ratio) < float(theirs) / least + 1)
    done = subprocess.run([ROOT / "scripts/compare_speedtorch.sh", "text8"], capture_output=True, text=True,
                          env={**os.environ, "SPTX_BIN": PROGRAM, "SPTX_WORK": str(sptx.path("work"))})
    assert done.returncode == 2 and "'text8'" in done.stderr


# ---- real data, where it lies beside the clone ----

def hold_out(lists, train, test, seed=31):
    """Moves a tenth of each list of ten items or more to `test`. Keys are chosen by these items, never by the test lists."""
    rng = random.Random(seed)
    with open(train, "w") as kept, open(test, "w") as held:
        for line in lists.read_text().splitlines():
            name, *items = line.split()
            out = set(rng.sample(range(len(items)), len(items) // 10))
            kept.write(" ".join([name] + [item for i, item in enumerate(items) if i not in out]) + "\n")
            if out:
                held.write(" ".join([name] + [item for i, item in enumerate(items) if i in out]) + "\n")


@pytest.mark.long
@pytest.mark.parametrize("name, lists, form", [("goodbooks", "items/goodbooks.train.txt", "lists"),
                                               ("hep-th", "papers/hep-th.train.txt", "adjacency")])
def test_a_config_is_no_worse_than_no_keys(sptx, name, lists, form):
    """Evaluates by evaluate's default score."""
    path = ROOT.parent / "shared" / "data" / lists
    if not path.exists():
        pytest.skip(f"there is no {path}: corpora/README.md says where such lists come from")
    hold_out(path, sptx.path("train"), sptx.path("test"))
    recall = {}
    for run, keys in (("config", [config_of(name)]), ("none", [f"--corpus.format={form}"])):
        sptx("train", *keys, "--corpus.path=train", f"--run.dir={run}", *ON_CPU, timeout=590)
        said = sptx("evaluate", run, "--train=train", "--held-out=test").stdout
        recall[run] = float(re.search(r"recall@20\s+(\S+)", said).group(1))
    assert recall["config"] >= recall["none"], recall
