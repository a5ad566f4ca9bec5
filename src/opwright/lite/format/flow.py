"""Which node gives which tensor: each is given once, and before it is read.

Lives here: the rule `tensor_flow`, in the words of the official verifier.  Not here: the table of rules (verify.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opwright.lite.format import schema
from opwright.lite.format.finding import Finding

INPUT, CONSTANT, VARIABLE, GIVEN = "a subgraph input", "a constant", "a variable", "an output from another op"


def tensor_flow(model: Any) -> Iterator[Finding]:
    """Nodes run in the order of the file. What a tensor is before that: an input, a constant or a variable, or none."""
    known = schema.enum_members("BuiltinOperator")
    for i, subgraph in enumerate(model.subgraphs):
        state: dict[int, str] = {}
        for j, tensor in enumerate(subgraph.tensors):
            if tensor.is_variable:
                state[j] = VARIABLE
            elif tensor.external_buffer or (tensor.buffer and model.buffers[tensor.buffer].data is not None):
                state[j] = CONSTANT
        state |= dict.fromkeys(np.asarray(subgraph.inputs).tolist(), INPUT)
        for j, operator in enumerate(subgraph.operators):
            for side, indices in (("Input", operator.inputs), ("Output", operator.outputs)):
                for position, index in enumerate(np.asarray(indices).tolist()):
                    what = state.get(index)
                    if index < 0 or (what is None) != (side == "Input"):
                        if side == "Output":
                            state[index] = GIVEN
                        continue
                    code = model.operator_codes[operator.opcode_index]
                    number = max(code.builtin_code, code.deprecated_builtin_code)
                    name = code.custom_code or getattr(known.get(number), "name", str(number))
                    says = "is not produced" if what is None else f"is {what}"
                    says += ". There is a cycle in the graph" if what == GIVEN else ""
                    at = f"subgraphs[{i}].operators[{j}].{side.lower()}s[{position}]"
                    yield Finding(at, f"{side} tensor {index} to op {j} ({name}) {says}")
