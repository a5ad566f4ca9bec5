"""Several levels of a processor in one library: kernels for each, and code that chooses among them when it runs.

Lives here: `CpuLevel`, `levels_of`, `levels_text`, `with_features`, `combined`. Not here: targets (targets.py), the
function of a signature, which calls the plan of the level (modules.py).

The level is chosen at the first run and kept in the only variable of a library; threads that choose at the same time
store the same number. x86: CPUID and XGETBV (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2;
levels as the psABI of x86-64 defines them). AArch64: AT_HWCAP and AT_HWCAP2 of Linux and Android (Linux, ELF
hwcaps); elsewhere the lowest level, until the caller sets another one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..compiler.target import NAMED, Target
from ..core.errors import InternalError, InvalidArgumentError, UnimplementedError
from .identifiers import identifier
from .model_plans import ModelPlan
from .status_codes import OK, UNSUPPORTED_LEVEL

_LEAF1_C, _LEAF7_B, _LEAF7_C, _LEAF71_A, _EXTENDED_C, _XCR0 = range(6)
_HWCAP, _HWCAP2 = range(2)
_Bits = dict[int, tuple[int, ...]]
_V2: _Bits = {_LEAF1_C: (0, 9, 13, 19, 20, 23)}  # SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT
_V3: _Bits = {
    _LEAF1_C: (*_V2[_LEAF1_C], 12, 22, 27, 28, 29),  # FMA, MOVBE, OSXSAVE, AVX, F16C
    _LEAF7_B: (3, 5, 8),  # BMI1, AVX2, BMI2
    _EXTENDED_C: (0, 5),  # LAHF, LZCNT
    _XCR0: (1, 2),  # XMM, YMM
}
_V4: _Bits = _V3 | {
    _LEAF7_B: (*_V3[_LEAF7_B], 16, 17, 28, 30, 31),  # AVX512F, DQ, CD, BW, VL
    _XCR0: (1, 2, 5, 6, 7),  # and opmask, ZMM
}
_V4_VNNI: _Bits = _V4 | {_LEAF7_C: (11,)}
X86_LEVELS: dict[str, tuple[str, _Bits]] = {
    "v1": ("generic", {}),
    "v2": ("x86-64-v2", _V2),
    "v3": ("x86-64-v3", _V3),
    "v3-vnni": ("x86-64-v3-vnni", _V3 | {_LEAF71_A: (4,)}),
    "v4": ("x86-64-v4", _V4),
    "v4-vnni": ("x86-64-v4-vnni", _V4_VNNI),
    "v4-bf16": ("x86-64-v4-bf16", _V4_VNNI | {_LEAF71_A: (5,)}),
}
"""Levels in ascending order: their targets, and the bits of the words of `_X86_WORDS` that they take."""
AARCH64_LEVELS: dict[str, tuple[str, _Bits]] = {
    "generic": ("aarch64", {}),
    "dotprod": ("aarch64-dotprod", {_HWCAP: (20,)}),
    "i8mm": ("aarch64-i8mm", {_HWCAP: (20,), _HWCAP2: (13,)}),
}


class CpuLevel(NamedTuple):
    """A level. bits: of the words that the processor is asked for, by the index of the word."""

    name: str
    target: Target
    bits: _Bits

    @property
    def identifier(self) -> str:
        """The name in C."""
        return identifier(self.name)


def levels_of(base: Target, names: str) -> tuple[CpuLevel, ...]:
    """Return levels for the system of a target. names: with commas, in any order.

    raises InvalidArgumentError for other names, UnimplementedError for processors without levels
    """
    table = X86_LEVELS if base.triple.startswith("x86_64") else AARCH64_LEVELS if base.is_aarch64 else None
    if table is None:
        raise UnimplementedError(
            op="aot.build", what="only x86-64 and AArch64 have levels", found=base.triple, do="build a library for each"
        )
    asked = [name.strip() for name in names.split(",")]
    unknown = [name for name in asked if name not in table]
    if unknown or len({*asked}) != len(asked):
        raise InvalidArgumentError(
            op="aot.build",
            what="levels of a processor",
            found=names,
            wanted=f"several of {', '.join(table)}, each once",
        )
    return tuple(
        CpuLevel(name, NAMED[target]._replace(triple=base.triple), bits)
        for name, (target, bits) in table.items()
        if name in asked
    )


def combined(models: Sequence[ModelPlan], levels: Sequence[CpuLevel]) -> ModelPlan:
    """Return one model whose signatures have the plans of all levels, one level after the other."""
    first = models[0]
    fields = [[(f.identifier, f.dtype, f.shape, f.flag) for f in m.state] for m in models]
    if any(f != fields[0] for f in fields):
        raise InternalError(op="aot.build", what="levels disagree on the state", found=fields)
    signatures = tuple(
        s._replace(
            plans=tuple(plan for m in models for plan in m.signatures[i].plans),
            numbers=tuple(
                level * math.prod(p.num_sizes for p in s.sizes) + n
                for level, m in enumerate(models)
                for n in m.signatures[i].numbers
            ),
        )
        for i, s in enumerate(first.signatures)
    )
    kernels = {address: kernel for m in models for address, kernel in m.kernels.items()}
    targets = {address: level.target for m, level in zip(models, levels) for address in m.kernels}
    name = f"{levels[0].target.name} and {', '.join(level.name for level in levels[1:])}"
    base = levels[0].target._replace(name=name)
    return first._replace(target=base, kernels=kernels, signatures=signatures, levels=tuple(levels), targets=targets)


def with_features(text: str, target: Target) -> str:
    """Return a module's text whose functions are compiled for a processor."""
    words = f'"target-cpu"="{target.cpu}"'
    if target.features:
        words += f' "target-features"="{target.features}"'
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("define "):
            head = line.rstrip()
            opens = head.endswith("{")
            lines[i] = f"{head[:-1] if opens else head} {words}{' {' if opens else ''}"
    return "\n".join(lines) + "\n"


