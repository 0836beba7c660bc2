"""The package in a program whose locale has a decimal comma, as R or a graphical toolkit may set it."""

import os
import subprocess
import sys
import textwrap

import decimal_comma

SCRIPT = textwrap.dedent("""
    import locale
    locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
    assert locale.localeconv()["decimal_point"] == ","
    import json, sys
    import sptx
    open("text.txt", "w").write("red green blue\\none two three four\\n" * 5000)
    heard = []
    def progress(p):
        heard.append(locale.localeconv()["decimal_point"])
    assert sptx.train(None, {
        "corpus.path": "text.txt", "run.dir": "run", "model.dim": 16, "optimizer.lr": 0.05, "optimizer.rule": "adagrad",
        "examples.subsample": 1e-2, "train.update": "batch", "train.batch": 500, "train.report_seconds": 0.01},
        progress=progress, device="cpu", threads=2)
    run = sptx.Run("run", device=sptx.Context("cpu", threads=2))
    assert {row for row, score in run.nearest("red", 2)}
    lines = [json.loads(line) for line in open("run/metrics.jsonl")]
    assert lines and all(0 <= line["done"] <= 1 for line in lines)
    assert "lr = 0.05" in open("run/config.ini").read()
    table = sptx.Table(10, 4, "sgd", lr=0.5, init="uniform -0.25 0.25", device=sptx.Context("cpu", threads=2))
    assert abs(table.fetch(range(10))).max() > 0
    try:
        table.lr = -0.5
        sys.exit("a negative rate was taken")
    except Exception as error:
        assert "-0.5" in str(error), error
    assert set(heard) == {","}, heard
    assert locale.localeconv()["decimal_point"] == ","
""")


def test_a_decimal_comma_changes_nothing(tmp_path):
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, env={**os.environ, **decimal_comma.environment(tmp_path)},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
