"""Operators on shape, order and positions of elements as ONNX nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import int64
from ....graph import Node, Value
from .writer import GraphWriter, NoForm, constant_of, rank_of, rule, static

END = np.iinfo(np.int64).max


def _axes(axis: Any) -> list[int]:
    return [axis] if isinstance(axis, int) else [int(a) for a in axis]


@rule("Reshape")
def _reshape(w: GraphWriter, node: Node) -> str:
    x, shape = node.operands
    dims = node.outputs[0].shape.dims
    if shape.constant is None and dims is not None and list(dims).count(None) <= 1 and 0 not in dims:
        return w.op("Reshape", w[x], w.ints([-1 if d is None else d for d in dims]))
    keep_zero = shape.constant is None or bool((shape.constant == 0).any())
    return w.op("Reshape", w[x], w.int64(shape), allowzero=1 if keep_zero else None)


@rule("Transpose")
def _transpose(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    rank, perm = rank_of(x), node.attrs["perm"]
    return w.transpose(w[x], range(rank)[::-1] if perm is None else [p % rank for p in perm])


@rule("Permute")
def _permute(w: GraphWriter, node: Node) -> str:
    x, perm = node.operands
    return w.transpose(w[x], constant_of(perm, "the permutation").tolist())


@rule("ExpandDims")
def _expand_dims(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return w.op("Unsqueeze", w[x], w.ints(_axes(node.attrs["axis"])))


@rule("Squeeze")
def _squeeze(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    axes = _axes(node.attrs["axis"])
    return w.op("Squeeze", w[x], w.ints(axes)) if axes else w.op("Squeeze", w[x])


@rule("Concat")
def _concat(w: GraphWriter, node: Node) -> str:
    return w.op("Concat", *(w[v] for v in node.operands), axis=int(node.attrs["axis"]))


@rule("Pack")
def _pack(w: GraphWriter, node: Node) -> str:
    axis = w.ints([node.attrs["axis"]])
    return w.op("Concat", *(w.op("Unsqueeze", w[v], axis) for v in node.operands), axis=int(node.attrs["axis"]))


@rule("Unpack")
def _unpack(w: GraphWriter, node: Node) -> list[str]:
    (x,) = node.operands
    axis, count = int(node.attrs["axis"]), len(node.outputs)
    parts = w.several("Split", w[x], w.ints([1] * count), outputs=count, axis=axis)
    return [w.op("Squeeze", part, w.ints([axis])) for part in parts]


@rule("Split")
def _split(w: GraphWriter, node: Node) -> list[str]:
    (x,) = node.operands
    count = len(node.outputs)
    return w.several("Split", w[x], outputs=count, axis=int(node.attrs["axis"]), num_outputs=count)


@rule("SplitV")
def _split_v(w: GraphWriter, node: Node) -> list[str]:
    x, sizes = node.operands
    known = [int(s) for s in constant_of(sizes, "the sizes")]
    axis = int(node.attrs["axis"])
    if -1 in known:
        whole = x.shape[axis]
        if whole is None:
            raise NoForm("the size of a part is not known")
        known[known.index(-1)] = whole - sum(known) - 1
    return w.several("Split", w[x], w.ints(known), outputs=len(node.outputs), axis=axis)


@rule("Gather")
def _gather(w: GraphWriter, node: Node) -> str:
    x, indices = node.operands
    axis, batch = node.attrs["axis"] % max(rank_of(x), 1), node.attrs["batch_dims"]
    if not batch:
        return w.op("Gather", w[x], w[indices], axis=axis)
    if batch < 0:
        batch += rank_of(indices)
    if axis == batch:
        positions = w.op("Unsqueeze", w.int64(indices), w.ints([-1]))
        return w.op("GatherND", w[x], positions, batch_dims=batch)
    raise NoForm("the gathered axis does not follow the batch")


@rule("GatherNd")
def _gather_nd(w: GraphWriter, node: Node) -> str:
    x, indices = node.operands
    return w.op("GatherND", w[x], w.int64(indices), batch_dims=int(node.attrs["batch_dims"]))


@rule("Slice")
def _slice(w: GraphWriter, node: Node) -> str:
    x, begin, size = node.operands
    axes = w.ints(range(rank_of(x)))
    starts = w.int64(begin)
    if begin.constant is not None and size.constant is not None:
        ends = [END if s == -1 else b + s for b, s in zip(begin.constant.tolist(), size.constant.tolist())]
        return w.op("Slice", w[x], starts, w.ints(ends), axes)
    wide = w.int64(size)
    whole = w.op("Equal", wide, w.ints([-1]))
    return w.op("Slice", w[x], starts, w.op("Where", whole, w.ints([END]), w.op("Add", starts, wide)), axes)


@rule("StridedSlice")
def _strided_slice(w: GraphWriter, node: Node) -> str:
    """Emit a Slice, then Squeeze and Unsqueeze; the ellipsis and masks are resolved by the rank."""
    x, begin, end, strides = node.operands
    steps, a = constant_of(strides, "the step").tolist(), node.attrs
    masks = {name: int(a[f"{name}_mask"]) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    count, rank = len(steps), rank_of(x)
    new = [i for i in range(count) if masks["new_axis"] >> i & 1 and not masks["ellipsis"] >> i & 1]
    axis, axes, places, shrunk, inserted, position = 0, [], [], [], [], 0
    for i in range(count):
        if masks["ellipsis"] >> i & 1:
            skipped = rank - (count - 1 - len(new))
            axis, position = axis + skipped, position + skipped
        elif i in new:
            inserted.append(position)
            position += 1
        else:
            axes.append(axis)
            places.append(i)
            if masks["shrink_axis"] >> i & 1:
                shrunk.append(axis)
            else:
                position += 1
            axis += 1
    name = w[x]
    if axes:
        starts, ends = _bounds(w, begin, end, steps, places, masks)
        name = w.op("Slice", name, starts, ends, w.ints(axes), w.ints([_step(steps, i, masks) for i in places]))
    if shrunk:
        name = w.op("Squeeze", name, w.ints(shrunk))
    if inserted:
        name = w.op("Unsqueeze", name, w.ints(inserted))
    return name if axes or shrunk or inserted else w.op("Identity", name)


def _step(steps: list[int], i: int, masks: dict[str, int]) -> int:
    return 1 if masks["shrink_axis"] >> i & 1 else steps[i]


def _bounds(
    w: GraphWriter, begin: Value, end: Value, steps: list[int], places: list[int], masks: dict[str, int]
) -> tuple[str, str]:
    """Return the starts and ends of the sliced axes."""
    first = [0 if steps[i] > 0 else END for i in places]
    last = [END if steps[i] > 0 else -END for i in places]
    open_first = [bool(masks["begin"] >> i & 1) and not masks["shrink_axis"] >> i & 1 for i in places]
    single = [bool(masks["shrink_axis"] >> i & 1) for i in places]
    open_last = [bool(masks["end"] >> i & 1) and not s for i, s in zip(places, single)]
    if begin.constant is not None and end.constant is not None:
        b, e = begin.constant.tolist(), end.constant.tolist()
        starts = [f if o else b[i] for i, f, o in zip(places, first, open_first)]
        ends = [x if o else e[i] for i, x, o in zip(places, last, open_last)]
        ends = [(s + 1 or END) if one else e for s, e, one in zip(starts, ends, single)]
        return w.ints(starts), w.ints(ends)
    picked = w.ints(places)
    starts_name, ends_name = (w.op("Gather", w.int64(v), picked, axis=0) for v in (begin, end))
    starts_name = w.op("Where", w.constant(np.array(open_first)), w.ints(first), starts_name)
    after = w.op("Add", starts_name, w.ints([1]))
    after = w.op("Where", w.op("Equal", after, w.ints([0])), w.ints([END]), after)
    ends_name = w.op("Where", w.constant(np.array(open_last)), w.ints(last), ends_name)
    return starts_name, w.op("Where", w.constant(np.array(single)), after, ends_name)


@rule("Reverse")
def _reverse(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    axes = _axes(node.attrs["axis"])
    if not axes:
        return w.op("Identity", w[x])
    n = len(axes)
    return w.op("Slice", w[x], w.ints([-1] * n), w.ints([-END] * n), w.ints(axes), w.ints([-1] * n))


@rule("Roll")
def _roll(w: GraphWriter, node: Node) -> str:
    x, shift = node.operands
    name = w[x]
    shifts = constant_of(shift, "the shift").reshape(-1).tolist()
    for axis, by in zip(_axes(node.attrs["axis"]), shifts):
        size = x.shape[axis]
        if size is None:
            raise NoForm("the size of a rolled axis is not known")
        if size and by % size:
            cut = size - by % size
            parts = w.several("Split", name, w.ints([cut, size - cut]), outputs=2, axis=axis)
            name = w.op("Concat", parts[1], parts[0], axis=axis)
    return w.op("Identity", name)


@rule("Pad")
def _pad(w: GraphWriter, node: Node) -> str:
    x, paddings, *value = node.operands
    return w.op("Pad", w[x], _pads(w, paddings), *(w[v] for v in value), mode="constant")


def _pads(w: GraphWriter, paddings: Value) -> str:
    """Return [before, after] of all axes as a vector: all befores, then all afters."""
    if paddings.constant is not None:
        return w.ints(paddings.constant.T)
    return w.op("Reshape", w.op("Transpose", w.int64(paddings), perm=[1, 0]), w.ints([-1]))


@rule("MirrorPad")
def _mirror_pad(w: GraphWriter, node: Node) -> str:
    x, paddings = node.operands
    if node.attrs["mode"] == "REFLECT":
        return w.op("Pad", w[x], _pads(w, paddings), mode="reflect")
    if constant_of(paddings, "the padding").max(initial=0) > 1:
        raise NoForm("ONNX has no symmetric padding")
    return w.op("Pad", w[x], _pads(w, paddings), mode="edge")


@rule("Tile")
def _tile(w: GraphWriter, node: Node) -> str:
    x, multiples = node.operands
    return w.op("Tile", w[x], w.int64(multiples))


@rule("BroadcastTo")
def _broadcast_to(w: GraphWriter, node: Node) -> str:
    x, shape = node.operands
    return w.op("Expand", w[x], w.int64(shape))


@rule("BroadcastArgs")
def _broadcast_args(w: GraphWriter, node: Node) -> str:
    """Emit the sizes of the first shape, where these are 1 those of the second; the shorter one gets leading ones."""
    shapes = list(node.operands)
    lengths = [static(shape, "the rank of a shape")[0] for shape in shapes]
    ones = [w.ints([1] * (max(lengths) - length)) for length in lengths]
    a, b = (w.op("Concat", one, w.int64(shape), axis=0) for one, shape in zip(ones, shapes))
    return _typed(w, w.op("Where", w.op("Equal", a, w.ints([1])), b, a), node)


@rule("Fill")
def _fill(w: GraphWriter, node: Node) -> str:
    dims, value = node.operands
    return w.op("Expand", w[value], w.int64(dims))


@rule("Range")
def _range(w: GraphWriter, node: Node) -> str:
    return w.op("Range", *(w[v] for v in node.operands))


def _typed(w: GraphWriter, name: str, node: Node) -> str:
    dtype = node.outputs[0].dtype
    return name if dtype is int64 else w.cast(name, dtype)


@rule("Shape", "Size")
def _shape(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return _typed(w, w.op(node.op.name, w[x]), node)


@rule("Rank")
def _rank(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    return _typed(w, w.op("Size", w.op("Shape", w[x])), node)


@rule("ClassLabels")
def _class_labels(w: GraphWriter, node: Node) -> str:
    return w.op("Identity", w[next(iter(node.operands))])  # ONNX has no errors of values


@rule("OneHot")
def _one_hot(w: GraphWriter, node: Node) -> str:
    indices, depth, on, off = node.operands
    values = w.op("Concat", *(w.op("Unsqueeze", w[v], w.ints([0])) for v in (off, on)), axis=0)
    # ONNX counts negative indices from the end; here they are none
    wide = w.int64(indices)
    outside = w.op("Less", wide, w.constant(np.int64(0)))
    positions = w.op("Where", outside, w.constant(np.int64(END // 2)), wide)
    return w.op("OneHot", positions, w.int64(depth, vector=True), values, axis=int(node.attrs["axis"]))


@rule("Where")
def _where(w: GraphWriter, node: Node) -> str:
    (condition,) = node.operands
    return w.op("Transpose", w.op("NonZero", w[condition]), perm=[1, 0])


@rule("ScatterNd")
def _scatter_nd(w: GraphWriter, node: Node) -> str:
    indices, updates, shape = node.operands
    zeros = w.op("Expand", w.number(0, updates), w.int64(shape))
    return w.op("ScatterND", zeros, w.int64(indices), w[updates], reduction="add")


SCATTERS = {
    "TensorScatterUpdate": "none",
    "TensorScatterAdd": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
}


@rule(*SCATTERS)
def _tensor_scatter(w: GraphWriter, node: Node) -> str:
    x, indices, updates = node.operands
    return w.op("ScatterND", w[x], w.int64(indices), w[updates], reduction=SCATTERS[node.op.name])


@rule("DYNAMIC_UPDATE_SLICE")
def _dynamic_update_slice(w: GraphWriter, node: Node) -> str:
    """Emit the write of one row, by which loops fill their results."""
    x, row, start = node.operands
    if list(row.shape) != [1, *list(x.shape)[1:]]:
        raise NoForm("more than a row is written")
    first = w.op("Slice", w.int64(start), w.ints([0]), w.ints([1]))
    return w.op("ScatterND", w[x], w.op("Reshape", first, w.ints([1, 1])), w[row])


@rule("TensorScatterSub")
def _tensor_scatter_sub(w: GraphWriter, node: Node) -> str:
    x, indices, updates = node.operands
    return w.op("ScatterND", w[x], w.int64(indices), w.op("Neg", w[updates]), reduction="add")


@rule("SequenceMask")
def _sequence_mask(w: GraphWriter, node: Node) -> str:
    lengths, *most = node.operands
    wide = w.int64(lengths)
    if most:
        end = w.op("Reshape", w.int64(most[0]), w.ints([]))
    elif node.attrs["maxlen"] >= 0:
        end = w.constant(np.int64(node.attrs["maxlen"]))
    else:
        end = w.op("ReduceMax", wide, keepdims=0)
    end = w.op("Max", end, w.constant(np.int64(0)))  # of no lengths
    positions = w.op("Range", w.constant(np.int64(0)), end, w.constant(np.int64(1)))
    mask = w.op("Less", positions, w.op("Unsqueeze", wide, w.ints([-1])))
    return w.cast(mask, node.outputs[0].dtype)


@rule("NonMaxSuppression")
def _non_max_suppression(w: GraphWriter, node: Node) -> list[str]:
    boxes, scores, most, overlap, least, sigma = node.operands
    if node.attrs["pad_to_max_output_size"] or constant_of(sigma, "sigma").any():
        raise NoForm("ONNX does not pad the boxes, nor lower their scores")
    batched = [w.op("Unsqueeze", w[boxes], w.ints([0])), w.op("Unsqueeze", w[scores], w.ints([0, 1]))]
    limits = w.int64(most, vector=True), *(w.op("Reshape", w[v], w.ints([-1])) for v in (overlap, least))
    chosen = w.op("NonMaxSuppression", *batched, *limits)
    indices = w.op("Gather", chosen, w.constant(np.int64(2)), axis=1)
    kept = w.op("Gather", w[scores], indices)
    return [w.cast(indices, node.outputs[0].dtype), kept, w.cast(w.op("Size", indices), node.outputs[2].dtype)]


@rule("ReverseSequence")
def _reverse_sequence(w: GraphWriter, node: Node) -> str:
    x, lengths = node.operands
    rank = rank_of(x)
    batch, time = node.attrs["batch_axis"] % rank, node.attrs["seq_axis"] % rank
    if {batch, time} != {0, 1}:
        raise NoForm("the axes are not the first two")
    return w.op("ReverseSequence", w[x], w.int64(lengths), batch_axis=batch, time_axis=time)


@rule("TopK")
def _top_k(w: GraphWriter, node: Node) -> list[str]:
    x, k = node.operands
    values, indices = w.several("TopK", w[x], w.int64(k, vector=True), outputs=2, axis=-1, largest=1, sorted=1)
    return [values, w.cast(indices, node.outputs[1].dtype)]


@rule("Sort")
def _sort(w: GraphWriter, node: Node) -> list[str]:
    (x,) = node.operands
    size = w.op("Shape", w[x], start=-1)
    largest = int(node.attrs["direction"] != "ASCENDING")
    values, indices = w.several("TopK", w[x], size, outputs=2, axis=-1, largest=largest, sorted=1)
    return [values, w.cast(indices, node.outputs[1].dtype)]


@rule("MatrixBandPart")
def _band(w: GraphWriter, node: Node) -> str:
    x, *bounds = node.operands
    lower, upper = (int(constant_of(b, "the band")) for b in bounds)
    name = w[x]
    if lower >= 0:
        name = w.op("Trilu", name, w.constant(np.int64(-lower)), upper=1)
    if upper >= 0:
        name = w.op("Trilu", name, w.constant(np.int64(upper)), upper=0)
    return w.op("Identity", name)


@rule("LinSpace")
def _lin_space(w: GraphWriter, node: Node) -> str:
    start, stop = node.operands
    count = node.attrs["num"]
    parts = w.constant(np.arange(count) / max(count - 1, 1), start.dtype)
    return w.op("Add", w[start], w.op("Mul", parts, w.op("Sub", w[stop], w[start])))


@rule("DepthToSpace", "SpaceToDepth")
def _depth_to_space(w: GraphWriter, node: Node) -> str:
    (x,) = node.operands
    if node.attrs["data_format"] != "NHWC":
        return w.op(node.op.name, w[x], blocksize=int(node.attrs["block_size"]))
    first = w.transpose(w[x], [0, 3, 1, 2])
    return w.transpose(w.op(node.op.name, first, blocksize=int(node.attrs["block_size"])), [0, 2, 3, 1])


@rule("SpaceToBatchND", "BatchToSpaceND")
def _batches(w: GraphWriter, node: Node) -> str:
    """Emit pads, a reshape into blocks and a transpose; or the reverse, and a slice."""
    x, block, ends = node.operands
    sizes = constant_of(block, "the block").tolist()
    cut, dims, n = constant_of(ends, "the padding").reshape(len(sizes), 2), static(x, "blocks"), len(sizes)
    rest = dims[n + 1 :]
    if node.op.name == "SpaceToBatchND":
        pads = np.zeros((len(dims), 2), np.int64)
        pads[1 : n + 1] = cut
        name = w.op("Pad", w[x], w.ints(pads.T), w.number(0, x))
        padded = [d + int(p.sum()) for d, p in zip(dims[1 : n + 1], cut)]
        parts = [v for d, b in zip(padded, sizes) for v in (d // b, b)]
        name = w.op("Reshape", name, w.ints([dims[0], *parts, *rest]))
        order = [*range(2, 2 * n + 1, 2), 0, *range(1, 2 * n, 2), *range(2 * n + 1, 2 * n + 1 + len(rest))]
        name = w.transpose(name, order)
        shape = [dims[0] * int(np.prod(sizes)), *(d // b for d, b in zip(padded, sizes)), *rest]
        return w.op("Reshape", name, w.ints(shape))
    batch = dims[0] // int(np.prod(sizes))
    name = w.op("Reshape", w[x], w.ints([*sizes, batch, *dims[1:]]))
    order = [n, *(v for i in range(n) for v in (n + 1 + i, i)), *range(2 * n + 1, 2 * n + 1 + len(rest))]
    whole = [d * b for d, b in zip(dims[1 : n + 1], sizes)]
    name = w.op("Reshape", w.transpose(name, order), w.ints([batch, *whole, *rest]))
    ends_of = [d - int(c[1]) for d, c in zip(whole, cut)]
    return w.op("Slice", name, w.ints(cut[:, 0]), w.ints(ends_of), w.ints(range(1, n + 1)))
