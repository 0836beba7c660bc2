"""The command sptx-w2v: the program that lies in the package, in place of this process."""

import os
import sys

from . import _build


def main() -> None:
    """Becomes the program, with this process's arguments: signals, exit codes and mpirun see the program alone."""
    path = os.path.join(_build.folder(), "sptx-w2v")
    try:
        os.execv(path, ["sptx-w2v", *sys.argv[1:]])
    except OSError as error:
        sys.exit("sptx-w2v: cannot run '%s': %s; 'make python' builds the package with it" % (path, error.strerror))
