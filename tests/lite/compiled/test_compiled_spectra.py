"""RFFT2D and complex numbers as machine code. Oracles: the official kernels, and NumPy in float64 for lengths that only
the custom operator takes."""

from __future__ import annotations

import numpy as np
import pytest
from engine_kit import engine, plan_of
from foreign import HERE
from lite_kit import Build, run

from opwright import lite
from thorough import THOROUGH

RNG = np.random.default_rng(6)


def compiled(content, inputs, target="host"):
    with engine(verify=True, target=target):
        interpreter = lite.Interpreter(model_content=content)
        result = run(interpreter, inputs)
    assert plan_of(interpreter) == ["Opwright"]
    return result


def spectrum(shape, lengths, custom=False):
    y = (*shape[:-2], lengths[0], lengths[1] // 2 + 1)
    b = Build().tensor("x", shape).tensor("n", type="INT32", data=np.int32(lengths)).tensor("s", y, "COMPLEX64")
    b = b.custom("RFFT2D", "x n", "s") if custom else b.op("RFFT2D", "x n", "s")
    for name in ("REAL", "IMAG", "COMPLEX_ABS"):
        b.tensor(name, y).op(name, "s", name)
    return b.done("x", "s REAL IMAG COMPLEX_ABS")


LENGTHS = [
    ((5, 1, 256), (1, 256)),
    ((2, 1, 400), (1, 512)),
    ((3, 1, 600), (1, 512)),
    ((4, 8), (4, 8)),
    ((3, 20), (4, 16)),
    ((1, 70, 128), (64, 128)),
    ((9, 5), (2, 2)),
]


@pytest.mark.parametrize("target", HERE)
def test_spectra_are_the_official_ones(target):
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    for shape, lengths in LENGTHS[:: 1 if THOROUGH else 2]:
        content, x = spectrum(shape, lengths), RNG.normal(size=shape).astype(np.float32)
        expected = run(peer.Interpreter(model_content=content), [x])
        for a, b in zip(compiled(content, [x], target), expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6 * np.abs(expected[0]).max())


def test_the_custom_operator_takes_any_length():
    for shape, lengths in (((3, 1, 300), (1, 300)), ((2, 7, 30), (5, 24))):
        x = RNG.normal(size=shape).astype(np.float32)
        actual = compiled(spectrum(shape, lengths, custom=True), [x])[0]
        expected = np.fft.rfft2(x.astype(np.float64), lengths)
        assert np.abs(actual - expected).max() <= 1e-6 * np.abs(expected).max()


def test_magnitudes_do_not_overflow_and_infinities_are_infinite():
    endless = complex(np.inf, np.nan), complex(np.nan, -np.inf), complex(np.nan, 1)
    z = np.array([3e38 + 3e38j, 1e-30 + 1e-30j, *endless, -3 - 4j, 0], np.complex64)
    content = Build().tensor("z", z.shape, "COMPLEX64").tensor("y", z.shape).op("COMPLEX_ABS", "z", "y").done("z")
    with np.errstate(over="ignore"):
        expected = np.abs(z.astype(np.complex128)).astype(np.float32)
    np.testing.assert_allclose(compiled(content, [z])[0], expected, rtol=1e-7)


def test_products_of_complex_numbers():
    for shapes in (((3, 5), (3, 5)), ((4, 1), (4, 33)), ((), (7,))):
        a, b = ((RNG.normal(size=s) + 1j * RNG.normal(size=s)).astype(np.complex64) for s in shapes)
        build = Build().tensor("a", a.shape, "COMPLEX64").tensor("b", b.shape, "COMPLEX64")
        content = build.tensor("y", np.broadcast_shapes(*shapes), "COMPLEX64").op("MUL", "a b", "y").done("a b")
        expected = (a.astype(np.complex128) * b).astype(np.complex64)
        np.testing.assert_allclose(compiled(content, [a, b])[0], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["COMPLEX64", "COMPLEX128"])
def test_parts_of_results_of_other_nodes(kind):
    """A reinterpreted buffer may be memory of the plan, and a result as well."""
    z = (RNG.normal(size=(4, 6)) + 1j * RNG.normal(size=(4, 6))).astype(kind.lower())
    floats = "FLOAT32" if kind == "COMPLEX64" else "FLOAT64"
    b = Build().tensor("z", z.shape, kind).tensor("p", type="INT32", data=np.int32([1, 0])).tensor("t", (6, 4), kind)
    b.op("TRANSPOSE", "z p", "t").tensor("y", (6, 4), floats).op("IMAG", "t", "y")
    result = compiled(b.done("z", "t y"), [z])
    np.testing.assert_array_equal(result[0], z.T)
    np.testing.assert_array_equal(result[1], z.T.imag)
