"""Options of datasets, stored and merged without effect, for compatibility.

Lives here: `Options` and its parts.  Not here: their implementation: pipelines need no such tuning, and their order is
deterministic unless `map` is configured otherwise.
"""

from __future__ import annotations

import enum
from typing import Any, Self


class AutoShardPolicy(enum.IntEnum):
    """Policy that divides a dataset among workers."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.Enum):
    """Policy for external state when a dataset is copied."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class _Settings:
    """Named settings, None until set. Raises AttributeError for unknown names."""

    _names: tuple[str, ...] = ()
    _parts: dict[str, Any] = {}

    def __init__(self) -> None:
        for name in self._names:
            object.__setattr__(self, name, None)
        for name, make in self._parts.items():
            object.__setattr__(self, name, make())

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names and name not in self._parts:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)

    def merge(self, other: Any) -> Self:
        """Return new settings: those of `other` where set, else these."""
        new = type(self)()
        for name in self._names:
            mine, theirs = getattr(self, name), getattr(other, name)
            object.__setattr__(new, name, mine if theirs is None else theirs)
        for name in self._parts:
            object.__setattr__(new, name, getattr(self, name).merge(getattr(other, name)))
        return new

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]


class ThreadingOptions(_Settings):
    """Options max_intra_op_parallelism and private_threadpool_size."""

    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class AutotuneOptions(_Settings):
    """Options enabled, cpu_budget, ram_budget, autotune_algorithm, initial_parallelism, min_parallelism."""

    _names = ("autotune_algorithm", "cpu_budget", "enabled", "initial_parallelism", "min_parallelism", "ram_budget")


class DistributeOptions(_Settings):
    """Options auto_shard_policy and num_devices."""

    _names = ("auto_shard_policy", "num_devices")


class OptimizationOptions(_Settings):
    """Options that enable rewrites of a pipeline."""

    _names = (
        "apply_default_optimizations",
        "filter_fusion",
        "filter_parallelization",
        "inject_prefetch",
        "inject_io_prefetch",
        "map_and_batch_fusion",
        "map_and_filter_fusion",
        "map_fusion",
        "map_parallelization",
        "noop_elimination",
        "parallel_batch",
        "seq_interleave_prefetch",
        "shuffle_and_repeat_fusion",
        "warm_start",
    )


class ServiceOptions(_Settings):
    """Option pinned."""

    _names = ("pinned",)


class Options(_Settings):
    """Settings for `with_options`: deterministic, threading, autotune and others; stored, but without effect."""

    _names = (
        "dataset_name",
        "deterministic",
        "experimental_deterministic",
        "experimental_external_state_policy",
        "experimental_slack",
        "experimental_symbolic_checkpoint",
        "experimental_warm_start",
        "framework_type",
        "warm_start",
    )
    _parts = {
        "autotune": AutotuneOptions,
        "experimental_distribute": DistributeOptions,
        "experimental_optimization": OptimizationOptions,
        "experimental_service": ServiceOptions,
        "threading": ThreadingOptions,
    }
