"""Recurrent operators on integers: LSTM of int8 with gates of int16 or int8, LSTM of kernel_type BASIC on uint8, SVDF.

Lives here: these rules; `IntegerProduct` (rows by weights).
Not here: float activations (ops/lstm.py, ops/rnn.py), activations of gates (opwright/scalar).

LSTM of int8 with five intermediate tensors: gates are int16 with 12 fraction bits (with layer normalization: the scales
of the intermediate tensors), their activations have 15, and the scale of cells is a power of two. SVDF: int8 features,
int16 filters over time and state.

LSTM of int8 with twelve intermediate tensors: gates are int8. For each gate of input, forget, cell and output there are
three scales: of both sums together, of the input's W x, of the state's R h. Normalization, logistic and tanh are
float32. There is no input gate (1 - f replaces it) and no peephole; normalization and projection are always there;
cells have the scale 2^-15.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....scalar import numpy_namespace
from ....scalar.fixed_point import array_round_away as round_away
from ....scalar.fixed_point import multiplier
from ....scalar.fixed_point_layers import (
    GATE,
    NARROW_SCALE,
    GateNormalization,
    IntegerCells,
    least_variance,
    narrow_table,
    normalization_factor,
)
from ..lstm_cell import BASIC, GATES
from .fixed_point import INT16, INT32, exact_float
from .operand import Operand, check_scaled, check_symmetric, check_types, present

Ready = tuple[np.ndarray, np.ndarray]
"""A matrix of weights, and the bias with the contribution of the zero point."""


class IntegerProduct:
    """Rows of int8 times weights, brought to another scale: x W^T m 2^e, with a bias of int32 before that."""

    def __init__(self, name: str, weights: Operand, x: Operand, out_scale: float, bias: str = "") -> None:
        check_types(_Named(name), ("INT8",), weights)
        check_scaled(weights, x)
        check_symmetric(weights)
        self.name, self.bias, self.zero_point = name, bias, x.zero_point
        self.m, self.e = multiplier(float(weights.scale * x.scale / np.float32(out_scale)))  # in float32

    def ready(self, arrays: Mapping[str, Any]) -> Ready:
        """Return the matrix, and the bias with the contribution of the zero point."""
        w = arrays[self.name]
        exact = exact_float(w.shape[1] * 128 * 128)
        offset = -self.zero_point * w.sum(1, dtype=np.int64)
        if self.bias and arrays[self.bias] is not None:
            offset += arrays[self.bias]
        return w.astype(exact).T, offset

    def times(self, x: np.ndarray, ready: Ready) -> np.ndarray:
        sums = np.matmul(x.astype(ready[0].dtype), ready[0]).astype(np.int64)
        return INT32.rescale(sums + ready[1], self.m, self.e)


class _Named:
    """The operator's name in errors about types."""

    def __init__(self, name: str) -> None:
        self.name, self.operator = name, self


def clip_of(limit: float, o: Operand, high: int) -> int:
    """Quantize a clipping limit to o's scale in float32 arithmetic."""
    return int(np.minimum(np.float32(limit) / o.scale, high))


_f = np.float32
CELLS = IntegerCells(numpy_namespace, -15)


