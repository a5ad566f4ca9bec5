"""`keras.preprocessing.text`: words of texts as numbers, as older programs do it.

Lives here: `Tokenizer`, `text_to_word_sequence`, `one_hot`, `hashing_trick`.
Not here: the layer `TextVectorization` (nn/layers/text_vectorization.py), which models contain.
"""

from __future__ import annotations

import collections
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

__all__ = ["Tokenizer", "hashing_trick", "one_hot", "text_to_word_sequence", "tokenizer_from_json"]

PUNCTUATION = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(
    input_text: str, filters: str = PUNCTUATION, lower: bool = True, split: str = " "
) -> list[str]:
    """Return the words of a text. filters: characters that separate words; lower: as lower case.

    >>> from opwright.keras.preprocessing.text import text_to_word_sequence
    >>> text_to_word_sequence("Hello, world!")
    ['hello', 'world']
    """
    text = input_text.lower() if lower else input_text
    return [word for word in text.translate(dict.fromkeys(map(ord, filters), split)).split(split) if word]


def hashing_trick(
    text: str,
    n: int,
    hash_function: Callable[[str], int] | str | None = None,
    filters: str = PUNCTUATION,
    lower: bool = True,
    split: str = " ",
    analyzer: Callable[[str], list[str]] | None = None,
) -> list[int]:
    """Return numbers from 1 to n - 1 for the words of a text, by a hash: Python's, a function or "md5"."""
    if hash_function == "md5":

        def digest(word: str) -> int:
            return int(hashlib.md5(word.encode()).hexdigest(), 16)

        hash_function = digest
    elif hash_function is None:
        hash_function = hash
    words = text_to_word_sequence(text, filters, lower, split) if analyzer is None else analyzer(text)
    return [hash_function(word) % (n - 1) + 1 for word in words]  # type: ignore[operator]


def one_hot(
    input_text: str,
    n: int,
    filters: str = PUNCTUATION,
    lower: bool = True,
    split: str = " ",
    analyzer: Callable[[str], list[str]] | None = None,
) -> list[int]:
    """Return numbers for the words of a text by Python's hash, which differs in each process."""
    return hashing_trick(input_text, n, hash, filters, lower, split, analyzer)


