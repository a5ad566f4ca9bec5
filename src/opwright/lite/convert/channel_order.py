"""Channel shuffles absorbed into weights: networks that interleave channels read them from where they are.

Lives here: `absorb_shuffles`. Not here: transposes of layouts (graph/passes/layout.py, canonicalization.py).

A shuffle of channels is RESHAPE, TRANSPOSE and RESHAPE. The walk follows each channel of a CONCATENATION, SPLIT, SLICE
or shuffle to the tensor that holds it, and computes none of them. A convolution or product of such channels reads them
in the order of their tensors, in ranges, and its weights have that order. A depthwise convolution, a pool, a pad or an
element-wise operator computes on that order, which its result keeps. Any other reader, and a graph's output, gets the
original nodes. Elements are unchanged but for the order in which products are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ...core.dtypes import float32
from ...graph import Graph, Node, Value
from ...graph.builder import GraphTransform
from ...graph.passes import dead_code
from .canonicalization import UNARY, order_of
from .operator_fusion import LINEAR
from .rewriter import LiteRewriter, fused_activation

MAX_RANGES = 16  # that a reader joins; more are shuffled
SAME_CHANNELS = frozenset([*UNARY.split(), "PAD", "PADV2", "MAX_POOL_2D", "AVERAGE_POOL_2D"])
WEIGHTS = {"CONV_2D": 3, "FULLY_CONNECTED": 1}
"""Operators that add over channels, with the axis of their weights, the second operand, that counts these."""

Channel = tuple[int, int]
"""A tensor, by its number in the walk, and a channel of it."""


def absorb_shuffles(graph: Graph) -> Graph:
    """Return the graph without its channel shuffles, in subgraphs too; the graph itself if none can be spared."""
    return GraphTransform(_without_shuffles)(graph)


def _without_shuffles(graph: Graph, inside: Callable[[Graph], Graph]) -> Graph:
    if not any(_shuffled(node) is not None for node in graph.nodes):
        return graph
    changed, _dropped = dead_code(_ChannelWalk(graph).run())
    fewer = _count(changed, "TRANSPOSE") < _count(graph, "TRANSPOSE")
    return changed if fewer and _count(changed, *LINEAR) == _count(graph, *LINEAR) else graph


def _count(graph: Graph, *names: str) -> int:
    return sum(node.op.name in names for node in graph.nodes)


def _channels(value: Value) -> int | None:
    dims = value.spec.shape.dims
    return dims[-1] if dims and len(dims) > 1 and value.spec.quantization is None else None


def _shuffled(node: Node) -> tuple[Value, int] | None:
    """Return the operand of a shuffle, and the number of its groups, by the last of its three nodes."""
    if node.op.name != "RESHAPE":
        return None
    transpose = next(node.operands).node
    order = order_of(transpose)
    inner = None if transpose is None or order is None else next(transpose.operands).node
    if inner is None or order is None or inner.op.name != "RESHAPE":
        return None
    x = next(inner.operands)
    dims, apart = x.spec.shape.dims, inner.outputs[0].spec.shape.dims
    if not dims or not apart or dims != node.outputs[0].spec.shape.dims or None in dims or None in apart:
        return None
    # the axes besides those of size 1: the rows, in order, then the channels of a group, then the groups
    moving = [axis for axis in order if apart[axis] != 1]
    if len(moving) < 2 or moving[:-2] != sorted(moving[:-2]) or moving[-2] != moving[-1] + 1:
        return None
    groups, members = apart[moving[-1]], apart[moving[-2]]
    last = max(moving)
    return (x, groups) if last == moving[-2] and groups * members == dims[-1] else None  # type: ignore[operator,return-value]


def _ranges(channels: Sequence[Channel]) -> list[tuple[int, int, int]]:
    """Return channels as ranges: a tensor, its first channel, the one after its last."""
    ranges: list[tuple[int, int, int]] = []
    for source, channel in channels:
        if ranges and ranges[-1][0] == source and ranges[-1][2] == channel:
            ranges[-1] = (source, ranges[-1][1], channel + 1)
        else:
            ranges.append((source, channel, channel + 1))
    return ranges


class _ChannelWalk(LiteRewriter):
    """One walk. origins: where the channels are of values that are not computed, or only in another order."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.origins: dict[Value, list[Channel]] = {}
        self.delayed: dict[Value, Node] = {}  # values that no reader has needed in their own order yet
        self.reordered: set[Node] = set()  # nodes that are computed in another order
        self.sources: list[Value] = []
        self._number: dict[Value, int] = {}
        self._gathered: dict[tuple[Channel, ...], Value] = {}

    def run(self) -> Graph:
        """Return the new graph."""
        for node in self.source.nodes:
            if node.op.name == "Const":
                self.keep_constant(node)
                continue
            self.begin(node)
            if not self._delay(node) and not self._reorder(node):
                self._force(node.operands)
                self.keep(self.remap(node), node)
        self._force(self.source.outputs)
        return self.finish()

    def _force(self, values: Iterable[Value]) -> None:
        """Compute values in their own order, by the nodes of the source."""
        pending = [v for v in values if v in self.delayed]
        while pending:
            node = self.delayed.get(pending[-1])
            if node is None:
                pending.pop()
                continue
            before = [v for v in node.operands if v in self.delayed]
            if before:
                pending += before
                continue
            for value in node.outputs:
                self.delayed.pop(value, None)
            if node in self.reordered:
                inputs = [self.operand(o) for o in node.inputs]
                self.replace(node, self.create(node.op, inputs, node.attrs, [v.spec for v in node.outputs]).outputs)
            else:
                self.keep(self.remap(node), node)

    def _origin(self, value: Value, channels: int) -> list[Channel]:
        """Return where the channels of a value of the source are."""
        known = self.origins.get(value)
        if known is not None:
            return known
        number = self._number.get(value)
        if number is None:
            self._force([value])
            number = self._number[value] = len(self.sources)
            self.sources.append(self.mapping.get(value, value))
        return [(number, i) for i in range(channels)]

    def _delay(self, node: Node) -> bool:
        """Record where the channels of a node's outputs are, if it only moves channels."""
        moved = self._moved(node)
        if moved is None:
            return False
        for value, channels in zip(node.outputs, moved):
            self.delayed[value] = node
            if channels is not None:
                self.origins[value] = channels
        return True

    def _moved(self, node: Node) -> list[list[Channel] | None] | None:
        """Return the channels of each output of a node that only moves channels, None for parts of a shuffle."""
        name = node.op.name
        shuffle = _shuffled(node)
        if shuffle is not None and _channels(shuffle[0]) is not None:
            x, groups = shuffle
            origin = self._origin(x, x.spec.shape[-1] or 0)
            members = len(origin) // groups
            return [[origin[g * members + m] for m in range(members) for g in range(groups)]]
        if name in ("TRANSPOSE", "RESHAPE"):
            return [None]  # perhaps the start of a shuffle
        if name == "CONCATENATION":
            return self._joined(node)
        if name not in ("SPLIT", "SPLIT_V", "SLICE"):
            return None
        x = node.inputs[1] if name == "SPLIT" else node.inputs[0]  # type: ignore[assignment]
        ranges = None if x.constant is not None or _channels(x) is None else _cuts(node, x)
        if ranges is None:
            return None
        origin = self._origin(x, x.spec.shape[-1] or 0)
        return [origin[begin:end] for begin, end in ranges]

    def _joined(self, node: Node) -> list[list[Channel] | None] | None:
        rank = node.outputs[0].spec.shape.rank
        operands = list(node.operands)
        counts = [_channels(v) for v in operands]
        if rank is None or node.attrs["axis"] % rank != rank - 1 or fused_activation(node) != "NONE":
            return None
        if None in counts or any(v.constant is not None for v in operands):
            return None
        return [[c for v, n in zip(operands, counts) for c in self._origin(v, n or 0)]]

    def _reorder(self, node: Node) -> bool:
        """Append a node that reads channels in the order of their tensors."""
        x = next(node.operands, None)
        origin = None if x is None else self.origins.get(x)
        if x is None or origin is None or node.outputs[0].dtype is not float32:
            return False
        order = sorted(range(len(origin)), key=lambda i: origin[i])
        if len(_ranges([origin[i] for i in order])) > MAX_RANGES:
            return False
        name, inputs = node.op.name, list(self.remap(node).inputs)
        axis = WEIGHTS.get(name)
        if axis is not None or name == "DEPTHWISE_CONV_2D":
            weights = node.inputs[1]
            assert isinstance(weights, Value)
            array = weights.constant
            if array is None or array.shape[3 if axis is None else axis] != len(origin):
                return False
            inputs[1] = self._reordered(array, order, 3 if axis is None else axis)
        elif name not in SAME_CHANNELS or not _keeps_channels(node):
            return False
        if name == "DEPTHWISE_CONV_2D":
            bias = node.inputs[2]
            assert bias is None or isinstance(bias, Value)
            if bias is not None:
                if bias.constant is None:
                    return False
                inputs[2] = self._reordered(bias.constant, order, 0)
        inputs[0] = self._gather([origin[i] for i in order], x)
        made = node.replaced(inputs=inputs)
        if axis is not None or order == list(range(len(order))):
            self.keep(made, node)
            return True
        (old,) = node.outputs
        self.insert(made)
        self.rename(made.outputs[0], self.unique(f"{node.name}/reordered"))  # its own order may be computed, too
        self.reordered.add(node)
        self.delayed[old] = node
        self.origins[old] = [(len(self.sources), int(i)) for i in np.argsort(order)]
        self.sources.append(made.outputs[0])
        return True

    def _reordered(self, array: np.ndarray, order: list[int], axis: int) -> Value:
        taken = np.take(array, order, axis)
        taken.flags.writeable = False
        return self.constant(taken, float32)

    def _gather(self, channels: list[Channel], like: Value) -> Value:
        """Return the tensor of some channels, which are in the order of their tensors."""
        key = tuple(channels)
        value = self._gathered.get(key)
        if value is None:
            parts = [self._part(*piece, like) for piece in _ranges(channels)]
            value = parts[0] if len(parts) == 1 else self.emit("CONCATENATION", tuple(parts), axis=-1)
            self._gathered[key] = value
        return value

    def _part(self, source: int, begin: int, end: int, like: Value) -> Value:
        x = self.sources[source]
        dims = x.spec.shape.dims
        assert dims is not None
        if (begin, end) == (0, dims[-1]):
            return x
        key = tuple((source, i) for i in range(begin, end))
        if key not in self._gathered:
            last = len(dims) - 1
            starts, sizes = self.int32([0] * last + [begin]), self.int32([-1] * last + [end - begin])
            self._gathered[key] = self.emit("SLICE", x, starts, sizes)
        return self._gathered[key]


