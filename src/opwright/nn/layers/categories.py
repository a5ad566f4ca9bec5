"""Layers of categories: integers, intervals and hashes as numbers or vectors.

Lives here: `encode`, the vectors of categories; CategoryEncoding, Discretization, Hashing, HashedCrossing.
Not here: layers with a vocabulary (index_lookup.py), hashes of strings (ops/strings/).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import as_dtype, float32, float64, int64, string
from ...ops import array, dispatch, math, strings
from ...ops.math.statistics import DenseBincount
from ...ops.strings.crosses import CROSS_KEY, fingerprints, joined_fingerprint
from .. import backend
from .configurable_layer import ConfigurableLayer

if TYPE_CHECKING:
    from ...ops.tensor import Tensor

MODES = ("int", "one_hot", "multi_hot", "count")


def check_mode(mode: str, allowed: tuple[str, ...], sparse: bool) -> str:
    """Return an output mode under its name. Raises ValueError for others, and for sparse vectors."""
    mode = {"binary": "multi_hot", "counts": "count", "tf-idf": "tf_idf"}.get(mode, mode)
    if mode not in allowed:
        raise ValueError(f"Unknown arg for output_mode: {mode}. Expected one of {', '.join(allowed)}")
    if sparse:
        raise ValueError("`sparse=True` is not supported: the encoding is a dense tensor")
    return mode


def encode(categories: Tensor, mode: str, depth: int, dtype: Any, weights: Any = None) -> Tensor:
    """Return categories as vectors of `depth` numbers; those outside of [0, depth) have none.

    categories: [batch, n, ...]. mode: "one_hot": a vector each, [batch, n, ..., depth], without a last axis of size 1;
    "multi_hot": 1 for each category that occurs along the axis after the batch, [batch, ..., depth]; "count": how
    often, or the sum of the weights [batch, n, ...] where it does. A scalar is a row of one category.
    """
    rank = categories.shape.rank
    if rank is not None and rank > 2 and mode != "one_hot":  # Keras's axis of an example's categories
        order = [0, *range(2, rank), 1]
        categories = array.transpose(categories, order)
        weights = None if weights is None else array.transpose(weights, order)
    if mode == "one_hot":
        if rank is not None and rank > 1 and categories.shape[-1] == 1:
            categories = array.squeeze(categories, [-1])
        return array.one_hot(categories, depth, dtype=dtype)
    if weights is not None or rank is None:
        each = array.one_hot(categories, depth, dtype=dtype)
        if weights is not None:
            each = each * array.expand_dims(array.cast(weights, dtype), -1)
        if rank == 0:
            return each
        return math.reduce_max(each, axis=-2) if mode == "multi_hot" else math.reduce_sum(each, axis=-2)
    rows = array.reshape(categories, [1, -1]) if rank < 2 else categories
    if rank > 2:
        last = rows.shape[-1]
        rows = array.reshape(rows, [-1, array.shape(rows)[-1] if last is None else last])
    rows = array.where(rows < 0, array.cast(depth, rows.dtype), rows)  # the operator counts what is not negative
    wide = dtype if as_dtype(dtype) in (float32, float64, int64) else float32
    counts = DenseBincount(rows, depth, array.zeros([0], wide), binary_output=mode == "multi_hot")
    if rank != 2:
        lead = [] if rank < 2 else [array.shape(categories)[i] for i in range(rank - 1)]
        counts = array.reshape(counts, [*lead, depth])
    return counts if counts.dtype is as_dtype(dtype) else array.cast(counts, dtype)


def encoded_shape(shape: Any, mode: str, depth: int | None) -> tuple[Any, ...]:
    """Return the shape of `encode` for the shape of categories."""
    shape = (*shape,)
    if mode == "int":
        return (*shape,)
    if mode == "one_hot":
        return (*(shape[:-1] if len(shape) > 1 and shape[-1] == 1 else shape), depth)
    return (*shape[:1], *shape[2:], depth) if len(shape) > 1 else (depth,)


def batches_of(data: Any, steps: int | None = None) -> Iterator[Any]:
    """Yield the batches of what a layer adapts to: of a dataset or another iterable, or the data itself.

    Lists, tuples, arrays and tensors are one batch.
    """
    if isinstance(data, (list, tuple, np.ndarray)) or hasattr(data, "dtype") or not isinstance(data, Iterable):
        yield data
        return
    for i, batch in enumerate(data):
        if steps is not None and i >= steps:
            return
        yield batch


class CategoryEncoding(ConfigurableLayer):
    """Encoding of integers in [0, num_tokens) as vectors of num_tokens.

    output_mode: "one_hot": one vector per integer; "multi_hot": 1 for integers that occur in an example; "count": their
    number, or the sum of their count_weights.
    raises ValueError for another mode, or without num_tokens
    """

    def __init__(
        self, num_tokens: int | None = None, output_mode: str = "multi_hot", sparse: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        output_mode = check_mode(output_mode, MODES[1:], sparse)
        if num_tokens is None:
            raise ValueError(
                "num_tokens must be set to use this layer. If the number of tokens is not known "
                "beforehand, "
                "use the IntegerLookup layer instead."
            )
        if num_tokens < 1:
            raise ValueError(f"`num_tokens` must be >= 1. Received: num_tokens={num_tokens}.")
        self._set_arguments(num_tokens=num_tokens, output_mode=output_mode, sparse=sparse)
        self._build_at_init()

    def call(self, inputs: Any, count_weights: Any = None) -> Tensor:
        """Encode the inputs."""
        inputs = array.cast(inputs, "int32")
        if count_weights is not None and self.output_mode != "count":
            raise ValueError(
                "`count_weights` is not used when `output_mode` is not `'count'`. Received "
                f"`count_weights={count_weights}`."
            )
        return encode(inputs, self.output_mode, self.num_tokens, self.compute_dtype, count_weights)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the shape of the encoding."""
        return encoded_shape(input_shape, self.output_mode, self.num_tokens)


