"""Hints of linear operators: what a caller promises of a matrix, and the name of an operator.

Lives here: their names, their types for signatures, defaults that follow from operands, contradictions.
Not here: what a kind of operators implies (`implied` of each class).
"""

from __future__ import annotations

from typing import Any, TypedDict

from ...core import dtypes

__all__ = ["HINTS", "HintedOperator", "Hints", "all_hold", "hints_of", "or_else"]


class Hints(TypedDict, total=False):
    """The arguments that all kinds of operators have after their own. None: not known; name: by default the class's."""

    is_non_singular: bool | None
    is_self_adjoint: bool | None
    is_positive_definite: bool | None
    is_square: bool | None
    name: str | None


HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")
"""Names of the hints, in the order of TensorFlow's signatures."""


def hints_of(
    is_non_singular: bool | None = None,
    is_self_adjoint: bool | None = None,
    is_positive_definite: bool | None = None,
    is_square: bool | None = None,
    name: str | None = None,
) -> Hints:
    """Return hints by name: TensorFlow's signatures take them by position, too."""
    return Hints(
        is_non_singular=is_non_singular,
        is_self_adjoint=is_self_adjoint,
        is_positive_definite=is_positive_definite,
        is_square=is_square,
        name=name,
    )


def or_else(hints: Hints, **defaults: Any) -> Hints:
    """Return hints, with defaults where the caller passed none."""
    missing = {key: value for key, value in defaults.items() if hints.get(key) is None}
    return {**hints, **missing}  # type: ignore[typeddict-item]


def all_hold(operators: Any, hint: str) -> bool | None:
    """Return True if a hint holds for all operators, None if that is not known."""
    return True if all(getattr(each, hint) for each in operators) else None


class HintedOperator:
    """The dtype, name and hints of a linear operator. Hints are promises of the caller; None: not known."""

    implied: Hints = {}
    """Hints that hold for all operators of the class."""

    def __init__(
        self,
        dtype: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        self._name = name or type(self).__name__
        hints = dict(zip(HINTS, (is_non_singular, is_self_adjoint, is_positive_definite, is_square)))
        for hint, value in self.implied.items():
            self._settle(hints, hint, value, f"a {type(self).__name__}")
        if hints["is_positive_definite"]:
            self._settle(hints, "is_non_singular", True, "a positive definite operator")
        if hints["is_non_singular"] or hints["is_self_adjoint"]:
            self._settle(hints, "is_square", True, "a non-singular or self-adjoint operator")
        self._dtype, self._hints = dtypes.as_dtype(dtype), hints
        self.parameters = parameters or {}

    def _settle(self, hints: dict[str, bool | None], hint: str, value: Any, subject: str) -> None:
        """Set a hint that follows; an error if the caller contradicts it."""
        if hints[hint] not in (None, value):
            raise ValueError(f"{self._name}: {hint}={hints[hint]} was passed, but {subject} has {hint}={value}")
        hints[hint] = value

    @property
    def name(self) -> str:
        """Return its name."""
        return self._name

    @property
    def dtype(self) -> Any:
        """Return the dtype of its elements."""
        return self._dtype

    @property
    def is_non_singular(self) -> bool | None:
        """Return whether it has an inverse, None if that is not known."""
        return self._hints["is_non_singular"]

    @property
    def is_self_adjoint(self) -> bool | None:
        """Return whether it is its own adjoint, None if that is not known."""
        return self._hints["is_self_adjoint"]

    @property
    def is_positive_definite(self) -> bool | None:
        """Return whether the real part of x^H A x is positive for all x, None if that is not known."""
        return self._hints["is_positive_definite"]

    def _must(self, hint: str, call: str) -> None:
        if getattr(self, hint) is False:
            raise NotImplementedError(f"{self.name}: {call} needs an operator with {hint}, which this one is not")
