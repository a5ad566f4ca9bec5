"""The converter: traced functions to .tflite files.

    converter = TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
    content = converter.convert()

Stages, in order, each graph on its own until export:

    freeze      captures become constants, variables that are written stay (variables.py)
    fused       calls of functions that stand for one operator become it (experimental_implements)
    prepare     fold, merge, drop
    patterns/   operators in the shapes that a person describes become fused ones
    lists/      lists of tensors, as tensors
    legalize    rules/: catalogue to lite dialect; custom and Flex operators; the list of what has no form
    optimize    merge within the dialect, by tables of patterns
    handing     what the official run time takes wrongly of subgraphs is copied
    older/      forms for the run time that was asked for
    export      to a format.Model, versions stamped
    quantize/   a float format.Model to one with scales; weights of many zeros without them
    runtime     whether it runs there

Not here: the file format (lite/format/), the operators of the dialect (lite/ops/), running files.
"""

from .converter import TFLiteConverter
from .errors import ConverterError
from .options import OpsSet, Optimize, TargetSpec

__all__ = ["ConverterError", "OpsSet", "Optimize", "TFLiteConverter", "TargetSpec"]
