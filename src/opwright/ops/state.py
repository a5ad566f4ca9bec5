"""Operators on state: reading and writing variables through their handles.

Lives here: what a variable does inside a graph.  Not here: `Variable` itself (eager/variable.py).
A handle is a scalar of dtype resource; when a graph runs, the value behind it is the variable object, which answers
`read_array()` and `write_array(array)`, and `writing()` where its buffer may be written to in place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType, any_dtype, numeric, resource
from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from .array_functions import combine
from .attributes import Attr
from .definition import operator
from .slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from .definition import Operator
    from .tensor import Tensor


@operator
class ReadVariable(OperatorDefinition):
    """The value of a variable at this point of the program.

    .. math:: value = variable
    """

    handle = Input(resource)
    value = Output(kind="of dtype")
    dtype = Attr(DType)
    shape = Attr(TensorShape)
    effect = "read"
    lod = "vanishes"

    def infer(op) -> TensorSpec:
        return TensorSpec(op.shape, op.dtype)

    def compute(op, handle: Any) -> object:
        return handle.read_array()

    def gradient(op, dvalue: Tensor) -> Tensor:
        return dvalue


class _VariableUpdate(OperatorDefinition[None]):
    """Base of updates of a variable by a value."""

    handle = Input(resource)
    value = Input(any_dtype)
    effect = "write"
    lod = "vanishes"
    gradient = None

    def infer(op) -> tuple[()]:
        return ()


@operator
class AssignVariable(_VariableUpdate):
    """Set a variable.

    .. math:: variable \\leftarrow value
    """

    def compute(op, handle: Any, value: Any) -> tuple[()]:
        handle.write_array(value)
        return ()


def unequal_shapes(variable: str, shape: Any, value_shape: Any) -> InvalidArgumentError:
    """Return the error for a value of another shape than the variable's."""
    return InvalidArgumentError(
        what=f"Cannot update variable '{variable}' with shape {TensorShape(shape)} using a Tensor with shape "
        f"{TensorShape(value_shape)}, shapes must be equal."
    )


# Below this size in bytes a new array is cheaper than determining whether the old one is shared.
IN_PLACE = 1 << 15


@contextlib.contextmanager
def _copied(variable: Any) -> Iterator[np.ndarray]:
    array = variable.read_array().copy()
    yield array
    variable.write_array(array)


def writing(variable: Any) -> contextlib.AbstractContextManager[np.ndarray]:
    """Return a context manager with the value as a writable array: its own buffer if unshared, else a copy.

    Check before writing: an error does not undo writes.
    """
    own = getattr(variable, "writing", None)
    return _copied(variable) if own is None else own()


class WritableArrays:
    """The values of several variables as writable arrays, as `writing` for one; a context manager.

    Every caller acquires them in one order, so that two that write the same variables do not wait for each other.
    """

    __slots__ = ("_entered", "_variables")

    def __init__(self, variables: Sequence[Any]) -> None:
        self._variables = variables
        self._entered: list[contextlib.AbstractContextManager[np.ndarray]] = []

    def __enter__(self) -> list[np.ndarray]:
        variables = self._variables
        arrays: list[Any] = [None] * len(variables)
        try:
            for i in sorted(range(len(variables)), key=[id(x) for x in variables].__getitem__):
                access = writing(variables[i])
                arrays[i] = access.__enter__()
                self._entered.append(access)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return arrays

    def __exit__(self, *exc: Any) -> None:
        entered = self._entered
        try:
            while entered:
                entered.pop().__exit__(*exc)
        finally:
            if entered:  # one of them was interrupted
                self.__exit__(*exc)


def _combine(ufunc: np.ufunc, variable: Any, value: np.ndarray) -> None:
    """Assign ufunc(variable, value) to a variable. Raises InvalidArgumentError for another shape: there is no
    broadcasting.
    """
    array = variable.read_array()
    if array.shape != value.shape:
        raise unequal_shapes(variable.name, array.shape, value.shape)
    if array.nbytes < IN_PLACE or array.dtype != value.dtype:
        variable.write_array(ufunc(array, value))
        return
    del array
    with writing(variable) as into:
        ufunc(into, value, out=into)


@operator
class AssignAddVariable(_VariableUpdate):
    """Add to a variable. The value has its shape.

    .. math:: variable \\leftarrow variable + value
    """

    value = Input(numeric)

    def compute(op, handle: Any, value: Any) -> tuple[()]:
        _combine(np.add, handle, value)
        return ()


@operator
class AssignSubVariable(_VariableUpdate):
    """Subtract from a variable. The value has its shape.

    .. math:: variable \\leftarrow variable - value
    """

    value = Input(numeric)

    def compute(op, handle: Any, value: Any) -> tuple[()]:
        _combine(np.subtract, handle, value)
        return ()


def check_rows(op: str, array: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> None:
    """Raise InvalidArgumentError for row indices out of range, or updates that do not fit the rows."""
    rows = array.shape[0] if array.ndim else 0
    outside = indices[(indices < 0) | (indices >= rows)]
    if outside.size:
        what = f"index {outside.flat[0]} is out of range"
        raise InvalidArgumentError(op=op, what=what, wanted=f"0 <= index < {rows}")
    expected = (*indices.shape, *array.shape[1:])
    if updates.ndim and updates.shape != expected:
        shapes = {"indices": indices.shape, "updates": updates.shape}
        what = "updates do not fill the rows that indices name"
        raise InvalidArgumentError(op=op, what=what, found=shapes, wanted=f"updates of shape {expected}, or a scalar")


def _scatter(name: str, verb: str, update: np.ufunc | None) -> Operator:
    """Return the operator that combines rows with updates by `update`, in order; None assigns them."""

    class Scatter:
        handle = Input(resource)
        indices = Input(("int32", "int64"))
        updates = Input(any_dtype)
        effect = "write"
        lod = "vanishes"
        gradient = None

        def infer(op) -> tuple[()]:
            return ()

        def compute(op, handle: Any, indices: Any, updates: Any) -> tuple[()]:
            with writing(handle) as array:
                check_rows(name, array, indices, updates)
                if update is None:
                    array[indices] = updates
                else:
                    updates = np.broadcast_to(updates, (*indices.shape, *array.shape[1:]))
                    combine(update, array, indices.reshape(-1), updates.reshape(indices.size, *array.shape[1:]))
            return ()

    Scatter.__doc__ = f"""Rows of a variable, by index: {verb}.

    .. math:: variable[indices_i] \\leftarrow {{}}_{{{verb}}} updates_i
    """
    return operator(name=name)(Scatter)


ScatterUpdateVariable = _scatter("ScatterUpdateVariable", "update", None)
ScatterAddVariable = _scatter("ScatterAddVariable", "add", np.add)
ScatterSubVariable = _scatter("ScatterSubVariable", "sub", np.subtract)
ScatterMulVariable = _scatter("ScatterMulVariable", "mul", np.multiply)
ScatterDivVariable = _scatter("ScatterDivVariable", "div", np.divide)
ScatterMaxVariable = _scatter("ScatterMaxVariable", "max", np.maximum)
ScatterMinVariable = _scatter("ScatterMinVariable", "min", np.minimum)
