"""Errors of models that cannot run contain the official interpreter's recognizable words, and are errors of its
class, raised where it raises. A row for each of its texts; where it is installed, it is asked as well.
"""

from __future__ import annotations

import re

import pytest
from format_models import add_model

from opwright import lite
from opwright.core import errors
from opwright.lite.format import Model, objects, schema
from opwright.lite.format.versions import operator_code


def changed(change):
    """add_model's bytes after a change to the model."""

    def make() -> bytes:
        model = add_model()
        change(model)
        return model.to_bytes()

    return make


def custom(name):
    def change(m):
        m.operator_codes = [objects.OperatorCode(builtin_code=32, deprecated_builtin_code=32, custom_code=name)]
        m.subgraphs[0].operators[0].builtin_options = None

    return changed(change)


def code(number, version=1):
    return changed(
        lambda m: setattr(
            m,
            "operator_codes",
            [objects.OperatorCode(builtin_code=number, deprecated_builtin_code=min(number, 127), version=version)],
        )
    )


def missing_branch(m):
    m.operator_codes = [operator_code("IF")]
    m.subgraphs[0].tensors[0].type, m.subgraphs[0].tensors[0].shape = schema.TensorType.BOOL, [1]
    m.subgraphs[0].operators[0].builtin_options = objects.IfOptions(then_subgraph_index=5, else_subgraph_index=6)


def cut() -> bytes:
    return add_model().to_bytes()[:200]


def identifier() -> bytes:
    data = bytearray(add_model().to_bytes())
    data[4:8] = b"XXXX"
    return bytes(data)


def set_in(path, value):
    """A change of one field: "subgraphs.0.tensors.0.type"."""

    def change(model):
        *way, last = path.split(".")
        at = model
        for step in way:
            at = at[int(step)] if step.isdigit() else getattr(at, step)
        setattr(at, last, value)

    return changed(change)


ROWS = {  # case: how the bytes are made, when it is raised, words
    "custom": (custom("MyOp"), "allocate", "Encountered unresolved custom op: MyOp"),
    "custom instructions": (
        custom("MyOp"),
        "allocate",
        "See instructions: https://www.tensorflow.org/lite/guide/ops_custom",
    ),
    "custom node": (custom("MyOp"), "allocate", r"Node number 0 \(MyOp\) failed to prepare"),
    "flex": (
        custom("FlexNoSuchOp"),
        "allocate",
        r"Select TensorFlow op\(s\), included in the given model, is\(are\) not supported by this interpreter. "
        "Make sure you apply/link the Flex delegate before inference.",
    ),
    "version": (
        code(0, 99),
        "open",
        "Didn't find op for builtin opcode 'ADD' version '99'. An older version of this builtin might be "
        "supported. Are you using an old (TFLite binary|Opwright) with a newer model",
    ),
    "version 0": (code(0, 0), "open", "Didn't find op for builtin opcode 'ADD' version '0'"),
    "registration": (code(0, 99), "open", "Registration failed."),
    "builtin beyond": (
        code(300),
        "open",
        "Op builtin_code out of range: 300. Are you using old TFLite binary with newer model",
    ),
    "custom without name": (custom(None), "open", "Operator with CUSTOM builtin_code has no custom_code."),
    "cut": (cut, "open", "The model is not a valid Flatbuffer buffer"),
    "short": (lambda: b"\x18\0\0\0TF", "open", "The model is not a valid Flatbuffer buffer"),
    "identifier": (identifier, "open", "The model is not a valid Flatbuffer buffer"),
    "schema version": (
        set_in("version", 2),
        "open",
        "Model provided is schema version 2 not equal to supported version 3.",
    ),
    "no subgraph": (set_in("subgraphs", []), "open", "No subgraph in the model."),
    "no buffers": (set_in("buffers", objects.TableList((), True)), "open", "No buffers in the model."),
    "opcode index": (
        set_in("subgraphs.0.operators.0.opcode_index", 7),
        "open",
        "Missing registration for opcode_index 7",
    ),
    "no tensors": (
        set_in("subgraphs.0.tensors", objects.TableList((), True)),
        "open",
        "Did not get tensors in subgraph 0.",
    ),
    "buffer index": (
        set_in("subgraphs.0.tensors.0.buffer", 5),
        "open",
        r"Tensor 0 specifies out of range buffer 5 \(only 3 buffers\).",
    ),
    "type": (set_in("subgraphs.0.tensors.0.type", 99), "open", "Unsupported data type 99 in tensor"),
    "constant too small": (
        set_in("subgraphs.0.tensors.1.shape", [3, 3]),
        "open",
        "Tensor 1 is invalidly specified in schema",
    ),
    "tensor index": (
        set_in("subgraphs.0.operators.0.inputs", [0, 9]),
        "allocate",
        "Invalid tensor index 9 in node inputs. The subgraph has 3 tensors",
    ),
    "branch": (changed(missing_branch), "allocate", "subgraph"),
}
EARLIER = {"tensor index", "branch"}  # said when the model is opened, not when tensors are allocated


def failure(interpreter_of, data: bytes):
    """(when, error) of the first failure."""
    try:
        interpreter = interpreter_of(data)
    except Exception as error:
        return "open", error
    try:
        interpreter.allocate_tensors()
    except Exception as error:
        return "allocate", error
    return "ran", AssertionError("it runs")


@pytest.mark.parametrize("case", ROWS)
def test_ours_reports_it(case):
    make, when, words = ROWS[case]
    result, error = failure(lambda data: lite.Interpreter(model_content=data), make())
    assert isinstance(error, errors.OpError)
    assert isinstance(error, ValueError if result == "open" else RuntimeError)
    assert result == ("open" if case in EARLIER else when)
    assert re.search(words, str(error))


@pytest.mark.parametrize("case", [case for case in ROWS if case != "no tensors"])
def test_the_official_interpreter_does(case):
    official = pytest.importorskip("ai_edge_litert.interpreter")
    kind = official.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    make, when, words = ROWS[case]
    result, error = failure(
        lambda data: official.Interpreter(model_content=data, experimental_op_resolver_type=kind), make()
    )
    assert (result, type(error)) == (when, ValueError if when == "open" else RuntimeError)
    assert re.search(words, str(error))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model_path": "none.tflite"}, "Could not open '.*none.tflite'.The model allocation is null/empty"),
        ({"model_path": "empty.tflite"}, "mmap of size 0 requested.The model allocation is null/empty"),
        ({}, "`model_path` or `model_content` must be specified."),
    ],
    ids=["missing", "empty", "nothing"],
)
def test_files_that_are_none(given, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.tflite").touch()
    with pytest.raises(ValueError, match=words):
        lite.Interpreter(**given)


def test_verify_reports_the_same_as_the_interpreter():
    for case, (make, when, words) in ROWS.items():
        if when == "open" and not case.startswith(("version", "registration")):
            with pytest.raises(errors.OpError, match=words):
                Model.read(make()).verify()
