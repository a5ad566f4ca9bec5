"""Kernels: implementations of operators, their registration and order of preference.

Lives here: `KernelKey`, `register_kernel`, the order in which kernels are tried.
Not here: the kernels; the key of a call, and the fallbacks without a kernel (kernel_selection.py).
The reference computation of a definition (`compute`) supports every key; all kernels are tested against it.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..core import flags, forks
from ..core.dtypes import DType, as_dtype
from ..core.errors import AlreadyExistsError, InvalidArgumentError, SignatureError
from ..core.lazy_imports import is_abandoned, later, load, note_origin
from ..core.places import CPUPlace, Place, place_of
from . import registry
from .call import kernel_name

if TYPE_CHECKING:
    from ..core import blas_threads
    from . import compute_wrappers
    from .definition import Operator
else:  # not needed by the first answer of a model
    compute_wrappers = later(".compute_wrappers", __package__)
    blas_threads = later("..core.blas_threads", __package__)

Kernel = Callable[..., Any]
"""fn(op, *arrays) -> array or tuple of arrays, as `compute`; NotImplemented passes the call to the next kernel."""

_libraries: tuple[str, ...] = ("cudnn", "cublas", "onednn", "foreign", "compiled", "reference")
CUDA_LIBRARIES = ("cudnn", "cublas")
LAYOUTS = ("any", "NHWC", "NCHW")


def libraries() -> tuple[str, ...]:
    """Return the names of kernel libraries in order of preference."""
    return _libraries


def register_library(name: str, *, before: str = "foreign") -> str:
    """Register the name of a kernel library and return it, for `library=`.

    before: the library whose kernels follow its own. A name registered at this position stays.

    >>> ow.ops.register_library("xnnpack", before="compiled")
    'xnnpack'

    raises ValueError for a name that is not an identifier and for an unknown `before`, AlreadyExistsError for a name
    registered elsewhere in the order
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


class KernelKey:
    """The key of kernel selection; the number of a device is not part of it.

    place: the kind of place, "cpu" or "gpu"; a place is converted to its kind. dtype: of the first input, None for any.
    layout: "any", "NHWC" or "NCHW". library: one of `libraries()`; "any" in a request leaves it open.
    raises ValueError for another layout or library

    >>> KernelKey(CUDAPlace(0), "float32") == KernelKey(CUDAPlace(1), "float32")
    True
    """

    __slots__ = ("dtype", "layout", "library", "place")
    place: str
    dtype: DType | None
    layout: str
    library: str

    def __init__(self, place: Any, dtype: Any = None, layout: str = "any", library: str = "any") -> None:
        if isinstance(place, Place):
            place = place.kind
        elif isinstance(place, str) and place not in ("cpu", "gpu", "sim"):
            place = _kind_of(place)
        if not isinstance(place, str) or not place:
            raise ValueError(f"KernelKey: place {place!r} is neither a place nor the name of a kind of places")
        if layout not in LAYOUTS:
            raise ValueError(f"KernelKey: layout {layout!r} is not one of {', '.join(LAYOUTS)}")
        library = _ALIASES.get(library, library)
        if library != "any" and library not in _libraries:
            raise ValueError(
                f"KernelKey: library {library!r} is not one of any, {', '.join(_libraries)}; "
                "ow.ops.register_library enters another"
            )
        init = object.__setattr__
        init(self, "place", place)
        init(self, "dtype", dtype if dtype is None or isinstance(dtype, DType) else as_dtype(dtype))
        init(self, "layout", layout)
        init(self, "library", library)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a KernelKey is immutable; cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a KernelKey is immutable; cannot delete {name}")

    def _parts(self) -> tuple[str, DType | None, str, str]:
        return self.place, self.dtype, self.layout, self.library

    def __eq__(self, other: object) -> bool:
        return self._parts() == other._parts() if isinstance(other, KernelKey) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        return "KernelKey(place={!r}, dtype={!r}, layout={!r}, library={!r})".format(*self._parts())

    def __reduce__(self) -> tuple[Any, ...]:
        return KernelKey, self._parts()

    def __str__(self) -> str:
        dtype = "any dtype" if self.dtype is None else self.dtype.name
        layout = "any layout" if self.layout == "any" else self.layout
        library = "any library" if self.library == "any" else self.library
        return f"({self.place}, {dtype}, {layout}, {library})"


def _kind_of(name: str) -> str:
    """Return the kind of places of a name: "gpu" for "cuda:1"; an identifier that is not a device is itself a kind."""
    try:
        return place_of(name).kind
    except InvalidArgumentError:
        return name if name.isidentifier() else ""


def _checked_key(op: Operator, place: Any, dtype: Any, layout: str, library: str) -> KernelKey:
    """Return the key of a kernel to register. Raises ValueError."""
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
    return key


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
    """Return a decorator that registers a kernel for `op`. Defaults: on the CPU, for any dtype and layout.

    >>> @ow.ops.register_kernel(LeakyClip, dtype=ow.float32)
    ... def fast_leaky_clip(op, x): ...

    library: its implementation: "foreign" (C, or any other code), "compiled", "reference" (NumPy's functions),
    "onednn", on GPUs "cublas" or "cudnn", or a name of your own (`register_library`).
    pure: False for a kernel with side effects, which is never timed. reproducible: False for a kernel whose bits may
    differ between runs, such as atomic sums: it is excluded under the flags deterministic and cuda_deterministic.
    tolerance: its greatest error relative to the reference, in units of the dtype's eps at the largest result; the
    autotuner excludes kernels beyond it (by default 64).
    raises AlreadyExistsError if the key has a kernel, ValueError for an unknown layout, library or kind of places,
    SignatureError for what is neither an operator nor a function
    """
    op = registry.operator_of(op)
    key = _checked_key(op, place, dtype, layout, _ALIASES.get(library, library))

    def enter(kernel: Any) -> Kernel:
        registered: Kernel = kernel
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
        op.kernel_cache.clear()
        return registered

    return enter


