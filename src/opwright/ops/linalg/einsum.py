"""Sums of products in Einstein's notation.

Lives here: Einsum, its equations and how it contracts.  Not here: products of matrices (matmul.py).
"""

from __future__ import annotations

import functools
import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import numeric
from ...core.errors import InvalidArgumentError
from ...core.shapes import UNKNOWN, TensorShape, broadcast
from ...core.specs import TensorSpec
from .. import array, like_device, lod_rules
from ..attributes import Attr
from ..definition import operator
from ..math.arithmetic import _conj
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from .matmul import wide

if TYPE_CHECKING:
    from ..tensor import Tensor

ELLIPSIS = "."  # in parsed terms one character stands for the whole "..."


@functools.lru_cache(512)
def parsed(equation: str) -> tuple[tuple[str, ...], str]:
    """The input terms and the output term; without "->" the output is the labels that occur once, in order.

    raises ValueError for what is no equation
    """
    text = equation.replace(" ", "").replace("...", ELLIPSIS)
    left, arrow, right = text.partition("->")
    terms = tuple(left.split(","))
    for term in (*terms, right):
        if term.count(ELLIPSIS) > 1 or not all(c == ELLIPSIS or c in string.ascii_letters for c in term):
            raise ValueError(f"Subscripts have incorrect format: {equation}")
    if not arrow:
        once = sorted(c for c in set(left) - {",", ELLIPSIS} if left.count(c) == 1)
        right = (ELLIPSIS if ELLIPSIS in left else "") + "".join(once)
    missing = [c for c in right if c != ELLIPSIS and c not in left]
    if missing:
        raise ValueError(f"Output subscripts contain the label {missing[0]} not present in the input subscripts.")
    return terms, right


