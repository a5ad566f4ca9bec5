"""Graph to plan to machine code: kernels, the order they run in, where results lie.

Lives here: `Plan` (plan.py), the offline arena planner (memory.py), `@ow.kernel` (kernel.py, elementwise.py) and
LLVM (engine.py, imported when something has to be compiled).
Not here: tapes, traces, files. The compiler takes a Graph and gives a Plan, and knows neither who made the one nor
who runs the other.
"""
