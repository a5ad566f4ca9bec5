"""Kernels as readable C, generated from the LLVM modules that they are traced into.

    expressions.py          C expressions: types, numbers, precedence
    instructions.py         the C expression of each instruction: a table
    helpers.py              small C functions that instructions call
    control_flow.py         basic blocks: order, dominators, loops; uses of values
    statements.py           variables, loads and stores
    functions.py            a function: control flow
    runtime_attributes.py   attributes whose values are known at run time, while a kernel is traced
    kernels.py              `@ow.kernel` functions on scalars and on arrays, traced for C

Lives here: kernels as C functions on numbers and pointers.
Not here: operators of run times, their tensors and registrations (lite/export).
"""
