"""Nodes and values of graphs as lowering rules read them, and the windows that their attributes specify.

Lives here: `GraphNode`, `operand_of`, `catalogue_operand`; `window_of` and `sliding_of`, of convolutions and pooling in
both dialects, `check_channels_last`.
Not here: nodes of the lite dialect (lite/compiled/nodes.py), the selection of nodes to lower (../partitioner.py), the
arithmetic of padding (ops/windows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, bfloat16
from ...core.errors import InvalidArgumentError
from ...graph import Graph, Node, Value
from ...graph.ir import Operand as GraphOperand
from ...ops.windows import pairs, window
from ..loops.buffers import Buffer, Window
from .context import LoweringContext, NoLowering, RuleOperand
from .registry import CATALOGUE, USER


def operand_of(value: Value, name: str, key: Any = None) -> RuleOperand:
    """Return a value as an operand. name: of its buffer; key: identifies elements of an earlier run.

    raises NoLowering for unknown sizes and for elements that are Python objects
    """
    dims, spec = value.shape.dims, value.spec
    if value.dtype.is_handle or value.dtype.np.kind == "O":
        raise NoLowering(f"elements of type {value.dtype.name}")
    if dims is None or None in dims:
        raise NoLowering(f"sizes of {value!r} are unknown")
    shape = tuple(int(n) for n in dims if n is not None)
    constant = value.constant
    if constant is not None and (constant.shape != shape or not constant.flags.c_contiguous):
        constant = np.ascontiguousarray(constant).reshape(shape)
    return RuleOperand(spec, value.name, Buffer(name, value.dtype, shape, constant), key)


def catalogue_operand(value: Value) -> RuleOperand:
    """Return a value of a catalogue graph as an operand. Raises NoLowering as `operand_of`."""
    if value.dtype.np.kind in "SUV" and value.dtype is not bfloat16:
        raise NoLowering(f"elements of type {value.dtype.name}")
    return operand_of(value, value.name)


def real_operand(value: Value) -> RuleOperand:
    """Return a value of a catalogue graph as an operand. Raises NoLowering as `operand_of`, and for complex numbers."""
    if value.dtype.is_complex:
        raise NoLowering(f"elements of type {value.dtype.name}")
    return catalogue_operand(value)


class GraphNode:
    """A node of a graph, of an operator of the catalogue or a user's operator with a kernel.

    dialect, operator: its key in the table of rules. origin: the name that its loop operations carry. prefix: of the
    names of its buffers. intermediates: values that only have scales. activation: the fused one, "NONE" in dialects
    without. quantized: whether integers represent real numbers.
    """

    __slots__ = ("dialect", "node", "operator", "origin", "prefix")

    activation: str = "NONE"
    intermediates: Sequence[Value] = ()
    quantized: bool = False

    def __init__(self, node: Node) -> None:
        self.node = node
        self.dialect: str = CATALOGUE if node.op.catalogue else USER
        self.operator: str = node.op.name if node.op.catalogue else USER
        self.origin = self.prefix = node.name

    @property
    def inputs(self) -> Sequence[GraphOperand]:
        """Values; None for an omitted one, a tuple for a repeated input."""
        return self.node.inputs

    @property
    def outputs(self) -> Sequence[Value]:
        """Values."""
        return self.node.outputs

    def attr(self, name: str) -> Any:
        """Return an attribute, of an enum the member's name; 0 if the operator lacks it."""
        return self.node.attrs.get(name, 0)

    @property
    def call(self) -> Any:
        """The attributes as the operator's definition reads them."""
        return self.node.op.bind(dict(self.node.attrs))

    def takes(self, index: int, dtype: DType) -> bool:
        """Return whether the operator declares this type for an input: the graph was checked when it was traced."""
        return True

    def evaluate(self, operands: Sequence[RuleOperand], arrays: Sequence[Any]) -> list[Any]:
        """Compute the operator's reference on arrays. Raises NoLowering if its rules reject them."""
        op = self.node.op
        return list(op.flat_outputs(op.reference(self.call)(*arrays)))

    def integer_kernel(self) -> Callable[[Sequence[Any], Sequence[Any]], None]:
        """Return the operator's kernel on raw integers, (inputs, outputs) -> None.

        raises NoLowering for operands that the kernel rejects, and for the catalogue's operators, whose integers are
        numbers
        """
        raise NoLowering("its integers are plain numbers")

    def named_composite(self) -> GraphNode:
        """Return a composite as a node of the shipped custom operator of its name. Raises NoLowering if there is
        none."""
        raise NoLowering("no custom operator has its name")

    def decomposed(self) -> tuple[Graph, Callable[[Value], RuleOperand], Sequence[GraphNode]]:
        """Return the graph that defines a composite, the function to its values' operands, and its nodes, without
        constants. Raises NoLowering for other nodes."""
        raise NoLowering("it has no decomposition")

    def check_results(self) -> None:
        """Raise NoLowering if the operator infers other results: the graph was checked when it was traced."""


