"""Operators on named variables: scopes, operator instances, kernel selection at run time, graphs, backward passes.

Lives here: data by name (`Scope`), an operator with its names (`OpInstance`), one run of it, graphs on scopes. Not
here: operators (ops/), resources of devices (devices/), eager tensors and traces, which need no names.

    scope.py      names -> variables                      variable.py       contents and their tensors, reserved names
    instance.py   an operator and its variables' names    execution.py      one run of an operator
    bindings.py   inputs and outputs bound to a scope     fast_path.py      repeated runs
    graphs.py     graphs, control flow                    read_checks.py    which inputs are read
    backward.py   gradients of graphs                     gradient_graphs.py   its parts
"""

from . import graphs as graphs  # installs control flow in execution.py
