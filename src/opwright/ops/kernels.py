"""Kernels: the ways to compute an operator, and how one is chosen.

Lives here: `KernelKey`, `register_kernel`, `choose`.  Not here: the kernels.
The reference computation of a definition (`compute`) serves every key and is what others are tested against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.dtypes import DType, as_dtype
from ..core.errors import AlreadyExistsError
from ..core.places import CPUPlace

if TYPE_CHECKING:
    from .definition import Operator

Kernel = Callable[..., Any]
"""fn(op, *arrays) -> array or tuple of arrays, as `compute`; NotImplemented hands the call to the next kernel."""

LIBRARIES = ("foreign", "compiled", "reference")  # in the order they are tried


@dataclass(frozen=True, slots=True)
class KernelKey:
    """What a kernel is chosen by.

    place: "cpu" or "gpu"; dtype: of the first input, None for any; layout: "any", "NHWC" or "NCHW"; library: one of
    LIBRARIES.
    """

    place: str
    dtype: DType | None = None
    layout: str = "any"
    library: str = "compiled"


def register_kernel(
    op: Operator, *, place: Any = None, dtype: Any = None, layout: str = "any", library: str = "foreign"
) -> Callable[[Kernel], Kernel]:
    """A decorator that enters a kernel for `op`. Defaults: on the CPU, for any dtype and layout.

    >>> @ow.ops.register_kernel(LeakyClip, dtype=ow.float32)
    ... def fast_leaky_clip(op, x): ...

    raises AlreadyExistsError if the key has a kernel, ValueError for an unknown library
    """
    if library not in LIBRARIES:
        raise ValueError(f"{op.name}: library {library!r} is not one of {', '.join(LIBRARIES)}")
    kind = (place or CPUPlace()).kind
    key = KernelKey(kind, None if dtype is None else as_dtype(dtype), layout, library)

    def enter(kernel: Kernel) -> Kernel:
        if key in op.kernels:
            raise AlreadyExistsError(op=op.name, what=f"{key} has a kernel already")
        op.kernels[key] = kernel
        return kernel

    return enter


def choose(op: Operator, dtype: DType | None, place: str = "cpu", layout: str = "any") -> list[Kernel]:
    """The kernels that serve, best first, without the reference: by library, an exact dtype before any."""
    found = []
    for library in LIBRARIES:
        for wanted in (dtype, None):
            for form in dict.fromkeys((layout, "any")):
                kernel = op.kernels.get(KernelKey(place, wanted, form, library))
                if kernel is not None and kernel not in found:
                    found.append(kernel)
    return found


def bind(op: Operator, call: Any, dtype: DType | None) -> Callable[..., Any]:
    """One function of the arrays: the chosen kernels in order, the reference last."""
    import functools

    chosen = [functools.partial(kernel, call) for kernel in choose(op, dtype)]
    reference = op.reference(call)
    if not chosen:
        return reference

    def run(*arrays: Any) -> Any:
        for kernel in chosen:
            result = kernel(*arrays)
            if result is not NotImplemented:
                return result
        return reference(*arrays)

    return run
