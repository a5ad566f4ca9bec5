"""The run time of a model's subgraphs: tensors and their memory, nodes, the life cycle of kernels.

Lives here: model_loader.py (before a model runs); subgraph.py, callee_subgraph.py, subgraph_calls.py
and while_loop.py (the life cycle of subgraphs); node.py and tensor.py (what kernels see); memory.py and resources.py
(storage and its limits); delegation.py and delegate_context.py; ownership.py, tensor_access.py and introspection.py
(what programs see); steps.py, dynamic_shapes.py, profiler.py, errors.py.
Not here: which kernel serves which operator (resolver.py), the public Interpreter (interpreter.py).
"""
