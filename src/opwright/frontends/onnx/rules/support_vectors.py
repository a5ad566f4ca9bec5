"""Support vector machines of ai.onnx.ml: kernels of rows and vectors, votes and probabilities of pairs of classes.

Lives here: their rules. Not here: labels and scores (classical.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import float32, int32
from ....core.errors import InvalidArgumentError
from ....ops import array, linalg, math
from ....ops.array import cast
from ....tracing.control import while_loop
from ..execution import RULES
from .classical import labels_of, second_class, transformed

rule = RULES.rule


def _kernel(x: Any, vectors: np.ndarray, attributes: Any) -> Any:
    """Return the kernel of rows [n, f] and vectors [v, f]: [n, v]."""
    kind = attributes.get("kernel_type", "LINEAR")
    gamma, offset, degree = (*(attributes.get("kernel_params") or ()), 0.0, 0.0, 0.0)[:3]
    product = linalg.matmul(x, np.ascontiguousarray(vectors.T))
    if kind == "LINEAR":
        return product
    if kind == "RBF":
        squares = math.reduce_sum(math.square(math.subtract(array.expand_dims(x, 1), vectors)), -1)
        return math.exp(math.multiply(squares, np.float32(-gamma)))
    inner = math.add(math.multiply(product, np.float32(gamma)), np.float32(offset))
    if kind == "POLY":
        return math.pow(inner, np.float32(degree))
    if kind == "SIGMOID":
        return math.tanh(inner)
    raise InvalidArgumentError(what="no such kernel_type", found=kind, wanted=["LINEAR", "POLY", "RBF", "SIGMOID"])


def _vectors(attributes: Any, count: int) -> np.ndarray:
    values = np.asarray(attributes.get("support_vectors") or [], np.float32)
    if not count or len(values) % count or not len(values):
        raise InvalidArgumentError(what="support_vectors do not fit their number", found=len(values), wanted=count)
    return values.reshape(count, -1)


@rule("ai.onnx.ml::SVMRegressor")
def svm_regressor(context: Any, inputs: Any, attributes: Any) -> Any:
    x, count = cast(inputs[0], float32), attributes.get("n_supports", 0)
    coefficients = np.asarray(attributes["coefficients"], np.float32)
    if count:
        features = _kernel(x, _vectors(attributes, count), attributes)
    else:
        features = x
    scores = linalg.matmul(features, coefficients.reshape(-1, 1))
    scores = math.add(scores, np.float32(attributes["rho"][0]))
    if attributes.get("one_class", 0):
        return array.where(math.greater(scores, np.float32(0)), np.float32(1), np.float32(-1))
    return transformed(scores, attributes.get("post_transform", "NONE"))


@rule("ai.onnx.ml::SVMClassifier")
def svm_classifier(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return the label by the most votes of all pairs of classes, and their scores."""
    x, labels = cast(inputs[0], float32), labels_of(attributes)
    transform, counts = attributes.get("post_transform", "NONE"), attributes.get("vectors_per_class")
    classes, coefficients = len(labels), np.asarray(attributes["coefficients"], np.float32)
    rho = np.asarray(attributes["rho"], np.float32)
    if not counts or not sum(counts):
        if len(coefficients) % classes:
            raise InvalidArgumentError(what="coefficients do not fit the number of classes", found=len(coefficients))
        weights = np.ascontiguousarray(coefficients.reshape(classes, -1).T)
        scores = math.add(linalg.matmul(x, weights), rho[0])
        return array.gather(labels, math.argmax(scores, -1, int32)), transformed(scores, transform)
    number = sum(counts)
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    if len(counts) != classes or len(coefficients) != (classes - 1) * number or len(rho) < len(pairs):
        raise InvalidArgumentError(
            what="sizes of coefficients, rho and vectors_per_class do not fit", found=len(counts)
        )
    rows, starts = coefficients.reshape(classes - 1, number), np.cumsum([0, *counts])
    weights = np.zeros((number, len(pairs)), np.float32)
    ballot = np.zeros((2, len(pairs), classes), np.float32)  # of the second, of the first of each pair
    for p, (i, j) in enumerate(pairs):
        weights[starts[i] : starts[i + 1], p] = rows[j - 1, starts[i] : starts[i + 1]]
        weights[starts[j] : starts[j + 1], p] = rows[i, starts[j] : starts[j + 1]]
        ballot[0, p, j] = ballot[1, p, i] = 1
    scores = math.add(linalg.matmul(_kernel(x, _vectors(attributes, number), attributes), weights), rho[: len(pairs)])
    first = math.greater(scores, np.float32(0))
    votes = array.gather(ballot[0].sum(0)[None], np.zeros(1, np.int32))
    votes = math.add(votes, linalg.matmul(cast(first, float32), ballot[1] - ballot[0]))
    if attributes.get("prob_a"):
        shares = _coupled(_pairwise(scores, attributes, pairs), classes)
        return array.gather(labels, math.argmax(votes, -1, int32)), transformed(shares, transform)
    label = array.gather(labels, math.argmax(votes, -1, int32))
    if len(pairs) > 1:
        return label, transformed(scores, transform)
    return label, second_class(scores, False, transform)


