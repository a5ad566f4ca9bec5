"""The source of a function as a syntax tree, found by its code object.

Lives here: reading files (through linecache, so that interactive and generated sources count), finding the `def` or
`lambda` that a code object was made from, copying it, Python's renaming of __private names.
Not here: rewriting (statements.py), deciding what to convert (conversion.py).
"""

from __future__ import annotations

import ast
import linecache
import types
from typing import Any, NamedTuple

from ..core import introspection

FunctionNode = ast.FunctionDef | ast.Lambda
_MARKS = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)  # say how, and hold nothing
_NODES = frozenset(
    c for c in vars(ast).values() if isinstance(c, type) and issubclass(c, ast.AST) and not issubclass(c, _MARKS)
)

_LEAVES = frozenset({"id", "attr", "arg", "ctx", "op", "ops", "kind", "type_comment", "module", "level", "lineno"})
_BRANCHES = {c: tuple(f for f in c._fields if f not in _LEAVES and c is not ast.Constant) for c in _NODES}
"""The fields of each class of nodes that nodes may stand in."""


class Unsupported(Exception):
    """Why a function cannot be converted."""


class Found(NamedTuple):
    """A function's node in its file's tree, and the name of the class whose body it stands in, if any."""

    node: Any
    private: str | None


class _Index:
    """All functions of one source text by first line. lines: the text it was made of."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at: dict[int, list[Found]] = {}
        try:
            tree = introspection.parse("".join(lines))
        except (SyntaxError, ValueError) as error:
            raise Unsupported(f"its source cannot be parsed: {error}") from None
        pending: list[tuple[Any, str | None]] = [(tree, None)]
        while pending:
            node, private = pending.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
                self.at.setdefault(first, []).append(Found(node, private))
            elif isinstance(node, ast.ClassDef):
                private = node.name.lstrip("_") or None
            pending.extend((child, private) for child in children(node))


_indexes: dict[str, _Index] = {}
_KEPT = 64


def _index(filename: str, module_globals: dict[str, Any]) -> _Index:
    lines = linecache.getlines(filename, module_globals)
    if not lines:
        raise _unavailable(filename)
    index = _indexes.get(filename)
    if index is None or index.lines != lines:
        if len(_indexes) >= _KEPT:
            del _indexes[next(iter(_indexes))]
        index = _indexes[filename] = _Index(lines)
    return index


def _unavailable(filename: str) -> Unsupported:
    return Unsupported(
        f"its source code is not available (file {filename!r}): it was made by exec or eval, typed into a Python "
        "that keeps no source, or the file is gone"
    )


def find(code: types.CodeType, module_globals: dict[str, Any]) -> Found:
    """The node that `code` was compiled from; not to be changed, `copy` it.

    raises Unsupported where there is no source, or where it is not that of the code
    """
    alone = _alone(code, module_globals)
    if alone is not None:
        return alone
    candidates = _index(code.co_filename, module_globals).at.get(code.co_firstlineno, ())
    if code.co_name == "<lambda>":
        fitting = [c for c in candidates if isinstance(c.node, ast.Lambda) and _same_arguments(c.node, code)]
        if len(fitting) > 1:
            fitting = [c for c in fitting if _spans(c.node.body, code)] or fitting
        if len(fitting) > 1 and len({ast.dump(c.node) for c in fitting}) > 1:
            raise Unsupported(f"{len(fitting)} lambdas on line {code.co_firstlineno} cannot be told apart")
    else:
        fitting = [
            c
            for c in candidates
            if not isinstance(c.node, ast.Lambda) and c.node.name == code.co_name and _same_arguments(c.node, code)
        ]
    if not fitting and code.co_filename == "<string>":  # from 3.13 on that is the text after `python -c`, too
        raise _unavailable(code.co_filename)
    if not fitting:
        raise Unsupported(
            f"line {code.co_firstlineno} of {code.co_filename} is not where it was defined: has the file "
            "changed since it was imported?"
        )
    return fitting[0]


def _alone(code: types.CodeType, module_globals: dict[str, Any]) -> Found | None:
    """A module's function, parsed without the rest of its file; None for others, and where that fails."""
    if code.co_filename in _indexes or code.co_qualname != code.co_name or code.co_name == "<lambda>":
        return None
    lines = linecache.getlines(code.co_filename, module_globals)
    first, last = code.co_firstlineno, _last_line(code)
    try:
        (node,) = introspection.parse("\n" * (first - 1) + "".join(lines[first - 1 : last])).body
    except (SyntaxError, ValueError):
        return None
    fits = isinstance(node, ast.FunctionDef) and node.name == code.co_name and _same_arguments(node, code)
    return Found(node, None) if fits else None