def expanded(terms: Sequence[str], output: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The terms with the ellipsis written out in labels of its own, aligned at its last dimension.

    raises InvalidArgumentError where a term does not fit its rank
    """
    used = set("".join(terms))
    depth = 0
    for i, (term, rank) in enumerate(zip(terms, ranks)):
        fixed = len(term.replace(ELLIPSIS, ""))
        if rank < fixed or (rank != fixed and ELLIPSIS not in term):
            least = "at least " if ELLIPSIS in term else ""
            raise InvalidArgumentError(what=f"Expected input {i} to have rank {least}{fixed} but got: {rank}")
        depth = max(depth, rank - fixed)
    free = [c for c in string.ascii_letters if c not in used]
    if depth > len(free):
        raise InvalidArgumentError(what=f"more than {len(string.ascii_letters)} labels")
    batch = "".join(free[:depth])
    if depth and ELLIPSIS not in output:
        raise InvalidArgumentError(
            what=f"Output contains {depth} broadcasting dimension(s) but no ellipsis (...) was found in the output "
            "subscripts."
        )
    written = [t.replace(ELLIPSIS, batch[depth - (r + 1 - len(t)) :]) for t, r in zip(terms, ranks)]
    return written, output.replace(ELLIPSIS, batch)


def sizes_of(terms: Sequence[str], shapes: Sequence[Sequence[int | None]], batch: str) -> dict[str, int | None]:
    """The size of each label, None where unknown; labels in `batch` broadcast. Raises InvalidArgumentError."""
    sizes: dict[str, int | None] = {}
    for term, shape in zip(terms, shapes):
        for at, (label, size) in enumerate(zip(term, shape)):
            known = sizes.get(label)
            if label in batch and label in sizes:
                (sizes[label],) = broadcast(TensorShape([known]), TensorShape([size]))
            elif known is not None and size is not None and known != size:
                raise InvalidArgumentError(
                    what=f"Expected dimension {known} at axis {at} of the input shaped "
                    f"{list(shape)} but got dimension {size}"
                )
            elif known is None:
                sizes[label] = size
    return sizes


def contract(terms: Sequence[str], output: str, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of products, two factors at a time, each by a matrix product."""
    factors = [
        _alone(t, "".join(terms[:i]) + "".join(terms[i + 1 :]) + output, x)
        for i, (t, x) in enumerate(zip(terms, arrays))
    ]
    while len(factors) > 1:
        path = [0, 1]
        if len(factors) > 2:
            equation = ",".join(t for t, _ in factors) + "->" + "".join(dict.fromkeys(output))
            path = np.einsum_path(equation, *[x for _, x in factors], optimize="greedy")[0][1][:2]
        (ta, a), (tb, b) = (factors[i] for i in path)
        rest = [f for i, f in enumerate(factors) if i not in path]
        factors = [*rest, _pair(ta, a, tb, b, "".join(t for t, _ in rest) + output)]
    ((term, result),) = factors
    distinct = "".join(dict.fromkeys(output))
    result = np.transpose(result, [term.index(c) for c in distinct])
    if distinct == output:
        return result
    sizes = dict(zip(distinct, result.shape))  # a label twice in the output: the values go on the diagonal
    spread = like_device.zeros(result, [sizes[c] for c in output], result.dtype)
    if like_device.on_host(spread):
        np.einsum(f"{output}->{distinct}", spread)[...] = result
        return spread
    along = {
        c: like_device.arange(result, n).reshape(-1, *[1] * (len(distinct) - 1 - i))
        for i, (c, n) in enumerate(sizes.items())
    }
    spread[tuple([along[c] for c in output])] = result
    return spread


def _alone(term: str, others: str, x: np.ndarray) -> tuple[str, np.ndarray]:
    """One factor with its diagonals taken and the labels summed that occur nowhere else."""
    if len(set(term)) < len(term):
        distinct = "".join(dict.fromkeys(term))
        x, term = np.einsum(f"{term}->{distinct}", x), distinct
    solo = tuple(i for i, c in enumerate(term) if c not in others)
    if solo:
        x, term = x.sum(solo, dtype=x.dtype), "".join(c for c in term if c in others)
    return term, x if type(x) is np.ndarray or not like_device.on_host(x) else np.asarray(x)


def _pair(ta: str, a: np.ndarray, tb: str, b: np.ndarray, later: str) -> tuple[str, np.ndarray]:
    """The product of two factors, summed over the labels both have and nothing later needs."""
    both = [c for c in ta if c in tb]
    batch = [c for c in both if c in later]
    summed = [c for c in both if c not in later]
    rows, columns = [c for c in ta if c not in both], [c for c in tb if c not in both]
    a = a.transpose([ta.index(c) for c in (*batch, *rows, *summed)])
    b = b.transpose([tb.index(c) for c in (*batch, *summed, *columns)])
    of_a, of_b = a.shape, b.shape
    n, r, s = len(batch), len(rows), len(summed)
    inner = int(np.prod(of_a[n + r :], dtype=np.int64))
    a = a.reshape(*of_a[:n], int(np.prod(of_a[n : n + r], dtype=np.int64)), inner)
    b = b.reshape(*of_b[:n], inner, int(np.prod(of_b[n + s :], dtype=np.int64)))
    product = np.matmul(a, b)
    product = product.reshape((*product.shape[:n], *of_a[n : n + r], *of_b[n + s :]))
    return "".join((*batch, *rows, *columns)), product


@operator
class Einsum(OperatorDefinition):
    """Sum of products: over every label that the output does not have, of the elements under equal labels.

    .. math:: output_{out} = \\sum_{labels \\notin out} \\prod_k inputs_{k, term_k}

    equation: a term of letters for each input, and after "->" one for the output; "..." stands for any dimensions,
    which broadcast; a letter twice in a term takes the diagonal. inputs: of one dtype. 16-bit floats are summed in
    float32.
    raises ValueError for what is no equation, InvalidArgumentError where ranks or sizes do not fit
    """

    inputs = Input(numeric, repeated=True)
    output = Output(like="inputs")
    equation = Attr(str)
    views = {"output": "inputs"}
    lod = lod_rules.einsum

    def infer(op) -> TensorSpec:
        terms, output = _terms(op.equation, len(op.inputs))
        dtype = op.inputs[0].spec.dtype
        shapes = [x.spec.shape for x in op.inputs]
        known = [(t, s) for t, s in zip(terms, shapes) if s.rank is not None]
        if len(known) < len(shapes) and ELLIPSIS in output:
            return TensorSpec(UNKNOWN, dtype)
        written, result = expanded([t for t, _ in known], output, [len(s) for _, s in known])
        batch = "".join(c for c in result if c not in output)
        sizes = sizes_of(written, [s.as_list() for _, s in known], batch)
        return TensorSpec([sizes.get(c) for c in result], dtype)

    def compute(op, inputs: Any) -> np.ndarray:
        terms, output = _terms(op.equation, len(inputs))
        written, result = expanded(terms, output, [x.ndim for x in inputs])
        sizes_of(written, [x.shape for x in inputs], "".join(c for c in result if c not in output))
        return contract(written, result, [wide(x) for x in inputs]).astype(inputs[0].dtype, copy=False)

    def gradient(op, doutput: Any) -> list[Any]:
        # Each factor's gradient is the sum of products of the others and doutput, with that factor's term for output.
        terms, output = _terms(op.equation, len(op.inputs))
        broadcast = _broadcasts(op.inputs, terms)
        grads = []
        for i, (x, term) in enumerate(zip(op.inputs, terms)):
            factors = [_conj(y) for j, y in enumerate(op.inputs) if j != i]
            theirs = [t for j, t in enumerate(terms) if j != i]
            if not set(term) <= set("".join(theirs) + output):  # what only this factor has is repeated, by ones
                factors, theirs = [*factors, array.ones_like(x)], [*theirs, term]
            first = ELLIPSIS + term.replace(ELLIPSIS, "")  # where broadcast dimensions are aligned: at the last one
            out = first if ELLIPSIS in output and (ELLIPSIS not in term or broadcast) else term
            dx = Einsum([*factors, doutput], equation=_equation([*theirs, output], out))
            if out == term or ELLIPSIS not in term:
                grads.append(array.sum_to_shape_of(dx, x))
            else:
                dx = array.sum_to_shape_of(dx, Einsum([x], equation=_equation([term], first)))
                grads.append(Einsum([dx], equation=_equation([first], term)))
        return grads


def _equation(terms: Sequence[str], output: str) -> str:
    return f"{','.join(terms)}->{output}".replace(ELLIPSIS, "...")


def _broadcasts(inputs: Sequence[Any], terms: Sequence[str]) -> bool:
    """Whether the dimensions of the ellipsis may differ between the inputs."""
    found = []
    for x, term in zip(inputs, terms):
        dims, at = x.shape.dims, term.find(ELLIPSIS)
        if at >= 0:
            found.append(None if dims is None or None in dims else dims[at : len(dims) - (len(term) - 1 - at)])
    return len(found) > 1 and (None in found or len(set(found)) > 1)


def _terms(equation: str, n: int) -> tuple[tuple[str, ...], str]:
    terms, output = parsed(equation)
    if len(terms) != n:
        raise ValueError(f'Got {n} inputs for equation "{equation}", expecting {len(terms)}')
    return terms, output


@documented_by(Einsum)
def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Contract tensors by Einstein summation. kwargs: name; optimize, a hint without effect."""
    name = kwargs.pop("name", None)
    kwargs.pop("optimize", None)
    if kwargs:
        raise TypeError(f"Invalid keyword arguments for this function: {', '.join(kwargs)}. Expected: optimize, name.")
    _, output = _terms(equation, len(inputs))
    if len(set(output)) < len(output):
        raise ValueError(f"Output subscripts contain a label appearing more than once: {equation}")
    return Einsum(list(inputs), equation=equation.replace(" ", ""), name=name)
