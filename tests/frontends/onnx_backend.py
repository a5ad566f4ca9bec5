"""The backend test suite that the `onnx` package ships, executed through `from_onnx`, and after conversion.

Lives here: its cases as models, inputs and expected results; `run` and `run_file`; what is out of scope, with reasons.
"""

from __future__ import annotations

import importlib
import re
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

import opwright as ow

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")

OUT_OF_SCOPE = {
    r"FLOAT8|FLOAT4|UINT4|INT2(?!\d)|e4m3|e5m2|e8m0|float4|uint4|uint2|int2(?!\d)": "the catalogue has no such dtype",
    r"test_image_decoder": "files of images are not decoded",
    r"test_training_dropout(?!_zero)|test_bernoulli": "random numbers of NumPy's generator are expected",
    r"test_gradient_of": "the training graph's gradient operator; ow.GradientTape differentiates imported functions",
}
"""Patterns of names, with the reason. `test_backend_scope` counts them."""


NOT_IN_FILES = {
    TensorProto.DOUBLE: "no operator of a file computes float64",
    TensorProto.UINT64: "no operator of a file computes uint64",
    TensorProto.STRING: "no operator of a file computes texts",
}
"""By type of an input or result, why a case cannot become a file."""

NO_TENSOR = "inputs of a file are tensors, not sequences or optional values"


def file_reason(model):
    """Return why a model cannot become a file, or None."""
    for info in (*model.graph.input, *model.graph.output):
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type" and info in model.graph.input:
            return NO_TENSOR
        if kind == "tensor_type" and info.type.tensor_type.elem_type in NOT_IN_FILES:
            return NOT_IN_FILES[info.type.tensor_type.elem_type]
    return None


def reason(name):
    """Return why a case is out of scope, or None."""
    return next((text for pattern, text in OUT_OF_SCOPE.items() if re.search(pattern, name)), None)


def cases(kind):
    """Return the cases of a kind that are in scope."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the suite's own NumPy
        return [case for case in load_model_tests(kind=kind) if reason(case.name) is None]


def node_cases(*modules):
    """Return the cases of single nodes that modules of the suite define when they are imported; all take seconds."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in modules:
            importlib.import_module(f"{node.__name__}.{module}")
    return node._NodeTestCases


def value_of(value):
    """Return a value of the suite as an array, a list of such, or None; texts as bytes."""
    if isinstance(value, TensorProto):
        value = numpy_helper.to_array(value)
    elif isinstance(value, onnx.SequenceProto):
        value = numpy_helper.to_list(value)
    elif isinstance(value, onnx.OptionalProto):
        value = numpy_helper.to_optional(value)
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [value_of(v) for v in value]
    value = np.asarray(value)
    if value.dtype.kind in "OUS":
        texts = np.empty(value.shape, object)
        texts.flat = [t if isinstance(t, bytes) else str(t).encode() for t in value.flat]
        return texts
    return value


def read(path, info):
    """Return the value of a file of the suite."""
    kind = info.type.WhichOneof("value")
    proto = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(kind, TensorProto)()
    proto.ParseFromString(path.read_bytes())
    return value_of(proto)


def sets_of(case):
    """Return the model of a case and its pairs of inputs and expected results."""
    if case.model is not None:
        return case.model, [([value_of(v) for v in i], [value_of(v) for v in o]) for i, o in case.data_sets]
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        inputs = [data / f"input_{i}.pb" for i in range(len(model.graph.input))]  # later ones may have initializers
        outputs = [data / f"output_{i}.pb" for i in range(len(model.graph.output))]
        values = [
            [read(file, v) for file, v in zip(files, infos) if file.exists()]
            for files, infos in ((inputs, model.graph.input), (outputs, model.graph.output))
        ]
        sets.append((values[0], values[1]))
    return model, sets


def check(got, expected, rtol, atol):
    """Compare a result, of any kind, with the expected one."""
    if isinstance(expected, list):
        assert isinstance(got, (list, tuple))
        assert len(got) == len(expected)
        for g, e in zip(got, expected):
            check(g, e, rtol, atol)
        return
    if expected is None:
        assert got is None
        return
    got = value_of(got.numpy() if hasattr(got, "numpy") else got)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if expected.dtype.kind == "O":
        assert (got == expected).all()
        return
    if expected.dtype.kind not in "fciub":
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(got, expected, rtol, atol)


def run(case):
    """Import the model of a case and compare its results. Raises what goes wrong."""
    model, sets = sets_of(case)
    function = ow.from_onnx(model)
    for inputs, expected in sets:
        results = function(*inputs[: len(function.parameters)])
        results = [results] if len(model.graph.output) == 1 else list(results)
        check(results, expected, case.rtol, case.atol)


def without_values(model, arrays):
    """Return a model as a function of its data: inputs that decide about the graph, and these alone, are constants."""
    function = ow.from_onnx(model)
    names = [info.name for info in model.graph.input]
    fixed = {names[i]: arrays[names[i]] for i in sorted(function.specialised)}
    for name in list(fixed):
        fewer = {k: v for k, v in fixed.items() if k != name}
        if not ow.from_onnx(model, values=fewer).specialised:
            fixed = fewer
    return (ow.from_onnx(model, values=fixed) if fixed else function), fixed


def _interpreters(content):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES  # XNNPACK reduces half precision and denormals otherwise
    return (
        ("ours", ow.lite.Interpreter(model_content=content)),
        ("official", Interpreter(model_content=content, experimental_op_resolver_type=plain)),
    )


def run_file(case):
    """Convert the model of a case and compare the results of both interpreters. Raises what goes wrong, with whose."""
    model, sets = sets_of(case)
    names = [info.name for info in model.graph.input]
    function, fixed = without_values(model, dict(zip(names, sets[0][0])))
    concrete = function.get_concrete_function()
    keys = [value.name for value in concrete.graph.inputs]
    content = ow.lite.TFLiteConverter.from_concrete_functions([concrete]).convert()
    for who, interpreter in _interpreters(content):
        runner = interpreter.get_signature_runner()
        for inputs, expected in sets:
            feeds = [stored(v, who) for name, v in zip(names, inputs) if name not in fixed]
            results = runner(**dict(zip(keys, feeds)))
            flat = iter(results[f"output_{i}"] for i in range(len(results)))
            try:
                check([shaped(flat, e) for e in expected], expected, case.rtol, case.atol)
            except AssertionError as error:
                raise AssertionError(f"{who}: {error}") from error


def stored(value, who):
    """Return an array as an interpreter takes it: the official one has int4 as int8."""
    return value.astype(np.int8) if value.dtype.name == "int4" and who == "official" else value


def shaped(flat, expected):
    """Return the next results in the structure of the expected ones; int4, which interpreters return as int8."""
    if isinstance(expected, list):
        return [shaped(flat, e) for e in expected]
    result = next(flat)
    return result.astype(expected.dtype) if expected.dtype.name == "int4" else result


def failures(selected, run=run):
    """Return the errors of the cases that fail, by name."""
    result = {}
    for case in selected:
        try:
            run(case)
        except Exception as error:
            result[case.name] = f"{type(error).__name__}: {error}"[:300]
    return result
