"""The corpus of official files run as machine code: near what the interpreter's own kernels give, which are compared
with the official answers elsewhere (interpreter/test_official_corpus.py, networks/)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine_kit import engine

from opwright import lite
from opwright.lite.interpreter import OpResolverType

DATA = Path(__file__).parents[2] / "data"
QUICK = ("cnn_float", "cnn_int8_io", "dynamic_shapes", "if_else", "while_growing", "sparse_blocks")
FILES = sorted((*DATA.glob("tflite/*.tflite"), *DATA.glob("networks/*.tflite")), key=lambda path: path.name)
STEPS = 4
"""Of integers at the end of a network: each of its operators may be a step away."""
CHAOTIC = ("random", "sampled", "greedy")  # what they draw or choose hangs on the last bit
OTHERS = ("custom", "flex_strings", "hashtable_ids", "spectra", "strings", "words_float")
"""Files with operators or inputs (text, tables, complex numbers) that this test has nothing for; others run them."""
NEAR, NEAR_OF_INTEGERS = 1e-4, 0.04
"""Of a result's largest number. 0.029 is the most that steps of integers made of one here (an attention layer)."""


def drawn(detail, rng):
    shape, dtype = detail["shape"], np.dtype(detail["dtype"])
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.itemsize == 1 and dtype.kind != "b" else (0, 2)
    return rng.integers(low, high, shape).astype(dtype)


def two_runs(interpreter):
    rng, result = np.random.default_rng(1), []
    interpreter.allocate_tensors()
    for _ in range(2):
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], drawn(detail, rng))
        interpreter.invoke()
        result += [(interpreter.get_tensor(d["index"]), d) for d in interpreter.get_output_details()]
    return result


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else pytest.mark.slow)
        for path in FILES
        if path.stem not in OTHERS and not any(word in path.stem for word in CHAOTIC)
    ],
)
def test_answers_are_near(path):
    expected = two_runs(lite.Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF))
    with engine(verify=True):
        actual = two_runs(lite.Interpreter(str(path), num_threads=2))
    integers = "int" in path.stem or "uint8" in path.stem or "quant" in path.stem or "dynamic" in path.stem
    for (a, _), (b, _) in zip(actual, expected, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if a.dtype.kind in "iu":
            assert np.abs(a.astype(np.int64) - b.astype(np.int64)).max(initial=0) <= STEPS
        elif a.dtype.kind == "f":
            largest = np.nanmax(np.abs(b.astype(np.float64)), initial=0)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=(NEAR_OF_INTEGERS if integers else NEAR) * largest)
