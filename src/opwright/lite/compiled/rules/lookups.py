"""Slices by index: GATHER, GATHER_ND, SCATTER_ND, EMBEDDING_LOOKUP, EMBEDDING_LOOKUP_SPARSE, DYNAMIC_UPDATE_SLICE,
SPARSE_TO_DENSE; by key: HASHTABLE_LOOKUP.

Lives here: these rules.  Not here: slices whose places the file knows (views.py).
"""

from __future__ import annotations

import numpy as np

from ....compiler.kernels.expression import DTYPES
from ....compiler.loops.expressions import Expr, apply, arg, const, convert, scalar
from ....compiler.loops.forms import Buffer, Gather, GatherNd, IndexMap, KeyPlaces, Map, Move, ScatterNd, UpdateSlice
from ....core.dtypes import float16, float32, int8, int16, int32, int64, uint8
from ..nodes import At, Operand, Refused
from .below_a_byte import as_bytes, check_whole_bytes
from .elementwise import truth
from .moving import same_numbers
from .registry import rule


def _check(indices: Operand, n: int) -> None:
    """Raises Refused for indices of other types, and for constants outside."""
    if indices.dtype not in (int16, int32, int64):
        raise Refused(f"indices {indices}")
    known = indices.constant
    if known is not None and known.size and not 0 <= int(known.min()) <= int(known.max()) < n:
        raise Refused("an index is out of bounds")


@rule("GATHER")
def gather(at: At) -> None:
    x, indices, axis, batch = at.operand(0), at.operand(1), at.option("axis"), at.option("batch_dims")
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise Refused(f"axis {axis} of {rank}")
    axis, batch = axis % rank, batch + len(indices.shape) if batch < 0 else batch
    if not 0 <= batch <= min(len(indices.shape), axis) or x.shape[:batch] != indices.shape[:batch]:
        raise Refused(f"batch_dims {batch}")
    y = at.output((*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]))
    same_numbers(x, y)
    _check(indices, x.shape[axis])
    at.form(Gather, y.buffer, x.buffer, indices.buffer, axis, batch)


@rule("GATHER_ND")
def gather_nd(at: At) -> None:
    x, indices = at.operand(0), at.operand(1)
    depth = indices.shape[-1] if indices.shape else 0
    if not 0 < depth <= len(x.shape):
        raise Refused(f"slices of {x} at {indices}")
    y = at.output((*indices.shape[:-1], *x.shape[depth:]))
    same_numbers(x, y)
    _check_places(indices, depth, x.shape)
    at.form(GatherNd, y.buffer, x.buffer, indices.buffer)


def _check_places(indices: Operand, depth: int, shape: tuple[int, ...]) -> None:
    """Raises Refused for constant coordinates outside."""
    if indices.constant is not None:
        places = indices.constant.reshape(-1, depth)
        if (places < 0).any() or (places >= np.array(shape[:depth])).any():
            raise Refused("an index is out of bounds")


@rule("SCATTER_ND")
def scatter_nd(at: At) -> None:
    indices, updates = at.operand(0), at.operand(1)
    sizes = tuple(int(n) for n in at.constant(2).reshape(-1))
    depth = indices.shape[-1] if indices.shape else 0
    if not 0 < depth <= len(sizes) or updates.shape != (*indices.shape[:-1], *sizes[depth:]) or min(sizes) < 1:
        raise Refused(f"{updates} at {indices}")
    y = at.output(sizes)
    same_numbers(updates, y)
    check_whole_bytes(updates)
    _check_places(indices, depth, sizes)
    at.form(ScatterNd, y.buffer, updates.buffer, indices.buffer)


