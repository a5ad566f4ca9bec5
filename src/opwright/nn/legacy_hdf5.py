"""HDF5 files of Keras 2, which Keras 3 writes and reads as well: weights, or whole models, in `.h5`.

Lives here: the weights of layers in order, both ways; writing of whole models.
Not here: .weights.h5 (hdf5_weights.py), reading of whole models (frontends/keras).

The group of weights, which is the file itself or `model_weights`, names its layers in the attribute "layer_names"; the
group of a layer its weights in "weight_names": trainable ones first. Attributes that are too long for HDF5 are in
parts, "weight_names0" and so on. The configuration of a model is JSON in the attribute "model_config".
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import DataLossError
from ..core.extras import optional_module
from .hdf5_weights import WeightGroup, assign_arrays
from .keras_form import KERAS_VERSION, keras_configuration

MOST_BYTES = 64512
"""Bytes of an attribute."""
TRAINING = ("loss", "metrics", "weighted_metrics", "loss_weights")
"""Arguments of `compile` in a training configuration, besides the optimizer."""
WEIGHTS, OPTIMIZER, TOP = "model_weights", "optimizer_weights", "top_level_model_weights"


def _ordered(layer: Any) -> list[Any]:
    """Return the weights of a layer, those of layers in it included, in the order of a file."""
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def _top(model: Any) -> list[Any]:
    """Return the weights that are the model's own."""
    own = {id(v) for v in model._own_variables()}
    return [v for v in _ordered(model) if id(v) in own]


def weights_of(root: WeightGroup) -> WeightGroup | None:
    """Return the group of weights of a file in this format, None for files in another."""
    if root.names("layer_names") is not None:
        return root
    if WEIGHTS in root:
        group = root.group(WEIGHTS)
        return group if group.names("layer_names") is not None else None
    return None


def assign_legacy_weights(model: Any, group: WeightGroup, skip_mismatch: bool = False, by_name: bool = False) -> None:
    """Assign the weights of a file to the layers of a model in order: all, or none if one does not fit.

    skip_mismatch: leave out weights of other shapes, with a warning. by_name: assign those of the layers whose name the
    file has, in any order.
    raises ValueError for other numbers of layers and weights, DataLossError for weights of another shape
    """
    layers = [layer for layer in model.layers if _ordered(layer)]
    saved = [(name, group.group(name)) for name in group.names("layer_names") or ()]
    saved = [(name, part) for name, part in saved if part.names("weight_names")]
    if by_name:
        parts = dict(saved)
        layers = [layer for layer in layers if layer.name in parts]
        saved = [(layer.name, parts[layer.name]) for layer in layers]
    if len(saved) != len(layers):
        raise ValueError(
            f"Layer count mismatch when loading weights from file. Model expected {len(layers)} layers, found "
            f"{len(saved)} saved layers."
        )
    rows = []
    for layer, (name, part) in zip(layers, saved):
        rows += _pairs(_ordered(layer), part, f"layer {layer.name!r} ({name!r} in the file)")
    if TOP in group and not by_name:
        part = group.group(TOP)
        if part.names("weight_names"):
            rows += _pairs(_top(model), part, "the weights of the model itself")
    arrays, skipped = [], []
    for variable, part, name in rows:
        try:
            arrays.append((variable, part.array(name, tuple(variable.read_array().shape))))
        except DataLossError:
            if not skip_mismatch:
                raise
            skipped.append(f"{part.path}/{name}")
    assign_arrays(arrays, skipped)


def _pairs(variables: Sequence[Any], group: WeightGroup, what: str) -> list[tuple[Any, WeightGroup, str]]:
    names = group.names("weight_names") or []
    if len(names) != len(variables):
        raise ValueError(
            f"Weight count mismatch for {what}: it has {len(variables)} weight(s), the file {len(names)} saved ones"
        )
    pairs = []
    for variable, name in zip(variables, names):
        *groups, last = name.split("/")
        part = group
        for member in groups:
            part = part.group(member)
        pairs.append((variable, part, last))
    return pairs


def assign_legacy_optimizer(optimizer: Any, root: WeightGroup) -> None:
    """Assign the state of an optimizer that is built, if the file has one of the same variables in number and shape."""
    if OPTIMIZER not in root:
        return
    group = root.group(OPTIMIZER)
    if len(group.names("weight_names") or ()) != len(optimizer.variables):
        return
    rows = _pairs(optimizer.variables, group, "the optimizer")
    arrays = [(v, part.array(name, tuple(v.read_array().shape))) for v, part, name in rows]
    for variable, array in arrays:
        variable.assign(array.astype(variable.dtype.np))


# ---- writing ---------------------------------------------------------------------------------------------------------


def _write_names(group: Any, attribute: str, names: Sequence[str]) -> None:
    data = np.array([name.encode() for name in names]) if names else np.zeros(0, "S1")
    if data.nbytes <= MOST_BYTES:
        group.attrs[attribute] = data
        return
    parts = np.array_split(data, -(-data.nbytes // MOST_BYTES) + 1)
    for i, part in enumerate(parts):
        group.attrs[f"{attribute}{i}"] = part


def _write_weights(group: Any, variables: Sequence[Any]) -> None:
    names: list[str] = []
    for variable in variables:
        name, number = variable.path, 0
        while name in names:  # of layers of one name
            number += 1
            name = f"{variable.path}_{number}"
        names.append(name)
    _write_names(group, "weight_names", names)
    for name, variable in zip(names, variables):
        array = np.asarray(variable.read_array())
        dataset = group.create_dataset(name, data=array.view("V2") if array.dtype.kind == "V" else array)
        if array.dtype.kind == "V":
            dataset.attrs["dtype"] = array.dtype.name


def model_file(model: Any, include_optimizer: bool = True) -> bytes:
    """Return a whole model as an .h5 file, which Keras 2 and 3 read.

    raises NotImplementedError for models that are neither functional nor Sequential, UnimplementedError for what Keras
    has no form of, FailedPreconditionError without h5py
    """
    h5py = optional_module("h5py")
    if not model.has_layer_list:
        raise NotImplementedError(
            "Saving the model to HDF5 format requires the model to be a Functional model or a Sequential model. It "
            "does not work for subclassed models: save it as .keras, or its weights as .weights.h5"
        )
    form = keras_configuration(model)
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.attrs["keras_version"], file.attrs["backend"] = KERAS_VERSION, "tensorflow"
        file.attrs["model_config"] = json.dumps({key: form[key] for key in ("class_name", "config")})
        compiled = form.get("compile_config")
        if compiled:
            training = {**dict.fromkeys(TRAINING), **{k: v for k, v in compiled.items() if k in TRAINING}}
            if include_optimizer:
                training["optimizer_config"] = compiled.get("optimizer")
            file.attrs["training_config"] = json.dumps(training)
        group = file.create_group(WEIGHTS)
        _write_names(group, "layer_names", [layer.name for layer in model.layers])
        group.attrs["keras_version"], group.attrs["backend"] = KERAS_VERSION, "tensorflow"
        for layer in model.layers:
            _write_weights(group.create_group(layer.name), _ordered(layer))
        _write_weights(group.create_group(TOP), _top(model))
        if include_optimizer and model.optimizer is not None and model.optimizer.built:
            _write_weights(file.create_group(OPTIMIZER), model.optimizer.variables)
    return buffer.getvalue()
