"""Common parts of recurrent operators: their registration, products of float or quantized rows, activations, time.

Lives here: `RecurrentRegistration`, `Products` and its hybrid twin, `ACTIVATIONS`, `sequence` and its inverse.
Not here: the operators (lstm.py, rnn.py), those on integers alone (quantized/recurrent.py).

State stays in variable tensors, which are inputs of the node and are written by it. A node's shapes never change once
it is prepared, so everything that depends only on constants is computed once, by the operator's rule, which returns a
function of the node's arrays. Arrays of state are the tensors themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ...core.errors import UnimplementedError
from ...core.specs import TensorSpec
from ...ops.attributes import one_of
from ..registration import OperatorRegistration, store_results
from ..runtime.node import Context, Node
from ..runtime.tensor import DYNAMIC
from .definition import EnumAttr
from .elementwise import clamp, logistic
from .quantized.fixed_point import exact_float
from .quantized.operand import Operand, check_symmetric
from .shapes import refuse, same, text

_f = np.float32
Arrays = Mapping[str, Any]
"""The arrays of a node by the name of the input; None for an omitted one. States are written."""
Operands = Mapping[str, Operand | None]
Kernel = Callable[[Arrays], Sequence[np.ndarray]]
Rule = Callable[[Any, Operands, Sequence[Operand], Any], Kernel]
"""rule(call, operands, outputs, node): the kernel of a node, by the types of its operands."""

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "NONE": lambda x: x,
    "RELU": lambda x: np.maximum(x, _f(0)),
    "RELU_N1_TO_1": clamp("RELU_N1_TO_1"),
    "RELU6": clamp("RELU6"),
    "TANH": np.tanh,
}
sigmoid = logistic


def activation_attr() -> EnumAttr:
    """Return the attribute `fused_activation_function` of a recurrent operator, which may be TANH."""
    return EnumAttr("ActivationFunctionType", 0, one_of(*ACTIVATIONS))


class RecurrentRegistration(OperatorRegistration):
    """The kernel of an operator with state. states: the inputs that are variables, or a function that returns them."""

    __slots__ = ("rule", "states")

    def __init__(self, operator: Any, rule: Rule, states: Sequence[str] | Callable[[Any], Sequence[str]]) -> None:
        super().__init__(operator)
        self.rule, self.states = rule, states

    def _states(self, node: Node) -> Sequence[str]:
        return self.states(self._call(node)) if callable(self.states) else self.states

    def _named(self, node: Node, items: Sequence[Any]) -> dict[str, Any]:
        return {i.name: value for i, value in zip(self.operator.inputs, self.group(node, items), strict=True)}

    def _prepare(self, context: Context, node: Node) -> None:
        tensors = self._named(node, node.tensors_in)
        for name in self._states(node):
            t = tensors[name]
            if t is not None and not t.is_variable:
                raise refuse(
                    f"input {name} ({t.name!r}) keeps the state and is not a variable tensor",
                    found=repr(t),
                    wanted="a tensor with is_variable set",
                )
        super()._prepare(context, node)
        if any(t.kind == DYNAMIC for t in node.tensors_out):
            raise UnimplementedError(
                what="recurrent operators need inputs of known shape",
                found=[repr(t) for t in node.tensors_in if t is not None][:1],
                wanted="shapes that are known before the model runs",
            )

    def kernel(self, context: Context, node: Node, call: Any) -> Kernel:
        operands = {n: None if t is None else Operand(t) for n, t in self._named(node, node.tensors_in).items()}
        outs = [Operand(t) for t in node.tensors_out]
        x = operands["input"]
        for out in outs if x is not None and x.type == "FLOAT32" else ():
            if out.type != "FLOAT32":
                raise out.wrong("is the output of floats", out.type, "FLOAT32")
        with np.errstate(all="ignore"):  # for any scales
            return self.rule(call, operands, outs, node)

    def quantized_rule(self, node: Node) -> Rule:
        """Return a non-None value: `infer` sees real numbers in place of quantized integers."""
        return self.rule

    def quantized_kernel(self, call: Any, node: Node) -> Rule:
        """Return the rule: `bind` builds the kernel."""
        return self.rule

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        call = self._call(node)
        kernel = self.kernel(context, node, call)
        outs: list[Any] = [t.array for t in node.tensors_out]
        variables = set(self._states(node))
        arrays = {
            name: None if t is None else t.array if name in variables else t.readonly
            for name, t in self._named(node, node.tensors_in).items()
        }
        operator = self.operator
        if not any(out.size for out in outs):  # a batch of nothing, or no step of time: states stay
            return lambda: None

        def step() -> None:
            store_results(kernel(arrays), outs, operator)

        return step


# ---- rows of activations times matrices of weights -------------------------------------------------------------------


class Products:
    """Products of float rows [rows, k] and weights [n, k]."""

    def rows(self, x: np.ndarray) -> np.ndarray:
        """Convert rows for `times`."""
        return x

    def matrix(self, weights: Operand | None) -> Callable[[Any], Any]:
        """Return the function that converts a matrix of weights for `times`."""
        return lambda w: w.T

    def vector(self, weights: Operand | None) -> Callable[[Any], Any]:
        """Return the function that dequantizes a vector of weights."""
        return lambda w: w

    def times(self, rows: Any, matrix: Any) -> np.ndarray:
        """Multiply rows by a matrix: [rows, n]."""
        result: np.ndarray = np.matmul(rows, matrix)
        return result

    def part(self, rows: np.ndarray, first: int, last: int) -> np.ndarray:
        """Return a slice of the rows."""
        return rows[first:last]


class HybridProducts(Products):
    """Products of float rows, quantized to int8 while the model runs, and int8 weights with one scale each."""

    def __init__(self, asymmetric: bool) -> None:
        from .quantized import hybrid

        self.quantize = hybrid.asymmetric if asymmetric else hybrid.symmetric
        self.Rows = hybrid.ScaledRows

    def rows(self, x: Any) -> Any:
        return self.quantize(x, (1,)).rows(x)

    def matrix(self, weights: Operand | None) -> Callable[[Any], Any]:
        assert weights is not None
        scale = _scale(weights)
        exact = exact_float(weights.shape[-1] * 255 * 128)
        return lambda w: (w.view(np.int8).T.astype(exact), scale)

    def vector(self, weights: Operand | None) -> Callable[[Any], Any]:
        assert weights is not None
        if not weights.scales.size:
            return lambda w: w
        scale = _scale(weights)
        return lambda w: w.view(np.int8).astype(_f) * scale

    def times(self, rows: Any, matrix: Any) -> np.ndarray:
        w, scale = matrix
        result: np.ndarray = np.matmul(rows.values.astype(w.dtype, copy=False), w).astype(_f) * (rows.scale * scale)
        return result

    def part(self, rows: Any, first: int, last: int) -> Any:
        return self.Rows(rows.values[first:last], rows.scale[first:last])


def _scale(weights: Operand) -> np.float32:
    if weights.type not in ("INT8", "UINT8") or len(weights.scales) != 1:
        raise weights.wrong(
            "has no single scale, or is not of 8 bits", f"{len(weights.scales)} scales", "INT8 with one scale"
        )
    if weights.type == "INT8":
        check_symmetric(weights)
    return weights.scale


def products_for(op: Any, x: Operand, weights: Operand) -> Products:
    """Select products by the types of activations and weights. Raises UnimplementedError for unsupported types."""
    if x.type == "FLOAT32" and weights.type == "FLOAT32":
        return Products()
    if x.type == "FLOAT32" and weights.type in ("INT8", "UINT8"):
        return HybridProducts(op.asymmetric_quantize_inputs)
    raise no_kernel(op, x, weights)


def no_kernel(op: Any, *operands: Operand) -> UnimplementedError:
    """Return the error for an unsupported combination of types."""
    named = ", ".join(f"{o.name!r} {o.type}" for o in operands)
    return UnimplementedError(
        op=op.operator.name,
        what="no kernel for these types",
        found=named,
        wanted="FLOAT32 activations with FLOAT32 or INT8 weights",
        explain="OW103",
    )


# ---- time ------------------------------------------------------------------------------------------------------------


def sequence(x: np.ndarray, time_major: bool) -> np.ndarray:
    """Transpose a node's input to [time, batch, n], or back."""
    return x if time_major else x.swapaxes(0, 1)


