"""Names of devices, replicas and order that programs mention and that decide nothing here.

Lives here: `DeviceSpec`, `CriticalSection`, `AggregationMethod`, `VariableAggregation`, `VariableSynchronization`.
Not here: devices (tracing/config.py), replicas (distribute/).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Any

from ..core import forks


class VariableSynchronization(enum.Enum):
    """When replicas' variables are synchronized; accepted by `Variable`."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How the values of replicas become one; accepted by `Variable`."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class AggregationMethod:
    """How gradients of one tensor are added; accepted by `gradients`."""

    ADD_N = DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


class CriticalSection:
    """A section that one thread at a time executes; in a `function`, calls run in program order in any case."""

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: Any = None,
    ) -> None:
        self.name = shared_name or name or "critical_section"
        self._lock = forks.lock()

    def execute(self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None) -> Any:
        """Return fn()."""
        with self._lock:
            return fn()


class DeviceSpec:
    """The parts of a device's name: `/job:worker/replica:0/task:1/device:CPU:0`. Instances do not change."""

    __slots__ = ("_parts",)
    _NAMES = ("job", "replica", "task", "device_type", "device_index")

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        numbers = [None if n is None else int(n) for n in (replica, task, device_index)]
        kind = None if device_type is None else device_type.upper()
        self._parts = (None if job is None else str(job), numbers[0], numbers[1], kind, numbers[2])

    job: str | None = property(lambda self: self._parts[0])  # type: ignore[assignment]
    replica: int | None = property(lambda self: self._parts[1])  # type: ignore[assignment]
    task: int | None = property(lambda self: self._parts[2])  # type: ignore[assignment]
    device_type: str | None = property(lambda self: self._parts[3])  # type: ignore[assignment]
    device_index: int | None = property(lambda self: self._parts[4])  # type: ignore[assignment]

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Return the parts of a name. Raises ValueError for unknown attributes."""
        parts: dict[str, Any] = {}
        for piece in filter(None, str(spec or "").split("/")):
            words = piece.split(":")
            if words[0] in ("job", "replica", "task") and len(words) == 2:
                parts[words[0]] = words[1]
            elif re.fullmatch("cpu|gpu|tpu", words[0].lower()) and len(words) == 2:
                parts["device_type"], parts["device_index"] = words[0], None if words[1] == "*" else words[1]
            elif words[0] == "device" and len(words) in (2, 3):
                index = words[2] if len(words) == 3 else "*"
                parts["device_type"], parts["device_index"] = words[1], None if index == "*" else index
                if words[1] == "*":
                    parts["device_type"] = None
            else:
                raise ValueError(f"Unknown attribute '{words[0]}' is encountered while parsing the spec: '{spec}'.")
        return cls(**parts)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Return the parts of another name."""
        return self.from_string(spec)

    def to_string(self) -> str:
        """Return the name."""
        job, replica, task, kind, index = self._parts
        text = "".join(
            f"/{name}:{value}"
            for name, value in (("job", job), ("replica", replica), ("task", task))
            if value is not None
        )
        return text if kind is None else f"{text}/device:{kind}:{'*' if index is None else index}"

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """Return a copy with some parts replaced."""
        return type(self)(**{**dict(zip(self._NAMES, self._parts)), **kwargs})

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """Return this one with the parts of another where that has them."""
        return self.replace(**{n: v for n, v in zip(self._NAMES, dev._parts) if v is not None})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        return f"<DeviceSpec {self.to_string()!r}>"
