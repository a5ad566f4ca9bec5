"""Flags: all switches in one table, read from `OPWRIGHT_<NAME>` once.

Lives here: the table `FLAGS`, reading it from the environment, overriding flags in a context, listing them.
Not here: the effects of flags; the code that implements one reads it as an attribute:

    from opwright.core import flags
    if flags.check_numerics: ...

The values are attributes of this module, set at the first read of any flag: a read then costs 15 ns, as for any module
attribute, against 60 for a context variable. They belong to the process rather than to a thread, as the threads of a
data pipeline or a plan must see the settings of the main thread.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from . import forks
from .errors import InvalidArgumentError
from .named_tuples import NamedTuple

# The values, for readers and type checkers; set by `load`. Names and types repeat FLAGS; a test compares them.
show: frozenset[str]
verify: bool
kernel_fallback: bool
background: bool
prebuilt: bool
compiled: bool
log_transforms: bool
check_unused_inputs: bool
benchmark: bool
check_numerics: bool
check_inputs: bool
inplace: bool
run_functions_eagerly: bool
deterministic: bool
cuda_deterministic: bool
fast_math: bool
tune: bool
optimize: bool
num_threads: int
jit: bool
hot_calls: int
cache_dir: str | None  # None: nothing is cached
target: str
max_model_bytes: int
max_activation_bytes: int

PREFIX = "OPWRIGHT_"
PEER_PREFIX = "OPWRIGHT_PEER_"  # other frameworks' interpreters, for benchmarks and comparisons: no flags


# --- types of flags: a parser of text or Python values, which returns None for invalid ones --------------------------


class FlagType(NamedTuple):
    """text: the name of the type in docs and errors; read: a str or Python value -> the value, or None."""

    text: str
    read: Callable[[Any], Any]


_SWITCH_WORDS: dict[str, bool] = {
    **dict.fromkeys(("1", "true", "on", "yes"), True),
    **dict.fromkeys(("0", "false", "off", "no"), False),
}


def _read_switch(value: Any) -> bool | None:
    return value if isinstance(value, bool) else _SWITCH_WORDS.get(str(value).strip().lower())


def _read_count(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def _read_size(value: Any) -> int | None:
    if not isinstance(value, str):
        return _read_count(value) or None
    text = value.strip().upper().removesuffix("B").removesuffix("I")
    unit = _UNITS.get(text[-1:], 1)
    number = _read_count(text[:-1] if unit > 1 else text)
    return number * unit if number else None


def _read_folder(value: Any) -> str | None:
    return os.path.expanduser(value) if isinstance(value, str | os.PathLike) and str(value).strip() else None


def words(*allowed: str) -> FlagType:
    """Return the type of a flag that is a set of these words, separated by commas."""

    def read(value: Any) -> frozenset[str] | None:
        parts = value.replace(" ", "").split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple | set | frozenset):
            return None
        chosen = frozenset(part for part in parts if part)
        return chosen if chosen <= frozenset(allowed) else None

    return FlagType("words of " + ", ".join(allowed), read)


SWITCH = FlagType("switch: 1/0, on/off, true/false, yes/no", _read_switch)
COUNT = FlagType("whole number, 0 or more", _read_count)
SIZE = FlagType("bytes, 1 or more; K, M, G, T are powers of 1024", _read_size)
FOLDER = FlagType("folder", _read_folder)
NAME = FlagType("name", lambda value: value.strip() or None if isinstance(value, str) else None)


# --- the table ------------------------------------------------------------------------------------------------------


def _user_cache() -> str | None:
    """Return the folder of this package in the user's cache folder, by the conventions of the system.

    None for a user without a home, such as a bare user number in a container: another user could create a folder in
    /tmp first, and code is loaded from the cache.
    """
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    home = os.path.expanduser("~")
    if home.startswith("~"):
        named = os.path.isabs(xdg) and sys.platform not in ("win32", "darwin")
        return os.path.join(xdg, "opwright") if named else None
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
        return os.path.join(local, "opwright", "cache")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", "opwright")
    return os.path.join(xdg if os.path.isabs(xdg) else os.path.join(home, ".cache"), "opwright")
    # XDG 0.8: relative paths are ignored


class Flag(NamedTuple):
    """One flag. default: the value, or a function that determines it on this machine."""

    name: str
    type: FlagType
    default: Any
    doc: str

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()

    def read(self, value: Any, source: str) -> object:
        """Check and convert `value`; source: its origin, for error messages."""
        result = self.type.read(value)
        if result is None:
            raise InvalidArgumentError(
                op=source, what="this flag does not accept this value", found=repr(value), wanted=self.type.text
            )
        return result


FLAGS: dict[str, Flag] = {
    flag.name: flag
    for flag in (
        Flag(
            "show",
            words("graph", "passes", "kernel", "llvm", "asm", "time", "plan"),
            frozenset(),
            "Print these stages to stderr as they happen: graphs, rewrites, kernels, LLVM IR, assembly, times, plans.",
        ),
        Flag("verify", SWITCH, False, "Verify every graph after each pass, against the table of invariants."),
        Flag("check_numerics", SWITCH, False, "Stop at the first operator whose result has a NaN or an infinity."),
        Flag(
            "check_inputs",
            SWITCH,
            False,
            "Stop at the first operator that writes an input, or whose result shares its memory without declaration.",
        ),
        Flag(
            "inplace", SWITCH, True, "Let graphs write results into memory of dead values, if the operators declare it."
        ),
        Flag(
            "kernel_fallback", SWITCH, True, "Run operators without a kernel for a device on the CPU, with one warning."
        ),
        Flag("compiled", SWITCH, True, "Let interpreters run a model's builtin operators as machine code."),
        Flag(
            "background",
            SWITCH,
            True,
            "Compile kernels missing from the cache in the background, while the model runs; off: when it is loaded.",
        ),
        Flag(
            "prebuilt", SWITCH, True, "Use the machine code that is part of the package; off: compile all of it here."
        ),
        Flag("log_transforms", SWITCH, False, "Print the conversions of an operator's inputs to stderr."),
        Flag("check_unused_inputs", SWITCH, False, "Stop at an operator that does not read one of its inputs."),
        Flag("benchmark", SWITCH, False, "Wait for the device after each operator that is run on one."),
        Flag("run_functions_eagerly", SWITCH, False, "Run the Python of a `function` at each call; trace nothing."),
        Flag("deterministic", SWITCH, False, "Give the same bits on every run, where that costs speed."),
        Flag("cuda_deterministic", SWITCH, False, "Run no kernel whose bits may differ from run to run, at any place."),
        Flag("fast_math", SWITCH, False, "Let kernels of the kernel language round differently, where that is faster."),
        Flag(
            "optimize",
            SWITCH,
            True,
            "Let LLVM optimize machine code of this process; off: it compiles in half of the time, and runs slower.",
        ),
        Flag("tune", SWITCH, False, "Time competing ways to compute on the shapes at hand, once; take the fastest."),
        Flag(
            "num_threads",
            COUNT,
            0,
            "Threads that one operator may use, also by NumPy's BLAS; 0: one for each processor of the process.",
        ),
        Flag(
            "jit",
            SWITCH,
            True,
            "Compile functions that leave jit_compile open, and large eager calls, after some calls.",
        ),
        Flag("hot_calls", COUNT, 0, "Calls after which such a function is compiled; 0: by its size, 3 to 50."),
        Flag("cache_dir", FOLDER, _user_cache, "The folder of compiled kernels, to which only you have write access."),
        Flag("target", NAME, "host", "Compile for this processor, by name: x86-64-v3 leaves out AVX-512, for example."),
        Flag("max_model_bytes", SIZE, 2**31, "Most bytes of a model file, and of its weights as floats: else refused."),
        Flag(
            "max_activation_bytes",
            SIZE,
            2**30,
            "Most memory that a model file may ask for at run time, besides weights.",
        ),
    )
}


# --- values: the base (defaults, environment, `configure`) under the overrides in force -----------------------------

_lock = forks.lock()
_base: dict[str, Any] = {}
_source: dict[str, str] = {}
_listeners: list[Callable[[], None]] = []
_overrides: list[dict[str, Any]] = []  # in order of entry; each context removes its own, in any order


def load(environ: Mapping[str, str] | None = None) -> None:
    """Set every flag from the environment, or to its default; overrides in force remain. An empty variable is unset.

    Called automatically at the first read.
    raises InvalidArgumentError naming the variable, its value and the permitted values; then no flag has changed.
    """
    environ = os.environ if environ is None else environ
    base, source = {}, {}
    for name, flag in FLAGS.items():
        text = environ.get(flag.variable, "")
        if text.strip():
            base[name], source[name] = flag.read(text, f"environment variable {flag.variable}"), "environment"
        else:
            base[name], source[name] = flag.default() if callable(flag.default) else flag.default, "default"
    for variable in unknown_variables(environ):
        from difflib import get_close_matches

        close = get_close_matches(variable, [flag.variable for flag in FLAGS.values()], n=1, cutoff=0.85)
        if close:
            warnings.warn(f"environment variable {variable} sets nothing: did you mean {close[0]}?", stacklevel=2)
    with _lock:
        _base.update(base)
        _source.update(source)
        _publish()


def unknown_variables(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return variables with the prefix of flags that are not flags, sorted: for `opwright doctor`."""
    variables = {flag.variable for flag in FLAGS.values()}
    environ = os.environ if environ is None else environ
    return sorted(v for v in environ if v.startswith(PREFIX) and not v.startswith(PEER_PREFIX) and v not in variables)


