"""Element-wise arithmetic with broadcasting: sums, products, quotients, powers.

Lives here: Add ... Pow, Maximum, Minimum, SquaredDifference, Neg, AddN.
Not here: quotients in which 0 overrides NaN, analysis (elementary.py), abs and sign (complex_numbers.py).

Gradients ignore broadcasting: for element-wise operators each is summed to its input's shape (autodiff.py).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import floating_or_complex, numeric, real, signed
from ...core.errors import InvalidArgumentError, SignatureError
from ...core.shapes import broadcast
from ...core.specs import TensorSpec
from ...scalar.table import FUNCTIONS
from .. import array, dispatch, math
from ..definition import operator
from ..indexed_slices import IndexedSlices, summed
from ..kernels import KernelKey
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from ..tensor import TensorLike
from ..tensor_list import TensorList

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


@operator
class Add(OperatorDefinition):
    """Sum. Strings are concatenated.

    .. math:: z = x + y
    """

    x = Input((*numeric, dtypes.string))
    y = Input((*numeric, dtypes.string), like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": ("x", "y")}
    compute = FUNCTIONS["add"].numpy

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        return dz, dz


add: signatures.Add = Add.as_function("add")


@operator
class Sub(OperatorDefinition):
    """Difference.

    .. math:: z = x - y
    """

    x = Input(numeric)
    y = Input(numeric, like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": ("x", "y")}
    compute = FUNCTIONS["sub"].numpy

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        return dz, -dz


subtract: signatures.Sub = Sub.as_function("subtract")


@operator
class Mul(OperatorDefinition):
    """Product.

    .. math:: z = x y
    """

    x = Input(numeric)
    y = Input(numeric, like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": ("x", "y")}
    compute = FUNCTIONS["mul"].numpy

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        dx = dz * _conj(op.y) if op.needs_gradient("x") else None
        return dx, dz * _conj(op.x) if op.needs_gradient("y") else None


multiply: signatures.Mul = Mul.as_function("multiply")


def _conj(x: Any) -> Tensor:
    """Return the complex conjugate; real tensors unchanged."""
    if not x.dtype.is_complex:
        result: Tensor = x
        return result
    return math.conj(x)


@operator
class RealDiv(OperatorDefinition):
    """Quotient of floating or complex tensors, by IEEE 754: x / 0 is infinite, 0 / 0 is NaN.

    .. math:: z = x / y
    """

    x = Input(floating_or_complex)
    y = Input(floating_or_complex, like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": ("x", "y")}
    compute = FUNCTIONS["div"].ufunc

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        y = _conj(op.y)
        dx = dz / y if op.needs_gradient("x") else None
        return dx, -dz * _conj(op.z) / y if op.needs_gradient("y") else None


realdiv: signatures.RealDiv = RealDiv.as_function("realdiv")


@documented_by(RealDiv)
def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x / y as Python 3 defines it: 8- and 16-bit integers are converted to float32, wider ones to float64."""
    return RealDiv(*floating_pair(x, y), name=name)


truediv = divide


