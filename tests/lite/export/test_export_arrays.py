"""Operators whose kernels work on arrays, as C: results, shapes, guards, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from export_kit import STRICT, built, compiled, model_of, needs_gcc

import opwright as ow
from opwright import language as kl
from opwright import lite
from opwright.core import flags
from thorough import crossed, sampled


@ow.operator(name="ExportedNorm")
class Norm:
    """Rows of mean 0 and square 1, times gamma; and the means."""

    x = ow.Input(ow.float32)
    gamma = ow.Input(ow.float32)
    y = ow.Output(like="x")
    mean = ow.Output(dtype=ow.float32)
    epsilon = ow.Attr(float, default=1e-5, check=ow.attr.greater_than(0.0))
    centre = ow.Attr(bool, default=True)

    def infer(op):
        return op.x.spec, ow.TensorSpec(op.x.spec.shape[:-1], ow.float32)

    def compute(op, x, gamma):
        wide = x.astype(np.float64)
        mean = wide.mean(-1)
        rest = wide - mean[..., None] if op.centre else wide
        scale = np.sqrt((rest * rest).mean(-1)[..., None] + op.epsilon)
        return (rest / scale * gamma).astype(np.float32), mean.astype(np.float32)

    @ow.kernel
    def kernel(
        x: kl.Array(kl.f32, ..., "n"),
        gamma: kl.Array(kl.f32, "n"),
        y: kl.Array(kl.f32, ..., "n"),
        mean: kl.Array(kl.f32, ...),
        epsilon: kl.f32,
        *,
        centre,
    ):
        n = x.shape[1]
        for r in kl.parallel(x.shape[0]):
            total = kl.full(kl.f32, 0, 0.0)
            for i in range(n):
                total = total + x[r, i]
            middle = total / n.to(kl.f32)
            mean[r] = middle
            if not centre:
                middle = kl.full(kl.f32, 0, 0.0)
            square = kl.full(kl.f32, 0, 0.0)
            for i in range(n):
                rest = x[r, i] - middle
                square = kl.fma(rest, rest, square)
            scale = 1.0 / kl.sqrt(square / n.to(kl.f32) + epsilon)
            for i in range(n):
                y[r, i] = (x[r, i] - middle) * scale * gamma[i]


@ow.operator(name="ExportedPick")
class Pick:
    """Bytes of a table by index: outside of it the kernel's guard fails."""

    table = ow.Input(ow.uint8)
    at = ow.Input(ow.int32)
    y = ow.Output(dtype=ow.uint8)

    def infer(op):
        return ow.TensorSpec(op.at.spec.shape, ow.uint8)

    def compute(op, table, at):
        return table[at]

    @ow.kernel
    def kernel(table: kl.Array(kl.u8, 256), at: kl.Array(kl.i32, "n"), y: kl.Array(kl.u8, "n")):
        for i in range(at.shape[0]):
            if at[i] == 255:
                y[i] = table[255] // 3
            else:
                y[i] = table[at[i]]


@ow.operator(name="ExportedSteps")
class Steps:
    """How many numbers range(start, stop, step) has, and the last of them plus an attribute."""

    limits = ow.Input(ow.int64)
    y = ow.Output(dtype=ow.int64)
    more = ow.Attr(int, default=0)

    def infer(op):
        return ow.TensorSpec(op.limits.spec.shape, ow.int64)

    def compute(op, limits):
        numbers = range(*limits.tolist())
        return np.array([len(numbers), (numbers[-1] if numbers else 0) + op.more, 0], np.int64)

    @ow.kernel
    def kernel(limits: kl.Array(kl.i64, 3), y: kl.Array(kl.i64, 3), more: kl.i8):
        turns, last = 0, 0
        for k in range(limits[0], limits[1], limits[2]):
            turns += 1
            last = k
        y[0] = turns
        y[1] = last + more.to(kl.i64)
        y[2] = 0


def both(model, customs, *arrays):
    """All outputs of a model."""
    interpreter = lite.Interpreter(model_content=model, custom_ops=customs)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]).copy() for d in interpreter.get_output_details()]


@needs_gcc
@pytest.mark.parametrize("attrs", sampled([{}, {"epsilon": 0.5}, {"centre": False}]), ids=str)
def test_rows_of_any_rank(attrs, tmp_path):
    customs = built(Norm, tmp_path, flags=("-O1", "-march=native"))
    gamma = np.linspace(-1, 2, 5, dtype=np.float32)
    for shape in ((2, 3, 5), (5,), (4, 5), (0, 5)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        model = model_of(Norm, x, gamma, **attrs)
        with flags.override(compiled=True, background=False):
            ours = both(model, [Norm], x, gamma)
        result = both(model, customs, x, gamma)
        for a, b, exact in zip(result, ours, Norm.bind(attrs).reference(x, gamma)):
            assert a.shape == exact.shape
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, exact, rtol=1e-5, atol=1e-5)


