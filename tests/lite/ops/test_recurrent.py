"""LSTM, RNN and SVDF, float, hybrid and on integers: our reference kernels' answers over several runs are the official
kernels'. The compiled engine's: compiled/test_compiled_recurrent.py."""

from __future__ import annotations

import numpy as np
import official
import pytest
from drawn import gap_of
from hypothesis import given, settings
from hypothesis import strategies as st
from recurrent_models import MODELS, ROWS, answers

from opwright.core.errors import OpError
from opwright.lite import Interpreter
from thorough import examples

pytestmark = pytest.mark.usefixtures("reference_engine")


@pytest.mark.parametrize(("name", "kind"), ROWS, ids=str)
@settings(max_examples=examples(12))
@given(seed=st.integers(0, 2**31))
def test_agrees_with_the_official_kernels(name, kind, seed):
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    content = MODELS[name][0](seed, kind).to_bytes()
    resolver = peer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES  # the other lacks version 4 of one
    theirs = peer.Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    for actual, expected in zip(answers(Interpreter(model_content=content)), answers(theirs), strict=True):
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        gap = gap_of(actual, expected)
        if kind == "integer":
            assert gap.max() <= ("gates of int8" in name)  # these are computed in float32: a step
        elif kind == "float":
            assert gap.max() < 1e-5
        else:  # a state that lies between two integers may become either, by its last bit, and later states follow it
            assert gap.max() < 0.05
            assert gap.mean() < 1e-3


@pytest.mark.parametrize(("name", "kind"), ROWS, ids=str)
def test_state_goes_back_as_officially(name, kind):
    peer = pytest.importorskip("ai_edge_litert.interpreter")
    content = MODELS[name][0](6, kind).to_bytes()
    resolver = peer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    both = (
        Interpreter(model_content=content),
        peer.Interpreter(model_content=content, experimental_op_resolver_type=resolver),
    )
    kept = [answers(i, 2) for i in both]
    for i in both:
        i.reset_all_variables()
    again = [answers(i, 2, allocate=False) for i in both]
    for first, after, expected in zip(kept[0], again[0], again[1], strict=True):
        assert np.array_equal(first, after)
        allowed = 1e-5 if kind != "integer" else float("gates of int8" in name)
        assert gap_of(after, expected).max(initial=0) <= allowed


REFUSED = {  # what is broken in a model that runs, and what the error says
    "a state that is not a variable": (lambda m: setattr(_state(m), "is_variable", False), "not a variable tensor"),
    "a state of another batch": (lambda m: setattr(_state(m), "shape", [9, 2]), "does not fit input and weights"),
    "weights of another size": (lambda m: setattr(_tensor(m, 2), "shape", [1, 1]), "has the wrong shape"),
    "a gate left out": (lambda m: m.subgraphs[0].operators[0].inputs.__setitem__(2, -1), "wrong number of inputs"),
}


def _tensor(model, place):
    return model.subgraphs[0].tensors[model.subgraphs[0].operators[0].inputs[place]]


def _state(model):
    return _tensor(model, 18)


@pytest.mark.parametrize("label", REFUSED)
def test_refuses_what_does_not_fit(label):
    model = MODELS["UNIDIRECTIONAL_SEQUENCE_LSTM"][0](1, "float")
    change, says = REFUSED[label]
    change(model)
    with pytest.raises(OpError, match=says):
        answers(Interpreter(model_content=model.to_bytes()))


def test_variables_of_int8_begin_at_their_zero_point_and_go_back_there():
    interpreter = Interpreter(model_content=official.case("lstm_int8").bytes())
    first = answers(interpreter, 2)
    interpreter.reset_all_variables()
    assert interpreter.get_tensor(14).tolist() == [[-29] * 4]
    np.testing.assert_array_equal(first, answers(interpreter, 2))


@pytest.mark.parametrize("name", ["lstm", "lstm_dynamic_range", "lstm_int8"])
def test_files_of_the_official_converter(name):
    case = official.case(name)
    interpreter = Interpreter(model_content=case.bytes())
    for call in case.calls:
        actual = interpreter.get_signature_runner(call.signature)(**call.inputs)
        for key, expected in call.outputs.items():
            np.testing.assert_allclose(actual[key], expected, rtol=2e-6, atol=1e-6)
