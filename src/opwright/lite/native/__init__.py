"""Operators in C and C++ written against the TensorFlow Lite C API: building, loading, running them.

    ops = lite.build_custom_ops(["atan.c"])              ops = lite.load_custom_ops("libatan.so")
    lite.Interpreter(model_path, custom_ops=ops)

Lives here: the package's table of contents; the names are public in `lite`.

    toolchain, build_cache   the compilers, cached libraries and the headers
    custom_ops               registrations from a library, or from sources in one call
    elf, library             a library's file, its entry points, its handle
    provider/ (C), records   the run time that operators call, its structs in Python
    c_context                a subgraph as C sees it
    callbacks                the provider's functions, the Python functions that it calls, the state that C writes
    registration             a node's record in C; its init, prepare, invoke, free
"""
