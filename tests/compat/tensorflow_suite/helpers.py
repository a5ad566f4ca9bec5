"""Provide the test helpers of TensorFlow for its test files, written for this package: everything runs eagerly.

Lives here: the base class of tests, decorators, combinations of parameters, bases of the tests of datasets.
Not here: names of the library (names.py).  Sessions run nothing, graphs and placeholders raise `GraphsUnavailable`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import types
import unittest
from typing import Any

import numpy as np

import opwright as ow


class GraphsUnavailable(NotImplementedError):
    """Raised where a test builds a graph with placeholders, or feeds one in a session."""


def _graphs(*args: Any, **kwargs: Any) -> Any:
    raise GraphsUnavailable("graphs with placeholders and sessions are of version 1")


placeholder = _graphs


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Any:
    """Return the default, as TensorFlow does eagerly."""
    return ow.identity(input)


class Graph:
    """A graph that a test would fill under `as_default`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _graphs()


def value_of(tensor: Any, feed_dict: Any = None, session: Any = None) -> Any:
    """Return the value of a tensor, which a test in a session calls `tensor.eval()`."""
    return _graphs() if feed_dict else tensor.numpy()


class Session:
    """The value of `with self.session() as sess`: `run` returns values."""

    def __init__(self, case: TestCase) -> None:
        self.case = case

    def run(self, fetches: Any, feed_dict: Any = None, **kwargs: Any) -> Any:
        return _graphs() if feed_dict else self.case.evaluate(fetches)


def _plain(value: Any) -> Any:
    """Return nested lists for ragged tensors, and values that NumPy compares for others."""
    if isinstance(value, ow.RaggedTensor):
        return value.to_list()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    value = value.numpy() if hasattr(value, "numpy") else value
    return value.tolist() if isinstance(value, np.ndarray) else value


class TestCase(ow.test.TestCase):
    """`ow.test.TestCase`, and the methods that TensorFlow's own tests use besides."""

    assertItemsEqual = unittest.TestCase.assertCountEqual
    assertRaisesRegexp = unittest.TestCase.assertRaisesRegex
    assertRegexpMatches = unittest.TestCase.assertRegex

    @contextlib.contextmanager
    def session(self, *args: Any, **kwargs: Any) -> Any:
        yield Session(self)

    cached_session = test_session = session
    test_session.__test__ = False  # type: ignore[attr-defined]  # no test, in spite of its name

    def evaluate(self, tensors: Any) -> Any:
        if isinstance(tensors, (ow.RaggedTensor, ow.SparseTensor)) or tensors is None:
            return tensors
        if isinstance(tensors, dict):
            return {key: self.evaluate(value) for key, value in tensors.items()}
        if isinstance(tensors, (list, tuple)):
            values = [self.evaluate(t) for t in tensors]
            return type(tensors)(*values) if hasattr(tensors, "_fields") else type(tensors)(values)
        return tensors.numpy() if hasattr(tensors, "numpy") else tensors

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        if isinstance(a, ow.RaggedTensor) or isinstance(b, ow.RaggedTensor):
            self.assertEqual(_plain(a), _plain(b), msg)
        elif isinstance(a, ow.SparseTensor) or isinstance(b, ow.SparseTensor):
            self.assertValuesEqual(a, b)
        else:
            super().assertAllEqual(a, b, msg)

    def assertRaggedEqual(self, a: Any, b: Any) -> None:
        self.assertEqual(_plain(a), _plain(b))

    def eval_to_list(self, tensor: Any) -> Any:
        return _plain(tensor)

    def assertValuesEqual(self, expected: Any, actual: Any) -> None:
        if isinstance(expected, dict):
            self.assertEqual(set(expected), set(actual))
            for key in expected:
                self.assertValuesEqual(expected[key], actual[key])
        elif isinstance(expected, ow.SparseTensor):
            for part in ("indices", "values", "dense_shape"):
                self.assertAllEqual(getattr(expected, part), getattr(actual, part))
        else:
            self.assertAllEqual(expected, actual)


TensorFlowTestCase = RaggedTensorTestCase = TestCase
Benchmark = object


def main(*args: Any, **kwargs: Any) -> None:
    """Do nothing: pytest runs the tests after the file's last statement."""


# ---- decorators -----------------------------------------------------------------------------------------------------


def _keep(*args: Any, **kwargs: Any) -> Any:
    """Decorate with nothing, as `@decorator` and as `@decorator(...)`."""
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda decorated: decorated


run_in_graph_and_eager_modes = run_all_in_graph_and_eager_modes = run_deprecated_v1 = run_v2_only = _keep
with_eager_op_as_function = run_without_tensor_float_32 = disable_xla = enable_control_flow_v2 = _keep
run_all_without_tensor_float_32 = disable_all_xla = deprecated_graph_mode_only = with_control_flow_v2 = _keep
run_all_with_control_flow_v2 = enable_all_control_flow_v2 = disable_tfrt = build_as_function_and_v1_graph = _keep
also_run_as_tf_function = xla_allow_fallback = _keep


