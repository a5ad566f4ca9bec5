"""`keras.datasets.boston_housing`: prices of houses in Boston, 1978, by 13 numbers."""

from __future__ import annotations

from .tables import Table, load_table

__all__ = ["load_data"]


def load_data(path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> Table:
    """Return (x_train, y_train), (x_test, y_test): float64 [n, 13] and prices in 1,000 dollars."""
    return load_table(path, "boston_housing.npz", test_split, seed)
