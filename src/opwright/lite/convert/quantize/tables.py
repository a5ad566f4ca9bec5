"""What the subgraphs of a rewritten model share: buffers, operator codes, signatures, metadata.

Lives here: `Tables`, which starts a model from another and takes over only what is still used.
Not here: subgraphs (rewrite.py, weights.py).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...format import Model, objects, versions


class Tables:
    """Buffers and codes of a new model, by those of the old one."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.buffers: list[Any] = [objects.Buffer()]  # by convention the first is empty
        self.codes: list[Any] = []
        self._kept_buffers: dict[int, int] = {0: 0}
        self._by_bytes: dict[bytes, int] = {}
        self._kept_codes: dict[int, int] = {}
        self._by_name: dict[str, int] = {}

    def kept_buffer(self, index: int) -> int:
        """The new index of a buffer of the old model."""
        if index not in self._kept_buffers:
            source = self.model.buffers[index]
            if source.data is None and not source.size:
                return 0
            self._kept_buffers[index] = len(self.buffers)
            self.buffers.append(source)
        return self._kept_buffers[index]

    def buffer(self, array: np.ndarray) -> int:
        """The index of a buffer with these elements."""
        content = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        if content not in self._by_bytes:
            self._by_bytes[content] = len(self.buffers)
            self.buffers.append(objects.Buffer(data=np.frombuffer(content, np.uint8)))
        return self._by_bytes[content]

    def code(self, name: str) -> int:
        """The index of the code of a builtin operator."""
        for index, code in enumerate(self.codes):
            if code.custom_code is None and versions.op_name(code) == name:
                return index
        self.codes.append(versions.operator_code(name))
        return len(self.codes) - 1

    def kept_code(self, index: int) -> int:
        """The new index of a code of the old model."""
        if index not in self._kept_codes:
            source = self.model.operator_codes[index]
            if source.custom_code is None:
                self._kept_codes[index] = self.code(versions.op_name(source))
            else:
                self._kept_codes[index] = len(self.codes)
                self.codes.append(copy.copy(source))
        return self._kept_codes[index]

    def step(self, name: str, source: int, target: int) -> Any:
        """An operator from one tensor to another, such as QUANTIZE; with options where the official converter writes
        them."""
        facts = versions.facts(name)
        written = facts["options"] and facts.get("converter_writes_options") is not False
        return objects.Operator(
            opcode_index=self.code(name), builtin_options=objects.table_class(facts["options"])() if written else None,
            inputs=np.array([source], np.int32), outputs=np.array([target], np.int32))  # fmt: skip

    def finish(self, subgraphs: Sequence[Any]) -> Model:
        """The new model, versions stamped."""
        old = self.model
        made = copy.copy(old)
        made.subgraphs, made.operator_codes, made.buffers = list(subgraphs), self.codes, self.buffers
        made.signature_defs = [self._signature(d, subgraphs) for d in old.signature_defs]
        versions.stamp_model(made)
        made.metadata = []
        for entry in old.metadata:
            fresh = copy.copy(entry)
            if entry.name == versions.METADATA_NAME:
                content = versions.metadata_of(versions.min_runtime_of_model(made))
                fresh.buffer = self.buffer(np.frombuffer(content, np.uint8))
            else:
                fresh.buffer = self.kept_buffer(entry.buffer)
            made.metadata.append(fresh)
        if len(old.metadata_buffer):
            made.metadata_buffer = np.array([self.kept_buffer(int(b)) for b in old.metadata_buffer], np.int32)
        return made

    def _signature(self, definition: Any, subgraphs: Sequence[Any]) -> Any:
        """With the indices of the new tensors, which stand at the same places of inputs and outputs."""
        index = int(definition.subgraph_index)
        was, now = self.model.subgraphs[index], subgraphs[index]
        made = copy.copy(definition)
        for side in ("inputs", "outputs"):
            places = np.asarray(getattr(was, side)).tolist()
            fresh = np.asarray(getattr(now, side)).tolist()
            setattr(made, side, [
                objects.TensorMap(name=m.name, tensor_index=fresh[places.index(int(m.tensor_index))])
                for m in getattr(definition, side)])  # fmt: skip
        return made
