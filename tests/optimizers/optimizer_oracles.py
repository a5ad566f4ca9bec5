"""The published update formulas, in plain NumPy.

Lives here: one function an optimizer, `descend`, which takes a whole course of steps, and the schedules' formulas.
Not here: what they are compared with (test_optimizers_*.py).

Each rule has the signature rule(s, w, g, t, lr, **hyperparameters) -> new w. s: a dictionary that the rule keeps its
state in, empty before the first step; t counts from 1.
"""

from __future__ import annotations

import math

import numpy as np


def sgd(s, w, g, t, lr, momentum=0.0, nesterov=False):
    """Sutskever et al., 2013, with the learning rate inside the velocity."""
    u = s["u"] = momentum * s.get("u", 0.0) - lr * g
    if momentum == 0.0:
        return w - lr * g
    return w + momentum * u - lr * g if nesterov else w + u


def adam(s, w, g, t, lr, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False):
    """Kingma and Ba, 2014, end of section 2: alpha_t = alpha sqrt(1 - b2^t) / (1 - b1^t), with epsilon hat."""
    m = s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
    v = s["v"] = beta_2 * s.get("v", 0.0) + (1 - beta_2) * g**2
    if amsgrad:
        v = s["largest"] = np.maximum(s.get("largest", 0.0), v)
    return w - lr * np.sqrt(1 - beta_2**t) / (1 - beta_1**t) * m / (np.sqrt(v) + epsilon)


