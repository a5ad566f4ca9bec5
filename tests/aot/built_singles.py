"""Libraries of models of one operator: with the values of inputs that shapes follow from as bounds.

Lives here: `build_single`, `REFUSED`. Not here: the models (benchmarks/single_operators.py).
"""

import numpy as np

import opwright as ow
from opwright import aot
from opwright.core.errors import UnimplementedError

REFUSED = ("is state", "strings and handles", "functions of the C library, which a module does not have")
"""Reasons for which models are refused: see docs/libraries.md, and for WebAssembly docs/web.md."""


def build_single(single, *args, **settings):
    """Build a model's library. Raises UnimplementedError."""
    try:
        return aot.build(single.content, *args, **settings)
    except UnimplementedError as error:
        if "INPUT[0]" not in str(error):
            raise
    return aot.build(single.content, *args, **settings, bounds=_bounds(single))


def _bounds(single):
    """The elements of inputs of few integers, each alone."""
    details = ow.lite.Interpreter(model_content=single.content).get_input_details()
    return {
        f"{detail['name']}[{k}]": (int(v), int(v))
        for detail, x in zip(details, single.feeds)
        if np.issubdtype(x.dtype, np.integer) and x.size < 20 and -1 not in detail["shape_signature"]
        for k, v in enumerate(np.asarray(x).reshape(-1))
    }