def check_channels_last(ctx: LoweringContext) -> None:
    """Raise NoLowering for images with channels first, which files do not have."""
    if ctx.node.dialect == CATALOGUE and ctx.attr("data_format") != "NHWC":
        raise NoLowering(f"images in {ctx.attr('data_format')}")


class SlidingWindow(NamedTuple):
    """Strides, dilations and padding of windows over the axes of an image.

    pads: of "EXPLICIT" padding, before and after each axis. truncates: the rounding of `ops.windows.out_size`.
    """

    padding: str
    strides: Sequence[int]
    dilations: Sequence[int] = (1, 1)
    pads: Sequence[tuple[int, int]] = ((0, 0), (0, 0))
    truncates: bool = False

    def over(self, image: Sequence[int], size: Sequence[int]) -> tuple[Window, tuple[int, int]]:
        """Return the window of this size and the output sizes. Raises NoLowering if it does not fit."""
        if min(*self.strides, *self.dilations, *size) < 1:
            raise NoLowering(f"a window of {size} with strides {self.strides}, dilations {self.dilations}")
        try:
            axes = zip(image, size, self.strides, self.dilations, self.pads)
            y, x = (window(n, k, s, d, self.padding, pads, self.truncates) for n, k, s, d, pads in axes)
        except InvalidArgumentError as error:
            raise NoLowering(error.message) from None
        margins = (y.before, y.after, x.before, x.after)
        return Window((y.kernel, x.kernel), (y.stride, x.stride), (y.dilation, x.dilation), margins), (y.out, x.out)


def sliding_of(ctx: LoweringContext) -> SlidingWindow:
    """Read strides, dilations and padding from the attributes. Raises NoLowering for windows over other axes."""
    if ctx.node.dialect != CATALOGUE:
        factors = ctx.attr("dilation_h_factor") or 1, ctx.attr("dilation_w_factor") or 1
        strides = ctx.attr("stride_h"), ctx.attr("stride_w")
        return SlidingWindow(ctx.attr("padding") or "SAME", strides, factors, truncates=True)
    check_channels_last(ctx)
    strides = ctx.attr("strides")
    dilations: Sequence[int] = ctx.attr("dilations") or (1, 1, 1, 1)
    if {strides[0], strides[3], dilations[0], dilations[3]} != {1}:
        raise NoLowering(f"strides {list(strides)}, dilations {list(dilations)}")
    pads: Any = pairs(ctx.attr("explicit_paddings") or (), 4)
    return SlidingWindow(ctx.attr("padding"), strides[1:3], dilations[1:3], pads[1:3])


def window_of(ctx: LoweringContext, image: Sequence[int], size: Sequence[int]) -> tuple[Window, tuple[int, int]]:
    """Return the window of a node over images [n, height, width, c], and the output sizes."""
    return sliding_of(ctx).over(image[1:3], size)
