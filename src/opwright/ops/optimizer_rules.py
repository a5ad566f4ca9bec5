"""Update rules of optimizers: a variable and its state after one step, element by element.

Lives here: the formulas, once each, on NumPy arrays and in place.
Not here: hyperparameters and schedules (optimizers/), the operators that apply a step (optimizer_steps.py).

A rule is a function of (g, w, state, c) that updates w and state: g is the gradient, w the variable, state its slots, c
scalars, all of one dtype. g, w and state have one shape, so a rule applies to any rows of them. g may be a single zero:
if that saves work, `idle` computes the step, bit-identical to the rule.

New arrays are updated in place (`t *= c`), so that a block of a variable and its temporaries stay in the cache. No
Python number takes part: next to one, NumPy widens bfloat16 to float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# of a variable: w, the gradient, its state, the scalars
Update = Callable[[Any, Any, Sequence[Any], Sequence[Any]], None]


@dataclass(frozen=True, slots=True)
class Rule:
    """update: see the module. state, scalars: names of what it takes. still: a zero gradient changes nothing.

    idle: `idle(w, state, c)` changes w and state as `update` does for g = 0.
    """

    update: Update
    state: tuple[str, ...]
    scalars: tuple[str, ...]
    still: bool = False
    idle: Callable[[Any, Sequence[Any], Sequence[Any]], None] | None = None


RULES: dict[str, Rule] = {}


def _rule(state: str, scalars: str, still: bool = False, idle: Any = None) -> Callable[[Update], Update]:
    """Register a function in the table under its name."""

    def enter(update: Update) -> Update:
        RULES[update.__name__] = Rule(update, tuple(state.split()), tuple(scalars.split()), still, idle)
        return update

    return enter


def _approach(mean: Any, target: Any, weight: Any) -> None:
    """Compute mean + (target - mean) weight. target: a new array, or the gradient."""
    t = target - mean
    t *= weight
    mean += t


def _decay(means: Sequence[Any], keep: Any) -> None:
    for x in means:
        x *= keep


# ---- gradient descent -----------------------------------------------------------------------------------------------


@_rule("", "decay rate")
def decay(g: Any, w: Any, state: Any, c: Any) -> None:
    """Decoupled weight decay: w - w decay rate."""
    t = w * c[0]
    t *= c[1]
    w -= t


@_rule("", "momentum rest")
def average(g: Any, w: Any, state: Any, c: Any) -> None:
    """Update a running mean: momentum w + rest g."""
    w *= c[0]
    w += c[1] * g


@_rule("", "rate", still=True)
def descent(g: Any, w: Any, state: Any, c: Any) -> None:
    """Gradient descent: w - rate g."""
    w -= g * c[0]


def _momentum_idle(w: Any, state: Any, c: Any) -> None:
    (u,) = state
    u *= c[1]
    w += u


@_rule("u", "rate momentum", idle=_momentum_idle)
def momentum(g: Any, w: Any, state: Any, c: Any) -> None:
    """Momentum: u = mu u - rate g; w + u."""
    (u,) = state
    u *= c[1]
    u -= g * c[0]
    w += u


def _nesterov_idle(w: Any, state: Any, c: Any) -> None:
    (u,) = state
    u *= c[1]
    w += u * c[1]


@_rule("u", "rate momentum", idle=_nesterov_idle)
def nesterov(g: Any, w: Any, state: Any, c: Any) -> None:
    """Nesterov momentum: u = mu u - rate g; w + mu u - rate g."""
    (u,) = state
    step = g * c[0]
    u *= c[1]
    u -= step
    t = u * c[1]
    t -= step
    w += t


# ---- moments --------------------------------------------------------------------------------------------------------


def _moments(g: Any, m: Any, v: Any, rest_1: Any, rest_2: Any) -> None:
    """Update both moments: m + (g - m) rest_1; v + (g^2 - v) rest_2."""
    _approach(m, g, rest_1)
    t = g * g
    t -= v
    t *= rest_2
    v += t


def _moments_idle(m: Any, v: Any, rest_1: Any, rest_2: Any) -> None:
    m -= m * rest_1
    v -= v * rest_2


def _adam_step(w: Any, m: Any, v: Any, c: Any) -> None:
    """Apply Adam's step: w - rate m / (sqrt(v) + epsilon)."""
    below = np.sqrt(v)
    below += c[3]
    step = m * c[0]
    step /= below
    w -= step


