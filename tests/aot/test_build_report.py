"""The report of a built library: sums, sizes as the system's tools print them, untrusted names in the page."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from click.testing import CliRunner

import opwright as ow
from opwright import aot
from opwright.aot.object_symbols import function_sizes
from opwright.tools.cli import cli
from opwright.tools.library_report import html_page


def network(name="image"):
    """A convolution, a pool and a product, which share no kernel."""
    rng = np.random.default_rng(3)
    kernel, dense = rng.normal(size=(3, 3, 3, 8)).astype(np.float32), rng.normal(size=(8, 5)).astype(np.float32)

    @ow.function(input_signature=[ow.TensorSpec([1, 16, 16, 3], ow.float32, name=name)])
    def model(x):
        x = ow.nn.relu(ow.nn.conv2d(x, kernel, 2, "SAME"))
        return {"scores": ow.nn.softmax(ow.reduce_mean(x, [1, 2]) @ dense)}

    return ow.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model).convert()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return aot.build(network(), out=tmp_path_factory.mktemp("net"), name="net", report=True)


def test_parts_sum_to_the_whole(built):
    report = built.report
    assert (report.code, report.weights, report.arena) == (built.code, built.weights, built.arena)
    assert sum(row.code for row in report.operators) == sum(row.code for row in report.kernels)
    assert report.other + sum(row.code for row in report.kernels) == report.code
    assert report.other > 0
    assert sum(r.steps for r in report.kernels) == len(report.steps)
    assert sum(row.steps for row in report.operators) == len(report.steps)
    names = {name for row in report.operators for name in row.operators.split(" + ")}
    assert {"CONV_2D", "MEAN", "FULLY_CONNECTED", "SOFTMAX"} <= names
    weights = sum(row.nbytes for row in report.constants)
    assert 4 * (3 * 3 * 3 * 8 + 8 * 5) <= weights <= built.weights
    assert sum(row.weights for row in report.operators) == weights
    named = [name for row in report.constants for name in row.tensors]
    assert len(named) >= 2
    assert all(named)


def test_memory_and_times_are_of_the_steps(built):
    report = built.report
    convolution = next(row for row in report.memory if any(node.startswith("CONV_2D") for node in row.nodes))
    assert convolution.live >= 8 * 8 * 8 * 4  # its result
    assert max(row.live for row in report.memory) <= report.arena
    assert all(0 <= row.seconds < 1 for row in report.steps)
    assert sum(row.seconds for row in report.steps) > 0
    assert sum(row.seconds for row in report.operators) == pytest.approx(sum(row.seconds for row in report.steps))


@pytest.mark.skipif(not shutil.which("nm"), reason="needs nm")
@pytest.mark.parametrize("target", ["host", pytest.param("armv7-neon", marks=pytest.mark.slow)])
def test_sizes_of_functions_equal_the_output_of_nm(target, built, tmp_path):
    library = aot.build(network(), target, tmp_path, name="net", format="object")
    path = library.folder / "net.o"
    listed = subprocess.run(["nm", "-S", path], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    expected = {row[3]: int(row[1], 16) for row in rows if len(row) == 4 and row[2] in "tT"}
    sizes = function_sizes(path.read_bytes())
    assert len(expected) >= 2
    assert {name: sizes[name] for name in expected} == expected


@pytest.mark.slow
def test_other_formats_have_no_sizes_of_kernels(tmp_path):
    report = aot.build(network(), "aarch64-macos", tmp_path, report=True).report
    assert all(row.code is None for row in report.kernels)
    assert report.other == report.code
    assert all(row.seconds is None for row in (*report.steps, *report.operators))


def test_names_of_files_are_escaped_in_the_page(built):
    named = "<script>alert(1)</script>"
    rows = tuple(row._replace(tensors=(named,), nodes=(named,)) for row in built.report.constants)
    page = html_page(built.report._replace(constants=rows, name="<b>"))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;" in page
    assert "http:" not in page
    assert "https:" not in page


def test_the_command(tmp_path):
    (tmp_path / "m.tflite").write_bytes(network())
    arguments = ["build", str(tmp_path / "m.tflite"), "-o", str(tmp_path / "out"), "--report"]
    page = tmp_path / "page.html"
    text = CliRunner().invoke(cli, [*arguments, "--html", str(page)], catch_exceptions=False).stdout
    assert "By operator" in text
    assert "FULLY_CONNECTED" in text
    assert "<table>" in page.read_text()
    document = json.loads(CliRunner().invoke(cli, [*arguments, "--json"], catch_exceptions=False).stdout)
    assert document["report"]["weights"] == document["weights"]
    assert {row["operators"] for row in document["report"]["operators"]} >= {"SOFTMAX"}
