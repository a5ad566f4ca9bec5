"""Static analysis of functions: activity, the variables that code reads and writes.

Lives here: scopes of functions (`FunctionScope`) and the effects of statements and expressions (`Effects`).
Not here: liveness (liveness.py), the rewriting (statements.py).

A symbol is a variable's name, or the text of an attribute or item of one, such as "self.x" or "d['k']".
"""

from __future__ import annotations

import ast
from typing import Any

from .source import children, nodes, own_nodes, parameters

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
GROWING = frozenset({"append", "extend", "insert", "pop", "clear", "reverse"})  # methods that change a list
MUTATORS = frozenset({"update", "setdefault", "popitem", "pop", "clear", "remove", "sort"})  # of dicts and lists


class Effects:
    """The effects of code on variables.

    reads: names read. writes: names rebound. changes: names whose value may change otherwise (a list grows, a called
    function assigns it). composites: text of each attribute or item written or deleted -> (target node, names in it).
    containers: likewise dicts and lists whose items change in a way that no composite describes: by a method, a slice,
    a computed index, a deletion. grows: symbols of lists that are appended to.
    """

    def __init__(self, functions: dict[str, Effects] | None = None) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.changes: set[str] = set()
        self.composites: dict[str, tuple[Any, frozenset[str]]] = {}
        self.containers: dict[str, tuple[Any, frozenset[str]]] = {}
        self.grows: set[str] = set()
        self._functions = {} if functions is None else functions

    def add(self, node: Any) -> Effects:
        """Add the effects of a node or a list of nodes; return self."""
        kind = node.__class__
        rule = _EFFECTS.get(kind)
        if rule is not None:
            rule(self, node)
        elif node is not None:
            for child in node if kind is list else children(node):
                self.add(child)
        return self

    def merge(self, other: Effects) -> None:
        """Add the effects of other code."""
        self.reads |= other.reads
        self.writes |= other.writes
        self.changes |= other.changes
        self.composites |= other.composites
        self.containers |= other.containers
        self.grows |= other.grows

    def size(self) -> tuple[int, ...]:
        """Return the number of symbols of each kind; merging only increases them."""
        return len(self.reads), len(self.writes), len(self.composites), len(self.containers)

    def _Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.reads.add(node.id)
            called = self._functions.get(node.id)
            if called is not None:  # a reference to a local function may become a call
                self.reads |= called.reads
                self.changes |= called.writes
                self.composites |= called.composites
                self.containers |= called.containers
        else:
            self.writes.add(node.id)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        self.add(node.value)
        if isinstance(node.target, ast.Name):
            self.reads.add(node.target.id)
            if isinstance(node.op, ast.Add) and isinstance(node.value, ast.List):
                self.grows.add(node.target.id)
        self.add(node.target)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        self.add(node.value)
        if node.value is not None:
            self.add(node.target)

    def _Attribute(self, node: ast.Attribute) -> None:
        self.add(node.value)
        if not isinstance(node.ctx, ast.Load):
            self._composite(node)

    def _Subscript(self, node: ast.Subscript) -> None:
        self.add(node.value)
        self.add(node.slice)
        if not isinstance(node.ctx, ast.Load):
            self._composite(node)

    def _composite(self, node: Any) -> None:
        names = support(node)
        if names is not None:
            self.composites[ast.unparse(node)] = (node, names)
        if isinstance(node, ast.Subscript) and (names is None or isinstance(node.ctx, ast.Del)):
            self._container(node.value)

    def _container(self, node: Any) -> None:
        names = support(node)
        if names is not None:
            self.containers[ast.unparse(node)] = (node, names)

    def _Expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in GROWING:
            self._grow(call.func.value)
        self.add(call)

    def _Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "pop":
                self._grow(node.func.value)
            if node.func.attr in MUTATORS:
                self._container(node.func.value)
        for child in children(node):
            self.add(child)

    def _grow(self, target: Any) -> None:
        if isinstance(target, ast.Name):
            self.changes.add(target.id)
            self.grows.add(target.id)
        else:
            names = support(target)
            if names is not None and isinstance(target, ast.Attribute):
                text = ast.unparse(target)
                self.composites.setdefault(text, (target, names))
                self.grows.add(text)

    def _function(self, node: Any) -> None:
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults, *getattr(node, "decorator_list", ())):
            self.add(default)
        inner = effects_of_function(node, self._functions)
        self.reads |= inner.reads
        if isinstance(node, ast.Lambda):
            self.changes |= inner.writes
        else:
            self.writes.add(node.name)

    _FunctionDef = _AsyncFunctionDef = _Lambda = _function

    def _ClassDef(self, node: ast.ClassDef) -> None:
        self.writes.add(node.name)
        for part in (*node.bases, *(k.value for k in node.keywords), *node.decorator_list):
            self.add(part)
        self.reads |= Effects(self._functions).add(node.body).reads

    def _add_comprehension(self, node: Any) -> None:
        inner = Effects(self._functions)
        for child in children(node):
            inner.add(child)
        bound = Effects()
        for generator in node.generators:
            bound.add(generator.target)
        named = {n.target.id for n in nodes(node) if isinstance(n, ast.NamedExpr)}
        self.reads |= inner.reads - bound.writes
        self.writes |= named
        self.changes |= inner.changes
        self.composites |= inner.composites
        self.containers |= inner.containers

    _ListComp = _SetComp = _DictComp = _GeneratorExp = _add_comprehension

    def _ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.add(node.type)
        if node.name:
            self.writes.add(node.name)
        self.add(node.body)

    def _import(self, node: Any) -> None:
        self.writes.update((a.asname or a.name).partition(".")[0] for a in node.names)

    _Import = _ImportFrom = _import

    def _pattern(self, node: Any) -> None:
        name = getattr(node, "rest" if isinstance(node, ast.MatchMapping) else "name", None)
        if name:
            self.writes.add(name)
        for child in children(node):
            self.add(child)

    _MatchAs = _MatchStar = _MatchMapping = _pattern

    def _Global(self, node: Any) -> None:
        pass

    _Nonlocal = _Global


