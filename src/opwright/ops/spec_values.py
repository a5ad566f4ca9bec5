"""Values of attributes, and conditions on them, as plain data: the content of specifications.

Lives here: `plain` and `value_of`, the conversion to data and back; `canonical`, the text that compares data;
`implies`, which of two conditions is stricter.
Not here: the conditions themselves (attributes.py), the fields of a specification (specification.py), compatibility
(spec_changes.py).

A condition is a list of its constructor's name and arguments: ["at_least", 0], ["one_of", "a", "b"], ["each", form],
["all", form, form], ["words", "a text"]. None is not a condition.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape
from ..graph import Graph
from ..graph.parser import parse
from ..graph.printer import text
from . import registry

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]


def plain(value: Any) -> Plain:
    """Return an attribute's value as plain data."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, TensorShape):
        return {"shape": None if value.dims is None else [*value.dims]}
    if isinstance(value, np.ndarray):
        return {"array": _array(value)}
    if type(value) is dict:
        return {"dict": [[plain(k), plain(v)] for k, v in value.items()]}
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Graph):
        return {"graph": text(value)}
    name = f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', None)}"
    if _imported(name) is value:
        return {"python": name}
    return {"opaque": f"{type(value).__module__}.{type(value).__qualname__}"}


def _array(value: np.ndarray) -> dict[str, Any]:
    dtype = dtypes.of_numpy(value.dtype)
    if dtype is dtypes.string:
        data: Any = [base64.b64encode(v).decode() for v in value.ravel().tolist()]
    else:
        little = value.astype(value.dtype.newbyteorder("<")) if sys.byteorder == "big" else value
        data = base64.b64encode(np.ascontiguousarray(little).tobytes()).decode()
    return {"dtype": dtype.name, "shape": list(value.shape), "data": data}


def _imported(name: str) -> object:
    """Return the object with this dotted name in a loaded module; None without one."""
    module, _, path = name.rpartition(".")
    while module and module not in sys.modules:
        module, _, part = module.rpartition(".")
        path = f"{part}.{path}"
    value: Any = sys.modules.get(module)
    for part in path.split("."):
        value = getattr(value, part, None)
    return value


def value_of(data: Any) -> object:
    """Return the value that `plain` converted to this data; lists become tuples.

    raises InvalidArgumentError for what `plain` does not make, and for opaque objects, which no text brings back
    """
    if data is None or isinstance(data, (bool, int, float, str)):
        return data
    if isinstance(data, (list, tuple)):
        return tuple(map(value_of, data))
    kind, content = next(iter(data.items())) if isinstance(data, dict) and len(data) == 1 else ("", None)
    try:
        return _READ[kind](content)
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidArgumentError(
            what=f"no value of an attribute as a specification has it{f': {error}' if kind in _READ else ''}",
            found=json.dumps(data)[:200],
            wanted=f"a number, text, list or one of {', '.join(_READ)}",
        ) from None


def _read_array(content: Any) -> np.ndarray:
    dtype, shape, data = dtypes.as_dtype(content["dtype"]), tuple(content["shape"]), content["data"]
    if dtype is dtypes.string:
        array = np.fromiter((base64.b64decode(item, validate=True) for item in data), object, len(data))
    else:
        array = np.frombuffer(base64.b64decode(data, validate=True), dtype.np.newbyteorder("<")).astype(dtype.np)
    array = array.reshape(shape)
    array.setflags(write=False)
    return array


def _read_python(content: str) -> object:
    value = _imported(content)
    if value is None:
        raise ValueError(f"{content} is not there; import the module that defines it")
    return value


_READ: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "complex": lambda parts: complex(float(parts[0]), float(parts[1])),
    "bytes": lambda content: base64.b64decode(content, validate=True),
    "dtype": dtypes.as_dtype,
    "shape": lambda dims: TensorShape(dims),
    "array": _read_array,
    "graph": lambda source: parse(source, registry.get),
    "python": _read_python,
    "dict": lambda items: {value_of(k): value_of(v) for k, v in items},
}


def canonical(value: Any) -> str:
    """Return plain data as text: equal exactly if the data is, with 1, 1.0 and True distinct, 0.0 and -0.0 too."""
    return json.dumps(value, sort_keys=True)


Form = list[Any] | None
MANY = 1000  # integers between bounds that are tried one by one
BOUNDS = ("at_least", "greater_than", "at_most", "less_than", "between")


class Interval(NamedTuple):
    """An interval from low to high, each end closed or open; NaN is in none."""

    low: float = -math.inf
    low_open: bool = False
    high: float = math.inf
    high_open: bool = False


