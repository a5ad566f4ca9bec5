"""JAX functions as functions of catalogue operators.

    program.py      `from_jax`: a function traced to a jaxpr, its pytrees and variables, as an `ImportedFunction`
    execution.py    `JaxprContext`: equations in order, inner jaxprs, random keys; the table of rules
    operands.py     shapes, dtypes and constants of values
    rules/          the rules by family

Lives here: nothing of its own; JAX is imported by the first import of a function. Not here: what other importers share
(importing.py).
"""
