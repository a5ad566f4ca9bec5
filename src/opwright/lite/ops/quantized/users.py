"""How users' operators compute on quantised tensors, as their classes say.

Lives here: the rule of each word that `quantized` may be in a class, and of its method of that name.
Not here: which nodes are quantised, how rules are called (../../quantized_registration.py), rules of builtin operators.

    quantized = "reals"       the default: the real numbers that the integers stand for are computed on, as in a float
                              model, and results are rounded to the outputs' steps
    quantized = "integers"    the integers are taken as they are, as any others
    def quantized(op, x, y)   for each input and then each output an `Operand` (scale, zero_point, low, high, ...);
                              gives the function of the integers: arrays in, integers out (a tuple of several)
    quantized = None          none: a model that has the operator so is refused
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.dtypes import float32
from ....core.errors import DefinitionError, UnimplementedError
from ....ops.rule_errors import call_rule, contract_violation
from ..parts import store_parts
from .operand import Operand
from .quantizing import dequantize, quantize


class _Real:
    """The real numbers of a tensor, for the rules of QUANTIZE and DEQUANTIZE."""

    type, per_channel, scales = "FLOAT32", False, np.zeros(0, np.float32)

    def __init__(self, o: Operand) -> None:
        self.name, self.shape = o.name, o.shape


def rule_for(operator: Any, node: Any, narrow: Sequence[Any]) -> Callable[..., Any] | None:
    """The rule of a quantised node of a user's operator: (call, *inputs, *outputs) -> function of arrays; None where it
    takes integers as they are.

    narrow: its quantised tensors. raises UnimplementedError where the class says that there is none, or takes no reals
    """
    said = operator.quantized_rule
    if callable(said):
        return functools.partial(_by_method, said)
    if said == "integers":
        return None
    takes_reals = all(float32 in i.dtypes for i, t in zip(operator.inputs, node.tensors_in) if t in narrow)
    if said is None or not takes_reals:
        why = "this operator has no kernel for quantized tensors"
        if said is not None:
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
    """Dequantise, compute, quantise."""
    operator = call.operator
    inputs, outputs = operands[: len(operator.inputs)], _flat(operands[len(operator.inputs) :])
    before = [_each(_real_numbers, o) for o in inputs]
    after = [_steps(o) for o in outputs]

    def run(*arrays: Any) -> tuple[Any, ...]:
        given = [_applied(function, a) for function, a in zip(before, arrays)]
        results = operator.flat_outputs(operator.kernel(call, float32)(*given))
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
    """float32 of the integers; of a tensor without scales what it has."""
    if not len(o.scales):
        return lambda q: q
    rule = dequantize(None, o, _Real(o))  # type: ignore[arg-type]

    def run(q: np.ndarray) -> np.ndarray:
        out = np.empty(q.shape, np.float32)
        store_parts(rule(q), out)
        return out

    return run


def _steps(o: Operand) -> Callable[[Any], Any]:
    """The integers that stand for results; of a tensor without scales what it has."""
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
    """What the class's own method gives; its results are held within the outputs' types."""
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
