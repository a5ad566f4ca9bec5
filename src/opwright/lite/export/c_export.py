"""`export_c`: the C files of an operator.

Lives here: the list of files, writing them.  Not here: their contents (source.py, readme.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import SignatureError
from ...core.files import replacing
from ...ops import registry
from ...ops.definition import Operator


def export_c(
    operator: Any, out: str | os.PathLike[str] = ".", *, api: str = "opaque", attrs: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write an operator as C source, with its registration for the TensorFlow Lite C API; return the files' paths.

    The operator has a kernel (`@ow.kernel`) on scalars, or on arrays without vectors, or is one of the catalogue's
    element-wise operators. The files are NAME.h, NAME.c (C99, C11 or C++11, with no library but the C library) and
    README.md, with instructions to build and register it. Results are bit-identical to this package's if the processor
    rounds `fma` once, otherwise within 1 unit in the last place. The C library computes functions of float64.

    operator: an `@ow.operator` class, or the name of a catalogue operator. out: the folder, created if it is missing.
    api: "opaque" (TfLiteOperator), "external" (its older names, before TensorFlow 2.17), "struct" (TfLiteRegistration).
    attrs: by name, values of attributes, one or a list, for which alone the C is generated: for decisions that a kernel
    makes in Python. The files are a function of the arguments.

    raises UnimplementedError naming operator, part and remedy for anything that C cannot express; SignatureError or
    InvalidArgumentError for attributes that the operator does not have or accept; NotFoundError for another api;
    OSError

    >>> ow.export_c(LeakyClip, out="leaky_clip")
    """
    files = exported(operator, api=api, attrs=attrs)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        with replacing(folder / name) as file:
            file.write(text.encode())
    return [folder / name for name in files]


def exported(operator: Any, *, api: str = "opaque", attrs: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the text of each file by name. Parameters and errors: see `export_c`."""
    from ...compiler.operator_kernels import OperatorKernel  # LLVM is loaded when something is exported
    from .apis import api_named
    from .array_kernels import array_export_of
    from .kernel_variants import scalar_export_of
    from .readme import readme
    from .source import header, source

    if isinstance(operator, str):
        operator = registry.get(operator)
    if not isinstance(operator, Operator):
        raise SignatureError(
            what="only an operator is exported",
            found=repr(operator)[:80],
            wanted="a class with @ow.operator, or the name of one of the catalogue",
        )
    chosen = api_named(api)
    kernel, fixed = operator.kernel_rule, dict(attrs or {})
    export = (
        array_export_of(operator, kernel, fixed)
        if isinstance(kernel, OperatorKernel)
        else scalar_export_of(operator, fixed)
    )
    return {
        f"{export.name}.h": header(export, chosen),
        f"{export.name}.c": source(export, chosen),
        "README.md": readme(export, chosen),
    }
