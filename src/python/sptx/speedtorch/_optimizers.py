"""The factories of an optimizer's state: the state of a batch's rows is copied from a large collection into the optimizer, and back."""

import os
from typing import Any, Dict, List

import numpy
import torch

from ._models import Switcher
from ._rows import load, numpy_dtype, save

# A state's scalars before the first step.
SCALARS = {"step": lambda group: 0, "eta": lambda group: group["lr"], "mu": lambda group: 1}
# State whose first values are not zeros.
FIRST = {"sum": lambda group: group.get("initial_accumulator_value", 0), "step_size": lambda group: group["lr"]}


def template(optimizer: torch.optim.Optimizer, group: Dict[str, Any], like: torch.Tensor) -> Dict[str, Any]:
    """Finds out, by a trial, which state this optimizer has for a parameter of two rows, since names and types depend on the version of PyTorch. A
    tensor with the parameter's shape is state of rows."""
    probe = torch.zeros((2, 3), dtype=like.dtype, device=like.device, requires_grad=True)
    options = {key: value for key, value in group.items() if key != "params"}
    trial = type(optimizer)([{"params": [probe], **options}], lr=group["lr"])
    both = torch.tensor([0, 1], device=like.device)
    looked_up = torch.nn.functional.embedding(both, probe, sparse=isinstance(optimizer, torch.optim.SparseAdam))
    (looked_up * 0).sum().backward()
    trial.step()
    return dict(trial.state[probe])


