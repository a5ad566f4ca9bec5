"""Training workloads: sizes, batches and the modes of a step, the same for every framework.

Lives here: `WORKLOADS`, each with the sizes of its row and reduced ones for warming up and for tests; `batch_of`.
Not here: the models (training_models.py with Keras's names, peers/training_torch.py, peers/training_jax.py).  Standard
library and NumPy only, as peers' Pythons read it too.
"""

from __future__ import annotations

from collections.abc import Mapping
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
        {"batch": 16, "image": 24, "channels": 3, "first": 16, "filters": 24, "classes": 10},
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
}


def batch_of(name: str, sizes: Sizes, seed: int = 0) -> tuple[tuple[Any, ...], Any]:
    """Return a batch of a workload: a tuple of inputs, and targets, as NumPy arrays.

    Inputs: float32 from the standard normal distribution, images as [n, h, w, c], tokens and rows as int32.
    """
    import numpy as np

    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape, dtype=np.float32)

    def integers(below: int, *shape: int) -> Any:
        return rng.integers(0, below, shape, dtype=np.int32)

    n = sizes["batch"]
    inputs = {
        "mlp": lambda s: normal(n, s["features"]),
        "cnn": lambda s: normal(n, s["image"], s["image"], s["channels"]),
        "lstm": lambda s: normal(n, s["steps"], s["features"]),
        "encoder": lambda s: normal(n, s["steps"], s["width"]),
    }
    return (inputs[name](sizes),), integers(sizes["classes"], n)
