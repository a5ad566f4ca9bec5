"""The benchmarks' oracle of float64: models computed without the roundings of float32. The oracle here is NumPy."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks import exact

import opwright as ow
from opwright import lite

RNG = np.random.default_rng(3)
W = RNG.standard_normal((7, 5), np.float32)
X = RNG.standard_normal((4, 7), np.float32)


def model(function, *arrays, **options):
    specs = [ow.TensorSpec(a.shape, ow.as_dtype(a.dtype)) for a in arrays]
    concrete = ow.function(function, input_signature=specs).get_concrete_function()
    converter = lite.TFLiteConverter.from_concrete_functions([concrete])
    for name, value in options.items():
        setattr(converter, name, value)
    return converter.convert()


def test_results_have_the_digits_of_float64():
    content = model(lambda x: ow.reduce_sum(ow.exp(ow.matmul(x, ow.constant(W))), axis=1), X)
    (actual,) = exact.evaluated(content, [X])
    expected = np.exp(X.astype(np.float64) @ W.astype(np.float64)).sum(axis=1)
    np.testing.assert_allclose(actual, expected, rtol=1e-14)
    assert 1e-9 < exact.error_of([actual.astype(np.float32)], [expected]) < 1e-7


def test_the_interpreter_is_as_near_as_float32_can_be():
    content = model(lambda x: ow.tanh(ow.matmul(x, ow.constant(W))), X)
    interpreter = lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
    interpreter.invoke()
    assert exact.error_of(exact.results(interpreter), exact.evaluated(content, [X])) < 1e-6


def test_weights_of_float16_are_the_numbers_they_stand_for():
    content = model(
        lambda x: ow.matmul(x, ow.constant(W)),
        X,
        optimizations=[lite.Optimize.DEFAULT],
        target_spec=lite.TargetSpec(supported_types=[ow.float16]),
    )
    (result,) = exact.evaluated(content, [X])
    halves = W.astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(result, X.astype(np.float64) @ halves, rtol=1e-13)


def test_what_rounds_to_integers_is_refused():
    content = model(
        lambda x: ow.matmul(x, ow.constant(W)),
        X,
        optimizations=[lite.Optimize.DEFAULT],
        representative_dataset=lambda: iter([[X]]),
    )
    with pytest.raises(exact.Unevaluated, match="integers"):
        exact.evaluated(content, [X])


def test_composites_and_weights_by_block_have_the_digits_of_float64(monkeypatch):
    lite_tests = Path(__file__).parent / "lite"
    for folder in (lite_tests, lite_tests / "interpreter", lite_tests / "compiled"):
        monkeypatch.syspath_prepend(folder)
    from language_models import LanguageModel

    language = LanguageModel("int4")
    tokens = np.random.default_rng(1).integers(0, language.vocabulary, language.tokens)
    inputs = language.inputs(tokens, 0) | language.caches()
    parsed = lite.Model.read(language.content())
    (signature,) = [s for s in parsed.signature_defs if s.signature_key == "prefill"]
    names = {row.tensor_index: row.name for row in signature.inputs}
    graph = parsed.subgraphs[signature.subgraph_index]
    arrays = [inputs[names[i]] for i in graph.inputs]
    logits, *_ = exact.evaluated(parsed, arrays, signature.subgraph_index)
    np.testing.assert_allclose(logits[0], language.logits(tokens), rtol=1e-8, atol=1e-8)
