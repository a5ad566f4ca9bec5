"""The models of the training rows in JAX, as functions of their weights.

Lives here: for each workload a pair: `create_...(draw, sizes)` gives the weights, `apply_...(sizes, weights, *inputs)`
the logits, or logits and what else the step needs.  Not here: sizes and batches (../workloads.py), steps
(training_jax.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from benchmarks.workloads import Sizes

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


def normalized_convolution(draw: Draw, m: int, n: int, size: int) -> dict[str, Any]:
    return {"convolution": {"w": draw(size, size, m, n)}, "norm": normalization(n)}


def apply_normalized(p: Any, x: Any, stride: int, statistics: list[Any]) -> Any:
    """Batch normalisation in training; its running statistics are appended, as the step returns them."""
    import jax
    import jax.numpy as jnp

    x = apply_convolution(p["convolution"], x, stride, "SAME")
    mean = jnp.mean(x, (0, 1, 2))
    variance = jnp.mean((x - mean) ** 2, (0, 1, 2))
    statistics += [mean, variance]
    return (x - mean) * (jax.lax.rsqrt(variance + 1e-5) * p["norm"]["gamma"]) + p["norm"]["beta"]


def create_resnet18(draw: Draw, s: Sizes) -> Any:
    blocks, m = [], s["first"]
    for stage in range(s["stages"]):
        for block in range(2):
            n = s["first"] << stage
            parts = {"first": normalized_convolution(draw, m, n, 3), "second": normalized_convolution(draw, n, n, 3)}
            if stage and not block:
                parts["passed"] = normalized_convolution(draw, m, n, 1)
            blocks.append(parts)
            m = n
    stem = normalized_convolution(draw, s["channels"], s["first"], 3)
    return {"stem": stem, "blocks": blocks, "head": dense(draw, m, s["classes"])}


def apply_resnet18(s: Sizes, p: Any, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    statistics: list[Any] = []
    x = jax.nn.relu(apply_normalized(p["stem"], x, 1, statistics))
    for block in p["blocks"]:
        stride = 2 if "passed" in block else 1
        y = jax.nn.relu(apply_normalized(block["first"], x, stride, statistics))
        y = apply_normalized(block["second"], y, 1, statistics)
        x = apply_normalized(block["passed"], x, stride, statistics) if stride == 2 else x
        x = jax.nn.relu(x + y)
    return apply_dense(p["head"], jnp.mean(x, (1, 2))), statistics


def create_unet(draw: Draw, s: Sizes) -> Any:
    widths = [s["first"] << level for level in range(s["levels"] + 1)]

    def double(m: int, n: int) -> list[Any]:
        return [convolution(draw, m, n), convolution(draw, n, n)]

    return {
        "down": [double(m, n) for m, n in zip([s["channels"], *widths], widths)],
        "up": [convolution(draw, n, m, 2) for m, n in itertools.pairwise(widths)],
        "merged": [double(2 * n, n) for n in widths[:-1]],
        "head": convolution(draw, s["first"], s["classes"], 1),
    }


def apply_unet(s: Sizes, p: Any, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def double(layers: Any, x: Any) -> Any:
        for layer in layers:
            x = jax.nn.relu(apply_convolution(layer, x, 1, "SAME"))
        return x

    passed = []
    for level in range(s["levels"]):
        x = double(p["down"][level], x)
        passed.append(x)
        x = max_pool(x)
    x = double(p["down"][-1], x)
    for level in reversed(range(s["levels"])):
        up = p["up"][level]
        y = jax.lax.conv_transpose(x, up["w"], (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = double(p["merged"][level], jnp.concatenate([passed[level], y + up["b"]], -1))
    return apply_convolution(p["head"], x)


def create_gpt(draw: Draw, s: Sizes) -> Any:
    width = s["width"]
    layers = [
        {
            "attention": attention(draw, width),
            "first": dense(draw, width, 4 * width),
            "second": dense(draw, 4 * width, width),
            "norms": [normalization(width), normalization(width)],
        }
        for _ in range(s["layers"])
    ]
    return {
        "tokens": draw(s["classes"], width),
        "positions": draw(s["steps"], width),
        "layers": layers,
        "norm": normalization(width),
        "head": draw(width, s["classes"]),
    }


def apply_gpt(s: Sizes, p: Any, tokens: Any) -> Any:
    import jax

    x = p["tokens"][tokens] + p["positions"]
    for layer in p["layers"]:
        first, second = layer["norms"]
        x = x + apply_attention(layer["attention"], apply_layer_norm(first, x), s["heads"], causal=True)
        y = jax.nn.gelu(apply_dense(layer["first"], apply_layer_norm(second, x)), approximate=False)
        x = x + apply_dense(layer["second"], y)
    return apply_layer_norm(p["norm"], x) @ p["head"]


def create_dlrm(draw: Draw, s: Sizes) -> Any:
    def perceptron(*widths: int) -> list[Any]:
        return [dense(draw, m, n) for m, n in itertools.pairwise(widths)]

    n, hidden, width = s["categories"] + 1, s["hidden"], s["width"]
    return {
        "table": draw(s["rows"], width),
        "bottom": perceptron(s["features"], hidden, hidden // 2, width),
        "top": perceptron(width + n * (n - 1) // 2, hidden, hidden // 2),
        "head": dense(draw, hidden // 2, 1),
    }


def apply_dlrm(s: Sizes, p: Any, numbers: Any, rows: Any) -> Any:
    """Gradients of rows are dense: JAX has no others."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    bottom = numbers
    for layer in p["bottom"]:
        bottom = jax.nn.relu(apply_dense(layer, bottom))
    vectors = jnp.concatenate([bottom[:, None], p["table"][rows]], 1)
    products = jnp.einsum("bid,bjd->bij", vectors, vectors)
    i, j = np.tril_indices(vectors.shape[1], -1)
    x = jnp.concatenate([bottom, products[:, i, j]], 1)
    for layer in p["top"]:
        x = jax.nn.relu(apply_dense(layer, x))
    return apply_dense(p["head"], x)


def create_vae(draw: Draw, s: Sizes) -> Any:
    shapes = {
        "encoder": (s["features"], s["hidden"]),
        "mean": (s["hidden"], s["latent"]),
        "log_variance": (s["hidden"], s["latent"]),
        "decoder": (s["latent"], s["hidden"]),
        "head": (s["hidden"], s["features"]),
    }
    return {name: dense(draw, *shape) for name, shape in shapes.items()}


def apply_vae(s: Sizes, p: Any, x: Any, key: Any) -> Any:
    import jax
    import jax.numpy as jnp

    h = jax.nn.relu(apply_dense(p["encoder"], x))
    mean, log_variance = apply_dense(p["mean"], h), apply_dense(p["log_variance"], h)
    divergence = 0.5 * jnp.mean(jnp.sum(jnp.exp(log_variance) + mean**2 - 1.0 - log_variance, -1)) / s["features"]
    z = mean + jnp.exp(0.5 * log_variance) * jax.random.normal(key, mean.shape)
    return apply_dense(p["head"], jax.nn.relu(apply_dense(p["decoder"], z))), divergence


MODELS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "mlp": (create_mlp, apply_mlp),
    "cnn": (create_cnn, apply_cnn),
    "lstm": (create_lstm, apply_lstm),
    "encoder": (create_encoder, apply_encoder),
    "resnet18": (create_resnet18, apply_resnet18),
    "unet": (create_unet, apply_unet),
    "gpt": (create_gpt, apply_gpt),
    "dlrm": (create_dlrm, apply_dlrm),
    "vae": (create_vae, apply_vae),
}
