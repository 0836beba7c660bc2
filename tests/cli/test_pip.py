"""Runs README's `pip install ./src/python` in a fresh clone with a fresh virtual environment."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, SLOWER, clone

README = (ROOT / "README.md").read_text()
BUILD = ROOT / os.environ.get("BUILD", "build")
# The fresh environment borrows pip, setuptools and NumPy from the test environment, so that nothing is downloaded.
LENT = sorted((BUILD / "venv").glob("lib/python3*/site-packages"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A clone of the project that contains a fresh virtual environment, env."""
    if not LENT:
        pytest.skip(f"{BUILD} has no venv; scripts/setup.sh --tests brings it")
    directory = clone(tmp_path_factory.mktemp("pip"))
    subprocess.run([LENT[0].parents[2] / "bin/python", "-m", "venv", "--without-pip", directory / "env"], check=True)
    site = subprocess.run([directory / "env/bin/python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                          capture_output=True, text=True, check=True).stdout.strip()
    pathlib.Path(site, "lent.pth").write_text(f"{LENT[0]}\n")
    return directory


def typed(line, directory, **environment):
    """Runs a shell line in the clone with env active. pip gets -v, so that it shows the build's output."""
    # these are removed, because `make check` sets them
    of_make = ("MAKELEVEL", "MAKEFLAGS", "MFLAGS", "BUILD", "CUDA", "CUDA_ARCH")
    inherited = {name: value for name, value in os.environ.items() if name not in of_make}
    path = f"{directory}/env/bin:{os.environ['PATH']}"
    return subprocess.run(["bash", "-c", line.replace("pip install", "python -m pip install -v --no-build-isolation")],
                          cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600 * SLOWER,
                          env={**inherited, "PYTHONDONTWRITEBYTECODE": "1", "PATH": path, **environment})


def lend_objects(directory):
    """Copies the compiled objects to the clone, to save time, but no linked files. Objects with other flags are compiled again."""
    compiled = [path for folder in ("src", "kernels", "python") for path in (BUILD / folder).rglob("*.[do]")]
    for path in (*BUILD.glob("flags*"), BUILD / "about", *compiled):
        into = directory / "build" / path.relative_to(BUILD)
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, into)


@pytest.mark.parametrize("begin", ["objects", pytest.param("nothing", marks=pytest.mark.long)])
def test_pip_builds_for_this_machine_and_the_readme_runs(place, begin):
    shutil.rmtree(place / "build", ignore_errors=True)
    if begin == "objects":
        lend_objects(place)
    done = typed(re.search(r"^pip install [^#\n]*", README, re.M).group(), place)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    assert said.count("  LINK build/") >= 3 and said.count("  CC   ") >= (150 if begin == "nothing" else 0)
    if not os.path.exists("/dev/nvidia0"):
        assert said.count("sptx: this machine has no GPU, so the package is built for the CPU alone") == 1 and "NVCC" not in said
    block = re.search(r"^```python\n(.*?)^```", README, re.S | re.M).group(1)
    done = subprocess.run([place / "env/bin/python", "-c", block], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "blue_bike" in done.stdout.split("\n")[0] and (place / "friends.bin").stat().st_size > 0
    version = subprocess.run([place / "env/bin/sptx-w2v", "--version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith("sptx-w2v ")


@pytest.mark.parametrize("missing, package", [("compiler", "build-essential"), ("header", "libzstd-dev")])
def test_what_is_missing_is_said_with_the_script_that_brings_it(place, missing, package):
    compiler = place / "cc-without-zstd"
    compiler.write_text('#!/bin/bash\nin=$(cat)\ncase $in in *zstd.h*) exit 1 ;; esac\nprintf "%s\\n" "$in" | cc "$@"\n')
    compiler.chmod(0o755)
    done = typed("pip install ./src/python", place, CC="no-such-compiler" if missing == "compiler" else str(compiler))
    assert done.returncode != 0
    said = [line for line in done.stdout.splitlines() + done.stderr.splitlines() if "sptx: " in line]
    assert len(said) == 1 and package in said[0] and "scripts/setup.sh installs it on Debian and Ubuntu" in said[0], said
    if missing == "header":
        assert "build-essential" not in said[0]
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.long
def test_pip_installs_the_source_archive(place):
    typed("git init -q && git add . && git -c user.name=any -c user.email=any@localhost commit -q -m any", place)
    done = typed("make sdist && pip install build/sptx-*.tar.gz && env/bin/sptx-w2v --version", place)
    assert done.returncode == 0 and "sptx-w2v " in done.stdout, (done.stdout + done.stderr)[-3000:]
