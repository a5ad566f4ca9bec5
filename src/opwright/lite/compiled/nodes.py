"""Nodes of the interpreter as the lowering context reads them.

Lives here: `InterpreterNode`, `operand_of`; memory that stays from run to run (`variable_of`, `sequence_of`).
Not here: the rules (compiler/lowering/, rules/), which nodes are lowered (delegate.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...compiler.loops.forms import Buffer
from ...compiler.lowering.context import LoweringContext, NoLowering, Operand
from ...compiler.lowering.registry import CUSTOM, LITE, USER
from ...core.dtypes import DType, uint64
from ...core.errors import OpError
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from ..custom_options import group_inputs
from ..ops.definition import LiteOperator
from ..quantized_registration import is_quantized, kernel_of, rule_of, run_quantized
from ..registration import OperatorRegistration
from ..runtime.node import Node
from ..runtime.resources import ResourceVariable
from ..runtime.tensor import Tensor


def operand_of(t: Tensor) -> Operand:
    """Return a tensor as an operand. Raises NoLowering for types that no form has."""
    if t._dtype is None or t.is_object:
        raise NoLowering(f"tensors of type {getattr(t.type, 'name', t.type)}")
    buffer = Buffer(f"t{t.index}", t.dtype, t.shape, t.constant)
    return Operand(t, t.name, buffer, t.quantization if t.is_quantized else None, t.blocks, t.index)


def is_user_operator(node: Node) -> bool:
    """Whether a user's operator serves the node, a custom one."""
    registration = node.registration
    return (
        type(node.options) is bytes
        and isinstance(registration, OperatorRegistration)
        and not isinstance(registration.operator, LiteOperator)
    )


class InferredOperand:
    """An operand for an operator's `infer`. constant: its elements, if known."""

    fixed = True

    def __init__(self, operand: Operand) -> None:
        self.spec = TensorSpec(TensorShape(operand.shape), operand.dtype)
        self.constant = operand.constant


class InterpreterNode:
    """A node of a subgraph that the interpreter has prepared."""

    __slots__ = ("dialect", "node", "operator", "origin", "prefix")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.dialect, self.operator = LITE, node.name
        if type(node.options) is bytes:
            self.dialect, self.operator = (USER, LITE) if is_user_operator(node) else (CUSTOM, node.name)
        self.origin = f"{node.name} {node.number}"
        self.prefix = f"t{node.tensors_out[0].index}" if node.tensors_out else f"n{node.number}"

    @property
    def inputs(self) -> Sequence[Tensor | None]:
        """Tensors, None for one left out."""
        return self.node.tensors_in

    @property
    def outputs(self) -> Sequence[Tensor]:
        """Tensors."""
        return self.node.tensors_out

    @property
    def intermediates(self) -> list[Tensor]:
        """Tensors that hold scales of values within the node alone."""
        return [v.tensor for v in self.node.intermediates if v is not None]

    @property
    def activation(self) -> str:
        """The fused activation."""
        return self.attr("fused_activation_function") or "NONE"

    def attr(self, name: str) -> Any:
        """An option of the operator; 0 if the file leaves it out. Of an enum: the member's name, or 0."""
        value = getattr(self.node.options, name, 0)
        return getattr(value, "name", value)

    @property
    def registration(self) -> OperatorRegistration:
        """The kernel that serves the node in the interpreter. Raises NoLowering if it is not the operator's own."""
        registration = self.node.registration
        if not isinstance(registration, OperatorRegistration) or not isinstance(registration.operator, LiteOperator):
            raise NoLowering("it has a kernel of its own")
        return registration

    @property
    def call(self) -> Any:
        """The attributes that the operator's definition reads from the options."""
        return self.registration._call(self.node)

    @property
    def quantized(self) -> bool:
        """Whether integers of the node stand for real numbers, and it does not move them as any others."""
        operator: Any = self.registration.operator
        return is_quantized(operator, self.node) and not operator.moves

    def takes(self, place: int, dtype: DType) -> bool:
        """Whether the operator declares that it takes this type there."""
        declared = self.registration.operator.inputs
        return dtype in declared[min(place, len(declared) - 1)].dtypes

    def evaluate(self, operands: Sequence[Operand], arrays: Sequence[Any]) -> list[Any]:
        """Compute the operator's reference on arrays. Raises NoLowering for what its own rules refuse."""
        operator: Any = self.registration.operator
        try:
            call = operator.from_options(self.node.options)
            operator.infer(call, [InferredOperand(o) for o in operands])
            return list(operator.compute(call, arrays))
        except OpError as error:
            raise NoLowering(str(error)) from None

    def integer_kernel(self) -> Callable[[Sequence[Any], Sequence[Any]], None]:
        """Return the operator's kernel on raw integers, (inputs, outputs) -> None. Raises NoLowering for what it
        refuses."""
        node, registration = self.node, self.registration
        try:
            path = rule_of(registration.operator, node)
            kernel = kernel_of(registration.operator, path, registration._call(node), node, group_inputs)
        except OpError as error:
            raise NoLowering(error.message) from None
        return lambda inputs, outputs: run_quantized(kernel, list(inputs), list(outputs), node.name)


# ---- memory that stays from run to run -----------------------------------------------------------------------------


def _check_stateless(ctx: LoweringContext) -> None:
    """Raise NoLowering if sizes are assumed: such plans bind tensors alone."""
    if ctx.buffers.seen is not None:
        raise NoLowering("it has state, and sizes that are known only as it runs")


def variable_of(ctx: LoweringContext, place: int, value: Buffer, assigned: bool = False) -> Buffer:
    """Return the memory of the variable whose handle is this input, for values like this one.

    raises NoLowering if the handle is known only as the model runs, or others of the subgraph read or assign values of
    other types or shapes
    """
    handle = ctx.node.inputs[place]
    if handle is None:
        raise NoLowering(f"input {place} is left out")
    _check_stateless(ctx)
    elements = handle.constant
    variable = None if elements is None or elements.size != 1 else elements.reshape(-1)[0]
    if not isinstance(variable, ResourceVariable):
        raise NoLowering(f"the variable of {handle!r} is not known before it runs")
    memory, shape = ctx.buffers.state.get(variable, (None, None))
    if memory is None:
        memory = Buffer(f"t{handle.index}", value.dtype, value.shape)
    if memory.dtype is not value.dtype or memory.size != value.size:
        raise NoLowering(f"{variable!r} is {memory} elsewhere")
    if assigned and shape not in (None, value.shape):
        raise NoLowering(f"{variable!r} gets the shape {list(shape or ())} elsewhere")
    ctx.buffers.state[variable] = memory, value.shape if assigned else shape
    return memory


def sequence_of(ctx: LoweringContext, seeds: tuple[int, int]) -> Buffer:
    """Return the memory of the node's generator of random numbers. Raises NoLowering if sizes are assumed."""
    _check_stateless(ctx)
    node: Node = ctx.node.node
    resource = node.subgraph.resources.sequence(node.subgraph.index, node.number, seeds)
    memory = Buffer(f"t{-1 - node.number}", uint64, (3,))  # the name of no tensor
    ctx.buffers.state[resource] = memory, None
    return memory
