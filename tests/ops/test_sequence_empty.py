"""Sequences without rows, anywhere: each pattern of lengths by each operator, forward and backward.

Lives here: the patterns, and what loops over sequences (sequence_oracles.py) say of them; gradients are compared with
central differences of these loops.  Not here: ordinary lengths (cases_sequence.py).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sequence_oracles as by_loop

import opwright as ow
from each_row import each_row
from opwright import sequence as seq
from thorough import crossed

PATTERNS = json.loads((Path(__file__).parent / "data" / "sequence_examples.json").read_text("utf-8"))["lengths"]
D = 2


class Setting:
    """One pattern: offsets, and numbers by name, the same whenever asked for."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = np.array(lengths)
        self.offsets = np.cumsum([0, *lengths])
        self.n, self.rows = len(lengths), int(self.offsets[-1])
        self.other = np.cumsum([0, *lengths[::-1]])  # of as many sequences, empty at other places

    def numbers(self, name: str, *shape: int) -> np.ndarray:
        rng = np.random.default_rng(zlib.crc32(repr((name, shape)).encode()))
        return rng.permutation(np.linspace(-1.0, 1.0, int(np.prod(shape)))).reshape(shape)

    def whole(self, name: str, high: np.ndarray) -> np.ndarray:
        return np.random.default_rng(zlib.crc32(name.encode())).integers(0, high + 1)


Row = tuple[Callable[..., Any], Callable[..., Any], dict[str, np.ndarray], set[str]]


def pools(kind: str) -> Callable[[Setting], Row]:
    return lambda s: (
        lambda x: seq.pool(x, kind, 0.25),
        lambda x: by_loop.pool(x, s.offsets, kind, 0.25),
        {"x": s.numbers("x", s.rows, D)},
        {"x"},
    )


def joined(s: Setting) -> Row:
    return (
        lambda x, y: seq.concat([x, ow.LoDTensor(y, [s.other])]),
        lambda x, y: by_loop.concat([x, y], [s.offsets, s.other])[0],
        {"x": s.numbers("x", s.rows, D), "y": s.numbers("y", s.rows, D)},
        {"x"},
    )


def cut(s: Setting) -> Row:
    first = s.whole("first", s.lengths)
    size = s.whole("size", s.lengths - first)
    return (
        lambda x: seq.slice(x, first[:, None], size[:, None]),
        lambda x: by_loop.slice(x, first[:, None], size[:, None], s.offsets)[0],
        {"x": s.numbers("x", s.rows, D)},
        {"x"},
    )


def unpadded(s: Setting) -> Row:
    x = s.numbers("x", s.n, int(s.lengths.max()) + 1, D)
    return lambda x: seq.unpad(x, s.lengths), lambda x: by_loop.unpad(x, s.lengths)[0], {"x": x}, set()


def convolved(trained: bool) -> Callable[[Setting], Row]:
    def row(s: Setting) -> Row:
        inputs = {"x": s.numbers("x", s.rows, D), "w": s.numbers("w", 3 * D, 3)}
        if trained:
            inputs["p"] = s.numbers("p", 2, D)
        return (
            lambda x, w, p=None: seq.conv(x, w, 3, -1, p),
            lambda x, w, p=None: by_loop.windows(x, s.offsets, 3, -1, p) @ w,
            inputs,
            {"x"},
        )

    return row


def scattered(s: Setting) -> Row:
    ids = s.whole("ids", np.full(s.rows, D - 1))[:, None]
    return (
        lambda x, u: seq.scatter(x, ow.LoDTensor(ids, [s.offsets]), u),
        lambda x, u: by_loop.scatter(x, ids, u, s.offsets, None),
        {"x": s.numbers("x", s.n, D), "u": s.numbers("u", s.rows, 1)},
        {"u"},
    )


