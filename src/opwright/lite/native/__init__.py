"""Operators in C and C++ written against the TensorFlow Lite C API: building, loading, running them.

    ops = lite.build_custom_ops(["atan.c"])              ops = lite.load_custom_ops("libatan.so")
    lite.Interpreter(model_path, custom_ops=ops)

Lives here: the package's plan; the names are public in `lite`.

    headers, building, compilers, keeping   the headers, and compilers and what they made
    custom_ops                              operators from their sources in one call
    provider/ (C), functions, records       the run time that operators call, its functions and structs in Python
    elf, names, library, loading            a library's file, its functions, the registrations they give
    mirror, elements, callbacks, taking     a subgraph as C sees it: shown, asked for, taken back
    nodes, registration                     a node's record in C; its init, prepare, invoke, free
"""
