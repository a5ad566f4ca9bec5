"""Tiles in kernels: products of bytes of either sign against NumPy, threads and forks, what is refused and where."""

import os
import threading

import numpy as np
import pytest

import opwright as ow
from opwright.compiler import language as kl
from opwright.compiler.language import i8, i32, i64, ptr, u8
from opwright.compiler.native import host as native_host
from opwright.compiler.target import NAMED, Target, host
from opwright.core.errors import UnimplementedError

tiled = pytest.mark.skipif(not host().has("amx-int8"), reason="this processor has no tiles, or may not use them")
AMX = NAMED["x86-64-v4-amx"]


@kl.family
def tile_product(
    work, a: ptr[u8], b: ptr[u8], c: ptr[i32], rows: i64, quads: i64, pitch: i64, *, left: object, right: object
):
    """c[rows, 16] += a[rows, 4 quads] b[quads, 16, 4], then twice the product beside it. a's rows `pitch` apart."""
    kl.tile_config([(rows, 64), (rows, quads * 4), (quads, 64), (16, 64)])
    for item in work.items():
        p = c + item * 2 * rows * 16
        kl.tile_load(0, p, 64)
        kl.tile_load(1, a, pitch)
        kl.tile_load(2, b, 64)
        kl.tile_dot(0, 1, 2, left, right)
        kl.tile_store(0, p, 64)
        kl.tile_zero(0)
        kl.tile_dot(0, 1, 2, left, right)
        kl.tile_dot(0, 1, 2, left, right)
        kl.tile_store(0, p + rows * 16, 64)
    kl.tile_release()


def wanted(a, b, c):
    product = a.astype(np.int64) @ b.transpose(0, 2, 1).reshape(a.shape[1], 16).astype(np.int64)
    return np.stack([c[0] + product, 2 * product])


def products(left, right, rows, quads, pitch):
    rng = np.random.default_rng(rows)
    a = rng.integers(int(left.min), int(left.max) + 1, (rows, pitch)).astype(left.np)
    b = rng.integers(int(right.min), int(right.max) + 1, (quads, 16, 4)).astype(right.np)
    c = rng.integers(-1000, 1000, (2, rows, 16)).astype(np.int32)
    right_one = wanted(a[:, : 4 * quads], b, c)
    kl.call(tile_product.code(left=left, right=right), [a, b, c, rows, quads, pitch], items=1)
    np.testing.assert_array_equal(c, right_one)


@tiled
@pytest.mark.parametrize("left", [i8, u8])
@pytest.mark.parametrize("right", [i8, u8])
def test_products(left, right):
    for rows, quads, pitch in ((16, 16, 64), (1, 1, 4), (7, 3, 13), (16, 5, 100), (3, 16, 64)):
        products(left, right, rows, quads, pitch)


@ow.kernel
def on_arrays(a: kl.Array(i8, 16, 64), b: kl.Array(i8, 16, 64), c: kl.Array(i32, 16, 16)):
    """Arrays have bounds to keep; tiles read memory of the kernel's own."""
    left, right, sums = kl.stack(i8, 1024), kl.stack(i8, 1024), kl.stack(i32, 256)
    for r in range(16):
        left.store(a.load(r, 0, count=64), 64 * r)
        right.store(b.load(r, 0, count=64), 64 * r)
    kl.tile_config([(16, 64)] * 3)
    kl.tile_load(1, left, 64)
    kl.tile_load(2, right, 64)
    kl.tile_dot(0, 1, 2, i8, i8)
    kl.tile_store(0, sums, 64)
    kl.tile_release()
    for r in range(16):
        c.store(sums.load(16 * r, 16), r, 0)


@tiled
def test_in_a_kernel_on_arrays():
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-128, 128, (16, 64)).astype(np.int8) for _ in range(2))
    c = np.zeros((16, 16), np.int32)
    on_arrays(a, b, c)
    np.testing.assert_array_equal(c, wanted(a, b.reshape(16, 16, 4), [0])[0])


@tiled
def test_other_threads_and_forks():
    products(i8, i8, 5, 5, 20)
    failed = []

    def tried():
        try:
            products(i8, i8, 5, 5, 20)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=tried)
    thread.start()
    thread.join()
    assert not failed
    child = os.fork()
    if not child:
        tried()
        os._exit(len(failed))
    assert os.waitpid(child, 0)[1] == 0


def emitted(body, target=AMX):
    @kl.family
    def tried(work, p: ptr[i32], n: i64):
        body(p, n)

    return target.object_code(str(tried.emit(target)))


def test_compiles_for_a_target_that_has_them():
    assert emitted(
        lambda p, n: (kl.tile_config([(n, 64)] * 8), kl.tile_load(7, p, n), kl.tile_store(7, p, n), kl.tile_release())
    )


OPERATIONS = {
    "tile_config": lambda p, n: kl.tile_config([(16, 64)]),
    "tile_zero": lambda p, n: kl.tile_zero(0),
    "tile_load": lambda p, n: kl.tile_load(0, p, 64),
    "tile_dot": lambda p, n: kl.tile_dot(0, 1, 2, i8, i8),
    "tile_store": lambda p, n: kl.tile_store(0, p, 64),
    "tile_release": lambda p, n: kl.tile_release(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_target_without_tiles_is_named(name):
    for target in ("x86-64-v4-vnni", "aarch64-i8mm"):
        with pytest.raises(UnimplementedError, match=f"(?s){name}.*{target} has no tiles"):
            emitted(OPERATIONS[name], NAMED[target])


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        (lambda p, n: kl.tile_config([(16, 64)] * 9), ValueError, "8 tiles; found sizes of 9"),
        (lambda p, n: kl.tile_config([(17, 64)]), ValueError, "found 17 rows of 64 bytes for tile 0"),
        (lambda p, n: kl.tile_config([(1, 64), (16, 66)]), ValueError, "found 16 rows of 66 bytes for tile 1"),
        (lambda p, n: kl.tile_config([(1, 6)]), ValueError, "in fours"),
        (lambda p, n: kl.tile_zero(8), IndexError, "tile_zero: tiles are identified by Python numbers from 0 to 7"),
        (lambda p, n: kl.tile_load(n, p, 64), IndexError, "tile_load: tiles are identified"),
        (lambda p, n: kl.tile_load(0, n, 64), TypeError, "tile_load takes a pointer"),
        (lambda p, n: kl.tile_dot(0, 1, 2, i8, i32), TypeError, "found int8 and int32"),
    ],
)
def test_misuse(body, error, says):
    with pytest.raises(error, match=says):
        emitted(body)


def test_a_processor_whose_system_keeps_its_tiles(monkeypatch):
    """Linux hands tiles out on request, and may refuse: then the host has none, and its code is kept apart."""
    there = native_host.HostWords("x86_64-unknown-linux-gnu", "sapphirerapids", "+avx512f,+amx-tile,+amx-int8,+sse", 64)
    monkeypatch.setattr(native_host, "_description", lambda: there)
    monkeypatch.setattr(native_host, "_may_use_tiles", lambda: True)
    assert Target("host", *native_host.host_words()).has("amx-int8")
    monkeypatch.setattr(native_host, "_may_use_tiles", lambda: False)
    refused = Target("host", *native_host.host_words())
    assert refused.features == "+avx512f,-amx-tile,-amx-int8,+sse"
    assert not refused.has("amx-int8")
    assert not refused.has("amx-tile")
