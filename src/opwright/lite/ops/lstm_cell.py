"""The cell of long short-term memory: names and checks of its inputs, and its arithmetic on floats.

Lives here: `LstmNames`, `check_direction`, `LstmCell`.
Not here: the operators (lstm.py), products and time (recurrent.py), LSTMs on integers (quantized/recurrent.py).

    i, f, o = sigmoid(W x + A a + R h + p c + b)    g = act(W x + A a + R h + b)    each with its own W, A, R, p and b
    c' = f c + i g                                   h' = P (o act(c')) + p_b

p c is present with peepholes (o reads c'), A a with an auxiliary input, P with a projection; without weights of the
input gate i is 1 - f. With layer normalization the sum without b is normalized to mean 0 and variance 1 and multiplied
by coefficients before b is added.

intermediates: the types of intermediate results of LSTMs on integers, which specify their scales.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...core.dtypes import float32
from ...core.specs import TensorSpec
from ...ops.slots import Input
from .quantized.operand import Operand
from .recurrent import ACTIVATIONS, Products, check_weights, sigmoid
from .shapes import refuse, text

_f = np.float32
GATES = ("input", "forget", "cell", "output")
PEEPHOLES = ("input", "forget", "output")


BASIC = (
    "input",
    "input_to_input_weights",
    "input_to_forget_weights",
    "input_to_cell_weights",
    "input_to_output_weights",
)
"""The inputs of kernel_type BASIC by the names that their places have otherwise: x, previous output, weights, bias,
previous state."""


def required(n: int) -> list[Input[Any]]:
    return [Input((float32,)) for _ in range(n)]


def optional(n: int) -> list[Input[Any]]:
    return [Input((float32,), optional=True) for _ in range(n)]


class LstmNames:
    """Names of the inputs of one direction, such as "fw_input_to_cell_weights"."""

    def __init__(self, prefix: str = "") -> None:
        self.input_weights = {g: f"{prefix}input_to_{g}_weights" for g in GATES}
        self.recurrent_weights = {g: f"{prefix}recurrent_to_{g}_weights" for g in GATES}
        self.peepholes = {g: f"{prefix}cell_to_{g}_weights" for g in PEEPHOLES}
        self.biases = {g: f"{prefix}{g}_gate_bias" for g in GATES}
        self.aux_weights = {g: f"{prefix}aux_input_to_{g}_weights" for g in GATES}
        self.norms = {g: f"{prefix}{g}_layer_norm_coefficients" for g in GATES}
        self.projection_weights, self.projection_bias = f"{prefix}projection_weights", f"{prefix}projection_bias"
        self.h, self.c = f"{prefix}output_state", f"{prefix}cell_state"


def check_direction(
    op: Any, names: LstmNames, x: TensorSpec, aux: TensorSpec | None = None
) -> tuple[int | None, int | None]:
    """Check the inputs of one direction; return the numbers of cells and of outputs."""

    def get(name: str) -> Any:
        return getattr(op, name, None)

    for clip in ("cell_clip", "proj_clip"):
        if not getattr(op, clip) >= 0:
            raise refuse(f"{clip} is negative or no number", found=getattr(op, clip), wanted="at least 0")
    weights = get(names.input_weights["output"])
    n_cell = weights.spec.shape[0] if weights.spec.shape.rank == 2 else None
    recurrent = get(names.recurrent_weights["output"])
    diagonal = getattr(op, "diagonal_recurrent_tensors", False)
    n_out = recurrent.spec.shape[-1] if recurrent.spec.shape.rank else None
    n_in = x.shape[-1] if x.shape.rank else None
    for gate in GATES:
        check_weights(names.input_weights[gate], get(names.input_weights[gate]), n_cell, n_in)
        check_weights(
            names.recurrent_weights[gate], get(names.recurrent_weights[gate]), n_cell, () if diagonal else n_out
        )
        check_weights(names.biases[gate], get(names.biases[gate]), n_cell)
        check_weights(names.norms[gate], get(names.norms[gate]), n_cell)
        if aux is not None:
            check_weights(
                names.aux_weights[gate], get(names.aux_weights[gate]), n_cell, aux.shape[-1] if aux.shape.rank else None
            )
    for gate in PEEPHOLES:
        check_weights(names.peepholes[gate], get(names.peepholes[gate]), n_cell)
    check_weights(names.projection_weights, get(names.projection_weights), n_out, n_cell)
    check_weights(names.projection_bias, get(names.projection_bias), n_out)
    cifg = get(names.input_weights["input"]) is None
    for name in (names.recurrent_weights["input"], names.biases["input"]):
        if (get(name) is None) != cifg:
            raise refuse(
                f"{name} and {names.input_weights['input']} are both there or neither is", wanted="both, or neither"
            )
    peepholes = [g for g in (PEEPHOLES[1:] if cifg else PEEPHOLES) if get(names.peepholes[g]) is not None]
    if peepholes and len(peepholes) != len(PEEPHOLES) - cifg:
        raise refuse(
            "some gates have a peephole and others have none",
            found=peepholes,
            wanted="peepholes of all gates, or of none",
        )
    norms = [g for g in (GATES[1:] if cifg else GATES) if get(names.norms[g]) is not None]
    if norms and len(norms) != len(GATES) - cifg:
        raise refuse(
            "some gates have layer normalisation and others have none",
            found=norms,
            wanted="coefficients of all gates, or of none",
        )
    if get(names.projection_weights) is None and (
        get(names.projection_bias) is not None or (None not in (n_cell, n_out) and n_cell != n_out)
    ):
        raise refuse(
            "an LSTM without projection has as many outputs as cells",
            found={"cells": n_cell, "out": n_out},
            wanted="out == cells, or projection weights",
        )
    return n_cell, n_out


def steps_and_batch(op: Any, x: TensorSpec) -> tuple[Any, Any]:
    if x.shape.dims is None:
        return None, None
    if len(x.shape) != 3:
        raise refuse(
            "the input of a sequence has 3 dimensions",
            found=text(x.shape),
            wanted="[time, batch, n], or [batch, time, n]",
        )
    steps, batch = x.shape.dims[:2]
    return (steps, batch) if op.time_major else (batch, steps)


def normalized(x: np.ndarray) -> np.ndarray:
    """Normalize rows to mean 0 and variance 1."""
    centred = x - x.mean(1, keepdims=True, dtype=_f)
    result: np.ndarray = centred / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True, dtype=_f) + _f(1e-8))
    return result


class LstmCell:
    """One direction: `run` steps through a sequence, reading and writing its state."""

    def __init__(self, op: Any, operands: Mapping[str, Operand | None], names: LstmNames, by: Products) -> None:
        self.op, self.names, self.by = op, names, by
        self.cifg = operands[names.input_weights["input"]] is None
        self.gates = GATES[1:] if self.cifg else GATES
        self.norm = operands.get(names.norms["forget"]) is not None
        self.diagonal = getattr(op, "diagonal_recurrent_tensors", False)
        self.act = ACTIVATIONS[op.fused_activation_function]
        self.matrices: dict[str, Callable[[Any], Any]] = {}
        vectors = set(names.peepholes.values()) | (set(names.recurrent_weights.values()) if self.diagonal else set())
        for table in (
            names.input_weights,
            names.recurrent_weights,
            names.aux_weights,
            names.peepholes,
            {"": names.projection_weights},
        ):
            for name in table.values():
                if operands.get(name) is not None:
                    self.matrices[name] = (by.vector if name in vectors else by.matrix)(operands[name])

    def _ready(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the weights for `times`. Other nodes may compute them, so this happens in every run."""
        return {name: make(arrays[name]) for name, make in self.matrices.items()}

    def _outside(self, x: Any, aux: Any, arrays: Mapping[str, Any], ready: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the terms of gates that do not depend on the state, for all steps: [time, batch, cells]."""
        steps, batch, _ = x.shape
        rows = self.by.rows(x.reshape(steps * batch, -1))
        others = None if aux is None else self.by.rows(aux.reshape(steps * batch, -1))
        sums = {}
        for gate in self.gates:
            y = self.by.times(rows, ready[self.names.input_weights[gate]])
            if others is not None and self.names.aux_weights[gate] in ready:
                y += self.by.times(others, ready[self.names.aux_weights[gate]])
            if not self.norm:
                y += arrays[self.names.biases[gate]]
            sums[gate] = y.reshape(steps, batch, -1)
        return sums

    def run(self, arrays: Mapping[str, Any], x: Any, out: Any, aux: Any = None, backward: bool = False) -> None:
        """Step through x [time, batch, n] and write [time, batch, n_out]; the state is read and written."""
        ready = self._ready(arrays)
        outside = self._outside(x, aux, arrays, ready)
        steps, batch = x.shape[:2]
        h, c = (arrays[name].reshape(batch, -1) for name in (self.names.h, self.names.c))
        for t in reversed(range(steps)) if backward else range(steps):
            self._step({g: y[t] for g, y in outside.items()}, arrays, ready, h, c)
            out[t] = h

    def _gate(self, gate: str, y: np.ndarray, rows: Any, h: Any, c: Any, arrays: Any, ready: Any) -> np.ndarray:
        names = self.names
        recurrent = ready[names.recurrent_weights[gate]]
        y = y + (h * recurrent if self.diagonal else self.by.times(rows, recurrent))
        peephole = ready.get(names.peepholes[gate]) if gate != "cell" else None
        if peephole is not None:
            y += c * peephole
        if self.norm:
            y = normalized(y) * arrays[names.norms[gate]] + arrays[names.biases[gate]]
        result: np.ndarray = self.act(y) if gate == "cell" else sigmoid(y)
        return result

    def _step(self, outside: Any, arrays: Any, ready: Any, h: Any, c: Any) -> None:
        """Run one step: h and c are overwritten."""
        op, rows = self.op, None if self.diagonal else self.by.rows(h)

        def gate(name: str) -> np.ndarray:
            return self._gate(name, outside[name], rows, h, c, arrays, ready)

        forget, new = gate("forget"), gate("cell")
        let_in = _f(1) - forget if self.cifg else gate("input")
        np.copyto(c, clipped(forget * c + let_in * new, op.cell_clip))
        y = gate("output") * self.act(c)
        projection = ready.get(self.names.projection_weights)
        if projection is not None:
            y = self.by.times(self.by.rows(y), projection)
            bias = arrays[self.names.projection_bias]
            y = clipped(y if bias is None else y + bias, op.proj_clip)
        np.copyto(h, y)


def clipped(x: np.ndarray, most: float) -> np.ndarray:
    """Clamp to -limit..limit if the limit is positive."""
    return np.clip(x, _f(-most), _f(most)) if most > 0 else x
