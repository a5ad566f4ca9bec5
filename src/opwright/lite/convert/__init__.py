"""The converter: traced functions to .tflite files.

    converter = TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
    content = converter.convert()

Stages, in order: freeze (captures become constants), prepare (fold, merge, drop), lists (of tensors, as tensors),
legalize (rule tables, catalogue to lite dialect), optimize (merge within the dialect), export (to a format.Model).
Not here: quantisation, the file format (lite/format/), the operators of the dialect (lite/ops/).
"""

from .converter import TFLiteConverter
from .errors import ConverterError
from .options import OpsSet, Optimize, TargetSpec

__all__ = ["ConverterError", "OpsSet", "Optimize", "TFLiteConverter", "TargetSpec"]
