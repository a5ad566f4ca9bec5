"""The compiler: graphs to plans and machine code.

Lives here: `Plan` (plan.py), the offline arena planner (memory.py), `@ow.kernel` (kernel.py, elementwise.py) and
LLVM (native/linker.py, imported when something has to be compiled).
Not here: tapes, traces, files. The compiler converts a Graph to a Plan, independently of the graph's origin and of the
plan's user.
"""
