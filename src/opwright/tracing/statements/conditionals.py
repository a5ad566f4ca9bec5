"""The `if` statement, conditional expressions, `and` and `or` on values of a graph.

Lives here: tracing of both branches with the same variables into one `If` node; merging of the variables of two
branches: the comparison of a variable's two values leaf by leaf, and the errors that name the variable.
Not here: the node's gradient (tracing/control/branches.py), loops (loops.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograph.handlers import StatementState, Thunk, Unbound, is_flag, is_return_flag, is_returned_value
from ...core import dtypes, nest
from ...eager.variable import Variable
from ...ops import array, dispatch, math
from ...ops.control import If as _If
from ...ops.control import Undefined as UndefinedOperator
from ...ops.control import merged_specs
from ...ops.tensor import Tensor, TensorLike
from ..control.body import Body, capture_placeholders, captured_by, record_body
from ..control.branches import BranchRecord, branch_attrs
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from .growing_list import GrowingList, begin_growing, refuse

NUMBERS = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)


def is_value(leaf: Any) -> bool:
    """Return whether a leaf can be converted to a tensor."""
    return isinstance(leaf, (TensorLike, *NUMBERS))


def leaves_of(value: Any) -> list[Any]:
    """Return the leaves of a variable's value; composites are flattened."""
    return nest.flatten(value, expand_composites=True)


def described(name: str) -> str:
    """Return the description of a variable for error messages."""
    if is_returned_value(name):
        return "the return value"
    return repr(name)


def fill(name: str, names: tuple[str, ...], value: Any, branch: str) -> bool:
    """Return whether a placeholder may represent, in one branch, a variable that only the other branch defines.

    This holds for a returned value if a flag tells whether it is set. Otherwise raises ValueError, as TensorFlow does.
    """
    if is_returned_value(name):
        if any(is_return_flag(n) for n in names):
            return True
        refuse(
            ValueError,
            f"A value must also be returned from the {branch} branch. If a value is returned from one branch of a "
            f"conditional a value must be returned from all branches: the {branch} branch must also have a return "
            "statement.",
        )
    if not is_flag(name):
        refuse(
            ValueError,
            f"{name!r} must also be initialized in the {branch} branch",
            found=f"{name} is assigned in the other branch only, and read afterwards",
            do=f"give {name} a value before the if statement, or in both branches",
        )
    return True


def same_structure(name: str, main: Any, other: Any, text: str) -> None:
    """Raise TypeError naming the variable if two values have different structures."""
    try:
        nest.assert_same_structure(main, other, expand_composites=True)
    except (ValueError, TypeError) as error:
        refuse(TypeError, f"{described(name)} {text}:\n\n{error}")


class Leaf:
    """One leaf of a merged variable: a value common to both branches, or their tensors."""

    __slots__ = ("constant", "main", "other")

    def __init__(self, constant: Any = None, main: Any = None, other: Any = None) -> None:
        self.constant, self.main, self.other = constant, main, other


def merge_leaf(name: str, main: Any, other: Any, main_trace: Any, other_trace: Any) -> Leaf:
    """Merge two leaves. Raises ValueError or TypeError naming the variable if they cannot be merged."""
    if main is other and not _of(main, main_trace):
        return Leaf(constant=main)
    plain = type(main) is type(other) and isinstance(main, (bool, int, float, str, bytes))
    if plain and (main == other or (main != main and other != other)):
        return Leaf(constant=main)
    for value, branch in ((main, "main"), (other, "else")):
        if value is None:
            refuse(
                ValueError,
                f"{described(name)} is None at the end of the {branch} branch.",
                do="give it values of one type in both branches",
            )
    if isinstance(main, Unbound) or isinstance(other, Unbound):
        return Leaf(main=main, other=other)
    for value, branch in ((main, "main"), (other, "else")):
        if not is_value(value):
            refuse(
                TypeError,
                f"{described(name)} is a {type(value).__name__} at the end of the {branch} branch, and another object "
                "or value at the end of the other one: a graph can only choose between tensors",
            )
    hint = next((v.dtype for v in (main, other) if isinstance(v, TensorLike)), None)
    first = _tensor(main, main_trace, hint, name)
    second = _tensor(other, other_trace, hint or first.dtype, name)
    if hint is None and first.dtype is not second.dtype:
        second = _tensor(other, other_trace, None, name)
    if first.dtype is not second.dtype:
        refuse(
            TypeError,
            f"{described(name)} has dtype {first.dtype.name} in the main branch, but dtype {second.dtype.name} in the "
            "else branch",
            do="use tf.cast in one of them",
        )
    return Leaf(main=first, other=second)


