"""`NamedTuple` as in `typing`, without compiling source: 20 us per class instead of 130.

For modules on the import path of processes that run a model; to type checkers it is `typing.NamedTuple`.

Lives here: the class.  Not here: tuples created in hot paths, as construction takes 0.5 us longer than typing's.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self


class _Fields(type):
    """Metaclass that turns the annotations of a class body into the fields of a tuple."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _Fields:
        fields = tuple(body.get("__annotations__", ()))
        defaults = {field: body[field] for field in fields if field in body}
        body |= {field: property(operator.itemgetter(i)) for i, field in enumerate(fields)}
        body |= {"__slots__": (), "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
        return super().__new__(cls, name, bases, body)


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class NamedTuple(tuple[Any, ...], metaclass=_Fields):
        """The base of tuples with named items."""

        _fields: tuple[str, ...]
        _field_defaults: dict[str, Any]

        def __new__(cls, *items: Any, **named: Any) -> Self:
            if named or len(items) != len(cls._fields):
                items = cls._complete(items, named)
            return tuple.__new__(cls, items)

        @classmethod
        def _complete(cls, items: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
            rest, by_name = cls._fields[len(items) :], cls._field_defaults | named
            if named.keys() <= set(rest) <= by_name.keys() and len(items) <= len(cls._fields):
                return (*items, *[by_name[field] for field in rest])
            values = dict(zip(cls._fields, items))
            repeated, all_items = values.keys() & named.keys(), cls._field_defaults | values | named
            missing = [field for field in cls._fields if field not in all_items]
            unknown = [name for name in named if name not in cls._fields]
            if len(items) > len(cls._fields) or repeated or missing or unknown:
                raise TypeError(
                    f"{cls.__name__}({', '.join(cls._fields)}): {len(items)} positional items; "
                    f"missing {missing}, repeated {sorted(repeated)}, unknown {unknown}"
                )
            return tuple([all_items[field] for field in cls._fields])

        @classmethod
        def _make(cls, items: Iterable[Any]) -> Self:
            return cls(*items)

        def _replace(self, **changed: Any) -> Self:
            return type(self)(**(self._asdict() | changed))

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self))

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in zip(self._fields, self))})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)
