"""Long short-term memory: LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM.

Lives here: the two operators, with float activations (weights float or int8).
Not here: both directions (lstm_both.py), products and time (recurrent.py), LSTMs on integers alone (quantized/lstm.py),
simple recurrence (rnn.py).

    i, f, o = sigmoid(W x + A a + R h + p c + b)    g = act(W x + A a + R h + b)    each with its own W, A, R, p and b
    c' = f c + i g                                   h' = P (o act(c')) + p_b

p c is there with peepholes (o looks at c'), A a with an auxiliary input, P with a projection; without weights of the
input gate i is 1 - f. With layer normalisation the sum, without b, is brought to mean 0 and variance 1, and multiplied
by coefficients, before b is added.

intermediates: of LSTMs on integers, the types of what lies between their steps, by which their scales are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from .definition import lite_operator
from .quantized.operand import Operand, present
from .recurrent import (
    ACTIVATIONS,
    Products,
    RecurrentRegistration,
    activation_attr,
    check_state,
    check_weights,
    no_kernel,
    products_for,
    sequence,
    sigmoid,
)
from .shapes import refuse, spec, text

_f = np.float32
GATES = ("input", "forget", "cell", "output")
PEEPHOLES = ("input", "forget", "output")


def needed(n: int) -> list[Input]:
    return [Input((float32,)) for _ in range(n)]


def optional(n: int) -> list[Input]:
    return [Input((float32,), optional=True) for _ in range(n)]


class Names:
    """What the inputs of one direction are called: "fw_input_to_cell_weights" and its like."""

    def __init__(self, prefix: str = "") -> None:
        self.input_weights = {g: f"{prefix}input_to_{g}_weights" for g in GATES}
        self.recurrent_weights = {g: f"{prefix}recurrent_to_{g}_weights" for g in GATES}
        self.peepholes = {g: f"{prefix}cell_to_{g}_weights" for g in PEEPHOLES}
        self.biases = {g: f"{prefix}{g}_gate_bias" for g in GATES}
        self.aux_weights = {g: f"{prefix}aux_input_to_{g}_weights" for g in GATES}
        self.norms = {g: f"{prefix}{g}_layer_norm_coefficients" for g in GATES}
        self.projection_weights, self.projection_bias = f"{prefix}projection_weights", f"{prefix}projection_bias"
        self.h, self.c = f"{prefix}output_state", f"{prefix}cell_state"


def check_direction(op: Any, names: Names, x: TensorSpec, aux: TensorSpec | None = None) -> tuple[Any, Any]:
    """Check one direction's inputs against each other. -> its number of outputs, whether it is known"""

    def get(name: str) -> Any:
        return getattr(op, name, None)

    for clip in ("cell_clip", "proj_clip"):
        if not getattr(op, clip) >= 0:
            raise refuse(f"{clip} is negative or no number", found=getattr(op, clip), wanted="at least 0")
    given = get(names.input_weights["output"])
    n_cell = given.spec.shape[0] if given.spec.shape.rank == 2 else None
    recurrent = get(names.recurrent_weights["output"])
    diagonal = getattr(op, "diagonal_recurrent_tensors", False)
    n_out = recurrent.spec.shape[-1] if recurrent.spec.shape.rank else None
    n_in = x.shape[-1] if x.shape.rank else None
    for gate in GATES:
        check_weights(names.input_weights[gate], get(names.input_weights[gate]), n_cell, n_in)
        check_weights(
            names.recurrent_weights[gate], get(names.recurrent_weights[gate]), n_cell, () if diagonal else n_out
        )
        check_weights(names.biases[gate], get(names.biases[gate]), n_cell)
        check_weights(names.norms[gate], get(names.norms[gate]), n_cell)
        if aux is not None:
            check_weights(
                names.aux_weights[gate], get(names.aux_weights[gate]), n_cell, aux.shape[-1] if aux.shape.rank else None
            )
    for gate in PEEPHOLES:
        check_weights(names.peepholes[gate], get(names.peepholes[gate]), n_cell)
    check_weights(names.projection_weights, get(names.projection_weights), n_out, n_cell)
    check_weights(names.projection_bias, get(names.projection_bias), n_out)
    cifg = get(names.input_weights["input"]) is None
    for name in (names.recurrent_weights["input"], names.biases["input"]):
        if (get(name) is None) != cifg:
            raise refuse(
                f"{name} and {names.input_weights['input']} are both there or neither is", wanted="both, or neither"
            )
    peepholes = [g for g in (PEEPHOLES[1:] if cifg else PEEPHOLES) if get(names.peepholes[g]) is not None]
    if peepholes and len(peepholes) != len(PEEPHOLES) - cifg:
        raise refuse(
            "some gates have a peephole and others have none",
            found=peepholes,
            wanted="peepholes of all gates, or of none",
        )
    norms = [g for g in (GATES[1:] if cifg else GATES) if get(names.norms[g]) is not None]
    if norms and len(norms) != len(GATES) - cifg:
        raise refuse(
            "some gates have layer normalisation and others have none",
            found=norms,
            wanted="coefficients of all gates, or of none",
        )
    if get(names.projection_weights) is None and (
        get(names.projection_bias) is not None or (None not in (n_cell, n_out) and n_cell != n_out)
    ):
        raise refuse(
            "an LSTM without projection has as many outputs as cells",
            found={"cells": n_cell, "out": n_out},
            wanted="out == cells, or projection weights",
        )
    return n_cell, n_out


