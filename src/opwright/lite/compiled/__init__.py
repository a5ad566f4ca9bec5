"""The compiled engine: nodes of a model run as machine code, as a delegate of the interpreter.

Lives here: nothing but the names of the modules: delegate.py drives eligibility.py (which nodes), partition_plans.py,
plan_registration.py (a plan as a node) and cached_partitions.py; nodes.py is the view of lowering rules.
Not here: rules, loop graphs, fusion, plans and kernels (compiler/).
"""
