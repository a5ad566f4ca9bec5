"""Lower operators to the loop graph: one table of rules for the catalogue's operators and the builtins of files.

Lives here: the rules, a module for each family of operators; the context that a rule receives (context.py), the nodes
that it reads (nodes.py), the table (registry.py).
Not here: fusion and planning (../loops/), the selection of nodes to lower (../partitioner.py, lite/compiled/).

    @rule("SpaceToDepth", "SPACE_TO_DEPTH")
    def space_to_depth(ctx):
        x, y = ctx.operand(0), ctx.output()
        ...
        ctx.add(Move, y.buffer, (x.buffer,), (box,))

A rule raises NoLowering(reason) for a node without a lowering, which then runs uncompiled.
"""
