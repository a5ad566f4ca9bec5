"""Models of other frameworks as functions of catalogue operators, without a run time of theirs.

    importing.py            what importers share: tables of rules, folding, the imported function
    missing_operators.py    the error of operators without a rule, and definitions to complete
    torch/                  programs of torch.export (docs/pytorch.md)
    onnx/                   ONNX files: `ow.from_onnx`
    stablehlo/              StableHLO modules: `ow.from_stablehlo`, by the rules of JAX's primitives

Lives here: nothing of its own; `ow.from_onnx` and the like are loaded on first use. Not here: writing .tflite files
(lite/), tracing (tracing/).
"""
