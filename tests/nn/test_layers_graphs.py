"""Layers in functions: the same values with known and with unknown sizes, shapes announced, configurations and back."""

import copy

import numpy as np
import pytest

from each_row import each_row
from nn import layer_cases
from nn.layer_cases import CASES
from thorough import sampled

NEED_SIZES = ("adaptive_", "resizing_crop", "resizing_pad")  # layers that say so
TIME_KNOWN = (
    *NEED_SIZES,
    "conv_lstm",
    "initial",
    "flatten",
    "reshape",
    "dense",
    "prelu",
    "layer_norm",
    "batch_norm",
    "group_norm",
    "Dot",
    "softmax",
    "unit_norm",
    "normalization",
    "upsampling",
    "permute",
    "repeat",
    "lambda",
    "identity",
    "activation",
    "category",
    "embedding",
    "relu",
    "elu",
    "rescaling",
    "activity",
    "off",
    "cell",
    "spectral",
    "einsum",
)


PEER_DIFFERS = ("activation_glu", "einsum_dense_middle", "time_distributed", "time_distributed_conv")


def cases(keep):
    """Names of cases; those of which Keras gets shapes wrong, or demands known ones, are ours alone."""
    return [pytest.param(n, marks=pytest.mark.ours) if n in PEER_DIFFERS else n for n in CASES if keep(n)]


def first_word(name):
    """The group of a case."""
    return name.split("_")[0]


def built(tf, name):
    """A case's layer with its weights, its inputs, and what it gives eagerly."""
    c = CASES[name]
    layer = c.make(tf.keras.layers)
    tensors = [tf.constant(a) for a in layer_cases.inputs_of(c)]
    c.call(layer, *tensors, **c.kwargs)
    layer_cases.set_seeded(layer, name)
    before = layer.get_weights()
    eager = layer_cases.flat(c.call(layer, *tensors, **c.kwargs))
    layer.set_weights(before)
    return c, layer, tensors, eager


def agree(actual, expected):
    """Tensors of the same values."""
    actual = layer_cases.flat(actual)
    assert len(actual) == len(expected)
    for y, z in zip(actual, expected):
        np.testing.assert_allclose(np.asarray(y), np.asarray(z), rtol=1e-5, atol=1e-5)


@each_row("name", sampled(CASES, 4, by=first_word), by=first_word)
def test_in_a_function(tf, name):
    c, layer, tensors, eager = built(tf, name)
    traced = tf.function(lambda *xs: c.call(layer, *xs, **c.kwargs))
    agree(traced(*tensors), eager)


@each_row("name", sampled([n for n in CASES if "stateful" not in n], 4, by=first_word), by=first_word)
def test_with_an_unknown_batch(tf, name):
    c, layer, tensors, eager = built(tf, name)
    signature = [tf.TensorSpec([None, *t.shape[1:]], t.dtype) for t in tensors]
    traced = tf.function(lambda *xs: c.call(layer, *xs, **c.kwargs), input_signature=signature)
    result = traced(*tensors)
    agree(result, eager)
    for y, z in zip(layer_cases.flat(traced.get_concrete_function().structured_outputs), layer_cases.flat(eager)):
        assert y.shape.rank == z.shape.rank
        assert y.shape[1:].is_compatible_with(z.shape[1:])


@each_row("name", sampled(cases(lambda n: not any(k in n for k in TIME_KNOWN)), 4, by=first_word), by=first_word)
def test_with_unknown_sizes(tf, name):
    """All sizes but the channels unknown: loops over time have no known end."""
    c, layer, tensors, eager = built(tf, name)
    first = "first" in name or "batch_norm_4d" in name
    shapes = [
        [None, t.shape[1], *[None] * (len(t.shape) - 2)] if first else [*[None] * (len(t.shape) - 1), t.shape[-1]]
        for t in tensors
    ]
    traced = tf.function(
        lambda *xs: c.call(layer, *xs, **c.kwargs),
        input_signature=[tf.TensorSpec(s, t.dtype) for s, t in zip(shapes, tensors)],
    )
    agree(traced(*tensors), eager)


@pytest.mark.parametrize(
    "name",
    sampled(
        [n for n in CASES if first_word(n) in ("SimpleRNN", "GRU", "LSTM", "stacked", "rnn", "bidirectional")],
        3,
        by=first_word,
    ),
)
def test_gradients_through_the_loop_over_time(tf, name):
    """The gradients of the graph's loop are those of Python's."""
    c, layer, tensors, _ = built(tf, name)
    weights = [w if isinstance(w, tf.Variable) else w.value for w in layer.trainable_weights]

    def grads(*xs):
        with tf.GradientTape() as tape:
            watched = [x for x in xs if x.dtype == tf.float32]
            for x in watched:
                tape.watch(x)
            loss = layer_cases.loss_of(tf, layer_cases.flat(c.call(layer, *xs)))
        result = tape.gradient(loss, [*watched, *weights])
        return [tf.zeros([]) if g is None else g for g in result]

    agree(tf.function(grads, autograph=False)(*tensors), grads(*tensors))


@each_row("name", cases(lambda n: not n.startswith(("embedding_masked", "masking_gru"))), by=first_word)
def test_output_shapes_and_configurations(tf, name):
    c, layer, tensors, eager = built(tf, name)
    if (
        c.call.__defaults__ is None
        and not any(k in name for k in ("mha", "gqa", "cell", "attention"))
        and len(tensors) == 1
    ):
        result = layer.compute_output_shape(tuple(tensors[0].shape))
        flat = [result] if isinstance(result[0], (int, type(None))) else list(result)
        assert [tuple(s) for s in flat] == [tuple(y.shape) for y in eager]
    if name == "lambda":
        return
    config = layer.get_config()
    again = type(layer).from_config(copy.deepcopy(config))
    kept = again.get_config()
    assert {k for k in kept if repr(kept[k]) != repr(config[k])} == set()
    c.call(again, *tensors, **c.kwargs)
    again.set_weights(layer.get_weights())
    agree(c.call(again, *tensors, **c.kwargs), eager)
