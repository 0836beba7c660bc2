"""Drop-in package for implicit: with `import sptx.implicit as implicit`, or `from sptx.implicit import AlternatingLeastSquares`, scripts that use
implicit 0.7's models of factors run without other changes."""

from .._refused import lacking
from . import als, bpr, evaluation, nearest_neighbours
from ._models import AlternatingLeastSquares, BayesianPersonalizedRanking

__all__ = ["AlternatingLeastSquares", "BayesianPersonalizedRanking", "als", "bpr", "evaluation", "nearest_neighbours"]

__getattr__ = lacking("sptx.implicit", {
    "lmf": "take als.AlternatingLeastSquares or bpr.BayesianPersonalizedRanking",
    "approximate_als": "AlternatingLeastSquares searches on the GPU where there is one, and model.run.to_faiss() makes an index of its items",
    "ann": "model.run.to_faiss(), to_hnswlib() and to_usearch() make indexes of the items",
    "datasets": "it fetches files from the net, and needs the package implicit itself",
    "gpu": "use_gpu=True trains on the GPU",
    "cpu": "use_gpu=False trains on the CPU",
}, "it has implicit's als, bpr and evaluation, and the weights of nearest_neighbours")
