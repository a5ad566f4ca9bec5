"""Assertions on values: checked immediately if they are known, else whenever the program runs.

Lives here: Assert, and element-wise comparisons; CheckNumerics, and the errors of the switch `check_numerics`.
Not here: shapes, ranks and dtypes (static_assertions.py), the switch (__init__.py), its checks
(eager/execute.py, compiler/plan.py).

Inside `function` an assertion is an operator with an effect: it is neither dropped nor reordered. Violations that
are known while tracing raise immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, floating
from ...core.errors import InvalidArgumentError
from .. import array, dispatch, math
from ..attributes import Attr
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..strings.conversion import first_elements

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


@operator(name="Assert")
class AssertOperator(OperatorDefinition[None]):
    """Fail unless the condition is true, showing data.

    .. math:: condition = \\text{true}

    summarize: elements shown of each of `data`.
    raises InvalidArgumentError when run
    """

    condition = Input(dtypes.bool, rank=0)
    data = Input(dtypes.any_dtype, repeated=True, mixed=True)
    summarize = Attr(int, default=3)
    effect = "write"
    lod = "vanishes"
    gradient = None

    def infer(op) -> tuple[()]:
        return ()

    def compute(op, condition: Any, data: Any) -> tuple[()]:
        if not condition:
            shown = " ".join(f"[{first_elements(np.asarray(d), op.summarize)}]" for d in data)
            raise InvalidArgumentError(what=f"assertion failed: {shown}")
        return ()


def _tracing() -> bool:
    return dispatch.state.trace is not None


def Assert(condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None) -> None:
    """Fail unless `condition`, a scalar, is true.

    data: tensors shown in the error, of each the first `summarize` elements (3; -1 for all).
    raises InvalidArgumentError: eagerly at once, inside `function` when the program runs
    """
    if not isinstance(data, (list, tuple)):
        raise TypeError(f"data is a list of tensors to show, found {data!r}")
    summarize = 3 if summarize is None else summarize
    if _tracing():
        AssertOperator(
            dispatch.to_tensor(condition),
            list(map(dispatch.to_tensor, data)),
            summarize=summarize,
            name=name or "Assert",
        )
        return
    if not condition:
        rows = [_values(dispatch.to_tensor(d), summarize) for d in data]
        text = "\n".join(rows)
        raise InvalidArgumentError(what=f"Expected '{condition!s}' to be true. Summarized data: {text}")


def _values(tensor: Any, limit: int) -> str:
    """Format the first elements of an eager tensor: 1, 2, 3, ..."""
    flat = np.asarray(tensor._array).reshape(-1)
    shown = [str(v) for v in (flat if limit < 0 else flat[:limit])]
    return ", ".join([*shown, "..."] if 0 <= limit < flat.size else shown)


def _brief(name: str, tensor: Any) -> str:
    of = tensor.name if _tracing() else f"shape={tensor.shape} dtype={tensor.dtype.name}"
    return f"{name} ({of}) = "


def _start(message: str | None) -> str:
    return message or ""


def _all(condition: Any) -> Tensor:
    return math.reduce_all(condition)


def _require(
    holds: Any,
    x: Any,
    y: Any,
    static: Callable[[Any, Any], Any],
    words: Sequence[Any],
    eagerly: Callable[[], str],
    summarize: int | None,
    name: str,
) -> None:
    """Check a condition immediately if it is known, else at run time."""
    if not _tracing():
        if not holds()._array:
            raise InvalidArgumentError(what=eagerly())
        return
    if x.constant is not None and y.constant is not None and not np.all(static(x.constant, y.constant)):
        shown = [first_elements(w.constant, summarize or 3) if hasattr(w, "constant") else w for w in words]
        raise InvalidArgumentError(what="\n".join(shown))
    Assert(holds(), list(words), summarize, name)


def _compare(
    sign: str,
    operation: str,
    static: Callable[[Any, Any], Any],
    default_name: str,
    x: Any,
    y: Any,
    message: str | None,
    summarize: int | None,
    name: str | None,
) -> None:
    x, y = dispatch.to_tensor(x), dispatch.to_tensor(y)
    if x is y and sign in ("==", "<=", ">="):  # as in TensorFlow, also for NaN
        return
    test = getattr(math, operation)
    start = _start(message)

    def eagerly() -> str:
        limit = 3 if summarize is None else summarize
        a, b = x._array, y._array
        text = [start] if start else []
        text.append(f"Condition x {sign} y did not hold.")
        if a.shape == b.shape and sign == "==" and a.size and a.ndim:
            wrong = a != b
            where = np.argwhere(wrong)[: limit if limit >= 0 else None]
            text += [
                f"Indices of first {len(where)} different values:\n{where}",
                f"Corresponding x values:\n{a[wrong][: len(where)]}",
                f"Corresponding y values:\n{b[wrong][: len(where)]}",
            ]
        for letter, side in (("x", a), ("y", b)):
            first = side.reshape(-1)[: limit if limit >= 0 else None]
            text.append(f"First {len(first)} elements of {letter}:\n{first}")
        return "\n".join(text)

    if _tracing():
        words = [f"Condition x {sign} y did not hold element-wise:", _brief("x", x), x, _brief("y", y), y]
        words[:0] = [start] if start else []
    else:
        words = []
    _require(lambda: _all(test(x, y)), x, y, static, words, eagerly, summarize, name or default_name)


def assert_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Fail unless x == y for each element, after broadcasting.

    message: prefix of the error message. summarize: the number of elements it shows, by default 3.
    raises InvalidArgumentError: immediately if the values are known, else when the program runs
    """
    _compare("==", "equal", np.equal, "assert_equal", x, y, message, summarize, name)


