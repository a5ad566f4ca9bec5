"""Finding the registration of each operator code of a model, and saying well what is not there.

Lives here: `resolve`, the errors for missing builtin operators and unresolved custom ones.
Not here: resolvers (lite/resolver.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.errors import InvalidArgumentError, NotFoundError, OpError
from ..format import schema, versions
from .errors import also

if TYPE_CHECKING:
    from ..registration import Registration
    from ..resolver import OpResolver

INSTRUCTIONS = "https://www.tensorflow.org/lite/guide/ops_custom"
FLEX = ("Select TensorFlow op(s), included in the given model, is(are) not supported by this interpreter. "
        "Make sure you apply/link the Flex delegate before inference.")  # fmt: skip


class Resolved(NamedTuple):
    """An operator code with what serves it; registration is None for a custom operator that nothing serves."""

    name: str
    version: int
    is_custom: bool
    registration: Registration | None


def resolve(model: Any, resolver: OpResolver) -> list[Resolved]:
    """Each operator code of a model with its registration.

    raises InvalidArgumentError listing every builtin operator or version that is not there. Custom operators that are
    not there are an error when tensors are allocated, as a delegate may still take them.
    """
    found, missing = [], []
    for code in model.operator_codes:
        number, version = versions.builtin_code(code), int(code.version)
        if number == schema.BuiltinOperator.CUSTOM:
            name = code.custom_code
            found.append(Resolved(name, version, True, resolver.find_custom(name, version)))
            continue
        member = schema.enum_members("BuiltinOperator")[number]
        registration = resolver.find_op(member, version)
        if registration is None:
            missing.append((member.name, version))
        found.append(Resolved(member.name, version, False, registration))
    if missing:
        raise _missing_builtins(missing, resolver)
    return found


def _ranges(ranges: list[tuple[int, int]]) -> str:
    return ", ".join(f"{a}..{b}" if a != b else str(a) for a, b in ranges) or "none"


def _missing_builtins(missing: list[tuple[str, int]], resolver: OpResolver) -> OpError:
    lines = [
        f"Didn't find op for builtin opcode '{name}' version '{version}'. An older version of this builtin might be "
        "supported. Are you using an old Opwright with a newer model?"
        for name, version in missing
    ]
    return InvalidArgumentError(
        what="\n".join([*lines, "Registration failed."]),
        found={name: f"version {version}" for name, version in missing},
        wanted=", ".join(f"{name} version {_ranges(resolver.builtin_versions(name))}" for name, _ in missing),
        do="convert the model for an older run time, or give the interpreter an op_resolver that has the operator",
        explain="OW102",
    )


def unresolved(uses: dict[str, tuple[int, list[str]]], resolver: OpResolver) -> OpError:
    """The error for custom operators that nothing serves. uses: by name, the version and the nodes that are one."""
    flex = sorted(name for name in uses if name.startswith("Flex"))
    own = [name for name in uses if name not in flex]
    first = next(iter(uses))
    lines = [f"Encountered unresolved custom op: {name}." for name in own]
    if flex:
        lines.append(f"{FLEX} They are: {', '.join(flex)}.")
    if own:
        lines.append(f"See instructions: {INSTRUCTIONS}")
    where = "; ".join(
        f"{name} version {version} at {', '.join(_few(nodes))}" for name, (version, nodes) in uses.items()
    )
    wanted = ", ".join(
        f"{name} version {_ranges(resolver.custom_versions(name))}" for name in own if resolver.custom_versions(name)
    )
    others = resolver.custom_names()
    classes = ", ".join(own or flex)
    error = also(NotFoundError, RuntimeError)(
        what="\n".join(lines),
        found=where,
        wanted=wanted or f"operators among those given: {', '.join(others) or 'none'}",
        do=f"Interpreter(..., custom_ops=[{classes}]), each an @ow.operator, or a dict from names to Registrations",
        explain="OW101",
    )
    error.op = first
    text = f"{error.message}\n{uses[first][1][0].capitalize()} ({first}) failed to prepare."
    error.args = (text,)
    return error


def _few(nodes: list[str]) -> list[str]:
    return nodes if len(nodes) <= 4 else [*nodes[:4], f"{len(nodes) - 4} more"]
