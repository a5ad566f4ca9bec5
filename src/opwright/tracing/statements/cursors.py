"""Cursors: iteration in a `for` over values of a graph.

Lives here: `Cursor`; cursors with a length and indexed items: tensors, ranges, enumerate, zip, map.
Not here: the loop (loops.py), datasets (data/), lists that grow (growing_list.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...ops import array, dispatch, math
from ...ops.tensor import TensorLike
from ..symbolic import SymbolicTensor

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class Cursor:
    """An iteration in a graph. Its position is a list of tensors, which the loop carries.

    widens: whether shapes of variables may widen without a shape invariant, as items of unknown shape require.
    """

    widens = False

    def start(self) -> list[Any]:
        """Return the position before the first item."""
        return []

    def more(self, position: Sequence[Any]) -> Tensor:
        """Return whether there is an item, a scalar bool tensor."""
        raise TypeError(f"{type(self).__name__} must define more(position)")

    def take(self, position: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Return the item at a position, and the next position."""
        raise TypeError(f"{type(self).__name__} must define take(position)")

    @property
    def never_empty(self) -> bool:
        """Whether there is certainly at least one item."""
        return False


class Indexed(Cursor):
    """Items by index. length: int or int32 scalar; item: returns the item at an index."""

    def __init__(self, length: Any, item: Callable[[Any], Any]) -> None:
        self.length, self.item = length, item

    def start(self) -> list[Any]:
        """Return position 0."""
        return [dispatch.to_tensor(0, dtypes.int32)]

    def more(self, position: Sequence[Any]) -> Tensor:
        """Return position < length."""
        return math.less(position[0], self.length)

    def take(self, position: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Return the item at this index, and the next index."""
        return self.item(position[0]), [position[0] + 1]

    @property
    def never_empty(self) -> bool:
        """Whether the length is known and positive."""
        return isinstance(self.length, int) and self.length > 0

    def __iter__(self) -> Iterator[Any]:
        if not isinstance(self.length, int):
            raise TypeError("the number of items is unknown while tracing: only a for statement can iterate over them")
        return (self.item(i) for i in range(self.length))


def of_tensor(tensor: Any) -> Indexed:
    """Return the elements along the first dimension. Raises TypeError for a scalar."""
    if tensor.shape.rank == 0:
        raise TypeError("iterating over a scalar tensor is not allowed")
    range_cursor = _range_of(tensor)
    if range_cursor is not None:
        return range_cursor
    size = tensor.shape[0] if tensor.shape.rank else None
    if size is None:
        count_rows = getattr(tensor, "nrows", None)  # of a RaggedTensor
        size = array.shape(tensor)[0] if count_rows is None else count_rows(dtypes.int32)
    return Indexed(size, lambda i: array.gather(tensor, i))


def _range_of(tensor: Any) -> RangeCursor | None:
    """Return the cursor of a `tf.range` of this trace, which counts without computing the array."""
    if type(tensor) is not SymbolicTensor or tensor.trace is not dispatch.state.trace:
        return None
    node = tensor.value_in_graph.node
    if node is None or node.op.name != "Range":
        return None
    start, limit, step = (SymbolicTensor(v, tensor.trace) for v in node.operands)
    size = tensor.shape[0]
    if step.constant is None or (tensor.dtype is not dtypes.int32 and (size is None or not tensor.dtype.is_integer)):
        return None  # floats are computed by multiplication; more than 2^31 items exceed an int32 index
    cursor = RangeCursor(start, limit, step)
    cursor.length = cursor.length if size is None else size
    return cursor


class RangeCursor(Indexed):
    """range(start, limit, step) with a tensor among the arguments; computes numbers by index, without an array."""

    def __init__(self, start: Any, limit: Any, step: Any) -> None:
        values = [v for v in (start, limit, step) if isinstance(v, TensorLike)]
        dtype = next((v.dtype for v in values), dtypes.int32)
        start, limit, step = (
            v if isinstance(v, TensorLike) else dispatch.to_tensor(v, dtype) for v in (start, limit, step)
        )
        self.dtype = dtype
        for value in values:
            if not value.dtype.is_integer:
                raise TypeError(f"range takes integers, found a tensor of dtype {value.dtype.name}")
        self.first, self.limit, self.step = start, limit, step
        constants = [None if v.constant is None else int(v.constant) for v in (start, limit, step)]
        length: Any
        if None not in constants:
            length = len(range(*constants))  # type: ignore[arg-type]
        elif constants[2] == 1:
            length = math.maximum(limit - start, array.zeros((), dtype))
        else:
            # division by the step, rounded up, for either sign
            length = math.maximum(-((start - limit) // step), array.zeros((), dtype))
        if isinstance(length, TensorLike) and dtype is not dtypes.int32:
            length = array.cast(length, dtypes.int32)
        super().__init__(length, self._number)

    def _number(self, i: Any) -> Tensor:
        i = i if self.dtype is dtypes.int32 else array.cast(i, self.dtype)
        if self.step.constant is not None and int(self.step.constant) == 1:
            first = self.first.constant
            return array.identity(i) if first is not None and int(first) == 0 else self.first + i
        number: Tensor = self.first + i * self.step
        return number

    def tensor(self) -> Tensor:
        """Return the numbers as a tensor."""
        return array.range(self.first, self.limit, self.step)

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        numbers = self.tensor()
        return numbers if dtype is None else array.cast(numbers, dtype)

    def __getitem__(self, key: Any) -> Tensor:
        return self.tensor()[key]


class Sized(Indexed):
    """Indexed items that a program can store: enumerate, zip or map of values of a graph."""

    def __getitem__(self, i: Any) -> object:
        return self.item(i)


def zipped(parts: Sequence[Indexed]) -> Sized:
    """Return tuples of the items of all parts, up to the shortest."""
    constant_lengths = [p.length for p in parts if isinstance(p.length, int)]
    lengths = [p.length for p in parts if not isinstance(p.length, int)]
    length: Any = min(constant_lengths) if constant_lengths else None
    for other in lengths:
        length = other if length is None else math.minimum(length, other)
    return Sized(length, lambda i: tuple(p.item(i) for p in parts))


def of_python(values: Sequence[Any]) -> Indexed | None:
    """Return the cursor of a Python list, tuple or range, for use with values of a graph; None if it is not
    convertible.
    """
    if not isinstance(values, (list, tuple, range)):
        return None
    try:
        return of_tensor(dispatch.to_tensor(list(values)))
    except (TypeError, ValueError):
        return None
