"""Einstein summation; transposition; cross products; derivatives of matrix functions.

Lives here: Einsum, Cross; matrix_transpose, adjoint; the gradient of matrix functions.
Not here: products of two matrices (matmul.py), norms (matrix_functions.py), decompositions (factorization.py).
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
from .. import array, dispatch, like_device, lod_propagation
from ..accumulation import widened
from ..attributes import Attr
from ..definition import operator
from ..math.arithmetic import _conj
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from ...core.specs import TensorSpec
    from .. import signatures
    from ..tensor import Tensor

ELLIPSIS = "."  # represents "..." in parsed terms


@functools.lru_cache(512)
def parse(equation: str) -> tuple[tuple[str, ...], str]:
    """Parse an equation into input terms and the output term; without "->", the sorted labels that occur once.

    raises ValueError for an invalid equation
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


def expand_ellipsis(terms: Sequence[str], output: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Replace the ellipsis in terms by labels, aligned at its last dimension.

    raises InvalidArgumentError for a term inconsistent with its rank
    """
    used = set("".join(terms))
    depth = 0
    for i, (term, rank) in enumerate(zip(terms, ranks)):
        fixed = len(term.replace(ELLIPSIS, ""))
        if rank < fixed or (rank != fixed and ELLIPSIS not in term):
            relation = "at least " if ELLIPSIS in term else ""
            raise InvalidArgumentError(what=f"Expected input {i} to have rank {relation}{fixed} but got: {rank}")
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
    labeled = [t.replace(ELLIPSIS, batch[depth - (r + 1 - len(t)) :]) for t, r in zip(terms, ranks)]
    return labeled, output.replace(ELLIPSIS, batch)


def sizes_of(terms: Sequence[str], shapes: Sequence[Sequence[int | None]], batch: str) -> dict[str, int | None]:
    """Return the size of each label, None if unknown. Labels in `batch` broadcast. Raises InvalidArgumentError."""
    sizes: dict[str, int | None] = {}
    for term, shape in zip(terms, shapes):
        for axis, (label, size) in enumerate(zip(term, shape)):
            previous = sizes.get(label)
            if label in batch and label in sizes:
                (sizes[label],) = broadcast(TensorShape([previous]), TensorShape([size]))
            elif previous is not None and size is not None and previous != size:
                raise InvalidArgumentError(
                    what=f"Expected dimension {previous} at axis {axis} of the input shaped "
                    f"{list(shape)} but got dimension {size}"
                )
            elif previous is None:
                sizes[label] = size
    return sizes


def contract(terms: Sequence[str], output: str, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Contract arrays pairwise, by matrix products."""
    factors = [
        _reduce_factor(t, "".join(terms[:i]) + "".join(terms[i + 1 :]) + output, x)
        for i, (t, x) in enumerate(zip(terms, arrays))
    ]
    while len(factors) > 1:
        path = [0, 1]
        if len(factors) > 2:
            equation = ",".join(t for t, _ in factors) + "->" + "".join(dict.fromkeys(output))
            path = np.einsum_path(equation, *[x for _, x in factors], optimize="greedy")[0][1][:2]
        (ta, a), (tb, b) = (factors[i] for i in path)
        others = [f for i, f in enumerate(factors) if i not in path]
        factors = [*others, _contract_pair(ta, a, tb, b, "".join(t for t, _ in others) + output)]
    ((term, result),) = factors
    distinct = "".join(dict.fromkeys(output))
    result = np.transpose(result, [term.index(c) for c in distinct])
    if distinct == output:
        return result
    sizes = dict(zip(distinct, result.shape))  # repeated output labels: write the values to the diagonal
    diagonal = like_device.zeros(result, [sizes[c] for c in output], result.dtype)
    if like_device.on_host(diagonal):
        np.einsum(f"{output}->{distinct}", diagonal)[...] = result
        return diagonal
    label_indices = {
        c: like_device.arange(result, n).reshape(-1, *[1] * (len(distinct) - 1 - i))
        for i, (c, n) in enumerate(sizes.items())
    }
    diagonal[tuple([label_indices[c] for c in output])] = result
    return diagonal


def _reduce_factor(term: str, others: str, x: np.ndarray) -> tuple[str, np.ndarray]:
    """Extract the diagonals of repeated labels, and sum over labels that occur in no other term."""
    if len(set(term)) < len(term):
        distinct = "".join(dict.fromkeys(term))
        x, term = np.einsum(f"{term}->{distinct}", x), distinct
    unique_axes = tuple(i for i, c in enumerate(term) if c not in others)
    if unique_axes:
        x, term = x.sum(unique_axes, dtype=x.dtype), "".join(c for c in term if c in others)
    return term, x if type(x) is np.ndarray or not like_device.on_host(x) else np.asarray(x)


def _contract_pair(ta: str, a: np.ndarray, tb: str, b: np.ndarray, later: str) -> tuple[str, np.ndarray]:
    """Multiply two factors, and sum over common labels that no later term contains."""
    common = [c for c in ta if c in tb]
    batch = [c for c in common if c in later]
    summed = [c for c in common if c not in later]
    rows, columns = [c for c in ta if c not in common], [c for c in tb if c not in common]
    a = a.transpose([ta.index(c) for c in (*batch, *rows, *summed)])
    b = b.transpose([tb.index(c) for c in (*batch, *summed, *columns)])
    shape_a, shape_b = a.shape, b.shape
    n, r, s = len(batch), len(rows), len(summed)
    inner = int(np.prod(shape_a[n + r :], dtype=np.int64))
    a = a.reshape(*shape_a[:n], int(np.prod(shape_a[n : n + r], dtype=np.int64)), inner)
    b = b.reshape(*shape_b[:n], inner, int(np.prod(shape_b[n + s :], dtype=np.int64)))
    product = np.matmul(a, b)
    product = product.reshape((*product.shape[:n], *shape_a[n : n + r], *shape_b[n + s :]))
    return "".join((*batch, *rows, *columns)), product


@operator
class Einsum(OperatorDefinition):
    """Contract tensors by Einstein summation: sum over all labels that are not in the output.

    .. math:: output_{out} = \\sum_{labels \\notin out} \\prod_k inputs_{k, term_k}

    equation: a term of letters for each input, and after "->" one for the output; "..." represents any dimensions,
    which broadcast; a letter repeated in a term selects the diagonal. inputs: of one dtype. 16-bit floats are
    accumulated in float32.
    raises ValueError for an invalid equation, InvalidArgumentError for inconsistent ranks or sizes
    """

    inputs = Input(numeric, repeated=True)
    output = Output(like="inputs")
    equation = Attr(str)
    views = {"output": "inputs"}
    lod = lod_propagation.einsum

    def infer(op) -> TensorSpec:
        terms, output = _terms(op.equation, len(op.inputs))
        dtype = op.inputs[0].spec.dtype
        shapes = [x.spec.shape for x in op.inputs]
        ranked = [(t, s) for t, s in zip(terms, shapes) if s.rank is not None]
        if len(ranked) < len(shapes) and ELLIPSIS in output:
            return TensorSpec(UNKNOWN, dtype)
        labeled, result = expand_ellipsis([t for t, _ in ranked], output, [len(s) for _, s in ranked])
        batch = "".join(c for c in result if c not in output)
        sizes = sizes_of(labeled, [s.as_list() for _, s in ranked], batch)
        return TensorSpec([sizes.get(c) for c in result], dtype)

    def compute(op, inputs: Any) -> np.ndarray:
        terms, output = _terms(op.equation, len(inputs))
        labeled, result = expand_ellipsis(terms, output, [x.ndim for x in inputs])
        sizes_of(labeled, [x.shape for x in inputs], "".join(c for c in result if c not in output))
        return contract(labeled, result, [widened(x) for x in inputs]).astype(inputs[0].dtype, copy=False)

    def gradient(op, doutput: Any) -> list[Any]:
        # The gradient of a factor contracts the other factors and doutput; its output term is that of the factor.
        terms, output = _terms(op.equation, len(op.inputs))
        broadcast = _broadcasts(op.inputs, terms)
        grads = []
        for i, (x, term) in enumerate(zip(op.inputs, terms)):
            factors = [_conj(y) for j, y in enumerate(op.inputs) if j != i]
            other_terms = [t for j, t in enumerate(terms) if j != i]
            if not set(term) <= set("".join(other_terms) + output):  # labels of this factor alone are broadcast by ones
                factors, other_terms = [*factors, array.ones_like(x)], [*other_terms, term]
            aligned_term = ELLIPSIS + term.replace(ELLIPSIS, "")  # leading ellipsis: aligns broadcast dimensions
            out = aligned_term if ELLIPSIS in output and (ELLIPSIS not in term or broadcast) else term
            dx = Einsum([*factors, doutput], equation=_equation([*other_terms, output], out))
            if out == term or ELLIPSIS not in term:
                grads.append(array.sum_to_shape_of(dx, x))
            else:
                dx = array.sum_to_shape_of(dx, Einsum([x], equation=_equation([term], aligned_term)))
                grads.append(Einsum([dx], equation=_equation([aligned_term], term)))
        return grads


def _equation(terms: Sequence[str], output: str) -> str:
    return f"{','.join(terms)}->{output}".replace(ELLIPSIS, "...")


def _broadcasts(inputs: Sequence[Any], terms: Sequence[str]) -> bool:
    """Return whether the dimensions of the ellipsis may differ between inputs."""
    ellipsis_dims = []
    for x, term in zip(inputs, terms):
        dims, position = x.shape.dims, term.find(ELLIPSIS)
        if position >= 0:
            ellipsis_dims.append(
                None if dims is None or None in dims else dims[position : len(dims) - (len(term) - 1 - position)]
            )
    return len(ellipsis_dims) > 1 and (None in ellipsis_dims or len(set(ellipsis_dims)) > 1)


def _terms(equation: str, n: int) -> tuple[tuple[str, ...], str]:
    terms, output = parse(equation)
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


def matrix_transpose(a: Any, name: str | None = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Transpose matrices. conjugate: also conjugate them.

    .. math:: output[..., j, i] = a[..., i, j]

    raises ValueError for a rank below 2
    """
    a = dispatch.to_tensor(a)
    rank = a.shape.rank
    if rank is not None and rank < 2:
        raise ValueError(f"Argument `a` should be a (batch) matrix with rank >= 2. Received shape: {a.shape}")
    if conjugate:
        a = _conj(a)
    if rank is None:
        return Einsum([a], equation="...ij->...ji", name=name)
    return array.transpose(a, [*range(rank - 2), rank - 1, rank - 2], name=name or "matrix_transpose")


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Return the conjugate transpose of matrices.

    .. math:: output[..., j, i] = \\overline{matrix[..., i, j]}
    """
    return matrix_transpose(matrix, name or "adjoint", conjugate=True)


def matrix_function_gradient(op: Any, x: Any, doutput: Any) -> Tensor:
    """Compute the gradient of a matrix function f, the operator of `op`.

    f of [[A, E], [0, A]] has the derivative of f at A in direction E above its diagonal; the gradient uses A^H.
    """
    a = adjoint(x)
    top, bottom = array.concat([a, doutput], -1), array.concat([array.zeros_like(a), a], -1)
    block = op.operator(array.concat([top, bottom], -2))
    n = array.shape_op(a)[-1]
    return array.getitem(block, (..., slice(None, n), slice(n, None)))


@operator
class Cross(OperatorDefinition):
    """Compute the cross product of vectors of 3 elements.

    .. math:: product = a \\times b

    a, b: [..., 3], of one shape.
    raises InvalidArgumentError if shapes differ or the last dimension is not 3
    """

    a = Input(numeric)
    b = Input(numeric, like="a")
    product = Output(like="a")
    lod = lod_propagation.batched("a", 1)

    def infer(op) -> TensorSpec:
        a, b = op.a.spec, op.b.spec
        if not a.shape.is_compatible_with(b.shape):
            raise InvalidArgumentError(what="Both inputs must be of same shape", found=f"{a.short()}, {b.short()}")
        shape = a.shape.merge_with(b.shape)
        if shape.rank == 0 or (shape.rank is not None and shape[-1] not in (3, None)):
            raise InvalidArgumentError(what="Cross-products are only defined for 3-element vectors", found=a.short())
        return a.with_shape(shape)

    def compute(op, a: Any, b: Any) -> np.ndarray:
        x1, x2, x3 = np.moveaxis(a, -1, 0)
        y1, y2, y3 = np.moveaxis(b, -1, 0)
        return np.stack([x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1], -1)

    def gradient(op, dproduct: Any) -> tuple[Tensor, Tensor]:
        return Cross(_conj(op.b), dproduct), Cross(dproduct, _conj(op.a))


cross: signatures.Cross = Cross.as_function("cross")