_EFFECTS: dict[type, Any] = {
    getattr(ast, name[1:]): rule for name, rule in vars(Effects).items() if hasattr(ast, name[1:]) and callable(rule)
}
"""The methods of `Effects` that are named after node classes, by class."""


# The nodes of an index that has the same value when it is evaluated twice.
_INDEX = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.UnaryOp, ast.BinOp, ast.Tuple)


def support(node: Any) -> frozenset[str] | None:
    """Return the names in an attribute or item such as a.b['c'][i + 1].d.

    None if evaluating it twice may refer to different objects: a call or a slice is part of it.
    """
    names = index_names(node)
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return None if names is None or not isinstance(node, ast.Name) else names | {node.id}


def index_names(node: Any) -> frozenset[str] | None:
    """Return the names in the indices of an attribute or item; None if an index has more than names and numbers."""
    names: set[str] = set()
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript):
            parts = nodes(node.slice)
            if not all(isinstance(part, _INDEX) for part in parts):
                return None
            names.update(part.id for part in parts if isinstance(part, ast.Name))
        node = node.value
    return frozenset(names)


class FunctionScope:
    """The names of one function: parameters, locals, names declared global or nonlocal. nodes: its `own_nodes`."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.parameters = set(parameters(node.args))
        self.declared_global: set[str] = set()
        self.declared_nonlocal: set[str] = set()
        body = node.body if isinstance(node.body, list) else [node.body]
        bound = Effects().add(body).writes
        self.nodes = own_nodes(body)
        for child in self.nodes:
            if isinstance(child, ast.AnnAssign) and child.simple:
                bound.add(child.target.id)  # type: ignore[union-attr]  # an annotation without a value declares a local
            elif isinstance(child, ast.Global):
                self.declared_global.update(child.names)
            elif isinstance(child, ast.Nonlocal):
                self.declared_nonlocal.update(child.names)
        declared = self.declared_global | self.declared_nonlocal
        self.locals = (bound | self.parameters) - declared


def effects_of_function(node: Any, functions: dict[str, Effects]) -> Effects:
    """Return the effects of calling a local function on the variables of the enclosing scope."""
    scope = FunctionScope(node)
    inner = Effects({k: v for k, v in functions.items() if k not in scope.locals})
    inner.add(node.body)
    result = Effects()
    result.reads = inner.reads - scope.locals
    result.writes = (inner.writes | inner.changes) & scope.declared_nonlocal
    result.writes |= inner.changes - scope.locals - scope.declared_global
    result.composites = {k: v for k, v in inner.composites.items() if not v[1] & scope.locals}
    result.containers = {k: v for k, v in inner.containers.items() if not v[1] & scope.locals}
    return result


def local_functions(own: list[Any]) -> dict[str, Effects]:
    """Return the functions and named lambdas among a function's own nodes with the effects of a call; a fixed point."""
    functions: dict[str, Effects] = {}
    definitions: list[tuple[str, Any]] = []
    for node in own:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            definitions.append((node.name, node))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            definitions.extend((t.id, node.value) for t in node.targets if isinstance(t, ast.Name))
    for _ in range(len(definitions)):
        before = {k: v.size() for k, v in functions.items()}
        for name, node in definitions:
            effects = effects_of_function(node, functions)
            if name in functions:
                effects.merge(functions[name])
            functions[name] = effects
        if before == {k: v.size() for k, v in functions.items()}:
            break
    return functions


Names = frozenset[str]
