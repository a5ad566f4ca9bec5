"""`opwright resolver`: the module it writes serves its models, imports only their kernels, and is written whole.

The models are official files and small ones made here; answers are those of the whole resolver, and of NumPy.
"""

from __future__ import annotations

import ast
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from test_tools_check import MINE, customs, model
from tools_harness import opwright, result_of

import opwright as ow
from opwright.lite import Interpreter, ops
from opwright.tools.selective_build import module_text, used_by

CORPUS = pathlib.Path(__file__).parents[1] / "data" / "tflite"

RUN = """
import json, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import my_resolver
from opwright.lite import Interpreter
resolver = my_resolver.Resolver()
families = {m.rpartition(".ops.")[2] for m in sys.modules if ".lite.ops." in m}
answers = []
for path in sys.argv[2:]:
    interpreter = Interpreter(model_path=path, op_resolver=resolver)
    interpreter.allocate_tensors()
    rng = np.random.default_rng(0)
    for d in interpreter.get_input_details():
        interpreter.set_tensor(d["index"], rng.integers(1, 5, d["shape"]).astype(d["dtype"]))
    interpreter.invoke()
    answers.append([interpreter.get_tensor(d["index"]).tolist() for d in interpreter.get_output_details()])
after = {m.rpartition(".ops.")[2] for m in sys.modules if ".lite.ops." in m}
print(json.dumps([sorted(families), sorted(after), answers]))
"""


def run_with(folder, *paths):
    command = [sys.executable, "-c", RUN, str(folder), *map(str, paths)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def imported_by(families):
    """Return the families, with the families that they import."""
    code = "import importlib, json, sys\n"
    code += "for f in json.loads(sys.argv[1]): importlib.import_module('opwright.lite.ops.' + f)\n"
    code += "print(json.dumps([m.rpartition('.ops.')[2] for m in sys.modules if '.lite.ops.' in m]))"
    ran = subprocess.run([sys.executable, "-c", code, json.dumps(families)], capture_output=True, text=True, check=True)
    return set(json.loads(ran.stdout)) & set(ops.FAMILIES)


def test_models_run_with_it_and_only_their_families_are_imported(tmp_path):
    paths = [CORPUS / "activations.tflite", CORPUS / "while_loop.tflite"]
    output = tmp_path / "my_resolver.py"
    figures = result_of("resolver", *paths, "-o", output, "--json")
    families, after, answers = run_with(tmp_path, *paths)
    assert set(families) & set(ops.FAMILIES) == imported_by(figures["families"]) < set(ops.FAMILIES)
    assert set(after) & set(ops.FAMILIES) == set(families) & set(ops.FAMILIES)  # the compiler imports no other family
    for path, answer in zip(paths, answers):
        whole = Interpreter(model_path=str(path))
        whole.allocate_tensors()
        rng = np.random.default_rng(0)
        for d in whole.get_input_details():
            whole.set_tensor(d["index"], rng.integers(1, 5, d["shape"]).astype(d["dtype"]))
        whole.invoke()
        assert answer == [whole.get_tensor(d["index"]).tolist() for d in whole.get_output_details()]


def test_what_it_holds_is_what_the_models_use(tmp_path):
    model(("ADD", 1, None, "FLOAT32", 2), ("NEG", 1, None, "FLOAT32", 1)).write(tmp_path / "a.tflite")
    model(("ADD", 4, None, "FLOAT32", 2)).write(tmp_path / "b.tflite")
    figures = result_of("resolver", tmp_path / "a.tflite", tmp_path / "b.tflite", "--json")
    assert figures["builtins"] == {"ADD": [1, 4], "NEG": [1, 1]}
    assert figures["families"] == ["elementwise"]
    assert figures["ok"] is True
    scope = {}
    exec(opwright("resolver", tmp_path / "a.tflite", tmp_path / "b.tflite").stdout, scope)
    resolver = scope["Resolver"]()
    assert [resolver.find_op("ADD", v) is not None for v in range(6)] == [False, True, True, True, True, False]
    assert resolver.find_op("MUL") is None
    with pytest.raises(ValueError, match="Didn't find op for builtin opcode 'MUL'"):
        Interpreter(model_content=model(("MUL", 1, None, "FLOAT32", 2)), op_resolver=resolver)


def test_subgraphs_count():
    result = used_by([ow.lite.Model.read(CORPUS / "nested_control.tflite")])
    assert {"WHILE", "IF", "ADD", "LESS"} <= set(result.builtins)


def test_custom_operators_are_arguments(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    scope = {}
    exec((tmp_path / "mine.py").read_text(), scope)
    mine = scope["Mine"]
    customs(("CheckTestMine", 1), ("CheckTestMine", 2), ("a.b", 1), ("for", 1)).write(tmp_path / "m.tflite")
    text = opwright("resolver", tmp_path / "m.tflite").stdout
    assert max(map(len, text.splitlines())) <= 100
    exec(text, scope)
    make = scope["Resolver"]
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"not given: CheckTestMine, a\.b, for(.|\n)*Resolver\("):
        make()
    with pytest.raises(ow.errors.InvalidArgumentError, match="not given: for"):
        make(CheckTestMine=mine, a_b=mine)
    with pytest.raises(TypeError):
        make(Nothing=mine)
    old = ow.lite.Registration(invoke=lambda c, n: None)
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"version 2 of custom operator CheckTestMine"):
        make(CheckTestMine=old, a_b=mine, op_for=mine)
    interpreter = Interpreter(
        model_path=str(tmp_path / "m.tflite"), op_resolver=make(CheckTestMine=mine, a_b=mine, op_for=mine)
    )
    interpreter.allocate_tensors()


