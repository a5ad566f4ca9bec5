"""Objects as notebooks show them, and the magics of `%load_ext opwright`."""

import html.parser
import json
import re

import pytest

import opwright as ow
from opwright.lite.ops import definition
from opwright.tools import notebook_magics

HOSTILE = "<script>alert(1)</script>"


class Markup(html.parser.HTMLParser):
    """Text and tags of a fragment; every tag is closed in order."""

    VOID = {"br", "rect", "meta", "input"}

    def __init__(self, markup):
        super().__init__()
        self.open, self.tags, self.words = [], set(), []
        self.feed(re.sub(r'srcdoc="[^"]*"', "", markup))
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("href", "src", "style") for name, _ in attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def shown(value):
    markup = Markup(value._repr_html_())
    assert not markup.tags & {"script", "style", "link", "img"}
    return markup


@ow.function
def affine(x):
    return ow.tanh(x * 2.0 + 1.0)


def test_tensors_are_tables_of_their_ends():
    text = shown(ow.constant([[1.5, 2.0], [3.25, -4.0]])).text
    assert text == "Tensor shape (2, 2), float32 0 1 0 1.5 2 1 3.25 -4"
    text = shown(ow.range(1000)).text
    assert "shape (1000,), int32" in text
    assert text.endswith("0 1 2 3 4 … 995 996 997 998 999")
    assert "shape (2, 2, 2), float32 [[[0. 0.]" in shown(ow.zeros([2, 2, 2])).text
    assert shown(ow.constant(7)).text == "Tensor shape (), int32 7"
    assert len(ow.zeros([3000, 3000])._repr_html_()) < 20_000


def test_strings_are_escaped():
    assert "&lt;script&gt;" in ow.constant([[HOSTILE[:30]]])._repr_html_()
    variable = ow.Variable([1.0, 2.0], name="w", trainable=False)
    assert shown(variable).text.startswith("Variable w:0 shape (2,), float32, not trainable")


def test_graphs_and_functions_are_drawn():
    trace = affine.get_concrete_function(ow.TensorSpec([4], name="x"))
    for value, says in ((trace, "Trace"), (trace.graph, "Graph affine 1 inputs"), (affine, "Function affine")):
        assert "iframe" in shown(value).tags
        assert says in shown(value).text
        assert "Tanh" in value._repr_html_()


def test_functions_without_traces_have_no_drawing():
    text = shown(ow.function(lambda x: x)).text
    assert "No drawing" in text


def test_models_show_their_summary():
    model = ow.keras.Sequential([ow.keras.layers.Dense(3, name="head")])
    assert "No drawing" in shown(model).text
    model.build((None, 2))
    markup = shown(model)
    assert "head" in markup.text
    assert "9 (36.00 B)" in markup.text
    assert "iframe" in markup.tags


def test_datasets_show_their_first_elements():
    drawn = []

    def noted(i):
        drawn.append(int(i))
        return i

    dataset = ow.data.Dataset.range(100).map(lambda i: {"id": i, "name": HOSTILE})
    text = shown(dataset).text
    assert "id name 0 0" in text
    assert "2 2" in text
    assert "3 3" not in text
    counted = ow.data.Dataset.range(100).map(lambda i: ow.py_function(noted, [i], ow.int64))
    shown(counted)
    assert drawn[:3] == [0, 1, 2]
    assert len(drawn) <= 4
    assert "no elements" in shown(ow.data.Dataset.range(0)).text


def test_operators_show_formula_and_versions():
    text = shown(ow.ops.get("Softmax")).text
    assert "Operator Softmax" in text
    assert "$$" in text
    assert "attribute axis int, default -1" in text
    text = shown(definition.get("SOFTMAX")).text
    assert "version first run time needed" in text
    assert "2 1.14.0" in text


def test_errors_show_their_parts():
    with pytest.raises(ow.errors.InvalidArgumentError) as raised:
        ow.matmul(ow.zeros([2, 3]), ow.zeros([4, 5]))
    text = shown(raised.value).text
    assert "InvalidArgumentError" in text
    assert "found" in text
    assert "wanted" in text
    assert "&lt;script&gt;" in ow.errors.NotFoundError(what=HOSTILE)._repr_html_()


def test_profiles_show_operators(tmp_path):
    converter = ow.lite.TFLiteConverter.from_concrete_functions(
        [affine.get_concrete_function(ow.TensorSpec([4], name="x"))]
    )
    cell = "interpreter = ow.lite.Interpreter(model_content=content)\ninterpreter.allocate_tensors()\ninterpreter"
    profile = notebook_magics.profile_of(cell, {"ow": ow, "content": converter.convert()}, 3)
    text = shown(profile).text
    assert text.startswith("Profile 3 runs operator count median us share")
    with pytest.raises(ow.errors.InvalidArgumentError, match="not an interpreter"):
        notebook_magics.profile_of("1 + 1", {}, 3)


def test_cells_have_the_future_of_their_own_source_alone():
    namespace = {}
    with pytest.raises(ow.errors.InvalidArgumentError, match="not an interpreter"):
        notebook_magics.profile_of("def f(x: int): pass\nf", namespace, 1)
    assert namespace["f"].__annotations__ == {"x": int}


KERNEL = """
import numpy as np, opwright as ow
from opwright import language as kl

@ow.kernel
def scale_of_a_cell(x: kl.Array(kl.f32, "n"), factor: kl.f32):
    for i in range(x.shape[0]):
        x[i] = x[i] * factor

x = np.ones(64, np.float32)
scale_of_a_cell(x, 1.0)
"""


def test_kernel_report_has_code_and_time():
    report = notebook_magics.kernel_report(KERNEL, {})
    assert "define i64 @scale_of_a_cell" in report.ir
    assert "scale_of_a_cell:" in report.assembly
    assert "mul" in report.assembly
    assert 1e-8 < report.seconds < 1e-2
    assert repr(report).startswith("scale_of_a_cell(x, 1.0): ")
    assert shown(report).text.count("LLVM IR") == 1
    with pytest.raises(ow.errors.InvalidArgumentError, match="does not end with an expression"):
        notebook_magics.kernel_report("x = 1", {})
    with pytest.raises(ow.errors.InvalidArgumentError, match="compiled no kernel"):
        notebook_magics.kernel_report("1 + 1", {})


@pytest.mark.slow
def test_magics_run_in_a_notebook(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    v4 = nbformat.v4
    cells = ["%load_ext opwright", "%%kernel" + KERNEL, "import opwright as ow\now.constant([1.0])", "1/0"]
    notebook = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])
    notebook.cells[-1].metadata["tags"] = ["raises-exception"]
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    report, tensor = (cell.outputs[0].data["text/html"] for cell in notebook.cells[1:3])
    assert "scale_of_a_cell" in report
    assert Markup(tensor).text == "Tensor shape (1,), float32 index 0 1"
    assert notebook.cells[3].outputs[0].ename == "ZeroDivisionError"
    json.dumps(notebook)
