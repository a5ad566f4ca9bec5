"""Quantized nodes: selection of the kernel of a node with integer tensors that represent real numbers.

Lives here: which nodes these are, finding the operator's rule, what shape rules see of such tensors.
Not here: the rules (ops/quantized/), the four methods (registration.py).

A node whose tensors of up to 16 bits have scales takes this way. Its operator either `moves` such tensors, which means
that it computes on the raw integers as on any others, or has a rule for them: `quantized`, or `hybrid` where
activations are floats and weights are integers. Shape rules see float32 in place of the integers.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType, float32
from ..core.errors import InternalError, InvalidArgumentError, OpError, UnimplementedError
from ..core.lazy_imports import later
from ..core.specs import TensorSpec
from .ops.definition import LiteOperator
from .ops.tiling import BLOCK, elements, rows, store_parts
from .runtime.node import Node
from .runtime.tensor import Tensor

if TYPE_CHECKING:
    from .ops.quantized import operand, quantization
else:  # not needed by models of floats
    operand = later(".ops.quantized.operand", __package__)
    quantization = later(".ops.quantized.quantization", __package__)

BLOCKWISE = {f"hybrid.{name}": f"hybrid.blockwise_{name}" for name in ("fully_connected", "embedding_lookup")}
"""By rule, the one for weights with scales by block."""


@functools.cache
def _is_narrow_type(name: str) -> bool:
    """Return whether a type of the schema is one of integers of up to 16 bits."""
    return name in operand.LIMITS and operand.LIMITS[name][1] < 1 << 16


def is_narrow(t: Tensor | None) -> bool:
    """Return whether a tensor is quantized with integers of up to 16 bits."""
    return t is not None and t.is_quantized and _is_narrow_type(t.type.name)


def is_quantized(operator: Any, node: Node) -> bool:
    """Return whether a node runs by a rule for quantized tensors."""
    if any(map(is_narrow, node.tensors_in)) or any(map(is_narrow, node.tensors_out)):
        return True
    unscaled = isinstance(operator, LiteOperator) and operator.unscaled
    return unscaled and any(t is not None and _is_narrow_type(t.type.name) for t in node.tensors_in)


@functools.cache
def rule_named(path: str) -> Callable[..., Any]:
    """Import the rule "module.function" of ops/quantized on first use."""
    module, _, name = path.partition(".")
    result: Callable[..., Any] = getattr(importlib.import_module(f".ops.quantized.{module}", __package__), name)
    return result


def rule_of(operator: Any, node: Node) -> Any:
    """Return the rule of a quantized node, "module.function" or itself; None for an operator that moves integers.
    Users' operators say it by `quantized` in their class (ops/quantized/quantization.py).

    raises UnimplementedError naming operator, tensors and types where there is none
    """
    if not isinstance(operator, LiteOperator):
        return quantization.rule_for(operator, node, [t for t in (*node.tensors_in, *node.tensors_out) if is_narrow(t)])
    path: Any = None
    if operator.hybrid and all(t.dtype.is_floating for t in node.tensors_out):
        path = operator.hybrid
    elif operator.moves:
        if operator.alike:
            _check_alike(operator, node)
        return None
    else:
        path = operator.quantized
    if path is None:
        tensors = [t for t in (*node.tensors_in, *node.tensors_out) if is_narrow(t)]
        named = ", ".join(f"{t.name!r} {t.type.name}" for t in tensors if t is not None)
        raise UnimplementedError(
            op=node.name,
            what="this operator has no kernel for quantized tensors",
            found=named,
            wanted="tensors without scales",
            do="convert the model with this operator in float",
            explain="OW103",
        )
    return path


def _check_alike(operator: LiteOperator, node: Node) -> None:
    """Raise InvalidArgumentError if the parameters of an output differ from those of the moved input."""
    position = next(i for i, declared in enumerate(operator.inputs) if declared.name == operator.outputs[0].like)
    moved = node.tensors_in[position] if position < len(node.tensors_in) else None
    if moved is not None and moved.type.name in ("INT8", "UINT8", "INT16"):  # kernels differ about others
        operand.check_same(operand.Operand(moved), *map(operand.Operand, node.tensors_out))


def another_number_of_outputs(op: str, count: int, expected: int, node: str | None = None) -> InvalidArgumentError:
    """Return the error of a node that does not have an operator's outputs."""
    what = "the node has another number of outputs than the operator"
    return InvalidArgumentError(op=op, node=node, what=what, found=count, wanted=expected)


