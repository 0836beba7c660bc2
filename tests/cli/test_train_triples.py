"""examples.mode = triple: the product of a head's row and a relation's row predicts the tail."""
import json
import random
import re
import signal

import numpy
import pytest

from conftest import stop

KEYS = {"model": {"dim": 24}, "negatives": {"count": 30}, "train": {"batch": 200, "epochs": 6}}


def write(sptx, clusters=6, each=10, relations=5, seed=1):
    """Writes triples in which each relation leads from the entities of one cluster to entities of another."""
    leads = [random.Random(relation).sample(range(clusters), clusters) for relation in range(relations)]
    draw = random.Random(seed)
    lines = {(f"e{a}_{draw.randrange(each)}", f"r{r}", f"e{leads[r][a]}_{draw.randrange(each)}")
             for a in range(clusters) for r in range(relations) for _ in range(40)}
    sptx.path("corpus.txt").write_text("".join("\t".join(line) + "\n" for line in sorted(lines)))
    return len(lines)


def config(sptx, **sections):
    keys = {section: {**KEYS.get(section, {}), **sections.get(section, {})} for section in {**KEYS, **sections}}
    return sptx.config(corpus={"format": "triples", **sections.get("corpus", {})}, **{one: keys[one] for one in keys if one != "corpus"})


def held_out_losses(sptx):
    lines = [json.loads(line) for line in sptx.path("run", "metrics.jsonl").read_text().splitlines()]
    return [line[key] for line in lines for key in line if "held_out" in key and isinstance(line[key], float)]


@pytest.mark.parametrize("keys", [{}, {"negatives": {"count": "all"}}, {"train": {"product": "real", "loss": "logistic"}},
                                  {"triples": {"reciprocal": "no"}}, {"model": {"precision": "bfloat16"}},
                                  {"model": {"tied": "no"}}, {"train": {"relations": 2}},
                                  {"train": {"product": "translation", "relations": 1}}, {"train": {"product": "rotation", "relations": 1}}])
def test_nothing_depends_on_threads_depth_or_a_resume(sptx, keys):
    write(sptx)
    name = config(sptx, **keys, optimizer={"schedule": "constant"})
    sptx("train", name, "--run.dir=whole", "--device.threads=1", "--memory.depth=1")
    sptx("train", name, "--run.dir=other", "--device.threads=3", "--memory.depth=5")
    assert sptx.tables("other") == sptx.tables("whole")
    sptx("train", name, "--run.dir=half", "--train.epochs=0", "--train.steps=7")  # in the middle of an epoch
    sptx("train", name, "--run.dir=half", "--train.steps=0", "--resume")
    assert sptx.tables("half") == sptx.tables("whole")


@pytest.mark.parametrize("keys", [{}, {"negatives": {"count": "all"}}, {"train": {"product": "real"}}, {"train": {"loss": "logistic"}},
                                  {"train": {"product": "rotation"}}, {"train": {"relations": 1}},
                                  {"train": {"product": "rotation", "loss": "logistic", "relations": 0.5}},
                                  {"train": {"score": "cosine", "temperature": 0.1}}, {"triples": {"reciprocal": "no"}},
                                  {"model": {"tied": "no"}}])
def test_held_out_triples_are_predicted(sptx, keys):
    write(sptx)
    sptx("train", config(sptx, **{**keys, "train": {"held_out": 0.2, "epochs": 20, **keys.get("train", {})},
                                   "optimizer": {"schedule": "constant"}}))
    losses = held_out_losses(sptx)
    assert min(losses) < 0.9 * losses[0]


def test_each_key_changes_the_rows(sptx):
    write(sptx)
    sptx("train", config(sptx), "--run.dir=plain")
    for key in ("train.product=real", "train.product=rotation", "train.product=translation", "train.relations=0.1", "train.n3=0", "train.n3_warmup=0.5",
                "model.relation_init=normal 0 0.1", "negatives.count=all", "negatives.exclude=no", "train.loss=logistic",
                "triples.reciprocal=no", "model.tied=no"):
        sptx("train", config(sptx), "--run.dir=other", "--overwrite", f"--{key}")
        assert sptx.tables("other") != sptx.tables("plain"), key


