"""C around a library: its header, an example program, and files for CMake and pkg-config.

Lives here: `header_of`, `example_of`, `cmake_of`, `pkg_config_of`, `facts_of`, `elements_of`, `STATUS_TEXTS`.
Not here: the code of the library (modules.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.native.executor import ALIGNMENT
from .memory_layouts import MemoryLayout
from .model_plans import ModelPlan, SignaturePlan, TensorDescription
from .modules import ARENA_TOO_SMALL, MISALIGNED, NO_MEMORY, NOT_ASSIGNED, OK, OUT_OF_BOUNDS, OUT_OF_RANGE
from .size_bounds import SizeParameter
from .state_fields import StateField

STATUS_TEXTS = {
    OK: "ok",
    OUT_OF_RANGE: "an index of the inputs points outside of what it indexes",
    ARENA_TOO_SMALL: "the arena is smaller than ARENA_SIZE",
    MISALIGNED: "an address is not aligned: the arena to ARENA_ALIGN, tensors to their elements",
    NO_MEMORY: "an address is null",
    NOT_ASSIGNED: "a variable is read that no run has assigned",
    OUT_OF_BOUNDS: "a size of the inputs is outside of its bounds",
}
_STATUS_NAMES = {
    OK: "OK",
    OUT_OF_RANGE: "OUT_OF_RANGE",
    ARENA_TOO_SMALL: "ARENA_TOO_SMALL",
    MISALIGNED: "MISALIGNED",
    NO_MEMORY: "NULL_ADDRESS",
    NOT_ASSIGNED: "NOT_ASSIGNED",
    OUT_OF_BOUNDS: "OUT_OF_BOUNDS",
}
C_TYPES = {
    "float32": "float",
    "float64": "double",
    "bool": "uint8_t",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    "complex64": "float",
    "complex128": "double",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""C types of elements. Numbers of 16 bits are passed as their bits; complex ones, which have no type that C and C++
share, as a real and an imaginary part."""


def elements_of(tensor: TensorDescription) -> int:
    """Return the number of a tensor's elements in C."""
    return tensor.buffer.size * (2 if tensor.dtype.startswith("complex") else 1)


def header_of(model: ModelPlan, name: str, layout: MemoryLayout) -> str:
    """Return the header of a library: C99 and later, C++."""
    big = name.upper()
    lines = [
        f"/* {name}: a model as {'C11' if model.target.name == 'c11' else f'machine code for {model.target.name}'}, "
        "made by Opwright.",
        f"   Model: sha256 {model.digest}. */",
        f"#ifndef {big}_H",
        f"#define {big}_H",
        "",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        "/* Memory that the caller provides for a run; its contents need not be kept between runs. */",
        f"#define {big}_ARENA_SIZE {max(layout.arena, 1)}u",
        f"#define {big}_ARENA_ALIGN {ALIGNMENT}u",
    ]
    for signature in model.signatures:
        lines += _structures(signature, model.prefix(signature, name))
    if model.state:
        lines += ["", "/* What runs keep; reset it before the first run. */", f"struct {name}_state {{"]
        lines += [
            f"  {C_TYPES[t.dtype]} {t.identifier}[{max(t.initial.size, 1)}]; /* {facts_of(t)} */" for t in model.state
        ]
        lines += ["};", "", "/* Sets the state of the first run. */", f"void {name}_reset(struct {name}_state *state);"]
    lines += ["", f"enum {name}_status {{"]
    lines += [f"  {big}_{_STATUS_NAMES[code]} = {code}, /* {text} */" for code, text in STATUS_TEXTS.items()]
    lines[-1] = lines[-1].replace(",", "", 1)
    what = "the outputs, the state and the arena" if model.state else "the outputs and the arena"
    state = f"struct {name}_state *state, " if model.state else ""
    functions = "Run the model. Functions write" if len(model.signatures) > 1 else "Runs the model. Writes"
    lines += [
        "};",
        "",
        f"/* {functions} to {what} only; with their own, callers may run at the same",
        "   time. Returns a status. */",
    ]
    for signature in model.signatures:
        symbol, prefix = model.symbol(signature, name), model.prefix(signature, name)
        constant = "" if signature.varying else "const "
        lines += [
            f"int {symbol}(const struct {prefix}_inputs *inputs, {constant}struct {prefix}_outputs *outputs,",
            f"{' ' * (len(symbol) + 5)}{state}void *arena, size_t arena_size);",
        ]
        if signature.key and len(model.signatures) == 1:
            lines.append(f"#define {name}_{signature.function} {symbol}")
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {big}_H */"]
    return "\n".join(lines) + "\n"


