"""Small models that the tests of the interpreter and of delegates share."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_kit import Build


def sin_model() -> bytes:
    """y = sin(x + 1)"""
    b = Build()
    b.tensor("one", data=np.float32(1))
    return b.op("ADD", "x one", "s").op("SIN", "s", "y").done(signature="serving_default")


def atan_model(**options: Any) -> bytes:
    """y = Atan(x), a custom operator"""
    return Build().custom("Atan", "x", "y", **options).done()


def dynamic_model(after: str = "Twice") -> bytes:
    """y = after(reshape(x, computed shape)): from the reshape on, shapes are known only while the model runs."""
    b = Build()
    b.tensor("x", (6,))
    b.tensor("shape", (2,), "INT32")
    return b.op("RESHAPE", "x shape", "r").custom(after, "r", "y").done("x shape")
