"""Training workloads: sizes, batches and the modes of a step, the same for every framework.

Lives here: `WORKLOADS`, each with the sizes of its row and reduced ones for warming up and for tests; `batch_of`.
Not here: the models (training_models.py with Keras's names, peers/training_torch.py, peers/training_jax.py).  Standard
library and NumPy only, as peers' Pythons read it too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Workload:
    """A model and its batch. what: in the table; sizes: of the row; reduced: of tests; times: wanted speed relative to
    the best peer."""

    what: str
    sizes: Sizes
    reduced: Sizes
    times: float = 1.0


WORKLOADS = {
    "mlp": Workload(
        "MLP 784-512-512-10, batch 128",
        {"batch": 128, "features": 784, "hidden": 512, "classes": 10},
        {"batch": 16, "features": 60, "hidden": 48, "classes": 10},
        1.2,
    ),
    "cnn": Workload(
        "CNN of 3 convolutions and 2 dense layers, batch 32 of 32x32x3",
        {"batch": 32, "image": 32, "channels": 3, "first": 32, "filters": 64, "classes": 10},
        {"batch": 16, "image": 24, "channels": 3, "first": 32, "filters": 32, "classes": 10},
        1.2,
    ),
    "lstm": Workload(
        "LSTM of 128 units over 100 steps of 64 features, batch 32",
        {"batch": 32, "steps": 100, "features": 64, "units": 128, "classes": 10},
        {"batch": 6, "steps": 12, "features": 20, "units": 24, "classes": 10},
        1.2,
    ),
    "encoder": Workload(
        "transformer encoder of 4 layers, d 256, 4 heads, batch 8 x 128",
        {"batch": 8, "steps": 128, "width": 256, "heads": 4, "hidden": 1024, "layers": 4, "classes": 10},
        {"batch": 3, "steps": 20, "width": 32, "heads": 4, "hidden": 72, "layers": 2, "classes": 10},
        1.2,
    ),
    "resnet18": Workload(
        "ResNet-18, batch 16 of 32x32x3",
        {"batch": 16, "image": 32, "channels": 3, "first": 64, "stages": 4, "classes": 10},
        {"batch": 16, "image": 16, "channels": 3, "first": 12, "stages": 2, "classes": 10},
    ),
    "unet": Workload(
        "U-Net of 3 levels, 16 to 128 channels, batch 8 of 64x64x3",
        {"batch": 8, "image": 64, "channels": 3, "first": 16, "levels": 3, "classes": 4},
        {"batch": 2, "image": 24, "channels": 3, "first": 8, "levels": 2, "classes": 4},
    ),
    "gpt": Workload(
        "GPT of 10.7 M parameters, 6 layers, d 384, batch 4 x 128",
        {"batch": 4, "steps": 128, "width": 384, "heads": 6, "layers": 6, "classes": 65},
        {"batch": 2, "steps": 20, "width": 48, "heads": 3, "layers": 2, "classes": 65},
    ),
    "dlrm": Workload(
        "DLRM, 26 lookups in a table of 1 M x 64, sparse rows, batch 128",
        {"batch": 128, "features": 13, "categories": 26, "rows": 1_000_000, "width": 64, "hidden": 512},
        {"batch": 16, "features": 13, "categories": 6, "rows": 500, "width": 16, "hidden": 48},
    ),
    "vae": Workload(
        "VAE 784-400-20, batch 128",
        {"batch": 128, "features": 784, "hidden": 400, "latent": 20},
        {"batch": 16, "features": 60, "hidden": 40, "latent": 8},
    ),
}


def batch_of(name: str, sizes: Sizes, seed: int = 0) -> tuple[tuple[Any, ...], Any]:
    """Return a batch of a workload: a tuple of inputs, and targets, as NumPy arrays.

    Inputs: float32 from the standard normal distribution, images as [n, h, w, c], tokens and rows
    as int32; those of the VAE are pixels from 0 to 1.
    """
    import numpy as np

    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape, dtype=np.float32)

    def integers(below: int, *shape: int) -> Any:
        return rng.integers(0, below, shape, dtype=np.int32)

    n = sizes["batch"]

    def images(s: Sizes) -> Any:
        return normal(n, s["image"], s["image"], s["channels"])

    inputs: dict[str, Callable[[Sizes], tuple[Any, ...]]] = {
        "mlp": lambda s: (normal(n, s["features"]),),
        "cnn": lambda s: (images(s),),
        "lstm": lambda s: (normal(n, s["steps"], s["features"]),),
        "encoder": lambda s: (normal(n, s["steps"], s["width"]),),
        "resnet18": lambda s: (images(s),),
        "unet": lambda s: (images(s),),
        "gpt": lambda s: (integers(s["classes"], n, s["steps"]),),
        "dlrm": lambda s: (normal(n, s["features"]), integers(s["rows"], n, s["categories"])),
        "vae": lambda s: (rng.random((n, s["features"]), np.float32),),
    }
    targets: dict[str, Callable[[Sizes, Any], Any]] = {
        "unet": lambda s, x: integers(s["classes"], n, s["image"], s["image"]),
        "gpt": lambda s, x: np.roll(x, -1, 1),
        "dlrm": lambda s, x: rng.integers(0, 2, (n, 1)).astype(np.float32),
        "vae": lambda s, x: x,
    }
    x = inputs[name](sizes)
    return x, targets[name](sizes, x[0]) if name in targets else integers(sizes["classes"], n)
