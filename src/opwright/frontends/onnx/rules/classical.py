"""Linear models and their preparation of ai.onnx.ml: products of matrices between tables.

Lives here: their rules; labels and scores of classifiers, which all have. Not here: trees (trees.py), support vectors
(support_vectors.py).

Where the standard leaves scores of two classes open, they are those of onnxruntime.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import float32, int32, string
from ....core.errors import InvalidArgumentError, UnimplementedError
from ....ops import array, linalg, math, nn
from ....ops.array import cast
from ..execution import RULES
from ..operands import dims, dtype_of, rank_of

rule = RULES.rule


# ---- labels and scores -----------------------------------------------------------------------------------------------


def labels_of(attributes: Any, integers: str = "classlabels_ints") -> np.ndarray:
    """Return the labels of a classifier: texts or int64."""
    texts = attributes.get("classlabels_strings")
    if texts:
        return np.asarray([t.encode() if isinstance(t, str) else t for t in texts], object)
    return np.asarray(attributes.get(integers) or [], np.int64)


def _probit(x: Any) -> Any:
    return math.multiply(math.erfinv(math.subtract(math.multiply(x, _like(2, x)), _like(1, x))), _like(2**0.5, x))


def _softmax_zero(x: Any) -> Any:
    """Compute softmax of the scores that are not zero; zeros stay, all zeros are equal shares of 0.5."""
    nonzero = math.greater(math.abs(x), _like(1e-7, x))
    peak = math.reduce_max(x, -1, keepdims=True)
    parts = array.where(nonzero, math.exp(math.subtract(x, peak)), math.multiply(x, math.exp(math.negative(peak))))
    total = math.reduce_sum(parts, -1, keepdims=True)
    return array.where(math.equal(total, _like(0, x)), _like(0.5, x), math.realdiv(parts, total))


def _like(value: float, x: Any) -> np.ndarray:
    return np.asarray(value, dtype_of(x).np)


TRANSFORMS = {
    "NONE": lambda x: x,
    "LOGISTIC": math.sigmoid,
    "SOFTMAX": lambda x: nn.softmax(x, -1),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


def transformed(scores: Any, transform: str) -> Any:
    """Return scores [n, targets] after a post_transform."""
    if transform not in TRANSFORMS:
        raise InvalidArgumentError(what="no such post_transform", found=transform, wanted=sorted(TRANSFORMS))
    return TRANSFORMS[transform](scores)


def second_class(score: Any, probability: bool, transform: str) -> Any:
    """Return the scores [n, 2] of two classes from the one [n, 1] of the second. probability: whether it is one, so
    that the first has 1 - score; else it has -score. Only LOGISTIC changes logits."""
    if transform == "PROBIT":
        raise UnimplementedError(what="PROBIT of one score for two classes")
    if probability:
        return array.concat([math.subtract(_like(1, score), score), score], 1)
    both = array.concat([math.negative(score), score], 1)
    return math.sigmoid(both) if transform == "LOGISTIC" else both


# ---- preparation -----------------------------------------------------------------------------------------------------


@rule("ai.onnx.ml::Normalizer")
def normalizer(context: Any, inputs: Any, attributes: Any) -> Any:
    """Divide rows by their greatest element, sum of absolutes or length; rows of zeros stay."""
    x, norm = cast(inputs[0], float32), attributes.get("norm", "MAX")
    if norm == "MAX":
        size = math.reduce_max(x, -1, keepdims=True)
    elif norm == "L1":
        size = math.reduce_sum(math.abs(x), -1, keepdims=True)
    elif norm == "L2":
        size = math.sqrt(math.reduce_sum(math.square(x), -1, keepdims=True))
    else:
        raise InvalidArgumentError(what="no such norm", found=norm, wanted=["MAX", "L1", "L2"])
    return math.realdiv(x, array.where(math.equal(size, np.float32(0)), np.float32(1), size))


@rule("ai.onnx.ml::Imputer")
def imputer(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    kind = "float" if dtype_of(x).is_floating else "int64"
    values = np.asarray(attributes.get(f"imputed_value_{kind}s") or [], dtype_of(x).np)
    if len(values) not in {1, dims(x)[-1]}:
        raise InvalidArgumentError(what="imputed values are one, or one a column", found=len(values))
    replaced = attributes.get(f"replaced_value_{kind}", 0)
    absent = math.is_nan(x) if replaced != replaced else math.equal(x, _like(replaced, x))
    return array.where(absent, values, x)


@rule("ai.onnx.ml::FeatureVectorizer")
def feature_vectorizer(context: Any, inputs: Any, attributes: Any) -> Any:
    """Join columns; each input is cut, or padded with zeros, to its number of them."""
    wanted = attributes.get("inputdimensions") or [dims(x)[-1] for x in inputs]
    columns = []
    for x, size in zip(inputs, wanted, strict=True):
        x = cast(x if rank_of(x) == 2 else array.reshape(x, [-1, 1]), float32)
        width = dims(x)[1]
        if width is None:
            raise UnimplementedError(what="FeatureVectorizer needs the number of columns")
        columns.append(x[:, :size] if size <= width else array.pad(x, [[0, 0], [0, size - width]]))
    return array.concat(columns, 1)


@rule("ai.onnx.ml::OneHotEncoder")
def one_hot_encoder(context: Any, inputs: Any, attributes: Any) -> Any:
    """Mark each value's category; unknown ones are zeros, which `zeros` = 0 makes an error in other run times."""
    x = inputs[0]
    texts = attributes.get("cats_strings")
    if dtype_of(x) == string:
        categories = np.asarray([t.encode() if isinstance(t, str) else t for t in texts or []], object)
    else:
        categories = np.asarray(attributes.get("cats_int64s") or [], np.int64).astype(dtype_of(x).np)
    return cast(math.equal(array.expand_dims(x, -1), categories), float32)