def test_rows_of_relations_begin_as_they_are_told(sptx):
    write(sptx)
    sptx("train", config(sptx, model={"tied": "no", "context_init": "normal 0 0.05", "relation_init": "normal 0 0.4"}, optimizer={"lr": 1e-12}))
    target, context = (numpy.load(sptx.checkpoint() / name)["weights"] for name in ("target.npy", "context.npy"))
    entities = len(context)
    assert target[:entities].std() == pytest.approx(.001, rel=.1) and target[entities:].std() == pytest.approx(.4, rel=.2)
    assert context.std() == pytest.approx(.05, rel=.1)


def test_a_run_whose_penalty_rises_goes_on_after_a_signal(sptx):
    write(sptx)
    name = config(sptx, train={"n3": 0.3, "n3_warmup": 0.7, "epochs": 100}, model={"relation_init": "normal 0 0.4"})
    sptx("train", name, "--run.dir=whole")
    stop(sptx.start("train", name, "--run.dir=half", "--run.checkpoint_every=100 steps"), lambda: sptx.path("half", "latest").exists(), signal.SIGINT)
    sptx("train", name, "--run.dir=half", "--resume")
    assert sptx.tables("half") == sptx.tables("whole")


def test_patience_ends_a_run(sptx):
    write(sptx)
    said = sptx("train", config(sptx, train={"held_out": 0.2, "patience": 2, "epochs": 300, "n3": 0})).stderr
    losses = [float(line.split()[3]) for line in said.splitlines() if "after" in line and line.startswith("held out")]
    assert 3 <= len(losses) < 300 and losses[-3] == min(losses)
    assert f"held-out loss a pair {min(losses):.4f}" in said


def test_patience_ends_a_run_by_its_mrr(sptx):
    write(sptx)
    lines = sptx.path("corpus.txt").read_text().splitlines(True)
    sptx.path("held.txt").write_text("".join(lines[::9]))
    sptx.path("corpus.txt").write_text("".join(line for i, line in enumerate(lines) if i % 9))
    name = config(sptx, train={"evaluate": "held.txt", "patience": 2, "epochs": 300, "n3": 0}, optimizer={"schedule": "constant"})
    said = sptx("train", name).stderr
    mrrs = [float(line.split()[3]) for line in said.splitlines() if " after " in line and line.startswith("held out")][1:]  # without the untrained one
    assert 3 <= len(mrrs) < 300 and mrrs[-3] == max(mrrs)
    assert f"held-out MRR {max(mrrs):.4f}" in said
    assert f"mrr {max(mrrs):.4f} " in sptx("evaluate", "run", "--triples=held.txt").stdout
    sptx.path("other.txt").write_text(lines[0])
    assert "another train.evaluate" in sptx.refuses("train", name, "--train.evaluate=other.txt", "--resume")
    stop(sptx.start("train", name, "--run.dir=killed"), lambda: sptx.path("killed", "latest").exists(), signal.SIGKILL)
    sptx("train", name, "--run.dir=killed", "--resume")
    assert sptx.tables("killed") == sptx.tables("run")


def test_a_run_goes_on_without_its_held_out_file(sptx):
    write(sptx)
    sptx.path("held.txt").write_text(sptx.path("corpus.txt").read_text()[:400].rsplit("\n", 1)[0] + "\n")
    sptx("train", config(sptx), "--train.evaluate=held.txt")
    sptx.path("held.txt").unlink()
    sptx("train", config(sptx), "--train.epochs=8", "--resume")
    sptx("train", config(sptx), "--run.dir=other", "--train.epochs=8")
    assert sptx.checkpoint().name == sptx.checkpoint("other").name


