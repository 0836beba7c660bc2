"""SpeedTorch.CPUCupyPinned: rows in working files."""

from ._data import COMMM, DataGadgetMM
from ._models import ModelFactoryMM
from ._optimizers import OptimizerFactoryMM

__all__ = ["COMMM", "DataGadgetMM", "ModelFactoryMM", "OptimizerFactoryMM"]