def _cuts(node: Node, x: Value) -> list[tuple[int, int]] | None:
    """Return the ranges of channels of each output of SPLIT, SPLIT_V or SLICE; None if it cuts another axis."""
    dims = x.spec.shape.dims
    if dims is None or dims[-1] is None:
        return None
    rank = len(dims)
    if node.op.name == "SLICE":
        _, begin, size = node.operands
        if begin.constant is None or size.constant is None or begin.constant[:-1].any():
            return None
        if any(s not in (-1, d) for s, d in zip(size.constant[:-1].tolist(), dims)):
            return None
        first, count = int(begin.constant[-1]), int(size.constant[-1])
        return [(first, dims[-1] if count < 0 else first + count)]
    axis = node.inputs[0] if node.op.name == "SPLIT" else node.inputs[2]
    assert isinstance(axis, Value)
    if axis.constant is None or int(axis.constant.reshape(-1)[0]) % rank != rank - 1:
        return None
    ends = np.cumsum([v.spec.shape[-1] or 0 for v in node.outputs]).tolist()
    return list(zip([0, *ends], ends)) if ends[-1] == dims[-1] else None


def _keeps_channels(node: Node) -> bool:
    """Return whether a node computes each channel from itself: pads may not add any."""
    if not node.op.name.startswith("PAD"):
        return True
    paddings = list(node.operands)[1].constant
    return paddings is not None and not paddings[-1].any()
