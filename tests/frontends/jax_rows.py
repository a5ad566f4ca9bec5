"""Calls of JAX, at least one for each primitive with a rule: functions and arguments, for test_jax_primitives.py.

Lives here: the table, in the style of jax2tf's harnesses. Not here: the checks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

F32, F16, F64, C64, C128 = np.float32, np.float16, np.float64, np.complex64, np.complex128
FLOATS = (F16, jnp.bfloat16, F32, F64)
INTS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


class Row(NamedTuple):
    """primitive: the one that the row is for. tolerance: relative and absolute; None by dtype, 0 equal bits."""

    primitive: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    label: str = ""
    tolerance: float | None = None
    gradient: bool = False

    def operands(self) -> tuple[Any, ...]:
        """Return the arguments as arrays of JAX."""
        return tuple(jnp.asarray(a) for a in self.arguments)


def numbers(*shape: int, dtype: Any = F32, low: float = -3.0, high: float = 3.0, seed: int = 0) -> np.ndarray:
    """Return drawn numbers; of integers all of the range of the dtype is too much for most operators."""
    generator = np.random.default_rng([seed, *shape])
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return generator.integers(0, 2, shape).astype(np.bool_)
    if kind.kind in "iu":
        return generator.integers(0 if kind.kind == "u" else int(low * 10), int(high * 10), shape).astype(kind)
    values = generator.uniform(low, high, shape)
    if kind.kind == "c":
        values = values + 1j * generator.uniform(low, high, shape)
    return values.astype(kind)


def _unary() -> list[Row]:
    domains: dict[str, tuple[float, float]] = {
        "acos": (-1, 1),
        "asin": (-1, 1),
        "atanh": (-0.95, 0.95),
        "acosh": (1.1, 5),
        "log": (0.1, 5),
        "sqrt": (0.1, 5),
        "rsqrt": (0.1, 5),
        "log1p": (-0.9, 5),
        "erf_inv": (-0.9, 0.9),
        "lgamma": (0.1, 8),
        "digamma": (0.1, 8),
        "tan": (-1.3, 1.3),
    }
    names = (
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "bessel_i0e",
        "bessel_i1e",
        "cbrt",
        "ceil",
        "cos",
        "cosh",
        "digamma",
        "erf",
        "erf_inv",
        "erfc",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "is_finite",
        "lgamma",
        "log",
        "log1p",
        "logistic",
        "neg",
        "rsqrt",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "abs",
    )
    result = []
    smooth = set(names) - {"ceil", "floor", "is_finite", "sign", "bessel_i1e"}
    for name in names:
        low, high = domains.get(name, (-3, 3))
        for dtype in FLOATS:
            x = numbers(5, 7, dtype=dtype, low=low, high=high)
            result.append(Row(name, getattr(lax, name), (x,), gradient=name in smooth and dtype is F32))
    for name in ("cos", "exp", "log", "neg", "sin", "sqrt", "tanh", "abs", "sign"):
        result += [Row(name, getattr(lax, name), (numbers(4, 3, dtype=C64, low=0.2, high=1.5),))]
    for name in ("real", "imag", "conj"):
        result += [Row(name, getattr(lax, name), (numbers(3, 4, dtype=d),)) for d in (C64, C128)]
    for name in ("neg", "abs", "sign"):
        result += [
            Row(name, getattr(lax, name), (numbers(3, 4, dtype=d),))
            for d in INTS
            if not (name == "abs" and np.dtype(d).kind == "u")
        ]
    for mode in (lax.RoundingMethod.AWAY_FROM_ZERO, lax.RoundingMethod.TO_NEAREST_EVEN):
        x = np.array([-2.5, -1.5, -0.5, 0.5, 0.49999997, 1.5, 2.5, 2.3, -7.8], F32)
        result.append(Row("round", functools.partial(lax.round, rounding_method=mode), (x,)))
    return result


def _binary() -> list[Row]:
    result = []
    for name in ["add", "sub", "mul", "max", "min"]:
        for dtype in (*FLOATS, *INTS, C64):
            pair = numbers(4, 5, dtype=dtype), numbers(4, 5, dtype=dtype, seed=1)
            result.append(Row(name, getattr(lax, name), pair, gradient=dtype is F32))
    for name in ["div", "rem"]:
        for dtype in (*FLOATS, *INTS):
            y = numbers(4, 5, dtype=dtype, seed=1)
            result.append(
                Row(name, getattr(lax, name), (numbers(4, 5, dtype=dtype), np.where(y == 0, 1, y).astype(dtype)))
            )
        for dtype in INTS:
            least = np.iinfo(dtype).min
            x, y = np.array([5, 7, least, 0], dtype), np.array([0, 2, -1 if least < 0 else 3, 0]).astype(dtype)
            result.append(Row(name, getattr(lax, name), (x, y), "special"))
    for name in ["eq", "ne", "lt", "le", "gt", "ge"]:
        for dtype in (F32, jnp.bfloat16, np.int32, np.uint8, np.bool_):
            pair = numbers(4, 5, dtype=dtype), numbers(4, 5, dtype=dtype, seed=1)
            result.append(Row(name, getattr(lax, name), pair))
        if name in ("eq", "ne"):
            result.append(Row(name, getattr(lax, name), (numbers(4, dtype=C64), numbers(4, dtype=C64))))
    for name in ["and", "or", "xor"]:
        function = getattr(lax, f"bitwise_{name}")
        pairs = [(numbers(4, 5, dtype=d), numbers(4, 5, dtype=d, seed=1)) for d in (*INTS, np.bool_)]
        result += [Row(name, function, pair) for pair in pairs]
    for name in ["shift_left", "shift_right_logical", "shift_right_arithmetic"]:
        for dtype in INTS:
            width = np.dtype(dtype).itemsize * 8
            counts = np.array([0, 1, width - 1, width, width + 1, 3]).astype(dtype)
            result.append(Row(name, getattr(lax, name), (numbers(6, dtype=dtype, high=6), counts)))
    positive = functools.partial(numbers, low=0.2, high=4.0)
    for dtype in (F32, F64, jnp.bfloat16):
        pair = positive(3, 4, dtype=dtype), positive(3, 4, dtype=dtype, seed=2)
        result += [
            Row(n, getattr(lax, n), pair)
            for n in ("igamma", "igammac", "pow", "atan2", "nextafter")
            if not (n == "nextafter" and dtype is jnp.bfloat16)
        ]
    result.append(Row("pow", lax.pow, (positive(3, 4), np.int32(3))))
    result.append(Row("zeta", lax.zeta, (positive(3, 4) + 1.5, positive(3, 4))))
    result.append(Row("polygamma", lax.polygamma, (np.full((3, 4), 2, F32), positive(3, 4))))
    result.append(
        Row(
            "regularized_incomplete_beta",
            lax.betainc,
            (positive(3, 4), positive(3, 4, seed=3), numbers(3, 4, low=0.1, high=0.9)),
        )
    )
    result += [
        Row("integer_pow", functools.partial(lax.integer_pow, y=y), (positive(3, 4),), gradient=True)
        for y in (0, 1, 2, 3, 7, -1, -3)
    ]
    result.append(Row("complex", lax.complex, (numbers(3), numbers(3, seed=1))))
    if hasattr(lax, "mulhi"):
        words = [numbers(4, dtype=np.uint32, seed=i) * np.uint32(77777777) for i in range(2)]
        result.append(Row("mulhi", lax.mulhi, tuple(words)))
    return result


def _others() -> list[Row]:
    x = numbers(4, 6)
    result = [
        Row("not", lax.bitwise_not, (numbers(4, dtype=np.bool_),)),
        *(Row("not", lax.bitwise_not, (numbers(4, dtype=d),)) for d in INTS),
        *(Row("population_count", lax.population_count, (numbers(9, dtype=d, high=12),)) for d in INTS),
        *(Row("clz", lax.clz, (np.array([0, 1, 2, 100, 127]).astype(d),)) for d in INTS),
        Row("clamp", lax.clamp, (F32(-1), x, F32(1)), gradient=False),
        Row("clamp", lax.clamp, (x - 1, x * 2, x + 1)),
        Row("clamp", lax.clamp, (np.int32(-3), numbers(8, dtype=np.int32), np.int32(5))),
        Row("select_n", lax.select_n, (numbers(4, 6, dtype=np.bool_), x, -x)),
        Row("select_n", lax.select_n, (np.bool_(True), x, -x)),
        Row("select_n", lax.select_n, (np.array([0, 1, 2, 1], np.int32), x[:, 0], x[:, 1], x[:, 2])),
        Row("reduce_precision", functools.partial(lax.reduce_precision, exponent_bits=5, mantissa_bits=10), (x,)),
        Row("reduce_precision", functools.partial(lax.reduce_precision, exponent_bits=8, mantissa_bits=7), (x,)),
        Row("stop_gradient", lambda v: lax.stop_gradient(v) * v, (x,), gradient=True),
        Row("copy", jnp.copy, (x,)),
        Row("optimization_barrier", lax.optimization_barrier, (x,)),
    ]
    kinds = (np.bool_, np.int8, np.int32, np.uint8, np.uint32, F16, jnp.bfloat16, F32, F64, C64, np.int64)
    for source in kinds:
        for target in kinds:
            values = numbers(9, dtype=source, low=0 if np.dtype(target).kind == "u" else -3)
            result.append(
                Row("convert_element_type", functools.partial(lax.convert_element_type, new_dtype=target), (values,))
            )
    for target in (np.int8, np.uint8, np.int32, np.int64, np.uint32):
        values = np.array([1e12, -1e12, np.nan, np.inf, -np.inf, 300.7, -300.7, 0.5, 2.0**31, -(2.0**31)], F32)
        result.append(
            Row(
                "convert_element_type",
                functools.partial(lax.convert_element_type, new_dtype=target),
                (values,),
                "saturates",
            )
        )
    for source, target in (
        (F32, np.int32),
        (np.int32, np.uint32),
        (F64, np.int64),
        (F32, np.uint8),
        (np.uint8, np.int8),
    ):
        result.append(
            Row(
                "bitcast_convert_type",
                functools.partial(lax.bitcast_convert_type, new_dtype=target),
                (numbers(3, 4, dtype=source),),
                tolerance=0,
            )
        )
    return result


def _arrays() -> list[Row]:
    x, row = numbers(2, 3, 4), functools.partial(Row, gradient=True)
    result = [
        row("broadcast_in_dim", lambda v: lax.broadcast_in_dim(v, (5, 2, 3, 4), (1, 2, 3)), (x,)),
        row("broadcast_in_dim", lambda v: lax.broadcast_in_dim(v, (2, 3, 4), (0, 2)), (x[:, :1].reshape(2, 4),)),
        Row("broadcast_in_dim", lambda: jnp.full((2, 3), 7.0), ()),
        row("reshape", lambda v: v.reshape(6, 4), (x,)),
        row("reshape", lambda v: lax.reshape(v, (24,), (2, 0, 1)), (x,)),
        row("squeeze", lambda v: v[:, :1].squeeze(1), (x,)),
        row("expand_dims", lambda v: jnp.expand_dims(v, (0, 2)), (x,)),
        row("transpose", lambda v: v.transpose(2, 0, 1), (x,)),
        row("concatenate", lambda a, b: lax.concatenate([a, b], 1), (x, numbers(2, 1, 4))),
        row("concatenate", lambda a: jnp.stack([a, a * 2], 1), (x,)),
        row("split", lambda v: lax.split(v, (1, 2), 1)[1], (x,)),
        row("tile", lambda v: jnp.tile(v, (2, 1, 3)), (x,)),
        row("slice", lambda v: v[:, 1:, ::2], (x,)),
        row("slice", lambda v: lax.slice(v, (0, 1, 1), (2, 3, 4), (1, 2, 2)), (x,)),
        row("rev", lambda v: lax.rev(v, (0, 2)), (x,)),
        row("pad", lambda v: lax.pad(v, F32(2), ((1, 0, 0), (0, 2, 1), (2, 1, 2))), (x,)),
        row("pad", lambda v: lax.pad(v, F32(0), ((-1, 0, 0), (0, -1, 0), (1, -2, 1))), (x,)),
        row("pad", lambda v: lax.pad(v, F32(0), ((-2, 1, 0), (0, 0, 0), (0, 0, 0))), (x,)),
        row("pad", lambda v, w: lax.pad(v, w, ((1, 1, 0), (0, 0, 0), (0, 0, 0))), (x, F32(3))),
        Row("pad", lambda v: lax.pad(v, False, ((1, 1, 0),)), (np.ones(3, np.bool_),)),
        Row("iota", lambda v: v + lax.broadcasted_iota(F32, (2, 3, 4), 1), (x,)),
        Row("iota", lambda: lax.iota(np.uint8, 5), ()),
    ]
    for dtype in (np.bool_, np.uint8, np.int64, jnp.bfloat16, C64):
        v = numbers(2, 3, 4, dtype=dtype)
        result += [
            Row("transpose", lambda v: v.transpose(2, 0, 1), (v,)),
            Row("concatenate", lambda v: jnp.concatenate([v, v]), (v,)),
            Row("rev", lambda v: lax.rev(v, (1,)), (v,)),
            Row("broadcast_in_dim", lambda v: jnp.broadcast_to(v, (2, 2, 3, 4)), (v,)),
        ]
    return result


def _reductions() -> list[Row]:
    result = []
    for name in ["sum", "max", "min", "prod"]:
        for dtype in (*FLOATS, np.int32, np.uint8, np.int64):
            x = numbers(3, 4, 5, dtype=dtype, low=-1.5, high=1.5)
            for axes in ((1,), (0, 2), (0, 1, 2)):
                function = (
                    functools.partial(getattr(jnp, name), axis=axes, dtype=dtype if name in ("sum", "prod") else None)
                    if name in ("sum", "prod")
                    else functools.partial(getattr(jnp, name), axis=axes)
                )
                result.append(Row(f"reduce_{name}", function, (x,), gradient=dtype is F32))
    for name in ("and", "or", "xor"):
        operation = getattr(lax, f"reduce_{name}")
        values = [numbers(3, 5, dtype=d) for d in (np.bool_, np.int32, np.uint8)]
        result += [Row(f"reduce_{name}", functools.partial(operation, axes=(1,)), (v,)) for v in values]
    for name in ("argmax", "argmin"):
        for dtype in (F32, jnp.bfloat16, np.int32, np.uint8, np.bool_):
            for index in (np.int32, np.int64):
                function = functools.partial(getattr(lax, name), axis=1, index_dtype=index)
                result.append(Row(name, function, (numbers(3, 5, 2, dtype=dtype),)))
        nans = numbers(3, 5)
        nans[1, 2:] = np.nan
        result.append(Row(name, functools.partial(getattr(lax, name), axis=1, index_dtype=np.int32), (nans,), "nan"))
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        for reverse in (False, True):
            function = functools.partial(getattr(lax, name), axis=1, reverse=reverse)
            result.append(Row(name, function, (numbers(3, 7, 2),), gradient=True))
        if name != "cumlogsumexp":
            result.append(Row(name, functools.partial(getattr(lax, name), axis=0), (numbers(6, dtype=np.int32),)))
    x, y = numbers(4, 9), numbers(4, 9, seed=1)
    result += [
        Row("reduce", lambda v: lax.reduce(v, F32(0), lambda a, b: jnp.maximum(a, b) + 0 * a, (1,)), (x,)),
        Row(
            "reduce",
            lambda v, w: lax.reduce(
                (v, w),
                (F32(-9), F32(0)),
                lambda a, b: (jnp.maximum(a[0], b[0]), jnp.where(a[0] >= b[0], a[1], b[1])),
                (1,),
            ),
            (x, y),
        ),
        Row("sort", lambda v: jnp.sort(v, axis=0), (x,), gradient=True),
        Row("sort", lambda v: lax.sort(v, dimension=1), (numbers(3, 8, dtype=np.int32),)),
        Row("sort", lambda v: lax.sort(v, dimension=0), (numbers(8, dtype=np.bool_),)),
        Row("sort", lambda v: jnp.argsort(v, axis=1), (x,)),
        Row("sort", lambda v, w: lax.sort((v, w), dimension=0, num_keys=1), (x, y)),
        Row(
            "sort",
            lambda v, w: lax.sort((v, w), dimension=1, num_keys=2),
            (numbers(3, 9, dtype=np.int32, low=0, high=0.3), numbers(3, 9, dtype=np.int32, seed=1)),
        ),
        Row("top_k", lambda v: lax.top_k(v, 3), (x,)),
        Row("top_k", lambda v: lax.top_k(v, 3), (numbers(9, dtype=np.int32),)),
        Row("approx_top_k", lambda v: lax.approx_max_k(v, 3, recall_target=1.0)[0], (x,)),
        Row("approx_top_k", lambda v: lax.approx_min_k(v, 3, recall_target=1.0)[0], (x,)),
    ]
    return result


def _contractions() -> list[Row]:
    rows = [
        (((1,), (0,)), ((), ()), (3, 4), (4, 5)),
        (((0,), (0,)), ((), ()), (4, 3), (4, 5)),
        (((1,), (1,)), ((), ()), (3, 4), (5, 4)),
        (((2,), (0,)), ((), ()), (2, 3, 4), (4, 5)),
        (((2,), (1,)), ((0,), (0,)), (2, 3, 4), (2, 4, 5)),
        (((1,), (1,)), ((0,), (0,)), (2, 4, 3), (2, 4, 5)),
        (((3,), (3,)), ((0, 2), (0, 2)), (2, 5, 3, 4), (2, 6, 3, 4)),
        (((0, 1), (1, 0)), ((), ()), (2, 3, 4), (3, 2, 5)),
        (((0,), (0,)), ((), ()), (4,), (4,)),
        (((), ()), ((), ()), (2, 3), (4,)),
        (((), ()), ((0,), (0,)), (2, 3), (2, 4)),
        (((1, 3), (2, 0)), ((2,), (1,)), (2, 3, 4, 5), (5, 4, 3, 6)),
    ]
    result = []
    for contract, batch, a, b in rows:
        function = functools.partial(lax.dot_general, dimension_numbers=(contract, batch))
        result.append(
            Row("dot_general", function, (numbers(*a), numbers(*b, seed=1)), str((contract, batch)), gradient=True)
        )
    kinds = ((F16, 0.06), (jnp.bfloat16, 0.06), (F64, None), (np.int32, 0), (np.uint8, 0), (np.int8, 0), (C64, None))
    result += [
        Row("dot_general", jnp.dot, (numbers(3, 4, dtype=d), numbers(4, 5, dtype=d, seed=1)), tolerance=tolerance)
        for d, tolerance in kinds
    ]
    function = functools.partial(lax.dot, preferred_element_type=np.int32)
    result.append(
        Row("dot_general", function, (numbers(3, 4, dtype=np.int8), numbers(4, 5, dtype=np.int8)), "int32 of int8")
    )
    result.append(
        Row(
            "dot_general",
            functools.partial(lax.dot, preferred_element_type=F32),
            (numbers(3, 4, dtype=jnp.bfloat16), numbers(4, 5, dtype=jnp.bfloat16)),
            "float32 of bfloat16",
        )
    )
    return result


def _convolutions() -> list[Row]:
    result = []

    def add(lhs: Any, rhs: Any, label: str, gradient: bool = True, dtype: Any = F32, **options: Any) -> None:
        options.setdefault("window_strides", (1,) * (len(lhs) - 2))
        options.setdefault("padding", "SAME")
        function = functools.partial(lax.conv_general_dilated, **options)
        arguments = numbers(*lhs, dtype=dtype), numbers(*rhs, dtype=dtype, seed=1)
        result.append(Row("conv_general_dilated", function, arguments, label, gradient=gradient and dtype is F32))

    nhwc = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    add((2, 3, 8, 9), (4, 3, 3, 2), "nchw")
    add((2, 8, 9, 3), (3, 3, 3, 4), "nhwc", **nhwc)
    add((2, 8, 9, 3), (3, 3, 3, 4), "valid, strides", padding="VALID", window_strides=(2, 3), **nhwc)
    add((2, 8, 9, 3), (3, 3, 3, 4), "same, strides", window_strides=(2, 2), **nhwc)
    add((2, 8, 9, 3), (3, 3, 3, 4), "explicit", padding=((2, 1), (0, 3)), **nhwc)
    add((2, 9, 9, 3), (3, 3, 3, 4), "dilated", rhs_dilation=(2, 3), **nhwc)
    add((2, 9, 9, 3), (3, 3, 3, 4), "dilated, strides", rhs_dilation=(2, 2), window_strides=(2, 2), **nhwc)
    add((2, 9, 9, 6), (3, 3, 2, 9), "groups", feature_group_count=3, **nhwc)
    add((2, 9, 9, 6), (3, 3, 1, 6), "depthwise", feature_group_count=6, **nhwc)
    add((2, 9, 9, 4), (3, 3, 1, 8), "depthwise, multiplier 2", feature_group_count=4, window_strides=(2, 2), **nhwc)
    add((2, 9, 9, 4), (3, 3, 1, 8), "depthwise, uneven strides", feature_group_count=4, window_strides=(2, 1), **nhwc)
    add((2, 5, 6, 3), (3, 3, 3, 4), "transposed", padding=((1, 2), (2, 1)), lhs_dilation=(2, 2), **nhwc)
    add((2, 5, 6, 3), (4, 4, 3, 4), "transposed, even", padding=((2, 2), (2, 2)), lhs_dilation=(2, 2), **nhwc)
    add((2, 5, 6, 3), (2, 2, 3, 4), "transposed, wide padding", padding=((3, 4), (2, 2)), lhs_dilation=(3, 2), **nhwc)
    add(
        (2, 5, 6, 3),
        (3, 3, 3, 4),
        "both dilated",
        padding=((1, 2), (2, 1)),
        lhs_dilation=(2, 2),
        rhs_dilation=(2, 1),
        **nhwc,
    )
    add(
        (2, 9, 9, 4),
        (3, 3, 2, 4),
        "transposed groups",
        lhs_dilation=(2, 2),
        padding=((1, 1), (1, 1)),
        feature_group_count=2,
        **nhwc,
    )
    add((4, 9, 9, 3), (3, 3, 3, 4), "groups of the batch", batch_group_count=2, **nhwc)
    add((2, 3, 9), (4, 3, 3), "1d")
    add((2, 9, 3), (3, 3, 4), "1d, strides", window_strides=(2,), dimension_numbers=("NWC", "WIO", "NWC"))
    add(
        (2, 9, 3),
        (3, 3, 4),
        "1d, causal",
        padding=((4, 0),),
        rhs_dilation=(2,),
        dimension_numbers=("NWC", "WIO", "NWC"),
    )
    add(
        (2, 5, 3),
        (3, 3, 4),
        "1d, transposed",
        padding=((1, 2),),
        lhs_dilation=(2,),
        dimension_numbers=("NWC", "WIO", "NWC"),
    )
    add((2, 5, 6, 4, 3), (2, 3, 2, 3, 4), "3d", dimension_numbers=("NDHWC", "DHWIO", "NDHWC"))
    add(
        (2, 5, 6, 4, 4),
        (2, 3, 2, 2, 4),
        "3d, groups",
        feature_group_count=2,
        window_strides=(2, 1, 2),
        dimension_numbers=("NDHWC", "DHWIO", "NDHWC"),
    )
    add((2, 3), (4, 3), "0d", padding=())
    add((8, 9, 3, 2), (3, 3, 3, 4), "hwcn", dimension_numbers=("HWCN", "HWIO", "HWNC"))
    # XLA's own convolution of negative padding reads outside on CPUs (jax 0.10), so the padding is apart
    crop = functools.partial(
        lax.pad, padding_value=F32(0), padding_config=((0, 0, 0), (-1, 1, 0), (0, -2, 0), (0, 0, 0))
    )
    result.append(
        Row(
            "conv_general_dilated",
            lambda a, b: lax.conv_general_dilated(
                crop(a), b, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            (numbers(2, 8, 9, 3), numbers(3, 3, 3, 4, seed=1)),
            "negative padding",
            gradient=True,
        )
    )
    for dtype in (F64, np.int32, np.int8, C64):
        add((2, 8, 9, 3), (3, 3, 3, 4), np.dtype(dtype).name, dtype=dtype, **nhwc)
    return result


def _windows() -> list[Row]:
    result = []

    def add(name: str, shape: Any, window: Any, strides: Any, padding: Any, dtype: Any = F32, **options: Any) -> None:
        computation, start = {
            "reduce_window_sum": (lax.add, 0),
            "reduce_window_max": (lax.max, None),
            "reduce_window_min": (lax.min, None),
        }[name]
        if start is None:
            floating = np.dtype(dtype).kind not in "iu"
            start = (
                (-np.inf if name.endswith("max") else np.inf)
                if floating
                else (np.iinfo(dtype).min if name.endswith("max") else np.iinfo(dtype).max)
            )
        result.append(
            Row(
                name,
                lambda v: lax.reduce_window(
                    v, np.array(start, dtype), computation, window, strides, padding, **options
                ),
                (numbers(*shape, dtype=dtype),),
                gradient=dtype is F32 and not options,
            )
        )

    for name in ("reduce_window_sum", "reduce_window_max", "reduce_window_min"):
        add(name, (2, 8, 9, 3), (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        add(name, (2, 8, 9, 3), (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        add(name, (2, 3, 8, 9), (1, 1, 3, 2), (1, 1, 1, 2), ((0, 0), (0, 0), (1, 1), (0, 1)))
        add(name, (2, 9, 3), (1, 3, 1), (1, 2, 1), "SAME")
        add(name, (7, 5), (2, 3), (1, 2), "VALID", window_dilation=(2, 1))
        add(name, (7, 5), (2, 3), (1, 2), "VALID", base_dilation=(2, 1))
        add(name, (2, 5, 6, 4, 3), (1, 2, 2, 2, 1), (1, 2, 2, 2, 1), "VALID")
        add(name, (2, 8, 9, 3), (1, 3, 3, 1), (1, 2, 2, 1), "SAME", np.int32)
        add(name, (2, 8, 9, 3), (1, 3, 3, 1), (1, 2, 2, 1), "SAME", F64)

    def pool(v: Any) -> Any:
        return (lax.reduce_window(v, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2).sum()

    result.append(Row("select_and_scatter_add", jax.grad(pool), (numbers(2, 8, 9, 3),)))
    return result


def _indexing() -> list[Row]:
    x, i = numbers(5, 6, 7), np.array([[0, 4, -1], [2, 2, -5]], np.int32)
    far = np.array([[0, 9, -1], [2, -12, -5]], np.int32)
    row = functools.partial(Row, "gather", gradient=True)
    result = [
        row(lambda v, k: v[k], (x, i), "rows"),
        row(lambda v, k: v[:, k], (x, i), "second axis"),
        row(lambda v, k: v[..., k], (x, i), "last axis"),
        row(lambda v, k: v[k, :, k], (x, i), "two apart"),
        row(lambda v, k: v[k, k], (x, i), "two beside"),
        row(lambda v, k: v[k[0], 1:3, k[1]], (x, i), "slice between"),
        row(lambda v, k: v[k[0, 0]], (x, i), "one"),
        row(lambda v: v[2], (x,), "static"),
        row(lambda v: v[np.array([0, 2]), :, np.array([1, 3])], (x,), "static pair"),
        row(lambda v, k: jnp.take(v, k, axis=1), (x, far), "take, fill"),
        row(lambda v, k: jnp.take(v, k, axis=0, mode="clip"), (x, far), "take, clip"),
        row(lambda v, k: jnp.take(v, k, axis=2, mode="wrap"), (x, far), "take, wrap"),
        row(lambda v, k: v.at[k].get(mode="fill", fill_value=-1), (x, far), "fill value"),
        Row("gather", lambda v, k: jnp.take(v, k, axis=0), (numbers(5, 6, dtype=np.int32), far), "fill, int32"),
        Row("gather", lambda v, k: jnp.take(v, k, axis=0), (numbers(5, 6, dtype=np.uint8), far), "fill, uint8"),
        row(lambda v, k: jnp.take_along_axis(v, k[:, :, None] % 5, axis=1), (x[:2], np.abs(i)), "along"),
        row(lambda v, k: jax.vmap(lambda a, b: a[b])(v, k), (x[:2], np.abs(i)), "vmap"),
        row(
            lambda v, k: jax.vmap(lambda a, b: lax.dynamic_slice(a, (b, b * 0), (2, 7)))(v[:3], k), (x, i[0]), "windows"
        ),
        row(
            lambda v, k: lax.gather(
                v, k[..., None], lax.GatherDimensionNumbers((1, 2, 3), (), (1,)), (2, 3, 7), mode="clip"
            ),
            (x, np.array([0, 2, 9], np.int32)),
            "partial windows",
        ),
        row(lambda v, k: jnp.diagonal(v, axis1=0, axis2=1), (x, i), "diagonal"),
        row(lambda v: v[::-1, ::2], (x,), "strides"),
        row(lambda v, k: v[k > 0, 0] if False else v[jnp.where(k[0] > 0, 1, 0)], (x, i), "where"),
        Row(
            "dynamic_slice",
            lambda v, k: lax.dynamic_slice(v, (k, np.int32(1), k), (2, 3, 7)),
            (x, np.int32(2)),
            gradient=True,
        ),
        Row(
            "dynamic_slice",
            lambda v, k: lax.dynamic_slice(v, (k, k * 0 + 1, k * 0), (2, 3, 7)),
            (x, np.int32(9)),
            gradient=True,
        ),
        Row("dynamic_slice", lambda v: lax.dynamic_slice(v, (1, 1, -3), (2, 3, 2)), (x,), gradient=True),
        Row("dynamic_slice", lambda v, k: lax.dynamic_index_in_dim(v, k, 1), (x, np.int32(3)), gradient=True),
        Row("dynamic_slice", lambda v, k: lax.dynamic_slice(v, (k,), (2,)), (numbers(9), np.uint8(3)), gradient=True),
    ]
    u = numbers(2, 3, 7, seed=4)
    for k, label in ((np.int32(2), "inside"), (np.int32(9), "behind"), (np.int32(-1), "negative")):
        result.append(
            Row(
                "dynamic_update_slice",
                lambda v, w, k: lax.dynamic_update_slice(v, w, (k, k * 0 + 1, k * 0)),
                (x, u, k),
                label,
                gradient=True,
            )
        )
    result.append(
        Row("dynamic_update_slice", lambda v, w: lax.dynamic_update_slice(v, w, (1, 0, 0)), (x, u), gradient=True)
    )
    for method in ("set", "add", "multiply", "min", "max", "subtract"):
        name = {"set": "scatter", "multiply": "scatter-mul", "subtract": "scatter-sub"}.get(method, f"scatter-{method}")
        smooth = method in ("set", "add")
        unique = np.array([3, 0, 4], np.int32)
        w = numbers(3, 6, 7, seed=5)

        def update(v: Any, k: Any, w: Any, method: str = method, mode: str | None = None, axis: int = 0) -> Any:
            place = v.at[(slice(None),) * axis + (k,)]
            return getattr(place, method)(w, mode=mode) if mode else getattr(place, method)(w)

        same = np.array([3, 0, 3], np.int32) if method != "set" else unique
        result += [
            Row(name, update, (x, unique, w), "rows", gradient=smooth),
            Row(name, update, (x, same, w), "equal rows"),
            Row(
                name,
                functools.partial(update, axis=1),
                (x, unique, numbers(5, 3, 7, seed=6)),
                "second axis",
                gradient=smooth,
            ),
            Row(name, update, (x, np.array([3, 9, -9], np.int32), w), "dropped", gradient=smooth),
            Row(name, functools.partial(update, mode="clip"), (x, np.array([3, 9, 0], np.int32), w), "clipped"),
            Row(name, functools.partial(update, mode="promise_in_bounds"), (x, unique, w), "promised"),
            Row(name, lambda v, k, w, f=update: f(v, k, w), (x, np.int32(2), w[0]), "one"),
            Row(name, lambda v, w, m=method: getattr(v.at[1:3, 2], m)(w[0, :2]), (x, w), "static slice"),
            Row(name, lambda v, k, w, m=method: getattr(v.at[k, k + 1], m)(w[:, 0]), (x, unique, w), "two axes"),
            Row(
                name,
                lambda v, k, w, m=method: jax.vmap(lambda a, b, c: getattr(a.at[b], m)(c))(v[:3], k, w[:, 0]),
                (x, unique, w),
                "vmap",
            ),
            Row(name, update, (numbers(5, 6, 7, dtype=np.int32), unique, numbers(3, 6, 7, dtype=np.int32)), "int32"),
        ]
    result.append(Row("scatter", lambda v, k: v.at[k].set(True), (np.zeros(5, np.bool_), np.int32(2)), "bool"))
    return result


def _linear_algebra() -> list[Row]:
    a = numbers(3, 4, 4) + 6 * np.eye(4, dtype=F32)
    spd = a @ a.transpose(0, 2, 1)
    b = numbers(3, 4, 2)
    result = [
        Row("cholesky", jnp.linalg.cholesky, (spd,)),
        Row("lu", lambda v: jax.scipy.linalg.lu_factor(v), (a,)),
        Row("custom_linear_solve", jnp.linalg.solve, (a, b)),
        Row("lu", jnp.linalg.det, (a,)),
        Row("lu", jnp.linalg.inv, (a,)),
        Row("qr", lambda v: (lambda q, r: q @ r)(*jnp.linalg.qr(v)), (numbers(3, 5, 4),)),
        Row("qr", lambda v: jnp.abs(jnp.linalg.qr(v)[1]), (numbers(3, 5, 4),)),
        Row("geqrf", lambda v: jnp.linalg.qr(v, mode="raw"), (numbers(2, 5, 3),)),
        Row("geqrf", lambda v: jnp.linalg.qr(v, mode="raw"), (numbers(3, 5),), "wide"),
        Row("householder_product", lax.linalg.householder_product, (numbers(5, 3), numbers(3, low=0.1, high=1.5))),
        Row("eigh", lambda v: jnp.linalg.eigh(v)[0], (spd,)),
        Row("eigh", lambda v: (lambda w, q: (q * w[..., None, :]) @ q.mT)(*jnp.linalg.eigh(v)), (spd,)),
        Row("eig", lambda v: jnp.sort(jnp.abs(jnp.linalg.eigvals(v))), (a,)),
        Row("svd", lambda v: jnp.linalg.svd(v, compute_uv=False), (numbers(3, 5, 4),)),
        Row(
            "svd",
            lambda v: (lambda u, s, w: (u * s[..., None, :]) @ w)(*jnp.linalg.svd(v, full_matrices=False)),
            (numbers(3, 5, 4),),
        ),
        Row(
            "tridiagonal_solve",
            lax.linalg.tridiagonal_solve,
            (numbers(5), numbers(5, seed=1) + 7, numbers(5, seed=2), numbers(5, 2)),
        ),
    ]
    for left in (True, False):
        for lower in (True, False):
            for swap in (True, False):
                function = functools.partial(lax.linalg.triangular_solve, left_side=left, lower=lower, transpose_a=swap)
                result.append(
                    Row("triangular_solve", function, (a, b if left else b.transpose(0, 2, 1)), gradient=True)
                )
    function = functools.partial(lax.linalg.triangular_solve, left_side=True, unit_diagonal=True, lower=True)
    result.append(Row("triangular_solve", function, (a, b)))
    complex_values = numbers(2, 4, 6, dtype=C64)
    for n, axes in ((1, (-1,)), (2, (-2, -1)), (3, (-3, -2, -1))):
        result += [
            Row("fft", functools.partial(jnp.fft.fftn, axes=axes), (complex_values,), f"fft {n}"),
            Row("fft", functools.partial(jnp.fft.ifftn, axes=axes), (complex_values,), f"ifft {n}"),
            Row("fft", functools.partial(jnp.fft.rfftn, axes=axes), (complex_values.real,), f"rfft {n}"),
            Row("fft", functools.partial(jnp.fft.irfftn, axes=axes), (complex_values,), f"irfft {n}"),
        ]
    return result


def _random() -> list[Row]:
    key = np.array([7, 99], np.uint32)

    def of(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda words: function(jax.random.wrap_key_data(words))

    result = [
        Row("random_bits", of(functools.partial(jax.random.bits, shape=(5, 3), dtype=d)), (key,), str(np.dtype(d)), 0)
        for d in (np.uint8, np.uint16, np.uint32, np.uint64)
    ]
    row = functools.partial(Row, "random_bits", tolerance=0)
    result += [
        Row("random_split", of(lambda k: jax.random.key_data(jax.random.split(k, 3))), (key,), tolerance=0),
        Row("random_fold_in", of(lambda k: jax.random.key_data(jax.random.fold_in(k, 5))), (key,), tolerance=0),
        Row("random_seed", lambda s: jax.random.key_data(jax.random.key(s)), (np.int32(42),), tolerance=0),
        row(of(lambda k: jax.random.uniform(k, (7,))), (key,), "uniform"),
        row(of(lambda k: jax.random.randint(k, (7,), 0, 10)), (key,), "randint"),
        row(of(lambda k: jax.random.bernoulli(k, 0.3, (9,))), (key,), "bernoulli"),
        row(of(lambda k: jax.random.permutation(k, 9)), (key,), "permutation"),
        Row("random_bits", of(lambda k: jax.random.normal(k, (7,))), (key,), "normal"),
        Row("random_bits", of(lambda k: jax.random.truncated_normal(k, -1.0, 1.0, (7,))), (key,), "truncated"),
        Row("random_bits", of(lambda k: jax.random.gumbel(k, (7,))), (key,), "gumbel"),
        Row("random_bits", of(lambda k: jax.random.exponential(k, (7,))), (key,), "exponential"),
        row(
            of(lambda k: jax.random.categorical(k, jnp.log(jnp.array([0.2, 0.5, 0.3])), shape=(9,))),
            (key,),
            "categorical",
        ),
        row(of(lambda k: jax.vmap(lambda q: jax.random.bits(q, (2,)))(jax.random.split(k, 3))), (key,), "vmap"),
        row(of(lambda k: jax.random.bits(jax.random.split(k, 4)[2], (2,))), (key,), "indexed keys"),
        Row(
            "threefry2x32",
            lambda w: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(w))),
            (key,),
            tolerance=0,
        ),
    ]
    return result


def _control_flow() -> list[Row]:
    x = numbers(6, 4)

    def cumulative(carry: Any, v: Any) -> Any:
        carry = jnp.tanh(carry * 0.5 + v)
        return carry, carry * 2

    def custom(v: Any) -> Any:
        @jax.custom_vjp
        def scaled(a: Any) -> Any:
            return jnp.sin(a)

        scaled.defvjp(lambda a: (jnp.sin(a), a), lambda a, g: (g * jnp.cos(a),))
        return scaled(v)

    row = functools.partial(Row, gradient=True)
    return [
        row("scan", lambda v: lax.scan(cumulative, jnp.zeros(4), v), (x,)),
        row("scan", lambda v: lax.scan(cumulative, jnp.zeros(4), v, reverse=True), (x,), "reverse"),
        row("scan", lambda v: lax.scan(cumulative, jnp.zeros(4), v, unroll=6), (x,), "unrolled"),
        row("scan", lambda v: lax.scan(lambda c, _: (c * 1.1, None), v, None, length=5)[0], (x,), "no elements"),
        row("scan", lambda v: lax.map(lambda r: r.sum() * r, v), (x,), "map"),
        row("scan", lambda v: lax.fori_loop(0, 5, lambda i, c: c * 1.1 + i, v), (x,), "fori_loop"),
        row("scan", lambda v: lax.scan(lambda c, r: (c + r, {"a": c, "b": r.sum()}), jnp.zeros(4), v), (x,), "nested"),
        Row("while", lambda v: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2), (0, v)), (x,)),
        Row("while", lambda v: lax.while_loop(lambda c: jnp.sum(c) < 100.0, lambda c: c + 1, v), (x,), "by value"),
        Row("while", lambda v, n: lax.fori_loop(0, n, lambda i, c: c * 1.5, v), (x, np.int32(3)), "dynamic count"),
        row("cond", lambda v: lax.cond(v.sum() > 0, jnp.sin, lambda a: a * 2, v), (x,)),
        row("cond", lambda v: lax.cond(v.sum() < 0, jnp.sin, lambda a: a * 2, v), (x,)),
        *(
            Row(
                "cond",
                lambda v, k: lax.switch(k, [jnp.sin, jnp.cos, lambda a: a * 3], v),
                (x, np.int32(k)),
                f"switch {k}",
                gradient=0 <= k < 3,
            )
            for k in (-1, 0, 1, 2, 7)
        ),
        row("jit", lambda v: jax.jit(jnp.sin)(v) + jax.jit(lambda a: a * 2)(v), (x,)),
        row("remat2", lambda v: jax.checkpoint(lambda a: jnp.sin(jnp.cos(a)))(v), (x,)),
        row("custom_jvp_call", lambda v: jax.nn.relu(v) + jax.nn.silu(v) + jax.nn.softplus(v), (x,)),
        row("custom_jvp_call", lambda v: jax.nn.gelu(v) + jax.nn.elu(v) + jax.nn.log_softmax(v), (x,)),
        row("custom_vjp_call", custom, (x,)),
    ]


def _bits() -> list[Row]:
    key = np.uint32([5, 7, 0xFFFFFFFE, 9])  # the counter's low word overflows
    kinds: list[tuple[tuple[int, ...], Any]] = [
        ((), jnp.uint32),
        ((5,), jnp.uint32),
        ((3, 3), jnp.uint16),
        ((5, 3), jnp.uint8),
        ((3, 4), jnp.uint32),
        ((4, 6), jnp.uint32),
        ((3,), jnp.uint64),
        ((2, 3), jnp.uint64),
    ]
    return [
        Row(
            "rng_bit_generator",
            functools.partial(lax.rng_bit_generator, shape=shape, dtype=dtype, algorithm=algorithm),
            (key,),
            f"{algorithm.name} {shape}",
            0,
        )
        for algorithm in (lax.RandomAlgorithm.RNG_THREE_FRY, lax.RandomAlgorithm.RNG_PHILOX)
        for shape, dtype in kinds
    ]


def _orders() -> list[Row]:
    x = np.float32([3, -1, np.nan, 0, np.inf, -np.inf, 2, np.nan, 3])
    rows = [
        Row(name, getattr(lax, f"{name}_p").bind, np.broadcast_arrays(x[:, None], x[None]))
        for name in ("eq_to", "le_to", "lt_to")
    ]
    sorted_x, places = np.sort(numbers(7)), np.float32([*numbers(5, seed=1), np.nan])
    rows.append(Row("le_to", jnp.searchsorted, (sorted_x, places)))
    rows.append(
        Row("platform_index", lambda v: lax.platform_dependent(v, tpu=jnp.cos, cpu=jnp.sin, default=jnp.tan), (x,))
    )
    rows.append(Row("platform_index", lambda v: lax.platform_dependent(v, tpu=jnp.cos, default=jnp.tan), (places,)))
    return rows


ROWS = [
    r
    for family in (
        _unary,
        _binary,
        _others,
        _arrays,
        _reductions,
        _contractions,
        _convolutions,
        _windows,
        _indexing,
        _linear_algebra,
        _bits,
        _random,
        _control_flow,
        _orders,
    )
    for r in family()
    if r is not None
]
