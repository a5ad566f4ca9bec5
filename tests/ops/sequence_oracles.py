"""Oracles of operators on sequences: plain loops over the sequences, in float64.

Lives here: the oracles of cases_sequence.py and the test_sequence_*.py.  Not here: any of Opwright.
"""

from __future__ import annotations

import math

import numpy as np

POOLS = ("AVERAGE", "SUM", "SQRT", "LAST", "FIRST", "MAX")


def spans(offsets):
    return list(zip(offsets[:-1].tolist(), offsets[1:].tolist()))


def pool(x, offsets, kind, pad=0.0):
    of = {
        "SUM": lambda s: s.sum(0),
        "AVERAGE": lambda s: s.sum(0) / len(s),
        "SQRT": lambda s: s.sum(0) / len(s) ** 0.5,
        "FIRST": lambda s: s[0],
        "LAST": lambda s: s[-1],
        "MAX": lambda s: s.max(0),
    }[kind]
    y = np.full((len(offsets) - 1, *x.shape[1:]), pad)
    for i, (a, b) in enumerate(spans(offsets)):
        if b > a:
            y[i] = of(x[a:b])
    return y


def softmax(x, offsets):
    y = np.zeros_like(x)
    for a, b in spans(offsets):
        if b > a:
            e = np.exp(x[a:b] - x[a:b].max())
            y[a:b] = e / e.sum()
    return y


def expand(x, offsets, by):
    """The rows; with offsets also the new ones."""
    parts, lengths = [x[:0]], []
    units = [(i, i + 1) for i in range(len(x))] if offsets is None else spans(offsets)
    for (a, b), (c, d) in zip(units, spans(by)):
        for _ in range(d - c):
            parts.append(x[a:b])
            lengths.append(b - a)
    y = np.concatenate(parts)
    return y if offsets is None else (y, np.cumsum([0, *lengths]))


def concat(x, offsets):
    parts, result = [x[0][:0]], [0]
    for of_each in zip(*map(spans, offsets)):
        for one, (a, b) in zip(x, of_each):
            parts.append(one[a:b])
        result.append(result[-1] + sum(b - a for a, b in of_each))
    return np.concatenate(parts), result


def slice(x, offset, length, offsets):
    parts, result = [x[:0]], [0]
    for (a, _), at, n in zip(spans(offsets), offset[:, 0].tolist(), length[:, 0].tolist()):
        parts.append(x[a + at : a + at + n])
        result.append(result[-1] + n)
    return np.concatenate(parts), result


def reverse(x, offsets):
    return np.concatenate([x[:0], *(x[a:b][::-1] for a, b in spans(offsets))])


def pad(x, value, offsets, size=None):
    lengths = np.diff(offsets)
    size = lengths.max() if size is None else size
    y = np.zeros((len(lengths), size, *x.shape[1:]), x.dtype)
    y[...] = value
    for i, (a, b) in enumerate(spans(offsets)):
        y[i, : b - a] = x[a:b]
    return y, lengths


def unpad(x, length):
    x = x[..., None] if x.ndim == 2 else x
    return np.concatenate([row[:n] for row, n in zip(x, length)]), np.cumsum([0, *length])


def windows(x, offsets, size, start, padding=None):
    up = max(0, -start)
    y = np.zeros((len(x), size, x.shape[1]))
    for a, b in spans(offsets):
        for t in range(b - a):
            for j in range(size):
                p, n = t + start + j, b - a
                if 0 <= p < n:
                    y[a + t, j] = x[a + p]
                elif padding is not None:
                    y[a + t, j] = padding[p + up] if p < 0 else padding[up + p - n]
    return y.reshape(len(x), size * x.shape[1])


def windows_gradient(dy, offsets, size, start):
    up, down = max(0, -start), max(0, start + size - 1)
    width = dy.shape[1] // size
    dx, dpadding = np.zeros((len(dy), width)), np.zeros((up + down, width))
    for a, b in spans(offsets):
        for t in range(b - a):
            for j in range(size):
                p, n, part = t + start + j, b - a, dy[a + t, j * width : (j + 1) * width]
                if 0 <= p < n:
                    dx[a + p] += part
                else:
                    dpadding[p + up if p < 0 else up + p - n] += part
    return dx, dpadding


def scatter(x, ids, updates, offsets, _):
    y = x.copy()
    for i, (a, b) in enumerate(spans(offsets)):
        for t in range(a, b):
            y[i].reshape(-1)[ids[t, 0]] += updates[t, 0]
    return y


# ---- recurrences, step by step of each sequence --------------------------------------------------------------------


def _sigmoid(v):
    return 1.0 / (1.0 + np.exp(-np.clip(v, -40.0, 13.0)))


ACTIVATIONS = {"sigmoid": _sigmoid, "tanh": np.tanh, "relu": lambda v: np.maximum(v, 0.0), "identity": lambda v: v}


def _steps(a, b, reverse):
    return range(b - 1, a - 1, -1) if reverse else range(a, b)


def lstm(
    x,
    weight,
    bias,
    h0,
    c0,
    offsets,
    use_peepholes=True,
    is_reverse=False,
    gate_activation="sigmoid",
    cell_activation="tanh",
    candidate_activation="tanh",
):
    d = len(weight)
    g, s, a_ = (ACTIVATIONS[k] for k in (gate_activation, cell_activation, candidate_activation))
    w_ic, w_fc, w_oc = bias[0, 4 * d :].reshape(3, d) if use_peepholes else np.zeros((3, d))
    hidden, cell = np.zeros((len(x), d)), np.zeros((len(x), d))
    for k, (a, b) in enumerate(spans(offsets)):
        h, c = (np.zeros(d), np.zeros(d)) if h0 is None else (h0[k], c0[k])
        for t in _steps(a, b, is_reverse):
            z = x[t] + h @ weight + bias[0, : 4 * d]
            i, f = g(z[d : 2 * d] + w_ic * c), g(z[2 * d : 3 * d] + w_fc * c)
            c = f * c + i * a_(z[:d])
            h = g(z[3 * d :] + w_oc * c) * s(c)
            hidden[t], cell[t] = h, c
    return hidden, cell


