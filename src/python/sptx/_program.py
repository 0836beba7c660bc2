"""The command sptx-w2v: replaces this process by the program in the package."""

import os
import sys

from . import _build


def main() -> None:
    """Replaces this process by the program, with the same arguments, so that signals, exit codes and mpirun work as without Python."""
    path = os.path.join(_build.folder(), "sptx-w2v")
    try:
        os.execv(path, ["sptx-w2v", *sys.argv[1:]])
    except OSError as error:
        sys.exit("sptx-w2v: cannot run '%s': %s; 'make python' builds the package with it" % (path, error.strerror))
