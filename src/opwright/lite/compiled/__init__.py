"""The compiled engine: nodes of a model run as machine code, as a delegate of the interpreter.

Lives here: nothing but the names of the rooms: rules/ (lowering of operators that need the interpreter), nodes.py (what
rules see), delegate.py (which nodes), kernel.py (a plan as a node).
Not here: loop graphs, fusion, plans and kernels (compiler/).
"""