def linked(x: Any, aux: Any, has_weights: bool) -> tuple[Any, Any]:
    """Return the input of the second direction and the auxiliary input of both: aux without weights is the former."""
    return (x, aux) if aux is None or has_weights else (aux, None)


def check_aux(x: Any, aux: Any) -> None:
    """Raise InvalidArgumentError if steps or batch of an auxiliary input differ from those of the input."""
    if (
        aux is not None
        and None not in (x.spec.shape.dims, aux.spec.shape.dims)
        and not (
            len(x.spec.shape) == len(aux.spec.shape) and all(map(same, x.spec.shape.dims[:-1], aux.spec.shape.dims))
        )
    ):
        raise refuse(
            "aux_input has other steps or another batch than the input",
            found={"input": text(x.spec.shape), "aux_input": text(aux.spec.shape)},
            wanted="equal sizes but for the last",
        )


class Cell(Protocol):
    """One direction of a recurrent layer."""

    def run(
        self, arrays: Arrays, x: np.ndarray, out: np.ndarray, aux: np.ndarray | None = None, backward: bool = False
    ) -> None:
        """Step through x [time, batch, n] and write [time, batch, units]; states are read and written."""
        ...


def one_direction(op: Any, cell: Cell, y: Operand) -> Kernel:
    """Return the kernel that runs a cell over a sequence, or over one step."""
    time_major = getattr(op, "time_major", True)

    def run(arrays: Arrays) -> tuple[np.ndarray]:
        x = arrays["input"]
        rows = sequence(x if x.ndim == 3 else x[None], time_major)
        out = np.empty((*rows.shape[:2], y.shape[-1]), _f)
        cell.run(arrays, rows, out)
        return (sequence(out, time_major).reshape(y.shape),)

    return run