class Discretization(ConfigurableLayer):
    """Intervals of numbers: i for bin_boundaries[i - 1] <= x < bin_boundaries[i].

    bin_boundaries: increasing numbers; or num_bins: how many intervals, of about equally many examples, `adapt` finds,
    with error epsilon. output_mode: "int": int32 numbers of intervals; "one_hot", "multi_hot", "count": as
    CategoryEncoding.
    raises ValueError unless exactly one of bin_boundaries and num_bins is passed
    """

    def __init__(
        self,
        bin_boundaries: Any = None,
        num_bins: int | None = None,
        epsilon: float = 0.01,
        output_mode: str = "int",
        sparse: bool = False,
        dtype: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, **kwargs)
        mode = check_mode(output_mode, MODES, sparse)
        if num_bins is not None and num_bins < 0:
            raise ValueError(f"`num_bins` must be greater than or equal to 0. Received: `num_bins={num_bins}`")
        if num_bins is not None and bin_boundaries is not None:
            raise ValueError(
                "Both `num_bins` and `bin_boundaries` should not be set. "
                f"Received: `num_bins={num_bins}` and `bin_boundaries={bin_boundaries}`"
            )
        if num_bins is None and bin_boundaries is None:
            raise ValueError("You need to set either `num_bins` or `bin_boundaries`.")
        boundaries = None if bin_boundaries is None else np.asarray(bin_boundaries).tolist()
        self._set_arguments(
            bin_boundaries=boundaries, num_bins=num_bins, epsilon=epsilon, output_mode=mode, sparse=sparse
        )
        self.summary = np.zeros((2, 0), np.float32)
        self._build_at_init()

    @property
    def output_dtype(self) -> str:
        """Name of the dtype of the result."""
        return "int32" if self.output_mode == "int" else self.compute_dtype

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Find the boundaries of num_bins intervals of the numbers in an array, a list of batches or a Dataset.

        steps: the number of batches to read. raises ValueError if the constructor had the boundaries
        """
        if self.num_bins is None:
            raise ValueError(
                "Cannot adapt a Discretization layer that has been initialized with `bin_boundaries`, use "
                "`num_bins` instead."
            )
        self.reset_state()
        for batch in data if isinstance(data, (list, tuple)) else batches_of(data, steps):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Add a batch to the summary from which `finalize_state` takes the boundaries."""
        summary = _summary(np.asarray(data).astype(np.float32), self.epsilon)
        merged = np.concatenate((summary, self.summary), axis=1)
        self.summary = _compressed(merged[:, np.argsort(merged[0])], self.epsilon)

    def reset_state(self) -> None:
        """Forget all batches."""
        self.summary = np.zeros((2, 0), np.float32)

    def finalize_state(self) -> None:
        """Take the boundaries from the batches so far."""
        if self.num_bins is not None:
            self.bin_boundaries = _compressed(self.summary, 1.0 / self.num_bins)[0, :-1].tolist()

    def call(self, inputs: Any) -> Tensor:
        """Return the intervals. Raises ValueError before there are boundaries."""
        if self.bin_boundaries is None:
            raise ValueError(
                "You need to either pass the `bin_boundaries` argument at construction time or call "
                "`adapt(dataset)` before you can start using the `Discretization` layer."
            )
        numbers: Tensor = array.cast(inputs, float32)
        boundaries = np.asarray(self.bin_boundaries, np.float32)
        flat = array.searchsorted(boundaries, array.reshape(numbers, [-1]), side="right")
        bins = array.reshape(flat, array.shape(numbers))
        if self.output_mode == "int":
            return bins
        return encode(bins, self.output_mode, len(boundaries) + 1, self.compute_dtype)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the shape of the intervals or their encoding."""
        depth = self.num_bins if self.bin_boundaries is None else len(self.bin_boundaries) + 1
        return encoded_shape(input_shape, self.output_mode, depth)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Discretization:
        """Return the layer of a configuration, which after `adapt` has num_bins and the boundaries."""
        config = dict(config)
        adapted = config.pop("bin_boundaries", None) if config.get("num_bins") is not None else None
        layer = cls(**config)
        layer.bin_boundaries = layer.bin_boundaries if adapted is None else adapted
        return layer


def _summary(values: np.ndarray, epsilon: float) -> np.ndarray:
    """Return every k-th of the sorted numbers, about 1 / epsilon of them, and how many each stands for: [2, n]."""
    values = np.sort(values.reshape(-1))
    step = max(values.size * epsilon, 1)
    boundaries = values[int(step - 1) :: int(step)]
    return np.stack([boundaries, np.full_like(boundaries, step)])


def _compressed(summary: np.ndarray, epsilon: float) -> np.ndarray:
    """Return a summary of 1 / epsilon numbers: at equal steps of the cumulative weights, interpolated."""
    if summary.shape[1] * epsilon < 1:
        return summary
    shares = epsilon + np.arange(0.0, 1.0, epsilon)
    weights = summary[1].cumsum()
    share = weights / weights[-1]
    numbers, weights = np.interp(shares, share, summary[0]), np.interp(shares, share, weights)
    return np.stack((numbers, np.diff(weights, prepend=0))).astype(np.float32)


def check_salt(salt: Any, layer: str) -> list[int] | None:
    """Return the two parts of the key of a hash. Raises ValueError for others than one or two integers."""
    if salt is None:
        return None
    if isinstance(salt, int):
        return [salt, salt]
    if isinstance(salt, (tuple, list)) and len(salt) == 2:
        return list(salt)
    raise ValueError(
        f"The `salt` argument for `{layer}` can only be a tuple of 2 integers, or a single integer. "
        f"Received: salt={salt}."
    )


def hash_bucket(values: Tensor, count: int, salt: list[int] | None) -> Tensor:
    """Return a number in [0, count) for each string or integer, int64: by FarmHash, with salt by SipHash."""
    texts: Any = values if values.dtype is string else strings.as_string(values)
    if salt is None:
        return strings.to_hash_bucket_fast(texts, count)
    return strings.to_hash_bucket_strong(texts, count, key=tuple(salt))


class Hashing(ConfigurableLayer):
    """Numbers in [0, num_bins) for strings and integers, by a hash that is stable everywhere.

    mask_value: a value whose number is 0, which others then do not have. salt: one or two integers, the key of
    SipHash64; without it FarmHash64. output_mode: "int": of dtype int64; "one_hot", "multi_hot", "count": as
    CategoryEncoding. Floats are cast to integers.
    raises ValueError for num_bins below 1
    """

    def __init__(
        self,
        num_bins: int,
        mask_value: Any = None,
        salt: Any = None,
        output_mode: str = "int",
        sparse: bool = False,
        **kwargs: Any,
    ) -> None:
        mode = check_mode(output_mode, MODES, sparse)
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = "int64" if mode == "int" else backend.floatx()
        super().__init__(**kwargs)
        if num_bins is None or num_bins <= 0:
            raise ValueError(
                f"The `num_bins` for `Hashing` cannot be `None` or non-positive values. Received: num_bins={num_bins}."
            )
        if mode == "int" and self.dtype not in ("int32", "int64"):
            raise ValueError(
                "When `output_mode=\"int\"`, `dtype` should be an integer type, 'int32' or 'int64'. "
                f"Received: dtype={self.dtype}"
            )
        self._set_arguments(
            num_bins=num_bins, salt=check_salt(salt, "Hashing"), mask_value=mask_value, output_mode=mode, sparse=sparse
        )
        self.autocast = False
        self._build_at_init()

    def call(self, inputs: Any) -> Tensor:
        """Return the hashes of strings or numbers."""
        values: Tensor = dispatch.to_tensor(inputs)
        if values.dtype.is_floating:
            values = array.cast(values, int64)
        masked = self.mask_value is not None and self.num_bins > 1
        hashes = hash_bucket(values, self.num_bins - masked, self.salt)
        if masked:
            hashes = array.where(math.equal(values, self.mask_value), array.zeros_like(hashes), hashes + 1)
        if self.output_mode == "int":
            return array.cast(hashes, self.compute_dtype)
        return encode(hashes, self.output_mode, self.num_bins, self.compute_dtype)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the shape of the numbers or their encoding."""
        return encoded_shape(input_shape, self.output_mode, self.num_bins)


