"""`nn.experimental`: dropout by an explicit source of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from . import activation

__all__ = ["general_dropout", "stateless_dropout"]


def stateless_dropout(
    x: Any, rate: Any, seed: Any, rng_alg: Any = None, noise_shape: Any = None, name: str | None = None
) -> Tensor:
    """Apply dropout with zeros determined by `seed` (two integers), as `ow.nn.stateless_dropout`."""
    return activation.stateless_dropout(x, rate, seed, rng_alg, noise_shape, name)


def general_dropout(
    x: Any, rate: Any, uniform_sampler: Callable[..., Any], noise_shape: Any = None, name: str | None = None
) -> Tensor:
    """Apply dropout with zeros where uniform_sampler(shape=, dtype=), numbers of [0, 1), is less than the rate."""
    return activation._dropout(
        x, rate, noise_shape, lambda shape, dtype: uniform_sampler(shape=shape, dtype=dtype), name
    )
