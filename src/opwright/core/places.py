"""Places: devices on which tensors are stored and kernels run.

Lives here: the place types and the parser of device names.
Not here: kernels and their selection (ops/, compiler/).
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, NoReturn

from .errors import InvalidArgumentError


class Place:
    """A kind of device and its number. Immutable; equal if both are equal."""

    __slots__ = ("_device_id", "_hash")

    kind: ClassVar[str] = ""
    """The name in kernel keys: "cpu", "gpu", "pinned", "sim"."""

    _device_id: int
    _hash: int

    def __init__(self, device_id: int = 0) -> None:
        if type(self) is Place:
            raise TypeError("Place is abstract: use CPUPlace() or CUDAPlace(0)")
        if isinstance(device_id, bool) or not isinstance(device_id, int) or device_id < 0:
            raise InvalidArgumentError(
                op=type(self).__name__,
                what="this is not a device number",
                found=f"{device_id!r} ({type(device_id).__name__})",
                wanted="an int, 0 or more",
            )
        object.__setattr__(self, "_device_id", device_id)
        object.__setattr__(self, "_hash", hash((self.kind, device_id)))

    @property
    def device_id(self) -> int:
        """The number among devices of this kind, from 0."""
        return self._device_id

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} is immutable: {name!r} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Place):
            return NotImplemented
        return self.kind == other.kind and self._device_id == other._device_id

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._device_id})"

    def __str__(self) -> str:
        return f"{self.kind}:{self._device_id}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._device_id,)


class CPUPlace(Place):
    """The processor this process runs on; there is one.

    >>> CPUPlace() == place_of("/device:CPU:0")
    True
    """

    __slots__ = ()
    kind = "cpu"

    def __init__(self) -> None:
        super().__init__(0)

    def __repr__(self) -> str:
        return "CPUPlace()"

    def __reduce__(self) -> tuple[Any, ...]:
        return CPUPlace, ()


class CUDAPlace(Place):
    """The GPU with this number.

    >>> CUDAPlace(1).kind, CUDAPlace(1).device_id
    ('gpu', 1)
    """

    __slots__ = ()
    kind = "gpu"


class CUDAPinnedPlace(Place):
    """Page-locked memory of the host, which GPUs access without the processor; there is one.

    >>> CUDAPinnedPlace().kind
    'pinned'
    """

    __slots__ = ()
    kind = "pinned"

    def __init__(self) -> None:
        super().__init__(0)

    def __repr__(self) -> str:
        return "CUDAPinnedPlace()"

    def __reduce__(self) -> tuple[Any, ...]:
        return CUDAPinnedPlace, ()


class SimulatedPlace(Place):
    """The simulated asynchronous device with this number: work is executed later, as on a GPU.

    >>> SimulatedPlace(1) == place_of("sim:1")
    True
    """

    __slots__ = ()
    kind = "sim"


_KINDS = {"cpu": CPUPlace, "gpu": CUDAPlace, "cuda": CUDAPlace, "pinned": CUDAPinnedPlace, "sim": SimulatedPlace}
_SINGLE = {CPUPlace: "there is one processor, number 0", CUDAPinnedPlace: "there is one page-locked memory, number 0"}

# "gpu:1", "/device:GPU:1", "/job:localhost/replica:0/task:0/device:GPU:1"; the number is optional.
_NAME = re.compile(r"(?:/job:\w+)?(?:/replica:\d+)?(?:/task:\d+)?(?:/device:|/)?(?P<kind>[A-Za-z]+)(?::(?P<id>\d+))?")


def place_of(name: str | Place) -> Place:
    """Return the place with a device name; a place is returned unchanged.

    name: "cpu", "cpu:0", "gpu:1", "cuda:1", "pinned", "sim:0", "/device:GPU:1" or the long form with job, replica and
    task; any case.
    raises InvalidArgumentError for any other text, and for a processor or page-locked memory other than number 0.

    >>> place_of("gpu:1")
    CUDAPlace(1)
    """
    if isinstance(name, Place):
        return name
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    cls = _KINDS.get(match["kind"].lower()) if match else None
    number = int(match["id"] or 0) if match else 0
    if cls is None or (cls in _SINGLE and number != 0):
        raise InvalidArgumentError(
            op="place_of",
            what="this is not a device name" if cls is None else _SINGLE[cls],
            found=repr(name) if isinstance(name, str) else f"a {type(name).__name__}",
            wanted='"cpu", "gpu:0", "/device:GPU:1" or a place',
        )
    return cls() if cls in _SINGLE else cls(number)
