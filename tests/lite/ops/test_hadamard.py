"""Hadamard rotations as machine code: the bits of the official kernel, at every size and length of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_kit import taken
from drawn import Drawn, T, answers, model_of
from foreign import HERE
from one_operator import official_interpreter

from opwright.core import flags
from opwright.lite import Interpreter
from opwright.lite.format.flexbuffers import encode_options

SIZES = (2, 4, 8, 16, 32, 64, 512, 4096)


@pytest.mark.parametrize("target", HERE)
def test_every_size_has_the_official_bits(target: str) -> None:
    pytest.importorskip("ai_edge_litert.interpreter")
    for n in SIZES:
        x = np.random.default_rng(n).normal(0, 3, (3, 2 * n)).astype(np.float32)
        custom = encode_options({"hadamard_size": n, "random_binary_vector": [1] * n})
        drawn = Drawn([T("FLOAT32", x.shape, values=x)], [T("FLOAT32", x.shape)], custom=custom)
        model = model_of("aeq.hadamard_rotation", drawn)
        with flags.override(compiled=True, background=False, target=target):
            ours = Interpreter(model_content=model.to_bytes())
            (actual,) = answers(ours, [x], 1)
        assert taken(ours), n
        (expected,) = answers(official_interpreter(model, "OPT"), [x], 1)
        np.testing.assert_array_equal(actual, expected, err_msg=str(n))
