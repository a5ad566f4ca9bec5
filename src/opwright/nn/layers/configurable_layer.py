"""Base of the layers of this package: constructor arguments as attributes, LoRA, the training mode.

Lives here: `ConfigurableLayer`, whose attributes, weights and configuration follow from argument names; checks of
sizes, paddings and data formats; `LowRankAdaptation`, LoRA: training a product of two narrow matrices added to a frozen
kernel (Hu et al. 2021); `if_training`.
Not here: the base class of all layers, the mode of a call (../layer.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...ops import array, dispatch, linalg
from ...ops.tensor import TensorLike
from ...tracing.control import cond
from .. import activations, constraints, initializers, quantizers, regularizers
from ..backend import image_data_format
from ..layer import Layer

if TYPE_CHECKING:
    from ...eager.variable import Variable
    from ...ops.tensor import Tensor

# Arguments with these suffixes are members of a registry: resolved by name, serialized as dictionaries.
T = TypeVar("T")

_REGISTRIES = {
    "activation": activations,
    "initializer": initializers,
    "regularizer": regularizers,
    "constraint": constraints,
}


def _registry_of(name: str) -> ModuleType | None:
    return _REGISTRIES.get(name.rpartition("_")[2])


def parameter_names(cls: Any) -> tuple[str, ...]:
    """Return the names of the constructor's parameters, without self and **kwargs."""
    code = cls.__init__.__code__
    names: tuple[str, ...] = code.co_varnames[1 : code.co_argcount]
    return names


class ConfigurableLayer(Layer):
    """Layer whose constructor arguments become attributes and the configuration."""

    _argument_names: tuple[str, ...] = ()

    if TYPE_CHECKING:  # the attributes that `_set_arguments` sets
        activation: Callable[..., Tensor]
        recurrent_activation: Callable[..., Tensor]

        def __getattr__(self, name: str) -> Any: ...

    def _set_arguments(
        self, constructor_locals: Mapping[str, Any] | None = None, omit: Sequence[str] = (), **arguments: Any
    ) -> None:
        """Set constructor arguments as attributes; those of registered kinds are resolved by name.

        constructor_locals: `locals()` of a constructor, for all of its named parameters except `omit`. arguments:
        further arguments, or converted values of these.
        """
        if constructor_locals is not None:
            names = parameter_names(constructor_locals["__class__"])
            arguments = {name: constructor_locals[name] for name in names if name not in omit} | arguments
        for name, value in arguments.items():
            registry = _registry_of(name)
            if name != "activity_regularizer":  # set by the base class
                setattr(self, name, value if registry is None else registry.get(value))
        self._argument_names = (*self._argument_names, *arguments)

    def _weight(self, name: str, shape: Sequence[int | None], family: str | None = None, dtype: Any = None) -> Variable:
        """Create a weight with the initializer, regularizer and constraint of the arguments `family`_..."""
        family = family or name
        return self.add_weight(
            name=name,
            shape=tuple(shape),
            dtype=dtype,
            initializer=getattr(self, f"{family}_initializer"),
            regularizer=getattr(self, f"{family}_regularizer", None),
            constraint=getattr(self, f"{family}_constraint", None),
        )

    def _cast(self, weight: TensorLike) -> TensorLike:
        """Cast a weight to the compute dtype, which differs under mixed precision."""
        return weight if self._variable_dtype is self._compute_dtype else array.cast(weight, self._compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        config = super().get_config()
        for name in self._argument_names:
            value, registry = getattr(self, name), _registry_of(name)
            config[name] = value if registry is None else registry.serialize(value)
        return config


def sizes(value: Any, n: int, name: str, allow_zero: bool = False) -> tuple[int, ...]:
    """Return n integers from one integer or a sequence of n. Raises ValueError for other values."""
    values = (value,) * n if isinstance(value, int) else tuple(value) if isinstance(value, (list, tuple)) else ()
    minimum = 0 if allow_zero else 1
    if len(values) != n or not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        raise ValueError(f"The `{name}` argument must be a tuple of {n} integers. Received: {name}={value}")
    if any(v < minimum for v in values):
        condition = ">= 0" if allow_zero else "> 0"
        raise ValueError(
            f"The `{name}` argument must be a tuple of {n} integers. Received {name}={value}, including "
            f"values that do not satisfy `value {condition}`"
        )
    return values


def padding_name(value: Any, allow_causal: bool = False) -> str:
    """Return "valid", "same" or, if allowed, "causal". Raises ValueError for other values."""
    allowed = ("valid", "same", "causal") if allow_causal else ("valid", "same")
    name = value.lower() if isinstance(value, str) else value
    if name not in allowed:
        raise ValueError(
            f"The `padding` argument must be one of {', '.join(map(repr, allowed))}. Received: padding={value}"
        )
    return str(name)


def data_format_name(value: Any) -> str:
    """Return "channels_last" or "channels_first"; the default for None. Raises ValueError for other values."""
    if value is None:
        return str(image_data_format())
    name = str(value).lower()
    if name not in ("channels_last", "channels_first"):
        raise ValueError(
            'The `data_format` argument must be one of ("channels_first", "channels_last"). '
            f"Received: data_format={value}"
        )
    return name


def size_pairs(value: Any, n: int, name: str) -> tuple[tuple[int, int], ...]:
    """Return n pairs (before, after) from one integer, n integers or n pairs. Raises ValueError for other values."""
    if isinstance(value, int):
        return ((value, value),) * n
    expectation = f"`{name}` should have {n} elements" if n > 1 else f"`{name}` should be an integer or a pair"
    if n == 1 and isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(v, int) for v in value):
        value = (tuple(value),)
    single = n == 1 and isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], int)
    if not isinstance(value, (list, tuple)) or len(value) != n or single:
        raise ValueError(f"{expectation}. Received: {name}={value}")
    return tuple(sizes(v, 2, name, allow_zero=True)[:2] for v in value)  # type: ignore[misc]


