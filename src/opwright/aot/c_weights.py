"""The weights of a library as C: tables of numbers, or the function that checks a file of them.

Lives here: `table_declaration`, `weights_text`, `map_function`. Not here: where weights lie (memory_layouts.py), their
file (weight_files.py), the code that reads them (c_source.py).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from llvmlite import ir

from ..compiler.c_source.expressions import literal
from ..compiler.native.executor import ALIGNMENT
from ..core.errors import UnimplementedError
from .memory_layouts import MemoryLayout
from .status_codes import CUT_WEIGHTS, MISALIGNED, NO_MEMORY, OK, OTHER_WEIGHTS
from .weight_files import HEADER_SIZE, WEIGHT_FILE_ALIGNMENT, header_of

COLUMNS = 116


def weights_text(name: str, layout: MemoryLayout) -> str:
    """Return the contents of NAME_weights.c."""
    weights = [f"/* The weights of {name}. */", "#include <stdint.h>", ""]
    weights += [table_declaration(name, i, a) + ";" for i, a in enumerate(layout.arrays)]
    for i, array in enumerate(layout.arrays):
        declaration = table_declaration(name, i, array)
        weights += ["", f"_Alignas({ALIGNMENT}) {declaration} = {{", *_numbers(array), "};"]
    if not layout.arrays:
        weights.append(f"extern const uint8_t {name}_no_weights; /* C has no empty files */")
    return "\n".join(weights) + "\n"


def _table_type(array: np.ndarray) -> str:
    kind = array.dtype
    if kind.kind in "iu":
        return f"{'u' if kind.kind == 'u' else ''}int{8 * kind.itemsize}_t"
    if kind.kind == "f" and kind.itemsize >= 4:
        return "float" if kind.itemsize == 4 else "double"
    return f"uint{8 * min(kind.itemsize, 8) if kind.kind != 'c' else 8}_t"


def _elements(array: np.ndarray) -> np.ndarray:
    """Return the elements as C writes them; those without a type as the bits of one."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind in "iu" or (flat.dtype.kind == "f" and flat.dtype.itemsize >= 4):
        return flat
    return flat.view(np.uint8 if flat.dtype.kind == "c" else f"u{min(flat.dtype.itemsize, 8)}")


def table_declaration(name: str, number: int, array: np.ndarray) -> str:
    """Return the declaration of a table, without a semicolon."""
    return f"const {_table_type(array)} {name}_w{number}[{max(_elements(array).size, 1)}]"


def _numbers(array: np.ndarray) -> list[str]:
    """Return the elements of a table in lines."""
    elements = _elements(array)
    if elements.dtype.kind == "f":
        kind: ir.Type = ir.FloatType() if elements.dtype.itemsize == 4 else ir.DoubleType()
        if not np.isfinite(elements).all():
            raise UnimplementedError(op="aot.build", what="weights that are not finite have no form in C")
        texts: Iterable[str] = (literal(kind, x).text for x in elements.tolist())
    elif elements.dtype.itemsize == 1:
        texts = map(str, elements.tolist())
    else:
        bits = 8 * elements.dtype.itemsize
        unsigned = elements.dtype.kind == "u"
        texts = (f"{x}u" if unsigned else literal(ir.IntType(bits), x).text for x in elements.tolist())
        if bits == 64 and unsigned:
            texts = (f"UINT64_C({x})" for x in elements.tolist())
    lines, line = [], " "
    for text in texts:
        if len(line) + len(text) > COLUMNS:
            lines.append(line)
            line = " "
        line += f" {text},"
    return [*lines, line if line.strip() else "  0,"]


def map_function(name: str, layout: MemoryLayout) -> list[str]:
    """Return the function that checks a file of weights."""
    header = ", ".join(str(byte) for byte in header_of(layout))
    return f"""static const uint8_t {name}_header[{HEADER_SIZE}] = {{
  {header}}};

int {name}_map_weights(const void *file, size_t size, struct {name}_weights *weights) {{
  if (!weights) return {NO_MEMORY};
  weights->address = NULL;
  if (!file) return {NO_MEMORY};
  if ((uintptr_t)file % {WEIGHT_FILE_ALIGNMENT}u) return {MISALIGNED};
  if (size < {HEADER_SIZE}u) return {CUT_WEIGHTS};
  if (memcmp(file, {name}_header, {HEADER_SIZE}u)) return {OTHER_WEIGHTS};
  if (size < {HEADER_SIZE + layout.weights}u) return {CUT_WEIGHTS};
  weights->address = (const uint8_t *)file + {HEADER_SIZE};
  return {OK};
}}
""".splitlines()
