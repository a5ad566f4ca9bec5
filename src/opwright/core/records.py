"""Immutable records with named fields, compared by identity: dataclasses without compiled source, 60 us per class
instead of 500.

Lives here: the decorator `record`. The functions of `dataclasses` (`fields`, `replace`) apply to its classes.
Not here: tuples with named items (named_tuples.py); records that are compared by their fields, which are dataclasses.

For modules that define dozens of them and are imported before a model is first compiled.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NoReturn, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(dataclasses.field,))
def record(cls: _Class) -> _Class:
    """Decorate a class as `dataclass(frozen=True, eq=False)` does; subclasses are decorated as well. Defaults are
    values, no factories."""
    as_dataclass: Any = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    fields = dataclasses.fields(as_dataclass)
    as_dataclass._field_order = tuple(f.name for f in fields if not f.kw_only)
    as_dataclass._field_names = frozenset(f.name for f in fields)
    as_dataclass._field_defaults = {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}
    for method in (__init__, __repr__, __setattr__, __delattr__):
        if method.__name__ not in cls.__dict__:
            setattr(as_dataclass, method.__name__, method)
    result: _Class = as_dataclass
    return result


def __init__(self: Any, *values: Any, **named: Any) -> None:
    order, attributes = self._field_order, self.__dict__
    attributes |= self._field_defaults
    attributes |= zip(order, values)
    attributes |= named
    repeated = named.keys() & order[: len(values)] if named else ()
    if attributes.keys() != self._field_names or len(values) > len(order) or repeated:
        missing, unknown = self._field_names - attributes.keys(), attributes.keys() - self._field_names
        raise TypeError(
            f"{type(self).__name__}({', '.join(order)}): {len(values)} positional values; "
            f"missing {sorted(missing)}, repeated {sorted(repeated)}, unknown {sorted(unknown)}"
        )
    complete = getattr(self, "__post_init__", None)
    if complete is not None:
        complete()


def __repr__(self: Any) -> str:
    parts = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(parts)})"


def __setattr__(self: Any, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
