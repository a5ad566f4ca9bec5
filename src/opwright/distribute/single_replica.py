"""Strategies of one process under TensorFlow's names.

Lives here: `MultiWorkerMirroredStrategy`, `CentralStorageStrategy`. Not here: several processes (`MultiWorker`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import UnimplementedError
from .cluster_resolver import TFConfigClusterResolver
from .strategy import MirroredStrategy, WorkerStrategy


class MultiWorkerMirroredStrategy(WorkerStrategy):
    """The strategy of a cluster of one worker, which is what a program without TF_CONFIG runs on.

    cluster_resolver: of the cluster, by default TF_CONFIG's; communication_options: accepted.
    raises UnimplementedError for several workers, which `MultiWorker` connects by an engine such as MPI
    """

    def __init__(self, cluster_resolver: Any = None, communication_options: Any = None) -> None:
        resolver = TFConfigClusterResolver() if cluster_resolver is None else cluster_resolver
        spec = resolver.cluster_spec()
        count = sum(spec.num_tasks(job) for job in spec.jobs if job in ("chief", "worker"))
        if count > 1:
            raise UnimplementedError(
                op="MultiWorkerMirroredStrategy",
                what="the cluster has several workers, which are connected by an engine here",
                found=f"{count} workers",
                do="ow.distribute.MultiWorker(ow.distribute.MPICommunicator()), docs/distribute.md",
            )
        super().__init__()
        self.cluster_resolver = resolver


class CentralStorageStrategy(MirroredStrategy):
    """A strategy whose variables are on one device: the CPU, as every tensor. Raises ValueError for other devices."""

    def __init__(self, compute_devices: Sequence[str] | None = None, parameter_device: str | None = None) -> None:
        super().__init__([*(compute_devices or ()), *([parameter_device] if parameter_device else ())])
