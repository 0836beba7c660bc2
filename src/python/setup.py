"""Builds the wheel: the modules of sptx/, and libsptx.so, the program and _calls.abi3.so, which the Makefile at the top makes.

One wheel serves every Python: its tag is py3-none-PLATFORM. _calls.abi3.so serves every CPython from 3.9 on, and the package does
without it where it cannot be loaded.

`pip install ./src/python` builds for this machine: for its GPU if it has a GPU and nvcc, otherwise for the CPU alone. The
environment variables CUDA and CUDA_ARCH override this, with the same values as for make. `make python` and `make wheel` choose on
their own.
"""

import glob
import logging
import os
import re
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = HERE if os.path.exists(os.path.join(HERE, "Makefile")) else os.path.dirname(os.path.dirname(HERE))  # HERE: of `make sdist`
SCRATCH = os.path.join(TOP, "build", "python", "setuptools")


FROM_MAKE = "MAKELEVEL" in os.environ


def make(target, folder):
    """Calls the Makefile to put the package's files into a folder."""
    os.makedirs(folder, exist_ok=True)
    words = [] if FROM_MAKE else ["-j%d" % len(os.sched_getaffinity(0)), *for_this_machine()[0]]
    done = subprocess.run(["make", "--no-print-directory", "-C", TOP, *words, target, "INTO=" + os.path.abspath(folder),
                           "PYTHON=" + sys.executable])
    if done.returncode:
        sys.exit("sptx: make %s failed; what it printed is above" % target)


def for_this_machine():
    """Returns the arguments for make that choose CUDA or not, and a message that explains the choice."""
    if "CUDA" in os.environ or "CUDA_ARCH" in os.environ:
        return [], "CUDA or CUDA_ARCH in the environment says for which GPUs"
    if not glob.glob("/dev/nvidia[0-9]*"):
        return ["CUDA=no"], ("this machine has no GPU, so the package is built for the CPU alone; CUDA=yes in the environment builds it "
                             "for every GPU from a T4 on")
    if not shutil.which("nvcc") and not os.path.exists("/usr/local/cuda/bin/nvcc"):
        return ["CUDA=no"], ("this machine has a GPU but no nvcc, so the package is built for the CPU alone; nvcc is in NVIDIA's CUDA "
                             "Toolkit, 11.8 or later")
    return [], "the package is built for this machine's CPU and GPU"


def look():
    """Exits with an error message if the library cannot be compiled on this machine; otherwise prints what will be built."""
    done = subprocess.run([os.path.join(TOP, "scripts", "setup.sh"), "--look"], stdout=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        sys.exit("sptx: %s" % done.stdout.strip())
    print("sptx: " + for_this_machine()[1], flush=True)


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        if not FROM_MAKE:
            look()
        make("python-library", os.path.join(self.build_lib, "sptx"))


class AnyPython(bdist_wheel):
    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])

    def egg2dist(self, egginfo_path, distinfo_path):
        super().egg2dist(egginfo_path, distinfo_path)
        make("python-licenses", os.path.join(distinfo_path, "licenses"))


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


with open(os.path.join(TOP, "src", "sptx.h")) as header:
    version = re.search(r'define SPTX_VERSION "(.*)"', header.read()).group(1)
shutil.rmtree(SCRATCH, ignore_errors=True)  # otherwise a module that was deleted would stay in the wheel
os.makedirs(SCRATCH)

logging.disable(logging.INFO)  # hides setuptools' line for each copied file; the lines of the compiler stay
setup(
    version=version,
    packages=["sptx", "sptx.gensim", "sptx.gensim.models", "sptx.implicit", "sptx.lightfm", "sptx.speedtorch"],
    package_data={"sptx": ["py.typed"]},
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": AnyPython},
    distclass=WithLibrary,
    options={"build": {"build_base": SCRATCH}, "egg_info": {"egg_base": SCRATCH}},
)
