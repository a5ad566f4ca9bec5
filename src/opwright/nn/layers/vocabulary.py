"""Vocabularies: counts of tokens in documents, and files of tokens.

Lives here: `TokenCounts`, with inverse document frequencies; text files with a token per line; the assets of a layer.
Not here: layers with a vocabulary (index_lookup.py), checks of one.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ops.strings.elementwise import bytes_of, text_of

_LINES, _JSON, _IDF = "vocabulary.txt", "vocabulary.json", "idf_weights.npy"


class TokenCounts:
    """Numbers of occurrences of tokens, and with by_document of the documents that contain them."""

    def __init__(self, by_document: bool) -> None:
        self._by_document = by_document
        self._occurrences: Counter[Any] = Counter()
        self._containing: Counter[Any] = Counter()
        self._documents = 0

    def __bool__(self) -> bool:
        return bool(self._occurrences)

    def add(self, tokens: Sequence[Any]) -> None:
        """Count the tokens of one document."""
        self._occurrences.update(tokens)
        if self._by_document:
            self._containing.update(set(tokens))
            self._documents += 1

    def discard(self, token: Any) -> None:
        """Forget the occurrences of a token."""
        self._occurrences.pop(token, None)

    def most_frequent(self, limit: int | None) -> list[Any]:
        """Return the most frequent tokens first, of equal counts the greater first; all without a limit."""
        occurrences = self._occurrences
        return sorted(occurrences, key=lambda token: (occurrences[token], token), reverse=True)[:limit]

    def inverse_document_frequencies(self, tokens: Sequence[Any]) -> list[float]:
        """Return log(1 + documents / (1 + documents with the token)) of each token, as Keras has it."""
        return [math.log(1 + self._documents / (1 + self._containing[token])) for token in tokens]


def read_lines(path: str | os.PathLike[str]) -> list[bytes]:
    """Return the tokens of a text file, one per line."""
    with open(path, "rb") as file:
        return file.read().removesuffix(b"\n").split(b"\n")


def reads_as_lines(tokens: Sequence[Any]) -> bool:
    """Return whether lines of text are read as the same tokens: none has a line break."""
    lines = [*map(str, tokens)]
    return "\n".join(lines).splitlines() == lines


def write_assets(folder: str, tokens: Sequence[Any], idf_weights: np.ndarray | None) -> None:
    """Write tokens to vocabulary.txt, one per line, or as JSON if a token has a line break; and their weights."""
    name, text = (_LINES, "\n".join(map(str, tokens))) if reads_as_lines(tokens) else (_JSON, json.dumps(tokens))
    with open(os.path.join(folder, name), "wb") as file:
        file.write(bytes_of(text))
    if idf_weights is not None:
        np.save(os.path.join(folder, _IDF), idf_weights)


def read_tokens(folder: str) -> list[Any] | None:
    """Return the tokens that `write_assets` wrote to a folder, None if there are none."""
    for name in (_LINES, _JSON):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, "rb") as file:
                text = text_of(file.read())
            tokens: list[Any] = text.splitlines() if name == _LINES else json.loads(text)
            return tokens
    return None


def read_weights(folder: str) -> np.ndarray:
    """Return the weights that `write_assets` wrote to a folder."""
    weights: np.ndarray = np.load(os.path.join(folder, _IDF))
    return weights
