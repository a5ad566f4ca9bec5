"""Test the models of published advisories for the official run time: each is rejected with an error, or runs.

A row is an advisory's number, the model it was about (as small as can be) and the words of the error, or None where
the model means something: then it must run. Source: the descriptions at https://nvd.nist.gov/vuln/detail/<number>.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from good_models import good
from lite_kit import Build
from one_operator import Case, Const, f32, feeds, model_of, output_types

from opwright.core.errors import OpError
from opwright.lite import Interpreter
from opwright.lite.format import Model, objects
from opwright.lite.ops import get

i32: Callable[..., Any] = lambda *values: np.array(values, np.int32)  # noqa: E731
const: Callable[..., Any] = lambda *values: Const(list(values))  # noqa: E731


def broken(
    name: str, *inputs: Any, outputs: int = 1, kind: str = "", good: Any = None, **options: Any
) -> tuple[Model, list[Any]]:
    """A model of one operator. options: put into its table unchecked, over `good` ones; outputs: their number, and
    kind: their type, where these do not follow from what is broken."""
    row = Case(inputs, dict(good or {}))
    kind = kind or next(np.dtype(getattr(v, "array", v).dtype).name.upper() for v in inputs if v is not None)
    try:
        types = output_types(name, Case(inputs, {**row.options, **options}))
    except OpError:
        types = [kind] * outputs
    model = model_of(name, row, types)
    operator = model.subgraphs[0].operators[0]
    if operator.builtin_options is None and options:
        operator.builtin_options = objects.table_class(get(name).options)()
    for field, value in options.items():
        setattr(operator.builtin_options, field, value)
    return model, feeds(row)


IMAGE = (f32(1, 4, 4, 2), Const(f32(3, 2, 2, 2), np.float32), Const(f32(3), np.float32))
POOLED = {"filter_width": 2, "filter_height": 2, "stride_w": 1, "stride_h": 1}
STEPS = {"stride_w": 1, "stride_h": 1}


def changed(name: str, change: Callable[[Model], Any], at: int = 0) -> tuple[Model, list[Any]]:
    """A model that runs, with one change."""
    model = good()[name][at].model()
    change(model)
    return model, []


def tensor(model: Model, place: int) -> Any:
    return model.subgraphs[0].tensors[model.subgraphs[0].operators[0].inputs[place]]


def left_out(place: int) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        operator = model.subgraphs[0].operators[0]
        operator.inputs = [-1 if i == place else index for i, index in enumerate(np.asarray(operator.inputs).tolist())]

    return change


def itself(model: Model) -> None:
    """The loop's body runs the loop."""
    body = model.subgraphs[2]
    loop = model.subgraphs[0].operators[0]
    body.operators = [
        objects.Operator(
            opcode_index=loop.opcode_index,
            inputs=body.inputs,
            outputs=body.outputs,
            builtin_options=loop.builtin_options,
        )
    ]


def sparse(segments: list[int], indices: list[int]) -> tuple[Model, list[Any]]:
    """A sparse constant [2, 3] in rows, with these segments and column indices."""
    b = Build().tensor("x", data=np.zeros(6, np.float32)).op("DENSIFY", "x", "y")
    model = Model.read(b.done("", "y"))
    columns = objects.DimensionMetadata(
        format=1, array_segments=objects.Int32Vector(values=segments), array_indices=objects.Int32Vector(values=indices)
    )
    model.subgraphs[0].tensors[0].shape = [2, 3]
    model.subgraphs[0].tensors[0].sparsity = objects.SparsityParameters(
        traversal_order=[0, 1], dim_metadata=[objects.DimensionMetadata(format=0, dense_size=2), columns]
    )
    return model, []


def shaped(*sizes: int) -> tuple[Model, list[Any]]:
    return changed("ABS", lambda m: setattr(m.subgraphs[0].tensors[0], "shape", list(sizes)))


def unquantized(model: Model) -> None:
    tensor(model, 0).quantization = objects.QuantizationParameters(scale=np.float32([0.1, 0.2]), zero_point=[0])


def without_data(model: Model) -> None:
    """An input of the node that nothing gives: no constant, no input of the model, no output of a node."""
    model.subgraphs[0].inputs = model.subgraphs[0].inputs[:1]


