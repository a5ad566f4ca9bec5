"""Windows of a series as a dataset.

Lives here: `timeseries_dataset_from_array`.  Not here: datasets themselves (../data).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import AUTOTUNE, Dataset
from ..ops import array, dispatch


def timeseries_dataset_from_array(
    data: Any,
    targets: Any,
    sequence_length: int,
    sequence_stride: int = 1,
    sampling_rate: int = 1,
    batch_size: int | None = 128,
    shuffle: bool = False,
    seed: int | None = None,
    start_index: int | None = None,
    end_index: int | None = None,
) -> Dataset:
    """Return a dataset of batches of sliding windows [batch, sequence_length, ...] and their targets, if any.

    Window i has the rows i * sequence_stride + k * sampling_rate for k below sequence_length; its target is the row
    i * sequence_stride. start_index, end_index: the rows used. batch_size: None for single windows. shuffle: windows
    in another order. raises ValueError for numbers below 1 and indices outside the data

    >>> next(iter(ow.keras.utils.timeseries_dataset_from_array([0, 1, 2, 3], None, 3))).numpy()
    array([[0, 1, 2],
           [1, 2, 3]], dtype=int32)
    """
    for name, value in (
        ("sequence_length", sequence_length),
        ("sequence_stride", sequence_stride),
        ("sampling_rate", sampling_rate),
    ):
        if value <= 0:
            raise ValueError(f"`{name}` must be higher than 0. Received: {name}={value}")
    count = len(data)
    for name, index in (("start_index", start_index), ("end_index", end_index)):
        if index is not None and not 0 <= index <= count:
            raise ValueError(
                f"`{name}` must be from 0 to the length of the data. Received: {name}={index}, for data "
                f"of length {count}"
            )
    begin, end = start_index or 0, count if end_index is None else end_index
    if end <= begin:
        raise ValueError(f"`end_index` must be higher than `start_index`. Received: {begin} and {end}")
    windows = end - begin - (sequence_length - 1) * sampling_rate
    if targets is not None:
        windows = min(windows, len(targets))
    starts = np.arange(0, max(windows, 0), sequence_stride)
    if shuffle:
        seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        np.random.RandomState(seed).shuffle(starts)
    rows = dispatch.to_tensor(data)[begin:end]
    steps = np.arange(sequence_length) * sampling_rate
    found: Any = Dataset.from_tensor_slices(starts).map(lambda start: array.gather(rows, start + steps))
    if targets is not None:
        wanted = dispatch.to_tensor(targets)[begin:end]
        found = Dataset.zip((found, Dataset.from_tensor_slices(starts).map(lambda start: array.gather(wanted, start))))
    if shuffle:
        found = found.shuffle(1024 if batch_size is None else batch_size * 8, seed=seed)
    if batch_size is not None:
        found = found.batch(batch_size)
    result: Dataset = found.prefetch(AUTOTUNE)
    return result
