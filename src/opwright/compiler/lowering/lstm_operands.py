"""Where the inputs of an LSTM begin that follow each other by gate: input, forget, cell, output.

Lives here: these indices.  Not here: the rules that read them (recurrent.py, recurrent_int8.py).
"""

WEIGHTS, RECURRENT, PEEPHOLES, BIASES, PROJECTION, STATE, NORMS = 1, 5, 9, 12, 16, 18, 20