ROWS: list[tuple[str, str, Callable[[], tuple[Model, list[Any]]], str | None]] = [
    # 2020
    (
        "CVE-2020-15207",
        "an axis before the first",
        lambda: broken("ARG_MAX", f32(2, 3), const(-3), good={"output_type": "INT64"}, kind="INT64"),
        r"axis -3 is out of range",
    ),
    (
        "CVE-2020-15207",
        "axes before the first",
        lambda: broken("SUM", f32(2, 3), const(-9)),
        r"axis -9 is out of range",
    ),
    (
        "CVE-2020-15208",
        "operands of shapes that do not go together",
        lambda: broken("MUL", f32(2, 3), f32(4)),
        "not broadcastable",
    ),
    ("CVE-2020-15209", "an input that nothing gives", lambda: changed("MAXIMUM", without_data), None),
    (
        "CVE-2020-15210",
        "one tensor as input and output",
        lambda: changed("ABS", lambda m: setattr(m.subgraphs[0].operators[0], "outputs", [0])),
        "also an input of the node",
    ),
    (
        "CVE-2020-15211",
        "an output left out",
        lambda: changed("ABS", lambda m: setattr(m.subgraphs[0].operators[0], "outputs", [-1])),
        "tensor index -1",
    ),
    ("CVE-2020-15211", "an input left out", lambda: changed("ABS", left_out(0)), "input 'x' is missing|wrong number"),
    (
        "CVE-2020-15212",
        "negative segment ids",
        lambda: broken("SEGMENT_SUM", f32(3, 2), const(-1, 0, 1)),
        "not sorted, or negative",
    ),
    (
        "CVE-2020-15213",
        "a huge segment id",
        lambda: broken("SEGMENT_SUM", f32(3, 2), const(0, 1, 2**31 - 2)),
        "would take",
    ),
    ("CVE-2020-15214", "unsorted segment ids", lambda: broken("SEGMENT_SUM", f32(3, 2), const(0, 2, 1)), "not sorted"),
    # 2021: divisions by zero
    (
        "CVE-2021-29585",
        "padding by a stride of 0",
        lambda: broken("CONV_2D", *IMAGE, good=STEPS, stride_h=0),
        "stride_h must be positive",
    ),
    (
        "CVE-2021-29586",
        "pooling by a stride of 0",
        lambda: broken("AVERAGE_POOL_2D", IMAGE[0], good=POOLED, stride_w=0),
        "stride_w must be positive",
    ),
    (
        "CVE-2021-29587",
        "blocks of 0",
        lambda: broken("SPACE_TO_DEPTH", f32(1, 2, 2, 1), block_size=0),
        "block_size must be positive",
    ),
    (
        "CVE-2021-29588",
        "a transposed convolution by a stride of 0",
        lambda: broken("TRANSPOSE_CONV", const(1, 4, 4, 3), IMAGE[1], f32(1, 4, 4, 2), good=STEPS, stride_h=0),
        "stride_h must be positive",
    ),
    ("CVE-2021-29589", "parts of nothing", lambda: broken("GATHER_ND", f32(0, 3), const(0)), "index out of bounds"),
    (
        "CVE-2021-29592",
        "a shape without elements",
        lambda: broken("RESHAPE", f32(2, 3), Const(np.zeros(0, np.int32))),
        "a tensor with 6 values, but the requested shape has 1",
    ),
    (
        "CVE-2021-29593",
        "blocks of 0 from the batch",
        lambda: broken("BATCH_TO_SPACE_ND", f32(4, 2, 2, 1), const(0, 2), Const([[0, 0], [0, 0]])),
        "block_shape values must be",
    ),
    (
        "CVE-2021-29594",
        "a convolution of no channels",
        lambda: broken("CONV_2D", f32(1, 4, 4, 2), Const(f32(3, 2, 2, 0), np.float32), None, good=STEPS),
        "depth does not divide",
    ),
    (
        "CVE-2021-29595",
        "depth in blocks of 0",
        lambda: broken("DEPTH_TO_SPACE", f32(1, 2, 2, 4), block_size=0),
        "block_size must be positive",
    ),
    (
        "CVE-2021-29596",
        "a lookup in nothing",
        lambda: broken("EMBEDDING_LOOKUP", i32(0, 1), f32(0, 4)),
        "index out of bounds",
    ),
    (
        "CVE-2021-29597",
        "blocks of 0 to the batch",
        lambda: broken("SPACE_TO_BATCH_ND", f32(1, 2, 2, 1), const(2, 0), Const([[0, 0], [0, 0]])),
        "block_shape values must be",
    ),
    (
        "CVE-2021-29598",
        "filters of rank 0",
        lambda: changed("SVDF", lambda m: setattr(m.subgraphs[0].operators[0].builtin_options, "rank", 0)),
        "rank do not fit",
    ),
    (
        "CVE-2021-29599",
        "a split into no parts",
        lambda: broken("SPLIT", const(0), f32(4, 2), num_splits=0),
        "num_splits|does not split|number of outputs",
    ),
    (
        "CVE-2021-29600",
        "one-hot of no indices",
        lambda: broken(
            "ONE_HOT",
            np.zeros((0, 2), np.int32),
            Const(3),
            Const(1.0, np.float32),
            Const(0.0, np.float32),
            good={"axis": -1},
        ),
        None,
    ),
    (
        "CVE-2021-29602",
        "a depthwise convolution by a stride of 0",
        lambda: broken(
            "DEPTHWISE_CONV_2D",
            IMAGE[0],
            Const(f32(1, 2, 2, 2), np.float32),
            Const(f32(2), np.float32),
            good={**STEPS, "depth_multiplier": 1},
            stride_w=0,
        ),
        "stride_w must be positive",
    ),
    (
        "CVE-2021-29604",
        "values of no keys",
        lambda: broken("HASHTABLE_LOOKUP", i32(1), np.zeros(0, np.int32), f32(0, 2), outputs=2),
        None,
    ),
    (
        "CVE-2021-37680",
        "a product with weights of nothing",
        lambda: broken("FULLY_CONNECTED", f32(2, 3), Const(f32(4, 0), np.float32), None),
        "do not fit the input",
    ),
    (
        "CVE-2021-37683",
        "a division of integers by zero",
        lambda: broken("DIV", i32(1, 2), const(1, 0)),
        "Division by 0",
    ),
    (
        "CVE-2021-37683",
        "a division by a zero that is given",
        lambda: broken("FLOOR_DIV", i32(1, 2), i32(1, 0)),
        "Division by 0",
    ),
    (
        "CVE-2021-37684",
        "pooling over windows of 0",
        lambda: broken("MAX_POOL_2D", IMAGE[0], good=POOLED, filter_height=0),
        "filter_height must be positive",
    ),
    (
        "CVE-2021-37684",
        "pooling by a stride of 0",
        lambda: broken("L2_POOL_2D", IMAGE[0], good=POOLED, stride_h=0),
        "stride_h must be positive",
    ),
    (
        "CVE-2021-37691",
        "hashes of nothing",
        lambda: broken("LSH_PROJECTION", Const(f32(1, 2), np.float32), np.zeros((0, 2), np.int32), None, type=2),
        None,
    ),
    # 2021: places outside of tensors
    ("CVE-2021-29590", "the greatest of nothing", lambda: broken("MAXIMUM", f32(0, 3), f32(1, 3)), None),
    ("CVE-2021-29591", "a loop whose body is the loop", lambda: changed("WHILE", itself), "calls itself"),
    (
        "CVE-2021-29601",
        "a concatenation longer than an int32",
        lambda: changed(
            "CONCATENATION",
            lambda m: [setattr(t, "shape", [2**31 - 1, *np.asarray(t.shape)[1:]]) for t in m.subgraphs[0].tensors[:2]],
        ),
        "no file can hold|would take",
    ),
    (
        "CVE-2021-29603",
        "the greatest along no axis",
        lambda: broken("ARG_MIN", f32(2, 3), const(2), good={"output_type": "INT64"}, kind="INT64"),
        "axis 2 is out of range",
    ),
    (
        "CVE-2021-29606",
        "a split along no axis",
        lambda: broken("SPLIT_V", f32(4, 2), const(2, 2), Const(2), outputs=2, num_splits=2),
        "axis 2 is out of range",
    ),
    (
        "CVE-2021-37681",
        "filters without a state",
        lambda: changed("SVDF", lambda m: setattr(tensor(m, 4), "is_variable", False)),
        "is not a variable tensor",
    ),
    (
        "CVE-2021-37682",
        "scales of another number than zero points",
        lambda: changed("QUANTIZE", unquantized),
        "Must have same number|zero_point|scales",
    ),
    (
        "CVE-2021-37685",
        "a dimension put in nowhere",
        lambda: broken("EXPAND_DIMS", f32(2, 3), const(-4)),
        "axis -4 is out of range",
    ),
    (
        "CVE-2021-37685",
        "a dimension put in where a run says",
        lambda: broken("EXPAND_DIMS", f32(2, 3), i32(7)),
        "axis 7 is out of range",
    ),
    (
        "CVE-2021-37686",
        "two ellipses",
        lambda: broken("STRIDED_SLICE", f32(2, 3), const(0, 0), const(0, 0), const(1, 1), ellipsis_mask=3),
        "ellips",
    ),
    ("CVE-2021-37687", "a negative index", lambda: broken("GATHER_ND", f32(4), Const([[-1]])), "index out of bounds"),
    ("CVE-2021-37687", "a negative index along an axis", lambda: broken("GATHER", f32(4), const(-1)), "out of bounds"),
    (
        "CVE-2021-37688",
        "a tensor without shape, which is a scalar",
        lambda: changed("L2_NORMALIZATION", lambda m: setattr(m.subgraphs[0].tensors[0], "shape", [])),
        "scalar",
    ),
    (
        "CVE-2021-37689",
        "a norm along no axis",
        lambda: broken("SUM", f32(2, 3), Const(np.zeros(0, np.int32)), keep_dims=True),
        None,
    ),
    # 2022 and 2023
    (
        "CVE-2022-21741",
        "a depthwise convolution dilated by 0",
        lambda: broken(
            "DEPTHWISE_CONV_2D",
            IMAGE[0],
            Const(f32(1, 2, 2, 2), np.float32),
            Const(f32(2), np.float32),
            good={**STEPS, "depth_multiplier": 1},
            dilation_h_factor=0,
        ),
        "dilation_h_factor must be positive",
    ),
    (
        "CVE-2022-21741",
        "no channels for each channel",
        lambda: broken(
            "DEPTHWISE_CONV_2D",
            IMAGE[0],
            Const(f32(1, 2, 2, 2), np.float32),
            None,
            good={**STEPS, "depth_multiplier": 1},
            depth_multiplier=0,
        ),
        None,
    ),
    (
        "CVE-2022-23557",
        "a bias of nothing",
        lambda: broken("CONV_2D", IMAGE[0], IMAGE[1], Const(np.zeros(0, np.float32), np.float32), good=STEPS),
        "bias does not fit",
    ),
    ("CVE-2022-23558", "a shape longer than can be", lambda: shaped(*[1] * 70), "more dimensions"),
    ("CVE-2022-23558", "more elements than can be counted", lambda: shaped(*[2**31 - 1] * 6), "counted"),
    ("CVE-2021-29605", "bytes beyond 64 bits", lambda: shaped(2**31 - 1, 2**31 - 1, 2), "counted|would take"),
    (
        "CVE-2022-23559",
        "a lookup into more than an int32 counts",
        lambda: broken(
            "EMBEDDING_LOOKUP_SPARSE",
            Const([0, 1]),
            Const([[0, 0], [1, 0]]),
            const(2**30, 2**30),
            Const(f32(2), np.float32),
            f32(3, 2),
        ),
        "would take|no array|out of range",
    ),
    ("CVE-2022-23560", "sparse indices beyond the row", lambda: sparse([0, 1, 2], [0, 9]), "lie outside"),
    ("CVE-2022-23560", "sparse segments that fall", lambda: sparse([0, 3, 2], [0, 1]), "segments"),
    ("CVE-2022-23561", "sparse segments beyond the indices", lambda: sparse([0, 1, 9], [0, 1]), "disagree|segments"),
    (
        "CVE-2022-35937",
        "index vectors longer than the rank",
        lambda: broken("GATHER_ND", f32(4), Const([[0, 0]])),
        "<= params rank",
    ),
    (
        "CVE-2022-35938",
        "index vectors of nothing",
        lambda: broken("GATHER_ND", f32(), Const([[0]])),
        "the input is a scalar",
    ),
    (
        "CVE-2022-35939",
        "updates outside of the shape",
        lambda: broken("SCATTER_ND", Const([[-1], [5]]), f32(2), const(4)),
        "index out of bounds",
    ),
    (
        "CVE-2022-41894",
        "a transposed convolution of volumes with a bias of another size",
        lambda: broken(
            "CONV_3D_TRANSPOSE",
            const(1, 2, 2, 2, 3),
            Const(f32(1, 1, 1, 3, 2), np.float32),
            f32(1, 2, 2, 2, 2),
            Const(f32(7), np.float32),
            good={"stride_d": 1, "stride_w": 1, "stride_h": 1},
        ),
        "bias does not fit",
    ),
    (
        "CVE-2023-27579",
        "a filter for no channels",
        lambda: broken("CONV_2D", f32(1, 4, 4, 0), Const(f32(3, 2, 2, 0), np.float32), None, good=STEPS),
        "depth does not divide the channels",
    ),
]


def run(model: Model, values: list[Any]) -> list[np.ndarray]:
    interpreter = Interpreter(model_content=model.to_bytes())
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


@pytest.mark.parametrize(("number", "what", "make", "says"), ROWS, ids=[f"{n} {what}" for n, what, _, _ in ROWS])
def test_what_crashed_the_official_run_time(number, what, make, says):
    model, values = make()
    if says is None:
        run(model, values)
        return
    with pytest.raises(OpError, match=says) as raised:
        run(model, values)
    assert isinstance(raised.value, (RuntimeError, ValueError))
    if isinstance(raised.value, RuntimeError):
        assert "Node number 0" in str(raised.value) or "AllocateTensors() failed" in str(raised.value)
        assert "\n  wanted  " in str(raised.value)
