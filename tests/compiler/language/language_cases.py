"""Small kernels that use each part of the language, with what they give by NumPy in exact arithmetic or float64.

A case: name -> (family, constants, arguments, number of items, {index of an array: what it holds afterwards}).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opwright.compiler import language as kl
from opwright.compiler.language import bf16, f16, f32, f64, i8, i16, i32, i64, ptr, u8, u16, u32

RNG = np.random.default_rng(11)


@kl.family
def scale_rows(work, x: ptr[f32], y: ptr[f32], columns: i64, factor: f32, *, relu: bool):
    lanes = work.lanes(f32)
    for r in work.items():
        a, b = x + r * columns, y + r * columns
        for i in range(0, columns - lanes + 1, lanes):
            v = a.load(i, lanes) * factor
            if relu:
                v = kl.maximum(v, 0.0)
            b.store(v, i)
        rest = columns % lanes
        if rest > 0:
            mask = kl.first(rest, lanes)
            v = a.load(columns - rest, lanes, mask=mask) * factor
            if relu:
                v = kl.maximum(v, 0.0)
            b.store(v, columns - rest, mask=mask)


@kl.family
def tile_product(work, a: ptr[f32], b: ptr[f32], c: ptr[f32], k: i64, *, rows: int):
    lanes = work.lanes(f32)
    for t in work.items():
        acc = kl.registers(f32, lanes, rows)
        for r in range(rows):
            acc[r] = 0.0
        for q in range(k):
            v = b.load(q * lanes, lanes)
            for r in range(rows):
                acc[r] = kl.fma((a + (t * rows + r) * k)[q], v, acc[r])
        for r in range(rows):
            c.store(acc[r], (t * rows + r) * lanes)


@kl.family
def collatz(work, x: ptr[i32], y: ptr[i32], most: i64):
    for i in work.items():
        n = x[i]
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
            if steps >= most:
                break
        y[i] = steps.to(i32)


@kl.family
def conversions(work, x: ptr[f32], n: i64, a: ptr[i32], b: ptr[f64], c: ptr[i8], d: ptr[u8], e: ptr[f16], f: ptr[bf16]):
    for i in range(n):
        v = x[i]
        a[i] = v.to(i32)
        b[i] = v.to(f64)
        whole = kl.round_even(v).to(i32)
        c[i] = whole.saturate(i8)
        d[i] = whole.saturate(u8)
        e[i] = v.to(f16)
        f[i] = v.to(bf16)


@kl.family
def unsigned(work, x: ptr[u8], y: ptr[i8], n: i64, a: ptr[i32], b: ptr[i32], c: ptr[u8], d: ptr[u16]):
    for i in range(n):
        u, s = x[i], y[i]
        a[i] = u.to(i32) - s.to(i32)
        b[i] = kl.select(u > 100, u.to(i32) // 7, s.to(i32) >> 1)
        c[i] = (u >> 2) ^ 5
        d[i] = u.to(u16) * 255 % 1000


@kl.family
def dots(work, a: ptr[u8], b: ptr[i8], p: ptr[i16], q: ptr[i16], y: ptr[i32], z: ptr[i32], known: ptr[i32]):
    n = work.lanes(i32)
    for place, c in ((0, 1), (1, 127), (2, 255)):
        known.store(kl.dot4(y.load(0, n), kl.full(u8, 4 * n, c), b.load(0, 4 * n)), place * n)
    known.store(kl.dot4(y.load(0, n), a.load(0, 4 * n), kl.full(i8, 4 * n, -128)), 3 * n)
    y.store(kl.dot4(y.load(0, n), a.load(0, 4 * n), b.load(0, 4 * n)))
    z.store(kl.pair_dot(z.load(0, n), p.load(0, 2 * n), q.load(0, 2 * n)))


@kl.family
def tables(work, table: ptr[i8], x: ptr[u8], y: ptr[i8], picked: ptr[i8], at: ptr[i32], *, count: int):
    for i in work.items():
        y.store(kl.lookup(table, x.load(i * count, count)), i * count)
    picked.store(kl.gather(table, at.load(0, 4)))


@kl.family
def lanes_and_bits(work, x: ptr[f32], y: ptr[f32], sums: ptr[f32], bits: ptr[u32], whole: ptr[i32]):
    v = x.load(0, 8)
    y.store(kl.shuffle(v, None, [7, 6, 5, 4, 3, 2, 1, 0]))
    y.store(kl.concat(kl.part(v, 4, 4), kl.part(v, 0, 4)), 8)
    y.store(kl.insert(v, 3, 42.0), 16)
    sums[0] = kl.reduce_add(v)
    sums[1] = kl.reduce_max(v)
    sums[2] = kl.reduce_min(v)
    sums[3] = v[2]
    bits.store(kl.bitcast(v, u32))
    whole[0] = kl.reduce_add(kl.iota(i32, 8) * kl.constant_vector(i32, [3, 1, 4, 1, 5, 9, 2, 6]))
    whole[1] = kl.select(kl.any(v > 1e9), 1, kl.full(i32, 0, 0))
    whole[2] = kl.select(kl.all(v < 1e9), 1, kl.full(i32, 0, 0))
    if kl.any(v > 0.0) and not kl.all(v > 0.0):
        whole[3] = 7
    else:
        whole[3] = 8


@kl.family
def functions(work, x: ptr[f32], y: ptr[f32], n: i64, *, count: int):
    at = 0
    for i in range(0, n, count):
        v = x.load(i, count)
        for f in (kl.abs, kl.floor, kl.ceil, kl.trunc, kl.round_even, kl.exp, kl.tanh):
            y.store(f(v), at)
            at += count
        y.store(kl.sqrt(kl.abs(v)), at)
        y.store(kl.clamp(v, -1.0, 1.5), at + count)
        y.store(kl.to_int(v).to(f32), at + 2 * count)
        at += 3 * count


@kl.family
def extremes(work, x: ptr[f32], y: ptr[f32], bound: f32, *, count: int):
    """A NaN stays where it stands second, and is passed over where a number does."""
    v, step = x.load(0, count), max(count, 1)
    result = (
        kl.maximum(1.5, v),
        kl.maximum(v, 1.5),
        kl.minimum(-0.5, v),
        kl.minimum(v, -0.5),
        kl.maximum(v, bound),
        kl.minimum(bound, v),
        kl.minimum(v, bound, number=True),
        kl.clamp(v, -2.0, 2.0),
    )
    for i in range(len(result)):
        y.store(result[i], i * step)


@kl.family
def scratch_and_stack(work, x: ptr[i64], y: ptr[i64], n: i64):
    held, kept = work.scratch(i64), kl.stack(i64, 4)
    for i in range(n):
        held[i] = x[n - 1 - i]
    for i in range(4):
        kept[i] = i * 10
    for i in range(n):
        y[i] = held[i] + kept[i % 4]


@kl.family
def early(work, y: ptr[i64], n: i64):
    for i in work.items():
        if i == 5:
            continue
        if i >= n:
            return 3
        total = 0
        for j in range(i, -1, -1):
            total += j
            if total > 20:
                break
        y[i] = min(total, 25)
    return 0


@kl.family
def powers(work, x: ptr[f32], y: ptr[f32], n: i64):
    for _ in work.items():
        for i in range(n):
            y[i] = x[i] ** 2.0 + 2.0 ** x[i]


def cases(lanes: int) -> dict[str, Any]:
    """lanes: float32s in a vector of the target."""
    x = RNG.standard_normal((5, 37)).astype(np.float32)
    k, rows = 9, 3
    a, b = RNG.standard_normal((6, k)).astype(np.float32), RNG.standard_normal((k, lanes)).astype(np.float32)
    numbers = np.arange(1, 30, dtype=np.int32)
    odd = np.array([0.0, -0.0, 1.5, 2.5, -2.5, 300.7, -300.7, 127.5, -128.5, 1e-3, 65000.0, -7.3], np.float32)
    rounded = np.rint(odd.astype(np.float64))
    ml = {e: kl_type.np for e, kl_type in (("f16", f16), ("bf16", bf16))}
    u = RNG.integers(0, 256, 40).astype(np.uint8)
    s = RNG.integers(-128, 128, 40).astype(np.int8)
    wu, ws = u.astype(np.int64), s.astype(np.int64)
    around = np.array([np.nan, 2.5, -2.5, np.inf], np.float32)
    beside = [
        np.maximum(1.5, around),
        np.fmax(around, 1.5),
        np.minimum(-0.5, around),
        np.fmin(around, -0.5),
        np.fmax(around, -1),
        np.minimum(-1, around),
        np.fmin(around, -1),
        np.fmin(np.fmax(around, -2), 2),
    ]
    du = RNG.integers(0, 256, 4 * lanes).astype(np.uint8)
    ds = RNG.integers(-128, 128, 4 * lanes).astype(np.int8)
    du[:4], ds[:4] = 255, -128
    dp, dq = (RNG.integers(-(1 << 15), 1 << 15, 2 * lanes).astype(np.int16) for _ in range(2))
    start = RNG.integers(-1000, 1000, lanes).astype(np.int32)
    table = RNG.integers(-128, 128, 256).astype(np.int8)
    at = RNG.permutation(256).astype(np.uint8)
    v = np.array([1.5, -2.0, 3.0, 4.25, -5.0, 6.0, 7.5, 0.5], np.float32)
    picks = np.array([3, 250, 0, 77], np.int32)
    z = np.concatenate([RNG.standard_normal(28) * 3, [0.5, 1.5, -0.5, 0.0]]).astype(np.float32)
    wide = z.astype(np.float64).reshape(-1, 4)
    each = [
        np.abs(wide),
        np.floor(wide),
        np.ceil(wide),
        np.trunc(wide),
        np.rint(wide),
        np.exp(wide),
        np.tanh(wide),
        np.sqrt(np.abs(wide)),
        np.clip(wide, -1, 1.5),
        np.rint(wide),
    ]
    by_function = np.stack(each, 1)
    tabled = [table, at, np.zeros(256, np.int8), np.zeros(4, np.int8), picks]
    early_sums = [
        min(next((t for t in np.cumsum(range(i, -1, -1)) if t > 20), i * (i + 1) // 2), 25) for i in range(12)
    ]
    early_sums[5] = -1
    return {
        **{
            f"scale_rows {relu}": (
                scale_rows,
                {"relu": relu},
                [x, np.zeros_like(x), 37, 0.5],
                5,
                {1: np.maximum(x * 0.5, 0) if relu else x * 0.5},
            )
            for relu in (False, True)
        },
        "tile_product": (
            tile_product,
            {"rows": rows},
            [a, b, np.zeros((6, lanes), np.float32), k],
            2,
            {2: a.astype(np.float64) @ b},
        ),
        "collatz": (
            collatz,
            {},
            [numbers, np.zeros_like(numbers), 1000],
            29,
            {1: [_collatz(n) for n in numbers.tolist()]},
        ),
        "conversions": (
            conversions,
            {},
            [
                odd,
                len(odd),
                np.zeros(12, np.int32),
                np.zeros(12),
                np.zeros(12, np.int8),
                np.zeros(12, np.uint8),
                *(np.zeros(12, d) for d in ml.values()),
            ],
            1,
            {
                2: np.trunc(odd),
                3: odd,
                4: np.clip(rounded, -128, 127),
                5: np.clip(rounded, 0, 255),
                6: odd.astype(ml["f16"]),
                7: odd.astype(ml["bf16"]),
            },
        ),
        "unsigned": (
            unsigned,
            {},
            [u, s, 40, np.zeros(40, np.int32), np.zeros(40, np.int32), np.zeros(40, np.uint8), np.zeros(40, np.uint16)],
            1,
            {3: wu - ws, 4: np.where(wu > 100, wu // 7, ws >> 1), 5: (wu >> 2) ^ 5, 6: wu * 255 % 1000},
        ),
        "dots": (
            dots,
            {},
            [du, ds, dp, dq, start, start[::-1].copy(), np.zeros(4 * lanes, np.int32)],
            1,
            {
                6: np.concatenate(
                    [start + c * ds.reshape(-1, 4).sum(1, dtype=int) for c in (1, 127, 255)]
                    + [start - 128 * du.reshape(-1, 4).sum(1, dtype=int)]
                ),
                4: start + (du.astype(np.int64) * ds).reshape(-1, 4).sum(1),
                5: start[::-1] + (dp.astype(np.int64) * dq).reshape(-1, 2).sum(1),
            },
        ),
        **{
            f"tables {count}": (tables, {"count": count}, tabled, 256 // count, {2: table[at], 3: table[picks]})
            for count in (16, 32, 64)
        },
        "lanes_and_bits": (
            lanes_and_bits,
            {},
            [v, np.zeros(24, np.float32), np.zeros(4, np.float32), np.zeros(8, np.uint32), np.zeros(4, np.int32)],
            1,
            {
                1: [*v[::-1], *v[4:], *v[:4], *v[:3], 42, *v[4:]],
                2: [v.sum(), v.max(), v.min(), v[2]],
                3: v.view(np.uint32),
                4: [int(np.arange(8) @ [3, 1, 4, 1, 5, 9, 2, 6]), 0, 1, 7],
            },
        ),
        "functions": (
            functions,
            {"count": 4},
            [z, np.zeros(10 * len(z), np.float32), len(z)],
            1,
            {1: by_function.reshape(-1)},
        ),
        **{
            f"extremes {count}": (
                extremes,
                {"count": count},
                [around, np.zeros(8 * max(count, 1), np.float32), -1.0],
                1,
                {1: np.concatenate([one[: max(count, 1)] for one in beside])},
            )
            for count in (0, 4)
        },
        "scratch_and_stack": (
            scratch_and_stack,
            {},
            [np.arange(9), np.zeros(9, np.int64), 9],
            1,
            {1: [8 - i + 10 * (i % 4) for i in range(9)]},
        ),
        "early": (early, {}, [np.full(12, -1), 12], 12, {0: early_sums}),
    }


def _collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def check(name: str, actual: list[np.ndarray], case: Any) -> None:
    """The arrays of a case are what it says."""
    _, _, arguments, _, expected = case
    at = [i for i, a in enumerate(arguments) if isinstance(a, np.ndarray)]
    for i, array in zip(at, actual):
        if i in expected:
            exact = np.asarray(expected[i])
            got = array.astype(np.float64) if array.dtype.kind not in "iu" else array
            np.testing.assert_allclose(
                got, exact.astype(np.float64), rtol=3e-6, atol=1e-6, err_msg=f"{name}, array {i}"
            )
