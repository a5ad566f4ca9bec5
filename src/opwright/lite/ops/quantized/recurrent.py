"""Recurrent operators on integers: LSTM of int8 with int16 cells, LSTM of kernel_type BASIC on uint8, SVDF.

Lives here: these rules.
Not here: float activations (ops/lstm.py, ops/rnn.py), gates of int8 (lstm_int8_gates.py), activations of gates
(opwright/scalar).

LSTM of int8: gates are int16 with 12 fraction bits (with layer normalization: the scales of the node's intermediate
tensors), their activations have 15, and the scale of cells is a power of two. SVDF: int8 features, int16 filters over
time and state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....scalar import numpy_namespace
from ....scalar.integer_layers import GATE, GateNormalization, IntegerCells, least_variance, normalization_factor
from ....scalar.quantization import multiplier
from .fixed_point import INT16, INT32
from .lstm_int8_gates import GATES, IntegerProduct, clip_of, narrow_lstm
from .operand import Operand, check_scaled, check_symmetric, check_types, present

NORMALIZATION = GateNormalization(numpy_namespace)


def _power_of_two(o: Operand, low: int, high: int) -> int:
    """Return log2 of an operand's scale. Raises InvalidArgumentError if it is no integer within the limits."""
    exponent = o.log2_scale
    if exponent is None or not low <= exponent <= high or o.zero_point:
        raise o.wrong(
            "does not have a power of two for its scale, and zero point 0", float(o.scale), f"2^{low} to 2^{high}"
        )
    return exponent


class _Int16Gate:
    """One gate: products, peephole, normalization and activation."""

    def __init__(self, gate: str, operands: Mapping[str, Operand | None], intermediate: Operand, power: int) -> None:
        self.gate, self.norm, self.bias = gate, f"{gate}_layer_norm_coefficients", f"{gate}_gate_bias"
        coefficients = operands.get(self.norm)
        scale = 2.0**-12
        if coefficients is not None:
            check_scaled(intermediate, coefficients)
            scale = float(intermediate.scale)
            self.norm_by = normalization_factor(coefficients.scale)
            self.least = least_variance(coefficients.scale)
        self.normal = coefficients is not None
        x, h = present(operands, "input", "output_state")
        w, r = present(operands, f"input_to_{gate}_weights", f"recurrent_to_{gate}_weights")
        self.outside = IntegerProduct(f"input_to_{gate}_weights", w, x, scale, "" if self.normal else self.bias)
        self.inside = IntegerProduct(f"recurrent_to_{gate}_weights", r, h, scale)
        self.peephole = f"cell_to_{gate}_weights"
        p = operands.get(self.peephole)
        self.peephole_by = None if p is None else multiplier(float(np.float32(2.0**power * float(p.scale) / scale)))

    def ready(self, arrays: Mapping[str, Any]) -> Any:
        return self.outside.ready(arrays), self.inside.ready(arrays)

    def run(self, x: Any, h: Any, c: Any, ready: Any, arrays: Mapping[str, Any]) -> Any:
        """Compute the gate, int16 with 15 fraction bits. x: the product of input and weights, from `outside`."""
        y = INT16.saturated(x)
        y = INT16.saturated(y + self.inside.times(h, ready[1]))
        if self.peephole_by is not None:
            y = INT16.saturated(y + INT32.rescale(c * arrays[self.peephole].astype(np.int64), *self.peephole_by))
        if self.normal:
            y = self._normalized(y, arrays[self.norm].astype(np.int64), arrays[self.bias].astype(np.int64))
        return INT16.tanh(y, GATE) if self.gate == "cell" else INT16.logistic(y, GATE)

    def _normalized(self, y: Any, coefficients: Any, bias: Any) -> Any:
        """Normalize rows to mean 0 and variance 1 with 10 bits; apply coefficients and bias, with 12 fraction bits."""
        total, squares = y.sum(1, keepdims=True), (y * y).sum(1, keepdims=True)
        mean, variance = NORMALIZATION.moments(total, squares, y.shape[1])
        by = NORMALIZATION.deviation(variance, self.least)
        return NORMALIZATION.normalized(y, mean, by, coefficients, bias, self.norm_by)


