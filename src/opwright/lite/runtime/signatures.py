"""Signatures: named entries of a model, called with keywords.

Lives here: `SignatureRunner`.  Not here: the subgraph it runs.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import flags
from ...core.errors import InvalidArgumentError
from .details import tensor_details
from .ownership import SOMEBODY, exclusive

if TYPE_CHECKING:
    from ..interpreter import Interpreter


class SignatureRunner:
    """Runs one signature: `runner(x=array) -> {"y": array}`. Inputs are resized to what they are given.

    raises ValueError (InvalidArgumentError) for missing, unknown or ill-typed inputs
    """

    def __init__(self, interpreter: Interpreter, key: str) -> None:
        self._interpreter, self._key = interpreter, key
        self._ownership = interpreter._ownership
        definition = interpreter._signatures.get(key)
        if definition is None:
            raise InvalidArgumentError(what=f'Invalid signature_key provided: "{key}".',
                                       wanted=f"one of {', '.join(interpreter._signatures) or 'none'}")  # fmt: skip
        self._subgraph = int(definition.subgraph_index)
        self._inputs: dict[str, int] = {m.name: int(m.tensor_index) for m in definition.inputs}
        self._outputs: dict[str, int] = {m.name: int(m.tensor_index) for m in definition.outputs}

    def __call__(self, **inputs: Any) -> dict[str, Any]:
        ownership = self._ownership
        known = self._subgraph == 0 and inputs.keys() == self._inputs.keys()
        if ownership.direct is None or not known or flags.check_inputs:
            return self._call(inputs)
        while ownership.thread:
            ownership.wait("invoked")
        ownership.thread = SOMEBODY  # as in Interpreter.invoke
        try:
            direct = ownership.direct
            if direct is not None and self._put(inputs):
                if status := direct():
                    self._interpreter._stopped(status)
                return self._taken()
        finally:
            ownership.thread = 0
        return self._call(inputs)

    def _put(self, inputs: dict[str, Any]) -> bool:
        """Write all inputs without a look at the subgraph; whether that was possible."""
        writable = self._ownership.writable
        for name, index in self._inputs.items():
            put = writable.get(index)
            if put is None or not put(inputs[name]):
                return False
        return True

    def _taken(self) -> dict[str, Any]:
        """The outputs, for who has the interpreter."""
        ownership, found = self._ownership, {}
        for name, index in self._outputs.items():
            take = ownership.readable.get(index)
            if take is None:
                ownership.thread = get_ident()
                found[name] = self._interpreter.get_tensor(index, self._subgraph)
            else:
                found[name] = take()
        return found

    @exclusive("invoked")
    def _call(self, inputs: dict[str, Any]) -> dict[str, Any]:
        if len(inputs) != len(self._inputs):
            raise InvalidArgumentError(
                what="Invalid number of inputs provided for running a SignatureDef, "
                f"expected {len(self._inputs)} vs provided {len(inputs)}",
                found=", ".join(inputs) or "none", wanted=", ".join(self._inputs) or "none",
            )  # fmt: skip
        arrays = {}
        for name, value in inputs.items():
            if name not in self._inputs:
                raise InvalidArgumentError(what=f"Invalid Input name ({name}) for SignatureDef",
                                           wanted=f"one of {', '.join(self._inputs)}")  # fmt: skip
            arrays[name] = np.asarray(value)
        run = self._interpreter
        for name, array in arrays.items():
            run._resize(self._inputs[name], array.shape, False, self._subgraph)
        run._allocate(self._subgraph)
        for name, array in arrays.items():
            run._set(self._inputs[name], array, self._subgraph)
        run._invoke(self._subgraph)
        found = {name: run.get_tensor(index, self._subgraph) for name, index in self._outputs.items()}
        if self._subgraph == 0:
            run._look()
        return found

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Details of each input by name."""
        return self._details(self._inputs)

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """Details of each output by name."""
        return self._details(self._outputs)

    def _details(self, names: dict[str, int]) -> dict[str, dict[str, Any]]:
        tensors = self._interpreter._subgraphs[self._subgraph].tensors
        return {name: tensor_details(tensors[index]) for name, index in names.items()}
