"""Targets: the processors for which code is generated.

Lives here: `Target`, the table NAMED, the target of this process, LLVM's machine of each, object code.
Not here: the description of the host (native/host.py), loading and caching code (native/).

LLVM is imported when code is generated: naming and describing a target does not need it.
"""

from __future__ import annotations

import contextlib
import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..core import flags
from ..core.errors import FailedPreconditionError, NotFoundError
from ..core.forks import once
from ..core.named_tuples import NamedTuple
from .background import LLVM
from .native.host import host_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llvmlite import binding as llvm


class Target(NamedTuple):
    """A processor for which code is generated.

    name: for messages. triple, cpu, features: in LLVM's terms, as "aarch64-linux-android", "cortex-a76",
    "+dotprod,+i8mm". vector_bytes: width of its vectors. optimized: whether LLVM optimizes its code (the
    flag `optimize`).

    `Target.named("host")` is this machine; `NAMED` has others; `Target.of(triple, cpu, features)` is any of LLVM's.
    """

    name: str
    triple: str
    cpu: str
    features: str = ""
    vector_bytes: int = 16
    optimized: bool = True

    @staticmethod
    def named(name: str) -> Target:
        """Return a target by name: host, or a key of NAMED. Raises NotFoundError, which lists them."""
        return named(name)

    @staticmethod
    def of(triple: str, cpu: str = "", features: str = "") -> Target:
        """Return the target of an LLVM triple. cpu: by default the baseline; features: in addition to the cpu's.

        Kernels choose instructions by these features and those of the cpus in IMPLIED; LLVM knows more cpus and uses
        all their features. Raises NotFoundError for a triple that LLVM does not know.
        """
        from llvmlite import binding as llvm

        arch, *rest = triple.split("-")
        if rest in (
            ["none", "eabi"],
            ["none", "eabihf"],
            ["none", "elf"],
        ):  # as GNU tools abbreviate it; LLVM takes the
            triple = "-".join((arch, "unknown", *rest))  # second word for a vendor
        try:
            with LLVM:
                llvm.initialize_all_targets()
                llvm.Target.from_triple(triple)
        except RuntimeError as error:
            raise NotFoundError(
                what="LLVM has no such target",
                found=triple,
                wanted="a triple, as x86_64-unknown-linux-gnu",
                do="; ".join(str(error).split("; ")[:2]),
            ) from None
        target = Target("-".join(filter(None, (triple, cpu))), triple, cpu, features)
        width = 64 if target.has("avx512f") else 32 if target.has("avx2") else SCALAR if target.lacks_vectors else 16
        return target._replace(vector_bytes=width)

    @property
    def is_x86(self) -> bool:
        """Return whether it executes x86 instructions."""
        return self.triple.startswith(("x86_64", "i686", "i386"))

    @property
    def is_aarch64(self) -> bool:
        """Return whether it executes 64-bit ARM instructions."""
        return self.triple.startswith(("aarch64", "arm64"))

    @property
    def is_bare(self) -> bool:
        """Return whether it has no operating system, which would load code anywhere."""
        return self.triple.endswith(("-none-eabi", "-none-eabihf", "-none-elf", "-unknown-elf"))

    @property
    def lacks_vectors(self) -> bool:
        """Return whether it is a microcontroller whose registers are numbers."""
        return self.triple.startswith(("thumb", "riscv32")) and not (self.has("mve.fp") or self.has("v"))

    @property
    def counts_by_32_bits(self) -> bool:
        """Return whether its registers and addresses have 32 bits: no loop of a kernel has more iterations."""
        return self.triple.startswith(("thumb", "armv", "riscv32"))

    @property
    def is_wasm(self) -> bool:
        """Return whether it executes WebAssembly."""
        return self.triple.startswith("wasm")

    @property
    def is_big_endian(self) -> bool:
        """Return whether the first byte of a number in memory is its highest."""
        return self.triple.split("-")[0] in _BIG_ENDIAN

    @property
    def registers(self) -> int:
        """Number of registers of a vector; those of numbers that a loop leaves on a microcontroller."""
        if self.vector_bytes == SCALAR:
            return 10
        if self.is_wasm:  # which runs on x86-64, too
            return 16
        return 16 if self.is_x86 and self.vector_bytes < 64 else 8 if self.triple.startswith("thumb") else 32

    def lanes(self, size: int) -> int:
        """Return the number of elements of `size` bytes in a vector, at least 1."""
        return max(1, self.vector_bytes // size)

    @property
    def vnni_lanes(self) -> tuple[int, ...]:
        """Number of int32 lanes of VNNI instructions; 0 without VNNI."""
        return (4, 8, 16) if self.has("avx512vnni") else (4, 8) if self.has("avxvnni") else ()

    @property
    def masks_stores(self) -> bool:
        """Return whether masked stores cost little more than plain ones: AVX2's take 18 operations and more on AMD's
        processors, and other targets write lane by lane."""
        return self.has("avx512f")

    def masks_loads(self, size: int) -> bool:
        """Return whether masked loads of elements of `size` bytes cost little more than plain ones."""
        return self.has("avx2" if size >= 4 else "avx512bw")

    def has(self, feature: str) -> bool:
        """Return whether it has a feature, in LLVM's terms, or the cpu's name implies it (IMPLIED)."""
        listed = f",{self.features},"
        return f",+{feature}," in listed or (feature in IMPLIED.get(self.cpu, ()) and f",-{feature}," not in listed)

    def serves(self, other: Target) -> bool:
        """Return whether kernels for this target run on another one and consist of the same instructions of LLVM.

        The other one has its features, and the features that kernels query are equal.
        """
        return (
            (self.is_x86, self.is_aarch64, self.vector_bytes) == (other.is_x86, other.is_aarch64, other.vector_bytes)
            and all(self.has(feature) == other.has(feature) for feature in QUERIED)
            and all(other.has(feature) for feature in self.listed)
        )

    @property
    def listed(self) -> list[str]:
        """Return the features that its text lists."""
        return [f[1:] for f in self.features.split(",") if f.startswith("+")]

    def machine(self, jit: bool = False) -> llvm.TargetMachine:
        """Return LLVM's target machine; jit: for code that is loaded into this process."""
        return _machine(self, jit)

    def object_code(self, text: str) -> bytes:
        """Return the object file of a module in LLVM's text form."""
        with LLVM:
            machine = self.machine()
            code: bytes = machine.emit_object(optimised(text, self, machine))
            return code


@once
def _machine(target: Target, jit: bool) -> llvm.TargetMachine:
    from llvmlite import binding as llvm

    if jit:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    reloc = "static" if target.is_bare or target.is_wasm else "pic"
    more: dict[str, Any] = {"jit": True} if jit else {"reloc": reloc, "codemodel": "small"}
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3 if target.optimized else 0, **more
    )


