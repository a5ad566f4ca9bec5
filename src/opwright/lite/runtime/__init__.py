"""What runs a model's subgraphs: tensors, their memory, nodes, the life cycle of kernels.

Not here: which kernel serves which operator (resolver.py), the public Interpreter (interpreter.py).
"""
