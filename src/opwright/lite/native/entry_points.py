"""Names of entry points: C++ name demangling, and operators' names from their functions.

Lives here: `demangled` (namespace and name of a mangled function), `find_entry`, `find_entries`, `operator_name`.
Not here: a library's symbols (elf.py), calls (custom_ops.py).

Source: the Itanium C++ ABI, section 5.1: `_Z`, then a name as its length and letters, or several between N and E;
then the parameters' types, of which a single v means none.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from ...core.errors import InvalidArgumentError, NotFoundError

_ENDINGS = ("RegistrationExternal", "Registration", "OperatorExternal")
_BEGINNINGS = ("Register_",)
_REGISTER = re.compile(r"Register(?=[A-Z0-9])")


def demangled(symbol: str) -> tuple[str, str] | None:
    """Return the qualified name and the encoded parameters; None for symbols other than mangled functions with plain
    names (templates, operators, constructors)."""
    if not symbol.startswith("_Z"):
        return None
    remaining = symbol[2:]
    nested = remaining.startswith("N")
    remaining = remaining[1:] if nested else remaining.removeprefix("L")
    parts: list[str] = []
    while remaining[:1].isdigit() and (nested or not parts):
        digits = re.match(r"\d+", remaining)
        assert digits is not None
        size = int(digits[0]) if len(digits[0]) < 6 else len(remaining) + 1
        remaining = remaining[digits.end() :]
        if size > len(remaining):
            return None
        parts.append(remaining[:size])
        remaining = re.sub(r"^(B\d+cxx11)+", "", remaining[size:])
    if nested:
        if not remaining.startswith("E"):
            return None
        remaining = remaining[1:]
    if not parts or (remaining[:1] == "I"):
        return None
    return "::".join(parts), remaining


def may_register(letters: str) -> bool:
    """Return whether a C++ function with these encoded parameters may return registrations: it has none, or a pointer
    to a MutableOpResolver in any namespace."""
    return letters == "v" or (letters.startswith("PN") and letters.endswith("17MutableOpResolverE"))


def display_name(symbol: str) -> str:
    """Return a function's name as in source code."""
    parsed = demangled(symbol)
    return symbol if parsed is None else parsed[0]


def find_entry(name: str, functions: Iterable[str], library: str) -> str:
    """Return the symbol for a function's name: itself, or a C++ name with or without its namespaces.

    raises NotFoundError with the nearest names, InvalidArgumentError if several C++ functions match
    """
    functions = list(functions)
    if name in functions:
        return name
    spelled = name.removesuffix("()").removeprefix("::")
    candidates = {f: q for f in functions if (q := demangled(f)) is not None and may_register(q[1])}
    exact = [f for f, (qualified_name, _) in candidates.items() if qualified_name == spelled]
    loose = exact or [f for f, (qualified_name, _) in candidates.items() if qualified_name.endswith(f"::{spelled}")]
    if len(loose) == 1:
        return loose[0]
    if loose:
        raise InvalidArgumentError(
            what=f"{library}: several functions are called {name}",
            found=", ".join(sorted(candidates[f][0] for f in loose)),
            wanted="one, with its namespaces",
        )
    names = sorted({display_name(f) for f in functions})
    near = difflib.get_close_matches(spelled, names, 4, 0.6)
    near += [n for n in names if n not in near and spelled.lower() in n.lower()][:4]
    with_parameters = [
        q[0]
        for f in functions
        if (q := demangled(f)) is not None
        and not may_register(q[1])
        and q[0].split("::")[-1] == spelled.split("::")[-1]
    ]
    if with_parameters:
        raise InvalidArgumentError(
            what=f"{library}: {name} has parameters, so it returns no registration",
            found=with_parameters[0],
            wanted="a function without parameters",
        )
    likely = [display_name(f) for f in functions if looks_like_entry(f)]
    raise NotFoundError(
        what=f"{library} has no function {name}",
        found=", ".join(near or likely[:8] or names[:8]) or "no functions",
        wanted="the name of a function that returns a registration, exported by the library",
        do=f"{near[0]!r}"
        if near
        else 'static functions are not exported; in C++ write extern "C" or name the namespaces',
    )


def find_entries(functions: Iterable[str]) -> list[str]:
    """Return the functions whose names mark them as entry points; if there are none, C++ functions named Register...
    without parameters, as in some projects."""
    functions = list(functions)
    likely = [f for f in functions if looks_like_entry(f)]
    return likely or [f for f in functions if _REGISTER.match(_base_name(f)) and (demangled(f) or ("", ""))[1] == "v"]


def looks_like_entry(symbol: str) -> bool:
    """Return whether a function is an entry point by its name, or in C++ by taking a resolver."""
    parsed = demangled(symbol)
    if symbol.startswith("_Z") and (parsed is None or parsed[1] != "v"):
        return parsed is not None and may_register(parsed[1])
    name = _base_name(symbol)
    if name.startswith(("TfLite", "Ow", "ow_")):
        return False
    return any(name.endswith(e) and name != e for e in _ENDINGS) or any(
        name.startswith(b) and name != b for b in _BEGINNINGS
    )


def _base_name(symbol: str) -> str:
    """Return a function's name without its namespaces."""
    return display_name(symbol).split("::")[-1]


def operator_name(symbol: str) -> str:
    """Return an operator's name from its function: Register_SIN is SIN, atan_op::AtanOpRegistration is Atan."""
    name = _base_name(symbol)
    for beginning in _BEGINNINGS:
        name = name.removeprefix(beginning)
    name = _REGISTER.sub("", name, 1) if _REGISTER.match(name) else name
    for ending in _ENDINGS:
        if name.endswith(ending) and name != ending:
            name = name.removesuffix(ending)
            break
    shorter = name.removesuffix("Op").rstrip("_")
    return shorter or name
