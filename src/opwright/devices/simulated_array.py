"""Arrays of the simulated device, for NumPy's functions.

Lives here: `SimulatedArray`; NumPy functions as queued work.  Not here: memory, streams, copies.

A NumPy function on such arrays is queued on the stream; it returns arrays whose shapes and dtypes are known at once, by
running the function on zeros. Functions that only rearrange (reshape, transpose, slices) queue nothing and share
memory. If a shape depends on values (nonzero, unique, a mask as index), or the function rejects zeros, the call waits
for the stream and runs synchronously, as CuPy does with the former.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..core.errors import InternalError, InvalidArgumentError
from ..core.places import Place

if TYPE_CHECKING:
    from .memory import Storage
    from .simulated import SimulatedDeviceContext


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# By name, so that methods and functions of NumPy share the rows.
VIEWS = _words("""
    reshape ravel transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis squeeze expand_dims broadcast_to
    broadcast_arrays atleast_1d atleast_2d atleast_3d split array_split hsplit vsplit dsplit unstack diagonal flip
    fliplr flipud rot90 view real imag
""")
BY_VALUE = _words("""
    nonzero flatnonzero argwhere unique unique_all unique_counts unique_inverse unique_values union1d intersect1d
    setdiff1d setxor1d extract compress trim_zeros bincount histogram histogram_bin_edges repeat tile getitem_mask
    eig eigvals
""")  # shapes depend on values: zeros would yield wrong ones
ABOUT_SHAPES = _words("shape ndim size result_type common_type can_cast iscomplexobj isrealobj")
METHODS = _words("""
    all any argmax argmin argpartition argsort astype byteswap choose clip compress conj conjugate copy cumprod cumsum
    diagonal dot fill flatten max mean min nonzero partition prod put ravel repeat reshape round searchsorted sort
    squeeze std sum swapaxes take trace transpose var view
""")


class SimulatedArray(NDArrayOperatorsMixin):
    """An array in a simulated device's memory, created by its context (`empty`, `to_device`) or by functions of others.

    shape, dtype, strides and the like are known without waiting. `get()`, `np.asarray`, `float`, `int`, `bool`,
    `tolist` and `item` wait for the stream and copy to the host.
    """

    __slots__ = ("__weakref__", "context", "raw", "storage")

    def __init__(self, context: SimulatedDeviceContext, storage: Storage, raw: np.ndarray) -> None:
        self.context, self.storage, self.raw = context, storage, raw

    # --- metadata ---------------------------------------------------------------------------------------------------

    shape = property(lambda self: self.raw.shape)
    dtype = property(lambda self: self.raw.dtype)
    ndim = property(lambda self: self.raw.ndim)
    size = property(lambda self: self.raw.size)
    nbytes = property(lambda self: self.raw.nbytes)
    itemsize = property(lambda self: self.raw.itemsize)
    strides = property(lambda self: self.raw.strides)
    flags = property(lambda self: self.raw.flags)

    @property
    def place(self) -> Place:
        """The device it is on."""
        return self.context.place

    def __len__(self) -> int:
        return len(self.raw)

    def __repr__(self) -> str:
        return f"<SimulatedArray {self.dtype}{list(self.shape)} on {self.place}>"

    # --- values, which wait -----------------------------------------------------------------------------------------

    def get(self, out: np.ndarray | None = None) -> np.ndarray:
        """Return the values on the host, after all work queued before. out: see `SimulatedDeviceContext.to_host`."""
        return self.context.to_host(self, out)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return a host copy, for np.asarray; waits. Raises ValueError if a copy is forbidden."""
        if copy is False:
            raise ValueError(f"an array on {self.place} becomes a host array only by a copy")
        host = self.get()
        return host if dtype is None else host.astype(dtype, copy=False)

    def item(self, *index: Any) -> Any:
        """Return one element as a Python number; waits."""
        return self.get().item(*index)

    def tolist(self) -> object:
        """Return the values as nested lists; waits."""
        return self.get().tolist()

    def tobytes(self) -> bytes:
        """Return the values as bytes in C order; waits."""
        return self.get().tobytes()

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        return operator.index(self.get()[()])

    # --- NumPy's protocols ------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> object:
        out = kwargs.get("out")
        if out is not None and any(isinstance(o, np.ndarray) for o in out):
            raise InvalidArgumentError(
                op=ufunc.__name__, what="a result on the host of arrays on a device", do="get() the result"
            )
        fn = ufunc if method == "__call__" else getattr(ufunc, method)
        results = queue(self.context, fn, inputs, kwargs, ufunc.__name__)
        if out is None:
            return results
        return out[0] if len(out) == 1 else out

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> object:
        if func is np.copyto and isinstance(args[0], np.ndarray):
            target, source, *others = args
            np.copyto(target, source.get(), *others, **kwargs)
            return None
        out = kwargs.get("out")
        results = queue(self.context, func, args, kwargs, func.__name__)
        return results if out is None else out

    def __getitem__(self, key: Any) -> Any:
        keys = tuple(np.asarray(k) if isinstance(k, list) else k for k in (key if isinstance(key, tuple) else (key,)))
        if all(_is_basic(k) for k in keys):
            full = keys if Ellipsis in keys else (*keys, ...)  # so that a single element is a view too
            return SimulatedArray(self.context, self.storage, self.raw[full])
        mask = any(getattr(getattr(k, "dtype", None), "kind", "") == "b" or isinstance(k, bool) for k in keys)
        name = "getitem_mask" if mask else "getitem"
        return queue(self.context, operator.getitem, (self, keys), {}, name)

    def __setitem__(self, key: Any, value: Any) -> None:
        keys = key if isinstance(key, tuple) else (key,)
        if all(_is_basic(k) for k in keys):
            queue(self.context, np.copyto, (self[key], value), {"casting": "unsafe"}, "setitem")
        else:
            queue(self.context, operator.setitem, (self, key, value), {}, "setitem")

    def __iter__(self) -> Iterator[SimulatedArray]:
        return (self[i] for i in range(len(self)))

    @property
    def T(self) -> np.ndarray:
        """The array with its axes reversed; shares memory."""
        return np.transpose(self)

    @property
    def flat(self) -> np.ndarray:
        """The elements as a vector; shares memory if they are contiguous."""
        return np.ravel(self)