def kernel_of(operator: Any, path: Any, call: Any, node: Node, group: Callable[..., list[Any]]) -> Callable[..., Any]:
    """Return the integer kernel of a quantized node with valid shapes, by the rule of this path.

    group: flat tensors -> by declared input.
    raises UnimplementedError for types that it does not take, InvalidArgumentError for such parameters
    """
    inputs = group(operator, [None if t is None else operand.Operand(t) for t in node.tensors_in], node)
    outputs: list[Any] = [operand.Operand(t) for t in node.tensors_out]
    if len(outputs) != len(operator.outputs) and not any(o.repeated for o in operator.outputs):
        raise another_number_of_outputs(node.name, len(outputs), len(operator.outputs))
    if not operator.profile.single and len(operator.outputs) == 1:
        outputs = [tuple(outputs)]
    blocked = next((o for o in inputs if isinstance(o, operand.Operand) and o.blocks is not None), None)
    if blocked is not None:
        if path not in BLOCKWISE:
            raise UnimplementedError(
                op=node.name,
                what="this operator does not take scales by block",
                found=f"{blocked.name!r} {blocked.type}",
                wanted="one scale, or one a channel",
                explain="OW103",
            )
        path = BLOCKWISE[path]
    try:
        with np.errstate(all="ignore"):  # for any scales; the result is checked
            result: Callable[..., Any] = (rule_named(path) if isinstance(path, str) else path)(call, *inputs, *outputs)
            return result
    except OpError as error:
        if error.op is None:
            raise type(error)(op=node.name, what=error.message) from None
        raise


class RealOperand:
    """A quantized tensor as shape rules see it: real numbers of unknown value. stored: the dtype of the integers."""

    __slots__ = ("spec", "stored")
    constant = None

    def __init__(self, t: Tensor, dtype: DType = float32) -> None:
        self.spec, self.stored = TensorSpec(t.spec.shape, dtype), t.dtype


def as_real(operator: Any, node: Node, operand_of: Callable[[Tensor], Any]) -> list[Any]:
    """Return the inputs for shape rules: reals for quantized inputs and for integers where only floats are declared.

    (Files may leave a bias of integer operands without scales.) The reals are of the type of the node's first float,
    float32 where it has none. known: the operand for another input.
    """
    tensors = node.tensors_in
    declared = operator.inputs if not any(i.repeated for i in operator.inputs) else ()
    real = next((t.dtype for t in (*tensors, *node.tensors_out) if t is not None and t.dtype.is_floating), float32)
    floats = any(t is not None and t.dtype.is_floating for t in tensors)
    seen: list[Any] = []
    for i, t in enumerate(tensors):
        if t is None:
            seen.append(None)
        elif t.is_quantized or (
            t.dtype.is_integer
            and not t.is_variable
            and not floats
            and i < len(declared)
            and t.dtype not in declared[i].dtypes
        ):
            seen.append(RealOperand(t, real))
        else:
            seen.append(operand_of(t))
    return seen


def real_dtype(t: Tensor) -> DType:
    """Return the dtype of an output for shape rules. (An integer without scale counts as scaled; rules check types.)"""
    return float32 if t.is_quantized or _is_narrow_type(t.type.name) else t.dtype


def divided(operator: Any) -> Callable[..., Any] | None:
    """Return the partition of an operator's results: by elements, by rows, or None for neither."""
    if not isinstance(operator, LiteOperator):
        return None
    return elements if operator.elementwise else rows if operator.by_row else None


def run_quantized(
    kernel: Callable[..., Any],
    arrays: Sequence[Any],
    outs: Sequence[np.ndarray],
    name: str,
    divide: Callable[..., Any] | None = None,
) -> None:
    """Run a kernel and store its results, which are within range, in the outputs' types.

    divide: of a large result how it is made in parts (`divided`), so that wide integers stay few and in the cache
    """
    if divide is not None and outs[0].size > BLOCK:
        store_parts(divide(kernel, arrays, outs[0].shape), outs[0])
        return
    results = kernel(*arrays)
    if isinstance(results, Iterator):
        store_parts(results, outs[0])
        return
    if not isinstance(results, (tuple, list)):
        results = (results,)
    if len(results) != len(outs):
        raise InternalError(
            op=name,
            what="the integer kernel gave another number of results than the node has outputs",
            found=len(results),
            wanted=len(outs),
        )
    for result, out in zip(results, outs):
        if result.shape != out.shape:
            raise InternalError(
                op=name,
                what="the integer kernel gave another shape than was inferred",
                found=list(result.shape),
                wanted=list(out.shape),
            )
        np.copyto(out, result, casting="unsafe")
