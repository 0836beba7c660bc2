"""The project's documents and its sources must agree."""
import os
import re
import subprocess

import pytest

from conftest import ROOT, files_of_git

# The top of the repository is a handful of names, so that a newcomer sees at once where everything is.
TOP = {"Makefile", "README.md", "CONTRIBUTING.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "src", "kernels", "configs", "corpora", "scripts", "tests"}


def test_the_papers_have_the_version_of_the_header():
    version = re.search(r'define SPTX_VERSION "(.*)"', (ROOT / "src" / "sptx.h").read_text()).group(1)
    assert "version:" not in (ROOT / "CITATION.cff").read_text().replace("cff-version:", "")  # it is written in the header alone
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M).group(1) == version


def test_nothing_else_lies_at_the_top():
    listed = files_of_git()
    if listed is None:
        pytest.skip("without git the project's files are not told from those of the person who works in them")
    seen = {name.split("/")[0] for name in listed}
    assert {name for name in seen if not name.startswith(".")} == TOP


def test_the_container_has_what_make_reads(tmp_path):
    for name in re.findall(r"^COPY (\S+)", (ROOT / "scripts" / "Containerfile").read_text(), re.M):
        os.symlink(ROOT / name, tmp_path / name)
    done = subprocess.run(["make", "help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "make libsptx" in done.stdout, done.stderr


def rows_of(readme):
    """Returns the names in backticks in the tables of a README."""
    rows = "\n".join(line for line in (ROOT / readme).read_text().splitlines() if line.startswith(("|", "`")))
    return {cell.rstrip("/") for cell in re.findall(r"`([^`]+)`", rows)}


@pytest.mark.parametrize("folder, readme, is_named", [
    ("scripts", "scripts/README.md", os.path.isfile), ("scripts/results", "scripts/results/README.md", os.path.isfile),
    ("configs/notes", "configs/README.md", os.path.isfile), ("tests", "tests/README.md", os.path.isdir),
    ("src", "src/README.md", os.path.isdir)])
def test_the_map_of_a_folder_names_all_that_is_in_it(folder, readme, is_named):
    wanted = {path.name for path in (ROOT / folder).iterdir() if is_named(path)} - {"README.md", "__pycache__", ".pytest_cache"}
    assert wanted - rows_of(readme) == set(), f"{readme} has no row for them"


def test_papers_point_to_papers_that_are_there():
    papers = [ROOT / name for name in files_of_git() or [] if name.endswith((".md", ".ini"))]
    wanted = [(paper, name) for paper in papers for name in re.findall(r"\b((?:scripts/results|configs/notes)/\w+\.md)", paper.read_text())]
    assert [(paper.name, name) for paper, name in wanted if not (ROOT / name).exists()] == []


def test_the_kernels_map_names_each_file():
    """kernels/README.md names each file once, in the table of its folder."""
    text = (ROOT / "kernels" / "README.md").read_text()
    named = re.findall(r"`([\w.]+\.(?:c|h|cu|cuh|def))`", "\n".join(line for line in text.splitlines() if line.startswith("|")))
    there = [path.name for path in (ROOT / "kernels").rglob("*") if path.suffix in (".c", ".h", ".cu", ".cuh", ".def")]
    assert sorted(named) == sorted(there)