class _Int8Gate:
    """One gate: two products rounded to int8, their sum, normalization and activation."""

    def __init__(self, gate: str, operands: Mapping[str, Operand | None], three: Sequence[Operand]) -> None:
        both, outside, inside = three
        check_scaled(both, outside, inside)
        self.table = narrow_table("tanh" if gate == "cell" else "logistic", NARROW_SCALE)
        self.norm, self.bias = f"{gate}_layer_norm_coefficients", f"{gate}_gate_bias"
        x, h, w, r, norm = present(
            operands, "input", "output_state", f"input_to_{gate}_weights", f"recurrent_to_{gate}_weights", self.norm
        )
        check_scaled(norm)
        self.norm_scale = norm.scale
        self.products = [
            (
                IntegerProduct(o.name, o, rows, float(part.scale)),
                part.zero_point,
                multiplier(float(part.scale / both.scale)),
            )
            for o, rows, part in (
                (_named(w, f"input_to_{gate}_weights"), x, outside),
                (_named(r, f"recurrent_to_{gate}_weights"), h, inside),
            )
        ]

    def run(self, x: np.ndarray, h: np.ndarray, arrays: Mapping[str, Any]) -> np.ndarray:
        """Compute the gate, int16 with 15 fraction bits."""
        y: Any = 0
        for rows, (product, zero, to_both) in zip((x, h), self.products):
            part = np.clip(product.times(rows, product.ready(arrays)) + zero, -128, 127)
            y = y + INT32.rescale(part - zero, *to_both)
        return _at(self.table, self._normalized(INT16.saturated(y), arrays))

    def _normalized(self, y: np.ndarray, arrays: Mapping[str, Any]) -> np.ndarray:
        """Normalize rows to mean 0 and variance 1; apply coefficients and bias; round to int16 with 12 fraction bits.
        Undefined results (a variance below 0) are the least."""
        y, n = y.astype(_f), _f(y.shape[1])
        total, squares = (np.cumsum(v, 1, dtype=_f)[:, -1:] for v in (y, y * y))  # summed one after the other
        mean = total / n
        variance = squares / n - mean * mean
        inverse = _f(1) / np.sqrt(np.where(variance == 0, _f(1e-8), variance))
        bias = arrays[self.bias].astype(_f) * (self.norm_scale * _f(2.0**-10))
        real = (y - mean) * inverse * arrays[self.norm].astype(_f) * self.norm_scale + bias
        rounded = round_away(real.astype(np.float64) * (1 / NARROW_SCALE))
        return np.where(np.isnan(rounded), INT16.least, INT16.saturated(rounded)).astype(np.int64)


def _named(o: Operand, name: str) -> Operand:
    """Set the operand's name to the key of its array."""
    o.name = name
    return o


