"""Error classes, under the names and codes of TensorFlow's `tf.errors`.

Lives here: the classes and the common layout of error texts (what, where, found, wanted, try).
Not here: the checks that raise them.

An error constructed from keywords reads

    matmul 'y' (head.py:15): inner sizes differ, 128 and 10
      found   a f32[8,128], b f32[10,128]
      wanted  a.shape[-1] == b.shape[-2]
      try     transpose_b=True
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .notebook_reprs import shown_as

__all__ = [
    "ABORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
    "DATA_LOSS",
    "DEADLINE_EXCEEDED",
    "FAILED_PRECONDITION",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "OK",
    "OUT_OF_RANGE",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "UNKNOWN",
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "DefinitionError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OpError",
    "OperatorNotAllowedInGraphError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "SignatureError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
]

# Canonical status codes, the values of `error.code` and `error.error_code`.
OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS = range(7)
PERMISSION_DENIED, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED = range(7, 13)
INTERNAL, UNAVAILABLE, DATA_LOSS, UNAUTHENTICATED = range(13, 17)


def compose(
    what: str,
    *,
    op: str | None = None,
    node: str | None = None,
    at: str | None = None,
    found: object = None,
    wanted: object = None,
    do: str | None = None,
    explain: str | None = None,
) -> str:
    """Compose an error text in the common layout; all parts except `what` are optional."""
    where = " ".join(part for part in (op, f"{node!r}" if node else None, f"({at})" if at else None) if part)
    lines = [f"{where}: {what}" if where else what]
    if found is not None:
        if isinstance(found, Mapping):
            found = ", ".join(f"{k} {v}" for k, v in found.items())
        lines.append(f"  found   {found}")
    if wanted is not None:
        lines.append(f"  wanted  {wanted}")
    if do is not None:
        lines.append(f"  try     {do}")
    if explain is not None:
        lines.append(f"  more    opwright explain {explain}")
    return "\n".join(lines)


class OpError(Exception):
    """Base of all errors raised by execution, tracing and loading of operators.

    message: the complete text; alternatively its parts by keyword: op, node, at: operator, node name, "file:line" of
    the user's code; what: the sentence; found, wanted: values or types (a mapping is printed as "name value" pairs);
    do: the next step for the reader; explain: a stable code that `opwright explain` expands (tools/diagnostics.py lists
    them). TensorFlow's three positional arguments, (node_def, op, message), are accepted; the first two are discarded.
    """

    code, code_name = UNKNOWN, "UNKNOWN"

    def __init__(
        self,
        message: Any = "",
        operation: Any = None,
        text: str | None = None,
        *,
        op: str | None = None,
        node: str | None = None,
        at: str | None = None,
        what: str | None = None,
        found: object = None,
        wanted: object = None,
        do: str | None = None,
        explain: str | None = None,
    ) -> None:
        self.op, self.node, self.at, self.explain = op, node, at, explain
        message = message if text is None else text
        text = compose(what or message, op=op, node=node, at=at, found=found, wanted=wanted, do=do, explain=explain)
        super().__init__(text or f"{type(self).__name__} without a message")

    _repr_html_ = shown_as("error")

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError, if it is another base, would print the repr of its argument

    @property
    def message(self) -> str:
        """The complete error text."""
        return str(self.args[0])

    @property
    def error_code(self) -> int:
        """The number of the status code."""
        return self.code


class InvalidArgumentError(OpError, ValueError):
    """An argument has a wrong dtype, shape, rank or value."""

    code, code_name = INVALID_ARGUMENT, "INVALID_ARGUMENT"


class SignatureError(InvalidArgumentError, TypeError):
    """A call does not match the signature: an unknown or missing argument, or an unsupported dtype.

    TensorFlow raises TypeError for some of these and InvalidArgumentError for others; this is both.
    """


class DefinitionError(InvalidArgumentError):
    """A rule of a user-defined operator violates its contract: it returned a result that its definition does not
    permit.
    """


class NotFoundError(OpError):
    """A requested file, variable or operator does not exist."""

    code, code_name = NOT_FOUND, "NOT_FOUND"


class AlreadyExistsError(OpError):
    """A name is already in use."""

    code, code_name = ALREADY_EXISTS, "ALREADY_EXISTS"


class ResourceExhaustedError(OpError):
    """A limit on memory or work was reached."""

    code, code_name = RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"


class FailedPreconditionError(OpError):
    """The system is not in the state that the call requires, such as an uninitialised variable."""

    code, code_name = FAILED_PRECONDITION, "FAILED_PRECONDITION"


class OutOfRangeError(OpError):
    """An iterator is at its end, or an index is past one."""

    code, code_name = OUT_OF_RANGE, "OUT_OF_RANGE"


class UnimplementedError(OpError):
    """An operator has no kernel for this dtype, place or form."""

    code, code_name = UNIMPLEMENTED, "UNIMPLEMENTED"


class InternalError(OpError):
    """An invariant of this package is violated: a defect of the package, not of the caller's code."""

    code, code_name = INTERNAL, "INTERNAL"


