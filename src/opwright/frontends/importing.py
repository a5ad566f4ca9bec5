"""Rules by foreign operator, values known at import, the imported function: shared by importers.

Lives here: `RuleTable` and its `apply`; `ImportedFunction`; `scope`, which names nodes as the foreign program does;
`known` and `tensor_of`. Not here: the error of missing operators (missing_operators.py), reading of foreign files and
rules (the packages of the frameworks), layouts.

An importer executes a foreign graph on Opwright's operators while `ImportedFunction` is traced. Values are NumPy arrays
as long as they are known at import (weights, arithmetic on shapes), and tensors from where they depend on an input: a
rule whose inputs are all known runs eagerly, outside of the trace, so that no node is left of it.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core import nest
from ..core.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from ..eager.variable import Variable
from ..nn.module import Module
from ..ops import dispatch, registry
from ..ops.tensor import TensorLike, get_static_value
from ..saved.saver import save
from ..tracing.function import Function
from ..tracing.name_scopes import name_scope
from .constants import FOLDING
from .missing_operators import ForeignCall, MissingOperators, identifier

MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of code that reads a damaged file."""

Rule = Callable[..., Any]
"""rule(context, inputs, attributes) -> a value, or a sequence of them; None stands for an absent one."""


# ---- values ----------------------------------------------------------------------------------------------------------


def known(value: Any) -> np.ndarray | None:
    """Return the array of a value that does not depend on the function's inputs, or None. Variables are not known."""
    if value is None or isinstance(value, np.ndarray):
        return value
    if isinstance(value, (bool, int, float, np.generic)):
        return np.asarray(value)
    if isinstance(value, Variable) or not isinstance(value, TensorLike):
        return None
    constant = get_static_value(value)
    return None if constant is None else np.asarray(constant)


def tensor_of(value: Any) -> Any:
    """Return a value as a tensor: arrays become constants, without a copy."""
    return dispatch.to_tensor(value) if isinstance(value, (np.ndarray, np.generic)) else value


def is_known(value: Any) -> bool:
    """Return whether a value, or every member of a list of them, is an array or absent."""
    if isinstance(value, (list, tuple)):
        return all(map(is_known, value))
    return value is None or isinstance(value, (np.ndarray, np.generic, bool, int, float, str, bytes))


