"""Folders of C source as build systems take them: plain C with CMake, Arduino, ESP-IDF, Zephyr.

Lives here: `SOURCE_FORMATS`, `source_files_of`. Not here: the C (c_source.py), machine code (libraries.py).

Sources: Arduino library specification 1.5; ESP-IDF build system and component manifest; Zephyr modules.
"""

from __future__ import annotations

from ..core import __version__
from . import c_files
from .c_source import c_source_of
from .example_program import example_of
from .memory_layouts import MemoryLayout
from .model_plans import ModelPlan

SOURCE_FORMATS = ("c", "arduino", "esp-idf", "zephyr")
"""Formats of libraries as C source, which are for any processor."""


def source_files_of(model: ModelPlan, name: str, layout: MemoryLayout, format: str) -> dict[str, bytes]:
    """Return the contents of the files of a library as C source, by path in its folder."""
    sources = c_source_of(model, name, layout)
    header = {f"{name}.h": c_files.header_of(model, name, layout)}
    if format == "c":
        example = example_of(model, name, layout)
        files = sources | header | {"main.c": example, "CMakeLists.txt": _cmake(name, layout)}
    elif format == "arduino":
        files = {f"src/{file}": text for file, text in (sources | header).items()} | {
            "library.properties": _properties(name),
            f"examples/{name}/{name}.ino": _sketch(model, name),
        }
    else:
        files = sources | {f"include/{file}": text for file, text in header.items()}
        compiled = " ".join(f'"{file}"' for file in sources)
        files |= _esp_idf(name, compiled) if format == "esp-idf" else _zephyr(name, compiled)
    return {path: text.encode() for path, text in files.items()}


def _cmake(name: str, layout: MemoryLayout) -> str:
    weights = "" if layout.apart else f" {name}_weights.c"
    return f"""# add_subdirectory(THIS_FOLDER), then target_link_libraries(your_target {name})
cmake_minimum_required(VERSION 3.13)
project({name} C)
add_library({name} STATIC {name}.c{weights})
set_target_properties({name} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON)
target_include_directories({name} PUBLIC "${{CMAKE_CURRENT_SOURCE_DIR}}")
if(UNIX)
  target_link_libraries({name} PUBLIC m)
endif()
add_executable({name}_example main.c)
target_link_libraries({name}_example {name})
{c_files.cmake_example_of(name, layout)}"""


def _properties(name: str) -> str:
    return f"""name={name}
version=1.0.0
author=Opwright {__version__}
maintainer=Opwright {__version__}
sentence=The model {name} as C.
paragraph=Runs without a run time and without dynamic memory.
category=Data Processing
url=https://www.arduino.cc/
architectures=*
includes={name}.h
"""


def _sketch(model: ModelPlan, name: str) -> str:
    """Return a sketch that runs the first signature on zeros and prints the first elements of its outputs."""
    big, signature = name.upper(), model.signatures[0]
    prefix = model.prefix(signature, name)
    both = (*signature.inputs, *signature.outputs)
    lines = [f"// Runs {name} once a second and prints the first elements of each output.", f"#include <{name}.h>", ""]
    lines.append(f"static uint8_t memory[{big}_ARENA_SIZE + {big}_ARENA_ALIGN];")
    lines += [
        f"static {c_files.C_TYPES[t.dtype]} {t.identifier}[{prefix.upper()}_{t.identifier.upper()}_SIZE + 1u];"
        for t in both
    ]
    if model.state:
        lines.append(f"static struct {name}_state state;")
    state = "&state, " if model.state else ""
    lines += ["", "void setup() {", "  Serial.begin(115200);"]
    lines += [f"  {name}_reset(&state);"] if model.state else []
    lines += ["}", "", "void loop() {"]
    for what, tensors in (("inputs", signature.inputs), ("outputs", signature.outputs)):
        lines.append(f"  struct {prefix}_{what} {what};")
        lines += [f"  {what}.{t.identifier} = {t.identifier};" for t in tensors] or [f"  {what}.unused = NULL;"]
    lines += [
        f"  uintptr_t arena = ((uintptr_t)memory + {big}_ARENA_ALIGN - 1u) / {big}_ARENA_ALIGN * {big}_ARENA_ALIGN;",
        f"  int status = {model.symbol(signature, name)}(&inputs, &outputs, {state}(void *)arena, {big}_ARENA_SIZE);",
        '  Serial.print("status ");',
        "  Serial.println(status);",
    ]
    for t in signature.outputs:
        lines += [
            f'  Serial.print("{t.identifier}");',
            f"  for (size_t i = 0; i < {prefix.upper()}_{t.identifier.upper()}_SIZE && i < 10u; i++) {{",
            '    Serial.print(" ");',
            f"    Serial.print((double){t.identifier}[i]);",
            "  }",
            "  Serial.println();",
        ]
    return "\n".join([*lines, "  delay(1000);", "}"]) + "\n"


def _esp_idf(name: str, sources: str) -> dict[str, str]:
    return {
        "CMakeLists.txt": f'idf_component_register(SRCS {sources} INCLUDE_DIRS "include")\n',
        "idf_component.yml": f'version: "1.0.0"\ndescription: The model {name} as C, by Opwright {__version__}\n'
        'dependencies:\n  idf: ">=4.4"\n',
    }


def _zephyr(name: str, sources: str) -> dict[str, str]:
    option = f"CONFIG_{name.upper()}"
    return {
        "zephyr/module.yml": f"name: {name}\nbuild:\n  cmake: .\n  kconfig: Kconfig\n",
        "Kconfig": f'config {name.upper()}\n\tbool "The model {name}"\n\thelp\n\t  Run it by {name}.h.\n',
        "CMakeLists.txt": f"""if({option})
  zephyr_include_directories(include)
  zephyr_library_named({name})
  zephyr_library_sources({sources})
endif()
""",
    }
