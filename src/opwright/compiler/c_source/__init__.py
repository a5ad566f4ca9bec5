"""Kernels as readable C, generated from the LLVM modules that they are traced into.

    expressions.py    C expressions: types, numbers, precedence; small C functions that instructions call
    instructions.py   the C expression of each instruction: a table
    statements.py     variables, loads and stores; basic blocks: order, dominators, loops; uses of values
    functions.py      a function: structured control flow
    kernels.py        `@ow.kernel` functions on scalars and on arrays, traced for C; attributes known at run time

Lives here: kernels as C functions on numbers and pointers.
Not here: operators of run times, their tensors and registrations (lite/export).
"""