def _publish() -> None:
    """Set this module's attributes to the values in force. Call with the lock held."""
    values = dict(_base)
    for layer in _overrides:
        values.update(layer)
    values["checked"] = values["check_numerics"] or values["check_inputs"]  # read by hot paths, for both flags
    globals().update(values)
    for listener in _listeners:
        listener()


def on_change(name: str, listener: Callable[[], None]) -> None:
    """Call `listener` whenever flags are loaded or changed: for hot paths that must not test `name`.

    Unless the environment sets that flag, it has its default until then, and nothing is read at import.
    """
    with _lock:
        _listeners.append(listener)
    if _base:
        listener()
    elif FLAGS[name].variable in os.environ:
        load()


def _ensure_loaded() -> None:
    if not _base:
        load()


def __getattr__(name: str) -> object:
    """Load the flags when one is first read."""
    if name not in FLAGS and name != "checked":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _ensure_loaded()
    return globals()[name]


def _checked(values: Mapping[str, Any], caller: str) -> dict[str, Any]:
    return {name: _flag(name).read(value, f"{caller}({name}=...)") for name, value in values.items()}


def _flag(name: str) -> Flag:
    if name not in FLAGS:
        raise InvalidArgumentError(op="flags", what="there is no such flag", found=repr(name), wanted=", ".join(FLAGS))
    return FLAGS[name]