def floating_pair(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the arguments of a division as tensors of one dtype, integers converted to floats.

    raises SignatureError where the dtypes differ
    """
    x, y = _pair(x, y)
    if x.dtype.is_integer:
        wide = dtypes.float32 if x.dtype.size <= 2 else dtypes.float64
        x, y = array.cast(x, wide), array.cast(y, wide)
    return x, y


def _pair(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two arguments as tensors of one dtype: a Python number, list or array takes the other's.

    raises SignatureError where the dtypes differ and both are given
    """
    if isinstance(x, TensorLike) or (isinstance(x, (np.ndarray, np.generic)) and not isinstance(y, TensorLike)):
        x = dispatch.to_tensor(x)
        y = dispatch.to_tensor(y, None if isinstance(y, TensorLike) else x.dtype)
    elif isinstance(y, (TensorLike, np.ndarray, np.generic)):
        y = dispatch.to_tensor(y)
        x = dispatch.to_tensor(x, y.dtype)
    else:
        x, y = dispatch.to_tensor(x), dispatch.to_tensor(y)
        if {x.dtype, y.dtype} == {dtypes.int32, dtypes.float32}:
            x, y = array.cast(x, dtypes.float32), array.cast(y, dtypes.float32)
    if x.dtype is not y.dtype:
        raise SignatureError(
            op="divide",
            what="`x` and `y` must have the same dtype",
            do="ow.cast one of them",
            found={"x": x.dtype.name, "y": y.dtype.name},
        )
    return x, y


def check_divisor(y: np.ndarray) -> None:
    """Raise InvalidArgumentError for integers with a zero among them."""
    if y.dtype.kind in "iu" and not np.all(y):
        raise InvalidArgumentError(what="Integer division by zero", wanted="a divisor without zeros")


@operator
class FloorDiv(OperatorDefinition):
    """Quotient rounded toward minus infinity.

    .. math:: z = \\lfloor x / y \\rfloor

    raises InvalidArgumentError for an integer divisor of 0
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(like="x")
    elementwise = True
    gradient = None

    def compute(op, x: Any, y: Any) -> np.ndarray:
        check_divisor(y)
        result: np.ndarray = FUNCTIONS["floor_div"].numpy(x, y)
        return result


floordiv: signatures.FloorDiv = FloorDiv.as_function("floordiv")


@operator
class FloorMod(OperatorDefinition):
    """Remainder with the divisor's sign.

    .. math:: z = x - y \\lfloor x / y \\rfloor

    raises InvalidArgumentError for an integer divisor of 0
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x: Any, y: Any) -> np.ndarray:
        check_divisor(y)
        result: np.ndarray = FUNCTIONS["floor_mod"].numpy(x, y)
        return result

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        return dz, -dz * FloorDiv(op.x, op.y)


floormod: signatures.FloorMod = FloorMod.as_function("floormod")


@operator
class Pow(OperatorDefinition):
    """Power.

    .. math:: z = x^y

    raises InvalidArgumentError for an integer raised to a negative integer
    """

    x = Input(numeric)
    y = Input(numeric, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x: Any, y: Any) -> np.ndarray:
        if y.dtype.kind == "i" and np.any(y < 0):
            raise InvalidArgumentError(
                what="Integers to negative integer powers are not allowed", do="ow.cast the base to a float"
            )
        result: np.ndarray = FUNCTIONS["pow"].numpy(x, y)
        return result

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        x, y = _conj(op.x), _conj(op.y)
        # log x only where it is finite: at x = 0 the power's own limit, 0, is the derivative by y
        safe = x > 0 if not x.dtype.is_complex else x != 0
        log_x = array.where(safe, math.log(array.where(safe, x, array.ones_like(x))), array.zero_of(x))
        return dz * y * Pow(x, y - 1), dz * _conj(op.z) * log_x


pow: signatures.Pow = Pow.as_function("pow")


