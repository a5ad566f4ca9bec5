"""Models as native libraries for any processor: object code, weights and a C header, without a run time.

    libraries.py     `build`: the files of a library; `Library`
    model_plans.py   the plan of a whole model for a target, and its kernels
    modules.py       the LLVM module of a library: kernels, weights, the function that runs the steps
    c_files.py       the header, an example program, files for CMake and pkg-config
    archives.py      static libraries (ar)
    loaded_library.py       `load`: a library for this processor, called with NumPy arrays

Lives here: the public names, each loaded on first use. Not here: kernels and plans (compiler/), files (lite/).
"""

from ..core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
