"""Rules of ATen operators against calls recorded from PyTorch: no torch is needed.

Lives here: every recorded call (record_aten_calls.py), eagerly and traced. Not here: programs (test_torch_programs.py).
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import opwright as ow
from opwright.core.dtypes import as_dtype
from opwright.frontends.torch.rules import TABLE, AtenCall, load_rules

load_rules()
RECORD = json.loads(gzip.decompress(Path(__file__).with_name("aten_calls.json.gz").read_bytes()))
CALLS = RECORD["calls"]
BUT_FOR_SIGNS = {"aten::_linalg_svd", "aten::_linalg_eigh", "aten::linalg_eig"}
"""Operators whose vectors are determined but for signs: absolute values are compared, as in PyTorch's own tests."""
UNUSED = {"aten::_unique2": 1, "aten::unique_consecutive": 1, "aten::_embedding_bag_forward_only": 1}
"""How many results of an operator are compared; others are factors, or empty where they are not asked for."""


def decoded(value):
    """Return a recorded value: tensors as arrays."""
    if isinstance(value, dict):
        if "float" in value:
            return float(value["float"])
        buffer = base64.b64decode(value["bytes"])
        return np.frombuffer(buffer, as_dtype(value["dtype"]).np).reshape(value["shape"])
    return [decoded(v) for v in value] if isinstance(value, list) else value


def context(call):
    tensors = [r for r in call["results"] if isinstance(r, dict) and "bytes" in r]
    kinds = tuple(as_dtype(r["dtype"]) for r in tensors) or (ow.int64,)
    promoted = call.get("promoted")
    return AtenCall(kinds, tuple(r["shape"] for r in tensors) or ((),), promoted and as_dtype(promoted))


def difference(actual, expected):
    """Return how far a result is off, relative to the largest element; None if dtype or shape differ."""
    actual = np.asarray(actual)
    if actual.shape != expected.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    if not expected.size:
        return 0.0
    kind = np.complex128 if np.iscomplexobj(expected) else np.float64
    a, b = actual.astype(kind), expected.astype(kind)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.abs(b[np.isfinite(b)])
    scale = max(float(finite.max()) if finite.size else 0.0, 1e-6)
    return float(np.nan_to_num(np.abs(np.where(same, 0.0, a - b)), nan=np.inf).max()) / scale


def failures(calls, run):
    lines = []
    for call in calls:
        name, inputs = call["operator"], decoded(call["inputs"])
        options = decoded_options(call)
        try:
            results = run(name, inputs, options, context(call))
        except Exception as error:
            text = " ".join(str(error).split())[:160]
            lines.append(f"{name} {shapes(inputs)} {options}: {type(error).__name__} {text}")
            continue
        results = results[: UNUSED.get(name, None if call["several"] else 1)]
        for actual, expected in zip(results, decoded(call["results"])):
            if actual is None or not isinstance(expected, np.ndarray):
                continue
            if name in BUT_FOR_SIGNS:
                actual, expected = np.abs(actual), np.abs(expected)
            off = difference(actual, expected)
            if isinstance(off, str) or not off <= 2e-5:
                lines.append(f"{name} {shapes(inputs)} {options}: {off}")
    return lines


def decoded_options(call):
    return {k: decoded(v) for k, v in call["attributes"].items()}


def shapes(value):
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return [shapes(v) for v in value] if isinstance(value, list) else value


def eagerly(name, inputs, options, op):
    return TABLE.apply(name, op, inputs, options)


def traced(name, inputs, options, op):
    """Run a call in a function whose first tensor is an argument."""
    place = next(i for i, v in enumerate(inputs) if isinstance(v, np.ndarray))

    def program(x):
        results = TABLE.apply(name, op, [*inputs[:place], x, *inputs[place + 1 :]], options)
        return [r if r is not None else ow.zeros([]) for r in results]

    return ow.function(program, autograph=False)(inputs[place])


def test_functions_of_two_numbers_at_their_limits():
    """By PyTorch's documentation, hypot does not overflow, and heaviside takes `values` where x is 0 alone."""
    op = AtenCall((ow.float32,), ((4,),), ow.float32)
    x, y = np.float32([3e30, 3e-30, np.inf, 0]), np.float32([4e30, 4e-30, np.nan, 0])
    (actual,) = TABLE.apply("aten::hypot", op, [x, y], {})
    np.testing.assert_allclose(actual, [5e30, 5e-30, np.inf, 0], 1e-6)
    x, y = np.float32([-1, 1, 0, 2]), np.float32([np.nan, np.inf, 7, np.nan])
    (actual,) = TABLE.apply("aten::heaviside", op, [x, y], {})
    np.testing.assert_array_equal(actual, [0, 1, 7, 1])


@pytest.mark.parametrize("terms", [7, 514, 700])
def test_products_of_integers_are_exact(terms):
    """The largest sums are those of integers at their limits; sums of 700 do not fit a float32."""
    rng = np.random.default_rng(terms)
    x, y = np.full((2, terms), 255, np.uint8), np.full((terms, 3), -128, np.int8)
    x[1], y[:, 1] = rng.integers(0, 256, terms), rng.integers(-128, 128, terms)
    (actual,) = TABLE.apply("aten::_int_mm", AtenCall((ow.int32,), ((2, 3),), ow.int32), [x, y], {})
    assert np.asarray(actual).dtype == np.int32
    np.testing.assert_array_equal(actual, x.astype(np.int64) @ y.astype(np.int64))


