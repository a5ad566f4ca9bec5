"""JSON files of saved models: bounded reads, atomic writes, typed look-ups, and Python values as JSON.

Lives here: the files' reading and writing, the producer; the table of encodings of arguments, defaults and results of
saved functions, and of plain attributes.
Not here: atomic replacement (core/files.py), tensors with values (safetensors.py), objects and variables
(object_graph.py).

    None, True, 1, "text"            unchanged
    1.5, nan                         {"float": 1.5}, {"float": "nan"}
    b"..", 1+2j                      {"bytes": base64}, {"complex": [1.0, 2.0]}
    list, tuple                      {"list": [...]}, {"tuple": [...]}
    dict and other mappings          {"dict": [[key, value], ...]}, in order
    namedtuple                       {"namedtuple": "Point", "fields": ["x", "y"], "items": [...]}
    attrs class                      {"attrs": "module.Class", "fields": [...], "items": [...]}
    DType, TensorShape               {"dtype": "float32"}, {"shape": [2, null]}, {"shape": null}
    TensorSpec                       {"tensor": "f32[2,?]", "name": "x"}
    other TypeSpecs                  {"spec": "module.Class", "parts": [...]}, the result of `_serialize`
    slice, Ellipsis                  {"slice": [start, stop, step]}, {"ellipsis": true}
    Variable                         {"variable": 7}, its number among the saved objects

Loading creates namedtuple classes; attrs classes and user-written TypeSpecs must be imported already.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..core import __version__
from ..core.dtypes import DType, as_dtype
from ..core.errors import DataLossError, NotFoundError
from ..core.files import replacing
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec, spec_of_short
from ..core.structures import is_namedtuple
from ..core.type_spec import TypeSpec
from ..eager.variable import Variable
from ..ops.tensor import Tensor

if TYPE_CHECKING:
    from ..nn.configuration import JsonValue

T = TypeVar("T")
D = TypeVar("D")


MAX_JSON = 1 << 28  # bytes of a manifest or an index; large models need tens of kilobytes


def producer() -> str:
    """Return the version of this package, for people who inspect a file."""
    return __version__


def sync_folder(path: str) -> None:
    """Flush renames in a folder to disk, if the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(path or ".", os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: str, content: Any) -> None:
    """Replace a file by `content` as JSON, atomically."""
    with replacing(path, sync=True) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def read_bytes(path: str, limit: int, what: str) -> bytes:
    """Return the content of a file. Raises NotFoundError if it is missing, DataLossError if it exceeds `limit`."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise DataLossError(what=f"{path} has {size} bytes, too many for {what}", wanted=f"at most {limit}")
            return file.read(limit + 1)
    except FileNotFoundError:
        raise NotFoundError(what=f"there is no file {path}", wanted=what) from None
    except OSError as error:
        raise NotFoundError(what=f"cannot read {path}: {error.strerror or error}", wanted=what) from None


def read_json(path: str, what: str) -> dict[str, Any]:
    """Return the JSON object in an untrusted file. Raises NotFoundError, or DataLossError if it is damaged."""
    source = read_bytes(path, MAX_JSON, what)
    try:
        content = json.loads(source, object_pairs_hook=without_duplicates, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise DataLossError(what=f"{path} is damaged: not JSON as wanted: {str(error)[:200]}", wanted=what) from None
    if not isinstance(content, dict):
        raise DataLossError(what=f"{path} is damaged: no JSON object", wanted=what)
    return content


def without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object as a dictionary. Raises ValueError if two have one name."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name is there twice")
    return result


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def plain_name(name: Any, where: str) -> str:
    """Return `name` if it names a file in the same folder. Raises DataLossError for paths and special names."""
    fine = isinstance(name, str) and 0 < len(name) <= 255 and name.isprintable() and not name.startswith(".")
    if not fine or any(sign in name for sign in '/\\:*?"<>|'):
        raise DataLossError(what=f"{where}: {str(name)[:60]!r} is not the name of a file beside it")
    result: str = name
    return result


class JsonReader:
    """Typed look-ups in untrusted JSON, with errors that name the file. where: its path."""

    def __init__(self, where: str) -> None:
        self.where = where

    def fail(self, what: str, found: Any = None) -> DataLossError:
        """Return the error to raise."""
        shown = None if found is None else repr(found)[:80]
        return DataLossError(what=f"{self.where} is damaged: {what}", found=shown)

    def of(self, value: Any, kind: type[T], what: str) -> T:
        """Return `value`, checked to be of exactly this type."""
        if type(value) is not kind:
            raise self.fail(f"{what} is not of type {kind.__name__}", value)
        result: T = value
        return result

    @overload
    def get(self, record: Any, key: str, kind: type[T]) -> T: ...
    @overload
    def get(self, record: Any, key: str, kind: type[T], default: D) -> T | D: ...
    def get(self, record: Any, key: str, kind: type[T], default: object = ...) -> object:
        """Return a field of a record. Raises DataLossError if it is missing without a default, or of another type."""
        if type(record) is not dict:
            raise self.fail(f"no object around {key!r}", record)
        if key not in record:
            if default is ...:
                raise self.fail(f"{key!r} is missing", record)
            return default
        return self.of(record[key], kind, repr(key))

    def index(self, value: Any, items: Sequence[Any], what: str) -> int:
        """Return `value`, checked to be an index into `items`."""
        if type(value) is not int or not 0 <= value < len(items):
            raise self.fail(f"{what}: there are {len(items)}, none has this number", value)
        return value

    def each(self, record: Any, key: str, read: Callable[[Any], T]) -> list[T]:
        """Return the items of a list field, each converted by `read`."""
        return [read(item) for item in self.get(record, key, list)]


MAX_DEPTH = 64


class NotEncodable(TypeError):
    """Raised for a value without an encoding."""


def encode(value: Any, variable: Callable[[Variable], int] | None = None, depth: int = 0) -> JsonValue:
    """Return the JSON form of a value. variable: returns the number of a saved variable.

    Tensors are encoded as their types. raises NotEncodable for a value without an encoding
    """
    if depth > MAX_DEPTH:
        raise NotEncodable(f"it is nested deeper than {MAX_DEPTH}")
    if value is None or type(value) is bool or type(value) is str:
        return value
    if type(value) is int:
        if value.bit_length() > 1 << 12:
            raise NotEncodable("an integer of more than 4096 bits")
        return value
    for kinds, encoder in _ENCODE:
        if isinstance(value, kinds):
            encoded: JsonValue = encoder(value, lambda v: encode(v, variable, depth + 1))
            if encoded is not None:
                return encoded
    if isinstance(value, Variable) and variable is not None:
        return {"variable": variable(value)}
    attributes = getattr(type(value), "__attrs_attrs__", None)
    if isinstance(value, type) or attributes is None:
        raise NotEncodable(f"a value of type {type(value).__name__}")
    fields = [a.name for a in attributes]
    items = [encode(getattr(value, f), variable, depth + 1) for f in fields]
    return {"attrs": _path(type(value)), "fields": fields, "items": items}


def _encode_tuple(value: Any, inner: Callable[[Any], Any]) -> dict[str, Any]:
    items = [inner(v) for v in value]
    if is_namedtuple(type(value)):
        return {"namedtuple": type(value).__name__, "fields": list(value._fields), "items": items}
    return {"tuple": items}


def _encode_spec(spec: Any, inner: Callable[[Any], Any]) -> dict[str, Any]:
    return {"spec": _path(type(spec)), "parts": [inner(v) for v in spec._serialize()]}


def _encode_tensor(value: Any, inner: Callable[[Any], Any]) -> dict[str, Any]:
    name = {"name": value.name} if isinstance(value, TensorSpec) and value.name is not None else {}
    return {"tensor": TensorSpec(value.shape, value.dtype).short(), **name}


_ENCODE: tuple[tuple[Any, Callable[[Any, Callable[[Any], Any]], Any]], ...] = (
    # types             encoder: takes the value and a function that encodes its items
    ((float,), lambda v, _: {"float": v if math.isfinite(v) else repr(float(v))}),
    ((bytes,), lambda v, _: {"bytes": base64.b64encode(v).decode()}),
    ((complex,), lambda v, _: {"complex": [repr(v.real), repr(v.imag)]}),
    ((list,), lambda v, inner: {"list": [inner(x) for x in v]}),
    ((tuple,), _encode_tuple),
    ((Mapping,), lambda v, inner: {"dict": [[inner(k), inner(x)] for k, x in v.items()]}),
    ((DType,), lambda v, _: {"dtype": v.name}),
    ((TensorShape,), lambda v, _: {"shape": None if v.dims is None else list(v.dims)}),
    ((TensorSpec, Tensor), _encode_tensor),
    ((TypeSpec,), _encode_spec),
    ((slice,), lambda v, inner: {"slice": [inner(v.start), inner(v.stop), inner(v.step)]}),
    ((type(...),), lambda v, _: {"ellipsis": True}),
)


def is_plain(value: Any) -> bool:
    """Return whether a value can be encoded and contains no tensor or variable."""
    if isinstance(value, (Tensor, Variable)):
        return False
    if isinstance(value, Mapping):
        return all(map(is_plain, value.values())) and all(type(k) in (str, int, bool, float, bytes) for k in value)
    if type(value) in (list, tuple) or is_namedtuple(type(value)):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, bytes, complex, DType, TensorShape, TensorSpec))


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


class Decoder:
    """A decoder of JSON forms. variable: returns the variable with a number."""

    def __init__(self, reader: JsonReader, variable: Callable[[Any], Variable] | None = None) -> None:
        self.reader, self.variable = reader, variable

    def decode(self, form: Any, depth: int = 0) -> Any:
        """Return the value of a form. Raises DataLossError for an invalid one, NotFoundError for an unknown class."""
        if form is None or type(form) in (bool, int, str):
            return form
        if type(form) is not dict or depth > MAX_DEPTH:
            raise self.reader.fail("a value has an unknown encoding", form)
        for key, read in _DECODE.items():
            if key in form:
                try:
                    return read(self, form, depth + 1)
                except (ValueError, TypeError, OverflowError) as error:
                    raise self.reader.fail(f"a value of kind {key!r} cannot be read: {str(error)[:200]}") from None
        raise self.reader.fail("a value is of an unknown kind", form)

    def _items(self, form: Any, key: str, depth: int) -> list[Any]:
        return [self.decode(item, depth) for item in self.reader.get(form, key, list)]

    def _float(self, form: Any, depth: int) -> float:
        return _real(form["float"])

    def _bytes(self, form: Any, depth: int) -> bytes:
        return base64.b64decode(form["bytes"], validate=True)

    def _complex(self, form: Any, depth: int) -> complex:
        real, imaginary = self.reader.get(form, "complex", list)
        return complex(_real(real), _real(imaginary))

    def _list(self, form: Any, depth: int) -> list[Any]:
        return self._items(form, "list", depth)

    def _tuple(self, form: Any, depth: int) -> tuple[Any, ...]:
        return tuple(self._items(form, "tuple", depth))

    def _dict(self, form: Any, depth: int) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for pair in self.reader.get(form, "dict", list):
            if type(pair) is not list or len(pair) != 2:
                raise self.reader.fail("a dictionary has an entry that is not a pair", pair)
            result[self.decode(pair[0], depth)] = self.decode(pair[1], depth)
        return result

    def _namedtuple(self, form: Any, depth: int) -> object:
        name, fields = self.reader.get(form, "namedtuple", str), self.reader.get(form, "fields", list)
        items = self._items(form, "items", depth)
        if len(items) != len(fields) or not all(type(f) is str for f in fields):
            raise self.reader.fail("a namedtuple has other fields than items", form)
        return namedtuple_of(name, tuple(fields))(*items)

    def _attrs(self, form: Any, depth: int) -> object:
        path, fields = self.reader.get(form, "attrs", str), self.reader.get(form, "fields", list)
        cls = _imported_class(path, lambda c: hasattr(c, "__attrs_attrs__"))
        if cls is None:
            raise _missing_class(path)
        return cls(**dict(zip(fields, self._items(form, "items", depth))))

    def _dtype(self, form: Any, depth: int) -> DType:
        return as_dtype(self.reader.get(form, "dtype", str))

    def _shape(self, form: Any, depth: int) -> TensorShape:
        return TensorShape(form["shape"])

    def _tensor(self, form: Any, depth: int) -> TensorSpec:
        spec = spec_of_short(self.reader.get(form, "tensor", str))
        name = form.get("name")
        return TensorSpec(spec.shape, spec.dtype, None if name is None else self.reader.of(name, str, "a name"))

    def _spec(self, form: Any, depth: int) -> TypeSpec:
        path = self.reader.get(form, "spec", str)
        cls = _imported_class(path, lambda c: issubclass(c, TypeSpec))
        if cls is None:
            raise _missing_class(path)
        result: TypeSpec = cls._deserialize(tuple(self._items(form, "parts", depth)))
        return result

    def _slice(self, form: Any, depth: int) -> slice:
        return slice(*self._items(form, "slice", depth))

    def _ellipsis(self, form: Any, depth: int) -> object:
        return ...

    def _variable(self, form: Any, depth: int) -> Variable:
        if self.variable is None:
            raise self.reader.fail("a variable stands where none may")
        return self.variable(form["variable"])


_DECODE: dict[str, Callable[[Decoder, Any, int], Any]] = {
    "float": Decoder._float,
    "bytes": Decoder._bytes,
    "complex": Decoder._complex,
    "list": Decoder._list,
    "tuple": Decoder._tuple,
    "dict": Decoder._dict,
    "namedtuple": Decoder._namedtuple,
    "attrs": Decoder._attrs,
    "dtype": Decoder._dtype,
    "shape": Decoder._shape,
    "tensor": Decoder._tensor,
    "spec": Decoder._spec,
    "slice": Decoder._slice,
    "ellipsis": Decoder._ellipsis,
    "variable": Decoder._variable,
}


def _real(value: Any) -> float:
    if type(value) is str and len(value) > 40:
        raise ValueError("no number")
    return float(value)


_namedtuples: dict[tuple[str, tuple[str, ...]], type[Any]] = {}


def namedtuple_of(name: str, fields: tuple[str, ...]) -> type[Any]:
    """Return the namedtuple class of this name and these fields, cached. Raises ValueError for invalid names."""
    cls = _namedtuples.get((name, fields))
    if cls is None:
        factory: Any = collections.namedtuple  # untyped: the names are only known at run time
        cls = factory(name, fields)
        if len(_namedtuples) < 1024:
            _namedtuples[name, fields] = cls
    return cls


def _imported_class(path: str, fits: Callable[[type], bool]) -> type[Any] | None:
    """Return a class that is already imported and satisfies `fits`; never imports modules named by a file."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        candidate: Any = sys.modules.get(".".join(parts[:cut]))
        if candidate is None:
            continue
        for part in parts[cut:]:
            candidate = vars(candidate).get(part) if hasattr(candidate, "__dict__") else None
        if isinstance(candidate, type) and fits(candidate):
            return candidate
    return _find_type_spec(path)


def _find_type_spec(path: str) -> type[TypeSpec] | None:
    """Return a TypeSpec that is defined where it cannot be looked up, such as in a function."""
    waiting, seen = [TypeSpec], set()
    while waiting:
        cls: Any = waiting.pop()
        for sub in type.__subclasses__(cls):
            if sub not in seen:
                seen.add(sub)
                waiting.append(sub)
                if _path(sub) == path:
                    return sub
    return None


def _missing_class(path: str) -> NotFoundError:
    return NotFoundError(
        what=f"the saved model uses the class {path[:200]}, which is not imported here",
        do=f"import {path.rpartition('.')[0][:200]} before loading",
    )
