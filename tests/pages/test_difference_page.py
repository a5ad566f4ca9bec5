"""Errors of quantization against TensorFlow's QuantizationDebugger and formulas in float64; pages of `opwright diff`.

The statistics of the debugger are from data/quantization/make_official.py. It runs optimized int8 kernels, whose
results may be another integer than those of the reference kernels: figures of many elements agree to 1 %, of few to a
quarter of a step.
"""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import opwright as ow
from opwright import errors
from opwright.aot.quantization_errors import COLUMNS
from opwright.lite.interpreter import Interpreter
from opwright.tools.cli import cli

DATA = Path(__file__).parents[1] / "data" / "quantization"
FLOAT, INT8 = DATA / "float.tflite", DATA / "int8.tflite"


@pytest.fixture(scope="module")
def samples():
    with np.load(DATA / "data.npz") as arrays:
        return [[arrays[name]] for name in arrays]


@pytest.fixture(scope="module")
def result(samples):
    return ow.quantization.debug(INT8, FLOAT, samples)


def test_statistics_agree_with_the_official_debugger(result):
    with open(DATA / "layer_statistics.csv") as file:
        official = list(csv.DictReader(file))
    assert [row.operator for row in result.tensors] == [row["op_name"] for row in official]
    for row, other in zip(result.tensors, official):
        assert row.num_elements == float(other["num_elements"])
        assert row.scale == pytest.approx(float(other["scale"]), rel=1e-5)
        assert row.zero_point == int(other["zero_point"])
        for name in ("stddev", "mean_error", "max_abs_error"):
            assert getattr(row, name) == pytest.approx(float(other[name]), abs=0.25 * row.scale), (row.operator, name)
        if row.num_elements > 100:  # a rounding of one of few elements counts
            assert row.stddev == pytest.approx(float(other["stddev"]), rel=0.01)
            assert row.mean_squared_error == pytest.approx(float(other["mean_squared_error"]), rel=0.01)
            assert row.rmse_over_scale == pytest.approx(
                np.sqrt(float(other["mean_squared_error"])) / float(other["scale"]), rel=0.01
            )
    text = io.StringIO()
    result.dump(text)
    assert tuple(next(csv.reader(io.StringIO(text.getvalue(), newline="")))) == COLUMNS == tuple(official[0])


def test_errors_of_the_network_follow_from_both_runs(result, samples):
    interpreters = [Interpreter(str(path), experimental_preserve_all_tensors=True) for path in (FLOAT, INT8)]
    values = [{}, {}]
    for (sample,) in samples:
        for interpreter, kept in zip(interpreters, values):
            interpreter.allocate_tensors()
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample)
            interpreter.invoke()
            for detail in interpreter.get_tensor_details():
                scale, zero = detail["quantization"]
                array = interpreter.get_tensor(detail["index"]).astype(np.float64)
                real = (array - zero) * scale if scale else array
                kept.setdefault(detail["name"], []).append(real)
    for row in result.tensors[:-1]:
        exact, real = (np.stack(kept[row.name]) for kept in values)
        assert row.network == pytest.approx(np.sqrt(np.mean((real - exact) ** 2)), rel=1e-6)
        assert row.deviation == pytest.approx(exact.std(), rel=1e-6)
        low, high = (np.array([-128, 127]) - row.zero_point) * row.scale
        beyond = (exact < low - row.scale / 2) | (exact > high + row.scale / 2)
        assert row.saturated == pytest.approx(beyond.mean(), abs=1e-9)
        assert sum(row.float_counts) == sum(row.counts) == exact.size
        assert row.float_counts == tuple(np.histogram(np.clip(exact, low, high), 64, (low, high))[0])


def test_candidates_for_float(result):
    worst = result.leave_in_float(3)
    relative = sorted((row.relative for row in result.tensors), reverse=True)
    assert [row.relative for row in worst] == relative[:3]
    assert len(result.worst_samples) == result.samples == 6
    assert result.sample_errors[result.worst_samples[0]] == max(result.sample_errors)


def test_wrong_samples_are_refused():
    for data, message in (
        ([], "no samples"),
        ([[np.zeros((1, 8, 8, 3))]], "does not match"),
        ([{"y": np.zeros(3)}], "other inputs"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            ow.quantization.debug(INT8, FLOAT, data)
    other = DATA.parent / "tflite" / "lstm.tflite"
    with pytest.raises(errors.InvalidArgumentError, match="in common"):
        ow.quantization.debug(INT8, other, [])


def test_the_page(tmp_path):
    page = tmp_path / "page.html"
    command = ["diff", str(INT8), str(FLOAT), "--atol", "0.05", "--html", str(page), "--json"]
    outcome = CliRunner().invoke(cli, command)
    assert outcome.exit_code == 0, outcome.output
    text = page.read_text("utf-8")
    start = text.index('id="charts">') + len('id="charts">')
    charts = json.loads(text[start : text.index("</script>", start)])
    along, relative, steps, *histograms = charts
    assert len(along["marks"][1]["columns"]["error"]) == 7
    assert len(relative["marks"][0]["columns"]["network"]) == 7
    assert len(steps["marks"][0]["columns"]["steps"]) == 7
    assert histograms
    for chart in histograms:
        exact, real = (m["columns"]["count"] for m in chart["marks"][:2])
        assert sum(exact) == sum(real) > 0
    for operator in ("CONV_2D", "SOFTMAX"):
        assert operator in text
    assert len(text) < 600_000


def test_a_page_of_two_run_times(tmp_path):
    page = tmp_path / "page.html"
    command = ["diff", str(FLOAT), "--a-runtime", "reference", "--b-runtime", "litert-builtin", "--html", str(page)]
    outcome = CliRunner().invoke(cli, command)
    assert outcome.exit_code == 0, outcome.output
    assert "The outputs agree" in page.read_text("utf-8")
