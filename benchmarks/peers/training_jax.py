"""The training rows in JAX: jax.jit of a step with optax's Adam, whose weights and state are donated.

Lives here: the models as functions of their weights, steps.  Not here: sizes and batches (../workloads.py).

A model is a pair: `create(key_by_key)` gives the weights, `apply(weights, *inputs)` the logits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from benchmarks import measure
from benchmarks.training_models import LEARNING_RATE
from benchmarks.workloads import WORKLOADS, Sizes, batch_of

Draw = Callable[..., Any]
"""Draws weights of a shape, by Glorot's rule over the last two sizes."""


def dense(draw: Draw, m: int, n: int) -> dict[str, Any]:
    import jax.numpy as jnp

    return {"w": draw(m, n), "b": jnp.zeros(n)}


def apply_dense(p: Any, x: Any) -> Any:
    return x @ p["w"] + p["b"]


def convolution(draw: Draw, m: int, n: int, size: int = 3) -> dict[str, Any]:
    import jax.numpy as jnp

    return {"w": draw(size, size, m, n), "b": jnp.zeros(n)}


def apply_convolution(p: Any, x: Any, stride: int = 1, padding: str = "VALID") -> Any:
    import jax

    y = jax.lax.conv_general_dilated(x, p["w"], (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + p["b"] if "b" in p else y


def max_pool(x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def create_mlp(draw: Draw, s: Sizes) -> Any:
    widths = (s["features"], s["hidden"], s["hidden"], s["classes"])
    return [dense(draw, m, n) for m, n in itertools.pairwise(widths)]


def apply_mlp(s: Sizes, p: Any, x: Any) -> Any:
    import jax

    for layer in p[:-1]:
        x = jax.nn.relu(apply_dense(layer, x))
    return apply_dense(p[-1], x)


def create_cnn(draw: Draw, s: Sizes) -> Any:
    side = ((s["image"] - 2) // 2 - 2) // 2 - 2
    channels = (s["channels"], s["first"], s["filters"], s["filters"])
    return {
        "convolutions": [convolution(draw, m, n) for m, n in itertools.pairwise(channels)],
        "hidden": dense(draw, side * side * s["filters"], s["filters"]),
        "head": dense(draw, s["filters"], s["classes"]),
    }


def apply_cnn(s: Sizes, p: Any, x: Any) -> Any:
    import jax

    for i, layer in enumerate(p["convolutions"]):
        x = jax.nn.relu(apply_convolution(layer, x))
        x = max_pool(x) if i < 2 else x
    return apply_dense(p["head"], jax.nn.relu(apply_dense(p["hidden"], x.reshape(len(x), -1))))


def create_lstm(draw: Draw, s: Sizes) -> Any:
    units = s["units"]
    return {
        "input": dense(draw, s["features"], 4 * units),
        "recurrent": draw(units, 4 * units),
        "head": dense(draw, units, s["classes"]),
    }


def apply_lstm(s: Sizes, p: Any, x: Any) -> Any:
    """The products of all inputs are one, before the loop."""
    import jax
    import jax.numpy as jnp

    projected = jnp.swapaxes(apply_dense(p["input"], x), 0, 1)

    def cell(state: Any, row: Any) -> tuple[Any, None]:
        h, c = state
        i, f, g, o = jnp.split(row + h @ p["recurrent"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((x.shape[0], s["units"]))
    (h, _), _ = jax.lax.scan(cell, (zeros, zeros), projected)
    return apply_dense(p["head"], h)


def normalization(n: int) -> dict[str, Any]:
    import jax.numpy as jnp

    return {"gamma": jnp.ones(n), "beta": jnp.zeros(n)}


def apply_layer_norm(p: Any, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-3) * p["gamma"] + p["beta"]


def attention(draw: Draw, width: int) -> dict[str, Any]:
    return {"projection": dense(draw, width, 3 * width), "output": dense(draw, width, width)}


def apply_attention(p: Any, x: Any, heads: int, causal: bool = False) -> Any:
    import jax
    import jax.numpy as jnp

    n, t, width = x.shape
    projected = apply_dense(p["projection"], x).reshape(n, t, 3, heads, width // heads)
    q, k, v = projected[:, :, 0], projected[:, :, 1], projected[:, :, 2]
    scores = jnp.einsum("nqhd,nkhd->nhqk", q, k) * (width // heads) ** -0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e30)
    y = jnp.einsum("nhqk,nkhd->nqhd", jax.nn.softmax(scores), v)
    return apply_dense(p["output"], y.reshape(n, t, width))


def create_encoder(draw: Draw, s: Sizes) -> Any:
    width = s["width"]
    layers = [
        {
            "attention": attention(draw, width),
            "first": dense(draw, width, s["hidden"]),
            "second": dense(draw, s["hidden"], width),
            "norms": [normalization(width), normalization(width)],
        }
        for _ in range(s["layers"])
    ]
    return {"layers": layers, "head": dense(draw, width, s["classes"])}


def apply_encoder(s: Sizes, p: Any, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    for layer in p["layers"]:
        x = apply_layer_norm(layer["norms"][0], x + apply_attention(layer["attention"], x, s["heads"]))
        y = apply_dense(layer["second"], jax.nn.relu(apply_dense(layer["first"], x)))
        x = apply_layer_norm(layer["norms"][1], x + y)
    return apply_dense(p["head"], jnp.mean(x, 1))


MODELS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "mlp": (create_mlp, apply_mlp),
    "cnn": (create_cnn, apply_cnn),
    "lstm": (create_lstm, apply_lstm),
    "encoder": (create_encoder, apply_encoder),
}


def cross_entropy(logits: Any, targets: Any) -> Any:
    import optax  # type: ignore[import-not-found]

    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


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

    def train(weights: Any, state: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda w: cross_entropy(apply(sizes, w, *x), y))(weights)
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, loss

    compiled = jax.jit(train, donate_argnums=(0, 1))

    def run() -> object:
        nonlocal weights, state
        weights, state, loss = compiled(weights, state, x, y)
        return jax.block_until_ready((weights, state, loss))[2]

    return run


def runs() -> dict[str, measure.Prepare]:
    """Return the rows, by name."""
    return measure.training_runs(step, WORKLOADS)
