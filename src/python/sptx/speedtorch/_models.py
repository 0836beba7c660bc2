"""The factories of a model's variables: batch after batch, rows of a large table are copied into the weight of a small embedding, and back."""

import os
import warnings
from typing import Any, Optional

import numpy
import torch

from .._errors import SptxWarning
from ._rows import Duplicates, Rows, load, load_tensor, replacing, save

LOST = ("an index stands more than once in a batch: of its rows' updates only the last is kept, as SpeedTorch does it; "
        "sptx.torch.Embedding sums them")


class Switcher:
    """Base class of all factories: where the rows are, and how they are made."""

    _place = "gpu"
    _device: Any = "auto"
    _directory: Optional[str] = None
    total_classes: int
    embed_dimension: int
    datatype: Any
    rows: Optional[Rows] = None
    _absent: str  # the message if there are no rows yet

    def _kept(self) -> Rows:
        if self.rows is None:
            raise ValueError(self._absent)
        return self.rows

    def _rows(self, init: str = "zeros", names: int = 1) -> Rows:
        return Rows(self.total_classes, (self.embed_dimension,), self.datatype, self._place, self._device, self._directory,
                    init, names)


class Kept(Switcher):
    """Base class of one collection of rows, with SpeedTorch's methods to save it and to pass it to other libraries."""

    _absent = ("the collection is not there yet: call zerosInit(), uniformDistributionInit(), normalDistributionInit(), customInit(), gadgetInit() or "
               "a load first")

    def _load(self, values: Any) -> None:
        self.rows = Rows(len(values), values.shape[1:], values.dtype, self._place, self._device, self._directory)
        self.rows.take(values)

    def getNumpyVersion(self) -> Any:
        """A copy of the whole collection as a NumPy array."""
        return self._kept().numpy()

    def saveCupy(self, saveFileName: Any) -> None:
        """Writes the whole collection to a .npy file."""
        kept = self._kept()
        save(saveFileName, kept.dtype, (kept.count,) + kept.shape, kept.copy_to)

    def loadCupy(self, loadFileName: Any) -> None:
        """Reads the whole collection from a .npy file."""
        self._load(load(loadFileName))

    def saveTorch(self, saveFileName: Any) -> None:
        """Writes the whole collection with torch.save()."""
        with replacing(saveFileName) as partial:
            torch.save(torch.from_numpy(self.getNumpyVersion()), partial)

    def loadTorch(self, loadFileName: Any) -> None:
        """Takes the whole collection from a file of torch.save() that holds a tensor. Nothing else is read: a file of
        torch.save() may hold commands of any kind, and sptx.Error is raised for it."""
        self._load(load_tensor(loadFileName))

    def getTorchVar(self) -> torch.Tensor:
        """Returns the whole collection as a tensor: without a copy if it is on the host, otherwise a copy."""
        return self._kept().whole()

    def getCupyVar(self) -> Any:
        """The whole collection: a CuPy array if there are CuPy and a GPU, otherwise a NumPy array. It is the collection itself if that is on the
        host, otherwise a copy."""
        kept = self._kept()
        whole = kept.whole()
        if kept.device.type == "cpu":
            return whole.numpy()
        import cupy
        return cupy.from_dlpack(whole if whole.is_cuda else kept.table.weights)

    CUPYcorpus = property(getCupyVar)
    CUPYmemmap = property(getCupyVar)
    pytorchGPUVar = property(getTorchVar)
    pytorchCPUVar = property(getTorchVar)


