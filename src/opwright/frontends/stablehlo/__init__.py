"""StableHLO programs as functions of catalogue operators.

    program.py      `from_stablehlo`: a module, read and checked, as an `ImportedFunction`
    module.py       what both readers return: modules, operations, values, types, locations
    text.py         MLIR's textual form of the dialects stablehlo, chlo, vhlo and func
    literals.py     types and attributes in that form
    bytecode.py     MLIR's bytecode of portable artifacts
    vhlo.py         the versioned dialect of artifacts: its operations as those of stablehlo
    execution.py    `ModuleContext`: operations in order, regions, calls; the table of rules
    rules/          operations by family: attributes become parameters of a primitive, whose rule is that of jax/rules

Lives here: nothing of its own. Not here: what the operations mean, where a primitive of JAX means the same (jax/rules).
"""
