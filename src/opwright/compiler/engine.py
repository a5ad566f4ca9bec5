"""Machine code in this process: made once, kept in the object cache, loaded.

Lives here: `load`, `has_symbol`.  Not here: what is compiled, targets (target.py), the files of the cache (cache.py).
llvmlite is imported below this module and nowhere else at module level: `import opwright` must not pay for it.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import threading
import time
from pathlib import Path
from typing import Any

from llvmlite import binding as llvm

from ..core import flags
from .cache import Objects
from .target import host, optimised

FORMAT = 1  # of what the cache holds: raised where the same module would be compiled otherwise
_lock = threading.RLock()
_loaded: dict[str, int] = {}  # by digest
_SHOWN_WHEN_COMPILED = ("llvm", "asm")


@functools.cache
def _engine() -> Any:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), host().machine(jit=True))


@functools.cache
def _objects(folder: Path) -> Objects:
    return Objects(folder / "kernels")


def has_symbol(name: str) -> bool:
    """Whether this process has a C function of that name to call."""
    _engine()  # which makes this process's symbols known
    return llvm.address_of_symbol(name) is not None


def load(module: Any, entry: str) -> int:
    """The address of a module's function `entry`, as machine code that stays for the process's life.

    The same module is compiled once a machine: the cache keeps it.
    """
    text = str(module)
    target = host()
    parts = (str(FORMAT), ".".join(map(str, llvm.llvm_version_info)), target.triple, target.cpu, target.features, text)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    with _lock:
        address = _loaded.get(digest)
        if address is None:
            start = time.perf_counter()
            symbol = f"k{digest}"  # one engine holds all functions
            code, how = _code(text.replace(f'@"{entry}"', f'@"{symbol}"'), digest)
            engine = _engine()
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
            address = _loaded[digest] = engine.get_function_address(symbol)
            if "time" in flags.show:
                print(f"{how} {entry}  {(time.perf_counter() - start) * 1e3:.1f} ms", file=sys.stderr)
        return address


def _code(text: str, digest: str) -> tuple[bytes, str]:
    """The object code of a module, and whether it was compiled or found."""
    if "kernel" in flags.show:
        print(text, file=sys.stderr)
    objects = _objects(flags.cache_dir)
    code = None if flags.show.intersection(_SHOWN_WHEN_COMPILED) else objects.find(digest)
    if code is not None:
        return code, "found"
    machine = host().machine(jit=True)
    parsed = optimised(text, machine)
    if "llvm" in flags.show:
        print(parsed, file=sys.stderr)
    if "asm" in flags.show:
        print(machine.emit_assembly(parsed), file=sys.stderr)
    code = machine.emit_object(parsed)
    objects.keep(digest, code)
    return code, "compile"
