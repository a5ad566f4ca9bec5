"""Staging of kernels on arrays: the arrays that they access, and their parallel loop.

Lives here: `ArrayValue`, `ArrayTrace`, `parallel`, `unroll`; `array_arguments`, a kernel's parameters from the words of
a call.
Not here: calling such a kernel (array_kernels.py), its annotations (parameters.py), its functions in a module
(entry_points.py), guards (bounds_checks.py), pointers without bounds (pointers.py).

Every access is checked against the array's sizes: during staging if both are constant, otherwise by a guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError, SignatureError
from ..target import Target
from .bounds_checks import BoundedPointer, Guards, as_index, first_fits, within
from .control import LoopRange, carried
from .dots import lookup
from .functions import divided
from .operators import KernelTrace
from .parameters import Array
from .pointers import Pointer
from .trace import current
from .values import Value, minimum, value
from .vectors import all as every
from .vectors import first, gather


class ArrayValue:
    """An array parameter of a kernel, or a subarray of one.

    `a[i, j]` reads an element and `a[i, j] = v` writes one; with fewer indices, `a[i]` is a subarray.
    shape, strides (in elements): Python numbers if the annotation specifies them, else values.
    """

    __slots__ = ("guards", "label", "pointer", "shape", "strides", "written")

    def __init__(
        self,
        pointer: Pointer,
        shape: Sequence[Any],
        strides: Sequence[Any],
        guards: Guards,
        label: str,
        written: set[str],
    ) -> None:
        self.pointer, self.shape, self.strides = pointer, tuple(shape), tuple(strides)
        self.guards, self.label, self.written = guards, label, written

    @property
    def dtype(self) -> DType:
        """Return the element type."""
        return self.pointer.dtype

    def __len__(self) -> int:
        if not isinstance(self.shape[0], int):
            raise TypeError(f"len of {self.label} is known when the kernel runs: {self.label}.shape[0]")
        return self.shape[0]

    def _inside(self, indices: Sequence[Any], width: int = 1) -> Value | int:
        """Return the offset of an element after checking each index. width: elements accessed along the last axis."""
        offset: Value | int = 0
        for axis, (i, size, stride) in enumerate(zip(indices, self.shape, self.strides)):
            wide = width if axis == len(self.shape) - 1 else 1
            i = as_index(i, self.label)
            if isinstance(i, Value) and i.count:
                raise TypeError(f"{self.label}: a vector is not an index; {self.label}.gather(vector) takes one")
            if isinstance(i, int) and (isinstance(size, int) or not 0 <= i <= int(dtypes.int64.max)):
                if not isinstance(size, int) or not 0 <= i <= size - wide:
                    what = f"index {i} is outside of {self.label}, axis {axis}"
                    raise InvalidArgumentError(
                        op=current().name,
                        what=what,
                        found=f"{wide} from {i} on",
                        wanted=f"within {size}" if isinstance(size, int) else "an index from 0 on",
                    )
            else:
                inside = first_fits(i, size, wide) if wide > 1 else within(i, size)
                self.guards.check(inside, f"index outside of {self.label}, axis {axis}")
            if isinstance(i, int) and isinstance(stride, int):
                offset = offset + i * stride
            else:
                offset = value(i) * stride + offset
        return offset

    def _all(self, indices: Any) -> tuple[Any, ...]:
        index: tuple[Any, ...] = indices if isinstance(indices, tuple) else (indices,)
        if len(index) > len(self.shape):
            raise TypeError(f"{self.label} has {len(self.shape)} axes, found {len(index)} indices")
        return index

    def __getitem__(self, indices: Any) -> Value | ArrayValue:
        indices = self._all(indices)
        offset, n = self._inside(indices), len(indices)
        if n == len(self.shape):
            return self.pointer[offset]
        return ArrayValue(
            self.pointer + offset, self.shape[n:], self.strides[n:], self.guards, self.label, self.written
        )

    def __setitem__(self, indices: Any, v: Any) -> None:
        indices = self._all(indices)
        if len(indices) < len(self.shape):
            raise TypeError(
                f"{self.label} has {len(self.shape)} axes, found {len(indices)} indices; write element by "
                "element, or vectors by store"
            )
        if isinstance(v, Value) and v.count:
            raise TypeError(f"{self.label}[...] = v writes a number; a vector: {self.label}.store(v, ...)")
        self.written.add(self.label)
        self.pointer[self._inside(indices)] = v

    def _vector(self, indices: Sequence[Any]) -> None:
        if len(indices) != len(self.shape) or not indices:
            raise TypeError(f"{self.label} has {len(self.shape)} axes, found {len(indices)} indices")
        if isinstance(self.strides[-1], Value) or self.strides[-1] != 1:
            raise TypeError(f"{self.label}: vectors lie along the last axis, whose elements must be adjacent")

    def load(self, *indices: Any, count: int, only: Any = None) -> Value:
        """Load `count` adjacent elements along the last axis. only: number of lanes to read; the others are 0."""
        self._vector(indices)
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise TypeError(f"{self.label}: the count of a vector is a Python int from 1 on, found {count!r}")
        if only is None:
            return self.pointer.load(self._inside(indices, count), count)
        offset, lanes = self._some(indices, count, only)
        return self.pointer.load(offset, count, mask=first(lanes, count))

    def store(self, v: Value, *indices: Any, only: Any = None) -> None:
        """Store a vector to adjacent elements along the last axis. only: number of lanes to write."""
        self._vector(indices)
        if not isinstance(v, Value):
            raise TypeError(f"{self.label}.store writes a vector, found {v!r}: kl.full(dtype, count, x) creates one")
        self.written.add(self.label)
        if only is None:
            self.pointer.store(v, self._inside(indices, v.count or 1))
            return
        if not v.count:
            raise TypeError(f"{self.label}.store(only=...) writes lanes of a vector, found {v!r}")
        offset, lanes = self._some(indices, v.count, only)
        self.pointer.store(v, offset, mask=first(lanes, v.count))

    def gather(self, indices: Value) -> Value:
        """Load the elements of an array of rank 1 at the indices of a vector."""
        self._only_axis()
        if not isinstance(indices, Value) or not indices.count:
            raise TypeError(f"{self.label}.gather takes a vector of indices, found {indices!r}")
        elements = value(as_index(indices, self.label))
        self.guards.check(every(within(elements, self.shape[0])), f"index outside of {self.label}, axis 0")
        return gather(self.pointer, elements)

    def lookup(self, indices: Value) -> Value:
        """Look up the uint8 indices of a vector in a table of 256 bytes (rank 1, int8 or uint8)."""
        self._only_axis()
        if self.dtype.size != 1:
            raise TypeError(f"{self.label}: a table is of int8 or uint8, found {self.dtype.name}")
        self.guards.check(value(self.shape[0]) >= 256, f"{self.label} has fewer than 256 elements")
        return lookup(self.pointer, indices)

    def _only_axis(self) -> None:
        if len(self.shape) != 1 or isinstance(self.strides[0], Value):
            raise TypeError(f"{self.label}: gathers and lookups take an array of rank 1 with adjacent elements")

    def _some(self, indices: Sequence[Any], count: int, only: Any) -> tuple[Any, Any]:
        """Return the offset of a partial vector and its number of lanes after checking both."""
        lanes = as_index(only, f"{self.label}, only")
        if isinstance(lanes, int) and not 0 <= lanes <= count:
            raise InvalidArgumentError(
                op=current().name,
                what=f"{self.label}: only={lanes} of a vector",
                found=lanes,
                wanted=f"0 to {count} lanes",
            )
        last, n, size = value(as_index(indices[-1], self.label)), value(lanes), value(self.shape[-1])
        fits = (n >= 0) & (n <= count) & (last >= 0) & (last <= size - n)  # a sum of the two may wrap
        self.guards.check(fits, f"vector outside of {self.label}, axis {len(self.shape) - 1}")
        offset = last * self.strides[-1]
        if len(indices) > 1:
            offset = offset + ArrayValue(
                self.pointer, self.shape[:-1], self.strides[:-1], self.guards, self.label, self.written
            )._inside(indices[:-1])
        return offset, lanes

    def __repr__(self) -> str:
        return f"<{self.label}: {self.dtype.short}, {len(self.shape)} axes, of kernel {current().name!r}>"


class ItemCountReached(BaseException):
    """Ends the staging of a function that counts the items of the parallel loop."""

    def __init__(self, count: Value) -> None:
        self.count = count


class ArrayTrace(KernelTrace):
    """The staging of a kernel on arrays. guards: the checks of its accesses. items: begin and end of its parallel loop,
    int64; None to count the items, which accesses no array."""

    division: Callable[[str, Any, Any], Any] | None = staticmethod(divided)
    counts_anything = True

    def __init__(
        self, builder: ir.IRBuilder, name: str, target: Target, guards: Guards, items: Sequence[ir.Value] | None
    ) -> None:
        super().__init__(builder, name, target)
        self.guards = None if items is None else guards
        self.items = items
        self.has_parallel = False

    def returned(self, result: Any) -> None:
        """Raise SignatureError if the kernel returns a value."""
        if result is not None:
            raise SignatureError(
                op=self.name, what="a kernel on arrays returns nothing", found=repr(result), do="write into an array"
            )

    def owned(self, memory: Pointer, size: int) -> Pointer:
        """Return a checked pointer to stack memory."""
        return memory if self.guards is None or not self.guards.on else BoundedPointer(memory, size, self.guards)


def parallel(n: Any) -> LoopRange:
    """Return the range of the parallel loop: `for i in parallel(n)` runs its iterations in any order, on threads.

    A kernel has at most one, outside of other loops. Every thread runs the code around it, which must write no array.
    """
    staged = current()
    if not isinstance(staged, ArrayTrace):
        raise TypeError("parallel is for kernels on arrays; a family's items are work.items()")
    if staged.has_parallel:
        raise SignatureError(op=staged.name, what="a kernel has one parallel loop", found="two of them")
    staged.has_parallel = True
    count = value(carried(n))
    if count.dtype.is_floating or count.dtype.is_bool or count.count:
        raise TypeError(f"parallel takes an integer, found {count!r}")
    if count.dtype is dtypes.uint64:
        count = minimum(count, int(dtypes.int64.max))
    count = count.to(dtypes.int64)
    if staged.items is None:
        raise ItemCountReached(count)
    return LoopRange(*(Value(x, dtypes.int64) for x in staged.items))


def unroll(*limits: int) -> range:
    """Return the range of an unrolled loop, whose limits must be Python numbers."""
    if not all(isinstance(n, int) for n in limits):
        raise TypeError(f"unroll takes Python's numbers, known when the kernel is compiled; found {limits!r}")
    return range(*limits)


def array_arguments(
    parameters: Mapping[str, Any],
    words: Iterable[ir.Value],
    dense: Sequence[bool] | None,
    guards: Guards,
    written: set[str],
) -> list[Any]:
    """Return the values of a kernel's annotated parameters.

    words: of a call, in the order of `parameters.call_words`. dense: for each array, whether the elements along its
    last axis are adjacent; None if the words have no strides, as all arrays are contiguous. written: the set to which
    the kernel adds the names of the arrays that it writes
    """
    arguments: list[Any] = []
    sizes: dict[str, Value] = {}
    remaining, layouts = iter(words), iter(dense or ())
    for name, kind in parameters.items():
        if not isinstance(kind, Array):
            arguments.append(Value(next(remaining), kind))
            continue
        pointer = Pointer(next(remaining), kind.dtype)
        own = [Value(next(remaining), dtypes.int64) for _ in kind.shape]
        strides: list[Any] = [1] * len(own) if dense is None else [Value(next(remaining), dtypes.int64) for _ in own]
        shape = [sizes.setdefault(size, v) if isinstance(size, str) else size for size, v in zip(kind.shape, own)]
        if dense is None:
            for axis in reversed(range(len(shape) - 1)):
                strides[axis] = shape[axis + 1] * strides[axis + 1]
        elif next(layouts) and strides:
            strides[-1] = 1
        arguments.append(ArrayValue(pointer, shape, strides, guards, name, written))
    return arguments
