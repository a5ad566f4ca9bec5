"""Training loops as researchers write them, compiled: values against eager float64, and that they are native.

Lives here: steps with loops, lists, branches, nested tapes and updates.
Not here: single constructs (test_tensor_loops.py, tests/compiler/test_fixed_lists.py), models (tests/nn).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import opwright as ow

STEPS = 4


class Program:
    """The variables of a program, and its random inputs. dtype: of both."""

    def __init__(self, dtype: Any) -> None:
        self.dtype, self.rng, self.variables = dtype, np.random.default_rng(1), []

    def variable(self, *shape: int) -> Any:
        value = self.rng.standard_normal(shape) * 0.3
        self.variables.append(ow.Variable(ow.constant(value, self.dtype)))
        return self.variables[-1]

    def normal(self, *shape: int) -> Any:
        return ow.constant(self.rng.standard_normal(shape), self.dtype)

    def below(self, limit: int, *shape: int) -> Any:
        return ow.constant(self.rng.integers(0, limit, shape).astype(np.int32))


Made = tuple[Callable[..., Any], Callable[[], Sequence[Any]]]
"""A step, and its inputs."""


def reinforce(p: Program) -> Made:
    """Discounted rewards by a loop from the end."""
    a, b, optimizer = p.variable(4, 16), p.variable(16, 2), ow.optimizers.Adam(0.02)

    def step(states, actions, rewards):
        n = ow.shape(rewards)[0]
        returns, total = ow.TensorArray(p.dtype, size=n), ow.zeros((), p.dtype)
        for i in ow.range(n):
            total = rewards[n - 1 - i] + 0.9 * total
            returns = returns.write(n - 1 - i, total)
        gains = returns.stack()
        gains = (gains - ow.reduce_mean(gains)) / (ow.math.reduce_std(gains) + 1e-5)
        with ow.GradientTape() as tape:
            scores = ow.nn.log_softmax(ow.matmul(ow.tanh(ow.matmul(states, a)), b))
            loss = -ow.reduce_sum(ow.gather(scores, actions, batch_dims=1, axis=1) * ow.stop_gradient(gains))
        optimizer.apply_gradients(zip(tape.gradient(loss, [a, b]), [a, b]))
        return loss

    return step, lambda: (p.normal(9, 4), p.below(2, 9), p.normal(9))


def crf(p: Program) -> Made:
    """The forward recursion of a conditional random field, with lengths."""
    transitions, w, optimizer = p.variable(4, 4), p.variable(5, 4), ow.optimizers.Adam(0.02)

    def step(x, tags, lengths):
        with ow.GradientTape() as tape:
            scores = ow.einsum("btf,fk->btk", x, w)
            alpha = scores[:, 0]
            for i in ow.range(1, ow.shape(scores)[1]):
                following = ow.reduce_logsumexp(alpha[:, :, None] + transitions, axis=1) + scores[:, i]
                alpha = ow.where((i <= lengths)[:, None], following, alpha)
            mask = ow.sequence_mask(lengths + 1, ow.shape(scores)[1], dtype=p.dtype)
            unary = ow.reduce_sum(ow.gather(scores, tags, batch_dims=2, axis=2) * mask, 1)
            pairs = ow.gather_nd(transitions, ow.stack([tags[:, :-1], tags[:, 1:]], -1))
            loss = ow.reduce_mean(ow.reduce_logsumexp(alpha, axis=1) - unary - ow.reduce_sum(pairs * mask[:, 1:], 1))
        variables = [transitions, w]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step, lambda: (p.normal(3, 7, 5), p.below(4, 3, 7), p.below(7, 3))


def attention(p: Program) -> Made:
    """Sequences to sequences: an encoder and a decoder with attention, as loops."""
    embedding, encoder, decoder, head = (p.variable(*s) for s in ((12, 6), (12, 18), (12, 18), (12, 12)))
    optimizer = ow.optimizers.Adam(0.01)

    def cell(x, h, w):
        z, r, c = ow.split(ow.matmul(ow.concat([x, h], 1), w), 3, axis=1)
        z = ow.sigmoid(z)
        return (1 - z) * h + z * ow.tanh(c * ow.sigmoid(r))

    def step(source, target):
        with ow.GradientTape() as tape:
            h, x = ow.zeros((3, 6), p.dtype), ow.gather(embedding, source)
            states = ow.TensorArray(p.dtype, size=ow.shape(source)[1])
            for i in ow.range(ow.shape(source)[1]):
                h = cell(x[:, i], h, encoder)
                states = states.write(i, h)
            memory, y, loss = (
                ow.transpose(states.stack(), [1, 0, 2]),
                ow.gather(embedding, target),
                ow.zeros((), p.dtype),
            )
            for i in ow.range(ow.shape(target)[1] - 1):
                h = cell(y[:, i], h, decoder)
                weights = ow.nn.softmax(ow.einsum("bth,bh->bt", memory, h))
                context = ow.concat([h, ow.einsum("bt,bth->bh", weights, memory)], 1)
                labels, logits = target[:, i + 1], ow.matmul(context, head)
                each = ow.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
                loss += ow.reduce_sum(each * ow.cast(labels > 0, p.dtype))
        variables = [embedding, encoder, decoder, head]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step, lambda: (p.below(12, 3, 5), p.below(12, 3, 6))


def experts(p: Program) -> Made:
    """A mixture of the two best of four experts."""
    gate, first, second = p.variable(6, 4), p.variable(4, 6, 8), p.variable(4, 8, 6)
    optimizer = ow.optimizers.Adam(0.01)

    def step(x, y):
        with ow.GradientTape() as tape:
            shares, chosen = ow.math.top_k(ow.nn.softmax(ow.matmul(x, gate)), 2)
            shares = shares / ow.reduce_sum(shares, 1, keepdims=True)
            weights = ow.reduce_sum(ow.one_hot(chosen, 4, dtype=p.dtype) * shares[..., None], 1)
            hidden = ow.nn.gelu(ow.einsum("bf,efh->ebh", x, first))
            results = ow.einsum("be,ebf->bf", weights, ow.einsum("ebh,ehf->ebf", hidden, second))
            loss = ow.reduce_mean((results - y) ** 2)
        variables = [gate, first, second]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step, lambda: (p.normal(9, 6), p.normal(9, 6))


def adaptive_steps(p: Program) -> Made:
    """A differential equation by steps whose size follows from their error."""
    a, b, optimizer = p.variable(2, 12), p.variable(12, 2), ow.optimizers.Adam(0.01)

    def step(y, target):
        def slope(y):
            return ow.matmul(ow.tanh(ow.matmul(y, a)), b)

        with ow.GradientTape() as tape:
            t, h = ow.zeros((), p.dtype), ow.constant(0.3, p.dtype)
            while t < 1.0:
                h = ow.minimum(h, 1.0 - t)
                k1 = slope(y)
                k2 = slope(y + h * k1)
                if ow.stop_gradient(ow.reduce_max(ow.abs(k2 - k1)) * h) < 0.04:
                    y, t, h = y + h * (k1 + k2) / 2, t + h, h * 1.5
                else:
                    h = h * 0.5
            loss = ow.reduce_mean((y - target) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, [a, b]), [a, b]))
        return loss

    return step, lambda: (p.normal(6, 2), p.normal(6, 2))


def adaptation(p: Program) -> Made:
    """Meta-learning: derivatives of steps of gradient descent in a loop of unknown length."""
    a, b, optimizer = p.variable(1, 10), p.variable(10, 1), ow.optimizers.Adam(0.01)

    def step(x, y, n):
        def error(a, b):
            return ow.reduce_mean((ow.matmul(ow.tanh(ow.matmul(x, a)), b) - y) ** 2)

        with ow.GradientTape() as outer:
            c, d = ow.identity(a), ow.identity(b)
            for _ in ow.range(n):
                with ow.GradientTape() as inner:
                    inner.watch([c, d])
                    loss = error(c, d)
                dc, dd = inner.gradient(loss, [c, d])
                c, d = c - 0.1 * dc, d - 0.1 * dd
            loss = error(c, d)
        optimizer.apply_gradients(zip(outer.gradient(loss, [a, b]), [a, b]))
        return loss

    return step, lambda: (p.normal(5, 1), p.normal(5, 1), ow.constant(3))


def beam_search(p: Program) -> Made:
    embedding, head = p.normal(10, 8), p.normal(8, 10)

    def step(start, n):
        beams, scores = ow.zeros((3, 12), ow.int32), ow.constant([0.0, -1e9, -1e9], p.dtype)
        state, done, i = ow.tile(start[None], [3, 1]), ow.zeros((3,), ow.bool), ow.constant(0)
        while i < n and not ow.reduce_all(done):
            following = ow.nn.log_softmax(ow.matmul(ow.tanh(state), head))
            following = ow.where(done[:, None], ow.constant([0.0] + [-1e9] * 9, p.dtype), following)
            scores, best = ow.math.top_k(ow.reshape(scores[:, None] + following, [-1]), 3)
            parents, tokens = best // 10, best % 10
            places = ow.stack([ow.range(3), ow.fill([3], i)], 1)
            beams = ow.tensor_scatter_nd_update(ow.gather(beams, parents), places, tokens)
            state = ow.gather(state, parents) * 0.7 + ow.gather(embedding, tokens)
            done = ow.gather(done, parents) | (tokens == 0)
            i += 1
        return beams, scores, i

    return step, lambda: (p.normal(8), ow.constant(12))


def viterbi(p: Program) -> Made:
    transitions = p.normal(4, 4)

    def step(scores):
        n = ow.shape(scores)[0]
        back, best = ow.TensorArray(ow.int64, size=n, element_shape=(4,)), scores[0]
        for i in ow.range(1, n):
            paths = best[:, None] + transitions
            back = back.write(i, ow.argmax(paths, 0))
            best = ow.reduce_max(paths, 0) + scores[i]
        state, path = ow.argmax(best), ow.TensorArray(ow.int64, size=n)
        path = path.write(n - 1, state)
        for i in ow.range(n - 1):
            state = back.read(n - 1 - i)[state]
            path = path.write(n - 2 - i, state)
        return path.stack(), ow.reduce_max(best)

    return step, lambda: (p.normal(8, 4),)


def radiance(p: Program) -> Made:
    """Colors of rays through a field of densities: what passes is a cumulative product."""
    w, head, optimizer = p.variable(9, 16), p.variable(16, 4), ow.optimizers.Adam(0.01)

    def step(points, distances, colors):
        with ow.GradientTape() as tape:
            features = ow.concat([points, ow.sin(points), ow.cos(points)], -1)
            field = ow.matmul(ow.nn.relu(ow.matmul(features, w)), head)
            alpha = 1 - ow.exp(-ow.nn.softplus(field[..., 3]) * distances)
            weights = alpha * ow.math.cumprod(1 - alpha + 1e-6, axis=-1, exclusive=True)
            rays = ow.reduce_sum(weights[..., None] * ow.sigmoid(field[..., :3]), -2)
            loss = ow.reduce_mean(ow.square(rays - colors))
        variables = [w, head]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step, lambda: (p.normal(6, 11, 3), ow.abs(p.normal(6, 11)), p.normal(6, 3))


def mined_triplets(p: Program) -> Made:
    """Distances to the farthest of one's own class and the nearest of another."""
    w, optimizer = p.variable(6, 5), ow.optimizers.Adam(0.02)

    def step(x, labels):
        with ow.GradientTape() as tape:
            e = ow.math.l2_normalize(ow.matmul(x, w), -1)
            distance = 2 - 2 * ow.matmul(e, e, transpose_b=True)
            same = labels[:, None] == labels
            own = ow.where(same, distance, ow.fill(ow.shape(distance), ow.constant(-9.0, p.dtype)))
            own = ow.linalg.set_diag(own, ow.fill([ow.shape(x)[0]], ow.constant(-9.0, p.dtype)))
            other = ow.where(same, ow.constant(9.0, p.dtype), distance)
            loss = ow.reduce_mean(ow.nn.softplus(ow.reduce_max(own, 1) - ow.reduce_min(other, 1) + 0.2))
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
        return loss

    return step, lambda: (p.normal(16, 6), p.below(4, 16))


