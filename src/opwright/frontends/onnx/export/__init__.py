"""Functions of catalogue operators as ONNX models.

    exporter.py      `to_onnx`: the passes, inputs and outputs, external data
    writer.py        `GraphWriter`: nodes and constants of one graph; the table of rules
    elementwise.py, arrays.py, neural.py, control_flow.py    the rules by family

Lives here: nothing of its own. Not here: import (the modules and packages next to this one).
"""