def _skip(reason: str) -> Any:
    """Return a decorator that skips tests, as TensorFlow 2 on a CPU does."""

    def decorate(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and callable(args[0]) and not kwargs:
            return unittest.skip(reason)(args[0])
        return unittest.skip(reason)

    return decorate


run_v1_only, run_gpu_only, run_cuda_only = _skip("version 1 alone"), _skip("GPUs alone"), _skip("GPUs alone")


def is_xla_enabled() -> bool:
    return False


def is_gpu_available(*args: Any, **kwargs: Any) -> bool:
    return False


def IsMklEnabled() -> bool:
    return False


use_gpu = force_cpu = device = deterministic_ops = lambda *args, **kwargs: contextlib.nullcontext()

context = types.SimpleNamespace(
    executing_eagerly=lambda: True, graph_mode=_graphs, eager_mode=contextlib.nullcontext, async_wait=lambda: None
)
gradient_checker_v2 = types.SimpleNamespace(
    compute_gradient=lambda f, x, delta=None: ow.test.compute_gradient(f, x, *([] if delta is None else [delta])),
    max_error=lambda a, b: max(
        (float(np.max(np.abs(np.asarray(i) - np.asarray(j)), initial=0)) for i, j in zip(a, b, strict=True)),
        default=0.0,
    ),
)

# ---- combinations of parameters -------------------------------------------------------------------------------------


def combine(**options: Any) -> list[dict[str, Any]]:
    """Return the combinations of options, each a value or a list of values."""
    columns = [value if isinstance(value, list) else [value] for value in options.values()]
    return [dict(zip(options, row, strict=True)) for row in itertools.product(*columns)]


def times(*groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each combination of a member of every group."""
    return [functools.reduce(lambda a, b: {**a, **b}, row) for row in itertools.product(*groups)]


def generate(rows: list[dict[str, Any]]) -> Any:
    """Return a decorator that makes a test of each combination of version 2; graph modes run eagerly, too."""
    second = [row for row in rows if row.get("tf_api_version", 2) == 2]
    eager = [row for row in second if row.get("mode", "eager") == "eager"] or second
    cases = [{k: v for k, v in row.items() if k not in ("mode", "tf_api_version")} for row in eager]
    if not cases:
        return run_v1_only
    if not any(cases):
        return _keep
    from absl.testing import parameterized

    names = ["_" + "_".join(f"{k}_{getattr(v, 'name', v)}" for k, v in case.items()) for case in cases]
    return parameterized.named_parameters(
        *[{"testcase_name": f"{n}_{i}", **c} for i, (n, c) in enumerate(zip(names, cases, strict=True))]
    )


class NamedObject:
    """A value with a name for the test."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)


combinations = types.SimpleNamespace(combine=combine, times=times, generate=generate, NamedObject=NamedObject)

# ---- datasets -------------------------------------------------------------------------------------------------------


def _modes(*modes: str) -> Any:
    return lambda: combine(tf_api_version=[1, 2], mode=list(modes))


class DatasetTestBase(TestCase):
    """Base of tests of datasets."""

    def getNext(self, dataset: Any, requires_initialization: bool = False, shared_name: Any = None) -> Any:
        iterator = iter(dataset)

        def get_next() -> Any:
            element = iterator.get_next()
            return element.stack() if isinstance(element, ow.TensorArray) else element

        return get_next

    def getIteratorOutput(self, get_next: Any) -> list[Any]:
        results = []
        with contextlib.suppress(ow.errors.OutOfRangeError):
            while True:
                results.append(self.evaluate(get_next()))
        return results

    def getDatasetOutput(self, dataset: Any, requires_initialization: bool = False) -> list[Any]:
        return self.getIteratorOutput(self.getNext(dataset))

    def assertDatasetProduces(
        self,
        dataset: Any,
        expected_output: Any = None,
        expected_shapes: Any = None,
        expected_error: Any = None,
        requires_initialization: bool = False,
        num_test_iterations: int = 1,
        assert_items_equal: bool = False,
        expected_error_iter: int = 1,
    ) -> None:
        if expected_error:
            with self.assertRaisesWithPredicateMatch(*expected_error):
                get_next = self.getNext(dataset)
                for _ in range(expected_error_iter):
                    self.evaluate(get_next())
            return
        if expected_shapes:
            shapes = ow.nest.map_structure(lambda spec: spec.shape, dataset.element_spec)
            self.assertEqual(expected_shapes, shapes)
        for _ in range(num_test_iterations):
            get_next = self.getNext(dataset)
            result = [self.evaluate(get_next()) for _ in range(len(expected_output))]
            if assert_items_equal:
                self.assertItemsEqual(result, expected_output)
            else:
                for got, expected in zip(result, expected_output, strict=True):
                    self.assertElementEqual(expected, got)
            for _ in range(2):
                with self.assertRaises(ow.errors.OutOfRangeError):
                    self.evaluate(get_next())

    def assertElementEqual(self, expected: Any, actual: Any) -> None:
        """Compare an element of a dataset: lists are tensors, tuples and dictionaries structures."""
        if isinstance(expected, tuple) and isinstance(actual, tuple):
            self.assertEqual(len(expected), len(actual))
            for element, got in zip(expected, actual, strict=True):
                self.assertElementEqual(element, got)
        else:
            self.assertValuesEqual(expected, actual)

    def assertDatasetsEqual(self, dataset1: Any, dataset2: Any) -> None:
        first, second = self.getDatasetOutput(dataset1), self.getDatasetOutput(dataset2)
        self.assertEqual(len(first), len(second))
        for a, b in zip(first, second, strict=True):
            self.assertElementEqual(a, b)


test_base = types.SimpleNamespace(
    DatasetTestBase=DatasetTestBase,
    default_test_combinations=_modes("eager", "graph"),
    eager_only_combinations=_modes("eager"),
    graph_only_combinations=_modes("graph"),
    v1_only_combinations=lambda: combine(tf_api_version=1, mode="eager"),
    v2_only_combinations=_modes("eager", "graph"),
    v2_eager_only_combinations=_modes("eager"),
)


class CheckpointTestBase(TestCase):
    """Base of tests that stop an iterator, save it, restore it into another and go on."""

    def _values(self, ds_fn: Any, break_points: Any, num_outputs: int, exhausted: bool) -> list[Any]:
        iterator, results = iter(ds_fn()), []
        for stop in (*break_points, num_outputs):
            while len(results) < stop:
                results.append(self.evaluate(iterator.get_next()))
            path = ow.train.Checkpoint(iterator=iterator).save(f"{self.get_temp_dir()}/iterator")
            iterator = iter(ds_fn())
            ow.train.Checkpoint(iterator=iterator).restore(path).assert_consumed()
        if exhausted:
            with self.assertRaises(ow.errors.OutOfRangeError):
                iterator.get_next()
        return results

    def verify_run_with_breaks(
        self,
        ds_fn: Any,
        break_points: Any,
        num_outputs: int,
        sparse_tensors: Any = False,
        verify_exhausted: bool = True,
    ) -> None:
        iterator = iter(ds_fn())
        expected = [self.evaluate(iterator.get_next()) for _ in range(num_outputs)]
        actual = self._values(ds_fn, break_points, num_outputs, verify_exhausted)
        for element, got in zip(expected, actual, strict=True):
            DatasetTestBase.assertElementEqual(self, element, got)

    assertElementEqual = DatasetTestBase.assertElementEqual

    def verify_unused_iterator(self, ds_fn: Any, num_outputs: int, *args: Any, **kwargs: Any) -> None:
        self.verify_run_with_breaks(ds_fn, [0], num_outputs, *args, **kwargs)

    def verify_fully_used_iterator(self, ds_fn: Any, num_outputs: int, *args: Any, **kwargs: Any) -> None:
        self.verify_run_with_breaks(ds_fn, [num_outputs], num_outputs, *args, **kwargs)

    def verify_exhausted_iterator(self, ds_fn: Any, num_outputs: int, sparse_tensors: Any = False) -> None:
        iterator = iter(ds_fn())
        for _ in range(num_outputs):
            iterator.get_next()
        with self.assertRaises(ow.errors.OutOfRangeError):
            iterator.get_next()
        path = ow.train.Checkpoint(iterator=iterator).save(f"{self.get_temp_dir()}/iterator")
        restored = iter(ds_fn())
        ow.train.Checkpoint(iterator=restored).restore(path)
        with self.assertRaises(ow.errors.OutOfRangeError):
            restored.get_next()

    def verify_multiple_breaks(
        self, ds_fn: Any, num_outputs: int, num_breaks: int = 10, sparse_tensors: Any = False, **kwargs: Any
    ) -> None:
        points = [num_outputs * i // num_breaks for i in range(num_breaks + 1)]
        self.verify_run_with_breaks(ds_fn, points, num_outputs, **kwargs)

    def verify_reset_restored_iterator(self, *args: Any, **kwargs: Any) -> None:
        self.skipTest("Eager iterators are not initialized again, in TensorFlow neither.")

    def verify_error_on_save(self, ds_fn: Any, num_outputs: int, error: Any, break_point: Any = None) -> None:
        iterator = iter(ds_fn())
        for _ in range(break_point or num_outputs // 2):
            iterator.get_next()
        with self.assertRaises(error):
            ow.train.Checkpoint(iterator=iterator).save(f"{self.get_temp_dir()}/iterator")


def _verifications() -> list[dict[str, Any]]:
    """Return a combination for each way to stop an iterator."""
    names = (
        "unused_iterator",
        "fully_used_iterator",
        "exhausted_iterator",
        "multiple_breaks",
        "reset_restored_iterator",
    )
    return [
        {"verify_fn": NamedObject(name, lambda case, *a, f=f"verify_{name}", **k: getattr(case, f)(*a, **k))}
        for name in names
    ]


checkpoint_test_base = types.SimpleNamespace(
    CheckpointTestBase=CheckpointTestBase, default_test_combinations=_verifications
)