def _of(value: Any, trace: Any) -> bool:
    return getattr(value, "trace", None) is trace


def _tensor(value: Any, trace: FuncTrace, dtype: Any, name: str) -> SymbolicTensor:
    with trace.resumed():
        tensor: SymbolicTensor
        if isinstance(value, TensorLike):
            tensor = trace.to_tensor(value)
        else:
            try:
                tensor = trace.to_tensor(value, dtype)
            except (TypeError, ValueError, OverflowError):
                tensor = trace.to_tensor(value)
        return tensor


state = dispatch.state
If: Any = _If


def truth(test: Any, what: str) -> Tensor:
    """Convert a condition to a scalar bool tensor; as in Python, nonzero is true. Raises ValueError for several
    elements.
    """
    trace = state.trace
    assert isinstance(trace, FuncTrace)
    tensor: Tensor = trace.to_tensor(test)
    if tensor.shape.rank:
        if tensor.shape.num_elements() != 1:
            refuse(
                ValueError,
                f"{what} is a tensor of shape {tensor.shape}, whose truth value is ambiguous",
                wanted="a scalar",
                do="tf.reduce_any or tf.reduce_all",
            )
        tensor = array.reshape(tensor, ())
    if tensor.dtype is dtypes.bool:
        return tensor
    if tensor.dtype is dtypes.string:
        from ...ops import strings

        return math.not_equal(strings.length(tensor), 0)
    return math.not_equal(tensor, array.zeros((), tensor.dtype))


def choose(
    test: Any, names: tuple[str, ...], main: Thunk, other: Thunk, name: str, guards: tuple[str, ...] = ()
) -> list[Any]:
    """Return the values of `names` after `main` or `other`, functions that return them as a list, as `test` selects.

    guards: flags that are set if `other` runs; variables that it leaves unset are then not read.
    """
    trace = state.trace
    assert isinstance(trace, FuncTrace)
    pred = truth(test, "the condition")
    main_trace, _, main_values = record_body(f"{trace.name}_{name}_true_fn", main, (), trace)
    other_trace, _, other_values = record_body(f"{trace.name}_{name}_false_fn", other, (), trace)
    rows: list[Any] = []
    for symbol, a, b in zip(names, main_values, other_values):
        rows.append(_merged(symbol, (*names, *guards), a, b, main_trace, other_trace))
    leaves = [leaf for row in rows if row is not None for leaf in row[1] if leaf.main is not None]
    outers = captured_by([main_trace, other_trace])
    bodies = []
    for side, traced in (("main", main_trace), ("other", other_trace)):
        outputs = [_output(leaf, side, traced) for leaf in leaves]
        bodies.append((traced, outputs))
    outers = captured_by([main_trace, other_trace])
    closed = [Body(traced, capture_placeholders(traced, outers), outputs) for traced, outputs in bodies]
    graphs = [body.graph() for body in closed]
    operands = tuple(outer if isinstance(outer, Variable) else trace.to_tensor(outer) for outer in outers)
    outs = iter(
        trace.record_control(
            BranchRecord,
            If,
            [pred, operands],
            branch_attrs(If, graphs),
            merged_specs(graphs, ("main branch", "else branch")),
            name,
        )
    )
    results = []
    for row, a in zip(rows, main_values):
        if row is None:
            results.append(a)
        else:
            structure, parts = row
            results.append(
                nest.pack_sequence_as(
                    structure, [p.constant if p.main is None else next(outs) for p in parts], expand_composites=True
                )
            )
    return results


