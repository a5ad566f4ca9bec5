"""Code for other processors: every mathematical function and a kernel compile for every named target."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import numpy as np
import pytest
from foreign import EACH
from lane_kit import exact_functions
from llvmlite import ir

import opwright as ow
from opwright.compiler import target as targets
from opwright.compiler.language import Value, f32
from opwright.compiler.language.elements import emit_elements
from opwright.compiler.language.llvm_types import F32
from opwright.compiler.language.operators import KernelTrace
from opwright.core.errors import FailedPreconditionError, NotFoundError
from opwright.scalar import table

FUNCTIONS = exact_functions()

MACHINES = {"x86": (b"\x7fELF", 62), "aarch64": (b"\x7fELF", 183), "riscv64": (b"\x7fELF", 243)}  # e_machine


def module_of_all(width: int) -> ir.Module:
    """Emit a function over pointers for each mathematical function, on vectors of that length."""
    module = ir.Module("mathematics")
    pointer, kind = ir.PointerType(), ir.VectorType(F32, width)
    for name, function in FUNCTIONS.items():
        count = table.FUNCTIONS[name].arity
        result = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * (count + 1)), f"f.{name}")
        b = ir.IRBuilder(result.append_basic_block("entry"))
        xs = [b.load(p, typ=kind, align=4) for p in result.args[1:]]
        trace = KernelTrace(b, name, targets.named("generic"))
        y = trace.run(lambda f=function, xs=xs: f(*(Value(x, f32) for x in xs)))
        b.store(y.x, result.args[0], align=4)
        b.ret_void()
    return module


@pytest.mark.parametrize("name", EACH)
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
    module, _ = emit_elements(kernel, "Gate", [np.dtype("float32")] * 2, {}, chosen)
    assert f"<{chosen.vector_bytes // 4} x float>" in str(module)
    assert b"Gate" in chosen.object_code(str(module))


def test_a_target_that_nobody_knows_is_named() -> None:
    with pytest.raises(NotFoundError, match="x86-64-v4"):
        targets.named("abacus")
    assert targets.named("host") is targets.processor()


RUNNABLE = "x86-64-v3" if targets.processor().has("avx2") else "generic"
ELSEWHERE = "aarch64" if targets.processor().is_x86 else "x86-64-v2"


def test_bits_of_code_without_optimizations_are_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    def program(x: Any, w: Any) -> Any:
        y = ow.nn.softmax(ow.tanh(ow.matmul(x, w)) * 3.0)
        return y, ow.math.reduce_sum(y * y, 0), ow.sort(y)

    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(45, 67)).astype(np.float32), rng.normal(size=(67, 33)).astype(np.float32)
    results, codes = [], []
    for optimize in (True, False):
        with ow.flags(optimize=optimize, show="asm"):
            assert targets.host().optimized is optimize
            results.append([y.numpy() for y in ow.function(program, jit_compile=True)(ow.constant(x), ow.constant(w))])
        codes.append(capsys.readouterr().err)
    for optimized, plain in zip(*results, strict=True):
        np.testing.assert_array_equal(plain, optimized)
    assert all(codes)
    assert codes[0] != codes[1]


@pytest.mark.skipif(not targets.processor().is_x86, reason="restricts a processor of x86 to fewer features")
@pytest.mark.parametrize("name", ["host", RUNNABLE])
def test_the_flag_restricts_this_process_to_a_target(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An interpreter's machine code has vectors of that target and no wider ones, in one process after another."""
    program = ow.function(lambda x: ow.tanh(x) * 2.0, input_signature=[ow.TensorSpec([37], ow.float32)])
    content = ow.lite.TFLiteConverter.from_concrete_functions([program.get_concrete_function()]).convert()
    wide = targets.named(name).vector_bytes
    with ow.flags(target=name, compiled=True, background=False, show="asm"):
        assert targets.host().vector_bytes == wide
        interpreter = ow.lite.Interpreter(model_content=content)
        interpreter.allocate_tensors()
    registers = set(re.findall("%([xyz]mm)", capsys.readouterr().err))
    assert max(registers) == {16: "xmm", 32: "ymm", 64: "zmm"}[wide]
    x = np.linspace(-3, 3, 37, dtype=np.float32)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    np.testing.assert_allclose(
        interpreter.get_tensor(interpreter.get_output_details()[0]["index"]),
        np.tanh(x.astype(np.float64)) * 2,
        rtol=1e-6,
    )


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("abacus", NotFoundError, "no such target"),
        (ELSEWHERE, FailedPreconditionError, f"code for {ELSEWHERE} does not run on this processor"),
        pytest.param(
            "x86-64-v4-amx",
            FailedPreconditionError,
            "wanted  .*amx-tile",
            marks=pytest.mark.skipif(
                targets.processor().has("amx-int8") or not targets.processor().is_x86, reason="this processor has it"
            ),
        ),
    ],
)
def test_the_flag_refuses_what_cannot_run_here(name: str, error: type[Exception], words: str) -> None:
    with ow.flags(target=name), pytest.raises(error, match=words):
        targets.host()


