"""Write the signatures of operators' public functions for type checkers: `make signatures`.

Lives here: the text of opwright/ops/signatures.pyi, one protocol for each function that `Operator.as_function` builds.
Not here: the test that the file is current (test_generated_signatures.py), the functions (ops/registry.py).
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from opwright import ops
from opwright.core.dtypes import DType
from opwright.core.shapes import TensorShape
from opwright.ops import registry
from opwright.ops.attributes import Attr
from opwright.ops.definition import Operator

PACKAGE = Path(ops.__file__).parent
STUB = PACKAGE / "signatures.pyi"
HEAD = '''"""Types of the functions that `Operator.as_function` builds, by operator. Written by `make signatures`."""

from collections.abc import Sequence
from typing import Any, Protocol

from .tensor import Tensor, TensorValue
'''
TYPES = {int: "int", float: "float", bool: "bool", str: "str", bytes: "str | bytes", np.ndarray: "Any", object: "Any"}


def published() -> list[str]:
    """Return the names of the classes whose functions stand in modules, in the order of the modules."""
    names: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "as_function":
                owner = node.func.value
                if isinstance(owner, ast.Name) and owner.id[0].isupper():
                    names.append(owner.id)
    return names


def _attribute(attr: Attr[Any]) -> str:
    """Return the type of the values that a call may pass for an attribute."""
    item = attr.type[0] if isinstance(attr.type, list) else attr.type
    text = "Any" if item in (DType, TensorShape) else TYPES.get(item, "Any")
    text = f"Sequence[{text}]" if isinstance(attr.type, list) else text
    return f"{text} | None" if attr.default is None and text != "Any" else text


def _result(op: Operator) -> str:
    """Return the type of a call's result."""
    shown = ["list[Tensor]" if o.repeated else "Tensor" for o in op.outputs if not o.intermediate]
    return "None" if not shown else shown[0] if len(shown) == 1 else f"tuple[{', '.join(shown)}]"


def _default(value: Any) -> str:
    """Return a default as a stub writes it: numbers, strings and None as they are."""
    if isinstance(value, str):
        return json.dumps(value)
    return repr(value) if value is None or isinstance(value, (bool, int, float)) else "..."


def signature(class_name: str, op: Operator) -> str:
    """Return the protocol of an operator's public function."""
    inputs = {i.name: i for i in op.inputs}
    parameters = ["self"]
    for parameter in inspect.signature(op.as_function("f")).parameters.values():
        name = parameter.name
        if name == "name":
            kind = "str | None"
        elif name in inputs:
            kind = "Sequence[TensorValue]" if inputs[name].repeated else "TensorValue"
            kind += " | None" if inputs[name].optional else ""
        else:
            kind = _attribute(op.attr_defs[name])
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        parameters.append(f"{name}: {kind}{default}")
    line = f"    def __call__({', '.join(parameters)}) -> {_result(op)}: ..."
    if len(line) > 120:
        line = f"    def __call__(\n        {', '.join(parameters)}\n    ) -> {_result(op)}: ..."
    if max(map(len, line.splitlines())) > 120:
        line = "    def __call__(\n" + "".join(f"        {p},\n" for p in parameters) + f"    ) -> {_result(op)}: ..."
    return f"\nclass {class_name}(Protocol):\n{line}\n"


def text() -> str:
    """Return the text that the stub should have."""
    operators = registry.catalogue()
    by_class = {op.__name__: op for op in operators.values()}
    return HEAD + "".join(signature(name, by_class[name]) for name in sorted(set(published())))


def main() -> int:
    """Write the stub."""
    STUB.write_text(text(), encoding="utf-8")
    print(f"wrote {STUB}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
