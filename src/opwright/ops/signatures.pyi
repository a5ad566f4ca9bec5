"""Types of the functions that `Operator.as_function` builds, by operator. Written by `make signatures`."""

from collections.abc import Sequence
from typing import Any, Protocol

from .tensor import Tensor, TensorValue

class Add(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class ApproximateEqual(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, tolerance: float = 1e-05, name: str | None = None) -> Tensor: ...

class AsString(Protocol):
    def __call__(
        self,
        input: TensorValue,
        precision: int = -1,
        scientific: bool = False,
        shortest: bool = False,
        width: int = -1,
        fill: str = "",
        name: str | None = None,
    ) -> Tensor: ...

class Bitcast(Protocol):
    def __call__(self, input: TensorValue, type: Any, name: str | None = None) -> Tensor: ...

class CheckNumerics(Protocol):
    def __call__(self, tensor: TensorValue, message: str, name: str | None = None) -> Tensor: ...

class Cholesky(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class Complex(Protocol):
    def __call__(self, real: TensorValue, imag: TensorValue, name: str | None = None) -> Tensor: ...

class CropAndResize(Protocol):
    def __call__(
        self,
        image: TensorValue,
        boxes: TensorValue,
        box_indices: TensorValue,
        crop_size: TensorValue,
        method: str = "bilinear",
        extrapolation_value: float = 0.0,
        name: str | None = None,
    ) -> Tensor: ...

class Cross(Protocol):
    def __call__(self, a: TensorValue, b: TensorValue, name: str | None = None) -> Tensor: ...

class DepthToSpace(Protocol):
    def __call__(
        self, input: TensorValue, block_size: int, data_format: str = "NHWC", name: str | None = None
    ) -> Tensor: ...

class DynamicPartition(Protocol):
    def __call__(
        self, data: TensorValue, partitions: TensorValue, num_partitions: int, name: str | None = None
    ) -> list[Tensor]: ...

class DynamicStitch(Protocol):
    def __call__(
        self, indices: Sequence[TensorValue], data: Sequence[TensorValue], name: str | None = None
    ) -> Tensor: ...

class Elu(Protocol):
    def __call__(self, features: TensorValue, name: str | None = None) -> Tensor: ...

class EnsureShape(Protocol):
    def __call__(self, x: TensorValue, shape: Any, name: str | None = None) -> Tensor: ...

class FFT(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class FFT2D(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class FFT3D(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class FakeQuantWithMinMaxArgs(Protocol):
    def __call__(
        self,
        inputs: TensorValue,
        min: float = -6.0,
        max: float = 6.0,
        num_bits: int = 8,
        narrow_range: bool = False,
        name: str | None = None,
    ) -> Tensor: ...

class FakeQuantWithMinMaxVars(Protocol):
    def __call__(
        self,
        inputs: TensorValue,
        min: TensorValue,
        max: TensorValue,
        num_bits: int = 8,
        narrow_range: bool = False,
        name: str | None = None,
    ) -> Tensor: ...

class FakeQuantWithMinMaxVarsPerChannel(Protocol):
    def __call__(
        self,
        inputs: TensorValue,
        min: TensorValue,
        max: TensorValue,
        num_bits: int = 8,
        narrow_range: bool = False,
        name: str | None = None,
    ) -> Tensor: ...

class Fill(Protocol):
    def __call__(self, dims: TensorValue, value: TensorValue, name: str | None = None) -> Tensor: ...

class FloorDiv(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class FloorMod(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class Gelu(Protocol):
    def __call__(self, features: TensorValue, approximate: bool = False, name: str | None = None) -> Tensor: ...

class HSVToRGB(Protocol):
    def __call__(self, images: TensorValue, name: str | None = None) -> Tensor: ...

class IFFT(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class IFFT2D(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class IFFT3D(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class Identity(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class InvertPermutation(Protocol):
    def __call__(self, x: TensorValue, name: str | None = None) -> Tensor: ...

class L2Loss(Protocol):
    def __call__(self, t: TensorValue, name: str | None = None) -> Tensor: ...

class LRN(Protocol):
    def __call__(
        self,
        input: TensorValue,
        depth_radius: int = 5,
        bias: float = 1.0,
        alpha: float = 1.0,
        beta: float = 0.5,
        name: str | None = None,
    ) -> Tensor: ...

class MatrixBandPart(Protocol):
    def __call__(
        self, input: TensorValue, num_lower: TensorValue, num_upper: TensorValue, name: str | None = None
    ) -> Tensor: ...

class MatrixDeterminant(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class MatrixExponential(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class MatrixLogarithm(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class MatrixSquareRoot(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class Maximum(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class Minimum(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class Mul(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class MulNoNan(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class Neg(Protocol):
    def __call__(self, x: TensorValue, name: str | None = None) -> Tensor: ...

class Pow(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class RGBToHSV(Protocol):
    def __call__(self, images: TensorValue, name: str | None = None) -> Tensor: ...

class Rank(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class RealDiv(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class RegexFullMatch(Protocol):
    def __call__(self, input: TensorValue, pattern: TensorValue, name: str | None = None) -> Tensor: ...

class RegexReplace(Protocol):
    def __call__(
        self,
        input: TensorValue,
        pattern: TensorValue,
        rewrite: TensorValue,
        replace_global: bool = True,
        name: str | None = None,
    ) -> Tensor: ...

class Relu(Protocol):
    def __call__(self, features: TensorValue, name: str | None = None) -> Tensor: ...

class Relu6(Protocol):
    def __call__(self, features: TensorValue, name: str | None = None) -> Tensor: ...

class SegmentMax(Protocol):
    def __call__(self, data: TensorValue, segment_ids: TensorValue, name: str | None = None) -> Tensor: ...

class SegmentMean(Protocol):
    def __call__(self, data: TensorValue, segment_ids: TensorValue, name: str | None = None) -> Tensor: ...

class SegmentMin(Protocol):
    def __call__(self, data: TensorValue, segment_ids: TensorValue, name: str | None = None) -> Tensor: ...

class SegmentProd(Protocol):
    def __call__(self, data: TensorValue, segment_ids: TensorValue, name: str | None = None) -> Tensor: ...

class SegmentSum(Protocol):
    def __call__(self, data: TensorValue, segment_ids: TensorValue, name: str | None = None) -> Tensor: ...

class Selu(Protocol):
    def __call__(self, features: TensorValue, name: str | None = None) -> Tensor: ...

class Sign(Protocol):
    def __call__(self, x: TensorValue, name: str | None = None) -> Tensor: ...

class Size(Protocol):
    def __call__(self, input: TensorValue, out_type: Any = ..., name: str | None = None) -> Tensor: ...

class SpaceToBatchND(Protocol):
    def __call__(
        self, input: TensorValue, block_shape: TensorValue, paddings: TensorValue, name: str | None = None
    ) -> Tensor: ...

class SpaceToDepth(Protocol):
    def __call__(
        self, input: TensorValue, block_size: int, data_format: str = "NHWC", name: str | None = None
    ) -> Tensor: ...

class SquaredDifference(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class StopGradient(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class StringJoin(Protocol):
    def __call__(self, inputs: Sequence[TensorValue], separator: str = "", name: str | None = None) -> Tensor: ...

class StringLength(Protocol):
    def __call__(self, input: TensorValue, unit: str = "BYTE", name: str | None = None) -> Tensor: ...

class StringLower(Protocol):
    def __call__(self, input: TensorValue, encoding: str = "", name: str | None = None) -> Tensor: ...

class StringStrip(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class StringToHashBucket(Protocol):
    def __call__(self, input: TensorValue, num_buckets: int, name: str | None = None) -> Tensor: ...

class StringToHashBucketFast(Protocol):
    def __call__(self, input: TensorValue, num_buckets: int, name: str | None = None) -> Tensor: ...

class StringToHashBucketStrong(Protocol):
    def __call__(self, input: TensorValue, num_buckets: int, key: Sequence[int], name: str | None = None) -> Tensor: ...

class StringToNumber(Protocol):
    def __call__(self, input: TensorValue, out_type: Any = ..., name: str | None = None) -> Tensor: ...

class StringUpper(Protocol):
    def __call__(self, input: TensorValue, encoding: str = "", name: str | None = None) -> Tensor: ...

class Sub(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class Substr(Protocol):
    def __call__(
        self, input: TensorValue, pos: TensorValue, len: TensorValue, unit: str = "BYTE", name: str | None = None
    ) -> Tensor: ...

class TensorScatterAdd(Protocol):
    def __call__(
        self, tensor: TensorValue, indices: TensorValue, updates: TensorValue, name: str | None = None
    ) -> Tensor: ...

class TensorScatterMax(Protocol):
    def __call__(
        self, tensor: TensorValue, indices: TensorValue, updates: TensorValue, name: str | None = None
    ) -> Tensor: ...

class TensorScatterMin(Protocol):
    def __call__(
        self, tensor: TensorValue, indices: TensorValue, updates: TensorValue, name: str | None = None
    ) -> Tensor: ...

class TensorScatterSub(Protocol):
    def __call__(
        self, tensor: TensorValue, indices: TensorValue, updates: TensorValue, name: str | None = None
    ) -> Tensor: ...

class TensorScatterUpdate(Protocol):
    def __call__(
        self, tensor: TensorValue, indices: TensorValue, updates: TensorValue, name: str | None = None
    ) -> Tensor: ...

class Tile(Protocol):
    def __call__(self, input: TensorValue, multiples: TensorValue, name: str | None = None) -> Tensor: ...

class Timestamp(Protocol):
    def __call__(self, name: str | None = None) -> Tensor: ...

class TruncateDiv(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class TruncateMod(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class UnicodeEncode(Protocol):
    def __call__(
        self,
        input: TensorValue,
        output_encoding: str,
        errors: str = "replace",
        replacement_char: int = 65533,
        name: str | None = None,
    ) -> Tensor: ...

class UnicodeScript(Protocol):
    def __call__(self, input: TensorValue, name: str | None = None) -> Tensor: ...

class UnicodeTranscode(Protocol):
    def __call__(
        self,
        input: TensorValue,
        input_encoding: str,
        output_encoding: str,
        errors: str = "replace",
        replacement_char: int = 65533,
        replace_control_characters: bool = False,
        name: str | None = None,
    ) -> Tensor: ...

class UnravelIndex(Protocol):
    def __call__(self, indices: TensorValue, dims: TensorValue, name: str | None = None) -> Tensor: ...

class UnsortedSegmentJoin(Protocol):
    def __call__(
        self,
        inputs: TensorValue,
        segment_ids: TensorValue,
        num_segments: TensorValue,
        separator: str = "",
        name: str | None = None,
    ) -> Tensor: ...

class UnsortedSegmentMax(Protocol):
    def __call__(
        self, data: TensorValue, segment_ids: TensorValue, num_segments: TensorValue, name: str | None = None
    ) -> Tensor: ...

class UnsortedSegmentMin(Protocol):
    def __call__(
        self, data: TensorValue, segment_ids: TensorValue, num_segments: TensorValue, name: str | None = None
    ) -> Tensor: ...

class UnsortedSegmentProd(Protocol):
    def __call__(
        self, data: TensorValue, segment_ids: TensorValue, num_segments: TensorValue, name: str | None = None
    ) -> Tensor: ...

class Xdivy(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class Xlog1py(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...

class Xlogy(Protocol):
    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...
