"""The first operator of a model whose results differ from another model's, or from those on another run time.

Lives here: `Bisection`, the inner tensors that two models have in common. Not here: cutting models (model_runs.py).

The first k operators of a model are a model whose outputs are the tensors that the others read. If those of k operators
agree and those of k + 1 do not, operator k computes different results from inputs that agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import UnimplementedError
from ..lite.format import Model
from ..lite.format.versions import op_name
from ..lite.interpreter import Interpreter
from .model_runs import ModelOnRunTime, TensorFacts, tensor_facts
from .tensor_differences import TensorDifference, Tolerance, tensor_difference


def producer_of(side: ModelOnRunTime, tensor: int) -> tuple[int | None, str | None]:
    """Return the node that writes a tensor of the first subgraph, and its operator."""
    if side.model is None:
        return None, None
    for node, operator in enumerate(side.model.subgraphs[0].operators):
        if tensor in operator.outputs:
            return node, _operator_name(side.model, operator)
    return None, None


def _operator_name(model: Model, operator: Any) -> str:
    code = model.operator_codes[operator.opcode_index]
    return str(code.custom_code or op_name(code))


class CommonTensors(NamedTuple):
    """Inner tensors that both models have, in the order in which the first computes them. ours, theirs: indices."""

    ours: list[int]
    theirs: list[int]
    facts: list[TensorFacts]
    facts_b: list[TensorFacts]


def common_tensors(a: ModelOnRunTime, b: ModelOnRunTime) -> CommonTensors:
    """Return the computed tensors of two models: all of one model, by name those of two."""
    if a.model is None or b.model is None:
        return CommonTensors([], [], [], [])
    facts, others = (computed(side) for side in (a, b))
    pairs: Iterable[tuple[int, int]]
    if a.name == b.name:
        pairs = [(i, i) for i in facts]
    else:
        names = {name: i for i, name in _unique(others).items()}
        pairs = [(i, names[name]) for i, name in _unique(facts).items() if name in names]
    pairs = [(i, j) for i, j in pairs if facts[i].shape == others[j].shape]
    return CommonTensors(
        [i for i, _ in pairs], [j for _, j in pairs], [facts[i] for i, _ in pairs], [others[j] for _, j in pairs]
    )


def _unique(facts: Mapping[int, TensorFacts]) -> dict[int, str]:
    names = [t.name for t in facts.values()]
    return {i: t.name for i, t in facts.items() if t.name and names.count(t.name) == 1}


def computed(side: ModelOnRunTime) -> dict[int, TensorFacts]:
    """Return the tensors that operators write and that have elements, in order of the operators."""
    assert side.model is not None
    interpreter = Interpreter(model_content=side.model, custom_ops=side.custom_ops)
    try:
        details = {d["index"]: d for d in interpreter.get_tensor_details() if d["dtype"] is not None}
    finally:
        interpreter.close()
    written = [int(i) for operator in side.model.subgraphs[0].operators for i in operator.outputs if i >= 0]
    return {i: tensor_facts(details[i]) for i in written if i in details}


class FirstDifference(NamedTuple):
    """The result of a search. first: the tensor of the first operator that differs; inner: all that were compared;
    since: the last operator that agrees, where those after it could not be compared one by one."""

    first: TensorDifference | None
    inner: tuple[TensorDifference, ...]
    since: int | None


class Bisection:
    """The search for the first operator whose results differ. Runs prefixes of both models."""

    def __init__(
        self,
        a: ModelOnRunTime,
        b: ModelOnRunTime,
        feeds: list[np.ndarray],
        feeds_b: list[np.ndarray],
        common: CommonTensors,
        tolerance: Tolerance,
        progress: Callable[[str], object],
    ) -> None:
        self.a, self.b, self.feeds, self.feeds_b, self.common = a, b, feeds, feeds_b, common
        self.tolerance, self.progress = tolerance, progress
        self.position = {tensor: n for n, tensor in enumerate(common.ours)}
        self.rows: dict[int, TensorDifference] = {}

    def search(self, outputs: Iterable[TensorDifference]) -> FirstDifference:
        """Search the operator. outputs: the errors of the whole models' outputs, of which some do not agree."""
        assert self.a.model is not None
        operators = self.a.model.subgraphs[0].operators
        cuts = [k for k in range(1, len(operators)) if self._live(k) and self._written(k - 1)]
        low, high = -1, len(cuts)  # cuts[low] agrees (-1: the inputs do), cuts[high] differs (the end: the outputs do)
        skipped: set[int] = set()
        while True:
            open_cuts = [n for n in range(low + 1, high) if n not in skipped]
            if not open_cuts:
                break
            middle = min(open_cuts, key=lambda n: abs(n - (low + high) // 2))
            try:
                agrees = all(row.agrees for row in self._compare(cuts[middle]))
            except UnimplementedError:  # a prefix with outputs that libraries lack, such as constants
                skipped.add(middle)
                continue
            low, high = (middle, high) if agrees else (low, middle)
        since = cuts[low] - 1 if low >= 0 else -1
        node = cuts[high] - 1 if high < len(cuts) else len(operators) - 1
        candidates = [
            r for r in (*self.rows.values(), *outputs) if not r.agrees and r.node is not None and since < r.node <= node
        ]
        first = min(candidates, key=lambda r: r.node or 0, default=None)
        inner = tuple(sorted(self.rows.values(), key=lambda r: -1 if r.node is None else r.node))
        gap = node - since > 1 and bool(skipped)
        return FirstDifference(first, inner, since if gap else None)

    def _written(self, node: int) -> bool:
        """Return whether a node writes a tensor that both models have."""
        assert self.a.model is not None
        return any(int(i) in self.position for i in self.a.model.subgraphs[0].operators[node].outputs)

    def _live(self, operators: int) -> list[int]:
        """Return the tensors that the first operators write and later ones or the caller read, and both models have."""
        assert self.a.model is not None
        subgraph = self.a.model.subgraphs[0]
        written = {int(i) for op in subgraph.operators[:operators] for i in op.outputs}
        read = {int(i) for op in subgraph.operators[operators:] for i in op.inputs} | {int(i) for i in subgraph.outputs}
        return sorted(written & read & set(self.position), key=self.position.__getitem__)

    def _compare(self, operators: int) -> list[TensorDifference]:
        """Return the errors of the tensors between the first operators of the first model and the rest."""
        ours = self._live(operators)
        theirs = [self.common.theirs[self.position[i]] for i in ours]
        self.progress(f"first {operators} operators")
        a = self.a.cut(operators, ours).run(self.feeds)
        b = self.b.cut(_operators_for(self.b, theirs), theirs).run(self.feeds_b)
        rows = []
        for i, j in zip(ours, theirs):
            n = self.position[i]
            row = tensor_difference(
                a[i], self.common.facts[n], b[j], self.common.facts_b[n], self.tolerance, producer_of(self.a, i)
            )
            self.rows[i] = row
            rows.append(row)
        return rows


def _operators_for(side: ModelOnRunTime, tensors: Sequence[int]) -> int:
    """Return how many of a model's first operators compute these tensors."""
    assert side.model is not None
    writers = [n for n, op in enumerate(side.model.subgraphs[0].operators) if set(map(int, op.outputs)) & set(tensors)]
    return max(writers) + 1
