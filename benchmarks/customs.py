"""Operators of users against the same in C: an Atan in the kernel language, by itself.

Lives here: the rows `custom_...`.  Not here: the table of rows (rows.py), how a figure is taken (measure.py).

The C is what somebody would write who has Opwright's function but not its compiler: the same arithmetic (float64, one
division, the polynomial of scalar/numerics) in a plain loop, compiled by `cc -O3 -march=native` with what lets it
use vectors (-fno-math-errno -fno-trapping-math; with vectors of 512 bits it is no faster), and called through ctypes on
arrays that are there already. `libm` is a loop over the C library's atanf. A ratio is C's time over ours:
`custom_atan_c` of the interpreter's invoke of a model that has the operator alone, on 1 M floats, both in turn and the
median of the pairs.
"""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import measure

MANY, FEW, PAIRS = 1 << 20, 5, 41
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")

SOURCE = """
#include <math.h>
#include <stdint.h>

void ours(float *restrict y, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double a = fabs((double)x[i]);
        double t = a > 1.0 ? 1.0 / a : a;
        double z = t * t;
        double p = POLYNOMIAL;
        p = fma(p * z, t, t);
        p = a > 1.0 ? HALF_PI - p : p;
        y[i] = copysignf((float)p, x[i]);
    }
}

void libm(float *restrict y, const float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = atanf(x[i]);
}
"""


def library() -> ctypes.CDLL:
    """The two loops, compiled. Raises RuntimeError where there is no C compiler."""
    from opwright.scalar.numerics import polynomials

    cc = shutil.which("cc")
    if cc is None:
        raise RuntimeError("no C compiler")
    coefficients = list(polynomials.ATAN)
    horner = repr(float(coefficients[-1]))
    for c in reversed(coefficients[:-1]):
        horner = f"fma({horner}, z, {float(c)!r})"
    text = SOURCE.replace("POLYNOMIAL", horner).replace("HALF_PI", repr(1.5707963267948966))
    folder = Path(tempfile.mkdtemp(prefix="opwright-bench-"))
    (folder / "atan.c").write_text(text)
    command = [cc, *FLAGS, "-o", folder / "atan.so", folder / "atan.c", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return ctypes.CDLL(str(folder / "atan.so"))


def operator() -> Any:
    """Atan in the kernel language."""
    import numpy as np

    import opwright as ow

    @ow.operator
    class Atan:
        r"""The angle.   .. math:: y = \arctan x"""

        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")
        elementwise = True

        def compute(op: Any, x: Any) -> Any:
            return np.arctan(x)

        @ow.kernel
        def kernel(x: Any) -> Any:
            return ow.atan(x)

    return Atan


def interpreter_of(atan: Any, n: int, customs: Any = None) -> Any:
    """An interpreter of the model that has the operator alone, compiled and with its input set.

    customs: what stands for the operator there; by default itself.
    """
    import numpy as np

    import opwright as ow
    from opwright import lite

    f = ow.function(lambda x: atan(x), input_signature=[ow.TensorSpec([n], ow.float32)], autograph=False)
    converter = lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()])
    converter.allow_custom_ops = True
    with ow.flags(background=False):
        interpreter = lite.Interpreter(model_content=converter.convert(), custom_ops=customs or [atan])
        interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], _numbers(n))
    interpreter.invoke()
    result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(result, np.arctan(_numbers(n)), 1e-6)
    return interpreter


def _numbers(n: int) -> Any:
    import numpy as np

    return np.random.default_rng(0).normal(scale=3.0, size=n).astype(np.float32)


def _in_c(which: str) -> Callable[[], object]:
    """The loop in C over arrays of its own. Raises AssertionError where it is not the arctangent."""
    import numpy as np

    x, y = _numbers(MANY), np.empty(MANY, np.float32)
    loop = getattr(library(), which)
    loop.argtypes, loop.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64], None
    arguments = y.ctypes.data, x.ctypes.data, MANY
    loop(*arguments)
    np.testing.assert_allclose(y, np.arctan(x), 1e-6)

    def call(arrays: Any = (x, y)) -> object:  # which live as long as the call
        return loop(*arguments)

    return call


def ratio(other: Callable[[], object], ours: Callable[[], object]) -> float:
    """How many times as long the other takes: the median of pairs that were taken in turn."""
    result = []
    for k in range(PAIRS + 5):
        start = time.perf_counter()
        other()
        middle = time.perf_counter()
        ours()
        end = time.perf_counter()
        if k >= 5:
            result.append((middle - start) / (end - middle))
    return statistics.median(result)


def _against(which: str) -> measure.Prepare:
    def row() -> float:
        return ratio(_in_c(which), interpreter_of(operator(), MANY).invoke)

    return row


def _invoke() -> Callable[[], object]:
    invoke: Callable[[], object] = interpreter_of(operator(), FEW).invoke
    return invoke


def _eager() -> Callable[[], object]:
    import opwright as ow

    atan, x = operator(), ow.constant(_numbers(FEW))
    return lambda: atan(x)


ROWS: dict[str, measure.Prepare] = {
    "custom_atan_c": _against("ours"),
    "custom_atan_libm": _against("libm"),
    "custom_atan_invoke": _invoke,
    "custom_atan_eager": _eager,
}

if __name__ == "__main__":
    measure.main(ROWS)
