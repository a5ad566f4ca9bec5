"""Native calls that write variables in place: a region with updates as a function of arrays and handles.

Lives here: `updating`; `updating_rows`, UpdateRows as one native call for any number of rows.
Not here: which updates are a region (update_regions.py), regions without state (calls.py), exclusive access to
variables (ops/state.py).

A call acquires all variables that it writes, writes their own arrays, or copies if something else refers to these, and
releases them. Variables and gradients of other types or shapes than the plan's take the operators' way, and so does a
call whose plan a guard has stopped: it has written nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType
from ..core.errors import InternalError
from ..core.lazy_imports import later
from ..graph import Node, Value
from ..ops import optimizer_steps
from ..ops.optimizer_rules import RULES
from ..ops.state import WritableArrays
from .calls import RegionCallee, result_of
from .native import executor as native
from .native.workers import raise_pending
from .regions import CompiledRegion

if TYPE_CHECKING:
    from .kernels import updates as kernels
    from .lowering import updates as lowering
else:
    kernels = later(".kernels.updates", __package__)
    lowering = later(".lowering.updates", __package__)


def updating(region: CompiledRegion, connector: int | None = None) -> Callable[..., Any]:
    """Return the region as a function of its inputs, arrays and variables, which writes variables; it returns the
    output, or a tuple of them if there is any other number.

    connector: the address of the code of `connected`, for a plan of the cache
    """
    callee = _UpdateCallee(region, connector)
    written_values = {v for node in region.nodes if node.effect == "write" for v in node.operands if v.dtype.is_handle}
    handles = [i for i, v in enumerate(region.inputs) if v.dtype.is_handle]
    written = [i for i in handles if region.inputs[i] in written_values]
    read = [i for i in handles if region.inputs[i] not in written_values]
    numbers = [i for i, v in enumerate(region.inputs) if not v.dtype.is_handle and not v.shape.rank]

    results = [result_of(v.spec) for v in region.outputs]
    is_single = len(results) == 1

    def update(*inputs: Any) -> Any:
        variables = [inputs[i] for i in written]
        if len({id(inputs[i]) for i in handles}) < len(handles):  # one variable as several arguments
            return returned(callee.plainly(inputs))
        outputs = tuple([empty(shape, dtype) for empty, shape, dtype in results])
        arrays = list(inputs)
        for i in numbers:
            arrays[i] = np.asarray(arrays[i])
        for i in read:
            arrays[i] = inputs[i].read_array()
        with WritableArrays(variables) as values:
            for i, value in zip(written, values):
                arrays[i] = value
            done = callee.run((*arrays, *outputs), written)
        if done:
            return returned(outputs)
        del arrays
        return returned(callee.plainly(inputs))

    def returned(outputs: tuple[Any, ...]) -> Any:
        return outputs[0] if is_single else outputs

    return update


_CONNECTING = 0
"""The step that connects arrays, of a plan that connects them itself."""


class _UpdateCallee(RegionCallee):
    """A region with updates that several threads may call."""

    def run(self, arrays: tuple[Any, ...], written: list[int]) -> bool:
        """Run the plan on arrays; return False, with no variable written, if they do not have its types and shapes, or
        a guard fails."""
        try:
            acquired = self.free.pop()
        except IndexError:
            acquired = self.another()
        stopped_at = self._stop(acquired, arrays) if self.native else _CONNECTING
        if stopped_at == _CONNECTING:
            fitting = self._fitting(arrays, written)
            if fitting is None:
                self.free.append(acquired)
                return False
            stopped_at = self._stop(acquired, fitting)
            if self.native and stopped_at == _CONNECTING:
                raise InternalError(op=self.region.nodes[0].op.name, what="a native call rejects arrays of its layout")
        self.free.append(acquired)
        return stopped_at < 0

    def _stop(self, acquired: tuple[Any, Any, Any], arrays: tuple[Any, ...]) -> int:
        """Run the plan; return the step that stopped it, -1 if none did: the one that connects the arrays, at one of
        another layout, or a guard. All of them are before the first update."""
        self.connect(acquired, arrays)
        try:
            acquired[1].run()
        except native.StepError as error:
            return error.step
        return -1

    def _fitting(self, arrays: tuple[Any, ...], written: list[int]) -> tuple[np.ndarray, ...] | None:
        """Return the arrays in the plan's layout; None if a variable would have to be copied, or shapes differ."""
        fitting = []
        for i, (a, shape, dtype) in enumerate(zip(arrays, self.shapes, self.dtypes)):
            a = np.asarray(a)
            if a.shape != shape or a.dtype != dtype or (i in written and not a.flags.c_contiguous):
                return None
            fitting.append(np.ascontiguousarray(a).reshape(shape).view(dtype))
        return tuple(fitting)


def updating_rows(node: Node) -> Callable[..., tuple[()]] | None:
    """Return a node of UpdateRows as a function of its flat inputs; None if its rule or dtype has no machine code."""
    _, state, gradient, _, _ = node.inputs
    assert isinstance(state, tuple)
    assert isinstance(gradient, Value)
    code = _rows_code(node.attrs["rule"], gradient.dtype, bool(node.attrs["lazy"]))
    if code is None:
        return None
    call, states = node.op.bind(dict(node.attrs)), len(state)

    def update(variable: Any, *rest: Any) -> tuple[()]:
        values, indices, *numbers = rest[states:]
        if len({id(x) for x in (variable, *rest[:states])}) <= states:  # one variable as several arguments
            node.op.kernel(call)(variable, list(rest[:states]), values, indices, numbers)
            return ()
        optimizer_steps.update_merged(code.update, call, variable, rest[:states], values, indices, numbers)
        return ()

    return update


class _RowsCode:
    """The machine code of a rule on rows. idle: whether rows without a gradient change."""

    def __init__(self, address: int, dtype: DType, idle: bool) -> None:
        self._address, self._dtype, self._idle = address, dtype.np, idle

    def update(self, op: Any, arrays: list[np.ndarray], rows: np.ndarray, values: np.ndarray, scalars: Any) -> None:
        """Update rows, in place; see `update_merged`."""
        table = arrays[0]
        if not (self._address and table.ndim and table.size) or not all(a.flags.c_contiguous for a in arrays):
            optimizer_steps.update_distinct(op, arrays, rows, values, scalars)
            return
        places = np.append(rows, len(table)).astype(np.int64, copy=False)
        gradient = np.ascontiguousarray(np.broadcast_to(values, (len(rows), *table.shape[1:])))
        numbers = np.array([c[()] for c in scalars], self._dtype)
        starts = [a.ctypes.data for a in (*arrays, gradient)]
        starts += [numbers.ctypes.data + i * numbers.itemsize for i in range(numbers.size)]
        words = np.array([places.ctypes.data, len(table), table.size // len(table), *starts], np.int64)
        status = native.call(self._address, words, 0, 1 if self._idle else len(rows))
        if status:
            raise_pending()
            raise InternalError(op=op.rule, what=f"updates of rows returned {status}")


def _rows_code(rule: str, dtype: DType, lazy: bool) -> _RowsCode | None:
    """Return the code of a rule; None if there is none for its functions and dtype."""
    lowered = lowering.rows_rule(rule, dtype)
    if lowered is None:
        return None
    idle = not (lazy or RULES[rule].still)
    pattern, words = kernels.rows_pattern(*lowered, dtype, len(RULES[rule].scalars), idle)
    return _RowsCode(kernels.update_rows.code(pattern=pattern, more=words).address, dtype, idle)
