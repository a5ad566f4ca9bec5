"""`opwright op new --from`: the class of an operator of another framework, its `compute` to be completed.

Lives here: operators that the import of a model misses, or that a framework knows by name. Not here: packages of
operators (catalogue.py), the source of a class (frontends/missing_operators.py).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from ..frontends.importing import RuleTable
from ..frontends.jax import execution as jax_execution
from ..frontends.jax.primitives import call_of_primitive
from ..frontends.missing_operators import ForeignCall, MissingOperators, class_name, skeleton
from ..frontends.onnx import execution as onnx_execution
from ..frontends.onnx import schemas as onnx_schemas
from ..frontends.torch import rules as torch_rules
from ..frontends.torch import schemas as torch_schemas
from .conversion import READERS
from .model_runner import imported_module
from .report import BadFile, notes, out, print_json, write_file

FRAMEWORKS: dict[str, tuple[Callable[[], RuleTable], Callable[[str, list[Any]], ForeignCall | None]]] = {
    "jax": (jax_execution.load_rules, call_of_primitive),
    "onnx": (onnx_execution.load_rules, lambda name, _: onnx_schemas.call_of_schema(name)),
    "torch": (torch_rules.load_rules, lambda name, _: torch_schemas.call_of_schema(name)),
}
"""By name: the rules of a framework, and what it knows of an operator, by name and modules that were imported."""


def write_skeleton(name: str | None, source: str, modules: Sequence[str], output: str | None, as_json: bool) -> None:
    """Write a class for an operator that has no rule, its `compute` to be completed.

    source: a model, of which name says the operator, as the error of the import has it; or FRAMEWORK:OPERATOR, such as
    "torch:my::op". modules: imported before, as they register operators. raises BadFile for a file that is there, or
    where no such operator is missing; OpError for what cannot be imported
    """
    framework, _, operator = source.partition(":")
    calls: Sequence[ForeignCall]
    contents = [imported_module(module, "--import") for module in modules]
    if framework in FRAMEWORKS and operator:
        if name not in (None, operator):
            raise click.UsageError(f"--from {source} names the operator: leave {name} out")
        name, calls = operator, [_registered(framework, operator, contents)]
    elif name is None:
        raise click.UsageError("wanted NAME, the operator of the model, or --from FRAMEWORK:OPERATOR")
    else:
        calls = _missing(name, source)
    file = Path(output or f"{class_name(name).lower()}.py")
    if file.exists():
        raise BadFile(f"{file} is there already")
    write_file(str(file), f"import opwright as ow\n\n\n{skeleton(calls[0])}\n".encode())
    if as_json:
        print_json({"operator": name, "class": class_name(name), "calls": len(calls), "files": [str(file)]})
        return
    out().print(str(file))
    notes().print(f'next: complete it; custom={{"{name}": {class_name(name)}}} imports the model', markup=False)


def _registered(framework: str, name: str, modules: list[Any]) -> ForeignCall:
    """Return what a framework knows of an operator, if need be after the import of a package named as its namespace."""
    rules, find = FRAMEWORKS[framework]
    call = find(name, modules)
    namespace = name.partition("::")[0]
    if call is None and "::" in name and namespace.isidentifier() and importlib.util.find_spec(namespace):
        call = find(name, [*modules, imported_module(namespace, "--from")])
    if call is None:
        do = f"--import MODULE, which registers it, or a model with it: opwright op new {name} --from MODEL"
        raise BadFile(f"{framework} knows no operator {name!r}\n  try     {do}")
    if rules().find(name.partition(".")[0] if framework == "torch" else name) is not None:
        raise BadFile(f"{framework}: {name} has a rule")
    return call


def _missing(name: str, path: str) -> Sequence[ForeignCall]:
    """Return the calls of an operator without a rule in a model."""
    suffix = Path(path).suffix
    if suffix not in READERS:
        suffixes, words = ", ".join(READERS), ", ".join(f"{f}:OPERATOR" for f in FRAMEWORKS)
        raise click.UsageError(f"--from {path}: wanted a file that ends in {suffixes}, or {words}")
    try:
        READERS[suffix](path)
    except MissingOperators as error:
        calls = error.calls
    except OSError as error:
        raise BadFile(f"{path}: {error}") from error
    else:
        raise BadFile(f"{path}: every operator has a rule")
    if name not in calls:
        raise BadFile(f"{path}: no operator {name!r} without a rule; there are {', '.join(calls)}")
    return calls[name]
