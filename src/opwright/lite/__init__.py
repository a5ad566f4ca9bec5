"""`.tflite`: the file format, the converter, the interpreter, resolvers.

    converter = lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
    interpreter = lite.Interpreter(model_content=converter.convert())

Lives here: the public names, each loaded on first use, so that `import opwright` stays fast.
Not here: code. format/ has the file format; ops/ the operators; runtime/ the interpreter; convert/ the converter.
"""

from ..core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__, unlisted=("customs", "litert"))
