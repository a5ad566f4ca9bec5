"""`opwright inspect` of saved models and checkpoints."""

import json

import pytest
from click.testing import CliRunner

import opwright as ow
from opwright.tools.cli import cli

pytestmark = pytest.mark.ours


def run(*args):
    return CliRunner().invoke(cli, ["inspect", *map(str, args)])


def test_inspect(tmp_path):
    module = ow.Module()
    module.w, module.parts = ow.Variable([[1.0, 2.0]]), [ow.Variable(1, trainable=False)]
    module.f = ow.function(lambda x: x * module.w, input_signature=[ow.TensorSpec([None, 2], ow.float32, "x")])
    ow.saved_model.save(module, tmp_path / "m")
    result = json.loads(run(tmp_path / "m", "--json").output)
    kinds = {"inputs": {"x": "f32[?,2]"}, "outputs": {"output_0": "f32[?,2]"}}
    assert result["signatures"] == [{"key": "serving_default", **kinds}]
    assert result["functions"] == [{"name": "f", "traces": ["(x: f32[?,2]) -> f32[?,2]"]}]
    assert result["variables"] == [
        {"name": "w", "type": "f32[1,2]", "trainable": True},
        {"name": "parts.0", "type": "i32[]", "trainable": False},
    ]
    assert result["operators"]["Mul"] == 1
    shown = run(tmp_path / "m")
    assert shown.exit_code == 0
    assert "serving_default" in shown.output
    path = ow.train.Checkpoint(m=module).save(tmp_path / "c")
    for name in (path, path + ".index"):
        result = json.loads(run(name, "--json").output)
        assert {"name": "m/w/.ATTRIBUTES/VARIABLE_VALUE", "type": "f32[1,2]"} in result["variables"]
    assert run(tmp_path).exit_code == 3
    (tmp_path / "m" / "graphs.txt").write_text("x")
    assert run(tmp_path / "m").exit_code == 3
