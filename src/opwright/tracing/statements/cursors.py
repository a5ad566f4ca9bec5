"""What a staged `for` runs over: cursors, which say whether there is more and give the next item.

Lives here: `Cursor`, and those with a length and items by number: tensors, ranges, enumerate, zip, map.
Not here: the loop (loops.py), datasets (data/), lists that grow (growing_list.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...core import dtypes
from ...ops import array, dispatch, math
from ...ops.tensor import TensorLike
from ..symbolic import SymbolicTensor

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class Cursor:
    """An iteration in a graph. Its position is a list of tensors, which the loop carries.

    widens: whether the shapes of variables may widen without being announced: items of unknown shape widen them.
    """

    widens = False

    def start(self) -> list[Any]:
        """The position before the first item."""
        return []

    def more(self, position: Sequence[Any]) -> Any:
        """Whether there is an item, a scalar bool tensor."""
        raise TypeError(f"{type(self).__name__} must define more(position)")

    def take(self, position: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The item at a position, and the next position."""
        raise TypeError(f"{type(self).__name__} must define take(position)")

    @property
    def never_empty(self) -> bool:
        """Whether it is known that there is at least one item."""
        return False


class Indexed(Cursor):
    """Items by number. length: int or int32 scalar; item: gives the one of a number."""

    def __init__(self, length: Any, item: Callable[[Any], Any]) -> None:
        self.length, self.item = length, item

    def start(self) -> list[Any]:
        """At 0."""
        return [dispatch.to_tensor(0, dtypes.int32)]

    def more(self, position: Sequence[Any]) -> Tensor:
        """position < length"""
        return math.less(position[0], self.length)

    def take(self, position: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The item of that number."""
        return self.item(position[0]), [position[0] + 1]

    @property
    def never_empty(self) -> bool:
        """Whether the length is known and positive."""
        return isinstance(self.length, int) and self.length > 0

    def __iter__(self) -> Any:
        if not isinstance(self.length, int):
            raise TypeError("how many items there are is not known while tracing: only a for statement runs over them")
        return (self.item(i) for i in range(self.length))


def of_tensor(tensor: Any) -> Indexed:
    """The elements along the first dimension. Raises TypeError for a scalar."""
    if tensor.shape.rank == 0:
        raise TypeError("iterating over a scalar tensor is not allowed")
    counted = _counted(tensor)
    if counted is not None:
        return counted
    size = tensor.shape[0] if tensor.shape.rank else None
    return Indexed(array.shape(tensor)[0] if size is None else size, lambda i: array.gather(tensor, i))


def _counted(tensor: Any) -> RangeCursor | None:
    """`tf.range` of this trace, to be counted through: then no array of its numbers is made, however many they are."""
    if type(tensor) is not SymbolicTensor or tensor.trace is not dispatch.state.trace:
        return None
    node = tensor.value_in_graph.node
    if node is None or node.op.name != "Range":
        return None
    start, limit, step = (SymbolicTensor(v, tensor.trace) for v in node.operands)
    size = tensor.shape[0]
    if step.constant is None or (tensor.dtype is not dtypes.int32 and (size is None or not tensor.dtype.is_integer)):
        return None  # floats are not counted but multiplied; more than 2^31 numbers have no int32 number
    counted = RangeCursor(start, limit, step)
    counted.length = counted.length if size is None else size
    return counted


class RangeCursor(Indexed):
    """range(start, limit, step) with a tensor among them; compares by number, makes no array."""

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
        known = [None if v.constant is None else int(v.constant) for v in (start, limit, step)]
        length: Any
        if None not in known:
            length = len(range(*known))  # type: ignore[arg-type]
        elif known[2] == 1:
            length = math.maximum(limit - start, array.zeros((), dtype))
        else:
            # what floor division by the step gives, rounded up, whatever its sign
            length = math.maximum(-((start - limit) // step), array.zeros((), dtype))
        if isinstance(length, TensorLike) and dtype is not dtypes.int32:
            length = array.cast(length, dtypes.int32)
        super().__init__(length, self._at)

    def _at(self, i: Any) -> Any:
        i = i if self.dtype is dtypes.int32 else array.cast(i, self.dtype)
        if self.step.constant is not None and int(self.step.constant) == 1:
            known = self.first.constant
            return array.identity(i) if known is not None and int(known) == 0 else self.first + i
        return self.first + i * self.step

    def tensor(self) -> Tensor:
        """The numbers as a tensor."""
        return array.range(self.first, self.limit, self.step)

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        made = self.tensor()
        return made if dtype is None else array.cast(made, dtype)

    def __getitem__(self, key: Any) -> Tensor:
        return self.tensor()[key]


class Sized(Indexed):
    """Items by number that a program holds on to: enumerate, zip or map of staged values."""

    def __getitem__(self, i: Any) -> Any:
        return self.item(i)


def zipped(parts: Sequence[Indexed]) -> Sized:
    """Tuples of the items of all parts, as far as the shortest."""
    known = [p.length for p in parts if isinstance(p.length, int)]
    unknown = [p.length for p in parts if not isinstance(p.length, int)]
    length: Any = min(known) if known else None
    for other in unknown:
        length = other if length is None else math.minimum(length, other)
    return Sized(length, lambda i: tuple(p.item(i) for p in parts))


def of_python(values: Sequence[Any]) -> Indexed | None:
    """A list, tuple or range of plain values beside staged ones; None where it cannot be a tensor."""
    if not isinstance(values, (list, tuple, range)):
        return None
    try:
        return of_tensor(dispatch.to_tensor(list(values)))
    except (TypeError, ValueError):
        return None
