"""Type annotations: every public name has them, and a program with types that uses the public names passes mypy --strict."""
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest
import sptx

PROGRAM = pathlib.Path(__file__).with_name("typed.py")


def test_a_program_with_types_passes_mypy(tmp_path):
    pytest.importorskip("mypy")
    package = str(pathlib.Path(sptx.__file__).parents[1])
    environment = dict(os.environ) if "site-packages" in package else {**os.environ, "MYPYPATH": package}
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports",
                           "--cache-dir=%s" % tmp_path, str(PROGRAM)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_that_program_uses_every_public_name():
    text = PROGRAM.read_text()
    assert [name for name in sptx.__all__ if not re.search(r"\b%s\b" % name, text)] == []


def public_functions():
    for name in sptx.__all__:
        public = getattr(sptx, name) if name not in ("torch", "gensim", "implicit", "lightfm", "speedtorch") else None
        if inspect.isfunction(public):
            yield name, public
        for attribute, member in vars(public).items() if inspect.isclass(public) else ():
            member = getattr(member, "__func__", member)
            if not attribute.startswith("_") and inspect.isfunction(member):
                yield name + "." + attribute, member


def test_public_functions_have_types():
    lacking = []
    for name, function in public_functions():
        wanted = [p.name for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")] + ["return"]
        lacking += ["%s: %s" % (name, word) for word in wanted if word not in function.__annotations__]
    assert lacking == []
