"""Errors of an operator's rules: exceptions raised by a rule, and contracts violated by its result.

Lives here: `rule_failure`, `contract_violation`, `call_rule`, the comparison of results with inferred types, and the
name of a kernel in errors.
Not here: execution of rules (definition.py, autodiff.py, eager/, scopes/, lite/).

Every caller of a rule (`infer`, `compute`, a kernel, `gradient`, ...) passes its exceptions through `rule_failure`, so
that the error names the operator and the rule in every way of execution. A violated contract is a mistake in the
definition: DefinitionError for a user-defined operator, InternalError for one of this package.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..core.errors import (
    DefinitionError,
    InternalError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    also,
    status_class,
)

if TYPE_CHECKING:
    from .definition import Operator

R = TypeVar("R")


def rule_failure(
    op: Operator, rule: str, error: Exception, *, node: str | None = None, at: str | None = None, found: Any = None
) -> OpError:
    """Return the error to raise for an exception raised by a rule of an operator; chain it with `failure_cause`.

    An OpError without an operator gets this one; one that names another operator, which the rule called, gets a line
    that names the rule. Any other exception becomes the OpError of its status, which is also an instance of the
    exception's builtin class: `except KeyError` still catches it.
    """
    if isinstance(error, OpError):
        if error.op is None:
            return type(error)(op=op.name, node=node, at=at, what=error.message).with_traceback(error.__traceback__)
        line = f"\n  in      {rule} of {op.name}"
        if error.op != op.name and not op.trusted and line not in error.message:
            error.args = (error.message + line, *error.args[1:])
        return error
    cls = status_class(error, InvalidArgumentError)
    base = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    if cls is not OutOfRangeError and base is not Exception:  # a StopIteration would end a caller's generator
        with contextlib.suppress(TypeError):  # incompatible layouts
            cls = also(cls, base)
    raised = f"{rule} raised {type(error).__name__}"
    what = f"{raised}: {error}" if str(error) else raised
    try:
        return cls(op=op.name, node=node, at=at, what=what, found=found)
    except TypeError:  # a builtin class with a constructor of its own, as UnicodeDecodeError
        return status_class(error, InvalidArgumentError)(op=op.name, node=node, at=at, what=what, found=found)


def failure_cause(error: Exception, raised: Exception) -> BaseException | None:
    """Return what `raise raised from ...` chains: the rule's own exception where another one is raised for it."""
    return error.__cause__ if raised is error or isinstance(error, OpError) else error


def contract_violation(
    op: Operator,
    rule: str,
    what: str,
    *,
    node: str | None = None,
    found: Any = None,
    wanted: Any = None,
    do: str | None = None,
) -> OpError:
    """Return the error for a rule whose result violates the contract of the definition. what: after the rule's name."""
    cls = InternalError if op.trusted else DefinitionError
    return cls(op=op.name, node=node, what=f"{rule} {what}", found=found, wanted=wanted, do=do)


def call_rule(op: Operator, rule: str, function: Callable[..., R], *args: Any, node: str | None = None) -> R:
    """Call a rule of an operator; an exception that it raises names the operator and the rule."""
    try:
        return function(*args)
    except Exception as error:
        failure = rule_failure(op, rule, error, node=node)
        if failure is error:
            raise
        raise failure from failure_cause(error, failure)


def mismatch(results: Sequence[Any], promised: Sequence[Any]) -> dict[str, Any] | None:
    """Return the difference of flat results from the inferred types, as parts of an error; None if they agree.

    promised: for each result its TensorSpec, or its DType alone where the shape is not checked.
    """
    if len(results) != len(promised):
        return {"what": "gave another number of results than infer", "found": len(results), "wanted": len(promised)}
    for result, spec in zip(results, promised):
        dtype = getattr(spec, "dtype", spec)
        if result is None or result is NotImplemented:
            return {"what": "gave no result", "found": result, "wanted": spec, "do": "return an array"}
        got = getattr(result, "dtype", None)
        got = getattr(got, "np", got)  # of a tensor
        if got is not None and np.dtype(got) != dtype.np:
            return {
                "what": "gave another dtype than was inferred",
                "found": np.dtype(got).name,
                "wanted": dtype.name,
                "do": f"y.astype({dtype.np.name!r})",
            }
        if spec is not dtype and not spec.shape.is_compatible_with(tuple(np.shape(result))):
            return {"what": "gave another shape than was inferred", "found": np.shape(result), "wanted": spec.shape}
    return None


def kernel_name(op: Operator, key: Any, kernel: Any) -> str:
    """Return the name of a kernel in errors: its key, and its fallback if it may decline a call."""
    if kernel is op.kernel_rule:
        return "kernel"
    code = getattr(kernel, "__code__", None)
    declines = code is not None and "NotImplemented" in code.co_names
    return f"the kernel {key}" + (", or what serves where it declines," if declines else "")
