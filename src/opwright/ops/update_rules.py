"""The update rules of optimizers, element by element: a variable and its state after one step.

Lives here: the formulas, once each.
Not here: hyperparameters and when a step is made (optimizers/), the operators that make it (updates.py).

A rule is a function of (xp, g, w, state, c): xp has sqrt, maximum, minimum, abs, sign and pow, as NumPy has them; g is
the gradient, w the variable, state what else is kept for it, c scalars. It gives the new w and the new state.

No Python number takes part: beside it NumPy makes float32 of bfloat16.

In all, g, w and state have one shape, so a rule may be used on any rows of them. Where the gradient is zero, `idle`
does the same in place on arrays, to the last bit, with less work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Step = tuple[Any, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Rule:
    """update: see the module. state, scalars: names of what it takes. still: a zero gradient changes nothing.

    idle: `idle(xp, w, state, c)` changes w and state as `update` does for g = 0.
    """

    update: Callable[[Any, Any, Any, Sequence[Any], Sequence[Any]], Step]
    state: tuple[str, ...]
    scalars: tuple[str, ...]
    still: bool = False
    idle: Callable[[Any, Any, Sequence[Any], Sequence[Any]], None] | None = None


RULES: dict[str, Rule] = {}


def _rule(state: str, scalars: str, still: bool = False, idle: Any = None) -> Callable[[Any], Any]:
    """Enter a function in the table under its name."""

    def enter(update: Any) -> Any:
        RULES[update.__name__] = Rule(update, tuple(state.split()), tuple(scalars.split()), still, idle)
        return update

    return enter


# ---- gradient descent -----------------------------------------------------------------------------------------------


def _decay_idle(xp: Any, w: Any, state: Any, c: Any) -> None:
    w -= w * c[0] * c[1]


@_rule("", "decay rate", idle=_decay_idle)
def decay(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """w - w decay rate: weight decay apart from the gradient."""
    return w - w * c[0] * c[1], ()


@_rule("", "momentum rest")
def average(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """momentum w + rest g: w is a running mean of what g is."""
    return c[0] * w + c[1] * g, ()


@_rule("", "rate", still=True)
def descent(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """w - rate g"""
    return w - g * c[0], ()


def _momentum_idle(xp: Any, w: Any, state: Any, c: Any) -> None:
    (u,) = state
    u *= c[1]
    w += u


@_rule("u", "rate momentum", idle=_momentum_idle)
def momentum(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """u = mu u - rate g; w + u"""
    u = state[0] * c[1] - g * c[0]
    return w + u, (u,)


def _nesterov_idle(xp: Any, w: Any, state: Any, c: Any) -> None:
    (u,) = state
    u *= c[1]
    w += u * c[1]


@_rule("u", "rate momentum", idle=_nesterov_idle)
def nesterov(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """u = mu u - rate g; w + mu u - rate g"""
    step = g * c[0]
    u = state[0] * c[1] - step
    return w + (u * c[1] - step), (u,)


# ---- moments --------------------------------------------------------------------------------------------------------


def _adam_idle(xp: Any, w: Any, state: Any, c: Any) -> None:
    m, v = state
    m -= m * c[1]
    v -= v * c[2]
    w -= m * c[0] / (xp.sqrt(v) + c[3])


@_rule("m v", "rate rest_1 rest_2 epsilon", idle=_adam_idle)
def adam(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """m + (g - m) rest_1; v + (g^2 - v) rest_2; w - rate m / (sqrt(v) + epsilon), rest_i = 1 - beta_i"""
    rate, rest_1, rest_2, epsilon = c
    m, v = state
    m = m + (g - m) * rest_1
    v = v + (g * g - v) * rest_2
    return w - m * rate / (xp.sqrt(v) + epsilon), (m, v)


def _amsgrad_idle(xp: Any, w: Any, state: Any, c: Any) -> None:
    m, v, largest = state
    m -= m * c[1]
    v -= v * c[2]
    xp.maximum(largest, v, out=largest)
    w -= m * c[0] / (xp.sqrt(largest) + c[3])


@_rule("m v largest", "rate rest_1 rest_2 epsilon", idle=_amsgrad_idle)
def amsgrad(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """adam, divided by the root of the largest v so far"""
    rate, rest_1, rest_2, epsilon = c
    m, v, largest = state
    m = m + (g - m) * rest_1
    v = v + (g * g - v) * rest_2
    largest = xp.maximum(largest, v)
    return w - m * rate / (xp.sqrt(largest) + epsilon), (m, v, largest)


def _adamax_idle(xp: Any, w: Any, state: Any, c: Any) -> None:
    m, u = state
    m -= m * c[2]
    u *= c[3]
    w -= c[0] * m / (c[1] * (u + c[4]))


@_rule("m u", "rate correction rest_1 beta_2 epsilon", idle=_adamax_idle)
def adamax(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """m + (g - m) rest_1; u = max(beta_2 u, |g|); w - rate m / (correction (u + epsilon))"""
    rate, correction, rest_1, beta_2, epsilon = c
    m, u = state
    m = m + (g - m) * rest_1
    u = xp.maximum(u * beta_2, xp.abs(g))
    return w - rate * m / (correction * (u + epsilon)), (m, u)


def _nadam_idle(xp: Any, w: Any, state: Any, c: Any) -> None:
    rate, later, rest_later, _, _, to_m, to_v, correction, epsilon = c
    m, v = state
    m -= m * to_m
    v -= v * to_v
    w -= later * m / rest_later * rate / (xp.sqrt(v / correction) + epsilon)


@_rule("m v", "rate later rest_later weight rest to_m to_v correction epsilon", idle=_nadam_idle)
def nadam(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """adam's m and v; w - rate (later m / rest_later + weight g / rest) / (sqrt(v / correction) + epsilon)"""
    rate, later, rest_later, weight, rest, to_m, to_v, correction, epsilon = c
    m, v = state
    m = m + (g - m) * to_m
    v = v + (g * g - v) * to_v
    mean = later * m / rest_later + weight * g / rest
    return w - mean * rate / (xp.sqrt(v / correction) + epsilon), (m, v)