def is_rows(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and tuple(value.shape) == (2, 3)


def begin(state: Dict[str, Any], pattern: Dict[str, Any], group: Dict[str, Any], parameter: torch.Tensor) -> None:
    """If a parameter has no state yet, sets the state that it has before its first step."""
    if state:
        return
    for name, value in pattern.items():
        if is_rows(value):
            state[name] = torch.full_like(parameter.data, float(FIRST.get(name, lambda group: 0)(group)))
        elif name in SCALARS:
            first = SCALARS[name](group)
            state[name] = torch.full_like(value, float(first)) if isinstance(value, torch.Tensor) else type(value)(first)
        else:
            state[name] = value


class Factory(Switcher):
    """Base class of the OptimizerFactories, which differ only in the place of the collections. rows: one for each name of optVarList."""

    _absent = "the state is not there yet: call optInit() or loadCupy() first"

    def __init__(self, given_optimizer: torch.optim.Optimizer, total_classes: int, embed_dimension: int, model: Any,
                 variable_name: str, dtype: Any = "float32") -> None:
        self.given_optimizer = given_optimizer
        self.total_classes = total_classes
        self.embed_dimension = embed_dimension
        self.model = model
        self.variable_name = variable_name
        self.datatype = self.dtype = dtype
        self._parameter = dict(model.named_parameters()).get(variable_name + ".weight")
        if self._parameter is None:
            raise ValueError("the model has no variable '%s' with a weight; it has %s" %
                             (variable_name, ", ".join(name for name, _ in model.named_parameters())))
        if self._parameter.is_cuda and self._device == "auto":
            self._device = self._parameter.device
        self.optVarList: List[str] = []
        found = False
        for group in given_optimizer.param_groups:
            pattern = template(given_optimizer, group, group["params"][0])
            for parameter in group["params"]:
                begin(given_optimizer.state[parameter], pattern, group, parameter)
                if parameter is self._parameter:
                    found = True
                    self.optVarList = [name for name, value in pattern.items() if is_rows(value)]
                    self._first = {name: float(FIRST.get(name, lambda group: 0)(group)) for name in self.optVarList}
        if not found:
            raise ValueError("the optimizer does not have the weight of '%s' among its parameters" % variable_name)

    def optInit(self) -> None:
        """Sets the state of all rows to that before the first step."""
        self._begin()
        for name in self.optVarList:
            if self._first[name]:
                first = numpy.full((1, self.embed_dimension), self._first[name])
                self._take(name, numpy.broadcast_to(first, (self.total_classes, self.embed_dimension)))

    def _begin(self) -> None:
        self.rows = self._rows(names=max(1, len(self.optVarList)))

    def beforeForwardPass(self, retrievedPosIndexes: Any, retrievedNegIndexes: Any = None) -> None:
        """Copies the state of the rows with these indexes into the optimizer."""
        rows, state = self._kept(), self.given_optimizer.state[self._parameter]
        if self.optVarList:
            fetched = rows.gather(retrievedPosIndexes, retrievedNegIndexes)
            state.update(zip(self.optVarList, fetched.chunk(len(self.optVarList))))

    def afterOptimizerStep(self, retrievedPosIndexes: Any, retrievedNegIndexes: Any = None) -> None:
        """Copies the optimizer's state back to the rows with these indexes."""
        rows, state = self._kept(), self.given_optimizer.state[self._parameter]
        if self.optVarList:
            rows.scatter(retrievedPosIndexes, retrievedNegIndexes, [state[name] for name in self.optVarList])

    def getNumpyVersion(self) -> Any:
        """A copy of the whole state as a NumPy array with a field for each of `optVarList`: [total_classes] records of
        [embed_dimension] numbers each."""
        out = numpy.empty(self.total_classes, self._record())
        self._fill(out)
        return out

    def saveCupy(self, saveFileName: Any) -> None:
        """Writes the whole state to a .npy file with a field for each of `optVarList`. Counters of steps are in the
        optimizer's own state_dict()."""
        save(saveFileName, self._record(), (self.total_classes,), self._fill)

    def _fill(self, out: Any) -> None:
        rows = self._kept()
        for k, name in enumerate(self.optVarList):
            rows.copy_to(out[name], k * self.total_classes)

    def loadCupy(self, loadFileName: Any) -> None:
        """Reads the whole state from a file that saveCupy() wrote."""
        values = load(loadFileName)
        if values.dtype != self._record() or values.shape != (self.total_classes,):
            raise ValueError("'%s' holds %s of the shape %s, wanted %s of the shape (%d,)" %
                             (os.fspath(loadFileName), values.dtype, values.shape, self._record(), self.total_classes))
        self._begin()
        for name in self.optVarList:
            self._take(name, values[name])

    def _take(self, name: str, values: Any) -> None:
        self._kept().take(values, self.optVarList.index(name) * self.total_classes)

    def _record(self) -> Any:
        return numpy.dtype([(name, numpy_dtype(self.datatype), (self.embed_dimension,)) for name in self.optVarList])


class OptimizerFactory(Factory):
    """State on the GPU, or with CPUPinn=True in host memory that the GPU can address."""

    def __init__(self, given_optimizer: torch.optim.Optimizer, total_classes: int, embed_dimension: int, model: Any,
                 variable_name: str, dtype: Any = "float32", CPUPinn: bool = False) -> None:
        self.CPUPinn = CPUPinn
        self._place = "pinned" if CPUPinn else "gpu"
        super().__init__(given_optimizer, total_classes, embed_dimension, model, variable_name, dtype)


class OptimizerFactoryMM(OptimizerFactory):
    """State in unnamed working files in the current directory, which are removed with the factory."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._place = "file"


class GPUPytorchOptimizerFactory(Factory):
    """State on the GPU."""

    def __init__(self, given_optimizer: torch.optim.Optimizer, total_classes: int, embed_dimension: int, model: Any,
                 variable_name: str, dtype: Any = torch.float) -> None:
        super().__init__(given_optimizer, total_classes, embed_dimension, model, variable_name, dtype)


class CPUPytorchOptimizerFactory(GPUPytorchOptimizerFactory):
    """State in host memory that the GPU can address."""

    _place = "pinned"


class PytorchOptimizerFactory(Factory):
    """State on the GPU, or with deviceType="cpu" on the host, for a model on the CPU."""

    def __init__(self, given_optimizer: torch.optim.Optimizer, total_classes: int, embed_dimension: int, model: Any,
                 variable_name: str, dtype: Any = torch.float, deviceType: str = "cuda", pinType: bool = False) -> None:
        self.deviceType, self.pinType = deviceType, pinType
        if deviceType == "cpu":
            self._place, self._device = "pinned", "cpu"
        super().__init__(given_optimizer, total_classes, embed_dimension, model, variable_name, dtype)
