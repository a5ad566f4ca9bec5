"""The official LiteRT run time, if its wheel is installed, with operators of Opwright.

    model = lite.litert.CompiledModel("model.tflite", custom_ops=[Atan])
    outputs = model.run({"x": x})

Lives here: the public names, and no code.
"""

from .invocation import TensorBuffer
from .model import CompiledModel

__all__ = ["CompiledModel", "TensorBuffer"]
