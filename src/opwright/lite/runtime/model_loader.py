"""Loading of a model for an interpreter, from a path, bytes or a Model; the official messages if there is none.

Lives here: `open_model`; `open_subgraphs`, subgraphs whose tensors can be allocated; `resolve`, from operator codes to
registrations, `check_resolved` and `unresolved`, the error for missing operators.
Not here: reading the bytes (format/), resolvers (lite/resolver.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...core import flags
from ...core.errors import InvalidArgumentError, NotFoundError, OpError, ResourceExhaustedError, also
from ...core.lazy_imports import later
from ...core.named_tuples import NamedTuple
from ...ops import registry
from .. import ops
from ..format import Model, schema, versions
from ..format.model import refuse_external
from .ownership import Ownership
from .subgraph import Subgraph

if TYPE_CHECKING:
    from ..format import flexbuffers
    from ..registration import Registration
    from ..resolver import OpResolver
else:  # not needed by the first answer of a model
    flexbuffers = later("..format.flexbuffers", __package__)

EMPTY = "The model allocation is null/empty"
INSTRUCTIONS = "https://www.tensorflow.org/lite/guide/ops_custom"
FLEX_INSTRUCTIONS = "https://www.tensorflow.org/lite/guide/ops_select"
FLEX = (
    "Select TensorFlow op(s), included in the given model, is(are) not supported by this interpreter. "
    "Make sure you apply/link the Flex delegate before inference."
)
_MOST_NODES = 4


def open_model(path: Any, content: Any) -> Model:
    """Return the model in a file or in bytes; exactly one of the two is given.

    raises NotFoundError for a missing file, ResourceExhaustedError above the flag max_model_bytes, and the errors of
    `Model.read`
    """
    if isinstance(content, Model):
        return content
    size = 0 if content is None else len(content)  # of bytes or an array of bytes
    if path and size:
        raise InvalidArgumentError(what="Can't both provide `model_path` and `model_content`")
    if content is not None and size:
        _check_size(size, "the model")
        return Model.read(content)
    if not path:
        raise InvalidArgumentError(what="`model_path` or `model_content` must be specified.")
    name = os.fspath(path)
    try:
        size = os.stat(name).st_size
        if os.path.isdir(name):
            raise IsADirectoryError(0, "it is a folder")
        if size == 0:
            raise InvalidArgumentError(what=f"mmap of size 0 requested.{EMPTY}", found=f"empty file {name!r}")
        _check_size(size, f"the model {name!r}")
        return Model.read(name)
    except OSError as error:
        raise NotFoundError(what=f"Could not open '{name}'.{EMPTY}", found=error.strerror) from None


def _check_size(size: int, what: str) -> None:
    limit = flags.get("max_model_bytes")
    if size > limit:
        raise ResourceExhaustedError(
            what=f"{what} has {size} bytes", wanted=f"at most {limit}", do="set the flag max_model_bytes higher"
        )


def open_subgraphs(
    path: Any, content: Any, resolver: OpResolver, threads: int, ownership: Ownership
) -> tuple[Model, list[Subgraph]]:
    """Read and verify a model, and create its subgraphs with the resolver's kernels. Raises OpErrors."""
    model = open_model(path, content)
    model.verify(flow=False)
    refuse_external(model)
    codes = resolve(model, resolver)
    subgraphs: list[Subgraph] = []
    try:
        for i in range(len(model.subgraphs)):
            subgraphs.append(Subgraph(model, i, codes, threads, subgraphs, ownership))
        if any(c.has_init_at_creation() for c in codes):
            for subgraph in subgraphs:
                subgraph.init_early()
    except OpError:
        for subgraph in subgraphs:
            subgraph.close()
        raise
    return model, subgraphs


class Resolved(NamedTuple):
    """An operator code with its registration, None for an unresolved custom operator.

    carried: for a custom operator, the registrations for nodes whose options specify another version, by version.
    """

    name: str
    version: int
    is_custom: bool
    registration: Registration | None
    carried: Mapping[int, Resolved] = MappingProxyType({})

    def has_init_at_creation(self) -> bool:
        """Return whether nodes of this code are initialized when the interpreter is created."""
        every = (self, *self.carried.values())
        return any(r.registration is not None and r.registration.init_at_creation for r in every)

    def of(self, options: bytes) -> Resolved:
        """Return the entry for a custom node with these options."""
        return self.carried.get(flexbuffers.custom_version(self.version, options), self) if self.carried else self


class Missing(NamedTuple):
    """An unresolved operator, with descriptions of its nodes."""

    name: str
    version: int
    is_custom: bool
    nodes: Sequence[str]


