"""Recurrent operators beyond ordinary rows: gradients, activations, clamps, numbers of PaddlePaddle 2.6.2; second
derivatives of the others; long and short sequences, which are reduced in two ways.

Lives here: what cases_sequence.py cannot say in a row.  Not here: empty sequences (test_sequence_empty.py).
"""

from __future__ import annotations

import numpy as np
import pytest
import sequence_oracles as by_loop

import opwright as ow
from opwright import sequence as seq
from opwright.ops.nn.gru import GRUSequence
from opwright.ops.nn.lstm import LSTMSequence
from opwright.ops.sequence import segments
from thorough import crossed

OFFSETS = np.array([0, 3, 3, 4, 9])


def numbers(seed, *shape):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape)


@pytest.mark.parametrize(
    ("other", "gate", "reverse"), crossed(["tanh", "sigmoid", "identity"], by_loop.ACTIVATIONS, [False, True], every=3)
)
def test_lstm_gradients(gate, other, reverse):
    """Of hidden and cell, by each activation; relu away from its corner, as far as seeds go."""
    d, n = 2, len(OFFSETS) - 1
    inputs = [0.4 * numbers(k, *shape) for k, shape in enumerate([(9, 4 * d), (d, 4 * d), (1, 7 * d), (n, d), (n, d)])]
    attrs = {"gate_activation": gate, "cell_activation": other, "candidate_activation": other, "is_reverse": reverse}
    weights = [numbers(20, 9, d), numbers(21, 9, d)]
    sources = [ow.LoDTensor(inputs[0], [OFFSETS]), *map(ow.constant, inputs[1:])]
    with ow.GradientTape() as tape:
        tape.watch(sources)
        outputs = seq.dynamic_lstm(*sources, **attrs)
    grads = tape.gradient(outputs, sources, output_gradients=[ow.constant(w) for w in weights])
    for k, dx in enumerate(grads):

        def moved(v, k=k):
            return by_loop.lstm(*inputs[:k], v, *inputs[k + 1 :], OFFSETS, **attrs)

        expected = by_loop.differences(moved, inputs[k], weights)
        np.testing.assert_allclose(dx.numpy(), expected, 1e-6, 1e-8, err_msg=str(k))


@pytest.mark.parametrize(
    ("activation", "gate", "origin"),
    crossed(["tanh", "sigmoid", "identity"], ["sigmoid", "tanh", "identity"], [False, True], every=3),
)
def test_gru_gradients(gate, activation, origin):
    d, n = 2, len(OFFSETS) - 1
    inputs = [0.4 * numbers(k, *shape) for k, shape in enumerate([(9, 3 * d), (d, 3 * d), (1, 3 * d), (n, d)])]
    attrs = {"gate_activation": gate, "activation": activation, "origin_mode": origin, "is_reverse": origin}
    weights = [numbers(20, 9, d)]
    sources = [ow.LoDTensor(inputs[0], [OFFSETS]), *map(ow.constant, inputs[1:])]
    with ow.GradientTape() as tape:
        tape.watch(sources)
        hidden = seq.dynamic_gru(*sources, **attrs)
    grads = tape.gradient(hidden, sources, output_gradients=ow.constant(weights[0]))
    for k, dx in enumerate(grads):

        def moved(v, k=k):
            return [by_loop.gru(*inputs[:k], v, *inputs[k + 1 :], OFFSETS, **attrs)]

        expected = by_loop.differences(moved, inputs[k], weights)
        np.testing.assert_allclose(dx.numpy(), expected, 1e-6, 1e-8, err_msg=str(k))


def test_a_loss_of_the_cell_alone_has_gradients():
    x = ow.LoDTensor(numbers(1, 9, 8), [OFFSETS])
    with ow.GradientTape() as tape:
        tape.watch(x)
        _, cell = seq.dynamic_lstm(x, numbers(2, 2, 8), numbers(3, 1, 14))
        loss = ow.reduce_sum(cell)
    dx = tape.gradient(loss, x)
    assert dx.lod() == x.lod()
    assert np.abs(dx.numpy()[:, :4]).min() > 0  # candidate and input gate of every row
    last = OFFSETS[1:][np.diff(OFFSETS) > 0] - 1  # of a sequence: its output gate reaches no cell any more
    assert not dx.numpy()[last, 6:].any()