def _adam_idle(w: Any, state: Any, c: Any) -> None:
    m, v = state
    _moments_idle(m, v, c[1], c[2])
    _adam_step(w, m, v, c)


@_rule("m v", "rate rest_1 rest_2 epsilon", idle=_adam_idle)
def adam(g: Any, w: Any, state: Any, c: Any) -> None:
    """Adam: m + (g - m) rest_1; v + (g^2 - v) rest_2; w - rate m / (sqrt(v) + epsilon), rest_i = 1 - beta_i."""
    m, v = state
    _moments(g, m, v, c[1], c[2])
    _adam_step(w, m, v, c)


def _amsgrad_idle(w: Any, state: Any, c: Any) -> None:
    m, v, largest = state
    _moments_idle(m, v, c[1], c[2])
    np.maximum(largest, v, out=largest)
    _adam_step(w, m, largest, c)


@_rule("m v largest", "rate rest_1 rest_2 epsilon", idle=_amsgrad_idle)
def amsgrad(g: Any, w: Any, state: Any, c: Any) -> None:
    """Adam divided by the root of the largest v so far."""
    m, v, largest = state
    _moments(g, m, v, c[1], c[2])
    np.maximum(largest, v, out=largest)
    _adam_step(w, m, largest, c)


def _adamax_step(w: Any, m: Any, u: Any, c: Any) -> None:
    below = u + c[4]
    below *= c[1]
    step = c[0] * m
    step /= below
    w -= step


def _adamax_idle(w: Any, state: Any, c: Any) -> None:
    m, u = state
    m -= m * c[2]
    u *= c[3]
    _adamax_step(w, m, u, c)


@_rule("m u", "rate correction rest_1 beta_2 epsilon", idle=_adamax_idle)
def adamax(g: Any, w: Any, state: Any, c: Any) -> None:
    """Adamax: m + (g - m) rest_1; u = max(beta_2 u, |g|); w - rate m / (correction (u + epsilon))."""
    m, u = state
    _approach(m, g, c[2])
    u *= c[3]
    np.maximum(u, np.abs(g), out=u)
    _adamax_step(w, m, u, c)


def _nadam_step(w: Any, mean: Any, v: Any, c: Any) -> None:
    below = v / c[7]
    below = np.sqrt(below)
    below += c[8]
    mean *= c[0]
    mean /= below
    w -= mean


def _nadam_idle(w: Any, state: Any, c: Any) -> None:
    m, v = state
    _moments_idle(m, v, c[5], c[6])
    mean = c[1] * m
    mean /= c[2]
    _nadam_step(w, mean, v, c)


@_rule("m v", "rate later rest_later weight rest to_m to_v correction epsilon", idle=_nadam_idle)
def nadam(g: Any, w: Any, state: Any, c: Any) -> None:
    """Nadam, on Adam's moments: w - rate (later m / rest_later + weight g / rest) / (sqrt(v / correction) + epsilon)"""
    m, v = state
    _moments(g, m, v, c[5], c[6])
    mean = c[1] * m
    mean /= c[2]
    now = c[3] * g
    now /= c[4]
    mean += now
    _nadam_step(w, mean, v, c)


@_rule("m", "rate beta_1 rest_1 beta_2 rest_2")
def lion(g: Any, w: Any, state: Any, c: Any) -> None:
    """Lion: w - rate sign(beta_1 m + rest_1 g); m = beta_2 m + rest_2 g."""
    (m,) = state
    t = m * c[1]
    t += g * c[2]
    t = np.sign(t)
    t *= c[0]
    w -= t
    m *= c[3]
    m += g * c[4]


