"""Kinds of variables: what every operator of the catalogue takes and gives, and the facts of 7.2.

Lives here: the walk over the catalogue, by declarations and by what really comes out of the tables' rows.
Not here: gradients that are rows (tests/scopes/test_backward_numbers.py), LoDs with numbers (test_lod_tensor.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checks import watched, works
from test_operators import TABLES

import opwright as ow
from each_row import each_row
from opwright.core import dtypes, errors
from opwright.core.dtypes import DType
from opwright.core.specs import TensorSpec
from opwright.graph import Graph
from opwright.ops import registry, var_types
from opwright.ops.indexed_slices import IndexedSlices

CATALOGUE = registry.catalogue()


def rows_of(values: Any, indices: Any, n: int) -> IndexedSlices:
    values = ow.constant(values)
    return IndexedSlices(values, ow.constant(indices), ow.constant([n, *values.shape[1:]]))


# ---- the whole catalogue --------------------------------------------------------------------------------------------


@each_row("op", CATALOGUE.values(), ids=list(CATALOGUE))
def test_every_input_says_what_it_takes(op: Any) -> None:
    for declared in op.inputs:
        takes = var_types.accepted(declared)
        assert takes
        assert set(takes) <= set(var_types.KINDS)
        names = {d.name for d in declared.dtypes}
        assert ("list" in takes) == ("variant" in names), "lists are taken where the dtype is variant, and only there"
        assert ("object" in takes) == ("resource" in names)
        if "rows" in takes:
            assert declared.kinds is not None, "rows are taken only where it is declared"


def _free(op: Any) -> list[Any]:
    """The outputs whose dtype no declaration tells."""
    return [o for o in op.outputs if o.dtype is None and o.like is None and o.kind is None and op.kinds_rule is None]


@each_row("op", CATALOGUE.values(), ids=list(CATALOGUE))
def test_nothing_is_undeclared_that_could_be_something_else(op: Any) -> None:
    """Where the dtype follows from an attribute or a graph, no list and no handle can come, or the kind is said."""
    for output in _free(op):
        assert not any(a.type in (Graph, [Graph]) for a in op.attr_defs.values()), "a graph's outputs can be anything"
        for attr in op.attr_defs.values():
            if attr.type in (DType, [DType]):
                for dtype in (dtypes.variant, dtypes.resource):
                    assert not _can_give(op, attr, dtype), f"{output.name} can be of {dtype.name} by {attr.name}"


def _can_give(op: Any, attr: Any, dtype: DType) -> bool:
    """Whether some call of the tables gives outputs of this dtype when the attribute asks for it."""
    for called, bound, inputs, _ in _calls():
        if called is not op:
            continue
        try:
            other = op.bind({**bound.attrs, attr.name: [dtype] if isinstance(attr.type, list) else dtype})
            specs = op.infer(other, inputs)
            op.compute(
                other,
                [None if x is None else [y._array for y in x] if isinstance(x, tuple) else x._array for x in inputs],
            )
        except Exception:
            continue
        flat = [s for spec in specs for s in (spec if isinstance(spec, list) else [spec])]
        if any(s.dtype is dtype for s in flat):
            return True
    return False


_found: list[Any] = []


def _calls() -> list[Any]:
    """Every kind of call in the tables' rows, once: (operator, attributes, inputs, result)."""
    if not _found:
        seen: dict[Any, Any] = {}
        for rows in TABLES.values():
            for row in rows:
                if not works(row):
                    continue
                with watched() as calls:
                    row.run()
                for op, bound, inputs, result in calls:
                    flat = [y for x in inputs for y in (x if isinstance(x, tuple) else (x,))]
                    spelt = [None if y is None else y.spec.short() for y in flat]
                    seen.setdefault(repr((op.name, bound, spelt)), (op, bound, inputs, result))
        _found.extend(seen.values())
    return _found


def test_what_comes_out_of_every_row_has_the_kind_that_was_inferred() -> None:
    covered = set()
    for op, bound, inputs, result in _calls():
        read = [
            None if x is None else [var_types.of_value(y) for y in x] if isinstance(x, tuple) else var_types.of_value(x)
            for x in inputs
        ]
        said = ["dense" if k == "lod" else k for k in op.infer_kinds(read, bound.attrs, inputs)]  # offsets come apart
        assert len(said) == len(op.outputs)
        shown = [(o, k) for o, k in zip(op.outputs, said) if not o.intermediate]
        results = [] if not shown else [result] if len(shown) == 1 else list(result)
        for (output, kind), value in zip(shown, results, strict=True):
            came = [var_types.of_value(y) for y in value] if output.repeated else var_types.of_value(value)
            if output.repeated:
                kind = list(kind) if isinstance(kind, (list, tuple)) else [kind] * len(came)
            assert came == kind, f"{op.name}, output {output.name}: {came} came out of {read}, inferred {kind}"
        covered.add(op.name)
    assert len(covered) > 350