SHORT_PASSES = "opwright.short_passes"
"""Named metadata of modules whose loops are written as they should run: with their invariants outside."""
ADDRESSED = "opwright.addressed"
"""Named metadata of modules whose inner loops compute no addresses but a base and an index, and nothing twice."""


def optimised(text: str, target: Target, machine: llvm.TargetMachine, short: bool = False) -> llvm.ModuleRef:
    """Return a parsed module, optimized for the machine of a target. Raises RuntimeError for text that LLVM rejects.

    short: whether half of the passes suffice on x86-64, which take half of the time; LLVM then hoists nothing out of
    loops
    """
    from llvmlite import binding as llvm

    parsed = llvm.parse_assembly(text)
    parsed.triple = machine.triple
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=1)  # 3 takes twice as long for the same code of kernels
    options.loop_vectorization = False  # kernels are vectorized by hand
    options.loop_unrolling = False  # and unrolled by hand: more would spill tiles of registers
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    if target.optimized and not target.triple.startswith("x86_64"):  # kernels of AArch64 need its VectorCombine
        builder.getModulePassManager().run(parsed, builder)
    else:  # the rest of that pipeline takes as long again, for code that is no quicker
        inlining = llvm.create_new_module_pass_manager()
        inlining.add_always_inliner_pass()
        inlining.add_global_dead_code_eliminate_pass()
        inlining.run(parsed, builder)
        if not target.optimized:
            return parsed
        passes = _short_passes(_is_addressed(text)) if short else builder.getFunctionPassManager()
        for function in parsed.functions:
            if not function.is_declaration:
                passes.run(function, builder)
    return parsed