def test_every_direction_is_an_example(sptx):
    triples = write(sptx)
    for reciprocal, directions in (("yes", 2), ("no", 1)):
        said = sptx("train", config(sptx), "--overwrite", f"--triples.reciprocal={reciprocal}").stderr
        assert f"{6 * directions * triples:,} pairs" in said


def test_the_plan_counts_the_scores(sptx):
    write(sptx, each=100)
    plans = {count: json.loads(sptx("plan", config(sptx), "--json", f"--negatives.count={count}").stdout) for count in (64, "all", 6400)}
    assert 200 * 6336 * 4 <= plans[6400]["work_bytes"] - plans[64]["work_bytes"] <= 200 * 6336 * 4 * 4
    assert plans[64]["work_bytes"] < plans["all"]["work_bytes"] < plans[6400]["work_bytes"]
    assert plans["all"]["batch_contexts"] == plans["all"]["rows"] - 10  # each entity; five relations have two rows
    assert "directions of triples" in sptx("plan", config(sptx)).stdout


@pytest.mark.parametrize("keys, words", [
    (["--train.loss=bpr"], ["softmax and logistic", "bpr"]),
    (["--model.dim=7"], ["model.dim = 7", "train.product = real"]),
    (["--negatives.per=example"], ["negatives.per = example", "whole batch"]),
    (["--train.batch=100000", "--negatives.count=65536"], ["2^31"]),
    (["--train.batch=100000000", "--negatives.count=all"], ["2^31", "negatives.count = all"]),
    (["--train.batch=300000000", "--train.relations=1", "--negatives.count=1"], ["2^31", "10 relations and reciprocals", "train.relations = 0"]),
    (["--device.ranks=2", "--train.score=cosine"], ["train.score = cosine", "one process", "there are 2", "train.score = dot"]),
    (["--device.ranks=13"], ["model.dim = 24", "12 complex numbers", "train.product = complex", "13"]),
])
def test_what_cannot_work_is_refused(sptx, keys, words):
    write(sptx)
    sentence = sptx.refuses("plan", config(sptx), *keys)
    assert all(word in sentence for word in words), sentence


def test_a_run_goes_on_with_more_triples(sptx):
    """With train.from, entities and relations begin with their rows in the older run."""
    write(sptx)
    sptx("train", config(sptx, train={"held_out": 0.2, "epochs": 20}))
    write(sptx, each=11, seed=2)
    sptx("train", config(sptx, train={"held_out": 0.2, "epochs": 1, "from": "run"}), "--run.dir=next")
    lines = [json.loads(line) for line in sptx.path("next", "metrics.jsonl").read_text().splitlines()]
    first = [line[key] for line in lines for key in line if "held_out" in key and isinstance(line[key], float)][0]
    assert first < held_out_losses(sptx)[0]


@pytest.mark.parametrize("before, now, wanted", [
    ([], ["--train.product=real"], "train.product = complex"),
    (["--train.product=real"], [], "train.product = real"),
    (["--train.product=rotation"], [], "train.product = rotation"),
    ([], ["--model.tied=no"], "model.tied = yes"),
    (["--model.tied=no"], [], "model.tied = no"),
])
def test_rows_that_another_product_trained_are_refused(sptx, before, now, wanted):
    write(sptx)
    sptx("train", config(sptx, train={"epochs": 1}), *before)
    more = [config(sptx, train={"epochs": 1}), "--train.from=run", "--run.dir=next"]
    assert f"was trained with {wanted}, and this run has another: set {wanted}" in sptx.refuses("train", *more, *now)
    sptx("train", *more, *now, f"--{wanted.replace(' ', '')}", *before)


def test_tune_judges_by_held_out_triples(sptx):
    write(sptx)
    name = config(sptx, corpus={"format": "triples", "columns": "1,2,3"})
    said = sptx("tune", name, "--trials=3", "--out=best.ini").stderr
    assert "best       MRR 0." in said and "warning" not in said
    sptx("train", "best.ini", "--overwrite")


