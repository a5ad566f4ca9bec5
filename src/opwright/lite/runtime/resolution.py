"""Finding the registration of each operator code of a model, and saying well what is not there.

Lives here: `resolve`, the error that lists every operator that nothing serves.
Not here: resolvers (lite/resolver.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.errors import InvalidArgumentError, NotFoundError, OpError
from ...ops import installed
from .. import ops
from ..format import schema, versions
from ..format.flexbuffers import custom_version
from .errors import also

if TYPE_CHECKING:
    from ..registration import Registration
    from ..resolver import OpResolver

INSTRUCTIONS = "https://www.tensorflow.org/lite/guide/ops_custom"
FLEX_INSTRUCTIONS = "https://www.tensorflow.org/lite/guide/ops_select"
FLEX = (
    "Select TensorFlow op(s), included in the given model, is(are) not supported by this interpreter. "
    "Make sure you apply/link the Flex delegate before inference."
)
_MOST_NODES = 4


class Resolved(NamedTuple):
    """An operator code with what serves it; registration is None for a custom operator that nothing serves.

    carried: for a custom operator, what serves the nodes whose options carry another version, by that version.
    """

    name: str
    version: int
    is_custom: bool
    registration: Registration | None
    carried: Mapping[int, Resolved] = MappingProxyType({})

    def has_early(self) -> bool:
        """Whether nodes of this code are to be initialised as soon as there is an interpreter."""
        every = (self, *self.carried.values())
        return any(r.registration is not None and r.registration.early for r in every)

    def of(self, options: bytes) -> Resolved:
        """What serves a custom node with these options."""
        return self.carried.get(custom_version(self.version, options), self) if self.carried else self


class Missing(NamedTuple):
    """An operator that nothing serves, with the nodes that are one, in words."""

    name: str
    version: int
    is_custom: bool
    nodes: Sequence[str]


def resolve(model: Any, resolver: OpResolver) -> list[Resolved]:
    """Each operator code of a model with its registration.

    raises InvalidArgumentError where a builtin operator or its version is not there, listing everything that is not.
    Custom operators alone are an error when tensors are allocated, as a delegate may still take them.
    """
    found: list[Resolved] = []
    carried = _carried(model)
    for code in model.operator_codes:
        number, version = versions.builtin_code(code), int(code.version)
        if number == schema.BuiltinOperator.CUSTOM:
            found.append(_custom(code.custom_code, version, carried.get(len(found), ()), resolver))
            continue
        member = schema.enum_members("BuiltinOperator")[number]
        found.append(Resolved(member.name, version, False, resolver.find_op(member, version)))
    if any(r.registration is None and not r.is_custom for r in found):
        raise unresolved(_missing(model, found), resolver)
    return found


def _carried(model: Any) -> dict[int, set[int]]:
    """By operator code, the versions that the options of its custom nodes carry instead of 1."""
    customs = {
        i
        for i, code in enumerate(model.operator_codes)
        if versions.builtin_code(code) == schema.BuiltinOperator.CUSTOM and code.version == 1
    }
    found: dict[int, set[int]] = {}
    if customs:
        for operator in (op for subgraph in model.subgraphs for op in subgraph.operators):
            if operator.opcode_index in customs:
                version = custom_version(1, operator.custom_options)
                if version != 1:
                    found.setdefault(operator.opcode_index, set()).add(version)
    return found


def _custom(name: str, version: int, carried: Iterable[int], resolver: OpResolver) -> Resolved:
    others = {v: Resolved(name, v, True, resolver.find_custom(name, v)) for v in carried}
    return Resolved(name, version, True, resolver.find_custom(name, version), others)


def _missing(model: Any, found: Sequence[Resolved]) -> list[Missing]:
    nodes: dict[tuple[str, int, bool], list[str]] = {}
    unused = set(range(len(found)))
    for index, subgraph in enumerate(model.subgraphs):
        for number, operator in enumerate(subgraph.operators):
            r = found[operator.opcode_index]
            unused.discard(operator.opcode_index)
            if r.is_custom:
                r = r.of(b"" if operator.custom_options is None else bytes(operator.custom_options))
            if r.registration is None:
                nodes.setdefault((r.name, r.version, r.is_custom), []).append(node_location(number, index))
    for r in (found[i] for i in sorted(unused) if found[i].registration is None):
        nodes.setdefault((r.name, r.version, r.is_custom), [])
    return [Missing(*what, where) for what, where in nodes.items()]


def node_location(number: int, subgraph: int) -> str:
    """Where a node is, in words."""
    return f"node number {number}" + (f" of subgraph {subgraph}" if subgraph else "")


def unresolved(missing: Sequence[Missing], resolver: OpResolver) -> OpError:
    """The error for all operators that nothing serves: InvalidArgumentError where builtin ones are among them, else a
    NotFoundError that is a RuntimeError, too."""
    missing = sorted(missing, key=lambda m: m.is_custom)
    builtins = [m for m in missing if not m.is_custom]
    flex = [m for m in missing if m.is_custom and m.name.startswith("Flex")]
    own = [m for m in missing if m.is_custom and m not in flex]
    lines = [
        f"Didn't find op for builtin opcode '{m.name}' version '{m.version}'. An older version of this builtin "
        "might be supported. Are you using an old Opwright with a newer model?"
        for m in builtins
    ]
    lines += dict.fromkeys(f"Encountered unresolved custom op: {m.name}." for m in own)
    if flex:
        lines.append(
            f"{FLEX} They are: {', '.join(dict.fromkeys(m.name for m in flex))}. See instructions: {FLEX_INSTRUCTIONS}"
        )
    if own:
        lines.append(f"See instructions: {INSTRUCTIONS}")
    if builtins:
        lines.append("Registration failed.")
    broken = dict.fromkeys(filter(None, (installed.troubles(m.name) for m in own)))
    parts: Any = {
        "what": "\n".join(lines),
        "found": "; ".join([*map(_at_nodes, missing), *broken]),
        "wanted": _wanted(missing, resolver),
        "do": "; ".join(_ways_out(builtins, own, flex, resolver)),
    }
    error: OpError
    if builtins:
        error = InvalidArgumentError(**parts, explain="OW102")
        error.op = builtins[0].name
        return error
    error = also(NotFoundError, RuntimeError)(**parts, explain="OW101")
    error.op = missing[0].name
    if missing[0].nodes:
        error.args = (f"{error.message}\n{missing[0].nodes[0].capitalize()} ({error.op}) failed to prepare.",)
    return error


def _at_nodes(m: Missing) -> str:
    return f"{m.name} version {m.version} at {', '.join(_few(m.nodes))}"


def _wanted(missing: Sequence[Missing], resolver: OpResolver) -> str:
    """The versions there are of what is missing, and the custom operators there are."""
    parts = []
    for m in missing:
        ranges = resolver.custom_versions(m.name) if m.is_custom else resolver.builtin_versions(m.name)
        if ranges or not m.is_custom:
            parts.append(f"{m.name} version {format_ranges(ranges)}")
    if any(m.is_custom and not resolver.custom_versions(m.name) for m in missing):
        parts.append(f"custom operators among those given: {', '.join(resolver.custom_names()) or 'none'}")
    return ", ".join(dict.fromkeys(parts))


def _ways_out(
    builtins: Sequence[Missing], own: Sequence[Missing], flex: Sequence[Missing], resolver: OpResolver
) -> list[str]:
    ways = []
    bare = list(dict.fromkeys(m.name for m in builtins if m.name not in ops.list_names()))
    if bare:
        ways.append(
            f"no run time has a kernel for {', '.join(bare)}: convert the model into operators that have one, "
            "or give the interpreter an op_resolver that has it"
        )
    if len(bare) < len({m.name for m in builtins}):
        ways.append(
            "convert the model for an older run time, or give the interpreter an op_resolver that has the operator"
        )
    older = [m for m in own if resolver.custom_versions(m.name)]
    ways += dict.fromkeys(
        f"get a newer definition of {m.name}, or convert the model again with the one that is here" for m in older
    )
    absent = list(dict.fromkeys(m.name for m in [*own, *flex] if m not in older))
    if absent:
        ways.append(
            f"Interpreter(..., custom_ops=[{', '.join(absent)}]), each an @ow.operator, or a dict from names "
            "to Registrations, as lite.load_custom_ops gives for a library in C"
        )
    return ways


def format_ranges(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges of versions: 1..3, 5; none."""
    return ", ".join(f"{a}..{b}" if a != b else str(a) for a, b in sorted(set(ranges))) or "none"


def _few(nodes: Sequence[str]) -> list[str]:
    if not nodes:
        return ["no node"]
    return list(nodes) if len(nodes) <= _MOST_NODES else [*nodes[:_MOST_NODES], f"{len(nodes) - _MOST_NODES} more"]
