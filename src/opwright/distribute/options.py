"""Options of strategies under TensorFlow's names: what they say of devices and exchange is accepted.

Lives here: the options, the type of iterators.  Not here: strategies (strategy.py, single_replica.py).
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple


class InputReplicationMode(enum.Enum):
    """Which processes build a dataset."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class InputOptions(NamedTuple):
    """Options of `experimental_distribute_dataset`."""

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


class RunOptions(NamedTuple):
    """Options of `Strategy.run`."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class CommunicationImplementation(enum.Enum):
    """How workers exchange values: here by the communicator of a strategy."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CommunicationOptions:
    """Options of exchange. Raises ValueError for negative sizes."""

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: Any = CommunicationImplementation.AUTO,
    ) -> None:
        if bytes_per_pack < 0:
            raise ValueError(f"Argument `bytes_per_pack` must be >=0, Received {bytes_per_pack}.")
        self.bytes_per_pack, self.timeout_seconds = bytes_per_pack, timeout_seconds
        self.implementation = CommunicationImplementation(getattr(implementation, "value", implementation))


class CollectiveHints(CommunicationOptions):
    """The older name of CommunicationOptions."""

    def __init__(self, bytes_per_pack: int = 0, timeout_seconds: float | None = None) -> None:
        super().__init__(bytes_per_pack, timeout_seconds)


class ValueContext(NamedTuple):
    """A replica, for functions that compute its value."""

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1


class DistributedIterator:
    """The iterator of a distributed dataset; for `isinstance`."""
