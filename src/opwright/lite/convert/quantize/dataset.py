"""Representative data: samples of a model's inputs, on which the ranges of its values are measured.

Lives here: `RepresentativeDataset`, and the forms of a sample.  Not here: running the model (calibration.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ....core.errors import InvalidArgumentError
from ...format import Model
from ...ops import types

FORMS = (
    "a dictionary with input names and values, a tuple with signature key and a dictionary with input names and "
    "values, or an array with input values in the order of input tensors of the graph"
)


class RepresentativeDataset:
    """A small set of inputs by which a converter learns the ranges of a model's tensors.

    input_gen: a function without arguments; what it returns is iterated over once. Each sample is a list or tuple of
    arrays in the order of the inputs, a dict by their names, or `(signature_key, dict)` where there are several
    signatures. Samples need not have one shape where the model leaves sizes open. A few hundred usually do.
    """

    def __init__(self, input_gen: Callable[[], Iterable[Any]]) -> None:
        if not callable(input_gen):
            raise InvalidArgumentError(
                what="RepresentativeDataset takes a function",
                found=type(input_gen).__name__,
                do="RepresentativeDataset(lambda: samples)",
            )
        self.input_gen = input_gen


class Sample(NamedTuple):
    """The subgraph to run, and its inputs: index of the tensor, array."""

    subgraph: int
    arrays: list[tuple[int, np.ndarray]]


def samples(dataset: Any, model: Model) -> Iterator[Sample]:
    """Yield the samples of a RepresentativeDataset, or of a function as it takes. Raises InvalidArgumentError."""
    if not isinstance(dataset, RepresentativeDataset):
        if not callable(dataset):
            raise InvalidArgumentError(
                what="converter.representative_dataset is no function",
                found=type(dataset).__name__,
                do="lambda: samples",
            )
        dataset = RepresentativeDataset(dataset)
    signatures = {d.signature_key: d for d in model.signature_defs}
    for number, sample in enumerate(dataset.input_gen()):
        yield _sample(sample, signatures, model, number)


def _sample(sample: Any, signatures: dict[str, Any], model: Model, number: int) -> Sample:
    key = None
    if isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], str):
        key, sample = sample
        if not isinstance(sample, dict):
            raise InvalidArgumentError(
                what="You need to provide either a dictionary with input names and values in the second argument in "
                "the tuple",
                found=f"sample {number}: ({key!r}, {type(sample).__name__})",
            )
        if key not in signatures:
            raise InvalidArgumentError(
                what=f'Invalid signature_key provided: "{key}".',
                found=f"sample {number}",
                wanted=f"one of {', '.join(signatures)}",
            )
    elif len(signatures) > 1:
        raise InvalidArgumentError(
            what=f"the model has {len(signatures)} signatures, and a sample names none of them",
            found=f"sample {number}: {type(sample).__name__}",
            wanted=f"tuples (key, dict), key one of {', '.join(signatures)}",
        )
    definition = signatures[key] if key is not None else next(iter(signatures.values()), None)
    index = int(definition.subgraph_index) if definition is not None else 0
    subgraph = model.subgraphs[index]
    if isinstance(sample, dict):
        inputs = {m.name: int(m.tensor_index) for m in definition.inputs} if definition is not None else {}
        _same_names(sample, inputs, number)
        pairs = [(inputs[name], sample[name]) for name in inputs]
    elif isinstance(sample, (list, tuple)):
        places = np.asarray(subgraph.inputs).tolist()
        if len(sample) != len(places):
            raise InvalidArgumentError(
                what=f"sample {number} of converter.representative_dataset has other inputs",
                found=f"{len(sample)} arrays",
                wanted=str(len(places)),
            )
        pairs = list(zip(places, sample))
    else:
        raise InvalidArgumentError(
            what=f"You need to provide either {FORMS} in the representative_dataset function. Unsupported value from "
            "dataset",
            found=f"sample {number}: {type(sample).__name__}",
            do="yield [array]",
        )
    return Sample(index, [(t, _array(value, subgraph.tensors[t])) for t, value in pairs])


def _same_names(sample: dict[str, Any], inputs: dict[str, int], number: int) -> None:
    if set(sample) != set(inputs):
        raise InvalidArgumentError(
            what=f"sample {number} of converter.representative_dataset has other names than the model's inputs",
            found=", ".join(map(str, sample)) or "none",
            wanted=", ".join(inputs) or "none",
        )


def _array(value: Any, tensor: Any) -> np.ndarray:
    """Convert Python numbers to the tensor's dtype, which arrays must have already."""
    if isinstance(value, (int, float, bool, list, tuple)):
        return np.asarray(value, types.dtype_of(tensor.type.name).np)
    return np.asarray(value)
