"""Steps of optimizers, in place.

Lives here: UpdateVariable, by a dense gradient, and UpdateRows, by sparse rows; `update_merged`, for other kernels of
the latter.
Not here: the rules (optimizer_rules.py), sparse rows themselves (indexed_slices.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.dtypes import index, numeric, resource
from ..core.errors import InvalidArgumentError
from .array.scatter import check_pair
from .array_functions import merge, rows_in_block
from .attributes import Attr, one_of
from .definition import operator
from .optimizer_rules import RULES
from .slots import Input, OperatorDefinition
from .state import IN_PLACE, WritableArrays, check_rows

# Bytes. A step of Adam on 256 MB takes 160 ms by 64 KiB, 140 by 128 and 256, and its terms take no new pages each time.
_BLOCK = 1 << 18


@operator
class UpdateVariable(OperatorDefinition[None]):
    """One step of an optimizer's rule, by a dense gradient.

    .. math:: variable, state \\leftarrow rule(values, variable, state)

    A large variable is written in place, block by block, unless its value is shared: by whole tensors every
    term of the rule would be new memory of its size.

    variable, state: variables of one shape and dtype; values: the gradient, of that dtype, its shape or one
    that broadcasts to it. scalars: the rule's, in its order. rule: a name of ops/optimizer_rules.py.
    raises InvalidArgumentError for a gradient or state of another shape or dtype
    """

    variable = Input(resource)
    state = Input(resource, repeated=True)
    values = Input(numeric)
    scalars = Input(numeric, repeated=True, like="values")
    rule = Attr(str, check=one_of(*RULES))
    lod = "vanishes"
    effect = "write"
    gradient = None

    def infer(op) -> tuple[()]:
        _check_counts(op)
        return ()

    def compute(op, variable: Any, state: Any, values: Any, scalars: Any) -> tuple[()]:
        rule, holders = RULES[op.rule], (variable, *state)
        arrays = [x.read_array() for x in holders]
        _check_arrays(arrays, values)
        if values.shape != arrays[0].shape:
            values = _spread(values, arrays[0].shape)
        if arrays[0].nbytes < IN_PLACE:
            arrays = [x.copy() for x in arrays]
            rule.update(values, arrays[0], arrays[1:], scalars)
            for holder, x in zip(holders, arrays):
                holder.write_array(x)
            return ()
        del arrays
        with WritableArrays(holders) as arrays:
            _by_blocks(rule, arrays, values, scalars)
        return ()


@operator
class UpdateRows(OperatorDefinition[None]):
    """One step of an optimizer's rule, by a gradient that is zero in all rows but those given.

    .. math:: variable_r, state_r \\leftarrow rule(g_r, variable_r, state_r), \\; g_r = \\sum_{i: indices_i=r} values_i

    What the rule does with the dense gradient, without one: rows that are given meet the rule, all others meet it with
    g = 0, a block of rows at a time, or are left alone where that changes nothing. Equal rows are added up first: the
    square of a sum is not the sum of squares. Values are written in place unless they are shared.

    variable, state: variables of one shape and dtype; values: [n, ...]; indices: [n], any order, equal ones allowed;
    n may be 0. scalars: the rule's, in its order. rule: a name of ops/optimizer_rules.py. lazy: rows that are not given
    are left alone by every rule, with their state.
    raises InvalidArgumentError for indices that are not rows of the variable, values of another width or dtype
    """

    variable = Input(resource)
    state = Input(resource, repeated=True)
    values = Input(numeric)
    indices = Input(index, rank=1)
    scalars = Input(numeric, repeated=True, like="values")
    rule = Attr(str, check=one_of(*RULES))
    lazy = Attr(bool, default=False)
    lod = "vanishes"
    effect = "write"
    gradient = None

    def infer(op) -> tuple[()]:
        _check_counts(op)
        check_pair(op.indices.spec.shape, op.values.spec.shape)
        return ()

    def compute(op, variable: Any, state: Any, values: Any, indices: Any, scalars: Any) -> tuple[()]:
        update_merged(update_distinct, op, variable, state, values, indices, scalars)
        return ()


def update_merged(
    update: Callable[..., object], op: Any, variable: Any, state: Any, values: Any, indices: Any, scalars: Any
) -> None:
    """Call update(op, arrays, rows, values, scalars) with exclusive access to the arrays of the variable and its state.

    op: with the attributes of `UpdateRows`; rows: distinct and ascending, with a row of values each. raises as
    `UpdateRows`, before anything is written
    """
    with WritableArrays((variable, *state)) as arrays:
        check_rows(op.rule, arrays[0], indices, values)
        _check_arrays(arrays, values)
        update(op, arrays, *merge(indices, values), scalars)


def update_distinct(op: Any, arrays: list[np.ndarray], rows: np.ndarray, values: np.ndarray, scalars: Any) -> None:
    """Apply the rule to the rows that `update_merged` passes, and with g = 0 to all others unless they stay."""
    rule, size = RULES[op.rule], rows_in_block(arrays[0])
    gathered = None
    if not (op.lazy or rule.still):
        gathered = [a.take(rows, 0) for a in arrays]
        _idle(rule, arrays, scalars)
    for i in range(0, len(rows), size):
        block_rows = rows[i : i + size]
        part = [a.take(block_rows, 0) for a in arrays] if gathered is None else [x[i : i + size] for x in gathered]
        rule.update(values[i : i + size], part[0], part[1:], scalars)
        for array, x in zip(arrays, part):
            array[block_rows] = x


update_rows: Any = UpdateRows  # a checker of types sees the class, and the call is the operator's


update_variable: Any = UpdateVariable


def _check_counts(op: Any) -> None:
    """Raise InvalidArgumentError for another number of states or scalars than the rule takes."""
    rule = RULES[op.rule]
    for name, values, names in (("state", op.state, rule.state), ("scalars", op.scalars, rule.scalars)):
        if len(values) != len(names):
            raise InvalidArgumentError(
                what=f"rule {op.rule!r} takes {len(names)} {name}", found=len(values), wanted=", ".join(names) or "none"
            )


def _check_arrays(arrays: list[np.ndarray], gradient: np.ndarray) -> None:
    """Raise InvalidArgumentError for a state of another shape or dtype than the variable's."""
    for array in arrays:
        if array.dtype != gradient.dtype or array.shape != arrays[0].shape:
            raise InvalidArgumentError(
                what="variable, state and gradient differ in dtype or shape",
                found=[(a.dtype.name, a.shape) for a in (*arrays, gradient)],
            )


