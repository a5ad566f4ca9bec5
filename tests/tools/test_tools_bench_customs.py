"""`opwright bench` of models with custom operators: by name and version, by whom nodes are run, beside the official run
time."""

from __future__ import annotations

import numpy as np
import pytest
from lite_kit import Build
from tools_harness import opwright, result_of

import opwright as ow

OPERATORS = '''
import numpy as np
import opwright as ow

@ow.operator(version=2)
class BenchLeaky:
    """Element-wise, with a kernel.   .. math:: y = max(x, alpha x)"""
    x = ow.Input(ow.floating)
    y = ow.Output(like="x")
    alpha = ow.Attr(float, default=0.5)
    beta = ow.Attr(float, default=0.0, since=2)

    def compute(op, x):
        return np.maximum(x, x.dtype.type(op.alpha) * x) + x.dtype.type(op.beta)

    @ow.kernel
    def kernel(x, *, alpha, beta):
        return ow.maximum(x, alpha * x) + beta

@ow.operator
class BenchSorted:
    """In Python alone.   .. math:: y = sort(x)"""
    x = ow.Input(ow.floating)
    y = ow.Output(like="x")

    def compute(op, x):
        return np.sort(x)
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    (folder / "mine.py").write_text(OPERATORS)
    scope = {}
    exec(OPERATORS, scope)
    leaky, in_order = scope["BenchLeaky"], scope["BenchSorted"]

    @ow.function(input_signature=[ow.TensorSpec([64], ow.float32, name="x")])
    def mixed(x):
        return in_order(leaky(x * 2.0) + leaky(x, beta=1.0)) - 1.0

    @ow.function(input_signature=[ow.TensorSpec([64], ow.float32, name="x")])
    def native(x):
        return leaky(x * 2.0) + 1.0

    for function in (mixed, native):
        converter = ow.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], function)
        converter.allow_custom_ops = True
        (folder / f"{function.name}.tflite").write_bytes(converter.convert())
    return folder


def test_custom_operators_stand_among_the_others_by_name_and_version(folder):
    result = result_of("bench", folder / "mixed.tflite", "--custom", folder / "mine.py", "--runs", 3, "--ops", "--json")
    nodes = [(r["operator"], r["custom"], r["version"]) for r in result["nodes"]]
    assert sorted(nodes) == sorted(
        [
            ("MUL", False, 1),
            ("BenchLeaky", True, 1),
            ("BenchLeaky", True, 2),
            ("ADD", False, 1),
            ("BenchSorted", True, 1),
            ("SUB", False, 1),
        ]
    )
    kinds = {(r["operator"], r["version"]): r["count"] for r in result["operators"]}
    assert kinds == {
        ("MUL", None): 1,
        ("BenchLeaky", 1): 1,
        ("BenchLeaky", 2): 1,
        ("ADD", None): 1,
        ("BenchSorted", 1): 1,
        ("SUB", None): 1,
    }


def test_tables_and_the_page_say_so(folder, tmp_path):
    result = opwright(
        "bench",
        folder / "mixed.tflite",
        "--custom",
        folder / "mine.py",
        "--runs",
        2,
        "--ops",
        "--html",
        tmp_path / "page.html",
    )
    page = (tmp_path / "page.html").read_text()
    for text in ("BenchLeaky v1 (custom)", "BenchLeaky v2 (custom)", "BenchSorted v1 (custom)", "interpreter"):
        assert text in result.stdout, text
        assert text in page, text


def test_a_custom_operator_of_a_builtin_name_is_apart(tmp_path):
    (tmp_path / "add.py").write_text(
        "import opwright as ow\n\n@ow.operator(name='ADD')\nclass Add:\n"
        "    x = ow.Input(ow.floating)\n    y = ow.Output(like='x')\n\n"
        "    def compute(op, x):\n        return x + 1\n"
    )
    (tmp_path / "m.tflite").write_bytes(Build().custom("ADD", "x", "a").op("ADD", "a x", "y").done())
    result = result_of("bench", tmp_path / "m.tflite", "--custom", tmp_path / "add.py", "--runs", 2, "--ops", "--json")
    kinds = sorted((r["operator"], r["custom"], r["count"]) for r in result["operators"])
    assert kinds == [("ADD", False, 1), ("ADD", True, 1)]


def test_with_the_compiled_engine_who_runs_what_is_reported(folder):
    with ow.flags(compiled=True, background=False):
        custom = ("--custom", folder / "mine.py", "--runs", 3, "--ops")
        fused = result_of("bench", folder / "native.tflite", *custom, "--json")["nodes"]
        apart = result_of("bench", folder / "mixed.tflite", *custom, "--json")["nodes"]
        tables = opwright("bench", folder / "native.tflite", *custom).stdout
    assert [(r["operator"], r.get("delegate")) for r in fused] == [
        ("MUL", "Opwright"),
        ("BenchLeaky", "Opwright"),
        ("ADD", "Opwright"),
    ]
    assert sum(r["average"] == 0 for r in fused) == 2  # one kernel does the work of all three
    assert "fused" in tables
    assert {r["operator"]: r.get("delegate") for r in apart}["BenchSorted"] is None


def test_without_the_operators_it_reports_which(folder):
    result = opwright("bench", folder / "native.tflite", exit_code=1)
    assert "BenchLeaky" in result.stderr


@pytest.mark.slow
def test_next_to_the_official_run_time(folder, monkeypatch):
    pytest.importorskip("ai_edge_litert")
    from opwright.lite.litert.library import library

    try:
        library()
    except ImportError as error:  # errors.UnavailableError and NotFoundError of it are both
        pytest.skip(f"no official run time that takes operators: {error}")
    monkeypatch.setenv("OPWRIGHT_COMPILED", "1")  # for the process that has the official run time
    native = ("bench", folder / "native.tflite", "--custom", folder / "mine.py", "--runs", 2, "--vs", "litert")
    result = result_of(*native, "--json")
    assert result["vs"] == {"name": "litert", "by": "CompiledModel, given BenchLeaky: 1 of 1 nodes as native code"}
    assert set(result["litert"]) == set(result["seconds"])
    assert "litert / ours" in opwright(*native).stdout


def test_what_the_official_run_time_cannot_be_given_is_named(tmp_path):
    pytest.importorskip("ai_edge_litert")
    (tmp_path / "words.py").write_text(
        "import opwright as ow\n\n@ow.operator\nclass BenchWords:\n"
        "    x = ow.Input(ow.string)\n    y = ow.Output(like='x')\n\n"
        "    def compute(op, x):\n        return x\n"
    )
    scope = {}
    exec((tmp_path / "words.py").read_text(), scope)
    words = scope["BenchWords"]

    @ow.function(input_signature=[ow.TensorSpec([2], ow.string, name="x")])
    def f(x):
        return words(x)

    converter = ow.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
    converter.allow_custom_ops = True
    (tmp_path / "m.tflite").write_bytes(converter.convert())
    result = opwright(
        "bench", tmp_path / "m.tflite", "--custom", tmp_path / "words.py", "--runs", 2, "--vs", "litert", exit_code=3
    )
    assert "litert has no custom operator BenchWords, and cannot be given it: " in result.stderr


def test_a_profile_of_python_methods_has_them_as_custom():
    kernel = ow.lite.Registration(
        prepare=lambda c, n: c.resize_tensor(n.outputs[0], n.inputs[0].shape),
        invoke=lambda c, n: np.copyto(n.outputs[0].data, n.inputs[0].data),
    )
    content = Build().custom("Same", "x", "a").op("ADD", "a x", "y").done()
    interpreter = ow.lite.Interpreter(model_content=content, custom_ops={"Same": kernel})
    interpreter.allocate_tensors()
    assert [(r["operator"], r["custom"]) for r in interpreter.profile(2)] == [("Same", True), ("ADD", False)]
