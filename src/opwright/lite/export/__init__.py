"""An operator written in the kernel language as C source, with its registration for the TensorFlow Lite C API.

    c_export.py    `export_c`: what an operator's files hold, and writing them
    kernel_variants.py        which functions there are: by dtypes, and by attributes that are known before
    array_kernels.py       kernels on arrays: which array is which tensor, shapes
    size_expressions.py        sizes of results that the shape rule computes; fragments.py is their C
    options.py      C that reads a node's options into the attributes
    fragments.py        C loops over the elements
    source.py       the source file and the header
    apis.py         the generations of the C API, by what the source asks of the run time
    c_export.py       how to build and register it
    flexbuffers.c, elements.c    C that stands in every exported file that needs it

Lives here: all that is about tensors and run times.
Not here: the kernel's own C (compiler/c_source), loading the result (lite/native).
"""
