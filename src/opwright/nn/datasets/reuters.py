"""`keras.datasets.reuters`: news as numbers of words, with one of 46 topics."""

from __future__ import annotations

import numpy as np

from ..file_archives import get_file
from .restricted_pickle import load_npz
from .tables import ORIGIN, Table
from .word_numbers import as_objects, limited, read_index, shorter, shuffled, with_start

__all__ = ["get_label_names", "get_word_index", "load_data"]


def load_data(
    path: str = "reuters.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    test_split: float = 0.2,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
) -> Table:
    """Return (x_train, y_train), (x_test, y_test): arrays of lists of numbers, and topics; options as of imdb.

    test_split: the share of the second part
    """
    arrays = load_npz(get_file(path, origin=ORIGIN + "reuters.npz"))
    x, y = shuffled(arrays["x"], arrays["y"], np.random.RandomState(seed))
    texts = with_start(x, start_char, index_from)
    if maxlen:
        texts, y = shorter(texts, y, maxlen)
    texts = limited(texts, num_words, skip_top, oov_char)
    count = int(len(texts) * (1 - test_split))
    return (as_objects(texts[:count]), y[:count]), (as_objects(texts[count:]), y[count:])


def get_word_index(path: str = "reuters_word_index.json") -> dict[str, int]:
    """Return the number of each word, from 1; `load_data` adds index_from."""
    return read_index(path, "reuters_word_index.json")


def get_label_names() -> tuple[str, ...]:
    """Return the names of the topics."""
    return tuple(TOPICS.split())


TOPICS = (
    "cocoa grain veg-oil earn acq wheat copper housing money-supply coffee sugar trade reserves ship cotton carcass "
    "crude nat-gas cpi money-fx interest gnp meal-feed alum oilseed gold tin strategic-metal livestock retail ipi "
    "iron-steel rubber heat jobs lei bop zinc orange pet-chem dlr gas silver wpi hog lead"
)
