"""Tree ensembles of ai.onnx.ml: forests and boosted trees as gathers, one step of all trees for each level.

Lives here: `Forest`, the flat tables of an ensemble; its traversal; TreeEnsemble, TreeEnsembleRegressor and
TreeEnsembleClassifier. Not here: linear models (classical.py).

Every condition is `low <= x <= high` with the two children of a node in either order: x < t is the complement of
x >= t, so no threshold changes. NaN has a child of its own. A leaf is its own child, so that short trees wait.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core import flags
from ....core.dtypes import float32, float64, int32
from ....core.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from ....ops import array, math
from ....ops.array import cast
from ....tracing.control import while_loop
from ...importing import tensor_of
from ..execution import RULES
from ..operands import dtype_of, rank_of
from .classical import labels_of, second_class, transformed

rule = RULES.rule

UNROLLED = 24
"""Levels that are written one after the other; deeper trees are a loop."""

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
"""The order is that of the integers of TreeEnsemble, version 5."""
LEAF = "LEAF"
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclasses.dataclass
class Forest:
    """The nodes of all trees in one table. leaf: which have no condition. inside, outside, missing: the next node by
    the condition, and for NaN. roots: one for each tree. leaves: (node, target, weight), several for one node."""

    leaf: np.ndarray
    feature: np.ndarray
    low: np.ndarray
    high: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    missing: np.ndarray
    roots: np.ndarray
    leaves: tuple[np.ndarray, np.ndarray, np.ndarray]

    def depth(self) -> int:
        """Return the most steps to a leaf, each node visited once. Raises InvalidArgumentError for cycles."""
        count = len(self.feature)
        inner = ~self.leaf
        parents = np.bincount(np.concatenate([self.inside[inner], self.outside[inner]]), minlength=count)
        at, seen, steps = np.flatnonzero(parents == 0), 0, -1
        while len(at):
            seen, steps = seen + len(at), steps + 1
            at = at[inner[at]]
            children = np.concatenate([self.inside[at], self.outside[at]])
            np.subtract.at(parents, children, 1)
            children = np.unique(children)
            at = children[parents[children] == 0]
        if seen < count:
            raise InvalidArgumentError(what="the nodes of a tree form a cycle", found=f"{count - seen} nodes")
        return steps


def forest_of(
    features: Any, modes: Sequence[str], thresholds: Any, yes: Any, no: Any, tracks: Any, roots: Any, leaves: Any
) -> Forest:
    """Return the table of nodes given by their modes. yes, no: the children by the condition; of leaves themselves."""
    count = len(modes)
    features, yes, no = (np.asarray(v, np.int64).reshape(-1) for v in (features, yes, no))
    thresholds = np.asarray(thresholds).reshape(-1)
    tracks = np.zeros(count, bool) if tracks is None or not len(tracks) else np.asarray(tracks).astype(bool)
    lengths = {len(v) for v in (features, yes, no, thresholds, tracks)}
    if lengths != {count}:
        raise InvalidArgumentError(
            what="lists of a tree's nodes have different lengths", found=sorted({count, *lengths})
        )
    if unknown := set(modes) - {*MODES[:-1], LEAF}:
        raise InvalidArgumentError(what="no such mode of a tree's node", found=sorted(unknown), wanted=MODES)
    roots = np.asarray(roots, np.int64)
    for name, nodes in (("true", yes), ("false", no), ("root", roots), ("leaf", leaves[0])):
        if len(nodes) and not (nodes.min() >= 0 and nodes.max() < count):
            raise InvalidArgumentError(what=f"a {name} node of a tree is none of its {count} nodes")
    mode, leaf = np.asarray(modes, object), np.asarray(modes, object) == LEAF
    infinity = np.asarray(np.inf, thresholds.dtype)
    low = np.where(np.isin(mode, ("BRANCH_LT", "BRANCH_GTE", "BRANCH_EQ", "BRANCH_NEQ")), thresholds, -infinity)
    high = np.where(np.isin(mode, ("BRANCH_LEQ", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")), thresholds, infinity)
    complement = np.isin(mode, ("BRANCH_LT", "BRANCH_GT", "BRANCH_NEQ"))
    missing = np.where(tracks | (mode == "BRANCH_NEQ"), yes, no)  # NaN is unequal to all
    own = np.arange(count)
    inside, outside = np.where(complement, no, yes), np.where(complement, yes, no)
    inside, outside, missing = (np.where(leaf, own, v) for v in (inside, outside, missing))
    features = np.where(leaf, 0, features)
    return Forest(leaf, features, low, high, inside, outside, missing, roots, leaves)


def _next(forest: Forest, at: Any, values: Any) -> Any:
    """Return the nodes [n, trees] that follow on nodes whose features have these values."""

    def column(table: np.ndarray) -> Any:
        return table[at] if isinstance(at, np.ndarray) else array.gather(table, at)

    above = math.greater_equal(values, column(forest.low))
    below = math.less_equal(values, column(forest.high))
    inside, outside = (column(v.astype(np.int32)) for v in (forest.inside, forest.outside))
    following = array.where(math.logical_and(above, below), inside, outside)
    if (forest.missing != forest.outside).any():
        following = array.where(math.is_nan(values), column(forest.missing.astype(np.int32)), following)
    return following


def reached(forest: Forest, x: Any) -> Any:
    """Return the leaf of each row in each tree: int32[n, trees]."""
    depth = forest.depth()
    features = forest.feature.astype(np.int32)
    width = x.shape.dims[1] if hasattr(x.shape, "dims") else x.shape[1]
    if len(features) and width is not None and features.max() >= width:
        raise InvalidArgumentError(
            what="a tree asks for a feature that rows lack", found=int(features.max()), wanted=f"less than {width}"
        )
    roots = forest.roots
    if depth == 0:
        rows = array.shape(x)[:1]
        return array.broadcast_to(roots.astype(np.int32)[None], array.concat([rows, [len(roots)]], 0))
    at = _next(forest, roots, array.gather(x, features[roots], axis=1))

    def step(nodes: Any) -> Any:
        return _next(forest, nodes, array.gather(x, array.gather(features, nodes), axis=1, batch_dims=1))

    if depth <= UNROLLED:
        for _ in range(depth - 1):
            at = step(at)
        return at
    _, at = while_loop(
        lambda level, nodes: math.less(level, np.int32(depth - 1)),
        lambda level, nodes: (math.add(level, np.int32(1)), step(nodes)),
        (tensor_of(np.asarray(0, np.int32)), at),
    )
    return at


def scores_of(forest: Forest, at: Any, count: int, dtype: Any, aggregate: str = "SUM") -> tuple[Any, Any]:
    """Return the aggregate of the leaves' weights by target [n, count], and which targets had one: a bool tensor of
    this shape, or an array [count] where it is the same for all rows."""
    nodes, targets, weights = forest.leaves
    if aggregate not in AGGREGATES:
        raise InvalidArgumentError(what="no such aggregate_function", found=aggregate, wanted=AGGREGATES)
    if count < 1 or (len(targets) and not (targets.min() >= 0 and targets.max() < count)):
        raise InvalidArgumentError(
            what="targets of leaves", found=sorted(set(targets.tolist())), wanted=f"0 to {count - 1}"
        )
    size = len(forest.feature) * count * dtype.size
    if size > flags.get("max_model_bytes"):
        raise ResourceExhaustedError(
            what=f"the weights of the leaves take {size} bytes", do="set the flag max_model_bytes higher"
        )
    has = np.zeros((len(forest.feature), count), bool)
    has[nodes, targets] = True
    table = np.zeros(has.shape, dtype.np)
    if aggregate in ("SUM", "AVERAGE"):
        np.add.at(table, (nodes, targets), weights)
        total = math.reduce_sum(array.gather(table, at), 1)
        if aggregate == "AVERAGE":
            total = math.realdiv(total, np.asarray(len(forest.roots), dtype.np))
    else:
        least = aggregate == "MIN"
        table[:] = np.inf if least else -np.inf
        (np.minimum if least else np.maximum).at(table, (nodes, targets), weights)
        total = (math.reduce_min if least else math.reduce_max)(array.gather(table, at), 1)
    always, never = has[forest.leaf].all(0), ~has.any(0)
    written: Any = always if (always | never).all() else math.reduce_any(array.gather(has, at), 1)
    if aggregate in ("MIN", "MAX") and not always.all():
        total = array.where(written, total, np.zeros((), dtype.np))
    return total, written


# ---- operators -------------------------------------------------------------------------------------------------------


def _rows(x: Any) -> Any:
    """Return rows [n, features] of floats; a vector is one row."""
    if rank_of(x) == 1:
        x = array.expand_dims(x, 0)
    if rank_of(x) != 2:
        raise InvalidArgumentError(what="rows of features have two dimensions", found=rank_of(x))
    return x if dtype_of(x) in (float32, float64) else cast(x, float32)


def _named(attributes: Any, name: str) -> np.ndarray | None:
    """Return a list of floats, which may be a tensor of another type."""
    for key in (f"{name}_as_tensor", name):
        value = attributes.get(key)
        if value is not None and len(value):
            return np.asarray(value, None if key != name else np.float32).reshape(-1)
    return None


def _listed(attributes: Any, kind: str) -> Forest:
    """Return the forest of the operators before version 5, whose nodes have a tree and a number in it. kind: of the
    leaves' attributes, "target" or "class"."""

    def integers(name: str) -> np.ndarray:
        return np.asarray(attributes.get(name) or [], np.int64)

    trees, numbers = integers("nodes_treeids"), integers("nodes_nodeids")
    places = {key: i for i, key in enumerate(zip(trees.tolist(), numbers.tolist(), strict=True))}
    if len(places) != len(trees) or not places:
        raise InvalidArgumentError(
            what="nodes of trees are named by different pairs", found=f"{len(trees)} nodes, {len(places)} pairs"
        )
    modes = [str(m) for m in attributes.get("nodes_modes") or []]

    def children(name: str) -> np.ndarray:
        own = integers(name)
        if not len(own) == len(trees) == len(modes):
            raise InvalidArgumentError(
                what=f"{name} of another length than the nodes", found=len(own), wanted=len(trees)
            )
        pairs = zip(trees.tolist(), own.tolist(), modes)
        return np.asarray([0 if m == LEAF else _place(places, (t, n)) for t, n, m in pairs], np.int64)

    yes, no = children("nodes_truenodeids"), children("nodes_falsenodeids")
    at = [
        _place(places, key) for key in zip(integers(f"{kind}_treeids").tolist(), integers(f"{kind}_nodeids").tolist())
    ]
    weights = _named(attributes, f"{kind}_weights")
    leaves = (
        np.asarray(at, np.int64),
        integers(f"{kind}_ids"),
        np.zeros(0, np.float32) if weights is None else weights,
    )
    if len({len(v) for v in leaves}) != 1:
        raise InvalidArgumentError(what="lists of leaves have different lengths", found=[len(v) for v in leaves])
    thresholds = _named(attributes, "nodes_values")
    _, roots = np.unique(trees, return_index=True)  # a tree's first node is its root
    return forest_of(
        integers("nodes_featureids"),
        modes,
        np.zeros(len(modes), np.float32) if thresholds is None else thresholds,
        yes,
        no,
        integers("nodes_missing_value_tracks_true"),
        np.sort(roots),
        leaves,
    )


