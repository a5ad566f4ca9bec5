"""`keras.models`: Sequential, and functions that read and copy models.

Lives here: the class, the public names.  Not here: the base class (model.py), files (weights_io.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

from ..core import nest
from . import dtype_policies, tree
from .keras_tensor import KerasTensor
from .layer import Layer
from .layer_calls import set_mask, within
from .layer_shapes import is_shape
from .layers import Lambda
from .model import Model
from .model_config import compile_arguments, compile_config, deserialize, plain_value, serialize
from .model_files import load_model, save_model
from .network import Input, InputLayer, Network


class Sequential(Model):
    """Linear stack of layers.

    layers: if the first is `Input(...)` or a layer with `input_shape=`, weights are created immediately; otherwise by
    the first call or `build`.
    raises ValueError for other objects than layers

    >>> model = ow.keras.Sequential([ow.keras.layers.Dense(4, activation="relu"), ow.keras.layers.Dense(1)])
    """

    def __init__(self, layers: Any = None, trainable: bool = True, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, trainable=trainable, **kwargs)
        self._stack: list[Layer] = []
        for layer in [layers] if isinstance(layers, Layer) else layers or []:
            self.add(layer, rebuild=False)
        self._rebuild()

    # ---- the stack --------------------------------------------------------------------------------------------------

    def add(self, layer: Any, rebuild: bool = True) -> None:
        """Append a layer. Raises ValueError for other objects and for a duplicate name."""
        if isinstance(layer, KerasTensor) and layer.history is not None and isinstance(layer.history[0], InputLayer):
            layer = layer.history[0]
        if not isinstance(layer, Layer):
            if not callable(layer):
                raise ValueError(
                    f"Only instances of `keras.Layer` can be added to a Sequential model. Received: "
                    f"{layer} "
                    f"(of type {type(layer)})"
                )
            layer = Lambda(layer)
        if any(x.name == layer.name for x in self._stack):
            raise ValueError(
                f"All layers added to a Sequential model should have unique names. Name '{layer.name}' is "
                "already the name of a layer in this model. Update the `name` argument to pass a unique "
                "name."
            )
        if isinstance(layer, InputLayer) and self._stack:
            what = "an `InputLayer`" if isinstance(self._stack[0], InputLayer) else f"{len(self._stack)} layer(s)"
            raise ValueError(
                f"Sequential model '{self.name}' has already been configured to use {what}; an Input must come first."
            )
        shape = layer.batch_input_shape
        if not self._stack and shape is not None and not isinstance(layer, InputLayer):
            self._stack.append(InputLayer(batch_shape=shape, dtype=layer.input_dtype))
        self._stack.append(layer)
        if rebuild:
            self._rebuild()

    def pop(self, rebuild: bool = True) -> Layer:
        """Remove and return the last layer. Raises ValueError if there is none."""
        if not self.layers:
            raise ValueError("There are no layers in the Sequential model to pop")
        layer = self._stack.pop()
        self.built, self._network = False, None
        if rebuild:
            self._rebuild()
        return layer

    @property
    def layers(self) -> list[Layer]:
        """Layers, without the input."""
        return [x for x in self._stack if not isinstance(x, InputLayer)]

    @layers.setter
    def layers(self, _: Any) -> None:
        raise AttributeError(f"`Sequential.layers` attribute is reserved. {self._ways_to_add}")

    _ways_to_add = "Use `add()` and `pop()` to change the layers of a Sequential model."

    @property
    def operations(self) -> list[Any]:
        """Same as `layers`."""
        return list(self.layers)

    @property
    def has_layer_list(self) -> bool:
        """Whether files of Keras store the layers as a list: yes."""
        return True

    def _sublayers(self) -> list[Any]:
        return list(self._stack)

    def _rebuild(self) -> None:
        self.built, self._network = False, None
        if not self._stack:
            return
        first = self._stack[0]
        if isinstance(first, InputLayer):
            if len(self._stack) > 1:
                self._build_network(first.output)
        elif isinstance(first, Model) and first._network is not None and isinstance(first.input, KerasTensor):
            source = first.input  # the first layer is a model, which knows its input
            self._build_network(Input(batch_shape=tuple(source.shape), dtype=source.dtype))

    def _build_network(self, inputs: Any) -> None:
        x = inputs
        try:
            with within(self):
                for layer in self.layers:
                    if len(layer._call_spec().required) > 1:
                        raise ValueError(
                            "Layers added to a Sequential model can only have a single positional argument, the input "
                            f"tensor. Layer {type(layer).__name__} has multiple positional arguments: "
                            f"{layer._call_spec().required}"
                        )
                    x = layer(x)
        except NotImplementedError:  # a layer whose output shape is unknown: the weights are made by the first call
            return
        self._network = Network(inputs, x, self.name)
        self.built = True

    # ---- building and running ---------------------------------------------------------------------------------------

    def build(self, input_shape: Any = None) -> None:
        """Create the weights for inputs of this shape, batch first."""
        if self._network is not None and input_shape is not None and is_shape(input_shape):
            built_for = self.inputs[0].shape
            if not built_for.is_compatible_with(tuple(input_shape)):
                raise ValueError(
                    f"Sequential model '{self.name}' has already been configured to use input shape "
                    f"{tuple(built_for)}. You cannot build it with input_shape {tuple(input_shape)}"
                )
        if self._network is None and input_shape is not None and self.layers:
            if not is_shape(input_shape):
                raise ValueError(f"A Sequential model has one input. Received: input_shape={input_shape}")
            self._build_network(Input(batch_shape=tuple(input_shape), dtype=self.layers[0].input_dtype))
        self.built = bool(self.layers)

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self.layers:
            raise ValueError(f"Sequential model {self.name} has no layers. Call `model.add(layer)` first.")
        shape = getattr(args[0] if args else None, "shape", None)
        dims = None if shape is None else shape.dims
        if dims:
            inputs = KerasTensor((None, *dims[1:]), args[0].dtype)
            layer = InputLayer(batch_shape=(None, *dims[1:]), dtype=inputs.dtype)
            self._build_network(layer.output)
        self.built = True

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Return the output of the last layer."""
        if self._network is not None and isinstance(self._stack[0], InputLayer):
            (inputs,) = self._network.accept(inputs)
        x = inputs
        if mask is not None:
            set_mask(x, mask)
        for layer in self.layers:
            x = layer(x)
        return x

    # ---- configuration ----------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """Return the layers' configurations."""
        config: dict[str, Any] = {
            "name": self.name,
            "trainable": self._trainable,
            "dtype": dtype_policies.serialize(self._dtype_policy),
            "layers": [self._serialize(x) for x in self._stack],
        }
        if self._network is not None:
            config["build_input_shape"] = tuple(self.inputs[0].shape)
        return config

    def _serialize(self, layer: Any) -> dict[str, Any]:
        """Return a layer as plain values; of a model without inputs with its own shape, if it is built."""
        config = serialize(layer)
        if self._network is None and layer.built and (own := layer.get_build_config()) is not None:
            config.setdefault("build_config", plain_value(own))
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Self:
        """Return a new model with new weights. Raises ValueError for another configuration."""
        if "name" not in config or "layers" not in config:
            raise ValueError(
                "A Sequential model configuration must be a dictionary containing the 'name' and 'layers' keys. "
                f"Received: config={config}"
            )
        for layer in config["layers"]:
            if not isinstance(layer, dict) or "config" not in layer:
                raise ValueError(f"Expected a dictionary containing a 'config' key. Received: {layer}")
        layers: Sequence[Any] = [deserialize(c, custom_objects) for c in config["layers"]]
        model = cls(list(layers), name=config.get("name"), trainable=config.get("trainable", True))
        shape = deserialize(config.get("build_input_shape"))
        if shape is not None and model._network is None:
            model.build(tuple(shape))
        return model


