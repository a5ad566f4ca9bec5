"""The examples run and give what they should: of text TensorFlow's answers (make_text_expected.py), else NumPy's."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lite_kit import op_names

import opwright as ow
from opwright import lite

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = json.loads((Path(__file__).parent / "text_expected.json").read_text("utf-8"))


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.slow if p.stem == "layer_norm" else ()) for p in sorted(EXAMPLES.glob("*.py"))],
    ids=lambda p: p.stem,
)  # layer_norm takes time by its many runs
def test_it_runs_as_it_stands(path, tmp_path):
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout


# ---- text -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text_ops():
    return loaded("text_ops")


@pytest.fixture(scope="module")
def reader(text_ops):
    return lite.Interpreter(model_content=text_ops.convert(), custom_ops=text_ops.OPERATORS)


def raw(items):
    array = np.empty(len(items), object)
    array[:] = [item.encode("latin-1") for item in items]
    return array


@pytest.mark.parametrize("batch", EXPECTED["batches"], ids=lambda b: f"{len(b['text'])} texts")
def test_numbers_of_words_in_the_file_are_those_of_tensorflow(reader, batch):
    actual = reader.get_signature_runner("ids")(text=raw(batch["text"]))
    for key, expected in batch["ids"].items():
        np.testing.assert_array_equal(actual[key], np.array(expected, np.int64).reshape(actual[key].shape))


@pytest.mark.parametrize("batch", EXPECTED["batches"], ids=lambda b: f"{len(b['text'])} texts")
def test_words_and_runs_of_words_are_those_of_tensorflow(text_ops, batch):
    tokens, splits = text_ops.WhitespaceTokens(raw(batch["text"]), lower=True)
    runs = {
        "tokens": (tokens, splits),
        "pairs": text_ops.RaggedNgrams(tokens, splits),
        "threes": text_ops.RaggedNgrams(tokens, splits, width=3, separator="_"),
    }
    for key, (values, ends) in runs.items():
        assert values.numpy().tolist() == raw(batch[key]["values"]).tolist(), key
        assert ends.numpy().tolist() == batch[key]["splits"], key


def test_words_between_any_white_space_of_unicode_are_those_of_tensorflow(text_ops):
    expected = EXPECTED["unicode"]
    tokens, splits = text_ops.WhitespaceTokens(raw(expected["text"]), unicode=True)
    assert tokens.numpy().tolist() == raw(expected["tokens"]["values"]).tolist()
    assert splits.numpy().tolist() == expected["tokens"]["splits"]


def test_scores_are_the_formula(text_ops, reader):
    texts = [s.encode() for s in text_ops.SENTENCES]
    model = text_ops.Reader()
    result = reader.get_signature_runner("scores")(text=text_ops.words(texts))["scores"]
    known = {word.encode(): i for i, word in enumerate(text_ops.VOCABULARY)}
    for text, row in zip(texts, result, strict=True):
        tokens = text.lower().split()
        items = tokens + [b" ".join(pair) for pair in itertools.pairwise(tokens)]
        vectors = model.vectors.numpy().astype(np.float64)[[known.get(i, len(known)) for i in items]]
        logits = (vectors.mean(0) if items else np.zeros(vectors.shape[1])) @ model.weights.numpy()
        e = np.exp(logits - logits.max())
        np.testing.assert_allclose(row, e / e.sum(), rtol=1e-5)


def test_one_interpreter_reads_batches_of_any_size(text_ops, reader):
    run = reader.get_signature_runner("ids")
    for texts in (["a"], ["the cat", "sat", ""], [], ["very good film"] * 40):
        result = run(text=raw(texts))
        assert result["words"].shape == (len(texts), max((len(t.split()) for t in texts), default=0))


@pytest.mark.parametrize("splits", [[1, 3], [0, 2], [0, 4, 3], [], [0, -1, 3]])
def test_splits_that_are_none_are_errors_that_name_the_operator(text_ops, splits):
    with pytest.raises(ow.errors.InvalidArgumentError, match="RaggedNgrams: the splits are not those of the words"):
        text_ops.RaggedNgrams(["a", "b", "c"], np.array(splits, np.int64))


def test_its_operators_are_well_formed(text_ops):
    assert [problem for op in text_ops.OPERATORS for problem in ow.ops.lint(op)] == []


# ---- layer normalisation --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def layer_norm():
    return loaded("layer_norm")


def test_three_normalisations_are_three_operators_that_compute_the_same(layer_norm):
    network = layer_norm.model(width=40)
    unfused, _ = layer_norm.convert(network, [])
    fused, (result,) = layer_norm.convert(network, [layer_norm.row_norm])
    assert result.count == 3
    assert op_names(fused) == ["RowNorm", "FULLY_CONNECTED"] * 3
    assert len(op_names(unfused)) > 20
    x = np.random.default_rng(1).normal(size=(7, 40)).astype(np.float32)
    _, y = layer_norm.seconds_a_run(fused, x, runs=1, custom_ops=[layer_norm.RowNorm])
    _, z = layer_norm.seconds_a_run(unfused, x, runs=1)
    np.testing.assert_allclose(y, network(x).numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (3, 16), (2, 3, 17), (5, 1000), (0, 8)])
def test_the_kernel_is_the_formula(layer_norm, shape):
    rng = np.random.default_rng(0)
    x, gamma, beta = (rng.normal(size=s).astype(np.float32) * 3 for s in (shape, shape[-1:], shape[-1:]))
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 0.01) * gamma + beta
    actual = layer_norm.RowNorm(x, gamma, beta, epsilon=0.01).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-5)
    assert ow.ops.lint(layer_norm.RowNorm) == []