def needs_short_passes(text: str) -> bool:
    """Return whether a module has SHORT_PASSES."""
    return f"!{SHORT_PASSES} =" in text


def _is_addressed(text: str) -> bool:
    return f"!{ADDRESSED} =" in text


_REDUCTION_VERSIONS = (22,)
"""Versions of LLVM known to have `-disable-lsr`: an unknown option ends the process."""


@contextlib.contextmanager
def code_generation(target: Target, text: str) -> Iterator[None]:
    """Generate the code of a module in the context, under the lock.

    LLVM's strength reduction of loops, with what follows of it, takes up to a third of the time. Loops of modules with
    SHORT_PASSES compute their addresses once: with 32 vector registers networks are as quick without it. With 16 they
    are if the modules are ADDRESSED; pooling, transposed copies and depthwise convolutions take 4 to 12 % longer.
    """
    from llvmlite import binding as llvm

    written = needs_short_passes(text) and (target.registers == 32 or _is_addressed(text))
    if not (target.is_x86 and llvm.llvm_version_info[0] in _REDUCTION_VERSIONS and written):
        yield
        return
    llvm.set_option("", "-disable-lsr")
    try:
        yield
    finally:
        llvm.set_option("", "-disable-lsr=false")


def _short_passes(addressed: bool) -> llvm.FunctionPassManager:
    """Return passes for kernels whose loops need no analysis: code of products is 2 % quicker than by all passes. Half
    of them suffice for modules that are ADDRESSED, in less than half of the time."""
    from llvmlite import binding as llvm

    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    if addressed:
        passes.add_loop_rotate_pass()
        passes.add_instruction_combine_pass()
        return passes
    passes.add_instruction_combine_pass()
    passes.add_loop_rotate_pass()
    passes.add_new_gvn_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_dead_code_elimination_pass()
    return passes


_BIG_ENDIAN = frozenset(
    ("s390x", "systemz", "powerpc", "powerpc64", "ppc", "ppc64", "mips", "mips64", "sparc", "sparcv9", "aarch64_be")
)
SCALAR = 4
"""Bytes of a vector on processors that have none: one number."""
_AVX2 = ("avx", "avx2", "fma", "f16c")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd")
_ICELAKE = (*_AVX512, "avx512vnni", "avx512vbmi")
IMPLIED = {
    **dict.fromkeys(
        ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m35p", "cortex-m55", "cortex-m85"), ("dsp", "vfp2sp")
    ),
    **dict.fromkeys(("x86-64-v3", "haswell", "broadwell", "skylake", "znver1", "znver2", "znver3"), _AVX2),
    "alderlake": (*_AVX2, "avxvnni"),
    **dict.fromkeys(("x86-64-v4", "skylake-avx512"), _AVX512),
    "cascadelake": (*_AVX512, "avx512vnni"),
    **dict.fromkeys(("icelake-client", "icelake-server", "tigerlake", "rocketlake"), _ICELAKE),
    **dict.fromkeys(("znver4", "znver5"), (*_ICELAKE, "avx512bf16")),
    **dict.fromkeys(
        ("sapphirerapids", "emeraldrapids", "graniterapids"), (*_ICELAKE, "avx512bf16", "amx-tile", "amx-int8")
    ),
    **dict.fromkeys(
        (
            "cortex-a55",
            "cortex-a75",
            "cortex-a76",
            "cortex-a77",
            "cortex-a78",
            "cortex-x1",
            "neoverse-n1",
            "apple-a13",
            "apple-a14",
            "apple-m1",
        ),
        ("neon", "dotprod"),
    ),
    **dict.fromkeys(
        (
            "cortex-a510",
            "cortex-a710",
            "cortex-x2",
            "cortex-x3",
            "neoverse-n2",
            "neoverse-v1",
            "neoverse-v2",
            "apple-m2",
            "apple-m3",
            "apple-m4",
        ),
        ("neon", "dotprod", "i8mm"),
    ),
}
"""Features implied by a cpu's name, limited to features that kernels query."""
QUERIED = frozenset(feature for features in IMPLIED.values() for feature in features)
"""All of these."""

