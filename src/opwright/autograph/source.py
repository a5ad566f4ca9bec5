"""Locate the source of a function, as a syntax tree, by its code object.

Lives here: reading files (through linecache, so that interactive and generated sources count), locating the `def` or
`lambda` of a code object, copying it, Python's mangling of __private names. Not here: rewriting (statements.py),
deciding what to convert (conversion.py).
"""

from __future__ import annotations

import ast
import linecache
import types
from typing import Any, NamedTuple, TypeVar

from ..core import introspection

FunctionNode = ast.FunctionDef | ast.Lambda
Node = TypeVar("Node", bound=ast.AST)
_MARKS = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)  # leaves that only qualify their parent
_NODES = frozenset(
    c for c in vars(ast).values() if isinstance(c, type) and issubclass(c, ast.AST) and not issubclass(c, _MARKS)
)

_LEAVES = frozenset({"id", "attr", "arg", "ctx", "op", "ops", "kind", "type_comment", "module", "level", "lineno"})
_BRANCHES = {c: tuple(f for f in c._fields if f not in _LEAVES and c is not ast.Constant) for c in _NODES}
"""The fields of each node class that may contain nodes."""


class Unsupported(Exception):
    """Raised with the reason why a function cannot be converted."""


class FunctionSource(NamedTuple):
    """A function's node, and the name of the class that immediately encloses it, if any. shared: whether the node is
    part of its file's tree, which others read."""

    node: Any
    class_name: str | None
    shared: bool = True


class _Index:
    """The functions of one source text by first line. lines: the text that was parsed."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.by_line: dict[int, list[FunctionSource]] = {}
        try:
            tree = introspection.parse("".join(lines))
        except (SyntaxError, ValueError) as error:
            raise Unsupported(f"its source cannot be parsed: {error}") from None
        pending: list[tuple[Any, str | None]] = [(tree, None)]
        while pending:
            node, class_name = pending.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
                self.by_line.setdefault(first, []).append(FunctionSource(node, class_name))
            elif isinstance(node, ast.ClassDef):
                class_name = node.name.lstrip("_") or None
            pending.extend((child, class_name) for child in children(node))


_indexes: dict[str, _Index] = {}
_MAX_INDEXES = 64


def _index(filename: str, module_globals: dict[str, Any]) -> _Index:
    lines = linecache.getlines(filename, module_globals)
    if not lines:
        raise _unavailable(filename)
    index = _indexes.get(filename)
    if index is None or index.lines != lines:
        if len(_indexes) >= _MAX_INDEXES:
            del _indexes[next(iter(_indexes))]
        index = _indexes[filename] = _Index(lines)
    return index


def _unavailable(filename: str) -> Unsupported:
    return Unsupported(
        f"its source code is not available (file {filename!r}): it was made by exec or eval, typed into a Python "
        "that keeps no source, or the file is gone"
    )


def find_source(code: types.CodeType, module_globals: dict[str, Any]) -> FunctionSource:
    """Return the node that `code` was compiled from; callers `copy` it before changing it if it is shared.

    raises Unsupported if there is no source, or if the source does not match the code
    """
    definition = _parse_alone(code, module_globals)
    if definition is not None:
        return definition
    candidates = _index(code.co_filename, module_globals).by_line.get(code.co_firstlineno, ())
    if code.co_name == "<lambda>":
        matches = [c for c in candidates if isinstance(c.node, ast.Lambda) and _same_arguments(c.node, code)]
        if len(matches) > 1:
            matches = [c for c in matches if _spans(c.node.body, code)] or matches
        if len(matches) > 1 and len({ast.dump(c.node) for c in matches}) > 1:
            raise Unsupported(f"{len(matches)} lambdas on line {code.co_firstlineno} cannot be told apart")
    else:
        matches = [
            c
            for c in candidates
            if not isinstance(c.node, ast.Lambda) and c.node.name == code.co_name and _same_arguments(c.node, code)
        ]
    if not matches and code.co_filename == "<string>":  # since 3.13 also the text after `python -c`
        raise _unavailable(code.co_filename)
    if not matches:
        raise Unsupported(
            f"line {code.co_firstlineno} of {code.co_filename} is not where it was defined: has the file "
            "changed since it was imported?"
        )
    return matches[0]


def _parse_alone(code: types.CodeType, module_globals: dict[str, Any]) -> FunctionSource | None:
    """Return a function of a module, or of a class of a module, parsed without the rest of its file; None for others,
    and if that fails."""
    owner = code.co_qualname.removesuffix(code.co_name).removesuffix(".")
    first, last = code.co_firstlineno, _last_line(code)
    if code.co_filename in _indexes or code.co_name == "<lambda>" or "<" in owner or (owner and first == 1):
        return None
    lines = linecache.getlines(code.co_filename, module_globals)[first - 1 : last]
    around = ["\n" * (first - 2), "class _:\n"] if owner else ["\n" * (first - 1)]
    try:
        (node,) = introspection.parse("".join((*around, *lines))).body
    except (SyntaxError, ValueError):
        return None
    class_name = None
    if owner:
        if not isinstance(node, ast.ClassDef) or len(node.body) != 1:
            return None
        (node,), class_name = node.body, owner.rpartition(".")[2].lstrip("_") or None
    fits = isinstance(node, ast.FunctionDef) and node.name == code.co_name and _same_arguments(node, code)
    return FunctionSource(node, class_name, shared=False) if fits else None


def _last_line(code: types.CodeType) -> int:
    """Return the last line of the instructions of a function and the functions inside it."""
    last = max((end for _, end, _, _ in code.co_positions() if end is not None), default=0)
    return max([last, *(_last_line(const) for const in code.co_consts if isinstance(const, types.CodeType))])


def parameters(arguments: ast.arguments) -> list[str]:
    """Return the names of all parameters, in the order of a code object's variables."""
    plain = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return plain + [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]


