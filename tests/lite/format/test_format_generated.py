"""Generated models that are valid: they verify, are written and read equal, and both interpreters run them alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opwright import lite
from opwright.lite.format import Model, objects, schema, versions
from thorough import THOROUGH, examples

UNARY = {"ABS": np.abs, "NEG": np.negative, "RELU": lambda x: np.maximum(x, 0), "FLOOR": np.floor, "SQUARE": np.square}
BINARY = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "MAXIMUM": np.maximum, "MINIMUM": np.minimum}
OPTIONS = {"ADD": objects.AddOptions, "SUB": objects.SubOptions, "MUL": objects.MulOptions}


@st.composite
def valid(draw):
    """(model, its answer to ones): element-wise operators on one shape, with all that may stand around them."""
    shape = draw(st.lists(st.integers(1, 4), max_size=4))
    names = draw(st.lists(st.sampled_from([*UNARY, *BINARY]), min_size=1, max_size=8))
    codes = sorted(set(names))
    tensors = [objects.Tensor(shape=shape, name=draw(st.text(max_size=6)), shape_signature=[-1] * len(shape))]
    buffers, operators, values = [objects.Buffer()], [], [np.ones(shape, np.float32)]

    def tensor(value, data=None):
        index = 0
        if data is not None:
            behind = draw(st.booleans())
            buffers.append(objects.Buffer(data=data, **({"offset": 1, "size": 1} if behind else {})))
            index = len(buffers) - 1
        quantization = draw(st.sampled_from([None, objects.QuantizationParameters()]))
        tensors.append(
            objects.Tensor(
                shape=shape,
                buffer=index,
                name=draw(st.text(max_size=6)),
                has_rank=bool(shape),
                quantization=quantization,
            )
        )
        values.append(value)
        return len(tensors) - 1

    for name in names:
        x = draw(st.integers(0, len(tensors) - 1))
        inputs, arguments = [x], [values[x]]
        if name in BINARY:
            if draw(st.booleans()):
                constant = np.float32(draw(st.integers(-9, 9)) / 4) * np.ones(shape, np.float32)
                y = tensor(constant, constant.reshape(-1).view(np.uint8))
            else:
                y = draw(st.integers(0, len(tensors) - 1))
            inputs, arguments = [x, y], [values[x], values[y]]
        with np.errstate(all="ignore"):
            result = np.asarray((UNARY | BINARY)[name](*arguments), np.float32)
        options = OPTIONS[name]() if name in OPTIONS else None
        operators.append(
            objects.Operator(
                opcode_index=codes.index(name), inputs=inputs, outputs=[tensor(result)], builtin_options=options
            )
        )
    last = len(tensors) - 1
    buffers += [objects.Buffer(data=data) for data in draw(st.lists(st.binary(max_size=40), max_size=2))]  # not used
    signatures = [
        objects.SignatureDef(
            signature_key=key,
            inputs=[objects.TensorMap(name="x", tensor_index=0)],
            outputs=[objects.TensorMap(name="y", tensor_index=last)],
        )
        for key in draw(st.lists(st.text("abc_", min_size=1, max_size=4), unique=True, max_size=2))
    ]
    metadata = [objects.Metadata(name=draw(st.text(max_size=5)), buffer=draw(st.integers(0, len(buffers) - 1)))]
    main = objects.SubGraph(tensors=tensors, inputs=[0], outputs=[last], operators=operators, name="main")
    model = Model(
        operator_codes=[versions.operator_code(name) for name in codes],
        subgraphs=[main],
        buffers=buffers,
        description=draw(st.none() | st.text(max_size=5)),
        signature_defs=signatures,
        metadata=draw(st.sampled_from([[], metadata])),
    )
    return model, values[last]


def answer(interpreter, where: str):
    interpreter.allocate_tensors()
    detail = interpreter.get_input_details()[0]
    interpreter.set_tensor(detail["index"], np.ones(detail["shape"], np.float32))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@settings(max_examples=120 if THOROUGH else 10, suppress_health_check=list(HealthCheck))
@given(valid())
def test_they_verify_read_back_and_run_in_both(made):
    official = pytest.importorskip("ai_edge_litert.interpreter")
    model, want = made
    model.verify()
    data = model.to_bytes()
    again = Model.read(data)
    again.verify()
    assert again == model
    assert again.to_bytes() == data
    kind = official.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    theirs = official.Interpreter(model_content=data, experimental_op_resolver_type=kind)
    np.testing.assert_array_equal(answer(theirs, "official"), want)
    np.testing.assert_array_equal(answer(lite.Interpreter(model_content=data), "ours"), want)
    assert theirs.get_signature_list() == lite.Interpreter(model_content=data).get_signature_list()


BREAKS = {  # what may be broken in any of them, and whether the official interpreter refuses it when it is opened
    "input": lambda m: setattr(m.subgraphs[0], "inputs", [len(m.subgraphs[0].tensors)]),
    "type": lambda m: setattr(m.subgraphs[0].tensors[0], "type", 77),
    "buffer": lambda m: setattr(m.subgraphs[0].tensors[0], "buffer", len(m.buffers)),
    "opcode": lambda m: setattr(m.subgraphs[0].operators[0], "opcode_index", 50),
    "version": lambda m: setattr(m, "version", 4),
    "code": lambda m: setattr(m.operator_codes[0], "builtin_code", schema.BuiltinOperator.STABLEHLO_CASE + 200),
}


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(valid(), st.sampled_from(sorted(BREAKS)))
def test_broken_ones_are_refused_by_both(made, name):
    official = pytest.importorskip("ai_edge_litert.interpreter")
    model, _ = made
    BREAKS[name](model)
    data = model.to_bytes()
    for interpreter in (official.Interpreter, lite.Interpreter):
        with pytest.raises((ValueError, RuntimeError)):
            interpreter(model_content=data).allocate_tensors()
