"""`opwright op model`: a file of one operator, by every kind of name; what it holds; what it refuses."""

import numpy as np
import pytest
from tools_harness import opwright, result_of

from opwright import lite

MINE = '''
import numpy as np
import opwright as ow

@ow.operator
class ModelMine:
    """Mine.   .. math:: y = a x + b"""
    x = ow.Input(ow.floating)
    more = ow.Input(ow.floating, like="x", optional=True)
    y = ow.Output(like="x")
    low = ow.Output(like="x")
    a = ow.Attr(float, default=2.0)
    flag = ow.Attr(bool, default=False)
    sizes = ow.Attr([int], default=())
    word = ow.Attr(str, default="")
    def infer(op): return op.x.spec, op.x.spec
    def compute(op, x, more=None): return op.a * x, x
'''


@pytest.fixture
def model(tmp_path):
    """`op model` with a file of its own: gives what is in it."""
    target = tmp_path / "one.tflite"

    def make(*arguments):
        result = opwright("op", "model", *arguments, "-o", target)
        assert "opwright bench" in result.stderr
        return lite.Model.read(str(target)), target

    return make


def operators(model):
    names = [lite.format.versions.op_name(c) for c in model.operator_codes]
    customs = [c.custom_code for c in model.operator_codes]
    return [customs[o.opcode_index] or names[o.opcode_index] for o in model.subgraphs[0].operators]


def signature(path):
    interpreter = lite.Interpreter(model_path=str(path))
    (result,) = interpreter.get_signature_list().values()
    shapes = [tuple(map(int, d["shape"])) for d in interpreter.get_input_details()]
    return result["inputs"], shapes, result["outputs"]


@pytest.mark.parametrize(
    ("arguments", "name", "inputs", "shapes", "outputs"),
    [
        (["Tanh", "--shape", "2,3"], "TANH", ["x"], [(2, 3)], ["y"]),
        (["ADD", "--shape", "2,3", "--shape", "3"], "ADD", ["x", "y"], [(2, 3), (3,)], ["z"]),
        (
            ["Concat", "--shape", "2,3", "--shape", "4,3", "--attr", "axis=0"],
            "CONCATENATION",
            ["values_0", "values_1"],
            [(2, 3), (4, 3)],
            ["output"],
        ),
        (["RESHAPE", "--shape", "2,6", "--value", "[3,4]"], "RESHAPE", ["x"], [(2, 6)], ["y"]),
        (["MatMul", "--shape", "b=4,5", "--shape", "a=3,4"], "BATCH_MATMUL", ["a", "b"], [(3, 4), (4, 5)], ["output"]),
        (["TopK", "--shape", "2,6", "--value", "k=3"], "TOPK_V2", ["input"], [(2, 6)], ["indices", "values"]),
        (["StringLength", "--shape", "3", "--dtype", "string"], "StringLength", ["input"], [(3,)], ["output"]),
    ],
)
def test_names_of_every_kind(model, arguments, name, inputs, shapes, outputs):
    created, path = model(*arguments)
    assert name in operators(created)
    result = signature(path)
    assert result[1] == shapes
    assert (result[0], result[2]) == (inputs, outputs)


def test_weights_are_constants_of_the_file(model):
    result, path = model(
        "CONV_2D",
        "--shape",
        "1,8,8,3",
        "--constant",
        "filter=4,3,3,3",
        "--constant",
        "bias=4",
        "--attr",
        "stride_w=2",
        "--attr",
        "stride_h=1",
        "--attr",
        "padding=VALID",
    )
    assert operators(result) == ["CONV_2D"]
    assert signature(path)[1] == [(1, 8, 8, 3)]
    (details,) = lite.Interpreter(model_path=str(path)).get_output_details()
    assert details["shape"].tolist() == [1, 6, 3, 4]
    (row,) = result_of("bench", path, "--runs", 3, "--ops", "--json")["operators"]
    assert row["operator"] in ("CONV_2D", "DELEGATE")


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "uint8"])
def test_types(model, dtype):
    _, path = model("MAXIMUM", "--shape", "4", "--shape", "4", "--dtype", dtype)
    assert {d["dtype"] for d in lite.Interpreter(model_path=str(path)).get_input_details()} == {np.dtype(dtype).type}


