"""Recurrent layers converted, not unrolled: both interpreters agree with the layer.

Not here: loops and lists by themselves (test_convert_control.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from convert_harness import assert_same, converter, f32, official, ours
from lite_kit import op_names

import opwright as ow
from opwright.lite.format import Model
from thorough import sampled

L = ow.keras.layers
X = f32(2, 5, 4)
MASK = np.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]], bool)
BOTH = ((None, None, 4),)
BATCH = ((None, 5, 4),)

# name -> (layer, specs of unknown sizes or None, inputs after x by keyword)
ROWS: dict[str, tuple[Callable[[], Any], Any, dict[str, Any]]] = {
    "simple": (lambda: L.SimpleRNN(3), None, {}),
    "simple_states": (lambda: L.SimpleRNN(3, return_sequences=True, return_state=True), BATCH, {}),
    "lstm": (lambda: L.LSTM(3), None, {}),
    "lstm_sequences": (lambda: L.LSTM(3, return_sequences=True), None, {}),
    "lstm_states": (lambda: L.LSTM(3, return_state=True), BOTH, {}),
    "lstm_batch": (lambda: L.LSTM(3), BATCH, {}),
    "lstm_sequences_batch": (lambda: L.LSTM(3, return_sequences=True), BATCH, {}),
    "lstm_sequences_unknown": (lambda: L.LSTM(3, return_sequences=True), BOTH, {}),
    "lstm_backwards": (lambda: L.LSTM(3, return_sequences=True, go_backwards=True), BATCH, {}),
    "lstm_masked": (lambda: L.LSTM(3, return_sequences=True), None, {"mask": MASK}),
    "lstm_masked_last": (lambda: L.LSTM(3), None, {"mask": MASK}),
    "lstm_masked_zeros": (
        lambda: L.RNN(L.LSTMCell(3), return_sequences=True, zero_output_for_mask=True),
        None,
        {"mask": MASK},
    ),
    "lstm_masked_batch": (lambda: L.LSTM(3, return_sequences=True), BATCH, {"mask": MASK}),
    "gru": (lambda: L.GRU(3), None, {}),
    "gru_sequences": (lambda: L.GRU(3, return_sequences=True), BOTH, {}),
    "gru_not_reset_after": (lambda: L.GRU(3, return_sequences=True, reset_after=False), BATCH, {}),
    "gru_masked": (lambda: L.GRU(3, return_sequences=True), BATCH, {"mask": MASK}),
    "stacked_cells": (lambda: L.RNN([L.LSTMCell(3), L.GRUCell(2)], return_sequences=True), BATCH, {}),
    "bidirectional": (lambda: L.Bidirectional(L.LSTM(3, return_sequences=True)), BATCH, {}),
    "bidirectional_sum": (lambda: L.Bidirectional(L.GRU(3), merge_mode="sum"), BOTH, {}),
    "two_layers": (lambda: ow.keras.Sequential([L.LSTM(3, return_sequences=True), L.GRU(2)]), BATCH, {}),
    "unrolled": (lambda: L.LSTM(3, unroll=True), BATCH, {}),
}


@functools.cache
def converted(name: str) -> tuple[bytes, list[np.ndarray]]:
    """The file of a row, and what the layer gives."""
    make, shapes, more = ROWS[name]
    ow.random.set_seed(13)
    layer = make()
    more = {k: ow.constant(v) for k, v in more.items()}
    expected = [np.asarray(y) for y in ow.nest.flatten(layer(ow.constant(X), **more))]
    spec = ow.TensorSpec(shapes[0] if shapes else X.shape, ow.float32, name="x")
    if "mask" not in more:
        return converter(ow.function(lambda x: layer(x)).get_concrete_function(spec)).convert(), expected
    mask = ow.TensorSpec(spec.shape[:2], ow.bool, name="mask")
    concrete = ow.function(lambda x, mask: layer(x, mask=mask)).get_concrete_function(spec, mask)
    return converter(concrete).convert(), expected


@pytest.mark.parametrize("name", sampled(ROWS))
def test_both_interpreters_agree_with_the_layer(name: str) -> None:
    content, expected = converted(name)
    inputs = [X, *ROWS[name][2].values()]
    assert_same(ours(content, inputs), expected, 1e-5)
    assert_same(official(content, inputs), expected, 1e-5)


@pytest.mark.parametrize("name", ["lstm_sequences_unknown", "gru_sequences", "lstm_batch"])
def test_other_sizes_than_it_was_traced_with(name: str) -> None:
    """One file serves every batch and, where the time is unknown, every length; none at all, too."""
    content, _ = converted(name)
    lengths = (5,) if name == "lstm_batch" else (1, 3, 9)
    for batch in (1, 3):
        for time in lengths:
            x = f32(batch, time, 4, seed=batch)
            assert_same(ours(content, [x]), official(content, [x]), 1e-5)


@pytest.mark.parametrize("name", [n for n in ROWS if n != "unrolled"])
def test_it_is_a_loop(name: str) -> None:
    content, _ = converted(name)
    parts = [op_names(content, i) for i in range(len(Model.read(content).subgraphs))]
    assert any("WHILE" in part for part in parts)


def test_weights_of_the_cell_are_constants_of_the_body() -> None:
    content, _ = converted("lstm")
    model = Model.read(content)
    body = max(model.subgraphs[1:], key=lambda s: len(s.operators))
    assert "FULLY_CONNECTED" in op_names(content, model.subgraphs.index(body))
    kernel = [t for t in body.tensors if sorted(t.shape) == [3, 12]]
    assert all(t.buffer for t in kernel)
    assert kernel
