"""Execution of jaxprs by rules: equations in order, inner jaxprs inlined, random keys as words.

Lives here: `RULES`, the table; `JaxprContext`, which rules receive; `load_rules`; `calls`, what needs a rule.
Not here: rules (rules/), functions and pytrees (program.py).

Keys of `jax.random.key` are arrays of uint32 with an axis of words at the end. An operator that only moves elements is
executed for each word.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import as_dtype
from ...core.errors import InvalidArgumentError, OpError
from ...core.introspection import OURS
from ...core.lazy_imports import import_module
from ...ops import array
from ..importing import RuleTable, is_known, tensor_of
from ..missing_operators import ForeignCall, MissingOperators, spec_text
from .sizes import CURRENT, OpenSizes, dense, is_open

RULES = RuleTable("jax")
FAMILIES = (
    "arrays",
    "contraction",
    "control_flow",
    "convolution",
    "cumulative",
    "elementwise",
    "indexing",
    "integers",
    "linear_algebra",
    "random",
    "reduction",
    "scatter",
    "sorting",
    "windows",
)
MOVES = frozenset(
    {
        "broadcast_in_dim",
        "concatenate",
        "copy",
        "dynamic_slice",
        "dynamic_update_slice",
        "expand_dims",
        "gather",
        "reshape",
        "rev",
        "scatter",
        "select_n",
        "slice",
        "split",
        "squeeze",
        "transpose",
        "unstack",
        "stack",
        "tile",
    }
)
"""Primitives that are executed for each word of random keys."""
BROADCASTING: set[str] = set()
"""Primitives whose rules take operands of open sizes before they are repeated (`Repeated`); rules add theirs."""


def load_rules() -> RuleTable:
    """Return the table, complete."""
    for family in FAMILIES:
        import_module(f".rules.{family}", __package__)
    return RULES


def closed(jaxpr: Any) -> tuple[Any, Sequence[Any]]:
    """Return a Jaxpr or ClosedJaxpr as the jaxpr and its constants."""
    return (jaxpr.jaxpr, jaxpr.consts) if hasattr(jaxpr, "consts") else (jaxpr, ())


def inner_jaxprs(params: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the jaxprs that parameters of an equation hold."""
    for value in params.values():
        for member in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(member, "eqns") or hasattr(member, "jaxpr"):
                yield member


def is_key(aval: Any) -> bool:
    """Return whether an abstract value is an array of random keys."""
    return hasattr(aval, "dtype") and hasattr(aval.dtype, "_impl")


def type_text(aval: Any) -> str:
    """Return an abstract value's type as errors show it."""
    if not hasattr(aval, "shape"):
        return str(aval)
    return str(aval) if is_key(aval) else spec_text(aval.dtype, aval.shape)


def calls(jaxpr: Any, names: str = "") -> Iterator[ForeignCall]:
    """Yield the calls of a jaxpr and of those inside it that need a rule."""
    for equation in closed(jaxpr)[0].eqns:
        node = _joined(names, str(equation.source_info.name_stack))
        plain = {k: v for k, v in equation.params.items() if isinstance(v, (bool, int, float, str))}
        inputs = tuple((f"x{i}", type_text(v.aval)) for i, v in enumerate(equation.invars))
        label = " ".join(p for p in (node, f"({user_line(equation)})" if user_line(equation) else "") if p)
        yield ForeignCall(equation.primitive.name, label, inputs, plain, len(equation.outvars))
        for inner in inner_jaxprs(equation.params):
            yield from calls(inner, node)


def user_line(equation: Any) -> str | None:
    """Return file:line of the user's call that wrote an equation; None if JAX has not kept it."""
    place = _users_frame(equation)
    return f"{place[0]}:{place[1]}" if place else None


def _users_frame(equation: Any) -> tuple[str, int] | None:
    traceback = equation.source_info.traceback
    if traceback is None:
        return None
    for frame in traceback.frames:
        if not frame.file_name.startswith(("<", *_library_folders())) and "site-packages" not in frame.file_name:
            return frame.file_name, frame.line_num
    return None


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Return the folders of code that a user has not written: this package, JAX, Python's library."""
    modules = (import_module("jax"), functools)
    return (OURS, *(os.path.dirname(str(module.__file__)) + os.sep for module in modules))


def _joined(prefix: str, name: str) -> str:
    return "/".join(p for p in (prefix, name) if p)


def _trampoline(function: Callable[[], Any]) -> Any:
    return function()


@functools.lru_cache(4096)
def at_line(file: str, line: int) -> Callable[[Callable[[], Any]], Any]:
    """Return a function that calls its argument from a line of the user's file, for tracebacks and lines of nodes."""
    lines = _trampoline.__code__
    offset = list(lines.co_lines())[-1][2] or 0
    code = lines.replace(co_filename=file, co_firstlineno=max(1, line - (offset - lines.co_firstlineno)))
    return types.FunctionType(code, {})


