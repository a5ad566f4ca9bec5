"""Texts as numbers of words: shifted, cut to the most frequent words, filtered by length.

Lives here: `prepare`, `read_index`.  Not here: which files there are (imdb.py, reuters.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..file_archives import get_file
from .tables import ORIGIN


def shuffled(x: np.ndarray, y: np.ndarray, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Return texts and labels in one random order."""
    order = np.arange(len(x))
    random.shuffle(order)
    return x[order], y[order]


def with_start(texts: Iterable[Any], start_char: int | None, index_from: int) -> list[list[int]]:
    """Return texts whose numbers begin at index_from, after start_char if there is one."""
    first = [] if start_char is None else [start_char]
    return [[*first, *(int(w) + (index_from or 0) for w in text)] for text in texts]


def shorter(texts: list[list[int]], labels: np.ndarray, maxlen: int) -> tuple[list[list[int]], np.ndarray]:
    """Return the texts of less than maxlen numbers, and their labels. Raises ValueError if there are none."""
    kept = [i for i, text in enumerate(texts) if len(text) < maxlen]
    if not kept:
        raise ValueError(
            f"After filtering for sequences shorter than maxlen={maxlen}, no sequence was kept. Increase maxlen."
        )
    return [texts[i] for i in kept], labels[kept]


def limited(texts: list[list[int]], num_words: int | None, skip_top: int, oov_char: int | None) -> list[list[int]]:
    """Return texts of the numbers in [skip_top, num_words), others as oov_char, or left out if that is None."""
    limit = num_words or max(map(max, texts))
    if oov_char is None:
        return [[w for w in text if skip_top <= w < limit] for text in texts]
    return [[w if skip_top <= w < limit else oov_char for w in text] for text in texts]


def as_objects(texts: list[list[int]]) -> np.ndarray:
    """Return an array of lists."""
    return np.fromiter(texts, object, len(texts))


def read_index(path: str, name: str) -> dict[str, int]:
    """Return the number of each word, from a JSON file."""
    with open(get_file(path, origin=ORIGIN + name), encoding="utf-8") as file:
        index: dict[str, int] = json.load(file)
    return index
