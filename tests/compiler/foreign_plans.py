"""Running a plan of forms on another processor: its selectors choose for it, its kernels are compiled for it.

Lives here: `run_forms_on`.  Not here: one kernel (foreign.py), which forms (kernels/test_forms_elsewhere.py).

Weights are packed here, by kernels staged as the target's and compiled for this processor; all else runs there.
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign import build, need

from opwright.compiler import kernels
from opwright.compiler import target as targets
from opwright.compiler.language.compilation import FamilyCode, KernelFamily
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import LoopOp
from opwright.compiler.loops.planner import plan_of
from opwright.compiler.loops.plans import Address, ArenaOffset, LoopPlan, PackedConstant, word
from opwright.compiler.native.store import find_module

PACKING = ("pack", "transform_filter")  # how families begin that pack weights when a model is loaded


def _forget() -> None:
    """Empty the caches of what selectors found out about a target."""
    for name, module in list(sys.modules.items()):
        if name.startswith("opwright.compiler."):
            for held in list(vars(module).values()):
                if hasattr(held, "cache_clear") and held is not targets.processor:
                    held.cache_clear()


def run_forms_on(name: str, folder: Path, forms: Sequence[LoopOp], inputs: Mapping[Buffer, np.ndarray]) -> np.ndarray:
    """Return the output of the last operation."""
    need(name)
    with pytest.MonkeyPatch.context() as patch:
        _forget()
        try:
            return _run(name, folder, forms, inputs, patch)
        finally:
            patch.undo()
            _forget()


def _run(
    name: str, folder: Path, forms: Sequence[LoopOp], inputs: Mapping[Buffer, np.ndarray], patch: pytest.MonkeyPatch
) -> np.ndarray:
    target, native = targets.named(name), targets.host()
    # all are loaded before anything is patched: what is imported later would keep the patch for good
    modules = [importlib.import_module(f"{kernels.__name__}.{m.name}") for m in pkgutil.iter_modules(kernels.__path__)]
    for module in (targets, *modules):
        if hasattr(module, "host"):
            patch.setattr(module, "host", lambda: target)
    chosen: dict[int, tuple[KernelFamily, dict[str, Any]]] = {}
    here = native._replace(features="", vector_bytes=target.vector_bytes)

    def choose(family: KernelFamily, **constants: Any) -> FamilyCode:
        address = len(chosen) + 1
        if family.name.startswith(PACKING):
            entry = family.entry(constants)
            address = find_module(entry, str(family.emit(here, **constants)), entry).address
        chosen[address] = family, constants
        return FamilyCode(address, family.name, tuple(family.kinds(constants).values()))

    patch.setattr(KernelFamily, "code", choose)
    output = forms[-1].output
    plan = plan_of(LoopGraph("elsewhere", tuple(inputs), (output,), tuple(forms)))
    plan.pack()
    for number in {s.code.address for s in plan.steps if not s.covers}:
        family, constants = chosen[number]
        text = str(family.emit(target, **constants)).replace(f'@"{family.entry(constants)}"', f'@"kernel{number}"')
        (folder / f"kernel{number}.o").write_bytes(target.object_code(text))
    program, arrays = _program(plan, inputs, output)
    (folder / "main.c").write_text(program)
    done = subprocess.run(
        build(name, folder), input=b"".join(a.tobytes() for a in arrays), cwd=folder, check=True, capture_output=True
    )
    return np.frombuffer(done.stdout, output.dtype.np).reshape(output.shape)


def _program(plan: LoopPlan, inputs: Mapping[Buffer, np.ndarray], output: Buffer) -> tuple[str, list[np.ndarray]]:
    """A C program that reads the arrays, runs the steps in order and writes the output."""
    arrays: list[np.ndarray] = []
    names: dict[int, str] = {id(output): "output"}

    def name_of(owner: Buffer | PackedConstant) -> str:
        if id(owner) not in names:
            array = owner.array if isinstance(owner, PackedConstant) else owner.constant
            array = inputs[owner] if array is None else array  # type: ignore[index]
            names[id(owner)] = f"a{len(arrays)}"
            arrays.append(np.ascontiguousarray(array))
        return names[id(owner)]

    lines = []
    for i, step in enumerate(plan.steps):
        if step.covers:
            continue  # its strands, one after the other
        words = []
        for w, kind in zip(step.words, step.code.parameters, strict=True):
            if isinstance(w, ArenaOffset):
                words.append(f"(int64_t)(intptr_t)(arena + {w.offset})")
            elif isinstance(w, Address):
                words.append(f"(int64_t)(intptr_t)({name_of(w.of)} + {w.offset})")
            else:
                words.append(f"{word(w, kind)}LL")
        lines.append(
            f"  {{ int64_t w[] = {{{', '.join(words)}}};"
            f" if (kernel{step.code.address}(w, 0, {step.items}, scratch)) return {i + 1}; }}"
        )
    scratch = max((s.scratch for s in plan.steps), default=0)
    size = output.size * output.dtype.size
    head = ["#include <stdio.h>", "#include <stdint.h>"]
    numbers = {s.code.address for s in plan.steps if not s.covers}
    head += [f"int64_t kernel{n}(void*, int64_t, int64_t, void*);" for n in numbers]
    memory = {"scratch": scratch, "arena": plan.arena, "output": size}
    memory |= {f"a{i}": a.nbytes for i, a in enumerate(arrays)}
    head += [f"static _Alignas(64) char {n}[{room + 64}];" for n, room in memory.items()]
    reads = [f"  fread(a{i}, 1, {a.nbytes}, stdin);" for i, a in enumerate(arrays)]
    body = ["int main(void) {", *reads, *lines, f"  fwrite(output, 1, {size}, stdout);", "  return 0;", "}"]
    return "\n".join([*head, *body]) + "\n", arrays
