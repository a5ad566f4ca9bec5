"""Converting a case with Flex operators, and looking into the file.

Not here: the table (flex_cases.py), the checks (test_flex.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lite_kit
import numpy as np

import opwright as ow
from opwright.lite.format import Model
from opwright.lite.format.flexbuffers import decode

SETS = [ow.lite.OpsSet.TFLITE_BUILTINS, ow.lite.OpsSet.SELECT_TF_OPS]
ALONE = [ow.lite.OpsSet.SELECT_TF_OPS]  # everything becomes a Flex operator, what has a builtin form too


def converted(function: Callable[..., Any], inputs: Sequence[np.ndarray], sets: Any = SETS, **settings: Any) -> bytes:
    """The file of a function traced with these inputs' types."""
    specs = [ow.TensorSpec(x.shape, "string" if x.dtype == object else x.dtype) for x in inputs]
    converter = ow.lite.TFLiteConverter.from_concrete_functions([ow.function(function).get_concrete_function(*specs)])
    converter.target_spec.supported_ops = sets
    for name, value in settings.items():
        setattr(converter, name, value)
    return converter.convert()


def run(content: bytes, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Our interpreter's results."""
    return lite_kit.run(ow.lite.Interpreter(model_content=content), inputs)


def flex_nodes(content: bytes, inputs: Sequence[np.ndarray]) -> list[tuple[str, bytes, list[np.ndarray]]]:
    """Of each Flex operator in TensorFlow's form: its name, its NodeDef's bytes, its operands when the model runs."""
    model = Model.read(content)
    interpreter = ow.lite.Interpreter(model_content=content, experimental_preserve_all_tensors=True)
    lite_kit.run(interpreter, inputs)
    result = []
    for operator in model.subgraphs[0].operators:
        code = model.operator_codes[operator.opcode_index].custom_code or ""
        if code.startswith("Flex"):
            data = decode(bytes(operator.custom_options))[1].encode("utf-8", "surrogateescape")
            if b"_opwright" not in data:
                result.append((code, data, [interpreter.get_tensor(int(i)) for i in operator.inputs]))
    return result