class JaxprContext:
    """A jaxpr while it is executed; what rules receive.

    custom: the user's rules. equation: the current one. prefix: the name scope of the jaxpr's equations. sizes: the
    open sizes, or None.
    """

    def __init__(
        self, custom: Mapping[str, Any] | None = None, prefix: str = "", sizes: OpenSizes | None = None
    ) -> None:
        self.custom = dict(custom or {})
        self.prefix, self.sizes = prefix, sizes
        self.equation: Any = None
        self.label = prefix

    # ---- what rules ask ------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the current equation's first output."""
        return tuple(self.equation.outvars[0].aval.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the current equation's first output."""
        return as_dtype(self.equation.outvars[0].aval.dtype)

    @property
    def outputs(self) -> int:
        """How many outputs the current equation has."""
        return len(self.equation.outvars)

    def inner(self, name: str = "") -> JaxprContext:
        """Return a context for jaxprs of the current equation, also after it."""
        return JaxprContext(self.custom, _joined(self.label, name), self.sizes)

    def run(self, jaxpr: Any, inputs: Sequence[Any], name: str = "") -> list[Any]:
        """Execute a jaxpr of the current equation on values; return its outputs."""
        return self.inner(name).execute(jaxpr, inputs)

    def traced(self, function: Callable[..., Any], inputs: Sequence[Any], kinds: Sequence[Any]) -> list[Any]:
        """Execute what JAX traces of a function of arguments of these types (shape, dtype); return its outputs."""
        jax = import_module("jax")
        jaxpr = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(*kind) for kind in kinds))
        return self.run(jaxpr, inputs)

    def mapped(self, jaxpr: Any, inputs: Sequence[Any], shape: Sequence[int]) -> list[Any]:
        """Execute a jaxpr of scalars for each element of inputs of one shape; return arrays of its outputs."""
        jax, core = import_module("jax"), import_module("jax.extend.core")
        function = core.jaxpr_as_fun(jaxpr if hasattr(jaxpr, "consts") else core.ClosedJaxpr(jaxpr, ()))
        for _ in shape:
            function = jax.vmap(function)
        kinds = [(tuple(shape), v.aval.dtype) for v in closed(jaxpr)[0].invars]
        return self.traced(function, inputs, kinds)

    # ---- execution -----------------------------------------------------------------------------------------------

    def execute(self, jaxpr: Any, inputs: Sequence[Any]) -> list[Any]:
        """Execute the equations of a Jaxpr or ClosedJaxpr in order; return its outputs."""
        token = CURRENT.set(self.sizes)
        try:
            return self._run(jaxpr, inputs)
        finally:
            CURRENT.reset(token)

    def _run(self, jaxpr: Any, inputs: Sequence[Any]) -> list[Any]:
        jaxpr, constants = closed(jaxpr)
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, map(constant, constants)))
        if len(jaxpr.invars) != len(inputs):
            raise InvalidArgumentError(
                op="from_jax",
                what="a jaxpr takes another number of inputs",
                found=len(inputs),
                wanted=len(jaxpr.invars),
            )
        values.update((v, self._sized(v, x)) for v, x in zip(jaxpr.invars, inputs))
        last = {v: e for e in jaxpr.eqns for v in e.invars if not hasattr(v, "val")}
        kept = {v for v in jaxpr.outvars if not hasattr(v, "val")}
        for equation in jaxpr.eqns:
            arguments = [constant(v.val) if hasattr(v, "val") else values[v] for v in equation.invars]
            results = self._execute(equation, arguments)
            values.update((v, self._sized(v, x)) for v, x in zip(equation.outvars, results))
            for v in equation.invars:  # arrays computed at import are not kept longer than they are used
                if not hasattr(v, "val") and v not in kept and last[v] is equation:
                    values.pop(v, None)
        return [constant(v.val) if hasattr(v, "val") else dense(values[v]) for v in jaxpr.outvars]

    def _sized(self, variable: Any, value: Any) -> Any:
        return value if self.sizes is None else self.sizes.note(value, getattr(variable.aval, "shape", ()))

    def _execute(self, equation: Any, inputs: list[Any]) -> list[Any]:
        self.equation = equation
        self.label = _joined(self.prefix, str(equation.source_info.name_stack))
        name = equation.primitive.name
        place = _users_frame(equation)
        call = functools.partial(self._by_rule, name, inputs, equation)
        try:
            return list(call() if place is None else at_line(*place)(call))
        except MissingOperators:
            raise
        except OpError as error:
            if error.at or place is None:
                raise
            file, line = place
            raise type(error)(op=name, at=f"{file}:{line}", what=str(error)) from error

    def _by_rule(self, name: str, inputs: list[Any], equation: Any) -> list[Any]:
        if name in MOVES and any(is_key(v.aval) for v in (*equation.invars, *equation.outvars)):
            return self._by_words(name, inputs, equation)
        is_sized = self.sizes is not None
        if is_sized and name not in BROADCASTING:
            inputs = list(map(dense, inputs))
        traced = is_sized and any(is_open(getattr(v.aval, "shape", ())) for v in equation.outvars)
        return RULES.apply(name, self, inputs, equation.params, node=self.label, custom=self.custom, traced=traced)

    def _by_words(self, name: str, inputs: list[Any], equation: Any) -> list[Any]:
        keys = [is_key(v.aval) for v in equation.invars]
        words = next(v.shape[-1] for v, key in zip(inputs, keys) if key)
        columns = []
        for i in range(words):
            of_word = [tensor_of(v)[..., i] if key else v for v, key in zip(inputs, keys)]
            of_word = [
                np.asarray(v.numpy()) if is_known(before) and hasattr(v, "numpy") else v
                for v, before in zip(of_word, inputs)
            ]
            columns.append(RULES.apply(name, self, of_word, equation.params, node=self.label, custom=self.custom))
        return [
            np.stack(column, -1) if is_known(column) else array.stack(list(map(tensor_of, column)), -1)
            for column in zip(*columns)
        ]


def constant(value: Any) -> Any:
    """Return a constant of a jaxpr as an array that shares its memory; keys as their words."""
    if hasattr(value, "dtype") and hasattr(value.dtype, "_impl"):
        value = import_module("jax").random.key_data(value)
    if value is None or isinstance(value, np.ndarray):
        return value
    dtype = getattr(value, "dtype", None)
    return np.asarray(value, None if dtype is None else dtype)
