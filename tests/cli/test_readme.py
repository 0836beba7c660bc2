"""README.md, typed: every line that can be typed here, in order, in a fresh clone with the program built in it."""
import os
import re
import shutil
import subprocess

import pytest

from conftest import PROGRAM, ROOT, SLOWER, clone

README = (ROOT / "README.md").read_text()
TYPED = re.compile(r"(?:make|mpirun|sed|cp|pip|printf|scripts/\S+|(?:build/)?sptx-w2v) [^`\n]+")

# Lines that the test does not type: how each begins, and why.
LEFT_OUT = {
    "make demo": "builds everything and trains for minutes: typed by the long test",
    "make docs": "sets up Sphinx: .ci/run types it",
    "make check": "is what runs this test; with -long and -gpu likewise",
    "make sanitize": "builds everything anew and takes minutes",
    "make thread-sanitize": "builds everything anew and takes minutes",
    "make fuzz": "builds everything anew with clang and takes minutes",
    "make libsptx": "builds everything: typed by the long test",
    "make install": "builds everything: typed by the long test",
    "make wheel": "sets up and builds everything: typed by the long test of the wheel",
    "make uninstall": "tests/cli/test_install.py types it",
    "pip install": "installs into the Python that runs this: tests/cli/test_pip.py types it in a fresh environment",
    "build/sptx-w2v train my.ini --overwrite --device.gpus=2": "needs two GPUs",
}


def lines():
    """Returns the lines that README tells the reader to type, in order: from its blocks of code, and from code in its sentences
    and tables."""
    found = []
    for code, block in re.findall(r"^```\w*\n(.*?)^```|`([^`\n]+)`", README, re.S | re.M):
        for line in (code or block).splitlines():
            match = TYPED.match(line)
            if match:
                found.append(re.sub(r"\s{2,}(#.*|[a-z].*)?$", "", match.group()))
    return found


NEEDED = {"mpirun": "mpirun", "ARCH=aarch64": "aarch64-linux-gnu-gcc"}  # lines with such a word need a program that may be missing


def reason(line):
    return next((why for beginning, why in LEFT_OUT.items() if line.startswith(beginning)), None)


@pytest.fixture
def fresh(tmp_path):
    directory = clone(tmp_path)
    (directory / "build").mkdir()
    os.symlink(os.path.abspath(PROGRAM), directory / "build" / "sptx-w2v")
    return directory


def typed(line, directory, **environment):
    done = subprocess.run(["bash", "-c", line], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=590 * SLOWER, env={**os.environ, "HOME": str(directory),
                                                     "PATH": f"{directory}/build:{os.environ['PATH']}", **environment})
    assert done.returncode == 0, f"$ {line}\n{done.stdout[-1000:]}{done.stderr[-3000:]}"
    return done


def shorten(text, words):
    """README makes its corpus from all headers of the machine. A shorter text with the words that README asks for is enough for
    the test."""
    lines = text.read_text().splitlines(True)
    asked = [line for line in lines if any(f" {word} " in line for word in words)]
    text.write_text("".join((asked + lines)[:60]))


def train_less(config, epochs):
    """A few epochs show that a run over ranks works; more would take long with three processes on two cores."""
    shorter = re.sub(r"^epochs = \d+$", f"epochs = {epochs}", config.read_text(), flags=re.M)
    assert shorter != config.read_text()
    config.write_text(shorter)


def test_every_line_that_can_be_typed_works(fresh):
    todo = [line for line in lines() if not reason(line)]
    assert sum("sptx-w2v train" in line for line in todo) >= 7
    assert any(line.startswith("mpirun") for line in todo)
    words = re.search(r"nearest runs/my (.*?) --", "\n".join(todo)).group(1).split()
    for line in todo:
        if any(word in line and not shutil.which(program) for word, program in NEEDED.items()):
            continue
        if line.startswith("mpirun"):
            train_less(fresh / "my.ini", epochs=1)
        typed(line, fresh)
        if line.startswith("scripts/headers.sh"):
            shorten(fresh / line.split()[1], words)
    for file in ("runs/my/config.ini", "my.bin", "friends.bin"):
        assert (fresh / file).exists(), file
    assert "update = batch\n" in (fresh / "runs/my/config.ini").read_text()  # the last command that wrote the run was mpirun


def test_what_is_left_out_stands_in_the_readme():
    for beginning in LEFT_OUT:
        assert any(line.startswith(beginning) for line in lines()), beginning


def test_every_file_that_the_readme_names_is_there():
    for name in re.findall(r"`((?:configs|corpora|scripts|src|tests|kernels|\.ci)/[\w./-]*)`", README):
        assert (ROOT / name).exists(), name


def test_a_copy_of_the_quickstart_is_a_run_of_its_own_name(fresh):
    """The config of the demo can be copied: the run is named after the copy."""
    typed("cp configs/quickstart.ini my.ini && mkdir -p build/demo && scripts/headers.sh build/demo/headers.txt", fresh)
    shorten(fresh / "build/demo/headers.txt", ["sin"])
    typed("build/sptx-w2v train my.ini", fresh)
    assert (fresh / "runs/my/latest").exists()


def test_the_ratios_of_the_ten_figures_are_those_of_their_numbers():
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in README.split("## Ten figures")[1].split("\n## ")[0].splitlines()
            if line.startswith("|")][2:]
    with_ratio = [row for row in rows if row[3]]
    assert len(rows) == 10 and len(with_ratio) == 9
    for what, this, beside, ratio in with_ratio:
        measured, peer = float(this), float(re.search(r"[\d.]+$", beside).group())
        assert float(ratio) == pytest.approx(peer / measured if what.endswith("seconds") else measured / peer, rel=0.04), what


def test_the_readme_is_short():
    assert README.count("\n") <= 250


@pytest.mark.long
def test_what_builds_works_too(fresh):
    """Copies the objects that are built here, so that make has little to compile."""
    (fresh / "build" / "sptx-w2v").unlink()
    shutil.copytree(ROOT / "build", fresh / "build", dirs_exist_ok=True, symlinks=True,
                    ignore=shutil.ignore_patterns("venv*", "check", "asan", "tsan", "fuzz", "demo", "root*", "wheel"))
    typed("make demo", fresh, CUDA="no")
    assert (fresh / "build/demo/report.html").stat().st_size > 1 << 20
    typed("make libsptx && make install PREFIX=~/installed && installed/bin/sptx-w2v --version", fresh, CUDA="no")