def lstm(start: bool, reverse: bool, peepholes: bool) -> Callable[[Setting], Row]:
    def row(s: Setting) -> Row:
        inputs = {
            "x": s.numbers("x", s.rows, 4 * D),
            "w": s.numbers("w", D, 4 * D),
            "b": s.numbers("b", 1, (7 if peepholes else 4) * D),
        }
        if start:
            inputs |= {"h0": s.numbers("h0", s.n, D), "c0": s.numbers("c0", s.n, D)}
        attrs = {"use_peepholes": peepholes, "is_reverse": reverse}
        return (
            lambda x, w, b, h0=None, c0=None: seq.dynamic_lstm(x, w, b, h0, c0, **attrs),
            lambda x, w, b, h0=None, c0=None: by_loop.lstm(x, w, b, h0, c0, s.offsets, **attrs),
            inputs,
            {"x"},
        )

    return row


def gru(start: bool, reverse: bool, origin: bool) -> Callable[[Setting], Row]:
    def row(s: Setting) -> Row:
        inputs = {"x": s.numbers("x", s.rows, 3 * D), "w": s.numbers("w", D, 3 * D), "b": s.numbers("b", 1, 3 * D)}
        if start:
            inputs["h0"] = s.numbers("h0", s.n, D)
        attrs = {"is_reverse": reverse, "origin_mode": origin}
        return (
            lambda x, w, b, h0=None: seq.dynamic_gru(x, w, b, h0, **attrs),
            lambda x, w, b, h0=None: by_loop.gru(x, w, b, h0, s.offsets, **attrs),
            inputs,
            {"x"},
        )

    return row


# Each: the setting to (ours, by loops, the inputs by name, those of them that are sequences).
OPERATORS: dict[str, Callable[[Setting], Row]] = {
    **{f"pool {kind}": pools(kind) for kind in by_loop.POOLS},
    "softmax": lambda s: (
        seq.softmax,
        lambda x: by_loop.softmax(x, s.offsets),
        {"x": s.numbers("x", s.rows, 1)},
        {"x"},
    ),
    "expand rows": lambda s: (
        lambda x: seq.expand(x, ow.LoDTensor(s.numbers("y", s.rows, 1), [s.offsets])),
        lambda x: by_loop.expand(x, None, s.offsets),
        {"x": s.numbers("x", s.n, D)},
        set(),
    ),
    "expand": lambda s: (
        lambda x: seq.expand(x, ow.LoDTensor(s.numbers("y", s.rows, 1), [s.other])),
        lambda x: by_loop.expand(x, s.offsets, s.other)[0],
        {"x": s.numbers("x", s.rows, D)},
        {"x"},
    ),
    "expand_as": lambda s: (
        lambda x: seq.expand_as(x, ow.LoDTensor(s.numbers("y", s.rows, 1), [s.offsets])),
        lambda x: by_loop.expand(x, None, s.offsets),
        {"x": s.numbers("x", s.n, D)},
        set(),
    ),
    "concat": joined,
    "slice": cut,
    "reverse": lambda s: (
        seq.reverse,
        lambda x: by_loop.reverse(x, s.offsets),
        {"x": s.numbers("x", s.rows, D)},
        {"x"},
    ),
    "pad": lambda s: (
        lambda x: seq.pad(x, 0.5)[0],
        lambda x: by_loop.pad(x, 0.5, s.offsets)[0],
        {"x": s.numbers("x", s.rows, D)},
        {"x"},
    ),
    "unpad": unpadded,
    "conv": convolved(False),
    "conv trained": convolved(True),
    "reshape": lambda s: (
        lambda x: seq.reshape(x, 1),
        lambda x: x.reshape(-1, 1),
        {"x": s.numbers("x", s.rows, D)},
        {"x"},
    ),
    "scatter": scattered,
    "lod_reset": lambda s: (
        lambda x: seq.lod_reset(x, target_lod=s.other.tolist()),
        lambda x: x,
        {"x": s.numbers("x", s.rows, D)},
        {"x"},
    ),
    "lstm": lstm(False, False, True),
    "lstm from a start": lstm(True, True, False),
    "lstm whole": lstm(True, False, True),
    "gru": gru(False, False, False),
    "gru from a start": gru(True, True, False),
    "gru origin": gru(True, False, True),
}


def listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


@pytest.mark.parametrize(("name", "traced"), crossed(OPERATORS, [False, True]))
@each_row("lengths", PATTERNS)
def test_pattern(lengths: list[int], name: str, traced: bool) -> None:
    check_pattern(lengths, name, traced)


