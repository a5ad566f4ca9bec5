"""Compilers of this machine: shared libraries of operators, and of the provider, from C and C++.

Lives here: `Compiler`, `find_compiler`; `build_library`, `provider`, `include_dir`.
Not here: the cache of libraries (build_cache.py), loading operators (custom_ops.py).

`CC` and `CXX` take precedence, then compilers on the PATH, then the compiler of the extra `c` (`pip install
opwright[c]`).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ...core import forks
from ...core.errors import InvalidArgumentError, NotFoundError, UnavailableError
from ...core.forks import once
from ...core.processors import usable_processors
from . import build_cache
from .build_cache import include_folder

MOST_LINES = 60  # of a compiler's output, in an error
_SECONDS = 600
_VARIABLES = {"c": "CC", "c++": "CXX"}
_NAMES = {"c": ("cc", "gcc", "clang"), "c++": ("c++", "g++", "clang++")}


class Compiler(NamedTuple):
    """A compiler command.

    identity: text that differs for another program. zig: whether it is zig's compiler, which by default compiles for
    the host's processor and with checks for undefined behavior.
    """

    command: tuple[str, ...]
    identity: str
    zig: bool

    @property
    def extra(self) -> tuple[str, ...]:
        """Arguments that make it behave as other compilers do."""
        return ("-mcpu=baseline", "-fno-sanitize=undefined") if self.zig else ()

    def run(self, arguments: Sequence[str], what: str) -> str:
        """Run the compiler; return its output if it succeeds: warnings, or nothing.

        what: the file to be built, for errors. raises InvalidArgumentError with the compiler's messages
        """
        command = [*self.command, *arguments]
        try:
            process = subprocess.run(
                command, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnavailableError(
                op=what,
                what=f"the compiler did not run: {error}",
                found=shlex.join(self.command),
                do="set CC and CXX to compilers that work",
            ) from error
        output = (process.stderr + process.stdout).decode(errors="replace").strip()
        if process.returncode == 0:
            return output
        lines = output.splitlines() or [f"exit status {process.returncode} without output"]
        if len(lines) > MOST_LINES:
            lines[MOST_LINES:] = [f"... and {len(lines) - MOST_LINES} lines more"]
        raise InvalidArgumentError(
            op=what,
            what="it does not compile",
            found="\n".join(["", *lines]),
            do=f"correct it; the command was: {shlex.join(command)}",
        )


def find_compiler(language: str) -> Compiler:
    """Return the compiler for "c" or "c++". Raises UnavailableError if there is none."""
    variable = _VARIABLES[language]
    return _select_compiler(language, os.environ.get(variable, ""), os.environ.get("PATH", ""))


@functools.cache
def _select_compiler(language: str, chosen: str, path: str) -> Compiler:
    if chosen.strip():
        words = shlex.split(chosen)
        program = shutil.which(words[0], path=path)
        if program is None:
            raise UnavailableError(
                op=_VARIABLES[language],
                what="the compiler does not exist",
                found=chosen,
                do=f"unset {_VARIABLES[language]}, or name another",
            )
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
    raise UnavailableError(
        what=f"there is no {language.upper()} compiler to build operators with",
        found=f"no {' or '.join(_NAMES[language])} on the PATH, no ziglang",
        do="pip install 'opwright[c]' (it brings one), or install gcc or clang",
    )


def _identity(program: str, words: Sequence[str]) -> str:
    """Return a program's path, size and modification time, which is faster than asking for its version."""
    real = os.path.realpath(program)
    try:
        stat = os.stat(real)
    except OSError:
        return f"{real} {shlex.join(words)}"
    return f"{real} {stat.st_size} {stat.st_mtime_ns} {shlex.join(words)}"


HERE = Path(__file__).parent
PROVIDER = HERE / "provider"
LANGUAGES = {".c": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".c++": "c++", ".C": "c++"}
FORMAT = 1  # of cache entries: incremented when the same sources are built in another way
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
_LINK = ("-shared", "-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-shared",)
_lock = forks.lock()


def include_dir() -> str:
    """Return the folder of headers to compile operators against: `cc -I<this>`.

    It contains the TensorFlow Lite C interface for operators under the paths by which programs include it:
    `tensorflow/lite/c/`, `tensorflow/lite/core/c/`, `tflite/c/`, `third_party/tensorflow/lite/c/` ...
    """
    return os.fspath(include_folder())


