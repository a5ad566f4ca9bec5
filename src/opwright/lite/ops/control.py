"""Operators that run other subgraphs: IF, WHILE, CALL, STABLEHLO_CASE, STABLEHLO_COMPOSITE.

Lives here: their declarations and shape rules.
Not here: running them (runtime/subgraph_calls.py), which programs they come from (convert/subgraphs.py).

In the IR an attribute holds the Graph, of the lite dialect too; in the file it is the index of a subgraph. The graphs
are closed: they receive outer values as inputs. A loop's variables are the inputs of both its graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import anything
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...graph import Graph
from ...ops import var_types
from ...ops.attributes import Attr
from ...ops.control import case_specs, check_inputs, if_specs
from ...ops.slots import Input, Output
from ...ops.var_types import of_dtype
from .definition import LiteDefinition, lite_operator
from .shapes import check_one, refuse

if TYPE_CHECKING:
    from ..registration import Registration


def _branch_registration(operator: Any, *fields: str) -> Registration:
    """Return the registration of a node that runs one of the subgraphs in these fields of its options."""
    from ..runtime.subgraph_calls import BranchRegistration  # loads the run time, which conversion does without

    return BranchRegistration(operator.name, fields)


@lite_operator("IF", graphs={"then_subgraph_index": "then_branch", "else_subgraph_index": "else_branch"})
class IfOp(LiteDefinition):
    """One of two subgraphs, chosen by a bool.

    .. math:: outputs = then(inputs) if cond else else(inputs)
    """

    cond = Input(("bool",))
    inputs = Input(anything, repeated=True, mixed=True)
    outputs = Output(repeated=True)
    then_branch = Attr(Graph)
    else_branch = Attr(Graph)
    control = True

    def infer(op: Any) -> list[TensorSpec]:
        check_one(op.cond, "the condition", "element")
        return if_specs(op)

    def infer_kinds(op: Any) -> list[Any]:
        return var_types.of_branches((op.then_branch, op.else_branch), op.inputs)

    def registration(operator: Any) -> Registration:
        return _branch_registration(operator, "then_subgraph_index", "else_subgraph_index")


@lite_operator("STABLEHLO_CASE", graphs={"branch_subgraph_indices": "branches"})
class CaseOp(LiteDefinition):
    """One of several subgraphs, chosen by its number; numbers out of range mean the last.

    .. math:: outputs = branches_{index}(inputs)
    """

    index = Input(("int32",))
    inputs = Input(anything, repeated=True, mixed=True)
    outputs = Output(repeated=True)
    branches = Attr([Graph])
    control = True

    def infer(op: Any) -> list[TensorSpec]:
        check_one(op.index, "the number of the branch", "element")
        if not op.branches:
            raise refuse("there is no branch", found=0, wanted="at least one")
        return case_specs(op)

    def infer_kinds(op: Any) -> list[Any]:
        return var_types.of_branches(op.branches, op.inputs)

    def registration(operator: Any) -> Registration:
        return _branch_registration(operator, "branch_subgraph_indices")


@lite_operator("CALL", graphs={"subgraph": "body"})
class CallOp(LiteDefinition):
    """Another subgraph.

    .. math:: outputs = body(inputs)
    """

    inputs = Input(anything, repeated=True, mixed=True)
    outputs = Output(repeated=True)
    body = Attr(Graph)
    control = True

    def infer(op: Any) -> list[TensorSpec]:
        check_inputs(op.body, op.inputs, "body")
        return [v.spec for v in op.body.outputs]

    def infer_kinds(op: Any) -> list[Any]:
        return var_types.of_branches([op.body], op.inputs)

    def registration(operator: Any) -> Registration:
        return _branch_registration(operator, "subgraph")


@lite_operator("STABLEHLO_COMPOSITE", graphs={"decomposition_subgraph_index": "decomposition"})
class CompositeOp(LiteDefinition):
    """An operator of this name, which a delegate may know; otherwise the subgraph that defines it.

    .. math:: outputs = decomposition(inputs)

    composite_attributes: a FlexBuffer.
    """

    inputs = Input(anything, repeated=True, mixed=True)
    outputs = Output(repeated=True)
    composite_name = Attr(str, default="")
    decomposition = Attr(Graph)
    control = True

    def infer(op: Any) -> list[TensorSpec]:
        check_inputs(op.decomposition, op.inputs, "decomposition")
        return [v.spec for v in op.decomposition.outputs]

    def infer_kinds(op: Any) -> list[Any]:
        return var_types.of_branches([op.decomposition], op.inputs)

    def registration(operator: Any) -> Registration:
        return _branch_registration(operator, "decomposition_subgraph_index")


@lite_operator("WHILE", graphs={"cond_subgraph_index": "cond", "body_subgraph_index": "body"})
class WhileOp(LiteDefinition):
    """A subgraph run again and again, on its own results, while a condition on them holds.

    The shapes of the body's inputs must hold in every iteration.

    .. math:: v^{(0)} = variables, v^{(t+1)} = body(v^{(t)}) while cond(v^{(t)})
    """

    variables = Input(anything, repeated=True, mixed=True)
    outputs = Output(repeated=True)
    cond = Attr(Graph)
    body = Attr(Graph)
    control = True

    def infer(op: Any) -> list[TensorSpec]:
        check_inputs(op.cond, op.variables, "condition")
        check_inputs(op.body, op.variables, "body")
        if [v.dtype.name for v in op.cond.outputs] != ["bool"]:
            raise refuse(
                "the condition gives one bool", found=[v.spec.short() for v in op.cond.outputs], wanted="one bool"
            )
        if (results := [v.dtype.name for v in op.body.outputs]) != (
            variables := [v.dtype.name for v in op.body.inputs]
        ):
            raise InvalidArgumentError(what="the body gives other types than it takes", found=results, wanted=variables)
        return [v.spec for v in op.body.inputs]

    def infer_kinds(op: Any) -> list[str]:
        return [of_dtype(v.dtype) for v in op.body.inputs]  # handles of variables pass from iteration to iteration

    def registration(operator: Any) -> Registration:
        from ..runtime.while_loop import WhileRegistration

        return WhileRegistration(operator.name)
