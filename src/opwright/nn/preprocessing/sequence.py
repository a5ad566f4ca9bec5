"""`keras.preprocessing.sequence`: sequences of numbers as training data.

Lives here: `TimeseriesGenerator`, `skipgrams`, `make_sampling_table`.  Not here: `pad_sequences` (nn/utils.py).
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ..utils import PyDataset, pad_sequences

__all__ = ["TimeseriesGenerator", "make_sampling_table", "pad_sequences", "skipgrams"]


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray:
    """Return how probable it is that a word of each rank is kept, if frequencies follow Zipf's law.

    min(1, sqrt(f / s) + f / s) of Mikolov et al., 2013, f the factor and 1 / s = rank (ln(rank) + gamma) + 1/2 - 1 /
    (12 rank), gamma Euler's constant
    """
    rank = np.arange(size)
    rank[0] = 1
    inverse = rank * (np.log(rank) + 0.577) + 0.5 - 1.0 / (12.0 * rank)
    scaled = sampling_factor * inverse
    table: np.ndarray = np.minimum(1.0, scaled / np.sqrt(scaled))
    return table


def skipgrams(
    sequence: Any,
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Any = None,
    seed: int | None = None,
) -> tuple[list[list[int]], list[Any]]:
    """Return pairs of words, and whether the second is near the first in a sequence of word numbers.

    window_size: words to each side that are near; negative_samples: pairs with a random word, for each near pair;
    categorical: labels [0, 1] and [1, 0]; sampling_table: probabilities of keeping words by number. 0 is not a word.
    """
    couples: list[list[int]] = []
    labels: list[Any] = []
    for i, word in enumerate(sequence):
        if not word or (sampling_table is not None and sampling_table[word] < random.random()):
            continue
        for j in range(max(0, i - window_size), min(len(sequence), i + window_size + 1)):
            if j != i and sequence[j]:
                couples.append([word, sequence[j]])
                labels.append([0, 1] if categorical else 1)
    if negative_samples > 0:
        count = int(len(labels) * negative_samples)
        words = [couple[0] for couple in couples]
        random.shuffle(words)
        couples += [[words[i % len(words)], random.randint(1, vocabulary_size - 1)] for i in range(count)]
        labels += [[1, 0] if categorical else 0] * count
    if shuffle:
        seed = random.randint(0, 10**7) if seed is None else seed
        for items in (couples, labels):
            random.Random(seed).shuffle(items)
    return couples, labels


class TimeseriesGenerator(PyDataset):
    """Batches of windows of a series and the target after each.

    data: [steps, ...]; targets: [steps]; length: of a window; sampling_rate: between its steps; stride: between
    windows; start_index, end_index: the range of targets; shuffle: windows in random order; reverse: windows backward.
    raises ValueError for a length that leaves no window
    """

    def __init__(
        self,
        data: Any,
        targets: Any,
        length: int,
        sampling_rate: int = 1,
        stride: int = 1,
        start_index: int = 0,
        end_index: int | None = None,
        shuffle: bool = False,
        reverse: bool = False,
        batch_size: int = 128,
    ) -> None:
        super().__init__()
        if len(data) != len(targets):
            raise ValueError(f"Data and targets have to be of same length. Data length is {len(data)}, {len(targets)}")
        self.data, self.targets = np.asarray(data), np.asarray(targets)
        self.length, self.sampling_rate, self.stride = length, sampling_rate, stride
        self.start_index, self.end_index = start_index + length, len(data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse, self.batch_size = shuffle, reverse, batch_size
        if self.start_index > self.end_index:
            raise ValueError(
                f"`start_index+length={self.start_index} > end_index={self.end_index}` is disallowed, as no part of "
                "the sequence would be left to be used as current step."
            )

    def __len__(self) -> int:
        steps = self.end_index - self.start_index + self.batch_size * self.stride
        return steps // (self.batch_size * self.stride)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a batch of windows [batch, length / sampling_rate, ...] and its targets."""
        if self.shuffle:
            ends = np.random.randint(self.start_index, self.end_index + 1, self.batch_size)
        else:
            first = self.start_index + self.batch_size * self.stride * index
            ends = np.arange(first, min(first + self.batch_size * self.stride, self.end_index + 1), self.stride)
        windows = np.array([self.data[end - self.length : end : self.sampling_rate] for end in ends])
        return windows[:, ::-1] if self.reverse else windows, self.targets[ends]
