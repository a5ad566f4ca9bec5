"""Decomposition into other operators of the catalogue: updates of variables, and recurrent operators as loops.

Lives here: the table `WRITES`, updates as a read, operators on tensors, and an assignment; `CatalogueRewriter`, which
creates nodes of the catalogue; `lower_recurrences`: LSTMSequence, GRUSequence and their gradients as functions that
loop over time.
Not here: which variables stay (freeze.py), the lite operators that follow (rules/direct.py), the formulas of
optimizers (ops/optimizer_rules.py), which run here on tensors of the graph in place of arrays; the recurrent operators
(ops/nn/lstm.py, gru.py), the lists that such loops read and fill (lists/).

UNIDIRECTIONAL_SEQUENCE_LSTM is not a target: its states persist from run to run, and those of an operator do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, of_numpy
from ...core.errors import UnimplementedError
from ...core.specs import TensorSpec
from ...eager.variable import Variable
from ...graph import Graph, GraphRewriter, Node, Value
from ...graph.builder import constant_node
from ...graph.passes import PatternRewriter, RewriteRule, rewrite
from ...ops import registry
from ...ops.array import concat, expand_dims, shape, split
from ...ops.linalg import matmul
from ...ops.math import sigmoid, tanh
from ...ops.optimizer_rules import RULES
from ...tracing.control.higher_order import loop_over
from ...tracing.function import function
from .errors import ConverterError
from .passes import prepare


class CatalogueRewriter(GraphRewriter):
    """A rewriter that creates nodes of the catalogue."""

    def constant(self, array: Any, dtype: DType, name: str, at: str | None) -> Value:
        """Append a Const node under exactly this name."""
        array = np.asarray(array, dtype.np)
        array = array.copy() if array.flags.writeable else array  # the variable may change later
        return self.insert(
            constant_node(registry.get("Const"), array, TensorSpec(array.shape, dtype), name, at)
        ).outputs[0]

    def number(self, array: Any, dtype: Any) -> Value:
        """Append a constant for the current node."""
        return self.constant(array, of_numpy(np.dtype(dtype)), self.unique(f"{self.prefix}/const"), self.at)

    def emit(self, op_name: str, *inputs: Any, **attrs: Any) -> Value:
        """Append a node of the catalogue with one output."""
        return self.add(op_name, *inputs, **attrs).outputs[0]

    def add(self, op_name: str, *inputs: Any, **attrs: Any) -> Node:
        """Append a node of the catalogue."""
        return self.create(registry.get(op_name), inputs, attrs, name=op_name)

    def read(self, handle: Any, variable: Variable) -> Value:
        """Append a read of a variable; return its value at this point."""
        return self.emit("ReadVariable", handle, dtype=variable.dtype, shape=variable.shape)


Update = Callable[[CatalogueRewriter, Node, Sequence[Variable]], None]
"""A function that emits a read of the variables, operators on tensors, and an assignment."""


# ---- adding ----------------------------------------------------------------------------------------------------------


def _combined(op_name: str) -> Update:
    """Return an update that combines the value with another one by an operator on tensors."""

    def write(to: CatalogueRewriter, node: Node, variables: Sequence[Variable]) -> None:
        handle, value = node.inputs
        to.add("AssignVariable", handle, to.emit(op_name, to.read(handle, variables[0]), value))

    return write


# ---- rows ------------------------------------------------------------------------------------------------------------


def _rows(op_name: str) -> Update:
    """Return an update of rows by index, by an operator that scatters slices."""

    def write(to: CatalogueRewriter, node: Node, variables: Sequence[Variable]) -> None:
        handle, indices, updates = node.inputs
        value = to.read(handle, variables[0])
        assert isinstance(indices, Value)
        assert isinstance(updates, Value)
        if updates.spec.shape.rank == 0:
            row = variables[0].shape.as_list()[1:]
            shape = to.number(row, np.int32)
            if indices.spec.shape.rank != 0:
                shape = to.emit("Concat", (to.emit("Shape", indices), shape), axis=0)
            updates = to.emit("BroadcastTo", updates, shape)
        places = to.emit("ExpandDims", indices, axis=-1)
        to.add("AssignVariable", handle, to.emit(op_name, value, places, updates))

    return write


# ---- steps of optimizers ---------------------------------------------------------------------------------------------

_UFUNCS = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "RealDiv",
    "negative": "Neg",
    "absolute": "Abs",
    "sign": "Sign",
    "sqrt": "Sqrt",
    "square": "Square",
    "power": "Pow",
    "maximum": "Maximum",
    "minimum": "Minimum",
}


class _SymbolicArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A tensor of the graph as an array of an optimizer's formula.

    NumPy functions emit nodes; an assignment in place rebinds the object to another tensor."""

    __slots__ = ("to", "value")

    def __init__(self, to: CatalogueRewriter, value: Value) -> None:
        self.to, self.value = to, value

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None) -> _SymbolicArray:
        op_name = _UFUNCS.get(ufunc.__name__)
        if method != "__call__" or op_name is None:
            raise UnimplementedError(op=ufunc.__name__, what="no operator on tensors stands for it")
        dtype = self.value.dtype
        result = self.to.emit(
            op_name, *(x.value if isinstance(x, _SymbolicArray) else self.to.number(x, dtype.np) for x in inputs)
        )
        if out is None:
            return _SymbolicArray(self.to, result)
        out[0].value = result
        value: _SymbolicArray = out[0]
        return value


