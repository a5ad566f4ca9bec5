"""Code made for other processors gives what it gives here: run under qemu-user and Node.js, linked by zig.

Skipped where these are not installed (`pip install ziglang`; Debian: qemu-user, nodejs).
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_mathematics import ORACLES, TWO, operands, ulps
from test_targets import module_of_all

from opwright.compiler import target as targets
from opwright.compiler.mathematics import FUNCTIONS

COUNT = 1 << 10  # elements; a multiple of every width
RUNNERS = {  # target: what zig calls it, and what runs it
    "aarch64": ("aarch64-linux-musl", ["qemu-aarch64"]),
    "aarch64-dotprod": ("aarch64-linux-musl", ["qemu-aarch64", "-cpu", "max"]),
    "riscv64": ("riscv64-linux-musl", ["qemu-riscv64"]),  # with vectors QEMU 7.2 fails an assertion of its own
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


def harness(width: int) -> str:
    """A C program: for each function it reads COUNT floats of each operand and writes as many."""
    declared = "".join(f"void f_{n}(float*, const float*{', const float*' if n in TWO else ''});\n" for n in FUNCTIONS)
    calls = ""
    for name in FUNCTIONS:
        more = "fread(b, 4, N, stdin); " if name in TWO else ""
        each = f"f_{name}(y + i, a + i{', b + i' if name in TWO else ''})"
        calls += f"fread(a, 4, N, stdin); {more}for (int i = 0; i < N; i += {width}) {each}; fwrite(y, 4, N, stdout);\n"
    return f"#include <stdio.h>\n{declared}enum {{ N = {COUNT} }};\nstatic float a[N], b[N], y[N];\n" + (
        f"int main(void) {{\n{calls}return 0;\n}}\n")


@pytest.mark.parametrize("name", sorted(RUNNERS))
def test_functions_agree(name: str, tmp_path: Path) -> None:
    triple, runner = RUNNERS[name]
    if importlib.util.find_spec("ziglang") is None or (runner and shutil.which(runner[0]) is None):
        pytest.skip(f"needs ziglang and {runner[0] if runner else 'nothing else'}")
    target = targets.named(name)
    width = target.vector_bytes // 4
    text = str(module_of_all(width)).replace('@"f.', '@"f_')
    (tmp_path / "kernels.o").write_bytes(target.object_code(text))
    (tmp_path / "main.c").write_text(harness(width))
    program = tmp_path / ("main.wasm" if triple.startswith("wasm") else "main")
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", triple, "-O1", "-w", "main.c", "kernels.o", "-lm",
                    "-o", str(program)], cwd=tmp_path, check=True, capture_output=True)  # fmt: skip
    if triple.startswith("wasm"):
        (tmp_path / "run.mjs").write_text(WASI)
        runner = [*runner, "run.mjs"]
    arrays = {n: [a[-COUNT:] for a in operands(n, COUNT)] for n in FUNCTIONS}
    given = b"".join(a.tobytes() for n in FUNCTIONS for a in arrays[n])
    done = subprocess.run([*runner, str(program)], input=given, cwd=tmp_path, check=True, capture_output=True)
    found = np.frombuffer(done.stdout, np.float32).reshape(len(FUNCTIONS), COUNT)
    for n, y in zip(FUNCTIONS, found):
        with np.errstate(all="ignore"):
            gap = ulps(y, ORACLES[n][0](*(a.astype(np.float64) for a in arrays[n])))
        worst = int(np.argmax(gap))
        assert gap[worst] <= 1.0, (n, [a[worst] for a in arrays[n]], y[worst])
