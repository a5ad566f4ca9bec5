"""Weights of few bits, chosen by what layers receive: GPTQ and AWQ, block by block.

Lives here: statistics of inputs and the codes that follow from them, in NumPy; windows of tokens; the loop over blocks.
Not here: configurations (quantizers.py), weights of layers (layers/calibrated_modes.py).

GPTQ (Frantar et al., arXiv:2210.17323) rounds the inputs' weights one after the other, and each time moves the rest,
so that the outputs change least, by the inverse of the inputs' second moments. AWQ (Lin et al.,
arXiv:2306.00978) scales the weights of an input by a power of its greatest magnitude before they are rounded.
Results equal Keras 3, whose GPTQ takes rows of the inverse as they are (the authors take its Cholesky factor).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..ops import dispatch
from .quantization_functions import compute_quantization_parameters

BLOCK = 128
"""Inputs whose errors reach later ones in one product; also Keras's."""
LEAST_MAGNITUDE, LEAST_SCALE = 1e-8, 1e-4
"""Magnitudes that count as none, and the least scale, of AWQ."""


class ChosenCodes(NamedTuple):
    """Weights as integers. whole: [outputs, inputs]; scale, zero: [outputs, groups]; groups: of each input; factors:
    by which the weights of inputs were multiplied, or None."""

    whole: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    groups: np.ndarray
    factors: np.ndarray | None = None