def _step(to: CatalogueRewriter, node: Node, variables: Sequence[Variable]) -> None:
    """Apply the optimizer's formula to the variable and its state, with a gradient of their shape."""
    handle, state, gradient, scalars = node.inputs
    _formula(to, node, variables, (handle, *state), gradient, scalars, None)  # type: ignore[misc]


def _step_by_rows(to: CatalogueRewriter, node: Node, variables: Sequence[Variable]) -> None:
    """Apply the formula to the dense gradient; rows that must not change are restored in the end."""
    handle, state, values, indices, scalars = node.inputs
    assert isinstance(values, Value)
    assert isinstance(indices, Value)
    merged = values.node
    if merged is not None and merged is indices.node and merged.op.name == "MergeRows":
        values, indices = merged.inputs[:2]  # equal rows are added up here, too
    shape = variables[0].shape
    if not shape.is_fully_defined():
        raise ConverterError(
            op=node.op.name,
            node=node.name,
            at=node.at,
            what=f"a step by rows changes {variables[0].name}, whose shape is not known",
            wanted="a variable of a fixed shape",
        )
    sizes = shape.as_list()
    places = to.emit("ExpandDims", indices, axis=-1)
    gradient = to.emit("ScatterNd", places, values, to.number(sizes, np.int32))
    mask = None
    if node.attrs["lazy"] and not RULES[node.attrs["rule"]].still:
        ones = to.emit("BroadcastTo", to.number(1, np.int32), to.emit("Shape", indices))
        counts = to.emit("ScatterNd", places, ones, to.number(sizes[:1], np.int32))
        mask = to.emit("Greater", counts, to.number(0, np.int32))
        mask = to.emit("Reshape", mask, to.number([sizes[0], *[1] * (len(sizes) - 1)], np.int32))
    _formula(to, node, variables, (handle, *state), gradient, scalars, mask)  # type: ignore[misc]


def _formula(
    to: CatalogueRewriter,
    node: Node,
    variables: Sequence[Variable],
    handles: Sequence[Any],
    gradient: Any,
    scalars: Any,
    mask: Value | None,
) -> None:
    before = [to.read(handle, variable) for handle, variable in zip(handles, variables)]
    w, *state = [_SymbolicArray(to, value) for value in before]
    RULES[node.attrs["rule"]].update(_SymbolicArray(to, gradient), w, state, [_SymbolicArray(to, s) for s in scalars])
    for handle, old, new in zip(handles, before, (w, *state)):
        if new.value is not old:
            value = new.value if mask is None else to.emit("Select", mask, new.value, old)
            to.add("AssignVariable", handle, value)


Write = Callable[[CatalogueRewriter, Node, Sequence[Variable]], None]
"""(to, node, variables): a node whose operands are new; the variables behind its handles, in order."""

WRITES: dict[str, Write] = {
    "AssignAddVariable": _combined("Add"),
    "AssignSubVariable": _combined("Sub"),
    "ScatterUpdateVariable": _rows("TensorScatterUpdate"),
    "ScatterAddVariable": _rows("TensorScatterAdd"),
    "ScatterSubVariable": _rows("TensorScatterSub"),
    "ScatterMaxVariable": _rows("TensorScatterMax"),
    "ScatterMinVariable": _rows("TensorScatterMin"),
    "UpdateVariable": _step,
    "UpdateRows": _step_by_rows,
}


def lower_recurrences(graph: Graph) -> Graph:
    """Return a graph, and its subgraphs, with recurrent operators as loops over time."""
    lowered, changes = rewrite(graph, RECURRENCES)
    return prepare(lowered) if changes else graph


