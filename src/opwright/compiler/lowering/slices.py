"""STABLEHLO_GATHER and STABLEHLO_SCATTER: slices at computed start vectors.

Lives here: their rules.
Not here: GATHER, GATHER_ND and SCATTER_ND (gather_scatter.py), subgraphs of two numbers (reduce_window.py).
"""

from __future__ import annotations

from ...core.dtypes import bool as bool_
from ...core.dtypes import int32, int64
from ..loops.buffers import Buffer, IndexMap
from ..loops.indexing_ops import GatherSlices, ScatterSlices, SliceLayout
from ..loops.ops import Move
from .context import LoweringContext, NoLowering, RuleOperand
from .data_movement import row_major
from .reduce_window import BOOL_KINDS, combination_kind, numbers_of
from .registry import rule
from .requantization import same_numbers


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
def gather(ctx: LoweringContext) -> None:
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
def scatter(ctx: LoweringContext) -> None:
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