def levels_text(name: str, levels: Sequence[CpuLevel]) -> list[str]:
    """Return the functions that choose a level: `int NAME_set_level(int level)`, `int NAME_level(void)`.

    Levels are numbered from 1, in order; 0 is the highest that the processor has
    """
    target, count = levels[0].target, len(levels)
    is_detected = target.is_x86 or "linux" in target.triple
    words = _x86_words(name) if target.is_x86 else _LINUX_WORDS if is_detected else []
    tests = []
    for i, level in enumerate(levels):
        checks = []
        for word, bits in level.bits.items() if is_detected else ():
            mask = sum(1 << bit for bit in bits)
            register = f"%l{i}.{word}"
            tests += [
                f"  {register}.bits = and i64 %w{word}, {mask}",
                f"  {register} = icmp eq i64 {register}.bits, {mask}",
            ]
            checks.append(register)
        result = "true"
        for k, register in enumerate(checks):
            tests.append(f"  %all{i}.{k} = and i1 {result}, {register}")
            result = f"%all{i}.{k}"
        tests += [
            f"  %bit{i} = select i1 {result}, i32 {1 << i}, i32 0",
            f"  %mask{i} = or i32 {f'%mask{i - 1}' if i else '0'}, %bit{i}",
        ]
    best = ["  %zeros = call i32 @llvm.ctlz.i32(i32 %mask, i1 false)", "  %best = sub i32 32, %zeros"]
    return [
        f"@{name}.level = internal global i32 0",
        "declare i32 @llvm.ctlz.i32(i32, i1)",
        *(["declare i64 @getauxval(i64)"] if is_detected and not target.is_x86 else []),
        *(_x86_functions(name) if target.is_x86 else []),
        f"define internal i32 @{name}.supported() noinline {{",
        "entry:",
        *words,
        *tests,
        f"  ret i32 %mask{count - 1}",
        "}",
        f"define i32 @{name}_level() {{",
        "entry:",
        f"  %kept = load atomic i32, ptr @{name}.level monotonic, align 4",
        "  %unset = icmp eq i32 %kept, 0",
        "  br i1 %unset, label %choose, label %done",
        "choose:",
        f"  %mask = call i32 @{name}.supported()",
        *(best if is_detected else ["  %best = add i32 0, 1"]),
        f"  store atomic i32 %best, ptr @{name}.level monotonic, align 4",
        "  br label %done",
        "done:",
        "  %level = phi i32 [ %kept, %entry ], [ %best, %choose ]",
        "  ret i32 %level",
        "}",
        f"define i32 @{name}_set_level(i32 %level) {{",
        "entry:",
        "  %automatic = icmp eq i32 %level, 0",
        "  br i1 %automatic, label %store, label %check",
        "check:",
        "  %index = sub i32 %level, 1",
        f"  %known = icmp ult i32 %index, {count}",
        "  br i1 %known, label %ask, label %unsupported",
        "ask:",
        f"  %mask = call i32 @{name}.supported()",
        "  %shifted = lshr i32 %mask, %index",
        "  %low = and i32 %shifted, 1",
        "  %has = icmp eq i32 %low, 1",
        "  br i1 %has, label %store, label %unsupported",
        "store:",
        f"  store atomic i32 %level, ptr @{name}.level monotonic, align 4",
        f"  ret i32 {OK}",
        "unsupported:",
        f"  ret i32 {UNSUPPORTED_LEVEL}",
        "}",
    ]


