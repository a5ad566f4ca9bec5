"""`@ow.kernel`: a Python function on scalars that becomes machine code over whole arrays.

Lives here: the decorator, and calls of a kernel on arrays (checks; machine code by dtypes and attributes).
Not here: staging to LLVM (language/elements.py, imported at the first compile), caching and loading code (native/).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags
from ..core.dtypes import DType

if TYPE_CHECKING:
    from .elementwise import CompiledKernel
    from .inlined_kernels import InlinedKernel


COMPILED = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "bool")))


class Kernel:
    """An element-wise kernel: positional parameters are scalars of the inputs, keyword-only ones are attributes.

    A parameter whose default is None is an optional input, None if omitted. Attributes are known when the kernel is
    compiled, so that Python may branch on them, but not on scalars. Called like the kernels of ops/: `kernel(op,
    *arrays) -> array`, or NotImplemented for unsupported dtypes and layouts, which the reference then computes.
    """

    on_scalars = True

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        parameters = inspect.signature(function).parameters.values()
        self.inputs = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
        self.attrs = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        self.optional = frozenset(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY and p.default is None)
        self._compiled: dict[Any, Any] = {}
        self._functions: dict[Any, Any] = {}
        functools.update_wrapper(self, function)

    def __call__(self, op: Any, *arrays: Any) -> Any:
        first = arrays[0]
        left_out: tuple[str, ...] = ()
        if len(arrays) == 1 and type(first) is np.ndarray:
            key: Any = (first.dtype, op, flags.fast_math, flags.target)
        else:
            left_out = tuple([name for name, a in zip(self.inputs, arrays) if a is None])
            if left_out and not self._may_lack(left_out):
                return NotImplemented
            arrays = tuple([a if type(a) is np.ndarray else np.asarray(a) for a in arrays if a is not None])
            if len(arrays) + len(left_out) != len(self.inputs):  # one is given that the kernel does not know
                return NotImplemented
            first = arrays[0]
            if any(a.shape != first.shape for a in arrays):
                arrays = tuple(np.broadcast_arrays(*arrays))
                first = arrays[0]
            key = (tuple([a.dtype for a in arrays]), op, flags.fast_math, flags.target, left_out)
        try:
            compiled = self._compiled.get(key)
        except TypeError:  # an array in place of a call
            raise TypeError(
                f"{self!r} is on scalars: it computes in an @ow.operator class; a kernel to be called has "
                "parameters annotated with ow.language.Array(dtype, ...)"
            ) from None
        if compiled is None:
            if not all(a.dtype in COMPILED for a in arrays):
                return NotImplemented
            compiled = self._compile(key, op, [a.dtype for a in arrays], left_out)
        return compiled.over(first.shape, arrays)

    def _may_lack(self, names: Sequence[str]) -> bool:
        """Return whether these inputs may be omitted: their parameters default to None, and one input remains."""
        return self.optional.issuperset(names) and len(names) < len(self.inputs)

    def _compile(self, key: Any, op: Any, dtypes: Sequence[Any], left_out: Sequence[str]) -> CompiledKernel:
        from .elementwise import compile_elementwise

        attrs = {**self._attrs(op), **dict.fromkeys(left_out)}
        compiled = compile_elementwise(self.function, op.operator.name, dtypes, attrs)
        _remember(self._compiled, key, compiled)
        return compiled

    def _attrs(self, op: Any) -> dict[str, Any]:
        return {name: getattr(op, name) for name in self.attrs}

    def scalar_function(self, op: Any, dtypes: Sequence[DType | None]) -> InlinedKernel | None:
        """Return the kernel for these attributes and dtypes as an operation of expressions; None for unsupported
        dtypes. A dtype of None is an omitted input: the operation has the others as operands.

        raises its function's exceptions during staging, and UnimplementedError for unsupported constructs
        """
        from .inlined_kernels import InlinedKernel

        present = [d for d in dtypes if d is not None]
        left_out = [name for name, d in zip(self.inputs, dtypes) if d is None]
        if len(present) + len(left_out) != len(self.inputs) or (left_out and not self._may_lack(left_out)):
            return None
        if not all(d.np in COMPILED for d in present):
            return None
        key = (tuple(dtypes), op, flags.fast_math, flags.target)
        function: InlinedKernel | None = self._functions.get(key)
        if function is None:
            attrs = {**self._attrs(op), **dict.fromkeys(left_out)}
            function = InlinedKernel(self.function, op.operator.name, present, attrs, bool(flags.fast_math))
            _remember(self._functions, key, function)
        return function

    def source(self, op: Any, *dtypes: Any) -> str:
        """Return the LLVM IR for inputs of these dtypes, before optimization. Names are the Python function's."""
        from .language.elements import emit_elements

        return str(emit_elements(self.function, op.operator.name, [np.dtype(d) for d in dtypes], self._attrs(op))[0])

    def __repr__(self) -> str:
        return f"<kernel {self.function.__qualname__}({', '.join(self.inputs)})>"


MOST = 256
"""Number of combinations of dtypes and attributes for which a kernel keeps its code."""


def _remember(table: dict[Any, Any], key: Any, code: Any) -> None:
    while len(table) >= MOST:
        table.pop(next(iter(table)), None)
    table[key] = code


def kernel(function: Callable[..., Any] | None = None, *, checked: bool = True) -> Any:
    """Decorate a function as a kernel: on scalars, inside an `@ow.operator` class, or on arrays, to be called.

    >>> @ow.kernel
    ... def kernel(x, *, alpha, limit):
    ...     return ow.minimum(x, limit) + alpha * ow.maximum(x - limit, 0.0)

    A function whose parameters are annotated with `ow.language.Array(dtype, *sizes)` works on whole arrays, with its
    own loops and vectors; checked=False omits its guards against accesses out of bounds (docs/kernels.md).
    """
    if function is None:
        return functools.partial(kernel, checked=checked)
    annotations = _annotations(function, _scope(sys._getframe(1)))
    if _takes_arrays(annotations):
        from .language.array_kernels import ArrayKernel

        return ArrayKernel(function, annotations, checked)
    return Kernel(function)


def _scope(frame: Any) -> Mapping[str, Any]:
    """Return the variables at a kernel's definition, which textual annotations may name, including those around its
    class."""
    scopes = [frame.f_locals]
    while not frame.f_code.co_flags & inspect.CO_OPTIMIZED and frame.f_back is not None:
        frame = frame.f_back
        scopes.append(frame.f_locals)
    return ChainMap(*scopes)


def _annotations(function: Callable[..., Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations of the parameters; none if they are for type checkers only.

    raises NameError if arrays are annotated by unknown names
    """
    try:
        return inspect.get_annotations(function, locals=scope, eval_str=True)
    except NameError as error:
        annotations = [a for a in function.__annotations__.values() if isinstance(a, str) and "Array(" in a]
        if annotations:
            what = f"kernel {function.__name__}: the annotation {annotations[0]} cannot be read: {error}"
            raise NameError(what) from None
        return {}


def _takes_arrays(annotations: Mapping[str, Any]) -> bool:
    language = sys.modules.get(f"{__package__}.language.parameters")  # who annotates with its Array has imported it
    return language is not None and any(isinstance(a, language.Array) for a in annotations.values())
