"""Writes of variables that depend on single elements: steps of optimizers, sums in place.

Lives here: the rules of UpdateVariable, UpdateRows, AssignAddVariable, AssignSubVariable; `HandleMemory`, the variables
of a graph's handles; `rule_expressions`, a rule of an optimizer as expressions; `joined`, which makes one pass of
several.
Not here: the formulas (ops/optimizer_rules.py) and their tracing (../traced_rules.py), which nodes are written together
(../update_regions.py), the kernel (../kernels/updates.py).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from ...core.dtypes import DType, bfloat16, float16, float32, float64
from ...graph import Node, Value
from ...ops.optimizer_rules import RULES
from ..kernels import NoKernel
from ..kernels.expression import check
from ..loops.buffers import Buffer, SameMemory
from ..loops.expressions import Expr, apply, arg, const, substitute
from ..loops.ops import RowsUpdate, Update
from ..traced_rules import UntracedRule, traced_rule
from .context import LoweringContext, NoLowering
from .registry import rule
from .stateful import memory_of

DTYPES = (float16, bfloat16, float32, float64)
"""Types of variables. Expressions of narrow floats are rounded after each operation, as the rules on arrays are."""


class HandleMemory:
    """The variables of a graph whose handles are its inputs: a `ResourceState` without other state.

    shapes: of variables that the graph reads
    """

    def __init__(self, handles: Iterable[Value], shapes: Mapping[Value, tuple[int, ...]] | None = None) -> None:
        self._handles, self.shapes = frozenset(handles), shapes or {}

    def variable(self, handle: Value) -> tuple[str, Hashable] | None:
        """Return the name and the identity of the memory; None for a handle that the graph computes."""
        return (handle.name, handle) if handle in self._handles else None

    def cache(self, node: Node, layer: int) -> Sequence[tuple[str, Hashable]]:
        """Raise NoLowering: graphs have no key-value caches."""
        raise NoLowering("it has a key-value cache")

    def sequence(self, node: Node, seeds: tuple[int, int]) -> tuple[str, Hashable]:
        """Raise NoLowering: generators of graphs run outside of machine code."""
        raise NoLowering("it draws random numbers")


@functools.cache
def rule_expressions(name: str, dtype: DType) -> tuple[Expr, ...]:
    """Return a rule as expressions of the new variable and its state, in order.

    Their args are the variable, its state, the gradient and the scalars. raises NoLowering if the rule computes what
    expressions cannot
    """
    update_rule = RULES[name]
    count = 2 + len(update_rule.state) + len(update_rule.scalars)
    try:
        return traced_rule(name, [arg(i, dtype) for i in range(count)], apply)
    except UntracedRule as why:
        raise NoLowering(str(why)) from None


@functools.cache
def idle_rule(name: str, dtype: DType) -> tuple[Expr, ...]:
    """Return a rule for a gradient of 0. Their args are the variable, its state and the scalars."""
    gradient, scalars = 1 + len(RULES[name].state), len(RULES[name].scalars)
    args = {gradient + 1 + i: arg(gradient + i, dtype) for i in range(scalars)}
    args[gradient] = const(0.0, dtype)
    return tuple(substitute(e, args) for e in rule_expressions(name, dtype))


def rows_rule(name: str, dtype: DType) -> tuple[tuple[Expr, ...], tuple[Expr, ...]] | None:
    """Return a rule for rows with a gradient and for all others; None if it has no machine code for the dtype."""
    if dtype not in DTYPES:
        return None
    try:
        step = rule_expressions(name, dtype)
        for expr in step:
            check(expr)
    except (NoKernel, NoLowering):
        return None
    return step, idle_rule(name, dtype)


@rule("UpdateVariable")
def update_variable(ctx: LoweringContext) -> None:
    variable, state, _, scalars = ctx.node.inputs
    name: str = ctx.attr("rule")
    handles: Any = (variable, *_values(state))
    numbers = [ctx.buffers.of(c).buffer for c in _values(scalars)]
    gradient = ctx.operand(2).buffer
    _add(ctx, handles, (gradient, *numbers), rule_expressions(name, _dtype(gradient)))


@rule("UpdateRows")
def update_rows(ctx: LoweringContext) -> None:
    """Lower a step by rows whose indices are known to be in range, of a table that the graph reads."""
    variable, state, _, _, scalars = ctx.node.inputs
    name: str = ctx.attr("rule")
    memory = ctx.buffers.resources
    assert isinstance(variable, Value)
    shape = memory.shapes.get(variable) if isinstance(memory, HandleMemory) else None
    gradient, indices = ctx.operand(2).buffer, ctx.operand(3).buffer
    numbers = [ctx.buffers.of(c).buffer for c in _values(scalars)]
    if shape is None or gradient.dtype not in (float32, float64) or gradient.shape != (*indices.shape, *shape[1:]):
        raise NoLowering(f"rows {gradient} of a table of {list(shape or ())}")
    if any(b.size != 1 or b.dtype is not gradient.dtype for b in numbers) or not gradient.size:
        raise NoLowering("a scalar of another shape or type, or no rows")
    handles: Any = (variable, *_values(state))
    table = Buffer("table", gradient.dtype, shape)
    targets = tuple(memory_of(ctx, handle, table) for handle in handles)
    if any(t.shape != shape for t in targets) or len({*map(id, targets)}) < len(targets):
        raise NoLowering("variables of other shapes, or one twice")
    idle = () if ctx.attr("lazy") or RULES[name].still else idle_rule(name, gradient.dtype)
    output = SameMemory(f"{targets[0].name}.after", gradient.dtype, shape, of=targets[0])
    exprs = rule_expressions(name, gradient.dtype)
    ctx.add(RowsUpdate, output, targets, (gradient, *numbers), exprs, indices, idle)


@rule("AssignAddVariable", "AssignSubVariable")
def add_in_place(ctx: LoweringContext) -> None:
    value = ctx.operand(1).buffer
    function = "add" if ctx.operator == "AssignAddVariable" else "sub"
    dtype = _dtype(value)
    _add(ctx, (ctx.node.inputs[0],), (value,), (apply(function, arg(0, dtype), arg(1, dtype)),))


def _values(inputs: Any) -> Sequence[Value]:
    return inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)


def _dtype(values: Buffer) -> DType:
    if values.dtype not in DTYPES:
        raise NoLowering(f"a variable of {values.dtype.name}")
    if not values.size:
        raise NoLowering("a variable without elements")
    return values.dtype


def _add(ctx: LoweringContext, handles: Sequence[Any], operands: tuple[Buffer, ...], exprs: tuple[Expr, ...]) -> None:
    """Add an update. operands: the first has the variables' shape, the others one element."""
    values, *numbers = operands
    if any(b.size != 1 or b.dtype is not values.dtype for b in numbers):
        raise NoLowering("a scalar of another shape or type")
    targets = tuple(memory_of(ctx, handle, values) for handle in handles)
    if any(t.shape != values.shape for t in targets) or len({*map(id, targets)}) < len(targets):
        raise NoLowering("variables of other shapes, or one twice")
    output = SameMemory(f"{targets[0].name}.after", values.dtype, values.shape, of=targets[0])
    ctx.add(Update, output, targets, operands, exprs)


