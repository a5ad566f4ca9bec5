"""Steps of optimizers in ONNX: Adagrad, Adam, Momentum."""

from __future__ import annotations

from typing import Any

from ....ops import array, math
from ....ops.array import cast
from ..execution import RULES
from ..operands import dtype_of
from .arithmetic import number

rule = RULES.rule
_DOMAIN = "ai.onnx.preview.training"


def _times(x: Any, factor: Any) -> Any:
    return math.multiply(x, number(factor, x) if isinstance(factor, float) else cast(factor, dtype_of(x)))


def _rows(inputs: Any, kinds: int) -> Any:
    """Yield each variable with its gradient and state."""
    count = (len(inputs) - 2) // kinds
    for i in range(count):
        yield [inputs[2 + k * count + i] for k in range(kinds)]


def _outputs(results: list[list[Any]]) -> list[Any]:
    return [v for column in zip(*results) for v in column]


@rule(f"{_DOMAIN}::Adagrad")
def adagrad(context: Any, inputs: Any, attributes: Any) -> Any:
    rate, step = inputs[:2]
    decay, epsilon = attributes.get("decay_factor", 0.0), attributes.get("epsilon", 0.0)
    rate = math.realdiv(rate, math.add(math.multiply(cast(step, dtype_of(rate)), number(decay, rate)), number(1, rate)))
    results = []
    for x, gradient, total in _rows(inputs, 3):
        g = math.add(_times(x, attributes.get("norm_coefficient", 0.0)), gradient)
        total = math.add(total, math.square(g))
        adapted = math.add(math.sqrt(total), number(epsilon, x))
        results.append([math.subtract(x, _times(math.realdiv(g, adapted), rate)), total])
    return _outputs(results)


@rule(f"{_DOMAIN}::Adam")
def adam(context: Any, inputs: Any, attributes: Any) -> Any:
    rate, step = inputs[:2]
    alpha, beta = attributes.get("alpha", 0.9), attributes.get("beta", 0.999)
    t = cast(step, dtype_of(rate))
    one = number(1, rate)
    corrected = math.multiply(
        rate,
        math.realdiv(
            math.sqrt(math.subtract(one, math.pow(number(beta, rate), t))),
            math.subtract(one, math.pow(number(alpha, rate), t)),
        ),
    )
    corrected = array.where(math.greater(t, number(0, t)), corrected, rate)
    results = []
    for x, gradient, v, h in _rows(inputs, 4):
        g = math.add(_times(x, attributes.get("norm_coefficient", 0.0)), gradient)
        v = math.add(_times(v, alpha), _times(g, 1 - alpha))
        h = math.add(_times(h, beta), _times(math.square(g), 1 - beta))
        root = math.add(math.sqrt(h), number(attributes.get("epsilon", 0.0), h))
        x = math.subtract(x, _times(math.realdiv(v, root), corrected))
        results.append([_times(x, 1 - attributes.get("norm_coefficient_post", 0.0)), v, h])
    return _outputs(results)


@rule(f"{_DOMAIN}::Momentum")
def momentum(context: Any, inputs: Any, attributes: Any) -> Any:
    rate, step = inputs[:2]
    alpha, beta = attributes["alpha"], attributes["beta"]
    beta = array.where(math.greater(step, number(0, step)), number(beta, rate), number(1, rate))
    results = []
    for x, gradient, v in _rows(inputs, 3):
        g = math.add(_times(x, attributes["norm_coefficient"]), gradient)
        v = math.add(_times(v, alpha), _times(g, beta))
        move = math.add(g, _times(v, alpha)) if attributes["mode"] == "nesterov" else v
        results.append([math.subtract(x, _times(move, rate)), v])
    return _outputs(results)
