"""Convert functions and select the callee of each call in converted code.

Lives here: `convert` (source to code, cached by code object), `call` (the callee for any callable); the table of
modules whose functions are converted, and `convert_module`, `skip_module`, which change it.
Not here: the rewriting (statements.py).

A converted function is a new function object over the user's globals and closure cells, so later changes to them are
visible. Its code is compiled from the tree under the user's file name and lines, so there is no generated file, and
tracebacks and debuggers show the user's text. The operators are bound to one more cell, `ag__`.

All modules are converted except the following, which the table skips: Python's standard library, this package,
and libraries with much code and no control flow on tensors. The first match wins.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ..core import introspection
from ..core.forks import once
from ..core.introspection import OURS, copy_annotations
from . import jumps, operators, source, statements
from .handlers import NOT_RETURNED
from .operators import OVERRIDES, install_call
from .source import Unsupported

SKIPPED = (
    "opwright",
    "numpy",
    "scipy",
    "ml_dtypes",
    "llvmlite",
    "flatbuffers",
    "safetensors",
    "click",
    "rich",
    "pandas",
    "matplotlib",
    "PIL",
    "sklearn",
    "pytest",
    "_pytest",
    "pluggy",
    "hypothesis",
    "IPython",
    "ipykernel",
    "ipdb",
    "attr",
    "attrs",
    "absl",
    "six",
    "wrapt",
    "requests",
    "urllib3",
    "tqdm",
    "psutil",
    "yaml",
    "google",
    "tensorflow",
    "keras",
    "torch",
    "jax",
    "importlib_metadata",
    "typing_extensions",
    "setuptools",
    "pkg_resources",
    "cloudpickle",
    "dill",
    "mock",
    "pybind11_abseil",
)

KERNEL_PACKAGES = ("opwright.compiler.kernels",)  # kernels in Python are converted, although ours
UNCONDITIONAL = frozenset(("opwright.compiler.kernels.expression", "opwright.compiler.kernels.epilogue"))
"""Their modules without control flow on values of a kernel, which need no conversion, and run in half of the time."""

_rules: list[tuple[str, bool]] = []
version = 0  # incremented by each change, which invalidates earlier decisions


def convert_module(name: str) -> None:
    """Convert the functions of a module and its submodules, regardless of the table."""
    _set_rule(name, True)


def skip_module(name: str) -> None:
    """Run the functions of a module and its submodules unconverted."""
    _set_rule(name, False)


def _set_rule(name: str, convert: bool) -> None:
    global version
    _rules[:] = [(name, convert), *(r for r in _rules if r[0] != name)]
    version += 1


def reset_modules() -> None:
    """Restore the table's initial state."""
    global version
    _rules.clear()
    version += 1


def converts(module: str | None) -> bool:
    """Return whether functions of the named module are converted."""
    if not module:
        return True
    for name, convert in _rules:
        if module == name or module.startswith(f"{name}."):
            return convert
    if module.startswith(KERNEL_PACKAGES):
        return True
    top = module.partition(".")[0]
    return (top not in SKIPPED and top not in sys.stdlib_module_names) or module == "__main__"


MARK = "__opwright_do_not_convert__"
verbosity: list[int] = [0, 0]  # the level, and 1 to print to stdout


class Converted(NamedTuple):
    """The result of one conversion. code: the new code, or None if the function runs unconverted; reason: why, if the
    user should know. The tree is dropped: each garbage collection would traverse its thousands of objects."""

    code: types.CodeType | None
    reason: str | None = None
    version: int = 0


class ConversionStore(Protocol):
    """A persistent cache of the converted code of this package's kernels, keyed by their own code."""

    def find(self, code: types.CodeType) -> types.CodeType | None:
        """Return the stored conversion of a function's code, or None."""

    def keep(self, code: types.CodeType, converted: types.CodeType) -> None:
        """Store the conversion of a function's code."""


AS_IS = Converted(None)
_store: list[ConversionStore] = []  # the one of `set_store`
_conversions: dict[int, tuple[Any, Converted]] = {}  # by id of the user's code, with a weak reference to it


def _record_conversion(code: types.CodeType, entry: Converted) -> None:
    key, forget = id(code), _conversions.pop  # the table may be gone before the last code is
    _conversions[key] = (weakref.ref(code, lambda _: forget(key, None)), entry)


def set_store(store: ConversionStore) -> None:
    """Set the store of the converted code of this package's kernels."""
    _store[:] = [store]


def _namespace() -> types.SimpleNamespace:
    names = (
        "if_stmt",
        "while_stmt",
        "for_stmt",
        "if_exp",
        "and_",
        "or_",
        "not_",
        "in_",
        "not_in",
        "chain",
        "assert_stmt",
        "items_of",
        "list_comp",
        "returned",
    )
    return types.SimpleNamespace(call=call, NOT_RETURNED=NOT_RETURNED, **{n: getattr(operators, n) for n in names})


