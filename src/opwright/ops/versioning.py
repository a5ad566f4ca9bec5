"""The version of an operator that one call needs: the least whose definition can express it.

Lives here: `least_version`.  Not here: what a newer definition does with an older call (upgrading.py), which changes a
new version may bring (changes.py), the versions of builtin `.tflite` operators (lite/format/versions.py).

It follows from the declarations and is written nowhere else. A part with `since=2` needs version 2 where it says
something: an attribute other than its default, an input that is given, an output that is read. What depends on types
or shapes a definition says by a method of its own, `version_needed(op)`. A version that neither a part nor that method
accounts for changed something that is not written down, so every call needs it.

>>> def version_needed(op):
...     return 2 if op.x.dtype == ow.int8 else 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.ir import same_attr
from .rule_errors import call_rule, contract_violation


def least_version(op: Any, attrs: Mapping[str, Any], operands: Sequence[Any], read: Sequence[bool] = ()) -> int:
    """The least version of `op` that has everything a call uses.

    operands: one for each declared input, None or () where it is left out. read: for each declared output whether
    anybody reads it; without it nobody reads those that are intermediate.
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
        raise contract_violation(op, "version_needed", "gave what is no version of the operator",
                                 found=repr(by_rule), wanted=f"1..{op.version}")  # fmt: skip
    return max(needed, by_rule)


def _unaccounted(op: Any) -> int:
    """The greatest version that no declaration explains; 1 where all are."""
    explained = {part.since for part in (*op.inputs, *op.outputs, *op.attr_defs.values())}
    version = 1 if op.version_rule is not None else op.version
    while version > 1 and version in explained:
        version -= 1
    return int(version)
