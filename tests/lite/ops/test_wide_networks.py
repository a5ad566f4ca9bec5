"""Drawn networks whose widths pass every threshold of the kernels: the compiled engine's answers are the official ones.

Here because the rows of one operator are narrow: a kernel for 32 or more channels, two operators that are one step, or
a tensor that another kernel wrote in part show their faults in networks alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from drawn import gap_of
from lite_kit import run
from wide_networks import KINDS, drawn

from opwright.core import flags
from opwright.lite import Interpreter
from thorough import examples

PATHS = ("BUILTIN", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN_REF")
"""Official kernels: ours round as one of them does, which is not the same one for every operator."""
NETWORKS = 120  # of each kind

ALLOWED = {
    "FLOAT32": (2e-5, 2e-5),
    "FLOAT16": (2e-5, 2e-5),
    "DYNAMIC": (0.05, 1e-3),
    "INT8": (4, 0.5),
    "INT16": (64, 8),
}
"""The greatest and the mean difference: of floats relative to the greatest result. DYNAMIC: activations that lie
between two integers may become either. INT8, INT16: each operator may round by one step, which products multiply."""


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_networks_agree_with_the_official_kernels(kind, threads):
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    failed = []
    for seed in range(threads, examples(NETWORKS), 2):
        content, x, words = drawn(seed, kind)
        with flags.override(compiled=True, background=False):
            interpreter = Interpreter(model_content=content, num_threads=threads)
            (actual,), (again,) = run(interpreter, [x]), run(interpreter, [x])
        gaps = []
        for path in PATHS:
            resolver = peer.OpResolverType[path]
            (expected,) = run(peer.Interpreter(model_content=content, experimental_op_resolver_type=resolver), [x])
            gaps.append(gap_of(actual, expected))
        gap = min(gaps, key=np.max)
        most, mean = ALLOWED[kind]
        if gap.max() > most or gap.mean() > mean or not np.array_equal(actual, again, equal_nan=True):
            failed.append((seed, gap.max(), gap.mean(), words))
    assert not failed, "\n".join(map(str, failed))
