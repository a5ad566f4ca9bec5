"""Values of a call that a gradient rule reads, by analysis of its bytecode.

Lives here: `reads`. Not here: declarations of gradients (gradient_makers.py).
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

BY_SHAPE = frozenset({"shape", "dtype", "spec", "rank", "ndim", "get_shape"})  # of a tensor, without its elements
_CALL_ATTRIBUTES = frozenset({"attrs", "needs_gradient", "operator"})  # of a call, besides the attributes

_REFLECTION = frozenset({"locals", "vars", "eval", "exec", "globals", "sys", "inspect"})

_VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_CLOSURE")

_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


class _Unanalyzable(Exception):
    """Raised for a use of the call that the analysis does not follow."""


def reads(
    rule: Any, parts: Collection[str], attrs: Collection[str], methods: Mapping[str, Any]
) -> tuple[set[str], set[str]] | None:
    """Return the inputs and outputs that a rule reads by value, and those of which it reads only shape or dtype.

    rule: called with the call first. parts: names of inputs and outputs. methods: helper functions of the class.
    None if the rule may read anything.
    """
    reader = _Reader(frozenset(parts), frozenset(attrs) | _CALL_ATTRIBUTES, methods)
    try:
        reader.analyze(rule)
    except _Unanalyzable:
        return None
    return reader.values, reader.shapes - reader.values


class _Reader:
    def __init__(self, parts: frozenset[str], other_names: frozenset[str], methods: Mapping[str, Any]) -> None:
        self.parts, self.other_names, self.methods = parts, other_names, methods
        self.values: set[str] = set()
        self.shapes: set[str] = set()
        self._seen: set[types.CodeType] = set()

    def analyze(self, function: Any) -> None:
        """Collect the names that a function reads from its first argument."""
        if not isinstance(function, types.FunctionType) or not function.__code__.co_argcount:
            raise _Unanalyzable
        code = function.__code__
        if code not in self._seen:
            self._seen.add(code)
            self._walk(code, code.co_varnames[0], function)

    def _walk(self, code: types.CodeType, call: str, function: types.FunctionType) -> None:
        steps = list(_steps(code))
        shared = code.co_cellvars + code.co_freevars
        for i, (step, name, arg) in enumerate(steps):
            if name.startswith(("STORE_", "DELETE_")) and arg == call:
                raise _Unanalyzable
            if name in ("LOAD_GLOBAL", "LOAD_NAME") and arg in _REFLECTION:
                raise _Unanalyzable
            if not name.startswith(_VARIABLES) or arg != call:
                continue
            if name == "LOAD_CLOSURE" or (name.startswith("LOAD_FAST") and call in shared):
                continue  # captured by an inner function, which is analysed below
            following = steps[i + 1]
            if following[1] in ("LOAD_ATTR", "LOAD_METHOD"):
                self._attribute(following[2], steps[i + 2])
            elif step is not None and _is_first_argument(steps, i, code):
                self.analyze(_callee(steps, i, function))
            else:
                raise _Unanalyzable
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType) and call in inner.co_freevars:
                self._walk(inner, call, function)

    def _attribute(self, name: str, following: tuple[Any, str, Any]) -> None:
        if name in self.parts:
            alone = following[1] in ("LOAD_ATTR", "LOAD_METHOD") and following[2] in BY_SHAPE
            (self.shapes if alone else self.values).add(name)
        elif name in self.methods:
            method = self.methods[name]
            if isinstance(method, property):
                method = method.fget
            if isinstance(method, types.FunctionType):
                self.analyze(method)
            elif hasattr(type(method), "__get__") and not isinstance(method, staticmethod):
                raise _Unanalyzable
        elif name not in self.other_names:
            raise _Unanalyzable


def _steps(code: types.CodeType) -> Iterator[tuple[Any, str, Any]]:
    """Yield instructions as (instruction, name, argument); an instruction for two variables as two."""
    for step in dis.get_instructions(code):
        name, arg = step.opname, step.argval
        if name in ("CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN"):  # no effect
            continue
        if isinstance(arg, tuple) and "_FAST" in name:
            first, second = (
                ("STORE_FAST", "STORE_FAST")
                if name.count("STORE") == 2
                else ("STORE_FAST", "LOAD_FAST")
                if "STORE" in name
                else ("LOAD_FAST", "LOAD_FAST")
            )
            yield step, first, arg[0]
            yield step, second, arg[1]
        else:
            yield step, name, arg
    yield None, "END", None
    yield None, "END", None


def _is_first_argument(steps: Sequence[tuple[Any, str, Any]], i: int, code: types.CodeType) -> bool:
    """Return whether the value loaded at step i is the first positional argument of a call, without branches."""
    depth = 1  # values on the stack, from this one on
    names: Any = ()  # arguments of the next call that are given by name
    for index in range(i + 1, len(steps)):
        step, name, _ = steps[index]
        if step is None:  # the end
            return False
        if step.opcode in _JUMPS or name in ("YIELD_VALUE", "SEND", "RETURN_GENERATOR"):
            return False
        if name == "KW_NAMES":
            names = code.co_consts[step.arg]
        else:
            if name in ("PRECALL", "CALL_KW") or (name == "CALL" and sys.version_info >= (3, 12)):
                if name == "CALL_KW":  # the names lie on top
                    names = steps[index - 1][2]
                    if not isinstance(names, tuple):
                        return False
                position = depth - (name == "CALL_KW")
                if step.arg >= position:
                    result: bool = step.arg == position and len(names) < step.arg
                    return result
            if name == "CALL":
                names = ()
            if name.startswith((*_VARIABLES, "STORE_FAST")):  # pairs were split into two steps
                depth += -1 if name.startswith("STORE") else 1
            else:
                depth += dis.stack_effect(step.opcode, step.arg, jump=False)
        if depth < 1:
            return False
    return False


def _callee(steps: Sequence[tuple[Any, str, Any]], i: int, function: types.FunctionType) -> object:
    """Return the function loaded just before step i for a call. Raises _Unanalyzable if it is unknown."""
    index = i - 1
    ready = False  # whether what is loaded is going to be called
    if index >= 0 and steps[index][1] == "PUSH_NULL":
        ready, index = True, index - 1
    path: list[str] = []
    while index >= 0:
        step, name, arg = steps[index]
        if step is None:
            break
        flagged = step.arg is not None and bool(step.arg & 1)
        if name in ("LOAD_METHOD", "LOAD_ATTR") and (
            path or ready or name == "LOAD_METHOD" or (flagged and sys.version_info >= (3, 12))
        ):
            ready = True
            path.append(arg)
            index -= 1
            continue
        before = steps[index - 1][1] if index else ""
        ready = ready or before == "PUSH_NULL" or (name == "LOAD_GLOBAL" and flagged)
        if not ready:
            break
        if name == "LOAD_GLOBAL":
            value = function.__globals__.get(arg, None)
        elif name == "LOAD_DEREF" and arg in function.__code__.co_freevars:
            cell = (function.__closure__ or ())[function.__code__.co_freevars.index(arg)]
            try:
                value = cell.cell_contents
            except ValueError:
                break
        else:
            break
        for part in reversed(path):
            if not isinstance(value, types.ModuleType):
                raise _Unanalyzable
            value = getattr(value, part, None)
        return value
    raise _Unanalyzable