class DataLossError(OpError):
    """A file is damaged."""

    code, code_name = DATA_LOSS, "DATA_LOSS"


class UnknownError(OpError):
    """An error without another class, such as an exception of a user's Python function."""

    code, code_name = UNKNOWN, "UNKNOWN"


class CancelledError(OpError):
    """The operation was cancelled."""

    code, code_name = CANCELLED, "CANCELLED"


class DeadlineExceededError(OpError):
    """The operation exceeded its time limit."""

    code, code_name = DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"


class PermissionDeniedError(OpError):
    """The caller lacks a permission, such as writing to a file."""

    code, code_name = PERMISSION_DENIED, "PERMISSION_DENIED"


class UnauthenticatedError(OpError):
    """The caller is not authenticated."""

    code, code_name = UNAUTHENTICATED, "UNAUTHENTICATED"


class AbortedError(OpError):
    """The operation was aborted by a conflicting one."""

    code, code_name = ABORTED, "ABORTED"


class UnavailableError(OpError):
    """A resource is temporarily unavailable."""

    code, code_name = UNAVAILABLE, "UNAVAILABLE"


# ---- errors that are Python exceptions too ---------------------------------------------------------------------------

# The status of a Python exception raised by user code; the first class that matches.
_STATUS: tuple[tuple[type[Exception], type[OpError]], ...] = (
    (StopIteration, OutOfRangeError),
    (MemoryError, ResourceExhaustedError),
    (NotImplementedError, UnimplementedError),
    (TypeError, InvalidArgumentError),
    (ValueError, InvalidArgumentError),
)


def status_class(error: Exception, default: type[OpError] = UnknownError) -> type[OpError]:
    """Return the error class whose status code corresponds to a Python exception; `default` if there is none."""
    return next((status for python, status in _STATUS if isinstance(error, python)), default)


class OperatorNotAllowedInGraphError(TypeError):
    """Raised by Python operations that require the value of a symbolic tensor."""

    def __str__(self) -> str:
        return super().__str__() or "a Python operation needs the value of a symbolic tensor"


_joined: dict[tuple[type[OpError], type[Exception]], type[OpError]] = {}  # one class per pair


def also(cls: type[OpError], base: type[Exception]) -> type[OpError]:
    """Return the subclass of an error class that is also a `base`; the class itself if it already is.

    raises TypeError if the two have incompatible instance layouts
    """
    if issubclass(cls, base):
        return cls
    result = _joined.get((cls, base))
    if result is None:
        body = {
            "__module__": cls.__module__,
            "__doc__": cls.__doc__,
            "__reduce__": lambda self: (_rebuild, (cls, base, self.message, dict(self.__dict__))),
        }
        result = _joined.setdefault((cls, base), type(cls.__name__, (cls, base), body))
    return result


def _rebuild(cls: type[OpError], base: type[Exception], message: str, state: dict[str, Any]) -> OpError:
    """Unpickle an error of a class created by `also`."""
    error = also(cls, base)(message)
    error.__dict__.update(state)
    return error