_CPUID = bytes.fromhex("53 89f0 89d1 0fa2 8907 895f04 894f08 89570c 5b c3")
"""push rbx; eax, ecx = esi, edx; cpuid; [rdi], [rdi + 4] ... = eax, ebx, ecx, edx; pop rbx; ret"""
_XGETBV = bytes.fromhex("31c9 0f01d0 c3")
"""ecx = 0; xgetbv; ret"""


def _x86_functions(name: str) -> list[str]:
    """Return functions around instructions that LLVM has no form of without a parser of assembly: their code is the
    data with which they begin, in the calling convention of Linux on all systems; what follows is not reached."""

    def code(content: bytes) -> str:
        return f'[{len(content)} x i8] c"' + "".join(f"\\{byte:02X}" for byte in content) + '"'

    return [
        f"define internal x86_64_sysvcc void @{name}.cpuid(ptr %into, i32 %leaf, i32 %subleaf) noinline optnone "
        f"prologue {code(_CPUID)} {{",
        "  store volatile i32 0, ptr %into",
        "  ret void",
        "}",
        f"define internal x86_64_sysvcc i32 @{name}.xgetbv() noinline optnone prologue {code(_XGETBV)} {{",
        "  %unused = alloca i32",
        "  %value = load volatile i32, ptr %unused",
        "  ret i32 %value",
        "}",
    ]


def _x86_words(name: str) -> list[str]:
    """Return instructions for the words %w0 to %w5; those of leaves that the processor does not have are 0."""

    def cpuid(leaf: int, subleaf: int = 0) -> str:
        return f"  call x86_64_sysvcc void @{name}.cpuid(ptr %into, i32 {leaf}, i32 {subleaf})"

    def part(register: str, index: int) -> list[str]:
        return [
            f"  {register}.place = getelementptr i32, ptr %into, i32 {index}",
            f"  {register}.part = load i32, ptr {register}.place",
            f"  {register} = zext i32 {register}.part to i64",
        ]

    lines = ["  %into = alloca [4 x i32], align 4", cpuid(0), *part("%most", 0), cpuid(1), *part("%w0", 2)]
    lines += ["  %has7 = icmp uge i64 %most, 7", "  br i1 %has7, label %seven, label %rest"]
    lines += ["seven:", cpuid(7), *part("%s1", 1), *part("%s2", 2), *part("%subs", 0)]
    lines += ["  %has71 = icmp uge i64 %subs, 1", "  br i1 %has71, label %seven.one, label %rest"]
    lines += ["seven.one:", cpuid(7, 1), *part("%s3", 0), "  br label %rest", "rest:"]
    for word, value in ((1, "%s1"), (2, "%s2")):
        lines.append(f"  %w{word} = phi i64 [ 0, %entry ], [ {value}, %seven ], [ {value}, %seven.one ]")
    lines += ["  %w3 = phi i64 [ 0, %entry ], [ 0, %seven ], [ %s3, %seven.one ]"]
    lines += [cpuid(-0x7FFFFFFF), *part("%w4", 2)]  # 0x80000001
    lines += ["  %saves.bit = and i64 %w0, 134217728", "  %saves = icmp ne i64 %saves.bit, 0"]  # OSXSAVE
    lines += ["  br i1 %saves, label %states, label %known", "states:"]
    lines += [
        f"  %xcr = call x86_64_sysvcc i32 @{name}.xgetbv()",
        "  %xcr0 = zext i32 %xcr to i64",
        "  br label %known",
    ]
    return [*lines, "known:", "  %w5 = phi i64 [ 0, %rest ], [ %xcr0, %states ]"]


_LINUX_WORDS = ["  %w0 = call i64 @getauxval(i64 16)", "  %w1 = call i64 @getauxval(i64 26)"]
