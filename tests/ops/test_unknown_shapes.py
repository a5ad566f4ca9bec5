"""Inference with sizes that are not known: every operator that runs in a row of a table, each dimension in turn.

Lives here: that inference does not refuse what it cannot see, that what it says holds of what comes out, and that a row
of an error is refused by inference already.  Not here: the rows (cases_*.py), inference by levels of knowledge, all
dimensions or the rank of all inputs at once (checks.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from checks import in_turn, watched, works
from test_operators import TABLES

from each_row import each_row
from opwright.core.specs import TensorSpec
from opwright.eager.tensor import make
from opwright.ops import dispatch
from opwright.ops.arguments import tensors

# Rows of errors that depend on values, where neither zeros nor ones are right values: operator to what is wanted.
NEEDS_VALUES: dict[str, str] = {
    **dict.fromkeys(("Cholesky", "Lu", "MatrixInverse", "MatrixSolve"), "a matrix that can be factored"),
    **dict.fromkeys(
        ("ListAdd", "ListConcat", "ListGather", "ListGet", "ListPop", "ListPush", "ListSet", "ListSplit", "ListStack"),
        "what is in a list is known when it is there",
    ),
    **dict.fromkeys(("SampleDistortedBoundingBox", "StatelessSampleDistortedBoundingBox"), "boxes with two corners"),
    "HistogramFixedWidth": "a range of two different ends",
    "InvertPermutation": "a permutation",
    "MergeRows": "the shape of the whole",
    "RowsAt": "an index that is there",
    **dict.fromkeys(
        (
            "LodReset",
            "SequenceConcat",
            "SequenceEnumerate",
            "SequencePad",
            "SequencePool",
            "SequenceRepad",
            "SequenceReshape",
            "SequenceScatter",
            "SequenceSoftmax",
        ),
        "offsets that end at the last row",
    ),
    "UnicodeTranscode": "text in the encoding that was named",
}

_seen: set[str] = set()  # calls that were looked at: many rows run the same helpers


def _calls(row: Any) -> list[Any]:
    """The operators that run in a row, each kind of call once."""
    with watched() as seen:
        row.run()
    fresh = {repr((op.name, bound, _shapes(inputs))): (op, bound, inputs, result) for op, bound, inputs, result in seen}
    new = [call for key, call in fresh.items() if key not in _seen]
    _seen.update(fresh)
    return new


def _flat(inputs: Any) -> list[Any]:
    return [y for x in inputs if x is not None for y in (x if isinstance(x, tuple) else (x,))]


def _shapes(inputs: Any) -> list[str]:
    return [x.spec.short() for x in _flat(inputs)]


def _weakened(inputs: Any) -> Iterator[tuple[str, list[Any]]]:
    """The specs of the inputs with one dimension unknown, or the rank of one; the others as they are, with values."""
    flat = _flat(inputs)
    for k, x in enumerate(flat):
        dims = list(x.spec.shape)
        for d in range(len(dims)):
            spec = TensorSpec([*dims[:d], None, *dims[d + 1 :]], x.dtype)
            yield f"dimension {d} of tensor {k}", _with(inputs, k, spec)
        yield f"rank of tensor {k}", _with(inputs, k, TensorSpec(None, x.dtype))


def _with(inputs: Any, k: int, spec: Any) -> list[Any]:
    count = iter(range(10**6))

    def one(x: Any) -> Any:
        return spec if next(count) == k else x

    return [None if x is None else tuple(map(one, x)) if isinstance(x, tuple) else one(x) for x in inputs]


def _results(op: Any, result: Any) -> list[list[Any]]:
    shown = [o for o in op.outputs if not o.intermediate]
    results = [] if not shown else [result] if len(shown) == 1 else list(result)
    return [list(r) if o.repeated else [r] for o, r in zip(shown, results)]


ROWS = [pytest.param(row, id=f"{key}-{i}") for key, rows in TABLES.items() for i, row in enumerate(rows)]


@each_row(
    "row",
    [p for p in ROWS if works(p.values[0]) and in_turn(p.values[0])],
    by=lambda row: row.key.rpartition(".")[2][:1].lower(),
)
def test_one_size_unknown(row: Any) -> None:
    """Nothing is refused, and what comes out is what was said (6.2)."""
    for op, bound, inputs, result in _calls(row):
        for what, specs in _weakened(inputs):
            where = f"{op.name}, {what} unknown, of {_shapes(inputs)}"
            try:
                promised = op.infer(bound, specs)
            except Exception as error:
                raise AssertionError(f"{where}: refused: {error}") from error
            promised = [s if isinstance(s, list) else [s] for s, o in zip(promised, op.outputs) if not o.intermediate]
            for ys, said in zip(_results(op, result), promised, strict=True):
                for y, spec in zip(ys, said, strict=True):
                    shape = TensorSpec(spec.shape, spec.dtype)
                    assert y.spec.is_subtype_of(shape), f"{where}: {y.spec.short()} came out, inferred {shape.short()}"


# ---- rows of errors -------------------------------------------------------------------------------------------------


def _refused(row: Any) -> Any:
    """The call of an operator that fails in a row of an error: (operator, attributes, inputs); None where none does."""
    failed: list[Any] = []
    run = dispatch._eager

    def spy(op: Any, inputs: Any, bound: Any, name: str | None) -> Any:
        try:
            taken = tensors(op, inputs, make, name)
        except Exception:
            return run(op, inputs, bound, name)  # no tensors at all: refused when it is called, traced or not
        try:
            return run(op, taken, bound, name)
        except Exception:
            failed.append((op, bound, taken))
            raise

    dispatch._eager = spy
    try:
        row.run()
    except Exception:
        pass
    finally:
        dispatch._eager = run
    return failed[0] if failed else None


def _refuses(op: Any, bound: Any, inputs: Any) -> bool:
    try:
        op.infer(bound, inputs)
    except Exception:
        return True
    return False


def _runs_on_other_values(op: Any, bound: Any, inputs: Any) -> bool:
    """Whether the call works on zeros or ones of the same dtypes and shapes."""
    for number in (0, 1):

        def one(x: Any, number: int = number) -> Any:
            if x.dtype.is_handle:
                return x
            filled = b"1" if x.dtype.name == "string" else number
            return make(np.full(tuple(x.shape), filled, x.dtype.np), x.dtype, None)

        for kept in (None, *range(len(inputs))):  # all others, or all but one
            other = [
                x if x is None or k == kept else tuple(map(one, x)) if isinstance(x, tuple) else one(x)
                for k, x in enumerate(inputs)
            ]
            other = _with_offsets(op, other)
            try:
                dispatch.call(op, other, bound)
            except Exception:
                continue
            return True
    return False


def _with_offsets(op: Any, inputs: list[Any]) -> list[Any]:
    """The inputs with offsets that are right for as many sequences: all rows in the last one."""
    operands = dict(zip(op.input_names, inputs))

    def level(tensor: Any, rows: int) -> Any:
        return make(np.array([0] * (tensor.shape[0] - 1) + [rows]), tensor.dtype, None) if tensor.shape[0] else tensor

    for declared in op.inputs:
        result, leader = operands[declared.name], operands.get(declared.lod_of or "")
        if result is None or leader is None:
            continue
        if isinstance(leader, tuple):
            operands[declared.name] = tuple(level(t, x.shape[0]) for t, x in zip(result, leader))
        elif isinstance(result, tuple):
            rows, levels = leader.shape[0], []
            for tensor in reversed(result):
                levels.insert(0, level(tensor, rows))
                rows = tensor.shape[0] - 1
            operands[declared.name] = tuple(levels)
        else:
            operands[declared.name] = level(result, leader.shape[0])
    return list(operands.values())


@each_row("row", [p for p in ROWS if not works(p.values[0])], by=lambda row: row.key.rpartition(".")[2][:1].lower())
def test_what_can_be_refused_by_shapes_is(row: Any) -> None:
    """An error that is not one of values comes from inference, which tracing does too (6.6)."""
    call = _refused(row)
    if call is None:
        return
    op, bound, inputs = call

    def spec(x: Any) -> Any:
        return TensorSpec(x.spec.shape, x.spec.dtype)

    specs = [None if x is None else tuple(map(spec, x)) if isinstance(x, tuple) else spec(x) for x in inputs]
    if _refuses(op, bound, specs) or _refuses(op, bound, inputs) or op.name in NEEDS_VALUES:
        return  # by shapes alone, or with them by values that are often constants of the graph: sizes, axes
    assert _runs_on_other_values(op, bound, inputs), (
        f"{op.name} on {_shapes(inputs)}: only compute refuses it, and refuses it with other values too"
    )


def test_exceptions_are_still_needed() -> None:
    names = {call[0].name for rows in TABLES.values() for row in rows if not works(row) if (call := _refused(row))}
    assert set(NEEDS_VALUES) <= names
