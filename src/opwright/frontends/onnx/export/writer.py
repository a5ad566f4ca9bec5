"""Nodes and constants of an ONNX graph, and the table of rules from catalogue operators.

Lives here: `GraphWriter`, which rules receive; `RULES` with `rule`; `NoForm`.
Not here: the rules, models (exporter.py).

A rule takes the writer and a node of the catalogue, and returns the name of its result, or a list of names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.dtypes import DType, float32, int64, string
from ....core.errors import UnimplementedError
from ....graph import Graph, Node, Value
from ....graph.builder import use_counts
from ....lite.convert.quantize.parameters import quantized, weights_grid
from ....lite.ops.definition import LiteOperator
from ..files import DTYPES, onnx_module

OPSET = 22
"""The opset of models: onnxruntime reads it since 1.20."""

CODES = {dtype: code for code, dtype in DTYPES.items()}
SMALL = 1024  # bytes of constants that are compared, so that equal ones are one initializer

Rule = Callable[["GraphWriter", Node], "str | list[str]"]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Return a decorator that adds the rule of these operators."""

    def add(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return add


class NoForm(UnimplementedError):
    """Raised by a rule for a node that ONNX cannot express. The message is the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(what=reason)
        self.reason = reason


class SharedState:
    """The state that the graphs of a model share: names in use, initializers of the main graph.

    missing: nodes without a form, with the reason. quantized: whether the program quantizes values.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.initializers: dict[str, np.ndarray] = {}
        self.constants: dict[Any, str] = {}
        self.dtypes: dict[str, DType] = {}  # of values
        self.missing: list[tuple[Node, str]] = []
        self.quantized = False

    def unique(self, name: str) -> str:
        """Return a name that no value or node of the model has, and reserve it."""
        candidate, count = name, 0
        while candidate in self.names:
            count += 1
            candidate = f"{name}_{count}"
        self.names.add(candidate)
        return candidate


class GraphWriter:
    """One graph while it is written. nodes: NodeProtos. values: names of the catalogue's values."""

    def __init__(self, shared: SharedState, values: dict[Value, str]) -> None:
        self.shared, self.values = shared, dict(values)
        self.nodes: list[Any] = []
        self.prefix = ""
        self.transposed: dict[str, tuple[str, list[int]]] = {}
        self.convolutions: dict[Value, Any] = {}  # results of nodes that may take a bias
        self.uses: dict[Value, int] = {}

    # ---- for rules ---------------------------------------------------------------------------------------------------

    def __getitem__(self, value: Value | None) -> str:
        """Return the name of a value; "" for an absent one."""
        if value is None:
            return ""
        if value not in self.values:
            array = value.constant
            assert array is not None
            self.values[value] = self.constant(array, value.dtype, value.name)
        return self.values[value]

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Append a node; return the name of its output."""
        return self.several(kind, *inputs, outputs=1, **attributes)[0]

    def several(self, kind: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Append a node; return the names of its outputs."""
        base = f"{self.prefix}/{kind}" if self.prefix else kind
        name = self.shared.unique(base)
        names = [self.shared.unique(f"{name}_y{i}" if outputs > 1 else f"{name}_y") for i in range(outputs)]
        trimmed = list(inputs)
        while trimmed and not trimmed[-1]:
            trimmed.pop()
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(onnx_module().helper.make_node(kind, trimmed, names, name=name, **attributes))
        return names

    def constant(self, array: Any, dtype: DType | None = None, name: str = "") -> str:
        """Return the name of an initializer; equal small ones are one."""
        array = np.asarray(array, None if dtype is None or dtype is string else dtype.np)
        small = array.dtype != object and array.nbytes <= SMALL
        key = (array.dtype.str, str(array.dtype), array.shape, array.tobytes()) if small else None
        if key is not None and key in self.shared.constants:
            return self.shared.constants[key]
        name = self.shared.unique(name or f"{self.prefix}/const")
        self.shared.initializers[name] = array
        if key is not None:
            self.shared.constants[key] = name
        return name

    def number(self, value: Any, like: Value) -> str:
        """Return a scalar of a value's dtype."""
        return self.constant(value, like.dtype)

    def ints(self, values: Any) -> str:
        """Return a vector of int64."""
        return self.constant(np.asarray(values, np.int64).reshape(-1))

    def cast(self, name: str, dtype: DType) -> str:
        """Return a value converted to a dtype."""
        if dtype not in CODES or dtype.is_complex:
            raise NoForm(f"ONNX converts nothing to {dtype.name}")
        return self.op("Cast", name, to=CODES[dtype])

    def int64(self, value: Value, vector: bool = False) -> str:
        """Return integers as int64, as most operators want sizes and indices. vector: a scalar as a vector of one."""
        if value.constant is not None:
            array = value.constant.astype(np.int64)
            return self.constant(array.reshape(-1) if vector else array)
        name = self[value] if value.dtype is int64 else self.cast(self[value], int64)
        if vector and value.shape.rank != 1:
            name = self.op("Reshape", name, self.ints([-1]))
        return name

    def weights(self, value: Value, perm: Sequence[int], axis: int) -> str:
        """Return weights in another order; integers and DequantizeLinear if the program quantizes its values.

        axis: of output channels in the result
        """
        array = value.constant
        if not self.shared.quantized or array is None or value.dtype is not float32:
            return self.transpose(self[value], perm)
        moved = np.ascontiguousarray(array.transpose(perm))
        grid = weights_grid(moved, axis)
        if grid is None:
            return self.transpose(self[value], perm)
        stored = self.constant(quantized(moved, grid, narrow=True), name=f"{value.name}_quantized")
        scales = np.array(grid.scales, np.float32)
        parameters = self.constant(scales), self.constant(np.zeros(len(scales), np.int8))
        return self.op("DequantizeLinear", stored, *parameters, axis=axis)

    def transpose(self, name: str, perm: Sequence[int]) -> str:
        """Return a transposed value; transposes of transposes are one, or none."""
        perm = list(perm)
        if name in self.transposed:
            name, inner = self.transposed[name]
            perm = [inner[p] for p in perm]
        if perm == sorted(perm):
            return name
        array = self.shared.initializers.get(name)
        if array is not None:
            return self.constant(np.ascontiguousarray(array.transpose(perm)), name=f"{name}_transposed")
        result: str = self.op("Transpose", name, perm=perm)
        if name in self.shared.dtypes:
            self.shared.dtypes[result] = self.shared.dtypes[name]
        self.transposed[result] = name, perm
        return result

    # ---- writing -----------------------------------------------------------------------------------------------------

    def write(self, graph: Graph) -> list[str]:
        """Append all nodes of a graph whose inputs have names; return the names of its outputs."""
        self.uses |= use_counts(graph)
        for node in graph.nodes:
            if node.op.name == "Const":
                continue
            self.prefix = node.name
            count = len(self.nodes)
            try:
                function = RULES.get(node.op.name)
                own = getattr(node.op, "catalogue", True) or isinstance(node.op, LiteOperator)
                if function is None or not own:  # a user's operator may have a name of the catalogue
                    raise NoForm("ONNX has no such operator")
                for value in (*node.operands, *node.outputs):
                    if value.dtype not in CODES:
                        raise NoForm(f"ONNX has no dtype {value.dtype.name}")
                names = function(self, node)
                self._check_types(self.nodes[count:])
            except NoForm as error:
                del self.nodes[count:]
                self.shared.missing.append((node, error.reason))
                names = [""] * len(node.outputs)
            names = [names] if isinstance(names, str) else names
            self.values.update(zip(node.outputs, names))
            self.shared.dtypes.update((name, v.dtype) for name, v in zip(names, node.outputs))
        return [self[v] for v in graph.outputs]

    def _check_types(self, nodes: Sequence[Any]) -> None:
        """Raise NoForm if an operator of ONNX does not take the dtype of a value."""
        for node in nodes:
            schema = onnx_module().defs.get_schema(node.op_type, OPSET)
            for i, name in enumerate(node.input):
                dtype = self.shared.dtypes.get(name)
                if dtype is None:
                    continue
                formal = schema.inputs[min(i, len(schema.inputs) - 1)]
                if _TYPES.get(dtype.name, f"tensor({dtype.name})") not in formal.types:
                    raise NoForm(f"ONNX's {node.op_type} takes no {dtype.name}")


_TYPES = {"float32": "tensor(float)", "float64": "tensor(double)"}


def operand(node: Node, place: int) -> Value:
    """Return one operand. Raises NoForm if it is absent."""
    value = node.inputs[place] if place < len(node.inputs) else None
    if not isinstance(value, Value):
        raise NoForm(f"operand {place} is absent")
    return value


def static(value: Value, what: str) -> list[int]:
    """Return the sizes of a value. Raises NoForm if one is unknown; what: the reason to know them."""
    dims = value.shape.dims
    if dims is None or None in dims:
        raise NoForm(f"{what} needs all sizes")
    return [int(d) for d in dims if d is not None]


def rank_of(value: Value) -> int:
    """Return the rank of a value. Raises NoForm if it is unknown."""
    rank = value.shape.rank
    if rank is None:
        raise NoForm("the rank is not known")
    return int(rank)


def constant_of(value: Value, what: str) -> np.ndarray:
    """Return a constant operand. Raises NoForm for another one."""
    if value.constant is None:
        raise NoForm(f"{what} is not a constant")
    return value.constant
