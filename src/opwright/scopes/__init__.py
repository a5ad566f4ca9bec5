"""Operators on named variables: scopes, instances, kernel choice at run time, whole graphs, backward passes.

Lives here: data by name (`Scope`), an operator with its names (`OpInstance`), one run of it, graphs on scopes.
Not here: operators (ops/), what devices have (devices/), eager tensors and traces, which need no names.

    scope.py      names -> variables             instance.py      an operator and the names of what it reads and writes
    variable.py   what a variable holds          running.py       the order of one run
    held.py       tensors on any place           arguments.py       inputs found in a scope
    variable.py      reserved names                 transforms.py    copies in another layout, dtype or place
    graphs.py     graphs, control flow           watching.py      which inputs are read
    shortcut.py   runs like one before          arguments.py       what a run gave, into variables
    backward.py   gradients of graphs, by name   gradient_map.py  which value is the gradient of which
"""

from . import graphs as graphs  # tells running.py how control flow runs