def both_directions(
    op: Any, cells: Sequence[Cell], sizes: Sequence[int], link: Callable[[Arrays], tuple[Any, Any]]
) -> Kernel:
    """Return the kernel that runs one cell from the start of a sequence and one from its end.

    sizes: units of each. link: returns the input of the second direction and the auxiliary input of both.
    """

    def run(arrays: Arrays) -> list[np.ndarray]:
        second, aux = link(arrays)
        x, backward_rows = sequence(arrays["input"], op.time_major), sequence(second, op.time_major)
        aux = None if aux is None else sequence(aux, op.time_major)
        outputs = [np.empty((*x.shape[:2], n), _f) for n in sizes]
        cells[0].run(arrays, x, outputs[0], aux)
        cells[1].run(arrays, backward_rows, outputs[1], aux, backward=True)
        if op.merge_outputs:
            outputs = [np.concatenate(outputs, 2)]
        return [sequence(y, op.time_major) for y in outputs]

    return run


def both_specs(op: Any, x: TensorSpec, sizes: Sequence[Any]) -> list[TensorSpec]:
    """Infer the outputs of a bidirectional operator with these numbers of units."""
    if op.merge_outputs:
        sizes = [None if None in sizes else sum(sizes)]
    if x.shape.dims is None:
        return [TensorSpec(None, x.dtype)] * len(sizes)
    return [TensorSpec((*x.shape.dims[:-1], n), x.dtype) for n in sizes]


def check_weights(name: str, weights: Any, rows: Any, columns: Any = ()) -> None:
    """Raise InvalidArgumentError unless weights, if present, have shape [rows, columns] or [rows].

    None: a size that is not known.
    """
    if weights is None:
        return
    shape, expected = weights.spec.shape, (rows,) if columns == () else (rows, columns)
    if shape.dims is None:
        return
    if len(shape) != len(expected) or any(
        a is not None and b is not None and a != b for a, b in zip(shape.dims, expected)
    ):
        raise refuse(f"{name} has the wrong shape", found=text(shape), wanted=text(expected))


def check_state(name: str, state: Any, batch: Any, n: Any) -> None:
    """Raise InvalidArgumentError unless a state has batch * n elements."""
    if state is None or batch is None or n is None or not state.spec.shape.is_fully_defined():
        return
    count = 1
    for size in state.spec.shape.as_list():
        count *= size
    if count != batch * n:
        raise refuse(
            f"{name} does not fit input and weights",
            found=text(state.spec.shape),
            wanted=text((batch, n)),
            do="a model with state has the batch it was converted with",
        )
