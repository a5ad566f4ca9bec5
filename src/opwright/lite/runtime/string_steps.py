"""Steps of nodes on strings and hash tables that one function in machine code runs, without Python.

Lives here: `StringStep`, `string_step`, the table of operators that have one; `TextStep`, `text_step`, the step of
SKIP_GRAM, whose output has another shape for each text.
Not here: the functions (compiler/native/string_calls.py), the operators (../ops).

Strings are objects, whose counts of references machine code may change with the GIL alone, so these nodes are not part
of plans. The function declines what it cannot compute, such as indices out of range: then the operator's own kernel
runs, and raises its error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import string
from ...core.lazy_imports import later
from ..custom_options import group_inputs
from ..ops.definition import LiteOperator
from .errors import COMPUTE_ERRORS
from .node import Node
from .ownership import DirectInvocation
from .resources import HashTable
from .tensor import CONSTANT, FOLDED, Tensor

if TYPE_CHECKING:
    from ...compiler.native import string_calls
    from ...compiler.native.string_calls import StringCalls
else:  # most models have no strings
    string_calls = later("...compiler.native.string_calls", __package__)

Run = Callable[[], int]
Make = Callable[["StringCalls", Node, LiteOperator, Any], Run | None]


class StringStep:
    """A node that runs by one call, or by its own kernel if the call declines."""

    __slots__ = ("_kernel", "_run")

    def __init__(self, run: Run, kernel: Callable[[], object]) -> None:
        self._run, self._kernel = run, kernel

    def __call__(self) -> None:
        if self._run():
            self._kernel()

    @property
    def direct(self) -> DirectInvocation:
        """The run without Python, for a subgraph that consists of this node."""
        return DirectInvocation(self._run, lambda status: self._kernel())


class TextStep:
    """A node whose output keeps its memory as long as texts give it as many strings. kernel: runs the operator's own
    kernel, which gives it other memory."""

    __slots__ = ("_kernel", "_make", "_node", "_run")

    def __init__(self, node: Node, make: Callable[[], Run | None], kernel: Callable[[], object]) -> None:
        self._node, self._make, self._kernel = node, make, kernel
        self._run: Run | None = None

    def __call__(self) -> None:
        if self._run is None or self._run():
            self._again()

    def _again(self) -> None:
        self._run = None
        self._kernel()
        self._node.subgraph.update_addresses(self._node.tensors_out)
        self._run = self._make()

    @property
    def direct(self) -> DirectInvocation | None:
        """The run without Python; None before the first run."""
        return None if self._run is None else DirectInvocation(self._run, lambda status: self._again())


def text_step(node: Node, operator: Any, call: Any, kernel: Callable[[], object]) -> Callable[[], object]:
    """Return the step of a node with an output of unknown shape: see `TextStep`, else the kernel."""
    if operator.name != "SKIP_GRAM" or not isinstance(operator, LiteOperator):
        return kernel

    def make() -> Run | None:
        (x,), out = _arrays(node)
        calls = string_calls.string_calls()
        if calls is None or not all(map(_is_reachable, (node.tensors_in[0], node.tensors_out[0]))):  # type: ignore[arg-type]
            return None
        return calls.skip_gram(x, out, call.ngram_size, call.max_skip_size, call.include_all_ngrams)

    return TextStep(node, make, kernel)


def string_step(node: Node, operator: Any, call: Any, kernel: Callable[[], object]) -> Callable[[], object]:
    """Return the step of a prepared node with elements: machine code if it computes this node, else the kernel.

    call: the node's attributes; kernel: runs the operator's own kernel.
    """
    tensors = [*node.tensors_in, *node.tensors_out]
    if not isinstance(operator, LiteOperator) or not any(t is not None and t.is_object for t in tensors):
        return kernel
    make = _STEPS.get(operator.name) or (_moved if operator.moves else None)
    if make is None or not all(t is not None and _is_reachable(t) for t in tensors):
        return kernel
    calls = string_calls.string_calls()
    run = None if calls is None else make(calls, node, operator, call)
    return kernel if run is None else StringStep(run, kernel)


def _is_reachable(t: Tensor) -> bool:
    array = t.array
    return (
        array is not None
        and array.size <= string_calls.MOST_ELEMENTS
        and array.flags.c_contiguous
        and array.flags.aligned
    )


def _arrays(node: Node) -> tuple[list[Any], Any]:
    return [t.array for t in node.tensors_in if t is not None], node.tensors_out[0].array


def _equal(negated: bool) -> Make:
    def make(calls: StringCalls, node: Node, operator: LiteOperator, call: Any) -> Run | None:
        (x, y), out = _arrays(node)
        fits = all(a.shape == out.shape or a.size == 1 for a in (x, y))
        return calls.equal(x, y, out, negated) if fits else None

    return make


def _gather(calls: StringCalls, node: Node, operator: LiteOperator, call: Any) -> Run | None:
    (x, indices), out = _arrays(node)
    if call.batch_dims or indices.dtype not in (np.int32, np.int64):
        return None
    return calls.gather(x, indices, out, call.axis % x.ndim)


def _find(calls: StringCalls, node: Node, operator: LiteOperator, call: Any) -> Run | None:
    (_, keys, default), out = _arrays(node)
    table = _table(node.tensors_in[0])
    if table is None or [table.key_dtype, table.value_dtype] != [_entry(keys), _entry(default)]:
        return None
    return calls.find(table, keys, default, out)


def _size(calls: StringCalls, node: Node, operator: LiteOperator, call: Any) -> Run | None:
    table = _table(node.tensors_in[0])
    return None if table is None else calls.size(table, node.tensors_out[0].array)  # type: ignore[arg-type]


def _entry(x: np.ndarray) -> str:
    return "STRING" if x.dtype == object else "INT64"


def _table(handle: Any) -> HashTable | None:
    """Return the table of a handle that is the same in every run."""
    table = handle.array.reshape(-1)[0] if handle.kind in (CONSTANT, FOLDED) and handle.array.size else None
    return table if isinstance(table, HashTable) else None


def _moved(calls: StringCalls, node: Node, operator: LiteOperator, call: Any) -> Run | None:
    """Return the copy of an operator that moves strings to places that do not depend on the run."""
    inputs, outputs = node.tensors_in, node.tensors_out
    strings = [t for t in inputs if t is not None and t.dtype is string]
    if not all(t is None or t.dtype is string or t.constant is not None for t in inputs):
        return None
    if len(strings) != 1 or [t.dtype for t in outputs] != [string]:
        return None
    (x,), (out,) = strings, outputs
    numbers = np.arange(1, x.array.size + 1).reshape(x.shape)  # type: ignore[union-attr]
    try:
        operands = [numbers if t is x else None if t is None else t.array for t in inputs]
        places: Any = np.ascontiguousarray(operator.kernel(call)(*group_inputs(operator, operands, node)), np.int64) - 1
    except COMPUTE_ERRORS:  # of the node: its run raises it
        return None
    if places.shape != out.shape or (places < 0).any():  # an operator that makes elements
        return None
    return calls.move(x.array, places, out.array)  # type: ignore[arg-type]


_STEPS: dict[str, Make] = {
    "EQUAL": _equal(False),
    "NOT_EQUAL": _equal(True),
    "GATHER": _gather,
    "HASHTABLE_FIND": _find,
    "HASHTABLE_SIZE": _size,
}
