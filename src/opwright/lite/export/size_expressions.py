"""Output sizes that an operator's shape rule computes, such as those of a convolution, as symbolic expressions.

Lives here: `computed_sizes`, which executes `infer` symbolically.
Not here: C code for the expressions (fragments.py), sizes that outputs share with inputs (array_kernels.py).

`infer` runs on integers of class `SymbolicSize`, whose arithmetic builds expressions. Each comparison of such sizes
forks the execution: the rule runs once for each outcome. The result is a decision tree; a leaf holds an expression for
each size, or a rejection. A rule that leaves integer arithmetic (`math.ceil(n / s)`) loses the expressions; therefore
the tree is compared with the rule at many sizes, and rejected where they differ.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...compiler.language.parameters import REST, Array
from ...core.errors import UnimplementedError
from ...core.specs import TensorSpec
from ...ops.call import Call
from ...ops.definition import Operator
from .kernel_variants import MOST_CHOICES, AttributeOption

MOST_PATHS = 256
_SAMPLES = 200
_SAMPLE_SIZES = (37, 41, 43, 47, 53, 59, 61, 67)

Expression = tuple[Any, ...] | int | str
"""A whole number, the name of a size, ("attr", field), or an operation with its operands."""

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "//": int.__floordiv__,
    "%": int.__mod__,
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": int.__lt__,
    "<=": int.__le__,
    "==": int.__eq__,
    "!=": int.__ne__,
    ">": int.__gt__,
    ">=": int.__ge__,
}


_OF_SIZES = (("<", 0), (">=", 0))
"""Comparisons with a known outcome: an input's sizes are not negative."""


class SymbolicSize(int):
    """An integer with the expression that computes it. paths: decides comparisons."""

    expression: Expression
    paths: _Paths

    @staticmethod
    def of(value: int, expression: Expression, paths: _Paths) -> SymbolicSize:
        size = SymbolicSize(value)
        size.expression, size.paths = expression, paths
        return size

    def __index__(self) -> int:
        return self  # shapes call it, and store the result

    def __neg__(self) -> int:
        return 0 - self

    def __pos__(self) -> SymbolicSize:
        return self

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other

    def __rdivmod__(self, other: int) -> tuple[int, int]:
        return other // self, other % self

    def __bool__(self) -> bool:
        return bool(self != 0)

    __hash__ = int.__hash__


def _expression(x: int) -> Expression:
    return x.expression if isinstance(x, SymbolicSize) else int(x)


def _arithmetic(sign: str, swapped: bool) -> Callable[[SymbolicSize, Any], Any]:
    rule = _ARITHMETIC[sign]

    def operation(self: SymbolicSize, other: Any) -> object:
        if not isinstance(other, int):
            return NotImplemented
        left, right = (other, self) if swapped else (self, other)
        value = rule(int(left), int(right))
        return SymbolicSize.of(value, (sign, _expression(left), _expression(right)), self.paths)

    return operation


def _comparison(sign: str) -> Callable[[SymbolicSize, Any], Any]:
    rule = COMPARISONS[sign]

    def operation(self: SymbolicSize, other: Any) -> object:
        if not isinstance(other, int):
            return NotImplemented
        left, right = _expression(self), _expression(other)
        holds = rule(int(self), int(other))
        certain = left == right or ((sign, right) in _OF_SIZES and isinstance(left, str))
        return holds if certain else self.paths.holds((sign, left, right), holds)

    return operation


for _sign, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("//", "floordiv"), ("%", "mod")):
    setattr(SymbolicSize, f"__{_name}__", _arithmetic(_sign, False))
    setattr(SymbolicSize, f"__r{_name}__", _arithmetic(_sign, True))
for _sign, _name in (("<", "lt"), ("<=", "le"), ("==", "eq"), ("!=", "ne"), (">", "gt"), (">=", "ge")):
    setattr(SymbolicSize, f"__{_name}__", _comparison(_sign))


class _Paths:
    """The outcomes of comparisons in one run. wanted: prescribed outcomes. given: all outcomes, with their
    conditions."""

    def __init__(self) -> None:
        self.prescribed: list[bool] = []
        self.outcomes: list[tuple[Expression, bool]] | None = None  # None while nothing is being recorded

    def holds(self, question: Expression, here: bool) -> bool:
        """Return the outcome: True at first, unless this run is prescribed another."""
        if self.outcomes is None:
            return here
        for recorded, answer in self.outcomes:
            if recorded == question:
                return answer
        answer = self.prescribed[len(self.outcomes)] if len(self.outcomes) < len(self.prescribed) else True
        self.outcomes.append((question, answer))
        return answer


