"""Decomposition of recurrent operators into loops, which files have.

Lives here: `lower_recurrences`; LSTMSequence, GRUSequence and their gradients as
functions that loop over time.
Not here: the operators (ops/nn/lstm.py, gru.py), the lists that such loops read and fill (lists/).

UNIDIRECTIONAL_SEQUENCE_LSTM is no target: its states persist from run to run, and those of an operator do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...graph import Graph, Node, Value
from ...graph.passes import PatternRewriter, RewriteRule, rewrite
from ...ops.array import concat, expand_dims, shape, split
from ...ops.linalg import matmul
from ...ops.math import sigmoid, tanh
from ...tracing.control.higher_order import loop_over
from ...tracing.function import function
from .passes import prepare


def lower_recurrences(graph: Graph) -> Graph:
    """Return a graph, and its subgraphs, with recurrent operators as loops over time."""
    lowered, changes = rewrite(graph, RULES)
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


RULES = (
    RewriteRule("lstm_loop", "LSTMSequence", _loop_of(_lstm), "the recurrence of the operator, step by step"),
    RewriteRule("lstm_grad_loop", "LSTMSequenceGrad", _loop_of(_lstm_grad), "the recurrence of the operator"),
    RewriteRule("gru_loop", "GRUSequence", _loop_of(_gru), "the recurrence of the operator"),
    RewriteRule("gru_grad_loop", "GRUSequenceGrad", _loop_of(_gru_grad), "the recurrence of the operator"),
)
