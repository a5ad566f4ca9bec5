"""CTCLoss as machine code: losses and gradients are those of the operator in float64, whose errors are reported; the
operator itself is compared with TensorFlow (tests/tutorials/elements.py)."""

import numpy as np
import pytest

import opwright as ow


def losses(logits, labels, label_length, logit_length, blank=0):
    with ow.GradientTape() as tape:
        tape.watch(logits)
        loss = ow.nn.ctc_loss(labels, logits, label_length, logit_length, blank_index=blank)
        total = ow.reduce_sum(loss * (1.5 - ow.cast(ow.range(loss.shape[0]), loss.dtype)))
    return loss, tape.gradient(total, logits)


COMPILED = {blank: ow.function(losses, jit_compile=True) for blank in (0, 3)}


def sequences(seed, steps, batch, classes, most_labels, scale=1.0, dtype=np.int32):
    """Logits, labels from 1 on with repetitions, and lengths of which some admit no alignment."""
    rng = np.random.default_rng(seed)
    logits = (rng.standard_normal((steps, batch, classes)) * scale).astype(np.float32)
    labels = rng.integers(1, max(2, classes // 2), (batch, most_labels)).astype(dtype)
    lengths = rng.integers(0, most_labels + 1, batch), rng.integers(0, steps + 1, batch)
    lengths[1][: batch // 2] = steps
    return [logits, labels, *(n.astype(dtype) for n in lengths)]


CASES = [
    (sequences(1, 40, 7, 12, 9), 0),
    (sequences(2, 1, 3, 2, 1, dtype=np.int64), 0),
    (sequences(3, 90, 4, 40, 17, scale=100.0), 3),  # probabilities of paths below 1e-1000
    (sequences(4, 25, 5, 33, 30), 0),
]


@pytest.mark.parametrize(("arrays", "blank"), CASES, ids=["repeated", "one step", "far", "short"])
def test_losses_and_gradients(arrays, blank):
    if blank == 0:
        arrays[0][0, 0, 1], arrays[0][0, 1, 0] = -np.inf, np.nan if len(arrays[0]) > 1 else 0.0
    tensors = list(map(ow.constant, arrays))
    compiled = COMPILED[blank](*tensors, blank=blank)
    assert ", 0 as they are" in COMPILED[blank].experimental_get_compiler_ir(*tensors, blank=blank)()
    for actual, expected in zip(compiled, losses(ow.constant(arrays[0].astype(np.float64)), *tensors[1:], blank)):
        np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=5e-7)


@pytest.mark.parametrize(("index", "value"), [(1, 12), (1, -1), (2, 10), (3, 41), (3, -1)])
def test_errors_are_the_operators(index, value):
    arrays = [a.copy() for a in sequences(1, 40, 7, 12, 9)]
    arrays[2][:] = 9
    arrays[index].reshape(-1)[0] = value
    tensors = list(map(ow.constant, arrays))
    with pytest.raises(ow.errors.InvalidArgumentError) as eager:
        losses(*tensors)
    with pytest.raises(ow.errors.InvalidArgumentError) as compiled:
        COMPILED[0](*tensors, blank=0)
    assert str(compiled.value).split(": ", 1)[1].split(": ")[-1] == str(eager.value).split(": ", 1)[1]
