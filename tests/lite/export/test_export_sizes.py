"""Exported operators whose output sizes are computed: convolutions and poolings.

The oracles: NumPy, and Python's own whole numbers for the arithmetic.
"""

from __future__ import annotations

import numpy as np
import pytest
from export_kit import STRICT, built, compiled, model_of, needs_gcc, run
from hypothesis import given
from hypothesis import strategies as st

import opwright as ow
from opwright import language as kl
from opwright import lite
from opwright.lite.export.size_expressions import MOST_PATHS, Branch, SymbolicSize, _Paths, evaluated
from thorough import sampled


@ow.operator(name="ExportedConv")
class Conv:
    """Rows convolved with filters, a step apart."""

    x = ow.Input(ow.float32)
    w = ow.Input(ow.float32)
    y = ow.Output(dtype=ow.float32)
    stride = ow.Attr(int, default=1, check=ow.attr.at_least(1))
    padding = ow.Attr(str, default="VALID", check=ow.attr.one_of("SAME", "VALID"))

    def infer(op):
        b, n, _ = op.x.spec.shape
        k, _, o = op.w.spec.shape
        if n is None or k is None:
            return ow.TensorSpec([b, None, o], ow.float32)
        if op.padding == "SAME":
            return ow.TensorSpec([b, -(-n // op.stride), o], ow.float32)
        if n < k:
            raise ValueError("the input is shorter than the filter")
        return ow.TensorSpec([b, (n - k) // op.stride + 1, o], ow.float32)

    def compute(op, x, w):
        n, k = x.shape[1], w.shape[0]
        if op.padding == "SAME":
            m = -(-n // op.stride)
            missing = max((m - 1) * op.stride + k - n, 0)
            x = np.pad(x, ((0, 0), (missing // 2, missing - missing // 2), (0, 0)))
        else:
            m = (n - k) // op.stride + 1
        rows = [
            np.einsum("bkc,kco->bo", x[:, i * op.stride : i * op.stride + k].astype(np.float64), w) for i in range(m)
        ]
        return np.stack(rows, 1).astype(np.float32) if rows else np.zeros((len(x), 0, w.shape[2]), np.float32)

    @ow.kernel
    def kernel(
        x: kl.Array(kl.f32, "b", "n", "c"),
        w: kl.Array(kl.f32, "k", "c", "o"),
        y: kl.Array(kl.f32, "b", "m", "o"),
        stride: kl.i64,
        *,
        padding,
    ):
        n, k, m = x.shape[1], w.shape[0], y.shape[1]
        before = kl.maximum((m - 1) * stride + k - n, 0) // 2 if padding == "SAME" else m * 0
        for r in kl.parallel(x.shape[0]):
            for i in range(m):
                for j in range(w.shape[2]):
                    total = kl.full(kl.f32, 0, 0.0)
                    for q in range(k):
                        at = i * stride + q - before
                        if at >= 0 and at < n:
                            for c in range(x.shape[2]):
                                total = total + x[r, at, c] * w[q, c, j]
                    y[r, i, j] = total


@ow.operator(name="ExportedPool")
class Pool:
    """The largest of each window of a row, and which it was in the row; rows of any number of leading dimensions."""

    x = ow.Input(ow.float32)
    y = ow.Output(dtype=ow.float32)
    at = ow.Output(dtype=ow.int32)
    size = ow.Attr(int, default=2, check=ow.attr.between(1, 64))
    stride = ow.Attr(int, default=2, check=ow.attr.at_least(1))

    def infer(op):
        *leading, n = op.x.spec.shape
        windows = max(n - op.size, -1 if n == 0 else 0) // op.stride + 1  # one that is cut for less than a window
        return [ow.TensorSpec([*leading, windows], dtype) for dtype in (ow.float32, ow.int32)]

    def compute(op, x):
        starts = range(0, max(x.shape[-1] - op.size, -1 if x.shape[-1] == 0 else 0) + 1, op.stride)
        cut = [x[..., s : s + op.size] for s in starts]
        y = np.stack([c.max(-1) for c in cut], -1)
        return y, np.stack([s + c.argmax(-1) for s, c in zip(starts, cut)], -1).astype(np.int32)

    @ow.kernel
    def kernel(
        x: kl.Array(kl.f32, ..., "n"),
        y: kl.Array(kl.f32, ..., "m"),
        at: kl.Array(kl.i32, ..., "m"),
        size: kl.i64,
        stride: kl.i64,
    ):
        for r in kl.parallel(x.shape[0]):
            for i in range(y.shape[1]):
                start = i * stride
                best, place = x[r, start], start
                for k in range(1, size):
                    if start + k < x.shape[1]:  # noqa: SIM102  # `and` reads both of its sides
                        if x[r, start + k] > best:
                            best, place = x[r, start + k], start + k
                y[r, i] = best
                at[r, i] = place.to(kl.i32)


def exact(x, w, stride, padding):
    return Conv.bind({"stride": stride, "padding": padding}).reference(x, w)


CASES = [
    (n, k, stride, padding)
    for padding in ("SAME", "VALID")
    for n, k, stride in ((7, 3, 1), (7, 3, 2), (8, 2, 3), (5, 5, 1), (1, 1, 7), (9, 4, 4), (6, 1, 6))
]


@needs_gcc
@pytest.mark.parametrize("api", ["opaque", "struct"])
def test_a_convolution(api, tmp_path):
    customs = built(Conv, tmp_path, api=api, flags=("-O1",))
    rng = np.random.default_rng(0)
    for n, k, stride, padding in CASES:
        x = rng.integers(-5, 6, (2, n, 3)).astype(np.float32)  # whole numbers: any order of sums is exact
        w = rng.integers(-5, 6, (k, 3, 4)).astype(np.float32)
        result = run(model_of(Conv, x, w, stride=stride, padding=padding), customs, x, w)
        np.testing.assert_array_equal(result, exact(x, w, stride, padding), err_msg=f"{(n, k, stride, padding)}")


@needs_gcc
def test_a_pooling_with_two_results(tmp_path):
    customs = built(Pool, tmp_path, flags=("-O1",))
    for shape, size, stride in (((2, 3, 11), 3, 2), ((9,), 2, 2), ((4, 1), 5, 1), ((3, 64), 64, 9), ((2, 0, 7), 2, 3)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        interpreter = lite.Interpreter(model_content=model_of(Pool, x, size=size, stride=stride), custom_ops=customs)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        result = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
        for ours, numpy in zip(result, Pool.bind({"size": size, "stride": stride}).reference(x)):
            assert ours.dtype == numpy.dtype
            np.testing.assert_array_equal(ours, numpy, err_msg=f"{(shape, size, stride)}")


@needs_gcc
def test_other_sizes_and_those_that_the_rule_refuses(tmp_path):
    customs = built(Conv, tmp_path)
    w = np.ones((3, 1, 1), np.float32)
    model = model_of(Conv, np.ones((1, 9, 1), np.float32), w, shapes=[[None, None, 1], [3, 1, 1]], stride=2)
    interpreter = lite.Interpreter(model_content=model, custom_ops=customs)
    x_at, w_at = (d["index"] for d in interpreter.get_input_details())
    for n in (9, 3, 4, 2, 300):
        interpreter.resize_tensor_input(x_at, [1, n, 1])
        if n < 3:
            with pytest.raises(ow.errors.OpError, match="there is no output for inputs of these sizes"):
                interpreter.allocate_tensors()
            continue
        interpreter.allocate_tensors()
        x = np.arange(n, dtype=np.float32).reshape(1, n, 1)
        interpreter.set_tensor(x_at, x)
        interpreter.set_tensor(w_at, w)
        interpreter.invoke()
        np.testing.assert_array_equal(
            interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), exact(x, w, 2, "VALID")
        )


@needs_gcc
@pytest.mark.parametrize(
    ("op", "api", "language"),
    [
        pytest.param(
            op, api, language, marks=() if i == j and i % 2 == k else pytest.mark.slow
        )  # each api and language once
        for k, op in enumerate((Conv, Pool))
        for i, api in enumerate(("opaque", "external", "struct"))
        for j, language in enumerate((("-std=c99",), ("-std=c11",), ("-x", "c++", "-std=c++17")))
    ],
)
def test_compilers_take_it_without_a_word(op, api, language, tmp_path):
    _, source, _ = ow.export_c(op, tmp_path, api=api)
    compiled(source, *language, "-O2", *STRICT)


@needs_gcc
def test_the_official_interpreter_gives_the_same(tmp_path):
    pytest.importorskip("ai_edge_litert")
    from test_export_official import official

    rng = np.random.default_rng(0)
    x, w = rng.integers(-5, 6, (2, 11, 3)).astype(np.float32), rng.integers(-5, 6, (4, 3, 2)).astype(np.float32)
    for padding, stride in (("SAME", 3), ("VALID", 2)):
        model = model_of(Conv, x, w, stride=stride, padding=padding)
        result = official(tmp_path, Conv, "struct", model, x, w)
        assert not isinstance(result, str), result
        np.testing.assert_array_equal(result, exact(x, w, stride, padding))


# --- sizes with how they were made -----------------------------------------------------------------------------------

SIGNS = ("+", "-", "*", "//", "%", "neg", "max", "min", "if")


def applied(sign, a, b):
    """One step of a rule, in Python's own words."""
    return {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "//": lambda: a // b,
        "%": lambda: a % b,
        "neg": lambda: -a,
        "max": lambda: max(a, b),
        "min": lambda: min(a, 7),
        "if": lambda: a if a != b and a <= 9 else divmod(b, 3)[0],
    }[sign]()


@given(st.lists(st.tuples(st.sampled_from(SIGNS), st.booleans()), max_size=6), st.integers(0, 50), st.integers(0, 50))
def test_a_rule_means_what_python_means_by_it(steps, n, k):
    """Random rules on two sizes, recorded at 37 and 41, against the same rules run at others."""

    def rule(n, k):
        value = n
        for sign, other in steps:
            value = applied(sign, value, k if other else 3)
        return value

    paths = _Paths()

    def explore(reference):
        paths.prescribed, paths.outcomes = reference, []
        try:
            value = rule(SymbolicSize.of(37, "n", paths), SymbolicSize.of(41, "k", paths))
            leaf = {"y": value.expression if isinstance(value, SymbolicSize) else value}
        except ZeroDivisionError:
            leaf = None
        given, paths.outcomes = paths.outcomes, None
        for i in reversed(range(len(reference), len(given))):
            leaf = Branch(given[i][0], leaf, explore([a for _, a in given[:i]] + [False]))
        return leaf

    try:
        expected = {"y": rule(n, k)}
    except ZeroDivisionError:
        expected = None
    assert evaluated(explore([]), {"n": n, "k": k}, {}) == expected


def refused(infer):
    body = {
        "x": ow.Input(ow.float32),
        "y": ow.Output(dtype=ow.float32),
        "compute": lambda op, x: x,
        "kernel": first,
        "infer": infer,
        "by": ow.Attr(int, default=2),
    }
    return ow.operator(type("RefusedSizes", (), body))


@ow.kernel
def first(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "m")):
    for i in range(y.shape[0]):
        y[i] = x[0]


def of(size):
    return lambda op: ow.TensorSpec([size(op.x.spec.shape[0], op.by)], ow.float32)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (lambda n, by: int(n / by), "cannot be translated to C"),
        (lambda n, by: len(range(0, n, max(by, 1))), "cannot be translated to C"),
        (lambda n, by: n >> 1, "cannot be translated to C"),
        (lambda n, by: sum(n > 3 * i for i in range(300)), f"at most {MOST_PATHS} ways"),
    ],
    ids=["division", "range", "shift", "too many ways"],
)
def test_rules_that_are_none_of_c(size, words, tmp_path):
    with pytest.raises(ow.errors.UnimplementedError, match=words):
        ow.export_c(refused(of(size)), tmp_path)


@needs_gcc
@pytest.mark.parametrize(
    ("size", "by"),
    sampled(
        [
            (lambda n, by: n // by, 0),
            (lambda n, by: n * by, 2**40),
            (lambda n, by: n + by, 2**63 - 1),
            (lambda n, by: n - by, 9),
            (lambda n, by: n % by, 0),
            (lambda n, by: by - n, -(2**63)),
            (lambda n, by: n * by, 2**31),
        ]
    ),
    ids=["zero", "product", "sum", "negative", "rest", "difference", "large"],
)
def test_options_that_give_no_size_are_an_error(size, by, tmp_path):
    """Options are the model's: whatever they are, nothing overflows or divides by zero."""
    from lite_kit import Build

    op = refused(of(size))
    customs = built(op, tmp_path, flags=("-O1", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"))
    interpreter = lite.Interpreter(model_content=Build().custom(op.name, "x", "y", by=by).done(), custom_ops=customs)
    with pytest.raises(ow.errors.OpError, match="there is no output for inputs of these sizes"):
        interpreter.allocate_tensors()