@needs_gcc
def test_shapes_and_types_that_do_not_fit_are_named(tmp_path):
    customs = built(Norm, tmp_path)
    x, gamma = np.ones((2, 5), np.float32), np.ones(5, np.float32)
    model = model_of(Norm, x, gamma, shapes=[[None, None], [None]])
    for shape, words in (([2, 4], "x, axis 1 has size 4|gamma, axis 0 has size 5; wanted: 4"), ([2], None)):
        interpreter = lite.Interpreter(model_content=model, custom_ops=customs)
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], shape)
        interpreter.resize_tensor_input(interpreter.get_input_details()[1]["index"], [5] if words else [2])
        if words is None:
            interpreter.allocate_tensors()
            continue
        with pytest.raises(ow.errors.OpError, match=words):
            interpreter.allocate_tensors()


@needs_gcc
def test_bytes_and_a_guard_that_fails(tmp_path):
    customs = built(Pick, tmp_path)
    table = np.arange(256, dtype=np.uint8)[::-1].copy()
    at = np.array([0, 255, 7, 200], np.int32)
    model = model_of(Pick, table, at)
    (result,) = both(model, customs, table, at)
    np.testing.assert_array_equal(result, np.where(at == 255, table[255] // 3, table[at]))
    for wrong in (256, -1):
        with pytest.raises(ow.errors.OpError, match="index outside of table, axis 0"):
            both(model, customs, table, np.array([0, wrong, 1, 2], np.int32))


MOST = 2**63 - 1


@needs_gcc
def test_ranges_mean_what_pythons_mean(tmp_path):
    customs = built(Steps, tmp_path, flags=("-O2", "-ftrapv"))
    for limits in (
        (0, 5, 1),
        (0, 5, 2),
        (5, 0, -2),
        (0, 5, -1),
        (MOST - 3, MOST - 1, 5),
        (MOST - 7, MOST, 3),
        (-MOST, -MOST - 1, -4),
        (-MOST - 1, MOST, MOST),
    ):
        inputs = np.array(limits, np.int64)
        numbers = range(*limits)
        expected = [len(numbers), numbers[-1] if numbers else 0, 0]
        for actual in (both(model_of(Steps, inputs), customs, inputs)[0], np.asarray(Steps(inputs))):
            assert actual.tolist() == expected, limits
    zero = np.array([0, 5, 0], np.int64)
    with pytest.raises(ow.errors.OpError, match="arg 3 must not be zero"):
        both(model_of(Steps, zero), customs, zero)
    with pytest.raises(ValueError, match="arg 3 must not be zero"):
        Steps(zero)


@needs_gcc
@pytest.mark.parametrize("more", sampled([127, 128, -128, -129, 2**40]))
def test_attributes_that_a_parameter_cannot_hold(more, tmp_path):
    customs = built(Steps, tmp_path)
    inputs = np.array([0, 5, 1], np.int64)
    runs = (
        lambda: both(model_of(Steps, inputs, more=more), customs, inputs)[0],
        lambda: Steps(inputs, more=more),
        lambda: ow.function(lambda x: Steps(x, more=more), jit_compile=True)(inputs),
    )
    for run in runs:
        if -128 <= more <= 127:
            assert np.asarray(run()).tolist() == [5, 4 + more, 0]
        else:
            with pytest.raises(ow.errors.OpError, match="int8"):
                run()


@needs_gcc
@pytest.mark.parametrize(
    ("language", "op"), crossed([("-std=c99",), ("-x", "c++", "-std=c++11")], [Norm, Pick, Steps]), ids=str
)
def test_compilers_take_it_without_a_word(op, language, tmp_path):
    _, source, _ = ow.export_c(op, tmp_path, api="struct")
    compiled(source, *language, "-O2", *STRICT)


def refused(**parts):
    body = {"x": ow.Input(ow.float32), "y": ow.Output(like="x"), "compute": lambda op, x: x, **parts}
    return ow.operator(type("RefusedArrays", (), body))


@ow.kernel
def vectors(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n")):
    for i in range(0, x.shape[0], 4):
        y.store(x.load(i, count=4) * 2.0, i)


@ow.kernel
def other_size(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "m")):
    for i in range(y.shape[0]):
        y[i] = x[0]


@ow.kernel
def constant(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n"), *, times):
    for i in range(x.shape[0]):
        y[i] = x[i] * float(times)


@ow.kernel
def alike(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n")):
    for i in range(x.shape[0]):
        y[i] = x[i]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"kernel": vectors}, "the kernel works on vectors, which C has none of"),
        (
            {"kernel": other_size, "infer": lambda op: ow.TensorSpec([math.ceil(op.x.shape[0] / 2)], ow.float32)},
            r"its shape rule cannot be translated to C(.|\n)*-\(-n // s\)",
        ),
        ({"kernel": constant, "times": ow.Attr(int, default=2)}, "attribute 'times' is a constant of its kernel"),
        ({"kernel": alike, "infer": lambda op: ow.TensorSpec([3], ow.float32)}, "not what its annotation says"),
    ],
)
def test_what_has_no_form_in_c(parts, words, tmp_path):
    with pytest.raises(ow.errors.UnimplementedError, match=words):
        ow.export_c(refused(**parts), tmp_path)


def test_a_constant_of_known_values(tmp_path):
    op = refused(kernel=constant, times=ow.Attr(int, default=2))
    text = ow.export_c(op, tmp_path, attrs={"times": [2, 5]})[1].read_text()
    assert "* 2.0f" in text
    assert "* 5.0f" in text
