"""Formulas of the scalar table are exact, and a change of any part of one is noticed.

Each mutant of a formula differs in one number, operator, comparison or choice; it is run on NumPy arrays, without a
compiler. Lives here: the mutants. Not here: what the functions are (exact_functions.py).
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from exact_functions import dtypes_of, wrong

from opwright.scalar import formulas, table
from opwright.scalar.table import ROWS

FORMULAS = [row for row in ROWS if row.formula is not None]


def first_difference(rows: Any = FORMULAS) -> str:
    """Return the first difference of a row from what it is; empty if there is none."""
    return next((text for row in rows for dtype in dtypes_of(row) if (text := wrong(row, dtype))), "")


def test_formulas_are_exact() -> None:
    assert [text for row in FORMULAS if (text := first_difference([row]))] == []


# ---- mutants ---------------------------------------------------------------------------------------------------------

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


def functions() -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """Yield (name, function, its tree): those of formulas.py, and lambdas in rows of the table."""
    for tree in ast.parse(inspect.getsource(formulas)).body:
        if isinstance(tree, ast.FunctionDef):
            yield tree.name, getattr(formulas, tree.name), tree
    lambdas = {row.formula.__code__.co_firstlineno: row for row in FORMULAS if row.formula.__name__ == "<lambda>"}
    for node in ast.walk(ast.parse(inspect.getsource(table))):
        if isinstance(node, ast.Lambda) and node.lineno in lambdas:
            yield lambdas[node.lineno].name, lambdas[node.lineno].formula, node


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


_DIVISOR = "any divisor will do where the result is not taken"
_SIGNS = "no remainder, and no divisor whose remainder is taken, is 0 there"
_ARRAYS = "NumPy's shifts by too many bits are 0; processors' are not, of which the compiled rows tell"
_WRAPS = "2^31, at which products stop, becomes the least int32 by itself"
_STOPS = "an odd number to the power 2^(bits - 2) is 1, an even one 0"
EQUAL = {
    "elu: x < 0.0 -> x <= 0.0": "expm1(0) is 0",
    "floor_quotient: 0 -> 1": _DIVISOR,
    "integer_power: 1 -> 2": _STOPS,
    "integer_power: 8 -> 9": _STOPS,
    "integer_power: dtype.size * 8 - 1 -> dtype.size * 8 + 1": _STOPS,
    "power_or_least: (total >= limit) | (total <= -limit) -> (total >= limit) & (total <= -limit)": _WRAPS,
    "power_or_least: -limit -> limit": _WRAPS,
    "power_or_least: 31 -> 32": "no exponent has a bit more",
    "power_or_least: total <= -limit -> total < -limit": _WRAPS,
    "power_or_least: total >= limit -> total > limit": _WRAPS,
    "quotient: 1 -> 2": _DIVISOR,
    "quotient: none | minus -> none & minus": "NumPy divides by 0; processors trap, of which the compiled rows tell",
    "shift_left_or_zero: (by >= 0) & (by < m.type_of(x).size * 8) -> (by >= 0) | (by < m.type_of(x).size * 8)": _ARRAYS,
    "shift_left_or_zero: 0 -> 1": _ARRAYS,
    "shift_left_or_zero: 8 -> 9": _ARRAYS,
    "shift_left_or_zero: by < m.type_of(x).size * 8 -> by <= m.type_of(x).size * 8": _ARRAYS,
    "sigmoid: x < 0.0 -> x <= 0.0": "exp(0) is 1",
    "softplus: x > 0.0 -> x >= 0.0": "0 is the other choice",
    "unlike_signs: 0 -> 1": _SIGNS,
    "unlike_signs: remainder < 0 -> remainder <= 0": _SIGNS,
    "unlike_signs: y < 0 -> y <= 0": _SIGNS,
}
"""Mutants that compute the same, and why."""


def test_every_change_of_a_formula_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    survivors, count = [], 0
    for name, function, tree in functions():
        rows = [row for row in FORMULAS if reads(row.formula, function)]
        assert rows or name == "polynomial", f"no row uses {name}"  # that one is of numerics/
        for words, mutant in mutants_of(tree) if rows else ():
            count += 1
            with monkeypatch.context() as patch:
                patch.setattr(function, "__code__", code_of(mutant, inspect.getmodule(function)))
                if not first_difference(rows):
                    survivors.append(f"{name}: {words}")
    assert count > 250
    assert sorted(set(survivors)) == sorted(EQUAL)


def reads(formula: Callable[..., Any], function: Callable[..., Any]) -> bool:
    """Return whether a formula is a function or calls it, at any depth."""
    if formula is function:
        return True
    module = vars(inspect.getmodule(formula))
    called = [module.get(name) for name in formula.__code__.co_names if name != formula.__name__]
    return any(reads(f, function) for f in called if inspect.isfunction(f) and inspect.getmodule(f) is formulas)


@pytest.mark.parametrize("name", ["SELU_SCALE", "SELU_ALPHA", "GELU_CUBIC", "GELU_SLOPE", "CLAMPS"])
def test_every_change_of_a_constant_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value = getattr(formulas, name)
    monkeypatch.setattr(formulas, name, {**value, "RELU6": (0, 7)} if name == "CLAMPS" else value * (1 + 1e-9))
    assert first_difference()
