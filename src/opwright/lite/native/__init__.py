"""Operators in C and C++ written against the TensorFlow Lite C API: building, loading, running them.

    ops = lite.build_custom_ops(["atan.c"])              ops = lite.load_custom_ops("libatan.so")
    lite.Interpreter(model_path, custom_ops=ops)

Lives here: the package's table of contents; the names are public in `lite`.

    headers, toolchain, build_cache         the headers, the compilers, cached libraries
    custom_ops                              registrations from a library, or from sources in one call
    elf, entry_points, library              a library's file, its entry points, its handle
    provider/ (C), records                  the run time that operators call, its structs in Python
    c_context, c_state, element_conversion  a subgraph as C sees it, and its synchronization with the run time
    callbacks                               the provider's functions, and the Python functions that it calls
    nodes, registration                     a node's record in C; its init, prepare, invoke, free
"""
