"""SpeedTorch.CPUTorchPinned: rows in pinned host memory, by PyTorch's types."""

from ._data import GPUPytorchCOM as CPUPytorchCOM
from ._models import CPUPytorchModelFactory
from ._optimizers import CPUPytorchOptimizerFactory

__all__ = ["CPUPytorchCOM", "CPUPytorchModelFactory", "CPUPytorchOptimizerFactory"]