@rule("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(at: At) -> None:
    x, update, starts = (at.operand(i) for i in range(3))
    y = at.output(x.shape)
    same_numbers(x, y)
    same_numbers(update, y)
    if len(update.shape) != len(x.shape) or any(u > n for u, n in zip(update.shape, x.shape)):
        raise Refused(f"{update} into {x}")
    if starts.shape != (len(x.shape),):
        raise Refused(f"places {starts}")
    at.form(UpdateSlice, y.buffer, x.buffer, update.buffer, starts.buffer)


@rule("EMBEDDING_LOOKUP")
def embedding_lookup(at: At) -> None:
    indices, table = at.operand(0), at.operand(1)
    if len(table.shape) < 2 or len(indices.shape) != 1:
        raise Refused(f"rows {indices} of {table}")
    y = at.output((*indices.shape, *table.shape[1:]))
    _check(indices, table.shape[0])
    if not indices.size:
        at.form(Move, y.buffer, (), (), 0)
        return
    if table.tensor.blocks is not None:
        _rows_of_blocks(at, table, indices, y)
        return
    if table.is_quantized and y.dtype in (float32, float16):
        _real_rows(at, as_bytes(at, table), indices, y)
        return
    same_numbers(table, y)
    at.form(Gather, y.buffer, table.buffer, indices.buffer, 0)


def _rows_of_blocks(at: At, table: Operand, indices: Operand, y: Operand) -> None:
    """Rows of int4 or int2 whose blocks have a scale each."""
    blocks = table.tensor.blocks
    assert blocks is not None
    scales = blocks.scales.constant
    rows, n = table.shape[0], y.size // indices.size
    fits = scales is not None and scales.dtype == np.float16 and scales.size * blocks.size == table.size
    if scales is None or not fits or len(table.shape) != 2 or y.dtype not in (float32, float16):
        raise Refused(f"a table {table} with scales by block")
    count = scales.size // rows
    factors = scales.reshape(rows, count).astype(np.float32)
    known = Buffer(f"{table.buffer.name}.scales", float32, factors.shape, factors)
    source = as_bytes(at, table)
    found, taken = at.new(source.dtype, y.shape, ".rows"), at.new(float32, (indices.size, count), ".scales")
    at.form(Gather, found, source.buffer, indices.buffer, 0)
    at.form(Gather, taken, known, indices.buffer, 0)
    shape = (indices.size, count, n // count)
    out, close = at.under(y, shape)
    real = apply("mul", convert(arg(0, source.dtype), float32), arg(1, float32))
    at.form(Map, out, (at.viewed(found, shape), at.viewed(taken, (*shape[:2], 1))), convert(real, y.dtype))
    close()


def _real_rows(at: At, table: Operand, indices: Operand, y: Operand) -> None:
    """Rows of integers as the real numbers that they stand for; each may have a scale of its own."""
    scales = table.scales
    by_row = scales.size > 1
    if table.zero or table.dtype not in (int8, uint8) or (by_row and (
            scales.size != table.shape[0] or int(table.tensor.quantization.quantized_dimension))):  # fmt: skip
        raise Refused(f"a table {table} with {scales.size} scales, zero point {table.zero}")
    rows, scale = at.new(table.dtype, y.shape, ".rows"), scalar(float(scales[0]), float32)
    operands: tuple[Buffer, ...] = ()
    at.form(Gather, rows, table.buffer, indices.buffer, 0)
    if by_row:
        known = Buffer(f"{table.buffer.name}.scales", float32, scales.shape, np.ascontiguousarray(scales))
        found = at.new(float32, indices.shape, ".scales")
        at.form(Gather, found, known, indices.buffer, 0)
        operands, scale = (at.viewed(found, (*indices.shape, *(1,) * (len(y.shape) - 1))),), arg(1, float32)
    signed = apply("bitcast", arg(0, table.dtype), dtype=int8)  # the official kernel reads uint8 as int8
    real = apply("mul", convert(signed, float32), scale)
    at.form(Map, y.buffer, (rows, *operands), convert(real, y.dtype))


@rule("SPARSE_TO_DENSE")
def sparse_to_dense(at: At) -> None:
    """Of several values at one place the last counts."""
    indices, values = at.operand(0), at.operand(2)
    sizes, default = tuple(int(n) for n in at.constant(1).reshape(-1)), at.operand(3)
    if indices.dtype not in (int32, int64) or len(indices.shape) > 2 or min(sizes, default=0) < 1 or default.size != 1:
        raise Refused(f"values at {indices}")
    y = at.output(sizes)
    same_numbers(values, y)
    depth = len(sizes)
    count = indices.shape[0] if indices.shape else 1
    if (len(indices.shape) == 2 and indices.shape[1] != depth) or (len(indices.shape) < 2 and depth != 1):
        raise Refused(f"indices {indices} of {list(sizes)}")
    _check_places(indices, depth, sizes)
    given = values.buffer
    if values.shape != (count,):
        given = at.new(values.dtype, (count,), ".values")
        at.form(Map, given, (at.viewed(values.buffer, ()),), arg(0, values.dtype))
    places, known = at.viewed(indices.buffer, (count, depth)), default.constant
    if known is not None:
        at.form(ScatterNd, y.buffer, given, places, known.reshape(-1)[0].item(), (), "set")
        return
    base = at.new(y.dtype, sizes, ".default")
    at.form(Map, base, (at.viewed(default.buffer, ()),), arg(0, y.dtype))
    at.form(ScatterNd, y.buffer, given, places, 0.0, (base,), "set")


@rule("EMBEDDING_LOOKUP_SPARSE")
def embedding_lookup_sparse(at: At) -> None:
    """Rows times their weights, added up; then divided by what the weights are together."""
    ids, indices, weights, table = (at.operand(i) for i in (0, 1, 3, 4))
    sizes = tuple(int(n) for n in at.constant(2).reshape(-1))[:-1]
    if len(indices.shape) != 2 or indices.shape[1] != len(sizes) + 1 or not sizes or min(sizes) < 1 or not table.size:
        raise Refused(f"rows {ids} of {table} at {indices}")
    if any(o.dtype is not float32 for o in (weights, table)) or indices.dtype is not int32 or len(table.shape) < 2:
        raise Refused(f"rows {ids} of {table} by {weights}")
    n, rest = ids.size, table.shape[1:]
    y = at.output((*sizes, *rest))
    _check(ids, table.shape[0])
    rows, scaled = at.new(float32, (n, *rest), ".rows"), at.new(float32, (n, *rest), ".scaled")
    at.form(Gather, rows, table.buffer, ids.buffer, 0)
    shares = at.viewed(weights.buffer, (n, *(1,) * len(rest)))
    at.form(Map, scaled, (rows, shares), apply("mul", arg(0, float32), arg(1, float32)))
    places = at.new(int32, (n, len(sizes)), ".places")
    at.form(Move, places, (indices.buffer,), (IndexMap((0, 0), places.shape, 0, (indices.shape[1], 1)),))
    combiner = at.option("combiner")
    if combiner in (0, "SUM"):
        at.form(ScatterNd, y.buffer, scaled, places)
        return
    total, together = at.new(float32, y.shape, ".sums"), at.new(float32, sizes, ".together")
    at.form(ScatterNd, total, scaled, places)
    given = weights.buffer
    if combiner == "SQRTN":
        given = at.new(float32, (n,), ".squares")
        at.form(Map, given, (weights.buffer,), apply("square", arg(0, float32)))
    at.form(ScatterNd, together, given, places)
    used, ones = at.new(float32, sizes, ".used"), np.ones(n, np.float32)
    at.form(ScatterNd, used, Buffer(f"{used.name}.ones", float32, (n,), ones), places, 0.0, (), "set")
    along = (*sizes, *(1,) * len(rest))
    by = apply("sqrt", arg(1, float32)) if combiner == "SQRTN" else arg(1, float32)
    there = truth("not_equal", arg(2, float32), const(0.0, float32))
    value = Expr("select", float32, (there, apply("div", arg(0, float32), by), arg(0, float32)))
    at.form(Map, y.buffer, (total, at.viewed(together, along), at.viewed(used, along)), value)


@rule("HASHTABLE_LOOKUP")
def hashtable_lookup(at: At) -> None:
    """Rows of a table by keys that rise. Of a key that is not there the first row, in whose place come zeros."""
    wanted, keys, table = at.operand(0), at.operand(1), at.operand(2)
    known = keys.constant
    if not table.shape or table.shape[0] != keys.size or not keys.size or table.dtype not in DTYPES:
        raise Refused(f"rows of {table} by {keys}")
    if known is not None and (known[1:] < known[:-1]).any():
        raise Refused("keys that fall")
    n, rest = wanted.size, table.shape[1:]
    y, hits = at.output((n, *rest)), at.output((n,), 1)
    same_numbers(table, y)
    check_whole_bytes(table)
    places, rows = at.new(int32, (n,), ".places"), at.new(int32, (n,), ".rows")
    at.form(KeyPlaces, places, keys.buffer, wanted.buffer, known is not None)
    there = truth("greater_equal", arg(0, int32), const(0, int32))
    at.form(Map, hits.buffer, (places,), convert(there, uint8))
    at.form(Map, rows, (places,), apply("maximum", arg(0, int32), const(0, int32)))
    found = at.new(table.dtype, y.shape, ".found")
    at.form(Gather, found, table.buffer, rows, 0)
    nothing = const(False if table.dtype.is_bool else 0, table.dtype)
    at.form(Map, y.buffer, (at.viewed(places, (n, *(1,) * len(rest))), found),
            Expr("select", table.dtype, (there, arg(1, table.dtype), nothing)))  # fmt: skip