def test_the_record_covers_the_table():
    names = {call["operator"] for call in CALLS}
    assert len(CALLS) > 1000
    assert len(names) > 350


@pytest.mark.parametrize("part", range(4))
def test_recorded_calls_eagerly(part):
    lines = failures(CALLS[part::4], eagerly)
    assert not lines, "\n".join(lines)


def test_recorded_calls_traced():
    calls = [c for c in CALLS if any(isinstance(v, dict) and "bytes" in v for v in c["inputs"])]
    lines = failures(calls[::8], traced)
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("axis", [None, 1])
def test_quantization(axis):
    """Integers are rint(x / s) + z, kept within limits; real numbers are s (q - z). In float64."""
    x = np.random.default_rng(24).uniform(-3, 3, (4, 6)).astype(np.float32)
    scale, zero = (0.02, -5) if axis is None else (np.linspace(0.01, 0.04, 6, dtype=np.float32), np.arange(6) - 3)
    kind, place = ("per_tensor", []) if axis is None else ("per_channel", [axis])
    call = AtenCall((ow.int8,), (x.shape,))
    (q,) = TABLE.apply(f"quantized_decomposed::quantize_{kind}", call, [x, scale, zero, *place, -127, 127, ow.int8], {})
    q = np.asarray(q)
    quotient = x.astype(np.float64) / np.float32(scale).astype(np.float64)
    away_from_ties = np.abs(quotient - np.floor(quotient) - 0.5) > 1e-4
    integers = np.clip(np.rint(quotient) + zero, -127, 127)
    assert q.dtype == np.int8
    np.testing.assert_array_equal(q[away_from_ties], integers[away_from_ties])
    call = AtenCall((ow.float32,), (x.shape,))
    inputs = [q, scale, zero, *place, -127, 127, ow.int8]
    (real,) = TABLE.apply(f"quantized_decomposed::dequantize_{kind}", call, inputs, {})
    np.testing.assert_allclose(np.asarray(real), (q.astype(np.float64) - zero) * np.float32(scale), rtol=1e-6)


@pytest.mark.parametrize("traced", [False, True])
def test_batch_norms_of_small_variance(traced):
    """PyTorch's epsilon is 1e-5 and not the least one of TensorFlow's fused_batch_norm, 1.001e-5. In float64."""
    generator = np.random.default_rng(24)
    x = (generator.standard_normal((2, 3, 5, 4)) * 1e-4).astype(np.float32)
    scale, offset = generator.standard_normal((2, 3)).astype(np.float32)
    mean, variance = np.zeros(3, np.float32), np.float32([0.0, 1e-8, 1e-6])
    vectors = scale, offset, mean, variance

    def program(x):
        call = AtenCall((ow.float32,), (x.shape,))
        return TABLE.apply("aten::batch_norm", call, [x, *vectors, False, 0.1, 1e-5, True], {})[0]

    y = ow.function(program)(x) if traced else program(x)
    columns = [v.astype(np.float64)[:, None, None] for v in vectors]
    expected = x / np.sqrt(columns[3] + 1e-5) * columns[0] + columns[1]
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-5, atol=1e-6)


def test_a_factor_of_zero_ignores_its_operand():
    """As in BLAS: also NaN."""
    call = AtenCall((ow.float32,), ((2, 2),))
    bias, a, b = np.full((2, 2), np.nan, np.float32), np.float32([1, 2]), np.float32([3, 4])
    (y,) = TABLE.apply("aten::addr", call, [bias, a, b], {"beta": 0.0})
    np.testing.assert_array_equal(np.asarray(y), np.outer(a, b))
    stacks = np.ones((3, 2, 2), np.float32)
    (y,) = TABLE.apply("aten::addbmm", call, [bias, stacks, stacks], {"beta": 0.0, "alpha": 0.5})
    np.testing.assert_array_equal(np.asarray(y), np.full((2, 2), 3, np.float32))


@pytest.mark.parametrize("upper", [False, True])
def test_equations_by_cholesky_factors(upper):
    generator = np.random.default_rng(24)
    lower = np.tril(generator.uniform(0.5, 1.5, (2, 4, 4)))
    matrix = lower @ lower.swapaxes(1, 2)
    factor = (lower.swapaxes(1, 2) if upper else lower).astype(np.float32)
    right = generator.standard_normal((4, 3)).astype(np.float32)
    call = AtenCall((ow.float32,), ((2, 4, 3),))
    (y,) = TABLE.apply("aten::cholesky_solve", call, [right, factor, upper], {})
    np.testing.assert_allclose(matrix @ np.asarray(y), np.broadcast_to(right, (2, 4, 3)), atol=1e-3)
    (y,) = TABLE.apply("aten::cholesky_inverse", AtenCall((ow.float32,), ((2, 4, 4),)), [factor, upper], {})
    np.testing.assert_allclose(matrix @ np.asarray(y), np.broadcast_to(np.eye(4), (2, 4, 4)), atol=1e-3)
