"""Calls of layers: the context of the active call, masks of tensors, requirements on inputs.

Lives here: the context of each thread (training mode, outermost layer), the side table of masks, `InputSpec`.
Not here: entering the context, checks of a call's inputs (layer.py).
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ..core import nest
from ..core.dtypes import DType, as_dtype
from ..ops.tensor import Tensor, TensorLike


class CallContext:
    """Outermost call of a layer, including nested calls. training: None if unspecified."""

    __slots__ = ("entry", "training")

    def __init__(self, entry: Any, training: Any) -> None:
        self.entry, self.training = entry, training


class _Current(threading.local):
    context: CallContext | None = None
    path: str = ""
    """The path of the layer that is being built."""
    autocast: DType | None = None
    """The dtype in which weights are read, in calls of layers of users under mixed precision."""


current = _Current()


@contextlib.contextmanager
def within(layer: Any) -> Iterator[None]:
    """Return a context in which layers and weights that are created or built are of a layer."""
    outer = current.path
    if layer._path is None:
        layer._path = f"{outer}/{layer.name}" if outer else layer.name
        layer._apply_policy()  # which a map of policies has by path
    current.path = layer._path
    try:
        yield
    finally:
        current.path = outer


# Tensors are immutable and have no attributes, so a side table stores masks until the tensors are collected.
_MASKS: dict[int, tuple[weakref.ref[Any], Any]] = {}


Masks: TypeAlias = "Tensor | Sequence[Masks] | Mapping[str, Masks] | None"
"""Masks of tensors, in the tensors' structure."""


def mask_of(tensor: object) -> Tensor | None:
    """Return the bool mask attached to a tensor, False at positions to ignore; None without a mask."""
    if not _MASKS:
        return None
    entry = _MASKS.get(id(tensor))
    return entry[1] if entry is not None and entry[0]() is tensor else None


def set_mask(tensor: Any, mask: Any) -> None:
    """Attach a mask to a tensor; None removes it."""
    key = id(tensor)
    if mask is None:
        _MASKS.pop(key, None)
        return
    _MASKS[key] = (weakref.ref(tensor, lambda _: _MASKS.pop(key, None)), mask)


def masks_of(value: Any) -> Masks:
    """Return the masks of tensors, in their structure; None if no tensor has one."""
    if isinstance(value, TensorLike):
        return mask_of(value)
    if not isinstance(value, (list, tuple, dict)):
        return None
    masks: Masks = nest.map_structure(mask_of, value)
    return masks if any(m is not None for m in nest.flatten(masks)) else None


def _keras_mask(tensor: Any) -> Any:
    mask = mask_of(tensor)
    if mask is None:
        raise AttributeError(f"{type(tensor).__name__!r} object has no mask")
    return mask


Tensor._keras_mask = property(  # type: ignore[attr-defined]
    _keras_mask, set_mask, doc="The mask of a layer's output, under Keras's name; an AttributeError without one."
)


class InputSpec:
    """Requirements on an input: rank, dtype and sizes; None means any.

    shape: the whole shape, None for free sizes. ndim, max_ndim, min_ndim: the rank. axes: {axis: size}.
    allow_last_axis_squeeze: a last axis of size 1 may be missing. optional: the input may be None.
    """

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: dict[int, int | None] | None = None,
        allow_last_axis_squeeze: bool = False,
        name: str | None = None,
        optional: bool = False,
    ) -> None:
        self.dtype = None if dtype is None else as_dtype(dtype).name
        self.shape = None if shape is None else tuple(shape)
        self.ndim = len(self.shape) if self.shape is not None else ndim
        self.max_ndim, self.min_ndim, self.name = max_ndim, min_ndim, name
        self.allow_last_axis_squeeze, self.optional = allow_last_axis_squeeze, optional
        self.axes = {int(k): v for k, v in (axes or {}).items()}
        limit = self.ndim if self.ndim is not None else max_ndim
        if self.axes and limit is not None and max(self.axes) > limit - 1:
            raise ValueError(f"Axis {max(self.axes)} is greater than the maximum allowed value: {limit - 1}")

    def get_config(self) -> dict[str, Any]:
        """Return the arguments as plain values."""
        return {
            "dtype": self.dtype,
            "shape": self.shape,
            "ndim": self.ndim,
            "max_ndim": self.max_ndim,
            "min_ndim": self.min_ndim,
            "axes": self.axes,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> InputSpec:
        """Return an InputSpec with these arguments."""
        return cls(**config)

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.get_config().items() if v not in (None, {})}
        return f"InputSpec({', '.join(f'{k}={v}' for k, v in shown.items())})"

    def objection(self, shape: Any, dtype: Any) -> str | None:
        """Return why a tensor of this shape and dtype is incompatible, or None if it is compatible."""
        dims = shape.dims
        if dims is None:
            return None
        if self.allow_last_axis_squeeze and self.shape is not None and dims:
            if dims[-1] == 1 and len(dims) == len(self.shape) + 1:
                dims = dims[:-1]
            elif self.shape[-1] == 1 and len(self.shape) == len(dims) + 1:
                dims = (*dims, 1)
        rank, full = len(dims), f"Full shape received: {tuple(shape)}"
        if self.ndim is not None and rank != self.ndim:
            return f"expected ndim={self.ndim}, found ndim={rank}. {full}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"expected max_ndim={self.max_ndim}, found ndim={rank}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected min_ndim={self.min_ndim}, found ndim={rank}. {full}"
        if self.dtype is not None and dtype.name != self.dtype:
            return f"expected dtype={self.dtype}, found dtype={dtype.name}"
        for axis, size in self.axes.items():
            if size is not None and -rank <= axis < rank and dims[axis] not in (size, None):
                return (
                    f"expected axis {axis} of input shape to have value {size}, but received input with shape "
                    f"{tuple(shape)}"
                )
        if self.shape is not None:
            for want, got in zip(self.shape, dims):
                if want is not None and got is not None and want != got:
                    return f"expected shape={self.shape}, found shape={tuple(shape)}"
        return None


def assert_input_compatibility(input_spec: Any, inputs: Any, layer_name: str) -> None:
    """Check tensors against a layer's InputSpec, or a structure of them.

    raises ValueError that names layer and input, and the expected and actual value
    """
    specs = nest.flatten(input_spec)
    if isinstance(inputs, dict) and all(getattr(s, "name", None) in inputs for s in specs):
        tensors = [inputs[s.name] for s in specs]
    else:
        tensors = nest.flatten(inputs)
    if len(tensors) != len(specs):
        raise ValueError(
            f'Layer "{layer_name}" expects {len(specs)} input(s), but it received {len(tensors)} input tensors. '
            f"Inputs received: {[getattr(t, 'spec', t) for t in tensors]}"
        )
    for i, (tensor, spec) in enumerate(zip(tensors, specs)):
        if spec is None or (tensor is None and spec.optional):
            continue
        if tensor is None or not hasattr(tensor, "shape"):
            raise ValueError(
                f"Inputs to a layer should be tensors. Got '{tensor}' (of type {type(tensor)}) as input "
                f'for layer "{layer_name}".'
            )
        objection = spec.objection(tensor.shape, tensor.dtype)
        if objection is not None:
            raise ValueError(f'Input {i} of layer "{layer_name}" is incompatible with the layer: {objection}')
