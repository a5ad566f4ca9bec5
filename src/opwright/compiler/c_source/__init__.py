"""LLVM's modules, as kernels are staged into them, as C that people read.

    expressions.py     a value as a C expression: types, numbers, precedence
    instructions.py    what each instruction becomes: a table
    helpers.py         the small C functions that instructions lean on
    blocks.py          basic blocks: order, dominators, loops
    functions.py       a function: statements, variables, control flow
    numbers.py         attributes known only when the code runs, while a kernel is staged
    kernels.py         `@ow.kernel` functions on scalars and on arrays, staged for C

Lives here: kernels as C functions on numbers and pointers.
Not here: operators of run times, their tensors and registrations (lite/export).
"""
