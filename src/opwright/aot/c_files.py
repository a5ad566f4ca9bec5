"""C around a library: its header, and files for CMake and pkg-config.

Lives here: `header_of`, `cmake_of`, `pkg_config_of`, `facts_of`, `elements_of`.
Not here: the code of the library (modules.py), the example (example_program.py), status codes (status_codes.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.native.executor import ALIGNMENT
from .memory_layouts import MemoryLayout
from .model_plans import ModelPlan, SignaturePlan, TensorDescription
from .size_bounds import SizeParameter
from .state_fields import StateField
from .status_codes import STATUS_NAMES, STATUS_TEXTS
from .thread_callbacks import structure_of
from .weight_files import HEADER_SIZE, WEIGHT_FILE_ALIGNMENT

C_TYPES = {
    "float32": "float",
    "float64": "double",
    "bool": "uint8_t",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    "complex64": "float",
    "complex128": "double",
    "int2": "int8_t",
    "int4": "int8_t",
    "uint4": "uint8_t",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""C types of elements. Floats of 16 bits are passed as their bits, integers of less than 8 bits one a byte; complex
numbers, which have no type that C and C++ share, as a real and an imaginary part."""


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
        *(structure_of(name, layout.base, layout.stride) if layout.stride else []),
    ]
    if layout.apart:
        lines += [
            "",
            f"/* The weights: {name}.weights, read or mapped at an address that is aligned. Runs only read them. */",
            f'#define {big}_WEIGHTS_FILE "{name}.weights"',
            f"#define {big}_WEIGHTS_SIZE {HEADER_SIZE + layout.weights}u",
            f"#define {big}_WEIGHTS_ALIGN {WEIGHT_FILE_ALIGNMENT}u",
            f"struct {name}_weights {{",
            f"  const void *address; /* set by {name}_map_weights */",
            "};",
        ]
    for signature in model.signatures:
        lines += _structures(signature, model.prefix(signature, name))
    if model.state:
        lines += ["", "/* What runs keep; reset it before the first run. */", f"struct {name}_state {{"]
        lines += [
            f"  {C_TYPES[t.dtype]} {t.identifier}[{max(t.initial.size, 1)}]; /* {facts_of(t)} */" for t in model.state
        ]
        weights = f", const struct {name}_weights *weights" if layout.apart else ""
        lines += ["};", "", "/* Sets the state of the first run. */"]
        lines.append(f"void {name}_reset(struct {name}_state *state{weights});")
    lines += ["", f"enum {name}_status {{"]
    lines += [f"  {big}_{STATUS_NAMES[code]} = {code}, /* {text} */" for code, text in STATUS_TEXTS.items()]
    lines[-1] = lines[-1].replace(",", "", 1)
    what = "the outputs, the state and the arena" if model.state else "the outputs and the arena"
    state = f"struct {name}_state *state, " if model.state else ""
    weights = f"const struct {name}_weights *weights, " if layout.apart else ""
    weights += f"const struct {name}_threads *threads, " if layout.stride else ""
    functions = "Run the model. Functions write" if len(model.signatures) > 1 else "Runs the model. Writes"
    lines.append("};")
    if layout.apart:
        lines += [
            "",
            f"/* Checks {name}.weights, which is at `file`: its size, and by its digest that it is this library's.",
            "   The caller keeps it there while weights are used. Returns a status. */",
            f"int {name}_map_weights(const void *file, size_t size, struct {name}_weights *weights);",
        ]
    if model.levels:
        lines += _levels(model, name)
    lines += [
        "",
        f"/* {functions} to {what} only; with their own, callers may run at the same",
        "   time. Returns a status. */",
    ]
    for signature in model.signatures:
        symbol, prefix = model.symbol(signature, name), model.prefix(signature, name)
        constant = "" if signature.varying else "const "
        lines += [
            f"int {symbol}(const struct {prefix}_inputs *inputs, {constant}struct {prefix}_outputs *outputs,",
            f"{' ' * (len(symbol) + 5)}{state}{weights}void *arena, size_t arena_size);",
        ]
        if signature.key and len(model.signatures) == 1:
            lines.append(f"#define {name}_{signature.function} {symbol}")
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {big}_H */"]
    return "\n".join(lines) + "\n"


def _levels(model: ModelPlan, name: str) -> list[str]:
    """Return the declarations of levels of processors."""
    lines = [
        "",
        "/* Levels of processors, lowest first. */",
        f"enum {name}_levels {{",
        f"  {name.upper()}_BEST_LEVEL = 0,",
    ]
    lines += [f"  {name.upper()}_LEVEL_{v.identifier.upper()} = {i + 1}," for i, v in enumerate(model.levels)]
    lines[-1] = lines[-1][:-1]
    return [
        *lines,
        "};",
        "",
        "/* The level that runs use: the highest that the processor has, unless one is set. 0: it has none. */",
        f"int {name}_level(void);",
        "/* Sets a level for all threads, or the highest again. Returns a status. */",
        f"int {name}_set_level(int level);",
    ]


def _structures(signature: SignaturePlan, prefix: str) -> list[str]:
    """Return the declarations of the inputs and outputs of a signature."""
    both, big = (*signature.inputs, *signature.outputs), prefix.upper()
    lines = ["", f"/* Numbers of elements{f' of the signature {signature.key}' if signature.key else ''}. */"]
    lines += [f"#define {big}_{t.identifier.upper()}_SIZE {elements_of(t)}u" for t in both]
    for p in signature.stated:
        lines += [f"#define {big}_{p.identifier.upper()}_{end} {n}u" for end, n in (("MIN", p.least), ("MAX", p.most))]
    varying = [signature.outputs[i] for i in signature.varying]
    fields = {
        "inputs": [f"size_t {p.identifier}; /* {_places(signature, p)} */" for p in signature.stated],
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
    if signature.sizes or signature.reported:
        lines.insert(1, "/* Shapes are those of the largest sizes. */")
    for p in signature.sizes:
        if not p.places:
            lines.append(f"/* {p.name}: {p.least} to {p.most} */")
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


def cmake_of(name: str, layout: MemoryLayout) -> str:
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
{cmake_example_of(name, layout)}"""


def cmake_example_of(name: str, layout: MemoryLayout) -> str:
    """Return commands for the example: the system's threads, and a copy of the weights where it is built, as it maps
    them from the folder that it runs in."""
    threads = f"""if(UNIX)
  find_package(Threads REQUIRED)
  target_link_libraries({name}_example Threads::Threads)
endif()
"""
    weights = f"configure_file({name}.weights {name}.weights COPYONLY)\n"
    return threads * bool(layout.stride) + weights * layout.apart


def pkg_config_of(name: str, layout: MemoryLayout) -> str:
    """Return a pkg-config file that is used where it lies."""
    weights = f"weights=${{prefix}}/{name}.weights\n" if layout.apart else ""
    return f"""prefix=${{pcfiledir}}
{weights}\
Name: {name}
Description: a model as machine code
Version: 1
Cflags: -I${{prefix}}
Libs: -L${{prefix}} -l{name} -lm
"""


def unsupported(tensors: Sequence[TensorDescription | StateField]) -> list[TensorDescription | StateField]:
    """Return the tensors whose elements have no type in C."""
    return [t for t in tensors if t.dtype not in C_TYPES]
