"""Users' operators whose class has a kernel: one on scalars is a map that calls it, also of integers that stand for
reals; one on arrays is a step of its own. And those of the catalogue that are one operation, as files of TensorFlow's
converter have Atan: a map of it.

Lives here: their rule; by what plans that have such nodes are kept.
Not here: kernels on scalars as operations of expressions (compiler/inlined_kernels.py), steps
(compiler/kernels/user_kernels.py), which nodes are asked about (../delegate.py).

Quantised operands are converted to reals in the expression, and results to steps, as for builtin operators: of one
tensor of bytes that becomes a table (fusion). Where the class has a method `quantized`, a node of one tensor is a table
of what that gives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....compiler.inlined_kernels import call, own_kernel, user_code
from ....compiler.kernel import COMPILED, Kernel
from ....compiler.loops.expressions import arg, lookup
from ....compiler.loops.forms import Buffer, Map
from ....compiler.lowering.context import Buffers, LoweringContext, NoLowering, Operand
from ....compiler.lowering.elementwise import broadcast, mapped
from ....compiler.lowering.functions import SAME, applied
from ....compiler.lowering.quantized import NARROW, real, stored
from ....compiler.lowering.registry import LITE, lower, rule
from ....compiler.lowering.user_kernels import check_parameters, inlined_kernel, lower_kernel
from ....core.dtypes import float32
from ....core.errors import OpError
from ....core.specs import TensorSpec
from ....ops.call import Call
from ...custom_options import group_inputs
from ...quantized_registration import as_real, is_quantized, kernel_of, real_dtype, rule_of, run_quantized
from ...registration import ValueOperand
from ...runtime.node import Node
from ..nodes import InterpreterNode, is_user_operator, operand_of


@rule(LITE)
def written(ctx: LoweringContext) -> None:
    """The form of a node. Raises NoLowering for what its kernel, or its operator, does not take."""
    node: Node = ctx.node.node
    operator: Any = node.registration.operator  # type: ignore[union-attr]
    kernel = own_kernel(operator)
    others = any(key.place == "cpu" for key in operator.kernels)  # somebody's own, which is to run
    is_function = operator.catalogue and not others and operator.name in SAME
    if kernel is None and not is_function:
        raise NoLowering("it computes in Python")
    operands = [ctx.operand(i) for i, t in enumerate(node.tensors_in) if t is not None]
    outputs = [ctx.output(place=i) for i in range(len(node.tensors_out))]
    as_reals = is_quantized(operator, node) and operator.quantized_rule != "integers"
    _infer(node, operator, operands, outputs, as_reals)
    given: list[Operand | None] = [*operands]
    if isinstance(kernel, Kernel):  # one of its parameters may be left out
        given = [None if t is None else ctx.buffers.of(t) for t in group_inputs(operator, node.tensors_in, node)]
    if is_function:
        _of_catalogue(ctx, operator.name, operands, outputs, as_reals)
    elif not as_reals:
        lower_kernel(ctx, kernel, _attributes(node) if isinstance(kernel, Kernel) else node.user_data, given, outputs)
    elif isinstance(kernel, Kernel):
        _on_reals(ctx, operator, kernel, given, outputs)
    else:
        raise NoLowering("its kernel on arrays computes on reals")


def _infer(node: Node, operator: Any, operands: list[Operand], outputs: list[Operand], as_reals: bool) -> None:
    """Raise NoLowering if the operator's own rules refuse the node, or give outputs other shapes than the file."""

    def known(o: Operand) -> Any:
        return TensorSpec(o.shape, o.dtype) if o.buffer.constant is None else ValueOperand(o.value)

    def of(t: Any) -> Any:
        return known(next(o for o in operands if o.value is t))

    try:
        given = [None if t is None else of(t) for t in node.tensors_in]
        if as_reals:
            rule_of(operator, node)
            given = as_real(operator, node, of)
        specs = operator.infer(node.user_data, group_inputs(operator, given, node))
    except (OpError, TypeError, ValueError, AttributeError) as error:  # preparing or running it says what is wrong
        raise NoLowering(str(error).splitlines()[0]) from None
    dtype_of = real_dtype if as_reals else lambda t: t.dtype
    found = [
        (tuple(s.shape.dims), s.dtype) if isinstance(s, TensorSpec) and s.shape.dims is not None else None
        for s in specs
    ]
    if found != [(o.shape, dtype_of(o.value)) for o in outputs]:
        raise NoLowering("its results' shapes do not follow from those of its inputs")


