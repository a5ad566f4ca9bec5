"""Rules for variables: reading and setting them.

Lives here: these two.  Not here: writes that do more (../writes.py), handles and initial values (../freeze.py,
../variables.py).
"""

from __future__ import annotations

from ....graph import Node
from ...ops import types
from ..lowering import Lowered, Lowering, Rule, table


def _read(node: Node, low: Lowering) -> Lowered:
    return low.emit("READ_VARIABLE", *node.inputs, dtype=types.name_of(node.attrs["dtype"]), like=node.outputs[0].spec)


def _assign(node: Node, low: Lowering) -> Lowered:
    return low.emit_many("ASSIGN_VARIABLE", *node.inputs)


STATE = table(
    Rule("read_variable", "ReadVariable", _read),
    Rule("assign_variable", "AssignVariable", _assign),
)
