"""Named tuples of our own are as those of `typing`."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import Any

import pytest

from opwright.core import named_tuples


class Ours(named_tuples.NamedTuple):
    """A point."""

    x: int
    y: str = "y"
    z: Any = None

    @property
    def twice(self) -> int:
        return 2 * self.x


class Typings(typing.NamedTuple):
    """A point."""

    x: int
    y: str = "y"
    z: Any = None

    @property
    def twice(self) -> int:
        return 2 * self.x


def test_they_do_what_those_of_typing_do() -> None:
    def all_of(cls: Any) -> list[Any]:
        result = cls(1, z=[2])
        match result:
            case cls(x, y=y):
                matched = (x, y)
        return [
            tuple(result),
            result.x,
            result.y,
            result.z,
            result.twice,
            result._replace(y="other"),
            result._asdict(),
            cls._fields,
            cls._field_defaults,
            cls._make("abc"),
            result == (1, "y", [2]),
            hash(cls(1)),
            repr(result)[len(cls.__name__) :],
            copy.copy(result),
            copy.deepcopy(result),
            pickle.loads(pickle.dumps(result)),
            len(result),
            type(pickle.loads(pickle.dumps(result))) is cls,
            cls.__doc__,
            matched,
            [*result],
            cls(1, "b", 3)[1:],
            hasattr(result, "__dict__"),
        ]

    assert all_of(Ours) == all_of(Typings)


def test_what_they_refuse() -> None:
    for cls in (Ours, Typings):
        for items, named in (((), {}), ((1, 2, 3, 4), {}), ((1,), {"x": 1}), ((1,), {"w": 1})):
            with pytest.raises(TypeError):
                cls(*items, **named)  # type: ignore[arg-type]
        with pytest.raises(AttributeError):
            cls(1).x = 2  # type: ignore[misc]
        with pytest.raises(AttributeError):
            cls(1).other = 2  # type: ignore[attr-defined]
