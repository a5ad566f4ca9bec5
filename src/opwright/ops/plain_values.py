"""Attribute values as what JSON holds, and back, with nothing lost.

Lives here: `plain` and `value_of`.  Not here: what a specification consists of (specification.py).

None, booleans, integers, finite floats and text stand for themselves; tuples and lists are lists (attributes hold
tuples). Everything else is an object with one key that says what it is:

    {"float": "nan"}  {"complex": ["1.0", "-0.0"]}  {"bytes": base64}  {"dtype": "float32"}  {"shape": [null, 2]}
    {"array": {"dtype": "float32", "shape": [2], "data": base64}}  {"graph": text}  {"python": "module.name"}
    {"dict": [[key, value], ...]}

A Python object with no name to import it by is {"opaque": its type}: the same on every run, which `repr` is not.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError
from ..core.shapes import TensorShape
from ..graph import Graph
from ..graph.parser import parse
from ..graph.printer import text
from . import registry


def plain(value: Any) -> Any:
    """`value` in the types JSON has; equal values give equal results in every process."""
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


def _imported(name: str) -> Any:
    """What a dotted name of a loaded module means; None for nothing."""
    module, _, rest = name.rpartition(".")
    while module and module not in sys.modules:
        module, _, part = module.rpartition(".")
        rest = f"{part}.{rest}"
    found: Any = sys.modules.get(module)
    for part in rest.split("."):
        found = getattr(found, part, None)
    return found


def value_of(found: Any) -> Any:
    """The value that `plain` made this of; lists come back as tuples.

    raises InvalidArgumentError for what `plain` does not make, and for opaque objects, which no text brings back
    """
    if found is None or isinstance(found, (bool, int, float, str)):
        return found
    if isinstance(found, (list, tuple)):
        return tuple(map(value_of, found))
    kind, content = next(iter(found.items())) if isinstance(found, dict) and len(found) == 1 else ("", None)
    try:
        return _READ[kind](content)
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidArgumentError(
            what=f"no value of an attribute as a specification has it{f': {error}' if kind in _READ else ''}",
            found=json.dumps(found)[:200],
            wanted=f"a number, text, list or one of {', '.join(_READ)}",
        ) from None


def _read_array(content: Any) -> np.ndarray:
    dtype, shape, data = dtypes.as_dtype(content["dtype"]), tuple(content["shape"]), content["data"]
    if dtype is dtypes.string:
        array = np.empty(len(data), object)
        array[:] = [base64.b64decode(item, validate=True) for item in data]
    else:
        array = np.frombuffer(base64.b64decode(data, validate=True), dtype.np.newbyteorder("<")).astype(dtype.np)
    array = array.reshape(shape)
    array.setflags(write=False)
    return array


def _read_python(content: str) -> Any:
    found = _imported(content)
    if found is None:
        raise ValueError(f"{content} is not there; import the module that defines it")
    return found


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
    """Plain data as one text: equal exactly where the data is, 1 and 1.0 and True apart, -0.0 and 0.0 too."""
    return json.dumps(value, sort_keys=True)
