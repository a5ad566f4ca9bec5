"""Maps: every pattern of broadcasting and of dtypes, at odd sizes, split and in place, for every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler import language as kl
from opwright.compiler.kernels.maps import COLUMN, EACH, ONE, TABLE, MapPattern, hoisted, join_axes, map_elements
from opwright.compiler.language import i64, ptr, u8
from opwright.compiler.language.compilation import FamilyCode, KernelFamily
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import Expr, apply, arg, const, convert, lookup, parametrised, quantize, scalar
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import Map
from opwright.compiler.loops.planner import plan_of
from opwright.compiler.native.store import find_or_make
from opwright.compiler.target import NAMED, host
from opwright.core import dtypes as d
from thorough import sampled

RNG = np.random.default_rng(2)
F, I8 = d.float32, d.int8
LINEAR = apply("fma", arg(0, F), arg(1, F), scalar(0.5, F))

SHAPES = [  # the output's comes of broadcasting
    ((), ()),
    ((1,), (1,)),
    ((7,), (7,)),
    ((7,), ()),
    ((1, 1), (3,)),
    ((64,), (64,)),
    ((70001,), (70001,)),
    ((70001,), (1,)),
    ((3, 5, 70), (70,)),
    ((3, 5, 70), (3, 1, 70)),
    ((3, 5, 70), (3, 5, 1)),
    ((3, 5, 70), (3, 1, 1)),
    ((3, 1, 70), (1, 5, 70)),
    ((5, 1), (1, 13)),
    ((2, 3, 4, 5), (3, 1, 5)),
    ((2, 1, 4, 1), (1, 3, 1, 5)),
    ((5, 20011), (5, 1)),
    ((5, 20011), (20011,)),
    ((2, 3, 2, 3, 2), (3, 1, 3, 1)),
]


def arrays_of(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [np.asarray(RNG.standard_normal(s), np.float32) for s in shapes]


def form_of(expr: Expr, *operands: Buffer) -> Map:
    shape = np.broadcast_shapes(*(b.shape for b in operands if b.shape != (256,)))
    return Map(Buffer("y", expr.dtype, shape), operands, expr)


@pytest.mark.parametrize(("a", "b"), sampled(SHAPES), ids=str)
def test_broadcasting(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = arrays_of(a, b)
    expected = x.astype(np.float64) * y + 0.5
    for first, second in ((x, y), (y, x)):
        buffers = [buffer(first, "a"), buffer(second, "b")]
        form = form_of(LINEAR, *buffers)
        inputs = dict(zip(buffers, (first, second)))
        actual = run(form, inputs)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(split(form, inputs, 3), actual)


@pytest.mark.parametrize("shape", [(2, 50, 3), (640, 3), (7, 11, 3), (4, 127, 1, 5)], ids=str)
def test_a_short_axis_of_constants_is_lengthened(shape: tuple[int, ...]) -> None:
    x, mean, deviation = arrays_of(shape, shape[-1:], shape[-1:])
    b = buffer(x)
    row = Buffer("mean", F, mean.shape, mean)
    width = Buffer("deviation", F, (1, *deviation.shape), deviation[None])
    form = form_of(apply("mul", apply("sub", arg(0, F), arg(1, F)), arg(2, F)), b, row, width)
    result = run(form, {b: x})
    np.testing.assert_allclose(result, (x.astype(np.float64) - mean) * deviation, rtol=1e-5, atol=1e-6)


def test_axes_are_joined_where_every_operand_allows_it() -> None:
    assert join_axes((2, 3, 4), ((12, 4, 1), (12, 4, 1))) == ((24,), ((1,), (1,)))
    assert join_axes((2, 3, 4), ((12, 4, 1), (0, 0, 1))) == ((6, 4), ((4, 1), (0, 1)))
    assert join_axes((2, 3, 4), ((12, 4, 1), (4, 0, 1))) == ((2, 3, 4), ((12, 4, 1), (4, 0, 1)))
    assert join_axes((2, 3, 4), ((12, 4, 1), (1, 0, 0))) == ((2, 12), ((12, 1), (1, 0)))
    assert join_axes((1, 1), ((1, 1), (0, 0))) == ((1,), ((0,), (0,)))


def test_slices_of_a_larger_tensor() -> None:
    whole = Buffer("whole", F, (4, 30))
    part = Buffer("part", F, (4, 7), parent=whole, start=11)
    (x,) = arrays_of((4, 7))
    b = buffer(x)
    form = Map(part, (b,), apply("neg", arg(0, F)))
    result = run(form, {b: x})
    np.testing.assert_array_equal(result[:, 11:18], -x)
    np.testing.assert_array_equal(result.view(np.uint8).reshape(4, -1)[:, : 11 * 4], 0x5A)
    np.testing.assert_array_equal(result.view(np.uint8).reshape(4, -1)[:, 18 * 4 :], 0x5A)


def test_dtypes_mix() -> None:
    n = 1001
    i8, f16 = RNG.integers(-128, 128, n).astype(np.int8), RNG.standard_normal(n).astype(np.float16)
    i64, mask = RNG.integers(-9, 9, n), RNG.integers(0, 2, n).astype(bool)
    arrays: tuple[np.ndarray, ...] = (i8, f16, i64, mask)
    operands = [buffer(v, f"x{k}") for k, v in enumerate(arrays)]
    total = apply(
        "add", apply("add", convert(arg(0, I8), F), convert(arg(1, d.float16), F)), convert(arg(2, d.int64), F)
    )
    expr = apply("select", arg(3, d.bool), total, const(0.0, F), dtype=F)
    actual = run(form_of(expr, *operands), dict(zip(operands, arrays)))
    expected = np.where(mask, i8.astype(np.float64) + f16.astype(np.float64) + i64, 0.0)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


ADD_INT8 = quantize(
    apply(
        "fma",
        convert(arg(0, I8), F),
        scalar(0.3, F),
        apply("fma", convert(arg(1, I8), F), scalar(0.7, F), scalar(-2.25, F)),
    ),
    5,
    I8,
)


@pytest.mark.parametrize("n", [1, 15, 64, 127, 70001])
def test_sums_of_bytes(n: int) -> None:
    a, b = (RNG.integers(-128, 128, n).astype(np.int8) for _ in range(2))
    operands = [buffer(a, "a"), buffer(b, "b")]
    actual = run(form_of(ADD_INT8, *operands), dict(zip(operands, (a, b))))
    exact = np.float32(0.3).astype(float) * a + np.float32(0.7).astype(float) * b - 2.25
    expected = np.clip(np.rint(exact) + 5, -128, 127)
    assert np.abs(actual - expected).max() <= 1
    assert (actual == expected).mean() > 0.99


MUL_INT8 = quantize(
    apply(
        "mul",
        apply("sub", convert(arg(0, I8), F), scalar(3.0, F)),
        apply("mul", convert(arg(1, I8), F), scalar(0.01, F)),
    ),
    -5,
    I8,
)


@pytest.mark.parametrize("shape", [(5, 7), (200, 16), (33, 64), (31, 144), (3, 40000)], ids=str)
def test_what_all_rows_share_is_computed_once(shape: tuple[int, int]) -> None:
    x, y, z = (RNG.integers(-128, 128, s).astype(np.int8) for s in (shape, shape[1:], (shape[0], 1)))
    a, b, c = (buffer(v, name) for v, name in ((x, "a"), (y, "b"), (z, "c")))
    expr = apply("maximum", MUL_INT8, arg(2, I8))
    inputs = {a: x, b: y, c: z}
    form = form_of(expr, a, b, c)
    actual = run(form, inputs)
    expected = np.maximum(np.clip(np.rint((x.astype(float) - 3) * (y * 0.01)) - 5, -128, 127), z)
    assert np.abs(actual - expected).max() <= 1
    assert (actual == expected).mean() > 0.99
    np.testing.assert_array_equal(split(form, inputs, 2), actual)


def test_the_parts_that_all_rows_share() -> None:
    x, y = arg(0, F), arg(1, F)
    expr = apply("add", apply("mul", x, apply("exp", y)), apply("neg", apply("exp", y)))
    shared, rest = hoisted(expr, frozenset({1}), 2)
    assert shared == [apply("exp", y), apply("neg", apply("exp", y))]
    assert rest == apply("add", apply("mul", x, arg(2, F)), arg(3, F))
    table = lookup(arg(0, I8), arg(1, I8))
    assert hoisted(table, frozenset({1}), 2) == ([], table)


def test_the_output_may_be_an_operand() -> None:
    (x, y), n = arrays_of((1003,), (1003,)), 1003
    a, b = buffer(x, "a"), buffer(y, "b")
    t, u, out = (Buffer(name, F, (n,)) for name in ("t", "u", "out"))
    forms = (Map(t, (a, b), LINEAR), Map(u, (t, b), LINEAR), Map(out, (u,), apply("neg", arg(0, F))))
    plan = plan_of(LoopGraph("chain", (a, b), (out,), forms))
    plan.pack()
    assert plan.arena <= -(-n * 4 // 64) * 64, "u lies where t was"
    actual, running = np.empty(n, np.float32), plan.bind()
    running.connect({a: x.ctypes.data, b: y.ctypes.data, out: actual.ctypes.data})
    running.run()
    expected = -((x.astype(np.float64) * y + 0.5) * y + 0.5)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def pattern(expr: Expr, kinds: tuple[str, ...], dtypes: tuple[Any, ...], outer: int) -> dict[str, Any]:
    skeleton, numbers = parametrised(expr)
    more = 1 + len(kinds) + (outer * (2 + len(kinds)) if outer else 0) + len(numbers)
    return {"pattern": MapPattern(skeleton, kinds, dtypes, tuple(t for _, t in numbers), outer, 64), "more": more}


@kl.family
def first_lanes(work, y: ptr[u8], n: i64, *, count: int):
    for _ in work.items():
        y.store(kl.select(kl.first(n, count), kl.full(u8, count, 1), kl.full(u8, count, 0)))


@pytest.mark.parametrize("count", [4, 16, 32, 64])
def test_masks_of_the_first_lanes(count: int) -> None:
    for n in (-3, 0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1000):
        y = np.empty(count, np.uint8)
        kl.call(first_lanes.code(count=count), [y, n], items=1)
        np.testing.assert_array_equal(y, np.arange(count) < n)


@targets(
    *(
        (map_elements, constants)
        for constants in (
            pattern(LINEAR, (EACH, ONE), (F, F), 0),
            pattern(LINEAR, (EACH, EACH), (F, F), 2),
            pattern(ADD_INT8, (EACH, EACH), (I8, I8), 0),
            pattern(apply("gelu", arg(0, F)), (EACH,), (F,), 0),
            pattern(MUL_INT8, (EACH, COLUMN), (I8, I8), 1),
            pattern(lookup(arg(0, I8), arg(1, I8)), (EACH, TABLE), (I8, I8), 0),
            pattern(apply("floor_div", arg(0, d.int32), arg(1, d.int32)), (EACH, EACH), (d.int32, d.int32), 1),
            pattern(convert(apply("exp", arg(0, d.float16)), d.bfloat16), (EACH,), (d.float16,), 0),
            pattern(convert(arg(0, F), d.int64), (EACH,), (F,), 0),
            pattern(apply("less", arg(0, I8), arg(1, I8), dtype=d.bool), (EACH, EACH), (I8, I8), 0),
        )
    )
)
def test_compiles_for_every_target(family: KernelFamily, constants: dict[str, Any], names: tuple[str, ...]) -> None:
    compiles_for(names, family, **constants)


NARROWER: dict[Expr, list[tuple[d.DType, tuple[int, ...]]]] = {  # expression: its operands
    LINEAR: [(F, (5, 133)), (F, (5, 1))],
    ADD_INT8: [(I8, (133,)), (I8, (133,))],
    MUL_INT8: [(I8, (9, 133)), (I8, (133,))],
    apply("gelu", arg(0, F)): [(F, (133,))],
    apply("sigmoid", arg(0, F)): [(F, (133,))],
    convert(apply("exp", arg(0, d.float16)), d.bfloat16): [(d.float16, (133,))],
    convert(arg(0, F), d.int64): [(F, (133,))],
    apply("less", arg(0, I8), arg(1, I8), dtype=d.bool): [(I8, (133,)), (I8, (133,))],
}


@pytest.mark.parametrize("name", ["generic", "x86-64-v3"])
def test_older_processors_of_the_family_give_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code without masks and wide vectors, run here; results as those of this machine's own code."""
    if not (host().is_x86 and host().has("avx2")):
        pytest.skip("the code of another family of processors")
    target = NAMED[name]
    forms = []
    for expr, operands in NARROWER.items():
        arrays = [
            RNG.standard_normal(shape).astype(t.np) if t.is_floating else RNG.integers(-9, 9, shape).astype(t.np)
            for t, shape in operands
        ]
        buffers = [buffer(x, f"x{k}") for k, x in enumerate(arrays)]
        forms.append((form_of(expr, *buffers), dict(zip(buffers, arrays))))
    expected = [run(form, inputs) for form, inputs in forms]

    def code(**constants: Any) -> FamilyCode:
        result = find_or_make(
            map_elements.name,
            f"{name} {sorted(constants.items())!r}",
            target,
            lambda: (str(map_elements.emit(target, **constants)), map_elements.entry(constants)),
        )
        return FamilyCode(result.address, result.name, tuple(map_elements.kinds(constants).values()))

    monkeypatch.setattr(map_elements, "code", code)
    for (form, inputs), exact in zip(forms, expected):
        tolerance = 1e-2 if form.output.dtype is d.bfloat16 else 3e-6
        np.testing.assert_allclose(
            run(form, inputs).astype(np.float64), exact.astype(np.float64), rtol=tolerance, atol=1e-6
        )