@rule("ai.onnx.ml::CategoryMapper")
def category_mapper(context: Any, inputs: Any, attributes: Any) -> Any:
    """Exchange texts and numbers by a table; other values become the default."""
    x = inputs[0]
    texts = np.asarray([t.encode() if isinstance(t, str) else t for t in attributes.get("cats_strings") or []], object)
    numbers = np.asarray(attributes.get("cats_int64s") or [], np.int64)
    to_texts = dtype_of(x) != string
    keys, values = (numbers, texts) if to_texts else (texts, numbers)
    default = attributes.get("default_string", "_Unused").encode() if to_texts else attributes.get("default_int64", -1)
    table = np.concatenate([values, np.asarray([default], values.dtype)])
    hits = math.equal(array.expand_dims(x, -1), keys)
    place = math.argmax(cast(hits, int32), -1, int32)
    return array.gather(table, array.where(math.reduce_any(hits, -1), place, np.int32(len(keys))))


@rule("ai.onnx.ml::ZipMap")
def zip_map(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return the scores [n, classes] themselves, with a column for each label, in place of a map for each row."""
    labels = labels_of(attributes, "classlabels_int64s")
    width = dims(inputs[0])[-1]
    if width is not None and width != len(labels):
        raise InvalidArgumentError(what="labels do not fit the columns of scores", found=len(labels), wanted=width)
    return inputs[0]


# ---- linear models ---------------------------------------------------------------------------------------------------


def _product(x: Any, attributes: Any, count: int) -> Any:
    """Return x coefficients^T + intercepts, [n, count]."""
    coefficients = np.asarray(attributes.get("coefficients") or [], np.float32)
    if not count or len(coefficients) % count:
        raise InvalidArgumentError(what="coefficients do not fit the number of targets", found=len(coefficients))
    x = cast(x if rank_of(x) > 1 else array.expand_dims(x, 0), float32)
    y = linalg.matmul(x, np.ascontiguousarray(coefficients.reshape(count, -1).T))
    intercepts = attributes.get("intercepts")
    return math.add(y, np.asarray(intercepts, np.float32)) if intercepts else y


@rule("ai.onnx.ml::LinearRegressor")
def linear_regressor(context: Any, inputs: Any, attributes: Any) -> Any:
    scores = _product(inputs[0], attributes, attributes.get("targets", 1))
    return transformed(scores, attributes.get("post_transform", "NONE"))


@rule("ai.onnx.ml::LinearClassifier")
def linear_classifier(context: Any, inputs: Any, attributes: Any) -> Any:
    labels, transform = labels_of(attributes), attributes.get("post_transform", "NONE")
    width = dims(inputs[0])[-1]
    count = len(attributes.get("intercepts") or []) or (
        len(attributes["coefficients"]) // width if width else len(labels)
    )
    scores = _product(inputs[0], attributes, count)
    if count > 1:
        return array.gather(labels, math.argmax(scores, -1, int32)), transformed(scores, transform)
    if len(labels) != 2:
        raise InvalidArgumentError(what="one score distinguishes two classes", found=len(labels))
    place = cast(array.reshape(math.greater(scores, np.float32(0)), [-1]), int32)
    if transform == "LOGISTIC":
        both = math.sigmoid(array.concat([math.negative(scores), scores], 1))
    else:
        both = second_class(scores, True, transform)
    return array.gather(labels, place), both
