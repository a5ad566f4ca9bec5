"""Which inputs of a body its outputs depend on by ways that gradients can go.

Lives here: a walk over records alone, before anything is differentiated.  Not here: differentiating (ops/autodiff.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...eager.variable import Variable
from ...ops.autodiff import OpRecord, is_trainable
from .body import Body


def reaching(body: Body, operands: Sequence[Any], targets: Sequence[Any]) -> list[int]:
    """The positions of those inputs that gradients arriving at the targets may reach.

    operands: what the node is given for each input; a variable's gradient is that of the variable.
    """
    live = {id(t) for t in targets}
    for record in reversed(body.trace.recorder.records):
        if type(record) is OpRecord and record.op.gradient_rule is None and record.op.has_gradient_rule:
            continue  # differentiation ends here, by declaration
        if any(id(y) in live for y in record.outputs):
            live.update(id(x) for x in record.inputs)
    found = []
    for i, (operand, placeholder) in enumerate(zip(operands, body.inputs)):
        source = operand if isinstance(operand, Variable) else placeholder
        handle = operand.dtype.name == "resource" and not isinstance(operand, Variable)
        if id(source) in live and is_trainable(source.dtype) and not handle:
            found.append(i)
    return found
