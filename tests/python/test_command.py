"""The program that lies in the package: the command sptx-w2v, and python -m sptx."""

import importlib.metadata
import os
import subprocess
import sys

import pytest

import sptx
from sptx import _program

pytestmark = pytest.mark.skipif(not os.path.exists(_program.PATH), reason="this package has no program beside its library")

COMMANDS = [[sys.executable, "-m", "sptx"], [os.path.join(os.path.dirname(sys.executable), "sptx-w2v")]]


@pytest.mark.parametrize("command", COMMANDS, ids=["module", "script"])
def test_the_command_is_the_program(command, tmp_path):
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "sptx-w2v " + sptx.__version__
    wrong = subprocess.run([*command, "trian"], capture_output=True, text=True)
    assert wrong.returncode == 2 and wrong.stderr == "sptx-w2v: there is no command 'trian'; did you mean 'train'?\n"
    (tmp_path / "words").write_text("a b c d\n" * 20)
    subprocess.run([*command, "train", "--quiet", "--corpus.path=words", "--corpus.min_count=1"], cwd=tmp_path, check=True)
    assert sorted(sptx.Run(tmp_path / "runs" / "words", device="cpu").words) == ["a", "b", "c", "d"]


def test_the_package_has_the_licences_of_what_is_linked_in():
    names = {os.path.basename(str(path)) for path in importlib.metadata.files("sptx") if "licenses" in str(path)}
    assert "LICENSE" in names
    if os.path.exists("/usr/share/doc/libzstd-dev/copyright"):
        assert {name + "-dev.txt" for name in ("libinih", "librandom123", "zlib1g", "libzstd", "liblzma", "libxxhash")} <= names