def _check_vectors(operands: Mapping[str, Operand | None]) -> None:
    """Raise InvalidArgumentError for biases, peepholes or coefficients of the wrong type."""
    for name, o in operands.items():
        is_int16 = name.startswith("cell_to_") or "_norm_" in name
        expected = "INT32" if name.endswith("_bias") else "INT16" if is_int16 else ""
        if o is not None and expected and o.type != expected:
            raise o.wrong("has another type than an LSTM on integers takes", o.type, expected)


def integer_lstm(op: Any, operands: Mapping[str, Operand | None], y: Operand, node: Any) -> Any:
    """UNIDIRECTIONAL_SEQUENCE_LSTM and LSTM of int8 with int16 cells. The node's intermediate tensors say scales."""
    x, h, c = present(operands, "input", "output_state", "cell_state")
    check_types(op, ("INT8 INT8 INT16 INT8",), x, h, c, y)
    check_scaled(x, h, c, y)
    _check_vectors(operands)
    intermediates = [Operand(t.tensor) for t in node.intermediates if t is not None]
    if len(intermediates) == 12 and not hasattr(op, "time_major"):
        return narrow_lstm(op, operands, y, intermediates)
    if len(intermediates) != 5:
        raise y.wrong(
            "comes of a node without the intermediate tensors that say its scales",
            len(intermediates),
            "5, or 12 of LSTM with gates of int8",
        )
    return _IntegerLstm(op, operands, y, intermediates).run


class _IntegerLstm:
    """A layer whose gates are int16: of its scales the multipliers, and the steps of time."""

    def __init__(
        self, op: Any, operands: Mapping[str, Operand | None], y: Operand, intermediates: Sequence[Operand]
    ) -> None:
        h, c = present(operands, "output_state", "cell_state")
        hidden = intermediates[4]
        check_scaled(hidden)
        power = _power_of_two(c, -30, -9)
        self.cells = IntegerCells(numpy_namespace, power)
        self.cifg = operands["input_to_input_weights"] is None
        self.gates = {
            g: _Int16Gate(g, operands, s, power)
            for g, s in zip(GATES, intermediates)
            if not (self.cifg and g == "input")
        }
        self.hidden_by = multiplier(float(np.float32(2.0**-30 / float(hidden.scale))))
        self.hidden_zero, self.h_zero = hidden.zero_point, h.zero_point
        weights = operands["projection_weights"]
        self.projection: IntegerProduct | None = None
        if weights is not None:
            self.projection = IntegerProduct("projection_weights", weights, hidden, float(h.scale), "projection_bias")
            # With a projection the official kernel has the hidden values' zero point with the other sign, here and in
            # the product: that shows where they reach the limits of int8.
            self.hidden_zero = self.projection.zero_point = -hidden.zero_point
        self.cell_clip, self.proj_clip = clip_of(op.cell_clip, c, 32767), clip_of(op.proj_clip, y, 127)
        self.time_major, self.shape = getattr(op, "time_major", True), y.shape

    def _step(self, shares: Any, h: Any, c: Any, ready: Any, arrays: Any) -> Any:
        """State and cell after one step. shares: of the gates, what the input gives."""

        def gate(name: str, cell: Any) -> Any:
            return self.gates[name].run(shares[name], h, cell, ready[name], arrays)

        input_gate = None if self.cifg else gate("input", c)
        forget, new = gate("forget", c), gate("cell", c)
        input_gate = INT16.one - forget if input_gate is None else input_gate
        c = self.cells.after(forget, c, input_gate, new)
        if self.cell_clip > 0:
            c = np.clip(c, -self.cell_clip, self.cell_clip)
        out = gate("output", c) * self.cells.squashed(c, input_gate, self.cifg)
        out = np.clip(INT32.rescale(out, *self.hidden_by) + self.hidden_zero, -128, 127)
        if self.projection is not None:
            out = np.clip(self.projection.times(out, ready[""]) + self.h_zero, -128, 127)
            if self.proj_clip > 0:
                out = np.clip(out, -self.proj_clip, self.proj_clip)
        return out, c

    def run(self, arrays: Mapping[str, Any]) -> Any:
        """All steps; the states are written to their arrays."""
        x = arrays["input"]
        x = x if x.ndim == 3 else x[None]
        rows = x if self.time_major else x.swapaxes(0, 1)
        steps, batch = rows.shape[:2]
        ready = {name: gate.ready(arrays) for name, gate in self.gates.items()}
        if self.projection is not None:
            ready[""] = self.projection.ready(arrays)
        flat = rows.reshape(steps * batch, -1)
        shares = {g: gate.outside.times(flat, ready[g][0]).reshape(steps, batch, -1) for g, gate in self.gates.items()}
        h_state, c_state = (arrays[n].reshape(batch, -1) for n in ("output_state", "cell_state"))
        h_now, c_now = h_state.astype(np.int64), c_state.astype(np.int64)
        out = np.empty((steps, batch, h_now.shape[1]), np.int8)
        for t in range(steps):
            h_now, c_now = self._step({g: s[t] for g, s in shares.items()}, h_now, c_now, ready, arrays)
            out[t] = h_now
        np.copyto(h_state, h_now, casting="unsafe")
        np.copyto(c_state, c_now, casting="unsafe")
        return ((out if self.time_major else out.swapaxes(0, 1)).reshape(self.shape),)


