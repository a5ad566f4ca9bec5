"""Quantised attention masks, padding of -inf, and divisors next to 0: files answer as float64 does, here and in the
official interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from quantize_harness import convert, litert, operators, run, snr

import opwright as ow

RANDOM = np.random.RandomState(0)
X = RANDOM.randn(2, 12, 16).astype(np.float32)
IMAGES = RANDOM.randn(2, 6, 5, 3).astype(np.float32)
LENGTHS = np.array([7, 12])
KEYS = (np.arange(12) < LENGTHS[:, None]).astype(np.float32)[:, None]  # 1 for keys that count
CAUSAL = np.tril(np.ones((12, 12), bool))
NEVER = np.float32(-np.inf)


def softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max(-1, keepdims=True))
    result: np.ndarray = e / e.sum(-1, keepdims=True)
    return result


def attention(keep: np.ndarray, times: int = 1) -> np.ndarray:
    x = X.astype(np.float64)
    for _ in range(times):
        x = softmax(np.where(keep, x @ x.transpose(0, 2, 1) / 4, -np.inf)) @ x
    return x


def attend(x: Any, mask: Callable[[Any], Any], times: int = 1) -> Any:
    for _ in range(times):
        x = ow.matmul(ow.nn.softmax(mask(ow.matmul(x, x, transpose_b=True) * 0.25)), x)
    return x


def computed(where: bool, least: float) -> Callable[..., Any]:
    """Two layers with one mask, computed from an input: 0 for keys that count, the least number for others."""

    def model(x: Any, keys: Any) -> Any:
        mask = ow.where(keys > 0.5, ow.constant(0.0), ow.constant(least)) if where else (1.0 - keys) * least
        return attend(x, lambda scores: scores + mask, 2)

    return model


def pooled(x: Any) -> Any:
    """Maxima of an image of channels first, padded by -inf."""
    padded = ow.pad(ow.nn.silu(x), [[0, 0], [0, 0], [1, 1], [1, 1]], constant_values=float("-inf"))
    return ow.nn.max_pool2d(ow.transpose(padded, [0, 2, 3, 1]), (2, 2), (1, 1), "VALID")


def maxima() -> np.ndarray:
    x = IMAGES.astype(np.float64)
    x = np.pad(x / (1 + np.exp(-x)), [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    x = np.stack([x[:, :, i : i + x.shape[2] - 1, j : j + x.shape[3] - 1] for i in (0, 1) for j in (0, 1)]).max(0)
    return x.transpose(0, 2, 3, 1)


def masked_twice(x: Any, keys: Any) -> Any:
    """Two masks of the least number, whose sum is -inf."""
    least = np.finfo(np.float32).min
    return attend(x, lambda scores: ow.where(CAUSAL, scores, least) + (1.0 - keys) * least)


ADDED = np.where(CAUSAL, 0, NEVER).astype(np.float32)
MODELS: dict[str, tuple[Callable[..., Any], list[np.ndarray], np.ndarray]] = {
    "-inf added": (lambda x: attend(x, lambda s: s + ADDED), [X], attention(CAUSAL)),
    "-inf selected": (lambda x: attend(x, lambda s: ow.where(CAUSAL, s, NEVER), 2), [X], attention(CAUSAL, 2)),
    "-inf computed": (computed(True, float("-inf")), [X, KEYS], attention(KEYS > 0, 2)),
    "-1e4 computed": (computed(False, -1e4), [X, KEYS], attention(KEYS > 0, 2)),
    "least computed": (computed(False, float(np.finfo(np.float32).min)), [X, KEYS], attention(KEYS > 0, 2)),
    "two masks": (masked_twice, [X, KEYS], attention(CAUSAL & (KEYS > 0))),
    "-1e9 given": (lambda x, m: attend(x, lambda s: s + m), [X, (1 - KEYS) * np.float32(-1e9)], attention(KEYS > 0)),
    "padding": (pooled, [IMAGES], maxima()),
}


@pytest.mark.parametrize("name", MODELS)
def test_masks_of_scores_and_padding_below_maxima_take_no_part_of_the_range(name: str) -> None:
    function, inputs, expected = MODELS[name]
    content = convert(function, *(a.shape for a in inputs), samples=[inputs])
    moved = ("SOFTMAX", "BATCH_MATMUL", "ADD", "SELECT_V2", "MAX_POOL_2D")
    own = ow.lite.Interpreter(model_content=content)
    own.allocate_tensors()
    for interpreter in (litert(content), own):
        assert snr([([expected], run(interpreter, inputs))]) > 25
        for node in own._get_ops_details():
            if node["op_name"] in moved:
                types = {t["index"]: t["dtype"] for t in own.get_tensor_details()}
                assert types[node["outputs"][0]] is np.int8


def test_values_of_minus_infinity_that_others_read_remain_float() -> None:
    def model(x: Any) -> Any:
        scores = ow.where(CAUSAL, ow.matmul(x, x, transpose_b=True), NEVER)
        return ow.matmul(ow.nn.softmax(scores), x), ow.exp(scores)

    content = convert(model, X.shape, samples=[[X]])
    scores = np.where(CAUSAL, X.astype(np.float64) @ X.transpose(0, 2, 1), -np.inf)
    expected = [softmax(scores) @ X, np.exp(scores)]
    assert "SELECT_V2" in operators(content)
    for a, b in zip(run(litert(content), [X]), expected, strict=True):
        assert a[:, 0].shape == b[:, 0].shape
        assert snr([([b], [a])]) > 15
    assert not run(litert(content), [X])[1][:, ~CAUSAL].any()


def test_divisors_that_a_constant_keeps_above_zero_remain_so() -> None:
    def model(x: Any) -> Any:
        centred = x - ow.reduce_mean(x, -1, keepdims=True)
        variance = ow.reduce_mean(ow.square(centred), -1, keepdims=True)
        return centred / ow.sqrt(variance + 1e-6), x / ow.maximum(
            ow.sqrt(ow.reduce_sum(x * x, -1, keepdims=True)), 1e-6
        )

    rows = X * np.where(np.arange(12) < 2, 1e-4, 1.0).astype(np.float32)[:, None]
    x = rows.astype(np.float64)
    centred = x - x.mean(-1, keepdims=True)
    expected = [centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-6)]
    expected.append(x / np.sqrt(np.square(x).sum(-1, keepdims=True)))
    content = convert(model, X.shape, samples=[[rows]])
    own = ow.lite.Interpreter(model_content=content)
    own.allocate_tensors()
    for interpreter in (litert(content), own):
        for a, b in zip(run(interpreter, [rows]), expected, strict=True):
            assert np.isfinite(a).all()
            assert snr([([b[:, 2:]], [a[:, 2:]])]) > 25  # smaller rows are less than a step of the operand
