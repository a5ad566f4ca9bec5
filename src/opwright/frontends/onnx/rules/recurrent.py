"""RNN, GRU and LSTM of ONNX: sequences in both directions, of individual lengths.

Lives here: the steps and the loop over them. Weights of several gates are one matrix, as in the file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.dtypes import int64
from ....core.errors import InvalidArgumentError, UnimplementedError
from ....ops import array, linalg, math
from ....ops.array import cast
from ...recurrence import gru_sequence, lstm_sequence, projected, run_steps, with_gates
from ..execution import RULES
from ..operands import at, dims, dtype_of
from .arithmetic import number

rule = RULES.rule
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_FORGET_SECOND = (0, 2, 3, 1)
"""Input, forget, candidate, output: the order of gates of LSTMSequence among those of ONNX."""


_OPERATORS = ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu")
"""Activations that are operators, too, with the same parameters and defaults."""


def _activation(context: Any, name: str, alpha: float | None, beta: float | None) -> Callable[[Any], Any]:
    """Return an activation of a recurrent operator by its name, in any case."""
    operator = next((n for n in _OPERATORS if n.lower() == name.lower()), None)
    function = RULES.find(operator) if operator else None
    if function is not None:
        numbers = {k: v for k, v in (("alpha", alpha), ("beta", beta)) if v is not None}
        return lambda x: function(context, [x], numbers)

    def line(x: Any, a: float | None, b: float | None) -> Any:
        scaled = math.multiply(x, number(1.0 if a is None else a, x))
        return math.add(scaled, number(b, x)) if b else scaled

    if name.lower() == "affine":
        return lambda x: line(x, alpha, beta)
    if name.lower() == "scaledtanh":
        return lambda x: line(math.tanh(line(x, beta, None)), alpha, None)
    raise UnimplementedError(what="an activation of a recurrent operator", found=name)


def _recurrent(kind: str) -> Any:
    def recurrent(context: Any, inputs: Any, attributes: Any) -> Any:
        x, w, r = inputs[:3]
        bias, lengths, start, memory, peepholes = (at(inputs, i) for i in range(3, 8))
        layout, hidden = attributes.get("layout", 0), dims(r)[-1]
        x = array.transpose(x, [1, 0, 2]) if layout else x
        batch = dims(x)[1]
        if hidden is None:
            raise InvalidArgumentError(what=f"{kind} needs the size of its state at import", found=dims(r))
        ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[
            attributes.get("direction", "forward")
        ]
        names = list(attributes.get("activations") or _ACTIVATIONS[kind] * len(ways))
        alphas, betas = (list(attributes.get(f"activation_{k}") or []) for k in ("alpha", "beta"))
        functions = [_activation(context, n, at(alphas, i), at(betas, i)) for i, n in enumerate(names)]
        per = len(functions) // len(ways)
        usual = [n.lower() for n in names] == [n.lower() for n in _ACTIVATIONS[kind]] * len(ways)
        clip = attributes.get("clip")
        results = []
        for i, back in enumerate(ways):
            state: list[Any] = []
            for value in (start, memory)[: 2 if kind == "LSTM" else 1]:
                if value is None and batch is None:
                    shape = array.stack([array.shape(x)[1], np.int32(hidden)])
                    state.append(array.zeros(shape, dtype_of(x)))
                elif value is None:
                    state.append(np.zeros((batch, hidden), dtype_of(x).np))
                else:
                    state.append(value[:, i] if layout else value[i])
            cell = _Cell(
                kind,
                w[i],
                r[i],
                None if bias is None else bias[i],
                None if peepholes is None else peepholes[i],
                functions[i * per : (i + 1) * per],
                usual,
                clip,
                attributes,
                hidden,
            )
            results.append(_over_time(cell, x, state, lengths, back))
        y = array.stack([ys for ys, _ in results], 1)  # [steps, ways, batch, hidden]
        last = [array.stack([final[j] for _, final in results], 0) for j in range(len(results[0][1]))]
        if layout:
            y = array.transpose(y, [2, 0, 1, 3])
            last = [array.transpose(v, [1, 0, 2]) for v in last]
        return [y, *last]

    return recurrent


for _kind in _GATES:
    rule(_kind)(_recurrent(_kind))


class _Cell:
    """One direction: weights [gates * hidden, ...] and the step."""

    def __init__(
        self,
        kind: str,
        w: Any,
        r: Any,
        bias: Any,
        peepholes: Any,
        functions: Any,
        usual: bool,
        clip: Any,
        attributes: Any,
        hidden: int,
    ) -> None:
        self.kind, self.w, self.r, self.peepholes, self.functions = kind, w, r, peepholes, functions
        self.usual, self.clip, self.hidden = usual, clip, hidden
        self.linear_before_reset = bool(attributes.get("linear_before_reset"))
        self.input_forget = bool(attributes.get("input_forget"))
        half = _GATES[kind] * hidden
        self.wb = None if bias is None else bias[:half]
        self.rb = None if bias is None else bias[half:]

    def inputs(self, x: Any) -> Any:
        """Return the part of all gates that does not depend on the state: [steps, batch, gates * hidden]."""
        return projected(x, self.w, self.wb)

    def sequence(self, x: Any, state: list[Any]) -> tuple[Any, list[Any]] | None:
        """Return the outputs of all steps and the last state by one operator; None for a form that none computes."""
        if not self.usual or self.clip is not None or self.peepholes is not None or self.input_forget:
            return None
        if self.kind == "LSTM":
            w, r = (with_gates(v, _FORGET_SECOND) for v in (self.w, self.r))
            biases = [with_gates(b, _FORGET_SECOND) for b in (self.wb, self.rb) if b is not None]
            return lstm_sequence(projected(x, w, math.add(*biases) if biases else None), r, *state)
        if self.kind == "GRU" and self.linear_before_reset:
            return gru_sequence(self.inputs(x), self.r, self.rb, *state)
        return None

    def _clipped(self, v: Any) -> Any:
        if self.clip is None:
            return v
        return math.minimum(math.maximum(v, number(-self.clip, v)), number(self.clip, v))

    def _recurrent(self, h: Any, first: int, last: int) -> Any:
        n = self.hidden
        product = linalg.matmul(h, self.r[first * n : last * n], transpose_b=True)
        return product if self.rb is None else math.add(product, self.rb[first * n : last * n])

    def step(self, gates: Any, state: list[Any]) -> list[Any]:
        """Return the next state; the first is the output."""
        n, h = self.hidden, state[0]

        def part(v: Any, i: int) -> Any:
            return v[:, i * n : (i + 1) * n]

        def active(i: int, v: Any) -> Any:
            return self.functions[i](self._clipped(v))

        if self.kind == "RNN":
            return [active(0, math.add(gates, self._recurrent(h, 0, 1)))]
        if self.kind == "GRU":
            both = math.add(gates[:, : 2 * n], self._recurrent(h, 0, 2))
            z, reset = active(0, part(both, 0)), active(0, part(both, 1))
            if self.linear_before_reset:
                inner = math.multiply(reset, self._recurrent(h, 2, 3))
            else:
                inner = self._recurrent(math.multiply(reset, h), 2, 3)
            candidate = active(1, math.add(part(gates, 2), inner))
            return [math.add(math.multiply(math.subtract(number(1, z), z), candidate), math.multiply(z, h))]
        c = state[1]
        total = math.add(gates, self._recurrent(h, 0, 4))
        i, o, f, g = (part(total, k) for k in range(4))
        if self.peepholes is not None:
            p = self.peepholes
            i, f = math.add(i, math.multiply(p[:n], c)), math.add(f, math.multiply(p[2 * n :], c))
        i = active(0, i)
        f = math.subtract(number(1, i), i) if self.input_forget else active(0, f)
        c = math.add(math.multiply(f, c), math.multiply(i, active(1, g)))
        if self.peepholes is not None:
            o = math.add(o, math.multiply(self.peepholes[n : 2 * n], c))
        return [math.multiply(active(0, o), self.functions[2](c)), c]


def _over_time(cell: _Cell, x: Any, state: list[Any], lengths: Any, back: bool) -> tuple[Any, list[Any]]:
    """Return the outputs of all steps and the last state. Sequences are reversed each within its own length."""
    if back:
        if lengths is None:
            x = array.reverse(x, [0])
        else:
            x = array.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)

    def step(state: list[Any], gate: Any, index: Any) -> tuple[list[Any], Any]:
        following = cell.step(gate, state)
        if lengths is None:
            return following, following[0]
        live = array.expand_dims(math.less(index, cast(lengths, int64)), 1)
        kept = [array.where(live, new, old) for new, old in zip(following, state)]
        return kept, array.where(live, following[0], number(0, following[0]))

    whole = cell.sequence(x, state) if lengths is None else None
    ys, state = whole or run_steps(step, cell.inputs(x), state)
    if back:
        if lengths is None:
            ys = array.reverse(ys, [0])
        else:
            ys = array.reverse_sequence(ys, lengths, seq_axis=0, batch_axis=1)
    return ys, state