class Factory(Kept):
    """Base class of the ModelFactories, which differ only in the place of the collection."""

    def __init__(self, model_variable: Any, total_classes: int, embed_dimension: int, datatype: Any = "float32") -> None:
        self.model_variable = model_variable
        self.total_classes = total_classes
        self.embed_dimension = embed_dimension
        self.datatype = datatype
        if model_variable.weight.is_cuda and self._device == "auto":
            self._device = model_variable.weight.device
        self._duplicates = Duplicates()

    def zerosInit(self) -> None:
        """Fills the collection with zeros."""
        self.rows = self._rows()

    def uniformDistributionInit(self, low: float, high: float) -> None:
        """Fills the collection with random numbers between low and high, by torch's seed."""
        self.rows = self._rows("uniform %r %r" % (float(low), float(high)))

    def normalDistributionInit(self, mean: float, stdDev: float) -> None:
        """Fills the collection with normally distributed numbers, by torch's seed."""
        self.rows = self._rows("normal %r %r" % (float(mean), float(stdDev)))

    def customInit(self, initFunction: Any, *args: Any) -> None:
        """The collection begins with what initFunction(tensor, *args) leaves in a tensor [total_classes, embed_dimension]:
        any function of torch.nn.init."""
        self.rows = rows = self._rows()
        whole = rows.whole()
        initFunction(whole, *args)
        if not rows.in_place:
            rows.put(numpy.arange(rows.count), whole)

    def variableTransformer(self, batchSize: int, posPerBatch: int, negPerBatch: Optional[int] = None) -> Any:
        """Returns indexes of the batch's own rows: [batchSize, posPerBatch], and with negPerBatch also [batchSize, negPerBatch], which follow
        them."""
        positives = batchSize * posPerBatch
        if negPerBatch is None:
            return numpy.arange(positives).reshape(batchSize, posPerBatch)
        negatives = numpy.arange(positives, positives + batchSize * negPerBatch).reshape(batchSize, negPerBatch)
        return numpy.arange(positives).reshape(batchSize, posPerBatch), negatives

    def beforeForwardPass(self, retrievedPosIndexes: Any, retrievedNegIndexes: Any = None) -> None:
        """Copies the rows of these indexes into the variable's weight."""
        self.model_variable.weight.data = self._kept().gather(retrievedPosIndexes, retrievedNegIndexes)

    def afterOptimizerStep(self, retrievedPosIndexes: Any, retrievedNegIndexes: Any = None) -> None:
        """Copies the variable's weight back to the rows with these indexes. If an index repeats, its last row is stored."""
        self._kept().scatter(retrievedPosIndexes, retrievedNegIndexes, [self.model_variable.weight])
        if self._duplicates.in_batch(retrievedPosIndexes, retrievedNegIndexes):  # checked while the rows are on their way
            warnings.warn(LOST, SptxWarning)


class ModelFactory(Factory):
    """Rows on the GPU, or with CPUPinn=True in host memory that the GPU can address."""

    def __init__(self, model_variable: Any, total_classes: int, embed_dimension: int, datatype: Any = "float32",
                 CPUPinn: bool = False) -> None:
        self.CPUPinn = CPUPinn
        self._place = "pinned" if CPUPinn else "gpu"
        super().__init__(model_variable, total_classes, embed_dimension, datatype)


class ModelFactoryMM(Factory):
    """Rows in an unnamed working file beside `diskname`, which is removed with the factory."""

    _place = "file"

    def __init__(self, model_variable: Any, total_classes: int, embed_dimension: int, diskname: str = "variable",
                 datatype: Any = "float32", CPUPinn: bool = False) -> None:
        self.diskname, self.CPUPinn = diskname, CPUPinn
        self._directory = os.path.dirname(diskname) or "."
        super().__init__(model_variable, total_classes, embed_dimension, datatype)


class GPUPytorchModelFactory(Factory):
    """Rows on the GPU."""

    def __init__(self, model_variable: Any, total_classes: int, embed_dimension: int, datatype: Any = torch.float) -> None:
        super().__init__(model_variable, total_classes, embed_dimension, datatype)


class CPUPytorchModelFactory(GPUPytorchModelFactory):
    """Rows in host memory that the GPU can address."""

    _place = "pinned"


class PytorchModelFactory(Factory):
    """Rows on the GPU, or with deviceType="cpu" on the host, for a model on the CPU."""

    def __init__(self, model_variable: Any, total_classes: int, embed_dimension: int, datatype: Any = torch.float,
                 deviceType: str = "cuda", pinType: bool = False) -> None:
        self.deviceType, self.pinType = deviceType, pinType
        if deviceType == "cpu":
            self._place, self._device = "pinned", "cpu"
        super().__init__(model_variable, total_classes, embed_dimension, datatype)
