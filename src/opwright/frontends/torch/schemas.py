"""Schemas of operators in PyTorch's registry, and of operators that a `.pt2` file calls and the registry lacks.

Lives here: `call_of_schema`, a registered operator as errors and skeletons show it; `declared`, a context in which
PyTorch reads a file whose operators no package has registered. Not here: which files it may read (archives.py), rules.

A file states the name and value of each argument, and the types of all results: enough to declare an operator, so that
the importer can list it, or hand it to the user's class, without the package that computes it.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...core.errors import InvalidArgumentError
from ..missing_operators import ForeignCall, Required

TARGET = re.compile(r"torch\.ops\.([A-Za-z]\w*)\.(\w+)(?:\.(\w+))?")
MOST_OPERATORS = 1000
_ARGUMENTS = {
    "as_tensor": "Tensor",
    "as_tensors": "Tensor[]",
    "as_optional_tensor": "Tensor?",
    "as_optional_tensors": "Tensor?[]",
    "as_int": "int",
    "as_ints": "int[]",
    "as_float": "float",
    "as_floats": "float[]",
    "as_bool": "bool",
    "as_bools": "bool[]",
    "as_string": "str",
    "as_strings": "str[]",
    "as_sym_int": "SymInt",
    "as_sym_ints": "SymInt[]",
    "as_sym_float": "SymFloat",
    "as_sym_bool": "SymBool",
    "as_scalar_type": "ScalarType",
    "as_memory_format": "MemoryFormat",
    "as_layout": "Layout",
    "as_device": "Device",
}
"""By the member of a file's argument: the type in a schema."""
_TYPES = {"int": "int", "SymInt": "int", "float": "float", "bool": "bool", "str": "str", "number": "float"}


# ---- operators of the registry -----------------------------------------------------------------------------------


def call_of_schema(name: str) -> ForeignCall | None:
    """Return an operator of PyTorch's registry, such as "my::op" or "my::op.overload", by its schema; None if it is not
    registered."""
    import torch

    base, _, overload = name.partition(".")
    schemas = torch._C._jit_get_schemas_for_operator(base)
    schema = next((s for s in schemas if s.overload_name == overload), schemas[0] if schemas and not overload else None)
    if schema is None:
        return None
    inputs: list[tuple[str, str]] = []
    attributes: dict[str, Any] = {}
    for argument in schema.arguments:
        kind = re.sub(r"\w+\(\w+!?\)", "Tensor", str(argument.type))
        kind = kind.replace("List[Optional[Tensor]]", "Tensor[]").replace("List[Tensor]", "Tensor[]")
        kind = kind.replace("Optional[Tensor]", "Tensor?")
        if kind.startswith("Tensor"):
            inputs.append((argument.name, kind))
        elif argument.has_default_value():
            attributes[argument.name] = argument.default_value
        else:
            member = re.sub(r".*\[(\w+)\]+", r"\1", kind)
            plain = _TYPES.get(member, "object")
            attributes[argument.name] = Required(f"[{plain}]" if "List[" in kind else plain)
    return ForeignCall(name, "", tuple(inputs), attributes, max(1, len(schema.returns)))


# ---- operators that a file has alone -----------------------------------------------------------------------------


@contextmanager
def declared(path: str | os.PathLike[str]) -> Iterator[None]:
    """Return a context in which the operators that a `.pt2` file calls and PyTorch's registry lacks are declared there:
    they have a schema and results, but compute nothing. Raises InvalidArgumentError for what cannot be declared."""
    import torch

    libraries: list[tuple[Any, Any, str]] = []
    try:
        try:
            for name, nodes in _unregistered(path).items():
                namespace, _, operator = name.partition("::")
                library = torch.library.Library(namespace, "FRAGMENT")
                libraries.append((library, getattr(torch.ops, namespace), operator.partition(".")[0]))
                library.define(f"{operator}{_schema(nodes)}")
                library.impl(operator, _Results(nodes), "Meta")
        except InvalidArgumentError:
            raise
        except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise InvalidArgumentError(
                op="from_torch",
                what=f"an operator that is not registered cannot be declared: {error}",
                found=os.fspath(path),
                do="import the package that defines it before",
            ) from error
        yield
    finally:
        for library, namespace, operator in libraries:
            library._destroy()
            vars(namespace).pop(operator, None)


