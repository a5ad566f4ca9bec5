"""Steps: a model's train, test and predict steps as traced functions.

Lives here: which function serves a batch.  Not here: what a step does (trainer.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import staging
from ...core import flags, nest
from ...core.specs import TensorSpec
from ...ops.lod_tensor import LoDTensor, LoDTensorSpec
from ...tracing.function import Function
from ...tracing.retracing import Detector


class Steps:
    """One function for each kind of step and structure of a batch; the number of samples is free.

    jit_compile: whether they are compiled to machine code, for each number of samples.
    """

    def __init__(self, jit_compile: bool | None = None) -> None:
        self.jit_compile = jit_compile
        self._known: dict[Any, tuple[Function, Any]] = {}

    def forget(self, kind: str) -> None:
        """Trace anew: the model has changed."""
        self._known = {k: v for k, v in self._known.items() if k[0] != kind}

    def run(self, kind: str, step: Callable[[Any], Any], data: Any, prepare: Callable[[], None]) -> Any:
        """Run the step on a batch, traced if need be. prepare: called before a trace."""
        if flags.run_functions_eagerly:
            return step(data)
        flat = nest.flatten(data)
        tensors = [t for t in flat if t is not None]
        key = (kind, _outline(data), tuple([
            (t.dtype.name, t.shape.dims[1:], len(t.shape.dims), t.lod_level if isinstance(t, LoDTensor) else None)
            for t in tensors
        ]))  # fmt: skip
        found = self._known.get(key)
        if found is None:
            prepare()
            found = self._known[key] = self._make(kind, step, data, flat, tensors), None
        return found[0](*tensors)

    def _make(self, kind: str, step: Callable[[Any], Any], data: Any, flat: list[Any], tensors: list[Any]) -> Function:
        present = [t is not None for t in flat]

        def traced(*given: Any) -> Any:
            rest = iter(given)
            leaves = [next(rest) if there else None for there in present]
            return staging.converted(step)(nest.pack_sequence_as(data_form, leaves))

        data_form = nest.map_structure(lambda t: None if t is None else 0, data)
        specs = [_spec_of(t) for t in tensors]
        function = Function(traced, specs, jit_compile=self.jit_compile, name=f"{kind}_step")
        function._detector = Detector()  # each is traced once: many models are no reason to warn
        return function


def _spec_of(x: Any) -> Any:
    shape = (None, *x.shape.dims[1:]) if x.shape.dims else ()
    return LoDTensorSpec(shape, x.dtype, x.lod_level) if isinstance(x, LoDTensor) else TensorSpec(shape, x.dtype)


def _outline(data: Any) -> Any:
    """A hashable form of a structure."""
    if isinstance(data, dict):
        return ("dict", *((k, _outline(data[k])) for k in sorted(data)))
    if isinstance(data, (list, tuple)):
        return (type(data).__name__, *map(_outline, data))
    return data is None
