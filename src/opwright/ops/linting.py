"""What an operator's definition should be like, as a table of rules: words, names, numbers, gradients.

Lives here: `lint`, for the catalogue (tests/ops) and for users (`opwright op test`).
Not here: what a definition must be to work at all (wellformed.py), what it computes (tools/operator_package.py).
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from ..core import introspection
from ..core.dtypes import float32, float64
from ..core.errors import OpError
from . import registry
from .vocabulary import is_named, is_said

OPERATOR_NAME = re.compile(r"(?:\w+\.)*[A-Z][A-Za-z0-9]*")
PART_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_?")


def _parts(op: Any) -> Iterator[tuple[str, Any]]:
    for kind, parts in (("input", op.inputs), ("output", op.outputs), ("attribute", op.attr_defs.values())):
        for part in parts:
            yield kind, part


def _names(op: Any) -> Iterator[str]:
    """Operators in CamelCase, their parts in snake_case; no version in a name, versions have a number."""
    if not OPERATOR_NAME.fullmatch(op.name):
        yield f"the name {op.name!r} is not in CamelCase"
    if re.search(r"V\d+$", op.name):
        yield f"the name {op.name!r} ends with a version; say @operator(version=...)"
    for kind, part in _parts(op):
        if not PART_NAME.fullmatch(part.name):
            yield f"{kind} {part.name!r} is not in snake_case"


def _class_body(op: Any) -> list[ast.stmt]:
    """The statements of the class that defines an operator; none where its source is not there."""
    rule = next((r for r in (op.compute_rule, op.infer_rule, op.gradient_rule) if hasattr(r, "__code__")), None)
    found = inspect.unwrap(rule).__code__ if rule is not None else None
    try:
        lines, _ = inspect.findsource(found) if found is not None else ([], 0)
        tree = _tree("".join(lines))
    except (OSError, SyntaxError):
        return []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ClassDef)
            and found is not None
            and node.lineno <= found.co_firstlineno <= (node.end_lineno or 0)
        ):
            inner = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == found.co_name]
            if inner:
                return node.body
    return []


@functools.lru_cache(maxsize=4)  # operators of one file are asked for one after the other
def _tree(source: str) -> ast.Module:
    return introspection.parse(source)


def _declared_once(op: Any) -> Iterator[str]:
    """No name twice among inputs, outputs and attributes: Python keeps the second of two and says nothing."""
    body = _class_body(op)
    seen: set[str] = set()
    for statement in body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if isinstance(statement, ast.FunctionDef):
            names = [statement.name]
        for name in names:
            if name in seen:
                yield f"{name!r} is declared twice; the first is lost"
            seen.add(name)


def _words(op: Any) -> Iterator[str]:
    """A sentence first, a formula, and a word on every part."""
    first = " ".join(op.doc.split("\n\n")[0].split())
    if not op.doc:
        yield "no docstring"
    elif not first.endswith((".", ":")) and ".. math::" not in first:
        yield f"the docstring's first paragraph is no sentence: {first[:80]!r}"
    if not op.formula:
        yield "no formula: write `.. math::` and the formula in the docstring, \\text{...} where words say more"
    elif "\\text" not in op.formula and not any(is_named(p.name, op.formula) for _, p in _parts(op)):
        yield f"the formula names none of its parts: {op.formula!r}"
    for kind, part in _parts(op):
        if not is_said(op, part):
            yield f"nothing says what {kind} {part.name!r} means: give it doc=..., or name it in the docstring"


def _floats(op: Any) -> Iterator[str]:
    """Who takes floats takes float32 and float64."""
    for declared in op.inputs:
        floats = {d for d in declared.dtypes if d.is_floating}
        lacking = [d.name for d in (float32, float64) if d not in floats]
        if floats and lacking:
            yield f"input {declared.name!r} takes {', '.join(sorted(d.name for d in floats))} but not {lacking[0]}"


def _gradient(op: Any) -> Iterator[str]:
    """Who takes floats has a gradient, or says that differentiation ends here."""
    floats = any(d.is_floating or d.is_complex for i in op.inputs for d in i.dtypes)
    if floats and not op.has_gradient_rule and not op.control:
        yield "takes floats and has no gradient; write one, or `gradient = None` where differentiation ends"


def _meaning(op: Any) -> Iterator[str]:
    if op.compute_rule is None and not op.kernels and not op.control:
        yield "computes nothing: define compute(op, ...) or a @kernel"


def _defaults(op: Any) -> Iterator[str]:
    """A default passes its own check (the definition sees to it) and means the same each time it is given."""
    for attr in op.attr_defs.values():
        if not attr.required:
            try:
                attr.convert(attr.default)
            except (TypeError, ValueError) as error:
                yield f"attribute {attr.name!r}: its default {attr.default!r} is not allowed: wanted {error}"


def _checks(op: Any) -> Iterator[str]:
    """A check says in words what it wants."""
    for attr in op.attr_defs.values():
        if attr.check is not None and not attr.check.wanted.strip():
            yield f"attribute {attr.name!r}: its check has no words for the error"


RULES: tuple[Callable[[Any], Iterator[str]], ...] = (
    _names,
    _declared_once,
    _words,
    _floats,
    _gradient,
    _meaning,
    _defaults,
    _checks,
)


def lint(op: Any) -> list[str]:
    """What an operator's definition lacks of the house's rules, a sentence each; an empty list for a good one.

    op: an operator, or its name
    raises KeyError for a name that there is not
    """
    found = registry.operator_of(op)
    return [sentence for rule in RULES for sentence in rule(found)]


# ---- the texts of errors --------------------------------------------------------------------------------------------

_CLASSES: tuple[type[OpError], ...] = (OpError, *OpError.__subclasses__())
ERRORS = {cls.__name__ for cls in _CLASSES} | {"SignatureError"}
SAYING = {"found", "wanted", "do"}
SIGNALS = {"OutOfRangeError"}  # the end of a sequence refuses nothing


def lint_errors(source: str, where: str) -> list[str]:
    """Places in a module's source that raise an error whose text is empty, or says neither what was found nor wanted.

    A text that is put together from values (an f-string, or a name) says what was found itself.
    """
    found: list[str] = []
    for node in ast.walk(introspection.parse(source)):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
            continue
        call = node.exc
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        given = {k.arg: k.value for k in call.keywords}
        text = given.get("what", call.args[0] if call.args else None)
        if name in ERRORS and None not in given:
            if _is_empty(text):
                found.append(f"{where}:{node.lineno}: {name} has no text")
            elif isinstance(text, ast.Constant) and name not in SIGNALS and not given.keys() & SAYING:
                found.append(f"{where}:{node.lineno}: {name} says neither what was found nor what is wanted")
        elif name.endswith("Error") and hasattr(builtins, name) and _is_empty(text):
            found.append(f"{where}:{node.lineno}: {name} has no text")
    return found


def _is_empty(text: ast.expr | None) -> bool:
    if text is None:
        return True
    return isinstance(text, ast.Constant) and (not isinstance(text.value, str) or not text.value.strip())