def basic_lstm(op: Any, operands: Mapping[str, Operand | None], outs: Any) -> Callable[..., Any]:
    """LSTM of kernel_type BASIC: uint8 activations of scale 1/128, int16 cells of scale 2^-11, gates of scale 2^-12."""
    names = (
        "input",
        "input_to_input_weights",
        "input_to_forget_weights",
        "input_to_cell_weights",
        "input_to_output_weights",
    )
    x, h, w, b, c = present(operands, *names)
    check_types(op, ("UINT8 UINT8 UINT8 INT32 INT16 UINT8 INT16 UINT8 INT16",), x, h, w, b, c, *outs)
    check_scaled(x, h, w, c, outs[0], outs[1])
    for o in (x, h, outs[0]):
        if o.scale != 1 / 128 or o.zero_point != 128:
            raise o.wrong("has other parameters than this LSTM fixes", [float(o.scale), o.zero_point], [1 / 128, 128])
    power = _power_of_two(c, -15, -9)
    m, e = multiplier(float(x.scale) * float(w.scale) * 4096)
    cells = IntegerCells(numpy_namespace, power)

    def run(arrays: Mapping[str, Any]) -> Any:
        x, h, weights, bias, c = (arrays[n] for n in names)
        joined = np.concatenate([x, h], 1)
        sums = np.matmul(joined - 128.0, weights.T - float(w.zero_point)).astype(np.int64) + bias
        gates = INT16.saturated(INT32.rescale_halves_up(sums, m, e))
        state, y = cells.basic(np.split(gates, 4, 1), c.astype(np.int64))
        np.copyto(h, y, casting="unsafe")
        np.copyto(c, state, casting="unsafe")
        kinds = (np.uint8, np.int16, np.uint8, np.int16)
        return tuple(a.astype(k) for a, k in zip((y, state, joined, gates), kinds))

    return run


def svdf(op: Any, operands: Mapping[str, Operand | None], y: Operand) -> Callable[..., Any]:
    x, feature, time, state = present(operands, "input", "weights_feature", "weights_time", "state")
    check_types(op, ("INT8 INT8 INT16 INT16 INT8",), x, feature, time, state, y)
    if operands["bias"] is not None:
        check_types(op, ("INT32",), operands["bias"])
    check_scaled(x, feature, time, state, y)
    check_symmetric(feature, time)
    to_state = multiplier(float(x.scale * feature.scale / state.scale))  # in float32
    to_output = multiplier(float(state.scale * time.scale / y.scale))
    batch, filters = x.shape[0], feature.shape[0]

    def run(arrays: Mapping[str, Any]) -> tuple[np.ndarray]:
        sums = np.matmul(x.centred(arrays["input"], np.float64), arrays["weights_feature"].T.astype(np.float64))
        past = arrays["state"].reshape(batch, filters, -1)
        past[:, :, :-1] = past[:, :, 1:].copy()
        past[:, :, -1] = np.clip(INT32.rescale(sums.astype(np.int64), *to_state) + state.zero_point, -32768, 32767)
        # sums of int32, which wrap around
        now = (past.astype(np.int32) * arrays["weights_time"].astype(np.int32)).sum(2, dtype=np.int32)
        total = now.reshape(batch, -1, op.rank).sum(2, dtype=np.int32)
        if arrays["bias"] is not None:
            total = total + arrays["bias"]
        return (y.saturated(INT32.rescale(total.astype(np.int64), *to_output), -128, 127).astype(np.int8),)

    return run