def test_gates_are_held_at_13():
    """A sigmoid of 13 and of 1000 is one number; tanh needs no bound: it is 1 long before."""
    x = np.array([[1000.0, 1000.0, -1000.0, 1000.0], [0.0, 13.0, -1000.0, 13.0]])
    gate = 1 / (1 + np.exp(-13.0))
    zeros = np.zeros((1, 4))
    hidden, cell = seq.dynamic_lstm(ow.LoDTensor(x, [[0, 1, 2]]), zeros, zeros, use_peepholes=False)
    np.testing.assert_allclose(cell.numpy()[:, 0], [gate, 0.0], 1e-12, 1e-12)
    np.testing.assert_allclose(hidden.numpy()[:, 0], [gate * np.tanh(gate), 0.0], 1e-12, 1e-12)
    with ow.GradientTape() as tape:  # and its slope is that at 13, not 0
        value = ow.LoDTensor([[1.0, 50.0, 0.0, 0.0]], [[0, 1]], ow.float64)
        tape.watch(value)
        _, cell = seq.dynamic_lstm(value, zeros, zeros, use_peepholes=False)
    dx = tape.gradient(cell, value).numpy()
    np.testing.assert_allclose(dx[0, 1], gate * (1 - gate) * np.tanh(1.0), 1e-9)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: seq.dynamic_lstm(x, ow.ones([1, 4], ow.float64), ow.ones([1, 7], ow.float64))[0],
        lambda x: seq.dynamic_gru(x[:, :3], ow.ones([1, 3], ow.float64)),
    ],
    ids=["lstm", "gru"],
)
def test_second_derivatives_of_recurrences_are_refused_in_words(function):
    x = ow.LoDTensor(np.ones((3, 4)), [[0, 2, 3]])
    with ow.GradientTape() as outer:
        outer.watch(x)
        with ow.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        dx = inner.gradient(y, x)
    with pytest.raises(LookupError, match=r"first derivatives only.*ow\.sequence\.pad"):
        outer.gradient(dx, x)


RECURRENT_SHAPES = {  # shapes of the operands, for steps, batch and units
    LSTMSequence: lambda t, b, u: [(t, b, 4 * u), (u, 4 * u), (b, u), (b, u)],
    GRUSequence: lambda t, b, u: [(t, b, 3 * u), (u, 3 * u), (3 * u,), (b, u)],
}


@pytest.mark.parametrize(("layer", "steps"), crossed(RECURRENT_SHAPES, [0, 1, 3]), ids=str)
def test_second_derivatives_of_sequences_of_one_length(layer, steps):
    """The gradients of a function of first gradients, against differences of these."""
    shapes = RECURRENT_SHAPES[layer](steps, 2, 3)
    inputs = [numbers(k, *shape) for k, shape in enumerate(shapes)]
    weights = [numbers(30, steps, 2, 3), numbers(31, 2, 3), numbers(32, 2, 3)]

    def first_gradients(*values):
        with ow.GradientTape() as tape:
            tape.watch(values)
            total = sum(ow.reduce_sum(y * y * w) for y, w in zip(layer(*values), weights))
        return tape.gradient(total, values, unconnected_gradients="zero")

    values = list(map(ow.constant, inputs))
    with ow.GradientTape() as tape:
        tape.watch(values)
        firsts = first_gradients(*values)
    cotangents = [numbers(40 + k, *shape) for k, shape in enumerate(shapes)]
    arrivals = list(map(ow.constant, cotangents))
    seconds = tape.gradient(firsts, values, output_gradients=arrivals, unconnected_gradients="zero")
    for k, second in enumerate(seconds):

        def moved(v, k=k):
            changed = [*values[:k], ow.constant(v), *values[k + 1 :]]
            return [g.numpy() for g in first_gradients(*changed)]

        expected = by_loop.differences(moved, inputs[k], cotangents)
        np.testing.assert_allclose(second.numpy(), expected, 1e-5, 1e-7, err_msg=str(k))


