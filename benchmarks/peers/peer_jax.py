"""The rows in JAX.  Run by a Python that has it: `python -m benchmarks.peers.peer_jax ROW...`.

JAX has no tape; `tape_step` is its gradient transformation run without `jit`, the nearest thing to an eager step.
Calls return before the work is done, so each one waits for its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import measure
from benchmarks.peers import training_jax


def _matrices() -> tuple[Any, Any, Any, Any, Any]:
    import jax  # type: ignore[import-not-found]
    import jax.numpy as jnp  # type: ignore[import-not-found]

    x, w, b = jax.random.normal(jax.random.key(0), (3, 4, 4))
    return jax, jnp, x, w, b


def eager_add() -> Callable[[], object]:
    _, jnp, x, y, _ = _matrices()
    return lambda: jnp.add(x, y).block_until_ready()


def traced_call() -> Callable[[], object]:
    jax, jnp, x, w, b = _matrices()
    layer = jax.jit(lambda x, w, b: jnp.tanh(jnp.matmul(x, w) + b))
    return lambda: layer(x, w, b).block_until_ready()


def jit_chain() -> Callable[[], object]:
    jax, jnp, *_ = _matrices()

    @jax.jit
    def chain(x):
        y = jnp.maximum(x * 0.5 + 1.0, 0.0)
        return jnp.minimum(y * y - x, 6.0) * 0.25 + x

    x = jax.random.normal(jax.random.key(0), (10_000_000,))
    return lambda: chain(x).block_until_ready()


def dispatch() -> Callable[[], object]:
    import itertools

    jax, jnp, *_ = _matrices()
    shapes = [(4, 4 + i) for i in range(50)]
    arguments = [(jnp.ones((4, 4)), jnp.ones(shape), jnp.ones(shape)) for shape in shapes]
    layer = jax.jit(lambda x, w, b: jnp.tanh(jnp.matmul(x, w) + b))
    for each in arguments:
        layer(*each)
    in_turn = itertools.cycle(arguments)
    return lambda: layer(*next(in_turn)).block_until_ready()


TURNS = 10_000


def while_turn() -> float:
    jax, jnp, *_ = _matrices()

    @jax.jit
    def power(x, n):
        return jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * x), (0, jnp.ones_like(x)))[1]

    x = jnp.float32(1.0001)
    return measure.median_seconds(lambda: power(x, TURNS).block_until_ready()) / TURNS


MATRIX_TURNS, WRITES = 100, 10_000


def while_tensor() -> float:
    jax, jnp, *_ = _matrices()

    @jax.jit
    def cells(x, w, n):
        return jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.tanh(s[1] @ w)), (0, x))[1]

    keys = jax.random.split(jax.random.key(0))
    x, w = jax.random.normal(keys[0], (32, 128)), jax.random.normal(keys[1], (128, 128)) * 0.1
    return measure.median_seconds(lambda: cells(x, w, MATRIX_TURNS).block_until_ready()) / MATRIX_TURNS


def branch() -> Callable[[], object]:
    jax, jnp, *_ = _matrices()
    choice = jax.jit(lambda x, c: jax.lax.cond(c > 0.0, lambda: jnp.tanh(x) * 2.0, lambda: jnp.exp(x) - 1.0))
    x, c = jax.random.normal(jax.random.key(0), (16, 16)), jnp.float32(1.0)
    return lambda: choice(x, c).block_until_ready()


def array_write() -> float:
    jax, jnp, *_ = _matrices()

    @jax.jit
    def multiples(x):
        start = jnp.zeros((WRITES, *x.shape), x.dtype)
        return jax.lax.fori_loop(0, WRITES, lambda i, rows: rows.at[i].set(x * i.astype(x.dtype)), start)

    x = jax.random.normal(jax.random.key(0), (64,))
    return measure.median_seconds(lambda: multiples(x).block_until_ready()) / WRITES


def trace() -> Callable[[], object]:
    jax, jnp, x, w, _ = _matrices()

    def trace_anew() -> object:
        def sixty(x, w):  # a new function each time: JAX keeps traces by function
            for _ in range(20):
                x = jnp.tanh(jnp.matmul(x, w) + w)
            return x

        return jax.jit(sixty).trace(x, w)

    return trace_anew


def tape_step() -> Callable[[], object]:
    jax, jnp, x, w, b = _matrices()

    def step() -> object:
        y, pullback = jax.vjp(lambda w: jnp.tanh(jnp.matmul(x, w) + b), w)
        return pullback(jnp.ones_like(y))[0].block_until_ready()

    return step


DEEP, WIDE = 64, 1024


def deep_chain() -> Callable[[], object]:
    jax, jnp, *_ = _matrices()

    @jax.jit
    def chain(x):
        for _ in range(DEEP):
            x = x * 0.99 + 0.01
        return x

    x = jnp.ones((WIDE, WIDE))
    return lambda: chain(x).block_until_ready()


RUNS: dict[str, measure.Prepare] = {
    "import": lambda: measure.import_seconds("jax"),
    "import_whole": lambda: measure.import_seconds("jax", bare=False),
    "eager_add": eager_add,
    "traced_call": traced_call,
    "jit_call": traced_call,
    "jit_chain": jit_chain,
    "dispatch": dispatch,
    "trace": trace,
    "while_turn": while_turn,
    "while_tensor": while_tensor,
    "branch": branch,
    "array_write": array_write,
    "deep_chain": deep_chain,
    "tape_step": tape_step,
    **training_jax.runs(),
}

if __name__ == "__main__":
    measure.main(RUNS)
