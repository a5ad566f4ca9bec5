"""The names of operators: the table of definitions, public functions, and operators of installed packages.

Lives here: registration, lookup and listing; `public_function`, which derives a Python function with an explicit
signature from an operator; `documented_by`, which completes the docstring of one that is written by hand; loading of
packages, found by the entry points `opwright.operators`, and their problems.
Not here: the definitions, functions that do more than call one operator (the families define these), the template of a
package (tools/catalogue.py).

The catalogue's names are fixed: defining a second operator of such a name (a user's `Atan`) is allowed and returns a
working operator, but `get` still returns the catalogue's. Among users' own definitions the latest wins, so that a
notebook cell may be run again. Names that neither defines are looked up in installed packages.

A package declares, in its pyproject.toml,

    [project.entry-points."opwright.operators"]
    LeakyClip = "leaky_clip:LeakyClip"

The left side is the name by which programs and files refer to the operator; the right side is an `@ow.operator`, a
`lite.Registration`, a mapping that contains one under that name, or a module that does. Metadata is read only when an
operator is requested that is not defined otherwise, and only packages that name it are imported. A package that cannot
be imported is skipped with a warning. Two packages that name one operator, and define different ones, are both skipped:
only the user can choose.
"""

from __future__ import annotations

import functools
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.errors import AlreadyExistsError, NotFoundError, SignatureError
from ..core.lazy_imports import import_homes, import_module, is_abandoned, load, note_origin
from ..core.named_tuples import NamedTuple
from . import dispatch

if TYPE_CHECKING:
    from .definition import Operator

MOST_COMPARED = 6
"""Maximum number of attributes of an operator whose calls with all defaults skip `Operator.bind`, which takes 1 us."""

F = TypeVar("F", bound=Callable[..., Any])


def documented_by(*operators: Operator) -> Callable[[F], F]:
    """Return a decorator that appends the documentation of operators to a function's docstring.

    The formula, shapes, dtypes and errors of an operator are in the docstring of its class; the function's own states
    its purpose and its further arguments. The attribute `documents` of the function lists the operators.
    """

    def decorate(function: F) -> F:
        details = [(op.__doc__ or "").partition("\n\n")[2] for op in operators]
        if len(operators) > 1:
            details = [f"    {op.name}: {(op.__doc__ or '').strip()}" for op in operators]
        own = (function.__doc__ or "").rstrip()
        function.__doc__ = "\n\n".join([own, *(text.rstrip() for text in details if text)])
        vars(function)["documents"] = operators
        return function

    return decorate


def public_function(op: Operator, name: str) -> Callable[..., Any]:
    """Return a function of the inputs, then the attributes with their defaults, then `name=None`.

    Its source is generated and compiled once (25 us), so that a call costs no argument processing and help() shows the
    signature.
    """
    required = [*op.input_names, *(k for k, a in op.attr_defs.items() if a.required)]
    optional = [k for k, a in op.attr_defs.items() if not a.required]
    may_lack = {i.name for i in op.inputs if i.optional}
    if may_lack:
        optional = [n for n in op.input_names if n in may_lack] + optional
        required = [k for k in required if k not in may_lack]
        parts: tuple[Any, ...] = (*op.inputs, *op.attr_defs.values())
        age = {p.name: p.since for p in parts}
        optional.sort(key=age.__getitem__)  # what later versions added stands behind what was there
    origin = f"{__file__}:{name}"  # traces take a frame of such a file name for ours, not the user's
    scope: dict[str, Any] = {"_op": op, "_call": dispatch.call, "_bound": None if op.attr_defs else op.bind({})}
    scope["_defaults"] = {k: op.attr_defs[k].default if k in op.attr_defs else None for k in optional}
    signature = ", ".join((*required, *(f"{k}=_defaults[{k!r}]" for k in optional), "name=None"))
    inputs = "".join(f"{n}, " for n in op.input_names)
    attrs = ", ".join(f"{n!r}: {n}" for n in op.attr_defs)
    bound = f"_op.bind({{{attrs}}})" if attrs else "_bound"
    if attrs and len(optional) == len(op.attr_defs) <= MOST_COMPARED and not may_lack:
        scope |= {f"_default_{k}": a.default for k, a in op.attr_defs.items()}
        unchanged = " and ".join(f"{k} is _default_{k}" for k in op.attr_defs)
        bound = f"(_op._default or _op.default_call()) if {unchanged} else {bound}"
    source = f"def {name}({signature}):\n    return _call(_op, ({inputs}), {bound}, name)\n"
    exec(compile(source, origin, "exec"), scope)
    function = scope[name]
    function.__doc__, function.__module__, function.operator = op.__doc__, op.__module__, op
    name_function(name, op)
    result: Callable[..., Any] = function
    return result


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
    "lookup",
    "signal",
    "image",
    "bitwise",
    "quantization",
    "state",
    "host",
    "debugging",
    "control",
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
    raises UnknownOperatorError, a KeyError, with names that look alike; SignatureError for a name that is not text
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
        if trouble := package_problems(name):
            hint = f"; {trouble}"
        raise UnknownOperatorError(f"no operator is named {name!r}{hint}")
    return op