@pytest.mark.parametrize(("layer", "cell"), [(LSTMSequence, "LSTMCell"), (GRUSequence, "GRUCell")], ids=["lstm", "gru"])
def test_third_derivatives_of_sequences_name_the_way_to_them(layer, cell):
    values = [ow.constant(numbers(k, *shape)) for k, shape in enumerate(RECURRENT_SHAPES[layer](2, 1, 1))]
    with ow.GradientTape() as third, ow.GradientTape() as second, ow.GradientTape() as first:
        for tape in (third, second, first):
            tape.watch(values)
        y = layer(*values)[0]
        dy = first.gradient(y, values)
        ddy = second.gradient(dy, values)
    with pytest.raises(LookupError, match=rf"first and second derivatives.*RNN\(ow\.keras\.layers\.{cell}"):
        third.gradient(ddy, values)


# Of PaddlePaddle 2.6.2 on a CPU, in float64, given the arrays of `peer_inputs`, with lengths 2, 0, 3: the outputs, then
# for x, weight and bias the sum of g_k cos(k) over the flat gradient g of the sum of hidden.
PEER = {
    ("lstm", False): (
        [
            [
                [0.0, 0.119551565276],
                [-0.149392813424, 0.080437836451],
                [-0.217828957595, -0.131180057788],
                [-0.343340508097, -0.32560370703],
                [-0.284425330086, -0.424003593405],
            ],
            [
                [0.0, 0.439343118319],
                [-0.391746252021, 0.268489306218],
                [-0.399762635938, -0.324587795678],
                [-0.527908285427, -0.610899984106],
                [-0.398251716783, -0.66575222862],
            ],
        ],
        [0.09311750792, -0.102784175578, 1.983354638254],
    ),
    ("lstm", True): (
        [
            [
                [-0.078177824733, 0.1188165401],
                [-0.147596448633, 0.022606894702],
                [-0.345640931476, -0.264724707611],
                [-0.2321684674, -0.291860740049],
                [-0.080010272525, -0.167242164496],
            ],
            [
                [-0.271986833384, 0.42452607836],
                [-0.37935526767, 0.073603729332],
                [-0.655591661748, -0.703973324307],
                [-0.34142142975, -0.541200086281],
                [-0.110710848681, -0.24096852052],
            ],
        ],
        [0.662311407774, -0.054791753864, 1.845599564552],
    ),
    ("gru", False): (
        [
            [
                [0.126824037426, -0.282702652976],
                [0.256748837328, 0.023237456247],
                [-0.54978132185, -0.367591729171],
                [-0.122362366903, -0.248779322036],
                [0.07176704235, 0.029038529743],
            ]
        ],
        [-1.999570878245, 0.401119264869, -0.33252389958],
    ),
    ("gru", True): (
        [
            [
                [0.200910996873, 0.181663524519],
                [0.369186529442, 0.506314680298],
                [-0.074433552482, -0.131479868177],
                [0.198126218635, 0.183683864609],
                [0.383595966286, 0.506913168208],
            ]
        ],
        [-2.984403525218, -0.288746311392, -1.129310149026],
    ),
}


def peer_inputs(blocks, with_peepholes):
    d, rows = 2, 5
    x = np.sin(0.7 * np.arange(rows * blocks * d)).reshape(rows, blocks * d)
    weight = 0.5 * np.cos(0.3 * np.arange(blocks * d * d)).reshape(d, blocks * d)
    width = (blocks + (3 if with_peepholes else 0)) * d
    return ow.LoDTensor(x, [[0, 2, 2, 5]]), ow.constant(weight), ow.constant(0.1 * np.sin(np.arange(width))[None])


@pytest.mark.parametrize(("name", "reverse"), PEER)
def test_numbers_of_a_peer(name, reverse):
    sources = peer_inputs(4 if name == "lstm" else 3, name == "lstm")
    with ow.GradientTape() as tape:
        tape.watch(sources)
        if name == "lstm":
            outputs = seq.dynamic_lstm(*sources, is_reverse=reverse)
        else:
            outputs = (seq.dynamic_gru(*sources, is_reverse=reverse, origin_mode=reverse),)
    expected, marks = PEER[name, reverse]
    for y, numbers_of_peer in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(y.numpy(), numbers_of_peer, 0, 2e-12)
    for dx, mark in zip(tape.gradient(outputs[0], sources), marks, strict=True):
        flat = dx.numpy().ravel()
        np.testing.assert_allclose(flat @ np.cos(np.arange(flat.size)), mark, 0, 1e-11)


