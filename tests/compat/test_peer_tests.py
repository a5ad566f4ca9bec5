"""The runners of other projects' test files, on small files written for it."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SUITE = pathlib.Path(__file__).parent / "tensorflow_suite"
FILE = """
from tensorflow.python.data.kernel_tests import checkpoint_test_base, test_base
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.framework import constant_op, dtypes, errors, ops, test_util
from tensorflow.python.ops import array_ops, gradient_checker_v2, math_ops, string_ops
from tensorflow.python.platform import test


class SmallTest(test_base.DatasetTestBase, checkpoint_test_base.CheckpointTestBase):
    @test_util.run_in_graph_and_eager_modes(use_gpu=True)
    def testValues(self):
        with self.session() as sess:
            self.assertAllEqual(sess.run(math_ops.add(constant_op.constant([1]), 2)), [3])
            self.assertEqual(math_ops.argmax([1, 3, 2]).eval(), 1)
        self.assertAllEqual(string_ops.string_join(["a", "b"]), b"ab")
        error = gradient_checker_v2.max_error(*gradient_checker_v2.compute_gradient(math_ops.square, [2.0]))
        self.assertLess(error, 1e-2)

    def testDatasets(self):
        dataset = dataset_ops.Dataset.range(4).map(lambda x: (x, x * x))
        self.assertEqual(dataset_ops.get_legacy_output_types(dataset), (dtypes.int64, dtypes.int64))
        self.assertDatasetProduces(dataset, [(i, i * i) for i in range(4)])
        self.verify_multiple_breaks(lambda: dataset_ops.Dataset.range(4), 4)

    def testAFailure(self):
        self.assertAllEqual(constant_op.constant([1, 2]), [1, 3])

    def testGraphs(self):
        array_ops.placeholder(dtypes.float32)

    def testPrivate(self):
        ops.private_name_of_graphs("a", 1)

    def testMissing(self):
        math_ops.sobol_sample(2, 3) if not hasattr(math_ops.sobol_sample, "what") else math_ops.sobol_sample()

    @test_util.run_v1_only("of version 1")
    def testSkipped(self):
        raise AssertionError


if __name__ == "__main__":
    setattr(SmallTest, "testMade", lambda self: self.assertIn("x", "xy"))
    test.main()
"""


@pytest.mark.slow
def test_a_file_of_tests_in_the_style_of_tensorflow_runs(tmp_path):
    file = tmp_path / "tensorflow" / "python" / "ops" / "small_test.py"
    file.parent.mkdir(parents=True)
    file.write_text(FILE)
    out = tmp_path / "out"
    environment = {**os.environ, "TENSORFLOW_SOURCES": str(tmp_path), "PYTHONPATH": ""}
    printed = subprocess.run(
        [sys.executable, str(SUITE), str(out)], env=environment, capture_output=True, text=True, check=True
    ).stdout
    (results,) = out.glob("*.jsonl")
    outcomes = {
        (r := json.loads(line))["test"].rpartition("::")[2]: r["outcome"] for line in results.read_text().splitlines()
    }
    passed = {"testValues", "testDatasets", "testMade"}
    assert {name for name, outcome in outcomes.items() if outcome == "passed"} == passed, printed
    assert outcomes["testSkipped"] == "skipped"
    assert outcomes["testAFailure"] == "failed"
    assert "'graphs': 1" in printed
    assert "'private': 1" in printed
    assert "'other': 1" in printed
