"""`ow.test`: tests of programs, under TensorFlow's names.

Lives here: `TestCase` with its assertions, `main`, `compute_gradient`, questions about devices, `Benchmark`.
Not here: checks of operators (checks.py and its siblings).
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core import errors, nest
from ..core.dtypes import as_dtype
from ..eager.tape import GradientTape
from ..ops import dispatch
from ..ops import random as random_ops
from ..ops.tensor import TensorLike

__all__ = [
    "Benchmark",
    "TestCase",
    "compute_gradient",
    "disable_with_predicate",
    "experimental",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_cpu_target_available",
    "is_gpu_available",
    "main",
    "with_eager_op_as_function",
]


def main(argv: list[str] | None = None) -> None:
    """Run the tests of the calling script: `unittest.main`."""
    unittest.main(argv=argv)


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Return False: operators run on the CPU."""
    return False


def gpu_device_name() -> str:
    """Return the name of a GPU, or "" as there is none."""
    return ""


def is_built_with_cuda() -> bool:
    """Return False, as do the other questions about other processors."""
    return False


is_built_with_rocm = is_built_with_gpu_support = is_built_with_xla = is_built_with_cuda


def is_cpu_target_available(target: str) -> bool:
    """Return whether code for a kind of processor can be compiled: "x86_64" or "aarch64", those of `ow.aot.build`."""
    return target in ("x86_64", "aarch64")


def with_eager_op_as_function(cls: Any = None, only_as_function: bool = False) -> Any:
    """Return a class of tests as it is: operators run in one way here."""
    return (lambda each: each) if cls is None else cls


experimental = SimpleNamespace(sync_devices=lambda: None)
"""`sync_devices()` returns at once: calls on the CPU are done when they return."""


def disable_with_predicate(pred: Callable[[], bool], skip_message: str) -> Callable[[Any], Any]:
    """Return a decorator that skips a test if a function returns True."""

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        def skipping(self: unittest.TestCase, *args: Any, **kwargs: Any) -> Any:
            if pred():
                self.skipTest(skip_message)
            return test(self, *args, **kwargs)

        return skipping

    return decorate


