"""Merging of the variables of two branches: constants, outputs of the node, and errors.

Lives here: the comparison of a variable's two values leaf by leaf, and the errors that name the variable.
Not here: the node (conditionals.py), loops (loops.py).
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ...autograph.handlers import Unbound, is_flag, is_return_flag, is_returned_value
from ...core import nest
from ...core.errors import compose
from ...core.introspection import users_line
from ...ops.tensor import TensorLike
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace

NUMBERS = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)


def refuse(kind: type[Exception], text: str, **parts: Any) -> NoReturn:
    """Raise an error about a variable, with the user's line."""
    raise kind(compose(text, at=users_line(), **parts))


def is_value(leaf: Any) -> bool:
    """Return whether a leaf can be converted to a tensor."""
    return isinstance(leaf, (TensorLike, *NUMBERS))


def leaves_of(value: Any) -> list[Any]:
    """Return the leaves of a variable's value; composites are flattened."""
    return nest.flatten(value, expand_composites=True)


def described(name: str) -> str:
    """Return the description of a variable for error messages."""
    if is_returned_value(name):
        return "the return value"
    return repr(name)


def fill(name: str, names: tuple[str, ...], value: Any, branch: str) -> bool:
    """Return whether a placeholder may represent, in one branch, a variable that only the other branch defines.

    This holds for a returned value if a flag tells whether it is set. Otherwise raises ValueError, as TensorFlow does.
    """
    if is_returned_value(name):
        if any(is_return_flag(n) for n in names):
            return True
        refuse(
            ValueError,
            f"A value must also be returned from the {branch} branch. If a value is returned from one branch of a "
            f"conditional a value must be returned from all branches: the {branch} branch must also have a return "
            "statement.",
        )
    if is_flag(name):
        return True
    refuse(
        ValueError,
        f"{name!r} must also be initialized in the {branch} branch",
        found=f"{name} is assigned in the other branch only, and read afterwards",
        do=f"give {name} a value before the if statement, or in both branches",
    )


def same_structure(name: str, main: Any, other: Any, text: str) -> None:
    """Raise TypeError naming the variable if two values have different structures."""
    try:
        nest.assert_same_structure(main, other, expand_composites=True)
    except (ValueError, TypeError) as error:
        refuse(TypeError, f"{described(name)} {text}:\n\n{error}")


class Leaf:
    """One leaf of a merged variable: a value common to both branches, or their tensors."""

    __slots__ = ("constant", "main", "other")

    def __init__(self, constant: Any = None, main: Any = None, other: Any = None) -> None:
        self.constant, self.main, self.other = constant, main, other


def merge_leaf(name: str, main: Any, other: Any, main_trace: Any, other_trace: Any) -> Leaf:
    """Merge two leaves. Raises ValueError or TypeError naming the variable if they cannot be merged."""
    if main is other and not _of(main, main_trace):
        return Leaf(constant=main)
    plain = type(main) is type(other) and isinstance(main, (bool, int, float, str, bytes))
    if plain and (main == other or (main != main and other != other)):
        return Leaf(constant=main)
    for value, branch in ((main, "main"), (other, "else")):
        if value is None:
            refuse(
                ValueError,
                f"{described(name)} is None at the end of the {branch} branch.",
                do="give it values of one type in both branches",
            )
    if isinstance(main, Unbound) or isinstance(other, Unbound):
        return Leaf(main=main, other=other)
    for value, branch in ((main, "main"), (other, "else")):
        if not is_value(value):
            refuse(
                TypeError,
                f"{described(name)} is a {type(value).__name__} at the end of the {branch} branch, and another object "
                "or value at the end of the other one: a graph can only choose between tensors",
            )
    hint = next((v.dtype for v in (main, other) if isinstance(v, TensorLike)), None)
    first = _tensor(main, main_trace, hint, name)
    second = _tensor(other, other_trace, hint or first.dtype, name)
    if hint is None and first.dtype is not second.dtype:
        second = _tensor(other, other_trace, None, name)
    if first.dtype is not second.dtype:
        refuse(
            TypeError,
            f"{described(name)} has dtype {first.dtype.name} in the main branch, but dtype {second.dtype.name} in the "
            "else branch",
            do="use tf.cast in one of them",
        )
    return Leaf(main=first, other=second)


def _of(value: Any, trace: Any) -> bool:
    return getattr(value, "trace", None) is trace


def _tensor(value: Any, trace: FuncTrace, dtype: Any, name: str) -> SymbolicTensor:
    with trace.resumed():
        tensor: SymbolicTensor
        if isinstance(value, TensorLike):
            tensor = trace.to_tensor(value)
        else:
            try:
                tensor = trace.to_tensor(value, dtype)
            except (TypeError, ValueError, OverflowError):
                tensor = trace.to_tensor(value)
        return tensor
