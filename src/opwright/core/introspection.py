"""Inspect Python code: frames, signatures, syntax trees.

Lives here: the line of the user's program, the innermost frame that is not of this package, and where an error went
through it; signatures of functions; `parse`, `compile_tree`, `literal`, one conversion at a time.
Not here: tracebacks (autograph/), binding arguments (tracing/signature.py), a function's source (autograph/source.py).

CPython counts how deeply it recurses while it turns its own tree into `ast` objects, or back, in one number for all
threads. Objects are made meanwhile, so the garbage collector may run and another thread may get its turn; if that one
converts a tree too, both end in `SystemError: AST constructor recursion depth mismatch`. A fork's child inherits the
count.
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
    """file:line of the innermost frame outside this package; None where there is none."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back  # type: ignore[assignment]
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else None


def raised_at(error: BaseException) -> str | None:
    """file:line where an error went through the innermost frame outside this package; None where there is none."""
    found, step = None, error.__traceback__
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith(OURS):
            found = f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    return found


def levels_to_user() -> int:
    """The `stacklevel` by which warnings.warn, called beside this, names the innermost line outside this package."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    return level


if sys.version_info >= (3, 14):
    from annotationlib import Format

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """`inspect.signature`. Annotations may name what is not there (yet): Python evaluates them when asked."""
        return inspect.signature(function, annotation_format=Format.FORWARDREF)

else:

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """`inspect.signature`. Annotations may name what is not there (yet): Python evaluates them when asked."""
        return inspect.signature(function)


def copy_annotations(function: Callable[..., Any], to: Callable[..., Any]) -> None:
    """Give `to` the annotations of a function, not evaluated where they are not yet."""
    annotate = getattr(function, "__annotate__", None)  # Python 3.14
    if annotate is not None:
        to.__annotate__ = annotate  # type: ignore[attr-defined]
    else:
        to.__annotations__ = function.__annotations__


T = TypeVar("T")
ATTEMPTS = 10
"""How often a conversion begins: threads that run other libraries' code do not wait for the lock."""
_converting = forks.held_through_forks()


def _convert(conversion: Callable[..., T], *arguments: Any) -> T:
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(SystemError), _converting:
            return conversion(*arguments)
    with _converting:
        return conversion(*arguments)


def parse(source: str) -> ast.Module:
    """Parse the text of a module. Raises SyntaxError or ValueError, as `ast.parse` does."""
    result: ast.Module = _convert(ast.parse, source)
    return result


def compile_tree(tree: ast.Module, filename: str, flags: int = 0) -> types.CodeType:
    """Compile a tree to a module's code. flags: of `from __future__` imports; the caller's own are not inherited."""
    code: types.CodeType = _convert(compile, tree, filename, "exec", flags, True)
    return code


def literal(source: str) -> Any:
    """Evaluate a number, a string, or another literal. Raises ValueError or SyntaxError, as `ast.literal_eval` does."""
    return _convert(ast.literal_eval, source)
