"""README.md of an exported operator: how to build and register it.

Lives here: its text.  Not here: the source (source.py).
"""

from __future__ import annotations

from .apis import Api
from .array_kernels import ArrayExport
from .kernel_variants import AttributeOption, OperatorExport, dtype_words
from .options import choices_in_words
from .source import doc_text

FLAGS = "-O3 -fno-math-errno -fno-trapping-math"


def readme(export: OperatorExport, api: Api) -> str:
    """Return the page."""
    name, op = export.name, export.op
    attributes = "".join(
        f"| `{o.name}` | {o.attr.type_name()} | {'required' if o.attr.required else f'`{o.attr.default!r}`'} | "
        f"{_values(o)} | {o.attr.since} |\n"
        for o in export.options
    )
    columns = "| attribute | type | default | values | since |\n|---|---|---|---|---|\n"
    table = f"\n{columns}{attributes}" if attributes else ""
    refused = "".join(f"\n* {dtype_words(k)}: {v}" for k, v in export.refused.items())
    left_out = f"\n\nNot in this code, though the operator takes it in Python:\n{refused}" if refused else ""
    broadcast = "" if isinstance(export, ArrayExport) else " Inputs are broadcast as NumPy does it."
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

{doc_text(op)}

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


def _values(option: AttributeOption) -> str:
    check = option.attr.check
    words = choices_in_words(option) if option.choices else check.wanted if check is not None else "any"
    return words.replace("|", "\\|")
