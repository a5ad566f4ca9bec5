"""Rules of products, convolutions, factorisations and Fourier transforms.

Lives here: attributes as parameters of the primitives. Not here: their meaning (jax/rules/contraction.py,
convolution.py, linear_algebra.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...jax.operands import dims
from ..execution import RULES, ModuleContext, padding_pairs, primitive, window_numbers
from .arrays import numbers


@RULES.rule("stablehlo.dot_general")
def dot_general(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the sums of products over contracting axes."""
    roles = attributes["dot_dimension_numbers"]
    pairs: list[Any] = [
        tuple([int(i) for i in roles.get(f"{side}_{kind}_dimensions", ())] for side in ("lhs", "rhs"))
        for kind in ("contracting", "batching")
    ]
    return primitive("dot_general", context, inputs, dimension_numbers=tuple(pairs))


@RULES.rule("stablehlo.dot")
def dot(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the product over the last axis of a and the first of b."""
    pairs: Any = (([len(dims(inputs[0])) - 1], [0]), ([], []))
    return primitive("dot_general", context, inputs, dimension_numbers=pairs)


# ---- convolutions ----------------------------------------------------------------------------------------------------


def _places(spec: Sequence[Any], first: str, second: str) -> list[int]:
    """Return [axis of `first`, axis of `second`, axes of the spatial dimensions 0, 1, ...] of [b, 0, 1, f]."""
    return [spec.index(first), spec.index(second), *(spec.index(i) for i in range(len(spec) - 2))]


def _roles(numbers_: Any) -> SimpleNamespace:
    """Return dimension numbers as lax has them, from ([b, 0, 1, f], [0, 1, i, o], [b, 0, 1, f]) or named fields."""
    if isinstance(numbers_, Mapping):

        def of(prefix: str, first: str, second: str) -> list[int]:
            spatial = [int(i) for i in numbers_[f"{prefix}_spatial_dimensions"]]
            return [
                int(numbers_[f"{prefix}_{first}_dimension"]),
                int(numbers_[f"{prefix}_{second}_dimension"]),
                *spatial,
            ]

        return SimpleNamespace(
            lhs_spec=of("input", "batch", "feature"),
            rhs_spec=of("kernel", "output_feature", "input_feature"),
            out_spec=of("output", "batch", "feature"),
        )
    x, kernel, y = numbers_
    return SimpleNamespace(
        lhs_spec=_places(x, "b", "f"), rhs_spec=_places(kernel, "o", "i"), out_spec=_places(y, "b", "f")
    )


def _convolution(context: ModuleContext, inputs: Sequence[Any], attributes: Any, padding: Any) -> Any:
    roles = _roles(attributes["dimension_numbers"])
    spatial = len(roles.lhs_spec) - 2

    def window(name: str) -> list[int]:
        return window_numbers(attributes, name, spatial)

    x, kernel = inputs
    if attributes.get("window_reversal") is not None:
        flags = np.broadcast_to(attributes["window_reversal"], [spatial])
        axes = [axis for axis, flag in zip(roles.rhs_spec[2:], flags) if flag]
        kernel = primitive("rev", context, [kernel], dimensions=axes)
    return primitive(
        "conv_general_dilated",
        context,
        [x, kernel],
        dimension_numbers=roles,
        window_strides=window("window_strides"),
        padding=padding_pairs(padding, spatial),
        lhs_dilation=window("lhs_dilation"),
        rhs_dilation=window("rhs_dilation"),
        feature_group_count=int(attributes["feature_group_count"]),
        batch_group_count=int(attributes["batch_group_count"]),
    )


@RULES.rule("stablehlo.convolution")
def convolution(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the convolution of x and a kernel."""
    return _convolution(context, inputs, attributes, attributes.get("padding"))


@RULES.rule("stablehlo.dynamic_conv")
def dynamic_conv(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the same of computed padding."""
    return _convolution(context, inputs[:2], attributes, numbers(inputs[2], "padding"))


# ---- factorisations --------------------------------------------------------------------------------------------------


@RULES.rule("stablehlo.cholesky")
def cholesky(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the lower factor, or the upper one, its adjoint, of the upper triangle."""
    if attributes.get("lower", False):
        return primitive("cholesky", context, inputs)
    rank = len(dims(inputs[0]))
    order = [*range(rank - 2), rank - 1, rank - 2]

    def adjoint(x: Any) -> Any:
        swapped = primitive("transpose", context, [x], permutation=order)
        return primitive("conj", context, [swapped]) if context.dtype.is_complex else swapped

    return adjoint(primitive("cholesky", context, [adjoint(inputs[0])]))


@RULES.rule("stablehlo.triangular_solve")
def triangular_solve(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return x of op(a) x = b, or of x op(a) = b."""
    kind = str(attributes.get("transpose_a", "NO_TRANSPOSE"))
    return primitive(
        "triangular_solve",
        context,
        inputs,
        left_side=bool(attributes["left_side"]),
        lower=bool(attributes["lower"]),
        unit_diagonal=bool(attributes.get("unit_diagonal", False)),
        transpose_a=kind in ("TRANSPOSE", "ADJOINT"),
        conjugate_a=kind == "ADJOINT",
    )


@RULES.rule("stablehlo.fft")
def fft(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return a Fourier transform over the last axes."""
    lengths = [int(n) for n in attributes["fft_length"]]
    return primitive("fft", context, inputs, fft_type=attributes["fft_type"], fft_lengths=lengths)