@once
def _operators_cell() -> object:
    return types.CellType(_namespace())


# ---- one function ---------------------------------------------------------------------------------------------------


def rewritten(function: types.FunctionType) -> source.FunctionNode:
    """Return the rewritten tree of a function: a FunctionDef or Lambda. Raises Unsupported."""
    code = function.__code__
    definition = source.find_source(code, function.__globals__)
    if isinstance(definition.node, ast.AsyncFunctionDef):
        raise Unsupported("it is a coroutine")
    node = source.copy(definition.node) if definition.shared else definition.node
    if definition.class_name is not None:
        source.mangle_private_names(node, definition.class_name)
    try:
        return statements.rewrite(node, "__class__" in code.co_freevars)
    except RecursionError:
        raise Unsupported("its code is nested too deeply") from None


def _compile(function: types.FunctionType) -> Converted:
    code = function.__code__
    node: Any = rewritten(function)
    inner: Any = ast.Return(node) if isinstance(node, ast.Lambda) else node
    if inner is node:  # the user's function object has the defaults, annotations, decorators
        inner.decorator_list, inner.returns, inner.type_params = [], None, []
        inner.name = "ag__function"  # the user's name keeps its binding in the enclosing scope
        for argument in source.nodes(inner.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
    node.args.defaults = []
    node.args.kw_defaults = [None] * len(node.args.kwonlyargs)
    free = [*code.co_freevars, "ag__"]
    arguments = ast.arguments([], [ast.arg(n, None) for n in free], None, [], [], None, [])
    factory = ast.FunctionDef("factory", arguments, [inner], [], None, type_comment=None)
    factory.type_params = []  # type: ignore[attr-defined]
    jumps.with_location(factory, node)
    module = ast.Module([factory], [])
    future = code.co_flags & 0x1FF0000  # the file's `from __future__` lines
    try:
        compiled = introspection.compile_tree(module, code.co_filename, future)
    except (SyntaxError, ValueError, TypeError, RecursionError) as error:
        raise Unsupported(f"its rewritten form does not compile: {error}") from error
    (outer,) = (c for c in compiled.co_consts if isinstance(c, types.CodeType))
    (new,) = (c for c in outer.co_consts if isinstance(c, types.CodeType))
    return Converted(
        _mark_converted(restore_names(new, code.co_name, code.co_qualname, new.co_qualname)), None, version
    )


def restore_names(code: types.CodeType, name: str, qualname: str, prefix: str) -> types.CodeType:
    """Return code with the user's name, and the functions generated inside it with the name of their origin."""
    consts = []
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            generated = const.co_name.endswith(statements.SUFFIX)
            if generated:
                const = restore_names(const, name, qualname, const.co_qualname)
            else:
                inner = qualname + const.co_qualname.removeprefix(prefix)
                const = restore_names(const, const.co_name, inner, const.co_qualname)
        consts.append(const)
    return code.replace(co_consts=tuple(consts), co_name=name, co_qualname=qualname)


def _mark_converted(code: types.CodeType) -> types.CodeType:
    """Record converted code and the functions inside it as converted.

    Methods of a class that it defines are left out: they are as the user wrote them and are converted when called.
    """
    pending = [code]
    while pending:
        inner = pending.pop()
        if inner.co_flags & inspect.CO_OPTIMIZED:  # a function's code, not a class's
            _record_conversion(inner, AS_IS)
            pending += [const for const in inner.co_consts if isinstance(const, types.CodeType)]
    return code


def _entry(function: types.FunctionType, forced: bool = False) -> Converted:
    code = function.__code__
    cached = _conversions.get(id(code))
    if cached is not None:
        entry = cached[1]
        if entry is AS_IS or (entry.version == version and not (forced and not entry.reason and entry.code is None)):
            return entry
    entry = _decide(function, forced)
    _record_conversion(code, entry)
    return entry


def _decide(function: types.FunctionType, forced: bool) -> Converted:
    if function.__dict__.get(MARK):
        return AS_IS
    module = function.__globals__.get("__name__")
    is_kernel = module is not None and module.startswith(KERNEL_PACKAGES) and module not in UNCONDITIONAL
    if function.__code__.co_filename.startswith(OURS) and not is_kernel:
        return AS_IS
    if not converts(module) and not (forced and module is not None and module.partition(".")[0] != "opwright"):
        return Converted(None, "", version)  # excluded by the table
    if function.__code__.co_flags & 0x2A0:  # generators and coroutines
        return Converted(None, "it is a generator or a coroutine" if forced else "", version)
    store = _store[0] if is_kernel and _store and verbosity[0] < 3 else None
    stored = None if store is None else store.find(function.__code__)
    if stored is not None:
        return Converted(_mark_converted(stored), None, version)
    try:
        converted = _compile(function)
        if store is not None and converted.code is not None:
            store.keep(function.__code__, converted.code)
        if verbosity[0] >= 3:
            text = ast.unparse(ast.fix_missing_locations(rewritten(function)))
            print(f"{function!r} converted:\n{text}", file=sys.stdout if verbosity[1] else sys.stderr)
        return converted
    except Unsupported as error:
        where = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
        warnings.warn(
            f"AutoGraph could not transform {function!r} ({where}) and will run it as-is.\nCause: {error}\n"
            "To silence this warning, decorate the function with @tf.autograph.experimental.do_not_convert",
            UserWarning,
            stacklevel=3,
        )
        return Converted(None, str(error), version)


def _with_code(function: types.FunctionType, code: types.CodeType) -> types.FunctionType:
    """Return a function that shares the user's globals, cells and defaults, with the new code."""
    cells: dict[str, Any] = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells["ag__"] = _operators_cell()
    new = types.FunctionType(
        code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple([cells[name] for name in code.co_freevars]),
    )
    if function.__kwdefaults__ is not None:
        new.__kwdefaults__ = function.__kwdefaults__
    return new


def convert(function: types.FunctionType, forced: bool = False) -> types.FunctionType:
    """Return the converted function, or the function itself if it is not to be converted.

    forced: the user requested this very function, so the table of modules does not apply.
    """
    entry = _entry(function, forced)
    if entry.code is None:
        return function
    return _with_code(function, entry.code)


def copy_metadata(function: types.FunctionType, new: types.FunctionType) -> types.FunctionType:
    """Return `new` with the documentation, annotations and attributes of the user's function, for introspection."""
    new.__qualname__, new.__module__, new.__doc__ = function.__qualname__, function.__module__, function.__doc__
    copy_annotations(function, new)
    new.__dict__.update(function.__dict__)
    new.__wrapped__ = function  # type: ignore[attr-defined]
    return new


# ---- anything callable ----------------------------------------------------------------------------------------------


def _function(f: types.FunctionType) -> Callable[..., Any]:
    cached = _conversions.get(id(f.__code__))
    if cached is not None:
        entry = cached[1]
        if entry is AS_IS:
            return f
        if entry.version == version:
            if entry.code is None or (f.__dict__ and MARK in f.__dict__):
                return f
            return _with_code(f, entry.code)
    return convert(f)


def _method(f: types.MethodType) -> Callable[..., Any]:
    inner = f.__func__
    if type(inner) is not types.FunctionType:
        return f
    new = _function(inner)
    return f if new is inner else types.MethodType(new, f.__self__)


def _builtin(f: Callable[..., Any]) -> Callable[..., Any]:
    try:
        return OVERRIDES.get(f, f)
    except TypeError:  # a method of an unhashable object
        return f


def _partial(f: functools.partial[Any]) -> Callable[..., Any]:
    inner = call(f.func)
    return f if inner is f.func else functools.partial(inner, *f.args, **f.keywords)


def _identity(f: Callable[..., Any]) -> Callable[..., Any]:
    return f


def _object(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the converted `__call__`, bound, of an object whose `__call__` is written in Python."""
    method: Any = type(f).__call__
    if method.__code__ is None or getattr(f, MARK, False):
        return f
    new = _function(method)
    return f if new is method else types.MethodType(new, f)


class _RouteTable(dict[type, Callable[[Any], Callable[..., Any]]]):
    """Map the type of a callable to the function that selects its callee."""

    def __missing__(self, kind: type) -> Callable[[Any], Callable[..., Any]]:
        route: Callable[[Any], Callable[..., Any]] = _identity
        method = getattr(kind, "__call__", None)  # noqa: B004  the function itself is wanted
        if not issubclass(kind, type) and converts(kind.__module__) and type(method) is types.FunctionType:
            route = _object
        if len(self) > 4096:
            self.clear()
            self.update(_BASIC)
        self[kind] = route
        return route


_BASIC: dict[type, Callable[[Any], Callable[..., Any]]] = {
    types.FunctionType: _function,
    types.MethodType: _method,
    types.BuiltinFunctionType: _builtin,
    type: _builtin,
    functools.partial: _partial,
}
_ROUTE_TABLE = _RouteTable(_BASIC)


def call(f: Any) -> Callable[..., Any]:
    """Return the callee to use for `f`: converted user code, this package's version of a builtin, or f itself."""
    return _ROUTE_TABLE[type(f)](f)


install_call(call)
