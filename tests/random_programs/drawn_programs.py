"""Programs drawn at random, run in every way, and compared.

    python tests/random_programs/drawn_programs.py 0 1000        seeds 0 to 999; prints each difference, and a summary

Lives here: `draw`, a program of a seed; `differences`, what its ways of running disagree on.
Not here: single functions over their whole range (tests/functions), graphs of float32 alone (tests/compiler/lowering).

A program is a list of steps on earlier values: element-wise operators, casts, views, reductions, products, sorts,
conditionals and loops, of float32, int32, int64, bool, int8 and uint8, some of size 0. The eager result is the
reference; what is compared is chosen so that a rounding does not grow into another result: values pass through a
bounded function now and then, and what is counted, cut or compared is a whole number.
"""

from __future__ import annotations

import collections
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import opwright as ow
from opwright import lite

Value = Any
FLOAT, INTEGERS = "float32", ("int32", "int64", "int8", "uint8")
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-38, 1e30, -1e30, 0.5, -1.0)


def dtype_of(x: Value) -> str:
    name: str = x.dtype.name
    return name


def known(x: Value) -> Value:
    """0 for NaN: what maximum and minimum make of that is the file format's own affair (the operand that is none)."""
    return ow.where(ow.math.is_nan(x), ow.zeros_like(x), x)


def bounded(x: Value, limit: float) -> Value:
    return ow.clip_by_value(known(x), -limit, limit)


def size_of(x: Value) -> int:
    return int(np.prod([int(d) for d in x.shape]))


# ---- steps: (rng, values) -> value, or None where none fits --------------------------------------------------------

UNARY: dict[str, Callable[[Value], Value]] = {
    "abs": ow.abs,
    "negative": ow.negative,
    "square": ow.square,
    "exp": lambda x: ow.exp(ow.minimum(known(x), 20.0)),
    "expm1": lambda x: ow.math.expm1(ow.minimum(known(x), 20.0)),
    "log1p": lambda x: ow.math.log1p(ow.abs(x)),
    "sqrt": lambda x: ow.sqrt(ow.abs(x)),
    "rsqrt": lambda x: ow.math.rsqrt(ow.abs(x) + 0.5),
    "tanh": ow.tanh,
    "sigmoid": ow.sigmoid,
    "softplus": ow.math.softplus,
    "softsign": ow.nn.softsign,
    "relu": ow.nn.relu,
    "relu6": ow.nn.relu6,
    "elu": ow.nn.elu,
    "selu": ow.nn.selu,
    "gelu": ow.nn.gelu,
    "silu": ow.nn.silu,
    "gelu_tanh": lambda x: ow.nn.gelu(x, True),
    "leaky_relu": ow.nn.leaky_relu,
    "hard_silu": ow.nn.activations.hard_silu,
    "sin": lambda x: ow.sin(bounded(x, 9.0)),
    "cos": lambda x: ow.cos(bounded(x, 9.0)),
    "scale": lambda x: x * 0.5 + 0.25,
    "reciprocal": lambda x: 1.0 / (1.0 + ow.square(x)),
    "where": lambda x: ow.where(x > 0.0, x, 0.1 * x),
    "finite": lambda x: ow.where(ow.math.is_finite(x), x, ow.ones_like(x)),
    "mish": ow.nn.activations.mish,
}
BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "add": ow.add,
    "subtract": ow.subtract,
    "multiply": ow.multiply,
    "maximum": lambda x, y: ow.maximum(known(x), known(y)),
    "minimum": lambda x, y: ow.minimum(known(x), known(y)),
    "squared_difference": ow.math.squared_difference,
    "divide": lambda x, y: x / (1.0 + ow.abs(y)),
    "atan2": lambda x, y: ow.atan2(x, ow.abs(y) + 0.1),
    "no_nan": lambda x, y: ow.math.multiply_no_nan(x, ow.sigmoid(y)),
    "divide_no_nan": lambda x, y: ow.math.divide_no_nan(x, ow.floor(bounded(y, 3.0))),
    "pow": lambda x, y: ow.pow(bounded(ow.abs(x), 3.0) + 0.1, bounded(y, 3.0)),
}
WHOLE: dict[str, Callable[[Value, Value], Value]] = {
    "add": ow.add,
    "subtract": ow.subtract,
    "multiply": ow.multiply,
    "maximum": ow.maximum,
    "minimum": ow.minimum,
    "floordiv": lambda x, y: x // ow.where(ow.equal(y, ow.zeros_like(y)), ow.ones_like(y), y),
    "floormod": lambda x, y: x % ow.where(ow.equal(y, ow.zeros_like(y)), ow.ones_like(y), y),
    "where": lambda x, y: ow.where(x > y, x, y),
}