def from_package(name: str) -> Any:
    """Return the operator or `lite.Registration` that an installed package defines under this name, or None.

    None, with a PackageWarning, also if the package cannot be loaded or two packages define different ones. Importing
    the package defines its operators; one that was defined here before stays the one that `get` finds.
    """
    before = _users.get(name)
    loaded = load_entries(name)
    if loaded and (problems := package_problems(name)):
        _warn(problems)
    good = _different(loaded)
    package_op = good[0].operator if len(good) == 1 else None
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
            what="this is not an operator",
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


# ---- installed packages ----------------------------------------------------------------------------------------------

GROUP = "opwright.operators"


class PackageWarning(RuntimeWarning):
    """Warning for an installed package whose operators cannot be loaded."""


class Entry(NamedTuple):
    """One operator of one package. value: its location, `module:name`; point: the entry point that loads it."""

    name: str
    package: str
    value: str
    point: Any


class LoadedEntry(NamedTuple):
    """The result of loading an entry: the operator or registration, or the reason why there is none."""

    entry: Entry
    operator: Any
    trouble: str


class _EntryScan(NamedTuple):
    """Installed packages of operators. seen: the folders of sys.path and when they last changed, since a package may be
    installed while a notebook runs. Replaced as a whole: other threads read it meanwhile."""

    seen: Any
    entries: dict[str, list[Entry]]
    loaded: dict[str, list[LoadedEntry]]


_scan_cache = _EntryScan(None, {}, {})


def package_entries() -> dict[str, list[Entry]]:
    """Return every entry by the operator's name, sorted; imports no package."""
    return _current().entries


def _current() -> _EntryScan:
    global _scan_cache
    now = tuple((folder, _changed(folder)) for folder in sys.path)
    scanned = _scan_cache
    if now != scanned.seen:
        by_name: dict[str, list[Entry]] = {}
        for entry in _scan():
            by_name.setdefault(entry.name, []).append(entry)
        scanned = _scan_cache = _EntryScan(now, dict(sorted(by_name.items())), {})
    return scanned


def _changed(folder: str) -> int:
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


def _scan() -> Iterator[Entry]:
    """Yield entries as `importlib.metadata.entry_points`, which fails for all packages if one has damaged metadata."""
    from importlib import metadata  # 10 ms, paid only by a search

    packages: set[str] = set()
    for distribution in metadata.distributions():
        package = "a package without a name"
        try:
            package = distribution.metadata["Name"] or package
            if package.lower() in packages:  # the first on the path is imported
                continue
            packages.add(package.lower())
            points = list(distribution.entry_points.select(group=GROUP))
        except Exception as error:
            _warn(f"the metadata of {package} cannot be read: {_words(error)}")
            continue
        for point in points:
            yield Entry(point.name, f"{package} {distribution.version}", point.value, point)


def load_entries(name: str) -> list[LoadedEntry]:
    """Return the loaded entries of this name, failures included; cached."""
    current = _current()
    loaded = current.loaded.get(name)
    if loaded is None:
        loaded = current.loaded.setdefault(name, [_load(entry) for entry in current.entries.get(name, ())])
    return loaded


def _load(entry: Entry) -> LoadedEntry:
    try:
        value = entry.point.load()
        if isinstance(value, types.ModuleType):
            value = getattr(value, entry.name)
        elif isinstance(value, Mapping):
            value = value[entry.name]
    except (Exception, SystemExit) as error:  # foreign code may raise anything
        return LoadedEntry(entry, None, f"{entry.value} cannot be loaded: {_words(error)}")
    if not (hasattr(value, "attr_defs") or callable(getattr(value, "invoke", None))):
        return LoadedEntry(entry, None, f"{entry.value} is a {type(value).__name__}, and no operator or registration")
    return LoadedEntry(entry, value, "")


def package_problems(name: str) -> str:
    """Return the problems of the packages that define this name; empty without any."""
    loaded = load_entries(name)
    words = [f"package {f.entry.package}: {f.trouble}; mend or remove it" for f in loaded if f.trouble]
    good = _different(loaded)
    if len(good) > 1:
        places = " and ".join(f"{f.entry.package} ({f.entry.value})" for f in good)
        words.append(
            f"{name} is added by {len(good)} installed packages: {places}; remove one, or say which is meant: "
            f"custom_ops=[{name}]"
        )
    return "; ".join(words)


def _different(loaded: list[LoadedEntry]) -> list[LoadedEntry]:
    """Return the entries that loaded, each operator once."""
    good = [f for f in loaded if not f.trouble]
    return [f for i, f in enumerate(good) if all(f.operator is not g.operator for g in good[:i])]


_warned: set[str] = set()


def _warn(text: str) -> None:
    """Warn once per process: an interpreter asks for each version of each operator."""
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, PackageWarning, stacklevel=2)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
