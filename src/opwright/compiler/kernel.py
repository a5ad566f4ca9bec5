"""`@ow.kernel`: a Python function on scalars that becomes machine code over whole arrays.

Lives here: the decorator, and running a kernel on arrays (checks, cache by dtype and attributes).
Not here: staging to LLVM (elementwise.py, imported at the first compile), keeping and loading code (native/).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import flags

COMPILED = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "bool")))


class Kernel:
    """An element-wise kernel: positional parameters are scalars of the inputs, keyword-only ones are attributes.

    Attributes are known when the kernel is compiled, so Python may branch on them; on scalars it may not.
    Called as the kernels of ops/ are: `kernel(op, *arrays) -> array`, or NotImplemented for dtypes and layouts it
    does not take, which the reference then computes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        parameters = inspect.signature(function).parameters.values()
        self.inputs = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
        self.attrs = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        self._compiled: dict[Any, Any] = {}
        functools.update_wrapper(self, function)

    def __call__(self, op: Any, *arrays: Any) -> Any:
        arrays = tuple(a if type(a) is np.ndarray else np.asarray(a) for a in arrays)
        first = arrays[0]
        for a in arrays:
            if a.dtype not in COMPILED:
                return NotImplemented
        if len(arrays) > 1 and any(a.shape != first.shape for a in arrays):
            arrays = tuple(np.broadcast_arrays(*arrays))
            first = arrays[0]
        key = (tuple(a.dtype.char for a in arrays), op, flags.fast_math)
        compiled = self._compiled.get(key)
        if compiled is None:
            from .elementwise import compile_elementwise

            attrs = {name: getattr(op, name) for name in self.attrs}
            compiled = compile_elementwise(self.function, op.operator.name, [a.dtype for a in arrays], attrs)
            self._compiled[key] = compiled
        out = np.empty(first.shape, compiled.dtype)
        contiguous = [np.ascontiguousarray(a) for a in arrays]
        compiled.run(out.ctypes.data, *[a.ctypes.data for a in contiguous], out.size)
        return out

    def source(self, op: Any, *dtypes: Any) -> str:
        """The LLVM IR for inputs of these dtypes, before optimisation. Names are the Python function's."""
        from .elementwise import emit

        attrs = {name: getattr(op, name) for name in self.attrs}
        return str(emit(self.function, op.operator.name, [np.dtype(d) for d in dtypes], attrs)[0])

    def __repr__(self) -> str:
        return f"<kernel {self.function.__qualname__}({', '.join(self.inputs)})>"


def kernel(function: Callable[..., Any] | None = None, *, checked: bool = True) -> Any:
    """Make a kernel of a function: on scalars, inside an `@ow.operator` class, or on arrays, to be called.

    >>> @ow.kernel
    ... def kernel(x, *, alpha, limit):
    ...     return ow.minimum(x, limit) + alpha * ow.maximum(x - limit, 0.0)

    A function whose parameters are annotated with `ow.language.Array(dtype, *sizes)` works on whole arrays, with loops
    and vectors of its own; checked=False leaves out its guards against accesses outside of them (docs/kernels.md).
    """
    if function is None:
        return functools.partial(kernel, checked=checked)
    if _takes_arrays(function):
        from .language.calling import ArrayKernel

        return ArrayKernel(function, checked)
    return Kernel(function)


def _takes_arrays(function: Callable[..., Any]) -> bool:
    if not function.__annotations__:
        return False
    try:
        parameters = inspect.signature(function, eval_str=True).parameters.values()
    except NameError:  # annotations for type checkers alone
        return False
    language = sys.modules.get(f"{__package__}.language.arrays")  # who annotates with its Array has imported it
    return language is not None and any(isinstance(p.annotation, language.Array) for p in parameters)
