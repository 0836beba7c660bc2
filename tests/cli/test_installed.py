"""What users install: `make install` and `make uninstall` into directories of the tests, and the wheel."""
import os
import shutil
import subprocess

import pytest

from conftest import PROGRAM, ROOT, SLOWER

BUILD = os.path.dirname(PROGRAM)
MISSING = [name for name in ("libsptx.so", "libsptx.a", "sptx.pc") if not os.path.exists(os.path.join(BUILD, name))]

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(MISSING), reason=f"{BUILD} has no {', '.join(MISSING)}")]


def make(*words):
    subprocess.run(["make", "--no-print-directory", f"BUILD={BUILD}", *built_like_this(), *words], cwd=ROOT, check=True,
                   capture_output=True, timeout=600 * SLOWER)


def built_like_this():
    """Returns the variables with which the program was built, so that make finds nothing to build again."""
    about = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    return ["CUDA=no"] if "\nCUDA    no\n" in about else []


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize("destdir", [True, False])
def test_uninstall_takes_away_what_install_brought(sptx, destdir):
    root, prefix = sptx.path("root"), "/usr" if destdir else str(sptx.path("root"))
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "theirs").write_text("of somebody else\n")
    where = [f"PREFIX={prefix}"] + ([f"DESTDIR={root}"] if destdir else [])
    top = root / "usr" if destdir else root
    make("install", *where)
    there = tree(top)
    for name in ("bin/sptx-w2v", "include/sptx.h", "lib/libsptx.so", "lib/libsptx.so.1", "lib/libsptx.a", "lib/pkgconfig/sptx.pc",
                 "share/man/man1/sptx-w2v.1", "share/bash-completion/completions/sptx-w2v", "share/zsh/site-functions/_sptx-w2v"):
        assert name in there, name
    assert (top / "lib/pkgconfig/sptx.pc").read_text().startswith(f"prefix={prefix}\n")
    assert (top / "share/man/man1/sptx-w2v.1").read_text() == sptx("help", "man").stdout
    installed = str(top / "bin" / "sptx-w2v")
    assert subprocess.run([installed, "--version"], capture_output=True, text=True).stdout == sptx("--version").stdout
    make("uninstall", *where)
    assert tree(root) == ["bin/theirs"]
    assert not (top / "lib" / "sptx").exists()


def test_the_wheel_serves_a_bare_system(sptx):
    """Tries the wheel in a fresh root without compiler, headers or this build (scripts/try_wheel.sh). The wheel has its own build
    directory, since it is compiled for more GPUs than this machine's."""
    build = str(sptx.path("build"))
    done = subprocess.run(["make", "--no-print-directory", f"BUILD={build}", "CUDA=no", "wheel"], cwd=ROOT, capture_output=True,
                          text=True, timeout=1200 * SLOWER)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    done = subprocess.run(["scripts/try_wheel.sh", str(sptx.path("root"))], cwd=ROOT, env={**os.environ, "BUILD": build},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900 * SLOWER)
    shutil.rmtree(sptx.path("root"), ignore_errors=True)  # pytest would keep these hundreds of megabytes
    if done.returncode == 3:
        pytest.skip(done.stderr.strip().split("\n")[-1])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    seconds = int(done.stdout.rstrip().split("\n")[-1].split(": ")[-1].split()[0])
    assert seconds < 60 * SLOWER