@dataclass(frozen=True)
class Branch:
    """A condition and its two subtrees."""

    condition: Expression
    then: Tree
    otherwise: Tree


Leaf = Mapping[str, Expression] | None
"""The computed sizes by name; None where the rule refuses the inputs."""
Tree = Branch | Leaf


@dataclass(frozen=True)
class ComputedSizes:
    """Trees for computed sizes. names: of the sizes. trees: for each combination of the choices of `chosen`."""

    names: tuple[str, ...]
    chosen: tuple[AttributeOption, ...]
    trees: tuple[tuple[tuple[int, ...], Tree], ...]


def computed_sizes(
    op: Operator,
    export_options: Sequence[AttributeOption],
    inputs: Sequence[tuple[str, Array]],
    outputs: Sequence[tuple[str, Array]],
    names: Sequence[str],
) -> ComputedSizes:
    """Return trees for the sizes of these names, which appear in the outputs' annotations and in no input's.

    raises UnimplementedError for a shape rule that C cannot express
    """
    chosen = tuple(o for o in export_options if o.choices)
    combinations = list(itertools.product(*(range(len(o.choices)) for o in chosen)))
    if len(combinations) > MOST_CHOICES:
        raise UnimplementedError(
            op=op.name,
            what="its attributes have too many combinations",
            do="attrs={...}",
            found=len(combinations),
            wanted=f"at most {MOST_CHOICES}",
        )
    input_names = tuple(dict.fromkeys(s for _, k in inputs for s in k.shape if isinstance(s, str)))
    rule = _Rule(op, export_options, inputs, outputs, input_names, tuple(names))
    trees = []
    for combination in combinations:
        fixed = {o.name: o.choices[i] for o, i in zip(chosen, combination)}
        trees.append((combination, rule.tree(fixed)))
        rule.check(fixed, trees[-1][1], max(_SAMPLES // len(combinations), 12))
    return ComputedSizes(tuple(names), chosen, tuple(trees))


@dataclass(frozen=True)
class _Rule:
    """The shape rule of an operator, with the annotations of its inputs and outputs."""

    op: Operator
    options: Sequence[AttributeOption]
    inputs: Sequence[tuple[str, Array]]
    outputs: Sequence[tuple[str, Array]]
    known: tuple[str, ...]
    names: tuple[str, ...]

    def tree(self, fixed: Mapping[str, Any]) -> Tree:
        """Return the tree of all outcomes of the rule's comparisons, for these fixed attributes."""
        paths = _Paths()
        sizes = {n: SymbolicSize.of(v, n, paths) for n, v in zip(self.known, itertools.cycle(_SAMPLE_SIZES))}
        numbers = {o.name: SymbolicSize.of(v, ("attr", o.field), paths) for o, v in self._numbers(fixed, 0)}
        call = self._call(fixed, numbers)
        specs = self._specs(sizes, (2, 3))
        count = 0

        def explore(answers: list[bool]) -> Tree:
            nonlocal count
            count += 1
            if count > MOST_PATHS:
                raise UnimplementedError(
                    op=self.op.name,
                    what="its shape rule decides too much to become C",
                    wanted=f"at most {MOST_PATHS} ways through it",
                )
            paths.prescribed, paths.outcomes = answers, []
            try:
                leaf = self._leaf(call, specs)
            finally:
                recorded, paths.outcomes = paths.outcomes, None
            tree: Tree = leaf
            for i in reversed(range(len(answers), len(recorded))):
                tree = Branch(recorded[i][0], tree, explore([answer for _, answer in recorded[:i]] + [False]))
            return tree

        return explore([])

    def _leaf(self, call: Call, specs: Sequence[TensorSpec]) -> Leaf:
        """Return the sizes that the rule computes; None if it rejects the inputs."""
        try:
            shapes = [tuple(spec.shape) for spec in self.op.infer(call, specs)]
        except UnimplementedError:
            raise
        except Exception:
            return None
        sizes: dict[str, Expression] = {}
        for shape, (name, kind) in zip(shapes, self.outputs):
            own = [s for s in kind.shape if s != REST]
            if len(shape) < len(own) or None in shape:
                what = f"the shape of output {name!r} is not what its annotation says"
                raise UnimplementedError(op=self.op.name, what=what, found=f"infer: {list(shape)}", wanted=repr(kind))
            for size, value in zip(own, shape[len(shape) - len(own) :]):
                if size in self.names:
                    sizes.setdefault(size, _expression(value))
        return sizes

    # ---- running the rule -------------------------------------------------------------------------------------------

    def _numbers(self, fixed: Mapping[str, Any], draw: int) -> Iterator[tuple[AttributeOption, int]]:
        """Yield values of integers that nodes specify: the default first, then others that the checks allow."""
        for k, option in enumerate(self.options):
            if option.later is not int or (option.choices and fixed[option.name] is not int):
                continue
            allowed = []
            for value in (option.attr.default, 1, 2, 3, 5, 0, 17):
                try:
                    allowed.append(int(option.attr.convert(value)))
                except (TypeError, ValueError):
                    continue
            if not allowed:
                raise UnimplementedError(
                    op=self.op.name,
                    what=f"no value of attribute {option.name!r} was found that its check allows",
                    do=f"attrs={{{option.name!r}: [...]}}",
                )
            yield option, allowed[(draw * (k + 1)) % len(allowed)]

    def _call(self, fixed: Mapping[str, Any], numbers: Mapping[str, int]) -> Call:
        """Return the operator's attributes, with symbolic sizes unconverted."""
        plain = {n: v for n, v in fixed.items() if not isinstance(v, type)} | {n: int(v) for n, v in numbers.items()}
        reals = {o.name: 1.0 for o in self.options if o.later is float and o.name not in plain and o.attr.required}
        call = self.op.bind({n: v for n, v in (plain | reals).items() if v is not None}).with_inputs(())
        for name, value in numbers.items():
            setattr(call, name, value)
        return call

    def _specs(self, sizes: Mapping[str, int], leading: Sequence[int]) -> list[TensorSpec]:
        return [
            TensorSpec(
                [n for s in kind.shape for n in (leading if s == REST else (s if isinstance(s, int) else sizes[s],))],
                kind.dtype,
            )
            for _, kind in self.inputs
        ]

    # ---- whether the tree is right -----------------------------------------------------------------------------------

    def check(self, fixed: Mapping[str, Any], tree: Tree, samples: int) -> None:
        """Raise UnimplementedError if the tree differs from the rule."""
        draw = random.Random(0)
        for i in range(samples):
            top = (8, 40, 1000)[i % 3]
            sizes = {n: draw.randint(0, top) for n in self.known}
            leading = [draw.randint(0, 4) for _ in range(draw.randint(0, 3))]
            numbers = {o.name: v for o, v in self._numbers(fixed, draw.randint(0, 30))}
            fields = {o.field: numbers[o.name] for o in self.options if o.name in numbers}
            computed = evaluated(tree, sizes, fields)
            try:
                specs: Any = self.op.infer(self._call(fixed, numbers), self._specs(sizes, leading))
            except Exception:
                specs = None
            expected = None if specs is None else [tuple(spec.shape) for spec in specs]
            ours = (
                None
                if computed is None
                else [
                    tuple(
                        n
                        for s in kind.shape
                        for n in (leading if s == REST else (s if isinstance(s, int) else (sizes | computed)[s],))
                    )
                    for _, kind in self.outputs
                ]
            )
            refused = ours is None or any(n < 0 for shape in ours for n in shape)
            if (expected is None) != refused or (not refused and expected != ours):
                raise UnimplementedError(
                    op=self.op.name,
                    what="its shape rule cannot be translated to C: the results differ at some sizes",
                    found=f"infer {expected or 'refuses'}, C {'refuses' if refused else ours} for {sizes} {numbers}",
                    wanted="sums, products, // and % of sizes and of attributes that are integers, and comparisons of "
                    "these",
                    do="write math.ceil(n / s) as -(-n // s)",
                )


def evaluated(tree: Tree, sizes: Mapping[str, int], fields: Mapping[str, int]) -> dict[str, int] | None:
    """Return the sizes that a tree computes; None if it rejects the inputs, or divides by zero."""

    def value(e: Expression) -> int:
        if isinstance(e, int):
            return e
        if isinstance(e, str):
            return sizes[e]
        if e[0] == "attr":
            return fields[e[1]]
        return int((_ARITHMETIC.get(e[0]) or COMPARISONS[e[0]])(value(e[1]), value(e[2])))

    try:
        while isinstance(tree, Branch):
            tree = tree.then if value(tree.condition) else tree.otherwise
        return None if tree is None else {name: value(e) for name, e in tree.items()}
    except ZeroDivisionError:
        return None
