"""The machine: LLVM for this host, and code in memory.

Lives here: the host's target machine, optimisation, the execution engine.  Not here: what is compiled.
llvmlite is imported here and nowhere above module level elsewhere: `import opwright` must not pay for it.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from typing import Any

from llvmlite import binding as llvm

from ..core import flags

_lock = threading.Lock()


@functools.cache
def target_machine() -> Any:
    """LLVM's description of this processor, with all its features."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
    )


@functools.cache
def vector_bytes() -> int:
    """How wide this processor's vectors are: what a kernel's loop works on at a time, in bytes."""
    features = llvm.get_host_cpu_features()
    return 64 if features.get("avx512f") else 32 if features.get("avx2") else 16


@functools.cache
def _engine() -> Any:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())


def has_symbol(name: str) -> bool:
    """Whether this process has a C function of that name to call."""
    _engine()  # which makes this process's symbols known
    return llvm.address_of_symbol(name) is not None


def compile_module(module: Any, entry: str) -> int:
    """Optimise and load a module; the address of its function `entry`. Kept for the process's life."""
    with _lock:
        start = time.perf_counter()
        machine = target_machine()
        text = str(module)
        if "kernel" in flags.show:
            print(text, file=sys.stderr)
        parsed = llvm.parse_assembly(text)
        parsed.triple = machine.triple
        parsed.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = False  # kernels say themselves what is a vector
        options.slp_vectorization = True
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(parsed, builder)
        if "llvm" in flags.show:
            print(parsed, file=sys.stderr)
        if "asm" in flags.show:
            print(machine.emit_assembly(parsed), file=sys.stderr)
        engine = _engine()
        engine.add_module(parsed)
        engine.finalize_object()
        address = engine.get_function_address(entry)
        if "time" in flags.show:
            print(f"compile {entry}  {(time.perf_counter() - start) * 1e3:.1f} ms", file=sys.stderr)
        return address
