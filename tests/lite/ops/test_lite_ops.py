"""Every operator of the lite dialect against the official reference kernels, and its own promises."""

from __future__ import annotations

import cases
import numpy as np
import pytest
from one_operator import Case, array_of, feeds, model_of, official, ours, output_types

import opwright.lite.ops as dialect
from each_row import each_row
from opwright.core.errors import OpError
from opwright.core.specs import TensorSpec
from opwright.lite.format import Model, versions
from opwright.lite.ops import get, types
from opwright.ops.attributes import REQUIRED
from thorough import sampled

pytestmark = pytest.mark.usefixtures("reference_unless_thorough")

GOOD = [(name, row) for name, rows in cases.CASES.items() for row in rows if not row.says]
BAD = [(name, row) for name, rows in cases.CASES.items() for row in rows if row.says]


def operator(name: str, row: Case) -> str:
    """The group of a row."""
    return name.split("_")[0]


def close(actual: np.ndarray, expected: np.ndarray, row: Case) -> None:
    assert actual.dtype == expected.dtype or actual.dtype.kind == "O"
    assert actual.shape == expected.shape
    if actual.dtype.kind in "fc":
        np.testing.assert_allclose(actual, expected, rtol=max(row.rtol, np.finfo(actual.dtype).eps * 2), atol=row.atol)
    else:
        assert actual.tolist() == expected.tolist()


@each_row("name, row", sampled([g for g in GOOD if g[1].oracle], 3, by=lambda name, row: name), by=operator)
def test_agrees_with_the_official_kernels(name, row):
    pytest.importorskip("ai_edge_litert.interpreter")
    model = model_of(name, row, output_types(name, row))
    for actual, expected in zip(ours(model, feeds(row)), official(model, feeds(row)), strict=True):
        close(actual, expected, row)


def test_log_softmax_of_a_scalar_is_that_of_a_row_of_one():
    row = next(row for name, row in GOOD if name == "LOG_SOFTMAX" and not row.oracle)
    (result,) = ours(model_of("LOG_SOFTMAX", row, output_types("LOG_SOFTMAX", row)), feeds(row))
    assert result == 0.0


@each_row("name, row", sampled(GOOD, 6, by=lambda name, row: name), by=operator)
def test_constants_may_be_computed(name, row):
    """With every constant given when the model runs, outputs are dynamic and the answer is the same."""
    outputs = output_types(name, row)
    fixed = ours(model_of(name, row, outputs), feeds(row))
    moving = ours(model_of(name, row, outputs, all_dynamic=True), feeds(row, all_dynamic=True))
    for actual, expected in zip(moving, fixed, strict=True):
        assert actual.shape == expected.shape
        close(actual, expected, row)  # of two engines, where one of them takes no computed weights


@each_row("name, row", BAD, by=operator)
@pytest.mark.parametrize("all_dynamic", [False, True], ids=["constant", "computed"])
def test_refuses_what_does_not_fit(name, row, all_dynamic):
    outputs = ["FLOAT32" if o.dtype is None else types.name_of(o.dtype) for o in get(name).outputs]
    try:
        outputs = output_types(name, row)
    except (OpError, ValueError):
        first = next((array_of(v) for v in row.inputs if v is not None), np.zeros(1, np.float32))
        outputs = ["INT32" if first.dtype == np.int32 and t == "FLOAT32" and name != "FILL" else t for t in outputs]
    model = model_of(name, row, outputs, all_dynamic)
    with pytest.raises(OpError) as raised:
        ours(model, feeds(row, all_dynamic))
    assert isinstance(raised.value, RuntimeError)
    text = str(raised.value)
    assert f"Node number 0 ({name}) failed to " in text
    if not all_dynamic:
        assert row.says in text, text


@each_row("name, row", GOOD, by=operator)
def test_infers_with_unknown_sizes(name, row):
    """What is inferred of less knowledge is a supertype of what is inferred of more."""
    op = get(name)

    class Half:
        def __init__(self, spec, constant=None):
            self.spec, self.constant = spec, constant

    arrays = [array_of(v) for v in row.inputs]
    known = [None if a is None else TensorSpec(a.shape, a.dtype if a.dtype.kind != "O" else "string") for a in arrays]

    def infer(specs, constants):
        values = [None if s is None else Half(s, c) for s, c in zip(specs, constants)]
        grouped = [tuple(values) if i.repeated else values.pop(0) if values else None for i in op.inputs]
        result = op.infer(op.bind(row.options), grouped)
        return [s for spec in result for s in (spec if isinstance(spec, list) else [spec])]

    nothing = [None] * len(arrays)
    full = infer(known, arrays)
    blind = infer(known, nothing)
    batch = [s and TensorSpec([None, *list(s.shape)[1:]] if s.shape.rank else [], s.dtype) for s in known]
    for knowing in (infer(batch, nothing), infer([s and TensorSpec(None, s.dtype) for s in known], nothing), blind):
        assert len(knowing) == len(full)
        for less, more in zip(knowing, full):
            assert more.is_subtype_of(less), (more, less)


def test_every_operator_has_cases():
    assert set(dialect.list_names()) - set(cases.ELSEWHERE) == set(cases.CASES)
    for name, rows in cases.CASES.items():
        assert any(not row.says for row in rows), name


@each_row("name", sorted(cases.CASES))
def test_options_and_versions_are_those_of_the_format(name):
    op, row = get(name), versions.facts(name)
    assert op.options == row["options"]
    least, most = versions.resolver_range(name)
    assert least <= op.versions[0] <= op.versions[1] <= most
    assert op.doc
    assert all(a.default is not REQUIRED for a in op.attr_defs.values())


@each_row("name", sorted(cases.CASES))
def test_options_survive_the_file(name):
    op = get(name)
    attrs = next((row.options for row in cases.CASES[name] if row.options and not row.says), {})
    bound = op.bind(attrs)
    row = next(row for row in cases.CASES[name] if not row.says)
    model = model_of(name, Case(row.inputs, {**row.options, **attrs}), output_types(name, row))
    operator = Model.read(model.to_bytes()).subgraphs[0].operators[0]
    options = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
    kept = {k: v for k, v in bound.attrs.items() if k in op.option_names}
    again = op.from_options(options).attrs
    for key, value in kept.items():
        assert again[key] == (pytest.approx(value) if isinstance(value, float) else value)
