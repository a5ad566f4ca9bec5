"""Code for other processors: every mathematical function and a kernel compile for every named target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import ir

import opwright as ow
from opwright.compiler import target as targets
from opwright.compiler.elementwise import emit
from opwright.compiler.lanes import F32, Lanes
from opwright.compiler.mathematics import FUNCTIONS
from opwright.core.errors import NotFoundError

MACHINES = {"x86": (b"\x7fELF", 62), "aarch64": (b"\x7fELF", 183), "riscv64": (b"\x7fELF", 243)}  # e_machine


def module_of_all(width: int) -> ir.Module:
    """A function over pointers for each mathematical function, on vectors of so many lanes."""
    module = ir.Module("mathematics")
    pointer, kind = ir.PointerType(), ir.VectorType(F32, width)
    for name, function in FUNCTIONS.items():
        count = function.__code__.co_argcount
        made = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * (count + 1)), f"f.{name}")
        b = ir.IRBuilder(made.append_basic_block("entry"))
        xs = [Lanes(b, b.load(p, typ=kind, align=4)) for p in made.args[1:]]
        b.store(function(*xs).x, made.args[0], align=4)
        b.ret_void()
    return module


@pytest.mark.parametrize("name", sorted(targets.NAMED))
def test_everything_compiles(name: str) -> None:
    chosen = targets.named(name)
    code = chosen.object_code(str(module_of_all(chosen.vector_bytes // 4)))
    if name.startswith("wasm"):
        assert code[:8] == b"\0asm\1\0\0\0"
    else:
        magic, machine = MACHINES[next((k for k in MACHINES if name.startswith(k)), "x86")]
        assert code[:4] == magic
        assert int.from_bytes(code[18:20], "little") == machine
    for function in FUNCTIONS:
        assert f"f.{function}".encode() in code


@pytest.mark.parametrize("name", ["x86-64-v3", "aarch64", "riscv64-v", "wasm32-simd128"])
def test_a_kernel_compiles(name: str) -> None:
    def kernel(x: Any, y: Any) -> Any:
        return ow.tanh(x) * ow.maximum(y, 0.5)

    chosen = targets.named(name)
    module, _ = emit(kernel, "Gate", [np.dtype("float32")] * 2, {}, chosen)
    assert f"<{chosen.vector_bytes // 4} x float>" in str(module)
    assert b"Gate" in chosen.object_code(str(module))


def test_a_target_that_nobody_knows_is_named() -> None:
    with pytest.raises(NotFoundError, match="x86-64-v4"):
        targets.named("abacus")
    assert targets.named("host") is targets.host()