def pick(rng: Any, values: list[Value], *dtypes: str) -> Value | None:
    """One of the last values of these dtypes."""
    fitting = [v for v in values if dtype_of(v) in dtypes]
    return fitting[-1 - int(rng.integers(min(4, len(fitting))))] if fitting else None


def pair(rng: Any, values: list[Value], x: Value) -> Value:
    """A value of x's dtype that broadcasts with it."""
    fitting = [v for v in values if v.dtype == x.dtype and (v.shape == x.shape or size_of(v) == 1)]
    return fitting[int(rng.integers(len(fitting)))]


def unary(rng: Any, values: list[Value]) -> Value | None:
    x = pick(rng, values, FLOAT)
    return None if x is None else UNARY[rng.choice(sorted(UNARY))](x)


def binary(rng: Any, values: list[Value]) -> Value | None:
    x = pick(rng, values, FLOAT, *INTEGERS)
    if x is None:
        return None
    if dtype_of(x) == FLOAT:
        return BINARY[rng.choice(sorted(BINARY))](x, pair(rng, values, x))
    return WHOLE[rng.choice(sorted(WHOLE))](x, pair(rng, values, x))


def cast(rng: Any, values: list[Value]) -> Value | None:
    """To another dtype; floats bounded and rounded away from halves first, so that a last bit decides nothing."""
    x = pick(rng, values, FLOAT, "bool", *INTEGERS)
    if x is None:
        return None
    dtype = str(rng.choice([FLOAT, *INTEGERS]))
    if dtype_of(x) == FLOAT:
        x = ow.where(ow.math.is_finite(x), x, ow.zeros_like(x))
        return ow.cast(ow.floor(ow.clip_by_value(x * 3.0, -50.0, 50.0) + 0.1234), "int32")
    return ow.cast(x, dtype)


def compared(rng: Any, values: list[Value]) -> Value | None:
    x = pick(rng, values, *INTEGERS)
    if x is None:
        return None
    y = pair(rng, values, x)
    mask = [ow.equal, ow.less, ow.greater_equal, ow.not_equal][rng.integers(4)](x, y)
    if rng.integers(2):
        mask = ow.logical_or(ow.logical_not(mask), x > ow.zeros_like(x))
    return mask


def view(rng: Any, values: list[Value]) -> Value | None:
    x = pick(rng, values, FLOAT, *INTEGERS)
    if x is None:
        return None
    rank, kind = len(x.shape), int(rng.integers(11))
    if rank == 0:
        return ow.reshape(x, [1, 1])
    axis = int(rng.integers(rank))
    n = int(x.shape[axis])
    if kind == 0:
        return ow.transpose(x, rng.permutation(rank))
    if kind == 1:
        return ow.reshape(x, [int(np.prod(x.shape))])
    if kind == 2:
        return ow.reverse(x, [axis])
    if kind == 3:
        return ow.concat([x, x], axis)
    if kind == 4:
        return ow.pad(x, [[1, 2] if i == axis else [0, 0] for i in range(rank)])
    if kind == 5:
        start, stop = sorted(int(v) for v in rng.integers(0, n + 1, 2))
        step = int(rng.integers(1, 3))
        if start == stop and rng.integers(4):
            stop += 1
        return x[tuple(slice(start, stop, step) if i == axis else slice(None) for i in range(rank))]
    if kind == 6:
        return ow.expand_dims(x, axis)
    if kind == 7:
        return ow.gather(x, [0, n - 1, 0], axis=axis) if n else None
    if kind == 8:
        return ow.tile(x, [2 if i == axis else 1 for i in range(rank)])
    if kind == 9:
        return ow.stack([x, x], axis)
    return ow.roll(x, 1, axis)


def reduced(rng: Any, values: list[Value]) -> Value | None:
    x = pick(rng, values, FLOAT, "int32", "int64")
    if x is None or not len(x.shape):
        return None
    axis = int(rng.integers(len(x.shape)))
    axes: Any = axis if rng.integers(3) else list(range(len(x.shape)))
    kinds = [ow.reduce_sum, ow.reduce_max, ow.reduce_min]
    if dtype_of(x) == FLOAT:
        kinds += [ow.reduce_mean, ow.reduce_logsumexp]
        x = known(x)
    elif dtype_of(x) == "int64":
        kinds = kinds[:1]
    if size_of(x) == 0:
        kinds = [ow.reduce_sum]  # of nothing the file format's extrema are the dtype's ends
    return kinds[int(rng.integers(len(kinds)))](x, axes, keepdims=bool(rng.integers(2)))


