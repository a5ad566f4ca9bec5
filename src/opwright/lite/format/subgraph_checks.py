"""Checks of the graphs of a model: the order in which nodes produce tensors, and calls between subgraphs.

Lives here: `Finding`, one violation that a check reports; the rules `tensor_flow`, `subgraph_calls`, `no_recursion` and
`call_depth`; `called_subgraphs`.
Not here: the table of rules (verify.py), buffers of constants (constants.py), running a call (the interpreter).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.named_tuples import NamedTuple
from . import schema


class Finding(NamedTuple):
    """A violation found in a model. at: path of the field from the model's root. what: the message. found, wanted: see
    errors."""

    at: str
    what: str
    found: object = None
    wanted: object = None


INPUT, CONSTANT, VARIABLE, GIVEN = "a subgraph input", "a constant", "a variable", "an output from another op"


def tensor_flow(model: Any) -> Iterator[Finding]:
    """Check that nodes, which run in file order, read only inputs, constants, variables and outputs of earlier
    nodes."""
    builtins = schema.enum_members("BuiltinOperator")
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
                    state_of_tensor = state.get(index)
                    if index < 0 or (state_of_tensor is None) != (side == "Input"):
                        if side == "Output":
                            state[index] = GIVEN
                        continue
                    code = model.operator_codes[operator.opcode_index]
                    number = max(code.builtin_code, code.deprecated_builtin_code)
                    name = code.custom_code or getattr(builtins.get(number), "name", str(number))
                    message = "is not produced" if state_of_tensor is None else f"is {state_of_tensor}"
                    message += ". There is a cycle in the graph" if state_of_tensor == GIVEN else ""
                    path = f"subgraphs[{i}].operators[{j}].{side.lower()}s[{position}]"
                    yield Finding(path, f"{side} tensor {index} to op {j} ({name}) {message}")


MAX_CALL_DEPTH = 64  # nesting of calls: each level uses some of the run time's stack


def called_subgraphs(operator: Any) -> list[tuple[str, int]]:
    """Return (field, subgraph index) for every subgraph that an operator's options name."""
    calls = []
    for union in ("builtin_options", "builtin_options_2"):
        options = getattr(operator, union)
        if options is None:
            continue
        for name in type(options).__slots__:
            if "subgraph" in name:
                calls += [(f"{union}.{name}", int(index)) for index in np.atleast_1d(getattr(options, name))]
    return calls


def subgraph_calls(model: Any) -> Iterator[Finding]:
    n = len(model.subgraphs)
    for i, subgraph in enumerate(model.subgraphs):
        for j, operator in enumerate(subgraph.operators):
            for field, index in called_subgraphs(operator):
                if not 0 <= index < n:
                    path = f"subgraphs[{i}].operators[{j}].{field}"
                    yield Finding(path, "no such subgraph", found=index, wanted=f"below {n}")


def no_recursion(model: Any) -> Iterator[Finding]:
    """Check for cycles by an iterative depth-first search over the call graph."""
    calls = [
        sorted({index for op in subgraph.operators for _, index in called_subgraphs(op)})
        for subgraph in model.subgraphs
    ]
    done: set[int] = set()
    for start in range(len(calls)):
        stack, path, on_path = [iter([start])], list[int](), set[int]()
        while stack:
            index = next(stack[-1], None)
            if index is None:
                stack.pop()
                if path:
                    done.add(path[-1])
                    on_path.discard(path.pop())
            elif index in on_path:
                cycle = [*path[path.index(index) :], index]
                yield Finding(f"subgraphs[{index}]", "subgraph calls itself", found=" -> ".join(map(str, cycle)))
                return
            elif index not in done:
                path.append(index)
                on_path.add(index)
                stack.append(iter(calls[index]))


def call_depth(model: Any) -> Iterator[Finding]:
    """Check the longest path in the acyclic call graph, by topological order from subgraphs without calls."""
    calls = [{index for op in subgraph.operators for _, index in called_subgraphs(op)} for subgraph in model.subgraphs]
    callers: list[list[int]] = [[] for _ in calls]
    left = [len(called) for called in calls]
    for i, called in enumerate(calls):
        for index in called:
            callers[index].append(i)
    depth = [0] * len(calls)
    ready = [i for i, n in enumerate(left) if n == 0]
    while ready:
        index = ready.pop()
        for caller in callers[index]:
            depth[caller] = max(depth[caller], depth[index] + 1)
            left[caller] -= 1
            if left[caller] == 0:
                ready.append(caller)
    for i, levels in enumerate(depth):
        if levels > MAX_CALL_DEPTH:
            yield Finding(
                f"subgraphs[{i}]",
                "subgraphs call each other too deeply",
                found=f"{levels} levels",
                wanted=f"at most {MAX_CALL_DEPTH}",
            )
            return