# ---- squares --------------------------------------------------------------------------------------------------------


@_rule("a", "rate epsilon", still=True)
def adagrad(g: Any, w: Any, state: Any, c: Any) -> None:
    """Adagrad: a + g^2; w - rate g / sqrt(a + epsilon)."""
    (a,) = state
    a += g * g
    _rooted_step(w, c[0] * g, a, c[1])


def _rooted_step(w: Any, step: Any, squares: Any, epsilon: Any) -> None:
    """Compute w - step / sqrt(squares + epsilon). step: a new array."""
    step /= np.sqrt(squares + epsilon)
    w -= step


@_rule("n z", "rate power l1 l2 shrinkage")
def ftrl(g: Any, w: Any, state: Any, c: Any) -> None:
    """FTRL: n' = n + g^2; z + g + shrinkage w - (n'^power - n^power) w / rate; w from z, see optimizers.Ftrl."""
    rate, power, l1, l2, shrinkage = c
    n, z = state
    before = np.power(n, power)
    n += g * g
    after = np.power(n, power)
    z += (g + shrinkage * w) - (after - before) / rate * w
    after /= rate
    after += l2 + l2
    np.divide(np.minimum(np.maximum(z, -l1), l1) - z, after, out=w)


def _rmsprop_idle(w: Any, state: Any, c: Any) -> None:
    _decay(state, c[1])


def _mean(x: Any, target: Any, c: Any) -> None:
    """Update x = rho x + rest target. target: a new array, or the gradient."""
    x *= c[1]
    x += c[2] * target


def _variance(state: Sequence[np.ndarray]) -> np.ndarray:
    """Return v - mean^2."""
    v, mean = state[:2]
    t = mean * mean
    result: np.ndarray = v - t
    return result


@_rule("v", "rate rho rest epsilon", idle=_rmsprop_idle)
def rmsprop(g: Any, w: Any, state: Any, c: Any) -> None:
    """RMSProp: v = rho v + rest g^2; w - rate g / sqrt(v + epsilon), rest = 1 - rho."""
    _mean(state[0], g * g, c)
    _rooted_step(w, c[0] * g, state[0], c[3])


@_rule("v mean", "rate rho rest epsilon", idle=_rmsprop_idle)
def rmsprop_centered(g: Any, w: Any, state: Any, c: Any) -> None:
    """RMSProp with v - mean^2 under the root, mean = rho mean + rest g."""
    _mean(state[0], g * g, c)
    _mean(state[1], g, c)
    _rooted_step(w, c[0] * g, _variance(state), c[3])


@_rule("v u", "rate rho rest epsilon momentum")
def rmsprop_momentum(g: Any, w: Any, state: Any, c: Any) -> None:
    """RMSProp with its step added to momentum u."""
    v, u = state
    _mean(v, g * g, c)
    u *= c[4]
    u += c[0] * g / np.sqrt(v + c[3])
    w -= u


@_rule("v mean u", "rate rho rest epsilon momentum")
def rmsprop_centered_momentum(g: Any, w: Any, state: Any, c: Any) -> None:
    """Centered RMSProp with its step added to momentum u."""
    v, mean, u = state
    _mean(v, g * g, c)
    _mean(mean, g, c)
    u *= c[4]
    u += c[0] * g / np.sqrt(_variance(state) + c[3])
    w -= u


@_rule("a d", "rate rho rest epsilon", idle=_rmsprop_idle)
def adadelta(g: Any, w: Any, state: Any, c: Any) -> None:
    """Adadelta: a = rho a + rest g^2; s = g sqrt(d + epsilon) / sqrt(a + epsilon); d = rho d + rest s^2; w - rate s."""
    a, d = state
    _mean(a, g * g, c)
    step = np.sqrt(d + c[3])
    step *= g
    step /= np.sqrt(a + c[3])
    _mean(d, step * step, c)
    step *= c[0]
    w -= step
