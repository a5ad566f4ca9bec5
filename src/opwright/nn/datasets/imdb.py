"""`keras.datasets.imdb`: reviews of films as numbers of words, with 1 for good and 0 for bad."""

from __future__ import annotations

import numpy as np

from ..file_archives import get_file
from .restricted_pickle import load_npz
from .tables import ORIGIN, Table
from .word_numbers import as_objects, limited, read_index, shorter, shuffled, with_start

__all__ = ["get_word_index", "load_data"]


def load_data(
    path: str = "imdb.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
) -> Table:
    """Return (x_train, y_train), (x_test, y_test): arrays of lists of numbers, and labels.

    num_words, skip_top: numbers outside of [skip_top, num_words) become oov_char, or nothing. maxlen: longer texts are
    left out. start_char: begins each text. index_from: the least number of a word.
    raises ValueError if no text is shorter than maxlen, FileNotFoundError
    """
    arrays, random = load_npz(get_file(path, origin=ORIGIN + "imdb.npz")), np.random.RandomState(seed)
    texts, labels = [], []
    for part in ("train", "test"):
        x, y = shuffled(arrays[f"x_{part}"], arrays[f"y_{part}"], random)
        numbers = with_start(x, start_char, index_from)
        if maxlen:
            numbers, y = shorter(numbers, y, maxlen)
        texts.append(numbers)
        labels.append(y)
    both = limited(texts[0] + texts[1], num_words, skip_top, oov_char)
    count = len(texts[0])
    return (as_objects(both[:count]), labels[0]), (as_objects(both[count:]), labels[1])


def get_word_index(path: str = "imdb_word_index.json") -> dict[str, int]:
    """Return the number of each word, from 1; `load_data` adds index_from."""
    return read_index(path, "imdb_word_index.json")