@operator
class Maximum(OperatorDefinition):
    """Maximum of two; NaN if either is. At equal elements the gradient flows to x.

    .. math:: z = \\max(x, y)
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": ("x", "y")}
    compute = FUNCTIONS["ieee_maximum"].numpy

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        first = op.x >= op.y
        return array.where(first, dz, array.zero_of(dz)), array.where(first, array.zero_of(dz), dz)


maximum: signatures.Maximum = Maximum.as_function("maximum")


@operator
class Minimum(OperatorDefinition):
    """Minimum of two; NaN if either is. At equal elements the gradient flows to x.

    .. math:: z = \\min(x, y)
    """

    x = Input(real)
    y = Input(real, like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": ("x", "y")}
    compute = FUNCTIONS["ieee_minimum"].numpy

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        first = op.x <= op.y
        return array.where(first, dz, array.zero_of(dz)), array.where(first, array.zero_of(dz), dz)


minimum: signatures.Minimum = Minimum.as_function("minimum")


@operator
class SquaredDifference(OperatorDefinition):
    """Square of the difference; of complex numbers that of its absolute value.

    .. math:: z = |x - y|^2
    """

    x = Input(numeric)
    y = Input(numeric, like="x")
    z = Output(like="x")
    elementwise = True
    inplace = {"z": "x"}

    def compute(op, x: Any, y: Any, *, out: Any = None) -> np.ndarray:
        result: np.ndarray = FUNCTIONS["squared_difference"].numpy(x, y, out)
        return result

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        difference = op.x - op.y
        if dz.dtype.is_complex:  # z is real, whatever its dtype
            dz = math.complex(math.real(dz), math.real(dz) * 0)
        dx = dz * (2 * difference)
        return dx, -dx


squared_difference: signatures.SquaredDifference = SquaredDifference.as_function("squared_difference")


@operator
class Neg(OperatorDefinition):
    """Negative.

    .. math:: y = -x
    """

    x = Input(signed, kinds=("dense", "lod", "rows"))
    y = Output(like="x", kind="as x")
    elementwise = True
    inplace = {"y": "x"}
    compute = FUNCTIONS["neg"].numpy

    def on_rows(op, x: Any) -> object:
        return -x

    def gradient(op, dy: Any) -> Tensor:
        result: Tensor = -dy
        return result


negative: signatures.Neg = Neg.as_function("negative")


@operator
class AddN(OperatorDefinition):
    """Sum of several tensors of one shape, without broadcasting; of lists of tensors, element by element.

    .. math:: sum = \\sum_k inputs_k

    The sum of sparse rows is sparse, each row once; with a tensor among the inputs they are added to its rows.
    raises InvalidArgumentError for no inputs, for shapes that differ
    """

    inputs = Input((*numeric, dtypes.variant), repeated=True, kinds=("dense", "lod", "rows", "list"))
    sum = Output(like="inputs")
    no_need_buffer = ("inputs",)
    views = {"sum": "inputs"}

    def infer_kinds(op) -> str:
        kinds = set(op.inputs)
        if "list" in kinds:
            if len(kinds) > 1:
                raise InvalidArgumentError(
                    what="lists of tensors are added to lists of tensors alone",
                    found=list(op.inputs),
                    wanted="all list, or none",
                )
            return "list"
        if kinds == {"rows"}:
            return "rows"
        return "lod" if "lod" in kinds else "dense"

    def on_rows(op, inputs: Any) -> object:
        return summed(inputs)

    def expected_kernel_key(op, place: Any) -> KernelKey:
        return KernelKey(place, op.dtype_of("inputs", skip_empty=True))  # those not filled yet add nothing

    def infer(op) -> TensorSpec:
        if not op.inputs:
            raise InvalidArgumentError(what="no tensors to add", wanted="at least one")
        shape = op.inputs[0].spec.shape
        for i, other in enumerate(op.inputs[1:], 1):
            if not shape.is_compatible_with(other.spec.shape):
                raise InvalidArgumentError(
                    what=f"inputs 0 and {i} differ in shape", found=f"{op.inputs[0].spec.short()}, {other.spec.short()}"
                )
            shape = broadcast(shape, other.spec.shape)
        return TensorSpec(shape, op.inputs[0].spec.dtype)

    def compute(op, inputs: Any) -> object:
        total = inputs[0]
        if isinstance(total, TensorList):
            return functools.reduce(TensorList.add, inputs)
        if len(inputs) > 1:
            total = total + inputs[1]
        for x in inputs[2:]:  # a sum of many is one new array
            total += x
        return total

    def gradient(op, dsum: Any) -> list[Any]:
        return [dsum] * len(op.inputs)


@documented_by(AddN)
def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """Return the sum of a list of tensors.

    Sparse rows (IndexedSlices) among them are added to the rows of the sum, which is a tensor.
    raises InvalidArgumentError for shapes or dtypes that differ, ValueError for no inputs or what is not a tensor
    """
    if isinstance(inputs, (list, tuple)) and any(isinstance(x, IndexedSlices) for x in inputs):
        total = summed([x if isinstance(x, IndexedSlices) else dispatch.to_tensor(x) for x in inputs])
        return total.to_dense() if isinstance(total, IndexedSlices) else total
    return AddN([dispatch.to_tensor(x) for x in inputs], name=name)


accumulate_n = add_n


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> IndexedSlices | Tensor:
    """Multiply a tensor, or the values of sparse rows, by a scalar. Raises ValueError if `scalar` has dimensions."""
    if not isinstance(x, IndexedSlices):
        given = hasattr(scalar, "dtype") and isinstance(x, (int, float))
        x = dispatch.to_tensor(x, dtypes.as_dtype(scalar.dtype) if given else None)
    scalar = dispatch.to_tensor(scalar, None if hasattr(scalar, "spec") else x.dtype)
    if scalar.shape.rank not in (0, None):
        raise ValueError(f"The input scalar must be a 0-D value. Received shape {scalar.shape}.")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(Mul(scalar, x.values, name=name), x.indices, x.dense_shape)
    return Mul(scalar, x, name=name)