def _same_arguments(node: Any, code: types.CodeType) -> bool:
    names = parameters(node.args)
    return all(a == b or b.endswith(a) for a, b in zip(names, code.co_varnames)) and (
        len(node.args.posonlyargs) + len(node.args.args) == code.co_argcount
        and len(node.args.kwonlyargs) == code.co_kwonlyargcount
    )


def _spans(body: Any, code: types.CodeType) -> bool:
    """Return whether the code's instructions cover exactly this expression."""
    starts, ends = [], []
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None or (column, end_column) == (0, 0):
            continue
        starts.append((line, column))
        ends.append((end_line, end_column))
    if not starts:
        return True
    return min(starts) >= (body.lineno, body.col_offset) and max(ends) == (body.end_lineno, body.end_col_offset)


def branches(node: Any) -> tuple[str, ...]:
    """Return the fields of a node that may contain nodes."""
    return _BRANCHES[node.__class__]


def is_node(value: Any) -> bool:
    """Return whether a value is a node other than a leaf such as ast.Load or ast.Add."""
    return value.__class__ in _NODES


def children(node: Any) -> list[Any]:
    """Return the child nodes, without leaves such as ast.Load and ast.Add, two in five of all nodes."""
    result: list[Any] = []
    parts = node.__dict__
    for field in _BRANCHES[node.__class__]:
        value = parts.get(field)
        if value.__class__ is list:
            result += [item for item in value if item.__class__ in _NODES]
        elif value.__class__ in _NODES:
            result.append(value)
    return result


def nodes(*trees: Any) -> list[Any]:
    """Return these nodes and their descendants, parents first, without the leaves that `children` omits."""
    result = list(trees)
    for node in result:  # the list grows during the walk
        if _BRANCHES[node.__class__]:  # half of the nodes are names and constants
            result += children(node)
    return result


_SCOPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef})


def own_nodes(body: list[Any]) -> list[Any]:
    """Return these nodes and their descendants, without leaves, not entering nested functions and classes."""
    result, pending = [], list(body)
    while pending:
        node = pending.pop()
        result.append(node)
        kind = node.__class__
        if kind not in _SCOPES and _BRANCHES[kind]:
            pending += children(node)
    return result


def copy(node: Node) -> Node:
    """Return a deep copy of a tree, several times faster than copy.deepcopy."""
    kind = type(node)
    new = kind.__new__(kind)
    parts = new.__dict__
    for name, value in node.__dict__.items():
        if value.__class__ is list:
            parts[name] = [copy(item) if item.__class__ in _NODES else item for item in value]
        else:
            parts[name] = copy(value) if value.__class__ in _NODES else value
    return new


def mangle_private_names(node: ast.AST, class_name: str) -> None:
    """Mangle __name to _Class__name in place, as the rewritten function is compiled outside its class."""
    pending: list[Any] = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, ast.ClassDef):  # Python itself mangles the names inside a class
            continue
        for field, value in ast.iter_fields(item):  # not attributes: IPython's tracebacks link ast.Load to its parents
            if isinstance(value, str) and field in ("id", "attr", "arg", "name", "asname", "rest"):
                if value.startswith("__") and not value.endswith("__"):
                    setattr(item, field, f"_{class_name}{value}")
            elif isinstance(value, list):
                if isinstance(item, (ast.Nonlocal, ast.Global)):
                    item.names = [
                        f"_{class_name}{n}" if n.startswith("__") and not n.endswith("__") else n for n in item.names
                    ]
                pending.extend(v for v in value if isinstance(v, ast.AST))
            elif isinstance(value, ast.AST):
                pending.append(value)
