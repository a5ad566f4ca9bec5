"""Models of one operator, for `opwright op model` and for checks of an operator.

Lives here: `single_operator`.  Not here: the converter (converter.py), running such models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.specs import TensorSpec
from ...tracing.function import function
from ..format import Model
from .converter import TFLiteConverter

Operand = Any  # None, a TensorSpec, an array, or a tuple of the last two


def single_operator(operator: Any, operands: Sequence[Operand], attrs: Mapping[str, Any] | None = None) -> bytes:
    """Return the bytes of a .tflite file with one call of an operator (or its expansion into builtin operators).

    operator: an `@ow.operator`, or one of the catalogue. operands: one for each declared input: a TensorSpec for an
    input of the model, which gets the declared name; an array for a constant in it; None where it is left out; a tuple
    of them where it is repeated. The model's outputs have the declared names.
    raises SignatureError, InvalidArgumentError as a call does; ConverterError for what no file can hold
    """
    named: list[tuple[str, Any]] = []
    for declared, operand in zip(operator.inputs, operands, strict=True):
        if isinstance(operand, tuple):
            named += [(f"{declared.name}_{i}", member) for i, member in enumerate(operand)]
        else:
            named.append((declared.name, operand))
    specs = [TensorSpec(o.shape, o.dtype, name) for name, o in named if isinstance(o, TensorSpec)]

    def call(*arguments: Any) -> object:
        rest = iter(arguments)
        values = iter([next(rest) if isinstance(o, TensorSpec) else o for _, o in named])
        inputs = [tuple(next(values) for _ in o) if isinstance(o, tuple) else next(values) for o in operands]
        taken = {d.name: x for d, x in zip(operator.inputs, inputs) if x is not None}
        result = operator(**taken, **(attrs or {}))
        return list(result) if isinstance(result, tuple) else result

    concrete = function(call, autograph=False, name=operator.name).get_concrete_function(*specs)
    converter = TFLiteConverter.from_concrete_functions([concrete])
    converter.allow_custom_ops = True
    model = Model.read(converter.convert())
    names = _names(operator, len(model.subgraphs[0].outputs))
    (signature,) = model.signature_defs
    for output, name in zip(signature.outputs, names):  # by the converter they have numbers
        output.name = name
    return model.to_bytes()


def _names(operator: Any, count: int) -> list[str]:
    """Return the names of `count` outputs; those of a repeated one are numbered."""
    shown = [o for o in operator.outputs if not o.intermediate]
    spare = count - sum(not o.repeated for o in shown)
    return [n for o in shown for n in ([f"{o.name}_{i}" for i in range(spare)] if o.repeated else [o.name])]