def resolve(model: Any, resolver: OpResolver) -> list[Resolved]:
    """Return the registration of each operator code of a model.

    raises InvalidArgumentError listing all missing operators if a builtin operator or its version is missing. Missing
    custom operators alone are an error in allocate_tensors, as a delegate may still claim them.
    """
    resolved: list[Resolved] = []
    carried = _carried(model)
    for code in model.operator_codes:
        number, version = versions.builtin_code(code), int(code.version)
        if number == schema.BuiltinOperator.CUSTOM:
            resolved.append(_custom(code.custom_code, version, carried.get(len(resolved), ()), resolver))
            continue
        member = schema.enum_members("BuiltinOperator")[number]
        resolved.append(Resolved(member.name, version, False, resolver.find_op(member, version)))
    if any(r.registration is None and not r.is_custom for r in resolved):
        raise unresolved(_missing(model, resolved), resolver)
    return resolved


def _carried(model: Any) -> dict[int, set[int]]:
    """Return, by operator code, the versions other than 1 in the options of its custom nodes."""
    customs = {
        i
        for i, code in enumerate(model.operator_codes)
        if versions.builtin_code(code) == schema.BuiltinOperator.CUSTOM and code.version == 1
    }
    versions_by_code: dict[int, set[int]] = {}
    if customs:
        for operator in (op for subgraph in model.subgraphs for op in subgraph.operators):
            if operator.opcode_index in customs:
                version = flexbuffers.custom_version(1, operator.custom_options)
                if version != 1:
                    versions_by_code.setdefault(operator.opcode_index, set()).add(version)
    return versions_by_code


def _custom(name: str, version: int, carried: Iterable[int], resolver: OpResolver) -> Resolved:
    others = {v: Resolved(name, v, True, resolver.find_custom(name, v)) for v in carried}
    return Resolved(name, version, True, resolver.find_custom(name, version), others)


def _missing(model: Any, resolved: Sequence[Resolved]) -> list[Missing]:
    nodes: dict[tuple[str, int, bool], list[str]] = {}
    unused = set(range(len(resolved)))
    for index, subgraph in enumerate(model.subgraphs):
        for number, operator in enumerate(subgraph.operators):
            r = resolved[operator.opcode_index]
            unused.discard(operator.opcode_index)
            if r.is_custom:
                r = r.of(b"" if operator.custom_options is None else bytes(operator.custom_options))
            if r.registration is None:
                nodes.setdefault((r.name, r.version, r.is_custom), []).append(node_location(number, index))
    for r in (resolved[i] for i in sorted(unused) if resolved[i].registration is None):
        nodes.setdefault((r.name, r.version, r.is_custom), [])
    return [Missing(*what, where) for what, where in nodes.items()]


def check_resolved(subgraphs: Sequence[Subgraph], start: Subgraph, resolver: OpResolver) -> None:
    """Raise the error for custom operators without kernel that `start`, or its callees, would run."""
    reached, todo = {start.index}, [start.index]
    while todo:
        todo += (new := [i for i in subgraphs[todo.pop()].calls if i not in reached])
        reached |= set(new)
    if all(n.registration is not None for i in reached for n in subgraphs[i].execution_plan):
        return
    uses: dict[tuple[str, int], list[str]] = {}
    for subgraph in subgraphs:
        for node in subgraph.execution_plan:
            if node.registration is None:
                uses.setdefault((node.name, node.version), []).append(node_location(node.number, subgraph.index))
    missing = [Missing(name, version, True, nodes) for (name, version), nodes in uses.items()]
    raise unresolved(missing, resolver)


def node_location(number: int, subgraph: int) -> str:
    """Return a description of a node's position."""
    return f"node number {number}" + (f" of subgraph {subgraph}" if subgraph else "")


def unresolved(missing: Sequence[Missing], resolver: OpResolver) -> OpError:
    """Return the error for unresolved operators: an InvalidArgumentError if builtin ones are among them, otherwise a
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
    broken = dict.fromkeys(filter(None, (registry.package_problems(m.name) for m in own)))
    parts: Any = {
        "what": "\n".join(lines),
        "found": "; ".join(
            [*(f"{m.name} version {m.version} at {', '.join(_few(m.nodes))}" for m in missing), *broken]
        ),
        "wanted": _available_versions(missing, resolver),
        "do": "; ".join(_remedies(builtins, own, flex, resolver)),
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


def _available_versions(missing: Sequence[Missing], resolver: OpResolver) -> str:
    """Return the available versions of missing operators, and the available custom operators."""
    parts = []
    for m in missing:
        ranges = resolver.custom_versions(m.name) if m.is_custom else resolver.builtin_versions(m.name)
        if ranges or not m.is_custom:
            parts.append(f"{m.name} version {format_ranges(ranges)}")
    if any(m.is_custom and not resolver.custom_versions(m.name) for m in missing):
        parts.append(f"custom operators among those given: {', '.join(resolver.custom_names()) or 'none'}")
    return ", ".join(dict.fromkeys(parts))


def _remedies(
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
    """Return ranges of versions as text, such as "1..3, 5", or "none"."""
    return ", ".join(f"{a}..{b}" if a != b else str(a) for a, b in sorted(set(ranges))) or "none"


def _few(nodes: Sequence[str]) -> list[str]:
    if not nodes:
        return ["no node"]
    return list(nodes) if len(nodes) <= _MOST_NODES else [*nodes[:_MOST_NODES], f"{len(nodes) - _MOST_NODES} more"]
