"""The run time of a model's subgraphs: tensors and their memory, nodes, the life cycle of kernels.

Lives here: model_loading.py and resolution.py (before a model runs), subgraph.py (its life cycle; callee_subgraph.py,
control.py, loop.py: subgraphs that nodes run), node.py and tensor.py (the view of kernels), memory.py and resources.py
(storage and its limits), delegation.py with delegate_context.py, observers.py, values.py,
tensor_views.py and introspection.py (the view of programs), errors.py, profiling.py.
Not here: which kernel serves which operator (resolver.py), the public Interpreter (interpreter.py).
"""
