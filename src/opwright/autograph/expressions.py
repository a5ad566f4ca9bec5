"""Rewrite expressions to calls of the run-time operators.

Lives here: conditional expressions, and/or/not, chained comparisons, `in`, calls, lambdas, list comprehensions. Not
here: statements (statements.py), what the operators do (operators.py).

A rewritten operand becomes the body of a lambda, which cannot assign (`:=`) or yield; operands that do are left
unchanged.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .jumps import ag, ag_call, load
from .source import Node, branches, children, is_node, nodes
from .static_analysis import FUNCTIONS

_MEMBERSHIP = (ast.In, ast.NotIn)
SIGNS: dict[type, str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_SIMPLE = (
    ast.Name,
    ast.Constant,
    ast.Compare,
    ast.BoolOp,
    ast.UnaryOp,
    ast.BinOp,
    ast.expr_context,
    ast.boolop,
    ast.unaryop,
    ast.cmpop,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.BitAnd,
    ast.BitOr,
)
_FRAME_READERS = frozenset({"locals", "globals", "vars", "dir", "eval", "exec", "breakpoint"})


def lazy(body: Any) -> ast.Lambda:
    """lambda: body."""
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)


class Expressions:
    """The transformer of expressions. first: the first parameter of a method, for `super()`."""

    def __init__(self, first: str | None) -> None:
        self._first = first

    def statement(self, node: Node, block: Callable[[list[Any]], list[Any]]) -> Node:
        """Rewrite the expressions of a statement that has no operator; `block` rewrites the blocks in it."""
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                if value and isinstance(value[0], ast.stmt):
                    setattr(node, field, block(value))
                elif value and isinstance(value[0], (ast.ExceptHandler, ast.match_case)):
                    for part in value:
                        self.statement(part, block)
                elif not value or not isinstance(value[0], str):
                    setattr(node, field, [self.visit(v) if isinstance(v, ast.AST) else v for v in value])
            elif isinstance(value, ast.AST) and not (field == "annotation" or isinstance(value, ast.pattern)):
                setattr(node, field, self.visit(value))
        return node

    def visit(self, node: Any) -> Any:
        """Return the node rewritten; new nodes get its location."""
        rule = _RULES.get(node.__class__)
        if rule is None:
            return self.generic_visit(node)
        new = rule(self, node)
        if new is not node:
            fill_locations(new, node)
        return new

    def generic_visit(self, node: Any) -> Any:
        """Rewrite the children of a node in place and return it."""
        parts = node.__dict__
        for field in branches(node) if is_node(node) else ():
            value = parts.get(field)
            if value.__class__ is list:
                value[:] = [self.visit(item) if is_node(item) else item for item in value]
            elif is_node(value):
                parts[field] = self.visit(value)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if not (_is_deferrable(node.body) and _is_deferrable(node.orelse)):
            return node
        return ag_call("if_exp", node.test, lazy(node.body), lazy(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        simple = all(isinstance(n, _SIMPLE) for v in node.values[1:] for n in nodes(v))
        self.generic_visit(node)
        if not all(map(_is_deferrable, node.values[1:])):
            return node
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        call = ag_call(name, node.values[0], *(lazy(v) for v in node.values[1:]))
        if simple:
            call.keywords.append(ast.keyword("simple", ast.Constant(True)))
        return call

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return ag_call("not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) == 1:
            if not isinstance(node.ops[0], _MEMBERSHIP):
                return node
            return ag_call("in_" if isinstance(node.ops[0], ast.In) else "not_in", node.left, node.comparators[0])
        if not all(map(_is_deferrable, node.comparators)):
            return node
        parts: list[Any] = []
        for op, right in zip(node.ops, node.comparators):
            parts += [ast.Constant(SIGNS[type(op)]), lazy(right)]
        return ag_call("chain", node.left, *parts)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id == "super" and not node.args and not node.keywords and self._first is not None:
                node.args = [load("__class__"), load(self._first)]
                for argument in node.args:
                    fill_locations(argument, function)
                return node
            if function.id in _FRAME_READERS:
                self._arguments(node)
                return node
        if isinstance(function, ast.Name) and function.id == "super":
            return node
        node.func = ast.Call(ag("call"), [self.visit(function)], [])
        fill_locations(node.func, function)
        self._arguments(node)
        return node

    def _arguments(self, node: ast.Call) -> None:
        node.args = [self.visit(a) for a in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        first = node.args.posonlyargs + node.args.args
        inner = Expressions(first[0].arg if first and self._first is not None else None)
        if _is_deferrable(node.body, allow_assignments=True):
            node.body = inner.visit(node.body)
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d if d is None else self.visit(d) for d in node.args.kw_defaults]
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        self.generic_visit(node)
        (generator, *others) = node.generators
        parts = [node.elt, *generator.ifs]
        if others or generator.is_async or not all(map(_is_deferrable, parts)):
            return node
        target = generator.target
        if isinstance(target, ast.Name):
            names, unpacked = [target.id], False
        elif isinstance(target, (ast.Tuple, ast.List)) and all(isinstance(e, ast.Name) for e in target.elts):
            names, unpacked = [e.id for e in target.elts], True  # type: ignore[attr-defined]
        else:
            return node
        if len(set(names)) < len(names):
            return node

        def of_item(body: Any) -> object:
            return ast.Lambda(ast.arguments([], [ast.arg(n, None) for n in names], None, [], [], None, []), body)

        condition: Any = ast.Constant(None)
        if generator.ifs:
            ifs = generator.ifs
            condition = of_item(ifs[0] if len(ifs) == 1 else ag_call("and_", ifs[0], *map(lazy, ifs[1:])))
        return ag_call("list_comp", generator.iter, of_item(node.elt), condition, ast.Constant(unpacked))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                value.value = self.visit(value.value)
        return node


_RULES: dict[type, Any] = {
    getattr(ast, name.removeprefix("visit_")): rule
    for name, rule in vars(Expressions).items()
    if name.startswith("visit_")
}
"""The methods of `Expressions` that are named after node classes, by class."""


def _is_deferrable(node: Any, allow_assignments: bool = False) -> bool:
    """Return whether an expression has the same meaning inside a lambda."""
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, (ast.Yield, ast.YieldFrom, ast.Await)) or (
            isinstance(item, ast.NamedExpr) and not allow_assignments
        ):
            return False
        if not isinstance(item, FUNCTIONS):
            pending += children(item)
    return True


def fill_locations(new: Any, where: Any) -> None:
    """Set the location of nodes that have none to that of `where`."""
    pending = [new]
    while pending:
        node = pending.pop()
        if "lineno" in node._attributes and getattr(node, "lineno", None) is None:
            ast.copy_location(node, where)
        elif node is not new and "lineno" in node._attributes:
            continue  # the user's own node, which has a location
        pending += children(node)
