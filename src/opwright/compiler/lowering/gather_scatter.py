"""Gather, scatter and look-ups: slices by computed indices, rows by key, locality-sensitive hashes.

Lives here: the rules of Gather, GatherNd, ScatterNd, their builtins, TensorScatterAdd to -Update,
EMBEDDING_LOOKUP, EMBEDDING_LOOKUP_SPARSE, DYNAMIC_UPDATE_SLICE, SPARSE_TO_DENSE, HASHTABLE_LOOKUP, LSH_PROJECTION,
odml.update_external_kv_cache;
STABLEHLO_GATHER and STABLEHLO_SCATTER, of slices at computed start vectors.
Not here: slices at constant positions (views.py), the kind of reduction that a subgraph computes (pooling.py).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import complex64, complex128, float16, float32, int8, int16, int32, int64, uint8
from ..kernels.expression import DTYPES
from ..loops.buffers import Buffer, IndexMap, row_major
from ..loops.domain_ops import Projection
from ..loops.expressions import Expr, apply, arg, const, convert, scalar
from ..loops.indexing_ops import (
    Gather,
    GatherAt,
    GatherSlices,
    KeyPlaces,
    PutEntries,
    ScatterAt,
    ScatterSlices,
    SliceLayout,
    UpdateSlice,
)
from ..loops.ops import Map, Move, Reinterpret, View
from .context import LoweringContext, NoLowering, RuleOperand
from .operand_expressions import same_numbers, truth
from .pooling import BOOL_KINDS, combination_kind, numbers_of
from .registry import rule
from .type_conversion import as_bytes, check_whole_bytes


def _check(indices: RuleOperand, n: int) -> None:
    """Raise NoLowering for indices of unsupported types and for constant ones out of bounds."""
    if indices.dtype not in (int16, int32, int64):
        raise NoLowering(f"indices {indices}")
    constant = indices.constant
    if constant is not None and constant.size and not 0 <= int(constant.min()) <= int(constant.max()) < n:
        raise NoLowering("an index is out of bounds")


@rule("Gather", "GATHER")
def gather(ctx: LoweringContext) -> None:
    x, indices, axis, batch = ctx.operand(0), ctx.operand(1), ctx.attr("axis"), ctx.attr("batch_dims")
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise NoLowering(f"axis {axis} of {rank}")
    axis, batch = axis % rank, batch + len(indices.shape) if batch < 0 else batch
    if not 0 <= batch <= min(len(indices.shape), axis) or x.shape[:batch] != indices.shape[:batch]:
        raise NoLowering(f"batch_dims {batch}")
    y = ctx.output((*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]))
    same_numbers(x, y)
    _check(indices, x.shape[axis])
    ctx.add(Gather, y.buffer, x.buffer, indices.buffer, axis, batch)


@rule("GatherNd", "GATHER_ND")
def gather_nd(ctx: LoweringContext) -> None:
    x, indices, batch = ctx.operand(0), ctx.operand(1), int(ctx.attr("batch_dims") or 0)
    depth = indices.shape[-1] if indices.shape else 0
    if not 0 < depth <= len(x.shape) - batch or not 0 <= batch < len(indices.shape):
        raise NoLowering(f"slices of {x} at {indices}")
    y = ctx.output((*indices.shape[:-1], *x.shape[batch + depth :]))
    same_numbers(x, y)
    _check_coordinates(indices, depth, x.shape[batch:])
    coordinates = _with_batches(ctx, indices, batch) if batch else indices.buffer
    ctx.add(GatherAt, y.buffer, x.buffer, coordinates)


def _with_batches(ctx: LoweringContext, indices: RuleOperand, batch: int) -> Buffer:
    """Return coordinates with those of their batches before them."""
    *outer, depth = indices.shape
    if indices.dtype not in (int32, int64) or not indices.size:
        raise NoLowering(f"indices {indices}")
    batches = np.moveaxis(np.indices(outer)[:batch], 0, -1).astype(indices.dtype.np).reshape(-1, batch)
    rows = len(batches)
    constant = Buffer(f"{indices.buffer.name}.batches", indices.dtype, batches.shape, np.ascontiguousarray(batches))
    joined = ctx.new(indices.dtype, (*outer, batch + depth), ".coordinates")
    with ctx.reshaped(joined, (rows, batch + depth)) as out:
        boxes = [IndexMap((0, first), (rows, size), 0, (size, 1)) for first, size in ((0, batch), (batch, depth))]
        ctx.add(Move, out, (constant, indices.buffer), tuple(boxes))
    return joined


def _check_coordinates(indices: RuleOperand, depth: int, shape: tuple[int, ...]) -> None:
    """Raise NoLowering for constant coordinates out of bounds."""
    if indices.constant is not None:
        coordinates = indices.constant.reshape(-1, depth)
        if (coordinates < 0).any() or (coordinates >= np.array(shape[:depth])).any():
            raise NoLowering("an index is out of bounds")


@rule("SCATTER_ND", "ScatterNd")
def scatter_nd(ctx: LoweringContext) -> None:
    indices, updates = ctx.operand(0), ctx.operand(1)
    sizes = tuple(int(n) for n in ctx.constant(2).reshape(-1))
    depth = indices.shape[-1] if indices.shape else 0
    if not 0 < depth <= len(sizes) or updates.shape != (*indices.shape[:-1], *sizes[depth:]) or min(sizes) < 1:
        raise NoLowering(f"{updates} at {indices}")
    y = ctx.output(sizes)
    same_numbers(updates, y)
    check_whole_bytes(updates)
    _check_coordinates(indices, depth, sizes)
    ctx.add(ScatterAt, y.buffer, updates.buffer, indices.buffer)


TENSOR_SCATTERS: dict[str, Literal["sum", "set", "max", "min"]] = {
    "TensorScatterAdd": "sum",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
    "TensorScatterSub": "sum",
    "TensorScatterUpdate": "set",
}
"""Kinds of updates of a tensor by operator; differences are sums of negated updates."""


@rule(*TENSOR_SCATTERS)
def tensor_scatter(ctx: LoweringContext) -> None:
    """Lower updates of a tensor at computed coordinates, in order."""
    x, indices, updates = (ctx.operand(i) for i in range(3))
    depth = indices.shape[-1] if indices.shape else 0
    if not 0 < depth <= len(x.shape) or updates.shape != (*indices.shape[:-1], *x.shape[depth:]):
        raise NoLowering(f"{updates} at {indices} of {x}")
    y = ctx.output(x.shape)
    for operand in (x, updates):
        same_numbers(operand, y)
        check_whole_bytes(operand)
    _check_coordinates(indices, depth, x.shape)
    values = updates.buffer
    if ctx.operator == "TensorScatterSub":
        values = ctx.new(updates.dtype, updates.shape, ".negated")
        ctx.add(Map, values, (updates.buffer,), apply("neg", arg(0, updates.dtype)))
    ctx.add(ScatterAt, y.buffer, values, indices.buffer, 0.0, (x.buffer,), TENSOR_SCATTERS[ctx.operator])


@rule("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(ctx: LoweringContext) -> None:
    x, update, starts = (ctx.operand(i) for i in range(3))
    y = ctx.output(x.shape)
    same_numbers(x, y)
    same_numbers(update, y)
    if len(update.shape) != len(x.shape) or any(u > n for u, n in zip(update.shape, x.shape)):
        raise NoLowering(f"{update} into {x}")
    if starts.shape != (len(x.shape),):
        raise NoLowering(f"start indices {starts}")
    if not update.size:
        ctx.add(View, y.buffer, x.buffer)
        return
    ctx.add(UpdateSlice, y.buffer, x.buffer, update.buffer, starts.buffer)


@rule("EMBEDDING_LOOKUP")
def embedding_lookup(ctx: LoweringContext) -> None:
    indices, table = ctx.operand(0), ctx.operand(1)
    if len(table.shape) < 2 or len(indices.shape) != 1:
        raise NoLowering(f"rows {indices} of {table}")
    y = ctx.output((*indices.shape, *table.shape[1:]))
    _check(indices, table.shape[0])
    if not indices.size:
        ctx.add(Move, y.buffer, (), (), 0)
        return
    if table.blocks is not None:
        _rows_of_blocks(ctx, table, indices, y)
        return
    if table.is_quantized and y.dtype in (float32, float16):
        _real_rows(ctx, as_bytes(ctx, table), indices, y)
        return
    same_numbers(table, y)
    ctx.add(Gather, y.buffer, table.buffer, indices.buffer, 0)


def _rows_of_blocks(ctx: LoweringContext, table: RuleOperand, indices: RuleOperand, y: RuleOperand) -> None:
    """Lower an embedding look-up in a table of int4 or int2 with blockwise scales."""
    blocks = table.blocks
    assert blocks is not None
    scales = blocks.scales
    row_count, n = table.shape[0], y.size // indices.size
    fits = scales is not None and scales.dtype == np.float16 and scales.size * blocks.size == table.size
    if scales is None or not fits or len(table.shape) != 2 or y.dtype not in (float32, float16):
        raise NoLowering(f"a table {table} with scales by block")
    count = scales.size // row_count
    factors = scales.reshape(row_count, count).astype(np.float32)
    table_scales = Buffer(f"{table.buffer.name}.scales", float32, factors.shape, factors)
    source = as_bytes(ctx, table)
    rows, row_scales = ctx.new(source.dtype, y.shape, ".rows"), ctx.new(float32, (indices.size, count), ".scales")
    ctx.add(Gather, rows, source.buffer, indices.buffer, 0)
    ctx.add(Gather, row_scales, table_scales, indices.buffer, 0)
    shape = (indices.size, count, n // count)
    with ctx.reshaped(y, shape) as out:
        real = apply("mul", convert(arg(0, source.dtype), float32), arg(1, float32))
        ctx.add(Map, out, (ctx.viewed(rows, shape), ctx.viewed(row_scales, (*shape[:2], 1))), convert(real, y.dtype))


def _real_rows(ctx: LoweringContext, table: RuleOperand, indices: RuleOperand, y: RuleOperand) -> None:
    """Lower an embedding look-up in a quantized table, with a scale per tensor or per row."""
    scales = table.scales
    by_row = scales.size > 1
    if (
        table.zero
        or table.dtype not in (int8, uint8)
        or (by_row and (scales.size != table.shape[0] or int(table.quantization.axis)))
    ):
        raise NoLowering(f"a table {table} with {scales.size} scales, zero point {table.zero}")
    rows, scale = ctx.new(table.dtype, y.shape, ".rows"), scalar(float(scales[0]), float32)
    operands: tuple[Buffer, ...] = ()
    ctx.add(Gather, rows, table.buffer, indices.buffer, 0)
    if by_row:
        table_scales = Buffer(f"{table.buffer.name}.scales", float32, scales.shape, np.ascontiguousarray(scales))
        row_scales = ctx.new(float32, indices.shape, ".scales")
        ctx.add(Gather, row_scales, table_scales, indices.buffer, 0)
        operands, scale = (ctx.viewed(row_scales, (*indices.shape, *(1,) * (len(y.shape) - 1))),), arg(1, float32)
    signed = apply("bitcast", arg(0, table.dtype), dtype=int8)  # the official kernel reads uint8 as int8
    real = apply("mul", convert(signed, float32), scale)
    ctx.add(Map, y.buffer, (rows, *operands), convert(real, y.dtype))


@rule("SPARSE_TO_DENSE")
def sparse_to_dense(ctx: LoweringContext) -> None:
    """Lower SPARSE_TO_DENSE; the last of several values at the same coordinates wins."""
    indices, values = ctx.operand(0), ctx.operand(2)
    sizes, default = tuple(int(n) for n in ctx.constant(1).reshape(-1)), ctx.operand(3)
    if indices.dtype not in (int32, int64) or len(indices.shape) > 2 or min(sizes, default=0) < 1 or default.size != 1:
        raise NoLowering(f"values at {indices}")
    y = ctx.output(sizes)
    same_numbers(values, y)
    depth = len(sizes)
    count = indices.shape[0] if indices.shape else 1
    if (len(indices.shape) == 2 and indices.shape[1] != depth) or (len(indices.shape) < 2 and depth != 1):
        raise NoLowering(f"indices {indices} of {list(sizes)}")
    _check_coordinates(indices, depth, sizes)
    updates = values.buffer
    if values.shape != (count,):
        updates = ctx.new(values.dtype, (count,), ".values")
        ctx.add(Map, updates, (ctx.viewed(values.buffer, ()),), arg(0, values.dtype))
    coordinates, fill = ctx.viewed(indices.buffer, (count, depth)), default.constant
    if fill is not None:
        ctx.add(ScatterAt, y.buffer, updates, coordinates, fill.reshape(-1)[0].item(), (), "set")
        return
    base = ctx.new(y.dtype, sizes, ".default")
    ctx.add(Map, base, (ctx.viewed(default.buffer, ()),), arg(0, y.dtype))
    ctx.add(ScatterAt, y.buffer, updates, coordinates, 0.0, (base,), "set")


@rule("EMBEDDING_LOOKUP_SPARSE")
def embedding_lookup_sparse(ctx: LoweringContext) -> None:
    """Lower a weighted sum of embeddings per segment, normalized by the combiner."""
    ids, indices, weights, table = (ctx.operand(i) for i in (0, 1, 3, 4))
    sizes = tuple(int(n) for n in ctx.constant(2).reshape(-1))[:-1]
    if len(indices.shape) != 2 or indices.shape[1] != len(sizes) + 1 or min(sizes, default=1) < 1 or not table.size:
        raise NoLowering(f"rows {ids} of {table} at {indices}")
    if any(o.dtype is not float32 for o in (weights, table)) or indices.dtype is not int32 or len(table.shape) < 2:
        raise NoLowering(f"rows {ids} of {table} by {weights}")
    n, inner = ids.size, table.shape[1:]
    y = ctx.output((*sizes, *inner))
    _check(ids, table.shape[0])
    rows, scaled = ctx.new(float32, (n, *inner), ".rows"), ctx.new(float32, (n, *inner), ".scaled")
    ctx.add(Gather, rows, table.buffer, ids.buffer, 0)
    row_weights = ctx.viewed(weights.buffer, (n, *(1,) * len(inner)))
    ctx.add(Map, scaled, (rows, row_weights), apply("mul", arg(0, float32), arg(1, float32)))
    if sizes:
        coordinates = ctx.new(int32, (n, len(sizes)), ".places")
        ctx.add(Move, coordinates, (indices.buffer,), (IndexMap((0, 0), coordinates.shape, 0, (indices.shape[1], 1)),))
    else:  # one segment
        sizes = (1,)
        coordinates = Buffer(f"{y.buffer.name}.places", int32, (n, 1), np.zeros((n, 1), np.int32))
    with ctx.reshaped(y, (*sizes, *inner)) as sums:
        _add_segments(ctx, sums, scaled, coordinates, sizes)


def _add_segments(ctx: LoweringContext, y: Buffer, scaled: Buffer, coordinates: Buffer, sizes: tuple[int, ...]) -> None:
    """Add rows up by segment, and divide the sums as the combiner says. y: [*sizes, ...]."""
    combiner, weights, n, inner = ctx.attr("combiner"), ctx.operand(3), scaled.shape[0], scaled.shape[1:]
    if combiner in (0, "SUM"):
        ctx.add(ScatterAt, y, scaled, coordinates)
        return
    total, norms = ctx.new(float32, y.shape, ".sums"), ctx.new(float32, sizes, ".together")
    ctx.add(ScatterAt, total, scaled, coordinates)
    norm_weights = weights.buffer
    if combiner == "SQRTN":
        norm_weights = ctx.new(float32, (n,), ".squares")
        ctx.add(Map, norm_weights, (weights.buffer,), apply("square", arg(0, float32)))
    ctx.add(ScatterAt, norms, norm_weights, coordinates)
    used, ones = ctx.new(float32, sizes, ".used"), np.ones(n, np.float32)
    ctx.add(ScatterAt, used, Buffer(f"{used.name}.ones", float32, (n,), ones), coordinates, 0.0, (), "set")
    along = (*sizes, *(1,) * len(inner))
    by = apply("sqrt", arg(1, float32)) if combiner == "SQRTN" else arg(1, float32)
    is_used = truth("not_equal", arg(2, float32), const(0.0, float32))
    value = Expr("select", float32, (is_used, apply("div", arg(0, float32), by), arg(0, float32)))
    ctx.add(Map, y, (total, ctx.viewed(norms, along), ctx.viewed(used, along)), value)


COMPLEX_WORDS = {complex64: int32, complex128: int64}
"""Types of integers as which the parts of complex numbers are copied."""


@rule("HASHTABLE_LOOKUP")
def hashtable_lookup(ctx: LoweringContext) -> None:
    """Lower a look-up of rows by ascending keys; missing keys select row 0, whose elements are replaced by zeros."""
    queries, keys, table = ctx.operand(0), ctx.operand(1), ctx.operand(2)
    constant_keys = keys.constant
    parts = COMPLEX_WORDS.get(table.dtype)
    if not table.shape or table.shape[0] != keys.size or not keys.size or (table.dtype not in DTYPES and not parts):
        raise NoLowering(f"rows of {table} by {keys}")
    if constant_keys is not None and (constant_keys[1:] < constant_keys[:-1]).any():
        raise NoLowering("the keys do not ascend")
    y, hits = ctx.output((queries.size, *table.shape[1:])), ctx.output((queries.size,), 1)
    same_numbers(table, y)
    check_whole_bytes(table)
    target = y.buffer
    if parts is not None:
        table = table.with_buffer(ctx.bits(table.buffer, parts, (*table.shape, 2)))
        target = ctx.new(parts, (*y.shape, 2), ".words")
    n, inner = queries.size, table.shape[1:]
    positions, rows = ctx.new(int32, (n,), ".places"), ctx.new(int32, (n,), ".rows")
    ctx.add(KeyPlaces, positions, keys.buffer, queries.buffer, constant_keys is not None)
    is_hit = truth("greater_equal", arg(0, int32), const(0, int32))
    ctx.add(Map, hits.buffer, (positions,), convert(is_hit, uint8))
    ctx.add(Map, rows, (positions,), apply("maximum", arg(0, int32), const(0, int32)))
    selected = ctx.new(table.dtype, target.shape, ".selected")
    ctx.add(Gather, selected, table.buffer, rows, 0)
    zero = const(False if table.dtype.is_bool else 0, table.dtype)
    ctx.add(
        Map,
        target,
        (ctx.viewed(positions, (n, *(1,) * len(inner))), selected),
        Expr("select", table.dtype, (is_hit, arg(1, table.dtype), zero)),
    )
    if target is not y.buffer:
        ctx.add(Reinterpret, y.buffer, target)


@rule(custom=("odml.update_external_kv_cache",))
def update(ctx: LoweringContext) -> None:
    """Lower an update of a key-value cache."""
    positions = ctx.operand(2)
    for index in range(2):
        cache, entries = ctx.operand(index), ctx.operand(3 + index)
        y = ctx.output(cache.shape, index)
        fits = entries.shape == (1, positions.size, *cache.shape[2:]) and cache.shape[0] == 1 and entries.size
        if not fits or {cache.dtype, entries.dtype, y.dtype} != {float32} or positions.dtype is not int32:
            raise NoLowering(f"{entries} in {cache} at {positions}")
        with ctx.reshaped(y, cache.shape[1:]) as out:
            ctx.add(
                PutEntries,
                out,
                ctx.viewed(cache.buffer, cache.shape[1:]),
                ctx.viewed(entries.buffer, entries.shape[1:]),
                positions.buffer,
            )


@rule("LSH_PROJECTION")
def projection(ctx: LoweringContext) -> None:
    """Lower LSH_PROJECTION; rows of numbers are hashed as bytes."""
    hash, x, weights = ctx.operand(0), ctx.operand(1), ctx.optional(2)
    check_whole_bytes(x)
    kind = ctx.attr("type")
    if kind not in ("SPARSE", "DENSE") or hash.dtype is not float32 or len(hash.shape) != 2 or not x.shape:
        raise NoLowering(f"hashes of {x} by {hash}, {kind}")
    functions, bits = hash.shape
    if (
        not hash.size
        or not x.size
        or bits > 32
        or (weights is not None and (weights.dtype is not float32 or weights.shape != x.shape[:1]))
    ):
        raise NoLowering(f"hashes of {x} by {hash} and {weights}")
    y = ctx.output((functions,) if kind == "SPARSE" else (functions * bits,))
    size, factors = x.dtype.size, () if weights is None else (weights.buffer,)
    rows = ctx.bits(x.buffer, uint8, (x.shape[0], x.size // x.shape[0] * size))
    ctx.add(Projection, y.buffer, hash.buffer, rows, factors, kind == "SPARSE", size)


def _vectors(ctx: LoweringContext, indices: RuleOperand, along: int) -> Buffer:
    """Return start vectors as [batch..., components]. along: the dimension of the components."""
    if indices.dtype not in (int32, int64) or not 0 <= along <= len(indices.shape):
        raise NoLowering(f"start vectors {indices} along dimension {along}")
    shape, rank = indices.shape, len(indices.shape)
    if along == rank:
        return ctx.viewed(indices.buffer, (*shape, 1))
    if along == rank - 1:
        return indices.buffer
    order = [*range(along), *range(along + 1, rank), along]
    steps = row_major(shape)
    transposed = ctx.new(indices.dtype, [shape[d] for d in order], ".vectors")
    box = IndexMap((0,) * rank, transposed.shape, 0, tuple(steps[d] for d in order))
    ctx.add(Move, transposed, (indices.buffer,), (box,))
    return transposed


def _layout(
    x: RuleOperand, vectors: Buffer, slices: tuple[int, ...], mapped: list[int], offsets: list[int], dropped: list[int]
) -> SliceLayout:
    """Return the layout of slices. Raises NoLowering if start vectors, slices and tensor are inconsistent."""
    rank = len(x.shape)
    window_dims = [d for d in range(rank) if d not in dropped]
    batch = tuple(n for d, n in enumerate(slices) if d not in offsets)
    if (
        len(mapped) != vectors.shape[-1]
        or len(window_dims) != len(offsets)
        or batch != vectors.shape[:-1]
        or sorted({*mapped, *dropped, *range(rank)}) != list(range(rank))
        or sorted({*offsets, *range(len(slices))}) != list(range(len(slices)))
        or len({*mapped}) != len(mapped)
        or list(offsets) != sorted({*offsets})
    ):
        raise NoLowering(f"slices {list(slices)} of {x} at {vectors}")
    return SliceLayout(tuple(mapped), tuple(offsets), tuple(window_dims))


@rule("STABLEHLO_GATHER")
def stablehlo_gather(ctx: LoweringContext) -> None:
    x, indices = ctx.operand(0), ctx.operand(1)
    sizes, collapsed, mapped, offsets = (
        numbers_of(ctx, name) for name in ("slice_sizes", "collapsed_slice_dims", "start_index_map", "offset_dims")
    )
    vectors = _vectors(ctx, indices, int(ctx.attr("index_vector_dim")))
    window_sizes = [n for d, n in enumerate(sizes) if d not in collapsed]
    rank = len(window_sizes) + len(vectors.shape) - 1
    parts, batch = iter(window_sizes), iter(vectors.shape[:-1])
    if len(offsets) != len(window_sizes) or len(sizes) != len(x.shape) or any(not 0 <= d < rank for d in offsets):
        raise NoLowering(f"slices {sizes} of {x} along {offsets}")
    y = ctx.output([next(parts) if d in offsets else next(batch) for d in range(rank)])
    if any(not 0 <= n <= m for n, m in zip(sizes, x.shape)) or any(sizes[d] != 1 for d in collapsed):
        raise NoLowering(f"slices {sizes} of {x}")
    same_numbers(x, y)
    layout = _layout(x, vectors, y.shape, mapped, offsets, collapsed)
    ctx.add(GatherSlices, y.buffer, x.buffer, vectors, layout, tuple(sizes))


@rule("STABLEHLO_SCATTER")
def stablehlo_scatter(ctx: LoweringContext) -> None:
    x, indices, updates = (ctx.operand(i) for i in range(3))
    window, inserted, mapped = (
        numbers_of(ctx, name) for name in ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims")
    )
    y = ctx.output(x.shape)
    if len({x.dtype, updates.dtype, y.dtype}) > 1:
        raise NoLowering(f"updates {updates} of {x}")
    vectors = _vectors(ctx, indices, int(ctx.attr("index_vector_dim")))
    layout = _layout(x, vectors, updates.shape, mapped, window, inserted)
    kind = combination_kind(ctx)
    if kind in ("all", "any") and x.dtype is not bool_:
        raise NoLowering(f"{kind} of {x.dtype.name}")
    ctx.add(
        ScatterSlices,
        y.buffer,
        x.buffer,
        updates.buffer,
        vectors,
        layout,
        BOOL_KINDS[kind] if kind in ("all", "any") else kind or "set",
    )
