"""Conversions between text, syntax trees, and code, one at a time.

Lives here: `parse`, `compile_tree`, `literal`.  Not here: finding a function's source (staging/source.py).

CPython counts how deeply it recurses while it turns its own tree into `ast` objects, or back, in one number for all
threads. Objects are made meanwhile, so the garbage collector may run and another thread may get its turn; if that one
converts a tree too, both end in `SystemError: AST constructor recursion depth mismatch`. A fork's child inherits the
count.
"""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Callable
from typing import Any, TypeVar

from . import forks

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
    return _convert(ast.parse, source)


def compile_tree(tree: ast.Module, filename: str, flags: int = 0) -> types.CodeType:
    """Compile a tree to a module's code. flags: of `from __future__` imports; the caller's own are not inherited."""
    code: types.CodeType = _convert(compile, tree, filename, "exec", flags, True)
    return code


def literal(source: str) -> Any:
    """Evaluate a number, a string, or another literal. Raises ValueError or SyntaxError, as `ast.literal_eval` does."""
    return _convert(ast.literal_eval, source)
