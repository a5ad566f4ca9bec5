"""Errors of running a model: classes of core/errors.py combined with the exceptions of the official interpreter.

Lives here: `as_base` (an error joined with RuntimeError or ValueError), `node_error` (the error of a failed method with
the node's tensors and number).
Not here: texts of single checks; joined classes (core/errors.py: `also`).

The official interpreter raises ValueError from its constructor and accessors, RuntimeError from allocate_tensors,
invoke and resize_tensor_input. Programs catch these; `except ow.errors.OpError` catches every error of this package.
"""

from __future__ import annotations

from typing import Any

from ...core.errors import OpError, ResourceExhaustedError, also
from .. import ops

COMPUTE_ERRORS = (OpError, ArithmeticError, IndexError, TypeError, ValueError)
"""Errors of an operator's computation on operands that it does not take."""

MOST_TENSORS = 12
"""Number of a node's tensors that an error names."""


def as_base(error: OpError, base: type[Exception]) -> OpError:
    """Return the same error as an instance of `base`, too."""
    if isinstance(error, base):
        return error
    new = also(type(error), base)(error.message)
    new.op, new.node, new.at, new.explain = error.op, error.node, error.at, error.explain
    return new.with_traceback(error.__traceback__)


def node_error(error: Exception, node: Any, phase: str, reported: list[str]) -> OpError:
    """Return the error to raise for an exception from a node's method; chain it with `from`.

    phase: init, prepare, invoke or free. reported: messages of the method to context.report_error.
    """
    lines = "".join(f"\n  said    {line}" for line in reported)
    delegate = node.delegate
    if delegate is not None:
        inside = ", ".join(f"{n.number} ({n.name})" for n in node.replaced[:8])
        count = f"{len(node.replaced)} node{'' if len(node.replaced) == 1 else 's'}"
        lines += f"\n  found   delegate {delegate.name} in place of {count}: {inside}"
        lines += ", ..." if len(node.replaced) > 8 else ""
    last = lines + failure_line(node, phase)
    nested = isinstance(error, OpError) and names_failed_node(error)  # raised in a subgraph that the node calls
    if delegate is None and not nested:
        last = tensors_line(node, "found" if "\n  found " not in str(error) else "tensors") + last
    if isinstance(error, OpError):
        text = error.message if error.op else f"{node.name}: {error.message}"
        cls = type(error)
    elif isinstance(error, MemoryError):
        text, cls = f"{node.name}: out of memory\n  wanted  memory for its tensors and work", ResourceExhaustedError
    else:
        text, cls = f"{node.name}: {type(error).__name__}: {error}", OpError
    new = also(cls, RuntimeError)(text + last)
    new.op, new.node, new.explain = node.name, str(node.number), getattr(error, "explain", None)
    if delegate is not None:
        new.delegate = delegate  # type: ignore[attr-defined]  # the delegate to drop in this allocation
    if isinstance(error, OpError) and nested:
        new.op, new.node = error.op, error.node
    return new


def tensors_line(node: Any, label: str) -> str:
    """Return the line of an error that lists a node's tensors, with the operator's names for its inputs."""
    declared = declared_names(node)
    inputs = [_named(i, t, declared) for i, t in enumerate(node.tensors_in)]
    outputs = [f"{t.name!r} {t.short()}" for t in node.tensors_out]
    parts = (
        f"{', '.join(side[:MOST_TENSORS])}{', ...' if len(side) > MOST_TENSORS else ''}" if side else "none"
        for side in (inputs, outputs)
    )
    return f"\n  {label:8}{' -> '.join(parts)}"


def _named(i: int, t: Any, declared: list[str]) -> str:
    name = f"{declared[i]} " if i < len(declared) else ""
    return f"{name}left out" if t is None else f"{name}{t.name!r} {t.short()}"


def declared_names(node: Any) -> list[str]:
    """Return the operator's names for a node's inputs; empty for repeated inputs or without a definition."""
    operator = getattr(node.registration, "operator", None)
    if operator is None:
        try:
            operator = ops.get(node.name)
        except OpError:
            return []
    return [] if any(i.repeated for i in operator.inputs) else [i.name for i in operator.inputs]


def failure_line(node: Any, phase: str) -> str:
    """Return the official interpreter's last line, which names the node. The lines of calling nodes follow it."""
    where = "" if node.subgraph.index == 0 else f" of subgraph {node.subgraph.index}"
    if where and node.subgraph.name:
        where += f" {node.subgraph.name!r}"
    return f"\nNode number {node.number}{where} ({node.name}) failed to {phase}."


def names_failed_node(error: OpError) -> bool:
    """Return whether an error already names the node that failed."""
    return isinstance(error, RuntimeError) and error.node is not None and "\nNode number " in error.message
