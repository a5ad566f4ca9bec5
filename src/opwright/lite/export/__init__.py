"""An operator written in the kernel language as C source, with its registration for the TensorFlow Lite C API.

    c_export.py          `export_c`: the files of an operator, with instructions to build and register it
    kernel_variants.py   kernels on scalars: one C function for each choice of dtypes and fixed attributes
    array_kernels.py     kernels on arrays: tensors and shapes
    size_expressions.py  output sizes that the shape rule computes
    options.py           C that reads a node's options into the attributes
    fragments.py         C loops over elements, C arithmetic for sizes
    source.py            the source file and the header
    apis.py              the generations of the C API
    flexbuffers.c, elements.c    C for every exported file that needs it

Lives here: the parts of an exported file that concern tensors and run times.
Not here: the kernel's own C (compiler/c_source), loading the result (lite/native).
"""