def _structures(signature: SignaturePlan, prefix: str) -> list[str]:
    """Return the declarations of the inputs and outputs of a signature."""
    both, big = (*signature.inputs, *signature.outputs), prefix.upper()
    lines = ["", f"/* Numbers of elements{f' of the signature {signature.key}' if signature.key else ''}. */"]
    lines += [f"#define {big}_{t.identifier.upper()}_SIZE {elements_of(t)}u" for t in both]
    for p in signature.sizes:
        lines += [f"#define {big}_{p.identifier.upper()}_{end} {n}u" for end, n in (("MIN", p.least), ("MAX", p.most))]
    varying = [signature.outputs[i] for i in signature.varying]
    fields = {
        "inputs": [f"size_t {p.identifier}; /* {_places(signature, p)} */" for p in signature.sizes],
        "outputs": [f"size_t {t.identifier}_shape[{max(len(t.shape), 1)}]; /* set by a run */" for t in varying],
    }
    for t in both:
        if t.scale is not None:
            lines += [
                f"#define {big}_{t.identifier.upper()}_SCALE {t.scale!r}",
                f"#define {big}_{t.identifier.upper()}_ZERO_POINT ({t.zero_point})",
            ]
    for what, tensors, constant in (("inputs", signature.inputs, "const "), ("outputs", signature.outputs, "")):
        lines += ["", f"struct {prefix}_{what} {{"]
        lines += [f"  {constant}{C_TYPES[t.dtype]} *{t.identifier}; /* {facts_of(t)} */" for t in tensors]
        lines += [f"  {field}" for field in fields[what]]
        lines += ([] if tensors else ["  const void *unused;"]) + ["};"]
    if signature.sizes:
        lines.insert(1, "/* Shapes are those of the largest sizes. */")
    return lines


def _places(signature: SignaturePlan, parameter: SizeParameter) -> str:
    axes = ", ".join(f"axis {axis} of {signature.inputs[i].identifier}" for i, axis in parameter.places)
    return f"{parameter.least} to {parameter.most}: {axes}"


def facts_of(tensor: TensorDescription | StateField) -> str:
    """Return type, shape and quantization of a tensor as a comment."""
    text = f"{tensor.dtype}{list(tensor.shape)}"
    if tensor.dtype.startswith("complex"):
        text += ", real and imaginary parts"
    if isinstance(tensor, TensorDescription) and tensor.scale is not None:
        text += f", real = {tensor.scale:.9g} * (q - {tensor.zero_point})"
    return text


