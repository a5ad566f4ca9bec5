"""The effects of flags on numerical results: one table, printed by the docs and `opwright doctor`.

Lives here: the table `FLAG_EFFECTS`.  Not here: the flags (flags.py), the code that implements them, named in each row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlagEffect:
    """One effect of a flag. flag: its name; what: the affected property; off, on: its values; where: the module."""

    flag: str
    what: str
    off: str
    on: str
    where: str


FLAG_EFFECTS = (
    FlagEffect(
        "deterministic",
        "choice among kernels",
        "by the clock where tune is on",
        "by the documented order",
        "ops/autotuner.py",
    ),
    FlagEffect(
        "deterministic",
        "choice among algorithms",
        "by shapes; by the clock where tune is on",
        "by shapes alone",
        "ops/strategies.py",
    ),
    FlagEffect(
        "deterministic",
        "choice among compiled kernels",
        "by what this machine has measured, else by tables",
        "by tables alone",
        "compiler/tuning/choices.py",
    ),
    FlagEffect(
        "deterministic",
        "ranges of parallel_for",
        "follow from the number of threads",
        "follow from n and grain alone",
        "devices/cpu.py",
    ),
    FlagEffect(
        "deterministic",
        "threads of BLAS",
        "as many as BLAS wants; sums of products differ in the last bits",
        "one",
        "devices/cpu.py",
    ),
    FlagEffect(
        "deterministic",
        "order of a parallel map of a Dataset",
        "as its argument deterministic says",
        "always the input's",
        "data/elementwise.py",
    ),
    FlagEffect(
        "deterministic",
        "functions with jit_compile open and large eager calls",
        "compiled from a number of calls on, which follows from their work",
        "not compiled: the same bits at each call",
        "compiler/tiered_plan.py",
    ),
    FlagEffect(
        "deterministic",
        "the next batch of fit",
        "drawn while a step runs, where that takes long",
        "drawn after the step",
        "nn/training/batches.py",
    ),
    FlagEffect(
        "deterministic",
        "sums by index, scattered or by segment",
        "in the order of the rows",
        "in the order of the rows",
        "ops/array_functions.py",
    ),
    FlagEffect(
        "deterministic",
        "random operators without any seed",
        "numbers of the system",
        "RuntimeError",
        "ops/random/state.py",
    ),
    FlagEffect(
        "deterministic",
        "kernels declared reproducible=False",
        "tried in their order",
        "left out, at every place",
        "ops/kernels.py",
    ),
    FlagEffect(
        "deterministic",
        "sums by index on GPUs, which are atomic",
        "on the GPU",
        "on the CPU",
        "ops/kernel_selection.py",
    ),
    FlagEffect(
        "cuda_deterministic",
        "kernels declared reproducible=False",
        "tried in their order",
        "left out, at every place",
        "ops/kernels.py",
    ),
    FlagEffect(
        "cuda_deterministic",
        "sums by index on GPUs, which are atomic",
        "on the GPU",
        "on the CPU",
        "ops/kernel_selection.py",
    ),
    FlagEffect(
        "cuda_deterministic",
        "convolutions on GPUs",
        "products in a fixed order of taps",
        "the same: no kernel of ours adds atomically",
        "ops/cuda_kernels.py",
    ),
    FlagEffect(
        "fast_math",
        "sums and products in @ow.kernel",
        "in the order written",
        "regrouped, and fused to a * b + c",
        "compiler/elementwise.py",
    ),
    FlagEffect(
        "fast_math",
        "divisions in @ow.kernel",
        "rounded once",
        "may be products with a reciprocal",
        "compiler/elementwise.py",
    ),
    FlagEffect(
        "fast_math",
        "float32 Exp, Log, Tanh, Sigmoid in @ow.kernel",
        "in float64 inside, within 0.53 ulp",
        "in float32 alone, within 2 ulp; Sigmoid 4",
        "scalar/numerics/single.py",
    ),
    FlagEffect(
        "fast_math",
        "sign of a zero that a kernel computes",
        "IEEE 754's",
        "may be lost in sums and products",
        "compiler/elementwise.py",
    ),
    FlagEffect(
        "fast_math",
        "NaN, infinities, pow, float64 functions",
        "IEEE 754's",
        "the same: never assumed away",
        "compiler/elementwise.py",
    ),
)


def of(flag: str) -> tuple[FlagEffect, ...]:
    """Return the effects of one flag."""
    return tuple(change for change in FLAG_EFFECTS if change.flag == flag)
