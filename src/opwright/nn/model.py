"""Model: a layer that is trained, evaluated, shown and kept.

Lives here: the class: made of inputs and outputs, or by subclasses with a `call`; its layers, summary, configuration.
Not here: training (training/), graphs of layers (network.py), stacks (sequential.py), files (weights_io.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Self

from ..core import nest
from ..core.specs import TensorSpec
from .keras_tensor import KerasTensor
from .layer import Layer, _is_shape, _map_shapes
from .network import Network
from .training.trainer import Trainer


class Model(Trainer, Layer):
    """Model of layers.

    Model(inputs, outputs, name=None): of KerasTensors, see `Input`; structures of them may be lists and dicts. Or a
    subclass whose constructor makes layers and whose `call(inputs, training=None, mask=None)` uses them.

    >>> x = ow.keras.Input((3,))
    >>> model = ow.keras.Model(x, ow.keras.layers.Dense(2)(x))
    >>> model(ow.ones([4, 3])).shape
    TensorShape([4, 2])
    """

    is_model = True

    def __init__(
        self,
        *args: Any,
        inputs: Any = None,
        outputs: Any = None,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        if args:
            inputs = args[0]
            outputs = args[1] if len(args) > 1 else outputs
            name = args[2] if len(args) > 2 else name
        if name is None and inputs is not None and type(self) is Model:
            from . import named

            name = named.fresh("Functional")
        super().__init__(name=name, trainable=trainable, dtype=dtype, **kwargs)
        self._network: Network | None = None
        self._seen_inputs: Any = None  # KerasTensors like the first inputs of a model without a network
        self._init_training()
        if (inputs is None) != (outputs is None):
            raise ValueError("A Model takes both `inputs` and `outputs`, or neither (with a `call` of a subclass)")
        if inputs is not None:
            self._network = Network(inputs, outputs, self.name)
            self.built = True

    # ---- running ----------------------------------------------------------------------------------------------------

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Run the layers between inputs and outputs. Subclasses without a network override it."""
        if self._network is None:
            raise NotImplementedError(
                f"Model {type(self).__name__} does not have a `call()` method implemented: define "
                "`call(self, inputs)`, or give `inputs` and `outputs` to the constructor"
            )
        return self._network.run(inputs)

    def _converted(self, value: Any) -> Any:
        if self._network is not None and not isinstance(value, KerasTensor):
            from ..ops.tensor import Tensor

            if isinstance(value, Tensor):
                return value  # the inputs' own dtypes decide
        return super()._converted(value)

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if args and self._seen_inputs is None and all(hasattr(t, "shape") for t in nest.flatten(args[0])):
            self._seen_inputs = self._specs_of(args[0])
        if type(self).build is Model.build:
            self.built = True  # the layers inside build when they are called
        else:
            super()._build_for(args, kwargs)

    def build(self, input_shape: Any = None) -> None:
        """Create the weights for inputs of this shape by tracing `call` on symbolic tensors."""
        if self._network is not None or input_shape is None:
            self.built = True
            return
        if _is_shape(input_shape):
            inputs = KerasTensor(input_shape, self.input_dtype)
        else:
            inputs = _map_shapes(lambda s: KerasTensor(s, self.input_dtype), input_shape)
        self.built, self._seen_inputs = True, inputs
        with_training = {"training": False} if self._call_spec().training else {}
        self.compute_output_spec(inputs, **with_training)

    # ---- what it is made of -----------------------------------------------------------------------------------------

    def _sublayers(self) -> list[Any]:
        found = {id(x): x for x in self.operations if isinstance(x, Layer)} if self._network is not None else {}
        for layer in super()._sublayers():
            found.setdefault(id(layer), layer)
        return list(found.values())

    @property
    def operations(self) -> list[Any]:
        """Layers and operators of a functional model in execution order; otherwise the layers."""
        return list(self._network.operations) if self._network is not None else self.layers

    @property
    def layers(self) -> list[Layer]:
        """Layers directly inside the model."""
        return [x for x in self._sublayers() if isinstance(x, Layer)]

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """Return a layer by name or by index.

        Raises ValueError if it does not exist, or unless one of the two is passed.
        """
        if (index is None) == (name is None):
            raise ValueError(f"Provide either a layer name or layer index. Received: index={index}, name={name}.")
        layers = self.layers
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ValueError(
                    f"Was asked to retrieve layer at index {index} but model only has {len(layers)} layers."
                )
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name}. Existing layers are: {[x.name for x in layers]}.")

    def _of_network(self, what: str) -> Network:
        if self._network is None:
            raise AttributeError(
                f"{type(self).__name__} {self.name!r} has no `{what}`: it is not made of KerasTensors "
                "(see ow.keras.Input), or has not been built"
            )
        return self._network

    @property
    def inputs(self) -> list[KerasTensor]:
        """Input KerasTensors."""
        return list(self._of_network("inputs").flat_inputs)

    @property
    def outputs(self) -> list[KerasTensor]:
        """Output KerasTensors."""
        return list(self._of_network("outputs").flat_outputs)

    @property
    def input(self) -> Any:
        """`inputs` in their structure."""
        return self._of_network("input").inputs

    @property
    def output(self) -> Any:
        """`outputs` in their structure."""
        return self._of_network("output").outputs

    @property
    def input_shape(self) -> Any:
        """Shapes of the inputs, in their structure."""
        return nest.map_structure(lambda t: tuple(t.shape), self.input)

    @property
    def output_shape(self) -> Any:
        """Shapes of the outputs, in their structure."""
        return nest.map_structure(lambda t: tuple(t.shape), self.output)

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return [t.name for t in self.inputs]

    @property
    def output_names(self) -> list[str]:
        """Names of the layers that compute the outputs."""
        return [t.history[0].name if t.history else t.name for t in self.outputs]

    # ---- showing and keeping ----------------------------------------------------------------------------------------

    def summary(
        self,
        line_length: int | None = None,
        positions: Any = None,
        print_fn: Callable[..., Any] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
        layer_range: Any = None,
    ) -> None:
        """Print a table of the layers with output shapes and parameter counts.

        line_length: of the table. print_fn: gets the text instead of stdout. expand_nested: rows for the layers of
        models inside. show_trainable: a column that says what is trained. layer_range: names of the first and last.
        """
        from .summary import text_of

        text = text_of(self, line_length, expand_nested, show_trainable, layer_range)
        (print_fn or print)(text)

    def get_config(self) -> dict[str, Any]:
        """Return the layers' configurations and connections.

        raises NotImplementedError for a subclass whose constructor's arguments are no plain values
        """
        if self._network is None or type(self).__init__ is not Model.__init__:
            return super().get_config()
        from .model_config import of_network

        return of_network(self)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Self:
        """Return a new model with new weights."""
        if "layers" in config and "input_layers" in config:
            from .model_config import network_of

            result: Self = network_of(cls, config, custom_objects)
            return result
        return cls(**config)

    def to_json(self, **kwargs: Any) -> str:
        """Return the configuration as JSON; `models.model_from_json` reads it."""
        from .model_config import serialize

        return json.dumps(serialize(self), **kwargs)

    def save_weights(self, filepath: Any, overwrite: bool = True) -> None:
        """Write the weights to a .safetensors file. Raises ValueError for other extensions."""
        from .weights_io import save_weights

        save_weights(self, filepath, overwrite)

    def load_weights(self, filepath: Any, skip_mismatch: bool = False, **kwargs: Any) -> None:
        """Load weights written by `save_weights` of a model with the same layers.

        skip_mismatch: leave weights out that are missing or of another shape. raises ValueError naming these otherwise
        """
        from .weights_io import load_weights

        load_weights(self, filepath, skip_mismatch)

    def save(self, filepath: Any, overwrite: bool = True, **kwargs: Any) -> None:
        """Save the model.

        A path that ends in .keras: one file with configuration, weights and the arguments of `compile`. Any other path:
        a SavedModel folder; see `ow.saved_model.save`.
        """
        from .weights_io import save_model

        save_model(self, filepath, overwrite, **kwargs)

    def export(
        self,
        filepath: Any,
        format: str = "tf_saved_model",
        verbose: Any = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Export the forward pass as a SavedModel folder; see `ow.saved_model.save`.

        format: "tf_saved_model" is the only one. verbose: whether to say where; by default it is said.
        input_signature: TensorSpecs of the inputs, by default those that the model knows.
        """
        from .weights_io import export

        if format != "tf_saved_model":
            raise ValueError(
                f"Unrecognized format={format!r}. Models are exported as 'tf_saved_model'; for .tflite "
                "there is ow.lite.TFLiteConverter.from_keras_model(model)"
            )
        export(self, filepath, input_signature, **kwargs)
        if verbose is None or verbose:
            print(f"Saved artifact at '{filepath}'.")

    def input_specs(self) -> Any:
        """Return TensorSpecs of the inputs, in their structure, for tracing the forward pass.

        raises ValueError where the model was neither laid out from KerasTensors, nor called, nor built
        """
        if self._network is not None:
            return nest.map_structure(lambda t: TensorSpec(t.shape, t.dtype, t.name), self.input)
        if self._seen_inputs is None:
            raise ValueError(
                f"Model {self.name!r} has not been called yet, so the shapes of its inputs are not known. "
                "Call it on some data, or `build(input_shape)` it, first"
            )
        seen = nest.flatten_with_paths(self._seen_inputs)
        if isinstance(self._seen_inputs, dict):
            names = ["_".join(map(str, path)) for path, _ in seen]
        else:  # as Keras calls arguments of a model that is laid out by its `call`
            names = ["args_0" if i == 0 else f"args_0_{i}" for i in range(len(seen))]
        specs = [TensorSpec(t.shape, t.dtype, name) for name, (_, t) in zip(names, seen)]
        return nest.pack_sequence_as(self._seen_inputs, specs)

    def _specs_of(self, batch: Any) -> Any:
        """Return KerasTensors with the specs of a batch, for any batch size."""

        def leaf(x: Any) -> KerasTensor:
            dims = x.shape.dims
            return KerasTensor(None if dims is None else (None, *dims[1:]) if dims else dims, x.dtype)

        return nest.map_structure(leaf, batch)
