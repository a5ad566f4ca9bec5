"""LSTM on integers whose gates are int8, and what all LSTMs on integers share.

Lives here: `IntegerProduct` (rows by weights), `GATES`, `clip_of`, and the rule of an LSTM whose twelve intermediate
tensors specify the scales of its sums.
Not here: the LSTM with five of them, whose gates are int16 (recurrent.py).

For each gate of input, forget, cell and output there are three: of both sums together, of the input's W x, of the
state's R h. Normalization, logistic and tanh are float32. There is no input gate (1 - f stands for it) and no peephole;
normalization and projection are always there; cells have the scale 2^-15.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....scalar import numpy_namespace
from ....scalar.integer_layers import IntegerCells
from ....scalar.quantization import array_round_away as round_away
from ....scalar.quantization import multiplier
from .fixed_point import INT16, INT32, exact_float
from .operand import Operand, check_scaled, check_symmetric, check_types, present

GATES = ("input", "forget", "cell", "output")


class IntegerProduct:
    """Rows of int8 times weights, brought to another scale: x W^T m 2^e, with a bias of int32 before that."""

    def __init__(self, name: str, weights: Operand, x: Operand, out_scale: float, bias: str = "") -> None:
        check_types(_Named(name), ("INT8",), weights)
        check_scaled(weights, x)
        check_symmetric(weights)
        self.name, self.bias, self.zero_point = name, bias, x.zero_point
        self.m, self.e = multiplier(float(weights.scale * x.scale / np.float32(out_scale)))  # as float32 has it

    def ready(self, arrays: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the matrix, and the bias with the contribution of the zero point."""
        w = arrays[self.name]
        exact = exact_float(w.shape[1] * 128 * 128)
        offset = -self.zero_point * w.sum(1, dtype=np.int64)
        if self.bias and arrays[self.bias] is not None:
            offset += arrays[self.bias]
        return w.astype(exact).T, offset

    def times(self, x: Any, ready: tuple[Any, Any]) -> Any:
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
        self.tanh, self.norm, self.bias = gate == "cell", f"{gate}_layer_norm_coefficients", f"{gate}_gate_bias"
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

    def run(self, x: Any, h: Any, arrays: Mapping[str, Any]) -> Any:
        """Compute the gate, int16 with 15 fraction bits."""
        y = 0
        for rows, (product, zero, to_both) in zip((x, h), self.products):
            part = np.clip(product.times(rows, product.ready(arrays)) + zero, -128, 127)
            y = y + INT32.rescale(part - zero, *to_both)
        real = self._normalized(INT16.saturated(y), arrays)
        real = np.tanh(real) if self.tanh else _f(1) / (_f(1) + np.exp(-real))
        return _fixed(real)

    def _normalized(self, y: Any, arrays: Mapping[str, Any]) -> Any:
        """Normalize rows to mean 0 and variance 1; apply coefficients and bias; round to 12 fraction bits."""
        y, n = y.astype(_f), _f(y.shape[1])
        total, squares = (np.cumsum(v, 1, dtype=_f)[:, -1:] for v in (y, y * y))  # summed one after the other
        mean = total / n
        variance = squares / n - mean * mean
        inverse = _f(1) / np.sqrt(np.where(variance == 0, _f(1e-8), variance))
        bias = arrays[self.bias].astype(_f) * (self.norm_scale * _f(2.0**-10))
        real = (y - mean) * inverse * arrays[self.norm].astype(_f) * self.norm_scale + bias
        return INT16.saturated(round_away(real.astype(np.float64) * 4096)).astype(_f) * _f(2.0**-12)


def _named(o: Operand, name: str) -> Operand:
    """Set the operand's name to the key of its array."""
    o.name = name
    return o


def _fixed(real: Any) -> Any:
    """Convert to int16 with 15 fraction bits, truncating."""
    return INT16.saturated(np.trunc(real.astype(np.float64) * 32768)).astype(np.int64)


def narrow_lstm(
    op: Any, operands: Mapping[str, Operand | None], y: Operand, intermediates: Sequence[Operand]
) -> Callable[..., Any]:
    """LSTM of int8 with int8 gates, one step. intermediates: twelve."""
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
        squashed = _fixed(np.tanh(cell.astype(_f) * _f(2.0**-15)))
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
