"""Rules: what forms of the loop graph a catalogue operator becomes, for `function(jit_compile=True)`.

Lives here: `forms_of`.
Not here: the rules (one module a family of operators), the table of them (registry.py), what they are given (nodes.py),
files' operators (lite/compiled/rules/).

    @rule("Transpose")
    def transpose(at):
        x = at.operand(0)
        at.moved_whole(at.output(), x, places(x).transpose(at.attr("perm")))

A rule raises Refused(why) for a node that it has no forms for: that runs as it is, between native calls.
"""

from __future__ import annotations

from ..loops.forms import Form
from .nodes import At, Buffers, Refused
from .registry import MODULES, TABLE, rule

__all__ = ["MODULES", "At", "Buffers", "Refused", "forms_of", "rule"]


def forms_of(at: At) -> list[Form]:
    """The forms of a node. Raises Refused where there are none."""
    op = at.node.op
    if not op.catalogue:
        from .written import written

        written(at)
        return at.forms
    found = TABLE.find(op.name)
    if found is None:
        raise Refused(f"no rule for {op.name}")
    found(at)
    return at.forms