@pytest.mark.parametrize("keys", [{}, {"model": {"tied": "no"}}, {"model": {"precision": "bfloat16"}}, {"triples": {"reciprocal": "no"}},
                                  {"train": {"product": "translation"}}])
def test_held_out_triples_are_ranked_from_memory_as_evaluate_ranks_them(sptx, keys):
    write(sptx)
    lines = sptx.path("corpus.txt").read_text().splitlines(keepends=True)
    sptx.path("corpus.txt").write_text("".join(lines[60:]))
    sptx.path("test.txt").write_text("".join(lines[:60]))
    name = config(sptx, **keys)
    done = sptx("train", name, "--train.evaluate=test.txt")
    said = re.findall(r"^held out   mrr (\S+) hits@10 (\S+) of 60 triples among \d+ entities after (\d+) epochs?$", done.stderr, re.M)
    assert [int(line[2]) for line in said] == [0, 1, 2, 3, 4, 5, 6] and done.stderr.count("columns    ") == 1
    found = sptx("evaluate", "run", "--triples=test.txt").stdout
    assert found.startswith(f"test mrr {said[-1][0]} ") and f" hits@10 {said[-1][1]} " in found
    metrics = [json.loads(line) for line in sptx.path("run", "metrics.jsonl").read_text().splitlines()]
    assert [line["held_out_mrr"] for line in metrics if "held_out_mrr" in line] == pytest.approx([float(line[0]) for line in said], abs=6e-5)
    plain = sptx.tables("run")
    sptx("report", "run", "--out=page.html")
    scored = json.loads(re.search(r'"scored":({.*?})', sptx.path("page.html").read_text())[1])
    assert scored["name"] == "MRR" and scored["score"] == pytest.approx([float(line[0]) for line in said], abs=6e-5)
    steps = str(2 * json.loads(sptx.path("run", "metrics.jsonl").read_text().splitlines()[-1])["step"] // 3 - 1)
    within = sptx("train", name, "--train.evaluate=test.txt", f"--train.steps={steps}", "--overwrite").stderr
    assert re.findall("^held out   mrr .* after (.*)$", within, re.M)[-1] == f"step {steps}"
    sptx("train", name, "--overwrite")
    assert sptx.tables("run") == plain  # ranking changes no row


def test_doubts_of_held_out_triples_are_said_once(sptx):
    write(sptx)
    lines = sptx.path("corpus.txt").read_text().splitlines(keepends=True)
    sptx.path("corpus.txt").write_text("".join(lines[40:]))
    sptx.path("test.txt").write_text("".join(lines[:43]) + "nobody\tr0\te0_0\ne0_0\tr99\te0_0\n")
    said = sptx("train", config(sptx), "--train.evaluate=test.txt").stderr
    unknown = "warning: 2 of 45 triples of 'test.txt' have a name that 'run' does not know: these count as misses\n"
    trained = "warning: 3 of 45 triples of 'test.txt' are ones that 'run' was trained on: finding them shows nothing"
    assert said.count(unknown) == said.count(trained) == 1 and said.count("warning") == 2
    assert said.index(unknown) < said.index("held out   mrr") > said.index(trained)
    sptx.path("test.txt").write_text("".join(lines[:40]))
    assert "warning" not in sptx("train", config(sptx), "--train.evaluate=test.txt", "--overwrite").stderr


def test_held_out_triples_may_be_of_another_form_than_the_corpus(sptx):
    write(sptx)
    lines = [line.split("\t") for line in sptx.path("corpus.txt").read_text().splitlines()]
    sptx.path("corpus.txt").write_text("".join("\t".join(line) + "\n" for line in lines[60:]))
    forms = {"test.tsv": "".join("\t".join(line) + "\n" for line in lines[:60]),
             "test.nt": "".join("<%s>\t<%s> <%s> .\n" % (*line,) for line in lines[:60]),
             "test.csv": "relation,head,tail\n" + "".join("%s,%s,%s\n" % (r, h, t) for h, r, t in lines[:60])}
    found = {}
    for name, text in forms.items():
        sptx.path(name).write_text(text)
        said = sptx("train", config(sptx), f"--train.evaluate={name}", "--overwrite").stderr
        scores = sptx("score", "run", f"--triples={name}", f"--validation={name}").stdout
        ranked = sptx("evaluate", "run", f"--triples={name}", f"--known={name}").stdout.replace(name, "")
        found[name] = re.findall("^held out .*", said, re.M), scores, ranked
    assert len(found["test.tsv"][0]) == 7 and found["test.nt"] == found["test.csv"] == found["test.tsv"]


@pytest.mark.parametrize("text, sentence", [
    (None, "cannot open 'test.txt'"), ("", "train.evaluate = test.txt holds no triple; wanted lines of head, relation, tail"),
    ("head\trelation\ttail\n", "train.evaluate = test.txt holds no triple"), ("a\tb\nc\td\n", "'test.txt' line 1: 2 columns"),
    ("nobody\tr0\tnoone\n", "no triple whose head, relation and tail")])
def test_a_wrong_file_of_held_out_triples_costs_no_run(sptx, text, sentence):
    write(sptx)
    if text is not None:
        sptx.path("test.txt").write_text(text)
    sptx("train", config(sptx))
    before = sptx.tables(), sorted(path.name for path in sptx.path("run").iterdir())
    for options in ["--overwrite=now"], ["--overwrite"], ["--run.dir=new"]:
        assert sentence in sptx.refuses("train", config(sptx), "--train.evaluate=test.txt", *options)
    assert (sptx.tables(), sorted(path.name for path in sptx.path("run").iterdir())) == before
    if "nobody" not in (text or ""):  # whether a name is known only the encoded corpus says, which the next try then finds
        assert not sptx.path("new").exists()
        assert sentence in sptx.refuses("plan", config(sptx), "--train.evaluate=test.txt", "--run.dir=new") and not sptx.path("new").exists()
    assert not sptx.path("new", "config.ini").exists()


def test_the_plan_knows_the_size_of_the_encoded_triples(sptx):
    write(sptx)
    sptx("train", config(sptx))
    assert json.loads(sptx("plan", config(sptx), "--json").stdout)["stream_bytes"] == sptx.path("run", "corpus.ids").stat().st_size


def test_a_run_is_measured_without_a_checkpoint(sptx):
    write(sptx)
    sptx.path("test.txt").write_text("".join(sptx.path("corpus.txt").read_text().splitlines(keepends=True)[:20]))
    kept = sptx("train", config(sptx), "--train.evaluate=test.txt").stderr
    done = sptx("train", config(sptx), "--train.evaluate=test.txt", "--run.checkpoint=no", "--run.dir=none").stderr
    assert re.findall("^held out .*", done, re.M) == re.findall("^held out .*", kept, re.M) != []
    assert "run.checkpoint = no): the rows are not kept" in done and not list(sptx.path("none").glob("checkpoint-*"))
    assert "holds no checkpoint" in sptx.refuses("evaluate", "none", "--triples=test.txt")
    assert "run.checkpoint = no: train.patience scores checkpoints" in sptx.refuses(
        "train", config(sptx), "--run.checkpoint=no", "--train.patience=2", "--train.held_out=0.1", "--run.dir=more")
    sptx.path("text.txt").write_text("a b c\n" * 50)
    assert "train.evaluate = test.txt are triples" in sptx.refuses("train", "--corpus.path=text.txt", "--train.evaluate=test.txt", "--run.dir=more")
    sptx.path("empty.txt").write_text("nobody\tr0\tnoone\n")
    assert "no triple whose head, relation and tail" in sptx.refuses("train", config(sptx), "--train.evaluate=empty.txt", "--run.dir=more")
    assert "missing.txt" in sptx.refuses("train", config(sptx), "--train.evaluate=missing.txt", "--run.dir=other")
