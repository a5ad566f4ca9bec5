"""Programs that run in TensorFlow and in this package, and the table of their results: `every(tf, module)`.

Lives here: the decorator `program`, results as plain values, recording.
Not here: the programs (words.py, pictures.py, tables.py, rows.py), the comparison (test_tutorial_programs.py).

With a Python that has TensorFlow, `python tests/tutorials/tutorial_programs.py [MODULE ...]` renews MODULE.json.
"""

import importlib
import json
import pathlib
import sys
from collections.abc import Callable

import numpy as np

MODULES = ("words", "rows", "tables", "pictures", "columns", "elements", "scripts", "guides", "arrays")
PROGRAMS: dict[str, dict[str, Callable]] = {}


def program(function):
    """Register a function of the library, which returns arrays, tensors, numbers and texts, nested or not."""
    PROGRAMS.setdefault(function.__module__, {})[function.__name__] = function
    return function


def plain(value):
    """Return a result as JSON has it: a tensor as its dtype, shape and elements."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if hasattr(value, "to_list"):
        return {"rows": plain(value.to_list()), "dtype": value.dtype.name}
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype == object or array.dtype.kind in "SU":
        elements = [v if isinstance(v, str) else v.decode("latin-1") for v in array.reshape(-1).tolist()]
        return {"dtype": "string", "shape": list(array.shape), "elements": elements}
    return {"dtype": array.dtype.name, "shape": list(array.shape), "elements": array.reshape(-1).tolist()}


def programs_of(module):
    """Return the programs of a module by name."""
    importlib.import_module(module)
    return PROGRAMS[module]


def figures(module):
    """Return what TensorFlow computed for each program of a module."""
    return json.loads(pathlib.Path(__file__).with_name(f"{module}.json").read_text())


if __name__ == "__main__":
    import tensorflow as tf

    sys.modules["tutorial_programs"] = sys.modules["__main__"]
    for name in sys.argv[1:] or MODULES:
        results = {key: plain(function(tf)) for key, function in programs_of(name).items()}
        content = {"made_with": f"tensorflow {tf.__version__}, keras {tf.keras.__version__}", **results}
        pathlib.Path(__file__).with_name(f"{name}.json").write_text(json.dumps(content, indent=0) + "\n")
        print(name, len(results))
