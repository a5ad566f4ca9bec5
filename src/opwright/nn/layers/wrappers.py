"""Layers that wrap a layer; serialization of layers.

Lives here: Wrapper, Bidirectional, TimeDistributed, SpectralNormalization; `serialize`, `deserialize`.
Not here: recurrent layers (recurrent.py), configurations of models (../model_config.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ops import array, dispatch, linalg, math
from ...tracing.control.higher_order import loop_over
from .. import initializers, model_config
from ..layer import Layer
from ..layer_calls import InputSpec
from .configurable_layer import ConfigurableLayer, if_training

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def serialize(layer: Any) -> dict[str, Any]:
    """Return a layer as a dictionary of its class name and configuration."""
    return model_config.serialize(layer)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Layer:
    """Return the layer of a serialized configuration, with new weights. custom_objects: user classes by name."""
    layer: Layer = model_config.deserialize(config, custom_objects)
    return layer


class Wrapper(ConfigurableLayer):
    """Base class of layers that wrap another layer. Raises ValueError unless `layer` is one."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        if not isinstance(layer, Layer):
            raise ValueError(
                f"Layer {layer} supplied to Wrapper isn't a supported layer type. Please ensure wrapped "
                f"layer "
                "is a valid Keras layer."
            )
        super().__init__(**kwargs)
        self.layer = layer

    def build(self, input_shape: Any = None) -> None:
        """Build the wrapped layer."""
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {**super().get_config(), "layer": serialize(self.layer)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Wrapper:
        """Return a new layer that wraps a new layer."""
        config = dict(config)
        return cls(deserialize(config.pop("layer"), custom_objects), **config)


MERGES = ("sum", "mul", "ave", "concat", None)


class Bidirectional(ConfigurableLayer):
    """Pair of recurrent layers that process the same sequences forwards and backwards.

    merge_mode: the reduction of both outputs, or None for a pair. backward_layer: by default a reversed copy of the
    layer. Weights: of forward_layer, then of backward_layer. With return_state, forward states and then backward states
    follow the output; initial_state has the same order.
    raises ValueError for inconsistent layers
    """

    def __init__(
        self,
        layer: Any,
        merge_mode: str | None = "concat",
        weights: Any = None,
        backward_layer: Any = None,
        **kwargs: Any,
    ) -> None:
        for what, value in (("layer", layer), ("backward_layer", backward_layer)):
            if not isinstance(value, Layer) and (what == "layer" or value is not None):
                raise ValueError(
                    f"Please initialize `Bidirectional` layer with a `keras.layers.Layer` instance as "
                    f"`{what}`. Received: {value}"
                )
        if merge_mode not in MERGES:
            raise ValueError(
                f"Invalid merge mode. Received: {merge_mode}. Merge mode should be one of "
                '{"sum", "mul", "ave", "concat", None}'
            )
        super().__init__(**kwargs)
        self._set_arguments(merge_mode=merge_mode)
        self.forward_layer = _clone_layer(layer, "forward_")
        if backward_layer is None:
            backward_layer = _clone_layer(layer, "backward_", go_backwards=not layer.go_backwards)
        self.backward_layer = backward_layer
        if self.forward_layer.go_backwards == self.backward_layer.go_backwards:
            raise ValueError(
                "Forward layer and backward layer should have different `go_backwards` value. Received: "
                f"{self.forward_layer.go_backwards} for both"
            )
        for name in ("stateful", "return_sequences", "return_state"):
            first, second = getattr(self.forward_layer, name), getattr(self.backward_layer, name)
            if first != second:
                raise ValueError(
                    f"Forward layer and backward layer are expected to have the same value for attribute "
                    f'"{name}", got "{first}" for forward layer and "{second}" for backward '
                    f"layer"
                )
            setattr(self, name, first)
        for inner in (self.forward_layer, self.backward_layer):
            if hasattr(inner, "zero_output_for_mask"):
                inner.zero_output_for_mask = inner.return_sequences
        if weights:
            half = len(weights) // 2
            self.forward_layer._initial_weights = list(weights[:half])
            self.backward_layer._initial_weights = list(weights[half:])
        self.supports_masking = True

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Build both layers."""
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:
                layer.build(sequences_shape)
                layer.built = True
            if layer._initial_weights is not None:
                layer.set_weights(layer._initial_weights)
                layer._initial_weights = None

    def call(
        self, sequences: Any, initial_state: Any = None, mask: Any = None, training: Any = None
    ) -> Tensor | tuple[Tensor, ...]:
        """Run both layers and merge their outputs."""
        kwargs: dict[str, Any] = {}
        spec = self.forward_layer._call_spec()
        if spec.training:
            kwargs["training"] = training
        if spec.mask:
            kwargs["mask"] = mask
        forth, back = None, None
        if initial_state is not None:
            half = len(initial_state) // 2
            forth, back = list(initial_state[:half]), list(initial_state[half:])
        y = self.forward_layer(sequences, initial_state=forth, **kwargs)
        z = self.backward_layer(sequences, initial_state=back, **kwargs)
        states: tuple[Any, ...] = ()
        if self.return_state:
            states = (*y[1:], *z[1:])
            y, z = y[0], z[0]
        if self.return_sequences:
            z = array.reverse(z, [1])
        if self.merge_mode is None:
            return (y, z, *states)
        merged = self._merge(y, z)
        return (merged, *states) if self.return_state else merged

    def _merge(self, y: Tensor, z: Tensor) -> Tensor:
        if self.merge_mode == "concat":
            return array.concat([y, z], -1)
        if self.merge_mode == "mul":
            return y * z
        return y + z if self.merge_mode == "sum" else (y + z) / 2.0

    @property
    def states(self) -> tuple[Any, ...] | None:
        """State variables of both layers, or None."""
        if self.forward_layer.states and self.backward_layer.states:
            return (*self.forward_layer.states, *self.backward_layer.states)
        return None

    def reset_state(self) -> None:
        """Set the state variables to zero. Raises AttributeError unless the layer is stateful."""
        if not self.stateful:
            raise AttributeError("Layer must be stateful.")
        self.forward_layer.reset_state()
        self.backward_layer.reset_state()

    reset_states = reset_state

    def compute_output_shape(self, sequences_shape: Any, initial_state_shape: Any = None) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the output shape; with return_state, followed by the state shapes."""
        output = self.forward_layer.compute_output_shape(sequences_shape)
        states: tuple[Any, ...] = ()
        if self.return_state:
            output, states = output[0], tuple(output[1:])
        if self.merge_mode is None:
            return (output, output, *states, *states)
        merged = (*output[:-1], output[-1] * 2) if self.merge_mode == "concat" else output
        return (merged, *states, *states) if self.return_state else merged

    def compute_mask(self, inputs: Any, mask: Any = None) -> list[Tensor | None] | Tensor | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the input's mask if all steps are returned; states have none."""
        mask = mask[0] if isinstance(mask, list) else mask
        output_mask = mask if self.return_sequences else None
        outputs = [output_mask, output_mask] if self.merge_mode is None else [output_mask]
        if self.return_state:
            outputs += [None] * (2 * len(self.forward_layer.state_size))
        return outputs if len(outputs) > 1 else output_mask

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {
            **super().get_config(),
            "layer": serialize(self.forward_layer),
            "backward_layer": serialize(self.backward_layer),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Bidirectional:
        """Return a new layer with new forward and backward layers."""
        config = dict(config)
        for name in ("layer", "backward_layer"):
            if config.get(name) is not None:
                config[name] = deserialize(config[name], custom_objects)
        return cls(**config)


def _clone_layer(layer: Any, prefix: str, **changed: Any) -> Any:
    """Return a layer of the same configuration, with its own weights."""
    config = {**layer.get_config(), **changed, "name": prefix + layer.name.removeprefix(prefix)}
    return type(layer).from_config(config)


class TimeDistributed(Wrapper):
    """Layer applied at each step of sequences [batch, time, ...]. mask: [batch, time]."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(layer, **kwargs)
        self.supports_masking = True

    def _step_shape(self, input_shape: Any) -> tuple[Any, ...]:
        if not isinstance(input_shape, (tuple, list)) or len(input_shape) < 3:
            raise ValueError(
                "`TimeDistributed` Layer should be passed an `input_shape` with at least 3 dimensions, "
                f"received: {input_shape}"
            )
        return (input_shape[0], *input_shape[2:])

    def build(self, input_shape: Any = None) -> None:
        """Build the wrapped layer for one step."""
        super().build(self._step_shape(input_shape))

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape of the wrapped layer, with the time axis inserted."""
        step_shape = self.layer.compute_output_shape(self._step_shape(input_shape))
        return (step_shape[0], input_shape[1], *step_shape[1:])

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Tensor:
        """Call the wrapped layer at each step."""
        spec = self.layer._call_spec()
        if mask is not None:
            if mask.shape.rank is not None and mask.shape.rank < 2:
                raise ValueError(
                    "The `mask` passed to the `TimeDistributed` layer must be at least 2D (e.g., "
                    f"`(batch_size, timesteps)`), but it has {mask.shape.rank} dimension(s) with shape "
                    f"{mask.shape}."
                )
            if not mask.shape[:2].is_compatible_with(inputs.shape[:2]):
                raise ValueError(
                    f"The `mask` passed to the `TimeDistributed` layer has a shape {mask.shape} that is "
                    f"incompatible with the input shape {inputs.shape}."
                )
        steps = {"x": _swap_batch_and_time(inputs)}
        if mask is not None and spec.mask:
            steps["mask"] = _swap_batch_and_time(mask)
        modes = {"training": training} if spec.training else {}

        def step(element: dict[str, Any]) -> Tensor:
            mask_argument = {"mask": element["mask"]} if "mask" in element else {}
            output: Tensor = self.layer(element["x"], **mask_argument, **modes)
            return output

        time = inputs.shape[1]
        if time:
            columns = {k: array.unstack(v, num=time) for k, v in steps.items()}
            return _swap_batch_and_time(array.stack([step({k: v[i] for k, v in columns.items()}) for i in range(time)]))
        count = array.shape(inputs)[1] if time is None and dispatch.state.trace is not None else inputs.shape[1]
        flat = [steps[k] for k in sorted(steps)]
        _, outputs = loop_over(lambda element, _: ((), step(element)), steps, flat, count, (), False)
        return _swap_batch_and_time(outputs)


def _swap_batch_and_time(x: Any) -> Tensor:
    """Swap the batch and time axes."""
    return array.transpose(x, [1, 0, *range(2, x.shape.rank)])


class SpectralNormalization(Wrapper):
    """Wrapper that divides the kernel by its largest singular value in training (Miyato et al. 2018).

    power_iterations: the number of power iterations per call. Weights: vector_u, then the layer's.
    raises ValueError for a layer without kernel or embeddings
    """

    def __init__(self, layer: Any, power_iterations: int = 1, **kwargs: Any) -> None:
        super().__init__(layer, **kwargs)
        if power_iterations <= 0:
            raise ValueError(
                f"`power_iterations` should be greater than zero. Received: `power_iterations={power_iterations}`"
            )
        self._set_arguments(power_iterations=power_iterations)

    def build(self, input_shape: Any = None) -> None:
        """Build the wrapped layer, and create vector_u."""
        super().build(input_shape)
        self.input_spec = InputSpec(min_ndim=1, axes={-1: input_shape[-1]})
        kernel = getattr(self.layer, "_kernel", None)
        if kernel is None:
            kernel = getattr(self.layer, "kernel", None)
        if kernel is None or not hasattr(kernel, "assign"):
            raise ValueError(f"{type(self.layer).__name__} object has no attribute 'kernel' nor 'embeddings'")
        self.kernel = kernel
        self.vector_u = self.add_weight(
            name="vector_u",
            shape=(1, kernel.shape[-1]),
            dtype=kernel.dtype,
            trainable=False,
            initializer=initializers.TruncatedNormal(stddev=0.02),
        )

    def call(self, inputs: Tensor, training: Any = False) -> Tensor:
        """Normalize the kernel in training, and call the wrapped layer."""

        def update() -> Tensor:
            u, kernel = self.normalized_weights()
            zero = math.reduce_all(math.equal(self.kernel, 0.0))
            self.vector_u.assign(array.where(zero, self.vector_u, u))
            self.kernel.assign(array.where(zero, self.kernel, kernel))
            return array.identity(True)

        if_training(training, update, lambda: array.identity(True))
        outputs: Tensor = self.layer(inputs)
        return array.cast(outputs, inputs.dtype)

    def normalized_weights(self) -> tuple[Any, Any]:
        """Return the updated vector_u, and the kernel divided by its largest singular value (power iteration)."""
        weights = array.reshape(self.kernel, [-1, self.kernel.shape[-1]])
        u = v = array.identity(self.vector_u)
        for _ in range(self.power_iterations):
            v = _unit(linalg.matmul(u, weights, transpose_b=True))
            u = _unit(linalg.matmul(v, weights))
        u, v = array.stop_gradient(u), array.stop_gradient(v)
        sigma = linalg.matmul(linalg.matmul(v, weights), u, transpose_b=True)
        return u, array.reshape(self.kernel / sigma, self.kernel.shape.as_list())

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape of the wrapped layer."""
        output_shape: tuple[Any, ...] = self.layer.compute_output_shape(input_shape)
        return output_shape


def _unit(x: Tensor) -> Tensor:
    return x * math.rsqrt(math.maximum(math.reduce_sum(math.square(x)), 1e-12))
