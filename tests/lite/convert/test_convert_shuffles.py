"""Channel shuffles in files: absorbed into weights, or left where another operator reads them in order.

The expected values are those of the function, run eagerly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from convert_harness import case, converted, eager, f32, official, ours
from lite_kit import op_names

import opwright as ow
from thorough import examples

Network = Callable[[Any], Any]


def shuffled(x: Any, groups: int) -> Any:
    *rows, channels = x.shape
    apart = ow.reshape(x, [*rows, groups, channels // groups])
    return ow.reshape(ow.transpose(apart, [0, 1, 2, 4, 3]), [*rows, channels])


def weights(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def pointwise(x: Any, n: int, seed: int = 1) -> Any:
    c = x.shape[-1]
    return ow.nn.relu(ow.nn.conv2d(x, weights(1, 1, c, n, seed=seed) / c**0.5, 1, "SAME") + weights(n, seed=seed))


def depthwise(x: Any, stride: int = 1, seed: int = 2) -> Any:
    c = x.shape[-1]
    y = ow.nn.depthwise_conv2d(x, weights(3, 3, c, 1, seed=seed), [1, stride, stride, 1], "SAME")
    return y * weights(c, seed=seed) + weights(c, seed=seed + 1)


def units(x: Any) -> Any:
    """Return what ShuffleNet computes: halves of the channels pass, the others are convolved, all are interleaved."""
    for i in range(4):
        passing, x = ow.split(x, 2, -1)
        x = shuffled(ow.concat([passing, pointwise(depthwise(pointwise(x, 12, i)), 12, i + 9)], -1), 2)
    left, right = pointwise(depthwise(x, 2), 24), pointwise(depthwise(pointwise(x, 24), 2), 24)
    return ow.reduce_mean(pointwise(shuffled(ow.concat([left, right], -1), 2), 8), [1, 2])


def matches(network: Network, x: np.ndarray) -> list[str]:
    """Return the operators of a network's file, after comparing it in both interpreters with the function."""
    row = case("shuffle", network, x)
    content, expected = converted(row), eager(row)
    for run in (official, ours):
        for actual, y in zip(run(content, [x]), expected, strict=True):
            np.testing.assert_allclose(actual, y, rtol=0, atol=2e-6 * np.abs(y).max())
    return op_names(content)


def test_shuffles_between_convolutions_are_no_operators() -> None:
    names = matches(units, f32(1, 6, 5, 24))
    assert not {"TRANSPOSE", "RESHAPE"} & set(names)
    assert names.count("CONV_2D") == 12


def test_pads_pools_and_activations_keep_the_order_of_their_channels() -> None:
    def network(x: Any) -> Any:
        y = ow.pad(shuffled(pointwise(x, 12), 3), [[0, 0], [1, 0], [0, 1], [0, 0]])
        return pointwise(ow.tanh(ow.nn.max_pool2d(y, 2, 1, "VALID")), 5)

    assert "TRANSPOSE" not in matches(network, f32(1, 4, 4, 6))


@pytest.mark.parametrize(
    "network",
    [
        pytest.param(lambda x: shuffled(pointwise(x, 8), 2), id="output"),
        pytest.param(lambda x: ow.reduce_sum(shuffled(pointwise(x, 8), 2), -1), id="sum over channels"),
        pytest.param(lambda x: ow.pad(shuffled(pointwise(x, 8), 4), [[0, 0], [0, 0], [0, 0], [1, 0]]), id="padded"),
        pytest.param(
            lambda x: ow.nn.conv2d(shuffled(depthwise(x), 2), weights(1, 1, 4, 8), 1, "SAME"), id="grouped convolution"
        ),
        pytest.param(lambda x: pointwise(ow.transpose(shuffled(x, 2), [0, 2, 1, 3]), 3), id="another transpose"),
    ],
)
def test_shuffles_that_others_read_stay(network: Network) -> None:
    assert "TRANSPOSE" in matches(network, f32(1, 3, 4, 8))


def test_a_value_that_is_read_in_both_orders() -> None:
    def network(x: Any) -> Any:
        y = ow.nn.max_pool2d(shuffled(x, 2), 2, 1, "SAME")
        return pointwise(y, 4), y

    assert matches(network, f32(1, 3, 4, 8)).count("MAX_POOL_2D") in (1, 2)


def drawn(rng: np.random.Generator) -> Network:
    """Return a network of steps that move channels and steps that compute with them."""
    steps = rng.integers(0, 9, 10).tolist()

    def network(x: Any) -> Any:
        kept = pointwise(x, 12)
        for i, step in enumerate(steps):
            if step < 3:
                x = shuffled(x, (2, 3, 4)[step])
            elif step == 3:
                first, rest = ow.split(x, [4, 8], -1)
                x = ow.concat([rest, first], -1)
            elif step == 4:
                x = ow.concat([x[..., 6:], kept[..., :6]], -1)
            elif step == 5:
                x = pointwise(x, 12, i)
            elif step == 6:
                x = depthwise(x, 1, i)
            elif step == 7:
                x, kept = ow.nn.avg_pool2d(kept, 2, 1, "SAME"), ow.nn.relu6(x)
            else:
                x = x + kept
        return pointwise(x, 5), kept

    return network


@pytest.mark.parametrize("seed", range(examples(24)))
def test_drawn_networks(seed: int) -> None:
    matches(drawn(np.random.default_rng(seed)), f32(1, 3, 2, 12))
