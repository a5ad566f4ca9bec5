"""Versions of operators: the lowest that a call needs, and upgrades of nodes of older versions.

Lives here: `least_version`; the outputs added to a node read from a file, and the error for an invalid node.
Not here: added inputs and attributes, where text is read (graph/parser.py), files (saved/), allowed changes between
versions (spec_changes.py), the versions of builtin `.tflite` operators (lite/format/versions.py).

The version follows from the declarations and is written nowhere else. A part with `since=2` requires version 2 if it is
used: an attribute other than its default, an input that is present, an output that is read. If it depends on types or
shapes, the definition has a method `version_needed(op)`. A version that neither a part nor that method explains changed
something undeclared, so every call needs it.

>>> def version_needed(op):
...     return 2 if op.x.dtype == ow.int8 else 1

An older node lacks the additions of later versions, which can only be optional: attributes get their default (the older
version's behaviour), optional inputs are absent, intermediate outputs are computed and not read. Additions come last,
so that the parts in the file keep their positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import SignatureError
from ..graph import Graph, Node
from ..graph.ir import same_attr
from .rule_errors import call_rule, contract_violation


def least_version(op: Any, attrs: Mapping[str, Any], operands: Sequence[Any], read: Sequence[bool] = ()) -> int:
    """Return the lowest version of `op` that has everything a call uses.

    operands: one for each declared input, None or () where it is left out. read: for each declared output whether
    it is read; by default intermediate ones are not.
    raises DefinitionError where the definition's version_needed gives what is no version of it
    """
    needed = _unaccounted(op)
    for name, attr in op.attr_defs.items():
        if attr.since > needed and name in attrs and not same_attr(attrs[name], attr.default):
            needed = attr.since
    for declared, operand in zip(op.inputs, operands):
        if operand is not None and not (isinstance(operand, tuple) and not operand):
            needed = max(needed, declared.since)
    for declared, is_read in zip(op.outputs, read):
        if is_read:
            needed = max(needed, declared.since)
    if op.version_rule is None:
        return needed
    by_rule = call_rule(op, "version_needed", op.version_rule, op.bind(dict(attrs)).with_inputs(operands))
    if type(by_rule) is not int or not 1 <= by_rule <= op.version:
        raise contract_violation(
            op,
            "version_needed",
            "gave what is no version of the operator",
            found=repr(by_rule),
            wanted=f"1..{op.version}",
        )
    return max(needed, by_rule)


def _unaccounted(op: Any) -> int:
    """Return the greatest version that no declaration explains; 1 if all are explained."""
    explained = {part.since for part in (*op.inputs, *op.outputs, *op.attr_defs.values())}
    version = 1 if op.version_rule is not None else op.version
    while version > 1 and version in explained:
        version -= 1
    return int(version)


def with_outputs(graph: Graph, node: Node, attrs: Mapping[str, Any], specs: Sequence[Any]) -> Node | None:
    """Return the node with these attributes and the intermediate outputs that it lacks at its end. None if it lacks
    others.

    specs: what inference gives, one entry for each declared output, a list for a repeated one
    """
    present = 0
    for i, (declared, spec) in enumerate(zip(node.op.outputs, specs)):
        if present == len(node.outputs) and all(o.since > 1 for o in node.op.outputs[i:]):
            break
        present += len(spec) if declared.repeated else 1
    else:
        return node.replaced(attrs=attrs) if present == len(node.outputs) else None
    if present != len(node.outputs):
        return None
    names_ = {v.name for v in graph.values()} | {n.name for n in graph.nodes}
    added = [s for entry in specs[i:] for s in (entry if isinstance(entry, list) else (entry,))]
    names = [v.name for v in node.outputs]
    for index in range(present, present + len(added)):
        name = f"{node.name}.{index}"
        while name in names_:
            name += "_"
        names_.add(name)
        names.append(name)
    return Node(node.op, node.inputs, attrs, [*(v.spec for v in node.outputs), *added], node.name, node.at, names)


def node_error(node: Node, error: Exception, file_version: int | None) -> str:
    """Return why a node is invalid, naming both versions if they may be the reason."""
    text = str(error)[:500]
    if isinstance(error, SignatureError) and file_version is not None:
        text += (
            f"\n  the file was written with version {file_version} of {node.op.name}, here is version "
            f"{node.op.version}; load it with the definition that it was saved with, or a newer one"
        )
    return text
