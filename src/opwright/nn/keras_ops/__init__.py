"""`keras.ops`: NumPy's functions, and those of networks, on tensors of any dtypes.

Lives here: names, imported at first use. Where TensorFlow's functions refuse operands of two dtypes, these promote them
(promotion.py). All accept KerasTensors of functional models, too.
"""

import inspect
import sys
from typing import Any

from ...core.lazy_imports import lazily

_imported, __dir__, __all__ = lazily(__name__)
numpy = sys.modules[__name__]  # `keras.ops.numpy` has a part of the names


def __getattr__(name: str) -> Any:
    """Import a function, which records calls on KerasTensors, or a module of such functions."""
    value = _imported(name)
    from ..operations import classes_of_functions, recorded

    if inspect.ismodule(value):
        _let_record(value, classes_of_functions(), recorded)
    elif name in classes_of_functions():
        value = globals()[name] = recorded(value, classes_of_functions()[name])
    return value


def _let_record(module: Any, classes: Any, recorded: Any) -> None:
    for name in classes.keys() & vars(module).keys():
        function = getattr(module, name)
        if inspect.isfunction(function):
            setattr(module, name, recorded(function, classes[name]))
