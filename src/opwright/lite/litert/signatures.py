"""Signatures of a compiled model: inputs and outputs, in the official run time's order.

Lives here: `ModelSignature`, `SignatureTensor`, `signatures_of`.
Not here: their buffers (buffers.py), running (model.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import InvalidArgumentError
from ..format import Model
from ..ops import types
from ..runtime.constants import tensor_from_file
from ..runtime.introspection import tensor_details
from ..runtime.tensor import Tensor
from .library import HANDLE, SIZE, check, library


class SignatureTensor:
    """An input or an output. shape: the current one; the file's has -1 for sizes that may vary between runs."""

    def __init__(self, name: str, tensor: Tensor, is_input: bool) -> None:
        self.name, self.tensor, self.shape = name, tensor, tensor.shape
        self.signature = tensor.signature or tensor.shape
        self.what = f"{'input' if is_input else 'output'} {name!r}"

    @property
    def is_dynamic(self) -> bool:
        """Whether a size may vary between runs."""
        return -1 in self.signature

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Return whether a run may have this shape."""
        return len(shape) == len(self.signature) and all(s in (-1, n) for s, n in zip(self.signature, shape))

    def details(self) -> dict[str, Any]:
        """Return the interpreter's details, with the current shape."""
        details = tensor_details(self.tensor)
        return {**details, "name": self.tensor.name, "shape": np.array(self.shape, np.int32)}

    def brief(self) -> dict[str, Any]:
        """Return the details of the wheel's own compiled model."""
        return {
            "name": self.tensor.name,
            "index": self.tensor.index,
            "dtype": types.name_of(self.tensor.dtype).lower(),
            "shape": list(self.shape),
        }


class ModelSignature:
    """A signature: its key, None if the model has none, and its inputs and outputs in order.

    allocated: whether the run time is prepared for the inputs' shapes. has_run: whether it has run with them
    """

    def __init__(self, key: str | None, inputs: list[SignatureTensor], outputs: list[SignatureTensor]) -> None:
        self.key, self.inputs, self.outputs = key, inputs, outputs
        self.allocated = self.has_run = False
        self.buffers: Any = None  # of inputs and outputs, for `run`
        self.last_buffers: Any = None  # the buffers of the last run: the run time knows their memory

    def input(self, which: int | str) -> int:
        """Return the index of an input, by index or name. Raises InvalidArgumentError."""
        names = [p.name for p in self.inputs]
        if isinstance(which, str) and which in names:
            return names.index(which)
        if isinstance(which, int) and not isinstance(which, bool) and 0 <= which < len(names):
            return which
        raise InvalidArgumentError(
            op="lite.litert", what="no such input", found=repr(which), wanted=", ".join(names) or "none"
        )


def signatures_of(handle: int, model: Model) -> list[ModelSignature]:
    """Return the signatures of a loaded model, or one for the main subgraph, with the tensors' names.

    handle: the run time's model, which determines the order. model: the same as objects
    """
    count = ctypes.c_size_t()
    check(library().GetNumModelSignatures(handle, ctypes.byref(count)), "counting signatures")
    signatures = []
    for i in range(count.value):
        signature = HANDLE()
        check(library().GetModelSignature(handle, i, ctypes.byref(signature)), "reading a signature")
        key = _text(library().GetSignatureKey, signature)
        definition = next((d for d in model.signature_defs if d.signature_key == key), None)
        main = model.subgraphs[definition.subgraph_index if definition is not None else 0]
        parts = []
        for is_input, side in ((True, "Input"), (False, "Output")):
            names = _names(signature, side)
            if definition is not None:
                by_name = {m.name: int(m.tensor_index) for m in (definition.inputs if is_input else definition.outputs)}
                indices = [by_name[name] for name in names]
                names = _all_names(indices, by_name)
            else:
                indices = [int(t) for t in (main.inputs if is_input else main.outputs)]
            parts.append([SignatureTensor(name, _tensor(model, main, t), is_input) for name, t in zip(names, indices)])
        signatures.append(ModelSignature(None if definition is None else key, *parts))
    return signatures


def _tensor(model: Model, subgraph: Any, index: int) -> Tensor:
    source = subgraph.tensors[index]
    return tensor_from_file(index, source, model.buffers[source.buffer])


def _names(signature: Any, side: str) -> list[str]:
    count = ctypes.c_size_t()
    check(getattr(library(), f"GetNumSignature{side}s")(signature, ctypes.byref(count)), f"counting {side.lower()}s")
    name = getattr(library(), f"GetSignature{side}Name")
    return [_text(name, signature, SIZE(i)) for i in range(count.value)]


def _all_names(indices: list[int], by_name: dict[str, int]) -> list[str]:
    """Return a name for each of these tensors; the run time repeats one name for a tensor with several."""
    names: dict[int, list[str]] = {}
    for name, index in by_name.items():
        names.setdefault(index, []).append(name)
    return [names[i].pop(0) if len(names[i]) > 1 else names[i][0] for i in indices]


def _text(function: Callable[..., int], *arguments: Any) -> str:
    text = ctypes.c_char_p()
    check(function(*arguments, ctypes.byref(text)), "reading a name")
    return (text.value or b"").decode("utf-8", "surrogateescape")