def example_of(model: ModelPlan, name: str) -> str:
    """Return a program that reads the inputs' bytes from files, runs the first signature and prints the first
    elements."""
    big, signature = name.upper(), model.signatures[0]
    prefix = model.prefix(signature, name)
    lines = [
        f"/* An example: {name} INPUT ... reads the elements of each input from a file, zeros without one. */",
        f'#include "{name}.h"',
        "",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "",
        f"static uint8_t memory[{big}_ARENA_SIZE + {big}_ARENA_ALIGN];",
    ]
    both = (*signature.inputs, *signature.outputs)
    lines += [
        f"static {C_TYPES[t.dtype]} {t.identifier}[{prefix.upper()}_{t.identifier.upper()}_SIZE + 1u];" for t in both
    ]
    if model.state:
        lines.append(f"static struct {name}_state state;")
    lines += [
        "",
        "static int read_file(const char *path, void *into, size_t size) {",
        '  FILE *file = fopen(path, "rb");',
        "  size_t done = file ? fread(into, 1, size, file) : 0;",
        "  if (file) fclose(file);",
        "  return done == size;",
        "}",
        "",
        "int main(int argc, char **argv) {",
        f"  struct {prefix}_inputs inputs;",
        f"  struct {prefix}_outputs outputs;",
        f"  uintptr_t arena = ((uintptr_t)memory + {big}_ARENA_ALIGN - 1u) / {big}_ARENA_ALIGN * {big}_ARENA_ALIGN;",
        "  int status;",
        "  size_t i;",
    ]
    for what, tensors in (("inputs", signature.inputs), ("outputs", signature.outputs)):
        lines += [f"  {what}.{t.identifier} = {t.identifier};" for t in tensors] or [f"  {what}.unused = NULL;"]
    lines += [f"  inputs.{p.identifier} = {prefix.upper()}_{p.identifier.upper()}_MAX;" for p in signature.sizes]
    state = "&state, " if model.state else ""
    for i, t in enumerate(signature.inputs):
        size = f"sizeof(*{t.identifier}) * {prefix.upper()}_{t.identifier.upper()}_SIZE"
        lines += [
            f"  if (argc > {i + 1} && !read_file(argv[{i + 1}], {t.identifier}, {size})) {{",
            f'    fprintf(stderr, "cannot read %s\\n", argv[{i + 1}]);',
            "    return EXIT_FAILURE;",
            "  }",
        ]
    if not signature.inputs:
        lines += ["  (void)argc;", "  (void)argv;", "  (void)read_file;"]
    lines += [
        *([f"  {name}_reset(&state);"] if model.state else []),
        f"  status = {model.symbol(signature, name)}(&inputs, &outputs, {state}(void *)arena, {big}_ARENA_SIZE);",
        "  if (status) {",
        '    fprintf(stderr, "status %d\\n", status);',
        "    return EXIT_FAILURE;",
        "  }",
    ]
    for t in signature.outputs:
        lines += [
            f'  printf("{t.identifier}");',
            f"  for (i = 0; i < {prefix.upper()}_{t.identifier.upper()}_SIZE && i < 10u; i++) {{",
            f'    printf(" %.9g", (double){t.identifier}[i]);',
            "  }",
            '  printf("\\n");',
        ]
    return "\n".join([*lines, "  return EXIT_SUCCESS;", "}"]) + "\n"


def cmake_of(name: str) -> str:
    """Return a CMakeLists.txt that imports the library as a target and builds the example."""
    return f"""# add_subdirectory(THIS_FOLDER), then target_link_libraries(your_target {name})
cmake_minimum_required(VERSION 3.13)
project({name} C)
add_library({name} STATIC IMPORTED GLOBAL)
set_target_properties({name} PROPERTIES
  IMPORTED_LOCATION "${{CMAKE_CURRENT_SOURCE_DIR}}/lib{name}.a"
  INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_SOURCE_DIR}}")
if(UNIX)
  target_link_libraries({name} INTERFACE m)
endif()
add_executable({name}_example main.c)
target_link_libraries({name}_example {name})
"""


def pkg_config_of(name: str) -> str:
    """Return a pkg-config file that is used where it lies."""
    return f"""prefix=${{pcfiledir}}
Name: {name}
Description: a model as machine code
Version: 1
Cflags: -I${{prefix}}
Libs: -L${{prefix}} -l{name} -lm
"""


def unsupported(tensors: Sequence[TensorDescription | StateField]) -> list[TensorDescription | StateField]:
    """Return the tensors whose elements have no type in C."""
    return [t for t in tensors if t.dtype not in C_TYPES]
