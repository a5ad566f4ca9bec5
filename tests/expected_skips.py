"""Skips that a run may have; CHECK_SKIPS=1 (.ci/run) fails a run that has others.

Lives here: the table `EXPECTED`, `unexpected`.  Not here: collecting the reports (conftest.py).

A missing peer wheel is not listed: without its oracle a test does not pass, it fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatch
from typing import NamedTuple


class Expected(NamedTuple):
    """most: tests that may be skipped; files: a pattern of their paths; reason: a regular expression."""

    most: int
    files: str
    reason: str


EXPECTED = (
    Expected(80, "tests/devices/test_cuda_real.py", "No module named 'cupy'|no CUDA"),
    Expected(40, "tests/lite/native/test_native_usual.py", "FlatBuffers' own headers are not installed"),
    Expected(40, "tests/compiler/*", "this processor has no tiles"),
    Expected(40, "tests/compiler/*", "this processor has no more than AVX2|this processor lacks some instructions"),
    Expected(3, "tests/test_benchmark_restricted.py", "this processor has no more than AVX2"),
    Expected(40, "tests/compiler/*", "needs ziglang and"),
    Expected(40, "tests/distribute/*", "could not import '(dask|distributed|grpc|loky|mpi4py|pyarrow|ray|zarr)"),
    Expected(20, "tests/distribute/*", "needs memfd_create"),
    Expected(
        80,
        "tests/aot/*",
        "needs .*(cmake|node|chromium|arm-none-eabi|qemu|nm$|tflite-micro|AVX2|gcc|clang|wine|[+][+]|zig)",
    ),
    Expected(1, "tests/aot/test_wasmtime.py", "could not import 'wasmtime"),
    Expected(6, "tests/examples/test_ship.py", "needs .*(cmake|cc|qemu|chromium)"),
    Expected(40, "tests/pages/*", "needs (chromium|axe-core)"),
    Expected(1, "tests/pages/test_notebooks.py", "could not import 'nb(client|format)"),
    Expected(3, "tests/pages/test_first_notebooks.py", "could not import '(matplotlib|nbclient|nbformat|torch)"),
    Expected(3, "tests/pages/test_other_viewers.py", "could not import '(model_explorer|netron|viztracer)"),
    Expected(4, "tests/frontends/test_torch_*.py", "could not import 'torch"),
    Expected(10, "tests/data/test_column_sources.py", "could not import '(dask|pandas|pyarrow|ray)"),
    Expected(1, "tests/frontends/test_keras_traced.py", "KERAS_BACKEND is not jax or torch"),
    Expected(10, "tests/frontends/test_keras_archives.py", "could not import 'keras"),
    Expected(26, "tests/frontends/test_jax_*.py", "could not import '(jax|flax|equinox)"),
    Expected(1, "tests/frontends/test_stablehlo_modules.py", "could not import 'jax"),
    Expected(20, "tests/frontends/*", "could not import 'onnx"),
    Expected(1, "tests/tools/test_tools_convert.py", "could not import 'jax"),
    Expected(1, "tests/tools/test_tools_run_batches.py", "could not import 'pyarrow"),
    Expected(160, "tests/formats/*", "could not import 'PIL"),
    Expected(3, "tests/formats/test_summaries.py", "could not import '(matplotlib|tensorboard)"),
    Expected(20, "tests/autograph/test_newer_python.py", r"syntax of Python 3\.1[2-9]"),
    Expected(1, "tests/tracing/test_trace_types.py", "No module named 'attr'"),
    Expected(1, "tests/eager/test_protocols.py", "before 3.12"),
)


def unexpected(skips: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each skip (node id, reason) that no row of EXPECTED covers, and for each row exceeded."""
    counts = dict.fromkeys(EXPECTED, 0)
    lines = []
    for node, reason in skips:
        path = node.split("::")[0]
        row = next((r for r in EXPECTED if fnmatch(path, r.files) and re.search(r.reason, reason)), None)
        if row is None:
            lines.append(f"{node}: {reason}")
        else:
            counts[row] += 1
    lines += [f"{n} tests, expected at most {row.most}: {row}" for row, n in counts.items() if n > row.most]
    return lines
