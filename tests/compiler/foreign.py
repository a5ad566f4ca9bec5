"""Running a kernel of a family on another processor: linked by zig, run under qemu-user or Node.js.

Lives here: `RUNNERS`, `run_on`; `EACH`, the names of all targets; `HERE`, `on_here`, targets that this processor runs.
Not here: which kernels are run (test_targets_run.py, language/, kernels/).
"""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opwright.compiler import target as targets
from opwright.compiler.language import KernelFamily
from opwright.compiler.language.compilation import word

RUNNERS = {  # target: what zig calls it, and what runs it
    "aarch64": ("aarch64-linux-musl", ["qemu-aarch64"]),
    "aarch64-dotprod": ("aarch64-linux-musl", ["qemu-aarch64", "-cpu", "max"]),
    "aarch64-i8mm": ("aarch64-linux-musl", ["qemu-aarch64", "-cpu", "max"]),
    "riscv64": ("riscv64-linux-musl", ["qemu-riscv64"]),
    "riscv64-v": ("riscv64-linux-musl", ["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0"]),
    "wasm32-simd128": ("wasm32-wasi", ["node", "--no-warnings"]),
    "x86-64-v2": ("x86_64-linux-musl", []),
    "generic": ("x86_64-linux-musl", []),
}
WASI = """
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";
const wasi = new WASI({ version: "preview1", args: [], env: {} });
const module = await WebAssembly.compile(await readFile(process.argv[2]));
wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
"""


EACH = [
    pytest.param(name, marks=() if name in ("x86-64-v3", "aarch64") else pytest.mark.slow)
    for name in sorted(targets.NAMED)
]
"""The names of all targets, for tests that compile for each; two in `make test`, all in `make test-all`."""

HERE = ["host", *(["x86-64-v3"] if targets.processor().has("avx512f") else [])]
"""Targets for tests that run code with and without wide vectors: where the processor has AVX2 alone both are one."""


def on_here(values: Iterable[Any]) -> list[Any]:
    """Return each value with each target of HERE, as parameters; every second one on other targets than the first is
    marked slow."""
    return [
        pytest.param(value, target, marks=pytest.mark.slow if i % 2 and target != HERE[0] else ())
        for target in HERE
        for i, value in enumerate(values)
    ]


def need(name: str) -> None:
    """Skip the test where this target's programs cannot be linked or run."""
    _, runner = RUNNERS[name]
    if importlib.util.find_spec("ziglang") is None or (runner and shutil.which(runner[0]) is None):
        pytest.skip(f"needs ziglang and {runner[0] if runner else 'nothing else'}")
    if name == "riscv64-v" and _version(runner[0]) < 8:  # 7.2 fails an assertion of its own in vector instructions
        pytest.skip("needs QEMU 8 or newer")


@functools.cache
def _version(program: str) -> int:
    """The first number of what it says of itself."""
    words = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    result = re.search(r"version (\d+)", words)
    return int(result[1]) if result else 0


def build(name: str, folder: Path) -> list[str]:
    """Link folder's main.c with its object files. Gives the command that runs the program."""
    triple, runner = RUNNERS[name]
    objects = sorted(f.name for f in folder.glob("*.o"))
    program = "main.wasm" if triple.startswith("wasm") else "main"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            "-target",
            triple,
            "-O1",
            "-w",
            "main.c",
            *objects,
            "-lm",
            "-o",
            program,
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    if triple.startswith("wasm"):
        (folder / "run.mjs").write_text(WASI)
        runner = [*runner, "run.mjs"]
    return [*runner, str(folder / program)]


def run_on(
    name: str,
    folder: Path,
    family: KernelFamily,
    constants: dict[str, Any],
    arguments: Sequence[Any],
    items: int,
    scratch: int = 0,
) -> list[np.ndarray]:
    """Run one kernel once on a target. Gives its arrays, in order, as they are afterwards."""
    need(name)
    target = targets.named(name)
    folder.mkdir(exist_ok=True)
    entry = family.entry(constants)
    (folder / "kernels.o").write_bytes(target.object_code(str(family.emit(target, **constants))))
    arrays = [np.ascontiguousarray(a) for a in arguments if isinstance(a, np.ndarray)]
    lines = [
        "#include <stdio.h>",
        "#include <stdint.h>",
        f'int64_t kernel(void*, int64_t, int64_t, void*) __asm__("{entry}");',
        f"static _Alignas(64) char scratch[{scratch + 64}];",
    ]
    lines += [f"static _Alignas(64) char a{i}[{a.nbytes + 64}];" for i, a in enumerate(arrays)]
    words, place = [], 0
    for value, kind in zip(arguments, family.kinds(constants).values(), strict=True):
        if isinstance(value, np.ndarray):
            words.append(f"(int64_t)(intptr_t)a{place}")
            place += 1
        else:
            words.append(f"{word(value, kind)}LL")
    lines.append("int main(void) {")
    lines += [f"  fread(a{i}, 1, {a.nbytes}, stdin);" for i, a in enumerate(arrays)]
    lines.append(f"  int64_t words[] = {{{', '.join(words)}}};")
    lines.append(f"  if (kernel(words, 0, {items}, scratch)) return 1;")
    lines += [f"  fwrite(a{i}, 1, {a.nbytes}, stdout);" for i, a in enumerate(arrays)]
    lines += ["  return 0;", "}"]
    (folder / "main.c").write_text("\n".join(lines) + "\n")
    inputs = b"".join(a.tobytes() for a in arrays)
    done = subprocess.run(build(name, folder), input=inputs, cwd=folder, check=True, capture_output=True)
    result, at = [], 0
    for a in arrays:
        result.append(np.frombuffer(done.stdout[at : at + a.nbytes], a.dtype).reshape(a.shape))
        at += a.nbytes
    return result
