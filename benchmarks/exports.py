"""Operators as C source against the machine code that this package makes of them.

Lives here: the row `custom_atan_export`.  Not here: the operator (customs.py), the table of rows (rows.py).

The exported C is compiled by `cc -O3 -march=native` with the two flags that its README names (which it needs to use
vectors), loaded, and run by our interpreter in a model that has the operator alone, on 1 M floats. The ratio is its
time over that of the same model with the operator as it is in Python.
"""

from __future__ import annotations

import tempfile
from typing import Any

from benchmarks import customs, measure


def _exported(atan: Any) -> Any:
    """The interpreter of the operator's model, with the exported C."""
    import opwright as ow
    from opwright import lite

    header, source, _ = ow.export_c(atan, tempfile.mkdtemp(prefix="opwright-bench-"))
    flags = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math"]
    result = lite.build_custom_ops(
        [source], {atan.name: f"{header.stem}OpRegistration"}, flags=flags, link_flags=["-lm"]
    )
    return customs.interpreter_of(atan, customs.MANY, result)


def custom_atan_export() -> float:
    atan = customs.operator()
    return customs.ratio(_exported(atan).invoke, customs.interpreter_of(atan, customs.MANY).invoke)


ROWS: dict[str, measure.Prepare] = {"custom_atan_export": custom_atan_export}

if __name__ == "__main__":
    measure.main(ROWS)