def _merged(
    name: str, names: tuple[str, ...], a: Any, b: Any, main_trace: Any, other_trace: Any
) -> tuple[Any, list[Leaf]] | None:
    """Merge the values of one variable: (structure, leaves).

    Return None if both are undefined, or if they are one object whose items are a separate variable.
    """
    if (isinstance(a, Unbound) and isinstance(b, Unbound)) or (a is b and f"{name}[...]" in names):
        return None
    if isinstance(a, Unbound) or isinstance(b, Unbound):
        structure = b if isinstance(a, Unbound) else a
        fill(name, names, structure, "main" if isinstance(a, Unbound) else "else")
        parts = []
        for leaf in leaves_of(structure):
            if not is_value(leaf):
                parts.append(Leaf(constant=leaf))
            elif isinstance(a, Unbound):
                parts.append(Leaf(main=a, other=leaf))
            else:
                parts.append(Leaf(main=leaf, other=b))
        return structure, parts
    if isinstance(a, GrowingList) and isinstance(b, GrowingList):
        for growing, traced in ((a, main_trace), (b, other_trace)):
            with traced.resumed():
                growing.begin()
    if a is b and not isinstance(a, TensorLike) and not nest.is_nested(a):
        return a, [Leaf(constant=leaf) for leaf in [a]] if not leaves_of(a) else [
            merge_leaf(name, x, x, main_trace, other_trace) for x in leaves_of(a)
        ]
    same_structure(name, a, b, "must have the same nested structure in the main and else branches")
    return a, [merge_leaf(name, x, y, main_trace, other_trace) for x, y in zip(leaves_of(a), leaves_of(b))]


def _output(leaf: Leaf, side: str, trace: FuncTrace) -> SymbolicTensor:
    value = getattr(leaf, side)
    with trace.resumed():
        if isinstance(value, Unbound):
            like = leaf.other if side == "main" else leaf.main
            if not isinstance(like, TensorLike):
                like = dispatch.to_tensor(like)
            undefined: Any = UndefinedOperator(dtype=like.dtype, shape=like.shape)
            result: SymbolicTensor = undefined
            return result
        tensor: SymbolicTensor = trace.to_tensor(value)
        return tensor


def if_stmt(test: Any, body: Thunk, orelse: Thunk | None, variables: StatementState, options: dict[str, Any]) -> None:
    """Execute an `if` statement."""
    names = variables.names
    before = variables.get()
    for i, symbol in enumerate(names):
        if symbol in options.get("grows", ()) and type(before[i]) in (list, GrowingList):
            before[i] = begin_growing(before[i], symbol)

    unread = set(options.get("kept", ()))
    read = [i for i, symbol in enumerate(names) if symbol not in unread]

    def run(block: Callable[[], Any] | None) -> Callable[[], list[Any]]:
        def branch() -> list[Any]:
            variables.set([v.copy() if isinstance(v, GrowingList) else v for v in before])
            if block is not None:
                block()
            values = variables.get()
            return [values[i] for i in read]

        return branch

    after = list(before)
    try:
        symbols, guards = tuple(names[i] for i in read), options.get("guards", ())
        for i, value in zip(read, choose(test, symbols, run(body), run(orelse), "if", guards)):
            after[i] = value
    except BaseException:
        variables.set(before)
        raise
    variables.set(after)


def if_exp(test: Any, body: Thunk, orelse: Thunk) -> object:
    """Evaluate `body() if test else orelse()`."""
    (value,) = choose(test, ("the conditional expression",), lambda: [body()], lambda: [orelse()], "if_exp")
    return value


def _bools(*values: Any) -> bool:
    return all(isinstance(v, bool) or (isinstance(v, TensorLike) and v.dtype is dtypes.bool) for v in values)


def logical(left: Any, right: Thunk, simple: bool, conjunction: bool) -> object:
    """Evaluate `left and right()` or `left or right()`; right() is not computed if left decides, unless it is
    simple.
    """
    if simple:
        second = right()
        if _bools(left, second):
            return (math.logical_and if conjunction else math.logical_or)(left, second)
        return if_exp(left, lambda: second, lambda: left) if conjunction else if_exp(left, lambda: left, lambda: second)
    if conjunction:
        return if_exp(left, right, lambda: left if not _bools(left) else False)
    return if_exp(left, lambda: left if not _bools(left) else True, right)
