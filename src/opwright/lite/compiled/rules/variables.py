"""Variables by name: READ_VARIABLE, ASSIGN_VARIABLE; and CALL_ONCE, which sets them before a plan first runs.

Lives here: these rules.
Not here: what reads and assignments of one plan become together (../variables.py), the operators (lite/ops/state.py).
"""

from __future__ import annotations

from ....compiler.loops.forms import Buffer
from ...runtime.delegate_context import has_effects
from ..nodes import At, Refused
from ..variables import Assignment, Reading
from .below_a_byte import check_whole_bytes
from .registry import rule


@rule("READ_VARIABLE")
def read(at: At) -> None:
    y = at.output()
    check_whole_bytes(y)
    at.form(Reading, y.buffer, at.variable(0, y.buffer))


@rule("ASSIGN_VARIABLE")
def assign(at: At) -> None:
    x = at.operand(1)
    check_whole_bytes(x)
    variable = at.variable(0, x.buffer, assigned=True)
    at.form(Assignment, Buffer(f"{variable.name}.after", x.dtype, x.shape), x.buffer, variable)


@rule("CALL_ONCE")
def call_once(at: At) -> None:
    """No form: who runs the plan sees to it first. So nothing that has an effect may come before it."""
    for node in at.node.subgraph.execution_plan:
        if node is at.node:
            return
        if node.name != "CALL_ONCE" and has_effects(node):
            raise Refused(f"node {node.number} has effects before it")
