"""Texts of ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import int64
from ....core.errors import InvalidArgumentError
from ....ops import array, math, strings
from ....ops.array import cast
from ..execution import RULES
from ..operands import dims, dtype_of, rank_of, shape_of

rule = RULES.rule


@rule("StringConcat")
def string_concat(context: Any, inputs: Any, attributes: Any) -> Any:
    a, b = inputs
    if dims(a) != dims(b):
        whole = array.broadcast_dynamic_shape(shape_of(a), shape_of(b))
        a, b = array.broadcast_to(a, whole), array.broadcast_to(b, whole)
    return math.add(a, b)


@rule("RegexFullMatch")
def regex_full_match(context: Any, inputs: Any, attributes: Any) -> Any:
    return strings.regex_full_match(inputs[0], attributes["pattern"].encode())


@rule("StringNormalizer")
def string_normalizer(context: Any, inputs: Any, attributes: Any) -> Any:
    """Remove stop words, then change the case; a result without words is one empty text."""
    x, change = inputs[0], attributes.get("case_change_action", "NONE")
    stop = [w.encode() for w in attributes.get("stopwords", ())]
    sensitive = bool(attributes.get("is_case_sensitive"))
    if stop:
        row = rank_of(x) == 2
        flat = array.reshape(x, [-1])
        compared = flat if sensitive else strings.lower(flat, "utf-8")
        words = stop if sensitive else [w.decode().lower().encode() for w in stop]
        removed = math.reduce_any(math.equal(array.expand_dims(compared, 1), np.asarray(words, object)), 1)
        kept = array.boolean_mask(flat, math.logical_not(removed))
        count = array.size(kept)
        empty = np.asarray([b""], object)
        kept = array.concat([kept, array.tile(empty, array.reshape(cast(math.equal(count, 0), np.int32), [1]))], 0)
        x = array.expand_dims(kept, 0) if row else kept
    if change == "NONE":
        return x
    return (strings.lower if change == "LOWER" else strings.upper)(x, "utf-8")


@rule("StringSplit")
def string_split(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return the parts of each text, padded with empty strings, and how many there are."""
    values = context.required(inputs[0], "texts to split: the number of parts is a size of the result")
    delimiter, limit = attributes.get("delimiter", ""), attributes.get("maxsplit", -1)
    parts = [v.decode().split(delimiter or None, -1 if limit is None else limit) for v in values.reshape(-1)]
    widest = max((len(p) for p in parts), default=0)
    result = np.full((len(parts), widest), b"", object)
    for row, words in zip(result, parts):
        row[: len(words)] = [w.encode() for w in words]
    counts = np.asarray([len(p) for p in parts], np.int64)
    return result.reshape([*values.shape, widest]), counts.reshape(values.shape)


@rule("TfIdfVectorizer")
def tf_idf_vectorizer(context: Any, inputs: Any, attributes: Any) -> Any:
    """Count n-grams, with up to max_skip_count elements left out between their members."""
    x = inputs[0]
    pool = attributes.get("pool_strings") or attributes.get("pool_int64s")
    if pool is None:
        raise InvalidArgumentError(what="TfIdfVectorizer without a pool")
    words = [w.encode() if isinstance(w, str) else w for w in pool]
    starts = [*attributes["ngram_counts"], len(words)]
    low, high = attributes["min_gram_length"], attributes["max_gram_length"]
    indexes = list(attributes["ngram_indexes"])
    weights = attributes.get("weights")
    rows = array.reshape(x, [1, -1]) if rank_of(x) < 2 else x
    length = dims(rows)[1]
    if length is None:
        raise InvalidArgumentError(what="TfIdfVectorizer needs the length at import")
    columns: list[Any] = [None] * (max(indexes) + 1)
    factors = np.ones(len(columns), np.float32)
    order = 0
    for n in range(1, len(starts)):
        for first in range(starts[n - 1], starts[n], n):
            gram, column = words[first : first + n], indexes[order]
            factors[column] = 1.0 if weights is None else weights[order]
            order += 1
            if low <= n <= high:
                columns[column] = _count(rows, gram, length, attributes["max_skip_count"] if n > 1 else 0)
    zero = array.fill(array.shape(rows)[:1], np.float32(0))
    counts = array.stack([zero if c is None else c for c in columns], 1)
    mode = attributes["mode"]
    if mode != "TF":
        counts = array.where(math.greater(counts, np.float32(0)), np.ones((), np.float32), np.zeros((), np.float32))
    if mode != "IDF" and mode != "TFIDF":
        factors = np.ones_like(factors)
    if mode == "TFIDF":
        counts = array.stack([zero if c is None else c for c in columns], 1)
    result = math.multiply(counts, factors)
    return array.reshape(result, [-1]) if rank_of(x) < 2 else result


def _count(rows: Any, gram: list[Any], length: int, most: int) -> Any:
    n = len(gram)
    total: Any = None
    for skip in range(most + 1):
        step = skip + 1
        last = length - (n - 1) * step
        if last <= 0:
            break
        matched: Any = None
        for i, word in enumerate(gram):
            value = np.asarray(word, object if isinstance(word, bytes) else dtype_of(rows).np)
            same = math.equal(rows[:, i * step : i * step + last], value)
            matched = same if matched is None else math.logical_and(matched, same)
        number = math.reduce_sum(cast(matched, np.float32), 1)
        total = number if total is None else math.add(total, number)
    return total


@rule("ai.onnx.ml::LabelEncoder")
def label_encoder(context: Any, inputs: Any, attributes: Any) -> Any:
    """Look values up in a table, which is compared as a whole."""
    x = inputs[0]
    keys = _table(attributes, "keys", x)
    values = _table(attributes, "values", None)
    default = next((attributes[k] for k in ("default_tensor",) if k in attributes), None)
    if default is None:
        kind = values.dtype.kind
        default = attributes.get(
            {"O": "default_string", "f": "default_float"}.get(kind, "default_int64"),
            {"O": "_Unused", "f": -0.0}.get(kind, -1),
        )
    if isinstance(default, str):
        default = default.encode()
    default = np.asarray(default, values.dtype).reshape(-1)
    hits = math.equal(array.expand_dims(x, -1), keys)
    if keys.dtype.kind == "f":
        both = math.logical_and(math.is_nan(array.expand_dims(x, -1)), np.isnan(keys))
        hits = math.logical_or(hits, both)
    index = math.argmax(cast(hits, np.int32), -1, int64)
    any_ = math.reduce_any(hits, -1)
    return array.gather(np.concatenate([values, default]), array.where(any_, index, np.int64(len(values))))


def _table(attributes: Any, name: str, like: Any) -> np.ndarray:
    for suffix, dtype in (("int64s", np.int64), ("floats", np.float32), ("strings", None), ("tensor", None)):
        value = attributes.get(f"{name}_{suffix}")
        if value is not None:
            if suffix == "strings":
                return np.asarray([v.encode() for v in value], object)
            result: np.ndarray = np.asarray(value, dtype).reshape(-1)
            return result if like is None else result.astype(dtype_of(like).np)
    raise InvalidArgumentError(what=f"a LabelEncoder without {name}")
