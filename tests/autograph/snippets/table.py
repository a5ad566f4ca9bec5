"""Programs whose control flow depends on their arguments: each means the same for numbers, eager tensors and graphs.

`@case(args, ...)`: the calls. Lists become vectors of int32, numbers int32 scalars, floats float32. ours: TensorFlow
cannot stage it.
"""

# ruff: noqa  people write like this
CASES = []


def case(*calls, ours=False):
    def keep(function):
        CASES.append((function, [c if isinstance(c, tuple) else (c,) for c in calls], ours))
        return function

    return keep