def channel_axis(data_format: str) -> int:
    """Return the channel axis: -1 or 1."""
    return -1 if data_format == "channels_last" else 1


def spatial_sizes(shape: Sequence[Any], data_format: str) -> tuple[Any, ...]:
    """Return the spatial sizes of an image shape."""
    return tuple(shape[1:-1]) if data_format == "channels_last" else tuple(shape[2:])


def image_shape(batch: Any, middle: Sequence[Any], channels: Any, data_format: str) -> tuple[Any, ...]:
    """Return the image shape with these sizes."""
    return (batch, *middle, channels) if data_format == "channels_last" else (batch, channels, *middle)


class MergedKernel:
    """The kernel of a layer with LoRA as Keras's files have it: with the product, which assignments set to 0."""

    def __init__(self, layer: Any) -> None:
        self._layer, self.dtype = layer, layer._kernel.dtype

    def read_array(self) -> np.ndarray:
        """Return the sum of kernel and product."""
        return np.asarray(self._layer._effective_kernel())

    def assign(self, value: Any) -> None:
        """Set the kernel, and the parts of the product to 0."""
        self._layer._kernel.assign(value)
        for part in (self._layer.lora_kernel_a, self._layer.lora_kernel_b):
            part.assign(np.zeros(part.shape, part.dtype.np))


