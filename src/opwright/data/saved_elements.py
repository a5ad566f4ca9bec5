"""Datasets in folders: `Dataset.save` and `Dataset.load`.

Lives here: the folder: the type of the elements as JSON, the elements; the dataset that reads them.
Not here: the file of elements, which is that of `cache` (buffers.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from ..core.dtypes import as_dtype
from ..core.errors import DataLossError, InvalidArgumentError, NotFoundError
from ..core.files import replacing
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..ops.ragged import RaggedTensorSpec
from ..ops.sparse.sparse_tensor import SparseTensorSpec
from .base import UNKNOWN
from .buffers import read_elements
from .dataset import Dataset
from .functions import IteratorContext
from .structure import NoneTensorSpec

_SPEC, _ELEMENTS = "spec.json", "elements"
_LEAVES: dict[str, Any] = {"tensor": TensorSpec, "ragged": RaggedTensorSpec, "sparse": SparseTensorSpec}


def _to_json(spec: Any) -> Any:
    """Return an element_spec as JSON has it. Raises TypeError for types that are not stored."""
    if isinstance(spec, dict):
        return {"dict": [[key, _to_json(value)] for key, value in spec.items()]}
    if isinstance(spec, tuple):
        return {"tuple": [_to_json(part) for part in spec]}
    if isinstance(spec, NoneTensorSpec):
        return {"none": []}
    for name, cls in _LEAVES.items():
        if type(spec) is cls and not spec.dtype.is_handle:
            sizes = None if spec.shape.dims is None else list(spec.shape.dims)
            return {name: [sizes, spec.dtype.name, *([spec.ragged_rank] if name == "ragged" else [])]}
    raise TypeError(f"elements of type {spec!r} cannot be saved")


def _from_json(value: Any) -> Any:
    ((kind, content),) = value.items()
    if kind == "dict":
        return {key: _from_json(part) for key, part in content}
    if kind == "tuple":
        return tuple(map(_from_json, content))
    if kind == "none":
        return NoneTensorSpec()
    shape, dtype, *rest = content
    return _LEAVES[kind](TensorShape(shape), as_dtype(dtype), *rest)


def save(dataset: Any, path: Any, compression: str | None) -> None:
    """Write all elements of a dataset; see `Dataset.save`."""
    if compression not in (None, "NONE"):
        raise InvalidArgumentError(
            op="Dataset.save", what="elements are stored as they are", found=compression, wanted="compression=None"
        )
    folder = os.fspath(path)
    content = {"format": "opwright.dataset", "element_spec": _to_json(dataset.element_spec)}
    os.makedirs(folder, exist_ok=True)
    for name in (_SPEC, _ELEMENTS):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    count = 0
    for _ in dataset.cache(os.path.join(folder, _ELEMENTS)):
        count += 1
    with replacing(os.path.join(folder, _SPEC)) as file:  # last: a folder with it is complete
        file.write(json.dumps({**content, "count": count}).encode())


class _SavedDataset(Dataset):
    """The elements in a folder."""

    def __init__(self, path: Any, element_spec: Any = None) -> None:
        folder = os.fspath(path)
        try:
            with open(os.path.join(folder, _SPEC), "rb") as file:
                content = json.loads(file.read())
            spec, count = _from_json(content["element_spec"]), int(content["count"])
        except FileNotFoundError:
            raise NotFoundError(op="Dataset.load", what=f"{folder} has no dataset saved by Dataset.save") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataLossError(op="Dataset.load", what=f"{folder} is damaged: {error}") from None
        if element_spec is not None and spec != element_spec:
            raise ValueError(f"the dataset in {folder} has elements of type {spec!r}, not {element_spec!r}")
        self._folder, self._count = folder, count
        super().__init__(spec)

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        return read_elements(os.path.join(self._folder, _ELEMENTS), self._form.dtypes)

    def _cardinality(self) -> int:
        return self._count if self._count >= 0 else UNKNOWN
