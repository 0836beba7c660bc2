"""The program in the package, as the command sptx-w2v and as python -m sptx, and which of two builds is chosen."""

import glob
import importlib.metadata
import json
import os
import subprocess
import sys

import pytest

import sptx
from sptx import _build

has_program = pytest.mark.skipif(not os.path.exists(os.path.join(_build.PACKAGE, "sptx-w2v")),
                                 reason="this package has no program beside its library")

COMMANDS = [[sys.executable, "-m", "sptx"], [os.path.join(os.path.dirname(sys.executable), "sptx-w2v")]]


@has_program
@pytest.mark.parametrize("command", COMMANDS, ids=["module", "script"])
def test_the_command_is_the_program(command, tmp_path):
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "sptx-w2v " + sptx.__version__
    wrong = subprocess.run([*command, "trian"], capture_output=True, text=True)
    assert wrong.returncode == 2 and wrong.stderr == "sptx-w2v: there is no command 'trian'; did you mean 'train'?\n"
    (tmp_path / "words").write_text("a b c d\n" * 20)
    subprocess.run([*command, "train", "--quiet", "--corpus.path=words", "--corpus.min_count=1"], cwd=tmp_path, check=True)
    assert sorted(sptx.Run(tmp_path / "runs" / "words", device="cpu").words) == ["a", "b", "c", "d"]


@has_program
def test_the_package_has_the_licences_of_what_is_linked_in():
    names = {os.path.basename(str(path)) for path in importlib.metadata.files("sptx") if "licenses" in str(path)}
    assert "LICENSE" in names
    if os.path.exists("/usr/share/doc/libzstd-dev/copyright"):
        assert {name + "-dev.txt" for name in ("libinih", "librandom123", "zlib1g", "libzstd", "liblzma", "libxxhash")} <= names
    listed, = (path for path in importlib.metadata.files("sptx") if path.name == "sptx.cdx.json")
    bill = json.loads(listed.read_text())
    assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["version"] == sptx.__version__
    assert {"inih", "Random123", "zlib", "zstd", "liblzma", "xxhash"} <= {part["name"] for part in bill["components"] if part["version"]}
    if glob.glob(os.path.join(_build.PACKAGE, "cuda[0-9]*")):  # the package contains builds for two CUDA Toolkits
        assert len([name for name in names if name.startswith("CUDA-")]) == 2


def test_the_newest_build_that_the_driver_knows_is_taken(tmp_path, monkeypatch):
    def taken(driver):
        monkeypatch.setattr(_build, "driver", lambda: driver)
        return os.path.basename(_build.folder(str(tmp_path / "package")))

    (tmp_path / "package").mkdir()
    assert taken(13) == "package"
    for name in ("cuda9", "cuda13"):
        (tmp_path / "package" / name).mkdir()
    assert [taken(driver) for driver in (0, 8, 9, 12, 13, 14)] == ["package", "package", "cuda9", "cuda9", "cuda13", "cuda13"]


def test_one_build_asks_no_driver(tmp_path, monkeypatch):
    monkeypatch.setattr(_build, "driver", lambda: pytest.fail("the driver was asked"))
    assert _build.folder(str(tmp_path)) == str(tmp_path)


def test_a_driver_says_the_cuda_that_it_knows():
    assert 0 <= _build.driver() < 100
