"""DataGadget, which gives rows of a file; and the matrices of counts."""

from typing import Any

import numpy
import torch

from ._models import Kept
from ._rows import load, numpy_dtype


class DataGadget(Kept):
    """The rows of a .npy file of any shape and type. They are on the GPU, or with CPUPinn=True in host memory that the GPU can address."""

    def __init__(self, fileName: Any, CPUPinn: bool = False) -> None:
        self.fileName, self.CPUPinn = fileName, CPUPinn
        self._place = "pinned" if CPUPinn else "gpu"

    def gadgetInit(self) -> None:
        """Loads the file."""
        self._load(load(self.fileName))

    def _which(self, indexes: Any) -> Any:
        """Converts indexes (slices, single numbers, masks) to an array of row numbers."""
        if isinstance(indexes, (int, slice)) or getattr(indexes, "dtype", None) in (bool, torch.bool):
            mask = indexes.cpu().numpy() if isinstance(indexes, torch.Tensor) else indexes
            return numpy.arange(self._kept().count)[mask]
        return indexes if hasattr(indexes, "shape") else numpy.asarray(indexes)

    def getData(self, indexes: Any) -> torch.Tensor:
        """Returns a copy of the rows of these indexes: a tensor [*indexes.shape, *row]."""
        which, rows = self._which(indexes), self._kept()
        return rows.gather(which).view(tuple(which.shape) + rows.shape)

    def insertData(self, dataObject: torch.Tensor, indexes: Any) -> None:
        """Overwrites the rows of these indexes with a tensor [*indexes.shape, *row]."""
        self._kept().scatter(self._which(indexes), None, [dataObject])


class DataGadgetMM(DataGadget):
    """As DataGadget, with the rows in an unnamed working file in the current directory, which is removed with the object."""

    def __init__(self, fileName: Any, CPUPinn: bool = False) -> None:
        super().__init__(fileName, CPUPinn)
        self._place = "file"


class COM:
    """A matrix of counts [total_classes x total_classes] in host memory, with `CUPYCom` as its name."""

    def __init__(self, total_classes: int, datatype: Any = "uint32", CPUPinn: bool = False) -> None:
        self.total_classes, self.datatype, self.CPUPinn = total_classes, datatype, CPUPinn

    def comInit(self, CPUPinn: bool = False) -> None:
        """The matrix begins with zeros."""
        self.CUPYCom = numpy.zeros((self.total_classes, self.total_classes), numpy_dtype(self.datatype))

    def getNumpyVersion(self) -> Any:
        """The matrix."""
        return self.CUPYCom


class COMMM(COM):
    """The same as COM."""

    def __init__(self, total_classes: int, diskname: str = "COM", datatype: Any = "uint32", CPUPinn: bool = False) -> None:
        super().__init__(total_classes, datatype, CPUPinn)
        self.diskname = diskname


class GPUPytorchCOM:
    """A matrix of counts as a tensor, on the GPU if there is one, with `pytorchGPUVar` as its name."""

    def __init__(self, total_classes: int, datatype: torch.dtype = torch.int32) -> None:
        self.total_classes, self.dtype = total_classes, datatype

    def comInit(self) -> None:
        """The matrix begins with zeros."""
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.pytorchGPUVar = torch.zeros((self.total_classes, self.total_classes), dtype=self.dtype, device=device)

    def getNumpyVersion(self) -> Any:
        """A copy of the matrix."""
        return self.pytorchGPUVar.cpu().numpy()
