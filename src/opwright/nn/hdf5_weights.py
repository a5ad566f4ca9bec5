"""Weights in HDF5 files of Keras 3: .weights.h5, and the weights of a .keras archive.

Lives here: `WeightGroup`, a group of a file, checked; `assign_weights`, `weights_file`. Not here: .safetensors files
(weights_io.py), configurations of Keras (frontends/keras).

A file has a group for each layer of a model, `layers/NAME`: the class name in snake case, with a number from the second
layer of a class on. In it are the layer's own weights, `vars/0` and so on, and a group for each layer that is an
attribute of it, by the attribute's name; layers of `nn` have the attributes of Keras's.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..core.errors import DataLossError
from ..core.extras import optional_module
from ..eager.variable import Variable
from .configuration import snake_case
from .layer import Layer


class WeightGroup:
    """A group of an HDF5 file of weights: members behind hard links only, which lie in the same file. path: its name,
    for errors."""

    def __init__(self, group: Any, path: str) -> None:
        self._group = group
        self.path = path

    def __iter__(self) -> Iterator[str]:
        return iter(self._group)

    def __contains__(self, name: str) -> bool:
        return name in self._group

    def group(self, name: str) -> WeightGroup:
        """Return a group in this one. Raises DataLossError if there is none."""
        return WeightGroup(self._member(name, "Group"), f"{self.path}/{name}")

    def array(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Return the elements of a dataset of a shape. Raises DataLossError for another one."""
        dataset = self._member(name, "Dataset")
        where = f"{self.path}/{name}"
        if tuple(dataset.shape or ()) != shape or dataset.dtype.kind not in "biufcV":
            raise DataLossError(
                what=f"the weight {where} does not fit its layer",
                found=f"{dataset.dtype}{list(dataset.shape or ())}",
                wanted=list(shape),
            )
        if dataset.external or dataset.is_virtual:
            raise DataLossError(what=f"the weight {where} lies in another file")
        try:
            return np.asarray(dataset[()])
        except OSError as error:
            raise DataLossError(what=f"the weight {where} is damaged: {error}") from error

    def _member(self, name: str, kind: str) -> Any:
        h5py = optional_module("h5py")
        where = f"{self.path}/{name}"
        try:
            link = self._group.get(name, getlink=True)
            member = self._group.get(name) if isinstance(link, h5py.HardLink) else None
        except (KeyError, OSError, RuntimeError, ValueError) as error:
            raise DataLossError(what=f"{where} is damaged: {error}") from error
        if not isinstance(member, getattr(h5py, kind)):
            raise DataLossError(
                what=f"there is no {kind.lower()} {where}", found=", ".join(list(self._group)[:5]) or "nothing"
            )
        return member


# ---- the layers of a file --------------------------------------------------------------------------------------------


def _groups(layer: Any, class_names: Mapping[str, str], path: str) -> Iterator[tuple[str, Variable]]:
    """Yield the path of each weight in a file, such as "layers/dense/vars/0". class_names: of Keras, by the names of
    layers, where they differ from those of `nn`."""
    for i, variable in enumerate(_own_weights(layer)):
        yield f"{path}vars/{i}", variable
    if getattr(layer, "is_model", False):
        yield from _of_list(layer.layers, class_names, f"{path}layers/")
        return
    for name, value in vars(layer).items():
        if isinstance(value, Layer) and value.weights:
            yield from _groups(value, class_names, f"{path}{name}/")
        elif isinstance(value, list | tuple) and any(isinstance(x, Layer) and x.weights for x in value):
            yield from _of_list(value, class_names, f"{path}{name}/")


def _of_list(layers: Any, class_names: Mapping[str, str], path: str) -> Iterator[tuple[str, Variable]]:
    seen: Counter[str] = Counter()
    for layer in layers:
        name = snake_case(class_names.get(layer.name, type(layer).__name__))
        number = seen[name]
        seen[name] += 1
        if layer.weights:
            yield from _groups(layer, class_names, f"{path}{name}_{number}/" if number else f"{path}{name}/")


def _own_weights(layer: Any) -> list[Variable]:
    """Return the weights of a layer without those of layers in it, trainable ones first, as Keras stores them."""
    own = {id(v) for v in layer._own_variables()}
    return [v for v in layer.weights if id(v) in own]


def assign_weights(model: Any, class_names: Mapping[str, str], root: WeightGroup) -> None:
    """Assign the weights of a file to a model: all, or none if one does not fit. class_names: of Keras, by the names of
    layers.

    raises DataLossError for a weight that the file lacks or has in another shape
    """
    rows = []
    for path, variable in _groups(model, class_names, ""):
        *groups, name = path.split("/")
        group = root
        for member in groups:
            group = group.group(member)
        rows.append((variable, group.array(name, tuple(variable.read_array().shape))))
    for variable, array in rows:
        variable.assign(array.view(variable.dtype.np) if array.dtype.kind == "V" else array)


def load_file(model: Any, content: bytes, path: str) -> None:
    """Assign the weights of a .weights.h5 file. Raises DataLossError, FailedPreconditionError without h5py."""
    h5py = optional_module("h5py")
    try:
        file = h5py.File(io.BytesIO(content), "r")
    except OSError as error:
        raise DataLossError(what=f"{path} is not a file of weights, or is damaged: {error}") from error
    with file:
        assign_weights(model, {}, WeightGroup(file, ""))


def weights_file(model: Any) -> bytes:
    """Return a .weights.h5 file of a model's weights, as Keras 3 reads them. Raises FailedPreconditionError without
    h5py."""
    h5py = optional_module("h5py")
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for path, variable in _groups(model, {}, ""):
            array = np.asarray(variable.read_array())
            if array.dtype.kind == "V":  # bfloat16, which HDF5 lacks: its bits, and its name
                dataset = file.create_dataset(path, data=array.view("V2"))
                dataset.attrs["dtype"] = variable.dtype.name
            else:
                file.create_dataset(path, data=array)
    return buffer.getvalue()
