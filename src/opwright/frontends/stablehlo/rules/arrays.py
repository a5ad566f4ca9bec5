"""Rules that move or create elements, and of shapes that are computed.

Lives here: broadcasts, slices, padding, iota; dynamic forms, whose shapes must be known once an input has its sizes.
Not here: computed indices (indexing.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...importing import known
from ...jax.operands import broadcast, dims, reshape
from ..execution import RULES, ModuleContext, primitive
from ..module import MAX_ELEMENTS


def numbers(value: Any, what: str) -> list[int]:
    """Return a vector of integers that must be known. Raises ValueError if it depends on an input's elements."""
    vector = known(value)
    if vector is None:
        raise ValueError(f"{what} depends on the elements of an input")
    return [int(n) for n in np.asarray(vector).reshape(-1)]


def target_shape(value: Any) -> list[int]:
    """Return a computed shape. Raises ValueError for sizes beyond bounds."""
    shape = numbers(value, "a shape")
    count = 1
    for d in shape:
        count *= d
    if any(d < 0 for d in shape) or count > MAX_ELEMENTS:
        raise ValueError(f"the shape {shape} is not a shape of at most {MAX_ELEMENTS} elements")
    return shape


@RULES.rule("stablehlo.broadcast_in_dim")
def broadcast_in_dim(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x with its axis i as axis broadcast_dimensions[i] of the result."""
    places = [int(d) for d in attributes["broadcast_dimensions"]]
    return primitive("broadcast_in_dim", context, inputs, shape=context.shape, broadcast_dimensions=places)


@RULES.rule("stablehlo.dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the same of a computed shape."""
    places, shape = [int(d) for d in attributes["broadcast_dimensions"]], target_shape(inputs[1])
    return primitive("broadcast_in_dim", context, inputs[:1], shape=shape, broadcast_dimensions=places)


@RULES.rule("stablehlo.broadcast")
def broadcast_(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x repeated along new first axes."""
    return broadcast(inputs[0], [*(int(d) for d in attributes["broadcast_sizes"]), *dims(inputs[0])])


@RULES.rule("stablehlo.reshape")
def reshape_(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the elements in another shape."""
    return reshape(inputs[0], context.shape)


@RULES.rule("stablehlo.dynamic_reshape")
def dynamic_reshape(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the elements in a computed shape."""
    return reshape(inputs[0], target_shape(inputs[1]))


@RULES.rule("stablehlo.transpose")
def transpose(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x with its axes permuted."""
    return primitive("transpose", context, inputs, permutation=[int(i) for i in attributes["permutation"]])


@RULES.rule("stablehlo.concatenate")
def concatenate(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the operands joined along an axis."""
    return primitive("concatenate", context, inputs, dimension=int(attributes["dimension"]))


@RULES.rule("stablehlo.slice")
def slice_(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the elements from start_indices to limit_indices."""
    begin, end, strides = ([int(i) for i in attributes[k]] for k in ("start_indices", "limit_indices", "strides"))
    return primitive("slice", context, inputs, start_indices=begin, limit_indices=end, strides=strides)


@RULES.rule("stablehlo.real_dynamic_slice")
def real_dynamic_slice(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the elements between computed bounds, which must be known."""
    begin, end, strides = (numbers(v, "a bound of a slice") for v in inputs[1:])
    return primitive("slice", context, inputs[:1], start_indices=begin, limit_indices=end, strides=strides)


@RULES.rule("stablehlo.reverse")
def reverse(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x reversed along axes."""
    return primitive("rev", context, inputs, dimensions=[int(d) for d in attributes["dimensions"]])


def _padded(context: ModuleContext, inputs: Sequence[Any], counts: Sequence[Sequence[int]]) -> Any:
    return primitive("pad", context, inputs[:2], padding_config=list(zip(*counts)))


@RULES.rule("stablehlo.pad")
def pad(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x padded by a value; negative counts remove elements."""
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return _padded(context, inputs, [[int(n) for n in attributes[name]] for name in names])


@RULES.rule("stablehlo.dynamic_pad")
def dynamic_pad(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the same of computed counts, which must be known."""
    return _padded(context, inputs, [numbers(v, "padding") for v in inputs[2:]])


@RULES.rule("stablehlo.iota")
def iota(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return 0, 1, ... along an axis."""
    return _counted(context, context.shape, attributes)


@RULES.rule("stablehlo.dynamic_iota")
def dynamic_iota(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the same of a computed shape."""
    return _counted(context, target_shape(inputs[0]), attributes)


def _counted(context: ModuleContext, shape: Sequence[int], attributes: Any) -> Any:
    axis, dtype = int(attributes["iota_dimension"]), context.dtype.as_numpy_dtype
    return primitive("iota", context, [], shape=shape, dimension=axis, dtype=dtype)


@RULES.rule("stablehlo.get_dimension_size", pure=False)
def get_dimension_size(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return a size, which is known at import."""
    return np.asarray(dims(inputs[0])[int(attributes["dimension"])], np.int32)


@RULES.rule("stablehlo.create_token", "stablehlo.after_all")
def token(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return a token: operations are executed in order anyway."""
    return np.zeros((), np.bool_)


@RULES.rule("stablehlo.tuple", pure=False)
def tuple_(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the operands as one value."""
    return [tuple(inputs)]


@RULES.rule("stablehlo.get_tuple_element", pure=False)
def get_tuple_element(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return a member of a tuple."""
    return [inputs[0][int(attributes["index"])]]
