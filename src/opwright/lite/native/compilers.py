"""C and C++ compilers: finding one, running it.

Lives here: `Compiler`, `find`.  Not here: what is compiled, where it is kept (building.py).

`CC` and `CXX` come first, then what is on the PATH, then the compiler of the extra `c` (`pip install opwright[c]`).
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...core.errors import InvalidArgumentError, UnavailableError

MOST_LINES = 60  # of what a compiler says, in an error
_SECONDS = 600
_VARIABLES = {"c": "CC", "c++": "CXX"}
_NAMES = {"c": ("cc", "gcc", "clang"), "c++": ("c++", "g++", "clang++")}


class Compiler(NamedTuple):
    """How a compiler is called. identity: words that differ where another program would run; zig: whether it is zig's,
    which compiles for this very processor and checks for undefined behaviour where it is not told otherwise."""

    command: tuple[str, ...]
    identity: str
    zig: bool

    @property
    def extra(self) -> tuple[str, ...]:
        """Arguments that make it behave as other compilers do."""
        return ("-mcpu=baseline", "-fno-sanitize=undefined") if self.zig else ()

    def run(self, arguments: Sequence[str], what: str) -> str:
        """Run it; what it says when all is well: warnings, or nothing.

        what: is being made, for errors. raises InvalidArgumentError with the compiler's own lines
        """
        command = [*self.command, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnavailableError(op=what, what=f"the compiler did not run: {error}", found=shlex.join(self.command),
                                   do="set CC and CXX to compilers that work") from error  # fmt: skip
        said = (done.stderr + done.stdout).decode(errors="replace").strip()
        if done.returncode == 0:
            return said
        lines = said.splitlines() or [f"exit status {done.returncode} and not a word"]
        if len(lines) > MOST_LINES:
            lines[MOST_LINES:] = [f"... and {len(lines) - MOST_LINES} lines more"]
        raise InvalidArgumentError(op=what, what="it does not compile", found="\n".join(["", *lines]),
                                   do=f"mend it; it was run as: {shlex.join(command)}")  # fmt: skip


def find(language: str) -> Compiler:
    """The compiler for "c" or "c++". Raises UnavailableError where there is none."""
    variable = _VARIABLES[language]
    return _find(language, os.environ.get(variable, ""), os.environ.get("PATH", ""))


@functools.cache
def _find(language: str, chosen: str, path: str) -> Compiler:
    if chosen.strip():
        words = shlex.split(chosen)
        program = shutil.which(words[0], path=path)
        if program is None:
            raise UnavailableError(op=_VARIABLES[language], what="the compiler that it names is not there",
                                   found=chosen, do=f"unset {_VARIABLES[language]}, or name another")  # fmt: skip
        zig = Path(program).stem in ("zig", "python-zig") or "ziglang" in words
        return Compiler((program, *words[1:]), _identity(program, words[1:]), zig)
    for name in _NAMES[language]:
        program = shutil.which(name, path=path)
        if program is not None:
            return Compiler((program,), _identity(program, ()), False)
    spec = importlib.util.find_spec("ziglang")
    if spec is not None and spec.origin is not None:
        words = ["-m", "ziglang", "cc" if language == "c" else "c++"]
        zig_program = Path(spec.origin).parent / ("zig.exe" if os.name == "nt" else "zig")
        return Compiler((sys.executable, *words), _identity(os.fspath(zig_program), words), True)
    raise UnavailableError(what=f"there is no {language.upper()} compiler to build operators with",
                           found=f"no {' or '.join(_NAMES[language])} on the PATH, no ziglang",
                           do="pip install 'opwright[c]' (it brings one), or install gcc or clang")  # fmt: skip


def _identity(program: str, words: Sequence[str]) -> str:
    """A program's place, size and age: quicker to tell than its version is to ask for."""
    real = os.path.realpath(program)
    try:
        stat = os.stat(real)
    except OSError:
        return f"{real} {shlex.join(words)}"
    return f"{real} {stat.st_size} {stat.st_mtime_ns} {shlex.join(words)}"