def compute_gradient(
    f: Callable[..., Any], x: Sequence[Any], delta: float | None = None
) -> tuple[list[Any], list[Any]]:
    """Return the Jacobians of f(*x) by each x, [outputs, inputs] arrays: from the tape, and from central differences.

    The parts of complex elements are two inputs or outputs.
    delta: the step of the differences; 2^-10 by default, as in TensorFlow
    raises ValueError if x is not a list
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError(f"`x` must be a list of tensors. Received: {type(x).__name__}")
    step = 1.0 / 1024 if delta is None else delta
    tensors = [dispatch.to_tensor(t) for t in x]
    with GradientTape(persistent=True) as tape:
        tape.watch(tensors)
        y = f(*tensors)
    arrays = [np.array(t.numpy()) for t in tensors]
    size = _parts(y.numpy()).size
    theoretical, numerical = [], []
    for i, (tensor, array) in enumerate(zip(tensors, arrays)):
        theoretical.append(_derivatives(tape, y, tensor))
        columns = np.zeros((size, _parts(array).size), _parts(array).dtype)
        for j in range(columns.shape[1]):
            values = []
            for sign in (1, -1):
                moved = array.copy()
                _parts(moved)[j] += sign * step
                result = f(*(dispatch.to_tensor(moved) if k == i else t for k, t in enumerate(tensors)))
                values.append(_parts(np.ascontiguousarray(result.numpy())))
            columns[:, j] = (values[0] - values[1]) / (2 * step)
        numerical.append(columns)
    return theoretical, numerical


def _parts(array: np.ndarray) -> np.ndarray:
    """Return the elements of a contiguous array as a vector that shares memory; of complex ones both parts."""
    flat = array.reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _derivatives(tape: GradientTape, y: Any, x: Any) -> np.ndarray:
    """Return the Jacobian of y by x from a tape."""
    values, point = np.ascontiguousarray(y.numpy()), np.ascontiguousarray(x.numpy())
    rows = np.zeros((_parts(values).size, _parts(point).size), _parts(point).dtype)
    if not (y.dtype.is_complex or x.dtype.is_complex):
        jacobian = tape.jacobian(y, x)
        return rows if jacobian is None else np.asarray(jacobian).reshape(rows.shape)
    for i in range(len(rows)):
        seed = np.zeros_like(values)
        _parts(seed)[i] = 1
        gradient = tape.gradient(y, x, output_gradients=dispatch.to_tensor(seed))
        if gradient is not None:
            rows[i] = _parts(np.ascontiguousarray(dispatch.to_tensor(gradient).numpy()))
    return rows


def _array(value: Any) -> np.ndarray:
    if isinstance(value, TensorLike) or hasattr(value, "numpy"):
        value = value.numpy()
    return np.asarray(value)


class TestCase(unittest.TestCase):
    """A `unittest.TestCase` that compares tensors, arrays and nestings of them; seeds are set before each test."""

    __test__ = False  # pytest collects subclasses, not this class
    tempdir: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__test__ = cls.__dict__.get("__test__", True)

    def setUp(self) -> None:
        super().setUp()
        random.seed(87654321)
        np.random.seed(87654321)
        random_ops.set_seed(87654321)

    # ---- values -----------------------------------------------------------------------------------------------------

    def evaluate(self, tensors: Any) -> Any:
        """Return the values of tensors, in their nesting."""
        return nest.map_structure(lambda t: t.numpy() if hasattr(t, "numpy") else t, tensors)

    @contextlib.contextmanager
    def session(self, *args: Any, **kwargs: Any) -> Iterator[TestCase]:
        """Return a context in which `evaluate` computes, as everywhere."""
        yield self

    cached_session = session

    def get_temp_dir(self) -> str:
        """Return a folder of this test, removed after it."""
        if self.tempdir is None:
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            self.tempdir = folder.name
        return self.tempdir

    def create_tempfile(self, name: str = "file", content: str | bytes = b"") -> str:
        """Write a file in the test's folder; return its path."""
        path = os.path.join(self.get_temp_dir(), name)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return path

    # ---- assertions -------------------------------------------------------------------------------------------------

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fail unless shapes and elements are equal; NaNs are."""
        a, b = _array(a), _array(b)
        self.assertEqual(a.shape, b.shape, msg)
        if a.dtype.kind in "OSU" or b.dtype.kind in "OSU":
            a, b = (np.vectorize(lambda s: s.encode() if isinstance(s, str) else s, otypes=[object])(x) for x in (a, b))
        np.testing.assert_array_equal(a, b, msg or "")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fail if shapes and elements are equal."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertAllEqual(a, b)

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Fail unless nestings are the same and |a - b| <= atol + rtol |b|; 16-bit floats by their precision."""
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            self.assertEqual(set(a), set(b), msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
            return
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and nest.is_nested([a, b]):
            with contextlib.suppress(ValueError, TypeError):
                x, y = _array(a), _array(b)
                if x.dtype != object and y.dtype != object:
                    self._assert_close(x, y, rtol, atol, msg)
                    return
            self.assertEqual(len(a), len(b), msg)
            for x, y in zip(a, b):
                self.assertAllClose(x, y, rtol, atol, msg)
            return
        self._assert_close(_array(a), _array(b), rtol, atol, msg)

    def _assert_close(self, a: np.ndarray, b: np.ndarray, rtol: float, atol: float, msg: str | None) -> None:
        self.assertEqual(a.shape, b.shape, msg)
        for x in (a, b):
            if x.dtype.name in ("float16", "bfloat16"):
                rtol, atol = max(rtol, 1e-2), max(atol, 1e-2)
        wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
        np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol, atol, err_msg=msg or "")

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """Fail unless |a - b| <= atol + rtol |b|, with the tolerances of the coarser dtype."""
        names = {_array(a).dtype.name, _array(b).dtype.name}
        for kinds, rough_rtol, rough_atol in (
            ({"float32", "complex64"}, float_rtol, float_atol),
            ({"float16"}, half_rtol, half_atol),
            ({"bfloat16"}, bfloat16_rtol, bfloat16_atol),
        ):
            if names & kinds:
                rtol, atol = max(rtol, rough_rtol), max(atol, rough_atol)
        self._assert_close(_array(a), _array(b), rtol, atol, msg)

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Fail if all elements are close."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertAllClose(a, b, rtol, atol)

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Fail unless each element is greater than a number."""
        self.assertGreater(_array(a).min(), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Fail unless each element is at least a number."""
        self.assertGreaterEqual(_array(a).min(), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Fail unless each element is less than a number."""
        self.assertLess(_array(a).max(), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Fail unless each element is at most a number."""
        self.assertLessEqual(_array(a).max(), comparison_target)

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Fail unless each element is between two bounds, included unless said to be open."""
        (self.assertAllGreater if open_lower_bound else self.assertAllGreaterEqual)(target, lower_bound)
        (self.assertAllLess if open_upper_bound else self.assertAllLessEqual)(target, upper_bound)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Fail unless each element is one of a set."""
        others = set(_array(target).reshape(-1).tolist()) - set(expected_set)
        self.assertFalse(others, f"not in the set: {sorted(others, key=repr)}")

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Fail unless two tensors or arrays have one shape."""
        self.assertEqual(tuple(input_a.shape), tuple(input_b.shape), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Fail unless a tensor or array is of a dtype."""
        self.assertEqual(as_dtype(target.dtype), as_dtype(expected_dtype))

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:
        """Fail unless lists have one length and numbers that differ by at most err."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for a, b in zip(farray1, farray2):
            self.assertNear(float(a), float(b), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:
        """Fail unless the norm of a difference is at most err."""
        self.assertLessEqual(float(np.linalg.norm(_array(ndarray1) - _array(ndarray2))), err, msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Fail unless two numbers are equal or differ by at most err."""
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, msg or f"{f1!r} and {f2!r} differ by more than {err!r}")

    def assertLen(self, container: Any, expected_len: int, msg: str | None = None) -> None:
        """Fail unless a container has a length."""
        self.assertEqual(len(container), expected_len, msg)

    def assertEmpty(self, container: Any, msg: str | None = None) -> None:
        """Fail unless a container is empty."""
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container: Any, msg: str | None = None) -> None:
        """Fail if a container is empty."""
        self.assertGreater(len(container), 0, msg)

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """Return a context that fails unless an `ow.errors.OpError` is raised with a text."""
        return self.assertRaisesRegex(errors.OpError, expected_err_re_or_predicate)

    def assertRaisesWithPredicateMatch(self, exception_type: Any, expected_err_re_or_predicate: Any) -> Any:
        """Return a context that fails unless an exception is raised, with a text or for which a function is True."""
        if callable(expected_err_re_or_predicate):
            return _raises_for(self, exception_type, expected_err_re_or_predicate)
        return self.assertRaisesRegex(exception_type, expected_err_re_or_predicate)


@contextlib.contextmanager
def _raises_for(case: TestCase, kind: Any, predicate: Callable[[BaseException], bool]) -> Iterator[None]:
    with case.assertRaises(kind) as raised:
        yield
    case.assertTrue(predicate(raised.exception), f"unexpected {raised.exception!r}")


class Benchmark:
    """Base of benchmarks: methods that call `report_benchmark` with what they measured, which `results` lists."""

    def __init__(self) -> None:
        self.results: list[dict[str, Any]] = []

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: Mapping[str, Any] | None = None,
        name: str | None = None,
        metrics: Sequence[Any] | None = None,
    ) -> None:
        """Record a measurement; times in seconds."""
        self.results.append(
            {
                "name": name or type(self).__name__,
                "iters": iters,
                "cpu_time": cpu_time,
                "wall_time": wall_time,
                "throughput": throughput,
                "extras": dict(extras or {}),
                "metrics": list(metrics or ()),
                "at": time.time(),
            }
        )
