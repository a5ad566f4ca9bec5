"""PyTorch programs: `torch.export` programs as functions of catalogue operators.

    importer.py   `from_torch`: programs, decomposition, variables, the walk over nodes
    rules/        ATen operators by family, without torch

Lives here: nothing of its own. Not here: what importers share (frontends/importing.py).
"""