_X86_V3 = "+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe"
_VBMI, _AMX = "+avx512vnni,+avx512vbmi", "+amx-tile,+amx-int8"
NAMED: dict[str, Target] = {
    t.name: t
    for t in (
        Target("x86-64-v2", "x86_64-unknown-linux-gnu", "x86-64-v2"),
        Target("x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", _X86_V3, 32),
        Target("x86-64-v3-vnni", "x86_64-unknown-linux-gnu", "x86-64-v3", f"{_X86_V3},+avxvnni", 32),
        Target("x86-64-v4", "x86_64-unknown-linux-gnu", "x86-64-v4", "", 64),
        Target("x86-64-v4-vnni", "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512vnni", 64),
        Target("x86-64-v4-bf16", "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512vnni,+avx512bf16", 64),
        Target("x86-64-v4-amx", "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512vnni,+amx-tile,+amx-int8", 64),
        Target("x86-64-v4-vbmi", "x86_64-unknown-linux-gnu", "x86-64-v4", _VBMI, 64),
        Target("x86-64-v4-vbmi-bf16", "x86_64-unknown-linux-gnu", "x86-64-v4", f"{_VBMI},+avx512bf16", 64),
        Target("x86-64-v4-vbmi-amx", "x86_64-unknown-linux-gnu", "x86-64-v4", f"{_VBMI},+avx512bf16,{_AMX}", 64),
        Target("aarch64", "aarch64-unknown-linux-gnu", "generic", "+neon"),
        Target("aarch64-dotprod", "aarch64-unknown-linux-gnu", "generic", "+neon,+dotprod"),
        Target("aarch64-i8mm", "aarch64-unknown-linux-gnu", "generic", "+neon,+dotprod,+i8mm"),
        Target("riscv64", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c"),
        Target("riscv64-v", "riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v"),
        Target("wasm32-simd128", "wasm32-unknown-unknown", "generic", "+simd128"),
        Target("generic", "x86_64-unknown-linux-gnu", "x86-64"),
    )
}
"""Targets by name; `host` is this machine."""


@functools.cache
def processor() -> Target:
    """Return this processor, with all its features."""
    return Target("host", *host_words())


_planned_for: ContextVar[Target | None] = ContextVar("planned for", default=None)


@contextlib.contextmanager
def planning_for(target: Target) -> Iterator[None]:
    """Make `host()` another target in the context, on this thread: plans are built for it, code cannot be loaded."""
    token = _planned_for.set(target)
    try:
        yield
    finally:
        _planned_for.reset(token)


def host() -> Target:
    """Return the target of this process's code: this processor, or the subset of its features that the flag `target`
    names; within `planning_for`, its target.

    raises NotFoundError for a name that is not in NAMED, FailedPreconditionError for a target that cannot run here
    """
    planned_for = _planned_for.get()
    if planned_for is not None:
        return planned_for
    target = processor() if flags.target == "host" else _restricted(flags.target)
    return target if flags.optimize else _unoptimized(target)


@functools.cache
def _unoptimized(target: Target) -> Target:
    return target._replace(optimized=False)


@functools.cache
def _restricted(name: str) -> Target:
    current, restricted = processor(), named(name)
    lacking = [f for f in (*restricted.listed, *IMPLIED.get(restricted.cpu, ())) if not current.has(f)]
    if restricted.is_x86 != current.is_x86 or restricted.is_aarch64 != current.is_aarch64 or lacking:
        raise FailedPreconditionError(
            op="flag target",
            what=f"code for {name} does not run on this processor",
            do="target='host'",
            found=f"{current.cpu} ({current.triple})",
            wanted=", ".join(dict.fromkeys(lacking)) or restricted.triple,
        )
    return restricted._replace(triple=current.triple)


def named(name: str) -> Target:
    """Return a target by name. Raises NotFoundError."""
    if name == "host":
        return processor()
    if name not in NAMED:
        raise NotFoundError(what="no such target", found=name, wanted=", ".join(("host", *NAMED)))
    return NAMED[name]
