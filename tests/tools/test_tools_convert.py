"""`opwright convert`: saved models to .tflite files, with the settings of the converter."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from tools_harness import opwright

import opwright as ow
from opwright.lite import Interpreter, Model
from opwright.lite.format import versions


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("convert")
    weights = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)

    class Net(ow.Module):
        @ow.function(input_signature=[ow.TensorSpec([None, 40], ow.float32, name="x")])
        def infer(self, x):
            return {"y": ow.nn.gelu(ow.matmul(x, weights))}

        @ow.function(input_signature=[ow.TensorSpec([2], ow.float32, name="x")])
        def rare(self, x):
            return {"y": ow.math.lgamma(x)}

    net = Net()
    ow.saved_model.save(net, str(folder / "model"), signatures={"infer": net.infer, "rare": net.rare})
    rng = np.random.default_rng(1)
    np.savez(folder / "rows.npz", x=rng.normal(size=(20, 40)).astype(np.float32))
    np.savez(folder / "batches.npz", x=rng.normal(size=(5, 2, 40)).astype(np.float32))
    np.savez(folder / "other.npz", z=np.zeros((2, 40), np.float32))
    np.savez(folder / "shape.npz", x=np.zeros(3, np.float32))
    (folder / "text.npz").write_text("nothing of the kind")
    return folder


def names(path):
    return {versions.op_name(code) for code in Model.read(path).operator_codes}


def convert(saved, *words, out="m.tflite"):
    return opwright("convert", saved / "model", "-o", saved / out, *words, exit_code=None)


def test_it_converts_and_says_what_is_there(saved):
    done = convert(saved, "--signature", "infer", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["signatures"] == ["infer"]
    assert told["bytes"] == (saved / "m.tflite").stat().st_size
    assert {row["operator"] for row in told["operators"]} == names(saved / "m.tflite") == {"FULLY_CONNECTED", "GELU"}
    table = convert(saved, "--signature", "infer")
    assert "GELU" in table.stdout
    assert "needs run time 2.9.0" in table.stderr


def test_for_an_older_run_time(saved):
    assert convert(saved, "--signature", "infer", "--runtime", "2.8").exit_code == 0
    assert "GELU" not in names(saved / "m.tflite")


@pytest.mark.parametrize(("words", "code"), [(["--flex"], "FlexLgamma"), (["--custom"], "Lgamma")])
def test_operators_without_a_builtin_form(saved, words, code):
    refused = convert(saved, out="not_there.tflite")
    assert refused.exit_code == 1
    assert "error: 'tf.Lgamma' op is neither a custom op nor a flex op" in refused.stderr
    assert not (saved / "not_there.tflite").exists()
    assert convert(saved, *words).exit_code == 0
    assert code in {c.custom_code for c in Model.read(saved / "m.tflite").operator_codes}


@pytest.mark.parametrize(
    ("words", "types"),
    [
        (["--quantize", "float16"], {"FLOAT16"}),
        (["--quantize", "dynamic"], {"INT8"}),
        (["--quantize", "int8", "--data", "rows.npz"], {"INT8", "INT32"}),
        (["--quantize", "int8-only", "--data", "batches.npz", "--io", "int8"], {"INT8", "INT32"}),
        (["--quantize", "int16x8", "--data", "rows.npz"], {"INT16", "INT8"}),
    ],
    ids=lambda v: "-".join(v) if isinstance(v, list) else "",
)
def test_quantised(saved, words, types):
    words = [str(saved / w) if w.endswith(".npz") else w for w in words]
    done = convert(saved, "--signature", "infer", *words)
    assert done.exit_code == 0, done.stderr
    result = {t.type.name for t in Model.read(saved / "m.tflite").subgraphs[0].tensors}
    assert types <= result | {"INT32"}
    Interpreter(str(saved / "m.tflite")).allocate_tensors()


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["--quantize", "int8"], 2, "--data goes with"),
        (["--data", "rows.npz"], 2, "--data goes with"),
        (["--signature", "none"], 1, "Valid keys are 'infer,rare'"),
        (["--quantize", "int8", "--data", "rows.npz"], 1, "--data is for one signature"),
        (["--signature", "infer", "--quantize", "int8", "--data", "missing.npz"], 3, "No such file"),
        (["--signature", "infer", "--quantize", "int8", "--data", "text.npz"], 3, "is not an .npy or .npz file"),
        (["--signature", "infer", "--quantize", "int8", "--data", "other.npz"], 3, "one for each input: x"),
        (["--signature", "infer", "--quantize", "int8", "--data", "shape.npz"], 3, "the input has shape"),
        (["--runtime", "new"], 2, "not a version"),
    ],
    ids=lambda v: "-".join(v) if isinstance(v, list) else "",
)
def test_what_is_refused(saved, words, status, says):
    words = [str(saved / w) if w.endswith(".npz") else w for w in words]
    done = convert(saved, *words)
    assert done.exit_code == status
    assert says in done.stderr


def test_a_folder_that_is_no_saved_model_and_a_place_that_cannot_be_written(saved, tmp_path):
    opwright("convert", tmp_path, "-o", tmp_path / "m.tflite", exit_code=3)
    (tmp_path / "already").write_bytes(ow.lite.Model(buffers=[], subgraphs=[]).to_bytes())  # whatever its name is
    said = opwright("convert", tmp_path / "already", "-o", tmp_path / "m.tflite", exit_code=3).stderr
    assert "is a .tflite file already" in said
    assert "opwright inspect" in said
    done = opwright("convert", saved / "model", "-o", tmp_path / "no" / "m.tflite", "--signature", "infer", exit_code=3)
    assert "cannot be written" in done.stderr


PATTERNS = """
import opwright as ow
from opwright import lite

