"""Weights of Keras models, in files and in objects, into the layers of `nn`.

Lives here: `assign_from_file`, `assign_from_model`. Not here: access to files (archives.py).

A file has a group for each layer of a model, `layers/NAME`: the class name in snake case, with a number from the second
layer of a class on. In it are the layer's own weights, `vars/0` and so on, and a group for each layer that is an
attribute of it, by the attribute's name; layers of `nn` have the attributes of Keras's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...core.errors import InvalidArgumentError
from ...eager.variable import Variable
from ...nn.configuration import snake_case
from ...nn.layer import Layer
from .archives import WeightGroup
from .operations import KerasOperation


def assign_from_file(model: Any, class_names: Mapping[str, str], root: WeightGroup) -> None:
    """Assign the weights of a file to a model. class_names: of Keras, by the names of layers.

    raises DataLossError for a weight that the file lacks or has in another shape
    """
    _assign_group(model, class_names, root)


def _assign_group(layer: Any, class_names: Mapping[str, str], group: WeightGroup) -> None:
    variables = _own_weights(layer)
    if variables:
        values = group.group("vars")
        for i, variable in enumerate(variables):
            array = values.array(str(i), tuple(variable.read_array().shape))
            variable.assign(array.view(variable.dtype.np) if array.dtype.kind == "V" else array)
    if getattr(layer, "is_model", False):
        members = [x for x in layer.layers if not isinstance(x, KerasOperation)]
        if any(x.weights for x in members):
            _assign_list(members, class_names, group.group("layers"))
        return
    for name, value in vars(layer).items():
        if isinstance(value, Layer) and value.weights:
            _assign_group(value, class_names, group.group(name))
        elif isinstance(value, list | tuple) and any(isinstance(x, Layer) and x.weights for x in value):
            _assign_list(value, class_names, group.group(name))


def _assign_list(layers: Any, class_names: Mapping[str, str], group: WeightGroup) -> None:
    seen: Counter[str] = Counter()
    for layer in layers:
        name = snake_case(class_names.get(layer.name, type(layer).__name__))
        number = seen[name]
        seen[name] += 1
        if layer.weights:
            _assign_group(layer, class_names, group.group(f"{name}_{number}" if number else name))


def _own_weights(layer: Any) -> list[Variable]:
    """Return the weights of a layer without those of layers in it, trainable ones first, as Keras stores them."""
    own = {id(v) for v in layer._own_variables()}
    return [v for v in layer.weights if id(v) in own]


def assign_from_model(model: Any, source: Any) -> None:
    """Assign the weights of a Keras model to one of the same configuration. Raises InvalidArgumentError if they differ
    in layers or shapes."""
    others = {layer.name: layer for layer in source.layers}
    for layer in model.layers:
        if isinstance(layer, KerasOperation) or not layer.weights:
            continue
        other = others.get(layer.name)
        if other is None:
            raise InvalidArgumentError(
                op="from_keras", what="the Keras model has no layer of this name", found=layer.name
            )
        if layer.is_model:
            assign_from_model(layer, other)
            continue
        try:
            layer.set_weights(other.get_weights())
        except ValueError as error:
            raise InvalidArgumentError(op="from_keras", node=layer.name, what=str(error)) from error
