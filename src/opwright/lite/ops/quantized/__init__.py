"""Integer kernels of the lite dialect: the computation of operators on quantized tensors.

Lives here: modules only: fixed_point.py (shared arithmetic and tables), operand.py (the view of a tensor for a rule),
and a module for each family of rules.
Not here: the operators, which name their rules in the class body (`quantized = "images.average"`: module, function),
the selection of a node's kernel (lite/quantized_registration.py).

A rule receives the attributes of the call and an Operand for each declared input and output, and checks types and
parameters. It returns the kernel: a function of the integer arrays whose results, within the range of the output, are
stored in the output. Everything that depends only on parameters and constants is computed once, by the rule.
"""