def evidence(p: Program) -> Made:
    """Parameters of Dirichlet distributions by their likelihood and a part of their entropy."""
    w, optimizer = p.variable(5, 4), ow.optimizers.Adam(0.02)

    def step(x, y):
        with ow.GradientTape() as tape:
            alpha, share = ow.nn.softplus(ow.matmul(x, w)) + 0.2, ow.nn.softmax(y)
            normalizer = ow.math.lgamma(ow.reduce_sum(alpha, -1)) - ow.reduce_sum(ow.math.lgamma(alpha), -1)
            likelihood = normalizer + ow.reduce_sum(ow.math.xlogy(alpha - 1, share), -1)
            spread = ow.reduce_sum((alpha - 1) * ow.math.digamma(alpha), -1)
            loss = ow.reduce_mean(0.1 * spread - likelihood)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w]), [w]))
        return loss

    return step, lambda: (p.normal(9, 5), p.normal(9, 4))


QUICK = [reinforce, attention, beam_search, viterbi]
LONG = (crf, experts, adaptive_steps, adaptation, radiance, mined_triplets, evidence)
SLOW = [pytest.param(p, marks=pytest.mark.slow) for p in LONG]


@pytest.mark.parametrize("program", QUICK + SLOW)
def test_programs_of_researchers_are_one_native_call(program):
    results = []
    for dtype in (ow.float64, ow.float32):
        p = Program(dtype)
        step, inputs = program(p)
        function = ow.function(step, jit_compile=True)
        ow.config.run_functions_eagerly(dtype is ow.float64)
        try:
            outputs = [function(*inputs()) for _ in range(STEPS)]
        finally:
            ow.config.run_functions_eagerly(False)
        results.append([np.asarray(v) for v in (*ow.nest.flatten(outputs), *p.variables)])
    for expected, actual in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=2e-5)
    report = function.experimental_get_compiler_ir(*inputs())().splitlines()
    assert "in 1 native calls" in report[0], report
    assert all(line.endswith("reads and writes of variables") for line in report[2:]), report