def _place(places: dict[tuple[int, int], int], key: tuple[int, int]) -> int:
    if key not in places:
        raise InvalidArgumentError(what="a tree has no such node", found=key)
    return places[key]


def _with_base(total: Any, attributes: Any, count: int) -> Any:
    base = _named(attributes, "base_values")
    if base is None:
        return total
    if len(base) not in (1, count):
        raise InvalidArgumentError(what="base_values of another number than targets", found=len(base), wanted=count)
    return math.add(total, base.astype(dtype_of(total).np))


@rule("ai.onnx.ml::TreeEnsembleRegressor")
def tree_ensemble_regressor(context: Any, inputs: Any, attributes: Any) -> Any:
    x, forest = _rows(inputs[0]), _listed(attributes, "target")
    count = attributes.get("n_targets") or 1
    total, _ = scores_of(forest, reached(forest, x), count, dtype_of(x), attributes.get("aggregate_function", "SUM"))
    total = _with_base(total, attributes, count)
    return cast(transformed(total, attributes.get("post_transform", "NONE")), float32)


@rule("ai.onnx.ml::TreeEnsemble")
def tree_ensemble(context: Any, inputs: Any, attributes: Any) -> Any:
    """Evaluate trees of version 5: leaves have a table of their own, and a node may ask for a member of a set."""
    x = _rows(inputs[0])
    forest = _split(attributes)
    aggregate = AGGREGATES[attributes.get("aggregate_function", 1)]
    total, _ = scores_of(forest, reached(forest, x), attributes.get("n_targets") or 1, dtype_of(x), aggregate)
    return transformed(total, TRANSFORMS[attributes.get("post_transform", 0)])


