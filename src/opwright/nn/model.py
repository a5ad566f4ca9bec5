"""Model: a layer that can be trained, evaluated, summarized and saved.

Lives here: the class, functional or subclassed; its layers, summary, configuration.
Not here: training (training/), graphs of layers (network.py), stacks (models.py), files (weights_io.py).
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from typing import Any, Self

from ..core import nest
from ..core.notebook_reprs import shown_as
from ..core.specs import TensorSpec
from ..ops.tensor import Tensor
from . import calibration, configuration, quantizers, state_trees
from .keras_tensor import KerasTensor
from .layer import Layer
from .layer_shapes import keras_tensors
from .model_config import serialize
from .model_files import export, save_model
from .network import Network
from .network_config import network_config, network_from_config
from .summary import text_of
from .training.trainer import Trainer
from .weights_io import load_weights, save_weights


class Model(Trainer, Layer):
    """Model of layers.

    Either functional, Model(inputs, outputs, name=None) of KerasTensors (see `Input`) or lists and dicts of them; or a
    subclass whose constructor creates layers and whose `call(inputs, training=None, mask=None)` calls them.

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
            name = configuration.fresh("Functional")
        super().__init__(name=name, trainable=trainable, dtype=dtype, **kwargs)
        self._network: Network | None = None
        self._symbolic_inputs: Any = None  # KerasTensors like the first inputs of a model without a network
        self._init_training()
        if (inputs is None) != (outputs is None):
            raise ValueError("A Model requires both `inputs` and `outputs`, or neither (a subclass with a `call`)")
        if inputs is not None:
            self._network = Network(inputs, outputs, self.name)
            self.built = True
            if not trainable:
                self.trainable = False  # of the layers, too

    # ---- running ----------------------------------------------------------------------------------------------------

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Run the layers between inputs and outputs. Subclasses without a network override it."""
        if self._network is None:
            raise NotImplementedError(
                f"Model {type(self).__name__} does not have a `call()` method implemented: define "
                "`call(self, inputs)`, or pass `inputs` and `outputs` to the constructor"
            )
        return self._network.run(inputs)

    def _convert_argument(self, value: Any) -> Any:
        if self._network is not None and isinstance(value, Tensor) and not isinstance(value, KerasTensor):
            return value  # the network converts to the inputs' dtypes
        return super()._convert_argument(value)

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if args and self._symbolic_inputs is None and all(hasattr(t, "shape") for t in nest.flatten(args[0])):
            self._symbolic_inputs = self._specs_of(args[0])
        if type(self).build is Model.build:
            self.built = True  # nested layers are built by their calls
        else:
            super()._build_for(args, kwargs)

    def build(self, input_shape: Any = None) -> None:
        """Create the weights for inputs of this shape by tracing `call` on symbolic tensors."""
        if self._network is not None or input_shape is None:
            self.built = True
            return
        inputs = keras_tensors(input_shape, self.input_dtype)
        self.built, self._symbolic_inputs = True, inputs
        with_training = {"training": False} if self._call_spec().training else {}
        self.compute_output_spec(inputs, **with_training)

    # ---- layers and graph -------------------------------------------------------------------------------------------

    def _sublayers(self) -> list[Any]:
        layers = {id(x): x for x in self.operations if isinstance(x, Layer)} if self._network is not None else {}
        for layer in super()._sublayers():
            layers.setdefault(id(layer), layer)
        return list(layers.values())

    @property
    def operations(self) -> list[Any]:
        """Layers and operators of a functional model in execution order; otherwise the layers."""
        return list(self._network.operations) if self._network is not None else self.layers

    @property
    def layers(self) -> list[Layer]:
        """Layers directly inside the model."""
        return [x for x in self._sublayers() if isinstance(x, Layer)]

    @layers.setter
    def layers(self, _: Any) -> None:
        raise AttributeError(f"`Model.layers` attribute is reserved and should not be used. {self._ways_to_add}")

    _ways_to_add = "Please use another name for the attribute of a list of layers."

    @property
    def has_layer_list(self) -> bool:
        """Whether files of Keras store the layers as a list: of Sequential and functional models."""
        return self._network is not None

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

    def _require_network(self, what: str) -> Network:
        if self._network is None:
            raise AttributeError(
                f"{type(self).__name__} {self.name!r} has no `{what}`: it is not functional "
                "(see ow.keras.Input), or has not been built"
            )
        return self._network

    @property
    def inputs(self) -> list[KerasTensor]:
        """Input KerasTensors."""
        return list(self._require_network("inputs").flat_inputs)

    @property
    def outputs(self) -> list[KerasTensor]:
        """Output KerasTensors."""
        return list(self._require_network("outputs").flat_outputs)

    @property
    def input(self) -> Any:
        """`inputs` in their structure."""
        return self._require_network("input").inputs

    @property
    def output(self) -> Any:
        """`outputs` in their structure."""
        return self._require_network("output").outputs

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

    _repr_html_ = shown_as("model")

    # ---- summary and saving -----------------------------------------------------------------------------------------

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

        line_length: width of the table. print_fn: receives the text instead of stdout. expand_nested: rows for layers
        of nested models. show_trainable: a column of trainability. layer_range: names of the first and last layer.
        """
        text = text_of(self, line_length, expand_nested, show_trainable, layer_range)
        (print_fn or print)(text)

    def get_config(self) -> dict[str, Any]:
        """Return the layers' configurations and connections.

        Subclasses with constructor arguments override it. Raises NotImplementedError if these are not plain values.
        """
        if self._network is None or type(self).__init__ is not Model.__init__:
            return super().get_config()
        return network_config(self)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Self:
        """Return a new model with new weights."""
        if "layers" in config and "input_layers" in config:
            return network_from_config(cls, config, custom_objects)
        return cls(**config)

    def to_json(self, **kwargs: Any) -> str:
        """Return the configuration as JSON; `models.model_from_json` reads it."""
        return json.dumps(serialize(self), **kwargs)

    def get_state_tree(self, value_format: str = "backend_tensor") -> dict[str, Any]:
        """Return the values of all variables, of optimizer and metrics too, as nested dictionaries by their paths.

        value_format: "backend_tensor", or "numpy_array" for arrays.
        raises ValueError if two variables have one path
        """
        return state_trees.get_state_tree(self, value_format)

    def set_state_tree(self, state_tree: dict[str, Any]) -> None:
        """Assign values as `get_state_tree` returns them; paths that the model does not have are skipped.

        raises ValueError for other groups of variables
        """
        state_trees.set_state_tree(self, state_tree)

    def save_weights(self, filepath: Any, overwrite: bool = True, max_shard_size: float | None = None) -> None:
        """Write the weights to a .safetensors file, or a .weights.h5 file, which Keras 3 reads, too (it needs h5py).

        max_shard_size: the most GB of one of several files, which a .weights.json lists. raises ValueError for other
        extensions
        """
        save_weights(self, filepath, overwrite, max_shard_size)

    def load_weights(self, filepath: Any, skip_mismatch: bool = False, **kwargs: Any) -> None:
        """Load weights written by `save_weights` of a model with the same layers, here or, as .weights.h5, by Keras 3.

        skip_mismatch: skip missing weights and those of another shape; otherwise they raise ValueError.
        objects_to_skip: layers that keep their weights. by_name: whether layers of an .h5 file are found by name
        """
        if unknown := sorted(set(kwargs) - {"objects_to_skip", "by_name"}):
            raise ValueError(f"Invalid keyword arguments: {unknown}")
        load_weights(self, filepath, skip_mismatch, **kwargs)

    def quantize(  # type: ignore[override]  # Keras has other orders for models and layers
        self, mode: str | None = None, config: Any = None, filters: Any = None, **kwargs: Any
    ) -> None:
        """Convert the kernels of Dense, EinsumDense, Embedding and ReversibleEmbedding layers: to integers, which are
        not trained any more, or to float8.

        mode: "int8", "int4", "float8" (Dense and EinsumDense), or config, of `keras.quantizers`; "gptq" and "awq" with
        a config, which convert Dense and EinsumDense layers in the blocks of its structure. filters: of the layers: a
        regular expression of their names, several, or a function of a layer. type_check: whether subclasses of these
        layers are left as they are, with a warning.
        raises ValueError for other modes and contradictions
        """
        type_check = kwargs.pop("type_check", True)
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments passed to {type(self).__name__}: {kwargs}")
        config = quantizers.resolve(mode, config)
        patterns = [filters] if isinstance(filters, str) else filters

        def convert(root: Layer) -> list[Any]:
            converted: list[Any] = []
            for layer in root._flatten_layers():
                if patterns is not None:
                    chosen = patterns(layer) if callable(patterns) else any(re.search(p, layer.name) for p in patterns)
                    if not chosen:
                        continue
                if hasattr(layer, "quantize") and not isinstance(layer, Model):
                    try:
                        layer.quantize(config.mode, type_check=type_check, config=config)
                    except NotImplementedError as error:
                        warnings.warn(str(error), stacklevel=3)
                    else:
                        converted.append(layer)
            return converted

        if isinstance(config, quantizers.CalibratedConfig):
            calibration.calibrate(calibration.structure_of(self, config), config, convert)
        else:
            convert(self)
        for kind in ("train", "test", "predict"):
            self._trainer.steps.discard(kind)

    def get_quantization_layer_structure(self, mode: str | None = None) -> dict[str, Any] | None:
        """Return {"pre_block_layers": layers that inputs pass first, "sequential_blocks": blocks in their order}.

        For modes that quantize block by block, "gptq" and "awq"; models that have one override it.
        """
        return None

    def save(self, filepath: Any, overwrite: bool = True, **kwargs: Any) -> None:
        """Save the model.

        A path that ends in .keras: one file with configuration, weights, the arguments of `compile` and the state of
        the optimizer. Keras 3 opens it, too, if h5py is installed and Keras has all that the model consists of;
        keras_format=True raises an error otherwise, keras_format=False writes weights as .safetensors in any case. Any
        other path: a SavedModel folder; see `ow.saved_model.save`.
        """
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

        format: only "tf_saved_model". verbose: whether to print the path (the default).
        input_signature: TensorSpecs of the inputs, by default the model's `input_specs()`.
        """
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

        raises ValueError unless the model is functional, or was called or built
        """
        if self._network is not None:
            return nest.map_structure(lambda t: TensorSpec(t.shape, t.dtype, t.name), self.input)
        if self._symbolic_inputs is None:
            raise ValueError(
                f"Model {self.name!r} has not been called yet, so the shapes of its inputs are unknown. "
                "Call it on data, or `build(input_shape)` it, first"
            )
        seen = nest.flatten_with_paths(self._symbolic_inputs)
        if isinstance(self._symbolic_inputs, dict):
            names = ["_".join(map(str, path)) for path, _ in seen]
        else:  # Keras's names for arguments of a subclassed model
            names = ["args_0" if i == 0 else f"args_0_{i}" for i in range(len(seen))]
        specs = [TensorSpec(t.shape, t.dtype, name) for name, (_, t) in zip(names, seen)]
        return nest.pack_sequence_as(self._symbolic_inputs, specs)

    def _specs_of(self, batch: Any) -> Any:
        """Return KerasTensors with the specs of a batch, for any batch size."""

        def leaf(x: Any) -> KerasTensor | None:
            if x is None:  # an optional input
                return None
            dims = x.shape.dims
            return KerasTensor(None if dims is None else (None, *dims[1:]) if dims else dims, x.dtype)

        return nest.map_structure(leaf, batch)
