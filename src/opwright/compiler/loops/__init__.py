"""The loop graph: loop operations over buffers, between lowering and code generation.

graph.py                 the graph, its editor and checks    buffers.py    tensors, views, windows
ops.py, indexing_ops.py, domain_ops.py, matrix_ops.py, recurrent_ops.py   the operations
expressions.py   the computation of one element
fusion.py, map_fusion.py, constant_folding.py   rewriting, before planning
planner.py, plan_builder.py   from a graph to a plan         plans.py      plans as data
"""