def _spread(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    try:
        return np.broadcast_to(gradient, shape)
    except ValueError:
        raise InvalidArgumentError(
            what="the gradient does not have the shape of the variable", found=gradient.shape, wanted=shape
        ) from None


def _blocks(arrays: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Yield blocks of arrays of one shape that fit in the cache together."""
    if all(a.flags.c_contiguous for a in arrays):  # then rows may be of any size
        arrays = [a.reshape(-1) for a in arrays]
        size = _BLOCK // arrays[0].itemsize
    else:
        size = rows_in_block(arrays[0])
    for i in range(0, len(arrays[0]), size):
        yield [a[i : i + size] for a in arrays]


def _by_blocks(rule: Any, arrays: list[np.ndarray], gradient: np.ndarray, scalars: Any) -> None:
    """Apply the rule to all elements, block by block."""
    for g, w, *state in _blocks([gradient, *arrays]):
        rule.update(g, w, state, scalars)


def _idle(rule: Any, arrays: list[np.ndarray], scalars: Any) -> None:
    """Apply the rule with a gradient of zero to all elements."""
    zero = np.zeros((), arrays[0].dtype)
    for w, *state in _blocks(arrays):
        if rule.idle is not None:
            rule.idle(w, state, scalars)
        else:
            rule.update(zero, w, state, scalars)