def _lstm(x: Any, recurrent_kernel: Any, h0: Any, c0: Any) -> tuple[Any, ...]:
    """Compute LSTMSequence."""

    def step(element: Any, states: Sequence[Any]) -> tuple[list[Any], Any]:
        h, c = states
        i, f, g, o = split(element + matmul(h, recurrent_kernel), 4, -1)
        i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
        c = f * c + i * g
        h = o * tanh(c)
        return [h, c], (h, c, concat([i, f, g, o], -1))

    (last_h, last_c), (h, c, gates) = loop_over(step, x, [x], _steps(x), [h0, c0], False)
    return h, last_h, last_c, c, gates


def _lstm_grad(
    dh: Any, dlast_h: Any, dlast_c: Any, x: Any, recurrent_kernel: Any, h0: Any, c0: Any, h: Any, c: Any, gates: Any
) -> tuple[Any, ...]:
    """Compute LSTMSequenceGrad without dc."""

    def step(element: Any, states: Sequence[Any]) -> tuple[list[Any], Any]:
        (p, q), (dh_now, before, c_now, activated) = states, element
        i, f, g, o = split(activated, 4, -1)
        squashed = tanh(c_now)
        p = p + dh_now
        q = q + p * o * (1.0 - squashed * squashed)
        parts = [q * g * i * (1.0 - i), q * before * f * (1.0 - f), q * i * (1.0 - g * g), p * squashed * o * (1.0 - o)]
        dz = concat(parts, -1)
        return [matmul(dz, recurrent_kernel, transpose_b=True), q * f], dz

    elements = (dh, concat([expand_dims(c0, 0), c], 0)[:-1], c, gates)
    (dh0, dc0), dx = loop_over(step, elements, list(elements), _steps(c), [dlast_h, dlast_c], True)
    return dx, dh0, dc0


def _gru(x: Any, recurrent_kernel: Any, bias: Any, h0: Any) -> tuple[Any, ...]:
    """Compute GRUSequence."""

    def step(element: Any, states: Sequence[Any]) -> tuple[list[Any], Any]:
        (h,) = states
        x_z, x_r, x_g = split(element, 3, -1)
        n_z, n_r, n_g = split(matmul(h, recurrent_kernel) + bias, 3, -1)
        z, r = sigmoid(x_z + n_z), sigmoid(x_r + n_r)
        g = tanh(x_g + r * n_g)
        h = z * h + (1.0 - z) * g
        return [h], (h, concat([z, r, g], -1), n_g)

    (last_h,), (h, gates, inner) = loop_over(step, x, [x], _steps(x), [h0], False)
    return h, last_h, gates, inner


def _gru_grad(
    dh: Any, dlast_h: Any, x: Any, recurrent_kernel: Any, bias: Any, h0: Any, h: Any, gates: Any, inner: Any
) -> tuple[Any, ...]:
    """Compute GRUSequenceGrad."""

    def step(element: Any, states: Sequence[Any]) -> tuple[list[Any], Any]:
        (p,), (dh_now, before, activated, n_g) = states, element
        z, r, g = split(activated, 3, -1)
        p = p + dh_now
        of_candidate = p * (1.0 - z) * (1.0 - g * g)
        of_gates = [p * (before - g) * z * (1.0 - z), of_candidate * n_g * r * (1.0 - r)]
        dn = concat([*of_gates, of_candidate * r], -1)
        return [p * z + matmul(dn, recurrent_kernel, transpose_b=True)], (concat([*of_gates, of_candidate], -1), dn)

    elements = (dh, concat([expand_dims(h0, 0), h], 0)[:-1], gates, inner)
    (dh0,), (dx, dn) = loop_over(step, elements, list(elements), _steps(h), [dlast_h], True)
    return dx, dn, dh0


def _steps(x: Any) -> Any:
    return shape(x)[0] if x.shape[0] is None else x.shape[0]


def _loop_of(loop: Callable[..., Any]) -> Callable[[Node, PatternRewriter], Sequence[Value] | None]:
    """Return a rule that replaces a node by the trace of a function."""

    def rule(node: Node, rewriter: PatternRewriter) -> Sequence[Value] | None:
        operands = [v for v in node.inputs if isinstance(v, Value)]
        specs = [v.spec for v in operands]
        traced = function(loop, jit_compile=False).get_concrete_function(*specs)
        return rewriter.inline(traced.graph, operands, node.name)

    return rule


RECURRENCES = (
    RewriteRule("lstm_loop", "LSTMSequence", _loop_of(_lstm), "the recurrence of the operator, step by step"),
    RewriteRule("lstm_grad_loop", "LSTMSequenceGrad", _loop_of(_lstm_grad), "the recurrence of the operator"),
    RewriteRule("gru_loop", "GRUSequence", _loop_of(_gru), "the recurrence of the operator"),
    RewriteRule("gru_grad_loop", "GRUSequenceGrad", _loop_of(_gru_grad), "the recurrence of the operator"),
)
