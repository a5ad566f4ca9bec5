"""Reverse-mode differentiation over recorded calls.

Lives here: `OpRecord` and `backpropagate`, which the eager tape and traced functions both use.
Not here: what is recorded and when (eager/tape.py), the gradient rules (each operator's own).

Backpropagation is written in operators, so it is itself recorded by outer tapes and traces: higher orders need
nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.dtypes import DType
from .call import Call
from .indexed_slices import IndexedSlices

# Operators whose gradient rules take IndexedSlices as they are; before the others, slices are made dense.
SPARSE_THROUGH = frozenset({"Identity", "IdentityN", "Neg", "ReadVariable"})


def is_trainable(dtype: DType) -> bool:
    """Whether gradients flow through tensors of this dtype: floating and complex ones, handles of state, lists."""
    return dtype.is_floating or dtype.is_complex or dtype.is_handle


class OpRecord:
    """One call of an operator: flat inputs and outputs, and how gradients pass it."""

    __slots__ = ("bound", "inputs", "op", "outputs", "structure")

    def __init__(self, op: Any, bound: Call | None, structure: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.op, self.bound = op, bound
        self.structure = structure
        self.outputs = tuple(outputs)
        if op.simple:
            self.inputs = tuple(structure)
        else:
            flat: list[Any] = []
            for item in structure:
                if type(item) is tuple:
                    flat.extend(item)
                elif item is not None:
                    flat.append(item)
            self.inputs = tuple(flat)

    def backward(self, dys: Sequence[Any]) -> Sequence[Any]:
        """Gradients of the flat inputs, given those of the flat outputs (None where nothing flows)."""
        op = self.op
        rule = op.gradient_rule
        if rule is None:
            if op.has_gradient_rule:  # `gradient = None`: differentiation ends here, by declaration
                return (None,) * len(self.inputs)
            raise LookupError(
                f"{op.name}: the operator has no gradient, and one was asked for through it. "
                f"Define gradient(op, dy) in it, or put ow.stop_gradient around its result. (opwright explain OW501)"
            )
        from . import array

        dense = []
        for dy, out in zip(dys, self.outputs):
            if dy is None:
                flows = is_trainable(out.dtype) and out.dtype.name != "resource"  # of state there are no zeros
                dy = array.zeros_like(out) if flows else None
            elif type(dy) is IndexedSlices and op.name not in SPARSE_THROUGH:
                dy = dy.to_dense()
            dense.append(dy)
        assert self.bound is not None
        call = self.bound.with_inputs(self.structure, op.pack_all(self.outputs))
        grads = rule(call, *op.pack_all(dense))
        if not isinstance(grads, (tuple, list)) or (len(op.inputs) == 1 and op.inputs[0].repeated):
            grads = (grads,)
        if len(grads) != len(op.inputs):
            raise TypeError(
                f"{op.name}: gradient gave {len(grads)} results for {len(op.inputs)} inputs {op.input_names}"
            )
        if op.simple:
            if op.elementwise and len(op.inputs) > 1:
                return [None if g is None else array.sum_to_shape_of(g, x) for g, x in zip(grads, self.structure)]
            return grads
        flat: list[Any] = []
        for item, grad in zip(self.structure, grads):
            if type(item) is tuple:
                flat.extend((None,) * len(item) if grad is None else grad)
            elif item is not None:
                if grad is not None and op.elementwise:
                    grad = array.sum_to_shape_of(grad, item)
                flat.append(grad)
        return flat


class CustomRecord:
    """A stretch of computation with its own backward function: a traced function, `custom_gradient`."""

    __slots__ = ("_backward", "inputs", "outputs")

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any], backward: Callable[[Sequence[Any]], Sequence[Any]]
                 ) -> None:  # fmt: skip
        self.inputs, self.outputs, self._backward = tuple(inputs), tuple(outputs), backward

    def backward(self, dys: Sequence[Any]) -> Sequence[Any]:
        """Gradients of the inputs, given those of the outputs (None where nothing flows)."""
        return self._backward(dys)


def accumulate(a: Any, b: Any) -> Any:
    """Sum of two gradients; sparse ones stay sparse as long as both are, and lists are added by element."""
    if type(a) is IndexedSlices:
        return a + b
    if type(b) is IndexedSlices:
        return b.added_to(a)
    if a.dtype.name == "variant":
        from .lists import ListAdd

        return ListAdd(a, b)
    return a + b


def backpropagate(
    records: Sequence[Any],
    targets: Mapping[int, Any],
    wanted: set[int],
) -> dict[int, Any]:
    """Gradients by id of tensor, for the tensors in `wanted`.

    records: calls in the order they ran. targets: gradient of each target, by id. Tensors stay alive in the records,
    so ids are theirs alone. Only records between the wanted tensors and the targets are visited.
    """
    reaches: set[int] = set(wanted)  # ids that depend on a wanted tensor
    path = []
    for record in records:
        if any(id(x) in reaches for x in record.inputs):
            reaches.update(id(y) for y in record.outputs if is_trainable(y.dtype))
            path.append(record)
    grads = dict(targets)
    found: dict[int, Any] = {}
    for record in reversed(path):
        dys = []
        any_flow = False
        for y in record.outputs:
            key = id(y)
            dy = grads.get(key)
            if key in wanted and dy is not None:
                found[key] = dy
            elif dy is not None:
                del grads[key]
            any_flow |= dy is not None
            dys.append(dy)
        if not any_flow:
            continue
        for x, dx in zip(record.inputs, record.backward(dys)):
            if dx is None or id(x) not in reaches:
                continue
            key = id(x)
            before = grads.get(key)
            grads[key] = dx if before is None else accumulate(before, dx)
    for key in wanted:
        if key in grads:
            found[key] = grads[key]
    return found
