"""Errors of a conversion: `ConverterError`, and one report of all operators without a lite form.

Lives here: the class, `UnsupportedNode`, the text of the report.
Not here: detecting such nodes (passes.py, export.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.errors import InvalidArgumentError
from ...graph import Node

PLACES_SHOWN = 3  # lines of the user's code named for each operator


class ConverterError(InvalidArgumentError):
    """An error for a function that cannot be converted; the text names operators, their source lines, and remedies."""


class UnsupportedNode(NamedTuple):
    """A node that the file cannot hold with the present settings. custom: whether a custom operator could."""

    node: Node
    reasons: tuple[str, ...]
    custom: bool = True

    @property
    def flex(self) -> bool:
        """Return whether the node could be a Flex operator; `reasons` records a failed attempt."""
        tried = any(reason.startswith("flex: ") for reason in self.reasons)
        return self.custom and not tried and bool(getattr(self.node.op, "catalogue", False))


def report(unsupported: Sequence[UnsupportedNode]) -> ConverterError:
    """Return one error for all nodes: each operator once, with its nodes, their lines, the reasons, and remedies."""
    by_name: dict[str, list[UnsupportedNode]] = {}
    for node in unsupported:
        by_name.setdefault(node.node.op.name, []).append(node)
    first = unsupported[0].node
    lines = [f"{_count(len(by_name), 'operator')} cannot be written to the file"]
    for name, items in by_name.items():
        lines.append(f"error: 'tf.{name}' op is neither a custom op nor a flex op")
        nodes = [o.node for o in items]
        lines.append(
            f"    {_count(len(nodes), 'node')}: {', '.join(map(_place, nodes[:PLACES_SHOWN]))}"
            + (f" and {len(nodes) - PLACES_SHOWN} more" if len(nodes) > PLACES_SHOWN else "")
        )
        lines += [f"    why: {reason}" for reason in dict.fromkeys(r for o in items for r in o.reasons)]
    names = ", ".join(by_name)
    lines.append(
        "Some ops are not supported by the native TFLite runtime. "
        f"Here is a list of operators for which you will need custom implementations: {names}."
    )
    blocked = sorted({o.node.op.name for o in unsupported if not o.custom})
    possible = [name for name in by_name if name not in blocked]
    ways = []
    unable = {o.node.op.name for o in unsupported if not o.flex}
    flex = [name for name in possible if name not in unable]
    if flex:
        which = "" if flex == possible else f" for {', '.join(flex)} (the others as custom operators)"
        ways.append(
            "converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS, lite.OpsSet.SELECT_TF_OPS]"
            f"{which}, for run times that have TensorFlow's operators, as this interpreter has"
        )
    if possible:
        own = {o.node.op.name for o in unsupported if not getattr(o.node.op, "catalogue", True)}
        taken = next((name for name in possible if name not in own), None)
        where = "" if taken is None else f" ({taken} is ow.ops.get({taken!r}))"
        ways.append(
            "converter.allow_custom_ops = True, then give the operator to the interpreter: "
            f"lite.Interpreter(model_content=..., custom_ops=[{', '.join(possible)}]){where}"
        )
    if blocked:
        ways.append(f"rewriting the function without {', '.join(blocked)}")
    alone = len(unsupported) == 1
    return ConverterError(
        what="\n".join(lines),
        op=first.op.name if len(by_name) == 1 else None,
        node=first.name if alone else None,
        at=first.at if alone else None,
        do=" or ".join(ways),
        explain="OW201",
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _place(node: Node) -> str:
    types = ", ".join(v.spec.short() for v in node.operands)
    return f"{node.name!r}({types}){f' at {node.at}' if node.at else ''}"
