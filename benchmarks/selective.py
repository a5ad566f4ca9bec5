"""The savings of a resolver for one model over one for all operators: `python -m benchmarks.selective ROW...`.

Lives here: one function for each of these rows of rows.py.  Not here: the measuring, which is that of
`opwright resolver --measure` (opwright/tools/selective_build.py).
"""

from __future__ import annotations

import functools
from typing import Any

from benchmarks import measure


@functools.cache
def _costs() -> dict[str, Any]:
    """By resolver, for a small network of convolutions and products."""
    import opwright as ow
    from opwright.tools import selective_build

    layers = ow.keras.layers
    network = ow.keras.Sequential(
        [
            layers.Input((32, 32, 3)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model = ow.lite.Model.read(ow.lite.TFLiteConverter.from_keras_model(network).convert())
    used = selective_build.used_by([model])
    return {
        cost.resolver: cost
        for cost in selective_build.measure_costs(selective_build.module_text(["network"], used), used)
    }


RUNS: dict[str, measure.Prepare] = {
    "resolver": lambda: float(_costs()["this"].seconds),
    "resolver_all": lambda: float(_costs()["all"].seconds),
    "resolver_memory": lambda: float(_costs()["this"].bytes),
    "resolver_all_memory": lambda: float(_costs()["all"].bytes),
}

if __name__ == "__main__":
    measure.main(RUNS)