# ---- the facts of 7.2 -----------------------------------------------------------------------------------------------

SUM = registry.get("AddN")


@pytest.mark.parametrize(
    ("read", "gives"),
    [
        (["dense", "dense"], "dense"),
        (["rows", "dense"], "dense"),
        (["dense", "rows", "rows"], "dense"),
        (["rows", "rows"], "rows"),
        (["rows"], "rows"),
        (["list", "list"], "list"),
        (["lod", "dense"], "lod"),
    ],
)
def test_kind_of_a_sum(read: list[str], gives: str) -> None:
    assert SUM.infer_kinds([read]) == [gives]


@pytest.mark.parametrize("read", [["list", "dense"], ["rows", "list"]])
def test_a_sum_of_lists_and_others_lists_them(read: list[str]) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=rf"AddN[\s\S]*{read[0]}.*{read[1]}"):
        SUM.infer_kinds([read])


def test_the_sum_computes_what_its_kind_says() -> None:
    a, b = rows_of([[1.0], [2.0]], [3, 0], 4), rows_of([[10.0], [20.0]], [3, 3], 4)
    total = var_types.call_on_rows(SUM, {}, [[a, b]])
    np.testing.assert_array_equal(total.indices, [0, 3])
    np.testing.assert_array_equal(total.values, [[2.0], [31.0]])
    dense = var_types.call_on_rows(SUM, {}, [[a, ow.ones([4, 1])]])
    np.testing.assert_array_equal(dense, [[3.0], [1.0], [1.0], [2.0]])
    lists = [registry.get("ListFromTensor")(ow.constant(x)) for x in ([1.0, 2.0], [5.0, 7.0], [1.0, 1.0])]
    np.testing.assert_array_equal(registry.get("ListStack")(SUM(lists), element_dtype=ow.float32), [7.0, 10.0])


@pytest.mark.parametrize("name", ["Identity", "Cast", "Neg"])
def test_pass_through_keeps_the_kind_and_the_dtype(name: str) -> None:
    op = registry.get(name)
    attrs = {"dtype": ow.float32} if name == "Cast" else {}
    for kind in ("dense", "lod", "rows"):
        assert op.infer_kinds([kind], attrs) == [kind]
    inputs = rows_of([[1.5], [2.5]], [2, 0], 3)
    result = var_types.call_on_rows(op, attrs, [inputs])
    sign = -1 if name == "Neg" else 1
    assert result.dtype is inputs.dtype
    np.testing.assert_array_equal(result.to_dense(), sign * inputs.to_dense().numpy())


def test_lists_and_handles_pass_through_identity() -> None:
    for kind in ("list", "object"):
        assert registry.get("Identity").infer_kinds([kind]) == [kind]


def test_an_optimizers_output_is_of_its_parameters_kind() -> None:
    @ow.operator
    class KindsStep:
        """One step down the gradient, which may be rows."""

        param = ow.Input(ow.floating, kinds=("dense", "lod", "rows"))
        grad = ow.Input(ow.floating, like="param", kinds=("dense", "rows"))
        new_param = ow.Output(like="param", kind="as param")

        def compute(op, param: Any, grad: Any) -> Any:
            return param - grad

        def on_rows(op, param: Any, grad: Any) -> Any:
            return param - grad.to_dense()

    step: Any = KindsStep
    for param in ("dense", "lod", "rows"):
        for grad in ("dense", "rows"):
            assert step.infer_kinds([param, grad]) == [param]
    result = var_types.call_on_rows(step, {}, [ow.ones([3, 1]), rows_of([[0.5]], [1], 3)])
    np.testing.assert_array_equal(result, [[1.0], [0.5], [1.0]])


# ---- reading what is not taken --------------------------------------------------------------------------------------


def test_rows_are_not_read_as_dense() -> None:
    """9.2: an error that names the operator and the input, and says what to do."""
    with pytest.raises(errors.InvalidArgumentError, match=r"MatMul 'here'.*'b' is sparse rows[\s\S]*to_dense"):
        registry.get("MatMul").infer_kinds(["dense", "rows"], {}, name="here")
    with pytest.raises(errors.InvalidArgumentError, match=r"Concat.*'values' is sparse rows"):
        var_types.call_on_rows(registry.get("Concat"), {"axis": 0}, [[ow.ones([1, 1]), rows_of([[1.0]], [0], 3)]])
    with pytest.raises(errors.InvalidArgumentError, match=r"Add.*'y' is a list of tensors"):
        registry.get("Add").infer_kinds(["dense", "list"])
    with pytest.raises(errors.InvalidArgumentError, match="no known kind"):
        registry.get("Add").infer_kinds(["dense", "sparse"])


