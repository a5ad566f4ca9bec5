"""What a model needs of a run time: by node, the version in the file, the least that would do, the first run time.

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
"""Custom operators that the official run time has itself."""


class Requirement(NamedTuple):
    """One node of a model, or an operator code that no node uses.

    subgraph, node: where it is, None for a code without nodes; code: the index of its operator code. operator: the
    builtin's or the custom operator's name. version: as the file says, a custom operator's in its code or its options.
    needed, why: the least version that expresses the node and the rule that asks for it; a custom operator's is what
    the file says. runtime: the first official run time with both versions, the file's and the one needed (a stamp that
    is too low deceives a run time, but gives it no kernel); "" where none is known.
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
        """The version that a run time must have: a stamp that is too high is refused as well."""
        return max(self.version, self.needed)

    @property
    def where(self) -> str:
        """The node in words: node 12, node 3 of subgraph 1."""
        if self.node is None:
            return "no node"
        return f"node {self.node}" + (f" of subgraph {self.subgraph}" if self.subgraph else "")


def requirements(model: Any) -> list[Requirement]:
    """What each node of a verified model needs, in the order of the file; then operator codes without nodes."""
    found, used = [], set()
    for index, subgraph in enumerate(model.subgraphs):
        for number, operator in enumerate(subgraph.operators):
            used.add(operator.opcode_index)
            found.append(
                _requirement(
                    model,
                    operator.opcode_index,
                    index,
                    number,
                    versions.view(subgraph, operator),
                    operator.custom_options,
                )
            )
    return found + [_requirement(model, i) for i in range(len(model.operator_codes)) if i not in used]


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
    needed, why = (version, "") if view is None else (versions.stamp(name, view), versions.reason(name, view))
    least, most = versions.resolver_range(name) or (1, 0)  # some have a run time in the table and no kernel there
    wanted = max(version, needed)
    runtime = versions.min_runtime(name, wanted) if least <= version and wanted <= most else ""
    return Requirement(subgraph, node, code_index, name, False, version, needed, why, runtime)


def unsupported_by(found: Iterable[Requirement], runtime: str) -> list[Requirement]:
    """Those that a run time does not have, custom operators apart, in order. "2.8" means any 2.8.x."""
    return [n for n in found if not n.custom and (not n.runtime or versions.is_newer(n.runtime, runtime))]


def user_custom_ops(found: Iterable[Requirement]) -> list[Requirement]:
    """The nodes of custom operators that no official run time has by itself, in order."""
    return [n for n in found if n.custom and n.node is not None and n.operator not in OFFICIAL_CUSTOMS]


def least_runtime(found: Iterable[Requirement]) -> str:
    """The first run time that has what all nodes need, custom operators and what no run time is known to have apart."""
    return max((n.runtime for n in found if n.node is not None), key=versions.runtime_key, default="")


def stored_runtime(model: Any) -> str | None:
    """The run time that the model's metadata names, None where it names none; "?" where the entry is malformed."""
    for entry in model.metadata or ():
        if entry.name == versions.METADATA_NAME:
            data = model.buffers[entry.buffer].data if 0 <= entry.buffer < len(model.buffers) else None
            raw = b"" if data is None else bytes(data[: versions.METADATA_BYTES])
            text, end, _ = raw.partition(b"\0")
            parts = text.split(b".") if text else []
            return text.decode() if end and all(p.isdigit() and p.isascii() for p in parts) else "?"
    return None