def assert_none_equal(
    x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Fail unless x != y for each element, after broadcasting. Arguments and errors: as in `assert_equal`."""
    _compare("!=", "not_equal", np.not_equal, "assert_none_equal", x, y, message, summarize, name)


def assert_less(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Fail unless x < y for each element, after broadcasting. Arguments and errors: as in `assert_equal`."""
    _compare("<", "less", np.less, "assert_less", x, y, message, summarize, name)


def assert_less_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Fail unless x <= y for each element, after broadcasting. Arguments and errors: as in `assert_equal`."""
    _compare("<=", "less_equal", np.less_equal, "assert_less_equal", x, y, message, summarize, name)


def assert_greater(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Fail unless x > y for each element, after broadcasting. Arguments and errors: as in `assert_equal`."""
    _compare(">", "greater", np.greater, "assert_greater", x, y, message, summarize, name)


def assert_greater_equal(
    x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Fail unless x >= y for each element, after broadcasting. Arguments and errors: as in `assert_equal`."""
    _compare(">=", "greater_equal", np.greater_equal, "assert_greater_equal", x, y, message, summarize, name)


def _sign(
    sign: str,
    operation: str,
    static: Callable[[Any, Any], Any],
    default_name: str,
    x: Any,
    message: str | None,
    summarize: int | None,
    name: str | None,
) -> None:
    x = dispatch.to_tensor(x)
    zero = array.zeros((), x.dtype)
    test = getattr(math, operation)
    words = [_start(message), f"Condition x {sign} 0 did not hold element-wise:", _brief("x", x)]

    def eagerly() -> str:
        return "\n".join([*words, _values(x, 3 if summarize is None else summarize)])

    _require(lambda: _all(test(x, zero)), x, zero, static, [*words, x], eagerly, summarize, name or default_name)


def assert_positive(x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
    """Fail unless each element is above zero. Arguments and errors: as in `assert_equal`."""
    _sign(">", "greater", np.greater, "assert_positive", x, message, summarize, name)


def assert_negative(x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
    """Fail unless each element is below zero. Arguments and errors: as in `assert_equal`."""
    _sign("<", "less", np.less, "assert_negative", x, message, summarize, name)


def assert_non_negative(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Fail unless each element is zero or above. Arguments and errors: as in `assert_equal`."""
    _sign(">=", "greater_equal", np.greater_equal, "assert_non_negative", x, message, summarize, name)


def assert_non_positive(
    x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Fail unless each element is zero or below. Arguments and errors: as in `assert_equal`."""
    _sign("<=", "less_equal", np.less_equal, "assert_non_positive", x, message, summarize, name)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Fail unless |x - y| <= atol + rtol * |y| for each element, after broadcasting.

    rtol, atol: by default 10 times the machine epsilon of the dtype.
    raises InvalidArgumentError: eagerly at once, inside `function` when the program runs
    """
    x = dispatch.to_tensor(x)
    y = dispatch.to_tensor(y, x.dtype)
    real = x.dtype.real_dtype if x.dtype.is_complex else x.dtype
    eps = 10 * np.finfo(real.np).eps if real.np in (np.float16, np.float32, np.float64) else 10 * 2.0**-7
    rtol, atol = (dispatch.to_tensor(eps if t is None else t, real) for t in (rtol, atol))
    close = math.less_equal(math.abs(x - y), atol + rtol * math.abs(y))
    data = [
        _start(message),
        f"x and y not equal to tolerance rtol = {rtol!s}, atol = {atol!s}",
        _brief("x", x),
        x,
        _brief("y", y),
        y,
    ]
    Assert(_all(close), data, summarize, name or "assert_near")


@operator
class CheckNumerics(OperatorDefinition):
    """Return a tensor; raise an error unless all its elements are finite.

    .. math:: output = tensor

    message: prefix of the error message.
    raises InvalidArgumentError naming NaN, Inf or both
    """

    tensor = Input(floating)
    output = Output(like="tensor")
    message = Attr(str)
    inplace = {"output": "tensor"}
    effect = "write"  # its purpose is to raise: it is neither reordered nor dropped

    def compute(op, tensor: np.ndarray) -> np.ndarray:
        if not np.isfinite(tensor).all():
            kinds = [k for k, present in (("Inf", np.isinf(tensor).any()), ("NaN", np.isnan(tensor).any())) if present]
            raise InvalidArgumentError(what=f"{op.message} : Tensor had {' and '.join(kinds)} values")
        return tensor

    def gradient(op, doutput: Any) -> Tensor:
        return CheckNumerics(
            doutput, message=f"Not a number (NaN) or infinity (Inf) values detected in gradient. {op.message}"
        )


check_numerics: signatures.CheckNumerics = CheckNumerics.as_function("check_numerics")


@documented_by(CheckNumerics)
def assert_all_finite(x: Any, message: str, name: str | None = None) -> Tensor:
    """Return the tensor; raise an error if an element is NaN or infinite."""
    return check_numerics(dispatch.to_tensor(x), message, name=name)


# Operators that only move values: their nonfinite outputs stem from nonfinite inputs.
MOVERS = frozenset(
    {
        "BroadcastTo",
        "Concat",
        "Const",
        "ExpandDims",
        "Fill",
        "Gather",
        "GatherNd",
        "Identity",
        "Pack",
        "Permute",
        "Reshape",
        "Reverse",
        "Select",
        "Slice",
        "Split",
        "Squeeze",
        "Stack",
        "StopGradient",
        "StridedSlice",
        "Tile",
        "Transpose",
        "Unpack",
        "Unstack",
        "ReadVariable",
    }
)


def _kinds(array: np.ndarray) -> list[tuple[str, int]]:
    counts = (("-Inf", array == -np.inf), ("+Inf", array == np.inf), ("NaN", np.isnan(array)))
    return [(kind, int(np.count_nonzero(mask))) for kind, mask in counts if mask.any()]


def wrong_number(
    op: str,
    index: int,
    outputs: Sequence[Any],
    dtypes: Sequence[DType],
    inputs: Sequence[str],
    name: str | None,
    at: str | None,
    graph: str | None = None,
) -> InvalidArgumentError | None:
    """Return the error for a NaN or infinity in output `index` of a call, or None.

    outputs, dtypes: of all outputs. inputs: a description of each. at: the user's line. graph: of the node, if any.
    """
    dtype = dtypes[index]
    if not dtype.is_floating and not dtype.is_complex:
        return None
    array: Any = np.asarray(outputs[index])
    if dtype.is_complex:
        array = np.stack([array.real, array.imag])
    wide = array.astype(np.float64)
    if np.isfinite(wide).all():
        return None
    kinds = _kinds(wide)
    kind = f'graph op "{op}"' if graph is not None else f'eagerly-executing op "{op}"'
    lines = [
        "NaN or Inf in the output",
        "",
        f"!!! Detected Infinity or NaN in output {index} of {kind} (# of outputs: {len(outputs)}) !!!",
        f"  dtype: {dtype!r}",
        f"  shape: {tuple(np.shape(outputs[index]))}",
        *(f"  # of {k} elements: {n}" for k, n in kinds),
        "",
    ]
    if len(inputs) == 1:
        lines.append(f"  Input tensor: {inputs[0]}")
    else:
        lines += [f"  Input tensors ({len(inputs)}):", *(f"         {i}: {x}" for i, x in enumerate(inputs))]
    if graph is not None:
        lines.append(f'  Graph name: "{graph}"')
    lines.append(f" : Tensor had {' and '.join(k for k, _ in kinds)} values")
    return InvalidArgumentError(op=op, node=name, at=at, what="\n".join(lines))
