"""Rules: what forms of the loop graph a builtin operator becomes.

Lives here: `forms_of`.
Not here: the rules (one module a family of operators), the table of them (registry.py), what they are given
(../nodes.py).

    @rule("MAX_POOL_2D")
    def max_pool(at):
        x, y = at.operand(0), at.output()
        ...
        at.form(Pool, y.buffer, x.buffer, "max", at.activated(arg(0, x.dtype)), window)

A rule raises Refused(why) for a node that it has no forms for: that stays with the interpreter.
"""

from __future__ import annotations

from ....compiler.loops.forms import Form
from ..nodes import At, Refused
from .registry import BY_SUBGRAPH, COUNTED, MODULES, ON_RESOURCES, STATEFUL, TABLE, rule

__all__ = ["BY_SUBGRAPH", "COUNTED", "MODULES", "ON_RESOURCES", "STATEFUL", "forms_of", "rule"]


def forms_of(at: At) -> list[Form]:
    """The forms of a node. Raises Refused where there are none."""
    name = at.node.name
    if type(at.node.options) is bytes:
        from .written import is_written, written

        if is_written(at.node):
            written(at)
            return at.forms
    found = TABLE.find(name)
    if found is None:
        raise Refused(f"no rule for {name}")
    found(at)
    return at.forms
