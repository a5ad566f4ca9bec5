"""A kernel on scalars as one operation of an expression, so that it is a map which fuses with its neighbours.

Lives here: `InlinedKernel`, `call`; which kernel of an operator serves every call on the CPU (`own_kernel`).
Not here: staging (language/elements.py, loaded when one is first staged), expressions (loops/expressions.py).

The kernel language of scalars is not translated into expressions: an `InlinedKernel` is one operation among theirs,
staged inline wherever an expression is computed, by the same rules (language/operators.py) as when the kernel runs by
itself, so its results are the same bits in all ways. Plans, files of plans and machine code know it by a digest of the
instructions that it becomes: whatever its Python depends on, helpers, globals, attributes: other code has another
digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType
from .loops.expressions import Expr

if TYPE_CHECKING:
    from .language import Value


class InlinedKernel:
    """A function of scalars of these dtypes, with its attributes bound.

    name: of the operator, for messages; dtype: of the result; weight: approximate number of instructions; endless:
    whether it has loops, which may not terminate on arbitrary numbers: such a function is evaluated on elements alone,
    never on padding of vectors; fast: whether the switch `fast_math` was on.

    raises UnimplementedError or SignatureError for unsupported constructs, and the function's own exceptions
    """

    __slots__ = ("_arrays", "attrs", "dtype", "endless", "fast", "function", "inputs", "key", "name", "weight")

    def __init__(
        self, function: Callable[..., Any], name: str, inputs: Sequence[DType], attrs: dict[str, Any], fast: bool
    ) -> None:
        from .language.elements import summarize

        self.function, self.name, self.inputs, self.attrs, self.fast = function, name, tuple(inputs), attrs, fast
        summary = summarize(self)
        self.dtype, self.weight, self.endless = summary.dtype, summary.num_instructions, summary.has_loops
        self.key = hashlib.sha256(summary.text.encode()).hexdigest()[:32]
        self._arrays: Callable[..., np.ndarray] | None = None

    def stage(self, *xs: Value) -> Value:
        """Return its result for values of the kernel that is being staged."""
        from .language.elements import inlined

        return inlined(self, xs)

    def of_arrays(self, *arrays: Any) -> np.ndarray:
        """Return its result for arrays, which broadcast, by its own machine code. Floats may be wider than declared."""
        if self._arrays is None:
            from .elementwise import compile_elementwise

            kinds = [np.dtype(d.np) for d in self.inputs]
            compiled = compile_elementwise(self.function, self.name, kinds, self.attrs, self.fast)
            self._arrays = lambda *arrays: compiled.over(arrays[0].shape, arrays)
        converted = [np.asarray(a).astype(d.np, copy=False) for a, d in zip(arrays, self.inputs)]
        return self._arrays(*np.broadcast_arrays(*converted))

    def __repr__(self) -> str:
        return f"{self.name} {self.key}"


def call(function: InlinedKernel, *args: Expr) -> Expr:
    """Return a call of the function on expressions, which have its dtypes."""
    return Expr("call", function.dtype, args, function)


def functions_of(expr: Expr) -> list[InlinedKernel]:
    """Return the functions that an expression calls."""
    functions, seen, todo = [], {id(expr)}, [expr]
    while todo:
        e = todo.pop()
        if e.op == "call":
            functions.append(e.value)
        for a in e.args:
            if id(a) not in seen:
                seen.add(id(a))
                todo.append(a)
    return functions


def user_code(op: Any) -> str:
    """Return digests of the users' code that an operation runs: of a map its functions or its table."""
    expr = getattr(op, "expr", None)
    if expr is None:
        return str(op.code.key)
    keys = [function.key for function in functions_of(expr)]
    if not keys:
        keys = [hashlib.sha256(b.constant.tobytes()).hexdigest() for b in op.operands if b.constant is not None]
    return " ".join(keys)


def is_endless(expr: Expr) -> bool:
    """Return whether an expression must be evaluated on elements alone; see InlinedKernel."""
    return any(function.endless for function in functions_of(expr))


def own_kernel(op: Any) -> Any:
    """Return the kernel that an operator's class defines, if it precedes all others on the CPU, otherwise None."""
    rule = getattr(op, "kernel_rule", None)
    if rule is None or getattr(op, "key_rule", None) is not None:
        return None
    others = any(key.place == "cpu" and kernel is not rule for key, kernel in op.kernels.items())
    return None if others else rule
