"""`distribute.cluster_resolver`: descriptions of clusters, as their managers announce them.

Lives here: resolvers of a description, of the variable TF_CONFIG, and unions.
Not here: work on the clusters: `ow.distribute.map` and `MultiWorker`, by the engines that run there.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ..compat.cluster import ClusterSpec

__all__ = ["ClusterResolver", "SimpleClusterResolver", "TFConfigClusterResolver", "UnionResolver"]


class ClusterResolver:
    """Base of resolvers: a description of the cluster, and this process' task in it."""

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None
    environment: str = ""

    def cluster_spec(self) -> ClusterSpec:
        """Return the tasks of the cluster."""
        raise NotImplementedError(f"{type(self).__name__} must define cluster_spec()")

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return the address of a task, by default of this one; empty without one."""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        if task_type is None or task_id is None:
            return ""
        return _with_protocol(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Return the number of accelerators by kind: none, as the only device is the CPU."""
        return {}


def _with_protocol(address: str, protocol: str | None) -> str:
    return f"{protocol}://{address}" if protocol and address else address


class SimpleClusterResolver(ClusterResolver):
    """A description as it is given."""

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: dict[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        self._spec, self._master, self._accelerators = cluster_spec, master, num_accelerators
        self.task_type, self.task_id = task_type, task_id
        self.environment, self.rpc_layer = environment, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        return self._spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        if task_type is not None and task_id is not None:
            return super().master(task_type, task_id, rpc_layer)
        return _with_protocol(self._master, rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        return dict(self._accelerators or {})


class TFConfigClusterResolver(ClusterResolver):
    """The cluster of the variable TF_CONFIG, a dictionary in JSON of `cluster` and `task` (`type` and `index`)."""

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._task_type, self._task_id = task_type, task_id
        self._rpc_layer, self._environment = rpc_layer, environment

    @staticmethod
    def _config() -> dict[str, Any]:
        config: dict[str, Any] = json.loads(os.environ.get("TF_CONFIG") or "{}")
        return config

    @property
    def task_type(self) -> str | None:  # type: ignore[override]
        """The job of this process."""
        task = self._config().get("task", {}).get("type")
        return self._task_type if self._task_type is not None else None if task is None else str(task)

    @property
    def task_id(self) -> int | None:  # type: ignore[override]
        """The number of this process in its job."""
        index = self._config().get("task", {}).get("index")
        return self._task_id if self._task_id is not None else None if index is None else int(index)

    @property
    def environment(self) -> str:  # type: ignore[override]
        """Where the cluster runs."""
        return str(self._environment or self._config().get("environment", ""))

    @property
    def rpc_layer(self) -> str | None:  # type: ignore[override]
        """The protocol of addresses."""
        return self._rpc_layer or self._config().get("rpc_layer")

    def cluster_spec(self) -> ClusterSpec:
        return ClusterSpec(self._config().get("cluster", {}))

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        spec = self.cluster_spec()
        if not spec or (len(spec.jobs) == 1 and spec.num_tasks(spec.jobs[0]) == 1):
            return ""
        return super().master(task_type, task_id, rpc_layer)


class UnionResolver(ClusterResolver):
    """The tasks of several resolvers; this process' task is the first's. Raises TypeError, ValueError for others."""

    def __init__(self, *args: ClusterResolver, **kwargs: Any) -> None:
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        if any(not isinstance(each, ClusterResolver) for each in args):
            raise TypeError("All arguments must be a sub-class of `ClusterResolver.`")
        self._resolvers = args
        self.task_type = kwargs.get("task_type", args[0].task_type)
        self.task_id = kwargs.get("task_id", args[0].task_id)
        self.rpc_layer = kwargs.get("rpc_layer", args[0].rpc_layer)
        self.environment = args[0].environment

    def cluster_spec(self) -> ClusterSpec:
        jobs: dict[str, Any] = {}
        for resolver in self._resolvers:
            for job, tasks in resolver.cluster_spec().as_dict().items():
                mine = jobs.setdefault(job, {} if isinstance(tasks, dict) else [])
                if isinstance(mine, list) != isinstance(tasks, list):
                    raise ValueError(f"job {job!r} is numbered in one cluster and not in another")
                if isinstance(tasks, list):
                    mine.extend(t for t in tasks if t not in mine)
                    continue
                clash = [i for i in tasks if i in mine and mine[i] != tasks[i]]
                if clash:
                    raise KeyError(f"Duplicate keys detected when merging two ClusterSpecs: {clash}")
                mine.update(tasks)
        return ClusterSpec(jobs)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        if task_type is not None and task_id is not None:
            return super().master(task_type, task_id, rpc_layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)
