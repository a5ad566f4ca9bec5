"""Notes for the fast path: a model's inputs and outputs, for a later process that does not read the file.

Lives here: `described`, `keep`.
Not here: running a model by its note (fast_path.py), its plan (cached_partitions.py).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from ...compiler import plan_cache
from ...compiler.cache import objects
from ...core import dtypes, flags
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import ARENA, Tensor
from .eligibility import is_user_operator, served_elsewhere
from .fast_path import address_of, digest_of
from .variables import Use
from .weight_eviction import mapping_of


class SubgraphDescription(NamedTuple):
    """The content of a note, read while the interpreter is not in use: it is written when it may be.

    inputs, outputs: rows of `_row`; indices: of these tensors; tensors: the subgraph's, whose constants never move.
    once: subgraphs that CALL_ONCE runs; initial: the values they assign, by the variables' containers and names
    """

    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    indices: set[int]
    tensors: list[Tensor]
    once: list[int]
    initial: dict[tuple[str, str], np.ndarray]


def described(subgraph: Subgraph) -> SubgraphDescription | None:
    """Describe the main subgraph of a model for a note; None if a note cannot.

    That is the case if a tensor's details are more than a note has, inputs have other shapes than in the file,
    CALL_ONCE does more than assign constants of the file, or a custom operator is not a shipped one, as the file does
    not determine its code.
    """
    customs = (node for s in subgraph.family for node in s.nodes if type(node.options) is bytes)
    if any(is_user_operator(node) or served_elsewhere(node) for node in customs):
        return None
    once = [int(getattr(node.options, "init_subgraph_index", 0)) for node in subgraph.nodes if node.name == "CALL_ONCE"]
    initial: dict[tuple[str, str], np.ndarray] = {}
    for index in dict.fromkeys(once):
        assigned = _assigned(subgraph.family[index])
        if assigned is None:
            return None
        initial |= assigned
    inputs, outputs = ([subgraph.tensors[i] for i in indices] for indices in (subgraph.inputs, subgraph.outputs))
    file = subgraph.model.subgraphs[subgraph.index].tensors
    if any(t.shape != tuple(np.asarray(file[t.index].shape).tolist()) for t in (*inputs, *outputs)):
        return None
    if not all(map(_is_plain, (*inputs, *outputs))):
        return None
    indices = {*subgraph.inputs, *subgraph.outputs}
    return SubgraphDescription([*map(_row, inputs)], [*map(_row, outputs)], indices, [*subgraph.tensors], once, initial)


def _assigned(subgraph: Subgraph) -> dict[tuple[str, str], np.ndarray] | None:
    """Return the constants that a subgraph assigns to variables; None if it does anything else."""
    handles: dict[int, tuple[str, str]] = {}
    values: dict[tuple[str, str], np.ndarray] = {}
    for node in subgraph.nodes:
        if node.name == "VAR_HANDLE" and len(node.tensors_out) == 1:
            names = (getattr(node.options, name, None) or "" for name in ("container", "shared_name"))
            handles[node.tensors_out[0].index] = tuple(names)  # type: ignore[assignment]
            continue
        assigns = node.name == "ASSIGN_VARIABLE" and len(node.tensors_in) == 2
        handle, value = node.tensors_in if assigns else (None, None)
        array = None if value is None else value.constant
        if handle is None or handle.index not in handles or array is None or array.dtype.kind == "O":
            return None
        values[handles[handle.index]] = array
    return values


def keep(path: Any, plan_key: str, described: SubgraphDescription) -> None:
    """Write the note of a model in a file, whose only subgraph one cached plan runs entirely. A note for another plan
    is replaced."""
    key = plan_cache.key_of_file(path)
    digest = "" if key is None else digest_of(key)
    before = None if key is None else objects(flags.cache_dir).find(digest)
    if key is None or (before is not None and json.loads(before)["plan"] == plan_key):
        return
    cached = plan_cache.find(plan_key)
    if cached is None or len(cached.plans) != 1:
        return
    handles = {Use.of_note(row).handle for row in cached.note["parts"][0]["variables"]}
    if not set(cached.plans[0].outside) <= described.indices | handles:
        return
    places = {i: _place(described.tensors[i].array) for i in cached.plans[0].inside}
    initial = [
        {
            "container": container,
            "name": name,
            "dtype": dtypes.as_dtype(array.dtype).name,
            "shape": list(array.shape),
            "bytes": array.nbytes,
            "place": _place(array),
        }
        for (container, name), array in described.initial.items()
    ]
    if None in places.values() or any(row["place"] is None for row in initial):
        return
    note = {
        "plan": plan_key,
        "inputs": described.inputs,
        "outputs": described.outputs,
        "places": places,
        "once": described.once,
        "initial": initial,
    }
    objects(flags.cache_dir).keep(digest, json.dumps(note).encode())


def _is_plain(t: Tensor) -> bool:
    return t.kind == ARENA and t.sparsity is None and t.blocks is None and not t.is_variable and not t.is_object


def _place(array: np.ndarray | None) -> int | None:
    """Return the offset of a contiguous array's elements in the mapped file; None if they are not in it."""
    mapping = None if array is None or not array.flags.c_contiguous else mapping_of(array)
    return None if mapping is None else address_of(array) - address_of(np.frombuffer(mapping, np.uint8))


def _row(t: Tensor) -> dict[str, Any]:
    """Return a row from which `_tensor` rebuilds a tensor: float32 scales are exact as Python floats."""
    q = t.quantization
    return {
        "index": t.index,
        "name": t.name,
        "type": t.type.name,
        "shape": list(t.shape),
        "signature": None if t.signature is None else [int(n) for n in t.signature],
        "quantization": None
        if q is None
        else [[float(s) for s in q.scale], [int(z) for z in q.zero_point], int(q.quantized_dimension)],
    }
