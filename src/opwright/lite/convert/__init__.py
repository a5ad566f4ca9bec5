"""The converter: traced functions to .tflite files.

    converter = TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
    content = converter.convert()

Stages, in order; each works on one graph until export:

    freeze            captures become constants; variables that a function writes stay variables (freeze.py)
    fuse_implements   calls of functions with `experimental_implements` become operators (custom_operators.py)
    prepare           folding, common subexpressions, dead code (passes.py)
    patterns/         users' patterns become fused operators
    lists/            lists of tensors become tensors
    legalize          catalogue to lite dialect, by the tables of rules/; custom and Flex operators (passes.py)
    optimize          merging within the dialect, by tables of patterns (passes.py)
    copy_outputs      copies where the official run time mishandles outputs of subgraphs (subgraphs.py)
    downlevel/        older forms of operators that a stated run time lacks, and the check of the result
    quantize/         integers in place of real numbers; sparse weights
    export            to a format.Model, with versions stamped

Not here: the file format (lite/format/), the operators of the dialect (lite/ops/), running files.
"""

from .converter import TFLiteConverter
from .errors import ConverterError
from .options import OpsSet, Optimize, TargetSpec

__all__ = ["ConverterError", "OpsSet", "Optimize", "TFLiteConverter", "TargetSpec"]