class Tokenizer:
    """Numbers for the words of texts, the most frequent first, from 1.

    num_words: only words with smaller numbers are returned; filters, lower, split: see `text_to_word_sequence`;
    char_level: characters instead of words; oov_token: stands for unknown words, with number 1; analyzer: a function
    that returns the words of a text
    """

    def __init__(
        self,
        num_words: int | None = None,
        filters: str = PUNCTUATION,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: str | None = None,
        analyzer: Callable[[str], list[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        self.document_count: int = kwargs.pop("document_count", 0)
        if kwargs:
            raise TypeError(f"Unrecognized keyword arguments: {kwargs}")
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token, self.analyzer = char_level, oov_token, analyzer
        self.word_counts: dict[str, int] = collections.OrderedDict()
        self.word_docs: dict[str, int] = collections.defaultdict(int)
        self.index_docs: dict[int, int] = collections.defaultdict(int)
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> list[str]:
        if self.char_level or isinstance(text, list):
            if not self.lower:
                return list(text)
            return [word.lower() for word in text] if isinstance(text, list) else list(text.lower())
        if self.analyzer is not None:
            return self.analyzer(text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Count the words of texts, or of lists of words, and number them by frequency."""
        for text in texts:
            self.document_count += 1
            words = self._words(text)
            for word in words:
                self.word_counts[word] = self.word_counts.get(word, 0) + 1
            for word in set(words):
                self.word_docs[word] += 1
        ordered = sorted(self.word_counts, key=lambda word: -self.word_counts[word])
        vocabulary = ordered if self.oov_token is None else [self.oov_token, *ordered]
        self.word_index = dict(zip(vocabulary, range(1, len(vocabulary) + 1)))
        self.index_word = {number: word for word, number in self.word_index.items()}
        for word, count in self.word_docs.items():
            self.index_docs[self.word_index[word]] = count

    def fit_on_sequences(self, sequences: Iterable[Any]) -> None:
        """Count the documents with each word of sequences of numbers, for "tfidf" of `sequences_to_matrix`."""
        for sequence in sequences:
            self.document_count += 1
            for number in set(sequence):
                self.index_docs[number] += 1

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """Return the numbers of the words of texts; unknown words are left out, or oov_token's number."""
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(self, texts: Iterable[Any]) -> Iterator[list[int]]:
        """Yield the numbers of the words of each text."""
        unknown = self.word_index.get(self.oov_token) if self.oov_token is not None else None
        for text in texts:
            numbers = []
            for word in self._words(text):
                number = self.word_index.get(word)
                if number is None or (self.num_words and number >= self.num_words):
                    number = unknown
                if number is not None:
                    numbers.append(number)
            yield numbers

    def sequences_to_texts(self, sequences: Iterable[Any]) -> list[str]:
        """Return the texts of sequences of numbers, words separated by blanks."""
        return list(self.sequences_to_texts_generator(sequences))

    def sequences_to_texts_generator(self, sequences: Iterable[Any]) -> Iterator[str]:
        """Yield the text of each sequence of numbers."""
        unknown = None if self.oov_token is None else self.index_word[self.word_index[self.oov_token]]
        for sequence in sequences:
            words = []
            for number in sequence:
                word = self.index_word.get(number)
                if word is None or (self.num_words and number >= self.num_words):
                    word = unknown
                if word is not None:
                    words.append(word)
            yield " ".join(words)

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> np.ndarray:
        """Return a row for each text: see `sequences_to_matrix`."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: list[Any], mode: str = "binary") -> np.ndarray:
        """Return a row for each sequence, a column for each number: whether it is there ("binary"), how often
        ("count"), which share ("freq"), or that weighted by how few documents have it ("tfidf").

        raises ValueError for other modes, and if the number of words is unknown
        """
        if not self.num_words and not self.word_index:
            raise ValueError("Specify a dimension (`num_words` argument), or fit on some text data first.")
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Fit the Tokenizer on some data before using tfidf mode.")
        if mode not in ("binary", "count", "freq", "tfidf"):
            raise ValueError(f"Unknown vectorization mode: {mode}")
        columns = self.num_words or len(self.word_index) + 1
        matrix = np.zeros((len(sequences), columns))
        for row, sequence in zip(matrix, sequences):
            for number, count in collections.Counter(n for n in sequence if n < columns).items():
                if mode == "tfidf":
                    rarity = np.log(1 + self.document_count / (1 + self.index_docs.get(number, 0)))
                    row[number] = (1 + np.log(count)) * rarity
                else:
                    row[number] = {"binary": 1.0, "count": count, "freq": count / len(sequence)}[mode]
        return matrix

    def get_config(self) -> dict[str, Any]:
        """Return settings and counts; tables as JSON texts."""
        tables = ("word_counts", "word_docs", "index_docs", "index_word", "word_index")
        return {
            "num_words": self.num_words,
            "filters": self.filters,
            "lower": self.lower,
            "split": self.split,
            "char_level": self.char_level,
            "oov_token": self.oov_token,
            "document_count": self.document_count,
            **{name: json.dumps(getattr(self, name)) for name in tables},
        }

    def to_json(self, **kwargs: Any) -> str:
        """Return settings and counts as JSON, which `tokenizer_from_json` reads."""
        return json.dumps({"class_name": "Tokenizer", "config": self.get_config()}, **kwargs)


def tokenizer_from_json(json_string: str) -> Tokenizer:
    """Return the tokenizer of a JSON text that `Tokenizer.to_json` returned."""
    config = json.loads(json_string)["config"]
    tables = {name: json.loads(config.pop(name)) for name in ("word_counts", "word_docs", "word_index")}
    numbered = {name: json.loads(config.pop(name)) for name in ("index_docs", "index_word")}
    tokenizer = Tokenizer(**config)
    tokenizer.word_counts = collections.OrderedDict(tables["word_counts"])
    tokenizer.word_docs = collections.defaultdict(int, tables["word_docs"])
    tokenizer.word_index = tables["word_index"]
    tokenizer.index_docs = collections.defaultdict(int, {int(k): v for k, v in numbered["index_docs"].items()})
    tokenizer.index_word = {int(k): v for k, v in numbered["index_word"].items()}
    return tokenizer
