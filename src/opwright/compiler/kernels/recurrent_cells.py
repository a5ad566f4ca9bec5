"""Building blocks of recurrent kernels: activations, sums of vectors of cells, rows in scratch memory, normalisation.

Lives here: `Cells`, `activated`, `sigmoid`, `clipped`, `copied`, `written`, `normalized`, `packed`, `stays_narrow`; how
many rows and numbers kernels take (`whole`, `rows_together`) and in which order (`order_of`).
Not here: the kernels (lstm.py, lstm_int8.py, rnn.py, rnn.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.constants import CLAMPS, FUSED_CLAMPS
from .. import language as kl
from ..language import f32, i8
from . import NoKernel
from .expression import fast

if TYPE_CHECKING:
    from ..target import Target

CHAINS = 2  # sums a vector of gates, so that products need not wait for each other
ROWS = 4, 2, 1
"""How many rows of a batch go together: the first of these that divides it."""


def activated(name: str, x: Any) -> Any:
    if name == "TANH":
        return fast("tanh", x)
    if name in FUSED_CLAMPS:
        low, high = CLAMPS[name]
        x = kl.maximum(float(low), x)
        return x if high is None else kl.minimum(float(high), x)
    return x


def sigmoid(x: Any) -> Any:
    return fast("sigmoid", x)


def check_activation(name: str, what: str) -> None:
    """Raises NoKernel for an activation that `activated` does not know."""
    if name not in (*FUSED_CLAMPS, "TANH", "NONE"):
        raise NoKernel(f"{what} with {name}")


def whole(n: Any, lanes: int) -> Any:
    """At least n numbers: whole vectors and chains."""
    long = max(lanes, CHAINS)
    return (n + (long - 1)) // long * long


def rows_together(batch: int) -> int:
    """How many rows of a batch an item does."""
    return next(n for n in ROWS if batch % n == 0)


def order_of(steps: int, batch: int, time_major: bool, backward: bool) -> tuple[int, int, int]:
    """The row of the first step that is taken, and how many rows lie between two of the batch and two steps."""
    batch_pitch, step_pitch = (1, batch) if time_major else (steps, 1)
    return ((steps - 1) * step_pitch, batch_pitch, -step_pitch) if backward else (0, batch_pitch, step_pitch)


def stays_narrow(target: Target) -> bool:
    """Whether weights of int8 are packed as such: 16 are converted in the time that reading them as floats takes, while
    8 take longer than that."""
    return target.vector_bytes == 64


def packed(target: Target, weights: Any, narrow: bool) -> Any:
    """Where packed weights are: float32, or int8 that stand for themselves."""
    return weights.cast(i8, 4) if narrow and stays_narrow(target) else weights.cast(f32, 4)


class Cells:
    """One vector of cells of some rows: the gates' sums."""

    def __init__(self, rows: int, gates: int, lanes: int) -> None:
        self.rows, self.gates, self.lanes = rows, gates, lanes
        self.sums = kl.registers(f32, lanes, rows, gates, CHAINS)

    def start(self, row: int, gate: int, v: Any) -> None:
        """What a gate's sum begins with."""
        self.sums[row, gate, 0] = v
        for chain in range(1, CHAINS):
            self.sums[row, gate, chain] = kl.zeros(f32, self.lanes)

    def add(self, h: Any, pitch: Any, weights: Any, depth: Any) -> Any:
        """Add the products of rows of h, `depth` numbers each, with packed weights; gives where the weights end."""
        w = weights
        for k in range(0, depth, CHAINS):
            for chain in range(CHAINS):
                values = [(h + (row * pitch + k))[chain].splat(self.lanes) for row in range(self.rows)]
                for gate in range(self.gates):
                    v = w.load((chain * self.gates + gate) * self.lanes, self.lanes).to(f32)
                    for row in range(self.rows):
                        self.sums[row, gate, chain] = kl.fma(values[row], v, self.sums[row, gate, chain])
            w = w + CHAINS * self.gates * self.lanes
        return w

    def total(self, row: int, gate: int) -> Any:
        """A gate's sum."""
        found = self.sums[row, gate, 0]
        for chain in range(1, CHAINS):
            found = found + self.sums[row, gate, chain]
        return found


def clipped(x: Any, most: Any) -> Any:
    """Within -most..most, where that is above 0; NaN stays."""
    return kl.select(most > 0.0, kl.minimum(most, kl.maximum(-most, x)), x)


def copied(into: Any, source: Any, n: Any, whole: Any, lanes: int) -> None:
    """n numbers, then zeros up to `whole`, a whole number of vectors."""
    for i in range(0, whole, lanes):
        into.store(source.load(i, lanes, kl.first(kl.minimum(n - i, lanes), lanes)), i)


def written(into: Any, source: Any, n: Any, lanes: int) -> None:
    for i in range(0, n, lanes):
        into.store(source.load(i, lanes), i, mask=kl.first(kl.minimum(n - i, lanes), lanes))


NEARLY_NONE = 1e-8
"""What is added to a variance. Source: LiteRT, kernels/internal/reference/portable_tensor_utils.cc."""


def normalized(z: Any, norms: Any, cells: Any, wide: Any, lanes: int) -> None:
    """Bring `cells` numbers, behind which zeros follow up to `wide`, to mean 0 and variance 1; then times coefficients,
    plus a bias, which lie one after the other."""
    count = cells.to(f32)
    total = kl.zeros(f32, lanes)
    for i in range(0, wide, lanes):
        total = total + z.load(i, lanes)
    mean = kl.reduce_add(total) / count
    squares = kl.zeros(f32, lanes)
    for i in range(0, wide, lanes):
        off = kl.select(kl.first(kl.minimum(cells - i, lanes), lanes), z.load(i, lanes) - mean, 0.0)
        squares = kl.fma(off, off, squares)
    factor = 1.0 / kl.sqrt(kl.reduce_add(squares) / count + NEARLY_NONE)
    for i in range(0, wide, lanes):
        mask = kl.first(kl.minimum(cells - i, lanes), lanes)
        scaled = (z.load(i, lanes) - mean) * factor
        z.store(kl.fma(scaled, norms.load(i, lanes, mask), (norms + cells).load(i, lanes, mask)), i)
