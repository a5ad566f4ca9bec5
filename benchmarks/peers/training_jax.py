"""The training rows in JAX: jax.jit of a step with optax's Adam, whose weights and state are donated.

Lives here: losses and steps.  Not here: the models (models_jax.py), sizes and batches (../workloads.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import measure
from benchmarks.peers.models_jax import MODELS
from benchmarks.training_models import LEARNING_RATE
from benchmarks.workloads import WORKLOADS, Sizes, batch_of


def loss_of(name: str, outputs: Any, y: Any) -> tuple[Any, Any]:
    """Return the loss, and what a step returns besides: the statistics of batch normalisation."""
    import optax  # type: ignore[import-not-found]

    if name == "vae":
        logits, divergence = outputs
        return optax.sigmoid_binary_cross_entropy(logits, y).mean() + divergence, ()
    if name == "dlrm":
        return optax.sigmoid_binary_cross_entropy(outputs, y).mean(), ()
    logits, rest = outputs if name == "resnet18" else (outputs, ())
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), rest


def step(name: str, sizes: Sizes) -> Callable[[], object]:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        scale = (6 / (np.prod(shape[:-2], initial=1) * sum(shape[-2:]))) ** 0.5
        return jnp.asarray(rng.uniform(-scale, scale, shape).astype(np.float32))

    create, apply = MODELS[name]
    inputs, targets = batch_of(name, sizes)
    x, y = [jnp.asarray(a) for a in inputs], jnp.asarray(targets)
    weights = create(draw, sizes)
    optimizer = optax.adam(LEARNING_RATE, eps=1e-7)
    state = optimizer.init(weights)

    def forward(weights: Any, x: Any, y: Any) -> Any:
        return loss_of(name, apply(sizes, weights, *x), y)

    def train(weights: Any, state: Any, key: Any, x: Any, y: Any) -> Any:
        key, used = jax.random.split(key)
        inputs = [*x, used] if name == "vae" else x
        (loss, rest), gradients = jax.value_and_grad(forward, has_aux=True)(weights, inputs, y)
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, key, loss, rest

    compiled, key = jax.jit(train, donate_argnums=(0, 1)), jax.random.key(0)

    def run() -> object:
        nonlocal weights, state, key
        weights, state, key, loss, rest = compiled(weights, state, key, x, y)
        return jax.block_until_ready((weights, state, loss, rest))[2]

    return run


def runs() -> dict[str, measure.Prepare]:
    """Return the rows, by name."""
    return measure.training_runs(step, WORKLOADS)
