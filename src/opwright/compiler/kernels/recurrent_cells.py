"""Building blocks of recurrent kernels, and SVDF: activations, gate sums, the walk over time steps, time filters.

Lives here: `GateSums`, `activate`, `sigmoid`, `clip`, `layer_normalize`, packed weights; rows of states (`load_padded`,
`store_row`, `load_states`, `store_states`, `in_row_groups`);
sizes of scratch rows and items (`padded_size`, `rows_per_item`) and the walk over steps (`step_order`, `step_row`);
the selector of Svdf, its family, which shifts the state by one step and sums it with weights.
Not here: the kernels of layers (lstm.py, lstm_int8.py, rnn.py), the feature filters of SVDF,
a matrix product (contractions).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.dtypes import DType, float32, int16, int32
from ...scalar.formulas import CLAMPS, FUSED_CLAMPS
from .. import language as kl
from ..language import f32, i8, i64, ptr, u8
from ..loops.recurrent_ops import Svdf
from ..target import Target, host
from . import NoKernel, selector
from .epilogue import epilogue_of
from .expression import fast
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

Size = TypeVar("Size", int, "Value")

CHAINS = 2  # independent sums per vector of gates, which hide the latency of fused multiply-add
ROWS = 4, 2, 1
"""Rows of a batch per work item: the first of these that divides the batch."""


def activate(name: str, x: Value) -> Value:
    """Apply a fused activation, or tanh."""
    if name == "TANH":
        return fast("tanh", x)
    if name in FUSED_CLAMPS:
        low, high = CLAMPS[name]
        x = kl.maximum(float(low), x)
        return x if high is None else kl.minimum(float(high), x)
    return x


def sigmoid(x: Value) -> Value:
    return fast("sigmoid", x)


def check_activation(name: str, what: str) -> None:
    """Raise NoKernel for an activation that `activate` does not support."""
    if name not in (*FUSED_CLAMPS, "TANH", "NONE"):
        raise NoKernel(f"{what} with {name}")


def padded_size(n: Size, lanes: int) -> Size:
    """Return n rounded up to a multiple of vectors and chains."""
    multiple = max(lanes, CHAINS)
    return (n + (multiple - 1)) // multiple * multiple


def rows_per_item(batch: int) -> int:
    """Return the rows of a batch per work item."""
    return next(n for n in ROWS if batch % n == 0)


def step_order(steps: int, batch: int, time_major: bool, backward: bool) -> tuple[int, int, int]:
    """Return the row of the first step in execution order, and the row pitches of the batch and of steps."""
    batch_pitch, step_pitch = (1, batch) if time_major else (steps, 1)
    return ((steps - 1) * step_pitch, batch_pitch, -step_pitch) if backward else (0, batch_pitch, step_pitch)


def step_row(item: Value, row: int, rows: int, step: Value | int, batch_pitch: Value, step_pitch: Value) -> Value:
    """Return the row of a layer's inputs or outputs for one row of an item's batch at a step."""
    return (item * rows + row) * batch_pitch + step * step_pitch


def keeps_int8(target: Target) -> bool:
    """Return whether int8 weights are packed without conversion.

    Converting 16 at a time is as fast as loading floats; converting 8 at a time is slower.
    """
    return target.vector_bytes == 64


def packed_weights(target: Target, weights: Pointer, narrow: bool) -> Pointer:
    """Return the pointer to packed weights: float32, or int8 if they are narrow and not converted."""
    return weights.cast(i8, 4) if narrow and keeps_int8(target) else weights.cast(f32, 4)


class GateSums:
    """Sums of the gates for one vector of cells and several rows."""

    def __init__(self, rows: int, gates: int, lanes: int, chains: int = CHAINS) -> None:
        self.rows, self.gates, self.lanes, self.chains = rows, gates, lanes, chains
        self.sums = kl.registers(f32, lanes, rows, gates, chains)

    def start(self, row: int, gate: int, v: Value) -> None:
        """Initialize the sum of a gate."""
        self.sums[row, gate, 0] = v
        for chain in range(1, self.chains):
            self.sums[row, gate, chain] = kl.zeros(f32, self.lanes)

    def add(self, h: Pointer, pitch: Any, weights: Pointer, depth: Any) -> Pointer:
        """Add the products of rows of h, with `depth` elements each, and packed weights; return the weights' end."""
        w = weights
        for k in range(0, depth, self.chains):
            for chain in range(self.chains):
                values = [(h + (row * pitch + k))[chain].splat(self.lanes) for row in range(self.rows)]
                for gate in range(self.gates):
                    v = w.load((chain * self.gates + gate) * self.lanes, self.lanes).to(f32)
                    for row in range(self.rows):
                        self.sums[row, gate, chain] = kl.fma(values[row], v, self.sums[row, gate, chain])
            w = w + self.chains * self.gates * self.lanes
        return w

    def total(self, row: int, gate: int) -> Value:
        """Return the sum of a gate."""
        total = self.sums[row, gate, 0]
        for chain in range(1, self.chains):
            total = total + self.sums[row, gate, chain]
        return total


def clip(x: Value, limit: Value) -> Value:
    """Limit x to [-limit, limit] if the limit is positive; NaN is preserved."""
    return kl.select(limit > 0.0, kl.minimum(limit, kl.maximum(-limit, x)), x)


def load_padded(into: Pointer, source: Pointer, n: Any, size: Any, lanes: int) -> None:
    """Copy n elements and append zeros up to `size`, a multiple of `lanes`."""
    for i in range(0, size, lanes):
        into.store(source.load(i, lanes, kl.tail_mask(n - i, lanes)), i)