def implies(old: Form, new: Form, integral: bool = False) -> bool | None:
    """Return whether every value that passes `old` passes `new`; None if they cannot be compared.

    integral: the values are integers, so that "greater than 0" is "at least 1"
    """
    old_parts = _parts(old)
    words = any(part[0] == "words" for part in old_parts)  # their meaning is unknown
    results = [_follows(old_parts, part, integral) for part in _parts(new)]
    if False in results and not words:
        return False
    return None if None in results or False in results else True


def _parts(form: Form) -> list[list[Any]]:
    """Return the conditions of a conjunction."""
    if form is None:
        return []
    if form[0] == "all":
        return [part for inner in form[1:] if isinstance(inner, list) and inner for part in _parts(inner)]
    return [form]


def _follows(premises: list[list[Any]], conclusion: list[Any], integral: bool) -> bool | None:
    kind = conclusion[0]
    if any(canonical(conclusion) == canonical(part) for part in premises):
        return True
    choices = [part[1:] for part in premises if part[0] == "one_of"]
    if choices and kind != "words":  # finitely many values: try each
        few = min(choices, key=len)
        tried = [_holds(choice, conclusion) for choice in few]
        return None if None in tried else all(tried)
    if kind in BOUNDS:
        inner, outer = _interval(premises, integral), _interval([conclusion], integral)
        if inner is None or outer is None:
            return None
        return _inside(inner, outer)
    if kind == "finite":
        inner = _interval(premises, integral)
        return None if inner is None else math.isfinite(inner.low) and math.isfinite(inner.high)
    if kind == "length":
        return False  # an equal length was found above
    if kind == "each":
        return implies(
            ["all", *(part[1] for part in premises if part[0] == "each" and len(part) == 2)], conclusion[1], integral
        )
    if kind == "one_of":
        few = _values(_interval(premises, integral), integral)
        return bool(few) and all(_holds(value, conclusion) for value in few)
    return None if premises else False  # words, or an unknown kind


def _interval(parts: list[list[Any]], integral: bool) -> Interval | None:
    """Return the intersection of the bounds among the conditions; None for bounds that are not numbers."""
    interval = Interval()
    for kind, *bounds in parts:
        if kind not in BOUNDS:
            continue
        numbers = [_number(b) for b in bounds]
        if any(n is None for n in numbers) or len(numbers) != (2 if kind == "between" else 1):
            return None
        low: Any = numbers[0] if kind in ("at_least", "greater_than", "between") else None
        high: Any = numbers[-1] if kind in ("at_most", "less_than", "between") else None
        low_open, high_open = kind == "greater_than", kind == "less_than"
        if integral and low is not None and math.isfinite(low):
            low, low_open = (math.floor(low) + 1 if low_open else math.ceil(low)), False
        if integral and high is not None and math.isfinite(high):
            high, high_open = (math.ceil(high) - 1 if high_open else math.floor(high)), False
        if low is not None and (low, low_open) > (interval.low, interval.low_open):
            interval = interval._replace(low=low, low_open=low_open)
        if high is not None and (high, not high_open) < (interval.high, not interval.high_open):
            interval = interval._replace(high=high, high_open=high_open)
    return interval


def _values(interval: Interval | None, integral: bool) -> list[float]:
    """Return the numbers of an interval if they are few; else none."""
    if (
        interval is None
        or interval.low_open
        or interval.high_open
        or not -math.inf < interval.low <= interval.high < math.inf
    ):
        return []
    if integral and interval.high - interval.low < MANY:
        return list(range(int(interval.low), int(interval.high) + 1))
    return [interval.low] if interval.low == interval.high else []


def _inside(inner: Interval, outer: Interval) -> bool:
    """Return whether one interval contains another. Without any bounds, NaN is a value too."""
    if inner == Interval():
        return False
    low = inner.low > outer.low or (inner.low == outer.low and inner.low_open >= outer.low_open)
    high = inner.high < outer.high or (inner.high == outer.high and inner.high_open >= outer.high_open)
    return low and high


def _number(value: Any) -> float | None:
    if isinstance(value, dict) and isinstance(value.get("float"), str):
        try:
            value = float(value["float"])
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    return value


def _holds(value: Any, form: list[Any]) -> bool | None:
    """Return whether one value, as data, passes a condition; None if that is undecidable."""
    kind, *arguments = form
    if kind == "one_of":
        number = _number(value)
        return any(
            canonical(value) == canonical(choice) or (number is not None and number == _number(choice))
            for choice in arguments
        )
    if kind == "length":
        return isinstance(value, list) and [len(value)] == arguments
    if kind in BOUNDS or kind == "finite":
        number = _number(value)
        if number is None:
            return None
        if kind == "finite":
            return math.isfinite(number)
        interval = _interval([form], False)
        if interval is None:
            return None
        above = number > interval.low or (number == interval.low and not interval.low_open)
        return above and (number < interval.high or (number == interval.high and not interval.high_open))
    return None
