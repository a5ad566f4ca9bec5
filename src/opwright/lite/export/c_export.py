"""`export_c`: the C files of an operator, and the README.md that describes how to build and register it.

Lives here: the list of files, writing them; the text of README.md.  Not here: the C (source.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import SignatureError
from ...core.files import replacing
from ...core.lazy_imports import later
from ...ops import registry
from ...ops.definition import Operator
from . import apis

if TYPE_CHECKING:
    from ...compiler import operator_kernels
    from . import array_kernels, kernel_variants, options, source
else:  # LLVM is loaded when an operator is exported
    operator_kernels = later("...compiler.operator_kernels", __package__)
    array_kernels = later(".array_kernels", __package__)
    kernel_variants = later(".kernel_variants", __package__)
    options = later(".options", __package__)
    source = later(".source", __package__)

FLAGS = "-O3 -fno-math-errno -fno-trapping-math"


def readme(export: kernel_variants.OperatorExport, api: apis.Api) -> str:
    """Return the page."""
    name, op = export.name, export.op
    attributes = "".join(
        f"| `{o.name}` | {o.attr.type_name()} | {'required' if o.attr.required else f'`{o.attr.default!r}`'} | "
        f"{_values(o)} | {o.attr.since} |\n"
        for o in export.options
    )
    columns = "| attribute | type | default | values | since |\n|---|---|---|---|---|\n"
    table = f"\n{columns}{attributes}" if attributes else ""
    refused = "".join(f"\n* {kernel_variants.dtype_words(k)}: {v}" for k, v in export.refused.items())
    left_out = f"\n\nNot in this code, though the operator takes it in Python:\n{refused}" if refused else ""
    broadcast = "" if isinstance(export, array_kernels.ArrayExport) else " Inputs are broadcast as NumPy does it."
    external = (
        ""
        if api.name == "struct"
        else f"""
With the C API:

```c
TfLiteInterpreterOptionsAddOperator(options, {name}OpRegistrationExternal());
```
"""
    )
    versions = f", 1, {op.version}" if op.version > 1 else ""
    return f"""# {op.name}

`{op.signature()}`, version {op.version}

{source.doc_text(op)}

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


def _values(option: kernel_variants.AttributeOption) -> str:
    check = option.attr.check
    words = options.choices_in_words(option) if option.choices else check.wanted if check is not None else "any"
    return words.replace("|", "\\|")


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
    if isinstance(operator, str):
        operator = registry.get(operator)
    if not isinstance(operator, Operator):
        raise SignatureError(
            what="only an operator is exported",
            found=repr(operator)[:80],
            wanted="a class with @ow.operator, or the name of one of the catalogue",
        )
    chosen = apis.api_named(api)
    kernel, fixed = operator.kernel_rule, dict(attrs or {})
    export = (
        array_kernels.array_export_of(operator, kernel, fixed)
        if isinstance(kernel, operator_kernels.OperatorKernel)
        else kernel_variants.scalar_export_of(operator, fixed)
    )
    return {
        f"{export.name}.h": source.header(export, chosen),
        f"{export.name}.c": source.source(export, chosen),
        "README.md": readme(export, chosen),
    }
