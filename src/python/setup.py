"""Builds the wheel: the modules of sptx/, and libsptx.so, the program and _calls.abi3.so, which the Makefile at the top makes.

One wheel serves every Python: its tag is py3-none-PLATFORM. _calls.abi3.so serves every CPython from 3.9 on, and the package does
without it where it cannot be loaded.
"""

import os
import re
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
SCRATCH = os.path.join(TOP, "build", "python", "setuptools")


def make(target, folder):
    """Has the Makefile put into a folder what belongs there."""
    os.makedirs(folder, exist_ok=True)
    jobs = [] if "MAKEFLAGS" in os.environ else ["-j%d" % (os.cpu_count() or 1)]
    subprocess.run(["make", "--no-print-directory", "-C", TOP, *jobs, target, "INTO=" + os.path.abspath(folder),
                    "PYTHON=" + sys.executable], check=True)


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
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

setup(
    version=version,
    packages=["sptx", "sptx.gensim", "sptx.gensim.models", "sptx.speedtorch"],
    package_data={"sptx": ["py.typed"]},
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": AnyPython},
    distclass=WithLibrary,
    options={"build": {"build_base": SCRATCH}, "egg_info": {"egg_base": SCRATCH}},
)