def test_operators_of_a_file(model, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    created, path = model(
        "ModelMine",
        "--custom",
        tmp_path / "mine.py",
        "--shape",
        "2,2",
        "--attr",
        "a=0.5",
        "--attr",
        "flag=true",
        "--attr",
        "sizes=1,2,3",
        "--attr",
        "word=SAME",
    )
    assert operators(created) == ["ModelMine"]
    options = lite.format.flexbuffers.decode_options(created.subgraphs[0].operators[0].custom_options)
    assert options == {"a": 0.5, "flag": True, "sizes": [1, 2, 3], "word": "SAME"}
    result = result_of("bench", path, "--custom", tmp_path / "mine.py", "--runs", 3, "--ops", "--json")
    assert [row["operator"] for row in result["operators"]] == ["ModelMine"]
    ran = result_of("run", path, "--custom", tmp_path / "mine.py", "--json")
    assert np.allclose(np.multiply(ran[1]["values"], 0.5), ran[0]["values"])
    assert "unresolved custom op: ModelMine" in opwright("run", path, exit_code=1).stderr


@pytest.mark.parametrize("arguments", [["Atan"], ["BesselI0"], ["TANH"], ["ModelMine", "--custom"]], ids=str)
def test_the_command_that_it_prints_works(model, tmp_path, arguments):
    """Operators of the catalogue (as custom operators), of the format, of a file."""
    if "--custom" in arguments:
        (tmp_path / "mine.py").write_text(MINE)
        arguments = [*arguments, tmp_path / "mine.py"]
    said = opwright("op", "model", *arguments, "--shape", "3", "-o", tmp_path / "one.tflite").stderr
    (line,) = [line for line in said.splitlines() if line.startswith("opwright bench ")]
    assert "invoke median" in opwright(*line.split()[1:], "--runs", 3).stdout
    opwright("run", *line.replace("--ops", "").split()[2:])


def test_check_reports_that_the_catalogue_has_it(model):
    _, path = model("Atan", "--shape", "3")
    assert "in the catalogue: ow.ops.get('Atan')" in opwright("check", path).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["Nope", "--shape", "3"], 3, "no operator is named 'Nope'"),
        (["TFLite_Detection_PostProcess", "--shape", "3"], 3, "never written"),
        (["Atan"], 2, "no shape is given for input 'x'"),
        (["Atan", "--shape", "3", "--shape", "4"], 2, "takes no more inputs"),
        (["Atan", "--shape", "q=3"], 2, "has no input 'q'"),
        (["Atan", "--shape", "x=3", "--shape", "x=4"], 2, "given twice"),
        (["Atan", "--shape", "a,b"], 2, "is not a shape"),
        (["Atan", "--shape", "3", "--dtype", "float33"], 2, "'float33' is not a dtype"),
        (["Atan", "--shape", "3", "--dtype", "q=int8"], 2, "has no input 'q'"),
        (["Atan", "--shape", "3", "--attr", "z=1"], 2, "not an attribute of Atan"),
        (["Sum", "--shape", "3", "--attr", "keepdims=perhaps"], 2, "'perhaps' is not a value of attribute 'keepdims'"),
        (["RESHAPE", "--shape", "3", "--value", "shape=[a"], 2, "is not a value of input 'shape'"),
        (["MatMul", "--shape", "3,4", "--shape", "3,4"], 1, "inner sizes differ"),
        (["Softmax", "--shape", "3", "--dtype", "logits=string"], 1, "has a dtype it does not take"),
        (["Softmax", "--shape", "3", "--dtype", "int8"], 2, "no input that takes int8; logits: "),
        (["Atan", "--shape", "3", "--custom", "no_such_file.py"], 3, "no such file"),
        (["Atan", "--shape", "-3"], 2, "is not a shape"),
    ],
)
def test_what_cannot_be(tmp_path, arguments, code, words):
    target = tmp_path / "one.tflite"
    assert words in opwright("op", "model", *arguments, "-o", target, exit_code=code).stderr
    assert not target.exists()


def test_a_place_that_cannot_be_written(tmp_path):
    result = opwright("op", "model", "Atan", "--shape", "3", "-o", tmp_path / "none" / "x.tflite", exit_code=3)
    assert "cannot be written" in result.stderr