def store_row(into: Pointer, source: Pointer, n: Any, lanes: int) -> None:
    """Copy n elements by vectors, masking the last one."""
    for i in range(0, n, lanes):
        into.store(source.load(i, lanes), i, mask=kl.tail_mask(n - i, lanes))


def load_states(into: Pointer, source: Pointer, count: Any, n: Any, size: Any, lanes: int) -> None:
    """Copy `count` rows of n elements, and append zeros to each up to `size`."""
    for row in range(count):
        load_padded(into + row * size, source + row * n, n, size, lanes)


def store_states(into: Pointer, source: Pointer, count: Any, n: Any, size: Any, lanes: int) -> None:
    """Copy `count` rows of n elements from padded rows of `size`."""
    for row in range(count):
        store_row(into + row * n, source + row * size, n, lanes)


def in_row_groups(count: Value, rows: int, compute: Callable[..., None], *arguments: Any) -> None:
    """Call compute(number, first row, *arguments) for `rows` of `count` rows at a time, then for single ones."""
    full = count // rows * rows
    for row in range(0, full, rows):
        compute(rows, row, *arguments)
    for row in range(full, count):
        compute(1, row, *arguments)


VARIANCE_EPSILON = 1e-8
"""Addend of the variance. Source: LiteRT, kernels/internal/reference/portable_tensor_utils.cc."""


def layer_normalize(z: Pointer, norms: Pointer, cells: Value, wide: Value, lanes: int) -> None:
    """Normalize `cells` elements, padded with zeros to `wide`, in place; multiply by coefficients and add a bias.

    norms: the coefficients, followed by the bias.
    """
    count = cells.to(f32)
    total = kl.zeros(f32, lanes)
    for i in range(0, wide, lanes):
        total = total + z.load(i, lanes)
    mean = kl.reduce_add(total) / count
    squares = kl.zeros(f32, lanes)
    for i in range(0, wide, lanes):
        deviation = kl.select(kl.tail_mask(cells - i, lanes), z.load(i, lanes) - mean, 0.0)
        squares = kl.fma(deviation, deviation, squares)
    factor = 1.0 / kl.sqrt(kl.reduce_add(squares) / count + VARIANCE_EPSILON)
    for i in range(0, wide, lanes):
        mask = kl.tail_mask(cells - i, lanes)
        scaled = (z.load(i, lanes) - mean) * factor
        z.store(kl.fma(scaled, norms.load(i, lanes, mask), (norms + cells).load(i, lanes, mask)), i)


SUMS = {float32: float32, int16: int32}
"""Accumulator dtype by the dtype of states."""


@kl.family
def filters_over_time(
    work: Work,
    features: ptr[u8],
    state: ptr[u8],
    time: ptr[u8],
    y: ptr[u8],
    units: i64,
    memory: i64,
    pitch: i64,
    rank: i64,
    *more: i64,
    source: DType,
    total: DType,
    lanes: int,
    epilogue: Any,
) -> None:
    """Apply the time filters. A work item is a unit of a row: `rank` filters with states of `memory` elements."""
    features, state, time = (p.cast(source, source.size) for p in (features, state, time))
    out, finish = y.cast(epilogue.expr.dtype), epilogue.bind(more)
    for item in work.items():
        row, unit = item // units, item % units
        total_sum = kl.zeros(total)
        for f in range(rank):
            past, weights = state + (item * rank + f) * memory, time + (unit * rank + f) * memory
            newest = features[item * rank + f]
            sums = kl.zeros(total, lanes)
            last = memory - 1
            for i in range(0, last, lanes):  # loads are ahead of the stores
                mask = kl.tail_mask(last - i, lanes)
                v = (past + 1).load(i, lanes, mask)
                past.store(v, i, mask)
                sums = sums + v.to(total) * weights.load(i, lanes, mask).to(total)
            past[last] = newest
            total_sum = total_sum + kl.reduce_add(sums) + newest.to(total) * weights[last].to(total)
        out[row * pitch + unit] = finish(total_sum, row, unit, 0)


@selector(Svdf)
def select_svdf(form: Svdf, build: Builder) -> None:
    """Select for float32 and int16. Vectors are no longer than a filter's state."""
    features, state, time, y = form.features, form.state, form.time, form.output
    dtype = features.dtype
    if dtype not in SUMS or state.dtype is not dtype or time.dtype is not dtype or len(y.shape) != 2 or not y.size:
        raise NoKernel(f"filters of {features!r} over {state!r} by {time!r}")
    if any(b.parent is not None for b in (features, state, time)) or len(time.shape) != 2 or not time.size:
        raise NoKernel(f"filters by {time!r}")
    (batch, units), (filters, memory) = y.shape, time.shape
    if filters % units or features.size != batch * filters or state.size != features.size * memory:
        raise NoKernel(f"filters of {features!r} over {state!r} by {time!r} to {y!r}")
    epilogue, more = epilogue_of(form.expr, form.operands, y, build)
    words = [
        build.pointer(features),
        build.pointer(state),
        build.pointer(time),
        build.pointer(y),
        units,
        memory,
        y.pitch,
        filters // units,
        *more,
    ]
    lanes = min(host().vector_bytes // SUMS[dtype].size, 1 << max(1, (memory - 2).bit_length()))
    code = filters_over_time.code(more=len(more), source=dtype, total=SUMS[dtype], lanes=lanes, epilogue=epilogue)
    items = batch * units
    build.step(code, words, items, chunk=grain(filters // units * memory * 3 * dtype.size, items))