M = TypeVar("M", bound=Model)

__all__ = ["Model", "Sequential", "clone_model", "load_model", "model_from_json", "save_model"]


def model_from_json(json_string: str, custom_objects: dict[str, Any] | None = None) -> Model:
    """Return the model of a configuration written by `to_json`, with new weights."""
    model: Model = deserialize(json.loads(json_string), custom_objects)
    return model


def _copy(layer: Any) -> Any:
    return type(layer).from_config(layer.get_config())


def clone_model(
    model: M,
    input_tensors: Any = None,
    clone_function: Callable[[Any], Any] | None = None,
    call_function: Callable[..., Any] | None = None,
    recursive: bool = False,
    **unknown: Any,
) -> M:
    """Return a model of the same layers with new weights, compiled in the same way.

    input_tensors: KerasTensors, or values like the inputs, in the structure of the model's inputs. clone_function: of a
    layer, returns the one in its place; by default a new one of its configuration. call_function: of a layer of a
    functional model and the arguments of a call, returns the outputs. recursive: whether nested models are cloned by
    these functions, too.
    raises ValueError for options of models that are neither functional nor Sequential, and of other input tensors
    """
    if unknown:
        raise ValueError(f"Unexpected keyword argument(s): {tuple(unknown)}")
    if input_tensors is None and clone_function is None and call_function is None and not recursive:
        clone: Any = _copy(model)
    else:
        clone = _rebuild(model, input_tensors, clone_function, call_function, recursive)
    if model.compiled:
        clone.compile(**compile_arguments(compile_config(model._trainer.arguments)))
    return clone  # type: ignore[no-any-return]