def build_library(
    sources: Sequence[str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    include_dirs: Sequence[str | os.PathLike[str]] | str | os.PathLike[str] = (),
    defines: Mapping[str, str | int | None] | None = None,
    flags: Sequence[str] | str = (),
    link_flags: Sequence[str] | str = (),
) -> Path:
    """Return the shared library of these sources, from the cache or built. See `custom_ops.build_custom_ops`."""
    if isinstance(sources, str | os.PathLike):
        sources = [sources]
    paths = [_checked(source) for source in sources]
    if not paths:
        raise InvalidArgumentError(op="build_custom_ops", what="there are no sources", wanted="one file or more")
    include_dirs = [include_dirs] if isinstance(include_dirs, str | os.PathLike) else include_dirs
    folders = [os.fspath(Path(folder).absolute()) for folder in include_dirs]
    for folder in folders:
        if not os.path.isdir(folder):
            raise NotFoundError(op="build_custom_ops", what="an include folder is not there", found=folder)
    arguments = ["-O2", "-fPIC", *(f"-I{folder}" for folder in (*folders, include_dir()))]
    for name, value in (defines or {}).items():
        arguments.append(f"-D{name}" if value is None else f"-D{name}={value}")
    return _build(paths, [*arguments, *_words(flags)], _words(link_flags), paths[0].stem[:60])


def _words(flags: Sequence[str] | str) -> list[str]:
    """Split a string into words, as on a command line."""
    return shlex.split(flags) if isinstance(flags, str) else list(flags)


def _checked(source: str | os.PathLike[str]) -> Path:
    path = Path(source).absolute()
    if not path.is_file():
        raise NotFoundError(op="build_custom_ops", what="a source is not there", found=os.fspath(source))
    if path.suffix not in LANGUAGES:
        raise InvalidArgumentError(
            op="build_custom_ops",
            what="a source's name does not say its language",
            found=path.name,
            wanted=f"a name that ends with {', '.join(LANGUAGES)}",
        )
    return path


def _build(paths: Sequence[Path], arguments: Sequence[str], link: Sequence[str], name: str) -> Path:
    """Return the library, cached or new. Dependencies are known only after compilation, so the cache records them.

    name: part of the file name, for readability
    """
    languages = [LANGUAGES[path.suffix] for path in paths]
    compilers = {language: find_compiler(language) for language in sorted(set(languages))}
    key = hashlib.sha256(
        repr(
            (
                FORMAT,
                sys.platform,
                [c.identity for c in compilers.values()],
                list(arguments),
                list(link),
                [(os.fspath(p), hashlib.sha256(p.read_bytes()).hexdigest()) for p in paths],
            )
        ).encode()
    ).hexdigest()
    with _lock:
        library = build_cache.find(key)
        if library is not None:
            return library
        with tempfile.TemporaryDirectory(prefix="opwright-build-") as folder:
            parts = [
                _CompileJob(path, compilers[language], language, os.path.join(folder, str(i)), arguments)
                for i, (path, language) in enumerate(zip(paths, languages))
            ]
            with ThreadPoolExecutor(usable_processors()) as threads:
                messages = list(threads.map(_CompileJob.compile, parts))
            objects = [f"{part.stem}.o" for part in parts]
            headers = set(paths).union(*(_dependencies_in(f"{part.stem}.d") for part in parts))
            linker = compilers.get("c++") or compilers["c"]
            target = os.path.join(folder, f"operators{SUFFIX}")
            messages.append(linker.run([*linker.extra, *_LINK, *objects, "-o", target, *link], paths[0].name))
            if any(messages):
                warnings.warn("\n".join(filter(None, messages)), RuntimeWarning, stacklevel=4)
            return build_cache.store(key, f"lib{name}{SUFFIX}", Path(target).read_bytes(), sorted(headers))


class _CompileJob(NamedTuple):
    """Compilation of one source to an object. stem: path prefix of the object and of its dependency file."""

    path: Path
    compiler: Compiler
    language: str
    stem: str
    arguments: Sequence[str]

    def compile(self) -> str:
        """Compile the source; return the compiler's messages."""
        strict = ["-Werror=implicit-function-declaration"] if self.language == "c" else []
        return self.compiler.run(
            [
                *self.compiler.extra,
                *strict,
                *self.arguments,
                "-MMD",
                "-MF",
                f"{self.stem}.d",
                "-c",
                os.fspath(self.path),
                "-o",
                f"{self.stem}.o",
            ],
            self.path.name,
        )


def _dependencies_in(note: str) -> set[Path]:
    """Return the files in a compiler's dependency file: `x.o: x.c x.h \\`."""
    text = Path(note).read_text(errors="replace").replace("\\\n", " ").replace("\\ ", "\0")
    _, _, files = text.partition(": ")
    return {Path(word.replace("\0", " ")).absolute() for word in files.split()}


@once
def provider() -> ctypes.CDLL:
    """Return the library that operator libraries link against, global in this process; built if it is not cached.

    raises UnavailableError if it must be built and there is no compiler
    """
    sources = sorted(PROVIDER.glob("*.c"))
    arguments = [
        "-std=c11",
        "-O2",
        "-fPIC",
        "-fvisibility=hidden",
        "-DTFL_COMPILE_LIBRARY",
        f"-I{include_dir()}",
        f"-I{PROVIDER}",
    ]
    try:
        path = _build(sources, arguments, ["-lm"] if os.name == "posix" else [], "opwright-tflite")
    except UnavailableError as error:
        raise UnavailableError(
            what="the run time that operators in C call is itself C, and was not built here yet",
            found=str(error).splitlines()[0],
            do="pip install 'opwright[c]' (it brings a compiler), or install gcc or clang; once is enough, it is kept",
        ) from error
    return ctypes.CDLL(os.fspath(path), mode=ctypes.RTLD_GLOBAL)