# ---- names -----------------------------------------------------------------------------------------------------------


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Return a context whose nodes are named as a foreign node or module, such as `layer3.0.conv2`.

    Slashes separate levels, as in a `name_scope`; characters that names of nodes may not have become "_".
    """
    legal = "/".join(part for part in re.sub(r"[^\w.\-/]", "_", name).split("/") if part)
    if not legal:
        yield
        return
    with name_scope(legal + "/"):
        yield


# ---- rules -----------------------------------------------------------------------------------------------------------


class RuleTable:
    """The rules of one framework, by the name of the foreign operator.

    framework: the key of entry points and errors, such as "onnx"
    """

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self._rules: dict[str, Rule] = {}
        self._impure: set[str] = set()

    def rule(self, *names: str, pure: bool = True) -> Callable[[Rule], Rule]:
        """Return a decorator that adds a rule under these names. pure=False: never executed at import, since it draws
        random numbers or has subgraphs, which see values of the trace."""

        def add(function: Rule) -> Rule:
            for name in names:
                if name in self._rules:
                    raise InvalidArgumentError(op=self.framework, what="two rules for one operator", found=name)
                self._rules[name] = function
                if not pure:
                    self._impure.add(name)
            return function

        return add

    def names(self) -> list[str]:
        """Return the names of all operators with a rule, sorted."""
        return sorted(self._rules)

    def find(self, name: str, custom: Mapping[str, Any] | None = None) -> Rule | None:
        """Return the rule of an operator: the user's (`custom`), the table's, that of an installed package, or None.

        A package declares it in the group `opwright.operators` as "FRAMEWORK:NAME", such as "onnx:my::op".
        """
        if custom and name in custom:
            return rule_of(custom[name])
        rule = self._rules.get(name)
        if rule is None:
            operator = registry.from_package(f"{self.framework}:{name}")
            rule = None if operator is None else rule_of(operator)
        return rule

    def check(self, calls: Iterable[ForeignCall], custom: Mapping[str, Any] | None = None) -> None:
        """Raise MissingOperators with every call that no rule exists for."""
        rules: dict[str, Rule | None] = {}
        missing: dict[str, list[ForeignCall]] = {}
        for call in calls:
            if call.operator not in rules:
                rules[call.operator] = self.find(call.operator, custom)
            if rules[call.operator] is None:
                missing.setdefault(call.operator, []).append(call)
        if missing:
            raise MissingOperators(self.framework, missing)

    def apply(
        self,
        name: str,
        context: Any,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        *,
        node: str = "",
        at: str | None = None,
        custom: Mapping[str, Any] | None = None,
        traced: bool = False,
    ) -> list[Any]:
        """Execute the rule of an operator in the scope of its node; return its outputs as a list.

        at: "file:line" of the user's call, for errors.

        Rules of known inputs are executed now (`init_scope`), their results are arrays; not so if `traced`, when the
        operator also reads other values than its inputs.
        raises InvalidArgumentError with the node's name, also for what else a rule raises on arguments that do not fit
        """
        rule = self.find(name, custom)
        if rule is None:
            raise MissingOperators(self.framework, {name: [ForeignCall(name, node)]})
        builder: Any = getattr(dispatch.state.trace, "builder", None)
        start = len(builder.nodes) if builder is not None else 0
        folded = False
        try:
            traced = traced or name in self._impure or getattr(rule, "traced", False)
            folded = not traced and is_known(inputs)
            if folded:
                result = FOLDING.fold(functools.partial(rule, context, inputs, attributes), inputs)
            else:
                with scope(node):
                    result = rule(context, inputs, attributes)
        except MissingOperators:
            raise
        except OpError as error:
            named = error.node == node if folded else error.node  # eager operators have names of their own
            if named or (error.op and not node):
                raise
            raise type(error)(op=name, node=node or None, at=at, what=str(error)) from error
        except MemoryError as error:
            raise ResourceExhaustedError(op=name, node=node or None, at=at, what=f"out of memory: {error}") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, AssertionError) as error:
            raise InvalidArgumentError(
                op=name,
                node=node or None,
                at=at,
                what=f"the operator does not fit its inputs: {error or type(error).__name__}",
            ) from error
        for made in builder.nodes[start:] if builder is not None else ():
            if not made.rules:  # else a rule within this one made it
                builder.attribute(made, (f"{self.framework} {name}: the importer's rule",))
        return list(result) if isinstance(result, (list, tuple)) else [result]


def rule_of(operator: Any) -> Rule:
    """Return the rule of an operator that `custom` or a package maps a foreign one to.

    operator: an `@ow.operator`, which takes the inputs by position and those foreign attributes that it declares, all
    of them by name; or a function of the inputs and, by keyword, the attributes.
    """
    operator = getattr(operator, "operator", operator)

    def rule(context: Any, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        del context
        return operator(*inputs, **attributes)

    vars(rule)["traced"] = True  # a user's operator is a node, also of known inputs
    return rule


# ---- results ---------------------------------------------------------------------------------------------------------


class ImportedFunction(Function[..., Any]):
    """A foreign program as a `Function` of catalogue operators, with its variables and the names of its results.

    Call it with tensors by position or by the names of the program's inputs. body: executes the program on its inputs
    and returns a nested structure of tensors. input_signature: their specs. parameters: their names, made identifiers
    (by default those of the specs). Without a signature each type of
    arguments is traced. variables: what the program trains or updates; all tensors besides are constants.
    output_names: of the flat results; () if the framework has none. source: what was imported, for readers.
    """

    def __init__(
        self,
        body: Callable[..., Any],
        input_signature: Sequence[Any] | None,
        *,
        name: str,
        source: str = "",
        parameters: Sequence[str] = (),
        variables: Sequence[Variable] = (),
        output_names: Sequence[str] = (),
    ) -> None:
        specs = None if input_signature is None else list(input_signature)
        names = _parameter_names(parameters or [getattr(s, "name", None) or "" for s in specs or ()])

        def call(*args: Any) -> Any:
            with FOLDING.counted():
                return body(*args)

        call.__name__ = call.__qualname__ = identifier(name, "imported")
        call.__doc__ = f"Compute {source or name}."
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        vars(call)["__signature__"] = inspect.Signature([inspect.Parameter(n, kind) for n in names])
        super().__init__(call, specs, autograph=False, name=call.__name__)
        self.source, self.parameters = source, tuple(names)
        self.variables, self.output_names = list(variables), tuple(output_names)
        self._body = body

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that optimizers update."""
        return [v for v in self.variables if v.trainable]

    def concrete(self) -> Any:
        """Return the one trace; the first call executes the foreign program."""
        return self.get_concrete_function()

    def named(self) -> Function[..., Any]:
        """Return the function with its results as a dictionary by name, as signatures of files have them."""
        names = [identifier(n, f"output_{i}") for i, n in enumerate(self.output_names)]
        if not names or len(set(names)) < len(names):
            return self

        def by_name(*args: Any) -> dict[str, Any]:
            return dict(zip(names, nest.flatten(self.python_function(*args))))

        by_name.__name__ = self.name
        vars(by_name)["__signature__"] = self.signature.python
        specs = None if self.input_signature is None else list(self.input_signature)
        return Function(by_name, specs, autograph=False, name=self.name)

    def save(self, folder: Any) -> None:
        """Write a saved model (`saved_model.load` reads it) with the function as "serving_default"."""
        module = Module()
        module.imported_variables = self.variables
        module.call = self
        save(module, folder, signatures=self.named().get_concrete_function())

    def _copy(self, python_function: Callable[..., Any]) -> Function[..., Any]:
        if python_function is not self.python_function:  # bound as a method
            return Function(python_function, autograph=False, name=self.name)
        return ImportedFunction(
            self._body,
            self.input_signature,
            name=self.name,
            source=self.source,
            parameters=self.parameters,
            variables=self.variables,
            output_names=self.output_names,
        )


def _parameter_names(names: Sequence[str]) -> list[str]:
    result: list[str] = []
    for i, name in enumerate(names):
        legal = re.sub(r"\W", "_", name)
        if not legal.isidentifier() or keyword.iskeyword(legal) or legal in result or legal in ("self", "name"):
            legal = f"input_{i}"
        while legal in result:
            legal += "_"
        result.append(legal)
    return result
