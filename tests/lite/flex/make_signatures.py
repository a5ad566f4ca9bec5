"""Writes src/opwright/lite/flex/signatures.json: TensorFlow's declarations of what Flex operators may carry.

Run by hand, from the repository's root: `python tests/lite/flex/make_signatures.py names FILE`, then with a Python that
has TensorFlow `... write FILE`. Facts only: names of arguments and attributes, types, defaults.
"""

import json
import pathlib
import sys


def names():
    from opwright.lite.flex.conversion import MAPPINGS
    from opwright.ops import registry

    result = set()
    for name in registry.list_names():
        op = registry.get(name)
        if not op.control and (op.compute_rule is not None or op.kernels):
            result |= {form.op for form in MAPPINGS[name]} if name in MAPPINGS else {name}
    return result


def argument(arg):
    """An argument: its type attribute, or its type; `N*` before it where there are several of one type."""
    from tensorflow.python.framework import dtypes

    kind = arg.type_attr or arg.type_list_attr or dtypes.as_dtype(arg.type).name
    star = f"{arg.number_attr}*" if arg.number_attr else "*" if arg.type_list_attr else ""
    return f"{star}{kind}"


def default(attr):
    from tensorflow.python.framework import dtypes

    if not attr.HasField("default_value"):
        return None
    value = attr.default_value
    if attr.type == "type":
        return dtypes.as_dtype(value.type).name
    if attr.type.startswith("list("):
        return [x.decode() if isinstance(x, bytes) else x for _, items in value.list.ListFields() for x in items]
    if attr.type == "shape":
        return None if value.shape.unknown_rank else [d.size for d in value.shape.dim]
    kind = {"string": "s", "int": "i", "float": "f", "bool": "b"}[attr.type]
    result = getattr(value, kind)
    return result.decode("latin-1") if isinstance(result, bytes) else result


def write(expected):
    from tensorflow.python.framework import op_def_registry

    signatures = {}
    for name in expected:
        op = op_def_registry.get(name)
        if op is not None:
            signatures[name] = {
                "in": [argument(a) for a in op.input_arg],
                "out": [argument(a) for a in op.output_arg],
                "attrs": {a.name: [a.type, a.HasField("default_value"), default(a)] for a in op.attr},
            }
    target = pathlib.Path(__file__).parents[3] / "src/opwright/lite/flex/signatures.json"
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in sorted(signatures.items()))
    target.write_text("{\n" + lines + "\n}\n")
    print(f"{len(signatures)} operators")


if __name__ == "__main__":
    step, path = sys.argv[1:]
    if step == "names":
        pathlib.Path(path).write_text(" ".join(sorted(names())))
    else:
        write(pathlib.Path(path).read_text().split())