def _on_reals(
    ctx: LoweringContext, operator: Any, kernel: Kernel, given: list[Operand | None], outputs: list[Operand]
) -> None:
    """The map of integers that stand for real numbers, or the table of the class's own rule."""
    check_parameters(kernel, given, outputs)
    operands, (y,) = [o for o in given if o is not None], outputs
    if operator.quantized_rule != "reals":
        _tabulated(ctx, operator, operands, y)
        return
    function = inlined_kernel(kernel, _attributes(ctx.node.node), [None if o is None else float32 for o in given])
    value = call(function, *(real(o, i) for i, o in enumerate(operands)))
    mapped(ctx, y, stored(value, y) if y.is_quantized else value, *operands)


def _attributes(node: Node) -> Call:
    """Raise NoLowering if the operator reads its options itself."""
    if not isinstance(node.user_data, Call):
        raise NoLowering("its options are not read")
    return node.user_data


def _of_catalogue(
    ctx: LoweringContext, name: str, operands: list[Operand], outputs: list[Operand], as_reals: bool
) -> None:
    """The map of a function of the table, of dtypes in which it is what the operator computes."""
    (y,) = outputs
    if as_reals or any(o.dtype.np not in COMPILED for o in (*operands, y)):
        raise NoLowering(f"its function is not for {', '.join(o.dtype.name for o in operands)}")
    if broadcast(*operands) != y.shape:
        raise NoLowering("the result has another shape than its operands together")
    attributes = ctx.node.node.user_data
    value = applied(name, lambda key: getattr(attributes, key), *(arg(i, o.dtype) for i, o in enumerate(operands)))
    if value is None:
        raise NoLowering(f"it is another function of {y.dtype.name}")
    mapped(ctx, y, value, *operands)


def _tabulated(ctx: LoweringContext, operator: Any, operands: list[Operand], y: Operand) -> None:
    """The table of what the class's own rule gives for each integer."""
    if len(operands) != 1 or operands[0].dtype not in NARROW or y.shape != operands[0].shape:
        raise NoLowering("its class says what it does with quantised tensors")
    x, node = operands[0], ctx.node.node
    try:
        kernel = kernel_of(operator, rule_of(operator, node), node.user_data, node, group_inputs)
        every = np.arange(1 << (8 * x.dtype.size), dtype=f"u{x.dtype.size}").view(x.dtype.np)
        found = np.empty(every.shape, y.dtype.np)
        with np.errstate(all="ignore"):
            run_quantized(kernel, [every], [found], node.name)
    except OpError as error:
        raise NoLowering(error.message) from None
    found.flags.writeable = False
    table = Buffer(f"{y.buffer.name}.table", y.dtype, found.shape, found)
    ctx.form(Map, y.buffer, (x.buffer, table), lookup(arg(0, x.dtype), arg(1, y.dtype)))


# ---- plans that are kept -------------------------------------------------------------------------------------------


class Codes(NamedTuple):
    """What plans of a subgraph hang on besides the file and Opwright itself: users' code, as text. unseen: nodes whose
    rule refused them now; a plan that has one after all hangs on more."""

    text: str
    unseen: frozenset[int]


def codes_of(subgraph: Any) -> Codes | None:
    """Of the nodes in the execution plan. None where a node's init fails, so that no plan is to be kept."""
    found, unseen = [], set()
    for node in subgraph.execution_plan:
        if is_user_operator(node):
            try:
                subgraph.init(node)
            except OpError:  # the allocation reports it
                return None
            code = _code_of(node)
            if code is None:
                unseen.add(node.number)
            found.append(code or f"{node.number} in Python")
    return Codes("; ".join(found), frozenset(unseen))


def _code_of(node: Node) -> str | None:
    """None where the rule refuses the node now."""
    ctx = LoweringContext(InterpreterNode(node), Buffers(operand_of))
    try:
        lower(ctx)
    except NoLowering:
        return None
    return f"{node.number} {user_code(ctx.forms[0])}"
