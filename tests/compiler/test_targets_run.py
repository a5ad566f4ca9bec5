"""Code made for other processors gives what it gives here: run under qemu-user and Node.js, linked by zig.

Skipped where these are not installed (`pip install ziglang`; Debian: qemu-user, nodejs).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from foreign import RUNNERS, build, need
from test_mathematics import ORACLES, TWO, operands, ulps
from test_targets import FUNCTIONS, module_of_all

from opwright.compiler import target as targets

COUNT = 1 << 10  # elements; a multiple of every width


def harness(width: int) -> str:
    """A C program: for each function it reads COUNT floats of each operand and writes as many."""
    declared = "".join(f"void f_{n}(float*, const float*{', const float*' if n in TWO else ''});\n" for n in FUNCTIONS)
    calls = ""
    for name in FUNCTIONS:
        more = "fread(b, 4, N, stdin); " if name in TWO else ""
        each = f"f_{name}(y + i, a + i{', b + i' if name in TWO else ''})"
        calls += f"fread(a, 4, N, stdin); {more}for (int i = 0; i < N; i += {width}) {each}; fwrite(y, 4, N, stdout);\n"
    return f"#include <stdio.h>\n{declared}enum {{ N = {COUNT} }};\nstatic float a[N], b[N], y[N];\n" + (
        f"int main(void) {{\n{calls}return 0;\n}}\n"
    )


@pytest.mark.parametrize("name", sorted(RUNNERS))
def test_functions_agree(name: str, tmp_path: Path) -> None:
    need(name)
    target = targets.named(name)
    width = target.vector_bytes // 4
    text = str(module_of_all(width)).replace('@"f.', '@"f_')
    (tmp_path / "kernels.o").write_bytes(target.object_code(text))
    (tmp_path / "main.c").write_text(harness(width))
    command = build(name, tmp_path)
    arrays = {n: [a[-COUNT:] for a in operands(n, COUNT)] for n in FUNCTIONS}
    inputs = b"".join(a.tobytes() for n in FUNCTIONS for a in arrays[n])
    done = subprocess.run(command, input=inputs, cwd=tmp_path, check=True, capture_output=True)
    result = np.frombuffer(done.stdout, np.float32).reshape(len(FUNCTIONS), COUNT)
    for n, y in zip(FUNCTIONS, result):
        with np.errstate(all="ignore"):
            gap = ulps(y, ORACLES[n][0](*(a.astype(np.float64) for a in arrays[n])))
        worst = int(np.argmax(gap))
        assert gap[worst] <= 1.0, (n, [a[worst] for a in arrays[n]], y[worst])
