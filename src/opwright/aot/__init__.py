"""Models as native libraries for any processor: object code, weights and a C header, without a run time.

    libraries.py     `build`: the files of a library; `Library`
    targets.py       processors by short names
    model_plans.py   the plans of a model for a target, by signature, and their kernels
    model_files.py   functions as files
    size_bounds.py   bounds of sizes that callers choose
    state_fields.py  what runs keep, and its first values
    identifiers.py   names in C
    memory_layouts.py  the memory of a library: arena, constants, fields of the state
    weight_files.py  weights as a file, and the function that checks it
    specialized_kernels.py  kernels with the words that all their calls share, for microcontrollers
    modules.py       the LLVM module of a library: kernels, weights, the functions that check arguments
    plan_functions.py  the functions that run the steps; step_words.py: the words of calls as tables
    cpu_levels.py    several levels of a processor in one library
    status_codes.py  what functions return
    thread_callbacks.py  steps on threads that the caller provides
    c_source.py      the same as portable C11; c_steps.py, c_weights.py: its parts
    source_folders.py  C for Arduino, ESP-IDF and Zephyr
    c_files.py       the header; example_program.py: a program; files for CMake and pkg-config
    build_report.py  where the bytes and the time go; object_symbols.py, step_times.py: sizes and times of its parts
    wasm_linker.py   WebAssembly modules, linked from the one object
    web_files.py     an ES module around one, its types, a page
    archives.py      static libraries (ar); shared_libraries.py: shared ones, by a linker of this machine
    loaded_library.py       `load`: a library for this processor, called with NumPy arrays
    differences.py   `diff`: two models, or one model on two run times, on the same inputs
    tensor_differences.py   the errors of one tensor
    bisection.py     the first operator that differs, where inner tensors cannot be read
    model_runs.py    a model on a run time: interpreter, reference, official, library

Lives here: the public names, each loaded on first use. Not here: kernels and plans (compiler/), files (lite/).
"""

from ..core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
