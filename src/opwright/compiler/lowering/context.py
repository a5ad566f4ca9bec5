"""The context of a lowering rule: the operands, results and attributes of one node, and the operations that it adds.

Lives here: `LoweringContext`, `RuleOperand`, `Buffers`, `NoLowering`.
Not here: quantized values as expressions (operand_expressions.py), access to nodes of graphs (nodes.py).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...core.dtypes import DType, int64, uint8
from ...core.specs import TensorSpec
from ..byte_order import in_other_order
from ..loops.buffers import Buffer
from ..loops.ops import LoopOp, Part, Reinterpret, View
from ..target import host

if TYPE_CHECKING:
    from .nodes import GraphNode
    from .stateful import ResourceState
    from .tensor_lists import ListOperand

F = TypeVar("F", bound=LoopOp)

LINE = 64
"""Alignment in bytes of the results of an operation with several results."""
MOST_SCALE = float(1 << 40)
"""Largest scale that is lowered, and the inverse of the smallest: products and quotients of three fit float32."""


class NoLowering(Exception):
    """A node has no lowering, for the reason in the message; it runs uncompiled."""


def reinterpreted(elements: np.ndarray, dtype: DType) -> np.ndarray:
    """Return the bytes of a constant as elements of another dtype on the target."""
    flat = np.ascontiguousarray(elements).reshape(-1)
    if not host().is_big_endian:
        return flat.view(dtype.np)
    return in_other_order(in_other_order(flat).view(dtype.np))


class RuleOperand:
    """A value as an operand of a rule.

    spec: the type, with scales in dialects whose types have them. buffer: in the loop graph. key: identifies elements
    observed in an earlier run.
    """

    __slots__ = ("_compute", "_constant", "buffer", "key", "name", "spec")

    def __init__(self, spec: TensorSpec, name: str, buffer: Buffer, key: Any = None) -> None:
        self.spec, self.name, self.buffer, self.key = spec, name, buffer, key
        self._constant: np.ndarray | None = buffer.constant
        self._compute: Callable[[], np.ndarray] | None = None

    def with_buffer(self, buffer: Buffer) -> RuleOperand:
        """Return the operand with its elements in another buffer."""
        return RuleOperand(self.spec, self.name, buffer, self.key)

    @property
    def constant(self) -> np.ndarray | None:
        """Elements if they are known at compile time; computed on first access."""
        if self._constant is None and self._compute is not None:
            self._constant = self._compute()
        return self._constant

    @property
    def is_constant(self) -> bool:
        """Whether the elements are known at compile time; computes nothing."""
        return self._constant is not None or self._compute is not None

    def follows(self, compute: Callable[[], np.ndarray]) -> None:
        """Declare that the elements follow from constants and are returned by compute(); an operation still writes the
        buffer."""
        self._compute = compute

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        return self.buffer.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.buffer.dtype

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.buffer.size

    @property
    def quantization(self) -> Any:
        """`scale`, `zero_point`, `axis`; None for plain numbers."""
        quantization = self.spec.quantization
        return (
            quantization
            if quantization is not None and quantization.has_scales and self.spec.dtype.is_integer
            else None
        )

    @property
    def blocks(self) -> Any:
        """Blockwise scales: `scales`, `size`, `axes`; None for others."""
        return None if self.spec.quantization is None else self.spec.quantization.blocks

    @property
    def is_variable(self) -> bool:
        """Whether the elements persist from run to run."""
        return getattr(self.spec, "is_variable", False)

    @property
    def is_quantized(self) -> bool:
        """Whether it has a scale per tensor or per channel; blockwise scales do not count."""
        return self.blocks is None and self.quantization is not None

    @property
    def scale(self) -> float:
        """Scale per tensor. Raises NoLowering for none or several, and if products or quotients by it may overflow."""
        scale = self.unbounded_scale
        if not 1 / MOST_SCALE <= scale <= MOST_SCALE:
            raise NoLowering(f"{self.name!r} has the scale {scale:g}")
        return scale

    @property
    def unbounded_scale(self) -> float:
        """Scale per tensor, of any finite size. Raises NoLowering for none or several."""
        scales = self._scales()
        if scales.size != 1 or not np.isfinite(scales[0]):
            raise NoLowering(f"{self.name!r} has {scales.size} scales, of at most {scales.max(initial=0.0):g}")
        return float(scales[0])

    @property
    def scales(self) -> np.ndarray:
        """All scales, float32.

        raises NoLowering if there are none, and if products may overflow. Channels whose weights are all 0 may have
        arbitrarily small scales.
        """
        scales = self._scales()
        if not np.all(scales <= MOST_SCALE):
            raise NoLowering(f"{self.name!r} has the scale {scales.max():g}")
        return scales

    def _scales(self) -> np.ndarray:
        """Return all scales, float32. Raises NoLowering for none, and for zero points outside of the type, which
        operators reject."""
        if not self.is_quantized:
            raise NoLowering(f"{self.name!r} has no scale")
        low, high = self.dtype.limits
        points = self.zero_points
        if points.size and (points.min() < low or points.max() > high):
            raise NoLowering(f"{self.name!r} has the zero points {points[:8].tolist()}")
        return np.asarray(self.quantization.scale, np.float32)

    @property
    def zero(self) -> int:
        """Zero point. Raises NoLowering for several different ones."""
        points = self.zero_points
        if not points.size:
            return 0
        if (points != points[0]).any():
            raise NoLowering(f"{self.name!r} has several zero points")
        return int(points[0])

    @property
    def zero_points(self) -> np.ndarray:
        """All zero points, int64; empty if the quantization omits them."""
        return np.asarray(() if self.quantization is None else self.quantization.zero_point, np.int64)

    def __repr__(self) -> str:
        return repr(self.buffer)


class Buffers:
    """Operands of a graph's values, created on demand.

    operand_of: returns a value's operand, raises NoLowering for unsupported types. seen: elements of an earlier run by
    key, whose sizes are assumed; None if sizes are static. A rule that requests such elements receives them, and their
    key is added to `assumed`. counts: by key, the cell for a number of rows that is computed at run time. resources:
    state that persists from run to run; state: by resource, its memory and the shape assigned to it, if any. lists: by
    value, lists as arrays.
    """

    def __init__(
        self,
        operand_of: Callable[[Any], RuleOperand],
        seen: Mapping[Any, np.ndarray] | None = None,
        resources: ResourceState | None = None,
    ) -> None:
        self._operand_of, self.resources = operand_of, resources
        self._operands: dict[Any, RuleOperand] = {}
        self.seen = seen
        self.assumed: set[Any] = set()
        self.counts: dict[Any, Buffer] = {}
        self.state: dict[Any, tuple[Buffer, tuple[int, ...] | None]] = {}
        self.lists: dict[Any, ListOperand] = {}

    def of(self, value: Any) -> RuleOperand:
        """Return the operand of a value. Raises NoLowering for types and sizes without support."""
        operand = self._operands.get(value)
        if operand is None:
            operand = self._operands[value] = self._operand_of(value)
        return operand

    def bind(self, value: Any, operand: RuleOperand) -> None:
        """Let an operand of another graph, of the value's type, be that of the value. Raises NoLowering for a second
        one."""
        if self._operands.setdefault(value, operand) is not operand:
            raise NoLowering(f"{value!r} is used twice at the boundary of its graph")

    def rename(self, value: Any, operand: RuleOperand | ListOperand) -> None:
        """Let a value be an operand under another name, of this graph or of the one around it."""
        if isinstance(operand, RuleOperand):
            self._operands[value] = operand
        else:
            self.lists[value] = operand

    def assume(self, operand: RuleOperand) -> None:
        """Give an operand the elements observed in an earlier run, if any."""
        if self.seen is not None and operand.key in self.seen:
            self.assumed.add(operand.key)
            operand.follows(functools.partial(self.seen.__getitem__, operand.key))

    def counted(self, value: Any, rows_of: Callable[[int], int]) -> tuple[RuleOperand, Buffer]:
        """Implement `LoweringContext.counted`."""
        if self.seen is None:
            raise NoLowering("its number of rows is unknown before a run")
        return self.with_most_rows(value, rows_of)

    def with_most_rows(self, value: Any, rows_of: Callable[[int], int]) -> tuple[RuleOperand, Buffer]:
        """Return the operand of a value with memory for rows_of(its size) rows, and the cell for the actual number.
        Raises NoLowering if the value has no rows, or an operation that uses it."""
        if value in self._operands:
            raise NoLowering("its number of rows is unknown before a run")
        maximal = self._operand_of(value)
        if not maximal.shape:
            raise NoLowering("its number of rows is unknown before a run")
        buffer = Buffer(maximal.buffer.name, maximal.dtype, (rows_of(maximal.size), *maximal.shape[1:]))
        operand = self._operands[value] = maximal.with_buffer(buffer)
        count = self.counts[operand.key] = Buffer(f"{buffer.name}.count", int64, (2,))
        return operand, count


class LoweringContext:
    """One node, and the loop operations that its rule adds."""

    __slots__ = ("buffers", "node", "operator", "ops", "origin")

    def __init__(self, node: GraphNode, buffers: Buffers) -> None:
        self.node, self.buffers = node, buffers
        self.operator, self.origin = node.operator, (node.origin,)
        self.ops: list[LoopOp] = []

    def operand(self, index: int) -> RuleOperand:
        """Return an input. Raises NoLowering if it is omitted or repeated."""
        operand = self.optional(index)
        if operand is None:
            raise NoLowering(f"input {index} is omitted")
        return operand

    def optional(self, index: int) -> RuleOperand | None:
        """Return an input, or None if it is omitted."""
        inputs = self.node.inputs
        value = inputs[index] if index < len(inputs) else None
        if isinstance(value, tuple):
            raise NoLowering(f"input {index} is repeated")
        return None if value is None else self.buffers.of(value)

    @property
    def operands(self) -> list[RuleOperand]:
        """All inputs, with the values of repeated ones in order. Raises NoLowering if one is omitted."""
        operands: list[RuleOperand] = []
        for index, value in enumerate(self.node.inputs):
            if isinstance(value, tuple):
                operands.extend(map(self.buffers.of, value))
            else:
                operands.append(self.operand(index))
        return operands

    def constant(self, index: int) -> np.ndarray:
        """Return the elements of an input. Raises NoLowering if they are neither constant nor assumed."""
        operand = self.operand(index)
        if not operand.is_constant:
            self.buffers.assume(operand)
        elements = operand.constant
        if elements is None:
            raise NoLowering(f"input {index} is not a constant")
        return elements

    def output(self, shape: Sequence[int] | None = None, index: int = 0) -> RuleOperand:
        """Return an output. Raises NoLowering if the graph declares another shape than the inferred `shape`."""
        operand = self.buffers.of(self.node.outputs[index])
        if shape is not None and operand.shape != tuple(shape):
            raise NoLowering(f"the output has the shape {list(operand.shape)}, {list(shape)} follows from the inputs")
        return operand

    def counted(self, rows_of: Callable[[int], int]) -> tuple[RuleOperand, Buffer]:
        """Return the first output with memory for rows_of(size in an earlier run) rows, and the cell for the actual
        number of rows. Raises NoLowering if sizes are static."""
        return self.buffers.counted(self.node.outputs[0], rows_of)

    def attr(self, name: str) -> Any:
        """Return an attribute, of an enum the member's name; 0 if the operator or the file lacks it."""
        return self.node.attr(name)

    def new(self, dtype: DType, shape: Sequence[int], name: str = "") -> Buffer:
        """Return a buffer for a value between two operations of this node."""
        return Buffer(f"{self.node.prefix}{name or f'.{len(self.ops)}'}", dtype, tuple(shape))

    def add(self, make: Callable[..., F], output: Buffer, *parts: Any, **named: Any) -> F:
        """Add an operation that writes `output`."""
        op = make(output, *parts, origin=self.origin, **named)
        self.ops.append(op)
        return op

    def with_results(self, make: Callable[[Buffer, tuple[tuple[Buffer, int], ...]], Any], *outputs: Buffer) -> None:
        """Add an operation with several results.

        make(packed, results) adds it: it writes one buffer of bytes with each result at an offset; `Part` operations
        extract the results.
        """
        if len(outputs) == 1:
            make(outputs[0], ((outputs[0], 0),))
            return
        offsets, size = [], 0
        for b in outputs:
            offsets.append(size)
            size += -(-b.size * b.dtype.size // LINE) * LINE
        packed = Buffer(f"{outputs[0].name}.all", uint8, (size,))
        make(packed, tuple(zip(outputs, offsets)))
        for b, offset in zip(outputs, offsets):
            self.add(Part, b, packed, offset)

    def viewed(self, buffer: Buffer, shape: Sequence[int]) -> Buffer:
        """Return the elements of a buffer under another shape."""
        shape = tuple(shape)
        if buffer.shape == shape:
            return buffer
        if buffer.constant is not None:
            return Buffer(buffer.name, buffer.dtype, shape, buffer.constant.reshape(shape))
        view = Buffer(f"{buffer.name}.{'x'.join(map(str, shape))}", buffer.dtype, shape)
        self.add(View, view, buffer)
        return view

    def bits(self, buffer: Buffer, dtype: DType, shape: Sequence[int]) -> Buffer:
        """Return the bytes of a buffer as elements of another dtype."""
        if buffer.dtype is dtype:
            return self.viewed(buffer, shape)
        if buffer.constant is not None:
            elements = reinterpreted(buffer.constant, dtype).reshape(shape)
            return Buffer(f"{buffer.name}.{dtype.short}", dtype, tuple(shape), elements)
        view = Buffer(f"{buffer.name}.{dtype.short}", dtype, tuple(shape))
        self.add(Reinterpret, view, buffer)
        return view

    @contextlib.contextmanager
    def reshaped(self, output: RuleOperand | Buffer, shape: Sequence[int]) -> Iterator[Buffer]:
        """Yield a buffer of another shape that the block's operations write; a view of it becomes the output."""
        target = output.buffer if isinstance(output, RuleOperand) else output
        if target.shape == tuple(shape):
            yield target
            return
        buffer = self.new(target.dtype, shape)
        yield buffer
        self.add(View, target, buffer)
