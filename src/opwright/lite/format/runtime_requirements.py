"""Run-time requirements of a model: for each node the version in the file, the least one, the first run time.

Lives here: `requirements`, `unsupported_by`, `user_custom_ops`, `least_runtime`, `stored_runtime`.
Not here: the rules (versions.py), reports (opwright.tools), converting for an older run time (lite/convert/).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from . import versions
from .flexbuffers import custom_version

OFFICIAL_CUSTOMS = frozenset(
    {"TFLite_Detection_PostProcess", "AudioSpectrogram", "Mfcc", "NumericVerify", "aeq.hadamard_rotation"}
)
"""Custom operators that the official run time includes."""


class Requirement(NamedTuple):
    """The run time that one node requires, or an operator code without nodes.

    subgraph, node: the position, None for a code without nodes. code: the index of its operator code. operator: the
    builtin's or the custom operator's name. version: in the file, for a custom operator in its code or its options.
    needed, why: the least version that expresses the node and the rule that requires it; for a custom operator the
    file's version. runtime: the first official run time with both versions, the file's and the needed one (a version
    that is too low does not give a run time the kernel); "" if unknown.
    """

    subgraph: int | None
    node: int | None
    code: int
    operator: str
    custom: bool
    version: int
    needed: int
    why: str
    runtime: str

    @property
    def least(self) -> int:
        """The version that a run time must support; it also refuses a version that is higher than needed."""
        return max(self.version, self.needed)

    @property
    def where(self) -> str:
        """The node's position as text: node 12, node 3 of subgraph 1."""
        if self.node is None:
            return "no node"
        return f"node {self.node}" + (f" of subgraph {self.subgraph}" if self.subgraph else "")


def requirements(model: Any) -> list[Requirement]:
    """Return the requirement of each node of a verified model, in file order, then of operator codes without nodes."""
    result, used = [], set()
    for index, subgraph in enumerate(model.subgraphs):
        for number, operator in enumerate(subgraph.operators):
            used.add(operator.opcode_index)
            result.append(
                _requirement(
                    model,
                    operator.opcode_index,
                    index,
                    number,
                    versions.view(subgraph, operator),
                    operator.custom_options,
                )
            )
    return result + [_requirement(model, i) for i in range(len(model.operator_codes)) if i not in used]


def _requirement(
    model: Any,
    code_index: int,
    subgraph: int | None = None,
    node: int | None = None,
    view: Any = None,
    options: Any = None,
) -> Requirement:
    code = model.operator_codes[code_index]
    name, version = versions.op_name(code), int(code.version)
    if name == "CUSTOM":
        version = custom_version(version, options)
        return Requirement(subgraph, node, code_index, code.custom_code or "", True, version, version, "", "")
    needed, why = (version, "") if view is None else versions.stamp_and_reason(name, view)
    least, most = versions.resolver_range(name) or (1, 0)  # the table has run times for some operators without kernels
    required = max(version, needed)
    runtime = versions.min_runtime(name, required) if least <= version and required <= most else ""
    return Requirement(subgraph, node, code_index, name, False, version, needed, why, runtime)


def unsupported_by(requirements: Iterable[Requirement], runtime: str) -> list[Requirement]:
    """Return the requirements of builtin operators that a run time does not meet, in order. "2.8" means any 2.8.x."""
    return [n for n in requirements if not n.custom and (not n.runtime or versions.is_newer(n.runtime, runtime))]


def user_custom_ops(requirements: Iterable[Requirement]) -> list[Requirement]:
    """Return the nodes of custom operators that the official run time does not include, in order."""
    return [n for n in requirements if n.custom and n.node is not None and n.operator not in OFFICIAL_CUSTOMS]


def least_runtime(requirements: Iterable[Requirement]) -> str:
    """Return the first run time that meets all nodes' requirements, except those of custom and unknown operators."""
    return max((n.runtime for n in requirements if n.node is not None), key=versions.runtime_key, default="")


def stored_runtime(model: Any) -> str | None:
    """Return the run time in the model's metadata, None without an entry, "?" for a malformed one."""
    for entry in model.metadata or ():
        if entry.name == versions.METADATA_NAME:
            data = model.buffers[entry.buffer].data if 0 <= entry.buffer < len(model.buffers) else None
            raw = b"" if data is None else bytes(data[: versions.METADATA_BYTES])
            text, end, _ = raw.partition(b"\0")
            parts = text.split(b".") if text else []
            return text.decode() if end and all(p.isdigit() and p.isascii() for p in parts) else "?"
    return None
