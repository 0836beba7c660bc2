"""The command sptx-w2v: the program that lies in the package, in place of this process."""

import os
import sys

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sptx-w2v")


def main() -> None:
    """Becomes the program, with this process's arguments: signals, exit codes and mpirun see the program alone."""
    try:
        os.execv(PATH, ["sptx-w2v", *sys.argv[1:]])
    except OSError as error:
        sys.exit("sptx-w2v: cannot run '%s': %s; 'make python' builds the package with it" % (PATH, error.strerror))
