"""Native calls that write variables in place: a region of updates as a function of arrays and handles.

Lives here: `updating`.
Not here: which updates are a region (update_regions.py), regions without state (calls.py), exclusive access to
variables (ops/state.py).

A call acquires all variables that it writes, writes their own arrays, or copies if something else refers to these, and
releases them. Variables and gradients of other types, shapes or layouts than the plan's take the operators' way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import InternalError
from ..ops.state import WritableArrays
from .calls import RegionCallee
from .native import executor as native
from .regions import CompiledRegion


def updating(region: CompiledRegion, connector: int | None = None) -> Callable[..., tuple[()]]:
    """Return the region as a function of its inputs, arrays and variables, which writes variables.

    connector: the address of the code of `connected`, for a plan of the cache
    """
    callee = _UpdateCallee(region, connector)
    written_values = {v for node in region.nodes if node.effect == "write" for v in node.operands if v.dtype.is_handle}
    handles = [i for i, v in enumerate(region.inputs) if v.dtype.is_handle]
    written = [i for i in handles if region.inputs[i] in written_values]
    read = [i for i in handles if region.inputs[i] not in written_values]
    numbers = [i for i, v in enumerate(region.inputs) if not v.dtype.is_handle and not v.shape.rank]

    def update(*inputs: Any) -> tuple[()]:
        variables = [inputs[i] for i in written]
        if len({id(inputs[i]) for i in handles}) < len(handles):  # one variable as several arguments
            callee.plainly(inputs)
            return ()
        arrays = list(inputs)
        for i in numbers:
            arrays[i] = np.asarray(arrays[i])
        for i in read:
            arrays[i] = inputs[i].read_array()
        with WritableArrays(variables) as values:
            for i, value in zip(written, values):
                arrays[i] = value
            done = callee.run(tuple(arrays), written)
        if not done:
            del arrays
            callee.plainly(inputs)
        return ()

    return update


class _UpdateCallee(RegionCallee):
    """A region of updates that several threads may call."""

    def run(self, arrays: tuple[Any, ...], written: list[int]) -> bool:
        """Run the plan on arrays; return False, with nothing written, if they do not have its types and shapes."""
        try:
            acquired = self.free.pop()
        except IndexError:
            acquired = self.another()
        if not self.native or not self._runs(acquired, arrays):
            fitting = self._fitting(arrays, written)
            if fitting is None:
                self.free.append(acquired)
                return False
            if not self.native:
                self.connect(acquired, fitting)
                acquired[1].run()
            elif not self._runs(acquired, fitting):
                raise InternalError(op=self.region.nodes[0].op.name, what="a native call rejects arrays of its layout")
        self.free.append(acquired)
        return True

    def _runs(self, acquired: tuple[Any, Any, Any], arrays: tuple[Any, ...]) -> bool:
        """Run the plan; return False if its first step found an array of another layout, before anything is written."""
        self.connect(acquired, arrays)
        try:
            acquired[1].run()
        except native.StepError as error:
            if error.step:
                raise
            return False
        return True

    def _fitting(self, arrays: tuple[Any, ...], written: list[int]) -> tuple[np.ndarray, ...] | None:
        """Return the arrays in the plan's layout; None if a variable would have to be copied, or shapes differ."""
        fitting = []
        for i, (a, shape, dtype) in enumerate(zip(arrays, self.shapes, self.dtypes)):
            a = np.asarray(a)
            if a.shape != shape or a.dtype != dtype or (i in written and not a.flags.c_contiguous):
                return None
            fitting.append(np.ascontiguousarray(a).reshape(shape).view(dtype))
        return tuple(fitting)