# ---- probabilities ---------------------------------------------------------------------------------------------------

LEAST = np.float32(1e-7)
MOST_STEPS = 100
"""Steps of the iteration, as in libsvm."""


def _pairwise(scores: Any, attributes: Any, pairs: Sequence[tuple[int, int]]) -> Any:
    """Return the probabilities [n, pairs] of the first class of each pair: Platt's sigmoid of its score."""
    a, b = (np.asarray(attributes.get(key) or [], np.float32) for key in ("prob_a", "prob_b"))
    if len(a) != len(pairs) or len(b) != len(pairs):
        raise InvalidArgumentError(what="prob_a and prob_b do not fit the pairs of classes", found=(len(a), len(b)))
    first = math.subtract(np.float32(1), math.sigmoid(math.add(math.multiply(scores, a), b)))
    return math.minimum(math.maximum(first, LEAST), np.float32(1) - LEAST)


def _coupled(first: Any, classes: int) -> Any:
    """Return the probabilities [n, classes] of classes from those of pairs, [n, pairs].

    source: the second method of Wu, Lin and Weng, Probability Estimates for Multi-class Classification by Pairwise
    Coupling (2004), iterated as in libsvm
    """
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    of_pair = {pair: first[:, p : p + 1] for p, pair in enumerate(pairs)}
    of_pair |= {(j, i): math.subtract(np.float32(1), of_pair[i, j]) for i, j in pairs}
    rows = []
    for i in range(classes):
        squares = [math.square(of_pair[j, i]) for j in range(classes) if j != i]
        own = squares[0]
        for square in squares[1:]:
            own = math.add(own, square)
        row = [own if i == j else math.negative(math.multiply(of_pair[j, i], of_pair[i, j])) for j in range(classes)]
        rows.append(array.concat(row, 1))
    matrix = array.stack(rows, 1)  # [n, classes, classes]
    start = math.add(math.multiply(first[:, :1], np.float32(0)), np.full(classes, 1 / classes, np.float32))
    error = np.float32(0.005 / classes)

    def products(p: Any) -> tuple[Any, Any]:
        qp = math.reduce_sum(math.multiply(matrix, array.expand_dims(p, 1)), -1)
        return qp, math.reduce_sum(math.multiply(p, qp), -1, keepdims=True)

    def unsettled(p: Any) -> Any:
        qp, pqp = products(p)
        return math.greater_equal(math.reduce_max(math.abs(math.subtract(qp, pqp)), -1, keepdims=True), error)

    def going(step: Any, p: Any) -> Any:
        return math.logical_and(math.less(step, np.int32(MOST_STEPS)), math.reduce_any(unsettled(p)))

    def run(step: Any, p: Any) -> tuple[Any, Any]:
        qp, pqp = products(p)
        fresh = p
        for i in range(classes):
            row, own = matrix[:, i], matrix[:, i, i : i + 1]
            change = math.realdiv(math.subtract(pqp, qp[:, i : i + 1]), own)
            rest = math.add(np.float32(1), change)
            twice = math.multiply(qp[:, i : i + 1], np.float32(2))
            growth = math.multiply(change, math.add(math.multiply(change, own), twice))
            pqp = math.realdiv(math.add(pqp, growth), math.square(rest))
            qp = math.realdiv(math.add(qp, math.multiply(change, row)), rest)
            unit = np.eye(classes, dtype=np.float32)[i]
            fresh = math.realdiv(math.add(fresh, math.multiply(change, unit)), rest)
        return math.add(step, np.int32(1)), array.where(unsettled(p), fresh, p)

    _, shares = while_loop(going, run, (np.int32(0), start))
    return shares