class LowRankAdaptation:
    """Mixin of layers with `_kernel`: LoRA adds (alpha / rank) A @ B to it."""

    _lora_kernel = "kernel"  # prefix of the argument names

    def _init_lora(self, rank: int | None, alpha: float | None, quantization_config: Any = None) -> None:
        self.quantization_config = quantizers.get(quantization_config)
        self.lora_rank, self.lora_enabled = rank, False
        self.lora_alpha = alpha if alpha is not None else rank

    def _build_lora(self) -> None:
        self.built = True
        if self.lora_rank:
            self.enable_lora(self.lora_rank, lora_alpha=self.lora_alpha)

    def _effective_kernel(self) -> Tensor | Variable:
        layer: Any = self
        if not layer.built:
            raise AttributeError(f"You must build the layer before accessing `{self._lora_kernel}`.")
        kernel: Tensor | Variable = layer._kernel
        if self.lora_enabled:
            kernel = kernel + array.cast(self._low_rank(), kernel.dtype)
        return kernel

    def _low_rank(self) -> Tensor:
        """Return the product that LoRA adds to the kernel."""
        layer: Any = self
        rank: Any = self.lora_rank
        product: Tensor = (self.lora_alpha / rank) * linalg.tensordot(layer.lora_kernel_a, layer.lora_kernel_b, 1)
        return product

    @property
    def kernel(self) -> Tensor | Variable:
        """The kernel, including the low-rank product if LoRA is enabled."""
        return self._effective_kernel()

    def stored_weights(self) -> list[Any]:
        """Return the weights of the layer with LoRA as Keras's files have them: the kernel first, without A and B."""
        layer: Any = self
        parts = {id(layer._kernel), id(layer.lora_kernel_a), id(layer.lora_kernel_b)}
        return [MergedKernel(layer), *(v for v in layer._own_variables() if id(v) not in parts)]

    def enable_lora(
        self,
        rank: int,
        lora_alpha: float | None = None,
        a_initializer: Any = "he_uniform",
        b_initializer: Any = "zeros",
    ) -> None:
        """Freeze the kernel, and train A [..., rank] and B [rank, last size of the kernel] instead.

        raises ValueError if the kernel has a constraint, the layer is not built, or LoRA is already enabled
        """
        layer: Any = self
        if getattr(layer, f"{self._lora_kernel}_constraint", None):
            raise ValueError(
                f"Lora is incompatible with {self._lora_kernel.removesuffix('s')} constraints. In order to enable lora "
                f"on this layer, remove the `{self._lora_kernel}_constraint` argument."
            )
        if not layer.built:
            raise ValueError("Cannot enable lora on a layer that isn't yet built.")
        if layer.quantization_mode in ("gptq", "awq"):
            raise NotImplementedError(f"lora is not supported with {layer.quantization_mode.upper()} quantization")
        if self.lora_enabled:
            raise ValueError("lora is already enabled. This can only be done once per layer.")
        shape = tuple(getattr(layer, "_kernel_shape", layer._kernel.shape))  # of two integers a byte, the whole
        regularizer = getattr(layer, f"{self._lora_kernel}_regularizer", None)
        parts = ("a", (*shape[:-1], rank), a_initializer), ("b", (rank, shape[-1]), b_initializer)
        for end, dims, initializer in parts:
            weight = layer.add_weight(
                name=f"lora_{self._lora_kernel}_{end}",
                shape=dims,
                dtype="float32",  # of any kernel
                regularizer=regularizer,
                initializer=initializers.get(initializer),
            )
            setattr(layer, f"lora_kernel_{end}", weight)
            if self._lora_kernel != "kernel":  # by Keras's name, too
                object.__setattr__(layer, f"lora_{self._lora_kernel}_{end}", weight)
        layer._kernel.trainable = False
        self.lora_enabled, self.lora_rank = True, rank
        self.lora_alpha = lora_alpha if lora_alpha is not None else rank

    def get_config(self) -> dict[str, Any]:
        """Return the layer's arguments, and the rank if LoRA is configured."""
        config: dict[str, Any] = super().get_config()  # type: ignore[misc]
        if self.lora_rank:
            config.update(lora_rank=self.lora_rank, lora_alpha=self.lora_alpha)
        if self.quantization_config is not None:
            config["quantization_config"] = quantizers.serialize(self.quantization_config)
        return config


def if_training(training: Any, then: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """Return `then()` if training, else `otherwise()`; a conditional of the graph if training is symbolic.

    training: a bool, None (false), or a scalar tensor or variable.
    """
    if not isinstance(training, TensorLike):
        return then() if training else otherwise()
    if dispatch.state.trace is None:
        return then() if bool(training) else otherwise()
    return cond(array.cast(training, "bool"), then, otherwise)
