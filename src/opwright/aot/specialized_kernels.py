"""Kernels of a library specialized for the words that all their calls share.

Lives here: `shared_words`, `specialized_text`, `is_specialized`. Not here: calls of steps (modules.py).

On processors of one number a register, LLVM and C compilers compute sizes, bounds of loops and zero points from these
constants; a loop over 64-bit numbers takes several instructions of 32 bits otherwise. A kernel is called through

    i64 KERNEL.call(words that differ ..., ptr scratch)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..compiler.target import SCALAR, Target
from .memory_layouts import MemoryLayout, constant_word
from .model_plans import ModelPlan

SharedWords = Mapping[str, Sequence[str | None]]
"""For each kernel, its words as constants of LLVM, the number of items last; None where calls differ."""


def is_specialized(target: Target, layout: MemoryLayout) -> bool:
    """Return whether the kernels of a library are specialized: on threads, they are called by address."""
    return target.vector_bytes == SCALAR and not layout.stride


def shared_words(model: ModelPlan, symbols: Mapping[int, str], layout: MemoryLayout, name: str) -> SharedWords:
    """Return the words that the calls of each kernel share. symbols: of kernels, by address."""
    calls: dict[str, list[list[str | None]]] = {}
    for step in (step for p in model.plans for step in p.plan.steps if not step.covers):
        words = [constant_word(w, kind, layout, name) for w, kind in zip(step.words, step.code.parameters, strict=True)]
        calls.setdefault(symbols[step.code.address], []).append([*words, str(step.items)])
    return {
        symbol: [texts[0] if len({*texts}) == 1 else None for texts in zip(*several, strict=True)]
        for symbol, several in calls.items()
    }


def stores_of(stem: str, words: Iterable[str]) -> list[str]:
    """Return instructions that store the words of a call. stem: prefix of the registers of their places."""
    lines: list[str] = []
    for i, text in enumerate(words):
        place = f"{stem}.{i}"
        lines += [f"  {place} = getelementptr i64, ptr %words, i32 {i}", f"  store i64 {text}, ptr {place}"]
    return lines


def specialized_text(symbol: str, shared: Sequence[str | None]) -> list[str]:
    """Return the function that calls a kernel with its shared words as constants."""
    words = [f"%v{i}" if text is None else text for i, text in enumerate(shared)]
    own = "".join(f"i64 {w}, " for w, text in zip(words, shared) if text is None)
    return [
        f'define internal i64 @"{symbol}.call"({own}ptr %scratch) {{',
        f"  %words = alloca [{len(words)} x i64], align 8",
        *stores_of("%p", words[:-1]),
        f'  %status = call i64 @"{symbol}"(ptr %words, i64 0, i64 {words[-1]}, ptr %scratch)',
        "  ret i64 %status",
        "}",
    ]
