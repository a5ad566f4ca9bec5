"""Rules of collectives of one replica: there is one device, so each process is a group of its own.

Lives here: all_reduce, all_gather, all_to_all, reduce_scatter, collective_broadcast, collective_permute, partition_id,
replica_id. Not here: calls that name places (custom_calls.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..execution import RULES, ModuleContext


@RULES.rule(
    "stablehlo.all_reduce",
    "stablehlo.all_gather",
    "stablehlo.all_to_all",
    "stablehlo.reduce_scatter",
    "stablehlo.collective_broadcast",
)
def of_one_replica(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the operands: a group of one process has nothing to exchange. Raises ValueError for larger groups."""
    groups = np.asarray(attributes.get("replica_groups", np.zeros((1, 1), np.int64)))
    if groups.size and groups.shape[-1] > 1:
        raise ValueError(f"replica_groups {groups.tolist()} have several processes; there is one device")
    return list(inputs)


@RULES.rule("stablehlo.collective_permute")
def collective_permute(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return the operand if the process sends it to itself, zeros if it gets none. Raises ValueError for others."""
    pairs = np.asarray(attributes["source_target_pairs"]).reshape(-1, 2).tolist()
    if any(pair != [0, 0] for pair in pairs):
        raise ValueError(f"source_target_pairs {pairs} have several processes; there is one device")
    shape, dtype = context.shape, context.dtype.as_numpy_dtype
    return inputs[0] if pairs else np.broadcast_to(np.zeros((), dtype), shape)


@RULES.rule("stablehlo.partition_id", "stablehlo.replica_id")
def identifier(context: ModuleContext, inputs: Sequence[Any], attributes: Any) -> Any:
    """Return 0, the number of the only process."""
    return np.asarray(0, np.uint32)
