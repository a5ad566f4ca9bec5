"""What runs a model's subgraphs: tensors, their memory, nodes, the life cycle of kernels.

Lives here: opening.py and resolution.py (before a model runs), subgraph.py (its life; called.py, control.py, loop.py:
subgraphs that nodes run), node.py and tensor.py (what kernels see), memory.py, holding.py and resources.py (where
elements are, and how many bytes), delegation.py with delegate_context.py and partitions.py, values.py, lending.py,
details.py and signatures.py (what a program sees), errors.py, profiling.py, watching.py.
Not here: which kernel serves which operator (resolver.py), the public Interpreter (interpreter.py).
"""