def get(name: str) -> Any:
    """Return the value of the flag with this name.

    get("num_threads") is flags.num_threads
    """
    _flag(name)
    _ensure_loaded()
    return globals()[name]


def configure(**values: Any) -> None:
    """Set flags for the rest of the process, to Python values or to texts as in the environment.

    configure(num_threads=4)
    """
    checked = _checked(values, "flags.configure")
    _ensure_loaded()
    with _lock:
        _base.update(checked)
        _source.update(dict.fromkeys(checked, "configure"))
        _publish()


@contextmanager
def override(**values: Any) -> Iterator[None]:
    """Set flags within a context, in all threads.

    with override(show="graph,passes", verify=True):
        run()
    """
    layer = _checked(values, "flags.override")
    _ensure_loaded()
    with _lock:
        _overrides.append(layer)
        _publish()
    try:
        yield
    finally:
        with _lock:
            _overrides[:] = [each for each in _overrides if each is not layer]
            _publish()


class FlagRow(NamedTuple):
    """A row of `table`: source is "default", "environment", "configure" or "override"."""

    name: str
    variable: str
    type: str
    default: Any
    value: Any
    source: str
    doc: str


def table() -> list[FlagRow]:
    """Return every flag with its value and the origin of the value: for the docs and `opwright doctor`."""
    _ensure_loaded()
    with _lock:
        overridden = {name for layer in _overrides for name in layer}
        return [
            FlagRow(
                name=flag.name,
                variable=flag.variable,
                type=flag.type.text,
                default=flag.default() if callable(flag.default) else flag.default,
                value=globals()[flag.name],
                source="override" if flag.name in overridden else _source[flag.name],
                doc=flag.doc,
            )
            for flag in FLAGS.values()
        ]
