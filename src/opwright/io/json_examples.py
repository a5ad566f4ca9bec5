"""`decode_json_example`: Example messages in the JSON form of protocol buffers as bytes."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.errors import InvalidArgumentError
from ..core.specs import TensorSpec
from ..eager.python_functions import call_on_arrays
from ..ops.tensor import Tensor
from .host_calls import string_operand, strings
from .messages import BytesList, Example, Feature, Features, FloatList, Int64List

_LISTS: dict[str, tuple[str, Any, Any]] = {
    "bytesList": ("bytes_list", BytesList, lambda v: base64.b64decode(v + "=" * (-len(v) % 4), altchars=None)),
    "floatList": ("float_list", FloatList, float),  # also "NaN" and "Infinity"
    "int64List": ("int64_list", Int64List, int),
}
_NAMES = {name: key for key, (name, _, _) in _LISTS.items()}


def _feature(content: dict[str, Any]) -> Feature:
    lists: dict[str, Any] = {}
    for key, each in content.items():
        name, kind, convert = _LISTS[_NAMES.get(key, key)]
        lists[name] = kind(value=[convert(v) for v in each.get("value", [])])
    if len(lists) > 1:
        raise ValueError("a feature has one list")
    return Feature(**lists)


def example_of_json(text: bytes) -> Example:
    """Return the message of a text in JSON. Raises InvalidArgumentError for texts that are none."""
    try:
        content = json.loads(text)
        if not set(content) <= {"features"}:
            raise ValueError(f"an Example has the field features, found {sorted(content)}")
        if "features" not in content:
            return Example()
        features = content["features"].get("feature", {})
        return Example(features=Features(feature={name: _feature(each) for name, each in features.items()}))
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        shown = text[:60].decode("utf-8", "replace")
        raise InvalidArgumentError(
            op="io.decode_json_example", what=f"Error while parsing JSON: {error}", found=repr(shown)
        ) from None


def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """Return Examples in JSON, strings of any shape, as serialized messages, which `parse_example` reads.

    raises InvalidArgumentError for texts that are not an Example
    """
    texts = string_operand(json_examples, "io.decode_json_example")

    def convert(values: np.ndarray) -> np.ndarray:
        return strings(
            [example_of_json(text).SerializeToString() for text in values.reshape(-1).tolist()], values.shape
        )

    result: Tensor = call_on_arrays(convert, [texts], TensorSpec(texts.shape, dtypes.string), name)
    return result