@_rule("m", "rate beta_1 rest_1 beta_2 rest_2")
def lion(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """w - rate sign(beta_1 m + rest_1 g); m = beta_2 m + rest_2 g"""
    rate, beta_1, rest_1, beta_2, rest_2 = c
    (m,) = state
    return w - rate * xp.sign(m * beta_1 + g * rest_1), (m * beta_2 + g * rest_2,)


# ---- squares --------------------------------------------------------------------------------------------------------


@_rule("a", "rate epsilon", still=True)
def adagrad(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """a + g^2; w - rate g / sqrt(a + epsilon)"""
    a = state[0] + g * g
    return w - c[0] * g / xp.sqrt(a + c[1]), (a,)


@_rule("n z", "rate power l1 l2 shrinkage")
def ftrl(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """n' = n + g^2; z + g + shrinkage w - (n'^power - n^power) w / rate; w from z, see optimizers.Ftrl"""
    rate, power, l1, l2, shrinkage = c
    n, z = state
    n_new = n + g * g
    n_power = xp.pow(n_new, power)
    z = z + ((g + shrinkage * w) - (n_power - xp.pow(n, power)) / rate * w)
    return (xp.minimum(xp.maximum(z, -l1), l1) - z) / (n_power / rate + (l2 + l2)), (n_new, z)


def _rmsprop_idle(xp: Any, w: Any, state: Any, c: Any) -> None:
    for x in state:
        x *= c[1]


def _mean_squares(xp: Any, g: Any, v: Any, c: Any) -> Any:
    return c[1] * v + c[2] * (g * g)


@_rule("v", "rate rho rest epsilon", idle=_rmsprop_idle)
def rmsprop(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """v = rho v + rest g^2; w - rate g / sqrt(v + epsilon), rest = 1 - rho"""
    v = _mean_squares(xp, g, state[0], c)
    return w - c[0] * g / xp.sqrt(v + c[3]), (v,)


@_rule("v mean", "rate rho rest epsilon", idle=_rmsprop_idle)
def rmsprop_centered(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """rmsprop with v - mean^2 under the root, mean = rho mean + rest g"""
    v = _mean_squares(xp, g, state[0], c)
    mean = c[1] * state[1] + c[2] * g
    return w - c[0] * g / xp.sqrt(v - mean * mean + c[3]), (v, mean)


@_rule("v u", "rate rho rest epsilon momentum")
def rmsprop_momentum(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """rmsprop's step added to momentum u"""
    v = _mean_squares(xp, g, state[0], c)
    u = c[4] * state[1] + c[0] * g / xp.sqrt(v + c[3])
    return w - u, (v, u)


@_rule("v mean u", "rate rho rest epsilon momentum")
def rmsprop_centered_momentum(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """rmsprop_centered's step added to momentum u"""
    v = _mean_squares(xp, g, state[0], c)
    mean = c[1] * state[1] + c[2] * g
    u = c[4] * state[2] + c[0] * g / xp.sqrt(v - mean * mean + c[3])
    return w - u, (v, mean, u)


def _adadelta_idle(xp: Any, w: Any, state: Any, c: Any) -> None:
    for x in state:
        x *= c[1]


@_rule("a d", "rate rho rest epsilon", idle=_adadelta_idle)
def adadelta(xp: Any, g: Any, w: Any, state: Any, c: Any) -> Step:
    """a = rho a + rest g^2; s = g sqrt(d + epsilon) / sqrt(a + epsilon); d = rho d + rest s^2; w - rate s"""
    rate, rho, rest, epsilon = c
    a, d = state
    a = rho * a + rest * (g * g)
    step = xp.sqrt(d + epsilon) * g / xp.sqrt(a + epsilon)
    return w - rate * step, (a, rho * d + rest * (step * step))
