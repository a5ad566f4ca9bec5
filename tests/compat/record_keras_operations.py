"""Record Keras's classes of operations, for src/opwright/nn/keras_ops/operation_classes.txt.

With a Python that has Keras and this package: a line a class of `keras.src.ops` whose function is here: its module and
name, the function, the arguments of its constructor. Left out: classes that take functions, of which files have none.
"""

import importlib
import inspect
import pathlib

from keras.src.ops.operation import Operation

import opwright as ow

MODULES = ("core", "image", "linalg", "math", "nn", "numpy")
ABBREVIATED = {"BatchNorm": "batch_normalization", "LayerNorm": "layer_normalization", "RMSNorm": "rms_normalization"}
OF_FUNCTIONS = {"AssociativeScan", "Cond", "ForiLoop", "Map", "Scan", "Switch", "VectorizedMap", "WhileLoop"}
FILE = pathlib.Path(ow.keras.ops.__file__).with_name("operation_classes.txt")


def functions(module):
    return {name.replace("_", ""): (name, getattr(module, name)) for name in dir(module) if name[0] != "_"}


def line(home, cls, function):
    constructor = inspect.signature(cls.__init__).parameters
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    arguments = [n for n, p in constructor.items() if n not in ("self", "name") and p.kind not in variadic]
    if "dtype" not in inspect.signature(function[1]).parameters:  # that of every operation
        arguments = [n for n in arguments if n != "dtype"]
    return " ".join([f"{home}.{cls.__name__}", function[0], *arguments])


def lines():
    for home in MODULES:
        module = importlib.import_module(f"keras.src.ops.{home}")
        own = functions(ow.keras.ops) | functions(ow.keras.ops.image if home == "image" else ow.keras.ops)
        for name, cls in sorted(vars(module).items()):
            is_operation = inspect.isclass(cls) and issubclass(cls, Operation) and cls.__module__ == module.__name__
            function = own.get(ABBREVIATED.get(name, name).replace("_", "").lower())
            if is_operation and name not in OF_FUNCTIONS and function is not None:
                yield line(home, cls, function)


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines()))
