"""Kernels: the ways to compute an operator, and how they are entered and found.

Lives here: `KernelKey`, `register_kernel`, the order in which kernels are tried.
Not here: the kernels; which key a call asks for, and what serves where none does (kernel_selection.py).
The reference computation of a definition (`compute`) serves every key and is what others are tested against.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core import flags, forks
from ..core.dtypes import DType, as_dtype
from ..core.errors import AlreadyExistsError, InvalidArgumentError, SignatureError
from ..core.lazy_imports import is_abandoned, load, note_origin
from ..core.places import CPUPlace, Place, place_of
from . import registry
from .compute_wrappers import guarded
from .rule_errors import kernel_name

if TYPE_CHECKING:
    from .definition import Operator

Kernel = Callable[..., Any]
"""fn(op, *arrays) -> array or tuple of arrays, as `compute`; NotImplemented hands the call to the next kernel."""

_libraries: tuple[str, ...] = ("cudnn", "cublas", "onednn", "foreign", "compiled", "reference")
CUDA_LIBRARIES = ("cudnn", "cublas")
LAYOUTS = ("any", "NHWC", "NCHW")


def libraries() -> tuple[str, ...]:
    """Return the names of the libraries that kernels are made with, in the order in which they are tried."""
    return _libraries


def register_library(name: str, *, before: str = "foreign") -> str:
    """Enter a name of one's own for the library that kernels are made with; return it, for `library=`.

    before: the library in front of which its kernels are tried. A name that stands there already stays.

    >>> ow.ops.register_library("xnnpack", before="compiled")
    'xnnpack'

    raises ValueError for what is no identifier and for an unknown `before`, AlreadyExistsError for a name that stands
    elsewhere in the order
    """
    global _libraries
    if not isinstance(name, str) or not name.isidentifier() or name in ("any", *_ALIASES):
        raise ValueError(f"register_library: a library's name is an identifier other than 'any'; found {name!r}")
    with _registering:
        if before not in _libraries:
            raise ValueError(f"register_library: before={before!r} is not one of {', '.join(_libraries)}")
        if name in _libraries:
            if _libraries.index(name) + 1 != _libraries.index(before):
                raise AlreadyExistsError(
                    op="register_library",
                    what=f"library {name!r} has another place in the order",
                    found=", ".join(_libraries),
                    wanted=f"{name} before {before}",
                )
            return name
        position = _libraries.index(before)
        _libraries = (*_libraries[:position], name, *_libraries[position:])
    return name


_ALIASES = {"mkldnn": "onednn"}  # Paddle's name of the library, from before it was renamed
_registering = forks.lock()


@dataclass(frozen=True, slots=True)
class KernelKey:
    """What a kernel is chosen by. Equal keys are equal whatever the number of the device.

    place: the kind of place, "cpu" or "gpu"; a place stands for its kind. dtype: of the first input, None for any.
    layout: "any", "NHWC" or "NCHW". library: one of `libraries()`; in what is asked for "any" leaves it open.
    raises ValueError for another layout or library

    >>> KernelKey(CUDAPlace(0), "float32") == KernelKey(CUDAPlace(1), "float32")
    True
    """

    place: Any
    dtype: DType | None = None
    layout: str = "any"
    library: str = "any"

    def __post_init__(self) -> None:
        if isinstance(self.place, Place):
            object.__setattr__(self, "place", self.place.kind)
        elif isinstance(self.place, str) and self.place not in ("cpu", "gpu", "sim"):
            object.__setattr__(self, "place", _kind_of(self.place))
        if self.dtype is not None and not isinstance(self.dtype, DType):
            object.__setattr__(self, "dtype", as_dtype(self.dtype))
        if not isinstance(self.place, str) or not self.place:
            raise ValueError(f"KernelKey: place {self.place!r} is neither a place nor the name of a kind of places")
        if self.layout not in LAYOUTS:
            raise ValueError(f"KernelKey: layout {self.layout!r} is not one of {', '.join(LAYOUTS)}")
        object.__setattr__(self, "library", _ALIASES.get(self.library, self.library))
        if self.library != "any" and self.library not in _libraries:
            raise ValueError(
                f"KernelKey: library {self.library!r} is not one of any, {', '.join(_libraries)}; "
                "ow.ops.register_library enters another"
            )

    def __str__(self) -> str:
        dtype = "any dtype" if self.dtype is None else self.dtype.name
        layout = "any layout" if self.layout == "any" else self.layout
        library = "any library" if self.library == "any" else self.library
        return f"({self.place}, {dtype}, {layout}, {library})"


def _kind_of(name: str) -> str:
    """The kind of places that a name means: "gpu" of "cuda:1"; a word that is no device name is a kind by itself."""
    try:
        return place_of(name).kind
    except InvalidArgumentError:
        return name if name.isidentifier() else ""


def register_kernel(
    op: Operator,
    *,
    place: Any = None,
    dtype: Any = None,
    layout: str = "any",
    library: str = "foreign",
    pure: bool = True,
    reproducible: bool = True,
    tolerance: float | None = None,
) -> Callable[[Kernel], Kernel]:
    """A decorator that enters a kernel for `op`. Defaults: on the CPU, for any dtype and layout.

    >>> @ow.ops.register_kernel(LeakyClip, dtype=ow.float32)
    ... def fast_leaky_clip(op, x): ...

    library: what it is made with: "foreign" (C, or whatever is not ours), "compiled", "reference" (NumPy's functions),
    "onednn", where the place is a GPU "cublas" or "cudnn", or a name of your own (`register_library`).
    pure: False for a kernel that does more than compute, which is then never called to time it. reproducible: False for
    one whose bits may differ from run to run, where sums are atomic: no place runs it under the flags deterministic and
    cuda_deterministic. tolerance: how far from the reference it may be, in units of the dtype's eps at the largest
    result; the tuner takes none that is farther (by default 64).
    raises AlreadyExistsError if the key has a kernel, ValueError for an unknown layout, library or kind of places,
    SignatureError for what is no operator or no function
    """
    op = registry.operator_of(op)
    library = _ALIASES.get(library, library)
    if library not in _libraries:
        raise ValueError(
            f"{op.name}: library {library!r} is not one of {', '.join(_libraries)}; "
            "ow.ops.register_library enters another"
        )
    if op.control:
        raise ValueError(f"{op.name}: control flow has no kernels: it runs the graphs among its attributes")
    key = KernelKey(place or CPUPlace(), None if dtype is None else as_dtype(dtype), layout, library)
    if library in CUDA_LIBRARIES and key.place == "cpu":
        raise ValueError(f"{op.name}: {library} has kernels for GPUs alone; found place {key.place!r}")

    if key.place not in ("cpu", "gpu", "sim"):
        from ..devices.pool import kinds_of_places

        if key.place not in kinds_of_places():
            raise ValueError(
                f"{op.name}: there are no places of kind {key.place!r}: it is none of "
                f"{', '.join(kinds_of_places())}; devices.register_place_kind makes one"
            )

    def enter(kernel: Kernel) -> Kernel:
        given = kernel
        if hasattr(kernel, "of_operator"):  # on arrays, in the kernel language
            kernel = kernel.of_operator(op)
        if not callable(kernel):
            raise SignatureError(
                op=op.name, what="a kernel is a function", found=f"{kernel!r}"[:80], wanted="fn(op, *arrays)"
            )
        if key in op.kernels and not is_abandoned(op.kernels[key]):
            raise AlreadyExistsError(
                op=op.name,
                what="this key has a kernel already",
                found=key,
                wanted="one kernel for a key",
                do="another library or dtype",
            )
        op.kernels[key] = kernel
        note_origin(kernel)
        if not pure:
            op.impure_kernels.add(key)
        if not reproducible:
            op.irreproducible.add(key)
            _with_irreproducible.add(op)
        if tolerance is not None:
            op.tolerances[key] = float(tolerance)
        op.cpu_kernels = op.cpu_kernels or key.place == "cpu"
        op.found_kernels.clear()
        return given

    return enter


def serving(op: Operator, key: KernelKey) -> tuple[tuple[KernelKey, Kernel], ...]:
    """The registered kernels that serve `key`, best first, each under the key it is registered with.

    Library by library, one that the key names before the others; within one first those for just this dtype and layout,
    then for any layout, for any dtype, for any of both. Found once for each full key, and kept with the operator.
    """
    known = op.found_kernels.get(key)
    if known is None:
        found: dict[KernelKey, Kernel] = {}
        for library in dict.fromkeys(_libraries if key.library == "any" else (key.library, *_libraries)):
            for dtype in (key.dtype, None):
                for layout in (key.layout, "any"):
                    one = KernelKey(key.place, dtype, layout, library)
                    if one in op.kernels and not (one in op.irreproducible and must_reproduce()):
                        found[one] = op.kernels[one]
        known = op.found_kernels[key] = tuple(found.items())
    return known


def must_reproduce() -> bool:
    """Whether kernels whose bits may differ from run to run are left out, at every place.

    deterministic asks for it among other things; cuda_deterministic, Paddle's name, asks for this alone.
    """
    return bool(flags.deterministic or flags.cuda_deterministic)


def _forget_found() -> None:
    """Drop which kernels serve which key, for operators with kernels that the two flags leave out."""
    for op in _with_irreproducible:
        op.found_kernels.clear()


_with_irreproducible: weakref.WeakSet[Operator] = weakref.WeakSet()
flags.on_change("deterministic", _forget_found)
flags.on_change("cuda_deterministic", _forget_found)


def choose(op: Operator, dtype: DType | None, place: str = "cpu", layout: str = "any") -> list[Kernel]:
    """The kernels that serve, best first, without the reference."""
    return list(dict.fromkeys(kernel for _, kernel in serving(op, KernelKey(place, dtype, layout))))


def of_call(op: Operator, kernel: Kernel, call: Any) -> Callable[..., Any]:
    """A kernel as a function of the arrays; a user's gets them read-only, and gives results of its own."""
    bound = functools.partial(kernel, call)
    ours = kernel is op.kernel_rule or getattr(kernel, "__module__", "").startswith("opwright.")
    return bound if ours else guarded(op, bound)


def key_of(op: Operator, call: Any, dtype: DType | None) -> KernelKey:
    """The key that a call on the CPU asks for, of an operator without a rule of its own for that."""
    layout = call.data_format if "data_format" in op.attr_defs else "any"
    return KernelKey("cpu", dtype, layout if layout in LAYOUTS else "any")


def computed_by(op: Operator, call: Any, dtype: Any = None) -> str:
    """Return the name of what computes an eager call of this first dtype: `compute`, or a registered kernel.

    The `kernel` of the definition is not blamed where there is a `compute`, which serves the dtypes that it does not.
    """
    own = "compute" if op.compute_rule is not None or op.kernel_rule is None else "kernel"
    if not op.cpu_kernels:
        return own
    found = serving(op, key_of(op, call, dtype))
    return own if not found or found[0][1] is op.kernel_rule else kernel_name(op, *found[0])


def bind(op: Operator, call: Any, dtype: DType | None) -> Callable[..., Any]:
    """One function of the arrays: the chosen kernels in order, the reference last."""
    if op.key_rule is not None:
        return functools.partial(_by_rule, op, call)
    at = (dtype, call.data_format) if "data_format" in op.attr_defs else dtype
    known: Any = op.found_kernels.get(at)
    if known is None:
        known = op.found_kernels[at] = tuple(kernel for _, kernel in serving(op, key_of(op, call, dtype)))
    if not known:
        return op.reference(call)
    before = call.chosen.get(at)
    if before is not None and before[0] is known:  # which is another tuple once kernels were registered or left out
        function: Callable[..., Any] = before[1]
        return function
    function = _in_order(op, call, known)
    call.chosen[at] = known, function
    return function


def _in_order(op: Operator, call: Any, known: Iterable[Kernel]) -> Callable[..., Any]:
    chosen = [of_call(op, kernel, call) for kernel in known]
    if len(chosen) == 1:
        (first,) = chosen

        def first_or_reference(*arrays: Any) -> Any:
            result = first(*arrays)
            return op.reference(call)(*arrays) if result is NotImplemented else result

        return first_or_reference

    def run(*arrays: Any) -> Any:
        for kernel in chosen:
            result = kernel(*arrays)
            if result is not NotImplemented:
                return result
        return op.reference(call)(*arrays)

    return run


_key_by_rule: Callable[[Operator, Any, Iterable[Any]], KernelKey] | None = None


def install_key_rules(key_by_rule: Callable[[Operator, Any, Iterable[Any]], KernelKey]) -> None:
    """Install the computation of keys by `expected_kernel_key`; kernel_selection.py calls it once."""
    global _key_by_rule
    _key_by_rule = key_by_rule


def _by_rule(op: Operator, call: Any, *arrays: Any) -> Any:
    """Compute by the kernel that the definition's `expected_kernel_key` asks for, of these very arrays."""
    if _key_by_rule is None:
        load("opwright.ops.kernel_selection")
    assert _key_by_rule is not None
    key = _key_by_rule(op, call, arrays)
    if key.place != "cpu":  # eagerly and in plans everything is the CPU's
        key = KernelKey("cpu", key.dtype, key.layout, key.library)
    return _in_order(op, call, [kernel for _, kernel in serving(op, key)])(*arrays)
