"""Layer: a module whose weights are created by its first call, with a training mode, masks and losses.

Lives here: the constructor, building, calling.
Not here: weights and their order (module.py), dtypes (layer_dtypes.py), configuration (configuration.py), parameters of
`call` (call_spec.py), structures of shapes (layer_shapes.py), masks and the call's context (layer_calls.py), the layers
(layers/), models (model.py).

A call converts arrays to tensors and floating-point tensors to the compute dtype, checks the inputs, creates the
weights by `build` if it is the first, passes training mode and masks to `call` where it has such parameters, runs
`call` in the layer's name scope, and records losses and masks. A call on KerasTensors builds the layer and records a
node.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, TypeVar

import numpy as np

from ..autograph.api import convert_if_enabled
from ..core import nest
from ..core.dtypes import DType
from ..ops import array, dispatch, math
from ..ops.tensor import Tensor, TensorLike
from ..tracing.name_scopes import name_scope
from ..tracing.trace import TRACING, FuncTrace
from ..tracing.tracer import autograph_enabled
from . import configuration, dtype_policies, regularizers, rematerialization
from .call_spec import CallSpec
from .configuration import ConstructorConfig
from .keras_tensor import KerasTensor, OperationNode, find
from .layer_calls import CallContext, assert_input_compatibility, current, mask_of, masks_of, set_mask, within
from .layer_dtypes import LayerDTypes
from .layer_shapes import keras_tensors, plain_shapes, shapes_of
from .module import Weighted

if TYPE_CHECKING:
    from .layer_calls import Masks

L = TypeVar("L", bound="Layer")
P = ParamSpec("P")
R = TypeVar("R")

_ARGUMENTS = (
    "input_shape",
    "batch_input_shape",
    "input_dim",
    "batch_size",
    "weights",
    "autocast",
    "activity_regularizer",
    "dynamic",
    "input_dtype",
    "sparse",
    "ragged",
)


class Layer(Weighted, LayerDTypes, ConstructorConfig):
    """Base class of layers.

    trainable: whether its weights are trained. name: by default the numbered class name in snake case. dtype: the dtype
    of weights and computation; "mixed_float16" and "mixed_bfloat16" compute in 16 bits with float32 weights.
    input_shape, batch_input_shape, input_dim: the shape of the inputs, for the first layer of a Sequential.
    activity_regularizer: a loss of the outputs.

    A subclass creates weights in `build` (or in the constructor) with `add_weight`, and computes in `call`, which may
    have parameters `training` and `mask`; it overrides `get_config` if constructor arguments are not plain values.

    >>> class Scale(ow.keras.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.gain = self.add_weight(name="gain", shape=(input_shape[-1],), initializer="ones")
    ...     def call(self, x):
    ...         return x * self.gain
    """

    _call_specs: ClassVar[dict[type, CallSpec]] = {}
    is_model: ClassVar[bool] = False
    """Whether it is a Model, whose `from_config` deserializes nested layers."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "build" in cls.__dict__:
            setattr(cls, "build", _marks_built(cls.__dict__["build"]))  # noqa: B010  a method is not assignable

    def __init__(
        self,
        *,
        activity_regularizer: Any = None,
        trainable: bool = True,
        dtype: Any = None,
        autocast: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        unknown = [k for k in kwargs if k not in _ARGUMENTS]
        if unknown:
            raise ValueError(
                f"Unrecognized keyword arguments passed to {type(self).__name__}: { {k: kwargs[k] for k in unknown} }"
            )
        if name is not None and not isinstance(name, str):
            raise ValueError(
                f"Argument `name` must be a string and cannot contain character `/`. Received: name={name!r}"
            )
        if not isinstance(trainable, (bool, np.bool_)):
            raise ValueError(
                f"Expected `trainable` to be a boolean. Received: trainable={trainable!r} (of type "
                f"{type(trainable).__name__})"
            )
        self._name = name or configuration.fresh(type(self).__name__)
        self._path: str | None = None
        self.built = False
        self.supports_masking = type(self).compute_mask is not Layer.compute_mask
        self.input_spec: Any = None
        self.autocast = autocast
        self.nodes: list[OperationNode] = []
        self.activity_regularizer = None
        self._set_dtype(dtype)
        self._init_weights(bool(trainable))
        if activity_regularizer is not None:
            self.activity_regularizer = regularizers.get(activity_regularizer)
        shape = kwargs.get("input_shape")
        if shape is None and kwargs.get("input_dim") is not None:
            shape = (kwargs["input_dim"],)
        if kwargs.get("batch_input_shape") is not None:
            self.batch_input_shape: tuple[Any, ...] | None = tuple(kwargs["batch_input_shape"])
        elif shape is not None:
            self.batch_input_shape = (kwargs.get("batch_size"), *((shape,) if isinstance(shape, int) else shape))
        else:
            self.batch_input_shape = None
        self._initial_weights = kwargs.get("weights")
        self._remat = rematerialization.current_scope()

    base_init = __init__

    def _build_at_init(self) -> None:
        """Mark a layer without weights as built, unless a class of a user overrides `build`."""
        self.built = type(self).build.__module__.startswith("opwright.")

    # ---- configuration ----------------------------------------------------------------------------------------------

    def _base_config(self) -> dict[str, Any]:
        policy = dtype_policies.serialize(self._dtype_policy)
        config = {"name": self.name, "trainable": self._trainable, "dtype": policy}
        if self.activity_regularizer is not None:
            config["activity_regularizer"] = regularizers.serialize(self.activity_regularizer)
        return config

    @classmethod
    def _base_arguments(cls, config: dict[str, Any]) -> dict[str, Any]:
        dtype = config.get("dtype")
        if not isinstance(dtype, dict):
            return {}
        policy = dtype_policies.deserialize(dtype)
        is_plain = policy.quantization_mode is None and not isinstance(policy, dtype_policies.DTypePolicyMap)
        return {"dtype": policy.name if is_plain else policy}  # constructors of users expect names

    # ---- overridden by layers ---------------------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Create the weights for inputs of this shape (a tuple, or a structure of tuples matching the inputs)."""
        self.built = True

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs. Every layer overrides it."""
        raise NotImplementedError(f"Layer {type(self).__name__} does not have a `call` method implemented.")

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Masks:
        """Return the mask of the outputs for the masks of the inputs; by default the same."""
        mask: Masks = previous_mask
        return mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the output shape for inputs of this shape, inferred by tracing `call` on symbolic tensors."""
        if type(self).call is Layer.call:
            raise NotImplementedError(f"Layer {type(self).__name__} should implement `compute_output_shape` or `call`.")
        inputs = keras_tensors(input_shape, self.compute_dtype)
        self._build_for((inputs,), {})
        return nest.map_structure(lambda t: tuple(t.shape), self.compute_output_spec(inputs))

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return KerasTensors with the specs of the outputs for KerasTensors as inputs, without computing anything."""
        declared = type(self).compute_output_shape
        if not declared.__module__.startswith("opwright.") and all(x.built for x in self._flatten_layers(True, False)):
            return self._declared_spec(args, kwargs)
        trace = FuncTrace(f"{self.name}_layout")
        with TRACING:
            state = dispatch.state.trace, dispatch.state.tapes, dispatch.state.names
            try:
                with trace.recording(), autograph_enabled(True):

                    def placeholder_of(x: object) -> object:
                        if not isinstance(x, KerasTensor):
                            return x
                        tensor, mask = trace.placeholder(x.spec, "x"), mask_of(x)
                        if mask is not None:
                            set_mask(tensor, trace.placeholder(mask.spec, "mask"))
                        return self._convert_argument(tensor)  # to the compute dtype, as for tensors

                    def keras_tensor_of(y: object) -> object:
                        if not isinstance(y, TensorLike):
                            return y
                        tensor, mask = KerasTensor(y.shape, y.dtype, name=self.name), mask_of(y)
                        if mask is not None:
                            set_mask(tensor, KerasTensor(mask.shape, mask.dtype, name=f"{self.name}_mask"))
                        return tensor

                    args, kwargs = nest.map_structure(placeholder_of, (args, kwargs))
                    spec = self._call_spec()
                    masks = self._fill_masks(spec, args, kwargs)
                    result = convert_if_enabled(self.call)(*args, **kwargs)
                    self._clear_losses()  # the trace is discarded
                    if self.supports_masking:
                        self._mask_outputs(args[0] if args else kwargs.get(spec.first or ""), result, masks)
                    return nest.map_structure(keras_tensor_of, result)
            finally:  # reset by statements: see tracing.trace.Recording
                dispatch.state.trace, dispatch.state.tapes, dispatch.state.names = state

    def _declared_spec(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return KerasTensors of the shapes that a user's class declares, in the compute dtype."""
        first = args[0] if args else kwargs[self._call_spec().first or ""]
        result = keras_tensors(self.compute_output_shape(plain_shapes(first)), self.compute_dtype)
        if self.supports_masking:
            self._mask_outputs(first, result, masks_of(first))
        return result

    # ---- calling ----------------------------------------------------------------------------------------------------

    def _call_spec(self) -> CallSpec:
        cls = type(self)
        spec = Layer._call_specs.get(cls)
        if spec is None:
            spec = Layer._call_specs[cls] = CallSpec(cls)
        return spec

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Build the layer on its first call, and compute the outputs.

        training: the mode; by default that of the enclosing call, else the default of `call`.
        """
        if "nodes" not in self.__dict__:
            raise RuntimeError(
                f"In layer {type(self).__name__}, you forgot to call `super().__init__()` as the first "
                "statement in the `__init__()` method."
            )
        args = tuple([self._convert_argument(a) for a in args])
        if kwargs:
            kwargs = {k: self._convert_argument(v) for k, v in kwargs.items()}
        spec = self._call_spec()
        symbolic = bool(find(args) or (kwargs and find(kwargs)))
        first = args[0] if args else kwargs.get(spec.first) if spec.first else None
        if self.input_spec is not None:
            assert_input_compatibility(self.input_spec, first, self.name)
        context, entered, paths = current.context, False, None
        training = (
            kwargs.pop("training", None) if not spec.training or kwargs.get("training") is None else kwargs["training"]
        )
        if training is None and spec.training and "training" in spec.names[: len(args)]:
            training = args[spec.names.index("training")]
        if context is None:
            context = current.context = CallContext(self, training)
            entered = True
            self._clear_losses()
        saved, saved_dtype = context.training, current.autocast
        mixed = self._compute_dtype is not self._variable_dtype
        current.autocast = self._compute_dtype if mixed and spec.autocasts and self.autocast else None
        try:
            if training is None:
                training = saved if saved is not None else spec.default_training
            context.training = training
            recorded_kwargs = dict(kwargs) if symbolic else kwargs  # a recorded call resolves the mode in each run
            if spec.training and training is not None and "training" not in spec.names[: len(args)]:
                kwargs["training"] = training
            first_call = not self.built
            with name_scope(self.name):
                if first_call:
                    paths = within(self)
                    paths.__enter__()
                    self._build_for(args, kwargs)
                    if self.input_spec is not None:
                        assert_input_compatibility(self.input_spec, first, self.name)
                if symbolic:
                    outputs = self.compute_output_spec(*args, **kwargs)
                    OperationNode(self, args, recorded_kwargs, outputs)
                    return outputs
                masks = self._fill_masks(spec, args, kwargs)
                call = convert_if_enabled(self.call)
                if self._remat is not None:
                    call = rematerialization.rematerialized(self, self._remat, call)
                outputs = call(*args, **kwargs)
            if first_call:
                self._seen_shapes = [y.shape.dims for y in nest.flatten(outputs) if hasattr(y, "shape")]
            if self.activity_regularizer is not None:
                self._regularize(outputs)
            if self.supports_masking:
                self._mask_outputs(first, outputs, masks)
            return outputs
        finally:
            context.training, current.autocast = saved, saved_dtype
            if paths is not None:
                paths.__exit__(None, None, None)
            if entered:
                current.context = None

    def _convert_argument(self, value: Any) -> Any:
        """Convert an argument of `call`: arrays to tensors, floating-point tensors to the compute dtype."""
        cls = type(value)
        if value is None or cls is bool or cls is int or cls is float or cls is str:
            return value
        if isinstance(value, (list, tuple, dict)):
            return nest.map_structure(self._convert_argument, value)
        if isinstance(value, (np.ndarray, np.generic)):
            dtype: DType | None = self._compute_dtype if self.autocast and value.dtype.kind == "f" else None
            return dispatch.to_tensor(value if dtype is None else np.asarray(value).astype(dtype.np), dtype)
        if isinstance(value, Tensor) and not isinstance(value, KerasTensor):
            dtype = value.dtype
            if self.autocast and dtype.is_floating and dtype is not self._compute_dtype:
                mask, value = mask_of(value), array.cast(value, self._compute_dtype)
                set_mask(value, mask)
        return value

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call `build` once, with the shapes of these arguments."""
        if self.built:
            return
        spec = self._call_spec()
        arguments = {**dict(zip(spec.names, args)), **kwargs}
        if len(spec.build_names) > 1 and all(n.endswith("_shape") for n in spec.build_names):
            shapes = {n: shapes_of(arguments.get(n.removesuffix("_shape"))) for n in spec.build_names}
            unknown = [n for n in spec.build_names if n.removesuffix("_shape") not in spec.known]
            if unknown and not spec.free:
                raise ValueError(
                    f"Parameters of `build` are named after those of `call`. For layer {self.name!r}, received "
                    f"`{unknown[0]}`, but `call()` does not have argument `{unknown[0].removesuffix('_shape')}`"
                )
            self.build(**{n: s for n, s in shapes.items() if s is not None})
        else:
            if spec.build_unnamed:
                raise ValueError(
                    f"Parameters of `build` are named after those of `call`, as `foo_shape` of `foo`. For layer "
                    f"{self.name!r}, received argument `{spec.build_unnamed}`, which does not end in `_shape`"
                )
            first = args[0] if args else arguments.get(spec.first or "")
            self.build(shapes_of(first))
        self.built = True
        if self._initial_weights is not None:
            self.set_weights(self._initial_weights)
            self._initial_weights = None

    def _fill_masks(self, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Masks:
        """Pass the masks of the inputs to `call` where it has parameters for them; return the first argument's mask."""
        positional = dict(zip(spec.names, args))
        first = args[0] if args else kwargs.get(spec.first or "")
        masks = masks_of(first)
        if spec.mask and "mask" not in positional:
            if kwargs.get("mask") is None and masks is not None:
                kwargs["mask"] = masks
            masks = kwargs.get("mask", masks)
        for name, parameter in spec.masks.items():
            value = positional.get(name, kwargs.get(name))
            if kwargs.get(parameter) is None and parameter not in positional and value is not None:
                mask = masks_of(value)
                if mask is not None:
                    kwargs[parameter] = mask
        return masks

    def _mask_outputs(self, inputs: Any, outputs: Any, masks: Any) -> None:
        flat = nest.flatten(outputs)
        if all(mask_of(t) is not None for t in flat):
            return  # set by `call`
        new = self.compute_mask(inputs, masks)
        if new is None:
            return
        for tensor, mask in zip(flat, nest.flatten(new) if len(flat) > 1 else [new]):
            if mask is not None and isinstance(tensor, Tensor):
                set_mask(tensor, mask)

    def _regularize(self, outputs: Any) -> None:
        for tensor in nest.flatten(outputs):
            batch = array.cast(array.shape(tensor)[0], tensor.dtype)
            self.add_loss(math.divide_no_nan(self.activity_regularizer(tensor), batch))  # type: ignore[misc]

    # ---- saving -----------------------------------------------------------------------------------------------------

    def get_build_config(self) -> dict[str, Any] | None:
        """Return what `build_from_config` of a new layer needs; files store what an override returns."""
        shapes = getattr(self, "_build_shapes", None)
        return None if shapes is None else {"input_shape": shapes}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Build the layer by the result of `get_build_config`."""
        if config.get("input_shape") is not None:
            shapes = config["input_shape"]
            self.build(tuple(shapes) if isinstance(shapes, list) else shapes)

    def save_own_variables(self, store: Any) -> None:
        """Store the layer's own weights as arrays in a dictionary; an override decides what is saved.

        store: str to array. Sublayers save their own.
        """
        for i, variable in enumerate(self._file_variables()):
            store[str(i)] = np.array(variable.read_array())

    def load_own_variables(self, store: Any) -> None:
        """Load the layer's own weights from a dictionary. Raises ValueError if their number differs."""
        own = self._file_variables()
        if len(store) != len(own):
            raise ValueError(
                f"Layer '{self.name}' expected {len(own)} variables, but received {len(store)} variables "
                f"during loading. Expected: {[v.name for v in own]}"
            )
        for i, variable in enumerate(own):
            variable.assign(np.asarray(store[str(i)]).astype(variable.dtype.np))

    def _file_variables(self) -> list[Any]:
        """Return the layer's own weights in the order of files."""
        return self._own_variables()

    # ---- in a model -------------------------------------------------------------------------------------------------

    @property
    def input(self) -> Any:
        """KerasTensors of the first call. Raises ValueError if there was none."""
        return self._first_node().args[0]

    @property
    def output(self) -> Any:
        """Outputs of the first call."""
        return self._first_node().outputs

    def _first_node(self) -> OperationNode:
        if not self.nodes:
            raise ValueError(f"The layer {self.name} has never been called and thus has no defined input and output.")
        return self.nodes[0]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


def _marks_built(build: Callable[Concatenate[L, P], R]) -> Callable[Concatenate[L, P], R]:
    """Wrap a class's `build` so that it sets `built`."""
    if getattr(build, "notes_built", False):
        return build

    @functools.wraps(build)
    def noting(self: L, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with within(self):
            result = build(self, *args, **kwargs)
        self.built = True
        self._build_shapes = args[0] if args else kwargs
        return result

    noting.notes_built = True  # type: ignore[attr-defined]
    return noting
