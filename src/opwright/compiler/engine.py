"""LLVM at work: object code for a target, and its own loader where Opwright's is not to be had.

Lives here: `object_code`, `load_object`, `provide`.  Not here: what is compiled, targets (target.py), keeping and
loading code (native/), which imports this module when something has to be compiled: llvmlite costs a tenth of a second.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping

from llvmlite import binding as llvm

from ..core import flags
from .background import LLVM
from .native.image import runs_images
from .target import Target, host, optimised


def object_code(text: str, target: Target) -> bytes:
    """Return the object file of a module in LLVM's text form, for code of this process; prints it on request."""
    with LLVM:
        return _object_code(text, target)  # whose modules are freed before the lock is


def _object_code(text: str, target: Target) -> bytes:
    machine = target.machine(jit=not runs_images())
    if "kernel" in flags.show:
        print(text, file=sys.stderr)
    parsed = optimised(text, machine)
    if "llvm" in flags.show:
        print(parsed, file=sys.stderr)
    if "asm" in flags.show:
        print(machine.emit_assembly(parsed), file=sys.stderr)
    code: bytes = machine.emit_object(parsed)
    return code


@functools.cache  # under the lock
def _engine() -> llvm.ExecutionEngine:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), host().machine(jit=True))


def provide(addresses: Mapping[str, int | None]) -> None:
    """Register addresses of C functions with LLVM's loader; it resolves those without an address itself."""
    with LLVM:
        for name, address in addresses.items():
            if address is not None:
                llvm.add_symbol(name, address)


def load_object(code: bytes, symbol: str) -> int:
    """Return the address of a function of an object file, loaded by LLVM; the name must be unique."""
    with LLVM:
        engine = _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address: int = engine.get_function_address(symbol)
        return address