def adamax(s, w, g, t, lr, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
    """Kingma and Ba, 2014, algorithm 2, with epsilon added to u."""
    m = s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
    u = s["u"] = np.maximum(beta_2 * s.get("u", 0.0), np.abs(g))
    return w - lr / (1 - beta_1**t) * m / (u + epsilon)


def nadam(s, w, g, t, lr, beta_1=0.9, beta_2=0.999, epsilon=1e-7):
    """Dozat, 2015, algorithm 2, with the schedule mu_t = b1 (1 - 0.5 * 0.96^t)."""
    mu = [beta_1 * (1 - 0.5 * 0.96**i) for i in range(1, t + 2)]
    m = s["m"] = beta_1 * s.get("m", 0.0) + (1 - beta_1) * g
    v = s["v"] = beta_2 * s.get("v", 0.0) + (1 - beta_2) * g**2
    g_hat = g / (1 - math.prod(mu[:t]))
    m_hat = m / (1 - math.prod(mu))
    m_bar = (1 - mu[t - 1]) * g_hat + mu[t] * m_hat
    return w - lr * m_bar / (np.sqrt(v / (1 - beta_2**t)) + epsilon)


def rmsprop(s, w, g, t, lr, rho=0.9, momentum=0.0, epsilon=1e-7, centered=False):
    """Hinton, 2012; centered: Graves, 2013, equations 38 to 41."""
    n = s["n"] = rho * s.get("n", 0.0) + (1 - rho) * g**2
    mean = s["mean"] = rho * s.get("mean", 0.0) + (1 - rho) * g
    u = s["u"] = momentum * s.get("u", 0.0) + lr * g / np.sqrt(n - (mean**2 if centered else 0.0) + epsilon)
    return w - u


def adadelta(s, w, g, t, lr, rho=0.95, epsilon=1e-7):
    """Zeiler, 2012, algorithm 1, times a learning rate."""
    squares = s["squares"] = rho * s.get("squares", 0.0) + (1 - rho) * g**2
    step = -np.sqrt(s.get("steps", 0.0) + epsilon) / np.sqrt(squares + epsilon) * g
    s["steps"] = rho * s.get("steps", 0.0) + (1 - rho) * step**2
    return w + lr * step


def adagrad(s, w, g, t, lr, initial_accumulator_value=0.1, epsilon=1e-7):
    """Duchi et al., 2011, the diagonal form."""
    a = s["a"] = s.get("a", initial_accumulator_value) + g**2
    return w - lr * g / np.sqrt(a + epsilon)


def ftrl(
    s,
    w,
    g,
    t,
    lr,
    learning_rate_power=-0.5,
    initial_accumulator_value=0.1,
    l1_regularization_strength=0.0,
    l2_regularization_strength=0.0,
    l2_shrinkage_regularization_strength=0.0,
    beta=0.0,
):
    """McMahan et al., 2013, algorithm 1; shrinkage adds 2 lambda w to the gradient of the linear term."""
    n = s.get("n", np.full_like(w, initial_accumulator_value))
    n_new = s["n"] = n + g**2
    sigma = (n_new**-learning_rate_power - n**-learning_rate_power) / lr
    z = s["z"] = s.get("z", 0.0) + g + 2 * l2_shrinkage_regularization_strength * w - sigma * w
    denominator = (beta + n_new**-learning_rate_power) / lr + 2 * l2_regularization_strength
    solution = (np.sign(z) * l1_regularization_strength - z) / denominator
    return np.where(np.abs(z) <= l1_regularization_strength, 0.0, solution)


def lion(s, w, g, t, lr, beta_1=0.9, beta_2=0.99):
    """Chen et al., 2023, algorithm 2."""
    m = s.get("m", np.zeros_like(w))
    s["m"] = beta_2 * m + (1 - beta_2) * g
    return w - lr * np.sign(beta_1 * m + (1 - beta_1) * g)


def schedule_free(s, w, g, t, lr, beta_1=0.9, beta_2=0.999, epsilon=1e-8, warmup_steps=0):
    """Defazio et al., 2024, algorithm 1, where the average x is kept as it is."""
    z, x = s.get("z", w), s.get("x", w)
    s["v"] = beta_2 * s.get("v", np.zeros_like(w)) + (1 - beta_2) * g**2
    rate = lr * min(1.0, t / warmup_steps) if warmup_steps else lr
    s["z"] = z - rate * g / (np.sqrt(s["v"] / (1 - beta_2**t)) + epsilon)
    s["x"] = (1 - 1 / t) * x + s["z"] / t
    return (1 - beta_1) * s["z"] + beta_1 * s["x"]


RULES = {
    "SGD": sgd,
    "Adam": adam,
    "AdamW": adam,
    "Adamax": adamax,
    "Nadam": nadam,
    "RMSprop": rmsprop,
    "Adadelta": adadelta,
    "Adagrad": adagrad,
    "Ftrl": ftrl,
    "Lion": lion,
    "ScheduleFreeAdamW": schedule_free,
}


def clipped(grads, clipnorm=None, clipvalue=None, global_clipnorm=None):
    """Gradients after the one kind of clipping that is asked for."""
    if clipnorm:
        return [g * min(1.0, clipnorm / np.sqrt((g**2).sum())) for g in grads]
    if global_clipnorm:
        return [g * min(1.0, global_clipnorm / np.sqrt(sum((h**2).sum() for h in grads))) for g in grads]
    return [np.clip(g, -clipvalue, clipvalue) for g in grads] if clipvalue else grads


def descend(
    name,
    start,
    steps,
    lr,
    *,
    weight_decay=None,
    use_ema=False,
    ema_momentum=0.99,
    ema_overwrite_frequency=None,
    loss_scale_factor=None,
    gradient_accumulation_steps=1,
    clipnorm=None,
    clipvalue=None,
    global_clipnorm=None,
    **hyper,
):
    """The variables after each of `steps` (lists of gradients, one for each variable), and the averages at the end.

    lr: a number, or a function of the number of steps made before.
    """
    rule, states = RULES[name], [{} for _ in start]
    if name == "AdamW" and weight_decay is None:
        weight_decay = 0.004
    ws, averages, held, course = list(start), [np.zeros_like(w) for w in start], [], []
    for result, grads in enumerate(steps):
        held.append([g / (loss_scale_factor or 1.0) for g in grads])
        updates = result // gradient_accumulation_steps
        if len(held) == gradient_accumulation_steps:
            grads = clipped([sum(gs) / len(held) for gs in zip(*held)], clipnorm, clipvalue, global_clipnorm)
            rate = lr(result) if callable(lr) else lr
            ws = [w - w * weight_decay * rate for w in ws] if weight_decay else ws
            ws = [rule(s, w, g, updates + 1, rate, **hyper) for s, w, g in zip(states, ws, grads)]
            held = []
        if use_ema:
            keep = ema_momentum if updates else 0.0
            averages = [keep * a + (1 - keep) * w for a, w in zip(averages, ws)]
            if ema_overwrite_frequency and (updates + 1) % ema_overwrite_frequency == 0:
                ws = averages
        course.append(ws)
    return course, averages


# ---- schedules ------------------------------------------------------------------------------------------------------


def exponential(t, initial_learning_rate, decay_steps, decay_rate, staircase=False):
    p = t // decay_steps if staircase else t / decay_steps
    return initial_learning_rate * decay_rate**p


def inverse_time(t, initial_learning_rate, decay_steps, decay_rate, staircase=False):
    p = t // decay_steps if staircase else t / decay_steps
    return initial_learning_rate / (1 + decay_rate * p)


def piecewise(t, boundaries, values):
    for boundary, value in zip(boundaries, values):
        if t <= boundary:
            return value
    return values[-1]


def polynomial(t, initial_learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False):
    if cycle:
        decay_steps *= max(1, math.ceil(t / decay_steps))
    t = min(t, decay_steps)
    return (initial_learning_rate - end_learning_rate) * (1 - t / decay_steps) ** power + end_learning_rate


def cosine(t, initial_learning_rate, decay_steps, alpha=0.0, warmup_target=None, warmup_steps=0):
    if warmup_target is not None:
        if t < warmup_steps:
            return initial_learning_rate + (warmup_target - initial_learning_rate) * t / warmup_steps
        t, initial_learning_rate = t - warmup_steps, warmup_target
    half = 0.5 * (1 + math.cos(math.pi * min(t, decay_steps) / decay_steps))
    return initial_learning_rate * ((1 - alpha) * half + alpha)


def cosine_restarts(t, initial_learning_rate, first_decay_steps, t_mul=2.0, m_mul=1.0, alpha=0.0):
    """By walking through the periods, where the schedule has a closed form."""
    period, height = float(first_decay_steps), 1.0
    while t >= period:
        t, period, height = t - period, period * t_mul, height * m_mul
    return initial_learning_rate * ((1 - alpha) * height * 0.5 * (1 + math.cos(math.pi * t / period)) + alpha)
