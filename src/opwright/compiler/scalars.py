"""What a kernel's function computes on while it is staged, and what its calls of operators become.

Lives here: `KernelScalar`, `LaterNumber`, `KernelTrace`; `arranged`, the arguments of a call.
Not here: the loop over arrays (elementwise.py), what an operator becomes (lowering.py), control flow (staged.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..core import flags
from ..core.dtypes import DType
from ..core.errors import UnimplementedError
from ..core.specs import TensorSpec
from ..ops import overloads  # noqa: F401  gives every tensor Python's operators
from ..ops.arguments import natural_dtype, tensors
from ..ops.tensor import Tensor
from .lane_lowering import FAST, LOWER
from .lanes import KINDS, Lanes, constant


class KernelScalar(Tensor):
    """One element in a kernel being staged, or several side by side: lanes with a dtype."""

    __slots__ = ("_dtype", "lanes")

    def __init__(self, lanes: Lanes, dtype: DType) -> None:
        self.lanes, self._dtype = lanes, dtype

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._dtype

    @property
    def shape(self) -> Any:
        """Always ()."""
        return self.spec.shape

    @property
    def spec(self) -> TensorSpec:
        """A scalar of this dtype."""
        return TensorSpec((), self._dtype)

    def __repr__(self) -> str:
        return f"<kernel scalar {self._dtype.short}>"

    def __bool__(self) -> bool:
        raise TypeError("a kernel's scalar has no truth value in Python that is not converted (a lambda without its "
                        "source, a library's function): use ow.where(condition, a, b)")  # fmt: skip


def arranged(function: Any, scalars: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """What a kernel's function is called with: inputs that are left out stand among the attributes, as None."""
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    if not any(n in attrs for n in names):
        return list(scalars), dict(attrs)
    rest = iter(scalars)
    return [attrs[n] if n in attrs else next(rest) for n in names], {k: v for k, v in attrs.items() if k not in names}


class LaterNumber:
    """A Python number that is known only when the code runs (c_source/numbers.py): in a kernel it stands as one."""

    __slots__ = ()


class KernelTrace:
    """The staging of one kernel: where operators become instructions. count: of lanes; 0 for one element.

    fast: whether as the switch `fast_math` has it; by default as it is now. polls: whether its loops ask now and then
    whether they are to go on (polling.py), as code of this process does; budget: where their budget lies.
    """

    polls = False
    budget: Any = None

    def __init__(self, builder: ir.IRBuilder, name: str, count: int, fast: bool | None = None) -> None:
        self.builder, self.name, self.count = builder, name, count
        self.fast = bool(flags.fast_math) if fast is None else fast
        self.leave = FAST if self.fast else ()  # on sums, products and quotients

    def record(self, op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
        """Lower one call. Raises UnimplementedError naming an operator that kernels do not have."""
        scalars = tensors(op, inputs, self.to_tensor, name)
        rule = LOWER.get(op.name)
        if rule is None:
            raise UnimplementedError(
                op=op.name,
                what="kernels have no such operator",
                wanted=f"one of {', '.join(sorted(LOWER))}",
                do="write it with these, or leave out the kernel: the reference computes it",
            )
        op.check_dtypes([s.dtype for s in scalars])
        result = rule(self, bound, *(s.lanes for s in scalars))
        (spec,) = op.infer(bound, scalars)
        return KernelScalar(result, spec.dtype)

    def to_tensor(self, value: Any, dtype: Any = None, name: str | None = None) -> Any:
        """Lanes of a Python number."""
        if isinstance(value, KernelScalar):
            return value
        if isinstance(value, Tensor) or np.ndim(value) != 0:
            raise TypeError(f"a kernel works on scalars; found {value!r} in {self.name!r}")
        dtype = dtype or natural_dtype(value)
        if dtype not in KINDS:
            raise TypeError(f"a kernel has no scalars of dtype {dtype.name}")
        if isinstance(value, float) and not dtype.is_floating:
            raise TypeError(f"cannot use {value!r} as {dtype.name}")
        exact = dtype.as_numpy_dtype(value)
        return KernelScalar(Lanes(self.builder, constant(KINDS[dtype], exact, self.count)), dtype)