def _parameters(
    weights: np.ndarray, bits: int, size: int, symmetric: bool = False, per_channel: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return scales and zero points [outputs, groups] of groups of `size` inputs.

    The range of a group includes 0, and with `symmetric` the negative of its greatest magnitude: the zero point of
    weights of one sign would not fit into the integers.
    """
    outputs, inputs = weights.shape
    groups = -(-inputs // size)
    padded = np.pad(weights, ((0, 0), (0, groups * size - inputs))).reshape(outputs * groups, size)
    bound = -np.abs(padded).max(1, keepdims=True) if symmetric else np.zeros((len(padded), 1), padded.dtype)
    scale, zero, _ = compute_quantization_parameters(
        np.concatenate([padded, bound], 1), bits=bits, symmetric=symmetric, per_channel=per_channel
    )
    return scale.numpy().reshape(outputs, groups), zero.numpy().reshape(outputs, groups).astype(np.float32)


def _rounded(weights: np.ndarray, scale: np.ndarray, zero: np.ndarray, bits: int) -> np.ndarray:
    rounded: np.ndarray = np.clip(np.round(weights / scale + zero), 0, 2**bits - 1)
    return rounded


class Moments:
    """Second moments of a layer's inputs, for GPTQ."""

    def __init__(self, inputs: int) -> None:
        self._sum, self._count = np.zeros((inputs, inputs)), 0

    def observe(self, x: np.ndarray) -> None:
        """Add inputs [count, inputs]."""
        self._sum += x.T.astype(np.float64) @ x
        self._count += len(x)

    @property
    def is_empty(self) -> bool:
        """Whether there were no inputs."""
        return self._count == 0

    def _inverse(self, damping: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the inverse of the damped moments, and their diagonal. Inputs that are always 0 count as 1."""
        moments = self._sum * (2.0 / self._count)
        diagonal = np.where(np.diag(moments) == 0.0, 1.0, np.diag(moments))
        diagonal = diagonal + damping * diagonal.mean()
        np.fill_diagonal(moments, diagonal)
        return np.linalg.inv(moments).astype(np.float32), diagonal

    def codes(self, weights: np.ndarray, config: Any) -> ChosenCodes:
        """Return the codes of weights [outputs, inputs]; with `activation_order`, inputs of great moments are first."""
        inverse, diagonal = self._inverse(config.hessian_damping)
        order = np.arange(len(inverse))
        if config.activation_order:
            order = np.argsort(-diagonal, kind="stable")
        left, inverse = weights[:, order].astype(np.float32), inverse[np.ix_(order, order)]
        inputs = len(order)
        size = inputs if config.group_size == -1 else config.group_size
        whole = np.zeros(left.shape, np.float32)
        scale, zero = (np.zeros((len(left), -(-inputs // size)), np.float32) for _ in range(2))
        for begin in range(0, inputs, BLOCK):
            end = min(begin + BLOCK, inputs)
            block = left[:, begin:end].copy()
            errors = np.zeros_like(block)
            for i in range(begin, end):
                group, column = i // size, i - begin
                if i % size == 0:
                    found = _parameters(
                        left[:, i : i + size], config.weight_bits, size, config.symmetric, config.per_channel
                    )
                    scale[:, group], zero[:, group] = (each[:, 0] for each in found)
                s, z = scale[:, group], zero[:, group]
                whole[:, i] = _rounded(block[:, column], s, z, config.weight_bits)
                errors[:, column] = (block[:, column] - s * (whole[:, i] - z)) / inverse[i, i]
                block[:, column + 1 :] -= np.outer(errors[:, column], inverse[i, i + 1 : end])
            left[:, end:] -= errors @ inverse[begin:end, end:]
        back = np.argsort(order)
        return ChosenCodes(whole[:, back], scale, zero, (np.arange(inputs) // size)[back])


class Magnitudes:
    """Greatest magnitudes of a layer's inputs, for AWQ."""

    def __init__(self, inputs: int) -> None:
        self._greatest = np.zeros(inputs, np.float32)
        self.is_empty = True

    def observe(self, x: np.ndarray) -> None:
        """Add inputs [count, inputs]."""
        self.is_empty = False
        np.maximum(self._greatest, np.abs(x).max(0), out=self._greatest)

    def codes(self, weights: np.ndarray, config: Any) -> ChosenCodes:
        """Return the codes of weights [outputs, inputs] times that power of the magnitudes, of `num_grid_points` and 0,
        whose weighted squared error is least."""
        greatest = np.where(self._greatest < LEAST_MAGNITUDE, 1.0, self._greatest).astype(np.float32)
        inputs = weights.shape[1]
        size = inputs if config.group_size == -1 else config.group_size
        groups = np.arange(inputs) // size
        best, least = None, np.inf
        for i in range(config.num_grid_points + 1):
            factors = np.maximum(greatest ** np.float32(i / config.num_grid_points), np.float32(LEAST_SCALE))
            factors = factors / max(np.sqrt(factors.max() * factors.min()), np.float32(LEAST_MAGNITUDE))
            scale, zero = _parameters(weights * factors, config.weight_bits, size)
            whole = _rounded(weights * factors, scale[:, groups], zero[:, groups], config.weight_bits)
            meant = (whole - zero[:, groups]) * scale[:, groups] / factors
            error = np.square((weights - meant) * greatest).mean()
            if best is None or error < least:
                best, least = ChosenCodes(whole, scale, zero, groups, factors), error
        assert best is not None
        return best


# ---- models ----------------------------------------------------------------------------------------------------------


def _tokens(dataset: Any, tokenizer: Any) -> np.ndarray:
    """Return the tokens of a dataset of texts or of arrays of tokens."""
    if not isinstance(dataset, Iterable) or isinstance(dataset, str | bytes):
        raise TypeError(
            "The `dataset` argument must be an iterable (e.g., a list of strings, a generator, or a NumPy array). Got "
            f"type: {type(dataset).__name__}. Please pass the loaded dataset directly."
        )
    parts = [tokenizer.tokenize(part) if isinstance(part, str) else part for part in dataset]
    if not parts:
        raise ValueError("Provided dataset is empty.")
    return np.concatenate([np.asarray(dispatch.to_tensor(part).numpy()).reshape(-1) for part in parts]).astype(np.int32)


def windows(config: Any) -> np.ndarray:
    """Return samples of a configuration's dataset, [num_samples, 1, sequence_length], evenly spaced.

    A short dataset is repeated. raises ValueError without dataset and tokenizer, and for an empty dataset; TypeError
    for one that is not an iterable
    """
    if config.dataset is None or config.tokenizer is None:
        raise ValueError(
            f"{config.mode.upper()} quantization requires a dataset and a tokenizer. Please provide them in the "
            f"`{type(config).__name__}`."
        )
    tokens = _tokens(config.dataset, config.tokenizer)
    length, count = config.sequence_length, config.num_samples
    if tokens.size == 0:
        raise ValueError("Provided dataset has no tokens.")
    tokens = np.tile(tokens, -(-length * count // tokens.size) if tokens.size < length * count else 1)
    last = tokens.size - length
    starts = np.arange(count) * max(1, (last + 1) // count) % (last + 1)
    samples: np.ndarray = np.lib.stride_tricks.sliding_window_view(tokens, length)[starts][:, None]
    return samples


def structure_of(model: Any, config: Any) -> dict[str, Any]:
    """Return the layers before the blocks, and the blocks, of a configuration or of the model's own method.

    raises ValueError without, and without blocks
    """
    found = config.quantization_layer_structure or model.get_quantization_layer_structure(config.mode)
    if found is None:
        raise ValueError(
            f"For mode='{config.mode}', a valid quantization structure must be provided either via "
            "`config.quantization_layer_structure` or by overriding `model.get_quantization_layer_structure(mode)`. "
            "The structure should be a dictionary with keys 'pre_block_layers' and 'sequential_blocks'."
        )
    if not found.get("sequential_blocks"):
        raise ValueError("No sequential blocks found in the provided structure to quantize.")
    structure: dict[str, Any] = found
    return structure


def _batched(x: Any) -> Any:
    return x[None] if len(x.shape) == 2 else x


def calibrate(structure: dict[str, Any], config: Any, chosen: Any) -> None:
    """Give the chosen layers of each block the codes that follow from their inputs, in the order of the blocks.

    chosen: of a block, returns its quantized layers, which have no codes yet. A block receives what the blocks before
    it return with their codes.
    """
    inputs: list[Any] = []
    for sample in windows(config):
        x: Any = dispatch.to_tensor(sample)
        for layer in structure.get("pre_block_layers", ()):
            x = layer(x)
        inputs.append(x)
    blocks = structure["sequential_blocks"]
    for number, block in enumerate(blocks):
        layers = chosen(block)
        for layer in layers:
            layer.begin_calibration()
        try:
            for x in inputs if layers else ():
                block(_batched(x))
        finally:
            for layer in layers:
                layer.end_calibration()
        if number < len(blocks) - 1:
            inputs = [block(_batched(x))[0] for x in inputs]
