"""Rules for operators that make, join, reshape and pad tensors, and that move strings.

Lives here: shapes, constants made at run time, random numbers, joining and splitting, transposing, padding, space and
depth; operators on strings, which few official kernels take, as one GATHER.
Not here: slicing and gathering (gather_scatter.py), operators that the dialect has as they are (direct.py); the
Stateless* operators, whose numbers are a function of their seed, and distributions drawn by rejection: these have no
lite form.

Sizes and axes are operands of int32 in the lite dialect; axes that are attributes in the catalogue become constants.

Known shapes determine the position of each element of a result that moves strings: the operator runs on element
numbers, and GATHER takes these from the flat tensor.

Random numbers are the official run time's, not this library's: of the same distribution, with the same rules of seeds.
Run times keep 32 bits of each seed, so the others are folded into these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import float32, int8, int32, int64, string, uint8
from ....core.errors import OpError
from ....core.specs import TensorSpec
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ....ops import registry
from ..rewriter import LiteRewriter, NoMatch, Rewrite, RuleResult, constant_of, only, rank_of, rule_table, size_along
from .convolution import FROM_LAST, TO_LAST, transposed
from .direct import front


def _reshape(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, shape = node.operands
    result = node.outputs[0].spec.shape
    if result.is_fully_defined():
        sizes = rewriter.int32([d or 0 for d in result.dims or ()])
    else:
        sizes = rewriter.int32(shape)
    return rewriter.emit("RESHAPE", x, sizes, like=node.outputs[0].spec)


def _squeeze(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,), axes = node.operands, node.attrs["axis"]
    dims = x.spec.shape.dims
    if dims is not None:
        ones = [] if None in dims else [i for i, d in enumerate(dims) if d == 1]
        axes = [front(a, len(dims)) for a in axes] or ones
        if not axes and None not in dims:
            return x
    return rewriter.emit("SQUEEZE", x, squeeze_dims=axes, like=node.outputs[0].spec)


def _broadcast_to(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, shape = node.operands
    if x.spec.shape.is_fully_defined() and x.spec.shape == node.outputs[0].spec.shape:
        return x
    return rewriter.emit("BROADCAST_TO", x, rewriter.int32(shape), like=node.outputs[0].spec)


def _shape(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,), dtype = node.operands, node.attrs["out_type"]
    if dtype not in (int32, int64):
        return rewriter.cast(rewriter.emit("SHAPE", x, out_type="INT32"), dtype)
    return rewriter.emit("SHAPE", x, out_type=dtype.name.upper(), like=node.outputs[0].spec)


def _one_hot(node: Node, rewriter: LiteRewriter) -> RuleResult:
    indices, depth, on, off = node.operands
    if indices.dtype in (uint8, int8):
        indices = rewriter.int32(indices)
    return rewriter.emit(
        "ONE_HOT", indices, rewriter.int32(depth), on, off, axis=node.attrs["axis"], like=node.outputs[0].spec
    )


def _concat(node: Node, rewriter: LiteRewriter) -> RuleResult:
    values = tuple(node.operands)
    if len(values) == 1:
        return values[0]
    axis = front(node.attrs["axis"], node.outputs[0].spec.shape.rank)
    return rewriter.emit("CONCATENATION", values, axis=axis, like=node.outputs[0].spec)


def _pack(node: Node, rewriter: LiteRewriter) -> RuleResult:
    values = tuple(node.operands)
    axis = front(node.attrs["axis"], node.outputs[0].spec.shape.rank)
    return rewriter.emit("PACK", values, values_count=len(values), axis=axis, like=node.outputs[0].spec)


def _pack_by_concat(node: Node, rewriter: LiteRewriter) -> RuleResult:
    axis = front(node.attrs["axis"], node.outputs[0].spec.shape.rank)
    values = tuple(rewriter.emit("EXPAND_DIMS", v, rewriter.int32([axis])) for v in node.operands)
    return rewriter.emit("CONCATENATION", values, axis=axis, like=node.outputs[0].spec)


def _unpack(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    if not node.outputs:
        return ()
    if _may_be_empty(x) and (x.spec.shape.rank or 9) <= 5:
        return NoMatch("the official UNPACK refuses tensors without elements")
    return rewriter.emit_many(
        "UNPACK",
        x,
        num=len(node.outputs),
        axis=front(node.attrs["axis"], x.spec.shape.rank),
        likes=[v.spec for v in node.outputs],
    )


def _may_be_empty(x: Value) -> bool:
    """Return whether the run decides about a size of a value, as WHERE does. Open sizes of inputs are not zero."""
    seen, waiting = set(), [x]
    while waiting:
        value = waiting.pop()
        node = value.node
        if node is None or node in seen or value.shape.is_fully_defined():
            continue
        seen.add(node)
        sources = [v for v in node.operands if not v.shape.is_fully_defined()]
        if not sources or node.op.name in ("WHERE", "UNIQUE"):
            return True
        waiting += sources
    return False


def _unpack_by_slices(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    rank = x.spec.shape.rank
    if rank is None or rank > 5:
        return NoMatch("STRIDED_SLICE takes ranks up to 5")
    axis = front(node.attrs["axis"], rank)
    ones, others = rewriter.int32([1] * rank), sum(1 << i for i in range(rank) if i != axis)
    return tuple(
        rewriter.emit(
            "STRIDED_SLICE",
            x,
            rewriter.int32([i if a == axis else 0 for a in range(rank)]),
            rewriter.int32([i + 1 if a == axis else 0 for a in range(rank)]),
            ones,
            begin_mask=others,
            end_mask=others,
            shrink_axis_mask=1 << axis,
            like=v.spec,
        )
        for i, v in enumerate(node.outputs)
    )


def _axis(node: Node, rewriter: LiteRewriter, x: Value) -> Value:
    return rewriter.constant(front(node.attrs["axis"], x.spec.shape.rank), int32)


def _split(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    if len(node.outputs) == 1:
        return x
    return rewriter.emit_many(
        "SPLIT", _axis(node, rewriter, x), x, num_splits=len(node.outputs), likes=[v.spec for v in node.outputs]
    )


def _split_v(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, sizes = node.operands
    parts = sizes.constant
    if x.dtype is float32 and parts is not None and len(parts) > 1 and (parts == parts[0]).all() and parts[0] >= 0:
        return _split(node.replaced(inputs=(x,)), rewriter)  # which XNNPACK takes, unlike SPLIT_V
    return rewriter.emit_many(
        "SPLIT_V",
        x,
        rewriter.int32(sizes),
        _axis(node, rewriter, x),
        num_splits=len(node.outputs),
        likes=[v.spec for v in node.outputs],
    )


def _transpose(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    order, rank = node.attrs["perm"], x.spec.shape.rank
    if order is None:
        if rank is None:
            return NoMatch("the order is that of the axes reversed, and the rank is not known")
        order = range(rank)[::-1]
    if rank is not None and rank > 6:
        return NoMatch("TRANSPOSE takes ranks up to 6")
    return transposed(rewriter, x, [front(a, rank) for a in order])


def _permute(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, perm = node.operands
    if x.spec.shape.rank is not None and x.spec.shape.rank > 6:
        return NoMatch("TRANSPOSE takes ranks up to 6")
    if perm.constant is not None:
        return transposed(rewriter, x, perm.constant.tolist())
    return rewriter.emit("TRANSPOSE", x, rewriter.int32(perm), like=node.outputs[0].spec)


def _pad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, paddings, *values = node.operands
    rank = x.spec.shape.rank
    if rank is None or rank > 5:
        return NoMatch("PAD takes ranks up to 5")
    value = values[0] if values else None
    if value is None or (value.constant is not None and not value.constant.any()):
        return rewriter.emit("PAD", x, rewriter.int32(paddings), like=node.outputs[0].spec)
    return rewriter.emit("PADV2", x, rewriter.int32(paddings), value, like=node.outputs[0].spec)


def _reverse(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, axes = next(node.operands), node.attrs["axis"]
    for axis in sorted(front(a, x.spec.shape.rank) for a in axes):  # the kernel takes neighbouring axes at once only
        x = rewriter.emit("REVERSE_V2", x, rewriter.int32([axis]), like=node.outputs[0].spec)
    return x


def _blocks(lite: str) -> Rewrite:
    """Lower to SPACE_TO_DEPTH and DEPTH_TO_SPACE, of channels-last images alone."""

    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (x,), layout = node.operands, node.attrs["data_format"]
        if layout not in ("NHWC", "NCHW"):
            return NoMatch(f"{lite} works on NHWC images, found {layout}")
        if layout == "NHWC":
            return rewriter.emit(lite, x, block_size=node.attrs["block_size"], like=node.outputs[0].spec)
        y = rewriter.emit(lite, transposed(rewriter, x, TO_LAST), block_size=node.attrs["block_size"])
        return transposed(rewriter, y, FROM_LAST)

    return lower


def _add_n(node: Node, rewriter: LiteRewriter) -> RuleResult:
    values = tuple(node.operands)
    if len(values) <= 2:
        return values[0] if len(values) == 1 else rewriter.emit("ADD", *values, like=node.outputs[0].spec)
    return rewriter.emit("ADD_N", values, like=node.outputs[0].spec)


ARRAYS = rule_table(
    RewriteRule("reshape", "Reshape", _reshape),
    RewriteRule("squeeze", "Squeeze", _squeeze),
    RewriteRule("broadcast_to", "BroadcastTo", _broadcast_to),
    RewriteRule("shape", "Shape", _shape),
    RewriteRule("one_hot", "OneHot", _one_hot),
    RewriteRule("concatenation", "Concat", _concat),
    RewriteRule("pack", "Pack", _pack),
    RewriteRule("pack_by_concat", "Pack", _pack_by_concat, "for types PACK lacks: the same layout"),
    RewriteRule("unpack", "Unpack", _unpack),
    RewriteRule("unpack_by_slices", "Unpack", _unpack_by_slices, "for types and sizes UNPACK lacks: the same elements"),
    RewriteRule("split", "Split", _split),
    RewriteRule("split_v", "SplitV", _split_v),
    RewriteRule("transpose", "Transpose", _transpose),
    RewriteRule("permute", "Permute", _permute),
    RewriteRule("pad", "Pad", _pad),
    RewriteRule("reverse_v2", "Reverse", _reverse),
    RewriteRule("space_to_depth", "SpaceToDepth", _blocks("SPACE_TO_DEPTH")),
    RewriteRule("depth_to_space", "DepthToSpace", _blocks("DEPTH_TO_SPACE")),
    RewriteRule("add_n", "AddN", _add_n),
)


MOVERS = "BroadcastTo Gather Reverse Roll Split SplitV Transpose"
LARGEST = 1 << 16  # elements of all results: each costs the file four bytes


def _by_number(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, *others = node.operands
    if x.dtype is not string:
        return NoMatch("it is for strings")
    if not x.spec.shape.is_fully_defined() or any(v.constant is None for v in others):
        return NoMatch("where each string comes from must be known: give x a fixed shape, and constants for the rest")
    sizes = [d or 0 for d in x.spec.shape.dims or ()]
    numbers = np.arange(int(np.prod(sizes)), dtype=np.int32).reshape(sizes)
    stand_in = Node(registry.get("Const"), (), {"value": numbers}, [TensorSpec(sizes, int32)], "numbers").outputs[0]
    try:
        places = node.op.evaluate((stand_in, *node.inputs[1:]), node.attrs)
    except OpError as error:
        return NoMatch(error.message)
    if sum(p.size for p in places) > LARGEST:
        return NoMatch(f"it gives more than {LARGEST} strings")
    flat = x if len(sizes) == 1 else rewriter.emit("RESHAPE", x, rewriter.int32([-1]))
    return tuple(
        rewriter.emit("GATHER", flat, rewriter.constant(np.ascontiguousarray(p, np.int32), int32), like=v.spec)
        for p, v in zip(places, node.outputs)
    )


def _gather_rows(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, indices = list(node.operands)[:2]
    if x.dtype is not string or node.attrs["axis"] != 0 or node.attrs["batch_dims"]:
        return NoMatch("it is for strings, taken along the first axis")
    if indices.spec.shape.rank is None:
        return NoMatch("the rank of the indices is not known")
    places = rewriter.emit("EXPAND_DIMS", indices, rewriter.int32([indices.spec.shape.rank]))
    return rewriter.emit("GATHER_ND", x, places, like=node.outputs[0].spec)


STRINGS = rule_table(
    RewriteRule("strings_by_number", MOVERS, _by_number, "the element numbers move the same way"),
    RewriteRule("strings_by_rows", "Gather", _gather_rows, "GATHER_ND takes strings of any rank"),
)


EXACT = 1 << 23  # the number of distinct uniform values: integer ranges much smaller than this are uniform


def _folded(seed: int) -> int:
    folded = (seed ^ seed >> 32) & 0xFFFFFFFF
    return folded - (1 << 32) if folded >> 31 else folded


def _seeds(node: Node) -> dict[str, Any]:
    seed, seed2 = (int(node.attrs[name]) for name in ("seed", "seed2"))
    seeds = {"seed": _folded(seed), "seed2": _folded(seed2)}
    if (seed, seed2) != (0, 0) and not any(seeds.values()):
        seeds["seed2"] = 1
    return seeds


def _drawn(lite: str) -> Rewrite:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (shape,) = node.operands
        if node.attrs["dtype"] is not float32:
            return NoMatch(f"{lite} gives float32")
        return rewriter.emit(lite, rewriter.int32(shape), **_seeds(node), like=node.outputs[0].spec)

    return lower


def _uniform_int(node: Node, rewriter: LiteRewriter) -> RuleResult:
    shape, least, limit = node.operands
    only(least, int32, int64)
    width = int(constant_of(limit, "maxval")) - int(constant_of(least, "minval"))
    if not 0 < width <= EXACT >> 8:
        return NoMatch(f"a range of at most {EXACT >> 8} numbers can be drawn evenly, found {width}")
    u = rewriter.emit("RANDOM_UNIFORM", rewriter.int32(shape), **_seeds(node))
    steps = rewriter.emit("FLOOR", rewriter.emit("MUL", u, rewriter.constant(float(width), float32)))
    return rewriter.emit("ADD", rewriter.cast(steps, least.dtype), least, like=node.outputs[0].spec)


def _multinomial(node: Node, rewriter: LiteRewriter) -> RuleResult:
    logits, count = node.operands
    only(logits, float32)
    dtype = node.attrs["output_dtype"]
    if dtype not in (int32, int64):
        return NoMatch("MULTINOMIAL gives int32 or int64")
    return rewriter.emit(
        "MULTINOMIAL",
        logits,
        rewriter.int32(count),
        output_type=dtype.name.upper(),
        **_seeds(node),
        like=node.outputs[0].spec,
    )


def _shuffle(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (x,) = node.operands
    if rank_of(x) == 0:
        return x
    n: Value = size_along(rewriter, x, 0)
    shape = (
        rewriter.int32([int(n.constant)])
        if n.constant is not None
        else rewriter.emit("RESHAPE", n, rewriter.int32([1]))
    )
    keys = rewriter.emit("RANDOM_UNIFORM", shape, **_seeds(node))
    _, order = rewriter.emit_many("TOPK_V2", keys, n)
    return rewriter.emit("GATHER", x, order, axis=0, like=node.outputs[0].spec)


RANDOM = rule_table(
    RewriteRule("random_uniform", "RandomUniform", _drawn("RANDOM_UNIFORM")),
    RewriteRule("random_standard_normal", "RandomStandardNormal", _drawn("RANDOM_STANDARD_NORMAL")),
    RewriteRule(
        "random_uniform_int", "RandomUniformInt", _uniform_int, "of a small range, each as likely to 2^-15 of itself"
    ),
    RewriteRule("multinomial", "Multinomial", _multinomial),
    RewriteRule(
        "shuffle_by_keys", "RandomShuffle", _shuffle, "the order of random keys is any order, but for equal keys"
    ),
)
