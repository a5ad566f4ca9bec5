"""The table of operators by name.

Lives here: registration, lookup and listing.  Not here: the definitions.
The catalogue's names are fixed: defining a second operator of such a name (a user's `Atan`) is allowed and returns a
working operator, but `get` still returns the catalogue's. Among users' own definitions the latest wins, so that a
notebook cell may be run again. Names that neither defines are looked up in installed packages (plugins.py).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..core.errors import AlreadyExistsError, NotFoundError, SignatureError
from ..core.lazy_imports import import_homes, import_module, is_abandoned, load, note_origin
from . import plugins

if TYPE_CHECKING:
    from .definition import Operator

_catalogue: dict[str, Operator] = {}
_users: dict[str, Operator] = {}
_functions: dict[str, Operator] = {}
FAMILIES = (
    "array",
    "math",
    "linalg",
    "nn",
    "random",
    "strings",
    "signal",
    "image",
    "bitwise",
    "quantization",
    "state",
    "host",
    "debugging",
    "control",
    "iteration",
    "list_ops",
    "list_tensor_ops",
    "optimizer_steps",
    "sequence",
)


@functools.cache
def load_all() -> None:
    """Import every family: the complete catalogue must not depend on earlier imports."""
    for family in FAMILIES:
        _load_family(family)


@functools.cache
def _load_family(family: str) -> None:
    import_homes(import_module(f".{family}", __package__))


def add(op: Operator) -> None:
    """Register a definition. Raises AlreadyExistsError for a second catalogue operator of one name."""
    note_origin(op)
    if not op.catalogue:
        _users.pop(op.name, None)  # a new definition is the last one
        _users[op.name] = op
        return
    if _live(_catalogue.get(op.name)) is not None:
        raise AlreadyExistsError(
            op=op.name,
            what="the catalogue has two operators of this name",
            found=f"one in {_catalogue[op.name].__module__}, another in {op.__module__}",
            do="name the second otherwise",
        )
    _catalogue[op.name] = op


def name_function(name: str, op: Operator) -> None:
    """Register the name of a public function, by which `get` also finds its operator."""
    if _live(_functions.get(name)) is None:
        _functions[name] = op


def _live(op: Operator | None) -> Operator | None:
    """Return the operator unless the import of its module failed; then another definition replaces it."""
    return None if op is not None and op.catalogue and is_abandoned(op) else op


class UnknownOperatorError(NotFoundError, KeyError):
    """Raised for the name of no operator."""

    __str__ = Exception.__str__  # KeyError's is the repr of its text


def get(name: str) -> Operator:
    """Return the operator of that name, such as "Atan", or of that public function, such as "atan".

    The catalogue's come first, then those defined in this process, then those of installed packages.
    raises UnknownOperatorError, a KeyError, with names that look alike; SignatureError for a name that is no text
    """
    if not isinstance(name, str):
        raise SignatureError(
            op="ops.get", what="operators are found by name", found=type(name).__name__, wanted="a text"
        )
    op = _catalogue.get(name) or _users.get(name) or _functions.get(name)
    if op is not None and op.catalogue:
        load(op.__module__)
        op = _catalogue.get(name) or _functions.get(name)
    if op is None:
        for family in FAMILIES:  # most programs load the first ones
            _load_family(family)
            if op := _catalogue.get(name) or _functions.get(name):
                break
        else:
            op = _operator_from_package(name)
    if op is None:
        import difflib

        near = difflib.get_close_matches(name, [*_catalogue, *_users, *_functions], 3)
        hint = f"; did you mean {', '.join(near)}?" if near else "; `opwright op list` names them all"
        if trouble := plugins.troubles(name):
            hint = f"; {trouble}"
        raise UnknownOperatorError(f"no operator is named {name!r}{hint}")
    return op


def from_package(name: str) -> Any:
    """Return the operator or `lite.Registration` that an installed package defines under this name, or None.

    Importing the package defines its operators; one that was defined here before stays the one that `get` finds.
    """
    before = _users.get(name)
    package_op = plugins.find(name)
    if before is not None:
        _users[name] = before
    elif package_op is None:
        _users.pop(name, None)  # two packages are ambiguous
    return package_op


def _operator_from_package(name: str) -> Operator | None:
    package_op = from_package(name)
    return package_op if hasattr(package_op, "attr_defs") else None  # a Registration is for the interpreter alone


def operator_of(op: Any) -> Operator:
    """Return an operator, given itself or its name. Raises as `get`, and SignatureError for anything else."""
    if isinstance(op, str):
        return get(op)
    if not (hasattr(op, "attr_defs") and hasattr(op, "bind")):
        raise SignatureError(
            op="operator",
            what="this is no operator",
            found=f"{op!r} ({type(op).__name__})"[:80],
            wanted="one that @ow.operator made, or its name",
        )
    result: Operator = op
    return result


def list_names() -> list[str]:
    """Return the names of all operators, sorted: the catalogue's and users' own."""
    load_all()
    return sorted({*_catalogue, *_users})


def users() -> dict[str, Operator]:
    """Return the users' operators by name, in the order of their latest definitions."""
    return dict(_users)


def catalogue() -> dict[str, Operator]:
    """Return the catalogue's operators by name, in the order of their definition."""
    load_all()
    return dict(_catalogue)
