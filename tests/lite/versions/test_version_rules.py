"""An operator for every rule: each version in the table is stamped for an operator that is made to need it.

Operators are made from the conditions; that they need the version is then asked of `stamp` and of the flags by name.
What official files hold is in test_official_stamps.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from each_row import each_row
from opwright.lite.format import objects, schema, versions
from opwright.lite.format.versions import OperatorView

T = schema.TensorType
OPS = [m.name for m in schema.BuiltinOperator if "special" not in versions.facts(m.name)]
RULES = [(name, i) for name in OPS for i in range(len(versions.facts(name).get("rules", ())))]
TYPES = ("FLOAT32", "INT32", "BOOL", "INT16", "INT8", "UINT8", "FLOAT16", "COMPLEX64", "STRING", "INT4", "INT64")
Setting = tuple[str, Any]


def ways(condition: dict[str, Any]) -> Iterator[list[Setting]]:
    """The ways to make a condition hold, as lists of settings for `made`."""
    if "all" in condition:
        for parts in itertools.product(*(list(ways(part)) for part in condition["all"])):
            yield list(itertools.chain(*parts))
    elif "any" in condition:
        for part in condition["any"]:
            yield from ways(part)
    elif "not" in condition:
        yield from ([("not", condition["not"])], [("without quantization", None)], [])
    elif "flag" in condition:
        yield [("flag", condition["flag"])]
    elif "option" in condition:
        value = condition["equals"] if "equals" in condition else condition["not_equals"] + 1
        yield [("option", (condition["option"], value))]
    elif "n_inputs_eq" in condition:
        yield [("inputs", condition["n_inputs_eq"])]
    elif "max_input_rank_gt" in condition:
        yield [("rank", ("input", 0, condition["max_input_rank_gt"] + 1))]
    else:
        side = "input" if "input" in condition else "output"
        place = condition[side]
        if "type_in" in condition:
            yield from ([("type", (side, place, name))] for name in condition["type_in"])
        elif "present" in condition:
            yield [("present", (side, place, condition["present"]))]
        else:
            rank = {"rank_gt": 1, "rank_eq": 0, "rank_ne": 1}
            (key,) = rank.keys() & condition.keys()
            yield [("rank", (side, place, condition[key] + rank[key]))]


def quantization(scales: list[float], axis: int = 0) -> Any:
    return objects.QuantizationParameters(scale=scales, zero_point=[0] * len(scales), quantized_dimension=axis)


def _channels(view: OperatorView, i: int, axis: int, side: str = "inputs") -> None:
    tensor = getattr(view, side)[i]
    shape = [int(n) for n in tensor.shape]
    tensor.shape = shape = shape + [3] * (axis + 1 - len(shape))
    tensor.quantization = quantization([0.5] * shape[axis], axis)


def _grouped(view: OperatorView) -> None:
    view.inputs[0].shape, view.inputs[1].shape = [1, 4, 4, 4], [4, 3, 3, 2]


def _rescaled(view: OperatorView) -> None:
    for tensor in (*view.inputs[:2], view.outputs[0]):
        tensor.quantization = quantization([2.0])


def _different(view: OperatorView) -> None:
    view.inputs[0].shape = [*view.inputs[1].shape[:-1], int(view.inputs[1].shape[-1]) + 1]


MAKE_FLAG = {
    "builtin_options_present": lambda view: None,
    "conv2d_grouped": _grouped,
    "filter_per_channel_axis0": lambda view: _channels(view, 1, 0),
    "filter_per_channel_axis3": lambda view: _channels(view, 1, 3),
    "weights_per_channel_axis0": lambda view: _channels(view, 1, 0),
    "weights_sparse": lambda view: setattr(view.inputs[1], "sparsity", objects.SparsityParameters()),
    "table_per_row_scales": lambda view: _channels(view, 1, 0),
    "any_operand_has_quantization_table": lambda view: setattr(view.inputs[1], "quantization", quantization([])),
    "input0_has_quantization_table": lambda view: setattr(view.inputs[0], "quantization", quantization([])),
    "mul_rescale_ge_1": _rescaled,
    "input_per_channel": lambda view: _channels(view, 0, 0),
    "output_per_channel": lambda view: _channels(view, 0, 0, "outputs"),
    "binary_broadcast": _different,
}


def made(name: str, settings: list[Setting], type: str, rank: int, n_inputs: int) -> OperatorView:
    """An operator with tensors of one type and rank but for what the settings say."""
    options = versions.facts(name).get("options")
    table = objects.table_class(options)() if options else None
    actual = dict(s for s in settings if s[0] == "inputs")
    tensors = [
        objects.Tensor(type=T[type], shape=[3] * rank, quantization=quantization([0.5]), name=str(i))
        for i in range(actual.get("inputs", n_inputs) + 3)
    ]
    view = OperatorView(tensors[:-3], tensors[-3:], table)
    for key, value in settings:
        if key == "option":
            setattr(table, *value)
        elif key in ("type", "rank", "present"):
            side, place, expected = value
            row = view.inputs if side == "input" else view.outputs
            while len(row) <= place:
                row.append(objects.Tensor(type=T[type], shape=[3] * rank, quantization=quantization([0.5])))
            if key == "present":
                row[place] = row[place] if expected else None
            elif row[place] is not None:
                setattr(row[place], *(("type", T[expected]) if key == "type" else ("shape", [3] * expected)))
    for key, value in settings:
        if key == "flag":
            MAKE_FLAG[value](view)
        if key == "without quantization":
            for tensor in view.inputs:
                tensor.quantization = None
    return view


def search(name: str, index: int) -> OperatorView | None:
    """An operator for which the rule of this index is the first that holds."""
    rules = versions.facts(name)["rules"]
    condition = rules[index][1]
    scaled = list(ways(condition))
    for settings in (*scaled, *([*way, ("without quantization", None)] for way in scaled)):
        for n, rank, type in itertools.product((3, 2, 5, 20, 1), (4, 2, 1, 5), TYPES):
            view = made(name, settings, type, rank, n)
            held = (i for i, (_, rule) in enumerate(rules) if versions.holds(rule, view))
            if next(held, None) == index:
                return view
    return None


@each_row("name, index", RULES, ids=[f"{n}-{i}" for n, i in RULES], by=lambda name, index: name[:1])
def test_an_operator_for_every_rule(name: str, index: int) -> None:
    version, condition = versions.facts(name)["rules"][index]
    view = search(name, index)
    assert view is not None, versions.describe(condition)
    assert versions.stamp(name, view) == version
    assert versions.stamp_and_reason(name, view)[1] == versions.describe(condition)


# Registered by the official run time, and stamped by no rule of its converter.
STAMPED_BY_NO_RULE = {
    ("DEQUANTIZE", 4),
    ("EMBEDDING_LOOKUP", 2),
    ("EMBEDDING_LOOKUP", 3),
    ("EQUAL", 4),
    ("QUANTIZE", 6),
}
# Stamped, and registered by no official run time so far.
REGISTERED_NOWHERE = {("LSTM", 5), ("UNIDIRECTIONAL_SEQUENCE_LSTM", 5)}


def test_rules_and_registrations_cover_each_other():
    stamped, registered, timed = set(), set(), set()
    for name in OPS:
        row = versions.facts(name)
        stamped |= {(name, version) for version, _ in row.get("rules", ())} | {(name, row["default"])}
        timed |= {(name, int(version)) for version in row["min_runtime"]}
        least, most = versions.resolver_range(name) or (1, 0)
        registered |= {(name, version) for version in range(least, most + 1)}
    assert registered - stamped == STAMPED_BY_NO_RULE
    unregistered = {(name, 1) for name in OPS if versions.resolver_range(name) is None}
    assert stamped - registered - unregistered == REGISTERED_NOWHERE
    assert timed - registered == {("STABLEHLO_CBRT", 1)}
    assert registered <= timed
    assert len(timed) == 441


@each_row("name", OPS)
def test_later_versions_never_need_an_earlier_run_time_than_the_operator(name):
    times = {int(v): versions.runtime_key(t) for v, t in versions.facts(name)["min_runtime"].items()}
    assert all(times[min(times)] <= t for t in times.values())
