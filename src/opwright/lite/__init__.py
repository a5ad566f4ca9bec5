"""`.tflite`: the file format, the converter, the interpreter, resolvers.

    converter = lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
    interpreter = lite.Interpreter(model_content=converter.convert())

Lives here: the public names, each loaded when first used, so that `import opwright` stays quick.
Not here: anything itself. format/ the file; ops/ the operators; runtime/ what runs them; convert/ the converter.
"""

from ..core.importing import lazily

__getattr__, __dir__, __all__ = lazily(__name__, unlisted=("customs", "litert"))