def second(function, x, weights, v):
    """The derivative of (gradient of sum weights * function) . v, by our tapes."""
    with ow.GradientTape() as outer:
        outer.watch(x)
        with ow.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        dx = inner.gradient(y, x, output_gradients=weights)
        along = ow.reduce_sum(dx.values * v)
    return outer.gradient(along, x)


@pytest.mark.parametrize("kind", [*by_loop.POOLS, "softmax", "conv", "reverse", "pad", "expand", "slice"])
def test_second_derivatives(kind):
    """Of y(x * x), against differences of the first derivative, which the rows have checked."""
    function = {
        "softmax": lambda x: seq.softmax(x * x),
        "conv": lambda x: seq.conv(x * x, numbers(5, 3, 2) * 2.0),
        "reverse": lambda x: seq.reverse(x * x),
        "pad": lambda x: seq.pad(x * x)[0],
        "expand": lambda x: seq.expand(x * x, ow.LoDTensor(np.zeros(5), [[0, 2, 2, 3, 5]])),
        "slice": lambda x: seq.slice(x * x, [[1], [0], [0], [2]], [[1], [0], [1], [3]]),
    }.get(kind, lambda x: seq.pool(x * x, kind))
    values, v = numbers(6, 9, 1), numbers(7, 9, 1)
    x = ow.LoDTensor(values, [OFFSETS])
    weights = ow.constant(numbers(8, *function(x).shape))

    def along(values):
        x = ow.LoDTensor(values, [OFFSETS])
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return [tape.gradient(y, x, output_gradients=weights).numpy()]

    result = second(function, x, weights, v)
    assert result.lod() == x.lod()
    np.testing.assert_allclose(result.numpy(), by_loop.differences(along, values, [v]), 1e-6, 1e-7)


@pytest.mark.parametrize("width", [1, 3, 128])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("part", [0.5, 1.0, 1.1])
def test_a_sequence_has_the_same_bits_alone_and_among_others(part, dtype, width):
    """On both sides of the threshold between the two ways of reducing, next to sequences of the other side."""
    long = -(-segments.LONG // width)
    rows = int(part * long)
    x = numbers(9, rows, width).astype(dtype)
    others = [numbers(10 + n, n, width).astype(dtype) for n in (2, long - 1, 0, 2 * long)]
    for kind in ("sum", "max", "average"):
        alone = seq.pool(ow.LoDTensor(x, [[0, rows]]), kind).numpy()[0]
        expected = by_loop.pool(x.astype(np.float64), np.array([0, rows]), kind.upper())[0]
        tolerance = 1e-5 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(alone, expected, tolerance, tolerance)
        for at in range(len(others) + 1):
            parts = [*others[:at], x, *others[at:]]
            batch = ow.LoDTensor(np.concatenate(parts), [np.cumsum([0, *map(len, parts)])])
            np.testing.assert_array_equal(seq.pool(batch, kind).numpy()[at], alone)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_what_second_derivatives_are_advised_to_do(kind):
    """The refusal names the padded layer; that has them, and they are slopes of the first ones."""
    wide = 4 if kind == "lstm" else 3
    layer = {"lstm": ow.keras.layers.LSTM, "gru": ow.keras.layers.GRU}[kind](2, return_sequences=True, dtype="float64")
    direction, rows = numbers(1, 9, 3), numbers(2, 9, 3)

    def packed(x):
        x = ow.matmul(x, numbers(3, 3, wide * 2))
        if kind == "gru":
            return seq.dynamic_gru(x, numbers(4, 2, 6))
        return seq.dynamic_lstm(x, numbers(4, 2, 8), numbers(5, 1, 14))[0]

    def padded(x):
        rows, n = seq.pad(x)
        return seq.unpad(layer(rows, mask=seq.mask(n, dtype=ow.bool)), n)

    def slope(of, x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.reduce_sum(of(x) ** 2.0)
        return tape.gradient(y, x)

    def along(of, values):
        x = ow.LoDTensor(values, [OFFSETS])
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.reduce_sum(slope(of, x) * direction)
        return tape.gradient(y, x).numpy()

    with pytest.raises(LookupError, match=f"keras.layers.{kind.upper()}"):
        along(packed, rows)
    step = 1e-5 * direction
    up, down = (slope(padded, ow.LoDTensor(rows + s, [OFFSETS])).numpy() for s in (step, -step))
    np.testing.assert_allclose(along(padded, rows), (up - down) / 2e-5, 1e-6, 1e-8)
