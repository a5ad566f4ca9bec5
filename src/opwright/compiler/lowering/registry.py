"""The table of rules that lower operators to the loop graph.

Lives here: the decorator `rule`, `find_rule`, `lower`.
Not here: the rules, a module for each family of operators; which module has which rule (families.py, generated).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.lazy_imports import load
from ..loops.ops import LoopOp
from .context import LoweringContext, NoLowering
from .families import FAMILIES

CATALOGUE, LITE, CUSTOM, USER = "catalogue", "lite", "custom", "user"
"""Dialects: the catalogue's operators, the builtins of files, shipped custom operators, users' operators. One rule,
under the dialect's name, lowers the kernels of all users' operators."""

Rule = Callable[[LoweringContext], None]

MODULES = {name: f"{__package__}.{module}" for module, names in FAMILIES.items() for name in names.split()}
"""By operator, the module with its rule, imported when the rule is first looked up."""

_rules: dict[tuple[str, str], Rule] = {}  # by module and operator
_of_complex: set[Rule] = set()


def rule(
    *names: str, lite: Sequence[str] = (), custom: Sequence[str] = (), of_complex: bool = False
) -> Callable[[Rule], Rule]:
    """Register the decorated function as the rule of these operators of the catalogue and builtins of files.

    lite: builtins whose names the catalogue has for other operators. custom: shipped custom operators. of_complex:
    whether it lowers nodes of the catalogue on complex numbers; files' nodes are the rule's to decide. After a change,
    `make families` updates the table of modules.
    """
    keys = (*names, *(f"{LITE}:{name}" for name in lite), *(f"{CUSTOM}:{name}" for name in custom))

    def register(function: Rule) -> Rule:
        _rules.update(((function.__module__, key), function) for key in keys)
        if of_complex:
            _of_complex.add(function)
        return function

    return register


def registered() -> dict[str, list[str]]:
    """Return the operators with a rule by module, of the modules imported so far."""
    operators: dict[str, list[str]] = {}
    for module, name in _rules:
        operators.setdefault(module.removeprefix(f"{__package__}."), []).append(name)
    return operators


def find_rule(dialect: str, name: str) -> Rule | None:
    """Return the rule of an operator, or None if it has none; imports its module."""
    key = f"{dialect}:{name}"
    if key not in MODULES and dialect != CUSTOM:
        key = name
    module = MODULES.get(key)
    if module is None:
        return None
    load(module)
    return _rules.get((module, key))


def lower(ctx: LoweringContext) -> list[LoopOp]:
    """Return the loop operations of a node. Raises NoLowering if it has no rule."""
    function = find_rule(ctx.node.dialect, ctx.operator)
    if function is None:
        raise NoLowering(f"no rule for {ctx.operator}")
    if ctx.node.dialect == CATALOGUE and function not in _of_complex:
        for value in (*ctx.node.node.operands, *ctx.node.outputs):
            if value.dtype.is_complex:
                raise NoLowering(f"elements of type {value.dtype.name}")
    function(ctx)
    return ctx.ops
