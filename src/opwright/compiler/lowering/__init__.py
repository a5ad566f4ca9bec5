"""Lower operators to the loop graph: one table of rules for the catalogue's operators and for those of files.

Lives here: the rules, a module for each family; the context that a rule receives (context.py) and the nodes that it
reads (nodes.py), the table (registry.py).
Not here: fusion, planning (../loops/), which nodes are lowered (../partitioner.py, lite/compiled/).

    @rule("SpaceToDepth", "SPACE_TO_DEPTH")
    def space_to_depth(ctx):
        x, y = ctx.operand(0), ctx.output()
        ...
        ctx.add(Move, y.buffer, (x.buffer,), (box,))

A rule raises NoLowering(why) for a node that it has no loops for: that node runs uncompiled.
"""