def _at(table: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Look up int16 values in a table of all of them."""
    values: np.ndarray = table[x - INT16.least].astype(np.int64)
    return values


def narrow_lstm(
    op: Any, operands: Mapping[str, Operand | None], y: Operand, intermediates: Sequence[Operand]
) -> Callable[..., Any]:
    """Return the rule of one step of an int8 LSTM with int8 gates. intermediates: twelve."""
    h, c = present(operands, "output_state", "cell_state")
    for name in ("input_to_input_weights", "cell_to_forget_weights", "cell_to_output_weights"):
        if operands[name] is not None:
            raise y.wrong(f"comes of a node with gates of int8 that also has {name}", name, "none")
    for name in ("projection_weights", *(f"{g}_layer_norm_coefficients" for g in GATES[1:])):
        if operands[name] is None:
            raise y.wrong(f"comes of a node with gates of int8 and without {name}", "none", name)
    if c.scale != 2.0**-15 or c.zero_point:
        raise c.wrong("has another scale than gates of int8 fix", float(c.scale), "2^-15, zero point 0")
    gates = {g: _Int8Gate(g, operands, intermediates[3 * i : 3 * i + 3]) for i, g in enumerate(GATES) if i}
    (weights,) = present(operands, "projection_weights")
    factor = multiplier(float(_f(float(weights.scale) * 2.0**-15 / float(h.scale))))
    cell_clip, proj_clip = clip_of(op.cell_clip, c, 32767), clip_of(op.proj_clip, y, 127)
    zero = h.zero_point

    def run(arrays: Mapping[str, Any]) -> tuple[np.ndarray]:
        x, state, cells = arrays["input"], arrays["output_state"], arrays["cell_state"]
        hidden_state, cell = state.reshape(len(x), -1).astype(np.int64), cells.reshape(len(x), -1).astype(np.int64)
        forget, new = gates["forget"].run(x, hidden_state, arrays), gates["cell"].run(x, hidden_state, arrays)
        cell = CELLS.after(forget, cell, CELLS.one - forget, new)
        if cell_clip > 0:
            cell = np.clip(cell, -cell_clip, cell_clip)
        squashed = _at(narrow_table("tanh", 2.0**-15), cell)
        hidden = INT32.shifted_right(gates["output"].run(x, hidden_state, arrays) * squashed, 15)
        sums = np.matmul(hidden.astype(np.float64), arrays["projection_weights"].T.astype(np.float64)).astype(np.int64)
        if arrays["projection_bias"] is not None:
            sums = sums + arrays["projection_bias"]
        out = np.clip(INT32.rescale(sums, *factor) + zero, -128, 127)
        if proj_clip > 0:
            out = np.clip(out, -proj_clip, proj_clip)
        np.copyto(state, out.reshape(state.shape), casting="unsafe")
        np.copyto(cells, cell.reshape(cells.shape), casting="unsafe")
        return (out.astype(np.int8),)

    return run


NORMALIZATION = GateNormalization(numpy_namespace)


def _power_of_two(o: Operand, low: int, high: int) -> int:
    """Return log2 of an operand's scale. Raises InvalidArgumentError if it is not an integer within the limits."""
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

    def ready(self, arrays: Mapping[str, Any]) -> tuple[Ready, Ready]:
        return self.outside.ready(arrays), self.inside.ready(arrays)

    def run(
        self, x: np.ndarray, h: np.ndarray, c: np.ndarray, ready: tuple[Ready, Ready], arrays: Mapping[str, Any]
    ) -> np.ndarray:
        """Compute the gate, int16 with 15 fraction bits. x: the product of input and weights, from `outside`."""
        y = INT16.saturated(x)
        y = INT16.saturated(y + self.inside.times(h, ready[1]))
        if self.peephole_by is not None:
            y = INT16.saturated(y + INT32.rescale(c * arrays[self.peephole].astype(np.int64), *self.peephole_by))
        if self.normal:
            y = self._normalized(y, arrays[self.norm].astype(np.int64), arrays[self.bias].astype(np.int64))
        return INT16.tanh(y, GATE) if self.gate == "cell" else INT16.logistic(y, GATE)

    def _normalized(self, y: np.ndarray, coefficients: np.ndarray, bias: np.ndarray) -> np.ndarray:
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


def integer_lstm(op: Any, operands: Mapping[str, Operand | None], y: Operand, node: Any) -> Callable[..., Any]:
    """Return the rule of an int8 LSTM with int16 cells. The node's intermediate tensors specify scales."""
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

    def _step(
        self, shares: Mapping[str, np.ndarray], h: np.ndarray, c: np.ndarray, ready: Any, arrays: Mapping[str, Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return state and cell after one step. shares: the input's contribution to each gate."""

        def gate(name: str, cell: np.ndarray) -> np.ndarray:
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

    def run(self, arrays: Mapping[str, Any]) -> tuple[np.ndarray]:
        """Run all steps; write the states to their arrays."""
        x = arrays["input"]
        x = x if x.ndim == 3 else x[None]
        rows = x if self.time_major else x.swapaxes(0, 1)
        steps, batch = rows.shape[:2]
        ready: dict[str, Any] = {name: gate.ready(arrays) for name, gate in self.gates.items()}
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
    """Return the rule of kernel_type BASIC: uint8 activations of scale 1/128, int16 cells of 2^-11, gates of 2^-12."""
    x, h, w, b, c = present(operands, *BASIC)
    check_types(op, ("UINT8 UINT8 UINT8 INT32 INT16 UINT8 INT16 UINT8 INT16",), x, h, w, b, c, *outs)
    check_scaled(x, h, w, c, outs[0], outs[1])
    for o in (x, h, outs[0]):
        if o.scale != 1 / 128 or o.zero_point != 128:
            raise o.wrong("has other parameters than this LSTM fixes", [float(o.scale), o.zero_point], [1 / 128, 128])
    power = _power_of_two(c, -15, -9)
    m, e = multiplier(float(x.scale) * float(w.scale) * 4096)
    cells = IntegerCells(numpy_namespace, power)

    def run(arrays: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
        x, h, weights, bias, c = (arrays[n] for n in BASIC)
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
