"""Mutants of formulas: each differs in one number, operator, comparison or choice.

Lives here: `mutants_of` the tree of a function, `code_of` a tree.  Not here: the tests that have to notice them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
CALLS = {"minimum": "maximum", "maximum": "minimum", "floor": "ceil", "ceil": "floor", "trunc": "floor"}


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield nodes to stand in for one: each with one change."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        yield ast.Constant(node.value + 1 if isinstance(node.value, int) else node.value * 1.001 + 1e-6)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)  # type: ignore[arg-type]
    if isinstance(node, ast.Compare):
        yield ast.Compare(node.left, [OPERATORS[type(node.ops[0])]()], node.comparators)  # type: ignore[list-item]
        if not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            yield ast.Compare(node.comparators[0], node.ops, [node.left])
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    if isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "select":
            yield ast.Call(node.func, [node.args[0], *node.args[:0:-1]], [])
        if node.func.attr in CALLS:
            yield ast.Call(ast.Attribute(node.func.value, CALLS[node.func.attr], ast.Load()), node.args, [])
        if node.func.attr == "abs":
            yield node.args[0]


class Replaced(ast.NodeTransformer):
    """A tree with another node in the place of its node number `place` in walking order."""

    def __init__(self, place: int, other: ast.AST) -> None:
        self.place, self.other, self.seen = place, other, -1

    def visit(self, node: ast.AST) -> Any:
        self.seen += 1
        return self.other if self.seen == self.place else super().generic_visit(node)


def in_order(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes in the order of `Replaced`."""
    return [tree, *(inner for child in ast.iter_child_nodes(tree) for inner in in_order(child))]


def mutants_of(tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield (the change in words, the tree with it) of a function or lambda."""
    docstring = tree.body[0] if isinstance(tree, ast.FunctionDef) else None
    skipped = set(map(id, ast.walk(docstring))) if docstring is not None else set()
    skipped |= {id(n) for n in ast.walk(tree.args)}
    for place, node in enumerate(in_order(tree)):
        if id(node) not in skipped:
            for other in changed(node):
                whole = Replaced(place, copy.deepcopy(other)).visit(copy.deepcopy(tree))
                yield f"{ast.unparse(node)} -> {ast.unparse(other)}", ast.fix_missing_locations(whole)


def code_of(tree: Any, module: Any) -> Any:
    """Return the code object of a function's tree."""
    scope: dict[str, Any] = dict(vars(module))
    if isinstance(tree, ast.Lambda):
        return eval(compile(ast.Expression(tree), "mutant", "eval"), scope).__code__
    plain = copy.deepcopy(tree)
    plain.returns = None
    for argument in plain.args.args:
        argument.annotation = None
    exec(compile(ast.Module([plain], []), "mutant", "exec"), scope)
    return scope[tree.name].__code__
