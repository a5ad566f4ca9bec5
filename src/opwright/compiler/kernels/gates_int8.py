"""What gates and cells of an LSTM of int8 do with their sums: peepholes, normalisation, the cells' new state.

Lives here: `Layer`.
Not here: sums of products, the steps of time (recurrent_int8.py), the arithmetic (opwright/scalar).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...scalar.integer_lstm import GATE, IntegerCells, LayerNormalization
from .. import language as kl
from ..language import f32, i32, i64
from .fixed_point import INT16, INT32

NORMALIZATION = LayerNormalization(kl)


class Layer:
    """The gates of one layer, for i, f, g, o, or of three for f, g, o. Sums are int32 that hold int16.

    peeps: a row of cells for each gate but g; norms: coefficients and bias, a row each, of each gate; or None. numbers:
    (m, e) of each peephole, then (m, e, least variance) of each gate's normalisation.
    """

    def __init__(self, gates: int, power: int, cells: Any, clip: Any, peeps: Any, norms: Any, numbers: Any) -> None:
        self.gates, self.first = gates, gates - 3  # where the forget gate is
        self.cells, self.clip, self.numbers = cells, clip, numbers
        self.arithmetic = IntegerCells(kl, power)
        self.peeps, self.norms = peeps, norms

    def seen(self, z: Any, state: Any, gate: int, at: Any, mask: Any) -> Any:
        """A gate's sums with what it sees of the cells from `at` on."""
        if self.peeps is None or gate == self.first + 1:
            return z
        place = gate if gate <= self.first else gate - 1
        weight = (self.peeps + place * self.cells).load(at, z.count, mask)
        more = INT32.rescale(state.to(i64) * weight.to(i64), self.numbers[2 * place], self.numbers[2 * place + 1])
        return INT16.saturated(z + kl.clamp(more, -65536, 65536).to(i32))

    def after(self, z: list[Any], before: Any) -> tuple[Any, Any]:
        """The new state of cells, and what the input gate lets in."""
        forget, made = INT16.logistic(z[self.first], GATE), INT16.tanh(z[self.first + 1], GATE)
        let_in = INT16.logistic(z[0], GATE) if self.gates == 4 else INT16.one - forget
        after = self.arithmetic.after(forget, before, let_in, made)
        return kl.clamp(after, -self.clip, self.clip), let_in

    def squashed(self, state: Any, let_in: Any) -> Any:
        """tanh of cells."""
        return self.arithmetic.squashed(state, let_in, coupled=self.gates == 3)

    def normed(self, parts: list[Any], state: Any, wide: Any, lanes: int, put: Callable[[Any, Any, Any], None]) -> None:
        """A row's new state, of sums that are normalised. parts: the gates' sums, state: the cells', `wide` numbers of
        float32 each. put(at, tanh of the cells, what the output gate lets out): takes the results."""
        last = self.gates - 1
        for gate in range(last):
            self._normalize(parts[gate], state, gate, wide, lanes)
        for at in range(0, wide, lanes):
            z = [kl.to_int(part.load(at, lanes)) for part in parts[:last]]
            after, let_in = self.after(z, kl.to_int(state.load(at, lanes)))
            parts[0].store(let_in.to(f32), at)  # nobody reads these sums any more
            mask = kl.first(kl.minimum(self.cells - at, lanes), lanes)
            state.store(kl.select(mask, after.to(f32), 0.0), at)
        self._normalize(parts[last], state, last, wide, lanes)
        for at in range(0, wide, lanes):
            let_out = INT16.logistic(kl.to_int(parts[last].load(at, lanes)), GATE)
            put(at, self.squashed(kl.to_int(state.load(at, lanes)), kl.to_int(parts[0].load(at, lanes))), let_out)

    def _normalize(self, z: Any, state: Any, gate: int, wide: Any, lanes: int) -> None:
        """Bring a gate's sums, with what it sees, to mean 0 and variance 1; then times coefficients, plus a bias."""
        total, squares, n = kl.zeros(i64, lanes), kl.zeros(i64, lanes), self.cells
        for at in range(0, wide, lanes):
            mask = kl.first(kl.minimum(n - at, lanes), lanes)
            v = self.seen(kl.to_int(z.load(at, lanes)), kl.to_int(state.load(at, lanes)), gate, at, mask)
            v = kl.select(mask, v, 0)
            z.store(v.to(f32), at)
            total, squares = total + v.to(i64), squares + v.to(i64) * v.to(i64)
        mean, variance = NORMALIZATION.moments(kl.reduce_add(total), kl.reduce_add(squares), n)
        peepholes = 0 if self.peeps is None else 2 * (self.gates - 1)
        m, e, least = (self.numbers[peepholes + 3 * gate + k] for k in range(3))
        deviation = NORMALIZATION.deviation(variance, least)
        rows = self.norms + 2 * gate * n
        for at in range(0, wide, lanes):
            mask = kl.first(kl.minimum(n - at, lanes), lanes)
            coefficient, bias = (vector.load(at, lanes, mask).to(i64) for vector in (rows, rows + n))
            sums = kl.to_int(z.load(at, lanes)).to(i64)
            z.store(NORMALIZATION.normalized(sums, mean, deviation, coefficient, bias, (m, e)).to(f32), at)