def _split(attributes: Any) -> Forest:
    """Return the forest of version 5. A set becomes a chain of nodes, one for each member."""
    numbers = np.asarray(attributes["nodes_modes"]).reshape(-1).tolist()
    splits = np.asarray(attributes["nodes_splits"]).reshape(-1)
    weights = np.asarray(attributes["leaf_weights"]).reshape(-1)
    targets = np.asarray(attributes["leaf_targetids"], np.int64)
    features, tracks = (
        list(attributes["nodes_featureids"]),
        list(attributes.get("nodes_missing_value_tracks_true") or []),
    )
    members = iter(_members(attributes.get("membership_values")))
    count, leaves = len(numbers), len(weights)
    tracks = tracks or [0] * count
    children = []
    for side in ("true", "false"):
        at, leaf = np.asarray(attributes[f"nodes_{side}nodeids"], np.int64), attributes[f"nodes_{side}leafs"]
        if not len(at) == len(leaf) == count:
            raise InvalidArgumentError(
                what=f"{side} children of another number than nodes", found=len(at), wanted=count
            )
        of_leaf = np.asarray(leaf).astype(bool)
        if ((at < 0) | (at >= np.where(of_leaf, leaves, count))).any():
            raise InvalidArgumentError(what=f"a {side} child of a tree is neither a node nor a leaf")
        children.append(np.where(of_leaf, count + at, at).tolist())
    yes, no = (c + list(range(count, count + leaves)) for c in children)
    modes = [MODES[m] for m in numbers] + [LEAF] * leaves
    values = [*splits.tolist(), *[0.0] * leaves]
    features += [0] * leaves
    tracks += [0] * leaves
    for node in range(count):
        if modes[node] != "BRANCH_MEMBER":
            continue
        first, *others = next(members, [np.nan]) or [np.nan]
        modes[node], values[node] = "BRANCH_EQ", first
        last, beyond = node, no[node]
        for value in others:
            modes.append("BRANCH_EQ")
            values.append(value)
            features.append(features[node])
            tracks.append(tracks[node])
            yes.append(yes[node])
            no.append(beyond)
            no[last] = len(modes) - 1
            last = len(modes) - 1
    roots = np.asarray(attributes["tree_roots"], np.int64)
    if len(roots) and not (roots.min() >= 0 and roots.max() < count):
        raise InvalidArgumentError(what="a root of a tree is none of its nodes", wanted=f"0 to {count - 1}")
    leaf = (np.arange(count, count + leaves), targets, weights)
    if len(targets) != leaves:
        raise InvalidArgumentError(what="leaves have as many targets as weights", found=[len(targets), leaves])
    return forest_of(features, modes, np.asarray(values, splits.dtype), yes, no, tracks, roots, leaf)


