"""Layers of Keras without an equivalent, by the program that Keras's backend records of their `call`.

Lives here: `TracedLayer`, `TracedModel`, and which backends can be traced. Not here: the rules of the recorded programs
(frontends/jax, frontends/torch), layers with an equivalent (configurations.py).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...core import nest
from ...core.errors import UnimplementedError
from ...core.specs import TensorSpec
from ...eager.variable import Variable
from ...nn.layer import Layer
from ...nn.model import Model
from ...ops.tensor import TensorLike
from ..importing import ImportedFunction, tensor_of
from ..jax.program import from_jax
from ..torch.importer import from_torch

BACKENDS = ("jax", "torch")
"""Backends of Keras whose programs can be recorded."""


def backend() -> str | None:
    """Return the backend of the Keras that is imported, if its programs can be recorded."""
    keras = sys.modules.get("keras")
    name = None if keras is None else keras.backend.backend()
    return name if name in BACKENDS else None


class TracedLayer(Layer):
    """A Keras layer as the program of its `call`, which is recorded once for each mode and types of inputs.

    source: the layer, built. Its weights are copied; what training updates, such as moving averages and the states of
    random numbers, is assigned.
    """

    _ignored = Layer._ignored | {"_source", "_programs", "_states"}

    def __init__(self, source: Any, **kwargs: Any) -> None:
        super().__init__(name=source.name, trainable=bool(source.trainable), dtype=source.compute_dtype)
        self._source = source
        self._programs: dict[Any, ImportedFunction] = {}
        weights = {id(w) for w in source.weights}
        self._states: list[tuple[Any, Variable]] = []  # a variable of Keras, and the one here
        for variable in source.variables:
            value, name = _array(variable), variable.path.rpartition("/")[2]
            if id(variable) in weights:
                own = self.add_weight(
                    name=name,
                    shape=value.shape,
                    dtype=value.dtype.name,
                    initializer=lambda shape, dtype=None, value=value: tensor_of(value),
                    trainable=bool(variable.trainable),
                )
            else:
                own = Variable(value, trainable=False, name=name)
            self._states.append((variable, own))
        self.built = True

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> TracedLayer:
        """Return the layer of a Keras layer, which is `source` of the configuration."""
        return cls(config["source"])

    def get_config(self) -> dict[str, Any]:
        """Raise UnimplementedError: a recorded program has no configuration."""
        raise UnimplementedError(
            op="from_keras",
            node=self.name,
            what=f"a {type(self._source).__name__} that was recorded has no configuration",
            do="save the model with ow.saved_model.save, or pass a class for it in custom=",
        )

    def call(self, inputs: Any, *others: Any, training: Any = None, **options: Any) -> Any:
        """Compute the recorded program. Arguments that are not tensors are constants of it."""
        mode, structure = bool(training), [inputs, others, options]
        leaves = nest.flatten(structure)
        tensors = [x for x in leaves if isinstance(x, TensorLike)]
        constants = [None if isinstance(x, TensorLike) else x for x in leaves]
        specs = [TensorSpec(x.shape, x.dtype) for x in tensors]
        key = (mode, tuple(map(str, specs)), repr(constants), tuple(options))
        if key not in self._programs:
            self._programs[key] = self._recorded(structure, leaves, specs, mode)
        outputs, after = self._programs[key](*(own.read_value() for _, own in self._states), *tensors)
        if mode:
            for (_, own), value in zip(self._states, after, strict=True):
                if not own.trainable:
                    own.assign(value)
        return outputs

    def _recorded(
        self, structure: list[Any], leaves: list[Any], specs: list[TensorSpec], training: bool
    ) -> ImportedFunction:
        """Return the program: of the values of all variables and the inputs, outputs and values afterwards."""
        source, variables = self._source, [v for v, _ in self._states]
        keras = sys.modules["keras"]
        constants = [None if isinstance(x, TensorLike) else (x,) for x in leaves]

        def program(*arguments: Any) -> Any:
            values = list(zip(variables, arguments))
            tensors = iter(arguments[len(variables) :])
            members = [next(tensors) if constant is None else constant[0] for constant in constants]
            inputs, others, options = nest.pack_sequence_as(structure, members)
            with keras.StatelessScope(state_mapping=values) as scope:
                outputs = source(inputs, *others, training=training, **options)
            return outputs, [scope.get_current_value(v) for v in variables]

        kinds = [TensorSpec(own.shape, own.dtype) for _, own in self._states]
        record = from_jax if backend() == "jax" else _by_torch
        return record(program, *kinds, *specs, name=self.name)


def _array(variable: Any) -> np.ndarray:
    value = variable.value
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def _by_torch(program: Any, *specs: TensorSpec, name: str) -> ImportedFunction:
    """Return a program of Keras on PyTorch. Sizes that are unknown stay so where the program allows it."""
    torch = sys.modules["torch"]

    class RecordedCall(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, *arguments: Any) -> Any:
            return program(*arguments)

    def example(spec: TensorSpec) -> Any:
        sizes = [3 if d is None else d for d in spec.shape.as_list()]
        return torch.zeros(sizes, dtype=getattr(torch, spec.dtype.name))

    automatic = torch.export.Dim.AUTO
    dynamic = tuple({i: automatic for i, d in enumerate(spec.shape.as_list()) if d is None} for spec in specs)
    with torch.no_grad():
        return from_torch(RecordedCall(), tuple(map(example, specs)), dynamic_shapes=(dynamic,), name=name)


class TracedModel(Model):
    """A model of Keras that is a class of its own, as the program of its `call`. source: the model, built."""

    def __init__(self, source: Any) -> None:
        super().__init__(name=source.name)
        self.layer = TracedLayer(source)
        self.built = True

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Compute the recorded program."""
        if self._symbolic_inputs is None:
            self._symbolic_inputs = self._specs_of(inputs)
        return self.layer(inputs, training=training)