def _rebuild(model: Model, input_tensors: Any, clone_function: Any, call_function: Any, recursive: bool) -> Model:
    """Return a model whose layers clone_function returns, called by call_function."""

    def cloned(layer: Any) -> Any:
        if recursive and isinstance(layer, Model) and (isinstance(layer, Sequential) or layer._network is not None):
            own = None if isinstance(layer, Sequential) else call_function
            return clone_model(layer, None, clone_function, own, True)
        return (clone_function or _copy)(layer)

    if isinstance(model, Sequential):
        if call_function is not None:
            raise ValueError("`call_function` argument is not supported with Sequential models.")
        return _rebuild_sequential(model, input_tensors, cloned)
    network = model._network
    if network is None:
        raise ValueError(
            "Arguments `clone_function`, `call_function`, `recursive` and `input_tensors` are only supported for "
            f"Sequential models or Functional models. Received model of type {type(model).__name__!r}."
        )
    return _rebuild_functional(model, network, input_tensors, cloned, call_function)


def _rebuild_sequential(model: Sequential, input_tensors: Any, cloned: Callable[[Any], Any]) -> Sequential:
    layers = [cloned(layer) for layer in model._stack if not isinstance(layer, InputLayer)]
    first: list[Any] = [_copy(layer) for layer in model._stack[:1] if isinstance(layer, InputLayer)]
    if input_tensors is not None:
        tensors = nest.flatten(input_tensors)
        if len(tensors) != 1:
            raise ValueError("Argument `input_tensors` must contain a single tensor for a Sequential model.")
        tensor = tensors[0]
        first = [InputLayer(batch_shape=tuple(tensor.shape), dtype=tensor.dtype)]
        if isinstance(tensor, KerasTensor) and tensor.history is not None and isinstance(tensor.history[0], InputLayer):
            first = [tensor.history[0]]
    return Sequential([*first, *layers], name=model.name)


def _containers(structure: Any) -> Any:
    """Return a structure's containers, where tuples and lists are the same."""
    return tree.lists_to_tuples(nest.map_structure(lambda _: None, structure))


def _rebuild_functional(
    model: Model, network: Network, input_tensors: Any, cloned: Callable[[Any], Any], call_function: Any
) -> Model:
    clones: dict[int, Any] = {}

    def call(operation: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(operation, Layer) and id(operation) not in clones:
            clones[id(operation)] = cloned(operation)
        layer = clones.get(id(operation), operation)
        return layer(*args, **kwargs) if call_function is None else call_function(layer, *args, **kwargs)

    def placeholder(tensor: Any, name: str | None = None) -> KerasTensor:
        return InputLayer(batch_shape=tuple(tensor.shape), dtype=tensor.dtype, name=name).output

    if input_tensors is None:
        inputs = nest.map_structure(lambda t: placeholder(t, t.name), network.inputs)
    else:
        single = not nest.is_nested(network.inputs) and nest.is_nested(input_tensors)
        tensors = nest.flatten(input_tensors)
        if len(tensors) != len(network.flat_inputs) or (
            not single and _containers(input_tensors) != _containers(network.inputs)
        ):
            raise ValueError(
                "`input_tensors` must have the same structure as model.input: "
                f"{nest.map_structure(lambda t: t.name, network.inputs)}. Received: {len(tensors)} tensors"
            )
        tensors = [t if isinstance(t, KerasTensor) else placeholder(t) for t in tensors]
        inputs = nest.pack_sequence_as(network.inputs, tensors)
    outputs = network.run(nest.flatten(inputs), call)
    cls: Any = type(model) if type(model).__init__ is Model.__init__ else Model
    result: Model = cls(inputs, outputs, name=model.name)
    return result
