"""Conversion between integers and the real numbers that they represent: QUANTIZE, DEQUANTIZE, operators of users.

Lives here: the rules of QUANTIZE and DEQUANTIZE, and `rule_for`, the rule of a user-defined operator by the value of
`quantized` in its class.
Not here: which nodes are quantized, calls of rules (../../quantized_registration.py), rules of other builtin operators.

    quantized = "reals"       the default: compute on the real numbers, as in a float model, and round results to the
                              steps of the outputs
    quantized = "integers"    compute on the integers, as on any others
    def quantized(op, x, y)   called with an `Operand` (scale, zero_point, low, high, ...) for each input, then for each
                              output; returns the function of the integers: arrays in, integers out (or a tuple)
    quantized = None          refuse models in which the operator is quantized
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....core.dtypes import float32
from ....core.errors import DefinitionError, UnimplementedError
from ....ops.call import call_rule, contract_violation
from ....scalar.fixed_point import array_round_away as round_away
from ....scalar.fixed_point import multiplier
from ..tiling import Part, elements, store_parts
from .fixed_point import INT32
from .operand import Operand, check_scaled, check_types

REALS = ("FLOAT32", "FLOAT16")
_NARROW = ("INT8", "UINT8", "INT16", "INT4", "INT2", "UINT4")
QUANTIZED = (
    *(f"{a} {b}" for a in REALS for b in (*_NARROW, "INT32")),
    *(f"{a} {b}" for a in (*_NARROW[:3], "INT32") for b in (*_NARROW[:3], "INT32")),
)


def _along(values: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """Shape a vector of scales or zero points to be broadcast along a dimension of a tensor."""
    return values.reshape([-1 if i == axis else 1 for i in range(rank)])


def quantize(op: Any, x: Operand, y: Operand) -> Callable[[np.ndarray], Iterator[Part] | np.ndarray]:
    """.. math:: q_y = clamp(round(x / s_y) + z_y)    of reals, halves away from zero"""
    check_types(op, QUANTIZED, x, y)
    if x.type not in REALS:
        return _requantize(x, y)
    if not len(y.scales):
        check_scaled(y)
    if y.per_channel and not (y.axis < len(x.shape) and x.shape[y.axis] == len(y.scales)):
        raise y.wrong(
            "has scales that do not fit the input",
            f"{len(y.scales)} along {y.axis}, and {list(x.shape)}",
            "one scale, or one for each slice along that dimension",
        )
    scale: Any = y.scale
    zero_point: Any = y.zero_point
    if y.per_channel:  # along a dimension of the input: the file may say another shape of the output
        scale, zero_point = (_along(values, y.axis, len(x.shape)) for values in (y.scales, y.zero_points))
    if not np.all(scale):
        raise y.wrong("has a scale of 0", y.scales[:8].tolist(), "positive scales")

    def run(real: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
        q = round_away(np.nan_to_num(real.astype(np.float32, copy=False) / scale, nan=0.0)).astype(np.float64)
        result: np.ndarray = np.clip(q + zero_point, y.low, y.high)
        return result

    return lambda real: elements(run, (real, np.asarray(scale), np.asarray(zero_point)), real.shape)


def _requantize(x: Operand, y: Operand) -> Callable[..., Any]:
    """Return the rule from integers to integers of another scale. A tensor without a scale officially has scale 0 and
    represents 0."""
    check_scaled(*([x] if len(x.scales) else []), y)
    m, e = multiplier(float(x.scale) / float(y.scale))

    def run(q: np.ndarray) -> np.ndarray:
        return y.saturated(INT32.rescale(x.centred(q), m, e))

    return lambda q: elements(run, (q,), q.shape)


def dequantize(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    """.. math:: y = s_x (q_x - z_x)"""
    check_types(op, tuple(f"{t} FLOAT32" for t in (*_NARROW, "INT32", "UINT16")), x, y)
    if x.per_channel:
        scales, zero_points = (_along(values, x.axis, len(x.shape)) for values in (x.scales, x.zero_points))

        def of_channels(q: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
            result: np.ndarray = scale * (q.astype(np.int64) - zero_point).astype(np.float32)
            return result

        return lambda q: elements(of_channels, (q, scales, zero_points), q.shape)
    check_scaled(x)
    scale = float(x.scale)
    return lambda q: elements(lambda part: scale * x.centred(part, np.float64), (q,), q.shape)


class _Real:
    """The real numbers of a tensor, for the rules of QUANTIZE and DEQUANTIZE."""

    type, per_channel, scales = "FLOAT32", False, np.zeros(0, np.float32)

    def __init__(self, o: Operand) -> None:
        self.name, self.shape = o.name, o.shape


def rule_for(operator: Any, node: Any, narrow: Sequence[Any]) -> Callable[..., Any] | None:
    """Return the rule of a quantized node of a user's operator; None if it computes on the integers.

    A rule maps (call, *inputs, *outputs) to a function of arrays.

    narrow: its quantized tensors. raises UnimplementedError if the class declares that there is none, or takes no reals
    """
    declared = operator.quantized_rule
    if callable(declared):
        return functools.partial(_by_method, declared)
    if declared == "integers":
        return None
    takes_reals = all(float32 in i.dtypes for i, t in zip(operator.inputs, node.tensors_in) if t in narrow)
    if declared is None or not takes_reals:
        why = "this operator has no kernel for quantized tensors"
        if declared is not None:
            why = "this operator takes no reals, and its class says nothing of integers that stand for some"
        raise UnimplementedError(
            op=node.name,
            what=why,
            found=", ".join(f"{t.name!r} {t.type.name}" for t in narrow),
            wanted="tensors without scales",
            explain="OW103",
            do='quantized = "integers" in its class, or a method `quantized`; or convert the model with it in float',
        )
    return _on_reals


def _on_reals(call: Any, *operands: Any) -> Callable[..., Any]:
    """Dequantize, compute, quantize."""
    operator = call.operator
    inputs, outputs = operands[: len(operator.inputs)], _flat(operands[len(operator.inputs) :])
    before = [_each(_real_numbers, o) for o in inputs]
    after = [_steps(o) for o in outputs]

    def run(*arrays: Any) -> tuple[Any, ...]:
        inputs_of_call = [_applied(function, a) for function, a in zip(before, arrays)]
        results = operator.flat_outputs(operator.kernel(call, float32)(*inputs_of_call))
        if len(results) != len(after):
            raise contract_violation(
                operator, "compute", "gave another number of results than infer", found=len(results), wanted=len(after)
            )
        return tuple(function(np.asarray(r)) for function, r in zip(after, results))

    return run


def _flat(operands: Sequence[Any]) -> list[Operand]:
    return [o for one in operands for o in (one if isinstance(one, tuple) else (one,))]


def _each(make: Callable[[Operand], Any], operand: Any) -> Any:
    return tuple(map(make, operand)) if isinstance(operand, tuple) else None if operand is None else make(operand)


def _applied(function: Any, array: Any) -> Any:
    if function is None:
        return array
    return tuple(f(a) for f, a in zip(function, array)) if isinstance(function, tuple) else function(array)


def _real_numbers(o: Operand) -> Callable[[Any], Any]:
    """Return the function that dequantizes integers; the identity for a tensor without scales."""
    if not len(o.scales):
        return lambda q: q
    rule = dequantize(None, o, _Real(o))  # type: ignore[arg-type]

    def run(q: np.ndarray) -> np.ndarray:
        out = np.empty(q.shape, np.float32)
        store_parts(rule(q), out)
        return out

    return run


def _steps(o: Operand) -> Callable[[Any], Any]:
    """Return the function that quantizes results; the identity for a tensor without scales."""
    if not len(o.scales):
        return lambda real: real
    rule = quantize(None, _Real(o), o)  # type: ignore[arg-type]

    def run(real: np.ndarray) -> np.ndarray:
        if real.dtype.kind not in "fV":
            raise DefinitionError(
                what=f"compute gave {real.dtype} for {o.name!r}, which stands for real numbers", wanted="float32"
            )
        out = np.empty(real.shape, np.float64)
        store_parts(rule(real.astype(np.float32, copy=False)), out)
        return out

    return run


def _by_method(method: Callable[..., Any], call: Any, *operands: Any) -> Callable[..., Any]:
    """Return the kernel of the class's own method, with results clamped to the types of the outputs."""
    operator = call.operator
    kernel = call_rule(operator, "quantized", method, call, *operands)
    outputs = _flat(operands[len(operator.inputs) :])
    if not callable(kernel):
        raise contract_violation(
            operator,
            "quantized",
            "gave no function",
            found=repr(kernel)[:80],
            wanted="a function of the inputs' integers",
        )

    def run(*arrays: Any) -> tuple[Any, ...]:
        results = operator.flat_outputs(kernel(*arrays))
        return tuple(_within(operator, np.asarray(r), o) for r, o in zip(results, outputs, strict=True))

    return run


def _within(operator: Any, result: np.ndarray, o: Operand) -> np.ndarray:
    if len(o.scales) and result.dtype.kind not in "iu":
        raise contract_violation(
            operator,
            "quantized",
            f"gave {result.dtype} for {o.name!r}",
            wanted=f"integers within {o.low} to {o.high}",
            do="np.rint(y).astype(np.int32)",
        )
    return np.clip(result, o.low, o.high) if len(o.scales) else result
