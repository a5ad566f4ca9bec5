"""Native calls of loops on single elements: a `While` node as a function of its inputs.

Lives here: `ScalarLoopCall`; `LoopInput`, how its inputs are passed; lists that grow in a loop, and their memory.
Not here: reading loops from a graph (lowering/scalar_loops.py), their kernel (kernels/scalar_loops.py), the regions
around them (regions.py).

If a guard fails, or a list is not what the kernel reads, the loop runs as a plan of Python lines, which raises the
error of the operator or has a result after all. Lists have memory for as many iterations as the last call took; a loop
that fills them returns, and continues with twice as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.dtypes import as_dtype
from ..graph import Graph, Node
from ..ops.tensor_list import TensorList
from .native.executor import Executor, Step
from .native.workers import raise_pending
from .plan import Plan

ELEMENT, ARRAY, APPENDED, READ, PASSED = "element", "array", "appended", "read", "passed"
"""Kinds of inputs: a single element, an array whose elements are read, a list that grows, a list that is read, a list
or an array of which no element is read."""

DONE, REFUSED, FULL = 0, 1, 2
"""Results of a kernel: the loop ended; a guard failed; the lists are full, and the condition holds."""

FEWEST = 64
"""Iterations for which a list has memory at first."""


class LoopInput(NamedTuple):
    """An input of a loop: its kind; dtype and shape of the element, of an array, or of a list's elements."""

    kind: str
    dtype: str
    shape: tuple[int, ...]


class ScalarLoopCall:
    """A loop that several threads may call. node: the loop; code: address of its kernel; inputs: of the node.

    Called with NumPy arrays, scalars and lists, it returns the values of the variables after the last iteration: the
    value itself for one variable, else a list.
    """

    def __init__(self, node: Node, code: int, inputs: Sequence[LoopInput]) -> None:
        self.node, self.code, self.inputs = node, code, inputs
        self.turns = FEWEST  # of the last call
        self._outputs = range(len(node.outputs))
        self._elements = [i for i, x in enumerate(inputs) if x.kind == ELEMENT]
        self._has_lists = any(x.kind in (ARRAY, APPENDED, READ) for x in inputs)
        self._free: list[_Words] = []
        self._plain: Plan | None = None

    def __call__(self, *values: Any) -> Any:
        try:
            words = self._free.pop()
        except IndexError:
            words = _Words(self)
        cells = words.cells
        for i in self._elements:
            cells[i][...] = values[i]
        lists = None
        if self._has_lists:
            lists = _Lists(self, values)
            status = lists.run(words)
        else:
            status = words.run()
        if status != DONE:
            raise_pending()
            return self._as_plan(values)
        results = [cells[i][()] if i in cells else values[i] for i in self._outputs]
        if lists is not None:
            lists.finish(results)
        self._free.append(words)
        return results[0] if len(results) == 1 else results

    def _as_plan(self, values: Sequence[Any]) -> Any:
        """Run the loop as a plan of Python lines."""
        by_operand = dict(zip(self.node.operands, values))
        if self._plain is None:
            self._plain = Plan(Graph(self.node.name, list(by_operand), [self.node], self.node.outputs))
        results = self._plain.explained(*by_operand.values())
        return results[0] if len(results) == 1 else list(results)


class _Words:
    """The words of one call at a time. cells: those of each single element, by input, as arrays; tail: the other words;
    run: runs the kernel on them and returns its status."""

    def __init__(self, loop: ScalarLoopCall) -> None:
        words = np.zeros(2 + 2 * len(loop.inputs), np.int64)
        self.cells: dict[int, np.ndarray] = {}
        for i, (kind, dtype, shape) in enumerate(loop.inputs):
            if kind == ELEMENT:
                self.cells[i] = np.ndarray(shape, as_dtype(dtype).np, words, 8 * len(self.cells))
        self.tail = words[len(self.cells) :]
        executor = Executor([Step(loop.code, [words.ctypes.data], 1)], keep=(words,))
        self.run = executor.entry
        self._executor = executor


class _Lists:
    """The lists and arrays of one call."""

    def __init__(self, loop: ScalarLoopCall, values: Sequence[Any]) -> None:
        self.loop, self.turns, self.room = loop, 0, loop.turns
        self.appended = {i: _Growing(values[i], *x[1:]) for i, x in _of_kind(loop, APPENDED)}
        read = [_elements(values[i], x) for i, x in _of_kind(loop, ARRAY, READ)]
        self.read = [x for x in read if x is not None]
        self.fit = all(x.fits for x in self.appended.values()) and len(self.read) == len(read)

    def run(self, words: _Words) -> int:
        """Run the kernel until the loop ends; return its status, and FULL for lists that it does not take."""
        if not self.fit:
            return FULL
        tail, first = words.tail, 2 + len(self.appended)
        for i, array in enumerate(self.read):
            tail[first + 2 * i : first + 2 * i + 2] = array.ctypes.data, len(array)
        while True:
            tail[0] = self.room
            for i, x in enumerate(self.appended.values()):
                tail[2 + i] = x.end(self.turns, self.room)
            status: int = words.run()
            if status not in (DONE, FULL):
                return status
            self.turns += int(tail[1])
            if status == DONE:
                return DONE
            self.room = max(self.turns, FEWEST)

    def finish(self, results: list[Any]) -> None:
        """Replace each list that grew among the results by its last version."""
        self.loop.turns = max(FEWEST, self.turns)
        for i, x in self.appended.items():
            results[i] = x.result(self.turns)


def _of_kind(loop: ScalarLoopCall, *kinds: str) -> Iterator[tuple[int, LoopInput]]:
    return ((i, x) for i, x in enumerate(loop.inputs) if x.kind in kinds)


def _elements(value: Any, x: LoopInput) -> np.ndarray | None:
    """Return the elements of an array or a list, dense; None if a list has others than the kernel reads."""
    dtype = as_dtype(x.dtype)
    if x.kind == READ:
        elements: np.ndarray | None = value.packed(dtype, x.shape)
        return elements
    return np.ascontiguousarray(value, dtype.np).reshape(-1)


class _Growing:
    """The memory of a list to which a loop appends. start: the list; dtype, shape: of an element."""

    def __init__(self, start: TensorList, dtype: str, shape: tuple[int, ...]) -> None:
        self.start, self.dtype = start, as_dtype(dtype)
        elements = start.packed(self.dtype, shape)
        self.fits = elements is not None and start.element_shape.is_compatible_with(shape)
        self.array: np.ndarray = np.empty((0, *shape), self.dtype.np) if elements is None else elements

    def end(self, turns: int, room: int) -> int:
        """Return the address behind the last element after some iterations, with memory for `room` more."""
        length = self.start.length + turns
        if len(self.array) < length + room or not turns:
            larger = np.empty((length + room, *self.array.shape[1:]), self.array.dtype)
            larger[:length] = self.array[:length]
            self.array = larger
        return int(self.array.ctypes.data) + length * self.array.itemsize

    def result(self, turns: int) -> TensorList:
        """Return the list after the last iteration."""
        length = self.start.length + turns
        array = self.array[:length]
        if 2 * length < len(self.array):
            array = array.copy()
        return TensorList.of_array(array, self.dtype, self.start.element_shape)
