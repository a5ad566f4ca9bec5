"""`ow.aot.diff` and `opwright diff`: errors against a formula in float64, the operator that was changed, mistakes."""

import sys
from pathlib import Path

import numpy as np
import pytest

import opwright as ow
from opwright import aot
from opwright.aot.model_runs import TensorFacts
from opwright.aot.tensor_differences import Tolerance, tensor_difference
from opwright.core.errors import FailedPreconditionError, InvalidArgumentError
from opwright.lite.format import Model

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from tools_harness import opwright, result_of


def facts(array, scale=0.0, zero_point=0):
    return TensorFacts("y", array.shape, array.dtype, scale, zero_point)


DEFAULT = Tolerance()


def errors(a, b, tolerance=DEFAULT, quantized=((0.0, 0), (0.0, 0))):
    (scale_a, zero_a), (scale_b, zero_b) = quantized
    return tensor_difference(a, facts(a, scale_a, zero_a), b, facts(b, scale_b, zero_b), tolerance)


def test_errors_equal_a_formula_in_float64():
    rng = np.random.default_rng(1)
    b = rng.normal(size=(4, 50)).astype(np.float32)
    b[0, 0] = 0
    a = b + rng.normal(size=b.shape).astype(np.float32) * np.float32(1e-3)
    exact_a, exact_b = a.astype(np.float64), b.astype(np.float64)
    expected = np.abs(exact_a - exact_b)
    row = errors(a, b)
    assert row.largest == expected.max()
    assert row.at == np.unravel_index(expected.argmax(), b.shape)
    assert row.mean == pytest.approx(expected.mean(), rel=1e-12)
    assert row.relative == (expected[exact_b != 0] / np.abs(exact_b[exact_b != 0])).max()
    assert row.differing == np.count_nonzero(a != b)
    assert not row.agrees
    assert errors(a, b, Tolerance(absolute=float(expected.max()))).agrees
    assert not errors(a, b, Tolerance(absolute=float(expected.max()) * 0.999)).agrees


SPECIAL = [np.nan, np.inf, -np.inf, 1.0]


@pytest.mark.parametrize(
    ("a", "b", "largest", "agrees"),
    [
        (np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32), 0.0, True),
        (np.array([np.nan, 1], np.float32), np.array([1, 1], np.float32), np.inf, False),
        (np.array([2**62 + 1]), np.array([2**62]), 1.0, False),
        (np.array([250], np.uint8), np.array([5], np.uint8), 245.0, False),
        (np.array([True]), np.array([False]), 1.0, False),
        (np.array(1.5, np.float32), np.array(1.25, np.float32), 0.25, False),
        (np.array(7), np.array(7), 0.0, True),
        (np.array([b"a", b"b"], object), np.array([b"a", b"b"], object), 0.0, True),
        (np.array([b"a", b"c"], object), np.array([b"a", b"b"], object), np.inf, False),
        (np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32), np.inf, False),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), 0.0, True),
        (np.array([1 + 2j], np.complex64), np.array([1 - 1j], np.complex64), 3.0, False),
    ],
)
def test_every_type_of_element_is_compared(a, b, largest, agrees):
    row = errors(a, b)
    assert (row.largest, row.agrees) == (largest, agrees)


def test_quantized_elements_are_compared_as_real_numbers():
    a = np.array([10, 20], np.int8)
    b = np.array([0.5, 1.2], np.float32)
    row = errors(a, b, quantized=((0.1, 5), (0.0, 0)))
    assert row.largest == pytest.approx(abs(1.5 - float(np.float32(1.2))), abs=1e-9)
    assert row.unit == "real"
    assert not row.agrees
    assert errors(a, np.array([0.58, 1.42], np.float32), quantized=((0.1, 5), (0.0, 0))).agrees  # one step


def network(scale=1.0):
    """Five operators; `scale` changes a weight of the third, the second product."""
    rng = np.random.default_rng(3)
    weights = [rng.normal(size=(8, 8), scale=0.3).astype(np.float32) for _ in range(2)]
    weights[1][3, 4] *= np.float32(scale)

    @ow.function(input_signature=[ow.TensorSpec([2, 8], ow.float32, name="x")])
    def model(x):
        x = ow.tanh(x @ weights[0])
        return {"y": ow.nn.softmax(ow.tanh(x @ weights[1]))}

    return ow.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model).convert()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "a.tflite").write_bytes(network())
    (folder / "b.tflite").write_bytes(network(1.01))
    aot.build(folder / "a.tflite", out=folder / "lib")
    return folder