def scanned(rng: Any, values: list[Value]) -> Value | None:
    x = pick(rng, values, FLOAT, "int32", "int64")
    if x is None or not len(x.shape):
        return None
    axis, exclusive, reverse = int(rng.integers(len(x.shape))), bool(rng.integers(2)), bool(rng.integers(2))
    if dtype_of(x) == FLOAT and rng.integers(2):
        return ow.math.cumprod(ow.tanh(x), axis, exclusive, reverse)
    return ow.cumsum(x, axis, exclusive, reverse)


def sorted_(rng: Any, values: list[Value]) -> Value | None:
    x = pick(rng, values, *INTEGERS)
    if x is None or not len(x.shape):
        return None
    if rng.integers(3):
        return ow.sort(x, direction="DESCENDING" if rng.integers(2) else "ASCENDING")
    return ow.argmax(x, int(rng.integers(len(x.shape)))) if size_of(x) else None


def product(rng: Any, values: list[Value]) -> Value | None:
    x = pick(rng, values, FLOAT)
    if x is None or not len(x.shape):
        return None
    n = int(x.shape[-1])
    if len(x.shape) == 4 and min(int(d) for d in x.shape[1:]) and rng.integers(2):
        weights = ow.constant(rng.standard_normal((2, 2, n, int(rng.integers(1, 5)))).astype(np.float32) * 0.4)
        return (
            ow.nn.conv2d(ow.tanh(x), weights, 1 + int(rng.integers(2)), "SAME" if rng.integers(2) else "VALID")
            if min(int(d) for d in x.shape[1:3]) >= 2
            else None
        )
    weights = ow.constant(rng.standard_normal((n, int(rng.integers(1, 9)))).astype(np.float32) * max(n, 1) ** -0.5)
    x = ow.reshape(ow.tanh(x), [int(np.prod(x.shape[:-1])), n])
    return ow.nn.softmax(x) if n and not rng.integers(3) else ow.matmul(x, weights)


def conditional(rng: Any, values: list[Value]) -> Value | None:
    """Both branches of one dtype and shape; the condition is a whole number's."""
    test, x = pick(rng, values, "int32", "int64"), pick(rng, values, FLOAT)
    if test is None or x is None:
        return None
    first, second = (UNARY[rng.choice(sorted(UNARY))] for _ in range(2))
    limit = int(rng.integers(-3, 4))
    return ow.cond(ow.reduce_sum(test) > limit, lambda: first(x), lambda: second(x))


def loop(rng: Any, values: list[Value]) -> Value | None:
    """A few turns, their number a value's."""
    test, x = pick(rng, values, "int32"), pick(rng, values, FLOAT)
    if test is None or x is None:
        return None
    turns = ow.reduce_sum(test) % 4
    step = UNARY[rng.choice(sorted(UNARY))]
    _, y = ow.while_loop(lambda i, y: i < turns, lambda i, y: (i + 1, ow.tanh(step(y)) + x), (ow.constant(0), x))
    return y


def gradient(rng: Any, values: list[Value]) -> Value | None:
    """The derivative of a sum of one or two functions, smooth where float32's rounding is all that differs."""
    x = pick(rng, values, FLOAT)
    if x is None:
        return None
    smooth = ("tanh", "sigmoid", "softplus", "square", "gelu", "gelu_tanh", "silu", "reciprocal", "sin", "scale")
    first, second = (UNARY[rng.choice(smooth)] for _ in range(2))
    cut = int(rng.integers(3))
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = second(first(x))
        if cut and len(x.shape):
            y = y[: cut - 1] if cut == 1 else y[::2]
        y = ow.reduce_sum(y)
    return tape.gradient(y, x)


STEPS = (
    (unary, 8),
    (binary, 7),
    (cast, 3),
    (compared, 2),
    (view, 6),
    (reduced, 3),
    (scanned, 1),
    (sorted_, 1),
    (product, 2),
    (conditional, 1),
    (loop, 1),
    (gradient, 2),
)
SHAPES = ((2, 6, 5, 3), (4, 7), (3, 5, 8), (1, 9, 9, 4), (33, 17), (5,), (), (0, 4), (2, 0), (1, 1), (130,))


def draw(seed: int) -> tuple[Callable[..., list[Value]], list[np.ndarray]]:
    """A function of four tensors, and arrays for them."""
    rng = np.random.default_rng(seed)
    shape = SHAPES[int(rng.integers(len(SHAPES)))]
    a, b = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    if rng.integers(4) == 0 and a.size:
        a.reshape(-1)[rng.integers(0, a.size, min(4, a.size))] = rng.choice(SPECIAL, min(4, a.size))
    small = rng.integers(-6, 7, shape).astype(np.int32)
    odd = rng.integers(0, 100, shape).astype(str(rng.choice(INTEGERS)))
    seeds = rng.integers(0, 2**31, int(rng.integers(3, 15)))
    steps = [f for f, weight in STEPS for _ in range(weight)]

    def program(a: Value, b: Value, small: Value, odd: Value) -> list[Value]:
        values = [odd, small, b, a]
        for each in seeds:
            step = np.random.default_rng(each)
            y = steps[int(step.integers(len(steps)))](step, values)
            if y is not None and len(y.shape) <= 5 and size_of(y) < 20_000:
                values.append(y)
        floats = [v for v in values[4:] if dtype_of(v) == FLOAT]
        others = [v for v in values[4:] if dtype_of(v) != FLOAT]
        return [*floats[-3:], *others[-3:]] or [a + b]

    return program, [a, b, small, odd]