def _members(values: Any) -> list[list[float]]:
    """Return the sets of nodes in order, each of which ends with NaN."""
    sets: list[list[float]] = [[]]
    for value in [] if values is None else np.asarray(values).reshape(-1).tolist():
        if value != value:
            sets.append([])
        else:
            sets[-1].append(value)
    return sets[:-1]


@rule("ai.onnx.ml::TreeEnsembleClassifier")
def tree_ensemble_classifier(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return labels and scores. Where leaves all name the first of two classes, their sum s is the second's score, and
    the first's is 1 - s if no weight is negative, else -s."""
    x, forest = _rows(inputs[0]), _listed(attributes, "class")
    labels, transform = labels_of(attributes, "classlabels_int64s"), attributes.get("post_transform", "NONE")
    base = _named(attributes, "base_values")
    used = set(forest.leaves[1].tolist())
    count = len(labels)
    if count < 2:
        raise UnimplementedError(
            what="a classifier of one label, whose other label the standard leaves open", found=count
        )
    total, written = scores_of(forest, reached(forest, x), count, dtype_of(x))
    if count == 2 and len(used) == 1:
        (column,) = used
        if base is not None and (len(base) != 1 or column):
            raise UnimplementedError(what="base_values of two classes whose leaves name one", found=len(base))
        score = _with_base(total[:, column : column + 1], attributes, 1)
        probability = bool((forest.leaves[2] >= 0).all())
        positive = math.greater(score, np.asarray(0.5 if probability else 0.0, dtype_of(score).np))
        place = cast(array.reshape(positive, [-1]), int32)
        if column:
            scores = transformed(array.concat([array.zeros_like(score), score], 1), transform)
        else:
            scores = second_class(score, probability, transform)
    else:
        total = _with_base(total, attributes, count)
        if base is None and not (isinstance(written, np.ndarray) and written.all()):
            ranked = array.where(written, total, np.asarray(-np.inf, dtype_of(total).np))
        else:
            ranked = total
        place, scores = math.argmax(ranked, -1, int32), transformed(total, transform)
    return array.gather(labels, place), cast(scores, float32)
