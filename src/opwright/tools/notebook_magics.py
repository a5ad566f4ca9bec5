"""Magics of notebooks: `%load_ext opwright`, then `%%kernel` and `%%profile`.

Lives here: `load_ipython_extension` and the magics. Not here: how objects are shown (views/notebooks.py).

    %%kernel                              %%profile -r 50
    @ow.kernel                            interpreter = ow.lite.Interpreter("model.tflite")
    def scale(...): ...                   interpreter.allocate_tensors()
    scale(x, y, 0.5)                      interpreter
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import re
import timeit
from typing import Any

from ..core import introspection
from ..core.errors import InvalidArgumentError, OpError
from ..core.show import show
from ..lite import Interpreter
from ..pages.markup import escape

_MODULES = re.compile(r"^(?=; ModuleID|\t\.file\b)", re.MULTILINE)
REPEATS = 7


class KernelReport:
    """Code and time of a cell's kernel. ir, assembly: texts of LLVM, optimized; seconds: the least time of a call."""

    def __init__(self, call: str, ir: str, assembly: str, seconds: float, number: int) -> None:
        self.call, self.ir, self.assembly, self.seconds, self.number = call, ir, assembly, seconds, number

    def __repr__(self) -> str:
        return f"{self.call}: {_duration(self.seconds)}, the least of {REPEATS} times {self.number} calls"

    def _repr_html_(self) -> str:
        parts = [
            f"<details><summary>{label} ({len(text.splitlines())} lines)</summary>"
            f"<pre>{escape(text, 200_000)}</pre></details>"
            for label, text in (("LLVM IR", self.ir), ("Assembly", self.assembly))
        ]
        return f"<div><p><code>{escape(self)}</code></p>{''.join(parts)}</div>"


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _parts(magic: str, cell: str) -> tuple[ast.Module, ast.Expression, str]:
    """Return the statements of a cell, and its last one, an expression. Raises InvalidArgumentError for another."""
    tree = introspection.parse(cell)
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        raise InvalidArgumentError(
            op=f"%%{magic}",
            what="the cell does not end with an expression",
            wanted="a call of the kernel" if magic == "kernel" else "an Interpreter",
        )
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    return tree, ast.Expression(last.value), ast.unparse(last.value)


def kernel_report(cell: str, namespace: dict[str, Any], name: str | None = None) -> KernelReport:
    """Run a cell, compile the kernel that its last line calls, and time the call.

    name: of the cell in tracebacks, by which `inspect` reads its source
    raises InvalidArgumentError if the cell does not end with an expression, or if no kernel was compiled by it; the
    errors of the cell
    """
    statements, expression, text = _parts("kernel", cell)
    source = name or f"<%%kernel {hash(cell):x}>"
    linecache.cache[source] = len(cell), None, cell.splitlines(keepends=True), source  # for AutoGraph
    exec(introspection.compile_tree(statements, source), namespace)
    code = introspection.compile_tree(expression, source)
    printed = io.StringIO()
    with show("llvm", "asm"), contextlib.redirect_stderr(printed):
        eval(code, namespace)
    blocks = [block for block in _MODULES.split(printed.getvalue()) if block.startswith(("; ModuleID", "\t.file"))]
    ir = "\n".join(block for block in blocks if block.startswith("; ModuleID"))
    if not ir:
        raise InvalidArgumentError(
            op="%%kernel",
            what="the last line compiled no kernel",
            found=text,
            do="define and call the kernel in one cell",
        )
    timer = timeit.Timer(lambda: eval(code, namespace))
    number = max(timer.autorange()[0] // 10, 1)
    seconds = min(timer.repeat(REPEATS, number)) / number
    return KernelReport(text, ir, "\n".join(block for block in blocks if block.startswith("\t.file")), seconds, number)


def profile_of(cell: str, namespace: dict[str, Any], runs: int) -> Any:
    """Run a cell, and profile the Interpreter that its last line is. Raises InvalidArgumentError for other values."""
    statements, expression, text = _parts("profile", cell)
    exec(introspection.compile_tree(statements, "<%%profile>"), namespace)
    interpreter = eval(introspection.compile_tree(expression, "<%%profile>"), namespace)
    if not isinstance(interpreter, Interpreter):
        raise InvalidArgumentError(
            op="%%profile",
            what="the last line is not an interpreter",
            found=f"{text}, a {type(interpreter).__name__}",
            wanted="an allocated ow.lite.Interpreter",
        )
    return interpreter.profile(runs)


def load_ipython_extension(shell: Any) -> None:
    """Register the magics with IPython, and show errors as tables above their tracebacks: `%load_ext opwright` calls
    this."""

    def kernel(line: str, cell: str) -> KernelReport:
        """Show the IR, the assembly and the time of the kernel that the cell's last line calls."""
        return kernel_report(cell, shell.user_ns)

    def profile(line: str, cell: str) -> Any:
        """Show the times of the nodes of the Interpreter that the cell's last line is. -r RUNS: their number, 20."""
        match = re.fullmatch(r"\s*(?:-r\s*(\d+))?\s*", line)
        if match is None:
            raise InvalidArgumentError(op="%%profile", what="unknown options", found=line, wanted="-r RUNS")
        return profile_of(cell, shell.user_ns, int(match.group(1) or 20))

    def show_error(
        shell: Any, kind: type[OpError], error: OpError, traceback: Any, tb_offset: int | None = None
    ) -> None:
        from IPython.display import display  # in every notebook, and not a requirement

        display(error)
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)

    shell.set_custom_exc((OpError,), show_error)
    shell.register_magic_function(kernel, "cell", "kernel")
    shell.register_magic_function(profile, "cell", "profile")
