"""Targets: which processor code is made for.

Lives here: `Target`, the table NAMED, the host's, LLVM's description of each, object code.
Not here: loading code into this process (engine.py), keeping it (cache.py).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from llvmlite import binding as llvm

from ..core.errors import NotFoundError


@dataclass(frozen=True)
class Target:
    """A processor. triple, cpu, features: in LLVM's words; vector_bytes: how wide its vectors are."""

    name: str
    triple: str
    cpu: str
    features: str = ""
    vector_bytes: int = 16

    def machine(self, jit: bool = False) -> Any:
        """LLVM's description of it; jit: for code that is loaded into this process."""
        return _machine(self, jit)

    def object_code(self, text: str) -> bytes:
        """The object file of a module in LLVM's text form."""
        machine = self.machine()
        code: bytes = machine.emit_object(optimised(text, machine))
        return code


@functools.cache
def _machine(target: Target, jit: bool) -> Any:
    if jit:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    more: dict[str, Any] = {"jit": True} if jit else {"reloc": "pic"}
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, **more
    )


def optimised(text: str, machine: Any) -> Any:
    """A module, parsed and optimised for a machine. Raises RuntimeError for text that LLVM refuses."""
    parsed = llvm.parse_assembly(text)
    parsed.triple = machine.triple
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = False  # kernels say themselves what is a vector
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    return parsed


_X86_V3 = "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe"
NAMED: dict[str, Target] = {t.name: t for t in (
    Target("x86-64-v2", "x86_64-unknown-linux-gnu", "x86-64-v2"),
    Target("x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", _X86_V3, 32),
    Target("x86-64-v4", "x86_64-unknown-linux-gnu", "x86-64-v4", "", 64),
    Target("x86-64-v4-vnni", "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512vnni", 64),
    Target("x86-64-v4-bf16", "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512vnni,+avx512bf16", 64),
    Target("aarch64", "aarch64-unknown-linux-gnu", "generic", "+neon"),
    Target("aarch64-dotprod", "aarch64-unknown-linux-gnu", "generic", "+neon,+dotprod"),
    Target("aarch64-i8mm", "aarch64-unknown-linux-gnu", "generic", "+neon,+dotprod,+i8mm"),
    Target("riscv64", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c"),
    Target("riscv64-v", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v"),
    Target("wasm32-simd128", "wasm32-unknown-unknown", "generic", "+simd128"),
    Target("generic", "x86_64-unknown-linux-gnu", "x86-64"),
)}  # fmt: skip
"""Targets by name; `host` is this machine."""


@functools.cache
def host() -> Target:
    """This processor, with all its features."""
    features = llvm.get_host_cpu_features()
    wide = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    return Target("host", llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten(), wide)


def named(name: str) -> Target:
    """A target by name. Raises NotFoundError."""
    if name == "host":
        return host()
    if name not in NAMED:
        raise NotFoundError(what="no such target", found=name, wanted=", ".join(("host", *NAMED)))
    return NAMED[name]