def serving(op: Operator, key: KernelKey) -> tuple[tuple[KernelKey, Kernel], ...]:
    """Return the registered kernels for `key`, best first, each with its registered key.

    The order is by library, the library of the key first; within one the exact dtype and layout, then any layout, any
    dtype, any of both. Cached by full key with the operator.
    """
    cached = op.kernel_cache.get(key)
    if cached is None:
        matches: dict[KernelKey, Kernel] = {}
        for library in dict.fromkeys(_libraries if key.library == "any" else (key.library, *_libraries)):
            for dtype in (key.dtype, None):
                for layout in (key.layout, "any"):
                    one = KernelKey(key.place, dtype, layout, library)
                    if one in op.kernels and not (one in op.irreproducible and must_reproduce()):
                        matches[one] = op.kernels[one]
        cached = op.kernel_cache[key] = tuple(matches.items())
    return cached


def must_reproduce() -> bool:
    """Return whether kernels whose bits may differ between runs are excluded, at every place.

    deterministic asks for it among other things; cuda_deterministic, Paddle's name, asks for this alone.
    """
    return bool(flags.deterministic or flags.cuda_deterministic)


def _clear_kernel_caches() -> None:
    """Clear the kernel caches of operators with kernels that the two flags exclude."""
    for op in _with_irreproducible:
        op.kernel_cache.clear()


_blas_is_limited = False


def _follow_blas() -> None:
    """Limit the threads of BLAS as `deterministic` and `num_threads` say."""
    global _blas_is_limited
    is_limited = bool(flags.deterministic or flags.num_threads)
    if is_limited or _blas_is_limited:
        blas_threads.follow_flags()
        _blas_is_limited = is_limited


_with_irreproducible: weakref.WeakSet[Operator] = weakref.WeakSet()
flags.on_change("deterministic", _follow_blas)
flags.on_change("num_threads", _follow_blas)
flags.on_change("deterministic", _clear_kernel_caches)
flags.on_change("cuda_deterministic", _clear_kernel_caches)


def choose(op: Operator, dtype: DType | None, place: str = "cpu", layout: str = "any") -> list[Kernel]:
    """Return the kernels for a dtype, best first, without the reference."""
    return list(dict.fromkeys(kernel for _, kernel in serving(op, KernelKey(place, dtype, layout))))


def of_call(op: Operator, kernel: Kernel, call: Any) -> Callable[..., Any]:
    """Return a kernel as a function of the arrays; a user's kernel is guarded."""
    bound = functools.partial(kernel, call)
    ours = kernel is op.kernel_rule or getattr(kernel, "__module__", "").startswith("opwright.")
    return bound if ours else compute_wrappers.guarded(op, bound)


def key_of(op: Operator, call: Any, dtype: DType | None) -> KernelKey:
    """Return the key of a call on the CPU, for an operator without a key rule."""
    layout = call.data_format if "data_format" in op.attr_defs else "any"
    return KernelKey("cpu", dtype, layout if layout in LAYOUTS else "any")


def computed_by(op: Operator, call: Any, dtype: Any = None) -> str:
    """Return the name of the computation of an eager call of this first dtype: `compute`, or a registered kernel.

    The `kernel` of the definition is not blamed where there is a `compute`, which serves the dtypes that it does not.
    """
    own = "compute" if op.compute_rule is not None or op.kernel_rule is None else "kernel"
    if not op.cpu_kernels:
        return own
    matches = serving(op, key_of(op, call, dtype))
    return own if not matches or matches[0][1] is op.kernel_rule else kernel_name(op, *matches[0])


def bind(op: Operator, call: Any, dtype: DType | None) -> Callable[..., Any]:
    """Return one function of the arrays that tries the selected kernels in order, the reference last."""
    if op.key_rule is not None:
        return functools.partial(_by_rule, op, call)
    cache_key = (dtype, call.data_format) if "data_format" in op.attr_defs else dtype
    cached: Any = op.kernel_cache.get(cache_key)
    if cached is None:
        cached = op.kernel_cache[cache_key] = tuple(kernel for _, kernel in serving(op, key_of(op, call, dtype)))
    if not cached:
        return op.reference(call)
    before = call.chosen.get(cache_key)
    if before is not None and before[0] is cached:  # replaced when kernels are registered or excluded
        function: Callable[..., Any] = before[1]
        return function
    function = _in_order(op, call, cached)
    call.chosen[cache_key] = cached, function
    return function


def _in_order(op: Operator, call: Any, kernels: Iterable[Kernel]) -> Callable[..., Any]:
    chosen = [of_call(op, kernel, call) for kernel in kernels]
    if len(chosen) == 1:
        (first,) = chosen

        def first_or_reference(*arrays: Any) -> object:
            result = first(*arrays)
            return op.reference(call)(*arrays) if result is NotImplemented else result

        return first_or_reference

    def run(*arrays: Any) -> object:
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


def _by_rule(op: Operator, call: Any, *arrays: Any) -> object:
    """Compute with the kernel for the key that `expected_kernel_key` returns for these arrays."""
    if _key_by_rule is None:
        load("opwright.ops.kernel_selection")
    assert _key_by_rule is not None
    key = _key_by_rule(op, call, arrays)
    if key.place != "cpu":  # eager calls and plans run on the CPU
        key = KernelKey("cpu", key.dtype, key.layout, key.library)
    return _in_order(op, call, [kernel for _, kernel in serving(op, key)])(*arrays)
