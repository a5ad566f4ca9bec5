"""Helpers of the tests of exported operators: operators, building their C, running a model of one node.

Lives here: operators with what they compute in float64, `built`, `model_of`, `run`.  Not here: tests.
"""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright import lite

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="there is no gcc")
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


@ow.operator(version=2, name="ExportedClip")
class Clip:
    """Clip with a leak. A comment's end */ and %s are no harm.

    .. math:: y = \\min(x, limit) + alpha \\max(x - limit, 0)
    """

    x = ow.Input(ow.floating)
    y = ow.Output(like="x")
    alpha = ow.Attr(float, default=0.0, check=ow.attr.at_least(0.0))
    limit = ow.Attr(float, default=6.0, since=2)

    def compute(op, x):
        return np.minimum(x, op.limit) + op.alpha * np.maximum(x - op.limit, 0)

    @ow.kernel
    def kernel(x, *, alpha, limit):
        return ow.minimum(x, limit) + alpha * ow.maximum(x - limit, 0.0)


NAMES = (
    "exp",
    "log",
    "sin",
    "cos",
    "tan",
    "tanh",
    "erf",
    "erfc",
    "gelu",
    "sigmoid",
    "softplus",
    "rsqrt",
    "log1p",
    "expm1",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "sqrt",
    "floor",
    "ceil",
    "rint",
    "abs",
    "square",
)
CALLS = {n: getattr(ow.math, n, None) or getattr(ow.nn, n, None) for n in NAMES}


@ow.operator(name="ExportedElementary")
class Elementary:
    """A function of x by name."""

    x = ow.Input((ow.float32, ow.float64))
    y = ow.Output(like="x")
    which = ow.Attr(str, check=ow.attr.one_of(*NAMES))

    def compute(op, x):
        return CALLS[op.which](ow.constant(x)).numpy()

    @ow.kernel
    def kernel(x, *, which):
        return CALLS[which](x)


@ow.operator(name="ExportedPair")
class Pair:
    """A function of two numbers by name."""

    x = ow.Input((ow.float32, ow.float64))
    y = ow.Input((ow.float32, ow.float64), like="x")
    z = ow.Output(like="x")
    elementwise = True
    which = ow.Attr(str, check=ow.attr.one_of("pow", "atan2", "divide", "maximum", "minimum", "mix"))

    def compute(op, x, y):
        return Pair.kernel.function(ow.constant(x), ow.constant(y), which=op.which).numpy()

    @ow.kernel
    def kernel(x, y, *, which):
        if which == "mix":
            return ow.where(x > y, x - y * 0.5, y / (x + 3.0))
        return getattr(ow.math, which)(x, y)


@ow.operator(name="ExportedEscape")
class Escape:
    """In how many steps z = z^2 + c leaves the circle of radius 2."""

    re = ow.Input((ow.float32, ow.float64))
    im = ow.Input((ow.float32, ow.float64), like="re")
    y = ow.Output(like="re")
    elementwise = True
    limit = ow.Attr(int, default=20, check=ow.attr.between(0, 1000))

    def compute(op, re, im):
        def steps(c):
            z, n = 0j, 0
            while n < op.limit and abs(z) < 2:
                z, n = z * z + c, n + 1
            return n

        return np.vectorize(steps, otypes=[re.dtype])(re.astype(np.complex128) + 1j * im)

    @ow.kernel
    def kernel(re, im, *, limit):
        a, b, n = re, im, 0
        a, b = a * 0.0, b * 0.0
        while n < limit:
            if a * a + b * b >= 4.0:
                break
            a, b = a * a - b * b + re, 2.0 * a * b + im
            n += 1
        return ow.cast(n, re.dtype)


@ow.operator(name="ExportedWhole")
class Whole:
    """Arithmetic of integers, which wraps."""

    x = ow.Input((ow.int32, ow.int64))
    y = ow.Input((ow.int32, ow.int64), like="x")
    z = ow.Output(like="x")
    elementwise = True
    by = ow.Attr(int, default=3)

    def compute(op, x, y):
        by = x.dtype.type(op.by)
        result = x * y + x * by - np.abs(y)
        return np.where(x > y, np.maximum(result, y), -result)

    @ow.kernel
    def kernel(x, y, *, by):
        result = x * y + x * by - ow.abs(y)
        if x > y:
            return ow.maximum(result, y)
        return -result


