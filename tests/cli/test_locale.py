"""Numbers are written with a point, whatever the locale of the user or of the program that calls the library."""
import os
import re
import subprocess

import decimal_comma
import pytest

from conftest import ROOT


@pytest.fixture
def comma(tmp_path):
    """Returns the environment of a locale with a decimal comma, made in the test's own directory."""
    return {**os.environ, **decimal_comma.environment(tmp_path), "LC_ALL": "de_DE.UTF-8"}


def answers(sptx, env=None):
    """Returns what a run prints and writes, except for what depends on the clock and on other programs."""
    sptx("train", sptx.config(), "--overwrite", env=env)
    sptx("export", "run", "--format=glove-text", "--out=vectors.txt", env=env)
    written = [sptx.path("run", "config.ini").read_bytes(), sptx.path("vectors.txt").read_bytes(), *sptx.tables()]
    said = [sptx(*words, env=env).stdout for words in (["nearest", "run", "t1w1"], ["config"], ["plan", "run/config.ini", "--json"])]
    return written + [re.sub(r'"(host_)?(available|resident|disk_free)[^,]*', "", text) for text in said]


def test_a_decimal_comma_changes_nothing_of_the_program(sptx, comma):
    assert answers(sptx, comma) == answers(sptx)


# Only base/text.c reads a number from a text: the C library's functions follow the caller's locale.
READERS = re.compile(r"\b(strtod|strtof|strtold|atof|setlocale)\s*\(")


def test_numbers_are_read_in_one_place():
    found = [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for folder in ("src", "kernels")
             for path in (ROOT / folder).rglob("*") if path.suffix in (".c", ".h", ".cu", ".cuh", ".def")
             for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
             if READERS.search(line) and path.parent / path.stem != ROOT / "src" / "base" / "text"]
    assert not found, "\n".join(found)


# A thread that the program starts may write numbers, so it sets the program's own locale first.
def test_threads_that_write_take_the_programs_locale():
    silent = {"kernels/ranks/ranks.c", "kernels/cuda/ranks.cu"}  # these threads write no numbers
    for folder in ("src", "kernels"):
        for path in (ROOT / folder).rglob("*.c*"):
            text, name = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
            assert "pthread_create(" not in text or name in silent or "numbers_enter();" in text, name
