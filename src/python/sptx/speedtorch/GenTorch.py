"""SpeedTorch.GenTorch: rows where deviceType says, by PyTorch's types."""

from ._data import GPUPytorchCOM as PytorchCOM
from ._models import PytorchModelFactory
from ._optimizers import PytorchOptimizerFactory

__all__ = ["PytorchCOM", "PytorchModelFactory", "PytorchOptimizerFactory"]
