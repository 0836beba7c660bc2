"""Drop-in package for LightFM: with `from sptx.lightfm import LightFM`, or `import sptx.lightfm as lightfm`, scripts that use LightFM 1.17 run
without other changes."""

from .._refused import lacking
from . import cross_validation, data, evaluation, lightfm
from .lightfm import LightFM

__all__ = ["LightFM", "cross_validation", "data", "evaluation", "lightfm"]

__getattr__ = lacking("sptx.lightfm", {"datasets": "it fetches files from the net; data.Dataset makes matrices of a file's rows"},
                      "it has LightFM, data, evaluation and cross_validation")
