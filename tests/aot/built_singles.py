"""Libraries of models of one operator: with the values of inputs that shapes follow from as bounds.

Lives here: `build_single`, `REFUSED`. Not here: the models (benchmarks/single_operators.py).
"""

import re

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
        bounds = _bounds(single) if "INPUT[0]" in str(error) else {}
        number = re.search(r"bounds=\{'(.+?)'", str(error))
        if number is not None and not bounds:
            bounds = {number[1]: (0, MOST_NUMBERS if single.name.startswith("RANGE") else MOST_ITERATIONS)}
        if not bounds:
            raise
    return aot.build(single.content, *args, **settings, bounds=bounds)


MOST_NUMBERS, MOST_ITERATIONS = 100, 6
"""More than ranges of floats and loops have here."""
SHAPES = {"FILL": slice(1), "RANGE": slice(None), "SCATTER_ND": slice(-1, None)}
"""The inputs that shapes follow from, without constants; of other operators all but the first."""


def _bounds(single):
    """The elements of inputs that shapes follow from, each alone."""
    details = ow.lite.Interpreter(model_content=single.content).get_input_details()
    chosen = SHAPES.get(single.name.split()[0], slice(1, None))
    return {
        f"{detail['name']}[{k}]": (int(v), int(v))
        for detail, x in [*zip(details, single.feeds)][chosen]
        if np.issubdtype(x.dtype, np.integer)
        for k, v in enumerate(np.asarray(x).reshape(-1))
    }
