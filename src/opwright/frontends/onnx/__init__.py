"""ONNX files as functions of catalogue operators.

    model.py        `from_onnx`: a model, checked and read, as an `ImportedFunction`
    files.py        files, external data within the model's folder, tensors as arrays
    execution.py    `GraphContext`: nodes in order, subgraphs, functions; the table of rules
    rules/          the rules by family

Lives here: nothing of its own. Not here: what other importers share (importing.py).
"""