def joined(updates: Iterable[Update]) -> list[Update]:
    """Return the updates with those of the same arrays in one pass, in an order with the same results.

    A decay, the step by a gradient and the average of the result are one pass over the variable.
    """
    passes: list[Update] = []
    for update in updates:
        last = next((i for i in reversed(range(len(passes))) if _conflict(passes[i], update)), None)
        if last is not None and _is_one_pass(passes[last], update):
            passes[last] = _join(passes[last], update)
        else:
            passes.append(update)
    return passes


def _conflict(earlier: Update, later: Update) -> bool:
    """Return whether one of the two writes an array that the other accesses."""
    targets, later_targets = {*map(id, earlier.targets)}, {*map(id, later.targets)}
    return bool(targets & (later_targets | {*map(id, later.operands)}) or later_targets & {*map(id, earlier.operands)})


def _is_one_pass(earlier: Update, later: Update) -> bool:
    """Return whether each element of the later update depends on the same element of the earlier one."""
    if isinstance(earlier, RowsUpdate) or isinstance(later, RowsUpdate):
        return False
    shape = earlier.output.shape
    written = {*map(id, earlier.targets), *map(id, later.targets)}
    reads = (*earlier.operands, *later.operands)
    return later.output.shape == shape and all(b.shape == shape for b in reads if id(b) in written)


def _join(earlier: Update, later: Update) -> Update:
    targets = list(dict.fromkeys((*earlier.targets, *later.targets)))
    operands = list(dict.fromkeys(b for b in (*earlier.operands, *later.operands) if b not in targets))
    index = {b: i for i, b in enumerate((*targets, *operands))}
    values: dict[Buffer, Expr] = {b: arg(i, b.dtype) for b, i in index.items()}
    for update in (earlier, later):
        reads = {i: values[b] for i, b in enumerate((*update.targets, *update.operands))}
        values |= {t: substitute(e, reads) for t, e in zip(update.targets, update.exprs)}
    return dataclasses.replace(
        earlier,
        targets=tuple(targets),
        operands=tuple(operands),
        exprs=tuple(values[t] for t in targets),
        origin=(*earlier.origin, *later.origin),
    )