def _is_basic(key: Any) -> bool:
    return key is None or key is Ellipsis or isinstance(key, slice | np.integer) or type(key) is int


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np.ndarray, name)

    def method(self: SimulatedArray, *args: Any, **kwargs: Any) -> object:
        results = queue(self.context, function, (self, *args), kwargs, name)
        return results if kwargs.get("out") is None else kwargs["out"]

    method.__name__ = name
    method.__doc__ = f"As numpy.ndarray.{name}, queued on the stream."
    return method


for _name in METHODS:
    setattr(SimulatedArray, _name, _method(_name))


def _part(name: str) -> property:
    part = getattr(np, name)

    def write(self: SimulatedArray, value: Any) -> None:
        np.copyto(part(self), value)

    return property(part, write, doc=f"As numpy.ndarray.{name}: shares memory, may be written.")


for _name in ("real", "imag"):
    setattr(SimulatedArray, _name, _part(_name))


# --- functions as queued work ---------------------------------------------------------------------------------------


def queue(context: SimulatedDeviceContext, fn: Callable[..., Any], args: Any, kwargs: Any, name: str) -> Any:
    """Return the results of fn(*args, **kwargs), which runs later; the module header lists the exceptions."""
    args, kwargs = tuple(args), dict(kwargs)
    if name in VIEWS:
        views = _views(context, fn, args, kwargs)
        if views is not None:
            return views
    if name in BY_VALUE:
        return _run_synchronously(context, fn, args, kwargs)
    constants, constant_kwargs = context.constants(args), context.constants(kwargs)
    with np.errstate(all="ignore"):
        try:
            prototype = fn(*_zeros(args), **_zeros(kwargs))
        except Exception:  # the values decide: a result, or the error itself
            return _run_synchronously(context, fn, args, kwargs)
    if name in ABOUT_SHAPES:
        return prototype
    out = kwargs.get("out")
    if prototype is None or out is not None or name == "at":
        context.stream.submit(_ignoring_warnings(lambda: fn(*constants, **constant_kwargs)), name)
        return None
    leaves = _leaves(prototype)
    if not all(isinstance(leaf, np.ndarray | np.generic) for leaf in leaves):
        return _run_synchronously(context, fn, args, kwargs)  # a Python scalar that depends on values
    results = [context.empty(np.shape(leaf), leaf.dtype) for leaf in leaves]
    targets = [r.raw for r in results]

    def work() -> None:
        computed = _leaves(fn(*constants, **constant_kwargs))
        if [(np.shape(f), f.dtype) for f in computed] != [(t.shape, t.dtype) for t in targets]:
            raise InternalError(
                op=name,
                what="the shape or dtype of its result depends on values, which were not known",
                found=[f"{f.dtype}{list(np.shape(f))}" for f in computed],
                wanted=[f"{t.dtype}{list(t.shape)}" for t in targets],
                do="get() the arrays before",
            )
        for target, value in zip(targets, computed, strict=True):
            np.copyto(target, value)

    context.stream.submit(_ignoring_warnings(work), name)
    return _unflatten(prototype, iter(results))


def _ignoring_warnings(fn: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> None:
        with np.errstate(all="ignore"):
            fn()

    return run


def _zeros(value: Any) -> Any:
    """Return arguments of the same shapes and dtypes, with zeros for device arrays."""
    if isinstance(value, SimulatedArray):
        return np.zeros(value.shape, value.dtype)
    if type(value) in (list, tuple):
        return type(value)(_zeros(v) for v in value)
    if type(value) is dict:
        return {k: _zeros(v) for k, v in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


def _leaves(value: Any) -> list[Any]:
    return [leaf for v in value for leaf in _leaves(v)] if isinstance(value, list | tuple) else [value]


def _unflatten(like: Any, leaves: Iterator[Any]) -> Any:
    if not isinstance(like, list | tuple):
        return next(leaves)
    items = [_unflatten(v, leaves) for v in like]
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def _views(context: SimulatedDeviceContext, fn: Callable[..., Any], args: Any, kwargs: Any) -> object:
    """Return the results as views, if the function only rearranges these arrays; None if it must copy."""
    arrays = [a for a in _leaves(args) if isinstance(a, SimulatedArray)]
    results = fn(*context.raw(args), **context.raw(kwargs))
    views = []
    for leaf in _leaves(results):
        source = next((a for a in arrays if np.may_share_memory(leaf, a.raw)), None)
        if source is None:
            return None
        views.append(SimulatedArray(context, source.storage, leaf))
    return _unflatten(results, iter(views))


def _run_synchronously(context: SimulatedDeviceContext, fn: Callable[..., Any], args: Any, kwargs: Any) -> object:
    """Return the results of a function that needs the values: wait, run it here, copy arrays back to the device."""
    context.stream.synchronize()
    with np.errstate(all="ignore"):
        results = fn(*context.raw(args), **context.raw(kwargs))
    leaves = [_to_device(context, leaf) for leaf in _leaves(results)]
    return _unflatten(results, iter(leaves))


def _to_device(context: SimulatedDeviceContext, leaf: Any) -> object:
    return context.to_device(np.asarray(leaf)) if isinstance(leaf, np.ndarray | np.generic) else leaf
