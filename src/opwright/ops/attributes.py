"""Attributes of operators: their declaration, checking, and the checks users compose (`ow.attr.at_least(0)`).

Lives here: `Attr`, `Check` and the check constructors.  Not here: where attributes are stored (call.py).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, get_args, overload

import numpy as np

from ..core.dtypes import DType, as_dtype
from ..core.named_tuples import NamedTuple
from ..core.shapes import TensorShape, as_shape
from ..graph import Graph

T = TypeVar("T")
V = TypeVar("V")


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Any = _Required()


class Check(NamedTuple):
    """A condition on an attribute's value: `holds(value)`, and its description `wanted` for the error.

    form: the condition as data, which compares two versions of an operator: the constructor's name and its arguments.
    Conditions without one, such as `satisfies`, are compared by their description.
    """

    wanted: str
    holds: Callable[[Any], bool]
    form: tuple[Any, ...] = ()

    def __and__(self, other: Check) -> Check:
        both = f"{self.wanted} and {other.wanted}"
        return Check(
            both, lambda v: self.holds(v) and other.holds(v), ("all", self.canonical_form, other.canonical_form)
        )

    @property
    def canonical_form(self) -> tuple[Any, ...]:
        """The form, or the description if there is none."""
        return self.form or ("words", self.wanted)


def at_least(low: float) -> Check:
    """Return the check value >= low."""
    return Check(f"at least {low}", lambda v: v >= low, ("at_least", low))


def greater_than(low: float) -> Check:
    """Return the check value > low."""
    return Check(f"greater than {low}", lambda v: v > low, ("greater_than", low))


def at_most(high: float) -> Check:
    """Return the check value <= high."""
    return Check(f"at most {high}", lambda v: v <= high, ("at_most", high))


def less_than(high: float) -> Check:
    """Return the check value < high."""
    return Check(f"less than {high}", lambda v: v < high, ("less_than", high))


def between(low: float, high: float) -> Check:
    """Return the check low <= value <= high."""
    return Check(f"between {low} and {high}", lambda v: low <= v <= high, ("between", low, high))


def one_of(*choices: Any) -> Check:
    """Return the check that the value is one of the choices; a single list, tuple or set of choices is accepted too."""
    if len(choices) == 1 and isinstance(choices[0], (list, tuple, set, frozenset)):
        choices = tuple(choices[0])
    return Check(f"one of {', '.join(map(repr, choices))}", lambda v: v in choices, ("one_of", *choices))


def length(n: int) -> Check:
    """Return the check that a sequence has n items."""
    return Check(f"{n} items", lambda v: len(v) == n, ("length", n))


def each(check: Check) -> Check:
    """Return the check that every item of a sequence passes `check`."""
    return Check(f"every item {check.wanted}", lambda v: all(map(check.holds, v)), ("each", check.canonical_form))


def finite() -> Check:
    """Return the check that a number is neither NaN nor infinite."""
    return Check("finite", lambda v: bool(np.isfinite(v)), ("finite",))


def satisfies(description: str, holds: Callable[[Any], bool]) -> Check:
    """Return a check with a description of your own; two of them are equal if their descriptions are."""
    return Check(description, holds)


def _to_int(value: Any) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError
    return int(value.__index__())


def _to_float(value: Any) -> float:
    if isinstance(value, (bool, np.bool_, str, bytes)):
        raise TypeError
    return float(value)


def _to_bool(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError


def _to_str(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return value
    raise TypeError


def _to_bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(memoryview(value))


def _to_array(value: Any) -> np.ndarray:
    array = np.array(value, copy=True)
    if array.dtype.kind in "SU":  # strings are arrays of bytes
        items = [v.encode() if isinstance(v, str) else v for v in array.ravel().tolist()]
        array = np.array(items, object).reshape(array.shape)
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    array.setflags(write=False)
    return array


def _to_graph(value: Any) -> Graph:
    if isinstance(value, Graph):
        return value
    raise TypeError


_CONVERT: dict[Any, Callable[[Any], Any]] = {
    int: _to_int,
    float: _to_float,
    bool: _to_bool,
    str: _to_str,
    bytes: _to_bytes,
    DType: as_dtype,
    TensorShape: as_shape,
    np.ndarray: _to_array,
    Graph: _to_graph,
    object: lambda value: value,
}


class Attr(Generic[T]):
    """An attribute of an operator: static, known when the operator is called.

    type: int, float, bool, str, bytes, DType, TensorShape, Graph, np.ndarray, object, or [T] for a list of T (stored as
    a tuple). default: without one the attribute is required; None is a valid default of any type and means "unset".
    check: a `Check` that the value must pass. since: the operator version that introduced the attribute; its default,
    which is then required, is the behaviour of earlier versions.
    raises TypeError for an unknown type; the definition raises TypeError or ValueError for an invalid default
    """

    __slots__ = ("check", "default", "default_error", "doc", "name", "since", "type")
    default_error: TypeError | ValueError | None  # why the default is not allowed; the operator's check raises it

    @overload
    def __init__(
        self: Attr[tuple[V, ...] | None],
        type: list[builtins.type[V]] | builtins.type[list[V]],
        *,
        default: None,
        check: Check | None = None,
        since: int = 1,
        doc: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: Attr[tuple[V, ...]],
        type: list[builtins.type[V]] | builtins.type[list[V]],
        *,
        default: Any = ...,
        check: Check | None = None,
        since: int = 1,
        doc: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: Attr[V | None],
        type: builtins.type[V],
        *,
        default: None,
        check: Check | None = None,
        since: int = 1,
        doc: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: Attr[V],
        type: builtins.type[V],
        *,
        default: Any = ...,
        check: Check | None = None,
        since: int = 1,
        doc: str = "",
    ) -> None: ...
    def __init__(
        self, type: Any, *, default: Any = REQUIRED, check: Check | None = None, since: int = 1, doc: str = ""
    ) -> None:
        item = type[0] if isinstance(type, list) and len(type) == 1 else type
        if isinstance(type, builtins.type(list[int])):  # list[int] is an alias of [int]
            item = get_args(type)[0]
            type = [item]
        if isinstance(item, list) or item not in _CONVERT:
            types = ", ".join(t.__name__ for t in _CONVERT)
            raise TypeError(f"an attribute's type is one of {types}, or [T]; found {type!r}")
        self.type, self.check, self.since, self.doc = type, check, since, doc
        self.name = ""
        self.default, self.default_error = default, None
        if default is not REQUIRED and default is not None:
            try:
                self.default = self.convert(default)
            except (TypeError, ValueError) as error:
                self.default_error = error

    if TYPE_CHECKING:  # in a rule `op.alpha` is not this declaration but the value

        @overload
        def __get__(self, instance: None, owner: builtins.type) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: builtins.type) -> T: ...
        def __get__(self, instance: object, owner: builtins.type) -> object: ...

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is REQUIRED

    def type_name(self) -> str:
        """Return the type in words, such as int or list of int."""
        return f"list of {self.type[0].__name__}" if isinstance(self.type, list) else self.type.__name__

    def convert(self, value: Any) -> Any:
        """Return `value` converted to the attribute's type. Raises TypeError (wrong type) or ValueError (fails the
        check).
        """
        if value is None and self.default is None:
            return None
        try:
            if isinstance(self.type, list):
                if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
                    raise TypeError
                value = tuple(map(_CONVERT[self.type[0]], value))
            else:
                value = _CONVERT[self.type](value)
        except (TypeError, ValueError, AttributeError, OverflowError):
            raise TypeError(f"{self.type_name()}") from None
        if self.check is not None and not self.check.holds(value):
            raise ValueError(self.check.wanted)
        return value
