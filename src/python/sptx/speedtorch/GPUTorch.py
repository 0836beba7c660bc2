"""SpeedTorch.GPUTorch: rows on the GPU, by PyTorch's types."""

from ._data import GPUPytorchCOM
from ._models import GPUPytorchModelFactory
from ._optimizers import GPUPytorchOptimizerFactory

__all__ = ["GPUPytorchCOM", "GPUPytorchModelFactory", "GPUPytorchOptimizerFactory"]
