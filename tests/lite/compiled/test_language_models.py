"""Language models with caches: prefill and decoding steps against the whole sequence in float64, and officially."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_kit import engine, plan_of

sys.path.append(str(Path(__file__).parents[1] / "interpreter"))
sys.path.append(str(Path(__file__).parents[1] / "state"))

from language_models import KINDS, LanguageModel
from state_harness import official, ours

from opwright.core import flags

STEPS = 5


@pytest.fixture(autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with engine(), flags.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


def generated(interpreter: Any, model: LanguageModel, tokens: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The logits of all tokens, the first of which `prefill` reads at once, and the caches after them."""
    prefill, decode = map(interpreter.get_signature_runner, ("prefill", "decode"))
    n = model.tokens
    outputs = prefill(**model.inputs(tokens[:n], 0), **model.caches())
    logits = [np.array(outputs.pop("logits"))[0]]
    for i in range(n, len(tokens)):
        outputs = decode(**model.inputs(tokens[i : i + 1], i), **outputs)
        logits.append(np.array(outputs.pop("logits"))[0])
    return np.concatenate(logits), outputs


def generated_in_place(
    interpreter: Any, model: LanguageModel, tokens: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The same with the caches bound: both signatures read and write one array each."""
    caches, n = model.caches(), model.tokens
    runners = [interpreter.get_signature_runner(name) for name in ("prefill", "decode")]
    for run in runners:
        run.bind(caches, caches)
        tensors = interpreter._subgraphs[run._subgraph].tensors
        for name, cache in caches.items():
            assert tensors[run._inputs[name]].array is cache
            assert tensors[run._outputs[name]].array is cache
    logits = [runners[0](**model.inputs(tokens[:n], 0))["logits"][0]]
    for i in range(n, len(tokens)):
        outputs = runners[1](**model.inputs(tokens[i : i + 1], i))
        assert all(outputs[name] is cache for name, cache in caches.items())
        logits.append(outputs["logits"][0])
    return np.concatenate(logits), caches


@pytest.mark.parametrize("kind", [k if k != "int4" else pytest.param(k, marks=pytest.mark.slow) for k in KINDS])
def test_prefill_and_steps_are_the_whole_sequence(kind: str) -> None:
    model = LanguageModel(kind)
    content = model.content()
    tokens = np.random.default_rng(1).integers(0, model.vocabulary, model.tokens + STEPS)
    interpreter = ours(content)
    logits, caches = generated(interpreter, model, tokens)
    official_logits, official_caches = generated(official(content), model, tokens)
    expected = model.logits(tokens)
    scale = np.abs(expected).max()
    if kind == "float32":
        np.testing.assert_allclose(logits, expected, atol=1e-5 * scale)
        for name, cache in caches.items():
            np.testing.assert_allclose(cache, official_caches[name], atol=2e-5)
    else:  # rows are rounded to 8 bits in both; officially the range of a row is divided into as many steps
        error, official_error = (np.sqrt(np.square(x - expected).mean()) for x in (logits, official_logits))
        assert error < 0.02 * scale
        assert error < 2 * official_error
    for index in range(2):
        assert plan_of(interpreter, index) == ["Opwright"]  # a signature is one native call
    bound, both = generated_in_place(interpreter, model, tokens)
    np.testing.assert_array_equal(bound, logits)
    for name, cache in caches.items():
        np.testing.assert_array_equal(both[name], cache)


def test_plans_of_all_signatures_are_kept() -> None:
    model = LanguageModel("int8")
    content = model.content()
    tokens = np.random.default_rng(1).integers(0, model.vocabulary, model.tokens + STEPS)
    results = []
    for planned in (True, False):
        interpreter = ours(content)
        results.append(generated(interpreter, model, tokens)[0])
        assert ("_planner" in vars(interpreter._engine.delegate)) is planned
        for index, subgraph in enumerate(interpreter._subgraphs):  # no plans for decompositions, which nothing calls
            assert (plan_of(interpreter, index) == ["Opwright"]) is any(
                d.subgraph_index == subgraph.index for d in interpreter._model.signature_defs
            )
    np.testing.assert_array_equal(*results)


def test_later_interpreters_leave_weights_of_four_bits_packed() -> None:
    model = LanguageModel("int4")
    content = model.content()
    tokens = np.random.default_rng(1).integers(0, model.vocabulary, model.tokens + 1)
    results = [generated(ours(content), model, tokens)[0]]
    interpreter = ours(content)  # with the plans of the first one
    results.append(generated(interpreter, model, tokens)[0])
    np.testing.assert_array_equal(*results)
    packed = {t.name: t for s in interpreter._subgraphs for t in s.tensors if t.type.name == "INT4"}
    assert packed
    assert not any(t.is_held for t in packed.values())
    for name, t in packed.items():
        real = t.array.reshape(*model._scales[name].shape[:-1], -1) * model._scales[name]
        np.testing.assert_array_equal(real.reshape(t.shape), model.weights[name])
    assert all(t.is_held for t in packed.values())


def test_steps_alone_are_the_whole_sequence() -> None:
    model = LanguageModel("float32", tokens=1, entries=9, groups=1)
    tokens = np.random.default_rng(2).integers(0, model.vocabulary, 9)
    logits, _ = generated(ours(model.content()), model, tokens)
    expected = model.logits(tokens)
    np.testing.assert_allclose(logits, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("groups", [2, 1])
def test_a_thousand_steps_of_the_most_likely_tokens_are_the_official_ones(groups: int) -> None:
    """Both sequences agree with float64."""
    model = LanguageModel("float32", size=128, inner=320, heads=8, groups=groups, vocabulary=512, entries=1012)
    content, prompt = model.content(), np.random.default_rng(3).integers(0, model.vocabulary, model.tokens)
    sequences = []
    for interpreter in (ours(content), official(content)):
        prefill, decode = map(interpreter.get_signature_runner, ("prefill", "decode"))
        tokens, outputs = list(prompt), prefill(**model.inputs(prompt, 0), **model.caches())
        for i in range(model.tokens, model.entries):
            tokens.append(int(np.array(outputs.pop("logits"))[0, -1].argmax()))
            outputs = decode(**model.inputs(np.array(tokens[-1:]), i), **outputs)
        sequences.append(tokens)
    assert sequences[0] == sequences[1]
    expected = model.logits(np.array(sequences[0]))[model.tokens - 1 : -1].argmax(1)
    assert sequences[0][model.tokens :] == expected.tolist()