def operators(path):
    model = Model.read(path)
    return [int(op.outputs[0]) for op in model.subgraphs[0].operators]


@pytest.mark.parametrize("run_time", ["reference", "interpreter"])
def test_the_operator_whose_weight_was_changed_is_the_first_that_differs(models, run_time):
    result = aot.diff(models / "a.tflite", models / "b.tflite", a_runtime=run_time, b_runtime=run_time, seed=2)
    assert not result.agree
    assert result.complete == (run_time == "reference")
    assert result.first.operator == "FULLY_CONNECTED"
    assert result.first.node == 2
    assert result.first.differing == 2  # one column of the product, two rows
    nodes = [row.node for row in result.inner if row.agrees]
    assert 1 in nodes
    assert max(nodes) == 1


def test_run_times_of_one_model_agree(models):
    pytest.importorskip("ai_edge_litert")
    for other in ("reference", "litert", "litert-builtin", f"library:{models / 'lib'}"):
        result = aot.diff(models / "a.tflite", b_runtime=other)
        assert result.agree, other
        assert result.first is None
    every = aot.diff(models / "a.tflite", a_runtime="reference", b_runtime="litert-builtin")
    assert every.complete
    assert [row.node for row in every.inner] == [0, 1, 2, 3, 4]
    assert all(row.agrees for row in every.inner)
    exact = aot.diff(models / "a.tflite", models / "lib")
    assert [row.differing for row in exact.outputs] == [0]
    assert "library" in exact.b


def test_a_library_is_bisected_by_libraries_of_its_first_operators(models):
    aot.build(models / "b.tflite", out=models / "lib_b")
    steps = []
    result = aot.diff(
        models / "a.tflite",
        models / "b.tflite",
        a_runtime="reference",
        b_runtime=f"library:{models / 'lib_b'}",
        progress=steps.append,
    )
    assert not result.agree
    assert not result.complete
    assert (result.first.node, result.first.operator) == (2, "FULLY_CONNECTED")
    assert 4 <= len(steps) <= 5  # two whole runs, then a logarithm of the operators


def test_the_command(models):
    a, b = models / "a.tflite", models / "b.tflite"
    x = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    np.save(models / "x.npy", x)
    np.savez(models / "x.npz", x=x)
    text = opwright("diff", a, b, "--input", models / "x.npy", exit_code=1).stdout
    assert "first difference: operator 2, FULLY_CONNECTED" in text
    document = result_of("diff", a, b, "--input", models / "x.npz", "--json", exit_code=1)
    assert document["first"]["operator"] == "FULLY_CONNECTED"
    assert not document["agree"]
    expected = []
    for path in (a, b):
        one = ow.lite.Interpreter(model_path=str(path))
        one.allocate_tensors()
        one.set_tensor(one.get_input_details()[0]["index"], x)
        one.invoke()
        expected.append(one.get_tensor(one.get_output_details()[0]["index"]).astype(np.float64))
    assert document["outputs"][0]["largest"] == pytest.approx(np.abs(expected[0] - expected[1]).max(), rel=1e-3)
    assert result_of("diff", a, b, "--atol", "1", "--outputs-only", "--json")["agree"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["a.tflite"], 2, "--b-runtime"),
        (["a.tflite", "--b-runtime", "onnx"], 2, "no such run time"),
        (["a.tflite", "--b-runtime", "library"], 2, "library:FOLDER"),
        (["a.tflite", "b.tflite", "--input", "z=x.npy"], 2, "no input 'z'"),
        (["a.tflite", "b.tflite", "--input", "absent.npy"], 3, "absent.npy"),
        (["absent.tflite", "--b-runtime", "reference"], 3, "absent.tflite"),
        (["a.tflite", "--b-runtime", "library:absent"], 3, "absent"),
        (["b.tflite", "--b-runtime", "library:lib"], 1, "was not built from"),
        (["lib", "lib", "--b-runtime", "reference"], 1, "run time of its own"),
    ],
)
def test_mistakes_are_named(models, monkeypatch, arguments, code, message):
    monkeypatch.chdir(models)
    np.save("x.npy", np.zeros((2, 8), np.float32))
    assert message in opwright("diff", *arguments, exit_code=code).output


def test_inputs_that_do_not_match_are_named(models):
    with pytest.raises(InvalidArgumentError, match="float64"):
        aot.diff(models / "a.tflite", models / "b.tflite", inputs={"x": np.zeros((2, 8))})
    with pytest.raises(FailedPreconditionError, match="not built from"):
        aot.diff(models / "b.tflite", b_runtime=f"library:{models / 'lib'}")
