"""Record StableHLO modules that JAX exports, with arguments and results: stablehlo_modules.json.gz.

    PYTHONPATH=tests/frontends python tests/frontends/record_stablehlo.py tests/frontends/stablehlo_modules.json.gz

The rows of jax_rows.py are exported; few of them are kept, so that each operation, target of a custom call and form of
a region occurs. Needs jax; not part of `make test`.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import jax
import jax_rows
import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

TRAITS = re.compile(
    r"(?:stablehlo|chlo)\.\w+|custom_call @\w+|TOTALORDER|applies \S+|lhs_dilate|dense<\"|batch_group|f16|i1>"
)
LONGEST = 9000
VERSION = "1.8.0"
"""The version of StableHLO in which portable artifacts are written."""


def encoded(value: Any) -> dict[str, Any]:
    """Return an array as JSON."""
    array = np.asarray(value)
    return {"dtype": array.dtype.name, "shape": list(array.shape), "bytes": base64.b64encode(array.tobytes()).decode()}


def exported(row: jax_rows.Row) -> tuple[str, list[Any]]:
    """Return the text of a row's module without the recorder's folders, and the arguments that it takes."""
    arguments = row.operands()
    module = jax.export.export(jax.jit(row.function))(*arguments)
    text = re.sub(r'"/[^"]*/([^"/]+)"', r'"\1"', module.mlir_module())
    return text, [arguments[i] for i in module.module_kept_var_idx]


def portable(text: str) -> bytes:
    """Return a module as a portable artifact."""
    from jax._src.interpreters import mlir

    with mlir.make_ir_context():
        artifact: bytes = stablehlo.serialize_portable_artifact(ir.Module.parse(text), VERSION, True)
    return artifact


def main(path: str) -> None:
    """Write the record: greedily, the shortest modules that have a trait that no other one has."""
    jax.config.update("jax_enable_x64", True)
    rows = [(row, *exported(row)) for row in jax_rows.ROWS]
    rows = sorted((r for r in rows if len(r[1]) < LONGEST), key=lambda r: len(r[1]))
    seen: set[str] = set()
    modules = []
    for row, text, arguments in rows:
        traits = set(TRAITS.findall(text))
        if traits <= seen:
            continue
        seen |= traits
        results = jax.tree_util.tree_leaves(row.function(*row.operands()))
        modules.append(
            {
                "label": f"{row.primitive} {row.label}".strip(),
                "text": text,
                "artifact": base64.b64encode(portable(text)).decode(),
                "arguments": [encoded(a) for a in arguments],
                "results": [encoded(r) for r in results],
                "tolerance": row.tolerance,
            }
        )
    content = json.dumps({"jax": jax.__version__, "modules": modules}, indent=1).encode()
    Path(path).write_bytes(gzip.compress(content, mtime=0))
    print(f"{len(modules)} of {len(rows)} modules, {len(seen)} traits")


if __name__ == "__main__":
    main(sys.argv[1])