def _last_line(code: types.CodeType) -> int:
    """The last line that an instruction of a function, or of a function inside it, stands on."""
    last = max((end for _, end, _, _ in code.co_positions() if end is not None), default=0)
    return max([last, *(_last_line(const) for const in code.co_consts if isinstance(const, types.CodeType))])


def parameters(arguments: ast.arguments) -> list[str]:
    """The names of all parameters, in the order of a code object's variables."""
    plain = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return plain + [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]


def _same_arguments(node: Any, code: types.CodeType) -> bool:
    names = parameters(node.args)
    return all(a == b or b.endswith(a) for a, b in zip(names, code.co_varnames)) and (
        len(node.args.posonlyargs) + len(node.args.args) == code.co_argcount
        and len(node.args.kwonlyargs) == code.co_kwonlyargcount
    )


def _spans(body: Any, code: types.CodeType) -> bool:
    """Whether the positions of the code's instructions are exactly those of this expression."""
    starts, ends = [], []
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None or (column, end_column) == (0, 0):
            continue
        starts.append((line, column))
        ends.append((end_line, end_column))
    if not starts:
        return True
    return min(starts) >= (body.lineno, body.col_offset) and max(ends) == (body.end_lineno, body.end_col_offset)


def children(node: Any) -> list[Any]:
    """The nodes right below one, without those that only say how, such as ast.Load and ast.Add: two in five."""
    found: list[Any] = []
    parts = node.__dict__
    for field in _BRANCHES[node.__class__]:
        value = parts.get(field)
        if value.__class__ is list:
            found += [item for item in value if item.__class__ in _NODES]
        elif value.__class__ in _NODES:
            found.append(value)
    return found


def nodes(*trees: Any) -> list[Any]:
    """These and all nodes below them, each after the one that it is in; marks left out, as of `children`."""
    found = list(trees)
    for node in found:  # which grows meanwhile
        found += children(node)
    return found


def copy(node: Any) -> Any:
    """A deep copy of a tree, several times faster than copy.deepcopy."""
    kind = node.__class__
    if kind is list:
        return [copy(item) for item in node]
    if kind not in _NODES:
        return node
    new = kind.__new__(kind)
    parts = new.__dict__
    for name, value in node.__dict__.items():
        parts[name] = copy(value) if value.__class__ is list or value.__class__ in _NODES else value
    return new


def with_private_names(node: Any, private: str) -> Any:
    """`node` with __name written as _Class__name, in place: its new place is outside the class."""
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, ast.ClassDef):  # it stays a class, and its own names are renamed for it
            continue
        for field, value in item.__dict__.items():
            if isinstance(value, str) and field in ("id", "attr", "arg", "name", "asname", "rest"):
                if value.startswith("__") and not value.endswith("__"):
                    setattr(item, field, f"_{private}{value}")
            elif isinstance(value, list):
                if isinstance(item, (ast.Nonlocal, ast.Global)):
                    item.names = [
                        f"_{private}{n}" if n.startswith("__") and not n.endswith("__") else n for n in item.names
                    ]
                pending.extend(v for v in value if isinstance(v, ast.AST))
            elif isinstance(value, ast.AST):
                pending.append(value)
    return node