def test_eager_calls_make_rows_dense_as_before() -> None:
    inputs = rows_of([[1.0]], [1], 3)
    np.testing.assert_array_equal(ow.add(inputs, 1.0), [[1.0], [2.0], [1.0]])


# ---- LoDs, attributes, graphs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "read", "attrs", "gives"),
    [
        ("Tanh", ["lod"], {}, "lod"),
        ("Add", ["dense", "lod"], {}, "lod"),
        ("Add", ["dense", "dense"], {}, "dense"),
        ("Shape", ["lod"], {}, "dense"),
        ("ListGet", ["list", "dense", None], {"element_dtype": dtypes.variant}, "list"),
        ("ListGet", ["list", "dense", None], {"element_dtype": dtypes.float32}, "dense"),
        ("ListPush", ["list", "dense"], {}, "list"),
        ("ReadVariable", ["object"], {"dtype": dtypes.float32, "shape": []}, "dense"),
        ("Undefined", [], {"dtype": dtypes.variant, "shape": []}, "list"),
        ("Sum", ["lod"], {"axis": None}, "dense"),
    ],
)
def test_kinds_follow_from_definitions(name: str, read: list[Any], attrs: dict[str, Any], gives: str) -> None:
    assert registry.get(name).infer_kinds(read, attrs) == [gives]


def test_kinds_of_several_outputs_by_an_attribute() -> None:
    op = registry.get("IteratorNext")
    attrs = {"dtypes": [dtypes.float32, dtypes.variant, dtypes.resource], "shapes": [[], [], []]}
    assert op.infer_kinds(["object"], attrs) == [["dense", "list", "object"]]


def test_kinds_go_through_branches_and_loops() -> None:
    def f(x: Any) -> Any:
        if ow.reduce_sum(x) > 0.0:
            y = ow.tanh(x)
        else:
            y = x
        ta = ow.TensorArray(ow.float32, size=0, dynamic_size=True, element_shape=[2])
        for i in ow.range(3):
            ta = ta.write(i, x * ow.cast(i, ow.float32))
        return y, ta.stack()

    graph = ow.function(f, input_signature=[ow.TensorSpec([2], name="x")]).get_concrete_function().graph
    result = var_types.of_graph(graph)
    assert set(result) == {v.name for v in graph.values()}
    for value in graph.values():
        assert result[value.name] == ("list" if value.dtype.name == "variant" else "dense")
    assert "list" in result.values()
    marked = var_types.of_graph(graph, {"x": "lod"})
    (branch,) = [n for n in graph.nodes if n.op.name == "If"]
    assert marked[branch.outputs[0].name] == "lod"


def test_a_graph_names_the_node_that_reads_rows() -> None:
    graph = (
        ow.function(
            lambda x: ow.tanh(ow.negative(x, name="n"), name="t"), input_signature=[ow.TensorSpec([2], name="x")]
        )
        .get_concrete_function()
        .graph
    )
    with pytest.raises(errors.InvalidArgumentError, match=r"Tanh 't'.*'x' is sparse rows"):
        var_types.of_graph(graph, {"x": "rows"})


# ---- definitions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"x": lambda: ow.Input(kinds=("dense", "sparse")), "y": lambda: ow.Output(like="x")}, "kinds are among"),
        ({"x": lambda: ow.Input(kinds=()), "y": lambda: ow.Output(like="x")}, "kinds are among"),
        ({"x": lambda: ow.Input(), "y": lambda: ow.Output(like="x", kind="as z")}, "kind is among"),
        ({"x": lambda: ow.Input(kinds=("dense", "rows")), "y": lambda: ow.Output(like="x")}, "on_rows"),
        (
            {"x": lambda: ow.Input(), "y": lambda: ow.Output(like="x"), "on_rows": lambda: lambda op, x: x},
            "no input takes",
        ),
    ],
)
def test_definitions_that_contradict_themselves(body: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ow.operator(type("KindsWrong", (), {k: v() for k, v in body.items()}))


def test_a_definition_may_have_a_rule_of_its_own() -> None:
    class KindsChoice:
        x = ow.Input(ow.floating)
        y = ow.Output(like="x")
        ragged = ow.Attr(bool, default=False)

        def infer_kinds(op) -> str:
            return "lod" if op.ragged or op.x == "lod" else "dense"

        def compute(op, x: Any) -> Any:
            return x

    op: Any = ow.operator(KindsChoice)
    assert op.infer_kinds(["dense"], {"ragged": True}) == ["lod"]
    assert op.infer_kinds(["dense"], {}) == ["dense"]
    assert op.infer(op.bind({}), [TensorSpec([2])])[0].shape == [2]