@ow.operator
class ToolsDense:
    x = ow.Input(ow.floating)
    w = ow.Input(ow.floating)
    y = ow.Output()

    def infer(op):
        return ow.TensorSpec([op.x.spec.shape[0], op.w.spec.shape[1]], op.x.spec.dtype)

    def compute(op, x, w):
        return ow.nn.gelu(x @ w).numpy()

@lite.pattern(ToolsDense)
def dense(x, w):
    return ow.nn.gelu(ow.matmul(x, w))

@lite.pattern("ToolsNowhere")
def nowhere(x):
    return ow.nn.relu(x) * x
"""


def test_patterns_of_a_file_and_of_a_module(saved, tmp_path, monkeypatch):
    (tmp_path / "tools_convert_patterns.py").write_text(PATTERNS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    whole = convert(saved, "--signature", "infer", "--pattern", tmp_path / "tools_convert_patterns.py")
    assert whole.exit_code == 0, whole.stderr
    assert {code.custom_code for code in Model.read(saved / "m.tflite").operator_codes} == {"ToolsDense"}
    assert "ToolsDense" in whole.stdout
    assert "pattern ToolsDense: 1 fused" in whole.stderr
    assert "pattern ToolsNowhere: 0 fused" in whole.stderr
    assert "Warning" not in whole.stderr
    one = convert(saved, "--signature", "infer", "--pattern", "tools_convert_patterns:dense", "--json")
    (told,) = json.loads(one.stdout)["patterns"]
    assert (told["pattern"], told["count"], one.exit_code) == ("ToolsDense", 1, 0)
    x = np.random.default_rng(2).normal(size=(3, 40)).astype(np.float32)
    done = opwright("run", saved / "m.tflite", "--custom", tmp_path / "tools_convert_patterns.py", exit_code=None)
    assert done.exit_code == 0, done.stderr
    loaded = ow.saved_model.load(str(saved / "model")).signatures["infer"](x=ow.constant(x))["y"]
    operator = sys.modules["tools_convert_patterns"].ToolsDense
    result = Interpreter(saved / "m.tflite", custom_ops=[operator]).get_signature_runner("infer")(x=x)["y"]
    np.testing.assert_allclose(result, loaded.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nowhere.py", "no such file"),
        ("json", "json: no pattern made by @lite.pattern"),
        ("no_such_module_at_all", "ModuleNotFoundError"),
        ("json:dumps", "no pattern dumps"),
    ],
)
def test_patterns_that_are_none(saved, text, says):
    done = convert(saved, "--signature", "infer", "--pattern", text)
    assert (done.exit_code, done.stdout) == (3, "")
    assert says in done.stderr


MODULE = """func.func @main(%a: tensor<4x3xf32> loc("x")) -> tensor<4x2xf32> {
%w = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
%0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
return %0 : tensor<4x2xf32>
}
"""


def test_commands_take_files_of_other_frameworks(tmp_path):
    (tmp_path / "net.mlir").write_text(MODULE)
    x = np.random.default_rng(3).normal(size=(4, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    ran = opwright("run", tmp_path / "net.mlir", "--input", f"x={tmp_path / 'x.npy'}", "--json")
    np.testing.assert_allclose(json.loads(ran.stdout)[0]["values"], x @ [[1, 2], [3, 4], [5, 6]], rtol=1e-5)
    assert "FULLY_CONNECTED" in opwright("check", tmp_path / "net.mlir").stdout
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "a.npy", np.tile(x, [2, 1]))
    np.savez(tmp_path / "data" / "b.npz", x=x[None])
    out = tmp_path / "q.tflite"
    words = ["--quantize", "int8", "--data", tmp_path / "data", "--runtime", "2.8"]
    opwright("convert", tmp_path / "net.mlir", "-o", out, *words)
    assert {"INT8"} <= {t.type.name for t in Model.read(out).subgraphs[0].tensors}
    opwright("convert", tmp_path / "net.mlir", "-o", tmp_path / "f.tflite")
    opwright("diff", tmp_path / "net.mlir", tmp_path / "f.tflite")
    (tmp_path / "none").mkdir()
    words[3] = tmp_path / "none"
    refused = opwright("convert", tmp_path / "net.mlir", "-o", out, *words, exit_code=3)
    assert "no .npz or .npy files" in refused.stderr
    (tmp_path / "open.mlir").write_text(MODULE.replace("4x3", "?x3").replace("4x2", "?x2"))
    assert "ow.from_stablehlo(sizes=...)" in opwright("run", tmp_path / "open.mlir", exit_code=3).stderr
    assert "No such file" in opwright("bench", tmp_path / "absent.onnx", exit_code=3).stderr


def test_every_foreign_suffix_has_a_reader():
    from opwright.tools import command_group, conversion

    assert set(command_group.FOREIGN) == set(conversion.READERS)


def test_op_new_writes_the_class_of_a_foreign_operator(tmp_path):
    model, kind = tmp_path / "net.mlir", "tensor<4x3xf32>"
    call = f"%0 = stablehlo.custom_call @my_scale(%a) {{factor = 2.5 : f32}} : ({kind}) -> {kind}"
    model.write_text(f"func.func @main(%a: {kind}) -> {kind} {{\n{call}\nreturn %0 : {kind}\n}}\n")
    file = tmp_path / "scale.py"
    opwright("op", "new", "my_scale", "--from", model, "-o", file)
    source = file.read_text().replace('raise NotImplementedError("my_scale in NumPy")', "return x0 * op.factor")
    namespace = {}
    exec(source, namespace)
    function = ow.from_stablehlo(model, custom={"my_scale": namespace["MyScale"]})
    np.testing.assert_array_equal(function(np.ones((4, 3), np.float32)), np.full((4, 3), 2.5))
    assert "is there already" in opwright("op", "new", "my_scale", "--from", model, "-o", file, exit_code=3).stderr
    assert "there are my_scale" in opwright("op", "new", "other", "--from", model, exit_code=3).stderr
    model.write_text(MODULE)
    assert "has a rule" in opwright("op", "new", "my_scale", "--from", model, exit_code=3).stderr


def test_op_new_writes_the_class_of_an_operator_that_a_framework_knows(tmp_path):
    pytest.importorskip("onnx")
    module, file = tmp_path / "my_schema.py", tmp_path / "op.py"
    module.write_text(
        "from onnx import defs\n"
        "S = defs.OpSchema\n"
        "x, y = (S.FormalParameter(n, 'T') for n in 'xy')\n"
        "gain = S.Attribute('gain', S.AttrType.FLOAT, required=True)\n"
        "kinds = [('T', ['tensor(float)'], '')]\n"
        "parts = dict(inputs=[x], outputs=[y], type_constraints=kinds, attributes=[gain])\n"
        "defs.register_schema(S('Scale', 'my', 1, **parts))\n"
    )
    opwright("op", "new", "--from", "onnx:my::Scale", "--import", module, "-o", file)
    namespace = {}
    exec(file.read_text().replace('raise NotImplementedError("my::Scale in NumPy")', "return x * op.gain"), namespace)
    np.testing.assert_array_equal(namespace["Scale"](ow.constant([2.0]), gain=3.0).numpy(), [6.0])
    for source, code, text in (
        ("onnx:Conv", 3, "has a rule"),
        ("onnx:my::Gone", 3, "--import MODULE"),
        ("onnx:", 2, "FRAMEWORK:OPERATOR"),
        ("net.onnx", 2, "wanted NAME"),
    ):
        assert text in opwright("op", "new", "--from", source, exit_code=code).stderr
    assert "wanted NAME" in opwright("op", "new", exit_code=2).stderr


def test_op_new_writes_the_class_of_a_primitive_of_jax(tmp_path, monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "op.py"
    (tmp_path / "my_primitive.py").write_text(
        "from jax.extend import core\n"
        "scale_p = core.Primitive('my_scale')\n"
        "scale_p.def_impl(lambda x, *, factor: x * factor)\n"
        "scale_p.def_abstract_eval(lambda x, *, factor: x)\n"
    )
    opwright("op", "new", "--from", "jax:my_scale", "--import", "my_primitive", "-o", file)
    namespace = {}
    exec(file.read_text().replace('raise NotImplementedError("my_scale in NumPy")', "return x * op.factor"), namespace)
    import my_primitive

    spec, custom = ow.TensorSpec([2], ow.float32), {"my_scale": namespace["MyScale"]}
    function = ow.from_jax(lambda x: my_primitive.scale_p.bind(x, factor=2.5), spec, custom=custom)
    np.testing.assert_array_equal(function(np.float32([1, -2])), [2.5, -5])
    assert "has a rule" in opwright("op", "new", "--from", "jax:tanh", exit_code=3).stderr
    assert "--import MODULE" in opwright("op", "new", "--from", "jax:my_gone", exit_code=3).stderr