def gru(
    x, weight, bias, h0, offsets, activation="tanh", gate_activation="sigmoid", is_reverse=False, origin_mode=False
):
    d = len(weight)
    g, act = ACTIVATIONS[gate_activation], ACTIVATIONS[activation]
    memory = weight.ravel()
    w_gates, w_candidate = memory[: 2 * d * d].reshape(d, 2 * d), memory[2 * d * d :].reshape(d, d)
    bias = np.zeros(3 * d) if bias is None else bias[0]
    hidden = np.zeros((len(x), d))
    for k, (a, b) in enumerate(spans(offsets)):
        h = np.zeros(d) if h0 is None else h0[k]
        for t in _steps(a, b, is_reverse):
            gates = g(x[t, : 2 * d] + h @ w_gates + bias[: 2 * d])
            u, r = gates[:d], gates[d:]
            c = act(x[t, 2 * d :] + (r * h) @ w_candidate + bias[2 * d :])
            h = u * h + (1 - u) * c if origin_mode else (1 - u) * h + u * c
            hidden[t] = h
    return hidden


def differences(f, x, weights, eps=1e-6):
    """The gradient of sum(weights * f(x)) by central differences."""
    grad = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        moved = []
        for step in (eps, -eps):
            y = x.copy()
            y[at] += step
            moved.append(math.fsum(float(np.sum(w * v)) for w, v in zip(weights, f(y))))
        grad[at] = (moved[0] - moved[1]) / (2 * eps)
    return grad


def lstm_sequence(x, kernel, h0, c0):
    """Return h of all steps [time, batch, units], and h and c after the last one."""
    h, c, states = h0, c0, np.zeros((len(x), *h0.shape))
    g = ACTIVATIONS["sigmoid"]
    for t in range(len(x)):
        i, f, candidate, o = np.split(x[t] + h @ kernel, 4, -1)
        c = g(f) * c + g(i) * np.tanh(candidate)
        h = g(o) * np.tanh(c)
        states[t] = h
    return states, h, c


def lstm_sequence_grad(dh, dlast_h, dlast_c, x, kernel, h0, c0, h, c, gates, dc=None):
    """Return the gradients of x, h0 and c0 by the chain rule, one element of a state at a time."""
    (steps, batch, units), dx = dh.shape, np.zeros_like(gates)
    dh, dlast_h, dlast_c = np.array(dh), np.array(dlast_h), np.array(dlast_c)
    for t in reversed(range(steps)):
        before = c[t - 1] if t else c0
        dhidden = dh[t] + dlast_h
        for b in range(batch):
            for u in range(units):
                i, f, candidate, o = (gates[t, b, k * units + u] for k in range(4))
                squashed = np.tanh(c[t, b, u])
                dcell = dlast_c[b, u] + dhidden[b, u] * o * (1 - squashed**2) + (0 if dc is None else dc[t, b, u])
                dx[t, b, u] = dcell * candidate * i * (1 - i)
                dx[t, b, units + u] = dcell * before[b, u] * f * (1 - f)
                dx[t, b, 2 * units + u] = dcell * i * (1 - candidate**2)
                dx[t, b, 3 * units + u] = dhidden[b, u] * squashed * o * (1 - o)
                dlast_c[b, u] = dcell * f
        dlast_h = dx[t] @ kernel.T
    return dx, dlast_h, dlast_c


def gru_sequence(x, kernel, bias, h0):
    """Return h of all steps [time, batch, units], and h after the last one."""
    h, states = h0, np.zeros((len(x), *h0.shape))
    g = ACTIVATIONS["sigmoid"]
    for t in range(len(x)):
        (x_z, x_r, x_g), (n_z, n_r, n_g) = (np.split(v, 3, -1) for v in (x[t], h @ kernel + bias))
        z = g(x_z + n_z)
        h = z * h + (1 - z) * np.tanh(x_g + g(x_r + n_r) * n_g)
        states[t] = h
    return states, h


def gru_sequence_grad(dh, dlast_h, x, kernel, bias, h0, h, gates, inner):
    """Return the gradients of x, n and h0 by the chain rule, one element of a state at a time."""
    (steps, batch, units), dx, dn = dh.shape, np.zeros_like(gates), np.zeros_like(gates)
    following = np.array(dlast_h)
    for t in reversed(range(steps)):
        before, dhidden = h[t - 1] if t else h0, dh[t] + following
        for b in range(batch):
            for u in range(units):
                z, r, candidate = (gates[t, b, k * units + u] for k in range(3))
                dcandidate = dhidden[b, u] * (1 - z) * (1 - candidate**2)
                dx[t, b, u] = dn[t, b, u] = dhidden[b, u] * (before[b, u] - candidate) * z * (1 - z)
                dx[t, b, units + u] = dn[t, b, units + u] = dcandidate * inner[t, b, u] * r * (1 - r)
                dx[t, b, 2 * units + u], dn[t, b, 2 * units + u] = dcandidate, dcandidate * r
        following = dhidden * gates[t, :, :units] + dn[t] @ kernel.T
    return dx, dn, following
