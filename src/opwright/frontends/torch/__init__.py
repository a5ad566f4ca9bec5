"""PyTorch programs: `torch.export` programs as functions of catalogue operators.

    importer.py        `from_torch`: programs, variables, the walk over nodes
    decomposition.py   programs of operators that have rules and change nothing in place
    control_flow.py    branches, loops, scans and maps
    nodes.py           names, places and types of nodes
    rules/             ATen operators by family, without torch

Lives here: nothing of its own. Not here: what importers share (frontends/importing.py).
"""