@pytest.mark.parametrize("short", [False, True])
def test_the_short_passes_hoist_nothing_out_of_loops(short: bool) -> None:
    """But they keep values in registers, and compute what is there twice once."""
    text = """
        define void @f(ptr noalias %x, ptr noalias %scale, i64 %n) {
        entry:
          %place = alloca i64
          store i64 0, ptr %place
          br label %loop
        loop:
          %i = load i64, ptr %place
          %to = getelementptr float, ptr %x, i64 %i
          %s = load float, ptr %scale
          %t = load float, ptr %scale
          %y = fmul float %s, %t
          store float %y, ptr %to
          %next = add i64 %i, 1
          store i64 %next, ptr %place
          %more = icmp slt i64 %next, %n
          br i1 %more, label %loop, label %done
        done:
          ret void
        }"""
    target = targets.named("x86-64-v3")
    passed = str(targets.optimised(text, target, target.machine(), short=short))
    assert "alloca" not in passed
    assert passed.count("load float") == 1
    assert (passed.index("load float") < passed.index("loop:")) is not short


@pytest.mark.parametrize(
    ("target", "written", "skipped"),
    [
        ("x86-64-v4", [targets.SHORT_PASSES], True),
        ("x86-64-v4", [], False),
        ("x86-64-v3", [targets.SHORT_PASSES], False),
        ("x86-64-v3", [targets.SHORT_PASSES, targets.ADDRESSED], True),
        ("aarch64", [targets.SHORT_PASSES, targets.ADDRESSED], False),
    ],
)
def test_loops_are_reduced_unless_written_so_or_for_many_registers(
    target: str, written: list[str], skipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option is LLVM's own, of the whole process: it is as before afterwards, after an error, too."""
    from llvmlite import binding as llvm

    options: list[str] = []
    monkeypatch.setattr(llvm, "set_option", lambda _, option: options.append(option))
    monkeypatch.setattr(targets, "_REDUCTION_VERSIONS", (llvm.llvm_version_info[0],))
    text = "\n".join(f"!{name} = !{{}}" for name in written)
    with contextlib.suppress(ValueError), targets.code_generation(targets.named(target), text):
        raise ValueError
    assert options == (["-disable-lsr", "-disable-lsr=false"] if skipped else [])


def test_every_processor_has_a_target_whose_kernels_a_wheel_can_ship() -> None:
    beyond = "bmi", "bmi2", "lzcnt", "movbe"  # of x86-64-v3, which no kernel queries
    for cpu, features in targets.IMPLIED.items():
        if "avx" in features:
            text = ",".join(f"+{feature}" for feature in (*features, *beyond))
            one = targets.Target.of("x86_64-unknown-linux-gnu", cpu, text)
            assert len([name for name, named in targets.NAMED.items() if named.serves(one)]) == 1, cpu