def check_pattern(lengths: list[int], name: str, traced: bool) -> None:
    s = Setting(lengths)
    function, oracle, numbers, sequences = OPERATORS[name](s)
    inputs = {k: ow.LoDTensor(v, [s.offsets]) if k in sequences else ow.constant(v) for k, v in numbers.items()}
    called = ow.function(function, autograph=False) if traced else function
    with ow.GradientTape() as tape:
        tape.watch(inputs)
        outputs = listed(called(**inputs))
    expected = listed(oracle(**numbers))
    assert len(outputs) == len(expected)
    for y, reference in zip(outputs, expected):
        actual = np.asarray(y.numpy())
        assert actual.shape == reference.shape
        np.testing.assert_allclose(actual, reference, 1e-12, 1e-12)
        if isinstance(y, ow.LoDTensor):
            assert y.has_valid_recursive_sequence_lengths()
            count = max(s.rows, 1) if name == "expand" else s.n  # one for each repetition, but one at least
            assert len(y.lod()[0]) == count + 1
    weights = [s.numbers(f"weight {i}", *y.shape) for i, y in enumerate(expected)]
    arriving = [ow.constant(w) for w in weights]
    grads = tape.gradient(outputs, inputs, output_gradients=arriving)
    for k, x in numbers.items():
        reference = by_loop.differences(lambda v, k=k: listed(oracle(**{**numbers, k: v})), x, weights)
        dx = grads[k]
        assert dx.dtype == ow.float64
        assert tuple(dx.shape) == x.shape, k
        np.testing.assert_allclose(np.asarray(dx.numpy()), reference, 1e-6, 1e-8, err_msg=k)
        if k in sequences:
            assert dx.lod() == [s.offsets.tolist()], k


@pytest.mark.parametrize("lengths", PATTERNS, ids=str)
def test_pattern_of_tokens(lengths: list[int]) -> None:
    s = Setting(lengths)
    tokens = s.whole("tokens", np.full(s.rows, 3))[:, None]
    x = ow.LoDTensor(tokens, [s.offsets])
    kept = [[t for t in tokens[a:b, 0].tolist() if t not in (1, 3)] for a, b in by_loop.spans(s.offsets)]
    left = seq.erase(x, [1, 3])
    assert left.to_nested() == [[[t] for t in part] for part in kept]
    assert left.shape == (sum(map(len, kept)), 1)
    listed_next = [
        [[tokens[t + j, 0] if t + j < b else -7 for j in range(3)] for t in range(a, b)]
        for a, b in by_loop.spans(s.offsets)
    ]
    result = seq.enumerate(x, 3, -7)
    assert result.to_nested() == listed_next
    assert result.shape == (s.rows, 3)
    mask = seq.mask(s.lengths)
    assert mask.numpy().tolist() == [[int(j < n) for j in range(max(lengths))] for n in lengths]
    padded, length = seq.pad(x, 9)
    assert length.numpy().tolist() == lengths
    assert seq.unpad(padded, length).to_nested() == x.to_nested()


@pytest.mark.parametrize("lengths", PATTERNS, ids=str)
def test_pattern_of_maxima_twice(lengths: list[int]) -> None:
    """The gradient of MAX pooling's gradient, by the one that arrives, picks at the rows of the maxima."""
    s = Setting(lengths)
    x, w = s.numbers("x", s.rows, D), s.numbers("w", s.rows, D)
    arriving = ow.constant(s.numbers("dy", s.n, D))
    with ow.GradientTape() as outer:
        outer.watch(arriving)
        with ow.GradientTape() as inner:
            inputs = ow.LoDTensor(x, [s.offsets])
            inner.watch(inputs)
            y = seq.pool(inputs, "MAX")
        dx = inner.gradient(y, inputs, output_gradients=arriving)
        total = ow.reduce_sum(dx.values * w)
    actual = outer.gradient(total, arriving)
    expected = np.zeros((s.n, D))
    for i, (a, b) in enumerate(by_loop.spans(s.offsets)):
        if b > a:
            expected[i] = np.take_along_axis(w[a:b], x[a:b].argmax(0)[None], 0)[0]
    np.testing.assert_allclose(np.asarray(actual.numpy()), expected, 1e-12)
