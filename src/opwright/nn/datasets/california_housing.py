"""`keras.datasets.california_housing`: prices of houses in California, 1990, by 8 numbers."""

from __future__ import annotations

from .tables import Table, load_table

__all__ = ["load_data"]


def load_data(
    version: str = "large", path: str = "california_housing.npz", test_split: float = 0.2, seed: int = 113
) -> Table:
    """Return (x_train, y_train), (x_test, y_test): float32 [n, 8] and prices. version: "small" for 600 districts."""
    if version not in ("small", "large"):
        raise ValueError(f"Argument `version` must be one of 'small', 'large'. Received: version={version}")
    return load_table(path, "california_housing.npz", test_split, seed, 600 if version == "small" else None)
