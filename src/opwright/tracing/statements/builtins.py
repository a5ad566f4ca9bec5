"""Python's builtins on values of a graph.

Lives here: the table BUILTINS, from name to implementation.  Not here: the dispatch of calls (autograph/builtins.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograph.handlers import handler_of
from ...core import dtypes
from ...ops import array, dispatch, math
from ...ops.tensor import TensorLike
from ..tensor_array import TensorArray
from .conditionals import truth
from .cursors import Indexed, RangeCursor, Sized, of_python, of_tensor, zipped
from .growing_list import GrowingList
from .loops import rows_of


def indexed(value: Any) -> Indexed | None:
    """Return the cursor of a value with indexed items; None for other values."""
    if isinstance(value, Indexed):
        return value
    if isinstance(value, GrowingList):
        return Indexed(value.length(), value.item)
    if isinstance(value, TensorArray):
        return Indexed(value.size(), value.read)
    if isinstance(value, TensorLike):
        return of_tensor(dispatch.to_tensor(value))
    return None


def _len(value: Any) -> object:
    length = indexed_length(value)
    return NotImplemented if length is None else length


def indexed_length(value: Any) -> object:
    """Return len() of a value, an int if it is known; None for values without a length."""
    if isinstance(value, TensorLike):
        if value.shape.rank == 0:
            raise ValueError("len requires a non-scalar tensor, found one of shape ()")
        return rows_of(dispatch.to_tensor(value))
    cursor = indexed(value)
    return None if cursor is None else cursor.length


def _range(*args: Any) -> RangeCursor:
    start, limit, step = (0, args[0], 1) if len(args) == 1 else args if len(args) == 3 else (*args, 1)
    return RangeCursor(start, limit, step)


def _number(dtype: Any) -> Callable[..., Any]:
    def convert(value: Any, *options: Any) -> object:
        if not isinstance(value, TensorLike) or options:
            return NotImplemented
        tensor = dispatch.to_tensor(value)
        if tensor.dtype is dtypes.string:
            from ...ops import strings

            return strings.to_number(tensor, dtype)
        return array.cast(tensor, dtype)

    return convert


def _bool(value: Any) -> object:
    return truth(value, "the argument of bool()") if isinstance(value, TensorLike) else NotImplemented


def _abs(value: Any) -> object:
    return math.abs(value) if isinstance(value, TensorLike) else NotImplemented


def _extreme(combine: Callable[..., Any], reduce: Callable[..., Any]) -> Callable[..., Any]:
    def extreme(*values: Any, **kwargs: Any) -> object:
        if kwargs:
            return NotImplemented
        if len(values) == 1:
            tensor = dispatch.to_tensor(values[0])
            if tensor.shape.rank not in (None, 1):
                raise ValueError(f"min/max of a single tensor only support rank 1 tensors, found shape {tensor.shape}")
            return reduce(tensor)
        result, *others = values
        for other in others:
            result = combine(result, other)
        return result

    return extreme


def _sum(values: Any, start: Any = 0) -> object:
    if not isinstance(values, (TensorLike, GrowingList, RangeCursor)):
        return NotImplemented
    total = math.reduce_sum(dispatch.to_tensor(values), axis=0)
    return total if isinstance(start, int) and start == 0 else start + total


def _reduction(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def over(values: Any) -> object:
        if not isinstance(values, (TensorLike, GrowingList)):
            return NotImplemented
        tensor = dispatch.to_tensor(values)
        if tensor.dtype is not dtypes.bool:
            tensor = math.not_equal(tensor, array.zeros((), tensor.dtype))
        return reduce(tensor)

    return over


def _enumerate(values: Any, start: Any = 0) -> object:
    cursor = indexed(values)
    if cursor is None:
        return NotImplemented
    plain = isinstance(start, int) and start == 0
    return Sized(cursor.length, lambda i: (i if plain else i + start, cursor.item(i)))


def _zip(*values: Any, strict: bool = False) -> object:
    parts = [indexed(v) or of_python(v) for v in values]
    return NotImplemented if any(p is None for p in parts) else zipped(parts)  # type: ignore[arg-type]


def _map(function: Any, *values: Any) -> object:
    parts = [indexed(v) or of_python(v) for v in values]
    if any(p is None for p in parts):
        return NotImplemented
    items = zipped(parts)  # type: ignore[arg-type]
    return Sized(items.length, lambda i: function(*items.item(i)))


def _filter(function: Any, values: Any) -> object:
    handler = handler_of(values)
    if handler is None or indexed(values) is None:
        return NotImplemented
    return handler.list_comp(values, lambda x: x, function if function is not None else lambda x: x)


def _sorted(values: Any, key: Any = None, reverse: bool = False) -> object:
    if not isinstance(values, (TensorLike, GrowingList)):
        return NotImplemented
    tensor = dispatch.to_tensor(values)
    direction = "DESCENDING" if reverse else "ASCENDING"
    if key is None:
        if tensor.shape.rank not in (None, 1):
            raise ValueError(f"sorted only supports 1D tensors, found shape {tensor.shape}")
        return math.sort(tensor, direction=direction)
    from ..control.higher_order import map_fn

    order = math.argsort(map_fn(key, tensor), direction=direction, stable=True)
    return array.gather(tensor, order)


def _reversed(values: Any) -> object:
    cursor = indexed(values)
    return NotImplemented if cursor is None else Sized(cursor.length, lambda i: cursor.item(cursor.length - 1 - i))


BUILTINS: dict[str, Callable[..., Any]] = {
    "len": _len,
    "range": _range,
    "int": _number(dtypes.int32),
    "float": _number(dtypes.float32),
    "bool": _bool,
    "abs": _abs,
    "min": _extreme(math.minimum, math.reduce_min),
    "max": _extreme(math.maximum, math.reduce_max),
    "sum": _sum,
    "any": _reduction(math.reduce_any),
    "all": _reduction(math.reduce_all),
    "enumerate": _enumerate,
    "zip": _zip,
    "map": _map,
    "filter": _filter,
    "sorted": _sorted,
    "reversed": _reversed,
}
