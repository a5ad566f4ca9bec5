"""`export_c`: an operator's files.

Lives here: what files there are, writing them.  Not here: what is in them (source.py, readme.py).
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
    """Write an operator as C source, with its registration for the TensorFlow Lite C API, and give the files' paths.

    The operator has a kernel (`@ow.kernel`) on scalars, or on arrays without vectors, or is one of the catalogue's
    element-wise ones. Written are NAME.h, NAME.c (C99, C11 or C++11; no library but the C library's) and README.md,
    which says how to build and register it. Its results are the bits that this package computes, where the processor
    rounds `fma` once; elsewhere they are within 1 unit in the last place. float64's functions are the C library's.

    operator: an `@ow.operator` class, or the name of a catalogue's operator. out: the folder, made where it is missing.
    api: "opaque" (TfLiteOperator), "external" (its older names, before TensorFlow 2.17), "struct" (TfLiteRegistration).
    attrs: by name, values of attributes, one or a list, that the C is made for alone: for what a kernel decides by
    Python's own means. The same operator gives the same files.

    raises UnimplementedError naming operator, part and way out for what has no form in C; SignatureError or
    InvalidArgumentError for attributes that the operator does not have or take; NotFoundError for another api; OSError

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
    """The text of each file by its name. Parameters and errors: as `export_c`."""
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
    kernel, known = operator.kernel_rule, dict(attrs or {})
    export = (
        array_export_of(operator, kernel, known)
        if isinstance(kernel, OperatorKernel)
        else scalar_export_of(operator, known)
    )
    return {
        f"{export.name}.h": header(export, chosen),
        f"{export.name}.c": source(export, chosen),
        "README.md": readme(export, chosen),
    }
