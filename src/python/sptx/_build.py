"""Chooses the build for this machine among those in the package. A build is a folder with libsptx.so and the program.

The package itself is a build. The wheel for all machines contains a second one, cuda13, made by a newer CUDA Toolkit: its kernels
use features of newer GPUs, and need a driver that supports that CUDA. Without a GPU both work alike.
"""

import ctypes
import glob
import os

PACKAGE = os.path.dirname(os.path.abspath(__file__))


def driver() -> int:
    """Returns the major version of CUDA that the GPU driver supports, such as 13; 0 if there is no driver."""
    version = ctypes.c_int(0)
    try:
        ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return 0
    return version.value // 1000


def folder(package: str = PACKAGE) -> str:
    """Returns the folder of the newest build that the driver supports. If there is only one build, the driver is not asked."""
    newer = glob.glob(os.path.join(glob.escape(package), "cuda[0-9]*"))
    known = driver() if newer else 0
    fitting = [path for path in newer if int(path.rpartition("cuda")[2]) <= known]
    return max(fitting, default=package, key=lambda path: int(path.rpartition("cuda")[2]))