def test_flex_operators_that_the_framework_runs_need_no_argument(tmp_path):
    output = tmp_path / "my_resolver.py"
    figures = result_of("resolver", CORPUS / "flex.tflite", "-o", output, "--json")
    assert figures["flex"] == ["FlexErf", "FlexMatrixInverse"]
    assert figures["customs"] == {}
    scope = {}
    exec(output.read_text(), scope)
    Interpreter(model_path=str(CORPUS / "flex.tflite"), op_resolver=scope["Resolver"]()).allocate_tensors()


def test_the_module_is_the_same_each_time_and_replaced_whole(tmp_path, monkeypatch):
    path, output = CORPUS / "slicing.tflite", tmp_path / "made.py"
    output.write_text("old")
    opwright("resolver", path, "-o", output)
    first = output.read_bytes()
    opwright("resolver", path, "-o", output)
    assert output.read_bytes() == first == opwright("resolver", path).stdout.encode()
    assert os.listdir(tmp_path) == ["made.py"]
    ast.parse(first)
    assert max(map(len, first.decode().splitlines())) <= 120
    assert str(CORPUS).encode() not in first

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    assert "No space left" in opwright("resolver", path, "-o", output, exit_code=3).stderr
    assert os.listdir(tmp_path) == ["made.py"]
    assert output.read_bytes() == first


def test_exit_codes(tmp_path):
    late = tmp_path / "late.tflite"
    model(("NEG", 40, None, "FLOAT32", 1), ("CONCAT_EMBEDDINGS", 1, None, "FLOAT32", 1)).write(late)
    result = opwright("resolver", late, CORPUS / "slicing.tflite", "-o", tmp_path / "r.py", exit_code=1)
    assert "late.tflite: NEG version 40, node 0" in result.stderr
    assert "late.tflite: CONCAT_EMBEDDINGS version 1, node 1" in result.stderr
    assert not (tmp_path / "r.py").exists()
    assert result_of("resolver", late, "--json", exit_code=1)["ok"] is False
    opwright("resolver", exit_code=2)
    opwright("resolver", tmp_path / "absent.tflite", exit_code=3)
    (tmp_path / "bad.tflite").write_bytes(b"nothing")
    opwright("resolver", tmp_path / "bad.tflite", exit_code=3)
    opwright("resolver", CORPUS / "slicing.tflite", "-o", tmp_path / "no" / "r.py", exit_code=3)
    customs(("Mine", 0)).write(late)
    opwright("resolver", late, exit_code=1)


@pytest.mark.parametrize("name", ['a"b.tflite', "a\\b.tflite", "a\nb.tflite", 'x""".tflite', "模型.tflite"])
def test_names_of_files_are_text(name):
    custom = name.removesuffix(".tflite")
    scope = {}
    exec(module_text([name], used_by([customs((custom, 1), (custom + "?", 1))])), scope)
    assert scope["MODELS"] == (name,)
    assert set(scope["CUSTOMS"]) == {custom, custom + "?"}


def test_a_model_without_operators():
    scope = {}
    exec(module_text(["empty"], used_by([])), scope)
    assert repr(scope["Resolver"]()) == "<Resolver of 0 builtin and 0 custom operators>"


def test_help_has_two_examples():
    assert opwright("resolver", "--help").stdout.count("  opwright resolver ") == 2