@ow.operator(name="ExportedWithin")
class Within:
    """Whether x lies between two bounds, of which one may be left out; or does not."""

    x = ow.Input((ow.float32, ow.int64))
    low = ow.Input((ow.float32, ow.int64), like="x")
    y = ow.Output(dtype=ow.bool)
    elementwise = True
    above = ow.Attr(float, default=None)
    negated = ow.Attr(bool, default=False)

    def compute(op, x, low):
        result = x >= low
        if op.above is not None:
            result &= x.astype(np.float64) <= op.above
        return result != op.negated

    @ow.kernel
    def kernel(x, low, *, above, negated):
        result = ow.logical_and(x >= low, x == x)
        if above is not None:
            result = ow.logical_and(result, ow.cast(x, ow.float64) <= above)
        return ow.logical_not(result) if negated else result


@ow.operator(name="ExportedBlend")
class Blend:
    """a where the mask holds, else a b + c: three inputs with shapes of their own, and a mask."""

    mask = ow.Input(ow.bool)
    a = ow.Input((ow.float32, ow.int32))
    b = ow.Input((ow.float32, ow.int32), like="a")
    c = ow.Input((ow.float32, ow.int32), like="a")
    y = ow.Output(like="a")

    def infer(op):
        shape = np.broadcast_shapes(*(tuple(t.spec.shape) for t in (op.mask, op.a, op.b, op.c)))
        return ow.TensorSpec(shape, op.a.spec.dtype)

    def compute(op, mask, a, b, c):
        return np.where(mask, a, a * b + c)

    @ow.kernel
    def kernel(mask, a, b, c):
        return ow.where(mask, a, a * b + c)


@ow.operator(name="ExportedRoot")
class Root:
    """x times a root that Python computes, which C cannot."""

    x = ow.Input((ow.float32, ow.float64))
    y = ow.Output(like="x")
    of = ow.Attr(float, default=2.0)

    def compute(op, x):
        return x * x.dtype.type(math.sqrt(op.of))

    @ow.kernel
    def kernel(x, *, of):
        return x * math.sqrt(of)


@ow.operator(name="ExportedCubeRoot")
class CubeRoot:
    """By Newton's method, of which the loop's condition is a computation of its own."""

    x = ow.Input((ow.float32, ow.float64))
    y = ow.Output(like="x")
    within = ow.Attr(float, default=1e-6)

    def compute(op, x):
        return np.cbrt(x)

    @ow.kernel
    def kernel(x, *, within):
        a = ow.abs(x)
        if a == 0.0:
            return x
        y, turns = 0.5 * a + 0.5, 0
        while ow.abs(y * y * y - a) > within * a and turns < 100:
            y = y - (y * y * y - a) / (3.0 * y * y)
            turns += 1
        return -y if x < 0.0 else y


def built(op: Any, folder: Path, *, api: str = "opaque", attrs: Any = None, flags: Any = ("-O0",)) -> dict[str, Any]:
    """The operator's C, compiled and loaded: what an interpreter takes as custom_ops."""
    header, source, _ = ow.export_c(op, folder, api=api, attrs=attrs)
    return lite.build_custom_ops(
        [source], {op.name: f"{header.stem}OpRegistration"}, flags=[*flags, *STRICT], link_flags=["-lm"]
    )


def compiled(source: Path, *arguments: str, command: Any = (GCC,)) -> str:
    """Compile a source to nowhere; what the compiler says."""
    out = str(source.with_suffix(".o"))
    done = subprocess.run(
        [*command, *arguments, f"-I{lite.include_dir()}", "-c", str(source), "-o", out],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def model_of(op: Any, *arrays: Any, shapes: Any = None, **attrs: Any) -> bytes:
    """A `.tflite` file of one call."""
    specs = [ow.TensorSpec(s, a.dtype) for s, a in zip(shapes or [a.shape for a in arrays], arrays)]
    function = ow.function(lambda *xs: op(*xs, **attrs), input_signature=specs)
    converter = lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    converter.allow_custom_ops = True
    return converter.convert()


def run(model: bytes, customs: Any, *arrays: Any) -> Any:
    """Return the results of a model for these inputs."""
    interpreter = lite.Interpreter(model_content=model, custom_ops=customs)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).copy()


def floats(dtype: Any, n: int = 400, seed: int = 1, scale: float = 4.0) -> Any:
    """Numbers of all kinds: ordinary, large, tiny, whole, at ends."""
    rng = np.random.default_rng(seed)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e-30, 3e30, -3e30, np.inf, -np.inf, np.nan, 88.5, -104.0, 1e-40]
    large = rng.standard_normal(n // 4) * 10.0 ** rng.integers(-30, 30, n // 4)
    return np.concatenate([rng.standard_normal(n) * scale, large, special]).astype(dtype)
