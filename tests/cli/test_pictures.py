"""The scripts that draw pictures: a picture shows all of a run, and a mistake prints one sentence."""
import json
import math
import subprocess
import sys
import xml.etree.ElementTree

import numpy
import pytest

from conftest import ROOT, SLOWER

image = pytest.importorskip("matplotlib.image")
pytest.importorskip("sklearn", reason="scikit-learn is missing; scripts/setup.sh --tests installs it")


def script(program, name, *arguments, expect=0):
    done = subprocess.run([sys.executable, ROOT / "scripts" / name, *map(str, arguments)], cwd=program.directory,
                          capture_output=True, text=True, timeout=120 * SLOWER)
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def texts(path):
    """Returns the texts in an SVG. matplotlib draws letters as shapes, and writes the text itself in a comment."""
    parser = xml.etree.ElementTree.XMLParser(target=xml.etree.ElementTree.TreeBuilder(insert_comments=True))
    tree = xml.etree.ElementTree.parse(path, parser)
    return {node.text.strip() for node in tree.iter() if node.tag is xml.etree.ElementTree.Comment}


def assert_drawn(path):
    pixels = image.imread(path)
    assert min(pixels.shape[:2]) > 800
    assert 0.001 < (pixels[:, :, :3].min(axis=2) < 0.9).mean() < 0.5
    assert not [name for name in path.parent.iterdir() if name.name.endswith(".partial")]


def test_loss(sptx):
    sptx("train", sptx.config(train={"held_out": "0.1", "epochs": "4"}))
    assert script(sptx, "plot_run.py", "run").stdout == "run/metrics.png\n"
    assert_drawn(sptx.path("run", "metrics.png"))
    script(sptx, "plot_run.py", "run", "--out=loss.svg")
    lines = [json.loads(line) for line in sptx.path("run", "metrics.jsonl").read_text().splitlines()]
    assert any("held_out_loss_pair" in line and line["done"] for line in lines)
    terms = numpy.median([line["loss_untrained"] * line["loss_pair"] / line["loss"] / math.log(2)
                          for line in lines if "loss" in line])
    assert 5.9 < terms < 6.01  # six terms: a positive and five negatives
    assert {"loss a pair", "held out", "share of the run done",
            f"untrained: {terms * math.log(2):.4g} = {terms:.3g} ln 2"} <= texts(sptx.path("loss.svg"))


def test_a_held_out_score_has_a_panel_of_its_own(trained):
    with open(trained.path("run", "metrics.jsonl"), "a") as file:
        file.write('{"step": 12, "epoch": 1, "done": 1.0, "held_out_mrr": 0.25}\n')
    script(trained, "plot_run.py", "run", "--out=scored.svg")
    assert "held-out MRR" in texts(trained.path("scored.svg"))


def test_loss_of_a_run_that_was_killed(trained):
    with open(trained.path("run", "metrics.jsonl"), "a") as file:
        file.write('{"step": 12, "lo')
    done = script(trained, "plot_run.py", "run")
    assert "is not whole, left out" in done.stderr
    assert_drawn(trained.path("run", "metrics.png"))


def test_map(trained):
    done = script(trained, "plot_map.py", "run", "--top=80", "--perplexity=10")
    assert done.stdout.startswith("run/map.png\n")
    assert_drawn(trained.path("run", "map.png"))


def test_map_with_titles_and_groups(trained):
    words = [line.split("\t")[0] for line in trained.path("run", "vocab.tsv").read_text().splitlines()]
    trained.path("titles.tsv").write_text("".join(f"{word}\tBook $ of {word}\n" for word in words))
    trained.path("groups.tsv").write_text("".join(f"{word}\t{i}\ttopic {word.split('w')[0]}\n"
                                                  for i, word in enumerate(words) if not word.startswith("t9")))
    script(trained, "plot_map.py", "run", "--top=100", "--method=pca", "--titles=titles.tsv", "--groups=groups.tsv",
           "--group-column=3", "--out=map.svg")
    written = texts(trained.path("map.svg"))
    assert {f"topic t{i}" for i in range(9)} | {"others"} <= written
    named = {f"Book $ of {word}" for word in words} & {text.replace("\\", "") for text in written}
    assert len(named) > 20
    assert any(text.startswith("component 1 (") for text in written)


def test_map_of_an_export(trained):
    names = {}
    for out, format in (("v.bin", "word2vec-bin"), ("v.txt", "word2vec-text"), ("run", None)):
        if format:
            trained("export", "run", f"--format={format}", f"--out={out}")
        script(trained, "plot_map.py", out, "--top=50", "--method=pca", f"--out={out}.svg")
        names[out] = texts(trained.path(f"{out}.svg")) - {f"{out}: the 50 most frequent, PCA"}
    assert len(names["run"]) > 20
    assert names["v.bin"] == names["v.txt"] == names["run"]


@pytest.mark.parametrize("arguments, sentence", [
    (["plot_run.py", "nowhere"], "'nowhere/metrics.jsonl' is not there; RUN is the directory that train wrote"),
    (["plot_run.py", "run", "--out=loss.doc"], "'loss.doc' should end in .png, .svg or .pdf"),
    (["plot_run.py", "run", "--out=nowhere/loss.png"], "cannot write 'nowhere/loss.png': No such file or directory"),
    (["plot_map.py", "nowhere"], "'nowhere' cannot be read as word2vec-text: "),
    (["plot_map.py", "corpus.txt"], "'corpus.txt' cannot be read as word2vec-text: "),
    (["plot_map.py", "run/vocab.tsv", "--out=map.doc"], "'map.doc' should end in .png, .svg or .pdf"),
    (["plot_map.py", "."], "'.' is not a run directory with a checkpoint: "),
    (["plot_map.py", "run", "--titles=nowhere"], "cannot read 'nowhere': No such file or directory"),
    (["plot_map.py", "run", "--titles=corpus.txt"],
     "'corpus.txt' line 1 has no column 2; columns have TABs between"),
    (["plot_map.py", "run", "--groups=strangers.tsv"], "'strangers.tsv' has a group for none of the 300 words"),
])
def test_one_sentence(trained, arguments, sentence):
    trained.path("strangers.tsv").write_text("nobody\t1\n")
    done = script(trained, *arguments, expect=1)
    assert done.stdout == ""
    assert done.stderr.startswith(f"{arguments[0][:-3]}: {sentence}") and done.stderr.count("\n") == 1
    assert not [path for path in trained.directory.rglob("*") if path.suffix in (".png", ".doc", ".partial")]
