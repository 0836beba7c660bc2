"""SpeedTorch.CUPYLive: rows on the GPU or pinned."""

from ._data import COM, DataGadget
from ._models import ModelFactory
from ._optimizers import OptimizerFactory

__all__ = ["COM", "DataGadget", "ModelFactory", "OptimizerFactory"]