# ---- running and comparing -----------------------------------------------------------------------------------------


def from_file(program: Callable[..., Any], arrays: list[np.ndarray]) -> dict[str, list[np.ndarray]]:
    """From a .tflite by both engines; what has no form in the file is run by the catalogue's kernels (Flex)."""
    specs = [ow.TensorSpec(x.shape, x.dtype, name=f"x{i}") for i, x in enumerate(arrays)]
    function = ow.function(lambda *xs: dict(enumerate_names(program(*xs))), autograph=False)
    concrete = function.get_concrete_function(*specs)
    converter = lite.TFLiteConverter.from_concrete_functions([concrete])
    converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS, lite.OpsSet.SELECT_TF_OPS]
    content = converter.convert()
    actual = {}
    for name, compiled in (("lite", False), ("lite_compiled", True)):
        with ow.flags(compiled=compiled, background=False):
            runner = lite.Interpreter(model_content=content).get_signature_runner()
            taken = runner.get_input_details()
            result = runner(**{f"x{i}": x for i, x in enumerate(arrays) if f"x{i}" in taken})
        actual[name] = [np.array(result[k]) for k in sorted(result)]
    return actual


def enumerate_names(values: list[Value]) -> list[tuple[str, Value]]:
    return [(f"y{i:02}", ow.identity(v)) for i, v in enumerate(values)]


def ways(program: Callable[..., Any], arrays: list[np.ndarray]) -> dict[str, list[np.ndarray]]:
    tensors = list(map(ow.constant, arrays))
    result = {"eager": [v.numpy() for v in program(*tensors)]}
    result["traced"] = [v.numpy() for v in ow.function(program, autograph=False)(*tensors)]
    result["jit"] = [v.numpy() for v in ow.function(program, autograph=False, jit_compile=True)(*tensors)]
    return {**result, **from_file(program, arrays)}


def unlike(actual: np.ndarray, expected: np.ndarray) -> str:
    """In what two results differ, or nothing. Floats may be off by the roundings of a dozen operators."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{actual.dtype}{list(actual.shape)}, wanted {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind != "f":
        return "" if np.array_equal(actual, expected) else f"{np.sum(actual != expected)} of {expected.size} integers"
    with np.errstate(all="ignore"):
        finite = np.isfinite(expected)
        scale = float(np.abs(expected[finite]).max(initial=1e-3))
        close = np.abs(actual - expected) <= 5e-5 * scale + 2e-4 * np.abs(expected)
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected)) | (finite & np.isfinite(actual) & close)
    if same.all():
        return ""
    i = int(np.flatnonzero(~same.reshape(-1))[0])
    return f"{np.sum(~same)} of {expected.size}, first {actual.reshape(-1)[i]!r}, wanted {expected.reshape(-1)[i]!r}"


def differences(seed: int) -> list[str]:
    """Return the disagreements between the ways of running a program; an error that is no OpError counts."""
    program, arrays = draw(seed)
    with np.errstate(all="ignore"):
        result = ways(program, arrays)
    return [
        f"{way}, result {i}: {text}"
        for way, results in result.items()
        for i, (y, z) in enumerate(zip(results, result["eager"], strict=True))
        if (text := unlike(y, z))
    ]


def main(first: int, last: int) -> int:
    started, failed, refused = time.time(), 0, collections.Counter[str]()
    for seed in range(first, last):
        if seed % 100 == 0 and seed > first:
            print(f"{seed - first} programs, {failed} differences, {time.time() - started:.0f} s", flush=True)
        try:
            for text in differences(seed):
                failed += 1
                print(f"seed {seed}: {text}", flush=True)
        except ow.errors.OpError as error:
            refused[str(error).split("\n")[0][:100]] += 1
            print(f"seed {seed}: refused, {type(error).__name__} {str(error)[:300]!r}", flush=True)
        except Exception:
            failed += 1
            print(f"seed {seed}: {traceback.format_exc(limit=-3)}", flush=True)
    counts = f"{last - first} programs, {failed} differences, {sum(refused.values())} refused"
    print(f"{counts}, {time.time() - started:.0f} s")
    for text, count in refused.most_common(10):
        print(f"  {count} x {text}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
