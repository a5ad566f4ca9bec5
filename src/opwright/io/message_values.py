"""Values of fields in the interface of protocol buffers: repeated numbers and bytes, repeated messages, maps.

Lives here: the containers and their checks. Not here: messages (message.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import numpy as np

from ..core.errors import DataLossError

if TYPE_CHECKING:
    from .message import Message


def damaged(what: str) -> DataLossError:
    return DataLossError(what=f"Error parsing message: {what}")


def checked_bytes(values: list[Any]) -> list[Any]:
    for value in values:
        if not isinstance(value, bytes):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: bytes")
    return values


def checked_floats(values: list[Any]) -> list[Any]:
    for value in values:
        if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: int, float")
    with np.errstate(over="ignore"):
        rounded: list[Any] = np.array([float(v) for v in values]).astype(np.float32).astype(np.float64).tolist()
    return rounded


def checked_ints(values: list[Any]) -> list[Any]:
    result = []
    for value in values:
        if not hasattr(value, "__index__"):
            raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: int")
        number = int(value)
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError(f"Value out of range: {number}")
        result.append(number)
    return result


class RepeatedValues(list[Any]):
    """A list of the values of a field, which checks and converts what is put into it."""

    def __init__(self, check: Callable[[list[Any]], list[Any]], changed: Callable[[], None]) -> None:
        super().__init__()
        self._check, self._changed = check, changed

    def append(self, value: Any) -> None:
        """Append a value. Raises TypeError for one of another type, ValueError for an int outside of int64."""
        self.extend([value])

    def extend(self, values: Iterable[Any]) -> None:
        """Append values."""
        super().extend(self._check(list(values)))
        self._changed()

    def insert(self, index: SupportsIndex, value: Any) -> None:
        """Insert a value."""
        super().insert(index, self._check([value])[0])
        self._changed()

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, self._check(list(value)) if isinstance(index, slice) else self._check([value])[0])
        self._changed()

    def __iadd__(self, values: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(values)
        return self

    def __reduce__(self) -> Any:
        return list, (list(self),)


class RepeatedMessages(list[Any]):
    """A list of messages of one class."""

    def __init__(self, kind: type[Message], changed: Callable[[], None]) -> None:
        super().__init__()
        self._kind, self._changed = kind, changed

    def add(self, **kwargs: Any) -> Any:
        """Append a new message, and return it."""
        self.append(self._kind(**kwargs))
        return self[-1]

    def append(self, message: Any) -> None:
        """Append a message. Raises TypeError for one of another class."""
        if type(message) is not self._kind:
            raise TypeError(f"expected a {self._kind.__name__}, found {type(message).__name__}")
        super().append(message)
        self._changed()

    def extend(self, messages: Iterable[Any]) -> None:
        """Append messages."""
        for message in messages:
            self.append(message)


class MessageMap(dict[str, Any]):
    """Messages by name; reading a name that is absent creates an empty message."""

    def __init__(self, kind: type[Message], changed: Callable[[], None]) -> None:
        super().__init__()
        self._kind, self._changed = kind, changed

    def __missing__(self, name: str) -> Any:
        message = self._kind()
        self._store(name, message)
        return message

    def _store(self, name: Any, message: Any) -> None:
        if isinstance(name, bytes):
            name = name.decode()
        if not isinstance(name, str):
            raise TypeError(f"{name!r} has type {type(name).__name__}, but expected one of: bytes, str")
        if type(message) is not self._kind:
            raise TypeError(f"expected a {self._kind.__name__}, found {type(message).__name__}")
        super().__setitem__(name, message)
        self._changed()

    def __setitem__(self, name: str, message: Any) -> None:
        raise ValueError(
            f"May not set values directly, call my_map[key].foo = 5 or my_map[key].CopyFrom({self._kind.__name__}(...))"
        )

    def get_or_create(self, name: str) -> Any:
        """Return the message of a name, a new one if there is none."""
        return self[name]
