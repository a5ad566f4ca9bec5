"""The official LiteRT run time, where its wheel is installed, with operators of Opwright's.

    model = lite.litert.CompiledModel("model.tflite", custom_ops=[Atan])
    outputs = model.run({"x": x})

Lives here: the public names.  Not here: anything itself.
"""

from .buffers import TensorBuffer
from .model import CompiledModel

__all__ = ["CompiledModel", "TensorBuffer"]