def steps_and_batch(op: Any, x: TensorSpec) -> tuple[Any, Any]:
    if x.shape.dims is None:
        return None, None
    if len(x.shape) != 3:
        raise refuse(
            "the input of a sequence has 3 dimensions",
            found=text(x.shape),
            wanted="[time, batch, n], or [batch, time, n]",
        )
    steps, batch = x.shape.dims[:2]
    return (steps, batch) if op.time_major else (batch, steps)


# ---- the arithmetic --------------------------------------------------------------------------------------------------


def normalized(x: Any) -> Any:
    """Rows brought to mean 0 and variance 1."""
    centred = x - x.mean(1, keepdims=True, dtype=_f)
    return centred / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True, dtype=_f) + _f(1e-8))


class Cell:
    """One direction: `run` steps through a sequence, reading and writing its state."""

    def __init__(self, op: Any, operands: Mapping[str, Operand | None], names: Names, by: Products) -> None:
        self.op, self.names, self.by = op, names, by
        self.cifg = operands[names.input_weights["input"]] is None
        self.gates = GATES[1:] if self.cifg else GATES
        self.norm = operands.get(names.norms["forget"]) is not None
        self.diagonal = getattr(op, "diagonal_recurrent_tensors", False)
        self.act = ACTIVATIONS[op.fused_activation_function]
        self.matrices: dict[str, Callable[[Any], Any]] = {}
        vectors = set(names.peepholes.values()) | (set(names.recurrent_weights.values()) if self.diagonal else set())
        for table in (
            names.input_weights,
            names.recurrent_weights,
            names.aux_weights,
            names.peepholes,
            {"": names.projection_weights},
        ):
            for name in table.values():
                if operands.get(name) is not None:
                    self.matrices[name] = (by.vector if name in vectors else by.matrix)(operands[name])

    def _ready(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """The weights, as `times` takes them. (They may be computed by other nodes.)"""
        return {name: make(arrays[name]) for name, make in self.matrices.items()}

    def _outside(self, x: Any, aux: Any, arrays: Mapping[str, Any], ready: Mapping[str, Any]) -> dict[str, Any]:
        """For each gate what does not depend on the state: of all steps at once, [time, batch, cells]."""
        steps, batch, _ = x.shape
        rows = self.by.rows(x.reshape(steps * batch, -1))
        others = None if aux is None else self.by.rows(aux.reshape(steps * batch, -1))
        sums = {}
        for gate in self.gates:
            y = self.by.times(rows, ready[self.names.input_weights[gate]])
            if others is not None and self.names.aux_weights[gate] in ready:
                y += self.by.times(others, ready[self.names.aux_weights[gate]])
            if not self.norm:
                y += arrays[self.names.biases[gate]]
            sums[gate] = y.reshape(steps, batch, -1)
        return sums

    def run(self, arrays: Mapping[str, Any], x: Any, out: Any, aux: Any = None, backward: bool = False) -> None:
        """Step through x [time, batch, n] and write [time, batch, n_out]; the state is read and written."""
        ready = self._ready(arrays)
        outside = self._outside(x, aux, arrays, ready)
        steps, batch = x.shape[:2]
        h, c = (arrays[name].reshape(batch, -1) for name in (self.names.h, self.names.c))
        for t in reversed(range(steps)) if backward else range(steps):
            self._step({g: y[t] for g, y in outside.items()}, arrays, ready, h, c)
            out[t] = h

    def _gate(self, gate: str, y: Any, rows: Any, h: Any, c: Any, arrays: Any, ready: Any) -> Any:
        names = self.names
        recurrent = ready[names.recurrent_weights[gate]]
        y = y + (h * recurrent if self.diagonal else self.by.times(rows, recurrent))
        peephole = ready.get(names.peepholes[gate]) if gate != "cell" else None
        if peephole is not None:
            y += c * peephole
        if self.norm:
            y = normalized(y) * arrays[names.norms[gate]] + arrays[names.biases[gate]]
        return self.act(y) if gate == "cell" else sigmoid(y)

    def _step(self, outside: Any, arrays: Any, ready: Any, h: Any, c: Any) -> None:
        """One step: h and c are overwritten."""
        op, rows = self.op, None if self.diagonal else self.by.rows(h)
        gate = lambda name: self._gate(name, outside[name], rows, h, c, arrays, ready)  # noqa: E731
        forget, new = gate("forget"), gate("cell")
        let_in = _f(1) - forget if self.cifg else gate("input")
        np.copyto(c, clipped(forget * c + let_in * new, op.cell_clip))
        y = gate("output") * self.act(c)
        projection = ready.get(self.names.projection_weights)
        if projection is not None:
            y = self.by.times(self.by.rows(y), projection)
            bias = arrays[self.names.projection_bias]
            y = clipped(y if bias is None else y + bias, op.proj_clip)
        np.copyto(h, y)


def clipped(x: Any, most: float) -> Any:
    """Within -most..most, where that is above 0."""
    return np.clip(x, _f(-most), _f(most)) if most > 0 else x


# ---- one direction ---------------------------------------------------------------------------------------------------


def _one_direction(op: Any, operands: Mapping[str, Operand | None], outs: Sequence[Operand], node: Any) -> Any:
    x, weights = present(operands, "input", "input_to_output_weights")
    if x.type == "INT8" and weights.type == "INT8":
        from .quantized.lstm import integer_lstm

        return integer_lstm(op, operands, outs[0], node)
    cell = Cell(op, operands, Names(), products_for(op, x, weights))
    time_major = getattr(op, "time_major", True)

    def run(arrays: Mapping[str, Any]) -> Any:
        given = arrays["input"]
        rows = sequence(given if given.ndim == 3 else given[None], time_major)
        out = np.empty((*rows.shape[:2], outs[0].shape[-1]), _f)
        cell.run(arrays, rows, out)
        return (sequence(out, time_major).reshape(outs[0].shape),)

    return run


def _basic(op: Any, operands: Mapping[str, Operand | None], outs: Sequence[Operand], node: Any) -> Any:
    """LSTM of kernel_type BASIC: one matrix for all gates (input, new, forget, output), over input and state."""
    x, weights = present(operands, "input", "input_to_forget_weights")
    if x.type == "UINT8":
        from .quantized.lstm import basic_lstm

        return basic_lstm(op, operands, outs)
    if x.type != "FLOAT32" or weights.type != "FLOAT32":
        raise no_kernel(op, x, weights)

    def run(arrays: Mapping[str, Any]) -> Any:
        x, h, w, b, c = (arrays[name] for name in BASIC)
        joined = np.concatenate([x, h], 1)
        let_in, new, forget, let_out = np.split(np.matmul(joined, w.T) + b, 4, 1)
        state = sigmoid(let_in) * np.tanh(new) + sigmoid(forget) * c
        y = sigmoid(let_out) * np.tanh(state)
        np.copyto(h, y)
        np.copyto(c, state)
        return y, state, joined, np.concatenate([let_in, new, forget, let_out], 1)

    return run


BASIC = (
    "input",
    "input_to_input_weights",
    "input_to_forget_weights",
    "input_to_cell_weights",
    "input_to_output_weights",
)
"""The inputs of kernel_type BASIC by the names that their places have otherwise: x, previous output, weights, bias,
previous state."""


def _infer_basic(op: Any) -> Any:
    x, h, w, b, c = (getattr(op, name) for name in BASIC)
    if any(o is None for o in (x, h, w, b, c)):
        raise refuse("LSTM of kernel_type BASIC has 5 inputs", wanted="input, state, weights, bias, cell state")
    dims = [o.spec.shape.dims for o in (x, h)]
    if dims[0] is None or dims[1] is None:
        return [TensorSpec(None, x.spec.dtype)] * 4
    if len(dims[0]) != 2 or len(dims[1]) != 2:
        raise refuse("input and state have 2 dimensions", found=[text(d) for d in dims], wanted="[batch, n]")
    (batch, n_in), (_, n) = dims
    total = None if n_in is None or n is None else n_in + n
    four = None if n is None else 4 * n
    check_weights("previous output", h, batch, n)
    check_weights("weights", w, four, total)
    check_weights("bias", b, four)
    check_weights("previous state", c, batch, n)
    return [spec(size, x.spec.dtype) for size in ((batch, n), (batch, n), (batch, total), (batch, four))]


def _states(op: Any) -> tuple[str, ...]:
    return (BASIC[1], BASIC[4]) if op.kernel_type == "BASIC" else ("output_state", "cell_state")


def _full_or_basic(op: Any, operands: Any, outs: Any, node: Any) -> Any:
    return (_basic if op.kernel_type == "BASIC" else _one_direction)(op, operands, outs, node)


def _check_one(op: Any, batch: Any) -> Any:
    n_cell, n_out = check_direction(op, Names(), op.input.spec)
    check_state("output_state", op.output_state, batch, n_out)
    check_state("cell_state", op.cell_state, batch, n_cell)
    return n_out


@lite_operator("LSTM")
class Lstm:
    """One step of an LSTM, or with kernel_type BASIC of one with a matrix for all gates.

    .. math:: c' = f c + i g,\\ y = h' = P (o\\ act(c')) + p_b

    input: [batch, n], or [time, batch, n]; weights [cells, n] and [cells, out]; y: [batch, out], [time, batch, out].
    The module's docstring has the formulas of the gates; states are variable tensors. BASIC: x [batch, n], previous
    output [batch, out], weights [4 out, n + out], bias, previous state; y, state, x with output, sums of the gates.
    """

    input = Input((float32,))
    (
        input_to_input_weights,
        input_to_forget_weights,
        input_to_cell_weights,
        input_to_output_weights,
        recurrent_to_input_weights,
        recurrent_to_forget_weights,
        recurrent_to_cell_weights,
        recurrent_to_output_weights,
        cell_to_input_weights,
        cell_to_forget_weights,
        cell_to_output_weights,
        input_gate_bias,
        forget_gate_bias,
        cell_gate_bias,
        output_gate_bias,
        projection_weights,
        projection_bias,
        output_state,
        cell_state,
        input_layer_norm_coefficients,
        forget_layer_norm_coefficients,
        cell_layer_norm_coefficients,
        output_layer_norm_coefficients,
    ) = optional(23)
    ys = Output(like="input", repeated=True)
    fused_activation_function = activation_attr()
    intermediates = Attr([object], default=())

    def infer(op: Any) -> Any:
        if op.kernel_type == "BASIC":
            return _infer_basic(op)
        for name in (
            *[t[g] for t in (Names().input_weights, Names().recurrent_weights, Names().biases) for g in GATES[1:]],
            "output_state",
            "cell_state",
        ):
            if getattr(op, name) is None:
                raise refuse(f"input {name} is left out", wanted="this input")
        x = op.input.spec
        if x.shape.dims is not None and len(x.shape) not in (2, 3):
            raise refuse("the input of LSTM has 2 or 3 dimensions", found=text(x.shape), wanted="[batch, n]")
        n_out = _check_one(op, None if x.shape.dims is None else x.shape.dims[-2])
        return [TensorSpec(None, x.dtype) if x.shape.dims is None else spec((*x.shape.dims[:-1], n_out), x.dtype)]

    def registration(operator: Any) -> Any:
        return RecurrentRegistration(operator, _full_or_basic, _states)


@lite_operator("UNIDIRECTIONAL_SEQUENCE_LSTM")
class UnidirectionalSequenceLstm:
    """An LSTM over a sequence.

    .. math:: c' = f c + i g,\\ y_t = h' = P (o\\ act(c')) + p_b

    input: [batch, time, n], or [time, batch, n] where time_major is set; weights [cells, n] and [cells, out] (vectors
    [cells] for the recurrent ones where diagonal_recurrent_tensors is set); y: [batch, time, out]. The module's
    docstring has the formulas of the gates; states are variable tensors.
    """

    input = Input((float32,))
    (input_to_input_weights,) = optional(1)
    input_to_forget_weights, input_to_cell_weights, input_to_output_weights = needed(3)
    (recurrent_to_input_weights,) = optional(1)
    recurrent_to_forget_weights, recurrent_to_cell_weights, recurrent_to_output_weights = needed(3)
    cell_to_input_weights, cell_to_forget_weights, cell_to_output_weights, input_gate_bias = optional(4)
    forget_gate_bias, cell_gate_bias, output_gate_bias = needed(3)
    projection_weights, projection_bias = optional(2)
    output_state, cell_state = needed(2)
    (
        input_layer_norm_coefficients,
        forget_layer_norm_coefficients,
        cell_layer_norm_coefficients,
        output_layer_norm_coefficients,
    ) = optional(4)
    y = Output(like="input")
    fused_activation_function = activation_attr()
    intermediates = Attr([object], default=())

    def infer(op: Any) -> TensorSpec:
        x = op.input.spec
        _, batch = steps_and_batch(op, x)
        n_out = _check_one(op, batch)
        return TensorSpec(None, x.dtype) if x.shape.dims is None else spec((*x.shape.dims[:-1], n_out), x.dtype)

    def registration(operator: Any) -> Any:
        return RecurrentRegistration(operator, _one_direction, ("output_state", "cell_state"))
