"""Native calls from Python: a compiled region as a function of NumPy arrays.

Lives here: `function_of`.
Not here: regions (regions.py), memory for large results (results.py), the machine code that connects arrays
(kernels/array_addresses.py), plans bound to memory (bound_plan.py), the native call itself (native/executor.py).

A call is one native call: its first step, `connected`, reads the arrays from the tuple of arguments, checks that each
has the plan's layout, and writes its address to the words of the steps. NumPy takes 0.8 us for an address, `connected`
5 ns. If an argument does not fit, it is converted and the call repeated.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags
from ..core.errors import InternalError
from ..core.lazy_imports import later
from ..graph import Value
from .bound_plan import BoundPlan
from .native import executor as native
from .native.objects import items_offset
from .plan import Plan
from .regions import CompiledRegion
from .results import LARGE, large

if TYPE_CHECKING:
    from .kernels import array_addresses
else:
    array_addresses = later(".kernels.array_addresses", __package__)

SHARED = 1 << 17  # elements; what computes fewer runs on the calling thread


class _Callee:
    """A region that several threads may call: each acquires a plan bound to memory, or binds one."""

    def __init__(self, region: CompiledRegion, connector: int | None) -> None:
        self.region, self._connector = region, connector
        self.values = (*region.inputs, *region.outputs)
        self.shapes = [shape_of(v) for v in self.values]
        self.dtypes = [v.dtype.np for v in self.values]
        self.native = items_offset() is not None
        self.threads = max(1, flags.num_threads or _cores()) if region.work >= SHARED else 1
        self.free: list[tuple[Any, Any, Any]] = []
        self.plain: Plan | None = None

    def another(self) -> tuple[Any, Any, Any]:
        """Bind another plan. Return the word with the address of a call's items, the executor, and the owner of
        both."""
        plan = self.region.plan
        if not self.native:
            running = plan.bind(self.threads)
            return None, running.executor, running
        code = array_addresses.connected.code().address if self._connector is None else self._connector
        step = native.Step(code, [0, 0, len(self.values), id(np.ndarray)], 1, 1)
        running = plan.bind(self.threads, None, [step])
        table: list[int] = []
        for key, shape, dtype in zip(plan.outside, self.shapes, self.dtypes):
            places = running.places(key)
            table += [id(dtype), len(shape), len(places), 0, *shape]
            table += [number for place in places for number in place]
        kept = np.array(table, np.int64)
        words = running.ahead[0]
        words[1] = kept.ctypes.data
        return memoryview(words.data), running.executor, _Holding(running, kept)

    def otherwise(self, acquired: tuple[Any, Any, Any], arrays: tuple[Any, ...]) -> None:
        """Run the region if `connected` did not: convert each input to the plan's layout. Raises errors of guards."""
        inputs = len(self.region.inputs)
        fitting = [
            np.ascontiguousarray(np.asarray(a), d).reshape(shape) if np.shape(a) == shape else None
            for a, shape, d in zip(arrays[:inputs], self.shapes, self.dtypes)
        ]
        for a, v, operand in zip(arrays, self.values, fitting):
            if operand is None:
                raise InternalError(
                    op=self.region.nodes[0].op.name,
                    node=self.region.nodes[0].name,
                    what="a native call is given another shape than it was compiled for",
                    found=list(np.shape(a)),
                    wanted=repr(v),
                )
        arguments = (*fitting, *arrays[inputs:])
        running = acquired[2].running if isinstance(acquired[2], _Holding) else acquired[2]
        if self.native:
            acquired[0][0] = id(arguments) + (items_offset() or 0)
        else:
            running.connect({key: a.ctypes.data for key, a in zip(self.region.plan.outside, arguments)})
        try:
            running.executor.run()
        except native.StepError:  # the operators themselves have the right words for it, or a result after all
            for y, result in zip(arrays[inputs:], self._plainly(fitting)):
                np.copyto(y, result)
        self.free.append(acquired)

    def _plainly(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the nodes one by one."""
        if self.plain is None:
            self.plain = Plan(self.region.graph)
        return self.plain.explained(*inputs)


class _Holding:
    """A bound plan and the table that its first step reads."""

    def __init__(self, running: BoundPlan, table: np.ndarray) -> None:
        self.running, self.table = running, table


def _cores() -> int:
    return os.cpu_count() or 1


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the shape of a value of a region, all of whose sizes are known."""
    dims: Any = value.shape.dims
    return tuple(map(int, dims))


def function_of(region: CompiledRegion, connector: int | None = None) -> Callable[..., Any]:
    """Return the region as a function of its inputs, which returns its output, or a tuple of them.

    Generated for the number of inputs and outputs: for 3 operators of 4x4, a loop over them would cost as much as the
    kernels. connector: the address of the code of `connected`, for a plan of the cache.
    """
    callee = _Callee(region, connector)
    scope: dict[str, Any] = {
        "pop": callee.free.pop,
        "push": callee.free.append,
        "another": callee.another,
        "otherwise": callee.otherwise,
        "offset": items_offset() or 0,
        "ndarray": np.ndarray,
        "asarray": np.asarray,
    }
    xs = [f"x{i}" for i in range(len(region.inputs))]
    ys = [f"y{i}" for i in range(len(region.outputs))]
    lines = [f"def native({', '.join(xs)}):"]
    for y, v in zip(ys, region.outputs):
        shape, dtype = shape_of(v), v.dtype.np
        big = math.prod(shape) * dtype.itemsize >= LARGE
        scope |= {f"{y}_shape": shape, f"{y}_dtype": dtype, f"{y}_empty": large if big else np.empty}
        lines.append(f"    {y} = {y}_empty({y}_shape, {y}_dtype)")
    for x, v in zip(xs, region.inputs):
        if not v.shape.rank:  # between loops' turns numbers are NumPy's scalars
            lines.append(f"    {x} = {x} if type({x}) is ndarray else asarray({x})")
    lines += [
        f"    arrays = ({''.join(f'{n}, ' for n in (*xs, *ys))})",
        "    try:",
        "        taken = pop()",
        "    except IndexError:",
        "        taken = another()",
    ]
    if callee.native:
        lines += [
            "    word, executor, _ = taken",
            "    word[0] = id(arrays) + offset",
            "    if executor._run():",
            "        otherwise(taken, arrays)",
            "    else:",
            "        push(taken)",
        ]
    else:
        lines.append("    otherwise(taken, arrays)")
    lines.append(f"    return {', '.join(ys)}")
    exec(compile("\n".join(lines), "<native call>", "exec"), scope)
    function: Callable[..., Any] = scope["native"]
    return function
