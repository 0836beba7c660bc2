"""SpeedTorch's names over sptx: `import sptx.speedtorch as SpeedTorch` runs a script that was written for SpeedTorch 0.1.6.

    ModelFactory, OptimizerFactory, DataGadget     on the GPU, or with CPUPinn=True in pinned host memory
    ..MM                                           in working files
    GPUPytorch.., CPUPytorch.., Pytorch..          the same by PyTorch's types
    COM, COMMM, GPUPytorchCOM, CPUPytorchCOM, PytorchCOM, COMMunicator

Its modules are here too: sptx.speedtorch.CUPYLive, CPUCupyPinned, GPUTorch, CPUTorchPinned, GenTorch. CuPy is not needed, nor a GPU: without
one everything is in host memory.

What differs: state can be saved (OptimizerFactory.saveCupy and loadCupy); Rprop needs no gradient first and its step sizes go
along; a file's rows may have any shape; a wrong name or index is an exception; first values follow torch.manual_seed().
What does not: an index that stands twice in a batch keeps the last of its updates only, of which one warning tells;
sptx.torch.Embedding sums them.
"""

from ._data import COM, COMMM, DataGadget, DataGadgetMM, GPUPytorchCOM
from ._models import (CPUPytorchModelFactory, GPUPytorchModelFactory, ModelFactory, ModelFactoryMM, PytorchModelFactory)
from ._optimizers import (CPUPytorchOptimizerFactory, GPUPytorchOptimizerFactory, OptimizerFactory, OptimizerFactoryMM,
                          PytorchOptimizerFactory)

CPUPytorchCOM = PytorchCOM = GPUPytorchCOM
COMMunicator = COM

from . import CPUCupyPinned, CPUTorchPinned, CUPYLive, GenTorch, GPUTorch  # noqa: E402  (they take their names from here)

__all__ = [name for name in dir() if name[0] != "_"]