def _unregistered(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """Return the nodes of each operator that is not registered, by name, with types of their tensors."""
    import torch

    result: dict[str, list[Any]] = {}
    with zipfile.ZipFile(os.fspath(path)) as archive:
        documents = [json.loads(archive.read(n)) for n in archive.namelist() if "/models/" in n and n.endswith(".json")]
    pending, registered = list(documents), {}
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        if not isinstance(value, dict):
            continue
        pending += value.values()
        nodes, types = value.get("nodes"), value.get("tensor_values")
        for node in nodes if isinstance(nodes, list) and isinstance(types, dict) else ():
            target = TARGET.fullmatch(str(node.get("target")) if isinstance(node, dict) else "")
            if target is None:
                continue
            namespace, operator, overload = target.groups()
            suffix = f".{overload}" if overload not in (None, "default") else ""
            name = f"{namespace}::{operator}{suffix}"
            if name not in registered:
                schemas = torch._C._jit_get_schemas_for_operator(f"{namespace}::{operator}")
                registered[name] = any(s.overload_name == suffix[1:] for s in schemas)
                if schemas and not registered[name]:  # PyTorch keeps the operator with its overloads
                    raise InvalidArgumentError(
                        op="from_torch",
                        what=f"{namespace}::{operator} has no overload {overload!r} here",
                        found=", ".join(s.overload_name or "default" for s in schemas),
                        do="use the release of the package that wrote the file",
                    )
            if not registered[name]:
                result.setdefault(name, []).append({**node, "types": types})
    if len(result) > MOST_OPERATORS:
        raise InvalidArgumentError(op="from_torch", what="too many unknown operators", found=len(result))
    return result


def _value(argument: Any) -> tuple[str, Any]:
    """Return the kind and the value of an argument or a result in a file."""
    if not isinstance(argument, Mapping) or len(argument) != 1:
        raise ValueError(f"an argument of no known form: {str(argument)[:100]}")
    return next(iter(argument.items()))


def _schema(nodes: Sequence[Any]) -> str:
    """Return the schema of an operator by its calls, such as "(Tensor x, int k=0) -> Tensor"."""
    kinds: dict[str, set[str]] = {}
    keywords: set[str] = set()
    for node in nodes:
        for argument in node.get("inputs") or ():
            name = str(argument.get("name"))
            if not name.isidentifier():
                raise ValueError(f"an argument is named {name[:100]!r}")
            kinds.setdefault(name, set()).add(_value(argument.get("arg"))[0])
            if argument.get("kind") == 2:
                keywords.add(name)
    words = []
    for name, several in kinds.items():
        types = {_ARGUMENTS.get(kind) for kind in several - {"as_none"}} or {"Tensor?"}
        if "SymInt" in types:
            types.discard("int")
        if types == {"float", "int"}:
            types = {"float"}
        if len(types) > 1 or None in types:
            raise ValueError(f"the argument {name} has values of kinds {', '.join(sorted(several))}")
        (kind,) = types
        absent = "as_none" in several or any(all(a["name"] != name for a in n["inputs"]) for n in nodes)
        kind = f"{kind}?" if absent and not str(kind).endswith("?") else str(kind)
        words.append((name in keywords, f"{kind} {name}" + ("=None" if kind.endswith("?") else "")))
    positional = [text for keyword, text in words if not keyword]
    named = [text for keyword, text in words if keyword]
    results = ["Tensor" if k == "as_none" else str(_ARGUMENTS.get(k)) for k, _ in map(_value, nodes[0]["outputs"])]
    returned = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"({', '.join([*positional, *(['*'] if named else []), *named])}) -> {returned}"


class _Results:
    """Empty tensors of the types that a file states for the calls of one operator, for another trace by PyTorch."""

    def __init__(self, nodes: Sequence[Any]) -> None:
        self.nodes = nodes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import torch

        tensors = [v for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)]
        try:
            return self._results(tensors)
        except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise InvalidArgumentError(
                op="from_torch", what=f"the results of {self.nodes[0]['target']} are not known: {error}"
            ) from error

    def _results(self, tensors: Sequence[Any]) -> Any:
        for node in self.nodes:
            names = [v["name"] for k, v in (_value(a["arg"]) for a in node["inputs"]) if k == "as_tensor"]
            sizes = _sizes_of(tensors, [node["types"][n] for n in names])
            if sizes is not None:
                results = [self._result(node["types"], output, sizes) for output in node["outputs"]]
                return results[0] if len(results) == 1 else tuple(results)
        raise ValueError("no call of the file has arguments of these types")

    def _result(self, types: Any, output: Any, sizes: Mapping[str, Any]) -> Any:
        import torch
        from torch._export.serde.serialize import _SERIALIZE_TO_TORCH_DTYPE

        kind, value = _value(output)
        if kind == "as_tensors":
            return [self._result(types, {"as_tensor": v}, sizes) for v in value]
        if kind != "as_tensor":
            raise ValueError(f"one is {kind}")
        stated = types[value["name"]]
        shape = [sizes[_text(d)] if _text(d) in sizes else int(d["as_int"]) for d in stated["sizes"]]
        return torch.empty(shape, dtype=_SERIALIZE_TO_TORCH_DTYPE[stated["dtype"]], device="meta")


def _text(size: Any) -> str:
    """Return the expression of a size that is not known, "" of another."""
    return str(size["as_expr"]["expr_str"]) if "as_expr" in size else ""


def _sizes_of(tensors: Sequence[Any], types: Sequence[Any]) -> dict[str, Any] | None:
    """Return the sizes of tensors by their expressions in a file's types; None if the types are other ones."""
    from torch._export.serde.serialize import _SERIALIZE_TO_TORCH_DTYPE

    sizes: dict[str, Any] = {}
    if len(tensors) != len(types):
        return None
    for tensor, stated in zip(tensors, types):
        if tensor.dtype != _SERIALIZE_TO_TORCH_DTYPE[stated["dtype"]] or tensor.dim() != len(stated["sizes"]):
            return None
        for size, wanted in zip(tensor.shape, stated["sizes"]):
            if "as_expr" in wanted:
                sizes[_text(wanted)] = size
            elif isinstance(size, int) and size != wanted["as_int"]:
                return None
    return sizes
