"""Runs the examples of the READMEs as they are, one after the other, as a reader would."""

import re
import subprocess
import sys

import pytest

from conftest import TOP

pytestmark = pytest.mark.torch


def examples(path):
    """Returns the examples that need no run of the program's."""
    blocks = re.findall(r"```python\n(.*?)```", (TOP / path).read_text(), re.S)
    return [block for block in blocks if "import sptx" in block or "import numpy, sptx" in block]


def test_examples_run(tmp_path):
    by_hand = examples("src/python/README.md")
    assert len(by_hand) == 2 and examples("README.md") == by_hand[:1]
    code = "\n".join(by_hand) + "\nassert x.shape == (2, 2, 64) and len(books) == 200_000 and 0 < loss < 1"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert (tmp_path / "books.npy").exists()
