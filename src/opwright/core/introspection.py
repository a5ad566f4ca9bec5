"""Introspection of Python code: frames, signatures, syntax trees.

Lives here: the line of the user's program, which is the innermost frame outside this package, and the line at which an
error left it; signatures of functions; `parse`, `compile_tree`, `literal`, one conversion at a time, and
`retry_conversion` for those of other libraries. Not here: tracebacks (autograph/), binding arguments
(tracing/signature.py), a function's source (autograph/source.py).

CPython 3.11 before 3.11.8 counts the recursion depth of the conversion between its own tree and `ast` objects in one
counter for all threads (gh-106905). The conversion allocates objects, so the garbage collector may run and another
thread may be scheduled; if that thread converts a tree, too, both fail with `SystemError: AST constructor recursion
depth mismatch`. A fork's child inherits the counter.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar

from . import forks

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def users_line() -> str | None:
    """Return file:line of the innermost frame outside this package; None if there is none."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back  # type: ignore[assignment]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else None


def raised_at(error: BaseException) -> str | None:
    """Return file:line where an error passed the innermost frame outside this package; None if there is none."""
    line, traceback = None, error.__traceback__
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(OURS):
            line = f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line


def levels_to_user() -> int:
    """Return the `stacklevel` with which warnings.warn, called at the same level, names the innermost line outside
    this package.
    """
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    return level


if sys.version_info >= (3, 14):
    from annotationlib import Format

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """Return `inspect.signature`; annotations may contain undefined names, which Python evaluates on demand."""
        return inspect.signature(function, annotation_format=Format.FORWARDREF)

else:

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """Return `inspect.signature`; annotations may contain undefined names, which are not evaluated."""
        return inspect.signature(function)


def copy_annotations(function: Callable[..., Any], to: Callable[..., Any]) -> None:
    """Copy the annotations of a function to `to`, without evaluating them."""
    annotate = getattr(function, "__annotate__", None)  # Python 3.14
    if annotate is not None:
        to.__annotate__ = annotate  # type: ignore[attr-defined]
    else:
        to.__annotations__ = function.__annotations__


T = TypeVar("T")
ATTEMPTS = 10
"""Attempts of a conversion: threads that run code of other libraries do not wait for the lock."""
_converting = forks.held_through_forks()


def _convert(conversion: Callable[..., T], *arguments: Any) -> T:
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(SystemError), _converting:
            return conversion(*arguments)
    with _converting:
        return conversion(*arguments)


def retry_conversion(function: Callable[[str], T], argument: str) -> T:
    """Call a function of another library that converts trees, as `np.load` does to read a header, until no other
    thread interferes. Conversions of this package wait for no file, so the lock is not held."""
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(SystemError):
            return function(argument)
    return function(argument)


def parse(source: str) -> ast.Module:
    """Parse the text of a module. Raises SyntaxError or ValueError, as `ast.parse` does."""
    result: ast.Module = _convert(ast.parse, source)
    return result


def compile_tree(tree: ast.Module | ast.Expression, filename: str, flags: int = 0) -> types.CodeType:
    """Compile the tree of a module or an expression. flags: of `from __future__` imports; the caller's are not
    inherited."""
    mode = "exec" if isinstance(tree, ast.Module) else "eval"
    code: types.CodeType = _convert(compile, tree, filename, mode, flags, True)
    return code


def literal(source: str) -> Any:
    """Evaluate a number, a string, or another literal. Raises ValueError or SyntaxError, as `ast.literal_eval` does."""
    return _convert(ast.literal_eval, source)
