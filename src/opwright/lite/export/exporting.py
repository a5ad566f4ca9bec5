"""Export of an operator as C: `export_c` and the README.md beside its sources.

Lives here: the set of files and how they are written; the text of README.md.  Not here: the sources (source.py).
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
from .apis import Api
from .arrays import ArrayExport
from .cases import Export, Option, dtype_words
from .options import choices_in_words
from .source import said


def export_c(operator: Any, out: str | os.PathLike[str] = ".", *, api: str = "opaque",
             attrs: Mapping[str, Any] | None = None) -> list[Path]:  # fmt: skip
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
    from .arrays import array_export_of
    from .cases import export_of
    from .source import header, source

    if isinstance(operator, str):
        operator = registry.get(operator)
    if not isinstance(operator, Operator):
        raise SignatureError(what="only an operator is exported", found=repr(operator)[:80],
                             wanted="a class with @ow.operator, or the name of one of the catalogue")  # fmt: skip
    chosen = api_named(api)
    kernel, known = operator.kernel_rule, dict(attrs or {})
    export = (array_export_of(operator, kernel, known) if isinstance(kernel, OperatorKernel)
              else export_of(operator, known))  # fmt: skip
    return {
        f"{export.name}.h": header(export, chosen),
        f"{export.name}.c": source(export, chosen),
        "README.md": readme(export, chosen),
    }


FLAGS = "-O3 -fno-math-errno -fno-trapping-math"


def readme(export: Export, api: Api) -> str:
    """The page."""
    name, op = export.name, export.op
    attributes = "".join(
        f"| `{o.name}` | {o.attr.type_name()} | {'required' if o.attr.required else f'`{o.attr.default!r}`'} | "
        f"{_values(o)} | {o.attr.since} |\n" for o in export.options)  # fmt: skip
    columns = "| attribute | type | default | values | since |\n|---|---|---|---|---|\n"
    table = f"\n{columns}{attributes}" if attributes else ""
    refused = "".join(f"\n* {dtype_words(k)}: {v}" for k, v in export.refused.items())
    left_out = f"\n\nNot in this code, though the operator takes it in Python:\n{refused}" if refused else ""
    broadcast = "" if isinstance(export, ArrayExport) else " Inputs are broadcast as NumPy does it."
    external = "" if api.name == "struct" else f"""
With the C API:

```c
TfLiteInterpreterOptionsAddOperator(options, {name}OpRegistrationExternal());
```
"""
    versions = f", 1, {op.version}" if op.version > 1 else ""
    return f"""# {op.name}

`{op.signature()}`, version {op.version}

{said(op)}

Takes {export.words()}.{broadcast}{left_out}
{table}
## Building

`{name}.c` is one file of C99, C11 or C++11, for {api.what}.
It needs the C library and the run time's headers: a folder in which
`tflite/{api.headers[0]}` or `tensorflow/lite/{api.headers[0]}` lies, such as LiteRT's
or TensorFlow's sources, or what `python -c "import opwright as ow; print(ow.lite.include_dir())"` prints.

```sh
cc {FLAGS} -fPIC -shared -I HEADERS {name}.c -lm -o lib{name}.so
```

`-march=native` (or the target's own flags) makes it faster; `-ffast-math` is refused. Products are fused with sums by
the processor's instruction where the flags say that it has one, and computed in two steps elsewhere.

CMake:

```cmake
add_library({export.stem} STATIC {name}.c)
target_include_directories({export.stem} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}} ${{TFLITE_HEADERS}})
target_compile_options({export.stem} PRIVATE {FLAGS})
target_link_libraries({export.stem} PRIVATE m)
```

Bazel:

```python
cc_library(
    name = "{export.stem}",
    srcs = ["{name}.c"],
    hdrs = ["{name}.h"],
    copts = {FLAGS.split()!r},
    deps = ["@org_tensorflow//tensorflow/lite/c:c_api", "@org_tensorflow//tensorflow/lite/c:c_api_opaque"],
)
```

## Registering
{external}
With C++ resolvers:

```cpp
#include "{name}.h"
tflite::ops::builtin::BuiltinOpResolver resolver;
resolver.AddCustom("{op.name}", {name}OpRegistration(){versions});
```

In Python, with Opwright:

```py
import opwright as ow
customs = ow.lite.load_custom_ops("./lib{name}.so", {{"{op.name}": "{name}OpRegistration"}})
interpreter = ow.lite.Interpreter("model.tflite", custom_ops=customs)
```
"""


def _values(option: Option) -> str:
    check = option.attr.check
    words = choices_in_words(option) if option.choices else check.wanted if check is not None else "any"
    return words.replace("|", "\\|")
