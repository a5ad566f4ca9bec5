"""The table of operators by name.

Lives here: adding, finding and listing.  Not here: the definitions.
The catalogue's own names are fixed: defining a second operator of such a name (a user's `Atan`) is allowed and gives
a working operator, but `get` keeps finding the catalogue's. Among users' own definitions the latest counts, so that a
notebook cell may be run again. What nobody defined here an installed package may add (plugins.py).
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
    """Import every family: whoever wants the whole catalogue must not depend on what was used before."""
    for family in FAMILIES:
        _load_family(family)


@functools.cache
def _load_family(family: str) -> None:
    import_homes(import_module(f".{family}", __package__))


def add(op: Operator) -> None:
    """Enter a definition. Raises AlreadyExistsError for a second catalogue operator of one name."""
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
    """Let `get` find an operator by its public function's name too."""
    if _live(_functions.get(name)) is None:
        _functions[name] = op


def _live(op: Operator | None) -> Operator | None:
    """The operator, unless the import of its module failed: then another definition takes its place."""
    return None if op is not None and op.catalogue and is_abandoned(op) else op


class UnknownOperatorError(NotFoundError, KeyError):
    """No operator has that name."""

    __str__ = Exception.__str__  # KeyError's shows its text as Python would write it


def get(name: str) -> Any:
    """The operator of that name, such as "Atan", or of that public function, such as "atan".

    The catalogue's come first, then those defined in this process, then those of installed packages.
    raises UnknownOperatorError, a KeyError, with names that look alike; SignatureError for a name that is no text
    """
    if not isinstance(name, str):
        raise SignatureError(
            op="ops.get", what="operators are found by name", found=type(name).__name__, wanted="a text"
        )
    found = _catalogue.get(name) or _users.get(name) or _functions.get(name)
    if found is not None and found.catalogue:
        load(found.__module__)
        found = _catalogue.get(name) or _functions.get(name)
    if found is None:
        for family in FAMILIES:  # most programs load the first ones
            _load_family(family)
            if found := _catalogue.get(name) or _functions.get(name):
                break
        else:
            found = _operator_from_package(name)
    if found is None:
        import difflib

        near = difflib.get_close_matches(name, [*_catalogue, *_users, *_functions], 3)
        hint = f"; did you mean {', '.join(near)}?" if near else "; `opwright op list` names them all"
        if trouble := plugins.troubles(name):
            hint = f"; {trouble}"
        raise UnknownOperatorError(f"no operator is named {name!r}{hint}")
    return found


def from_package(name: str) -> Any:
    """What an installed package adds under this name: an operator, or a `lite.Registration`; None where none does.

    Importing the package defines its operators; one that was defined here before stays the one that `get` finds.
    """
    before = _users.get(name)
    found = plugins.find(name)
    if before is not None:
        _users[name] = before
    elif found is None:
        _users.pop(name, None)  # of two packages none is meant more than the other
    return found


def _operator_from_package(name: str) -> Any:
    found = from_package(name)
    return found if hasattr(found, "attr_defs") else None  # a Registration is for the interpreter alone


def operator_of(op: Any) -> Any:
    """An operator as it is given: itself, or its name. Raises as `get`, and SignatureError for anything else."""
    if isinstance(op, str):
        return get(op)
    if not (hasattr(op, "attr_defs") and hasattr(op, "bind")):
        raise SignatureError(
            op="operator",
            what="this is no operator",
            found=f"{op!r} ({type(op).__name__})"[:80],
            wanted="one that @ow.operator made, or its name",
        )
    return op


def list_names() -> list[str]:
    """Every operator's name, sorted: the catalogue's and users' own."""
    load_all()
    return sorted({*_catalogue, *_users})


def users() -> dict[str, Operator]:
    """Return the users' operators by name, in the order of their latest definitions."""
    return dict(_users)


def catalogue() -> dict[str, Operator]:
    """The catalogue's operators by name, in the order of their definition."""
    load_all()
    return dict(_catalogue)