class HashedCrossing(ConfigurableLayer):
    """Numbers in [0, num_bins) for combinations of features, by a hash.

    inputs: two or more tensors of strings or integers of one shape: [], [batch] or [batch, 1].
    output_mode: "int" (of dtype int64) or "one_hot".
    """

    def __init__(
        self,
        num_bins: int,
        output_mode: str = "int",
        sparse: bool = False,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        mode = check_mode(output_mode, MODES[:2], sparse)
        super().__init__(name=name, dtype="int64" if mode == "int" and dtype is None else dtype, **kwargs)
        self._set_arguments(num_bins=num_bins, output_mode=mode, sparse=sparse)
        self.autocast = False
        self._build_at_init()

    def call(self, inputs: Any) -> Tensor:
        """Return the hashes. Raises ValueError for fewer than two features, other shapes or dtypes."""
        if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
            raise ValueError(
                "`HashedCrossing` should be called on a list or tuple of at least two inputs. "
                f"Received: inputs={inputs}"
            )
        features: list[Tensor] = [dispatch.to_tensor(x) for x in inputs]
        shape = features[0].shape
        if shape.rank not in (0, 1, 2) or (shape.rank == 2 and shape[-1] != 1):
            raise ValueError(
                "All `HashedCrossing` inputs should have shape `()`, `(batch_size)` or `(batch_size, 1)`. "
                f"Received: {shape}"
            )
        if any(not x.shape.is_compatible_with(shape) for x in features):
            raise ValueError(
                f"All `HashedCrossing` inputs should have equal shape. Received: {[tuple(x.shape) for x in features]}"
            )
        if any(x.dtype is not string and not x.dtype.is_integer for x in features):
            raise ValueError(
                "All `HashedCrossing` inputs should have an integer or string dtype. "
                f"Received: {[x.dtype.name for x in features]}"
            )
        joined: Any = dispatch.to_tensor(np.uint64(CROSS_KEY))
        for x in features:
            joined = joined_fingerprint(joined, fingerprints(x))
        hashes: Tensor = array.cast(joined % np.uint64(self.num_bins), int64)
        if self.output_mode == "int":
            return array.cast(hashes, self.compute_dtype)
        return encode(hashes, "one_hot", self.num_bins, self.compute_dtype)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the shape of the numbers or their encoding."""
        return encoded_shape(input_shape[0], self.output_mode, self.num_bins)
