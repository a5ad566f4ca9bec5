"""Kernels on arrays: called with NumPy arrays of any layout, by any number of threads; bounds are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright import language as kl


@ow.kernel
def scale(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n"), factor: kl.f32):
    for i in kl.parallel(x.shape[0]):
        y[i] = x[i] * factor


@ow.kernel
def product(a: kl.Array(kl.f32, "m", "k"), b: kl.Array(kl.f32, "k", "n"), c: kl.Array(kl.f32, "m", "n")):
    k = a.shape[1]
    for i in kl.parallel(a.shape[0]):
        row = a[i]
        for j in range(b.shape[1]):
            s = kl.full(kl.f32, 0, 0.0)
            for q in range(k):
                s = s + row[q] * b[q, j]
            c[i, j] = s


@ow.kernel
def in_vectors(x: kl.Array(kl.f32, 3, "n"), y: kl.Array(kl.f32, 3, "n"), *, lanes: int = 8):
    n = x.shape[1]
    for r in kl.unroll(3):
        for i in range(0, n, lanes):
            left = kl.minimum(n - i, lanes)
            y.store(x.load(r, i, count=lanes, only=left) + 1.0, r, i, only=left)


@ow.kernel
def total(x: kl.Array(kl.f64, "a", "b", "c"), y: kl.Array(kl.f64)):
    s = kl.full(kl.f64, 0, 0.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                s = s + x[i, j, k]
    y[()] = s


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [0, 1, 7, 1000])
def test_scale(size: int, threads: int) -> None:
    x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    y = np.empty_like(x)
    with ow.flags(num_threads=threads):
        scale(x, y, 0.5)
    np.testing.assert_array_equal(y, x * np.float32(0.5))


def test_strides() -> None:
    x = np.random.default_rng(1).standard_normal((6, 10)).astype(np.float32)
    for view in (x[::2, 1], x[::-1, 3], x[2, ::3], np.broadcast_to(np.float32(3), 5)):
        y = np.zeros((len(view), 2), np.float32)
        scale(view, y[:, 1], 2.0)
        np.testing.assert_array_equal(y[:, 1], view * 2)
        np.testing.assert_array_equal(y[:, 0], 0)


def test_product() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((5, 7)).astype(np.float32), rng.standard_normal((3, 7)).astype(np.float32)
    c = np.empty((5, 3), np.float32)
    product(a, b.T, c)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_vectors_with_a_rest(lanes: int) -> None:
    x = np.random.default_rng(3).standard_normal((3, 21)).astype(np.float32)
    y = np.zeros_like(x)
    in_vectors(x, y, lanes=lanes)
    np.testing.assert_array_equal(y, x + 1)


def test_ranks() -> None:
    x = np.random.default_rng(4).integers(-9, 9, (3, 4, 5)).astype(np.float64)
    y = np.zeros(())
    total(x.transpose(2, 0, 1), y)
    assert y == x.sum()


@ow.kernel
def beyond(x: kl.Array(kl.f32, "n"), at: kl.i64):
    x[at] = 1.0


@ow.kernel
def vector_beyond(x: kl.Array(kl.f32, "n"), at: kl.i64):
    x.store(x.load(at, count=4), at)


@ow.kernel
def masked_beyond(x: kl.Array(kl.f32, "n"), at: kl.i64, some: kl.i64):
    x.store(x.load(0, count=4, only=2), at, only=some)


@pytest.mark.parametrize("at", [-1, 4, 1 << 40, -(1 << 62)])
def test_guards(at: int) -> None:
    held = np.zeros(12, np.float32)
    with pytest.raises(ow.errors.OutOfRangeError, match=r"test_array_kernels.py:\d+: index outside of x, axis 0"):
        beyond(held[4:8], at)
    assert not held.any()


@pytest.mark.parametrize(
    ("kernel", "given", "fits"),
    [
        (vector_beyond, (0,), True),
        (vector_beyond, (1,), False),
        (vector_beyond, (-1,), False),
        (masked_beyond, (2, 2), True),
        (masked_beyond, (2, 3), False),
        (masked_beyond, (-1, 1), False),
        (masked_beyond, (0, 5), False),
        (masked_beyond, (4, 0), True),
        (masked_beyond, (0, -1), False),
    ],
)
def test_guards_of_vectors(kernel: Any, given: tuple[int, ...], fits: bool) -> None:
    held = np.ones(12, np.float32)
    if fits:
        kernel(held[4:8], *given)
    else:
        with pytest.raises(ow.errors.OutOfRangeError, match="outside of x"):
            kernel(held[4:8], *given)
    np.testing.assert_array_equal(held, 1)


def test_a_known_index_is_refused_while_staged() -> None:
    @ow.kernel
    def fifth(x: kl.Array(kl.f32, 4)):
        x[4] = 0.0

    with pytest.raises(ow.errors.InvalidArgumentError, match="index 4 is outside of x, axis 0"):
        fifth(np.zeros(4, np.float32))


def test_unchecked_has_no_guards() -> None:
    def plain(x: kl.Array(kl.f32, "n"), at: kl.i64):
        x[at] = 1.0

    assert "guard.failed" in ow.kernel(plain).source()
    assert "guard.failed" not in ow.kernel(plain, checked=False).source()
    x = np.zeros(3, np.float32)
    ow.kernel(checked=False)(plain)(x, 2)
    np.testing.assert_array_equal(x, [0, 0, 1])


X = np.zeros(4, np.float32)
WRONG = [
    ((X, X.astype(np.float64), 1.0), {}, r"argument y\s.*float64\[4\]"),
    ((X, np.zeros((2, 2), np.float32), 1.0), {}, r"argument y"),
    ((X, np.zeros(5, np.float32), 1.0), {}, r"axis 0 \('n'\)"),
    (([1.0], X, 1.0), {}, r"argument x\s.*list"),
    ((X, X), {}, "takes 3 arguments"),
    ((X, X, 1.0), {"other": 1}, "constants do not fit"),
]


@pytest.mark.parametrize(("given", "constants", "says"), WRONG, ids=[w[2] for w in WRONG])
def test_arguments(given: Any, constants: Any, says: str) -> None:
    with pytest.raises(ow.errors.InvalidArgumentError, match=f"(?s){says}"):
        scale(*given, **constants)


def test_read_only_arrays_are_not_written() -> None:
    y = np.zeros(4, np.float32)
    y.flags.writeable = False
    with pytest.raises(ow.errors.InvalidArgumentError, match="writes argument y, which is read-only"):
        scale(X, y, 1.0)
    scale(y, X.copy(), 1.0)  # reading is fine


def test_definitions_that_are_refused() -> None:
    with pytest.raises(TypeError, match="parameter y is annotated with"):

        @ow.kernel
        def untyped(x: kl.Array(kl.f32, "n"), y):
            pass

    @ow.kernel
    def gives(x: kl.Array(kl.f32, "n")):
        return x[0]

    with pytest.raises(ow.errors.SignatureError, match="returns nothing"):
        gives(X)

    @ow.kernel
    def twice(x: kl.Array(kl.f32, "n")):
        for i in kl.parallel(4):
            x[i] = 0.0
        for i in kl.parallel(4):
            x[i] = 0.0

    with pytest.raises(ow.errors.SignatureError, match="one parallel loop"):
        twice(X.copy())
    with pytest.raises(TypeError, match="a size is a number or a name"):
        kl.Array(kl.f32, 2.5)

    @ow.kernel
    def unrolled(x: kl.Array(kl.f32, "n")):
        for i in kl.unroll(x.shape[0]):
            x[i] = 0.0

    with pytest.raises(TypeError, match="unroll takes Python's numbers"):
        unrolled(X.copy())


@ow.kernel
def picked(x: kl.Array(kl.f32, "n"), at: kl.Array(kl.i32, 8), y: kl.Array(kl.f32, 8)):
    y.store(x.gather(at.load(0, count=8)), 0)


@ow.kernel
def translated(table: kl.Array(kl.i8, "t"), x: kl.Array(kl.u8, 16), y: kl.Array(kl.i8, 16)):
    y.store(table.lookup(x.load(0, count=16)), 0)


def test_picking() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal(20).astype(np.float32), np.zeros(8, np.float32)
    at = rng.integers(0, 20, 8).astype(np.int32)
    picked(x, at, y)
    np.testing.assert_array_equal(y, x[at])
    for wrong in (-1, 20):
        at[3] = wrong
        with pytest.raises(ow.errors.OutOfRangeError, match="index outside of x"):
            picked(x, at, y)
    table, codes = rng.integers(-128, 128, 256).astype(np.int8), rng.integers(0, 256, 16).astype(np.uint8)
    got = np.zeros(16, np.int8)
    translated(table, codes, got)
    np.testing.assert_array_equal(got, table[codes])
    with pytest.raises(ow.errors.OutOfRangeError, match="table has fewer than 256"):
        translated(table[:255], codes, got)


def test_catalogue_operators_on_vectors() -> None:
    @ow.kernel
    def both(x: kl.Array(kl.f32, 8), y: kl.Array(kl.f32, 8)):
        v = x.load(0, count=8)
        y.store(ow.exp(v) + ow.minimum(v, 0.5), 0)

    x = np.linspace(-2, 2, 8, dtype=np.float32)
    y = np.zeros_like(x)
    both(x, y)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(y, np.exp(wide) + np.minimum(wide, 0.5), rtol=1e-6)


def test_source_names_lines() -> None:
    text = scale.source()
    assert f"test_array_kernels.py:{scale.function.__code__.co_firstlineno + 3}" in text
    for name in ('"words"', '"begin"', "guard.holds"):
        assert name in text


@pytest.mark.parametrize(
    ("triple", "cpu", "width", "has"),
    [
        ("x86_64-unknown-linux-gnu", "", 16, ()),
        ("x86_64-unknown-linux-gnu", "haswell", 32, ("avx2", "fma")),
        ("x86_64-pc-windows-msvc", "znver4", 64, ("avx512vnni", "avx512bf16")),
        ("aarch64-linux-android", "cortex-a76", 16, ("dotprod",)),
        ("arm64-apple-macosx", "apple-m2", 16, ("i8mm",)),
        ("riscv64-unknown-linux-gnu", "sifive-u74", 16, ()),
        ("armv7-unknown-linux-gnueabihf", "cortex-a53", 16, ()),
        ("wasm32-unknown-unknown", "", 16, ()),
        ("thumbv7em-none-eabihf", "cortex-m7", 4, ()),
    ],
)
def test_targets_by_triple(triple: str, cpu: str, width: int, has: tuple[str, ...]) -> None:
    target = kl.Target.of(triple, cpu)
    assert target.vector_bytes == width
    assert all(target.has(feature) for feature in has)
    assert b"scale" in scale.object_code(target)
    assert b"in_vectors" in in_vectors.object_code(target, lanes=4)


def test_triples_that_nobody_knows() -> None:
    with pytest.raises(ow.errors.NotFoundError, match="no such target"):
        kl.Target.of("z80-sinclair-spectrum")
