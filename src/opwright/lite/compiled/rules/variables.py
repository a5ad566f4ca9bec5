"""Variables by name: READ_VARIABLE, ASSIGN_VARIABLE; and CALL_ONCE, which sets them before a plan first runs.

Lives here: these rules.
Not here: what reads and assignments of one plan become together (../variables.py), the operators (lite/ops/state.py).
"""

from __future__ import annotations

from ....compiler.loops.forms import Buffer
from ....compiler.lowering.context import LoweringContext, NoLowering
from ....compiler.lowering.registry import rule
from ....compiler.lowering.type_conversion import check_whole_bytes
from ...runtime.delegate_context import has_effects
from ..nodes import variable_of
from ..variables import Assignment, Reading


@rule("READ_VARIABLE")
def read(ctx: LoweringContext) -> None:
    y = ctx.output()
    check_whole_bytes(y)
    ctx.form(Reading, y.buffer, variable_of(ctx, 0, y.buffer))


@rule("ASSIGN_VARIABLE")
def assign(ctx: LoweringContext) -> None:
    x = ctx.operand(1)
    check_whole_bytes(x)
    variable = variable_of(ctx, 0, x.buffer, assigned=True)
    ctx.form(Assignment, Buffer(f"{variable.name}.after", x.dtype, x.shape), x.buffer, variable)


@rule("CALL_ONCE")
def call_once(ctx: LoweringContext) -> None:
    """No form: who runs the plan sees to it first. So nothing that has an effect may come before it."""
    for node in ctx.node.node.subgraph.execution_plan:
        if node is ctx.node.node:
            return
        if node.name != "CALL_ONCE" and has_effects(node):
            raise NoLowering(f"node {node.number} has effects before it")
