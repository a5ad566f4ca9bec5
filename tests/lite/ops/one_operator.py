"""Models of one operator, and what the official interpreter's reference kernels make of them.

Lives here: `case` and `Const` of the tables, building a case's model, running it here and there.
Not here: the tables (cases_*.py), the checks (test_lite_ops.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lite_kit import run

from opwright.core.dtypes import of_numpy
from opwright.core.shapes import TensorShape
from opwright.core.specs import TensorSpec
from opwright.lite import Interpreter
from opwright.lite.format import Model, objects, pack_strings, schema, versions
from opwright.lite.ops import get, types


class Const:
    """An input that is a constant of the file."""

    def __init__(self, values: Any, dtype: Any = np.int32) -> None:
        self.array = np.asarray(values, dtype)


@dataclass(frozen=True)
class Case:
    """One row: inputs (arrays, Consts, None for one left out), options by name.

    rtol, atol: for floats. says: the case is refused, with these words. oracle: whether the official run time takes it.
    rank: of the outputs in the file, for kernels that look there.
    """

    inputs: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    rtol: float = 1e-6
    atol: float = 1e-7
    says: str = ""
    oracle: bool = True
    rank: int = 0

    def __str__(self) -> str:
        shown = [None if a is None else a for a in map(array_of, self.inputs)]
        inputs = ",".join("_" if a is None else f"{a.dtype.name}{list(a.shape)}".replace(" ", "") for a in shown)
        return f"{inputs};{','.join(f'{k}={v}' for k, v in self.options.items())}"


def array_of(value: Any) -> Any:
    return value.array if isinstance(value, Const) else value


def case(
    *inputs: Any, rtol: float = 1e-6, atol: float = 1e-7, oracle: bool = True, rank: int = 0, **options: Any
) -> Case:
    return Case(inputs, options, rtol, atol, "", oracle, rank)


def bad(*inputs: Any, says: str, **options: Any) -> Case:
    return Case(inputs, options, says=says)


_rng = np.random.default_rng(7)


def f32(*shape: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    return _rng.uniform(low, high, shape).astype(np.float32)


def ints(*shape: int, low: int = -9, high: int = 9, dtype: Any = np.int32) -> np.ndarray:
    return _rng.integers(low, high, shape, endpoint=True).astype(dtype)


def bools(*shape: int) -> np.ndarray:
    return _rng.integers(0, 2, shape).astype(bool)


class _Known:
    fixed = False  # what elements are wrong is for the run time to find

    def __init__(self, array: np.ndarray) -> None:
        self.spec, self.constant = TensorSpec(TensorShape(array.shape), of_numpy(array.dtype)), array


def output_types(name: str, row: Case) -> list[str]:
    """The types of the outputs, by our inference."""
    op = get(name)
    known = [None if a is None else _Known(a) for a in map(array_of, row.inputs)]
    grouped: list[Any] = []
    rest = list(known)
    for declared in op.inputs:
        if declared.repeated:
            grouped.append(tuple(rest))
            rest = []
        else:
            grouped.append(rest.pop(0) if rest else None)
    specs = op.infer(op.bind(row.options), grouped)
    flat = [s for spec in specs for s in (spec if isinstance(spec, list) else [spec])]
    return [types.name_of(s.dtype) for s in flat]


def model_of(name: str, row: Case, outputs: list[str], all_dynamic: bool = False) -> Model:
    """A model of the operator alone. all_dynamic: constants become inputs, too."""
    buffers, tensors, indices, inputs = [objects.Buffer()], [], [], []
    for value in row.inputs:
        if value is None:
            indices.append(-1)
            continue
        array, place = array_of(value), 0
        if isinstance(value, Const) and not all_dynamic:
            raw = pack_strings(array.reshape(-1).tolist()) if array.dtype.kind == "O" else array.tobytes()
            buffers.append(objects.Buffer(data=np.frombuffer(raw, np.uint8)))
            place = len(buffers) - 1
        else:
            inputs.append(len(tensors))
        indices.append(len(tensors))
        kind = schema.TensorType[types.name_of(of_numpy(array.dtype))]
        tensors.append(objects.Tensor(shape=list(array.shape), type=kind, name=f"x{len(tensors)}", buffer=place))
    first = len(tensors)
    shape = [1] * row.rank
    tensors += [objects.Tensor(shape=shape, type=schema.TensorType[t], name=f"y{i}") for i, t in enumerate(outputs)]
    results = list(range(first, len(tensors)))
    attrs = {k: v for k, v in row.options.items() if k in get(name).option_names}
    operator = objects.Operator(inputs=indices, outputs=results)
    options = get(name).to_options(attrs)
    if options is None or options.table_name in schema.union_tags("BuiltinOptions"):
        operator.builtin_options = options
    else:
        operator.builtin_options_2 = options
    main = objects.SubGraph(tensors=tensors, inputs=inputs, outputs=results, operators=[operator], name="main")
    model = Model(operator_codes=[versions.operator_code(name)], subgraphs=[main], buffers=buffers)
    versions.stamp_model(model)
    least, most = get(name).versions  # a quirk of SELECT's stamp: it looks at the condition
    model.operator_codes[0].version = min(max(model.operator_codes[0].version, least), most)
    return model


def feeds(row: Case, all_dynamic: bool = False) -> list[np.ndarray]:
    return [array_of(v) for v in row.inputs if v is not None and (all_dynamic or not isinstance(v, Const))]


def ours(model: Model, values: list[np.ndarray]) -> list[np.ndarray]:
    return run(Interpreter(model_content=model.to_bytes()), values)


PATHS = {
    "REF": "BUILTIN_REF",
    "OPT": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "AUTO": "BUILTIN",
    "GENAI": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
}
"""GENAI: OPT with the custom operators of generative models, which the wheel contains."""


def official_interpreter(model: Model, *paths: str, content: bytes | None = None) -> Any:
    """An official interpreter with the kernels of the first of `paths` (see PATHS) that has the operator; by default
    the reference ones, and for operators they lack (CEIL, ELU, ROUND) the optimised ones. content: the model's file,
    where it is there already.

    Some versions are not registered for kernels that are there; older ones lead to the same kernel.
    """
    import ai_edge_litert.interpreter as peer

    newest = model.operator_codes[0].version
    first = content or model.to_bytes()
    for path in paths or ("REF", "OPT"):
        kind = peer.OpResolverType[PATHS[path]]
        if path == "GENAI":
            from ai_edge_litert.pywrap_genai_ops import GenAIOpsRegisterer

            return peer.InterpreterWithCustomOps(
                [GenAIOpsRegisterer], model_content=first, experimental_op_resolver_type=kind
            )
        for version in range(newest, 0, -1):
            model.operator_codes[0].version = version
            file = first if version == newest else model.to_bytes()
            try:
                return peer.Interpreter(model_content=file, experimental_op_resolver_type=kind)
            except ValueError as error:
                if "Didn't find op" not in str(error):
                    raise
    raise AssertionError("the official run time has no version of it")


def official(model: Model, values: list[np.ndarray], *paths: str) -> list[np.ndarray]:
    """Return the results of official kernels; paths as for `official_interpreter`."""
    return run(official_interpreter(model, *paths), values)
